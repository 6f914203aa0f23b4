"""What the rows of gfx942 and gfx950 do: errata, and the small float formats."""

from __future__ import annotations

import struct

import pytest

from stuntgpu.isa.semantics import is_atomic, keeps_upper_half, rows, semantics
from tests.isa.rows import FLUSH_F32, Machine, f16, f32, run_on

NAN = 0x7FC00000


def bf16(x: float) -> int:
    return f32(x) >> 16


# ---------------------------------------------------------------- the tables


def test_scalar_atomics_are_atomic() -> None:
    for name in ("S_ATOMIC_ADD", "S_BUFFER_ATOMIC_CMPSWAP_X2", "DS_PK_ADD_RTN_BF16", "GLOBAL_ATOMIC_PK_ADD_F16"):
        assert is_atomic(semantics("gfx942", name)), name


def test_each_generation_has_its_own_matrix_rows() -> None:
    assert "V_MFMA_F32_16X16X8_XF32" in rows("gfx942")
    assert "V_MFMA_F32_16X16X8_XF32" not in rows("gfx950")
    assert "V_MFMA_SCALE_F32_16X16X128_F8F6F4" in rows("gfx950")


# ---------------------------------------------------------------- program control


@pytest.mark.parametrize(("mask", "pc", "lanes"), [(0b1111, 100, 0b1111), (0b0000, 4, 0b1111), (0b0111, 4, 0b1000), (0b0001, 100, 1)])
def test_fork_and_join_run_both_sides(mask: int, pc: int, lanes: int) -> None:
    """The smaller side runs first; JOIN then takes the other, and goes on when the stack is as it was."""
    machine = Machine(registers={("HWREG", 1, None): 0xF0})
    out = run_on("gfx950", "S_CBRANCH_G_FORK", machine, S0=mask, S1=100, EXEC=0b1111, PC=0)
    assert out["PC"] == pc
    assert out.get("EXEC", 0b1111) == lanes
    if lanes == 0b1111:
        assert machine.registers["HWREG", 1, None] == 0xF0
        return
    assert machine.registers["HWREG", 1, None] == 0xF0 | 1 << 29
    other = run_on("gfx950", "S_CBRANCH_JOIN", machine, S0=0, EXEC=lanes, PC=500)
    assert other == {"PC": 104 - pc, "EXEC": 0b1111 ^ lanes}
    assert run_on("gfx950", "S_CBRANCH_JOIN", machine, S0=0, EXEC=lanes, PC=500) == {"PC": 504}


@pytest.mark.parametrize(("name", "one"), [("F16", 0x3C00), ("F32", f32(1.0)), ("F64", 0x3FF0_0000_0000_0000)])
def test_cmpx_class_writes_both_masks(name: str, one: int) -> None:
    out = run_on("gfx950", f"V_CMPX_CLASS_{name}", S0=one, S1=1 << 8)
    assert out["EXEC"] == out["D0"] != 0


def test_gpr_index_mode_is_a_bit_of_mode() -> None:
    machine = Machine(registers={("HWREG", 1, None): 0xF0})
    out = run_on("gfx942", "S_SET_GPR_IDX_ON", machine, S0=0xABCD_EF07, SRC1=0b1001, M0=0x1234_5678)
    assert out["M0"] == 0x1234_9607
    assert machine.registers["HWREG", 1, None] == 0xF0 | 1 << 27
    run_on("gfx942", "S_SET_GPR_IDX_OFF", machine)
    assert machine.registers["HWREG", 1, None] == 0xF0


def test_vskip_is_a_bit_of_mode() -> None:
    machine = Machine(registers={("HWREG", 1, None): 0xF0})
    run_on("gfx942", "S_SETVSKIP", machine, S0=0b1000, S1=32 + 3)
    assert machine.registers["HWREG", 1, None] == 0xF0 | 1 << 28


def test_sopk_texts_count_the_immediate_among_the_sources() -> None:
    assert run_on("gfx942", "S_MOVK_I32", SIMM16=0x8000) == {"D0": 0xFFFF_8000}
    assert run_on("gfx942", "S_CMPK_LT_I32", S0=0xFFFF_FFFE, SIMM16=0xFFFF) == {"SCC": 1}
    assert run_on("gfx942", "S_ADDK_I32", D0=5, SIMM16=0xFFFE) == {"D0": 3, "SCC": 0}


# ---------------------------------------------------------------- vector


def test_pk_mov_picks_a_register_of_each_pair() -> None:
    pairs = {"S0": 0x0000_0002_0000_0001, "S1": 0x0000_0004_0000_0003}
    assert run_on("gfx942", "V_PK_MOV_B32", OPSEL=0b00, **pairs)["D0"] == 3 << 32 | 1
    assert run_on("gfx942", "V_PK_MOV_B32", OPSEL=0b11, **pairs)["D0"] == 4 << 32 | 2


