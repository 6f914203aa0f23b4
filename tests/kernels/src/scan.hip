// Scans over many workgroups: lanes by ds_bpermute, waves by LDS, workgroups by more launches or by waiting for each other.
#include "device.h"

template <class T> DEVICE T wave_inclusive(T v) {
  for (u32 k = 1; k < WAVE; k <<= 1) {
    T below = shuffle_up(v, k);
    v += lane() >= k ? below : 0;
  }
  return v;
}
// Inclusive sum over a workgroup of up to 256; total: of all. LDS may be used again after the next barrier.
template <class T> DEVICE T group_inclusive(T v, T &total) {
  LDS T ends[256 / WAVE];
  u32 wave = tx() / WAVE, waves = (dimx() + WAVE - 1) / WAVE;
  v = wave_inclusive(v);
  if (lane() == WAVE - 1 || tx() == dimx() - 1) ends[wave] = v;
  barrier();
  T before = 0;
  total = 0;
  for (u32 w = 0; w < waves; w++) {
    before += w < wave ? ends[w] : 0;
    total += ends[w];
  }
  barrier();
  return v + before;
}
KERNEL scan_blocks(const u32 *in, u32 *out, u32 *totals, u32 n, u32 exclusive) {
  u32 i = item(), v = i < n ? in[i] : 0, total;
  u32 sum = group_inclusive(v, total);
  if (i < n) out[i] = exclusive ? sum - v : sum;
  if (tx() == 0) totals[bx()] = total;
}
KERNEL add_before(u32 *out, const u32 *before, u32 n) {
  u32 i = item();
  if (i < n) out[i] += before[bx()];
}

// One pass (decoupled look-back). state[b]: 1 << 32 | own total, later 2 << 32 | total up to here.
KERNEL scan_lookback(const u32 *in, u32 *out, u64 *state, u32 *ticket, u32 n) {
  LDS u32 mine, before;
  if (tx() == 0) mine = G_ADD(ticket, 1u);
  barrier();
  u32 b = mine, i = b * groupx() + tx(), total;
  u32 sum = group_inclusive(i < n ? in[i] : 0, total);
  if (tx() == 0) {
    u32 running = 0;
    if (b) G_STORE(&state[b], 1ul << 32 | total);
    for (u32 k = b; k--;) {
      u64 seen;
      while (((seen = G_LOAD(&state[k])) >> 32) == 0) __builtin_amdgcn_s_sleep(1);
      running += (u32)seen;
      if (seen >> 32 == 2) break;
    }
    G_STORE(&state[b], 2ul << 32 | (running + total));
    before = running;
  }
  barrier();
  if (i < n) out[i] = sum + before;
}

// Running maximum of 64-bit integers by one workgroup that walks along the array.
KERNEL prefix_max(const i64 *in, i64 *out, u32 n) {
  LDS i64 ends[256 / WAVE], carried;
  if (tx() == 0) carried = (i64)(1ul << 63);
  for (u32 base = 0; base < n; base += dimx()) {
    u32 i = base + tx();
    i64 v = i < n ? in[i] : (i64)(1ul << 63);
    for (u32 k = 1; k < WAVE; k <<= 1) v = max(v, shuffle_up(v, k));
    if (lane() == WAVE - 1) ends[tx() / WAVE] = v;
    barrier();
    v = max(v, carried);
    for (u32 w = 0; w < tx() / WAVE; w++) v = max(v, ends[w]);
    if (i < n) out[i] = v;
    barrier();
    if (tx() == dimx() - 1) carried = v;
    barrier();
  }
}
