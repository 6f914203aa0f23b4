"""Trace buffers to packets.

    stream = decode(buffer)            # the first packet says which layout
    for entry in stream:               # when, where and what
        print(entry.time, entry.offset, entry.packet)
    stream.column("INST", "op")        # a field of all packets of a kind, as an array

A stream keeps columns (type, offset, time) and makes packets when asked, so that buffers of millions
of packets are cheap to decode and to search.

How a buffer ends: a packet is read only while 64 bits from its start are in the buffer;
`tail` is what follows the last. See `Stream.report` for what is wrong.

Units:   offsets and lengths in bits; times in cycles of the shader clock, from 0 at the first packet.
Source:  FORMAT.md of the trace goldens, sections 1.1, 1.2 and 4.2.
Errors:  SqttError, with the bit offset: no layout in the first packet; in strict mode also a code that is
         no packet's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from stuntgpu.sqtt.layouts import BY_NUMBER, MISC_PACKET_LOST
from stuntgpu.sqtt.packets import Layout, Packet, SqttError

Array = npt.NDArray[Any]

#: A packet is read when this many bits from its start are there.
WINDOW = 64
NIBBLE = 4
#: The hardware counts its write pointer in these.
POINTER_UNIT_BYTES = 32


@dataclass(frozen=True, slots=True)
class Entry:
    """A packet where it was seen: number in the stream, bit offset in the buffer, time after it."""

    index: int
    offset: int
    time: int
    packet: Packet

    def __str__(self) -> str:
        return f"{self.time:>10} {self.offset:#08x} {self.packet!r}"


@dataclass(frozen=True, slots=True)
class Report:
    """What is wrong with a stream; all empty when nothing is.

    unknown   offsets of units that are no packet's start (read as UNKNOWN).
    lost      indices of packets that say packets before them were lost.
    skipped   bits dropped at the start of a wrapped ring before it is certain where packets start.
    cut       offset of a packet that the end of the buffer cuts off, or None. Buffers as hardware leaves them
              have one more often than not: the write pointer counts whole units, packets do not fill them.
    """

    unknown: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()
    skipped: int = 0
    cut: int | None = None

    @property
    def is_clean(self) -> bool:
        """Whether everything between the first packet and the last was read and was there."""
        return not (self.unknown or self.lost or self.skipped)

    def __str__(self) -> str:
        parts = []
        if self.unknown:
            parts.append(f"{len(self.unknown)} unknown codes, the first at bit {self.unknown[0]:#x}")
        if self.lost:
            parts.append(f"packets lost before {len(self.lost)} packets, the first number {self.lost[0]}")
        if self.skipped:
            parts.append(f"{self.skipped} bits skipped at the start of the ring")
        if self.cut is not None:
            parts.append(f"the packet at bit {self.cut:#x} is cut off")
        return "; ".join(parts) or "clean"


@dataclass(frozen=True, eq=False)
class Stream(Sequence[Entry]):
    """Packets of one buffer, in order.

    buffer    the bytes, oldest first.
    types     (n,) uint8: index into `layout.kinds`.
    offsets   (n,) int64: where each packet starts.
    end       offset after the last packet; the bits from there on are the tail.
    skipped   bits left out before the first packet.
    """

    layout: Layout
    buffer: bytes
    types: Array
    offsets: Array
    end: int
    skipped: int = 0

    def __len__(self) -> int:
        return len(self.types)

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Entry]: ...
    def __getitem__(self, index: int | slice) -> Entry | Sequence[Entry]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        i = range(len(self))[index]
        return Entry(i, int(self.offsets[i]), int(self.times[i]), self.packet(i))

    def __iter__(self) -> Iterator[Entry]:
        rows = zip(self.offsets.tolist(), self.times.tolist(), self.packets(), strict=True)
        return (Entry(i, offset, time, packet) for i, (offset, time, packet) in enumerate(rows))

    def packet(self, index: int) -> Packet:
        """Packet number `index`, which is not negative."""
        kind = self.layout.kinds[int(self.types[index])]
        return kind._made(_bits(self.buffer, int(self.offsets[index]), kind.BITS))

    def packets(self, indices: Array | None = None) -> Iterator[Packet]:
        """All packets, or those at `indices`, without where and when."""
        types, offsets, windows = self.types, self.offsets, self.windows
        if indices is not None:
            types, offsets, windows = types[indices], offsets[indices], windows[indices]
        kinds, buffer = self.layout.kinds, self.buffer
        masks = [(1 << k.BITS) - 1 for k in kinds]
        for t, offset, window in zip(types.tolist(), offsets.tolist(), windows.tolist(), strict=True):
            kind = kinds[t]
            yield kind._made(window & masks[t] if kind.BITS <= WINDOW else _bits(buffer, offset, kind.BITS))

    def where(self, *names: str) -> Array:
        """Indices of the packets called one of `names`. Raises KeyError."""
        numbers = [self.layout.numbers[self.layout[n].NAME] for n in names]
        return np.flatnonzero(np.isin(self.types, numbers))

    def column(self, name: str, field: str) -> Array:
        """Field of all packets called `name`, (n,) uint64. Raises KeyError, FieldError."""
        f = self.layout[name]._field(field)
        return self.windows[self.where(name)] >> np.uint64(f.lo) & np.uint64(f.max)

    def counts(self) -> dict[str, int]:
        """How many packets of each kind, those that occur."""
        counted = np.bincount(self.types, minlength=len(self.layout.kinds)).tolist()
        return {k.NAME: n for k, n in zip(self.layout.kinds, counted, strict=True) if n}

    @cached_property
    def windows(self) -> Array:
        """(n,) uint64: the 64 bits from each packet's start, zero past the end of the buffer."""
        return _windows(self.buffer, self.offsets)

    @cached_property
    def times(self) -> Array:
        """(n,) uint64: the clock after each packet."""
        return _times(self.layout, self.types, self.windows)

    @property
    def tail(self) -> tuple[int, int]:
        """(bits, value) of what follows the last packet; 0 bits when that packet reaches the end."""
        n = max(0, 8 * len(self.buffer) - self.end)
        return n, _bits(self.buffer, self.end, n) if n else 0

    @cached_property
    def report(self) -> Report:
        """What is wrong with the stream."""
        unknown = self.offsets[self.where("UNKNOWN")].tolist()
        return Report(tuple(unknown), self._lost(), self.skipped, self._cut())

    def _lost(self) -> tuple[int, ...]:
        if "MISC" not in self.layout:
            return ()  # the RDNA formats have no such packet: the driver reads a register
        return tuple(self.where("MISC")[self.column("MISC", "misc_type") == MISC_PACKET_LOST].tolist())

    def _cut(self) -> int | None:
        """Where the packet starts whose bits the buffer lacks."""
        size = 8 * len(self.buffer)
        if self.end > size:
            return int(self.offsets[-1])
        at = self.end
        while at < size:
            kind = self.layout.kind_of(_bits(self.buffer, at, 8))
            if at + kind.BITS > size:
                return at
            at += kind.BITS
        return None


