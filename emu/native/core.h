/* State shared by the generated handlers, the scheduler and the memory helpers.
 *
 * Offsets are mirrored in emu/layout.py (tests compare them with sg_layout()).
 * Units: sizes in bytes; addresses are GPU VAs unless the name says host.
 */
#ifndef STUNTGPU_EMU_CORE_H
#define STUNTGPU_EMU_CORE_H

#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int16_t i16;
typedef int32_t i32;
typedef int64_t i64;

#define SG_API __attribute__((visibility("default")))
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Same layout as emu.memory.CRegion. */
typedef struct {
  u64 va, size, host, perms;
} Region;

typedef struct {
  const Region *regions; /* sorted by va */
  u64 count;
} Space;

enum { PERM_READ = 1, PERM_WRITE = 2, PERM_EXECUTE = 4 };

struct Wave;
struct Record;
typedef i32 (*Handler)(struct Wave *, const struct Record *);

/* One pre-decoded instruction: 64 bytes. Handlers tail-call the handler of record + 1. */
typedef struct Record {
  Handler fn;
  i64 pc;                       /* byte offset from the program's entry */
  const struct Record *target;  /* branch target, or NULL */
  u32 ordinal;                  /* instructions before this one in address order */
  u32 size;                     /* bytes of the instruction */
  u32 op[8];                    /* byte offsets into the wave, or immediates */
} Record;

/* What a handler returns to the scheduler. The accounting of `left` is done before. */
enum {
  ST_YIELD = 0,   /* resume at next */
  ST_END = 1,
  ST_BARRIER = 2, /* resume at next once all waves of the workgroup are here */
  ST_JUMP = 3,    /* continue at absolute address pc */
  ST_MODE = 4,    /* float mode changed: continue at next, in the program variant of the mode */
  ST_FAULT = 5,   /* next is the faulting record */
  ST_HALT = 6,
  ST_SPLIT = 7,   /* resume at next once the barrier it waits for is complete */
};

enum {
  FAULT_NONE = 0,
  FAULT_PAGE = 1,
  FAULT_ILLEGAL = 2,
  FAULT_UNMODELLED = 3,
  FAULT_TRAP = 4,
  FAULT_BUDGET = 5,
  FAULT_MISALIGNED = 6,
  FAULT_HWREG = 7, /* fault_argument: its number, or with the top bit that of a message */
};
enum { ACCESS_READ = 1, ACCESS_WRITE = 2, ACCESS_ATOMIC = 3 };
enum { WAVE_READY = 0, WAVE_AT_BARRIER = 1, WAVE_ENDED = 2, WAVE_HALTED = 3, WAVE_AT_SPLIT = 4, WAVE_ASLEEP = 5, WAVE_POLLING = 6 };

enum { N_RECENT = 4, N_BARRIERS = 32, N_PLACES = 8, N_HWREGS = 80 };
enum { VGPR_BASE = 4096, N_VGPR_SLOTS = 516, SINK = 240, EXEC_NO = 126, VCC_NO = 106 };

/* Split barriers by number: named ones from 1, -1 (workgroup) and -2 (trap) at the end. */
typedef struct {
  u8 signals[N_BARRIERS], members[N_BARRIERS]; /* members 0: as many as belong to it */
  u64 signalled[N_BARRIERS];                   /* the latest time of a signal */
} Barriers;
enum { BARRIER_SIGNAL, BARRIER_INIT, BARRIER_JOIN, BARRIER_LEAVE };

/* What S_GETREG or a message with an answer reads: a row of emu/hwregs.py. */
typedef struct {
  u32 source, mask, value, index;
  u8 shift[N_PLACES], width[N_PLACES];
} HwReg;

typedef struct Wave {
  u32 s[256]; /* scalar file by operand number; [240..255] swallow writes to NULL */
  u32 scc;
  u32 mode;
  const Record *next;
  i64 left;  /* instructions left in this quantum, exact when the wave is not running */
  u32 from;  /* ordinal where the current straight run began */
  u32 state;
  u64 pc;
  u64 code; /* absolute address of record.pc == 0 */
  u64 fault_address;
  u32 fault_lane, fault_access, fault_kind, lanes;
  u8 *lds;
  u64 lds_size;
  u64 scratch_va, scratch_size;
  u8 *scratch_host;
  const Space *space;
  const void *const *helpers;
  u32 group_index, wave_in_group;
  u32 group[3];
  u32 fault_argument;
  u32 waves_in_group, dispatch_id;
  u64 executed; /* instructions, up to the last return to the scheduler */
  i64 quantum;  /* `left` at that time */
  u8 bounce[64]; /* a location that does not lie in one piece */
  u32 bounce_size, bounce_lane, bounce_offset, pad;
  Region recent[N_RECENT]; /* regions used last; stays from one wave of a slot to the next */
  u64 newest;
  Barriers barriers; /* of the whole workgroup: those of its first wave count */
  u32 wave_bytes;    /* from one wave of the workgroup to the next */
  i32 named;         /* the named barrier it belongs to, 0: none */
  u32 complete;      /* bit b: a barrier this wave may pass; 0 named, 1 workgroup, 2 trap */
  u32 waits_for;     /* 1 + the bit it sleeps for, 0: none */
  u64 bounce_address; /* where `bounce` belongs when that is not scratch, 0: it is */
  const HwReg *hwregs;
  u64 late;           /* the wave's time less `executed` */
  u64 passes[3];      /* times at which the barriers of `complete` were */
  u32 stored[2];      /* hardware registers that are the wave's own */
  u32 user_prio, no_vgprs;
  u32 place[N_PLACES]; /* where it runs, in the order of emu/place.py */
} Wave;

_Static_assert(sizeof(Record) == 64, "Record");
_Static_assert(sizeof(Wave) <= VGPR_BASE, "Wave header");

/* Host address of the wave's scratch, NULL when it is not mapped in one piece. */
u8 *sg_scratch(Wave *w);
u32 sg_hwreg(Wave *w, const Record *r, u32 id);
void sg_wmma_nan(u32 lanes, u32 shape, u32 *sums, const u32 *rows, const u32 *columns, const u32 *which);
void sg_set_hwreg(Wave *w, const Record *r, u32 id, u32 value);
int sg_buffer_bytes(Wave *w, const u64 *range, u8 *bytes, u32 lane, u64 address, u32 size, int write);
int sg_typed_load(Wave *w, u64 exec, u64 spec, const u64 *address, const u64 *range, u32 *data);
int sg_typed_store(Wave *w, u64 exec, u64 spec, const u64 *address, const u64 *range, u32 *data);
void sg_transpose(Wave *w, u64 exec, u32 *data, u32 registers, u32 element_bits, u32 sharing);
void sg_mfma(Wave *w, u64 word, u32 *d, const u32 *a, const u32 *b, const u32 *c, const u32 *scale_a, const u32 *scale_b);
void sg_barrier(Wave *w, const Record *r, u32 action, i32 number, u32 count);
void sg_not_before(Wave *w, u64 time);
u64 sg_time(const Wave *w, const Record *r);
u32 sg_barrier_state(Wave *w, i32 number);
u64 sg_message(Wave *w, const Record *r, u32 number);
extern const void *const sg_helpers[];
#endif
