/* Dispatch: starts waves, runs the waves of resident workgroups in turn, counts, reports.
 *
 * A worker runs workgroups one thread at a time; several workers share one `Shared`. sg_run returns to
 * the caller for whatever needs it: code not decoded yet, a float mode without a program, a fault, the
 * end of a slice (so that the caller can look whether the launch was cancelled).
 */
#include "core.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { RUN_DONE = 0, RUN_SLICE = 1, RUN_CODE = 2, RUN_MODE = 3, RUN_FAULT = 4, RUN_MEMORY = 5 };
enum { MAX_VARIANTS = 32 };

typedef struct {
  u32 mode; /* float bits of MODE it was compiled for */
  u32 pad;
  const Record *records;
} Variant;

/* Where code can be entered: pc from the program's entry, and its record. */
typedef struct {
  i64 pc;
  u64 record;
} Place;

/* A decoded program. */
typedef struct {
  const Place *places; /* sorted by pc */
  u64 n_places;
  u64 n_records;
  const u32 *pool; /* constants, copied into each wave */
  u64 n_pool;
  u64 entry; /* record number */
  u64 n_variants;
  Variant variants[MAX_VARIANTS];
} Program;

typedef struct {
  _Atomic u64 next_group;
  u64 n_groups;
  _Atomic u32 stop;
} Shared;

typedef struct {
  u64 code;
  u32 grid[3], workgroup[3], groups[3], start[3];
  u32 lanes, mode, n_user, id_bits, info_bit, item_ids, ids_in_ttmp;
  u32 user[32];
  u32 n_vgprs;
  u64 lds_bytes;
  u64 scratch_va, scratch_wave_bytes;
  const HwReg *hwregs;
  u64 clock; /* when it starts */
  u32 xccs, units, ses, sas, simds, slots, splits; /* shape of the device; splits: CU mode */
  u32 dispatch_id, info_has_wave, flat_scratch;
} LaunchInfo;

typedef struct Slot {
  u8 *memory; /* waves, then LDS */
  u32 n_waves, n_ended, in_use, index;
} Slot;

typedef struct {
  const Program *program;
  const Space *space;
  Shared *shared;
  LaunchInfo launch;
  u64 wave_bytes, waves_per_group, max_slots;
  i64 quantum, slice, budget; /* budget < 0: none */
  u64 random;
  u64 mode_mask;
  /* results */
  u64 instructions, n_waves, n_workgroups, latest; /* when the last wave ended */
  Wave *subject; /* the wave RUN_CODE, RUN_MODE, RUN_FAULT is about */
  /* private */
  Slot *slots;
  u64 n_slots;
} Worker;

/* ---------------------------------------------------------------- slots */

static u64 slot_bytes(const Worker *k) {
  u64 bytes = k->wave_bytes * k->waves_per_group + k->launch.lds_bytes;
  return (bytes + 4095) & ~4095ull;
}

static Wave *wave_of(const Worker *k, const Slot *slot, u64 i) { return (Wave *)(slot->memory + i * k->wave_bytes); }

SG_API void sg_release(Worker *k) {
  for (u64 i = 0; i < k->n_slots; i++)
    munmap(k->slots[i].memory, slot_bytes(k));
  free(k->slots);
  k->slots = NULL;
  k->n_slots = 0;
}

/* The region table changed: waves look regions up again. */
SG_API void sg_forget(Worker *k) {
  for (u64 i = 0; i < k->n_slots; i++)
    for (u64 j = 0; j < k->waves_per_group; j++)
      memset(wave_of(k, &k->slots[i], j)->recent, 0, sizeof(Region) * N_RECENT);
}

/* The program has more constants than when its waves started. */
SG_API void sg_refresh(Worker *k) {
  const Program *p = k->program;
  for (u64 i = 0; i < k->n_slots; i++)
    for (u64 j = 0; k->slots[i].in_use && j < k->slots[i].n_waves; j++)
      memcpy((u8 *)wave_of(k, &k->slots[i], j) + VGPR_BASE + (u64)N_VGPR_SLOTS * k->launch.lanes * 4, p->pool,
             p->n_pool * 4);
}

static Slot *new_slot(Worker *k) {
  for (u64 i = 0; i < k->n_slots; i++)
    if (!k->slots[i].in_use)
      return &k->slots[i];
  if (k->n_slots == k->max_slots)
    return NULL;
  if (!k->slots)
    k->slots = calloc(k->max_slots, sizeof(Slot));
  if (!k->slots)
    return NULL;
  void *p = mmap(NULL, slot_bytes(k), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED)
    return NULL;
  Slot *slot = &k->slots[k->n_slots++];
  slot->memory = p;
  return slot;
}

