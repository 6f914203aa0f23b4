"""The compute command processor, packet by packet."""

from __future__ import annotations

import pytest

from stuntgpu.isa.errors import Unmodelled
from stuntgpu.isa.packets import pm4
from stuntgpu.isa.packets.base import Compare, Packet, PacketError
from stuntgpu.isa.regs import gfx11
from stuntgpu.mockdrivers.core.seam import Progress, QueueKind
from tests.mockdrivers.bench import MEMORY_VA, RPTR_VA, Bench

AT = MEMORY_VA + 0x100


@pytest.fixture
def cp() -> Bench:
    return Bench(QueueKind.PM4)


def sh(register: int, *values: int) -> Packet:
    return pm4.SetShReg(offset=register - gfx11.SH_BASE, tail=values)


def write(va: int, *values: int) -> Packet:
    return pm4.WriteData(dst_sel=pm4.WriteDst.MEMORY, addr=va, tail=values)


def wait(function: Compare, ref: int, mask: int = 0xFFFF_FFFF) -> Packet:
    return pm4.WaitRegMem(function=function, mem_space=pm4.MemSpace.MEMORY, addr=AT, ref=ref, mask=mask)


def initiator(**bits: bool) -> int:
    return int(gfx11.DispatchInitiator(compute_shader_en=True, **bits))


def describe_kernel(cp: Bench, threads: tuple[int, int, int] = (64, 1, 1), rsrc2: int = 2 << 1) -> None:
    cp.put(sh(gfx11.COMPUTE_PGM_LO, 0x1234, 0x1), sh(gfx11.COMPUTE_PGM_RSRC1, 0x11, rsrc2),
           sh(gfx11.COMPUTE_PGM_RSRC3, 0x33), sh(gfx11.COMPUTE_NUM_THREAD_X, *threads),
           sh(gfx11.COMPUTE_USER_DATA_0, 0xAA, 0xBB))


def test_pm4_dispatch_takes_the_launch_from_the_registers(cp: Bench) -> None:
    lds = 3 << 15  # granules of 512 bytes
    describe_kernel(cp, (64, 2, 1), 2 << 1 | lds)
    cp.go(pm4.DispatchDirect(dim_x=3, dim_y=2, dim_z=1, initiator=initiator(force_start_at_000=True, cs_w32_en=True)))
    launch, = cp.executor.launches
    assert launch.entry == 0x1_0000_1234 << 8
    assert (launch.rsrc1, launch.rsrc2, launch.rsrc3) == (0x11, 2 << 1 | lds, 0x33)
    assert launch.user_sgprs == (0xAA, 0xBB)
    assert (launch.grid, launch.workgroup, launch.start) == ((192, 4, 1), (64, 2, 1), (0, 0, 0))
    assert (launch.wave_lanes, launch.lds_bytes, launch.scratch_wave_bytes) == (32, 1536, 0)


def test_pm4_dispatch_says_which_queue_it_comes_from(cp: Bench) -> None:
    describe_kernel(cp)
    cp.go(pm4.DispatchDirect(dim_x=1, dim_y=1, dim_z=1, initiator=initiator()))
    queue = cp.executor.launches[0].queue
    assert (queue.me, queue.pipe, queue.queue, queue.doorbell) == (1, 0, 7, 7)  # queue 7 of the bench


def test_pm4_dispatch_is_of_64_lanes_unless_the_initiator_says_32(cp: Bench) -> None:
    describe_kernel(cp)
    cp.go(pm4.DispatchDirect(dim_x=1, dim_y=1, dim_z=1, initiator=initiator()))
    assert cp.executor.launches[0].wave_lanes == 64


def test_pm4_dispatch_dimensions_are_ends_behind_the_start(cp: Bench) -> None:
    describe_kernel(cp)
    cp.put(sh(gfx11.COMPUTE_START_X, 5, 1, 0))
    cp.go(pm4.DispatchDirect(dim_x=7, dim_y=2, dim_z=1, initiator=initiator()))
    assert (cp.executor.launches[0].start, cp.executor.launches[0].grid) == ((5, 1, 0), (128, 1, 1))
    cp.go(pm4.DispatchDirect(dim_x=7, dim_y=2, dim_z=1, initiator=initiator(force_start_at_000=True)))
    assert (cp.executor.launches[1].start, cp.executor.launches[1].grid) == ((0, 0, 0), (448, 2, 1))


