"""Hardware registers and messages: what S_GETREG and S_SENDMSG_RTN read, what S_SETREG may change.

One table per generation, for both tiers: the reference reads it here, the C core gets it as an array
(`native_table`). Values are consistent with the launch and the same on every run.

The clock. A wave's time is a number of cycles: the launch's `RunOptions.clock`, plus its workgroup's number in
dispatch order (one workgroup starts a cycle), plus one for each instruction it executed, plus what it slept.
Waves that meet at a barrier go on at the time of the last to arrive. So time never runs backwards within a
wave or across a barrier, a workgroup that starts later never starts at an earlier time, and nothing depends on
how the emulator schedules. REALTIME is that time at `CYCLES_PER_REALTIME` cycles a tick.

The trap handler is the executor itself: STATUS says that there is one, TBA and TMA are 0.

Units:   bit positions; sizes in bytes.
Errors:  registers whose values nothing documents have no row: reading or writing them is Unmodelled.
Source:  ISA documents: RDNA3 and RDNA4, 3.4 "Wave State Registers" and "Send Message Types"; CDNA3 and CDNA4,
         3.4 to 3.13 and 5.8. Fields of GPR_ALLOC, LDS_ALLOC and IB_STS2 of RDNA: the kernel's gc_11_0_0 headers;
         units of LDS_ALLOC on RDNA and of GPR_ALLOC: its context-save handlers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

from stuntgpu.emu.launch import PYTHON_QUEUE, Launch, QueuePlace
from stuntgpu.emu.place import PLACES
from stuntgpu.isa.abi.descriptor import Rsrc1, Rsrc2, Rsrc3
from stuntgpu.isa.abi.targets import LDS_APERTURE, SCRATCH_APERTURE, round_up
from stuntgpu.isa.errors import Unmodelled

M32 = 0xFFFF_FFFF

#: Cycles of one tick of the constant clock: 100 MHz beside a shader clock of 2 GHz.
CYCLES_PER_REALTIME = 20


class Source(IntEnum):
    """Where a value comes from. Numbers as in emu/native/hwregs.c."""

    NONE = 0  # not modelled
    VALUE = 1  # the launch
    MODE = 2  # `mask`: the bits there are
    STATUS = 3  # the launch, and bits that move (`mask`: which of them)
    STATE_PRIV = 4  # the same of gfx12's second half of STATUS
    STORED = 5  # the wave keeps it; `mask`: bits a kernel can change
    PLACE = 6  # the launch, and fields that say where the wave runs
    SCRATCH_LO = 7
    SCRATCH_HI = 8
    CYCLES = 9  # `mask`: the bits there are
    CYCLES_HI = 10
    REALTIME = 11
    TIME = 12
    DISPATCH = 13  # the number of the launch


@dataclass(frozen=True, slots=True)
class Facts:
    """What of a launch the registers show."""

    rsrc1: int = 0
    rsrc2: int = 0
    rsrc3: int = 0
    wave_lanes: int = 64
    lds_bytes: int = 0
    has_scratch: bool = False
    queue: QueuePlace = PYTHON_QUEUE

    @classmethod
    def of(cls, launch: Launch) -> Facts:
        return cls(launch.rsrc1, launch.rsrc2, launch.rsrc3, launch.wave_lanes, launch.lds_bytes,
                   launch.scratch_wave_bytes > 0, launch.queue)


Value = Callable[[Facts], int]


def _zero(facts: Facts) -> int:
    return 0


@dataclass(frozen=True, slots=True)
class HwReg:
    """One register. `fields`: (name of a place, lowest bit, width); `index`: which of a wave's stored values."""

    name: str
    source: Source = Source.VALUE
    mask: int = M32
    value: Value = _zero
    fields: tuple[tuple[str, int, int], ...] = ()
    index: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Registers:
    """The table of a generation: hardware registers by number, then messages (see MESSAGES)."""

    rows: Mapping[int, HwReg]


# ---------------------------------------------------------------- bits that move

SCC, USER_PRIO, EXECZ, VCCZ, IN_GROUP, NO_VGPRS = 0, 3, 9, 10, 11, 24  # of STATUS; USER_PRIO is two bits
PRIV_BARRIER_COMPLETE, PRIV_SCC, PRIV_USER_PRIO = 2, 9, 12  # of STATE_PRIV
_MOVING = 1 << EXECZ | 1 << VCCZ | 1 << IN_GROUP
_TRAP_EN, _VALID = 1 << 6, 1 << 16


