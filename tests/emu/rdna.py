"""One wave of RDNA from assembly text, on either tier, for tests."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence

from stuntgpu.emu.memory import AddressSpace
from stuntgpu.emu.native import Native
from stuntgpu.emu.reference import Reference
from stuntgpu.emu.state import MODE_IEEE, WaveFinal, WaveInit
from stuntgpu.isa.asm import assemble

CODE, DATA, SCRATCH = 0x2000_0000_0000, 0x2000_0020_0000, 0x2000_1000_0000
DATA_BYTES, SCRATCH_LANE_BYTES, LDS_BYTES = 0x4000, 0x100, 0x1000
ARCHES = ("gfx1100", "gfx1201")
TIERS: Mapping[str, Callable[[str], Native | Reference]] = {"reference": Reference, "native": Native}

KEEP, FLUSH_F32, IEEE = 0xF0, 0xC0, 1 << MODE_IEEE
Values = int | Sequence[int]


class Bench:
    """Code, 16 KiB of data at DATA (dword i is i) whose address is in s[0:1], and scratch."""

    def __init__(self, arch: str, tier: str) -> None:
        self.arch, self.tier = arch, tier
        self.executor, self.space = TIERS[tier](arch), AddressSpace()
        self.data = self._map(DATA, DATA_BYTES)
        self.data[:] = b"".join(i.to_bytes(4, "little") for i in range(DATA_BYTES // 4))
        self._map(CODE, 0x1000)
        self._map(SCRATCH, SCRATCH_LANE_BYTES * 64)

    def _map(self, va: int, size: int) -> ctypes.Array[ctypes.c_char]:
        block = (ctypes.c_char * size)()
        self.space.map(va, size, ctypes.addressof(block), name=f"{va:x}", keep=block)
        return block

    def __call__(self, text: str, v: Mapping[int, Values] | None = None, s: Mapping[int, int] | None = None, *,
                 exec_mask: int | None = None, vcc: int = 0, scc: int = 0, m0: int = 0, mode: int = KEEP,
                 lanes: int = 32) -> WaveFinal:
        """The wave after these lines. v: register -> one value or one per lane; v255 is the lane number."""
        self.space.write(CODE, assemble(self.arch, text + "\ns_endpgm"))
        columns = {r: [x] * lanes if isinstance(x, int) else list(x) for r, x in (v or {}).items()}
        columns[255] = list(range(lanes))
        init = WaveInit((1 << lanes) - 1 if exec_mask is None else exec_mask,
                        {0: DATA & 0xFFFF_FFFF, 1: DATA >> 32, **(s or {})}, columns, vcc, scc, m0, mode)
        return self.executor.run_wave(self.space, CODE, init, lanes, LDS_BYTES, SCRATCH, SCRATCH_LANE_BYTES * lanes)

    def words(self, va: int, count: int) -> list[int]:
        return [int.from_bytes(self.space.read(va + 4 * i, 4), "little") for i in range(count)]
