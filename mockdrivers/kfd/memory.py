"""KFD memory calls: allocate, map to GPUs, unmap, free.

Units:   bytes; a handle is gpu_id << 32 | number.
Errors:  those of kfd_chardev.c and amdgpu_amdkfd_gpuvm.c: EINVAL for bad arguments and overlapping
         addresses, ENOMEM for no room and for an unknown handle in MAP and UNMAP, EBUSY for freeing
         what is still mapped, ENODEV before ACQUIRE_VM.
"""

from __future__ import annotations

import itertools
import struct
from dataclasses import dataclass, field
from errno import EBUSY, EINVAL, ENOMEM

from stuntgpu.emu.memory import EXECUTE, READ, WRITE
from stuntgpu.isa.abi import kfd as abi
from stuntgpu.isa.abi.kfd import AllocFlags
from stuntgpu.mockdrivers.core.client import Client
from stuntgpu.mockdrivers.core.device import fail, ioctl
from stuntgpu.mockdrivers.core.gpu import Gpu
from stuntgpu.mockdrivers.core.memory import PAGE, Buffer, OutOfMemory, round_up
from stuntgpu.mockdrivers.core.userptr import PinnedPages
from stuntgpu.mockdrivers.kfd.base import DOORBELL_SLICE, MMIO_REMAP_BYTES, KfdBase
from stuntgpu.mockdrivers.protocol import Caller

MAX_DEVICES = 64
KINDS = (AllocFlags.VRAM, AllocFlags.GTT, AllocFlags.USERPTR, AllocFlags.DOORBELL, AllocFlags.MMIO_REMAP)


@dataclass(slots=True)
class Allocation:
    """One ALLOC_MEMORY_OF_GPU; `mapped` are the gpu_ids that see it at `va`."""

    handle: int
    gpu: Gpu
    kind: AllocFlags
    flags: AllocFlags
    va: int
    size: int
    backing: Buffer | PinnedPages
    mmap_offset: int = 0
    mapped: set[int] = field(default_factory=set)

    @property
    def name(self) -> str:
        return f"{(self.kind.name or '').lower()} {self.handle & 0xFFFFFFFF}"

    @property
    def perms(self) -> int:
        return (READ | (WRITE if self.flags & AllocFlags.WRITABLE else 0)
                | (EXECUTE if self.flags & AllocFlags.EXECUTABLE else 0))


