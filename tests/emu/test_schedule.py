"""How waves take turns: who waits for whom makes progress, deadlocks are reported, seeds order, threads agree."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from string import Template
from typing import Any

import numpy as np
import pytest

from stuntgpu.emu import Gpu, KernelFault, KernelSpec, native
from stuntgpu.emu.launch import Stats
from stuntgpu.isa.asm import assemble

Words = np.ndarray[Any, np.dtype[np.uint32]]

#: What the kernels below are spelled with. `lanes`: of a wave; log: its logarithm.
_RDNA = {
    "args": "s_load_b64 s[4:5], s[0:1], 0x0\n$km", "load": "global_load_b32", "store": "global_store_b32",
    "load64": "global_load_b64", "store64": "global_store_b64", "add": "global_atomic_add_u32",
    "cas": "global_atomic_cmpswap_b32", "vadd": "v_add_nc_u32", "lone": "s_mov_b32 exec_lo, 1", "log": "5",
    "dsr": "ds_load_b32", "dsw": "ds_store_b32", "vsub": "v_sub_nc_u32",
}  # fmt: skip
_GFX11 = {"group": "s15", "km": "s_waitcnt lgkmcnt(0)", "vm": "s_waitcnt vmcnt(0)", "fresh": "glc", "back": "glc",
          "barrier": "s_barrier", "lds": "s_waitcnt lgkmcnt(0)"}
_GFX12 = {"group": "ttmp9", "km": "s_wait_kmcnt 0x0", "vm": "s_wait_loadcnt 0x0", "fresh": "scope:SCOPE_DEV",
          "back": "th:TH_ATOMIC_RETURN", "barrier": "s_barrier_signal -1\ns_barrier_wait -1", "lds": "s_wait_dscnt 0x0"}
_CDNA = {
    "args": "s_load_dwordx2 s[4:5], s[0:1], 0x0\n$km", "load": "global_load_dword", "store": "global_store_dword",
    "load64": "global_load_dwordx2", "store64": "global_store_dwordx2", "add": "global_atomic_add",
    "cas": "global_atomic_cmpswap", "vadd": "v_add_u32", "lone": "s_mov_b64 exec, 1", "log": "6",
    "dsr": "ds_read_b32", "dsw": "ds_write_b32", "vsub": "v_sub_u32",
    "group": "s15", "km": "s_waitcnt lgkmcnt(0)", "vm": "s_waitcnt vmcnt(0)", "fresh": "sc1", "back": "sc0",
    "barrier": "s_barrier", "lds": "s_waitcnt lgkmcnt(0)",
}  # fmt: skip
DIALECTS = {"gfx1100": _RDNA | _GFX11, "gfx1201": _RDNA | _GFX12, "gfx942": _CDNA, "gfx950": _CDNA}
LANES = {"gfx1100": 32, "gfx1201": 32, "gfx942": 64, "gfx950": 64}
TIERS = ("native", "reference")
EVERYWHERE = [(arch, tier) for arch in ("gfx1100", "gfx942") for tier in TIERS]
BUDGET = 50_000_000


class Machine:
    """A GPU and how kernels are spelled for it."""

    def __init__(self, arch: str, tier: str, *, seed: int = 0, threads: int = 1, compute_units: int = 0,
                 budget: int = BUDGET) -> None:
        self.gpu = Gpu(arch, tier=tier, seed=seed, threads=threads, max_wave_instructions=budget,
                       compute_units=compute_units)
        self.arch, self.lanes = arch, LANES[arch]

    def run(self, text: str, words: Words, *, groups: int = 1, waves: int = 1, lds: int = 0, **values: int) -> Stats:
        """Kernels find the address of `words` in s[4:5] after `$args`."""
        # twice: what the dialect inserts may have names of its own
        names = DIALECTS[self.arch] | {k: str(v) for k, v in values.items()}
        text = Template(Template(text).substitute(names)).substitute(names)
        spec = KernelSpec(wave_lanes=self.lanes, lds_bytes=lds)
        kernel = self.gpu.load_raw(assemble(self.arch, text), spec)
        items = waves * self.lanes
        return kernel(words, grid=groups * items, workgroup=items)

    def fault(self, *args: Any, **kwargs: Any) -> KernelFault:
        with pytest.raises(KernelFault) as caught:
            self.run(*args, **kwargs)
        return caught.value


@pytest.fixture(params=EVERYWHERE, ids="-".join)
def machine(request: pytest.FixtureRequest) -> Callable[..., Machine]:
    return lambda **options: Machine(*request.param, **options)


@pytest.fixture(autouse=True)
def threads_start_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "HEAD_START", 0)


def words(n: int) -> Words:
    return np.zeros(n, np.uint32)


# ---------------------------------------------------------------- waiting

#: Wave s6 of $n waits until word 0 is $n - 1 - s6, then adds one: the last wave goes first.
WAVES_IN_A_ROW = """
  $args
  v_lshrrev_b32 v1, $log, v0
  $lone
  v_mov_b32 v2, 0
  $vsub v3, $last, v1
