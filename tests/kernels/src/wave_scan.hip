// Lanes of one wave without LDS: DPP row shifts, broadcasts and mirrors, permlanex16, readlane, ds_swizzle, ds_bpermute.
#include "device.h"

// Sum of lanes 0..lane().
DEVICE i32 prefix_sum(i32 v) {
  v += dpp<0x111>(0, v); // row_shr:1, 2, 4, 8
  v += dpp<0x112>(0, v);
  v += dpp<0x114>(0, v);
  v += dpp<0x118>(0, v);
#if defined(__GFX9__)
  v += dpp<0x142, 0xa>(0, v); // row_bcast:15 into odd rows, row_bcast:31 into the upper half
  v += dpp<0x143, 0xc>(0, v);
#else
  i32 other = __builtin_amdgcn_permlanex16(0, v, 0xffffffffu, 0xffffffffu, false, false); // lane 15 of the other row
  v += lane() & 16 ? other : 0;
#if WAVE == 64
  i32 half = __builtin_amdgcn_readlane(v, 31);
  v += lane() & 32 ? half : 0;
#endif
#endif
  return v;
}
KERNEL wave_prefix_sum(const i32 *in, i32 *out) {
  u32 i = item();
  out[i] = prefix_sum(in[i]);
}

// Least of the wave, in every lane.
DEVICE f32 as_f32(i32 v) { return __builtin_bit_cast(f32, v); }
DEVICE i32 as_i32(f32 v) { return __builtin_bit_cast(i32, v); }
template <int CTRL> DEVICE f32 dpp_min(f32 v) { return __builtin_fminf(v, as_f32(dpp<CTRL>(as_i32(v), as_i32(v)))); }
KERNEL wave_min(const f32 *in, f32 *out) {
  u32 i = item();
  f32 v = in[i];
  v = dpp_min<0xb1>(v);  // quad_perm:[1,0,3,2]
  v = dpp_min<0x4e>(v);  // quad_perm:[2,3,0,1]
  v = dpp_min<0x141>(v); // row_half_mirror
  v = dpp_min<0x140>(v); // row_mirror
  v = __builtin_fminf(v, as_f32(__builtin_amdgcn_ds_swizzle(as_i32(v), 0x401f))); // lane ^ 16
#if WAVE == 64
  v = __builtin_fminf(v, shuffle_xor(v, 32));
#endif
  out[i] = v;
}

// Greatest value of the wave and its first lane, as a pair of 64 + 32 bits through ds_bpermute.
struct Place { f64 value; u32 at, pad; };
KERNEL wave_argmax(const f64 *in, u32 *out) {
  u32 i = item();
  Place best = {in[i], lane(), 0};
  for (u32 k = 1; k < WAVE; k <<= 1) {
    Place other = shuffle_xor(best, k);
    bool better = other.value > best.value || (other.value == best.value && other.at < best.at);
    best = better ? other : best;
  }
  if (lane() == 0) out[i / WAVE] = best.at;
}
