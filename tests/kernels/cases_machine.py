"""Cases: address spaces, buffers, atomics, registers by number, odd addresses, grid barriers, arithmetic of every type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.kernels.cases import Array, Check, Problem, Setting, Step, case
from tests.kernels.exact import fma32

# ---------------------------------------------------------------- address spaces and buffers


def spaces(s: Setting) -> Problem:
    n, x = s.n, s.rng.integers(-2**31, 2**31, (s.n, 8), dtype=np.int32)
    i, want = np.arange(n), x.copy()
    pieces = np.where((i % 3 == 1)[:, None], x ^ 0x55, np.where((i % 3 == 2)[:, None], x[:, ::-1], x)).copy()
    halves = pieces.view(np.int16)
    halves[:, :5] = halves[:, :5] * np.int16(5) + np.int16(1)
    want[::3], totals = pieces[::3], np.zeros(n, np.int32)
    for k in range(8):
        totals = totals * np.int32(3) + pieces[:, k]
    out, kind = np.zeros(n, np.int32), np.zeros(n, np.uint32)
    return Problem([Step("mixed_spaces", (x, out, kind, np.uint32(8)), (n,), (128,))],
                   [Check("memory", x, want), Check("totals", out, totals), Check("kinds", kind, np.uint32(i % 3))])


@case("mixed_spaces", "spaces.hip", "FLAT lanes in memory, LDS and scratch at once; calls and returns", n=512, small=128)
def mixed_spaces(s: Setting) -> Problem:
    return spaces(s)


@case("mixed_spaces_plain", "spaces.hip", "the same unoptimised", n=256, small=0, level="-O0")
def mixed_spaces_plain(s: Setting) -> Problem:
    return spaces(s)


@case("mixed_atomics", "spaces.hip", "FLAT atomics of 4 and 8 bytes whose lanes are in memory or in LDS", n=1024, small=128)
def mixed_atomics(s: Setting) -> Problem:
    x = s.rng.integers(0, 256, s.n, dtype=np.uint8)
    v = x.astype(np.uint64)
    counts, sums, wanted, greatest = (np.zeros(32, t) for t in (np.uint32, np.uint64, np.uint32, np.uint64))
    np.add.at(wanted, (v & 15) + (v & 16), x.astype(np.uint32))
    np.maximum.at(greatest, (v & 15) + ((v & 32) >> 1), v << 33 | v)
    return Problem([Step("mixed_atomics", (x, counts, sums), (s.n,), (128,))],
                   [Check("counts", counts, wanted), Check("greatest", sums, greatest)])


@case("buffer_copy", "buffers.hip", "raw buffer loads and stores of 1 to 16 bytes, with and without SOFFSET, past the end", n=256, small=64)
def buffer_copy(s: Setting) -> Problem:
    x = s.rng.integers(0, 256, (s.n, 32), dtype=np.uint8)
    out = np.full_like(x, 7)
    want, inside = out.copy(), s.n * 3 // 4
    want[:inside, :31] = x[:inside, :31]
    return Problem([Step("buffer_copy", (x, out, np.int32(inside * 32), np.int32(16)), (s.n,), (64,))],
                   [Check("bytes", out, want)])


@case("buffer_edges", "buffers.hip", "loads past a buffer's end are 0, atomics there do nothing", n=256, small=64)
def buffer_edges(s: Setting) -> Problem:
    x = s.rng.integers(0, 2**32, (s.n, 3), dtype=np.uint32)
    seen, inside = x.copy(), s.n * 2 // 3
    seen[inside:] = 0
    out, sums, wanted = np.zeros(s.n, np.uint32), np.zeros(32, np.int32), np.zeros(32, np.int32)
    np.add.at(wanted, np.arange(s.n) & 31, seen[:, 0].view(np.int32))
    wanted[16:] = 0
    return Problem([Step("buffer_edges", (x, out, sums, np.int32(inside * 12)), (s.n,), (64,))],
                   [Check("loads", out, seen @ np.uint32([1, 3, 5])), Check("sums", sums, wanted)])


# ---------------------------------------------------------------- atomics


def float_sums(s: Setting) -> Problem:
    x = s.rng.integers(-1000, 1000, s.n).astype(np.float32)
    rows = x.reshape(-1, 4).astype(np.float64)
    sums, total = np.zeros(8, np.float32), rows.sum(axis=0)
    wide, least, greatest = np.zeros(8), np.zeros(4, np.float32), np.zeros(4)
    return Problem([Step("float_atomics", (x, sums, wide, least, greatest), (s.n,), (128,))],
                   [Check("sums", sums, np.tile(total, 2).astype(np.float32)),
                    Check("wide", wide, np.concatenate([total / 2, total])),
                    Check("least", least, rows.min(axis=0).astype(np.float32)), Check("greatest", greatest, rows.max(axis=0))])


@case("float_atomics", "atomics.hip", "f32 and f64 atomics of memory and LDS by instructions", n=1024, small=128,
      flags=("-munsafe-fp-atomics",))
def float_atomics(s: Setting) -> Problem:
    return float_sums(s)


@case("float_atomics_safe", "atomics.hip", "the same as loops around compare-and-swap", n=512, small=128)
def float_atomics_safe(s: Setting) -> Problem:
    return float_sums(s)


@case("packed_atomics", "atomics.hip", "two f16 additions in one atomic", n=512, small=128)
def packed_atomics(s: Setting) -> Problem:
    x, sums = s.rng.integers(-9, 10, (s.n, 2)).astype(np.float16), np.zeros((8, 2), np.float16)
    want = x.reshape(-1, 8, 2).astype(np.float64).sum(axis=0).astype(np.float16)
    return Problem([Step("packed_atomics", (x, sums), (s.n,), (64,))], [Check("sums", sums, want)])


@case("tickets", "atomics.hip", "64-bit atomics that return, wrapping counters, every scope and order", n=1000, small=150)
def tickets(s: Setting) -> Problem:
    i, n = np.arange(s.n, dtype=np.uint64), s.n
    counter, taken, wrapped = np.zeros(1, np.uint64), np.zeros(n, np.uint64), np.zeros(4, np.uint32)
    bits = np.uint64([0, 0, 2**64 - 1, 0, 0])
    want = [np.bitwise_xor.reduce(np.uint64(1) << (i & np.uint64(63))), np.bitwise_or.reduce(i << np.uint64(32)),
            np.bitwise_and.reduce(~(i << np.uint64(20))), 2**64 - 20, 2**64 - (int(i.sum()) << 31)]
    return Problem([Step("tickets", (counter, taken, wrapped, bits, np.uint32(n)), (n,), (192,))],
                   [Check("tickets", lambda: np.sort(taken), i * np.uint64(3)), Check("counter", counter, np.uint64([3 * n])),
                    Check("wrapped", wrapped, np.uint32([n % 10, -n % 7, n, 0])), Check("bits", bits, np.uint64(want))],
                   unordered=[taken])


# ---------------------------------------------------------------- registers


@case("indexed", "registers.hip", "vector registers by a uniform number, and by one per lane", n=256, small=64)
def indexed(s: Setting) -> Problem:
    x, places = s.rng.integers(0, 2**32, (s.n, 16), dtype=np.uint32), s.rng.integers(0, 16, 24, dtype=np.uint32)
    a, sums, lane = x.copy(), np.zeros(s.n, np.uint32), np.arange(s.n)
    first = x.ravel()[:s.n]
    for k in range(12):
        own = first >> np.uint32(k) & np.uint32(15)
        sums = sums * np.uint32(31) + a[:, places[k]]
        a[:, places[k + 12]] += sums
        a[lane, own] ^= a[lane, (own + k) & 15]
    out = np.zeros_like(x)
    return Problem([Step("indexed", (x, places, out), (s.n,), (64,))], [Check("registers", out, a)])


@case("few_vgprs", "registers.hip", "vector registers spilled to scratch or to accumulation registers", n=128, small=64)
def few_vgprs(s: Setting) -> Problem:
    x = s.rng.integers(0, 2**32, (s.n, 48), dtype=np.uint32)
    a, out = x.copy(), np.zeros_like(x)
    for k in [*range(48)] * 3:
        a[:, k] = (a[:, k] << np.uint32(7) | a[:, k] >> np.uint32(25)) + a[:, (k + 5) % 48]
    return Problem([Step("few_vgprs", (x, out, np.uint32(3)), (s.n,), (64,))], [Check("values", out, a)])


@case("few_sgprs", "registers.hip", "scalar registers spilled to lanes of a vector register", n=256, small=64)
def few_sgprs(s: Setting) -> Problem:
    a = s.rng.integers(0, 2**32, (s.n // 64, 64), dtype=np.uint32)
    x, sums, out = a.copy(), np.zeros(len(a), np.uint32), np.zeros(s.n, np.uint32)
    for r in range(3):
        for k in range(64):
            a[:, k] = (a[:, k] ^ a[:, (k + 9) % 64] >> np.uint32(3)) + np.uint32(r)
    for k in range(64):
        sums = sums * np.uint32(33) + a[:, k]
    want = (sums[:, None] + np.arange(64, dtype=np.uint32)).ravel()
    return Problem([Step("few_sgprs", (x, out, np.uint32(3)), (s.n,), (64,))], [Check("sums", out, want)])


# ---------------------------------------------------------------- odd addresses


def records(s: Setting, kernel: str, *more: Any) -> Problem:
    x, out = s.rng.integers(0, 256, 1 + s.n * 47, dtype=np.uint8), s.rng.integers(0, 256, 3 + s.n * 45, dtype=np.uint8)
    want, source = out.copy(), x[1:].reshape(-1, 47)
    target = want[3:].reshape(-1, 45)
    for to, start, size in ((0, 31, 16), (17, 1, 8), (25, 9, 4), (29, 13, 2), (31, 15, 12), (43, 27, 1)):
        target[:, to:to + size] = source[:, start:start + size]
    return Problem([Step(kernel, (x, out, *more), (s.n,), (64,))], [Check("records", out, want)])


@case("odd_memory", "bytes.hip", "accesses of 2 to 16 bytes at any address of memory", n=256, small=64)
def odd_memory(s: Setting) -> Problem:
    return records(s, "odd_memory")


@case("odd_lds", "bytes.hip", "accesses of 2 to 16 bytes at any address of LDS", n=128, small=64)
def odd_lds(s: Setting) -> Problem:
    return records(s, "odd_lds")


@case("odd_scratch", "bytes.hip", "accesses of 1 to 16 bytes at any address of scratch", n=128, small=64)
def odd_scratch(s: Setting) -> Problem:
    return records(s, "odd_scratch", np.uint32(5))


# ---------------------------------------------------------------- whole grids, clocks


@case("relax", "grid_barrier.hip", "workgroups that all wait for each other, fences over the device", n=768, small=256)
def relax(s: Setting) -> Problem:
    a = s.rng.integers(0, 2**60, s.n, dtype=np.uint64)
    b, want, rounds = np.zeros_like(a), a.copy(), 10 if s.n > 300 else 2
    for _ in range(rounds):
        want = (np.roll(want, -1) + np.uint64(3) * np.roll(want, 1)) >> np.uint64(2)
    step = Step("relax", (a, b, np.zeros(1, np.uint32), np.uint32(rounds), np.uint32(s.n // 128)), (s.n,), (128,))
    return Problem([step], [Check("ring", a, want)])


@case("clocks", "grid_barrier.hip", "cycle and real-time counters never run backwards", n=128, small=64)
def clocks(s: Setting) -> Problem:
    times, ordered = np.zeros(s.n, np.uint64), np.zeros(s.n, np.uint32)
    return Problem([Step("clocks", (times, ordered), (s.n,), (64,))],
                   [Check("order", ordered, np.full(s.n, 7, np.uint32)),
                    Check("short", lambda: times < 10**6, np.ones(s.n, bool))], unordered=[times])


# ---------------------------------------------------------------- arithmetic


def integer_results(a: int, b: int, bits: int) -> list[int]:
    """What math.hip's integers gives, as unsigned numbers."""
    whole, top = 1 << bits, 1 << bits - 1
    ua, ub, by = a % whole, b % whole, b % bits
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    clamp = lambda v, low, high: min(max(v, low), high)  # noqa: E731
    text = f"{ua:0{bits}b}"
    found = [a + b, a - b, a * b, quotient, a - quotient * b, ua // ub, ua % ub, clamp(a + b, -top, top - 1),
             clamp(a - b, -top, top - 1), clamp(ua + ub, 0, whole - 1), clamp(ua - ub, 0, whole - 1), ua << by, a >> by, ua >> by,
             ua.bit_count(), int(text[::-1], 2), bits - ua.bit_length(), bits if not ua else (ua & -ua).bit_length() - 1]
    return [v % whole for v in found]


