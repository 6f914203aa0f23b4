"""How packets of each layout tell of instructions: what counts as one, what is silent, what the codes mean.

Source:  FORMAT.md of the trace goldens, sections 3.1, 3.2, 4.3 and 5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rules:
    """One layout.

    place         fields of WAVESTART and WAVEEND that say where, besides simd and wave, coarse first.
    slot          fields that name a wave in INST and its like, coarse first: a trace has one traced unit.
    taken, not_taken, calls  INST codes of control flow.
    other         INST codes that tell of the other SIMD of the pair, none of the wave's instructions -> pipe.
    silent        instructions that no packet tells of.
    maybe_silent  the same, as the mask of excluded tokens says.
    has_end_token whether the end of the program has an INST packet before its WAVEEND.
    compute_regs  packets that carry compute registers -> their fields: index of the register, its value, and one whose
                  bit 7 says that it is one ("" when all are).
    """

    place: tuple[str, ...]
    slot: tuple[str, ...]
    taken: int
    not_taken: int
    calls: frozenset[int]
    other: Mapping[int, str]
    silent: frozenset[str]
    maybe_silent: frozenset[str]
    has_end_token: bool
    compute_regs: Mapping[str, tuple[str, str, str]]


def _codes(**ranges: tuple[int, int]) -> dict[int, str]:
    """INST code -> pipe, from inclusive ranges."""
    return {code: pipe for pipe, (lo, hi) in ranges.items() for code in range(lo, hi + 1)}


#: Index of compute registers as REG packets number them.
PGM_LO, PGM_HI = 0x0C, 0x0D
#: The program address in those registers counts these.
PGM_UNIT_BYTES = 256

_RDNA_REGS = {"REG": ("subop", "val32", "hi_byte")}
_GFX9_REGS = dict.fromkeys(("REG_CS", "REG_CS_PRIV"), ("regaddr", "regdata", ""))
_RDNA_SILENT = frozenset({"S_DELAY_ALU", "S_WAIT_ALU"})

RULES: Mapping[str, Rules] = {
    "gfx11": Rules(("sa", "wgp"), ("wave",), 3, 4, frozenset({5}), _codes(lds=(0x50, 0x54), vmem=(0x55, 0x66)),
                   _RDNA_SILENT, frozenset(), False, _RDNA_REGS),
    "gfx12": Rules(("sa", "wgp"), ("wave",), 3, 4, frozenset({5}),
                   _codes(lds=(0x50, 0x54), vmem=(0x55, 0x59)) | _codes(vmem=(0xBC, 0xDD)),
                   _RDNA_SILENT, frozenset({"S_BARRIER_WAIT"}), False, _RDNA_REGS),
    "gfx9": Rules(("sh", "cu"), ("simd", "wave"), 12, 13, frozenset({7}), {},
                  frozenset({"S_WAITCNT", "S_NOP"}), frozenset(), True, _GFX9_REGS),
}  # fmt: skip

#: ALUEXEC.src and VMEMEXEC.src -> pipes that executed something. What the other SIMD of the pair
#: executed (memory sources 1 and 3) is no wave's of the trace.
ALU_SOURCES: Mapping[int, tuple[str, ...]] = {0: (), 1: ("salu",), 2: ("valu",), 3: ("valu", "salu")}
MEMORY_SOURCES: Mapping[int, tuple[str, ...]] = {0: ("lds",), 1: (), 2: ("vmem",), 3: ()}

#: Pipes whose instructions another one's packets tell of: in the captures every scalar load has its ALUEXEC.
#: Nothing tells of the execution of instructions of IMMEDIATE packets, whatever their pipe.
EXECUTED_BY: Mapping[str, str] = {"smem": "salu"}

#: Instructions of the vector pipe that have IMMEDIATE packets.
IMMEDIATE_VALU = frozenset({"V_PERMLANE64_B32"})

#: ISSUE.inst0 to inst9 of gfx9, a wave each: nothing, stalled, an instruction that has an INST packet, one that
#: has none (s_nop, s_waitcnt). In every gfx950 capture a wave has as many picks as INST packets, in that order.
ISSUE_STALL, ISSUE_PICK = 1, 2
ISSUE_SLOTS = 10

#: What a wave waits for after an instruction, when a WAVERDY ends the wait: by start of the name, the first that fits.
STALLS: tuple[tuple[str, str], ...] = (
    ("S_BARRIER", "barrier"), ("S_WAIT", "counter"), ("S_SLEEP", "sleep"), ("S_SENDMSG", "message"),
    ("S_CBRANCH", "branch"), ("S_BRANCH", "branch"), ("S_SETPC", "branch"), ("S_CALL", "branch"), ("S_SWAPPC", "branch"),
)  # fmt: skip
