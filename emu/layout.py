"""Where things are in native memory: the Python mirror of emu/native/core.h.

Units:   bytes.
"""

from __future__ import annotations

WAVE_BYTES = 1848
RECORD_BYTES = 64

# Wave
SCC, MODE, NEXT, LEFT, FROM, PC, CODE = 1024, 1028, 1032, 1040, 1048, 1056, 1064
FAULT_KIND, HELPERS, LDS, SCRATCH_VA = 1088, 1144, 1096, 1112
VGPR_BASE = 4096
N_VGPR_SLOTS = 516  # VGPRs, AccVGPRs, and four that only the program builder names
ZERO = 200  # operand number that nothing writes
SINK = 240  # operand number whose registers swallow writes to NULL
VCC, EXEC = 106 * 4, 126 * 4

# Record
R_FN, R_PC, R_TARGET, R_ORDINAL, R_SIZE, R_OP = 0, 8, 16, 24, 28, 32
N_OPS = 8

# Status codes of handlers
YIELD, END, BARRIER, JUMP, MODE_CHANGED, FAULT, HALT, SPLIT_BARRIER = range(8)

#: Kind of address, in the order of the helper table (loads, then stores, by size).
KINDS = ("base32", "addr64", "flat", "array", "scratch", "lds", "buffer")
SIZES = (1, 2, 4, 8, 12, 16)
RESOLVE = {"global": 84, "flat": 85, "scratch": 86, "lds": 87}
HWREG, SET_HWREG, WMMA, SETTLE = 88, 89, 90, 91
STORE_PAIR = {4: 92, 8: 93}
MESSAGE, BARRIER_ACTION, BARRIER_STATE, TYPED_LOAD, TYPED_STORE = 94, 95, 96, 97, 98
TRANSPOSE, MFMA = 99, 100
#: Actions of the barrier helper, in the C core's order.
BARRIER_ACTIONS = ("barrier_signal", "barrier_init", "barrier_join", "barrier_leave")


def access_helper(kind: str, size: int, store: bool) -> int:
    """Index in the helper table."""
    return (KINDS.index(kind) * 2 + store) * len(SIZES) + SIZES.index(size)


def vgpr_stride(lanes: int) -> int:
    return lanes * 4


def vgpr(reg: int, lanes: int) -> int:
    """Offset of a VGPR in the wave."""
    return VGPR_BASE + reg * vgpr_stride(lanes)


def pool(lanes: int) -> int:
    """Offset of the constants, behind the VGPRs."""
    return vgpr(N_VGPR_SLOTS, lanes)

# fault_kind
FAULT_PAGE, FAULT_ILLEGAL, FAULT_UNMODELLED, FAULT_TRAP, FAULT_BUDGET, FAULT_MISALIGNED, FAULT_HWREG = range(1, 8)
ACCESS_READ, ACCESS_WRITE, ACCESS_ATOMIC = 1, 2, 3
