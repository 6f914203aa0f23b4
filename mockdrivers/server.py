"""The device server: `python -m stuntgpu.mockdrivers.server`.

One serves a session: a program under `stuntgpu run`, a pytest run and its workers, a script with a MOCK
device. It is started on demand (client.py), listens on a unix socket in a private folder, makes the file
trees clients see, and ends when its last connection has gone.

Options: --linger SECONDS  stay that long after the last connection
         --ready FD        write the socket's path there once it listens
Environment: STUNTGPU_LOG  file for the log (else server.log in the session's folder, gone with it);
             STUNTGPU_LOG_LEVEL  DEBUG, INFO (default), WARNING
"""

from __future__ import annotations

import argparse
import faulthandler
import importlib
import json
import logging
import os
import resource
import shutil
import signal
import socket
import struct
import sys
import threading
import time
from pathlib import Path
from typing import Any

from stuntgpu.isa.errors import Unmodelled
from stuntgpu.mockdrivers.core.client import Client, GpuSlot
from stuntgpu.mockdrivers.core.device import Device
from stuntgpu.mockdrivers.core.doorbell import Doorbells
from stuntgpu.mockdrivers.core.gpu import ClientOptions, Executors, Services
from stuntgpu.mockdrivers.folders import session_folder
from stuntgpu.mockdrivers.kfd.device import Kfd
from stuntgpu.mockdrivers.kfd.render import RenderNode
from stuntgpu.mockdrivers.kfd.topology import gpu_slots, write_tree
from stuntgpu.mockdrivers.protocol import Channel
from stuntgpu.mockdrivers.session import Clients, Session

log = logging.getLogger("stuntgpu.server")

FIRST_CONNECTION_S = 30.0  # a server nobody ever calls ends as well
ACCEPT_S = 0.1


class Server:
    """The state of one server process."""

    def __init__(self, folder: Path, linger_s: float) -> None:
        self.folder, self.linger_s = folder, linger_s
        self.services = Services(Executors(), Doorbells())
        self.clients = Clients(self._make_client)
        self._trees: dict[str, tuple[GpuSlot, ...]] = {}
        self._lock = threading.Lock()
        self._connections = 0
        self._idle_since = time.monotonic()
        self._patience_s = max(FIRST_CONNECTION_S, linger_s)
        self._stopping = False
        self.socket_path = str(folder / "sock")
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(self.socket_path)
        self._listener.listen(64)

    def serve(self) -> None:
        """Accept until nobody is left."""
        self._listener.settimeout(ACCEPT_S)
        while not self._done():
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                continue
            if _peer_uid(connection) != os.getuid():
                log.error("a connection of user %d was refused", _peer_uid(connection))
                connection.close()
                continue
            self._count(1)
            threading.Thread(target=self._serve_one, args=(connection,), daemon=True).start()

    def _done(self) -> bool:
        with self._lock:
            idle = not self._connections and time.monotonic() - self._idle_since >= self._patience_s
            return idle or self._stopping

    def _count(self, change: int) -> None:
        with self._lock:
            self._connections += change
            self._idle_since, self._patience_s = time.monotonic(), self.linger_s

    def _serve_one(self, connection: socket.socket) -> None:
        connection.settimeout(None)
        try:
            with connection:
                Session(Channel(connection), self.clients, self._control).run()
        finally:
            self._count(-1)

    def _make_client(self, pid: int, tree: str, env: dict[str, str]) -> Client:
        slots = self._trees.get(tree)
        if slots is None:
            raise LookupError(f"no tree {tree!r} (STUNTGPU_TREE) in this server")
        options = ClientOptions.from_environment(env)
        client = Client(pid, slots, self.services, options)
        kfd = Kfd(client)
        client.add_nodes({kfd.node: lambda: kfd})
        for gpu in client.gpus.values():
            def open_node(gpu: Any = gpu) -> Device:
                return RenderNode(client, gpu)

            client.add_nodes({f"/dev/dri/renderD{gpu.render_minor}": open_node})
        self._warm_up({slot.chip.arch for slot in slots}, options.tier)
        return client

    def _warm_up(self, archs: set[str], tier: str) -> None:
        """Load packet processors and executors while the client still sets up its device."""

        def load() -> None:
            for module in ("pm4", "sdma"):
                importlib.import_module(f"stuntgpu.mockdrivers.core.{module}")
            for arch in sorted(archs):
                try:
                    self.services.executors.get(arch, tier)
                except Exception:
                    log.exception("the %s executor of %s does not load; kernels will fail", tier, arch)

        threading.Thread(target=load, name="warm-up", daemon=True).start()

    def _control(self, payload: bytes) -> bytes:
        """Our own tools: make a tree, say what goes on, stop."""
        request = json.loads(payload)
        try:
            answer = self._tool(str(request["do"]), request)
        except (Unmodelled, ValueError) as e:
            answer = {"error": str(e)}
        return json.dumps(answer).encode()

    def _tool(self, name: str, request: dict[str, Any]) -> dict[str, Any]:
        if name == "tree":
            return {"tree": self.tree(tuple(request["gpus"]))}
        if name == "status":
            clients = [_status(c) for c in self.clients.all()]
            return {"pid": os.getpid(), "clients": clients, "totals": self.services.tally.totals(),
                    "handlers": _handlers(), "log": str(log_path(self.folder))}
        if name == "faults":
            return self.services.tally.faults(int(request["since"]), int(request["of_pid"]))
        if name == "stop":
            self._stopping = True
            return {}
        raise ValueError(f"control request {name!r}")

    def tree(self, archs: tuple[str, ...]) -> str:
        """The folder that shows these GPUs, written on first use. Raises Unmodelled."""
        slots = gpu_slots(archs)
        folder = self.folder / ("tree-" + "-".join(archs))
        with self._lock:
            if str(folder) not in self._trees:
                write_tree(folder, slots)
                self._trees[str(folder)] = slots
        return str(folder)

    def close(self) -> None:
        self._listener.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def _handlers() -> dict[str, int]:
    """How many native handlers this server compiled, and how many it took from the cache on disk."""
    from stuntgpu.emu.cache import counters

    return {"compiled": counters.compiled, "loaded": counters.loaded}


