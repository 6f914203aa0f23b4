/* Memory accesses of a whole wave: every lane's address is checked against the region table.
 *
 * A function per (address kind, direction, bytes a lane). Data is laid out as in the register file:
 * dword k of lane i at data[k * lanes + i]; accesses below a dword use the low bits of one dword.
 * Fast path: all lanes active and their addresses adjacent. Returns 0, or 1 after recording a fault.
 */
#include "core.h"

#include <string.h>

#define LDS_APERTURE 0x10000u /* high dword of an address */
#define SCRATCH_APERTURE 0x20000u

enum { KIND_BASE32, KIND_ADDR64, KIND_FLAT, KIND_ARRAY, KIND_SCRATCH, KIND_LDS, KIND_BUFFER };

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define GENERAL_REGISTERS __attribute__((target("general-regs-only")))
#else
#define GENERAL_REGISTERS
#endif

/* ---------------------------------------------------------------- regions */

GENERAL_REGISTERS static const Region *search(const Space *space, u64 address) {
  u64 low = 0, high = space->count;
  while (low < high) {
    u64 mid = (low + high) / 2;
    if (space->regions[mid].va <= address)
      low = mid + 1;
    else
      high = mid;
  }
  return low ? &space->regions[low - 1] : NULL;
}

static inline int inside(const Region *r, u64 address, u64 size) {
  u64 at = address - r->va;
  return at < r->size && size <= r->size - at;
}

/* Called from code with wide vectors in registers: SSE moves would wait for them. */
__attribute__((noinline)) GENERAL_REGISTERS static const Region *search_and_keep(Wave *w, u64 address, u64 size) {
  const Region *r = search(w->space, address);
  if (!r || !inside(r, address, size))
    return NULL;
  w->newest = (w->newest + 1) % N_RECENT;
  w->recent[w->newest] = *r;
  return &w->recent[w->newest];
}

/* The region that holds all of [address, address + size) with the permission, or NULL. */
ALWAYS_INLINE const Region *region_of(Wave *w, u64 address, u64 size, u32 perm) {
  const Region *r = NULL;
  for (u32 i = 0; i < N_RECENT && !r; i++)
    if (inside(&w->recent[i], address, size))
      r = &w->recent[i];
  if (UNLIKELY(!r))
    r = search_and_keep(w, address, size);
  return r && r->perms & perm ? r : NULL;
}

ALWAYS_INLINE u8 *find(Wave *w, u64 address, u64 size, u32 perm) {
  const Region *r = region_of(w, address, size, perm);
  return r ? (u8 *)(r->host + (address - r->va)) : NULL;
}

static void *fault(Wave *w, u32 lane, u64 address, u32 access) {
  w->fault_kind = FAULT_PAGE;
  w->fault_lane = lane;
  w->fault_address = address;
  w->fault_access = access;
  return NULL;
}

u8 *sg_scratch(Wave *w) { return find(w, w->scratch_va, w->scratch_size, PERM_WRITE); }

ALWAYS_INLINE u32 perm_needed(u32 access) { return access == ACCESS_READ ? PERM_READ : PERM_WRITE; }

/* The first byte of [address, address + size) that may not be accessed so faults. */
static int check_bytes(Wave *w, u32 lane, u64 address, u32 size, u32 access) {
  for (u32 i = 0; i < size; i++)
    if (!find(w, address + i, 1, perm_needed(access)))
      return fault(w, lane, address + i, access), 1;
  return 0;
}

/* An access that crosses from one region into the next, or faults. Returns 1 on a fault. */
static int crossing(Wave *w, u32 lane, u64 address, u8 *bytes, u32 size, int write) {
  if (check_bytes(w, lane, address, size, write ? ACCESS_WRITE : ACCESS_READ))
    return 1;
  for (u32 i = 0; i < size; i++) {
    u8 *p = find(w, address + i, 1, write ? PERM_WRITE : PERM_READ);
    if (write)
      *p = bytes[i];
    else
      bytes[i] = *p;
  }
  return 0;
}

/* ---------------------------------------------------------------- scratch and LDS */

