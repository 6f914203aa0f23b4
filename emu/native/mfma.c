/* MFMA and SMFMAC of CDNA: the rules and layouts are those of emu/mfma.py.
 *
 * A row of results at a time: its sums are adjacent, a term is one fused multiply-add over all columns. What
 * ends as a NaN is done again cell by cell, by the NaN rule; so is everything with scales, or with results that
 * must stay finite.
 */
#include "core.h"

#include <math.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CLONES
#endif

enum { LANES = 64, MAX_ELEMENTS = 2048, MAX_SIZE = 32 };
enum { IN_F32, IN_XF32, IN_F64, IN_F16, IN_BF16, IN_I8, IN_SMALL };
enum { OUT_F32, OUT_I32, OUT_F64 };
enum { QUIET = 0x00400000, INFINITE = 0x7F800000, DEFAULT_NAN = 0x7FC00000, LARGEST = 0x7F7FFFFF };
enum { NO_SCALE = 128 }; /* of a scale that is no number */

/* In the order of emu/smallfloat.py. Without `ieee` magnitudes above `largest` are NaN, or there are none. */
typedef struct {
  u8 bits, man, bias, largest, fnuz, ieee;
} Small;
static const Small SMALL[] = {{8, 3, 7, 0x7E, 0, 0}, {8, 2, 15, 0x7B, 0, 1}, {8, 3, 8, 0x7F, 1, 0}, {8, 2, 16, 0x7F, 1, 0},
                              {6, 3, 1, 0x1F, 0, 0}, {6, 2, 3, 0x1F, 0, 0}, {4, 1, 1, 7, 0, 0}};

typedef struct {
  u32 size, blocks, k, a, b, result, sparse, cbsz, abid, blgp, neg, scalar_c, scaled, scalar_scale, byte[2], bounded;
  u32 groups, per_lane, terms; /* terms: products of a cell */
} Shape;

/* The fields of the word that emu/handler_mfma.py writes. */
static Shape shape_of(u64 word) {
  Shape s;
  u32 at = 0;
#define TAKE(field, bits) s.field = (u32)(word >> at) & ((1u << (bits)) - 1), at += (bits)
  TAKE(size, 6), TAKE(blocks, 5), TAKE(k, 8), TAKE(a, 4), TAKE(b, 4), TAKE(result, 2), TAKE(sparse, 1), TAKE(cbsz, 3);
  TAKE(abid, 4), TAKE(blgp, 3), TAKE(neg, 3), TAKE(scalar_c, 1), TAKE(scaled, 1), TAKE(scalar_scale, 2);
  TAKE(byte[0], 2), TAKE(byte[1], 2), TAKE(bounded, 1);
#undef TAKE
  s.groups = LANES / s.size / s.blocks;
  s.per_lane = s.k / s.groups;
  s.terms = s.sparse ? s.k / 2 : s.k;
  return s;
}

/* ---------------------------------------------------------------- elements */

static float as_float(u32 x) {
  float f;
  memcpy(&f, &x, sizeof f);
  return f;
}

static u32 as_bits(float f) {
  u32 x;
  memcpy(&x, &f, sizeof x);
  return x;
}

static u32 widen_small(const Small *s, u32 v) {
  u32 top = 1u << (s->bits - 1), magnitude = v & (top - 1), sign = v & top ? 0x80000000u : 0;
  if (s->fnuz && v == 0x80)
    return DEFAULT_NAN;
  if (!s->fnuz && magnitude > s->largest)
    return sign | (s->ieee && magnitude == s->largest + 1u ? (u32)INFINITE : (u32)DEFAULT_NAN);
  u32 exponent = magnitude >> s->man, fraction = magnitude & ((1u << s->man) - 1);
  int power = (exponent ? (int)exponent : 1) - s->bias - s->man;
  return sign | as_bits(ldexpf((float)(exponent ? fraction | 1u << s->man : fraction), power));
}

