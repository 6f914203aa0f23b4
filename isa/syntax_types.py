"""What a syntax is made of: operand slots and modifiers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Slot:
    """One operand position.

    kind    how it reads: see PRINT in disasm.py and PARSE in asm_parse.py.
    field   microcode field, "" for fixed text.
    bits    operand size. `half`: "" or how a 16-bit VGPR tells its half, "bit7" or "opsel".
    index   bit of NEG, ABS, OP_SEL that speaks of it (3: destination).
    signed  NEG and ABS apply.
    style   further detail of the kind (format of an immediate).
    acc     field whose bit `index` makes a VGPR an AccVGPR; "always": it is one; "": it never is.
    """

    kind: str
    field: str = ""
    bits: int = 32
    half: str = ""
    index: int = 0
    signed: bool = False
    style: str = ""
    fmt: str = ""
    acc: str = ""


@dataclass(frozen=True, slots=True)
class Modifier:
    """One modifier: `kind` as for slots; `count` entries of a list; `default` is not printed."""

    kind: str
    field: str = ""
    text: str = ""
    count: int = 0
    default: int = 0
