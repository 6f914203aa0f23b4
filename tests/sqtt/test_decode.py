"""Buffers to packets: whole, cut off, wrapped, wrong."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stuntgpu.sqtt.decode import POINTER_UNIT_BYTES, decode, decode_ring
from stuntgpu.sqtt.encode import Writer, encode
from stuntgpu.sqtt.layouts import GFX9, GFX11, GFX12
from stuntgpu.sqtt.packets import Layout, Packet, SqttError
from tests.sqtt.streams import LAYOUTS, header, sequences

STREAMS = st.sampled_from(LAYOUTS).flatmap(sequences)


def times(layout: Layout, *after: Packet) -> list[int]:
    """Times of packets behind a header, without those of the padding."""
    stream = decode(encode([header(layout), *after]) + bytes(16))
    return [e.time for e in stream][1 : 1 + len(after)]


def slow_decode(buffer: bytes, layout: Layout) -> list[tuple[int, Packet]]:
    """What the format says, a packet at a time: (offset, packet)."""
    word, at, found = int.from_bytes(buffer, "little"), 0, []
    while at + 64 <= 8 * len(buffer):
        kind = layout.kind_of(word >> at)
        found.append((at, kind.from_word(word >> at & ((1 << kind.BITS) - 1))))
        at += kind.BITS
    return found


@given(STREAMS)
@settings(max_examples=30)
def test_the_packets_written_are_read(packets: list[Packet]) -> None:
    buffer = encode(packets) + bytes(16)
    stream = decode(buffer, strict=True)
    assert stream.layout is packets[0].LAYOUT
    assert list(stream.packets())[: len(packets)] == packets
    assert [(e.offset, e.packet) for e in stream] == slow_decode(buffer, stream.layout)


@given(st.sampled_from(LAYOUTS), st.binary(min_size=0, max_size=200))
@settings(max_examples=30)
def test_any_bytes_are_read_as_the_format_says_and_written_back(layout: Layout, data: bytes) -> None:
    stream = decode(data, layout=layout)
    assert [(e.offset, e.packet) for e in stream] == slow_decode(data, layout)
    assert encode(stream) == data
    assert [stream[i] for i in range(len(stream))] == list(stream) == list(stream[:])


@given(STREAMS, st.data())
@settings(max_examples=30)
def test_a_buffer_cut_short_gives_the_packets_before_the_cut(packets: list[Packet], data: st.DataObject) -> None:
    whole = encode(packets)
    buffer = whole[: data.draw(st.integers(8, len(whole)))]
    stream = decode(buffer)
    whole = [p for e, p in zip(stream, packets, strict=False) if e.offset + p.bits <= 8 * len(buffer)]
    assert list(stream.packets())[: len(whole)] == whole
    assert len(stream) - len(whole) <= 1, "a packet of more than 64 bits may be read in part"
    assert encode(stream) == buffer


def test_a_packet_that_the_end_cuts_off_is_reported() -> None:
    buffer = encode([header(GFX11), GFX11.NOP(), GFX11.NOP(), GFX11.REG(hi_byte=0x80, val32=7)])
    stream = decode(buffer[:-2])
    assert stream.report.cut == 72
    assert stream.report.is_clean, "nothing before the end is wrong"
    assert "bit 0x48 is cut off" in str(stream.report)
    assert decode(buffer + bytes(8)).report.cut is None


def test_what_starts_no_packet_is_an_error_or_an_unknown_unit() -> None:
    buffer = encode([header(GFX11), GFX11.NOP(), GFX11.NOP()]) + b"\x41" + bytes(16)
    assert GFX11.kind_of(0x41) is GFX11.unknown
    with pytest.raises(SqttError, match="bit 0x48: 0x41 starts no packet of gfx11") as error:
        decode(buffer, strict=True)
    assert error.value.offset == 72
    stream = decode(buffer)
    assert stream.report.unknown == (72,)
    assert not stream.report.is_clean
    assert stream[3].packet == GFX11.UNKNOWN.from_word(1)


@pytest.mark.parametrize(("buffer", "says"), [
    (b"", "first packet is no LAYOUT_HEADER"), (bytes(64), "first packet is no LAYOUT_HEADER"), (b"\x11", "LAYOUT_HEADER"),
    ((0x11 | 9 << 7).to_bytes(8, "little"), "unknown layout 9"),
])  # fmt: skip
def test_what_is_no_trace_is_refused(buffer: bytes, says: str) -> None:
    with pytest.raises(SqttError, match=says):
        decode(buffer)


# ---------------------------------------------------------------- time


def test_the_time_of_a_packet_is_the_clock_after_its_delta() -> None:
    assert times(GFX11, GFX11.VALUINST(delta=3), GFX11.NOP(), GFX11.TS_DELTA_SHORT(delta=1), GFX11.TS_WAVE_STATE(delta=300)) == [3, 3, 8, 308]


@pytest.mark.parametrize("layout", [GFX11, GFX12], ids=repr)
def test_a_marker_does_not_move_the_clock(layout: Layout) -> None:
    kind = layout.TS_DELTA_OR_MARK
    marks = [kind(delta=100), kind(delta=100, rt=1), kind(delta=100, rt=1, pl=1), kind(delta=100, pl=1)]
    assert times(layout, *marks) == [100, 100, 200, 300]


def test_gfx9_timestamps_set_the_clock() -> None:
    stamp = GFX9.TIMESTAMP
    sequence = [GFX9.MISC(delta=5), stamp(timestamp=1020), GFX9.MISC(delta=1), stamp(timestamp=2007), GFX9.INST(),
                stamp(timestamp=5000, reserved=2), GFX9.MISC(delta=2)]  # fmt: skip
    assert times(GFX9, *sequence) == [20, 20, 24, 1000, 1000, 1000, 1008]


# ---------------------------------------------------------------- columns


def test_columns_are_the_fields_of_packets() -> None:
    stream = decode(encode([header(GFX12), *(GFX12.INST(op=n, wave=n % 4) for n in range(200))]) + bytes(16))
    assert stream.column("INST", "op").tolist() == list(range(200))
    assert stream.counts()["INST"] == len(stream.where("INST")) == 200
    assert [p.op for p in stream.packets(stream.where("INST")[5:8])] == [5, 6, 7]
    assert stream.times.dtype == np.uint64


# ---------------------------------------------------------------- lost, wrapped


def test_gfx9_says_where_packets_were_lost() -> None:
    stream = decode(encode([header(GFX9), GFX9.MISC(misc_type=2), GFX9.MISC()]) + bytes(16))
    assert stream.report.lost == (1,)
    assert "packets lost before 1 packets" in str(stream.report)


def ring_of(layout: Layout, units: int, extra: int) -> tuple[bytes, int, list[Packet]]:
    """(ring, write pointer, all packets written): `extra` bytes more than the ring holds."""
    writer, time = Writer(layout), 0
    while sum(p.bits for p in writer.packets) < 8 * (units * POINTER_UNIT_BYTES + extra):
        time += 4
        fields = {"simd": time // 4 % 4, "wave": time // 16 % 10}
        writer.at(time, "WAVESTART", **fields)
        if "VALUINST" in layout:
            writer.at(time + 1, "VALUINST", wave=1)
    data, size = encode(writer.packets), units * POINTER_UNIT_BYTES
    ring = bytearray(size)
    for at in range(0, len(data), size):
        piece = data[at : at + size]
        ring[: len(piece)] = piece
    return bytes(ring), len(data) % size, writer.packets


@pytest.mark.parametrize("layout", LAYOUTS, ids=repr)
@pytest.mark.parametrize("extra", [1, 50, 333])
def test_a_wrapped_ring_gives_its_last_packets(layout: Layout, extra: int) -> None:
    ring, pointer, written = ring_of(layout, 16, extra)
    stream = decode_ring(ring, pointer, wrapped=True, layout=layout, strict=True)
    read = list(stream.packets())
    ends = [len(written) - n for n in range(16) if written[: len(written) - n][-len(read) :] == read]
    assert ends, "what is read is a run of what was written, to within the tail"
    assert stream.report.skipped == stream.offsets[0] < 2 * 8 * POINTER_UNIT_BYTES
    assert encode(stream) == ring[pointer:] + ring[:pointer]


def test_a_ring_that_did_not_wrap_ends_at_its_pointer() -> None:
    buffer = encode([header(GFX11), GFX11.VALUINST(wave=2), GFX11.NOP()]) + bytes(22)
    stale = buffer + encode([GFX11.VALUINST(wave=9)] * 40)
    assert list(decode_ring(stale, len(buffer), wrapped=False)) == list(decode(buffer))


def test_a_wrapped_ring_needs_a_layout_and_a_pointer_inside() -> None:
    with pytest.raises(SqttError, match="say which layout"):
        decode_ring(bytes(64), 32, wrapped=True)
    with pytest.raises(SqttError, match="outside the ring"):
        decode_ring(bytes(64), 65, wrapped=False)
