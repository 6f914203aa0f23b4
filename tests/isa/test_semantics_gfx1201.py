"""What gfx1201 does of its own: errata and rows without text."""

from __future__ import annotations

from functools import partial

import pytest

from stuntgpu.emu import smallfloat
from stuntgpu.isa import ir
from stuntgpu.isa.semantics import semantics
from tests.isa.rows import FLUSH_F32, KEEP_DENORMALS, Machine, f16, f32, run_on

ARCH = "gfx1201"
run = partial(run_on, ARCH)
INF, NAN = 0x7F800000, 0x7FC00000
MINUS_TWO = 0xFFFFFFFE


# ---------------------------------------------------------------- program control


def acts(name: str, machine: Machine | None = None, /, **places: int) -> list[tuple[str, tuple[int, ...]]]:
    machine = machine or Machine()
    run(name, machine, **places)
    return machine.actions


def test_barrier_rows() -> None:
    """Number 0 does nothing, -2 is the trap handler's; the first signal is told by SCC."""
    assert acts("S_BARRIER_SIGNAL", SRC0=128, S0=0xFFFFFFFF, PRIV=0) == [("barrier_signal", (0xFFFFFFFF,))]
    assert acts("S_BARRIER_SIGNAL", SRC0=128, S0=3, PRIV=0) == [("barrier_signal", (3,))]
    assert acts("S_BARRIER_SIGNAL", SRC0=128, S0=0, PRIV=0) == acts("S_BARRIER_SIGNAL", SRC0=128, S0=MINUS_TWO, PRIV=0) == []
    assert acts("S_BARRIER_SIGNAL", SRC0=128, S0=MINUS_TWO, PRIV=1) == [("barrier_signal", (MINUS_TWO,))]
    for signals, first in ((0, 1), (2, 0)):
        machine = Machine(registers={("BARRIER", 3, None): signals << 16 | 5 << 4 | 1})
        assert run("S_BARRIER_SIGNAL_ISFIRST", machine, SRC0=128, S0=3, PRIV=0)["SCC"] == first
    assert run("S_BARRIER_SIGNAL_ISFIRST", SRC0=128, S0=0, PRIV=0)["SCC"] == 0
    assert acts("S_BARRIER_WAIT", SIMM16=0xFFFF) == [("barrier_wait", (0xFFFFFFFF,))]
    assert run("S_GET_BARRIER_STATE", Machine(registers={("BARRIER", 2, None): 0x20041}), SRC0=128, S0=2)["D0"] == 0x20041
    assert acts("S_BARRIER_INIT", SRC0=128, S0=2, M0=7 << 16) == [("barrier_init", (2, 7))]
    assert acts("S_BARRIER_JOIN", SRC0=128, S0=2) == [("barrier_join", (2,))]
    assert acts("S_BARRIER_JOIN", SRC0=125, S0=0xFFFF0022) == [("barrier_join", (2,))]  # M0: five bits
    assert acts("S_BARRIER_LEAVE") == [("barrier_leave", ())]


@pytest.mark.parametrize("name", ["S_PREFETCH_INST", "S_PREFETCH_DATA", "S_PREFETCH_DATA_PC_REL", "S_BUFFER_PREFETCH_DATA"])
def test_prefetch_changes_nothing(name: str) -> None:
    sem = semantics(ARCH, name)
    assert sem.body == (ir.Do("nop"),)
    assert not sem.writes


def test_alloc_vgpr_succeeds() -> None:
    assert run("S_ALLOC_VGPR", S0=64)["SCC"] == 1


def test_sopk_texts_mean_the_immediate() -> None:
    """ADDK, MULK and CMOVK call the immediate S0."""
    assert run("S_ADDK_CO_I32", D0=5, SIMM16=0xFFFE) == {"D0": 3, "SCC": 0}
    assert run("S_ADDK_CO_I32", D0=0x7FFFFFFF, SIMM16=1) == {"D0": 0x80000000, "SCC": 1}
    assert run("S_MULK_I32", D0=7, SIMM16=0xFFFF)["D0"] == 0xFFFFFFF9
    assert run("S_CMOVK_I32", D0=1, SIMM16=0x8000, SCC=1)["D0"] == 0xFFFF8000
    assert run("S_MOVK_I32", SIMM16=0x8000)["D0"] == 0xFFFF8000


# ---------------------------------------------------------------- scalar floats


