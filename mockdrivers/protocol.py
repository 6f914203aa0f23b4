"""The conversation between libstuntgpu.so (in the client) and the device server, this side of it.

`native/protocol.h` is the same text in C and says what each message carries; a test compares them.

Units:   one SOCK_SEQPACKET packet a message: a 48-byte head, then at most MAX_PAYLOAD bytes.
Errors:  Disconnected: the other side has gone or talks nonsense. ClientError carries an errno that
         the client's own memory produced (EFAULT), or EINTR.
"""

from __future__ import annotations

import os
import socket
import struct
from dataclasses import dataclass
from enum import IntEnum

VERSION = 1
MAX_PAYLOAD = 65536
HEAD = struct.Struct("<IiIIQQQQ")


class Op(IntEnum):
    HELLO = 1
    OPEN = 2
    CLOSE = 3
    IOCTL = 4
    MMAP = 5
    READ = 6
    WRITE = 7
    CONTROL = 8
    DONE = 32
    PEEK = 33
    POKE = 34
    MAPS = 35
    REBACK = 36
    RESTORE = 37
    TICK = 38
    SAY = 39
    FILE = 40
    ANSWER = 64


class Disconnected(Exception):
    """The peer has gone, or what it sent is not this protocol."""


class ClientError(Exception):
    """The client could not do what was asked of its memory; `errno` says why."""

    def __init__(self, errno: int) -> None:
        super().__init__(os.strerror(errno))
        self.errno = errno


@dataclass(frozen=True, slots=True)
class Message:
    """One packet; `fd` is a descriptor to send along, -1 none."""

    op: int
    result: int = 0
    file: int = 0
    a: tuple[int, int, int, int] = (0, 0, 0, 0)
    payload: bytes = b""
    fd: int = -1

    def pack(self) -> bytes:
        return HEAD.pack(self.op, self.result, self.file, 0, *self.a) + self.payload


@dataclass(frozen=True, slots=True)
class MapsRow:
    """One mapping of the client: [lo, hi), "rw-p", offset in its file, inode, file name or ""."""

    lo: int
    hi: int
    perms: str
    offset: int
    inode: int
    path: str

    @property
    def prot(self) -> int:
        """PROT_* bits."""
        return sum(1 << i for i, letter in enumerate("rwx") if self.perms[i] == letter)


def parse_maps(text: str) -> list[MapsRow]:
    """Rows of /proc/PID/maps."""
    rows = []
    for line in text.splitlines():
        bounds, perms, offset, _, inode, *path = line.split(maxsplit=5)
        lo, hi = (int(v, 16) for v in bounds.split("-"))
        rows.append(MapsRow(lo, hi, perms, int(offset, 16), int(inode), path[0] if path else ""))
    return rows


class Channel:
    """One connection, from either end. Used by one thread at a time."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock

    def send(self, message: Message) -> None:
        data = message.pack()
        try:
            if message.fd >= 0:
                socket.send_fds(self.sock, [data], [message.fd])
            else:
                self.sock.send(data)
        except OSError as e:
            raise Disconnected(str(e)) from e

    def receive(self) -> Message:
        try:
            data = self.sock.recv(HEAD.size + MAX_PAYLOAD)
        except OSError as e:
            raise Disconnected(str(e)) from e
        if len(data) < HEAD.size:
            raise Disconnected("closed" if not data else f"packet of {len(data)} bytes")
        op, result, file, _, *a = HEAD.unpack_from(data)
        return Message(op, result, file, (a[0], a[1], a[2], a[3]), data[HEAD.size:])


class Caller:
    """The client inside one of its calls: its memory may be read, written and re-backed.

    Addresses are the client's. Every method raises ClientError(EFAULT) for a bad address and
    Disconnected when the client dies meanwhile.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def _ask(self, op: Op, a: tuple[int, int, int, int] = (0, 0, 0, 0), payload: bytes = b"",
             fd: int = -1) -> Message:
        self._channel.send(Message(op, a=a, payload=payload, fd=fd))
        answer = self._channel.receive()
        if answer.op != Op.ANSWER:
            raise Disconnected(f"answer to {op.name} has op {answer.op}")
        if answer.result < 0:
            raise ClientError(-answer.result)
        return answer

    def peek(self, address: int, size: int) -> bytes:
        """`size` bytes at `address`."""
        parts = []
        for at in range(0, size, MAX_PAYLOAD):
            n = min(MAX_PAYLOAD, size - at)
            part = self._ask(Op.PEEK, (address + at, n, 0, 0)).payload
            if len(part) != n:
                raise Disconnected(f"peek of {n} bytes answered with {len(part)}")
            parts.append(part)
        return b"".join(parts)

    def poke(self, address: int, data: bytes) -> None:
        """Store bytes at `address`."""
        for at in range(0, len(data), MAX_PAYLOAD):
            self._ask(Op.POKE, (address + at, 0, 0, 0), data[at : at + MAX_PAYLOAD])

    def maps(self, address: int, size: int) -> list[MapsRow]:
        """The mappings that overlap [address, address + size), in order."""
        rows: list[MapsRow] = []
        at, end = address, address + size
        while at < end:
            text = self._ask(Op.MAPS, (at, end - at, 0, 0)).payload.decode(errors="surrogateescape")
            try:
                more = [row for row in parse_maps(text) if not rows or row.lo >= rows[-1].hi]
            except ValueError as e:
                raise Disconnected(f"memory map that is none: {e}") from e
            if not more:
                break
            rows += more
            at = rows[-1].hi
        return rows

    def reback(self, address: int, size: int, prot: int, fd: int, offset: int) -> None:
        """Put `fd`'s pages from `offset` at `address`, keeping the bytes that are there."""
        self._ask(Op.REBACK, (address, size, prot, offset), fd=fd)

    def restore(self, address: int, size: int, prot: int) -> None:
        """Make the pages private memory again, keeping the bytes."""
        self._ask(Op.RESTORE, (address, size, prot, 0))

    def file(self, descriptor: int) -> int:
        """The file id behind one of the client's descriptors. Raises ClientError(EBADF): no device."""
        return self._ask(Op.FILE, (descriptor, 0, 0, 0)).result

    def tick(self) -> None:
        """Once in a while during a long wait. Raises ClientError(EINTR) when a signal came."""
        self._ask(Op.TICK)

    def say(self, text: str) -> None:
        """Print on the client's stderr."""
        self._ask(Op.SAY, payload=text.encode()[:MAX_PAYLOAD])
