"""Device profiles: rows agree with themselves and with LLVM's target facts, occupancy with published tables."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from stuntgpu.isa.abi.devices import DEVICES, Device, device
from stuntgpu.isa.errors import Unmodelled

ALL = pytest.mark.parametrize("row", DEVICES.values(), ids=list(DEVICES))

#: Most VGPRs with which so many waves fit a SIMD. RDNA: GPUOpen's occupancy article and RGA's tables of 1536-register SIMDs;
#: CDNA: ROCm's tuning guides (512 registers, AccVGPRs counted in).
MOST_VGPRS = {
    ("gfx1100", 32): {16: 96, 12: 120, 10: 144, 9: 168, 8: 192, 7: 216, 6: 240, 5: 256},
    ("gfx1100", 64): {16: 48, 12: 60, 10: 72, 9: 84, 8: 96, 7: 108, 6: 120, 5: 144, 4: 192, 3: 252, 2: 256},
    ("gfx942", 64): {8: 64, 7: 72, 6: 80, 5: 96, 4: 128, 3: 168, 2: 256, 1: 512},
}


@ALL
def test_compute_units_fit_the_arrays(row: Device) -> None:
    assert row.compute_units <= row.xccs * row.arrays * row.array_cus
    assert row.compute_units % (row.xccs * row.cus_per_wgp) == 0


@ALL
def test_target_version_spells_the_arch(row: Device) -> None:
    major, minor, stepping = row.gfx_target_version // 10000, row.gfx_target_version // 100 % 100, row.gfx_target_version % 100
    assert f"gfx{major}{minor:x}{stepping:x}" == row.arch


@ALL
def test_caches_grow_with_who_shares_them(row: Device) -> None:
    data = [row.caches[kind] for kind in ("vector", "L1", "L2", "L3") if kind in row.caches]
    assert data == sorted(data, key=lambda c: (c.compute_units, c.size_kb))
    assert data[-1].compute_units == row.compute_units


@pytest.mark.parametrize(("arch", "lanes"), MOST_VGPRS)
def test_waves_of_a_simd_follow_the_published_table(arch: str, lanes: int) -> None:
    table = MOST_VGPRS[arch, lanes]
    for waves, most in table.items():
        assert device(arch).waves_per_simd(most, 0, lanes) == waves
        if most < 256:
            assert device(arch).waves_per_simd(most + 1, 0, lanes) < waves


def test_accumulators_share_the_register_file() -> None:
    assert device("gfx942").waves_per_simd(61, 64, 64) == device("gfx942").waves_per_simd(128, 0, 64) == 4
    assert device("gfx942").waves_per_simd(65, 64, 64) == 3


def test_scalar_registers_bound_waves_on_cdna_alone() -> None:
    assert device("gfx942").waves_per_simd(8, 0, 64, sgprs=96) == 8
    assert device("gfx942").waves_per_simd(8, 0, 64, sgprs=108) == 7
    assert device("gfx1100").waves_per_simd(8, 0, 32, sgprs=106) == 16


@pytest.mark.parametrize(("arch", "lanes", "expected"), [
    ("gfx1100", 32, 96 * 2 * 16), ("gfx1151", 32, 40 * 2 * 16), ("gfx1201", 64, 64 * 2 * 16), ("gfx942", 64, 304 * 4 * 8)])
def test_single_wave_groups_fill_every_wave_slot(arch: str, lanes: int, expected: int) -> None:
    assert device(arch).resident_workgroups(1, 16, 0, 0, lanes) == expected


def test_groups_of_several_waves_need_a_barrier_each() -> None:
    assert device("gfx942").resident_workgroups(2, 16, 0, 0, 64) == 304 * 16
    assert device("gfx1100").resident_workgroups(2, 16, 0, 0, 32) == 96 * 16


def test_lds_bounds_groups_in_whole_granules() -> None:
    assert device("gfx1100").resident_workgroups(4, 16, 0, 20 << 10, 32) == 96 * 3
    assert device("gfx1100").resident_workgroups(4, 16, 0, (16 << 10) + 1, 32) == 96 * 3
    assert device("gfx942").resident_workgroups(4, 16, 0, 64 << 10, 64) == 304
    assert device("gfx950").resident_workgroups(4, 16, 0, 64 << 10, 64) == 256 * 2


def test_wgp_mode_pools_what_a_pair_of_compute_units_has() -> None:
    gfx1100 = device("gfx1100")
    assert gfx1100.resident_workgroups(4, 16, 0, 40 << 10, 32) == 96
    assert gfx1100.resident_workgroups(4, 16, 0, 40 << 10, 32, wgp_mode=True) == 48 * 3
    assert gfx1100.resident_workgroups(16, 256, 0, 0, 32) == 0
    assert gfx1100.resident_workgroups(16, 256, 0, 0, 32, wgp_mode=True) == 48


#: A kernel that names register v{last} and has {lds} bytes of LDS, for workgroups of {items}.
KERNEL = """@lds{n} = internal addrspace(3) global [{lds} x i8] poison, align 16
define amdgpu_kernel void @k{n}() #{n} {{
  call void asm sideeffect "", "~{{v{last}}}"()
  store volatile i8 1, ptr addrspace(3) @lds{n}
  ret void
}}
attributes #{n} = {{ "amdgpu-flat-work-group-size"="{items},{items}" "target-features"="{features}" }}
"""
REGISTERS = (1, 24, 25, 48, 49, 60, 61, 64, 72, 80, 84, 96, 97, 108, 120, 121, 128, 144, 168, 192, 200, 216, 240, 241, 252, 256)


@pytest.mark.slow
@pytest.mark.parametrize(("arch", "lanes"), [(row.arch, lanes) for row in DEVICES.values() for lanes in row.vgprs])
def test_waves_of_a_simd_are_those_llvm_counts_with(arch: str, lanes: int, tmp_path: Path) -> None:
    clang = shutil.which("clang-22")
    if clang is None:
        assert not os.environ.get("CI") or os.environ.get("WITHOUT_LLVM"), "no clang-22 on PATH to compare with"
        pytest.skip("no clang-22 on PATH to compare with")
    features = "+wavefrontsize64" if lanes == 64 and len(device(arch).vgprs) > 1 else ""
    kernels = [KERNEL.format(n=n, last=count - 1, lds=4, items=64, features=features) for n, count in enumerate(REGISTERS)]
    path = tmp_path / "kernels.ll"
    path.write_text('target triple = "amdgcn-amd-amdhsa"\n' + "".join(kernels))
    command = [clang, "-x", "ir", f"-mcpu={arch}", "-target", "amdgcn-amd-amdhsa", "-nogpulib", "-O1", "-S", path, "-o", "-"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    counted = [int(n) for n in re.findall(r"; Occupancy: (\d+)", done.stdout)]
    assert counted == [device(arch).waves_per_simd(n, 0, lanes) for n in REGISTERS]


def test_what_does_not_fit_is_not_resident() -> None:
    assert device("gfx942").resident_workgroups(16, 256, 0, 0, 64) == 0
    assert device("gfx1100").resident_workgroups(1, 16, 0, (64 << 10) + 1, 32) == 0


def test_unknown_gpu_says_where_it_would_go() -> None:
    with pytest.raises(Unmodelled, match=r"gfx906: .*isa/abi/devices.py"):
        device("gfx906")
