"""Floating point by integer arithmetic: every rounding is one visible place, `rounded`.

A number is its bit pattern. An operation decodes its arguments to (sign, m, e), value m * 2 ** e,
works on exact integers and rounds once. Where Python's own binary64 gives a provably identical
result it is used as a short cut (`_short2`): f64 operations to nearest even are the host's; sums,
products, quotients and roots of f16 and f32 computed in binary64 and rounded again equal the single
rounding, since 53 >= 2 * 24 + 2 (Figueroa), and their subnormal sums and products are exact.

NaN:     an arithmetic result is the first NaN argument, quieted, else the default NaN.
Flush:   denormal inputs and results become signed zeros where `Env` says so (after rounding).
Units:   exponents are powers of two of the unit in the last place unless named `biased`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from stuntgpu.emu import state

# ---------------------------------------------------------------- formats and modes


@dataclass(frozen=True, slots=True)
class Format:
    """An IEEE interchange-like binary format.

    man     stored fraction bits.
    qmin    exponent of the unit of subnormals.
    code    struct codes (float, integer) when Python packs the format, else "".
    """

    name: str
    width: int
    man: int
    sign: int
    inf: int
    quiet: int
    qmin: int
    code: str

    @property
    def nan(self) -> int:
        """The default NaN."""
        return self.inf | self.quiet

    @property
    def largest(self) -> int:
        return self.inf - 1

    @property
    def abs_mask(self) -> int:
        return self.sign - 1


def _format(name: str, width: int, man: int, code: str) -> Format:
    bias = (1 << (width - man - 2)) - 1
    inf = ((1 << (width - 1 - man)) - 1) << man
    return Format(name, width, man, 1 << (width - 1), inf, 1 << (man - 1), 1 - bias - man, code)


F16 = _format("f16", 16, 10, "eH")
BF16 = _format("bf16", 16, 7, "")
F32 = _format("f32", 32, 23, "fI")
F64 = _format("f64", 64, 52, "dQ")
FORMATS = {f.name: f for f in (F16, BF16, F32, F64)}


@dataclass(frozen=True, slots=True)
class Env:
    """What MODE says for one format.

    saturate    results that overflow become the largest finite number (FP16_OVFL).
    """

    round: str = "rne"
    flush_in: bool = False
    flush_out: bool = False
    saturate: bool = False


@dataclass(frozen=True, slots=True)
class Mode:
    """MODE as float operations see it; int_round is for conversions to integers."""

    f16: Env
    bf16: Env
    f32: Env
    f64: Env
    int_round: str = "rtz"


@lru_cache(maxsize=256)
def mode_of(mode: int) -> Mode:
    """The environments of a MODE register value."""

    def env(round_at: int, denorm_at: int, saturate: bool) -> Env:
        denorm = mode >> denorm_at
        return Env(
            state.ROUNDS[mode >> round_at & 3],
            not denorm & state.DENORM_IN,
            not denorm & state.DENORM_OUT,
            saturate,
        )

    single = env(state.MODE_ROUND_F32, state.MODE_DENORM_F32, False)
    double = env(state.MODE_ROUND_F16_F64, state.MODE_DENORM_F16_F64, False)
    half = replace(double, saturate=bool(mode >> state.MODE_FP16_OVFL & 1))
    return Mode(half, single, single, double)


@lru_cache(maxsize=256)
def with_round(mode: Mode, name: str) -> Mode:
    """The mode with every rounding replaced: an operation whose rounding MODE does not decide."""
    f16, bf16, f32, f64 = (replace(e, round=name) for e in (mode.f16, mode.bf16, mode.f32, mode.f64))
    return Mode(f16, bf16, f32, f64, name)


# ---------------------------------------------------------------- decode and round


def is_nan(f: Format, a: int) -> bool:
    return a & f.abs_mask > f.inf


def is_inf(f: Format, a: int) -> bool:
    return a & f.abs_mask == f.inf


def is_denormal(f: Format, a: int) -> bool:
    return not a & f.inf and bool(a & f.abs_mask)


def flushed(f: Format, a: int, flush: bool) -> int:
    """a, or a zero of its sign when it is denormal and `flush`."""
    return a & f.sign if flush and not a & f.inf else a


def first_nan(f: Format, *args: int) -> int | None:
    """The first NaN argument, quieted."""
    for a in args:
        if is_nan(f, a):
            return a | f.quiet
    return None


def decode(f: Format, a: int) -> tuple[int, int, int]:
    """(sign, m, e) of a finite number: value (-1) ** sign * m * 2 ** e."""
    biased, fraction = (a & f.inf) >> f.man, a & ((1 << f.man) - 1)
    sign = int(a >= f.sign)
    if biased == 0:
        return sign, fraction, f.qmin
    return sign, fraction | 1 << f.man, f.qmin + biased - 1


def signed(f: Format, a: int) -> tuple[int, int]:
    """(m, e) with the sign in m."""
    sign, m, e = decode(f, a)
    return (-m if sign else m), e


def round_away(name: str, sign: int, odd: int, twice_rest: int, unit: int) -> bool:
    """Whether a magnitude truncated to m moves to m + 1. The rest is twice_rest / 2 of one unit;
    odd is the lowest bit of m."""
    if name == "rne":
        return twice_rest > unit or (twice_rest == unit and bool(odd))
    if name == "rtz":
        return False
    return twice_rest > 0 and bool(sign) == (name == "rdn")


def rounded(f: Format, sign: int, m: int, e: int, env: Env, sticky: bool = False) -> int:
    """(-1) ** sign * m * 2 ** e as bits of f, m >= 0. `sticky`: the true magnitude is a little larger,
    by less than 2 ** e; then m has at least man + 3 bits."""
    top = f.sign if sign else 0
    if m == 0:
        return top
    q = max(e + m.bit_length() - 1 - f.man, f.qmin)
    shift = q - e
    if shift <= 0:
        kept = m << -shift
    else:
        kept, rest = m >> shift, m & ((1 << shift) - 1)
        if (rest or sticky) and round_away(env.round, sign, kept & 1, 4 * rest + sticky, 2 << shift):
            kept += 1
    bits = ((q - f.qmin) << f.man) + kept
    if bits >= f.inf:
        return top | _overflow(f, sign, env)
    if env.flush_out and bits >> f.man == 0:
        return top
    return top | bits


def _overflow(f: Format, sign: int, env: Env) -> int:
    to_largest = env.saturate or env.round == "rtz" or env.round == ("rup" if sign else "rdn")
    return f.largest if to_largest else f.inf


def rounded_signed(f: Format, m: int, e: int, env: Env) -> int:
    """As `rounded` with the sign in m; an exact zero is +0."""
    return rounded(f, int(m < 0), abs(m), e, env)


# ---------------------------------------------------------------- the host's binary64

_NEAREST = Env()


def to_float(f: Format, a: int) -> float:
    """The value as a Python float (exact for every format)."""
    if not f.code:
        return float(struct.unpack("<f", struct.pack("<I", a << 16))[0])
    return float(struct.unpack("<" + f.code[0], struct.pack("<" + f.code[1], a))[0])


def from_float(f: Format, x: float, env: Env = _NEAREST) -> int:
    """x rounded to the format as `env` says. NaN gives the default NaN."""
    if x != x:
        return f.nan
    if math.isinf(x):
        return f.inf | (f.sign if x < 0 else 0)
    a = int(struct.unpack("<Q", struct.pack("<d", x))[0])
    return rounded(f, *decode(F64, a), env)


_PACKERS: dict[str, tuple[Callable[[int], bytes], Callable[[bytes], tuple[float]], Callable[[float], bytes], Callable[[bytes], tuple[int]]]] = {
    f.name: (struct.Struct("<" + f.code[1]).pack, struct.Struct("<" + f.code[0]).unpack,
             struct.Struct("<" + f.code[0]).pack, struct.Struct("<" + f.code[1]).unpack)
    for f in (F16, F32, F64)
}  # fmt: skip


def _short2(f: Format, op: Callable[[float, float], float], a: int, b: int, env: Env) -> int | None:
    """op in binary64, rounded again; None where that is not the answer or the arguments are special."""
    if env.round != "rne" or not f.code:
        return None
    ipack, funpack, fpack, iunpack = _PACKERS[f.name]
    try:
        x = op(funpack(ipack(a))[0], funpack(ipack(b))[0])
        if x - x != 0.0:  # NaN and infinity
            return None
        r = iunpack(fpack(x))[0]
    except (OverflowError, ZeroDivisionError):
        return None
    return r & f.sign if env.flush_out and not r & f.inf else r


def _plus(x: float, y: float) -> float:
    return x + y


def _times(x: float, y: float) -> float:
    return x * y


def _over(x: float, y: float) -> float:
    return x / y


# ---------------------------------------------------------------- arithmetic


def add(f: Format, a: int, b: int, env: Env) -> int:
    """a + b."""
    if env.flush_in:
        a, b = flushed(f, a, True), flushed(f, b, True)
    short = _short2(f, _plus, a, b, env)
    if short is not None:
        return short
    nan = first_nan(f, a, b)
    if nan is not None:
        return nan
    if is_inf(f, a) or is_inf(f, b):
        if is_inf(f, a) and is_inf(f, b) and a != b:
            return f.nan
        return a if is_inf(f, a) else b
    ma, ea = signed(f, a)
    mb, eb = signed(f, b)
    return _sum(f, (ma, ea, a >= f.sign), (mb, eb, b >= f.sign), env)


#: A finite number: signed m, e (value m * 2 ** e) and its sign, which matters when m is 0.
_Term = tuple[int, int, bool]


def _sum(f: Format, a: _Term, b: _Term, env: Env) -> int:
    """a + b rounded. A zero sum of unlike signs is -0 only when rounding down."""
    (ma, ea, negative_a), (mb, eb, negative_b) = a, b
    e = min(ea, eb)
    total = (ma << (ea - e)) + (mb << (eb - e))
    if total:
        return rounded_signed(f, total, e, env)
    negative = negative_a if negative_a == negative_b else env.round == "rdn"
    return f.sign if negative else 0


def sub(f: Format, a: int, b: int, env: Env) -> int:
    """a - b; a NaN b keeps its sign."""
    return add(f, a, b if is_nan(f, b) else b ^ f.sign, env)


def mul(f: Format, a: int, b: int, env: Env) -> int:
    """a * b."""
    if env.flush_in:
        a, b = flushed(f, a, True), flushed(f, b, True)
    # An f64 product may be subnormal, where the host's result is still rounded once.
    short = _short2(f, _times, a, b, env)
    if short is not None:
        return short
    nan = first_nan(f, a, b)
    if nan is not None:
        return nan
    sign = (a ^ b) & f.sign
    if is_inf(f, a) or is_inf(f, b):
        return sign | f.inf if a & f.abs_mask and b & f.abs_mask else f.nan
    _, ma, ea = decode(f, a)
    _, mb, eb = decode(f, b)
    return rounded(f, int(bool(sign)), ma * mb, ea + eb, env)


def fma(f: Format, a: int, b: int, c: int, env: Env) -> int:
    """a * b + c, rounded once."""
    if env.flush_in:
        a, b, c = flushed(f, a, True), flushed(f, b, True), flushed(f, c, True)
    if a & f.inf == f.inf or b & f.inf == f.inf or c & f.inf == f.inf:
        return _fma_special(f, a, b, c)
    ma, ea = signed(f, a)
    mb, eb = signed(f, b)
    mc, ec = signed(f, c)
    return _sum(f, (ma * mb, ea + eb, (a ^ b) >= f.sign), (mc, ec, c >= f.sign), env)


def _fma_special(f: Format, a: int, b: int, c: int) -> int:
    """fma with an infinity or a NaN among the arguments."""
    nan = first_nan(f, a, b, c)
    if nan is not None:
        return nan
    if not (is_inf(f, a) or is_inf(f, b)):
        return c
    product = (a ^ b) & f.sign | f.inf
    if not a & f.abs_mask or not b & f.abs_mask or (is_inf(f, c) and c != product):
        return f.nan
    return product


def div(f: Format, a: int, b: int, env: Env) -> int:
    """a / b, rounded once."""
    if env.flush_in:
        a, b = flushed(f, a, True), flushed(f, b, True)
    short = _short2(f, _over, a, b, env)
    if short is not None and (f is F64 or short & f.inf):
        return short
    nan = first_nan(f, a, b)
    if nan is not None:
        return nan
    sign = (a ^ b) & f.sign
    if is_inf(f, a):
        return f.nan if is_inf(f, b) else sign | f.inf
    if not b & f.abs_mask:
        return sign | f.inf if a & f.abs_mask else f.nan
    if is_inf(f, b):
        return sign
    _, ma, ea = decode(f, a)
    _, mb, eb = decode(f, b)
    extra = 2 * f.man + 5
    quotient, rest = divmod(ma << extra, mb)
    return rounded(f, int(bool(sign)), quotient, ea - eb - extra, env, sticky=rest != 0)


def sqrt(f: Format, a: int, env: Env) -> int:
    """Square root, rounded once; -0 keeps its sign, what is below gives the default NaN with its sign set."""
    a = flushed(f, a, env.flush_in)
    nan = first_nan(f, a)
    if nan is not None:
        return nan
    if not a & f.abs_mask or a == f.inf:
        return a
    if a >= f.sign:
        return f.nan | f.sign
    _, m, e = decode(f, a)
    extra = 2 * f.man + 6 + (e & 1)
    root = math.isqrt(m << extra)
    return rounded(f, 0, root, (e - extra) // 2, env, sticky=root * root != m << extra)


def ldexp(f: Format, a: int, n: int, env: Env) -> int:
    """a * 2 ** n, rounded once. n is 32 bits, signed."""
    a = flushed(f, a, env.flush_in)
    nan = first_nan(f, a)
    if nan is not None:
        return nan
    if is_inf(f, a) or not a & f.abs_mask:
        return a
    n = (n ^ 1 << 31) - (1 << 31)
    n = max(-5000, min(5000, n))  # beyond, everything overflows or vanishes in every format
    sign, m, e = decode(f, a)
    return rounded(f, sign, m, e + n, env)


def fma_scaled(f: Format, a: int, b: int, c: int, n: int, env: Env) -> int:
    """(a * b + c) * 2 ** n, rounded once; a sum beyond the largest number overflows first. n is 32 bits, signed."""
    if env.flush_in:
        a, b, c = flushed(f, a, True), flushed(f, b, True), flushed(f, c, True)
    keep = replace(env, flush_in=False, flush_out=False)
    plain = fma(f, a, b, c, keep)
    special = any(x & f.inf == f.inf for x in (a, b, c, plain))
    if n < 1 << 31 or special:
        return flushed(f, ldexp(f, plain, n, keep), env.flush_out)
    (ma, ea), (mb, eb), (mc, ec) = signed(f, a), signed(f, b), signed(f, c)
    e = min(ea + eb, ec)
    total = (ma * mb << (ea + eb - e)) + (mc << (ec - e))
    if not total:
        return plain
    _, m, largest = decode(f, f.largest)
    low = min(e, largest)
    if abs(total) << (e - low) > m << (largest - low):
        return (f.sign if total < 0 else 0) | _overflow(f, int(total < 0), env)
    return rounded_signed(f, total, e + max(-5000, n - (1 << 32)), env)


# ---------------------------------------------------------------- to integral, parts


def integral(f: Format, a: int, name: str, env: Env) -> int:
    """a rounded to an integral value in direction `name`, sign of zero kept."""
    a = flushed(f, a, env.flush_in)
    nan = first_nan(f, a)
    if nan is not None:
        return nan
    sign, m, e = decode(f, a)
    if e >= 0 or m == 0:  # infinities decode with e >= 0 too
        return a
    return rounded(f, sign, integer_magnitude(sign, m, e, name), 0, env)


def integer_magnitude(sign: int, m: int, e: int, name: str) -> int:
    """m * 2 ** e as an integer magnitude, rounded in direction `name`."""
    if e >= 0:
        return m << e
    shift = -e
    kept, rest = m >> shift, m & ((1 << shift) - 1)
    return kept + round_away(name, sign, kept & 1, 2 * rest, 1 << shift)


def fract(f: Format, a: int, env: Env) -> int:
    """a - floor(a), at most the largest number below 1; infinities give NaN."""
    r = sub(f, a, integral(f, a, "rdn", env), env)
    below_one = ((-f.man - f.qmin) << f.man) + (1 << f.man) - 1
    return below_one if not is_nan(f, r) and f.sign > r > below_one else r


def mantissa(f: Format, a: int) -> int:
    """The significand of a finite number scaled to [0.5, 1), sign kept; zeros, infinities and NaNs stay."""
    if a & f.inf == f.inf or not a & f.abs_mask:
        return a
    sign, m, _ = decode(f, a)
    return rounded(f, sign, m, -m.bit_length(), _NEAREST)


def quiet(f: Format, a: int) -> int:
    """A NaN with its quiet bit set; anything else as it is."""
    return a | f.quiet if is_nan(f, a) else a


# ---------------------------------------------------------------- comparisons


def ordered(f: Format, a: int, b: int, env: Env) -> int | None:
    """-1, 0 or 1 as a is below, equal to or above b; None with a NaN."""
    if is_nan(f, a) or is_nan(f, b):
        return None
    x, y = _rank(f, flushed(f, a, env.flush_in)), _rank(f, flushed(f, b, env.flush_in))
    return (x > y) - (x < y)


def _rank(f: Format, a: int) -> int:
    """Integers in the order of the numbers; both zeros give 0."""
    return a if a < f.sign else f.sign - a


# ---------------------------------------------------------------- conversions


def convert(f: Format, g: Format, a: int, env_in: Env, env_out: Env) -> int:
    """From format f to g, rounded once; a NaN keeps its top payload bits and is quieted."""
    a = flushed(f, a, env_in.flush_in)
    sign = g.sign if a >= f.sign else 0
    if a & f.inf == f.inf:
        fraction = a & ((1 << f.man) - 1)
        if not fraction:
            return sign | g.inf
        up = g.man - f.man
        return sign | g.inf | g.quiet | (fraction << up if up >= 0 else fraction >> -up)
    return rounded(g, *decode(f, a), env_out)


def to_int(f: Format, a: int, bits: int, is_signed: bool, name: str, env: Env) -> int:
    """To an integer of `bits` bits, rounded in direction `name`, saturating; NaN gives 0."""
    if is_nan(f, a):
        return 0
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if is_signed else (0, (1 << bits) - 1)
    if is_inf(f, a):
        return (high if a < f.sign else low) & ((1 << bits) - 1)
    sign, m, e = decode(f, flushed(f, a, env.flush_in))
    value = integer_magnitude(sign, m, e, name)
    return max(low, min(high, -value if sign else value)) & ((1 << bits) - 1)


def from_int(f: Format, a: int, bits: int, is_signed: bool, env: Env) -> int:
    """From an integer of `bits` bits, rounded once; zero gives +0."""
    if is_signed and a >> (bits - 1):
        return rounded(f, 1, (1 << bits) - a, 0, env)
    return rounded(f, 0, a, 0, env)
