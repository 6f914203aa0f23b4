"""The timeline of a device: one 64-bit signal that counts finished submissions, in order.

Every submission waits for the value before its own and writes its own when it is done, so work on
either queue follows what came before it on the other.

The queues compare and write 32 bits at a time. Values are written low half first, so that a reader
between the two sees a smaller value, never a larger one; and no submission waits for a value whose
high half is new, or across its change: `must_drain` tells the device to let everything finish first.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

from stuntgpu.isa.packets import pm4, sdma
from stuntgpu.isa.packets.base import Compare, Packet
from stuntgpu.runtime.kfd import Allocation, Event

MASK32 = 0xFFFF_FFFF


class Timeline:
    """The signal lives at the start of `memory` (CPU-visible)."""

    def __init__(self, memory: Allocation, event: Event, start: int = 0) -> None:
        self.va, self.event = memory.va, event
        self._signal: ctypes.c_uint64 = memory.u64(0)
        self._signal.value = self.submitted = start

    @property
    def reached(self) -> int:
        """The last finished submission."""
        return self._signal.value

    @property
    def next(self) -> int:
        return self.submitted + 1

    @property
    def must_drain(self) -> bool:
        """Whether 32 bits cannot tell the values around the next submission apart."""
        return not self.next & MASK32 or not self.submitted & MASK32

    def is_done(self, value: int) -> bool:
        return self._signal.value >= value

    def skip(self) -> None:
        """Count everything submitted as finished: what was lost with a queue will never signal."""
        self._signal.value = self.submitted

    # ---- the packets around a submission

    def pm4_wait(self) -> Iterator[Packet]:
        """Stand still until the submission before is done."""
        if not self.is_done(self.submitted):
            yield pm4.WaitRegMem(function=Compare.GE, mem_space=pm4.MemSpace.MEMORY, addr=self.va,
                                 ref=self.submitted & MASK32, mask=MASK32, poll_interval=4)

    def pm4_signal(self) -> Iterator[Packet]:
        """Flush, write the next value, and interrupt."""
        flush = pm4.gcr(pm4.Gcr.GLM_WB, pm4.Gcr.GLM_INV, pm4.Gcr.GLV_INV, pm4.Gcr.GL1_INV, pm4.Gcr.GL2_INV,
                        pm4.Gcr.GL2_WB) >> 2  # RELEASE_MEM has no bits for the scalar and instruction caches
        done = pm4.ReleaseMem(event_type=pm4.CACHE_FLUSH_AND_INV_TS_EVENT, event_index=pm4.END_OF_PIPE,
                              gcr_control=flush & 0x1FFF)
        yield done.replace(addr=self.va, data=self.next, data_sel=pm4.DataSel.ALL_64)
        yield done.replace(addr=self.event.mailbox_va, data=self.event.event_id, data_sel=pm4.DataSel.ALL_64,
                           int_sel=pm4.IntSel.AFTER_WRITE, int_ctxid=self.event.event_id)

    def sdma_wait(self) -> Iterator[Packet]:
        if not self.is_done(self.submitted):
            yield sdma.PollRegmem(mem_poll=True, function=Compare.GE, addr=self.va, ref=self.submitted & MASK32,
                                  mask=MASK32, interval=4, retry_count=0xFFF)

    def sdma_signal(self) -> Iterator[Packet]:
        yield sdma.Fence(addr=self.va, data=self.next & MASK32)
        yield sdma.Fence(addr=self.va + 4, data=self.next >> 32)
        yield sdma.Fence(addr=self.event.mailbox_va, data=self.event.event_id)
        yield sdma.Trap(context=self.event.event_id)
