"""Packets to waves and their instructions.

    trace = map_stream(decode(buffer), [program])
    for wave in trace.waves:
        for issue in wave.issues:
            print(issue.time, hex(issue.pc), issue.text, issue.duration, issue.stall)

Every wave of the shader engine has its start and end; instructions are told of for one unit only, the one
the trace was set up for (`Unit`). A wave's instructions follow from its first address: each packet of it
is the next instruction, those without packets stepped over, branches as their packets say.

Units:   times and durations in cycles of the shader clock; addresses in bytes.
Source:  FORMAT.md of the trace goldens, sections 3.1, 4.3 and 5.
Errors:  none for what a trace holds: what does not fit is in `Trace.problems`, and the wave it happened to
         is followed no further.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from stuntgpu.sqtt.decode import Stream
from stuntgpu.sqtt.packets import Packet
from stuntgpu.sqtt.pairing import executions
from stuntgpu.sqtt.program import CodeError, Program, Step
from stuntgpu.sqtt.rules import (
    EXECUTED_BY,
    IMMEDIATE_VALU,
    ISSUE_PICK,
    ISSUE_SLOTS,
    ISSUE_STALL,
    PGM_HI,
    PGM_LO,
    PGM_UNIT_BYTES,
    RULES,
    STALLS,
    Rules,
)


@dataclass(frozen=True, slots=True)
class Unit:
    """What the trace tells of: `place` is (sa, wgp) on RDNA, (sh, cu) on gfx9. simd None: all of the place
    (gfx9); on RDNA the one SIMD that was chosen."""

    place: tuple[int, int] = (0, 0)
    simd: int | None = 0


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a trace that does not fit: packet index and what."""

    packet: int
    text: str

    def __str__(self) -> str:
        return f"packet {self.packet}: {self.text}"


@dataclass(frozen=True, slots=True)
class Issue:
    """One instruction of a wave.

    packet    index of the packet that tells of it.
    time      when it was issued.
    step      the instruction and its address.
    op        code of its INST packet, None for others.
    duration  until the wave's next packet (its end too); None when the trace ends before.
    ready     when the wave was told to be ready again before that (WAVERDY), None when it was not.
    executed  when its pipe executed it, None when no packet says.
    picked    gfx9: when the arbiter picked it (ISSUE), which is before its packet; None elsewhere.
    waited    gfx9: cycles the wave was told to be stalled in before it was picked.
    """

    packet: int
    time: int
    step: Step
    op: int | None = None
    duration: int | None = None
    ready: int | None = None
    executed: int | None = None
    picked: int | None = None
    waited: int = 0

    @property
    def pc(self) -> int:
        return self.step.pc

    @property
    def text(self) -> str:
        return self.step.text

    @property
    def stall(self) -> tuple[str, int] | None:
        """(what for, cycles) the wave waited: RDNA after it, until it was ready; gfx9 before it, for the arbiter."""
        if self.ready is None:
            return ("arbiter", self.waited) if self.waited else None
        why = next((reason for start, reason in STALLS if self.step.name.startswith(start)), "dependency")
        return why, self.ready - self.time


@dataclass(frozen=True, slots=True)
class Wave:
    """One wave: where and when it ran, and what, when it ran on the traced unit.

    place      (sa, wgp) or (sh, cu); `simd` and `slot` within it.
    start      time of its start; end None when the trace ends before.
    lanes      active ones, 0 where the format does not tell.
    program    what it ran; None when no register packet told, or the wave was not followed.
    issues     its instructions in order.
    end_packet index of the packet of its end, and `end_pc`: the address it had come to by then, None when it
               was not followed. Where the trace has no instruction packets that is the program's entry.
    """

    place: tuple[int, int]
    simd: int
    slot: int
    start: int
    end: int | None
    lanes: int = 0
    program: Program | None = None
    issues: tuple[Issue, ...] = ()
    end_packet: int | None = None
    end_pc: int | None = None

    @property
    def duration(self) -> int | None:
        return None if self.end is None else self.end - self.start


@dataclass(frozen=True)
class Trace:
    """What a stream tells: waves in order of their starts; `problems` is empty when everything fits.

    loose_executions  executions by pipe that no issue was left for, and issues that none was for:
                      pipe -> (executions, issues).
    """

    stream: Stream
    waves: tuple[Wave, ...]
    problems: tuple[Problem, ...]
    loose_executions: dict[str, tuple[int, int]] = field(default_factory=dict)

    @cached_property
    def issues(self) -> tuple[tuple[Wave, Issue], ...]:
        """All instructions with their waves, by packet and then by slot."""
        pairs = [(w, i) for w in self.waves for i in w.issues]
        return tuple(sorted(pairs, key=lambda p: (p[1].packet, p[0].simd, p[0].slot)))


