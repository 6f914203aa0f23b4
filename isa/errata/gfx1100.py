"""gfx1100 (RDNA3): what it has of its own beside the rows of all RDNA."""

from __future__ import annotations

from stuntgpu.isa.errata import rdna
from stuntgpu.isa.errata.common import Erratum, Own, Same, Unbuilt

ROWS: tuple[Erratum | Own | Same | Unbuilt, ...] = rdna.ROWS
