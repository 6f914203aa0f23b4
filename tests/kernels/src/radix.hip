// Stable radix sort, 4 bits a pass: match among lanes by ballots, LDS counters, three launches a pass.
#include "device.h"
#define DIGITS 16

DEVICE u32 digit_of(u32 key, u32 shift) { return key >> shift & (DIGITS - 1); }

// Lanes that are in range and hold the same digit as this one.
DEVICE mask peers(u32 digit, bool in_range) {
  mask same = ballot(in_range);
  for (u32 bit = 0; bit < 4; bit++) {
    bool set = digit >> bit & 1;
    mask ones = ballot(set);
    same &= set ? ones : ~ones;
  }
  return same;
}
KERNEL radix_count(const u32 *keys, u32 *counts, u32 n, u32 shift) {
  LDS u32 c[DIGITS];
  if (tx() < DIGITS) c[tx()] = 0;
  barrier();
  u32 i = item();
  if (i < n) L_ADD(&c[digit_of(keys[i], shift)], 1u);
  barrier();
  if (tx() < DIGITS) counts[tx() * (gridx() / groupx()) + bx()] = c[tx()];
}
// One wave: exclusive sums in place.
KERNEL radix_scan(u32 *counts, u32 n) {
  u32 carried = 0;
  for (u32 base = 0; base < n; base += WAVE) {
    u32 i = base + lane(), own = i < n ? counts[i] : 0, v = own;
    for (u32 k = 1; k < WAVE; k <<= 1) {
      u32 below = shuffle_up(v, k);
      v += lane() >= k ? below : 0;
    }
    if (i < n) counts[i] = carried + v - own;
    carried += __builtin_amdgcn_readlane(v, WAVE - 1);
  }
}
KERNEL radix_scatter(const u32 *keys, const u32 *values, u32 *keys_out, u32 *values_out, const u32 *starts, u32 n, u32 shift) {
  LDS u32 c[256 / WAVE][DIGITS];
  u32 i = item(), wave = tx() / WAVE;
  if (lane() < DIGITS) c[wave][lane()] = 0;
  barrier();
  u32 key = i < n ? keys[i] : 0, digit = digit_of(key, shift);
  mask same = peers(digit, i < n);
  u32 rank = lanes_below(same);
  if (i < n && rank == 0) c[wave][digit] = count(same);
  barrier();
  if (i >= n) return;
  u32 at = starts[digit * (gridx() / groupx()) + bx()] + rank;
  for (u32 w = 0; w < wave; w++) at += c[w][digit];
  keys_out[at] = key;
  values_out[at] = values[i];
}