/* Scratch is interleaved: dword d of lane i at (d * lanes + i) * 4. */
ALWAYS_INLINE u64 swizzle(const Wave *w, u32 lane, u32 offset) {
  return ((u64)(offset >> 2) * w->lanes + lane) * 4 + (offset & 3);
}

static int scratch_outside(Wave *w, u32 lane, u32 offset, u32 size, u32 access) {
  if (LIKELY(w->scratch_host && (u64)offset + size <= w->scratch_size / w->lanes))
    return 0;
  fault(w, lane, (u64)SCRATCH_APERTURE << 32 | offset, access);
  return 1;
}

ALWAYS_INLINE u8 *lds_at(Wave *w, u32 offset, u32 size) {
  return (u64)offset + size <= w->lds_size ? w->lds + offset : NULL;
}

/* Bytes of an LDS access that lie inside. */
ALWAYS_INLINE u32 lds_room(const Wave *w, u32 offset, u32 size) {
  u64 room = offset < w->lds_size ? w->lds_size - offset : 0;
  return room < size ? (u32)room : size;
}

/* Pointers for one lane's access, for atomics and scalar loads. NULL with fault_kind clear: outside LDS. */
static int misaligned(Wave *w, u32 lane, u64 address, u32 size, u32 access) {
  if (LIKELY(access != ACCESS_ATOMIC || !(address & (size - 1))))
    return 0;
  fault(w, lane, address, access);
  w->fault_kind = FAULT_MISALIGNED;
  w->fault_argument = size;
  return 1;
}

static u8 *resolve_global(Wave *w, u32 lane, u64 address, u32 size, u32 access) {
  if (misaligned(w, lane, address, size, access))
    return NULL;
  u8 *p = find(w, address, size, perm_needed(access));
  if (LIKELY(p != NULL))
    return p;
  if (access != ACCESS_ATOMIC && !check_bytes(w, lane, address, size, access)) {
    if (access == ACCESS_READ)
      crossing(w, lane, address, w->bounce, size, 0);
    else
      w->bounce_size = size, w->bounce_address = address;
    return w->bounce;
  }
  if (!w->fault_kind)
    fault(w, lane, address, access);
  return NULL;
}

/* Dwords of a lane's scratch are apart: a location of more than one goes by way of `bounce`, see settle. */
static u8 *resolve_scratch(Wave *w, u32 lane, u64 address, u32 size, u32 access) {
  u32 offset = (u32)address;
  if (misaligned(w, lane, address, size, access) || scratch_outside(w, lane, offset, size, access))
    return NULL;
  if ((offset & 3) + size <= 4)
    return w->scratch_host + swizzle(w, lane, offset);
  for (u32 i = 0; i < size; i++)
    w->bounce[i] = w->scratch_host[swizzle(w, lane, offset + i)];
  if (access != ACCESS_READ)
    w->bounce_size = size, w->bounce_lane = lane, w->bounce_offset = offset;
  return w->bounce;
}

/* After a change of a location that sg_resolve_* gave: put it where it belongs. */
static void settle(Wave *w) {
  if (w->bounce_size && w->bounce_address)
    crossing(w, w->bounce_lane, w->bounce_address, w->bounce, w->bounce_size, 1);
  else
    for (u32 i = 0; i < w->bounce_size; i++)
      w->scratch_host[swizzle(w, w->bounce_lane, w->bounce_offset + i)] = w->bounce[i];
  w->bounce_size = 0, w->bounce_address = 0;
}

static u8 *resolve_lds(Wave *w, u32 lane, u64 address, u32 size, u32 access) {
  return misaligned(w, lane, address, size, access) ? NULL : lds_at(w, (u32)address, size);
}

static u8 *resolve_flat(Wave *w, u32 lane, u64 address, u32 size, u32 access) {
  u32 high = (u32)(address >> 32);
  if (UNLIKELY(high == LDS_APERTURE))
    return resolve_lds(w, lane, address, size, access);
  if (UNLIKELY(high == SCRATCH_APERTURE))
    return resolve_scratch(w, lane, address, size, access);
  return resolve_global(w, lane, address, size, access);
}

