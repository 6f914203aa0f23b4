/* S_GETREG, S_SETREG, messages that return data, and the clock (rules and rows: emu/hwregs.py). */
#include "core.h"

/* Source of emu/hwregs.py. */
enum { NONE, VALUE, MODE, STATUS, STATE_PRIV, STORED, PLACE, SCRATCH_LO, SCRATCH_HI, CYCLES, CYCLES_HI, REALTIME, TIME, DISPATCH };
enum { MESSAGES = 64, FIRST_MESSAGE = 128, CYCLES_PER_REALTIME = 20 };
#define IS_MESSAGE 0x80000000u
/* DX10_CLAMP and IEEE: chips whose MODE has neither behave as if they were set, and unset. */
enum { DX10_CLAMP = 1 << 8, IEEE = 1 << 9 };
enum { SCC = 0, USER_PRIO = 3, EXECZ = 9, VCCZ = 10, IN_GROUP = 11, NO_VGPRS = 24 };
enum { PRIV_BARRIER_COMPLETE = 2, PRIV_SCC = 9, PRIV_USER_PRIO = 12 };

/* The wave's clock with the running instruction counted. */
u64 sg_time(const Wave *w, const Record *r) {
  return w->late + w->executed + (u64)(w->quantum - w->left) + (r->ordinal + 1 - w->from);
}

/* Let the clock of a wave that is not running go on at `time`, if it is behind. */
void sg_not_before(Wave *w, u64 time) {
  if (w->late + w->executed < time)
    w->late = time - w->executed;
}

static u32 status(const Wave *w) {
  u64 high = w->lanes == 64 ? ~0ull : 0xFFFFFFFFull;
  u64 exec = (w->s[EXEC_NO] | (u64)w->s[EXEC_NO + 1] << 32) & high;
  u64 vcc = (w->s[VCC_NO] | (u64)w->s[VCC_NO + 1] << 32) & high;
  return (w->scc & 1) << SCC | w->user_prio << USER_PRIO | (u32)(exec == 0) << EXECZ | (u32)(vcc == 0) << VCCZ |
         (u32)(w->waves_in_group > 1) << IN_GROUP | w->no_vgprs << NO_VGPRS;
}

static u32 state_priv(const Wave *w) {
  return (w->complete >> 1 & 1) << PRIV_BARRIER_COMPLETE | (w->scc & 1) << PRIV_SCC | w->user_prio << PRIV_USER_PRIO;
}

static u32 place(const Wave *w, const HwReg *h) {
  u32 value = h->value;
  for (u32 i = 0; i < N_PLACES; i++)
    value |= (w->place[i] & ((1u << h->width[i]) - 1)) << h->shift[i];
  return value;
}

/* argument: number of the register, or of the message and IS_MESSAGE. */
static u64 unmodelled(Wave *w, u32 argument) { return w->fault_kind = FAULT_HWREG, w->fault_argument = argument, 0; }

static u64 read_row(Wave *w, const Record *r, u32 row) {
  const HwReg *h = &w->hwregs[row];
  u64 scratch = w->scratch_size ? w->scratch_va : 0;
  switch (h->source) {
    case VALUE: return h->value;
    case MODE: return w->mode & h->mask;
    case STATUS: return h->value | (status(w) & h->mask);
    case STATE_PRIV: return h->value | state_priv(w);
    case STORED: return w->stored[h->index];
    case PLACE: return place(w, h);
    case SCRATCH_LO: return (u32)scratch;
    case SCRATCH_HI: return scratch >> 32;
    case CYCLES: return sg_time(w, r) & h->mask;
    case CYCLES_HI: return sg_time(w, r) >> 32;
    case REALTIME: return sg_time(w, r) / CYCLES_PER_REALTIME;
    case TIME: return sg_time(w, r);
    case DISPATCH: return w->dispatch_id;
    default: return unmodelled(w, row < MESSAGES ? row : (row - MESSAGES + FIRST_MESSAGE) | IS_MESSAGE);
  }
}

u32 sg_hwreg(Wave *w, const Record *r, u32 id) { return (u32)read_row(w, r, id & 63); }

/* Bits that are the hardware's or the trap handler's stay as they are. */
void sg_set_hwreg(Wave *w, const Record *r, u32 id, u32 value) {
  const HwReg *h = &w->hwregs[id & 63];
  (void)r;
  switch (h->source) {
    case NONE: unmodelled(w, id & 63); break;
    case MODE:
      w->mode = value & h->mask;
      if (!(h->mask & DX10_CLAMP))
        w->mode = (w->mode & ~(u32)IEEE) | DX10_CLAMP;
      break;
    case STORED: w->stored[h->index] = (w->stored[h->index] & ~h->mask) | (value & h->mask); break;
    default: break;
  }
}

u64 sg_message(Wave *w, const Record *r, u32 number) {
  u32 row = number - FIRST_MESSAGE + MESSAGES;
  if (row < MESSAGES || row >= N_HWREGS)
    return unmodelled(w, number | IS_MESSAGE);
  return read_row(w, r, row);
}
