"""Several host threads run one launch: they share the device, its memory, the budget, and find code and faults together."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from stuntgpu.emu import native
from tests.emu.waiting import (
    GRID_BARRIER,
    HALF_A_CU,
    HALTS,
    LOOK_BACK,
    TICKETS,
    Machine,
    words,
)


@pytest.fixture(autouse=True)
def threads_start_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "HEAD_START", 0)


@pytest.mark.parametrize("threads", [2, 4])
def test_deadlocks_are_found_across_threads(threads: int) -> None:
    out = words(4)
    fault = Machine("gfx1100", "native", threads=threads).fault(HALTS, out, groups=50, waves=2, stuck=9)
    assert [w.workgroup[0] for w in fault.waves] == [i // 2 for i in range(18)]
    assert out[0] == 41 * 2


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_share_the_budget(threads: int) -> None:
    fault = Machine("gfx1100", "native", threads=threads, budget=5_000_000).fault("a:\ns_nop 0\ns_branch a", words(4), groups=8)
    assert fault.kind == "budget exceeded"
    assert len({w.workgroup for w in fault.waves}) >= threads


@pytest.mark.parametrize("arch", ["gfx1100", "gfx942"])
@pytest.mark.parametrize("seed", [0, 1, 12])
def test_threads_change_no_bytes(arch: str, seed: int) -> None:
    found = []
    for threads in (1, 2, 4):
        scan, total = words(512), words(4)
        machine = Machine(arch, "native", seed=seed, threads=threads)
        machine.run(LOOK_BACK, scan, groups=200)
        machine.run(TICKETS, total, groups=30, waves=2, rounds=3)
        found.append((scan.tobytes(), total.tobytes()))
    assert found[0] == found[1] == found[2]
    assert total[1] == 180


#: Workgroup 0 stores the 64-bit words (i, i) while workgroup 1 loads them: word 16 collects halves that differ.
HALVES = """
  $args
  $lone
  s_mov_b32 s6, $group
  s_mov_b64 s[8:9], s[4:5]
  s_movk_i32 s10, 0x100
  s_mov_b32 s11, $format
  v_mov_b32 v2, 0
  v_mov_b32 v8, 0
  v_mov_b32 v9, 0
  v_mov_b32 v10, 0
  v_mov_b32 v1, 1
  $add v2, v1, s[4:5] offset:128
both:
  $load v4, v2, s[4:5] offset:128 $fresh
  $vm
  v_cmp_gt_u32 vcc, 2, v4
  s_cbranch_vccnz both
  s_mov_b32 s12, 60000
  s_cmp_eq_u32 s6, 0
  s_cbranch_scc1 write
read:
  $get
  $vm
  v_xor_b32 v12, v8, v9
  v_or_b32 v10, v10, v12
  s_add_i32 s12, s12, -1
  s_cmp_lg_u32 s12, 0
  s_cbranch_scc1 read
  $store v2, v10, s[4:5] offset:64
  s_endpgm
write:
  $vadd v8, 1, v8
  v_mov_b32 v9, v8
  $put
  s_add_i32 s12, s12, -1
  s_cmp_lg_u32 s12, 0
  s_cbranch_scc1 write
  s_endpgm
"""


@pytest.mark.parametrize(("arch", "get", "put"), [
    ("gfx1100", "$load64 v[8:9], v2, s[4:5] $fresh", "$store64 v2, v[8:9], s[4:5]"),
    ("gfx1100", "buffer_load_b64 v[8:9], off, s[8:11], 0 glc", "buffer_store_b64 v[8:9], off, s[8:11], 0"),
    ("gfx942", "buffer_load_dwordx2 v[8:9], off, s[8:11], 0 sc1", "buffer_store_dwordx2 v[8:9], off, s[8:11], 0"),
])
def test_64_bits_are_stored_and_loaded_at_once(arch: str, get: str, put: str) -> None:
    formats = {"gfx1100": 0x31004000, "gfx942": 0x27000}
    for _ in range(4):
        out = words(64)
        text = HALVES.replace("$get", get).replace("$put", put)
        Machine(arch, "native", threads=2).run(text, out, groups=2, format=formats[arch])
        assert (out[32], out[16]) == (2, 0)


#: In step i both workgroups store to a word of their own and load the other's: one of them, at least, finds it stored.
#: Rows of 1024 words: x, y at 256 and 384, what was loaded at 272 and 400, steps at 64 and 128 of the first.
STORE_THEN_LOAD = """
  $args
  $lone
  s_mov_b32 s6, $group
  v_mov_b32 v2, 0
  v_mov_b32 v1, 1
  s_mov_b32 s8, $steps
  s_lshl_b32 s9, s6, 9
  s_xor_b32 s10, s9, 512
  v_mov_b32 v5, s9
  v_mov_b32 v6, s10
  v_mov_b32 v14, v5
  v_mov_b32 v15, v6
  v_mov_b32 v16, 0
