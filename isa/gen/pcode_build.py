"""Expression builders for the lowering: they fold constants and drop operations that do nothing.

Every function returns an expression with the meaning of the plain node; none looks at MODE.
"""

from __future__ import annotations

from stuntgpu.isa.ir import Const, Elem, Expr, LaneBit, Load, Op, Var, node, subexpressions


def const(value: int, width: int) -> Const:
    """`value` wrapped to `width` bits."""
    return Const(value & ((1 << width) - 1), width)


def signed(c: Const) -> int:
    return c.bits - (1 << c.width) if c.bits >> (c.width - 1) else c.bits


def trunc(x: Expr, width: int) -> Expr:
    if x.width == width:
        return x
    match x:
        case Const(bits):
            return const(bits, width)
        case Op("zext" | "sext" as op, (inner,)):
            return trunc(inner, width) if inner.width >= width else node(op, inner, width=width)
        case Op("trunc", (inner,)):
            return trunc(inner, width)
        case Op("extract", (inner, lo)):
            return node("extract", inner, lo, width=width)
        case Op("concat", (_, low)) if low.width >= width:
            return trunc(low, width)
        case _:
            return node("trunc", x, width=width)


def zext(x: Expr, width: int) -> Expr:
    if x.width == width:
        return x
    if isinstance(x, Const):
        return const(x.bits, width)
    if isinstance(x, Op) and x.op == "zext":
        return zext(x.args[0], width)
    return node("zext", x, width=width)


def sext(x: Expr, width: int) -> Expr:
    if x.width == width:
        return x
    return const(signed(x), width) if isinstance(x, Const) else node("sext", x, width=width)


def resize(x: Expr, width: int, is_signed: bool) -> Expr:
    if width <= x.width:
        return trunc(x, width)
    return sext(x, width) if is_signed else zext(x, width)


def extract(x: Expr, lo: Expr | int, width: int) -> Expr:
    """Bits [lo + width - 1 : lo] of x; zero beyond its top."""
    if isinstance(lo, Const):
        lo = lo.bits
    if not isinstance(lo, int):
        return node("extract", x, lo, width=width)
    if lo == 0 and width <= x.width:
        return trunc(x, width)
    match x:
        case Const(bits):
            return const(bits >> lo, width)
        case Op("extract", (inner, Const(base))) if lo + width <= x.width:
            return extract(inner, base + lo, width)
        case Op("concat", (high, low)) if lo >= low.width:
            return extract(high, lo - low.width, width)
        case Op("concat", (_, low)) if lo + width <= low.width:
            return extract(low, lo, width)
        case _:
            return node("extract", x, const(lo, 32), width=width)


def insert(x: Expr, lo: Expr | int, v: Expr) -> Expr:
    """x with bits from `lo` on replaced; a run of constant fields that covers x becomes a concat."""
    if isinstance(lo, int):
        lo = const(lo, 32)
    if v.width == x.width and lo == const(0, 32):
        return v
    new = node("insert", x, lo, v)
    return covering(insert_fields(new), x.width) or new


def insert_fields(x: Expr) -> dict[int, Expr]:
    """lowest bit -> value of the nested constant inserts of x, outermost first in effect."""
    fields: dict[int, Expr] = {}
    while isinstance(x, Op) and x.op == "insert":
        x, lo, v = x.args
        if not isinstance(lo, Const) or lo.bits in fields:
            return {}
        fields[lo.bits] = v
    return fields


def covering(fields: dict[int, Expr], width: int) -> Expr | None:
    """The concatenation when the fields tile [0, width) exactly."""
    at, value = 0, None
    for lo in sorted(fields):
        if lo != at:
            return None
        value = fields[lo] if value is None else concat(fields[lo], value)
        at += fields[lo].width
    return value if at == width else None


def split_address(x: Expr) -> tuple[Expr | None, int]:
    """(base, constant) with x = base + constant."""
    match x:
        case Const(bits):
            return None, bits
        case Op("add", (base, Const(c))):
            return base, c
        case _:
            return x, 0


def concat(high: Expr, low: Expr) -> Expr:
    """{high, low}; two reads of adjacent memory become one, neighbouring bit fields too."""
    width = high.width + low.width
    joined = _joined(high, low, width)
    if joined is not None:
        return joined
    if isinstance(low, Op) and low.op == "concat":
        upper = _joined(high, low.args[0], high.width + low.args[0].width)
        if upper is not None:
            return concat(upper, low.args[1])
    return node("concat", high, low, width=width)


