/* Typed buffer accesses: one channel of an element in every lane; and transposing loads.
 *
 * Which bits of an element a channel takes, and what they mean, comes from Python (emu/formats.py), one table
 * for each generation.
 */
#include "core.h"

#include <math.h>
#include <string.h>

enum { UNORM, SNORM, USCALED, SSCALED, UINT, SINT, FLOAT };
enum { MAX_FORMATS = 128, N_BANKS = 3 };

typedef struct {
  u8 n, kind, bytes, pad; /* n 0: no format */
  u8 at[4], bits[4];
} Format;

static Format formats[N_BANKS][MAX_FORMATS];

SG_API void sg_set_formats(u32 bank, const Format *table) {
  if (bank < N_BANKS)
    memcpy(formats[bank], table, sizeof formats[bank]);
}

/* What a handler says of an access: channel [7:0], 16-bit data [8], code [22:16], DST_SEL [43:32], bank [49:48]. */
typedef struct {
  const Format *f;
  u32 channel, is_short, select;
} Spec;

static Spec spec_of(u64 word) {
  const Format *f = &formats[word >> 48 & 3][word >> 16 & (MAX_FORMATS - 1)];
  return (Spec){f->n ? f : NULL, (u32)word & 255, (u32)(word >> 8) & 1, (u32)(word >> 32) & 4095};
}

/* ---------------------------------------------------------------- numbers */

static u32 bits_of(float x) {
  u32 v;
  memcpy(&v, &x, 4);
  return v;
}
static float float_of(u32 v) {
  float x;
  memcpy(&x, &v, 4);
  return x;
}

static u32 widen_half(u32 h) {
  u32 sign = (h & 0x8000u) << 16, exponent = h >> 10 & 31, fraction = h & 1023;
  if (exponent == 31)
    return sign | 0x7F800000u | fraction << 13 | (fraction ? 0x00400000u : 0);
  if (exponent == 0)
    return sign | bits_of(ldexpf((float)fraction, -24));
  return sign | (exponent + 112) << 23 | fraction << 13;
}

/* To nearest, ties to even; a NaN keeps its upper payload and is quiet. */
static u32 narrow_half(u32 v) {
  u32 sign = v >> 16 & 0x8000u, magnitude = v & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u)
    return sign | 0x7E00u | (magnitude >> 13 & 511);
  if (magnitude >= 0x477FF000u)
    return sign | 0x7C00u;
  if (magnitude < 0x38800000u)
    return sign | (u32)lrint(ldexp((double)float_of(magnitude), 24));
  u32 rounded = magnitude + 0xFFFu + (magnitude >> 13 & 1);
  return sign | (rounded - (112u << 23)) >> 13;
}

static u32 fraction_bits(u32 bits) { return bits == 11 ? 6 : 5; }

static u32 widen_small(u32 v, u32 bits) {
  u32 n = fraction_bits(bits), exponent = v >> n, fraction = v & ((1u << n) - 1);
  if (exponent == 31)
    return 0x7F800000u | fraction << (23 - n);
  if (exponent == 0)
    return bits_of(ldexpf((float)fraction, -14 - (int)n));
  return (exponent + 112) << 23 | fraction << (23 - n);
}

static u32 narrow_small(u32 v, u32 bits) {
  u32 n = fraction_bits(bits);
  if ((v & 0x7FFFFFFFu) > 0x7F800000u)
    return 31u << n | 1;
  if (v >> 31)
    return 0;
  u32 half = narrow_half(v);
  if (half == 0x7C00u && v != 0x7F800000u)
    half = 0x7BFFu;
  return half >> (10 - n);
}

/* ---------------------------------------------------------------- one channel */

static u32 top_of(u32 bits) { return bits == 32 ? ~0u : (1u << bits) - 1; }

static u32 from_memory(const Format *f, u32 raw, u32 bits) {
  i64 is_signed = bits && raw >> (bits - 1) ? (i64)raw - ((i64)1 << bits) : (i64)raw;
  double half = (double)(((i64)1 << (bits - 1)) - 1);
  switch (f->kind) {
    case UNORM: return bits_of((float)((double)raw / (double)top_of(bits)));
    case SNORM: return bits_of((float)fmax(-1.0, (double)is_signed / half));
    case USCALED: return bits_of((float)raw);
    case SSCALED: return bits_of((float)is_signed);
    case UINT: return raw;
    case SINT: return (u32)is_signed;
    default: return bits == 32 ? raw : bits == 16 ? widen_half(raw) : widen_small(raw, bits);
  }
}

