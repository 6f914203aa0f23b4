"""The runtime against the mock KFD: memory, copies, launches, order, faults."""

from __future__ import annotations

import ctypes
import gc
from typing import Any

import numpy as np
import pytest

from stuntgpu.isa.abi import kfd as abi
from stuntgpu.isa.abi.codeobject import CodeObjectError
from stuntgpu.isa.errors import Unmodelled
from stuntgpu.runtime import ArgumentError, Device, DeviceFault, DeviceTimeout
from stuntgpu.runtime.device import ARGUMENT_BYTES, STAGING_BYTES
from stuntgpu.runtime.kfd import HOST, Gpu
from stuntgpu.runtime.queues import Queue
from tests.runtime.kernels import ILLEGAL, S_BRANCH_SELF, VADD, patched

MOCK = "MOCKKFD+AMD"
N = 1000


def run_vadd(dev: Device, code: bytes = VADD, n: int = N, **how: Any) -> np.ndarray[Any, Any]:
    a, b = np.arange(n, dtype=np.float32), np.full(n, 0.5, np.float32)
    x, y, out = dev.copyin(a), dev.copyin(b), dev.copyin(np.zeros(n, np.float32))
    how = how or {"global_size": (-(-n // 256), 1, 1), "local_size": (256, 1, 1)}
    dev.load(code, "vadd_f32")(x, y, out, np.uint32(n), **how)
    return dev.copyout(out)


def expected(n: int = N) -> np.ndarray[Any, Any]:
    return np.arange(n, dtype=np.float32) + np.float32(0.5)


def test_kernel_computes_through_rings_and_doorbells(dev: Device) -> None:
    assert np.array_equal(run_vadd(dev), expected())


def test_grid_in_work_items_may_end_in_a_partial_workgroup(dev: Device) -> None:
    assert np.array_equal(run_vadd(dev, grid=(N,), local_size=(256,)), expected())


@pytest.mark.parametrize("shape", [(1,), (3, 5), (STAGING_BYTES // 4 + 1,), (0,), (2, 0)])
def test_copies_keep_every_byte(dev: Device, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape), dtype=np.uint32).reshape(shape) * np.uint32(2654435761)
    back = dev.copyout(dev.copyin(array))
    assert back.shape == shape
    assert back.dtype == array.dtype
    assert np.array_equal(back, array)


def test_copyin_takes_any_strides(dev: Device) -> None:
    array = np.arange(60, dtype=np.int16).reshape(6, 10)[::2, ::-3]
    assert np.array_equal(dev.copyout(dev.copyin(array)), array)


def test_kernels_and_copies_run_in_submission_order(dev: Device) -> None:
    n = 256
    x, total = dev.copyin(np.ones(n, np.float32)), dev.copyin(np.zeros(n, np.float32))
    add = dev.load(VADD, "vadd_f32")
    for i in range(200):
        add(x, total, total, np.uint32(n), global_size=(1,))
        if i % 50 == 0:
            assert np.all(dev.copyout(total) == i + 1)
    assert np.all(dev.copyout(total) == 200)


def test_argument_memory_is_used_again_only_when_free(dev: Device) -> None:
    n = 64
    x, total = dev.copyin(np.ones(n, np.float32)), dev.copyin(np.zeros(n, np.float32))
    add = dev.load(VADD, "vadd_f32")
    launches = ARGUMENT_BYTES // 128 + 40
    for _ in range(launches):
        add(x, total, total, np.uint32(n), global_size=(1,), local_size=(256,))
    assert np.all(dev.copyout(total) == launches)


def test_two_devices_of_a_process_share_the_machine(dev: Device) -> None:
    with Device(MOCK) as other:
        assert other.gpu is dev.gpu
        assert np.array_equal(run_vadd(other), expected())
        buffer = other.copyin(np.zeros(4, np.float32))
        with pytest.raises(ArgumentError, match="another device"):
            dev.copyout(buffer)


def test_timeline_goes_past_32_bits() -> None:
    with Device(MOCK) as device:
        device.timeline._signal.value = device.timeline.submitted = (1 << 32) - 5
        for _ in range(4):
            assert np.array_equal(run_vadd(device), expected())
        assert device.timeline.reached > 1 << 32


def available(gpu: Gpu) -> int:
    args = abi.GetAvailableMemory(gpu_id=gpu.gpu_id)
    gpu.machine.call(abi.AVAILABLE_MEMORY, args)
    return args.available


def test_buffers_give_their_memory_back(dev: Device) -> None:
    dev.copyin(np.zeros(1))
    gc.collect()
    dev.synchronize()
    before = available(dev.gpu)
    buffers = [dev.alloc(1 << 20) for _ in range(8)]
    assert available(dev.gpu) <= before - (8 << 20)
    del buffers
    gc.collect()
    dev.synchronize()
    assert available(dev.gpu) == before


def test_freed_buffer_is_refused(dev: Device) -> None:
    x = dev.copyin(np.zeros(N, np.float32))
    x.free()
    with pytest.raises(ArgumentError, match="freed"):
        dev.copyout(x)
    with pytest.raises(ArgumentError, match=r"argument 0.*freed"):
        dev.load(VADD, "vadd_f32")(x, x, x, np.uint32(N), global_size=(4,))


@pytest.mark.parametrize(("change", "said"), [
    ({"global_size": ()}, "either global_size"),
    ({"global_size": (0,)}, "global_size"),
    ({"local_size": (2048,)}, "2048 work-items, at most"),
    ({"local_size": (128,)}, "compiled for"),
    ({"shared": 1 << 20}, "bytes of LDS"),
])
def test_wrong_launch_is_refused_before_anything_is_sent(dev: Device, change: dict[str, Any], said: str) -> None:
    x = dev.copyin(np.zeros(N, np.float32))
    submitted = dev.timeline.submitted
    with pytest.raises(ArgumentError, match=said):
        dev.load(VADD, "vadd_f32")(x, x, x, np.uint32(N), **{"global_size": (4,), "local_size": (256,), **change})
    assert dev.timeline.submitted <= submitted + 1  # the load's own copy


def test_wrong_arguments_name_the_argument(dev: Device) -> None:
    x, kernel = dev.copyin(np.zeros(N, np.float32)), dev.load(VADD, "vadd_f32")
    with pytest.raises(ArgumentError, match="takes 4 arguments, got 3"):
        kernel(x, x, x, global_size=(4,))
    with pytest.raises(ArgumentError, match=r"argument 3.*8 bytes, it takes 4"):
        kernel(x, x, x, np.uint64(3), global_size=(4,))
    with pytest.raises(ArgumentError, match=r"argument 0.*takes a Buffer"):
        kernel(np.zeros(4), x, x, np.uint32(3), global_size=(4,))
    with pytest.raises(ArgumentError, match=r"argument 3.*int"):
        kernel(x, x, x, 3, global_size=(4,))


def test_code_that_cannot_be_loaded_says_why(dev: Device) -> None:
    with pytest.raises(ArgumentError, match=r"no kernel 'nothing'.*vadd_f32"):
        dev.load(VADD, "nothing")
    with pytest.raises(CodeObjectError):
        dev.load(VADD[:100], "vadd_f32")


def test_wild_address_is_a_fault_and_the_next_kernel_runs(dev: Device) -> None:
    x = dev.copyin(np.zeros(N, np.float32))
    kernel = dev.load(VADD, "vadd_f32")
    with pytest.raises(DeviceFault) as caught:
        kernel(x, x, None, np.uint32(256), global_size=(1,), wait=True)
    report = str(caught.value)
    for part in ("page fault in kernel vadd_f32", "write at 0x0", "global_store_b32", "workgroup", "lane", "nearest"):
        assert part in report
    assert np.array_equal(run_vadd(dev), expected())


def test_illegal_instruction_is_a_fault_and_the_next_kernel_runs(dev: Device) -> None:
    with pytest.raises(DeviceFault, match="illegal instruction in kernel vadd_f32"):
        run_vadd(dev, patched(ILLEGAL))
    assert np.array_equal(run_vadd(dev), expected())


def test_bad_packet_is_a_fault_that_names_it() -> None:
    class Garbage:
        def encode(self) -> tuple[int, ...]:
            return (0xC000FE00, 0)

    with Device(MOCK) as device:
        device.submit_pm4([Garbage()])  # type: ignore[list-item]  # only encode() is asked of it
        with pytest.raises(DeviceFault, match="unknown PM4 opcode 0xfe"):
            device.synchronize()
        assert np.array_equal(run_vadd(device), expected())


def test_time_out_says_what_was_awaited_and_what_was_seen() -> None:
    device = Device(MOCK)
    endless = device.load(patched(S_BRANCH_SELF), "vadd_f32")
    x = device.copyin(np.zeros(N, np.float32))
    device.synchronize()
    endless(x, x, x, np.uint32(N), global_size=(1,))
    seen, value = device.timeline.reached, device.timeline.submitted
    with pytest.raises(DeviceTimeout, match=f"0.2 s for the timeline to reach {value}; signal .* is {seen}, {value} sub"):
        device.synchronize(timeout_s=0.2)
    for queue in device._queues.values():  # ends the kernel
        queue.close()
    device._give_up()
    assert np.array_equal(run_vadd(device), expected())
    device.close()


def test_closed_device_refuses_work() -> None:
    device = Device(MOCK)
    device.close()
    device.close()
    with pytest.raises(ArgumentError, match="closed"):
        device.copyin(np.zeros(4))


def test_unbuilt_interface_is_named() -> None:
    with pytest.raises(Unmodelled, match=r"MOCKPCI\+AMD"):
        Device("MOCKPCI+AMD")


def test_gpu_that_is_not_there_is_named(dev: Device) -> None:
    with pytest.raises(LookupError, match="no GPU 1"):
        Device("MOCKKFD:0+AMD", index=1)


@pytest.mark.parametrize("kind", [abi.QueueType.COMPUTE, abi.QueueType.SDMA])
def test_ring_wraps_at_every_offset(dev: Device, kind: abi.QueueType) -> None:
    """Packets of many lengths on a ring of one page, far more than once around."""
    memory = dev.gpu.alloc(4096, HOST)
    queue = Queue(dev.gpu, kind, lambda done, what: dev._wait(done, what, 10), ring_bytes=4096)
    signal = memory.u64(0)
    for i in range(1, 700):
        queue.submit(fence(kind, memory.va, i, padding=i % 11))
    dev._wait(lambda: signal.value == 699, "the last fence", 10)
    assert queue.wptr_bytes > 2 * 4096
    queue.close()
    dev.gpu.free(memory)


def fence(kind: abi.QueueType, va: int, value: int, padding: int) -> list[Any]:
    from stuntgpu.isa.packets import pm4, sdma

    if kind is abi.QueueType.SDMA:
        return [sdma.Nop()] * padding + [sdma.Fence(addr=va, data=value)]
    return [pm4.HeaderNop.from_body((), 0)] * padding + [
        pm4.WriteData(dst_sel=pm4.WriteDst.MEMORY, addr=va, confirm=True, tail=(value, 0))]


def test_signal_is_read_live(dev: Device) -> None:
    assert isinstance(dev.timeline._signal, ctypes.c_uint64)
