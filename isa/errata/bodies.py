"""Replacement bodies that exist for several widths or formats, as functions of them.

Text in the notation of `isa/ir.py`; each function returns the statements of one row.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Format:
    """IEEE binary format: width, fraction bits, exponent bits (all in bits)."""

    name: str
    width: int
    fraction: int
    exponent: int

    @property
    def bias(self) -> int:
        return (1 << self.exponent - 1) - 1

    @property
    def infinity(self) -> int:
        return ((1 << self.exponent) - 1) << self.fraction

    @property
    def quiet_nan(self) -> int:
        return self.infinity | 1 << self.fraction - 1

    def const(self, bits: int) -> str:
        return f"{bits & ((1 << self.width) - 1):#x}:{self.width}"

    def place(self, name: str) -> str:
        return f"{name}:{self.width}"

    def magnitude(self, name: str) -> str:
        return f"(and {self.place(name)} {self.const((1 << self.width - 1) - 1)})"

    def exponent_of(self, name: str) -> str:
        return f"(zext:32 (extract:{self.exponent} {self.place(name)} {self.fraction}:32))"


F16, F32, F64 = Format("f16", 16, 10, 5), Format("f32", 32, 23, 8), Format("f64", 64, 52, 11)


def chain(width: int, *arms: tuple[str, str], last: str) -> str:
    """select(c1, v1, select(c2, v2, ... last))."""
    for cond, value in reversed(arms):
        last = f"(select:{width} {cond} {value} {last})"
    return last


def any_of(*conditions: str) -> str:
    x = conditions[0]
    for c in conditions[1:]:
        x = f"(or {x} {c})"
    return x


# ---------------------------------------------------------------- division


#: Facts say that a tiny numerator is marked; then no division of one would be right, and the text does not say it.
DIVIDES = "hardware's division sequence rounds correctly, for which LLVM relies on it; isa-spec/README.md where that agrees"


def div_scale(f: Format, scale: int, near: int, tiny: int) -> str:
    """V_DIV_SCALE, so that the sequence around it divides with one rounding: who is scaled alone has VCC set,
    which makes V_DIV_FMAS undo it. A quotient may be denormal when its exponent is that of the least normal."""
    s1, s2, zero = f.place("S1"), f.place("S2"), f.const(0)
    a1, s0 = f"a1:{f.width}", f.place("S0")
    up, down = (f"(ldexp.{f.name} {s0} {n & 0xFFFFFFFF}:32)" for n in (scale, -scale))
    denominator, numerator = f"(feq.{f.name} {s0} {s1})", f"(feq.{f.name} {s0} {s2})"
    apart = f"(sle {near}:32 (sub {f.exponent_of('S2')} {f.exponent_of('S1')}))"
    small = f"(sle (sub {f.exponent_of('S2')} {f.exponent_of('S1')}) {1 - f.bias & 0xFFFFFFFF}:32)"
    huge = f"(and (ult {f.const((2 * f.bias - 1) << f.fraction)} {a1}) (ult {a1} {f.const(f.infinity)}))"
    value = chain(
        f.width,
        ("zero:1", f.const(f.quiet_nan)),
        ("apart:1", f"(select:{f.width} {denominator} {up} {s0})"),
        (f"(isdenorm.{f.name} {s1})", up),
        ("(and huge:1 small:1)", f"(select:{f.width} {denominator} {down} {s0})"),
        ("huge:1", down),
        ("small:1", f"(select:{f.width} {numerator} {up} {s0})"),
        ("tiny:1", up),
        last=s0,
    )
    return (
        f"(set a1 {f.magnitude('S1')}) (set zero (or (feq.{f.name} {s1} {zero}) (feq.{f.name} {s2} {zero})))"
        f" (set apart {apart}) (set huge {huge}) (set small {small})"
        f" (set tiny (ule {f.exponent_of('S2')} {tiny}:32))"
        f" (setbit VCC {any_of('zero:1', 'apart:1', f'(and (not (isdenorm.{f.name} {s1})) small:1)')})"
        f" (set D0 {value})"
    )


def div_fmas(f: Format, scale: int) -> str:
    sources = " ".join(f.place(s) for s in ("S0", "S1", "S2"))
    by = f"(select:32 (ult {f.bias}:32 {f.exponent_of('S2')}) {scale}:32 {-scale & 0xFFFFFFFF}:32)"
    return f"(set D0 (select:{f.width} (bit VCC) (fma_scaled.{f.name} {sources} {by}) (fma.{f.name} {sources})))"


def div_fixup(f: Format, underflow: int | None) -> str:
    s0, s1, s2, zero, inf = (
        f.place("S0"),
        f.place("S1"),
        f.place("S2"),
        f.const(0),
        f.const(f.infinity),
    )
    sign = f"sign:{f.width}"
    zero1, zero2 = f"(feq.{f.name} {s1} {zero})", f"(feq.{f.name} {s2} {zero})"
    inf1, inf2 = f"(isinf.{f.name} {s1})", f"(isinf.{f.name} {s2})"
    arms = [
        (f"(isnan.{f.name} {s2})", f"(quiet.{f.name} {s2})"),
        (f"(isnan.{f.name} {s1})", f"(quiet.{f.name} {s1})"),
        (
            f"(or (and {zero1} {zero2}) (and {inf1} {inf2}))",
            f.const(f.quiet_nan | 1 << f.width - 1),
        ),
        (f"(or {zero1} {inf2})", f"(or {sign} {inf})"),
        (f"(or {inf1} {zero2})", sign),
    ]
    if underflow is not None:
        gap = f"(sub {f.exponent_of('S2')} {f.exponent_of('S1')})"
        arms.append((f"(slt {gap} {underflow & 0xFFFFFFFF:#x}:32)", sign))
    arms.append((f"(isnan.{f.name} {s0})", f"(or {sign} {inf})"))
    value = chain(f.width, *arms, last=f"(or {sign} {f.magnitude('S0')})")
    return f"(set sign (and (xor {s1} {s2}) {f.const(1 << f.width - 1)})) (set D0 {value})"


# ---------------------------------------------------------------- tests and rounding


#: floor(x + 1/2): the fraction is exact where it is near a half.
NEAREST_INTEGER = (
    "(set down (floor.f32 S0:32)) (set D0 (add (f32_to_i32 down:32)"
    " (zext:32 (fle.f32 0x3f000000:32 (fsub.f32 S0:32 down:32)))))"
)


NEAREST_BYTE = "programs measured on GFX9 and GFX7 hardware, which add no half before this conversion"


def pack_u8(into: str) -> str:
    """A byte of `into` is S0, rounded to the nearest and held within 0 and 255; S1 tells which."""
    return f"(set D0 (insert {into} (mul (zext:32 (trunc:2 S1:32)) 8:32) (f32_to_u8!rne S0:32)))"


def classify(f: Format, target: str, mask_bits: int) -> str:
    """V_CMP_CLASS: one bit of the mask S1 chosen by the class of S0; denormals never flushed."""
    x = f.place("S0")
    field = f"(extract:{f.exponent} {x} {f.fraction}:32)"
    full = (1 << f.exponent) - 1
    low = chain(
        32,
        (f"(eq {field} {full}:{f.exponent})", "2:32"),
        (f"(ne {field} 0:{f.exponent})", "3:32"),
        (f"(isdenorm.{f.name} {x})", "4:32"),
        last="5:32",
    )
    which = chain(
        32,
        (f"(issnan.{f.name} {x})", "0:32"),
        (f"(isqnan.{f.name} {x})", "1:32"),
        (f"(extract:1 {x} {f.width - 1}:32)", "negative:32"),
        last="(sub 11:32 negative:32)",
    )
    return f"(set negative {low}) (setbit {target} (extract:1 S1:{mask_bits} {which}))"


def frexp_exponent(f: Format, bits: int) -> str:
    """V_FREXP_EXP: e with |S0| = m * 2 ** e, m in [0.5, 1); 0 for zero, infinity and NaN."""
    field, w = f.exponent_of("S0"), f.width
    length = f"(sub {w}:{w} (clz {f.magnitude('S0')}))"
    denormal = f"(add {length} {f.const(1 - f.bias - f.fraction)})"
    narrow = {16: f"(sext:32 {denormal})", 32: denormal, 64: f"(trunc:32 {denormal})"}[w]
    value = chain(
        32,
        (
            f"(or (eq {f.magnitude('S0')} {f.const(0)}) (eq {field} {(1 << f.exponent) - 1}:32))",
            "0:32",
        ),
        (f"(eq {field} 0:32)", narrow),
        last=f"(sub {field} {f.bias - 1}:32)",
    )
    return f"(set D0 {value if bits == 32 else f'(trunc:{bits} {value})'})"


def unary(f: Format, op: str) -> str:
    return f"(set D0 ({op}.{f.name} {f.place('S0')}))"


# ---------------------------------------------------------------- integers that saturate


def _clamped(width: int, wrapped: str, saturated: str) -> str:
    return f"(set D0 (select:{width} CLAMP:1 {saturated} {wrapped}))"


def add_u(w: int) -> str:
    return f"(set sum (add S0:{w} S1:{w}))" + _clamped(
        w, f"sum:{w}", f"(select:{w} (ult sum:{w} S0:{w}) {(1 << w) - 1:#x}:{w} sum:{w})"
    )


def sub_u(w: int, a: str = "S0", b: str = "S1") -> str:
    return f"(set difference (sub {a}:{w} {b}:{w}))" + _clamped(
        w, f"difference:{w}", f"(select:{w} (ult {a}:{w} {b}:{w}) 0:{w} difference:{w})"
    )


def add_carry(carry_in: bool) -> str:
    """V_ADD_CO(_CI)_U32: with CLAMP all ones when a carry leaves."""
    exact = "(add (zext:64 S0:32) (zext:64 S1:32))"
    if carry_in:
        exact = f"(add {exact} (zext:64 (bit VCC)))"
    return (
        f"(set sum {exact}) (set carry (extract:1 sum:64 32:32)) (setbit VCC carry:1)"
        " (set D0 (select:32 (and CLAMP:1 carry:1) 0xffffffff:32 (trunc:32 sum:64)))"
    )


def sub_borrow(a: str, b: str, borrow_in: bool) -> str:
    """V_SUB(REV)_CO(_CI)_U32: with CLAMP zero when a borrow leaves."""
    exact = f"(sub (zext:64 {a}:32) (zext:64 {b}:32))"
    if borrow_in:
        exact = f"(sub {exact} (zext:64 (bit VCC)))"
    return (
        f"(set difference {exact}) (set borrow (extract:1 difference:64 63:32)) (setbit VCC borrow:1)"
        " (set D0 (select:32 (and CLAMP:1 borrow:1) 0:32 (trunc:32 difference:64)))"
    )


def _limit(w: int, negative: str) -> str:
    return f"(select:{w} {negative} {1 << w - 1:#x}:{w} {(1 << w - 1) - 1:#x}:{w})"


def add_i(w: int) -> str:
    r = f"sum:{w}"
    over = f"(slt (and (xor S0:{w} {r}) (xor S1:{w} {r})) 0:{w})"
    return f"(set sum (add S0:{w} S1:{w}))" + _clamped(
        w, r, f"(select:{w} {over} {_limit(w, f'(slt S0:{w} 0:{w})')} {r})"
    )


def sub_i(w: int) -> str:
    r = f"difference:{w}"
    over = f"(slt (and (xor S0:{w} S1:{w}) (xor S0:{w} {r})) 0:{w})"
    return f"(set difference (sub S0:{w} S1:{w}))" + _clamped(
        w, r, f"(select:{w} {over} {_limit(w, f'(slt S0:{w} 0:{w})')} {r})"
    )


def mad(width: int, extend: str, s0: str, s1: str, s2: str) -> str:
    """S0 * S1 + S2 in twice the width, then cut or saturated. extend: "zext" or "sext"."""
    d = 2 * width
    exact = f"(add (mul ({extend}:{d} {s0}) ({extend}:{d} {s1})) ({extend}:{d} {s2}))"
    return f"(set exact {exact}) (set D0 {saturate('exact', d, width, extend == 'sext')})"


def saturate(local: str, wide: int, width: int, is_signed: bool) -> str:
    """The low bits of a wide local, or with CLAMP its nearest value of the narrow type."""
    x = f"{local}:{wide}"
    if is_signed:
        top = f"{(1 << width - 1) - 1:#x}:{wide}"
        bottom = f"{(-1 << width - 1) & ((1 << wide) - 1):#x}:{wide}"
        near = (
            f"(select:{wide} (slt {x} {bottom}) {bottom} (select:{wide} (slt {top} {x}) {top} {x}))"
        )
    else:
        top = f"{(1 << width) - 1:#x}:{wide}"
        near = f"(select:{wide} (ult {top} {x}) {top} {x})"
    return f"(select:{width} CLAMP:1 (trunc:{width} {near}) (trunc:{width} {x}))"


def packed(op: str, extend: str, sources: int) -> str:
    """V_PK_{ADD,SUB,MAD}_{I,U}16: each half in 34 bits' worth of room (64), then cut or saturated."""
    text = ""
    for half, lo in (("high", 16), ("low", 0)):
        s = [f"({extend}:64 (extract:16 S{i}:32 {lo}:32))" for i in range(sources)]
        exact = f"(add (mul {s[0]} {s[1]}) {s[2]})" if op == "mad" else f"({op} {s[0]} {s[1]})"
        text += f"(set {half} {exact}) "
    negative = op == "sub" and extend == "zext"
    return (
        text
        + f"(set D0 (concat:32 {_half('high', extend, negative)} {_half('low', extend, negative)}))"
    )