again:
  $vadd v16, 1, v16
  $store v14, v16, s[4:5] offset:256
meet:
  $load v17, v15, s[4:5] offset:256 $fresh
  $vm
  v_cmp_lt_u32 vcc, v17, v16
  s_cbranch_vccnz meet
  $stored
  $load v8, v6, s[4:5] offset:1024 $fresh
  $vm
  $store v5, v8, s[4:5] offset:1088
  $vadd v5, 4096, v5
  $vadd v6, 4096, v6
  s_sub_u32 s8, s8, 1
  s_cmp_lg_u32 s8, 0
  s_cbranch_scc1 again
  s_endpgm
"""


@pytest.mark.slow
@pytest.mark.parametrize(("arch", "stored"), [
    ("gfx1100", "$store v5, v1, s[4:5] offset:1024\ns_waitcnt_vscnt null, 0x0"),
    ("gfx1100", "$store v5, v1, s[4:5] offset:1024\nbuffer_gl0_inv"),
    ("gfx942", "$store v5, v1, s[4:5] offset:1024 sc1\ns_waitcnt vmcnt(0)"),
    ("gfx942", "$store v5, v1, s[4:5] offset:1024\nbuffer_inv sc1"),
])
def test_loads_come_after_stores_that_were_waited_for(arch: str, stored: str) -> None:
    steps = 30_000
    for _ in range(8):
        out = words(1024 * (steps + 1))
        Machine(arch, "native", threads=2, budget=0).run(
            STORE_THEN_LOAD.replace("$stored", stored), out, groups=2, steps=steps)
        rows = out.reshape(-1, 1024)[:steps]
        assert not ((rows[:, 272] == 0) & (rows[:, 400] == 0)).any()


#: Every wave acts 500 times on word 0, by one lane, with v[6:7]; v8 is a limit.
CONTEND = """
  $args
  $lone
  v_mov_b32 v2, 0
  v_mov_b32 v6, $low
  v_mov_b32 v7, $high
  v_mov_b32 v8, 9999
  s_mov_b64 s[8:9], s[4:5]
  s_movk_i32 s10, 0x100
  s_mov_b32 s11, 0x27000
  s_movk_i32 s12, 500
  v_mov_b32 v10, s4
  v_mov_b32 v11, s5
again:
  $act
  s_sub_u32 s12, s12, 1
  s_cmp_lg_u32 s12, 0
  s_cbranch_scc1 again
  s_endpgm
