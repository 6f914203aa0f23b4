// Histogram: LDS atomics on a copy per wave, merged by 64-bit atomics in memory; every integer atomic that returns nothing.
#include "device.h"
KERNEL histogram(const u8 *in, u64 *bins, i32 *least, u32 *bits, u32 n) {
  LDS u32 h[256 / WAVE][256];
  u32 wave = tx() / WAVE, waves = (dimx() + WAVE - 1) / WAVE;
  for (u32 i = lane(); i < 256; i += WAVE) h[wave][i] = 0;
  barrier();
  for (u32 i = item(); i < n; i += gridx()) {
    u32 v = in[i];
    L_ADD(&h[wave][v], 1u);
    G_MIN(&least[0], (i32)v - 200 * (i32)(i & 1));
    G_MAX(&least[1], (i32)v - 300);
    G_AND(&bits[0], v | 0x50u);
    G_OR(&bits[1], v << 8);
    G_XOR(&bits[2], v * 0x01010101u + i);
    G_SUB(&bits[3], v);
  }
  barrier();
  for (u32 i = tx(); i < 256; i += dimx()) {
    u64 sum = 0;
    for (u32 w = 0; w < waves; w++) sum += h[w][i];
    if (sum) G_ADD(&bins[i], sum << 20 | sum);
  }
}