wait:
  $load v4, v2, s[4:5] $fresh
  $vm
  v_cmp_ne_u32 vcc, v4, v3
  s_cbranch_vccnz wait
  v_lshlrev_b32 v5, 2, v1
  $store v5, v4, s[4:5] offset:64
  $vadd v4, 1, v4
  $store v2, v4, s[4:5]
  s_endpgm
"""


@pytest.mark.parametrize("seed", [0, 3])
def test_waves_of_a_workgroup_wait_for_each_other(machine: Callable[..., Machine], seed: int) -> None:
    out = words(32)
    machine(seed=seed).run(WAVES_IN_A_ROW, out, waves=4, last=3)
    assert list(out[16:20]) == [3, 2, 1, 0]


def test_waves_wait_for_each_other_by_lds(machine: Callable[..., Machine]) -> None:
    out = words(32)
    text = WAVES_IN_A_ROW.replace("$load v4, v2, s[4:5] $fresh\n  $vm", "$dsr v4, v2\n  $lds").replace(
        "$store v2, v4, s[4:5]\n", "$dsw v2, v4\n")
    machine().run(text, out, waves=4, last=3, lds=64)
    assert list(out[16:20]) == [3, 2, 1, 0]


#: Every workgroup adds one to word 0 and waits until $n have.
GRID_BARRIER = """
  $args
  $lone
  v_mov_b32 v2, 0
  v_mov_b32 v1, 1
  $add v2, v1, s[4:5]
wait:
  $load v4, v2, s[4:5] $fresh
  $vm
  v_cmp_gt_u32 vcc, $n, v4
  s_cbranch_vccnz wait
  $add v2, v1, s[4:5] offset:4
  s_endpgm
"""
HALF_A_CU = 0x8000  # bytes of LDS


def test_as_many_workgroups_as_the_device_holds_meet(machine: Callable[..., Machine]) -> None:
    out = words(4)
    machine(compute_units=2).run(GRID_BARRIER, out, groups=4, n=4, lds=HALF_A_CU)
    assert list(out[:2]) == [4, 4]


def test_one_workgroup_too_many_never_starts(machine: Callable[..., Machine]) -> None:
    out = words(4)
    fault = machine(compute_units=2, budget=9000).fault(GRID_BARRIER, out, groups=5, n=5, lds=HALF_A_CU)
    assert fault.kind == "budget exceeded"
    assert [w.workgroup[0] for w in fault.waves] == [0, 1, 2, 3]
    assert list(out[:2]) == [4, 0]


def test_waiting_workgroups_let_later_ones_go_by(machine: Callable[..., Machine]) -> None:
    """More workgroups than fit, of which only the first two wait for each other."""
    out = words(4)
    machine(compute_units=1).run(GRID_BARRIER, out, groups=9, n=2, lds=HALF_A_CU)
    assert list(out[:2]) == [9, 9]


#: Adds $rounds times one to word 1, which nothing but the lock in word 0 protects.
LOCK = """
  $args
  $lone
  v_mov_b32 v2, 0
  v_mov_b32 v6, 1
  v_mov_b32 v7, 0
  s_movk_i32 s8, $rounds