def map_stream(
    stream: Stream, programs: Sequence[Program], *, unit: Unit | None = None, skip_barrier_waits: bool | None = None,
) -> Trace:
    """The waves of a stream and their instructions.

    programs   the kernels that ran; each wave's is the one at the program address last written before it
               started, or the only one.
    unit       what the trace was set up for, as captures have it when None.
    skip_barrier_waits  whether the mask of the trace excluded s_barrier_wait (gfx12). None: tried both ways,
               and what leaves fewer problems is it; excluded, when they are equal.
    """
    rules = RULES[stream.layout.name]
    chosen = unit or Unit(simd=None if "simd" in rules.slot else 0)
    if skip_barrier_waits is None and rules.maybe_silent:
        excluded = _Mapper(stream, programs, chosen, rules, True).run()
        if not excluded.problems:
            return excluded
        shown = _Mapper(stream, programs, chosen, rules, False).run()
        return min(excluded, shown, key=lambda t: len(t.problems))
    return _Mapper(stream, programs, chosen, rules, bool(skip_barrier_waits)).run()


@dataclass(slots=True)
class _Open:
    """A wave that runs, while it is followed. `pc` None: it is not."""

    place: tuple[int, int]
    simd: int
    slot: int
    start: int
    lanes: int
    order: int
    program: Program | None = None
    pc: int | None = None
    issues: list[Issue] = field(default_factory=list)
    returns: dict[int, int] = field(default_factory=dict)  # scalar register pair -> return address
    stalled: int | None = None  # gfx9: since when
    picks: deque[tuple[int, int]] = field(default_factory=deque)  # gfx9: (when, cycles waited), INST to come

    def closed(self, end: int | None = None, end_packet: int | None = None) -> Wave:
        return Wave(self.place, self.simd, self.slot, self.start, end, self.lanes, self.program, tuple(self.issues),
                    end_packet, None if end is None else self.pc)


