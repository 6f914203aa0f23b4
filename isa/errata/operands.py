"""Operand lists of the vendor's table that leave out or add a register: mended before tables are written.

Test:    tests/isa/test_operands.py, test_mended_operand_lists.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

CDNA = frozenset({"gfx942", "gfx950"})
ALL = CDNA | {"gfx1100", "gfx1151", "gfx1201"}
SMALL_FLOATS = CDNA | {"gfx1201"}
SCALAR_FLOATS = frozenset({"gfx1151", "gfx1201"})
#: Conversions of CDNA that write one part of a register.
PART_OF_A_REGISTER = (
    r"V_CVT_PK_(FP8|BF8)_F32|V_CVT_SR_(F16|BF16)_F32|V_CVT_SCALEF32_(SR_)?(PK_)?(FP8|BF8|FP4)_(F32|F16|BF16)"
)


@dataclass(frozen=True, slots=True)
class OperandErratum:
    """Rows of `base` ("" any) whose name `applies` admits get the operand text `mend` makes.

    says    what the table says, in our words; does: what hardware does. source: who knows.
    """

    archs: frozenset[str]
    base: str
    applies: Callable[[str], bool]
    says: str
    does: str
    source: str
    mend: Callable[[str], str]


def without_data(text: str) -> str:
    return " ".join(c for c in text.split() if not c.startswith("VDATA="))


def changed(role: str, *, access: str = "", kind: str = "", fmt: str = "", bits: int = 0) -> Callable[[str], str]:
    """Gives the columns of one role other values."""

    def mend(text: str) -> str:
        out = []
        for column in text.split():
            name, _, rest = column.partition("=")
            field, was, plain, old, size = rest.split(":")
            if name == role:
                column = f"{name}={field}:{access or was}:{kind or plain}:{fmt or old}:{bits or size}"
            out.append(column)
        return " ".join(out)

    return mend


ROWS = (
    OperandErratum(
        SMALL_FLOATS, "", lambda name: re.fullmatch(r"V_CVT_F32_(FP8|BF8)", name) is not None,
        "the source has 8 bits", "any byte of 32 can be selected", "the instruction's own text",
        changed("S0", fmt="b32", bits=32),
    ),
    OperandErratum(
        CDNA, "", lambda name: re.fullmatch(r"V_CVT_PK_F32_(FP8|BF8)", name) is not None,
        "the source has 16 bits", "either half of 32 can be selected", "the instruction's own text",
        changed("S0", fmt="b32", bits=32),
    ),
    OperandErratum(
        SMALL_FLOATS, "", lambda name: re.fullmatch(r"V_CVT_SR_(FP8|BF8)_F32", name) is not None,
        "the result has 8 bits", "one byte of a register whose others stay", "the instruction's own text",
        changed("D0", access="rw", fmt="b32", bits=32),
    ),
    OperandErratum(
        CDNA, "", lambda name: re.fullmatch(PART_OF_A_REGISTER, name) is not None,
        "the result has 8 or 16 bits", "a part of a register whose rest stays", "the instruction's own text",
        changed("D0", access="rw", fmt="b32", bits=32),
    ),
    OperandErratum(
        CDNA, "", lambda name: re.fullmatch(r"V_CVT_SCALEF32_(PK_)?(F32|F16|BF16)_(FP8|BF8|FP4)", name) is not None,
        "the source has 8 or 16 bits", "OP_SEL picks a part of 32", "the instruction's own text",
        changed("S0", fmt="b32", bits=32),
    ),
    OperandErratum(
        SCALAR_FLOATS, "", lambda name: name == "S_CVT_HI_F32_F16",
        "the source has 16 bits", "the upper half of its 32 bits is read", "the instruction's own text",
        changed("S0", bits=32),
    ),
    OperandErratum(
        SCALAR_FLOATS, "", lambda name: name == "S_CVT_PK_RTZ_F16_F32",
        "the result has 16 bits", "two halves of 16 bits", "the instruction's own text", changed("D0", fmt="f16x2", bits=32),
    ),
    OperandErratum(
        ALL, "SOP1", lambda name: name in ("S_SWAPPC_B64", "S_MOVRELSD_2_B32"),
        "the source is a register", "it can be a literal as well", "LLVM reads and writes both",
        changed("S0", kind="ssrc"),
    ),
    OperandErratum(
        CDNA, "VOPC", lambda name: name.startswith("V_CMPX_"),
        "the result goes to EXEC", "to EXEC and to VCC, as the VOP3 form writes EXEC and its SGPRs",
        "isa-spec/README.md, 'Hardware facts'; LLVM's texts name vcc", lambda text: f"D0=-:w:vcc:m64:1 {text}",
    ),
    OperandErratum(
        CDNA, "", lambda name: "_LOAD_LDS_" in name,
        "VDST is written", "the data goes to LDS, no VGPR is written",
        "LLVM's texts have no such operand", without_data,
    ),
)  # fmt: skip


def mended(arch: str, base: str, name: str, text: str) -> str:
    """Operand text of a table row after the errata of `arch`."""
    for row in ROWS:
        if arch in row.archs and row.base in ("", base) and row.applies(name):
            text = row.mend(text)
    return text
