"""The seam between a driver's queues and the packet processors that run them.

A driver (kfd, later pci and nvrm) owns threads, address spaces and events; a packet processor
(`pm4.py`, `sdma.py`, later `aql.py`) knows packets. They meet here and nowhere else:

    processor = stuntgpu.mockdrivers.core.queue.create(ring, host)    # raises Unmodelled: kind not built
    processor.run(wptr) -> Progress                                   # on the queue's own thread

Units:   `wptr` and the value at `rptr_va` grow for ever: dwords on a PM4 ring, bytes on SDMA.
Errors:  `run` raises PacketError (bad packet) or KernelFault (bad kernel), both GuestFault, or
         Unmodelled. The driver then stops that queue for good and raises the event hardware would.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from stuntgpu.emu.launch import Executor, RunOptions
from stuntgpu.emu.memory import AddressSpace


class QueueKind(Enum):
    """What a ring carries."""

    PM4 = "PM4"
    SDMA = "SDMA"
    AQL = "AQL"


class Progress(Enum):
    """Why `run` came back. IDLE: everything up to wptr is consumed. RETRY: a packet (WAIT_REG_MEM,
    POLL_REGMEM) waits for memory, rptr rests on it; call again soon."""

    IDLE = "idle"
    RETRY = "retry"


@dataclass(frozen=True, slots=True)
class Ring:
    """One user queue as its driver created it; every address is a GpuVA in `QueueHost.space`.

    arch         "gfx1100": picks packet and register sets.
    size_bytes   power of two; positions are taken modulo it.
    rptr_va      u64 the processor keeps up to date as packets retire.
    wptr_va      u64 the client keeps; the doorbell value handed to `run` is what counts.
    eop_va       end-of-pipe buffer, 0 when the queue has none.
    xcc          number of accelerator dies that run the queue together.
    """

    queue_id: int
    kind: QueueKind
    arch: str
    va: int
    size_bytes: int
    rptr_va: int
    wptr_va: int
    eop_va: int = 0
    eop_bytes: int = 0
    xcc: int = 1


class QueueHost(Protocol):
    """What a processor may ask of the driver. Implementations are safe to call from any thread.

    space     the client's memory on this GPU; every access goes through it.
    executor  runs dispatches; `options.cancelled()` turns true when the queue is destroyed or its
              client has gone, long loops of a processor poll it and return.
    """

    @property
    def space(self) -> AddressSpace: ...

    @property
    def executor(self) -> Executor: ...

    @property
    def options(self) -> RunOptions: ...

    def signal_event(self, event_id: int, data: int = 0) -> None:
        """An interrupt with this context id arrived (RELEASE_MEM INT_SEL, SDMA TRAP). An id that
        names no event wakes every event whose mailbox slot was written, as the driver does."""

    def timestamp(self) -> int:
        """The GPU's constant clock: 100 MHz ticks, 64 bits, the clock GET_CLOCK_COUNTERS shows."""


class QueueProcessor(Protocol):
    """Consumes one ring. Called by one thread at a time."""

    def run(self, wptr: int) -> Progress:
        """Consume packets up to `wptr`, storing rptr as they retire.

        Raises   GuestFault (PacketError, KernelFault) or Unmodelled; the processor is dead after it.
        """
