// Numbers: 128-bit integers, packed pairs of 16 and 32 bits, parts of floats, sums of absolute differences, floats of eight bits.
#include "device.h"
typedef unsigned __int128 u128;
typedef __int128 i128;
#define ROWS(...) rows(out, __VA_ARGS__)
// An element of a row of `to` for each value.
template <class T, class... V> DEVICE void rows(T *to, V... values) {
  to += item();
  ((*to = values, to += gridx()), ...);
}

KERNEL wide_integers(const u128 *as, const u128 *bs, u128 *out) {
  u128 a = as[item()], b = bs[item()];
  u32 by = (u32)b & 127;
  ROWS(a + b, a - b, a * b, a / b, a % b, (u128)((i128)a / (i128)b), (u128)((i128)a % (i128)b), a << by, a >> by, (u128)((i128)a >> by),
       (u128)(a < b), (u128)((i128)a < (i128)b));
}

typedef vec<f16, 2> f16x2;
typedef vec<i16, 2> i16x2;
typedef vec<u16, 2> u16x2;
KERNEL packed_halves(const f16x2 *as, const f16x2 *bs, f16x2 *out) {
#pragma clang fp contract(off)
  f16x2 a = as[item()], b = bs[item()], swapped = b.yx;
  ROWS(a + b, a * b, a - swapped, -a * swapped, __builtin_elementwise_fma(a, b, swapped), __builtin_elementwise_minnum(a, b),
       __builtin_elementwise_maxnum(a, swapped), __builtin_elementwise_fma(a, b.xx, -a.yx), __builtin_elementwise_min(__builtin_elementwise_max(a * b, (f16x2)0), (f16x2)1));
}
KERNEL packed_shorts(const i16x2 *as, const i16x2 *bs, i16x2 *out) {
  i16x2 a = as[item()], b = bs[item()], by = b & (i16)15;
  u16x2 ua = __builtin_bit_cast(u16x2, a), ub = __builtin_bit_cast(u16x2, b);
#define SHORTS(v) __builtin_bit_cast(i16x2, v)
  ROWS(SHORTS(ua + ub), SHORTS(ua - ub.yx), SHORTS(ua * ub), SHORTS(ua * ub.yx + ua), __builtin_elementwise_min(a, b), __builtin_elementwise_max(a, b.yx),
       SHORTS(__builtin_elementwise_min(ua, ub)), SHORTS(__builtin_elementwise_max(ua, ub)), __builtin_elementwise_add_sat(a, b),
       SHORTS(__builtin_elementwise_sub_sat(ua, ub)), (i16x2)(a << by), (i16x2)(a >> by), SHORTS(ua >> SHORTS(by)));
}
KERNEL packed_singles(const vec<f32, 2> *as, const vec<f32, 2> *bs, vec<f32, 2> *out) {
#pragma clang fp contract(off)
  vec<f32, 2> a = as[item()], b = bs[item()];
  ROWS(a + b, a * b, a - b.yx, __builtin_elementwise_fma(a, b, a.yx), __builtin_elementwise_fma(a, b.xx, -b), a * b.yy);
}

// Mantissas, exponents, classes and scalings.
template <class T> DEVICE void float_parts(const T *as, const i32 *bs, T *out, i32 *whole) {
  T a = as[item()];
  i32 b = bs[item()], e = 0;
  T mantissa = __builtin_elementwise_abs(a) < (T)__builtin_inf() ? __builtin_frexp(a, &e) : a;
  ROWS(mantissa, __builtin_elementwise_ldexp(a, b), a - __builtin_elementwise_floor(a), __builtin_elementwise_roundeven(a),
       __builtin_elementwise_round(a), __builtin_elementwise_canonicalize(a));
  rows(whole, e, __builtin_isnan(a), __builtin_isfpclass(a, 0x264), __builtin_isnormal(a), __builtin_signbit(a) != 0);
}
KERNEL float_parts_f32(const f32 *a, const i32 *b, f32 *out, i32 *whole) { float_parts(a, b, out, whole); }
KERNEL float_parts_f64(const f64 *a, const i32 *b, f64 *out, i32 *whole) { float_parts(a, b, out, whole); }

// Bytes and bits of dwords.
KERNEL bit_tricks(const u32 *as, const u32 *bs, u32 *out) {
  u32 a = as[item()], b = bs[item()], c = a * 2654435761u ^ b;
  ROWS(__builtin_amdgcn_perm(a, b, c & 0x0f0f0f0f), __builtin_amdgcn_alignbyte(a, b, c), __builtin_amdgcn_alignbit(a, b, c),
       __builtin_amdgcn_ubfe(a, b & 31, c & 31), (u32)__builtin_amdgcn_sbfe(a, b & 31, c & 31), __builtin_amdgcn_sad_u8(a, b, c),
       __builtin_amdgcn_msad_u8(a, b, c), __builtin_amdgcn_sad_hi_u8(a, b, c), __builtin_amdgcn_sad_u16(a, b, c), __builtin_amdgcn_lerp(a, b, c),
       __builtin_amdgcn_cvt_pk_u8_f32((f32)(b & 0x1ff) - 40.5f, a & 3, c), (a & b) | (~a & c), (a ^ b) + c, (a << 3 | b), (a + b) << (c & 31), (a & b) | c,
       (a & 0xffffff) * (b & 0xffffff), (u32)(((i32)(a << 8) >> 8) * ((i32)(b << 8) >> 8)), __builtin_bswap32(a) ^ b);
}
KERNEL differences(const u64 *as, const u32 *bs, const u64 *cs, u64 *out, vec<u32, 4> *quads) {
  u64 a = as[item()], c = cs[item()];
  u32 b = bs[item()];
  ROWS(__builtin_amdgcn_qsad_pk_u16_u8(a, b, c), __builtin_amdgcn_mqsad_pk_u16_u8(a, b, c));
  quads[item()] = __builtin_amdgcn_mqsad_u32_u8(a, b, vec<u32, 4>{(u32)c, (u32)(c >> 32), b, 7});
}

#if defined(__gfx942__) || defined(__gfx950__) || defined(__GFX12__)
// Floats of eight bits to and from f32: nearest even, and rounded by the random bits given.
KERNEL small_floats(const f32 *in, const u32 *random, u32 *packed, u32 *stochastic, f32 *wide) {
  u32 i = item();
  f32 a = in[2 * i], b = in[2 * i + 1];
  i32 p = __builtin_amdgcn_cvt_pk_bf8_f32(a, b, __builtin_amdgcn_cvt_pk_fp8_f32(a, b, 0, false), true);
  packed[i] = p;
  stochastic[i] = __builtin_amdgcn_cvt_sr_bf8_f32(b, random[i], __builtin_amdgcn_cvt_sr_fp8_f32(a, random[i], 0, 1), 2);
  wide[4 * i] = __builtin_amdgcn_cvt_f32_fp8(p, 0), wide[4 * i + 1] = __builtin_amdgcn_cvt_f32_fp8(p, 1);
  wide[4 * i + 2] = __builtin_amdgcn_cvt_f32_bf8(p, 2), wide[4 * i + 3] = __builtin_amdgcn_cvt_f32_bf8(p, 3);
}
#endif

// The same sums, products and quotients, compiled with subnormals flushed and with fast math.
KERNEL singles(const f32 *as, const f32 *bs, f32 *out) {
  f32 a = as[item()], b = bs[item()];
  ROWS(a + b, a * b, a * b - b, a / b, __builtin_sqrtf(__builtin_fabsf(a)), 1.0f / b, min(a, b), a - __builtin_floorf(a));
}
