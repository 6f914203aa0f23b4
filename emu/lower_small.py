"""Lowering of the conversions of small floats, normalised integers, and the bits of 2 / pi."""

from __future__ import annotations

from collections.abc import Mapping

from stuntgpu.emu.lower_float import (
    flush_in,
    is_nan,
    ldexp_by_integers,
    magnitude,
    native,
    saturated,
    widen,
)
from stuntgpu.emu.lower_int import Lower, shift
from stuntgpu.emu.lower_text import F16, F32, F64, Emitter, Float, Value
from stuntgpu.emu.smallfloat import SMALL as FORMATS
from stuntgpu.emu.smallfloat import STOCHASTIC, Small, two_over_pi
from stuntgpu.isa.ir import Op

# ---------------------------------------------------------------- floats of 8, 6 and 4 bits


def _widen(s: Small) -> Lower:
    """Place the byte's exponent and fraction in an f32 of exponent 2 ** 112 too low, multiply it up: exact."""
    def lower(e: Emitter, n: Op, args: list[Value]) -> Value:
        x = e.zext(args[0], 32)
        mag = e.bin("and", x, e.const(s.sign - 1, 32))
        sign = e.bin("shl", e.bin("and", x, e.const(s.sign, 32)), e.const(32 - s.bits, 32))
        small = e.bin("shl", mag, e.const(F32.man - s.man, 32))
        scale = e.const((2 * F32.bias - s.bias) << F32.man, 32)
        bits = native(e, F32, "fmul", (small, scale))
        if not s.fnuz:
            top = e.const(F32.nan, 32)
            if s.inf != s.nan:
                top = e.select(e.icmp("eq", mag, e.const(s.inf, 32)), e.const(F32.inf, 32), top)
            bits = e.select(e.icmp("ugt", mag, e.const(s.largest, 32)), top, bits)
        bits = e.bin("or", bits, sign)
        if s.fnuz:
            bits = e.select(e.icmp("eq", x, e.const(0x80, 32)), e.const(F32.nan, 32), bits)
        return bits

    return lower


def widen_small(e: Emitter, s: Small, v: Value) -> Value:
    """A small float as f32."""
    return _widen(s)(e, Op("", (), 32), [v])


def _magnitude_bits(e: Emitter, s: Small, mag: Value, random: Value | None) -> Value:
    """|x| rounded to the small format's magnitude, beyond its largest too (finite x)."""
    field = e.bin("lshr", mag, e.const(F32.man, 32))
    normal = e.icmp("ne", field, e.const(0, 32))
    sig = e.bin("and", mag, e.const((1 << F32.man) - 1, 32))
    sig = e.select(normal, e.bin("or", sig, e.const(1 << F32.man, 32)), sig)
    expo = e.bin("add", e.select(normal, field, e.const(1, 32)), e.const(s.bias - F32.bias, 32))
    low = e.icmp("slt", expo, e.const(1, 32))
    cut = e.select(low, e.bin("sub", e.const(1, 32), expo), e.const(0, 32))
    cut = e.bin("add", cut, e.const(F32.man - s.man, 32))
    wide, by = e.zext(sig, 64), e.zext(cut, 64)
    if random is None:
        half = e.bin("lshr", shift(e, "shl", e.const(1, 64), by), e.const(1, 64))
        odd = e.bin("and", shift(e, "lshr", wide, by), e.const(1, 64))
        wide = e.bin("add", wide, e.bin("add", e.bin("sub", half, e.const(1, 64)), odd))
    else:
        noise = shift(e, "shl", e.zext(random, 64), e.const(32, 64))
        noise = shift(e, "lshr", noise, e.bin("sub", e.const(64, 64), by))
        wide = e.bin("add", wide, noise)
    kept = e.zext(shift(e, "lshr", wide, by), 32)
    base = e.select(low, e.const(0, 32), e.bin("sub", expo, e.const(1, 32)))
    return e.bin("add", e.bin("shl", base, e.const(s.man, 32)), kept)


def _narrow(s: Small, stochastic: bool) -> Lower:
    def lower(e: Emitter, n: Op, args: list[Value]) -> Value:
        x = args[0]
        mag = magnitude(e, F32, x)
        sign = e.bin("and", e.bin("lshr", x, e.const(32 - s.bits, 32)), e.const(s.sign, 32))
        bits = _magnitude_bits(e, s, mag, args[1] if stochastic else None)
        over = e.bin("or", e.icmp("ugt", bits, e.const(s.largest, 32)), e.icmp("uge", mag, e.const(F32.inf, 32)))
        zero = e.icmp("eq", bits, e.const(0, 32))
        signed = e.bin("or", bits, sign)
        result = e.select(zero, e.const(0, 32), signed) if s.fnuz else signed
        saturate = e.mode.saturate and s.bounded
        limit = e.const(s.largest if saturate else s.inf, 32)
        if saturate and s.keeps_inf:
            limit = e.select(e.icmp("uge", mag, e.const(F32.inf, 32)), e.const(s.inf, 32), limit)
        if saturate or not s.fnuz:
            limit = e.bin("or", limit, sign)
        nan = e.const(s.nan, 32) if s.fnuz else e.bin("or", e.const(s.nan, 32), sign)
        result = e.select(is_nan(e, F32, x), nan, e.select(over, limit, result))
        return e.zext(result, s.bits)

    return lower


