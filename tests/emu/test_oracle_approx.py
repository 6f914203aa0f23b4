"""Approximated functions: within the documented error of numpy's, monotone over sweeps, special values exact."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.emu.sweep import ARCHES, ONE_FIRST, OUT, Bits, halves, joined, operand, sweep

KEEP = 0xF0
MANY = 1 << 20
CASES = [*(pytest.param(arch, MANY, marks=pytest.mark.slow) for arch in ARCHES)]
EVERY_HALF: Bits = np.arange(1 << 16, dtype=np.uint16)
Floats = NDArray[Any]


def turns(x: Floats, quarters: int) -> Floats:
    """sin(2 pi (x + quarters / 4)) of doubles, reduced exactly to an eighth of a turn first."""
    r = x - np.rint(x)
    q = np.rint(4 * r)
    angle, which = 2 * np.pi * (r - q / 4), (q + quarters) % 4
    value = np.where(which % 2 == 1, np.cos(angle), np.sin(angle))
    turned: Floats = np.where(which >= 2, -value, value)
    return turned


@dataclass(frozen=True)
class Function:
    """flushes: f32 denormals, whatever MODE says. rises: +1 or -1, the direction over positive numbers; 0: neither."""

    exact: Callable[[Floats], Floats]
    flushes: bool = True
    rises: int = 0


FUNCTIONS: Mapping[str, Function] = {
    "rcp": Function(lambda x: 1 / x, rises=-1), "rsq": Function(lambda x: 1 / np.sqrt(x), rises=-1),
    "sqrt": Function(np.sqrt, rises=1), "exp": Function(np.exp2, rises=1), "log": Function(np.log2, rises=1),
    "sin": Function(lambda x: turns(x, 0), flushes=False), "cos": Function(lambda x: turns(x, 1), flushes=False),
}  # fmt: skip
#: Bits of f32: argument and result. NaN is the negative default one.
ZERO, MINUS_ZERO, INF, MINUS_INF, NAN, ONE, MINUS_ONE = 0, 1 << 31, 0x7F80_0000, 0xFF80_0000, 0xFFC0_0000, 0x3F80_0000, 0xBF80_0000
SPECIAL: Mapping[str, Mapping[int, int]] = {
    "rcp": {MINUS_INF: MINUS_ZERO, 0xC000_0000: 0xBF00_0000, MINUS_ZERO: MINUS_INF, ZERO: INF, INF: ZERO},
    "rsq": {MINUS_INF: NAN, MINUS_ONE: NAN, MINUS_ZERO: MINUS_INF, ZERO: INF, 0x4080_0000: 0x3F00_0000, INF: ZERO},
    "sqrt": {MINUS_INF: NAN, MINUS_ONE: NAN, MINUS_ZERO: MINUS_ZERO, ZERO: ZERO, 0x4080_0000: 0x4000_0000, INF: INF},
    "exp": {MINUS_INF: ZERO, MINUS_ZERO: ONE, ZERO: ONE, ONE: 0x4000_0000, MINUS_ONE: 0x3F00_0000, INF: INF},
    "log": {MINUS_INF: NAN, MINUS_ONE: NAN, MINUS_ZERO: MINUS_INF, ZERO: MINUS_INF, ONE: ZERO, INF: INF},
    "sin": {MINUS_INF: NAN, 0xFF7F_FFFF: ZERO, MINUS_ZERO: MINUS_ZERO, 0x3E80_0000: ONE, INF: NAN},
    "cos": {MINUS_INF: NAN, 0xFF7F_FFFF: ONE, MINUS_ZERO: ONE, 0x3E80_0000: ZERO, 0x3F00_0000: MINUS_ONE, INF: NAN},
}  # fmt: skip


def flushed(bits: Bits) -> Bits:
    """f32 denormals as zeros of their sign."""
    zero: Bits = np.where(bits & np.uint32(INF), bits, bits & np.uint32(MINUS_ZERO))
    return zero


def ulps(got: Floats, exact: Floats, bits: int, least: float) -> Floats:
    """Distance in units in the last place of the exact value, of a format with `bits` fraction bits."""
    with np.errstate(all="ignore"):
        exponent = np.floor(np.log2(np.maximum(abs(exact), least)))
        distance: Floats = abs(got.astype(np.float64) - exact) / 2.0 ** (exponent - bits)
    return distance


@pytest.mark.parametrize(("arch", "n"), CASES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_f32_is_within_a_unit(name: str, arch: str, n: int) -> None:
    f, a = FUNCTIONS[name], operand(np.random.default_rng(1), 32, n)
    a[::2] = a[::2] & np.uint32(0x87FF_FFFF) | np.uint32(0x3800_0000)  # where exponentials and sines have a range
    (got,) = sweep(arch, f"v_{name}_f32 v{OUT}, v0", [a], 1, mode=KEEP)
    with np.errstate(all="ignore"):
        x = (flushed(a) if f.flushes else a).view(np.float32).astype(np.float64)
        exact = f.exact(x)
        single = exact.astype(np.float32)
        if f.flushes:
            single = flushed(single.view(np.uint32)).view(np.float32)
    found = got.view(np.float32)
    assert (np.isnan(found) == np.isnan(exact)).all()
    ordinary = np.isfinite(single) & (abs(single) > np.finfo(np.float32).tiny)
    assert ordinary.any()
    assert ulps(found, exact, 23, 2.0**-126)[ordinary].max() <= 1
    same = ordinary | np.isnan(exact) | (found == single)
    assert same.all(), [hex(v) for v in a[~same][:4]]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.slow
@pytest.mark.parametrize("arch", ["gfx1201", "gfx950"])
def test_every_f16_is_within_a_unit_and_keeps_denormals(arch: str, name: str) -> None:
    (got,) = sweep(arch, f"v_{name}_f16 v{OUT}, v0", [EVERY_HALF.astype(np.uint32)], 1, mode=KEEP)
    found = got.astype(np.uint16).view(np.float16)
    with np.errstate(all="ignore"):
        exact = FUNCTIONS[name].exact(EVERY_HALF.view(np.float16).astype(np.float64))
    assert (np.isnan(found) == np.isnan(exact)).all()
    finite = np.isfinite(exact) & (abs(exact) < 65504)
    assert ulps(found, exact, 10, 2.0**-14)[finite].max() <= 0.51
    beyond = np.isinf(exact)
    assert (found[beyond] == exact[beyond]).all()


@pytest.mark.parametrize("tier", ["native", "reference"])
@pytest.mark.parametrize("arch", ONE_FIRST)
def test_special_values_are_exact(arch: str, tier: str) -> None:
    for name, rows in SPECIAL.items():
        a = np.resize(np.array([*rows], np.uint32), 64)
        (got,) = sweep(arch, f"v_{name}_f32 v{OUT}, v0", [a], 1, mode=KEEP, tier=tier)
        assert dict(zip(a.tolist(), got.tolist(), strict=True)) == dict(rows), name


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_f32_is_monotone(name: str) -> None:
    """Over neighbouring patterns around hard places, and over steps through the whole range."""
    f = FUNCTIONS[name]
    starts = (0x0080_0000, 0x3E80_0000 - (1 << 15), 0x3F80_0000 - (1 << 15), 0x3F00_0000, 0x4000_0000 - (1 << 15), 0x42F0_0000)
    runs = [np.arange(s, s + (1 << 16), dtype=np.uint32) for s in starts]
    if f.rises:
        runs.append(np.arange(0x0080_0000, 0x7F80_0000, 0x7FF, dtype=np.uint32)[: 1 << 19])
    for run in runs:
        a = run[: len(run) // 64 * 64]
        (got,) = sweep("gfx1100", f"v_{name}_f32 v{OUT}, v0", [a], 1, mode=KEEP)
        with np.errstate(all="ignore"):
            steps = np.diff(got.view(np.float32).astype(np.float64))
            exact = np.diff(f.exact(a.view(np.float32).astype(np.float64)))
        steps = steps[np.isfinite(steps) & np.isfinite(exact)]
        exact = exact[np.isfinite(exact)][: len(steps)]
        direction = np.sign(exact) if not f.rises else f.rises
        assert (steps * direction >= 0).all(), hex(a[0])


@pytest.mark.parametrize(("arch", "n"), CASES)
@pytest.mark.parametrize("name", ["rcp", "rsq", "sqrt"])
def test_f64_is_within_its_bound_and_keeps_denormals(name: str, arch: str, n: int) -> None:
    """Documented: 2 ** 29 units; ours: none to speak of."""
    a = operand(np.random.default_rng(2), 64, n)
    got = joined(*sweep(arch, f"v_{name}_f64 v[{OUT}:{OUT + 1}], v[0:1]", halves(a), 2, mode=KEEP)).view(np.float64)
    with np.errstate(all="ignore"):
        exact = FUNCTIONS[name].exact(a.view(np.float64))
        finite = np.isfinite(exact)
        assert (np.isnan(got) == np.isnan(exact)).all()
        assert (got[np.isinf(exact)] == exact[np.isinf(exact)]).all()
        assert (abs(got - exact)[finite] <= np.maximum(abs(exact[finite]) * 2.0**-51, 5e-324)).all()


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHES)
def test_tiers_agree_on_approximations(arch: str) -> None:
    a = operand(np.random.default_rng(3), 32, 64)
    text = "\n".join(f"v_{name}_f32 v{OUT + i}, v0\nv_{name}_f16 v{OUT + 8 + i}, v0" for i, name in enumerate(FUNCTIONS))
    native, reference = (sweep(arch, text, [a], 15, mode=0xC0, tier=tier) for tier in ("native", "reference"))
    assert all((x == y).all() for x, y in zip(native, reference, strict=True))
