"""What the reference does on CDNA only: SDWA, DPP over a wave, AccVGPRs, masks, memory of GFX9."""

from __future__ import annotations

import struct

import pytest

from stuntgpu.emu.faults import KernelFault
from stuntgpu.emu.state import GOLDEN_MODE
from tests.emu.cdna import ALL, DATA, LANES, Bench, pair

LANE = list(range(LANES))


def f32(x: float) -> int:
    return int.from_bytes(struct.pack("<f", x), "little")


def f16(x: float) -> int:
    return int.from_bytes(struct.pack("<e", x), "little")


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench()


# ---------------------------------------------------------------- SDWA


@pytest.mark.parametrize(
    ("select", "value"),
    [("BYTE_0", 0xC4), ("BYTE_1", 0x93), ("BYTE_2", 0x82), ("BYTE_3", 0xF1), ("WORD_0", 0x93C4), ("WORD_1", 0xF182),
     ("DWORD", 0xF18293C4)],
)  # fmt: skip
def test_sdwa_selects_a_part_of_a_source(bench: Bench, select: str, value: int) -> None:
    out = bench.run(f"v_mov_b32_sdwa v1, v0 dst_sel:DWORD src0_sel:{select}", v={0: 0xF18293C4})
    assert out.vgprs[1][5] == value
    signed = bench.run(f"v_add_u32_sdwa v1, sext(v0), v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:{select} src1_sel:DWORD",
                       v={0: 0xF18293C4, 2: 0})
    bits = {"B": 8, "W": 16, "D": 32}[select[0]]
    assert signed.vgprs[1][5] == (value | ~((1 << bits) - 1) & 0xFFFF_FFFF)


@pytest.mark.parametrize(
    ("unused", "value"), [("UNUSED_PAD", 0x00F5_0000), ("UNUSED_SEXT", 0xFFF5_0000), ("UNUSED_PRESERVE", 0xAAF5_AAAA)]
)
def test_sdwa_places_the_result(bench: Bench, unused: str, value: int) -> None:
    out = bench.run(f"v_add_u32_sdwa v1, v0, v2 dst_sel:BYTE_2 dst_unused:{unused} src0_sel:DWORD src1_sel:DWORD",
                    v={0: 0x1F0, 1: 0xAAAA_AAAA, 2: 5})
    assert out.vgprs[1][63] == value


def test_sdwa_modifiers_follow_the_selection(bench: Bench) -> None:
    out = bench.run("v_add_f16_sdwa v1, -|v0|, v2 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_1 src1_sel:WORD_0",
                    v={0: f16(-3.0) << 16, 1: 0x1111, 2: f16(1.0)})
    assert out.vgprs[1][0] == f16(-2.0) << 16 | 0x1111


def test_sdwa_compares_into_a_named_mask_and_takes_scalars(bench: Bench) -> None:
    out = bench.run("v_cmp_eq_u32_sdwa s[4:5], s2, v0 src0_sel:BYTE_1 src1_sel:DWORD", v={0: LANE}, s={2: 0x0700})
    assert out.sgprs[4:6] == (1 << 7, 0)


@pytest.mark.parametrize(("arch", "one"), [("gfx942", 0x40), ("gfx950", 0x38)])
def test_sdwa_picks_the_small_float(arch: str, one: int) -> None:
    out = Bench(arch).run("v_cvt_f32_fp8_sdwa v1, v0 src0_sel:BYTE_2\nv_cvt_pk_f32_fp8_sdwa v[2:3], v0 src0_sel:WORD_1",
                          v={0: one << 16})
    assert (out.vgprs[1][0], out.vgprs[2][0], out.vgprs[3][0]) == (f32(1.0), f32(1.0), 0)


# ---------------------------------------------------------------- halves, pairs, masks


def test_results_of_sixteen_bits_clear_the_upper_half(bench: Bench) -> None:
    out = bench.run("v_add_f16_e32 v1, v0, v0\nv_fma_mixlo_f16 v2, v0, v0, v0 op_sel_hi:[1,1,1]",
                    v={0: f16(1.0), 1: 0xFFFF_FFFF, 2: 0xFFFF_FFFF})
    assert out.vgprs[1][0] == f16(2.0)
    assert out.vgprs[2][0] == 0xFFFF_0000 | f16(2.0)


def test_some_results_of_sixteen_bits_keep_the_upper_half(bench: Bench) -> None:
    out = bench.run("v_fma_f16 v1, v0, v0, v0\nv_fma_legacy_f16 v2, v0, v0, v0", v={0: f16(1.0), 1: 0xFFFF_0000, 2: 0xFFFF_0000})
    assert (out.vgprs[1][0], out.vgprs[2][0]) == (0xFFFF_0000 | f16(2.0), f16(2.0))


