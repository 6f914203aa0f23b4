// Products of matrices by matrix instructions, WMMA of RDNA and MFMA of CDNA, in every type they have; one wave a tile.
#include "device.h"

// Row of element i of an accumulator of a tile of SIZE x SIZE.
template <int SIZE, class ACC> DEVICE u32 row_of(u32 i) {
  u32 group = tx() / SIZE;
#if defined(__GFX11__)
  return i * (WAVE / 16) + group;
#elif defined(__GFX12__)
  return WAVE == 32 ? 8 * group + i : i + 8 * (group & 1) + 4 * (group >> 1);
#else
  if (SIZE == 32) return 8 * (i / 4) + 4 * group + i % 4;
  return sizeof(ACC) == 32 ? 4 * i + group : 4 * group + i; // of f64, and of the others
#endif
}
// d = a times the transpose of b; both have rows of `bytes`. A lane holds a FRAG of one row of each, on RDNA3 all lanes of a
// row the same one. STRIDE: elements from one result to the next.
template <class FRAG, class ACC, int SIZE = 16, int STRIDE = 1, class OUT, class F>
DEVICE void product(const u8 *a, const u8 *b, OUT *d, u32 bytes, F multiply) {
  u32 row = tx() % SIZE;
  auto *x = (const FRAG *)(a + (bx() * SIZE + row) * bytes), *y = (const FRAG *)(b + (by() * SIZE + row) * bytes);
#if defined(__GFX11__)
  u32 first = 0, step = 1;
#else
  u32 first = tx() / SIZE, step = WAVE / SIZE;
#endif
  ACC sum = 0;
  for (u32 k = first; k < bytes / sizeof(FRAG); k += step) sum = multiply(x[k], y[k], sum);
  for (u32 i = 0; i < SIZE * SIZE / WAVE; i++)
    d[(bx() * SIZE + row_of<SIZE, ACC>(i)) * gridy() * SIZE + by() * SIZE + row] = (OUT)sum[i * STRIDE];
}
#define PRODUCT(NAME, FRAG, ACC, OUT, ...) \
  KERNEL SIZED(WAVE) NAME(const u8 *a, const u8 *b, OUT *d, u32 bytes) { \
    product<FRAG, ACC __VA_OPT__(, ) __VA_ARGS__>(a, b, d, bytes, [](FRAG x, FRAG y, ACC c) { return
#define END ; }); }

#if defined(__GFX9__)
#define MFMA(name) __builtin_amdgcn_mfma_##name(x, y, c, 0, 0, 0)
typedef vec<f32, 4> f32s;
typedef vec<i32, 4> i32s;
typedef vec<f32, 16> f32x16;
typedef vec<f64, 4> f64x4;
typedef vec<f32, 2> f32x2;
#if defined(__gfx950__)
typedef vec<f16, 8> f16s;
typedef vec<bf16, 8> bf16s;
PRODUCT(product_f16, f16s, f32s, f32) MFMA(f32_16x16x32_f16) END
PRODUCT(product_bf16, bf16s, f32s, f32) MFMA(f32_16x16x32_bf16) END
PRODUCT(product_i8, i32s, i32s, i32) MFMA(i32_16x16x64_i8) END
PRODUCT(product_wide, f16s, f32x16, f32, 32) MFMA(f32_32x32x16_f16) END
#else
typedef vec<f16, 4> f16s;
typedef vec<i16, 4> bf16s;
PRODUCT(product_f16, f16s, f32s, f32) MFMA(f32_16x16x16f16) END
PRODUCT(product_bf16, bf16s, f32s, f32) MFMA(f32_16x16x16bf16_1k) END
PRODUCT(product_i8, i64, i32s, i32) MFMA(i32_16x16x32_i8) END
PRODUCT(product_wide, f16s, f32x16, f32, 32) MFMA(f32_32x32x8f16) END
PRODUCT(product_xf32, f32x2, f32s, f32) MFMA(f32_16x16x8_xf32) END
#endif
PRODUCT(product_f32, f32, f32s, f32) MFMA(f32_16x16x4f32) END
PRODUCT(product_f64, f64, f64x4, f64) MFMA(f64_16x16x4f64) END
PRODUCT(product_fp8, i64, f32s, f32) MFMA(f32_16x16x32_fp8_fp8) END
PRODUCT(product_fp8_bf8, i64, f32s, f32) MFMA(f32_16x16x32_fp8_bf8) END
PRODUCT(product_bf8_wide, i64, f32x16, f32, 32) MFMA(f32_32x32x16_bf8_bf8) END

#else
typedef vec<f32, 256 / WAVE> f32s;
typedef vec<i32, 256 / WAVE> i32s;
#define PASTE(a, b, c) a##b##c
#define NAMED(name, end) PASTE(__builtin_amdgcn_wmma_, name, end)
#if defined(__GFX11__)
#define PER 16 // elements of 16 bits
#define TOP , false // registers have a half for each of two accumulators of 16 bits: take the lower
#define WMMA(name) NAMED(name, ENDING)
#if WAVE == 32
#define ENDING _w32
#else
#define ENDING _w64
#endif
typedef vec<i32, 4> i8s;
typedef vec<i32, 2> i4s;
typedef vec<f16, 512 / WAVE> sums;
typedef vec<i16, 512 / WAVE> bsums;
typedef vec<i16, 16> bf16s;
#define I4(...) WMMA(i32_16x16x16_iu4)(__VA_ARGS__)
#define BETWEEN 2
#else
#define PER (256 / WAVE)
#define TOP
#define WMMA(name) NAMED(name, ENDING)
#if WAVE == 32
#define ENDING _w32_gfx12
typedef vec<i32, 2> i8s, i4s;
#else
#define ENDING _w64_gfx12
typedef i32 i8s, i4s;
#endif
typedef vec<f16, PER> sums;
typedef vec<i16, PER> bsums;
typedef vec<i16, PER> bf16s;
#define I4(...) WMMA(i32_16x16x32_iu4)(__VA_ARGS__)
#define BETWEEN 1
PRODUCT(product_fp8, i8s, f32s, f32) WMMA(f32_16x16x16_fp8_fp8)(x, y, c) END
PRODUCT(product_fp8_bf8, i8s, f32s, f32) WMMA(f32_16x16x16_fp8_bf8)(x, y, c) END
#endif
typedef vec<f16, PER> f16s;
PRODUCT(product_f16, f16s, f32s, f32) WMMA(f32_16x16x16_f16)(x, y, c) END
PRODUCT(product_bf16, bf16s, f32s, f32) WMMA(f32_16x16x16_bf16)(x, y, c) END
PRODUCT(product_f16_f16, f16s, sums, f16, 16, BETWEEN) WMMA(f16_16x16x16_f16)(x, y, c TOP) END
PRODUCT(product_bf16_bf16, bf16s, bsums, i16, 16, BETWEEN) WMMA(bf16_16x16x16_bf16)(x, y, c TOP) END
PRODUCT(product_i8, i8s, i32s, i32) WMMA(i32_16x16x16_iu8)(true, x, true, y, c, false) END
PRODUCT(product_u8_i8, i8s, i32s, i32) WMMA(i32_16x16x16_iu8)(false, x, true, y, c, false) END
PRODUCT(product_i4, i4s, i32s, i32) I4(true, x, true, y, c, false) END
PRODUCT(product_u4_clamp, i4s, i32s, i32) I4(false, x, false, y, c, true) END
#endif
