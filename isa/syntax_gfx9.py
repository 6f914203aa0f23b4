"""Assembly syntax of the encodings that CDNA has of its own: see `syntax` for the rest.

AccVGPRs are v or a by a bit of the encoding, cache policy is sc0, nt and sc1, scalar offsets have
enable bits, matrix instructions have formats, blocks and broadcasts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from stuntgpu.isa.arch import Arch, InstRow, OperandRow
from stuntgpu.isa.decode_rules import GDS_ONLY, has_lds_form, is_multi_format
from stuntgpu.isa.syntax_types import Modifier, Slot

#: Names of the vendor's table that assembly text spells otherwise.
SPELLING: Mapping[str, str] = {
    "V_MAD_MIX_F32": "v_fma_mix_f32", "V_MAD_MIXLO_F16": "v_fma_mixlo_f16", "V_MAD_MIXHI_F16": "v_fma_mixhi_f16",
    "V_ACCVGPR_READ": "v_accvgpr_read_b32", "V_ACCVGPR_WRITE": "v_accvgpr_write_b32",
}  # fmt: skip
POLICY = (Modifier("flag", "SC0", "sc0"), Modifier("flag", "NT", "nt"), Modifier("flag", "SC1", "sc1"))
OFFSET_BITS = 13
#: Instructions whose immediate says which operands are indexed.
INDEX_MODES = frozenset({"S_SET_GPR_IDX_ON", "S_SET_GPR_IDX_MODE"})
#: DS instructions with two offsets.
TWO_OFFSETS = re.compile(r"DS_(READ|WRITE|WRXCHG)2")
GDS = Modifier("flag", "GDS", "gds")


def data_slot(operand: OperandRow) -> Slot:
    """Data registers: AccVGPRs when the encoding's one bit says so."""
    either = "acc" in operand.type
    return Slot("vgpr", operand.field, operand.bits, acc="ACC" if either else "")


# ---------------------------------------------------------------- scalar memory


def smem_slots(target: Arch, row: InstRow, form: str) -> tuple[Slot, ...]:
    slots: list[Slot] = []
    for operand in row.operands:
        if operand.field == "SDATA" and operand.role != "RETURN_DATA":
            kind = "imm" if operand.type.startswith("simm") else "sreg"
            slots.append(Slot(kind, "SDATA", operand.bits, style="short"))
        elif operand.field == "SBASE":
            slots.append(Slot("spair", "SBASE", operand.bits))
        elif operand.field == "SOFFSET":
            slots.append(Slot("smem_enabled", "SOFFSET"))
    return tuple(slots)


def smem_modifiers(row: InstRow, form: str) -> tuple[Modifier, ...]:
    if not any(o.field == "SBASE" for o in row.operands):
        return ()
    return (Modifier("smem_enabled", "OFFSET", "offset"), Modifier("flag", "GLC", "glc"))


# ---------------------------------------------------------------- vector memory


def lds_slots(target: Arch, row: InstRow, form: str) -> tuple[Slot, ...]:
    return tuple(data_slot(o) for o in row.operands if o.field)


def lds_modifiers(row: InstRow, form: str) -> tuple[Modifier, ...]:
    if row.name == "DS_NOP":
        return ()
    if TWO_OFFSETS.match(row.name):
        return (Modifier("number", "OFFSET0", "offset0"), Modifier("number", "OFFSET1", "offset1"))
    kind = "swizzle" if row.name == "DS_SWIZZLE_B32" else "ds_offset"
    return (Modifier(kind, "OFFSET0", "offset"), *((GDS,) if row.name.startswith(GDS_ONLY) else ()))


ADDRESS_KINDS = {"FLAT": "vgpr", "FLAT_GLBL": "global_addr", "FLAT_SCRATCH": "scratch_addr"}


def flat_slots(target: Arch, row: InstRow, form: str) -> tuple[Slot, ...]:
    slots: list[Slot] = []
    for operand in row.operands:
        if operand.role == "VADDR":
            slots.append(Slot(ADDRESS_KINDS[row.base], operand.field, operand.bits))
        elif operand.role == "SADDR":
            slots.append(Slot("saddr", operand.field, operand.bits))
        elif operand.role == "RETURN_DATA" and "_ATOMIC_" in row.name:
            slots.append(Slot("returned", operand.field, operand.bits, acc="ACC"))
        elif operand.field:
            slots.append(data_slot(operand))
    return tuple(slots)


