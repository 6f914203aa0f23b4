"""A semantics row as facts: which places, registers by number and memory it may touch, and must.

Nothing here knows operands: `Row` speaks of places (`ir.PLACES`), of register numbers as `Index`, and of
memory by space. It is computed once a row.

A place that is assigned from its own old value keeps the bits that come through unchanged: `insert(D0, 0, x)`
of 16 bits writes 16 bits and keeps the others. `Written` says which bits may change and which certainly do.

Errors:  none; what cannot be told is "may", or a register number that is not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from stuntgpu.isa import ir
from stuntgpu.isa.semantics import semantics

#: Float operations that MODE does not change: nothing is rounded or flushed.
EXACT = frozenset({"quiet", "isnan", "issnan", "isqnan", "isdenorm", "isinf", "mantissa"})
#: Places that are register numbers.
NUMBERS = frozenset({"SRC0", "SRC1", "SRC2", "VDST", "SDST"})


@dataclass(frozen=True, slots=True)
class Index:
    """A register number: what the field of place `base` says ("" none) plus lo..hi; base SIMM16: the hardware
    register it names. is_open: and plus something that a register of the wave holds."""

    base: str = ""
    lo: int = 0
    hi: int = 0
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class RegUse:
    """Registers by number. index None: any, a register of the wave decides. own: the lane's own register."""

    file: ir.RegisterFile
    index: Index | None
    is_write: bool
    own: bool
    certain: bool


@dataclass(frozen=True, slots=True)
class MemUse:
    """Bytes at one address. `many`: how often, in a loop; 0: the wave decides."""

    space: str
    address: ir.Expr
    bits: int
    is_write: bool
    certain: bool
    many: int = 1


@dataclass(frozen=True, slots=True)
class Written:
    """Bits of a place that may be, and that certainly are, given a new value."""

    width: int
    may: int
    must: int


@dataclass(slots=True)
class Row:
    """Facts of one row. reads: place -> certain; kept: places read only to keep bits of them."""

    scope: ir.Scope
    reads: dict[str, bool] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)
    mask_reads: dict[str, bool] = field(default_factory=dict)
    writes: dict[str, Written] = field(default_factory=dict)
    mask_writes: dict[str, bool] = field(default_factory=dict)
    registers: list[RegUse] = field(default_factory=list)
    memory: list[MemUse] = field(default_factory=list)
    actions: list[str] = field(default_factory=list)
    reads_mode: bool = False
    exec_is_mask: bool = False


@lru_cache(maxsize=8192)
def row_of(arch: str, name: str) -> Row:
    """Facts of an instruction's row. Raises Unmodelled when it has none."""
    sem = semantics(arch, name)
    walk = _Walk(Row(sem.scope, exec_is_mask=sem.scope == "lane"))
    walk.block(sem.body, _Path())
    return walk.row


# ---------------------------------------------------------------- the walk


@dataclass(frozen=True, slots=True)
class _Path:
    """Where in the row: certain, inside loops over variables `loops`, of which those in `active` number lanes
    that EXEC has on; the loops run `many` times (0: not known how often)."""

    certain: bool = True
    loops: frozenset[str] = frozenset()
    active: frozenset[str] = frozenset()
    many: int = 1


