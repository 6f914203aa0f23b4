"""Cases: reductions, scans, sorts, histograms, irregular rows."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from tests.kernels.cases import Array, Check, Problem, Setting, Step, case, groups

# ---------------------------------------------------------------- reductions


def tree(x: Array, op: Any, none: Any) -> Array:
    """What reduce.hip leaves for each workgroup, in its order of operations."""
    padded = np.full(-(-len(x) // 512) * 512, none, x.dtype)
    padded[:len(x)] = x
    s = padded.reshape(-1, 512)
    while s.shape[1] > 1:
        half = s.shape[1] // 2
        s = op(s[:, :half], s[:, half:])
    return s[:, 0].copy()


def reduction(kernel: str, x: Array, op: Any, none: Any) -> Problem:
    want = tree(x, op, none)
    out = np.zeros_like(want)
    return Problem([Step(kernel, (x, out, np.uint32(len(x))), (256 * len(want),), (256,))], [Check(kernel, out, want)])


@case("reduce_sum_i32", "reduce.hip", "LDS tree with barriers", n=20_000, small=600, quick=True)
def reduce_sum_i32(s: Setting) -> Problem:
    return reduction("sum_i32", s.rng.integers(-2**31, 2**31, s.n, dtype=np.int32), np.add, 0)


@case("reduce_sum_f32", "reduce.hip", "f32 additions rounded one by one, subnormals kept", n=9000, small=500)
def reduce_sum_f32(s: Setting) -> Problem:
    scale = np.float32(10.0) ** s.rng.integers(-42, 38, s.n).astype(np.float32)
    return reduction("sum_f32", (s.rng.standard_normal(s.n, np.float32) * scale).astype(np.float32), np.add, 0)


@case("reduce_sum_f64", "reduce.hip", "f64 additions, 64-bit LDS", n=9000, small=500, level="-O1")
def reduce_sum_f64(s: Setting) -> Problem:
    return reduction("sum_f64", s.rng.standard_normal(s.n) * 10.0 ** s.rng.integers(-20, 20, s.n), np.add, 0)


@case("reduce_min_f32", "reduce.hip", "compare and select of f32 with infinities", n=9000, small=500)
def reduce_min_f32(s: Setting) -> Problem:
    x = s.rng.standard_normal(s.n, np.float32)
    x[:: s.n // 5] = np.inf
    return reduction("min_f32", x, np.minimum, np.inf)


@case("reduce_max_f16", "reduce.hip", "f16 compares, 16-bit LDS", n=9000, small=500)
def reduce_max_f16(s: Setting) -> Problem:
    return reduction("max_f16", (s.rng.standard_normal(s.n) * 1000).astype(np.float16), np.maximum, -65504)


@case("reduce_min_i64", "reduce.hip", "64-bit signed compares, no optimisation: everything through scratch", n=3000,
      small=100, level="-O0", lanes=(32,))
def reduce_min_i64(s: Setting) -> Problem:
    return reduction("min_i64", s.rng.integers(-2**63, 2**63, s.n, dtype=np.int64), np.minimum, 2**63 - 1)


@case("argmax_i32", "reduce.hip", "64-bit atomic maximum of value and place, grid-stride loop", n=10_000, small=300)
def argmax_i32(s: Setting) -> Problem:
    x, out = s.rng.integers(-50, 50, s.n, dtype=np.int32), np.zeros(1, np.uint64)
    return Problem([Step("argmax_i32", (x, out, np.uint32(s.n)), (s.n // 3,), (96,))],
                   [Check("place", lambda: ~out.astype(np.uint32), np.uint32([np.argmax(x)])),
                    Check("value", lambda: (out >> 32).astype(np.uint32) ^ 2**31, np.uint32([x.max().view(np.uint32)]))])


# ---------------------------------------------------------------- lanes of a wave


@case("wave_prefix_sum", "wave_scan.hip", "DPP row shifts and broadcasts, permlanex16, readlane", n=2048, small=256)
def wave_prefix_sum(s: Setting) -> Problem:
    x = s.rng.integers(-2**31, 2**31, s.n, dtype=np.int32)
    want = np.cumsum(x.reshape(-1, s.lanes), axis=1, dtype=np.int32).ravel()
    out = np.zeros_like(x)
    return Problem([Step("wave_prefix_sum", (x, out), (s.n,), (128,))], [Check("sums", out, want)])


@case("wave_min", "wave_scan.hip", "DPP quad permutes and mirrors, ds_swizzle, minimum of f32", n=2048, small=256)
def wave_min(s: Setting) -> Problem:
    x = s.rng.standard_normal(s.n, np.float32)
    out, want = np.zeros_like(x), np.repeat(x.reshape(-1, s.lanes).min(axis=1), s.lanes)
    return Problem([Step("wave_min", (x, out), (s.n,), (128,))], [Check("least", out, want)])


@case("wave_argmax", "wave_scan.hip", "structs through ds_bpermute, f64 compares", n=2048, small=256, level="-O3")
def wave_argmax(s: Setting) -> Problem:
    x = s.rng.integers(0, 20, s.n).astype(np.float64)
    rows = x.reshape(-1, s.lanes)
    out = np.zeros(len(rows), np.uint32)
    return Problem([Step("wave_argmax", (x, out), (s.n,), (128,))],
                   [Check("lanes", out, rows.argmax(axis=1).astype(np.uint32))])


# ---------------------------------------------------------------- scans


def three_launches(s: Setting, exclusive: int) -> Problem:
    x = s.rng.integers(0, 2**32, s.n, dtype=np.uint32)
    blocks = -(-s.n // 192)
    out, totals, before = np.zeros_like(x), np.zeros(blocks, np.uint32), np.zeros(blocks, np.uint32)
    want = np.cumsum(x, dtype=np.uint32) - (x if exclusive else np.uint32(0))
    grid, one, n = groups(s.n, s.lanes), np.zeros(1, np.uint32), np.uint32(s.n)
    return Problem([Step("scan_blocks", (x, out, totals, n, np.uint32(exclusive)), grid, (192,)),
                    Step("scan_blocks", (totals, before, one, np.uint32(blocks), np.uint32(1)), (256,), (256,)),
                    Step("add_before", (out, before, n), grid, (192,))], [Check("sums", out, want)])


@case("scan_inclusive", "scan.hip", "ds_bpermute scans, smaller last workgroup, launches that depend on each other",
      n=20_000, small=500)
def scan_inclusive(s: Setting) -> Problem:
    return three_launches(s, 0)


@case("scan_exclusive", "scan.hip", "the same by unoptimised code", n=3000, small=60, level="-O0", lanes=(64,))
def scan_exclusive(s: Setting) -> Problem:
    return three_launches(s, 1)


@case("scan_lookback", "scan.hip", "workgroups that wait for each other: acquire, release, s_sleep", n=12_000, small=500)
def scan_lookback(s: Setting) -> Problem:
    x = s.rng.integers(0, 2**32, s.n, dtype=np.uint32)
    out, state, ticket = np.zeros_like(x), np.zeros(-(-s.n // 256), np.uint64), np.zeros(1, np.uint32)
    return Problem([Step("scan_lookback", (x, out, state, ticket, np.uint32(s.n)), groups(s.n, 256), (256,))],
                   [Check("sums", out, np.cumsum(x, dtype=np.uint32))], unordered=[state])


@case("prefix_max", "scan.hip", "64-bit values through ds_bpermute and LDS, a value carried round a loop", n=5000,
      small=200)
def prefix_max(s: Setting) -> Problem:
    x = s.rng.integers(-2**62, 2**62, s.n) // np.arange(s.n, 0, -1)
    out = np.zeros_like(x)
    return Problem([Step("prefix_max", (x, out, np.uint32(s.n)), (256,), (256,))],
                   [Check("maxima", out, np.maximum.accumulate(x))])


# ---------------------------------------------------------------- sorts


@case("radix_sort", "radix.hip", "ballots that match lanes, LDS counters, stable scatter", n=3000, small=100)
def radix_sort(s: Setting) -> Problem:
    bits = 32 if s.n > 1000 else 8
    keys = s.rng.integers(0, 2**bits, s.n, dtype=np.uint32)
    order = np.argsort(keys, kind="stable")
    buffers = [(keys.copy(), np.arange(s.n, dtype=np.uint32)), (np.zeros(s.n, np.uint32), np.zeros(s.n, np.uint32))]
    group, steps = 128, []
    counts = np.zeros(16 * -(-s.n // group), np.uint32)
    grid, n = groups(s.n, group), np.uint32(s.n)
    for k, shift in enumerate(np.arange(0, bits, 4, dtype=np.uint32)):
        a, b = buffers[k % 2], buffers[1 - k % 2]
        steps += [Step("radix_count", (a[0], counts, n, shift), grid, (group,)),
                  Step("radix_scan", (counts, np.uint32(counts.size)), (s.lanes,), (s.lanes,)),
                  Step("radix_scatter", (*a, *b, counts, n, shift), grid, (group,))]
    return Problem(steps, [Check("keys", buffers[0][0], keys[order]),
                           Check("places", buffers[0][1], order.astype(np.uint32))])


def sort_rows(kernel: str, rows: Array, lanes_used: int) -> Problem:
    got = rows.copy()
    step = Step(kernel, (got, np.uint32(rows.shape[1])), (len(rows) * lanes_used,), (lanes_used,), rows[0].nbytes)
    return Problem([step], [Check("rows", got, np.sort(rows, axis=1))])


@case("bitonic_f32", "sort_lds.hip", "dynamic LDS, pairs exchanged under divergent branches", n=512, small=32)
def bitonic_f32(s: Setting) -> Problem:
    rows = s.rng.standard_normal((3, s.n), np.float32)
    rows[:, 1::7] *= np.float32(np.inf)
    return sort_rows("bitonic_f32", rows, s.n // 2)


@case("odd_even_i64", "sort_lds.hip", "integer division, 64-bit LDS pairs, any size of row", n=300, small=20, level="-O3")
def odd_even_i64(s: Setting) -> Problem:
    return sort_rows("odd_even_i64", s.rng.integers(-2**63, 2**63, (2, s.n), dtype=np.int64), 96)


@case("counting_u8", "sort_lds.hip", "LDS atomics, a single lane's loop, binary search, byte stores", n=3001, small=0)
def counting_u8(s: Setting) -> Problem:
    return sort_rows("counting_u8", s.rng.integers(0, 256, (2, s.n), dtype=np.uint8), 160)


# ---------------------------------------------------------------- counts and irregular rows


@case("histogram", "histogram.hip", "LDS atomics, 32- and 64-bit atomics in memory without return", n=10_000, small=500)
def histogram(s: Setting) -> Problem:
    x, i = s.rng.integers(0, 256, s.n, dtype=np.uint8), np.arange(s.n)
    v = x.astype(np.int64)
    h = np.bincount(x, minlength=256).astype(np.uint64)
    bins, least, bits = np.zeros(256, np.uint64), np.int32([0, -(2**31)]), np.uint32([2**32 - 1, 0, 0, 0])
    want = [np.bitwise_and.reduce(v | 0x50), np.bitwise_or.reduce(v << 8), np.bitwise_xor.reduce(v * 0x01010101 + i), -v.sum()]
    return Problem([Step("histogram", (x, bins, least, bits, np.uint32(s.n)), (500,), (250,))],
                   [Check("bins", bins, h << np.uint64(20) | h),
                    Check("extremes", least, np.int32([(v - 200 * (i & 1)).min(), v.max() - 300])),
                    Check("bits", bits, np.array(want).astype(np.uint32))])


@case("segment_sum", "rows.hip", "a wave per segment of any length, 64-bit shuffles, early exit", n=300, small=12)
def segment_sum(s: Setting) -> Problem:
    lengths = s.rng.integers(0, 200, s.n)
    lengths[::5] = 0
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint32)
    x, out = s.rng.integers(-1000, 1000, int(starts[-1])).astype(np.float64), np.full(s.n, np.nan)
    want = np.array([x[a:b].sum() for a, b in pairwise(starts)])
    return Problem([Step("segment_sum", (starts, x, out, np.uint32(s.n)), groups(s.n * s.lanes, 256), (256,))],
                   [Check("sums", out, want)])


@case("compact", "rows.hip", "ballot, lanes below, readfirstlane of an atomic that returns, signed 16-bit loads", n=7000,
      small=900)
def compact(s: Setting) -> Problem:
    x, size = s.rng.integers(-2**15, 2**15, s.n, dtype=np.int16), np.zeros(1, np.uint32)
    out, want = np.zeros_like(x), x[x > 100]
    return Problem([Step("compact", (x, out, size, np.uint32(s.n), np.int32(100)), (s.n,), (256,))],
                   [Check("size", size, np.uint32([len(want)])),
                    Check("values", lambda: np.sort(out[:len(want)]), np.sort(want))], unordered=[out])


@case("run_lengths", "rows.hip", "ballots across waves, byte neighbours, atomics of one address by many lanes", n=5000,
      small=300)
def run_lengths(s: Setting) -> Problem:
    x = np.repeat(s.rng.integers(0, 4, s.n, dtype=np.uint8), s.rng.integers(1, 9, s.n))[:s.n].copy()
    heads = np.flatnonzero(np.concatenate([[True], x[1:] != x[:-1]]))
    symbols, lengths, runs = np.zeros(s.n, np.uint8), np.zeros(s.n, np.uint32), np.zeros(1, np.uint32)
    want = np.diff(np.append(heads, s.n)).astype(np.uint32)
    return Problem([Step("run_lengths", (x, symbols, lengths, runs, np.uint32(s.n)), (320,), (320,))],
                   [Check("runs", runs, np.uint32([len(heads)])),
                    Check("symbols", lambda: symbols[:len(heads)], x[heads]),
                    Check("lengths", lambda: lengths[:len(heads)], want)])