again:
  $cas v3, v2, v[6:7], s[4:5] $back
  $vm
  v_cmp_ne_u32 vcc, 0, v3
  s_cbranch_vccnz again
  $load v4, v2, s[4:5] offset:4 $fresh
  $vm
  $vadd v4, 1, v4
  $store v2, v4, s[4:5] offset:4
  $store v2, v7, s[4:5]
  s_addk_i32 s8, -1
  s_cmp_lg_u32 s8, 0
  s_cbranch_scc1 again
  s_endpgm
"""
#: The same by a ticket lock: next ticket in word 0, served in word 2.
TICKETS = LOCK.replace("$cas v3, v2, v[6:7], s[4:5] $back\n  $vm", "$add v5, v2, v6, s[4:5] $back\n  $vm\nserved:\n"
                       "  $load v3, v2, s[4:5] offset:8 $fresh\n  $vm\n  v_sub_u32 v3, v3, v5").replace(
    "vccnz again", "vccnz served").replace("$store v2, v7, s[4:5]\n", "$vadd v5, 1, v5\n  $store v2, v5, s[4:5] offset:8\n").replace(
    "v_sub_u32 v3", "$vsub v3")


@pytest.mark.parametrize("text", [LOCK, TICKETS], ids=["lock", "tickets"])
@pytest.mark.parametrize("seed", [0, 5])
def test_locks_exclude_and_are_passed_on(machine: Callable[..., Machine], text: str, seed: int) -> None:
    out = words(4)
    machine(seed=seed).run(text.replace("s_addk_i32", _subtract(machine)), out, groups=3, waves=2, rounds=2)
    assert out[1] == 12


def _subtract(machine: Callable[..., Machine]) -> str:
    return "s_addk_co_i32" if machine().arch == "gfx1201" else "s_addk_i32"


#: Exclusive prefix sum of 64-bit words (value, 1) from word 64 on: workgroup i waits for its predecessor's.
LOOK_BACK = """
  $args
  $lone
  s_mov_b32 s6, $group
  v_mov_b32 v1, s6
  v_mov_b32 v8, 0
  v_mov_b32 v9, 1
  v_lshlrev_b32 v5, 3, v1
  s_cmp_eq_u32 s6, 0
  s_cbranch_scc1 known
wait:
  $load64 v[8:9], v5, s[4:5] offset:248 $fresh
  $vm
  v_cmp_eq_u32 vcc, 0, v9
  s_cbranch_vccnz wait
known:
  $vadd v8, v8, v1
  $store64 v5, v[8:9], s[4:5] offset:256
  s_endpgm
"""


@pytest.mark.parametrize("options", [{}, {"seed": 9}, {"threads": 4}], ids=str)
def test_look_back_scans(machine: Callable[..., Machine], options: dict[str, int]) -> None:
    out = words(256)
    machine(**options).run(LOOK_BACK, out, groups=24)
    assert list(out[64 : 64 + 48 : 2]) == [i * (i + 1) // 2 for i in range(24)]


#: Two waves poll together: wave 0 loads word 0 for both, between barriers. Workgroup 1 sets it.
POLL_BY_BARRIERS = """
  $args
  v_lshrrev_b32 v1, $log, v0
  v_readfirstlane_b32 s7, v1
  s_mov_b32 s6, $group
  $lone
  v_mov_b32 v2, 0
  s_cmp_eq_u32 s6, 1
  s_cbranch_scc1 set
poll:
  s_cmp_eq_u32 s7, 0
  s_cbranch_scc0 meet
  $load v4, v2, s[4:5] $fresh
  $vm
  $dsw v2, v4
  $lds