def _joined(high: Expr, low: Expr, width: int) -> Expr | None:
    """The concatenation as one simpler expression, or None."""
    match high, low:
        case Const(h), Const(b):
            return const(h << low.width | b, width)
        case Const(0), _:
            return zext(low, width)
        case Load(hs, ha), Load(ls, la) if hs == ls:
            (hb, hc), (lb, lc) = split_address(ha), split_address(la)
            if hb == lb and hc == lc + low.width // 8:
                return Load(ls, la, width)
        case _:
            hp, lp = bit_field(high), bit_field(low)
            if hp[0] == lp[0] and hp[1] == lp[1] + low.width and hp[1] + high.width <= hp[0].width:
                return extract(lp[0], lp[1], width)
    return None


def bit_field(x: Expr) -> tuple[Expr, int]:
    """(whole, lowest bit) of which x is a field."""
    match x:
        case Op("extract", (whole, Const(lo))):
            return whole, lo
        case Op("trunc", (whole,)):
            return whole, 0
        case _:
            return x, 0


def negate(x: Expr) -> Expr:
    """The other truth value of a 1-bit x."""
    match x:
        case Const(bits):
            return const(bits ^ 1, 1)
        case Op("not", (inner,)) if x.width == 1:
            return inner
        case Op("eq", args):
            return Op("ne", args, 1)
        case Op("ne", args):
            return Op("eq", args, 1)
        case _:
            return node("not", x)


def select(c: Expr, a: Expr, b: Expr) -> Expr:
    if isinstance(c, Const):
        return a if c.bits else b
    if a == b:
        return a
    if a == Const(1, 1) and b == Const(0, 1):
        return c
    if a == Const(0, 1) and b == Const(1, 1):
        return negate(c)
    return node("select", c, a, b, width=a.width)


def integer(op: str, a: Expr, b: Expr) -> Expr:
    """A two-operand integer operation or comparison, folded when both sides are constants."""
    if isinstance(a, Const) and isinstance(b, Const):
        folded = _fold(op, a, b)
        if folded is not None:
            return folded
    zero = isinstance(b, Const) and b.bits == 0
    if zero and op in ("add", "sub", "or", "xor", "shl", "lshr", "ashr"):
        return a
    if isinstance(a, Const) and a.bits == 0 and op in ("add", "or", "xor"):
        return b
    if isinstance(b, Const) and b.bits == 1 and op == "mul":
        return a
    if a.width == 1 and isinstance(b, Const) and op in ("eq", "ne"):
        return a if (op == "eq") == bool(b.bits) else negate(a)
    if op in ("slt", "sle", "eq", "ne"):
        match a, b:
            case Op("sext", (x,)), Op("sext", (y,)):
                narrow = max(x.width, y.width)
                return node(op, sext(x, narrow), sext(y, narrow))
            case Op("zext", (x,)), Const(bits) if op in ("eq", "ne") and bits < 1 << x.width:
                return integer(op, x, const(bits, x.width))
    if op in ("ne", "eq") and isinstance(a, Op) and a.op == "select" and isinstance(b, Const):
        return _compare_select(op, a, b)
    if op == "add" and isinstance(a, Op) and a.op == "add" and isinstance(b, Const):
        inner, c = a.args
        if isinstance(c, Const):
            return integer("add", inner, const(c.bits + b.bits, a.width))
    return node(op, a, b)


def _compare_select(op: str, a: Op, b: Const) -> Expr:
    c, yes, no = a.args
    if isinstance(yes, Const) and isinstance(no, Const):
        return select(c, integer(op, yes, b), integer(op, no, b))
    return node(op, a, b)


def _fold(op: str, a: Const, b: Const) -> Expr | None:
    x, y, sx, sy, w = a.bits, b.bits, signed(a), signed(b), a.width
    match op:
        case "add":
            return const(x + y, w)
        case "sub":
            return const(x - y, w)
        case "mul":
            return const(x * y, w)
        case "and":
            return const(x & y, w)
        case "or":
            return const(x | y, w)
        case "xor":
            return const(x ^ y, w)
        case "shl":
            return const(x << y if y < w else 0, w)
        case "lshr":
            return const(x >> y, w)
        case "eq":
            return const(x == y, 1)
        case "ne":
            return const(x != y, 1)
        case "ult":
            return const(x < y, 1)
        case "slt":
            return const(sx < sy, 1)
        case _:
            return None


def reads_of(x: Expr) -> frozenset[str]:
    """Names of the variables, places and masks an expression reads."""
    return frozenset(s.name for s in subexpressions(x) if isinstance(s, Var | LaneBit | Elem))
