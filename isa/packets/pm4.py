"""PM4 packets of compute rings: built by runtime/, handled by mockdrivers/.

Units:   u32 dwords, header first; the header's count is body dwords minus one. Field indices count
         body dwords. Positions on the ring are dwords.
Errors:  PacketError names the packet, the dword and the value seen; Unmodelled a packet that
         hardware has and nothing here executes.
Source:  kernel nvd.h (PACKET3_*) for opcodes and control bits; pm4_mec enums of the same tree for
         RELEASE_MEM, COPY_DATA and ATOMIC_MEM selectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import ClassVar, NoReturn

from stuntgpu.isa.errors import Unmodelled
from stuntgpu.isa.fields import FieldError, bits, dword
from stuntgpu.isa.packets.base import Compare, Packet, PacketError, Ring, generation

__all__ = ["Compare", "PacketError", "Ring", "peek"]

TYPE2, TYPE3 = 2, 3
#: Count of a type-3 NOP that is its header alone.
NOP_HEADER_ONLY = 0x3FFF
ALL = (9, 11, 12)

_TABLES: dict[int, dict[int, type[Pm4Packet]]] = {g: {} for g in ALL}


class Pm4Packet(Packet):
    """A type-3 packet. `header` keeps bit 0 (predicate), bit 1 (compute shader) and the bits up to 7."""

    OPCODE: ClassVar[int] = 0
    HEADER_MASK = 0xFF

    def encode(self) -> tuple[int, ...]:
        body = self.body()
        return (pm4_header(self.OPCODE, len(body)) | self.header, *body)

    @property
    def size_dw(self) -> int:
        return 1 + self.SIZE_BYTES // 4 + len(self.tail)


def pm4_header(opcode: int, body_dw: int) -> int:
    """The first dword of a type-3 packet."""
    return TYPE3 << 30 | (body_dw - 1 & 0x3FFF) << 16 | opcode << 8


def pm4(opcode: int, *generations: int) -> Callable[[type[Pm4Packet]], type[Pm4Packet]]:
    """Class decorator: the packet with this opcode, on these generations (all without)."""

    def register(cls: type[Pm4Packet]) -> type[Pm4Packet]:
        cls.OPCODE = opcode
        cls.NAME = cls.NAME or _spelling(cls.__name__)
        for number in generations or ALL:
            _TABLES[number][opcode] = cls
        return cls

    return register


def _spelling(name: str) -> str:
    """WaitRegMem -> WAIT_REG_MEM, as the vendor writes it."""
    out = "".join(f"_{c}" if c.isupper() else c for c in name)
    return out.strip("_").upper()


def packets(arch: str) -> dict[int, type[Pm4Packet]]:
    """Opcode -> packet class of an arch."""
    return _TABLES[generation(arch)]


# ---------------------------------------------------------------- reading a ring


def peek(ring: Ring, rptr: int) -> Packet:
    """Decode the packet at `rptr` without consuming it; it takes `packet.size_dw` dwords.

    ring    dwords; a packet may wrap past the end.
    rptr    grows for ever.
    Raises  PacketError: unknown opcode, wrong length, meaningless field, or body reaching past wptr.
            Unmodelled: an opcode hardware has and nothing here executes.
    """
    header = ring.fetch(rptr, 1)[0]
    kind, opcode, count = header >> 30, header >> 8 & 0xFF, header >> 16 & 0x3FFF
    if kind == TYPE2:
        return Filler.from_body((), header & 0xFF)
    if kind != TYPE3:
        raise PacketError(f"packet type {kind}, a compute ring carries types 2 and 3", ring=ring.name,
                          position=rptr, value=header)
    if opcode == Nop.OPCODE and count == NOP_HEADER_ONLY:
        return HeaderNop.from_body((), header & 0xFF)
    cls = packets(ring.arch).get(opcode)
    if cls is None:
        _refuse_opcode(ring, rptr, header, opcode)
    return _decode(cls, ring, rptr, header, count + 1)


def _refuse_opcode(ring: Ring, rptr: int, header: int, opcode: int) -> NoReturn:
    if opcode in UNBUILT:
        raise Unmodelled(ring.arch, f"PM4 packet {UNBUILT[opcode]} (opcode 0x{opcode:02x}) at 0x{rptr:x}",
                         "isa/packets/pm4.py")
    raise PacketError(f"unknown PM4 opcode 0x{opcode:02x}", ring=ring.name, position=rptr, value=header)


def _decode(cls: type[Pm4Packet], ring: Ring, rptr: int, header: int, body_dw: int) -> Pm4Packet:
    fixed = cls.SIZE_BYTES // 4
    if body_dw < fixed or (body_dw > fixed and not cls.HAS_TAIL):
        wanted = f"{fixed} or more" if cls.HAS_TAIL else str(fixed)
        raise PacketError(f"body of {body_dw} dwords, expected {wanted}", ring=ring.name, packet=cls.NAME,
                          position=rptr, value=header)
    try:
        body = ring.fetch(rptr, 1 + body_dw)[1:]
    except PacketError as error:
        raise PacketError(error.reason, ring=ring.name, packet=cls.NAME, position=rptr, value=header) from None
    try:
        return cls.from_body(body, header & 0xFF)
    except FieldError as error:
        at, value = _first_bad(cls, body)
        raise PacketError(str(error), ring=ring.name, packet=cls.NAME, position=rptr, dword=at + 1,
                          value=value) from None


def _first_bad(cls: type[Pm4Packet], body: Sequence[int]) -> tuple[int, int]:
    """(body dword, its value) of the first field that cannot be decoded."""
    word = sum(value << 32 * i for i, value in enumerate(body[: cls.SIZE_BYTES // 4]))
    for field in cls.FIELDS.values():
        try:
            field.decode((word & field.mask) >> field.lo)
        except FieldError:
            return field.lo // 32, body[field.lo // 32]
    return 0, body[0]


# ---------------------------------------------------------------- padding and control flow


class Filler(Pm4Packet):
    """A type-2 packet: one dword of padding."""

    NAME = "TYPE2"

    def encode(self) -> tuple[int, ...]:
        return (TYPE2 << 30 | self.header,)


@pm4(0x10)
class Nop(Pm4Packet, tail=True):
    """Skipped with its body (one dword at least)."""

    ignored = dword[0]


class HeaderNop(Pm4Packet):
    """A NOP whose count says it has no body."""

    NAME = "NOP"

    def encode(self) -> tuple[int, ...]:
        return (pm4_header(Nop.OPCODE, NOP_HEADER_ONLY + 1) | self.header,)


class MemSpace(Enum):
    REGISTER = 0
    MEMORY = 1


class WaitOperation(Enum):
    """WAIT_REG_MEM_OPERATION: wait, or write one register and wait for another."""

    WAIT = 0
    WRITE_THEN_WAIT = 1


@pm4(0x3C)
class WaitRegMem(Pm4Packet):
    """Stand still until `function` of what is seen holds.

    WRITE_THEN_WAIT writes `ref` to register `reg` and waits for register `reg2` (the HDP flush pair).
    """

    function = bits[0, 2:0].enum(Compare)
    mem_space = bits[0, 5:4].enum(MemSpace)
    operation = bits[0, 7:6].enum(WaitOperation)
    engine = bits[0, 9:8]
    addr = dword[1:2]
    reg = dword[1].overlay()
    reg2 = dword[2].overlay()
    ref, mask = dword[3], dword[4]
    poll_interval = bits[5, 15:0]


@pm4(0x93)
class WaitRegMem64(Pm4Packet):
    """WAIT_REG_MEM on 64 bits."""

    function = bits[0, 2:0].enum(Compare)
    mem_space = bits[0, 5:4].enum(MemSpace)
    operation = bits[0, 7:6].enum(WaitOperation)
    engine = bits[0, 9:8]
    addr, ref, mask = dword[1:2], dword[3:4], dword[5:6]
    poll_interval = bits[7, 15:0]


@pm4(0x3F)
class IndirectBuffer(Pm4Packet):
    """Go on with the packets at `addr`; `chain` leaves the present buffer for good."""

    addr = dword[0:1]
    size_dw_field = bits[2, 19:0]
    chain = bits[2, 20].flag()
    pre_enable = bits[2, 21].flag()
    valid = bits[2, 23].flag()
    vmid = bits[2, 27:24]
    cache_policy = bits[2, 29:28]


@pm4(0x22)
class CondExec(Pm4Packet):
    """Skip `exec_count` dwords when the dword at `addr` is zero."""

    addr = dword[0:1]
    control = dword[2]
    exec_count = bits[3, 13:0]


@pm4(0x23)
class PredExec(Pm4Packet):
    """Only the dies of `device_mask` execute the next `exec_count` dwords."""

    exec_count = bits[0, 13:0]
    device_mask = bits[0, 31:24]


@pm4(0x12)
class ClearState(Pm4Packet):
    command = bits[0, 3:0]


@pm4(0x28)
class ContextControl(Pm4Packet):
    load_control, shadow_control = dword[0], dword[1]


@pm4(0x42)
class PfpSyncMe(Pm4Packet):
    """Prefetch waits for the main engine; both are one here."""

    ignored = dword[0]


# ---------------------------------------------------------------- registers


class _SetRegisters(Pm4Packet, tail=True):
    """Consecutive registers get the dwords of the tail."""

    offset = bits[0, 15:0]  # dwords from the block's first register
    index = bits[0, 31:28]


@pm4(0x76)
class SetShReg(_SetRegisters):
    """Registers from SH_BASE on: COMPUTE_*."""


@pm4(0x9B)
class SetShRegIndex(_SetRegisters):
    """SET_SH_REG for registers with several faces; `index` 3 combines with the kernel's CU mask."""


