"""Doorbells: shared memory that one native loop watches for all queues of the server.

Units:   a doorbell is a u64; it starts as NOT_RUNG so that a first value of 0 is seen.
"""

from __future__ import annotations

import ctypes
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

log = logging.getLogger("stuntgpu.doorbell")

NOT_RUNG = 0xFFFF_FFFF_FFFF_FFFF
SLOTS = 4096
SHORTEST_SLEEP_NS, LONGEST_SLEEP_NS = 20_000, 1_000_000
QUIET_SLEEP_NS = 4_000_000  # when nothing rang for QUIET_AFTER_S
QUIET_AFTER_S = 2.0
ROUND_NS = 200_000_000

SHIM = Path(__file__).resolve().parent.parent / "libstuntgpu.so"


class _Bell(ctypes.Structure):
    """The native side's struct sg_doorbell (native/poll.c)."""

    _fields_ = (("at", ctypes.c_uint64), ("seen", ctypes.c_uint64))


class Doorbells:
    """Watches every doorbell of the server; calls back on its own thread with the new value."""

    def __init__(self) -> None:
        self._bells = (_Bell * SLOTS)()
        self._count = ctypes.c_int(0)
        self._handlers: dict[int, Callable[[int], None]] = {}
        self._retired: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._active_at = 0.0

    def watch(self, host: int, handler: Callable[[int], None]) -> int:
        """Watch the u64 at `host`, giving a slot for `unwatch`."""
        ctypes.c_uint64.from_address(host).value = NOT_RUNG
        with self._lock:
            slot = next((i for i in range(SLOTS) if i not in self._handlers), None)
            if slot is None:
                raise OSError(f"more than {SLOTS} queues in one server")
            self._handlers[slot] = handler
            self._active_at = time.monotonic()
            self._bells[slot].seen = NOT_RUNG
            self._bells[slot].at = host
            self._count.value = max(self._handlers) + 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._loop, name="doorbells", daemon=True)
                self._thread.start()
        return slot

    def unwatch(self, slot: int) -> None:
        """Stop watching; the memory may still be read until a function given to `retire` runs."""
        with self._lock:
            self._bells[slot].at = 0
            self._handlers.pop(slot, None)

    def retire(self, release: Callable[[], None]) -> None:
        """Call `release` (unmap a doorbell page) once the native loop cannot be reading any more."""
        with self._lock:
            if self._thread is not None:
                self._retired.append(release)
                return
        release()

    def _loop(self) -> None:
        poll = ctypes.CDLL(str(SHIM)).stuntgpu_poll_doorbells
        poll.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
        bells, count = ctypes.addressof(self._bells), ctypes.addressof(self._count)
        while True:
            quiet = time.monotonic() - self._active_at > QUIET_AFTER_S
            sleeps = (QUIET_SLEEP_NS, QUIET_SLEEP_NS) if quiet else (SHORTEST_SLEEP_NS, LONGEST_SLEEP_NS)
            self._deliver(poll(bells, count, *sleeps, ROUND_NS))

    def _deliver(self, slot: int) -> None:
        handler = None
        if slot >= 0:
            self._active_at = time.monotonic()
        with self._lock:
            retired, self._retired = self._retired, []
            bell = self._bells[slot] if slot >= 0 else None
            if bell is not None and bell.at:
                bell.seen = value = ctypes.c_uint64.from_address(bell.at).value
                handler = self._handlers.get(slot)
        for release in retired:
            release()
        if handler is not None:
            handler(value)