@pytest.mark.parametrize("name", ["F16", "F32"])
def test_scalar_rounding_is_one_operation(name: str) -> None:
    bits = {"F16": f16, "F32": f32}[name]
    for op, values in {"CEIL": (1.25, 2.0), "FLOOR": (-1.25, -2.0), "RNDNE": (2.5, 2.0), "TRUNC": (-1.75, -1.0)}.items():
        assert run(f"S_{op}_{name}", S0=bits(values[0]))["D0"] == bits(values[1]), op


def test_cvt_hi_reads_the_upper_half() -> None:
    assert run("S_CVT_HI_F32_F16", S0=f16(1.5) << 16 | f16(9.0))["D0"] == f32(1.5)


def test_scalar_pk_rtz_writes_both_halves() -> None:
    below = f32(1.0) - 1  # rounds to 1.0 but for the mode
    assert run("S_CVT_PK_RTZ_F16_F32", S0=below, S1=f32(-2.0))["D0"] == f16(-2.0) << 16 | (f16(1.0) - 1)


def test_scalar_transcendentals_clear_the_upper_half() -> None:
    assert run("V_S_EXP_F16", S0=f16(3.0)) == {"D0": f16(8.0)}
    assert run("V_S_RSQ_F16", S0=f16(4.0)) == {"D0": f16(0.5)}
    assert run("V_S_SQRT_F32", S0=f32(9.0)) == {"D0": f32(3.0)}
    assert semantics(ARCH, "V_S_RCP_F32").scope == semantics(ARCH, "V_S_RCP_F16").scope == "wave"


def test_scalar_min_and_max_prefer_numbers_and_minimum_does_not() -> None:
    assert run("S_MIN_NUM_F32", S0=NAN, S1=f32(2.0))["D0"] == f32(2.0)
    assert run("S_MAX_NUM_F16", S0=f16(-0.0), S1=f16(0.0))["D0"] == f16(0.0)
    assert run("S_MINIMUM_F32", S0=f32(2.0), S1=NAN)["D0"] == NAN
    assert run("S_MAXIMUM_F16", S0=0x7D00, S1=f16(1.0))["D0"] == 0x7F00


# ---------------------------------------------------------------- minimum and maximum


@pytest.mark.parametrize(("name", "values", "result"), [
    ("V_MIN_NUM_F32", (f32(-0.0), f32(0.0)), f32(-0.0)),
    ("V_MAX_NUM_F32", (NAN, f32(-1.0)), f32(-1.0)),
    ("V_MIN_NUM_F32", (0x7FA00000, 0x7FA00001), 0x7FE00000),
    ("V_MINIMUM_F32", (f32(-1.0), NAN), NAN),
    ("V_MAXIMUM_F32", (f32(-0.0), f32(0.0)), f32(0.0)),
    ("V_MINIMUM3_F32", (f32(3.0), f32(1.0), f32(2.0)), f32(1.0)),
    ("V_MAXIMUMMINIMUM_F32", (f32(3.0), f32(1.0), f32(2.0)), f32(2.0)),
    ("V_MINMAX_NUM_F32", (f32(3.0), f32(1.0), f32(2.0)), f32(2.0)),
    ("V_MED3_NUM_F32", (f32(3.0), f32(1.0), f32(2.0)), f32(2.0)),
    ("V_MED3_NUM_F32", (f32(3.0), NAN, f32(2.0)), f32(2.0)),
])  # fmt: skip
def test_minimum_and_maximum(name: str, values: tuple[int, ...], result: int) -> None:
    assert run(name, **{f"S{i}": v for i, v in enumerate(values)})["D0"] == result


def test_minimum_of_memory_prefers_numbers() -> None:
    machine = Machine(memory={("LDS", i): b for i, b in enumerate(NAN.to_bytes(4, "little"))})
    assert run("DS_MIN_NUM_RTN_F32", machine, ADDR=0, DATA=f32(2.0))["RETURN_DATA"] == NAN
    assert machine.load("LDS", 0, 0, 4) == f32(2.0)


# ---------------------------------------------------------------- 8-bit floats

FP8_ONE, BF8_ONE = 0x38, 0x3C


