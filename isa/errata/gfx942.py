"""gfx942 (CDNA3): what it has of its own beside the rows of all CDNA."""

from __future__ import annotations

from stuntgpu.isa.errata import cdna
from stuntgpu.isa.errata.common import MANUAL, Erratum, Own, Same, Unbuilt

ROWS: tuple[Erratum | Own | Same | Unbuilt, ...] = (
    *cdna.ROWS,
    *cdna.small_floats("_fnuz"),
    Own(("V_MFMA_F32_16X16X8_XF32", "V_MFMA_F32_32X32X4_XF32"), "shape and types are in the name; " + MANUAL, "(do wmma)"),
)
