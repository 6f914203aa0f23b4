"""The reference executor: waves, barriers and a fair schedule around the interpreter.

The waves of a few workgroups take turns of `QUANTUM` instructions, in dispatch order or in one that is a function
of the seed. A wave gives up its turn early at a barrier, at S_SLEEP and at its end. A round in which no workgroup
ended may mean that they wait for one that has not started: from then on twice as many are kept going, up to what
the device holds (docs/emulator.md).

Errors:  KernelFault (what the kernel did), Unmodelled (what is not built).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from stuntgpu.emu import faults, occupancy, state, wave_hwregs
from stuntgpu.emu.allocation import Allocation, within
from stuntgpu.emu.faults import RESERVED, KernelFault, WaveReport
from stuntgpu.emu.launch import Launch, RunOptions, Stats
from stuntgpu.emu.memory import EXECUTE, AddressSpace
from stuntgpu.emu.step import Step, build
from stuntgpu.emu.wave import WORKGROUP_BARRIERS, Group, Wave
from stuntgpu.isa.decode import DecodeError, decode
from stuntgpu.isa.disasm import disassemble
from stuntgpu.isa.errors import Unmodelled
from stuntgpu.isa.inst import Inst

QUANTUM = 64  # instructions of one turn
WORKGROUPS = 16  # kept going at first
LONGEST_INSTRUCTION = 16  # bytes fetched at once; no encoding is longer

#: S_SLEEP sleeps so many cycles for each unit of SIMM16.
SLEEP_CYCLES, LONGEST_SLEEP = 64, 127


class Reference:
    """Executes launches in plain Python. Slow; what it says is what the other tiers must match."""

    def __init__(self, arch: str) -> None:
        self.arch, self.row = arch, state.wavefront(arch)
        self._steps: dict[tuple[Allocation, bytes], Step] = {}
        self._shifted: dict[tuple[Inst, int], Step] = {}

    def run(self, space: AddressSpace, launch: Launch, options: RunOptions) -> Stats:
        """Run one dispatch to its end. Raises KernelFault, Unmodelled."""
        return _Run(self, space, launch, options).run()

    def run_wave(self, space: AddressSpace, code_va: int, init: state.WaveInit, lanes: int, lds_bytes: int = 0,
                 scratch_va: int = 0, scratch_wave_bytes: int = 0, budget: int = 0) -> state.WaveFinal:
        """One wave from explicit state to its S_ENDPGM (see state.WaveRunner)."""
        launch = state.launch_of_wave(code_va, lanes, lds_bytes, scratch_va, scratch_wave_bytes)
        group = Group(bytearray(lds_bytes), launch)
        wave = Wave(self.row, space, group, 0, lanes, init, code_va, scratch_va, scratch_wave_bytes)
        group.waves.append(wave)
        _Run(self, space, launch, RunOptions(max_wave_instructions=budget), [group]).run()
        return wave.final()

    def step(self, w: Wave) -> None:
        """Execute the instruction at the wave's PC."""
        step = self._fetch(w)
        if w.mode_bits >> state.MODE_GPR_INDEX & 1 and self.row.has_gpr_index and step.inst.base.startswith("VOP"):
            step = self._indexed(w, step)
        w.executed += 1
        here = w.pc
        if w.mode_bits >> state.MODE_VSKIP & 1 and self.row.has_vskip and not step.inst.base.startswith("S"):
            w.pc += step.size
            return
        try:
            step.run(w)
            if w.actions:
                w.pc, following = here, w.pc  # faults of the actions name this instruction
                while w.actions:
                    action, args = w.actions.pop(0)
                    _ACTIONS[action](w, args)
                w.pc = following
        except Unmodelled as e:
            raise w.fault("unmodelled instruction", detail=str(e)) from e

    def _fetch(self, w: Wave) -> Step:
        region = w.space.find(w.pc, 4)
        if region is None or not region.perms & EXECUTE or w.pc % 4:
            w.inst = None
            raise w.fault("page fault", address=w.pc, access="fetch", detail="the PC is not in executable memory")
        code = w.space.read(w.pc, min(LONGEST_INSTRUCTION, region.end - w.pc))
        step = self._steps.get((w.allocation, code))
        if step is None:
            step = self._steps[w.allocation, code] = self._build(w, code)
        w.inst = step.inst
        return step

    def instruction(self, w: Wave) -> Inst | None:
        """The instruction at the wave's PC; None when there is none."""
        try:
            return self._fetch(w).inst
        except KernelFault:
            return None

    def _indexed(self, w: Wave, plain: Step) -> Step:
        """The instruction with the VGPR numbers that M0 makes of its own."""
        inst = within(plain.inst, w.allocation)
        if inst is None:
            return plain
        key = inst, w.sgprs[self.row.m0] & 0xF0FF
        step = self._shifted.get(key)
        if step is None:
            step = self._shifted[key] = build(*key)
        return step

    def _build(self, w: Wave, code: bytes) -> Step:
        try:
            inst = decode(self.arch, code)
        except DecodeError as e:
            w.inst = None
            raise w.fault("illegal instruction", detail=f"{e.reason} ({code[:8].hex(' ')})") from None
        try:
            done = within(inst, w.allocation)
            return Step(inst, inst.size, ()) if done is None else replace(build(done), inst=inst)
        except Unmodelled as e:
            w.inst = inst
            raise w.fault("unmodelled instruction", detail=str(e)) from e


