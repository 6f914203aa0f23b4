"""Packet classes: what goes into a ring comes out of it, at every offset, and nonsense is refused."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stuntgpu.isa.errors import Unmodelled
from stuntgpu.isa.fields import FieldError
from stuntgpu.isa.packets import pm4, sdma
from stuntgpu.isa.packets.atomics import AtomicKind, AtomicOp
from stuntgpu.isa.packets.base import Compare, Packet, PacketError, Ring, generation

PM4 = sorted(set(pm4.packets("gfx1100").values()), key=lambda c: c.NAME)
SDMA = sorted(set(sdma.packets("gfx1100").values()), key=lambda c: c.NAME)
WORDS = st.integers(0, 0xFFFF_FFFF)


@st.composite
def packets_of(draw: st.DrawFn, kinds: list[type[Packet]]) -> Packet:
    """A random packet of one of the kinds: every field a value it can hold."""
    cls = draw(st.sampled_from(kinds))
    values = {}
    for name, field in cls.FIELDS.items():
        if not field.is_overlay:
            raw = draw(st.integers(0, (1 << field.width) - 1))
            try:
                values[name] = field.decode(raw)
            except FieldError:
                continue
    if not cls.HAS_TAIL:
        return cls(**values)
    tail = draw(st.lists(WORDS, min_size=1, max_size=9))
    if issubclass(cls, sdma.SdmaPacket):
        values["count"] = len(tail) - (cls is sdma.WriteLinear)
    return cls(**values, tail=tail)


@given(packets_of(PM4), st.integers(0, 200))
def test_pm4_packet_survives_the_ring_at_every_offset(packet: Packet, offset: int) -> None:
    check_survives(packet, offset, unit=1, peek=pm4.peek)


@given(packets_of(SDMA), st.integers(0, 200))
def test_sdma_packet_survives_the_ring_at_every_offset(packet: Packet, offset: int) -> None:
    check_survives(packet, offset, unit=4, peek=sdma.peek)


def check_survives(packet, offset, unit, peek) -> None:
    """Written at a position of a 64-dword ring and read back."""
    words, encoded = [0] * 64, packet.encode()
    for i, word in enumerate(encoded):
        words[(offset + i) % 64] = word
    ring = Ring(words, (offset + len(encoded)) * unit, unit=unit)
    seen = peek(ring, offset * unit)
    assert seen == packet
    assert hash(seen) == hash(packet)
    assert seen.size_dw == packet.size_dw == len(encoded)
    assert pickle.loads(pickle.dumps(seen)) == packet
    assert type(packet).__name__ in repr(packet)


@given(packets_of(PM4))
def test_pm4_packet_cut_short_is_refused_by_name(packet: Packet) -> None:
    encoded = packet.encode()
    with pytest.raises(PacketError, match=rf"{packet.NAME}.*truncated") as caught:
        pm4.peek(Ring(encoded, len(encoded) - 1), 0)
    assert caught.value.packet == packet.NAME
    assert caught.value.value == encoded[0]


@given(packets_of([c for c in SDMA if c is not sdma.Nop]))
def test_sdma_packet_cut_short_is_refused_by_name(packet: Packet) -> None:
    encoded = packet.encode()
    with pytest.raises(PacketError, match=rf"{packet.NAME}.*truncated"):
        sdma.peek(Ring(encoded, 4 * len(encoded) - 4, unit=4), 0)


def test_pm4_headers_are_what_the_kernel_headers_say() -> None:
    assert pm4.DispatchDirect(dim_x=1).encode()[0] == 0xC003_1500
    assert pm4.IndirectBuffer().encode()[0] == 0xC002_3F00
    assert pm4.WaitRegMem().encode()[0] == 0xC005_3C00
    assert pm4.ReleaseMem().encode()[0] == 0xC006_4900
    assert pm4.AcquireMem().encode()[0] == 0xC006_5800


def test_pm4_wait_reg_mem_layout() -> None:
    packet = pm4.WaitRegMem(function=Compare.GE, mem_space=pm4.MemSpace.MEMORY, addr=0x7F00_1234_5678, ref=9,
                            mask=0xFFFF, poll_interval=4)
    assert packet.encode()[1:] == (0x15, 0x1234_5678, 0x7F00, 9, 0xFFFF, 4)


def test_pm4_release_mem_layout() -> None:
    packet = pm4.ReleaseMem(event_type=0x14, event_index=5, data_sel=pm4.DataSel.LOW_32,
                            int_sel=pm4.IntSel.AFTER_WRITE, addr=0x10, data=0x1_0000_0002, int_ctxid=3)
    assert packet.encode()[1:] == (0x514, 0x2200_0000, 0x10, 0, 2, 1, 3)


def test_pm4_acquire_mem_layout() -> None:
    packet = pm4.AcquireMem(size=(1 << 64) - 1, base=0x12, gcr_control=pm4.gcr(pm4.Gcr.GL2_WB, instructions=True))
    assert packet.encode()[1:] == (0, 0xFFFF_FFFF, 0xFFFF_FFFF, 0x12, 0, 0, 0x8001)


def test_sdma_copy_linear_layout() -> None:
    assert sdma.CopyLinear(count=99, src=0x1_0000_0002, dst=3).encode() == (1, 99, 0, 2, 1, 3, 0)


def test_sdma_poll_regmem_layout() -> None:
    packet = sdma.PollRegmem(function=Compare.GE, mem_poll=True, addr=0x40, ref=7, mask=0xFFFF_FFFF, interval=4,
                             retry_count=0xFFF)
    assert packet.encode() == (0xD000_0008, 0x40, 0, 7, 0xFFFF_FFFF, 0x0FFF_0004)


def test_pm4_padding_is_read_as_one_dword() -> None:
    assert pm4.peek(Ring([0x8000_0000], 1), 0) == pm4.Filler()
    assert pm4.peek(Ring([0xFFFF_1000], 1), 0) == pm4.HeaderNop()
    assert pm4.HeaderNop().encode() == (0xFFFF_1000,)


def test_header_bits_of_compute_packets_are_kept() -> None:
    packet = pm4.peek(Ring([0xC003_1502, 1, 1, 1, 0], 5), 0)
    assert packet == pm4.DispatchDirect(dim_x=1, dim_y=1, dim_z=1, header=2)
    assert packet.encode()[0] == 0xC003_1502


def test_unknown_pm4_opcode_is_named_with_its_place() -> None:
    with pytest.raises(PacketError, match="unknown PM4 opcode 0xee") as caught:
        pm4.peek(Ring([0x8000_0000, 0xC000_EE00, 0], 3), 1)
    assert (caught.value.position, caught.value.value) == (1, 0xC000_EE00)


def test_type_0_packet_is_refused() -> None:
    with pytest.raises(PacketError, match="packet type 0"):
        pm4.peek(Ring([0x0000_1234], 1), 0)


def test_packet_hardware_has_but_nothing_executes_is_unmodelled() -> None:
    with pytest.raises(Unmodelled, match="gfx1100: PM4 packet GEN_PDEPTE"):
        pm4.peek(Ring([0xC000_5B00, 0], 2), 0)
    with pytest.raises(Unmodelled, match="SDMA packet PTEPDE"):
        sdma.peek(Ring([12], 4, unit=4), 0)


def test_unknown_sdma_op_is_named_with_its_place() -> None:
    with pytest.raises(PacketError, match="unknown SDMA op 99, sub-op 1") as caught:
        sdma.peek(Ring([0, 0x163], 8, unit=4), 4)
    assert (caught.value.position, caught.value.value) == (4, 0x163)


def test_wrong_body_length_names_both_lengths() -> None:
    with pytest.raises(PacketError, match=r"DISPATCH_DIRECT.*body of 3 dwords, expected 4"):
        pm4.peek(Ring([0xC002_1500, 1, 1, 1], 4), 0)


def test_meaningless_field_names_its_dword() -> None:
    words = list(pm4.ReleaseMem().encode())
    words[2] = 7 << 29
    with pytest.raises(PacketError, match="data_sel") as caught:
        pm4.peek(Ring(words, len(words)), 0)
    assert (caught.value.dword, caught.value.value) == (2, 7 << 29)


def test_packets_are_immutable_and_told_apart_by_their_tail() -> None:
    packet = pm4.WriteData(addr=4, tail=(1,))
    assert packet != packet.replace(tail=(2,))
    assert packet.replace(addr=8).tail == (1,)
    with pytest.raises(AttributeError, match="immutable"):
        packet.addr = 5  # type: ignore[misc, assignment]
    with pytest.raises(FieldError, match="no tail"):
        pm4.DispatchDirect(tail=(1,))


@pytest.mark.parametrize("compare", list(Compare))
@given(a=WORDS, b=WORDS)
def test_compare_functions(compare: Compare, a: int, b: int) -> None:
    wanted = {"ALWAYS": True, "LT": a < b, "LE": a <= b, "EQ": a == b, "NE": a != b, "GE": a >= b, "GT": a > b}
    assert compare(a, b) is wanted[compare.name]


@given(st.integers(0, 127))
def test_atomic_codes_round_trip(code: int) -> None:
    if code & 0x1F in {k.value for k in AtomicKind}:
        assert AtomicOp.decode(code).code == code
    else:
        with pytest.raises(ValueError, match="AtomicKind"):
            AtomicOp.decode(code)


def test_atomic_results() -> None:
    def after(kind: AtomicKind, memory: int, source: int, compare: int = 0, bits: int = 32) -> int:
        return AtomicOp(kind, bits).apply(memory, source, compare)

    assert AtomicOp(AtomicKind.ADD, 64, True).code == 0x2F
    assert after(AtomicKind.ADD, 0xFFFF_FFFF, 2) == 1
    assert after(AtomicKind.SUB, 0, 1, bits=64) == (1 << 64) - 1
    assert after(AtomicKind.CMPSWAP, 5, 9, 5) == 9
    assert after(AtomicKind.CMPSWAP, 5, 9, 6) == 5
    assert after(AtomicKind.SMIN, 1, 0xFFFF_FFFF) == 0xFFFF_FFFF
    assert after(AtomicKind.UMIN, 1, 0xFFFF_FFFF) == 1
    assert after(AtomicKind.SMAX, 1, 0xFFFF_FFFF) == 1
    assert after(AtomicKind.INC, 3, 3) == 0
    assert after(AtomicKind.DEC, 0, 3) == 3


def test_generation_of_unknown_arch_is_unmodelled() -> None:
    assert generation("gfx950") == 9
    with pytest.raises(Unmodelled, match="gfx803"):
        generation("gfx803")
