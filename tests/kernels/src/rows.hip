// Irregular rows: a wave per segment, lanes past its end switched off; compaction by ballot with one atomic per wave.
#include "device.h"
KERNEL segment_sum(const u32 *starts, const f64 *x, f64 *out, u32 rows) {
  u32 row = item() / WAVE;
  if (row >= rows) return;
  f64 sum = 0;
  for (u32 i = starts[row] + lane(); i < starts[row + 1]; i += WAVE) sum += x[i];
  for (u32 k = WAVE / 2; k; k >>= 1) sum += shuffle_xor(sum, k);
  if (lane() == 0) out[row] = sum;
}
KERNEL compact(const i16 *in, i16 *out, u32 *size, u32 n, i32 limit) {
  u32 i = item();
  bool kept = i < n && in[i] > limit;
  mask m = ballot(kept);
  u32 base = 0;
  if (lane() == 0 && m) base = G_ADD(size, count(m));
  base = __builtin_amdgcn_readfirstlane(base);
  if (kept) out[base + lanes_below(m)] = in[i];
}
// Runs of equal bytes: a lane starts a run when its left neighbour differs; run lengths by atomics in memory.
KERNEL run_lengths(const u8 *in, u8 *symbols, u32 *lengths, u32 *runs, u32 n) {
  LDS u32 ends[1024 / WAVE], carried;
  if (tx() == 0) carried = 0;
  barrier();
  for (u32 base = 0; base < n; base += dimx()) {
    u32 i = base + tx();
    bool head = i < n && (i == 0 || in[i] != in[i - 1]);
    mask m = ballot(head);
    u32 run = lanes_below(m) + head;
    if (lane() == 0) ends[tx() / WAVE] = count(m);
    barrier();
    run += carried;
    u32 all = carried;
    for (u32 w = 0; w < (dimx() + WAVE - 1) / WAVE; w++) {
      run += w < tx() / WAVE ? ends[w] : 0;
      all += ends[w];
    }
    if (head) symbols[run - 1] = in[i];
    if (i < n) G_ADD(&lengths[run - 1], 1u);
    barrier();
    if (tx() == 0) carried = all;
    barrier();
  }
  if (tx() == 0) *runs = carried;
}
