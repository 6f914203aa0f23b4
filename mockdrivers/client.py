"""The client's side: find or start the device server, and the two doors to its devices.

    environment(("gfx1100",))     variables for a foreign program: LD_PRELOAD and where the server is
    Door(("gfx1100",))            the same calls for a runtime in this process, through ctypes

Errors:  ServerError says what failed and where to look; calls of a Door raise OSError as the os module's do.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stuntgpu.mockdrivers.protocol import Channel, Disconnected, Message, Op

SHIM = Path(__file__).resolve().parent / "libstuntgpu.so"
START_S = 20.0
KEEPER_FD = 210  # lowest number for the connection that keeps the server alive
MAP_FAILED = ctypes.c_void_p(-1).value
DEFAULT_GPUS = ("gfx1100",)


class ServerError(Exception):
    """The device server cannot be reached, or refuses."""


def shim_path() -> Path:
    """libstuntgpu.so. Raises ServerError when it was not built."""
    if not SHIM.exists():
        raise ServerError(f"{SHIM} is missing: install the package again with a C compiler at hand "
                          "(pip install .), or run `python setup.py build_native --inplace`")
    return SHIM


class ServerLink:
    """A connection that keeps the server alive and carries our own requests."""

    def __init__(self, path: str) -> None:
        self.path = path
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as low:
            low.connect(path)
            self._socket = socket.socket(fileno=fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, KEEPER_FD))
        self._channel = Channel(self._socket)

    def request(self, **request: Any) -> dict[str, Any]:
        """Raises ServerError."""
        try:
            self._channel.send(Message(Op.CONTROL, payload=json.dumps(request).encode()))
            answer = self._channel.receive()
        except Disconnected as e:
            raise ServerError(f"the device server at {self.path} has gone: {e}") from e
        if answer.result < 0:
            raise ServerError(f"the device server refused {request}: {os.strerror(-answer.result)}")
        result: dict[str, Any] = json.loads(answer.payload)
        if "error" in result:
            raise ServerError(str(result["error"]))
        return result

    def tree(self, gpus: Sequence[str]) -> str:
        """The folder that shows these GPUs. Raises ServerError: an arch without chip data."""
        return str(self.request(do="tree", gpus=list(gpus))["tree"])

    def keep_across_exec(self) -> None:
        """Let the program that replaces this one hold the server alive."""
        self._socket.set_inheritable(True)

    def close(self) -> None:
        self._socket.close()


_link: ServerLink | None = None
_started: list[subprocess.Popen[bytes]] = []  # kept, so that none is reported as forgotten


def server() -> ServerLink:
    """This process's server: the one of the environment, else a fresh one. Raises ServerError."""
    global _link
    if _link is None:
        _link = _existing() or ServerLink(_start())
        os.environ["STUNTGPU_SERVER"] = _link.path
    return _link


def _existing() -> ServerLink | None:
    path = os.environ.get("STUNTGPU_SERVER")
    try:
        return ServerLink(path) if path else None
    except (FileNotFoundError, ConnectionRefusedError):
        return None  # left over from a session that ended


def _start() -> str:
    """Start a server, giving its socket's path once it listens."""
    shim_path()
    reader, writer = os.pipe()
    env = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "STUNTGPU_SERVER", "STUNTGPU_TREE")}
    command = [sys.executable, "-m", "stuntgpu.mockdrivers.server", "--ready", str(writer),
               "--linger", os.environ.get("STUNTGPU_LINGER", "0")]
    process = subprocess.Popen(command, env=env, pass_fds=(writer,), start_new_session=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    os.close(writer)
    with os.fdopen(reader, "rb") as ready:
        came, _, _ = select.select([ready], [], [], START_S)
        path = ready.read().decode() if came else ""
    if not path:
        process.kill()
        told = process.communicate()[1].decode(errors="replace").strip()
        raise ServerError(f"the device server did not start: {told or 'no answer'}")
    if process.stderr is not None:
        process.stderr.close()
    _started.append(process)
    return path


def environment(gpus: Sequence[str] = DEFAULT_GPUS) -> dict[str, str]:
    """Variables to add for a foreign program. Raises ServerError."""
    link, preload = server(), os.environ.get("LD_PRELOAD", "")
    others = [p for p in preload.split(":") if p and p != str(shim_path())]
    return {
        "STUNTGPU_SERVER": link.path,
        "STUNTGPU_TREE": link.tree(gpus),
        "LD_PRELOAD": ":".join([str(shim_path()), *others]),
    }


class Door:
    """Device calls of this process through libstuntgpu.so, without LD_PRELOAD.

    A process has one machine at a time: a door to other GPUs ends what was opened through the earlier one.
    """

    def __init__(self, gpus: Sequence[str] = DEFAULT_GPUS) -> None:
        self.tree = server().tree(gpus)
        self._lib = _library()
        if self._lib.stuntgpu_connect(server().path.encode(), self.tree.encode()):
            raise ServerError(f"no device tree in {self.tree}")

    def open(self, path: str, flags: int = os.O_RDWR) -> int:
        return _checked(self._lib.stuntgpu_open(path.encode(), flags), path)

    def close(self, fd: int) -> None:
        _checked(self._lib.stuntgpu_close(fd))

    def ioctl(self, fd: int, request: int, argument: Any) -> int:
        """`argument` is a ctypes object passed by reference, or an address."""
        pointer = argument if isinstance(argument, int) else ctypes.addressof(argument)
        return _checked(self._lib.stuntgpu_ioctl(fd, request, pointer))

    def mmap(self, address: int, length: int, prot: int, flags: int, fd: int, offset: int) -> int:
        at = self._lib.stuntgpu_mmap(address, length, prot, flags, fd, ctypes.c_int64(offset).value)
        if at is None or at == MAP_FAILED:
            _checked(-1)
        return int(at)

    def munmap(self, address: int, length: int) -> None:
        _checked(self._lib.stuntgpu_munmap(address, length))

    def path(self, path: str) -> str:
        """Where a path of the machine is really looked up: for os.listdir and reading /sys."""
        room = ctypes.create_string_buffer(4096)
        _checked(self._lib.stuntgpu_path(os.fsencode(path), room, len(room)), path)
        return os.fsdecode(room.value)

    def listdir(self, path: str) -> list[str]:
        """Names in a folder of the machine."""
        return os.listdir(self.path(path))

    def read_text(self, path: str) -> str:
        """A file of the machine, /sys above all."""
        return Path(self.path(path)).read_text()


def _library() -> ctypes.CDLL:
    lib = ctypes.CDLL(str(shim_path()), use_errno=True)
    lib.stuntgpu_connect.argtypes = (ctypes.c_char_p, ctypes.c_char_p)
    lib.stuntgpu_open.argtypes = (ctypes.c_char_p, ctypes.c_int)
    lib.stuntgpu_ioctl.argtypes = (ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p)
    lib.stuntgpu_mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int,
                                  ctypes.c_int64)
    lib.stuntgpu_mmap.restype = ctypes.c_void_p
    lib.stuntgpu_munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    lib.stuntgpu_path.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t)
    return lib


def _checked(result: int, path: str | None = None) -> int:
    if result < 0:
        errno = ctypes.get_errno()
        raise OSError(errno, os.strerror(errno), path)
    return result
