"""One GPU of one client: its address space, its memory, its queues. Drivers do GPU work only through it:
map, unmap, register a queue, its doorbell, events.

Errors:  ValueError for a mapping that overlaps another (drivers answer EINVAL); OutOfMemory.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from stuntgpu.emu import budget
from stuntgpu.emu.launch import Executor, RunOptions
from stuntgpu.emu.memory import AddressSpace
from stuntgpu.isa.errors import Unmodelled
from stuntgpu.mockdrivers.core.doorbell import Doorbells
from stuntgpu.mockdrivers.core.memory import Heap
from stuntgpu.mockdrivers.core.queues import Fault, UserQueue, constant_clock
from stuntgpu.mockdrivers.core.seam import QueueProcessor, Ring
from stuntgpu.mockdrivers.core.tally import Tally
from stuntgpu.mockdrivers.core.userptr import UserPages
from stuntgpu.mockdrivers.profiles import Chip

GTT_BYTES = 32 << 30
STOP_TIMEOUT_S = 5.0


class Executors:
    """One executor an architecture and tier for the whole server: clients share its code cache."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, str], Executor] = {}
        self._lock = threading.Lock()

    def get(self, arch: str, tier: str) -> Executor:
        """The executor, made on first use. Raises Unmodelled for an unknown tier."""
        with self._lock:
            if (arch, tier) not in self._made:
                self._made[arch, tier] = _make_executor(arch, tier)
            return self._made[arch, tier]


def _make_executor(arch: str, tier: str) -> Executor:
    if tier == "native":
        from stuntgpu.emu.native import Native

        return Native(arch)
    if tier == "reference":
        from stuntgpu.emu.reference import Reference

        return Reference(arch)
    raise Unmodelled(arch, f"executor tier {tier!r} (native, reference)", "mockdrivers/core/gpu.py")


@dataclass(frozen=True, slots=True)
class Services:
    """What the clients of one server share."""

    executors: Executors
    doorbells: Doorbells
    tally: Tally = field(default_factory=Tally)


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """STUNTGPU_TIER, STUNTGPU_SEED, STUNTGPU_THREADS and STUNTGPU_MAX_WAVE_INSTRUCTIONS (0: no limit)
    of a client's environment."""

    tier: str = "native"
    seed: int = 0
    threads: int = 1
    max_wave_instructions: int = budget.DEFAULT

    @classmethod
    def from_environment(cls, env: Mapping[str, str]) -> ClientOptions:
        """Raises ValueError naming the variable that does not hold a number."""

        def number(name: str, default: int) -> int:
            text = env.get(name, "")
            if text and not text.isdecimal():
                raise ValueError(f"{name}={text!r} is not a number")
            return int(text) if text else default

        return cls(env.get("STUNTGPU_TIER") or "native", number("STUNTGPU_SEED", 0),
                   number("STUNTGPU_THREADS", os.cpu_count() or 1),
                   budget.max_wave_instructions(env))

    def run_options(self, cancelled: Callable[[], bool]) -> RunOptions:
        return RunOptions(self.seed, self.threads, self.max_wave_instructions, cancelled)


class Signals(Protocol):
    """Where interrupts of a queue go: the driver's events."""

    def signal_event(self, event_id: int, data: int = 0) -> None: ...


class Host:
    """The QueueHost of one queue (see seam.py). The executor is made when a dispatch first needs it."""

    def __init__(self, gpu: Gpu, queue: UserQueue, signals: Signals) -> None:
        self.space = gpu.space
        self.options = gpu.client_options.run_options(lambda: queue.cancelled)
        self.signal_event = signals.signal_event
        self._gpu = gpu

    @property
    def executor(self) -> Executor:
        services, tier = self._gpu.services, self._gpu.client_options.tier
        return services.tally.counting(services.executors.get(self._gpu.chip.arch, tier))

    def timestamp(self) -> int:
        return constant_clock()


class Gpu:
    """One GPU as one client sees it."""

    def __init__(self, chip: Chip, gpu_id: int, render_minor: int, services: Services,
                 options: ClientOptions) -> None:
        self.chip, self.gpu_id, self.render_minor = chip, gpu_id, render_minor
        self.services, self.client_options = services, options
        self.space = AddressSpace()
        self.vram = Heap("vram", chip.device.vram_bytes)
        self.queues: dict[int, UserQueue] = {}
        self._slots: dict[int, int] = {}

    def map(self, va: int, size: int, host: int, name: str, perms: int) -> None:
        """Make [va, va+size) show host memory. Raises ValueError on overlap."""
        self.space.map(va, size, host, name=name, perms=perms)

    def unmap(self, va: int) -> None:
        """Remove the mapping that starts at va. Raises KeyError."""
        self.space.unmap(va)

    def register_queue(self, ring: Ring, doorbell_host: int, signals: Signals,
                       on_fault: Callable[[UserQueue, Fault], None]) -> UserQueue:
        """A queue that listens to the u64 doorbell at `doorbell_host`. Raises Unmodelled."""
        from stuntgpu.mockdrivers.core.queue import create

        queue = UserQueue(ring, on_fault)
        processor: QueueProcessor = create(ring, Host(self, queue, signals))
        queue.start(processor)
        self.queues[ring.queue_id] = queue
        self._slots[ring.queue_id] = self.services.doorbells.watch(doorbell_host, queue.ring_doorbell)
        return queue

    def destroy_queue(self, queue_id: int) -> None:
        """Stop a queue, cancelling what it runs. Raises KeyError."""
        queue = self.queues.pop(queue_id)
        self.services.doorbells.unwatch(self._slots.pop(queue_id))
        queue.stop()
        queue.join(STOP_TIMEOUT_S)

    def stop(self) -> bool:
        """Stop all queues; False when one still runs after STOP_TIMEOUT_S, so its memory must stay."""
        queues = list(self.queues.values())
        for queue in queues:
            queue.stop()
        for slot in self._slots.values():
            self.services.doorbells.unwatch(slot)
        self._slots.clear()
        self.queues.clear()
        stopped = [queue.join(STOP_TIMEOUT_S) for queue in queues]  # every one, not until the first
        return all(stopped)


class ClientMemory:
    """System memory of one client: GTT buffers, pinned user pages, doorbell and event pages."""

    def __init__(self) -> None:
        self.gtt = Heap("gtt", GTT_BYTES)
        self.user_heap = Heap("user", GTT_BYTES)
        self.user = UserPages(self.user_heap)

    def close(self) -> None:
        """Nothing runs on it any more: give everything back to the host."""
        self.user.close()
        self.user_heap.close()
        self.gtt.close()
