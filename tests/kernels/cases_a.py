"""Cases: reductions, scans, sorts, stencils, transforms, linear algebra, integer and graph kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.kernels.cases import Array, Check, Problem, Setting, Step, case

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
