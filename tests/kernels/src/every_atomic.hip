// Every atomic of every integer and float type, in memory, LDS and through generic pointers, with and without what it returns.
#include "device.h"
#define SCOPE RELAXED, GROUP
template <class T> struct Bits { static constexpr bool whole = true; };
template <> struct Bits<f32> { static constexpr bool whole = false; };
template <> struct Bits<f64> { static constexpr bool whole = false; };

// p[k] is given to operation k; returned[k] is what it held.
template <class T, class P> DEVICE u32 every(P p, T v, T *returned, u32 stride) {
  u32 k = 0;
#define DO(call) returned[k * stride] = call, k++
  DO(__hip_atomic_fetch_add(p + k, v, SCOPE));
  DO(__hip_atomic_fetch_sub(p + k, v, SCOPE));
  DO(__hip_atomic_fetch_min(p + k, v, SCOPE));
  DO(__hip_atomic_fetch_max(p + k, v, SCOPE));
  DO(__hip_atomic_exchange(p + k, v, SCOPE));
  T expected = v;
  __hip_atomic_compare_exchange_strong(p + k, &expected, (T)(v + 1), RELAXED, RELAXED, GROUP);
  DO(expected);
  if constexpr (Bits<T>::whole) {
    DO(__hip_atomic_fetch_and(p + k, v, SCOPE));
    DO(__hip_atomic_fetch_or(p + k, v, SCOPE));
    DO(__hip_atomic_fetch_xor(p + k, v, SCOPE));
  }
  return k;
}
// The same, what they return unused.
template <class T, class P> DEVICE void silent(P p, T v) {
  u32 k = 0;
  __hip_atomic_fetch_add(p + k++, v, SCOPE);
  __hip_atomic_fetch_sub(p + k++, v, SCOPE);
  __hip_atomic_fetch_min(p + k++, v, SCOPE);
  __hip_atomic_fetch_max(p + k++, v, SCOPE);
  __hip_atomic_exchange(p + k++, v, SCOPE);
  T expected = v;
  __hip_atomic_compare_exchange_strong(p + k++, &expected, (T)(v + 1), RELAXED, RELAXED, GROUP);
  if constexpr (Bits<T>::whole) {
    __hip_atomic_fetch_and(p + k++, v, SCOPE);
    __hip_atomic_fetch_or(p + k++, v, SCOPE);
    __hip_atomic_fetch_xor(p + k++, v, SCOPE);
  }
}
// A lane has nine places of each of four: memory and LDS, and through generic pointers either, even lanes memory.
template <class T> DEVICE void atomics(T *places, const T *values, T *returned, T *again) {
  LDS T local[64 * 9], mixed[64 * 9];
  T *mine = places + item() * 9, v = values[item()], *to = returned + item();
  u32 n = gridx();
  for (u32 k = 0; k < 9; k++) local[tx() * 9 + k] = mixed[tx() * 9 + k] = mine[k];
  T *generic = tx() & 1 ? &mixed[tx() * 9] : again + item() * 9;
  asm volatile("" : "+v"(generic));
  every(mine, v, to, n);
  u32 count = every(&local[tx() * 9], v, to + 9 * n, n);
  every(generic, v, to + 18 * n, n);
  silent(mine, v);
  silent(&local[tx() * 9], v);
  silent(generic, v);
  for (u32 k = 0; k < count; k++) {
    to[(27 + k) * n] = mine[k];
    to[(36 + k) * n] = local[tx() * 9 + k];
    to[(45 + k) * n] = generic[k];
  }
}
#define ATOMICS(T) KERNEL SIZED(64) atomics_##T(T *places, const T *values, T *returned, T *again) { atomics(places, values, returned, again); }
ATOMICS(u32)
ATOMICS(i32)
ATOMICS(u64)
ATOMICS(i64)
ATOMICS(f32)
ATOMICS(f64)
