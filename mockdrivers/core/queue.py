"""Packet processors: what PM4 and SDMA engines share. `create` makes the one a ring needs.

A processor keeps a stack of frames: the ring, and the indirect buffers it is inside of. A handler is
called with a decoded packet and says what happens to the frame on top:

    @handles(HANDLERS, WaitRegMem)
    def wait_reg_mem(cp: CommandProcessor, p: WaitRegMem) -> Step:
        return Step.DONE if ... else Step.RETRY        # RETRY leaves rptr on this packet

Units:   positions in the ring's units (dwords PM4, bytes SDMA), growing for ever.
Errors:  PacketError names packet and place, with `address` set when its memory access missed;
         KernelFault from a dispatch.
"""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, NoReturn, TypeVar, overload

from stuntgpu.emu.memory import AddressSpace
from stuntgpu.isa.errors import Unmodelled
from stuntgpu.isa.packets.atomics import AtomicOp
from stuntgpu.isa.packets.base import Packet, PacketError
from stuntgpu.isa.packets.base import Ring as PacketRing
from stuntgpu.mockdrivers.core.seam import Progress, QueueHost, QueueKind, QueueProcessor, Ring

#: Rings hold IB1, IB1 holds IB2, and that is all the hardware has; one more is harmless.
MAX_DEPTH = 4
#: Bytes copied in one go.
COPY_CHUNK = 16 << 20


class Step(Enum):
    """What a handler did. DONE: go to the next packet. RETRY: the packet must wait; stay on it."""

    DONE = "done"
    RETRY = "retry"


def create(ring: Ring, host: QueueHost) -> QueueProcessor:
    """The processor of a ring. Raises Unmodelled for a kind that is not built."""
    if ring.kind is QueueKind.PM4:
        from stuntgpu.mockdrivers.core.pm4 import CommandProcessor

        return CommandProcessor(ring, host)
    if ring.kind is QueueKind.SDMA:
        from stuntgpu.mockdrivers.core.sdma import SdmaEngine

        return SdmaEngine(ring, host)
    raise Unmodelled(ring.arch, f"{ring.kind.value} queues", "mockdrivers/core/queue.py")


class SpaceWords(Sequence[int]):
    """Dwords of GPU memory, read anew each time. Raises LookupError when they are not mapped."""

    __slots__ = ("_n", "_space", "_va")

    def __init__(self, space: AddressSpace, va: int, n_dw: int) -> None:
        self._space, self._va, self._n = space, va, n_dw

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[int]: ...
    def __getitem__(self, index: int | slice) -> int | Sequence[int]:
        if isinstance(index, int):
            return int.from_bytes(self._space.read(self._va + 4 * index, 4), "little")
        first, last, _ = index.indices(self._n)
        return array("I", self._space.read(self._va + 4 * first, 4 * (last - first)))


@dataclass(slots=True)
class Frame:
    """One place packets come from, and how far it is consumed. `va` is the GPU VA of its first dword."""

    ring: PacketRing
    position: int
    va: int


H = TypeVar("H", bound=Callable[..., Step])
Handlers = dict[type[Packet], Callable[[Any, Any], Step]]


def handles(table: Handlers, *kinds: type[Packet]) -> Callable[[H], H]:
    """Function decorator: this function executes these packets."""

    def register(function: H) -> H:
        for kind in kinds:
            table[kind] = function
        return function

    return register


