"""Heaps: ranges never overlap, freed pages read as zeros, capacity is kept to."""

from __future__ import annotations

import ctypes
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stuntgpu.mockdrivers.core.memory import PAGE, Extents, Heap, OutOfMemory, map_shared, unmap

SIZE = 64 * PAGE


@given(st.lists(st.one_of(st.integers(1, 20), st.integers(-8, -1)), max_size=60))
def test_extents_never_hand_out_a_byte_twice(steps: list[int]) -> None:
    extents, held = Extents(SIZE), []
    for step in steps:
        if step > 0:
            at = extents.take(step * PAGE)
            if at is not None:
                assert at % PAGE == 0
                assert at + step * PAGE <= SIZE
                assert all(at + step * PAGE <= lo or lo + n <= at for lo, n in held)
                held.append((at, step * PAGE))
        elif held:
            extents.give(*held.pop(step % len(held)))
    for lo, n in held:
        extents.give(lo, n)
    assert extents.take(SIZE) == 0


def test_extents_let_a_freed_range_rest() -> None:
    extents = Extents(SIZE)
    first = extents.take(PAGE)
    assert first == 0
    extents.give(0, PAGE)
    assert extents.take(PAGE) == PAGE


def test_heap_shows_the_same_bytes_through_its_descriptor() -> None:
    heap = Heap("test", SIZE)
    buffer = heap.allocate(100)
    view = map_shared(heap.fd, buffer.offset, buffer.size)
    ctypes.memset(view, 0x5A, 10)
    assert ctypes.string_at(buffer.host, 11) == b"\x5a" * 10 + b"\0"
    unmap(view, buffer.size)
    heap.close()


def test_freed_pages_read_as_zeros() -> None:
    heap = Heap("test", SIZE)
    buffer = heap.allocate(PAGE)
    ctypes.memset(buffer.host, 0xFF, PAGE)
    buffer.free()
    assert ctypes.string_at(buffer.host, PAGE) == bytes(PAGE)
    assert heap.used == 0
    heap.close()


def test_heap_capacity_is_kept_to() -> None:
    heap = Heap("test", SIZE)
    heap.allocate(SIZE - PAGE)
    with pytest.raises(OutOfMemory, match=f"test: {2 * PAGE} bytes asked for, {PAGE} of {SIZE} free"):
        heap.allocate(PAGE + 1)
    heap.close()


def test_a_client_cannot_shrink_the_file_under_the_server() -> None:
    heap = Heap("test", SIZE)
    with pytest.raises(PermissionError):
        os.ftruncate(heap.fd, 0)
    heap.close()
