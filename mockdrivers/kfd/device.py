"""/dev/kfd: the table of its calls. Memory and queue calls are in their own files; the rest is here.

Units:   clock counters as the kernel gives them: the GPU's in 100 MHz ticks, the others in ns.
Errors:  as the kernel's kfd_chardev.c; an unknown number is EINVAL there and here.
"""

from __future__ import annotations

import ctypes
import time
from errno import EBUSY, EFAULT, EINVAL, EIO, ENODEV, EPERM
from typing import ClassVar

from stuntgpu.isa.abi import kfd as abi
from stuntgpu.isa.abi.ioctl import Ioctl
from stuntgpu.mockdrivers.core.client import Client
from stuntgpu.mockdrivers.core.device import Device, Mapping, fail, ioctl
from stuntgpu.mockdrivers.core.memory import Buffer
from stuntgpu.mockdrivers.core.queues import constant_clock
from stuntgpu.mockdrivers.kfd.base import DOORBELL_SLICE, MMIO_REMAP_BYTES
from stuntgpu.mockdrivers.kfd.memory import MemoryCalls
from stuntgpu.mockdrivers.kfd.queues import QueueCalls
from stuntgpu.mockdrivers.kfd.render import RenderNode
from stuntgpu.mockdrivers.protocol import Caller, ClientError

LDS_BASE, SCRATCH_BASE, APERTURE_BYTES = 0x1_0000_0000_0000, 0x2_0000_0000_0000, 1 << 32
GPUVM_BASE, GPUVM_LIMIT = 0x4000, 0x7FFF_FFFF_FFFF
EVENT_PAGE_BYTES = abi.KFD_SIGNAL_EVENT_LIMIT * 8
MAX_WAIT_EVENTS = 4096
MAX_TILE_CONFIGS, MAX_MACRO_TILE_CONFIGS = 32, 16


