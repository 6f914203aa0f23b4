"""Lowering of the approximated operations: the programs of `transcend` on f64 vectors, specials by selects."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping

from stuntgpu.emu import transcend
from stuntgpu.emu.lower_float import (
    flush,
    flush_in,
    flush_out,
    is_nan,
    magnitude,
    narrow,
    native,
    widen,
)
from stuntgpu.emu.lower_int import Lower, shift
from stuntgpu.emu.lower_text import F64, FORMATS, Emitter, Float, Value
from stuntgpu.isa.errors import Unmodelled
from stuntgpu.isa.ir import Op

_BITS = 64


def _double(x: float) -> int:
    return int.from_bytes(struct.pack("<d", x), "little")


# ---------------------------------------------------------------- steps


def _frexp_m(e: Emitter, x: Value) -> Value:
    kept = e.bin("and", x, e.const(F64.sign | ((1 << F64.man) - 1), _BITS))
    return e.bin("or", kept, e.const((F64.bias - 1) << F64.man, _BITS))


def _frexp_e(e: Emitter, x: Value) -> Value:
    field = shift(e, "lshr", magnitude(e, F64, x), e.const(F64.man, _BITS))
    number = e.bin("sub", field, e.const(F64.bias - 1, _BITS))
    return e.as_bits(F64, e.raw(f"sitofp {e.ty(_BITS)} {number.ref} to {e.wrap('double')}"))


def _pow2(e: Emitter, n: Value) -> Value:
    """n is integral and in range, except in lanes whose result a special value replaces: frozen there."""
    raw = e.inst(f"fptosi {e.wrap('double')} {e.as_float(F64, n)} to {e.ty(_BITS)}", _BITS)
    whole = e.inst(f"freeze {e.ty(_BITS)} {raw.ref}", _BITS)
    return shift(e, "shl", e.bin("add", whole, e.const(F64.bias, _BITS)), e.const(F64.man, _BITS))


def _less(e: Emitter, a: Value, b: Value) -> Value:
    x, y = e.as_float(F64, a), e.as_float(F64, b)
    c = e.inst(f"fcmp olt {e.wrap('double')} {x}, {y}", 1)
    return e.select(c, e.const(_double(1.0), _BITS), e.const(0, _BITS))


def _choose(e: Emitter, c: Value, a: Value, b: Value) -> Value:
    return e.select(e.icmp("ne", magnitude(e, F64, c), e.const(0, _BITS)), a, b)


def _native(op: str) -> Callable[..., Value]:
    return lambda e, *args: native(e, F64, op, args)


_STEPS: Mapping[str, Callable[..., Value]] = {
    "add": _native("fadd"), "sub": _native("fsub"), "mul": _native("fmul"), "div": _native("fdiv"),
    "sqrt": _native("sqrt"), "rint": _native("roundeven"), "frexp_m": _frexp_m, "frexp_e": _frexp_e,
    "pow2": _pow2, "lt": _less, "select": _choose,
}


def run(e: Emitter, program: transcend.Program, x: Value) -> Value:
    """The last value of the program for the f64 bits x."""
    values = [x]
    for step in program:
        args = [e.const(_double(a), _BITS) if isinstance(a, float) else values[a] for a in step.args]
        values.append(_STEPS[step.op](e, *args))
    return values[-1]


# ---------------------------------------------------------------- special values


def _matches(e: Emitter, f: Float, kind: str, x: Value) -> Value:
    """One bit: x is of the class (NaNs were taken out before)."""
    if kind == "negative":
        return e.icmp("slt", x, e.const(0, f.width))
    bits = 0 if kind.endswith("zero") else f.inf
    if kind[0] in "+-":
        return e.icmp("eq", x, e.const(bits | (f.sign if kind[0] == "-" else 0), f.width))
    return e.icmp("eq", magnitude(e, f, x), e.const(bits, f.width))


def _result(f: Float, name: str) -> int:
    return {"+zero": 0, "-zero": f.sign, "one": f.bias << f.man, "+inf": f.inf,
            "-inf": f.inf | f.sign, "nan": f.nan | f.sign}[name]


def approximation(f: Float, op: str) -> Lower:
    def lower(e: Emitter, n: Op, args: list[Value]) -> Value:
        always = (op, f.name) in transcend.FLUSHED
        x = flush(e, f, args[0]) if always else flush_in(e, f, args[0])
        wide = x if f is F64 else widen(e, f, F64, x)
        r = run(e, transcend.PROGRAMS[op], wide)
        r = r if f is F64 else narrow(e, F64, f, r, "rne", saturate=False)
        r = flush(e, f, r) if always else flush_out(e, f, r)
        for kind, result in reversed(transcend.SPECIALS[op]):
            r = e.select(_matches(e, f, kind, x), e.const(_result(f, result), f.width), r)
        return e.select(is_nan(e, f, x), e.bin("or", x, e.const(f.quiet, f.width)), r)

    return lower


def _missing(f: Float, op: str) -> Lower:
    def lower(e: Emitter, n: Op, args: list[Value]) -> Value:
        raise Unmodelled("every arch", f"{op}.{f.name}", "emu/transcend.py")

    return lower


APPROXIMATED: Mapping[str, Lower] = {
    f"{op}.{f.name}": (approximation if f.name in transcend.FORMATS[op] else _missing)(f, op)
    for op in transcend.PROGRAMS for f in FORMATS.values()
}
