"""What an instruction touches beyond its semantics row, or where the vendor's operand list says otherwise.

Test:    tests/isa/test_effects_xml.py: every difference between the semantics and the operand lists is a row here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class Extra:
    """Instructions whose name matches also read and write these: "M0", "EXEC", "PC", "TTMP" (the first two trap
    temporaries), or the operand of a role.

    why   what hardware does with them, and who says so.
    when  only with this field set, where there is one.
    """

    names: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    why: str
    certain: bool = True
    when: str = ""

    def applies(self, name: str) -> bool:
        return re.fullmatch(self.names, name) is not None


#: Accesses of hardware that the rows, which describe what a kernel can compute, leave out.
EXTRAS = (
    Extra("S_SENDMSG|S_SENDMSGHALT", ("M0",), (), "M0 is the message's data (ISA documents, S_SENDMSG)"),
    Extra("S_TTRACEDATA", ("M0",), (), "M0 is the word that goes to the thread trace"),
    Extra("S_TRAP", ("PC",), ("PC", "TTMP"), "the trap handler gets the PC in ttmp0 and ttmp1", certain=False),
    Extra("EXP|EXPORT", ("EXEC",), (), "EXEC says which lanes export"),
    Extra("EXP|EXPORT", ("M0",), (), "M0 is the row", when="ROW_EN"),
    Extra("(LDS|DS)_PARAM_LOAD", ("M0",), (), "M0 holds where the parameters lie in LDS and which quads are new"),
    Extra("S_PREFETCH_(INST|DATA)_PC_REL", ("PC",), (), "the address is relative to the PC"),
    Extra("S_ALLOC_VGPR", ("S0",), (), "how many VGPRs are wanted"),
    Extra("S_RFE_RESTORE_B64", ("S1",), (), "state of the trap handler to restore"),
    Extra("V_MFMA_F32_.*_F32", ("MODE",), (), "denormals of f32 elements are flushed where MODE says so"),
    Extra("V_MFMA_(SCALE_)?F32_.*_F8F6F4", ("MODE",), (), "FP16_OVFL of MODE clamps sums that overflow"),
    Extra("DS_GWS_.*|DS_ORDERED_COUNT|DS_(ADD|SUB)_GS_REG_RTN", ("M0",), (), "M0 holds the resource's number"),
)  # fmt: skip


@lru_cache(maxsize=4096)
def extras(name: str) -> tuple[Extra, ...]:
    return tuple(e for e in EXTRAS if e.applies(name))


@dataclass(frozen=True, slots=True)
class Differs:
    """Where the facts of an instruction and the vendor's operand list disagree, and the facts are believed.

    access  "r SRC0", "w VCC", ...: in the list only; with "+": in the facts only. Registers that a field names
            by that field, memory as MEM and LDS.
    why     what the list leaves out or has too much.
    """

    names: str
    access: str
    why: str

    def says(self, name: str, access: str) -> bool:
        return access == self.access and re.fullmatch(self.names, name) is not None


_APPEND = "counts the lanes that are on in the LDS word that M0 and OFFSET name"
_TO_LDS = "the list has the address only: data goes from memory to LDS, at M0"
_LDS_DIRECT = "the list has the result only: LDS is read where M0 says, for the quads that EXEC has on"
_LOOP = "the list has the operands only: half of EXEC runs at a time, and the loop jumps"

DIFFERENCES = (
    Differs("DS_(APPEND|CONSUME)", "+r EXEC", _APPEND), Differs("DS_(APPEND|CONSUME)", "+r LDS", _APPEND),
    Differs("DS_(APPEND|CONSUME)", "+w LDS", _APPEND), Differs("DS_(APPEND|CONSUME)", "+r M0", _APPEND),
    Differs("DS_CONDXCHG32_RTN_B64", "+r LDS", "both words of LDS are given back, and changed on request"),
    Differs("DS_CONDXCHG32_RTN_B64", "+w LDS", "both words of LDS are given back, and changed on request"),
    Differs("DS_SWIZZLE_B32", "+r EXEC", "lanes that are off give 0"),
    Differs("(LDS|DS)_(DIRECT|PARAM)_LOAD", "+r EXEC", _LDS_DIRECT), Differs("(LDS|DS)_(DIRECT|PARAM)_LOAD", "+r LDS", _LDS_DIRECT),
    Differs("(LDS|DS)_(DIRECT|PARAM)_LOAD", "+r M0", _LDS_DIRECT),
    Differs("(GLOBAL|SCRATCH)_LOAD_LDS_.*", "+r MEM", _TO_LDS), Differs("(GLOBAL|SCRATCH)_LOAD_LDS_.*", "+w LDS", _TO_LDS),
    Differs("(GLOBAL|SCRATCH)_LOAD_LDS_.*", "+r M0", _TO_LDS),
    Differs("GLOBAL_LOAD_TR_B(64|128)", "+r MEM", "a load"), Differs("DS_READ_B(64|96)_TR_B.*", "+r LDS", "a load"),
    Differs("GLOBAL_LOAD_TR_.*|DS_READ_B.*_TR_.*", "+r VDST", "lanes that are off take part with what they hold"),
    Differs("S_SENDMSG(HALT)?|S_TTRACEDATA", "+r M0", "see EXTRAS"), Differs("S_TRAP", "+w ttmp[0:1]", "see EXTRAS"),
    Differs("S_BARRIER_INIT", "+r M0", "M0 has the barrier's member count"),
    Differs("S_BARRIER_SIGNAL(_ISFIRST)?|S_GET_BARRIER_STATE", "r M0", "only where the operand is M0"),
    Differs("S_SUBVECTOR_LOOP_(BEGIN|END)", "+r EXEC", _LOOP), Differs("S_SUBVECTOR_LOOP_(BEGIN|END)", "+w EXEC", _LOOP),
    Differs("S_SUBVECTOR_LOOP_(BEGIN|END)", "+r PC", _LOOP), Differs("S_SUBVECTOR_LOOP_(BEGIN|END)", "+w PC", _LOOP),
    Differs("S_RFE_RESTORE_B64", "+w PC", "it returns, as S_RFE_B64 does"),
    Differs("FLAT_.*|SCRATCH_.*", "+r flat_scratch", "scratch addresses are relative to FLAT_SCRATCH"),
    Differs("V_CMPX_.*", "+w EXEC", "the VDST of the VOP3 form is EXEC"),
    Differs("V_CMPX_.*", "w VDST", "the VDST of the VOP3 form is EXEC"),
    Differs("S_MOVRELD_B(32|64)", "r SDST", "the destination is not read"),
    Differs("V_MOVREL(D|SD|SD_2)_B32", "r VDST", "the destination is not read"),
    Differs("S_SENDMSG_RTN_B(32|64)", "r SSRC0", "the number of a message"), Differs("S_SET_GPR_IDX_ON", "r SSRC1", "a number"),
    Differs("S_ATC_PROBE(_BUFFER)?|S_(BUFFER_)?PREFETCH_.*", "r SDATA", "a number"),
    Differs("T?BUFFER_LOAD_(FORMAT_)?D16_(FORMAT_)?XYZ?W?", "r VDATA", "whole registers are written"),
    Differs("V_(DIV_FIXUP|FMA|MAD)_LEGACY_[FIU]16", "r VDST", "CDNA clears the other half of the result"),
)  # fmt: skip
