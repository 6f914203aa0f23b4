"""Operand lists of the vendor's table that leave out or add a register: mended before tables are written.

Test:    tests/isa/test_operands.py, test_mended_operand_lists.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

CDNA = frozenset({"gfx942", "gfx950"})


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


ROWS = (
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
