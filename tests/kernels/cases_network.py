"""Cases: layers of networks, products of matrices by matrix instructions."""

from __future__ import annotations

from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from tests.kernels.cases import TARGETS, Array, Check, Problem, Setting, Step, case, groups

BF16 = np.dtype(ml_dtypes.bfloat16)
ROUNDING = {np.dtype(np.float32): 2e-6, np.dtype(np.float16): 2e-3, BF16: 1e-2}

# ---------------------------------------------------------------- rows


def close(name: str, got: Array, want: Array, rtol: float = 2e-6, atol: float = 0.0) -> Check:
    """Floats within a tolerance of what numpy says rounded to their type, compared as f64."""
    with np.errstate(over="ignore"):
        return Check(name, lambda: got.astype(np.float64), want.astype(got.dtype).astype(np.float64), rtol, atol)


@case("softmax", "norms.hip", "online softmax: v_exp_f32 with clang's scaling, rows in f32, f16 and bf16", n=5, small=1)
def softmax(s: Setting) -> Problem:
    columns, steps, checks = 40 * s.n + 3, [], []
    for name, kind in (("f32", np.dtype(np.float32)), ("f16", np.dtype(np.float16)), ("bf16", BF16)):
        x = (s.rng.standard_normal((s.n, columns)) * 6).astype(kind)
        out, e = np.zeros_like(x), np.exp(x.astype(np.float64) - x.max(1, keepdims=True).astype(np.float64))
        steps.append(Step(f"softmax_{name}", (x, out, np.uint32(columns)), (s.n * s.lanes,), (s.lanes,)))
        checks.append(close(name, out, e / e.sum(1, keepdims=True), ROUNDING[kind], 1e-7))
    return Problem(steps, checks)


@case("layernorm", "norms.hip", "f32 division and square root as clang expands them, sums over lanes", n=7, small=2)
def layernorm(s: Setting) -> Problem:
    columns = 30 * s.n + 5
    x, gain, bias = (s.rng.standard_normal(shape, np.float32) for shape in ((s.n, columns), columns, columns))
    out, wide = np.zeros_like(x), x.astype(np.float64)
    want = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5) * gain + bias
    return Problem([Step("layernorm", (x, gain, bias, out, np.uint32(columns)), (s.n * s.lanes,), (s.lanes,))],
                   [close("rows", out, want, 1e-5, 1e-5)])


@case("rmsnorm", "norms.hip", "v_rsq_f32, bf16 loads widened, products in f16", n=7, small=2)
def rmsnorm(s: Setting) -> Problem:
    columns = 30 * s.n + 5
    x, gain = s.rng.standard_normal((s.n, columns)).astype(BF16), s.rng.standard_normal(columns).astype(np.float16)
    out, wide = np.zeros(x.shape, np.float16), x.astype(np.float64)
    want = wide / np.sqrt((wide * wide).mean(1, keepdims=True) + 1e-6) * gain
    return Problem([Step("rmsnorm", (x, gain, out, np.uint32(columns)), (s.n * s.lanes,), (s.lanes,))],
                   [close("rows", out, want, 2e-3)])


@case("activations", "norms.hip", "exp, log, sin, cos and their range reduction, denormal arguments of v_log_f32", n=500, small=30)
def activations(s: Setting) -> Problem:
    x = (s.rng.standard_normal(s.n) * 2).astype(np.float32)
    wide, small = x.astype(np.float64), x.astype(np.float16).astype(np.float64)
    tiny = (np.abs(x) * np.float32(1e-40)).astype(np.float64)
    want = {"gelu": 0.5 * wide * (1 + np.tanh(0.7978845608 * (wide + 0.044715 * wide**3))), "half": small / (1 + np.exp(-small)),
            "logs": np.stack([np.log(np.abs(wide)), np.log2(np.abs(wide)), np.log10(tiny)], 1),
            "turns": np.stack([np.sin(wide), np.cos(wide)], 1), "powers": np.stack([2.0**(wide * 20), 10.0**(-wide * 6)], 1)}
    out = {k: np.zeros(v.shape, np.float16 if k == "half" else np.float32) for k, v in want.items()}
    within = {"gelu": (1e-5, 1e-6), "half": (4e-3, 1e-3), "logs": (1e-6, 1e-6), "turns": (0, 2e-6), "powers": (2e-5, 1e-44)}
    return Problem([Step("activations", (x, *out.values(), np.uint32(s.n)), groups(s.n, 64), (64,))],
                   [close(k, out[k], want[k], *within[k]) for k in want])

# ---------------------------------------------------------------- matrices

RDNA, CDNA = ("gfx1100", "gfx1201"), ("gfx942", "gfx950")
I32, F32 = np.dtype(np.int32), np.dtype(np.float32)