def integers(bits: int) -> Callable[[Setting], Problem]:
    kind, unsigned = np.dtype(f"i{bits // 8}"), np.dtype(f"u{bits // 8}")

    def make(s: Setting) -> Problem:
        hard = [0, 1, -1, 2, 7, 1 << bits - 1, (1 << bits - 1) - 1, 3 << bits - 3]
        drawn = [int(v) >> int(by) for v, by in zip(s.rng.integers(-2**63, 2**63, 2 * s.n), s.rng.integers(0, 60, 2 * s.n), strict=True)]
        a, b = (np.array([v % (1 << bits) for v in row], unsigned).view(kind)
                for row in ((hard * 8 + drawn)[:s.n], (sorted(hard * 8) + drawn[s.n:])[:s.n]))
        b[(b == 0) | ((b == -1) & (a == np.iinfo(kind).min))] = 3
        want = np.array([integer_results(int(x), int(y), bits) for x, y in zip(a, b, strict=True)], unsigned).T.copy().view(kind)
        out = np.zeros_like(want)
        return Problem([Step(f"integers_i{bits}", (a, b, out), (s.n,), (64,))], [Check("results", out, want)])

    return make


for _bits, _what in ((8, "bytes in words"), (16, "16-bit instructions"), (32, "divisions by reciprocals, saturation"),
                     (64, "pairs of words with carries, long division")):
    case(f"integers_i{_bits}", "math.hip", _what, n=2048, small=64)(integers(_bits))

