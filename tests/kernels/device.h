// What kernels of this folder are written in: types, ids, LDS, barriers, atomics, lanes, math. Freestanding.
// WAVE (32 or 64 lanes) comes from the command line. __GFX9__, __GFX11__ and __GFX12__ from the compiler.
#pragma once
typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef short i16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long u64;
typedef long i64;
typedef float f32;
typedef double f64;
typedef _Float16 f16;
typedef __bf16 bf16;
template <class T, int N> using vec = T __attribute__((ext_vector_type(N)));

#define KERNEL extern "C" __attribute__((global)) void
#define DEVICE static inline __attribute__((device))
#define NOINLINE static __attribute__((device, noinline))
#define CONSTANT static const __attribute__((constant))
#define LDS static __attribute__((shared))
#define SIZED(n) __attribute__((amdgpu_flat_work_group_size(n, n)))

// ---- ids
DEVICE u32 tx() { return __builtin_amdgcn_workitem_id_x(); }
DEVICE u32 ty() { return __builtin_amdgcn_workitem_id_y(); }
DEVICE u32 tz() { return __builtin_amdgcn_workitem_id_z(); }
DEVICE u32 bx() { return __builtin_amdgcn_workgroup_id_x(); }
DEVICE u32 by() { return __builtin_amdgcn_workgroup_id_y(); }
DEVICE u32 bz() { return __builtin_amdgcn_workgroup_id_z(); }
// Hidden arguments: whole workgroups of an axis, their size, size of the smaller last one.
DEVICE u32 whole_groups(u32 axis) { return ((const __attribute__((address_space(4))) u32 *)__builtin_amdgcn_implicitarg_ptr())[axis]; }
DEVICE u32 hidden16(u32 i) { return ((const __attribute__((address_space(4))) u16 *)__builtin_amdgcn_implicitarg_ptr())[i]; }
DEVICE u32 groupx() { return hidden16(6); }
DEVICE u32 groupy() { return hidden16(7); }
DEVICE u32 dimx() { return bx() < whole_groups(0) ? hidden16(6) : hidden16(9); } // of this workgroup
DEVICE u32 dimy() { return by() < whole_groups(1) ? hidden16(7) : hidden16(10); }
DEVICE u32 dimz() { return bz() < whole_groups(2) ? hidden16(8) : hidden16(11); }
DEVICE u32 item() { return bx() * groupx() + tx(); } // in the grid, along x
DEVICE u32 gridx() { return __builtin_amdgcn_grid_size_x(); } // work-items
DEVICE u32 gridy() { return __builtin_amdgcn_grid_size_y(); }
DEVICE u32 gridz() { return __builtin_amdgcn_grid_size_z(); }

// ---- order
#define RELAXED __ATOMIC_RELAXED
#define GROUP __HIP_MEMORY_SCOPE_WORKGROUP
#define DEVICE_WIDE __HIP_MEMORY_SCOPE_AGENT
DEVICE void barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

