// Arithmetic that compilers expand: divisions, square roots, saturation, wide products, conversions between all types.
#include "device.h"
template <class T> struct Unsigned;
template <> struct Unsigned<i8> { using type = u8; };
template <> struct Unsigned<i16> { using type = u16; };
template <> struct Unsigned<i32> { using type = u32; };
template <> struct Unsigned<i64> { using type = u64; };

// 18 results a pair; a row of `out` for each. b is never 0.
template <class T> DEVICE void integers(const T *as, const T *bs, T *out) {
  using U = typename Unsigned<T>::type;
  const u32 n = gridx(), i = item(), bits = 8 * sizeof(T);
  T a = as[i], b = bs[i];
  U ua = (U)a, ub = (U)b, by = ub & (bits - 1);
  T r[] = {(T)(ua + ub), (T)(ua - ub), (T)(ua * ub), (T)(a / b), (T)(a % b), (T)(ua / ub), (T)(ua % ub),
           __builtin_elementwise_add_sat(a, b), __builtin_elementwise_sub_sat(a, b), (T)__builtin_elementwise_add_sat(ua, ub),
           (T)__builtin_elementwise_sub_sat(ua, ub), (T)(ua << by), (T)(a >> by), (T)(ua >> by), (T)__builtin_elementwise_popcount(ua),
           (T)__builtin_elementwise_bitreverse(ua), (T)__builtin_elementwise_clzg(ua, (U)bits), (T)__builtin_elementwise_ctzg(ua, (U)bits)};
  for (u32 k = 0; k < sizeof(r) / sizeof(T); k++) out[k * n + i] = r[k];
}
KERNEL integers_i8(const i8 *a, const i8 *b, i8 *out) { integers(a, b, out); }
KERNEL integers_i16(const i16 *a, const i16 *b, i16 *out) { integers(a, b, out); }
KERNEL integers_i32(const i32 *a, const i32 *b, i32 *out) { integers(a, b, out); }
KERNEL integers_i64(const i64 *a, const i64 *b, i64 *out) { integers(a, b, out); }

// 13 results a pair.
template <class T> DEVICE void floats(const T *as, const T *bs, T *out) {
#pragma clang fp contract(off)
  const u32 n = gridx(), i = item();
  T a = as[i], b = bs[i];
  T r[] = {a + b, a - b, a * b, a / b, __builtin_elementwise_sqrt(a), __builtin_elementwise_rint(a), __builtin_elementwise_floor(a),
           __builtin_elementwise_ceil(a), __builtin_elementwise_trunc(a), __builtin_elementwise_minnum(a, b),
           __builtin_elementwise_maxnum(a, b), __builtin_elementwise_copysign(a, b), __builtin_elementwise_abs(b)};
  for (u32 k = 0; k < sizeof(r) / sizeof(T); k++) out[k * n + i] = r[k];
}
KERNEL floats_f16(const f16 *a, const f16 *b, f16 *out) { floats(a, b, out); }
KERNEL floats_f32(const f32 *a, const f32 *b, f32 *out) { floats(a, b, out); }
KERNEL floats_f64(const f64 *a, const f64 *b, f64 *out) { floats(a, b, out); }
KERNEL fused_f32(const f32 *a, const f32 *b, const f32 *c, f32 *out) { out[item()] = fma(a[item()], b[item()], c[item()]); }

// Conversions, each rounded once.
KERNEL conversions(const f64 *d, const f32 *f, const i64 *l, f32 *to_f32, f16 *to_f16, f64 *to_f64, i64 *to_int, u16 *to_bf16) {
  const u32 n = gridx(), i = item();
  to_f32[i] = (f32)d[i];
  to_f32[n + i] = (f32)l[i];
  to_f32[2 * n + i] = (f32)(u64)l[i];
  to_f32[3 * n + i] = (f32)(i32)l[i];
  to_f16[i] = (f16)d[i];
  to_f16[n + i] = (f16)f[i];
  to_f16[2 * n + i] = (f16)(i16)l[i];
  to_f64[i] = (f64)l[i];
  to_f64[n + i] = (f64)(u64)l[i];
  to_f64[2 * n + i] = (f64)f[i];
  f64 small = __builtin_elementwise_trunc(d[i]);
  bool fits = small > -9.2e18 && small < 9.2e18;
  to_int[i] = fits ? (i64)d[i] : 0;
  to_int[n + i] = fits && small >= 0 ? (i64)(u64)d[i] : 0;
  bool fits32 = f[i] > -2147483648.f && f[i] < 2147483648.f;
  to_int[2 * n + i] = fits32 ? (i32)f[i] : 0;
  to_int[3 * n + i] = fits32 ? (i16)(i32)f[i] : 0;
  to_bf16[i] = __builtin_bit_cast(u16, (bf16)f[i]);
}
