"""What the rows of gfx1100 do: coverage, errata, and agreement with the vendor's text."""

from __future__ import annotations

import math
import struct

import pytest

from stuntgpu.isa import ir
from stuntgpu.isa.errors import Unmodelled
from stuntgpu.isa.semantics import is_atomic, semantics
from tests.isa.rows import (
    ARCH,
    FLUSH_ALL,
    FLUSH_F32,
    KEEP_DENORMALS,
    Machine,
    f16,
    f32,
    f64,
    run,
    run_on,
)

INF, NAN, NEG_INF = 0x7F800000, 0x7FC00000, 0xFF800000


def as_float(bits: int) -> float:
    value: float = struct.unpack("<d", bits.to_bytes(8, "little"))[0]
    return value


# ---------------------------------------------------------------- the table


def test_missing_row_says_why_and_where() -> None:
    with pytest.raises(
        Unmodelled, match=r"gfx1100: IMAGE_LOAD \(image memory.*isa/errata/gfx1100.py"
    ):
        semantics(ARCH, "IMAGE_LOAD")
    with pytest.raises(Unmodelled, match="V_NO_SUCH_THING"):
        semantics(ARCH, "V_NO_SUCH_THING")
    with pytest.raises(Unmodelled, match="gfx000"):
        semantics("gfx000", "V_NOP")


def test_atomics_are_recognised() -> None:
    assert is_atomic(semantics(ARCH, "GLOBAL_ATOMIC_ADD_U32"))
    assert is_atomic(semantics(ARCH, "DS_STOREXCHG_2ADDR_RTN_B32"))
    assert not is_atomic(semantics(ARCH, "GLOBAL_LOAD_B32"))
    assert not is_atomic(semantics(ARCH, "DS_STORE_B64"))


def test_wide_memory_is_one_access() -> None:
    for name, width in (("GLOBAL_LOAD_B128", 128), ("S_LOAD_B512", 512), ("DS_LOAD_B96", 96)):
        loads = [x for x in ir.expressions(semantics(ARCH, name).body) if isinstance(x, ir.Load)]
        assert [x.width for x in loads] == [width], name


# ---------------------------------------------------------------- program control


@pytest.mark.parametrize("name", ["S_BRANCH", "S_CALL_B64"])
def test_branch_offset_is_not_cut_to_16_bits(name: str) -> None:
    assert run(name, PC=0x100000, SIMM16=0x7FFF)["PC"] == 0x100000 + 4 + 4 * 0x7FFF
    assert run(name, PC=0x100000, SIMM16=0x8000)["PC"] == 0x100000 + 4 - 4 * 0x8000


def test_branch_not_taken_goes_on() -> None:
    assert run("S_CBRANCH_SCC1", PC=64, SIMM16=8, SCC=0)["PC"] == 68
    assert run("S_CBRANCH_SCC1", PC=64, SIMM16=8, SCC=1)["PC"] == 68 + 32
    assert run("S_CBRANCH_VCCZ", PC=64, SIMM16=8, VCCZ=0)["PC"] == 68


def test_setreg_replaces_only_its_field() -> None:
    machine = Machine(registers={("HWREG", 1, None): 0xFFFFFFFF})
    run("S_SETREG_B32", machine, S0=0b0101, SIMM16=1 | 4 << 6 | 3 << 11)
    assert machine.registers["HWREG", 1, None] == 0xFFFFFF5F
    run("S_SETREG_IMM32_B32", machine, SIMM32=0x12345678, SIMM16=1 | 31 << 11)
    assert machine.registers["HWREG", 1, None] == 0x12345678


def test_round_and_denorm_mode_set_their_nibble() -> None:
    machine = Machine(registers={("HWREG", 1, None): 0x3000})
    run("S_ROUND_MODE", machine, SIMM16=0x5)
    run("S_DENORM_MODE", machine, SIMM16=0xC)
    assert machine.registers["HWREG", 1, None] == 0x30C5


