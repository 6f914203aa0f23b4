"""SDMA packets: built by runtime/, handled by mockdrivers/.

Units:   u32 dwords; field indices count from the header. Ring positions are bytes. Copy and fill
         counts are stored as bytes minus one, as the hardware wants them.
Errors:  PacketError names the packet, the dword and the value seen; Unmodelled a packet that
         hardware has and nothing here executes.
Source:  kernel sdma_v6_0_0_pkt_open.h (SDMA_PKT_*, SDMA_OP_*, SDMA_SUBOP_*).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NoReturn

from stuntgpu.isa.errors import Unmodelled
from stuntgpu.isa.fields import FieldError, bits, dword
from stuntgpu.isa.packets.base import Compare, Packet, PacketError, Ring, generation

__all__ = ["Compare", "PacketError", "Ring", "peek"]

UNIT = 4  # bytes per dword: ring positions are bytes
BROADCAST_BIT = 1 << 27
CODE_MASK = 0xFFFF  # op and sub_op of a header
ALL = (11, 12)

_TABLES: dict[int, dict[tuple[int, int, bool], type[SdmaPacket]]] = {g: {} for g in ALL}


class SdmaPacket(Packet):
    """Fields count from the header; op and sub_op are the class's."""

    OP: ClassVar[int] = 0
    SUB_OP: ClassVar[int] = 0
    FIXED_BITS: ClassVar[int] = 0

    def encode(self) -> tuple[int, ...]:
        first, *rest = self.body()
        return (first | self.OP | self.SUB_OP << 8 | self.FIXED_BITS, *rest)

    @property
    def size_dw(self) -> int:
        return self.SIZE_BYTES // 4 + len(self.tail)

    @classmethod
    def tail_dw(cls, words: tuple[int, ...]) -> int:
        """Dwords after the fixed ones, which `words` are; 0 for packets of fixed size."""
        return 0


def sdma(op: int, sub_op: int = 0, *, broadcast: bool = False,
         generations: tuple[int, ...] = ALL) -> Callable[[type[SdmaPacket]], type[SdmaPacket]]:
    """Class decorator: the packet with these codes."""

    def register(cls: type[SdmaPacket]) -> type[SdmaPacket]:
        cls.OP, cls.SUB_OP, cls.FIXED_BITS = op, sub_op, BROADCAST_BIT if broadcast else 0
        cls.NAME = "".join(f"_{c}" if c.isupper() else c for c in cls.__name__).strip("_").upper()
        for number in generations:
            _TABLES[number][op, sub_op, broadcast] = cls
        return cls

    return register


def packets(arch: str) -> dict[tuple[int, int, bool], type[SdmaPacket]]:
    """(op, sub_op, broadcast) -> packet class of an arch. Raises Unmodelled."""
    number = generation(arch)
    if number not in _TABLES:
        raise Unmodelled(arch, "SDMA packets", "isa/packets/sdma.py")
    return _TABLES[number]


def peek(ring: Ring, rptr: int) -> SdmaPacket:
    """Decode the packet at `rptr` without consuming it; it takes `packet.size_dw` dwords.

    ring    positions in bytes; a packet may wrap past the end.
    Raises  PacketError: unknown codes, meaningless field, or body reaching past wptr.
            Unmodelled: codes hardware has and nothing here executes.
    """
    header = ring.fetch(rptr, 1)[0]
    op, sub_op = header & 0xFF, header >> 8 & 0xFF
    is_broadcast = op == CopyLinear.OP and sub_op == CopyLinear.SUB_OP and bool(header & BROADCAST_BIT)
    cls = packets(ring.arch).get((op, sub_op, is_broadcast))
    if cls is None:
        _refuse(ring, rptr, header)
    return _decode(cls, ring, rptr, header)


def _refuse(ring: Ring, rptr: int, header: int) -> NoReturn:
    op, sub_op = header & 0xFF, header >> 8 & 0xFF
    name = UNBUILT.get((op, sub_op)) or UNBUILT.get((op, None))
    if name:
        raise Unmodelled(ring.arch, f"SDMA packet {name} (op {op}, sub-op {sub_op}) at 0x{rptr:x}",
                         "isa/packets/sdma.py")
    raise PacketError(f"unknown SDMA op {op}, sub-op {sub_op}", ring=ring.name, position=rptr, value=header)