class _Walk:
    def __init__(self, row: Row) -> None:
        self.row = row
        self.locals: dict[str, Index | None] = {}
        self.assigned: frozenset[str] = frozenset()

    def block(self, body: tuple[ir.Stmt, ...], path: _Path) -> None:
        for s in body:
            self.statement(s, path)

    def statement(self, s: ir.Stmt, path: _Path) -> None:
        match s:
            case ir.Set(name, value) if name in ir.PLACES:
                self.assign(name, value, path)
            case ir.Set(name, value):
                self.expression(value, path)
                self.locals[name] = self.index(value)
            case ir.SetLaneBit(name, value):
                self.expression(value, path)
                self.row.mask_writes[name] = self.row.mask_writes.get(name, False) or path.certain
            case ir.If(cond, then, other):
                self.branch(cond, then, other, path)
            case ir.For(name, lo, hi, body):
                self.loop(name, lo, hi, body, path)
            case ir.While(cond, body):
                self.expression(cond, path)
                self.inside(body, replace(path, certain=False, many=0))
            case _:
                self.effect(s, path)

    def effect(self, s: ir.Stmt, path: _Path) -> None:
        for x in ir.operands_of(s):
            self.expression(x, path)
        match s:
            case ir.RegWrite(file, index, _, lane):
                self.row.registers.append(RegUse(file, self.index(index), True, self.is_own(lane, path), path.certain))
                if file == "VGPR" and self.is_own(lane, path):
                    self.row.exec_is_mask = True
            case ir.Store(space, addr, value):
                self.row.memory.append(MemUse(space, addr, value.width, True, path.certain, path.many))
            case ir.Do(action):
                self.row.actions.append(action)

    # ---- places

    def assign(self, name: str, value: ir.Expr, path: _Path) -> None:
        may, must, uses = changed(value, name)
        before = self.row.writes.get(name, Written(value.width, 0, 0))
        certain = must if path.certain else 0
        self.row.writes[name] = Written(max(before.width, value.width), before.may | may, before.must | certain)
        if name in self.assigned:
            uses = True  # its own result, no longer the old value
        elif not uses and reads_place(value, name):
            self.row.kept.add(name)
        self.expression(value, path, "" if uses else name)
        if path.certain:
            self.assigned |= {name}

    def branch(self, cond: ir.Expr, then: tuple[ir.Stmt, ...], other: tuple[ir.Stmt, ...], path: _Path) -> None:
        """Both ways; what both certainly do, is certain."""
        self.expression(cond, path)
        only_exec = is_exec_bit(cond) and not other
        inner = replace(path, certain=path.certain and only_exec, active=path.active | active_lanes(cond) & path.loops)
        before, was = dict(self.locals), self.assigned
        sides = [_certain(block) for block in (then, other)]
        self.block(then, inner)
        after, self.locals = self.locals, dict(before)
        self.assigned = was
        self.block(other, replace(inner, active=path.active))
        self.locals = {n: v for n, v in self.locals.items() if n in after and after[n] == v}
        self.assigned = was
        if path.certain:
            self.settle(*(a & b for a, b in zip(*sides, strict=True)))

    def settle(self, reads: frozenset[str], writes: frozenset[str]) -> None:
        """What both sides of a branch do."""
        for name in reads:
            if name in self.row.reads and name not in self.assigned:
                self.row.reads[name] = True
        for name in writes:
            w = self.row.writes.get(name)
            if w is not None:
                self.row.writes[name] = replace(w, must=w.may)
            if name in self.row.mask_writes:
                self.row.mask_writes[name] = True
        self.assigned |= writes

    def loop(self, name: str, lo: ir.Expr, hi: ir.Expr, body: tuple[ir.Stmt, ...], path: _Path) -> None:
        self.expression(lo, path)
        self.expression(hi, path)
        first, last = self.index(lo), self.index(hi)
        self.locals[name] = None
        if is_constant(first) and is_constant(last) and first is not None and last is not None:
            self.locals[name] = Index("", first.lo, last.hi)
            path = replace(path, many=path.many * (last.hi - first.lo + 1))
        else:
            path = replace(path, many=0)
        breaks = any(isinstance(s, ir.Break) for s in ir.statements(body))
        self.inside(body, replace(path, certain=path.certain and not breaks, loops=path.loops | {name}), name)

    def inside(self, body: tuple[ir.Stmt, ...], path: _Path, variable: str = "") -> None:
        """A loop's body: locals it assigns have no one value."""
        for s in ir.statements(body):
            if isinstance(s, ir.Set) and s.name != variable:
                self.locals[s.name] = None
        self.block(body, path)
        for s in ir.statements(body):
            if isinstance(s, ir.Set):
                self.locals[s.name] = None

    # ---- expressions

    def expression(self, x: ir.Expr, path: _Path, but: str = "") -> None:
        """Reads of an expression; `but`: a place that it only keeps bits of."""
        row = self.row
        for sub in ir.subexpressions(x):
            match sub:
                case ir.Var(name, _) if name in ir.PLACES and name != but and name not in self.assigned:
                    row.reads[name] = row.reads.get(name, False) or path.certain
                case ir.LaneBit(name):
                    row.mask_reads[name] = row.mask_reads.get(name, False) or path.certain
                case ir.RegRead(file, index, lane):
                    row.registers.append(RegUse(file, self.index(index), False, self.is_own(lane, path), path.certain))
                case ir.Load(space, addr, width):
                    row.memory.append(MemUse(space, addr, width, False, path.certain, path.many))
                case ir.Op(op):
                    row.reads_mode = row.reads_mode or depends_on_mode(op)

    def is_own(self, lane: ir.Expr | None, path: _Path) -> bool:
        """Whether a register of a lane is that of the lane that runs."""
        if isinstance(lane, ir.Var):
            return lane.name == "LANE" or lane.name in path.active
        return False

    def index(self, x: ir.Expr) -> Index | None:
        """A register number, None: not known before the instruction runs."""
        match x:
            case ir.Const(bits, _):
                return Index("", bits, bits)
            case ir.Var(name, _) if name in NUMBERS:
                return Index(name)
            case ir.Var(name, _):
                return self.locals.get(name)
            case ir.Op("trunc", (ir.Var("SIMM16", _),), 6):
                return Index("SIMM16")
            case ir.Op("zext", (value,), _):
                return self.index(value)
            case ir.Op("add", (a, b), _):
                return _sum(self.index(a), self.index(b))
            case _:
                return None