def test_code_end_is_illegal_and_endpgm_ends() -> None:
    machine = Machine()
    run("S_CODE_END", machine)
    run("S_ENDPGM", machine)
    assert machine.actions == [("illegal", ()), ("endpgm", ())]


def test_subvector_loop_runs_both_halves() -> None:
    begin = run("S_SUBVECTOR_LOOP_BEGIN", EXEC=0xF_0000000F, D0=0, PC=0, SIMM16=8)
    assert (begin["D0"], begin["EXEC"]) == (0xF, 0xF)
    again = run("S_SUBVECTOR_LOOP_END", EXEC=0xF, D0=0xF, PC=32, SIMM16=0xFFF8)
    assert (again["D0"], again["EXEC"], again["PC"]) == (0xF, 0xF_00000000, 32 + 4 - 32)
    done = run("S_SUBVECTOR_LOOP_END", EXEC=0xF_00000000, D0=0xF, PC=32, SIMM16=0xFFF8)
    assert done["EXEC"] == 0xF_0000000F


# ---------------------------------------------------------------- floats


def div_scale(s0: float, s1: float, s2: float, mode: int = FLUSH_F32) -> tuple[int, int]:
    out = run("V_DIV_SCALE_F32", Machine(mode), S0=f32(s0), S1=f32(s1), S2=f32(s2))
    return out["D0"], out["VCC"]


def test_div_scale_scales_and_marks() -> None:
    assert div_scale(1.0, 4.0, 1.0) == (f32(1.0), 0)
    assert div_scale(0.0, 1.0, 0.0) == (NAN, 1)
    assert div_scale(1.0, 1.0, 2.0**127) == (f32(2.0**64), 1)
    assert div_scale(1.0, 2.0**127, 1.0) == (f32(1.0), 1)
    assert div_scale(2.0**-126, 1.0, 2.0**-126) == (f32(2.0**-62), 1)
    assert div_scale(2.0**127, 2.0**127, 2.0**100) == (f32(2.0**63), 0)
    assert div_scale(2.0**127, 2.0**127, 1.0) == (f32(2.0**63), 1)


def test_div_scale_of_a_tiny_numerator_scales_both() -> None:
    assert div_scale(2.0**-110, 2.0**-50, 2.0**-110) == (f32(2.0**-46), 0)
    assert div_scale(2.0**-50, 2.0**-50, 2.0**-110) == (f32(2.0**14), 0)


def test_div_scale_denormal_denominator() -> None:
    assert div_scale(2.0**-149, 2.0**-149, 1.0, FLUSH_F32) == (NAN, 1)
    assert div_scale(2.0**-149, 2.0**-149, 2.0**-60, KEEP_DENORMALS)[0] == f32(2.0**-85)


def test_div_fmas_scales_by_the_size_of_the_addend() -> None:
    assert run("V_DIV_FMAS_F32", S0=f32(1), S1=f32(1), S2=f32(1), VCC=0)["D0"] == f32(2.0)
    assert run("V_DIV_FMAS_F32", S0=f32(1), S1=f32(1), S2=f32(1), VCC=1)["D0"] == f32(2.0**-63)
    assert run("V_DIV_FMAS_F32", S0=f32(1), S1=f32(1), S2=f32(2), VCC=1)["D0"] == f32(3 * 2.0**64)
    assert run("V_DIV_FMAS_F64", S0=f64(1), S1=f64(1), S2=f64(1), VCC=1)["D0"] == f64(2.0**-127)


@pytest.mark.parametrize(
    ("f", "inf", "nan"),
    [("F16", 0x7C00, 0x7E00), ("F32", INF, NAN), ("F64", 0x7FF << 52, 0x7FF8 << 48)],
)
def test_div_fixup_nan_estimate_is_infinity(f: str, inf: int, nan: int) -> None:
    one = {"F16": f16, "F32": f32, "F64": f64}[f](1.0)
    assert run(f"V_DIV_FIXUP_{f}", S0=nan, S1=one, S2=one)["D0"] == inf
    assert (
        run(f"V_DIV_FIXUP_{f}", S0=nan, S1=one | 1 << inf.bit_length(), S2=one)["D0"]
        == inf | 1 << inf.bit_length()
    )


