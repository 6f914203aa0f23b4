"""Where the waves of a native launch are, read from the C core's memory when nothing runs any more.

Units:   pc in bytes from the program's entry.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence

from stuntgpu.emu import layout
from stuntgpu.emu.faults import AT_BARRIER, HALTED, RUNNING, SLEEPING, WaveReport, split_barrier
from stuntgpu.emu.native_abi import (
    SLOT_FREE,
    WAVE_ASLEEP,
    WAVE_AT_BARRIER,
    WAVE_AT_SPLIT,
    WAVE_ENDED,
    WAVE_HALTED,
    CSlot,
    CWave,
    CWorker,
)
from stuntgpu.emu.program import Program
from stuntgpu.isa.disasm import disassemble

_STATES = {WAVE_AT_BARRIER: AT_BARRIER, WAVE_HALTED: HALTED, WAVE_ASLEEP: SLEEPING}
#: Their `next` is the record behind the instruction they wait in.
_BEHIND = (WAVE_AT_BARRIER, WAVE_AT_SPLIT, WAVE_ASLEEP)


def record_pc(address: int) -> int:
    """PC of the record at a host address."""
    return ctypes.c_int64.from_address(address + layout.R_PC).value


def waves_of(program: Program, workers: Sequence[CWorker]) -> tuple[WaveReport, ...]:
    """Every wave that has not ended, in dispatch order. The program is decoded."""
    texts: dict[int, str] = {}
    waves = [(slot.index, w) for k in workers for slot in _slots(k) for w in _live(k, slot)]
    waves.sort(key=lambda item: (item[0], item[1].wave_in_group))
    return tuple(_report(program, texts, w) for _, w in waves)


def _slots(k: CWorker) -> Iterator[CSlot]:
    """Resident workgroups; the place of one that ended in this round is empty."""
    for i in range(k.n_live):
        if k.live[i] and k.live[i].contents.state != SLOT_FREE:
            yield k.live[i].contents


def _live(k: CWorker, slot: CSlot) -> Iterator[CWave]:
    assert slot.memory is not None
    for i in range(slot.n_waves):
        w = CWave.from_address(slot.memory + i * k.wave_bytes)
        if w.state != WAVE_ENDED:
            yield w


def _report(program: Program, texts: dict[int, str], w: CWave) -> WaveReport:
    pc = record_pc(w.next - (layout.RECORD_BYTES if w.state in _BEHIND else 0))
    if pc not in texts:
        code = program.code.get(pc)
        texts[pc] = "" if code is None or code.inst is None else disassemble(code.inst, w.code + pc)
    return WaveReport(tuple(w.group), w.wave_in_group, (w.code + pc) % (1 << 64), pc, texts[pc], _state(w))


def _state(w: CWave) -> str:
    if w.state != WAVE_AT_SPLIT:
        return _STATES.get(w.state, RUNNING)
    bit = w.waits_for - 1
    return split_barrier(-bit if bit else w.named)