/* ---------------------------------------------------------------- lane-major to register-major */

typedef u32 v4 __attribute__((vector_size(16)));
typedef u32 v4u __attribute__((vector_size(16), aligned(4)));

ALWAYS_INLINE void transpose4(v4 *a, v4 *b, v4 *c, v4 *d) {
  v4 t0 = __builtin_shuffle(*a, *b, (v4){0, 4, 1, 5}), t1 = __builtin_shuffle(*c, *d, (v4){0, 4, 1, 5});
  v4 t2 = __builtin_shuffle(*a, *b, (v4){2, 6, 3, 7}), t3 = __builtin_shuffle(*c, *d, (v4){2, 6, 3, 7});
  *a = __builtin_shuffle(t0, t1, (v4){0, 1, 4, 5}), *b = __builtin_shuffle(t0, t1, (v4){2, 3, 6, 7});
  *c = __builtin_shuffle(t2, t3, (v4){0, 1, 4, 5}), *d = __builtin_shuffle(t2, t3, (v4){2, 3, 6, 7});
}

ALWAYS_INLINE v4 get4(const void *p) { return *(const v4u *)p; }
ALWAYS_INLINE void put4(void *p, v4 v) { *(v4u *)p = v; }

ALWAYS_INLINE void spread(u32 *data, const u8 *from, u32 lanes, u32 size) {
  if (size < 4) {
    for (u32 i = 0; i < lanes; i++)
      data[i] = size == 1 ? from[i] : ((const u16 *)(const void *)from)[i];
  } else if (size == 4) {
    for (u32 i = 0; i < lanes; i += 4)
      put4(data + i, get4(from + i * 4));
  } else if (size == 8) {
    for (u32 i = 0; i < lanes; i += 4) {
      v4 a = get4(from + i * 8), b = get4(from + i * 8 + 16);
      put4(data + i, __builtin_shuffle(a, b, (v4){0, 2, 4, 6}));
      put4(data + lanes + i, __builtin_shuffle(a, b, (v4){1, 3, 5, 7}));
    }
  } else if (size == 16) {
    for (u32 i = 0; i < lanes; i += 4) {
      const u8 *p = from + i * 16;
      v4 a = get4(p), b = get4(p + 16), c = get4(p + 32), d = get4(p + 48);
      transpose4(&a, &b, &c, &d);
      put4(data + i, a), put4(data + lanes + i, b);
      put4(data + 2 * lanes + i, c), put4(data + 3 * lanes + i, d);
    }
  } else {
    for (u32 i = 0; i < lanes; i++)
      for (u32 k = 0; k < size / 4; k++)
        memcpy(&data[k * lanes + i], from + i * size + k * 4, 4);
  }
}

ALWAYS_INLINE void gather_up(u8 *to, const u32 *data, u32 lanes, u32 size) {
  if (size < 4) {
    for (u32 i = 0; i < lanes; i++)
      memcpy(to + i * size, &data[i], size);
  } else if (size == 4) {
    for (u32 i = 0; i < lanes; i += 4)
      put4(to + i * 4, get4(data + i));
  } else if (size == 8) {
    for (u32 i = 0; i < lanes; i += 4) {
      v4 a = get4(data + i), b = get4(data + lanes + i);
      put4(to + i * 8, __builtin_shuffle(a, b, (v4){0, 4, 1, 5}));
      put4(to + i * 8 + 16, __builtin_shuffle(a, b, (v4){2, 6, 3, 7}));
    }
  } else if (size == 16) {
    for (u32 i = 0; i < lanes; i += 4) {
      u8 *p = to + i * 16;
      v4 a = get4(data + i), b = get4(data + lanes + i);
      v4 c = get4(data + 2 * lanes + i), d = get4(data + 3 * lanes + i);
      transpose4(&a, &b, &c, &d);
      put4(p, a), put4(p + 16, b), put4(p + 32, c), put4(p + 48, d);
    }
  } else {
    for (u32 i = 0; i < lanes; i++)
      for (u32 k = 0; k < size / 4; k++)
        memcpy(to + i * size + k * 4, &data[k * lanes + i], 4);
  }
}

