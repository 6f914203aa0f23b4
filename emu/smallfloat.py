"""Conversions to and from floats of 8, 6 and 4 bits, normalised integers, and the bits of 2 / pi.

Formats: fp8 = E4M3 (OCP: no infinity, 0x7f is NaN), bf8 = E5M2 (OCP: IEEE-like), *_fnuz = the forms
         without infinities and -0, bias one larger, NaN 0x80; fp6 = E2M3, bf6 = E3M2, fp4 = E2M1: numbers
         only, what is too large or no number gives the largest.
Source:  OCP 8-bit floating point specification 1.0; OCP microscaling formats 1.0; README "Hardware facts"
         of the ISA facts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from stuntgpu.emu import softfloat as sf


@dataclass(frozen=True, slots=True)
class Small:
    """man: fraction bits; largest: bits of the largest finite number; inf: bits that overflow gives;
    bits: of the whole, the sign on top. FP16_OVFL makes an overflow the largest number where `bounded`, and an
    infinity too unless `keeps_inf`."""

    name: str
    man: int
    bias: int
    largest: int
    inf: int
    nan: int
    fnuz: bool = False
    bits: int = 8
    bounded: bool = True
    keeps_inf: bool = False

    @property
    def sign(self) -> int:
        return 1 << (self.bits - 1)

    @property
    def qmin(self) -> int:
        return 1 - self.bias - self.man


_ROWS = (
    Small("fp8", 3, 7, 0x7E, 0x7F, 0x7F),
    Small("bf8", 2, 15, 0x7B, 0x7C, 0x7E),
    Small("fp8_fnuz", 3, 8, 0x7F, 0x80, 0x80, True),
    Small("bf8_fnuz", 2, 16, 0x7F, 0x80, 0x80, True),
    Small("fp6", 3, 1, 0x1F, 0x1F, 0x1F, bits=6),
    Small("bf6", 2, 3, 0x1F, 0x1F, 0x1F, bits=6),
    Small("fp4", 1, 1, 7, 7, 7, bits=4),
)
SMALL = {row.name: row for row in _ROWS}
#: Formats of stochastic rounding: those above, and 16-bit ones.
STOCHASTIC = SMALL | {
    "f16": Small("f16", 10, 15, 0x7BFF, 0x7C00, 0x7E00, bits=16, keeps_inf=True),
    "bf16": Small("bf16", 7, 127, 0x7F7F, 0x7F80, 0x7FC0, bits=16, bounded=False),
}

_KEEP = sf.Env()


def widen(s: Small, a: int) -> int:
    """To f32, exact, denormals kept; a NaN gives the default NaN with its sign (fnuz: positive)."""
    if s.fnuz and a == 0x80:
        return sf.F32.nan
    sign, magnitude = a & s.sign, a & (s.sign - 1)
    top = sf.F32.sign if sign else 0
    if not s.fnuz and magnitude > s.largest:
        return top | (sf.F32.inf if magnitude == s.inf != s.nan else sf.F32.nan)
    biased, fraction = magnitude >> s.man, magnitude & ((1 << s.man) - 1)
    if biased == 0:
        return sf.rounded(sf.F32, int(sign > 0), fraction, s.qmin, _KEEP)
    return sf.rounded(sf.F32, int(sign > 0), fraction | 1 << s.man, s.qmin + biased - 1, _KEEP)


def narrow(s: Small, a: int, random: int | None, saturate: bool) -> int:
    """From f32, to nearest even, or stochastically with `random` (32 bits) added below the kept bits.

    Overflow gives inf (fp8: NaN), or the largest number when `saturate` (MODE.FP16_OVFL)."""
    sign = s.sign if a >= sf.F32.sign else 0
    if sf.is_nan(sf.F32, a):
        return s.nan if s.fnuz else s.nan | sign
    if sf.is_inf(sf.F32, a):
        return _beyond(s, sign, saturate and not s.keeps_inf)
    _, m, e = sf.decode(sf.F32, a)
    bits = _rounded(s, m, e, random)
    if bits > s.largest:
        return _beyond(s, sign, saturate)
    return bits if s.fnuz and not bits else bits | sign


def _beyond(s: Small, sign: int, saturate: bool) -> int:
    if saturate and s.bounded:
        return s.largest | sign
    return s.inf if s.fnuz else s.inf | sign


def _rounded(s: Small, m: int, e: int, random: int | None) -> int:
    """Magnitude bits of m * 2 ** e; may exceed the largest."""
    if m == 0:
        return 0
    q = max(e + m.bit_length() - 1 - s.man, s.qmin)
    shift = q - e  # f32 has more fraction bits and a wider range: positive
    if random is None:
        kept = sf.integer_magnitude(0, m, -shift, "rne")
    else:
        kept = (m + (random >> (32 - shift) if shift <= 32 else random << (shift - 32))) >> shift
    return ((q - s.qmin) << s.man) + kept


def to_norm(f: sf.Format, a: int, scale: int, is_signed: bool, env: sf.Env) -> int:
    """round(a * scale) to nearest even as 16 bits, clamped to [-scale, scale] or [0, scale]; NaN gives 0."""
    a = sf.flushed(f, a, env.flush_in)
    if sf.is_nan(f, a):
        return 0
    low = -scale if is_signed else 0
    if sf.is_inf(f, a):
        return (scale if a < f.sign else low) & 0xFFFF
    sign, m, e = sf.decode(f, a)
    value = sf.integer_magnitude(sign, m * scale, e, "rne")
    return max(low, min(scale, -value if sign else value)) & 0xFFFF


# ---------------------------------------------------------------- 2 / pi

_TWO_OVER_PI_BITS = 1201


@lru_cache(maxsize=1)
def two_over_pi() -> int:
    """floor(2 / pi * 2 ** 1201), by Machin's formula: pi / 4 = 4 atan(1/5) - atan(1/239)."""
    guard = 64
    one = 1 << (_TWO_OVER_PI_BITS + guard)

    def atan_inverse(n: int) -> int:
        term, total, k = one // n, 0, 1
        while term:
            total += term // k if k % 4 == 1 else -(term // k)
            term //= n * n
            k += 2
        return total

    pi = 4 * (4 * atan_inverse(5) - atan_inverse(239))
    return ((2 * one << (_TWO_OVER_PI_BITS + guard)) // pi) >> guard


def trig_preop(a: int, segment: int) -> int:
    """V_TRIG_PREOP_F64: 53 bits of 2 / pi, the first 53 * segment (and what a's exponent exceeds 1077) skipped."""
    biased = a >> sf.F64.man & 0x7FF
    skip = 53 * (segment & 31) + max(0, biased - 1077)
    low = _TWO_OVER_PI_BITS - 53 - skip
    bits = two_over_pi() >> low if low >= 0 else two_over_pi() << -low
    scale = -53 - skip + (128 if biased >= 1968 else 0)
    return sf.rounded(sf.F64, 0, bits & ((1 << 53) - 1), scale, _KEEP)