def test_div_fixup_special_cases() -> None:
    def fixup(s0: int, s1: int, s2: int) -> int:
        return run("V_DIV_FIXUP_F32", S0=s0, S1=s1, S2=s2)["D0"]

    assert fixup(f32(3), f32(2), f32(6)) == f32(3)
    assert fixup(f32(3), f32(-2), f32(6)) == f32(-3)
    assert fixup(f32(1), f32(1), INF) == INF
    assert fixup(f32(1), 0, 0) == 0xFFC00000
    assert fixup(f32(1), NEG_INF, f32(1)) == 1 << 31
    assert fixup(f32(1), NAN, f32(1)) == NAN
    assert fixup(f32(1), f32(2.0**100), f32(2.0**-100)) == 0


@pytest.mark.parametrize("f", ["F16", "F32", "F64"])
def test_rounding_instructions_are_one_operation(f: str) -> None:
    for op in ("ceil", "floor", "rndne", "fract"):
        (s,) = semantics(ARCH, f"V_{op.upper()}_{f}").body
        assert isinstance(s, ir.Set)
        assert isinstance(s.value, ir.Op)
        assert s.value.op == f"{op}.{f.lower()}"


@pytest.mark.parametrize(("arch", "low", "high"), [
    ("gfx1100", "V_MIN_F32", "V_MAX_F32"), ("gfx1201", "V_MIN_NUM_F32", "V_MAX_NUM_F32"),
    ("gfx1201", "S_MINIMUM_F32", "S_MAXIMUM_F32"), ("gfx942", "V_MIN_F32", "V_MAX_F32"),
])  # fmt: skip
def test_minimum_and_maximum_flush_their_result(arch: str, low: str, high: str) -> None:
    for mode, least in ((KEEP_DENORMALS, 1), (FLUSH_F32, 0)):
        machine = Machine(mode)
        assert run_on(arch, low, machine, S0=2, S1=1)["D0"] == least
        assert run_on(arch, high, machine, S0=1, S1=NEG_INF)["D0"] == least
        assert run_on(arch, low, machine, S0=1, S1=1 << 31)["D0"] == 1 << 31


def test_which_of_two_nans_a_minimum_gives() -> None:
    for arch, name, number in (("gfx1100", "V_MIN_F32", 0), ("gfx942", "V_MIN_F32", 1), ("gfx1201", "V_MIN_NUM_F32", 0)):
        nans = (NAN + 1, NAN + 2)
        assert run_on(arch, name, S0=nans[0], S1=nans[1])["D0"] == nans[number]
    assert run_on("gfx1201", "V_MINIMUM_F32", S0=NAN, S1=0x7F80_0005)["D0"] == NAN + 5


@pytest.mark.parametrize(("arch", "name"), [("gfx1201", "V_CVT_NEAREST_I32_F32"), ("gfx942", "V_CVT_RPI_I32_F32")])
def test_conversion_to_the_nearest_integer_is_exact(arch: str, name: str) -> None:
    rows = {0x4B00_0001: 8388609, 0x3EFF_FFFF: 0, f32(0.5): 1, f32(-0.5): 0, f32(-0.75): -1, f32(2.5): 3, INF: (1 << 31) - 1, NAN: 0}
    for mode in (KEEP_DENORMALS, KEEP_DENORMALS | 1):
        assert {x: run_on(arch, name, Machine(mode), S0=x)["D0"] for x in rows} == {x: n & 0xFFFF_FFFF for x, n in rows.items()}


