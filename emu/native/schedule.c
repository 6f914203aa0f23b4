/* The schedule of a worker: rounds over its resident workgroups, passes over the waves of one, turns of a wave.
 *
 * Every workgroup that can run has its turn in every round, so nobody starves. A round that ended no workgroup
 * may mean that they wait for one that has not started: twice as many are kept going from then on, up to what
 * the device holds. docs/emulator.md describes it to users.
 *
 * sg_run returns to the caller for whatever needs it: code not decoded yet, a float mode without a program, a
 * fault, the end of a slice (so that the caller can look whether the launch was cancelled); called again, it
 * goes on where it was.
 */
#include "worker.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* What a turn, a pass or an admission came to, beside the WAVE_ states. */
enum { STEP_TIRED = 16, STEP_YIELD, STEP_STOP, GROUP_ENDED, GROUP_BLOCKED };
enum { ADMITTED, NONE_PENDING, DEVICE_FULL, NO_MEMORY };
/* A first look at whether a wave only polls comes after FIRST_LEG instructions of its turn, POLLING_LEG when it
 * did the last time; later ones LEG_GROWTH times further apart. It goes around at most N_LAPS taken branches to
 * get back to where it was. */
enum { FIRST_LEG = 1024, POLLING_LEG = 16, LEG_GROWTH = 8, N_LAPS = 8 };
enum { N_TURN_BITS = 15, N_POLLED_SGPRS = 128 };
enum { BUDGET_PIECE = 4096 };
enum { IDLE_NANOSECONDS = 200000, IDLE_INSTRUCTIONS = 200000 };

/* ---------------------------------------------------------------- slots */

SG_API void sg_release(Worker *k) {
  for (u64 i = 0; i < k->n_slots; i++)
    munmap(k->slots[i].memory, slot_bytes(k));
  free(k->slots), free(k->live), free(k->spare), free(k->order);
  k->slots = NULL, k->live = k->spare = NULL, k->order = NULL;
  k->n_slots = k->n_live = k->n_spare = 0;
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
    for (u64 j = 0; k->slots[i].state != SLOT_FREE && j < k->slots[i].n_waves; j++)
      memcpy(pool_of(k, wave_of(k, &k->slots[i], j)), p->pool, p->n_pool * 4);
}

static int has_tables(Worker *k) {
  if (k->slots)
    return 1;
  k->slots = calloc(k->max_slots, sizeof(Slot));
  k->live = calloc(k->max_slots, sizeof(Slot *));
  k->spare = calloc(k->max_slots, sizeof(Slot *));
  k->order = calloc(k->waves_per_group, sizeof(u32));
  return k->slots && k->live && k->spare && k->order;
}

/* Memory for another workgroup, its LDS cleared; NULL when the host has none. */
static Slot *take_slot(Worker *k) {
  if (!has_tables(k))
    return NULL;
  if (k->n_spare) {
    Slot *slot = k->spare[--k->n_spare];
    memset(lds_of(k, slot), 0, k->launch.lds_bytes);
    return slot;
  }
  void *p = mmap(NULL, slot_bytes(k), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED)
    return NULL;
  Slot *slot = &k->slots[k->n_slots++];
  slot->memory = p;
  return slot;
}

/* It has its turns after those that are resident already. */
static void enlist(Worker *k, Slot *slot) {
  slot->n_ended = 0, slot->state = SLOT_LIVE;
  k->live[k->n_live++] = slot;
  k->n_active++;
  k->n_workgroups++, k->n_waves += slot->n_waves;
}

/* One wave whose registers the caller fills in before sg_run; NULL without memory. */
SG_API Wave *sg_single(Worker *k) {
  Slot *slot = take_slot(k);
  if (!slot)
    return NULL;
  Wave *w = sg_start_single(k, slot);
  atomic_fetch_add(&k->shared->next_group, 1);
  enlist(k, slot);
  return w;
}

/* ---------------------------------------------------------------- chance */

static u64 draw(Worker *k) {
  k->random ^= k->random << 13, k->random ^= k->random >> 7, k->random ^= k->random << 17;
  return k->random;
}

