"""Operand facts as one line each, and rules that the facts of every opcode and of random words keep."""

from __future__ import annotations

import pytest

from stuntgpu.isa import reads_writes
from stuntgpu.isa.arch import ARCHES, arch
from stuntgpu.isa.decode import DecodeError, decode
from stuntgpu.isa.effects import Access, Effects, Exec, File, Flow, Use
from stuntgpu.isa.inst import Inst
from stuntgpu.isa.samples import samples
from stuntgpu.isa.waits import all_counters
from tests.isa.goldens import pairs, report
from tests.isa.words import words

R3, R4, C3, C4 = "gfx1100", "gfx1201", "gfx942", "gfx950"

#: (arch, instruction, its facts as one line)
KNOWN = (
    # halves, carries, masks
    (R3, "v_add_f16 v1.h, v2.l, v3.h", "v2.l v3.h exec_lo mode -> v1.h; keeps v1.l"),
    (C3, "v_add_f16 v1, v2, v3", "v2.l v3.l exec mode -> v1"),
    (R3, "v_add_co_ci_u32 v1, vcc_lo, v2, v3, vcc_lo", "v2 v3 vcc_lo exec_lo -> v1 vcc_lo"),
    (R3, "v_add_co_u32 v1, null, v2, v3", "v2 v3 exec_lo -> v1"),
    (R3, "v_cmp_lt_f32 s4, v2, v3", "v2 v3 exec_lo mode -> s4"),
    (R3, "v_cmpx_lt_f32 v2, v3", "v2 v3 exec_lo mode -> exec_lo"),
    (C3, "v_cmpx_lt_f32 vcc, v2, v3", "v2 v3 exec mode -> exec vcc"),
    (R3, "v_mad_u64_u32 v[0:1], s4, v2, v3, v[4:5]", "v2 v3 v[4:5] exec_lo -> v[0:1] s4"),
    (R3, "v_add_nc_u32 v1, src_scc, v2", "scc v2 exec_lo -> v1"),
    # lanes
    (R3, "v_readlane_b32 s4, v2, s5", "s5 v2 -> s4"),
    (R3, "v_writelane_b32 v1, s4, 3", "s4 -> v1; keeps v1"),
    (R3, "v_mov_b32_dpp v1, v2 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1", "v2 exec_lo -> v1"),
    (R3, "v_mov_b32_dpp v1, v2 row_shr:1 row_mask:0xf bank_mask:0xf", "v2 exec_lo -> v1; keeps v1"),
    (R3, "v_movrels_b32 v1, v2", "m0 any vgpr exec_lo -> v1"),
    # matrices and accumulators
    (R4, "v_wmma_f32_16x16x16_f16 v[0:7], v[8:11], v[12:15], v[0:7]", "v[8:11] v[12:15] v[0:7] -> v[0:7]"),
    (C3, "v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]", "v[0:1] v[2:3] a[0:15] -> a[0:15]"),
    (C4, "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[12:15], v[0:3] blgp:4", "v[4:11] v[12:15] v[0:3] mode -> v[0:3]"),
    (C3, "v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[6:9], v10", "v[0:3] v[4:5] v[6:9] v10 -> v[0:3]"),
    (C3, "ds_read_b32 a1, v2", "v2 exec -> a1; lds load 4; raises lgkmcnt"),
    # scalars
    (R3, "s_addc_u32 s4, s5, s6", "s5 s6 scc -> scc s4"),
    (R3, "s_cmov_b32 s4, s5", "scc s5 -> s4; keeps s4"),
    (R3, "s_and_saveexec_b32 s4, s5", "exec_lo s5 -> exec_lo s4 scc"),
    (R3, "s_swappc_b64 s[4:5], s[6:7]", "pc s[6:7] -> s[4:5] pc"),
    (R3, "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3", "mode -> mode"),
    (R3, "s_sendmsg 3", "m0 -> nothing; raises lgkmcnt"),
    (R3, "s_mov_b64 ttmp[2:3], vcc", "vcc -> ttmp[2:3]"),
    # memory
    (R3, "s_load_b64 s[4:5], s[6:7], s8 offset:16", "s[6:7] s8 -> s[4:5]; scalar load 8; raises lgkmcnt"),
    (R3, "s_buffer_load_b32 s4, s[8:11], null", "s[8:11] -> s4; scalar load 4; raises lgkmcnt"),
    (R3, "global_load_b32 v1, v[2:3], off", "v[2:3] exec_lo -> v1; global load 4; raises vmcnt"),
    (R3, "global_store_b64 v2, v[4:5], s[4:5]", "v2 s[4:5] v[4:5] exec_lo -> nothing; global store 8; raises vscnt"),
    (R3, "global_atomic_add_u32 v2, v3, s[4:5]", "v2 s[4:5] v3 exec_lo -> nothing; global atomic 4; raises vscnt"),
    (R3, "global_atomic_add_u32 v1, v2, v3, s[4:5] glc", "v2 s[4:5] v3 exec_lo -> v1; global atomic 4; raises vmcnt"),
    (R4, "global_atomic_add_u32 v1, v2, v3, s[4:5] th:TH_ATOMIC_RETURN", "v2 s[4:5] v3 exec_lo -> v1; global atomic 4; raises loadcnt"),
    (C3, "flat_store_dword v[2:3], v1", "v[2:3] flat_scratch v1 exec -> nothing; flat store 4; raises vmcnt lgkmcnt"),
    (R3, "buffer_load_b32 v1, v[2:3], s[4:7], s8 idxen offen", "v[2:3] s[4:7] s8 exec_lo -> v1; buffer load 4; raises vmcnt"),
    (R3, "buffer_load_b32 v1, off, s[4:7], 0", "s[4:7] exec_lo -> v1; buffer load 4; raises vmcnt"),
    (R3, "buffer_load_b64 v[2:4], off, s[4:7], 0 tfe", "s[4:7] exec_lo -> v[2:3] v4; keeps v4; buffer load 8; raises vmcnt"),
    (C3, "buffer_load_dword off, s[4:7], s8 lds", "s[4:7] s8 exec m0 -> nothing; buffer load 4; lds store 4; raises vmcnt"),
    (R3, "ds_load_2addr_b32 v[1:2], v3 offset1:1", "v3 exec_lo -> v[1:2]; lds load 8; raises lgkmcnt"),
    (R3, "ds_add_u32 v1, v2 gds", "v1 v2 exec_lo m0 -> nothing; gds atomic 4; raises lgkmcnt expcnt"),
    (R3, "lds_direct_load v1 wait_vdst:3", "m0 exec_lo -> v1; keeps v1; lds load 4; raises expcnt; waits va_vdst<=3"),
    (R4, "global_inv", "nothing -> nothing; raises loadcnt"),
    # without semantics
    (R3, "image_sample v[0:3], v[4:5], s[8:15], s[16:19] dmask:0xf dim:SQ_RSRC_IMG_2D",
     "s[8:15] s[16:19] v[4:5] exec_lo -> v[0:3]; image load ?; raises vmcnt"),
    (R4, "image_sample v[0:3], [v4, v9], s[8:15], s[16:19] dmask:0xf dim:SQ_RSRC_IMG_2D",
     "s[8:15] s[16:19] v4 v9 exec_lo -> v[0:3]; image load ?; raises samplecnt"),
    (R3, "image_atomic_cmpswap v[0:1], v[4:5], s[8:15] dmask:0x3 dim:SQ_RSRC_IMG_2D",
     "v[0:1] s[8:15] v[4:5] exec_lo -> nothing; image atomic ?; raises vscnt"),
    (R4, "image_bvh8_intersect_ray v[0:9], [v[10:11], v[12:13], v[14:16], v[17:19], v20], s[8:11]",
     "s[8:11] v[10:11] v[12:13] v[14:16] v[17:19] v20 exec_lo -> v[0:9]; image load ?; raises bvhcnt"),
    (R3, "exp mrt0 v0, v1, off, off", "v0 v1 exec_lo -> nothing; raises expcnt"),
    # waits
    (R3, "s_waitcnt vmcnt(3)", "nothing -> nothing; waits vmcnt<=3"),
    (R3, "s_waitcnt_vscnt null, 0x0", "nothing -> nothing; waits vscnt<=0"),
    (R3, "s_waitcnt_depctr 0xfffe", "nothing -> nothing; waits sa_sdst<=0"),
    (R4, "s_wait_loadcnt_dscnt 0x102", "nothing -> nothing; waits dscnt<=2 loadcnt<=1"),
    (R4, "s_wait_kmcnt 0x0", "nothing -> nothing; waits kmcnt<=0"),
    (C3, "s_waitcnt vmcnt(20) expcnt(1)", "nothing -> nothing; waits vmcnt<=20 expcnt<=1"),
    (R3, "s_wait_idle", "nothing -> nothing; waits expcnt<=0 lgkmcnt<=0 vmcnt<=0 vscnt<=0"),
)  # fmt: skip


