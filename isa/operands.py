"""The operands of a decoded instruction, resolved: which register, which half, which constant.

Everything an executor needs to fetch and store is decided here once, from the table row of the
instruction and its microcode fields; no executor looks at source numbers or OP_SEL again.

Units:   widths in bits.
Errors:  SpecError when a row names a field its encoding does not have.
Source:  the machine-readable ISA's operand lists; the chapters on operands of the ISA manuals for
         inline constants, halves of 16-bit registers and VOPD's VDSTY.
"""

from __future__ import annotations

from functools import lru_cache

from stuntgpu.isa.arch import Arch, OperandRow, arch
from stuntgpu.isa.decode import VGPR_TYPES
from stuntgpu.isa.decode_rules import format_registers
from stuntgpu.isa.errors import SpecError
from stuntgpu.isa.inst import WHOLE, Inst, Kind, Operand

LITERAL = 255
FIRST_VGPR = 256
#: Operand numbers that are values of the wave or the device, not registers: apertures, VCCZ, EXECZ, SCC.
SPECIALS = range(235, 254)
#: 240..248: the inline float constants, as bits of each format.
FLOATS = {
    16: (0x3800, 0xB800, 0x3C00, 0xBC00, 0x4000, 0xC000, 0x4400, 0xC400, 0x3118),
    32: (0x3F000000, 0xBF000000, 0x3F800000, 0xBF800000, 0x40000000, 0xC0000000, 0x40800000, 0xC0800000,
         0x3E22F983),
    64: (0x3FE0000000000000, 0xBFE0000000000000, 0x3FF0000000000000, 0xBFF0000000000000, 0x4000000000000000,
         0xC000000000000000, 0x4010000000000000, 0xC010000000000000, 0x3FC45F306DC9C882),
}  # fmt: skip

#: Fixed operands that are registers or bits of the wave; memory and PC are not operands to fetch.
NOT_FETCHED = frozenset({"MEM", "LDS", "PC"})
#: Encodings whose 8-bit (and 9-bit) VGPR fields hold, for a 16-bit operand, a half in bit 7.
HALVES_BY_BIT_7 = frozenset({"VOP1", "VOP2", "VOPC"})
SCALAR_TYPES = frozenset({"sreg", "sdst", "sdst_null", "exec", "vcc", "sdst_exec", "sdst_m0"})
IMMEDIATE_FIELDS = frozenset({"SIMM16", "ATTR", "TGT", "TARGET"})
#: Types of immediates that stand in fields of registers.
IMMEDIATE_TYPES = ("sendmsg_rtn", "simm")


def is_float(fmt: str) -> bool:
    return fmt.startswith(("f", "bf")) or "_f" in fmt


def element(fmt: str) -> str:
    """Element of a packed or matrix format: "f16x2" -> "f16", "wmma_dc_f32" -> "f32"."""
    return fmt.rpartition("_")[2].partition("x")[0]


def inline_integer(number: int) -> int | None:
    """128..208: 0..64 and -1..-16; None: another number."""
    if 128 <= number <= 192:
        return number - 128
    return 192 - number if 193 <= number <= 208 else None


def inline_float(number: int, fmt: str, bits: int) -> int:
    """Float constants in the operand's own format; integers of 16 and 32 bits see the f32 pattern."""
    name = element(fmt)
    if name == "bf16":
        return FLOATS[32][number - 240] >> 16
    width = 64 if name == "f64" or (bits == 64 and "x" not in fmt) else 16 if name == "f16" else 32
    return FLOATS[width][number - 240]


def literal_value(literal: int, fmt: str, bits: int) -> int:
    """A 32-bit literal at the operand's width: f64 takes it as the high word, i64 extends its sign."""
    if bits != 64:
        return literal & ((1 << min(bits, 32)) - 1)
    if fmt == "f64":
        return literal << 32
    return literal | 0xFFFF_FFFF_0000_0000 if fmt == "i64" and literal >> 31 else literal