def test_op_sel_writes_the_high_half_and_keeps_the_low(bench: Bench) -> None:
    out = bench.run("v_mad_u16 v1, v0, v0, v0 op_sel:[1,0,0,1]", v={0: 0x0003_0002, 1: 0xAAAA_BBBB})
    assert out.vgprs[1][0] == 8 << 16 | 0xBBBB


def test_loads_of_sixteen_bits_keep_the_other_half(bench: Bench) -> None:
    out = bench.run("global_load_short_d16_hi v1, v0, s[0:1] offset:2", v={0: 0, 1: 0xFFFF_EEEE}, s=pair(DATA))
    assert out.vgprs[1][0] == 0x0302_EEEE


def test_packed_f32_op_sel_picks_a_register_of_each_pair(bench: Bench) -> None:
    v = {0: f32(1.0), 1: f32(2.0), 2: f32(10.0), 3: f32(20.0)}
    plain = bench.run("v_pk_add_f32 v[4:5], v[0:1], v[2:3]", v=v).vgprs
    assert (plain[4][0], plain[5][0]) == (f32(11.0), f32(22.0))
    crossed = bench.run("v_pk_add_f32 v[4:5], v[0:1], v[2:3] op_sel:[1,0] op_sel_hi:[0,1] neg_lo:[0,1]", v=v).vgprs
    assert (crossed[4][0], crossed[5][0]) == (f32(-8.0), f32(21.0))
    moved = bench.run("v_pk_mov_b32 v[4:5], v[0:1], v[2:3] op_sel:[1,0]", v=v).vgprs
    assert (moved[4][0], moved[5][0]) == (f32(2.0), f32(10.0))
    constant = bench.run("v_pk_mul_f32 v[4:5], v[0:1], 2.0", v=v).vgprs
    assert (constant[4][0], constant[5][0]) == (f32(2.0), f32(4.0))


def test_cmpx_writes_exec_and_the_mask(bench: Bench) -> None:
    out = bench.run("v_cmpx_lt_u32_e32 vcc, v0, v1", v={0: LANE, 1: 4}, exec_mask=0b1111_0110, vcc=ALL)
    assert out.exec_mask == out.vcc == 0b0110
    named = bench.run("v_cmpx_lt_u32_e64 s[4:5], v0, v1", v={0: LANE, 1: 4}, exec_mask=0b1111_0110, vcc=5)
    assert (named.exec_mask, named.sgprs[4], named.vcc) == (0b0110, 0b0110, 5)


def test_m0_is_operand_124_and_there_is_no_null(bench: Bench) -> None:
    out = bench.run("s_mov_b32 m0, 0x1234\ns_add_u32 s3, m0, 1")
    assert out.m0 == 0x1234
    assert out.sgprs[3] == 0x1235


# ---------------------------------------------------------------- DPP


@pytest.mark.parametrize(
    ("control", "source"),
    [
        ("wave_shl:1", [*range(1, 64), None]), ("wave_rol:1", [*range(1, 64), 0]),
        ("wave_shr:1", [None, *range(63)]), ("wave_ror:1", [63, *range(63)]),
        ("row_bcast:15", [None] * 16 + [15] * 16 + [31] * 16 + [47] * 16), ("row_bcast:31", [None] * 32 + [31] * 32),
        ("row_newbcast:3", [lane & ~15 | 3 for lane in range(64)]),
    ],
)  # fmt: skip
def test_dpp_moves_over_the_wave(bench: Bench, control: str, source: list[int | None]) -> None:
    values = [100 + lane for lane in LANE]
    out = bench.run(f"v_mov_b32_dpp v1, v0 {control} row_mask:0xf bank_mask:0xf", v={0: values, 1: 7})
    assert list(out.vgprs[1]) == [7 if s is None else values[s] for s in source]
    zero = bench.run(f"v_mov_b32_dpp v1, v0 {control} row_mask:0xf bank_mask:0xf bound_ctrl:0", v={0: values, 1: 7})
    assert list(zero.vgprs[1]) == [0 if s is None else values[s] for s in source]


# ---------------------------------------------------------------- AccVGPRs


def test_accumulation_registers_are_a_bank_of_their_own(bench: Bench) -> None:
    out = bench.run("v_accvgpr_write_b32 a1, v0\nv_accvgpr_mov_b32 a2, a1\nv_accvgpr_read_b32 v3, a2", v={0: LANE, 1: 9})
    assert list(out.agprs[2]) == list(out.vgprs[3]) == LANE
    assert out.vgprs[1][0] == 9


