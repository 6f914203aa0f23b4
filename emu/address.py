"""Effective addresses, by encoding, for the reference.

What a body calls ADDR is a byte address a `Load` or `Store` resolves later in the instruction's own
space: FLAT, GLOBAL and buffers a GPU VA; SCRATCH the flat address of the lane's private byte, so that
apertures and swizzle are in one place (`scratch_pieces`); DS a byte offset in the workgroup's LDS.

Units:   bytes; offsets are signed Python integers unless they say u32.
Source:  README "Hardware facts" of the ISA facts (FLAT/GLOBAL, DS, SMEM, MUBUF); buffer descriptor
         layout of the kernel's SQ_BUF_RSRC_WORD headers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from stuntgpu.isa.abi.targets import LDS_APERTURE, SCRATCH_APERTURE
from stuntgpu.isa.arch import ARCHES
from stuntgpu.isa.errors import Unmodelled

M32, M64 = 0xFFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF


def sign_extend(value: int, bits: int) -> int:
    """A field as a signed integer."""
    sign = 1 << (bits - 1)
    return (value ^ sign) - sign


# ---------------------------------------------------------------- FLAT, GLOBAL, SCRATCH


def flat(vaddr: int, offset: int) -> int:
    """FLAT and GLOBAL without SADDR: a 64-bit VADDR."""
    return (vaddr + offset) & M64


def global_saddr(saddr: int, vaddr: int, offset: int) -> int:
    """GLOBAL with SADDR: a 64-bit base and a 32-bit unsigned VADDR."""
    return (saddr + (vaddr & M32) + offset) & M64


def scratch(saddr: int, vaddr: int, offset: int) -> int:
    """SCRATCH: saddr and vaddr are u32 offsets, 0 when absent. The flat address of the lane's byte."""
    return SCRATCH_APERTURE + ((saddr + vaddr + offset) & M32)


def in_lds_aperture(address: int) -> bool:
    return address >> 32 == LDS_APERTURE >> 32


def in_scratch_aperture(address: int) -> bool:
    return address >> 32 == SCRATCH_APERTURE >> 32


def scratch_pieces(wave_va: int, lanes: int, lane: int, offset: int, size: int) -> Iterator[tuple[int, int]]:
    """(GPU VA, bytes) of a lane's private bytes [offset, offset + size): dword i of all lanes lies together."""
    while size > 0:
        n = min(size, 4 - offset % 4)
        yield wave_va + (offset // 4 * lanes + lane) * 4 + offset % 4, n
        offset, size = offset + n, size - n


# ---------------------------------------------------------------- SMEM


def scalar(base: int, soffset: int, offset: int, granule: int = 4) -> int:
    """S_LOAD: base and offsets, down to a multiple of `granule`."""
    return (base + soffset + offset) & M64 & -granule


# ---------------------------------------------------------------- buffers


#: Range checks of GFX9: bytes beyond the scalar offset; none.
RAW, UNCHECKED = 4, 5


@dataclass(frozen=True, slots=True)
class Buffer:
    """A V#: buffer resource descriptor (RDNA layout).

    stride        bytes; num_records counts bytes when it is 0 or check is 3, else records.
    check         OOB_SELECT: 0 index and offset, 1 index, 2 only emptiness, 3 bytes; GFX9: RAW, UNCHECKED.
    """

    base: int
    stride: int
    swizzled: bool
    num_records: int
    add_lane: bool
    check: int

    @classmethod
    def of(cls, words: int) -> Buffer:
        """From its 128 bits."""
        return cls(
            base=words & ((1 << 48) - 1),
            stride=words >> 48 & 0x3FFF,
            swizzled=bool(words >> 62 & 3),
            num_records=words >> 64 & M32,
            add_lane=bool(words >> 119 & 1),
            check=words >> 124 & 3,
        )


def buffer_of(arch: str, words: int, has_index: bool) -> Buffer:
    """The descriptor as an arch reads it. GFX9 has no OOB_SELECT: with a stride and an index the records
    are counted, else the bytes of instruction and VGPR offset; numbering lanes switches the check off.
    Of its two swizzle bits one is about caches only."""
    v = Buffer.of(words)
    if ARCHES[arch].dialect != "gfx9":
        return v
    check = UNCHECKED if v.add_lane and not has_index else 1 if v.stride and has_index else RAW
    return replace(v, swizzled=bool(words >> 63 & 1), check=check)


@dataclass(frozen=True, slots=True)
class BufferAccess:
    """One lane's place in a buffer: bytes outside [low, high) read 0 and are not written."""

    address: int
    low: int
    high: int


def buffer_access(arch: str, v: Buffer, soffset: int, index: int, offset: int) -> BufferAccess:
    """MUBUF/MTBUF address: base + soffset + stride * index + offset (instruction's plus VGPR's).

    Raises Unmodelled for swizzled buffers."""
    if v.swizzled:
        raise Unmodelled(arch, "swizzled buffer descriptors", "emu/address.py")
    address = (v.base + soffset + v.stride * index + offset) & M64
    everywhere, nowhere = (0, 1 << 64), (0, 0)
    if v.check in (RAW, 3):
        low = v.base + (soffset if v.check == RAW else 0)
        high = low + v.num_records
    elif v.check in (UNCHECKED, 2):
        low, high = everywhere if v.num_records or v.check == UNCHECKED else nowhere
    else:
        past = index >= v.num_records or (v.check == 0 and bool(v.stride) and offset >= v.stride)
        low, high = nowhere if past else everywhere
    return BufferAccess(address, low, high)


def scalar_buffer(v: Buffer, offset: int, granule: int = 4) -> BufferAccess:
    """S_BUFFER_LOAD: byte offset, limited to the buffer's bytes."""
    size = v.num_records * v.stride if v.stride else v.num_records
    return BufferAccess((v.base + offset) & M64 & -granule, v.base, v.base + size)


# ---------------------------------------------------------------- DS


def lds(vaddr: int, offset: int) -> int:
    """DS: 32 bits of VGPR plus offset; an address past the allocation reads 0 and drops writes."""
    return (vaddr + offset) & M32
