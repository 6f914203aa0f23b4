"""One wave that loops over arrays: a few instructions on very many values, fast on the native tier.

Units:   planes are u32 arrays of one length, an item a lane; plane i arrives in v[i], and what the text leaves
         in v[OUT + i] is result plane i.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from stuntgpu.emu.fuzz.case import tiers
from stuntgpu.emu.memory import AddressSpace
from stuntgpu.emu.native import Native
from stuntgpu.emu.reference import Reference
from stuntgpu.emu.state import WaveInit
from stuntgpu.isa.arch import arch as arch_of
from stuntgpu.isa.asm import assemble

Bits = NDArray[Any]  # unsigned integers of an operand's width
ARCHES = ("gfx1100", "gfx1201", "gfx942", "gfx950")
Words = NDArray[np.uint32]
#: One for the normal suite; the others' tests are slow ones.
ONE_FIRST = ("gfx1100", *(pytest.param(arch, marks=pytest.mark.slow) for arch in ARCHES[1:]))
OUT = 128
CODE, PLANES, PLANE_STRIDE = 0x2000_0000_0000, 0x2100_0000_0000, 1 << 32
_AT, _LEFT = 250, 96  # VGPR: byte offset of the lane's item; SGPR: iterations to go


def executor(arch: str, tier: str) -> Native | Reference:
    return tiers(arch)[("native", "reference").index(tier)]


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


# ---------------------------------------------------------------- values

HARD: Mapping[int, Sequence[int]] = {
    16: (0, 0x8000, 1, 0x8001, 0x3FF, 0x83FF, 0x400, 0x3C00, 0xBC00, 0x3BFF, 0x3C01, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00,
         0x7C01, 0xFD55, 0x7E00, 0x7FFF, 0xFFFF, 0x3800, 0xB800, 0x7800, 0x5640, 0x4200),
    32: (0, 0x8000_0000, 1, 0x8000_0001, 0x7F_FFFF, 0x80_0000, 0x3F80_0000, 0xBF80_0000, 0x3F7F_FFFF, 0x3F80_0001,
         0x7F7F_FFFF, 0xFF7F_FFFF, 0x7F80_0000, 0xFF80_0000, 0x7F80_0001, 0xFFAA_5555, 0x7FC0_0000, 0x7FFF_FFFF,
         0xFFFF_FFFF, 0x4F00_0000, 0xCF00_0000, 0x4F80_0000, 0x5F00_0000, 0x4B00_0001, 0x3EFF_FFFF, 0x3380_0000,
         0x477F_F000, 0x7FFF, 0x8000, 0xFFFF, 0x1_0000, 31, 32, 33, 0x80, 0xFF),
    64: (0, 1 << 63, 1, 1 << 63 | 1, (1 << 52) - 1, 1 << 52, 0x3FF << 52, 0xBFF << 52, (0x3FF << 52) - 1,
         0x3FF << 52 | 1, (0x7FF << 52) - 1, (0xFFF << 52) - 1, 0x7FF << 52, 0xFFF << 52, 0x7FF << 52 | 1,
         0xFFF2_3456 << 32, 0x7FF8 << 48, (1 << 63) - 1, (1 << 64) - 1, 0x41DF_FFFF_FFC0_0000, 0x41EF_FFFF_FFE0_0000,
         0xC1E0_0000_0020_0000, 0x43E0 << 48, 0x36A0 << 48, 0x3810 << 48, 0x47EF_FFFF_F000_0000, 0x3FE0 << 48, 1 << 32),
}  # fmt: skip


def operand(rng: np.random.Generator, width: int, n: int) -> Bits:
    """Half hard values, the rest random: any bits, small integers, and floats of like exponents."""
    t: Any = np.dtype(f"u{width // 8}").type
    hard = rng.choice(np.array(HARD[width], t), n)
    any_bits = rng.integers(0, 1 << width, n, t, endpoint=False) if width < 64 else rng.integers(0, 1 << 64, n, t)
    small = any_bits >> rng.integers(0, width, n, t)
    one = t({16: 0x3C00, 32: 0x3F80_0000, 64: 0x3FF << 52}[width])
    near_one = one ^ any_bits & t((1 << (width - 9)) - 1 | 1 << (width - 1))
    which = rng.integers(0, 8, n)
    return np.select([which < 3, which < 5, which < 6], [hard, any_bits, small], near_one).astype(t)


def halves(values: Bits) -> list[Words]:
    """Low and high dwords of 64-bit values."""
    return [(values & np.uint64(0xFFFF_FFFF)).astype(np.uint32), (values >> np.uint64(32)).astype(np.uint32)]


def joined(low: Words, high: Words) -> Bits:
    return low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)