def test_memory_loads_and_stores_accumulation_registers(bench: Bench) -> None:
    bench.data[0:8] = struct.pack("<II", 11, 22)
    out = bench.run("global_load_dwordx2 a[4:5], v0, s[0:1]\nds_write_b32 v0, a5 offset:16\nds_read_b32 a6, v0 offset:16\n"
                    "global_store_dword v0, a6, s[0:1] offset:64", v={0: 0}, s=pair(DATA))
    assert (out.agprs[4][0], out.agprs[5][0], out.agprs[6][0]) == (11, 22, 22)
    assert bench.words(DATA + 64, 1) == [22]


def test_data_exchange_with_accumulation_registers(bench: Bench) -> None:
    out = bench.run("v_accvgpr_write_b32 a1, v0\nds_bpermute_b32 a2, v1, a1", v={0: LANE, 1: [4 * (63 - i) for i in LANE]})
    assert list(out.agprs[2]) == LANE[::-1]


# ---------------------------------------------------------------- memory


def test_flat_offset_is_unsigned_and_global_offset_signed(bench: Bench) -> None:
    address = {0: (DATA + 8) & 0xFFFF_FFFF, 1: DATA >> 32}
    out = bench.run("global_load_ubyte v2, v[0:1], off offset:-8\nflat_load_ubyte v3, v[0:1] offset:4095", v=address)
    assert (out.vgprs[2][0], out.vgprs[3][0]) == (bench.data[0][0], (8 + 4095) & 0xFF)


def test_scalar_stores_and_atomics(bench: Bench) -> None:
    bench.space.write(DATA, struct.pack("<4I", 5, 6, 7, 8))
    out = bench.run("s_store_dwordx2 s[4:5], s[0:1], 0x20\ns_mov_b32 s8, 8\ns_load_dword s9, s[0:1], s8 offset:0x4\n"
                    "s_atomic_add s4, s[0:1], 0x4 glc\ns_atomic_cmpswap s[6:7], s[0:1], 0x8",
                    s=pair(DATA) | {4: 100, 5: 200, 6: 9, 7: 7})
    assert bench.words(DATA, 4) == [5, 106, 9, 8]
    assert bench.words(DATA + 0x20, 2) == [100, 200]
    assert (out.sgprs[4], out.sgprs[6], out.sgprs[9]) == (6, 9, 8)


def test_scalar_scratch_counts_units_of_a_wave(bench: Bench) -> None:
    bench.run("s_mov_b32 s8, 2\ns_scratch_store_dword s4, s[0:1], s8\ns_scratch_store_dword s5, s[0:1], 0x8",
              s=pair(DATA) | {4: 77, 5: 78})
    assert bench.words(DATA + 2 * 64, 1) == [77]
    assert bench.words(DATA + 8, 1) == [78]


def test_clocks_go_forward(bench: Bench) -> None:
    out = bench.run("s_memtime s[2:3]\ns_memrealtime s[6:7]\ns_sleep 1\ns_memtime s[4:5]\ns_memrealtime s[8:9]")
    assert out.sgprs[2] < out.sgprs[4]
    assert out.sgprs[6] < out.sgprs[8]


def descriptor(records: int, stride: int = 0, word3: int = 0x27000) -> dict[int, int]:
    return {4: DATA & 0xFFFF_FFFF, 5: DATA >> 32 | stride << 16, 6: records, 7: word3}


def test_raw_buffers_count_bytes_and_read_zero_beyond(bench: Bench) -> None:
    bench.space.write(DATA, struct.pack("<16I", *range(1, 17)))
    for scalar, first in ((0, 1), (4, 2)):  # a scalar offset moves the bounds as well
        out = bench.run(f"buffer_load_dword v1, v0, s[4:7], {scalar} offen", v={0: [4 * i for i in LANE]},
                        s=descriptor(records=32))
        assert list(out.vgprs[1][:10]) == [*range(first, first + 8), 0, 0]


def test_structured_buffers_count_records(bench: Bench) -> None:
    bench.space.write(DATA, struct.pack("<16I", *range(1, 17)))
    out = bench.run("buffer_load_dword v1, v0, s[4:7], 4 idxen offset:4", v={0: LANE}, s=descriptor(records=3, stride=8))
    assert list(out.vgprs[1][:5]) == [3, 5, 7, 0, 0]


def test_typed_buffers_convert_by_data_and_number_format(bench: Bench) -> None:
    bench.space.write(DATA, bytes([255, 0, 128, 51]))
    s = descriptor(records=64, word3=0xFAC)  # channels X Y Z W
    out = bench.run("tbuffer_load_format_xyzw v[2:5], off, s[4:7], 0 format:[BUF_DATA_FORMAT_8_8_8_8,BUF_NUM_FORMAT_UINT]\n"
                    "tbuffer_store_format_x v6, off, s[4:7], 0 format:[BUF_DATA_FORMAT_16,BUF_NUM_FORMAT_UNORM] offset:8",
                    v={6: f32(1.0)}, s=s)
    assert [out.vgprs[r][0] for r in (2, 3, 4, 5)] == [255, 0, 128, 51]
    assert bench.words(DATA + 8, 1)[0] & 0xFFFF == 0xFFFF


