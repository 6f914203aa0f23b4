"""The approximation rule: rcp, rsq, exp2, log2, sin2pi, cos2pi as data that every executor reads.

The hardware's tables are not public, so the double has one rule of its own: a straight-line program
of IEEE binary64 operations (round to nearest even, never a fused multiply-add), whose last value is
rounded once to the instruction's format (to nearest even, whatever MODE says). Binary64 carries 29
bits more than f32, so the result is the correctly rounded one but for rare near-ties.

How an executor applies the rule to an input x of format f16, bf16 or f32:

1. flush x to a signed zero when it is denormal and MODE flushes denormals of the format, or FLUSHED says always;
2. a NaN is quieted and returned; else the first matching row of `SPECIALS[op]` gives the result;
3. else convert x to binary64 (exact), run `PROGRAMS[op]`, round the last value to the format, and
   flush a denormal result to a signed zero as in step 1.

f64 has only rcp and rsq (the hardware has no other): the same programs, in which every operation
rounds to the format already; the flush of step 3 stays.

Units:   angles in turns; a float constant is the exact binary64 value it prints.
Source:  own derivation: Taylor coefficients, with the size of the first missing term beside each table. Special
         values, their NaN and FLUSHED: the notes and examples of the instructions in the vendor's documents.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

#: Operations on binary64 values.
Operation = Literal[
    "add", "sub", "mul", "div", "sqrt",
    "rint",  # to integral, ties to even
    "frexp_m",  # significand of a normal number scaled to [0.5, 1), sign kept
    "frexp_e",  # its exponent as a float: x = frexp_m(x) * 2 ** frexp_e(x)
    "pow2",  # 2 ** n for integral n, -1022 <= n <= 1023
    "lt",  # a < b, as 1.0 or 0.0
    "select",  # select(c, a, b): a when c is not 0, else b
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Step:
    """One operation. args: an int is the number of an earlier value (0 is the input x, 1 the result
    of the first step, ...), a float is a constant."""

    op: Operation
    args: tuple[int | float, ...]


Program = tuple[Step, ...]

#: Input classes of the special rows, tested in order: "zero" and "inf" match either sign, "negative"
#: matches what is below zero and finite.
Class = Literal["+zero", "-zero", "zero", "+inf", "-inf", "inf", "negative"]
#: "nan" is the default NaN with its sign set.
Result = Literal["+zero", "-zero", "one", "+inf", "-inf", "nan"]

SPECIALS: Mapping[str, tuple[tuple[Class, Result], ...]] = {
    "rcp": (("+zero", "+inf"), ("-zero", "-inf"), ("+inf", "+zero"), ("-inf", "-zero")),
    "rsq": (("+zero", "+inf"), ("-zero", "-inf"), ("+inf", "+zero"), ("-inf", "nan"), ("negative", "nan")),
    "exp2": (("zero", "one"), ("+inf", "+inf"), ("-inf", "+zero")),
    "log2": (("zero", "-inf"), ("+inf", "+inf"), ("-inf", "nan"), ("negative", "nan")),
    "sin2pi": (("+zero", "+zero"), ("-zero", "-zero"), ("inf", "nan")),
    "cos2pi": (("zero", "one"), ("inf", "nan")),
}

# ---------------------------------------------------------------- coefficients, lowest power first

#: 2 ** f on |f| <= 1/2: ln(2) ** k / k!. First missing term below 2 ** -57.
EXP2 = (
    1.0, 0.6931471805599453, 0.24022650695910072, 0.05550410866482158, 0.009618129107628477,
    0.0013333558146428443, 0.0001540353039338161, 1.5252733804059841e-05, 1.321548679014431e-06,
    1.01780860092397e-07, 7.054911620801123e-09, 4.4455382718708116e-10, 2.5678435993488206e-11,
    1.3691488853904128e-12,
)  # fmt: skip

#: log2(m) = s * sum LOG2[k] (s * s) ** k, s = (m - 1) / (m + 1), m in [sqrt(1/2), sqrt(2)):
#: 2 / (ln(2) (2 k + 1)). First missing term below 2 ** -60 of the first.
LOG2 = (
    2.8853900817779268, 0.9617966939259756, 0.5770780163555853, 0.4121985831111324,
    0.3205988979753252, 0.2623081892525388, 0.22195308321368667, 0.19235933878519512,
    0.16972882833987804, 0.15186263588304877, 0.1373995277037108, 0.12545174268599682,
)  # fmt: skip
SQRT_HALF = 0.7071067811865476

#: sin(2 pi t) = t * sum SIN[k] (t * t) ** k on |t| <= 1/8 turn: (-1) ** k (2 pi) ** (2 k + 1) / (2 k + 1)!.
#: First missing term below 2 ** -62 of the first.
SIN = (
    6.283185307179586, -41.34170224039976, 81.60524927607506, -76.70585975306139,
    42.058693944897655, -15.09464257682299, 3.819952584848282, -0.7181223017785006,
    0.10422916220813984,
)  # fmt: skip

#: cos(2 pi t) = sum COS[k] (t * t) ** k on |t| <= 1/8 turn. First missing term below 2 ** -58.
COS = (
    1.0, -19.739208802178716, 64.9393940226683, -85.45681720669373, 60.24464137187666,
    -26.4262567833744, 7.903536371318469, -1.714390711088672, 0.28200596845579123,
)  # fmt: skip

#: exp2 arguments are limited to this first, so that pow2 stays a normal number; every format but f64
#: overflows or underflows well inside.
EXP2_LIMIT = 1000.0

# ---------------------------------------------------------------- programs


class _Builder:
    """Appends steps and hands out value numbers."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def __call__(self, op: Operation, *args: int | float) -> int:
        self.steps.append(Step(op, args))
        return len(self.steps)

    def horner(self, x: int, coefficients: tuple[float, ...]) -> int:
        """c0 + x (c1 + x (c2 + ...)), a multiplication and an addition per coefficient."""
        acc: int | float = coefficients[-1]
        for c in reversed(coefficients[:-1]):
            acc = self("add", self("mul", acc, x), c)
        assert isinstance(acc, int)
        return acc


