// Generic pointers: FLAT accesses whose lanes are in memory, LDS and scratch at once, behind calls that are not inlined.
#include "device.h"
NOINLINE i32 total(const i32 *p, u32 n) {
  i32 sum = 0;
  for (u32 k = 0; k < n; k++) sum = sum * 3 + p[k];
  return sum;
}
NOINLINE void scale(i16 *p, u32 n) {
  for (u32 k = 0; k < n; k++) p[k] = (i16)(p[k] * 5 + 1);
}
KERNEL mixed_spaces(i32 *in, i32 *out, u32 *kind, u32 n) {
  LDS i32 shared[8 * 128];
  i32 own[8];
  u32 i = item();
  for (u32 k = 0; k < 8; k++) {
    shared[tx() * 8 + k] = in[i * 8 + k] ^ 0x55;
    own[k] = in[i * 8 + (7 - k)];
  }
  i32 *p = i % 3 == 0 ? in + i * 8 : i % 3 == 1 ? shared + tx() * 8 : own;
  scale((i16 *)p, 5);
  out[i] = total(p, n);
  kind[i] = __builtin_amdgcn_is_shared(p) | __builtin_amdgcn_is_private(p) << 1;
}
// Atomics through the same kind of pointer: lanes count in memory or in LDS.
KERNEL mixed_atomics(const u8 *in, u32 *counts, u64 *sums) {
  LDS u32 shared[16];
  LDS u64 wide[16];
  if (tx() < 16) shared[tx()] = 0, wide[tx()] = 0;
  barrier();
  u32 v = in[item()], bin = v & 15;
  u32 *p = v & 16 ? shared + bin : counts + bin;
  u64 *q = v & 32 ? wide + bin : sums + bin;
  __hip_atomic_fetch_add(p, v, RELAXED, DEVICE_WIDE);
  __hip_atomic_fetch_max(q, (u64)v << 33 | v, RELAXED, DEVICE_WIDE);
  barrier();
  if (tx() < 16) {
    G_ADD(&counts[16 + tx()], shared[tx()]);
    G_MAX(&sums[16 + tx()], wide[tx()]);
  }
}
