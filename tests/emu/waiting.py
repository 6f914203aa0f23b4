"""Kernels whose waves wait for each other, spelled for every architecture, and a GPU to run them on, for tests."""

from __future__ import annotations

from string import Template
from typing import Any

import numpy as np
import pytest

from stuntgpu.emu import Gpu, KernelFault, KernelSpec
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


def words(n: int) -> Words:
    return np.zeros(n, np.uint32)


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
