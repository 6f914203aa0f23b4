// Transforms: bit-reversed LDS addresses, two arrays in LDS with a barrier a stage, private arrays, rounding to integers.
#include "device.h"
#pragma clang fp contract(off)
#define POINTS 256

// Radix-2 FFT of POINTS complex numbers by POINTS / 2 lanes; twiddle[k] = exp(-2 pi i k / POINTS).
template <class T> DEVICE void fft(const T *in, T *out, const T *twiddle) {
  LDS T re[POINTS], im[POINTS];
  u64 base = (u64)bx() * POINTS;
  for (u32 i = tx(); i < POINTS; i += POINTS / 2) {
    u32 from = __builtin_bitreverse32(i) >> 24;
    re[i] = in[2 * (base + from)];
    im[i] = in[2 * (base + from) + 1];
  }
  for (u32 half = 1; half < POINTS; half <<= 1) {
    barrier();
    u32 k = tx() & (half - 1), a = 2 * (tx() - k) + k, b = a + half, w = k * (POINTS / 2 / half);
    T wr = twiddle[2 * w], wi = twiddle[2 * w + 1];
    T tr = wr * re[b] - wi * im[b], ti = wr * im[b] + wi * re[b];
    re[b] = re[a] - tr;
    im[b] = im[a] - ti;
    re[a] = re[a] + tr;
    im[a] = im[a] + ti;
  }
  barrier();
  for (u32 i = tx(); i < POINTS; i += POINTS / 2) {
    out[2 * (base + i)] = re[i];
    out[2 * (base + i) + 1] = im[i];
  }
}
KERNEL fft_f32(const f32 *in, f32 *out, const f32 *twiddle) { fft(in, out, twiddle); }
KERNEL fft_f64(const f64 *in, f64 *out, const f64 *twiddle) { fft(in, out, twiddle); }

// 8 x 8 DCT of bytes, divided by a table and rounded to even: a lane for each block.
KERNEL dct8x8(const u8 *image, const f32 *basis, const f32 *table, i16 *out, u32 w, u32 blocks) {
  u32 b = item();
  if (b >= blocks) return;
  u32 x0 = b % (w / 8) * 8, y0 = b / (w / 8) * 8;
  f32 rows[8][8];
  for (u32 y = 0; y < 8; y++)
    for (u32 k = 0; k < 8; k++) {
      f32 sum = 0;
      for (u32 x = 0; x < 8; x++) sum += basis[k * 8 + x] * ((f32)image[(y0 + y) * w + x0 + x] - 128.f);
      rows[y][k] = sum;
    }
  for (u32 j = 0; j < 8; j++)
    for (u32 k = 0; k < 8; k++) {
      f32 sum = 0;
      for (u32 y = 0; y < 8; y++) sum += basis[j * 8 + y] * rows[y][k];
      out[b * 64 + j * 8 + k] = (i16)__builtin_rintf(sum / table[j * 8 + k]);
    }
}