def test_pm4_partial_last_workgroup_has_num_thread_partial_items(cp: Bench) -> None:
    describe_kernel(cp, (64 | 40 << 16, 1 | 1 << 16, 1 | 1 << 16))
    cp.go(pm4.DispatchDirect(dim_x=3, dim_y=1, dim_z=1, initiator=initiator(partial_tg_en=True)))
    assert cp.executor.launches[0].grid == (168, 1, 1)


def test_pm4_dispatch_of_work_items(cp: Bench) -> None:
    describe_kernel(cp)
    cp.go(pm4.DispatchDirect(dim_x=100, dim_y=2, dim_z=1, initiator=initiator(use_thread_dimensions=True)))
    assert cp.executor.launches[0].grid == (100, 2, 1)


def test_pm4_indirect_dispatch_reads_its_sizes(cp: Bench) -> None:
    describe_kernel(cp)
    cp.go(write(AT, 4, 5, 6), pm4.DispatchIndirect(addr=AT, initiator=initiator()))
    assert cp.executor.launches[0].grid == (256, 5, 6)


def test_pm4_empty_dispatch_runs_nothing(cp: Bench) -> None:
    describe_kernel(cp)
    assert cp.go(pm4.DispatchDirect(dim_x=0, dim_y=1, dim_z=1, initiator=initiator())) is Progress.IDLE
    assert not cp.executor.launches


def test_pm4_scratch_lies_at_its_base_with_a_slot_a_wave(cp: Bench) -> None:
    describe_kernel(cp, rsrc2=2 << 1 | 1)
    cp.put(sh(gfx11.COMPUTE_TMPRING_SIZE, 16 | 2 << 12), sh(gfx11.COMPUTE_DISPATCH_SCRATCH_BASE_LO, MEMORY_VA >> 8, 0))
    cp.go(pm4.DispatchDirect(dim_x=2, dim_y=1, dim_z=1, initiator=initiator()))
    assert (cp.executor.launches[0].scratch_va, cp.executor.launches[0].scratch_wave_bytes) == (MEMORY_VA, 512)


def test_pm4_workgroup_too_large_is_refused_by_register(cp: Bench) -> None:
    describe_kernel(cp, (1024, 2, 1))
    with pytest.raises(PacketError, match="COMPUTE_NUM_THREAD_X, Y, Z = 1024, 2, 1"):
        cp.go(pm4.DispatchDirect(dim_x=1, dim_y=1, dim_z=1, initiator=initiator()))


@pytest.mark.parametrize(("function", "ref", "no", "yes"), [
    (Compare.LT, 5, 5, 4), (Compare.LE, 5, 6, 5), (Compare.EQ, 5, 4, 5), (Compare.NE, 5, 5, 0),
    (Compare.GE, 5, 4, 0xFFFF_FFFF), (Compare.GT, 5, 5, 6)])
def test_pm4_wait_reg_mem_retries_until_it_holds(cp: Bench, function: Compare, ref: int, no: int, yes: int) -> None:
    cp.set(AT, no)
    assert cp.go(write(AT + 8, 1), wait(function, ref), write(AT + 16, 1)) is Progress.RETRY
    stuck = cp.rptr
    assert cp.u32(AT + 8) == 1
    assert cp.go() is Progress.RETRY
    assert cp.rptr == stuck
    assert cp.u32(AT + 16) == 0
    cp.set(AT, yes)
    assert cp.go() is Progress.IDLE
    assert cp.u32(AT + 16) == 1
    assert cp.rptr == cp.wptr


def test_pm4_wait_looks_through_its_mask(cp: Bench) -> None:
    cp.set(AT, 0xFF05)
    assert cp.go(wait(Compare.EQ, 5, 0xFF)) is Progress.IDLE


def test_pm4_hdp_flush_is_done_at_once(cp: Bench) -> None:
    assert cp.go(pm4.WaitRegMem(function=Compare.EQ, operation=pm4.WaitOperation.WRITE_THEN_WAIT, ref=1, mask=1,
                                reg=gfx11.GPU_HDP_FLUSH_REQ, reg2=gfx11.GPU_HDP_FLUSH_DONE)) is Progress.IDLE


