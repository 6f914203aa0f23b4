// Accesses of 1 to 16 bytes at any address, of memory, LDS and scratch; copies of any length.
#include "device.h"
template <class T> DEVICE T load(const u8 *p) { T v; __builtin_memcpy(&v, p, sizeof(T)); return v; }
template <class T> DEVICE void store(u8 *p, T v) { __builtin_memcpy(p, &v, sizeof(T)); }
struct Odd { u8 b[12]; };

// Record i is 48 bytes at an odd address: pieces are moved to other odd addresses of the record.
DEVICE void shuffle_record(u8 *to, const u8 *from) {
  store(to + 0, load<vec<u32, 4>>(from + 31));
  store(to + 17, load<u64>(from + 1));
  store(to + 25, load<u32>(from + 9));
  store(to + 29, load<u16>(from + 13));
  store(to + 31, load<Odd>(from + 15));
  to[43] = from[27];
}
KERNEL odd_memory(const u8 *in, u8 *out) { shuffle_record(out + 3 + item() * 45, in + 1 + item() * 47); }
KERNEL odd_lds(const u8 *in, u8 *out) {
  LDS u8 a[64 * 47 + 1], b[64 * 45 + 3];
  u64 base = (u64)bx() * 64;
  for (u32 k = tx(); k < 64 * 47; k += 64) a[1 + k] = in[1 + base * 47 + k];
  for (u32 k = tx(); k < 64 * 45; k += 64) b[3 + k] = out[3 + base * 45 + k];
  barrier();
  shuffle_record(b + 3 + tx() * 45, a + 1 + tx() * 47);
  barrier();
  for (u32 k = tx(); k < 64 * 45; k += 64) out[3 + base * 45 + k] = b[3 + k];
}
KERNEL odd_scratch(const u8 *in, u8 *out, u32 skip) {
  u8 a[64], b[64];
  for (u32 k = 0; k < 47; k++) a[k + skip] = in[1 + item() * 47 + k];
  for (u32 k = 0; k < 45; k++) b[k + skip] = out[3 + item() * 45 + k];
  shuffle_record(b + skip, a + skip);
  for (u32 k = 0; k < 45; k++) out[3 + item() * 45 + k] = b[k + skip];
}
