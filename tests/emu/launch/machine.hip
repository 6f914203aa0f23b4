// Hardware registers, messages and clocks.
typedef unsigned int u32;
typedef unsigned long u64;
#define KERNEL extern "C" __attribute__((global)) void
#define TX __builtin_amdgcn_workitem_id_x()
#define BX __builtin_amdgcn_workgroup_id_x()
#define GET(id) (u32) __builtin_amdgcn_s_getreg((31 << 11) | (id))
#define PART(id, low, bits) (u32) __builtin_amdgcn_s_getreg((((bits) - 1) << 11) | ((low) << 6) | (id))
#define SET(id, low, bits, value) __builtin_amdgcn_s_setreg((((bits) - 1) << 11) | ((low) << 6) | (id), value)
#define WAVE (TX / __builtin_amdgcn_wavefrontsize())
#define FIRST (TX % __builtin_amdgcn_wavefrontsize() == 0)
static __attribute__((shared)) volatile u32 block[100];

#if defined(__GFX9__)
#define TIME() __builtin_amdgcn_s_memtime()
#define REALTIME() __builtin_amdgcn_s_memrealtime()
#elif defined(__GFX11__)
#define TIME() ((u64)GET(29))
#define REALTIME() __builtin_amdgcn_s_sendmsg_rtnl(0x83)
#else
#define TIME() ((u64)GET(30) << 32 | GET(29))
#define REALTIME() __builtin_amdgcn_s_sendmsg_rtnl(0x83)
#endif

// 32 words of each wave, by number of the register, 0xdeadbeef where the generation has none.
KERNEL registers(u32 *out, u32 waves, const u32 *order) {
  volatile u32 spill[8]; // the wave has scratch,
  spill[order[0]] = 1;
  block[TX % 100] = spill[order[0]]; // and LDS
  u32 r[32];
  for (u32 i = 0; i < 32; i++)
    r[i] = 0xdeadbeef;
  r[1] = GET(1), r[2] = GET(2), r[5] = GET(5), r[6] = GET(6), r[20] = GET(20);
#if defined(__GFX9__)
  r[3] = GET(3), r[4] = GET(4), r[7] = GET(7), r[14] = GET(14), r[15] = GET(15), r[16] = GET(16), r[17] = GET(17), r[18] = GET(18), r[19] = GET(19);
  r[21] = GET(21), r[22] = GET(22), r[23] = GET(23), r[24] = GET(24);
#elif defined(__GFX11__)
  r[3] = GET(3), r[7] = GET(7), r[14] = GET(14), r[15] = GET(15), r[16] = GET(16), r[17] = GET(17), r[18] = GET(18), r[19] = GET(19), r[21] = GET(21);
  r[23] = GET(23), r[24] = GET(24), r[25] = GET(25), r[26] = GET(26), r[27] = GET(27), r[28] = GET(28);
#else
  r[4] = GET(4), r[10] = GET(10), r[11] = GET(11), r[12] = GET(12), r[15] = GET(15), r[16] = GET(16), r[17] = GET(17), r[18] = GET(18), r[19] = GET(19);
  r[21] = GET(21), r[23] = GET(23), r[24] = GET(24), r[26] = GET(26);
#endif
  if (FIRST)
    for (u32 i = 0; i < 32; i++)
      out[32 * (BX * waves + WAVE) + i] = r[i];
}

// Fields of registers, read and written: MODE's rounding, exception flags, and what a kernel cannot change.
KERNEL fields(u32 *out) {
  u32 n = 0;
  SET(1, 0, 2, 3), out[n++] = PART(1, 0, 2), out[n++] = PART(1, 0, 4);
  SET(1, 0, 4, 9), out[n++] = PART(1, 2, 2), SET(1, 0, 4, 0), out[n++] = PART(1, 0, 4);
  u32 before = GET(2);
  SET(2, 0, 32, 0xffffffff);
  out[n++] = (GET(2) ^ before) & ~1u;
  u32 size = GET(5);
  SET(5, 0, 32, 0x12345678);
  out[n++] = GET(5) ^ size;
#if defined(__GFX12__)
  SET(18, 3, 2, 2), out[n++] = GET(18), SET(18, 0, 32, 0xffffffff), out[n++] = GET(18), SET(18, 0, 7, 0), out[n++] = GET(18);
#else
  SET(3, 3, 2, 2), out[n++] = GET(3), SET(3, 0, 32, 0xffffffff), out[n++] = GET(3), SET(3, 0, 7, 0), out[n++] = GET(3);
#endif
  __builtin_amdgcn_s_setprio(2);
#if defined(__GFX12__)
  out[n++] = PART(4, 12, 2);
#else
  out[n++] = PART(2, 3, 2);
#endif
}

// Four readings of the clock by each wave, and two of the constant clock: at the start, after sleeping, around a barrier that
// the first wave is late for.
KERNEL clocks(u64 *out, u32 waves) {
  u64 t[6] = {TIME()};
  t[4] = REALTIME();
  __builtin_amdgcn_s_sleep(2);
  t[1] = TIME();
  if (__builtin_amdgcn_readfirstlane(WAVE) == 0)
    __builtin_amdgcn_s_sleep(100);
  t[2] = TIME();
  __builtin_amdgcn_s_barrier();
  t[3] = TIME(), t[5] = REALTIME();
  if (FIRST)
    for (u32 i = 0; i < 6; i++)
      out[6 * (BX * waves + WAVE) + i] = t[i];
}

KERNEL messages(u64 *out) {
  __builtin_amdgcn_s_sendmsg(1, TX);
#if !defined(__GFX9__)
  out[0] = (u32)__builtin_amdgcn_s_sendmsg_rtn(0x80), out[1] = (u32)__builtin_amdgcn_s_sendmsg_rtn(0x81);
  out[2] = __builtin_amdgcn_s_sendmsg_rtnl(0x82), out[3] = __builtin_amdgcn_s_sendmsg_rtnl(0x85);
  u64 time = __builtin_amdgcn_s_sendmsg_rtnl(0x83);
  out[4] = (u32)__builtin_amdgcn_s_sendmsg_rtn(0x83) - (u32)time;
#endif
#if defined(__GFX12__)
  out[5 + BX] = (u32)__builtin_amdgcn_s_sendmsg_rtn(0x87);
#endif
}

#if defined(__GFX9__)
// Accumulation registers: their own file, and matrices in them.
typedef float v4 __attribute__((ext_vector_type(4)));
KERNEL accumulators(float *out, const float *x) {
  v4 sum = {1, 2, 3, 4};
  for (u32 i = 0; i < 3; i++)
    sum = __builtin_amdgcn_mfma_f32_4x4x1f32(x[TX], x[64 + TX], sum, 0, 0, 0);
  float kept;
  asm volatile("v_accvgpr_write_b32 a7, %1\n\ts_nop 4\n\tv_accvgpr_read_b32 %0, a7" : "=v"(kept) : "v"(x[TX]) : "a7");
  out[5 * TX + 4] = kept;
  for (u32 i = 0; i < 4; i++)
    out[5 * TX + i] = sum[i];
}
#endif