def _status(client: Client) -> dict[str, Any]:
    return {
        "pid": client.pid,
        "vram_used": sum(gpu.vram.used for gpu in client.gpus.values()),
        "gtt_used": client.memory.gtt.used,
        "user_used": client.memory.user_heap.used,
        "queues": sum(len(gpu.queues) for gpu in client.gpus.values()),
    }


def _peer_uid(connection: socket.socket) -> int:
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", raw)[1])


def log_path(folder: Path) -> Path:
    """Where a server with this folder writes its log."""
    return Path(os.environ.get("STUNTGPU_LOG") or folder / "server.log").absolute()


def _set_up_log(folder: Path) -> None:
    logging.basicConfig(filename=log_path(folder), level=os.environ.get("STUNTGPU_LOG_LEVEL", "INFO").upper(),
                        format="%(asctime)s %(name)s %(levelname)s: %(message)s")


def _errors_to_log() -> None:
    """What Python or native code prints when it dies ends up beside the log lines."""
    handler = logging.getLogger().handlers[0]
    if isinstance(handler, logging.FileHandler) and handler.stream is not None:
        os.dup2(handler.stream.fileno(), 2)
    faulthandler.enable()


def _raise_file_limit() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def main() -> None:
    """Run a server in the foreground."""
    parser = argparse.ArgumentParser(prog="python -m stuntgpu.mockdrivers.server", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--linger", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--ready", type=int, default=-1, metavar="FD")
    options = parser.parse_args()
    folder, _lock = session_folder()
    _set_up_log(folder)
    _raise_file_limit()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is meant for the program in front
    server = Server(folder, options.linger)
    print(server.socket_path, flush=True)
    if options.ready >= 0:
        os.write(options.ready, server.socket_path.encode())
        os.close(options.ready)
        _errors_to_log()
    try:
        server.serve()
    finally:
        server.close()
    logging.shutdown()
    sys.stdout.flush()
    os._exit(0)  # daemon threads may sit in native code


if __name__ == "__main__":
    main()
