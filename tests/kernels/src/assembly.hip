// Inline assembly: a jump table of code, rounding by MODE, comparisons that write EXEC, typed buffers, LDS counters and masks.
#include "device.h"
#if defined(__GFX12__)
#define LOADED "s_wait_loadcnt 0x0"
#define DONE_LDS "s_wait_dscnt 0x0"
#else
#define LOADED "s_waitcnt vmcnt(0)"
#define DONE_LDS "s_waitcnt lgkmcnt(0)"
#endif

// One of four arms of equal size, by the workgroup's number.
KERNEL jump_table(const u32 *in, u32 *out) {
  u32 v = in[item()];
  asm volatile("s_getpc_b64 s[20:21]\n"
               "here%=:\n\t"
               "s_mul_i32 s22, %1, 12\n\t"
               "s_add_u32 s22, s22, arms%=-here%=\n\t"
               "s_add_u32 s20, s20, s22\n\t"
               "s_addc_u32 s21, s21, 0\n\t"
               "s_setpc_b64 s[20:21]\n"
               "arms%=:\n\t"
               "v_xor_b32_e32 %0, 0x11223344, %0\n\t"
               "s_branch end%=\n\t"
               "v_and_b32_e32 %0, 0xff00ff, %0\n\t"
               "s_branch end%=\n\t"
               "v_or_b32_e32 %0, 0x80000001, %0\n\t"
               "s_branch end%=\n\t"
               "v_lshlrev_b32_e64 %0, 5, %0\n\t"
               "s_branch end%=\n"
               "end%=:"
               : "+v"(v) : "s"(bx() & 3) : "s20", "s21", "s22", "scc");
  out[item()] = v;
}
// The same operations in each of the four rounding modes: a row of three for each mode.
KERNEL rounding(const f32 *as, const f32 *bs, f32 *out, f64 *wide) {
  f32 a = as[item()], b = bs[item()], sum, product;
  f64 x = a, y = b, quad;
#define IN_MODE(m) \
  asm volatile("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), " #m "\n\t" \
               "s_nop 1\n\t" \
               "v_add_f32_e32 %0, %3, %4\n\t" \
               "v_mul_f32_e32 %1, %3, %4\n\t" \
               "v_fma_f64 %2, %5, %6, %5\n\t" \
               "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 0\n\t" \
               "s_nop 1" : "=&v"(sum), "=&v"(product), "=&v"(quad) : "v"(a), "v"(b), "v"(x * 0x1.fffffffp-1), "v"(y)); \
  out[2 * (m & 3) * gridx() + item()] = sum; \
  out[(2 * (m & 3) + 1) * gridx() + item()] = product; \
  wide[(m & 3) * gridx() + item()] = quad;
  IN_MODE(0)
  IN_MODE(5)
  IN_MODE(10)
  IN_MODE(15)
}
// Lanes whose a is below b go on, saved and restored EXEC around; modifiers of sources and results.
KERNEL modifiers(const f32 *as, const f32 *bs, u32 *chosen, f32 *out) {
  u32 i = item(), n = gridx(), c = 7;
  f32 a = as[i], b = bs[i], r[5];
#if WAVE == 64
  asm volatile("s_mov_b64 s[20:21], exec\n\t"
               "v_cmpx_lt_f32 " 
#if defined(__GFX9__)
               "vcc, "
#endif
               "%1, %2\n\tv_mov_b32_e32 %0, 9\n\ts_mov_b64 exec, s[20:21]" : "+v"(c) : "v"(a), "v"(b) : "s20", "s21", "vcc");
#else
  asm volatile("s_mov_b32 s20, exec_lo\n\tv_cmpx_lt_f32 %1, %2\n\tv_mov_b32_e32 %0, 9\n\ts_mov_b32 exec_lo, s20"
               : "+v"(c) : "v"(a), "v"(b) : "s20", "vcc");
#endif
  asm volatile("v_add_f32_e64 %0, -|%5|, %6\n\t"
               "v_mul_f32_e64 %1, %5, -%6 clamp\n\t"
               "v_fma_f32 %2, |%5|, -%6, 1.0\n\t"
               "v_max_f32_e64 %3, -%5, |%6|\n\t"
               "v_med3_f32 %4, %5, -%6, 0.5"
               : "=&v"(r[0]), "=&v"(r[1]), "=&v"(r[2]), "=&v"(r[3]), "=&v"(r[4]) : "v"(a), "v"(b));
  chosen[i] = c;
  for (u32 k = 0; k < 5; k++) out[k * n + i] = r[k];
}
// Records of eight bytes by their number, their fields made floats by the format told in the instruction.
KERNEL typed_buffers(const u8 *in, u32 bytes, vec<f32, 4> *out) {
  auto rsrc = __builtin_amdgcn_make_buffer_rsrc((void *)in, 8, bytes / 8,
#if defined(__GFX9__)
                                                0x27000
#else
                                                0x01004000
#endif
  );
  u32 i = item(), n = gridx();
  vec<f32, 4> a, b, c, d;
#if defined(__GFX9__)
#define TYPED(what, data, number, at) "tbuffer_load_format_xyzw " what ", %4, %5, 0 format:[BUF_DATA_FORMAT_" data ",BUF_NUM_FORMAT_" number "] idxen" at "\n\t"
#elif defined(__GFX12__)
#define TYPED(what, data, number, at) "tbuffer_load_format_xyzw " what ", %4, %5, null format:[BUF_FMT_" data "_" number "] idxen" at "\n\t"
#else
#define TYPED(what, data, number, at) "tbuffer_load_format_xyzw " what ", %4, %5, 0 format:[BUF_FMT_" data "_" number "] idxen" at "\n\t"
#endif
  asm volatile(TYPED("%0", "8_8_8_8", "UNORM", "")
               TYPED("%1", "16_16_16_16", "SNORM", "")
               TYPED("%2", "2_10_10_10", "UINT", " offset:4")
               TYPED("%3", "16_16", "FLOAT", " offset:4")
               LOADED : "=&v"(a), "=&v"(b), "=&v"(c), "=&v"(d) : "v"(i), "s"(rsrc));
  out[i] = a, out[n + i] = b, out[2 * n + i] = c, out[3 * n + i] = d;
}
// LDS: append and consume count active lanes; two addresses in one access, strides of 64, subtraction reversed, exchanges of pairs.
KERNEL SIZED(WAVE) lds_counters(const u32 *in, u32 *tickets, u32 *pairs) {
  LDS u32 counters[2], s[64 * 65];
  u32 v = in[item()], *to = pairs + item(), n = gridx();
  if (tx() == 0) counters[0] = 5, counters[1] = 100;
  for (u32 k = 0; k < 65; k++) s[k * 64 + tx()] = v * (k + 1);
  barrier();
  u32 ticket = v & 1 ? __builtin_amdgcn_ds_append((__attribute__((address_space(3))) i32 *)&counters[0])
                     : __builtin_amdgcn_ds_consume((__attribute__((address_space(3))) i32 *)&counters[1]);
  barrier();
  tickets[item()] = ticket;
  u32 base = (u32)(u64)(__attribute__((address_space(3))) u32 *)s + tx() * 4;
  u64 two, far, swapped;
  u32 reversed;
#if defined(__GFX9__)
  asm volatile("ds_read2_b32 %0, %4 offset0:0 offset1:64\n\tds_read2st64_b32 %1, %4 offset0:3 offset1:64\n\t"
               "ds_rsub_rtn_u32 %2, %4, %5 offset:256\n\tds_wrxchg2_rtn_b32 %3, %4, %5, %4 offset0:128 offset1:192\n\t" DONE_LDS
#else
  asm volatile("ds_load_2addr_b32 %0, %4 offset0:0 offset1:64\n\tds_load_2addr_stride64_b32 %1, %4 offset0:3 offset1:64\n\t"
               "ds_rsub_rtn_u32 %2, %4, %5 offset:256\n\tds_storexchg_2addr_rtn_b32 %3, %4, %5, %4 offset0:128 offset1:192\n\t" DONE_LDS
#endif
               : "=&v"(two), "=&v"(far), "=&v"(reversed), "=&v"(swapped) : "v"(base), "v"(v) : "memory");
  u32 r[] = {(u32)two, (u32)(two >> 32), (u32)far, (u32)(far >> 32), reversed, (u32)swapped, (u32)(swapped >> 32), s[64 + tx()], s[128 + tx()]};
  for (u32 k = 0; k < 9; k++) to[k * n] = r[k];
}
