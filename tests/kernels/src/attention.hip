// Attention with online softmax: both products by matrix instructions, tiles handed over in LDS within a wave.
#include "device.h"
#define HEAD 32 // elements of a query
typedef vec<f32, 256 / WAVE> f32s;
#if defined(__GFX11__)
typedef vec<f16, 16> f16s; // all k of a row
#else
typedef vec<f16, 256 / WAVE> f16s;
#endif
DEVICE f32s multiply(f16s x, f16s y, f32s c) {
#if defined(__GFX9__)
  return __builtin_amdgcn_mfma_f32_16x16x16f16(x, y, c, 0, 0, 0);
#elif defined(__GFX11__) && WAVE == 32
  return __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(x, y, c);
#elif defined(__GFX11__)
  return __builtin_amdgcn_wmma_f32_16x16x16_f16_w64(x, y, c);
#elif WAVE == 32
  return __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(x, y, c);
#else
  return __builtin_amdgcn_wmma_f32_16x16x16_f16_w64_gfx12(x, y, c);
#endif
}
// The lane's part of 16 elements of its row.
DEVICE f16s part(const f16 *row) {
#if defined(__GFX11__)
  return *(const f16s *)row;
#else
  return ((const f16s *)row)[tx() / 16];
#endif
}
DEVICE u32 row_of(u32 i) {
  u32 group = tx() / 16;
#if defined(__GFX11__)
  return i * (WAVE / 16) + group;
#elif defined(__GFX12__)
  return WAVE == 32 ? 8 * group + i : i + 8 * (group & 1) + 4 * (group >> 1);
#else
  return 4 * group + i;
#endif
}
// 16 queries a wave. values: transposed, a row per element of the head; keys: whole tiles of 16.
KERNEL SIZED(WAVE) attention(const f16 *queries, const f16 *keys, const f16 *values, f32 *out, u32 n_keys, f32 scale) {
  LDS f32 scores[16][17], tops[16], sums[16], shrinks[16];
  LDS f16 weights[16][16];
  u32 column = tx() % 16;
  const f16 *query = queries + (bx() * 16 + column) * HEAD;
  f32s o[HEAD / 16] = {};
  if (tx() < 16) tops[tx()] = -__builtin_inff(), sums[tx()] = 0;
  for (u32 base = 0; base < n_keys; base += 16) {
    f32s tile = 0;
    for (u32 h = 0; h < HEAD; h += 16) tile = multiply(part(query + h), part(keys + (base + column) * HEAD + h), tile);
    for (u32 i = 0; i < 256 / WAVE; i++) scores[row_of(i)][column] = tile[i] * scale;
    barrier();
    if (tx() < 16) {
      f32 top = tops[tx()], sum = 0;
      for (u32 c = 0; c < 16; c++) top = max(top, scores[tx()][c]);
      f32 shrink = __builtin_elementwise_exp(tops[tx()] - top);
      for (u32 c = 0; c < 16; c++) {
        f32 w = __builtin_elementwise_exp(scores[tx()][c] - top);
        weights[tx()][c] = (f16)w;
        sum += w;
      }
      tops[tx()] = top, shrinks[tx()] = shrink, sums[tx()] = sums[tx()] * shrink + sum;
    }
    barrier();
    f16s w = part(weights[column]);
    for (u32 h = 0; h < HEAD / 16; h++) {
      for (u32 i = 0; i < 256 / WAVE; i++) o[h][i] *= shrinks[row_of(i)];
      o[h] = multiply(w, part(values + (h * 16 + column) * n_keys + base), o[h]);
    }
    barrier();
  }
  for (u32 h = 0; h < HEAD / 16; h++)
    for (u32 i = 0; i < 256 / WAVE; i++) out[(bx() * 16 + row_of(i)) * HEAD + h * 16 + column] = o[h][i] / sums[row_of(i)];
}
