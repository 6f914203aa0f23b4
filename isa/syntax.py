"""Assembly syntax of every instruction, derived from its table row: mnemonic, operand slots in
text order, modifiers in printing order. Disassembler and assembler both work from this.

The vendor's tables say which operands there are; which order and which modifiers the text has is
the convention of LLVM's AMDGPU assembler, written down here once per encoding family.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from stuntgpu.isa import syntax_gfx9 as gfx9
from stuntgpu.isa import syntax_gfx12 as gfx12
from stuntgpu.isa.arch import Arch, InstRow, OperandRow, arch
from stuntgpu.isa.asm_names import DOUBLED
from stuntgpu.isa.decode_rules import WHOLE_RESULTS, takes_signs
from stuntgpu.isa.syntax_types import Modifier, Slot

#: Style of sources whose NEG_HI means absolute value.
MIX = "mix"
BITOP = "V_BITOP3"
MIX_NAMES = ("V_FMA_MIX", "V_MAD_MIX")
VECTOR_BASES = ("VOP1", "VOP2", "VOPC", "VOP3", "VOP3_SDST", "VOP3P")
SHORT_BASES = ("VOP1", "VOP2", "VOPC")
LONG_BASES = ("VOP3", "VOP3_SDST")


@dataclass(frozen=True, slots=True)
class Syntax:
    """How one encoding form of an instruction reads. `row` and `form` name what it encodes to."""

    row: InstRow
    form: str
    mnemonic: str
    slots: tuple[Slot, ...]
    modifiers: tuple[Modifier, ...]


def has_long_form(target: Arch, name: str) -> bool:
    return any(r.base in LONG_BASES for r in target.tables.by_name[name])


def has_short_form(target: Arch, name: str) -> bool:
    return any(r.base in SHORT_BASES for r in target.tables.by_name[name])


def mnemonic(target: Arch, row: InstRow, form: str) -> str:
    """Name with the suffix that tells encodings apart."""
    name = gfx9.SPELLING.get(row.name, row.name.lower())
    if row.base in SHORT_BASES:
        if form == "sdwa":
            return f"{name}_sdwa"
        if form.startswith("dpp"):
            return name if row.base == "VOPC" or not row.operands else f"{name}_dpp"
        return f"{name}_e32" if has_long_form(target, row.name) else name
    if row.base in (*LONG_BASES, "VOP3P") and form.startswith("dpp"):
        return f"{name}_e64_dpp"
    if row.base in LONG_BASES and has_short_form(target, row.name):
        return f"{name}_e64"
    return name


# ---------------------------------------------------------------- vector ALU


def half_mode(target: Arch, row: InstRow, operand: OperandRow) -> str:
    if operand.bits != 16 or not target.has_half_vgprs or row.name.startswith(MIX_NAMES):
        return ""
    return "bit7" if row.base in SHORT_BASES else "opsel" if row.base != "VOP3P" else ""


def source_index(field: str) -> int:
    return int(field[-1])


def has_signs(row: InstRow, operand: OperandRow) -> bool:
    """Whether a source of a long encoding has -x and |x|: floats do, integers do not."""
    return operand.fmt.startswith(("f", "bf")) or row.name.startswith(("V_CNDMASK", *MIX_NAMES))


def source_slot(target: Arch, row: InstRow, operand: OperandRow, form: str) -> Slot:
    """A source: `src` may be anything, `vgpr` is an 8-bit register field."""
    field, index = operand.field, source_index(operand.field)
    half = half_mode(target, row, operand)
    kind = "src"
    if form == "sdwa":
        field = "VSRC0" if field == "SRC0" else field
        style = "float" if takes_signs(row, operand) else "int"
        return Slot("sdwa", field, operand.bits, index=index, style=style, fmt=operand.fmt)
    if form.startswith("dpp") and field == "SRC0":
        field, kind = "VSRC0", "vgpr"
    elif field.startswith("VSRC"):
        kind = "vgpr"
    long = row.base in (*LONG_BASES, "VINTERP") or row.name.startswith(MIX_NAMES)
    long = long and not row.name.startswith(BITOP)
    signs = takes_signs(row, operand) if target.dialect == "gfx9" else has_signs(row, operand)
    moved = form == "dpp16" and index < 2 and row.base in SHORT_BASES and signs
    signed = moved or (long and has_signs(row, operand))
    style = MIX if row.name.startswith(MIX_NAMES) else operand.type
    fmt = constant_format(target, row, operand)
    acc = "always" if operand.type == "src_accvgpr" else ""
    shares = any(o.role == "SIMM32" for o in row.operands)  # its literal with the constant, all of it
    bits = max(32, operand.bits) if shares else operand.bits
    return Slot(kind if not acc else "vgpr", field, bits, half, index, signed and not acc, style, fmt, acc)


def constant_format(target: Arch, row: InstRow, operand: OperandRow) -> str:
    """Format that constants of a source are written in."""
    if row.name.startswith(MIX_NAMES):
        return "f16"
    doubled = row.name == "V_PK_FMAC_F16" and target.dialect != "gfx9"
    return DOUBLED if doubled else operand.fmt


def destination_slot(target: Arch, row: InstRow, operand: OperandRow) -> Slot:
    half = half_mode(target, row, operand)
    if operand.type == "vgpr":
        return Slot("vgpr", operand.field, operand.bits, half, 3)
    if operand.type == "accvgpr":
        return Slot("vgpr", operand.field, operand.bits, acc="always")
    return Slot("sreg", operand.field, mask_bits(target, operand))


def mask_bits(target: Arch, operand: OperandRow) -> int:
    """A lane mask takes a pair of scalar registers where waves have 64 lanes only."""
    return 64 if operand.bits == 1 and target.wave_sizes[0] == 64 else operand.bits


def is_literal_in_middle(name: str) -> bool:
    return "FMAMK" in name or "MADMK" in name


#: Conversions of 8-bit floats whose OP_SEL picks a byte, and where its bits stand, high bit first.
BYTE_SELECTS = {
    "V_CVT_F32_FP8": (0, 1), "V_CVT_F32_BF8": (0, 1),
    "V_CVT_SR_FP8_F32": (3, 2), "V_CVT_SR_BF8_F32": (3, 2),
}  # fmt: skip


def vector_slots(target: Arch, row: InstRow, form: str) -> tuple[Slot, ...]:
    slots: list[Slot] = []
    for operand in row.operands:
        if operand.role == "SIMM32":
            slots.append(Slot("literal", "LITERAL", operand.bits))
        elif operand.field == "":
            if operand.role == "D0" and form == "sdwa":
                slots.append(Slot("sdwa_mask", "SDST", 64))
            elif operand.role in ("VCC", "D0") and not row.base.startswith("VOP3"):
                slots.append(Slot("vcc"))
        elif operand.role == "EXEC":
            continue
        elif operand.role in ("D0", "D1") or (operand.is_written and operand.role == "VCC"):
            slots.append(destination_slot(target, row, operand))
        elif operand.role == "VCC":
            slots.append(Slot("sreg", operand.field, mask_bits(target, operand)))
        else:
            slots.append(source_slot(target, row, operand, form))
    if is_literal_in_middle(row.name):
        slots[-2:] = reversed(slots[-2:])
    return tuple(slots)


def n_sources(row: InstRow) -> int:
    return sum(o.role in ("S0", "S1", "S2") for o in row.operands)


def op_sel_count(row: InstRow, form: str) -> int:
    """Entries of op_sel: sources (the tied accumulator counts), then the destination if any."""
    n = n_sources(row)
    tied = any(o.role == "D0" and o.is_read and o.is_written for o in row.operands)
    if row.base == "VINTERP":
        return 4
    if row.name.startswith("V_CMPX"):
        return n
    if row.name.startswith("V_CMP_") and form.startswith("dpp"):
        return n
    accumulates = tied and n == 2 and "CVT" not in row.name
    return n + 1 + accumulates


DPP16_MODIFIERS = (Modifier("dpp_ctrl", "DPP_CTRL"), Modifier("hex", "ROW_MASK", "row_mask"),
                   Modifier("hex", "BANK_MASK", "bank_mask"), Modifier("one", "BOUND_CTRL", "bound_ctrl"),
                   Modifier("one", "FI", "fi"))  # fmt: skip
#: DPP of CDNA: more controls, and no fetching from inactive lanes.
DPP9_MODIFIERS = (Modifier("dpp_ctrl", "DPP_CTRL", "gfx9"), *DPP16_MODIFIERS[1:4])
DPP8_MODIFIERS = (Modifier("dpp8"), Modifier("dpp8_fi", "SRC0", "fi"))


#: Instructions with an integer result that take an output factor all the same.
OMOD_TO_INTEGERS = re.compile(r"V_CVT_(NORM_)?[IU](16|32)_F(16|32|64)|V_FREXP_EXP_I(16_F16|32_F64)")


def has_omod(row: InstRow) -> bool:
    """Whether mul:2 and its like go with a long instruction: those with a float result, products of pairs apart."""
    if row.name.startswith(("V_CMP", "V_DOT2_")):
        return False
    result = next((o.fmt for o in row.operands if o.role == "D0"), "")
    return result.startswith(("f", "bf")) or OMOD_TO_INTEGERS.fullmatch(row.name) is not None


def vector_modifiers(row: InstRow, form: str) -> tuple[Modifier, ...]:
    out: list[Modifier] = []
    if form == "sdwa":
        return sdwa_modifiers(row)
    if row.base == "VOP3P":
        out += packed_modifiers(row)
    elif row.name in BYTE_SELECTS and row.base == "VOP3":
        high, low = BYTE_SELECTS[row.name]
        out.append(Modifier("byte_sel", "OP_SEL", "byte_sel", count=high, default=low))
    elif row.base == "VOP3" and row.name.startswith("V_PERMLANE"):  # FI and BOUND_CTRL
        out.append(Modifier("list", "OP_SEL", "op_sel", 2))
    elif row.base == "VOP3" and row.name != "V_CNDMASK_B16":  # there the halves say it all
        out.append(Modifier("op_sel", "OP_SEL", "op_sel", op_sel_count(row, form)))
    if row.base.startswith("VOP3"):
        out.append(Modifier("flag", "CLAMP", "clamp"))
    if row.base in LONG_BASES and has_omod(row):
        out.append(Modifier("omod", "OMOD"))
    if form == "dpp8":
        out += DPP8_MODIFIERS
    elif form == "dpp16":
        out += DPP16_MODIFIERS
    return tuple(out)


#: VOP3 instructions of CDNA whose op_sel has an entry for a third source that they have not.
FOUR_OP_SELS = frozenset({
    "V_CVT_SR_FP8_F32", "V_CVT_SR_BF8_F32", "V_CVT_SCALEF32_PK_FP4_F16", "V_CVT_SCALEF32_PK_FP4_BF16",
})  # fmt: skip


def vector_modifiers9(row: InstRow, form: str) -> tuple[Modifier, ...]:
    if form == "dpp16":
        return DPP9_MODIFIERS
    if row.base != "VOP3":
        return vector_modifiers(row, form)
    if row.name.startswith(BITOP):  # its table stands where the signs and OMOD of others do
        halves = (Modifier("op_sel", "OP_SEL", "op_sel", 4),) if row.name.endswith("B16") else ()
        return (Modifier("bitop3", "OMOD", "bitop3"), *halves)
    if row.name.startswith("V_PERMLANE"):
        return (Modifier("op_sel_bit", "OP_SEL", "bound_ctrl", 1), Modifier("op_sel_bit", "OP_SEL", "fi", 0))
    if row.name in FOUR_OP_SELS:
        return (Modifier("op_sel", "OP_SEL", "op_sel", 4), Modifier("flag", "CLAMP", "clamp"), Modifier("omod", "OMOD"))
    return vector_modifiers(row, form)


def sdwa_modifiers(row: InstRow) -> tuple[Modifier, ...]:
    sources = tuple(Modifier("sdwa_sel", f"SRC{i}_SEL", f"src{i}_sel") for i in range(n_sources(row)) if i < 2)
    if row.base == "VOPC":
        return sources
    if row.name in WHOLE_RESULTS:
        return (Modifier("flag", "CLAMP", "clamp"), Modifier("omod", "OMOD"), *sources)
    return (
        Modifier("flag", "CLAMP", "clamp"), Modifier("omod", "OMOD"),
        Modifier("sdwa_sel", "DST_SEL", "dst_sel"), Modifier("sdwa_unused", "DST_UNUSED", "dst_unused"), *sources,
    )  # fmt: skip


def packed_modifiers(row: InstRow) -> list[Modifier]:
    n = n_sources(row)
    mix = row.name.startswith(MIX_NAMES)
    sparse = row.name.startswith("V_SWMMAC")
    out = [
        Modifier("number" if sparse else "list", "OP_SEL", "index_key" if sparse else "op_sel", n),
        Modifier("list", "OP_SEL_HI", "op_sel_hi", n, 0 if mix else 7),
    ]
    if not mix:
        out += [Modifier("list", "NEG", "neg_lo", n), Modifier("list", "NEG_HI", "neg_hi", n)]
    return out


def dual_slots(target: Arch, row: InstRow, form: str) -> tuple[Slot, ...]:
    slots: list[Slot] = []
    for operand in row.operands:
        if operand.role == "SIMM32":
            slots.append(Slot("literal", "LITERAL", 32))
        elif operand.role == "D0":
            slots.append(Slot("dual_y" if operand.field == "VDSTY" else "vgpr", operand.field, 32))
        elif operand.field.startswith("V"):
            slots.append(Slot("vgpr", operand.field, 32))
        elif operand.field:
            slots.append(Slot("src", operand.field, 32, style="src", fmt=operand.fmt))
    if is_literal_in_middle(row.name):
        slots[-2:] = reversed(slots[-2:])
    return tuple(slots)


# ---------------------------------------------------------------- scalar

#: Immediates that print in hexadecimal even when small.
HEX_NAMES = frozenset({
    "S_SET_INST_PREFETCH_DISTANCE", "S_ROUND_MODE", "S_TTRACEDATA_IMM", "S_CLAUSE", "S_WAIT_EVENT",
})  # fmt: skip
STYLES = frozenset({
    "label", "hwreg", "sendmsg", "sendmsg_rtn", "waitcnt", "waitcnt_depctr", "wait_alu", "delay", "version",
})  # fmt: skip


def immediate_slot(target: Arch, row: InstRow, operand: OperandRow) -> Slot:
    style = operand.type
    if row.name in gfx9.INDEX_MODES:
        return Slot("imm", operand.field, operand.bits, style="gpr_idx")
    if style == "label" and row.name.startswith(("S_CBRANCH", "S_BRANCH", "S_CALL", "S_SUBV")):
        return Slot("label", operand.field, 16)
    if style in STYLES:
        return Slot("imm", operand.field, 16, style=f"sendmsg {target.dialect}" if style == "sendmsg" else style)
    counter = row.name.startswith("S_WAIT_") and row.name.endswith("CNT")
    in_hex = row.name in HEX_NAMES or counter or (row.base == "SOPK" and style == "simm16")
    return Slot("imm", operand.field, 16, style="hex" if in_hex else "short")


def scalar_source(row: InstRow, operand: OperandRow) -> Slot:
    """Constants of one-operand instructions and comparisons are of 32 bits, whatever is read of them."""
    halves = operand.fmt == "f16" and row.base == "SOP2"
    bits, fmt = (operand.bits, operand.fmt) if halves or operand.fmt != "f16" else (32, "b32")
    return Slot("src", operand.field, bits if halves else max(32, bits), style=operand.type, fmt=fmt)


def scalar_slots(target: Arch, row: InstRow, form: str) -> tuple[Slot, ...]:
    slots = [Slot("optional", "SIMM16", 16)] if row.name == "S_ENDPGM" else []
    for operand in row.operands:
        if not operand.field:
            continue
        if operand.field == "SIMM16" or operand.type in ("sendmsg_rtn", "simm4"):
            slots.append(immediate_slot(target, row, operand))
        elif operand.field == "LITERAL":
            style = "" if operand.fmt == "f32" else "short"
            slots.append(Slot("literal", "LITERAL", 32, style=style))
        elif operand.field == "SDST":
            slots.append(Slot("sreg", "SDST", operand.bits))
        else:
            slots.append(scalar_source(row, operand))
    if row.name.startswith("S_SETREG_B32"):
        slots.reverse()
    if is_literal_in_middle(row.name):
        slots[-2:] = reversed(slots[-2:])
    return tuple(slots)


def memory_scalar_slots(target: Arch, row: InstRow, form: str) -> tuple[Slot, ...]:
    slots: list[Slot] = []
    for operand in row.operands:
        if operand.field == "SDATA":
            kind = "imm" if operand.type == "simm8" else "sreg"
            slots.append(Slot(kind, "SDATA", operand.bits, style="short"))
        elif operand.field == "SBASE":
            slots.append(Slot("spair", "SBASE", operand.bits))
        elif operand.field == "SOFFSET":
            slots.append(Slot("smem_offset", "SOFFSET"))
    return tuple(slots)


CACHE = (Modifier("flag", "GLC", "glc"), Modifier("flag", "SLC", "slc"), Modifier("flag", "DLC", "dlc"))


def no_modifiers(row: InstRow, form: str) -> tuple[Modifier, ...]:
    return ()


def memory_scalar_modifiers(row: InstRow, form: str) -> tuple[Modifier, ...]:
    if not row.operands:
        return ()
    return (Modifier("smem_offset", "OFFSET", "offset"), CACHE[0], CACHE[2])


# ---------------------------------------------------------------- vector memory


def lds_slots(target: Arch, row: InstRow, form: str) -> tuple[Slot, ...]:
    return tuple(Slot("vgpr", o.field, o.bits) for o in row.operands if o.field)


#: Instructions that are GDS only: the word is part of their text.
GDS_ONLY = ("DS_GWS_", "DS_ORDERED_COUNT", "DS_ADD_GS_REG", "DS_SUB_GS_REG")


def lds_modifiers(row: InstRow, form: str) -> tuple[Modifier, ...]:
    if row.name == "DS_NOP":
        return ()
    offsets: tuple[Modifier, ...] = (Modifier("ds_offset", "OFFSET0", "offset"),)
    if "2ADDR" in row.name:
        offsets = (Modifier("number", "OFFSET0", "offset0"), Modifier("number", "OFFSET1", "offset1"))
    elif row.name == "DS_SWIZZLE_B32":
        offsets = (Modifier("swizzle", "OFFSET0", "offset"),)
    return (*offsets, Modifier("flag", "GDS", "gds")) if row.base == "DS" else offsets


ADDRESS_KINDS = {
    "FLAT": "vgpr", "VFLAT": "vgpr", "FLAT_SCRATCH": "scratch_addr", "VSCRATCH": "scratch_addr",
}  # fmt: skip


def flat_slots(target: Arch, row: InstRow, form: str) -> tuple[Slot, ...]:
    slots: list[Slot] = []
    for operand in row.operands:
        if operand.role == "VADDR":
            slots.append(Slot(ADDRESS_KINDS.get(row.base, "global_addr"), operand.field, operand.bits))
        elif operand.role == "SADDR":
            slots.append(Slot("saddr", operand.field, operand.bits))
        elif operand.role == "RETURN_DATA" and "_ATOMIC_" in row.name:
            slots.append(Slot("returned", operand.field, operand.bits))
        elif operand.field:
            slots.append(Slot("vgpr", operand.field, operand.bits))
    return tuple(slots)


def flat_modifiers(row: InstRow, form: str) -> tuple[Modifier, ...]:
    return (Modifier("signed", "OFFSET", "offset", 13), *CACHE)


def buffer_slots(target: Arch, row: InstRow, form: str) -> tuple[Slot, ...]:
    slots: list[Slot] = []
    for operand in row.operands:
        if operand.field == "VDATA" and operand.role != "RETURN_DATA":
            slots.append(Slot("buffer_data", "VDATA", operand.bits))
        elif operand.field == "VADDR":
            slots.append(Slot("buffer_addr", "VADDR"))
        elif operand.field == "SRSRC":
            slots.append(Slot("spair", "SRSRC", operand.bits))
        elif operand.field == "SOFFSET":
            slots.append(Slot("src", "SOFFSET", 32, style="sreg_m0_inl"))
    return tuple(slots)


def buffer_modifiers(row: InstRow, form: str) -> tuple[Modifier, ...]:
    if not row.operands:
        return ()
    kind = (Modifier("format", "FORMAT", "format", default=1),) if row.base == "MTBUF" else ()
    return (
        *kind, Modifier("flag", "IDXEN", "idxen"), Modifier("flag", "OFFEN", "offen"),
        Modifier("number", "OFFSET", "offset"), *CACHE, Modifier("flag", "TFE", "tfe"),
    )  # fmt: skip


def image_slots(target: Arch, row: InstRow, form: str) -> tuple[Slot, ...]:
    slots = [Slot("image_data", "VDATA", style=row.name), Slot("image_addr", "VADDR", style=row.name)]
    bits = 128 if "_BVH" in row.name else 256
    slots.append(Slot("spair", "SRSRC", bits))
    if any(o.field == "SSAMP" for o in row.operands):
        slots.append(Slot("spair", "SSAMP", 128))
    return tuple(slots)


def image_modifiers(row: InstRow, form: str) -> tuple[Modifier, ...]:
    if "_BVH" in row.name:
        return (Modifier("flag", "A16", "a16"),)
    return (
        Modifier("dmask", "DMASK", "dmask"), Modifier("dim", "DIM", "dim"),
        Modifier("flag", "UNORM", "unorm"), *CACHE, Modifier("flag", "R128", "r128"),
        Modifier("flag", "A16", "a16"), Modifier("flag", "TFE", "tfe"), Modifier("flag", "LWE", "lwe"),
        Modifier("flag", "D16", "d16"),
    )  # fmt: skip


# ---------------------------------------------------------------- the rest


def export_slots(target: Arch, row: InstRow, form: str) -> tuple[Slot, ...]:
    return tuple(Slot("export", f"VSRC{i}", index=i) for i in range(4))


def export_modifiers(row: InstRow, form: str) -> tuple[Modifier, ...]:
    return (Modifier("flag", "DONE", "done"), Modifier("flag", "ROW_EN", "row_en"))


def direct_slots(target: Arch, row: InstRow, form: str) -> tuple[Slot, ...]:
    slots = [Slot("vgpr", "VDST")]
    if any(o.role == "ATTR" for o in row.operands):
        slots.append(Slot("attr", "ATTR"))
    return tuple(slots)


def direct_modifiers(row: InstRow, form: str) -> tuple[Modifier, ...]:
    return (Modifier("always", "WAIT_VDST", "wait_vdst"),)


def interp_modifiers(row: InstRow, form: str) -> tuple[Modifier, ...]:
    return (
        Modifier("flag", "CLAMP", "clamp"),
        Modifier("op_sel", "OP_SEL", "op_sel", 4),
        Modifier("always", "WAIT_EXP", "wait_exp"),
    )


SALU = (scalar_slots, no_modifiers)
VALU = (vector_slots, vector_modifiers)
FLAT = (flat_slots, flat_modifiers)
BUFFER = (buffer_slots, buffer_modifiers)
FLAT12 = (flat_slots, gfx12.flat_modifiers)
IMAGE12 = (gfx12.image_slots, gfx12.image_modifiers)
FAMILIES = {
    "SOP1": SALU, "SOP2": SALU, "SOPC": SALU, "SOPK": SALU, "SOPP": SALU,
    "SMEM": (memory_scalar_slots, memory_scalar_modifiers),
    "VOP1": VALU, "VOP2": VALU, "VOPC": VALU, "VOP3": VALU, "VOP3_SDST": VALU, "VOP3P": VALU,
    "VOPDX": (dual_slots, no_modifiers), "VOPDY": (dual_slots, no_modifiers),
    "VINTERP": (vector_slots, interp_modifiers), "LDSDIR": (direct_slots, direct_modifiers),
    "DS": (lds_slots, lds_modifiers), "FLAT": FLAT, "FLAT_GLOBAL": FLAT, "FLAT_SCRATCH": FLAT,
    "MUBUF": BUFFER, "MTBUF": BUFFER, "MIMG": (image_slots, image_modifiers),
    "EXP": (export_slots, export_modifiers), "VEXPORT": (export_slots, export_modifiers),
    "VDS": (lds_slots, lds_modifiers), "VDSDIR": (direct_slots, gfx12.direct_modifiers),
    "VFLAT": FLAT12, "VGLOBAL": FLAT12, "VSCRATCH": FLAT12,
    "VBUFFER": (gfx12.buffer_slots, gfx12.buffer_modifiers),
    "VIMAGE": IMAGE12, "VSAMPLE": IMAGE12,
}  # fmt: skip

VALU9 = dict.fromkeys((*SHORT_BASES, "VOP3"), (vector_slots, vector_modifiers9))
DIALECTS = {"gfx9": FAMILIES | VALU9 | gfx9.FAMILIES, "gfx11": FAMILIES, "gfx12": FAMILIES}


@cache
def syntax(name: str, base: str, opcode: int, form: str) -> Syntax:
    """Syntax of a row of architecture `name`; `base` is that of the table ("VOPDX" for a half)."""
    target = arch(name)
    row = target.tables.by_base[base, opcode]
    slots, modifiers = DIALECTS[target.dialect][base]
    if base == "SMEM" and target.tables.encodings[row.encoding].has("IOFFSET"):
        slots, modifiers = gfx12.smem_slots, gfx12.smem_modifiers
    return Syntax(
        row, form, mnemonic(target, row, form), slots(target, row, form), modifiers(row, form)
    )
