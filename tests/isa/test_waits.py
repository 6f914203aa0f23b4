"""Wait counters: what raises them, what waits for them."""

from __future__ import annotations

import pytest

from stuntgpu.isa.arch import ARCHES
from stuntgpu.isa.effects import Wait, reads_writes
from stuntgpu.isa.inst import Inst
from stuntgpu.isa.samples import samples
from stuntgpu.isa.waits import GENERATIONS, all_counters


@pytest.mark.parametrize(("arch", "text", "counters"), [
    ("gfx942", "global_load_dword v0, v1, s[2:3]", "vmcnt"), ("gfx942", "global_store_dword v0, v1, s[2:3]", "vmcnt"),
    ("gfx942", "flat_load_dword v0, v[2:3]", "vmcnt lgkmcnt"), ("gfx942", "s_load_dword s0, s[2:3], 0x0", "lgkmcnt"),
    ("gfx942", "ds_write_b32 v0, v1", "lgkmcnt"), ("gfx942", "buffer_load_dword off, s[8:11], s3 lds", "vmcnt"),
    ("gfx942", "buffer_wbl2 sc1", "vmcnt"), ("gfx942", "buffer_inv sc1", ""),
    ("gfx1100", "global_load_b32 v0, v1, s[2:3]", "vmcnt"), ("gfx1100", "global_store_b32 v0, v1, s[2:3]", "vscnt"),
    ("gfx1100", "global_atomic_add_u32 v0, v1, s[2:3]", "vscnt"), ("gfx1100", "global_atomic_add_u32 v0, v1, v2, s[2:3] glc", "vmcnt"),
    ("gfx1100", "flat_store_b32 v[0:1], v2", "vscnt lgkmcnt"), ("gfx1100", "scratch_store_b32 off, v0, off", "vscnt"),
    ("gfx1100", "image_sample v0, v[4:5], s[8:15], s[0:3] dmask:0x1 dim:SQ_RSRC_IMG_2D", "vmcnt"),
    ("gfx1100", "exp mrt0 v0, off, off, off done", "expcnt"), ("gfx1100", "lds_direct_load v0 wait_vdst:15", "expcnt"),
    ("gfx1100", "s_sendmsg sendmsg(MSG_INTERRUPT)", "lgkmcnt"), ("gfx1100", "buffer_gl0_inv", ""), ("gfx1100", "v_nop", ""),
    ("gfx1201", "global_load_b32 v0, v1, s[2:3]", "loadcnt"), ("gfx1201", "global_store_b32 v0, v1, s[2:3]", "storecnt"),
    ("gfx1201", "flat_load_b32 v0, v[2:3]", "loadcnt dscnt"), ("gfx1201", "ds_load_b32 v0, v1", "dscnt"),
    ("gfx1201", "s_load_b32 s0, s[2:3], 0x0", "kmcnt"), ("gfx1201", "global_inv", "loadcnt"), ("gfx1201", "global_wb", "storecnt"),
    ("gfx1201", "image_sample v0, [v4, v5], s[8:15], s[0:3] dmask:0x1 dim:SQ_RSRC_IMG_2D", "samplecnt"),
    ("gfx1201", "image_load v0, [v4, v5], s[8:15] dmask:0x1 dim:SQ_RSRC_IMG_2D", "loadcnt"),
    ("gfx1201", "image_bvh_intersect_ray v[0:3], [v4, v5, v[6:8], v[9:11], v[12:14]], s[0:3]", "bvhcnt"),
    ("gfx1201", "s_get_barrier_state s0, -1", "kmcnt"),
])  # fmt: skip
def test_counters_that_go_up(arch: str, text: str, counters: str) -> None:
    assert reads_writes(Inst.from_text(arch, text)).raises == tuple(counters.split())


@pytest.mark.parametrize(("arch", "text", "limits"), [
    ("gfx942", "s_waitcnt vmcnt(33)", {"vmcnt": 33}), ("gfx942", "s_waitcnt vmcnt(0) expcnt(1) lgkmcnt(2)", {"vmcnt": 0, "expcnt": 1, "lgkmcnt": 2}),
    ("gfx1100", "s_waitcnt lgkmcnt(0)", {"lgkmcnt": 0}), ("gfx1100", "s_waitcnt_vscnt null, 0x2", {"vscnt": 2}),
    ("gfx1100", "s_waitcnt_vmcnt s4, 0x0", {"vmcnt": None}),
    ("gfx1100", "s_waitcnt_depctr depctr_va_vdst(0) depctr_vm_vsrc(2)", {"va_vdst": 0, "vm_vsrc": 2}),
    ("gfx1100", "v_interp_p10_f32 v0, v1, v2, v3 wait_exp:2", {"expcnt": 2}), ("gfx1100", "v_interp_p10_f32 v0, v1, v2, v3 wait_exp:7", {}),
    ("gfx1100", "lds_direct_load v0 wait_vdst:3", {"va_vdst": 3}), ("gfx1100", "lds_direct_load v0 wait_vdst:15", {}),
    ("gfx1201", "s_wait_loadcnt 0x3", {"loadcnt": 3}), ("gfx1201", "s_wait_bvhcnt 0x0", {"bvhcnt": 0}),
    ("gfx1201", "s_wait_storecnt_dscnt 0x104", {"storecnt": 1, "dscnt": 4}), ("gfx1201", "s_wait_alu depctr_va_vcc(0)", {"va_vcc": 0}),
    ("gfx1201", "s_nop 0", {}),
])  # fmt: skip
def test_limits(arch: str, text: str, limits: dict[str, int | None]) -> None:
    waits = reads_writes(Inst.from_text(arch, text)).waits
    assert {w.counter: w.limit for w in waits} == limits


def test_wait_idle_waits_for_everything() -> None:
    waits = reads_writes(Inst.from_text("gfx1100", "s_wait_idle")).waits
    assert set(waits) == {Wait(c, 0) for c in all_counters(ARCHES["gfx1100"])}


@pytest.mark.parametrize("name", ARCHES)
def test_whatever_touches_memory_raises_a_counter_of_its_generation(name: str) -> None:
    known = all_counters(ARCHES[name])
    for _, inst in samples(name):
        e = reads_writes(inst) if inst is not None else None
        if e is not None:
            assert set(e.raises) <= known
            assert e.raises or not e.memory, str(inst)


def test_every_dialect_has_its_counters() -> None:
    assert {a.dialect for a in ARCHES.values()} == set(GENERATIONS)
