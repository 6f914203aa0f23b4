"""The C core through ctypes: its structures and entry points.

Mirrors emu/native/core.h and core.c; tests compare the sizes.
"""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_int, c_int32, c_int64, c_uint8, c_uint32, c_uint64, c_void_p
from functools import lru_cache
from pathlib import Path

from stuntgpu.emu import formats, state
from stuntgpu.emu.memory import CRegion

LIBRARY = "libstuntgpu_emu.so"
MAX_VARIANTS = 32

RUN_DONE, RUN_SLICE, RUN_CODE, RUN_MODE, RUN_FAULT, RUN_MEMORY, RUN_DEADLOCK = range(7)

#: Wave.state, and Slot.state of memory nobody uses.
WAVE_READY, WAVE_AT_BARRIER, WAVE_ENDED, WAVE_HALTED, WAVE_AT_SPLIT, WAVE_ASLEEP, WAVE_POLLING = range(7)
SLOT_FREE = 0

C_HANDLERS = (
    "sg_op_endpgm", "sg_op_halt", "sg_op_barrier", "sg_op_barrier_wait", "sg_op_yield", "sg_op_illegal", "sg_op_unmodelled",
    "sg_op_trap", "sg_op_priority", "sg_op_dealloc", "sg_op_doorbell", "sg_op_goto", "sg_op_undecoded", "sg_op_nop",
    "sg_op_fence",
)  # fmt: skip


class CSpace(ctypes.Structure):
    _fields_ = (("regions", c_void_p), ("count", c_uint64))


class CVariant(ctypes.Structure):
    _fields_ = (("mode", c_uint32), ("pad", c_uint32), ("records", c_void_p))


class CPlace(ctypes.Structure):
    _fields_ = (("pc", c_int64), ("record", c_uint64))


class CProgram(ctypes.Structure):
    _fields_ = (
        ("places", c_void_p), ("n_places", c_uint64), ("n_records", c_uint64), ("pool", c_void_p), ("n_pool", c_uint64), ("entry", c_uint64), ("n_variants", c_uint64), ("variants", CVariant * MAX_VARIANTS),
    )


class CShared(ctypes.Structure):
    _fields_ = (
        ("next_group", c_uint64), ("n_groups", c_uint64), ("stop", c_uint32), ("n_workers", c_uint32), ("bound", c_uint64),
        ("ended", c_uint64), ("blocked", c_uint64), ("budget", c_int64),
    )


class CLaunch(ctypes.Structure):
    _fields_ = (
        ("code", c_uint64), ("grid", c_uint32 * 3), ("workgroup", c_uint32 * 3), ("groups", c_uint32 * 3),
        ("start", c_uint32 * 3),
        ("lanes", c_uint32), ("mode", c_uint32), ("n_user", c_uint32), ("id_bits", c_uint32), ("info_bit", c_uint32),
        ("item_ids", c_uint32), ("ids_in_ttmp", c_uint32), ("user", c_uint32 * 32), ("n_vgprs", c_uint32),
        ("lds_bytes", c_uint64), ("scratch_va", c_uint64), ("scratch_wave_bytes", c_uint64),
        ("hwregs", c_void_p), ("clock", c_uint64), ("xccs", c_uint32), ("units", c_uint32), ("ses", c_uint32),
        ("sas", c_uint32), ("simds", c_uint32), ("slots", c_uint32), ("splits", c_uint32),
        ("dispatch_id", c_uint32), ("info_has_wave", c_uint32), ("flat_scratch", c_uint32),
    )