def eight_bits(arch: str, fraction: int) -> np.dtype[Any]:
    """Floats of eight bits with 2 or 3 bits of fraction: gfx942 has the kind without infinities and negative zero."""
    names = {(True, 3): "float8_e4m3fnuz", (True, 2): "float8_e5m2fnuz", (False, 3): "float8_e4m3fn", (False, 2): "float8_e5m2"}
    return np.dtype(getattr(ml_dtypes, names[arch == "gfx942", fraction]))


def stored(kind: str, values: Array, arch: str) -> Array:
    """Small integers as rows of bytes: "i4" two to a byte, else by numpy."""
    if kind == "i4":
        nibbles = values.astype(np.uint8) & 15
        return nibbles[:, ::2] | nibbles[:, 1::2] << 4
    kinds = {"bf16": BF16, "fp8": eight_bits(arch, 3), "bf8": eight_bits(arch, 2)}
    return values.astype(kinds.get(kind) or np.dtype(kind)).view(np.uint8)


#: case -> architectures, kinds of a and b, kind of the result, least and greatest value (so small that every sum is exact),
#: side of a tile, what it is there for.
PRODUCTS = {
    "product_f16": (tuple(TARGETS), "f2", "f2", F32, (-8, 8), 16, "f16 products summed in f32"),
    "product_bf16": (tuple(TARGETS), "bf16", "bf16", F32, (-8, 8), 16, "bf16 products summed in f32"),
    "product_i8": (tuple(TARGETS), "i1", "i1", I32, (-128, 127), 16, "signed bytes summed in 32 bits"),
    "product_f16_f16": (RDNA, "f2", "f2", np.dtype(np.float16), (-3, 3), 16, "f16 sums, by halves of registers on RDNA3"),
    "product_bf16_bf16": (RDNA, "bf16", "bf16", BF16, (-1, 1), 16, "bf16 sums, by halves of registers on RDNA3"),
    "product_u8_i8": (RDNA, "u1", "i1", I32, (0, 127), 16, "a signed and an unsigned side by NEG"),
    "product_i4": (RDNA, "i4", "i4", I32, (-8, 7), 16, "signed nibbles"),
    "product_u4_clamp": (RDNA, "i4", "i4", I32, (0, 15), 16, "unsigned nibbles, CLAMP set"),
    "product_wide": (CDNA, "f2", "f2", F32, (-8, 8), 32, "tiles of 32 x 32 in 16 registers"),
    "product_f32": (CDNA, "f4", "f4", F32, (-500, 500), 16, "f32 matrices"),
    "product_f64": (CDNA, "f8", "f8", np.dtype(np.float64), (-2**22, 2**22), 16, "f64 matrices"),
    "product_xf32": (("gfx942",), "f4", "f4", F32, (4, 8), 16, "f32 cut to ten bits of fraction"),
    "product_fp8": (("gfx1201", *CDNA), "fp8", "fp8", F32, (-16, 16), 16, "fp8: of gfx942 without infinities, of the others OCP's"),
    "product_fp8_bf8": (("gfx1201", *CDNA), "fp8", "bf8", F32, (-8, 8), 16, "fp8 times bf8"),
    "product_bf8_wide": (CDNA, "bf8", "bf8", F32, (-8, 8), 32, "bf8, tiles of 32 x 32"),
}  # fmt: skip


def matrix_product(s: Setting, name: str) -> Problem:
    _, kind_a, kind_b, result, (least, most), side, _ = PRODUCTS[name]
    rows, columns, depth = side * s.n, side * 2, 128
    a, b = (s.rng.integers(least, most + 1, (n, depth)).astype(np.float64) for n in (rows, columns))
    cut = np.float64(name == "product_xf32")  # what ten bits of fraction leave of 512 m + 1 is 512 m
    a, b = a * (1 + 511 * cut), b * (1 + 511 * cut)
    stored_a, stored_b = stored(kind_a, a + cut, s.arch), stored(kind_b, b + cut, s.arch)
    out = np.zeros((rows, columns), result)
    step = Step(name, (stored_a, stored_b, out.view(np.int16) if result == BF16 else out, np.uint32(stored_a.shape[1])),
                (s.n * s.lanes, 2), (s.lanes, 1))
    return Problem([step], [Check("product", out, (a @ b.T).astype(result))])


for _name, _row in PRODUCTS.items():
    case(_name, "matrix.hip", _row[-1], n=2, small=1, archs=_row[0])(partial(matrix_product, name=_name))


#: case -> architectures, kinds of a and b, kind of the result, bytes of one element, what it is there for.
SPARSE: dict[str, tuple[tuple[str, ...], str, str, np.dtype[Any], str]] = {
    "sparse_f16": (("gfx1201", *CDNA), "f2", "f2", F32, "two of four f16 kept"),
    "sparse_bf16": (("gfx1201", *CDNA), "bf16", "bf16", F32, "two of four bf16 kept, parts of the index register on gfx942"),
    "sparse_i8": (("gfx1201", *CDNA), "i1", "i1", I32, "two of four bytes kept"),
    "sparse_fp8": (("gfx1201", *CDNA), "fp8", "fp8", F32, "two of four fp8 kept"),
    "sparse_fp8_part": (CDNA, "fp8", "bf8", F32, "fp8 times bf8, places in the upper half of the index register"),
}


