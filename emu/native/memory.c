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

enum { KIND_BASE32, KIND_ADDR64, KIND_FLAT, KIND_ARRAY, KIND_SCRATCH, KIND_LDS };

/* ---------------------------------------------------------------- regions */

static const Region *search(const Space *space, u64 address) {
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

ALWAYS_INLINE int inside(const Region *r, u64 address, u64 size) {
  u64 at = address - r->va;
  return at < r->size && size <= r->size - at;
}

/* Host address of [address, address + size) inside one region with the permission, or NULL. */
static u8 *find(Wave *w, u64 address, u64 size, u32 perm) {
  if (!inside(&w->last, address, size)) {
    const Region *r = search(w->space, address);
    if (!r || !inside(r, address, size))
      return NULL;
    w->last = *r;
  }
  if (!(w->last.perms & perm))
    return NULL;
  return (u8 *)(w->last.host + (address - w->last.va));
}

static void *fault(Wave *w, u32 lane, u64 address, u32 access) {
  w->fault_kind = FAULT_PAGE;
  w->fault_lane = lane;
  w->fault_address = address;
  w->fault_access = access;
  return NULL;
}

ALWAYS_INLINE u32 perm_of(u32 access) {
  return access == ACCESS_READ ? PERM_READ : access == ACCESS_WRITE ? PERM_WRITE : PERM_READ | PERM_WRITE;
}

static u8 *global(Wave *w, u32 lane, u64 address, u32 size, u32 access) {
  u32 perm = perm_of(access);
  u8 *p = find(w, address, size, perm & PERM_WRITE ? PERM_WRITE : PERM_READ);
  if (UNLIKELY(!p))
    return fault(w, lane, address, access);
  return p;
}

/* ---------------------------------------------------------------- scratch and LDS */

/* Scratch is interleaved: dword d of lane i at (d * lanes + i) * 4. */
ALWAYS_INLINE u64 swizzle(const Wave *w, u32 lane, u32 offset) {
  return ((u64)(offset >> 2) * w->lanes + lane) * 4 + (offset & 3);
}

static u8 *scratch_at(Wave *w, u32 lane, u32 offset, u32 size, u32 access) {
  u64 at = swizzle(w, lane, offset);
  if (UNLIKELY(!w->scratch_host || at + size > w->scratch_size))
    return fault(w, lane, w->scratch_va + at, access);
  return w->scratch_host + at;
}

ALWAYS_INLINE u8 *lds_at(Wave *w, u32 offset, u32 size) {
  return (u64)offset + size <= w->lds_size ? w->lds + offset : NULL;
}

/* Pointer for one lane's access of the instruction's own space, for atomics and odd cases.
 * NULL with fault_kind clear: out of range of LDS, reads 0 and writes are dropped. */
u8 *sg_resolve(Wave *w, u32 lane, u64 address, u32 size, u32 access) {
  return global(w, lane, address, size, access);
}

static u8 *resolve_flat(Wave *w, u32 lane, u64 address, u32 size, u32 access) {
  u32 high = (u32)(address >> 32);
  if (UNLIKELY(high == LDS_APERTURE))
    return lds_at(w, (u32)address, size);
  if (UNLIKELY(high == SCRATCH_APERTURE))
    return scratch_at(w, lane, (u32)address, size, access);
  return global(w, lane, address, size, access);
}

static u8 *resolve_lds(Wave *w, u32 lane, u64 address, u32 size, u32 access) {
  (void)lane, (void)access;
  return lds_at(w, (u32)address, size);
}

static u8 *resolve_scratch(Wave *w, u32 lane, u64 address, u32 size, u32 access) {
  return scratch_at(w, lane, (u32)address, size, access);
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

ALWAYS_INLINE void lane_in(u32 *data, const u8 *p, u32 lanes, u32 lane, u32 size) {
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
  if (size < 4) {
    memcpy(p, &data[lane], size);
    return;
  }
  u32 v[4];
  for (u32 k = 0; k < size / 4; k++)
    v[k] = data[k * lanes + lane];
  memcpy(p, v, size);
}

ALWAYS_INLINE void lane_zero(u32 *data, u32 lanes, u32 lane, u32 size) {
  for (u32 k = 0; k < (size + 3) / 4; k++)
    data[k * lanes + lane] = 0;
}

/* Scratch lanes are interleaved by dword: an access is split where it crosses one. */
static int scratch_lane(Wave *w, u32 *data, u32 lane, u32 offset, u32 size, int write) {
  u8 bytes[16];
  u32 access = write ? ACCESS_WRITE : ACCESS_READ;
  if (write)
    lane_out(bytes, data, w->lanes, lane, size);
  for (u32 at = 0; at < size;) {
    u32 n = 4 - ((offset + at) & 3);
    if (n > size - at)
      n = size - at;
    u8 *p = scratch_at(w, lane, offset + at, n, access);
    if (!p)
      return 1;
    memcpy(write ? p : bytes + at, write ? bytes + at : p, n);
    at += n;
  }
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
      return base + ((const u64 *)(const void *)lo)[i];
    default:
      return base + (lo ? lo[i] : 0);
  }
}

ALWAYS_INLINE int one_lane(Wave *w, int kind, u32 *data, u32 lanes, u32 lane, u64 address, u32 size, int write) {
  u32 access = write ? ACCESS_WRITE : ACCESS_READ;
  u8 *p;
  if (kind == KIND_LDS) {
    p = lds_at(w, (u32)address, size);
  } else if (kind == KIND_FLAT && UNLIKELY((u32)(address >> 32) - LDS_APERTURE <= SCRATCH_APERTURE - LDS_APERTURE)) {
    u32 high = (u32)(address >> 32);
    if (high == SCRATCH_APERTURE)
      return scratch_lane(w, data, lane, (u32)address, size, write);
    p = high == LDS_APERTURE ? lds_at(w, (u32)address, size) : global(w, lane, address, size, access);
    if (high != LDS_APERTURE && !p)
      return 1;
  } else {
    p = global(w, lane, address, size, access);
    if (UNLIKELY(!p))
      return 1;
  }
  if (write) {
    if (p)
      lane_out(p, data, lanes, lane, size);
  } else if (p) {
    lane_in(data, p, lanes, lane, size);
  } else {
    lane_zero(data, lanes, lane, size);
  }
  return 0;
}

/* Host address of all lanes at once when they are adjacent, else NULL. */
ALWAYS_INLINE u8 *run_of(Wave *w, int kind, u64 base, const u32 *lo, const u32 *hi, u32 lanes, u32 size, int write) {
  if (kind == KIND_ARRAY || kind == KIND_SCRATCH || !adjacent32(lo, lanes, size))
    return NULL;
  if ((kind == KIND_ADDR64 || kind == KIND_FLAT) && !same32(hi, lanes))
    return NULL;
  u64 address = lane_address(kind, base, lo, hi, 0);
  if (kind == KIND_LDS)
    return (u32)address + (u64)lanes * size <= w->lds_size ? w->lds + (u32)address : NULL;
  return find(w, address, (u64)lanes * size, write ? PERM_WRITE : PERM_READ);
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
  }
  u64 address[64]; /* before any result is written: results may overwrite the address registers */
  for (u32 i = 0; i < lanes; i++)
    address[i] = lane_address(kind, base, lo, hi, i);
  for (u64 left = exec; left; left &= left - 1) {
    u32 i = (u32)__builtin_ctzll(left);
    int bad = kind == KIND_SCRATCH ? scratch_lane(w, data, i, (u32)address[i], size, write)
                                   : one_lane(w, kind, data, lanes, i, address[i], size, write);
    if (UNLIKELY(bad))
      return 1;
  }
  return 0;
}

#define DEFINE(kind, name, size, write)                                                                     \
  static int name##_##size(Wave *w, u64 exec, u64 base, const u32 *lo, const u32 *hi, u32 *data) {           \
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

u32 sg_hwreg(Wave *w, u32 id);
void sg_set_hwreg(Wave *w, u32 id, u32 value);

const void *const sg_helpers[] = {
    NAMES(base32_load),  NAMES(base32_store),  NAMES(addr64_load), NAMES(addr64_store),
    NAMES(flat_load),    NAMES(flat_store),    NAMES(array_load),  NAMES(array_store),
    NAMES(scratch_load), NAMES(scratch_store), NAMES(lds_load),    NAMES(lds_store),
    /* 72 */ (void *)sg_resolve, (void *)resolve_flat, (void *)resolve_scratch, (void *)resolve_lds,
    /* 76 */ (void *)sg_hwreg, (void *)sg_set_hwreg,
};