/* ---------------------------------------------------------------- wave start */

static const Record *records_of(const Worker *k, u32 mode) {
  const Program *p = k->program;
  for (u64 i = 0; i < p->n_variants; i++)
    if (p->variants[i].mode == (mode & k->mode_mask))
      return p->variants[i].records;
  return NULL;
}

static void start_sgprs(const Worker *k, Wave *w, u32 n_waves) {
  const LaunchInfo *l = &k->launch;
  u32 at = l->n_user;
  memcpy(w->s, l->user, at * sizeof(u32));
  if (l->flat_scratch && w->scratch_size)
    memcpy(&w->s[l->flat_scratch], &w->scratch_va, sizeof w->scratch_va);
  for (u32 i = 0; i < 3 && !l->ids_in_ttmp; i++)
    if (l->id_bits >> i & 1)
      w->s[at++] = w->group[i];
  if (l->info_bit)
    w->s[at] = n_waves | (l->info_has_wave ? (u32)(w->wave_in_group == 0) << 31 | w->wave_in_group << 20 : 0);
  if (!l->ids_in_ttmp)
    return;
  u32 has_yz = (l->id_bits & 6) != 0;
  w->s[108 + 9] = w->group[0];
  w->s[108 + 8] = (l->dispatch_id & 0x1FFFFFF) | w->wave_in_group << 25 | has_yz << 30;
  w->s[108 + 7] = has_yz ? (w->group[1] & 0xFFFF) | w->group[2] << 16 : 0;
}

/* As place() of emu/place.py. */
static void start_place(const Worker *k, Wave *w) {
  const LaunchInfo *l = &k->launch;
  u32 wave = w->wave_in_group, on_die = w->group_index / l->xccs;
  u32 unit = on_die % l->units, turn = on_die / l->units, arrays = l->ses * l->sas, array = unit % arrays;
  u32 simds = l->splits ? l->simds / 2 : l->simds;
  u32 simd = l->splits ? turn % 2 | wave % simds << 1 : wave % simds;
  u32 rounds = ((u32)k->waves_per_group + simds - 1) / simds;
  const u32 place[] = {w->group_index % l->xccs, array % l->ses, array / l->ses, unit / arrays, simd,
                       (turn * rounds + wave / simds) % l->slots, turn};
  memcpy(w->place, place, sizeof place);
}

static void start_ids(const Worker *k, Wave *w, const u32 size[3], u32 base, u32 active) {
  u32 *v0 = (u32 *)((u8 *)w + VGPR_BASE);
  if (size[1] == 1 && size[2] == 1) {
    for (u32 i = 0; i < active; i++)
      v0[i] = base + i;
    return;
  }
  u32 x = base % size[0], y = base / size[0] % size[1], z = base / (size[0] * size[1]);
  for (u32 i = 0; i < active; i++) {
    v0[i] = x | (k->launch.item_ids >= 1 ? y << 10 : 0) | (k->launch.item_ids >= 2 ? z << 20 : 0);
    if (++x == size[0]) {
      x = 0;
      if (++y == size[1])
        y = 0, z++;
    }
  }
}

static void blank_wave(const Worker *k, Wave *w, Slot *slot, u32 group, u32 number) {
  const LaunchInfo *l = &k->launch;
  const Program *p = k->program;
  memset(w, 0, offsetof(Wave, recent));
  memset((u8 *)w + VGPR_BASE, 0, (u64)l->n_vgprs * l->lanes * 4);
  memcpy((u8 *)w + VGPR_BASE + (u64)N_VGPR_SLOTS * l->lanes * 4, p->pool, p->n_pool * 4);
  w->lanes = l->lanes;
  w->mode = l->mode;
  w->code = l->code;
  w->helpers = sg_helpers;
  w->space = k->space;
  w->lds = slot->memory + k->wave_bytes * k->waves_per_group;
  w->lds_size = l->lds_bytes;
  w->group_index = group;
  w->wave_in_group = number;
  w->waves_in_group = slot->n_waves;
  w->wave_bytes = (u32)k->wave_bytes;
  memset(&w->barriers, 0, sizeof w->barriers);
  w->hwregs = l->hwregs;
  w->dispatch_id = l->dispatch_id;
  w->late = l->clock + group;
  memset(w->passes, 0, sizeof w->passes);
  memset(w->stored, 0, sizeof w->stored);
  w->user_prio = w->no_vgprs = 0;
  start_place(k, w);
  w->named = 0, w->complete = w->waits_for = 0;
  w->scratch_size = l->scratch_wave_bytes;
  w->scratch_va = l->scratch_va + (group * k->waves_per_group + number) * l->scratch_wave_bytes;
  if (w->scratch_size)
    w->scratch_host = sg_scratch(w);
}

