"""Typed values of the pseudocode: an IR expression and the type the text gives it.

kind   "u" "i" "b" integers (unsigned, signed, bits), "f" IEEE float, "bf" bfloat16,
       "int" untyped integer literal, "real" untyped real literal, "pow2" the value 2 ** x.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from fractions import Fraction

from stuntgpu.isa.errors import SpecError
from stuntgpu.isa.gen import pcode_build as b
from stuntgpu.isa.ir import Const, Expr, node

_TYPE = re.compile(r"^(u|i|b|f|bf|fp)(\d+)$")
_PACK = {16: "<e", 32: "<f", 64: "<d"}
INFINITY, NAN = "inf", "nan"


@dataclass(frozen=True, slots=True)
class Val:
    """x is None for the literals "int" and "real"; `lit` is their value ("inf" and "nan" included)."""

    kind: str
    x: Expr | None = None
    lit: int | Fraction | str = 0
    is_hex: bool = False

    @property
    def expr(self) -> Expr:
        if self.x is None:
            raise SpecError(f"literal {self.lit} where a typed value is needed")
        return self.x

    @property
    def width(self) -> int:
        return self.expr.width

    @property
    def is_float(self) -> bool:
        return self.kind in ("f", "bf")

    @property
    def format(self) -> str:
        """The key of ir.FLOATS."""
        if not self.is_float:
            raise SpecError(f"{self.kind} value where a float is needed")
        return f"{self.kind}{self.width}"


def type_of(name: str) -> tuple[str, int] | None:
    """("u", 32) for "u32"; None when the name is no type."""
    m = _TYPE.match(name)
    return (m[1], int(m[2])) if m else None


def float_bits(value: Fraction | str, kind: str, width: int) -> int:
    """Bits of a constant in a format (nearest even)."""
    number = (
        float(value)
        if isinstance(value, Fraction)
        else {INFINITY: float("inf"), NAN: float("nan")}[value]
    )
    if kind == "bf":
        return float_bits(value, "f", 32) >> 16
    return int.from_bytes(struct.pack(_PACK[width], number), "little")


def typed(v: Val, kind: str, width: int) -> Val:
    """A literal takes the type; a typed value is kept as it is."""
    if v.x is not None:
        return v
    if kind in ("f", "bf"):
        if v.is_hex and isinstance(v.lit, int):
            return Val(kind, b.const(v.lit, width))
        lit = Fraction(v.lit) if isinstance(v.lit, int) else v.lit
        negative = lit == "-inf"
        bits = float_bits(INFINITY if negative else lit, kind, width) | negative << (width - 1)
        return Val(kind, b.const(bits, width))
    if not isinstance(v.lit, int):
        raise SpecError(f"real literal {v.lit} where an integer is needed")
    return Val(kind, b.const(v.lit, width))


def settled(v: Val) -> Val:
    """A literal on its own: i32, or f32 for a real."""
    return typed(v, "i", 32) if v.kind == "int" else typed(v, "f", 32)


def view(v: Val, kind: str, width: int) -> Val:
    """`.T`: the same bits seen as another type; a wider type extends by v's own sign."""
    if v.x is None:
        return typed(v, kind, width)
    return Val(kind, b.resize(v.expr, width, v.kind == "i"))


def coerce(v: Val, kind: str, width: int) -> Val:
    """What assignment to a variable of that type does. Raises SpecError when formats differ."""
    if v.x is None:
        return typed(v, kind, width)
    if v.is_float and kind in ("f", "bf") and (v.kind, v.width) != (kind, width):
        raise SpecError(f"{v.format} assigned to {kind}{width}")
    return view(v, kind, width)


def unify(left: Val, right: Val) -> tuple[Val, Val]:
    """Both sides of an operator at one type. Raises SpecError for float formats that differ."""
    if left.x is None and right.x is None:
        real = "real" in (left.kind, right.kind)
        kind, width = ("f", 32) if real else ("i", 32)
        return typed(left, kind, width), typed(right, kind, width)
    if left.x is None:
        return typed(left, right.kind, right.width), right
    if right.x is None:
        return left, typed(right, left.kind, left.width)
    if left.is_float or right.is_float:
        like = left if left.is_float else right
        return coerce(left, like.kind, like.width), coerce(right, like.kind, like.width)
    width = max(left.width, right.width)
    kinds = {left.kind, right.kind}
    kind = "u" if "u" in kinds else "i" if "i" in kinds else "b"
    return (
        Val(kind, b.resize(left.expr, width, left.kind == "i")),
        Val(kind, b.resize(right.expr, width, right.kind == "i")),
    )


def truth(v: Val) -> Expr:
    """1 bit: v is not zero."""
    if v.x is None:
        return b.const(bool(v.lit), 1)
    return v.expr if v.width == 1 else b.integer("ne", v.expr, b.const(0, v.width))


def sign_mask(v: Val) -> Const:
    return b.const(1 << (v.width - 1), v.width)


_FIELDS = {"f16": (10, 5), "f32": (23, 8), "f64": (52, 11), "bf16": (7, 8)}


def exponent(v: Val) -> Val:
    """The biased exponent field as i32."""
    lo, n = _FIELDS[v.format]
    return Val("i", b.zext(b.extract(v.expr, lo, n), 32))


def absolute(v: Val) -> Val:
    if not v.is_float:
        raise SpecError("abs of an integer")
    return Val(v.kind, b.integer("and", v.expr, b.const(~sign_mask(v).bits, v.width)))


def negative(v: Val) -> Val:
    if v.x is None:
        lit: int | Fraction | str
        lit = {"inf": "-inf", "nan": "nan"}[v.lit] if isinstance(v.lit, str) else -v.lit
        return _negative_zero(v) if v.kind == "real" and v.lit == 0 else Val(v.kind, None, lit)
    if v.is_float:
        return Val(v.kind, b.integer("xor", v.expr, sign_mask(v)))
    return Val(
        v.kind, b.const(-v.expr.bits, v.width) if isinstance(v.expr, Const) else node("neg", v.expr)
    )


def _negative_zero(v: Val) -> Val:
    raise SpecError("-0.0 without a type")
