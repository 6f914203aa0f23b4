"""Soft float against numpy and exact rationals, in every rounding mode."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stuntgpu.emu import smallfloat, transcend
from stuntgpu.emu import softfloat as sf
from stuntgpu.emu.approx import approximate

RNE = sf.Env()
FLUSH = sf.Env(flush_in=True, flush_out=True)
ROUNDS = ("rne", "rtz", "rup", "rdn")
NUMPY = {"f16": (np.uint16, np.float16), "f32": (np.uint32, np.float32), "f64": (np.uint64, np.float64)}
OPERATIONS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}


def hard(f: sf.Format) -> list[int]:
    """Values where floats go wrong: zeros, denormals, limits, ones, infinities, NaNs; both signs."""
    one = (1 - f.qmin - f.man) << f.man
    positive = [0, 1, 2, (1 << f.man) - 1, 1 << f.man, one - 1, one, one + 1, one + (1 << f.man), f.largest - 1,
                f.largest, f.inf, f.inf + 1, f.nan, f.nan + 5]
    return positive + [a | f.sign for a in positive]


def bits(f: sf.Format) -> st.SearchStrategy[int]:
    return st.one_of(st.sampled_from(hard(f)), st.integers(0, (1 << f.width) - 1))


def value(f: sf.Format, a: int) -> Fraction:
    m, e = sf.signed(f, a)
    return Fraction(m) * Fraction(2) ** e


def same(f: sf.Format, mine: int, theirs: int) -> bool:
    """Equal bits; any NaN for any NaN, since numpy's payloads are the host's."""
    return mine == theirs or (sf.is_nan(f, mine) and sf.is_nan(f, theirs))


def numpy_result(name: str, f: sf.Format, a: int, b: int) -> int:
    to_bits, to_float = NUMPY[f.name]
    x, y = (np.array([v], to_bits).view(to_float) for v in (a, b))
    with np.errstate(all="ignore"):
        return int(OPERATIONS[name](x, y).view(to_bits)[0])


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("f", [sf.F16, sf.F32, sf.F64], ids=lambda f: f.name)
def test_hard_values_agree_with_numpy_to_nearest(name: str, f: sf.Format) -> None:
    for a, b in product(hard(f), repeat=2):
        assert same(f, getattr(sf, name)(f, a, b, RNE), numpy_result(name, f, a, b)), (hex(a), hex(b))


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("f", [sf.F16, sf.F32, sf.F64], ids=lambda f: f.name)
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_random_values_agree_with_numpy_to_nearest(name: str, f: sf.Format, data: st.DataObject) -> None:
    a, b = data.draw(bits(f)), data.draw(bits(f))
    assert same(f, getattr(sf, name)(f, a, b, RNE), numpy_result(name, f, a, b)), (hex(a), hex(b))


def nearest_by_search(f: sf.Format, exact: Fraction, name: str) -> int:
    """The magnitude bits that `exact` (not 0) rounds to, by bisection over all patterns: no arithmetic shared."""
    magnitude, negative = abs(exact), exact < 0
    if magnitude >= value(f, f.largest) + _ulp(f) * Fraction(1, 2):
        return f.largest if name == "rtz" or name == ("rup" if negative else "rdn") else f.inf
    low, high = 0, f.largest
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if value(f, middle) <= magnitude else (low, middle - 1)
    below = value(f, low)
    if below == magnitude:
        return low
    if name == "rtz" or ((name == "rdn") != negative and name in ("rup", "rdn")):
        return low
    if name in ("rup", "rdn"):
        return low + 1
    twice = 2 * (magnitude - below)
    gap = value(f, low + 1) - below if low < f.largest else _ulp(f)
    return low + (twice > gap or (twice == gap and bool(low & 1)))


def _ulp(f: sf.Format) -> Fraction:
    return value(f, f.largest) - value(f, f.largest - 1)


FINITE_OPERATIONS = {
    "add": lambda x, y: x + y, "mul": lambda x, y: x * y, "div": lambda x, y: x / y,
}


@pytest.mark.parametrize("name", FINITE_OPERATIONS)
@pytest.mark.parametrize("f", [sf.F16, sf.BF16, sf.F32, sf.F64], ids=lambda f: f.name)
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_every_rounding_is_the_rational_result_rounded(name: str, f: sf.Format, data: st.DataObject) -> None:
    a, b, way = data.draw(bits(f)), data.draw(bits(f)), data.draw(st.sampled_from(ROUNDS))
    if a & f.inf == f.inf or b & f.inf == f.inf or (name == "div" and not b & f.abs_mask):
        return
    exact = FINITE_OPERATIONS[name](value(f, a), value(f, b))
    if exact:
        expected = nearest_by_search(f, exact, way) | (f.sign if exact < 0 else 0)
        assert getattr(sf, name)(f, a, b, sf.Env(way)) == expected


@pytest.mark.parametrize("f", [sf.F16, sf.BF16, sf.F32, sf.F64], ids=lambda f: f.name)
@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_fma_rounds_the_exact_sum_once(f: sf.Format, data: st.DataObject) -> None:
    a, b, c = (data.draw(bits(f)) for _ in range(3))
    way = data.draw(st.sampled_from(ROUNDS))
    if any(x & f.inf == f.inf for x in (a, b, c)):
        return
    exact = value(f, a) * value(f, b) + value(f, c)
    if exact:
        assert sf.fma(f, a, b, c, sf.Env(way)) == nearest_by_search(f, exact, way) | (f.sign if exact < 0 else 0)


@pytest.mark.parametrize("f", [sf.F16, sf.BF16, sf.F32, sf.F64], ids=lambda f: f.name)
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_sqrt_brackets_the_root(f: sf.Format, data: st.DataObject) -> None:
    a = data.draw(st.integers(1, f.largest))
    down, up = sf.sqrt(f, a, sf.Env("rdn")), sf.sqrt(f, a, sf.Env("rup"))
    assert value(f, down) ** 2 <= value(f, a) <= value(f, up) ** 2
    assert up - down == (value(f, down) ** 2 != value(f, a))
    assert sf.sqrt(f, a, RNE) in (down, up)


def test_f32_and_f64_sqrt_agree_with_the_host() -> None:
    for x in (2.0, 3.0, 0.1, 1e-300, 5e-324, 1.7e308):
        a = sf.from_float(sf.F64, x)
        assert sf.sqrt(sf.F64, a, RNE) == sf.from_float(sf.F64, math.sqrt(x))


def test_denormals_are_flushed_with_their_sign_before_and_after() -> None:
    tiny, least = 0x8000_0001, 0x0080_0000
    assert sf.add(sf.F32, tiny, tiny, FLUSH) == 0x8000_0000
    assert sf.mul(sf.F32, 0x8080_0000, 0x3F00_0000, FLUSH) == 0x8000_0000
    assert sf.mul(sf.F32, least, 0x3F00_0000, RNE) == 0x0040_0000
    assert sf.fma(sf.F32, 0x0000_0001, 0x3F80_0000, 0x3F80_0000, FLUSH) == 0x3F80_0000
    assert sf.convert(sf.F32, sf.F16, 0x3300_0000, RNE, FLUSH) == 0


def test_the_first_nan_argument_is_returned_quiet() -> None:
    assert sf.add(sf.F32, 0x7F80_0001, 0xFFC0_0002, RNE) == 0x7FC0_0001
    assert sf.fma(sf.F32, 0, 0x7F80_0000, 0xFF80_0003, RNE) == 0xFFC0_0003
    assert sf.fma(sf.F32, 0, 0x7F80_0000, 0x3F80_0000, RNE) == sf.F32.nan
    assert sf.sub(sf.F32, 0x3F80_0000, 0x7FC0_0007, RNE) == 0x7FC0_0007


def test_zero_sums_are_negative_only_when_rounding_down_or_both_are() -> None:
    one, minus = 0x3F80_0000, 0xBF80_0000
    assert [sf.add(sf.F32, one, minus, sf.Env(r)) for r in ROUNDS] == [0, 0, 0, 0x8000_0000]
    assert [sf.add(sf.F32, 0x8000_0000, 0x8000_0000, sf.Env(r)) for r in ROUNDS] == [0x8000_0000] * 4
    assert [sf.fma(sf.F32, 0, minus, 0, sf.Env(r)) for r in ROUNDS] == [0, 0, 0, 0x8000_0000]


def test_fp16_ovfl_saturates_finite_results_only() -> None:
    env = sf.Env(saturate=True)
    assert sf.add(sf.F16, 0x7BFF, 0x7BFF, env) == 0x7BFF
    assert sf.add(sf.F16, 0x7C00, 0x3C00, env) == 0x7C00
    assert sf.convert(sf.F32, sf.F16, 0xFF7F_FFFF, RNE, env) == 0xFBFF


def test_mode_register_fields_reach_their_formats() -> None:
    mode = sf.mode_of(0b10_11_01_11 | 1 << 23)  # f32: rtz, f16/f64: rup; denorm f32 in+out kept, f16 out only
    assert mode.f32 == sf.Env("rtz") == mode.bf16
    assert mode.f64 == sf.Env("rup", flush_in=True)
    assert mode.f16.saturate
    assert not mode.f64.saturate
    assert sf.with_round(mode, "rdn").f16.round == "rdn"


@given(a=st.integers(0, 0xFFFF_FFFF))
def test_integral_rounding_matches_python(a: int) -> None:
    if a & sf.F32.inf == sf.F32.inf:
        return
    x = value(sf.F32, a)
    for way, fn in (("rdn", math.floor), ("rup", math.ceil), ("rtz", math.trunc), ("rne", round)):
        got = sf.integral(sf.F32, a, way, RNE)
        assert value(sf.F32, got) == fn(x)
        assert got >> 31 == a >> 31
        assert sf.to_int(sf.F32, a, 32, True, way, RNE) == max(-(1 << 31), min((1 << 31) - 1, fn(x))) & 0xFFFF_FFFF


def test_conversions_to_integers_saturate_and_send_nan_to_zero() -> None:
    assert sf.to_int(sf.F32, 0x7FC0_0000, 32, True, "rtz", RNE) == 0
    assert sf.to_int(sf.F32, 0xFF80_0000, 32, True, "rtz", RNE) == 0x8000_0000
    assert sf.to_int(sf.F32, 0x7F80_0000, 16, False, "rtz", RNE) == 0xFFFF
    assert sf.to_int(sf.F32, 0xBF80_0000, 32, False, "rtz", RNE) == 0


@given(a=st.integers(0, (1 << 64) - 1))
def test_integers_convert_as_numpy_does(a: int) -> None:
    assert sf.from_int(sf.F64, a, 64, False, RNE) == int(np.array([a], np.uint64).astype(np.float64).view(np.uint64)[0])
    assert sf.from_int(sf.F32, a, 64, True, RNE) == int(
        np.array([a], np.uint64).view(np.int64).astype(np.float32).view(np.uint32)[0])


@given(a=st.integers(0, 0xFFFF))
def test_f16_widens_and_narrows_back(a: int) -> None:
    wide = sf.convert(sf.F16, sf.F32, a, RNE, RNE)
    assert sf.convert(sf.F32, sf.F16, wide, RNE, RNE) == sf.quiet(sf.F16, a)


@given(a=st.integers(0, (1 << 64) - 1))
def test_f64_narrows_as_numpy_does(a: int) -> None:
    with np.errstate(all="ignore"):
        x = np.array([a], np.uint64).view(np.float64)
        assert same(sf.F32, sf.convert(sf.F64, sf.F32, a, RNE, RNE), int(x.astype(np.float32).view(np.uint32)[0]))
        assert same(sf.F16, sf.convert(sf.F64, sf.F16, a, RNE, RNE), int(x.astype(np.float16).view(np.uint16)[0]))


def test_ldexp_rounds_once_into_denormals() -> None:
    assert sf.ldexp(sf.F32, 0x3F80_0001, -127 & 0xFFFF_FFFF, RNE) == 0x0040_0000
    assert sf.ldexp(sf.F32, 0x3F80_0000, 0x7FFF_FFFF, RNE) == sf.F32.inf
    assert sf.ldexp(sf.F32, 0xBF80_0000, 0x8000_0000, RNE) == 0x8000_0000


def test_fract_stays_below_one_and_mantissa_in_its_range() -> None:
    assert sf.fract(sf.F32, 0xB000_0000, RNE) == 0x3F7F_FFFF
    assert sf.fract(sf.F32, sf.F32.inf, RNE) == sf.F32.nan
    assert sf.mantissa(sf.F32, 0xC040_0000) == 0xBF40_0000
    assert sf.mantissa(sf.F32, 0x0000_0001) == 0x3F00_0000


# ---------------------------------------------------------------- approximations

EXACT = {
    ("rcp", 2.0): 0.5, ("rsq", 4.0): 0.5, ("exp2", -3.0): 0.125, ("exp2", 10.0): 1024.0, ("log2", 8.0): 3.0,
    ("log2", 0.125): -3.0, ("sin2pi", 0.25): 1.0, ("sin2pi", 0.75): -1.0, ("sin2pi", 0.5): 0.0,
    ("cos2pi", 0.5): -1.0, ("cos2pi", 0.25): 0.0, ("cos2pi", 3.0): 1.0, ("log2", 1.0): 0.0,
}  # fmt: skip


def test_approximations_are_exact_where_the_rule_says() -> None:
    for (op, x), expected in EXACT.items():
        got = approximate(op, sf.F32, sf.from_float(sf.F32, x), RNE)
        assert got == sf.from_float(sf.F32, expected), (op, x)


def test_special_values_of_approximations() -> None:
    inf, minus = sf.F32.inf, sf.F32.sign
    assert approximate("rcp", sf.F32, minus, RNE) == inf | minus
    assert approximate("rsq", sf.F32, 0xBF80_0000, RNE) == sf.F32.nan | minus
    assert approximate("log2", sf.F32, 1, FLUSH) == inf | minus
    assert approximate("exp2", sf.F32, sf.from_float(sf.F32, -5000.0), RNE) == 0
    assert approximate("exp2", sf.F32, sf.from_float(sf.F32, 5000.0), RNE) == inf
    assert approximate("sin2pi", sf.F32, minus, RNE) == minus
    assert approximate("cos2pi", sf.F32, inf, RNE) == sf.F32.nan | minus
    assert sf.sqrt(sf.F32, 0xBF80_0000, RNE) == sf.F32.nan | minus


HOST = {
    "rcp": lambda x: 1 / x, "rsq": lambda x: 1 / math.sqrt(x), "exp2": lambda x: 2.0**x, "log2": math.log2,
    "sin2pi": lambda x: math.sin(2 * math.pi * math.remainder(x, 1.0)),
    "cos2pi": lambda x: math.cos(2 * math.pi * math.remainder(x, 1.0)),
}  # fmt: skip


@pytest.mark.parametrize("op", HOST)
@given(x=st.floats(2.0**-10, 100.0, width=32))
@settings(max_examples=150, deadline=None)
def test_f32_approximations_are_within_one_unit_of_the_host(op: str, x: float) -> None:
    got = sf.to_float(sf.F32, approximate(op, sf.F32, sf.from_float(sf.F32, x), RNE))
    expected = HOST[op](x)
    assert abs(got - expected) <= max(abs(expected) * 2.0**-23, 2.0**-52)


def test_programs_refer_only_to_earlier_values() -> None:
    for program in transcend.PROGRAMS.values():
        for i, step in enumerate(program):
            assert all(isinstance(a, float) or 0 <= a <= i for a in step.args)


# ---------------------------------------------------------------- small floats


@pytest.mark.parametrize("s", smallfloat.SMALL.values(), ids=lambda s: s.name)
def test_small_floats_survive_f32(s: smallfloat.Small) -> None:
    for a in range(1 << s.bits):
        wide = smallfloat.widen(s, a)
        if not sf.is_nan(sf.F32, wide):
            assert smallfloat.narrow(s, wide, None, False) == a


def test_small_float_overflow_per_format() -> None:
    big = sf.from_float(sf.F32, 1e9)
    got = [smallfloat.narrow(s, big, None, False) for s in smallfloat.SMALL.values()]
    assert got == [0x7F, 0x7C, 0x80, 0x80, 0x1F, 0x1F, 7]
    saturated = [smallfloat.narrow(s, big, None, True) for s in smallfloat.SMALL.values()]
    assert saturated == [0x7E, 0x7B, 0x7F, 0x7F, 0x1F, 0x1F, 7]


@pytest.mark.parametrize(("name", "largest", "smallest"), [("fp6", 7.5, 0.125), ("bf6", 28.0, 0.0625), ("fp4", 6.0, 0.5)])
def test_floats_below_a_byte_have_the_published_range(name: str, largest: float, smallest: float) -> None:
    s = smallfloat.SMALL[name]
    assert sf.to_float(sf.F32, smallfloat.widen(s, s.largest)) == largest
    assert sf.to_float(sf.F32, smallfloat.widen(s, 1)) == smallest
    assert smallfloat.narrow(s, sf.F32.nan | sf.F32.sign, None, False) == s.largest | s.sign


def test_stochastic_rounding_to_sixteen_bits_cuts_after_adding() -> None:
    just_above_one = sf.from_float(sf.F32, 1.0) + 1
    for name, low_bits in (("f16", 13), ("bf16", 16)):
        s = smallfloat.STOCHASTIC[name]
        one = s.bias << s.man
        assert smallfloat.narrow(s, just_above_one, ((1 << low_bits) - 2) << (32 - low_bits), False) == one
        assert smallfloat.narrow(s, just_above_one, ((1 << low_bits) - 1) << (32 - low_bits), False) == one + 1


def test_stochastic_rounding_carries_the_random_word() -> None:
    one_and_a_bit = sf.from_float(sf.F32, 1.0625)  # half way between the fp8 neighbours 1.0 and 1.125
    s = smallfloat.SMALL["fp8"]
    assert smallfloat.narrow(s, one_and_a_bit, 0, False) == 0x38
    assert smallfloat.narrow(s, one_and_a_bit, 0xFFFF_FFFF, False) == 0x39


def test_two_over_pi_has_the_published_first_bits() -> None:
    assert smallfloat.two_over_pi() >> (1201 - 64) == 0xA2F9836E4E441529
    total = sum(sf.to_float(sf.F64, smallfloat.trig_preop(sf.from_float(sf.F64, 1.0), i)) for i in range(3))
    assert total == 2 / math.pi


def test_normalised_integers_round_and_clamp() -> None:
    def f32(x: float) -> int:
        return sf.from_float(sf.F32, x)

    assert smallfloat.to_norm(sf.F32, f32(-1.0), 32767, True, RNE) == -32767 & 0xFFFF
    assert smallfloat.to_norm(sf.F32, f32(2.0), 65535, False, RNE) == 65535
    assert smallfloat.to_norm(sf.F32, f32(-0.5), 65535, False, RNE) == 0
    assert smallfloat.to_norm(sf.F32, sf.F32.nan, 32767, True, RNE) == 0
