// Registers by number (movrel, GPR indexing, waterfall loops), and more live values than there are registers.
#include "device.h"
KERNEL indexed(const u32 *in, const u32 *places, u32 *out) {
  u32 a[16], i = item(), sum = 0;
  for (u32 k = 0; k < 16; k++) a[k] = in[i * 16 + k];
  for (u32 k = 0; k < 12; k++) {
    u32 uniform = places[k], own = (in[i] >> k) & 15;
    sum = sum * 31 + a[uniform];
    a[places[k + 12]] += sum;
    a[own] ^= a[(own + k) & 15];
  }
  for (u32 k = 0; k < 16; k++) out[i * 16 + k] = a[k];
}
// 48 values a lane that all live across a loop, in few VGPRs: scratch or accumulation registers hold the rest.
KERNEL __attribute__((amdgpu_num_vgpr(24))) few_vgprs(const u32 *in, u32 *out, u32 rounds) {
  u32 a[48], i = item();
#pragma unroll
  for (u32 k = 0; k < 48; k++) a[k] = in[i * 48 + k];
  for (u32 r = 0; r < rounds; r++) {
#pragma unroll
    for (u32 k = 0; k < 48; k++) a[k] = rotl(a[k], 7) + a[(k + 5) % 48];
  }
#pragma unroll
  for (u32 k = 0; k < 48; k++) out[i * 48 + k] = a[k];
}
// 64 uniform values in few SGPRs: lanes of a VGPR hold the rest.
KERNEL __attribute__((amdgpu_num_sgpr(40))) few_sgprs(const u32 *in, u32 *out, u32 rounds) {
  u32 a[64];
#pragma unroll
  for (u32 k = 0; k < 64; k++) a[k] = in[bx() * 64 + k];
  for (u32 r = 0; r < rounds; r++) {
#pragma unroll
    for (u32 k = 0; k < 64; k++) a[k] = (a[k] ^ a[(k + 9) % 64] >> 3) + r;
  }
  u32 sum = 0;
#pragma unroll
  for (u32 k = 0; k < 64; k++) sum = sum * 33 + a[k];
  out[item()] = sum + tx();
}