def _half(local: str, extend: str, can_be_negative: bool) -> str:
    cut = saturate(local, 64, 16, extend == "sext")
    if can_be_negative:
        return f"(select:16 (and CLAMP:1 (slt {local}:64 0:64)) 0:16 {cut})"
    return cut


def dot_integer(bits: int, signs: bool) -> str:
    """V_DOT4/V_DOT8: sum of products of `bits`-wide fields plus S2. signs: NEG[i] makes source i signed."""
    terms, text = "(sext:64 S2:32)" if signs else "(zext:64 S2:32)", ""
    for lo in range(0, 32, bits):
        factor = []
        for i in (0, 1):
            x = f"(extract:{bits} S{i}:32 {lo}:32)"
            plain = f"(zext:64 {x})"
            factor.append(
                f"(select:64 (extract:1 NEG:32 {i}:32) (sext:64 {x}) {plain})" if signs else plain
            )
        terms = f"(add {terms} (mul {factor[0]} {factor[1]}))"
    return text + f"(set exact {terms}) (set D0 {saturate('exact', 64, 32, signs)})"


def _difference(a: str, b: str, width: int, skip_zero: bool) -> str:
    """|a - b| of unsigned fields, 64 bits; 0 where the reference b is 0 (the masked forms)."""
    x = f"(select:{width} (ult {b} {a}) (sub {a} {b}) (sub {b} {a}))"
    if skip_zero:
        x = f"(select:{width} (eq {b} 0:{width}) 0:{width} {x})"
    return f"(zext:64 {x})"