@pytest.mark.parametrize(("select", "held"), [
    (pm4.DataSel.NONE, 0xFFFF_FFFF_FFFF_FFFF), (pm4.DataSel.LOW_32, 0xFFFF_FFFF_2222_2222),
    (pm4.DataSel.ALL_64, 0x1111_1111_2222_2222), (pm4.DataSel.GPU_CLOCK, 0x1234_5678_9ABC)])
def test_pm4_release_mem_writes_what_is_selected(cp: Bench, select: pm4.DataSel, held: int) -> None:
    cp.set(AT, 0xFFFF_FFFF_FFFF_FFFF, 8)
    cp.go(pm4.ReleaseMem(event_type=0x14, event_index=5, data_sel=select, addr=AT, data=0x1111_1111_2222_2222))
    assert cp.u64(AT) == held
    assert cp.events == []


@pytest.mark.parametrize(("select", "seen", "events"), [
    (pm4.IntSel.NONE, 9, []), (pm4.IntSel.INTERRUPT_ONLY, 9, [(3, 9)]), (pm4.IntSel.AFTER_WRITE, 9, [(3, 9)]),
    (pm4.IntSel.UNCONDITIONAL, 0, [(3, 9)]), (pm4.IntSel.IF_EQUAL_32, 9, [(3, 9)]), (pm4.IntSel.IF_EQUAL_32, 8, []),
    (pm4.IntSel.IF_EQUAL_64, 8, [])])
def test_pm4_release_mem_interrupts_when_selected(cp: Bench, select: pm4.IntSel, seen: int, events: list[object]) -> None:
    cp.set(AT, seen, 8)
    cp.go(pm4.ReleaseMem(event_type=0x14, event_index=5, int_sel=select, addr=AT, data=9, int_ctxid=3))
    assert cp.events == events


def test_pm4_copy_data_moves_between_everything(cp: Bench) -> None:
    cp.set(AT, 0x1111_2222_3333_4444, 8)
    user = gfx11.COMPUTE_USER_DATA_0
    cp.go(pm4.CopyData(src_sel=pm4.CopySrc.MEMORY, dst_sel=pm4.CopyDst.REGISTER, is_64=True, src=AT, dst=user),
          pm4.CopyData(src_sel=pm4.CopySrc.REGISTER, dst_sel=pm4.CopyDst.MEMORY, src=user + 1, dst=AT + 8),
          pm4.CopyData(src_sel=pm4.CopySrc.IMMEDIATE, dst_sel=pm4.CopyDst.MEMORY, is_64=True, src=1 << 63, dst=AT + 16),
          pm4.CopyData(src_sel=pm4.CopySrc.GPU_CLOCK, dst_sel=pm4.CopyDst.MEMORY, is_64=True, dst=AT + 24))
    assert (cp.u32(AT + 8), cp.u64(AT + 16), cp.u64(AT + 24)) == (0x1111_2222, 1 << 63, 0x1234_5678_9ABC)


def test_pm4_write_data_to_one_address_leaves_the_last(cp: Bench) -> None:
    cp.go(write(AT, 1, 2, 3), pm4.WriteData(dst_sel=pm4.WriteDst.MEMORY, one_addr=True, addr=AT + 16, tail=(7, 8)))
    assert [cp.u32(AT + 4 * i) for i in range(6)] == [1, 2, 3, 0, 8, 0]


def test_pm4_dma_data_copies_and_fills(cp: Bench) -> None:
    cp.space.write(AT, bytes(range(11)))
    cp.go(pm4.DmaData(src=AT, dst=AT + 0x100, byte_count=11),
          pm4.DmaData(src_sel=pm4.DmaSrc.DATA, src=0x0403_0201, dst=AT + 0x200, byte_count=6))
    assert cp.space.read(AT + 0x100, 12) == bytes(range(11)) + b"\0"
    assert cp.space.read(AT + 0x200, 7) == b"\1\2\3\4\1\2\0"


def test_pm4_indirect_buffers_nest_and_chain(cp: Bench) -> None:
    last = cp.store(0x3000, write(AT + 8, 3))
    chained = pm4.IndirectBuffer(addr=MEMORY_VA + 0x3000, size_dw_field=last, chain=True, valid=True)
    inner = cp.store(0x2000, write(AT, 1), chained, write(AT + 4, 0xBAD))
    outer = cp.store(0x1000, pm4.IndirectBuffer(addr=MEMORY_VA + 0x2000, size_dw_field=inner, valid=True), write(AT + 12, 4))
    assert cp.go(pm4.IndirectBuffer(addr=MEMORY_VA + 0x1000, size_dw_field=outer, valid=True), write(AT + 16, 5)) is (
        Progress.IDLE)
    assert [cp.u32(AT + 4 * i) for i in range(5)] == [1, 0, 3, 4, 5]
    assert cp.rptr == cp.wptr


