"""Checks a semantics row: known operations, argument widths, places, scope of each form.

Raises SpecError naming the instruction and the node.
"""

from __future__ import annotations

from stuntgpu.isa.errors import SpecError
from stuntgpu.isa.ir import (
    ACTIONS,
    OPS,
    PLACE_WIDTHS,
    PLACES,
    UNIFORM,
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
    Semantics,
    Set,
    SetElem,
    SetLaneBit,
    Stmt,
    Store,
    Var,
    While,
    children,
    dump_expr,
    dump_stmt,
    operands_of,
    statements,
)

MASKS = frozenset(("VCC", "EXEC", "D0", "D1", "S2"))
WRITABLE = frozenset(("D0", "D1", "S0", "VCC", "EXEC", "SCC", "M0", "PC", "PRIV", "VDATA", "RETURN_DATA", "SDATA"))
_OPEN = {"zext": lambda a, w: a <= w, "sext": lambda a, w: a <= w, "trunc": lambda a, w: a >= w}


def verify(sem: Semantics) -> None:
    """Raises SpecError at the first node that is wrong."""
    _Verifier(sem).block(sem.body, in_loop=False)
    at_top = {s.name for s in sem.body if isinstance(s, Set)}
    for s in statements(sem.body):
        if isinstance(s, Set) and s.name == "PC" and "PC" not in at_top:
            raise SpecError(f"{sem.name}: PC assigned on some paths only")


class _Verifier:
    def __init__(self, sem: Semantics) -> None:
        self.sem = sem
        self.locals: dict[str, int] = {}
        self.arrays: dict[str, tuple[int, int]] = {}

    def fail(self, what: str, at: Expr | Stmt) -> SpecError:
        text = dump_stmt(at) if isinstance(at, Stmt) else dump_expr(at)
        return SpecError(f"{self.sem.name}: {what} in {text[:200]}")

    def need(self, ok: bool, what: str, at: Expr | Stmt) -> None:
        if not ok:
            raise self.fail(what, at)

    # ---- statements

    def block(self, body: tuple[Stmt, ...], in_loop: bool) -> None:
        for s in body:
            for x in operands_of(s):
                self.expr(x)
            self.statement(s, in_loop)

    def statement(self, s: Stmt, in_loop: bool) -> None:
        match s:
            case Set(name, value):
                self.assigned(name, value.width, s)
            case SetLaneBit(name, value):
                self.need(self.sem.scope == "lane", "lane mask written in wave scope", s)
                self.need(name in MASKS and value.width == 1, "mask bit", s)
            case Array(name, n, width):
                self.arrays[name] = (n, width)
            case SetElem(name, _, value):
                self.need(self.arrays.get(name, (0, 0))[1] == value.width, "element width", s)
            case RegWrite(file, index, value, lane):
                self.need(index.width == 32 and value.width == 32, "register index or value is not 32 bits", s)
                self.need((lane is not None) == (file == "VGPR"), "lane of a register", s)
            case Store(_, addr, value):
                self.address(s, addr, value.width)
            case Break():
                self.need(in_loop, "break outside a loop", s)
            case Do(action):
                self.need(action in ACTIONS, "unknown action", s)
            case _:
                self.control(s, in_loop)

    def control(self, s: Stmt, in_loop: bool) -> None:
        match s:
            case If(cond, then, other):
                self.need(cond.width == 1, "condition is not one bit", s)
                self.block(then, in_loop)
                self.block(other, in_loop)
            case While(cond, body):
                self.need(cond.width == 1, "condition is not one bit", s)
                self.block(body, True)
            case For(name, lo, hi, body):
                self.need(lo.width == hi.width == 32, "loop bounds are not 32 bits", s)
                self.need(bool(body), "loop that does nothing", s)
                self.locals[name] = 32
                self.block(body, True)

    def assigned(self, name: str, width: int, s: Stmt) -> None:
        if name in PLACES:
            self.need(name in WRITABLE, f"{name} is not writable", s)
            self.need(PLACE_WIDTHS.get(name, width) == width, f"{name} written with {width} bits", s)
            if name in UNIFORM:
                self.need(self.sem.scope == "wave", f"{name} written in lane scope", s)
        else:
            self.need(self.locals.setdefault(name, width) == width, f"{name} changes width", s)

    def address(self, at: Expr | Stmt, addr: Expr, width: int) -> None:
        space = at.space if isinstance(at, Load | Store) else ""
        self.need(addr.width == (32 if space == "LDS" else 64), "address width", at)
        self.need(width % 8 == 0, "memory access of a part of a byte", at)

    # ---- expressions

    def expr(self, x: Expr) -> None:
        for c in children(x):
            self.expr(c)
        match x:
            case Const(bits, width):
                self.need(width > 0 and 0 <= bits < 1 << width, "constant does not fit", x)
            case Var(name, width):
                self.variable(x, name, width)
            case Op():
                self.operation(x)
            case Elem(name, _, width):
                self.need(self.arrays.get(name, (0, 0))[1] == width, "element width", x)
            case LaneBit(name):
                self.need(self.sem.scope == "lane" and name in MASKS, "lane bit", x)
            case RegRead(file, index, lane):
                self.need(index.width == 32, "register index is not 32 bits", x)
                self.need((lane is not None) == (file == "VGPR"), "lane of a register", x)
                self.need(lane is None or lane.width == 32, "lane is not 32 bits", x)
            case Load(_, addr, width):
                self.address(x, addr, width)

    def variable(self, x: Var, name: str, width: int) -> None:
        if name in PLACES:
            self.need(PLACE_WIDTHS.get(name, width) == width, f"{name} read with {width} bits", x)
            if name == "ADDR":
                self.need(width == (32 if self.sem.name.startswith(("DS_", "LDS_")) else 64), "ADDR width", x)
        else:
            self.need(self.locals.get(name) == width, f"{name} is not assigned at that width", x)

    def operation(self, x: Op) -> None:
        info = OPS.get(x.op)
        if info is None:
            raise self.fail("unknown operation", x)
        self.need(len(info.args) == len(x.args), "number of arguments", x)
        shared: dict[str, int] = {"w": x.width}
        for kind, a in zip(info.args, x.args, strict=True):
            if isinstance(kind, int):
                self.need(a.width == kind, f"argument of {a.width} bits", x)
            elif kind != "*":
                self.need(shared.setdefault(kind, a.width) == a.width, f"argument of {a.width} bits", x)
        width = x.args[0].width if info.result == "same" else info.result
        self.need(width in ("w", x.width), "result width", x)
        self.shape(x)

    def shape(self, x: Op) -> None:
        first = x.args[0].width
        if x.op in _OPEN:
            self.need(_OPEN[x.op](first, x.width), "width goes the wrong way", x)
        if x.op == "extract" and isinstance(x.args[1], Const):
            self.need(x.args[1].bits < first, "field beyond the value", x)
        if x.op == "concat":
            self.need(first + x.args[1].width == x.width, "parts do not add up", x)
        if x.round:
            self.need("." in x.op or "_to_" in x.op, "rounding of an integer operation", x)