class Kfd(MemoryCalls, QueueCalls):
    """/dev/kfd as one process has it open."""

    poll_mask: ClassVar[int] = 0x145  # POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM: the driver has no poll
    accepted: ClassVar[tuple[Ioctl, ...]] = (
        abi.SET_MEMORY_POLICY,
        abi.SET_SCRATCH_BACKING_VA,
        abi.SET_TRAP_HANDLER,
        abi.SET_CU_MASK,
    )
    refused: ClassVar[dict[Ioctl, int]] = {
        abi.SVM: EPERM,  # as a kernel built without HSA_AMD_SVM
        abi.CRIU_OP: EPERM,
        abi.DBG_TRAP: EPERM,
        abi.DBG_REGISTER_DEPRECATED: EPERM,
        abi.DBG_UNREGISTER_DEPRECATED: EPERM,
        abi.DBG_ADDRESS_WATCH_DEPRECATED: EPERM,
        abi.DBG_WAVE_CONTROL_DEPRECATED: EPERM,
        abi.SMI_EVENTS: EINVAL,
        abi.ALLOC_QUEUE_GWS: ENODEV,
        abi.GET_QUEUE_WAVE_STATE: EINVAL,
        abi.GET_DMABUF_INFO: EINVAL,
        abi.IMPORT_DMABUF: EINVAL,
        abi.EXPORT_DMABUF: EINVAL,
    }

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self._runtime_enabled = False
        self._drm_files: dict[int, Device] = {}

    @ioctl(abi.GET_VERSION)
    def get_version(self, args: abi.GetVersion, caller: Caller) -> None:
        args.major_version, args.minor_version = abi.MAJOR_VERSION, abi.MINOR_VERSION

    @ioctl(abi.ACQUIRE_VM)
    def acquire_vm(self, args: abi.AcquireVm, caller: Caller) -> None:
        self.gpu(args.gpu_id, "acquire_vm")
        try:
            device = self.client.file(caller.file(args.drm_fd))
        except ClientError:
            fail(EINVAL, "acquire_vm.drm_fd", args.drm_fd)
        if not isinstance(device, RenderNode) or device.gpu.gpu_id != args.gpu_id:
            fail(EINVAL, "acquire_vm.drm_fd", args.drm_fd)
        with self.lock:
            if self._drm_files.setdefault(args.gpu_id, device) is not device:
                fail(EBUSY, "acquire_vm.drm_fd", args.drm_fd)
            self.with_vm.add(args.gpu_id)

    @ioctl(abi.GET_CLOCK_COUNTERS)
    def get_clock_counters(self, args: abi.GetClockCounters, caller: Caller) -> None:
        self.gpu(args.gpu_id, "get_clock_counters")
        args.gpu_clock_counter = constant_clock()
        args.cpu_clock_counter = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        args.system_clock_counter = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        args.system_clock_freq = 1_000_000_000

    def _apertures(self) -> list[abi.ProcessDeviceApertures]:
        return [abi.ProcessDeviceApertures(
            lds_base=LDS_BASE, lds_limit=LDS_BASE + APERTURE_BYTES - 1, scratch_base=SCRATCH_BASE,
            scratch_limit=SCRATCH_BASE + APERTURE_BYTES - 1, gpuvm_base=GPUVM_BASE, gpuvm_limit=GPUVM_LIMIT,
            gpu_id=gpu_id) for gpu_id in self.client.gpus]

    @ioctl(abi.GET_PROCESS_APERTURES)
    def get_process_apertures(self, args: abi.GetProcessApertures, caller: Caller) -> None:
        rows = self._apertures()[: abi.NUM_OF_SUPPORTED_GPUS]
        for i, row in enumerate(rows):
            args.process_apertures[i] = row
        args.num_of_nodes = len(rows)

    @ioctl(abi.GET_PROCESS_APERTURES_NEW)
    def get_process_apertures_new(self, args: abi.GetProcessAperturesNew, caller: Caller) -> None:
        """With num_of_nodes 0 only the count is asked for."""
        rows = self._apertures()
        if args.num_of_nodes:
            rows = rows[: args.num_of_nodes]
            caller.poke(args.kfd_process_device_apertures_ptr, b"".join(bytes(r) for r in rows))
        args.num_of_nodes = len(rows)

    @ioctl(abi.GET_TILE_CONFIG)
    def get_tile_config(self, args: abi.GetTileConfig, caller: Caller) -> None:
        """The tables are zeros on every chip that has no legacy tiling, so all of ours."""
        gpu = self.gpu(args.gpu_id, "get_tile_config")
        args.gb_addr_config, args.num_banks, args.num_ranks = gpu.chip.gb_addr_config, 0, 0
        args.num_tile_configs = min(args.num_tile_configs, MAX_TILE_CONFIGS)
        args.num_macro_tile_configs = min(args.num_macro_tile_configs, MAX_MACRO_TILE_CONFIGS)
        caller.poke(args.tile_config_ptr, bytes(4 * args.num_tile_configs))
        caller.poke(args.macro_tile_config_ptr, bytes(4 * args.num_macro_tile_configs))

    @ioctl(abi.SET_XNACK_MODE)
    def set_xnack_mode(self, args: abi.SetXnackMode, caller: Caller) -> None:
        """A negative mode asks; retry faults are off for good."""
        if args.xnack_enabled > 0:
            fail(EBUSY if self.queues else EPERM, "set_xnack_mode.xnack_enabled", args.xnack_enabled)
        args.xnack_enabled = 0

    @ioctl(abi.RUNTIME_ENABLE)
    def runtime_enable(self, args: abi.RuntimeEnable, caller: Caller) -> None:
        enable = bool(args.mode_mask & 1)
        if enable and self._runtime_enabled:
            fail(EBUSY, "runtime_enable.mode_mask", args.mode_mask)
        self._runtime_enabled = enable

    @ioctl(abi.CREATE_EVENT)
    def create_event(self, args: abi.CreateEvent, caller: Caller) -> None:
        """`event_page_offset`, when given, is the handle of the buffer that becomes the mailbox page."""
        with self.lock:
            if args.event_page_offset:
                self._set_event_page(args.event_page_offset)
            event = self.events.create(args.event_type, bool(args.auto_reset))
        args.event_id = event.event_id
        if args.event_type == abi.EventType.SIGNAL:
            args.event_trigger_data = args.event_slot_index = event.event_id
            args.event_page_offset = abi.KFD_MMAP_TYPE_EVENTS << abi.KFD_MMAP_TYPE_SHIFT

    def _set_event_page(self, handle: int) -> None:
        found = self.allocations.get(handle) or fail(EINVAL, "create_event.event_page_offset", handle)
        if self.events.has_page:
            fail(EBUSY, "create_event.event_page_offset", handle)
        if found.size < EVENT_PAGE_BYTES:
            fail(EINVAL, "create_event.event_page_offset (buffer too small)", found.size)
        self.events.set_page(found.backing.host)

    @ioctl(abi.DESTROY_EVENT)
    def destroy_event(self, args: abi.EventId, caller: Caller) -> None:
        self.events.destroy(args.event_id)

    @ioctl(abi.SET_EVENT)
    def set_event(self, args: abi.EventId, caller: Caller) -> None:
        self.events.set_by_process(args.event_id)

    @ioctl(abi.RESET_EVENT)
    def reset_event(self, args: abi.EventId, caller: Caller) -> None:
        self.events.reset(args.event_id)

    @ioctl(abi.WAIT_EVENTS)
    def wait_events(self, args: abi.WaitEvents, caller: Caller) -> None:
        if args.num_events > MAX_WAIT_EVENTS:
            fail(EINVAL, "wait_events.num_events", args.num_events)
        size = ctypes.sizeof(abi.EventData)
        raw = caller.peek(args.events_ptr, size * args.num_events)
        data = [abi.EventData.from_buffer_copy(raw, size * i) for i in range(args.num_events)]
        timeout_s = None if args.timeout == abi.TIMEOUT_FOREVER else args.timeout / 1000
        args.wait_result = self.events.wait(data, bool(args.wait_for_all), timeout_s, caller.tick)
        if args.wait_result == abi.WaitResult.FAIL:
            fail(EIO, "wait_events", "an event was destroyed, or a queue stopped and no event tells")
        if args.wait_result == abi.WaitResult.COMPLETE:
            caller.poke(args.events_ptr, b"".join(bytes(d) for d in data))

    def ioctl(self, request: int, data: bytes, caller: Caller) -> tuple[int, bytes]:
        if request == abi.LAST_FAULT.request:
            return 0, self._last_fault(abi.LastFault.from_buffer_copy(data), caller)
        return super().ioctl(request, data, caller)

    def _last_fault(self, args: abi.LastFault, caller: Caller) -> bytes:
        text = self.client.faults[0].encode() if self.client.faults else b""
        args.length_bytes = len(text)
        if text and args.size_bytes >= len(text):
            caller.poke(args.text_ptr, text)
            self.client.faults.popleft()
        return bytes(args)

    def mmap(self, length: int, prot: int, flags: int, offset: int) -> Mapping:
        """Doorbells, the remapped MMIO page, or the driver's own event page, by the offset's type."""
        kind = offset >> abi.KFD_MMAP_TYPE_SHIFT
        gpu_id = offset >> abi.KFD_MMAP_GPU_ID_SHIFT & 0xFFFF
        if kind == abi.KFD_MMAP_TYPE_EVENTS:
            return self._map_event_page(length)
        names = {abi.KFD_MMAP_TYPE_DOORBELL: ("doorbell", DOORBELL_SLICE),
                 abi.KFD_MMAP_TYPE_MMIO: ("mmio", MMIO_REMAP_BYTES)}
        if kind not in names or gpu_id not in self.client.gpus:
            fail(EFAULT if kind not in names else ENODEV, "mmap.offset", offset)
        name, size = names[kind]
        if length != size:
            fail(EINVAL, "mmap.length", length)
        buffer = self.page(name, gpu_id, size)
        return Mapping(buffer.heap.fd, buffer.offset)

    def _map_event_page(self, length: int) -> Mapping:
        if length != EVENT_PAGE_BYTES:
            fail(EINVAL, "mmap.length", length)
        with self.lock:
            fresh = ("events", 0) not in self.pages
            if fresh and self.events.has_page:
                fail(EINVAL, "mmap.offset (the event page is a buffer of the process)", length)
            page: Buffer = self.page("events", 0, EVENT_PAGE_BYTES)
            if fresh:
                self.events.set_page(page.host)
        return Mapping(page.heap.fd, page.offset)
