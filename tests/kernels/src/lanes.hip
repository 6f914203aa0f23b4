// Lanes: every builtin that moves values between them, ballots and counts, in whole waves and with lanes switched off.
#include "device.h"
// out: a row of n for each pattern.
KERNEL SIZED(128) swizzles(const i32 *in, i32 *out, u32 n) {
  u32 i = item();
  i32 v = in[i], *to = out + i;
#define PUT(x) *to = (x), to += n
  PUT(__builtin_amdgcn_ds_swizzle(v, 0x041f));                 // lane ^ 1
  PUT(__builtin_amdgcn_ds_swizzle(v, 0x401f));                 // lane ^ 16
  PUT(__builtin_amdgcn_ds_swizzle(v, 0x00f8));                 // (lane & 24) | 7
  PUT(__builtin_amdgcn_ds_swizzle(v, 0x801b));                 // quads reversed
  PUT(__builtin_amdgcn_ds_swizzle(v, 0xc0a0));                 // halves rotated by 5
  PUT(__builtin_amdgcn_ds_bpermute((tx() * 7 & 31 | (tx() & ~31u)) << 2, v)); // within halves on every target
  PUT(__builtin_amdgcn_ds_permute((tx() * 5 & 31 | (tx() & ~31u)) << 2, v));
  PUT(__builtin_amdgcn_mov_dpp(v, 0xb1, 15, 15, true));        // quad_perm:[1,0,3,2]
  PUT(__builtin_amdgcn_update_dpp(-1, v, 0x113, 15, 15, false)); // row_shr:3, lanes with no source keep -1
  PUT(__builtin_amdgcn_update_dpp(-1, v, 0x102, 15, 15, true));  // row_shl:2, they get 0
  PUT(__builtin_amdgcn_update_dpp(7, v, 0x125, 5, 10, false));   // row_ror:5 on some rows and banks
  PUT(__builtin_amdgcn_update_dpp(7, v, 0x140, 15, 15, false));  // row_mirror
  PUT(__builtin_amdgcn_update_dpp(7, v, 0x141, 15, 15, false));  // row_half_mirror
  PUT(__builtin_amdgcn_readlane(v, 13));
  PUT(__builtin_amdgcn_readfirstlane(v) + (i32)tx());
  PUT(__builtin_amdgcn_readlane(v, __builtin_amdgcn_readfirstlane(v) & 31));
#if defined(__GFX9__)
  PUT(__builtin_amdgcn_update_dpp(9, v, 0x138, 15, 15, false)); // wave_shr:1
  PUT(__builtin_amdgcn_update_dpp(9, v, 0x134, 15, 15, false)); // wave_rol:1
  PUT(__builtin_amdgcn_update_dpp(9, v, 0x142, 10, 15, false)); // row_bcast:15 into rows 1 and 3
  PUT(__builtin_amdgcn_update_dpp(9, v, 0x143, 12, 15, false)); // row_bcast:31 into rows 2 and 3
#else
  PUT(__builtin_amdgcn_permlane16(5, v, 0x76543210, 0xfedcba98 ^ 0x11111111, false, false));
  PUT(__builtin_amdgcn_permlanex16(5, v, 0x01234567, 0x89abcdef, false, false));
  PUT(__builtin_amdgcn_mov_dpp8(v, 05670123 & 0xffffff));
  PUT(WAVE == 64 ? __builtin_amdgcn_permlane64(v) : v);
  PUT(__builtin_amdgcn_update_dpp(9, v, 0x153, 15, 15, false)); // row_share:3
  PUT(__builtin_amdgcn_update_dpp(9, v, 0x16a, 15, 15, false)); // row_xmask:10
#endif
}
// What lanes that are switched off give and get: those with a set bit of their value stay on.
KERNEL SIZED(128) partly(const i32 *in, i32 *out, u32 n) {
  u32 i = item();
  i32 v = in[i], *to = out + i;
  for (u32 k = 0; k < 6; k++) to[k * n] = -2;
  if (v & 1) {
    PUT(__builtin_amdgcn_update_dpp(-1, v, 0x111, 15, 15, false)); // row_shr:1: an inactive source is none
    PUT(__builtin_amdgcn_update_dpp(-1, v, 0xb1, 15, 15, true));
    PUT(__builtin_amdgcn_readfirstlane(v));
    PUT(count(ballot(v & 2)));
    PUT(lanes_below(ballot(v & 4)));
    PUT(__builtin_amdgcn_ds_permute((tx() * 5 & 31 | (tx() & ~31u)) << 2, v)); // nobody sends to some: 0
  }
}
// Sums over a wave by a loop that takes lanes out one by one, and one that takes equal values at a time.
KERNEL SIZED(WAVE) one_by_one(const i32 *in, i32 *out, u32 *kinds) {
  i32 v = in[item()], sum = 0;
  u32 rounds = 0, mine = 0;
  for (mask left = ballot(true); left; left &= left - 1) sum += __builtin_amdgcn_readlane(v, WAVE == 64 ? __builtin_ctzl(left) : __builtin_ctz(left));
  for (bool done = false; !done;) {
    i32 first = __builtin_amdgcn_readfirstlane(v);
    rounds++;
    if (v == first) done = true, mine = count(ballot(true)) << 8 | rounds;
  }
  out[item()] = sum;
  kinds[item()] = mine;
}
// Votes, and registers written lane by lane.
KERNEL SIZED(WAVE) votes(const i32 *in, u64 *out, i32 *built) {
  i32 v = in[item()];
  mask odd = ballot(v & 1);
  bool all = ballot(v > -100) == ballot(true), any = ballot(v == 5) != 0;
  if (tx() == 0) out[2 * bx()] = odd, out[2 * bx() + 1] = (u64)all << 1 | any;
  i32 w = 0;
  for (u32 k = 0; k < WAVE; k += 3) w = tx() == k ? __builtin_amdgcn_readlane(v, k ^ 1) : w;
  asm volatile("v_writelane_b32 %0, 42, 2\n\tv_writelane_b32 %0, %1, 31" : "+v"(w) : "s"(bx()));
  built[item()] = w;
}
