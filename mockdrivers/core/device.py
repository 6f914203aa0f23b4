"""A driver is a table: ioctl number -> struct -> method, plus a list "accepted, not modelled".

    class Kfd(Device):
        node = abi.KFD_NODE
        accepted = (abi.SET_MEMORY_POLICY,)

        @ioctl(abi.GET_VERSION)
        def get_version(self, args: abi.GetVersion, caller: Caller) -> None: ...

Dispatch is on the number alone: callers built against an older header pass shorter structs, which are
filled with zeros as the kernel does, and get back as many bytes as they passed.

Errors:  a method refuses with `fail(EINVAL, "create_queue.gpu_id", value)`; the client sees the errno,
         the log the rest. A number that is in no table gets `Device.unknown_errno` and one log line.
"""

from __future__ import annotations

import ctypes
import logging
import os
from collections.abc import Callable
from errno import EINVAL, ENODEV, ENOTTY
from typing import Any, ClassVar, NoReturn, TypeVar

from stuntgpu.isa.abi import ioctl as abi
from stuntgpu.isa.abi.ioctl import CStruct, Ioctl
from stuntgpu.mockdrivers.protocol import Caller, ClientError

log = logging.getLogger("stuntgpu.driver")

Method = TypeVar("Method", bound=Callable[..., Any])


class DriverError(Exception):
    """The driver refuses: `errno` for the client; field and value for the log."""

    def __init__(self, errno: int, field: str, value: object) -> None:
        shown = f"0x{value:x}" if isinstance(value, int) and value > 9 else repr(value)
        super().__init__(f"{field} = {shown}: {os.strerror(errno)}")
        self.errno = errno


def fail(errno: int, field: str, value: object) -> NoReturn:
    """Refuse the call because `field` holds `value`."""
    raise DriverError(errno, field, value)


def ioctl(entry: Ioctl) -> Callable[[Method], Method]:
    """Method decorator: answers `entry`."""

    def mark(method: Method) -> Method:
        method._ioctl = entry  # type: ignore[attr-defined]
        return method

    return mark


class Mapping:
    """What mmap of a device gives: pages of `fd` from `offset`."""

    __slots__ = ("fd", "offset")

    def __init__(self, fd: int, offset: int) -> None:
        self.fd, self.offset = fd, offset


class Device:
    """One device node as one client has it open. Calls may come from several threads at once.

    node           path of the node.
    magic          type letter of its ioctls.
    accepted       ioctls answered with success although nothing happens.
    refused        ioctl -> errno, for what a real driver refuses as well when it is configured so.
    unknown_errno  for a number in no table.
    poll_mask      what poll always reports; 0 never ready.
    """

    node: str
    magic: ClassVar[str]
    accepted: ClassVar[tuple[Ioctl, ...]] = ()
    refused: ClassVar[dict[Ioctl, int]] = {}
    unknown_errno: ClassVar[int] = EINVAL
    poll_mask: ClassVar[int] = 0
    table: ClassVar[dict[int, tuple[Ioctl, str]]] = {}

    def __init_subclass__(cls) -> None:
        table = dict(cls.table)
        for base in reversed(cls.__mro__):
            for name, value in vars(base).items():
                entry = getattr(value, "_ioctl", None)
                if entry is not None:
                    table[entry.nr] = (entry, name)
        cls.table = table

    def ioctl(self, request: int, data: bytes, caller: Caller) -> tuple[int, bytes]:
        """Answer one call: (0 or -errno, what the client gets back).

        `data` is what the client passed in. As in the kernel the struct goes back after a failure too.
        """
        direction, magic, nr, size = abi.decode(request)
        reads = bool(direction & abi.READ)
        if magic != ord(self.magic):
            return -self.log_unknown(request, ENOTTY), b""
        entry = self.table.get(nr)
        if entry is None:
            return self._without_method(request, nr), data if reads else b""
        args = _load(entry[0].struct, data)
        result = self._run(entry, args, caller)
        return result, bytes(args)[:size].ljust(size, b"\0") if reads else b""

    def _run(self, entry: tuple[Ioctl, str], args: CStruct, caller: Caller) -> int:
        try:
            getattr(self, entry[1])(args, caller)
        except DriverError as e:
            log.info("%s: %s refused: %s", self.node, entry[0].name, e)
            return -e.errno
        except ClientError as e:
            log.info("%s: %s refused: bad client memory: %s", self.node, entry[0].name, e)
            return -e.errno
        return 0

    def _without_method(self, request: int, nr: int) -> int:
        for entry, errno in self.refused.items():
            if entry.nr == nr:
                log.warning("%s: %s is not modelled, answered %s", self.node, entry.name, os.strerror(errno))
                return -errno
        for entry in self.accepted:
            if entry.nr == nr:
                log.debug("%s: %s accepted, not modelled", self.node, entry.name)
                return 0
        return -self.log_unknown(request, self.unknown_errno)

    def log_unknown(self, request: int, errno: int) -> int:
        """One line for a call this driver does not know; gives the errno back."""
        direction, magic, nr, size = abi.decode(request)
        log.warning("%s: unknown ioctl 0x%08x (type %r nr 0x%02x size %d dir %d) answered %s", self.node,
                    request, chr(magic), nr, size, direction, os.strerror(errno))
        return errno

    def mmap(self, length: int, prot: int, flags: int, offset: int) -> Mapping:
        """The pages behind [offset, offset + length). Raises DriverError."""
        fail(ENODEV, "mmap.offset", offset)

    def read(self, offset: int, length: int) -> bytes:
        """Bytes of a register-like file. Raises DriverError."""
        fail(EINVAL, "read", self.node)

    def write(self, offset: int, data: bytes) -> int:
        """Store to a register-like file, giving the count. Raises DriverError."""
        fail(EINVAL, "write", self.node)

    def close(self) -> None:
        """The last descriptor of this open has gone."""


def _load(struct: type[CStruct], data: bytes) -> CStruct:
    size = ctypes.sizeof(struct)
    return struct.from_buffer_copy(data[:size].ljust(size, b"\0"))