def sparse_product(s: Setting, name: str) -> Problem:
    _, kind_a, kind_b, result, _ = SPARSE[name]
    rank = 128 * s.n
    kept, b = (s.rng.integers(-8, 9, (16, depth)).astype(np.float64) for depth in (rank // 2, rank))
    places = np.sort(np.argsort(s.rng.random((16, rank // 4, 4)), 2)[..., :2], 2).reshape(16, rank // 2)
    a = np.zeros((16, rank // 4, 4))
    np.put_along_axis(a, places.reshape(16, -1, 2), kept.reshape(16, -1, 2), 2)
    index = np.bitwise_or.reduce(places.reshape(16, -1, 4) << np.arange(0, 8, 2), 2).astype(np.uint8)
    stored_a, stored_b, out = stored(kind_a, kept, s.arch), stored(kind_b, b, s.arch), np.zeros((16, 16), result)
    return Problem([Step(name, (stored_a, index, stored_b, out, np.uint32(stored_a.shape[1])), (s.lanes,), (s.lanes,))],
                   [Check("product", out, (a.reshape(16, rank) @ b.T).astype(result))])


for _name, _sparse in SPARSE.items():
    case(_name, "sparse.hip", _sparse[-1], n=2, small=1, archs=_sparse[0])(partial(sparse_product, name=_name))

#: Kinds of MFMA_SCALE.
SCALED_KINDS = {"fp8": ml_dtypes.float8_e4m3fn, "bf8": ml_dtypes.float8_e5m2, "fp6": ml_dtypes.float6_e2m3fn,
                "bf6": ml_dtypes.float6_e3m2fn, "fp4": ml_dtypes.float4_e2m1fn}
#: case -> kinds of a and b, side of a tile.
SCALED = {"scaled_fp8": ("fp8", "fp8", 16), "scaled_bf8_fp4": ("bf8", "fp4", 16), "scaled_fp6_bf6": ("fp6", "bf6", 16),
          "scaled_fp4": ("fp4", "fp4", 16), "scaled_fp8_wide": ("fp8", "fp8", 32), "scaled_fp4_wide": ("fp4", "fp6", 32)}


def packed(kind: str, values: Array) -> Array:
    """Rows of bytes with the elements' bits one after another."""
    width = {"8": 8, "6": 6, "4": 4}[kind[-1]]
    codes = values.astype(SCALED_KINDS[kind]).view(np.uint8)
    bits = np.unpackbits(codes[..., None], axis=2, bitorder="little")[..., :width]
    return np.packbits(bits.reshape(len(values), -1), axis=1, bitorder="little")


def scaled_product(s: Setting, name: str) -> Problem:
    kind_a, kind_b, side = SCALED[name]
    rank, choices = 128 * s.n, np.array([0, 1, 1.5, 2, 3, 4, -1, -2, -3, -4])
    a, b = (s.rng.choice(choices, (side, rank)) for _ in range(2))
    if kind_a == "bf8":
        a, b = (s.rng.choice(np.array([-2.0, 0, 1, 2, 4]), (side, rank)) for _ in range(2))
    exponents = [s.rng.integers(-2, 3, (side, rank // 32)) for _ in range(2)]
    wide = [v * np.repeat(2.0**e, 32, 1) for v, e in zip((a, b), exponents, strict=True)]
    scales, out = [(e + 127).astype(np.uint8) for e in exponents], np.zeros((side, side), np.float32)
    return Problem([Step(name, (packed(kind_a, a), packed(kind_b, b), *scales, out, np.uint32(rank)), (64,), (64,))],
                   [Check("product", out, (wide[0] @ wide[1].T).astype(np.float32))])


for _name, _kinds in SCALED.items():
    case(_name, "scaled.hip", f"{_kinds[0]} times {_kinds[1]} with scales, tiles of {_kinds[2]}", n=2, small=1,
         archs=("gfx950",))(partial(scaled_product, name=_name))


@case("attention", "attention.hip", "two chained matrix products with LDS between them, online softmax", n=5, small=1)
def attention(s: Setting) -> Problem:
    n_queries, n_keys, head = 16 * (1 + s.n // 2), 16 * s.n, 32
    q, k, v = ((s.rng.standard_normal((rows, head)) * 2).astype(np.float16) for rows in (n_queries, n_keys, n_keys))
    scores = q.astype(np.float64) @ k.astype(np.float64).T / np.sqrt(head)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    out = np.zeros((n_queries, head), np.float32)
    args = (q, k, np.ascontiguousarray(v.T), out, np.uint32(n_keys), np.float32(head**-0.5))
    return Problem([Step("attention", args, (n_queries // 16 * s.lanes,), (s.lanes,))],
                   [close("rows", out, weights / weights.sum(1, keepdims=True) @ v, 0, 2e-3)])