def facts(name: str, text: str, lanes: int = 0) -> Effects:
    return reads_writes(Inst.from_text(name, text), lanes)


@pytest.mark.parametrize(("name", "text", "line"), KNOWN)
def test_known_facts(name: str, text: str, line: str) -> None:
    assert str(facts(name, text)) == line


def test_products_of_wide_waves_have_fewer_registers() -> None:
    text = "v_wmma_f16_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[24:31]"
    assert str(facts(R3, text)) == "v[8:15] v[16:23] v[24:31] -> v[0:7]; keeps v[0:7]"
    assert str(facts(R3, text, 64)) == "v[8:15] v[16:23] v[24:27] -> v[0:3]; keeps v[0:3]"
    text = "v_wmma_f32_16x16x16_f16 v[0:7], v[8:11], v[12:15], v[24:31]"
    assert str(facts(R4, text, 64)) == "v[8:9] v[12:13] v[24:27] -> v[0:3]"


# ---------------------------------------------------------------- every opcode, random words


def broken(found: Effects, name: str) -> list[str]:
    """Rules that facts of any instruction keep."""
    wrong = [f"{a} outside its file" for a in (*found.reads, *found.writes) if not fits(a)]
    wrong += [f"{a} without bits" for a in (*found.reads, *found.writes) if not 0 < a.bits < 1 << 32 * a.count]
    wrong += [f"raises {c}" for c in found.raises if c not in all_counters(arch(name))]
    wrong += [f"write for {a.use}" for a in found.writes if a.use is not Use.VALUE]
    wrong += [f"waits for {w}" for w in found.waits if w.limit is not None and w.limit < 0]
    if (found.exec is Exec.MASKED) != any(a.use is Use.MASK for a in found.reads):
        wrong.append(f"{found.exec} and EXEC disagree")
    if (found.flow in (Flow.BRANCH, Flow.COND_BRANCH, Flow.CALL)) != (found.target is not None):
        wrong.append(f"{found.flow} to {found.target}")
    return wrong + list(unkept(found))


