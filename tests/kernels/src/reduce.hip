// Tree reductions in LDS: barriers between halving steps, uneven last workgroups, one partial per workgroup.
#include "device.h"
struct Add { template <class T> DEVICE T of(T a, T b) { return a + b; } };
struct Min { template <class T> DEVICE T of(T a, T b) { return min(a, b); } };
struct Max { template <class T> DEVICE T of(T a, T b) { return max(a, b); } };

template <class T, class Op> DEVICE void reduce(const T *in, T *out, u32 n, T none) {
  LDS T s[256];
  u32 t = tx(), i = bx() * 512 + t;
  s[t] = Op::of(i < n ? in[i] : none, i + 256 < n ? in[i + 256] : none);
  barrier();
  for (u32 k = 128; k; k >>= 1) {
    if (t < k) s[t] = Op::of(s[t], s[t + k]);
    barrier();
  }
  if (t == 0) out[bx()] = s[0];
}
KERNEL sum_i32(const i32 *in, i32 *out, u32 n) { reduce<i32, Add>(in, out, n, 0); }
KERNEL sum_f32(const f32 *in, f32 *out, u32 n) { reduce<f32, Add>(in, out, n, 0); }
KERNEL sum_f64(const f64 *in, f64 *out, u32 n) { reduce<f64, Add>(in, out, n, 0); }
KERNEL min_f32(const f32 *in, f32 *out, u32 n) { reduce<f32, Min>(in, out, n, __builtin_inff()); }
KERNEL max_f16(const f16 *in, f16 *out, u32 n) { reduce<f16, Max>(in, out, n, (f16)-65504.f); }
KERNEL min_i64(const i64 *in, i64 *out, u32 n) { reduce<i64, Min>(in, out, n, 0x7fffffffffffffffl); }

// First place of the greatest value: value and place travel together through one 64-bit atomic maximum.
KERNEL argmax_i32(const i32 *in, u64 *out, u32 n) {
  u64 best = 0;
  for (u32 i = item(); i < n; i += gridx())
    best = max(best, (u64)((u32)in[i] ^ 0x80000000u) << 32 | (u32)~i);
  G_MAX(out, best);
}
