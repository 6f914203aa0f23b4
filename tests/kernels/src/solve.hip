// Dense and banded systems by one workgroup: correctly rounded f32 and f64 divisions, steps that wait for each other.
#include "device.h"
#pragma clang fp contract(off)
// LU factors in place, no pivoting: a column of lanes divides, a rectangle of lanes subtracts.
KERNEL lu_f64(f64 *matrix, u32 n) {
  f64 *m = matrix + (u64)bx() * n * n;
  for (u32 k = 0; k < n; k++) {
    for (u32 i = k + 1 + tx(); i < n; i += dimx()) m[i * n + k] /= m[k * n + k];
    barrier();
    u32 left = n - k - 1;
    for (u32 t = tx(); t < left * left; t += dimx()) {
      u32 i = k + 1 + t / left, j = k + 1 + t % left;
      m[i * n + j] -= m[i * n + k] * m[k * n + j];
    }
    barrier();
  }
}
// Tridiagonal system of dimx() unknowns by parallel cyclic reduction: a x[i-1] + b x[i] + c x[i+1] = d.
KERNEL tridiagonal_f32(const f32 *a, const f32 *b, const f32 *c, const f32 *d, f32 *x) {
  LDS f32 sa[256], sb[256], sc[256], sd[256];
  u32 t = tx(), n = dimx(), i = item();
  sa[t] = a[i], sb[t] = b[i], sc[t] = c[i], sd[t] = d[i];
  for (u32 step = 1; step < n; step <<= 1) {
    barrier();
    f32 va = 0, vb = sb[t], vc = 0, vd = sd[t];
    if (t >= step) {
      f32 f = sa[t] / sb[t - step];
      va = -(f * sa[t - step]);
      vb = vb - f * sc[t - step];
      vd = vd - f * sd[t - step];
    }
    if (t + step < n) {
      f32 f = sc[t] / sb[t + step];
      vc = -(f * sc[t + step]);
      vb = vb - f * sa[t + step];
      vd = vd - f * sd[t + step];
    }
    barrier();
    sa[t] = va, sb[t] = vb, sc[t] = vc, sd[t] = vd;
  }
  x[i] = sd[t] / sb[t];
}
// One round of all-pairs shortest paths.
KERNEL floyd_round(u32 *distance, u32 n, u32 k) {
  u32 j = item(), i = by();
  if (j >= n) return;
  u32 via = distance[i * n + k] + distance[k * n + j];
  if (via < distance[i * n + j]) distance[i * n + j] = via;
}
