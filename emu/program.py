"""Kernel code to a chain of pre-decoded records, found by walking from the entry through the branches.

Instructions lie in address order, so that the record after one is the one executed next. Waits and
hints have no record: the counters know them by ordinals. A record that falls into code that is not
there leaves to the dispatcher, which asks for more to be decoded (`extend`).

Units:   pc and sizes in bytes from the program's entry.
Errors:  nothing is raised for bad code: records of illegal or unmodelled instructions fault when run.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from stuntgpu.emu import layout, state
from stuntgpu.emu.cache import cache, host
from stuntgpu.emu.forms import Bound, Form, Slot, bind, row
from stuntgpu.emu.native_abi import CPlace
from stuntgpu.isa.decode import DecodeError, decode
from stuntgpu.isa.errors import Unmodelled
from stuntgpu.isa.inst import Inst, Kind
from stuntgpu.isa.ir import Do, Semantics
from stuntgpu.isa.operands import operands

#: Constants a program can have; waves hold a copy.
POOL_DWORDS = 8192

_ELIDED = frozenset(("nop", "memory_barrier"))
_C_HANDLERS = {
    "endpgm": "sg_op_endpgm", "barrier": "sg_op_barrier", "sleep": "sg_op_yield", "trap": "sg_op_trap",
    "halt": "sg_op_halt", "illegal": "sg_op_illegal",
}  # fmt: skip
_DEBUG_TRAPS = (3,)
_DEALLOC_VGPRS = 3

#: Calls: code comes back to the instruction behind.
_RETURNS = frozenset(("S_SWAPPC_B64", "S_CALL_B64"))

#: VGPR slot beyond the architectural ones: holds half of a VOPD pair for a moment.
_TEMPORARY = 256


@dataclass(slots=True)
class Code:
    """One decoded instruction, or why there is none. `reason`: of a fault, "" none."""

    pc: int
    size: int
    inst: Inst | None
    reason: str = ""
    illegal: bool = False


@dataclass(frozen=True, slots=True)
class Work:
    """What a record does: a handler of ours, or one of the C core with its argument."""

    bound: Bound | None
    c_handler: str = ""
    argument: int = 0
    reason: str = ""


Fetch = Callable[[int, int], bytes]


class Pool:
    """Constants of a program, each at a fixed offset of every wave."""

    def __init__(self, lanes: int) -> None:
        self.base = layout.pool(lanes)
        self.words = (ctypes.c_uint32 * POOL_DWORDS)()
        self.used = 0
        self.places: dict[tuple[int, int], int] = {}

    def __call__(self, value: int, n: int) -> int:
        """Offset of `value` as n dwords. Raises Unmodelled when the pool is full."""
        key = (value, n)
        if key not in self.places:
            if self.used + n > POOL_DWORDS:
                raise Unmodelled("any arch", f"more than {POOL_DWORDS} dwords of constants", "emu/program.py")
            self.places[key] = self.base + 4 * self.used
            for i in range(n):
                self.words[self.used + i] = value >> 32 * i & 0xFFFF_FFFF
            self.used += n
        return self.places[key]


# ---------------------------------------------------------------- one instruction


def action_of(sem: Semantics) -> Do | None:
    """The action of a row that does nothing else."""
    if len(sem.body) == 1 and isinstance(sem.body[0], Do):
        return sem.body[0]
    return None


def is_elided(code: Code) -> bool:
    """Executing it changes nothing."""
    if code.inst is None or code.inst.x is not None:
        return False
    try:
        sem = row(code.inst.arch, code.inst.name).sem
    except Unmodelled:
        return False
    action = action_of(sem)
    if action is None:
        return not sem.body
    if action.action == "sendmsg":
        return code.inst.fields["SIMM16"] & 0xFF == _DEALLOC_VGPRS
    if action.action == "trap":
        return code.inst.fields["SIMM16"] & 0xFF in _DEBUG_TRAPS
    return action.action in _ELIDED


def works_of(code: Code, lanes: int, mode: int, pool: Pool) -> list[Work]:
    """The records of an instruction; a VOPD pair has two or three."""
    if code.inst is None:
        return [Work(None, "sg_op_illegal" if code.illegal else "sg_op_unmodelled", reason=code.reason)]
    try:
        if code.inst.x is not None and code.inst.y is not None:
            return _pair(code.inst.x, code.inst.y, lanes, mode, pool)
        return [_single(code.inst, lanes, mode, pool)]
    except Unmodelled as e:
        return [Work(None, "sg_op_unmodelled", reason=str(e))]


def _single(inst: Inst, lanes: int, mode: int, pool: Pool) -> Work:
    sem = row(inst.arch, inst.name).sem
    action = action_of(sem)
    if action is not None and action.action in _C_HANDLERS:
        return Work(None, _C_HANDLERS[action.action], inst.fields.get("SIMM16", 0) & 0xFF)
    if action is not None and action.action == "sendmsg":
        raise Unmodelled(inst.arch, f"s_sendmsg 0x{inst.fields['SIMM16']:x}", "emu/program.py")
    if inst.name == "S_SETHALT":
        return Work(None, "sg_op_halt")
    return Work(bind(inst, lanes, mode, pool))


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
    stride, used = layout.vgpr_stride(form.lanes), 0
    for s, value in zip(form.slots, b.values, strict=True):
        if s.kind == "v":
            n = 8 if facts.is_matrix else -(-s.bits // 32)
            used = max(used, (value - layout.VGPR_BASE) // stride + n)
        elif s.kind == "n" and s.name in ("SRC0", "SRC1", "SRC2", "VDST"):
            used = max(used, state.N_VGPRS if facts.is_relative else value + 1)
    return min(used, state.N_VGPRS)


def _touches(a: Inst, b: Inst) -> bool:
    """a writes a VGPR that b reads."""
    written = {o.reg for o in operands(a) if o.is_written and o.kind is Kind.VGPR}
    return any(o.is_read and o.kind is Kind.VGPR and o.reg in written for o in operands(b))


# ---------------------------------------------------------------- finding the code


def branch_target(inst: Inst, pc: int) -> int | None:
    """Where a direct branch goes."""
    if "SIMM16" not in inst.fields or "PC" not in _writes(inst):
        return None
    simm = inst.fields["SIMM16"]
    return pc + 4 + 4 * (simm - (1 << 16) if simm >> 15 else simm)


def _writes(inst: Inst) -> tuple[str, ...]:
    if inst.x is not None:
        return ()
    try:
        return row(inst.arch, inst.name).writes
    except Unmodelled:
        return ()


def ends_run(inst: Inst) -> bool:
    """Nothing is executed after it."""
    if inst.name in ("S_BRANCH", "S_SETPC_B64", "S_SWAPPC_B64", "S_RFE_B64"):
        return True
    if inst.x is not None:
        return False
    try:
        action = action_of(row(inst.arch, inst.name).sem)
    except Unmodelled:
        return True
    return action is not None and action.action in ("endpgm", "illegal")


@dataclass(slots=True)
class Program:
    """Decoded code of one kernel. `spans`: the bytes that were decoded, to notice other code there."""

    arch: str
    lanes: int
    code: dict[int, Code] = field(default_factory=dict)
    spans: dict[int, bytes] = field(default_factory=dict)
    heads: set[int] = field(default_factory=set)  # places code jumps to: never elided, counting starts there
    pool: Pool = field(init=False)
    order: list[Code] = field(default_factory=list)
    variants: dict[int, Variant] = field(default_factory=dict)
    generation: int = 0

    def __post_init__(self) -> None:
        self.pool = Pool(self.lanes)

    def extend(self, start: int, fetch: Fetch) -> None:
        """Decode from `start` on; every branch target that follows is decoded too."""
        todo = [start]
        while todo:
            pc = todo.pop()
            self.heads.add(pc)
            while pc not in self.code:
                c = self._decode(pc, fetch)
                self.code[pc] = c
                if c.inst is None:
                    break
                target = branch_target(c.inst, pc)
                if target is not None:
                    todo.append(target)
                if c.inst.name in _RETURNS:
                    todo.append(pc + c.size)
                if ends_run(c.inst):
                    break
                pc += c.size
        self.order = [self.code[pc] for pc in sorted(self.code)]
        self.variants.clear()
        self.generation += 1

    def _decode(self, pc: int, fetch: Fetch) -> Code:
        data = fetch(pc, 16)
        if len(data) < 4:
            return Code(pc, 4, None, "fetch")
        try:
            inst = decode(self.arch, data)
        except DecodeError as e:
            self.spans[pc] = data[:4]
            return Code(pc, 4, None, f"{e.reason} ({data[:8].hex(' ')})", illegal=True)
        self.spans[pc] = data[: inst.size]
        return Code(pc, inst.size, inst)

    def matches(self, fetch: Fetch) -> bool:
        """The code in memory is still what was decoded."""
        return all(fetch(pc, len(data)) == data for pc, data in self.runs())

    def runs(self) -> Iterator[tuple[int, bytes]]:
        """Adjacent spans joined."""
        at, data = -1, bytearray()
        for pc in sorted(self.spans):
            if pc != at + len(data) or not data:
                if data:
                    yield at, bytes(data)
                at, data = pc, bytearray()
            data += self.spans[pc]
        if data:
            yield at, bytes(data)

    def variant(self, mode: int, c_handlers: dict[str, int]) -> Variant:
        """The records for the float bits of MODE; made on first use."""
        if mode not in self.variants:
            self.variants[mode] = _Assembler(self, mode, c_handlers).assemble()
        return self.variants[mode]


# ---------------------------------------------------------------- records


@dataclass(slots=True)
class Variant:
    """Records of a program for one float mode.

    records   the array native code runs.
    places    where code can be entered, for native code; starts: pc -> record number.
    origins   record number -> the instruction it belongs to; reasons of records that fault.
    n_vgprs   registers that the program can touch: what a new wave must clear.
    """

    mode: int
    records: ctypes.Array[ctypes.c_char]
    places: ctypes.Array[CPlace]
    starts: dict[int, int]
    origins: list[Code]
    reasons: dict[int, str]
    n_vgprs: int

    @property
    def address(self) -> int:
        return ctypes.addressof(self.records)

    def number(self, pc: int) -> int:
        """Record of an instruction that can be entered."""
        return self.starts[pc]


@dataclass(slots=True)
class _Row:
    work: Work
    code: Code
    ordinal: int


class _Assembler:
    def __init__(self, program: Program, mode: int, c_handlers: dict[str, int]) -> None:
        self.program, self.mode, self.c_handlers = program, mode, c_handlers
        self.rows: list[_Row] = []
        self.starts: dict[int, int] = {}

    def assemble(self) -> Variant:
        self.lay_out()
        forms = [r.work.bound.form for r in self.rows if r.work.bound is not None]
        handlers = self.handlers(forms)
        n = len(self.rows)
        raw = ctypes.create_string_buffer(n * layout.RECORD_BYTES + 64)
        shift = -ctypes.addressof(raw) % 64
        records = (ctypes.c_char * (n * layout.RECORD_BYTES)).from_buffer(raw, shift)
        base = ctypes.addressof(records)
        for i, r in enumerate(self.rows):
            self.write(records, i, r, handlers, base)
        places = (CPlace * len(self.starts))(*sorted(self.starts.items()))
        reasons = {i: r.work.reason for i, r in enumerate(self.rows) if r.work.reason}
        used = max((registers_used(r.work.bound) for r in self.rows if r.work.bound is not None), default=1)
        return Variant(self.mode, records, places, self.starts, [r.code for r in self.rows], reasons, max(1, used))

    def handlers(self, forms: list[Form]) -> dict[Form, int]:
        """Addresses; an instruction no handler can be made for becomes a record that faults."""
        try:
            return cache().handlers(forms)
        except Unmodelled:
            from stuntgpu.emu.handlers import build

            good: list[Form] = []
            for r in self.rows:
                bound = r.work.bound
                if bound is None:
                    continue
                try:
                    build(bound.form, host())
                except Unmodelled as e:
                    r.work = Work(None, "sg_op_unmodelled", reason=str(e))
                else:
                    good.append(bound.form)
            return cache().handlers(good)

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
        return works_of(code, self.program.lanes, self.mode, self.program.pool)

    def write(self, records: ctypes.Array[ctypes.c_char], i: int, r: _Row, handlers: dict[Form, int], base: int) -> None:
        bound = r.work.bound
        fn = handlers[bound.form] if bound is not None else self.c_handlers[r.work.c_handler]
        values = bound.values if bound is not None else (r.work.argument,)
        target = self.target(r, base)
        struct.pack_into("<QqQII8I", records, i * layout.RECORD_BYTES, fn, r.code.pc, target, r.ordinal, r.code.size,
                         *values, *(0,) * (layout.N_OPS - len(values)))

    def target(self, r: _Row, base: int) -> int:
        pc = r.code.pc if r.work.c_handler == "sg_op_goto" else None
        if r.code.inst is not None and r.work.bound is not None:
            pc = branch_target(r.code.inst, r.code.pc)
        return 0 if pc is None else base + self.starts[pc] * layout.RECORD_BYTES
