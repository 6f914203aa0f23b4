"""Chips: what a driver tells about a GPU. One row a chip; drivers and topology read it, nothing else.

Units:   as the field says; clocks in MHz, sizes in bytes unless `_kb`.
Source:  kernel kfd_topology.c, kfd_device.c and amdgpu_discovery.c for what each field means; vendor
         data sheets for counts and clocks.
"""

from __future__ import annotations

from dataclasses import dataclass

from stuntgpu.isa.errors import Unmodelled


@dataclass(frozen=True, slots=True)
class Cache:
    """One cache of the topology; `type_` bits: 1 data, 2 instruction, 4 CPU, 8 SIMD."""

    level: int
    size_kb: int
    line_bytes: int
    type_: int = 1 | 8


@dataclass(frozen=True, slots=True)
class Chip:
    """One GPU model.

    gfx_target_version   major * 10000 + minor * 100 + stepping, as the topology shows it.
    simd_count           over the whole chip; `arrays` shader arrays likewise.
    ip_versions          (hardware id, major, minor, revision) of the discovery table.
    """

    arch: str
    name: str
    marketing_name: str
    gfx_target_version: int
    device_id: int
    family_id: int
    vram_bytes: int
    compute_units: int
    simd_per_cu: int
    arrays: int
    arrays_per_engine: int
    cu_per_array: int
    waves_per_simd: int
    wave_lanes: int
    lds_kb: int
    scratch_slots_per_cu: int
    sdma_engines: int
    sdma_queues_per_engine: int
    engine_clock_mhz: int
    memory_clock_mhz: int
    memory_bits: int
    gb_addr_config: int
    firmware: int
    sdma_firmware: int
    caches: tuple[Cache, ...]
    ip_versions: tuple[tuple[int, int, int, int], ...]
    xccs: int = 1
    num_gws: int = 64
    cp_queues: int = 8

    @property
    def simd_count(self) -> int:
        return self.compute_units * self.simd_per_cu


HWID_GC, HWID_SDMA0, HWID_NBIF = 11, 42, 108

CHIPS = {
    "gfx1100": Chip(
        arch="gfx1100", name="navi31", marketing_name="AMD Radeon PRO W7900 (stuntgpu)", gfx_target_version=110000,
        device_id=0x7448, family_id=145, vram_bytes=48 << 30, compute_units=96, simd_per_cu=2, arrays=12,
        arrays_per_engine=2, cu_per_array=8, waves_per_simd=16, wave_lanes=32, lds_kb=64,
        scratch_slots_per_cu=32, sdma_engines=2, sdma_queues_per_engine=6, engine_clock_mhz=2495,
        memory_clock_mhz=1125, memory_bits=384, gb_addr_config=0x545, firmware=550, sdma_firmware=21,
        caches=(Cache(1, 16, 64), Cache(1, 32, 64, 2 | 8), Cache(2, 6144, 128), Cache(3, 98304, 64)),
        ip_versions=((HWID_GC, 11, 0, 0), (HWID_SDMA0, 6, 0, 0), (HWID_NBIF, 4, 3, 0)),
    ),
}


def chip(arch: str) -> Chip:
    """The chip that stands for an architecture. Raises Unmodelled."""
    if arch not in CHIPS:
        raise Unmodelled(arch, "this GPU's chip data", "mockdrivers/profiles.py")
    return CHIPS[arch]
