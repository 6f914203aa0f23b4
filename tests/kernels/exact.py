"""What numpy lacks to say exactly what a kernel computes."""

from __future__ import annotations

import numpy as np

from tests.kernels.cases import Array


def fma32(a: Array, b: Array, c: Array) -> Array:
    """f32 a * b + c rounded once: the product is exact in f64, the sum is rounded to odd there."""
    product, addend = a.astype(np.float64) * b, c.astype(np.float64)
    total = product + addend
    moved = total - product
    lost = (product - (total - moved)) + (addend - moved)
    even = total.view(np.uint64) & np.uint64(1) == 0
    inexact = np.isfinite(total) & (lost != 0) & even
    return np.where(inexact, np.nextafter(total, np.copysign(np.inf, lost)), total).astype(np.float32)


def fma16(a: Array, b: Array, c: Array) -> Array:
    """f16 a * b + c rounded once, for magnitudes between 2**-10 and 2**10 (exact in f64)."""
    return (a.astype(np.float64) * b + c).astype(np.float16)


def root_bits(n: int, degree: int, bits: int = 32) -> int:
    """The first `bits` bits of the fraction of the degree-th root of n."""
    scaled = n << degree * bits
    low, high = 0, 1 << scaled.bit_length() // degree + 1
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**degree <= scaled else (low, middle - 1)
    return low & (1 << bits) - 1


def primes(count: int) -> list[int]:
    found: list[int] = []
    n = 2
    while len(found) < count:
        if all(n % p for p in found):
            found.append(n)
        n += 1
    return found