class CWave(ctypes.Structure):
    _fields_ = (
        ("s", c_uint32 * 256), ("scc", c_uint32), ("mode", c_uint32), ("next", c_uint64), ("left", c_int64),
        ("begin", c_uint32), ("state", c_uint32), ("pc", c_uint64), ("code", c_uint64), ("fault_address", c_uint64),
        ("fault_lane", c_uint32), ("fault_access", c_uint32), ("fault_kind", c_uint32), ("lanes", c_uint32),
        ("lds", c_uint64), ("lds_size", c_uint64), ("scratch_va", c_uint64), ("scratch_size", c_uint64),
        ("scratch_host", c_uint64), ("space", c_void_p), ("helpers", c_void_p),
        ("group_index", c_uint32), ("wave_in_group", c_uint32), ("group", c_uint32 * 3),
        ("fault_argument", c_uint32), ("waves_in_group", c_uint32), ("dispatch_id", c_uint32), ("executed", c_uint64),
        ("quantum", c_int64), ("bounce", c_uint8 * 64), ("bounce_size", c_uint32),
        ("bounce_lane", c_uint32), ("bounce_offset", c_uint32), ("pad", c_uint32), ("recent", CRegion * 4), ("newest", c_uint64),
        ("barriers", c_uint64 * 40), ("wave_bytes", c_uint32), ("named", c_int32), ("complete", c_uint32), ("waits_for", c_uint32),
        ("bounce_address", c_uint64), ("hwregs", c_void_p), ("late", c_uint64), ("passes", c_uint64 * 3),
        ("stored", c_uint32 * 2), ("user_prio", c_uint32), ("no_vgprs", c_uint32), ("place", c_uint32 * 8),
    )


class CSlot(ctypes.Structure):
    _fields_ = (("memory", c_void_p), ("n_waves", c_uint32), ("n_ended", c_uint32), ("state", c_uint32), ("index", c_uint32))


class CCursor(ctypes.Structure):
    _fields_ = (
        ("slot", c_uint64), ("wave", c_uint32), ("tired", c_uint32), ("in_group", c_uint32), ("in_turn", c_uint32), ("polls", c_uint32), ("pad", c_uint32),
        ("group_end", c_int64), ("turn_end", c_int64), ("leg", c_int64),
    )


class CWorker(ctypes.Structure):
    _fields_ = (
        ("program", ctypes.POINTER(CProgram)), ("space", ctypes.POINTER(CSpace)), ("shared", ctypes.POINTER(CShared)),
        ("launch", CLaunch), ("wave_bytes", c_uint64), ("waves_per_group", c_uint64), ("max_slots", c_uint64),
        ("wanted", c_uint64), ("most_wanted", c_uint64), ("quantum", c_int64), ("slice_end", c_int64), ("budget_end", c_int64), ("random", c_uint64), ("mode_mask", c_uint64),
        ("instructions", c_int64), ("n_waves", c_uint64), ("n_workgroups", c_uint64), ("latest", c_uint64),
        ("subject", ctypes.POINTER(CWave)), ("live", ctypes.POINTER(ctypes.POINTER(CSlot))), ("n_live", c_uint64),
        ("slots", c_void_p), ("spare", c_void_p), ("order", c_void_p), ("n_slots", c_uint64), ("n_spare", c_uint64),
        ("n_active", c_uint64), ("n_ended", c_uint64), ("n_busy", c_uint64), ("at", CCursor),
    )


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL:
    """The C core. Raises OSError with the remedy when it was not built."""
    path = Path(__file__).with_name(LIBRARY)
    if not path.exists():
        raise OSError(f"{path} is missing: build it with `python setup.py build_native --inplace`")
    lib = ctypes.CDLL(str(path))
    lib.sg_run.argtypes, lib.sg_run.restype = [ctypes.POINTER(CWorker)], c_int
    lib.sg_single.argtypes, lib.sg_single.restype = [ctypes.POINTER(CWorker)], ctypes.POINTER(CWave)
    lib.sg_release.argtypes, lib.sg_release.restype = [ctypes.POINTER(CWorker)], None
    lib.sg_refresh.argtypes, lib.sg_refresh.restype = [ctypes.POINTER(CWorker)], None
    lib.sg_forget.argtypes, lib.sg_forget.restype = [ctypes.POINTER(CWorker)], None
    lib.sg_set_formats.argtypes, lib.sg_set_formats.restype = [c_uint32, c_char_p], None
    for row in state.WAVEFRONTS.values():
        lib.sg_set_formats(row.bank, formats.native_table(row.arch))
    lib.sg_layout.argtypes, lib.sg_layout.restype = [c_uint32], c_uint64
    return lib


@lru_cache(maxsize=1)
def c_handlers() -> dict[str, int]:
    """Addresses of the handlers written in C."""
    lib = library()
    return {name: ctypes.cast(getattr(lib, name), c_void_p).value or 0 for name in C_HANDLERS}
