"""Packets to buffers, and the writer that keeps the clock."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stuntgpu.sqtt.decode import POINTER_UNIT_BYTES, decode
from stuntgpu.sqtt.encode import Writer, encode
from stuntgpu.sqtt.layouts import GFX9, GFX11, GFX12
from stuntgpu.sqtt.packets import Layout, SqttError
from tests.sqtt.streams import LAYOUTS, header

GAPS = st.one_of(st.integers(0, 30), st.integers(0, 600), st.integers(0, 1 << 20), st.integers(0, 1 << 40))


def test_packets_of_two_layouts_do_not_mix() -> None:
    with pytest.raises(SqttError, match="is of gfx12, those before it of gfx11"):
        encode([GFX11.NOP(), GFX12.NOP()])


def test_packets_lie_end_to_end_from_the_lowest_bit() -> None:
    assert encode([GFX11.NOP(), GFX11.VALUINST(wave=31), GFX11.NOP()]) == bytes([0x30, 0xF8, 0x00])


@given(st.sampled_from(LAYOUTS), st.lists(st.tuples(GAPS, st.sampled_from(["WAVESTART", "WAVEEND", "INST"])), max_size=30))
@settings(max_examples=30)
def test_packets_are_read_at_the_times_they_were_written_at(layout: Layout, events: list[tuple[int, str]]) -> None:
    writer, time, told = Writer(layout), 0, []
    for gap, name in events:
        time += gap
        told.append((time - time % layout.clock_step, name, writer.at(time, name, wave=3)))
    buffer = writer.finish()
    stream = decode(buffer, strict=True)
    names = {name for _, name, _ in told}
    assert [(e.time, e.packet.NAME, e.packet) for e in stream if e.packet.NAME in names] == told
    assert (len(buffer) - (8 if layout is GFX9 else 0)) % POINTER_UNIT_BYTES == 0
    assert stream.report.cut is None


@pytest.mark.parametrize(("gap", "bridge"), [
    (0, []), (7, []), (8, ["TS_DELTA_SHORT"]), (19, ["TS_DELTA_SHORT"]), (20, ["TS_WAVE_STATE"]), (511, ["TS_WAVE_STATE"]),
    (512, ["TS_DELTA_OR_MARK"]), ((1 << 36) + 4, ["TS_DELTA_OR_MARK"]),
])  # fmt: skip
def test_gaps_are_bridged_as_hardware_does(gap: int, bridge: list[str]) -> None:
    writer = Writer(GFX11)
    writer.at(gap, "WAVEEND", wave=1)
    assert [p.NAME for p in writer.packets[1:-1]] == bridge


def test_wave_state_packets_carry_the_state() -> None:
    writer = Writer(GFX11)
    writer.coarse = 9
    writer.wait(400)
    assert writer.packets[-1] == GFX11.TS_WAVE_STATE(delta=400, coarse=9)


def test_markers_tell_the_real_time_without_moving_the_clock() -> None:
    writer = Writer(GFX12)
    writer.mark(1000, 77)
    assert [(e.time, e.packet.delta) for e in decode(writer.finish()) if e.packet.NAME == "TS_DELTA_OR_MARK"] == [(1000, 1000), (1000, 77)]
    with pytest.raises(SqttError, match="no markers"):
        Writer(GFX9).mark(0, 1)


def test_the_gfx9_header_names_the_shader_engine() -> None:
    assert Writer(GFX9, se=5).packets[0].word == header(GFX9).word | 5 << 24


def test_times_do_not_go_back() -> None:
    writer = Writer(GFX11)
    writer.at(100, "WAVEEND")
    with pytest.raises(SqttError, match="back from 100 to 99"):
        writer.at(99, "WAVEEND")


@pytest.mark.parametrize("name", ["TS_DELTA_SHORT", "TS_DELTA_OR_MARK"])
def test_the_clock_is_the_writers(name: str) -> None:
    with pytest.raises(SqttError, match="keeps the clock"):
        Writer(GFX11).at(5, name)
    with pytest.raises(SqttError, match="keeps the clock"):
        Writer(GFX11).at(5, "INST", delta=1)