static u32 widen_half(u32 v) {
  u32 sign = (v & 0x8000) << 16, exponent = v >> 10 & 31, fraction = v & 0x3FF;
  if (exponent == 31)
    return sign | INFINITE | fraction << 13 | (fraction ? QUIET : 0);
  if (!exponent)
    return sign | as_bits(ldexpf((float)fraction, -24));
  return sign | (exponent + 112) << 23 | fraction << 13;
}

/* f32 rounded to ten fraction bits; no number stays one. */
static u32 widen_xf32(u32 v) {
  if ((v & INFINITE) == INFINITE)
    return (v & ~0x1FFFu) | (v & 0x1FFF ? 0x2000 : 0);
  return (v + 0xFFF + (v >> 13 & 1)) & ~0x1FFFu;
}

static u32 bits_of(u32 format) {
  static const u8 bits[] = {32, 32, 64, 16, 16, 8};
  return format < IN_SMALL ? bits[format] : SMALL[format - IN_SMALL].bits;
}

static u32 widened(u32 format, u32 v, int flush) {
  switch (format) {
    case IN_F32: return flush && !(v & INFINITE) ? v & 0x80000000u : v;
    case IN_XF32: return widen_xf32(v);
    case IN_F16: return widen_half(v);
    case IN_BF16: return v << 16 | ((v & 0x7FFF) > 0x7F80 ? QUIET : 0);
    case IN_I8: return (u32)(i32)(int8_t)v;
    default: return widen_small(&SMALL[format - IN_SMALL], v);
  }
}

/* out[lane * count + e]: the lane's elements as f32 (or i32). */
static void unpack(u32 *out, u32 format, const u32 *registers, u32 count, int flush) {
  u32 bits = bits_of(format), table[256], mask = bits == 32 ? ~0u : (1u << bits) - 1;
  if (bits <= 8)
    for (u32 v = 0; v < 1u << bits; v++)
      table[v] = widened(format, v, flush);
  for (u32 e = 0; e < count; e++) {
    const u32 *column = registers + e * bits / 32 * LANES;
    u32 at = e * bits % 32;
    for (u32 lane = 0; lane < LANES; lane++) {
      u32 v = column[lane] >> at;
      if (at + bits > 32)
        v |= column[LANES + lane] << (32 - at);
      out[lane * count + e] = bits <= 8 ? table[v & mask] : widened(format, v & mask, flush);
    }
  }
}

/* The lane whose B a lane uses. */
static u32 pattern(const Shape *s, u32 lane) {
  switch (s->blgp) {
    case 0: return lane;
    case 1: case 2: return 32 * (s->blgp - 1) + lane % 32;
    case 3: return (lane + 16) % LANES;
    default: return 16 * (s->blgp - 4) + lane % 16;
  }
}

static u32 lane_of(const Shape *s, u32 block, u32 row, u32 group) { return row + s->size * (block + s->blocks * group); }

static u32 block_of_a(const Shape *s, u32 block) {
  u32 shared = 1u << s->cbsz < s->blocks ? 1u << s->cbsz : s->blocks; /* blocks are powers of two */
  return s->sparse || shared == 1 ? block : block / shared * shared + s->abid % shared;
}

/* Place of D[i][j]: element number inside the lane, times 64, plus the lane. */
static u32 place(const Shape *s, u32 block, u32 i, u32 j) {
  if (s->result == OUT_F64)
    return s->size == 16 ? i / 4 * LANES + 16 * (i % 4) + j : j + 4 * block + 16 * i;
  if (s->size == 32)
    return (16 * block + 4 * (i / 8) + i % 4) * LANES + 32 * (i / 4 % 2) + j;
  if (s->size == 16)
    return (4 * block + i % 4) * LANES + 16 * (i / 4) + j;
  return i * LANES + 4 * block + j;
}

/* ---------------------------------------------------------------- a problem of 32-bit sums */

