"""KFD memory through open, ioctl and mmap: what is granted, what is refused and how."""

from __future__ import annotations

import ctypes
import mmap
import os
from errno import EBUSY, EFAULT, EINVAL, ENOMEM

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from stuntgpu.isa.abi import kfd
from stuntgpu.isa.abi.kfd import AllocFlags
from stuntgpu.mockdrivers.client import Door, server
from tests.mockdrivers.rawkfd import PROT_RW, Buffer, RawKfd, refused

PAGE = 4096


def used(kind: str) -> int:
    """Bytes the server counts for this process."""
    mine = [c for c in server().request(do="status")["clients"] if c["pid"] == os.getpid()]
    return int(sum(c[f"{kind}_used"] for c in mine))


@pytest.mark.parametrize("kind", [AllocFlags.VRAM, AllocFlags.GTT], ids=["vram", "gtt"])
def test_memory_is_zeroed_mapped_and_given_back(gpu: RawKfd, kind: AllocFlags) -> None:
    before = used(kind.name.lower() if kind.name else "")
    buffer = gpu.buffer(3 * PAGE, kind)
    assert buffer.bytes() == bytes(3 * PAGE)
    buffer.store(PAGE, b"hello")
    assert buffer.bytes(PAGE, 6) == b"hello\0"
    gpu.free(buffer)
    assert used(kind.name.lower() if kind.name else "") == before


def test_two_mmaps_of_one_buffer_show_the_same_bytes(gpu: RawKfd) -> None:
    buffer = gpu.buffer(PAGE)
    made = gpu.alloc(PAGE, AllocFlags.GTT)
    second = gpu.door.mmap(0, PAGE, PROT_RW, mmap.MAP_SHARED, gpu.render, made.mmap_offset)
    third = gpu.door.mmap(0, PAGE, PROT_RW, mmap.MAP_SHARED, gpu.render, made.mmap_offset)
    ctypes.memmove(second, b"abc", 3)
    assert ctypes.string_at(third, 4) == b"abc\0"
    assert buffer.bytes(0, 4) == bytes(4)
    gpu.free(buffer)


def test_alloc_unknown_gpu_id_is_einval(gpu: RawKfd) -> None:
    with refused(EINVAL):
        gpu.call(kfd.ALLOC_MEMORY_OF_GPU, va_addr=0x1000, size=PAGE, gpu_id=99, flags=int(AllocFlags.GTT))


@pytest.mark.parametrize(("size", "flags", "errno"), [
    (0, AllocFlags.GTT, EINVAL),
    (PAGE, AllocFlags(0), EINVAL),
    (PAGE, AllocFlags.USERPTR, EINVAL),  # no address
    (PAGE, AllocFlags.DOORBELL, EINVAL),  # not one slice
    (2 * PAGE, AllocFlags.MMIO_REMAP, EINVAL),
    (1 << 50, AllocFlags.VRAM, ENOMEM),
    (1 << 50, AllocFlags.GTT, ENOMEM),
])
def test_alloc_refusals(gpu: RawKfd, size: int, flags: AllocFlags, errno: int) -> None:
    with refused(errno):
        gpu.alloc(size, flags)


def test_map_of_an_overlapping_address_is_einval(gpu: RawKfd) -> None:
    first = gpu.buffer(2 * PAGE)
    second = gpu.alloc(PAGE, AllocFlags.GTT, va=first.va + PAGE)
    with refused(EINVAL):
        gpu.map(second.handle)
    gpu.free(first)
    assert gpu.map(second.handle) == 1
    gpu.unmap(second.handle)
    gpu.call(kfd.FREE_MEMORY_OF_GPU, handle=second.handle)


def test_map_unaligned_address_is_einval(gpu: RawKfd) -> None:
    made = gpu.alloc(PAGE, AllocFlags.GTT, va=0x5000_0000_0010)
    with refused(EINVAL):
        gpu.map(made.handle)
    gpu.call(kfd.FREE_MEMORY_OF_GPU, handle=made.handle)


def test_mapping_twice_is_fine_and_freeing_mapped_memory_is_ebusy(gpu: RawKfd) -> None:
    buffer = gpu.buffer(PAGE)
    assert gpu.map(buffer.handle) == 1
    with refused(EBUSY):
        gpu.call(kfd.FREE_MEMORY_OF_GPU, handle=buffer.handle)
    gpu.free(buffer)
    with refused(EINVAL):
        gpu.call(kfd.FREE_MEMORY_OF_GPU, handle=buffer.handle)


def test_map_and_unmap_of_unknown_handles(gpu: RawKfd) -> None:
    with refused(ENOMEM):
        gpu.map(gpu.gpu_id << 32 | 0xFFFFFF)
    with refused(EINVAL):
        gpu.map(1)
    buffer = gpu.buffer(PAGE)
    gpu.unmap(buffer.handle)
    with refused(EINVAL):
        gpu.unmap(buffer.handle)
    gpu.call(kfd.FREE_MEMORY_OF_GPU, handle=buffer.handle)


@pytest.mark.parametrize(("fields", "errno"), [
    ({"n_devices": 0}, EINVAL),
    ({"n_devices": 1, "n_success": 2}, EINVAL),
    ({"n_devices": 1, "device_ids_array_ptr": 0x10}, EFAULT),
])
def test_map_refusals(gpu: RawKfd, fields: dict[str, int], errno: int) -> None:
    made = gpu.alloc(PAGE, AllocFlags.GTT)
    with refused(errno):
        gpu.call(kfd.MAP_MEMORY_TO_GPU, handle=made.handle, **fields)
    gpu.call(kfd.FREE_MEMORY_OF_GPU, handle=made.handle)


