"""One wave that loops over arrays: a few instructions on very many values, fast on the native tier.

Units:   planes are u32 arrays of one length, an item a lane; plane i arrives in v[i], and what the text leaves
         in v[OUT + i] is result plane i.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stuntgpu.emu.memory import AddressSpace
from stuntgpu.emu.native import Native
from stuntgpu.emu.reference import Reference
from stuntgpu.emu.state import WaveInit
from stuntgpu.isa.arch import arch as arch_of
from stuntgpu.isa.asm import assemble

ARCHES = ("gfx1100", "gfx1201", "gfx942", "gfx950")
Words = NDArray[np.uint32]
OUT = 128
CODE, PLANES, PLANE_STRIDE = 0x2000_0000_0000, 0x2100_0000_0000, 1 << 32
_AT, _LEFT = 250, 96  # VGPR: byte offset of the lane's item; SGPR: iterations to go
_EXECUTORS: dict[tuple[str, str], Native | Reference] = {}


def executor(arch: str, tier: str) -> Native | Reference:
    key = arch, tier
    if key not in _EXECUTORS:
        _EXECUTORS[key] = (Native if tier == "native" else Reference)(arch)
    return _EXECUTORS[key]


def sweep(arch: str, text: str, planes: Sequence[Words], n_out: int, *, mode: int = 0xF0, tier: str = "native",
          lanes: int = 64) -> list[Words]:
    """Result planes. The number of items is cut to whole waves by the caller."""
    n = len(planes[0])
    assert n % lanes == 0
    assert len(planes) + n_out <= _LEFT // 2
    whole = [np.ascontiguousarray(p, np.uint32) for p in planes] + [np.zeros(n, np.uint32) for _ in range(n_out)]
    code = np.frombuffer(assemble(arch, _program(arch, text, len(planes), n_out, lanes)) + bytes(64), np.uint8).copy()
    space, sgprs = AddressSpace(), {_LEFT: n // lanes}
    space.map(CODE, code.nbytes, code.ctypes.data, keep=code)
    for i, plane in enumerate(whole):
        va = PLANES + i * PLANE_STRIDE
        space.map(va, plane.nbytes, plane.ctypes.data, keep=plane)
        sgprs |= {2 * i: va & 0xFFFF_FFFF, 2 * i + 1: va >> 32}
    init = WaveInit((1 << lanes) - 1, sgprs, {_AT: [4 * lane for lane in range(lanes)]}, mode=mode)
    executor(arch, tier).run_wave(space, CODE, init, lanes)
    return whole[len(planes):]


def _program(arch: str, text: str, n_in: int, n_out: int, lanes: int) -> str:
    """Loads, the text, stores, next."""
    gfx9 = arch_of(arch).dialect == "gfx9"
    load, store = ("global_load_dword", "global_store_dword") if gfx9 else ("global_load_b32", "global_store_b32")
    loads = [f"{load} v{i}, v{_AT}, s[{2 * i}:{2 * i + 1}]" for i in range(n_in)]
    stores = [f"{store} v{_AT}, v{OUT + i}, s[{2 * (n_in + i)}:{2 * (n_in + i) + 1}]" for i in range(n_out)]
    step = [f"v_add_{'' if gfx9 else 'nc_'}u32 v{_AT}, {4 * lanes}, v{_AT}",
            f"s_sub{'_co' if arch_of(arch).dialect == 'gfx12' else ''}_u32 s{_LEFT}, s{_LEFT}, 1",
            f"s_cmp_lg_u32 s{_LEFT}, 0", "s_cbranch_scc1 again", "s_endpgm"]
    return "\n".join(["again:", *loads, text, *stores, *step])