HARD = (0.0, -0.0, 1.0, -1.5, 2.5, 3.5, 1e-7, -6e-8, 5e-324, 1.2e-38, 1e-40, -2.3e-308, 65504.0, 65520.0, 3.4e38, -1.7e308,
        8388609.5, 4503599627370497.5, np.inf, -np.inf, np.nan, 0.1, 1 / 3, 1e5)


def float_values(s: Setting, kind: Any, nan: bool = True) -> tuple[Array, Array]:
    info = np.finfo(kind)
    scale = 2.0 ** s.rng.integers(int(info.minexp) // 2 - 6, int(info.maxexp) // 2 + 5, (2, s.n))
    a, b = s.rng.standard_normal((2, s.n)) * scale
    hard = np.array(HARD if nan else [v for v in HARD if v == v])
    a[:len(hard)], b[:len(hard) * 2] = hard, np.repeat(np.roll(hard, 3), 2)
    a[len(hard):2 * len(hard)] = hard
    return a.astype(kind), b.astype(kind)


def near_limits(s: Setting, kind: Any) -> tuple[Array, Array]:
    """Pairs of any exponents, denormal ones too, whose quotients are about 1, the least normal or the greatest number."""
    info, k = np.finfo(kind), s.n // 2
    unsigned, fields = np.dtype(f"u{info.bits // 8}"), 2**info.iexp - 1
    below = s.rng.integers(0, fields, k)
    apart = s.rng.choice([info.minexp - 25, info.minexp, -9, info.maxexp - 30, info.maxexp - 9], k) + s.rng.integers(-9, 10, k)
    exponents = np.array([np.clip(below + apart, 0, fields - 1), below], np.uint64) << np.uint64(info.nmant)
    digits = s.rng.integers(0, 2**info.nmant, (2, k)) & -(1 << s.rng.integers(0, info.nmant, (2, k)))
    a, b = (exponents | digits.astype(np.uint64)).astype(unsigned).view(kind)
    return a, b


def floats(kind: Any) -> Callable[[Setting], Problem]:
    def make(s: Setting) -> Problem:
        a, b = float_values(s, kind)
        if s.n > 1000:
            a[::2], b[::2] = near_limits(s, kind)
        want = np.array([a + b, a - b, a * b, a / b, np.sqrt(a), np.rint(a), np.floor(a), np.ceil(a), np.trunc(a),
                         np.fmin(a, b), np.fmax(a, b), np.copysign(a, b), np.abs(b)], kind)
        out = np.zeros_like(want)
        return Problem([Step(f"floats_f{want.itemsize * 8}", (a, b, out), (s.n,), (64,))], [Check("results", out, want)])

    return make


for _kind, _what in ((np.float16, "f16 arithmetic, subnormals kept"), (np.float32, "f32 division and root rounded correctly"),
                     (np.float64, "f64 division and root rounded correctly")):
    case(f"floats_f{np.dtype(_kind).itemsize * 8}", "math.hip", _what, n=8192, small=64)(floats(_kind))


@case("fused_f32", "math.hip", "f32 fused multiply-add rounded once, subnormals kept", n=2048, small=64)
def fused_f32(s: Setting) -> Problem:
    (a, b), (c, _) = float_values(s, np.float32), float_values(s, np.float32)
    c[::3] = -(a * b)[::3]
    out = np.zeros_like(a)
    return Problem([Step("fused_f32", (a, b, c, out), (s.n,), (128,))], [Check("results", out, fma32(a, b, c))])


def to_bf16(x: Array) -> Array:
    bits = x.view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)