def test_class_sees_denormals() -> None:
    classes = {
        0x7FA00000: 0,
        NAN: 1,
        NEG_INF: 2,
        f32(-1): 3,
        0x80000001: 4,
        1 << 31: 5,
        0: 6,
        1: 7,
        f32(1): 8,
        INF: 9,
    }
    for bits, n in classes.items():
        assert run("V_CMP_CLASS_F32", Machine(FLUSH_ALL), S0=bits, S1=1 << n)["D0"] == 1, hex(bits)
        assert run("V_CMP_CLASS_F32", Machine(FLUSH_ALL), S0=bits, S1=0x3FF ^ 1 << n)["D0"] == 0, (
            hex(bits)
        )


def test_frexp_exponent_of_zero_and_denormals() -> None:
    for x in (1.0, 0.75, -3.0, 2.0**-126, 2.0**-149, 2.0**-140, 2.0**127):
        expected = math.frexp(x)[1] & 0xFFFFFFFF
        assert run("V_FREXP_EXP_I32_F32", S0=f32(x))["D0"] == expected, x
        assert run("V_FREXP_EXP_I32_F64", S0=f64(x))["D0"] == expected, x
    assert run("V_FREXP_EXP_I32_F64", S0=1)["D0"] == -1073 & 0xFFFFFFFF
    assert run("V_FREXP_EXP_I16_F16", S0=f16(2.0**-24))["D0"] == -23 & 0xFFFF
    for zero_or_special in (0, 1 << 31, INF, NAN):
        assert run("V_FREXP_EXP_I32_F32", S0=zero_or_special)["D0"] == 0


def test_min_max_order_zeros_and_prefer_numbers() -> None:
    minus_zero, signalling = 1 << 31, 0x7FA00000
    assert run("V_MIN_F32", S0=0, S1=minus_zero)["D0"] == minus_zero
    assert run("V_MAX_F32", S0=minus_zero, S1=0)["D0"] == 0
    assert run("V_MAX_F32", S0=NAN, S1=f32(1))["D0"] == f32(1)
    assert run("V_MAX_F32", S0=signalling, S1=f32(1), MODE_IEEE=1)["D0"] == signalling | 1 << 22
    assert run("V_MAX_F32", S0=signalling, S1=f32(1), MODE_IEEE=0)["D0"] == f32(1)


def test_med3_with_a_nan_is_the_minimum_of_the_others() -> None:
    assert run("V_MED3_F32", S0=NAN, S1=f32(3), S2=f32(2))["D0"] == f32(2)
    assert run("V_MED3_F32", S0=f32(1), S1=f32(3), S2=f32(2))["D0"] == f32(2)


def test_fmac_dx9_zero_keeps_the_accumulator() -> None:
    assert run("V_FMAC_DX9_ZERO_F32", S0=0, S1=INF, D0=f32(7))["D0"] == f32(7)
    assert run("V_FMAC_DX9_ZERO_F32", S0=f32(2), S1=f32(3), D0=f32(7))["D0"] == f32(13)


def test_cvt_off_table() -> None:
    for n in range(16):
        assert run("V_CVT_OFF_F32_I4", S0=n)["D0"] == f32((n if n < 8 else n - 16) / 16)


def test_interp_rtz_writes_half() -> None:
    sem = semantics(ARCH, "V_INTERP_P2_RTZ_F16_F32")
    assert sem.widths["D0"] == 16
    assert "f32_to_f16!rtz" in ir.dumps(sem)


def test_trig_preop_first_segment_is_two_over_pi() -> None:
    assert (
        abs(as_float(run("V_TRIG_PREOP_F64", S0=f64(1.0), S1=0)["D0"]) - 0.6366197723675814) < 1e-15
    )


def test_pk_rtz_conversion_ignores_the_round_mode() -> None:
    up = 0xF0 | 0b0101
    assert run("V_CVT_PK_RTZ_F16_F32", Machine(up), S0=f32(1.0009), S1=0)["D0"] == f16(1.0)