/* ---------------------------------------------------------------- one lane */

/* One move for each: other threads must not see half of a lane's 64 bits. */
typedef volatile u64 whole8 __attribute__((aligned(1)));

ALWAYS_INLINE void lane_in(u32 *data, const u8 *p, u32 lanes, u32 lane, u32 size) {
  if (size == 8) {
    u64 v = *(const whole8 *)(const void *)p;
    data[lane] = (u32)v, data[lanes + lane] = (u32)(v >> 32);
    return;
  }
  if (size < 4) {
    u32 v = 0;
    memcpy(&v, p, size);
    data[lane] = v;
    return;
  }
  u32 v[4];
  memcpy(v, p, size);
  for (u32 k = 0; k < size / 4; k++)
    data[k * lanes + lane] = v[k];
}

ALWAYS_INLINE void lane_out(u8 *p, const u32 *data, u32 lanes, u32 lane, u32 size) {
  if (size == 8) {
    *(whole8 *)(void *)p = data[lane] | (u64)data[lanes + lane] << 32;
    return;
  }
  if (size < 4) {
    memcpy(p, &data[lane], size);
    return;
  }
  u32 v[4];
  for (u32 k = 0; k < size / 4; k++)
    v[k] = data[k * lanes + lane];
  memcpy(p, v, size);
}

/* Scratch lanes are interleaved by dword: an access is split where it crosses one. */
static int scratch_lane(Wave *w, u32 *data, u32 lane, u32 offset, u32 size, int write) {
  u8 bytes[16];
  if (scratch_outside(w, lane, offset, size, write ? ACCESS_WRITE : ACCESS_READ))
    return 1;
  if (write)
    lane_out(bytes, data, w->lanes, lane, size);
  for (u32 at = 0; at < size;) {
    u32 n = 4 - ((offset + at) & 3);
    if (n > size - at)
      n = size - at;
    u8 *p = w->scratch_host + swizzle(w, lane, offset + at);
    memcpy(write ? p : bytes + at, write ? bytes + at : p, n);
    at += n;
  }
  if (!write)
    lane_in(data, bytes, w->lanes, lane, size);
  return 0;
}

/* What does not lie in one piece: bytes outside LDS read 0 and are not written; other memory may cross
 * from one region into the next. */
static int odd_lane(Wave *w, int lds, u32 *data, u32 lane, u64 address, u32 size, int write) {
  u8 bytes[16] = {0};
  if (write)
    lane_out(bytes, data, w->lanes, lane, size);
  if (lds) {
    u32 n = lds_room(w, (u32)address, size);
    u8 *p = w->lds + (u32)address;
    if (n)
      memcpy(write ? p : bytes, write ? bytes : p, n);
  } else if (crossing(w, lane, address, bytes, size, write)) {
    return 1;
  }
  if (!write)
    lane_in(data, bytes, w->lanes, lane, size);
  return 0;
}

/* Buffers: dwords (or the smaller whole) outside [low, high) read 0 and are not written. */
int sg_buffer_bytes(Wave *w, const u64 *range, u8 *bytes, u32 lane, u64 address, u32 size, int write) {
  u64 low = range[lane], high = range[w->lanes + lane];
  for (u32 at = 0; at < size; at += 4) {
    u32 n = size - at < 4 ? size - at : 4;
    u64 here = address + at;
    if (here < low || here > high || high - here < n)
      continue;
    u8 *p = find(w, here, n, write ? PERM_WRITE : PERM_READ);
    if (p)
      memcpy(write ? p : bytes + at, write ? bytes + at : p, n);
    else if (crossing(w, lane, here, bytes + at, n, write))
      return 1;
  }
  return 0;
}

