"""KFD queue calls, and what a queue that stops does to its process.

Errors:  those of kfd_chardev.c set_queue_properties_from_user and kfd_queue.c: EINVAL for bad
         properties and for buffers that are not mapped, ESRCH before ACQUIRE_VM, EOPNOTSUPP for a kind
         that is not built (one log line names it), EFAULT for UPDATE_QUEUE of an unknown queue.
"""

from __future__ import annotations

import logging
from errno import EFAULT, EINVAL, ENOMEM, EOPNOTSUPP, ESRCH

from stuntgpu.emu.faults import KernelFault
from stuntgpu.emu.memory import EXECUTE, READ, WRITE
from stuntgpu.isa.abi import kfd as abi
from stuntgpu.isa.abi.kfd import QueueType
from stuntgpu.isa.errors import Unmodelled
from stuntgpu.isa.packets.base import PacketError
from stuntgpu.mockdrivers.core.client import Client
from stuntgpu.mockdrivers.core.device import fail, ioctl
from stuntgpu.mockdrivers.core.gpu import Gpu
from stuntgpu.mockdrivers.core.memory import PAGE
from stuntgpu.mockdrivers.core.queues import Fault, UserQueue
from stuntgpu.mockdrivers.core.seam import QueueKind, Ring
from stuntgpu.mockdrivers.kfd.base import DOORBELL_BYTES, DOORBELL_SLICE, KfdBase
from stuntgpu.mockdrivers.protocol import Caller

log = logging.getLogger("stuntgpu.driver")

MAX_QUEUES = DOORBELL_SLICE // DOORBELL_BYTES
KINDS = {
    QueueType.COMPUTE: QueueKind.PM4,
    QueueType.COMPUTE_AQL: QueueKind.AQL,
    QueueType.SDMA: QueueKind.SDMA,
    QueueType.SDMA_XGMI: QueueKind.SDMA,
    QueueType.SDMA_BY_ENG_ID: QueueKind.SDMA,
}


