"""Operands of decoded instructions: places, registers, constants, halves, modifiers."""

from __future__ import annotations

import pytest

from stuntgpu.isa.arch import ARCHES
from stuntgpu.isa.asm import assemble_one
from stuntgpu.isa.decode import decode
from stuntgpu.isa.inst import Inst, Kind, Operand
from stuntgpu.isa.operands import operands
from tests.isa.goldens import pairs, report

GFX = "gfx1100"


def of(text: str) -> dict[str, Operand]:
    """Operands of one instruction by place; the later of two with the same place wins."""
    return {o.role: o for o in operands(decode(GFX, assemble_one(GFX, text)))}


@pytest.mark.parametrize("name", sorted(ARCHES))
def test_golden_instructions_have_operands(name: str) -> None:
    wrong = []
    for code, text in pairs(name):
        inst = decode(name, code)
        for o in operands(inst):
            if not (o.is_read or o.is_written) or not 0 <= o.value < 1 << max(o.bits, 1):
                wrong.append(f"{text}: {o}")
    assert not wrong, report(wrong)


@pytest.mark.parametrize(("text", "role", "value"), [
    ("v_add_f32 v0, -16, v1", "S0", 0xFFFFFFF0),
    ("v_add_f32 v0, 1.0, v1", "S0", 0x3F800000),
    ("v_add_f16 v0.l, 1.0, v1.l", "S0", 0x3C00),
    ("v_add_f16 v0.l, 0x1234, v1.l", "S0", 0x1234),
    ("v_add_f64 v[0:1], 1.0, v[2:3]", "S0", 0x3FF0000000000000),
    ("v_add_f64 v[0:1], 0x40590000, v[2:3]", "S0", 0x4059000000000000),
    ("v_lshlrev_b64 v[0:1], v2, -1", "S1", 0xFFFFFFFFFFFFFFFF),
    ("s_mov_b64 s[0:1], 0x80000000", "S0", 0x80000000),
    ("s_mov_b32 s0, 0.15915494", "S0", 0x3E22F983),
    ("v_fmaak_f32 v0, v1, v2, 0x40400000", "SIMM32", 0x40400000),
])  # fmt: skip
def test_constants_have_the_operands_bits(text: str, role: str, value: int) -> None:
    operand = of(text)[role]
    assert (operand.kind, operand.value) == (Kind.CONST, value)


@pytest.mark.parametrize(("text", "role", "reg", "half"), [
    ("v_add_f16_e32 v3.h, v4.l, v5.h", "D0", 3, 1),
    ("v_add_f16_e32 v3.h, v4.l, v5.h", "S0", 4, 0),
    ("v_add_f16_e32 v3.h, v4.l, v5.h", "S1", 5, 1),
    ("v_add_f16_e64 v200.h, v201.l, v202.h", "D0", 200, 1),
    ("v_add_f16_e64 v200.h, v201.l, v202.h", "S1", 202, 1),
])  # fmt: skip
def test_halves_of_16_bit_registers(text: str, role: str, reg: int, half: int) -> None:
    operand = of(text)[role]
    assert (operand.kind, operand.reg, operand.half) == (Kind.VGPR, reg, half)


def test_compare_writes_one_bit_a_lane() -> None:
    assert of("v_cmp_lt_f32 vcc_lo, v0, v1")["D0"] == Operand(
        "D0", "", Kind.SGPR, 106, bits=1, fmt="m64", is_written=True
    )
    assert of("v_cmp_lt_f32_e64 s5, v0, v1")["D0"].reg == 5
    assert of("v_cmpx_lt_f32 v0, v1")["EXEC"].is_written


def test_carry_in_and_out_are_two_operands() -> None:
    found = [
        (o.reg, o.is_read, o.is_written)
        for o in operands(decode(GFX, assemble_one(GFX, "v_add_co_ci_u32 v0, s1, v1, v2, s3")))
        if o.role == "VCC"
    ]
    assert found == [(1, False, True), (3, True, False)]


def test_modifiers_stay_with_their_source() -> None:
    found = of("v_fma_f32 v0, -v1, |v2|, -|v3|")
    assert [(found[s].neg, found[s].abs) for s in ("S0", "S1", "S2")] == [
        (True, False), (False, True), (True, True),
    ]  # fmt: skip


def test_packed_operands_say_which_half_feeds_which() -> None:
    found = of("v_pk_add_f16 v0, v1, v2 op_sel:[1,0] op_sel_hi:[0,1] neg_hi:[0,1]")
    assert (found["S0"].half, found["S0"].half_hi) == (1, 0)
    assert (found["S1"].half, found["S1"].half_hi, found["S1"].neg_hi) == (0, 1, True)


def test_dual_destination_takes_the_others_low_bit() -> None:
    inst = decode(GFX, assemble_one(GFX, "v_dual_mov_b32 v4, v1 :: v_dual_add_f32 v7, v2, v3"))
    assert inst.y is not None
    assert next(o for o in operands(inst.y) if o.role == "D0").reg == 7


