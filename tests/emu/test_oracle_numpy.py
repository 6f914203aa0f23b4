"""Division, square roots, conversions and output modifiers against numpy's arithmetic and ml_dtypes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from stuntgpu.isa.arch import arch as arch_of
from tests.emu.oracle_llvm import narrowed
from tests.emu.sweep import ARCHES, ONE_FIRST, OUT, Bits, halves, joined, operand, sweep

KEEP, OVFL, DX10, IEEE = 0xF0, 1 << 23, 1 << 8, 1 << 9
MANY, FEW = 1 << 20, 1 << 12
SIZES = [FEW, pytest.param(MANY, marks=pytest.mark.slow)]
CASES = [("gfx1100", FEW), *(pytest.param(arch, MANY, marks=pytest.mark.slow) for arch in ARCHES)]
EVERY_HALF: Bits = np.arange(1 << 16, dtype=np.uint16)
ROUNDS = {0: "nearest", 1: "up", 2: "down", 3: "zero"}


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def same(got: Bits, want: NDArray[Any], *args: Bits) -> None:
    """Equal bits; any NaN for any NaN."""
    bits = want.view(got.dtype)
    ok = (got == bits) | (np.isnan(want) & np.isnan(got.view(want.dtype)))
    bad = np.flatnonzero(~ok)
    if len(bad):
        i = bad[0]
        raise AssertionError(f"{[hex(int(a[i])) for a in args]}: {int(got[i]):#x}, not {int(bits[i]):#x}; {len(bad)} of {len(got)}")


# ---------------------------------------------------------------- sequences that compilers make of / and sqrt

#: Numerator v0 and denominator v2; result OUT.
DIV_F32 = f"""
v_div_scale_f32 v4, s[90:91], v2, v2, v0
v_rcp_f32 v5, v4
v_div_scale_f32 v6, vcc, v0, v2, v0
v_fma_f32 v7, -v4, v5, 1.0
v_fmac_f32 v5, v7, v5
v_mul_f32 v7, v6, v5
v_fma_f32 v8, -v4, v7, v6
v_fmac_f32 v7, v8, v5
v_fma_f32 v4, -v4, v7, v6
v_div_fmas_f32 v4, v4, v5, v7
v_div_fixup_f32 v{OUT}, v4, v2, v0"""
#: v[0:1] over v[2:3].
DIV_F64 = f"""
v_div_scale_f64 v[6:7], s[90:91], v[2:3], v[2:3], v[0:1]
v_rcp_f64 v[8:9], v[6:7]
v_div_scale_f64 v[10:11], vcc, v[0:1], v[2:3], v[0:1]
v_fma_f64 v[12:13], -v[6:7], v[8:9], 1.0
v_fma_f64 v[8:9], v[8:9], v[12:13], v[8:9]
v_fma_f64 v[12:13], -v[6:7], v[8:9], 1.0
v_fma_f64 v[8:9], v[8:9], v[12:13], v[8:9]
v_mul_f64 v[12:13], v[10:11], v[8:9]
v_fma_f64 v[6:7], -v[6:7], v[12:13], v[10:11]
v_div_fmas_f64 v[6:7], v[6:7], v[8:9], v[12:13]
v_div_fixup_f64 v[{OUT}:{OUT + 1}], v[6:7], v[2:3], v[0:1]"""
#: v0 over v2; the mnemonic of the mixed instruction differs.
DIV_F16 = f"""
v_cvt_f32_f16 v3, v2
v_cvt_f32_f16 v5, v0
v_rcp_f32 v3, v3
v_mul_f32 v5, v5, v3
v_fma_mix_f32 v6, -v2, v5, v0 op_sel_hi:[1,0,1]
v_fmac_f32 v5, v6, v3
v_fma_mix_f32 v6, -v2, v5, v0 op_sel_hi:[1,0,1]
v_mul_f32 v3, v6, v3
v_and_b32 v3, 0xff800000, v3
v_add_f32 v3, v3, v5
v_cvt_f16_f32 v3, v3
v_div_fixup_f16 v{OUT}, v3, v2, v0"""
SQRT_F32 = f"""
s_mov_b32 s92, 0xf800000
v_mov_b32 v4, 0x260
v_mul_f32 v3, 0x4f800000, v0
v_cmp_gt_f32 vcc, s92, v0
v_cndmask_b32 v0, v0, v3, vcc
v_sqrt_f32 v3, v0
v_add_nc_u32 v5, -1, v3
v_add_nc_u32 v6, 1, v3
v_fma_f32 v7, -v5, v3, v0
v_fma_f32 v8, -v6, v3, v0
v_cmp_ge_f32 s[90:91], 0, v7
v_cndmask_b32 v3, v3, v5, s[90:91]
v_cmp_lt_f32 s[90:91], 0, v8
v_cndmask_b32 v3, v3, v6, s[90:91]
v_mul_f32 v5, 0x37800000, v3
v_cndmask_b32 v3, v3, v5, vcc
v_cmp_class_f32 vcc, v0, v4
v_cndmask_b32 v{OUT}, v3, v0, vcc"""
SQRT_F64 = f"""
s_mov_b32 s90, 0
s_brev_b32 s91, 8
v_mov_b32 v4, 0x100
v_mov_b32 v6, 0xffffff80
v_mov_b32 v10, 0x260
v_cmp_gt_f64 vcc, s[90:91], v[0:1]
v_cndmask_b32 v4, 0, v4, vcc
v_ldexp_f64 v[2:3], v[0:1], v4
v_rsq_f64 v[4:5], v[2:3]
v_cndmask_b32 v11, 0, v6, vcc
v_cmp_class_f64 vcc, v[2:3], v10
v_mul_f64 v[6:7], v[2:3], v[4:5]
v_mul_f64 v[4:5], v[4:5], 0.5
v_fma_f64 v[8:9], -v[4:5], v[6:7], 0.5
v_fma_f64 v[6:7], v[6:7], v[8:9], v[6:7]
v_fma_f64 v[4:5], v[4:5], v[8:9], v[4:5]
v_fma_f64 v[8:9], -v[6:7], v[6:7], v[2:3]
v_fma_f64 v[6:7], v[8:9], v[4:5], v[6:7]
v_fma_f64 v[8:9], -v[6:7], v[6:7], v[2:3]
v_fma_f64 v[6:7], v[8:9], v[4:5], v[6:7]
v_ldexp_f64 v[4:5], v[6:7], v11
v_cndmask_b32 v{OUT + 1}, v5, v3, vcc
v_cndmask_b32 v{OUT}, v4, v2, vcc"""


def is_gfx9(arch: str) -> bool:
    return arch_of(arch).dialect == "gfx9"


def spelled(arch: str, text: str) -> str:
    """With the names an architecture has."""
    return text.replace("_nc_u32", "_u32").replace("v_fma_mix", "v_mad_mix") if is_gfx9(arch) else text


@pytest.mark.parametrize(("arch", "n"), CASES)
def test_division_of_f32_is_correctly_rounded(arch: str, n: int) -> None:
    a, b = operand(rng(1), 32, n), operand(rng(2), 32, n)
    (got,) = sweep(arch, spelled(arch, DIV_F32), [a, a, b], 1)
    with np.errstate(all="ignore"):
        same(got, a.view(np.float32) / b.view(np.float32), a, b)


@pytest.mark.parametrize(("arch", "n"), CASES)
def test_division_of_f64_is_correctly_rounded(arch: str, n: int) -> None:
    a, b = operand(rng(3), 64, n), operand(rng(4), 64, n)
    got = joined(*sweep(arch, DIV_F64, [*halves(a), *halves(b)], 2))
    with np.errstate(all="ignore"):
        same(got, a.view(np.float64) / b.view(np.float64), a, b)


@pytest.mark.parametrize(("arch", "n"), CASES)
def test_division_of_f16_is_correctly_rounded(arch: str, n: int) -> None:
    a, b = operand(rng(5), 16, n), operand(rng(6), 16, n)
    (got,) = sweep(arch, spelled(arch, DIV_F16), [a.astype(np.uint32)] * 2 + [b.astype(np.uint32)], 1)
    with np.errstate(all="ignore"):
        same(got.astype(np.uint16), a.view(np.float16) / b.view(np.float16), a, b)


@pytest.mark.parametrize(("arch", "n"), CASES)
def test_square_roots_are_correctly_rounded(arch: str, n: int) -> None:
    single, double = operand(rng(7), 32, n), operand(rng(8), 64, n)
    (got,) = sweep(arch, spelled(arch, SQRT_F32), [single], 1)
    with np.errstate(all="ignore"):
        same(got, np.sqrt(single.view(np.float32)), single)
        same(joined(*sweep(arch, SQRT_F64, halves(double), 2)), np.sqrt(double.view(np.float64)), double)


@pytest.mark.parametrize("arch", ONE_FIRST)
def test_division_of_denormals_flushes_with_mode(arch: str) -> None:
    """V_DIV_FIXUP sees what MODE leaves of its operands: a flushed numerator gives zero, a flushed denominator infinity."""
    one, tiny = np.full(64, 0x3F80_0000, np.uint32), np.full(64, 0x0000_0100, np.uint32)
    for a, b, want in ((tiny, one, 0), (one, tiny, 0x7F80_0000)):
        (got,) = sweep(arch, f"v_div_fixup_f32 v{OUT}, 1.0, v2, v0", [a, a, b], 1, mode=0xC0)
        assert set(got) == {want}


# ---------------------------------------------------------------- conversions of 16, 32 and 64 bits


def doubles(a: Bits) -> NDArray[Any]:
    """f32 bits as doubles."""
    with np.errstate(invalid="ignore"):
        x: NDArray[Any] = a.view(np.float32).astype(np.float64)
    return x


def clipped(x: NDArray[Any], bits: Bits, saturate: bool) -> Bits:
    """f16 results that overflow, with FP16_OVFL: the largest number; infinities stay."""
    if not saturate:
        return bits
    over = (bits & np.uint16(0x7FFF) == 0x7C00) & np.isfinite(x)
    return np.where(over, bits - np.uint16(1), bits)


@pytest.mark.parametrize("arch", ONE_FIRST)
def test_every_f16_widens_exactly(arch: str) -> None:
    got, low, high = sweep(arch, f"v_cvt_f32_f16 v{OUT}, v0\nv_cvt_f64_f32 v[{OUT + 2}:{OUT + 3}], v{OUT}\n"
                           f"v_mov_b32 v{OUT + 1}, v{OUT + 2}\nv_mov_b32 v{OUT + 2}, v{OUT + 3}", [EVERY_HALF.astype(np.uint32)], 3)
    halfs = EVERY_HALF.view(np.float16)
    same(got, halfs.astype(np.float32), EVERY_HALF)
    same(joined(low, high), halfs.astype(np.float64), EVERY_HALF)


@pytest.mark.slow
@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("direction", ROUNDS, ids=ROUNDS.values())
@pytest.mark.parametrize("arch", ["gfx1100", "gfx950"])
def test_f32_narrows_to_f16_as_mode_says(arch: str, direction: int, saturate: bool) -> None:
    a = operand(rng(9), 32, MANY)
    a[::2] = a[::2] & np.uint32(0x8FFF_FFFF) | np.uint32(0x3000_0000)  # near the range of f16
    x = doubles(a)
    mode = KEEP | direction << 2 | saturate * OVFL
    (got,) = sweep(arch, f"v_cvt_f16_f32 v{OUT}, v0", [a], 1, mode=mode)
    same(got.astype(np.uint16), clipped(x, narrowed(x, direction), saturate).view(np.float16), a)


@pytest.mark.parametrize(("arch", "n"), CASES)
def test_pairs_of_f16_round_toward_zero(arch: str, n: int) -> None:
    a, b = operand(rng(10), 32, n), operand(rng(11), 32, n)
    name = "v_cvt_pkrtz_f16_f32" if is_gfx9(arch) else "v_cvt_pk_rtz_f16_f32"
    (got,) = sweep(arch, f"{name} v{OUT}, v0, v1", [a, b], 1)
    for at, source in ((0, a), (16, b)):
        want = narrowed(doubles(source), 3).view(np.float16)
        same((got >> np.uint32(at)).astype(np.uint16), want, source)


@pytest.mark.parametrize("n", SIZES)
def test_f32_narrows_to_bf16_to_nearest(n: int) -> None:
    a, b = operand(rng(12), 32, n), operand(rng(13), 32, n)
    pair, back = sweep("gfx950", f"v_cvt_pk_bf16_f32 v{OUT}, v0, v1\nv_cvt_f32_bf16 v{OUT + 1}, v{OUT}", [a, b], 2)
    with np.errstate(all="ignore"):
        for at, source in ((0, a), (16, b)):
            want = source.view(np.float32).astype(ml_dtypes.bfloat16)
            same((pair >> np.uint32(at)).astype(np.uint16), want, source)
        same(back, (pair << np.uint32(16)).view(np.float32), pair)


@pytest.mark.slow
@pytest.mark.parametrize("direction", ROUNDS, ids=ROUNDS.values())
def test_f64_narrows_to_f32_as_mode_says(direction: int) -> None:
    a = operand(rng(14), 64, MANY)
    a[::2] = a[::2] & np.uint64(0x8FFF_FFFF_FFFF_FFFF) | np.uint64(0x3000_0000_0000_0000)
    x = a.view(np.float64)
    for arch in ("gfx1201", "gfx942"):
        (got,) = sweep(arch, f"v_cvt_f32_f64 v{OUT}, v[0:1]", halves(a), 1, mode=KEEP | direction)
        same(got, directed(x, direction), a)


def directed(x: NDArray[Any], direction: int) -> NDArray[Any]:
    """Doubles as f32, rounded once."""
    with np.errstate(all="ignore"):
        r = x.astype(np.float32)
        back, inf = r.astype(np.float64), np.float32(np.inf)
        if direction == 1:
            return np.where(back < x, np.nextafter(r, inf), r)
        if direction == 2:
            return np.where(back > x, np.nextafter(r, -inf), r)
        return np.where(abs(back) > abs(x), np.nextafter(r, np.float32(0)), r) if direction == 3 else r


# ---------------------------------------------------------------- output modifiers


@pytest.mark.parametrize(("dx10", "of_nan"), [(True, 0.0), (False, np.nan)])
@pytest.mark.parametrize("arch", ONE_FIRST)
def test_clamp_is_to_one_and_nan_follows_dx10_clamp(arch: str, dx10: bool, of_nan: float) -> None:
    """RDNA4 has no such bit: NaN is zero there."""
    of_nan = 0.0 if arch_of(arch).dialect == "gfx12" else of_nan
    a, mode = operand(rng(15), 32, FEW), KEEP | dx10 * DX10
    double = operand(rng(16), 64, FEW)
    (got,) = sweep(arch, f"v_add_f32 v{OUT}, v0, v0 clamp", [a], 1, mode=mode)
    wide = joined(*sweep(arch, f"v_add_f64 v[{OUT}:{OUT + 1}], v[0:1], v[0:1] clamp", halves(double), 2, mode=mode))
    with np.errstate(all="ignore"):
        for bits, source, t in ((got, a, np.float32), (wide, double, np.float64)):
            x = source.view(t) + source.view(t)
            want = np.where(np.isnan(x), t(of_nan), np.clip(x, t(0), t(1)) + t(0))
            same(bits, want.astype(t), source)


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHES)
def test_clamp_of_every_half_alone_and_in_pairs(arch: str) -> None:
    """The other half of a register is not touched by its neighbour's clamp."""
    a = EVERY_HALF.astype(np.uint32) | np.roll(EVERY_HALF, 777).astype(np.uint32) << np.uint32(16)
    text = f"v_mul_f16 v{OUT}, 1.0, v0 clamp\nv_pk_mul_f16 v{OUT + 1}, v0, v1 clamp"
    one, pair = sweep(arch, text, [a, np.full_like(a, 0x3C00_3C00)], 2, mode=KEEP | DX10)
    x = a.view(np.float16).reshape(-1, 2)
    with np.errstate(invalid="ignore"):
        want = np.where(np.isnan(x), np.float16(0), np.clip(x, np.float16(0), np.float16(1)) + np.float16(0))
    same(one.astype(np.uint16), np.ascontiguousarray(want[:, 0]), a)
    same(pair, np.ascontiguousarray(want).view(np.float32)[:, 0], a)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "t"), [("f16", np.float16), ("f64", np.float64)])