class QueueCalls(KfdBase):
    """The queue part of the KFD table."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self.queues: dict[int, Gpu] = {}

    @ioctl(abi.CREATE_QUEUE)
    def create_queue(self, args: abi.CreateQueue, caller: Caller) -> None:
        _check_shares(args, "create_queue")
        _check_ring_size(args.ring_size, "create_queue")
        kind = KINDS.get(QueueType(args.queue_type)) if args.queue_type in list(QueueType) else None
        if kind is None:
            fail(EOPNOTSUPP, "create_queue.queue_type", args.queue_type)
        gpu = self.bound_gpu(args.gpu_id, "create_queue", ESRCH)
        _check_mapped(gpu, args)
        with self.lock:
            queue_id = next((i for i in range(MAX_QUEUES) if i not in self.queues), None)
            if queue_id is None:
                fail(ENOMEM, "create_queue", f"{MAX_QUEUES} queues exist")
            self._start(gpu, args, queue_id, kind)
        args.queue_id = queue_id
        args.doorbell_offset = (abi.KFD_MMAP_TYPE_DOORBELL << abi.KFD_MMAP_TYPE_SHIFT
                                | gpu.gpu_id << abi.KFD_MMAP_GPU_ID_SHIFT | queue_id * DOORBELL_BYTES)

    def _start(self, gpu: Gpu, args: abi.CreateQueue, queue_id: int, kind: QueueKind) -> None:
        ring = Ring(queue_id, kind, gpu.chip.arch, args.ring_base_address, args.ring_size,
                    args.read_pointer_address, args.write_pointer_address, args.eop_buffer_address,
                    args.eop_buffer_size, gpu.chip.device.xccs)
        doorbells = self.page("doorbell", gpu.gpu_id, DOORBELL_SLICE)
        try:
            gpu.register_queue(ring, doorbells.host + queue_id * DOORBELL_BYTES, self,
                               lambda queue, fault: self._stopped(gpu, queue, fault))
        except Unmodelled as e:
            log.warning("%s: %s", self.node, e)
            fail(EOPNOTSUPP, "create_queue.queue_type", args.queue_type)
        self.queues[queue_id] = gpu

    @ioctl(abi.DESTROY_QUEUE)
    def destroy_queue(self, args: abi.DestroyQueue, caller: Caller) -> None:
        with self.lock:
            gpu = self.queues.pop(args.queue_id, None) or fail(EINVAL, "destroy_queue.queue_id", args.queue_id)
            gpu.destroy_queue(args.queue_id)

    @ioctl(abi.UPDATE_QUEUE)
    def update_queue(self, args: abi.UpdateQueue, caller: Caller) -> None:
        """Only the share is modelled: 0 percent or no ring rests the queue."""
        _check_shares(args, "update_queue")
        _check_ring_size(args.ring_size, "update_queue")
        with self.lock:
            gpu = self.queues.get(args.queue_id) or fail(EFAULT, "update_queue.queue_id", args.queue_id)
            queue = gpu.queues[args.queue_id]
            queue.pause(not (args.queue_percentage and args.ring_base_address and args.ring_size))

    def signal_event(self, event_id: int, data: int = 0) -> None:
        """An interrupt of a queue (seam.py QueueHost)."""
        self.events.interrupt(event_id)

    def _stopped(self, gpu: Gpu, queue: UserQueue, fault: Fault) -> None:
        """Tell the process as hardware would: a memory exception for a page fault, else a reset."""
        where = f"GPU {gpu.gpu_id} ({gpu.chip.arch}), {queue.ring.kind.value} queue {queue.ring.queue_id}"
        self.client.report_fault(f"{where}: {fault}")
        address = _missed_address(fault)
        if address is not None:
            self.events.exception(abi.EventType.MEMORY, _memory_exception(gpu, fault, address))
            return
        payload = abi.HwExceptionData(reset_type=abi.ResetType.PER_ENGINE, reset_cause=abi.ResetCause.GPU_HANG,
                                      memory_lost=0, gpu_id=gpu.gpu_id)
        self.events.exception(abi.EventType.HW_EXCEPTION, payload)


def _missed_address(fault: Fault) -> int | None:
    """The address of a page fault of a kernel or of a packet; None for other faults."""
    if isinstance(fault, KernelFault):
        return fault.address if fault.kind == "page fault" else None
    return fault.address if isinstance(fault, PacketError) else None


def _memory_exception(gpu: Gpu, fault: Fault, address: int) -> abi.MemoryExceptionData:
    region, access = gpu.space.find(address), getattr(fault, "access", "")
    perms = region.perms if region else READ | WRITE | EXECUTE
    return abi.MemoryExceptionData(
        NotPresent=int(region is None),
        ReadOnly=int(access in ("write", "atomic") and not perms & WRITE),
        NoExecute=int(access == "fetch" and not perms & EXECUTE),
        va=address // PAGE * PAGE, gpu_id=gpu.gpu_id)


def _check_shares(args: abi.CreateQueue | abi.UpdateQueue, call: str) -> None:
    if args.queue_percentage & 0xFF > abi.KFD_MAX_QUEUE_PERCENTAGE:
        fail(EINVAL, f"{call}.queue_percentage", args.queue_percentage)
    if args.queue_priority > abi.KFD_MAX_QUEUE_PRIORITY:
        fail(EINVAL, f"{call}.queue_priority", args.queue_priority)


def _check_ring_size(size: int, call: str) -> None:
    if size & (size - 1):
        fail(EINVAL, f"{call}.ring_size", size)


def _check_mapped(gpu: Gpu, args: abi.CreateQueue) -> None:
    """Ring and pointers must lie in memory the GPU sees."""
    ranges = {
        "ring_base_address": (args.ring_base_address, args.ring_size),
        "read_pointer_address": (args.read_pointer_address, 8),
        "write_pointer_address": (args.write_pointer_address, 8),
        "eop_buffer_address": (args.eop_buffer_address, args.eop_buffer_size),
    }
    for field, (va, size) in ranges.items():
        optional = field == "eop_buffer_address" and not va
        if not optional and gpu.space.find(va, max(size, 1)) is None:
            fail(EINVAL, f"create_queue.{field} (not mapped)", va)