def _decode(cls: type[SdmaPacket], ring: Ring, rptr: int, header: int) -> SdmaPacket:
    fixed = cls.SIZE_BYTES // 4
    try:
        words = ring.fetch(rptr, fixed)
        if cls.HAS_TAIL:
            words = ring.fetch(rptr, fixed + cls.tail_dw(words))
    except PacketError as error:
        raise PacketError(error.reason, ring=ring.name, packet=cls.NAME, position=rptr, value=header) from None
    try:
        return cls.from_body((header & ~(CODE_MASK | cls.FIXED_BITS), *words[1:]))
    except FieldError as error:
        raise PacketError(str(error), ring=ring.name, packet=cls.NAME, position=rptr, value=header) from None


# ---------------------------------------------------------------- the packets


@sdma(0)
class Nop(SdmaPacket, tail=True):
    """Skipped, with `count` dwords after it."""

    count = bits[0, 29:16]

    @classmethod
    def tail_dw(cls, words: tuple[int, ...]) -> int:
        return words[0] >> 16 & 0x3FFF


@sdma(1)
class CopyLinear(SdmaPacket):
    """`count` + 1 bytes from `src` to `dst`; `backwards` copies from the end down."""

    encrypt, tmz, cpv = bits[0, 16], bits[0, 18], bits[0, 19]
    backwards = bits[0, 25].flag()
    count = bits[1, 29:0]
    dst_swap, dst_cache_policy = bits[2, 17:16], bits[2, 20:18]
    src_swap, src_cache_policy = bits[2, 25:24], bits[2, 28:26]
    src, dst = dword[3:4], dword[5:6]


@sdma(1, broadcast=True)
class CopyBroadcast(SdmaPacket):
    """COPY_LINEAR to two places."""

    encrypt, tmz, cpv = bits[0, 16], bits[0, 18], bits[0, 19]
    count = bits[1, 29:0]
    dst2_swap, dst2_cache_policy = bits[2, 9:8], bits[2, 12:10]
    dst1_swap, dst1_cache_policy = bits[2, 17:16], bits[2, 20:18]
    src_swap, src_cache_policy = bits[2, 25:24], bits[2, 28:26]
    src, dst1, dst2 = dword[3:4], dword[5:6], dword[7:8]


@sdma(1, 4)
class CopyLinearSubwin(SdmaPacket):
    """A box of (rect + 1) elements between two pitched surfaces.

    element_log2   log2 of the bytes of an element; x, pitch and rect_x count elements.
    pitches        elements of a row (slice) minus one.
    """

    tmz, cpv = bits[0, 18], bits[0, 19]
    element_log2 = bits[0, 31:29]
    src = dword[1:2]
    src_x, src_y, src_z = bits[3, 13:0], bits[3, 29:16], bits[4, 12:0]
    src_pitch, src_slice_pitch = bits[4, 31:13], bits[5, 27:0]
    dst = dword[6:7]
    dst_x, dst_y, dst_z = bits[8, 13:0], bits[8, 29:16], bits[9, 12:0]
    dst_pitch, dst_slice_pitch = bits[9, 31:13], bits[10, 27:0]
    rect_x, rect_y, rect_z = bits[11, 13:0], bits[11, 29:16], bits[12, 12:0]
    dst_swap, dst_cache_policy = bits[12, 17:16], bits[12, 20:18]
    src_swap, src_cache_policy = bits[12, 25:24], bits[12, 28:26]


@sdma(2)
class WriteLinear(SdmaPacket, tail=True):
    """The tail's `count` + 1 dwords go to `dst`."""

    encrypt, tmz, cpv = bits[0, 16], bits[0, 18], bits[0, 28]
    dst = dword[1:2]
    count = bits[3, 19:0]
    swap, cache_policy = bits[3, 25:24], bits[3, 28:26]

    @classmethod
    def tail_dw(cls, words: tuple[int, ...]) -> int:
        return (words[3] & 0xF_FFFF) + 1


@sdma(4)
class Indirect(SdmaPacket):
    """Go on with `size` dwords at `base`, then come back. Its last dword ends on a multiple of eight."""

    vmid = bits[0, 19:16]
    privileged = bits[0, 31].flag()
    base = dword[1:2]
    size = bits[3, 19:0]
    csa = dword[4:5]


@sdma(5)
class Fence(SdmaPacket):
    """Write a dword when all earlier packets are done."""

    mtype = bits[0, 18:16]
    gcc, sys, snoop, gpa = bits[0, 19], bits[0, 20], bits[0, 22], bits[0, 23]
    l2_policy, llc_policy, cpv = bits[0, 25:24], bits[0, 26], bits[0, 28]
    addr = dword[1:2]
    data = dword[3]


