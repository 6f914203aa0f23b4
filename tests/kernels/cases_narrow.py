"""Cases: floats of four to eight bits with scales, bf16, sums of packed pairs."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.kernels.cases import Array, Check, Problem, Setting, Step, case

BF16 = np.dtype(ml_dtypes.bfloat16)
FP8, BF8, FP6, BF6, FP4 = (np.dtype(getattr(ml_dtypes, f"float{name}")) for name in (
    "8_e4m3fn", "8_e5m2", "6_e2m3fn", "6_e3m2fn", "4_e2m1fn"))


def scaled(s: Setting, shape: tuple[int, ...], spread: float) -> tuple[Array, Array, Array]:
    """Values within a few powers of two, a scale for each row, the values divided by it."""
    exponents = s.rng.integers(-20, 21, shape[0])
    small = (np.exp2(s.rng.uniform(-3, spread, shape)) * s.rng.choice([-1, 1], shape)).astype(np.float32)
    scales = np.exp2(exponents).astype(np.float32)
    return small * scales[:, None], scales, small


@case("scaled_pairs", "narrow.hip", "V_CVT_SCALEF32_PK of fp8, bf8 and fp4, both ways", n=300, small=40, archs=("gfx950",))
def scaled_pairs(s: Setting) -> Problem:
    x, scales, small = scaled(s, (s.n, 2), 2.5)
    fp8, bf8, fp4 = (small.astype(kind) for kind in (FP8, BF8, FP4))
    four = fp4.view(np.uint8).astype(np.uint32)
    want = np.stack([np.concatenate([fp8.view(np.uint8), bf8.view(np.uint8)], 1).view(np.uint32)[:, 0],
                     np.uint32(0xAA00AAAA) | four[:, 0] << np.uint32(16) | four[:, 1] << np.uint32(20)])
    wide = np.stack([v.astype(np.float32) * scales[:, None] for v in (fp8, bf8, fp4)])
    packed, out = np.zeros_like(want), np.zeros_like(wide)
    return Problem([Step("scaled_pairs", (x, scales, packed, out), (s.n,), (64,))], [Check("packed", packed, want), Check("wide", out, wide)])


def six_bits(codes: Array) -> Array:
    bits = np.unpackbits(codes.view(np.uint8)[..., None], axis=2, bitorder="little")[..., :6]
    return np.packbits(bits.reshape(len(codes), -1), axis=1, bitorder="little").view(np.uint32)


@case("scaled_blocks", "narrow.hip", "V_CVT_SCALEF32 of 32 floats to six bits and back", n=3, small=1, archs=("gfx950",))
def scaled_blocks(s: Setting) -> Problem:
    x, scales, small = scaled(s, (64 * s.n, 32), 2.7)
    kinds = [small.astype(FP6), small.astype(BF6)]
    outs = [np.zeros((len(x), 6), np.uint32) for _ in kinds]
    wide, want = np.zeros((2, *x.shape), np.float32), np.stack([v.astype(np.float32) * scales[:, None] for v in kinds])
    return Problem([Step("scaled_blocks", (x, scales, *outs, wide), (len(x),), (64,))],
                   [Check("fp6", outs[0], six_bits(kinds[0])), Check("bf6", outs[1], six_bits(kinds[1])), Check("wide", wide, want)])


@case("newer_logic", "narrow.hip", "V_BITOP3, V_PRNG", n=300, small=40, archs=("gfx950",))
def newer_logic(s: Setting) -> Problem:
    a, b, c = s.rng.integers(0, 2**32, (3, s.n), dtype=np.uint32)
    table = lambda t: np.bitwise_or.reduce([  # noqa: E731
        (a if k & 4 else ~a) & (b if k & 2 else ~b) & (c if k & 1 else ~c) for k in range(8) if t >> k & 1])
    step = a << np.uint32(1) ^ np.where(a >> np.uint32(31), np.uint32(197), np.uint32(0))
    out = np.zeros((3, s.n), np.uint32)
    return Problem([Step("newer_logic", (a.copy(), b.copy(), c.copy(), out), (s.n,), (64,))],
                   [Check("results", out, np.stack([table(0xE8), table(0x1D), step]))])


@case("brains", "narrow.hip", "bf16 dots, conversions and arithmetic", n=300, small=40)
def brains(s: Setting) -> Problem:
    a, b = (s.rng.integers(-120, 120, (s.n, 2)).astype(BF16) for _ in range(2))
    c = s.rng.integers(-999, 999, s.n).astype(np.float32)
    x, y = a.astype(np.float32), b.astype(np.float32)
    want = np.stack([x[:, 0] + y[:, 0], x[:, 0] * y[:, 1], c * x[:, 1]]).astype(BF16)
    dots, out = np.zeros(s.n, np.float32), np.zeros((3, s.n), np.uint16)
    return Problem([Step("brains", (a.view(np.uint16), b.view(np.uint16), c, dots, out), (s.n,), (64,))],
                   [Check("dots", dots, (x * y).sum(1) + c), Check("rest", out, want.view(np.uint16))])


@case("packed_sums", "narrow.hip", "pairs of f16 and bf16 added by DS, FLAT and GLOBAL atomics", n=3, small=1, archs=("gfx1201", "gfx942", "gfx950"),
      flags=("-munsafe-fp-atomics",))
def packed_sums(s: Setting) -> Problem:
    n = 128 * s.n
    x = s.rng.integers(-1, 2, (n, 2))
    outs = [np.zeros((8, 2), np.float16), np.zeros((8, 2), np.uint16), np.zeros(4)]
    sums = x.reshape(-1, 4, 2).sum(0)
    twice = np.concatenate([sums, sums])
    return Problem([Step("packed_sums", (x.astype(np.float16), x.astype(BF16).view(np.uint16), *outs), (n,), (128,))],
                   [Check("f16", outs[0], twice.astype(np.float16)), Check("bf16", outs[1], twice.astype(BF16).view(np.uint16)),
                    Check("f64", outs[2], sums[:, 0].astype(np.float64))])
