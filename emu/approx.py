"""The reference's reading of the approximation rule (emu/transcend.py).

Errors:  Unmodelled for formats the hardware has no such instruction for.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping

from stuntgpu.emu import softfloat as sf
from stuntgpu.emu import transcend
from stuntgpu.isa.errors import Unmodelled

_STEPS: Mapping[str, Callable[..., float]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "sqrt": math.sqrt,
    "rint": lambda a: math.copysign(float(round(a)), a),
    "frexp_m": lambda a: math.frexp(a)[0],
    "frexp_e": lambda a: float(math.frexp(a)[1]),
    "pow2": lambda n: math.ldexp(1.0, int(n)),
    "lt": lambda a, b: float(a < b),
    "select": lambda c, a, b: a if c else b,
}

_CLASSES: Mapping[str, Callable[[sf.Format, int], bool]] = {
    "+zero": lambda f, a: a == 0,
    "-zero": lambda f, a: a == f.sign,
    "zero": lambda f, a: not a & f.abs_mask,
    "+inf": lambda f, a: a == f.inf,
    "-inf": lambda f, a: a == f.inf | f.sign,
    "inf": sf.is_inf,
    "negative": lambda f, a: f.sign < a < f.inf | f.sign,
}

_RESULTS: Mapping[str, Callable[[sf.Format], int]] = {
    "+zero": lambda f: 0,
    "-zero": lambda f: f.sign,
    "one": lambda f: sf.from_int(f, 1, 8, False, sf.Env()),
    "+inf": lambda f: f.inf,
    "-inf": lambda f: f.inf | f.sign,
    "nan": lambda f: f.nan | f.sign,
}


def evaluate(program: transcend.Program, x: float) -> float:
    """The last value of a program."""
    values = [x]
    for step in program:
        args = (a if isinstance(a, float) else values[a] for a in step.args)
        values.append(_STEPS[step.op](*args))
    return values[-1]


def approximate(op: str, f: sf.Format, a: int, env: sf.Env) -> int:
    """`op` (a key of transcend.PROGRAMS) of a, in format f."""
    if f.name not in transcend.FORMATS[op]:
        raise Unmodelled("every arch", f"{op}.{f.name}", "emu/transcend.py")
    always = (op, f.name) in transcend.FLUSHED
    a = sf.flushed(f, a, always or env.flush_in)
    nan = sf.first_nan(f, a)
    if nan is not None:
        return nan
    for name, result in transcend.SPECIALS[op]:
        if _CLASSES[name](f, a):
            return _RESULTS[result](f)
    x = evaluate(transcend.PROGRAMS[op], sf.to_float(f, a))
    return sf.flushed(f, sf.from_float(f, x), always or env.flush_out)