def constant(inst: Inst, number: int, fmt: str, bits: int) -> int | None:
    """Bits of an inline constant or literal, None when `number` is neither. A pair of 32-bit values
    takes the constant twice."""
    if bits == 64 and fmt in ("f32x2", "b32x2"):
        one = constant(inst, number, fmt.removesuffix("x2"), 32)
        return None if one is None else one << 32 | one
    if number == LITERAL:
        if inst.literal is None:
            raise SpecError(f"{inst.name}: source 255 without a literal")
        return literal_value(inst.literal, fmt, bits)
    integer = inline_integer(number)
    if integer is not None:
        return integer & ((1 << bits) - 1)
    if 240 <= number <= 248:
        return inline_float(number, fmt, bits) & ((1 << bits) - 1)
    return None


class _Reader:
    """Resolves the operand rows of one instruction."""

    def __init__(self, inst: Inst, target: Arch) -> None:
        self.inst, self.arch = inst, target
        self.fields = inst.fields
        self.dpp = "VSRC0" in inst.fields and "SRC0" in inst.fields
        self.sdwa = "SRC0_SEL" in inst.fields
        self.is_multi_format = inst.name.endswith("_F8F6F4")

    # ---- where

    def number(self, row: OperandRow) -> tuple[int, bool]:
        """(register or source number, whether it is a vector register)."""
        if self.sdwa and row.field in ("SRC0", "VSRC1"):
            i = row.field[-1]
            return self.fields[f"VSRC{i}"], not self.fields[f"S{i}"]
        if self.dpp and row.field == "SRC0":
            return self.fields["VSRC0"], True
        if row.field not in self.fields:
            raise SpecError(f"{self.inst.name}: no field {row.field} in {self.inst.encoding}")
        encoding = self.arch.tables.encodings[self.inst.encoding]
        field = encoding.field(row.field)
        value = self.fields[row.field] << field.padding
        if row.field == "VDSTY":  # the low bit is the other half's, inverted
            return value << 1 | (~self.fields["VDSTX"] & 1), True
        if self.inst.base == "VINTERP":
            return value % FIRST_VGPR, True
        if field.bits == 9:
            return (value - FIRST_VGPR, True) if value >= FIRST_VGPR else (value, False)
        return value, row.type in VGPR_TYPES and field.bits == 8

    def vector_kind(self, row: OperandRow) -> Kind:
        """VGPR, or AccVGPR where the operand's type or a bit of the encoding says so."""
        if row.type in ("accvgpr", "src_accvgpr"):
            return Kind.AGPR
        if "accvgpr" not in row.type:
            return Kind.VGPR
        f = self.fields
        if "ACC_CD" not in f:
            return Kind.AGPR if f["ACC"] else Kind.VGPR
        is_acc = f["ACC"] >> int(row.field[-1]) & 1 if row.field in ("SRC0", "SRC1") else f["ACC_CD"]
        return Kind.AGPR if is_acc else Kind.VGPR

    def size(self, row: OperandRow) -> int:
        """Bits of the operand; those of the F8F6F4 matrix instructions depend on the format."""
        if row.field in ("SRC0", "SRC1") and self.is_multi_format:
            return 32 * format_registers(self.fields["BLGP" if row.field == "SRC1" else "CBSZ"])
        return row.bits

    def fixed(self, row: OperandRow) -> Operand:
        """An operand without a field."""
        a = self.arch
        registers = {"VCC": a.vcc, "D0": a.vcc, "EXEC": a.exec, "M0": a.m0}
        if row.role == "D0" and self.fields.get("SD"):  # an SDWA comparison that names its mask
            return self.make(row, Kind.SGPR, self.fields["SDST"])
        if row.role == "SCC":
            return self.make(row, Kind.SPECIAL, a.scc)
        return self.make(row, Kind.SGPR, registers[row.role])

    def make(self, row: OperandRow, kind: Kind, reg: int, value: int = 0) -> Operand:
        return Operand(
            row.role, row.field, kind, reg, value, self.size(row), row.fmt,
            is_read=row.is_read, is_written=row.is_written,
        )  # fmt: skip

    # ---- how

    def index(self, row: OperandRow) -> int:
        """Which bit of NEG, ABS, OP_SEL speaks of the operand; 3 is the destination."""
        return 3 if row.role == "D0" else int(row.field[-1])

    def modified(self, row: OperandRow, kind: Kind, reg: int, value: int) -> Operand:
        i = self.index(row)
        f, bit = self.fields, 1 << i
        source = i < 3 and is_float_or_raw(row.fmt) and not self.inst.name.startswith("V_BITOP3")
        neg = bool(self.negations & bit) or bool(f.get(f"SRC{i}_NEG", 0))
        absolute = bool(f.get("ABS", 0) & bit) or bool(f.get(f"SRC{i}_ABS", 0))
        half, half_hi = 0, 0
        if self.inst.base == "VOP3P":
            half, half_hi = (f["OP_SEL"] >> i & 1, f["OP_SEL_HI"] >> i & 1) if i < 3 else (self.writes_high, 0)
        elif row.bits == 16 and kind is not Kind.CONST:
            half, reg = self.half(i, kind, reg)
        return Operand(
            row.role, row.field, kind, reg, value, self.size(row), row.fmt, half, half_hi,
            neg and source, bool(f.get("NEG_HI", 0) & bit) and source, absolute and source,
            row.is_read, row.is_written, *self.selection(i),
        )  # fmt: skip

    @property
    def negations(self) -> int:
        """NEG, which the F64 matrix instructions have in place of BLGP."""
        is_f64 = self.inst.base == "VOP3P_MFMA" and "_F64_" in self.inst.name
        return self.fields.get("BLGP" if is_f64 else "NEG", 0)

    @property
    def writes_high(self) -> int:
        """1 for the VOP3P instructions whose 16-bit result goes to the high half."""
        return int(self.inst.name.endswith("_MIXHI_F16"))

    def selection(self, i: int) -> tuple[int, bool, int]:
        """(select, sext, unused) of SDWA for source `i`, 3: the destination."""
        f = self.fields
        if not self.sdwa or i == 2:
            return WHOLE, False, 0
        if i == 3:
            return f.get("DST_SEL", WHOLE), False, f.get("DST_UNUSED", 0)
        return f[f"SRC{i}_SEL"], bool(f[f"SRC{i}_SEXT"]), 0

    def half(self, i: int, kind: Kind, reg: int) -> tuple[int, int]:
        """(half, register) of a 16-bit operand."""
        if "OP_SEL" in self.fields:
            return self.fields["OP_SEL"] >> i & 1, reg
        if kind is Kind.VGPR and self.inst.base in HALVES_BY_BIT_7 and self.arch.has_half_vgprs:
            return reg >> 7, reg & 127
        return 0, reg

    def read(self, row: OperandRow) -> Operand:
        if not row.field:
            return self.fixed(row)
        if row.field in IMMEDIATE_FIELDS or (row.type.startswith(IMMEDIATE_TYPES) and row.field != "LITERAL"):
            return self.make(row, Kind.IMM, 0, self.fields[row.field])
        if row.field == "LITERAL":
            literal = 0 if self.inst.literal is None else self.inst.literal
            return self.make(row, Kind.CONST, LITERAL, literal & ((1 << row.bits) - 1))
        number, is_vgpr = self.number(row)
        kind, value = self.vector_kind(row), 0
        if not is_vgpr:
            found = None if row.type in SCALAR_TYPES else constant(self.inst, number, row.fmt, row.bits)
            kind, value = (Kind.SGPR, 0) if found is None else (Kind.CONST, found)
            if found is None and number in SPECIALS:
                kind = Kind.SPECIAL
        vector = self.inst.base.startswith(("VOP1", "VOP2", "VOP3", "VOPC", "VINTERP"))
        if vector and row.role in ("S0", "S1", "S2", "D0") and row.bits > 1:
            return self.modified(row, kind, number, value)
        return self.make(row, kind, number, value)


def is_float_or_raw(fmt: str) -> bool:
    """Formats that NEG and ABS act on: floats, and plain bits (V_CNDMASK, V_MOV of a float)."""
    return is_float(fmt) or fmt.startswith("b")


@lru_cache(maxsize=16384)
def operands(inst: Inst) -> tuple[Operand, ...]:
    """The operands of `inst`, destinations as the machine-readable ISA orders them.

    A VOPD pair has the operands of both halves; ask each half for its own.
    """
    if inst.x is not None and inst.y is not None:
        return operands(inst.x) + operands(inst.y)
    target = arch(inst.arch)
    row = target.tables.by_base.get((inst.base, inst.opcode))
    if row is None:
        raise SpecError(f"{inst.arch}: no row for {inst.base} opcode {inst.opcode}")
    reader = _Reader(inst, target)
    return tuple(reader.read(r) for r in row.operands if r.role not in NOT_FETCHED)
