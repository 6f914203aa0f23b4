"""Kernel descriptors and AQL structures against the offsets of their documents, and real descriptors."""

from __future__ import annotations

import struct

from stuntgpu.isa.abi import codeobject
from stuntgpu.isa.abi.aql import (
    AqlHeader,
    FenceScope,
    HsaQueue,
    KernelDispatchPacket,
    PacketType,
)
from stuntgpu.isa.abi.descriptor import (
    CodeProperties,
    KernelDescriptor,
    Rsrc1,
    Rsrc2,
)
from tests.shared import shared_dir


def test_descriptor_fields_are_at_their_offsets() -> None:
    descriptor = KernelDescriptor(
        group_segment_size=1, private_segment_size=2, kernarg_size=3, entry_offset=-4, rsrc1=Rsrc1(vgprs=5),
        rsrc2=Rsrc2(user_sgprs=6), properties=CodeProperties(kernarg_segment_ptr=True), preload_length=7,
        preload_offset=8)
    assert descriptor.pack() == struct.pack("<3I4xq20x3IHH4x", 1, 2, 3, -4, 0, 5, 6 << 1, 8, 7 | 8 << 7)


def test_user_sgprs_are_listed_in_hardware_order() -> None:
    everything = CodeProperties.from_int(0x7F)
    assert list(everything.user_sgpr_slots()) == [
        ("private_segment_buffer", 4), ("dispatch_ptr", 2), ("queue_ptr", 2), ("kernarg_segment_ptr", 2),
        ("dispatch_id", 2), ("flat_scratch_init", 2), ("private_segment_size", 1)]
    assert list(CodeProperties(dispatch_id=True, dispatch_ptr=True).user_sgpr_slots()) == [
        ("dispatch_ptr", 2), ("dispatch_id", 2)]


def test_dispatch_packet_is_laid_out_as_hsa_says() -> None:
    header = AqlHeader(type=PacketType.KERNEL_DISPATCH, barrier=True, acquire=FenceScope.SYSTEM, release=FenceScope.SYSTEM)
    assert int(header) == 0x1502
    packet = KernelDispatchPacket(
        header=header, dimensions=3, workgroup_x=64, workgroup_y=2, workgroup_z=1, grid_x=128, grid_y=4, grid_z=2,
        private_segment_size=5, group_segment_size=6, kernel_object=7, kernarg_address=8, completion_signal=9)
    assert packet.pack() == struct.pack("<5H2x5I2Q8xQ", 0x1502, 3, 64, 2, 1, 128, 4, 2, 5, 6, 7, 8, 9)
    assert (packet.grid, packet.workgroup) == ((128, 4, 2), (64, 2, 1))


def test_queue_structure_has_its_indices_and_apertures_where_runtimes_look() -> None:
    queue = HsaQueue(write_dispatch_id=1, read_dispatch_id=2, group_aperture_hi=3, private_aperture_hi=4)
    data = queue.pack()
    assert struct.unpack_from("<QII", data, 0x38) == (1, 3, 4)
    assert struct.unpack_from("<Q", data, 0x80) == (2,)


def test_golden_descriptors_say_what_the_metadata_says() -> None:
    kernels = shared_dir() / "kernels" / "hsaco" / "gfx1100"
    spill = codeobject.read((kernels / "spill.hsaco").read_bytes()).kernels["spill"].descriptor
    assert (spill.private_segment_size, spill.rsrc2.scratch_en, spill.properties.wavefront_size32) == (272, True, True)
    grid = codeobject.read((kernels / "grid3d.hsaco").read_bytes()).kernels["grid3d"].descriptor
    assert (grid.rsrc2.workgroup_id_x, grid.rsrc2.workgroup_id_y, grid.rsrc2.workgroup_id_z) == (True, True, True)
    assert (grid.rsrc2.workitem_ids, grid.properties.dispatch_ptr, grid.kernarg_size) == (2, True, 272)
    assert (grid.rsrc1.float_mode, grid.rsrc1.float_denorm_32, grid.rsrc1.ieee_mode) == (0xF0, 3, True)