typedef struct {
  Shape s;
  u32 a[MAX_ELEMENTS];          /* [block][row][term] */
  u32 b[MAX_ELEMENTS];          /* [block][k][column] */
  u32 sums[MAX_ELEMENTS];       /* [block][row][column] */
  u8 k_of[MAX_ELEMENTS];        /* [row][term]: the k of a term of sparse A */
  i16 scale_a[LANES], scale_b[LANES];
} Problem;

/* Elements of a lane that are consecutive in k: what 128 bits hold; all of them below eight bits. */
static u32 chunk_of(u32 format, u32 count) {
  u32 bits = bits_of(format), chunk = bits < 8 ? count : 128 / bits;
  return chunk < count ? chunk : count;
}

/* The term of element e of a group's lane: chunk by chunk, group after group inside one. */
static u32 term_of(const Shape *s, u32 chunk, u32 group, u32 e) {
  return (e / chunk * s->groups + group) * chunk + e % chunk;
}

static void gather_a(Problem *p, const u32 *registers, int flush) {
  Shape *s = &p->s;
  u32 lanes[MAX_ELEMENTS], count = s->terms / s->groups, chunk = s->sparse ? count : chunk_of(s->a, count);
  unpack(lanes, s->a, registers, count, flush);
  for (u32 block = 0; block < s->blocks; block++)
    for (u32 i = 0; i < s->size; i++)
      for (u32 group = 0; group < s->groups; group++)
        for (u32 e = 0; e < count; e += chunk)
          memcpy(&p->a[(block * s->size + i) * s->terms + term_of(s, chunk, group, e)],
                 &lanes[lane_of(s, block_of_a(s, block), i, group) * count + e], chunk * 4);
}

static void gather_b(Problem *p, const u32 *registers, int flush) {
  Shape *s = &p->s;
  u32 lanes[MAX_ELEMENTS], count = s->per_lane, chunk = chunk_of(s->b, count);
  unpack(lanes, s->b, registers, count, flush);
  for (u32 block = 0; block < s->blocks; block++)
    for (u32 group = 0; group < s->groups; group++)
      for (u32 j = 0; j < s->size; j++)
        for (u32 e = 0; e < count; e++)
          p->b[(block * s->k + term_of(s, chunk, group, e)) * s->size + j] =
              lanes[pattern(s, lane_of(s, block, j, group)) * count + e];
}

/* Positions of sparse A: two bits for each kept element; ABID picks a set while CBSZ is 0. */
static void gather_positions(Problem *p, const u32 *index) {
  Shape *s = &p->s;
  u32 kept = s->per_lane / 2, set = s->cbsz ? 0 : s->per_lane * s->abid % 32;
  for (u32 i = 0; i < s->size; i++)
    for (u32 group = 0; group < s->groups; group++) {
      u32 bits = index[lane_of(s, 0, i, group)];
      for (u32 e = 0; e < kept; e++)
        p->k_of[i * s->terms + group * kept + e] =
            (u8)(group * s->per_lane + 4 * (e / 2) + ((u64)bits >> set >> 2 * e & 3));
    }
}

static void gather_scales(i16 *out, const u32 *registers, u32 is_scalar, u32 byte) {
  for (u32 lane = 0; lane < LANES; lane++)
    out[lane] = (i16)((registers[is_scalar ? 0 : lane] >> 8 * byte & 0xFF) - 127);
}

/* ---------------------------------------------------------------- sums */

/* All columns of a row of results, by f32 or i32. */
ALWAYS_INLINE void row_of_sums(Problem *p, u32 block, u32 i, u32 size, int integer) {
  const Shape *s = &p->s;
  const u32 *a = &p->a[(block * size + i) * s->terms];
  u32 *sums = &p->sums[(block * size + i) * size];
  if (integer) {
    u32 total[MAX_SIZE];
    memcpy(total, sums, size * 4);
    for (u32 t = 0; t < s->terms; t++) {
      const u32 *b = &p->b[(block * s->k + (s->sparse ? p->k_of[i * s->terms + t] : t)) * size];
      for (u32 j = 0; j < size; j++)
        total[j] += a[t] * b[j];
    }
    memcpy(sums, total, size * 4);
    return;
  }
  float total[MAX_SIZE];
  memcpy(total, sums, size * 4);
  for (u32 t = 0; t < s->terms; t++) {
    float x = as_float(a[t]), b[MAX_SIZE];
    memcpy(b, &p->b[(block * s->k + (s->sparse ? p->k_of[i * s->terms + t] : t)) * size], size * 4);
    for (u32 j = 0; j < size; j++)
      total[j] = fmaf(x, b[j], total[j]);
  }
  memcpy(sums, total, size * 4);
}