static int enter(const Worker *k, Wave *w) {
  const Record *records = records_of(k, w->mode);
  w->next = records ? records + k->program->entry : NULL;
  w->from = records ? w->next->ordinal : 0;
  return records != NULL;
}

static Slot *start_group(Worker *k, u32 group) {
  const LaunchInfo *l = &k->launch;
  Slot *slot = new_slot(k);
  if (!slot)
    return NULL;
  u32 id[3] = {group % l->groups[0], group / l->groups[0] % l->groups[1], group / (l->groups[0] * l->groups[1])};
  u32 size[3], items = 1;
  for (u32 i = 0; i < 3; i++) {
    u32 rest = l->grid[i] - id[i] * l->workgroup[i];
    size[i] = rest < l->workgroup[i] ? rest : l->workgroup[i];
    items *= size[i];
    id[i] += l->start[i];
  }
  slot->n_waves = (items + l->lanes - 1) / l->lanes;
  slot->n_ended = 0, slot->in_use = 1, slot->index = group;
  memset(slot->memory + k->wave_bytes * k->waves_per_group, 0, l->lds_bytes);
  for (u32 i = 0; i < slot->n_waves; i++) {
    Wave *w = wave_of(k, slot, i);
    u32 base = i * l->lanes, active = items - base < l->lanes ? items - base : l->lanes;
    blank_wave(k, w, slot, group, i);
    memcpy(w->group, id, sizeof id);
    u64 exec = active == 64 ? ~0ull : (1ull << active) - 1;
    w->s[EXEC_NO] = (u32)exec, w->s[EXEC_NO + 1] = (u32)(exec >> 32);
    start_sgprs(k, w, slot->n_waves);
    start_ids(k, w, size, base, active);
    enter(k, w);
  }
  k->n_workgroups++, k->n_waves += slot->n_waves;
  return slot;
}

/* One wave whose registers the caller fills in before sg_run; NULL without memory. */
SG_API Wave *sg_single(Worker *k) {
  Slot *slot = new_slot(k);
  if (!slot)
    return NULL;
  slot->n_waves = 1, slot->n_ended = 0, slot->in_use = 1, slot->index = 0;
  memset(slot->memory + k->wave_bytes * k->waves_per_group, 0, k->launch.lds_bytes);
  Wave *w = wave_of(k, slot, 0);
  blank_wave(k, w, slot, 0, 0);
  enter(k, w);
  k->n_workgroups++, k->n_waves++;
  return w;
}

/* ---------------------------------------------------------------- running */

static const Record *lookup(const Worker *k, const Wave *w) {
  const Program *p = k->program;
  const Record *records = records_of(k, w->mode);
  i64 pc = (i64)(w->pc - w->code);
  u64 low = 0, high = p->n_places;
  while (low < high) {
    u64 mid = (low + high) / 2;
    if (p->places[mid].pc < pc)
      low = mid + 1;
    else
      high = mid;
  }
  if (!records || low == p->n_places || p->places[low].pc != pc)
    return NULL;
  return records + p->places[low].record;
}

/* After a mode change: the same record of another variant. */
static int change_mode(const Worker *k, Wave *w) {
  const Record *records = records_of(k, w->mode);
  if (!records)
    return 0;
  const Program *p = k->program;
  for (u64 i = 0; i < p->n_variants; i++) {
    const Record *old = p->variants[i].records;
    if (w->next >= old && w->next < old + p->n_records) {
      w->next = records + (w->next - old);
      return 1;
    }
  }
  return 0;
}

static int out_of_budget(Worker *k, Wave *w) {
  if (k->budget < 0 || k->instructions <= (u64)k->budget)
    return 0;
  w->fault_kind = FAULT_BUDGET;
  return 1;
}

enum { STEP_YIELD = 16, STEP_STOP = 17 };

/* Run one wave until it ends, waits or used up its quantum. Returns a WAVE_ state, STEP_YIELD, or
 * STEP_STOP with *why set: the caller of sg_run is needed. */
