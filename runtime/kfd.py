"""The KFD interface: GPUs of the topology, memory, queues and events through /dev/kfd and the render nodes.

KFD keeps one address space for a process and a GPU, so a process opens each node once and all its
devices share it.

Units:   bytes; GPU virtual addresses equal CPU addresses.
Errors:  OSError from the driver, with what was asked for; LookupError when there is no such GPU.
Source:  linux uapi kfd_ioctl.h; kfd_topology.c for the files under sysfs.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stuntgpu.isa.abi import kfd as abi
from stuntgpu.isa.abi.ioctl import CStruct, Ioctl
from stuntgpu.isa.abi.kfd import AllocFlags, EventType, QueueType
from stuntgpu.isa.abi.targets import round_up
from stuntgpu.runtime.dev import DevSpec
from stuntgpu.runtime.files import Files, Metal, door

if TYPE_CHECKING:
    from stuntgpu.runtime.device import Device

TOPOLOGY = "/sys/devices/virtual/kfd/kfd/topology/nodes"
PAGE = 4096
EVENT_PAGE_BYTES = abi.KFD_SIGNAL_EVENT_LIMIT * 8
DOORBELL_PAGE = 0x2000
PROT_NONE, PROT_RW = 0, mmap.PROT_READ | mmap.PROT_WRITE
MAP_FIXED, MAP_NORESERVE = 0x10, 0x4000
DEFAULT_MOCK_ARCH = "gfx1100"

#: Memory the CPU and the GPU see alike, and memory of the GPU.
HOST = AllocFlags.GTT | AllocFlags.COHERENT | AllocFlags.WRITABLE | AllocFlags.EXECUTABLE
VRAM = AllocFlags.VRAM | AllocFlags.WRITABLE | AllocFlags.EXECUTABLE


@dataclass(frozen=True, slots=True)
class Allocation:
    """[va, va + size) of one GPU; CPU-visible unless it is plain VRAM."""

    va: int
    size: int
    handle: int

    def store(self, offset: int, data: bytes) -> None:
        """CPU write of CPU-visible memory."""
        ctypes.memmove(self.va + offset, data, len(data))

    def u64(self, offset: int) -> ctypes.c_uint64:
        """A live 64-bit word of CPU-visible memory."""
        return ctypes.c_uint64.from_address(self.va + offset)


@dataclass(frozen=True, slots=True)
class HardwareQueue:
    """A queue KFD made: its id and the word that wakes it."""

    queue_id: int
    doorbell: ctypes.c_uint64


@dataclass(frozen=True, slots=True)
class Event:
    """A signal event and the mailbox word the GPU writes its id to."""

    event_id: int
    mailbox_va: int


class Machine:
    """/dev/kfd of one machine, open for the life of the process."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self.lock = threading.RLock()
        self.devices: weakref.WeakSet[Device] = weakref.WeakSet()
        self.fd = files.open(abi.KFD_NODE)
        self.gpus = [Gpu(self, int(node)) for node in sorted(files.listdir(TOPOLOGY), key=int) if self._is_gpu(node)]
        self._event_page: Allocation | None = None

    def _is_gpu(self, node: str) -> bool:
        return self.files.read_text(f"{TOPOLOGY}/{node}/gpu_id").strip() not in ("", "0")

    def is_alive(self) -> bool:
        """Whether the driver still answers."""
        try:
            self.call(abi.GET_VERSION, abi.GetVersion())
        except OSError:
            return False
        return True

    def call(self, entry: Ioctl, args: CStruct) -> None:
        """One ioctl. The OSError names the call."""
        try:
            self.files.ioctl(self.fd, entry.request, args)
        except OSError as e:
            raise OSError(e.errno, f"{entry.name}: {e.strerror} ({args!r})") from e

    def event(self, gpu: Gpu, type_: EventType) -> Event:
        """A new auto-reset event. The mailbox page comes with the first signal event of the process."""
        with self.lock:
            if self._event_page is None:
                self._event_page = gpu.alloc(EVENT_PAGE_BYTES, HOST)
                page = self._event_page.handle
            else:
                page = 0
            args = abi.CreateEvent(event_page_offset=page, event_type=type_, auto_reset=1)
            self.call(abi.CREATE_EVENT, args)
        return Event(args.event_id, self._event_page.va + 8 * args.event_slot_index)

    def wait(self, events: tuple[Event, ...], timeout_ms: int) -> list[abi.EventData]:
        """Sleep until one of the events is set, at most so long; their data, payload filled where set."""
        data = (abi.EventData * len(events))()
        for d, event in zip(data, events, strict=True):
            d.event_id = event.event_id
        self.call(abi.WAIT_EVENTS, abi.WaitEvents(events_ptr=ctypes.addressof(data), num_events=len(events),
                                                  timeout=timeout_ms))
        return list(data)

    def destroy_event(self, event: Event) -> None:
        self.call(abi.DESTROY_EVENT, abi.EventId(event_id=event.event_id))

    def last_fault(self) -> str:
        """The driver's report of the oldest fault not fetched yet; "" when it has none or tells none."""
        room = ctypes.create_string_buffer(1 << 16)
        args = abi.LastFault(text_ptr=ctypes.addressof(room), size_bytes=len(room))
        try:
            self.files.ioctl(self.fd, abi.LAST_FAULT.request, args)
        except OSError:  # a driver of metal knows no such call
            return ""
        return room.raw[: args.length_bytes].decode(errors="replace")


