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


RDNA, CDNA = ("gfx1100", "gfx1151", "gfx1201"), ("gfx942", "gfx950")
#: Forms the vendor's table leaves out: architectures, bases, names, form.
EXTRA_FORMS: tuple[tuple[tuple[str, ...], str, tuple[str, ...], str], ...] = (
    ((*RDNA, *CDNA), "SOP1", ("S_SWAPPC_B64", "S_MOVRELSD_2_B32"), "lit_0"),
    (RDNA, "VOP3P", ("V_FMA_MIX_F32", "V_FMA_MIXLO_F16", "V_FMA_MIXHI_F16"), "lit_0 lit_1 lit_2"),
    (CDNA, "VOP1", ("V_NOP",), "dpp16"),
)
#: Instructions whose VGPR tuples may begin at any register, where those of others are aligned.
UNALIGNED = frozenset({"DS_READ_B96_TR_B6"})
#: The source that only dual instructions of RDNA are taken with, although no chip of theirs has it.
LDS_DIRECT, LDS_DIRECT_NAME = 254, "src_lds_direct"


def extra_forms(arch: str, base: str, name: str) -> frozenset[str]:
    """Forms of the row (base, name) that the vendor's table leaves out."""
    rows = [forms for arches, b, names, forms in EXTRA_FORMS if arch in arches and base == b and name in names]
    return frozenset(form for forms in rows for form in forms.split())


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
