// Where values are kept: arrays in scratch by index, LDS of a size told at launch, packed records, streams that bypass caches.
#include "device.h"
// Counting sort of a row of bytes by each lane, its counters and copy in scratch.
KERNEL private_arrays(const u8 *in, u8 *out, u16 *order, u32 length) {
  u16 counts[257];
  u8 copy[96];
  const u8 *row = in + item() * length;
  for (u32 k = 0; k < 257; k++) counts[k] = 0;
  for (u32 k = 0; k < length; k++) copy[k] = row[k], counts[row[k] + 1]++;
  for (u32 k = 0; k < 256; k++) counts[k + 1] += counts[k];
  for (u32 k = 0; k < length; k++) {
    u32 at = counts[copy[k]]++;
    out[item() * length + at] = copy[k];
    order[item() * length + at] = k;
  }
}
// Dynamic LDS behind static LDS: a queue of the launch's choice of length.
extern __attribute__((shared)) u32 queue[];
KERNEL SIZED(64) dynamic_lds(const u32 *in, u32 *out, u32 length) {
  LDS u32 head;
  if (tx() == 0) head = 0;
  barrier();
  for (u32 k = tx(); k < length; k += 64) queue[k] = in[bx() * length + k] * 2;
  barrier();
  u32 sum = 0;
  for (u32 k = L_ADD(&head, 1u); k < length; k = L_ADD(&head, 1u)) sum += queue[k];
  G_ADD(&out[bx()], sum);
}
// Records without padding, with fields that lie across dwords.
struct __attribute__((packed)) Record {
  u8 kind;
  u16 size;
  u32 first : 5, second : 13, third : 14;
  f64 value;
  i8 tail[3];
};
static_assert(sizeof(Record) == 18);
KERNEL records(const Record *in, Record *out, u32 n) {
  u32 i = item();
  if (i >= n) return;
  Record r = in[i];
  Record q = {(u8)~r.kind, (u16)(r.size + r.kind), r.second, r.third, r.first, r.value * 0.5, {r.tail[2], r.tail[0], (i8)-r.tail[1]}};
  q.third += r.kind;
  out[n - 1 - i] = q;
}
// Loads and stores marked as used once, of every width; volatile ones.
KERNEL streams(const vec<u32, 4> *in, vec<u32, 4> *out, const u8 *bytes, u8 *bytes_out, volatile u64 *slow) {
  u32 i = item();
  vec<u32, 4> v = __builtin_nontemporal_load(&in[i]);
  v += (u32)__builtin_nontemporal_load(&bytes[i]);
  __builtin_nontemporal_store(v.wzyx, &out[i]);
  __builtin_nontemporal_store((u8)v.x, &bytes_out[i]);
  slow[i] = slow[i] * 3 + i;
}
#if defined(__gfx950__)
// Tiles of LDS read transposed: sixteen lanes get a column each of a matrix with rows of sixteen.
typedef __attribute__((address_space(3))) vec<i16, 4> *Halves;
typedef __attribute__((address_space(3))) vec<i32, 2> *Words;
typedef __attribute__((address_space(3))) vec<i32, 3> *Threes;
KERNEL SIZED(64) transposed(const vec<i32, 2> *in, vec<i32, 2> *halves, vec<i32, 2> *bytes, vec<i32, 2> *nibbles) {
  LDS vec<i32, 2> tile[64];
  tile[tx()] = in[item()];
  barrier();
  halves[item()] = __builtin_bit_cast(vec<i32, 2>, __builtin_amdgcn_ds_read_tr16_b64_v4i16((Halves)&tile[tx()]));
  bytes[item()] = __builtin_amdgcn_ds_read_tr8_b64_v2i32((Words)&tile[tx()]);
  nibbles[item()] = __builtin_amdgcn_ds_read_tr4_b64_v2i32((Words)&tile[tx()]);
}
#elif defined(__GFX12__) && WAVE == 32
// Eight by eight halves transposed on their way from memory.
KERNEL SIZED(64) transposed(const vec<i32, 4> *in, vec<i32, 4> *halves) {
  auto p = (__attribute__((address_space(1))) vec<i16, 8> *)(in + item());
  halves[item()] = __builtin_bit_cast(vec<i32, 4>, __builtin_amdgcn_global_load_tr_b128_v8i16(p));
}
#endif