ALWAYS_INLINE void all_rows(Problem *p, u32 size, int integer) {
  for (u32 block = 0; block < p->s.blocks; block++)
    for (u32 i = 0; i < size; i++)
      row_of_sums(p, block, i, size, integer);
}

CLONES static void multiply(Problem *p) {
  int integer = p->s.result == OUT_I32;
  if (p->s.size == 32)
    all_rows(p, 32, integer);
  else if (p->s.size == 16)
    all_rows(p, 16, integer);
  else
    all_rows(p, 4, integer);
}

static int is_nan(u32 x) { return (x & 0x7FFFFFFF) > INFINITE; }
static int is_finite(u32 x) { return (x & 0x7FFFFFFF) < INFINITE; }

static u32 nan_of(u32 a, u32 b, u32 c) {
  return is_nan(a) ? a | QUIET : is_nan(b) ? b | QUIET : is_nan(c) ? c | QUIET : DEFAULT_NAN;
}

/* The f32 next to an exact sum of two doubles: one rounding, by way of a sum rounded to odd. */
static float rounded_sum(double x, double y) {
  double s = x + y, back = s - x, lost = (x - (s - back)) + (y - back);
  i64 bits;
  memcpy(&bits, &s, sizeof bits);
  if (lost != 0 && !(bits & 1))
    bits += (lost > 0) == (s > 0) ? 1 : -1;
  memcpy(&s, &bits, sizeof bits);
  return (float)s;
}

/* x * y * 2 ** power + total, rounded once. */
static u32 step(const Shape *s, u32 x, u32 y, u32 total, int power) {
  int finite = is_finite(x) && is_finite(y) && is_finite(total);
  u32 r;
  if (power && finite && (x & 0x7FFFFFFF) && (y & 0x7FFFFFFF))
    r = as_bits(rounded_sum(ldexp((double)as_float(x) * as_float(y), power), as_float(total)));
  else
    r = as_bits(fmaf(as_float(x), as_float(y), as_float(total)));
  if (is_nan(r))
    return nan_of(x, y, total);
  return s->bounded && finite && !is_finite(r) ? (r & 0x80000000u) | LARGEST : r;
}

static u32 slow_cell(const Problem *p, u32 block, u32 i, u32 j, u32 total) {
  const Shape *s = &p->s;
  for (u32 t = 0; t < s->terms; t++) {
    u32 k = s->sparse ? p->k_of[i * s->terms + t] : t, group = k / s->per_lane;
    u32 x = p->a[(block * s->size + i) * s->terms + t], y = p->b[(block * s->k + k) * s->size + j];
    int of_a = 0, of_b = 0;
    if (s->scaled)
      of_a = p->scale_a[lane_of(s, block, i, group)], of_b = p->scale_b[lane_of(s, block, j, group)];
    total = of_a == NO_SCALE || of_b == NO_SCALE ? (u32)DEFAULT_NAN : step(s, x, y, total, of_a + of_b);
  }
  return total;
}

static void sums_of(Problem *p) {
  const Shape *s = &p->s;
  u32 start[MAX_ELEMENTS], n = s->size * s->size;
  if (s->result == OUT_I32) {
    multiply(p);
    return;
  }
  int all_slow = s->scaled || s->bounded;
  memcpy(start, p->sums, s->blocks * n * 4);
  if (!all_slow)
    multiply(p);
  for (u32 c = 0; c < s->blocks * n; c++)
    if (all_slow || is_nan(p->sums[c]))
      p->sums[c] = slow_cell(p, c / n, c % n / s->size, c % s->size, start[c]);
}