@pytest.mark.parametrize("name", ["V_MAD_LEGACY_F16", "V_FMA_LEGACY_F16"])
def test_results_of_sixteen_bits_are_one_value(name: str) -> None:
    assert run_on("gfx942", name, S0=f16(2.0), S1=f16(3.0), S2=f16(1.0)) == {"D0": f16(7.0)}
    assert not keeps_upper_half("gfx942", name)
    assert keeps_upper_half("gfx942", "V_MAD_MIXHI_F16")
    assert keeps_upper_half("gfx1100", "V_FMA_F16")
    assert run_on("gfx942", "V_MAC_F16", S0=f16(2.0), S1=f16(3.0), D0=f16(1.0)) == {"D0": f16(7.0)}
    assert run_on("gfx942", "V_MADMK_F16", S0=f16(2.0), S1=f16(3.0), SIMM32=f16(5.0)) == {"D0": f16(13.0)}
    assert run_on("gfx942", "V_DIV_FIXUP_LEGACY_F16", S0=f16(1.5), S1=f16(0.0), S2=f16(-1.0)) == {"D0": 0xFC00}
    assert run_on("gfx942", "V_MAD_LEGACY_I16", S0=0x7FFF, S1=2, S2=0, CLAMP=1) == {"D0": 0x7FFF}


def test_mad_mix_rounds_once() -> None:
    """1 + 2 ** -12 squared minus 1: a product rounded by itself loses the last term."""
    x = f32(1 + 2**-12)
    places = {"S0": x, "S1": x, "S2": f32(-1.0), "OPSEL": 0, "OPSEL_HI": 0, "NEG": 0, "NEG_HI": 0}
    assert run_on("gfx942", "V_MAD_MIX_F32", **places)["D0"] == f32(2**-11 + 2**-24)
    assert run_on("gfx942", "V_MAD_MIXLO_F16", **places | {"OPSEL_HI": 0b100, "S2": f16(-1.0)})["D0"] == f16(2**-11)


@pytest.mark.parametrize(
    ("name", "sources", "wrapped", "saturated"),
    [
        ("V_ADD_U32", (0xFFFF_FFFF, 2), 1, 0xFFFF_FFFF),
        ("V_SUBREV_U32", (2, 1), 0xFFFF_FFFF, 0),
        ("V_ADD_I32", (0x7FFF_FFFF, 1), 0x8000_0000, 0x7FFF_FFFF),
        ("V_SUB_U16", (1, 2), 0xFFFF, 0),
        ("V_DOT4_I32_I8", (0xFF01_0203, 0x0101_0101, 0x7FFF_FFFF), 0x8000_0004, 0x7FFF_FFFF),
        ("V_DOT2_U32_U16", (0xFFFF_FFFF, 0xFFFF_FFFF, 0), 0xFFFC_0002, 0xFFFF_FFFF),
    ],
)
def test_clamp_saturates_integers(name: str, sources: tuple[int, ...], wrapped: int, saturated: int) -> None:
    places = {f"S{i}": v for i, v in enumerate(sources)}
    assert run_on("gfx942", name, CLAMP=0, **places)["D0"] == wrapped
    assert run_on("gfx942", name, CLAMP=1, **places)["D0"] == saturated


def test_dot_with_accumulator_in_the_destination() -> None:
    assert run_on("gfx942", "V_DOT8C_I32_I4", S0=0x1111_111F, S1=0x1111_1111, D0=10)["D0"] == 10 + 7 - 1


def test_minimum3_keeps_any_nan() -> None:
    assert run_on("gfx950", "V_MINIMUM3_F32", S0=f32(3.0), S1=f32(-1.0), S2=f32(2.0))["D0"] == f32(-1.0)
    assert run_on("gfx950", "V_MAXIMUM3_F32", S0=f32(3.0), S1=0x7F80_0001, S2=f32(2.0))["D0"] == 0x7FC0_0001
    assert run_on("gfx950", "V_MINIMUM3_F32", S0=0, S1=1 << 31, S2=f32(1.0))["D0"] == 1 << 31
    low = run_on("gfx950", "V_PK_MINIMUM3_F16", S0=f16(1.0) << 16 | f16(5.0), S1=f16(2.0) << 16 | f16(4.0),
                 S2=f16(3.0) << 16 | 0x7E00)["D0"]
    assert low == f16(1.0) << 16 | 0x7E00


