"""The state a random instruction starts in: registers by what it reads, addresses that mostly lie in memory.

Memory is two regions that meet, scratch and LDS; addresses of lanes are adjacent, equal, in blocks or random,
and now and then one lies outside.

Units:   bytes; registers hold 32-bit words.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from stuntgpu.emu import formats, state
from stuntgpu.emu.fuzz import values
from stuntgpu.isa.abi.targets import LDS_APERTURE, SCRATCH_APERTURE
from stuntgpu.isa.arch import arch
from stuntgpu.isa.effects import File, reads_writes
from stuntgpu.isa.inst import Inst, Kind, Operand
from stuntgpu.isa.memory_fields import memory_fields, segment
from stuntgpu.isa.operands import operands

CODE = 0x2000_0000_0000
BASE, SIZE = 0x7000_0000_0000, 1 << 14
MIDDLE = BASE + SIZE // 2
SEAM = SIZE // 2 + 512  # two regions meet here
SCRATCH, SCRATCH_LANE = 0x6000_0000_0000, 0x1000
LDS_BYTES = 4096
M32 = 0xFFFF_FFFF
#: M0 adds less than this to register numbers, in GPR index mode.
MOST_INDEXED = 4
#: Scalar registers that mean something else than a number.
_KEPT = (state.EXEC_LO, state.EXEC_HI)


def vector_operands(inst: Inst) -> list[Operand]:
    """Operands in vector registers."""
    return [o for p in inst.halves for o in operands(p) if o.kind in (Kind.VGPR, Kind.AGPR)]


@dataclass
class Setup:
    """Registers of one run, filled for each instruction in turn; later ones win."""

    arch: str
    lanes: int
    rng: random.Random
    sgprs: dict[int, int] = field(default_factory=dict)
    vgprs: dict[int, list[int]] = field(default_factory=dict)
    m0: int = 0
    vcc: int = 0

    def fill(self, insts: Sequence[Inst]) -> None:
        """Values for everything that `insts` read."""
        self.vcc, self.m0 = self.rng.getrandbits(self.lanes), self.rng.choice((0, 1, 2, values.word(self.rng)))
        self.sgprs.update({i: values.word(self.rng) for i in range(state.VCC_LO)})
        for inst in insts:
            self._operands(inst)
        for inst in insts:
            for p in inst.halves:
                if segment(p) and operands(p):
                    self._addresses(p)

    # ---- operands

    def _operands(self, inst: Inst) -> None:
        for access in reads_writes(inst, self.lanes).reads:
            if access.file in (File.VGPR, File.AGPR):
                shift = state.N_VGPRS if access.file is File.AGPR else 0
                for i in range(access.count):
                    self._column(shift + access.reg + i, lambda: values.word(self.rng))
        seen: list[Operand] = []
        for o in vector_operands(inst):
            self._vector(o, seen)
            seen.append(o)
        for p in inst.halves:
            for o in operands(p):
                if o.kind is Kind.SGPR and o.is_read and o.reg < state.VCC_LO:
                    for i, w in enumerate(values.of_operand(self.rng, o, -(-o.bits // 32))):
                        self.sgprs[o.reg + i] = w

    def _column(self, register: int, make: Callable[[], int]) -> None:
        self.vgprs.setdefault(register, [make() for _ in range(self.lanes)])

    def _vector(self, o: Operand, seen: Sequence[Operand]) -> None:
        """Each lane its own value, which may be near that of an earlier operand."""
        n = -(-o.bits // 32) or 1
        columns = [[0] * self.lanes for _ in range(n)]
        twin = self.rng.choice(seen) if seen and self.rng.random() < 0.5 else None
        for lane in range(self.lanes):
            other = twin is not None and self.rng.random() < 0.4 and self._value(twin, n, lane)
            words = values.near(self.rng, other) if other else values.of_operand(self.rng, o, n)
            for i in range(n):
                columns[i][lane] = words[i]
        for i in range(n):
            self.vgprs[state.following(state.register(o), i)] = columns[i]

    def _value(self, o: Operand, n: int, lane: int) -> list[int]:
        registers = [state.following(state.register(o), i) for i in range(n)]
        return [self.vgprs[r][lane] if r in self.vgprs else 0 for r in registers]

    # ---- addresses

    def _addresses(self, inst: Inst) -> None:
        self.at, self.inst = memory_fields(inst), inst
        {"lds": self._lds, "flat": self._flat, "global": self._flat, "scratch": self._scratch, "scalar": self._scalar,
         "buffer": self._buffer}[self.at.segment]()  # fmt: skip
        if "_BLOCK" in inst.name:
            self.m0 = self.rng.getrandbits(32) & self.rng.getrandbits(32)

    def _offsets(self) -> list[int]:
        """Of all lanes, before the instruction's own offset."""
        rng, unit = self.rng, self.rng.choice((1, 4, 16, 16, 16))
        start, step = rng.randrange(128) * unit, rng.choice((4, 8, 16, 2))
        if self._is_typed_store():
            unit = step = 16
        shapes: tuple[Callable[[int], int], ...] = (
            lambda i: start + i * step, lambda i: start, lambda i: start + i % 8 * 16,
            lambda i: rng.randrange(1024) // unit * unit,
        )  # fmt: skip
        shape = rng.choice(shapes)
        out = [shape(i) for i in range(self.lanes)]
        if rng.random() < 0.08:
            out[rng.randrange(self.lanes)] += rng.choice((1 << 20, -(1 << 20), SIZE))
        return [v & M32 for v in out]

    def _is_typed_store(self) -> bool:
        """Where elements of lanes overlap in part, no order of their channels is agreed on."""
        return "_STORE_" in self.inst.name and "FORMAT_" in self.inst.name

    def _pair(self, reg: int, value: int) -> None:
        self._scalar_register(reg, value & M32)
        self._scalar_register(reg + 1, value >> 32)

    def _scalar_register(self, reg: int, value: int) -> None:
        if reg == state.wavefront(self.arch).m0:
            self.m0 = value
        elif reg in (state.VCC_LO, state.VCC_HI):
            shift = 32 * (reg - state.VCC_LO)
            self.vcc = self.vcc & ~(M32 << shift) | value << shift
        elif reg not in _KEPT and reg < state.N_SGPRS:
            self.sgprs[reg] = value

    def _soffset(self) -> None:
        for o in operands(self.inst):
            if o.role == "SOFFSET" and o.kind is Kind.SGPR:
                self._scalar_register(o.reg, self.rng.randrange(64) * 4)

    def _near_zero(self) -> int:
        """Cancels most of the instruction's immediate offset, so that addresses stay in memory."""
        return -(self.at.offset & ~15)

    def _lds(self) -> None:
        if self.at.vaddr is not None:
            self.vgprs[self.at.vaddr] = [v + self._near_zero() & M32 for v in self._offsets()] if self.rng.random() < 0.7 else (
                self._offsets())
        self.m0 = self.rng.choice((0, 16, 0xFFFF))

    def _flat(self) -> None:
        lanes, vaddr = self._offsets(), self.at.vaddr
        middle = MIDDLE + self._near_zero()
        if self.at.saddr is not None:
            self._pair(self.at.saddr, middle)
        apertures = (MIDDLE, MIDDLE, LDS_APERTURE, SCRATCH_APERTURE)
        base = middle if self.at.segment == "global" else self.rng.choice(apertures) + self._near_zero()
        if vaddr is not None and self.at.saddr is not None:
            self.vgprs[vaddr] = lanes
        elif vaddr is not None:
            self.vgprs[vaddr] = [base + v & M32 for v in lanes]
            self.vgprs[(vaddr + 1) % state.N_VGPRS] = [base + v >> 32 & M32 for v in lanes]

    def _scratch(self) -> None:
        start = max(0, self._near_zero()) + 64
        if self.at.saddr is not None:
            self._scalar_register(self.at.saddr, start)
        if self.at.vaddr is not None:
            self.vgprs[self.at.vaddr] = [v % 512 + (0 if self.at.saddr is not None else start) & M32 for v in self._offsets()]

    def _scalar(self) -> None:
        stride = self.rng.choice((0, 4 << 48)) if "_BUFFER_" in self.inst.name else 0
        self._pair(self.at.base, MIDDLE + (0 if stride else self._near_zero()) | stride)
        if "_BUFFER_" in self.inst.name:
            self._pair(self.at.base + 2, self.rng.choice((64, 4096)))
        if self.at.soffset is not None:
            self._scalar_register(self.at.soffset, self.rng.randrange(64) * 4)
        self._soffset()

    def _buffer(self) -> None:
        lanes, vaddr, reg = self._offsets(), self.at.vaddr or 0, self.at.base
        if self.at.index:
            self.vgprs[vaddr] = [i % 7 for i in range(self.lanes)]
        if self.at.offen:
            self.vgprs[(vaddr + self.at.index) % state.N_VGPRS] = lanes
        stride = self.rng.choice((0, 4, 16)) if not self._is_typed_store() else 16
        self._pair(reg, MIDDLE | stride << 48)
        code = self.rng.choice([c for c in range(128) if formats.of_code(self.arch, c)])
        place = code << 12
        if arch(self.arch).dialect == "gfx9":  # number format, then data format
            place = code >> 4 << 12 | (code & 15) << 15
            self.m0 = self.rng.randrange(512) * 4
        self._scalar_register(reg + 2, self.rng.choice((2, 64, 2000, 100_000)))
        self._scalar_register(reg + 3, self.rng.randrange(4) << 28 | self.rng.choice((0, 1 << 23)) | place | self.rng.getrandbits(12))
        self._soffset()

    # ---- the start

    def init(self, mode: int) -> state.WaveInit:
        """The wave's registers; EXEC is full, partial, one lane or empty."""
        rng, full = self.rng, (1 << self.lanes) - 1
        if mode >> state.MODE_GPR_INDEX & 1:
            self.m0 = rng.getrandbits(4) << 12 | rng.randrange(MOST_INDEXED)
        exec_mask = rng.choice((full, full, rng.getrandbits(self.lanes), 1 << rng.randrange(self.lanes), 0))
        return state.WaveInit(exec_mask, dict(self.sgprs), dict(self.vgprs), self.vcc & full, rng.getrandbits(1), self.m0, mode)
