"""Packets to trace buffers.

    encode(stream)                     # the bytes it was decoded from
    encode([GFX11.INST(...), ...])     # those packets, end to end

    w = Writer(GFX11)                  # starts with the header
    w.at(5000, "WAVESTART", simd=0, wgp=0, wave=3)
    w.at(5012, "VALUINST", wave=3)     # 12 cycles do not fit its delta: a TS packet comes before it
    buffer = w.finish()

Units:   lengths in bits; times in cycles of the shader clock from the start of the buffer.
Source:  FORMAT.md of the trace goldens, sections 1, 1.2, 4.1 and 4.2.
Errors:  SqttError for packets of two layouts, times that go back, and packets whose time is not the
         writer's to choose. FieldError for fields that do not fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stuntgpu.sqtt.decode import POINTER_UNIT_BYTES, WINDOW, Stream
from stuntgpu.sqtt.layouts import HEADER_SE_LO, HEADERS
from stuntgpu.sqtt.packets import Layout, Packet, SqttError

#: Bits gathered before they become bytes: long integers are slow to grow, short ones are many.
_CHUNK = 4096
#: A gap on gfx9 is MISC packets up to this many, a timestamp beyond.
_MAX_MISC = 4


def encode(packets: Stream | Iterable[Packet]) -> bytes:
    """The bytes of packets, end to end; of a stream its tail too, so that they are those it was read from.

    Packets that end inside a byte leave the rest of it zero. Raises SqttError when layouts differ.
    """
    if not isinstance(packets, Stream):
        return _joined((p.word, p.bits) for p in _of_one_layout(packets))
    n_tail, tail = packets.tail
    head = int.from_bytes(packets.buffer[: (packets.skipped + 7) // 8], "little") & ((1 << packets.skipped) - 1)
    pieces = _around((head, packets.skipped), packets.packets(), (tail, n_tail))
    return _joined(pieces)[: len(packets.buffer)]  # the last packet may be cut off


def _around(head: tuple[int, int], packets: Iterable[Packet], tail: tuple[int, int]) -> Iterator[tuple[int, int]]:
    yield head
    for p in packets:
        yield p.word, p.bits
    yield tail


def _of_one_layout(packets: Iterable[Packet]) -> Iterator[Packet]:
    layout: Layout | None = None
    for p in packets:
        if layout not in (None, p.LAYOUT):
            raise SqttError(f"{p!r} is of {p.LAYOUT.name}, those before it of {layout and layout.name}")
        layout = p.LAYOUT
        yield p


def _joined(pieces: Iterable[tuple[int, int]]) -> bytes:
    """Bytes of (word, bits) pieces, the first lowest."""
    out = bytearray()
    pending = n = 0
    for word, bits in pieces:
        pending |= word << n
        n += bits
        if n >= _CHUNK:
            whole = n >> 3
            out += (pending & ((1 << 8 * whole) - 1)).to_bytes(whole, "little")
            pending >>= 8 * whole
            n &= 7
    return bytes(out + pending.to_bytes((n + 7) >> 3, "little"))


class Writer:
    """A buffer under construction, told what happens when.

    Times must not go back. They are rounded down to what the layout's clock counts in, 4 cycles on gfx9.

    se       shader engine that the first packet names, where it is not the hardware's (gfx9).
    now      time of the last packet.
    packets  what was written so far, the header first.
    coarse   state that TS_WAVE_STATE packets report from now on.
    """

    def __init__(self, layout: Layout, *, se: int = 0) -> None:
        self.layout, self.now, self.coarse = layout, 0, 0
        header = HEADERS[layout.name] | (se << HEADER_SE_LO if layout.added_bits else 0)
        self.packets: list[Packet] = [layout.LAYOUT_HEADER.from_word(header)]
        self._has_clock = False

    def at(self, time: int, name: str, **fields: int) -> Packet:
        """Write a packet with the time given, gaps bridged; its delta is not among `fields`. The packet as written."""
        kind = self.layout[name]
        if kind.TIME not in ("none", "delta") or "delta" in fields:
            raise SqttError(f"{name}: the writer keeps the clock, and this packet sets it")
        delta = self._reach(time, kind.FIELDS["delta"].max if kind.TIME == "delta" else 0)
        packet = kind(**fields, delta=delta) if kind.TIME == "delta" else kind(**fields)
        return self._add(packet)

    def mark(self, time: int, clock: int) -> Packet:
        """Write a sample of the real-time clock (10 ns ticks) on RDNA. Raises SqttError on gfx9."""
        if "TS_DELTA_OR_MARK" not in self.layout:
            raise SqttError(f"{self.layout.name} traces have no markers of the real-time clock")
        self._reach(time, 0)
        kind = self.layout.TS_DELTA_OR_MARK
        return self._add(kind(rt=1, delta=clock & kind.FIELDS["delta"].max))

    def wait(self, time: int) -> None:
        """Move the clock to `time` without a packet of its own."""
        self._reach(time, 0)

    def finish(self) -> bytes:
        """The buffer, padded so that the last packet is read and the write pointer is whole."""
        size = sum(p.bits for p in self.packets)
        needed = max(size, size - self.packets[-1].bits + WINDOW)
        added = self.layout.added_bits
        units = -((added - needed) // (8 * POINTER_UNIT_BYTES))
        return encode(self.packets).ljust(added // 8 + units * POINTER_UNIT_BYTES, b"\0")

    # ---- the clock

    def _add(self, packet: Packet) -> Packet:
        self.packets.append(packet)
        return packet

    def _reach(self, time: int, own: int) -> int:
        """Move the clock to `time` with packets, but for the rest that a delta of at most `own` can say: returned."""
        gap = time - self.now
        if gap < 0:
            raise SqttError(f"time goes back from {self.now} to {time}")
        if "MISC" in self.layout:
            self._count_up(time - time % self.layout.clock_step)
            return 0
        while gap > own:
            packet, step = self._bridge(gap)
            self._add(packet)
            gap -= step
        self.now = time
        return gap

    def _bridge(self, gap: int) -> tuple[Packet, int]:
        """(the packet that covers most of an RDNA gap, cycles it covers), as the hardware chooses it."""
        layout = self.layout
        short, state, long = layout.TS_DELTA_SHORT, layout.TS_WAVE_STATE, layout.TS_DELTA_OR_MARK
        if 4 <= gap <= 4 + short.FIELDS["delta"].max:
            return short(delta=gap - 4), gap
        if gap <= state.FIELDS["delta"].max:
            return state(delta=gap, coarse=self.coarse), gap
        step = min(gap, long.FIELDS["delta"].max)
        return long(delta=step), step

    def _count_up(self, time: int) -> None:
        """Move a clock to `time` that only MISC and TIMESTAMP packets move."""
        step = self.layout.clock_step
        misc, stamp = self.layout.MISC, self.layout.TIMESTAMP
        most = misc.FIELDS["delta"].max * step
        if time - self.now > _MAX_MISC * most:
            if not self._has_clock:
                self._add(stamp(timestamp=self.now))  # the first one says what the clock's zero is: our own
                self._has_clock = True
            self._add(stamp(timestamp=time + step))
            self.now = time
        while self.now < time:
            cycles = min(time - self.now, most)
            self._add(misc(delta=cycles // step))
            self.now += cycles
