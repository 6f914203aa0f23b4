"""Packets are values: immutable, printable, comparable, and nothing but their bits."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stuntgpu.isa.errors import SpecError
from stuntgpu.isa.fields import FieldError
from stuntgpu.sqtt.layouts import BY_NUMBER, GFX9, GFX11, GFX12, HEADERS
from stuntgpu.sqtt.packets import Layout, Packet, SqttError
from tests.sqtt.streams import LAYOUTS, packets


def test_fields_are_attributes() -> None:
    packet = GFX11.INST(delta=1, wave=3, op=0x21)
    assert (packet.delta, packet.wave, packet.op, packet.flag1, packet.bits) == (1, 3, 0x21, 0, 20)
    assert packet.word == 0b010 | 1 << 4 | 3 << 8 | 0x21 << 13
    assert str(packet) == "INST(delta=1, wave=3, op=0x21)"


def test_a_packet_of_another_layout_is_another_packet() -> None:
    assert GFX11.VALUINST(wave=1) != GFX12.VALUINST(wave=1)
    assert GFX11.VALUINST(wave=1) == GFX11.VALUINST(wave=1)
    assert len({GFX11.VALUINST(wave=1), GFX11.VALUINST(wave=1), GFX12.VALUINST(wave=1)}) == 2


def test_packets_do_not_change() -> None:
    packet = GFX11.INST(op=1)
    with pytest.raises(AttributeError, match="immutable"):
        packet.op = 2
    assert packet.replace(op=2).op == 2
    assert packet.op == 1


@pytest.mark.parametrize(("make", "says"), [
    (lambda: GFX11.INST(op=128), "INST.op: 128 is not in 0..127"),
    (lambda: GFX11.INST(wave=-1), "INST.wave: -1"),
    (lambda: GFX11.INST(mask=1), "has no field 'mask'; it has: delta"),
    (lambda: GFX11.INST().replace(op=128), "INST.op: 128"),
    (lambda: GFX11.REG(slot=1, hi_byte=3), "REG.slot: 0x1 contradicts"),
    (lambda: GFX9.TIMESTAMP(reserved=1), "reads as LAYOUT_HEADER"),
    (lambda: GFX11.INST.from_word(0b011), "reads as VALUINST"),
    (lambda: GFX11.NOP.from_word(0x10), "more than 4 bits"),
    (lambda: GFX11.INST(unnamed=1 << 4), "not only bits without a name"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(make: object, says: str) -> None:
    assert callable(make)
    with pytest.raises(FieldError, match=says):
        make()


def test_overlapping_fields_may_agree() -> None:
    packet = GFX11.REG(slot=5, hi_byte=2, subop=0xC342)
    assert (packet.slot, packet.hi_byte) == (5, 2)


def test_bits_without_a_name_are_kept_and_shown() -> None:
    packet = GFX9.WAVEEND.from_word(0b0110 | 1 << 4 | 2 << 14)
    assert packet.unnamed == 1 << 4
    assert repr(packet) == "WAVEEND(simd=2, unnamed=0x10)"
    assert packet == GFX9.WAVEEND(simd=2, unnamed=1 << 4) != GFX9.WAVEEND(simd=2)


def test_a_field_there_is_not_is_an_attribute_error() -> None:
    assert not hasattr(GFX11.NOP(), "delta")
    assert not hasattr(GFX9, "ALUEXEC")
    with pytest.raises(KeyError, match="gfx9 has no packet 'ALUEXEC'"):
        GFX9["ALUEXEC"]


@given(st.sampled_from(LAYOUTS).flatmap(packets))
@settings(max_examples=60)
def test_bits_are_all_there_is_to_a_packet(packet: Packet) -> None:
    kind = type(packet)
    assert kind.from_word(packet.word) == packet
    assert kind(**packet.fields, unnamed=packet.unnamed) == packet
    assert eval(repr(packet), {k.NAME: k for k in packet.LAYOUT}) == packet
    assert pickle.loads(pickle.dumps(packet)) == copy.deepcopy(packet) == packet


@pytest.mark.parametrize("layout", LAYOUTS, ids=repr)
def test_every_code_starts_one_packet(layout: Layout) -> None:
    for code, kind in enumerate(layout.by_code):
        assert kind is layout.kind_of(code | 0xAB00)
        assert kind is layout.unknown or code & ((1 << kind.MATCH_BITS) - 1) == kind.MATCH
    assert {k for k in layout if k is not layout.unknown} == set(layout.by_code) - {layout.unknown}
    assert all(k.BITS % layout.unit == 0 for k in layout)


def test_headers_name_their_layout() -> None:
    for number, layout in BY_NUMBER.items():
        assert layout.LAYOUT_HEADER.from_word(HEADERS[layout.name]).layout == number


@pytest.mark.parametrize("table", [
    "A 01 8 none\nB 01 8 none", "A 01 8 none\nA 10 8 none", "A 01 7 none", "A 01 8 sometimes", "A 01 8 none x=7+2",
])  # fmt: skip
def test_a_wrong_table_is_refused(table: str) -> None:
    with pytest.raises(SpecError):
        Layout("wrong", 4, table)


def test_errors_carry_their_place() -> None:
    error = pickle.loads(pickle.dumps(SqttError("no packet", 0x40)))
    assert (str(error), error.offset) == ("bit 0x40: no packet", 0x40)
