"""One wave of CDNA from assembly text, for tests."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence

from stuntgpu.emu.memory import AddressSpace
from stuntgpu.emu.reference import Reference
from stuntgpu.emu.state import GOLDEN_MODE, WaveFinal, WaveInit
from stuntgpu.isa.asm import assemble

CODE, DATA, SCRATCH = 0x2000_0000_0000, 0x2000_0020_0000, 0x2000_1000_0000
DATA_BYTES, SCRATCH_LANE_BYTES, LDS_BYTES = 0x4000, 0x100, 0x1000
ALL = (1 << 64) - 1
LANES = 64

Values = int | Sequence[int]


class Bench:
    """Code, 16 KiB of data at DATA (bytes 0, 1, 2 ... 255, 0 ...) and scratch."""

    def __init__(self, arch: str = "gfx950") -> None:
        self.arch, self.reference, self.space = arch, Reference(arch), AddressSpace()
        self.data = self._map(DATA, DATA_BYTES)
        self.data[:] = bytes(i & 0xFF for i in range(DATA_BYTES))
        self._code = self._map(CODE, 0x1000)
        self._map(SCRATCH, SCRATCH_LANE_BYTES * LANES)

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
        return self.reference.run_wave(self.space, CODE, init, LANES, LDS_BYTES, SCRATCH, SCRATCH_LANE_BYTES * LANES)

    def words(self, va: int, count: int) -> list[int]:
        return [int.from_bytes(self.space.read(va + 4 * i, 4), "little") for i in range(count)]


def pair(value: int) -> dict[int, int]:
    """s0, s1 of a 64-bit value."""
    return {0: value & 0xFFFF_FFFF, 1: value >> 32}