// ---- atomics, on memory (whole device) and on LDS (workgroup)
#define G_ADD(p, v) __hip_atomic_fetch_add(p, v, RELAXED, DEVICE_WIDE)
#define G_SUB(p, v) __hip_atomic_fetch_sub(p, v, RELAXED, DEVICE_WIDE)
#define G_MIN(p, v) __hip_atomic_fetch_min(p, v, RELAXED, DEVICE_WIDE)
#define G_MAX(p, v) __hip_atomic_fetch_max(p, v, RELAXED, DEVICE_WIDE)
#define G_AND(p, v) __hip_atomic_fetch_and(p, v, RELAXED, DEVICE_WIDE)
#define G_OR(p, v) __hip_atomic_fetch_or(p, v, RELAXED, DEVICE_WIDE)
#define G_XOR(p, v) __hip_atomic_fetch_xor(p, v, RELAXED, DEVICE_WIDE)
#define G_SWAP(p, v) __hip_atomic_exchange(p, v, RELAXED, DEVICE_WIDE)
#define G_LOAD(p) __hip_atomic_load(p, __ATOMIC_ACQUIRE, DEVICE_WIDE)
#define G_STORE(p, v) __hip_atomic_store(p, v, __ATOMIC_RELEASE, DEVICE_WIDE)
#define L_ADD(p, v) __hip_atomic_fetch_add(p, v, RELAXED, GROUP)
#define L_MIN(p, v) __hip_atomic_fetch_min(p, v, RELAXED, GROUP)
#define L_MAX(p, v) __hip_atomic_fetch_max(p, v, RELAXED, GROUP)
#define L_OR(p, v) __hip_atomic_fetch_or(p, v, RELAXED, GROUP)
#define L_XOR(p, v) __hip_atomic_fetch_xor(p, v, RELAXED, GROUP)
// *p = desired when it held expected; what it held.
template <class T> DEVICE T compare_swap(T *p, T expected, T desired) {
  __hip_atomic_compare_exchange_strong(p, &expected, desired, RELAXED, RELAXED, DEVICE_WIDE);
  return expected;
}

// ---- lanes
DEVICE u32 lane() { return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0)); }
#if WAVE == 64
typedef u64 mask;
DEVICE mask ballot(bool b) { return __builtin_amdgcn_ballot_w64(b); }
DEVICE u32 lanes_below(mask m) { return __builtin_amdgcn_mbcnt_hi(m >> 32, __builtin_amdgcn_mbcnt_lo(m, 0)); }
DEVICE u32 count(mask m) { return __builtin_popcountl(m); }
#else
typedef u32 mask;
DEVICE mask ballot(bool b) { return __builtin_amdgcn_ballot_w32(b); }
DEVICE u32 lanes_below(mask m) { return __builtin_amdgcn_mbcnt_lo(m, 0); }
DEVICE u32 count(mask m) { return __builtin_popcount(m); }
#endif
// v of lane `from`, by ds_bpermute. In a wave64 of RDNA3 that stays within halves, so the other half is asked as well:
// there all lanes must be active.
DEVICE i32 bpermute(i32 v, u32 from) {
  i32 near = __builtin_amdgcn_ds_bpermute(from << 2, v);
#if defined(__GFX11__) && WAVE == 64
  i32 far = __builtin_amdgcn_ds_bpermute(from << 2, __builtin_amdgcn_permlane64(v));
  return (from ^ lane()) & 32 ? far : near;
#else
  return near;
#endif
}
// The same for any type of whole dwords.
template <class T> DEVICE T shuffle(T v, u32 from) {
  static_assert(sizeof(T) % 4 == 0);
  i32 w[sizeof(T) / 4];
  __builtin_memcpy(w, &v, sizeof(T));
  for (u32 k = 0; k < sizeof(T) / 4; k++) w[k] = bpermute(w[k], from);
  __builtin_memcpy(&v, w, sizeof(T));
  return v;
}
template <class T> DEVICE T shuffle_xor(T v, u32 bits) { return shuffle(v, lane() ^ bits); }
template <class T> DEVICE T shuffle_up(T v, u32 by) { return shuffle(v, lane() >= by ? lane() - by : lane()); }
// v through a DPP pattern; lanes with no source keep `old`.
template <int CTRL, int ROWS = 15, int BANKS = 15> DEVICE i32 dpp(i32 old, i32 v) {
  return __builtin_amdgcn_update_dpp(old, v, CTRL, ROWS, BANKS, false);
}

// ---- math
template <class T> DEVICE T min(T a, T b) { return b < a ? b : a; }
template <class T> DEVICE T max(T a, T b) { return a < b ? b : a; }
DEVICE f32 fma(f32 a, f32 b, f32 c) { return __builtin_fmaf(a, b, c); }
DEVICE f64 fma(f64 a, f64 b, f64 c) { return __builtin_fma(a, b, c); }
DEVICE u32 rotl(u32 v, u32 by) { return __builtin_rotateleft32(v, by); }
