"""AMD GPU targets as code objects and dispatches see them: ELF machine numbers and launch granules.

Units:   bytes.
Source:  AMDGPU back-end user guide, "Processors", "Code Object V4 ELF header", "Generic processors";
         COMPUTE_PGM_RSRC2.LDS_SIZE and COMPUTE_TMPRING_SIZE.WAVESIZE of the kernel's register headers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stuntgpu.isa.errors import Unmodelled

#: Where FLAT addresses mean LDS and scratch: the high 32 bits choose, the low 32 are the offset.
LDS_APERTURE = 0x1_0000_0000_0000
SCRATCH_APERTURE = 0x2_0000_0000_0000

#: EF_AMDGPU_MACH (e_flags bits 7:0) of every target we can name in an error.
MACH: Mapping[int, str] = {
    0x2C: "gfx900", 0x2F: "gfx906", 0x30: "gfx908", 0x32: "gfx90c", 0x3F: "gfx90a", 0x40: "gfx940",
    0x4B: "gfx941", 0x4C: "gfx942", 0x4F: "gfx950", 0x33: "gfx1010", 0x34: "gfx1011", 0x35: "gfx1012",
    0x36: "gfx1030", 0x37: "gfx1031", 0x38: "gfx1032", 0x39: "gfx1033", 0x3E: "gfx1034", 0x3D: "gfx1035",
    0x45: "gfx1036", 0x41: "gfx1100", 0x46: "gfx1101", 0x47: "gfx1102", 0x44: "gfx1103", 0x43: "gfx1150",
    0x4A: "gfx1151", 0x55: "gfx1152", 0x58: "gfx1153", 0x48: "gfx1200", 0x4E: "gfx1201", 0x49: "gfx1250",
    0x51: "gfx9-generic", 0x52: "gfx10-1-generic", 0x53: "gfx10-3-generic", 0x54: "gfx11-generic",
    0x59: "gfx12-generic", 0x5F: "gfx9-4-generic",
}


@dataclass(frozen=True, slots=True)
class Target:
    """One row: what a launch on this target needs to know.

    generic             generic target whose code runs here too, "" none.
    has_wave32          the descriptor chooses 32 or 64 lanes; otherwise always 64.
    lds_granule         unit of RSRC2.LDS_SIZE.
    lds_max             LDS a workgroup can have.
    scratch_granule     unit of TMPRING_SIZE.WAVESIZE: scratch of one wave is a multiple of it.
    has_flat_scratch    architected flat scratch: the hardware sets FLAT_SCRATCH, no user SGPRs for it.
    has_kernarg_preload the descriptor may ask for kernel arguments in user SGPRs.
    has_xnack           code objects say whether they rely on XNACK and SRAMECC.
    """

    name: str
    generic: str
    has_wave32: bool
    lds_granule: int
    lds_max: int
    scratch_granule: int
    has_flat_scratch: bool
    has_kernarg_preload: bool
    has_xnack: bool

    def runs(self, object_target: str) -> bool:
        """True when code built for `object_target` runs here."""
        return object_target in (self.name, self.generic)

    def wave_lanes(self, wants_wave32: bool) -> int:
        """Lanes of a wave, given the descriptor's ENABLE_WAVEFRONT_SIZE32."""
        return 32 if self.has_wave32 and wants_wave32 else 64

    def vgpr_granule(self, wave_lanes: int) -> int:
        """VGPRs that one step of RSRC1.VGPRS stands for."""
        return 4 if self.has_wave32 and wave_lanes == 64 else 8


_ROWS = (
    #      name       generic           w32    lds   lds max   scratch  flat   preload xnack
    Target("gfx1100", "gfx11-generic",  True,  512,  0x10000,  256,     True,  False, False),
    Target("gfx1151", "gfx11-generic",  True,  512,  0x10000,  256,     True,  False, False),
    Target("gfx1201", "gfx12-generic",  True,  512,  0x10000,  256,     True,  False, False),
    Target("gfx942",  "gfx9-4-generic", False, 512,  0x10000,  1024,    True,  True,  True),
    Target("gfx950",  "gfx9-4-generic", False, 1280, 0x28000,  1024,    True,  True,  True),
)
TARGETS: Mapping[str, Target] = {row.name: row for row in _ROWS}


def target(arch: str) -> Target:
    """The row of an arch. Raises Unmodelled."""
    if arch not in TARGETS:
        raise Unmodelled(arch, f"launching on {arch} (known: {', '.join(TARGETS)})", "isa/abi/targets.py")
    return TARGETS[arch]


def round_up(value: int, granule: int) -> int:
    """The least multiple of granule not below value."""
    return -(-value // granule) * granule