def test_fma_mix_takes_halves_abs_and_neg() -> None:
    packed = f16(2.0) << 16 | f16(3.0)
    mix = {
        "S0": packed,
        "S1": packed,
        "S2": f32(-1.0),
        "OPSEL": 0b001,
        "OPSEL_HI": 0b011,
        "NEG": 0b010,
        "NEG_HI": 0b100,
    }
    assert run("V_FMA_MIX_F32", **mix)["D0"] == f32(2.0 * -3.0 + 1.0)
    low = run("V_FMA_MIXLO_F16", **mix)
    assert low["D0"] == f16(-5.0)


# ---------------------------------------------------------------- integers


@pytest.mark.parametrize(("arch", "name"), [("gfx1100", "V_CVT_PK_U8_F32"), ("gfx1201", "V_CVT_PK_U8_F32"), ("gfx942", "V_CVT_PK_U8_F32"),
                                            ("gfx950", "V_CVT_PKACCUM_U8_F32")])  # fmt: skip
def test_conversion_to_a_byte_rounds_to_nearest(arch: str, name: str) -> None:
    for x, byte in ((0.5, 0), (1.5, 2), (2.75, 3), (254.5, 254), (254.75, 255), (300.0, 255), (-3.0, 0)):
        got = run_on(arch, name, S0=f32(x), S1=0xF2, S2=0x11223344, D0=0x11223344)["D0"]
        assert got == 0x11003344 | byte << 16


def test_lerp_keeps_the_carry() -> None:
    assert (
        run("V_LERP_U8", S0=0xFF_01_FF_00, S1=0xFF_02_FF_01, S2=0x00_01_01_00)["D0"]
        == 0xFF_02_FF_00
    )


def test_perm_selectors() -> None:
    def perm(selector: int) -> int:
        return run("V_PERM_B32", S0=0x80_22_33_44, S1=0x55_66_87_88, S2=selector)["D0"]

    assert perm(0x00_01_02_03) == 0x88_87_66_55
    assert perm(0x04_05_06_07) == 0x44_33_22_80
    assert perm(0x08_09_0A_0B) == 0xFF_00_00_FF
    assert perm(0x0C_0D_FF_07) == 0x00_FF_FF_80


@pytest.mark.parametrize(
    ("name", "sources", "wrapped", "saturated"),
    [
        ("V_ADD_NC_U32", (0xFFFFFFFF, 2), 1, 0xFFFFFFFF),
        ("V_SUB_NC_U32", (1, 2), 0xFFFFFFFF, 0),
        ("V_SUBREV_NC_U32", (2, 1), 0xFFFFFFFF, 0),
        ("V_ADD_NC_I32", (0x7FFFFFFF, 1), 0x80000000, 0x7FFFFFFF),
        ("V_SUB_NC_I32", (0x80000000, 1), 0x7FFFFFFF, 0x80000000),
        ("V_ADD_NC_U16", (0xFFFF, 2), 1, 0xFFFF),
        ("V_SUB_NC_I16", (0x8000, 1), 0x7FFF, 0x8000),
        ("V_MAD_U16", (0xFFFF, 2, 1), 0xFFFF, 0xFFFF),
        ("V_MAD_I32_I24", (0x7FFFFF, 0x7FFFFF, 0), 0xFF000001, 0x7FFFFFFF),
        ("V_MAD_U32_U16", (0xFFFF, 0xFFFF, 0xFFFFFFFF), 0xFFFE0000, 0xFFFFFFFF),
        ("V_PK_ADD_I16", (0x7FFF_8000, 0x0001_FFFF), 0x8000_7FFF, 0x7FFF_8000),
        ("V_PK_SUB_U16", (0x0001_0005, 0x0002_0001), 0xFFFF_0004, 0x0000_0004),
        ("V_PK_MAD_U16", (0xFFFF_0002, 0x0002_0003, 0x0000_0001), 0xFFFE_0007, 0xFFFF_0007),
    ],
)
def test_clamp_saturates_integers(
    name: str, sources: tuple[int, ...], wrapped: int, saturated: int
) -> None:
    places = {f"S{i}": v for i, v in enumerate(sources)}
    assert run(name, CLAMP=0, **places)["D0"] == wrapped
    assert run(name, CLAMP=1, **places)["D0"] == saturated