def is_constant(x: Index | None) -> bool:
    return x is not None and x == Index("", x.lo, x.lo)


def _sum(a: Index | None, b: Index | None) -> Index | None:
    if a is None or b is None:
        known = a or b
        return None if known is None else replace(known, is_open=True)
    if a.base and b.base:
        return None
    return Index(a.base or b.base, a.lo + b.lo, a.hi + b.hi, a.is_open or b.is_open)


def _certain(body: tuple[ir.Stmt, ...]) -> tuple[frozenset[str], frozenset[str]]:
    """Places a block certainly reads (and does not assign first), and assigns."""
    reads: set[str] = set()
    writes: set[str] = set()
    for s in body:
        for x in ir.operands_of(s):
            names = {v.name for v in ir.subexpressions(x) if isinstance(v, ir.Var | ir.LaneBit)}
            reads |= (names & ir.PLACES.keys()) - writes
        if isinstance(s, ir.Set | ir.SetLaneBit) and s.name in ir.PLACES:
            writes.add(s.name)
        if isinstance(s, ir.If):
            then, other = _certain(s.then), _certain(s.other)
            reads |= (then[0] & other[0]) - writes
            writes |= then[1] & other[1]
    return frozenset(reads), frozenset(writes)


# ---------------------------------------------------------------- values


def reads_place(x: ir.Expr, name: str) -> bool:
    return any(isinstance(v, ir.Var | ir.LaneBit) and v.name == name for v in ir.subexpressions(x))


def is_exec_bit(x: ir.Expr) -> bool:
    """Whether a condition is one bit of EXEC and nothing else."""
    return isinstance(x, ir.Op) and x.op == "extract" and x.width == 1 and x.args[0] == ir.Var("EXEC", 64)


def active_lanes(x: ir.Expr) -> frozenset[str]:
    """Variables that number a lane EXEC has on, when a condition holds."""
    match x:
        case ir.Op("extract", (ir.Var("EXEC", _), ir.Var(name, _)), 1):
            return frozenset((name,))
        case ir.Op("and", (a, b), 1):
            return active_lanes(a) | active_lanes(b)
        case _:
            return frozenset()


def changed(value: ir.Expr, name: str) -> tuple[int, int, bool]:
    """(bits that may differ from old `name`, bits that are certainly given anew, whether the old value is
    used for more than to stay where it is) when `value` is assigned to it."""
    whole = (1 << value.width) - 1
    match value:
        case ir.Var(n, _) if n == name:
            return 0, 0, False
        case ir.Op("insert", (base, ir.Const(lo, _), part)):
            may, must, uses = changed(base, name)
            bits = ((1 << part.width) - 1) << lo & whole
            return may | bits, must | bits, uses or reads_place(part, name)
        case ir.Op("insert", (base, lo_expr, part)):
            _, must, uses = changed(base, name)
            return whole, must, uses or reads_place(part, name) or reads_place(lo_expr, name)
        case ir.Op("select", (cond, a, b)):
            (may_a, must_a, uses_a), (may_b, must_b, uses_b) = changed(a, name), changed(b, name)
            return may_a | may_b, must_a & must_b, uses_a or uses_b or reads_place(cond, name)
        case _:
            return whole, whole, reads_place(value, name)


@lru_cache(maxsize=1024)
def depends_on_mode(op: str) -> bool:
    """Whether rounding or denormals of MODE can change what an operation gives."""
    head, _, fmt = op.partition(".")
    if fmt:
        return fmt in ir.FLOATS and head not in EXACT
    source, _, target = op.partition("_to_")
    return bool(target) and (source in ir.FLOATS or target in ir.FLOATS)


def addresses(row: Row) -> Mapping[tuple[str, bool], list[MemUse]]:
    """Memory uses by (space, is it written), each address once."""
    found: dict[tuple[str, bool], list[MemUse]] = {}
    seen: set[tuple[str, bool, ir.Expr]] = set()
    for use in row.memory:
        key = use.space, use.is_write, use.address
        if key not in seen:
            seen.add(key)
            found.setdefault(key[:2], []).append(use)
    return found