def _rcp() -> Program:
    b = _Builder()
    b("div", 1.0, 0)
    return tuple(b.steps)


def _rsq() -> Program:
    b = _Builder()
    b("div", 1.0, b("sqrt", 0))
    return tuple(b.steps)


def _exp2() -> Program:
    """2 ** x = 2 ** n * 2 ** f, n = rint(x), f = x - n (exact): integers are exact."""
    b = _Builder()
    low = b("select", b("lt", 0, -EXP2_LIMIT), -EXP2_LIMIT, 0)
    x = b("select", b("lt", EXP2_LIMIT, low), EXP2_LIMIT, low)
    n = b("rint", x)
    p = b.horner(b("sub", x, n), EXP2)
    b("mul", p, b("pow2", n))
    return tuple(b.steps)


def _log2() -> Program:
    """log2(x) = e + log2(m), m = x * 2 ** -e near 1: powers of two are exact, and near 1 e is 0."""
    b = _Builder()
    m, e = b("frexp_m", 0), b("frexp_e", 0)
    small = b("lt", m, SQRT_HALF)
    m = b("select", small, b("add", m, m), m)
    e = b("select", small, b("sub", e, 1.0), e)
    s = b("div", b("sub", m, 1.0), b("add", m, 1.0))
    p = b.horner(b("mul", s, s), LOG2)
    b("add", e, b("mul", s, p))
    return tuple(b.steps)


def _turns(quarters: float) -> Program:
    """sin(2 pi (x + quarters / 4)): reduce to r = x - rint(x), then to t = r - q / 4 with q = rint(4 r).

    Both reductions are exact. k = q + quarters counts quarter turns, -2 .. 3: odd k takes the cosine
    of t, and k = 2, 3, -1, -2 changes the sign. A zero result is +0 (subtraction from zero).
    """
    b = _Builder()
    r = b("sub", 0, b("rint", 0))
    q = b("rint", b("mul", r, 4.0))
    t = b("sub", r, b("mul", q, 0.25))
    k = b("add", q, quarters)
    z = b("mul", t, t)
    sin = b("mul", t, b.horner(z, SIN))
    cos = b.horner(z, COS)
    half = b("mul", k, 0.5)
    distance = b("sub", half, b("rint", half))  # +-1/2 for odd k
    odd = b("mul", distance, distance)
    value = b("select", odd, cos, sin)
    minus = b("sub", 0.0, value)
    folded = b("select", b("lt", k, 0.0), b("add", k, 4.0), k)  # 0 .. 3
    b("select", b("lt", folded, 2.0), value, minus)
    return tuple(b.steps)


PROGRAMS: Mapping[str, Program] = {
    "rcp": _rcp(),
    "rsq": _rsq(),
    "exp2": _exp2(),
    "log2": _log2(),
    "sin2pi": _turns(0.0),
    "cos2pi": _turns(1.0),
}

#: (operation, format) whose denormal arguments and results are zeros whatever MODE says; "sqrt" too, which is IEEE's else.
FLUSHED = frozenset((op, "f32") for op in ("rcp", "rsq", "exp2", "log2", "sqrt"))

#: Formats an operation exists for.
FORMATS: Mapping[str, tuple[str, ...]] = {
    op: ("f16", "bf16", "f32", "f64") if op in ("rcp", "rsq") else ("f16", "bf16", "f32") for op in PROGRAMS
}