@case("conversions", "math.hip", "between f16, bf16, f32, f64 and integers of 16 to 64 bits, rounded once", n=8192, small=64)
def conversions(s: Setting) -> Problem:
    n, (d, _), (f, _) = s.n, float_values(s, np.float64), float_values(s, np.float32, nan=False)
    d[::4] = f[::4].astype(np.float64) * (1 + 2.0**-30)
    d[1::4] = s.rng.integers(-2**63, 2**63, len(d[1::4])).astype(np.float64) / 2.0 ** s.rng.integers(0, 63, len(d[1::4]))
    whole = s.rng.integers(-2**63, 2**63, n) >> s.rng.integers(0, 63, n)
    unsigned, whole32, whole16 = whole.view(np.uint64), whole.astype(np.int32), whole.astype(np.int16)
    fits, fits32 = np.abs(np.trunc(d)) < 9.2e18, np.abs(f) < 2**31
    d0, f0 = np.where(fits, d, 0).astype(np.int64), np.where(fits32, f, 0).astype(np.int64)
    wants = {"to_f32": np.float32([d.astype(np.float32), whole.astype(np.float32), unsigned.astype(np.float32), whole32.astype(np.float32)]),
             "to_f16": np.array([d.astype(np.float16), f.astype(np.float16), whole16.astype(np.float16)]),
             "to_f64": np.array([whole.astype(np.float64), unsigned.astype(np.float64), f.astype(np.float64)]),
             "to_int": np.array([d0, np.maximum(d0, 0), f0, f0.astype(np.int16)]), "to_bf16": to_bf16(f)}
    outs = {name: np.zeros_like(w) for name, w in wants.items()}
    return Problem([Step("conversions", (d, f, whole, *outs.values()), (n,), (64,))],
                   [Check(name, outs[name], w) for name, w in wants.items()])