# ---------------------------------------------------------------- entry points


def decode(buffer: bytes | bytearray | memoryview, *, layout: Layout | None = None, strict: bool = False) -> Stream:
    """The packets of a buffer that starts with a packet; `layout` None: the first one tells.

    Strict raises SqttError for what no packet starts with; otherwise a unit of it becomes UNKNOWN, and
    `Stream.report` tells of it.
    """
    data = bytes(buffer)
    chosen = layout or detect(data)
    return _checked(_decode(data, chosen, 0, 0), strict)


def decode_ring(
    buffer: bytes | bytearray | memoryview, write_pointer: int, *, wrapped: bool, layout: Layout | None = None,
    strict: bool = False,
) -> Stream:
    """The packets of a ring that the hardware stopped writing at byte `write_pointer`.

    Not wrapped, the bytes before the pointer are the trace. Wrapped, the oldest byte is at the pointer and may
    be the middle of a packet: packets start to count from where every possible start agrees, and the header is
    overwritten, so `layout` has to be told. `Stream.buffer` is the ring in order of writing.
    """
    if not 0 <= write_pointer <= len(buffer):
        raise SqttError(f"write pointer {write_pointer:#x} is outside the ring of {len(buffer):#x} bytes")
    data = bytes(buffer)
    if not wrapped:
        return decode(data[:write_pointer], layout=layout, strict=strict)
    if layout is None:
        raise SqttError("a wrapped ring has no header left: say which layout it has")
    data = data[write_pointer:] + data[:write_pointer]
    start = _certain_start(data, layout)
    return _checked(_decode(data, layout, start, start), strict)


