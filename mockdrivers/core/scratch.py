"""Private memory of waves when the client's own backing is too small for one slot per wave.

Hardware gives a wave one of `slots` pieces of the client's backing and hands it to another when the
wave ends. The executors number waves through the whole dispatch, so here a dispatch with more waves
than fit gets backing of the processor's own, where no client looks.

Units:   bytes.
"""

from __future__ import annotations

import ctypes
import mmap
from dataclasses import replace

from stuntgpu.emu.launch import Launch
from stuntgpu.emu.memory import READ, WRITE, AddressSpace
from stuntgpu.isa.abi.targets import round_up
from stuntgpu.mockdrivers.core.registers import Scratch

PAGE = 4096
#: Above everything the kernel driver hands out (user addresses end at 1 << 47).
FIRST_VA = 1 << 56
STRIDE = 1 << 44


class ScratchBacking:
    """Grows when a dispatch needs more; kept for the life of the queue."""

    def __init__(self, space: AddressSpace) -> None:
        self._space = space
        self._va = 0
        self._size = 0
        self._memory: mmap.mmap | None = None

    def provide(self, launch: Launch, private: Scratch) -> Launch:
        """The launch, with backing for each of its waves."""
        need = n_waves(launch) * private.wave_bytes
        if need == 0 or self._space.find(private.va, need) is not None:
            return launch
        return replace(launch, scratch_va=self._reserve(need))

    def _reserve(self, need: int) -> int:
        if need > self._size:
            self.close()
            self._size = round_up(need, PAGE)
            self._memory = mmap.mmap(-1, self._size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE)
            self._va = self._map(ctypes.addressof(ctypes.c_char.from_buffer(self._memory)))
        return self._va

    def _map(self, host: int) -> int:
        va = FIRST_VA
        while True:  # other queues of the process have theirs here as well
            try:
                self._space.map(va, self._size, host, perms=READ | WRITE, name="scratch", keep=self._memory)
                return va
            except ValueError:
                va += STRIDE

    def close(self) -> None:
        """Give the memory back."""
        if self._va:
            self._space.unmap(self._va)
            self._va = self._size = 0
            self._memory = None


_NORESERVE = 0x4000  # MAP_NORESERVE of Linux


def n_waves(launch: Launch) -> int:
    """Waves of the dispatch, partial workgroups counted as whole ones."""
    groups = 1
    for items, size in zip(launch.grid, launch.workgroup, strict=True):
        groups *= -(-items // size)
    x, y, z = launch.workgroup
    return groups * -(-x * y * z // launch.wave_lanes)
