"""Doorbells: every new value is seen, a removed one is not, memory is kept until the loop is past it."""

from __future__ import annotations

import ctypes
import queue
import threading

from stuntgpu.mockdrivers.core.doorbell import NOT_RUNG, Doorbells


def test_doorbell_starts_unrung_and_each_value_arrives() -> None:
    bell, seen = ctypes.c_uint64(3), queue.Queue[int]()
    doorbells = Doorbells()
    doorbells.watch(ctypes.addressof(bell), seen.put)
    assert bell.value == NOT_RUNG
    for value in (0, 16, 17):
        bell.value = value
        assert seen.get(timeout=2) == value


def test_unwatched_doorbell_is_silent_and_its_slot_is_reused() -> None:
    a, b, seen = ctypes.c_uint64(), ctypes.c_uint64(), queue.Queue[str]()
    doorbells = Doorbells()
    slot = doorbells.watch(ctypes.addressof(a), lambda _: seen.put("a"))
    doorbells.unwatch(slot)
    a.value = 5
    assert doorbells.watch(ctypes.addressof(b), lambda _: seen.put("b")) == slot
    b.value = 6
    assert seen.get(timeout=2) == "b"
    assert seen.empty()


def test_retired_memory_is_released_after_the_loop_has_passed() -> None:
    bell, released = ctypes.c_uint64(), threading.Event()
    doorbells = Doorbells()
    doorbells.unwatch(doorbells.watch(ctypes.addressof(bell), lambda _: None))
    doorbells.retire(released.set)
    assert released.wait(2)


def test_without_any_queue_memory_is_released_at_once() -> None:
    released = threading.Event()
    Doorbells().retire(released.set)
    assert released.is_set()