static int run_wave(Worker *k, Wave *w, int *why) {
  k->subject = w;
  w->left = w->quantum = k->quantum;
  for (;;) {
    i64 before = w->left;
    w->from = w->next->ordinal;
    i32 status = w->next->fn(w, w->next);
    u64 used = (u64)(before - w->left);
    k->instructions += used;
    k->slice -= (i64)used;
    w->executed += used;
    w->quantum = w->left;
    if (status == ST_FAULT || w->fault_kind || out_of_budget(k, w))
      return *why = RUN_FAULT, STEP_STOP;
    switch (status) {
      case ST_END:
        if (w->late + w->executed > k->latest)
          k->latest = w->late + w->executed;
        return w->state = WAVE_ENDED;
      case ST_HALT:
        return w->state = WAVE_HALTED;
      case ST_BARRIER:
        return w->state = WAVE_AT_BARRIER;
      case ST_SPLIT:
        return w->state = WAVE_AT_SPLIT;
      case ST_YIELD:
        return STEP_YIELD;
      case ST_MODE:
        if (!change_mode(k, w))
          return *why = RUN_MODE, STEP_STOP;
        break;
      default: {
        const Record *next = lookup(k, w);
        if (!next)
          return *why = RUN_CODE, STEP_STOP;
        w->next = next;
      }
    }
    if (w->left <= 0)
      return STEP_YIELD;
  }
}

static u64 draw(Worker *k) {
  k->random ^= k->random << 13, k->random ^= k->random >> 7, k->random ^= k->random << 17;
  return k->random;
}

/* ---------------------------------------------------------------- split barriers */

static Wave *sibling(Wave *w, u32 i) {
  return (Wave *)((u8 *)w + ((i64)i - (i64)w->wave_in_group) * (i64)w->wave_bytes);
}
static u32 barrier_index(i32 number) { return (u32)number % N_BARRIERS; }
static int is_of_workgroup(i32 number) { return number == -1 || number == -2; }
static u32 barrier_bit(i32 number) { return number < 0 ? (u32)-number : 0; }
static int belongs(const Wave *w, i32 number) {
  return w->state != WAVE_ENDED && (is_of_workgroup(number) || (number && w->named == number));
}

static u32 wanted(Wave *w, i32 number) {
  u32 n = sibling(w, 0)->barriers.members[barrier_index(number)];
  if (n)
    return n;
  for (u32 i = 0; i < w->waves_in_group; i++)
    n += (u32)belongs(sibling(w, i), number);
  return n;
}

/* Completes a barrier that has all its signals: sleepers wake, the others may pass later. */
static void settle_barrier(Wave *w, i32 number) {
  u8 *signals = &sibling(w, 0)->barriers.signals[barrier_index(number)];
  u32 n = wanted(w, number), bit = barrier_bit(number);
  if (*signals < (n ? n : 1))
    return;
  *signals = 0;
  u64 *latest = &sibling(w, 0)->barriers.signalled[barrier_index(number)], time = *latest;
  *latest = 0;
  for (u32 i = 0; i < w->waves_in_group; i++) {
    Wave *other = sibling(w, i);
    if (!belongs(other, number))
      continue;
    if (other->waits_for == bit + 1) {
      other->state = WAVE_READY, other->waits_for = 0;
      sg_not_before(other, time);
    } else {
      other->complete |= 1u << bit;
      other->passes[bit] = time;
    }
  }
}

static void signal_barrier(Wave *w, Barriers *b, i32 number, u64 time) {
  u64 *latest = &b->signalled[barrier_index(number)];
  b->signals[barrier_index(number)]++;
  *latest = *latest > time ? *latest : time;
  settle_barrier(w, number);
}

void sg_barrier(Wave *w, const Record *r, u32 action, i32 number, u32 count) {
  Barriers *b = &sibling(w, 0)->barriers;
  switch (action) {
    case BARRIER_SIGNAL: signal_barrier(w, b, number, sg_time(w, r)); break;
    case BARRIER_INIT: b->members[barrier_index(number)] = (u8)count; break;
    case BARRIER_JOIN: w->named = number; break;
    default: w->named = 0;
  }
}

/* As S_GET_BARRIER_STATE reads it: signals [22:16], members [10:4], valid [0]. */
u32 sg_barrier_state(Wave *w, i32 number) {
  u32 n = wanted(w, number);
  return (sibling(w, 0)->barriers.signals[barrier_index(number)] & 127u) << 16 | (n & 127) << 4 | (n > 0);
}