def _sum_of_differences(lo: int, bits_of_s0: int, width: int, skip_zero: bool) -> str:
    """Over the fields of S1, against those of S0 from bit `lo` on; 64 bits."""
    total = ""
    for at in range(0, 32, width):
        a = f"(extract:{width} S0:{bits_of_s0} {lo + at}:32)"
        b = f"(extract:{width} S1:32 {at}:32)" if width < 32 else "S1:32"
        term = _difference(a if width < 32 else "S0:32", b, width, skip_zero)
        total = f"(add {total} {term})" if total else term
    return total


def sad(width: int, *, skip_zero: bool = False, shift: int = 0) -> str:
    """V_SAD*, V_MSAD_U8: sum of absolute differences of `width`-bit fields plus S2, saturating with CLAMP."""
    total = _sum_of_differences(0, 32, width, skip_zero)
    if shift:
        total = f"(shl {total} {shift}:32)"
    return f"(set exact (add {total} (zext:64 S2:32))) (set D0 {saturate('exact', 64, 32, False)})"


def quad_sad(part: int, *, skip_zero: bool) -> str:
    """V_QSAD_PK, V_MQSAD: four sums, of S0 shifted by a byte each, in parts of `part` bits."""
    text, value = "", ""
    for i in range(4):
        total = _sum_of_differences(8 * i, 64, 8, skip_zero)
        accumulator = f"(zext:64 (extract:{part} S2:{4 * part} {i * part}:32))"
        text += f"(set x{i} (add {total} {accumulator})) "
        one = saturate(f"x{i}", 64, part, False)
        value = f"(concat:{part * (i + 1)} {one} {value})" if value else one
    return text + f"(set D0 {value})"