def test_mmap_of_an_unknown_offset_is_einval(gpu: RawKfd) -> None:
    made = gpu.alloc(PAGE, AllocFlags.GTT)
    for offset, length in ((made.mmap_offset, 2 * PAGE), (made.mmap_offset + 0x4000_0000_0000, PAGE), (0, PAGE)):
        with refused(EINVAL):
            gpu.door.mmap(0, length, PROT_RW, mmap.MAP_SHARED, gpu.render, offset)
    gpu.call(kfd.FREE_MEMORY_OF_GPU, handle=made.handle)


def test_mmap_past_a_buffers_first_page(gpu: RawKfd) -> None:
    buffer = gpu.buffer(3 * PAGE)
    made = gpu.alloc(3 * PAGE, AllocFlags.VRAM)
    whole = gpu.door.mmap(0, 3 * PAGE, PROT_RW, mmap.MAP_SHARED, gpu.render, made.mmap_offset)
    last = gpu.door.mmap(0, PAGE, PROT_RW, mmap.MAP_SHARED, gpu.render, made.mmap_offset + 2 * PAGE)
    ctypes.memset(whole + 2 * PAGE, 7, 1)
    assert ctypes.string_at(last, 1) == b"\7"
    gpu.free(buffer)


def test_available_memory_falls_and_rises(gpu: RawKfd) -> None:
    def available() -> int:
        args = gpu.call(kfd.AVAILABLE_MEMORY, gpu_id=gpu.gpu_id)
        assert isinstance(args, kfd.GetAvailableMemory)
        return args.available

    before = available()
    buffer = gpu.buffer(64 * PAGE, AllocFlags.VRAM)
    assert available() == before - 64 * PAGE
    gpu.free(buffer)
    assert available() == before


def test_doorbell_and_mmio_pages_map_for_the_gpu(gpu: RawKfd) -> None:
    for flags, size in ((AllocFlags.DOORBELL, 0x2000), (AllocFlags.MMIO_REMAP, 0x1000)):
        made = gpu.alloc(size, flags)
        assert gpu.map(made.handle) == 1
        assert gpu.door.mmap(0, size, PROT_RW, mmap.MAP_SHARED, gpu.fd, made.mmap_offset)
        gpu.unmap(made.handle)
        gpu.call(kfd.FREE_MEMORY_OF_GPU, handle=made.handle)


class MemoryCallsInAnyOrder(RuleBasedStateMachine):
    """Allocate, map, mmap, write, unmap, free in any order: bytes stay, accounts balance."""

    buffers = Bundle("buffers")

    def __init__(self) -> None:
        super().__init__()
        self.gpu = _process()
        self.before = {kind: used(kind) for kind in ("vram", "gtt")}
        self.live: dict[int, tuple[Buffer, AllocFlags]] = {}
        self.mapped: set[int] = set()
        self.wrote: dict[int, bytes] = {}

    @rule(target=buffers, pages=st.integers(1, 8), kind=st.sampled_from([AllocFlags.VRAM, AllocFlags.GTT]))
    def allocate(self, pages: int, kind: AllocFlags) -> int:
        made = self.gpu.alloc(pages * PAGE, kind)
        self.gpu.cpu_map(made)
        self.live[made.handle] = (Buffer(made.va_addr, pages * PAGE, made.handle), kind)
        return made.handle

    @rule(handle=buffers)
    def map(self, handle: int) -> None:
        assert self.gpu.map(handle) == 1
        self.mapped.add(handle)

    @rule(handle=buffers, data=st.binary(min_size=1, max_size=64))
    def write(self, handle: int, data: bytes) -> None:
        self.live[handle][0].store(100, data)
        self.wrote[handle] = data

    @rule(handle=buffers)
    def unmap(self, handle: int) -> None:
        if handle in self.mapped:
            assert self.gpu.unmap(handle) == 1
            self.mapped.remove(handle)
        else:
            with refused(EINVAL):
                self.gpu.unmap(handle)

    @rule(handle=consumes(buffers))
    def free(self, handle: int) -> None:
        buffer, _ = self.live[handle]
        if handle in self.mapped:
            with refused(EBUSY):
                self.gpu.call(kfd.FREE_MEMORY_OF_GPU, handle=handle)
            self.gpu.unmap(handle)
        self.gpu.door.munmap(buffer.va, buffer.size)
        self.gpu.call(kfd.FREE_MEMORY_OF_GPU, handle=handle)
        del self.live[handle]
        self.mapped.discard(handle)
        self.wrote.pop(handle, None)

    @invariant()
    def bytes_stay(self) -> None:
        for handle, data in self.wrote.items():
            assert self.live[handle][0].bytes(100, len(data)) == data

    def teardown(self) -> None:
        for kind in (AllocFlags.VRAM, AllocFlags.GTT):
            name = (kind.name or "").lower()
            assert used(name) == self.before[name] + sum(b.size for b, k in self.live.values() if k is kind)
        for handle in list(self.live):
            if handle in self.mapped:
                self.gpu.unmap(handle)
            self.gpu.door.munmap(self.live[handle][0].va, self.live[handle][0].size)
            self.gpu.call(kfd.FREE_MEMORY_OF_GPU, handle=handle)


_made: list[RawKfd] = []


def _process() -> RawKfd:
    return _made[0]


@pytest.fixture(autouse=True, scope="module")
def _share(gpu: RawKfd, door: Door) -> None:
    _made[:] = [gpu]


TestMemoryCallsInAnyOrder = MemoryCallsInAnyOrder.TestCase
TestMemoryCallsInAnyOrder.settings = settings(max_examples=15, stateful_step_count=20, deadline=None)