@pm4(0x79)
class SetUconfigReg(_SetRegisters):
    """Registers from UCONFIG_BASE on."""


@pm4(0x7A)
class SetUconfigRegIndex(_SetRegisters):
    """SET_UCONFIG_REG with an index."""


# ---------------------------------------------------------------- dispatch


@pm4(0x15)
class DispatchDirect(Pm4Packet):
    """Run the kernel the COMPUTE_* registers describe; `initiator` is COMPUTE_DISPATCH_INITIATOR."""

    dim_x, dim_y, dim_z = dword[0], dword[1], dword[2]
    initiator = dword[3]


@pm4(0x16)
class DispatchIndirect(Pm4Packet):
    """DISPATCH_DIRECT with the three sizes read from memory (the compute engine's form)."""

    addr = dword[0:1]
    initiator = dword[2]


# ---------------------------------------------------------------- caches and events


class Gcr(Enum):
    """Bit numbers of a GCR_CNTL: which caches are written back or invalidated."""

    GLM_WB = 4
    GLM_INV = 5
    GLK_WB = 6
    GLK_INV = 7
    GLV_INV = 8
    GL1_INV = 9
    GL2_INV = 14
    GL2_WB = 15


def gcr(*actions: Gcr, instructions: bool = False) -> int:
    """A GCR_CNTL of these actions; `instructions` invalidates the instruction caches too."""
    return sum(1 << a.value for a in actions) | int(instructions)