def test_buffer_loads_into_lds(bench: Bench) -> None:
    bench.space.write(DATA, struct.pack("<64I", *range(500, 564)))
    out = bench.run("buffer_load_dword v0, s[4:7], 0 offen offset:8 lds", v={0: [4 * i for i in LANE]},
                    s=descriptor(records=1 << 20), m0=0x40, exec_mask=0b101)
    assert struct.unpack_from("<4I", out.lds, 0x48) == (502, 0, 504, 0)


@pytest.mark.parametrize(("n", "row"), [(4, (500, 501, 502, 503)), (3, (500, 501, 502, 0))])
def test_global_loads_into_lds_take_rows_of_sixteen_bytes(bench: Bench, n: int, row: tuple[int, ...]) -> None:
    bench.space.write(DATA, struct.pack("<64I", *range(500, 564)))
    out = bench.run(f"global_load_lds_dwordx{n} v0, s[0:1]", v={0: 0}, s=pair(DATA), m0=0x13, exec_mask=3)
    assert struct.unpack_from("<9I", out.lds, 0x10) == (*row, *row, 0)


@pytest.mark.parametrize(
    ("name", "bits", "width"),
    [("ds_read_b64_tr_b16", 16, 64), ("ds_read_b64_tr_b8", 8, 64), ("ds_read_b64_tr_b4", 4, 64), ("ds_read_b96_tr_b6", 6, 96)],
)  # fmt: skip
def test_transposing_loads_give_columns(bench: Bench, name: str, bits: int, width: int) -> None:
    """Sixteen lanes hold `count` rows of sixteen elements; each lane gets a column."""
    count, n = width // bits, width // 32
    elements = [(row * 16 + column) * 37 % (1 << bits) for row in range(count) for column in range(16)]
    packed = sum(x << bits * i for i, x in enumerate(elements)).to_bytes(16 * width // 8, "little")
    text = [f"v_mov_b32 v1, 0x{int.from_bytes(packed[4 * i : 4 * i + 4], 'little'):x}\nds_write_b32 v2, v1 offset:{4 * i}"
            for i in range(4 * width // 8)]
    out = bench.run("\n".join([*text, f"{name} v[4:{3 + n}], v0"]), v={0: [width // 8 * (i % 16) for i in LANE], 2: 0})
    for lane in (0, 5, 15, 63):
        got = sum(out.vgprs[4 + i][lane] << 32 * i for i in range(n))
        assert [got >> bits * row & ((1 << bits) - 1) for row in range(count)] == elements[lane % 16 :: 16]


# ---------------------------------------------------------------- program control


def test_gpr_index_mode_shifts_register_numbers(bench: Bench) -> None:
    out = bench.run("s_set_gpr_idx_on s0, gpr_idx(SRC0,DST)\nv_mov_b32_e32 v1, v2\ns_set_gpr_idx_off\nv_mov_b32_e32 v20, v2",
                    v={2: 22, 5: 55}, s={0: 3})
    assert (out.vgprs[4][0], out.vgprs[1][0], out.vgprs[20][0]) == (55, 0, 22)
    assert out.mode == GOLDEN_MODE


def test_vskip_passes_over_vector_instructions(bench: Bench) -> None:
    out = bench.run("s_setvskip 1, 0\nv_mov_b32 v1, 7\nds_write_b32 v0, v2\ns_mov_b32 s2, 5\ns_setvskip 0, 0\n"
                    "v_mov_b32 v3, 9", v={0: 0, 2: 77})
    assert (out.vgprs[1][0], out.lds[0], out.sgprs[2], out.vgprs[3][0]) == (0, 0, 5, 9)


def test_fork_runs_both_sides_with_their_lanes(bench: Bench) -> None:
    """The side of fewer lanes goes first; the wave goes on with the lanes of the other."""
    text = ("s_getpc_b64 s[4:5]\nbase: s_add_u32 s4, s4, other-base\ns_addc_u32 s5, s5, 0\n"
            "s_mov_b64 s[8:9], 0xff\ns_cbranch_g_fork s[8:9], s[4:5]\nv_mov_b32 v1, 1\ns_branch join\n"
            "other: v_mov_b32 v1, 2\njoin: s_cbranch_join s10\nv_add_u32 v1, v1, 10")
    out = bench.run(text, s={10: 0})
    assert list(out.vgprs[1]) == [2 if lane < 8 else 11 for lane in LANE]
    assert out.exec_mask == (1 << 64) - 256


def test_what_is_not_built_says_so(bench: Bench) -> None:
    with pytest.raises(KernelFault, match="global wave sync"):
        bench.run("ds_gws_sema_v gds")
