"""What packets of every ring have in common: immutable values with a body of bit fields and a tail.

    class WriteData(Packet, tail=True):
        dst_sel = bits[0, 11:8].enum(WriteDst)
        addr = dword[1:2]

    p = WriteData(addr=0x1000, tail=(1, 2))      # printable, comparable; p.tail == (1, 2)

Units:   u32 dwords, low dword first. Ring positions grow for ever, in `Ring.unit`s.
Errors:  PacketError names the ring, the packet, the dword and the value seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Self, cast

from stuntgpu.isa.errors import Bug, GuestFault, Unmodelled
from stuntgpu.isa.fields import BitStruct, FieldError

MASK32 = 0xFFFF_FFFF


class Compare(Enum):
    """How WAIT_REG_MEM and POLL_REGMEM compare what they see (masked) with their reference."""

    ALWAYS = 0
    LT = 1
    LE = 2
    EQ = 3
    NE = 4
    GE = 5
    GT = 6

    def __call__(self, seen: int, ref: int) -> bool:
        """Whether the unsigned comparison holds."""
        return _COMPARISONS[self.value](seen, ref)


_COMPARISONS: tuple[Callable[[int, int], bool], ...] = (
    lambda a, b: True, lambda a, b: a < b, lambda a, b: a <= b, lambda a, b: a == b,
    lambda a, b: a != b, lambda a, b: a >= b, lambda a, b: a > b,
)


class PacketError(GuestFault):
    """A ring holds something the command processor cannot execute.

    packet    its name, or "" when not even that is known.
    position  where it starts, in the ring's units.
    dword     index of the offending dword from the packet's header on; value what it holds.
    address, access   set when the packet's memory access missed: the GPU VA and "read" or "write".
    """

    def __init__(self, reason: str, *, ring: str = "", packet: str = "", position: int = 0, dword: int = 0,
                 value: int = 0, address: int | None = None, access: str = "") -> None:
        where = f"{ring or 'ring'} position 0x{position:x}"
        name = f" {packet}" if packet else ""
        super().__init__(f"bad packet{name} at {where}, dword {dword} = 0x{value:08x}: {reason}")
        self.reason, self.ring, self.packet, self.position = reason, ring, packet, position
        self.dword, self.value, self.address, self.access = dword, value, address, access


@dataclass(frozen=True, slots=True)
class Ring:
    """Dwords a processor consumes: a ring (wraps) or an indirect buffer (ends).

    words     u32[size_dw]; slices must give the dwords as they are now.
    wptr      first position that holds nothing yet, same units as every position here.
    unit      what a position counts per dword: 1 (dwords, compute) or 4 (bytes, SDMA).
    name      how messages call it.
    """

    words: Sequence[int]
    wptr: int
    arch: str = "gfx1100"
    unit: int = 1
    wraps: bool = True
    name: str = "ring"

    def fetch(self, position: int, n_dw: int) -> tuple[int, ...]:
        """`n_dw` dwords from `position`, past the end of the memory on to its start.

        Raises PacketError when they reach past wptr.
        """
        if position + n_dw * self.unit > self.wptr:
            have = max(0, self.wptr - position) // self.unit
            raise PacketError(f"truncated: {n_dw} dwords needed, {have} before the write pointer 0x{self.wptr:x}",
                              ring=self.name, position=position)
        size = len(self.words)
        first = position // self.unit % size if self.wraps else position // self.unit
        if first + n_dw <= size:
            return tuple(self.words[first : first + n_dw])
        parts, left = list(self.words[first:size]), n_dw - (size - first)
        while left > 0:
            parts += self.words[: min(left, size)]
            left -= size
        return tuple(parts)


class Packet(BitStruct):
    """A packet. Subclasses name the fixed dwords' fields; with `tail=True` any number may follow.

    Which dword field index 0 is, the ring kind says: the first after the header (PM4) or the header (SDMA).
    """

    __slots__ = ("_header", "_tail")
    NAME: ClassVar[str] = ""
    HAS_TAIL: ClassVar[bool] = False
    HEADER_MASK: ClassVar[int] = 0
    _tail: tuple[int, ...]
    _header: int

    def __init_subclass__(cls, *, size: int | None = None, tail: bool = False) -> None:
        super().__init_subclass__(size=size)
        cls.HAS_TAIL = tail or cls.HAS_TAIL

    def __init__(self, *, tail: Iterable[int] = (), header: int = 0, **values: object) -> None:
        """Fields by name; `tail` the dwords after them; `header` bits the fields do not hold.

        Raises FieldError for values that do not fit.
        """
        super().__init__(**values)
        self._finish(tuple(tail), header)

    def _finish(self, tail: tuple[int, ...], header: int) -> None:
        if tail and not self.HAS_TAIL:
            raise FieldError(f"{type(self).__name__} has no tail, got {len(tail)} dwords")
        for i, word in enumerate(tail):
            if not 0 <= word <= MASK32:
                raise FieldError(f"{type(self).__name__}.tail[{i}] = {word:#x}: not a dword")
        if header & ~self.HEADER_MASK:
            raise FieldError(f"{type(self).__name__}: header bits 0x{header:x}, it may have 0x{self.HEADER_MASK:x}")
        object.__setattr__(self, "_tail", tail)
        object.__setattr__(self, "_header", header)

    @classmethod
    def from_body(cls, body: Sequence[int], header: int = 0) -> Self:
        """From the fixed dwords and whatever follows. Raises FieldError."""
        n = cls.SIZE_BYTES // 4
        word = 0
        for i, value in enumerate(body[:n]):
            word |= value << 32 * i
        self = cls.from_int(word)
        self._finish(tuple(body[n:]), header)
        return self

    def replace(self, **values: object) -> Self:
        """A copy with some fields changed (`tail` and `header` too)."""
        tail = cast("Iterable[int]", values.pop("tail", self._tail))
        header = cast(int, values.pop("header", self._header))
        copy = super().replace(**values)
        copy._finish(tuple(tail), header)
        return copy

    @property
    def tail(self) -> tuple[int, ...]:
        """The dwords after the fixed ones."""
        return self._tail

    @property
    def header(self) -> int:
        """Header bits no field holds (PM4: bit 0 predicate, bit 1 compute shader type)."""
        return self._header

    def body(self) -> tuple[int, ...]:
        """The fixed dwords and the tail."""
        return self.words() + self._tail

    def encode(self) -> tuple[int, ...]:
        """All dwords, as they go into a ring."""
        raise Bug(f"{type(self).__name__} belongs to no ring kind")

    @property
    def size_dw(self) -> int:
        """Dwords the packet takes, its header included."""
        return len(self.encode())

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) and isinstance(other, Packet) and (
            self._tail == other._tail and self._header == other._header)

    def __hash__(self) -> int:
        return hash((super().__hash__(), self._tail, self._header))

    def __repr__(self) -> str:
        text = super().__repr__()
        extra = [f"header=0x{self._header:x}"] if self._header else []
        if self._tail:
            extra.append(f"tail=({', '.join(f'0x{w:x}' for w in self._tail)})")
        if not extra:
            return text
        return text[:-1] + ("" if text.endswith("()") else ", ") + ", ".join(extra) + ")"

    def __reduce__(self) -> tuple[Callable[..., Self], tuple[Any, ...]]:
        return type(self).from_body, (self.body(), self._header)


#: First digits of an arch -> generation, the column packet formats differ by.
_GENERATIONS = {"gfx9": 9, "gfx11": 11, "gfx12": 12}


def generation(arch: str) -> int:
    """9, 11 or 12 for "gfx942", "gfx1100", "gfx1201". Raises Unmodelled."""
    for prefix, number in _GENERATIONS.items():
        if arch.startswith(prefix):
            return number
    raise Unmodelled(arch, "command packets", "isa/packets/base.py")