# ---------------------------------------------------------------- what launches say


@lru_cache(maxsize=1024)
def exceptions(rsrc2_bits: int) -> int:
    """The nine exception enables in RSRC2: float and integer, address watch, memory violation or end of wave."""
    rsrc2 = Rsrc2.from_int(rsrc2_bits)
    return rsrc2.exceptions | rsrc2.exception_address_watch << 7 | rsrc2.exception_memory << 8


def _status(scratch_bit: int) -> Value:
    def value(facts: Facts) -> int:
        rsrc1 = Rsrc1.from_int(facts.rsrc1)
        return _TRAP_EN | _VALID | rsrc1.priority << 1 | rsrc1.cdbg_user << 20 | facts.has_scratch << scratch_bit

    return value


def _status_gfx12(facts: Facts) -> int:
    return _TRAP_EN | _VALID | (facts.wave_lanes == 64) << 29


def _state_priv(facts: Facts) -> int:
    """dx10_clamp is where gfx12 has WG_RR_EN."""
    rsrc1 = Rsrc1.from_int(facts.rsrc1)
    return int(rsrc1.dx10_clamp) | rsrc1.priority << 10 | facts.has_scratch << 18


def _bases(facts: Facts) -> int:
    """SH_MEM_BASES: the high halves of the private and the shared aperture, in units of 2**48."""
    return SCRATCH_APERTURE >> 48 | LDS_APERTURE >> 48 << 16


def _gpr_alloc_rdna(facts: Facts) -> int:
    return Rsrc1.from_int(facts.rsrc1).vgprs << 12


def _gpr_alloc_cdna(facts: Facts) -> int:
    """Sizes are in steps of 4 VGPRs and 16 SGPRs, less one; RSRC1 counts in 8 and 8."""
    rsrc1 = Rsrc1.from_int(facts.rsrc1)
    offset = Rsrc3.from_int(facts.rsrc3).accum_offset
    return (2 * rsrc1.vgprs + 1) << 6 | (offset + 1 & 63) << 12 | rsrc1.sgprs // 2 << 24


def _lds_alloc(unit: int, block: int) -> Value:
    return lambda facts: round_up(facts.lds_bytes, block) // unit << 12


def _ib_sts2(facts: Facts) -> int:
    rsrc1 = Rsrc1.from_int(facts.rsrc1)
    return rsrc1.mem_ordered << 8 | rsrc1.fwd_progress << 10 | (facts.wave_lanes == 64) << 11


def _hw_id2(facts: Facts) -> int:
    q = facts.queue
    return q.queue | q.pipe << 4 | q.me << 8 | q.vmid << 24


def _hw_id_cdna(facts: Facts) -> int:
    q = facts.queue
    return q.pipe << 6 | q.vmid << 20 | q.queue << 24 | q.me << 30


#: One double lane of an RDNA SIMD: 1/32 of the single rate.
_DP_RATE = 1 << 29

# ---------------------------------------------------------------- the tables

_SNAPSHOT = "PERF_SNAPSHOT"  # only the wave that a sampler picked reads these; none runs here: 0
_ID1 = (("slot", 0, 5), ("simd", 8, 2), ("cu", 10, 4), ("sa", 16, 1), ("se", 18, 3))
_ID2 = (("group", 16, 5),)
_USER_EXCEPTIONS = 0x1FF
_WAVE_CYCLES = 0xF_FFFF

#: Messages with an answer share the table: number 128 is at 64.
MESSAGES = 64
FIRST_MESSAGE = 128
#: No message of hardware: the 64-bit clock of S_MEMTIME.
GET_TIME = 143

_RDNA_MESSAGES = {
    64: HwReg("MSG_RTN_GET_DOORBELL", value=lambda facts: facts.queue.doorbell),
    65: HwReg("MSG_RTN_GET_DDID", Source.DISPATCH),
    66: HwReg("MSG_RTN_GET_TMA"),
    67: HwReg("MSG_RTN_GET_REALTIME", Source.REALTIME),
    68: HwReg("MSG_RTN_SAVE_WAVE (of trap handlers only)", Source.NONE),
    69: HwReg("MSG_RTN_GET_TBA"),
    70: HwReg("MSG_RTN_GET_TBA_TO_PC (of trap handlers only)", Source.NONE),
}  # fmt: skip

