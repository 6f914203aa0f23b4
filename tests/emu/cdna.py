"""One wave of CDNA from assembly text, on both tiers, for tests."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import fields

from stuntgpu.emu.memory import AddressSpace
from stuntgpu.emu.native import Native
from stuntgpu.emu.reference import Reference
from stuntgpu.emu.state import GOLDEN_MODE, WaveFinal, WaveInit
from stuntgpu.isa.asm import assemble

CODE, DATA, SCRATCH = 0x2000_0000_0000, 0x2000_0020_0000, 0x2000_1000_0000
DATA_BYTES, SCRATCH_LANE_BYTES, LDS_BYTES = 0x4000, 0x100, 0x1000
ALL = (1 << 64) - 1
LANES = 64

Values = int | Sequence[int]


class Bench:
    """Code, 16 KiB of data at DATA (bytes 0, 1, 2 ... 255, 0 ...) and scratch. Every run is one of the native
    tier, then one of the reference from the same memory; they must agree."""

    def __init__(self, arch: str = "gfx950") -> None:
        self.arch, self.tiers, self.space = arch, (Native(arch), Reference(arch)), AddressSpace()
        self.data = self._map(DATA, DATA_BYTES)
        self.data[:] = bytes(i & 0xFF for i in range(DATA_BYTES))
        self._code = self._map(CODE, 0x1000)
        self.scratch = self._map(SCRATCH, SCRATCH_LANE_BYTES * LANES)

    def _map(self, va: int, size: int) -> ctypes.Array[ctypes.c_char]:
        block = (ctypes.c_char * size)()
        self.space.map(va, size, ctypes.addressof(block), name=f"{va:x}", keep=block)
        return block

    def run(self, text: str, *, v: Mapping[int, Values] | None = None, s: Mapping[int, int] | None = None,
            exec_mask: int = ALL, vcc: int = 0, m0: int = 0, mode: int = GOLDEN_MODE) -> WaveFinal:
        """The wave after these lines. v: register -> one value or one per lane."""
        self.space.write(CODE, assemble(self.arch, text + "\ns_endpgm"))
        columns = {r: [x] * LANES if isinstance(x, int) else list(x) for r, x in (v or {}).items()}
        init = WaveInit(exec_mask, dict(s or {}), columns, vcc=vcc, m0=m0, mode=mode)
        before, found = self.memory, []
        for tier in self.tiers:
            self.data[:], self.scratch[:] = before
            final = tier.run_wave(self.space, CODE, init, LANES, LDS_BYTES, SCRATCH, SCRATCH_LANE_BYTES * LANES)
            found.append((final, self.memory))
        (native, native_memory), (final, memory) = found
        assert native == final, differences(native, final)
        assert native_memory == memory
        return final

    @property
    def memory(self) -> tuple[bytes, bytes]:
        """Data and scratch."""
        return bytes(self.data[:]), bytes(self.scratch[:])

    def words(self, va: int, count: int) -> list[int]:
        return [int.from_bytes(self.space.read(va + 4 * i, 4), "little") for i in range(count)]


def differences(native: WaveFinal, reference: WaveFinal) -> str:
    """Where two ends of a wave differ, shortly."""
    out = []
    for f in fields(WaveFinal):
        a, b = getattr(native, f.name), getattr(reference, f.name)
        if isinstance(a, tuple):
            out += [f"{f.name}[{i}]: native {x}, reference {y}" for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y]
        elif a != b:
            out.append(f"{f.name}: native {a}, reference {b}")
    return "\n".join(out[:4])


def pair(value: int) -> dict[int, int]:
    """s0, s1 of a 64-bit value."""
    return {0: value & 0xFFFF_FFFF, 1: value >> 32}