/* A wave ended: the others may have been waiting for it alone. */
static void settle_all(Wave *w) {
  for (i32 i = 1; i < N_BARRIERS - 2; i++)
    if (sibling(w, 0)->barriers.signals[i])
      settle_barrier(w, i);
  for (i32 i = -2; i < 0; i++)
    if (sibling(w, 0)->barriers.signals[barrier_index(i)])
      settle_barrier(w, i);
}

static int any_ready(const Worker *k, Slot *slot) {
  for (u32 i = 0; i < slot->n_waves; i++)
    if (wave_of(k, slot, i)->state == WAVE_READY)
      return 1;
  return 0;
}

/* All waves that have not ended wait at the barrier: let them go. */
static int open_barrier(Worker *k, Slot *slot) {
  u32 waiting = 0;
  u64 last = 0;
  for (u32 i = 0; i < slot->n_waves; i++) {
    const Wave *w = wave_of(k, slot, i);
    u32 state = w->state;
    if (state == WAVE_READY || state == WAVE_AT_SPLIT)
      return 0;
    waiting += state == WAVE_AT_BARRIER;
    if (state == WAVE_AT_BARRIER && w->late + w->executed > last)
      last = w->late + w->executed;
  }
  for (u32 i = 0; waiting && i < slot->n_waves; i++) {
    Wave *w = wave_of(k, slot, i);
    if (w->state != WAVE_AT_BARRIER)
      continue;
    w->state = WAVE_READY;
    sg_not_before(w, last);
  }
  return waiting != 0;
}

/* Turn of one workgroup: its waves in order until all ended or each one gave up its quantum. */
static int run_group(Worker *k, Slot *slot, int *why) {
  for (;;) {
    u32 yielded = 0;
    u32 start = k->random ? (u32)(draw(k) % slot->n_waves) : 0;
    for (u32 j = 0; j < slot->n_waves; j++) {
      Wave *w = wave_of(k, slot, (start + j) % slot->n_waves);
      if (w->state != WAVE_READY)
        continue;
      int state = run_wave(k, w, why);
      if (state == STEP_STOP)
        return STEP_STOP;
      slot->n_ended += state == WAVE_ENDED;
      if (state == WAVE_ENDED && slot->n_waves > 1)
        settle_all(w);
      yielded += state == STEP_YIELD;
    }
    if (slot->n_ended == slot->n_waves) {
      slot->in_use = 0;
      return WAVE_ENDED;
    }
    if (!open_barrier(k, slot) && yielded == 0 && !any_ready(k, slot)) {
      k->subject = wave_of(k, slot, 0);
      for (u32 i = 0; i < slot->n_waves; i++)
        if (wave_of(k, slot, i)->state == WAVE_HALTED)
          k->subject = wave_of(k, slot, i);
      k->subject->fault_kind = FAULT_DEADLOCK;
      *why = RUN_FAULT;
      return STEP_STOP;
    }
    if (yielded)
      return STEP_YIELD;
  }
}

static int next_group(Worker *k) {
  u64 group = atomic_load(&k->shared->next_group);
  do {
    if (group >= k->shared->n_groups)
      return 0;
  } while (!atomic_compare_exchange_weak(&k->shared->next_group, &group, group + 1));
  if (start_group(k, (u32)group))
    return 1;
  /* no room: put it back when nobody else took one since, which a single taker guarantees */
  u64 taken = group + 1;
  atomic_compare_exchange_strong(&k->shared->next_group, &taken, group);
  return 0;
}

static u64 n_resident(const Worker *k) {
  u64 n = 0;
  for (u64 i = 0; i < k->n_slots; i++)
    n += k->slots[i].in_use;
  return n;
}

/* Until all workgroups are done or the caller is needed (see RUN_). A workgroup starts when one has
 * ended; when a whole pass ended none, they may wait for one that has not started: as many again do. */
SG_API int sg_run(Worker *k) {
  for (;;) {
    if (atomic_load(&k->shared->stop))
      return RUN_DONE;
    if (!n_resident(k) && !next_group(k)) {
      if (atomic_load(&k->shared->next_group) >= k->shared->n_groups)
        return RUN_DONE;
      return RUN_MEMORY;
    }
    int ended = 0;
    u64 n = k->n_slots;
    u64 start = k->random ? draw(k) % n : 0;
    for (u64 j = 0; j < n; j++) {
      Slot *slot = &k->slots[(start + j) % n];
      while (slot->in_use) {
        int why = RUN_DONE;
        int state = run_group(k, slot, &why);
        if (state == STEP_STOP)
          return why;
        if (state == STEP_YIELD)
          break;
        ended = 1;
        if (!next_group(k))
          break;
      }
      if (k->slice <= 0)
        return RUN_SLICE;
    }
    for (u64 more = ended ? 0 : n_resident(k); more && n_resident(k) < k->max_slots && next_group(k); more--)
      ;
  }
}