# ---------------------------------------------------------------- bytes


def lerp_u8() -> str:
    """Each byte: (a + b + bit 0 of c) >> 1, in nine bits."""
    parts = []
    for lo in (24, 16, 8, 0):
        a, b = (f"(zext:16 (extract:8 S{i}:32 {lo}:32))" for i in (0, 1))
        rounding = f"(zext:16 (extract:1 S2:32 {lo}:32))"
        parts.append(f"(extract:8 (add (add {a} {b}) {rounding}) 1:32)")
    high = f"(concat:16 {parts[0]} {parts[1]})"
    return f"(set D0 (concat:32 {high} (concat:16 {parts[2]} {parts[3]})))"


def perm_b32() -> str:
    """Each selector byte: 0..7 a byte of {S0, S1}, 8..11 the sign of byte 1, 3, 5, 7, 12 zero, else ones."""
    parts = []
    for lo in (24, 16, 8, 0):
        sel = f"(zext:32 (extract:8 S2:32 {lo}:32))"
        byte = f"(extract:8 data:64 (shl {sel} 3:32))"
        sign = f"(sext:8 (extract:1 data:64 (sub (shl {sel} 4:32) 113:32)))"
        parts.append(
            chain(
                8,
                (f"(ult {sel} 8:32)", byte),
                (f"(ult {sel} 12:32)", sign),
                (f"(eq {sel} 12:32)", "0:8"),
                last="255:8",
            )
        )
    high = f"(concat:16 {parts[0]} {parts[1]})"
    return f"(set data (concat:64 S0:32 S1:32)) (set D0 (concat:32 {high} (concat:16 {parts[2]} {parts[3]})))"


