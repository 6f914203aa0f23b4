"""gfx1151 (RDNA3.5): rows of what it adds to gfx1100, the scalar floats. The texts are RDNA4's."""

from __future__ import annotations

from stuntgpu.isa.errata import bodies_minmax
from stuntgpu.isa.errata.bodies import F16, F32
from stuntgpu.isa.errata.common import Erratum
from stuntgpu.isa.errata.gfx1201 import scalar_floats

TESTS = "tests/isa/test_gfx1151.py"


def _min_max() -> tuple[Erratum, ...]:
    return tuple(
        Erratum((f"S_{op}_{f.name.upper()}",), "RDNA4's: MODE has no IEEE bit there", f"as V_{op}_{f.name.upper()} of its own vector unit",
                "RDNA3.5 manual, S_MIN and S_MAX; LLVM's name is without NUM", bodies_minmax.min_max(f, op == "MIN"),
                f"{TESTS}::test_minimum_and_maximum_quiet_signalling_nans_in_ieee_mode")
        for f in (F16, F32)
        for op in ("MIN", "MAX")
    )  # fmt: skip


ROWS = (*scalar_floats(), *_min_max())
