"""AQL: the 64-byte packets of an HSA queue and the queue's own structure.

Units:   bytes; grid in work-items.
Source:  HSA runtime programmer's reference (hsa_kernel_dispatch_packet_t), amd_hsa_queue.h layout.
"""

from __future__ import annotations

from enum import Enum

from stuntgpu.isa.fields import BitStruct, bits, u16, u32, u64


class PacketType(Enum):
    """Header bits 7:0."""

    VENDOR_SPECIFIC = 0
    INVALID = 1
    KERNEL_DISPATCH = 2
    BARRIER_AND = 3
    AGENT_DISPATCH = 4
    BARRIER_OR = 5


class FenceScope(Enum):
    """Acquire and release scopes of a header."""

    NONE = 0
    AGENT = 1
    SYSTEM = 2


class AqlHeader(BitStruct, size=2):
    """The first 16 bits of every packet."""

    type = bits[7:0].enum(PacketType)
    barrier = bits[8].flag()
    acquire = bits[10:9].enum(FenceScope)
    release = bits[12:11].enum(FenceScope)


class KernelDispatchPacket(BitStruct, size=64):
    """hsa_kernel_dispatch_packet_t; also what a kernel's dispatch pointer shows it."""

    header = u16[0].of(AqlHeader)
    dimensions = bits[17:16]
    workgroup_x, workgroup_y, workgroup_z = u16[4], u16[6], u16[8]
    grid_x, grid_y, grid_z = u32[12], u32[16], u32[20]
    private_segment_size = u32[24]  # of one work-item
    group_segment_size = u32[28]  # static and dynamic LDS of a workgroup
    kernel_object = u64[32]  # GPU VA of the kernel descriptor
    kernarg_address = u64[40]
    completion_signal = u64[56]

    @property
    def workgroup(self) -> tuple[int, int, int]:
        """Work-items of a workgroup in x, y, z."""
        return self.workgroup_x, self.workgroup_y, self.workgroup_z

    @property
    def grid(self) -> tuple[int, int, int]:
        """Work-items in x, y, z."""
        return self.grid_x, self.grid_y, self.grid_z


class HsaQueue(BitStruct, size=256):
    """amd_queue_t; a kernel's queue pointer shows it."""

    type, features = u32[0x00], u32[0x04]
    base_address = u64[0x08]
    doorbell_signal = u64[0x10]
    size = u32[0x18]  # packets
    id = u64[0x20]
    write_dispatch_id = u64[0x38]
    group_aperture_hi = u32[0x40]  # high 32 bits of the LDS aperture
    private_aperture_hi = u32[0x44]  # high 32 bits of the scratch aperture
    max_cu_id, max_wave_id = u32[0x48], u32[0x4C]
    read_dispatch_id = u64[0x80]
    read_dispatch_id_offset = u32[0x88]  # of read_dispatch_id in this structure
    compute_tmpring_size = u32[0x8C]
    scratch_descriptor = bits[0xA0 * 8 - 1 : 0x90 * 8]  # V# of the private segment, 128 bits
    scratch_backing = u64[0xA0]
    scratch_lane_bytes = u32[0xB0]  # of one lane of a wave of 64
    queue_properties = u32[0xB4]
    queue_inactive_signal = u64[0xC0]
