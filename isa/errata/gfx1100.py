"""gfx1100 (RDNA3): what it has of its own beside the rows of all RDNA."""

from __future__ import annotations

from stuntgpu.isa.errata import bodies, rdna
from stuntgpu.isa.errata.common import FACTS, Erratum, Own, Same, Unbuilt

TESTS = "tests/isa/test_semantics.py"

ROWS: tuple[Erratum | Own | Same | Unbuilt, ...] = (
    *rdna.ROWS,
    Erratum(("DS_BPERMUTE_B32",), "selects among lanes 0..31 only", "each half of a wave64 on its own", FACTS,
            bodies.gather(bodies.HALF_WAVE_LANE), f"{TESTS}::test_ds_bpermute_inactive_source_is_zero"),
    Erratum(("DS_PERMUTE_B32",), "sends to lanes 0..31 only", "each half of a wave64 on its own", FACTS,
            bodies.scatter(), f"{TESTS}::test_ds_permute_inactive_lane_sends_nothing"),
)
