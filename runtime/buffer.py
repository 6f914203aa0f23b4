"""Device memory with a shape."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from stuntgpu.runtime.kfd import Allocation

Array = np.ndarray[Any, Any]


class Buffer:
    """Memory of one device, freed when nothing refers to it any more (or by `free`).

    va      GPU virtual address of the first byte; pass the buffer itself to programs.
    nbytes  bytes in use; the allocation is whole pages.
    """

    def __init__(self, allocation: Allocation, shape: tuple[int, ...], dtype: np.dtype[Any],
                 release: Callable[[Allocation], None]) -> None:
        self.allocation, self.shape, self.dtype = allocation, shape, dtype
        self._finalizer = weakref.finalize(self, release, allocation)
        self._finalizer.atexit = False

    @property
    def va(self) -> int:
        return self.allocation.va

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    @property
    def is_freed(self) -> bool:
        return not self._finalizer.alive

    def free(self) -> None:
        """Give the memory back as soon as work that may use it is done."""
        self._finalizer()

    def __repr__(self) -> str:
        return f"Buffer(va=0x{self.va:x}, shape={self.shape}, dtype={self.dtype})"
