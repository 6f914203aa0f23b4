"""One client process: its GPUs, its memory, its open device files, and what its faults said.

Units:   file ids are small integers of this client, as the shim passes them.
Errors:  DriverError for a path that is no device of this client.
"""

from __future__ import annotations

import itertools
import logging
import threading
from bisect import bisect_right, insort
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from errno import EBADF, EINVAL, ENODEV, EOVERFLOW

from stuntgpu.mockdrivers.core.device import Device, fail
from stuntgpu.mockdrivers.core.device import Mapping as PageMapping
from stuntgpu.mockdrivers.core.gpu import ClientMemory, ClientOptions, Gpu, Services
from stuntgpu.mockdrivers.core.memory import Buffer, round_up
from stuntgpu.mockdrivers.profiles import Chip

log = logging.getLogger("stuntgpu.client")

MAX_FAULTS_KEPT = 64


@dataclass(frozen=True, slots=True)
class GpuSlot:
    """One GPU of a topology: which chip, under which numbers the client knows it."""

    chip: Chip
    gpu_id: int
    render_minor: int


class MmapOffsets:
    """Fake offsets a client passes to mmap, each naming a buffer (the kernel's DRM VMA manager)."""

    FIRST = 1 << 32

    def __init__(self) -> None:
        self._buffers: dict[int, Buffer] = {}
        self._starts: list[int] = []
        self._next = self.FIRST

    def add(self, buffer: Buffer) -> int:
        """An offset for all of `buffer`."""
        start = self._next
        self._next += round_up(buffer.size) + round_up(1)
        self._buffers[start] = buffer
        insort(self._starts, start)
        return start

    def remove(self, start: int) -> None:
        del self._buffers[start]
        self._starts.remove(start)

    def find(self, offset: int, length: int) -> PageMapping:
        """The pages behind [offset, offset + length). Raises DriverError(EINVAL)."""
        i = bisect_right(self._starts, offset) - 1
        buffer = self._buffers[self._starts[i]] if i >= 0 else fail(EINVAL, "mmap.offset", offset)
        inside = offset - self._starts[i]
        if inside + length > round_up(buffer.size):
            fail(EINVAL, "mmap.offset", offset)
        return PageMapping(buffer.heap.fd, buffer.offset + inside)


class Client:
    """Everything one process holds; `close` gives all of it back."""

    def __init__(self, pid: int, slots: tuple[GpuSlot, ...], services: Services,
                 options: ClientOptions) -> None:
        self.pid, self.services, self.options = pid, services, options
        self.memory = ClientMemory()
        self.gpus = {s.gpu_id: Gpu(s.chip, s.gpu_id, s.render_minor, services, options) for s in slots}
        self.offsets = MmapOffsets()
        self.lock = threading.RLock()  # serialises calls that change memory or queues
        self.on_close: list[Callable[[], None]] = []
        self.faults: deque[str] = deque(maxlen=MAX_FAULTS_KEPT)  # for LAST_FAULT
        self.notices: deque[str] = deque(maxlen=MAX_FAULTS_KEPT)  # for the person at the terminal
        self._files: dict[int, Device] = {}
        self._ids = itertools.count(1)
        self._nodes: dict[str, Callable[[], Device]] = {}

    def add_nodes(self, nodes: Mapping[str, Callable[[], Device]]) -> None:
        """Paths this client can open, and what makes the device."""
        self._nodes.update(nodes)

    def open(self, path: str) -> tuple[int, Device]:
        """Raises DriverError(ENODEV)."""
        make = self._nodes.get(path) or fail(ENODEV, "open.path", path)
        with self.lock:
            file_id, device = next(self._ids), make()
            if file_id > 0x7FFF_FFFF:
                fail(EOVERFLOW, "open", file_id)
            self._files[file_id] = device
        return file_id, device

    def file(self, file_id: int) -> Device:
        """Raises DriverError(EBADF)."""
        return self._files.get(file_id) or fail(EBADF, "file", file_id)

    def close_file(self, file_id: int) -> None:
        """Raises DriverError(EBADF)."""
        device = self._files.pop(file_id, None) or fail(EBADF, "file", file_id)
        device.close()

    def report_fault(self, text: str) -> None:
        """Keep a fault's report for the client and the person who runs it."""
        log.error("client %d: %s", self.pid, text.splitlines()[0])
        log.info("client %d: full report\n%s", self.pid, text)
        self.services.tally.fault(self.pid, text)
        self.faults.append(text)
        self.notices.append(text)

    def close(self) -> None:
        """The process has gone: stop what runs, free everything."""
        for action in self.on_close:
            action()
        stopped = [gpu.stop() for gpu in self.gpus.values()]
        if all(stopped):
            self.services.doorbells.retire(self._release)
        else:
            log.error("client %d: a queue does not stop; its memory stays allocated", self.pid)

    def _release(self) -> None:
        for gpu in self.gpus.values():
            gpu.vram.close()
        self.memory.close()