def test_small_float_conversions() -> None:
    """OCP formats; OP_SEL picks the byte with its two bits swapped."""
    word = 0x38_40_B8_3C  # fp8: 1, 2, -1, 1.5 from the top
    for opsel, value in ((0, 1.5), (2, -1.0), (1, 2.0), (3, 1.0)):
        assert run("V_CVT_F32_FP8", S0=word, OPSEL=opsel)["D0"] == f32(value), opsel
    assert run("V_CVT_F32_BF8", S0=BF8_ONE << 24, OPSEL=3)["D0"] == f32(1.0)
    assert run("V_CVT_PK_F32_FP8", S0=0x40B8)["D0"] == f32(2.0) << 32 | f32(-1.0)
    assert run("V_CVT_PK_FP8_F32", S0=f32(1.0), S1=f32(-2.0))["D0"] == 0xC038
    assert run("V_CVT_PK_BF8_F32", S0=f32(1.0), S1=f32(1e9))["D0"] == 0x7C3C  # beyond the largest: infinity
    assert run("V_CVT_PK_FP8_F32", S0=f32(1e9), S1=0)["D0"] == 0x7F  # fp8 has no infinity
    for select, kept in ((0, 0xAABBCC38), (1, 0xAABB38DD), (2, 0xAA38CCDD), (3, 0x38BBCCDD)):
        assert run("V_CVT_SR_FP8_F32", D0=0xAABBCCDD, S0=f32(1.0), S1=0, OPSEL=select << 2)["D0"] == kept


def test_stochastic_rounding_adds_below_the_kept_bits() -> None:
    between = f32(1.0625)  # fp8 has three fraction bits: 1.0 and 1.125 are its neighbours
    assert run("V_CVT_SR_FP8_F32", D0=0, S0=between, S1=0x7FFFFFFF, OPSEL=0)["D0"] == FP8_ONE
    assert run("V_CVT_SR_FP8_F32", D0=0, S0=between, S1=0x80000000, OPSEL=0)["D0"] == FP8_ONE + 1


def test_small_conversions_keep_denormals_whatever_the_mode_says() -> None:
    for name, s in (("FP8", smallfloat.SMALL["fp8"]), ("BF8", smallfloat.SMALL["bf8"])):
        for mode in (KEEP_DENORMALS, FLUSH_F32):
            assert run(f"V_CVT_F32_{name}", Machine(mode), S0=1, OPSEL=0)["D0"] == f32(2.0**s.qmin)


def test_dot4_of_small_floats() -> None:
    assert run("V_DOT4_F32_FP8_BF8", S0=0x38384038, S1=0x3C3CBC3C, S2=f32(0.5))["D0"] == f32(1.0 - 2.0 + 1.0 + 1.0 + 0.5)
    assert run("V_DOT4_F32_BF8_BF8", S0=BF8_ONE, S1=BF8_ONE, S2=0)["D0"] == f32(1.0)


# ---------------------------------------------------------------- across lanes


def test_bpermute_fi_reads_inactive_lanes() -> None:
    machine = Machine(registers={("VGPR", 1, 0): 4 * 5, ("VGPR", 2, 5): 99, ("VGPR", 2, 0): 1})
    run("DS_BPERMUTE_FI_B32", machine, EXEC=1, SRC0=1, SRC1=2, VDST=3, OFFSET=0)
    assert machine.registers["VGPR", 3, 0] == 99
    run("DS_BPERMUTE_B32", machine, EXEC=1, SRC0=1, SRC1=2, VDST=3, OFFSET=0)
    assert machine.registers["VGPR", 3, 0] == 0


@pytest.mark.parametrize("name", ["DS_BPERMUTE_B32", "DS_BPERMUTE_FI_B32", "DS_PERMUTE_B32"])
def test_permutes_reach_all_lanes_of_a_wave64(name: str) -> None:
    machine = Machine(registers={("VGPR", r, lane): (4 * (lane + 40), lane)[r - 1] for r in (1, 2) for lane in range(64)})
    run(name, machine, EXEC=2**64 - 1, LANES=64, SRC0=1, SRC1=2, VDST=3, OFFSET=0)
    turn = -40 if name == "DS_PERMUTE_B32" else 40
    assert [machine.registers["VGPR", 3, lane] for lane in range(64)] == [(lane + turn) % 64 for lane in range(64)]


@pytest.mark.parametrize(("name", "row"), [("V_PERMLANE16_VAR_B32", 0), ("V_PERMLANEX16_VAR_B32", 16)])
def test_permlane_var_takes_each_lanes_own_number(name: str, row: int) -> None:
    values = {("VGPR", 1, lane): 100 + lane for lane in range(32)}
    choice = {("VGPR", 2, lane): 15 - lane % 16 for lane in range(32)}
    machine = Machine(registers={**values, **choice})
    run(name, machine, EXEC=0xFFFFFFFF, SRC0=1, SRC1=2, VDST=3, WAVE32=1)
    assert [machine.registers["VGPR", 3, lane] for lane in range(16)] == [100 + row + 15 - lane for lane in range(16)]


# ---------------------------------------------------------------- memory


