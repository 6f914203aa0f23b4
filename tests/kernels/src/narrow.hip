// Floats of four to eight bits with a scale, and bf16: conversions of CDNA4 and RDNA4, sums of packed pairs by atomics.
#include "device.h"
#if defined(__gfx950__)
typedef vec<f32, 2> f32x2;
typedef vec<i16, 2> i16x2;
typedef vec<u32, 6> u32x6;
typedef vec<f32, 16> f32x16;
typedef vec<f32, 32> f32x32;
// Pairs: divided by the scale and rounded to fp8, bf8 and fp4; then widened and multiplied by it.
KERNEL scaled_pairs(const f32x2 *in, const f32 *scales, u32 *packed, f32x2 *wide) {
  u32 i = item(), n = gridx();
  f32 a = in[i].x, b = in[i].y, s = scales[i];
  i16x2 fp8 = __builtin_amdgcn_cvt_scalef32_pk_fp8_f32(i16x2{0, 0}, a, b, s, false);
  i16x2 both = __builtin_amdgcn_cvt_scalef32_pk_bf8_f32(fp8, a, b, s, true);
  u32 eight = __builtin_bit_cast(u32, both), four = __builtin_amdgcn_cvt_scalef32_pk_fp4_f32(0xaaaaaaaa, a, b, s, 2);
  packed[i] = eight, packed[n + i] = four;
  wide[i] = __builtin_amdgcn_cvt_scalef32_pk_f32_fp8(eight, s, false);
  wide[n + i] = __builtin_amdgcn_cvt_scalef32_pk_f32_bf8(eight, s, true);
  wide[2 * n + i] = __builtin_amdgcn_cvt_scalef32_pk_f32_fp4(four, s, 2);
}
// Thirty-two at once to six bits, taken in turn from two sources, and back.
KERNEL SIZED(64) scaled_blocks(const f32x16 *in, const f32 *scales, u32 *fp6, u32 *bf6, f32x32 *wide) {
  u32 i = item(), n = gridx();
  f32x16 low = in[2 * i], high = in[2 * i + 1];
  f32x16 a = __builtin_shufflevector(low, high, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  f32x16 b = __builtin_shufflevector(low, high, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  u32x6 x = __builtin_amdgcn_cvt_scalef32_2xpk16_fp6_f32(a, b, scales[i]), y = __builtin_amdgcn_cvt_scalef32_2xpk16_bf6_f32(a, b, scales[i]);
  for (u32 k = 0; k < 6; k++) fp6[6 * i + k] = x[k], bf6[6 * i + k] = y[k];
  wide[i] = __builtin_amdgcn_cvt_scalef32_pk32_f32_fp6(x, scales[i]);
  wide[n + i] = __builtin_amdgcn_cvt_scalef32_pk32_f32_bf6(y, scales[i]);
}
// Any function of three bits, and the random number generator.
KERNEL newer_logic(const u32 *as, const u32 *bs, const u32 *cs, u32 *out) {
  u32 i = item(), n = gridx(), a = as[i], b = bs[i], c = cs[i];
  out[i] = __builtin_amdgcn_bitop3_b32(a, b, c, 0xe8);
  out[n + i] = __builtin_amdgcn_bitop3_b32(a, b, c, 0x1d);
  out[2 * n + i] = __builtin_amdgcn_prng_b32(a);
}
#endif
// bf16: sums of products in f32, conversions both ways, arithmetic of clang's making.
KERNEL brains(const vec<bf16, 2> *as, const vec<bf16, 2> *bs, const f32 *cs, f32 *dots, bf16 *out) {
  u32 i = item(), n = gridx();
  vec<bf16, 2> a = as[i], b = bs[i];
  f32 c = cs[i];
#if defined(__gfx950__)
  dots[i] = __builtin_amdgcn_fdot2_f32_bf16(a, b, c, false);
#elif !defined(__GFX9__)
  dots[i] = __builtin_amdgcn_fdot2_f32_bf16(__builtin_bit_cast(vec<i16, 2>, a), __builtin_bit_cast(vec<i16, 2>, b), c, false);
#else
  dots[i] = (f32)a.x * (f32)b.x + ((f32)a.y * (f32)b.y + c);
#endif
  out[i] = a.x + b.x;
  out[n + i] = a.x * b.y;
  out[2 * n + i] = (bf16)(c * (f32)a.y);
}
#if defined(__GFX9__) || defined(__GFX12__)
// Pairs added by atomics to a few places of memory and of LDS.
KERNEL SIZED(128) packed_sums(const vec<f16, 2> *halves, const vec<i16, 2> *brains, vec<f16, 2> *sums, vec<i16, 2> *brain_sums, f64 *wide) {
  typedef __attribute__((address_space(1))) vec<f16, 2> *GlobalHalves;
  typedef __attribute__((address_space(1))) vec<i16, 2> *GlobalBrains;
  typedef __attribute__((address_space(3))) vec<f16, 2> *LocalHalves;
  typedef __attribute__((address_space(3))) vec<i16, 2> *LocalBrains;
  LDS vec<f16, 2> h[4];
  LDS vec<i16, 2> b[4];
  if (tx() < 4) h[tx()] = 0, b[tx()] = 0;
  barrier();
  u32 at = tx() & 3;
  __builtin_amdgcn_ds_atomic_fadd_v2f16((LocalHalves)&h[at], halves[item()]);
  __builtin_amdgcn_ds_atomic_fadd_v2bf16((LocalBrains)&b[at], brains[item()]);
  __builtin_amdgcn_flat_atomic_fadd_v2f16(&sums[4 + at], halves[item()]);
  __builtin_amdgcn_global_atomic_fadd_v2bf16((GlobalBrains)&brain_sums[4 + at], brains[item()]);
  G_ADD(&wide[at], (f64)halves[item()].x);
  barrier();
  if (tx() < 4) {
    __builtin_amdgcn_global_atomic_fadd_v2f16((GlobalHalves)&sums[at], h[at]);
    __builtin_amdgcn_flat_atomic_fadd_v2bf16(&brain_sums[at], b[at]);
  }
}
#endif
