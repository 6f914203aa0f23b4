"""The SDMA engine, packet by packet."""

from __future__ import annotations

import pytest

from stuntgpu.isa.errors import Unmodelled
from stuntgpu.isa.packets import sdma
from stuntgpu.isa.packets.base import Compare, PacketError
from stuntgpu.mockdrivers.core.seam import Progress, QueueKind
from tests.mockdrivers.bench import MEMORY_BYTES, MEMORY_VA, Bench

AT = MEMORY_VA + 0x100


@pytest.fixture
def engine() -> Bench:
    return Bench(QueueKind.SDMA)


@pytest.mark.parametrize("size", [1, 3, 4096, 0x7000])
def test_sdma_copies_bytes(engine: Bench, size: int) -> None:
    data = bytes(i * 7 & 0xFF for i in range(size))
    engine.space.write(AT, data)
    engine.go(sdma.CopyLinear(count=size - 1, src=AT, dst=AT + 0x7100))
    assert engine.space.read(AT + 0x7100, size + 1) == data + b"\0"


def test_sdma_broadcast_copies_twice(engine: Bench) -> None:
    engine.space.write(AT, b"abc")
    engine.go(sdma.CopyBroadcast(count=2, src=AT, dst1=AT + 16, dst2=AT + 32))
    assert engine.space.read(AT + 16, 3) == engine.space.read(AT + 32, 3) == b"abc"


def test_sdma_subwindow_copies_a_box(engine: Bench) -> None:
    rows = [bytes([16 * y + x for x in range(16)]) for y in range(8)]
    engine.space.write(AT, b"".join(rows))
    engine.go(sdma.CopyLinearSubwin(element_log2=1, src=AT, src_x=2, src_y=1, src_pitch=7, src_slice_pitch=63,
                                    dst=AT + 0x1000, dst_x=1, dst_y=0, dst_pitch=3, dst_slice_pitch=15,
                                    rect_x=1, rect_y=2, rect_z=0))
    got = engine.space.read(AT + 0x1000, 24)
    assert [got[8 * y + 2 : 8 * y + 6] for y in range(3)] == [rows[1 + y][4:8] for y in range(3)]


@pytest.mark.parametrize(("log2", "pattern"), [(0, b"\x44" * 7), (1, b"\x44\x33" * 3 + b"\x44"),
                                               (2, b"\x44\x33\x22\x11\x44\x33\x22")])
def test_sdma_fills_with_elements_of_each_size(engine: Bench, log2: int, pattern: bytes) -> None:
    engine.go(sdma.ConstFill(fill_log2=log2, dst=AT, data=0x1122_3344, count=6))
    assert engine.space.read(AT, 8) == pattern + b"\0"


def test_sdma_writes_fences_traps_and_timestamps(engine: Bench) -> None:
    engine.go(sdma.WriteLinear(dst=AT, count=1, tail=(1, 2)), sdma.Fence(addr=AT + 8, data=3), sdma.Trap(context=9),
              sdma.TimestampGetGlobal(addr=AT + 16), sdma.GcrReq())
    assert [engine.u32(AT + 4 * i) for i in range(3)] == [1, 2, 3]
    assert engine.events == [(9, 0)]
    assert engine.u64(AT + 16) == 0x1234_5678_9ABC


def test_sdma_poll_retries_until_equal(engine: Bench) -> None:
    poll = sdma.PollRegmem(mem_poll=True, function=Compare.EQ, addr=AT, ref=5, mask=0xFF)
    assert engine.go(poll, sdma.Fence(addr=AT + 8, data=1)) is Progress.RETRY
    assert (engine.rptr, engine.u32(AT + 8)) == (0, 0)
    engine.set(AT, 0x105)
    assert engine.go() is Progress.IDLE
    assert (engine.rptr, engine.u32(AT + 8)) == (engine.wptr, 1)


def test_sdma_hdp_flush_is_done_at_once(engine: Bench) -> None:
    assert engine.go(sdma.PollRegmem(hdp_flush=True, function=Compare.EQ, done_reg=0xE27 << 2, request_reg=0xE26 << 2,
                                     ref=1, mask=1)) is Progress.IDLE


def test_sdma_atomic_adds(engine: Bench) -> None:
    engine.set(AT, 40, 8)
    engine.go(sdma.Atomic(atomic_op=0x4F, addr=AT, src=2))  # TC_OP_ATOMIC_ADD_RTN_64
    assert engine.u64(AT) == 42


def test_sdma_indirect_buffer_comes_back(engine: Bench) -> None:
    n = engine.store(0x2000, sdma.Fence(addr=AT, data=1), sdma.Fence(addr=AT + 4, data=2))
    engine.go(sdma.Indirect(base=MEMORY_VA + 0x2000, size=n), sdma.Fence(addr=AT + 8, data=3))
    assert [engine.u32(AT + 4 * i) for i in range(3)] == [1, 2, 3]


def test_sdma_cond_exe_skips_unless_equal(engine: Bench) -> None:
    fence = sdma.Fence(addr=AT + 8, data=1)
    engine.go(sdma.CondExe(addr=AT, reference=1, exec_count=4), fence, sdma.Fence(addr=AT + 12, data=1))
    assert (engine.u32(AT + 8), engine.u32(AT + 12)) == (0, 1)


@pytest.mark.parametrize("first", range(16))
def test_sdma_ring_wraps_mid_packet(first: int) -> None:
    engine = Bench(QueueKind.SDMA, ring_bytes=64)
    engine.go(*[sdma.Nop()] * first)
    for i in range(1, 40):
        assert engine.go(sdma.Fence(addr=AT, data=i)) is Progress.IDLE
        assert engine.u32(AT) == i
        assert engine.rptr == engine.wptr == 4 * first + 16 * i


@pytest.mark.parametrize(("words", "error", "said"), [
    ([0x55], PacketError, "unknown SDMA op 85"), ([0x0C], Unmodelled, "PTEPDE"), ([0x01, 3], PacketError, "COPY_LINEAR")])
def test_sdma_bad_packet_is_named_at_once(engine: Bench, words: list[int], error: type[Exception], said: str) -> None:
    engine.put_words(words)
    with pytest.raises(error, match=said):
        engine.queue.run(engine.wptr)
    assert engine.rptr == 0


def test_sdma_copy_past_an_allocation_names_the_address(engine: Bench) -> None:
    end = MEMORY_VA + MEMORY_BYTES
    with pytest.raises(PacketError, match=rf'COPY_LINEAR.*0x{end:x} is not mapped.*0x0 bytes past the end of "memory"') as caught:
        engine.go(sdma.CopyLinear(count=63, src=AT, dst=end - 32))
    assert caught.value.access == "write"


def test_sdma_misaligned_fence_is_refused(engine: Bench) -> None:
    with pytest.raises(PacketError, match="misaligned fence"):
        engine.go(sdma.Fence(addr=AT + 2, data=1))
