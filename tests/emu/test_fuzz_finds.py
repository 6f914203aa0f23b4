"""What random instructions found to be different on the two tiers, one test for each kind of fault."""

from __future__ import annotations

import pytest

from stuntgpu.emu.fuzz.case import assert_tiers_agree
from stuntgpu.emu.fuzz.setup import MIDDLE, SEAM, SIZE

SEAM_VA = MIDDLE - SIZE // 2 + SEAM
BASE = {0: MIDDLE & 0xFFFF_FFFF, 1: MIDDLE >> 32}


@pytest.mark.parametrize("text", ["v_pk_fma_f16 v0, v1, src_scc, 1.0 op_sel_hi:[0,0,0]", "v_pk_mul_f16 v0, v1, src_scc neg_lo:[0,1]",
                                  "v_sub_f32 v0, v1, -src_scc", "v_max_f32 v0, |src_scc|, -v1"])
@pytest.mark.parametrize("arch", ["gfx1100", "gfx950"])
def test_scc_as_a_source_takes_modifiers(arch: str, text: str) -> None:
    assert_tiers_agree(arch, text, lanes=64, v={1: 0x4080_0000}, scc=1)


@pytest.mark.parametrize("text", ["buffer_load_u8 v0, off, null, s0", "buffer_atomic_add_u32 v0, off, null, s0",
                                  "buffer_store_b32 v0, off, null, s0"])
@pytest.mark.parametrize("m0", [0, 0x100])
def test_null_as_a_descriptor_is_an_empty_buffer(text: str, m0: int) -> None:
    assert_tiers_agree("gfx1100", text, lanes=32, v={0: 7}, exec_mask=0xF, m0=m0)


def test_constants_and_state_as_descriptors_are_not_modelled() -> None:
    assert_tiers_agree("gfx1201", "008014c400fa010000000000", lanes=32, scc=1)  # src_scc
    assert_tiers_agree("gfx1201", "00c00dc400dc010000000000", lanes=64)  # src_private_limit


@pytest.mark.parametrize("code", ["00c00cc40000000000000080", "00800dc40000000000700b87", "148009c40000000000fcffff"])
def test_offsets_of_gfx12_buffers_have_no_sign(code: str) -> None:
    assert_tiers_agree("gfx1201", code, lanes=32, s={2: 0x7D0, 3: 0x3083_C06C, 20: 0x40}, exec_mask=3)


@pytest.mark.parametrize("code", ["0034c8d32005e702", "0055e1d30e010a06", "0052c5d3b3f10702", "0052d0d308f95304"])
def test_mfma_shares_no_more_blocks_than_there_are(code: str) -> None:
    assert_tiers_agree("gfx942", code, lanes=64, v={2: list(range(64)), 32: list(range(64)), 179: list(range(64)), 8: 0x0101_0101})


@pytest.mark.parametrize("text", ["ds_write2_b64 v0, v[2:3], v[4:5] offset1:54", "ds_write2_b32 v0, v2, v3 offset1:1",
                                  "ds_write2st64_b32 v0, v2, v3 offset1:1"])
def test_pairs_of_stores_go_lane_by_lane(text: str) -> None:
    v = {0: [0x480 + 4 * i for i in range(64)], 2: list(range(64)), 3: list(range(100, 164)), 4: 5, 5: 6}
    assert_tiers_agree("gfx942", text, lanes=64, v=v, exec_mask=(1 << 64) - 1)


@pytest.mark.parametrize("target", [0, 4, 1 << 63, (1 << 64) - 4])
def test_far_jumps_fault_where_they_land(target: int) -> None:
    for s in ({8: target & 0xFFFF_FFFF, 9: target >> 32}, {8: 0, 9: 0}):
        assert_tiers_agree("gfx942", "s_setpc_b64 s[8:9]", lanes=64, s=s)


def test_faults_of_code_end_and_of_branches_read_alike() -> None:
    assert_tiers_agree("gfx1100", "s_code_end", lanes=32)
    assert_tiers_agree("gfx1100", "ffff00bb", lanes=64, exec_mask=0)  # a loop of one instruction


def test_scalar_loads_from_the_scratch_aperture_are_page_faults() -> None:
    assert_tiers_agree("gfx950", "s_load_dwordx4 s[4:7], s[0:1], 0x0", lanes=64, s={0: 0, 1: 0x20000})


def test_global_accesses_to_the_scratch_aperture_are_page_faults() -> None:
    assert_tiers_agree("gfx1201", "global_load_b32 v0, v0, s[0:1]", lanes=64, s={0: 0, 1: 0x20000})


def test_blocks_of_registers_are_stored_across_two_regions() -> None:
    text = "global_store_block v13, v[0:31], s[0:1] offset:-1"
    assert_tiers_agree("gfx1201", text, lanes=32, v={13: SEAM_VA - MIDDLE, 2: 0x0102_0304}, s=BASE, m0=0x5, exec_mask=3)


@pytest.mark.parametrize("text", ["s_buffer_load_b64 s[4:5], s[0:3], s8 offset:-1", "buffer_load_b32 v0, v1, s[0:3], s8 offen",
                                  "buffer_atomic_add_u32 v0, v1, s[0:3], s8 offen"])
def test_places_at_the_end_of_all_addresses_are_outside_of_small_buffers(text: str) -> None:
    for offset in (0xFFFF_FFFF, 0xFFFF_FFFC, 0):
        assert_tiers_agree("gfx1100", text, lanes=32, s={8: offset, 3: 0x3000_0000}, v={1: 0xFFFF_FFFC})


@pytest.mark.parametrize("source", ["src_shared_limit", "src_private_base", "1.0"])
def test_mfma_starts_from_constants_of_every_kind(source: str) -> None:
    code = {"src_shared_limit": "0000efd3800db203", "src_private_base": "0000efd3800db603", "1.0": "0000efd3800dca03"}[source]
    assert_tiers_agree("gfx942", code, lanes=64, v={6: 0x3FF0_0000, 7: 0x3FF0_0000, 128: 1, 129: 0x4000_0000})


def test_transposing_loads_of_longer_waves_are_not_built_whatever_lanes_are_on() -> None:
    assert_tiers_agree("gfx1201", "000016ee0000000000000000", lanes=64, exec_mask=0)


@pytest.mark.parametrize(("text", "inf", "most"), [("v_cvt_sr_bf16_f32 v0, v1, v2", 0x7F80, 0x7F80), ("v_cvt_sr_f16_f32 v0, v1, v2", 0x7C00, 0x7BFF)])
@pytest.mark.parametrize("overflow", [0, 1 << 23])
def test_stochastic_conversions_keep_infinities_and_bound_f16_alone(text: str, inf: int, most: int, overflow: int) -> None:
    v = {1: {0: 0x7F80_0000, 1: 0x7F7F_FFFF}, 2: 0xFFFF_FFFF}
    final = assert_tiers_agree("gfx950", text, lanes=64, v=v, exec_mask=3, mode=0xF0 | overflow).final
    assert final is not None
    assert [x & 0xFFFF for x in final.vgprs[0][:2]] == [inf, most if overflow else inf]


def test_sdwa_picks_its_part_where_lanes_go_one_by_one() -> None:
    assert_tiers_agree("gfx950", "f96e007ef7000100", lanes=64, v={247: {0: 0x8420_989B}})  # v_screen_partition_4se_b32_sdwa