# ---------------------------------------------------------------- normalised integers


def _norm(f: Float, scale: int, signed: bool) -> Lower:
    """The product is exact in f64; round to even, clamp; NaN to 0 by the saturating conversion."""
    def lower(e: Emitter, n: Op, args: list[Value]) -> Value:
        wide = widen(e, f, F64, flush_in(e, f, args[0]))
        times = e.raw(f"uitofp {e.ty(64)} {e.const(scale, 64).ref} to {e.wrap('double')}")
        product = native(e, F64, "roundeven", (native(e, F64, "fmul", (wide, e.as_bits(F64, times))),))
        v = saturated(e, F64, product, True, 32)
        low, high = e.const(-scale if signed else 0, 32), e.const(scale, 32)
        v = e.select(e.icmp("slt", v, low), low, v)
        return e.zext(e.select(e.icmp("sgt", v, high), high, v), 16)

    return lower


def _to_u8(e: Emitter, n: Op, args: list[Value]) -> Value:
    x = flush_in(e, F32, args[0])
    if n.round not in ("", "rtz"):
        x = native(e, F32, {"rne": "roundeven", "rup": "ceil", "rdn": "floor"}[n.round], (x,))
    return saturated(e, F32, x, False, 8)


# ---------------------------------------------------------------- V_TRIG_PREOP_F64

_WORDS = 44  # 2 / pi as 64-bit words, most significant first, zeros after its 1201 bits


def _table(e: Emitter) -> str:
    bits = two_over_pi() << (_WORDS * 64 - 1201)
    words = ", ".join(f"i64 {bits >> (64 * (_WORDS - 1 - i)) & (1 << 64) - 1}" for i in range(_WORDS))
    e.declarations["two_over_pi"] = f"@two_over_pi = private constant [{_WORDS} x i64] [{words}]"
    return "@two_over_pi"


def _trig_preop_lane(e: Emitter, x: Value, segment: Value) -> Value:
    """53 bits of 2 / pi from bit 53 * segment + what the exponent exceeds 1077, scaled to their place."""
    field = e.bin("and", e.bin("lshr", x, e.const(F64.man, 64)), e.const(0x7FF, 64))
    above = e.bin("sub", field, e.const(1077, 64))
    above = e.select(e.icmp("slt", above, e.const(0, 64)), e.const(0, 64), above)
    seg = e.bin("and", e.zext(segment, 64), e.const(31, 64))
    skip = e.bin("add", e.bin("mul", seg, e.const(53, 64)), above)
    index, offset = e.bin("lshr", skip, e.const(6, 64)), e.bin("and", skip, e.const(63, 64))
    table = _table(e)

    def word(i: Value) -> Value:
        return e.inst(f"load i64, ptr {e.raw(f'getelementptr i64, ptr {table}, i64 {i.ref}')}", 64)

    high = e.bin("shl", word(index), offset)
    low = shift(e, "lshr", word(e.bin("add", index, e.const(1, 64))), e.bin("sub", e.const(64, 64), offset))
    bits = e.bin("lshr", e.bin("or", high, low), e.const(11, 64))
    value = e.as_bits(F64, e.raw(f"uitofp i64 {bits.ref} to double"))
    big = e.select(e.icmp("uge", field, e.const(1968, 64)), e.const(128 - 53, 64), e.const(-53, 64))
    return ldexp_by_integers(e, F64, value, e.zext(e.bin("sub", big, skip), 32), "rne")


def _trig_preop(e: Emitter, n: Op, args: list[Value]) -> Value:
    if not e.lanes:
        return _trig_preop_lane(e, args[0], args[1])
    result = "poison"
    for lane in range(e.lanes):
        picks = [Value(e.raw(f"extractelement {e.ty(a.width)} {a.ref}, i32 {lane}"), a.width) for a in args]
        with e.scalarly():
            one = _trig_preop_lane(e, picks[0], picks[1])
        result = e.raw(f"insertelement {e.ty(64)} {result}, i64 {one.ref}, i32 {lane}")
    return Value(result, 64)


SMALL: Mapping[str, Lower] = {
    **{f"{name}_to_f32": _widen(s) for name, s in FORMATS.items()},
    **{f"f32_to_{name}": _narrow(s, False) for name, s in FORMATS.items()},
    **{f"f32_to_{name}_sr": _narrow(s, True) for name, s in STOCHASTIC.items()},
    "f16_to_snorm16": _norm(F16, 32767, True), "f16_to_unorm16": _norm(F16, 65535, False),
    "f32_to_snorm16": _norm(F32, 32767, True), "f32_to_unorm16": _norm(F32, 65535, False),
    "f32_to_u8": _to_u8,
    "trig_preop.f64": _trig_preop,
}
