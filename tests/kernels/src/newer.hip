// What single architectures have: loads to LDS and row exchanges of CDNA, split barriers and prefetches of RDNA4.
#include "device.h"
typedef __attribute__((address_space(3))) void *LdsAddress;
typedef __attribute__((address_space(1))) void *MemoryAddress;

#if defined(__gfx942__) || defined(__gfx950__)
// Rows of dwords go to LDS without registers between; read back turned round.
KERNEL load_to_lds(const u32 *in, u32 *out) {
  LDS u32 s[256];
  __builtin_amdgcn_global_load_lds((MemoryAddress)(in + item()), (LdsAddress)(s + tx() / WAVE * WAVE), 4, 0, 0);
  barrier();
  out[item()] = s[255 - tx()];
}
#endif
#if defined(__gfx950__)
KERNEL load_to_lds_128(const vec<u32, 4> *in, vec<u32, 4> *out) {
  LDS vec<u32, 4> s[128];
  __builtin_amdgcn_global_load_lds((MemoryAddress)(in + item()), (LdsAddress)(s + tx() / WAVE * WAVE), 16, 0, 0);
  barrier();
  out[item()] = s[tx() ^ 97];
}
KERNEL swap_rows(const u32 *a, const u32 *b, u32 *out) {
  auto r = __builtin_amdgcn_permlane16_swap(a[item()], b[item()], false, false);
  auto q = __builtin_amdgcn_permlane32_swap(r[0], r[1], false, false);
  out[2 * item()] = q[0];
  out[2 * item() + 1] = q[1];
}
#endif
#if defined(__GFX12__)
// Waves tell each other that LDS is written, work on, and only then wait.
KERNEL split_barrier(const u32 *in, u32 *out, u32 rounds) {
  LDS u32 s[256];
  u32 v = in[item()];
  __builtin_prefetch(in + item() + 64);
  for (u32 r = 0; r < rounds; r++) {
    s[tx()] = v;
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier_signal(-1);
    v = v * 1664525 + 1013904223;
    __builtin_amdgcn_s_barrier_wait(-1);
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
    v ^= s[(tx() + 33) & 255];
    barrier();
  }
  out[item()] = v;
}
#endif
