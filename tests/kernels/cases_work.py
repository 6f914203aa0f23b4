"""Cases: quantised matrices, workgroups that share work and wait for each other."""

from __future__ import annotations

import numpy as np

from tests.kernels.cases import Array, Check, Problem, Setting, Step, case, groups

# ---------------------------------------------------------------- quantised


def nibbles_of(words: Array) -> Array:
    """Unsigned nibbles of bytes, lower first."""
    return np.stack([words & 15, words >> 4], -1).reshape(*words.shape[:-1], -1)


@case("dots", "quantised.hip", "V_DOT4 and V_DOT8, signed, unsigned and clamped", n=5, small=2)
def dots(s: Setting) -> Problem:
    rows, columns, depth = s.n, 32 * s.n // 2, 40 * s.n
    a, b = (s.rng.integers(0, 256, (n, 4 * depth), dtype=np.uint8) for n in (rows, columns))
    signed = [v.view(np.int8).astype(np.int64) for v in (a, b)]
    small = [nibbles_of(v).astype(np.int64) for v in (a, b)]
    high = np.full((rows, columns), 0x7FFF0000, np.int64)
    for k in range(0, 4 * depth, 4):
        high = np.clip(high + signed[0][:, k:k + 4] @ signed[1][:, k:k + 4].T, -2**31, 2**31 - 1)
    wants = [signed[0] @ signed[1].T, ((small[0] ^ 8) - 8) @ ((small[1] ^ 8) - 8).T,
             a.astype(np.int64) @ b.astype(np.int64).T + small[0] @ small[1].T, high]
    outs = [np.zeros((rows, columns), kind) for kind in (np.int32, np.int32, np.uint32, np.int32)]
    return Problem([Step("dots", (a, b, *outs, np.uint32(depth)), (columns, rows), (columns, 1))],
                   [Check(f"sums {i}", o, w.astype(o.dtype)) for i, (o, w) in enumerate(zip(outs, wants, strict=True))])


@case("pairs", "quantised.hip", "V_DOT2 of f16 and of 16-bit integers", n=500, small=70)
def pairs(s: Setting) -> Problem:
    a, b = (s.rng.integers(-40, 41, (s.n, 2)).astype(np.float16) / np.float16(8) for _ in range(2))
    c, d = (s.rng.integers(-2**15, 2**15, (s.n, 2), dtype=np.int16) for _ in range(2))
    sums, whole = np.zeros(s.n, np.float32), np.zeros(s.n, np.int32)
    products = (c.astype(np.int64) * d).sum(1) - 5 + 3 + 2 * 65535 + np.arange(s.n)
    return Problem([Step("pairs", (a, b, c, d, sums, whole, np.uint32(s.n)), groups(s.n, 128), (128,))],
                   [Check("halves", sums, (a.astype(np.float32) * b).sum(1) + 1), Check("integers", whole, products.astype(np.int32))])


@case("int4_product", "quantised.hip", "weights of four bits made f16 by bit tricks, packed f16 fused multiply-adds", n=5, small=1)
def int4_product(s: Setting) -> Problem:
    rows, columns, depth = s.n, 50 * s.n, 64 * s.n
    x = (s.rng.integers(-8, 9, (rows, depth)) / 16).astype(np.float16)
    words = s.rng.integers(0, 256, (columns, depth // 2), dtype=np.uint8)
    scales = np.exp2(s.rng.integers(-6, -1, (columns, depth // 32))).astype(np.float16)
    zeros = s.rng.integers(0, 16, scales.shape, dtype=np.uint8)
    weights = nibbles_of(words).reshape(columns, -1, 32) - zeros[..., None].astype(np.float64)
    out = np.zeros((rows, columns), np.float16)
    args = (x, words, scales, zeros, out, np.uint32(depth), np.uint32(columns))
    want = x.astype(np.float64) @ (weights * scales[..., None]).reshape(columns, depth).T
    return Problem([Step("int4_product", args, (*groups(columns, 64), rows), (64, 1))], [Check("product", out, want.astype(np.float16))])


# ---------------------------------------------------------------- work for several workgroups


def whole_matrices(s: Setting, rows: int, depth: int, columns: int) -> tuple[Array, Array, Array]:
    """Matrices of small integers, and their product: exact in any order."""
    a, b = (s.rng.integers(-9, 10, shape).astype(np.float32) for shape in ((rows, depth), (depth, columns)))
    return a, b, a @ b


@case("stream_k", "shared_work.hip", "workgroups that wait for flags and partial sums of later ones", n=3, small=1)
def stream_k(s: Setting) -> Problem:
    a, b, want = whole_matrices(s, 16 * s.n, 16 * (s.n + 2), 32)
    out, n_groups = np.zeros_like(want), 4 * s.n - 1
    parts, flags = np.zeros((n_groups, 256), np.float32), np.zeros(n_groups + 1, np.uint32)
    args = (a, b, out, parts, flags, *np.uint32([2 * s.n, 32, a.shape[1], n_groups]))
    return Problem([Step("stream_k", args, (n_groups * 256,), (256,))], [Check("product", out, want)])


@case("split_k", "shared_work.hip", "float additions in memory by many workgroups", n=4, small=1, flags=("-munsafe-fp-atomics",))
def split_k(s: Setting) -> Problem:
    a, b, want = whole_matrices(s, 16 * s.n, 64, 32)
    out = np.zeros_like(want)
    return Problem([Step("split_k", (a, b, out, *np.uint32([32, 64, 2])), (2 * s.n * 256, 2), (256, 1))], [Check("product", out, want)])


@case("persistent", "shared_work.hip", "workgroups that take tiles from an atomic ticket until none is left", n=3, small=1)
def persistent(s: Setting) -> Problem:
    a, b, want = whole_matrices(s, 16 * s.n, 32, 48)
    out, ticket, taken = np.zeros_like(want), np.zeros(1, np.uint32), np.zeros(3 * s.n, np.uint32)
    args = (a, b, out, ticket, taken, *np.uint32([3 * s.n, 48, 32]))
    return Problem([Step("persistent", args, (2 * 256,), (256,))],
                   [Check("product", out, want), Check("taken once", taken, np.ones_like(taken)),
                    Check("tickets", ticket, np.uint32([3 * s.n + 2]))])


@case("ring", "shared_work.hip", "producers and consumers in different workgroups, each waiting for the other", n=9, small=5)
def ring(s: Setting) -> Problem:
    x = s.rng.integers(0, 2**30, (3, s.n, 64), dtype=np.uint32)
    out, slots = np.zeros_like(x), np.zeros((3, 4, 64), np.uint32)
    want = (x * 3 + np.arange(s.n, dtype=np.uint32)[:, None])[..., ::-1]
    args = (x, out, slots, np.zeros(3, np.uint32), np.zeros(3, np.uint32), np.uint32(s.n))
    return Problem([Step("ring", args, (6 * 64,), (64,))], [Check("passed on", out, want)])
