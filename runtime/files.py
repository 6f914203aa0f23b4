"""The thing that opens device files: the kernel's, or a mock driver's door with the same calls.

Units:   bytes.
Errors:  OSError, as the os module raises it.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from stuntgpu.isa.errors import Unmodelled

#: Entry points by which an installed package offers mock doors: interface name -> class taking the GPUs.
DOORS = "stuntgpu.doors"
_MAP_FAILED = ctypes.c_void_p(-1).value


class Files(Protocol):
    """Device files of one machine."""

    def open(self, path: str, flags: int = os.O_RDWR) -> int: ...

    def close(self, fd: int) -> None: ...

    def ioctl(self, fd: int, request: int, argument: Any) -> int:
        """`argument`: a ctypes object, passed by reference."""

    def mmap(self, address: int, length: int, prot: int, flags: int, fd: int, offset: int) -> int: ...

    def munmap(self, address: int, length: int) -> None: ...

    def listdir(self, path: str) -> list[str]: ...

    def read_text(self, path: str) -> str: ...


class Metal:
    """The running kernel's files."""

    def __init__(self) -> None:
        lib = ctypes.CDLL(None, use_errno=True)
        self._ioctl, self._mmap, self._munmap = lib.ioctl, lib.mmap, lib.munmap
        self._ioctl.argtypes = (ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p)
        self._mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int,
                               ctypes.c_int64)
        self._mmap.restype = ctypes.c_void_p
        self._munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)

    def open(self, path: str, flags: int = os.O_RDWR) -> int:
        return os.open(path, flags | os.O_CLOEXEC)

    def close(self, fd: int) -> None:
        os.close(fd)

    def ioctl(self, fd: int, request: int, argument: Any) -> int:
        return _checked(self._ioctl(fd, request, ctypes.addressof(argument)))

    def mmap(self, address: int, length: int, prot: int, flags: int, fd: int, offset: int) -> int:
        at = self._mmap(address, length, prot, flags, fd, ctypes.c_int64(offset).value)
        if at is None or at == _MAP_FAILED:
            _checked(-1)
        return int(at)

    def munmap(self, address: int, length: int) -> None:
        _checked(self._munmap(address, length))

    def listdir(self, path: str) -> list[str]:
        return os.listdir(path)

    def read_text(self, path: str) -> str:
        return Path(path).read_text()


def _checked(result: int) -> int:
    if result < 0:
        errno = ctypes.get_errno()
        raise OSError(errno, os.strerror(errno))
    return result


def door(interface: str, gpus: Sequence[str]) -> Files:
    """The mock door called `interface`, with these GPUs behind it. Raises Unmodelled when none is installed."""
    for entry in importlib.metadata.entry_points(group=DOORS, name=interface):
        return cast(Files, entry.load()(tuple(gpus)))
    raise Unmodelled(interface, f"a door for {interface} (no installed package has the entry point)", DOORS)
