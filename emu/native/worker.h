/* A launch as the C core sees it: its program, its workgroups, and the thread (worker) that runs some of them.
 *
 * Mirrored in emu/native_abi.py (tests compare the sizes).
 */
#ifndef STUNTGPU_EMU_WORKER_H
#define STUNTGPU_EMU_WORKER_H

#include "core.h"

#include <stdatomic.h>

/* Why sg_run returns. DEADLOCK: no resident wave of the launch can ever run again. */
enum { RUN_DONE = 0, RUN_SLICE = 1, RUN_CODE = 2, RUN_MODE = 3, RUN_FAULT = 4, RUN_MEMORY = 5, RUN_DEADLOCK = 6 };
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

/* What the workers of a launch share. Workgroups are resident from their start to their end; `bound` is how
 * many the device holds. A blocked one stays: only its own waves could wake each other. */
typedef struct {
  _Atomic u64 next_group;
  u64 n_groups;
  _Atomic u32 stop;
  u32 n_workers;
  u64 bound;
  _Atomic u64 ended, blocked; /* workgroups; those that started and did not end are resident */
  _Atomic i64 budget;         /* instructions no worker has accounted for yet */
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

enum { SLOT_FREE, SLOT_LIVE, SLOT_BLOCKED };

/* Memory of one workgroup, used by one after the other. */
typedef struct Slot {
  u8 *memory; /* waves, then LDS */
  u32 n_waves, n_ended, state, index;
} Slot;

/* Where the schedule is; it goes on there after a return to the caller. */
typedef struct {
  u64 slot;                 /* position in `live` */
  u32 wave;                 /* position in the pass over the workgroup's waves */
  u32 tired;                /* waves of this pass that gave up their turn */
  u32 in_group, in_turn;    /* whether the two below are under way */
  u32 polls, pad;           /* the wave did so in its last turn */
  i64 group_end, turn_end;  /* by the worker's count of instructions */
  i64 leg;                  /* instructions until the next look whether the wave only polls */
} Cursor;

typedef struct {
  const Program *program;
  const Space *space;
  Shared *shared;
  LaunchInfo launch;
  u64 wave_bytes, waves_per_group, max_slots;
  u64 wanted, most_wanted; /* workgroups kept going at a time: grows while none ends, up to the most */
  i64 quantum;
  i64 slice_end, budget_end; /* by the count of instructions below */
  u64 random; /* 0: dispatch order */
  u64 mode_mask;
  /* results */
  i64 instructions;
  u64 n_waves, n_workgroups, latest; /* when the last wave ended */
  Wave *subject; /* the wave RUN_CODE, RUN_MODE, RUN_FAULT is about */
  Slot **live;   /* resident workgroups in the order of their turns; NULL where one ended in this round */
  u64 n_live;
  /* private */
  Slot *slots, **spare;
  u32 *order; /* of a workgroup's waves in this pass */
  u64 n_slots, n_spare, n_active;
  u64 n_ended, n_busy; /* of this round: workgroups that ended or blocked; turns of waves that did not just wait */
  Cursor at;
} Worker;

ALWAYS_INLINE u64 slot_bytes(const Worker *k) {
  u64 bytes = k->wave_bytes * k->waves_per_group + k->launch.lds_bytes;
  return (bytes + 4095) & ~4095ull;
}

ALWAYS_INLINE u8 *lds_of(const Worker *k, const Slot *slot) {
  return slot->memory + k->wave_bytes * k->waves_per_group;
}

ALWAYS_INLINE Wave *wave_of(const Worker *k, const Slot *slot, u64 i) {
  return (Wave *)(slot->memory + i * k->wave_bytes);
}

/* The records of a mode's variant, NULL without one. */
ALWAYS_INLINE const Record *records_of(const Worker *k, u32 mode) {
  const Program *p = k->program;
  for (u64 i = 0; i < p->n_variants; i++)
    if (p->variants[i].mode == (mode & k->mode_mask))
      return p->variants[i].records;
  return NULL;
}

ALWAYS_INLINE u8 *pool_of(const Worker *k, Wave *w) {
  return (u8 *)w + VGPR_BASE + (u64)N_VGPR_SLOTS * k->launch.lanes * 4;
}

void sg_start_group(const Worker *k, Slot *slot, u32 group);
Wave *sg_start_single(const Worker *k, Slot *slot);
#endif
