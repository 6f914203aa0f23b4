// Convolutions: taps that are the same for all lanes (scalar loads), signed and unsigned bytes, saturating 16-bit results.
#include "device.h"
// 31 taps over i16 samples.
KERNEL conv1d_i16(const i16 *in, const i32 *taps, i16 *out, i32 n) {
  i32 i = item(), sum = 0;
  if (i >= n) return;
  for (i32 k = 0; k < 31; k++) {
    i32 at = i + k - 15;
    sum += taps[k] * (at >= 0 && at < n ? in[at] : 0);
  }
  sum >>= 8;
  out[i] = (i16)min(max(sum, -32768), 32767);
}
// 5 x 5 taps, stride 2, no padding, 3 channels of bytes to one 32-bit sum a channel.
KERNEL conv2d_u8(const u8 *in, const i8 *taps, i32 *out, u32 w, u32 wo, u32 ho) {
  u32 x = item(), y = by() * 8 + ty(), c = bz();
  if (x >= wo || y >= ho) return;
  i32 sum = 0;
#pragma unroll
  for (u32 j = 0; j < 5; j++)
    for (u32 i = 0; i < 5; i++) sum += in[((2 * y + j) * w + 2 * x + i) * 3 + c] * taps[j * 5 + i];
  out[(y * wo + x) * 3 + c] = sum;
}
