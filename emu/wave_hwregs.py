"""S_GETREG, S_SETREG, messages and the clock as a wave of the reference does them; the rows are in hwregs.py.

Errors:  Unmodelled, naming the register or message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from stuntgpu.emu import hwregs
from stuntgpu.emu.hwregs import M32, HwReg, Source
from stuntgpu.emu.place import PLACES

if TYPE_CHECKING:
    from stuntgpu.emu.wave import Wave


def read(w: Wave, number: int) -> int:
    """S_GETREG: 32 bits of a register."""
    reg = w.row.hwregs.rows.get(number)
    if reg is None or reg.source is Source.NONE:
        raise hwregs.unmodelled(w.row.arch, w.row.hwregs, number)
    return _READ[reg.source](w, reg, reg.value(w.facts))


def write(w: Wave, number: int, value: int) -> None:
    """S_SETREG. Bits that are the hardware's or the trap handler's stay as they are."""
    reg = w.row.hwregs.rows.get(number)
    if reg is None or reg.source is Source.NONE:
        raise hwregs.unmodelled(w.row.arch, w.row.hwregs, number)
    if reg.source is Source.MODE:
        w.set_mode(value & reg.mask)
    elif reg.source is Source.STORED:
        w.stored[reg.index] = w.stored[reg.index] & ~reg.mask | value & reg.mask


def message(w: Wave, number: int) -> int:
    """What S_SENDMSG_RTN and the clock instructions get."""
    reg = w.row.hwregs.rows.get(number - hwregs.FIRST_MESSAGE + hwregs.MESSAGES) if number >= hwregs.FIRST_MESSAGE else None
    if reg is None or reg.source is Source.NONE:
        raise hwregs.unmodelled_message(w.row.arch, w.row.hwregs, number)
    return _READ[reg.source](w, reg, reg.value(w.facts))


def time(w: Wave) -> int:
    """The wave's clock (see hwregs.py), the running instruction included."""
    return w.late + w.executed


# ---------------------------------------------------------------- by source


def _status(w: Wave, reg: HwReg, base: int) -> int:
    in_group = len(w.group.waves) > 1
    bits = (w.scc << hwregs.SCC | w.user_prio << hwregs.USER_PRIO | (w.exec == 0) << hwregs.EXECZ
            | w.vccz << hwregs.VCCZ | in_group << hwregs.IN_GROUP | w.no_vgprs << hwregs.NO_VGPRS)
    return base | bits & reg.mask


def _state_priv(w: Wave, reg: HwReg, base: int) -> int:
    complete = w.complete >> 1 & 1  # the workgroup's barrier
    return (base | complete << hwregs.PRIV_BARRIER_COMPLETE | w.scc << hwregs.PRIV_SCC
            | w.user_prio << hwregs.PRIV_USER_PRIO)


def _place(w: Wave, reg: HwReg, base: int) -> int:
    for name, low, width in reg.fields:
        base |= (w.place[PLACES.index(name)] & (1 << width) - 1) << low
    return base


def _scratch(w: Wave) -> int:
    return w.scratch_va if w.scratch_wave_bytes else 0


_READ: Mapping[Source, Callable[[Wave, HwReg, int], int]] = {
    Source.VALUE: lambda w, reg, base: base,
    Source.MODE: lambda w, reg, base: w.mode_bits & reg.mask,
    Source.STATUS: _status,
    Source.STATE_PRIV: _state_priv,
    Source.STORED: lambda w, reg, base: w.stored[reg.index],
    Source.PLACE: _place,
    Source.SCRATCH_LO: lambda w, reg, base: _scratch(w) & M32,
    Source.SCRATCH_HI: lambda w, reg, base: _scratch(w) >> 32,
    Source.CYCLES: lambda w, reg, base: time(w) & reg.mask,
    Source.CYCLES_HI: lambda w, reg, base: time(w) >> 32,
    Source.REALTIME: lambda w, reg, base: time(w) // hwregs.CYCLES_PER_REALTIME,
    Source.TIME: lambda w, reg, base: time(w),
    Source.DISPATCH: lambda w, reg, base: w.dispatch_id & M32,
}
