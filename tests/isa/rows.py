"""Runs one semantics row on given places, for tests: registers and memory are plain dictionaries."""

from __future__ import annotations

import random
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from stuntgpu.emu import softfloat as sf
from stuntgpu.emu.interp import compile_row
from stuntgpu.isa import ir
from stuntgpu.isa.semantics import semantics

ARCH = "gfx1100"
KEEP_DENORMALS, FLUSH_F32, FLUSH_ALL = 0xF0, 0xC0, 0x00
LANES = (0, 1, 2, 3)

#: Values that break things, by width.
HARD = {
    16: (
        0,
        1,
        0x8000,
        0x8001,
        0x3C00,
        0xBC00,
        0x7C00,
        0xFC00,
        0x7E00,
        0x7D00,
        0x7BFF,
        0xFFFF,
        0x3FF,
        0x400,
    ),
    32: (
        0,
        1,
        31,
        32,
        1 << 31,
        (1 << 31) + 1,
        0x3F800000,
        0xBF800000,
        0x7F800000,
        0xFF800000,
        0x7FC00000,
        0x7FA00000,
        0x7F7FFFFF,
        0xFFFFFFFF,
        0x7FFFFF,
        0x800000,
        0x807FFFFF,
    ),
    64: (
        0,
        1,
        1 << 63,
        (1 << 63) + 1,
        0x3FF << 52,
        0xBFF << 52,
        0x7FF << 52,
        0xFFF << 52,
        0x7FF8 << 48,
        0x7FF4 << 48,
        (1 << 64) - 1,
    ),
}


class Machine:
    """Memory bytes and registers that were never written hold a fixed function of their address."""

    def __init__(
        self,
        mode: int = KEEP_DENORMALS,
        registers: Mapping[tuple[str, int, int | None], int] | None = None,
        memory: Mapping[tuple[str, int], int] | None = None,
    ) -> None:
        self.mode = sf.mode_of(mode)
        self.pc = 0
        self.memory = dict(memory or {})
        self.registers = dict(registers or {})
        self.actions: list[tuple[str, tuple[int, ...]]] = []

    def load(self, space: str, lane: int | None, address: int, size: int) -> int:
        cells = (
            self.memory.get((space, address + i), (address + i) * 7 & 255) for i in range(size)
        )
        return int.from_bytes(bytes(cells), "little")

    def store(self, space: str, lane: int | None, address: int, size: int, value: int) -> None:
        for i, byte in enumerate(value.to_bytes(size, "little")):
            self.memory[space, address + i] = byte

    def read_reg(self, file: str, index: int, lane: int | None) -> int:
        return self.registers.get(
            (file, index, lane), (index * 2654435761 + (lane or 0) * 40503) & 0xFFFFFFFF
        )

    def write_reg(self, file: str, index: int, lane: int | None, value: int) -> None:
        self.registers[file, index, lane] = value

    def act(self, action: str, args: Sequence[int]) -> None:
        self.actions.append((action, tuple(args)))

    def outcome(self) -> tuple[object, ...]:
        return self.memory, self.registers, self.actions


def execute(sem: ir.Semantics, places: Mapping[str, Any], machine: Machine) -> dict[str, Any]:
    """Results as `emu.interp` hands them back."""
    body = compile_row(sem)
    return body.fn(machine, places, LANES if body.scope == "lane" else ())


def run(name: str, machine: Machine | None = None, /, **places: int) -> dict[str, int]:
    """The row of `name` on one lane (number 0) or one wave; masks are given and returned by place."""
    return run_on(ARCH, name, machine, **places)


def run_on(arch: str, name: str, machine: Machine | None = None, /, **places: int) -> dict[str, int]:
    """As `run`, of an architecture."""
    sem = semantics(arch, name)
    body = compile_row(sem)
    given: dict[str, Any] = {"CLAMP": 0, "MODE_IEEE": 1, "LANES": 32, "WAVE32": 1, "EXEC": 1}
    for place, value in places.items():
        given[f"bit {place}"] = value
        given[place] = value if place in ir.UNIFORM or sem.scope == "wave" else [value]
    results = body.fn(machine or Machine(), given, [0] if sem.scope == "lane" else [])
    return {
        k.removeprefix("bit "): v[0] if isinstance(v, dict) else v
        for k, v in results.items()
        if v != {}
    }


def random_places(
    sem: ir.Semantics, widths: Mapping[str, int], rng: random.Random
) -> dict[str, Any]:
    """Hard and random values for every place a row may read."""

    def value(place: str, width: int) -> int:
        if place in ("SRC0", "SRC1", "SRC2", "VDST", "SDST"):
            return rng.randrange(100)
        if place == "ADDR":
            return rng.randrange(1 << 20)
        if rng.random() < 0.6 and width <= 64:
            return rng.choice(HARD.get(width, HARD[32])) & ((1 << width) - 1)
        return rng.getrandbits(width)

    out: dict[str, Any] = {"LANE": list(LANES)}
    for place, width in widths.items():
        wave_wide = place in ir.UNIFORM or sem.scope == "wave"
        out[place] = value(place, width) if wave_wide else [value(place, width) for _ in LANES]
        out[f"bit {place}"] = rng.getrandbits(len(LANES))
    return out


def f32(x: float) -> int:
    return int.from_bytes(struct.pack("<f", x), "little")


def f64(x: float) -> int:
    return int.from_bytes(struct.pack("<d", x), "little")


def f16(x: float) -> int:
    return int.from_bytes(struct.pack("<e", x), "little")