@pytest.mark.parametrize("table", [0x80, 0xFE, 0x96, 0xE8, 0xCA])
def test_bitop3_table_is_omod_abs_neg(table: int) -> None:
    a, b, c = 0xF0F0_F0F0, 0xCCCC_CCCC, 0xAAAA_AAAA
    got = run_on("gfx950", "V_BITOP3_B32", S0=a, S1=b, S2=c, OMOD=table >> 6, ABS=table >> 3 & 7, NEG=table & 7)["D0"]
    assert got == table * 0x0101_0101
    short = run_on("gfx950", "V_BITOP3_B16", S0=a & 0xFFFF, S1=b & 0xFFFF, S2=c & 0xFFFF, OMOD=table >> 6,
                   ABS=table >> 3 & 7, NEG=table & 7)["D0"]
    assert short == table * 0x0101


def test_screen_partition_names_the_engines_of_a_rectangle() -> None:
    """One tile is one engine; a square of two by two tiles from the origin is all four of them."""
    def engines(*corners: int) -> int:
        left, top, right, bottom = corners
        return run_on("gfx942", "V_SCREEN_PARTITION_4SE_B32", S0=left << 6 | top << 4 | right << 2 | bottom)["D0"]

    assert [engines(x, y, x, y) for y in (0, 1) for x in (0, 1)] == [1, 4, 2, 8]
    assert engines(0, 0, 1, 1) == 15
    assert engines(3, 0, 0, 0) == engines(3, 0, 3, 0) | engines(0, 0, 0, 0)  # around the edge


# ---------------------------------------------------------------- small floats


def test_small_float_conversions() -> None:
    """FNUZ on gfx942, OCP on gfx950: the bias differs by one, and 0x80 is NaN or -0."""
    for name, one in (("gfx942", 0x40), ("gfx950", 0x38)):
        assert run_on(name, "V_CVT_F32_FP8", S0=0xAA00 | one)["D0"] == f32(1.0)
        packed = run_on(name, "V_CVT_PK_FP8_F32", S0=f32(1.0), S1=f32(-2.0), D0=0x1234_5678, OPSEL=0b1000)["D0"]
        assert packed == (one + 8 | 0x80) << 24 | one << 16 | 0x5678
        assert run_on(name, "V_CVT_PK_F32_FP8", S0=packed >> 16)["D0"] == f32(-2.0) << 32 | f32(1.0)
        just_below = struct.unpack("<f", struct.pack("<I", f32(1.125) - 1))[0]
        for random, byte in ((0, one), (0xFFFF_FFFF, one + 1)):
            stochastic = run_on(name, "V_CVT_SR_FP8_F32", S0=f32(just_below), S1=random, D0=0xFFFF_FFFF, OPSEL=0b0100)
            assert stochastic["D0"] == 0xFFFF_00FF | byte << 8
    assert run_on("gfx942", "V_CVT_F32_FP8", S0=0x80)["D0"] == NAN
    assert run_on("gfx950", "V_CVT_F32_FP8", S0=0x80)["D0"] == 1 << 31


def test_bf8_overflows_to_infinity() -> None:
    assert run_on("gfx950", "V_CVT_PK_BF8_F32", S0=f32(1e9), S1=f32(-1e9), D0=0, OPSEL=0)["D0"] == 0xFC7C


def test_conversions_to_f32_keep_denormals() -> None:
    tiny = run_on("gfx950", "V_CVT_F32_BF8", Machine(FLUSH_F32), S0=1)["D0"]
    assert tiny == f32(2.0**-16)


def test_bf16_widens_by_its_bits() -> None:
    assert run_on("gfx950", "V_CVT_F32_BF16", S0=bf16(-3.0))["D0"] == f32(-3.0)


def test_prng_is_a_shift_register() -> None:
    assert run_on("gfx950", "V_PRNG_B32", S0=1)["D0"] == 2
    assert run_on("gfx950", "V_PRNG_B32", S0=0x8000_0001)["D0"] == 2 ^ 197


def test_scaled_conversions_divide_and_multiply_by_a_power_of_two() -> None:
    scale = f32(8.0)  # only its exponent counts
    fp4 = run_on("gfx950", "V_CVT_SCALEF32_PK_FP4_F32", S0=f32(16.0), S1=f32(-48.0), S2=scale, D0=0, OPSEL=0b0100)["D0"]
    assert fp4 == 0xF4 << 8  # 2.0 and -6.0
    assert run_on("gfx950", "V_CVT_SCALEF32_PK_F32_FP4", S0=fp4, S1=scale, OPSEL=0b01)["D0"] == f32(-48.0) << 32 | f32(16.0)
    fp8 = run_on("gfx950", "V_CVT_SCALEF32_PK_FP8_F16", S0=f16(-4.0) << 16 | f16(8.0), S1=scale, D0=0, OPSEL=0b1000)["D0"]
    assert fp8 == 0xB038 << 16
    halves = run_on("gfx950", "V_CVT_SCALEF32_PK_F16_FP8", S0=fp8, S1=scale, OPSEL=1)["D0"]
    assert halves == f16(-4.0) << 16 | f16(8.0)
    assert run_on("gfx950", "V_CVT_SCALEF32_PK_BF16_FP8", S0=fp8, S1=scale, OPSEL=1)["D0"] == bf16(-4.0) << 16 | bf16(8.0)
    assert run_on("gfx950", "V_CVT_SCALEF32_F16_FP8", S0=fp8, S1=scale, OPSEL=0b10)["D0"] == f16(8.0)