SIZES = {File.VGPR: 256, File.AGPR: 256, File.SGPR: 128, File.HWREG: 64}


def fits(a: Access) -> bool:
    return 0 <= a.reg < a.reg + a.count <= SIZES.get(a.file, 2)


def unkept(found: Effects) -> list[str]:
    """Registers whose old value may stay in part without being read."""
    read: dict[tuple[File, int], int] = {}
    for a in found.reads:
        for reg, mask in a.registers:
            read[a.file, reg] = read.get((a.file, reg), 0) | mask
    wrong = []
    for a in found.writes:
        if a.file not in (File.VGPR, File.AGPR, File.SGPR) or a.dynamic or found.flow is Flow.TRAP:
            continue
        for i in range(a.count):
            new = a.bits >> 32 * i & 0xFFFF_FFFF if a.certain else 0
            if ~(new | read.get((a.file, a.reg + i), 0)) & 0xFFFF_FFFF:
                wrong.append(f"{a} may stay and is not read")
    return wrong


@pytest.mark.parametrize("name", ARCHES)
def test_every_opcode_has_facts_that_keep_the_rules(name: str) -> None:
    wrong, n = [], 0
    for _, inst in samples(name):
        if inst is not None:
            for lanes in arch(name).wave_sizes:
                wrong += [f"{inst}: {w}" for w in broken(reads_writes(inst, lanes), name)]
            n += 1
    assert not wrong, report(wrong)
    assert n > 1400


@pytest.mark.parametrize("name", ARCHES)
def test_random_words_that_decode_have_facts(name: str) -> None:
    wrong, n = [], 0
    for code in words(name, 4000, 7):
        try:
            inst = decode(name, code)
        except DecodeError:
            continue
        wrong += [f"{inst}: {w}" for w in broken(reads_writes(inst), name)]
        n += 1
    assert not wrong, report(wrong)
    assert n > 400


@pytest.mark.slow
@pytest.mark.parametrize("name", ARCHES)
def test_every_golden_instruction_has_facts_that_keep_the_rules(name: str) -> None:
    wrong = [f"{text}: {w}" for code, text in pairs(name) for w in broken(reads_writes(decode(name, code)), name)]
    assert not wrong, report(wrong)