@pytest.mark.parametrize(
    ("name", "first", "second", "saturated"),
    [
        ("V_ADD_CO_U32", 0xFFFFFFFF, 1, 0xFFFFFFFF),
        ("V_SUB_CO_U32", 0, 1, 0),
        ("V_SUBREV_CO_U32", 1, 0, 0),
    ],
)
def test_clamp_saturates_carry_forms(name: str, first: int, second: int, saturated: int) -> None:
    wrapped = 0 if saturated else 0xFFFFFFFF
    assert run(name, S0=first, S1=second, CLAMP=0) == {"D0": wrapped, "VCC": 1}
    assert run(name, S0=first, S1=second, CLAMP=1) == {"D0": saturated, "VCC": 1}
    with_carry = name.replace("_U32", "_CI_U32")
    assert run(with_carry, S0=first, S1=second, VCC=0, CLAMP=1) == {"D0": saturated, "VCC": 1}
    assert run(with_carry, S0=5, S1=5, VCC=0, CLAMP=1)["VCC"] == 0


def test_dot4_signs_follow_neg() -> None:
    ones, minus = 0x01010101, 0xFFFFFFFF
    assert run("V_DOT4_I32_IU8", S0=minus, S1=ones, S2=10, NEG=0b01)["D0"] == 6
    assert run("V_DOT4_I32_IU8", S0=minus, S1=ones, S2=10, NEG=0b00)["D0"] == 10 + 4 * 255


def test_mad_64_carry() -> None:
    top = (1 << 64) - 1
    assert run("V_MAD_U64_U32", S0=1, S1=1, S2=top) == {"D0": 0, "D1": 1}
    assert run("V_MAD_U64_U32", S0=2, S1=3, S2=4) == {"D0": 10, "D1": 0}
    assert run("V_MAD_I64_I32", S0=0xFFFFFFFF, S1=1, S2=0) == {"D0": top, "D1": 1}


def test_mad_64_saturates_with_clamp() -> None:
    top = (1 << 64) - 1
    assert run("V_MAD_U64_U32", S0=1, S1=1, S2=top, CLAMP=1)["D0"] == top
    assert run("V_MAD_I64_I32", S0=1, S1=1, S2=top >> 1, CLAMP=1)["D0"] == top >> 1
    assert run("V_MAD_I64_I32", S0=0xFFFFFFFF, S1=1, S2=1 << 63, CLAMP=1)["D0"] == 1 << 63


def test_sums_of_absolute_differences() -> None:
    assert run("V_SAD_U8", S0=0x01020304, S1=0x04030201, S2=5)["D0"] == 8 + 5
    assert run("V_MSAD_U8", S0=0x01020304, S1=0x04000201, S2=5)["D0"] == 3 + 1 + 3 + 5
    assert run("V_SAD_HI_U8", S0=0x01, S1=0x03, S2=5)["D0"] == (2 << 16) + 5
    assert run("V_SAD_U16", S0=0x0001_0005, S1=0x0003_0001, S2=0)["D0"] == 6
    assert run("V_SAD_U32", S0=0, S1=5, S2=0xFFFFFFFF, CLAMP=1)["D0"] == 0xFFFFFFFF
    assert run("V_SAD_U32", S0=0, S1=5, S2=0xFFFFFFFF, CLAMP=0)["D0"] == 4
    assert (
        run("V_QSAD_PK_U16_U8", S0=0x0A090807_00000005, S1=0, S2=0xFFFF << 48, CLAMP=1)["D0"] >> 48
        == 0xFFFF
    )


def test_bit_search_of_zero_is_minus_one() -> None:
    for name in ("S_CTZ_I32_B32", "S_CLZ_I32_U32", "V_CTZ_I32_B32", "V_CLZ_I32_U32", "S_CLS_I32"):
        assert run(name, S0=0)["D0"] == 0xFFFFFFFF, name
    assert run("S_CLS_I32", S0=0xFFFF0000)["D0"] == 16


