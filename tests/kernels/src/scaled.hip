// MFMA_SCALE of CDNA4: floats of eight, six and four bits, with a power of two for each 32 neighbours of a row.
#include "device.h"
typedef vec<i32, 8> i32x8;
typedef vec<f32, 4> f32x4;
typedef vec<f32, 16> f32x16;

// A lane's 32 elements of `bits`: of fp8 two runs of 16, the second 64 further on for tiles of 16.
template <int BITS, int SIZE> DEVICE i32x8 load(const u8 *row, u32 group) {
  i32x8 v = 0;
  if (BITS == 8) {
    __builtin_memcpy(&v, row + 16 * group, 16);
    __builtin_memcpy((u8 *)&v + 16, row + 16 * group + 1024 / SIZE, 16);
  } else {
    __builtin_memcpy(&v, row + group * 4 * BITS, 4 * BITS);
  }
  return v;
}
// d = a times the transpose of b. Scales: rows of the exponents of each 32 elements; a lane has that of its group.
template <int BITS_A, int BITS_B, int SIZE, class ACC, class F>
DEVICE void product(const u8 *a, const u8 *b, const u8 *scales_a, const u8 *scales_b, f32 *d, u32 rank, F multiply) {
  u32 row = tx() % SIZE, group = tx() / SIZE, blocks = rank / 32, groups = 64 / SIZE;
  ACC sum = 0;
  for (u32 k = 0; k < blocks; k += groups) {
    i32x8 x = load<BITS_A, SIZE>(a + (row * blocks + k) * 4 * BITS_A, group);
    i32x8 y = load<BITS_B, SIZE>(b + (row * blocks + k) * 4 * BITS_B, group);
    sum = multiply(x, y, sum, scales_a[row * blocks + k + group], scales_b[row * blocks + k + group]);
  }
  for (u32 i = 0; i < SIZE * SIZE / 64; i++) {
    u32 at = SIZE == 16 ? 4 * group + i : 8 * (i / 4) + 4 * group + i % 4;
    d[at * SIZE + row] = sum[i];
  }
}
// The scale's byte in its register is told by OP_SEL.
#define SCALED(NAME, FORMAT_A, BITS_A, FORMAT_B, BITS_B, SIZE, RANK, ACC, BYTE_A, BYTE_B) \
  KERNEL SIZED(64) NAME(const u8 *a, const u8 *b, const u8 *scales_a, const u8 *scales_b, f32 *d, u32 rank) { \
    product<BITS_A, BITS_B, SIZE, ACC>(a, b, scales_a, scales_b, d, rank, [](i32x8 x, i32x8 y, ACC c, i32 s, i32 t) { \
      return __builtin_amdgcn_mfma_scale_f32_##SIZE##x##SIZE##x##RANK##_f8f6f4(x, y, c, FORMAT_A, FORMAT_B, BYTE_A, s << 8 * BYTE_A, \
                                                                        BYTE_B, t << 8 * BYTE_B); \
    }); \
  }
SCALED(scaled_fp8, 0, 8, 0, 8, 16, 128, f32x4, 0, 0)
SCALED(scaled_bf8_fp4, 1, 8, 4, 4, 16, 128, f32x4, 1, 3)
SCALED(scaled_fp6_bf6, 2, 6, 3, 6, 16, 128, f32x4, 2, 1)
SCALED(scaled_fp4, 4, 4, 4, 4, 16, 128, f32x4, 3, 0)
SCALED(scaled_fp8_wide, 0, 8, 0, 8, 32, 64, f32x16, 0, 2)
SCALED(scaled_fp4_wide, 4, 4, 2, 6, 32, 64, f32x16, 0, 0)
