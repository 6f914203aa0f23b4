// What a wave finds at its start: ids, user SGPRs, hidden and preloaded arguments, LDS, scratch, registers, clocks.
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
#define KERNEL extern "C" __attribute__((global)) void
#define CONSTANT const __attribute__((address_space(4)))
#define SHARED __attribute__((shared))
#define TX __builtin_amdgcn_workitem_id_x()
#define TY __builtin_amdgcn_workitem_id_y()
#define TZ __builtin_amdgcn_workitem_id_z()
#define BX __builtin_amdgcn_workgroup_id_x()
#define BY __builtin_amdgcn_workgroup_id_y()
#define BZ __builtin_amdgcn_workgroup_id_z()

// Places of the whole grid, workgroup after workgroup; each takes `items`, also where it is smaller.
// 8 words of each work-item: 1, its id in x, y, z, its workgroup's in x, y, z, lanes of its wave that are on.
KERNEL ids3(u32 *out, u32 nx, u32 ny, u32 wx, u32 wy, u32 items) {
  u32 *p = out + 8 * (((BZ * ny + BY) * nx + BX) * items + (TZ * wy + TY) * wx + TX);
  u32 values[] = {1, TX, TY, TZ, BX, BY, BZ, (u32)__builtin_popcountll(__builtin_amdgcn_read_exec())};
  for (u32 i = 0; i < 8; i++)
    p[i] = values[i];
}

KERNEL ids2(u32 *out, u32 nx, u32 wx, u32 items) {
  u32 *p = out + 4 * ((BY * nx + BX) * items + TY * wx + TX);
  p[0] = TX, p[1] = TY, p[2] = BX, p[3] = BY;
}

KERNEL ids1(u32 *out, u32 items) {
  u32 *p = out + 4 * (BX * items + TX);
  p[0] = TX, p[1] = BX, p[2] = __builtin_amdgcn_wavefrontsize(), p[3] = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
}

// The bytes behind the explicit arguments, as many as are asked for.
KERNEL hidden(u32 *out, u32 words) {
  CONSTANT u32 *p = (CONSTANT u32 *)__builtin_amdgcn_implicitarg_ptr();
  if (TX == 0 && BX == 0 && BY == 0 && BZ == 0)
    for (u32 i = 0; i < words; i++)
      out[i] = p[i];
}

// Kernel arguments (4 words), dispatch packet (16 words), queue (60 words).
KERNEL pointers(u32 *out, u64 mark) {
  CONSTANT u32 *packet = (CONSTANT u32 *)__builtin_amdgcn_dispatch_ptr();
  CONSTANT u32 *queue = (CONSTANT u32 *)__builtin_amdgcn_queue_ptr();
  CONSTANT u32 *arguments = (CONSTANT u32 *)__builtin_amdgcn_kernarg_segment_ptr();
  if (TX || BX)
    return;
  for (u32 i = 0; i < 4; i++)
    out[i] = arguments[i];
  for (u32 i = 0; i < 16; i++)
    out[4 + i] = packet[i];
  for (u32 i = 0; i < 60; i++)
    out[20 + i] = queue[i];
}

// Arguments of every size, so that some can be preloaded.
KERNEL arguments(u32 a, u16 b, u8 c, u64 d, u64 *out, u32 e, float f, u64 g) {
  if (TX == 0) {
    u64 *p = out + 8 * BX;
    p[0] = a, p[1] = b, p[2] = c, p[3] = d, p[4] = e, p[5] = __builtin_bit_cast(u32, f), p[6] = g, p[7] = (u64)out;
  }
}

extern SHARED u32 dynamic[];
static SHARED u32 fixed[64];

// out[i]: what the neighbour on the other side of the workgroup left in LDS, static and dynamic.
KERNEL lds(u32 *out, u32 items) {
  fixed[TX % 64] = TX % 64 * 3;
  dynamic[TX] = TX + 1000 * BX;
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  out[BX * items + TX] = dynamic[items - 1 - TX] + fixed[(TX + 1) % 64];
}

// A private array that the compiler cannot keep in registers, reached as scratch and through a flat pointer.
KERNEL scratch(u32 *out, const u32 *order, u32 items) {
  volatile u32 mine[24];
  u32 n = BX * items + TX;
  for (u32 i = 0; i < 24; i++)
    mine[order[i]] = n * 24 + i;
  volatile u32 *flat = n % 2 ? mine + 3 : (volatile u32 *)out + n;
  if (n % 2)
    *flat += 1;
  u32 sum = 0;
  for (u32 i = 0; i < 24; i++)
    sum = sum * 5 + mine[i];
  out[n] = sum;
}

// A stack whose depth the compiler does not know: recursion by pointer.
typedef u32 (*Function)(u32, const void *);
static __attribute__((device, noinline)) u32 descend(u32 n, const void *self) {
  volatile u32 frame[8];
  for (u32 i = 0; i < 8; i++)
    frame[i] = n + i;
  return n ? ((Function)self)(n - 1, self) + frame[n % 8] : frame[0];
}
KERNEL stack(u32 *out, const u32 *depth) {
  out[TX] = descend(depth[TX], (const void *)&descend);
}

// Traps: 3 asks a debugger, 2 gives up.
KERNEL debug_trap(u32 *out) { __builtin_debugtrap(); out[TX] = 7; }
KERNEL trap(u32 *out) { out[TX] = 7; __builtin_trap(); }

// Sums of floats by memory atomics, as -munsafe-fp-atomics lets the hardware do them.
KERNEL float_atomics(float *out) { __hip_atomic_fetch_add(out, (float)TX, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); }

// Denormals of f32: kept or flushed as the options say.
KERNEL denormals(float *out, const float *x) { out[TX] = x[TX] * 0.5f; }
