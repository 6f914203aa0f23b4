"""Operand values that find faults: zeros, denormals, infinities, NaNs with payloads, ends of ranges, near ties.

Units:   32-bit words; a wider value is a list of them, low word first.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from stuntgpu.isa.inst import Operand

M32 = 0xFFFF_FFFF

_F32 = (
    0, 1, 0x7F_FFFF, 0x80_0000, 0x3F80_0000, 0x3F80_0001, 0x3F7F_FFFF, 0x3F00_0000, 0x7F80_0000, 0x7F80_0001, 0x7FBF_FFFF,
    0x7FC0_0000, 0x7FC1_2345, 0x7FFF_FFFF, 0x7F7F_FFFF, 0x4B00_0001, 0x4B7F_FFFF, 0x4EFF_FFFF, 0x4F00_0000, 0x4F80_0000,
    0x5F00_0000, 0x3F00_0001, 0x3FC0_0000, 0x4020_0000, 0x3880_0000, 0x3300_0000, 0x477F_E000, 0x477F_F000, 0x437F_0000,
    0x43E0_0000, 0x4370_0000, 0x7F00_0000, 0x0100_0000, 0x3E22_F983,
)  # fmt: skip
_F16 = (
    0, 1, 0x3FF, 0x400, 0x3C00, 0x3C01, 0x3BFF, 0x3800, 0x7C00, 0x7C01, 0x7DFF, 0x7E00, 0x7E55, 0x7FFF, 0x7BFF, 0x6400, 0x6401,
    0x7800, 0x77FF, 0x3E00, 0x4100, 0x0401, 0x3118, 0x5BF8, 0x5BFC,
)  # fmt: skip
_BF16 = (0, 1, 0x7F, 0x80, 0x3F80, 0x3F81, 0x3F7F, 0x7F80, 0x7F81, 0x7FC0, 0x7FFF, 0x7F7F, 0x4B00, 0x3F00, 0x3FC0)
_F64_HIGH = (
    0, 1, 0x000F_FFFF, 0x0010_0000, 0x3FF0_0000, 0x3FEF_FFFF, 0x3FE0_0000, 0x7FF0_0000, 0x7FF0_0001, 0x7FF8_0000, 0x7FFF_FFFF,
    0x7FEF_FFFF, 0x41DF_FFFF, 0x41E0_0000, 0x41F0_0000, 0x43E0_0000, 0x4330_0000, 0x433F_FFFF, 0x3810_0000, 0x380F_FFFF,
    0x36A0_0000, 0x47EF_FFFF, 0x47F0_0000, 0x0350_0000, 0x7C90_0000, 0x3FF8_0000, 0x4004_0000,
)  # fmt: skip
_LOW = (0, 0, 1, M32, 0x8000_0000, 0x7FFF_FFFF, 0xE000_0000, 0x1000_0000, 0xFFC0_0000)
_INT = (0, 1, 2, 31, 32, 33, 63, 64, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x1_0000, 0x7F_FFFF, 0x80_0000, 0xFF_FFFF, 0x7FFF_FFFF,
        0x8000_0000, 0x8000_0001, 0xFFFF_FFFE, M32, 0x5555_5555, 0x0001_0001, 0xFFFF_8000, 0x7FFF_8000)  # fmt: skip
_BYTES = (0, 1, 7, 8, 0x38, 0x3F, 0x40, 0x77, 0x78, 0x7B, 0x7C, 0x7D, 0x7E, 0x7F)


def _sign(rng: random.Random, bit: int) -> int:
    return rng.getrandbits(1) << bit


def f32(rng: random.Random) -> int:
    kind = rng.random()
    if kind < 0.5:
        return rng.choice(_F32) | _sign(rng, 31)
    if kind < 0.7:  # magnitudes that meet in sums
        return rng.randrange(110, 145) << 23 | rng.getrandbits(23) | _sign(rng, 31)
    if kind < 0.85:  # few bits, for exact sums and ties
        return rng.randrange(1, 255) << 23 | 1 << rng.randrange(23) | _sign(rng, 31)
    return rng.getrandbits(32)


def f16(rng: random.Random) -> int:
    kind = rng.random()
    if kind < 0.5:
        return rng.choice(_F16) | _sign(rng, 15)
    return rng.randrange(10, 20) << 10 | rng.getrandbits(10) | _sign(rng, 15) if kind < 0.75 else rng.getrandbits(16)


def bf16(rng: random.Random) -> int:
    return rng.choice(_BF16) | _sign(rng, 15) if rng.random() < 0.5 else f32(rng) >> 16


def f64(rng: random.Random) -> list[int]:
    kind = rng.random()
    if kind < 0.5:
        return [rng.choice(_LOW), rng.choice(_F64_HIGH) | _sign(rng, 31)]
    if kind < 0.75:
        return [rng.choice((0, rng.getrandbits(32))), rng.randrange(1000, 1050) << 20 | rng.getrandbits(20) | _sign(rng, 31)]
    return [rng.getrandbits(32), rng.getrandbits(32)]


def integer(rng: random.Random) -> int:
    kind = rng.random()
    return rng.choice(_INT) if kind < 0.5 else rng.randrange(64) if kind < 0.6 else rng.getrandbits(32)


def byte4(rng: random.Random) -> int:
    """Four bytes, each of them near an edge of an 8-bit float or integer."""
    return sum((rng.choice(_BYTES) | _sign(rng, 7) if rng.random() < 0.7 else rng.getrandbits(8)) << 8 * i for i in range(4))


def word(rng: random.Random) -> int:
    """Of any kind."""
    return rng.choice(_KINDS)(rng)


def _f16x2(rng: random.Random) -> int:
    return f16(rng) | f16(rng) << 16


def _bf16x2(rng: random.Random) -> int:
    return bf16(rng) | bf16(rng) << 16


_KINDS: Sequence[Callable[[random.Random], int]] = (f32, f32, _f16x2, integer, integer, _bf16x2, byte4)

#: Beginning of an operand's format -> words for it; the longest that fits counts.
_BY_FORMAT: Mapping[str, Callable[[random.Random], int]] = {
    "f32": f32, "f16": _f16x2, "bf16": _bf16x2, "u": integer, "i": integer, "b32": integer, "b16": integer, "fp8": byte4,
    "bf8": byte4, "wmma": word, "fp6": byte4, "bf6": byte4,
}  # fmt: skip


def of_operand(rng: random.Random, o: Operand, words: int) -> list[int]:
    """Words for an operand by its format, now and then by another."""
    if rng.random() < 0.15:
        return [word(rng) for _ in range(words)]
    if o.fmt.startswith("f64"):
        return [w for _ in range((words + 1) // 2) for w in f64(rng)][:words]
    for name in sorted(_BY_FORMAT, key=len, reverse=True):
        if o.fmt.startswith(name):
            return [_BY_FORMAT[name](rng) for _ in range(words)]
    return [word(rng) for _ in range(words)]


def near(rng: random.Random, words: Sequence[int]) -> list[int]:
    """The same value, its negative, or a neighbour: what cancels, ties and compares equal."""
    low, *rest = words
    kind = rng.randrange(4)
    if kind == 0:
        return list(words)
    if kind == 1:
        return [*words[:-1], words[-1] ^ 0x8000_0000]
    return [low + rng.choice((-1, 1)) & M32, *rest]