GFX11 = Registers({
    1: HwReg("MODE", Source.MODE, 0x08BF_FFFF),
    2: HwReg("STATUS", Source.STATUS, _MOVING | 1 << SCC | 3 << USER_PRIO | 1 << NO_VGPRS, _status(29)),
    3: HwReg("TRAPSTS", Source.STORED, _USER_EXCEPTIONS),
    5: HwReg("GPR_ALLOC", value=_gpr_alloc_rdna),
    6: HwReg("LDS_ALLOC", value=_lds_alloc(512, 1024)),
    7: HwReg("IB_STS"),  # counters of what is outstanding; nothing ever is
    8: HwReg("PC_LO", Source.NONE), 9: HwReg("PC_HI", Source.NONE), 13: HwReg("IB_DBG1", Source.NONE),
    14: HwReg("FLUSH_IB"),
    15: HwReg("SH_MEM_BASES", value=_bases),
    16: HwReg("SHADER_TBA_LO"), 17: HwReg("SHADER_TBA_HI"),
    18: HwReg(f"{_SNAPSHOT}_PC_LO"), 19: HwReg(f"{_SNAPSHOT}_PC_HI"),
    20: HwReg("FLAT_SCRATCH_LO", Source.SCRATCH_LO), 21: HwReg("FLAT_SCRATCH_HI", Source.SCRATCH_HI),
    23: HwReg("HW_ID1", Source.PLACE, value=lambda facts: _DP_RATE, fields=_ID1),
    24: HwReg("HW_ID2", Source.PLACE, value=_hw_id2, fields=_ID2),
    25: HwReg("POPS_PACKER"),
    26: HwReg("SCHED_MODE", Source.STORED, 3, index=1),
    27: HwReg(f"{_SNAPSHOT}_DATA"),
    28: HwReg("IB_STS2", value=_ib_sts2),
    29: HwReg("SHADER_CYCLES", Source.CYCLES, _WAVE_CYCLES),
    **_RDNA_MESSAGES,
})  # fmt: skip

GFX12 = Registers({
    1: HwReg("MODE", Source.MODE, 0x0980_00FF),
    2: HwReg("STATUS", Source.STATUS, _MOVING | 1 << NO_VGPRS, _status_gfx12),
    4: HwReg("STATE_PRIV", Source.STATE_PRIV, value=_state_priv),
    5: HwReg("GPR_ALLOC", value=_gpr_alloc_rdna),
    6: HwReg("LDS_ALLOC", value=_lds_alloc(512, 1024)),
    7: HwReg("IB_STS", Source.NONE),
    10: HwReg(f"{_SNAPSHOT}_DATA"), 11: HwReg(f"{_SNAPSHOT}_PC_LO"), 12: HwReg(f"{_SNAPSHOT}_PC_HI"),
    15: HwReg(f"{_SNAPSHOT}_DATA1"), 16: HwReg(f"{_SNAPSHOT}_DATA2"),
    17: HwReg("EXCP_FLAG_PRIV"),  # nothing happened: what does is a fault
    18: HwReg("EXCP_FLAG_USER", Source.STORED, 0xC000_007F),
    19: HwReg("TRAP_CTRL", value=lambda facts: exceptions(facts.rsrc2)),
    20: HwReg("SCRATCH_BASE_LO", Source.SCRATCH_LO), 21: HwReg("SCRATCH_BASE_HI", Source.SCRATCH_HI),
    23: HwReg("HW_ID1", Source.PLACE, fields=_ID1),
    24: HwReg("HW_ID2", Source.PLACE, value=_hw_id2, fields=_ID2),
    26: HwReg("SCHED_MODE", Source.STORED, 3, index=1),
    28: HwReg("IB_STS2", Source.NONE),
    29: HwReg("SHADER_CYCLES_LO", Source.CYCLES), 30: HwReg("SHADER_CYCLES_HI", Source.CYCLES_HI),
    31: HwReg("DVGPR_ALLOC_LO", Source.NONE), 32: HwReg("DVGPR_ALLOC_HI", Source.NONE),
    **_RDNA_MESSAGES,
    71: HwReg("MSG_RTN_GET_SE_AID_ID", Source.PLACE, fields=(("se", 0, 4),)),
})  # fmt: skip


