"""Cases: wide and packed numbers, parts of floats, bits; the same arithmetic under other compiler flags."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from tests.kernels.cases import Array, Check, Problem, Setting, Step, case
from tests.kernels.exact import fma32

M32 = 0xFFFF_FFFF

# ---------------------------------------------------------------- integers


def quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def wide_results(a: int, b: int) -> list[int]:
    whole, by = 1 << 128, b & 127
    x, y = (v - whole * (v >> 127) for v in (a, b))
    found = [a + b, a - b, a * b, a // b, a % b, quotient(x, y), x - quotient(x, y) * y, a << by, a >> by, x >> by, a < b, x < y]
    return [int(v) % whole for v in found]


@case("wide_integers", "numbers.hip", "128-bit products, shifts and long division from 32-bit instructions", n=70, small=6)
def wide_integers(s: Setting) -> Problem:
    drawn = [int.from_bytes(s.rng.bytes(16), "little") >> int(s.rng.integers(0, 127)) for _ in range(2 * s.n)]
    hard = [1 << 127, (1 << 128) - 1, 3, 1 << 64, (1 << 64) - 1]
    a, b = (hard + drawn)[:s.n], [v or 5 for v in (hard[::-1] + drawn[s.n:])[:s.n]]
    packed = [np.frombuffer(b"".join(v.to_bytes(16, "little") for v in row), np.uint64).copy() for row in (a, b)]
    rows = np.array([wide_results(x, y) for x, y in zip(a, b, strict=True)], object).T
    want = np.frombuffer(b"".join(int(v).to_bytes(16, "little") for v in rows.ravel()), np.uint64)
    out = np.zeros_like(want)
    return Problem([Step("wide_integers", (*packed, out), (s.n,), (64,))], [Check("results", out, want)])


def swapped(v: Array) -> Array:
    return v[:, ::-1]


@case("packed_shorts", "numbers.hip", "V_PK_ integers of 16 bits, halves swapped, saturated", n=300, small=40)
def packed_shorts(s: Setting) -> Problem:
    a, b = (s.rng.integers(-2**15, 2**15, (s.n, 2), dtype=np.int16) for _ in range(2))
    (ua, ub), by = (v.view(np.uint16) for v in (a, b)), b & 15
    wide, unsigned = a.astype(np.int64) + b, ua.astype(np.int64) - ub
    want = [ua + ub, ua - swapped(ub), ua * ub, ua * swapped(ub) + ua, np.minimum(a, b), np.maximum(a, swapped(b)),
            np.minimum(ua, ub), np.maximum(ua, ub), np.clip(wide, -2**15, 2**15 - 1), np.maximum(unsigned, 0),
            a << by, a >> by, ua >> by.view(np.uint16)]
    out = np.zeros((len(want), s.n, 2), np.int16)
    return Problem([Step("packed_shorts", (a, b, out), (s.n,), (64,))],
                   [Check("results", out, np.array([np.asarray(w).astype(np.uint16) for w in want]).view(np.int16))])


def sad(a: int, b: int, bits: int, start: int, masked: bool = False) -> int:
    """start plus the sum of |a - b| over fields; masked: only where the field of b is not zero."""
    field = (1 << bits) - 1
    fields = [(a >> k & field, b >> k & field) for k in range(0, 32, bits)]
    return start + sum(abs(x - y) for x, y in fields if y or not masked)


def tricks(a: int, b: int) -> list[int]:
    """What `bit_tricks` leaves of two dwords."""
    c = a * 2654435761 & M32 ^ b
    pool = b | a << 32
    sources = [pool >> 8 * k & 255 for k in range(8)] + [255 * (pool >> k & 1) for k in (15, 31, 47, 63)] + [0, 255, 255, 255]
    perm = sum(sources[c >> 8 * k & 15] << 8 * k for k in range(4))
    offset, width = b & 31, c & 31
    field = a >> offset & (1 << width) - 1
    signed = field - (field >> width - 1 << width) if width and offset + width <= 32 else field
    if width and offset + width > 32:
        signed = (a ^ 1 << 31) - (1 << 31) >> offset
    lerp = sum((((a >> k & 255) + (b >> k & 255) + (c >> k & 1)) >> 1) << k for k in (0, 8, 16, 24))
    byte, at = int(np.clip(np.rint((b & 0x1FF) - 40.5), 0, 255)), 8 * (a & 3)
    ia, ib = ((v & 0xFFFFFF ^ 1 << 23) - (1 << 23) for v in (a, b))
    return [perm, pool >> 8 * (c & 3), pool >> (c & 31), field, signed, sad(a, b, 8, c), sad(a, b, 8, c, True), c + (sad(a, b, 8, 0) << 16),
            sad(a, b, 16, c), lerp, c & ~(255 << at) | byte << at, (a & b) | (~a & c), (a ^ b) + c, a << 3 | b, a + b << (c & 31),
            (a & b) | c, (a & 0xFFFFFF) * (b & 0xFFFFFF), ia * ib, int.from_bytes(a.to_bytes(4, "little"), "big") ^ b]


@case("bit_tricks", "numbers.hip", "V_PERM, V_ALIGN, V_BFE, V_SAD, V_LERP, V_CVT_PK_U8, fused logic", n=300, small=70)
def bit_tricks(s: Setting) -> Problem:
    a, b = (s.rng.integers(0, 2**32, s.n, dtype=np.uint32) for _ in range(2))
    a[:3], b[:2] = [0, M32, 1 << 31], [0, M32]
    want = np.array([[v & M32 for v in tricks(int(x), int(y))] for x, y in zip(a, b, strict=True)], np.uint32).T
    out = np.zeros(want.shape, np.uint32)
    return Problem([Step("bit_tricks", (a, b, out), (s.n,), (64,))], [Check("results", out, want)])


@case("differences", "numbers.hip", "V_QSAD, V_MQSAD in 16 and 32 bits: sliding sums of differences", n=200, small=70)
def differences(s: Setting) -> Problem:
    a, c = (s.rng.integers(0, 2**64, s.n, dtype=np.uint64) for _ in range(2))
    b = s.rng.integers(0, 2**32, s.n, dtype=np.uint32) & s.rng.choice(np.uint32([M32, 0xFF00FF, 0xFFFF]), s.n)
    want, quads = np.zeros((2, s.n), np.uint64), np.zeros((s.n, 4), np.uint32)
    for i, (x, y, z) in enumerate(zip(a.tolist(), b.tolist(), c.tolist(), strict=True)):
        slides = [x >> 8 * k & M32 for k in range(4)]
        for row, masked in enumerate((False, True)):
            want[row, i] = sum((sad(v, y, 8, z >> 16 * k & 0xFFFF, masked) & 0xFFFF) << 16 * k for k, v in enumerate(slides))
        starts = (z & M32, z >> 32, y, 7)
        quads[i] = [sad(v, y, 8, start, True) & M32 for v, start in zip(slides, starts, strict=True)]
    out, got = np.zeros_like(want), np.zeros_like(quads)
    return Problem([Step("differences", (a, b, c, out, got), (s.n,), (64,))], [Check("16 bits", out, want), Check("32 bits", got, quads)])


# ---------------------------------------------------------------- floats


@case("packed_halves", "numbers.hip", "V_PK_ f16 with swapped and negated halves", n=300, small=40)
def packed_halves(s: Setting) -> Problem:
    a, b = (np.exp2(s.rng.uniform(-9, 7, (s.n, 2))).astype(np.float16) * s.rng.choice(np.float16([-1, 1]), (s.n, 2)) for _ in range(2))
    fused = lambda x, y, z: (x.astype(np.float64) * y + z).astype(np.float16)  # noqa: E731
    c, product = swapped(b), (a.astype(np.float32) * b).astype(np.float16)
    want = [a + b, product, a - c, -a * c, fused(a, b, c), np.minimum(a, b), np.maximum(a, c), fused(a, b[:, :1], -swapped(a)),
            np.clip(product, np.float16(0), np.float16(1))]
    out = np.zeros((len(want), s.n, 2), np.float16)
    return Problem([Step("packed_halves", (a, b, out), (s.n,), (64,))], [Check("results", out, np.array(want, np.float16))])


@case("packed_singles", "numbers.hip", "V_PK_ f32 of CDNA with halves picked by OP_SEL", n=300, small=40)
def packed_singles(s: Setting) -> Problem:
    a, b = (s.rng.standard_normal((s.n, 2), np.float32) for _ in range(2))
    want = [a + b, a * b, a - swapped(b), fma32(a, b, swapped(a)), fma32(a, np.repeat(b[:, :1], 2, 1), -b), a * b[:, 1:]]
    out = np.zeros((len(want), s.n, 2), np.float32)
    return Problem([Step("packed_singles", (a, b, out), (s.n,), (64,))], [Check("results", out, np.array(want, np.float32))])


def hard_floats(s: Setting, kind: Any) -> Array:
    info = np.finfo(kind)
    hard = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan, info.tiny, -info.smallest_subnormal, info.max, 1e9 + 0.5, -3.7]
    with np.errstate(over="ignore"):
        x = (s.rng.standard_normal(s.n) * 2.0 ** s.rng.integers(info.minexp, info.maxexp, s.n)).astype(kind)
    x[:len(hard)] = np.array(hard, kind)[:s.n]
    return x


def float_parts(kind: Any) -> Callable[[Setting], Problem]:
    def make(s: Setting) -> Problem:
        x, by = hard_floats(s, kind), s.rng.integers(-2200, 2200, s.n, dtype=np.int32) // s.rng.choice(np.int32([1, 20]), s.n)
        finite = np.isfinite(x)
        with np.errstate(all="ignore"):
            mantissa, exponent = np.frexp(np.where(finite, x, 0).astype(kind))
            nearest = np.where(finite, np.trunc(x + np.copysign(np.where(np.abs(x) < 2**53, 0.5, 0), x).astype(np.longdouble)), x)
            want = [np.where(finite, mantissa, x), np.ldexp(x, by), x - np.floor(x), np.rint(x), nearest, x]
        zero, subnormal = x == 0, (np.abs(x) < np.finfo(kind).tiny) & (x != 0)
        whole = [np.where(finite, exponent, 0), np.isnan(x), np.isinf(x) | zero, finite & ~zero & ~subnormal, np.signbit(x)]
        out, flags = np.zeros((6, s.n), kind), np.zeros((5, s.n), np.int32)
        name = f"float_parts_f{out.itemsize * 8}"
        return Problem([Step(name, (x, by, out, flags), (s.n,), (64,))],
                       [Check("floats", out, np.array(want, kind)), Check("integers", flags, np.array(whole).astype(np.int32))])

    return make


for _kind in (np.float32, np.float64):
    _name = f"float_parts_f{np.dtype(_kind).itemsize * 8}"
    case(_name, "numbers.hip", "V_FREXP, V_LDEXP, V_CMP_CLASS, roundings", n=300, small=64)(float_parts(_kind))


def stochastic(x: Array, random: Array, kind: np.dtype[Any], fraction: int) -> Array:
    """x (f32) plus random bits below the last one kept, cut off; for values that are normal in `kind`."""
    dropped = 23 - fraction
    bits = x.view(np.uint32).astype(np.uint64) + (random >> np.uint32(32 - dropped))
    return (bits.astype(np.uint32) & np.uint32(M32 << dropped & M32)).view(np.float32).astype(kind).view(np.uint8)


@case("small_floats", "numbers.hip", "fp8 and bf8 from and to f32, to nearest and by random bits", n=300, small=40,
      archs=("gfx1201", "gfx942", "gfx950"))
def small_floats(s: Setting) -> Problem:
    fnuz = s.arch == "gfx942"
    fp8 = np.dtype(ml_dtypes.float8_e4m3fnuz if fnuz else ml_dtypes.float8_e4m3fn)
    bf8 = np.dtype(ml_dtypes.float8_e5m2fnuz if fnuz else ml_dtypes.float8_e5m2)
    x = (np.exp2(s.rng.uniform(-6, 7, (s.n, 2))) * s.rng.choice([-1, 1], (s.n, 2))).astype(np.float32)
    x[:4, 0], x[:4, 1] = [0, 2.0**-9, 3 * 2.0**-10, np.nan], [1, -(2.0**-8), 2.0**-7 * 1.0625, 100]
    random = s.rng.integers(0, 2**32, s.n, dtype=np.uint32)
    packed = np.concatenate([x.astype(fp8).view(np.uint8), x.astype(bf8).view(np.uint8)], 1)
    odd = np.zeros((s.n, 4), np.uint8)
    odd[:, 1], odd[:, 2] = stochastic(x[:, 0], random, fp8, 3), stochastic(x[:, 1], random, bf8, 2)
    outs = [np.zeros(s.n, np.uint32), np.zeros(s.n, np.uint32), np.zeros((s.n, 4), np.float32)]
    wide = np.concatenate([packed[:, :2].copy().view(fp8), packed[:, 2:].copy().view(bf8).astype(np.float32)], 1)
    return Problem([Step("small_floats", (x, random, *outs), (s.n,), (64,))],
                   [Check("packed", outs[0], packed.view(np.uint32)[:, 0]), Check("wide", outs[2], wide.astype(np.float32)),
                    Check("stochastic", lambda: outs[1][4:], odd.view(np.uint32)[4:, 0])])


def flushed(x: Array) -> Array:
    return np.where(np.abs(x) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), x), x).astype(np.float32)


def singles(s: Setting) -> tuple[Array, Array, Array]:
    """Operands, some of them subnormal, and an array for the results."""
    a, b = ((s.rng.standard_normal(s.n) * 2.0 ** s.rng.integers(-130, -120, s.n)).astype(np.float32) for _ in range(2))
    b[::2] *= np.float32(2.0**125)
    return a, b, np.zeros((8, s.n), np.float32)


@case("flushed_singles", "numbers.hip", "f32 arithmetic with subnormals flushed by MODE and by instructions", n=300, small=40,
      flags=("-fgpu-flush-denormals-to-zero", "-ffp-contract=off"))
def flushed_singles(s: Setting) -> Problem:
    a, b, out = singles(s)
    x, y = flushed(a), flushed(b)
    with np.errstate(all="ignore"):
        want = [x + y, x * y, flushed(x * y) - y, x / y, np.sqrt(np.abs(x)), 1 / y, np.minimum(x, y), x - np.floor(x)]
    exact, near = [0, 1, 2, 7], [3, 4, 5]  # the minimum is a selection, which flushes nothing
    flat = flushed(np.array(want, np.float32))
    return Problem([Step("singles", (a, b, out), (s.n,), (64,))],
                   [Check("exact", lambda: out[exact], flat[exact]), Check("near", lambda: out[near], flat[near], 1e-6)])


@case("fast_singles", "numbers.hip", "f32 arithmetic as -ffast-math makes it: V_RCP and V_SQRT alone, fused products", n=300, small=40,
      flags=("-ffast-math", "-Wno-nan-infinity-disabled"))
def fast_singles(s: Setting) -> Problem:
    a, b, out = singles(s)
    a = (a * np.float32(2.0**124)).astype(np.float32)
    b[1::2] *= np.float32(2.0**124)
    wide, other = a.astype(np.float64), b.astype(np.float64)
    want = [wide + other, wide * other, wide * other - other, wide / other, np.sqrt(np.abs(wide)), 1 / other, np.minimum(a, b),
            wide - np.floor(wide)]
    return Problem([Step("singles", (a, b, out), (s.n,), (64,))], [Check("near", out, np.array(want, np.float32), 1e-6, 1e-6)])