@pm4(0x58, 11, 12)
class AcquireMem(Pm4Packet):
    """Make what others wrote to [base, base + size) visible from here on."""

    size = bits[95:32]  # in 256-byte steps, low dword first
    base = bits[159:96]
    coher_control = dword[0]
    poll_interval = bits[5, 15:0]
    gcr_control = bits[6, 18:0]


class DataSel(Enum):
    """What RELEASE_MEM writes."""

    NONE = 0
    LOW_32 = 1
    ALL_64 = 2
    GPU_CLOCK = 3
    PERF_COUNTER = 4
    GDS = 5


class IntSel(Enum):
    """When RELEASE_MEM interrupts."""

    NONE = 0
    INTERRUPT_ONLY = 1
    AFTER_WRITE = 2
    DATA_AFTER_WRITE = 3
    UNCONDITIONAL = 4
    IF_EQUAL_32 = 5
    IF_EQUAL_64 = 6


class ReleaseDst(Enum):
    MEMORY = 0
    L2 = 1


@pm4(0x49, 11, 12)
class ReleaseMem(Pm4Packet):
    """When all earlier work is done: flush, write, interrupt. `int_ctxid` is the KFD event id."""

    event_type = bits[0, 5:0]
    event_index = bits[0, 11:8]
    gcr_control = bits[0, 24:12]
    cache_policy = bits[0, 26:25]
    execute = bits[0, 28].flag()
    dst_sel = bits[1, 17:16].enum(ReleaseDst)
    int_sel = bits[1, 26:24].enum(IntSel)
    data_sel = bits[1, 31:29].enum(DataSel)
    addr, data = dword[2:3], dword[4:5]
    int_ctxid = dword[6]


CACHE_FLUSH_AND_INV_TS_EVENT = 0x14
CS_PARTIAL_FLUSH = 0x07
END_OF_PIPE = 5
PARTIAL_FLUSH_INDEX = 4


@pm4(0x46)
class EventWrite(Pm4Packet, tail=True):
    """An event in the pipeline; the tail is an address for events that sample something."""

    event_type = bits[0, 5:0]
    event_index = bits[0, 11:8]


# ---------------------------------------------------------------- data


class WriteDst(Enum):
    """WRITE_DATA_DST_SEL"""

    REGISTER = 0
    MEMORY_SYNC = 1
    L2 = 2
    GDS = 3
    MEMORY = 5


@pm4(0x37)
class WriteData(Pm4Packet, tail=True):
    """The tail's dwords go to memory or registers; `one_addr` writes them all to the same place."""

    dst_sel = bits[0, 11:8].enum(WriteDst)
    one_addr = bits[0, 16].flag()
    confirm = bits[0, 20].flag()
    cache_policy = bits[0, 26:25]
    engine = bits[0, 31:30]
    addr = dword[1:2]


