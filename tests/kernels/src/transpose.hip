// Transposes through padded LDS tiles for elements of 1, 4, 8 and 16 bytes: LDS and memory accesses of every width.
#include "device.h"
template <class T, u32 SIDE> DEVICE void transpose(const T *in, T *out, u32 w, u32 h) {
  LDS T s[SIDE][SIDE + 1];
  u32 x = bx() * SIDE + tx(), y = by() * SIDE;
  for (u32 j = ty(); j < SIDE; j += dimy())
    if (x < w && y + j < h) s[j][tx()] = in[(y + j) * w + x];
  barrier();
  x = by() * SIDE + tx(), y = bx() * SIDE;
  for (u32 j = ty(); j < SIDE; j += dimy())
    if (x < h && y + j < w) out[(y + j) * h + x] = s[tx()][j];
}
KERNEL transpose_u8(const u8 *in, u8 *out, u32 w, u32 h) { transpose<u8, 32>(in, out, w, h); }
KERNEL transpose_u32(const u32 *in, u32 *out, u32 w, u32 h) { transpose<u32, 32>(in, out, w, h); }
KERNEL transpose_u64(const u64 *in, u64 *out, u32 w, u32 h) { transpose<u64, 16>(in, out, w, h); }
KERNEL transpose_128(const vec<u32, 4> *in, vec<u32, 4> *out, u32 w, u32 h) { transpose<vec<u32, 4>, 16>(in, out, w, h); }