def _gfx9(lds_block: int) -> Registers:
    """lds_block: LDS is given out in blocks of so many bytes."""
    snapshot = f"SQ_{_SNAPSHOT}"
    debug = {8: "PC_LO", 9: "PC_HI", 10: "INST_DW0", 11: "INST_DW1", 12: "IB_DBG0", 13: "IB_DBG1"}
    return Registers({
        1: HwReg("MODE", Source.MODE, 0xFCBF_FBFF),
        2: HwReg("STATUS", Source.STATUS, _MOVING | 1 << SCC | 3 << USER_PRIO, _status(28)),
        3: HwReg("TRAPSTS", Source.STORED, _USER_EXCEPTIONS),
        4: HwReg("HW_ID", Source.PLACE, value=_hw_id_cdna, fields=(
            ("slot", 0, 4), ("simd", 4, 2), ("cu", 8, 4), ("se", 13, 3), ("group", 16, 4))),
        5: HwReg("GPR_ALLOC", value=_gpr_alloc_cdna),
        6: HwReg("LDS_ALLOC", value=_lds_alloc(256, lds_block)),
        7: HwReg("IB_STS"),
        **{number: HwReg(name, Source.NONE) for number, name in debug.items()},
        14: HwReg("FLUSH_IB"),
        15: HwReg("SH_MEM_BASES", value=_bases),
        16: HwReg("SQ_SHADER_TBA_LO"), 17: HwReg("SQ_SHADER_TBA_HI"),
        18: HwReg("SQ_SHADER_TMA_LO"), 19: HwReg("SQ_SHADER_TMA_HI"),
        20: HwReg("XCC_ID", Source.PLACE, fields=(("xcc", 0, 4),)),
        21: HwReg(f"{snapshot}_DATA"), 22: HwReg(f"{snapshot}_DATA1"),
        23: HwReg(f"{snapshot}_PC_LO"), 24: HwReg(f"{snapshot}_PC_HI"),
        64: HwReg("MSG_GET_DOORBELL", value=lambda facts: facts.queue.doorbell),
        67: HwReg("S_MEMREALTIME", Source.REALTIME),
        79: HwReg("S_MEMTIME", Source.TIME),
    })  # fmt: skip


GFX942, GFX950 = _gfx9(512), _gfx9(1280)


def unmodelled(arch: str, registers: Registers, row: int) -> Unmodelled:
    """The error of a register that is not there or has no value."""
    return _unmodelled(arch, f"hardware register {row}", registers.rows.get(row))


def unmodelled_message(arch: str, registers: Registers, number: int) -> Unmodelled:
    """The error of a message that is no request for data, or one that nothing answers."""
    row = number - FIRST_MESSAGE + MESSAGES
    return _unmodelled(arch, f"message {number} that returns data", registers.rows.get(row) if row >= MESSAGES else None)


def unmodelled_argument(arch: str, registers: Registers, argument: int) -> Unmodelled:
    """The error that the C core means: `argument` is a register's number, or with the top bit a message's."""
    if argument >> 31:
        return unmodelled_message(arch, registers, argument & (1 << 31) - 1)
    return unmodelled(arch, registers, argument)


def _unmodelled(arch: str, item: str, reg: HwReg | None) -> Unmodelled:
    return Unmodelled(arch, f"{item} ({reg.name})" if reg else item, "emu/hwregs.py")


# ---------------------------------------------------------------- for the C core

N_ROWS, N_FIELDS = 80, 8


class CHwReg(ctypes.Structure):
    """HwReg of emu/native/core.h; fields by the order of `place.PLACES`, width 0 none."""

    _fields_ = (
        ("source", ctypes.c_uint32), ("mask", ctypes.c_uint32), ("value", ctypes.c_uint32), ("index", ctypes.c_uint32),
        ("shift", ctypes.c_uint8 * N_FIELDS), ("width", ctypes.c_uint8 * N_FIELDS),
    )


@lru_cache(maxsize=256)
def native_table(registers: Registers, facts: Facts) -> ctypes.Array[CHwReg]:
    """N_ROWS rows; what the table does not have is Source.NONE."""
    out = (CHwReg * N_ROWS)()
    for number, reg in registers.rows.items():
        c = out[number]
        c.source, c.mask, c.value, c.index = reg.source, reg.mask, reg.value(facts), reg.index
        for name, low, width in reg.fields:
            c.shift[PLACES.index(name)], c.width[PLACES.index(name)] = low, width
    return out
