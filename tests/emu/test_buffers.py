"""Placing host memory in a GPU's address space."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stuntgpu.emu.buffers import ALIGN, GUARD, Placement
from stuntgpu.emu.memory import AddressSpace

BASE = 0x1000_0000_0000


@given(st.lists(st.integers(0, 5 * GUARD), max_size=20))
def test_reservations_are_aligned_and_guarded(sizes: list[int]) -> None:
    placement, end = Placement(AddressSpace(), BASE), BASE - GUARD
    for size in sizes:
        va = placement.reserve(size)
        assert va % ALIGN == 0
        assert va >= end + GUARD
        end = va + size


def test_an_overrun_as_long_as_the_buffer_is_still_unmapped() -> None:
    space = AddressSpace()
    placement = Placement(space, BASE)
    big, small = np.zeros(4 * GUARD, np.uint8), np.zeros(1, np.uint8)
    va = placement.array(big, "big")
    placement.array(small, "small")
    assert space.find(va + 2 * big.nbytes - 1) is None


def test_clear_unmaps_and_starts_again() -> None:
    space = AddressSpace()
    placement = Placement(space, BASE)
    first = placement.block(b"abc", "a")
    assert space.read(first, 3) == b"abc"
    placement.clear()
    assert len(space) == 0
    assert placement.zeros(8, "b") == first
    assert space.read(first, 8) == bytes(8)
    assert placement.zeros(0, "nothing") == 0


def test_remove_frees_one_array() -> None:
    space = AddressSpace()
    placement = Placement(space, BASE)
    a, b = np.zeros(4), np.ones(4)
    va = placement.array(a, "a")
    placement.array(b, "b")
    placement.remove(a)
    assert placement.find(a) is None
    assert space.find(va) is None
    assert len(space) == 1
