"""The loop: draws cases, runs them on both tiers, makes small what differs."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from stuntgpu.emu import state
from stuntgpu.emu.cache import cache
from stuntgpu.emu.forms import Form
from stuntgpu.emu.fuzz import words
from stuntgpu.emu.fuzz.case import Case, differences, run
from stuntgpu.emu.fuzz.minimise import minimise
from stuntgpu.emu.fuzz.setup import MOST_INDEXED, Setup, vector_operands
from stuntgpu.emu.native import MODE_MASK, Native
from stuntgpu.emu.program import Code, Pool, is_elided
from stuntgpu.emu.records import works_of
from stuntgpu.emu.reference import Reference
from stuntgpu.isa.arch import InstRow, arch
from stuntgpu.isa.inst import Inst

BATCH = 48  # cases whose handlers are compiled together
STARTS = 3  # states each program runs from
_LONGEST = 6  # instructions of one program
_ROUNDS, _DENORMS = (0x00, 0x0F, 0x05, 0x0A, 0x03, 0x0C), (0xF0, 0xC0, 0x30, 0x00, 0x60, 0x90)


@dataclass(frozen=True)
class Find:
    """A case on which the tiers differ, made small, and how."""

    case: Case
    differences: tuple[str, ...]


@dataclass
class Result:
    """What a run saw. unmodelled: names of instructions that fault as not built on both tiers."""

    cases: int = 0
    instructions: int = 0
    faults: int = 0
    names: set[str] = field(default_factory=set)
    unmodelled: Counter[str] = field(default_factory=Counter)
    finds: list[Find] = field(default_factory=list)


class Fuzzer:
    """One architecture. `only` keeps rows by name."""

    def __init__(self, name: str, seed: int, only: Callable[[str], bool] = lambda name: True) -> None:
        self.arch, self.row = name, state.wavefront(name)
        self.rng = random.Random(f"{name} {seed}")
        self.rows = [r for r in words.rows(name) if only(r.name)]
        if not self.rows:
            raise ValueError(f"{name}: no instruction is left to try")
        self.native, self.reference = Native(name), Reference(name)
        self.result = Result()
        self._queue: list[InstRow] = []

    # ---- making cases

    def _next_row(self) -> InstRow:
        """Every row once, in random order, then again."""
        if not self._queue:
            self._queue = self.rng.sample(self.rows, len(self.rows))
        return self._queue.pop()

    def _mode(self, insts: Sequence[Inst]) -> int:
        """Rounding and denormals mostly as compilers set them, sometimes not."""
        rng = self.rng
        mode = rng.choice((0xF0, 0xF0, 0xC0, rng.choice(_ROUNDS) | rng.choice(_DENORMS), rng.getrandbits(8)))
        mode |= rng.choice((0x000, 0x100, 0x300, 0x200)) | (rng.random() < 0.2) << state.MODE_FP16_OVFL
        if self.row.has_gpr_index and rng.random() < 0.05 and all(map(_leaves_room, insts)):
            mode |= 1 << state.MODE_GPR_INDEX
        if self.row.has_vskip and rng.random() < 0.02:
            mode |= 1 << state.MODE_VSKIP
        return mode

    def _program(self) -> list[Case]:
        """One program and several states for it. An instruction with addresses is alone: what comes before
        it would overwrite them."""
        rng, lanes = self.rng, self.rng.choice(arch(self.arch).wave_sizes)
        first = words.instruction(rng, self.arch, self._next_row())
        insts = [first]
        while not words.is_memory(first) and len(insts) < _LONGEST and rng.random() < 0.5:
            row = self._next_row()
            inst = words.instruction(rng, self.arch, row)
            if words.is_memory(inst):
                self._queue.append(row)
                break
            insts.append(inst)
        mode, out = self._mode(insts), []
        for _ in range(STARTS):
            setup = Setup(self.arch, lanes, rng)
            setup.fill(insts)
            out.append(Case(self.arch, lanes, tuple(bytes(i) for i in insts), setup.init(mode), rng.randrange(8)))
        return out

    def cases(self) -> Iterator[Case]:
        """Endless; the handlers of a batch are compiled at once."""
        while True:
            batch = [c for _ in range(BATCH // STARTS) for c in self._program()]
            cache().possible_handlers(_forms(batch[::STARTS], self.row))  # what cannot be is a fault when it is run
            yield from batch

    # ---- running them

    def differences(self, case: Case) -> list[str]:
        native, reference = run(self.native, case), run(self.reference, case)
        self.result.faults += bool(reference.fault)
        if reference.fault == native.fault == "unmodelled instruction" and len(case.code) == 1:
            self.result.unmodelled.update(i.name for i in case.insts)
        return differences(native, reference)

    def check(self, case: Case) -> Find | None:
        """A find made small; None when the tiers agree."""
        self.result.cases += 1
        self.result.instructions += len(case.code)
        self.result.names.update(i.name for i in case.insts)
        found = self.differences(case)
        if not found:
            return None
        small = minimise(case, lambda c: bool(self.differences(c)))
        find = Find(small, tuple(self.differences(small)))
        self.result.finds.append(find)
        return find

    def run(self, seconds: float = 0, count: int = 0) -> Iterator[Find]:
        """Finds, as they come, until time or number is used up (0: without end). One of each instruction."""
        end, seen = time.monotonic() + seconds, set[str]()
        for case in self.cases():
            if (seconds and time.monotonic() > end) or (count and self.result.cases >= count):
                return
            find = self.check(case)
            if find is not None and (names := " ".join(i.name for i in find.case.insts)) not in seen:
                seen.add(names)
                yield find


def _leaves_room(inst: Inst) -> bool:
    """Indexed registers stay registers: what numbers past the last one do then is not modelled."""
    return all(o.reg + o.bits // 32 + MOST_INDEXED < state.N_VGPRS for o in vector_operands(inst))


def _forms(cases: Iterable[Case], row: state.Wavefront) -> Iterator[Form]:
    """Handlers that programs need from the start."""
    for case in cases:
        mode = state.effective_mode(row, case.init.mode) & MODE_MASK
        for inst in case.insts:
            yield from forms_of(inst, case.lanes, mode)


def forms_of(inst: Inst, lanes: int, mode: int) -> list[Form]:
    """Handlers of one instruction, `mode` as instructions see it."""
    code = Code(0, inst.size, inst)
    works = [] if is_elided(code) else works_of(code, lanes, mode, Pool(lanes))
    return [w.bound.form for w in works if w.bound is not None]


