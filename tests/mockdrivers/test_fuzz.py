"""Clients that send anything: the server answers with an errno and lives; none of it is a bug of ours."""

from __future__ import annotations

import contextlib
import random
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from stuntgpu.isa.abi import kfd
from stuntgpu.isa.abi.ioctl import Ioctl
from stuntgpu.mockdrivers.client import Door, ServerLink, server
from stuntgpu.mockdrivers.kfd.topology import FIRST_GPU_ID
from stuntgpu.mockdrivers.protocol import VERSION, Channel, Disconnected, Message, Op
from tests.mockdrivers.conftest import Preloaded

FUZZ = """
import ctypes, errno, random, sys
from stuntgpu.isa.abi import drm, kfd
from stuntgpu.isa.abi.ioctl import encode
from stuntgpu.mockdrivers.client import Door
from tests.mockdrivers.rawkfd import RawKfd
chance = random.Random(int(sys.argv[1]))
gpu = RawKfd(Door()); gpu.acquire()
interesting = [0, 1, 2, 3, 4096, gpu.gpu_id, gpu.render, gpu.fd, 1 << 31, 0xFFFFFFFF, gpu.gpu_id << 32 | 1]
def some_bytes(size):
    words = (chance.choice(interesting) if chance.random() < 0.7 else chance.getrandbits(64) for _ in range(size // 4 + 1))
    return b"".join((w & 0xFFFFFFFF).to_bytes(4, "little") for w in words)[:size]
calls = [*kfd.IOCTLS, drm.VERSION, drm.GET_CLIENT, drm.AMDGPU_INFO, kfd.LAST_FAULT]
seen = set()
for _ in range(400):
    entry = chance.choice(calls)
    size = entry.size_bytes if chance.random() < 0.8 else chance.randrange(0, 200)
    data = bytearray(some_bytes(max(size, 64)))
    if entry is kfd.WAIT_EVENTS:
        data[16:20] = bytes(4)  # no long waits
    request = encode(chance.choice([entry.direction, 1, 2, 3]), ord(entry.magic), entry.nr, size)
    room = (ctypes.c_uint8 * 4096).from_buffer_copy(bytes(data).ljust(4096, b"\\0"))
    try:
        gpu.door.ioctl(gpu.render if entry.magic == "d" else gpu.fd, request, room)
    except OSError as e:
        seen.add(errno.errorcode[e.errno])
    offset = chance.choice([0, 1 << 32, 3 << 62, 2 << 62, 3 << 62 | gpu.gpu_id << 46, chance.getrandbits(64)])
    try:
        gpu.door.mmap(0, chance.choice([1, 4096, 8192, 0x8000]), 3, 1, chance.choice([gpu.fd, gpu.render]), offset)
    except OSError as e:
        seen.add(errno.errorcode[e.errno])
gpu.call(kfd.GET_VERSION)
print(*sorted(seen - {"EIO"}))
"""


@pytest.mark.parametrize("seed", range(3))
def test_any_arguments_are_answered(python_client: Preloaded, seed: int) -> None:
    done = python_client(FUZZ.replace("sys.argv[1]", str(seed)))
    assert done.returncode == 0, done.stderr
    assert "EINVAL" in done.stdout
    assert "a bug of stuntgpu" not in Path(server().request(do="status")["log"]).read_text()


GPU_ID = FIRST_GPU_ID


def lying_client(chance: random.Random, link: ServerLink) -> None:
    """Speaks the protocol without the shim: random requests, random answers about its memory."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as raw:
        raw.connect(link.path)
        channel = Channel(raw)
        channel.send(Message(Op.HELLO, a=(VERSION, 0, 1, 0), payload=link.tree(["gfx1100"]).encode() + b"\0"))
        channel.receive()
        for path in (b"/dev/kfd", b"/dev/dri/renderD128"):
            channel.send(Message(Op.OPEN, payload=path))
            channel.receive()
        acquire = ioctl_message(kfd.ACQUIRE_VM, bytes(kfd.AcquireVm(0, GPU_ID)))
        assert converse(channel, acquire, lambda: Message(Op.ANSWER, 2)).result == 0
        for _ in range(200):
            converse(channel, random_request(chance), lambda: random_answer(chance))


def converse(channel: Channel, request: Message, answer: Callable[[], Message]) -> Message:
    channel.send(request)
    while (reply := channel.receive()).op != Op.DONE:
        channel.send(answer())
    return reply


def random_answer(chance: random.Random) -> Message:
    maps = b"1000-9000 rw-p 00000000 00:00 0 \n9000-a000 r--s 00000000 00:01 5 /memfd:stuntgpu-user (deleted)\n"
    payload = chance.choice([b"", chance.randbytes(4), GPU_ID.to_bytes(4, "little"), maps, maps[:20], chance.randbytes(48)])
    return Message(Op.ANSWER, chance.choice([0, 0, 0, 1, 2, -14, -4]), payload=payload)


def ioctl_message(entry: Ioctl, payload: bytes, file: int = 1) -> Message:
    return Message(Op.IOCTL, file=file, a=(entry.request, 0, 0, 0), payload=payload)


def random_request(chance: random.Random) -> Message:
    if chance.random() < 0.4:
        flags = chance.choice(list(kfd.AllocFlags)[:5]) | chance.choice([0, kfd.AllocFlags.WRITABLE])
        alloc = kfd.AllocMemoryOfGpu(va_addr=chance.randrange(0, 1 << 20, 4096), size=chance.choice([1, 4096, 8192, 36864]),
                                     gpu_id=GPU_ID, flags=int(flags), mmap_offset=0x1000)
        return ioctl_message(kfd.ALLOC_MEMORY_OF_GPU, bytes(alloc))
    if chance.random() < 0.5:
        handle = GPU_ID << 32 | chance.randrange(1, 40)
        entry = chance.choice([kfd.MAP_MEMORY_TO_GPU, kfd.UNMAP_MEMORY_FROM_GPU, kfd.FREE_MEMORY_OF_GPU])
        return ioctl_message(entry, bytes(kfd.MapMemoryToGpu(handle, 0, 1, 0)))
    entry = chance.choice([e for e in kfd.IOCTLS if e is not kfd.WAIT_EVENTS])
    op = chance.choice([Op.IOCTL] * 6 + [Op.MMAP, Op.READ, Op.WRITE, Op.OPEN, Op.CLOSE])
    a = (entry.request if op is Op.IOCTL else chance.getrandbits(20), *(chance.getrandbits(chance.choice([2, 40, 64])) for _ in range(3)))
    file = chance.choice([1, 1, 1, 2, 2, 99]) if op is not Op.CLOSE else chance.randrange(3, 9)
    return Message(op, file=file, a=(a[0], a[1], a[2], a[3]), payload=chance.randbytes(chance.choice([0, 8, 40, 96])))


@pytest.mark.parametrize("seed", range(4))
def test_a_client_that_lies_about_its_memory_hurts_only_itself(door: Door, seed: int) -> None:
    link = server()
    with contextlib.suppress(Disconnected):
        lying_client(random.Random(seed), link)
    status = link.request(do="status")
    assert "a bug of stuntgpu" not in Path(status["log"]).read_text()