def test_block_loads_skip_registers() -> None:
    machine = Machine(memory={("MEM", 64 + i): i for i in range(12)})
    run("GLOBAL_LOAD_BLOCK", machine, ADDR=64, M0=0b101, VDST=8, LANE=0)
    assert set(machine.registers) == {("VGPR", 8, 0), ("VGPR", 10, 0)}
    assert machine.registers["VGPR", 10, 0] == 0x0B0A0908
    machine = Machine()
    run("SCRATCH_STORE_BLOCK", machine, ADDR=0, M0=0b10, VDATA=0x44332211 << 32)
    assert sorted(machine.memory) == [("MEM", 4 + i) for i in range(4)]
    assert machine.load("MEM", 0, 4, 4) == 0x44332211


def test_two_address_forms_access_whole_elements() -> None:
    for stride in ("", "_STRIDE64"):
        for bits in (32, 64):
            load = semantics(ARCH, f"DS_LOAD_2ADDR{stride}_B{bits}")
            assert [x.width for x in ir.expressions(load.body) if isinstance(x, ir.Load)] == [bits, bits]
    machine = Machine()
    run("DS_STORE_2ADDR_STRIDE64_B32", machine, ADDR=4, OFFSET0=1, OFFSET1=2, DATA=0x11, DATA2=0x22)
    assert machine.load("LDS", 0, 4 + 256, 4) == 0x11
    assert machine.load("LDS", 0, 4 + 512, 4) == 0x22


def test_saturating_and_conditional_subtraction_in_memory() -> None:
    machine = Machine(memory={("LDS", i): b for i, b in enumerate((5).to_bytes(4, "little"))})
    assert run("DS_SUB_CLAMP_RTN_U32", machine, ADDR=0, DATA=7)["RETURN_DATA"] == 5
    assert machine.load("LDS", 0, 0, 4) == 0
    machine = Machine(memory={("LDS", i): b for i, b in enumerate((5).to_bytes(4, "little"))})
    run("DS_COND_SUB_RTN_U32", machine, ADDR=0, DATA=7)
    assert machine.load("LDS", 0, 0, 4) == 5


def test_small_scalar_loads_extend() -> None:
    machine = Machine(memory={("MEM", 8): 0x80, ("MEM", 9): 0xFF})
    assert run("S_LOAD_I8", machine, ADDR=8)["SDATA"] == 0xFFFFFF80
    assert run("S_LOAD_U8", machine, ADDR=8)["SDATA"] == 0x80
    assert run("S_LOAD_I16", machine, ADDR=8)["SDATA"] == 0xFFFFFF80
    assert run("S_BUFFER_LOAD_U16", machine, ADDR=8)["SDATA"] == 0xFF80


def test_transposing_loads_say_element_and_group() -> None:
    """B128: 8 by 8 among eight lanes, as measured; B64: 8 rows of 16 among sixteen."""
    done = {n: semantics(ARCH, n).body[-1] for n in ("GLOBAL_LOAD_TR_B128", "GLOBAL_LOAD_TR_B64")}
    assert done["GLOBAL_LOAD_TR_B128"] == ir.Do("transpose", (ir.Const(16, 32), ir.Const(8, 32)))
    assert done["GLOBAL_LOAD_TR_B64"] == ir.Do("transpose", (ir.Const(8, 32), ir.Const(16, 32)))


def test_direct_loads_write_whole_quads() -> None:
    machine = Machine(memory={("LDS", 12): 0x80, ("LDS", 13): 0x01})
    run("DS_DIRECT_LOAD", machine, M0=12 | 4 << 16, EXEC=0b10, VDST=3)
    assert {k: v for k, v in machine.registers.items() if k[0] == "VGPR"} == {
        ("VGPR", 3, lane): 0xFFFFFF80 for lane in range(4)
    }


def test_parameter_loads_spread_three_vertices_over_a_quad() -> None:
    """Quads 0 and 1 belong to one primitive, quad 2 begins the next: two primitives of twelve dwords."""
    machine, base, attribute, channel = Machine(), 128, 1, 2
    for dword in range(48):
        machine.store("LDS", None, base + 4 * dword, 4, 1000 + dword)
    run("DS_PARAM_LOAD", machine, M0=base | 0b10 << 16, EXEC=0x111, VDST=3, ATTR=attribute, ATTR_CHAN=channel)
    got = [machine.registers["VGPR", 3, lane] for lane in range(12)]
    first = 1000 + attribute * 24 + channel
    assert got[:4] == got[4:8] == [first, first + 4, first + 8, 0]
    assert got[8:] == [first + 12, first + 16, first + 20, 0]
