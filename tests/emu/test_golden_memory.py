"""Every memory instruction with addresses of several shapes, on both tiers: same registers, memory, faults."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest

from stuntgpu.emu import formats
from stuntgpu.emu.cache import cache
from stuntgpu.emu.faults import KernelFault
from stuntgpu.emu.memory import AddressSpace
from stuntgpu.emu.native import Native
from stuntgpu.emu.reference import Reference
from stuntgpu.emu.state import WaveInit, following, register, wavefront
from stuntgpu.isa.abi.targets import LDS_APERTURE, SCRATCH_APERTURE
from stuntgpu.isa.arch import arch
from stuntgpu.isa.inst import Inst, Kind
from stuntgpu.isa.memory_fields import memory_fields, segment
from stuntgpu.isa.operands import operands
from tests.emu.test_golden_opcodes import CODE, WAVES, ended, forms_of, instructions, word

BASE, SIZE = 0x7000_0000_0000, 1 << 15
MIDDLE = BASE + SIZE // 2
SEAM = SIZE // 2 + 1024  # two regions meet here
SCRATCH, SCRATCH_LANE = 0x6000_0000_0000, 0x4000
LDS_BYTES = 4096
M32 = 0xFFFF_FFFF


@dataclass
class Setup:
    """Registers of one run; `place` writes the addresses."""

    inst: Inst
    lanes: int
    rng: random.Random
    sgprs: dict[int, int] = field(default_factory=dict)
    vgprs: dict[int, list[int]] = field(default_factory=dict)
    m0: int = 0
    vcc: int = 0

    def __post_init__(self) -> None:
        self.at = memory_fields(self.inst)

    def fill(self) -> None:
        self.sgprs.update({i: word(self.rng) for i in range(106)})
        for o in operands(self.inst):
            if o.kind in (Kind.VGPR, Kind.AGPR):
                for k in range(-(-o.bits // 32) + 1):
                    self.vgprs.setdefault(following(register(o), k), [word(self.rng) for _ in range(self.lanes)])
        {"lds": self.lds, "flat": self.flat, "global": self.flat, "scratch": self.scratch, "scalar": self.scalar,
         "buffer": self.buffer}[self.at.segment]()  # fmt: skip
        if "_BLOCK" in self.inst.name:
            self.m0 = self.rng.getrandbits(32) & self.rng.getrandbits(32)

    def offsets(self) -> list[int]:
        """Of all lanes: adjacent, equal, in blocks, random; now and then one lane far away."""
        unit = self.rng.choice((1, 4, 16, 16, 16))
        start, step = self.rng.randrange(512) * unit, self.rng.choice((4, 8, 16, 2))
        if "_STORE_" in self.inst.name and "FORMAT_" in self.inst.name:
            unit = step = 16  # where lanes overlap in part, no order of their channels is agreed on
        shapes: tuple[Callable[[int], int], ...] = (
            lambda i: start + i * step, lambda i: start, lambda i: start + i % 8 * 16,
            lambda i: self.rng.randrange(2048) // unit * unit,
        )  # fmt: skip
        shape = self.rng.choice(shapes)
        out = [shape(i) for i in range(self.lanes)]
        if self.rng.random() < 0.1:
            out[5] += 1 << 20
        return out

    def pair(self, reg: int, value: int) -> None:
        if reg == 106:
            self.vcc = value
        self.sgprs[reg], self.sgprs[reg + 1] = value & M32, value >> 32

    def soffset(self) -> None:
        for o in operands(self.inst):
            if o.role == "SOFFSET" and o.kind is Kind.SGPR:
                value = self.rng.randrange(64) * 4
                if o.reg == wavefront(self.inst.arch).m0:
                    self.m0 = value
                elif o.reg == 106:
                    self.vcc = value
                self.sgprs[o.reg] = value

    def lds(self) -> None:
        assert self.at.vaddr is not None
        self.vgprs[self.at.vaddr] = self.offsets()
        self.m0 = self.rng.choice((0, 16, 0xFFFF))

    def flat(self) -> None:
        lanes, vaddr = self.offsets(), self.at.vaddr
        if self.at.saddr is not None:
            self.pair(self.at.saddr, MIDDLE)
        base = MIDDLE if self.at.segment == "global" else self.rng.choice((MIDDLE, LDS_APERTURE, SCRATCH_APERTURE))
        if vaddr is not None and self.at.saddr is not None:
            self.vgprs[vaddr] = lanes
        elif vaddr is not None:
            self.vgprs[vaddr] = [(base + v) & M32 for v in lanes]
            self.vgprs[(vaddr + 1) % 256] = [(base + v) >> 32 for v in lanes]

    def scratch(self) -> None:
        if self.at.saddr is not None:
            self.sgprs[self.at.saddr] = 4096
        if self.at.vaddr is not None:
            self.vgprs[self.at.vaddr] = [v + 4096 for v in self.offsets()]

    def scalar(self) -> None:
        stride = self.rng.choice((0, 4 << 48)) if "_BUFFER_" in self.inst.name else 0
        self.pair(self.at.base, MIDDLE | stride)
        self.sgprs[self.at.base + 2], self.sgprs[self.at.base + 3] = self.rng.choice((64, 4096)), 0
        self.soffset()

    def buffer(self) -> None:
        lanes, vaddr, reg = self.offsets(), self.at.vaddr or 0, self.at.base
        if self.at.index:
            self.vgprs[vaddr] = [i % 7 for i in range(self.lanes)]
        if self.at.offen:
            self.vgprs[(vaddr + self.at.index) % 256] = lanes
        self.soffset()
        self.pair(reg, MIDDLE | self.rng.choice((0, 4, 16)) << 48)
        self.sgprs[reg + 2] = self.rng.choice((2, 64, 2000, 100_000))
        code = self.rng.choice([c for c in range(128) if formats.of_code(self.inst.arch, c)])
        place = code << 12
        if arch(self.inst.arch).dialect == "gfx9":  # number format, then data format
            place = code >> 4 << 12 | (code & 15) << 15
            self.m0 = self.rng.randrange(512) * 4
        self.sgprs[reg + 3] = self.rng.randrange(4) << 28 | self.rng.choice((0, 1 << 23)) | place | self.rng.getrandbits(12)

    def init(self) -> WaveInit:
        exec_mask = self.rng.choice(((1 << self.lanes) - 1, (1 << self.lanes) - 1, self.rng.getrandbits(self.lanes), 0))
        return WaveInit(exec_mask, {k: v for k, v in self.sgprs.items() if k < 106}, self.vgprs, self.vcc, 0, self.m0, 0xF0)


def outcome(executor: Native | Reference, code: bytes, setup: Setup, init: WaveInit, data: bytes) -> object:
    """Final registers, memory and scratch; or the fault."""
    lanes = setup.lanes
    text = ctypes.create_string_buffer(code + ended(executor.arch), len(code) + 64)
    memory = ctypes.create_string_buffer(data, SIZE)
    scratch = ctypes.create_string_buffer(data * (SCRATCH_LANE * lanes // SIZE), SCRATCH_LANE * lanes)
    space = AddressSpace()
    space.map(CODE, len(code) + 64, ctypes.addressof(text), name="code")
    space.map(BASE, SEAM, ctypes.addressof(memory), name="low")
    space.map(BASE + SEAM, SIZE - SEAM, ctypes.addressof(memory) + SEAM, name="high")
    space.map(SCRATCH, SCRATCH_LANE * lanes, ctypes.addressof(scratch), name="scratch")
    try:
        final = executor.run_wave(space, CODE, init, lanes, LDS_BYTES, SCRATCH, SCRATCH_LANE * lanes)
    except KernelFault as fault:
        return str(fault)
    return final, memory.raw, scratch.raw


def is_built(inst: Inst, lanes: int) -> bool:
    """Global data share, and loads that transpose in waves of 64 of RDNA4, are refused on both tiers."""
    transposes = "_LOAD_TR_" in inst.name and lanes == 64
    return not (inst.fields.get("GDS") or inst.fields.get("TFE") or transposes)


def has_format(target: str, inst: Inst) -> bool:
    """Whether a typed instruction's own format is one."""
    return formats.of_code(target, formats.own_code(inst.fields)) is not None


