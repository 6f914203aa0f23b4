"""Barriers of gfx1201 in two halves, signal and wait: the workgroup's and named ones, on both tiers."""

from __future__ import annotations

import pytest

from stuntgpu.emu.faults import KernelFault
from stuntgpu.emu.launch import Launch, RunOptions
from stuntgpu.isa.asm import assemble
from tests.emu.rdna import CODE, DATA, LDS_BYTES, TIERS, Bench

N_WAVES = 4


@pytest.fixture(params=TIERS)
def bench(request: pytest.FixtureRequest) -> Bench:
    return Bench("gfx1201", request.param)


#: v1: number of the wave, s6 the same; v0 is the work-item. Kernels end by storing v2 of lane 0 to dword v1.
HEAD = "v_lshrrev_b32 v1, 5, v0\nv_readfirstlane_b32 s6, v1\nv_mov_b32 v2, 0\n"
TAIL = """
  v_lshlrev_b32 v3, 2, v1
  s_mov_b32 exec_lo, 1
  global_store_b32 v3, v2, s[0:1]
  s_endpgm
"""


def run(bench: Bench, body: str, seed: int = 0) -> list[int]:
    """The word of every wave."""
    bench.space.write(CODE, assemble(bench.arch, HEAD + body + TAIL))
    items = 32 * N_WAVES
    launch = Launch(CODE, 0xF0 << 12, 2 << 1, 0, (DATA & 0xFFFFFFFF, DATA >> 32), (items, 1, 1), (items, 1, 1), 32,
                    LDS_BYTES, 0, 0, "barriers")
    bench.executor.run(bench.space, launch, RunOptions(seed=seed, max_wave_instructions=100_000))
    return bench.words(DATA, N_WAVES)


EXCHANGE = """
  v_lshlrev_b32 v4, 2, v1
  ds_store_b32 v4, v1 offset:64
  s_barrier_signal -1
  s_nop 3
  s_barrier_wait -1
  v_xor_b32 v5, 12, v4
  ds_load_b32 v2, v5 offset:64
"""


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_what_waves_store_before_signalling_is_there_after_waiting(bench: Bench, seed: int) -> None:
    assert run(bench, EXCHANGE, seed) == [3, 2, 1, 0]


def test_barriers_can_be_used_again_and_again(bench: Bench) -> None:
    body = """
      s_movk_i32 s7, 20
    again:
      s_barrier_signal -1
      s_barrier_wait -1
      ds_add_u32 v6, v7
      s_barrier_signal -1
      s_barrier_wait -1
      ds_load_b32 v2, v6
      s_sub_co_i32 s7, s7, 1
      s_cmp_lg_u32 s7, 0
      s_cbranch_scc1 again
    """
    text = "v_mov_b32 v6, 0\nv_mov_b32 v7, 1\ns_mov_b32 exec_lo, 1\n" + body
    assert run(bench, text) == [20 * N_WAVES] * N_WAVES


def test_one_wave_is_the_first_to_signal(bench: Bench) -> None:
    body = "s_barrier_signal_isfirst -1\ns_cselect_b32 s7, 1, 0\ns_barrier_wait -1\nv_mov_b32 v2, s7"
    assert sorted(run(bench, body)) == [0, 0, 0, 1]


def test_a_wave_that_ended_is_not_waited_for(bench: Bench) -> None:
    body = "s_cmp_eq_u32 s6, 2\ns_cbranch_scc0 stay\ns_endpgm\nstay:\ns_barrier_signal -1\ns_barrier_wait -1\nv_mov_b32 v2, 9"
    assert run(bench, body) == [9, 9, 2, 9]  # dword 2 of the data is 2


def test_named_barrier_is_complete_when_its_members_signalled(bench: Bench) -> None:
    """Waves 0 and 1 join it, three signals are asked for: wave 2 gives them and waits for nobody."""
    body = """
      s_mov_b32 m0, 0x30021
      s_cmp_eq_u32 s6, 0
      s_cbranch_scc0 set
      s_barrier_init m0
    set:
      s_barrier_signal -1
      s_barrier_wait -1
      s_cmp_lt_u32 s6, 2
      s_cbranch_scc0 others
      s_barrier_join 1
      s_barrier_signal -1
      s_barrier_wait -1
      s_barrier_wait 1
      s_barrier_leave
      v_mov_b32 v2, 5
      s_branch done
    others:
      s_barrier_signal -1
      s_barrier_wait -1
      s_cmp_eq_u32 s6, 2
      s_cbranch_scc0 done
      s_barrier_signal 1
      s_barrier_signal 1
      s_get_barrier_state s8, m0
      s_barrier_signal m0
      v_mov_b32 v3, s8
      v_mov_b32 v2, v3
    done:
    """
    assert run(bench, body) == [5, 5, 2 << 16 | 3 << 4 | 1, 0]


def test_state_tells_signals_and_members(bench: Bench) -> None:
    body = """
      s_cmp_eq_u32 s6, 0
      s_cbranch_scc0 done
      s_barrier_signal -1
      s_get_barrier_state s7, -1
      v_mov_b32 v2, s7
      s_branch over
    done:
      s_barrier_signal -1
    over:
      s_barrier_wait -1
    """
    first = run(bench, body)[0]
    assert (first >> 4 & 127, first & 1) == (N_WAVES, 1)
    assert 0 <= first >> 16 <= N_WAVES


def test_barrier_0_and_the_trap_handlers_do_nothing(bench: Bench) -> None:
    assert run(bench, "s_barrier_signal 0\ns_barrier_signal -2\nv_mov_b32 v2, 1") == [1] * N_WAVES


def test_waiting_without_a_signal_is_a_deadlock(bench: Bench) -> None:
    with pytest.raises(KernelFault, match="deadlock"):
        run(bench, "s_barrier_wait -1")