def test_carry_in_and_out() -> None:
    assert run("V_ADD_CO_CI_U32", S0=0xFFFFFFFF, S1=0, VCC=1) == {"D0": 0, "VCC": 1}
    assert run("V_SUB_CO_CI_U32", S0=0, S1=0, VCC=1) == {"D0": 0xFFFFFFFF, "VCC": 1}


# ---------------------------------------------------------------- across lanes and memory


def wave(data: list[int], address: list[int]) -> Machine:
    """v1 = address, v2 = data, v3 = -1 in lanes 0..31."""
    registers: dict[tuple[str, int, int | None], int] = {}
    for lane in range(32):
        registers["VGPR", 1, lane] = address[lane]
        registers["VGPR", 2, lane] = data[lane]
        registers["VGPR", 3, lane] = 0xFFFFFFFF
    return Machine(registers=registers)


def result(machine: Machine) -> list[int]:
    return [machine.registers["VGPR", 3, lane] for lane in range(32)]


LANE_NUMBERS = list(range(32))


def test_ds_bpermute_inactive_source_is_zero() -> None:
    machine = wave([100 + i for i in LANE_NUMBERS], [4 * (i + 1) for i in LANE_NUMBERS])
    run("DS_BPERMUTE_B32", machine, SRC0=1, SRC1=2, VDST=3, OFFSET=0, EXEC=0b10111)
    assert result(machine)[:5] == [101, 102, 0, 0xFFFFFFFF, 0]


def test_ds_permute_inactive_lane_sends_nothing() -> None:
    machine = wave([100 + i for i in LANE_NUMBERS], [4 * (i + 1) for i in LANE_NUMBERS])
    run("DS_PERMUTE_B32", machine, SRC0=1, SRC1=2, VDST=3, OFFSET=0, EXEC=0xFFFFFFFB)
    assert result(machine)[:5] == [131, 100, 0xFFFFFFFF, 0, 103]


@pytest.mark.parametrize(
    ("offset", "source"),
    [
        (0x1F | 1 << 10, lambda i: i ^ 1),
        (0x00, lambda i: 0),
        (0x1E, lambda i: i & 30),
        (0x8000 | 0b00011011, lambda i: i & ~3 | 3 - (i & 3)),
        (0xC000 | 1 << 5, lambda i: (i + 1) & 31),
        (0xC000 | 1 << 10 | 1 << 5, lambda i: (i - 1) & 31),
        (0xE000, lambda i: int(f"{i:05b}"[::-1], 2)),
    ],
)
def test_ds_swizzle_patterns(offset: int, source: object) -> None:
    assert callable(source)
    machine = wave(LANE_NUMBERS, [100 + i for i in LANE_NUMBERS])
    run("DS_SWIZZLE_B32", machine, SRC0=1, VDST=3, OFFSET=offset, EXEC=0xFFFFFFFF)
    assert result(machine) == [100 + source(i) for i in LANE_NUMBERS]


def permlane(name: str, op_sel: int, exec_mask: int) -> list[int]:
    """Every lane asks for lane 1 of a row; v1 = 100 + lane."""
    machine = wave(LANE_NUMBERS, [100 + i for i in LANE_NUMBERS])
    select = 0x11111111
    run(name, machine, SRC0=1, VDST=3, S1=select, S2=select, OPSEL=op_sel, EXEC=exec_mask)
    return result(machine)


def test_permlane16_reads_its_own_row_and_x16_the_other() -> None:
    assert permlane("V_PERMLANE16_B32", 0, 0xFFFFFFFF) == [101] * 16 + [117] * 16
    assert permlane("V_PERMLANEX16_B32", 0, 0xFFFFFFFF) == [117] * 16 + [101] * 16


