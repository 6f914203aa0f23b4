"""Expressions of the pseudocode: typing and lowering (base of `pcode_lower.Lowering`)."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from stuntgpu.isa.errors import SpecError
from stuntgpu.isa.gen import pcode_ast as ast
from stuntgpu.isa.gen import pcode_build as b
from stuntgpu.isa.gen.pcode_values import (
    INFINITY,
    NAN,
    Val,
    absolute,
    coerce,
    exponent,
    negative,
    settled,
    truth,
    type_of,
    typed,
    unify,
    view,
)
from stuntgpu.isa.ir import (
    FLOATS,
    OPS,
    PLACE_WIDTHS,
    Const,
    Elem,
    Expr,
    LaneBit,
    Load,
    RegRead,
    Round,
    Stmt,
    Var,
    node,
)

if TYPE_CHECKING:
    from stuntgpu.isa.gen.pcode_lower import Source

_FLOAT_OPS = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}
_INT_OPS = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor"}
_COMPARES = ("==", "!=", "<>", "<", "<=", ">", ">=")
_UNARY_FLOAT = {
    "sqrt": "sqrt",
    "trunc": "trunc_int",
    "floor": "floor",
    "fract": "fract",
    "mantissa": "mantissa",
    "log2": "log2",
}
_NAN_TESTS = {"isNAN": "isnan", "isSignalNAN": "issnan", "isQuietNAN": "isqnan"}
#: Functions by their number of arguments.
_ARGUMENTS = {
    "fma": 3,
    "abs": 1,
    "sign": 1,
    "exponent": 1,
    "signext": 1,
    "signext_from_bit": 2,
    "ldexp": 2,
    "pow": 2,
    "s_ff1_i32_b32": 1,
    "s_ff1_i32_b64": 1,
    "v_cvt_i16_f32": 1,
    "v_cvt_u16_f32": 1,
    "isNAN": 1,
    "isSignalNAN": 1,
    "isQuietNAN": 1,
    "cvtToQuietNAN": 1,
    "sin": 1,
    "cos": 1,
    **dict.fromkeys(_UNARY_FLOAT, 1),
}
_CONVERSION = re.compile(r"^([a-z]+\d+)_to_([a-z]+\d*)$")
_SCALED = re.compile(r"^([a-z]+\d+)_to_([a-z]+\d+)(_sr)?_scale$")
_STOCHASTIC = re.compile(r"^f32_to_(b?f16)_(?:sr|SR)$")
#: Names in the text that are places under another name.
ALIASES = {
    "DATA0": "DATA",
    "ADDR_BASE": "ADDR",
    "laneId": "LANE",
    "laneID": "LANE",
    "wave32": "WAVE32",
    "offset0": "OFFSET0",
    "offset1": "OFFSET1",
    "D": "D0",
}


class Expressions(ABC):
    """State of one lowering, and the value of every expression form.

    out       statements of the block being built.
    locals    local -> (kind, width, n elements or 0); names of inlined code carry `prefix`.
    bindings  names that stand for a value: lambda parameters, unrolled loop variables.
    called    results of inlined instructions by name and arguments, while they hold.
    loaded    memory reads whose value a local holds, until the next store or branch.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.memory: Literal["MEM", "LDS"] = "LDS" if source.space == "LDS" else "MEM"
        self.out: list[Stmt] = []
        self.locals: dict[str, tuple[str, int, int]] = {}
        self.bindings: dict[str, Val] = {}
        self.lambdas: dict[str, ast.Lambda] = {}
        self.loaded: dict[tuple[Expr, int], Var] = {}
        self.called: dict[tuple[str, tuple[Expr, ...]], Val] = {}
        self.round: Round = ""
        self.prefix = ""
        self.result_name = "result"
        self.calls = 0

    @abstractmethod
    def call_lambda(self, f: ast.Lambda, args: list[Val]) -> Val: ...

    @abstractmethod
    def call_instruction(self, name: str, args: list[Val]) -> Val: ...

    # ---- dispatch

    def val(self, x: ast.Node) -> Val:
        match x:
            case ast.Num(value, kind, width, is_hex):
                return (
                    Val(kind.lower(), b.const(value, width))
                    if width
                    else Val("int", None, value, is_hex)
                )
            case ast.Real(text, width):
                v = Val("real", None, Fraction(text))
                return typed(v, "f", width) if width else v
            case ast.Name(name):
                return self.name(name)
            case ast.Dot():
                return self.dot(x)
            case ast.Index(base, index):
                return self.index(base, index)
            case ast.Slice() | ast.Part():
                return self.slice(x)
            case ast.Call(name, args):
                return self.call(name, args)
            case ast.Cast(width, kind, value):
                return self.cast(width, kind, value)
            case ast.Unary(op, value):
                return self.unary(op, value)
            case ast.Binary(op, left, right):
                return self.binary(op, left, right)
            case ast.Cond(test, yes, no):
                c = truth(self.val(test))
                u, v = unify(self.val(yes), self.val(no))
                return Val(u.kind, b.select(c, u.expr, v.expr))
            case ast.Concat(parts):
                return self.concat(parts)

    def concat(self, parts: tuple[ast.Node, ...]) -> Val:
        x = self.val(parts[0]).expr
        for p in parts[1:]:
            x = b.concat(x, self.val(p).expr)
        return Val("b", x)

    # ---- names

    def type(self, name: str) -> tuple[str, int]:
        t = type_of(name)
        if t is None:
            raise SpecError(f"type {name}")
        return t

    def is_lane(self, x: ast.Node) -> bool:
        return self.source.scope == "lane" and x in (ast.Name("laneId"), ast.Name("laneID"))

    def is_array(self, name: str) -> bool:
        return self.locals.get(self.prefix + name, ("", 0, 0))[2] > 0

    def name(self, name: str) -> Val:
        if name in self.bindings:
            return self.bindings[name]
        if self.prefix + name in self.locals:
            kind, width, _ = self.locals[self.prefix + name]
            return Val(kind, Var(self.prefix + name, width))
        name = self.source.renamed.get(name) or ALIASES.get(name, name)
        match name:
            case "INF":
                return Val("real", None, INFINITY)
            case "MAX_FLOAT_F32":
                return Val("f", b.const(0x7F7FFFFF, 32))
            case "WAVE64":
                return Val("u", b.negate(Var("WAVE32", 1)))
            case "EXEC_LO":
                return Val("u", b.trunc(Var("EXEC", 64), 32))
            case "DST":
                return Val("u", Var("SDST" if self.source.name.startswith("S_") else "VDST", 32))
            case "PC":
                return Val("i", Var("PC", 64))
            case "ADDR":
                return Val("u", Var("ADDR", 32 if self.memory == "LDS" else 64))
            case "OFFSET" if self.memory == "LDS":
                return Val("u", b.const(0, 32))  # the place ADDR holds it already
        place_width = PLACE_WIDTHS.get(name) or self.source.sizes.get(name)
        if place_width is None or (self.prefix and name.startswith("S")):
            raise SpecError(f"unknown name {name}")
        return Val("b", Var(name, place_width))

    def dot(self, x: ast.Dot) -> Val:
        match x:
            case ast.Dot(ast.Name("INF" | "NAN" as what), t) if type_of(t):
                return typed(Val("real", None, INFINITY if what == "INF" else NAN), *self.type(t))
            case ast.Dot(ast.Name("WAVE_MODE"), "IEEE"):
                return Val("u", Var("MODE_IEEE", 1))
            case ast.Dot(ast.Name("INST"), name):
                return self.name(name)
            case ast.Dot(ast.Name("WAVE_STATUS"), "PRIV"):
                return Val("u", Var("PRIV", 1))
            case ast.Dot(ast.Index(ast.Name("MEM" | "LDS"), addr), t):
                kind, width = self.type(t)
                return Val(kind, self.load(addr, width))
            case ast.Dot(ast.Index(ast.Name("SGPR"), index), "b64" | "u64"):
                i = settled(self.val(index)).expr
                high = RegRead("SGPR", b.integer("add", i, b.const(1, 32)))
                return Val("b", b.concat(high, RegRead("SGPR", i)))
        return view(self.val(x.base), *self.type(x.name))

    # ---- parts

    def load(self, addr: ast.Node, width: int) -> Expr:
        at = self.address(addr)
        return self.loaded.get((at, width)) or Load(self.memory, at, width)

    def access_width(self) -> int:
        """Bits of a memory access without a type: those of the data operand."""
        width = self.source.sizes.get("DATA")
        if width is None:
            raise SpecError("memory access without a type")
        return width

    def own_register(self, lane: ast.Node, index: ast.Node) -> Var | None:
        """The register of this lane that an operand names: its place, 32 bits."""
        match index:
            case ast.Dot(ast.Name("VDST" | "SRC0" as field)) if self.is_lane(lane):
                return Var("D0" if field == "VDST" else "S0", 32)
        return None

    def remember_load(self, local: str, x: Expr) -> None:
        if isinstance(x, Load):
            self.loaded[(x.addr, x.width)] = Var(local, x.width)

    def address(self, addr: ast.Node) -> Expr:
        v = settled(self.val(addr))
        return b.resize(v.expr, 32 if self.memory == "LDS" else 64, v.kind == "i")

    def index(self, base: ast.Node, index: ast.Node) -> Val:
        match base:
            case ast.Dot(ast.Name("VCC" | "EXEC" | "D0" as mask), "u64") if self.is_lane(index):
                return Val("u", LaneBit(mask))
            case ast.Index(ast.Name("VGPR"), lane) if (own := self.own_register(lane, index)):
                return Val("b", own)
            case ast.Index(ast.Name("VGPR"), lane):
                i, n = settled(self.val(index)).expr, settled(self.val(lane)).expr
                return Val("b", RegRead("VGPR", b.zext(i, 32), b.resize(n, 32, False)))
            case ast.Name("SGPR"):
                return Val("b", RegRead("SGPR", settled(self.val(index)).expr))
            case ast.Name("HW_REGISTERS"):
                return Val("b", RegRead("HWREG", b.zext(settled(self.val(index)).expr, 32)))
            case ast.Name("MEM" | "LDS"):
                return Val("b", self.load(index, self.access_width()))
            case ast.Name(name) if self.is_array(name):
                kind, width, _ = self.locals[self.prefix + name]
                return Val(kind, Elem(self.prefix + name, settled(self.val(index)).expr, width))
        lo = settled(self.val(index)).expr
        return Val("u", b.extract(self.val(base).expr, lo, 1))

    def slice(self, x: ast.Slice | ast.Part) -> Val:
        v = self.val(x.base)
        if isinstance(x, ast.Part):
            width = settled(self.val(x.width)).expr
            if not isinstance(width, Const):
                raise SpecError("width of a part is not constant")
            return Val("u", b.extract(v.expr, settled(self.val(x.lo)).expr, width.bits))
        lo, width_bits = self.bounds(x.hi, x.lo)
        field = b.extract(v.expr, lo, width_bits)
        return Val("u", node("bitrev", field) if self.is_reversed(x.hi, x.lo) else field)

    def is_reversed(self, hi: ast.Node, lo: ast.Node) -> bool:
        return isinstance(hi, ast.Num) and isinstance(lo, ast.Num) and hi.value < lo.value

    def bounds(self, hi: ast.Node, lo: ast.Node) -> tuple[Expr, int]:
        """(lowest bit, width) of [hi : lo]; the width must be constant."""
        first, last = settled(self.val(lo)).expr, settled(self.val(hi)).expr
        if self.is_reversed(hi, lo):
            first, last = last, first
        if isinstance(first, Const) and isinstance(last, Const):
            return first, last.bits - first.bits + 1
        (base, c), (base2, c2) = b.split_address(first), b.split_address(last)
        if base != base2:
            raise SpecError("width of a slice is not constant")
        return first, c2 - c + 1

    def slice_width(self, name: str) -> int:
        """Width of an undeclared variable that is first written in parts: up to its highest bit."""
        return 1 + max(_highest_bits(self.source.tree, name), default=31)

    # ---- operators

    def unary(self, op: str, value: ast.Node) -> Val:
        v = self.val(value)
        match op:
            case "+":
                return v
            case "-":
                return negative(v)
            case "!":
                return Val("u", b.negate(truth(v)))
        v = settled(v)
        return Val(
            v.kind,
            b.integer("xor", v.expr, b.const(-1, v.width))
            if isinstance(v.expr, Const)
            else node("not", v.expr),
        )

    def binary(self, op: str, left: ast.Node, right: ast.Node) -> Val:
        match op, left:
            case "/", ast.Real("1.0"):
                return self.reciprocal(right, left)
            case "**", ast.Real("2.0"):
                return Val("pow2", b.resize(settled(self.val(right)).expr, 32, True))
        if op in _COMPARES:
            return Val("u", self.compare(op, *self.test_operands(left, right)))
        u, v = self.val(left), self.val(right)
        if op in ("&&", "||"):
            return Val("u", b.integer("and" if op == "&&" else "or", truth(u), truth(v)))
        if op in ("<<", ">>"):
            return self.shift(op, settled(u), settled(v))
        if op == "*" and "pow2" in (u.kind, v.kind):
            x, n = (v, u) if u.kind == "pow2" else (u, v)
            return Val(x.kind, self.float_op("ldexp", x, n))
        return self.arithmetic(op, u, v)

    def arithmetic(self, op: str, u: Val, v: Val) -> Val:
        u, v = unify(u, v)
        if u.is_float and op in _FLOAT_OPS:
            return Val(u.kind, self.float_op(_FLOAT_OPS[op], u, v))
        if op in _INT_OPS:
            return Val(u.kind, b.integer(_INT_OPS[op], u.expr, v.expr))
        if op in ("/", "%"):
            name = ("s" if u.kind == "i" else "u") + ("div" if op == "/" else "rem")
            return Val(u.kind, node(name, u.expr, v.expr))
        raise SpecError(f"operator {op} on {u.kind}")

    def shift(self, op: str, u: Val, v: Val) -> Val:
        name = "shl" if op == "<<" else "ashr" if u.kind == "i" else "lshr"
        return Val(u.kind, b.integer(name, u.expr, v.expr))

    def reciprocal(self, right: ast.Node, one: ast.Node) -> Val:
        if isinstance(right, ast.Call) and right.name == "sqrt":
            x = self.val(right.args[0])
            return Val(x.kind, self.float_op("rsq", x))
        x = self.val(right)
        return Val(x.kind, self.float_op("rcp", x))

    def float_op(self, name: str, x: Val, *rest: Val) -> Expr:
        if self.round:
            raise SpecError(f"{name} under a rounding mode of its own")
        return node(f"{name}.{x.format}", x.expr, *(r.expr for r in rest))

    def test_operands(self, left: ast.Node, right: ast.Node) -> tuple[Val, Val]:
        """Both sides of a comparison; widening to f64 just to compare is not done (it is exact)."""
        u, v = self.narrowed(left), self.narrowed(right)
        if u.x is None or v.x is None or (u.is_float and v.is_float and u.format == v.format):
            return u, v
        return self.val(left), self.val(right)

    def narrowed(self, x: ast.Node) -> Val:
        """The value of x; for `64'F(y)` of a smaller float y, y itself."""
        if isinstance(x, ast.Cast) and (x.kind, x.width) == ("F", 64):
            inner = self.val(x.value)
            if inner.x is not None and inner.is_float:
                return inner
        return self.val(x)

    def compare(self, op: str, u: Val, v: Val) -> Expr:
        u, v = unify(u, v)
        if op in (">", ">="):
            u, v, op = v, u, {">": "<", ">=": "<="}[op]
        if u.is_float:
            name = {"==": "feq", "!=": "fne", "<>": "flg", "<": "flt", "<=": "fle"}[op]
            return node(f"{name}.{u.format}", u.expr, v.expr)
        sign = "s" if u.kind == "i" else "u"
        name = {"==": "eq", "!=": "ne", "<>": "ne", "<": sign + "lt", "<=": sign + "le"}[op]
        return b.integer(name, u.expr, v.expr)

    # ---- conversions and calls

    def cast(self, width: int, kind: str, value: ast.Node) -> Val:
        v = self.val(value)
        k = {"U": "u", "I": "i", "B": "b", "F": "f", "BF": "bf"}[kind]
        if k not in ("f", "bf") or v.x is None or v.kind == "pow2":
            return v if v.kind == "pow2" else coerce(v, k, width)
        if v.kind == "b" and v.width == width:
            return view(v, k, width)
        source = v.format if v.is_float else f"{'i' if v.kind == 'i' else 'u'}{v.width}"
        return Val(k, self.conversion(source, f"{k}{width}", v))

    def conversion(self, source: str, target: str, v: Val) -> Expr:
        if source == target:
            return v.expr
        name = f"{self.small(source)}_to_{self.small(target)}"
        if name not in OPS:
            raise SpecError(f"conversion {name}")
        rnd: Round = self.round if target in FLOATS else ""
        return node(name, v.expr, round=rnd)

    def small(self, name: str) -> str:
        """The arch's own kind of an 8-bit float format; other formats as they are."""
        return name + self.source.fp8 if name in ("fp8", "bf8") else name

    def scaled(self, source: str, target: str, stochastic: str, values: list[Val]) -> Val:
        """X_to_Y_scale: a power of two S2 - 127 divides on the way to a small format and multiplies on the
        way from one. In between is an f32: it holds every product that the formats can tell apart."""
        x, *random, scale = values
        power, bias = b.zext(b.trunc(scale.expr, 8), 32), b.const(127, 32)
        if target in FLOATS:
            number = node(f"{self.small(source)}_to_f32", x.expr)
            result = node("ldexp.f32", number, node("sub", power, bias))
            kind, width = self.type(target)
            return Val(kind, result if width == 32 else node(f"f32_to_{target}", result))
        wide = x.expr if source == "f32" else node(f"{source}_to_f32", x.expr)
        divided = node("ldexp.f32", wide, node("sub", bias, power))
        op = f"f32_to_{self.small(target)}{stochastic}"
        return Val(self.type(target)[0], node(op, divided, *(r.expr for r in random)))

    def call(self, name: str, args: tuple[ast.Node, ...]) -> Val:
        if len(args) != _ARGUMENTS.get(name, len(args)) or (_CONVERSION.match(name) and not args):
            raise SpecError(f"{name} with {len(args)} arguments")
        if name in self.lambdas:
            return self.call_lambda(self.lambdas[name], [self.val(a) for a in args])
        if name in _NAN_TESTS:
            v = self.narrowed(args[0])
            return Val("u", node(f"{_NAN_TESTS[name]}.{v.format}", v.expr))
        if name == "cvtToQuietNAN":
            v = self.narrowed(args[0])
            return Val(v.kind, node(f"quiet.{v.format}", v.expr))
        if name in ("sin", "cos"):
            return self.turns(name, args[0])
        if name.startswith("Calc") and name.endswith("Addr"):
            return self.name("ADDR")  # its operands are the executor's business
        values = [self.val(a) for a in args]
        if name in _UNARY_FLOAT:
            return Val(values[0].kind, self.float_op(_UNARY_FLOAT[name], values[0]))
        if (m := _CONVERSION.match(name)) is not None:
            return self.convert(m[1], m[2], values)
        if (m := _SCALED.match(name)) is not None:
            return self.scaled(m[1], m[2], m[3] or "", values)
        if (m := _STOCHASTIC.match(name)) is not None:
            return Val(self.type(m[1])[0], node(f"f32_to_{m[1]}_sr", *(v.expr for v in values)))
        return self.function(name, values)

    def turns(self, name: str, arg: ast.Node) -> Val:
        """sin(x * 2 pi): the operand itself counts turns."""
        match arg:
            case ast.Binary(
                "*", x, ast.Cast(value=ast.Binary("*", ast.Name("PI"), ast.Real("2.0")))
            ):
                v = self.val(x)
                return Val(v.kind, self.float_op(f"{name}2pi", v))
        raise SpecError(f"{name} of something other than turns")

    def convert(self, source: str, target: str, values: list[Val]) -> Val:
        v = values[0]
        if target in ("snorm", "unorm"):
            return Val("i" if target == "snorm" else "u", node(f"{source}_to_{target}16", v.expr))
        kind, width = self.type(target)
        v = coerce(v, *self.type(source))
        if source in FLOATS or target in FLOATS:
            return Val(kind, self.conversion(source, target, v))
        if width > v.width:
            return Val(kind, b.resize(v.expr, width, source.startswith("i")))
        return Val(kind, _saturate(v, kind, width))

    def function(self, name: str, values: list[Val]) -> Val:
        v = values[0] if values else Val("int")
        match name:
            case "fma":
                for other in values:
                    if other.x is not None and other.is_float:
                        values = [coerce(o, other.kind, other.width) for o in values]
                        break
                return Val(values[0].kind, self.float_op("fma", *values))
            case "abs":
                return absolute(v)
            case "sign":
                return Val("u", b.extract(v.expr, v.width - 1, 1))
            case "exponent":
                return exponent(v)
            case "signext":
                return Val("i", b.sext(v.expr, max(64, v.width)))
            case "signext_from_bit":
                return _signext_from_bit(v, settled(values[1]))
            case "ldexp":
                n = settled(values[1])
                return Val(v.kind, self.float_op("ldexp", v, Val("i", b.resize(n.expr, 32, True))))
            case "pow" if (
                v.x is not None
                and v.expr == typed(Val("real", None, Fraction(2)), v.kind, v.width).expr
            ):
                return Val(values[1].kind, self.float_op("exp2", values[1]))
            case "s_ff1_i32_b32" | "s_ff1_i32_b64":
                return _find_first_one(v)
            case "v_cvt_i16_f32" | "v_cvt_u16_f32":
                kind = name[6]
                return Val(kind, node(f"f32_to_{kind}16", v.expr))
        if name.upper() in self.source.library or name.upper() in self.source.bodies:
            return self.call_instruction(name, values)
        raise SpecError(f"function {name}")


