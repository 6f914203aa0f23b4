"""Device profiles: one frozen row a GPU model, and how many workgroups of a kernel fit in it at a time.

Units:   bytes, unless the name ends in `_kb` (1024 bytes) or `_mhz`; registers are 32 bits wide; counts "per SIMD" are of one
         SIMD of one compute unit, engines are counted in one XCC (the dies of a CDNA package).
Errors:  Unmodelled for an arch without a row.
Source:  of each column, unless a row says otherwise:
         compute units, caches, VGPR and SGPR files, LDS    AMD ROCm documentation, "GPU hardware specifications"
         engines, arrays per engine, clocks, PCI ids, cache sizes   rocminfo of such cards, as posted in ROCm's issue tracker:
             7900 XTX (744c), 8060S (1586), RX 9070 XT (7550), MI300X (74a1), MI350X (75b0 is its virtual function);
             shared/CLIENTS.md 1.4 for the PCI ids
         arrays' width, wave slots, scratch slots           kernel amdgpu_discovery.c (gc_info), gfx_v9_4_3.c, gfx_v11_0.c
         allocation granules, barriers, addressable LDS     LLVM AMDGPUBaseInfo (getVGPRAllocGranule, getSGPRAllocGranule,
             getTotalNumVGPRs, getMaxWorkGroupsPerCU), Mesa ACO init_program (LDS granule, barriers of a WGP)
         memory                                             AMD's product pages; memory clocks as the kernel's DPM tables show
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stuntgpu.isa.abi.targets import round_up, target
from stuntgpu.isa.errors import Unmodelled

KIB, GIB = 1 << 10, 1 << 30


@dataclass(frozen=True, slots=True)
class Cache:
    """One kind of cache: size and line of one of them, and how many compute units share it."""

    size_kb: int
    line_bytes: int
    compute_units: int


@dataclass(frozen=True, slots=True)
class Registers:
    """A register file as waves are given room in it: of one SIMD, in steps of `granule`; addressable: the most a wave names."""

    per_simd: int
    granule: int
    addressable: int

    def waves(self, registers: int) -> int:
        """Waves of so many registers each that one SIMD holds; a wave has one granule at least."""
        return self.per_simd // max(round_up(registers, self.granule), self.granule)


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU model.

    codename            as the kernel driver calls the chip.
    gfx_target_version  major * 10000 + minor * 100 + stepping (decimal), as the topology shows it.
    engines             shader engines of one XCC; arrays_per_engine shader arrays in each.
    array_cus           compute units an array has room for; fewer may be in use (compute_units: of the device, in use).
    cus_per_wgp         compute units that can share a workgroup: 2 on RDNA, where a pair is a WGP.
    wave_slots          waves one SIMD holds at most.
    barriers            workgroups of more than one wave that one compute unit holds at most.
    vgprs               by lanes of a wave. With AccVGPRs the file holds both kinds.
    lds_bytes           of one compute unit (RDNA: half of the WGP's); lds_granule: steps it is given out in.
    scratch_slots       waves of one compute unit that can have scratch.
    caches              of the kinds "vector", "scalar", "instruction" (level 1), "L1", "L2" and "L3".
    """

    arch: str
    marketing_name: str
    codename: str
    gfx_target_version: int
    pci_device: int
    xccs: int
    engines: int
    arrays_per_engine: int
    array_cus: int
    compute_units: int
    cus_per_wgp: int
    simds_per_cu: int
    wave_slots: int
    barriers: int
    vgprs: Mapping[int, Registers]
    sgprs: Registers
    lds_bytes: int
    lds_granule: int
    scratch_slots: int
    vram_bytes: int
    engine_mhz: int
    memory_mhz: int
    memory_bits: int
    caches: Mapping[str, Cache]

    @property
    def arrays(self) -> int:
        """Shader arrays of one XCC."""
        return self.engines * self.arrays_per_engine

    @property
    def simds(self) -> int:
        """SIMDs of the device."""
        return self.compute_units * self.simds_per_cu

    @property
    def wgps(self) -> int:
        """Groups of compute units that can share a workgroup."""
        return self.compute_units // self.cus_per_wgp

    @property
    def wave_lanes(self) -> int:
        """Lanes of a wave as the topology states them: the narrowest."""
        return min(self.vgprs)

    @property
    def workgroup_lds_bytes(self) -> int:
        """LDS a workgroup can have."""
        return target(self.arch).lds_max

    def waves_per_simd(self, vgprs: int, agprs: int, wave_lanes: int, sgprs: int = 0) -> int:
        """Waves of one SIMD, by slots and registers alone; AccVGPRs begin at a multiple of 4 in the same file."""
        in_file = round_up(vgprs, 4) + agprs if agprs else vgprs
        return min(self.wave_slots, self.vgprs[wave_lanes].waves(in_file), self.sgprs.waves(sgprs))

    def resident_workgroups(self, waves_per_group: int, vgprs: int, agprs: int, lds_bytes: int, wave_lanes: int,
                            *, sgprs: int = 0, wgp_mode: bool = False) -> int:
        """Workgroups of one kernel that the whole device holds at a time; 0 when not even one fits.

        vgprs, agprs, sgprs  of one wave.
        lds_bytes            of one workgroup.
        wgp_mode             RSRC1.WGP_MODE: a workgroup may spread over both compute units of a WGP.
        """
        cus = self.cus_per_wgp if wgp_mode else 1
        waves = cus * self.simds_per_cu * self.waves_per_simd(vgprs, agprs, wave_lanes, sgprs)
        fits = [waves // waves_per_group]
        if lds_bytes:
            fits.append(0 if lds_bytes > self.workgroup_lds_bytes
                        else cus * self.lds_bytes // round_up(lds_bytes, self.lds_granule))
        if waves_per_group > 1:
            fits.append(cus * self.barriers)
        return min(fits) * (self.compute_units // cus)


#: RDNA3 and RDNA4 of the larger chips: 192 KiB a SIMD, given out in steps of 24 or 12 registers; SGPRs 128 to each wave.
_RDNA_VGPRS = {32: Registers(1536, 24, 256), 64: Registers(768, 12, 256)}
_RDNA_SGPRS = Registers(16 * 128, 128, 106)
#: CDNA3 and CDNA4: 128 KiB a SIMD for VGPRs and AccVGPRs together.
_CDNA_VGPRS = {64: Registers(512, 8, 512)}
_CDNA_SGPRS = Registers(800, 16, 102)

_ROWS = (
    Device(
        arch="gfx1100", marketing_name="AMD Radeon PRO W7900", codename="navi31", gfx_target_version=110000,
        pci_device=0x7448, xccs=1, engines=6, arrays_per_engine=2, array_cus=8, compute_units=96, cus_per_wgp=2,
        simds_per_cu=2, wave_slots=16, barriers=16, vgprs=_RDNA_VGPRS, sgprs=_RDNA_SGPRS, lds_bytes=64 * KIB,
        lds_granule=1024, scratch_slots=32, vram_bytes=48 * GIB, engine_mhz=2495, memory_mhz=1125, memory_bits=384,
        caches={"vector": Cache(32, 64, 1), "scalar": Cache(16, 64, 2), "instruction": Cache(32, 64, 2),
                "L1": Cache(256, 128, 8), "L2": Cache(6144, 128, 96), "L3": Cache(98304, 64, 96)},
    ),
    Device(  # memory is the machine's own LPDDR5X-8000; how much of it is VRAM is a setting, 96 GiB of 128 the most
        arch="gfx1151", marketing_name="AMD Radeon 8060S Graphics", codename="strix halo", gfx_target_version=110501,
        pci_device=0x1586, xccs=1, engines=2, arrays_per_engine=2, array_cus=10, compute_units=40, cus_per_wgp=2,
        simds_per_cu=2, wave_slots=16, barriers=16, vgprs=_RDNA_VGPRS, sgprs=_RDNA_SGPRS, lds_bytes=64 * KIB,
        lds_granule=1024, scratch_slots=32, vram_bytes=96 * GIB, engine_mhz=2900, memory_mhz=1000, memory_bits=256,
        caches={"vector": Cache(32, 128, 1), "scalar": Cache(16, 128, 2), "instruction": Cache(32, 128, 2),
                "L1": Cache(256, 128, 10), "L2": Cache(2048, 128, 40), "L3": Cache(32768, 64, 40)},
    ),
    Device(
        arch="gfx1201", marketing_name="AMD Radeon RX 9070 XT", codename="navi48", gfx_target_version=120001,
        pci_device=0x7550, xccs=1, engines=4, arrays_per_engine=2, array_cus=8, compute_units=64, cus_per_wgp=2,
        simds_per_cu=2, wave_slots=16, barriers=16, vgprs=_RDNA_VGPRS, sgprs=_RDNA_SGPRS, lds_bytes=64 * KIB,
        lds_granule=1024, scratch_slots=32, vram_bytes=16 * GIB, engine_mhz=2400, memory_mhz=1258, memory_bits=256,
        caches={"vector": Cache(32, 256, 1), "scalar": Cache(16, 128, 2), "instruction": Cache(32, 128, 2),
                "L2": Cache(8192, 256, 64), "L3": Cache(65536, 64, 64)},
    ),
    Device(  # 38 of the 40 compute units of an XCC are in use
        arch="gfx942", marketing_name="AMD Instinct MI300X", codename="aqua_vanjaram", gfx_target_version=90402,
        pci_device=0x74A1, xccs=8, engines=4, arrays_per_engine=1, array_cus=10, compute_units=304, cus_per_wgp=1,
        simds_per_cu=4, wave_slots=8, barriers=16, vgprs=_CDNA_VGPRS, sgprs=_CDNA_SGPRS, lds_bytes=64 * KIB,
        lds_granule=512, scratch_slots=32, vram_bytes=192 * GIB, engine_mhz=2100, memory_mhz=1300, memory_bits=8192,
        caches={"vector": Cache(32, 128, 1), "scalar": Cache(16, 64, 2), "instruction": Cache(64, 64, 2),
                "L2": Cache(4096, 128, 38), "L3": Cache(262144, 64, 304)},
    ),
    Device(  # 32 of the 36 compute units of an XCC are in use
        arch="gfx950", marketing_name="AMD Instinct MI350X", codename="aqua_vanjaram", gfx_target_version=90500,
        pci_device=0x75A0, xccs=8, engines=4, arrays_per_engine=1, array_cus=9, compute_units=256, cus_per_wgp=1,
        simds_per_cu=4, wave_slots=8, barriers=16, vgprs=_CDNA_VGPRS, sgprs=_CDNA_SGPRS, lds_bytes=160 * KIB,
        lds_granule=1280, scratch_slots=32, vram_bytes=288 * GIB, engine_mhz=2200, memory_mhz=2000, memory_bits=8192,
        caches={"vector": Cache(32, 128, 1), "scalar": Cache(16, 64, 2), "instruction": Cache(64, 64, 2),
                "L2": Cache(4096, 128, 32), "L3": Cache(262144, 64, 256)},
    ),
)
DEVICES: Mapping[str, Device] = {row.arch: row for row in _ROWS}


def device(arch: str) -> Device:
    """The GPU that stands for an arch. Raises Unmodelled."""
    if arch not in DEVICES:
        raise Unmodelled(arch, f"a GPU of {arch} (known: {', '.join(DEVICES)})", "isa/abi/devices.py")
    return DEVICES[arch]