def test_dpp_source_is_the_vgpr_of_its_own_field() -> None:
    assert of("v_add_f32_dpp v0, v9, v2 row_shr:1")["S0"].reg == 9


def test_memory_operands_by_place() -> None:
    store = of("global_store_b32 v1, v2, s[4:5]")
    assert (store["VADDR"].reg, store["VDATA"].reg, store["SADDR"].reg) == (1, 2, 4)
    atomic = of("global_atomic_add_u32 v0, v1, v2, s[4:5] glc")
    assert (atomic["RETURN_DATA"].reg, atomic["DATA"].reg) == (0, 2)
    lds = of("ds_store_2addr_b32 v1, v2, v3")
    assert (lds["ADDR"].reg, lds["DATA"].reg, lds["DATA2"].reg) == (1, 2, 3)
    scalar = of("s_load_b64 s[4:5], s[6:7], s8")
    assert (scalar["SDATA"].reg, scalar["SBASE"].reg, scalar["SOFFSET"].reg) == (4, 6, 8)
    swap = of("buffer_atomic_cmpswap_b32 v[0:1], off, s[4:7], 0 glc")
    assert (swap["DATA"].bits, swap["RETURN_DATA"].bits) == (64, 32)


def test_scc_is_read_and_written_where_the_operation_does() -> None:
    assert of("s_add_u32 s0, s1, s2")["SCC"].is_written
    found = [o for o in operands(decode(GFX, assemble_one(GFX, "s_addc_u32 s0, s1, s2"))) if o.role == "SCC"]
    assert [o.is_read for o in found] == [True, False]


def decoded(name: str, text: str) -> Inst:
    return decode(name, assemble_one(name, text))


def by_role(name: str, text: str) -> dict[str, Operand]:
    return {o.role: o for o in operands(decoded(name, text))}


def test_mended_operand_lists() -> None:
    """Comparisons of CDNA that write EXEC write VCC too; loads to LDS have no destination register."""
    written = by_role("gfx942", "v_cmpx_eq_f32_e32 vcc, v1, v2")
    assert written["D0"].reg == 106
    assert written["EXEC"].reg == 126
    roles = by_role("gfx950", "global_load_lds_dword v[2:3], off")
    assert "VDATA" not in roles
    assert "RETURN_DATA" not in roles


def test_acc_registers_are_told_by_type_and_by_bit() -> None:
    read = by_role("gfx942", "v_accvgpr_read_b32 v3, a7")
    assert (read["D0"].kind, read["S0"].kind, read["S0"].reg) == (Kind.VGPR, Kind.AGPR, 7)
    load = by_role("gfx950", "ds_read_b64 a[2:3], v1")
    assert (load["RETURN_DATA"].kind, load["ADDR"].kind) == (Kind.AGPR, Kind.VGPR)
    matrix = by_role("gfx950", "v_mfma_f32_32x32x8_f16 a[0:15], v[2:3], a[4:5], a[16:31]")
    assert [matrix[r].kind for r in ("D0", "S0", "S1", "S2")] == [Kind.AGPR, Kind.VGPR, Kind.AGPR, Kind.AGPR]


def test_matrix_sources_have_the_size_of_their_format() -> None:
    text = "v_mfma_scale_f32_16x16x128_f8f6f4 a[0:3], a[14:19], v[40:43], 0, v57, v18 op_sel_hi:[0,0,0] cbsz:2 blgp:4"
    found = by_role("gfx950", text)
    assert (found["S0"].bits, found["S1"].bits) == (6 * 32, 4 * 32)
    assert (found["SCALE0"].reg, found["SCALE1"].reg) == (57, 18)


def test_sdwa_operands_say_which_part_they_are() -> None:
    text = (
        "v_add_u16_sdwa v3, sext(v1), s5 dst_sel:BYTE_2 dst_unused:UNUSED_SEXT src0_sel:WORD_1 src1_sel:BYTE_0"
    )
    found = by_role("gfx942", text)
    assert (found["S0"].kind, found["S0"].select, found["S0"].sext) == (Kind.VGPR, 5, True)
    assert (found["S1"].kind, found["S1"].reg, found["S1"].select) == (Kind.SGPR, 5, 0)
    assert (found["D0"].select, found["D0"].unused) == (2, 1)
    assert by_role("gfx942", "v_cmp_eq_u32_sdwa s[4:5], v1, v2")["D0"].reg == 4


def test_bitop3_has_no_signs() -> None:
    found = by_role("gfx950", "v_bitop3_b32 v0, v1, v2, v3 bitop3:0xff")
    assert not any(found[r].neg or found[r].abs for r in ("S0", "S1", "S2"))


def test_f64_matrix_negates_by_blgp() -> None:
    found = by_role("gfx942", "v_mfma_f64_16x16x4_f64 v[0:7], v[8:9], v[10:11], v[0:7] neg:[1,0,1]")
    assert [found[r].neg for r in ("S0", "S1", "S2")] == [True, False, True]
