"""Rewrites that keep a row's meaning and make it short and fast to execute.

Bit-field writes become one concatenation, adjacent stores one store, branches that only choose a
value a `select`, loops that count or search bits the operation of that name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from stuntgpu.isa.gen import pcode_build as b
from stuntgpu.isa.ir import (
    PLACES,
    Array,
    Break,
    Const,
    Elem,
    Expr,
    For,
    If,
    LaneBit,
    Load,
    Op,
    RegRead,
    RegWrite,
    Set,
    SetElem,
    SetLaneBit,
    Stmt,
    Store,
    Var,
    While,
    blocks_of,
    expressions,
    node,
    statements,
    subexpressions,
)

Block = tuple[Stmt, ...]


def tidy(body: Block) -> Block:
    """Repeats the rewrites until nothing changes."""
    while True:
        done = body
        for rewrite in (
            _blocks(merge_fields),
            _blocks(forward),
            _blocks(merge_stores),
            _blocks(choose),
            _blocks(idioms),
            scalarise,
            inline_locals,
            drop_unused,
        ):
            done = rewrite(done)
        if done == body:
            return body
        body = done


def _blocks(rewrite: Callable[[Block], Block]) -> Callable[[Block], Block]:
    """`rewrite` applied to every block, innermost first."""

    def apply(body: Block) -> Block:
        return rewrite(tuple(_with_blocks(s, tuple(map(apply, blocks_of(s)))) for s in body))

    return apply


def _with_blocks(s: Stmt, blocks: tuple[Block, ...]) -> Stmt:
    match s:
        case If():
            return replace(s, then=blocks[0], other=blocks[1])
        case For() | While():
            return replace(s, body=blocks[0])
        case _:
            return s


# ---------------------------------------------------------------- expressions


def rebuild(x: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """x with `change` applied to every subexpression, innermost first."""
    match x:
        case Op():
            new = tuple(rebuild(a, change) for a in x.args)
            if new != x.args:
                x = _op(x, new)
        case Elem():
            x = replace(x, index=rebuild(x.index, change))
        case RegRead():
            lane = None if x.lane is None else rebuild(x.lane, change)
            x = replace(x, index=rebuild(x.index, change), lane=lane)
        case Load():
            x = replace(x, addr=rebuild(x.addr, change))
    return change(x)


def _op(old: Op, args: tuple[Expr, ...]) -> Expr:
    """The node again with other arguments, through the folding builders where there is one."""
    match old.op, args:
        case "select", (c, yes, no):
            return b.select(c, yes, no)
        case "extract", (x, lo):
            return b.extract(x, lo, old.width)
        case "trunc", (x,):
            return b.trunc(x, old.width)
        case "zext", (x,):
            return b.zext(x, old.width)
        case "sext", (x,):
            return b.sext(x, old.width)
        case "concat", (high, low):
            return b.concat(high, low)
        case "insert", (x, lo, v):
            return b.insert(x, lo, v)
        case (
            ("add" | "sub" | "mul" | "and" | "or" | "xor" | "shl" | "lshr" | "eq" | "ne"),
            (x, y),
        ):
            return b.integer(old.op, x, y)
        case _:
            return replace(old, args=args)


def map_statement(s: Stmt, f: Callable[[Expr], Expr]) -> Stmt:
    """s with `f` applied to the expressions it evaluates itself, and in its blocks."""
    match s:
        case Set() | SetLaneBit():
            return replace(s, value=f(s.value))
        case SetElem():
            return replace(s, index=f(s.index), value=f(s.value))
        case RegWrite():
            lane = None if s.lane is None else f(s.lane)
            return replace(s, index=f(s.index), value=f(s.value), lane=lane)
        case Store():
            return replace(s, addr=f(s.addr), value=f(s.value))
        case If():
            return If(f(s.cond), map_block(s.then, f), map_block(s.other, f))
        case While():
            return While(f(s.cond), map_block(s.body, f))
        case For():
            return replace(s, lo=f(s.lo), hi=f(s.hi), body=map_block(s.body, f))
        case Array() | Break():
            return s
        case _:
            return replace(s, args=tuple(map(f, s.args)))


def map_block(body: Block, f: Callable[[Expr], Expr]) -> Block:
    return tuple(map_statement(s, f) for s in body)


def substitute(body: Block, values: Mapping[str, Expr]) -> Block:
    """The block with variables replaced by values."""

    def change(x: Expr) -> Expr:
        return values.get(x.name, x) if isinstance(x, Var) else x

    return map_block(body, lambda x: rebuild(x, change))


def is_pure(x: Expr) -> bool:
    """No memory, register or array read in it."""
    return not any(isinstance(s, Load | RegRead | Elem) for s in subexpressions(x))


# ---------------------------------------------------------------- statement merging


def merge_fields(body: Block) -> Block:
    """Runs of field writes that cover a variable become one assignment of the concatenation."""
    out: list[Stmt] = []
    i = 0
    while i < len(body):
        end, value = _field_run(body, i)
        if value is None:
            out.append(body[i])
            i += 1
        else:
            s = body[i]
            assert isinstance(s, Set)
            out.append(Set(s.name, value))
            i = end
    return tuple(out)


def _field_run(body: Block, start: int) -> tuple[int, Expr | None]:
    first = body[start]
    if not isinstance(first, Set):
        return start, None
    fields: dict[int, Expr] = {}
    width = first.value.width
    for end in range(start, len(body)):
        s = body[end]
        if (
            isinstance(s, Set)
            and s.name == first.name
            and s.value == Const(0, width)
            and end == start
        ):
            continue
        field = _field_write(s, first.name, width)
        if field is None or _reads_fields(field[1], first.name, fields):
            break
        fields[field[0]] = field[1]
        value = b.covering(fields, width)
        if value is not None:
            return end + 1, value
    return start, None


def _field_write(s: Stmt, name: str, width: int) -> tuple[int, Expr] | None:
    match s:
        case Set(n, Op("insert", (Var(old), Const(lo), v), w)) if n == old == name and w == width:
            return lo, v
    return None


def _reads_fields(v: Expr, name: str, fields: dict[int, Expr]) -> bool:
    """v reads the variable where it has been written already."""
    if name not in b.reads_of(v):
        return False
    reads = [
        x
        for x in subexpressions(v)
        if isinstance(x, Op) and any(isinstance(a, Var) and a.name == name for a in x.args)
    ]
    for x in reads:
        _, lo = b.bit_field(x)
        if x.op not in ("extract", "trunc"):
            return True
        if any(lo < at + f.width and at < lo + x.width for at, f in fields.items()):
            return True
    return not reads


def merge_stores(body: Block) -> Block:
    out: list[Stmt] = []
    for s in body:
        joined = _joined(out[-1], s) if out else None
        if joined is not None:
            out[-1] = joined
        else:
            out.append(s)
    return tuple(out)


def _joined(s: Stmt, t: Stmt) -> Store | None:
    """One store for two of adjacent addresses that write adjacent fields of one value."""
    match s, t:
        case Store(space, a, v), Store(space2, a2, v2) if space == space2:
            (base, c), (base2, c2) = b.split_address(a), b.split_address(a2)
            (x, lo), (x2, lo2) = b.bit_field(v), b.bit_field(v2)
            if (
                base == base2
                and c2 == c + v.width // 8
                and x == x2
                and lo2 == lo + v.width
                and is_pure(x)
            ):
                return Store(space, a, b.extract(x, lo, v.width + v2.width))
    return None


def choose(body: Block) -> Block:
    """An If whose branches only compute and assign one variable becomes a select."""
    out: list[Stmt] = []
    for s in body:
        chosen = _choice(s) if isinstance(s, If) else None
        out += chosen or [s]
    return tuple(out)


def _choice(s: If) -> list[Stmt] | None:
    match s:
        case If(c, (*before, Set(name, yes)), (*before2, Set(name2, no))) if (
            name == name2 and yes.width == no.width and is_pure(yes) and is_pure(no)
        ):
            if all(map(_is_temporary, (*before, *before2))):
                return [*before, *before2, Set(name, b.select(c, yes, no))]
        case If(c, (SetLaneBit(name, yes),), (SetLaneBit(name2, no),)) if (
            name == name2 and is_pure(yes) and is_pure(no)
        ):
            return [SetLaneBit(name, b.select(c, yes, no))]
    return None


def _is_temporary(s: Stmt) -> bool:
    """A pure assignment to a variable of an inlined call (these are assigned in one place only)."""
    return isinstance(s, Set) and "." in s.name and is_pure(s.value)


def forward(body: Block) -> Block:
    """`x = a; x = f(x)` becomes `x = f(a)` when a is cheap or f uses it at most once."""
    out: list[Stmt] = []
    for s in body:
        before = out[-1] if out else None
        if (
            isinstance(s, Set)
            and isinstance(before, Set)
            and s.name == before.name
            and is_pure(before.value)
        ):
            name, value = s.name, before.value
            uses = sum(isinstance(x, Var) and x.name == name for x in subexpressions(s.value))
            if uses <= 1 or isinstance(value, Var | Const):
                out[-1] = Set(name, rebuild(s.value, _substitution(name, value)))
                continue
        out.append(s)
    return tuple(out)


def _substitution(name: str, value: Expr) -> Callable[[Expr], Expr]:
    return lambda x: value if isinstance(x, Var) and x.name == name else x


# ---------------------------------------------------------------- locals


def scalarise(body: Block) -> Block:
    """Arrays that are only indexed by constants become variables."""
    dynamic = {
        x.name for x in expressions(body) if isinstance(x, Elem) and not isinstance(x.index, Const)
    }
    dynamic |= {
        s.name
        for s in statements(body)
        if isinstance(s, SetElem) and not isinstance(s.index, Const)
    }
    arrays = {s.name for s in statements(body) if isinstance(s, Array)} - dynamic
    if not arrays:
        return body

    def element(x: Expr) -> Expr:
        if isinstance(x, Elem) and x.name in arrays and isinstance(x.index, Const):
            return Var(f"{x.name}_{x.index.bits}", x.width)
        return x

    def statement(s: Stmt) -> Stmt:
        if isinstance(s, SetElem) and s.name in arrays and isinstance(s.index, Const):
            return Set(f"{s.name}_{s.index.bits}", s.value)
        return _with_blocks(s, tuple(tuple(map(statement, block)) for block in blocks_of(s)))

    kept = tuple(s for s in body if not (isinstance(s, Array) and s.name in arrays))
    return map_block(tuple(map(statement, kept)), lambda x: rebuild(x, element))


def inline_locals(body: Block) -> Block:
    """Substitute locals that are set once and cheap to repeat, or used once, unless what they read
    is overwritten before the use."""
    sets = Counter(s.name for s in statements(body) if isinstance(s, Set | For))
    uses = Counter(x.name for x in expressions(body) if isinstance(x, Var))
    for i, s in enumerate(body):
        if not isinstance(s, Set) or s.name in PLACES or sets[s.name] != 1 or not is_pure(s.value):
            continue
        cheap = isinstance(s.value, Var | Const | LaneBit)
        rest = body[i + 1 :]
        if (cheap or uses[s.name] == 1) and _stable(s.value, rest, s.name):
            return inline_locals(body[:i] + substitute(rest, {s.name: s.value}))
    return body


def _stable(value: Expr, rest: Block, name: str) -> bool:
    """Nothing that `value` reads is written before the last statement of `rest` that uses `name`."""
    reads = b.reads_of(value)
    last = max((i for i, s in enumerate(rest) if _uses(s, name)), default=-1)
    for i, s in enumerate(rest[: last + 1]):
        inner = tuple(statements((s,)))
        written = {t.name for t in inner if isinstance(t, Set | SetLaneBit | SetElem | For)}
        looped = any(isinstance(t, For | While) for t in inner)
        if written & reads and (i < last or len(inner) > 1):
            return False
        if looped and not isinstance(value, Const | Var):
            return False
    return True


def _uses(s: Stmt, name: str) -> bool:
    return any(isinstance(x, Var) and x.name == name for x in expressions((s,)))


def drop_unused(body: Block) -> Block:
    """Without assignments to locals that nothing reads, and without empty branches."""
    used = {x.name for x in expressions(body) if isinstance(x, Var | Elem)}

    def keep(s: Stmt) -> bool:
        match s:
            case Set(name, value) if name not in PLACES and name not in used:
                return any(isinstance(x, Load) for x in subexpressions(value))
            case Array(name) | SetElem(name):
                return name in used
            case If(_, (), ()):
                return False
            case _:
                return True

    def drop(block: Block) -> Block:
        return tuple(_with_blocks(s, tuple(map(drop, blocks_of(s)))) for s in block if keep(s))

    return drop(body)


# ---------------------------------------------------------------- loops over bits


def idioms(body: Block) -> Block:
    out: list[Stmt] = []
    for s in body:
        out.append(_count_loop(s) or _search_loop(s) or s)
    return tuple(out)


def _count_loop(s: Stmt) -> Stmt | None:
    """for every bit i of X: t += X[i] (or += !X[i])."""
    match s:
        case For(i, Const(0), Const(top), (Set(t, Op("add", (Var(t2), step))),)) if t == t2:
            match step:
                case Op("zext", (bit,)) | Op("select", (bit, Const(1), Const(0))):
                    pass
                case _:
                    return None
            inverted = isinstance(bit, Op) and bit.op == "not"
            x = bit.args[0] if inverted and isinstance(bit, Op) else bit
            match x:
                case Op("extract", (whole, Var(j))) if (
                    j == i and whole.width == top + 1 and is_pure(whole)
                ):
                    whole = node("not", whole) if inverted else whole
                    return Set(
                        t,
                        node(
                            "add",
                            Var(t, step.width),
                            b.resize(node("popcnt", whole), step.width, False),
                        ),
                    )
    return None


def _search_loop(s: Stmt) -> Stmt | None:
    """for i ascending: if bit i from one end is set (or differs from the top bit): t = i, stop."""
    match s:
        case For(i, Const(first), Const(top), (If(cond, (Set(t, Var(j)), Break()), ()),)) if i == j:
            x = _searched(cond, i, first, top)
            if x is not None:
                which, whole = x
                found = b.resize(node(which, whole), 32, False)
                none = node("eq", whole, b.const(0, whole.width))
                return Set(t, b.select(none, Var(t, 32), found))
    return None


def _searched(cond: Expr, i: str, first: int, top: int) -> tuple[str, Expr] | None:
    match cond:
        case Op("extract", (x, Var(j))) if j == i and first == 0 and x.width == top + 1:
            return "ctz", x
        case Op("extract", (x, Op("sub", (Const(n), Var(j))))) if (
            j == i and first == 0 and n == top and x.width == top + 1
        ):
            return "clz", x
        case Op(
            "ne", (Op("extract", (x, Op("sub", (Const(n), Var(j))))), Op("extract", (y, Const(m))))
        ) if j == i and first == 1 and n == m == top and x == y and x.width == top + 1:
            return "clz", node("xor", x, node("ashr", x, b.const(top, 32)))
    return None