class _Mapper:
    """One pass over a stream."""

    def __init__(self, stream: Stream, programs: Sequence[Program], unit: Unit, rules: Rules, skips: bool) -> None:
        self.stream, self.programs, self.unit, self.rules = stream, programs, unit, rules
        self.silent = rules.silent | (rules.maybe_silent if skips else frozenset())
        self.open: dict[tuple[int, ...], _Open] = {}  # by place, simd and slot
        self.traced: dict[tuple[int, ...], _Open] = {}  # by what INST names
        self.done: list[tuple[int, Wave]] = []
        self.problems: list[Problem] = []
        self.pgm: dict[int, int] = {}
        self.branched = {rules.taken, rules.not_taken}
        self.handlers: dict[str, Callable[[int, int, Packet], None]] = {
            "WAVESTART": self.start, "WAVEEND": self.end, "INST": self.inst, "VALUINST": self.plain,
            "IMMEDIATE": self.plain, "IMMEDIATE_MASK": self.masked, "WAVERDY": self.ready, "ISSUE": self.arbitrate,
            "INST_PC": self.at_pc,
            **dict.fromkeys(rules.compute_regs, self.register),
        }  # fmt: skip

    def run(self) -> Trace:
        stream = self.stream
        where = stream.where(*(name for name in self.handlers if name in stream.layout))
        times = stream.times[where].tolist()
        for i, time, packet in zip(where.tolist(), times, stream.packets(where), strict=True):
            self.handlers[packet.NAME](i, time, packet)
        for wave in self.open.values():
            self.done.append((wave.order, wave.closed()))
        waves = [wave for _, wave in sorted(self.done, key=lambda row: row[0])]
        waves, loose = _executed(stream, waves, self.rules)
        return Trace(stream, tuple(waves), tuple(self.problems), loose)

    # ---- waves

    def start(self, i: int, time: int, p: Packet) -> None:
        place, key = self.place(p), self.key(p)
        if key in self.open:
            self.problem(i, f"a wave starts in slot {key} that has one; the end of the other is lost")
            self.close(key)
        wave = _Open(place, p.simd, p.wave, time, p.count if "count" in p.FIELDS else 0, i)
        self.open[key] = wave
        if place == self.unit.place and self.unit.simd in (None, p.simd):
            self.traced[self.slot(p)] = wave
            self.begin(i, wave)

    def begin(self, i: int, wave: _Open) -> None:
        """Find the wave's program."""
        address = self.pgm_address()
        if address is None and len(self.programs) == 1:
            address = self.programs[0].entry
        wave.program = next((p for p in self.programs if address in p), None)
        if wave.program is not None:
            wave.pc = address
        else:
            told = "none was told" if address is None else f"it is at {address:#x}"
            self.problem(i, f"which program the wave of slot {wave.slot} runs is not known: {told}")

    def pgm_address(self) -> int | None:
        """The program address last written, None when it was not."""
        if PGM_LO not in self.pgm:
            return None
        return (self.pgm.get(PGM_HI, 0) << 32 | self.pgm[PGM_LO]) * PGM_UNIT_BYTES

    def end(self, i: int, time: int, p: Packet) -> None:
        key = self.key(p)
        wave = self.open.get(key)
        if wave is None:
            self.problem(i, f"the wave of slot {key} ends, its start is lost")
            return
        if wave.pc is not None:
            self.finish(i, time, wave)
        self.close(key, time, i)

    def finish(self, i: int, time: int, wave: _Open) -> None:
        """The last instruction: on RDNA the end is its packet. A wave that no packet told of was not followed."""
        if wave.issues and wave.issues[-1].step.is_end:
            self.settle(wave, time)
            return
        step = self.step(i, wave)
        if step is None:
            return
        if step.is_end and not self.rules.has_end_token:
            self.add(wave, Issue(i, time, step, duration=0))
        elif wave.issues:
            self.problem(i, f"the wave of slot {wave.slot} ends at {step.pc:#x}, at {step.text}")

    def close(self, key: tuple[int, ...], time: int | None = None, packet: int | None = None) -> None:
        wave = self.open.pop(key)
        self.traced = {slot: w for slot, w in self.traced.items() if w is not wave}
        self.done.append((wave.order, wave.closed(time, packet)))

    # ---- instructions

    def inst(self, i: int, time: int, p: Packet) -> None:
        if p.op not in self.rules.other:
            self.issue(i, time, self.slot(p), p.op)

    def plain(self, i: int, time: int, p: Packet) -> None:
        self.issue(i, time, self.slot(p), None)

    def masked(self, i: int, time: int, p: Packet) -> None:
        for slot in _ones(p.mask):
            self.issue(i, time, (slot,), None)

    def issue(self, i: int, time: int, slot: tuple[int, ...], op: int | None) -> None:
        """The next instruction of a wave."""
        wave = self.traced.get(slot)
        if wave is None:
            self.problem(i, f"an instruction of slot {slot}, which has no wave")
            return
        step = self.step(i, wave)
        if step is None:
            return
        packet = self.stream.layout.kinds[self.stream.types[i]].NAME
        if not self.fits(packet, op, step):
            code = "" if op is None else f" with code {op:#x}"
            self.problem(i, f"slot {wave.slot}: {step.pc:#x} is {step.text}, its packet is {packet}{code}")
            wave.pc = None
            return
        picked, waited = wave.picks.popleft() if wave.picks else (None, 0)
        self.add(wave, Issue(i, time, step, op, picked=picked, waited=waited))
        self.advance(i, wave, step, op)

    def fits(self, packet: str, op: int | None, step: Step) -> bool:
        """Whether an instruction can have this packet, as far as all instructions of its pipe agree."""
        if (op in self.branched) != _is_plain_branch(step) or (step.is_end and not self.rules.has_end_token):
            return False
        if packet.startswith("IMMEDIATE"):
            return step.pipe not in ("valu", "vmem", "lds") or step.name in IMMEDIATE_VALU
        return packet != "VALUINST" or step.pipe == "valu"

    def step(self, i: int, wave: _Open) -> Step | None:
        """The wave's next instruction that has packets; None when it is not followed, or not any more."""
        program, pc = wave.program, wave.pc
        if program is None or pc is None:
            return None
        try:
            step = program.at(pc)
            while step.name in self.silent:
                step = program.at(step.after)
        except CodeError as error:
            self.problem(i, f"slot {wave.slot}: {error}")
            wave.pc = None
            return None
        wave.pc = step.pc
        return step

    def advance(self, i: int, wave: _Open, step: Step, op: int | None) -> None:
        """Move the wave's PC past an instruction."""
        wave.pc = step.after
        if step.inst is not None and step.name == "S_CALL_B64":
            wave.returns[step.inst.fields["SDST"]] = step.after
            wave.pc = step.target
        elif step.inst is not None and step.name in ("S_SETPC_B64", "S_SWAPPC_B64"):
            wave.pc = wave.returns.pop(step.inst.fields["SSRC0"], None)
            if wave.pc is None:
                self.problem(i, f"slot {wave.slot}: {step.text} at {step.pc:#x} goes where registers say")
        elif op == self.rules.taken:
            wave.pc = step.target

    def add(self, wave: _Open, issue: Issue) -> None:
        self.settle(wave, issue.time)
        wave.issues.append(issue)

    def settle(self, wave: _Open, time: int) -> None:
        """The wave's last instruction lasted until now."""
        if wave.issues:
            last = wave.issues[-1]
            wave.issues[-1] = replace(last, duration=time - last.time)

    def ready(self, i: int, time: int, p: Packet) -> None:
        for slot in _ones(p.mask):
            wave = self.traced.get((slot,))
            if wave is not None and wave.issues and wave.issues[-1].ready is None:
                wave.issues[-1] = replace(wave.issues[-1], ready=time)

    def arbitrate(self, i: int, time: int, p: Packet) -> None:
        """gfx9: what the arbiter of a SIMD decided for its waves."""
        for slot in range(ISSUE_SLOTS):
            decided = getattr(p, f"inst{slot}")
            wave = self.traced.get((p.simd, slot)) if decided else None
            if wave is None:
                continue
            if decided == ISSUE_STALL:
                wave.stalled = time if wave.stalled is None else wave.stalled
                continue
            if decided == ISSUE_PICK:
                wave.picks.append((time, 0 if wave.stalled is None else time - wave.stalled))
            wave.stalled = None

    def at_pc(self, i: int, time: int, p: Packet) -> None:
        """gfx9: no capture shows when a wave's PC is told and in which unit, so the wave is followed no further."""
        wave = self.traced.get((p.simd, p.wave))
        self.problem(i, f"slot {self.slot(p)}: what {p!r} says of the wave's PC is not known")
        if wave is not None:
            wave.pc = None

    # ---- helpers

    def register(self, i: int, time: int, p: Packet) -> None:
        """A compute register: the program address is what the next waves run."""
        index, value, flag = self.rules.compute_regs[p.NAME]
        register = getattr(p, index)
        if register in (PGM_LO, PGM_HI) and (not flag or getattr(p, flag) & 0x80):
            self.pgm[register] = getattr(p, value)

    def place(self, p: Packet) -> tuple[int, int]:
        coarse, fine = self.rules.place
        return getattr(p, coarse), getattr(p, fine)

    def key(self, p: Packet) -> tuple[int, ...]:
        return (*self.place(p), p.simd, p.wave)

    def slot(self, p: Packet) -> tuple[int, ...]:
        return tuple(getattr(p, name) for name in self.rules.slot)

    def problem(self, i: int, text: str) -> None:
        self.problems.append(Problem(i, text))


def _ones(mask: int) -> Iterable[int]:
    """Numbers of the bits that are set, ascending."""
    return (n for n in range(mask.bit_length()) if mask >> n & 1)


def _is_plain_branch(step: Step) -> bool:
    """Whether its packet says taken or not taken."""
    return step.target is not None and step.base == "SOPP"


def _executed(stream: Stream, waves: list[Wave], rules: Rules) -> tuple[list[Wave], dict[str, tuple[int, int]]]:
    """`waves` with the times their instructions were executed at, and what is left over by pipe."""
    kinds = stream.layout.kinds
    issued = sorted(
        (
            (issue.packet, EXECUTED_BY.get(issue.step.pipe, issue.step.pipe), (w, n))
            for w, wave in enumerate(waves) for n, issue in enumerate(wave.issues)
            if not kinds[stream.types[issue.packet]].NAME.startswith("IMMEDIATE")
        ),
        key=lambda row: row[0],
    )  # fmt: skip
    times, loose = executions(stream, issued, rules)
    if not times:
        return waves, loose
    return [
        replace(wave, issues=tuple(replace(x, executed=times.get((w, n))) for n, x in enumerate(wave.issues)))
        for w, wave in enumerate(waves)
    ], loose
