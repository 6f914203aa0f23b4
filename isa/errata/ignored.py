"""Bits that decoders pass over: assembly text cannot say them, so they do not come back from it.

An instruction leaves parts of its encoding unused. Most must hold one value (0, or what `isa.fixed`
says), and other values are refused; those listed here may hold anything.

Source:  LLVM 22's disassembler, asked with every such bit of every instruction changed: it refuses
         the others. Compilers differ in what they leave in some of them.
Test:    tests/isa/test_fuzz.py; tests/isa/test_llvm_ignored.py asks LLVM again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

Fields = Mapping[str, int]
GFX9 = ("gfx942", "gfx950")


@dataclass(frozen=True, slots=True)
class Ignored:
    """Fields of encodings that may hold anything in instructions that do not use them.

    bases   encoding families. `names`: a pattern for the instructions, "": all of them.
    when    "": in instructions without an operand or modifier there; else a key of CONDITIONS, for
            fields that depend on others.
    arches  (): all.
    """

    bases: str
    fields: str
    reason: str
    names: str = ""
    when: str = ""
    arches: tuple[str, ...] = ()


ROWS = (
    Ignored("VOP3 VOP3_SDST VOP3P", "SRC1 SRC2", "a source the instruction has not; LLVM wrote 0 there, now the number of the constant 0"),
    Ignored("VOP3P", "OP_SEL_HI", "halves of a source the instruction has not"),
    Ignored("VOP3", "ABS NEG", "signs of a source that op_sel alone has", "V_CVT_SR_(FP8|BF8)_F32|V_CVT_SCALEF32_PK_FP4_B?F16", "", GFX9),
    Ignored("VOP3", "OP_SEL", "the byte selection has two bits", "V_CVT_F32_(FP8|BF8)|V_PERMLANE(16|32)_SWAP_B32", "", GFX9),
    Ignored("VOP3", "OP_SEL", "FI and BOUND_CTRL are bits 0 and 1", "V_PERMLANEX?16_B32", "", ("gfx1100", "gfx1151", "gfx1201")),
    Ignored("VOP1", "SRC0", "no operands", "V_NOP|V_PIPEFLUSH|V_CLREXCP"),
    Ignored("SOP1", "SDST SSRC0", "no result, or no source"),
    Ignored("SOP2 SOPK", "SDST", "no result"),
    Ignored("SMEM", "SBASE SDATA OFFSET IOFFSET SOFFSET", "no such operand"),
    Ignored("SMEM", "TH SCOPE", "cache policy of a prefetch or cache control", "", "", ("gfx1201",)),
    Ignored("SMEM", "GLC SOFFSET_EN", "cache policy and address mode of an instruction without an address", "", "", GFX9),
    Ignored("FLAT FLAT_GLOBAL FLAT_GLBL FLAT_SCRATCH", "DATA VDST ADDR", "no data to store, no result, no address"),
    Ignored("VFLAT VGLOBAL VSCRATCH", "VSRC VDST VADDR IOFFSET", "no data to store, no result, no address"),
    Ignored("FLAT FLAT_GLOBAL FLAT_GLBL FLAT_SCRATCH VFLAT VGLOBAL VSCRATCH", "VDST", "an atomic that returns nothing", "", "no return"),
    Ignored("FLAT_SCRATCH", "ADDR", "the address is scalar", "", "no vector address"),
    Ignored("VSCRATCH", "VADDR", "the address is scalar", "", "no vector address"),
    Ignored("MUBUF", "VDATA SRSRC SOFFSET OFFSET VADDR SLC", "cache control", "BUFFER_(GL[01]_INV|INV|WBL2)"),
    Ignored("MUBUF MTBUF VBUFFER", "VADDR", "neither index nor offset", "", "no buffer address"),
    Ignored("VBUFFER", "FORMAT", "untyped buffer"),
    Ignored("DS VDS", "ADDR DATA0 DATA1 VDST", "no such operand: LLVM refuses other values, programs that ran on hardware have them"),
    Ignored("VOPD VOPDX VOPDY", "VSRCX1 VSRCY1", "a half with one source: LLVM refuses other values, programs that ran on hardware have them"),
    Ignored("DS VDS", "OFFSET0 OFFSET1", "a lane bit whose AND, OR and XOR bits do what plainer ones do", "DS_SWIZZLE_B32", "swizzle"),
    Ignored("VOP1 VOP2 VOPC VOP3 VOP3_SDST SOP2", "LITERAL", "the high half of a literal that is read as 16 bits; compilers extend the sign", "", "half literal"),
    Ignored("VOPC", "SDST SD", "VCC by its number is VCC by default", "", "VCC named", GFX9),
    Ignored("LDSDIR VDSDIR", "ATTR ATTR_CHAN", "no attribute"),
    Ignored("EXP VEXPORT", "VSRC0 VSRC1 VSRC2 VSRC3", "a component that is not exported", "", "not exported"),
    Ignored("VOP3", "OP_SEL", "the half of a source that is no VGPR", "V_CNDMASK_B16", "no half"),
)  # fmt: skip


#: What assemblers say (a pattern of `AsmError.message`) about text of words that decoders take, and why.
UNASSEMBLED = (
    (r"reads \d+ scalar registers or literals; at most \d are possible", "more than the constant bus carries: the word says it, hardware cannot"),
    (r"sources v\d+ and v\d+ of the halves share a register bank", "halves of a pair read in one cycle: the word says it, hardware cannot"),
)  # fmt: skip


def rows(arch: str, base: str, name: str, conditional: bool = False) -> Iterator[Ignored]:
    """The rows that speak of an instruction, with a condition or without."""
    for row in ROWS:
        here = base in row.bases.split() and (not row.arches or arch in row.arches)
        if here and bool(row.when) == conditional and (not row.names or re.fullmatch(row.names, name)):
            yield row


# ---------------------------------------------------------------- conditions

FIRST_VGPR = 256


def no_return(f: Fields, field: str) -> int:
    return 0 if f.get("GLC", f.get("SC0", f.get("TH", 0) & 1)) else -1


def no_vector_address(f: Fields, field: str) -> int:
    return 0 if f["SVE"] else -1


def no_buffer_address(f: Fields, field: str) -> int:
    return 0 if f["OFFEN"] or f["IDXEN"] else -1


def not_exported(f: Fields, field: str) -> int:
    return 0 if f["EN"] >> int(field[-1]) & 1 else -1


def no_half(f: Fields, field: str) -> int:
    first = FIRST_VGPR if "VSRC0" in f else f["SRC0"]  # with DPP it is a VGPR
    return (first < FIRST_VGPR) | (f["SRC1"] < FIRST_VGPR) << 1


VCC = 106


def vcc_named(f: Fields, field: str) -> int:
    return f[field] if f.get("SD") and f["SDST"] == VCC else 0


#: (AND, OR, XOR) bits that assemblers write for a lane bit: 0, 1, as it is, inverted.
PLAIN_SWIZZLES = ((0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 0, 1))


def swizzle(f: Fields, field: str) -> int:
    """All bits of the lane bits that are not written plainly."""
    offset = f["OFFSET1"] << 8 | f["OFFSET0"]
    odd = [i for i in range(5) if tuple(offset >> i + at & 1 for at in (0, 5, 10)) not in PLAIN_SWIZZLES]
    bits = 0 if offset >> 15 else sum(0x421 << i for i in odd)
    return bits & 255 if field == "OFFSET0" else bits >> 8


#: Condition -> (fields, field) -> bits of the field that are passed over.
CONDITIONS: Mapping[str, Callable[[Fields, str], int]] = {
    "no return": no_return, "no vector address": no_vector_address, "no buffer address": no_buffer_address,
    "not exported": not_exported, "no half": no_half, "swizzle": swizzle, "VCC named": vcc_named,
}  # fmt: skip
