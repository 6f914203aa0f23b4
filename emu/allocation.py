"""Vector registers a wave was given, and what instructions do that name others.

CDNA's file holds both kinds: the VGPRs, then at ACCUM_OFFSET the AccVGPRs, up to what RSRC1 asks for. A source
beyond what the wave has is VGPR 0; an instruction with a result beyond does nothing. Both are decided by the
instruction alone, so that executors get another instruction, or none; register numbers made at run time (MOVREL, GPR
index mode) are not looked at.

Units:   registers.
Errors:  Unmodelled for what the documents leave open: VGPRs that lie where the AccVGPRs are, and halves of dual
         instructions.
Source:  ISA documents: RDNA3 3.3.2, RDNA4 3.3.2, CDNA3 and CDNA4 3.6.1 and 3.6.4; granules: LLVM, getVGPRAllocGranule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from stuntgpu.emu.launch import Launch
from stuntgpu.isa.abi.descriptor import Rsrc1, Rsrc3
from stuntgpu.isa.abi.devices import device
from stuntgpu.isa.abi.targets import round_up, target
from stuntgpu.isa.errors import Unmodelled
from stuntgpu.isa.inst import Inst, Kind, Operand
from stuntgpu.isa.operands import operands

#: Registers an instruction can name, of each kind.
NAMED = 256


@dataclass(frozen=True, slots=True)
class Allocation:
    """vgprs and agprs a wave may name; total: registers it has in the file, of both kinds."""

    vgprs: int = NAMED
    agprs: int = NAMED
    total: int = 2 * NAMED


EVERYTHING = Allocation()


def of_launch(arch: str, launch: Launch) -> Allocation:
    """What RSRC1 and RSRC3 of a launch give its waves. RSRC1.VGPRS of 0, which no kernel is compiled to, is taken for a
    launch put together by hand: its waves have every register."""
    return _of(arch, launch.rsrc1, launch.rsrc3, launch.wave_lanes)


@lru_cache(maxsize=1024)
def _of(arch: str, rsrc1: int, rsrc3: int, lanes: int) -> Allocation:
    steps, file = Rsrc1.from_int(rsrc1).vgprs, device(arch).vgprs[lanes]
    if not steps:
        return EVERYTHING
    total = round_up((steps + 1) * target(arch).vgpr_granule(lanes), file.granule)
    if file.addressable <= NAMED:
        return EVERYTHING if total >= NAMED else Allocation(total, 0, total)
    first = 4 * (Rsrc3.from_int(rsrc3).accum_offset + 1)
    return Allocation(min(first, total, NAMED), max(0, min(total - first, NAMED)), total)


def within(inst: Inst, a: Allocation) -> Inst | None:
    """The instruction that the hardware executes in place of `inst`; None for one that does nothing. Raises Unmodelled."""
    if a == EVERYTHING:
        return inst
    is_alu = inst.base.startswith("VO")
    beyond = [op for op in operands(inst) if op.kind in _BEYOND and _BEYOND[op.kind](op, _last(op) if is_alu else op.reg, a)]
    if not beyond:
        return inst
    if inst.x is not None:
        raise Unmodelled(inst.arch, f"registers beyond the wave's {a.vgprs} in {inst.name}", "emu/allocation.py")
    for op in beyond:
        if op.kind is Kind.VGPR and op.reg < a.total and a.agprs:
            raise Unmodelled(inst.arch, f"v{op.reg} of a wave whose AccVGPRs begin at {a.vgprs}", "emu/allocation.py")
    if any(op.is_written for op in beyond):
        return None
    return replace(inst, fields=dict(inst.fields) | {op.field: _first(inst, op) for op in beyond})


def _last(op: Operand) -> int:
    return op.reg + max(1, -(-op.bits // 32)) - 1


_BEYOND: dict[Kind, Callable[[Operand, int, Allocation], bool]] = {
    Kind.VGPR: lambda op, last, a: last >= a.vgprs,
    Kind.AGPR: lambda op, last, a: last >= a.agprs,
}


def _first(inst: Inst, op: Operand) -> int:
    """Register 0 in a field: sources that may be scalar count VGPRs from 256."""
    return NAMED if inst.fields[op.field] >= NAMED else 0
