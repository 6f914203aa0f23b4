"""Host memory behind GPU memory: sparse memfds that client, server and native code all map.

A `Heap` is one memfd mapped whole into this process (nothing is resident until touched); a `Buffer` is
a range of it. A client maps the same pages by the descriptor and the buffer's offset, so every side
sees the same bytes. User pages ("userptr") become pages of a heap too: the shim puts them under the
client's own addresses.

Units:   bytes; sizes and offsets are multiples of PAGE.
Errors:  OutOfMemory when a heap's capacity is used up; OSError when the host refuses.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import threading
from bisect import insort
from dataclasses import dataclass

PAGE = 4096
MADV_REMOVE = 9
MAP_SHARED, MAP_FIXED, MAP_NORESERVE = mmap.MAP_SHARED, 0x10, 0x4000
PROT_RW = mmap.PROT_READ | mmap.PROT_WRITE
F_ADD_SEALS, F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW = 1033, 1, 2, 4
SPREAD = 4  # file offsets per byte of capacity: a freed range is not reused soon

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64)
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class OutOfMemory(Exception):
    """A heap has no room of the size asked for."""


def round_up(size: int, unit: int = PAGE) -> int:
    """The least multiple of `unit` that holds `size`."""
    return -(-size // unit) * unit


def map_shared(fd: int, offset: int, size: int, at: int | None = None) -> int:
    """Map `fd`'s pages into this process, at `at` when given. Raises OSError."""
    flags = MAP_SHARED | MAP_NORESERVE | (MAP_FIXED if at is not None else 0)
    host = _libc.mmap(at, size, PROT_RW, flags, fd, offset)
    if host is None or host == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(host)


def unmap(host: int, size: int) -> None:
    """Undo map_shared."""
    _libc.munmap(host, size)


class Extents:
    """Free ranges of [0, size), handed out next-fit so that a freed range rests before it is reused."""

    def __init__(self, size: int) -> None:
        self._free: list[tuple[int, int]] = [(0, size)]  # (start, end), sorted, apart
        self._next = 0

    def take(self, size: int, align: int = PAGE) -> int | None:
        """Start of a range of `size`, or None."""
        for floor in (self._next, 0):
            for start, end in self._free:
                at = round_up(max(start, floor), align)
                if at + size <= end:
                    self._free.remove((start, end))
                    for piece in ((start, at), (at + size, end)):
                        if piece[0] < piece[1]:
                            insort(self._free, piece)
                    self._next = at + size
                    return at
        return None

    def give(self, start: int, size: int) -> None:
        """Take the range back, joining it with its neighbours."""
        end = start + size
        for piece in list(self._free):
            if piece[1] == start or piece[0] == end:
                self._free.remove(piece)
                start, end = min(start, piece[0]), max(end, piece[1])
        insort(self._free, (start, end))


class Heap:
    """One kind of memory of one client: a sealed sparse memfd of SPREAD * capacity bytes of offsets."""

    def __init__(self, name: str, capacity: int) -> None:
        self.name, self.capacity, self.used = name, capacity, 0
        self.span = round_up(capacity) * SPREAD
        self.fd = os.memfd_create(f"stuntgpu-{name}", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, self.span)
        fcntl.fcntl(self.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
        self.host = map_shared(self.fd, 0, self.span)
        self.inode = os.fstat(self.fd).st_ino
        self._extents = Extents(self.span)
        self._lock = threading.Lock()

    @property
    def available(self) -> int:
        return self.capacity - self.used

    def allocate(self, size: int) -> Buffer:
        """A zeroed buffer of `size` rounded up to pages. Raises OutOfMemory."""
        size = round_up(size)
        with self._lock:
            offset = self._extents.take(size) if size <= self.available else None
            if offset is None:
                raise OutOfMemory(f"{self.name}: {size} bytes asked for, {self.available} of {self.capacity} free")
            self.used += size
        return Buffer(self, offset, size)

    def release(self, offset: int, size: int) -> None:
        """Give a buffer's range back; its pages are dropped at once and read as zeros."""
        _libc.madvise(self.host + offset, size, MADV_REMOVE)
        with self._lock:
            self._extents.give(offset, size)
            self.used -= size

    def close(self) -> None:
        """Drop everything. No address inside may be used afterwards."""
        unmap(self.host, self.span)
        os.close(self.fd)


@dataclass(slots=True)
class Buffer:
    """[offset, offset + size) of a heap."""

    heap: Heap
    offset: int
    size: int

    @property
    def host(self) -> int:
        """Where this process sees it."""
        return self.heap.host + self.offset

    def free(self) -> None:
        self.heap.release(self.offset, self.size)
