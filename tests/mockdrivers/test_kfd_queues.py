"""User queues through rings and doorbells: progress, interrupts, waits, faults, destruction."""

from __future__ import annotations

import time
from collections.abc import Iterator
from errno import EFAULT, EINVAL, EOPNOTSUPP
from pathlib import Path

import pytest

from stuntgpu.isa.abi import kfd
from stuntgpu.isa.abi.kfd import EventType, QueueType, WaitResult
from stuntgpu.isa.packets import pm4, sdma
from stuntgpu.isa.packets.base import Compare
from stuntgpu.mockdrivers.client import server
from tests.mockdrivers.conftest import Preloaded
from tests.mockdrivers.rawkfd import Buffer, RawKfd, RawQueue, refused, spin

UNMAPPED = 0x1234_5000_0000


@pytest.fixture
def compute(gpu: RawKfd) -> Iterator[RawQueue]:
    queue = RawQueue(gpu, QueueType.COMPUTE)
    yield queue
    queue.destroy()


@pytest.fixture
def copy(gpu: RawKfd) -> Iterator[RawQueue]:
    queue = RawQueue(gpu, QueueType.SDMA)
    yield queue
    queue.destroy()


_mailboxes: list[Buffer] = []


@pytest.fixture
def events(gpu: RawKfd) -> Iterator[tuple[int, int, int]]:
    """(signal, memory exception, hardware exception), the signal with a mailbox page."""
    page = 0
    if not _mailboxes:
        _mailboxes.append(gpu.buffer(0x8000))
        page = _mailboxes[0].handle
    ids = gpu.event(page=page), gpu.event(EventType.MEMORY), gpu.event(EventType.HW_EXCEPTION)
    yield ids
    for event_id in ids:
        gpu.call(kfd.DESTROY_EVENT, event_id=event_id)
    while gpu.fault():
        pass


def fence(queue: RawQueue, value: int, event_id: int = 0) -> pm4.ReleaseMem:
    return pm4.ReleaseMem(event_type=pm4.CACHE_FLUSH_AND_INV_TS_EVENT, event_index=pm4.END_OF_PIPE,
                          int_sel=pm4.IntSel.AFTER_WRITE if event_id else pm4.IntSel.NONE,
                          data_sel=pm4.DataSel.ALL_64, addr=queue.fence_va, data=value, int_ctxid=event_id)


def until_equal(va: int, value: int) -> pm4.WaitRegMem:
    return pm4.WaitRegMem(function=Compare.EQ, mem_space=pm4.MemSpace.MEMORY, addr=va, ref=value, mask=0xFFFF_FFFF)


def test_packets_retire_and_rptr_follows(compute: RawQueue) -> None:
    compute.submit(pm4.Nop(tail=(1, 2, 3)), fence(compute, 7))
    assert compute.wait_fence(7)
    assert spin(lambda: compute.rptr == compute.wptr)


def test_a_ring_goes_round_many_times(compute: RawQueue) -> None:
    for i in range(1, 400):
        compute.submit(pm4.Nop(tail=(0,) * (i % 5 + 1)), fence(compute, i))
        assert compute.wait_fence(i), i
    assert compute.wptr > 2 * compute.size_bytes // 4


def test_release_mem_interrupt_wakes_the_event(gpu: RawKfd, compute: RawQueue, events: tuple[int, int, int]) -> None:
    compute.submit(fence(compute, 1, events[0]))
    assert gpu.wait(*events, ms=5000)[0] == WaitResult.COMPLETE
    assert compute.fence == 1


def test_interrupt_without_a_context_wakes_the_event_whose_mailbox_was_written(
        gpu: RawKfd, compute: RawQueue, events: tuple[int, int, int]) -> None:
    other = gpu.event()
    write = pm4.ReleaseMem(int_sel=pm4.IntSel.AFTER_WRITE, data_sel=pm4.DataSel.ALL_64, int_ctxid=0,
                           addr=_mailboxes[0].va + 8 * events[0], data=events[0])
    compute.submit(write)
    assert gpu.wait(events[0], ms=5000)[0] == WaitResult.COMPLETE
    assert _mailboxes[0].u64(8 * events[0]).value == kfd.UNSIGNALED_EVENT_SLOT
    assert gpu.wait(other, ms=0)[0] == WaitResult.TIMEOUT
    gpu.call(kfd.DESTROY_EVENT, event_id=other)