@pytest.mark.parametrize("arch", ["gfx1100", "gfx942"])
def test_omod_of_halves_and_doubles(arch: str, kind: str, t: Any) -> None:
    """Where denormals of those are flushed; where they are kept there is none."""
    n = 1 << 14
    a = operand(rng(23), 16 if kind == "f16" else 64, n)
    planes, target, source = ([a.astype(np.uint32)], f"v{OUT}", "v0") if kind == "f16" else (halves(a), f"v[{OUT}:{OUT + 1}]", "v[0:1]")
    for mode, factor in ((0x30, 4), (KEEP, 1)):
        found = sweep(arch, f"v_mul_{kind} {target}, 1.0, {source} mul:4", planes, len(planes), mode=mode)
        got = found[0].astype(np.uint16) if kind == "f16" else joined(*found)
        tiny = np.finfo(t).tiny
        with np.errstate(all="ignore"):
            x = a.view(t)
            x = np.where((abs(x) < tiny) & (mode != KEEP), np.copysign(t(0), x), x)
            same(got, x * t(factor), a)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "factor"), [("mul:2", 2.0), ("mul:4", 4.0), ("div:2", 0.5)])
@pytest.mark.parametrize("arch", ARCHES)
def test_omod_scales_where_denormals_are_flushed(arch: str, name: str, factor: float) -> None:
    a = operand(rng(17), 32, FEW)
    (got,) = sweep(arch, f"v_add_f32 v{OUT}, v0, 0 {name}", [a], 1, mode=0xC0)
    with np.errstate(all="ignore"):
        x = np.where(a & np.uint32(0x7F80_0000), a, a & np.uint32(1 << 31)).view(np.float32) + np.float32(0)
        want = x * np.float32(factor)
    tiny = abs(want) < np.finfo(np.float32).tiny
    same(got, np.where(tiny, np.copysign(np.float32(0), want), want).astype(np.float32), a)