# ---------------------------------------------------------------- mixed precision


def fma_mix(result: str) -> str:
    """V_FMA_MIX*: OPSEL_HI[i] takes source i as f16 (OPSEL[i]: its high half), NEG_HI[i] is abs, NEG[i] neg."""
    text = ""
    for i in range(3):
        half = (
            f"(select:16 (extract:1 OPSEL:32 {i}:32) (extract:16 S{i}:32 16:32) (trunc:16 S{i}:32))"
        )
        text += (
            f"(set x{i} (select:32 (extract:1 OPSEL_HI:32 {i}:32) (f16_to_f32 {half}) S{i}:32)) "
        )
        text += f"(set x{i} (select:32 (extract:1 NEG_HI:32 {i}:32) (and x{i}:32 0x7fffffff:32) x{i}:32)) "
        text += (
            f"(set x{i} (select:32 (extract:1 NEG:32 {i}:32) (xor x{i}:32 0x80000000:32) x{i}:32)) "
        )
    return text + result.replace("FMA", "(fma.f32 x0:32 x1:32 x2:32)")


def dot2_acc(convert: str, accumulator: str) -> str:
    text = f"(set sum {accumulator})"
    for lo in (0, 16):
        a, b = (f"({convert} (extract:16 S{i}:32 {lo}:32))" for i in (0, 1))
        text += f" (set sum (fadd.f32 sum:32 (fmul.f32 {a} {b})))"
    return text + " (set D0 sum:32)"


