"""Decoded instructions and their operands: what decode makes, and what every executor consumes.

Units:   sizes in bytes, operand widths in bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

#: SDWA selection of a whole register.
WHOLE = 6


class Kind(Enum):
    """Where an operand lives."""

    VGPR = "vgpr"
    AGPR = "agpr"  # accumulation register of CDNA, numbered 0..255 as VGPRs are
    SGPR = "sgpr"  # any scalar register by operand number: s0.., VCC 106/107, TTMP, NULL, M0, EXEC
    CONST = "const"  # inline constant or literal; `value` holds its bits at the operand's width
    SPECIAL = "special"  # src_scc, src_vccz, src_execz, shared_base... by operand number in `reg`
    IMM = "imm"  # immediate field (SIMM16, offsets)


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand of a decoded instruction.

    role      the place of `ir.PLACES` it fills or takes: S0 S1 S2 D0 D1 VCC ADDR DATA DATA2 VDATA
              RETURN_DATA SDATA SIMM16 SIMM32, or for address arithmetic SADDR SBASE SOFFSET SRSRC VADDR.
    field     microcode field ("SRC0", "VDST", ...), "" for an implicit operand.
    reg       VGPR number (0..255) or scalar operand number (0..255 as encoded).
    bits      size of the operand: 16, 32, 64, 96, 128, 256, 512; 1 for a lane mask bit.
    fmt       element format of the XML, lower case without FMT_NUM_: "f32", "u32", "pk2_f16"->"f16x2", "m64", ...
    half      0, or 1 when a 16-bit operand is the high half of its register (OP_SEL, RDNA VGPR bit 7).
    select    SDWA: which part of its register, code of SELECTS ("BYTE_0".. "WORD_1", "DWORD" 6 is all); `sext`
              extends its sign. A destination: where the result goes, `unused` says what the rest becomes.
    half_hi   VOP3P only: which half feeds the high lane of the packed operation (OP_SEL_HI), else 0.
    neg, abs  modifiers (VOP3P: neg is NEG = low lane; neg_hi is NEG_HI = high lane).
    """

    role: str
    field: str
    kind: Kind
    reg: int = 0
    value: int = 0
    bits: int = 32
    fmt: str = "b32"
    half: int = 0
    half_hi: int = 0
    neg: bool = False
    neg_hi: bool = False
    abs: bool = False
    is_read: bool = False
    is_written: bool = False
    select: int = WHOLE
    sext: bool = False
    unused: int = 0


@dataclass(frozen=True)
class Inst:
    """One decoded instruction, immutable and comparable.

    arch       "gfx1100".
    name       the XML's instruction name, "V_ADD_F32".
    encoding   base encoding with its condition form: "ENC_VOP2", "VOP2_VOP_DPP16", "VOP3_INST_LITERAL", ...
    base       base encoding family without the form: "VOP2", "VOP3", "SOP1", "DS", "FLAT_GLOBAL", "VOPD".
    fields     microcode fields by name, raw (padding bits not applied).
    size       bytes, with literal / DPP dword.
    literal    the 32-bit literal or None.
    x, y       the two halves of a VOPD pair, else None. Each is an Inst of its own with shared literal.
    """

    arch: str
    name: str
    encoding: str
    base: str
    opcode: int
    fields: Mapping[str, int]
    size: int
    literal: int | None = None
    x: Inst | None = None
    y: Inst | None = None

    def __hash__(self) -> int:
        return hash((self.arch, self.name, self.encoding, tuple(self.fields.items()), self.literal, self.x, self.y))

    def __str__(self) -> str:
        return self.text

    def __bytes__(self) -> bytes:
        """Machine code. Raises ValueError for half of a pair, which has none of its own."""
        from stuntgpu.isa.decode import encode

        if self.base in ("VOPDX", "VOPDY"):
            raise ValueError(f"{self.name} is half of a pair; the pair has the bytes")
        return encode(self)

    def __and__(self, other: Inst) -> Inst:
        """Both in one dual instruction, where both have a dual form. Raises ValueError."""
        from stuntgpu.isa.build import dual

        return dual(self, other)

    @property
    def halves(self) -> tuple[Inst, ...]:
        """X and Y of a dual instruction, else itself alone."""
        return (self,) if self.x is None or self.y is None else (self.x, self.y)

    @property
    def text(self) -> str:
        """Assembly text in LLVM's syntax."""
        from stuntgpu.isa.disasm import disassemble

        return disassemble(self)

    @classmethod
    def from_text(cls, arch: str, text: str) -> Inst:
        """The instruction that one line of assembly text says. Raises AsmError."""
        from stuntgpu.isa.asm import assemble_one
        from stuntgpu.isa.decode import decode

        return decode(arch, assemble_one(arch, text))

    @classmethod
    def from_bytes(cls, arch: str, code: bytes) -> Inst:
        """The instruction at the start of `code`. Raises DecodeError."""
        from stuntgpu.isa.decode import decode

        return decode(arch, code)


def made(common: Mapping[str, object], fields: Mapping[str, int]) -> Inst:
    """An `Inst` of attributes that all of one form have (`common`) and its own fields. Decoders make
    millions of them, and this costs a third of what the constructor does."""
    inst = object.__new__(Inst)
    vars(inst).update(common, fields=fields, literal=fields.get("LITERAL"))
    return inst
