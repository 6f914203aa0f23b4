/* Matrix products with a NaN among the results: element by element, by the NaN rule. */
#include "core.h"

#include <math.h>
#include <string.h>

enum { SIZE = 16, QUIET = 0x00400000, INFINITE = 0x7F800000, DEFAULT_NAN = 0x7FC00000 };

static int is_nan(u32 x) { return (x & 0x7FFFFFFF) > INFINITE; }

static float as_float(u32 x) {
  float f;
  memcpy(&f, &x, sizeof f);
  return f;
}

/* a * b + c rounded once; a NaN argument, first in order, quieted; else the default NaN. */
static u32 fused(u32 a, u32 b, u32 c) {
  float f = fmaf(as_float(a), as_float(b), as_float(c));
  u32 r;
  memcpy(&r, &f, sizeof r);
  if (!is_nan(r))
    return r;
  return is_nan(a) ? a | QUIET : is_nan(b) ? b | QUIET : is_nan(c) ? c | QUIET : DEFAULT_NAN;
}

/* Row of element v of C and D in a lane: RDNA3 deals rows out in turn, RDNA4 (packs) eight at a time. */
static u32 row_of(u32 lanes, u32 packs, u32 v, u32 lane) {
  u32 group = lane / SIZE;
  if (!packs)
    return v * (lanes / SIZE) + group;
  return lanes == 32 ? 8 * group + v : 8 * (group & 1) + 4 * (group >> 1) + v;
}

/* sums[element][lane] += rows[term][row] * columns[k][lane % 16], terms ascending; f32 bits throughout. k is the
 * term, or with `which` 4 * (term / 2) + which[term][row]. shape: terms | packs << 8, see emu/matrix_layout.py. */
void sg_wmma_nan(u32 lanes, u32 shape, u32 *sums, const u32 *rows, const u32 *columns, const u32 *which) {
  u32 terms = shape & 255, packs = shape >> 8;
  for (u32 v = 0; v < SIZE * SIZE / lanes; v++)
    for (u32 lane = 0; lane < lanes; lane++) {
      u32 *sum = &sums[v * lanes + lane], row = row_of(lanes, packs, v, lane);
      for (u32 t = 0; t < terms; t++) {
        u32 k = which ? 4 * (t / 2) + which[t * lanes + row] : t;
        *sum = fused(rows[t * lanes + row], columns[k * lanes + lane], *sum);
      }
    }
}