# ---------------------------------------------------------------- across lanes


def gather(source_lane: str, prepare: str = "", *, inactive: bool = False) -> str:
    """DS data exchange, wave scope: lane i gets the DATA register of lane `j` (0 when j is inactive,
    unless `inactive` lanes are read as well).

    SRC0, SRC1, VDST: register numbers of ADDR, DATA0 and the destination. `source_lane` computes j.
    """
    fetch = "(setelem result i:32 (vgpr SRC1:32 j:32))"
    if not inactive:
        fetch = f"(if (extract:1 EXEC:64 j:32) ({fetch}))"
    return (
        f"(array result 64 32) {prepare}"
        f" (for i 0:32 (sub LANES:32 1:32) ((set j {source_lane}) {fetch}))"
        " (for i 0:32 (sub LANES:32 1:32) ((if (extract:1 EXEC:64 i:32) ((setvgpr VDST:32 (elem:32 result i:32) i:32)))))"
    )


def permlane(other_row: bool) -> str:
    """V_PERMLANE16/X16: nibble i % 16 of {S2, S1} names the source lane in the lane's own row of 16,
    or in the other row of its pair. OPSEL[0] reads inactive lanes too; without it such a lane
    gives 0 with OPSEL[1], else the destination keeps its value."""
    row = "(and i:32 48:32)"
    if other_row:
        row = f"(xor {row} 16:32)"
    lane = f"(or {row} (zext:32 (extract:4 choice:64 (shl (and i:32 15:32) 2:32))))"
    return (
        "(array result 64 32) (array valid 64 1) (set choice (concat:64 S2:32 S1:32))"
        f" (for i 0:32 (sub LANES:32 1:32) ((set j {lane}) (setelem result i:32 (vgpr SRC0:32 j:32))"
        " (setelem valid i:32 (or (extract:1 OPSEL:32 0:32) (extract:1 EXEC:64 j:32)))))"
        " (for i 0:32 (sub LANES:32 1:32) ((if (and (extract:1 EXEC:64 i:32)"
        " (or (elem:1 valid i:32) (extract:1 OPSEL:32 1:32)))"
        " ((setvgpr VDST:32 (select:32 (elem:1 valid i:32) (elem:32 result i:32) 0:32) i:32)))))"
    )


WAVE_LANE = "(and (lshr (add (vgpr SRC0:32 i:32) OFFSET:32) 2:32) (sub LANES:32 1:32))"
HALF_WAVE_LANE = "(or (and i:32 32:32) (and (lshr (add (vgpr SRC0:32 i:32) OFFSET:32) 2:32) 31:32))"


def scatter(target_lane: str = HALF_WAVE_LANE) -> str:
    """DS_PERMUTE: active lane i sends its DATA to `target_lane` of its own ADDR; the highest sender wins."""
    return (
        "(array result 64 32)"
        " (for i 0:32 (sub LANES:32 1:32) ((if (extract:1 EXEC:64 i:32)"
        f" ((setelem result {target_lane} (vgpr SRC1:32 i:32))))))"
        " (for i 0:32 (sub LANES:32 1:32) ((if (extract:1 EXEC:64 i:32) ((setvgpr VDST:32 (elem:32 result i:32) i:32)))))"
    )