def test_scaled_conversion_of_thirty_two_values() -> None:
    """0, 0.125 .. in FP6 with a scale of 2: out to f32 and back."""
    source = sum((i & 31) << 6 * i for i in range(32))
    wide = run_on("gfx950", "V_CVT_SCALEF32_PK32_F32_FP6", S0=source, S1=f32(2.0))["D0"]
    values = [struct.unpack("<f", (wide >> 32 * i & 0xFFFF_FFFF).to_bytes(4, "little"))[0] for i in range(32)]
    assert values[:9] == [0.25 * i for i in range(9)]
    assert values[31] == 15.0
    even = sum((wide >> 64 * i & 0xFFFF_FFFF) << 32 * i for i in range(16))
    odd = sum((wide >> 64 * i + 32 & 0xFFFF_FFFF) << 32 * i for i in range(16))
    assert run_on("gfx950", "V_CVT_SCALEF32_2XPK16_FP6_F32", S0=even, S1=odd, S2=f32(2.0))["D0"] == source
    for random in (0, 0x1234_5678):  # exact values do not change whatever the random bits
        assert run_on("gfx950", "V_CVT_SCALEF32_SR_PK32_FP6_F32", S0=wide, S1=random, S2=f32(2.0))["D0"] == source


def test_stochastic_halves_keep_the_other_half() -> None:
    one = run_on("gfx950", "V_CVT_SR_F16_F32", S0=f32(1.0), S1=0xFFFF_FFFF, D0=0xAAAA_BBBB, OPSEL=0b1000)["D0"]
    assert one == f16(1.0) << 16 | 0xBBBB
    up = run_on("gfx950", "V_CVT_SR_BF16_F32", S0=f32(1.0) + 1, S1=0xFFFF_FFFF, D0=0, OPSEL=0)["D0"]
    assert up == bf16(1.0) + 1


# ---------------------------------------------------------------- across lanes


def lanes_of(machine: Machine) -> list[int]:
    return [machine.registers.get(("VGPR", 9, lane), -1) for lane in range(64)]


@pytest.mark.parametrize("name", ["DS_BPERMUTE_B32", "DS_PERMUTE_B32"])
def test_ds_permutes_reach_all_lanes(name: str) -> None:
    registers: dict[tuple[str, int, int | None], int] = {}
    for lane in range(64):
        registers["VGPR", 1, lane] = (lane + 40) * 4 & 0xFF
        registers["VGPR", 2, lane] = 1000 + lane
    machine = Machine(registers=registers)
    run_on("gfx942", name, machine, SRC0=1, SRC1=2, VDST=9, OFFSET=0, EXEC=(1 << 64) - 1, LANES=64)
    turn = 40 if name == "DS_BPERMUTE_B32" else 64 - 40
    assert lanes_of(machine) == [1000 + (lane + turn) % 64 for lane in range(64)]


def test_permlane_swap_exchanges_rows() -> None:
    registers: dict[tuple[str, int, int | None], int] = {}
    for lane in range(64):
        registers["VGPR", 8, lane], registers["VGPR", 9, lane] = lane, 100 + lane
    machine = Machine(registers=registers)
    run_on("gfx950", "V_PERMLANE32_SWAP_B32", machine, SRC0=8, VDST=9, LANES=64)
    assert lanes_of(machine)[32] == 0
    assert machine.registers["VGPR", 8, 0] == 132


def test_addtid_takes_a_16_bit_offset() -> None:
    machine = Machine()
    run_on("gfx942", "DS_WRITE_ADDTID_B32", machine, DATA=77, OFFSET=0x0108, M0=0xAAAA_0010, LANE=0)
    assert machine.load("LDS", 0, 0x118, 4) == 77
    assert run_on("gfx942", "DS_READ_ADDTID_B32", machine, OFFSET=0x0108, M0=0x10, LANE=0) == {"RETURN_DATA": 77}


def test_loads_into_lds_go_to_m0_plus_lane() -> None:
    machine = Machine(memory={("MEM", 0x1000): 0x80})
    run_on("gfx950", "GLOBAL_LOAD_LDS_SBYTE", machine, ADDR=0x1000, OFFSET=0x1FFC, M0=0xFFFC_0103, LANE=0)
    assert machine.load("LDS", 0, 0x100 - 4, 4) == 0xFFFF_FF80
