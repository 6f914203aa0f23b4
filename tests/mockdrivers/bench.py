"""A packet processor on its own: memory, a ring, and a host that records what it is asked for."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field

from stuntgpu.emu.launch import Launch, RunOptions, Stats
from stuntgpu.emu.memory import AddressSpace
from stuntgpu.isa.packets.base import Packet
from stuntgpu.mockdrivers.core import queue
from stuntgpu.mockdrivers.core.seam import Progress, QueueKind, Ring

RING_VA, MEMORY_VA = 0x1000_0000, 0x2000_0000
RPTR_VA = MEMORY_VA + 0xF000
MEMORY_BYTES = 0x10000


@dataclass
class Recorder:
    """An executor that runs nothing."""

    launches: list[Launch] = field(default_factory=list)

    def run(self, space: AddressSpace, launch: Launch, options: RunOptions) -> Stats:
        self.launches.append(launch)
        return Stats(kernels=1)


class Bench:
    """One queue of `ring_bytes`, and 64 KiB of memory at MEMORY_VA; also its processor's QueueHost."""

    def __init__(self, kind: QueueKind, ring_bytes: int = 0x1000) -> None:
        self.space, self.executor, self.options = AddressSpace(), Recorder(), RunOptions()
        self.events: list[tuple[int, int]] = []
        self._keep = [ctypes.create_string_buffer(n) for n in (ring_bytes, MEMORY_BYTES)]
        for va, block, name in zip((RING_VA, MEMORY_VA), self._keep, ("ring", "memory"), strict=True):
            self.space.map(va, len(block), ctypes.addressof(block), name=name)
        self.ring_bytes, self.unit = ring_bytes, 4 if kind is QueueKind.SDMA else 1
        self.queue = queue.create(Ring(7, kind, "gfx1100", RING_VA, ring_bytes, RPTR_VA, 0), self)
        self.wptr = 0

    def signal_event(self, event_id: int, data: int = 0) -> None:
        self.events.append((event_id, data))

    def timestamp(self) -> int:
        return 0x1234_5678_9ABC

    @property
    def rptr(self) -> int:
        return self.u64(RPTR_VA)

    def put(self, *packets: Packet) -> None:
        self.put_words([w for p in packets for w in p.encode()])

    def put_words(self, words: list[int]) -> None:
        for word in words:
            at = self.wptr // self.unit * 4 % self.ring_bytes
            self.space.write(RING_VA + at, word.to_bytes(4, "little"))
            self.wptr += self.unit

    def go(self, *packets: Packet) -> Progress:
        self.put(*packets)
        return self.queue.run(self.wptr)

    def store(self, offset: int, *packets: Packet) -> int:
        """Packets as an indirect buffer at an offset of the memory; how many dwords."""
        words = [w for p in packets for w in p.encode()]
        self.space.write(MEMORY_VA + offset, b"".join(w.to_bytes(4, "little") for w in words))
        return len(words)

    def u32(self, va: int) -> int:
        return int.from_bytes(self.space.read(va, 4), "little")

    def u64(self, va: int) -> int:
        return int.from_bytes(self.space.read(va, 8), "little")

    def set(self, va: int, value: int, size: int = 4) -> None:
        self.space.write(va, value.to_bytes(size, "little"))
