"""Minimum and maximum of floats: replacement bodies by what a NaN does.

Denormals: the texts compare (where MODE flushes, denormals are zeros) and then return an operand as it is, but the
result is flushed as any other: LLVM has V_MAX_F32 x, x for a canonicalized x from GFX9 on (`supportsMinMaxDenormModes`).
"""

from __future__ import annotations

from stuntgpu.isa.errata.bodies import F16, Format, chain
from stuntgpu.isa.errata.common import Erratum

SAYS, DOES = "returns denormals that it compares as zeros", "the result is flushed as MODE says"
LLVM = "LLVM: supportsMinMaxDenormModes, V_MAX as canonicalize"
TEST = "tests/isa/test_semantics.py::test_minimum_and_maximum_flush_their_result"


def _flushed(f: Format, name: str) -> str:
    """D0 from a local variable; a product with 1 is flushed, and a NaN stays as it is."""
    x, one = f"{name}:{f.width}", f.const(f.bias << f.fraction)
    return f"(set D0 (select:{f.width} (isdenorm.{f.name} {x}) (fmul.{f.name} {x} {one}) {x}))"


def _before(f: Format, smallest: bool, x: str, y: str) -> str:
    """x is the smaller (greater) number; -0 is below +0."""
    first = f"(flt.{f.name} {x} {y})" if smallest else f"(flt.{f.name} {y} {x})"
    low, high = (x, y) if smallest else (y, x)
    signs = [f"(extract:1 {v} {f.width - 1}:32)" for v in (low, high)]
    return f"(or {first} (and (feq.{f.name} {x} {y}) (and {signs[0]} (not {signs[1]}))))"


def min_max(f: Format, smallest: bool, of_two_nans: str = "S0") -> str:
    """V_MIN / V_MAX: a signalling NaN is quieted in IEEE mode, else the other operand wins over a
    NaN (of two, that of `of_two_nans`)."""
    a, b = f.place("S0"), f.place("S1")
    nans = [(f"(isnan.{f.name} {b})", a), (f"(isnan.{f.name} {a})", b)]
    number = chain(f.width, *(nans if of_two_nans == "S0" else nans[::-1]), (_before(f, smallest, a, b), a), last=b)
    signalling = f"(and MODE_IEEE:1 (or (issnan.{f.name} {a}) (issnan.{f.name} {b})))"
    quieted = f"(quiet.{f.name} (select:{f.width} (issnan.{f.name} {a}) {a} {b}))"
    return f"(set chosen (select:{f.width} {signalling} {quieted} {number})) {_flushed(f, 'chosen')}"


def min_max_num(f: Format, smallest: bool) -> str:
    """V_MIN_NUM / V_MAX_NUM: the other operand wins over a NaN; of two, the first, quieted."""
    a, b = f.place("S0"), f.place("S1")
    both = f"(and (isnan.{f.name} {a}) (isnan.{f.name} {b}))"
    number = chain(f.width, (both, f"(quiet.{f.name} {a})"), (f"(isnan.{f.name} {a})", b), (f"(isnan.{f.name} {b})", a),
                   (_before(f, smallest, a, b), a), last=b)
    return f"(set chosen {number}) {_flushed(f, 'chosen')}"


def propagating(f: Format, smallest: bool, x: str, y: str) -> str:
    """minimum / maximum of IEEE 754-2019, as an expression, not flushed: any NaN wins, signalling ones first."""
    nans = [(f"({kind}.{f.name} {v})", f"(quiet.{f.name} {v})") for kind in ("issnan", "isnan") for v in (x, y)]
    return chain(f.width, *nans, (_before(f, smallest, x, y), x), last=y)


def minimum(f: Format, smallest: bool) -> str:
    """V_MINIMUM / V_MAXIMUM."""
    return f"(set chosen {propagating(f, smallest, f.place('S0'), f.place('S1'))}) {_flushed(f, 'chosen')}"


def minimum3(f: Format, smallest: bool) -> str:
    """V_MINIMUM3 / V_MAXIMUM3."""
    inner = propagating(f, smallest, f.place("S0"), f.place("S1"))
    outer = propagating(f, smallest, f"first:{f.width}", f.place("S2"))
    return f"(set first {inner}) (set chosen {outer}) {_flushed(f, 'chosen')}"


def packed_minimum3(smallest: bool) -> str:
    """V_PK_MINIMUM3_F16 / V_PK_MAXIMUM3_F16."""
    text = ""
    for half, lo in (("high", 16), ("low", 0)):
        a, b, c = (f"(extract:16 S{i}:32 {lo}:32)" for i in range(3))
        text += f"(set {half} {propagating(F16, smallest, a, b)}) "
        text += f"(set {half} {propagating(F16, smallest, f'{half}:16', c)}) "
        text += _flushed(F16, half).replace("(set D0 ", f"(set {half} ") + " "
    return text + "(set D0 (concat:32 high:16 low:16))"


def erratum(name: str, body: str) -> Erratum:
    """A row about denormals."""
    return Erratum((name,), SAYS, DOES, LLVM, body, TEST)
