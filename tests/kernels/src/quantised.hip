// Products of quantised matrices: dot instructions of bytes, nibbles and halves, weights of four bits with scales.
#include "device.h"
typedef vec<f16, 2> f16x2;
typedef vec<i16, 2> i16x2;

DEVICE i32 dot_i8(i32 a, i32 b, i32 c) {
#if defined(__GFX9__)
  return __builtin_amdgcn_sdot4(a, b, c, false);
#else
  return __builtin_amdgcn_sudot4(true, a, true, b, c, false);
#endif
}
DEVICE i32 dot_i4(i32 a, i32 b, i32 c) {
#if defined(__GFX9__)
  return __builtin_amdgcn_sdot8(a, b, c, false);
#else
  return __builtin_amdgcn_sudot8(true, a, true, b, c, false);
#endif
}
// One output a lane; depth in dwords. clamped: sums held at the ends of i32; mixed: b unsigned, by two dots where one has no signs.
KERNEL dots(const i32 *a, const i32 *b, i32 *bytes, i32 *nibbles, u32 *plain, i32 *clamped, u32 depth) {
  u32 row = by(), column = tx(), at = row * dimx() + column;
  i32 sum8 = 0, sum4 = 0, high = 0x7fff0000;
  u32 sum = 0;
  for (u32 k = 0; k < depth; k++) {
    i32 x = a[row * depth + k], y = b[column * depth + k];
    sum8 = dot_i8(x, y, sum8);
    sum4 = dot_i4(x, y, sum4);
    sum = __builtin_amdgcn_udot4(x, y, __builtin_amdgcn_udot8(x, y, sum, false), false);
#if defined(__GFX9__)
    high = __builtin_amdgcn_sdot4(x, y, high, true);
#else
    high = __builtin_amdgcn_sudot4(true, x, true, y, high, true);
#endif
  }
  bytes[at] = sum8, nibbles[at] = sum4, plain[at] = sum, clamped[at] = high;
}
// Pairs of 16 bits: f16 products summed in f32; integers where the target has them.
KERNEL pairs(const f16x2 *a, const f16x2 *b, const i16x2 *c, const i16x2 *d, f32 *sums, i32 *whole, u32 n) {
  u32 i = item();
  if (i >= n) return;
  sums[i] = __builtin_amdgcn_fdot2(a[i], b[i], 1.0f, false);
#if defined(__GFX9__)
  whole[i] = __builtin_amdgcn_sdot2(c[i], d[i], -5, false) + (i32)__builtin_amdgcn_udot2(vec<u16, 2>{1, 2}, vec<u16, 2>{3, 65535}, i, false);
#else
  whole[i] = c[i].x * d[i].x + c[i].y * d[i].y - 5 + (i32)(3 + 2 * 65535 + i);
#endif
}
// out = a times b; b is stored four bits each, columns of depth / 2 bytes, a scale and a zero point for 32 neighbours.
KERNEL SIZED(64) int4_product(const f16 *a, const u32 *b, const f16 *scales, const u8 *zeros, f16 *out, u32 depth, u32 columns) {
  LDS f16 row[1024];
  u32 column = bx() * 64 + tx();
  for (u32 k = tx(); k < depth; k += 64) row[k] = a[by() * depth + k];
  barrier();
  if (column >= columns) return;
  f32 sum = 0;
  for (u32 group = 0; group < depth / 32; group++) {
    u32 g = column * (depth / 32) + group;
    f16x2 scale = scales[g], zero = (f16)zeros[g], part = 0;
    for (u32 w = 0; w < 4; w++) {
      u32 packed = b[g * 4 + w];
      for (u32 k = 0; k < 4; k++, packed >>= 4) { // of a dword, nibbles k and k + 4: 1024 + nibble as bits of f16
        f16x2 weight = __builtin_bit_cast(f16x2, (packed & 0x000f000f) | 0x64006400) - (f16)1024.0f - zero;
        f16x2 x = {row[group * 32 + w * 8 + k], row[group * 32 + w * 8 + k + 4]};
        part = __builtin_elementwise_fma(x, weight, part);
      }
    }
    part *= scale;
    sum += (f32)part.x + (f32)part.y;
  }
  out[by() * columns + column] = (f16)sum;
}
