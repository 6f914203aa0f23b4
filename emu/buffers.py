"""Memory of a launch: numpy arrays and small blocks placed in a GPU's address space, without copies.

Units:   bytes.
Errors:  LaunchError names the argument.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from stuntgpu.emu.descriptor_launch import LaunchError
from stuntgpu.emu.memory import READ, WRITE, AddressSpace
from stuntgpu.isa.abi.targets import round_up

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

#: Placements start on such a boundary, as allocators of real drivers do ...
ALIGN = 0x1_0000
#: ... and at least this much is unmapped after each, so that overruns fault.
GUARD = 0x10_0000


def host_address(array: Array) -> int:
    """Where an array's bytes are."""
    return int(array.__array_interface__["data"][0])


def check_array(array: Array, label: str) -> None:
    """Raises LaunchError for arrays whose memory a GPU cannot use in place."""
    if array.dtype.hasobject:
        raise LaunchError(f"{label}: array of Python objects ({array.dtype})")
    if not array.flags.c_contiguous:
        raise LaunchError(f"{label}: the array is not contiguous (strides {array.strides}); pass np.ascontiguousarray(...)")
    if not array.flags.writeable:
        raise LaunchError(f"{label}: the array is read-only; pass a copy")


class Placement:
    """A stretch of GPU addresses handed out from low to high with guards in between.

    An array placed twice (the same memory) has one address. `clear` unmaps everything and starts
    again, so that a launch sees the same addresses every time.
    """

    def __init__(self, space: AddressSpace, base: int) -> None:
        self.space, self.base = space, base
        self._next = base
        self._placed: dict[tuple[int, int], int] = {}

    def reserve(self, size: int) -> int:
        """An address with `size` bytes of nothing behind it, and a guard."""
        va = self._next
        self._next = round_up(va + size + max(GUARD, size), ALIGN)
        return va

    def array(self, array: Array, name: str, *, perms: int = READ | WRITE) -> int:
        """Map an array's own memory; GPU writes are seen in it at once. Empty arrays map nothing."""
        key = (host_address(array), array.nbytes)
        if key in self._placed:
            return self._placed[key]
        va = self.reserve(array.nbytes)
        if array.nbytes:
            self.space.map(va, array.nbytes, key[0], perms=perms, name=name, keep=array)
            self._placed[key] = va
        return va

    def block(self, data: bytes, name: str) -> int:
        """Map a copy of `data`."""
        return self.array(np.frombuffer(bytearray(data), np.uint8), name)

    def zeros(self, size: int, name: str) -> int:
        """Map `size` zero bytes (pages of it exist once they are touched); 0 when size is 0."""
        return self.array(np.zeros(size, np.uint8), name) if size else 0

    def remove(self, array: Array) -> None:
        """Unmap one array. Raises KeyError when it is not placed here."""
        self.space.unmap(self._placed.pop((host_address(array), array.nbytes)))

    def find(self, array: Array) -> int | None:
        """The address of an array placed here."""
        return self._placed.get((host_address(array), array.nbytes)) if self._placed else None

    def clear(self) -> None:
        """Unmap everything."""
        for va in self._placed.values():
            self.space.unmap(va)
        self._placed.clear()
        self._next = self.base