meet:
  $barrier
  $dsr v5, v2
  $lds
  $barrier
  v_cmp_eq_u32 vcc, 0, v5
  s_cbranch_vccnz poll
  s_endpgm
set:
  v_mov_b32 v4, 1
  $store v2, v4, s[4:5]
  s_endpgm
"""


def test_polling_with_barriers_gives_up_the_turn(machine: Callable[..., Machine]) -> None:
    machine().run(POLL_BY_BARRIERS, words(4), groups=2, waves=2, lds=64)


@pytest.mark.parametrize("arch", ["gfx1100", "gfx942"])
def test_polling_costs_few_instructions(arch: str) -> None:
    """100 waves that wait for the last one do not use up their turns."""
    stats = Machine(arch, "native").run(GRID_BARRIER, words(4), groups=100, n=100)
    assert stats.wave_instructions < 100 * 3 * native.QUANTUM


def test_rounds_longer_than_a_slice_reach_every_workgroup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "SLICE", 5000)
    out = words(4)
    Machine("gfx1100", "native").run(GRID_BARRIER, out, groups=64, n=64)
    assert list(out[:2]) == [64, 64]


# ---------------------------------------------------------------- deadlocks

#: Wave 0 of workgroup 0 halts, the others of it wait at the barrier; other workgroups add one to word 0.
HALTS = """
  $args
  v_lshrrev_b32 v1, $log, v0
  v_readfirstlane_b32 s7, v1
  s_mov_b32 s6, $group
  s_cmp_ge_u32 s6, $stuck
  s_cbranch_scc1 add
  s_cmp_lg_u32 s7, 0
  s_cbranch_scc1 meet
  s_sethalt 1
meet:
  s_barrier
  s_endpgm
add:
  $lone
  v_mov_b32 v2, 0
  v_mov_b32 v4, 1
  $add v2, v4, s[4:5]
  s_endpgm
"""


def test_a_deadlock_names_every_wave_after_all_others_ended(machine: Callable[..., Machine]) -> None:
    out = words(4)
    fault = machine().fault(HALTS, out, groups=5, waves=3, stuck=1)
    assert (fault.kind, fault.instruction, fault.workgroup, fault.wave) == ("deadlock", "s_sethalt 1", (0, 0, 0), 0)
    assert [(w.workgroup, w.wave, w.instruction, w.state) for w in fault.waves] == [
        ((0, 0, 0), 0, "s_sethalt 1", "halted"), ((0, 0, 0), 1, "s_barrier", "at barrier"),
        ((0, 0, 0), 2, "s_barrier", "at barrier")]
    assert all(w.pc_offset == fault.pc_offset + 4 and w.pc == fault.pc + 4 for w in fault.waves[1:])
    assert out[0] == 4 * 3
    assert "2 at barrier at +" in str(fault)


def test_deadlocked_workgroups_fill_the_device(machine: Callable[..., Machine]) -> None:
    fault = machine(compute_units=2).fault(HALTS, words(4), groups=7, waves=2, stuck=7, lds=HALF_A_CU)
    assert [w.workgroup[0] for w in fault.waves] == [0, 0, 1, 1, 2, 2, 3, 3]


def test_a_long_report_is_cut(machine: Callable[..., Machine]) -> None:
    fault = machine(compute_units=4).fault(HALTS, words(4), groups=8, waves=2, stuck=8, lds=HALF_A_CU)
    assert len(fault.waves) == 16
    assert "8 halted" in str(fault)
    assert "and 4 more" in str(fault)
    assert len(str(fault).splitlines()) < 10


def test_a_barrier_opens_for_those_that_remain(machine: Callable[..., Machine]) -> None:
    out = words(4)
    machine().run(HALTS.replace("s_sethalt 1", "s_endpgm"), out, groups=2, waves=3, stuck=1)
    assert out[0] == 3


@pytest.mark.parametrize(("body", "state"), [
    ("s_barrier_wait 0xffff", "waiting for split barrier -1"),
    ("s_barrier_join 2\ns_barrier_wait 2", "waiting for split barrier 2"),
])
@pytest.mark.parametrize("tier", TIERS)
def test_split_barriers_nobody_signals_are_deadlocks(tier: str, body: str, state: str) -> None:
    fault = Machine("gfx1201", tier).fault(body + "\ns_endpgm", words(4), waves=2)
    assert fault.kind == "deadlock"
    assert [(w.wave, w.instruction, w.state) for w in fault.waves] == [
        (i, body.split("\n")[-1], state) for i in range(2)]


@pytest.mark.parametrize("tier", TIERS)
def test_a_spent_budget_tells_who_slept_and_who_ran(tier: str) -> None:
    text = "v_cmp_gt_u32 vcc, 32, v0\ns_cbranch_vccz run\nsleep:\ns_sleep 1\ns_branch sleep\nrun:\ns_nop 0\ns_branch run"
    fault = Machine("gfx1100", tier, budget=300).fault(text, words(4), waves=2)
    assert fault.kind == "budget exceeded"
    assert {(w.wave, w.state) for w in fault.waves} == {(0, "sleeping"), (1, "running")}


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


# ---------------------------------------------------------------- order

#: Word i is when workgroup i came.
ORDER = """
  $args
  $lone
  s_mov_b32 s6, $group
  v_mov_b32 v1, s6
  v_mov_b32 v2, 0
  v_mov_b32 v3, 1
  $add v4, v2, v3, s[4:5] $back
  $vm
  v_lshlrev_b32 v5, 2, v1
  $store v5, v4, s[4:5] offset:64
  s_endpgm