class Gpu:
    """One GPU of the topology. Its render node is opened, and its address space taken, on first use."""

    def __init__(self, machine: Machine, node: int) -> None:
        self.machine, self.node = machine, node
        files = machine.files
        self.gpu_id = int(files.read_text(f"{TOPOLOGY}/{node}/gpu_id"))
        self.properties = _properties(files.read_text(f"{TOPOLOGY}/{node}/properties"))
        version = self.properties["gfx_target_version"]
        self.arch = f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"
        self._render = -1
        self._doorbells: dict[int, int] = {}

    @property
    def render(self) -> int:
        """The render node's descriptor."""
        machine = self.machine
        with machine.lock:
            if self._render < 0:
                self._render = machine.files.open(f"/dev/dri/renderD{self.properties['drm_render_minor']}")
                machine.call(abi.ACQUIRE_VM, abi.AcquireVm(drm_fd=self._render, gpu_id=self.gpu_id))
        return self._render

    def alloc(self, size: int, flags: AllocFlags) -> Allocation:
        """Memory of this GPU, mapped for it, and for the CPU when it is host memory or public."""
        machine, files, size = self.machine, self.machine.files, round_up(max(size, 1), PAGE)
        render = self.render
        va = files.mmap(0, size, PROT_NONE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
        args = abi.AllocMemoryOfGpu(va_addr=va, size=size, gpu_id=self.gpu_id, flags=int(flags))
        try:
            machine.call(abi.ALLOC_MEMORY_OF_GPU, args)
        except OSError:
            files.munmap(va, size)
            raise
        self._map(args.handle, abi.MAP_MEMORY_TO_GPU)
        if flags & (AllocFlags.GTT | AllocFlags.PUBLIC):
            files.mmap(va, size, PROT_RW, mmap.MAP_SHARED | MAP_FIXED, render, args.mmap_offset)
        return Allocation(va, size, args.handle)

    def _map(self, handle: int, entry: Ioctl) -> None:
        ids = (ctypes.c_uint32 * 1)(self.gpu_id)
        self.machine.call(entry, abi.MapMemoryToGpu(handle=handle, device_ids_array_ptr=ctypes.addressof(ids),
                                                    n_devices=1))

    def free(self, allocation: Allocation) -> None:
        self._map(allocation.handle, abi.UNMAP_MEMORY_FROM_GPU)
        self.machine.call(abi.FREE_MEMORY_OF_GPU, abi.FreeMemoryOfGpu(handle=allocation.handle))
        self.machine.files.munmap(allocation.va, allocation.size)

    def create_queue(self, kind: QueueType, ring: Allocation, rptr_va: int, wptr_va: int,
                     eop: Allocation | None) -> HardwareQueue:
        """A user queue over `ring`. `eop`: the end-of-pipe buffer compute queues need."""
        args = abi.CreateQueue(
            ring_base_address=ring.va, ring_size=ring.size, gpu_id=self.gpu_id, queue_type=kind,
            read_pointer_address=rptr_va, write_pointer_address=wptr_va,
            queue_percentage=abi.KFD_MAX_QUEUE_PERCENTAGE, queue_priority=7,
            eop_buffer_address=eop.va if eop else 0, eop_buffer_size=eop.size if eop else 0)
        self.machine.call(abi.CREATE_QUEUE, args)
        page = args.doorbell_offset & ~(DOORBELL_PAGE - 1)
        if page not in self._doorbells:
            self._doorbells[page] = self.machine.files.mmap(0, DOORBELL_PAGE, PROT_RW, mmap.MAP_SHARED,
                                                            self.machine.fd, page)
        at = self._doorbells[page] + (args.doorbell_offset & (DOORBELL_PAGE - 1))
        return HardwareQueue(args.queue_id, ctypes.c_uint64.from_address(at))

    def destroy_queue(self, queue: HardwareQueue) -> None:
        self.machine.call(abi.DESTROY_QUEUE, abi.DestroyQueue(queue_id=queue.queue_id))

    # ---- what dispatches are sized by

    @property
    def shader_engines(self) -> int:
        return max(1, self.properties["array_count"] // max(1, self.properties["simd_arrays_per_engine"]))

    @property
    def scratch_waves_per_engine(self) -> int:
        """Waves of one shader engine that can have scratch at one time."""
        p = self.properties
        return p["simd_count"] // p["simd_per_cu"] // self.shader_engines * p["max_slots_scratch_cu"]


def _properties(text: str) -> Mapping[str, int]:
    return {name: int(value) for name, value in (line.split() for line in text.splitlines() if line.strip())}


def find_gpu(spec: DevSpec, index: int) -> Gpu:
    """The `index`-th GPU `spec` lets through. Raises LookupError naming how many there are."""
    wanted = spec.indices[index] if index < len(spec.indices) else index if not spec.indices else -1
    gpus = machine(spec, max([0, index, *spec.indices]) + 1).gpus
    if not 0 <= wanted < len(gpus):
        raise LookupError(f"DEV={spec}: no GPU {index}, the machine has {len(gpus)}: "
                          f"{', '.join(g.arch for g in gpus) or 'none'}")
    gpu = gpus[wanted]
    if spec.arch and gpu.arch != spec.arch:
        raise LookupError(f"DEV={spec}: GPU {wanted} is a {gpu.arch}, not a {spec.arch}")
    return gpu


_machines: dict[tuple[str, int], Machine] = {}
_machines_lock = threading.Lock()


def machine(spec: DevSpec, n_gpus: int) -> Machine:
    """The machine behind an interface; the same one for every device of this process.

    A mock machine has the GPUs its first user asked for: at least `n_gpus`, of one architecture. One
    that no longer answers (its server has gone, a newer door took its place) is replaced.
    """
    interface = spec.interface if spec.is_mock else ""
    with _machines_lock:
        key = interface, os.getpid()  # descriptors and mappings of a parent are not the child's
        if key not in _machines or not _machines[key].is_alive():
            gpus = (spec.arch or DEFAULT_MOCK_ARCH,) * n_gpus
            _machines[key] = Machine(door(interface, gpus) if interface else Metal())
        return _machines[key]
