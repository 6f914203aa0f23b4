"""Cases: inline assembly."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from tests.kernels.cases import Array, Check, Problem, Setting, Step, case


@case("jump_table", "assembly.hip", "S_GETPC, S_SETPC into a table of code", n=9, small=4)
def jump_table(s: Setting) -> Problem:
    x = s.rng.integers(0, 2**32, (s.n, 64), dtype=np.uint32)
    arms = [x ^ np.uint32(0x11223344), x & np.uint32(0xFF00FF), x | np.uint32(0x80000001), x << np.uint32(5)]
    out = np.zeros_like(x)
    return Problem([Step("jump_table", (x, out), (x.size,), (64,))], [Check("results", out, np.choose(np.arange(s.n)[:, None] & 3, arms))])


def rounded(exact: Fraction, kind: Any, mode: int) -> Any:
    """In modes 0 nearest even, 1 up, 2 down, 3 toward zero; of a normal result."""
    near = kind(float(exact)) if kind is np.float64 else nearest_single(exact)
    if mode == 0 or Fraction(float(near)) == exact:
        return near
    up = mode == 1 or (mode == 3 and exact < 0)
    below = Fraction(float(near)) < exact
    return np.nextafter(near, kind(np.inf if up else -np.inf)) if below == up else near


def nearest_single(exact: Fraction) -> Any:
    """f32 by way of f64 rounded to odd."""
    wide = np.float64(float(exact))
    if Fraction(float(wide)) != exact and not wide.view(np.uint64) & np.uint64(1):
        wide = np.nextafter(wide, np.float64(np.inf if Fraction(float(wide)) < exact else -np.inf))
    return np.float32(wide)


@case("rounding", "assembly.hip", "S_SETREG of MODE: four rounding modes of f32 and f64", n=192, small=64)
def rounding(s: Setting) -> Problem:
    a, b = (s.rng.standard_normal(s.n).astype(np.float32) * np.float32(2.0) ** s.rng.integers(-20, 20, s.n).astype(np.float32) for _ in range(2))
    x = a.astype(np.float64) * float.fromhex("0x1.fffffffp-1")
    exact = [(Fraction(float(p)) + Fraction(float(q)), Fraction(float(p)) * Fraction(float(q)), Fraction(float(w)) * Fraction(float(q)) + Fraction(float(w)))
             for p, q, w in zip(a, b, x, strict=True)]
    want = np.array([[[rounded(e[k], np.float32, m) for e in exact] for k in (0, 1)] for m in range(4)], np.float32).reshape(8, s.n)
    wide = np.array([[rounded(e[2], np.float64, m) for e in exact] for m in range(4)])
    out, got = np.zeros_like(want), np.zeros_like(wide)
    return Problem([Step("rounding", (a, b, out, got), (s.n,), (64,))], [Check("f32", out, want), Check("f64", got, wide)])


@case("modifiers", "assembly.hip", "V_CMPX, absolute values, negation, CLAMP", n=320, small=64)
def modifiers(s: Setting) -> Problem:
    a, b = (s.rng.integers(-99, 99, s.n).astype(np.float32) / np.float32(16) for _ in range(2))
    med = np.median(np.stack([a, -b, np.full_like(a, 0.5)]), 0)
    want = np.stack([b - np.abs(a), np.clip(a * -b, 0, 1), 1 - np.abs(a) * b, np.maximum(-a, np.abs(b)), med]).astype(np.float32)
    chosen, out = np.zeros(s.n, np.uint32), np.zeros_like(want)
    return Problem([Step("modifiers", (a, b, chosen, out), (s.n,), (64,))],
                   [Check("chosen", chosen, np.where(a < b, 9, 7).astype(np.uint32)), Check("results", out, want)])


@case("typed_buffers", "assembly.hip", "TBUFFER loads by index: UNORM, SNORM, UINT and FLOAT fields, records past the end", n=256, small=64)
def typed_buffers(s: Setting) -> Problem:
    x = s.rng.integers(0, 256, (s.n, 8), dtype=np.uint8)
    x[:, 4:].view(np.uint16)[:] = s.rng.standard_normal((s.n, 2)).astype(np.float16).view(np.uint16)
    x[0, :4], x[1, :4] = [0, 255, 128, 1], [0, 128, 1, 128]
    inside = s.n - 5
    word, halves = x[:, 4:].copy().view(np.uint32)[:, 0], x[:, 4:].copy().view(np.float16).astype(np.float32)
    tens = np.stack([word & np.uint32(1023), word >> np.uint32(10) & np.uint32(1023), word >> np.uint32(20) & np.uint32(1023), word >> np.uint32(30)], 1)
    shown = np.float32([[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 0, 0]])[:, None]
    want: Array = np.stack([x[:, :4] / np.float32(255), np.maximum(x.view(np.int16) / np.float32(32767), -1), tens.view(np.float32),
                            np.concatenate([halves, halves], 1)]).astype(np.float32)
    want[:, inside:] = 0
    want[3, :, 2:] = 0  # what the format lacks is not looked at
    out = np.zeros_like(want)
    return Problem([Step("typed_buffers", (x, np.uint32(8 * inside), out), (s.n,), (64,))],
                   [Check("bits", out.view(np.uint32)[2], want.view(np.uint32)[2]), Check("floats", lambda: out[[0, 1, 3]] * shown, want[[0, 1, 3]], 1e-7)])


@case("lds_counters", "assembly.hip", "DS append and consume, two addresses in one access, reversed subtraction, exchanges", n=4, small=1)
def lds_counters(s: Setting) -> Problem:
    x = s.rng.integers(0, 1000, (s.n, s.lanes), dtype=np.uint32)
    odd = x & np.uint32(1) == 1
    tickets = np.where(odd, 5, 100).astype(np.uint32)
    want = np.stack([x, x * 2, x * 4, x * 65, x * 2, x * 3, x * 4, x - x * 2, x])
    got, pairs = np.zeros_like(x), np.zeros_like(want)
    return Problem([Step("lds_counters", (x, got, pairs), (x.size,), (s.lanes,))], [Check("tickets", got, tickets), Check("pairs", pairs, want)])