def flat_modifiers(row: InstRow, form: str) -> tuple[Modifier, ...]:
    plain = row.base == "FLAT"  # takes no negative offset
    kind = Modifier("number", "OFFSET", "offset") if plain else Modifier("signed", "OFFSET", "offset", OFFSET_BITS)
    return (kind, *POLICY)


def buffer_slots(target: Arch, row: InstRow, form: str) -> tuple[Slot, ...]:
    slots: list[Slot] = []
    for operand in row.operands:
        if operand.field == "VDATA" and operand.role != "RETURN_DATA":
            slots.append(Slot("lds_or_data", "VDATA", operand.bits, acc="ACC"))
        elif operand.field == "VADDR":
            slots.append(Slot("buffer_addr", "VADDR"))
        elif operand.field == "SRSRC":
            slots.append(Slot("spair", "SRSRC", operand.bits))
        elif operand.field == "SOFFSET":
            slots.append(Slot("src", "SOFFSET", 32, style="sreg_m0_inl"))
    return tuple(slots)


def buffer_modifiers(row: InstRow, form: str) -> tuple[Modifier, ...]:
    if not row.operands:
        return POLICY
    typed = (Modifier("split_format", "DFMT", "format"),) if row.base == "MTBUF" else ()
    lds = (Modifier("flag", "LDS", "lds"),) if has_lds_form(row) else ()
    return (
        *typed, Modifier("flag", "IDXEN", "idxen"), Modifier("flag", "OFFEN", "offen"),
        Modifier("number", "OFFSET", "offset"), *POLICY, *lds,
    )  # fmt: skip


# ---------------------------------------------------------------- matrix


def matrix_slots(target: Arch, row: InstRow, form: str) -> tuple[Slot, ...]:
    slots: list[Slot] = []
    for o in row.operands:
        index = int(o.field[-1]) if o.field.startswith("SRC") else 0
        if o.field == "VDST":
            slots.append(Slot("vgpr", "VDST", o.bits, acc="ACC_CD"))
        elif o.field in ("SRC0", "SRC1"):
            kind = "formatted" if is_multi_format(row) else "vgpr"
            slots.append(Slot(kind, o.field, o.bits, index=index, acc="ACC"))
        elif o.field == "SRC2" and o.type == "src_vgpr":  # positions of a sparse matrix
            slots.append(Slot("vgpr", "SRC2", o.bits))
        elif o.field:
            acc = "ACC_CD" if o.field == "SRC2" else ""
            slots.append(Slot("src", o.field, o.bits, style=o.type, fmt=o.fmt, acc=acc))
    return tuple(slots)


def matrix_modifiers(row: InstRow, form: str) -> tuple[Modifier, ...]:
    formats = (Modifier("number", "CBSZ", "cbsz"),)
    if row.base == "VOP3PX2":
        return (
            Modifier("list", "OP_SEL", "op_sel", 3), Modifier("list", "OP_SEL_HI", "op_sel_hi", 3, 7),
            *formats, Modifier("number", "BLGP", "blgp"),
        )  # fmt: skip
    if is_multi_format(row):
        return (*formats, Modifier("number", "BLGP", "blgp"))
    broadcast = (*formats, Modifier("number", "ABID", "abid"))
    if row.name.startswith("V_SMFMAC"):
        return broadcast
    if "_F64_" in row.name:  # there BLGP negates A, B and C
        return (*broadcast, Modifier("list", "BLGP", "neg", 3))
    return (*broadcast, Modifier("number", "BLGP", "blgp"))


FLAT = (flat_slots, flat_modifiers)
BUFFER = (buffer_slots, buffer_modifiers)
MATRIX = (matrix_slots, matrix_modifiers)
FAMILIES = {
    "SMEM": (smem_slots, smem_modifiers), "DS": (lds_slots, lds_modifiers),
    "FLAT": FLAT, "FLAT_GLBL": FLAT, "FLAT_SCRATCH": FLAT, "MUBUF": BUFFER, "MTBUF": BUFFER,
    "VOP3P_MFMA": MATRIX, "VOP3PX2": MATRIX,
}  # fmt: skip
