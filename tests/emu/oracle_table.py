"""The meaning of vector instructions as LLVM IR, a line each: names, signature, body.

The signatures are those of tests/emu/oracle_llvm.py; arguments are %a, %b, %c ... in the order of the operands,
the result is %r. A line that starts with `*hfd` stands for one line a float kind, with {F} the name's suffix,
{k} the kind, {t} the IR type, {i} the suffix of intrinsics; `*sw` and the like are the same for integers
(there {n} is the width and {q} the bits of shift counts that are looked at).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_KINDS = {
    "h": {"F": "F16", "k": "h", "t": "double", "i": "f64"}, "f": {"F": "F32", "k": "f", "t": "float", "i": "f32"},
    "d": {"F": "F64", "k": "d", "t": "double", "i": "f64"},
    "s": {"n": "16", "k": "s", "t": "i16", "q": "15"}, "w": {"n": "32", "k": "w", "t": "i32", "q": "31"},
    "q": {"n": "64", "k": "q", "t": "i64", "q": "63"},
}  # fmt: skip

#: Helpers of several bodies, once for each float type. The family of min is written once more for max.
_QUIETING = """
define internal {t} @quiet.{t}({t} %a) alwaysinline {{
  %i = bitcast {t} %a to {w}
  %q = or {w} %i, {quiet}
  %r = bitcast {w} %q to {t}
  ret {t} %r
}}
define internal i1 @signals.{t}({t} %a) alwaysinline {{
  %n = fcmp uno {t} %a, %a
  %i = bitcast {t} %a to {w}
  %b = and {w} %i, {quiet}
  %z = icmp eq {w} %b, 0
  %r = and i1 %n, %z
  ret i1 %r
}}
define internal {t} @mul0.{t}({t} %a, {t} %b) alwaysinline {{
  %x = fcmp oeq {t} %a, 0.0
  %y = fcmp oeq {t} %b, 0.0
  %z = or i1 %x, %y
  %p = fmul {t} %a, %b
  %r = select i1 %z, {t} 0.0, {t} %p
  ret {t} %r
}}
define internal {t} @nan.in.min.max({t} %a, {t} %b) alwaysinline {{
  %sa = call i1 @signals.{t}({t} %a)
  %sb = call i1 @signals.{t}({t} %b)
  %na = fcmp uno {t} %a, %a
  %q = select i1 %na, {t} %a, {t} %b
  %s = select i1 %sb, {t} %b, {t} %q
  %c = select i1 %sa, {t} %a, {t} %s
  %r = call {t} @quiet.{t}({t} %c)
  ret {t} %r
}}
"""
#: @min: numbers only. @minlast, @minfirst, @minquiet: a number beats a NaN; of two NaNs the second, the first as it is,
#: the first quieted. @minimum: a NaN beats numbers, a signalling one other NaNs.
_EXTREMES = """
define internal {t} @min.{t}({t} %a, {t} %b) alwaysinline {{
  %l = fcmp {less} {t} %a, %b
  %e = fcmp oeq {t} %a, %b
  %ai = bitcast {t} %a to {w}
  %bi = bitcast {t} %b to {w}
  %oi = {join} {w} %ai, %bi
  %o = bitcast {w} %oi to {t}
  %p = select i1 %l, {t} %a, {t} %b
  %r = select i1 %e, {t} %o, {t} %p
  ret {t} %r
}}
define internal {t} @minlast.{t}({t} %a, {t} %b) alwaysinline {{
  %x = fcmp uno {t} %a, %a
  %y = fcmp uno {t} %b, %b
  %m = call {t} @min.{t}({t} %a, {t} %b)
  %n = select i1 %y, {t} %a, {t} %m
  %r = select i1 %x, {t} %b, {t} %n
  ret {t} %r
}}
define internal {t} @minfirst.{t}({t} %a, {t} %b) alwaysinline {{
  %r = call {t} @minlast.{t}({t} %b, {t} %a)
  ret {t} %r
}}
define internal {t} @minquiet.{t}({t} %a, {t} %b) alwaysinline {{
  %x = fcmp uno {t} %a, %a
  %y = fcmp uno {t} %b, %b
  %z = and i1 %x, %y
  %q = call {t} @quiet.{t}({t} %a)
  %m = call {t} @minlast.{t}({t} %a, {t} %b)
  %r = select i1 %z, {t} %q, {t} %m
  ret {t} %r
}}
define internal {t} @minimum.{t}({t} %a, {t} %b) alwaysinline {{
  %x = fcmp uno {t} %a, %b
  %n = call {t} @nan.in.min.max({t} %a, {t} %b)
  %m = call {t} @min.{t}({t} %a, {t} %b)
  %r = select i1 %x, {t} %n, {t} %m
  ret {t} %r
}}
"""
#: The median as the greater of the two others where one argument equals the greatest; with a NaN the least number.
_MEDIAN = """
define internal {t} @med{how}.{t}({t} %a, {t} %b, {t} %c) alwaysinline {{
  %x = fcmp uno {t} %a, %b
  %y = fcmp uno {t} %c, %c
  %n = or i1 %x, %y
  %least0 = call {t} @min{how}.{t}({t} %a, {t} %b)
  %least = call {t} @min{how}.{t}({t} %least0, {t} %c)
  %ab = call {t} @max{how}.{t}({t} %a, {t} %b)
  %ac = call {t} @max{how}.{t}({t} %a, {t} %c)
  %bc = call {t} @max{how}.{t}({t} %b, {t} %c)
  %most = call {t} @max{how}.{t}({t} %ab, {t} %c)
  %is_a = fcmp oeq {t} %most, %a
  %is_b = fcmp oeq {t} %most, %b
  %p = select i1 %is_b, {t} %ac, {t} %ab
  %q = select i1 %is_a, {t} %bc, {t} %p
  %r = select i1 %n, {t} %least, {t} %q
  ret {t} %r
}}
"""


def _float_helpers() -> str:
    out = ""
    for t, w, quiet in (("float", "i32", 1 << 22), ("double", "i64", 1 << 51)):
        out += _QUIETING.format(t=t, w=w, quiet=quiet).replace("@nan.in.min.max(", f"@nan.in.min.max.{t}(")
        least = _EXTREMES.format(t=t, w=w, less="olt", join="or")
        most = _EXTREMES.format(t=t, w=w, less="ogt", join="and").replace("@min", "@max")
        out += (least + most).replace("@nan.in.min.max(", f"@nan.in.min.max.{t}(")
        out += "".join(_MEDIAN.format(t=t, how=how) for how in ("first", "last", "quiet"))
    return out


_HELPERS = """
define internal {t} @min.{t}({t} %a, {t} %b) alwaysinline {{
  %x = fcmp uno {t} %a, %a
  %y = fcmp uno {t} %b, %b
  %l = fcmp olt {t} %a, %b
  %e = fcmp oeq {t} %a, %b
  %ai = bitcast {t} %a to {w}
  %bi = bitcast {t} %b to {w}
  %oi = or {w} %ai, %bi
  %o = bitcast {w} %oi to {t}
  %p = select i1 %l, {t} %a, {t} %b
  %q = select i1 %e, {t} %o, {t} %p
  %s = select i1 %y, {t} %a, {t} %q
  %r = select i1 %x, {t} %b, {t} %s
  ret {t} %r
}}
define internal {t} @max.{t}({t} %a, {t} %b) alwaysinline {{
  %x = fcmp uno {t} %a, %a
  %y = fcmp uno {t} %b, %b
  %l = fcmp ogt {t} %a, %b
  %e = fcmp oeq {t} %a, %b
  %ai = bitcast {t} %a to {w}
  %bi = bitcast {t} %b to {w}
  %oi = and {w} %ai, %bi
  %o = bitcast {w} %oi to {t}
  %p = select i1 %l, {t} %a, {t} %b
  %q = select i1 %e, {t} %o, {t} %p
  %s = select i1 %y, {t} %a, {t} %q
  %r = select i1 %x, {t} %b, {t} %s
  ret {t} %r
}}
define internal {t} @med3.{t}({t} %a, {t} %b, {t} %c) alwaysinline {{
  %x = fcmp uno {t} %a, %b
  %y = fcmp uno {t} %c, %c
  %n = or i1 %x, %y
  %lo = call {t} @min.{t}({t} %a, {t} %b)
  %hi = call {t} @max.{t}({t} %a, {t} %b)
  %least = call {t} @min.{t}({t} %lo, {t} %c)
  %m = call {t} @min.{t}({t} %hi, {t} %c)
  %med = call {t} @max.{t}({t} %lo, {t} %m)
  %r = select i1 %n, {t} %least, {t} %med
  ret {t} %r
}}
define internal {t} @mul0.{t}({t} %a, {t} %b) alwaysinline {{
  %x = fcmp oeq {t} %a, 0.0
  %y = fcmp oeq {t} %b, 0.0
  %z = or i1 %x, %y
  %p = fmul {t} %a, %b
  %r = select i1 %z, {t} 0.0, {t} %p
  ret {t} %r
}}
"""

_HELPERS = """
define internal i32 @byte.distance(i32 %a, i32 %b, i32 %at) alwaysinline {
  %as = lshr i32 %a, %at
  %bs = lshr i32 %b, %at
  %x = and i32 %as, 255
  %y = and i32 %bs, 255
  %d = sub i32 %x, %y
  %r = call i32 @llvm.abs.i32(i32 %d, i1 false)
  ret i32 %r
}
define internal i32 @snorm(float %a) alwaysinline {
  %d = fpext float %a to double
  %x = fmul double %d, 32767.0
  %y = call double @llvm.roundeven.f64(double %x)
  %i = call i32 @llvm.fptosi.sat.i32.f64(double %y)
  %l = call i32 @llvm.smax.i32(i32 %i, i32 -32767)
  %r = call i32 @llvm.smin.i32(i32 %l, i32 32767)
  ret i32 %r
}
define internal i32 @unorm(float %a) alwaysinline {
  %d = fpext float %a to double
  %x = fmul double %d, 65535.0
  %y = call double @llvm.roundeven.f64(double %x)
  %i = call i32 @llvm.fptoui.sat.i32.f64(double %y)
  %r = call i32 @llvm.umin.i32(i32 %i, i32 65535)
  ret i32 %r
}
define internal i32 @cube.axis(float %a, float %b, float %c) alwaysinline {
  %x = call float @llvm.fabs.f32(float %a)
  %y = call float @llvm.fabs.f32(float %b)
  %z = call float @llvm.fabs.f32(float %c)
  %zx = fcmp oge float %z, %x
  %zy = fcmp oge float %z, %y
  %is_z = and i1 %zx, %zy
  %is_y = fcmp oge float %y, %x
  %p = zext i1 %is_y to i32
  %r = select i1 %is_z, i32 2, i32 %p
  ret i32 %r
}
define internal i32 @sad(i32 %a, i32 %b) alwaysinline {
  %d0 = call i32 @byte.distance(i32 %a, i32 %b, i32 0)
  %d1 = call i32 @byte.distance(i32 %a, i32 %b, i32 8)
  %d2 = call i32 @byte.distance(i32 %a, i32 %b, i32 16)
  %d3 = call i32 @byte.distance(i32 %a, i32 %b, i32 24)
  %s0 = add i32 %d0, %d1
  %s1 = add i32 %s0, %d2
  %r = add i32 %s1, %d3
  ret i32 %r
}
define internal i32 @masked.distance(i32 %a, i32 %b, i32 %at) alwaysinline {
  %d = call i32 @byte.distance(i32 %a, i32 %b, i32 %at)
  %bs = lshr i32 %b, %at
  %y = and i32 %bs, 255
  %z = icmp eq i32 %y, 0
  %r = select i1 %z, i32 0, i32 %d
  ret i32 %r
}
define internal i32 @msad(i32 %a, i32 %b) alwaysinline {
  %d0 = call i32 @masked.distance(i32 %a, i32 %b, i32 0)
  %d1 = call i32 @masked.distance(i32 %a, i32 %b, i32 8)
  %d2 = call i32 @masked.distance(i32 %a, i32 %b, i32 16)
  %d3 = call i32 @masked.distance(i32 %a, i32 %b, i32 24)
  %s0 = add i32 %d0, %d1
  %s1 = add i32 %s0, %d2
  %r = add i32 %s1, %d3
  ret i32 %r
}
define internal i32 @perm.byte(i64 %data, i32 %sel, i32 %at) alwaysinline {
  %s0 = lshr i32 %sel, %at
  %s = and i32 %s0, 255
  %low = and i32 %s, 7
  %b3 = shl i32 %low, 3
  %b = zext i32 %b3 to i64
  %d0 = lshr i64 %data, %b
  %d1 = trunc i64 %d0 to i32
  %d = and i32 %d1, 255
  %n0 = and i32 %s, 3
  %n1 = shl i32 %n0, 4
  %n2 = add i32 %n1, 15
  %n = zext i32 %n2 to i64
  %g0 = lshr i64 %data, %n
  %g1 = trunc i64 %g0 to i1
  %g2 = sext i1 %g1 to i32
  %g = and i32 %g2, 255
  %plain = icmp ult i32 %s, 8
  %signs = icmp ult i32 %s, 12
  %zero = icmp eq i32 %s, 12
  %x = select i1 %zero, i32 0, i32 255
  %y = select i1 %signs, i32 %g, i32 %x
  %z = select i1 %plain, i32 %d, i32 %y
  %r = shl i32 %z, %at
  ret i32 %r
}
define internal i32 @dot4(<4 x i32> %a, <4 x i32> %b) alwaysinline {
  %p = mul <4 x i32> %a, %b
  %r = call i32 @llvm.vector.reduce.add.v4i32(<4 x i32> %p)
  ret i32 %r
}
define internal i32 @dot8(<8 x i32> %a, <8 x i32> %b) alwaysinline {
  %p = mul <8 x i32> %a, %b
  %r = call i32 @llvm.vector.reduce.add.v8i32(<8 x i32> %p)
  ret i32 %r
}
define internal i1 @class(i64 %a, i64 %exponent, i64 %fraction, i64 %quiet, i64 %sign, i32 %mask) alwaysinline {
  %e = and i64 %a, %exponent
  %f = and i64 %a, %fraction
  %s = and i64 %a, %sign
  %neg = icmp ne i64 %s, 0
  %top = icmp eq i64 %e, %exponent
  %low = icmp eq i64 %e, 0
  %none = icmp eq i64 %f, 0
  %qb = and i64 %f, %quiet
  %qn = icmp ne i64 %qb, 0
  %inf = select i1 %neg, i32 4, i32 512
  %nan = select i1 %qn, i32 2, i32 1
  %zero = select i1 %neg, i32 32, i32 64
  %tiny = select i1 %neg, i32 16, i32 128
  %norm = select i1 %neg, i32 8, i32 256
  %x = select i1 %none, i32 %inf, i32 %nan
  %y = select i1 %none, i32 %zero, i32 %tiny
  %z = select i1 %low, i32 %y, i32 %norm
  %c = select i1 %top, i32 %x, i32 %z
  %m = and i32 %c, %mask
  %r = icmp ne i32 %m, 0
  ret i1 %r
}
"""

PRELUDE = _float_helpers() + _HELPERS

_FLOATS = """
*hfd V_ADD_{F}                     | {k}{k}:{k}! | %r = fadd {t} %a, %b
*hf V_SUB_{F}                      | {k}{k}:{k}! | %r = fsub {t} %a, %b
*hf V_SUBREV_{F}                   | {k}{k}:{k}^ | %r = fsub {t} %b, %a
*hfd V_MUL_{F}                     | {k}{k}:{k}! | %r = fmul {t} %a, %b
*hfd V_FMA_{F}                     | {k}{k}{k}:{k}! | %r = call {t} @llvm.fma.{i}({t} %a, {t} %b, {t} %c)
*hfd V_FMAC_{F}                    | {k}{k}+{k}:{k}! | %r = call {t} @llvm.fma.{i}({t} %a, {t} %b, {t} %c)
V_MUL_LEGACY_F32, V_MUL_DX9_ZERO_F32 | ff:f! | %r = call float @mul0.float(float %a, float %b)
V_FMA_LEGACY_F16                   | hhh:h! | %r = call double @llvm.fma.f64(double %a, double %b, double %c)
V_ADD_F32 clamp@gfx12              | ff:f | %s = fadd float %a, %b; %l = call float @llvm.maxnum.f32(float %s, float 0.0); %r = call float @llvm.minnum.f32(float %l, float 1.0)
V_FMA_MIX_F32 op_sel_hi:[1,1,1], V_MAD_MIX_F32 op_sel_hi:[1,1,1] | hhh:f! | %x = fptrunc double %a to float; %y = fptrunc double %b to float; %z = fptrunc double %c to float; %r = call float @llvm.fma.f32(float %x, float %y, float %z)
*hfd V_FREXP_MANT_{F}              | {k}:{k}~ | %s = call {{ {t}, i32 }} @llvm.frexp.{i}.i32({t} %a); %m = extractvalue {{ {t}, i32 }} %s, 0; %d = fsub {t} %a, %a; %o = fcmp uno {t} %d, %d; %r = select i1 %o, {t} %a, {t} %m
*fd V_FREXP_EXP_I32_{F}            | {k}:w~ | %s = call {{ {t}, i32 }} @llvm.frexp.{i}.i32({t} %a); %m = extractvalue {{ {t}, i32 }} %s, 1; %d = fsub {t} %a, %a; %o = fcmp uno {t} %d, %d; %r = select i1 %o, i32 0, i32 %m
V_FREXP_EXP_I16_F16                | h:s~ | %s = call { double, i32 } @llvm.frexp.f64.i32(double %a); %m = extractvalue { double, i32 } %s, 1; %d = fsub double %a, %a; %o = fcmp uno double %d, %d; %t = select i1 %o, i32 0, i32 %m; %r = trunc i32 %t to i16
V_PK_ADD_F16                       | Phh:h! | %r = fadd double %a, %b
V_PK_MUL_F16                       | Phh:h! | %r = fmul double %a, %b
V_PK_FMA_F16                       | Phhh:h! | %r = call double @llvm.fma.f64(double %a, double %b, double %c)
V_PK_ADD_F32                       | Pff:f! | %r = fadd float %a, %b
V_PK_MUL_F32                       | Pff:f! | %r = fmul float %a, %b
V_PK_FMA_F32                       | Pfff:f! | %r = call float @llvm.fma.f32(float %a, float %b, float %c)
V_FMA_MIX_F32, V_MAD_MIX_F32       | fff:f! | %r = call float @llvm.fma.f32(float %a, float %b, float %c)
*hfd V_FLOOR_{F}                   | {k}:{k}! | %r = call {t} @llvm.floor.{i}({t} %a)
*hfd V_CEIL_{F}                    | {k}:{k}! | %r = call {t} @llvm.ceil.{i}({t} %a)
*hfd V_TRUNC_{F}                   | {k}:{k}! | %r = call {t} @llvm.trunc.{i}({t} %a)
*hfd V_RNDNE_{F}                   | {k}:{k}! | %r = call {t} @llvm.roundeven.{i}({t} %a)
V_SQRT_F64                         | d:d- | %r = call double @llvm.sqrt.f64(double %a)
V_FRACT_F32                        | f:f! | %f = call float @llvm.floor.f32(float %a); %d = fsub float %a, %f; %o = fcmp oge float %d, 1.0; %r = select i1 %o, float 0x3FEFFFFFE0000000, float %d
V_FRACT_F64                        | d:d! | %f = call double @llvm.floor.f64(double %a); %d = fsub double %a, %f; %o = fcmp oge double %d, 1.0; %r = select i1 %o, double 0x3FEFFFFFFFFFFFFF, double %d
*hfd V_MIN_{F}                      | {k}{k}:{k} | %r = call {t} @min@number.{t}({t} %a, {t} %b)
*hfd V_MAX_{F}                      | {k}{k}:{k} | %r = call {t} @max@number.{t}({t} %a, {t} %b)
*hf V_MIN3_{F}                      | {k}{k}{k}:{k} | %x = call {t} @min@number.{t}({t} %a, {t} %b); %r = call {t} @min@number.{t}({t} %x, {t} %c)
*hf V_MAX3_{F}                      | {k}{k}{k}:{k} | %x = call {t} @max@number.{t}({t} %a, {t} %b); %r = call {t} @max@number.{t}({t} %x, {t} %c)
*hf V_MAXMIN_{F}                    | {k}{k}{k}:{k} | %x = call {t} @max@number.{t}({t} %a, {t} %b); %r = call {t} @min@number.{t}({t} %x, {t} %c)
*hf V_MINMAX_{F}                    | {k}{k}{k}:{k} | %x = call {t} @min@number.{t}({t} %a, {t} %b); %r = call {t} @max@number.{t}({t} %x, {t} %c)
*hf V_MED3_{F}                      | {k}{k}{k}:{k} | %r = call {t} @med@number.{t}({t} %a, {t} %b, {t} %c)
V_PK_MIN_F16                        | Phh:h | %r = call double @min@number.double(double %a, double %b)
V_PK_MAX_F16                        | Phh:h | %r = call double @max@number.double(double %a, double %b)
*hfd V_MINIMUM_{F}                  | {k}{k}:{k} | %r = call {t} @minimum.{t}({t} %a, {t} %b)
*hfd V_MAXIMUM_{F}                  | {k}{k}:{k} | %r = call {t} @maximum.{t}({t} %a, {t} %b)
*hf V_MINIMUM3_{F}                  | {k}{k}{k}:{k} | %x = call {t} @minimum.{t}({t} %a, {t} %b); %r = call {t} @minimum.{t}({t} %x, {t} %c)
*hf V_MAXIMUM3_{F}                  | {k}{k}{k}:{k} | %x = call {t} @maximum.{t}({t} %a, {t} %b); %r = call {t} @maximum.{t}({t} %x, {t} %c)
*hf V_MINIMUMMAXIMUM_{F}            | {k}{k}{k}:{k} | %x = call {t} @minimum.{t}({t} %a, {t} %b); %r = call {t} @maximum.{t}({t} %x, {t} %c)
*hf V_MAXIMUMMINIMUM_{F}            | {k}{k}{k}:{k} | %x = call {t} @maximum.{t}({t} %a, {t} %b); %r = call {t} @minimum.{t}({t} %x, {t} %c)
V_PK_MINIMUM_F16                    | Phh:h | %r = call double @minimum.double(double %a, double %b)
V_PK_MAXIMUM_F16                    | Phh:h | %r = call double @maximum.double(double %a, double %b)
V_PK_MINIMUM3_F16                   | Phhh:h | %x = call double @minimum.double(double %a, double %b); %r = call double @minimum.double(double %x, double %c)
V_PK_MAXIMUM3_F16                   | Phhh:h | %x = call double @maximum.double(double %a, double %b); %r = call double @maximum.double(double %x, double %c)
V_FRACT_F16                        | h:h! | %f = call double @llvm.floor.f64(double %a); %d = fsub double %a, %f; %o = fcmp ogt double %d, 0x3FEFFC0000000000; %r = select i1 %o, double 0x3FEFFC0000000000, double %d
V_PK_FMAC_F16                      | Phh+h:h! | %r = call double @llvm.fma.f64(double %a, double %b, double %c)
V_FMAAK_F32 , 0x40490fdb           | ff:f! | %r = call float @llvm.fma.f32(float %a, float %b, float 0x400921FB60000000)
V_FMA_MIXLO_F16, V_MAD_MIXLO_F16   | fff:h! | %f = call float @llvm.fma.f32(float %a, float %b, float %c); %r = fpext float %f to double
V_MULLIT_F32                       | fff:f! | %x = fcmp ule float %b, 0xC7EFFFFFE0000000; %y = fcmp ule float %c, 0.0; %z = or i1 %x, %y; %p = fmul float %a, %b; %r = select i1 %z, float 0xC7EFFFFFE0000000, float %p
V_CUBEMA_F32                       | fff:f! | %n = call i32 @cube.axis(float %a, float %b, float %c); %z = icmp eq i32 %n, 2; %y = icmp eq i32 %n, 1; %p = select i1 %y, float %b, float %a; %q = select i1 %z, float %c, float %p; %r = fmul float %q, 2.0
V_CUBESC_F32                       | fff:f~ | %n = call i32 @cube.axis(float %a, float %b, float %c); %z = icmp eq i32 %n, 2; %y = icmp eq i32 %n, 1; %ma = fneg float %a; %mc = fneg float %c; %nz = fcmp olt float %c, 0.0; %nx = fcmp olt float %a, 0.0; %sz = select i1 %nz, float %ma, float %a; %sx = select i1 %nx, float %c, float %mc; %p = select i1 %y, float %a, float %sx; %r = select i1 %z, float %sz, float %p
V_CUBETC_F32                       | fff:f~ | %n = call i32 @cube.axis(float %a, float %b, float %c); %y = icmp eq i32 %n, 1; %mb = fneg float %b; %mc = fneg float %c; %ny = fcmp olt float %b, 0.0; %sy = select i1 %ny, float %mc, float %c; %r = select i1 %y, float %sy, float %mb
V_CUBEID_F32                       | fff:f | %n = call i32 @cube.axis(float %a, float %b, float %c); %z = icmp eq i32 %n, 2; %y = icmp eq i32 %n, 1; %p = select i1 %y, float %b, float %a; %q = select i1 %z, float %c, float %p; %neg = fcmp olt float %q, 0.0; %s = zext i1 %neg to i32; %d = shl i32 %n, 1; %i = or i32 %d, %s; %r = uitofp i32 %i to float
V_LDEXP_F32                        | fw:f! | %r = call float @llvm.ldexp.f32.i32(float %a, i32 %b)
V_LDEXP_F64                        | dw:d! | %r = call double @llvm.ldexp.f64.i32(double %a, i32 %b)
V_LDEXP_F16                        | hs:h! | %n = sext i16 %b to i32; %lo = call i32 @llvm.smax.i32(i32 %n, i32 -400); %k = call i32 @llvm.smin.i32(i32 %lo, i32 400); %r = call double @llvm.ldexp.f64.i32(double %a, i32 %k)
"""

_CONVERSIONS = """
*fd V_CVT_{F}_I32                  | w:{k} | %r = sitofp i32 %a to {t}
*fd V_CVT_{F}_U32                  | w:{k} | %r = uitofp i32 %a to {t}
V_CVT_F16_I16                      | s:h | %r = sitofp i16 %a to double
V_CVT_F16_U16                      | s:h | %r = uitofp i16 %a to double
*fd V_CVT_I32_{F}                  | {k}:w | %r = call i32 @llvm.fptosi.sat.i32.{i}({t} %a)
*fd V_CVT_U32_{F}                  | {k}:w | %r = call i32 @llvm.fptoui.sat.i32.{i}({t} %a)
V_CVT_I16_F16                      | h:s | %r = call i16 @llvm.fptosi.sat.i16.f64(double %a)
V_CVT_U16_F16                      | h:s | %r = call i16 @llvm.fptoui.sat.i16.f64(double %a)
V_CVT_FLOOR_I32_F32, V_CVT_FLR_I32_F32 | f:w | %f = call float @llvm.floor.f32(float %a); %r = call i32 @llvm.fptosi.sat.i32.f32(float %f)
V_CVT_NEAREST_I32_F32, V_CVT_RPI_I32_F32 | f:w | %d = fpext float %a to double; %s = fadd double %d, 0.5; %f = call double @llvm.floor.f64(double %s); %r = call i32 @llvm.fptosi.sat.i32.f64(double %f)
V_CVT_F64_F32                      | f:d | %r = fpext float %a to double
V_CVT_F32_F64                      | d:f | %r = fptrunc double %a to float
V_CVT_F32_F16                      | h:f | %r = fptrunc double %a to float
V_CVT_F16_F32                      | f:h | %r = fpext float %a to double
V_CVT_F32_BF16                     | s:f~| %w = zext i16 %a to i32; %x = shl i32 %w, 16; %f = bitcast i32 %x to float; %d = fpext float %f to double; %r = fptrunc double %d to float
V_CVT_F32_UBYTE0                   | w:f | %x = and i32 %a, 255; %r = uitofp i32 %x to float
V_CVT_F32_UBYTE1                   | w:f | %s = lshr i32 %a, 8; %x = and i32 %s, 255; %r = uitofp i32 %x to float
V_CVT_F32_UBYTE2                   | w:f | %s = lshr i32 %a, 16; %x = and i32 %s, 255; %r = uitofp i32 %x to float
V_CVT_F32_UBYTE3                   | w:f | %x = lshr i32 %a, 24; %r = uitofp i32 %x to float
V_CVT_OFF_F32_I4                   | w:f | %s = shl i32 %a, 28; %x = ashr i32 %s, 28; %f = sitofp i32 %x to float; %r = fmul float %f, 0.0625
V_CVT_PK_I16_I32                   | ww:w | %a1 = call i32 @llvm.smax.i32(i32 %a, i32 -32768); %a2 = call i32 @llvm.smin.i32(i32 %a1, i32 32767); %b1 = call i32 @llvm.smax.i32(i32 %b, i32 -32768); %b2 = call i32 @llvm.smin.i32(i32 %b1, i32 32767); %x = and i32 %a2, 65535; %y = shl i32 %b2, 16; %r = or i32 %x, %y
V_CVT_PK_U16_U32                   | ww:w | %x = call i32 @llvm.umin.i32(i32 %a, i32 65535); %b2 = call i32 @llvm.umin.i32(i32 %b, i32 65535); %y = shl i32 %b2, 16; %r = or i32 %x, %y
V_CVT_PK_I16_F32                   | ff:w | %p = call i16 @llvm.fptosi.sat.i16.f32(float %a); %q = call i16 @llvm.fptosi.sat.i16.f32(float %b); %x = zext i16 %p to i32; %z = zext i16 %q to i32; %y = shl i32 %z, 16; %r = or i32 %x, %y
V_CVT_PK_U16_F32                   | ff:w | %p = call i16 @llvm.fptoui.sat.i16.f32(float %a); %q = call i16 @llvm.fptoui.sat.i16.f32(float %b); %x = zext i16 %p to i32; %z = zext i16 %q to i32; %y = shl i32 %z, 16; %r = or i32 %x, %y
V_CVT_NORM_I16_F16                 | h:s | %x = fmul double %a, 32767.0; %y = call double @llvm.roundeven.f64(double %x); %i = call i32 @llvm.fptosi.sat.i32.f64(double %y); %l = call i32 @llvm.smax.i32(i32 %i, i32 -32767); %m = call i32 @llvm.smin.i32(i32 %l, i32 32767); %r = trunc i32 %m to i16
V_CVT_NORM_U16_F16                 | h:s | %x = fmul double %a, 65535.0; %y = call double @llvm.roundeven.f64(double %x); %r = call i16 @llvm.fptoui.sat.i16.f64(double %y)
V_CVT_PK_NORM_I16_F32, V_CVT_PKNORM_I16_F32 | ff:w | %p = call i32 @snorm(float %a); %q = call i32 @snorm(float %b); %x = and i32 %p, 65535; %y = shl i32 %q, 16; %r = or i32 %x, %y
V_CVT_PK_NORM_U16_F32, V_CVT_PKNORM_U16_F32 | ff:w | %p = call i32 @unorm(float %a); %q = call i32 @unorm(float %b); %y = shl i32 %q, 16; %r = or i32 %p, %y
V_CVT_PK_U8_F32                    | fww:w | %t = call float @llvm.roundeven.f32(float %a); %i = call i8 @llvm.fptoui.sat.i8.f32(float %t); %v = zext i8 %i to i32; %m = and i32 %b, 3; %n = shl i32 %m, 3; %s = shl i32 %v, %n; %k = shl i32 255, %n; %f = xor i32 %k, -1; %o = and i32 %c, %f; %r = or i32 %o, %s
V_CVT_PKACCUM_U8_F32               | fw+w:w | %t = call float @llvm.roundeven.f32(float %a); %i = call i8 @llvm.fptoui.sat.i8.f32(float %t); %v = zext i8 %i to i32; %m = and i32 %b, 3; %n = shl i32 %m, 3; %s = shl i32 %v, %n; %k = shl i32 255, %n; %f = xor i32 %k, -1; %o = and i32 %c, %f; %r = or i32 %o, %s
V_CVT_I32_I16                      | s:w | %r = sext i16 %a to i32
V_CVT_U32_U16                      | s:w | %r = zext i16 %a to i32
V_PACK_B32_F16                     | ss:w | %x = zext i16 %a to i32; %z = zext i16 %b to i32; %y = shl i32 %z, 16; %r = or i32 %x, %y
V_SAT_PK_U8_I16                    | w:s | %l0 = trunc i32 %a to i16; %hs = lshr i32 %a, 16; %h0 = trunc i32 %hs to i16; %l1 = call i16 @llvm.smax.i16(i16 %l0, i16 0); %l2 = call i16 @llvm.smin.i16(i16 %l1, i16 255); %h1 = call i16 @llvm.smax.i16(i16 %h0, i16 0); %h2 = call i16 @llvm.smin.i16(i16 %h1, i16 255); %y = shl i16 %h2, 8; %r = or i16 %l2, %y
V_ASHR_PK_I8_I32                   | www:s | %n = and i32 %c, 31; %x = ashr i32 %a, %n; %y = ashr i32 %b, %n; %x1 = call i32 @llvm.smax.i32(i32 %x, i32 -128); %x2 = call i32 @llvm.smin.i32(i32 %x1, i32 127); %y1 = call i32 @llvm.smax.i32(i32 %y, i32 -128); %y2 = call i32 @llvm.smin.i32(i32 %y1, i32 127); %l = and i32 %x2, 255; %h = shl i32 %y2, 8; %w = or i32 %l, %h; %r = trunc i32 %w to i16
V_ASHR_PK_U8_I32                   | www:s | %n = and i32 %c, 31; %x = ashr i32 %a, %n; %y = ashr i32 %b, %n; %x1 = call i32 @llvm.smax.i32(i32 %x, i32 0); %x2 = call i32 @llvm.smin.i32(i32 %x1, i32 255); %y1 = call i32 @llvm.smax.i32(i32 %y, i32 0); %y2 = call i32 @llvm.smin.i32(i32 %y1, i32 255); %h = shl i32 %y2, 8; %w = or i32 %x2, %h; %r = trunc i32 %w to i16
"""

_INTEGERS = """
V_MOV_B32                          | w:w | %r = add i32 %a, 0
V_MOV_B64                          | q:q | %r = add i64 %a, 0
V_MOV_B16                          | s:s | %r = add i16 %a, 0
*sw V_NOT_B{n}                     | {k}:{k} | %r = xor {t} %a, -1
V_BFREV_B32                        | w:w | %r = call i32 @llvm.bitreverse.i32(i32 %a)
V_FFBH_U32, V_CLZ_I32_U32          | w:w | %n = call i32 @llvm.ctlz.i32(i32 %a, i1 false); %z = icmp eq i32 %a, 0; %r = select i1 %z, i32 -1, i32 %n
V_FFBL_B32, V_CTZ_I32_B32          | w:w | %n = call i32 @llvm.cttz.i32(i32 %a, i1 false); %z = icmp eq i32 %a, 0; %r = select i1 %z, i32 -1, i32 %n
V_FFBH_I32, V_CLS_I32              | w:w | %s = ashr i32 %a, 31; %x = xor i32 %a, %s; %n = call i32 @llvm.ctlz.i32(i32 %x, i1 false); %z = icmp eq i32 %x, 0; %r = select i1 %z, i32 -1, i32 %n
V_PRNG_B32                         | w:w | %t = ashr i32 %a, 31; %m = and i32 %t, 197; %s = shl i32 %a, 1; %r = xor i32 %s, %m
V_ADD_NC_U32, V_ADD_NC_I32, V_ADD_U32, V_ADD_I32, V_ADD_CO_U32 | ww:w | %r = add i32 %a, %b
V_SUB_NC_U32, V_SUB_NC_I32, V_SUB_U32, V_SUB_I32, V_SUB_CO_U32 | ww:w | %r = sub i32 %a, %b
V_SUBREV_NC_U32, V_SUBREV_U32, V_SUBREV_CO_U32 | ww:w | %r = sub i32 %b, %a
V_ADD_CO_U32 vcc                   | ww:m | %s = add i32 %a, %b; %r = icmp ult i32 %s, %a
V_SUB_CO_U32 vcc                   | ww:m | %r = icmp ult i32 %a, %b
V_SUBREV_CO_U32 vcc                | ww:m | %r = icmp ult i32 %b, %a
V_ADD_CO_CI_U32, V_ADDC_CO_U32     | wwm:w | %n = zext i1 %c to i32; %s = add i32 %a, %b; %r = add i32 %s, %n
V_SUB_CO_CI_U32, V_SUBB_CO_U32     | wwm:w | %n = zext i1 %c to i32; %s = sub i32 %a, %b; %r = sub i32 %s, %n
V_SUBREV_CO_CI_U32, V_SUBBREV_CO_U32 | wwm:w | %n = zext i1 %c to i32; %s = sub i32 %b, %a; %r = sub i32 %s, %n
V_ADD_CO_CI_U32 vcc, V_ADDC_CO_U32 vcc | wwm:m | %x = zext i32 %a to i64; %y = zext i32 %b to i64; %n = zext i1 %c to i64; %s = add i64 %x, %y; %t = add i64 %s, %n; %r = icmp ugt i64 %t, 4294967295
V_SUB_CO_CI_U32 vcc, V_SUBB_CO_U32 vcc | wwm:m | %x = zext i32 %a to i64; %y = zext i32 %b to i64; %n = zext i1 %c to i64; %s = add i64 %y, %n; %r = icmp ugt i64 %s, %x
V_SUBREV_CO_CI_U32 vcc, V_SUBBREV_CO_U32 vcc | wwm:m | %x = zext i32 %b to i64; %y = zext i32 %a to i64; %n = zext i1 %c to i64; %s = add i64 %y, %n; %r = icmp ugt i64 %s, %x
V_ADD_NC_U32 clamp, V_ADD_U32 clamp | ww:w | %r = call i32 @llvm.uadd.sat.i32(i32 %a, i32 %b)
V_SUB_NC_U32 clamp, V_SUB_U32 clamp | ww:w | %r = call i32 @llvm.usub.sat.i32(i32 %a, i32 %b)
V_ADD_NC_I32 clamp, V_ADD_I32 clamp | ww:w | %r = call i32 @llvm.sadd.sat.i32(i32 %a, i32 %b)
V_SUB_NC_I32 clamp, V_SUB_I32 clamp | ww:w | %r = call i32 @llvm.ssub.sat.i32(i32 %a, i32 %b)
V_ADD_NC_U16, V_ADD_NC_I16, V_ADD_U16, V_ADD_I16 | ss:s | %r = add i16 %a, %b
V_SUB_NC_U16, V_SUB_NC_I16, V_SUB_U16, V_SUB_I16 | ss:s | %r = sub i16 %a, %b
V_SUBREV_U16                       | ss:s | %r = sub i16 %b, %a
V_ADD_NC_U16 clamp, V_ADD_U16 clamp | ss:s | %r = call i16 @llvm.uadd.sat.i16(i16 %a, i16 %b)
V_SUB_NC_U16 clamp, V_SUB_U16 clamp | ss:s | %r = call i16 @llvm.usub.sat.i16(i16 %a, i16 %b)
V_ADD_NC_I16 clamp, V_ADD_I16 clamp | ss:s | %r = call i16 @llvm.sadd.sat.i16(i16 %a, i16 %b)
V_SUB_NC_I16 clamp, V_SUB_I16 clamp | ss:s | %r = call i16 @llvm.ssub.sat.i16(i16 %a, i16 %b)
V_PK_ADD_U16, V_PK_ADD_I16         | Pss:s | %r = add i16 %a, %b
V_PK_SUB_U16, V_PK_SUB_I16         | Pss:s | %r = sub i16 %a, %b
V_PK_ADD_U16 clamp                 | Pss:s | %r = call i16 @llvm.uadd.sat.i16(i16 %a, i16 %b)
V_PK_ADD_I16 clamp                 | Pss:s | %r = call i16 @llvm.sadd.sat.i16(i16 %a, i16 %b)
V_PK_SUB_U16 clamp                 | Pss:s | %r = call i16 @llvm.usub.sat.i16(i16 %a, i16 %b)
V_PK_SUB_I16 clamp                 | Pss:s | %r = call i16 @llvm.ssub.sat.i16(i16 %a, i16 %b)
V_PK_MUL_LO_U16                    | Pss:s | %r = mul i16 %a, %b
V_PK_MAD_U16, V_PK_MAD_I16         | Psss:s | %x = mul i16 %a, %b; %r = add i16 %x, %c
V_PK_LSHLREV_B16                   | Pss:s | %n = and i16 %a, 15; %r = shl i16 %b, %n
V_PK_LSHRREV_B16                   | Pss:s | %n = and i16 %a, 15; %r = lshr i16 %b, %n
V_PK_ASHRREV_I16                   | Pss:s | %n = and i16 %a, 15; %r = ashr i16 %b, %n
V_PK_MIN_I16                       | Pss:s | %r = call i16 @llvm.smin.i16(i16 %a, i16 %b)
V_PK_MAX_I16                       | Pss:s | %r = call i16 @llvm.smax.i16(i16 %a, i16 %b)
V_PK_MIN_U16                       | Pss:s | %r = call i16 @llvm.umin.i16(i16 %a, i16 %b)
V_PK_MAX_U16                       | Pss:s | %r = call i16 @llvm.umax.i16(i16 %a, i16 %b)
*sw V_MIN_I{n}                     | {k}{k}:{k} | %r = call {t} @llvm.smin.{t}({t} %a, {t} %b)
*sw V_MAX_I{n}                     | {k}{k}:{k} | %r = call {t} @llvm.smax.{t}({t} %a, {t} %b)
*sw V_MIN_U{n}                     | {k}{k}:{k} | %r = call {t} @llvm.umin.{t}({t} %a, {t} %b)
*sw V_MAX_U{n}                     | {k}{k}:{k} | %r = call {t} @llvm.umax.{t}({t} %a, {t} %b)
*sw V_MIN3_I{n}                    | {k}{k}{k}:{k} | %x = call {t} @llvm.smin.{t}({t} %a, {t} %b); %r = call {t} @llvm.smin.{t}({t} %x, {t} %c)
*sw V_MAX3_I{n}                    | {k}{k}{k}:{k} | %x = call {t} @llvm.smax.{t}({t} %a, {t} %b); %r = call {t} @llvm.smax.{t}({t} %x, {t} %c)
*sw V_MIN3_U{n}                    | {k}{k}{k}:{k} | %x = call {t} @llvm.umin.{t}({t} %a, {t} %b); %r = call {t} @llvm.umin.{t}({t} %x, {t} %c)
*sw V_MAX3_U{n}                    | {k}{k}{k}:{k} | %x = call {t} @llvm.umax.{t}({t} %a, {t} %b); %r = call {t} @llvm.umax.{t}({t} %x, {t} %c)
*sw V_MED3_I{n}                    | {k}{k}{k}:{k} | %lo = call {t} @llvm.smin.{t}({t} %a, {t} %b); %hi = call {t} @llvm.smax.{t}({t} %a, {t} %b); %m = call {t} @llvm.smin.{t}({t} %hi, {t} %c); %r = call {t} @llvm.smax.{t}({t} %lo, {t} %m)
*sw V_MED3_U{n}                    | {k}{k}{k}:{k} | %lo = call {t} @llvm.umin.{t}({t} %a, {t} %b); %hi = call {t} @llvm.umax.{t}({t} %a, {t} %b); %m = call {t} @llvm.umin.{t}({t} %hi, {t} %c); %r = call {t} @llvm.umax.{t}({t} %lo, {t} %m)
V_MAXMIN_I32                       | www:w | %x = call i32 @llvm.smax.i32(i32 %a, i32 %b); %r = call i32 @llvm.smin.i32(i32 %x, i32 %c)
V_MINMAX_I32                       | www:w | %x = call i32 @llvm.smin.i32(i32 %a, i32 %b); %r = call i32 @llvm.smax.i32(i32 %x, i32 %c)
V_MAXMIN_U32                       | www:w | %x = call i32 @llvm.umax.i32(i32 %a, i32 %b); %r = call i32 @llvm.umin.i32(i32 %x, i32 %c)
V_MINMAX_U32                       | www:w | %x = call i32 @llvm.umin.i32(i32 %a, i32 %b); %r = call i32 @llvm.umax.i32(i32 %x, i32 %c)
V_MUL_LO_U16                       | ss:s | %r = mul i16 %a, %b
V_MUL_LO_U32                       | ww:w | %r = mul i32 %a, %b
V_MUL_HI_U32                       | ww:w | %x = zext i32 %a to i64; %y = zext i32 %b to i64; %p = mul i64 %x, %y; %h = lshr i64 %p, 32; %r = trunc i64 %h to i32
V_MUL_HI_I32                       | ww:w | %x = sext i32 %a to i64; %y = sext i32 %b to i64; %p = mul i64 %x, %y; %h = lshr i64 %p, 32; %r = trunc i64 %h to i32
V_MUL_U32_U24                      | ww:w | %x = and i32 %a, 16777215; %y = and i32 %b, 16777215; %r = mul i32 %x, %y
V_MUL_I32_I24                      | ww:w | %a1 = shl i32 %a, 8; %x = ashr i32 %a1, 8; %b1 = shl i32 %b, 8; %y = ashr i32 %b1, 8; %r = mul i32 %x, %y
V_MUL_HI_U32_U24                   | ww:w | %a1 = and i32 %a, 16777215; %b1 = and i32 %b, 16777215; %x = zext i32 %a1 to i64; %y = zext i32 %b1 to i64; %p = mul i64 %x, %y; %h = lshr i64 %p, 32; %r = trunc i64 %h to i32
V_MUL_HI_I32_I24                   | ww:w | %a1 = trunc i32 %a to i24; %b1 = trunc i32 %b to i24; %x = sext i24 %a1 to i64; %y = sext i24 %b1 to i64; %p = mul i64 %x, %y; %h = ashr i64 %p, 32; %r = trunc i64 %h to i32
V_MAD_U32_U24                      | www:w | %x = and i32 %a, 16777215; %y = and i32 %b, 16777215; %p = mul i32 %x, %y; %r = add i32 %p, %c
V_MAD_I32_I24                      | www:w | %a1 = trunc i32 %a to i24; %b1 = trunc i32 %b to i24; %x = sext i24 %a1 to i32; %y = sext i24 %b1 to i32; %p = mul i32 %x, %y; %r = add i32 %p, %c
V_MAD_U16, V_MAD_I16, V_MAD_LEGACY_U16, V_MAD_LEGACY_I16 | sss:s | %p = mul i16 %a, %b; %r = add i16 %p, %c
V_MAD_U32_U16                      | ssw:w | %x = zext i16 %a to i32; %y = zext i16 %b to i32; %p = mul i32 %x, %y; %r = add i32 %p, %c
V_MAD_I32_I16                      | ssw:w | %x = sext i16 %a to i32; %y = sext i16 %b to i32; %p = mul i32 %x, %y; %r = add i32 %p, %c
V_MAD_U64_U32, V_MAD_CO_U64_U32    | wwq:q | %x = zext i32 %a to i64; %y = zext i32 %b to i64; %p = mul i64 %x, %y; %r = add i64 %p, %c
V_MAD_I64_I32, V_MAD_CO_I64_I32    | wwq:q | %x = sext i32 %a to i64; %y = sext i32 %b to i64; %p = mul i64 %x, %y; %r = add i64 %p, %c
V_MAD_U64_U32 vcc, V_MAD_CO_U64_U32 vcc | wwq:m | %x = zext i32 %a to i64; %y = zext i32 %b to i64; %p = mul i64 %x, %y; %s = add i64 %p, %c; %r = icmp ult i64 %s, %p
V_ADD3_U32                         | www:w | %x = add i32 %a, %b; %r = add i32 %x, %c
V_ADD_LSHL_U32                     | www:w | %x = add i32 %a, %b; %n = and i32 %c, 31; %r = shl i32 %x, %n
V_LSHL_ADD_U32                     | www:w | %n = and i32 %b, 31; %x = shl i32 %a, %n; %r = add i32 %x, %c
V_LSHL_OR_B32                      | www:w | %n = and i32 %b, 31; %x = shl i32 %a, %n; %r = or i32 %x, %c
V_LSHL_ADD_U64                     | qwq:q | %m = and i32 %b, 7; %n = zext i32 %m to i64; %x = shl i64 %a, %n; %r = add i64 %x, %c
V_XAD_U32                          | www:w | %x = xor i32 %a, %b; %r = add i32 %x, %c
*sw V_AND_B{n}                     | {k}{k}:{k} | %r = and {t} %a, %b
*sw V_OR_B{n}                      | {k}{k}:{k} | %r = or {t} %a, %b
*sw V_XOR_B{n}                     | {k}{k}:{k} | %r = xor {t} %a, %b
V_XNOR_B32                         | ww:w | %x = xor i32 %a, %b; %r = xor i32 %x, -1
V_AND_OR_B32                       | www:w | %x = and i32 %a, %b; %r = or i32 %x, %c
V_OR3_B32                          | www:w | %x = or i32 %a, %b; %r = or i32 %x, %c
V_XOR3_B32, V_BITOP3_B32 bitop3:0x96 | www:w | %x = xor i32 %a, %b; %r = xor i32 %x, %c
V_BITOP3_B32 bitop3:0xe8           | www:w | %x = and i32 %a, %b; %y = or i32 %a, %b; %z = and i32 %y, %c; %r = or i32 %x, %z
V_BITOP3_B16 bitop3:0xca           | sss:s | %x = and i16 %a, %b; %n = xor i16 %a, -1; %y = and i16 %n, %c; %r = or i16 %x, %y
V_BFI_B32                          | www:w | %x = and i32 %a, %b; %n = xor i32 %a, -1; %y = and i32 %n, %c; %r = or i32 %x, %y
V_BFM_B32                          | ww:w | %n = and i32 %a, 31; %x = shl i32 1, %n; %y = sub i32 %x, 1; %m = and i32 %b, 31; %r = shl i32 %y, %m
V_BFE_U32                          | www:w | %n = and i32 %b, 31; %w = and i32 %c, 31; %x = lshr i32 %a, %n; %y = shl i32 1, %w; %z = sub i32 %y, 1; %r = and i32 %x, %z
V_BFE_I32                          | www:w | %n = and i32 %b, 31; %w = and i32 %c, 31; %x = ashr i32 %a, %n; %o = sub i32 32, %w; %k = and i32 %o, 31; %y = shl i32 %x, %k; %z = ashr i32 %y, %k; %e = icmp eq i32 %w, 0; %r = select i1 %e, i32 0, i32 %z
V_BCNT_U32_B32                     | ww:w | %n = call i32 @llvm.ctpop.i32(i32 %a); %r = add i32 %n, %b
V_ALIGNBIT_B32                     | www:w | %r = call i32 @llvm.fshr.i32(i32 %a, i32 %b, i32 %c)
V_ALIGNBYTE_B32                    | www:w | %m = and i32 %c, 3; %n = shl i32 %m, 3; %r = call i32 @llvm.fshr.i32(i32 %a, i32 %b, i32 %n)
V_PERM_B32                         | www:w | %h = zext i32 %a to i64; %l = zext i32 %b to i64; %s = shl i64 %h, 32; %d = or i64 %s, %l; %b0 = call i32 @perm.byte(i64 %d, i32 %c, i32 0); %b1 = call i32 @perm.byte(i64 %d, i32 %c, i32 8); %b2 = call i32 @perm.byte(i64 %d, i32 %c, i32 16); %b3 = call i32 @perm.byte(i64 %d, i32 %c, i32 24); %x = or i32 %b0, %b1; %y = or i32 %b2, %b3; %r = or i32 %x, %y
*swq V_LSHLREV_B{n}                | {w}{k}:{k} | %n = and {u} %a, {q}; %m = {z}; %r = shl {t} %b, %m
*swq V_LSHRREV_B{n}                | {w}{k}:{k} | %n = and {u} %a, {q}; %m = {z}; %r = lshr {t} %b, %m
*swq V_ASHRREV_I{n}                | {w}{k}:{k} | %n = and {u} %a, {q}; %m = {z}; %r = ashr {t} %b, %m
V_SAD_U8                           | www:w | %s = call i32 @sad(i32 %a, i32 %b); %r = add i32 %s, %c
V_SAD_HI_U8                        | www:w | %s = call i32 @sad(i32 %a, i32 %b); %h = shl i32 %s, 16; %r = add i32 %h, %c
V_MSAD_U8                          | www:w | %s = call i32 @msad(i32 %a, i32 %b); %r = add i32 %s, %c
V_SAD_U16                          | www:w | %al = and i32 %a, 65535; %bl = and i32 %b, 65535; %ah = lshr i32 %a, 16; %bh = lshr i32 %b, 16; %dl = sub i32 %al, %bl; %dh = sub i32 %ah, %bh; %x = call i32 @llvm.abs.i32(i32 %dl, i1 false); %y = call i32 @llvm.abs.i32(i32 %dh, i1 false); %s = add i32 %x, %y; %r = add i32 %s, %c
V_SAD_U32                          | www:w | %h = call i32 @llvm.umax.i32(i32 %a, i32 %b); %l = call i32 @llvm.umin.i32(i32 %a, i32 %b); %d = sub i32 %h, %l; %r = add i32 %d, %c
V_QSAD_PK_U16_U8                   | qwq:q | %a0 = trunc i64 %a to i32; %h1 = lshr i64 %a, 8; %a1 = trunc i64 %h1 to i32; %h2 = lshr i64 %a, 16; %a2 = trunc i64 %h2 to i32; %h3 = lshr i64 %a, 24; %a3 = trunc i64 %h3 to i32; %d0 = call i32 @sad(i32 %a0, i32 %b); %d1 = call i32 @sad(i32 %a1, i32 %b); %d2 = call i32 @sad(i32 %a2, i32 %b); %d3 = call i32 @sad(i32 %a3, i32 %b); %v0 = insertelement <4 x i32> zeroinitializer, i32 %d0, i32 0; %v1 = insertelement <4 x i32> %v0, i32 %d1, i32 1; %v2 = insertelement <4 x i32> %v1, i32 %d2, i32 2; %v3 = insertelement <4 x i32> %v2, i32 %d3, i32 3; %n = trunc <4 x i32> %v3 to <4 x i16>; %c4 = bitcast i64 %c to <4 x i16>; %s = add <4 x i16> %n, %c4; %r = bitcast <4 x i16> %s to i64
V_MQSAD_PK_U16_U8                  | qwq:q | %a0 = trunc i64 %a to i32; %h1 = lshr i64 %a, 8; %a1 = trunc i64 %h1 to i32; %h2 = lshr i64 %a, 16; %a2 = trunc i64 %h2 to i32; %h3 = lshr i64 %a, 24; %a3 = trunc i64 %h3 to i32; %d0 = call i32 @msad(i32 %a0, i32 %b); %d1 = call i32 @msad(i32 %a1, i32 %b); %d2 = call i32 @msad(i32 %a2, i32 %b); %d3 = call i32 @msad(i32 %a3, i32 %b); %v0 = insertelement <4 x i32> zeroinitializer, i32 %d0, i32 0; %v1 = insertelement <4 x i32> %v0, i32 %d1, i32 1; %v2 = insertelement <4 x i32> %v1, i32 %d2, i32 2; %v3 = insertelement <4 x i32> %v2, i32 %d3, i32 3; %n = trunc <4 x i32> %v3 to <4 x i16>; %c4 = bitcast i64 %c to <4 x i16>; %s = add <4 x i16> %n, %c4; %r = bitcast <4 x i16> %s to i64
V_LERP_U8                          | www:w | %x = bitcast i32 %a to <4 x i8>; %y = bitcast i32 %b to <4 x i8>; %z = bitcast i32 %c to <4 x i8>; %o = and <4 x i8> %z, splat (i8 1); %xw = zext <4 x i8> %x to <4 x i16>; %yw = zext <4 x i8> %y to <4 x i16>; %ow = zext <4 x i8> %o to <4 x i16>; %s = add <4 x i16> %xw, %yw; %t = add <4 x i16> %s, %ow; %h = lshr <4 x i16> %t, splat (i16 1); %n = trunc <4 x i16> %h to <4 x i8>; %r = bitcast <4 x i8> %n to i32
V_CNDMASK_B32                      | wwm:w | %r = select i1 %c, i32 %b, i32 %a
V_CNDMASK_B16                      | ssm:s | %r = select i1 %c, i16 %b, i16 %a
V_DOT2_I32_I16                     | www:w | %x = bitcast i32 %a to <2 x i16>; %y = bitcast i32 %b to <2 x i16>; %xw = sext <2 x i16> %x to <2 x i32>; %yw = sext <2 x i16> %y to <2 x i32>; %p = mul <2 x i32> %xw, %yw; %s = call i32 @llvm.vector.reduce.add.v2i32(<2 x i32> %p); %r = add i32 %s, %c
V_DOT2_U32_U16                     | www:w | %x = bitcast i32 %a to <2 x i16>; %y = bitcast i32 %b to <2 x i16>; %xw = zext <2 x i16> %x to <2 x i32>; %yw = zext <2 x i16> %y to <2 x i32>; %p = mul <2 x i32> %xw, %yw; %s = call i32 @llvm.vector.reduce.add.v2i32(<2 x i32> %p); %r = add i32 %s, %c
V_DOT2C_I32_I16                    | ww+w:w | %x = bitcast i32 %a to <2 x i16>; %y = bitcast i32 %b to <2 x i16>; %xw = sext <2 x i16> %x to <2 x i32>; %yw = sext <2 x i16> %y to <2 x i32>; %p = mul <2 x i32> %xw, %yw; %s = call i32 @llvm.vector.reduce.add.v2i32(<2 x i32> %p); %r = add i32 %s, %c
V_DOT4_I32_I8, V_DOT4_I32_IU8 neg_lo:[1,1,0] | www:w | %x = bitcast i32 %a to <4 x i8>; %y = bitcast i32 %b to <4 x i8>; %xw = sext <4 x i8> %x to <4 x i32>; %yw = sext <4 x i8> %y to <4 x i32>; %s = call i32 @dot4(<4 x i32> %xw, <4 x i32> %yw); %r = add i32 %s, %c
V_DOT4C_I32_I8                     | ww+w:w | %x = bitcast i32 %a to <4 x i8>; %y = bitcast i32 %b to <4 x i8>; %xw = sext <4 x i8> %x to <4 x i32>; %yw = sext <4 x i8> %y to <4 x i32>; %s = call i32 @dot4(<4 x i32> %xw, <4 x i32> %yw); %r = add i32 %s, %c
V_DOT4_U32_U8, V_DOT4_I32_IU8      | www:w | %x = bitcast i32 %a to <4 x i8>; %y = bitcast i32 %b to <4 x i8>; %xw = zext <4 x i8> %x to <4 x i32>; %yw = zext <4 x i8> %y to <4 x i32>; %s = call i32 @dot4(<4 x i32> %xw, <4 x i32> %yw); %r = add i32 %s, %c
V_DOT4_I32_IU8 neg_lo:[1,0,0]      | www:w | %x = bitcast i32 %a to <4 x i8>; %y = bitcast i32 %b to <4 x i8>; %xw = sext <4 x i8> %x to <4 x i32>; %yw = zext <4 x i8> %y to <4 x i32>; %s = call i32 @dot4(<4 x i32> %xw, <4 x i32> %yw); %r = add i32 %s, %c
V_DOT4_U32_U8 clamp                | www:w | %x = bitcast i32 %a to <4 x i8>; %y = bitcast i32 %b to <4 x i8>; %xw = zext <4 x i8> %x to <4 x i32>; %yw = zext <4 x i8> %y to <4 x i32>; %s = call i32 @dot4(<4 x i32> %xw, <4 x i32> %yw); %r = call i32 @llvm.uadd.sat.i32(i32 %s, i32 %c)
V_DOT4_I32_I8 clamp, V_DOT4_I32_IU8 neg_lo:[1,1,0] clamp | www:w | %x = bitcast i32 %a to <4 x i8>; %y = bitcast i32 %b to <4 x i8>; %xw = sext <4 x i8> %x to <4 x i32>; %yw = sext <4 x i8> %y to <4 x i32>; %s = call i32 @dot4(<4 x i32> %xw, <4 x i32> %yw); %r = call i32 @llvm.sadd.sat.i32(i32 %s, i32 %c)
V_DOT8_I32_I4, V_DOT8_I32_IU4 neg_lo:[1,1,0] | www:w | %x = bitcast i32 %a to <8 x i4>; %y = bitcast i32 %b to <8 x i4>; %xw = sext <8 x i4> %x to <8 x i32>; %yw = sext <8 x i4> %y to <8 x i32>; %s = call i32 @dot8(<8 x i32> %xw, <8 x i32> %yw); %r = add i32 %s, %c
V_DOT8C_I32_I4                     | ww+w:w | %x = bitcast i32 %a to <8 x i4>; %y = bitcast i32 %b to <8 x i4>; %xw = sext <8 x i4> %x to <8 x i32>; %yw = sext <8 x i4> %y to <8 x i32>; %s = call i32 @dot8(<8 x i32> %xw, <8 x i32> %yw); %r = add i32 %s, %c
V_DOT8_U32_U4, V_DOT8_I32_IU4      | www:w | %x = bitcast i32 %a to <8 x i4>; %y = bitcast i32 %b to <8 x i4>; %xw = zext <8 x i4> %x to <8 x i32>; %yw = zext <8 x i4> %y to <8 x i32>; %s = call i32 @dot8(<8 x i32> %xw, <8 x i32> %yw); %r = add i32 %s, %c
"""

_COMPARES = """
V_CMP_CLASS_F16, V_CMPX_CLASS_F16                    | ss:m | %x = zext i16 %a to i64; %m = zext i16 %b to i32; %r = call i1 @class(i64 %x, i64 31744, i64 1023, i64 512, i64 32768, i32 %m)
V_CMP_CLASS_F32, V_CMPX_CLASS_F32                    | ww:m | %x = zext i32 %a to i64; %r = call i1 @class(i64 %x, i64 2139095040, i64 8388607, i64 4194304, i64 2147483648, i32 %b)
V_CMP_CLASS_F64, V_CMPX_CLASS_F64                    | qw:m | %r = call i1 @class(i64 %a, i64 9218868437227405312, i64 4503599627370495, i64 2251799813685248, i64 -9223372036854775808, i32 %b)
"""

_ORDERED = {"LT": "olt", "EQ": "oeq", "LE": "ole", "GT": "ogt", "LG": "one", "GE": "oge", "O": "ord", "U": "uno",
            "NGE": "ult", "NLG": "ueq", "NGT": "ule", "NLE": "ugt", "NEQ": "une", "NLT": "uge", "F": "false",
            "TRU": "true", "T": "true"}  # fmt: skip
_WHOLE = {"LT": "{s}lt", "EQ": "eq", "LE": "{s}le", "GT": "{s}gt", "NE": "ne", "GE": "{s}ge"}

Line = tuple[tuple[str, ...], str, str]


def _compares() -> Iterator[str]:
    """A line for each predicate and type."""
    for name, predicate in _ORDERED.items():
        yield f"*hfd V_CMP_{name}_{{F}}, V_CMPX_{name}_{{F}} | {{k}}{{k}}:m | %r = fcmp {predicate} {{t}} %a, %b"
    for letter, sign in (("I", "s"), ("U", "u")):
        for name, predicate in _WHOLE.items():
            both = f"V_CMP_{name}_{letter}{{n}}, V_CMPX_{name}_{letter}{{n}}"
            yield f"*swq {both} | {{k}}{{k}}:m | %r = icmp {predicate.format(s=sign)} {{t}} %a, %b"
        for name, bit in (("F", 0), ("T", 1)):
            both = f"V_CMP_{name}_{letter}{{n}}, V_CMPX_{name}_{letter}{{n}}"
            yield f"*swq {both} | {{k}}{{k}}:m | %r = icmp eq i1 {bit}, 1"


#: Which of two NaNs a minimum or maximum gives; RDNA4 has other names. `@first` and so on are parts of a text.
_OF_TWO_NANS = {"first": "@gfx11", "last": "@gfx9", "quiet": "@gfx12"}


def _numbers(line: str) -> Iterator[str]:
    """A line with `@number` stands for one a dialect."""
    if "@number" not in line:
        yield line
        return
    names, rest = line.split("|", 1)
    for how, dialect in _OF_TWO_NANS.items():
        shown = re.sub(r"(V_\w*M(?:IN|AX|ED)3?)(?=_(?:F16|\{F\}))", r"\1_NUM", names) if how == "quiet" else names
        yield f"{shown.strip()}{dialect} |{rest.replace('@number', how)}"


def table() -> Iterator[Line]:
    """(texts, signature, body) of every line, families written out. A text may end in @ and the dialect it is of."""
    text = "\n".join(out for line in _FLOATS.splitlines() for out in _numbers(line)) + _CONVERSIONS + _INTEGERS + _COMPARES
    for line in [*filter(None, map(str.strip, text.splitlines())), *_compares()]:
        m = re.match(r"\*(\w+) ", line)
        for kind in m[1] if m else "-":
            filled = line[m.end():].format(**_fields(kind)) if m else line
            names, signature, body = (part.strip() for part in filled.split("|"))
            yield tuple(re.split(r", (?=V_)", names)), signature, body


def _fields(kind: str) -> dict[str, str]:
    """What a family's braces stand for; shift counts are as wide as the value, but 32 bits for 64."""
    fields = dict(_KINDS[kind])
    if kind in "swq":
        fields |= {"w": "w", "u": "i32", "z": "zext i32 %n to i64"} if kind == "q" else {
            "w": fields["k"], "u": fields["t"], "z": f"add {fields['t']} %n, 0"}
    return fields
