"""A KFD process for tests: open, ioctl and mmap, nothing cleverer."""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from stuntgpu.isa.abi import kfd
from stuntgpu.isa.abi.ioctl import CStruct, Ioctl
from stuntgpu.isa.abi.kfd import AllocFlags
from stuntgpu.isa.packets.base import Packet
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


@dataclass
class RawQueue:
    """A user queue: ring, pointers and doorbell, and a fence that counts up."""

    gpu: RawKfd
    kind: kfd.QueueType
    size_bytes: int = 0x1000
    wptr: int = 0  # in the ring's units
    queue_id: int = field(init=False)

    def __post_init__(self) -> None:
        gpu = self.gpu
        self.unit = 4 if self.kind is kfd.QueueType.SDMA else 1
        self.ring = gpu.buffer(self.size_bytes)
        self.memory = gpu.buffer(0x1000)  # rptr at 0, wptr at 64, fence at 128
        args = gpu.call(kfd.CREATE_QUEUE, ring_base_address=self.ring.va, ring_size=self.size_bytes,
                        read_pointer_address=self.memory.va, write_pointer_address=self.memory.va + 64,
                        gpu_id=gpu.gpu_id, queue_type=self.kind, queue_percentage=100)
        assert isinstance(args, kfd.CreateQueue)
        self.queue_id = args.queue_id
        offset = args.doorbell_offset - (1 << 64)
        page = gpu.door.mmap(0, 0x2000, PROT_RW, mmap.MAP_SHARED, gpu.fd, offset & ~0x1FFF)
        self.doorbell = ctypes.c_uint64.from_address(page + (offset & 0x1FFF))

    @property
    def rptr(self) -> int:
        return self.memory.u64(0).value

    @property
    def fence_va(self) -> int:
        return self.memory.va + 128

    @property
    def fence(self) -> int:
        return self.memory.u64(128).value

    def submit(self, *packets: Packet) -> None:
        """Put packets and ring the doorbell."""
        self.submit_words([word for packet in packets for word in packet.encode()])

    def submit_words(self, words: list[int]) -> None:
        for word in words:
            at = self.wptr // self.unit * 4 % self.size_bytes
            self.ring.store(at, word.to_bytes(4, "little"))
            self.wptr += self.unit
        self.memory.u64(64).value = self.wptr
        self.doorbell.value = self.wptr

    def wait_fence(self, value: int, timeout_s: float = 5) -> bool:
        return spin(lambda: self.fence >= value, timeout_s)

    def destroy(self) -> None:
        self.gpu.call(kfd.DESTROY_QUEUE, queue_id=self.queue_id)
        self.gpu.free(self.ring)
        self.gpu.free(self.memory)


def spin(condition: Callable[[], bool], timeout_s: float = 5) -> bool:
    """Wait for memory to change, as a runtime does."""
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.0005)
    return True


@contextmanager
def refused(errno: int) -> Iterator[None]:
    """The calls inside must raise OSError with this errno."""
    with pytest.raises(OSError) as caught:  # noqa: PT011  (the errno is checked below)
        yield
    assert caught.value.errno == errno, f"{caught.value}, not {os.strerror(errno)}"
