"""One connection of one client: each request of the shim goes to the device it names.

Errors:  what a device refuses goes back as -errno; a bug of ours is logged and goes back as -EIO; a
         peer that breaks the protocol is cut off.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable
from errno import EIO, EPROTO

from stuntgpu.mockdrivers.core.client import Client
from stuntgpu.mockdrivers.core.device import DriverError
from stuntgpu.mockdrivers.protocol import (
    MAX_PAYLOAD,
    VERSION,
    Caller,
    Channel,
    ClientError,
    Disconnected,
    Message,
    Op,
)

log = logging.getLogger("stuntgpu.server")

MakeClient = Callable[[int, str, dict[str, str]], Client]  # pid, tree, STUNTGPU_ variables


class Clients:
    """The clients of a server by token; one lives as long as it has a connection."""

    def __init__(self, make: MakeClient) -> None:
        self._make = make
        self._known: dict[int, tuple[Client, int]] = {}
        self._lock = threading.Lock()

    def join(self, token: int, pid: int, tree: str, env: dict[str, str]) -> tuple[int, Client]:
        """A new client (token 0), or one more connection of a known one. Raises LookupError, ValueError."""
        if not token:
            client = self._make(pid, tree, env)
            token = secrets.randbits(63) | 1
            with self._lock:
                self._known[token] = (client, 1)
            log.info("client %d came", pid)
            return token, client
        with self._lock:
            client, n = self._known[token]
            if not n:
                raise LookupError(f"client {client.pid} is going")
            self._known[token] = (client, n + 1)
            return token, client

    def leave(self, token: int) -> None:
        """A connection has gone; with the last one the client goes."""
        with self._lock:
            client, n = self._known[token]
            self._known[token] = (client, n - 1)
            if n > 1:
                return
        client.close()
        log.info("client %d has gone", client.pid)
        with self._lock:
            del self._known[token]

    def all(self) -> list[Client]:
        with self._lock:
            return [client for client, _ in self._known.values()]


class Session:
    """Serves one connection until it ends."""

    def __init__(self, channel: Channel, clients: Clients, control: Callable[[bytes], bytes]) -> None:
        self._channel, self._clients, self._control = channel, clients, control
        self._caller = Caller(channel)
        self._token = 0
        self._client: Client | None = None
        self._notices = False

    def run(self) -> None:
        """Answer requests; comes back when the peer has gone."""
        try:
            while True:
                request = self._channel.receive()
                reply = self._guarded(request)
                self._say_notices()
                self._channel.send(reply)
        except Disconnected as e:
            log.debug("connection ended: %s", e)
        finally:
            if self._token:
                self._clients.leave(self._token)

    def _guarded(self, request: Message) -> Message:
        try:
            return self._answer(request)
        except DriverError as e:
            log.info("%s refused: %s", _op_name(request.op), e)
            return Message(Op.DONE, -e.errno)
        except ClientError as e:
            return Message(Op.DONE, -e.errno)
        except Disconnected:
            raise
        except Exception:
            log.exception("%s: a bug of stuntgpu's, please report it", _op_name(request.op))
            return Message(Op.DONE, -EIO)

    def _answer(self, request: Message) -> Message:
        if request.op == Op.HELLO:
            return self._hello(request)
        if request.op == Op.CONTROL:
            return Message(Op.DONE, payload=self._control(request.payload))
        answer = _ANSWERS.get(request.op)
        if answer is None or self._client is None:
            raise Disconnected(f"request {_op_name(request.op)} out of place")
        return answer(self._client, request, self._caller)

    def _hello(self, request: Message) -> Message:
        version, token, pid, self._notices = request.a[0], request.a[1], request.a[2], bool(request.a[3])
        tree, *variables = request.payload.decode(errors="surrogateescape").rstrip("\0").split("\0")
        env = {name: value for name, _, value in (v.partition("=") for v in variables)}
        if version != VERSION or self._client is not None:
            raise Disconnected(f"hello of version {version}, ours is {VERSION}")
        try:
            self._token, self._client = self._clients.join(token, pid, tree, env)
        except (LookupError, ValueError) as e:
            log.error("client %d refused: %s", pid, e)
            self._caller.say(f"stuntgpu: {e}\n")
            return Message(Op.DONE, -EPROTO)
        return Message(Op.DONE, a=(self._token, 0, 0, 0))

    def _say_notices(self) -> None:
        while self._notices and self._client is not None and self._client.notices:
            self._caller.say(f"stuntgpu: {self._client.notices.popleft()}\n")


def _op_name(op: int) -> str:
    return Op(op).name if op in list(Op) else f"op {op}"


def _open(client: Client, request: Message, caller: Caller) -> Message:
    file_id, device = client.open(request.payload.decode(errors="surrogateescape"))
    return Message(Op.DONE, file_id, a=(device.poll_mask, 0, 0, 0))


def _close(client: Client, request: Message, caller: Caller) -> Message:
    client.close_file(request.file)
    return Message(Op.DONE)


def _ioctl(client: Client, request: Message, caller: Caller) -> Message:
    result, back = client.file(request.file).ioctl(request.a[0], request.payload, caller)
    return Message(Op.DONE, result, payload=back)


def _mmap(client: Client, request: Message, caller: Caller) -> Message:
    length, prot, flags, offset = request.a
    pages = client.file(request.file).mmap(length, prot, flags, offset)
    return Message(Op.DONE, a=(pages.offset, 0, 0, 0), fd=pages.fd)


def _read(client: Client, request: Message, caller: Caller) -> Message:
    offset, length = request.a[0], min(request.a[1], MAX_PAYLOAD)
    return Message(Op.DONE, payload=client.file(request.file).read(offset, length)[:length])


def _write(client: Client, request: Message, caller: Caller) -> Message:
    return Message(Op.DONE, client.file(request.file).write(request.a[0], request.payload))


_ANSWERS: dict[int, Callable[[Client, Message, Caller], Message]] = {
    Op.OPEN: _open,
    Op.CLOSE: _close,
    Op.IOCTL: _ioctl,
    Op.MMAP: _mmap,
    Op.READ: _read,
    Op.WRITE: _write,
}
