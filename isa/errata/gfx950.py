"""gfx950 (CDNA4): what it has of its own beside the rows of all CDNA."""

from __future__ import annotations

from stuntgpu.isa.errata import bodies_minmax, cdna
from stuntgpu.isa.errata.bodies import F32
from stuntgpu.isa.errata.common import MANUAL, Erratum, Own, Same, Unbuilt

_THREE = f"{cdna.TESTS}::test_minimum3_keeps_any_nan"


def _minimum(name: str, smallest: bool) -> tuple[Erratum, ...]:
    says, does = "calls an instruction this generation has not", "minimum or maximum of IEEE 754-2019, twice"
    return (
        Erratum((f"V_{name}3_F32",), says, does, "the text of RDNA4 for the one called",
                bodies_minmax.minimum3(F32, smallest), _THREE),
        Erratum((f"V_PK_{name}3_F16",), says, does, "the text of RDNA4 for the one called",
                bodies_minmax.packed_minimum3(smallest), _THREE),
    )


ROWS: tuple[Erratum | Own | Same | Unbuilt, ...] = (
    *cdna.ROWS,
    *cdna.small_floats(""),
    *_minimum("MINIMUM", True), *_minimum("MAXIMUM", False),
    Own(("V_MFMA_SCALE_F32_16X16X128_F8F6F4", "V_MFMA_SCALE_F32_32X32X64_F8F6F4"),
        "shape and types are in the name and its fields; " + MANUAL, "(do wmma)"),
)