@pytest.mark.parametrize("arch", ["gfx1100", pytest.param("gfx942", marks=pytest.mark.slow)])
def test_ieee_mode_quiets_signalling_nans_of_minima(arch: str) -> None:
    a, b = (operand(rng(seed), 32, FEW) for seed in (18, 19))
    (got,) = sweep(arch, f"v_min_f32 v{OUT}, v0, v1", [a, b], 1, mode=KEEP | IEEE)
    quiet, magnitude = np.uint32(1 << 22), np.uint32(0x7FFF_FFFF)
    signals = [(x & magnitude > 0x7F80_0000) & (x & quiet == 0) for x in (a, b)]
    first = np.where(signals[0], a, b) | quiet
    either = signals[0] | signals[1]
    assert either.any()
    assert (got[either] == first[either]).all()
    assert not ((got & magnitude > 0x7F80_0000) & (got & quiet == 0)).any()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["v_mad_f16", "v_mad_legacy_f16", "v_mac_f16"])
def test_multiply_add_of_cdna_halves_rounds_twice(name: str) -> None:
    """MAC and MAD leave the upper half of the register, the LEGACY form clears it."""
    a, b, c = (operand(rng(seed), 16, FEW) for seed in (20, 21, 22))
    planes = [x.astype(np.uint32) for x in (a, b, c)]
    sources: Sequence[str] = ("v0", "v1") if name == "v_mac_f16" else ("v0", "v1", "v2")
    (got,) = sweep("gfx942", f"v_or_b32 v{OUT}, 0xabcd0000, v2\n{name} v{OUT}, {', '.join(sources)}", planes, 1)
    with np.errstate(all="ignore"):
        same(got.astype(np.uint16), a.view(np.float16) * b.view(np.float16) + c.view(np.float16), a, b, c)
    assert set(got >> np.uint32(16)) == {0 if "legacy" in name else 0xABCD}
