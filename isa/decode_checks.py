"""What the fields of an instruction may hold: register numbers, constants, alignment.

Wider than the vendor's tables where tools and hardware are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from stuntgpu.isa.arch import Arch, EncodingRow, FieldRow, InstRow, OperandRow, Tables
from stuntgpu.isa.decode_rules import is_multi_format
from stuntgpu.isa.errata.encodings import LDS_DIRECT, UNALIGNED, required

#: Operand sizes of lane masks, and of the smallest descriptors: those are no constants.
MASK_BITS, DESCRIPTOR_BITS = 1, 128
LITERAL = 255
DPP16 = 250
DPP8, DPP8_FI = 233, 234
SDWA = 249
#: SRC0 number -> form of the encoding it announces.
FORM_OF_CODE = {LITERAL: "lit", DPP16: "dpp16", DPP8: "dpp8", DPP8_FI: "dpp8", SDWA: "sdwa"}
SOURCE_VGPR = 256  # first VGPR in a 9-bit source field


@dataclass(frozen=True, slots=True)
class Check:
    """What an operand field may hold: bit `n` of `allowed` says number n may; registers of more
    than 32 bits start at a multiple of `align`. `is_source`: constants and forms have numbers too."""

    field: str
    allowed: int
    align: int
    is_source: bool


#: Numbers of inline constants: integers, then floats.
CONSTANTS = ((1 << 209) - (1 << 128)) | ((1 << 249) - (1 << 240))


#: Operand types that are scalar registers; the XML lists them more narrowly than decoders take them.
SCALAR_TYPES = (
    "sreg", "sdst", "exec", "vcc", "smem_offset", "sdst_null", "sreg_m0_inl", "ssrc_lanesel",
    "ssrc_nolit", "sreg_novcc",
)  # fmt: skip
#: Operand types in which 255 may announce a literal.
LITERAL_TYPES = ("src", "src_nolds", "ssrc", "sreg_literal")
#: Operand types that are vector registers, AccVGPRs included where encodings have a bit for them.
VGPR_TYPES = (
    "vgpr", "src_vgpr", "vgpr_or_lds", "vgpr_or_accvgpr", "accvgpr", "src_accvgpr", "src_vgpr_or_accvgpr",
)  # fmt: skip
#: Operand types whose numbers the table lists exactly.
LISTED_TYPES = ("src_vgpr_or_inline", "src_vgpr_or_accvgpr_or_const", "src_nolit", "src_simple")


def admitted(target: Arch, row: InstRow, operand: OperandRow, field: FieldRow) -> int:
    """Numbers the field may hold, as a bit set; 0 when any will do.

    Wider than the XML where tools and hardware are: any scalar register goes where one does, and
    where inline integers go, so do the other constants.
    """
    tables = target.tables
    wide = field.bits == 9
    vgprs = ((1 << 256) - 1) << SOURCE_VGPR
    kind = operand.type
    if kind in VGPR_TYPES:
        return vgprs if wide else 0
    if kind == "src_vgpr_or_inline":  # NULL is the constant 0 of a matrix instruction
        return tables.types[kind] | 1 << target.null
    if kind == "src_vgpr_or_accvgpr_or_const" and operand.bits == 64:  # like any source of 64 bits
        return tables.types[kind] | tables.types["src_nolit"] & -1 << 235
    if kind in LISTED_TYPES:
        return tables.types[kind]
    if kind == "ssrc_barrier_id":
        return tables.types[kind] | CONSTANTS
    if row.base.startswith("VOPD"):
        return tables.types[kind] | 1 << LDS_DIRECT
    if kind in LITERAL_TYPES:  # a register or literal takes inline constants as well
        return tables.types["ssrc" if kind == "sreg_literal" else kind]
    if field.bits > 7 and kind in SCALAR_TYPES:
        numbers = tables.types["ssrc"] & ~(1 << LITERAL)
        only_registers = operand.is_written or operand.bits == MASK_BITS or operand.bits >= DESCRIPTOR_BITS
        return numbers & ~CONSTANTS if only_registers else numbers
    return 0


def varies(row: InstRow, operand: OperandRow, encoding: EncodingRow) -> bool:
    """Whether other fields decide how many registers the operand has."""
    if operand.field == "VDATA":
        return encoding.has("TFE") or encoding.has("DMASK")
    if operand.role == "RETURN_DATA" and "_ATOMIC_" in row.name:
        return True
    return operand.field in ("VADDR", "ADDR") or (is_multi_format(row) and operand.field in ("SRC0", "SRC1"))


def mask_bits(target: Arch, operand: OperandRow) -> OperandRow:
    """A lane mask takes a pair of scalar registers where waves have 64 lanes only."""
    pair = operand.bits == MASK_BITS and operand.type in SCALAR_TYPES and target.wave_sizes[0] == 64
    return replace(operand, bits=64) if pair else operand


def overrunning(tables: Tables, operand: OperandRow, field: FieldRow, align: int) -> int:
    """Register numbers at which an operand of several registers would run out of its file, or that
    are not a multiple of `align` in the vector file."""
    n = (operand.bits + 31) // 32
    if n < 2:
        return 0
    odd = sum(1 << i for i in range(256) if i % align)
    if operand.type in VGPR_TYPES and field.bits <= 8:
        return ((1 << 256) - 1) & -(1 << 257 - n) | odd
    out = ((1 << n - 1) - 1) << 513 - n | odd << SOURCE_VGPR  # the last VGPRs of a source field
    for number in range(0, 128, 1 << field.padding):
        room = next((end - number for end in tables.scalar_ends if number < end), 1)
        if room < n and tables.codes.get(number) != "NULL":
            out |= 1 << (number >> field.padding)
    return out


def alignment(operand: OperandRow) -> int:
    if operand.bits <= 32 or operand.type not in (*SCALAR_TYPES, *LITERAL_TYPES, *LISTED_TYPES):
        return 1
    return 2 if operand.bits == 64 else 4


def make_checks(target: Arch, row: InstRow, encoding: EncodingRow) -> tuple[Check, ...]:
    tables = target.tables
    checks = [
        Check(field, 1 << value, 1, False) for field, value in required(target.name, row.base).items()
    ]
    for operand in row.operands:
        if not operand.field or operand.field in ("SIMM16", "LITERAL"):
            continue
        field = encoding.field(operand.field)
        allowed, operand = admitted(target, row, operand, field), mask_bits(target, operand)
        even = 1 if row.name in UNALIGNED else target.vgpr_align
        overrun = 0 if varies(row, operand, encoding) else overrunning(tables, operand, field, even)
        if operand.field == "SADDR":
            overrun &= ~(1 << target.no_saddr)
        align = max(1, alignment(operand) >> field.padding)
        if operand.field == "SADDR" and align > 1:
            every = sum(1 << n for n in range(0, 1 << field.bits, align))
            allowed, align = (allowed or every) & every | 1 << target.no_saddr, 1
        if overrun:
            allowed = (allowed or (1 << (1 << field.bits)) - 1) & ~overrun
        if allowed or align > 1:
            every = (1 << (1 << field.bits)) - 1
            is_source = operand.type in LITERAL_TYPES
            checks.append(Check(operand.field, allowed or every, align, is_source))
    return tuple(checks)


def literal_fields(row: InstRow) -> frozenset[str]:
    """Source fields in which 255 stands for a literal that follows."""
    fields = [o for o in row.operands if o.field and o.type in LITERAL_TYPES]
    allowed = set()
    for o in fields:
        index = o.field.removeprefix("V")[-1]
        if row.base.startswith("VOPD") or {"lit", f"lit_{index}"} & row.forms or row.encoding.endswith("INST_LITERAL"):
            allowed.add(o.field)
    return frozenset(allowed)
