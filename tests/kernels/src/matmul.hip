// Products of matrices without matrix instructions: LDS tiles in f64, dot products of four bytes, packed f16.
#include "device.h"
#define TILE 16
KERNEL matmul_f64(const f64 *a, const f64 *b, f64 *c, u32 m, u32 n, u32 k) {
#pragma clang fp contract(off)
  LDS f64 sa[TILE][TILE + 1], sb[TILE][TILE + 1];
  u32 row = by() * TILE + ty(), col = bx() * TILE + tx();
  f64 sum = 0;
  for (u32 base = 0; base < k; base += TILE) {
    sa[ty()][tx()] = row < m && base + tx() < k ? a[row * k + base + tx()] : 0;
    sb[ty()][tx()] = col < n && base + ty() < k ? b[(base + ty()) * n + col] : 0;
    barrier();
    for (u32 j = 0; j < TILE; j++) sum += sa[ty()][j] * sb[j][tx()];
    barrier();
  }
  if (row < m && col < n) c[row * n + col] = sum;
}

DEVICE i32 dot4(i32 a, i32 b, i32 sum) {
#if defined(__GFX9__)
  return __builtin_amdgcn_sdot4(a, b, sum, false);
#else
  return __builtin_amdgcn_sudot4(true, a, true, b, sum, false);
#endif
}
// b is stored by columns, k in dwords of four bytes.
KERNEL matmul_i8(const i32 *a, const i32 *b, i32 *c, u32 n, u32 k4) {
  u32 row = by(), col = item();
  if (col >= n) return;
  i32 sum = 0;
  for (u32 j = 0; j < k4; j++) sum = dot4(a[row * k4 + j], b[col * k4 + j], sum);
  c[row * n + col] = sum;
}

// Two columns a lane, fused multiply-adds in f16.
KERNEL matmul_f16(const f16 *a, const vec<f16, 2> *b, vec<f16, 2> *c, u32 n2, u32 k) {
  u32 row = by(), col = item();
  if (col >= n2) return;
  vec<f16, 2> sum = {0, 0};
  for (u32 j = 0; j < k; j++) {
    f16 v = a[row * k + j];
    sum = __builtin_elementwise_fma((vec<f16, 2>){v, v}, b[j * n2 + col], sum);
  }
  c[row * n2 + col] = sum;
}