class _Run:
    """One launch, or the one workgroup that `resident` holds already.

    resident   workgroups that started and have not all ended, in dispatch order.
    wanted     how many are kept going.
    """

    def __init__(self, reference: Reference, space: AddressSpace, launch: Launch, options: RunOptions,
                 resident: Sequence[Group] = ()) -> None:
        self.reference, self.space, self.launch, self.options = reference, space, launch, options
        self.random = random.Random(options.seed)
        self.stats = Stats(kernels=1)
        self.resident = list(resident)
        self.pending: Iterator[state.Workgroup] = iter(()) if resident else state.workgroups(launch)
        self.bound = occupancy.resident_workgroups(reference.arch, launch, options.compute_units)
        self.wanted = min(WORKGROUPS, self.bound)

    def run(self) -> Stats:
        self._admit()
        while self.resident:
            running = [w for g in self.resident for w in g.waves if w.can_run]
            if not running:
                raise faults.deadlock(self.launch.name, self._report())
            before = self._settled()
            if not self._round(running):
                break
            if self._settled() == before:
                self.wanted = min(2 * self.wanted, self.bound)
            self.resident = [g for g in self.resident if not all(w.done for w in g.waves)]
            self._admit()
        return self.stats

    def _settled(self) -> int:
        """Workgroups that started and need no more turns."""
        return self.stats.workgroups - sum(any(w.can_run for w in g.waves) for g in self.resident)

    def _admit(self) -> None:
        active = sum(any(w.can_run for w in g.waves) for g in self.resident)
        while active < self.wanted and len(self.resident) < self.bound:
            group = next(self.pending, None)
            if group is None:
                return
            self.resident.append(self._start(group))
            active += 1

    def _start(self, workgroup: state.Workgroup) -> Group:
        launch = self.launch
        group = Group(bytearray(state.allocated_lds(self.reference.arch, launch)), launch, workgroup.id, workgroup.index,
                      self.options.clock + workgroup.index)
        for number in range(-(-workgroup.items // launch.wave_lanes)):
            init = state.initial_wave(self.reference.row, launch, workgroup, number)
            scratch = state.scratch_of_wave(launch, workgroup, number)
            group.waves.append(Wave(self.reference.row, self.space, group, number, launch.wave_lanes, init,
                                    launch.entry, scratch, launch.scratch_wave_bytes))
        self.stats.workgroups += 1
        self.stats.waves += len(group.waves)
        return group

    def _round(self, running: list[Wave]) -> bool:
        """One turn for every wave that can run; False when the launch was cancelled."""
        if self.options.seed:
            self.random.shuffle(running)
        for wave in running:
            if self.options.cancelled():
                return False
            self._turn(wave)
            _release_barrier(wave.group)
        return True

    def _turn(self, w: Wave) -> None:
        w.yields = w.asleep = False
        limit = self.options.max_wave_instructions
        for _ in range(QUANTUM):
            if limit and self.stats.wave_instructions >= limit:
                raise self._spent(w)
            self.reference.step(w)
            self.stats.wave_instructions += 1
            if w.yields:
                self.stats.clock = max(self.stats.clock, wave_hwregs.time(w))
                return

    def _spent(self, w: Wave) -> KernelFault:
        w.inst = self.reference.instruction(w)
        limit = self.options.max_wave_instructions
        fault = w.fault("budget exceeded", detail=f"the launch executed {limit} wave-instructions")
        fault.waves = self._report()
        return fault

    def _report(self) -> tuple[WaveReport, ...]:
        """Where every resident wave is: in the instruction it waits in, or before the next one."""
        return tuple(self._wave_report(w) for g in self.resident for w in g.waves if not w.done)

    def _wave_report(self, w: Wave) -> WaveReport:
        what = _state_of(w)
        inst = self.reference.instruction(w) if what == faults.RUNNING else w.inst
        pc = w.pc - (0 if what == faults.RUNNING or inst is None else inst.size)
        text = "" if inst is None else disassemble(inst, pc)
        return WaveReport(w.group.id, w.number, pc, faults.offset(pc, w.group.launch.entry), text, what)


def _state_of(w: Wave) -> str:
    if w.halted:
        return faults.HALTED
    if not w.at_barrier:
        return faults.SLEEPING if w.asleep else faults.RUNNING
    if w.waits_for is None:
        return faults.AT_BARRIER
    return faults.split_barrier(-w.waits_for if w.waits_for else w.named or 0)


def _release_barrier(group: Group) -> None:
    """Waves go on once all that have not ended wait."""
    live = [w for w in group.waves if not w.done]
    if live and all(w.at_barrier and w.waits_for is None for w in live):
        last = max(map(wave_hwregs.time, live))
        for w in live:
            w.at_barrier = False
            w.not_before(last)


# ---------------------------------------------------------------- actions (ir.ACTIONS)


def _endpgm(w: Wave, args: object) -> None:
    w.done = w.yields = True
    for number in tuple(w.group.signals):  # the others may have been waiting for it
        w.group.settle(number)


def _barrier(w: Wave, args: object) -> None:
    w.at_barrier = w.yields = True


def _signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


def _barrier_signal(w: Wave, args: Sequence[int]) -> None:
    w.group.signal(_signed(args[0]), wave_hwregs.time(w))


def _barrier_wait(w: Wave, args: Sequence[int]) -> None:
    bit = WORKGROUP_BARRIERS.get(_signed(args[0]), 0)
    if w.complete >> bit & 1:
        w.complete &= ~(1 << bit)
        w.not_before(w.passes[bit])
    else:
        w.at_barrier, w.waits_for, w.yields = True, bit, True


def _barrier_init(w: Wave, args: Sequence[int]) -> None:
    w.group.members[args[0]] = args[1]


def _barrier_join(w: Wave, args: Sequence[int]) -> None:
    w.named = args[0]


def _barrier_leave(w: Wave, args: object) -> None:
    w.named = None


def _sleep(w: Wave, args: object) -> None:
    w.late += SLEEP_CYCLES * (w.inst.fields.get("SIMM16", 0) & LONGEST_SLEEP) if w.inst else 0
    w.yields = w.asleep = True


def _priority(w: Wave, args: Sequence[int]) -> None:
    w.user_prio = args[0]


def _halt(w: Wave, args: object) -> None:
    w.halted = w.yields = True


def _nop(w: Wave, args: object) -> None:
    """Waits, hints and memory ordering: instructions complete in order here."""


def _trap(w: Wave, args: Sequence[int]) -> None:
    if args[0] not in state.DEBUG_TRAPS:
        raise w.fault("trap", detail=f"s_trap {args[0]}")


def _sendmsg(w: Wave, args: Sequence[int]) -> None:
    match state.message_effect(w.row, args[0]):
        case "dealloc":
            w.no_vgprs = 1
        case "doorbell":
            w.exec = w.facts.queue.doorbell & state.DOORBELL_BITS


def _illegal(w: Wave, args: object) -> None:
    raise w.fault("illegal instruction", detail=RESERVED)


_ACTIONS = {
    "endpgm": _endpgm, "barrier": _barrier, "sleep": _sleep, "halt": _halt, "nop": _nop,
    "barrier_signal": _barrier_signal, "barrier_wait": _barrier_wait, "barrier_init": _barrier_init,
    "priority": _priority, "barrier_join": _barrier_join, "barrier_leave": _barrier_leave,
    "memory_barrier": _nop, "trap": _trap, "sendmsg": _sendmsg, "illegal": _illegal,
}  # fmt: skip