def test_wait_reg_mem_retries_until_the_cpu_writes(compute: RawQueue) -> None:
    flag = compute.memory.va + 256
    compute.submit(until_equal(flag, 5), fence(compute, 1))
    assert not compute.wait_fence(1, 0.05)
    compute.memory.u64(256).value = 5
    assert compute.wait_fence(1)


def test_two_queues_wait_for_each_other(gpu: RawKfd, compute: RawQueue, copy: RawQueue) -> None:
    compute.submit(until_equal(copy.fence_va, 1), fence(compute, 1))
    copy.submit(sdma.Fence(addr=copy.fence_va, data=1),
                sdma.PollRegmem(mem_poll=True, function=Compare.EQ, addr=compute.fence_va, ref=1, mask=0xFFFF_FFFF),
                sdma.Fence(addr=copy.fence_va, data=2))
    assert copy.wait_fence(2)


def test_sdma_copies_and_traps(gpu: RawKfd, copy: RawQueue, events: tuple[int, int, int]) -> None:
    source, target = gpu.buffer(0x3000, kfd.AllocFlags.VRAM), gpu.buffer(0x3000)
    source.store(0, bytes(range(256)) * 48)
    copy.submit(sdma.CopyLinear(count=0x2FFF - 1, src=source.va + 1, dst=target.va),
                sdma.Fence(addr=copy.fence_va, data=3), sdma.Trap(context=events[0]))
    assert gpu.wait(*events, ms=5000)[0] == WaitResult.COMPLETE
    assert copy.fence == 3
    assert target.bytes(0, 0x2FFF) == source.bytes(1)
    gpu.free(source)
    gpu.free(target)


@pytest.mark.parametrize(("words", "named"), [
    ([0xC000FF00, 0], "opcode 0xff"),
    ([0xC0024900, 0, 0, 0], "RELEASE_MEM"),  # body too short
    ([0xC0064900, 0], "truncated"),
    ([0x40000000], "type 1"),
])
def test_bad_packet_raises_a_hardware_exception_and_names_the_packet(
        gpu: RawKfd, compute: RawQueue, events: tuple[int, int, int], words: list[int], named: str) -> None:
    compute.submit_words(words)
    result, data = gpu.wait(*events, ms=5000)
    assert result == WaitResult.COMPLETE
    payload = data[2].payload.hw_exception_data
    assert (payload.gpu_id, payload.reset_type, payload.reset_cause) == (
        gpu.gpu_id, kfd.ResetType.PER_ENGINE, kfd.ResetCause.GPU_HANG)
    report = gpu.fault()
    assert named in report
    assert f"PM4 queue {compute.queue_id}" in report
    assert gpu.fault() == ""


def test_wild_address_raises_a_memory_exception_with_the_page(
        gpu: RawKfd, copy: RawQueue, events: tuple[int, int, int]) -> None:
    copy.submit(sdma.CopyLinear(count=63, src=UNMAPPED + 0x123, dst=copy.memory.va + 512))
    result, data = gpu.wait(*events, ms=5000)
    assert result == WaitResult.COMPLETE
    payload = data[1].payload.memory_exception_data
    assert (payload.gpu_id, payload.va, payload.NotPresent) == (gpu.gpu_id, UNMAPPED, 1)
    assert "0x123450000123" in gpu.fault()


def test_a_stopped_queue_takes_no_more_and_a_fresh_one_works(
        gpu: RawKfd, compute: RawQueue, events: tuple[int, int, int]) -> None:
    compute.submit_words([0xC000FF00, 0])
    assert gpu.wait(*events, ms=5000)[0] == WaitResult.COMPLETE
    compute.submit(fence(compute, 1))
    assert not compute.wait_fence(1, 0.05)
    fresh = RawQueue(gpu, QueueType.COMPUTE)
    fresh.submit(fence(fresh, 1))
    assert fresh.wait_fence(1)
    fresh.destroy()


def test_a_report_that_does_not_fit_stays(gpu: RawKfd, compute: RawQueue, events: tuple[int, int, int]) -> None:
    compute.submit_words([0xC000FF00, 0])
    gpu.wait(*events, ms=5000)
    args = kfd.LastFault()
    gpu.door.ioctl(gpu.fd, kfd.LAST_FAULT.request, args)
    assert args.length_bytes == len(gpu.fault().encode()) > 0


