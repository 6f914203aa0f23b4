"""Floats of 8, 6 and 4 bits against ml_dtypes: every pattern widened, very many numbers narrowed, scales included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.emu.sweep import OUT, Bits, Words, operand, sweep

KEEP, OVFL = 0xF0, 1 << 23
MANY, FEW = 1 << 20, 1 << 12
ARCHES = ("gfx1201", "gfx942", "gfx950")
CASES = [("gfx942", FEW), *(pytest.param(arch, MANY, marks=pytest.mark.slow) for arch in ARCHES)]
Floats = NDArray[Any]

OCP: Mapping[str, Any] = {"fp8": ml_dtypes.float8_e4m3fn, "bf8": ml_dtypes.float8_e5m2, "fp6": ml_dtypes.float6_e2m3fn,
                          "bf6": ml_dtypes.float6_e3m2fn, "fp4": ml_dtypes.float4_e2m1fn}  # fmt: skip
FNUZ: Mapping[str, Any] = {"fp8": ml_dtypes.float8_e4m3fnuz, "bf8": ml_dtypes.float8_e5m2fnuz}
WIDER: Mapping[str, Any] = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
WIDTH = {"fp8": 8, "bf8": 8, "fp6": 6, "bf6": 6, "fp4": 4}
EVERY_BYTE = np.arange(256, dtype=np.uint8)


def small(arch: str, kind: str) -> Any:
    return (FNUZ if arch == "gfx942" else OCP)[kind]


def widened(t: Any, bits: Bits) -> Floats:
    """Numbers of small-float patterns, as f32."""
    x: Floats = bits.astype(np.uint8).view(t).astype(np.float32)
    return x


def same(got: Bits, want: Floats, *args: Bits) -> None:
    """Equal bits; any NaN for any NaN."""
    bits = np.ascontiguousarray(want).view(got.dtype)
    with np.errstate(invalid="ignore"):
        nan = np.isnan(want.astype(np.float32)) & np.isnan(got.view(want.dtype).astype(np.float32))
    bad = np.flatnonzero(~((got == bits) | nan))
    if len(bad):
        i = bad[0]
        raise AssertionError(f"{[hex(int(a[i])) for a in args]}: {int(got[i]):#x}, not {int(bits[i]):#x}; {len(bad)} of {len(got)}")


def near(seed: int, n: int, exponents: tuple[int, int] = (100, 145)) -> Words:
    """f32 patterns, half of them with exponents around those of small floats."""
    rng = np.random.default_rng(seed)
    a = operand(rng, 32, n)
    chosen = rng.integers(*exponents, n, np.uint32) << np.uint32(23)
    moved = a & np.uint32(0x807F_FFFF) | chosen
    exact = moved & np.uint32(0xFFF8_0000)  # ties and exact numbers
    which = rng.integers(0, 4, n)
    return np.select([which < 1, which < 3], [a, moved], exact).astype(np.uint32)


# ---------------------------------------------------------------- eight bits


def selected(arch: str, name: str, target: str, part: int, parts: int) -> str:
    """A conversion of one byte (of four) or word (of two) of v0."""
    if arch == "gfx1201":
        how = f"byte_sel:{part}" if parts == 4 else f"op_sel:[{part},0]"
        return f"{name} {target}, v0 {how}"
    return f"{name}_sdwa {target}, v0 src0_sel:{'BYTE' if parts == 4 else 'WORD'}_{part}"


@pytest.mark.parametrize("kind", ["fp8", "bf8"])
@pytest.mark.parametrize("arch", ["gfx942", *(pytest.param(arch, marks=pytest.mark.slow) for arch in ("gfx1201", "gfx950"))])
def test_every_byte_widens_from_every_place(arch: str, kind: str) -> None:
    others = np.random.default_rng(1).integers(0, 256, (4, 256), np.uint32)
    for part in range(4):
        others_kept = sum(others[i] << np.uint32(8 * i) for i in range(4) if i != part)
        plane = (others_kept | EVERY_BYTE.astype(np.uint32) << np.uint32(8 * part)).astype(np.uint32)
        (got,) = sweep(arch, selected(arch, f"v_cvt_f32_{kind}", f"v{OUT}", part, 4), [plane], 1)
        same(got, widened(small(arch, kind), EVERY_BYTE), plane)
        word = part // 2
        pair = sweep(arch, selected(arch, f"v_cvt_pk_f32_{kind}", f"v[{OUT}:{OUT + 1}]", word, 2), [plane], 2)
        for i in range(2):
            same(pair[i], widened(small(arch, kind), plane >> np.uint32(16 * word + 8 * i) & np.uint32(255)), plane)


def bounded(t: Any, x: Floats, saturate: bool) -> Floats:
    """With FP16_OVFL nothing is beyond the largest number."""
    top = np.float32(ml_dtypes.finfo(t).max)
    return np.clip(x, -top, top) if saturate else x


@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("kind", ["fp8", "bf8"])
@pytest.mark.parametrize(("arch", "n"), CASES)
def test_pairs_of_f32_narrow_to_nearest_bytes(arch: str, kind: str, saturate: bool, n: int) -> None:
    a, b, t = near(2, n), near(3, n), small(arch, kind)
    text = f"v_mov_b32 v{OUT}, 0xabcd0000\nv_cvt_pk_{kind}_f32 v{OUT}, v0, v1"
    (got,) = sweep(arch, text, [a, b], 1, mode=KEEP | saturate * OVFL)
    with np.errstate(all="ignore"):
        for at, source in ((0, a), (8, b)):
            want = bounded(t, source.view(np.float32), saturate).astype(t)
            same((got >> np.uint32(at)).astype(np.uint8), want, source)
    assert set(got >> np.uint32(16)) == {0xABCD}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["fp8", "bf8"])
@pytest.mark.parametrize("arch", ARCHES)
def test_random_bits_decide_which_neighbour(arch: str, kind: str) -> None:
    """Normal numbers: a fraction r between two neighbours goes up when r and the random word, as fractions, reach 1."""
    n = MANY
    t, random = small(arch, kind), np.random.default_rng(4).integers(0, 1 << 32, n, np.uint32)
    a = near(5, n) & np.uint32(0x8007_FFFF) | np.random.default_rng(6).integers(0x3D0, 0x420, n, np.uint32) << np.uint32(20)
    (got,) = sweep(arch, f"v_mov_b32 v{OUT}, 0\nv_cvt_sr_{kind}_f32 v{OUT}, v0, v1", [a, random], 1)
    cut = np.uint32(20 if kind == "fp8" else 21)
    sum_ = (a & np.uint32(0x7FFF_FFFF)) + (random >> (np.uint32(32) - cut))
    low = (a & np.uint32(1 << 31) | sum_ >> cut << cut).view(np.float32)
    same(got.astype(np.uint8), low.astype(t), a, random)


# ---------------------------------------------------------------- scaled, of gfx950


def scales(seed: int, n: int) -> tuple[Words, Floats]:
    """f32 operands whose exponent is the scale, and its value."""
    rng = np.random.default_rng(seed)
    exponent = np.where(rng.integers(0, 8, n) == 0, rng.integers(1, 254, n), rng.integers(110, 145, n)).astype(np.uint32)
    return exponent << np.uint32(23) | rng.integers(0, 1 << 23, n, np.uint32), np.ldexp(1.0, exponent.astype(np.int64) - 127)


def result(wide: str, x: Floats, scale: Floats) -> Floats:
    """x times the scale, rounded once."""
    with np.errstate(all="ignore"):
        r: Floats = (x.astype(np.float64) * scale).astype(WIDER[wide])
    return r


def part_of(words: Words, wide: str, i: int) -> Bits:
    """Element i of a pair of f16 or bf16."""
    assert wide != "f32"
    return (words >> np.uint32(16 * i)).astype(np.uint16)


@pytest.mark.slow
@pytest.mark.parametrize("wide", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("kind", ["fp8", "bf8", "fp4"])
def test_pairs_widen_with_a_scale(kind: str, wide: str) -> None:
    n, t, width = 1 << 14, OCP[kind], WIDTH[kind]
    source = np.random.default_rng(7).integers(0, 1 << 32, n, np.uint32)
    operand_, scale = scales(8, n)
    target, count = (f"v[{OUT}:{OUT + 1}]", 2) if wide == "f32" else (f"v{OUT}", 1)
    for part in range(32 // (2 * width)):
        how = f"op_sel:[{part & 1},{part >> 1},0]" if kind == "fp4" else f"op_sel:[{part},0,0]"
        got = sweep("gfx950", f"v_cvt_scalef32_pk_{wide}_{kind} {target}, v0, v1 {how}", [source, operand_], count)
        for i in range(2):
            x = widened(t, source >> np.uint32(2 * width * part + width * i) & np.uint32((1 << width) - 1))
            same(got[i] if wide == "f32" else part_of(got[0], wide, i), result(wide, x, scale), source, operand_)


@pytest.mark.slow
@pytest.mark.parametrize("wide", ["f32", "f16"])
@pytest.mark.parametrize("kind", ["fp8", "bf8"])
def test_single_bytes_widen_with_a_scale(kind: str, wide: str) -> None:
    n = 1 << 12
    source = np.random.default_rng(9).integers(0, 1 << 32, n, np.uint32)
    operand_, scale = scales(10, n)
    for part in range(4):
        text = f"v_cvt_scalef32_{wide}_{kind} v{OUT}, v0, v1 op_sel:[{part & 1},{part >> 1},0]"
        (got,) = sweep("gfx950", text, [source, operand_], 1)
        x = widened(OCP[kind], source >> np.uint32(8 * part) & np.uint32(255))
        same(got if wide == "f32" else got.astype(np.uint16), result(wide, x, scale), source, operand_)


def six_bits(planes: Sequence[Words], i: int) -> Words:
    """Element i of 32 packed in six registers."""
    at, low = divmod(6 * i, 32)
    v = planes[at] >> np.uint32(low)
    if low > 26:
        v = v | planes[at + 1] << np.uint32(32 - low)
    return v & np.uint32(63)


@pytest.mark.slow
@pytest.mark.parametrize("wide", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("kind", ["fp6", "bf6"])
def test_thirty_two_widen_with_a_scale(kind: str, wide: str) -> None:
    n, rng = 1 << 10, np.random.default_rng(11)
    planes = [rng.integers(0, 1 << 32, n, np.uint32) for _ in range(6)]
    operand_, scale = scales(12, n)
    count = 32 if wide == "f32" else 16
    got = sweep("gfx950", f"v_cvt_scalef32_pk32_{wide}_{kind} v[{OUT}:{OUT + count - 1}], v[0:5], v6", [*planes, operand_], count)
    for i in range(32):
        want = result(wide, widened(OCP[kind], six_bits(planes, i)), scale)
        same(got[i] if wide == "f32" else part_of(got[i // 2], wide, i % 2), want, operand_)


# ---------------------------------------------------------------- scaled down


def narrowed(kind: str, x: Floats, scale: Floats) -> Floats:
    """x over the scale: rounded once, and the largest where no infinity or NaN is to be had."""
    t = OCP[kind]
    with np.errstate(all="ignore"):
        divided = (x.astype(np.float64) / scale).astype(np.float32)
        if WIDTH[kind] < 8:
            top = np.float32(ml_dtypes.finfo(t).max)
            divided = np.clip(np.where(np.isnan(divided), np.copysign(top, divided), divided), -top, top)
        r: Floats = divided.astype(t)
    return r


def wide_values(wide: str, seed: int, n: int) -> tuple[Words, Floats]:
    """(register, values) of one number in the low half or whole of each."""
    a = near(seed, n, (90, 165))
    if wide == "f32":
        return a, a.view(np.float32)
    with np.errstate(all="ignore"):
        bits = a.view(np.float32).astype(WIDER[wide]).view(np.uint16)
    return bits.astype(np.uint32), bits.view(WIDER[wide]).astype(np.float32)


def halves_joined(x: Words, y: Words) -> Words:
    return x | y << np.uint32(16)


@pytest.mark.slow
@pytest.mark.parametrize("wide", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("kind", ["fp8", "bf8", "fp4"])
def test_pairs_narrow_with_a_scale(kind: str, wide: str) -> None:
    n = 1 << 18
    (a, x), (b, y), (operand_, scale) = wide_values(wide, 13, n), wide_values(wide, 14, n), scales(15, n)
    width = WIDTH[kind]
    for part in range(32 // (2 * width)):
        select = f"op_sel:[0,0,{part & 1},{part >> 1}]" if kind == "fp4" else f"op_sel:[0,0,0,{part}]"
        if wide == "f32":
            planes, sources = [a, b, operand_], "v0, v1, v2"
        else:
            planes, sources = [halves_joined(a, b), operand_], "v0, v1"
            select = select.replace("[0,0,0,", "[0,0,") if kind != "fp4" else select
        (got,) = sweep("gfx950", f"v_mov_b32 v{OUT}, -1\nv_cvt_scalef32_pk_{kind}_{wide} v{OUT}, {sources} {select}", planes, 1)
        at = 2 * width * part
        for i, (bits, values) in enumerate(((a, x), (b, y))):
            found = (got >> np.uint32(at + width * i)).astype(np.uint8) & np.uint8((1 << width) - 1)
            same(found, narrowed(kind, values, scale), bits, operand_)
        kept = np.uint32(0xFFFF_FFFF ^ ((1 << 2 * width) - 1) << at)
        assert (got & kept == kept).all()


@pytest.mark.slow
@pytest.mark.parametrize("wide", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("kind", ["fp6", "bf6"])
def test_thirty_two_narrow_with_a_scale(kind: str, wide: str) -> None:
    """Of f32 there are two sources, whose elements alternate."""
    n = 1 << 10
    numbers = [wide_values(wide, 20 + i, n) for i in range(32)]
    operand_, scale = scales(16, n)
    if wide == "f32":
        planes = [numbers[i][0] for i in (*range(0, 32, 2), *range(1, 32, 2))]
        text = f"v_cvt_scalef32_2xpk16_{kind}_f32 v[{OUT}:{OUT + 5}], v[0:15], v[16:31], v32"
    else:
        planes = [halves_joined(numbers[i][0], numbers[i + 1][0]) for i in range(0, 32, 2)]
        text = f"v_cvt_scalef32_pk32_{kind}_{wide} v[{OUT}:{OUT + 5}], v[0:15], v16"
    got = sweep("gfx950", text, [*planes, operand_], 6)
    for i, (bits, values) in enumerate(numbers):
        same(six_bits(got, i).astype(np.uint8), narrowed(kind, values, scale), bits, operand_)


@pytest.mark.slow
@pytest.mark.parametrize("wide", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("kind", ["fp8", "bf8"])
def test_random_bits_decide_after_the_scale(kind: str, wide: str) -> None:
    """Between the neighbours of the quotient, and both are met."""
    n, t = 1 << 12, OCP[kind]
    (a, x), (operand_, scale) = wide_values(wide, 17, n), scales(18, n)
    random = np.random.default_rng(19).integers(0, 1 << 32, n, np.uint32)
    (got,) = sweep("gfx950", f"v_mov_b32 v{OUT}, 0\nv_cvt_scalef32_sr_{kind}_{wide} v{OUT}, v0, v1, v2", [a, random, operand_], 1)
    with np.errstate(all="ignore"):
        exact = x.astype(np.float64) / scale
        found = got.astype(np.uint8).view(t).astype(np.float64)
        inside = np.isfinite(exact) & (abs(exact) <= float(ml_dtypes.finfo(t).max))
        unit = np.maximum(2.0 ** (np.floor(np.log2(abs(exact))) - (3 if kind == "fp8" else 2)), float(ml_dtypes.finfo(t).smallest_subnormal))
        away = (found - exact)[inside]
    assert (abs(away) < unit[inside]).all()
    assert {*np.sign(away)} == {-1.0, 0.0, 1.0}