class Processor(ABC):
    """Consumes a ring packet by packet. Subclasses give `peek`, `handlers` and `unit`."""

    unit: ClassVar[int] = 1
    handlers: ClassVar[Handlers] = {}

    def __init__(self, ring: Ring, host: QueueHost) -> None:
        self.ring, self.host, self.space = ring, host, host.space
        self._ring_words = SpaceWords(host.space, ring.va, ring.size_bytes // 4)
        self._frames: list[Frame] = [Frame(self._view(0), 0, ring.va)]
        self._packet: Packet | None = None
        self._skip_dw = 0

    @abstractmethod
    def peek(self, ring: PacketRing, position: int) -> Packet:
        """The packet at a position."""

    def _view(self, wptr: int) -> PacketRing:
        return PacketRing(self._ring_words, wptr, self.ring.arch, self.unit, name=self._name("ring"))

    def _name(self, what: str) -> str:
        return f"{self.ring.kind.value} queue {self.ring.queue_id} {what}"

    # ---- the loop

    def run(self, wptr: int) -> Progress:
        """Consume packets up to `wptr`. See seam.QueueProcessor."""
        bottom = self._frames[0]
        if wptr - bottom.position > self.ring.size_bytes // 4 * self.unit:
            raise PacketError(f"write pointer 0x{wptr:x} is more than the ring's {self.ring.size_bytes} bytes ahead",
                              ring=bottom.ring.name, position=bottom.position)
        bottom.ring = self._view(wptr)
        while not self.host.options.cancelled():
            frame = self._frames[-1]
            if frame.position >= frame.ring.wptr:
                if len(self._frames) == 1:
                    return Progress.IDLE
                self._frames.pop()
                self._publish()
            elif self._step(frame) is Step.RETRY:
                return Progress.RETRY
        return Progress.IDLE

    def _step(self, frame: Frame) -> Step:
        try:
            packet = self._packet = self.peek(frame.ring, frame.position)
            handler = self.handlers.get(type(packet))
            if handler is None:
                self.unmodelled(f"packet {packet.NAME}")
            start = frame.position
            frame.position = start + packet.size_dw * self.unit
            self._skip_dw = 0
            step = handler(self, packet)
            if step is Step.RETRY:
                frame.position = start
                return step
            frame.position += self._skip_dw * self.unit
        except LookupError as error:
            self._fetch_missed(frame, error)
        if len(self._frames) == 1:
            self._publish()
        return step

    def _fetch_missed(self, frame: Frame, error: LookupError) -> NoReturn:
        """The ring or indirect buffer itself is not mapped."""
        index = frame.position // self.unit
        at = frame.va + 4 * (index % len(frame.ring.words) if frame.ring.wraps else index)
        raise PacketError(f"packets at 0x{at:x} cannot be read: {error}", ring=frame.ring.name,
                          position=frame.position, address=at, access="read") from error

    def _publish(self) -> None:
        """Store how far the ring is consumed."""
        if len(self._frames) == 1 and self.ring.rptr_va:
            self.store(self.ring.rptr_va, self._frames[0].position, 8)

    # ---- what handlers use

    def skip(self, n_dw: int) -> None:
        """Pass over `n_dw` dwords after this packet."""
        self._skip_dw = n_dw

    def enter(self, va: int, n_dw: int, *, chain: bool = False) -> None:
        """Go on with the `n_dw` dwords at `va`; with `chain` the present buffer is not come back to."""
        if chain and len(self._frames) == 1:
            self.refuse("chained indirect buffer in a ring")
        if chain:
            self._frames.pop()
        if len(self._frames) > MAX_DEPTH:
            self.refuse(f"indirect buffers nested deeper than {MAX_DEPTH}")
        view = PacketRing(SpaceWords(self.space, va, n_dw), n_dw * self.unit, self.ring.arch, self.unit,
                          wraps=False, name=self._name(f"indirect buffer 0x{va:x}"))
        self._frames.append(Frame(view, 0, va))

    def refuse(self, reason: str, *, address: int | None = None, access: str = "") -> NoReturn:
        """Raise PacketError for the packet being executed."""
        frame, packet = self._frames[-1], self._packet
        words = packet.encode() if packet is not None else (0,)
        position = frame.position - len(words) * self.unit
        raise PacketError(f"{reason}; {packet!r}", ring=frame.ring.name, packet=packet.NAME if packet else "",
                          position=position, value=words[0], address=address, access=access)

    def unmodelled(self, what: str) -> NoReturn:
        """Raise Unmodelled for something a packet asks for."""
        raise Unmodelled(self.ring.arch, what, type(self).__module__)

    def load(self, va: int, size: int) -> int:
        """Little-endian number of `size` bytes. Raises PacketError when not mapped."""
        return int.from_bytes(self.load_bytes(va, size), "little")

    def load_bytes(self, va: int, size: int) -> bytes:
        """Bytes of GPU memory. Raises PacketError when not mapped."""
        try:
            return self.space.read(va, size)
        except LookupError as error:
            self.refuse(f"cannot read {size} bytes: {error.args[0]}", address=va, access="read")

    def store(self, va: int, value: int, size: int) -> None:
        """Store a little-endian number of `size` bytes. Raises PacketError when not mapped."""
        self.store_bytes(va, (value & ((1 << 8 * size) - 1)).to_bytes(size, "little"))

    def store_bytes(self, va: int, data: bytes) -> None:
        """Store bytes. Raises PacketError when not mapped."""
        try:
            self.space.write(va, data)
        except LookupError as error:
            self.refuse(f"cannot write {len(data)} bytes: {error.args[0]}", address=va, access="write")

    def copy(self, src: int, dst: int, size: int) -> None:
        """Copy memory. Raises PacketError when either side is not mapped."""
        for at in range(0, size, COPY_CHUNK):
            n = min(COPY_CHUNK, size - at)
            source, target = self.space.host(src + at, n), self.space.host(dst + at, n)
            if source is not None and target is not None:
                ctypes.memmove(target, source, n)
            else:  # spans regions, or is not mapped: the slow way names the address
                self.store_bytes(dst + at, self.load_bytes(src + at, n))
            if self.host.options.cancelled():
                return

    def atomic(self, code: int, va: int, source: int, compare: int) -> int:
        """Do an atomic, giving what memory held before. Raises PacketError for a code or address that is not."""
        try:
            op = AtomicOp.decode(code)
        except ValueError:
            self.refuse(f"atomic code 0x{code:x} is no integer operation")
        size = op.bits // 8
        if va % size:
            self.refuse(f"misaligned atomic of {size} bytes at 0x{va:x}", address=va, access="atomic")
        old = self.load(va, size)
        self.store(va, op.apply(old, source, compare), size)
        return old

