"""User pages: a client's own memory, put on a heap's pages under its own addresses.

The shim copies a range into the heap's memfd and maps that over the range; client and GPU then see the
same bytes. Which pages are ours already is read from the client's memory map, never remembered: the
client may unmap and reuse addresses as it likes. Pages shared by overlapping calls stay until the last
of them goes, then turn back into private memory, contents kept.

Units:   bytes; ranges are whole pages.
Errors:  ClientError(EFAULT) when part of the range is not mapped or is memory of a device.
Limits:  a store of another thread between copy and remap is lost; a file's shared mapping is cut
         loose from its file (logged).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from errno import EFAULT

from stuntgpu.mockdrivers.core.memory import Heap, map_shared, unmap
from stuntgpu.mockdrivers.protocol import Caller, ClientError, MapsRow

log = logging.getLogger("stuntgpu.memory")

OURS = "/memfd:stuntgpu-"  # heap files as /proc/PID/maps names them
ADDRESSES = 1 << 47  # of a process


@dataclass(frozen=True, slots=True)
class Piece:
    """`size` bytes at the client's `address` that live at `offset` of the heap."""

    address: int
    offset: int
    size: int


@dataclass(slots=True)
class PinnedPages:
    """One pinned range; `host` is where this process sees its pieces side by side."""

    heap: Heap
    address: int
    size: int
    pieces: list[Piece]
    host: int = field(init=False)

    def __post_init__(self) -> None:
        first = self.pieces[0]
        if all(p.offset - p.address == first.offset - first.address for p in self.pieces):
            self.host = self.heap.host + first.offset
            return
        self.host = map_shared(self.heap.fd, 0, self.size)  # takes the place; the pieces go over it
        for piece in self.pieces:
            map_shared(self.heap.fd, piece.offset, piece.size, self.host + piece.address - self.address)

    def unmap(self) -> None:
        """Drop the view this process has of scattered pieces; nothing may use `host` any more."""
        if not self.heap.host <= self.host < self.heap.host + self.heap.span:
            unmap(self.host, self.size)


class UserPages:
    """All pinned ranges of one client. Calls are serialised by the driver."""

    def __init__(self, heap: Heap) -> None:
        self.heap = heap
        self._pins: list[PinnedPages] = []
        self._retired: list[PinnedPages] = []  # a kernel may still run on them

    def pin(self, address: int, size: int, caller: Caller) -> PinnedPages:
        """Make [address, address + size) pages of the heap.

        Raises ClientError, OutOfMemory; the client's memory is as it was then.
        """
        pieces: list[Piece] = []
        try:
            for row, lo, hi in _covering(caller.maps(address, size), address, size):
                pieces.append(self._piece(row, lo, hi - lo, caller))
        except BaseException:
            self._drop(pieces, caller)
            raise
        pinned = PinnedPages(self.heap, address, size, pieces)
        self._pins.append(pinned)
        return pinned

    def _piece(self, row: MapsRow, address: int, size: int, caller: Caller) -> Piece:
        if row.inode == self.heap.inode and row.path.startswith(OURS):
            piece = Piece(address, row.offset + address - row.lo, size)
            if any(self._unshared(piece)):
                raise ClientError(EFAULT)  # pages we never pinned: a map that is not true
            return piece
        if row.path.startswith("/") and not row.path.startswith("/dev/zero") and row.perms[3] == "s":
            log.warning("pinning a shared mapping of %s cuts it loose from the file", row.path)
        buffer = self.heap.allocate(size)
        try:
            caller.reback(address, size, row.prot, self.heap.fd, buffer.offset)
        except BaseException:
            buffer.free()
            raise
        return Piece(address, buffer.offset, size)

    def unpin(self, pinned: PinnedPages, caller: Caller) -> None:
        """Give the pages no other pin holds back to the client as private memory."""
        self._pins.remove(pinned)
        self._retired.append(pinned)
        self._drop(pinned.pieces, caller)

    def _drop(self, pieces: list[Piece], caller: Caller) -> None:
        """Wherever the client has moved the pages to meanwhile (mremap), they become private there."""
        alone = [part for piece in pieces for part in self._unshared(piece)]
        if not alone:
            return
        for row in caller.maps(0, ADDRESSES):
            if row.inode == self.heap.inode:
                for part in alone:
                    _restore(row, part, caller)
        for part in alone:
            self.heap.release(part.offset, part.size)

    def _unshared(self, piece: Piece) -> Iterator[Piece]:
        """The parts of a piece whose heap pages no live pin has."""
        held = sorted((p.offset, p.offset + p.size) for pin in self._pins for p in pin.pieces
                      if p.offset < piece.offset + piece.size and piece.offset < p.offset + p.size)
        at, end = piece.offset, piece.offset + piece.size
        for lo, hi in [*held, (end, end)]:
            if at < lo:
                yield Piece(piece.address + at - piece.offset, at, min(lo, end) - at)
            at = max(at, hi)

    def close(self) -> None:
        """The client has gone and nothing runs on its memory: drop all views."""
        for pinned in (*self._pins, *self._retired):
            pinned.unmap()


def _restore(row: MapsRow, part: Piece, caller: Caller) -> None:
    """The pages of `part` that this mapping shows."""
    lo, hi = max(row.offset, part.offset), min(row.offset + row.hi - row.lo, part.offset + part.size)
    if lo < hi:
        caller.restore(row.lo + lo - row.offset, hi - lo, row.prot)


def _covering(rows: list[MapsRow], address: int, size: int) -> list[tuple[MapsRow, int, int]]:
    """(mapping, lo, hi) side by side over the whole range. Raises ClientError(EFAULT)."""
    found, at, end = [], address, address + size
    for row in rows:
        foreign = row.path.startswith(OURS) and not row.path.startswith(OURS + "user")
        if not row.lo <= at < row.hi or foreign:
            raise ClientError(EFAULT)
        found.append((row, at, min(row.hi, end)))
        at = found[-1][2]
    if at < end:
        raise ClientError(EFAULT)
    return found
