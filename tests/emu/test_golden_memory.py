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
from stuntgpu.emu.state import WaveInit
from stuntgpu.isa.abi.targets import LDS_APERTURE, SCRATCH_APERTURE
from stuntgpu.isa.inst import Inst, Kind
from stuntgpu.isa.operands import operands
from tests.emu.test_golden_opcodes import ARCH, CODE, S_ENDPGM, forms_of, instructions, word

BASE, SIZE = 0x7000_0000_0000, 1 << 15
MIDDLE = BASE + SIZE // 2
SEAM = SIZE // 2 + 1024  # two regions meet here
SCRATCH, SCRATCH_LANE = 0x6000_0000_0000, 0x4000
LDS_BYTES = 4096
M32 = 0xFFFF_FFFF
MEMORY = ("SMEM", "FLAT", "FLAT_GLOBAL", "FLAT_SCRATCH", "MUBUF", "MTBUF", "DS")


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

    def fill(self) -> None:
        self.sgprs.update({i: word(self.rng) for i in range(106)})
        for o in operands(self.inst):
            if o.kind is Kind.VGPR:
                for k in range(-(-o.bits // 32) + 1):
                    self.vgprs.setdefault((o.reg + k) % 256, [word(self.rng) for _ in range(self.lanes)])
        {"DS": self.lds, "FLAT": self.flat, "FLAT_GLOBAL": self.flat, "FLAT_SCRATCH": self.scratch, "SMEM": self.scalar,
         "MUBUF": self.buffer, "MTBUF": self.buffer}[self.inst.base]()  # fmt: skip

    def offsets(self) -> list[int]:
        """Of all lanes: adjacent, equal, in blocks, random; now and then one lane far away."""
        unit = self.rng.choice((1, 4, 16, 16, 16))
        start, step = self.rng.randrange(512) * unit, self.rng.choice((4, 8, 16, 2))
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
                if o.reg == 125:
                    self.m0 = value
                elif o.reg == 106:
                    self.vcc = value
                self.sgprs[o.reg] = value

    def lds(self) -> None:
        self.vgprs[self.inst.fields["ADDR"]] = self.offsets()
        self.m0 = self.rng.choice((0, 16, 0xFFFF))

    def flat(self) -> None:
        f, lanes = self.inst.fields, self.offsets()
        if self.inst.base == "FLAT_GLOBAL" and f["SADDR"] != 124:
            self.pair(f["SADDR"], MIDDLE)
            self.vgprs[f["ADDR"]] = lanes
            return
        base = MIDDLE if self.inst.base != "FLAT" else self.rng.choice((MIDDLE, LDS_APERTURE, SCRATCH_APERTURE))
        self.vgprs[f["ADDR"]] = [(base + v) & M32 for v in lanes]
        self.vgprs[(f["ADDR"] + 1) % 256] = [(base + v) >> 32 for v in lanes]

    def scratch(self) -> None:
        self.sgprs[self.inst.fields["SADDR"]] = 4096
        self.vgprs[self.inst.fields["ADDR"]] = [v + 4096 for v in self.offsets()]

    def scalar(self) -> None:
        reg = self.inst.fields["SBASE"] * 2
        stride = self.rng.choice((0, 4 << 48)) if "_BUFFER_" in self.inst.name else 0
        self.pair(reg, MIDDLE | stride)
        self.sgprs[reg + 2], self.sgprs[reg + 3] = self.rng.choice((64, 4096)), 0
        self.soffset()

    def buffer(self) -> None:
        f, lanes = self.inst.fields, self.offsets()
        if f["IDXEN"]:
            self.vgprs[f["VADDR"]] = [i % 7 for i in range(self.lanes)]
        if f["OFFEN"]:
            self.vgprs[(f["VADDR"] + f["IDXEN"]) % 256] = lanes
        self.soffset()
        reg = f["SRSRC"] * 4
        self.pair(reg, MIDDLE | self.rng.choice((0, 4, 16)) << 48)
        self.sgprs[reg + 2] = self.rng.choice((2, 64, 2000, 100_000))
        code = self.rng.choice([c for c in range(64) if formats.of_code(ARCH, c)])
        self.sgprs[reg + 3] = self.rng.randrange(4) << 28 | self.rng.choice((0, 1 << 23)) | code << 12 | self.rng.getrandbits(12)

    def init(self) -> WaveInit:
        exec_mask = self.rng.choice(((1 << self.lanes) - 1, (1 << self.lanes) - 1, self.rng.getrandbits(self.lanes), 0))
        return WaveInit(exec_mask, {k: v for k, v in self.sgprs.items() if k < 106}, self.vgprs, self.vcc, 0, self.m0, 0xF0)


def outcome(executor: Native | Reference, code: bytes, setup: Setup, init: WaveInit, data: bytes) -> object:
    """Final registers, memory and scratch; or the fault."""
    lanes = setup.lanes
    text = ctypes.create_string_buffer(code + S_ENDPGM, len(code) + 64)
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


def chosen(rng: random.Random) -> list[tuple[Inst, bytes, str]]:
    """Two instructions an opcode."""
    by_name: dict[str, list[tuple[Inst, bytes, str]]] = {}
    for item in instructions():
        named = not item[0].name.startswith("TBUFFER_") or formats.of_code(ARCH, item[0].fields["FORMAT"])
        if item[0].base in MEMORY and not item[0].fields.get("TFE") and named:
            by_name.setdefault(item[0].name, []).append(item)
    return [rng.choice(items) for items in by_name.values() for _ in range(2)]


def differences(work: list[tuple[Inst, bytes, str]], lanes: int, rng: random.Random) -> Mapping[str, str]:
    native, reference, wrong = Native(ARCH), Reference(ARCH), {}
    for inst, code, asm in work:
        setup = Setup(inst, lanes, rng)
        setup.fill()
        init, data = setup.init(), rng.randbytes(SIZE)
        a, b = (outcome(x, code, setup, init, data) for x in (native, reference))
        if a != b:
            wrong[asm] = f"{a}\n{b}" if isinstance(a, str) and isinstance(b, str) else f"exec {init.exec_mask:#x}"
    return wrong


@pytest.mark.parametrize(("lanes", "seed"), [(32, 3), (64, 4)])
def test_golden_memory_instructions_do_the_same_on_both_tiers(lanes: int, seed: int) -> None:
    rng = random.Random(seed)
    work = chosen(rng)
    cache().handlers(f for inst, _, _ in work for f in forms_of(inst, lanes, 0xF0))
    assert len(work) > 500
    assert not (wrong := differences(work, lanes, rng)), "\n".join(f"{k}: {v}" for k, v in wrong.items())
