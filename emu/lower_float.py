"""Lowering of the IEEE operations of `isa.ir.OPS`, with MODE's rounding and denormal control.

f32 and f64 run on the processor's own arithmetic; f16 and bf16 go through f32 (addition,
multiplication, division and square root round innocuously there to nearest even) or, where that
would round twice, through f64 made inexact-safe by rounding to odd. Rounding to formats narrower
than the source, and of integers in the modes other than nearest even, is integer arithmetic.

NaN:     a NaN argument, first in order, quieted; otherwise the default NaN. Checked by one unordered
         compare; the selects run only when some lane has a NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from stuntgpu.emu.lower_int import Lower, shift
from stuntgpu.emu.lower_text import BF16, F16, F32, F64, FORMATS, Emitter, Float, Value
from stuntgpu.emu.transcend import FLUSHED
from stuntgpu.isa.ir import Op

# ---------------------------------------------------------------- classes and denormals


def magnitude(e: Emitter, f: Float, x: Value) -> Value:
    return e.bin("and", x, e.const(f.sign - 1, f.width))


def is_nan(e: Emitter, f: Float, x: Value) -> Value:
    return e.icmp("ugt", magnitude(e, f, x), e.const(f.inf, f.width))


def is_denorm_or_zero(e: Emitter, f: Float, x: Value) -> Value:
    return e.icmp("eq", e.bin("and", x, e.const(f.inf, f.width)), e.const(0, f.width))


def flush(e: Emitter, f: Float, x: Value) -> Value:
    """Denormals (and zeros) become zeros of their sign."""
    return e.select(is_denorm_or_zero(e, f, x), e.bin("and", x, e.const(f.sign, f.width)), x)


def flush_in(e: Emitter, f: Float, x: Value) -> Value:
    return flush(e, f, x) if e.mode.flush_in(f) else x


def flush_out(e: Emitter, f: Float, x: Value) -> Value:
    return flush(e, f, x) if e.mode.flush_out(f) else x


def quiet(e: Emitter, f: Float, x: Value) -> Value:
    return e.select(is_nan(e, f, x), e.bin("or", x, e.const(f.quiet, f.width)), x)


def nan_of(e: Emitter, f: Float, args: Sequence[Value]) -> Value:
    """What an operation gives in the lanes where its result is a NaN."""
    r = e.const(f.nan, f.width)
    for a in reversed(args):
        r = e.select(is_nan(e, f, a), e.bin("or", a, e.const(f.quiet, f.width)), r)
    return r


def settle(e: Emitter, f: Float, r: Value, args: Sequence[Value], nan: Value | None = None) -> Value:
    """Result `r` with NaNs by the rule and denormals by MODE."""
    bad = is_unordered(e, f, r) if nan is None else nan
    fixed = e.rarely(bad, r, lambda: e.select(bad, nan_of(e, f, args), r))
    return flush_out(e, f, fixed)


def is_unordered(e: Emitter, f: Float, x: Value) -> Value:
    if f.width == 16:
        return is_nan(e, f, x)
    v = e.as_float(f, x)
    return e.inst(f"fcmp uno {e.wrap(f.llvm)} {v}, {v}", 1)


# ---------------------------------------------------------------- rounding in integers


def round_up(e: Emitter, rnd: str, sign: Value, odd: Value, rest: Value, half: Value) -> Value:
    """One bit: the cut-off `rest` (of a unit 2 * half) rounds the magnitude up."""
    w = rest.width
    if rnd == "rne":
        tie = e.bin("and", e.icmp("eq", rest, half), odd)
        return e.bin("or", e.icmp("ugt", rest, half), tie)
    if rnd == "rtz":
        return e.const(0, 1)
    inexact = e.icmp("ne", rest, e.const(0, w))
    up = sign if rnd == "rdn" else e.bin("xor", sign, e.const(1, 1))
    return e.bin("and", inexact, up)


def overflow_bits(e: Emitter, f: Float, rnd: str, sign: Value, width: int) -> Value:
    inf, top = e.const(f.inf, width), e.const(f.inf - 1, width)
    match rnd:
        case "rne":
            return inf
        case "rtz" | "saturate":
            return top
        case "rup":
            return e.select(sign, top, inf)
        case _:
            return e.select(sign, inf, top)


def round_pack(e: Emitter, f: Float, rnd: str, sign: Value, expo: Value, sig: Value, drop: int,
               saturate: bool = False) -> Value:
    """Bits of format f (in the width of `sig`, sign not set): sig * 2 ** -(f.man + drop) * 2 ** (expo - bias).

    sig   the leading one, if there is one, at bit f.man + drop or below (below only at the lowest expo).
    expo  biased exponent in f, signed, as wide as sig; below 1 the value is denormal in f.
    """
    w = sig.width
    one = e.const(1, w)
    low = e.icmp("slt", expo, one)
    deep = e.select(low, e.bin("sub", one, expo), e.const(0, w))
    far = e.icmp("ugt", deep, e.const(f.man + 3, w))
    deep = e.select(far, e.const(f.man + 3, w), deep)
    cut = e.bin("add", deep, e.const(drop, w))
    kept = e.bin("lshr", sig, cut)
    unit = e.bin("shl", one, cut)
    rest = e.bin("and", sig, e.bin("sub", unit, one))
    half = e.bin("lshr", unit, one)
    odd = e.cast("trunc", kept, 1)
    inexact_tie = e.icmp("ne", cut, e.const(0, w))
    up = round_up(e, rnd, sign, odd, rest, half)
    up = e.zext(e.bin("and", up, inexact_tie), w)
    base = e.select(low, e.const(0, w), e.bin("sub", expo, one))
    big = e.icmp("sgt", base, e.const(1 << f.exp, w))
    base = e.select(big, e.const(1 << f.exp, w), base)
    bits = e.bin("add", e.bin("shl", base, e.const(f.man, w)), e.bin("add", kept, up))
    over = e.icmp("uge", bits, e.const(f.inf, w))
    return e.select(over, overflow_bits(e, f, "saturate" if saturate else rnd, sign, w), bits)


def narrow(e: Emitter, f: Float, g: Float, x: Value, rnd: str, saturate: bool | None = None) -> Value:
    """x of format f rounded to the narrower g; NaN payloads keep their top bits. `saturate`: overflow
    gives the largest finite number (default: as MODE says for f16)."""
    if saturate is None:
        saturate = g is F16 and e.mode.saturate
    if rnd == "rne" and (f, g) == (F64, F32):
        return _fptrunc(e, f, g, x)
    if rnd == "rne" and (f, g) == (F32, F16) and e.host.f16c and not saturate:
        return _fptrunc(e, f, g, x)
    w, drop = f.width, f.man - g.man
    mag = magnitude(e, f, x)
    sign = e.icmp("ne", e.bin("and", x, e.const(f.sign, w)), e.const(0, w))
    field = e.bin("lshr", mag, e.const(f.man, w))
    normal = e.icmp("ne", field, e.const(0, w))
    sig = e.bin("and", mag, e.const((1 << f.man) - 1, w))
    sig = e.bin("or", sig, e.select(normal, e.const(1 << f.man, w), e.const(0, w)))
    expo = e.select(normal, field, e.const(1, w))
    expo = e.bin("add", expo, e.const(g.bias - f.bias, w))
    bits = round_pack(e, g, rnd, sign, expo, sig, drop, saturate)
    bits = e.select(e.icmp("eq", mag, e.const(f.inf, w)), e.const(g.inf, w), bits)
    payload = e.bin("and", e.bin("lshr", mag, e.const(drop, w)), e.const((1 << g.man) - 1, w))
    nan = e.bin("or", payload, e.const(g.nan, w))
    bits = e.select(e.icmp("ugt", mag, e.const(f.inf, w)), nan, bits)
    signed = e.bin("or", bits, e.select(sign, e.const(g.sign, w), e.const(0, w)))
    return e.zext(signed, g.width)


def _fptrunc(e: Emitter, f: Float, g: Float, x: Value) -> Value:
    v = e.as_float(f, x)
    return e.as_bits(g, e.raw(f"fptrunc {e.wrap(f.llvm)} {v} to {e.wrap(g.llvm)}"))


def widen(e: Emitter, f: Float, g: Float, x: Value) -> Value:
    """x of format f in the wider g: exact; NaNs are quieted."""
    if (f, g) == (BF16, F32):
        return quiet(e, F32, shift(e, "shl", e.zext(x, 32), e.const(16, 32)))
    if (f is F16 and g is BF16) or (f is BF16 and g is F16):
        raise ValueError("neither of f16 and bf16 holds the other")
    if f.width == 16 and g is F64:
        return widen(e, F32, F64, widen(e, f, F32, x))
    if f is F16 and not e.host.f16c:
        return _widen_f16(e, x)
    v = e.as_float(f, x)
    return e.as_bits(g, e.raw(f"fpext {e.wrap(f.llvm)} {v} to {e.wrap(g.llvm)}"))


def _widen_f16(e: Emitter, x: Value) -> Value:
    """By integers: shift into place, correct the bias; denormals by an exact subtraction."""
    mag = e.zext(magnitude(e, F16, x), 32)
    sign = e.bin("shl", e.zext(e.bin("and", x, e.const(F16.sign, 16)), 32), e.const(16, 32))
    moved = e.bin("shl", mag, e.const(13, 32))
    normal = e.bin("add", moved, e.const((127 - 15) << 23, 32))
    top = e.bin("or", moved, e.const(F32.inf, 32))
    special = e.icmp("uge", mag, e.const(F16.inf, 32))
    tiny = e.icmp("ult", mag, e.const(1 << 10, 32))
    magic = e.const((127 - 14) << 23, 32)
    a, b = e.as_float(F32, e.bin("or", moved, magic)), e.as_float(F32, magic)
    small = e.as_bits(F32, e.raw(f"fsub {e.wrap('float')} {a}, {b}"))
    bits = e.select(special, top, e.select(tiny, small, normal))
    return quiet(e, F32, e.bin("or", bits, sign))


def convert(e: Emitter, f: Float, g: Float, x: Value, rnd: str) -> Value:
    if f is g:
        return x
    if f.width == 16 and g.width == 16:
        return narrow(e, F32, g, widen(e, f, F32, x), rnd)
    return widen(e, f, g, x) if f.width < g.width else narrow(e, f, g, x, rnd)


# ---------------------------------------------------------------- arithmetic


def rounding(e: Emitter, n: Op, f: Float) -> str:
    return n.round or e.mode.rounding(f)


_PLAIN = {"fadd": "fadd", "fsub": "fsub", "fmul": "fmul", "fdiv": "fdiv"}


def native(e: Emitter, f: Float, op: str, args: Sequence[Value], rnd: str = "rne") -> Value:
    """One operation of the processor on f32 or f64, any rounding mode; NaNs as they fall."""
    t = e.wrap(f.llvm)
    refs = [e.as_float(f, a) for a in args]
    if rnd != "rne":
        return _constrained(e, f, op, refs, rnd)
    if op in _PLAIN:
        return e.as_bits(f, e.raw(f"{_PLAIN[op]} {t} {refs[0]}, {refs[1]}"))
    return e.as_bits(f, e.call(f"llvm.{op}.{e.suffix(f.llvm)}", t, *[(t, r) for r in refs]))


def _constrained(e: Emitter, f: Float, op: str, refs: Sequence[str], rnd: str) -> Value:
    t = e.wrap(f.llvm)
    name = f"llvm.experimental.constrained.{op}.{e.suffix(f.llvm)}"
    types = ", ".join([t] * len(refs) + ["metadata", "metadata"])
    e.declarations.setdefault(name, f"declare {t} @{name}({types})")
    given = ", ".join(f"{t} {r}" for r in refs)
    with e.with_rounding(rnd):
        r = e.raw(f'call {t} @{name}({given}, metadata !"round.dynamic", metadata !"fpexcept.strict") strictfp')
    return e.as_bits(f, r)


def to_odd(e: Emitter, f: Float, s: Value, error: Value) -> Value:
    """The sum `s` with rounding error `error`, rounded to odd instead: a later rounding is then exact."""
    w = f.width
    zero = e.icmp("eq", magnitude(e, f, error), e.const(0, w))
    even = e.icmp("eq", e.bin("and", s, e.const(1, w)), e.const(0, w))
    finite = e.icmp("ult", magnitude(e, f, s), e.const(f.inf, w))
    same = e.icmp("sge", e.bin("xor", s, error), e.const(0, w))
    step = e.select(same, e.const(1, w), e.const(-1, w))
    move = e.bin("and", e.bin("and", e.bin("xor", zero, e.const(1, 1)), even), finite)
    return e.select(move, e.bin("add", s, step), s)


def sum_to_odd(e: Emitter, f: Float, a: Value, b: Value) -> Value:
    """a + b rounded to odd (the error term is Knuth's two-sum)."""
    def op(name: str, x: Value, y: Value) -> Value:
        return native(e, f, name, (x, y))

    s = op("fadd", a, b)
    bb = op("fsub", s, a)
    error = op("fadd", op("fsub", a, op("fsub", s, bb)), op("fsub", b, bb))
    return to_odd(e, f, s, error)


def _half_fma(e: Emitter, args: Sequence[Value]) -> Value:
    """f16: the product is exact in f32, whose sum rounded to odd rounds right again."""
    a, b, c = (widen(e, F16, F32, x) for x in args)
    return narrow(e, F32, F16, sum_to_odd(e, F32, native(e, F32, "fmul", (a, b)), c), "rne")


def _small(e: Emitter, f: Float, op: str, args: Sequence[Value], rnd: str) -> Value:
    """An operation of f16 or bf16."""
    if rnd == "rne" and op != "fma":
        wide = [widen(e, f, F32, a) for a in args]
        return narrow(e, F32, f, native(e, F32, op, wide), rnd)
    if rnd == "rne" and f is F16:
        return _half_fma(e, args)
    wide = [widen(e, f, F64, a) for a in args]
    match op:
        case "fma":
            r = sum_to_odd(e, F64, native(e, F64, "fmul", wide[:2]), wide[2])
        case "fadd":
            r = sum_to_odd(e, F64, wide[0], wide[1])
        case "fsub":
            r = sum_to_odd(e, F64, wide[0], e.bin("xor", wide[1], e.const(F64.sign, 64)))
        case _:
            r = native(e, F64, op, wide)
    return narrow(e, F64, f, _zero_sum(e, f, op, args, r, rnd), rnd)


def _zero_sum(e: Emitter, f: Float, op: str, args: Sequence[Value], r: Value, rnd: str) -> Value:
    """Rounding down, an exact sum (f64 bits r) of addends of unlike sign that is zero is -0."""
    if rnd != "rdn" or op not in ("fadd", "fsub", "fma"):
        return r
    if op == "fma":
        a = e.bin("xor", args[0], args[1])
        b = args[2]
    else:
        a = args[0]
        b = args[1] if op == "fadd" else e.bin("xor", args[1], e.const(f.sign, f.width))
    differ = e.icmp("slt", e.bin("xor", a, b), e.const(0, f.width))
    zero = e.icmp("eq", r, e.const(0, 64))
    return e.select(e.bin("and", differ, zero), e.const(F64.sign, 64), r)


def arithmetic(f: Float, op: str) -> Lower:
    def lower(e: Emitter, n: Op, args: list[Value]) -> Value:
        a = [flush_in(e, f, x) for x in args]
        rnd = rounding(e, n, f)
        r = _small(e, f, op, a, rnd) if f.width == 16 else native(e, f, op, a, rnd)
        return settle(e, f, r, a)

    return lower


def square_root(f: Float) -> Lower:
    def lower(e: Emitter, n: Op, args: list[Value]) -> Value:
        x = flush(e, f, args[0]) if ("sqrt", f.name) in FLUSHED else flush_in(e, f, args[0])
        rnd = rounding(e, n, f)
        r = _small(e, f, "sqrt", (x,), rnd) if f.width == 16 else native(e, f, "sqrt", (x,), rnd)
        invalid = e.select(is_nan(e, f, x), e.bin("or", x, e.const(f.quiet, f.width)), e.const(f.nan | f.sign, f.width))
        return flush_out(e, f, e.select(is_unordered(e, f, r), invalid, r))

    return lower


# ---------------------------------------------------------------- integral values and pieces


_INTEGRAL = {"trunc_int": "trunc", "floor": "floor", "ceil": "ceil", "rndne": "roundeven"}


def to_integral(e: Emitter, f: Float, how: str, x: Value) -> Value:
    if f.width == 16:
        return narrow(e, F32, f, to_integral(e, F32, how, widen(e, f, F32, x)), "rne")
    return native(e, f, how, (x,))


def integral(f: Float, op: str) -> Lower:
    def lower(e: Emitter, n: Op, args: list[Value]) -> Value:
        x = flush_in(e, f, args[0])
        return settle(e, f, to_integral(e, f, _INTEGRAL[op], x), (x,))

    return lower


def fract(f: Float) -> Lower:
    def lower(e: Emitter, n: Op, args: list[Value]) -> Value:
        x = flush_in(e, f, args[0])
        rnd = rounding(e, n, f)
        down = to_integral(e, f, "floor", x)
        r = _small(e, f, "fsub", (x, down), rnd) if f.width == 16 else native(e, f, "fsub", (x, down), rnd)
        one, below = e.const(f.bias << f.man, f.width), e.const((f.bias << f.man) - 1, f.width)
        r = e.select(e.icmp("eq", r, one), below, r)
        return settle(e, f, r, (x,))

    return lower


def mantissa(f: Float) -> Lower:
    """Exponent field replaced by that of [0.5, 1); denormals are scaled up first; 0, inf, NaN stay."""
    def lower(e: Emitter, n: Op, args: list[Value]) -> Value:
        x, w = args[0], f.width
        mag = magnitude(e, f, x)
        lead = e.intrinsic("ctlz", w, mag, extra=(("i1", "false"),))
        up = e.bin("sub", lead, e.const(f.exp, w))
        tiny = e.icmp("ult", mag, e.const(1 << f.man, w))
        scaled = e.select(tiny, shift(e, "shl", mag, up), mag)
        frac = e.bin("and", scaled, e.const((1 << f.man) - 1, w))
        bits = e.bin("or", frac, e.const((f.bias - 1) << f.man, w))
        bits = e.bin("or", bits, e.bin("and", x, e.const(f.sign, w)))
        stays = e.bin("or", e.icmp("eq", mag, e.const(0, w)), e.icmp("uge", mag, e.const(f.inf, w)))
        return e.select(stays, x, bits)

    return lower


def ldexp(f: Float) -> Lower:
    def lower(e: Emitter, n: Op, args: list[Value]) -> Value:
        x = flush_in(e, f, args[0])
        rnd = rounding(e, n, f)
        r = ldexp_by_integers(e, F64, x, args[1], rnd) if f is F64 else _ldexp_by_f64(e, f, x, args[1], rnd)
        return settle(e, f, r, (x,))

    return lower


def clamp_signed(e: Emitter, x: Value, low: int, high: int) -> Value:
    a, b = e.const(low, x.width), e.const(high, x.width)
    x = e.select(e.icmp("slt", x, a), a, x)
    return e.select(e.icmp("sgt", x, b), b, x)


def _ldexp_by_f64(e: Emitter, f: Float, x: Value, by: Value, rnd: str) -> Value:
    """The product is exact in f64: the format's range scaled by at most 2 ** 400 fits."""
    by = e.sext(clamp_signed(e, by, -400, 400), 64)
    power = e.bin("shl", e.bin("add", by, e.const(F64.bias, 64)), e.const(F64.man, 64))
    return narrow(e, F64, f, native(e, F64, "fmul", (widen(e, f, F64, x), power)), rnd)


def ldexp_by_integers(e: Emitter, f: Float, x: Value, by: Value, rnd: str) -> Value:
    w = f.width
    mag = magnitude(e, f, x)
    sign = e.icmp("slt", x, e.const(0, w))
    field = e.bin("lshr", mag, e.const(f.man, w))
    lead = e.bin("sub", e.intrinsic("ctlz", w, mag, extra=(("i1", "false"),)), e.const(f.exp, w))
    tiny = e.icmp("eq", field, e.const(0, w))
    frac = e.bin("and", mag, e.const((1 << f.man) - 1, w))
    sig = e.select(tiny, shift(e, "shl", mag, lead), e.bin("or", frac, e.const(1 << f.man, w)))
    expo = e.select(tiny, e.bin("sub", e.const(1, w), lead), field)
    expo = e.bin("add", expo, e.sext(clamp_signed(e, by, -5000, 5000), w))
    bits = round_pack(e, f, rnd, sign, expo, sig, 0)
    stays = e.bin("or", e.icmp("eq", mag, e.const(0, w)), e.icmp("uge", mag, e.const(f.inf, w)))
    return e.select(stays, x, e.bin("or", bits, e.bin("and", x, e.const(f.sign, w))))


def fma_scaled(f: Float) -> Lower:
    """The rounded sum is scaled but where denormals come of it: then the sum cut off, with what was lost as a bit.
    No other operation here may round: LLVM could move it to where the processor's mode is another."""
    def lower(e: Emitter, n: Op, args: list[Value]) -> Value:
        a, by = [flush_in(e, f, x) for x in args[:3]], args[3]
        rnd = rounding(e, n, f)
        plain = _constrained(e, f, "fma", [e.as_float(f, x) for x in a], rnd)
        whole = ldexp_by_integers(e, f, plain, by, rnd)
        is_tiny, tiny = _fma_scaled_down(e, f, a, by, rnd)
        return settle(e, f, e.select(e.bin("and", is_tiny, e.icmp("slt", by, e.const(0, 32))), tiny, whole), a)

    return lower


def _fma_scaled_down(e: Emitter, f: Float, args: Sequence[Value], by: Value, rnd: str) -> tuple[Value, Value]:
    """(whether the result is denormal or the sum too large, the result then). `by` is below 0."""
    w = f.width
    zero, inf = e.const(0, w), e.const(f.inf, w)
    cut, least, most = (native(e, f, "fma", args, way) for way in ("rtz", "rdn", "rup"))
    both = e.bin("or", magnitude(e, f, least), magnitude(e, f, most))
    inexact = e.bin("and", e.icmp("ne", least, most), e.icmp("ne", both, zero))
    mag, sign = magnitude(e, f, cut), e.icmp("slt", cut, zero)
    field = e.bin("lshr", mag, e.const(f.man, w))
    tiny = e.icmp("eq", field, zero)
    frac = e.bin("and", mag, e.const((1 << f.man) - 1, w))
    sig = e.bin("or", frac, e.select(tiny, zero, e.const(1 << f.man, w)))
    sig = e.bin("or", e.bin("shl", sig, e.const(2, w)), e.zext(inexact, w))
    expo = e.bin("add", e.select(tiny, e.const(1, w), field), e.sext(clamp_signed(e, by, -5000, 0), w))
    over = e.bin("and", inexact, e.icmp("eq", mag, e.const(f.inf - 1, w)))
    bits = e.select(over, overflow_bits(e, f, rnd, sign, w), round_pack(e, f, rnd, sign, expo, sig, 2))
    applies = e.bin("and", e.icmp("ne", both, zero), e.bin("or", over, e.icmp("slt", expo, e.const(1, w))))
    for x in args:
        applies = e.bin("and", applies, e.icmp("ne", e.bin("and", x, inf), inf))
    return applies, e.bin("or", bits, e.select(sign, e.const(f.sign, w), zero))


# ---------------------------------------------------------------- comparisons and classes


def compare(f: Float, cond: str) -> Lower:
    def lower(e: Emitter, n: Op, args: list[Value]) -> Value:
        a, b = (flush_in(e, f, x) for x in args)
        g = f
        if f.width == 16:
            a, b, g = widen(e, f, F32, a), widen(e, f, F32, b), F32
        x, y = e.as_float(g, a), e.as_float(g, b)
        return e.inst(f"fcmp {cond} {e.wrap(g.llvm)} {x}, {y}", 1)

    return lower


def _is_quiet(e: Emitter, f: Float, x: Value) -> Value:
    return e.icmp("ne", e.bin("and", x, e.const(f.quiet, f.width)), e.const(0, f.width))


def _signalling(e: Emitter, f: Float, x: Value) -> Value:
    return e.bin("and", is_nan(e, f, x), e.bin("xor", _is_quiet(e, f, x), e.const(1, 1)))


def _is_denorm(e: Emitter, f: Float, x: Value) -> Value:
    below = e.bin("sub", magnitude(e, f, x), e.const(1, f.width))
    return e.icmp("ult", below, e.const((1 << f.man) - 1, f.width))


Test = Callable[[Emitter, Float, Value], Value]
_CLASSES: Mapping[str, Test] = {
    "isnan": is_nan,
    "issnan": _signalling,
    "isqnan": lambda e, f, x: e.bin("and", is_nan(e, f, x), _is_quiet(e, f, x)),
    "isdenorm": _is_denorm,
    "isinf": lambda e, f, x: e.icmp("eq", magnitude(e, f, x), e.const(f.inf, f.width)),
    "quiet": quiet,
}


def _classify(f: Float, test: Test) -> Lower:
    return lambda e, n, a: test(e, f, a[0])


# ---------------------------------------------------------------- conversions


def between(f: Float, g: Float) -> Lower:
    def lower(e: Emitter, n: Op, args: list[Value]) -> Value:
        x = flush_in(e, f, args[0])
        return flush_out(e, g, convert(e, f, g, x, rounding(e, n, g)))

    return lower


_TOWARD = {"rne": "roundeven", "rup": "ceil", "rdn": "floor"}


def to_int(f: Float, signed: bool, width: int) -> Lower:
    """Toward zero unless the node says otherwise, saturating, NaN to 0."""

    def lower(e: Emitter, n: Op, args: list[Value]) -> Value:
        x, g = flush_in(e, f, args[0]), f
        if f.width == 16:
            x, g = widen(e, f, F32, x), F32
        if n.round not in ("", "rtz"):
            x = native(e, g, _TOWARD[n.round], (x,))
        return saturated(e, g, x, signed, width)

    return lower


def power_of_two(f: Float, n: int) -> int:
    return (n + f.bias) << f.man


def saturated(e: Emitter, f: Float, x: Value, signed: bool, width: int) -> Value:
    """Toward zero with selects for what does not fit, NaN included: LLVM's own is scalar code for vectors."""
    inner, kind = max(32, width), "fptosi" if signed else "fptoui"
    v = e.as_float(f, x)
    low = e.const(1 << (width - 1) if signed else 0, width)
    high = e.const((1 << (width - 1)) - 1 if signed else -1, width)
    top = e.as_float(f, e.const(power_of_two(f, width - signed), f.width))
    bottom = e.as_float(f, e.const(power_of_two(f, width - 1) | f.sign if signed else 0, f.width))
    t = e.wrap(f.llvm)
    whole = e.inst(f"{kind} {t} {v} to {e.ty(inner)}", inner)
    r = e.zext(e.inst(f"freeze {e.ty(inner)} {whole.ref}", inner), width)
    r = e.select(e.inst(f"fcmp oge {t} {v}, {top}", 1), high, r)
    r = e.select(e.inst(f"fcmp ole {t} {v}, {bottom}", 1), low, r)
    return e.select(e.inst(f"fcmp uno {t} {v}, {v}", 1), e.const(0, width), r)


def from_int(signed: bool, width: int, f: Float) -> Lower:
    kind = "sitofp" if signed else "uitofp"

    def lower(e: Emitter, n: Op, args: list[Value]) -> Value:
        rnd = rounding(e, n, f)
        exact = F32 if width == 16 else F64
        if width < 64 and (f.width == 16 or f.man < width):
            v = e.as_bits(exact, _itof(e, kind, args[0], exact))
            return flush_out(e, f, convert(e, exact, f, v, rnd))
        if width < 64 or (rnd == "rne" and f.width > 16):
            return e.as_bits(f, _itof(e, kind, args[0], f))
        return _round_int(e, signed, args[0], f, rnd)

    return lower


def _itof(e: Emitter, kind: str, x: Value, f: Float) -> str:
    return e.raw(f"{kind} {e.ty(x.width)} {x.ref} to {e.wrap(f.llvm)}")


def _round_int(e: Emitter, signed: bool, x: Value, f: Float, rnd: str) -> Value:
    """A 64-bit integer to any format in any mode: normalise to 53 + sticky bits, then round."""
    w = 64
    sign = e.icmp("slt", x, e.const(0, w)) if signed else e.const(0, 1)
    mag = e.select(sign, e.bin("sub", e.const(0, w), x), x)
    lead = e.intrinsic("ctlz", w, mag, extra=(("i1", "false"),))
    left = shift(e, "shl", mag, lead)
    sticky = e.zext(e.icmp("ne", e.bin("and", left, e.const(0xFF, w)), e.const(0, w)), w)
    sig = e.bin("or", e.bin("lshr", left, e.const(8, w)), sticky)
    expo = e.bin("sub", e.const(63 + f.bias, w), lead)
    bits = round_pack(e, f, rnd, sign, expo, sig, 55 - f.man, f is F16 and e.mode.saturate)
    bits = e.select(e.icmp("eq", mag, e.const(0, w)), e.const(0, w), bits)
    return e.zext(e.bin("or", bits, e.select(sign, e.const(f.sign, w), e.const(0, w))), f.width)


# ---------------------------------------------------------------- the table


def _rows(f: Float) -> Mapping[str, Lower]:
    rows: dict[str, Lower] = {}
    for op in ("fadd", "fsub", "fmul", "fdiv", "fma"):
        rows[f"{op}.{f.name}"] = arithmetic(f, op)
    rows[f"sqrt.{f.name}"] = square_root(f)
    for op in _INTEGRAL:
        rows[f"{op}.{f.name}"] = integral(f, op)
    rows[f"fract.{f.name}"], rows[f"mantissa.{f.name}"] = fract(f), mantissa(f)
    rows[f"ldexp.{f.name}"] = ldexp(f)
    if f.width >= 32:
        rows[f"fma_scaled.{f.name}"] = fma_scaled(f)
    for op, cond in (("feq", "oeq"), ("fne", "une"), ("flt", "olt"), ("fle", "ole"), ("flg", "one")):
        rows[f"{op}.{f.name}"] = compare(f, cond)
    for op, test in _CLASSES.items():
        rows[f"{op}.{f.name}"] = _classify(f, test)
    for i in ("i16", "u16", "i32", "u32", "i64", "u64"):
        signed, width = i[0] == "i", int(i[1:])
        rows[f"{f.name}_to_{i}"] = to_int(f, signed, width)
        rows[f"{i}_to_{f.name}"] = from_int(signed, width, f)
    for g in FORMATS.values():
        if g is not f:
            rows[f"{f.name}_to_{g.name}"] = between(f, g)
    return rows


FLOAT: Mapping[str, Lower] = {k: v for f in FORMATS.values() for k, v in _rows(f).items()}
