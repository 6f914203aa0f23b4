"""What an instruction touches: registers read and written, memory, wait counters, control flow.

    effects = reads_writes(decode("gfx1100", code))
    for access in effects.reads: print(access, access.use, access.lanes)

The facts come from the instruction's semantics (`effects_flow` walks the row) and its operand list
(`effects_places` finds the registers); `errata/effects.py` holds what neither of them says, with reasons.
A sanitizer, a debugger or a scheduler needs nothing else about an instruction.

Facts are those of the encoding: CDNA's GPR index mode, which adds M0 to VGPR numbers at run time, is not
in them. Every instruction moves the PC; only those that read it, or write it otherwise, list it.

Units:   registers of 32 bits; sizes of memory in bytes.
Errors:  none for what `decode` accepts. Instructions without semantics (images, exports, GWS) have the facts of their
         operand lists, and say so (`Effects.has_semantics`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from stuntgpu.isa.arch import Arch, arch
from stuntgpu.isa.inst import Inst


class File(Enum):
    """Register files. SGPR counts by scalar operand number: VCC, TTMP, M0 and EXEC are in it."""

    VGPR = "v"
    AGPR = "a"
    SGPR = "s"
    SCC = "scc"
    PC = "pc"
    HWREG = "hwreg"  # by the number S_GETREG uses: 1 is MODE
    BARRIER = "barrier"  # state of a workgroup's barriers
    MESSAGE = "message"  # what S_SENDMSG_RTN and clocks return


class Use(Enum):
    """What a register is read or written for."""

    VALUE = "value"
    ADDRESS = "address"  # of memory, or of a register: base, offset, descriptor, index
    MASK = "mask"  # EXEC: lanes that are off neither read nor write
    KEPT = "kept"  # a destination whose old value stays in part: bits, or lanes that EXEC has on


class Lanes(Enum):
    """Whose part of a register."""

    UNIFORM = "uniform"  # one value for the wave
    OWN = "own"  # every lane that EXEC has on, its own
    ALL = "all"  # every lane, whatever EXEC says
    OTHER = "other"  # lanes the instruction chooses: DPP, permutes, READLANE, interpolation


class Exec(Enum):
    """What EXEC means to an instruction."""

    SCALAR = "scalar"  # runs once for the wave
    MASKED = "masked"  # runs for the lanes that are on
    IGNORED = "ignored"  # works on VGPRs whatever EXEC says
    DATA = "data"  # runs once for the wave, works on VGPRs, and computes with EXEC


class Flow(Enum):
    """Where the wave goes on."""

    NEXT = "next"
    BRANCH = "branch"
    COND_BRANCH = "cond_branch"
    CALL = "call"
    INDIRECT = "indirect"  # to an address in registers
    INDIRECT_CALL = "indirect_call"
    TRAP = "trap"
    END = "end"


@dataclass(frozen=True, slots=True)
class Access:
    """Registers reg..reg+count-1 of a file.

    bits     which bits of them, the first register's lowest.
    role     the place of `ir.PLACES` it fills or takes; field: the microcode field that names it, "" if none does.
    certain  it happens on every path; else some value of some input decides.
    dynamic  any of these registers: M0 or another register chooses at run time.
    """

    file: File
    reg: int
    count: int
    bits: int
    use: Use = Use.VALUE
    lanes: Lanes = Lanes.UNIFORM
    role: str = ""
    field: str = ""
    certain: bool = True
    dynamic: bool = False
    name: str = dataclasses.field(default="", compare=False)

    @property
    def implicit(self) -> bool:
        """No field of the encoding names it."""
        return not self.field

    @property
    def registers(self) -> Iterator[tuple[int, int]]:
        """(register number, mask of its 32 bits), those without a bit left out."""
        for i in range(self.count):
            mask = self.bits >> 32 * i & 0xFFFF_FFFF
            if mask:
                yield self.reg + i, mask

    def __str__(self) -> str:
        return self.name or f"{self.file.value}{self.reg}+{self.count}"


@dataclass(frozen=True, slots=True)
class Memory:
    """One kind of memory an instruction touches.

    space    "flat", "global", "scratch", "scalar" (SMEM), "buffer", "lds", "gds", "image".
    atomic   read and write are one indivisible action of each lane; returns: the old value comes back.
    size     bytes of a lane (of the wave, where lanes is UNIFORM); None: a descriptor or a mask says.
    """

    space: str
    is_read: bool
    is_written: bool
    size: int | None
    lanes: Lanes
    atomic: bool = False
    returns: bool = False
    certain: bool = True


@dataclass(frozen=True, slots=True)
class Wait:
    """The instruction starts when `counter` is at most `limit`; limit None: a register adds to it."""

    counter: str
    limit: int | None


@dataclass(frozen=True, slots=True)
class Effects:
    """Everything an instruction touches, for waves of `wave_lanes` lanes.

    raises   wait counters it counts up; `waits`: those it waits for.
    target   flow BRANCH, COND_BRANCH, CALL: where to, in bytes from the start of this instruction.
    barrier  "signal", "wait", "signal_wait", "init", "join", "leave"; "" not about barriers.
    halves   of a dual instruction: X, Y. Both read before either writes; reads and writes here are of both.
    has_semantics  False: operand list only, so implicit accesses beyond it are not known.
    """

    wave_lanes: int
    reads: tuple[Access, ...] = ()
    writes: tuple[Access, ...] = ()
    memory: tuple[Memory, ...] = ()
    raises: tuple[str, ...] = ()
    waits: tuple[Wait, ...] = ()
    exec: Exec = Exec.SCALAR
    flow: Flow = Flow.NEXT
    target: int | None = None
    barrier: str = ""
    has_semantics: bool = True
    halves: tuple[Effects, ...] = ()

    def __str__(self) -> str:
        """One line: what is read -> what is written; what stays of that; memory; counters."""
        kept = tuple(a for a in self.reads if a.use is Use.KEPT)
        parts = [f"{_listed(tuple(a for a in self.reads if a not in kept))} -> {_listed(self.writes)}"]
        if kept:
            parts.append(f"keeps {_listed(kept)}")
        for m in self.memory:
            kind = "atomic" if m.atomic else "+".join(["load"] * m.is_read + ["store"] * m.is_written)
            parts.append(f"{m.space} {kind} {'?' if m.size is None else m.size}")
        if self.raises:
            parts.append(f"raises {' '.join(self.raises)}")
        if self.waits:
            limits = (f"{w.counter}<={'?' if w.limit is None else w.limit}" for w in self.waits)
            parts.append(f"waits {' '.join(limits)}")
        return "; ".join(parts)


def _listed(accesses: tuple[Access, ...]) -> str:
    return " ".join(dict.fromkeys(str(a) for a in accesses)) or "nothing"


def wave_sizes(target: Arch, wave_lanes: int) -> int:
    """The asked wave size, or the default of the architecture. Raises ValueError for one it does not have."""
    if not wave_lanes:
        return target.wave_sizes[0]
    if wave_lanes not in target.wave_sizes:
        raise ValueError(f"{target.name} has no waves of {wave_lanes} lanes")
    return wave_lanes


def reads_writes(inst: Inst, wave_lanes: int = 0) -> Effects:
    """What `inst` touches; wave_lanes 32 or 64, 0: what the tools of its architecture suppose.

    Lane masks (VCC, EXEC, results of compares) are one register in waves of 32 lanes and two in waves of 64.
    """
    from stuntgpu.isa.effects_build import effects

    return effects(inst, wave_sizes(arch(inst.arch), wave_lanes))
