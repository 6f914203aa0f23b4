"""The oracle: a semantics row as a Python function, statement by statement.

`compile_row` writes one plain Python function per row: every node of the body becomes one line that
assigns a temporary, so the source reads like the row. In lane scope the function loops over the
active lanes; a lane sees the registers as they were before the instruction, and results are handed
back to be stored after the last lane.

A compiled function is called as fn(c, p, lanes):

    c       a `Context`: memory, registers by number, actions, MODE.
    p       place -> value. Uniform places are integers, others lists with one value per lane (wave
            scope: integers); "bit VCC" is the mask that LaneBit("VCC") reads.
    lanes   the active lanes, ascending (lane scope).

and returns place -> results: {lane: value} (wave scope: the value) and "bit VCC" -> mask.

Errors:  SpecError for a node no table knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

from stuntgpu.emu import softfloat as sf
from stuntgpu.emu.interp_ops import FUNCTIONS, INTERP
from stuntgpu.isa import ir
from stuntgpu.isa.errors import SpecError
from stuntgpu.isa.semantics import semantics


class Context(Protocol):
    """What a body can touch outside its places. `lane` is None in wave scope."""

    mode: sf.Mode
    pc: int

    def load(self, space: str, lane: int | None, address: int, size: int) -> int: ...
    def store(self, space: str, lane: int | None, address: int, size: int, value: int) -> None: ...
    def read_reg(self, file: str, index: int, lane: int | None) -> int: ...
    def write_reg(self, file: str, index: int, lane: int | None, value: int) -> None: ...
    def act(self, action: str, args: Sequence[int]) -> None: ...


Results = dict[str, Any]
BodyFunction = Callable[[Context, Mapping[str, Any], Sequence[int]], Results]


@dataclass(frozen=True, slots=True)
class Body:
    """A compiled row.

    reads    place -> widest width it is read at (LaneBit reads not included).
    writes   place -> width assigned.
    bits_in, bits_out   mask places read and written bit by bit.
    source   the function's text, for people.
    """

    name: str
    scope: ir.Scope
    reads: Mapping[str, int]
    writes: Mapping[str, int]
    bits_in: tuple[str, ...]
    bits_out: tuple[str, ...]
    source: str
    fn: BodyFunction


def compile_row(sem: ir.Semantics) -> Body:
    """The row as a Python function."""
    return _Writer(sem).body()


@lru_cache(maxsize=8192)
def body_of(arch: str, name: str) -> Body:
    """The compiled row of an instruction. Raises Unmodelled when it has none."""
    return compile_row(semantics(arch, name))


def evaluate(node: ir.Op, args: Sequence[int], mode: sf.Mode) -> int:
    """One pure operation on values: what `INTERP` says it means."""
    return int(eval(_operation(node, [str(a) for a in args]), {**FUNCTIONS, **_modes(mode)}))


def _modes(mode: sf.Mode) -> dict[str, sf.Mode]:
    return {"M": mode} | {f"M_{r}": sf.with_round(mode, r) for r in ("rne", "rtz", "rup", "rdn")}


def _operation(node: ir.Op, args: list[str]) -> str:
    emit = INTERP.get(node.op)
    if emit is None:
        raise SpecError(f"interp: no meaning for {node.op}")
    return emit(node, args)


class _Writer:
    """Writes the function of one row."""

    def __init__(self, sem: ir.Semantics) -> None:
        self.sem = sem
        self.lines: list[str] = []
        self.depth = 1
        self.temps = 0
        exprs = list(ir.expressions(sem.body))
        stmts = list(ir.statements(sem.body))
        self.reads: dict[str, int] = {}
        for x in exprs:
            if isinstance(x, ir.Var) and x.name in ir.PLACES:
                self.reads[x.name] = max(x.width, self.reads.get(x.name, 0))
        self.writes: dict[str, int] = {}
        for s in stmts:
            if isinstance(s, ir.Set) and s.name in ir.PLACES:
                self.writes[s.name] = max(s.value.width, self.writes.get(s.name, 0))
        self.bits_in = _unique(x.name for x in exprs if isinstance(x, ir.LaneBit))
        self.bits_out = _unique(s.name for s in stmts if isinstance(s, ir.SetLaneBit))
        self.rounds = _unique(x.round for x in exprs if isinstance(x, ir.Op) and x.round)

    # ---- frame

    def body(self) -> Body:
        sem = self.sem
        self.line("M = c.mode")
        for r in self.rounds:
            self.line(f"M_{r} = with_round(M, {r!r})")
        if sem.scope == "lane":
            self.lane_frame()
        else:
            self.wave_frame()
        source = f"def row(c, p, lanes):  # {sem.name}\n" + "\n".join(self.lines) + "\n"
        space: dict[str, Any] = {**FUNCTIONS, "with_round": sf.with_round}
        exec(compile(source, f"<{sem.name}>", "exec"), space)
        return Body(sem.name, sem.scope, self.reads, self.writes, self.bits_in, self.bits_out, source, space["row"])

    def wave_frame(self) -> None:
        for name in _unique([*self.reads, *self.writes]):
            self.line(f"p_{name} = {f'p[{name!r}]' if name in self.reads else None}")
        self.block(self.sem.body)
        self.line("r = {}")
        for name in self.writes:
            self.line(f"if p_{name} is not None: r[{name!r}] = p_{name}")
        self.line("return r")

    def lane_frame(self) -> None:
        per_lane = [n for n in self.reads if n not in ir.UNIFORM]
        for name in self.reads:
            self.line(f"{'p' if name in ir.UNIFORM else 'l'}_{name} = p[{name!r}]" if name != "LANE" else "pass")
        for name in self.bits_in:
            self.line(f"m_{name} = p['bit {name}']")
        for name in self.bits_out:
            self.line(f"k_{name} = 0")
        for name in self.writes:
            self.line(f"o_{name} = {{}}")
        self.line("for p_LANE in lanes:")
        self.depth += 1
        for name in per_lane:
            if name != "LANE":
                self.line(f"p_{name} = l_{name}[p_LANE]")
        for name in self.writes:
            if name not in self.reads:
                self.line(f"p_{name} = None")
        for name in _unique([*self.bits_in, *self.bits_out]):
            self.line(f"b_{name} = {f'm_{name} >> p_LANE & 1' if name in self.bits_in else 0}")
        self.block(self.sem.body)
        for name in self.writes:
            self.line(f"if p_{name} is not None: o_{name}[p_LANE] = p_{name}")
        for name in self.bits_out:
            self.line(f"k_{name} |= b_{name} << p_LANE")
        self.depth -= 1
        results = [f"{n!r}: o_{n}" for n in self.writes] + [f"'bit {n}': k_{n}" for n in self.bits_out]
        self.line(f"return {{{', '.join(results)}}}")

    # ---- text

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def temp(self, text: str) -> str:
        self.temps += 1
        self.line(f"t{self.temps} = {text}")
        return f"t{self.temps}"

    def block(self, body: tuple[ir.Stmt, ...]) -> None:
        for s in body:
            self.statement(s)
        if not body:
            self.line("pass")

    def name_of(self, name: str) -> str:
        return f"p_{name}" if name in ir.PLACES else f"v_{_plain(name)}"

    # ---- statements

    def statement(self, s: ir.Stmt) -> None:
        match s:
            case ir.Set(name, value):
                self.line(f"{self.name_of(name)} = {self.value(value)}")
            case ir.SetLaneBit(name, value):
                self.line(f"b_{name} = {self.value(value)}")
            case ir.Array(name, n, _):
                self.line(f"a_{_plain(name)} = [0] * {n}")
            case ir.SetElem(name, index, value):
                at = self.value(index)
                self.line(f"a_{_plain(name)}[{at}] = {self.value(value)}")
            case ir.If(cond, then, other):
                self.line(f"if {self.value(cond)}:")
                self.nested(then)
                if other:
                    self.line("else:")
                    self.nested(other)
            case ir.Break():
                self.line("break")
            case ir.For() | ir.While():
                self.loop(s)
            case _:
                self.effect(s)

    def nested(self, body: tuple[ir.Stmt, ...]) -> None:
        self.depth += 1
        self.block(body)
        self.depth -= 1

    def loop(self, s: ir.For | ir.While) -> None:
        if isinstance(s, ir.For):
            low, high = self.value(s.lo), self.value(s.hi)
            self.line(f"for {self.name_of(s.name)} in range({low}, {high} + 1):")
            self.nested(s.body)
            return
        self.line("while True:")
        self.depth += 1
        self.line(f"if not {self.value(s.cond)}: break")
        self.block(s.body)
        self.depth -= 1

    def effect(self, s: ir.Stmt) -> None:
        lane = "p_LANE" if self.sem.scope == "lane" else None
        match s:
            case ir.Store(space, addr, value):
                at = self.value(addr)
                self.line(f"c.store({space!r}, {lane}, {at}, {value.width // 8}, {self.value(value)})")
            case ir.RegWrite(file, index, value, where):
                at = self.value(index)
                to = None if where is None else self.value(where)
                self.line(f"c.write_reg({file!r}, {at}, {to}, {self.value(value)})")
            case ir.Do(action, args):
                self.line(f"c.act({action!r}, ({''.join(self.value(a) + ',' for a in args)}))")
            case _:
                raise SpecError(f"interp of {self.sem.name}: statement {s!r}")

    # ---- expressions

    def value(self, x: ir.Expr) -> str:
        """A name or constant that holds the value of x at this point."""
        match x:
            case ir.Const(bits, _):
                return str(bits)
            case ir.Var(name, width):
                return self.variable(name, width)
            case ir.LaneBit(name):
                return f"b_{name}"
            case ir.Op(_, args, _, _):
                return self.temp(_operation(x, [self.value(a) for a in args]))
            case ir.Elem(name, index, _):
                return self.temp(f"a_{_plain(name)}[{self.value(index)}]")
            case ir.Load(space, addr, width):
                lane = "p_LANE" if self.sem.scope == "lane" else None
                return self.temp(f"c.load({space!r}, {lane}, {self.value(addr)}, {width // 8})")
            case ir.RegRead(file, index, where):
                at = self.value(index)
                lane = None if where is None else self.value(where)
                return self.temp(f"c.read_reg({file!r}, {at}, {lane})")

    def variable(self, name: str, width: int) -> str:
        """Places may be read narrower than they are; a copy, since a later assignment may change it."""
        whole = max(self.reads.get(name, 0), self.writes.get(name, 0))
        if name in ir.PLACES and width < whole:
            return self.temp(f"{self.name_of(name)} & {(1 << width) - 1:#x}")
        return self.name_of(name)


def _plain(name: str) -> str:
    """A local's name as a Python identifier; inlined calls name theirs with dots."""
    return name.replace(".", "_dot_")


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
