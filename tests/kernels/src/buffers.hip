// Buffer resources: raw loads and stores of every width, strides, accesses past the end, atomics.
#include "device.h"
#if defined(__GFX9__)
#define WORD3 0x00020000
#else
#define WORD3 0x31004000
#endif
typedef __amdgpu_buffer_rsrc_t Buffer;
DEVICE Buffer buffer(void *p, i32 bytes) { return __builtin_amdgcn_make_buffer_rsrc(p, 0, bytes, WORD3); }

// Lane i copies one piece of each width; pieces that begin past `bytes` read 0 and are not written.
KERNEL buffer_copy(void *in, void *out, i32 bytes, i32 half) {
  Buffer from = buffer(in, bytes), to = buffer(out, bytes);
  i32 i = item();
  __builtin_amdgcn_raw_buffer_store_b128(__builtin_amdgcn_raw_buffer_load_b128(from, i * 32, 0, 0), to, i * 32, 0, 0);
  __builtin_amdgcn_raw_buffer_store_b64(__builtin_amdgcn_raw_buffer_load_b64(from, i * 32 + 16, 0, 0), to, i * 32 + 16, 0, 0);
  __builtin_amdgcn_raw_buffer_store_b32(__builtin_amdgcn_raw_buffer_load_b32(from, i * 32, 24, 0), to, i * 32, 24, 0);
  __builtin_amdgcn_raw_buffer_store_b16(__builtin_amdgcn_raw_buffer_load_b16(from, i * 32 + 12, half, 0), to, i * 32 + 12, half, 0);
  __builtin_amdgcn_raw_buffer_store_b8(__builtin_amdgcn_raw_buffer_load_b8(from, i * 32 + 30, 0, 0), to, i * 32 + 30, 0, 0);
}
// What loads past the end give, and atomics in range and past it.
KERNEL buffer_edges(void *in, u32 *out, void *sums, i32 bytes) {
  Buffer from = buffer(in, bytes);
  i32 i = item();
  vec<u32, 3> v = __builtin_amdgcn_raw_buffer_load_b96(from, i * 12, 0, 0);
  out[i] = v.x + 3 * v.y + 5 * v.z;
  __builtin_amdgcn_raw_ptr_buffer_atomic_add_i32((i32)v.x, buffer(sums, 64), (i & 31) * 4, 0, 0);
}
