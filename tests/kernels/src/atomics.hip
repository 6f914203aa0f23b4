// Atomics: floating-point adds, minima and maxima, packed halves, wrapping counters, 64-bit operations that return, scopes and orders.
#include "device.h"
KERNEL float_atomics(const f32 *in, f32 *sum, f64 *wide, f32 *least, f64 *greatest) {
  LDS f32 shared[4];
  LDS f64 shared64[4];
  if (tx() < 4) shared[tx()] = 0, shared64[tx()] = 0;
  barrier();
  f32 v = in[item()];
  u32 at = tx() & 3;
  L_ADD(&shared[at], v);
  L_ADD(&shared64[at], (f64)v);
  G_ADD(&sum[at], v);
  G_ADD(&wide[at], (f64)v * 0.5);
  G_MIN(&least[at], v);
  G_MAX(&greatest[at], (f64)v);
  barrier();
  if (tx() < 4) {
    G_ADD(&sum[4 + at], shared[at]);
    G_ADD(&wide[4 + at], shared64[at]);
  }
}
// Two halves a lane: two adders in f16 where the target has a packed add, else a loop around compare-and-swap.
KERNEL packed_atomics(const vec<f16, 2> *in, vec<f16, 2> *sums) {
  vec<f16, 2> v = in[item()];
  vec<f16, 2> *p = sums + (tx() & 7);
#if defined(__GFX9__) || defined(__GFX12__)
  __builtin_amdgcn_global_atomic_fadd_v2f16((__attribute__((address_space(1))) vec<f16, 2> *)p, v);
#else
  u32 *word = (u32 *)p, seen = *word;
  for (;;) {
    u32 held = compare_swap(word, seen, __builtin_bit_cast(u32, __builtin_bit_cast(vec<f16, 2>, seen) + v));
    if (held == seen) break;
    seen = held;
  }
#endif
}
// Tickets: what came back from counters, each value once. Wrapping counters by inc and dec.
KERNEL tickets(u64 *counter, u64 *taken, u32 *wrapped, u64 *bits, u32 n) {
  u32 i = item();
  if (i >= n) return;
  taken[i] = G_ADD(counter, 3ul);
  __builtin_amdgcn_atomic_inc32(&wrapped[0], 9, __ATOMIC_SEQ_CST, "agent");
  __builtin_amdgcn_atomic_dec32(&wrapped[1], 6, __ATOMIC_RELAXED, "");
  __builtin_amdgcn_atomic_inc64((u64 *)&wrapped[2], 1ul << 40, __ATOMIC_ACQ_REL, "workgroup");
  __hip_atomic_fetch_xor(&bits[0], 1ul << (i & 63), __ATOMIC_SEQ_CST, __HIP_MEMORY_SCOPE_SYSTEM);
  __hip_atomic_fetch_or(&bits[1], (u64)i << 32, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SINGLETHREAD);
  __hip_atomic_fetch_and(&bits[2], ~((u64)i << 20), __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_WAVEFRONT);
  __hip_atomic_fetch_min((i64 *)&bits[3], (i64)i - 20, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_WORKGROUP);
  G_SUB(&bits[4], (u64)i << 31);
}
