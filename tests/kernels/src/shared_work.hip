// Workgroups that share one product: parts that wait for each other's flags (stream-K), sums by atomics (split-K), queues of tiles.
#include "device.h"
#define SIDE 16 // of a tile; 256 work-items
DEVICE f32 partial(const f32 *a, const f32 *b, u32 tile, u32 columns, u32 depth, u32 first, u32 last) {
  LDS f32 x[SIDE][SIDE + 1], y[SIDE][SIDE + 1];
  u32 across = columns / SIDE, row = tile / across * SIDE + tx() / SIDE, column = tile % across * SIDE + tx() % SIDE;
  f32 sum = 0;
  for (u32 k = first * SIDE; k < last * SIDE; k += SIDE) {
    x[tx() / SIDE][tx() % SIDE] = a[row * depth + k + tx() % SIDE];
    y[tx() / SIDE][tx() % SIDE] = b[(k + tx() / SIDE) * columns + column];
    barrier();
    for (u32 j = 0; j < SIDE; j++) sum = fma(x[tx() / SIDE][j], y[j][tx() % SIDE], sum);
    barrier();
  }
  return sum;
}
DEVICE f32 *element(f32 *out, u32 tile, u32 columns) {
  u32 across = columns / SIDE;
  return out + (tile / across * SIDE + tx() / SIDE) * columns + tile % across * SIDE + tx() % SIDE;
}
// Steps of all tiles are dealt out evenly. Who has a tile's first step waits for those who have the others, and adds their sums.
KERNEL SIZED(256) stream_k(const f32 *a, const f32 *b, f32 *out, f32 *parts, u32 *flags, u32 tiles, u32 columns, u32 depth, u32 groups) {
  u32 steps = depth / SIDE, each = (tiles * steps + groups - 1) / groups;
  u32 at = bx() * each, end = min(at + each, tiles * steps);
  while (at < end) {
    u32 tile = at / steps, first = at % steps, last = min(steps, first + end - at);
    f32 sum = partial(a, b, tile, columns, depth, first, last);
    if (first) {
      parts[bx() * 256 + tx()] = sum;
      __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
      barrier();
      if (tx() == 0) G_STORE(&flags[bx()], 1u);
    } else {
      for (u32 done = last, other = bx() + 1; done < steps; done += each, other++) {
        while (!G_LOAD(&flags[other])) __builtin_amdgcn_s_sleep(2);
        sum += parts[other * 256 + tx()];
      }
      *element(out, tile, columns) = sum;
    }
    at += last - first;
  }
}
KERNEL SIZED(256) split_k(const f32 *a, const f32 *b, f32 *out, u32 columns, u32 depth, u32 parts) {
  u32 each = depth / SIDE / parts;
  G_ADD(element(out, bx(), columns), partial(a, b, bx(), columns, depth, by() * each, (by() + 1) * each));
}
// As many workgroups as fit, each taking tiles until none is left; who took which is counted.
KERNEL SIZED(256) persistent(const f32 *a, const f32 *b, f32 *out, u32 *ticket, u32 *taken, u32 tiles, u32 columns, u32 depth) {
  LDS u32 mine;
  for (;;) {
    if (tx() == 0) {
      mine = __hip_atomic_fetch_add(ticket, 1u, __ATOMIC_ACQ_REL, DEVICE_WIDE);
      if (mine < tiles) G_ADD(&taken[mine], 1u);
    }
    barrier();
    u32 tile = mine;
    barrier();
    if (tile >= tiles) break;
    *element(out, tile, columns) = partial(a, b, tile, columns, depth, 0, depth / SIDE);
  }
}
// Even workgroups fill slots of a ring, odd ones empty them: each waits for the other's counter.
KERNEL SIZED(64) ring(const u32 *in, u32 *out, u32 *slots, u32 *filled, u32 *emptied, u32 rounds) {
  u32 pair = bx() / 2, *mine = slots + pair * 4 * 64;
  for (u32 r = 0; r < rounds; r++) {
    if (bx() % 2 == 0) {
      while (r >= G_LOAD(&emptied[pair]) + 4) __builtin_amdgcn_s_sleep(1);
      mine[r % 4 * 64 + tx()] = in[(pair * rounds + r) * 64 + tx()] * 3 + r;
      __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
      barrier();
      if (tx() == 0) G_STORE(&filled[pair], r + 1);
    } else {
      while (G_LOAD(&filled[pair]) <= r) __builtin_amdgcn_s_sleep(1);
      out[(pair * rounds + r) * 64 + tx()] = mine[r % 4 * 64 + 63 - tx()];
      barrier();
      if (tx() == 0) G_STORE(&emptied[pair], r + 1);
    }
  }
}
