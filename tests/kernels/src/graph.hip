// Irregular work: frontier queues, compare-and-swap loops of 4 and 8 bytes, anti-diagonal wavefronts.
#include "device.h"
// One level of breadth-first search. queues[level & 1] is read, the other filled; sizes[level] is its length.
KERNEL bfs_level(const u32 *starts, const u32 *targets, u32 *depth, u32 *queues, u32 *sizes, u32 n, u32 level) {
  const u32 *from = queues + (level & 1) * n;
  u32 *to = queues + (~level & 1) * n;
  for (u32 q = item(); q < sizes[level]; q += gridx()) {
    u32 node = from[q];
    for (u32 e = starts[node]; e < starts[node + 1]; e++)
      if (compare_swap(&depth[targets[e]], ~0u, level + 1) == ~0u) to[G_ADD(&sizes[level + 1], 1u)] = targets[e];
  }
}
// Open addressing, a key of 0 is empty. Counts how often each key came.
KERNEL hash_count_u32(const u32 *keys, u32 *table, u32 *counts, u32 n, u32 slots) {
  u32 i = item();
  if (i >= n) return;
  u32 key = keys[i], at = key * 2654435761u % slots;
  for (;; at = at + 1 == slots ? 0 : at + 1) {
    u32 held = compare_swap(&table[at], 0u, key);
    if (held == 0 || held == key) break;
  }
  G_ADD(&counts[at], 1u);
}
KERNEL hash_find_u32(const u32 *queries, const u32 *table, const u32 *counts, u32 *found, u32 n, u32 slots) {
  u32 i = item();
  if (i >= n) return;
  u32 key = queries[i], at = key * 2654435761u % slots;
  while (table[at] && table[at] != key) at = at + 1 == slots ? 0 : at + 1;
  found[i] = table[at] == key ? counts[at] : 0;
}
// Key and value in one word of 64 bits: the greatest value of each key stays.
KERNEL hash_max_u64(const u32 *keys, const u32 *values, u64 *table, u32 n, u32 slots) {
  u32 i = item();
  if (i >= n) return;
  u64 entry = (u64)keys[i] << 32 | values[i];
  u32 at = keys[i] * 2654435761u >> 7 & (slots - 1);
  for (u64 seen = 0;;) {
    u64 held = compare_swap(&table[at], seen, entry);
    if (held == seen) return;
    if (held >> 32 != keys[i]) {
      at = (at + 1) & (slots - 1);
      seen = 0;
    } else if (held >= entry) {
      return;
    } else {
      seen = held;
    }
  }
}
KERNEL hash_get_u64(const u32 *queries, const u64 *table, i64 *found, u32 n, u32 slots) {
  u32 i = item();
  if (i >= n) return;
  u32 key = queries[i], at = key * 2654435761u >> 7 & (slots - 1);
  while (table[at] && table[at] >> 32 != key) at = (at + 1) & (slots - 1);
  found[i] = table[at] ? (i64)(u32)table[at] : -1;
}
// Edit distance of a pair of strings a workgroup; lane i walks along row i, one anti-diagonal at a time.
KERNEL levenshtein(const u8 *a, const u8 *b, u16 *out, u32 n, u32 m) {
  LDS u16 diagonal[3][257];
  a += bx() * n, b += bx() * m;
  for (u32 d = 0; d <= n + m; d++) {
    u16 *now = diagonal[d % 3], *last = diagonal[(d + 2) % 3], *before = diagonal[(d + 1) % 3];
    for (u32 i = tx(); i <= n; i += dimx()) {
      if (i > d || d - i > m) continue;
      u32 j = d - i;
      if (i == 0 || j == 0) now[i] = (u16)d;
      else now[i] = (u16)min((u32)min(last[i - 1], last[i]) + 1, before[i - 1] + (u32)(a[i - 1] != b[j - 1]));
    }
    barrier();
  }
  if (tx() == 0) out[bx()] = diagonal[(n + m) % 3][n];
}