/* ---------------------------------------------------------------- handlers in C */

ALWAYS_INLINE void account(Wave *w, const Record *r, u32 inclusive) {
  w->left -= (i64)(r->ordinal + inclusive) - (i64)w->from;
  w->next = r;
}

SG_API i32 sg_op_endpgm(Wave *w, const Record *r) { return account(w, r, 1), ST_END; }
SG_API i32 sg_op_halt(Wave *w, const Record *r) { return account(w, r, 1), ST_HALT; }
SG_API i32 sg_op_barrier(Wave *w, const Record *r) { return account(w, r, 1), w->next = r + 1, ST_BARRIER; }

/* s_sleep: op[0] is the low byte of SIMM16. */
SG_API i32 sg_op_yield(Wave *w, const Record *r) {
  w->late += 64 * (r->op[0] & 127);
  account(w, r, 1);
  w->next = r + 1;
  return ST_YIELD;
}

/* s_setprio: op[0] is the low byte of SIMM16. */
SG_API i32 sg_op_priority(Wave *w, const Record *r) {
  w->user_prio = r->op[0] & 3;
  return r[1].fn(w, r + 1);
}

/* s_sendmsg with effects on the wave itself. */
SG_API i32 sg_op_dealloc(Wave *w, const Record *r) {
  w->no_vgprs = 1;
  return r[1].fn(w, r + 1);
}
SG_API i32 sg_op_doorbell(Wave *w, const Record *r) {
  w->s[EXEC_NO] = w->hwregs[64].value & 0x3FF, w->s[EXEC_NO + 1] = 0;
  return r[1].fn(w, r + 1);
}

/* s_barrier_wait: op[0] is the low byte of SIMM16, 0xFF the workgroup's, 0xFE the trap handler's. */
SG_API i32 sg_op_barrier_wait(Wave *w, const Record *r) {
  u32 bit = r->op[0] == 0xFF ? 1 : r->op[0] == 0xFE ? 2 : 0;
  if (w->complete >> bit & 1) {
    w->complete &= ~(1u << bit);
    u64 now = sg_time(w, r);
    w->late += now < w->passes[bit] ? w->passes[bit] - now : 0;
    return r[1].fn(w, r + 1);
  }
  account(w, r, 1);
  w->next = r + 1, w->waits_for = bit + 1;
  return ST_SPLIT;
}

static i32 stop(Wave *w, const Record *r, u32 kind) {
  account(w, r, 1);
  w->fault_kind = kind;
  w->fault_argument = r->op[0];
  return ST_FAULT;
}

SG_API i32 sg_op_illegal(Wave *w, const Record *r) { return stop(w, r, FAULT_ILLEGAL); }
SG_API i32 sg_op_unmodelled(Wave *w, const Record *r) { return stop(w, r, FAULT_UNMODELLED); }
SG_API i32 sg_op_trap(Wave *w, const Record *r) { return stop(w, r, FAULT_TRAP); }

/* Glue records that are no instructions: code continues elsewhere, or is not decoded yet. */
SG_API i32 sg_op_goto(Wave *w, const Record *r) {
  account(w, r, 0);
  w->from = r->target->ordinal;
  return r->target->fn(w, r->target);
}
SG_API i32 sg_op_undecoded(Wave *w, const Record *r) {
  account(w, r, 0);
  w->pc = w->code + (u64)r->pc;
  return ST_JUMP;
}

SG_API i32 sg_op_nop(Wave *w, const Record *r) { return r[1].fn(w, r + 1); }

/* Sizes and offsets that Python mirrors, in the order of emu/layout.py. */
SG_API u64 sg_layout(u32 i) {
  static const u64 values[] = {
      sizeof(Wave), sizeof(Record), sizeof(Worker), sizeof(Program), offsetof(Wave, scc), offsetof(Wave, mode),
      offsetof(Wave, next), offsetof(Wave, left), offsetof(Wave, from), offsetof(Wave, pc), offsetof(Wave, code),
      offsetof(Wave, fault_kind), offsetof(Wave, helpers), offsetof(Wave, lds), offsetof(Wave, scratch_va),
      VGPR_BASE, N_VGPR_SLOTS, SINK,
  };
  return i < sizeof values / sizeof *values ? values[i] : 0;
}
