"""What each operation of `ir.OPS` means to the reference: one entry of `INTERP` per operation.

Integer operations are Python expressions over non-negative integers below 2 ** width; float
operations call `softfloat` with the format and MODE (`M`, or `M_rtz` where the node fixes a rounding).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stuntgpu.emu import softfloat as sf
from stuntgpu.emu.approx import approximate
from stuntgpu.emu.smallfloat import SMALL, STOCHASTIC, Small, narrow, to_norm, trig_preop, widen
from stuntgpu.emu.transcend import FLUSHED
from stuntgpu.isa.ir import FLOATS, Op

#: (node, source of each argument) -> source of the result. An argument is a name or a constant.
Emit = Callable[[Op, list[str]], str]


def _mask(width: int) -> str:
    return hex((1 << width) - 1)


def _sign(width: int) -> str:
    return hex(1 << (width - 1))


# ---------------------------------------------------------------- integers


def _shl(a: int, b: int, width: int) -> int:
    return (a << b) & ((1 << width) - 1) if b < width else 0


def _lshr(a: int, b: int, width: int) -> int:
    return a >> b if b < width else 0


def _ashr(a: int, b: int, width: int) -> int:
    return (_signed(a, width) >> min(b, width - 1)) & ((1 << width) - 1)


def _signed(a: int, width: int) -> int:
    return a - (1 << width) if a >> (width - 1) else a


def _udiv(a: int, b: int, width: int) -> int:
    return a // b if b else (1 << width) - 1


def _sdiv(a: int, b: int, width: int) -> int:
    x, y = _signed(a, width), _signed(b, width)
    if y == 0:
        return (1 << width) - 1
    magnitude = abs(x) // abs(y)
    return (-magnitude if (x < 0) != (y < 0) else magnitude) & ((1 << width) - 1)


def _urem(a: int, b: int, width: int) -> int:
    return a % b if b else a


def _srem(a: int, b: int, width: int) -> int:
    x, y = _signed(a, width), _signed(b, width)
    if y == 0:
        return a
    magnitude = abs(x) % abs(y)
    return (-magnitude if x < 0 else magnitude) & ((1 << width) - 1)


def _bitrev(a: int, width: int) -> int:
    return int(format(a, f"0{width}b")[::-1], 2)


def _clz(a: int, width: int) -> int:
    return width - a.bit_length()


def _ctz(a: int, width: int) -> int:
    return (a & -a).bit_length() - 1 if a else width


def _insert(a: int, low: int, value: int, width: int, value_width: int) -> int:
    hole = ((1 << value_width) - 1) << low
    return (a & ~hole | value << low) & ((1 << width) - 1)


def _template(text: str) -> Emit:
    """{a} {b} {c}: arguments, {w}: result width, {m}: its mask, {sw}, {sm}, {ss}: width, mask and sign
    bit of the first argument, {bw}: width of the second, {cw}: of the third."""

    def emit(node: Op, args: list[str]) -> str:
        widths = [x.width for x in node.args]
        return text.format(
            **dict(zip("abc", args, strict=False)), w=node.width, m=_mask(node.width), sw=widths[0],
            sm=_mask(widths[0]), ss=_sign(widths[0]), bw=widths[1] if len(widths) > 1 else 0,
            cw=widths[2] if len(widths) > 2 else 0,
        )  # fmt: skip

    return emit


_INTEGER: Mapping[str, str] = {
    "add": "({a} + {b}) & {m}",
    "sub": "({a} - {b}) & {m}",
    "mul": "({a} * {b}) & {m}",
    "udiv": "_udiv({a}, {b}, {w})",
    "sdiv": "_sdiv({a}, {b}, {w})",
    "urem": "_urem({a}, {b}, {w})",
    "srem": "_srem({a}, {b}, {w})",
    "neg": "-{a} & {m}",
    "and": "{a} & {b}",
    "or": "{a} | {b}",
    "xor": "{a} ^ {b}",
    "not": "{a} ^ {m}",
    "shl": "_shl({a}, {b}, {w})",
    "lshr": "_lshr({a}, {b}, {w})",
    "ashr": "_ashr({a}, {b}, {w})",
    "popcnt": "_popcnt({a})",
    "clz": "_clz({a}, {w})",
    "ctz": "_ctz({a}, {w})",
    "bitrev": "_bitrev({a}, {w})",
    "eq": "int({a} == {b})",
    "ne": "int({a} != {b})",
    "ult": "int({a} < {b})",
    "ule": "int({a} <= {b})",
    "slt": "int(({a} ^ {ss}) < ({b} ^ {ss}))",
    "sle": "int(({a} ^ {ss}) <= ({b} ^ {ss}))",
    "zext": "{a}",
    "sext": "(({a} ^ {ss}) - {ss}) & {m}",
    "trunc": "{a} & {m}",
    "concat": "{a} << {bw} | {b}",
    "extract": "_lshr({a}, {b}, {sw}) & {m}",
    "insert": "_insert({a}, {b}, {c}, {w}, {cw})",
    "select": "{b} if {a} else {c}",
}

# ---------------------------------------------------------------- floats

#: Every function takes its arguments and then the Mode.
FloatFunction = Callable[..., int]


def _arithmetic(f: sf.Format) -> dict[str, FloatFunction]:
    n = f.name
    return {
        "fadd": lambda a, b, m: sf.add(f, a, b, getattr(m, n)),
        "fsub": lambda a, b, m: sf.sub(f, a, b, getattr(m, n)),
        "fmul": lambda a, b, m: sf.mul(f, a, b, getattr(m, n)),
        "fdiv": lambda a, b, m: sf.div(f, a, b, getattr(m, n)),
        "fma": lambda a, b, c, m: sf.fma(f, a, b, c, getattr(m, n)),
        "sqrt": lambda a, m: sf.sqrt(f, sf.flushed(f, a, ("sqrt", n) in FLUSHED), getattr(m, n)),
        "rcp": lambda a, m: approximate("rcp", f, a, getattr(m, n)),
        "rsq": lambda a, m: approximate("rsq", f, a, getattr(m, n)),
        "exp2": lambda a, m: approximate("exp2", f, a, getattr(m, n)),
        "log2": lambda a, m: approximate("log2", f, a, getattr(m, n)),
        "sin2pi": lambda a, m: approximate("sin2pi", f, a, getattr(m, n)),
        "cos2pi": lambda a, m: approximate("cos2pi", f, a, getattr(m, n)),
        "trunc_int": lambda a, m: sf.integral(f, a, "rtz", getattr(m, n)),
        "floor": lambda a, m: sf.integral(f, a, "rdn", getattr(m, n)),
        "ceil": lambda a, m: sf.integral(f, a, "rup", getattr(m, n)),
        "rndne": lambda a, m: sf.integral(f, a, "rne", getattr(m, n)),
        "fract": lambda a, m: sf.fract(f, a, getattr(m, n)),
        "ldexp": lambda a, b, m: sf.ldexp(f, a, b, getattr(m, n)),
        "mantissa": lambda a, m: sf.mantissa(f, a),
        "quiet": lambda a, m: sf.quiet(f, a),
    }


def _tests(f: sf.Format) -> dict[str, FloatFunction]:
    n = f.name
    return {
        "feq": lambda a, b, m: int(sf.ordered(f, a, b, getattr(m, n)) == 0),
        "fne": lambda a, b, m: int(sf.ordered(f, a, b, getattr(m, n)) != 0),
        "flt": lambda a, b, m: int(sf.ordered(f, a, b, getattr(m, n)) == -1),
        "fle": lambda a, b, m: int(sf.ordered(f, a, b, getattr(m, n)) in (-1, 0)),
        "flg": lambda a, b, m: int(sf.ordered(f, a, b, getattr(m, n)) in (-1, 1)),
        "isnan": lambda a, m: int(sf.is_nan(f, a)),
        "issnan": lambda a, m: int(sf.is_nan(f, a) and not a & f.quiet),
        "isqnan": lambda a, m: int(sf.is_nan(f, a) and bool(a & f.quiet)),
        "isdenorm": lambda a, m: int(sf.is_denormal(f, a)),
        "isinf": lambda a, m: int(sf.is_inf(f, a)),
    }


def _fma_scaled(f: sf.Format) -> FloatFunction:
    return lambda a, b, c, d, m: sf.fma_scaled(f, a, b, c, d, getattr(m, f.name))


def _with_integers(f: sf.Format) -> dict[str, FloatFunction]:
    out: dict[str, FloatFunction] = {}
    for name in ("i16", "u16", "i32", "u32", "i64", "u64"):
        out[f"{f.name}_to_{name}"] = _to_int(f, int(name[1:]), name[0] == "i")
        out[f"{name}_to_{f.name}"] = _from_int(f, int(name[1:]), name[0] == "i")
    return out


def _to_int(f: sf.Format, bits: int, signed: bool) -> FloatFunction:
    return lambda a, m: sf.to_int(f, a, bits, signed, m.int_round, getattr(m, f.name))


def _from_int(f: sf.Format, bits: int, signed: bool) -> FloatFunction:
    return lambda a, m: sf.from_int(f, a, bits, signed, getattr(m, f.name))


def _between(f: sf.Format, g: sf.Format) -> FloatFunction:
    return lambda a, m: sf.convert(f, g, a, getattr(m, f.name), getattr(m, g.name))


def _small(s: Small) -> dict[str, FloatFunction]:
    return {
        f"{s.name}_to_f32": lambda a, m: widen(s, a),
        f"f32_to_{s.name}": lambda a, m: narrow(s, a, None, m.f16.saturate),
    }


def _stochastic(s: Small) -> FloatFunction:
    return lambda a, b, m: narrow(s, a, b, m.f16.saturate)


def _norm(f: sf.Format, scale: int, signed: bool) -> FloatFunction:
    return lambda a, m: to_norm(f, a, scale, signed, getattr(m, f.name))


def _float_functions() -> dict[str, FloatFunction]:
    out: dict[str, FloatFunction] = {}
    for f in (sf.FORMATS[name] for name in FLOATS):
        out |= {f"{k}.{f.name}": fn for k, fn in {**_arithmetic(f), **_tests(f)}.items()}
        out |= _with_integers(f)
        out |= {f"{f.name}_to_{g.name}": _between(f, g) for g in sf.FORMATS.values() if g is not f}
    for s in SMALL.values():
        out |= _small(s)
    out |= {f"f32_to_{s.name}_sr": _stochastic(s) for s in STOCHASTIC.values()}
    for f in (sf.F16, sf.F32):
        out[f"{f.name}_to_snorm16"] = _norm(f, 32767, True)
        out[f"{f.name}_to_unorm16"] = _norm(f, 65535, False)
    for f in (sf.F32, sf.F64):
        out[f"fma_scaled.{f.name}"] = _fma_scaled(f)
    out["f32_to_u8"] = _to_int(sf.F32, 8, False)
    out["trig_preop.f64"] = lambda a, b, m: trig_preop(a, b)
    return out


def _identifier(op: str) -> str:
    return "f_" + op.replace(".", "_")


def _call(node: Op, args: list[str]) -> str:
    mode = f"M_{node.round}" if node.round else "M"
    return f"{_identifier(node.op)}({', '.join([*args, mode])})"


_FLOAT = _float_functions()

INTERP: Mapping[str, Emit] = {name: _template(text) for name, text in _INTEGER.items()} | dict.fromkeys(_FLOAT, _call)

#: Names the emitted source uses.
FUNCTIONS: Mapping[str, Any] = {_identifier(name): fn for name, fn in _FLOAT.items()} | {
    fn.__name__: fn
    for fn in (_shl, _lshr, _ashr, _udiv, _sdiv, _urem, _srem, _bitrev, _clz, _ctz, _insert)
} | {"_popcnt": int.bit_count}