@sdma(6)
class Trap(SdmaPacket):
    """Interrupt; `context` is the KFD event id."""

    context = bits[1, 27:0]


@sdma(8)
class PollRegmem(SdmaPacket):
    """Stand still until `function` of what is seen holds.

    hdp_flush   writes a flush request and waits until it is done; `addr` then holds two register
                offsets, `done_reg` and `request_reg`, in bytes.
    mem_poll    `addr` is memory, otherwise a register.
    """

    cache_policy, cpv = bits[0, 22:20], bits[0, 24]
    hdp_flush = bits[0, 26].flag()
    function = bits[0, 30:28].enum(Compare)
    mem_poll = bits[0, 31].flag()
    addr = dword[1:2]
    done_reg = dword[1].overlay()
    request_reg = dword[2].overlay()
    ref, mask = dword[3], dword[4]
    interval, retry_count = bits[5, 15:0], bits[5, 27:16]


@sdma(9)
class CondExe(SdmaPacket):
    """Skip `exec_count` dwords unless the dword at `addr` equals `reference`."""

    cache_policy, cpv = bits[0, 26:24], bits[0, 28]
    addr = dword[1:2]
    reference = dword[3]
    exec_count = bits[4, 13:0]


@sdma(10)
class Atomic(SdmaPacket):
    """One atomic operation; `atomic_op` is a TC_OP (see AtomicOp); `loop` repeats until it compares."""

    loop = bits[0, 16].flag()
    tmz, cache_policy, cpv = bits[0, 18], bits[0, 22:20], bits[0, 24]
    atomic_op = bits[0, 31:25]
    addr, src, compare = dword[1:2], dword[3:4], dword[5:6]
    loop_interval = bits[7, 12:0]


@sdma(11)
class ConstFill(SdmaPacket):
    """`count` + 1 bytes get `data`, of which an element of 1 << `fill_log2` bytes repeats."""

    swap, cache_policy, cpv = bits[0, 17:16], bits[0, 26:24], bits[0, 28]
    fill_log2 = bits[0, 31:30]
    dst = dword[1:2]
    data = dword[3]
    count = bits[4, 29:0]


@sdma(13, 2)
class TimestampGetGlobal(SdmaPacket):
    """Write the GPU's constant clock, 64 bits."""

    l2_policy, llc_policy, cpv = bits[0, 25:24], bits[0, 26], bits[0, 28]
    addr = dword[1:2]


@sdma(13, 1)
class TimestampGet(TimestampGetGlobal):
    """Write the engine's own clock; both are one here."""


@sdma(15)
class PreExe(SdmaPacket):
    """Only the engines of `device_mask` execute the next `exec_count` dwords."""

    device_mask = bits[0, 23:16]
    exec_count = bits[1, 13:0]


@sdma(17)
class GcrReq(SdmaPacket):
    """Write back or invalidate caches for a range."""

    base = bits[2 * 32 + 15 : 32 + 7]  # 128-byte lines
    control = bits[3 * 32 + 2 : 2 * 32 + 16]
    limit = bits[4 * 32 + 15 : 3 * 32 + 7]
    vmid = bits[4, 27:24]


@sdma(17, 1)
class UserGcr(GcrReq):
    """GCR_REQ from a user queue."""


#: Packets hardware has that nothing here executes: (op, sub_op or any) -> name.
UNBUILT: dict[tuple[int, int | None], str] = {
    (1, 1): "COPY_TILED", (1, 3): "COPY_SOA", (1, 5): "COPY_TILED_SUB_WIND", (1, 6): "COPY_T2T_SUB_WIND",
    (1, 7): "COPY_DIRTY_PAGE", (1, 8): "COPY_LINEAR_PHY", (1, 36): "COPY_LINEAR_SUB_WIND_LARGE",
    (1, 16): "COPY_LINEAR_BC", (1, 20): "COPY_LINEAR_SUB_WIND_BC", (2, 1): "WRITE_TILED", (7, None): "SEM",
    (8, 1): "POLL_REG_WRITE_MEM", (8, 2): "POLL_DBIT_WRITE_MEM", (8, 3): "POLL_MEM_VERIFY",
    (11, 1): "DATA_FILL_MULTI", (12, None): "PTEPDE", (13, 0): "TIMESTAMP_SET", (14, None): "SRBM_WRITE",
    (16, None): "GPUVM_INV", (32, None): "DUMMY_TRAP",
}  # fmt: skip