/* Instructions of a turn: with a seed, of any order of magnitude. */
static i64 turn_length(Worker *k) {
  i64 length = k->random ? (i64)1 << draw(k) % N_TURN_BITS : k->quantum;
  return length < k->quantum ? length : k->quantum;
}

static void shuffle_groups(Worker *k) {
  for (u64 i = k->n_live; k->random && i > 1; i--) {
    u64 j = draw(k) % i;
    Slot *slot = k->live[j];
    k->live[j] = k->live[i - 1], k->live[i - 1] = slot;
  }
}

static void begin_pass(Worker *k, u32 n_waves) {
  k->at.wave = k->at.tired = 0;
  for (u32 i = 0; k->random && i < n_waves; i++) {
    u32 j = (u32)(draw(k) % (i + 1));
    k->order[i] = k->order[j], k->order[j] = i;
  }
}

/* ---------------------------------------------------------------- a wave */

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

/* Several workers account for their instructions a piece at a time, so they find out late that the launch's budget
 * is spent, but never early. Returns 0 when it is. */
static int draw_budget(Worker *k) {
  if (k->shared->n_workers == 1)
    return 0;
  while (k->instructions > k->budget_end) {
    if (atomic_fetch_sub(&k->shared->budget, BUDGET_PIECE) <= BUDGET_PIECE)
      return 0;
    k->budget_end += BUDGET_PIECE;
  }
  return 1;
}

/* Counts what the wave executed since it had `before` left. */
ALWAYS_INLINE void count(Worker *k, Wave *w, i64 before) {
  i64 used = before - w->left;
  k->instructions += used;
  w->executed += (u64)used;
  w->quantum = w->left;
  if (UNLIKELY(k->instructions > k->budget_end) && !w->fault_kind && !draw_budget(k))
    w->fault_kind = FAULT_BUDGET;
}

/* Run a wave until it ends, waits, sleeps or has executed `length` instructions, which is looked at where it
 * branches. Returns a WAVE_ state, STEP_YIELD, STEP_TIRED, or STEP_STOP with *why set. */
ALWAYS_INLINE int run_leg(Worker *k, Wave *w, i64 length, int *why) {
  k->subject = w;
  w->state = WAVE_READY;
  i64 affordable = k->budget_end - k->instructions + 1;
  w->left = w->quantum = length < affordable ? length : affordable;
  for (;;) {
    i64 before = w->left;
    w->from = w->next->ordinal;
    i32 status = w->next->fn(w, w->next);
    count(k, w, before);
    if (status == ST_FAULT || w->fault_kind)
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
        return w->state == WAVE_ASLEEP ? STEP_YIELD : STEP_TIRED;
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
      return STEP_TIRED;
  }
}

static u64 hash_of_vgprs(const Worker *k, const Wave *w) {
  const u64 *p = (const u64 *)((const u8 *)w + VGPR_BASE);
  u64 n = (u64)k->launch.n_vgprs * k->launch.lanes / 2, h = n;
  for (u64 i = 0; i < n; i++)
    h = (h ^ p[i]) * 0x9E3779B97F4A7C15ull, h ^= h >> 29;
  return h;
}

/* Whether the wave polls: it comes back to where it is with the registers it had, so that only others can end
 * its loop. Returns STEP_YIELD when that is so, STEP_TIRED when not, or what became of the wave. */
__attribute__((noinline)) static int poll_step(Worker *k, Wave *w, int *why) {
  u32 sgprs[N_POLLED_SGPRS], scc = w->scc;
  const Record *here = w->next;
  u64 vgprs = 0;
  int has_vgprs = 0;
  memcpy(sgprs, w->s, sizeof sgprs);
  for (int laps = 0; laps < N_LAPS; laps++) {
    int state = run_leg(k, w, 1, why);
    if (state != STEP_TIRED)
      return state;
    if (w->next != here)
      continue;
    if (scc != w->scc || memcmp(sgprs, w->s, sizeof sgprs))
      return STEP_TIRED;
    u64 now = hash_of_vgprs(k, w);
    if (has_vgprs)
      return now == vgprs ? (w->state = WAVE_POLLING, STEP_YIELD) : STEP_TIRED;
    vgprs = now, has_vgprs = 1, laps = 0;
  }
  return STEP_TIRED;
}

