"""A process's GPU virtual address space: regions of GPU VA backed by host memory, every access checked.

The table is mirrored in a C array so native code looks addresses up without Python.

Units:   bytes; `GpuVA` is a 64-bit GPU virtual address, `HostAddr` a host pointer.
Errors:  KeyError-free: a lookup that misses is reported by the executors as KernelFault("page fault").
"""

from __future__ import annotations

import ctypes
import threading
from bisect import bisect_right, insort
from dataclasses import dataclass, field
from typing import NewType

GpuVA = NewType("GpuVA", int)
HostAddr = NewType("HostAddr", int)

READ, WRITE, EXECUTE = 1, 2, 4


@dataclass(frozen=True, slots=True, order=True)
class Region:
    """[va, va + size) backed by host memory at `host`; `name` is for reports; `keep` pins the owner."""

    va: int
    size: int
    host: int
    perms: int = READ | WRITE | EXECUTE
    name: str = ""
    keep: object = field(default=None, compare=False, repr=False)

    @property
    def end(self) -> int:
        return self.va + self.size


class CRegion(ctypes.Structure):
    """The native mirror of a Region (kept in step with emu/native/core.h)."""

    _fields_ = (("va", ctypes.c_uint64), ("size", ctypes.c_uint64), ("host", ctypes.c_uint64),
                ("perms", ctypes.c_uint64))


class AddressSpace:
    """GPU VA -> host pointer. Thread-safe; `generation` counts changes so native mirrors know when to refresh."""

    def __init__(self) -> None:
        self._regions: list[Region] = []
        self._lock = threading.RLock()
        self.generation = 0
        self._native: tuple[int, ctypes.Array[CRegion]] | None = None

    def map(self, va: int, size: int, host: int, *, perms: int = READ | WRITE | EXECUTE, name: str = "",
            keep: object = None) -> Region:
        """Map [va, va+size). Raises ValueError when it overlaps a mapped region or size is not positive."""
        if size <= 0:
            raise ValueError(f"map size {size} at 0x{va:x}")
        region = Region(va, size, host, perms, name, keep)
        with self._lock:
            i = bisect_right(self._regions, va, key=lambda r: r.va)
            if (i and self._regions[i - 1].end > va) or (i < len(self._regions) and self._regions[i].va < region.end):
                raise ValueError(f"map 0x{va:x}+0x{size:x} overlaps a mapped region")
            insort(self._regions, region, key=lambda r: r.va)
            self.generation += 1
        return region

    def unmap(self, va: int) -> Region:
        """Remove the region that starts at va. Raises KeyError when there is none."""
        with self._lock:
            i = bisect_right(self._regions, va, key=lambda r: r.va) - 1
            if i < 0 or self._regions[i].va != va:
                raise KeyError(va)
            self.generation += 1
            return self._regions.pop(i)

    def find(self, va: int, size: int = 1) -> Region | None:
        """The region that holds all of [va, va+size), or None."""
        regions = self._regions
        i = bisect_right(regions, va, key=lambda r: r.va) - 1
        return regions[i] if i >= 0 and va + size <= regions[i].end else None

    def host(self, va: int, size: int) -> int | None:
        """Host pointer of [va, va+size), or None when not fully inside one region."""
        r = self.find(va, size)
        return None if r is None else r.host + (va - r.va)

    def read(self, va: int, size: int) -> bytes:
        """Bytes at va; may span adjacent regions. Raises LookupError naming the address that is not mapped."""
        return b"".join(ctypes.string_at(h, n) for h, n in self._pieces(va, size))

    def write(self, va: int, data: bytes | bytearray | memoryview) -> None:
        """Store bytes at va; may span adjacent regions. Raises LookupError, then nothing was written."""
        at, raw = 0, bytes(data)
        for h, n in list(self._pieces(va, len(raw))):
            ctypes.memmove(h, raw[at : at + n], n)
            at += n

    def _pieces(self, va: int, size: int) -> list[tuple[int, int]]:
        out: list[tuple[int, int]] = []
        while size > 0:
            r = self.find(va)
            if r is None:
                raise LookupError(f"0x{va:x} is not mapped; {self.describe(va)}")
            n = min(size, r.end - va)
            out.append((r.host + va - r.va, n))
            va, size = va + n, size - n
        return out

    def describe(self, va: int) -> str:
        """The nearest allocation, in words: '0x40 bytes past the end of "a" [0x..., 0x...)'."""
        regions = self._regions
        i = bisect_right(regions, va, key=lambda r: r.va) - 1
        best: tuple[int, str] | None = None
        for j in (i, i + 1):
            if 0 <= j < len(regions):
                r = regions[j]
                label = f'"{r.name or "unnamed"}" [0x{r.va:x}, 0x{r.end:x})'
                if r.va <= va < r.end:
                    return f"inside {label}"
                d, text = (r.va - va, f"0x{r.va - va:x} bytes before {label}") if va < r.va else (
                    va - r.end + 1, f"0x{va - r.end:x} bytes past the end of {label}")
                best = (d, text) if best is None or d < best[0] else best
        return "nearest allocation: " + best[1] if best else "nothing is mapped"

    def native(self) -> ctypes.Array[CRegion]:
        """The regions as a sorted C array, rebuilt when `generation` moved."""
        with self._lock:
            if self._native is None or self._native[0] != self.generation:
                arr = (CRegion * max(1, len(self._regions)))()
                for c, r in zip(arr, self._regions, strict=False):
                    c.va, c.size, c.host, c.perms = r.va, r.size, r.host, r.perms
                self._native = (self.generation, arr)
            return self._native[1]

    def __len__(self) -> int:
        return len(self._regions)