static int buffer_lane(Wave *w, const u64 *range, u32 *data, u32 lane, u64 address, u32 size, int write) {
  u8 bytes[16] = {0};
  u64 high = range[w->lanes + lane];
  int in_range = range[lane] <= address && address <= high && high - address >= size;
  u8 *p = in_range ? find(w, address, size, write ? PERM_WRITE : PERM_READ) : NULL;
  if (LIKELY(p != NULL)) {
    if (write)
      lane_out(p, data, w->lanes, lane, size);
    else
      lane_in(data, p, w->lanes, lane, size);
    return 0;
  }
  if (write)
    lane_out(bytes, data, w->lanes, lane, size);
  if (sg_buffer_bytes(w, range, bytes, lane, address, size, write))
    return 1;
  if (!write)
    lane_in(data, bytes, w->lanes, lane, size);
  return 0;
}

/* ---------------------------------------------------------------- whole waves */

ALWAYS_INLINE u64 all_lanes(u32 lanes) { return lanes == 64 ? ~0ull : (1ull << lanes) - 1; }

/* Lane offsets lo[i] all equal lo[0] + i * size. */
ALWAYS_INLINE int adjacent32(const u32 *lo, u32 lanes, u32 size) {
  u32 first = lo[0], differ = 0;
  for (u32 i = 0; i < lanes; i++)
    differ |= lo[i] ^ (first + i * size);
  return !differ && first <= first + (lanes - 1) * size;
}

ALWAYS_INLINE int same32(const u32 *v, u32 lanes) {
  u32 differ = 0;
  for (u32 i = 0; i < lanes; i++)
    differ |= v[i] ^ v[0];
  return !differ;
}

ALWAYS_INLINE u64 lane_address(int kind, u64 base, const u32 *lo, const u32 *hi, u32 i) {
  switch (kind) {
    case KIND_ADDR64:
    case KIND_FLAT:
      return base + ((u64)hi[i] << 32 | lo[i]);
    case KIND_ARRAY:
    case KIND_BUFFER:
      return base + ((const u64 *)(const void *)lo)[i];
    default:
      return base + (lo ? lo[i] : 0);
  }
}

ALWAYS_INLINE int one_lane(Wave *w, int kind, u32 *data, u32 lanes, u32 lane, u64 address, u32 size, int write) {
  int lds = kind == KIND_LDS;
  if (kind == KIND_FLAT) {
    u32 high = (u32)(address >> 32);
    if (UNLIKELY(high == SCRATCH_APERTURE))
      return scratch_lane(w, data, lane, (u32)address, size, write);
    lds = high == LDS_APERTURE;
  }
  u8 *p = lds ? lds_at(w, (u32)address, size) : find(w, address, size, write ? PERM_WRITE : PERM_READ);
  if (UNLIKELY(!p))
    return odd_lane(w, lds, data, lane, address, size, write);
  if (write)
    lane_out(p, data, lanes, lane, size);
  else
    lane_in(data, p, lanes, lane, size);
  return 0;
}

/* Host address of all lanes at once when they are adjacent, else NULL. */
ALWAYS_INLINE u8 *run_of(Wave *w, int kind, u64 base, const u32 *lo, const u32 *hi, u32 lanes, u32 size, int write) {
  if (kind == KIND_ARRAY || kind == KIND_BUFFER || kind == KIND_SCRATCH || !adjacent32(lo, lanes, size))
    return NULL;
  if ((kind == KIND_ADDR64 || kind == KIND_FLAT) && !same32(hi, lanes))
    return NULL;
  u64 address = lane_address(kind, base, lo, hi, 0);
  if (kind == KIND_LDS)
    return (u32)address + (u64)lanes * size <= w->lds_size ? w->lds + (u32)address : NULL;
  return find(w, address, (u64)lanes * size, write ? PERM_WRITE : PERM_READ);
}

/* Data of four lanes at a time from, or to, anywhere. A step touches only its own lanes of the
 * registers, so results may overwrite the address registers. */