def test_pm4_cond_exec_skips_when_zero(cp: Bench) -> None:
    skipped = write(AT + 4, 1)
    for value, expected in ((0, 0), (1, 1)):
        cp.set(AT, value)
        cp.go(pm4.CondExec(addr=AT, exec_count=len(skipped.encode())), skipped, write(AT + 8, 1))
        assert (cp.u32(AT + 4), cp.u32(AT + 8)) == (expected, 1)


def test_pm4_atomic_mem_adds_and_returns_the_old_value(cp: Bench) -> None:
    cp.set(AT, 40)
    cp.go(pm4.AtomicMem(atomic=0x2F, addr=AT, src=2),  # TC_OP_ATOMIC_ADD_RTN_32
          pm4.CopyData(src_sel=pm4.CopySrc.ATOMIC_RETURN, dst_sel=pm4.CopyDst.MEMORY, dst=AT + 8))
    assert (cp.u32(AT), cp.u32(AT + 8)) == (42, 40)


@pytest.mark.parametrize("padding", [pm4.Filler.from_body((), 0), pm4.HeaderNop.from_body((), 0),
                                     pm4.Nop(ignored=1, tail=(2, 3)), pm4.EventWrite(event_type=7, event_index=4),
                                     pm4.AcquireMem(size=1, gcr_control=0x7FFFF), pm4.PfpSyncMe()])
def test_pm4_padding_and_flushes_are_passed_over(cp: Bench, padding: Packet) -> None:
    assert cp.go(padding, write(AT, 1)) is Progress.IDLE
    assert cp.u32(AT) == 1


@pytest.mark.parametrize("first", range(16))
def test_pm4_ring_wraps_mid_packet(first: int) -> None:
    cp = Bench(QueueKind.PM4, ring_bytes=64)
    cp.go(*[pm4.HeaderNop.from_body((), 0)] * first)
    for i in range(40):
        assert cp.go(write(AT + 4 * (i % 8), i, i + 1)) is Progress.IDLE
        assert cp.u32(AT + 4 * (i % 8) + 4) == i + 1
        assert cp.rptr == cp.wptr == first + 6 * (i + 1)


@pytest.mark.parametrize(("words", "said"), [
    ([0xC000FE00, 0], "unknown PM4 opcode 0xfe"),
    ([0x4000_0000], "packet type 1"),
    ([pm4.pm4_header(0x15, 4), 1], "DISPATCH_DIRECT"),
    ([pm4.pm4_header(0x3C, 2), 0, 0], "WAIT_REG_MEM.*body of 2 dwords, expected 6"),
])
def test_pm4_bad_packet_is_named_at_once(cp: Bench, words: list[int], said: str) -> None:
    cp.put(write(AT, 1))
    before = cp.wptr
    cp.put_words(words)
    with pytest.raises(PacketError, match=said) as caught:
        cp.queue.run(cp.wptr)
    assert caught.value.position == before
    assert caught.value.value == words[0]
    assert cp.u32(AT) == 1
    assert cp.rptr == before


def test_pm4_packet_hardware_has_and_nothing_here_runs_is_unmodelled_by_name(cp: Bench) -> None:
    cp.put_words([pm4.pm4_header(0x39, 2), 0, 0])
    with pytest.raises(Unmodelled, match="MEM_SEMAPHORE"):
        cp.queue.run(cp.wptr)


def test_pm4_wild_address_names_packet_address_and_neighbour(cp: Bench) -> None:
    with pytest.raises(PacketError, match=r'WRITE_DATA.*0x10 is not mapped.*"ring"') as caught:
        cp.go(write(0x10, 1))
    assert (caught.value.address, caught.value.access) == (0x10, "write")


def test_pm4_write_pointer_beyond_the_ring_is_refused(cp: Bench) -> None:
    with pytest.raises(PacketError, match="more than the ring's 4096 bytes ahead"):
        cp.queue.run(0x401)


def test_pm4_rptr_lives_in_memory(cp: Bench) -> None:
    cp.go(pm4.Nop(ignored=0))
    assert cp.u64(RPTR_VA) == 2