static double limited(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

static u32 to_memory(const Format *f, u32 value, u32 bits) {
  double x = (double)float_of(value), top = (double)top_of(bits), half = (double)(((i64)1 << (bits - 1)) - 1);
  i64 whole = (i32)value, low = -((i64)1 << (bits - 1)), high = -low - 1;
  switch (f->kind) {
    case UNORM: return isnan(x) ? 0 : (u32)llrint(limited(x, 0, 1) * top);
    case SNORM: return isnan(x) ? 0 : (u32)llrint(limited(x, -1, 1) * half) & top_of(bits);
    case USCALED: return isnan(x) ? 0 : (u32)llrint(limited(x, 0, top));
    case SSCALED: return isnan(x) ? 0 : (u32)llrint(limited(x, -half - 1, half)) & top_of(bits);
    case UINT: return value < top_of(bits) ? value : top_of(bits);
    case SINT: return (u32)(whole < low ? low : whole > high ? high : whole) & top_of(bits);
    default: return bits == 32 ? value : bits == 16 ? narrow_half(value) : narrow_small(value, bits);
  }
}

static u32 field(const u8 *element, u32 at, u32 bits) {
  u64 word;
  memcpy(&word, element + at / 32 * 4, 8);
  return (u32)(word >> at % 32) & top_of(bits);
}

static void set_field(u8 *element, u32 at, u32 bits, u32 value) {
  u64 word, mask = (u64)top_of(bits) << at % 32;
  memcpy(&word, element + at / 32 * 4, 8);
  word = (word & ~mask) | (u64)value << at % 32;
  memcpy(element + at / 32 * 4, &word, 8);
}

/* Channel by DST_SEL: 0 zero, 1 one, 4..7 X..W; one that is missing is 0, W is 1. */
static u32 channel(const Spec *s, const u8 *element) {
  const Format *f = s->f;
  int is_integer = f->kind == UINT || f->kind == SINT;
  u32 source = s->select >> 3 * s->channel & 7, one = is_integer ? 1 : 0x3F800000u, value;
  if (source < 4)
    value = source == 1 ? one : 0;
  else if (source - 4 >= f->n)
    value = source == 7 ? one : 0;
  else
    value = from_memory(f, field(element, f->at[source - 4], f->bits[source - 4]), f->bits[source - 4]);
  return !s->is_short ? value : is_integer ? value & 0xFFFF : narrow_half(value);
}

static int unknown(Wave *w) { return w->fault_kind = FAULT_UNMODELLED, 1; }

int sg_typed_load(Wave *w, u64 exec, u64 spec, const u64 *address, const u64 *range, u32 *data) {
  Spec s = spec_of(spec);
  if (!s.f)
    return exec ? unknown(w) : 0;
  for (; exec; exec &= exec - 1) {
    u32 lane = (u32)__builtin_ctzll(exec);
    u8 element[24] = {0};
    if (sg_buffer_bytes(w, range, element, lane, address[lane], s.f->bytes, 0))
      return 1;
    data[lane] = channel(&s, element);
  }
  return 0;
}

int sg_typed_store(Wave *w, u64 exec, u64 spec, const u64 *address, const u64 *range, u32 *data) {
  Spec s = spec_of(spec);
  if (!s.f)
    return exec ? unknown(w) : 0;
  for (; exec; exec &= exec - 1) {
    u32 lane = (u32)__builtin_ctzll(exec), value = data[lane], c = s.channel;
    u8 element[24] = {0};
    if (s.is_short && s.f->kind != UINT)
      value = s.f->kind == SINT ? (u32)(i32)(short)value : widen_half(value & 0xFFFF);
    if (sg_buffer_bytes(w, range, element, lane, address[lane], s.f->bytes, 0))
      return 1;
    if (c < s.f->n)
      set_field(element, s.f->at[c], s.f->bits[c], to_memory(s.f, value, s.f->bits[c]));
    if (sg_buffer_bytes(w, range, element, lane, address[lane], s.f->bytes, 1))
      return 1;
  }
  return 0;
}

/* ---------------------------------------------------------------- transposing loads */

/* Of every `sharing` lanes: elements are a matrix of as many rows as a lane has and `sharing` columns, row after
 * row; lane i gets column i. Inactive lanes give what their registers hold and get nothing. */
void sg_transpose(Wave *w, u64 exec, u32 *data, u32 registers, u32 element_bits, u32 sharing) {
  u32 lanes = w->lanes, n = 32 * registers / element_bits;
  u8 before[64][24] = {{0}}, after[64][24] = {{0}};
  for (u32 i = 0; i < lanes; i++)
    for (u32 k = 0; k < registers; k++)
      memcpy(before[i] + 4 * k, &data[k * lanes + i], 4);
  for (u32 i = 0; i < lanes; i++)
    for (u32 row = 0; row < n; row++) {
      u32 at = row * sharing + i % sharing;
      u32 value = field(before[i / sharing * sharing + at / n], at % n * element_bits, element_bits);
      set_field(after[i], row * element_bits, element_bits, value);
    }
  for (; exec; exec &= exec - 1) {
    u32 i = (u32)__builtin_ctzll(exec);
    for (u32 k = 0; k < registers; k++)
      memcpy(&data[k * lanes + i], after[i] + 4 * k, 4);
  }
}