ALWAYS_INLINE void four_lanes(u8 *const p[4], u32 *data, u32 lanes, u32 size, int write) {
  if (size == 16) {
    v4 a, b, c, d;
    if (write) {
      a = get4(data), b = get4(data + lanes), c = get4(data + 2 * lanes), d = get4(data + 3 * lanes);
      transpose4(&a, &b, &c, &d);
      put4(p[0], a), put4(p[1], b), put4(p[2], c), put4(p[3], d);
    } else {
      a = get4(p[0]), b = get4(p[1]), c = get4(p[2]), d = get4(p[3]);
      transpose4(&a, &b, &c, &d);
      put4(data, a), put4(data + lanes, b), put4(data + 2 * lanes, c), put4(data + 3 * lanes, d);
    }
    return;
  }
  for (u32 j = 0; j < 4; j++) {
    if (write)
      lane_out(p[j], data, lanes, j, size);
    else
      lane_in(data, p[j], lanes, j, size);
  }
}

/* All lanes active and inside one region: no more checks. Returns 0 when that is not so. */
ALWAYS_INLINE int within32(Wave *w, int kind, u64 base, const u32 *lo, u32 *data, u32 lanes, u32 size, int write) {
  u8 *host;
  u64 room;
  if (kind == KIND_LDS) {
    host = w->lds + (u32)base;
    room = w->lds_size - (u32)base;
    if ((u32)base > w->lds_size)
      return 0;
  } else {
    const Region *r = region_of(w, base + lo[0], size, write ? PERM_WRITE : PERM_READ);
    if (!r || base - r->va >= r->size)
      return 0;
    host = (u8 *)(r->host + (base - r->va));
    room = r->size - (base - r->va);
  }
  if (room < size)
    return 0;
  u32 limit = room - size > 0xFFFFFFFFu ? 0xFFFFFFFFu : (u32)(room - size), beyond = 0;
  for (u32 i = 0; i < lanes; i++)
    beyond |= lo[i] > limit;
  if (beyond)
    return 0;
  for (u32 i = 0; i < lanes; i += 4) {
    u8 *const p[4] = {host + lo[i], host + lo[i + 1], host + lo[i + 2], host + lo[i + 3]};
    four_lanes(p, data + i, lanes, size, write);
  }
  return 1;
}

ALWAYS_INLINE int within64(Wave *w, int kind, u64 base, const u32 *lo, const u32 *hi, u32 *data, u32 lanes, u32 size,
                           int write) {
  u64 at[64], beyond = 0;
  const Region *r = region_of(w, lane_address(kind, base, lo, hi, 0), size, write ? PERM_WRITE : PERM_READ);
  if (!r)
    return 0;
  u64 room = r->size - size;
  base -= r->va;
  for (u32 i = 0; i < lanes; i++) {
    at[i] = lane_address(kind, base, lo, hi, i);
    beyond |= at[i] > room;
  }
  if (beyond)
    return 0;
  u8 *host = (u8 *)r->host;
  for (u32 i = 0; i < lanes; i += 4) {
    u8 *const p[4] = {host + at[i], host + at[i + 1], host + at[i + 2], host + at[i + 3]};
    four_lanes(p, data + i, lanes, size, write);
  }
  return 1;
}

ALWAYS_INLINE int within(Wave *w, int kind, u64 base, const u32 *lo, const u32 *hi, u32 *data, u32 lanes, u32 size,
                         int write) {
  if (kind == KIND_SCRATCH || kind == KIND_BUFFER)
    return 0;
  if (kind == KIND_LDS || kind == KIND_BASE32)
    return within32(w, kind, base, lo, data, lanes, size, write);
  return within64(w, kind, base, lo, hi, data, lanes, size, write);
}

ALWAYS_INLINE int access_wave(Wave *w, int kind, u64 exec, u64 base, const u32 *lo, const u32 *hi, u32 *data,
                              u32 lanes, u32 size, int write) {
  if (LIKELY(exec == all_lanes(lanes))) {
    u8 *run = run_of(w, kind, base, lo, hi, lanes, size, write);
    if (LIKELY(run != NULL)) {
      if (write)
        gather_up(run, data, lanes, size);
      else
        spread(data, run, lanes, size);
      return 0;
    }
    if (within(w, kind, base, lo, hi, data, lanes, size, write))
      return 0;
  }
  u64 address[64]; /* before any result is written: results may overwrite the address registers */
  for (u32 i = 0; i < lanes; i++)
    address[i] = lane_address(kind, base, lo, hi, i);
  for (u64 left = exec; left; left &= left - 1) {
    u32 i = (u32)__builtin_ctzll(left);
    int bad = kind == KIND_SCRATCH  ? scratch_lane(w, data, i, (u32)address[i], size, write)
              : kind == KIND_BUFFER ? buffer_lane(w, (const u64 *)(const void *)hi, data, i, address[i], size, write)
                                    : one_lane(w, kind, data, lanes, i, address[i], size, write);
    if (UNLIKELY(bad))
      return 1;
  }
  return 0;
}

