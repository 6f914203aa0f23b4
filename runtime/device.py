"""A device: memory, copies, programs and the order of work.

Kernels run from a PM4 ring and copies from an SDMA ring; a timeline signal keeps them in the order
they were submitted. The queues are made on first use, and made anew after a fault.

Units:   bytes, seconds.
Errors:  DeviceFault with the driver's report, DeviceTimeout, ArgumentError; OSError from the driver;
         DevError and Unmodelled for a DEV that cannot be.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from stuntgpu.isa.abi import codeobject
from stuntgpu.isa.abi.aql import HsaQueue
from stuntgpu.isa.abi.kfd import EventType, HwExceptionData, MemoryExceptionData, QueueType
from stuntgpu.isa.abi.targets import LDS_APERTURE, SCRATCH_APERTURE, round_up
from stuntgpu.isa.packets import sdma
from stuntgpu.isa.packets.base import Packet
from stuntgpu.runtime.buffer import Array, Buffer
from stuntgpu.runtime.dev import parse_dev
from stuntgpu.runtime.errors import ArgumentError, DeviceFault, DeviceTimeout
from stuntgpu.runtime.kfd import HOST, PAGE, VRAM, Allocation, find_gpu
from stuntgpu.runtime.program import Program
from stuntgpu.runtime.queues import Queue
from stuntgpu.runtime.timeline import Timeline

DEFAULT_DEV = "KFD+AMD"
DEFAULT_TIMEOUT_S = 60.0
STAGING_BYTES = 4 << 20  # one SDMA copy's worth
ARGUMENT_BYTES = 1 << 20
ARGUMENT_ALIGN = 64
SPIN_S = 0.001  # short work is done before an event could be waited for
TICK_MS = 50  # how long one sleep may be, so that the time-out is kept


class Device:
    """One GPU as DEV (or `dev`) names it; `index` counts the GPUs DEV lets through."""

    def __init__(self, dev: str | None = None, *, index: int = 0, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        self.spec = parse_dev(dev or os.environ.get("DEV") or DEFAULT_DEV)[0].require_built()
        self.gpu = find_gpu(self.spec, index)
        self.arch, self.timeout_s = self.gpu.arch, timeout_s
        self._lock = threading.RLock()
        machine = self.gpu.machine
        self._shared = self.gpu.alloc(PAGE, HOST)  # the timeline's signal, and what kernels see as their queue
        self._events = tuple(machine.event(self.gpu, t)
                             for t in (EventType.SIGNAL, EventType.MEMORY, EventType.HW_EXCEPTION))
        self.timeline = Timeline(self._shared, self._events[0])
        self.queue_struct_va = self._shared.va + PAGE // 2
        self._shared.store(PAGE // 2, HsaQueue(group_aperture_hi=LDS_APERTURE >> 32,
                                               private_aperture_hi=SCRATCH_APERTURE >> 32).pack())
        self._queues: dict[QueueType, Queue] = {}
        self._staging: Allocation | None = None
        self._arguments: Allocation | None = None
        self._arguments_used = 0
        self._scratch: Allocation | None = None
        self._dead: deque[tuple[int, Allocation]] = deque()  # (submission after which it is free, memory)
        self._closed = False
        machine.devices.add(self)

    # ---- memory

    def alloc(self, shape: int | tuple[int, ...], dtype: Any = np.uint8) -> Buffer:
        """Memory whose contents are undefined. `shape`: elements, or a tuple."""
        self._check_open()
        self._reap()
        sizes = (shape,) if isinstance(shape, int) else tuple(shape)
        kind = np.dtype(dtype)
        nbytes = int(np.prod(sizes, dtype=np.int64)) * kind.itemsize
        return Buffer(self.gpu.alloc(nbytes, VRAM), sizes, kind, self._release)

    def copyin(self, array: Array) -> Buffer:
        """A copy of `array` in device memory."""
        source = np.ascontiguousarray(array)
        buffer = self.alloc(array.shape, source.dtype)
        self._upload(buffer.va, source.reshape(-1).view(np.uint8))
        return buffer

    def copyout(self, buffer: Buffer) -> Array:
        """The buffer's contents, after everything submitted before."""
        self._check_open()
        if buffer.is_freed or not self.owns(buffer):
            raise ArgumentError(f"{buffer!r}: {'freed' if buffer.is_freed else 'of another device'}")
        out = np.empty(buffer.shape, buffer.dtype)
        flat = out.reshape(-1).view(np.uint8)
        with self._lock:
            for at, size, staging in self._chunks(flat.nbytes):
                self._copy(staging.va, buffer.va + at, size)
                self.synchronize()
                ctypes.memmove(flat[at:].ctypes.data, staging.va, size)
        return out

    def owns(self, buffer: Buffer) -> bool:
        """Whether the buffer was allocated here."""
        finalizer = buffer._finalizer.peek()
        return finalizer is not None and finalizer[1] == self._release

    def _release(self, allocation: Allocation) -> None:
        """May run in any thread, in the middle of anything: only note it."""
        self._dead.append((self.timeline.submitted, allocation))

    def _reap(self) -> None:
        """Free what was released and is no longer in use."""
        with self._lock:
            while self._dead and self.timeline.is_done(self._dead[0][0]):
                self.gpu.free(self._dead.popleft()[1])

    # ---- copies

    def _upload(self, va: int, data: Array) -> None:
        with self._lock:
            for at, size, staging in self._chunks(data.nbytes):
                self.synchronize()  # the staging memory is in use until the copy before is done
                ctypes.memmove(staging.va, data[at:].ctypes.data, size)
                self._copy(va + at, staging.va, size)

    def _chunks(self, nbytes: int) -> Iterator[tuple[int, int, Allocation]]:
        """(offset, size, staging memory) of each piece."""
        if self._staging is None:
            self._staging = self.gpu.alloc(STAGING_BYTES, HOST)
        for at in range(0, nbytes, STAGING_BYTES):
            yield at, min(STAGING_BYTES, nbytes - at), self._staging

    def _copy(self, dst: int, src: int, nbytes: int) -> None:
        packet = sdma.CopyLinear(count=nbytes - 1, src=src, dst=dst)
        self._submit(QueueType.SDMA, self.timeline.sdma_wait, (packet,), self.timeline.sdma_signal)

    # ---- kernels

    def load(self, code_object: bytes | str | Path, name: str) -> Program:
        """The kernel `name` of a code object (bytes, or a file). Raises CodeObjectError, ArgumentError."""
        self._check_open()
        if isinstance(code_object, bytes):
            data, file = code_object, ""
        else:
            data, file = Path(code_object).read_bytes(), str(code_object)
        parsed = codeobject.read(data, name=file)
        parsed.check_target(self.arch)
        if name not in parsed.kernels:
            raise ArgumentError(f"no kernel {name!r} in the code object; it has: {', '.join(sorted(parsed.kernels))}")
        image = self.alloc(parsed.size)
        self._upload(image.va, np.frombuffer(parsed.image(image.va), np.uint8))
        return Program(self, parsed.kernels[name], image)

    def submit_pm4(self, packets: Iterable[Packet]) -> None:
        """Kernels' packets, behind everything submitted before."""
        with self._lock:
            self._submit(QueueType.COMPUTE, self.timeline.pm4_wait, packets, self.timeline.pm4_signal)

    def put_arguments(self, data: bytes) -> int:
        """Bytes for the next dispatch to read; they stay as they are until it is done. Gives their GPU VA."""
        with self._lock:
            if self._arguments is None:
                self._arguments = self.gpu.alloc(ARGUMENT_BYTES, HOST)
            size = round_up(len(data), ARGUMENT_ALIGN)
            if size > ARGUMENT_BYTES // 2:
                raise ArgumentError(f"{len(data)} bytes of kernel arguments, at most {ARGUMENT_BYTES // 2}")
            if self._arguments_used + size > ARGUMENT_BYTES:
                self.synchronize()
                self._arguments_used = 0
            at, self._arguments_used = self._arguments_used, self._arguments_used + size
            self._arguments.store(at, data)
            return self._arguments.va + at

    def scratch(self, wave_bytes: int) -> tuple[int, int]:
        """(GPU VA, waves of one shader engine) of private memory for every wave the GPU can hold."""
        waves = self.gpu.scratch_waves_per_engine
        need = waves * self.gpu.shader_engines * wave_bytes
        with self._lock:
            if self._scratch is None or self._scratch.size < need:
                if self._scratch is not None:
                    self._release(self._scratch)
                self._scratch = self.gpu.alloc(need, VRAM)
            return self._scratch.va, waves

    # ---- order

    def _submit(self, kind: QueueType, before: Callable[[], Iterable[Packet]], packets: Iterable[Packet],
                after: Callable[[], Iterable[Packet]]) -> None:
        self._check_open()
        if self.timeline.must_drain:
            self.synchronize()
        body = tuple(packets)
        if kind not in self._queues:
            self._queues[kind] = Queue(self.gpu, kind, lambda done, what: self._wait(done, what, self.timeout_s))
        self._queues[kind].submit((*before(), *body, *after()))
        self.timeline.submitted += 1

    def synchronize(self, timeout_s: float | None = None) -> None:
        """Wait until everything submitted is done. Raises DeviceFault, DeviceTimeout."""
        with self._lock:
            value = self.timeline.submitted
            self._wait(lambda: self.timeline.is_done(value), f"the timeline to reach {value}",
                       self.timeout_s if timeout_s is None else timeout_s)
            self._reap()

    def _wait(self, done: Callable[[], bool], what: str, timeout_s: float) -> None:
        start = time.monotonic()
        while not done():
            spent = time.monotonic() - start
            if spent > timeout_s:
                raise DeviceTimeout(f"waited {timeout_s:g} s for {what}; {self._state()}")
            if spent < SPIN_S:
                time.sleep(0)
                continue
            left_ms = int((timeout_s - spent) * 1000) + 1
            self._check_faults(min(TICK_MS, left_ms))

    def _state(self) -> str:
        """Where everything stands, for a person who must find out why."""
        at = [f"signal at 0x{self.timeline.va:x} is {self.timeline.reached}, {self.timeline.submitted} submitted"]
        at += [f"{kind.name} ring read to {q.rptr} of {q.wptr}" for kind, q in self._queues.items()]
        return "; ".join(at)

    def _check_faults(self, timeout_ms: int) -> None:
        """Sleep until something happens. Raises DeviceFault for an exception of the hardware or the kernel."""
        try:
            _, memory, hardware = self.gpu.machine.wait(self._events, timeout_ms)
        except OSError as e:
            self._give_up()
            raise DeviceFault(f"the device is gone: {e}") from e
        if memory.payload.memory_exception_data.gpu_id == self.gpu.gpu_id:
            self._fault(_memory_text(memory.payload.memory_exception_data))
        if hardware.payload.hw_exception_data.gpu_id == self.gpu.gpu_id:
            self._fault(_hardware_text(hardware.payload.hw_exception_data))

    def _fault(self, payload: str) -> None:
        """Report, after making the device usable again: its queues are lost with what they held.

        The driver tells every exception event of the process; those of other devices are taken back,
        since the fault is this one's. (When several wait at once, the first to wake reports it.)
        """
        machine = self.gpu.machine
        report = machine.last_fault() or payload
        for other in machine.devices:
            if other is not self and not other._closed:
                machine.wait(other._events[1:], 0)
        for queue in self._queues.values():
            queue.close()
        self._give_up()
        raise DeviceFault(report)

    def _give_up(self) -> None:
        self._queues.clear()
        self.timeline.skip()

    # ---- the end

    def _check_open(self) -> None:
        if self._closed:
            raise ArgumentError("the device is closed")

    def close(self) -> None:
        """Wait for what was submitted, then destroy the queues and free this device's own memory.
        Buffers that are still referred to live on until they are not."""
        if self._closed:
            return
        with self._lock:
            try:
                self.synchronize()
            finally:
                self._closed = True
                for queue in self._queues.values():
                    queue.close()
                self._queues.clear()
                for memory in (self._staging, self._arguments, self._scratch, self._shared):
                    if memory is not None:
                        self.gpu.free(memory)
                for event in self._events:
                    self.gpu.machine.destroy_event(event)

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Device({str(self.spec)!r}, {self.arch})"


def _memory_text(data: MemoryExceptionData) -> str:
    why = [name for name, on in (("not present", data.NotPresent), ("read only", data.ReadOnly),
                                 ("no execute", data.NoExecute)) if on]
    return f"memory exception at 0x{data.va:x} ({', '.join(why) or 'no reason given'})"


def _hardware_text(data: HwExceptionData) -> str:
    return f"hardware exception: reset type {data.reset_type}, cause {data.reset_cause}"
