"""Rules between the fields of one instruction that no single field shows.

A rule takes the microcode fields and gives the reason why no such instruction exists, or "".
Decoder and assembler both apply them, so that what one makes the other takes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from stuntgpu.isa.arch import Arch, EncodingRow, InstRow, OperandRow
from stuntgpu.isa.decode_rules_rdna import rdna_rules

Fields = Mapping[str, int]
Rule = Callable[[Fields], str]

SOURCE_VGPR = 256
#: Instructions of the global data share, whatever their encoding calls them.
GDS_ONLY = ("DS_GWS_", "DS_ORDERED_COUNT")
#: Registers of a matrix source by its format code (CBSZ for A, BLGP for B): FP8, BF8, FP6, BF6, FP4.
FORMAT_REGISTERS = (8, 8, 6, 6, 4)


def is_multi_format(row: InstRow) -> bool:
    """Whether CBSZ and BLGP choose the formats, and with them the sizes, of A and B."""
    return row.name.endswith("_F8F6F4")


def format_registers(code: int) -> int:
    """Registers of a source in format `code`; codes without a meaning take the most."""
    return FORMAT_REGISTERS[code] if code < len(FORMAT_REGISTERS) else 8


def block_formats(align: int) -> Rule:
    """Sources of the F8F6F4 matrix instructions: size by format, inside the file, aligned."""

    def check(f: Fields) -> str:
        for field, code in (("SRC0", "CBSZ"), ("SRC1", "BLGP")):
            n, first = format_registers(f[code]), f[field] - SOURCE_VGPR
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


def returned(align: int, bits: int) -> Rule:
    """The registers an atomic gives the old value to, if it does."""
    n = (bits + 31) // 32

    def check(f: Fields) -> str:
        first = f.get("VDST", 0) if f.get("GLC", f.get("SC0", f.get("TH", 0) & 1)) else 0
        return f"VDST cannot be {first}" if n > 1 and (first % align or first + n > 256) else ""

    return check


def buffer_pair(align: int) -> Rule:
    """Index and offset together are a pair of VGPRs."""

    def check(f: Fields) -> str:
        pair = f["IDXEN"] and f["OFFEN"]
        return f"VADDR cannot be {f['VADDR']}" if pair and (f["VADDR"] % align or f["VADDR"] == 255) else ""

    return check


# ---------------------------------------------------------------- SDWA and DPP of CDNA

#: Conversions whose SDWA form selects a part of the source only.
WHOLE_RESULTS = frozenset({"V_CVT_F32_FP8", "V_CVT_F32_BF8", "V_CVT_PK_F32_FP8", "V_CVT_PK_F32_BF8"})
DPP_CONTROLS = (
    frozenset(range(0x100)) | {0x100 + n for n in range(1, 16)} | {0x110 + n for n in range(1, 16)}
    | {0x120 + n for n in range(1, 16)} | {0x130, 0x134, 0x138, 0x13C, 0x140, 0x141, 0x142, 0x143}
    | set(range(0x150, 0x160))
)  # fmt: skip
#: The only controls that instructions on pairs of registers take: row_newbcast.
WIDE_CONTROLS = frozenset(range(0x150, 0x160))


def takes_signs(row: InstRow, operand: OperandRow) -> bool:
    """Whether a source is a float, which has -x and |x|; SDWA extends the sign of the others."""
    if row.name.startswith(("V_LDEXP", "V_CMP_CLASS", "V_CMPX_CLASS")) and operand.role == "S1":
        return False  # the exponent, the mask of classes
    return operand.fmt.startswith(("f", "bf")) or row.name == "V_CNDMASK_B32"


def must_be_zero(names: tuple[str, ...]) -> Rule:
    def check(f: Fields) -> str:
        for name in names:
            if f.get(name):
                return f"{name} cannot be {f[name]}"
        return ""

    return check


def sources(row: InstRow) -> dict[str, OperandRow]:
    """First two sources by their index in field names."""
    return {o.role[1]: o for o in row.operands if o.role in ("S0", "S1")}


def sdwa_rule(row: InstRow) -> Rule:
    """Codes that exist; signs for floats, extension for integers; nothing in fields without use."""
    unused: list[str] = []
    present = sources(row)
    for i in ("0", "1"):
        operand = present.get(i)
        if operand is None:
            unused += [f"{x}{i}{y}" for x, y in (("S", ""), *(("SRC", s) for s in SOURCE_FIELDS))]
        else:
            unused += [f"SRC{i}_SEXT"] if takes_signs(row, operand) else [f"SRC{i}_NEG", f"SRC{i}_ABS"]
    zero = must_be_zero(tuple(unused))
    whole = row.name in WHOLE_RESULTS

    def check(f: Fields) -> str:
        if "SRC0_SEL" not in f:
            return ""
        for name in ("DST_SEL", "SRC0_SEL", "SRC1_SEL"):
            if f.get(name, 0) > 6:
                return f"{name} cannot be {f[name]}"
        if f.get("DST_UNUSED", 0) > 2 or (whole and (f["DST_SEL"], f["DST_UNUSED"]) != (6, 0)):
            return f"DST_SEL {f['DST_SEL']} and DST_UNUSED {f['DST_UNUSED']} are not possible"
        if f.get("SDST") and not f["SD"]:
            return "SDST without SD"
        return zero(f)

    return check


def sdwa_scalars(target: Arch) -> Rule:
    """Scalar sources are those of other encodings; a result is an aligned pair."""
    admitted = target.tables.types["src_nolit"]
    ends = target.tables.scalar_ends

    def check(f: Fields) -> str:
        if "SRC0_SEL" not in f:
            return ""
        for flag, field in (("S0", "VSRC0"), ("S1", "VSRC1")):
            if f.get(flag) and not admitted >> f[field] & 1:
                return f"{field} cannot be {f[field]}"
        pair = f.get("SDST", 0)
        if f.get("SD") and (pair % 2 or pair + 2 > min(end for end in ends if end > pair)):
            return f"SDST cannot be {pair}"
        return ""

    return check


SOURCE_FIELDS = ("_SEL", "_SEXT", "_NEG", "_ABS")


def dpp_rule(row: InstRow) -> Rule:
    """Controls that exist, and signs of floats only."""
    present = sources(row)
    signed = {i for i, o in present.items() if takes_signs(row, o)}
    zero = must_be_zero(tuple(f"SRC{i}_{x}" for i in ("0", "1") if i not in signed for x in ("NEG", "ABS")))
    wide = any(o.bits == 64 and o.role != "VCC" for o in row.operands if o.role in ("D0", "S0"))
    controls = WIDE_CONTROLS if wide else DPP_CONTROLS

    def check(f: Fields) -> str:
        if "DPP_CTRL" not in f:
            return ""
        return zero(f) if f["DPP_CTRL"] in controls else f"DPP_CTRL cannot be {f['DPP_CTRL']:#x}"

    return check


# ---------------------------------------------------------------- memory of CDNA


def scalar_offset(row: InstRow) -> Rule:
    """Which of OFFSET and SOFFSET count; the other is zero."""
    limit = 1 << 20 if row.name.startswith("S_BUFFER") else 1 << 21

    def check(f: Fields) -> str:
        if f["SOFFSET_EN"]:
            return "" if f["IMM"] and f["OFFSET"] < limit else "SOFFSET without an immediate"
        if f["SOFFSET"]:
            return "SOFFSET without SOFFSET_EN"
        if f["OFFSET"] >= (limit if f["IMM"] else 128):
            return f"OFFSET cannot be {f['OFFSET']:#x}"
        return ""

    return check


#: Untyped buffer loads that can write LDS instead of registers.
TO_LDS = re.compile(r"BUFFER_LOAD_((U|S)(BYTE|SHORT)|DWORD(X3|X4)?|FORMAT_X)$")


def has_lds_form(row: InstRow) -> bool:
    return row.base == "MUBUF" and TO_LDS.match(row.name) is not None


def load_to_lds(f: Fields) -> str:
    return "data register of a load to LDS" if f["LDS"] and (f["VDATA"] or f["ACC"]) else ""


def gfx9_rules(target: Arch, row: InstRow, encoding: EncodingRow) -> Iterator[Rule]:
    if row.base in ("VOP1", "VOP2", "VOPC"):
        if "sdwa" in row.forms:
            yield sdwa_rule(row)
            yield sdwa_scalars(target)
        if "dpp16" in row.forms:
            yield dpp_rule(row)
    elif row.base == "SMEM":
        if any(o.field == "SOFFSET" for o in row.operands):
            yield scalar_offset(row)
        yield must_be_zero(("NV",))
    elif row.base == "DS" and not row.name.startswith(GDS_ONLY):
        yield must_be_zero(("GDS",))
    elif row.base == "MUBUF":
        yield load_to_lds if has_lds_form(row) else must_be_zero(("LDS",))


def rules(target: Arch, row: InstRow, encoding: EncodingRow) -> tuple[Rule, ...]:
    """All rules of a row."""
    own = gfx9_rules(target, row, encoding) if target.dialect == "gfx9" else rdna_rules(target, row, encoding)
    out: list[Rule] = list(own)
    result = next((o for o in row.operands if o.role == "RETURN_DATA" and o.field == "VDST"), None)
    if result is not None and "_ATOMIC_" in row.name:
        out.append(returned(target.vgpr_align, result.bits))
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
