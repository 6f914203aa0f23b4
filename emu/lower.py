"""From semantics rows to LLVM text: the second, independent reading of `isa.ir`.

`LOWER` has one entry per operation of `ir.OPS`. Two walkers run a row's statements over it:

`VectorBody`   every value a vector over the lanes of the wave; If becomes selects, For is unrolled,
               Break a mask. Raises NotVector where lanes would need control flow or memory of their own.
`ScalarBody`   one lane, or the wave itself: real control flow, local variables in stack slots.

A walker sees registers, memory and actions only through `Places`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from stuntgpu.emu.lower_approx import APPROXIMATED
from stuntgpu.emu.lower_float import FLOAT
from stuntgpu.emu.lower_int import INTEGER, Lower
from stuntgpu.emu.lower_small import SMALL
from stuntgpu.emu.lower_text import Emitter, Value
from stuntgpu.isa.errors import Bug
from stuntgpu.isa.ir import (
    PLACES,
    Array,
    Break,
    Const,
    Do,
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
    statements,
)

LOWER: Mapping[str, Lower] = {**INTEGER, **FLOAT, **APPROXIMATED, **SMALL}


class NotVector(Exception):
    """The row needs per-lane control flow or addressing: use the scalar walker in a lane loop."""


class Places(Protocol):
    """What a body works on. `mask` is the predicate of the statement (None: all lanes)."""

    def read(self, name: str, width: int) -> Value: ...
    def lane_bit(self, name: str) -> Value: ...
    def reg_read(self, x: RegRead, index: Value, lane: Value | None) -> Value: ...
    def reg_write(self, s: RegWrite, index: Value, value: Value, lane: Value | None, mask: Value | None) -> None: ...
    def mem_load(self, x: Load, address: Callable[[Expr], Value], mask: Value | None) -> Value: ...
    def mem_store(
        self, s: Store, address: Callable[[Expr], Value], value: Value, mask: Value | None
    ) -> None: ...
    def do(self, s: Do, args: Sequence[Value], mask: Value | None) -> None: ...


def bit_name(name: str) -> str:
    """Key of a lane bit among the variables."""
    return f"bit {name}"


class Body(ABC):
    """What both walkers share: expressions."""

    def __init__(self, e: Emitter, places: Places) -> None:
        self.e, self.places = e, places

    def expr(self, x: Expr) -> Value:
        match x:
            case Const(bits, width):
                return self.e.const(bits, width)
            case Var(name, width):
                return self.get(name, width)
            case Op(op, args, width, _):
                r = LOWER[op](self.e, x, [self.expr(a) for a in args])
                if r.width != width:
                    raise Bug(f"lowering of {op} gives {r.width} bits, expected {width}")
                return r
            case Elem(name, index, width):
                return self.element(name, self.expr(index), width)
            case LaneBit(name):
                return self.get_bit(name)
            case RegRead(_, index, lane):
                return self.places.reg_read(x, self.expr(index), None if lane is None else self.expr(lane))
            case Load():
                return self.places.mem_load(x, self.expr, self.active())
            case _:
                raise Bug(f"not an expression: {x!r}")

    def block(self, body: Sequence[Stmt]) -> None:
        for s in body:
            self.statement(s)

    def statement(self, s: Stmt) -> None:
        match s:
            case Set(name, value):
                self.set(name, self.expr(value))
            case SetLaneBit(name, value):
                self.set_bit(name, self.expr(value))
            case Array(name, n, width):
                self.array(name, n, width)
            case SetElem(name, index, value):
                self.set_element(name, self.expr(index), self.expr(value))
            case RegWrite(_, index, value, lane):
                where = None if lane is None else self.expr(lane)
                self.places.reg_write(s, self.expr(index), self.expr(value), where, self.active())
            case Store(_, _, value):
                self.places.mem_store(s, self.expr, self.expr(value), self.active())
            case Do(_, args):
                self.places.do(s, [self.expr(a) for a in args], self.active())
            case _:
                self.control(s)

    @abstractmethod
    def get(self, name: str, width: int) -> Value: ...

    @abstractmethod
    def get_bit(self, name: str) -> Value: ...

    @abstractmethod
    def set(self, name: str, value: Value) -> None: ...

    @abstractmethod
    def set_bit(self, name: str, value: Value) -> None: ...

    @abstractmethod
    def array(self, name: str, n: int, width: int) -> None: ...

    @abstractmethod
    def element(self, name: str, index: Value, width: int) -> Value: ...

    @abstractmethod
    def set_element(self, name: str, index: Value, value: Value) -> None: ...

    @abstractmethod
    def control(self, s: Stmt) -> None: ...

    @abstractmethod
    def active(self) -> Value | None: ...


class VectorBody(Body):
    """Predicated, unrolled. After `block`, `vars` holds the last value of every name that was set."""

    def __init__(self, e: Emitter, places: Places) -> None:
        super().__init__(e, places)
        self.vars: dict[str, Value] = {}
        self.arrays: dict[str, int] = {}
        self.mask: Value | None = None
        self.broken: list[Value | None] = []

    def active(self) -> Value | None:
        mask = self.mask
        for b in self.broken:
            if b is not None:
                mask = self._and(mask, self._not(b))
        return mask

    def _and(self, a: Value | None, b: Value) -> Value:
        return b if a is None else self.e.bin("and", a, b)

    def _not(self, a: Value) -> Value:
        return self.e.bin("xor", a, self.e.const(1, 1))

    def get(self, name: str, width: int) -> Value:
        if name in self.vars:
            return self.e.zext(self.vars[name], width)
        if name not in PLACES:
            return self.e.const(0, width)
        return self.places.read(name, width)

    def get_bit(self, name: str) -> Value:
        key = bit_name(name)
        return self.vars[key] if key in self.vars else self.places.lane_bit(name)

    def set(self, name: str, value: Value) -> None:
        mask = self.active()
        if mask is not None:
            value = self.e.select(mask, value, self.get(name, value.width))
        self.vars[name] = value

    def set_bit(self, name: str, value: Value) -> None:
        mask = self.active()
        if mask is not None:
            value = self.e.select(mask, value, self.get_bit(name))
        self.vars[bit_name(name)] = value

    def array(self, name: str, n: int, width: int) -> None:
        self.arrays[name] = n
        for i in range(n):
            self.vars[f"{name}[{i}]"] = self.e.const(0, width)

    def _slot(self, name: str, index: Value) -> str:
        if index.const is None or index.const >= self.arrays[name]:
            raise NotVector(f"{name}[...] with an index known only at run time")
        return f"{name}[{index.const}]"

    def element(self, name: str, index: Value, width: int) -> Value:
        return self.vars[self._slot(name, index)]

    def set_element(self, name: str, index: Value, value: Value) -> None:
        self.set(self._slot(name, index), value)

    def control(self, s: Stmt) -> None:
        match s:
            case If(cond, then, other):
                self._branch(self.expr(cond), then, other)
            case For(name, lo, hi, body):
                self._loop(name, self.expr(lo).const, self.expr(hi).const, body)
            case Break():
                now = self.active()
                gone = self.e.const(1, 1) if now is None else now
                was = self.broken[-1]
                self.broken[-1] = gone if was is None else self.e.bin("or", was, gone)
            case _:
                raise NotVector(type(s).__name__)

    def _branch(self, c: Value, then: Sequence[Stmt], other: Sequence[Stmt]) -> None:
        if c.const is not None:
            self.block(then if c.const else other)
            return
        outer = self.mask
        self.mask = self._and(outer, c)
        self.block(then)
        if other:
            self.mask = self._and(outer, self._not(c))
            self.block(other)
        self.mask = outer

    def _loop(self, name: str, lo: int | None, hi: int | None, body: Sequence[Stmt]) -> None:
        if lo is None or hi is None:
            raise NotVector("loop bounds known only at run time")
        self.broken.append(None)
        for i in range(lo, hi + 1):
            self.vars[name] = self.e.const(i, 32)
            self.block(body)
        self.broken.pop()


class ScalarBody(Body):
    """One lane or the whole wave. Names live in stack slots; `places` gives the initial values.

    `slots` maps a name to (slot, width) after `open`.
    """

    def __init__(self, e: Emitter, places: Places) -> None:
        super().__init__(e, places)
        self.slots: dict[str, tuple[str, int]] = {}
        self.arrays: dict[str, tuple[str, int, int]] = {}
        self.loops: list[str] = []

    def active(self) -> Value | None:
        return None

    def open(self, body: Sequence[Stmt], widths: Mapping[str, int]) -> None:
        """Give every place the row sets a slot with its value before the body."""
        for s in statements(tuple(body)):
            if isinstance(s, Set) and s.name in PLACES and s.name not in self.slots:
                width = widths[s.name]
                self._put(s.name, self.places.read(s.name, width))
            if isinstance(s, SetLaneBit) and bit_name(s.name) not in self.slots:
                self._put(bit_name(s.name), self.places.lane_bit(s.name))

    def _put(self, name: str, value: Value) -> None:
        if name not in self.slots:
            self.slots[name] = (self.e.alloca(f"i{value.width}", 8), value.width)
        slot, width = self.slots[name]
        value = self.e.zext(value, width)
        self.e.line(f"store i{width} {value.ref}, ptr {slot}")

    def get(self, name: str, width: int) -> Value:
        if name in self.slots:
            slot, w = self.slots[name]
            return self.e.zext(self.e.inst(f"load i{w}, ptr {slot}", w), width)
        if name not in PLACES:
            return self.e.const(0, width)
        return self.places.read(name, width)

    def get_bit(self, name: str) -> Value:
        key = bit_name(name)
        return self.get(key, 1) if key in self.slots else self.places.lane_bit(name)

    def set(self, name: str, value: Value) -> None:
        self._put(name, value)

    def set_bit(self, name: str, value: Value) -> None:
        self._put(bit_name(name), value)

    def array(self, name: str, n: int, width: int) -> None:
        slot = self.e.alloca(f"[{n} x i{width}]", 8)
        self.e.line(f"store [{n} x i{width}] zeroinitializer, ptr {slot}")
        self.arrays[name] = (slot, n, width)

    def _at(self, name: str, index: Value) -> tuple[str, int]:
        slot, n, width = self.arrays[name]
        last = self.e.const(n - 1, index.width)
        index = self.e.select(self.e.icmp("ugt", index, last), last, index)
        i = self.e.zext(index, 64)
        return self.e.raw(f"getelementptr i{width}, ptr {slot}, i64 {i.ref}"), width

    def element(self, name: str, index: Value, width: int) -> Value:
        at, w = self._at(name, index)
        return self.e.zext(self.e.inst(f"load i{w}, ptr {at}", w), width)

    def set_element(self, name: str, index: Value, value: Value) -> None:
        at, w = self._at(name, index)
        value = self.e.zext(value, w)
        self.e.line(f"store i{w} {value.ref}, ptr {at}")

    def control(self, s: Stmt) -> None:
        match s:
            case If(cond, then, other):
                self._branch(self.expr(cond), then, other)
            case For(name, lo, hi, body):
                self._for(name, self.expr(lo), self.expr(hi), body)
            case While(cond, body):
                self._while(cond, body)
            case Break():
                self.e.jump(self.loops[-1])
                self.e.start(self.e.label("after"))
            case _:
                raise Bug(f"not a statement: {s!r}")

    def _branch(self, c: Value, then: Sequence[Stmt], other: Sequence[Stmt]) -> None:
        e = self.e
        if c.const is not None:
            self.block(then if c.const else other)
            return
        yes, no, end = e.label("then"), e.label("else"), e.label("endif")
        e.branch(c.ref, yes, no if other else end)
        for label, part in ((yes, then), (no, other)):
            if label == yes or other:
                e.start(label)
                self.block(part)
                e.jump(end)
        e.start(end)

    def _for(self, name: str, lo: Value, hi: Value, body: Sequence[Stmt]) -> None:
        e = self.e
        if name in self.slots:
            self.slots.pop(name)
        self._put(name, e.zext(lo, 32))
        head, inside, end = e.label("for"), e.label("body"), e.label("endfor")
        e.jump(head)
        e.start(head)
        e.branch(e.icmp("sle", self.get(name, 32), e.zext(hi, 32)).ref, inside, end)
        e.start(inside)
        self._looped(body, end)
        self._put(name, e.bin("add", self.get(name, 32), e.const(1, 32)))
        e.jump(head)
        e.start(end)

    def _while(self, cond: Expr, body: Sequence[Stmt]) -> None:
        e = self.e
        head, inside, end = e.label("while"), e.label("body"), e.label("endwhile")
        e.jump(head)
        e.start(head)
        e.branch(self.expr(cond).ref, inside, end)
        e.start(inside)
        self._looped(body, end)
        e.jump(head)
        e.start(end)

    def _looped(self, body: Sequence[Stmt], end: str) -> None:
        self.loops.append(end)
        self.block(body)
        self.loops.pop()