class MemoryCalls(KfdBase):
    """The memory part of the KFD table."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self.allocations: dict[int, Allocation] = {}
        self._numbers = itertools.count(1)

    @ioctl(abi.ALLOC_MEMORY_OF_GPU)
    def alloc_memory(self, args: abi.AllocMemoryOfGpu, caller: Caller) -> None:
        if not args.size:
            fail(EINVAL, "alloc_memory.size", 0)
        self.gpu(args.gpu_id, "alloc_memory")
        gpu = self.bound_gpu(args.gpu_id, "alloc_memory")
        flags = AllocFlags(args.flags)
        kind = next((k for k in KINDS if flags & k), None) or fail(EINVAL, "alloc_memory.flags", args.flags)
        with self.lock:
            try:
                backing = self._backing(kind, gpu, args, caller)
            except OutOfMemory as e:
                fail(ENOMEM, "alloc_memory.size", str(e))
            handle = args.gpu_id << 32 | next(self._numbers)
            made = Allocation(handle, gpu, kind, flags, args.va_addr, round_up(args.size), backing)
            self.allocations[handle] = made
            made.mmap_offset = args.mmap_offset = self._mmap_offset(made, args.mmap_offset)
        args.handle = handle

    def _backing(self, kind: AllocFlags, gpu: Gpu, args: abi.AllocMemoryOfGpu, caller: Caller) -> Buffer | PinnedPages:
        memory = self.client.memory
        if kind is AllocFlags.VRAM:
            return gpu.vram.allocate(args.size)
        if kind is AllocFlags.GTT:
            return memory.gtt.allocate(args.size)
        if kind is AllocFlags.USERPTR:
            if not args.mmap_offset or args.mmap_offset % PAGE:
                fail(EINVAL, "alloc_memory.mmap_offset (user address)", args.mmap_offset)
            return memory.user.pin(args.mmap_offset, round_up(args.size), caller)
        want = DOORBELL_SLICE if kind is AllocFlags.DOORBELL else MMIO_REMAP_BYTES
        if args.size != want:
            fail(EINVAL, "alloc_memory.size", args.size)
        return self.page("doorbell" if kind is AllocFlags.DOORBELL else "mmio", gpu.gpu_id, want)

    def _mmap_offset(self, made: Allocation, asked: int) -> int:
        gpu_part = made.gpu.gpu_id << abi.KFD_MMAP_GPU_ID_SHIFT
        if made.kind is AllocFlags.DOORBELL:
            return abi.KFD_MMAP_TYPE_DOORBELL << abi.KFD_MMAP_TYPE_SHIFT | gpu_part
        if made.kind is AllocFlags.MMIO_REMAP:
            return abi.KFD_MMAP_TYPE_MMIO << abi.KFD_MMAP_TYPE_SHIFT | gpu_part
        return self.client.offsets.add(made.backing) if isinstance(made.backing, Buffer) else asked

    @ioctl(abi.FREE_MEMORY_OF_GPU)
    def free_memory(self, args: abi.FreeMemoryOfGpu, caller: Caller) -> None:
        with self.lock:
            found = self.allocations.get(args.handle) or fail(EINVAL, "free_memory.handle", args.handle)
            if found.mapped:
                fail(EBUSY, "free_memory.handle (still mapped)", args.handle)
            del self.allocations[args.handle]
            if isinstance(found.backing, PinnedPages):
                self.client.memory.user.unpin(found.backing, caller)
            elif found.kind in (AllocFlags.VRAM, AllocFlags.GTT):
                self.client.offsets.remove(found.mmap_offset)
                found.backing.free()

    @ioctl(abi.MAP_MEMORY_TO_GPU)
    def map_memory(self, args: abi.MapMemoryToGpu, caller: Caller) -> None:
        with self.lock:
            found, gpus = self._mapping_arguments(args, caller, "map_memory")
            for gpu in gpus[args.n_success:]:
                self._map(found, gpu)
                args.n_success += 1

    def _map(self, found: Allocation, gpu: Gpu) -> None:
        if gpu.gpu_id in found.mapped:
            return
        if found.va % PAGE:
            fail(EINVAL, "alloc_memory.va_addr", found.va)
        try:
            gpu.map(found.va, found.size, found.backing.host, found.name, found.perms)
        except ValueError as e:
            fail(EINVAL, "map_memory.va_addr", str(e))
        found.mapped.add(gpu.gpu_id)

    @ioctl(abi.UNMAP_MEMORY_FROM_GPU)
    def unmap_memory(self, args: abi.MapMemoryToGpu, caller: Caller) -> None:
        with self.lock:
            found, gpus = self._mapping_arguments(args, caller, "unmap_memory")
            for gpu in gpus[args.n_success:]:
                if gpu.gpu_id not in found.mapped:
                    fail(EINVAL, "unmap_memory.handle (not mapped)", args.handle)
                gpu.unmap(found.va)
                found.mapped.remove(gpu.gpu_id)
                args.n_success += 1

    def _mapping_arguments(self, args: abi.MapMemoryToGpu, caller: Caller, call: str) -> tuple[Allocation, list[Gpu]]:
        if not 0 < args.n_devices <= MAX_DEVICES:
            fail(EINVAL, f"{call}.n_devices", args.n_devices)
        if args.n_success > args.n_devices:
            fail(EINVAL, f"{call}.n_success", args.n_success)
        ids = struct.unpack(f"<{args.n_devices}I", caller.peek(args.device_ids_array_ptr, 4 * args.n_devices))
        self.gpu(args.handle >> 32, f"{call}.handle")
        found = self.allocations.get(args.handle) or fail(ENOMEM, f"{call}.handle", args.handle)
        return found, [self.bound_gpu(gpu_id, call) for gpu_id in ids]

    @ioctl(abi.AVAILABLE_MEMORY)
    def available_memory(self, args: abi.GetAvailableMemory, caller: Caller) -> None:
        args.available = self.gpu(args.gpu_id, "available_memory").vram.available