def detect(data: bytes) -> Layout:
    """The layout that the first packet of a buffer names. Raises SqttError when it names none."""
    header = BY_NUMBER[3].LAYOUT_HEADER
    word = int.from_bytes(data[: WINDOW // 8], "little")
    if 8 * len(data) < WINDOW or header.LAYOUT.kind_of(word) is not header:
        raise SqttError("no trace: the first packet is no LAYOUT_HEADER", 0)
    number = header.FIELDS["layout"].read(word)
    if number not in BY_NUMBER:
        raise SqttError(f"trace of unknown layout {number}; known: {', '.join(map(str, BY_NUMBER))}", 0)
    return BY_NUMBER[number]


def _checked(stream: Stream, strict: bool) -> Stream:
    if strict and stream.report.unknown:
        at = stream.report.unknown[0]
        raise SqttError(f"{_bits(stream.buffer, at, 8):#04x} starts no packet of {stream.layout.name}", at)
    return stream


# ---------------------------------------------------------------- reading


def _codes(data: bytes) -> bytes:
    """The 8 bits from every nibble on; past the end, zeros."""
    low = np.frombuffer(data, np.uint8)
    after = np.append(low[1:], np.uint8(0))
    codes = np.empty(2 * len(low), np.uint8)
    codes[0::2] = low
    codes[1::2] = low >> 4 | after << 4
    return codes.tobytes()


def _decode(data: bytes, layout: Layout, start: int, skipped: int) -> Stream:
    if 8 * len(data) < WINDOW:
        return Stream(layout, data, np.empty(0, np.uint8), np.empty(0, np.int64), start, skipped)
    codes = _codes(data)
    steps = [k.BITS // NIBBLE for k in layout.by_code]
    at, places = start // NIBBLE, []
    for_last = len(codes) - WINDOW // NIBBLE
    while at <= for_last:
        places.append(at)
        at += steps[codes[at]]
    positions = np.array(places, np.int64)
    types = np.array([layout.numbers[k.NAME] for k in layout.by_code], np.uint8)
    return Stream(layout, data, types[np.frombuffer(codes, np.uint8)[positions]], positions * NIBBLE, at * NIBBLE, skipped)


def _certain_start(data: bytes, layout: Layout) -> int:
    """First offset at which a packet starts whatever part of a packet the data starts with.

    The true start is one of the offsets below the longest packet. All are followed until they meet; one that
    comes to no packet's code was not it.
    """
    codes = _codes(data)
    unit = layout.unit // NIBBLE
    candidates = set(range(0, layout.longest // NIBBLE, unit))
    while len(candidates) > 1:
        at = min(candidates)
        if at >= len(codes):
            break
        candidates.remove(at)
        kind = layout.by_code[codes[at]]
        if kind is not layout.unknown or not candidates:
            candidates.add(at + kind.BITS // NIBBLE)
    return min(min(candidates), len(codes)) * NIBBLE


def _bits(data: bytes, offset: int, n: int) -> int:
    """`n` bits from `offset` on, zeros past the end."""
    piece = data[offset >> 3 : (offset + n + 7) >> 3]
    return int.from_bytes(piece, "little") >> (offset & 7) & ((1 << n) - 1)


def _windows(data: bytes, offsets: Array) -> Array:
    padded = np.frombuffer(data + bytes(2 * WINDOW // 8), np.uint8)
    views = np.lib.stride_tricks.sliding_window_view(padded, 8)
    at = offsets >> 3
    low: Array = np.ascontiguousarray(views[at]).view("<u8").reshape(-1)
    shift = (offsets & 7).astype(np.uint64)
    above = padded[at + 8].astype(np.uint64)
    shifted: Array = low >> shift | np.where(shift > 0, above << (np.uint64(64) - shift) % np.uint64(64), np.uint64(0))
    return shifted


# ---------------------------------------------------------------- time


def _times(layout: Layout, types: Array, windows: Array) -> Array:
    """(n,) uint64: the clock after each packet."""
    rows = np.array([_time_row(k) for k in layout.kinds], np.uint64)[types]
    lo, mask, scale, more = rows.T
    steps = (windows >> lo & mask) * scale + more
    for number, kind in enumerate(layout.kinds):
        if kind.TIME == "mark":
            steps[(types == number) & _is_mark(kind, windows)] = 0
    times = np.cumsum(steps, dtype=np.uint64)
    clocks = np.flatnonzero([k.TIME == "clock" for k in layout.kinds])
    return _set_clocks(times, np.flatnonzero(np.isin(types, clocks)), windows, layout) if len(clocks) else times


def _time_row(kind: type[Packet]) -> tuple[int, int, int, int]:
    """(lowest bit of the delta, its mask, what it is multiplied with, what is added)."""
    if kind.TIME in ("none", "clock"):
        return 0, 0, 0, 0
    delta = kind.FIELDS["delta"]
    return delta.lo, delta.max, 4 if kind.TIME == "delta*4" else 1, 4 if kind.TIME == "delta+4" else 0


def _is_mark(kind: type[Packet], windows: Array) -> Array:
    rt, pl = (windows >> np.uint64(kind.FIELDS[f].lo) & np.uint64(1) for f in ("rt", "pl"))
    marks: Array = (rt == 1) & (pl == 0)
    return marks


def _set_clocks(times: Array, clocks: Array, windows: Array, layout: Layout) -> Array:
    """`times` with the jumps of absolute timestamps: the first fixes the offset, later ones set the clock."""
    kind = layout.TIMESTAMP
    counted = times.copy()  # the sum of deltas alone
    offset: int | None = None
    for i in clocks.tolist():
        word = int(windows[i])
        if kind.FIELDS["reserved"].read(word):
            continue
        stamp = kind.FIELDS["timestamp"].read(word)
        if offset is None:
            offset = stamp - int(times[i])
            continue
        now = ((stamp - offset) & ~3) - 4
        times[i:] = counted[i:] + np.uint64((now - int(counted[i])) % 2**64)
    return times