def _saturate(v: Val, kind: str, width: int) -> Expr:
    """A wider integer clamped to u<width> or i<width>."""
    if kind == "u":
        top = b.const((1 << width) - 1, v.width)
        return b.trunc(b.select(node("ult", top, v.expr), top, v.expr), width)
    top, bottom = b.const((1 << width - 1) - 1, v.width), b.const(-1 << width - 1, v.width)
    low = b.select(node("slt", v.expr, bottom), bottom, v.expr)
    return b.trunc(b.select(node("slt", top, v.expr), top, low), width)


def _signext_from_bit(v: Val, n: Val) -> Val:
    """v with bit n - 1 copied upwards; 0 when n = 0, v when n >= its width."""
    width = b.const(v.width, n.width)
    by = b.select(node("ult", n.expr, width), node("sub", width, n.expr), b.const(0, n.width))
    return Val("i", node("ashr", node("shl", v.expr, by), by))


def _find_first_one(v: Val) -> Val:
    x = v.expr
    found = b.trunc(node("ctz", x), 32)
    return Val("i", b.select(node("eq", x, b.const(0, x.width)), b.const(-1, 32), found))


def _highest_bits(tree: ast.Block, name: str) -> list[int]:
    out: list[int] = []
    for s in tree:
        match s:
            case ast.Assign(targets=targets):
                for t in targets:
                    t = t.base if isinstance(t, ast.Dot) else t
                    match t:
                        case ast.Slice(ast.Name(n), ast.Num(hi)) if n == name:
                            out.append(hi)
            case ast.IfElse(arms, other):
                for block in (*(body for _, body in arms), other):
                    out += _highest_bits(block, name)
            case ast.ForIn(body=body):
                out += _highest_bits(body, name)
    return out