static void move_sums(Problem *p, u32 *registers, int is_scalar, int write) {
  const Shape *s = &p->s;
  u32 c = 0;
  for (u32 block = 0; block < s->blocks; block++)
    for (u32 i = 0; i < s->size; i++)
      for (u32 j = 0; j < s->size; j++, c++) {
        u32 *at = &registers[is_scalar ? 0 : place(s, block, i, j)];
        if (write)
          *at = p->sums[c];
        else
          p->sums[c] = *at;
      }
}

/* ---------------------------------------------------------------- f64 */

static u64 get64(const u32 *registers, u32 at) {
  u32 element = at / LANES, lane = at % LANES;
  return registers[2 * element * LANES + lane] | (u64)registers[(2 * element + 1) * LANES + lane] << 32;
}

static u64 fused64(u64 a, u64 b, u64 c) {
  const u64 infinite = 0x7FFull << 52, quiet = 1ull << 51, magnitude = ~0ull >> 1;
  double x, y, z, f;
  u64 r;
  memcpy(&x, &a, 8), memcpy(&y, &b, 8), memcpy(&z, &c, 8);
  f = fma(x, y, z);
  memcpy(&r, &f, 8);
  if ((r & magnitude) <= infinite)
    return r;
  return (a & magnitude) > infinite ? a | quiet : (b & magnitude) > infinite ? b | quiet
       : (c & magnitude) > infinite ? c | quiet : infinite | quiet;
}

static void doubles(const Shape *s, u32 *d, const u32 *a, const u32 *b, const u32 *c) {
  u64 sums[256], sign = 1ull << 63;
  u32 n = s->size * s->size;
  for (u32 cell = 0; cell < s->blocks * n; cell++) {
    u32 block = cell / n, i = cell % n / s->size, j = cell % s->size;
    u64 total = s->scalar_c ? c[0] | (u64)c[1] << 32 : get64(c, place(s, block, i, j));
    total ^= s->neg & 4 ? sign : 0;
    for (u32 k = 0; k < s->k; k++) {
      u32 group = k / s->per_lane, e = k % s->per_lane;
      u64 x = get64(a, e * LANES + lane_of(s, block, i, group)), y = get64(b, e * LANES + lane_of(s, block, j, group));
      total = fused64(x ^ (s->neg & 1 ? sign : 0), y ^ (s->neg & 2 ? sign : 0), total);
    }
    sums[cell] = total;
  }
  for (u32 cell = 0; cell < s->blocks * n; cell++) {
    u32 at = place(s, cell / n, cell % n / s->size, cell % s->size), element = at / LANES, lane = at % LANES;
    d[2 * element * LANES + lane] = (u32)sums[cell];
    d[(2 * element + 1) * LANES + lane] = (u32)(sums[cell] >> 32);
  }
}

/* One instruction; reads everything before it writes D. c: C, or the positions of sparse A, whose C is D. */
void sg_mfma(Wave *w, u64 word, u32 *d, const u32 *a, const u32 *b, const u32 *c, const u32 *scale_a, const u32 *scale_b) {
  Problem p;
  p.s = shape_of(word);
  if (p.s.result == OUT_F64) {
    doubles(&p.s, d, a, b, c);
    return;
  }
  int flush = !(w->mode >> 4 & 1);
  p.s.bounded &= w->mode >> 23 & 1;
  gather_a(&p, a, flush);
  gather_b(&p, b, flush);
  if (p.s.sparse)
    gather_positions(&p, c);
  if (p.s.scaled) {
    gather_scales(p.scale_a, scale_a, p.s.scalar_scale & 1, p.s.byte[0]);
    gather_scales(p.scale_b, scale_b, p.s.scalar_scale >> 1, p.s.byte[1]);
  }
  move_sums(&p, p.s.sparse ? d : (u32 *)c, (int)p.s.scalar_c, 0);
  sums_of(&p);
  move_sums(&p, d, 0, 1);
}
