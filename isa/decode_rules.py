"""Rules between the fields of one instruction that no single field shows.

A rule takes the microcode fields and gives the reason why no such instruction exists, or "".
Decoder and assembler both apply them, so that what one makes the other takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from stuntgpu.isa.arch import Arch, EncodingRow, InstRow

Fields = Mapping[str, int]
Rule = Callable[[Fields], str]

SOURCE_VGPR = 256
#: Registers of a matrix source by its format code (CBSZ for A, BLGP for B): FP8, BF8, FP6, BF6, FP4.
FORMAT_REGISTERS = (8, 8, 6, 6, 4)


def is_multi_format(row: InstRow) -> bool:
    """Whether CBSZ and BLGP choose the formats, and with them the sizes, of A and B."""
    return row.name.endswith("_F8F6F4")


def format_registers(code: int) -> int:
    """Registers of a source in format `code`; 0 for a code without a meaning."""
    return FORMAT_REGISTERS[code] if code < len(FORMAT_REGISTERS) else 0


def block_formats(align: int) -> Rule:
    """Sources of the F8F6F4 matrix instructions: size by format, inside the file, aligned."""

    def check(f: Fields) -> str:
        for field, code in (("SRC0", "CBSZ"), ("SRC1", "BLGP")):
            n, first = format_registers(f[code]), f[field] - SOURCE_VGPR
            if not n:
                return f"{code} {f[code]} is no format"
            if first + n > 256 or first % align:
                return f"{field} cannot be {f[field]}"
        return ""

    return check


def address_pair(align: int, no_saddr: int) -> Rule:
    """Global addresses without a scalar part are pairs of VGPRs."""

    def check(f: Fields) -> str:
        if f["SADDR"] == no_saddr and (f["ADDR"] % align or f["ADDR"] == 255):
            return f"ADDR cannot be {f['ADDR']}"
        return ""

    return check


def flat_pair(align: int) -> Rule:
    def check(f: Fields) -> str:
        return f"ADDR cannot be {f['ADDR']}" if f["ADDR"] % align or f["ADDR"] == 255 else ""

    return check


def buffer_pair(align: int) -> Rule:
    """Index and offset together are a pair of VGPRs."""

    def check(f: Fields) -> str:
        pair = f["IDXEN"] and f["OFFEN"]
        return f"VADDR cannot be {f['VADDR']}" if pair and (f["VADDR"] % align or f["VADDR"] == 255) else ""

    return check


def rules(target: Arch, row: InstRow, encoding: EncodingRow) -> tuple[Rule, ...]:
    """All rules of a row."""
    out: list[Rule] = []
    if is_multi_format(row):
        out.append(block_formats(target.vgpr_align))
    if target.vgpr_align > 1 and row.operands:
        if row.base == "FLAT_GLBL":
            out.append(address_pair(target.vgpr_align, target.no_saddr))
        elif row.base == "FLAT":
            out.append(flat_pair(target.vgpr_align))
        elif encoding.has("OFFEN"):
            out.append(buffer_pair(target.vgpr_align))
    return tuple(out)
