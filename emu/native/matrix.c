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

/* sums[register][lane] += rows[k][row] * columns[k][lane % 16], k ascending; f32 bits throughout. */
void sg_wmma_nan(u32 lanes, u32 *sums, const u32 *rows, const u32 *columns) {
  u32 groups = lanes / SIZE;
  for (u32 v = 0; v < SIZE / groups; v++)
    for (u32 lane = 0; lane < lanes; lane++) {
      u32 *sum = &sums[v * lanes + lane], row = v * groups + lane / SIZE;
      for (u32 k = 0; k < SIZE; k++)
        *sum = fused(rows[k * lanes + row], columns[k * lanes + lane], *sum);
    }
}
