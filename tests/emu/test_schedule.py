"""How waves take turns: who waits for whom makes progress, deadlocks are reported, seeds order."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable

import pytest

from stuntgpu.emu import native
from tests.emu.waiting import (
    EVERYWHERE,
    GRID_BARRIER,
    HALF_A_CU,
    HALTS,
    LOCK,
    LOOK_BACK,
    TICKETS,
    TIERS,
    Machine,
    words,
)


@pytest.fixture(params=EVERYWHERE, ids="-".join)
def machine(request: pytest.FixtureRequest) -> Callable[..., Machine]:
    return lambda **options: Machine(*request.param, **options)


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


@pytest.mark.parametrize("text", [LOCK, TICKETS], ids=["lock", "tickets"])
@pytest.mark.parametrize("seed", [0, 5])
def test_locks_exclude_and_are_passed_on(machine: Callable[..., Machine], text: str, seed: int) -> None:
    out = words(4)
    machine(seed=seed).run(text, out, groups=3, waves=2, rounds=2)
    assert out[1] == 12


@pytest.mark.parametrize("options", [{}, {"seed": 9}], ids=str)
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
from tests.emu.waiting import GRID_BARRIER, Machine, words
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