def swizzle() -> str:
    """DS_SWIZZLE_B32: offset 0xE000.. bit-reversed order, 0xC000.. rotation, 0x8000.. quad
    permutation, else and/or/xor masks; always within 32 lanes."""
    low, mask = "(and i:32 31:32)", "(and OFFSET:32 31:32)"
    fft = f"(or (lshr (lshr (bitrev {low}) 27:32) (popcnt {mask})) (and i:32 {mask}))"
    count = "(and (lshr OFFSET:32 5:32) 31:32)"
    turned = f"(select:32 (extract:1 OFFSET:32 10:32) (sub i:32 {count}) (add i:32 {count}))"
    rotate = f"(or (and i:32 {mask}) (and {turned} (and (not {mask}) 31:32)))"
    quad = "(or (and i:32 28:32) (zext:32 (extract:2 OFFSET:32 (shl (and i:32 3:32) 1:32))))"
    masks = f"(xor (or (and i:32 {mask}) {count}) (and (lshr OFFSET:32 10:32) 31:32))"
    lane = chain(
        32,
        ("(ule 0xe000:32 OFFSET:32)", fft),
        ("(ule 0xc000:32 OFFSET:32)", rotate),
        ("(ule 0x8000:32 OFFSET:32)", quad),
        last=masks,
    )
    return gather(f"(or (and i:32 32:32) {lane})").replace("SRC1", "SRC0")


# ---------------------------------------------------------------- program control

TARGET = "(add PC:64 (add (shl (sext:64 SIMM16:16) 2:32) 4:64))"


NEXT = "(add PC:64 4:64)"


def branch(condition: str = "") -> str:
    target = f"(select:64 {condition} {TARGET} {NEXT})" if condition else TARGET
    return f"(set PC {target})"


def set_register(value: str) -> str:
    """S_SETREG: bits [offset + size - 1 : offset] of a hardware register."""
    return (
        "(set id (zext:32 (trunc:6 SIMM16:16)))"
        " (set at (zext:32 (extract:5 SIMM16:16 6:32)))"
        " (set size (add (zext:32 (extract:5 SIMM16:16 11:32)) 1:32))"
        " (set mask (shl (sub (shl 1:32 size:32) 1:32) at:32))"
        f" (sethwreg id:32 (or (and (hwreg id:32) (not mask:32)) (and (shl {value} at:32) mask:32)))"
    )


def set_mode(lo: int) -> str:
    """Four bits of MODE (hardware register 1) from SIMM16[3:0]."""
    return f"(sethwreg 1:32 (insert (hwreg 1:32) {lo}:32 (trunc:4 SIMM16:16)))"


def counter(op: str) -> str:
    """DS_APPEND / DS_CONSUME: add or subtract the number of active lanes at LDS[M0 + offset]."""
    return (
        "(set at (add (and M0:32 0xffff:32) OFFSET:32)) (set old (load:32 LDS at:32))"
        f" (store LDS at:32 ({op} old:32 (trunc:32 (popcnt EXEC:64))))"
        " (for i 0:32 (sub LANES:32 1:32) ((if (extract:1 EXEC:64 i:32) ((setvgpr VDST:32 old:32 i:32)))))"
    )


def per_quad(value: str, prepare: str = "") -> str:
    """VDST of lane i = value, for all four lanes of every quad that has an active one; wave scope."""
    quad = "(extract:4 EXEC:64 (and i:32 60:32))"
    return f"(for i 0:32 (sub LANES:32 1:32) ((if (ne {quad} 0:4) ({prepare} (setvgpr VDST:32 {value} i:32)))))"
