"""Cases: values that move between lanes."""

from __future__ import annotations

import numpy as np

from tests.kernels.cases import Array, Check, Problem, Setting, Step, case

GFX9 = ("gfx942", "gfx950")


def gathered(v: Array, source: Array, old: int) -> Array:
    """v[w, source[lane]] of each wave, `old` where there is no source (-1)."""
    return np.where(source >= 0, v[:, np.maximum(source, 0)], np.int32(old))


def sources(s: Setting) -> list[tuple[Array, int]]:
    """(lane each lane reads, -1 none; what it then keeps) of the patterns that are the same in every wave."""
    lane = np.arange(s.lanes)
    row, half, at = lane & ~15, lane & ~31, lane & 15
    writes = (5 >> lane // 16 & 1) & (10 >> at // 4 & 1) == 1
    whole: list[tuple[Array, int]] = [
        (lane ^ 1, 0), (lane ^ 16, 0), (half | lane & 24 | 7, 0), (lane ^ 3, 0), (half | lane + 5 & 31, 0),
        (half | lane * 7 & 31, 0), (half | lane * 13 & 31, 0), (lane ^ 1, 0), (np.where(at >= 3, lane - 3, -1), -1),
        (np.where(at < 14, lane + 2, -1), 0), (np.where(writes, row | at - 5 & 15, -1), 7), (row | 15 - at, 7), (lane ^ 7, 7),
        (lane * 0 + 13, 0)]  # fmt: skip
    if s.arch in GFX9:
        up = np.where(lane // 16 % 2 == 1, row - 1, -1)
        return [*whole, (lane - 1, 9), (lane + 1 & 63, 9), (up, 9), (np.where(lane >= 32, 31, -1), 9)]
    select = np.array([0, 1, 2, 3, 4, 5, 6, 7, 9, 8, 11, 10, 13, 12, 15, 14])
    cross = np.array([7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8])
    eight = np.array([0o5670123 >> 3 * k & 7 for k in range(8)])
    return [*whole, (row | select[at], 5), ((row ^ 16) | cross[at], 5), (lane & ~7 | eight[lane & 7], 0),
            (lane ^ 32 if s.lanes == 64 else lane, 0), (row | 3, 9), (lane ^ 10, 9)]


@case("swizzles", "lanes.hip", "DS swizzles and permutes, DPP of every pattern, permlane16, x16 and 64, DPP8, readlane", n=10, small=1)
def swizzles(s: Setting) -> Problem:
    v = s.rng.integers(-10**6, 10**6, (s.n * 128 // s.lanes, s.lanes), dtype=np.int32)
    want = [gathered(v, source, old) for source, old in sources(s)]
    first = v[:, :1]
    chosen = np.take_along_axis(v, first & 31, 1)
    want[14:14] = [first + np.arange(v.size).reshape(v.shape) % 128, np.broadcast_to(chosen, v.shape)]
    out = np.zeros((len(want), *v.shape), np.int32)
    return Problem([Step("swizzles", (v, out, np.uint32(v.size)), (v.size,), (128,))], [Check("patterns", out, np.int32(want))])


def partly_wanted(v: Array, lanes: int) -> Array:
    """What kernel `partly` leaves of one wave."""
    lane, on = np.arange(lanes), v & 1 == 1
    left, across = np.where(lane & 15, lane - 1, 0), lane ^ 1
    sent, target = np.zeros(lanes, np.int64), (lane & ~31) | lane * 5 & 31
    sent[target[on]] = v[on]
    below = np.cumsum(on & (v & 4 != 0)) - (on & (v & 4 != 0))
    rows = [np.where((lane & 15 > 0) & on[left], v[left], -1), np.where(on[across], v[across], 0),
            np.full(lanes, v[on][0] if on.any() else 0), np.full(lanes, (on & (v & 2 != 0)).sum()), below, sent]
    return np.where(on, np.array(rows), -2).astype(np.int32)


@case("partly", "lanes.hip", "DPP, permutes and ballots with lanes switched off", n=10, small=1)
def partly(s: Setting) -> Problem:
    v = s.rng.integers(-10**6, 10**6, (s.n * 128 // s.lanes, s.lanes), dtype=np.int32)
    out = np.zeros((6, *v.shape), np.int32)
    want = np.stack([partly_wanted(wave, s.lanes) for wave in v], 1)
    return Problem([Step("partly", (v, out, np.uint32(v.size)), (v.size,), (128,))], [Check("patterns", out, want)])


@case("one_by_one", "lanes.hip", "waterfall loops, readlane by a scalar, EXEC that shrinks", n=20, small=3)
def one_by_one(s: Setting) -> Problem:
    v = s.rng.integers(0, 9, (s.n, s.lanes), dtype=np.int32)
    kinds = np.zeros(v.shape, np.uint32)
    want = np.zeros_like(kinds)
    for w, wave in enumerate(v):
        order = list(dict.fromkeys(wave.tolist()))
        want[w] = [(wave == x).sum() << 8 | order.index(x) + 1 for x in wave.tolist()]
    out = np.zeros_like(v)
    return Problem([Step("one_by_one", (v, out, kinds), (v.size,), (s.lanes,))],
                   [Check("sums", out, np.broadcast_to(v.sum(1, dtype=np.int32)[:, None], v.shape)), Check("rounds", kinds, want)])


@case("votes", "lanes.hip", "ballots as scalars, V_WRITELANE by inline assembly", n=20, small=3)
def votes(s: Setting) -> Problem:
    v = s.rng.integers(-101 if s.n % 2 else 0, 300, (s.n, s.lanes), dtype=np.int32)
    bits, lane = np.uint64(1) << np.arange(s.lanes, dtype=np.uint64), np.arange(s.lanes)
    want = np.stack([np.where(v & 1, bits, np.uint64(0)).sum(1), (v > -100).all(1) * np.uint64(2) + (v == 5).any(1)], 1)
    built = np.where(lane % 3 == 0, v[:, lane ^ 1], 0)
    built[:, 2], built[:, 31] = 42, np.arange(s.n)
    out, got = np.zeros((s.n, 2), np.uint64), np.zeros_like(v)
    return Problem([Step("votes", (v, out, got), (v.size,), (s.lanes,))],
                   [Check("masks", out, want.astype(np.uint64)), Check("built", got, built.astype(np.int32))])
