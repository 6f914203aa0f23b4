"""Cases: stencils, convolutions, transforms, products of matrices, solvers, escape times."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.kernels.cases import Array, Check, Problem, Setting, Step, case, groups
from tests.kernels.exact import fma16, fma32

# ---------------------------------------------------------------- stencils


@case("stencil5_f32", "stencil.hip", "2-D workgroups, halo in LDS, smaller workgroups on two edges", n=75, small=20)
def stencil5_f32(s: Setting) -> Problem:
    h, w = s.n, s.n + 10
    x = s.rng.standard_normal((h, w), np.float32)
    p, out = np.pad(x, 1, mode="edge"), np.zeros_like(x)
    around = (p[:-2, 1:-1] + p[2:, 1:-1]) + (p[1:-1, :-2] + p[1:-1, 2:])
    return Problem([Step("stencil5_f32", (x, out, np.int32(w), np.int32(h)), (w, h), (16, 16))],
                   [Check("cells", out, x * np.float32(0.5) + around * np.float32(0.125))])


@case("stencil7_f64", "stencil.hip", "3-D workgroups and grid, 64-bit addresses, launches in turn", n=22, small=6, level="-O3")
def stencil7_f64(s: Setting) -> Problem:
    shape = nz, ny, nx = s.n, s.n + 3, s.n + 11
    a, c = s.rng.standard_normal(shape), np.float64(0.1)
    b, want = np.zeros_like(a), a.copy()
    for _ in range(2):
        inner, v = want[1:-1, 1:-1, 1:-1], want
        total = (((v[1:-1, 1:-1, :-2] + v[1:-1, 1:-1, 2:]) + (v[1:-1, :-2, 1:-1] + v[1:-1, 2:, 1:-1]))
                 + (v[:-2, 1:-1, 1:-1] + v[2:, 1:-1, 1:-1]))
        want = want.copy()
        want[1:-1, 1:-1, 1:-1] = inner + c * (total - 6.0 * inner)
    sizes, grid, group = (np.uint32(nx), np.uint32(ny), np.uint32(nz), c), (nx, ny, nz), (8, 4, 2)
    return Problem([Step("stencil7_f64", (a, b, *sizes), grid, group), Step("stencil7_f64", (b, a, *sizes), grid, group)],
                   [Check("cells", a, want)])


# ---------------------------------------------------------------- convolutions


@case("conv1d_i16", "conv.hip", "scalar loads of taps, 16-bit loads and stores, median as saturation", n=3000, small=150)
def conv1d_i16(s: Setting) -> Problem:
    x = s.rng.integers(-2**15, 2**15, s.n, dtype=np.int16)
    taps, out = s.rng.integers(-300, 300, 31, dtype=np.int32), np.zeros_like(x)
    sums = np.convolve(np.pad(x.astype(np.int32), 15), taps[::-1], "valid") >> 8
    return Problem([Step("conv1d_i16", (x, taps, out, np.int32(s.n)), groups(s.n, 64), (64,))],
                   [Check("samples", out, np.clip(sums, -2**15, 2**15 - 1).astype(np.int16))])


@case("conv2d_u8", "conv.hip", "3-D grid, byte loads of both signs, unrolled 24-bit multiply-adds", n=60, small=14)
def conv2d_u8(s: Setting) -> Problem:
    h, w = s.n, s.n + 15
    image = s.rng.integers(0, 256, (h, w, 3), dtype=np.uint8)
    taps = s.rng.integers(-128, 128, (5, 5), dtype=np.int8)
    windows = np.lib.stride_tricks.sliding_window_view(image, (5, 5), (0, 1))[::2, ::2].astype(np.int32)
    want = (windows * taps).sum(axis=(-2, -1), dtype=np.int32)
    out = np.zeros_like(want)
    ho, wo, _ = want.shape
    return Problem([Step("conv2d_u8", (image, taps, out, np.uint32(w), np.uint32(wo), np.uint32(ho)), (*groups(wo, 16), *groups(ho, 8), 3), (16, 8))],
                   [Check("sums", out, want)])


# ---------------------------------------------------------------- transforms


def butterflies(x: Array, twiddle: Array) -> Array:
    """What transform.hip computes for rows of complex numbers as (..., n, 2), operation by operation."""
    n = x.shape[1]
    bits = n.bit_length() - 1
    v = x[:, [int(f"{i:0{bits}b}"[::-1], 2) for i in range(n)]]
    half = 1
    while half < n:
        t = np.arange(n // 2)
        k = t & (half - 1)
        a, w = 2 * (t - k) + k, twiddle[k * (n // 2 // half)]
        b = a + half
        re, im = v[..., 0], v[..., 1]
        tr, ti = w[:, 0] * re[:, b] - w[:, 1] * im[:, b], w[:, 0] * im[:, b] + w[:, 1] * re[:, b]
        out = v.copy()
        out[:, b, 0], out[:, b, 1] = re[:, a] - tr, im[:, a] - ti
        out[:, a, 0], out[:, a, 1] = re[:, a] + tr, im[:, a] + ti
        v, half = out, 2 * half
    return v


def fft(s: Setting, kernel: str, kind: type[np.floating[Any]], tolerance: float) -> Problem:
    x, k = s.rng.standard_normal((s.n, 256, 2)).astype(kind), np.arange(128) * (-2 * np.pi / 256)
    twiddle, out = np.stack([np.cos(k), np.sin(k)], axis=1).astype(kind), np.zeros_like(x)
    exact = np.fft.fft(x[..., 0].astype(np.float64) + 1j * x[..., 1])
    return Problem([Step(kernel, (x, out, twiddle), (s.n * 128,), (128,))],
                   [Check("butterflies", out, butterflies(x, twiddle)),
                    Check("spectrum", lambda: out[..., 0] + 1j * out[..., 1].astype(np.float64), exact, atol=tolerance)])


@case("fft_f32", "transform.hip", "bit reversal, strided LDS, f32 without fused operations", n=6, small=1)
def fft_f32(s: Setting) -> Problem:
    return fft(s, "fft_f32", np.float32, 1e-4)


@case("fft_f64", "transform.hip", "the same in f64: pairs of registers, 64-bit LDS", n=6, small=1, level="-O3")
def fft_f64(s: Setting) -> Problem:
    return fft(s, "fft_f64", np.float64, 1e-11)


@case("dct8x8", "transform.hip", "private arrays in scratch, byte conversions, rounding to even", n=96, small=16, level="-O1")
def dct8x8(s: Setting) -> Problem:
    h, w = s.n, s.n + 8
    image = s.rng.integers(0, 256, (h, w), dtype=np.uint8)
    j, x = np.mgrid[:8, :8]
    basis = (np.cos((2 * x + 1) * j * np.pi / 16) * np.where(j, 0.5, 8**-0.5)).astype(np.float32)
    table = s.rng.integers(1, 60, (8, 8)).astype(np.float32)
    v = image.reshape(h // 8, 8, w // 8, 8).swapaxes(1, 2).reshape(-1, 8, 8).astype(np.float32) - np.float32(128)
    rows, sums = np.zeros((2, *v.shape), np.float32)
    for i in range(8):
        rows += basis[:, i] * v[:, :, i, None]
    for i in range(8):
        sums += basis[:, i, None] * rows[:, i, None, :]
    out = np.zeros(v.shape, np.int16)
    return Problem([Step("dct8x8", (image, basis, table, out, np.uint32(w), np.uint32(len(v))), groups(len(v), 64), (64,))],
                   [Check("coefficients", out, np.rint(sums / table).astype(np.int16))])


# ---------------------------------------------------------------- matrices


def transpose(s: Setting, kernel: str, x: Array, side: int) -> Problem:
    h, w = x.shape[:2]
    out = np.zeros((w, h, *x.shape[2:]), x.dtype)
    return Problem([Step(kernel, (x, out, np.uint32(w), np.uint32(h)), (*groups(w, side), *groups(-(-h // side) * 4, 4)), (side, 4))],
                   [Check("elements", out, x.swapaxes(0, 1).copy())])


@case("transpose_u8", "transpose.hip", "byte accesses of LDS and memory", n=70, small=20)
def transpose_u8(s: Setting) -> Problem:
    return transpose(s, "transpose_u8", s.rng.integers(0, 256, (s.n, s.n + 9), dtype=np.uint8), 32)


@case("transpose_u32", "transpose.hip", "padded LDS rows, dword accesses", n=70, small=20)
def transpose_u32(s: Setting) -> Problem:
    return transpose(s, "transpose_u32", s.rng.integers(0, 2**32, (s.n, s.n + 9), dtype=np.uint32), 32)


@case("transpose_u64", "transpose.hip", "accesses of two dwords", n=50, small=14, level="-O3")
def transpose_u64(s: Setting) -> Problem:
    return transpose(s, "transpose_u64", s.rng.integers(0, 2**64, (s.n, s.n + 9), dtype=np.uint64), 16)


@case("transpose_128", "transpose.hip", "accesses of four dwords", n=50, small=14)
def transpose_128(s: Setting) -> Problem:
    return transpose(s, "transpose_128", s.rng.integers(0, 2**32, (s.n, s.n + 9, 4), dtype=np.uint32), 16)


@case("matmul_f64", "matmul.hip", "f64 tiles in LDS, sizes that are no multiples of the tile", n=40, small=17)
def matmul_f64(s: Setting) -> Problem:
    m, n, k = s.n, s.n + 5, s.n + 3
    a, b = s.rng.standard_normal((m, k)), s.rng.standard_normal((k, n))
    want = np.zeros((m, n))
    for j in range(k):
        want += a[:, j, None] * b[j]
    c = np.zeros_like(want)
    return Problem([Step("matmul_f64", (a, b, c, np.uint32(m), np.uint32(n), np.uint32(k)), (*groups(n, 16), *groups(m, 16)), (16, 16))],
                   [Check("product", c, want)])


@case("matmul_i8", "matmul.hip", "dot products of four signed bytes", n=48, small=8)
def matmul_i8(s: Setting) -> Problem:
    a, b = s.rng.integers(-128, 128, (s.n, 64), dtype=np.int8), s.rng.integers(-128, 128, (2 * s.n, 64), dtype=np.int8)
    c = np.zeros((s.n, 2 * s.n), np.int32)
    return Problem([Step("matmul_i8", (a, b, c, np.uint32(2 * s.n), np.uint32(16)), (2 * s.n, s.n), (64, 1))],
                   [Check("product", c, a.astype(np.int32) @ b.T.astype(np.int32))])


@case("matmul_f16", "matmul.hip", "packed f16 fused multiply-adds", n=32, small=8)
def matmul_f16(s: Setting) -> Problem:
    a, b = s.rng.uniform(0.1, 2, (s.n, 24)).astype(np.float16), s.rng.uniform(0.1, 2, (24, 4 * s.n)).astype(np.float16)
    want = np.zeros((s.n, 4 * s.n), np.float16)
    for k in range(24):
        want = fma16(a[:, k, None], b[k], want)
    c = np.zeros_like(want)
    return Problem([Step("matmul_f16", (a, b, c, np.uint32(2 * s.n), np.uint32(24)), (2 * s.n, s.n), (32, 1))],
                   [Check("product", c, want)])


# ---------------------------------------------------------------- solvers


@case("lu_f64", "solve.hip", "f64 divisions rounded correctly, memory shared by a workgroup across barriers", n=24, small=7)
def lu_f64(s: Setting) -> Problem:
    m = s.rng.standard_normal((2, s.n, s.n)) + 4 * np.eye(s.n)
    want = m.copy()
    for k in range(s.n - 1):
        want[:, k + 1:, k] /= want[:, k, k, None]
        want[:, k + 1:, k + 1:] -= want[:, k + 1:, k, None] * want[:, k, None, k + 1:]
    return Problem([Step("lu_f64", (m, np.uint32(s.n)), (2 * 128,), (128,))], [Check("factors", m, want)])


def reduced(a: Array, b: Array, c: Array, d: Array) -> Array:
    """Parallel cyclic reduction as solve.hip does it; rows of unknowns."""
    n, step = a.shape[1], 1
    while step < n:
        va, vb, vc, vd = np.zeros_like(a), b.copy(), np.zeros_like(c), d.copy()
        f = a[:, step:] / b[:, :-step]
        va[:, step:] = -(f * a[:, :-step])
        vb[:, step:] -= f * c[:, :-step]
        vd[:, step:] -= f * d[:, :-step]
        f = c[:, :-step] / b[:, step:]
        vc[:, :-step] = -(f * c[:, step:])
        vb[:, :-step] -= f * a[:, step:]
        vd[:, :-step] -= f * d[:, step:]
        a, b, c, d, step = va, vb, vc, vd, 2 * step
    return d / b


@case("tridiagonal_f32", "solve.hip", "f32 divisions rounded correctly, underflow to subnormals", n=200, small=40)
def tridiagonal_f32(s: Setting) -> Problem:
    a, c, d = s.rng.uniform(-1, 1, (3, 3, s.n)).astype(np.float32)
    b = s.rng.uniform(2.5, 4, (3, s.n)).astype(np.float32)
    a[:, 0] = c[:, -1] = 0
    x = np.zeros_like(d)
    return Problem([Step("tridiagonal_f32", (a, b, c, d, x), (3 * s.n,), (s.n,))], [Check("unknowns", x, reduced(a, b, c, d))])


@case("floyd_warshall", "solve.hip", "many launches over one array", n=40, small=6)
def floyd_warshall(s: Setting) -> Problem:
    distance = np.where(s.rng.random((s.n, s.n)) < 0.15, s.rng.integers(1, 100, (s.n, s.n)), 2**30).astype(np.uint32)
    np.fill_diagonal(distance, 0)
    want = distance.copy()
    for k in range(s.n):
        want = np.minimum(want, want[:, k, None] + want[k])
    steps = [Step("floyd_round", (distance, np.uint32(s.n), np.uint32(k)), (s.n, s.n), (64, 1)) for k in range(s.n)]
    return Problem(steps, [Check("distances", distance, want)])


# ---------------------------------------------------------------- loops with many trips


@case("mandelbrot_f64", "physics.hip", "f64 loops with divergent exits, divisions by sizes", n=40, small=8, level="-O3")
def mandelbrot_f64(s: Setting) -> Problem:
    h, w, limit = s.n, s.n + 7, 60 if s.n > 10 else 12
    y, x = np.mgrid[:h, :w].astype(np.float64)
    cr, ci = -2.0 + 3.0 * x / w, -1.0 + 2.0 * y / h
    zr, zi, k = np.zeros_like(x), np.zeros_like(x), np.zeros((h, w), np.uint16)
    for _ in range(limit):
        alive = zr * zr + zi * zi <= 4.0
        k += alive
        zr, zi = np.where(alive, zr * zr - zi * zi + cr, zr), np.where(alive, 2.0 * zr * zi + ci, zi)
    out = np.zeros_like(k)
    return Problem([Step("mandelbrot_f64", (out, np.uint32(w), np.uint32(h), np.uint32(limit)), (*groups(w, 8), *groups(h, 8)), (8, 8))],
                   [Check("trips", out, k)])


@case("julia_f32", "julia.cl", "OpenCL C, required workgroup size, vectors by value, f32 fused multiply-adds", n=40, small=8,
      language="cl")
def julia_f32(s: Setting) -> Problem:
    limit, c = 50 if s.n > 10 else 10, np.float32([-0.4, 0.6])
    y, x = np.mgrid[:s.n, :s.n + 8].astype(np.float32)
    zr, zi, k = x * np.float32(0.0625) - np.float32(2), y * np.float32(0.0625) - np.float32(1.5), np.zeros(x.shape, np.uint8)
    for _ in range(limit):
        alive = fma32(zr, zr, zi * zi) < 4
        k += alive
        re, im = fma32(zr, zr, fma32(-zi, zi, np.full_like(zr, c[0]))), fma32(2 * zr, zi, np.full_like(zr, c[1]))
        zr, zi = np.where(alive, re, zr), np.where(alive, im, zi)
    out = np.zeros_like(k)
    return Problem([Step("julia", (out, c.tobytes(), np.uint32(limit)), (s.n + 8, s.n), (8, 8))], [Check("trips", out, k)])


@case("nbody_f32", "physics.hip", "reciprocal square roots, vectors of four in LDS, packed f32 where there is such", n=150, small=20)
def nbody_f32(s: Setting) -> Problem:
    x = s.rng.uniform(-1, 1, (s.n, 4)).astype(np.float32)
    x[:, 3] = np.abs(x[:, 3])
    d = x[:, :3].astype(np.float64) - x[:, None, :3]
    strength = x[:, 3] * ((d * d).sum(axis=-1) + np.float32(0.01))**-1.5
    want = np.concatenate([(d * strength[..., None]).sum(axis=1), strength.sum(axis=1)[:, None]], axis=1).astype(np.float32)
    force = np.zeros_like(x)
    return Problem([Step("nbody_f32", (x, force, np.uint32(s.n)), groups(s.n, 64), (64,))],
                   [Check("forces", force, want, rtol=1e-4, atol=1e-3)])