/* Compiled for several processors; the dynamic loader picks. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CLONES
#endif

#define DEFINE(kind, name, size, write)                                                                     \
  CLONES static int name##_##size(Wave *w, u64 exec, u64 base, const u32 *lo, const u32 *hi, u32 *data) {           \
    return w->lanes == 32 ? access_wave(w, kind, exec, base, lo, hi, data, 32, size, write)                 \
                          : access_wave(w, kind, exec, base, lo, hi, data, 64, size, write);                \
  }
#define SIZES(kind, name, write)                                                                             \
  DEFINE(kind, name, 1, write) DEFINE(kind, name, 2, write) DEFINE(kind, name, 4, write)                     \
  DEFINE(kind, name, 8, write) DEFINE(kind, name, 12, write) DEFINE(kind, name, 16, write)
#define BOTH(kind, name) SIZES(kind, name##_load, 0) SIZES(kind, name##_store, 1)
#define NAMES(name) (void *)name##_1, (void *)name##_2, (void *)name##_4, (void *)name##_8, (void *)name##_12, (void *)name##_16

BOTH(KIND_BASE32, base32)
BOTH(KIND_ADDR64, addr64)
BOTH(KIND_FLAT, flat)
BOTH(KIND_ARRAY, array)
BOTH(KIND_SCRATCH, scratch)
BOTH(KIND_LDS, lds)
BOTH(KIND_BUFFER, buffer)

/* Two stores to LDS, lane after lane: later lanes win where locations meet. base: low half of the
 * first address, high half of the second. */
ALWAYS_INLINE int store_pair(Wave *w, u64 exec, u64 base, const u32 *lo, u32 *first, u32 *second, u32 size) {
  u32 lanes = w->lanes, one = (u32)base, two = (u32)(base >> 32);
  for (u64 left = exec; left; left &= left - 1) {
    u32 i = (u32)__builtin_ctzll(left);
    one_lane(w, KIND_LDS, first, lanes, i, one + lo[i], size, 1);
    one_lane(w, KIND_LDS, second, lanes, i, two + lo[i], size, 1);
  }
  return 0;
}

static int store_pair_4(Wave *w, u64 exec, u64 base, const u32 *lo, u32 *first, u32 *second) {
  return store_pair(w, exec, base, lo, first, second, 4);
}

static int store_pair_8(Wave *w, u64 exec, u64 base, const u32 *lo, u32 *first, u32 *second) {
  return store_pair(w, exec, base, lo, first, second, 8);
}

const void *const sg_helpers[] = {
    NAMES(base32_load),  NAMES(base32_store),  NAMES(addr64_load), NAMES(addr64_store),
    NAMES(flat_load),    NAMES(flat_store),    NAMES(array_load),  NAMES(array_store),
    NAMES(scratch_load), NAMES(scratch_store), NAMES(lds_load),    NAMES(lds_store),
    NAMES(buffer_load),  NAMES(buffer_store),
    /* 84 */ (void *)resolve_global, (void *)resolve_flat, (void *)resolve_scratch, (void *)resolve_lds,
    /* 88 */ (void *)sg_hwreg, (void *)sg_set_hwreg, (void *)sg_wmma_nan, (void *)settle,
    /* 92 */ (void *)store_pair_4, (void *)store_pair_8, (void *)sg_message,
    /* 95 */ (void *)sg_barrier, (void *)sg_barrier_state, (void *)sg_typed_load, (void *)sg_typed_store,
    /* 99 */ (void *)sg_transpose, (void *)sg_mfma,
};