# ---------------------------------------------------------------- of single architectures


@case("load_to_lds", "newer.hip", "loads that go to LDS at M0, without registers", n=1024, small=256, archs=("gfx942", "gfx950"))
def load_to_lds(s: Setting) -> Problem:
    x, out = s.rng.integers(0, 2**32, s.n, dtype=np.uint32), np.zeros(s.n, np.uint32)
    return Problem([Step("load_to_lds", (x, out), (s.n,), (256,))],
                   [Check("dwords", out, x.reshape(-1, 256)[:, ::-1].ravel())])


@case("load_to_lds_128", "newer.hip", "loads of 16 bytes a lane that go to LDS", n=512, small=128, archs=("gfx950",))
def load_to_lds_128(s: Setting) -> Problem:
    x = s.rng.integers(0, 2**32, (s.n // 128, 128, 4), dtype=np.uint32)
    out = np.zeros_like(x)
    return Problem([Step("load_to_lds_128", (x, out), (s.n,), (128,))], [Check("pieces", out, x[:, np.arange(128) ^ 97])])


@case("swap_rows", "newer.hip", "rows of 16 and of 32 lanes exchanged between two registers", n=256, small=64, archs=("gfx950",))
def swap_rows(s: Setting) -> Problem:
    a, b = s.rng.integers(0, 2**32, (2, s.n), dtype=np.uint32)
    out, (p, q) = np.zeros((s.n, 2), np.uint32), (v.reshape(-1, 4, 16).swapaxes(0, 1) for v in (a, b))
    x, y = (p[0], q[0], p[2], q[2]), (p[1], q[1], p[3], q[3])
    want = np.stack([np.stack(v, axis=1).ravel() for v in ((x[0], x[1], y[0], y[1]), (x[2], x[3], y[2], y[3]))], axis=1)
    return Problem([Step("swap_rows", (a, b, out), (s.n,), (64,))], [Check("rows", out, want)])


@case("split_barrier", "newer.hip", "barriers that are signalled first and waited for later; prefetches", n=512, small=256,
      archs=("gfx1201",))
def split_barrier(s: Setting) -> Problem:
    x = s.rng.integers(0, 2**32, s.n, dtype=np.uint32)
    v, out = x.reshape(-1, 256), np.zeros_like(x)
    for _ in range(4):
        v = (v * np.uint32(1664525) + np.uint32(1013904223)) ^ np.roll(v, -33, axis=1)
    return Problem([Step("split_barrier", (x, out, np.uint32(4)), (s.n,), (256,))], [Check("values", out, v.ravel())])