class CopySrc(Enum):
    """COPY_DATA SRC_SEL"""

    REGISTER = 0
    MEMORY_OBSOLETE = 1
    MEMORY = 2
    GDS = 3
    PERF_COUNTER = 4
    IMMEDIATE = 5
    ATOMIC_RETURN = 6
    GPU_CLOCK = 9
    SYSTEM_CLOCK = 10


class CopyDst(Enum):
    """COPY_DATA DST_SEL"""

    REGISTER = 0
    MEMORY = 2
    GDS = 3
    PERF_COUNTER = 4
    MEMORY_OBSOLETE = 5


@pm4(0x40)
class CopyData(Pm4Packet):
    """One or two dwords from somewhere to somewhere."""

    src_sel = bits[0, 3:0].enum(CopySrc)
    dst_sel = bits[0, 11:8].enum(CopyDst)
    src_cache_policy = bits[0, 14:13]
    is_64 = bits[0, 16].flag()
    confirm = bits[0, 20].flag()
    dst_cache_policy = bits[0, 26:25]
    src, dst = dword[1:2], dword[3:4]


class DmaDst(Enum):
    """DMA_DATA DST_SEL"""

    ADDRESS = 0
    GDS = 1
    L2 = 3


class DmaSrc(Enum):
    """DMA_DATA SRC_SEL"""

    ADDRESS = 0
    GDS = 1
    DATA = 2
    L2 = 3


@pm4(0x50)
class DmaData(Pm4Packet):
    """Copy `byte_count` bytes, or fill them with the dword `src`."""

    engine = bits[0, 0]
    src_cache_policy = bits[0, 14:13]
    dst_sel = bits[0, 21:20].enum(DmaDst)
    dst_cache_policy = bits[0, 26:25]
    src_sel = bits[0, 30:29].enum(DmaSrc)
    cp_sync = bits[0, 31].flag()
    src, dst = dword[1:2], dword[3:4]
    byte_count = bits[5, 25:0]
    src_is_register = bits[5, 26].flag()
    dst_is_register = bits[5, 27].flag()
    src_fixed = bits[5, 28].flag()
    dst_fixed = bits[5, 29].flag()
    raw_wait = bits[5, 30].flag()


class AtomicCommand(Enum):
    SINGLE_PASS = 0
    LOOP = 1
    WAIT_CONFIRM = 2
    SEND_AND_CONTINUE = 3


@pm4(0x1E)
class AtomicMem(Pm4Packet):
    """One atomic operation; `atomic` is a TC_OP (see AtomicOp)."""

    atomic = bits[0, 6:0]
    command = bits[0, 11:8].enum(AtomicCommand)
    cache_policy = bits[0, 26:25]
    addr, src, compare = dword[1:2], dword[3:4], dword[5:6]
    loop_interval = bits[7, 12:0]


#: Packets hardware has that nothing here executes: opcode -> name.
UNBUILT = {
    0x11: "SET_BASE", 0x1D: "ATOMIC_GDS", 0x20: "SET_PREDICATION", 0x21: "REG_RMW", 0x32: "INDIRECT_BUFFER_PRIV",
    0x39: "MEM_SEMAPHORE", 0x41: "CP_DMA", 0x45: "COND_WRITE", 0x47: "EVENT_WRITE_EOP", 0x48: "EVENT_WRITE_EOS",
    0x49: "RELEASE_MEM", 0x58: "ACQUIRE_MEM", 0x59: "REWIND", 0x5A: "INTERRUPT", 0x5B: "GEN_PDEPTE",
    0x5C: "INDIRECT_BUFFER_PASID", 0x5D: "PRIME_UTCL2", 0x5E: "LOAD_UCONFIG_REG", 0x5F: "LOAD_SH_REG",
    0x60: "LOAD_CONFIG_REG", 0x61: "LOAD_CONTEXT_REG", 0x62: "LOAD_COMPUTE_STATE", 0x63: "LOAD_SH_REG_INDEX",
    0x68: "SET_CONFIG_REG", 0x69: "SET_CONTEXT_REG", 0x77: "SET_SH_REG_OFFSET", 0x78: "SET_QUEUE_REG",
    0x90: "FRAME_CONTROL", 0x94: "COND_PREEMPT", 0x95: "HDP_FLUSH", 0x96: "COPY_DATA_RB",
    0x98: "INVALIDATE_TLBS", 0x99: "AQL_PACKET", 0x9A: "DMA_DATA_FILL_MULTI", 0xA0: "SET_RESOURCES",
    0xA1: "MAP_PROCESS", 0xA2: "MAP_QUEUES", 0xA3: "UNMAP_QUEUES", 0xA4: "QUERY_STATUS", 0xA5: "RUN_LIST",
}  # fmt: skip