"""


def order(machine: Callable[..., Machine], seed: int) -> list[int]:
    out = words(64)
    machine(seed=seed).run(ORDER, out, groups=24)
    return list(out[16:40])


def test_seed_0_is_dispatch_order(machine: Callable[..., Machine]) -> None:
    assert order(machine, 0) == list(range(24))


def test_seeds_give_orders_and_repeat_them(machine: Callable[..., Machine]) -> None:
    orders = {seed: order(machine, seed) for seed in (1, 2, 3)}
    assert len({tuple(v) for v in orders.values()}) == 3
    assert all(sorted(v) == list(range(24)) for v in orders.values())
    assert orders == {seed: order(machine, seed) for seed in orders}


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


@pytest.mark.parametrize("tier", TIERS)
def test_cancelling_ends_the_launch_between_turns(tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "SLICE", 100_000)
    machine, asked = Machine("gfx1100", tier, budget=0), []

    def cancelled() -> bool:
        asked.append(1)
        return len(asked) > 2

    machine.gpu.options.cancelled = cancelled
    machine.run("a:\ns_barrier\ns_branch a", words(4), groups=3, waves=2)
    assert len(asked) == 3


def test_cancelling_reaches_launches_of_many_short_workgroups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "SLICE", 1000)
    machine = Machine("gfx1100", "native")
    machine.gpu.options.cancelled = lambda: True
    assert machine.run("s_endpgm", words(4), groups=10_000).workgroups < 2000


# ---------------------------------------------------------------- memory

_MANY = """
import resource
from tests.emu.test_schedule import GRID_BARRIER, Machine, words
start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
Machine("gfx942", "native").run("s_nop 0\\n" * 4 + "s_endpgm", words(4), groups=100_000)
middle = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
Machine("gfx942", "native").run(GRID_BARRIER, words(4), groups=608, waves=4, n=608)
print(middle - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - middle)
"""


@pytest.mark.slow
def test_memory_is_that_of_the_registers_kernels_name() -> None:
    """In KiB: 10**5 workgroups one after the other, then 608 workgroups of four waves at once."""
    done = subprocess.run([sys.executable, "-c", _MANY], capture_output=True, text=True, timeout=120, check=True)
    one_by_one, at_once = map(int, done.stdout.split())
    page = resource.getpagesize() // 1024
    assert one_by_one < 30_000
    assert at_once < 30_000 + 608 * 4 * 6 * page
