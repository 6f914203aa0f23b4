"""Bit-field layouts: round trip, refusal of what does not fit, and what they print."""

from __future__ import annotations

import pickle
from enum import Enum, IntFlag

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stuntgpu.isa.errors import SpecError
from stuntgpu.isa.fields import BitStruct, FieldError, bits, dword, qword, u8, u16, u32, u64


class Compare(Enum):
    ALWAYS = 0
    LESS = 1
    EQUAL = 3


class Cache(IntFlag):
    GLC = 1
    SLC = 2


class Header(BitStruct):
    kind = bits[7:0].default(9)
    barrier = bits[8].flag()


class Wait(BitStruct):
    header = dword[0].of(Header)
    function = bits[1, 2:0].enum(Compare)
    cache = bits[1, 5:4].enum(Cache)
    step = bits[1, 15:8].signed()
    addr = dword[2:3]
    limit = bits[4, 31:2].unit(4)


def test_fields_sit_where_they_are_declared() -> None:
    wait = Wait(function=Compare.EQUAL, cache=Cache.SLC, step=-1, addr=0x1_0000_0002, limit=16)
    assert wait.words() == (9, 0xFF23, 2, 1, 16 << 0)
    assert wait.SIZE_BYTES == 20
    assert (wait.step, wait.addr, wait.limit, wait.function) == (-1, 0x1_0000_0002, 16, Compare.EQUAL)
    assert wait.header == Header(kind=9)


@given(st.sampled_from(Compare), st.integers(0, 3), st.integers(-128, 127), st.integers(0, 2**64 - 1),
       st.integers(0, 2**30 - 1), st.booleans())
def test_every_value_survives_pack_and_unpack(function: Compare, cache: int, step: int, addr: int, limit: int,
                                              barrier: bool) -> None:
    wait = Wait(header=Header(barrier=barrier), function=function, cache=Cache(cache), step=step, addr=addr,
                limit=4 * limit)
    again = Wait.unpack(wait.pack())
    assert again == wait
    assert again.values() == wait.values()
    assert Wait.from_words(wait.words()) == wait
    assert (again.step, again.addr, again.limit, again.header.barrier) == (step, addr, 4 * limit, barrier)


@given(st.binary(min_size=4, max_size=4))
def test_bits_without_a_name_are_kept(raw: bytes) -> None:
    header = Header.unpack(raw)
    assert header.pack() == raw
    assert header.reserved == int.from_bytes(raw, "little") & ~0x1FF


@pytest.mark.parametrize(("values", "message"), [
    ({"addr": 1 << 64}, r"Wait\.addr = 0x10000000000000000: not in .*\(64 bits\)"),
    ({"addr": -1}, r"Wait\.addr = -1"),
    ({"step": 128}, r"Wait\.step = 128"),
    ({"limit": 3}, r"Wait\.limit = 3: not a multiple of 4"),
    ({"function": 2}, r"Wait\.function = 2: 2 is not a valid Compare"),
    ({"addr": 1.5}, r"Wait\.addr = 1\.5"),
    ({"header": "x"}, r"Wait\.header"),
])
def test_value_that_does_not_fit_is_refused_by_name(values: dict[str, object], message: str) -> None:
    with pytest.raises(FieldError, match=message):
        Wait(**values)


def test_unknown_field_lists_the_known_ones() -> None:
    with pytest.raises(TypeError, match="no field 'adr'; it has header, function"):
        Wait(adr=1)


def test_unpack_refuses_short_data_and_meaningless_enum() -> None:
    with pytest.raises(FieldError, match="Wait needs 20 bytes at offset 1, got 19"):
        Wait.unpack(bytes(20), 1)
    with pytest.raises(FieldError, match=r"Wait\.function holds 0x2"):
        Wait.from_words([0, 2, 0, 0, 0])
    with pytest.raises(FieldError, match="5 dwords, got 1"):
        Wait.from_words([0])


def test_overlapping_fields_are_refused_unless_overlaid() -> None:
    with pytest.raises(SpecError, match=r"Bad\.b: bits 7:4 are taken"):
        type("Bad", (BitStruct,), {"a": bits[4:0], "b": bits[7:4]})

    class Union(BitStruct):
        whole = dword[0]
        low = bits[7:0].overlay()

    assert Union(whole=0x1234).low == 0x34
    assert Union(whole=0x1234).replace(low=0).whole == 0x1200


def test_malformed_declarations_are_refused() -> None:
    for make in (lambda: bits[0:3], lambda: bits[0, 32:0], lambda: dword[2:1], lambda: bits[1:0].flag(),
                 lambda: dword[0:1].of(Header), lambda: bits[-1]):
        with pytest.raises(SpecError):
            make()
    with pytest.raises(SpecError, match="fields reach bit 63"):
        type("Bad", (BitStruct,), {"a": u32[4]}, size=4)


def test_values_are_immutable_comparable_and_picklable() -> None:
    header = Header(kind=2)
    with pytest.raises(AttributeError, match="immutable"):
        header.kind = 3
    with pytest.raises(AttributeError):
        header.other = 3
    assert {header: 1}[Header(kind=2)] == 1
    assert header != Header(kind=3)
    assert pickle.loads(pickle.dumps(header)) == header


def test_repr_names_what_differs_from_the_defaults() -> None:
    assert repr(Header()) == "Header()"
    assert repr(Header(kind=3, barrier=True)) == "Header(kind=3, barrier=True)"
    assert repr(Header.from_int(0x8000_0009)) == "Header(reserved=0x80000000)"
    text = repr(Wait(function=Compare.LESS, addr=0x12345678))
    assert text == "Wait(function=Compare.LESS, addr=0x12345678)"
    assert "limit     0" in Wait().describe()


def test_byte_offsets_and_inheritance() -> None:
    class Base(BitStruct, size=8):
        a, b = u8[0], u16[2]

    class More(Base, size=24):
        c, d = u64[8], qword[4]

    more = More(a=1, b=2, c=3, d=4)
    assert more.pack() == bytes([1, 0, 2, 0, 0, 0, 0, 0, 3, *[0] * 7, 4, *[0] * 7])
    assert Base.unpack(more.pack()) == Base(a=1, b=2)