def test_permlane16_inactive_source() -> None:
    without_lane_1, old = 0xFFFFFFFD, 0xFFFFFFFF
    assert permlane("V_PERMLANE16_B32", 0b00, without_lane_1)[:3] == [old, old, old]
    assert permlane("V_PERMLANE16_B32", 0b10, without_lane_1)[:3] == [0, old, 0]
    assert permlane("V_PERMLANE16_B32", 0b01, without_lane_1)[:3] == [101, old, 101]


def test_readfirstlane_without_active_lanes_takes_lane_0() -> None:
    machine = wave(LANE_NUMBERS, [7 + i for i in LANE_NUMBERS])
    assert run("V_READFIRSTLANE_B32", machine, SRC0=1, EXEC=0)["D0"] == 7
    assert run("V_READFIRSTLANE_B32", machine, SRC0=1, EXEC=0b1000)["D0"] == 10


def test_condxchg_stores_only_marked_words() -> None:
    machine = Machine(memory={("LDS", 8 + i): 0x11 for i in range(8)})
    out = run("DS_CONDXCHG32_RTN_B64", machine, ADDR=8, DATA=0x80000005_00000006)
    assert out["RETURN_DATA"] == 0x11111111_11111111
    assert machine.load("LDS", 0, 8, 8) == 0x00000005_11111111


def test_addtid_address() -> None:
    machine = Machine()
    run("DS_STORE_ADDTID_B32", machine, OFFSET=0x100, M0=0xAB0010, LANE=5, DATA=0x01020304)
    assert machine.memory["LDS", 0x110] == 4  # lane 0 of the one-lane run
    assert run("GLOBAL_LOAD_ADDTID_B32", ADDR=64)["RETURN_DATA"] == Machine().load("MEM", 0, 64, 4)


def test_append_counts_active_lanes() -> None:
    machine = Machine(memory={("LDS", 16 + i): 0 for i in range(4)})
    run("DS_APPEND", machine, M0=8, OFFSET=8, EXEC=0b111, VDST=3)
    assert machine.load("LDS", None, 16, 4) == 3
    assert [machine.registers["VGPR", 3, lane] for lane in range(3)] == [0, 0, 0]


def test_d16_load_keeps_the_other_half() -> None:
    machine = Machine(memory={("MEM", 0): 0x34, ("MEM", 1): 0x12})
    assert run("GLOBAL_LOAD_D16_HI_B16", machine, ADDR=0, VDATA=0xAAAABBBB)["VDATA"] == 0x1234BBBB


def test_typed_buffer_channels() -> None:
    """Each channel is one access, numbered from ADDR; 16-bit ones are packed and keep what they do not fill."""
    memory = {("FORMAT", 8 + i): i + 1 for i in range(16)}
    assert run("BUFFER_LOAD_FORMAT_XY", Machine(memory=memory), ADDR=8)["VDATA"] == 0x05040302_04030201
    short = run("TBUFFER_LOAD_D16_FORMAT_XYZ", Machine(memory=memory), ADDR=8, VDATA=0xAAAABBBB << 32)["VDATA"]
    assert short == 0xAAAA_0403_0302_0201
    high = run("BUFFER_LOAD_D16_HI_FORMAT_X", Machine(memory=memory), ADDR=8, VDATA=0xAAAABBBB)["VDATA"]
    assert high == 0x0201BBBB
    stores = [s for s in semantics(ARCH, "TBUFFER_STORE_FORMAT_XYZW").body if isinstance(s, ir.Store)]
    assert [(s.space, s.value.width) for s in stores] == [("FORMAT", 32)] * 4


def test_messages_and_kill() -> None:
    machine = Machine(registers={("MESSAGE", 131, None): 0x1_2345_6789})
    assert run("S_SENDMSG_RTN_B64", machine, S0=131)["D0"] == 0x1_2345_6789
    assert run("S_SENDMSG_RTN_B32", machine, S0=131)["D0"] == 0x2345_6789
    for bit, actions in ((1, [("endpgm", ())]), (0, [])):
        machine = Machine()
        run("S_SETKILL", machine, SIMM16=bit)
        assert machine.actions == actions
