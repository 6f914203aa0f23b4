"""User pages: the client's own memory becomes the GPU's, in place, and goes back unharmed."""

from __future__ import annotations

import ctypes
import mmap
import os
from errno import EFAULT, EINVAL

import pytest

from stuntgpu.isa.abi import kfd
from stuntgpu.isa.abi.kfd import AllocFlags
from stuntgpu.mockdrivers.client import server
from stuntgpu.mockdrivers.protocol import MapsRow, parse_maps
from tests.mockdrivers.conftest import Preloaded
from tests.mockdrivers.rawkfd import RawKfd, refused

PAGE = 4096
USER = AllocFlags.USERPTR


def address_of(memory: mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def row_at(address: int) -> MapsRow:
    """This process's mapping at an address."""
    with open("/proc/self/maps") as f:
        return next(r for r in parse_maps(f.read()) if r.lo <= address < r.hi)


def in_use() -> int:
    clients = server().request(do="status")["clients"]
    return next(int(c["user_used"]) for c in clients if c["pid"] == os.getpid())


def free(gpu: RawKfd, handle: int) -> None:
    gpu.call(kfd.FREE_MEMORY_OF_GPU, handle=handle)


def test_pinning_keeps_bytes_and_backs_the_pages_with_the_heap(gpu: RawKfd) -> None:
    memory = mmap.mmap(-1, 4 * PAGE)
    memory[PAGE + 1 : PAGE + 6] = b"hello"
    address = address_of(memory)
    made = gpu.alloc(4 * PAGE, USER, address=address)
    assert made.mmap_offset == address
    assert "stuntgpu-user" in row_at(address).path
    assert memory[PAGE : PAGE + 7] == b"\0hello\0"
    memory[0:1] = b"!"
    assert gpu.map(made.handle) == 1
    gpu.unmap(made.handle)
    free(gpu, made.handle)
    assert "stuntgpu" not in row_at(address).path
    assert memory[:1] + memory[PAGE + 1 : PAGE + 6] == b"!hello"
    assert in_use() == 0


def test_overlapping_pins_share_pages_until_the_last_goes(gpu: RawKfd) -> None:
    memory = mmap.mmap(-1, 6 * PAGE)
    for page in range(6):
        memory[page * PAGE] = page + 1
    base = address_of(memory)
    first = gpu.alloc(4 * PAGE, USER, address=base)
    second = gpu.alloc(4 * PAGE, USER, address=base + 2 * PAGE)
    assert in_use() == 6 * PAGE
    free(gpu, first.handle)
    assert in_use() == 4 * PAGE
    assert "stuntgpu" not in row_at(base).path
    assert "stuntgpu-user" in row_at(base + 2 * PAGE).path
    free(gpu, second.handle)
    assert in_use() == 0
    assert [memory[page * PAGE] for page in range(6)] == [1, 2, 3, 4, 5, 6]


def test_addresses_reused_by_the_process_are_left_alone(gpu: RawKfd) -> None:
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    address = 0x4000_0000_0000
    args = (ctypes.c_void_p(address), ctypes.c_size_t(PAGE), 3, 0x32, -1, ctypes.c_int64(0))
    assert libc.mmap(*args) == address
    made = gpu.alloc(PAGE, USER, address=address)
    assert libc.mmap(*args) == address  # the process put something else there
    ctypes.memset(address, 9, PAGE)
    free(gpu, made.handle)
    assert ctypes.string_at(address, 4) == b"\t\t\t\t"
    libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(PAGE))


def test_pages_the_process_moved_keep_their_bytes(gpu: RawKfd) -> None:
    """realloc of a large block is an mremap: the pinned pages then live elsewhere."""
    libc = ctypes.CDLL(None)
    libc.mmap.restype = libc.mremap.restype = ctypes.c_void_p
    old = libc.mmap(None, ctypes.c_size_t(2 * PAGE), 3, 0x22, -1, ctypes.c_int64(0))
    ctypes.memset(old, 5, 2 * PAGE)
    made = gpu.alloc(2 * PAGE, USER, address=old)
    new = libc.mremap(ctypes.c_void_p(old), ctypes.c_size_t(2 * PAGE), ctypes.c_size_t(2 * PAGE), 3,
                      ctypes.c_void_p(0x4100_0000_0000))
    free(gpu, made.handle)
    assert new == 0x4100_0000_0000
    assert ctypes.string_at(new, 2 * PAGE) == b"\x05" * 2 * PAGE
    assert "stuntgpu" not in row_at(new).path
    libc.munmap(ctypes.c_void_p(new), ctypes.c_size_t(2 * PAGE))


@pytest.mark.parametrize("address", [0x1000, 0x3FFF_0000_0000])
def test_unmapped_memory_is_efault(gpu: RawKfd, address: int) -> None:
    with refused(EFAULT):
        gpu.alloc(PAGE, USER, address=address)


def test_range_with_a_hole_is_efault_and_changes_nothing(gpu: RawKfd) -> None:
    memory = mmap.mmap(-1, 3 * PAGE)
    base = address_of(memory)
    ctypes.CDLL(None).munmap(ctypes.c_void_p(base + PAGE), ctypes.c_size_t(PAGE))
    with refused(EFAULT):
        gpu.alloc(3 * PAGE, USER, address=base)
    assert "stuntgpu" not in row_at(base).path
    assert in_use() == 0
    ctypes.CDLL(None).mmap(ctypes.c_void_p(base + PAGE), ctypes.c_size_t(PAGE), 3, 0x32, -1, ctypes.c_int64(0))


def test_unaligned_address_is_einval(gpu: RawKfd) -> None:
    with refused(EINVAL):
        gpu.alloc(PAGE, USER, address=address_of(mmap.mmap(-1, PAGE)) + 8)


def test_device_memory_cannot_be_pinned(gpu: RawKfd) -> None:
    buffer = gpu.buffer(PAGE, AllocFlags.VRAM)
    with refused(EFAULT):
        gpu.alloc(PAGE, USER, address=buffer.va)
    gpu.free(buffer)


def test_after_fork_the_child_has_a_copy_of_its_own(python_client: Preloaded) -> None:
    done = python_client("""
import mmap, os
from stuntgpu.isa.abi.kfd import AllocFlags
from stuntgpu.mockdrivers.client import Door
from tests.mockdrivers.rawkfd import RawKfd
from tests.mockdrivers.test_userptr import address_of
gpu = RawKfd(Door()); gpu.acquire()
memory = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS); memory[0:3] = b"one"
gpu.alloc(4096, AllocFlags.USERPTR, address=address_of(memory))
child = os.fork()
if not child:
    memory[0:3] = b"two"
    os._exit(0)
os.waitpid(child, 0)
print(memory[0:3].decode())
""")
    assert done.stdout == "one\n", done.stderr