static void begin_turn(Worker *k, const Wave *w) {
  k->at.in_turn = 1;
  k->at.turn_end = k->instructions + turn_length(k);
  k->at.polls = w->state == WAVE_POLLING;
  k->at.leg = k->at.polls ? POLLING_LEG : FIRST_LEG;
}

/* A wave's turn: to its end, a wait, a sleep, its last instruction, or as soon as it is seen to poll. */
ALWAYS_INLINE int run_turn(Worker *k, Wave *w, int *why) {
  if (!k->at.in_turn)
    begin_turn(k, w);
  int state = STEP_TIRED;
  while (state == STEP_TIRED && k->instructions < k->at.turn_end) {
    i64 left = k->at.turn_end - k->instructions;
    state = run_leg(k, w, k->at.leg < left ? k->at.leg : left, why);
    if (state != STEP_TIRED)
      break;
    k->at.leg *= LEG_GROWTH;
    if (k->instructions < k->at.turn_end || k->at.polls)
      state = poll_step(k, w, why);
  }
  if (state == STEP_STOP)
    return state;
  k->at.in_turn = 0;
  return state == STEP_TIRED ? STEP_YIELD : state;
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

/* ---------------------------------------------------------------- a workgroup */

static int can_run(const Wave *w) { return (1u << WAVE_READY | 1u << WAVE_ASLEEP | 1u << WAVE_POLLING) >> w->state & 1; }

static int any_ready(const Worker *k, const Slot *slot) {
  for (u32 i = 0; i < slot->n_waves; i++)
    if (can_run(wave_of(k, slot, i)))
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
    if (state != WAVE_AT_BARRIER && state != WAVE_ENDED)
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

/* One turn for each wave of the pass. Returns 0, or STEP_STOP with *why set. */
static int run_pass(Worker *k, Slot *slot, int *why) {
  for (; k->at.wave < slot->n_waves; k->at.wave++) {
    Wave *w = wave_of(k, slot, k->random ? k->order[k->at.wave] : k->at.wave);
    if (!can_run(w))
      continue;
    if (k->instructions >= k->slice_end)
      return *why = RUN_SLICE, STEP_STOP;
    int state = run_turn(k, w, why);
    if (state == STEP_STOP)
      return STEP_STOP;
    if (state == STEP_YIELD) {
      k->at.tired++;
      k->n_busy += w->state == WAVE_READY;
    } else {
      k->n_busy++;
    }
    if (state == WAVE_ENDED && ++slot->n_ended < slot->n_waves)
      settle_all(w);
  }
  return 0;
}

/* Turn of one workgroup: passes over its waves until all ended, one gave up its turn, none can run, or the
 * workgroup has had its share. */
static int run_group(Worker *k, Slot *slot, int *why) {
  if (!k->at.in_group) {
    k->at.in_group = 1, k->at.group_end = k->instructions + turn_length(k) * slot->n_waves;
    begin_pass(k, slot->n_waves);
  }
  for (;;) {
    if (atomic_load_explicit(&k->shared->stop, memory_order_relaxed))
      return *why = RUN_DONE, STEP_STOP;
    if (run_pass(k, slot, why))
      return STEP_STOP;
    int state = 0;
    if (slot->n_ended == slot->n_waves)
      state = GROUP_ENDED;
    else if (!open_barrier(k, slot) && !any_ready(k, slot))
      state = GROUP_BLOCKED;
    else if (k->at.tired || k->instructions >= k->at.group_end)
      state = STEP_YIELD;
    if (state)
      return k->at.in_group = 0, state;
    begin_pass(k, slot->n_waves);
  }
}

/* ---------------------------------------------------------------- the launch */

/* Adds one to what workers count together. */
static void add_one(const Worker *k, _Atomic u64 *n) {
  if (k->shared->n_workers > 1)
    atomic_fetch_add(n, 1);
  else
    atomic_store_explicit(n, atomic_load(n) + 1, memory_order_relaxed);
}

/* Starts the next workgroup in dispatch order. */
static int admit(Worker *k) {
  Shared *s = k->shared;
  u64 group = atomic_load(&s->next_group);
  if (group >= s->n_groups)
    return NONE_PENDING;
  if (group - atomic_load(&s->ended) >= s->bound)
    return DEVICE_FULL;
  if (s->n_workers == 1)
    add_one(k, &s->next_group);
  else if (!atomic_compare_exchange_strong(&s->next_group, &group, group + 1))
    return admit(k);
  Slot *slot = take_slot(k);
  if (!slot)
    return NO_MEMORY;
  sg_start_group(k, slot, (u32)group);
  enlist(k, slot);
  return ADMITTED;
}

static void drop_ended(Worker *k) {
  u64 n = 0;
  for (u64 i = 0; i < k->n_live; i++)
    if (k->live[i])
      k->live[n++] = k->live[i];
  k->n_live = n;
}

/* Between rounds: workgroups start in the place of those that ended. Returns an admission. */
static int begin_round(Worker *k) {
  if (k->n_ended)
    drop_ended(k);
  else if (k->n_live && k->wanted < k->most_wanted)
    k->wanted *= 2;
  if (k->n_live && !k->n_busy)
    sched_yield(); /* all wait, maybe for another worker or for the program that launched them */
  k->n_ended = k->n_busy = 0, k->at.slot = 0;
  int state = ADMITTED;
  while (state == ADMITTED && k->n_active < k->wanted && k->n_live < k->max_slots)
    state = admit(k);
  shuffle_groups(k);
  return state;
}

static void end_group(Worker *k, Slot *slot) {
  slot->state = SLOT_FREE;
  k->live[k->at.slot] = NULL, k->spare[k->n_spare++] = slot;
  k->n_active--, k->n_ended++;
  add_one(k, &k->shared->ended);
}

static void block_group(Worker *k, Slot *slot) {
  slot->state = SLOT_BLOCKED;
  k->n_active--, k->n_ended++;
  add_one(k, &k->shared->blocked);
}

/* No resident wave can run and no workgroup can start: what is loaded first can only be too small by workgroups
 * that start meanwhile, which they cannot when the device is full or none is left. */
static int is_deadlock(Shared *s) {
  u64 next = atomic_load(&s->next_group), blocked = atomic_load(&s->blocked), ended = atomic_load(&s->ended);
  return blocked && blocked == next - ended && (next - ended == s->bound || next >= s->n_groups);
}

/* This worker has nothing to run: the launch is over, or others must do something first. Returns 1 with *why. */
static int idle(Worker *k, int *why) {
  if (!k->n_live && atomic_load(&k->shared->next_group) >= k->shared->n_groups)
    return *why = RUN_DONE, 1;
  if (is_deadlock(k->shared))
    return *why = RUN_DEADLOCK, 1;
  nanosleep(&(struct timespec){0, IDLE_NANOSECONDS}, NULL);
  k->slice_end -= IDLE_INSTRUCTIONS;
  return *why = RUN_SLICE, k->instructions >= k->slice_end;
}

/* Until all workgroups are done or the caller is needed (see RUN_). */
SG_API int sg_run(Worker *k) {
  int why = RUN_DONE;
  for (;;) {
    if (atomic_load(&k->shared->stop))
      return RUN_DONE;
    if (k->at.slot >= k->n_live && begin_round(k) == NO_MEMORY)
      return RUN_MEMORY;
    if (!k->n_active) {
      k->at.slot = k->n_live;
      if (idle(k, &why))
        return why;
      continue;
    }
    Slot *slot = k->live[k->at.slot];
    int state = slot->state == SLOT_LIVE ? run_group(k, slot, &why) : STEP_YIELD;
    if (state == STEP_STOP)
      return why;
    if (state == GROUP_ENDED)
      end_group(k, slot);
    if (state == GROUP_BLOCKED)
      block_group(k, slot);
    k->at.slot++;
  }
}