def test_faults_of_a_process_without_exception_events_fail_its_waits(python_client: Preloaded) -> None:
    done = python_client("""
from stuntgpu.isa.abi import kfd
from stuntgpu.mockdrivers.client import Door
from tests.mockdrivers.rawkfd import RawKfd, RawQueue
gpu = RawKfd(Door()); gpu.acquire()
queue = RawQueue(gpu, kfd.QueueType.COMPUTE)
queue.submit_words([0xC000FF00, 0])
try:
    gpu.wait(gpu.event(), ms=kfd.TIMEOUT_FOREVER)
except OSError as e:
    print(e.errno)
""")
    assert done.stdout == "5\n", done.stderr


def test_destroying_a_queue_that_waits_for_memory_is_quick(gpu: RawKfd) -> None:
    queue = RawQueue(gpu, QueueType.COMPUTE)
    queue.submit(until_equal(queue.memory.va + 256, 5))
    time.sleep(0.02)
    start = time.monotonic()
    queue.destroy()
    assert time.monotonic() - start < 0.5
    with refused(EINVAL):
        gpu.call(kfd.DESTROY_QUEUE, queue_id=queue.queue_id)


def test_update_queue_with_no_share_rests_it(gpu: RawKfd, compute: RawQueue) -> None:
    ring = {"queue_id": compute.queue_id, "ring_base_address": compute.ring.va, "ring_size": compute.size_bytes}
    gpu.call(kfd.UPDATE_QUEUE, **ring, queue_percentage=0)
    compute.submit(fence(compute, 1))
    assert not compute.wait_fence(1, 0.05)
    gpu.call(kfd.UPDATE_QUEUE, **ring, queue_percentage=100)
    assert compute.wait_fence(1)
    with refused(EFAULT):
        gpu.call(kfd.UPDATE_QUEUE, queue_id=900)


def test_aql_queues_are_refused_with_one_log_line(gpu: RawKfd) -> None:
    with refused(EOPNOTSUPP):
        RawQueue(gpu, QueueType.COMPUTE_AQL)
    log = Path(server().request(do="status")["log"]).read_text()
    assert "gfx1100: AQL queues is not modelled yet (would go in mockdrivers/core/queue.py)" in log


@pytest.mark.parametrize(("change", "errno"), [
    ({"gpu_id": 3}, EINVAL),
    ({"queue_percentage": 101}, EINVAL),
    ({"queue_priority": 16}, EINVAL),
    ({"ring_size": 0x1800}, EINVAL),
    ({"queue_type": 77}, EOPNOTSUPP),
    ({"ring_base_address": UNMAPPED}, EINVAL),
    ({"write_pointer_address": UNMAPPED}, EINVAL),
    ({"read_pointer_address": 0}, EINVAL),
    ({"eop_buffer_address": UNMAPPED}, EINVAL),
])
def test_create_queue_refusals(gpu: RawKfd, change: dict[str, int], errno: int) -> None:
    memory = gpu.buffer(0x2000)
    good = {"ring_base_address": memory.va, "ring_size": 0x1000, "read_pointer_address": memory.va + 0x1000,
            "write_pointer_address": memory.va + 0x1040, "gpu_id": gpu.gpu_id, "queue_percentage": 100}
    with refused(errno):
        gpu.call(kfd.CREATE_QUEUE, **{**good, **change})
    gpu.free(memory)


def test_a_client_that_dies_with_running_queues_leaves_nothing(python_client: Preloaded) -> None:
    done = python_client("""
import os
from stuntgpu.isa.abi import kfd
from stuntgpu.mockdrivers.client import Door
from tests.mockdrivers.rawkfd import RawKfd, RawQueue
from tests.mockdrivers.test_kfd_queues import until_equal
gpu = RawKfd(Door()); gpu.acquire()
queue = RawQueue(gpu, kfd.QueueType.COMPUTE)
queue.submit(until_equal(queue.memory.va + 256, 5))
print(os.getpid(), flush=True)
os.kill(os.getpid(), 9)
""")
    pid = int(done.stdout)
    assert spin(lambda: pid not in [c["pid"] for c in server().request(do="status")["clients"]])


def test_many_packets_under_one_doorbell(compute: RawQueue) -> None:
    compute.submit(*[pm4.Nop(tail=(0,) * 3) for _ in range(100)], fence(compute, 1))
    assert compute.wait_fence(1)
