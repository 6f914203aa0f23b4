"""Where the places of an instruction are: operands as register ranges.

`Finder` turns a place name ("S0", "VCC", "ADDR") into `Access` values for one instruction: which file,
which registers, which bits of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stuntgpu.isa.arch import Arch
from stuntgpu.isa.asm_names import scalar_name
from stuntgpu.isa.effects import Access, File, Lanes, Use
from stuntgpu.isa.errata.encodings import LDS_DIRECT
from stuntgpu.isa.inst import WHOLE, Inst, Kind, Operand
from stuntgpu.isa.memory_fields import MemoryFields, memory_fields, segment
from stuntgpu.isa.operands import operands
from stuntgpu.isa.semantics import RAW_MODIFIERS, keeps_upper_half

M32 = 0xFFFF_FFFF
N_SGPRS, N_VGPRS = 128, 256
VCCZ, EXECZ = 251, 252
VECTOR_KINDS = {Kind.VGPR: File.VGPR, Kind.AGPR: File.AGPR}
#: Sources of which SDWA selects a part.
SELECTED = ("S0", "S1")
#: DST_UNUSED of SDWA that keeps the rest of the register.
PRESERVE = 2


@dataclass(frozen=True, slots=True)
class Special:
    """Numbers of hardware registers that other names alias, one row a generation.

    views      registers that show SCC, EXECZ and VCCZ.
    privilege  the register with PRIV.
    scratch    FLAT_SCRATCH: hardware register numbers.
    mode       MODE.
    shared     formats of matrix operands that all lanes of a wave share: waves of 64 lanes have half of the registers.
    """

    views: tuple[int, ...]
    privilege: int
    scratch: tuple[int, int] | None
    mode: int = 1
    shared: tuple[str, ...] = ()


#: By `Arch.dialect`. CDNA keeps FLAT_SCRATCH in scalar registers that the tables name.
SPECIALS = {
    "gfx9": Special(views=(2,), privilege=2, scratch=None),
    "gfx11": Special(views=(2,), privilege=2, scratch=(20, 21), shared=("wmma_dc_",)),
    "gfx12": Special(views=(2, 4), privilege=4, scratch=(20, 21), shared=("wmma_dc_", "wmma_ab_")),
}


def spread(bits: int, count: int) -> int:
    """Bits of `count` registers, whole ones."""
    return (1 << 32 * count) - 1 if bits else 0


class Finder:
    """Registers of one instruction, for one wave size."""

    def __init__(self, inst: Inst, target: Arch, wave_lanes: int) -> None:
        self.inst, self.arch, self.mask_registers = inst, target, wave_lanes // 32
        self.operands = operands(inst)
        self.special = SPECIALS[target.dialect]
        self.memory: MemoryFields | None = memory_fields(inst) if segment(inst) and self.operands else None

    # ---- making

    def scalar(self, reg: int, count: int, *, use: Use = Use.VALUE, role: str = "", field: str = "",
               bits: int | None = None, certain: bool = True) -> Iterator[Access]:
        """Scalar registers by operand number; NULL is none, and numbers past the registers show others."""
        if reg == self.arch.null or count <= 0:
            return
        if reg >= N_SGPRS:
            yield from self.shown(reg, use, role, field, certain)
            return
        count = min(count, N_SGPRS - reg)
        bits = (1 << 32 * count) - 1 if bits is None else bits
        yield Access(File.SGPR, reg, count, bits, use, Lanes.UNIFORM, role, field, certain,
                     name=scalar_name(self.arch, reg, count))

    def shown(self, reg: int, use: Use, role: str, field: str, certain: bool) -> Iterator[Access]:
        """Operand numbers that are views of registers: VCCZ, EXECZ, SCC, LDS_DIRECT's address."""
        a, n = self.arch, self.mask_registers
        if reg == a.scc:
            yield self.scc(use, role, field, certain)
        elif reg in (VCCZ, EXECZ):
            mask = a.vcc if reg == VCCZ else a.exec
            yield from self.scalar(mask, n, use=use, role=role, field=field, certain=certain)
        elif reg == LDS_DIRECT:
            yield from self.scalar(a.m0, 1, use=Use.ADDRESS, role=role, field=field, certain=certain)

    def scc(self, use: Use = Use.VALUE, role: str = "SCC", field: str = "", certain: bool = True) -> Access:
        return Access(File.SCC, 0, 1, 1, use, Lanes.UNIFORM, role, field, certain, name="scc")

    def pc(self, certain: bool = True) -> Access:
        return Access(File.PC, 0, 2, (1 << 64) - 1, Use.VALUE, Lanes.UNIFORM, "PC", "", certain, name="pc")

    def mask(self, reg: int, role: str, *, use: Use = Use.VALUE, field: str = "", certain: bool = True) -> Iterator[Access]:
        """A lane mask: one register, or two in waves of 64 lanes."""
        yield from self.scalar(reg, self.mask_registers, use=use, role=role, field=field, certain=certain)

    def hwreg(self, number: int, certain: bool = True, *, count: int = 1, dynamic: bool = False) -> Access:
        names = next((v for f, v in self.arch.tables.parts["hwreg"] if f.name == "ID"), {})
        name = next((n for n, v in names.items() if v == number), f"hwreg({number})").lower()
        name = name.removeprefix("hw_reg_").removeprefix("wave_")
        return Access(File.HWREG, number, count, spread(1, count), Use.VALUE, Lanes.UNIFORM, "", "", certain, dynamic,
                      name="any hwreg" if dynamic else name)

    def vector(self, file: File, reg: int, count: int, bits: int, lanes: Lanes, *, use: Use = Use.VALUE, role: str = "",
               field: str = "", certain: bool = True) -> Access:
        count = min(count, N_VGPRS - reg)
        letter = file.value
        name = f"{letter}{reg}" if count == 1 else f"{letter}[{reg}:{reg + count - 1}]"
        if count == 1 and bits in (0xFFFF, 0xFFFF_0000):
            name += ".l" if bits == 0xFFFF else ".h"
        return Access(file, reg, count, bits & ((1 << 32 * count) - 1), use, lanes, role, field, certain, name=name)

    # ---- operands

    def find(self, role: str, written: bool = False) -> Operand | None:
        """The operand of a role; when several have it, the one that is read (written)."""
        found = [o for o in self.operands if o.role == role]
        for o in found:
            if o.is_written if written else o.is_read:
                return o
        return None if written or not found else found[0]

    def source(self, op: Operand, lanes: Lanes, *, use: Use = Use.VALUE, certain: bool = True,
               bits: int | None = None) -> Iterator[Access]:
        """What reading an operand reads."""
        count = max(1, -(-op.bits // 32))
        file = VECTOR_KINDS.get(op.kind)
        if file is not None:
            part = self.part(op) if bits is None else bits
            yield self.vector(file, op.reg, count, part, lanes, use=use, role=op.role, field=op.field, certain=certain)
        elif op.kind in (Kind.SGPR, Kind.SPECIAL):
            if op.bits == 1 and op.role != "SCC":
                count = self.mask_registers
            narrow = (0xFFFF << 16 * op.half) if op.bits == 16 else None
            if op.select != WHOLE and op.role in SELECTED:
                narrow = selected(op.select)
            yield from self.scalar(op.reg, count, use=use, role=op.role, field=op.field, bits=narrow, certain=certain)

    def part(self, op: Operand) -> int:
        """Bits of its registers that a vector operand is."""
        if self.inst.name in RAW_MODIFIERS:
            return (1 << max(32, op.bits)) - 1
        if op.select != WHOLE and op.role in SELECTED:
            return selected(op.select)
        if self.inst.base == "VOP3P" and op.role != "D0":
            pair = (op.bits == 32 and op.fmt.endswith("x2")) or op.fmt == "f32x2"
            if pair:
                half = (1 << op.bits // 2) - 1
                return half << op.bits // 2 * op.half | half << op.bits // 2 * op.half_hi
        if op.bits == 16:
            return 0xFFFF << 16 * op.half
        return (1 << op.bits) - 1

    def result(self, op: Operand, width: int, changed: int, lanes: Lanes, certain: bool) -> Iterator[Access]:
        """What storing `width` bits, of which `changed` are new, to an operand writes."""
        file = VECTOR_KINDS.get(op.kind)
        if file is None:
            if op.kind is Kind.SGPR and op.reg < N_SGPRS:
                count = self.mask_registers if op.bits == 1 else max(1, -(-op.bits // 32))
                yield from self.scalar(op.reg, count, role=op.role, field=op.field, certain=certain)
            return
        count, bits = self.stored(op, width, changed)
        yield self.vector(file, op.reg, count, bits, lanes, role=op.role, field=op.field, certain=certain)

    def stored(self, op: Operand, width: int, changed: int) -> tuple[int, int]:
        """(registers, bits of them) that a result takes in a vector register."""
        if op.select != WHOLE:
            return 1, selected(op.select) if op.unused == PRESERVE else M32
        if width <= 16 and (op.half or keeps_upper_half(self.inst.arch, self.inst.name)):
            return 1, 0xFFFF << 16 * op.half
        count = -(-width // 32)
        rest = (1 << 32 * count) - (1 << width)  # a narrow value is extended by zeros
        return count, changed | rest

    # ---- addresses

    def address(self) -> Iterator[Access]:
        """Registers of ADDR: those that the fields say take part."""
        m = self.memory
        if m is None:
            return
        yield from self.vector_address(m)
        if m.saddr is not None:
            field = "SADDR"
            yield from self.scalar(m.saddr, 1 if m.segment == "scratch" else 2, use=Use.ADDRESS, role="SADDR", field=field)
        if m.segment == "scalar":
            n = 4 if "_BUFFER_" in self.inst.name else 2
            yield from self.scalar(m.base, n, use=Use.ADDRESS, role="SBASE", field="SBASE")
            if m.soffset is not None:
                yield from self.scalar(m.soffset, 1, use=Use.ADDRESS, role="SOFFSET", field="SOFFSET")
        elif m.segment == "buffer":
            field = "RSRC" if "RSRC" in self.inst.fields else "SRSRC"
            yield from self.scalar(m.base, 4, use=Use.ADDRESS, role="SRSRC", field=field)
            soffset = self.find("SOFFSET")
            if soffset is not None:
                yield from self.source(soffset, Lanes.UNIFORM, use=Use.ADDRESS)
        yield from self.scratch_base(m)

    def vector_address(self, m: MemoryFields) -> Iterator[Access]:
        count = 0 if m.vaddr is None else 1
        if m.segment in ("flat", "global") and m.saddr is None:
            count *= 2
        elif m.segment == "buffer":
            count = int(m.index) + int(m.offen)
        if count and m.vaddr is not None:
            role = "ADDR" if m.segment == "lds" else "VADDR"
            field = "VADDR" if "VADDR" in self.inst.fields else "ADDR"
            yield self.vector(File.VGPR, m.vaddr, count, spread(1, count), Lanes.OWN, use=Use.ADDRESS, role=role, field=field)

    def scratch_base(self, m: MemoryFields) -> Iterator[Access]:
        """Where scratch lies: SCRATCH always, FLAT when an address is in its aperture."""
        if m.segment not in ("scratch", "flat"):
            return
        certain = m.segment == "scratch"
        if self.special.scratch is not None:
            for number in self.special.scratch:
                yield self.hwreg(number, certain)
        else:
            codes = self.arch.tables.codes
            first = next(n for n, name in codes.items() if name == "FLAT_SCRATCH_LO")
            yield from self.scalar(first, 2, use=Use.ADDRESS, certain=certain)


def selected(select: int) -> int:
    """Bits of an SDWA selection."""
    if select == WHOLE:
        return M32
    return 0xFF << 8 * select if select < 4 else 0xFFFF << 16 * (select - 4)
