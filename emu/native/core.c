/* Waves: how they start, and the handlers of instructions that are the scheduler's affair. */
#include "worker.h"

#include <string.h>

/* ---------------------------------------------------------------- wave start */

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
  memcpy(pool_of(k, w), p->pool, p->n_pool * 4);
  w->lanes = l->lanes;
  w->mode = l->mode;
  w->code = l->code;
  w->helpers = sg_helpers;
  w->space = k->space;
  w->lds = lds_of(k, slot);
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

/* The waves of a workgroup, in a slot whose LDS is clear. */
void sg_start_group(const Worker *k, Slot *slot, u32 group) {
  const LaunchInfo *l = &k->launch;
  u32 id[3] = {group % l->groups[0], group / l->groups[0] % l->groups[1], group / (l->groups[0] * l->groups[1])};
  u32 size[3], items = 1;
  for (u32 i = 0; i < 3; i++) {
    u32 rest = l->grid[i] - id[i] * l->workgroup[i];
    size[i] = rest < l->workgroup[i] ? rest : l->workgroup[i];
    items *= size[i];
    id[i] += l->start[i];
  }
  slot->n_waves = (items + l->lanes - 1) / l->lanes;
  slot->index = group;
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
}

/* One wave, whose registers the caller fills in. */
Wave *sg_start_single(const Worker *k, Slot *slot) {
  slot->n_waves = 1, slot->index = 0;
  Wave *w = wave_of(k, slot, 0);
  blank_wave(k, w, slot, 0, 0);
  enter(k, w);
  return w;
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
  w->state = WAVE_ASLEEP;
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

/* Host processors let loads overtake earlier stores; where the kernel forbids it, so do they. */
SG_API i32 sg_op_fence(Wave *w, const Record *r) {
  atomic_thread_fence(memory_order_seq_cst);
  return r[1].fn(w, r + 1);
}

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
