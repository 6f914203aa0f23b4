"""A user queue at work: one thread that runs a packet processor whenever its doorbell moves.

Errors:  a GuestFault or Unmodelled stops the queue for good and goes to `on_fault`; so does a bug of
         ours, which is logged with its traceback first.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from stuntgpu.isa.errors import Bug, GuestFault, Unmodelled
from stuntgpu.mockdrivers.core.doorbell import NOT_RUNG
from stuntgpu.mockdrivers.core.seam import Progress, QueueProcessor, Ring

log = logging.getLogger("stuntgpu.queue")

RETRY_PAUSES_S = ((200, 20e-6), (2000, 1e-3))  # up to so many tries; what is waited for usually comes soon
LONGEST_RETRY_S = 4e-3

Fault = GuestFault | Unmodelled | Bug


class UserQueue:
    """Runs `processor` on a thread of its own.

    cancelled   true once destroyed: executors and processors poll it.
    fault       what stopped the queue, or None.
    """

    def __init__(self, ring: Ring, on_fault: Callable[[UserQueue, Fault], None]) -> None:
        self.ring = ring
        self.cancelled = False
        self.paused = False
        self.fault: Fault | None = None
        self._on_fault = on_fault
        self._wptr = NOT_RUNG
        self._fresh = False
        self._bell = threading.Condition()
        self._thread: threading.Thread | None = None

    def start(self, processor: QueueProcessor) -> None:
        """Begin to listen."""
        self._thread = threading.Thread(target=self._loop, args=(processor,), daemon=True,
                                        name=f"queue {self.ring.queue_id}")
        self._thread.start()

    def ring_doorbell(self, value: int) -> None:
        """The doorbell now reads `value`: consume the ring up to there."""
        with self._bell:
            self._wptr, self._fresh = value, True
            self._bell.notify()

    def pause(self, paused: bool) -> None:
        """Stop taking packets, or go on; what runs now runs on."""
        with self._bell:
            self.paused = paused
            self._fresh = True
            self._bell.notify()

    def stop(self) -> None:
        """Ask the thread to end; a running kernel is cancelled at its next quantum."""
        with self._bell:
            self.cancelled = True
            self._bell.notify()

    def join(self, timeout_s: float) -> bool:
        """Wait for the thread; False when it still runs."""
        if self._thread is None or self._thread is threading.current_thread():
            return True
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _next(self, timeout_s: float | None) -> int | None:
        """The write pointer to run to, after a ring or the time-out; None: the queue ends."""
        with self._bell:
            if not self.cancelled and not self._fresh:
                self._bell.wait(timeout_s)
            while not self.cancelled and (self.paused or self._wptr == NOT_RUNG
                                          or (timeout_s is None and not self._fresh)):
                self._bell.wait()
            self._fresh = False
            return None if self.cancelled else self._wptr

    def _loop(self, processor: QueueProcessor) -> None:
        tries = 0
        while (wptr := self._next(_retry_pause_s(tries) if tries else None)) is not None:
            try:
                progress = processor.run(wptr)
            except (GuestFault, Unmodelled) as e:
                return self._stop_with(e)
            except Exception as e:
                log.exception("queue %d: a bug of stuntgpu's, please report it", self.ring.queue_id)
                return self._stop_with(Bug(f"{type(e).__name__}: {e} (traceback in the server's log)"))
            tries = tries + 1 if progress is Progress.RETRY else 0

    def _stop_with(self, fault: Fault) -> None:
        if self.cancelled:
            return
        self.fault = fault
        self._on_fault(self, fault)


def _retry_pause_s(tries: int) -> float:
    return next((pause for limit, pause in RETRY_PAUSES_S if tries < limit), LONGEST_RETRY_S)


def constant_clock() -> int:
    """The GPU's 100 MHz counter."""
    return time.monotonic_ns() // 10
