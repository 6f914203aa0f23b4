"""From decoded instructions to the chain of records that native code runs.

Instructions lie in address order, so that the record after one is the one executed next. Waits and
hints have no record: the counters know them by ordinals. A `Template` is position independent and can
be kept on disk; a `Variant` is one with the addresses of this process filled in.

Units:   pc in bytes from the program's entry.
Errors:  nothing is raised for what is not modelled: its record faults when run.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace

from stuntgpu.emu import layout, state
from stuntgpu.emu.allocation import within
from stuntgpu.emu.cache import cache
from stuntgpu.emu.forms import Bound, Form, Slot, bind, row, symbol
from stuntgpu.emu.native_abi import CPlace
from stuntgpu.emu.program import (
    Code,
    Pool,
    Program,
    action_of,
    branch_target,
    ends_run,
    is_elided,
)
from stuntgpu.isa.errors import Unmodelled
from stuntgpu.isa.inst import Inst, Kind
from stuntgpu.isa.ir import Do, Store, statements
from stuntgpu.isa.operands import operands

_C_HANDLERS = {
    "endpgm": "sg_op_endpgm", "barrier": "sg_op_barrier", "sleep": "sg_op_yield", "trap": "sg_op_trap",
    "halt": "sg_op_halt", "priority": "sg_op_priority", "illegal": "sg_op_illegal", "barrier_wait": "sg_op_barrier_wait",
    "memory_barrier": "sg_op_fence",
}  # fmt: skip

#: By effect of S_SENDMSG.
_MESSAGES = {"interrupt": "sg_op_nop", "dealloc": "sg_op_dealloc", "doorbell": "sg_op_doorbell"}

#: VGPR slot beyond the architectural ones: holds half of a VOPD pair for a moment.
_TEMPORARY = 2 * state.N_VGPRS


@dataclass(frozen=True, slots=True)
class Work:
    """What a record does: a handler of ours, or one of the C core with its argument."""

    bound: Bound | None
    c_handler: str = ""
    argument: int = 0
    reason: str = ""


# ---------------------------------------------------------------- one instruction


def works_of(code: Code, lanes: int, mode: int, pool: Pool) -> list[Work]:
    """The records of an instruction; a VOPD pair has two or three."""
    if code.inst is None:
        return [Work(None, "sg_op_illegal" if code.illegal else "sg_op_unmodelled", reason=code.reason)]
    try:
        if code.inst.x is not None and code.inst.y is not None:
            return _pair(code.inst.x, code.inst.y, lanes, mode, pool)
        if [s.action for s in row(code.inst.arch, code.inst.name).sem.body if isinstance(s, Do)] == ["sendmsg", "halt"]:
            return [_message(code.inst), Work(None, "sg_op_halt")]
        fence = [Work(None, "sg_op_fence")] if is_coherent_store(code.inst) else []
        return [_single(code.inst, lanes, mode, pool), *fence]
    except Unmodelled as e:
        return [Work(None, "sg_op_unmodelled", reason=str(e))]


def is_coherent_store(inst: Inst) -> bool:
    """CDNA has no counter of stores alone that a kernel could wait for: its stores for the whole device say so, by
    SC1, and what follows comes after them for everyone."""
    if not inst.fields.get("SC1") or (facts := row(inst.arch, inst.name)).is_atomic:
        return False
    return any(isinstance(s, Store) for s in statements(facts.sem.body))


def _single(inst: Inst, lanes: int, mode: int, pool: Pool) -> Work:
    sem = row(inst.arch, inst.name).sem
    action = action_of(sem, inst.fields)
    if action is not None and action.action in _C_HANDLERS:
        return Work(None, _C_HANDLERS[action.action], inst.fields.get("SIMM16", 0) & 0xFF)
    if action is not None and action.action == "sendmsg":
        return _message(inst)
    return Work(bind(inst, lanes, mode, pool))


def _message(inst: Inst) -> Work:
    return Work(None, _MESSAGES[state.message_effect(state.wavefront(inst.arch), inst.fields["SIMM16"])])


def _pair(x: Inst, y: Inst, lanes: int, mode: int, pool: Pool) -> list[Work]:
    """Both halves read before either writes: order them so, or go by way of a temporary register."""
    first, second = bind(x, lanes, mode, pool), bind(y, lanes, mode, pool)
    if not _touches(x, y):
        return [Work(first), Work(second)]
    if not _touches(y, x):
        return [Work(second), Work(first)]
    kept = layout.vgpr(_TEMPORARY, lanes)
    moved = list(first.values)
    i = first.form.slot("written D0")
    target, moved[i] = moved[i], kept
    start = [Work(bind_copy(first.form, target, kept))] if first.form.slot("D0") >= 0 else []
    ahead = Bound(first.form, _redirected(first, kept))
    return [*start, Work(ahead), Work(second), Work(bind_copy(first.form, kept, target))]


def _redirected(b: Bound, kept: int) -> tuple[int, ...]:
    values = list(b.values)
    for i, s in enumerate(b.form.slots):
        if s.name in ("written D0", "D0"):
            values[i] = kept
    return tuple(values)


def bind_copy(like: Form, source: int, target: int) -> Bound:
    """v_mov_b32 between two VGPR offsets."""
    slots = (Slot("S0", "v"), Slot("written D0", "v"))
    form = Form(like.arch, "V_MOV_B32", like.lanes, 0, slots, (), "", 0, 0, True, None)
    return Bound(form, (source, target))


def registers_used(b: Bound) -> int:
    """1 + the highest VGPR number the record can touch."""
    form, facts = b.form, row(b.form.arch, b.form.name)
    stride, used, file = layout.vgpr_stride(form.lanes), 0, state.n_vector_registers(form.arch)
    for s, value in zip(form.slots, b.values, strict=True):
        if s.kind == "v":
            n = -(-s.bits // 32)
            used = max(used, (value - layout.VGPR_BASE) // stride + n, state.N_VGPRS if s.index_bit is not None else 0)
        elif s.kind == "n" and s.name in ("SRC0", "SRC1", "SRC2", "VDST"):
            used = max(used, state.N_VGPRS if facts.is_relative else value + 1)
    return min(used, file)


def _touches(a: Inst, b: Inst) -> bool:
    """a writes a VGPR that b reads."""
    written = {o.reg for o in operands(a) if o.is_written and o.kind is Kind.VGPR}
    return any(o.is_read and o.kind is Kind.VGPR and o.reg in written for o in operands(b))


# ---------------------------------------------------------------- the chain


@dataclass(frozen=True, slots=True)
class Template:
    """Records whose handlers are numbers in `names` and whose targets are 1 + record number (0: none).

    names     symbols of handlers, or functions of the C core.
    starts    pc -> record, for every place that can be entered.
    reasons   record -> why it faults.
    n_vgprs   registers that the program can touch: what a new wave must clear.
    """

    mode: int
    records: bytes
    names: tuple[str, ...]
    starts: Mapping[int, int]
    reasons: Mapping[int, str]
    n_vgprs: int

    def variant(self, addresses: Mapping[str, int]) -> Variant:
        """The records at work. `addresses` of all names."""
        size = len(self.records)
        raw = ctypes.create_string_buffer(size + 64)
        at = -ctypes.addressof(raw) % 64
        ctypes.memmove(ctypes.addressof(raw) + at, self.records, size)
        records = (ctypes.c_char * size).from_buffer(raw, at)
        base, functions = ctypes.addressof(records), [addresses[name] for name in self.names]
        for i in range(0, size, layout.RECORD_BYTES):
            fn, pc, target = struct.unpack_from("<QqQ", records, i)
            target = base + (target - 1) * layout.RECORD_BYTES if target else 0
            struct.pack_into("<QqQ", records, i, functions[fn], pc, target)
        places = (CPlace * len(self.starts))(*(CPlace(*item) for item in sorted(self.starts.items())))
        return Variant(self, records, places)


@dataclass(frozen=True, slots=True)
class Variant:
    """A template in memory: the record array native code runs, and where code can be entered."""

    template: Template
    records: ctypes.Array[ctypes.c_char]
    places: ctypes.Array[CPlace]

    @property
    def mode(self) -> int:
        return self.template.mode

    @property
    def address(self) -> int:
        return ctypes.addressof(self.records)

    @property
    def n_records(self) -> int:
        return len(self.records) // layout.RECORD_BYTES

    def address_of(self, pc: int) -> int:
        """Record of an instruction that can be entered."""
        return self.address + self.template.starts[pc] * layout.RECORD_BYTES

    def reason(self, record: int) -> str:
        """Why the record at an address faults, "" when it is not one of these."""
        number, rest = divmod(record - self.address, layout.RECORD_BYTES)
        return "" if rest else self.template.reasons.get(number, "")


def assemble(program: Program, mode: int) -> Template:
    """The records of a program for the float bits of MODE."""
    return _Assembler(program, mode).assemble()


@dataclass(slots=True)
class _Row:
    work: Work
    code: Code
    ordinal: int


class _Assembler:
    def __init__(self, program: Program, mode: int) -> None:
        self.program, self.mode = program, mode
        self.rows: list[_Row] = []
        self.starts: dict[int, int] = {}

    def assemble(self) -> Template:
        self.lay_out()
        self.settle_handlers()
        names = dict.fromkeys(map(self.name, self.rows))
        numbers = {name: i for i, name in enumerate(names)}
        records = b"".join(self.record(r, numbers[self.name(r)]) for r in self.rows)
        reasons = {i: r.work.reason for i, r in enumerate(self.rows) if r.work.reason}
        used = max((registers_used(r.work.bound) for r in self.rows if r.work.bound is not None), default=1)
        return Template(self.mode, records, tuple(names), self.starts, reasons, max(1, used))

    def name(self, r: _Row) -> str:
        return symbol(r.work.bound.form) if r.work.bound is not None else r.work.c_handler

    def settle_handlers(self) -> None:
        """Compile or load; an instruction no handler can be made for becomes a record that faults."""
        refused = cache().possible_handlers(r.work.bound.form for r in self.rows if r.work.bound is not None)
        for r in self.rows:
            if r.work.bound is not None and r.work.bound.form in refused:
                r.work = Work(None, "sg_op_unmodelled", reason=refused[r.work.bound.form])

    def lay_out(self) -> None:
        """Rows in address order; glue where the next instruction in order is not the next executed."""
        order = self.program.order
        for k, code in enumerate(order):
            head = code.pc in self.program.heads
            if head or not is_elided(code):
                self.starts[code.pc] = len(self.rows)
                self.rows += [_Row(work, code, k) for work in self.works(code)]
            follows = code.pc + code.size
            ended = code.inst is None or ends_run(code.inst)
            if not ended and (k + 1 == len(order) or order[k + 1].pc != follows):
                # A way in from above: counting goes on at the ordinal of what follows.
                known = follows in self.program.heads and follows in self.program.code
                glue = Work(None, "sg_op_goto" if known else "sg_op_undecoded")
                self.rows.append(_Row(glue, Code(follows, 0, None), k + 1))

    def works(self, code: Code) -> list[Work]:
        if is_elided(code):
            return [Work(None, "sg_op_nop")]
        p = self.program
        try:
            inst = None if code.inst is None else within(code.inst, p.allocation)
        except Unmodelled as e:
            return [Work(None, "sg_op_unmodelled", reason=str(e))]
        if inst is None and code.inst is not None:
            return [Work(None, "sg_op_nop")]
        return works_of(replace(code, inst=inst), p.lanes, self.mode, p.pool)

    def record(self, r: _Row, fn: int) -> bytes:
        values = r.work.bound.values if r.work.bound is not None else (r.work.argument,)
        return struct.pack("<QqQII8I", fn, r.code.pc, self.target(r), r.ordinal, r.code.size, *values,
                           *(0,) * (layout.N_OPS - len(values)))

    def target(self, r: _Row) -> int:
        """1 + record number of the place that the record branches to."""
        pc = r.code.pc if r.work.c_handler == "sg_op_goto" else None
        if r.code.inst is not None and r.work.bound is not None:
            pc = branch_target(r.code.inst, r.code.pc)
        return 0 if pc is None else 1 + self.starts[pc]
