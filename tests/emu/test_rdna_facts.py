"""Facts about RDNA hardware that no pseudocode tells, each shown by a few instructions on both tiers.

`FACTS` lists all of them, those that are tested elsewhere included.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from stuntgpu.emu.launch import Launch, RunOptions
from stuntgpu.isa.asm import assemble
from tests.emu.rdna import ARCHES, CODE, DATA, FLUSH_F32, IEEE, KEEP, SCRATCH, TIERS, Bench
from tests.isa.rows import f16, f32

ROOT = Path(__file__).resolve().parents[2]
HERE, ROWS, OWN, MATRIX = (
    f"tests/{p}.py" for p in ("emu/test_rdna_facts", "isa/test_semantics", "isa/test_semantics_gfx1201", "emu/test_matrix")
)
NATIVE, OPERANDS, DECODE, FLOATS = (
    f"tests/{p}.py" for p in ("emu/test_native", "isa/test_operands", "isa/test_decode", "emu/test_softfloat")
)

#: What hardware does -> the tests that pin it.
FACTS: dict[str, tuple[tuple[str, str], ...]] = {
    "DIV_SCALE scales by exponents and marks the lane's bit": (
        (ROWS, "test_div_scale_scales_and_marks"), (ROWS, "test_div_scale_denormal_denominator")),
    "DIV_FMAS scales by the size of the addend": ((ROWS, "test_div_fmas_scales_by_the_size_of_the_addend"),),
    "DIV_FIXUP turns a NaN estimate into infinity": ((ROWS, "test_div_fixup_nan_estimate_is_infinity"),),
    "TRIG_PREOP gives 53 bits of 2 / pi": ((ROWS, "test_trig_preop_first_segment_is_two_over_pi"),
                                           (FLOATS, "test_two_over_pi_has_the_published_first_bits")),
    "SIN and COS take turns, exact at quarters": ((HERE, "test_sine_counts_turns"),),
    "CVT_NORM of -1.0 gives -32767": ((HERE, "test_normalised_minus_one"),),
    "BF8 overflows to infinity; FP8 and BF8 are OCP on gfx1201": ((OWN, "test_small_float_conversions"),),
    "conversions of 8-bit floats keep denormals": (
        (OWN, "test_small_conversions_keep_denormals_whatever_the_mode_says"),),
    "CVT_F32_FP8 picks its byte by OP_SEL with the bits swapped": ((OWN, "test_small_float_conversions"),),
    "MED3 with a NaN is the minimum of the others": (
        (ROWS, "test_med3_with_a_nan_is_the_minimum_of_the_others"), (OWN, "test_minimum_and_maximum")),
    "CLAMP limits floats to [0, 1], NaN to 0": ((HERE, "test_clamp_of_floats"),),
    "CLAMP saturates integer sums": ((ROWS, "test_clamp_saturates_integers"),),
    "CLAMP does not saturate MUL_LO": ((HERE, "test_clamp_leaves_mul_lo_alone"),),
    "OMOD works on flushed results without IEEE only": ((HERE, "test_omod_needs_flushed_results_and_no_ieee"),),
    "denormals follow MODE": ((HERE, "test_denormals_follow_mode"),),
    "compares clear the bits of inactive lanes": ((HERE, "test_compares_clear_bits_of_inactive_lanes"),),
    "CMPX writes EXEC only": ((HERE, "test_cmpx_writes_exec_only"),),
    "VCCZ looks at VCC_LO in wave32": ((HERE, "test_vccz_looks_at_the_low_half_in_wave32"),),
    "NULL reads 0 and drops writes, SCC is still set": ((HERE, "test_null_reads_zero_and_drops_writes"),),
    "M0 is operand 125": ((HERE, "test_m0_is_operand_125"),),
    "16-bit results keep the other half": ((HERE, "test_sixteen_bit_results_keep_the_other_half"),),
    "bit 7 of a 16-bit VGPR field is the half": ((OPERANDS, "test_halves_of_16_bit_registers"),),
    "D16 loads keep the other half": ((ROWS, "test_d16_load_keeps_the_other_half"),),
    "constants take the operand's format": ((OPERANDS, "test_constants_have_the_operands_bits"),),
    "packed integers see the f32 pattern": ((HERE, "test_packed_integers_take_float_constants_as_they_are"),),
    "OP_SEL_HI defaults to all ones": ((HERE, "test_packed_instructions_use_both_halves"),),
    "DOT with IU: NEG means signed": ((ROWS, "test_dot4_signs_follow_neg"),),
    "FMA_MIX: NEG_HI is ABS": ((ROWS, "test_fma_mix_takes_halves_abs_and_neg"),),
    "carry in is read before VDST is written": ((HERE, "test_carry_in_is_read_first"),),
    "MOVREL uses register numbers": ((HERE, "test_movrel_counts_registers"),),
    "READFIRSTLANE without active lanes takes lane 0": (
        (ROWS, "test_readfirstlane_without_active_lanes_takes_lane_0"),),
    "PERMLANE64 does nothing in wave32": ((HERE, "test_permlane64_exchanges_halves_of_wave64_only"),),
    "DPP controls and masks": ((HERE, "test_dpp_controls"), (HERE, "test_dpp_masks_keep_the_destination")),
    "GLOBAL: SGPR pair and unsigned 32-bit VADDR, or 64-bit VADDR": ((HERE, "test_global_addresses"),),
    "offsets are signed, 24 bits on gfx1201": ((HERE, "test_offsets_are_signed"),),
    "scalar loads of bytes take any address": ((HERE, "test_small_scalar_loads_take_any_address"),),
    "SCRATCH is swizzled by lane; SADDR is an offset": ((HERE, "test_scratch_is_swizzled"),),
    "atomics return with GLC or TH[0] only": ((HERE, "test_atomics_return_when_asked"),),
    "DS offsets and two-address scaling": ((HERE, "test_ds_two_addresses"), (ROWS, "test_condxchg_stores_only_marked_words")),
    "DS forms without RTN leave VDST": ((HERE, "test_ds_without_return_leaves_registers"),),
    "PERMUTE wraps at 32 lanes, on gfx1201 at the wave's": ((HERE, "test_bpermute_wraps_at_32_lanes_or_the_waves"),),
    "transposing loads of gfx1201 exchange inside eight lanes": ((HERE, "test_transposing_loads"),),
    "lane 3 of a quad gets no parameter": ((OWN, "test_parameter_loads_spread_three_vertices_over_a_quad"),),
    "buffers out of range read 0": ((HERE, "test_buffers_out_of_range_read_zero"),),
    "SOPK texts of gfx1201 mean the immediate": ((OWN, "test_sopk_texts_mean_the_immediate"),),
    "work-group ids of gfx1201 are in ttmp9 and ttmp7": ((HERE, "test_work_group_ids"),),
    "VDSTY is {field, ~VDSTX[0]}": ((OPERANDS, "test_dual_destination_takes_the_others_low_bit"),),
    "dual halves read before either writes": ((NATIVE, "test_both_halves_of_a_pair_read_before_either_writes"),),
    "dual halves share a literal": ((DECODE, "test_dual_halves_share_fields_and_literal"),),
    "fields lie where the XML says": ((DECODE, "test_golden_encodings_decode_and_encode_back"),),
    "WMMA of RDNA3": ((MATRIX, "test_rdna3_lanes_hold_whole_rows_and_deal_out_results"),),
    "WMMA of RDNA4": ((MATRIX, "test_rdna4_halves_of_k_lie_in_sixteen_lanes_each"),
                      (MATRIX, "test_rdna4_packs_two_rows_of_sixteen_bits_into_a_register")),
    "SWMMAC keeps two of four by an index": ((MATRIX, "test_rdna4_sparse_products_take_what_the_index_keeps"),),
}


def test_every_fact_has_tests_that_exist() -> None:
    for fact, tests in FACTS.items():
        assert tests, fact
        for path, name in tests:
            assert f"def {name}(" in (ROOT / path).read_text(), f"{fact}: {path}::{name}"


@pytest.fixture(params=[(a, t) for a in ARCHES for t in TIERS], ids="-".join)
def run(request: pytest.FixtureRequest) -> Bench:
    return Bench(*request.param)


LANE = list(range(32))
INF, NAN = 0x7F800000, 0x7FC00000

# ---------------------------------------------------------------- numbers


def test_sine_counts_turns(run: Bench) -> None:
    final = run("v_sin_f32 v0, v1\nv_cos_f32 v2, v1\nv_sin_f32 v3, v4", {1: f32(0.25), 4: f32(100.75)})
    assert (final.vgprs[0][0], final.vgprs[2][0], final.vgprs[3][0]) == (f32(1.0), 0, f32(-1.0))


def test_normalised_minus_one(run: Bench) -> None:
    half = ".l" if run.arch == "gfx1201" else ""
    final = run(f"v_cvt_norm_i16_f16 v0{half}, v1{half}\nv_cvt_pk_norm_i16_f32 v2, v3, v3", {1: f16(-1.0), 3: f32(-1.0)})
    assert (final.vgprs[0][0] & 0xFFFF, final.vgprs[2][0]) == (0x8001, 0x80018001)


def test_clamp_of_floats(run: Bench) -> None:
    values = {f32(2.0): f32(1.0), f32(-1.0): 0, f32(0.5): f32(0.5), NAN: 0, f32(-0.0): 0, INF: f32(1.0)}
    mode = KEEP | 1 << 8
    final = run("v_add_f32_e64 v0, v1, 0 clamp", {1: [*values, *[0] * 26]}, mode=mode)
    assert list(final.vgprs[0][: len(values)]) == list(values.values())


def test_clamp_leaves_mul_lo_alone(run: Bench) -> None:
    assert run("v_mul_lo_u32 v0, v1, v1 clamp", {1: 0x80000001}).vgprs[0][0] == 1
    assert run("v_add_nc_u32_e64 v0, v1, v1 clamp", {1: 0x80000001}).vgprs[0][0] == 0xFFFFFFFF


def test_omod_needs_flushed_results_and_no_ieee(run: Bench) -> None:
    doubled, plain = f32(8.0), f32(4.0)
    text, has_ieee = "v_add_f32_e64 v0, v1, v1 mul:2", run.arch == "gfx1100"
    for mode, value in ((FLUSH_F32, doubled), (KEEP, plain), (FLUSH_F32 | IEEE, plain if has_ieee else doubled)):
        assert run(text, {1: f32(2.0)}, mode=mode).vgprs[0][0] == value, hex(mode)


def test_denormals_follow_mode(run: Bench) -> None:
    for mode, kept in ((KEEP, 2), (FLUSH_F32, 0)):
        assert run("v_add_f32 v0, v1, v1", {1: 1}, mode=mode).vgprs[0][0] == kept
    half = ".l" if run.arch == "gfx1201" else ""
    assert run(f"v_add_f16 v0{half}, v1{half}, v1{half}", {1: 1}, mode=FLUSH_F32).vgprs[0][0] & 0xFFFF == 2


def test_sixteen_bit_results_keep_the_other_half(run: Bench) -> None:
    low, high = ("v0.l, v1.l, v1.l", "v0.h, v1.l, v1.h") if run.arch == "gfx1201" else ("v0, v1, v1", "v0, v1, v1 op_sel:[0,1,1]")
    values = {0: 0xAAAABBBB, 1: f16(2.0) << 16 | f16(1.0)}
    assert run(f"v_add_f16_e64 {low}", values).vgprs[0][0] == 0xAAAA0000 | f16(2.0)
    assert run(f"v_add_f16_e64 {high}", values).vgprs[0][0] == f16(3.0) << 16 | 0xBBBB


def test_packed_integers_take_float_constants_as_they_are(run: Bench) -> None:
    assert run("v_pk_add_u16 v0, v1, 1.0", {1: 0x00010001}).vgprs[0][0] == 0x3F810001


def test_packed_instructions_use_both_halves(run: Bench) -> None:
    values = {1: f16(1.0) << 16 | f16(2.0), 2: f16(3.0) << 16 | f16(4.0)}
    assert run("v_pk_add_f16 v0, v1, v2", values).vgprs[0][0] == f16(4.0) << 16 | f16(6.0)
    assert run("v_pk_add_f16 v0, v1, v2 op_sel_hi:[0,1]", values).vgprs[0][0] == f16(5.0) << 16 | f16(6.0)


# ---------------------------------------------------------------- masks and scalars


def test_compares_clear_bits_of_inactive_lanes(run: Bench) -> None:
    final = run("v_cmp_eq_u32 vcc_lo, v0, v0\nv_cmp_ne_u32_e64 s4, v0, v0", s={4: 0xFFFFFFFF}, exec_mask=0x0F0F, vcc=0xFFFFFFFF)
    assert (final.vcc, final.sgprs[4]) == (0x0F0F, 0)


def test_cmpx_writes_exec_only(run: Bench) -> None:
    final = run("v_cmpx_gt_u32 v255, v1", {1: 15}, vcc=0x1234)
    assert (final.exec_mask, final.vcc) == (0xFFFF0000, 0x1234)


def test_vccz_looks_at_the_low_half_in_wave32(run: Bench) -> None:
    final = run("s_cbranch_vccz taken\ns_mov_b32 s4, 1\ntaken:\ns_mov_b32 s5, 1", vcc=1 << 32)
    assert (final.sgprs[4], final.sgprs[5]) == (0, 1)


def test_null_reads_zero_and_drops_writes(run: Bench) -> None:
    final = run("s_mov_b32 s4, null\ns_and_b32 null, s2, s3\ns_mov_b64 s[6:7], null", s={2: 3, 3: 1, 4: 9, 6: 9, 7: 9})
    assert (final.sgprs[4], final.scc, final.sgprs[6:8]) == (0, 1, (0, 0))


def test_m0_is_operand_125(run: Bench) -> None:
    assert assemble(run.arch, "s_mov_b32 m0, 7")[2] & 0x7F == 125
    assert run("s_mov_b32 m0, 7").m0 == 7


def test_carry_in_is_read_first(run: Bench) -> None:
    """The sum goes where the carry comes from in one, the carry out to where it came from in the other."""
    text = "v_add_co_ci_u32_e64 v1, vcc_lo, v1, v2, vcc_lo"
    final = run(text, {1: [0xFFFFFFFF, 5, *[0] * 30], 2: 0}, vcc=0b01, exec_mask=0b11)
    assert (final.vgprs[1][0], final.vgprs[1][1], final.vcc) == (0, 5, 0b01)
    final = run("v_add_co_u32 v1, vcc_lo, v1, v2", {1: 0xFFFFFFFF, 2: 1}, vcc=0xFFFFFFFF, exec_mask=0b10)
    assert final.vcc == 0b10


def test_movrel_counts_registers(run: Bench) -> None:
    assert run("v_movrels_b32 v0, v1", {1: 5, 4: 77}, m0=3).vgprs[0][0] == 77
    assert run("v_movreld_b32 v1, v0", {0: 66}, m0=3).vgprs[4][0] == 66


# ---------------------------------------------------------------- across lanes


def test_permlane64_exchanges_halves_of_wave64_only(run: Bench) -> None:
    assert run("v_permlane64_b32 v0, v255", {0: 9}).vgprs[0] == (9,) * 32
    assert run("v_permlane64_b32 v0, v255", {0: 9}, lanes=64).vgprs[0] == (*range(32, 64), *range(32))


@pytest.mark.parametrize(("control", "source"), [
    ("quad_perm:[3,2,1,0]", lambda i: i ^ 3),
    ("row_shl:1", lambda i: i + 1 if i % 16 < 15 else None),
    ("row_shr:2", lambda i: i - 2 if i % 16 > 1 else None),
    ("row_ror:3", lambda i: i // 16 * 16 + (i - 3) % 16),
    ("row_mirror", lambda i: i ^ 15),
    ("row_half_mirror", lambda i: i ^ 7),
    ("row_share:5", lambda i: i // 16 * 16 + 5),
    ("row_xmask:6", lambda i: i ^ 6),
])  # fmt: skip
def test_dpp_controls(run: Bench, control: str, source: Callable[[int], int | None]) -> None:
    sources = [source(i) for i in LANE]
    plain = run(f"v_mov_b32_dpp v0, v255 {control} row_mask:0xf bank_mask:0xf", {0: 99})
    assert list(plain.vgprs[0]) == [99 if i is None else i for i in sources]
    bound = run(f"v_mov_b32_dpp v0, v255 {control} row_mask:0xf bank_mask:0xf bound_ctrl:1", {0: 99})
    assert list(bound.vgprs[0]) == [0 if i is None else i for i in sources]


def test_dpp_masks_keep_the_destination(run: Bench) -> None:
    final = run("v_mov_b32_dpp v0, v255 row_mirror row_mask:0x1 bank_mask:0x5", {0: 99})
    assert list(final.vgprs[0]) == [i ^ 15 if i < 16 and i // 4 % 2 == 0 else 99 for i in LANE]


def test_bpermute_wraps_at_32_lanes_or_the_waves(run: Bench) -> None:
    assert run("ds_bpermute_b32 v0, v1, v255", {1: [4 * (i + 33) for i in LANE]}).vgprs[0] == tuple((i + 1) % 32 for i in LANE)
    wide = run("ds_bpermute_b32 v0, v1, v255", {1: [4 * (i + 33) for i in range(64)]}, lanes=64)
    halves = tuple(i // 32 * 32 + (i + 1) % 32 for i in range(64))
    assert wide.vgprs[0] == {"gfx1100": halves, "gfx1201": tuple((i + 33) % 64 for i in range(64))}[run.arch]


# ---------------------------------------------------------------- memory


def test_global_addresses(run: Bench) -> None:
    low, high = (DATA - 0x80000000) & 0xFFFFFFFF, (DATA - 0x80000000) >> 32
    values = {1: 0x80000010, 2: DATA + 12 & 0xFFFFFFFF, 3: DATA + 12 >> 32}
    text = "global_load_b32 v0, v1, s[4:5]\nglobal_load_b32 v4, v[2:3], off\nflat_load_b32 v5, v[2:3]"
    final = run(text, values, {4: low, 5: high})
    assert [final.vgprs[r][0] for r in (0, 4, 5)] == [4, 3, 3]


def test_offsets_are_signed(run: Bench) -> None:
    values = {1: 0x40}
    assert run("global_load_b32 v0, v1, s[0:1] offset:-16", values).vgprs[0][0] == 12
    if run.arch == "gfx1201":
        assert run("global_load_b32 v0, v1, s[4:5] offset:-8388608", values, {4: DATA + 0x800000 & 0xFFFFFFFF, 5: DATA >> 32}
                   ).vgprs[0][0] == 16


def test_small_scalar_loads_take_any_address(run: Bench) -> None:
    """Loads of dwords ignore the low two bits of an address, those of bytes do not."""
    assert run("s_load_b32 s4, s[0:1], 0x11").sgprs[4] == 4
    if run.arch == "gfx1201":
        run.data[17:19] = b"\x55\xaa"
        final = run("s_load_u8 s4, s[0:1], 0x11\ns_load_i8 s5, s[0:1], 0x12\ns_buffer_load_u8 s6, s[8:11], 0x12",
                    s={8: DATA & 0xFFFFFFFF, 9: DATA >> 32, 10: 19, 11: 0})
        assert final.sgprs[4:7] == (0x55, 0xFFFFFFAA, 0xAA)


def test_scratch_is_swizzled(run: Bench) -> None:
    run("scratch_store_b32 off, v255, off offset:8\nscratch_store_b32 v1, v255, off", {1: 12})
    assert run.words(SCRATCH + 2 * 128, 64) == LANE + LANE
    run("scratch_store_b32 off, v255, s4 offset:4", s={4: 16})
    assert run.words(SCRATCH + 5 * 128, 32) == LANE


def test_atomics_return_when_asked(run: Bench) -> None:
    asked = "th:TH_ATOMIC_RETURN" if run.arch == "gfx1201" else "glc"
    values = {0: 99, 1: 64, 2: 5}
    assert run("global_atomic_add_u32 v1, v2, s[0:1]", values, exec_mask=1).vgprs[0][0] == 99
    assert run.words(DATA + 64, 1) == [21]
    assert run(f"global_atomic_add_u32 v0, v1, v2, s[0:1] {asked}", values, exec_mask=1).vgprs[0][0] == 21
    assert run.words(DATA + 64, 1) == [26]


def test_ds_two_addresses(run: Bench) -> None:
    text = (
        "ds_store_b32 v1, v2 offset:260\nds_store_2addr_stride64_b32 v1, v3, v4 offset0:2 offset1:3\n"
        "ds_load_2addr_b32 v[6:7], v1 offset0:65 offset1:128\nds_load_b32 v8, v1 offset:768"
    )
    final = run(text, {1: 0, 2: 10, 3: 20, 4: 30})
    assert [final.vgprs[r][0] for r in (6, 7, 8)] == [10, 20, 30]


def test_ds_without_return_leaves_registers(run: Bench) -> None:
    final = run("ds_add_u32 v1, v2\nds_add_rtn_u32 v3, v1, v2", {0: 99, 1: 0, 2: 1, 3: 77}, exec_mask=1)
    assert (final.vgprs[0][0], final.vgprs[3][0]) == (99, 1)


@pytest.mark.parametrize("tier", TIERS)
def test_transposing_loads(tier: str) -> None:
    """As measured: lane L gets element L % 8 of each of the eight lanes that it shares a block with."""
    bench = Bench("gfx1201", tier)
    bench.data[:] = b"".join(i.to_bytes(2, "little") for i in range(0x2000))
    final = bench("global_load_tr_b128 v[4:7], v1, s[0:1]", {1: [16 * lane for lane in LANE]})
    for lane in LANE:
        got = [final.vgprs[4 + e // 2][lane] >> 16 * (e % 2) & 0xFFFF for e in range(8)]
        assert got == [8 * (lane // 8 * 8 + e) + lane % 8 for e in range(8)]


def test_buffers_out_of_range_read_zero(run: Bench) -> None:
    descriptor = {4: DATA & 0xFFFFFFFF, 5: DATA >> 32, 6: 16, 7: 0x31000000}
    null = "null" if run.arch == "gfx1201" else "0"
    final = run(f"buffer_load_b32 v0, v1, s[4:7], {null} offen\nbuffer_load_b32 v2, v1, s[4:7], {null} offen offset:4",
                {1: [4 * i for i in LANE]}, descriptor)
    assert final.vgprs[0] == (0, 1, 2, 3) + (0,) * 28
    assert final.vgprs[2] == (1, 2, 3) + (0,) * 29


# ---------------------------------------------------------------- start of a wave


def test_work_group_ids(run: Bench) -> None:
    """gfx1201: x in ttmp9, y and z in ttmp7; gfx1100: in the SGPRs after the user's, as RSRC2 asks."""
    x, yz = ("ttmp9", "ttmp7") if run.arch == "gfx1201" else ("s2", "s3")
    text = f"""
      s_lshl_b32 s8, {x}, 3
      v_mov_b32 v1, s8
      v_mov_b32 v2, {x}
      v_mov_b32 v3, {yz}
      global_store_b64 v1, v[2:3], s[0:1]
      s_endpgm"""
    run.space.write(CODE, assemble(run.arch, text))
    rsrc2 = 2 << 1 | 1 << 7 | 1 << 8
    launch = Launch(CODE, 0xF0 << 12, rsrc2, 0, (DATA & 0xFFFFFFFF, DATA >> 32), (96, 2, 1), (32, 2, 1), 32, 0, 0, 0, "ids")
    run.executor.run(run.space, launch, RunOptions())
    assert run.words(DATA, 6) == [0, 0, 1, 0, 2, 0]
