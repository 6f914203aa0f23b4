"""Encodings of the vendor's table that are not instructions of the chip: no decoder takes them.

Source:  LLVM 22 refuses them in both directions; the RDNA3 table is that of RDNA3.5 and its
         successors and keeps forms that GFX11 dropped (loads to LDS), and it repeats instructions
         without modifiers (V_NOP, V_READFIRSTLANE_B32, V_SWAP_B32) as VOP3.
Test:    tests/isa/test_decode.py, test_golden_refused_encodings_do_not_decode.
"""

from __future__ import annotations

LONG_FORMS = frozenset({
    "V_NOP", "V_READFIRSTLANE_B32", "V_PIPEFLUSH", "V_CLREXCP", "V_SWAP_B32",
    "V_ACCVGPR_MOV_B32",
})  # fmt: skip

DROPPED = {
    "gfx1100": frozenset({"FLAT_ATOMIC_CSUB_U32"}),
    "gfx950": frozenset({"S_SET_VALU_COEXEC_MODE"}),
}
#: Architectures without loads from memory to LDS.
NO_LOADS_TO_LDS = frozenset({"gfx1100"})


#: (base, name prefix and suffix) whose rows belong to another encoding: the fields are those of the matrix
#: instructions (LLVM's encodings of cbsz, abid and blgp).
MOVED = (("VOP3P", "V_MFMA_", "_XF32", "VOP3P_MFMA"),)
#: Operand numbers the vendor's table leaves out, with their names.
EXTRA_SOURCES = {"gfx942": {239: "SRC_POPS_EXITING_WAVE_ID"}, "gfx950": {239: "SRC_POPS_EXITING_WAVE_ID"}}


def encoding_of(base: str, name: str, encoding: str) -> tuple[str, str]:
    """(base, encoding) of a row of the vendor's table."""
    for wrong, start, end, right in MOVED:
        if base == wrong and name.startswith(start) and name.endswith(end):
            return right, right
    return base, encoding


#: Fields of an encoding that hold one value in every instruction of it.
REQUIRED = {
    ("gfx950", "VOP3PX2"): {"ABID": 1, "NEG": 0, "NEG_HI": 0},
    ("gfx942", "FLAT"): {"SADDR": 0, "SVE": 0},
    ("gfx950", "FLAT"): {"SADDR": 0, "SVE": 0},
}


def required(arch: str, base: str) -> dict[str, int]:
    """Field -> the value it has in every instruction of `base`."""
    return REQUIRED.get((arch, base), {})


def is_refused(arch: str, base: str, name: str) -> bool:
    """Whether the row (base, name) of the table is no instruction of `arch`."""
    if base == "VOP3" and name in LONG_FORMS:
        return True
    if arch in NO_LOADS_TO_LDS and "_LOAD_LDS_" in name:
        return True
    return name in DROPPED.get(arch, ())