def chosen(target: str, lanes: int, rng: random.Random) -> list[tuple[Inst, bytes, str]]:
    """Two instructions an opcode."""
    by_name: dict[str, list[tuple[Inst, bytes, str]]] = {}
    for item in instructions(target):
        named = not item[0].name.startswith("TBUFFER_") or has_format(target, item[0])
        if segment(item[0]) and is_built(item[0], lanes) and named:
            by_name.setdefault(item[0].name, []).append(item)
    return [rng.choice(items) for items in by_name.values() for _ in range(2)]


def differences(target: str, work: list[tuple[Inst, bytes, str]], lanes: int, rng: random.Random) -> Mapping[str, str]:
    native, reference, wrong = Native(target), Reference(target), {}
    for inst, code, asm in work:
        setup = Setup(inst, lanes, rng)
        setup.fill()
        init, data = setup.init(), rng.randbytes(SIZE)
        a, b = (outcome(x, code, setup, init, data) for x in (native, reference))
        if a != b:
            wrong[asm] = f"{a}\n{b}" if isinstance(a, str) and isinstance(b, str) else f"exec {init.exec_mask:#x}"
    return wrong


@pytest.mark.parametrize(("target", "lanes", "seed"), WAVES)
def test_golden_memory_instructions_do_the_same_on_both_tiers(target: str, lanes: int, seed: int) -> None:
    rng = random.Random(seed + 2)
    work = chosen(target, lanes, rng)
    cache().handlers(f for inst, _, _ in work for f in forms_of(inst, lanes, 0xF0))
    assert len(work) > 350
    assert not (wrong := differences(target, work, lanes, rng)), "\n".join(f"{k}: {v}" for k, v in wrong.items())
