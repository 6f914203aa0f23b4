// Loops with many trips and divergent exits in f64, approximate reciprocal square roots in f32.
#include "device.h"
KERNEL mandelbrot_f64(u16 *out, u32 w, u32 h, u32 limit) {
#pragma clang fp contract(off)
  u32 x = item(), y = by() * 8 + ty(), k = 0;
  if (x >= w || y >= h) return;
  f64 cr = -2.0 + 3.0 * x / w, ci = -1.0 + 2.0 * y / h, zr = 0, zi = 0;
  for (; k < limit && zr * zr + zi * zi <= 4.0; k++) {
    f64 t = zr * zr - zi * zi + cr;
    zi = 2.0 * zr * zi + ci;
    zr = t;
  }
  out[y * w + x] = (u16)k;
}
// Forces on each body from all, tiles of bodies in LDS. xyzm: position and mass.
KERNEL nbody_f32(const vec<f32, 4> *xyzm, vec<f32, 4> *force, u32 n) {
  LDS vec<f32, 4> tile[64];
  u32 i = item();
  vec<f32, 4> me = i < n ? xyzm[i] : (vec<f32, 4>)(0.f), sum = (vec<f32, 4>)(0.f);
  for (u32 base = 0; base < n; base += 64) {
    tile[tx()] = base + tx() < n ? xyzm[base + tx()] : (vec<f32, 4>)(0.f);
    barrier();
    for (u32 j = 0; j < 64; j++) {
      vec<f32, 4> d = tile[j] - me;
      f32 r2 = fma(d.x, d.x, fma(d.y, d.y, fma(d.z, d.z, 0.01f)));
      f32 r = __builtin_amdgcn_rsqf(r2), s = tile[j].w * r * r * r;
      sum += (vec<f32, 4>){d.x * s, d.y * s, d.z * s, s};
    }
    barrier();
  }
  if (i < n) force[i] = sum;
}
