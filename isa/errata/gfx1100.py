"""gfx1100 (RDNA3): rows in place of missing or mistaken text."""

from __future__ import annotations

from stuntgpu.isa.errata.common import Erratum, Own, Same, Unbuilt

ROWS: tuple[Erratum | Own | Same | Unbuilt, ...] = ()
