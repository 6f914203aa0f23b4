"""KFD events of one process: created, set by interrupts or by the process, waited for.

Rules are those of the kernel's kfd_events.c: an auto-reset event wakes all its present waiters and is
then unset again; ids of signal events are slots of the mailbox page; id 0 is never given out, so that a
packet without a context id names no event.

Units:   times in seconds; payload structs of isa.abi.kfd.
Errors:  DriverError (EINVAL unknown id, ENOSPC no slot left, EIO an event went away under a wait).
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from errno import EINVAL, ENOSPC

from stuntgpu.isa.abi import kfd as abi
from stuntgpu.mockdrivers.core.device import fail

FIRST_SIGNAL_ID = 1
FIRST_OTHER_ID = abi.KFD_SIGNAL_EVENT_LIMIT
TICK_S = 0.1

EXCEPTIONS = (abi.EventType.MEMORY, abi.EventType.HW_EXCEPTION)
Payload = abi.MemoryExceptionData | abi.HwExceptionData


@dataclass(eq=False, slots=True)
class Waiter:
    """One event in one WAIT_EVENTS call."""

    event: Event
    asked_age: int
    activated: bool = False


@dataclass(eq=False, slots=True)
class Event:
    """`age` counts settings from 1, so that a waiter notices one it slept through."""

    event_id: int
    type: int
    auto_reset: bool
    signaled: bool = False
    destroyed: bool = False
    age: int = 1
    payload: Payload | None = None
    waiters: list[Waiter] = field(default_factory=list)


class Events:
    """All events of one process. Safe for any thread."""

    def __init__(self) -> None:
        self._events: dict[int, Event] = {}
        self._changed = threading.Condition()
        self._page_host = 0  # the mailbox page as this process maps it; 0: none yet
        self._closed = False

    @property
    def has_page(self) -> bool:
        return self._page_host != 0

    def set_page(self, host: int) -> None:
        """Use KFD_SIGNAL_EVENT_LIMIT mailbox slots of u64 at `host`; all become unsignaled."""
        self._page_host = host
        ctypes.memset(host, 0xFF, abi.KFD_SIGNAL_EVENT_LIMIT * 8)

    def create(self, type_: int, auto_reset: bool) -> Event:
        """A new event. Raises DriverError."""
        signal = type_ in (abi.EventType.SIGNAL, abi.EventType.DEBUG_EVENT)
        ids = range(FIRST_SIGNAL_ID, FIRST_OTHER_ID) if signal else range(FIRST_OTHER_ID, 2 * FIRST_OTHER_ID)
        with self._changed:
            event_id = next((i for i in ids if i not in self._events), None)
            if event_id is None:
                fail(ENOSPC, "create_event", f"{len(ids)} events exist")
            event = self._events[event_id] = Event(event_id, type_, auto_reset)
            return event

    def _find(self, event_id: int, call: str) -> Event:
        return self._events.get(event_id) or fail(EINVAL, f"{call}.event_id", event_id)

    def destroy(self, event_id: int) -> None:
        """Waits for the event end with a failure."""
        with self._changed:
            self._find(event_id, "destroy_event").destroyed = True
            del self._events[event_id]
            self._changed.notify_all()

    def set_by_process(self, event_id: int) -> None:
        """SET_EVENT: only signal events."""
        with self._changed:
            self._set(self._signal_event(event_id, "set_event"))

    def reset(self, event_id: int) -> None:
        """RESET_EVENT: only signal events."""
        with self._changed:
            self._signal_event(event_id, "reset_event").signaled = False

    def _signal_event(self, event_id: int, call: str) -> Event:
        event = self._find(event_id, call)
        if event.type != abi.EventType.SIGNAL:
            fail(EINVAL, f"{call}.event_type", event.type)
        return event

    def _set(self, event: Event) -> None:
        event.signaled = not event.auto_reset or not event.waiters
        event.age += 1
        for waiter in event.waiters:
            waiter.activated = True
        self._changed.notify_all()

    def interrupt(self, event_id: int) -> None:
        """The GPU interrupted with this context id; one that names no event wakes every event whose
        mailbox slot was written."""
        with self._changed:
            named = self._events.get(event_id)
            if named is not None and named.type == abi.EventType.SIGNAL:
                self._acknowledge(named)
                return
            for event in list(self._events.values()):
                if event.type == abi.EventType.SIGNAL and self._slot(event.event_id) != abi.UNSIGNALED_EVENT_SLOT:
                    self._acknowledge(event)

    def _slot(self, event_id: int) -> int:
        if not self._page_host:
            return abi.UNSIGNALED_EVENT_SLOT
        return int(ctypes.c_uint64.from_address(self._page_host + 8 * event_id).value)

    def _acknowledge(self, event: Event) -> None:
        if self._page_host:
            slot = ctypes.c_uint64.from_address(self._page_host + 8 * event.event_id)
            slot.value = abi.UNSIGNALED_EVENT_SLOT
        self._set(event)

    def exception(self, type_: abi.EventType, payload: Payload) -> None:
        """A fault: set all events of the type with what happened. A process that has no exception event
        at all could not hear of it, so all its waits fail from now on."""
        with self._changed:
            hears = [e for e in self._events.values() if e.type in EXCEPTIONS]
            for event in hears:
                if event.type == type_:
                    event.payload = payload
                    self._set(event)
            self._closed = self._closed or not hears
            self._changed.notify_all()

    def close(self) -> None:
        """The process has gone: all waits end."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def wait(self, data: list[abi.EventData], wait_for_all: bool, timeout_s: float | None,
             tick: Callable[[], None]) -> abi.WaitResult:
        """Wait and fill in payloads. `tick` is called every TICK_S and may raise to give up."""
        with self._changed:
            waiters = [self._new_waiter(d) for d in data]
        try:
            result = self._wait(waiters, wait_for_all, timeout_s, tick)
        finally:
            with self._changed:
                for waiter in waiters:
                    if waiter in waiter.event.waiters:
                        waiter.event.waiters.remove(waiter)
        if result is abi.WaitResult.COMPLETE:
            for d, waiter in zip(data, waiters, strict=True):
                _fill(d, waiter)
        return result

    def _new_waiter(self, data: abi.EventData) -> Waiter:
        event = self._find(data.event_id, "wait_events")
        age = data.payload.last_event_age if event.type == abi.EventType.SIGNAL else 0
        waiter = Waiter(event, age, event.signaled or (age not in (0, event.age)))
        event.signaled = event.signaled and not event.auto_reset
        event.waiters.append(waiter)
        return waiter

    def _wait(self, waiters: list[Waiter], wait_for_all: bool, timeout_s: float | None,
              tick: Callable[[], None]) -> abi.WaitResult:
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        enough = all if wait_for_all else any
        next_tick = time.monotonic() + TICK_S
        while True:
            with self._changed:
                result = self._state(waiters, enough)
                now = time.monotonic()
                until = next_tick if deadline is None else min(next_tick, deadline)
                if result is None and now < until:
                    self._changed.wait(until - now)
                    continue
            if result is not None:
                return result
            if deadline is not None and now >= deadline:
                return abi.WaitResult.TIMEOUT
            tick()
            next_tick = time.monotonic() + TICK_S

    def _state(self, waiters: list[Waiter], enough: Callable[[list[bool]], bool]) -> abi.WaitResult | None:
        if any(w.event.destroyed for w in waiters):
            return abi.WaitResult.FAIL
        if enough([w.activated for w in waiters]):
            return abi.WaitResult.COMPLETE
        return abi.WaitResult.FAIL if self._closed else None


def _fill(data: abi.EventData, waiter: Waiter) -> None:
    event = waiter.event
    if not waiter.activated:
        return
    if isinstance(event.payload, abi.MemoryExceptionData):
        data.payload.memory_exception_data = event.payload
    elif isinstance(event.payload, abi.HwExceptionData):
        data.payload.hw_exception_data = event.payload
    elif event.type == abi.EventType.SIGNAL and waiter.asked_age:
        data.payload.last_event_age = event.age
