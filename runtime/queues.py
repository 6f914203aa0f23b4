"""Rings a device reads packets from: PM4 for kernels, SDMA for copies.

Units:   positions grow for ever: dwords on PM4 rings, bytes on SDMA rings.
Errors:  what the `wait` callable raises when the ring stays full.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Iterable

from stuntgpu.isa.abi.kfd import QueueType
from stuntgpu.isa.packets.base import Packet
from stuntgpu.runtime.kfd import HOST, PAGE, VRAM, Gpu

RING_BYTES = 1 << 20
RPTR, WPTR = 0, 64  # where the pointers live in their page, a cache line apart

#: Called with a condition and what is awaited, until the condition holds.
Wait = Callable[[Callable[[], bool], str], None]


class Queue:
    """One user queue. Not thread-safe: its device's lock guards it."""

    def __init__(self, gpu: Gpu, kind: QueueType, wait: Wait, ring_bytes: int = RING_BYTES) -> None:
        self.gpu, self.kind, self._wait = gpu, kind, wait
        self.unit_bytes = 1 if kind is QueueType.SDMA else 4
        self.ring = gpu.alloc(ring_bytes, HOST)
        self.pointers = gpu.alloc(PAGE, HOST)
        self.eop = gpu.alloc(PAGE, VRAM) if kind is QueueType.COMPUTE else None
        self._rptr, self._wptr = self.pointers.u64(RPTR), self.pointers.u64(WPTR)
        self._queue = gpu.create_queue(kind, self.ring, self.pointers.va + RPTR, self.pointers.va + WPTR, self.eop)
        self.wptr_bytes = 0

    @property
    def rptr(self) -> int:
        """How far the device has read, in the ring's units."""
        return self._rptr.value

    @property
    def wptr(self) -> int:
        """How far packets are written, in the ring's units."""
        return self.wptr_bytes // self.unit_bytes

    def submit(self, packets: Iterable[Packet]) -> None:
        """Write packets behind the others and ring the doorbell."""
        words = array("I")
        for packet in packets:
            words.extend(packet.encode())
        data = words.tobytes()
        size = self.ring.size
        if len(data) > size // 2:  # half, so that it fits behind padding too
            raise ValueError(f"{len(data)} bytes of packets at once, the {self.kind.name} ring takes {size // 2}")
        left = size - self.wptr_bytes % size
        if self.kind is QueueType.SDMA and len(data) > left:
            data = bytes(left) + data  # SDMA packets do not wrap; zero dwords are NOPs
        self._make_room(len(data))
        self._write(data)
        self.wptr_bytes += len(data)
        self._wptr.value = self.wptr
        self._queue.doorbell.value = self.wptr

    def _make_room(self, n_bytes: int) -> None:
        def fits() -> bool:
            return self.wptr_bytes - self._rptr.value * self.unit_bytes + n_bytes <= self.ring.size

        if not fits():
            self._wait(fits, f"room for {n_bytes} bytes on the {self.kind.name} ring")

    def _write(self, data: bytes) -> None:
        at = self.wptr_bytes % self.ring.size
        first = min(len(data), self.ring.size - at)
        ctypes.memmove(self.ring.va + at, data[:first], first)
        ctypes.memmove(self.ring.va, data[first:], len(data) - first)

    def close(self) -> None:
        """Destroy the queue, whatever it is doing, and free its memory."""
        self.gpu.destroy_queue(self._queue)
        for memory in (self.ring, self.pointers, self.eop):
            if memory is not None:
                self.gpu.free(memory)
