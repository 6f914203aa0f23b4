// Sorting networks in dynamic LDS, one workgroup per row, a barrier after every stage.
#include "device.h"
extern __attribute__((shared)) u64 memory[];

template <class T> DEVICE void load(T *s, const T *row, u32 size) {
  for (u32 i = tx(); i < size; i += dimx()) s[i] = row[i];
  barrier();
}
template <class T> DEVICE void store(T *row, const T *s, u32 size) {
  for (u32 i = tx(); i < size; i += dimx()) row[i] = s[i];
}
template <class T> DEVICE void order(T *s, u32 low, u32 high, bool ascending) {
  T a = s[low], b = s[high];
  if ((b < a) == ascending) {
    s[low] = b;
    s[high] = a;
  }
}
KERNEL bitonic_f32(f32 *rows, u32 size) {
  f32 *s = (f32 *)memory, *row = rows + bx() * size;
  load(s, row, size);
  for (u32 k = 2; k <= size; k <<= 1)
    for (u32 j = k >> 1; j; j >>= 1) {
      for (u32 i = tx(); i < size; i += dimx())
        if (i < (i ^ j)) order(s, i, i ^ j, !(i & k));
      barrier();
    }
  store(row, s, size);
}
// Batcher's odd-even merge sort.
KERNEL odd_even_i64(i64 *rows, u32 size) {
  i64 *s = (i64 *)memory, *row = rows + bx() * size;
  load(s, row, size);
  for (u32 p = 1; p < size; p <<= 1)
    for (u32 k = p; k; k >>= 1) {
      for (u32 i = tx(); i < size; i += dimx()) {
        u32 first = k % p;
        bool pairs = i >= first && (i - first) / k % 2 == 0 && i + k < size;
        if (pairs && i / (2 * p) == (i + k) / (2 * p)) order(s, i, i + k, true);
      }
      barrier();
    }
  store(row, s, size);
}
// Bytes by counting: LDS atomics, then each lane looks up which key its place belongs to.
KERNEL counting_u8(u8 *rows, u32 size) {
  LDS u32 c[257];
  u8 *row = rows + bx() * size;
  for (u32 i = tx(); i < 257; i += dimx()) c[i] = 0;
  barrier();
  for (u32 i = tx(); i < size; i += dimx()) L_ADD(&c[row[i] + 1], 1u);
  barrier();
  if (tx() == 0)
    for (u32 k = 1; k < 257; k++) c[k] += c[k - 1];
  barrier();
  for (u32 i = tx(); i < size; i += dimx()) {
    u32 low = 0;
    for (u32 step = 128; step; step >>= 1)
      if (c[low + step] <= i) low += step;
    row[i] = (u8)low;
  }
}
