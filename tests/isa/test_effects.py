"""What `reads_writes` says of instructions whose facts are known from the manuals."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stuntgpu import isa
from stuntgpu.isa.arch import ARCHES
from stuntgpu.isa.decode import DecodeError, decode
from stuntgpu.isa.effects import Access, Effects, Exec, File, Flow, Lanes, Use, reads_writes
from stuntgpu.isa.inst import Inst
from stuntgpu.isa.samples import samples
from tests.isa import candidates


def facts(text: str, arch: str = "gfx1100", wave_lanes: int = 0) -> Effects:
    return reads_writes(Inst.from_text(arch, text), wave_lanes)


def named(accesses: tuple[Access, ...], *uses: Use) -> set[str]:
    """Names of accesses for any of `uses`; VALUE and ADDRESS when none is given."""
    return {str(a) for a in accesses if a.use in (uses or (Use.VALUE, Use.ADDRESS))}


# ---------------------------------------------------------------- which registers


@pytest.mark.parametrize(("arch", "text", "reads", "writes"), [
    ("gfx1100", "v_add_nc_u32 v0, v1, s2", "v1 s2", "v0"),
    ("gfx1100", "v_add_f32 v0, v1, v2", "v1 v2 mode", "v0"),
    ("gfx1100", "v_add_f16 v0.h, v1.l, v2.h", "v1.l v2.h mode", "v0.h"),
    ("gfx1100", "v_add_nc_u32 v0, 1, v2", "v2", "v0"),
    ("gfx1100", "v_add_co_ci_u32 v0, s4, v1, v2, s6", "v1 v2 s6", "v0 s4"),
    ("gfx1100", "v_add_co_ci_u32 v0, null, v1, v2, s6", "v1 v2 s6", "v0"),
    ("gfx1100", "v_mad_u64_u32 v[0:1], s4, v2, v3, v[4:5]", "v2 v3 v[4:5]", "v[0:1] s4"),
    ("gfx1100", "v_cndmask_b32 v0, v1, v2, vcc_lo", "v1 v2 vcc_lo", "v0"),
    ("gfx1100", "v_cmpx_lt_u32 v0, v1", "v0 v1", "exec_lo"),
    ("gfx942", "v_cmpx_lt_u32_e64 s[4:5], v0, v1", "v0 v1", "exec s[4:5]"),
    ("gfx942", "v_cmpx_class_f32 vcc, v0, v1", "v0 v1", "exec vcc"),
    ("gfx1100", "v_swap_b32 v0, v1", "v0 v1", "v0 v1"),
    ("gfx1100", "s_and_saveexec_b32 s4, s5", "exec_lo s5", "s4 exec_lo scc"),
    ("gfx1100", "s_addc_u32 s0, s1, src_scc", "s1 scc", "s0 scc"),
    ("gfx1100", "s_mov_b64 null, s[0:1]", "s[0:1]", ""),
    ("gfx1100", "s_mov_b32 m0, ttmp3", "ttmp3", "m0"),
    ("gfx942", "s_cselect_b64 vcc, s[0:1], src_execz", "scc s[0:1] exec", "vcc"),
    ("gfx1100", "s_cbranch_vccz 4", "vcc_lo pc", "pc"),
    ("gfx1100", "s_call_b64 s[30:31], 8", "pc", "s[30:31] pc"),
    ("gfx1100", "s_setreg_imm32_b32 hwreg(HW_REG_MODE), 3", "mode", "mode"),
    ("gfx1100", "s_getreg_b32 s0, hwreg(HW_REG_HW_ID1)", "hw_id1", "s0"),
    ("gfx1100", "v_fma_mixhi_f16 v0, v1, v2, v3", "v1 v2 v3 mode", "v0.h"),
    ("gfx1100", "v_pk_add_u16 v0, v1, v2 op_sel:[1,0] op_sel_hi:[1,1]", "v1.h v2", "v0"),
    ("gfx942", "v_accvgpr_write_b32 a3, v4", "v4", "a3"),
    ("gfx942", "v_mfma_f32_4x4x4_16b_f16 a[0:3], v[4:5], a[6:7], a[0:3]", "v[4:5] a[6:7] a[0:3]", "a[0:3]"),
    ("gfx942", "v_add_u32_sdwa v0, v1, v2 dst_sel:BYTE_1 dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD", "v1.h v2", "v0"),
    ("gfx1201", "s_add_f32 s0, s1, s2", "s1 s2 mode", "s0"),
])  # fmt: skip
def test_registers(arch: str, text: str, reads: str, writes: str) -> None:
    e = facts(text, arch)
    assert named(e.reads) == set(reads.split())
    assert named(e.writes) == set(writes.split())


@pytest.mark.parametrize(("arch", "text", "address", "values", "writes"), [
    ("gfx1100", "global_load_b64 v[0:1], v2, s[4:5]", "v2 s[4:5]", "", "v[0:1]"),
    ("gfx1100", "global_load_b64 v[0:1], v[2:3], off", "v[2:3]", "", "v[0:1]"),
    ("gfx1100", "global_store_b96 v2, v[4:6], s[4:5]", "v2 s[4:5]", "v[4:6]", ""),
    ("gfx1100", "global_atomic_cmpswap_b32 v0, v1, v[2:3], s[4:5] glc", "v1 s[4:5]", "v[2:3]", "v0"),
    ("gfx1100", "global_atomic_cmpswap_b32 v1, v[2:3], s[4:5]", "v1 s[4:5]", "v[2:3]", ""),
    ("gfx1100", "buffer_load_b32 v0, off, s[8:11], s3", "s[8:11] s3", "", "v0"),
    ("gfx1100", "buffer_load_b32 v0, v1, s[8:11], 0 offen", "v1 s[8:11]", "", "v0"),
    ("gfx1100", "buffer_load_b32 v0, v[1:2], s[8:11], m0 idxen offen", "v[1:2] s[8:11] m0", "", "v0"),
    ("gfx1100", "s_buffer_load_b64 s[0:1], s[4:7], s2 offset:4", "s[4:7] s2", "", "s[0:1]"),
    ("gfx1100", "ds_store_2addr_b32 v0, v1, v2 offset1:1", "v0", "v1 v2", ""),
    ("gfx942", "ds_read_b32 a0, v1", "v1", "", "a0"),
    ("gfx942", "buffer_load_dword off, s[8:11], s3 lds", "s[8:11] s3 m0", "", ""),
    ("gfx1100", "image_load v[0:1], v[4:5], s[8:15] dmask:0x3 dim:SQ_RSRC_IMG_2D", "v[4:5] s[8:15]", "", "v[0:1]"),
    ("gfx1100", "image_sample v0, v[4:6], s[8:15], s[0:3] dmask:0x1 dim:SQ_RSRC_IMG_3D", "v[4:6] s[8:15] s[0:3]", "", "v0"),
    ("gfx1201", "image_load v0, [v4, v9], s[8:15] dmask:0x1 dim:SQ_RSRC_IMG_2D", "v4 v9 s[8:15]", "", "v0"),
])  # fmt: skip
def test_addresses_and_data(arch: str, text: str, address: str, values: str, writes: str) -> None:
    e = facts(text, arch)
    assert named(e.reads, Use.ADDRESS) == set(address.split())
    assert named(e.reads, Use.VALUE) == set(values.split())
    assert named(e.writes) == set(writes.split())


def test_lane_masks_have_the_size_of_the_wave() -> None:
    assert {str(a) for a in facts("v_cmp_eq_u32 vcc_lo, v0, v1").writes} == {"vcc_lo"}
    assert {str(a) for a in facts("v_cmp_eq_u32 vcc_lo, v0, v1", wave_lanes=64).writes} == {"vcc"}
    with pytest.raises(ValueError, match="no waves of 32"):
        facts("s_nop 0", "gfx942", 32)


def test_relative_registers_are_any() -> None:
    e = facts("v_movrels_b32 v0, v1")
    (dynamic,) = (a for a in e.reads if a.dynamic)
    assert (dynamic.file, dynamic.count, dynamic.field, dynamic.certain) == (File.VGPR, 256, "SRC0", False)
    assert "m0" in named(e.reads)


# ---------------------------------------------------------------- what stays


@pytest.mark.parametrize(("arch", "text", "kept"), [
    ("gfx1100", "v_mov_b32_dpp v0, v1 row_shr:1 row_mask:0xf bank_mask:0xf", "v0"),
    ("gfx1100", "v_mov_b32_dpp v0, v1 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1", ""),
    ("gfx1100", "v_mov_b32_dpp v0, v1 row_shr:1 row_mask:0x3 bank_mask:0xf bound_ctrl:1", "v0"),
    ("gfx1100", "global_load_d16_b16 v0, v[2:3], off", "v0.h"),
    ("gfx1100", "global_load_d16_hi_b16 v0, v[2:3], off", "v0.l"),
    ("gfx942", "v_add_u32_sdwa v0, v1, v2 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD src1_sel:DWORD", "v0.l"),
    ("gfx942", "v_add_f16 v0, v1, v2", ""),
    ("gfx1100", "v_add_f16 v0.l, v1.l, v2.l", "v0.h"),
    ("gfx1100", "s_cmov_b32 s0, s1", "s0"),
    ("gfx1100", "v_writelane_b32 v0, s1, s2", "v0"),
])  # fmt: skip
def test_what_stays_of_a_destination_is_read_to_be_kept(arch: str, text: str, kept: str) -> None:
    assert named(facts(text, arch).reads, Use.KEPT) == set(kept.split())


def test_halves_and_bytes_are_masks() -> None:
    (write,) = facts("v_add_u32_sdwa v0, v1, v2 dst_sel:BYTE_2 dst_unused:UNUSED_PRESERVE src0_sel:DWORD src1_sel:DWORD", "gfx942").writes
    assert list(write.registers) == [(0, 0xFF_0000)]
    (write,) = facts("buffer_load_d16_format_xyz v[4:5], off, s[8:11], 0").writes
    assert list(write.registers) == [(4, 0xFFFF_FFFF), (5, 0xFFFF)]


# ---------------------------------------------------------------- lanes and EXEC


@pytest.mark.parametrize(("arch", "text", "meaning"), [
    ("gfx1100", "v_mov_b32 v0, v1", Exec.MASKED), ("gfx1100", "s_mov_b32 s0, s1", Exec.SCALAR),
    ("gfx1100", "s_and_saveexec_b32 s0, s1", Exec.SCALAR), ("gfx1100", "v_readlane_b32 s0, v1, 3", Exec.IGNORED),
    ("gfx1100", "v_readfirstlane_b32 s0, v1", Exec.DATA), ("gfx1100", "ds_bpermute_b32 v0, v1, v2", Exec.MASKED),
    ("gfx1100", "v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7]", Exec.IGNORED),
    ("gfx1100", "s_load_b32 s0, s[2:3], 0x0", Exec.SCALAR), ("gfx1100", "global_load_b32 v0, v1, s[2:3]", Exec.MASKED),
    ("gfx942", "v_mfma_f64_4x4x4_4b_f64 a[0:1], v[2:3], v[4:5], a[0:1]", Exec.IGNORED),
])  # fmt: skip
def test_meaning_of_exec(arch: str, text: str, meaning: Exec) -> None:
    e = facts(text, arch)
    assert e.exec is meaning
    assert (meaning is Exec.MASKED) == any(a.use is Use.MASK for a in e.reads)


@pytest.mark.parametrize(("text", "lanes"), [
    ("v_mov_b32 v0, v1", Lanes.OWN), ("v_mov_b32_dpp v0, v1 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf", Lanes.OTHER),
    ("v_readlane_b32 s0, v1, 3", Lanes.OTHER), ("v_permlane16_b32 v0, v1, s2, s3", Lanes.OTHER), ("s_mov_b32 s0, s1", Lanes.UNIFORM),
])  # fmt: skip
def test_lanes_of_sources(text: str, lanes: Lanes) -> None:
    assert next(a for a in facts(text).reads if a.reg == 1 and a.use is Use.VALUE and a.file is not File.HWREG).lanes is lanes


# ---------------------------------------------------------------- memory and flow


@pytest.mark.parametrize(("arch", "text", "space", "access", "size"), [
    ("gfx1100", "ds_load_2addr_b64 v[0:3], v4 offset1:1", "lds", "r", 16), ("gfx1100", "global_store_d16_hi_b8 v0, v1, s[2:3]", "global", "w", 1),
    ("gfx1100", "flat_atomic_add_u64 v[0:1], v[2:3]", "flat", "rw", 8), ("gfx1100", "s_load_b512 s[0:15], s[16:17], 0x0", "scalar", "r", 64),
    ("gfx1100", "scratch_load_b96 v[0:2], v3, off", "scratch", "r", 12), ("gfx1100", "tbuffer_load_format_x v0, off, s[8:11], 0", "buffer", "r", None),
    ("gfx1201", "global_load_block v[0:31], v[40:41], off", "global", "r", 128),
])  # fmt: skip
def test_memory(arch: str, text: str, space: str, access: str, size: int | None) -> None:
    (m,) = facts(text, arch).memory
    assert (m.space, "r" * m.is_read + "w" * m.is_written, m.size) == (space, access, size)
    assert m.atomic == (access == "rw")


def test_a_load_to_lds_touches_both() -> None:
    loads = {m.space: (m.is_read, m.is_written, m.size) for m in facts("global_load_lds_dword v[0:1], off", "gfx942").memory}
    assert loads == {"global": (True, False, 4), "lds": (False, True, 4)}


@pytest.mark.parametrize(("text", "flow", "target"), [
    ("s_branch 3", Flow.BRANCH, 16), ("s_branch 65535", Flow.BRANCH, 0), ("s_cbranch_scc1 1", Flow.COND_BRANCH, 8),
    ("s_call_b64 s[0:1], 2", Flow.CALL, 12), ("s_setpc_b64 s[0:1]", Flow.INDIRECT, None),
    ("s_swappc_b64 s[0:1], s[2:3]", Flow.INDIRECT_CALL, None), ("s_endpgm", Flow.END, None), ("s_trap 2", Flow.TRAP, None),
    ("v_nop", Flow.NEXT, None), ("s_getpc_b64 s[0:1]", Flow.NEXT, None),
])  # fmt: skip
def test_flow(text: str, flow: Flow, target: int | None) -> None:
    e = facts(text)
    assert (e.flow, e.target) == (flow, target)


def test_barriers() -> None:
    assert facts("s_barrier").barrier == "signal_wait"
    assert facts("s_barrier_signal -1", "gfx1201").barrier == "signal"
    assert facts("s_barrier_wait -1", "gfx1201").barrier == "wait"
    assert facts("s_nop 0").barrier == ""


def test_a_dual_instruction_is_both_halves() -> None:
    e = facts("v_dual_mov_b32 v0, v1 :: v_dual_add_f32 v3, v4, v5")
    x, y = e.halves
    assert (named(x.writes), named(y.writes)) == ({"v0"}, {"v3"})
    assert named(e.reads) == {"v1", "v4", "v5", "mode"}
    assert named(e.writes) == {"v0", "v3"}


# ---------------------------------------------------------------- all of them


def test_images_and_exports_say_that_only_operands_are_known() -> None:
    e = facts("exp mrt0 v0, off, v2, off done")
    assert not e.has_semantics
    assert named(e.reads, Use.VALUE) == {"v0", "v2"}
    assert facts("v_nop").has_semantics


@pytest.mark.parametrize("name", ARCHES)
def test_every_opcode_has_facts_of_every_wave_size(name: str) -> None:
    for _, inst in samples(name):
        for lanes in ARCHES[name].wave_sizes if inst is not None else ():
            assert inst is not None
            e = reads_writes(inst, lanes)
            assert e.wave_lanes == lanes
            assert str(e)


@pytest.mark.parametrize("name", ARCHES)
def test_every_form_of_every_opcode_has_facts_inside_the_register_files(name: str) -> None:
    for code in candidates.generated(name, 11, 2):
        try:
            inst = decode(name, code)
        except DecodeError:
            continue
        e = reads_writes(inst)
        for a in (*e.reads, *e.writes):
            assert a.bits, inst
            assert a.bits >> 32 * a.count == 0, inst
            assert a.reg + a.count <= {File.SGPR: 128, File.VGPR: 256, File.AGPR: 256}.get(a.file, 1 << 6), inst


def kept(e: Effects, write: Access) -> bool:
    """Whether reads say that what a write may leave is kept."""
    return any(r.use is Use.KEPT and r.file is write.file and r.reg <= write.reg and write.reg + write.count <= r.reg + r.count
               for r in e.reads)


@pytest.mark.parametrize("name", ARCHES)
def test_a_write_that_may_not_happen_has_a_read_to_be_kept(name: str) -> None:
    missing = set()
    for _, inst in samples(name):
        e = reads_writes(inst) if inst is not None else Effects(0)
        missing |= {f"{inst}: {w}" for w in e.writes if not w.certain and not w.dynamic and e.flow is Flow.NEXT and not kept(e, w)}
    assert not missing


@settings(deadline=None, max_examples=300)
@given(name=st.sampled_from(sorted(ARCHES)), code=st.binary(min_size=16, max_size=16))
def test_whatever_decodes_has_facts(name: str, code: bytes) -> None:
    try:
        inst = decode(name, code)
    except DecodeError:
        return
    assert reads_writes(inst) is reads_writes(inst)


def test_the_package_gives_it_without_being_heavy() -> None:
    assert isa.reads_writes is reads_writes
    code = "import sys, stuntgpu.isa; sys.exit('stuntgpu.isa.effects' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
