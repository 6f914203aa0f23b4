"""A KFD process for tests: open, ioctl and mmap, nothing cleverer."""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from stuntgpu.isa.abi import kfd
from stuntgpu.isa.abi.ioctl import CStruct, Ioctl
from stuntgpu.isa.abi.kfd import AllocFlags
from stuntgpu.mockdrivers.client import Door

TOPOLOGY = "/sys/devices/virtual/kfd/kfd/topology"
MAP_FIXED = 0x10
PROT_RW = mmap.PROT_READ | mmap.PROT_WRITE
RW = AllocFlags.WRITABLE | AllocFlags.EXECUTABLE
_next_va = itertools.count(0x6000_0000_0000, 0x1_0000_0000)


@dataclass
class Buffer:
    """One allocation, mapped for the GPU and the CPU at `va`."""

    va: int
    size: int
    handle: int

    def bytes(self, offset: int = 0, size: int | None = None) -> bytes:
        return ctypes.string_at(self.va + offset, self.size - offset if size is None else size)

    def store(self, offset: int, data: bytes) -> None:
        ctypes.memmove(self.va + offset, data, len(data))

    def u64(self, offset: int) -> ctypes.c_uint64:
        return ctypes.c_uint64.from_address(self.va + offset)


@dataclass
class RawKfd:
    """/dev/kfd and the first GPU's render node, VM acquired."""

    door: Door
    fd: int = field(init=False)
    render: int = field(init=False)
    gpu_id: int = field(init=False)

    def __post_init__(self) -> None:
        self.fd = self.door.open(kfd.KFD_NODE)
        self.gpu_id = int(self.text(f"{TOPOLOGY}/nodes/1/gpu_id"))
        self.render = self.door.open("/dev/dri/renderD128")

    def text(self, path: str) -> str:
        with open(self.door.path(path)) as f:
            return f.read()

    def call(self, entry: Ioctl, **fields: int) -> CStruct:
        """One ioctl with a fresh struct; OSError as the driver says."""
        args = entry.struct(**fields)
        self.door.ioctl(self.fd, entry.request, args)
        return args

    def acquire(self) -> None:
        self.call(kfd.ACQUIRE_VM, drm_fd=self.render, gpu_id=self.gpu_id)

    def alloc(self, size: int, flags: AllocFlags, va: int | None = None, address: int = 0) -> kfd.AllocMemoryOfGpu:
        va = next(_next_va) if va is None else va
        args = self.call(kfd.ALLOC_MEMORY_OF_GPU, va_addr=va, size=size, gpu_id=self.gpu_id, flags=int(flags | RW),
                         mmap_offset=address)
        assert isinstance(args, kfd.AllocMemoryOfGpu)
        return args

    def map(self, handle: int, entry: Ioctl = kfd.MAP_MEMORY_TO_GPU) -> int:
        ids = (ctypes.c_uint32 * 1)(self.gpu_id)
        args = self.call(entry, handle=handle, device_ids_array_ptr=ctypes.addressof(ids), n_devices=1)
        assert isinstance(args, kfd.MapMemoryToGpu)
        return args.n_success

    def unmap(self, handle: int) -> int:
        return self.map(handle, kfd.UNMAP_MEMORY_FROM_GPU)

    def buffer(self, size: int, flags: AllocFlags = AllocFlags.GTT) -> Buffer:
        """Allocate, map for the GPU and mmap at the same address."""
        size = -(-size // 4096) * 4096
        made = self.alloc(size, flags)
        self.map(made.handle)
        self.cpu_map(made)
        return Buffer(made.va_addr, size, made.handle)

    def cpu_map(self, made: kfd.AllocMemoryOfGpu) -> int:
        return self.door.mmap(made.va_addr, made.size, PROT_RW, mmap.MAP_SHARED | MAP_FIXED, self.render,
                              made.mmap_offset)

    def free(self, buffer: Buffer) -> None:
        self.door.munmap(buffer.va, buffer.size)
        self.unmap(buffer.handle)
        self.call(kfd.FREE_MEMORY_OF_GPU, handle=buffer.handle)

    def event(self, type_: kfd.EventType = kfd.EventType.SIGNAL, auto_reset: int = 1, page: int = 0) -> int:
        args = self.call(kfd.CREATE_EVENT, event_type=type_, auto_reset=auto_reset, event_page_offset=page)
        assert isinstance(args, kfd.CreateEvent)
        return args.event_id

    def wait(self, *event_ids: int, all_: bool = False, ms: int = 1000) -> tuple[int, list[kfd.EventData]]:
        data = (kfd.EventData * len(event_ids))()
        for d, event_id in zip(data, event_ids, strict=True):
            d.event_id = event_id
        args = self.call(kfd.WAIT_EVENTS, events_ptr=ctypes.addressof(data), num_events=len(event_ids),
                         wait_for_all=all_, timeout=ms)
        assert isinstance(args, kfd.WaitEvents)
        return args.wait_result, list(data)

    def fault(self) -> str:
        """The oldest report not fetched yet, or ""."""
        room = ctypes.create_string_buffer(65536)
        args = kfd.LastFault(text_ptr=ctypes.addressof(room), size_bytes=len(room))
        self.door.ioctl(self.fd, kfd.LAST_FAULT.request, args)
        return room.raw[: args.length_bytes].decode()

    def close(self) -> None:
        self.door.close(self.render)
        self.door.close(self.fd)


@contextmanager
def refused(errno: int) -> Iterator[None]:
    """The calls inside must raise OSError with this errno."""
    with pytest.raises(OSError) as caught:  # noqa: PT011  (the errno is checked below)
        yield
    assert caught.value.errno == errno, f"{caught.value}, not {os.strerror(errno)}"
