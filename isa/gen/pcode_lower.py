"""Typing and lowering: the syntax tree of one instruction becomes statements of `isa/ir.py`.

Names of registers and fields become places; `.T` reinterprets, `W'T(e)` converts; lambdas and
calls of other instructions are inlined; changes of ROUND_MODE become an attribute of the
operations in between. What cannot be given a meaning raises SpecError naming the construct.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stuntgpu.isa.errors import SpecError
from stuntgpu.isa.gen import pcode_ast as ast
from stuntgpu.isa.gen import pcode_build as b
from stuntgpu.isa.gen.pcode_expr import ALIASES, Expressions
from stuntgpu.isa.gen.pcode_tidy import substitute
from stuntgpu.isa.gen.pcode_values import Val, coerce, settled, truth, type_of
from stuntgpu.isa.ir import (
    PLACE_WIDTHS,
    Array,
    Break,
    Const,
    Do,
    Expr,
    For,
    If,
    RegWrite,
    Round,
    Set,
    SetElem,
    SetLaneBit,
    Stmt,
    Store,
    Var,
    While,
    statements,
    subexpressions,
)

MAX_UNROLL = 8

_MASKS = ("VCC", "EXEC", "D0", "D1")
_ROUND: Mapping[str, Round] = {"ROUND_TOWARD_ZERO": "rtz", "ROUND_NEAREST_EVEN": "rne"}


@dataclass(frozen=True, slots=True)
class Source:
    """One instruction's text and what its operand list says.

    sizes   place -> bits, from the operand list; scope, space as in ir.Semantics and ir.Load.
    library pseudocode trees of the other instructions, for calls; `bodies` statements of those
            whose text is not used.
    renamed name in the text -> place, where an encoding calls its operands otherwise than the text.
    fp8     suffix of the arch's 8-bit float formats in ir.OPS.
    """

    name: str
    tree: ast.Block
    sizes: Mapping[str, int]
    scope: str
    space: str
    library: Mapping[str, ast.Block] = field(default_factory=dict)
    bodies: Mapping[str, tuple[Stmt, ...]] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    fp8: str = ""


def lower(source: Source) -> tuple[Stmt, ...]:
    """The statements of one instruction, not yet tidied. Raises SpecError."""
    lowering = Lowering(source)
    return lowering.block_of(source.tree)


class Lowering(Expressions):
    """Statements; expressions are in the base class."""

    def block_of(self, tree: ast.Block) -> tuple[Stmt, ...]:
        outer, self.out = self.out, []
        for s in tree:
            self.statement(s)
        done, self.out = self.out, outer
        return tuple(done)

    def statement(self, s: ast.Statement) -> None:
        match s:
            case ast.Assign():
                self.assign_statement(s)
            case ast.IfElse(arms=arms, other=other):
                self.if_else(arms, other)
            case ast.ForIn():
                self.for_in(s)
            case ast.WhileDo(cond, body):
                self.loaded.clear()
                self.out.append(While(truth(self.val(cond)), self.block_of(body)))
            case ast.Declare(name, width, kind, n):
                self.declare(name, width, kind, n)
            case ast.Lambda():
                self.lambdas[s.name] = s
            case ast.Return(value):
                self.set_local(self.result_name, self.val(value))
            case ast.BreakLoop():
                self.out.append(Break())
            case ast.Action(ast.Call(name)):
                self.action(name)
            case ast.Matrix():
                self.out.append(Do("wmma"))
            case ast.Text(text):
                raise SpecError(f"informal action {text!r}")

    def action(self, name: str) -> None:
        if name not in ("nop", "s_nop"):
            raise SpecError(f"action {name} has no meaning here")
        self.out.append(Do("nop"))

    def declare(self, name: str, width: int, kind: str, n: int) -> None:
        if name in self.source.sizes or name in ("OFFSET", "OFFSET0", "OFFSET1"):
            return
        kind = {"U": "u", "I": "i", "B": "b", "F": "f"}[kind]
        local = self.prefix + name
        self.locals[local] = (kind, width, n)
        self.out.append(Array(local, n, width) if n else Set(local, b.const(0, width)))

    # ---- control flow

    def if_else(self, arms: tuple[tuple[ast.Node, ast.Block], ...], other: ast.Block) -> None:
        (cond, then), *rest = arms
        c = truth(self.val(cond))
        if isinstance(c, Const):
            if c.bits:
                self.splice(then)
            elif rest:
                self.if_else(tuple(rest), other)
            else:
                self.splice(other)
            return
        saved, called = dict(self.loaded), dict(self.called)
        yes = self.block_of(then)
        self.loaded, self.called = dict(saved), dict(called)
        outer, self.out = self.out, []
        if rest:
            self.if_else(tuple(rest), other)
        else:
            self.splice(other)
        no, self.out = tuple(self.out), outer
        self.loaded, self.called = {}, called
        self.out.append(If(c, yes, no))

    def splice(self, block: ast.Block) -> None:
        for s in block:
            self.statement(s)

    def for_in(self, s: ast.ForIn) -> None:
        lo, hi = settled(self.val(s.lo)), settled(self.val(s.hi))
        local = self.prefix + s.name
        bounds = lo.expr, hi.expr
        self.loaded.clear()
        if all(isinstance(e, Const) for e in bounds) and not _has_break(s.body):
            low, high = (e.bits for e in bounds if isinstance(e, Const))
            if high - low < MAX_UNROLL:
                for i in range(low, high + 1):
                    self.bindings[s.name] = Val("i", b.const(i, 32))
                    self.splice(s.body)
                self.bindings.pop(
                    s.name, None
                )  # no turn at all when the bounds are the wrong way round
                return
        self.locals[local] = ("i", 32, 0)
        called = dict(self.called)
        body = self.block_of(s.body)
        self.called = called
        first, last = (b.resize(v.expr, 32, v.kind == "i") for v in (lo, hi))
        self.out.append(For(local, first, last, body))

    # ---- assignment

    def assign_statement(self, s: ast.Assign) -> None:
        match s:
            case ast.Assign((ast.Name("ROUND_MODE"),), ast.Name(mode)):
                self.round = _ROUND.get(mode, "")
                return
            case ast.Assign((ast.Name(),), ast.Name("ROUND_MODE")):
                return
        target = s.targets[0]
        v = self.val(ast.Binary(s.op, target, s.value) if s.op else s.value)
        for t in s.targets:
            self.assign(t, v)

    def assign(self, target: ast.Node, v: Val) -> None:
        match target:
            case ast.Name(name):
                self.set_name(name, v, None)
            case ast.Dot(ast.Index(ast.Name("MEM" | "LDS"), addr), type_name):
                kind, width = self.type(type_name)
                self.store(addr, coerce(v, kind, width))
            case ast.Index(ast.Name("MEM" | "LDS"), addr):
                self.store(addr, settled(v))
            case ast.Dot(inner, type_name) if type_of(type_name):
                self.assign_typed(inner, self.type(type_name), v)
            case ast.Dot(ast.Name("WAVE_STATUS"), "PRIV"):
                self.out.append(Set("PRIV", coerce(v, "u", 1).expr))
            case ast.Dot(ast.Name("TRAPSTS"), _):
                return  # exception flags are not modelled
            case ast.Index(base, index):
                self.assign_index(base, index, v)
            case ast.Slice(base, hi, lo):
                self.assign_slice(base, hi, lo, v)
            case ast.Concat(parts):
                self.assign_parts(parts, v)
            case _:
                raise SpecError(f"assignment to {target}")

    def assign_typed(self, inner: ast.Node, t: tuple[str, int], v: Val) -> None:
        v = coerce(v, *t)
        match inner:
            case ast.Name(name):
                self.set_name(name, v, t)
            case ast.Slice() | ast.Index():
                self.assign(inner, v)
            case _:
                raise SpecError(f"assignment to a view of {inner}")

    def assign_parts(self, parts: tuple[ast.Node, ...], v: Val) -> None:
        lo, x = 0, settled(v)
        self.set_local("split", x)
        whole = Var(self.prefix + "split", x.width)
        for part in reversed(parts):
            if not isinstance(part, ast.Dot):
                raise SpecError("split assignment to a part without a type")
            kind, width = self.type(part.name)
            self.assign(part, Val(kind, b.extract(whole, lo, width)))
            lo += width

    def store(self, addr: ast.Node, v: Val) -> None:
        self.out.append(Store(self.memory, self.address(addr), v.expr))
        self.loaded.clear()

    def set_name(self, name: str, v: Val, t: tuple[str, int] | None) -> None:
        name = ALIASES.get(name, name)
        if name == "PC":
            self.out.append(Set("PC", coerce(v, "u", 64).expr))
        elif name == "EXEC":
            value = b.insert(Var("EXEC", 64), 0, settled(v).expr)
            self.out.append(Set("EXEC", value))
        elif name == "SCC":
            self.out.append(Set("SCC", truth(v)))
        elif name == "RETURN_DATA" and name not in self.source.sizes:
            return  # a form without result
        elif name in self.source.sizes and not self.prefix:
            kind, width = t or ("b", self.source.sizes[name])
            self.out.append(Set(name, coerce(v, kind, width).expr))
        else:
            self.set_local(name, v)

    def set_local(self, name: str, v: Val) -> None:
        local = self.prefix + name
        v = coerce(v, *self.locals[local][:2]) if local in self.locals else settled(v)
        self.locals.setdefault(local, (v.kind, v.width, 0))
        self.out.append(Set(local, v.expr))
        self.remember_load(local, v.expr)

    def assign_index(self, base: ast.Node, index: ast.Node, v: Val) -> None:
        match base:
            case ast.Dot(ast.Name(name), "u64" | "b64") if self.is_lane(index) and name in _MASKS:
                self.out.append(SetLaneBit(name, truth(v)))
            case ast.Index(ast.Name("VGPR"), lane):
                self.write_register("VGPR", index, v, settled(self.val(lane)).expr)
            case ast.Name("SGPR"):
                self.write_register("SGPR", index, v, None)
            case ast.Name("HW_REGISTERS"):
                self.write_register("HWREG", index, v, None)
            case ast.Name(name) if self.is_array(name):
                kind, width, _ = self.locals[self.prefix + name]
                i = settled(self.val(index)).expr
                self.out.append(SetElem(self.prefix + name, i, coerce(v, kind, width).expr))
            case ast.Name(name) | ast.Dot(ast.Name(name)):
                self.insert_into(name, settled(self.val(index)).expr, coerce(v, "u", 1).expr)
            case _:
                raise SpecError(f"assignment to an index of {base}")

    def write_register(self, file: str, index: ast.Node, v: Val, lane: Expr | None) -> None:
        i, x = b.zext(settled(self.val(index)).expr, 32), settled(v).expr
        for k in range(max(1, x.width // 32)):
            at = b.integer("add", i, b.const(k, 32))
            word = b.zext(b.extract(x, 32 * k, min(32, x.width)), 32)
            if file == "VGPR":
                self.out.append(RegWrite("VGPR", at, word, lane))
            elif file == "SGPR":
                self.out.append(RegWrite("SGPR", at, word))
            else:
                self.out.append(RegWrite("HWREG", at, word))

    def assign_slice(self, base: ast.Node, hi: ast.Node, lo: ast.Node, v: Val) -> None:
        first, width = self.bounds(hi, lo)
        match base:
            case ast.Index(ast.Index(ast.Name("VGPR"), lane), index) if self.own_register(lane, index) == Var("D0", 32):
                self.out.append(Set("D0", b.insert(Var("D0", 32), first, b.trunc(settled(v).expr, width))))
            case ast.Name(name) | ast.Dot(ast.Name(name)):
                if self.is_reversed(hi, lo):
                    raise SpecError("assignment to a reversed slice")
                self.insert_into(name, first, coerce(v, v.kind, width).expr)
            case _:
                raise SpecError(f"assignment to a slice of {base}")

    def insert_into(self, name: str, lo: Expr, value: Expr) -> None:
        """Replace bits of a place or local; a local that does not exist yet starts as zero."""
        name = ALIASES.get(name, name)
        if (name in self.source.sizes or name == "M0") and not self.prefix:
            old: Expr = Var(name, PLACE_WIDTHS.get(name) or self.source.sizes[name])
            self.out.append(Set(name, b.insert(old, lo, value)))
            return
        local = self.prefix + name
        if local not in self.locals:
            width = self.slice_width(name)
            self.locals[local] = ("b", width, 0)
            self.out.append(Set(local, b.const(0, width)))
        old = Var(local, self.locals[local][1])
        self.out.append(Set(local, b.insert(old, lo, value)))

    # ---- inlining

    def call_lambda(self, f: ast.Lambda, args: list[Val]) -> Val:
        if len(args) != len(f.params):
            raise SpecError(f"{f.name} takes {len(f.params)} arguments, not {len(args)}")
        saved = dict(self.bindings)
        self.bindings.update(zip(f.params, args, strict=True))
        if isinstance(f.body, tuple):
            self.calls += 1
            outer, self.prefix = self.prefix, f"{f.name}.{self.calls}."
            self.result_name = "result"
            self.splice(f.body)
            name = self.prefix + "result"
            self.prefix = outer
            kind, width, _ = self.locals[name]
            value = Val(kind, Var(name, width))
        else:
            value = self.val(f.body)
        self.bindings = saved
        return value

    def call_instruction(self, name: str, args: list[Val]) -> Val:
        """The value D0 has after instruction `name` ran on these sources."""
        key = (name, tuple(settled(a).expr for a in args))
        if key not in self.called:
            self.calls += 1
            outer, self.prefix = self.prefix, f"{name}.{self.calls}."
            sources = {f"S{i}": self.named(f"{self.prefix}S{i}", a) for i, a in enumerate(args)}
            if name.upper() in self.source.bodies:
                self.called[key] = self.run_body(name, sources, args[0].kind)
            else:
                self.called[key] = self.run_text(name, sources)
            self.prefix = outer
        return self.called[key]

    def run_text(self, name: str, sources: dict[str, Val]) -> Val:
        saved, lambdas = self.bindings, dict(self.lambdas)
        self.bindings = sources
        self.splice(self.source.library[name.upper()])
        self.bindings, self.lambdas = saved, lambdas
        kind, width, _ = self.locals[self.prefix + "D0"]
        return Val(kind, Var(self.prefix + "D0", width))

    def run_body(self, name: str, sources: dict[str, Val], kind: str) -> Val:
        """The same from statements: sources substituted, everything assigned gets the prefix."""
        body = self.source.bodies[name.upper()]
        widths = {s.name: s.value.width for s in statements(body) if isinstance(s, Set)}
        values: dict[str, Expr] = {n: Var(self.prefix + n, w) for n, w in widths.items()}
        values |= {n: v.expr for n, v in sources.items()}
        for s in substitute(body, values):
            if not isinstance(s, Set):
                raise SpecError(f"call of {name}, which does more than compute D0")
            self.out.append(Set(self.prefix + s.name, s.value))
        return Val(kind, values["D0"])

    def named(self, local: str, v: Val) -> Val:
        """v itself when it is small, else a local that holds it."""
        v = settled(v)
        if sum(1 for _ in subexpressions(v.expr)) <= 3:
            return v
        self.out.append(Set(local, v.expr))
        return Val(v.kind, Var(local, v.width))


def _has_break(block: ast.Block) -> bool:
    for s in block:
        match s:
            case ast.BreakLoop() | ast.ForIn() | ast.WhileDo():
                return True
            case ast.IfElse(arms, other):
                if _has_break(other) or any(_has_break(body) for _, body in arms):
                    return True
    return False
