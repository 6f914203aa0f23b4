"""Atomic operations that command packets name: what ATOMIC_MEM (PM4) and ATOMIC (SDMA) do.

A 7-bit code: bits 4:0 the operation, bit 5 set for 64 bits, bit 6 set when nothing is returned.
Source: TC_OP_ATOMIC_* of the kernel's gfx enum headers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

#: (memory, source, compare, bits) -> new memory value; all unsigned.
Body = Callable[[int, int, int, int], int]


def _signed(value: int, width: int) -> int:
    top = 1 << (width - 1)
    return (value ^ top) - top


class AtomicKind(Enum):
    """Bits 4:0."""

    SWAP = 0x07
    CMPSWAP = 0x08
    ADD = 0x0F
    SUB = 0x10
    SMIN = 0x11
    UMIN = 0x12
    SMAX = 0x13
    UMAX = 0x14
    AND = 0x15
    OR = 0x16
    XOR = 0x17
    INC = 0x18
    DEC = 0x19


_BODIES: dict[AtomicKind, Body] = {
    AtomicKind.SWAP: lambda m, s, c, n: s,
    AtomicKind.CMPSWAP: lambda m, s, c, n: s if m == c else m,
    AtomicKind.ADD: lambda m, s, c, n: m + s,
    AtomicKind.SUB: lambda m, s, c, n: m - s,
    AtomicKind.SMIN: lambda m, s, c, n: min(m, s, key=lambda v: _signed(v, n)),
    AtomicKind.UMIN: lambda m, s, c, n: min(m, s),
    AtomicKind.SMAX: lambda m, s, c, n: max(m, s, key=lambda v: _signed(v, n)),
    AtomicKind.UMAX: lambda m, s, c, n: max(m, s),
    AtomicKind.AND: lambda m, s, c, n: m & s,
    AtomicKind.OR: lambda m, s, c, n: m | s,
    AtomicKind.XOR: lambda m, s, c, n: m ^ s,
    AtomicKind.INC: lambda m, s, c, n: 0 if m >= s else m + 1,
    AtomicKind.DEC: lambda m, s, c, n: s if m == 0 or m > s else m - 1,
}


@dataclass(frozen=True, slots=True)
class AtomicOp:
    """A decoded code; `returns` says that the old value is given back."""

    kind: AtomicKind
    bits: int = 32
    returns: bool = False

    @classmethod
    def decode(cls, code: int) -> AtomicOp:
        """Raises ValueError for a code that is no integer atomic."""
        return cls(AtomicKind(code & 0x1F), 64 if code & 0x20 else 32, not code & 0x40)

    @property
    def code(self) -> int:
        return self.kind.value | (0x20 if self.bits == 64 else 0) | (0 if self.returns else 0x40)

    def apply(self, memory: int, source: int, compare: int) -> int:
        """What memory holds afterwards."""
        mask = (1 << self.bits) - 1
        return _BODIES[self.kind](memory & mask, source & mask, compare & mask, self.bits) & mask
