// Products with a matrix of which two of each four neighbours are kept: SWMMAC of RDNA4, SMFMAC of CDNA.
#include "device.h"

// B of a lane. Where that is 32 bytes (CDNA4), its halves belong to the halves of the step, though A is in one piece.
template <class B> DEVICE B load(const u8 *row, u32 step, u32 group, u32 groups) {
  const u8 *from = row + step * groups * sizeof(B);
  B v = ((const B *)from)[group];
#if defined(__gfx950__)
  if (sizeof(B) == 32) {
    __builtin_memcpy(&v, from + 16 * group, 16);
    __builtin_memcpy((u8 *)&v + 16, from + 64 + 16 * group, 16);
  }
#endif
  return v;
}
// a: kept elements, rows of `bytes`; index: two bits for each of them, their places in the four; b: rows of 2 * bytes, transposed.
// A lane holds an A of `a`, the INDEX of those, and a B of `b`.
template <class A, class B, class ACC, class INDEX, class OUT, class F>
DEVICE void product(const u8 *a, const INDEX *index, const u8 *b, OUT *d, u32 bytes, F multiply) {
  u32 row = tx() % 16, group = tx() / 16, groups = WAVE / 16, rank = bytes / sizeof(A);
  ACC sum = 0;
  for (u32 k = 0; k < rank / groups; k++) {
    u32 at = row * rank + k * groups + group;
    sum = multiply(((const A *)a)[at], load<B>(b + row * 2 * bytes, k, group, groups), sum, (i32)index[at]);
  }
  for (u32 i = 0; i < 256 / WAVE; i++) {
#if defined(__GFX9__)
    u32 at = 4 * group + i;
#else
    u32 at = WAVE == 32 ? 8 * group + i : i + 8 * (group & 1) + 4 * (group >> 1);
#endif
    d[at * 16 + row] = sum[i];
  }
}
#define SPARSE(NAME, A, B, ACC, INDEX, OUT) \
  KERNEL SIZED(WAVE) NAME(const u8 *a, const INDEX *index, const u8 *b, OUT *d, u32 bytes) { \
    product<A, B, ACC>(a, index, b, d, bytes, [](A x, B y, ACC c, i32 i) { return
#define END ; }); }
typedef vec<f32, 256 / WAVE> f32s;
typedef vec<i32, 256 / WAVE> i32s;
typedef vec<i32, 2> i32x2;
typedef vec<i32, 4> i32x4;
typedef vec<i32, 8> i32x8;

#if defined(__gfx942__) // ABID: which part of the index register
#define SMFMAC(name, part) __builtin_amdgcn_smfmac_##name(x, y, c, i, 0, part)
typedef vec<f16, 4> f16s;
typedef vec<f16, 8> f16_twice;
typedef vec<i16, 4> bf16s;
typedef vec<i16, 8> bf16_twice;
SPARSE(sparse_f16, f16s, f16_twice, f32s, u8, f32) SMFMAC(f32_16x16x32_f16, 0) END
SPARSE(sparse_bf16, bf16s, bf16_twice, f32s, u8, f32) __builtin_amdgcn_smfmac_f32_16x16x32_bf16(x, y, c, i << 16 | 0x4444, 0, 2) END
SPARSE(sparse_i8, i32x2, i32x4, i32s, u16, i32) SMFMAC(i32_16x16x64_i8, 0) END
SPARSE(sparse_fp8, i32x2, i32x4, f32s, u16, f32) SMFMAC(f32_16x16x64_fp8_fp8, 0) END
SPARSE(sparse_fp8_part, i32x2, i32x4, f32s, u16, f32) __builtin_amdgcn_smfmac_f32_16x16x64_fp8_bf8(x, y, c, i << 16 | 0x4444, 0, 1) END
#elif defined(__gfx950__)
#define SMFMAC(name, part) __builtin_amdgcn_smfmac_##name(x, y, c, i, 0, part)
typedef vec<f16, 8> f16s;
typedef vec<f16, 16> f16_twice;
typedef vec<bf16, 8> bf16s;
typedef vec<bf16, 16> bf16_twice;
SPARSE(sparse_f16, f16s, f16_twice, f32s, u16, f32) SMFMAC(f32_16x16x64_f16, 0) END
SPARSE(sparse_bf16, bf16s, bf16_twice, f32s, u16, f32) SMFMAC(f32_16x16x64_bf16, 0) END
SPARSE(sparse_i8, i32x4, i32x8, i32s, u32, i32) SMFMAC(i32_16x16x128_i8, 0) END
SPARSE(sparse_fp8, i32x4, i32x8, f32s, u32, f32) SMFMAC(f32_16x16x128_fp8_fp8, 0) END
SPARSE(sparse_fp8_part, i32x2, i32x4, f32s, u16, f32) __builtin_amdgcn_smfmac_f32_16x16x64_fp8_bf8(x, y, c, i << 16 | 0x4444, 0, 1) END
#elif defined(__GFX12__)
typedef vec<f16, 256 / WAVE> f16s;
typedef vec<f16, 512 / WAVE> f16_twice;
typedef vec<i16, 256 / WAVE> bf16s;
typedef vec<i16, 512 / WAVE> bf16_twice;
#if WAVE == 32
#define SWMMAC(name) __builtin_amdgcn_swmmac_##name##_w32
typedef i32x2 bytes8;
typedef i32x4 bytes_twice;
typedef u16 places;
#else
#define SWMMAC(name) __builtin_amdgcn_swmmac_##name##_w64
typedef i32 bytes8;
typedef i32x2 bytes_twice;
typedef u8 places;
#endif
SPARSE(sparse_f16, f16s, f16_twice, f32s, places, f32) SWMMAC(f32_16x16x32_f16)(x, y, c, i) END
SPARSE(sparse_bf16, bf16s, bf16_twice, f32s, places, f32) SWMMAC(f32_16x16x32_bf16)(x, y, c, i) END
SPARSE(sparse_i8, bytes8, bytes_twice, i32s, places, i32) SWMMAC(i32_16x16x32_iu8)(true, x, true, y, c, i, false) END
SPARSE(sparse_fp8, bytes8, bytes_twice, f32s, places, f32) SWMMAC(f32_16x16x32_fp8_fp8)(x, y, c, i) END
#endif
