"""From an AQL dispatch packet and the kernel descriptor it points at to what the hardware sets up.

This is the part of a command processor that AQL queues, the Python API and tests share: register
values, user SGPRs in their order, LDS and scratch sizes.

Units:   bytes; grid and workgroup in work-items.
Errors:  LaunchError for a dispatch the hardware would refuse, Unmodelled for set-ups not built.
"""

from __future__ import annotations

from dataclasses import dataclass

from stuntgpu.emu.launch import Launch
from stuntgpu.isa.abi.aql import KernelDispatchPacket
from stuntgpu.isa.abi.descriptor import KernelDescriptor
from stuntgpu.isa.abi.targets import Target, round_up, target
from stuntgpu.isa.abi.userdata import UserDataError, user_data
from stuntgpu.isa.errors import GuestFault, Unmodelled

MAX_WORKGROUP_ITEMS = 1024
#: Compatibility code that fills preloaded SGPRs by loads; hardware that preloads starts after it.
PRELOAD_PROLOGUE_BYTES = 256


class LaunchError(GuestFault):
    """A launch that cannot be: sizes, arguments or set-up; says which and why."""


@dataclass(frozen=True, slots=True)
class DispatchContext:
    """What a queue adds to the packet: where it lies, and the memory behind scratch.

    packet_va, queue_va   shown to kernels through their dispatch and queue pointers.
    kernarg               the kernel arguments' bytes, for kernels that want some preloaded.
    scratch_va            backing of at least `scratch_bytes(...)`, 0 when that is 0.
    """

    packet_va: int = 0
    queue_va: int = 0
    dispatch_id: int = 0
    kernarg: bytes = b""
    scratch_va: int = 0
    name: str = ""


def check_geometry(packet: KernelDispatchPacket) -> None:
    """Raises LaunchError for empty grids and workgroups that no compute unit can hold."""
    if 0 in packet.workgroup or 0 in packet.grid:
        raise LaunchError(f"empty dispatch: grid {packet.grid}, workgroup {packet.workgroup}")
    x, y, z = packet.workgroup
    if x * y * z > MAX_WORKGROUP_ITEMS:
        raise LaunchError(f"workgroup {packet.workgroup} has {x * y * z} work-items, at most {MAX_WORKGROUP_ITEMS}")


def n_waves(packet: KernelDispatchPacket, wave_lanes: int) -> int:
    """Waves of the whole dispatch, partial workgroups counted as full ones."""
    groups = 1
    for items, size in zip(packet.grid, packet.workgroup, strict=True):
        groups *= -(-items // size)
    x, y, z = packet.workgroup
    return groups * -(-x * y * z // wave_lanes)


def scratch_wave_bytes(arch: Target, packet: KernelDispatchPacket, wave_lanes: int) -> int:
    """Scratch of one wave, 0 when the kernel uses none."""
    return round_up(packet.private_segment_size * wave_lanes, arch.scratch_granule)


def scratch_bytes(arch: str, descriptor: KernelDescriptor, packet: KernelDispatchPacket) -> int:
    """Backing the whole dispatch needs at `scratch_va`."""
    row = target(arch)
    lanes = row.wave_lanes(descriptor.properties.wavefront_size32)
    return n_waves(packet, lanes) * scratch_wave_bytes(row, packet, lanes)


def launch_from_descriptor(arch: str, descriptor: KernelDescriptor, packet: KernelDispatchPacket,
                           context: DispatchContext) -> Launch:
    """The launch of `packet`, whose kernel_object holds `descriptor`. Raises LaunchError, Unmodelled."""
    check_geometry(packet)
    row = target(arch)
    lds = max(descriptor.group_segment_size, packet.group_segment_size)
    if lds > row.lds_max:
        raise LaunchError(f"kernel {context.name!r} needs {lds} bytes of LDS, a workgroup of {arch} has {row.lds_max}")
    if row.has_wave32 and descriptor.rsrc3.shared_vgprs:
        raise Unmodelled(arch, "VGPRs shared by the halves of a wave", "emu/descriptor_launch.py")
    lanes = row.wave_lanes(descriptor.properties.wavefront_size32)
    preloads = row.has_kernarg_preload and descriptor.preload_length
    entry = packet.kernel_object + descriptor.entry_offset + (PRELOAD_PROLOGUE_BYTES if preloads else 0)
    rsrc2 = descriptor.rsrc2.replace(lds_size=-(-lds // row.lds_granule))
    return Launch(
        entry=entry, rsrc1=int(descriptor.rsrc1), rsrc2=int(rsrc2), rsrc3=int(descriptor.rsrc3),
        user_sgprs=user_sgprs(row, descriptor, packet, context), grid=packet.grid, workgroup=packet.workgroup,
        wave_lanes=lanes, lds_bytes=lds, scratch_va=context.scratch_va,
        scratch_wave_bytes=scratch_wave_bytes(row, packet, lanes), name=context.name,
        dispatch_id=context.dispatch_id)


def user_sgprs(arch: Target, descriptor: KernelDescriptor, packet: KernelDispatchPacket,
               context: DispatchContext) -> tuple[int, ...]:
    """USER_DATA_0.. of the dispatch. Raises LaunchError, Unmodelled."""
    values = {
        "dispatch_ptr": context.packet_va, "queue_ptr": context.queue_va,
        "kernarg_segment_ptr": packet.kernarg_address, "dispatch_id": context.dispatch_id,
        "private_segment_size": packet.private_segment_size,
    }
    try:
        return user_data(arch, descriptor, values, context.kernarg)
    except UserDataError as e:
        raise LaunchError(f"kernel {context.name!r}: {e}") from e
