// Workgroups that meet: a barrier over the whole grid by atomics, waves that spin, clocks that never run backwards.
#include "device.h"
DEVICE void meet(u32 *arrived, u32 groups) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
  barrier();
  if (tx() == 0) {
    u32 turn = __hip_atomic_fetch_add(arrived, 1u, __ATOMIC_ACQ_REL, DEVICE_WIDE) / groups + 1;
    while (G_LOAD(arrived) < turn * groups) __builtin_amdgcn_s_sleep(2);
  }
  barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
}
// Rounds of averaging over a ring that all workgroups share.
KERNEL relax(u64 *a, u64 *b, u32 *arrived, u32 rounds, u32 groups) {
  u32 i = item(), n = gridx();
  for (u32 r = 0; r < rounds; r++) {
    b[i] = (a[(i + 1) % n] + 3 * a[(i + n - 1) % n]) >> 2;
    u64 *swap = a;
    a = b, b = swap;
    meet(arrived, groups);
  }
}
KERNEL clocks(u64 *times, u32 *ordered) {
#if defined(__GFX9__)
  u64 a = __builtin_amdgcn_s_memtime(), b = __builtin_amdgcn_s_memtime();
  u64 c = __builtin_amdgcn_s_memrealtime();
  __builtin_amdgcn_s_sleep(4);
  u64 d = __builtin_amdgcn_s_memrealtime();
#else
  u64 a = __builtin_readcyclecounter(), b = __builtin_readcyclecounter();
  u64 c = __builtin_readsteadycounter();
  __builtin_amdgcn_s_sleep(4);
  u64 d = __builtin_readsteadycounter();
#endif
  times[item()] = b - a;
  ordered[item()] = (a <= b) + 2 * (c <= d) + 4 * (a != 0);
}
