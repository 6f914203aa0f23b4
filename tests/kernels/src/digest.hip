// Integer-heavy loops: rotations, funnel shifts, byte swaps, bit selects, wide multiplications, a table in LDS.
#include "device.h"
DEVICE u32 rotr(u32 v, u32 by) { return rotl(v, 32 - by); }

// SHA-256 of one padded 64-byte block a lane. k: round constants; state: initial values.
KERNEL sha256(const u32 *blocks, const u32 *k, const u32 *state, u32 *digests, u32 n) {
  u32 at = item();
  if (at >= n) return;
  u32 w[16], s[8];
  for (u32 i = 0; i < 16; i++) w[i] = __builtin_bswap32(blocks[at * 16 + i]);
  for (u32 i = 0; i < 8; i++) s[i] = state[i];
#pragma unroll 16
  for (u32 i = 0; i < 64; i++) {
    u32 a = s[0], e = s[4], now = w[i & 15];
    u32 t1 = s[7] + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) + ((e & s[5]) ^ (~e & s[6])) + k[i] + now;
    u32 t2 = (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
    for (u32 j = 7; j; j--) s[j] = s[j - 1];
    s[4] += t1;
    s[0] = t1 + t2;
    u32 p = w[(i + 1) & 15], q = w[(i + 14) & 15];
    w[i & 15] = now + (rotr(p, 7) ^ rotr(p, 18) ^ p >> 3) + w[(i + 9) & 15] + (rotr(q, 17) ^ rotr(q, 19) ^ q >> 10);
  }
  for (u32 i = 0; i < 8; i++) digests[at * 8 + i] = __builtin_bswap32(s[i] + state[i]);
}
// CRC-32 of byte strings of any length; the table is made in LDS first.
KERNEL crc32(const u8 *text, const u32 *starts, u32 *out, u32 n) {
  LDS u32 table[256];
  for (u32 i = tx(); i < 256; i += dimx()) {
    u32 v = i;
    for (u32 k = 0; k < 8; k++) v = v >> 1 ^ (v & 1 ? 0xedb88320u : 0);
    table[i] = v;
  }
  barrier();
  u32 at = item(), crc = ~0u;
  if (at >= n) return;
  for (u32 i = starts[at]; i < starts[at + 1]; i++) crc = table[(crc ^ text[i]) & 255] ^ crc >> 8;
  out[at] = ~crc;
}
// Philox 4x64, ten rounds: four outputs for each counter value.
KERNEL philox4x64(u64 *out, u64 key0, u64 key1, u32 n) {
  u32 at = item();
  if (at >= n) return;
  u64 c[4] = {at + 1, 0, 0, 0};
  for (u32 round = 0; round < 10; round++) {
    unsigned __int128 p = (unsigned __int128)c[0] * 0xd2e7470ee14c6c93ul, q = (unsigned __int128)c[2] * 0xca5a826395121157ul;
    c[0] = (u64)(q >> 64) ^ c[1] ^ key0;
    c[2] = (u64)(p >> 64) ^ c[3] ^ key1;
    c[1] = (u64)q;
    c[3] = (u64)p;
    key0 += 0x9e3779b97f4a7c15ul;
    key1 += 0xbb67ae8584caa73bul;
  }
  for (u32 k = 0; k < 4; k++) out[(u64)at * 4 + k] = c[k];
}
// Conway's life on a torus, 64 cells a word: neighbours are added as bits of three planes.
KERNEL life(const u64 *in, u64 *out, u32 words, u32 rows) {
  u32 x = item(), y = by();
  if (x >= words) return;
  u64 ones = 0, twos = 0, fours = 0, self = 0;
  for (u32 dy = 0; dy < 3; dy++) {
    const u64 *row = in + (y + rows + dy - 1) % rows * words;
    u64 mid = row[x], before = row[(x + words - 1) % words], after = row[(x + 1) % words];
    u64 planes[3] = {mid << 1 | before >> 63, mid >> 1 | after << 63, dy == 1 ? 0 : mid};
    if (dy == 1) self = mid;
    for (u64 p : planes) {
      u64 carry = ones & p;
      ones ^= p;
      fours |= twos & carry;
      twos ^= carry;
    }
  }
  out[y * words + x] = twos & ~fours & (ones | self);
}