"""
N_ACTIONS = 40 * 2 * 500
F32, F64 = (np.array([1, N_ACTIONS], kind).view(np.uint32).reshape(2, -1).tolist() for kind in (np.float32, np.float64))


@pytest.mark.parametrize(("arch", "act", "one", "total"), [
    ("gfx1100", "global_atomic_add_u64 v2, v[6:7], s[4:5]", (1, 1), [N_ACTIONS, N_ACTIONS]),
    ("gfx1100", "global_atomic_add_f32 v2, v6, s[4:5]", (F32[0][0], 0), [F32[1][0], 0]),
    ("gfx1100", "global_atomic_inc_u32 v2, v8, s[4:5]", (0, 0), [0, 0]),
    ("gfx942", "global_atomic_add_f64 v2, v[6:7], s[4:5]", F64[0], F64[1]),
    ("gfx942", "buffer_atomic_add v6, off, s[8:11], 0", (1, 0), [N_ACTIONS, 0]),
    ("gfx942", "flat_atomic_add_x2 v[10:11], v[6:7]", (1, 1), [N_ACTIONS, N_ACTIONS]),
])
def test_no_thread_loses_anothers_atomic(arch: str, act: str, one: tuple[int, int], total: list[int]) -> None:
    out = words(4)
    Machine(arch, "native", threads=4).run(CONTEND.replace("$act", act), out, groups=40, waves=2, low=one[0], high=one[1])
    assert out[:2].tolist() == total


@pytest.mark.parametrize("threads", [2, 4])
def test_workgroups_meet_across_threads(threads: int) -> None:
    out = words(4)
    Machine("gfx1100", "native", threads=threads, compute_units=4).run(GRID_BARRIER, out, groups=8, n=8, lds=HALF_A_CU)
    assert list(out[:2]) == [8, 8]


def test_short_launches_start_no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []

    def pool(n: int) -> ThreadPoolExecutor:
        started.append(n)
        return ThreadPoolExecutor(n)

    monkeypatch.setattr(native, "HEAD_START", 2000)
    monkeypatch.setattr("concurrent.futures.ThreadPoolExecutor", pool)
    for groups, threads in ((100, []), (1000, [3])):
        out = words(4)
        Machine("gfx1100", "native", threads=3).run(GRID_BARRIER, out, groups=groups, n=1)
        assert (out[1], started) == (groups, threads)


def test_threads_share_the_devices_room() -> None:
    fault = Machine("gfx1100", "native", threads=2, compute_units=2, budget=20_000_000).fault(
        GRID_BARRIER, out := words(4), groups=5, n=5, lds=HALF_A_CU)
    assert (fault.kind, len(fault.waves), out[0]) == ("budget exceeded", 4, 4)


#: v40 is read, and then written, only by code of another float mode: no wave may find what an earlier one left.
FRESH = """
  $args
  v_lshlrev_b32 v2, 2, v0
  s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 8), $mode
  s_mov_b32 s6, $group
  s_lshl_b32 s6, s6, 7
  $vadd v2, s6, v2
  v_cvt_f32_u32 v3, 0x12345
  $store v2, v40, s[4:5]
  v_add_f32 v40, 0x3f801234, v3
  s_endpgm
"""


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_registers_start_clear_in_every_mode_and_thread(threads: int) -> None:
    machine = Machine("gfx1100", "native", threads=threads)
    for mode in (0xC1, 0xF2, 0xC3, 0xF3):
        out = words(32 * 300)
        machine.run(FRESH, out, groups=300, mode=mode)
        assert not out.any()


#: Workgroup i jumps to entry i % 8 of a table nobody knows before, each with a float mode of its own, and stores
#: one and a little, rounded by the mode, with constants that the program had not got either.
JUMPS = """
  $args
  v_lshlrev_b32 v2, 2, v0
  s_lshl_b32 s7, $group, 7
  v_add_nc_u32 v2, s7, v2
  s_and_b32 s10, $group, 7
  s_mul_i32 s10, s10, 28
  v_mov_b32 v4, 1.0
  s_getpc_b64 s[8:9]
here:
  s_add_u32 s8, s8, s10
  s_addc_u32 s9, s9, 0
  s_add_u32 s8, s8, table - here
  s_addc_u32 s9, s9, 0
  s_setpc_b64 s[8:9]
table:
""" + "\n".join(f"""
  s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 8), {0xF0 + i % 4 + 4 * (i // 4)}
  v_add_f32 v3, lit({0x33000000 + i}), v4
  s_branch store
  s_nop 0
  s_nop 0""" for i in range(8)) + """
store:
  $store v2, v3, s[4:5]
  s_endpgm
"""


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_code_and_modes_found_at_run_time_are_right_in_every_thread(threads: int) -> None:
    for _ in range(3):
        out = words(32 * 64)
        Machine("gfx1100", "native", threads=threads).run(JUMPS, out, groups=64)
        up = [i % 8 % 4 == 1 for i in range(64)]
        assert [int(x) for x in out[::32]] == [0x3F800001 if u else 0x3F800000 for u in up]
