// Stencils: 2-D tiles with a halo in LDS, 3-D workgroups over a volume, edges clamped or left out, uneven on every axis.
#include "device.h"
#pragma clang fp contract(off)
#define TILE 16

// 5 points, edges clamped. Each lane loads its own cell, the rim of the tile loads the halo.
KERNEL stencil5_f32(const f32 *in, f32 *out, i32 w, i32 h) {
  LDS f32 s[TILE + 2][TILE + 2];
  i32 x = bx() * TILE + tx(), y = by() * TILE + ty(), sx = tx() + 1, sy = ty() + 1;
  auto at = [&](i32 u, i32 v) { return in[min(max(v, 0), h - 1) * w + min(max(u, 0), w - 1)]; };
  s[sy][sx] = at(x, y);
  if (tx() == 0) s[sy][0] = at(x - 1, y);
  if (ty() == 0) s[0][sx] = at(x, y - 1);
  if (tx() == dimx() - 1) s[sy][sx + 1] = at(x + 1, y);
  if (ty() == dimy() - 1) s[sy + 1][sx] = at(x, y + 1);
  barrier();
  out[y * w + x] = s[sy][sx] * 0.5f + ((s[sy - 1][sx] + s[sy + 1][sx]) + (s[sy][sx - 1] + s[sy][sx + 1])) * 0.125f;
}

// 7 points of a volume; the shell keeps its values. Explicit fused multiply-add.
KERNEL stencil7_f64(const f64 *in, f64 *out, u32 nx, u32 ny, u32 nz, f64 c) {
  u32 x = item(), y = by() * 4 + ty(), z = bz() * 2 + tz();
  if (x >= nx || y >= ny || z >= nz) return;
  u64 i = ((u64)z * ny + y) * nx + x;
  f64 v = in[i];
  bool inside = x && y && z && x < nx - 1 && y < ny - 1 && z < nz - 1;
  if (inside) {
    f64 sum = ((in[i - 1] + in[i + 1]) + (in[i - nx] + in[i + nx])) + (in[i - nx * ny] + in[i + nx * ny]);
    v = v + c * (sum - 6.0 * v);
  }
  out[i] = v;
}
