"""A kernel loaded on a device, and the packets of its dispatches.

Units:   bytes; `global_size` in workgroups, `local_size` and `grid` in work-items.
Errors:  ArgumentError for calls that cannot be, CodeObjectError for objects that cannot be loaded.
Source:  AMDGPU back-end user guide for what a kernel finds at its start; isa/regs for registers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stuntgpu.isa.abi import kernarg
from stuntgpu.isa.abi.aql import AqlHeader, KernelDispatchPacket, PacketType
from stuntgpu.isa.abi.codeobject import KernelArg, KernelInfo
from stuntgpu.isa.abi.targets import round_up, target
from stuntgpu.isa.abi.userdata import user_data
from stuntgpu.isa.packets import pm4
from stuntgpu.isa.packets.base import Packet
from stuntgpu.isa.regs import gfx11
from stuntgpu.runtime.buffer import Buffer
from stuntgpu.runtime.errors import ArgumentError

if TYPE_CHECKING:
    from stuntgpu.runtime.device import Device

Triple = tuple[int, int, int]
MAX_WORKGROUP_ITEMS = 1024
MASK32 = 0xFFFF_FFFF


@dataclass(frozen=True, slots=True)
class Call:
    """A launch as the caller asked for it: grid and workgroup in work-items, argument values, extra LDS."""

    grid: Triple
    workgroup: Triple
    values: tuple[bytes, ...]
    shared: int


class Program:
    """A kernel of a code object in device memory; call it to launch."""

    def __init__(self, device: Device, info: KernelInfo, image: Buffer) -> None:
        self.device, self.info, self._image = device, info, image
        self._target = target(device.arch)
        self._lanes = self._target.wave_lanes(info.descriptor.properties.wavefront_size32)

    @property
    def name(self) -> str:
        return self.info.name

    def __call__(self, *args: object, global_size: Sequence[int] = (), local_size: Sequence[int] = (256,),
                 grid: Sequence[int] = (), shared: int = 0, wait: bool = False) -> None:
        """Launch behind everything submitted before; `wait` for it, else `Device.synchronize` does.

        args         Buffers of this device (or None, or a GPU VA as np.uint64) and numpy scalars, in order.
        global_size  workgroups; or give `grid`, work-items, whose last workgroups may be partial.
        shared       LDS bytes of a workgroup on top of the kernel's own.
        """
        workgroup = _triple(local_size, "local_size")
        if bool(global_size) == bool(grid):
            raise ArgumentError(f"kernel {self.name!r}: give either global_size (workgroups) or grid (work-items)")
        groups = _triple(global_size or grid, "global_size" if global_size else "grid")
        items = _scaled(groups, workgroup) if global_size else groups
        self._check(workgroup, shared)
        values = tuple(self._value(i, arg, value) for i, (arg, value) in enumerate(self._paired(args)))
        call = Call(items, workgroup, values, shared)
        for piece in kernarg.pieces(self.info, items, workgroup):
            self.device.submit_pm4(self._dispatch(call, piece))
        if wait:
            self.device.synchronize()

    # ---- arguments

    def _check(self, workgroup: Triple, shared: int) -> None:
        x, y, z = workgroup
        limit = min(self.info.max_workgroup_items, MAX_WORKGROUP_ITEMS)
        if x * y * z > limit:
            raise ArgumentError(f"kernel {self.name!r}: local_size {workgroup} has {x * y * z} work-items, at most {limit}")
        required = self.info.required_workgroup
        if required and workgroup != required:
            raise ArgumentError(f"kernel {self.name!r}: local_size {workgroup}, it was compiled for {required}")
        lds = self.info.descriptor.group_segment_size + shared
        if lds > self._target.lds_max:
            raise ArgumentError(f"kernel {self.name!r}: {lds} bytes of LDS, a workgroup has {self._target.lds_max}")

    def _paired(self, args: tuple[object, ...]) -> Iterator[tuple[KernelArg, object]]:
        wanted = self.info.explicit_args
        if len(args) != len(wanted):
            raise ArgumentError(f"kernel {self.name!r} takes {len(wanted)} arguments, got {len(args)}")
        return zip(wanted, args, strict=True)

    def _value(self, i: int, arg: KernelArg, value: object) -> bytes:
        where = f"kernel {self.name!r}, {kernarg.label(self.info, i)}"
        if arg.kind == "global_buffer":
            return self._address(where, value).to_bytes(arg.size, "little")
        if arg.kind != "by_value":
            raise ArgumentError(f"{where}: arguments of kind {arg.kind!r} cannot be passed")
        if not isinstance(value, np.generic):
            raise ArgumentError(f"{where}: {type(value).__name__}, it takes a numpy scalar of {arg.size} bytes")
        raw = value.tobytes()
        if len(raw) != arg.size:
            raise ArgumentError(f"{where}: numpy {value.dtype} has {len(raw)} bytes, it takes {arg.size}")
        return raw

    def _address(self, where: str, value: object) -> int:
        if value is None:
            return 0
        if isinstance(value, np.uint64):
            return int(value)
        if not isinstance(value, Buffer):
            raise ArgumentError(f"{where}: {type(value).__name__}, it takes a Buffer (Device.copyin), None, or an "
                                "address as np.uint64")
        if value.is_freed:
            raise ArgumentError(f"{where}: the buffer was freed")
        if not self.device.owns(value):
            raise ArgumentError(f"{where}: the buffer belongs to another device")
        return value.va

    # ---- packets

    def _dispatch(self, call: Call, piece: kernarg.Piece) -> Iterator[Packet]:
        """Everything between the timeline's wait and its signal."""
        kernarg_va, packet_va = self._arguments(call, piece)
        d = self.info.descriptor
        user = user_data(self._target, d, {
            "dispatch_ptr": packet_va, "queue_ptr": self.device.queue_struct_va, "kernarg_segment_ptr": kernarg_va,
            "dispatch_id": self.device.timeline.next, "private_segment_size": d.private_segment_size,
        })  # fmt: skip
        lds = -(-(d.group_segment_size + call.shared) // self._target.lds_granule)
        yield pm4.AcquireMem(size=(1 << 64) - 1, poll_interval=0,
                             gcr_control=pm4.gcr(*pm4.Gcr, instructions=True))
        yield _set(gfx11.COMPUTE_PGM_LO, *_halves(self._image.va + self.info.entry_vaddr >> 8))
        yield _set(gfx11.COMPUTE_PGM_RSRC1, int(d.rsrc1), int(d.rsrc2.replace(lds_size=lds)))
        yield _set(gfx11.COMPUTE_PGM_RSRC3, int(d.rsrc3))
        yield from self._scratch()
        yield _set(gfx11.COMPUTE_RESOURCE_LIMITS, 0)
        yield _set(gfx11.COMPUTE_START_X, *piece.start, *_threads(piece))
        if user:
            yield _set(gfx11.COMPUTE_USER_DATA_0, *user)
        yield self._direct(piece)
        yield pm4.EventWrite(event_type=pm4.CS_PARTIAL_FLUSH, event_index=pm4.PARTIAL_FLUSH_INDEX)

    def _direct(self, g: kernarg.Piece) -> Packet:
        """The packet's sizes are the ids where the dispatch ends, not counts."""
        x, y, z = (s + -(-n // w) for s, n, w in zip(g.start, g.grid, g.workgroup, strict=True))
        initiator = gfx11.DispatchInitiator(
            compute_shader_en=True, force_start_at_000=not any(g.start), cs_w32_en=self._lanes == 32,
            partial_tg_en=any(n % w for n, w in zip(g.grid, g.workgroup, strict=True)))
        return pm4.DispatchDirect(dim_x=x, dim_y=y, dim_z=z, initiator=int(initiator))

    def _arguments(self, call: Call, piece: kernarg.Piece) -> tuple[int, int]:
        """(GPU VA of the kernel arguments, of the AQL packet that describes the dispatch to the kernel)."""
        d, device = self.info.descriptor, self.device
        described = kernarg.Dispatch(grid=piece.hidden_grid, workgroup=piece.workgroup,
                                     dynamic_lds_bytes=call.shared, queue_va=device.queue_struct_va)
        segment = kernarg.pack(self.info, call.values, described)
        kernarg_va = device.put_arguments(segment) if segment else 0
        wx, wy, wz = call.workgroup
        gx, gy, gz = call.grid
        packet = KernelDispatchPacket(
            header=AqlHeader(type=PacketType.KERNEL_DISPATCH), dimensions=3 if gz > 1 else 2 if gy > 1 else 1,
            workgroup_x=wx, workgroup_y=wy, workgroup_z=wz, grid_x=gx, grid_y=gy, grid_z=gz,
            private_segment_size=d.private_segment_size, group_segment_size=d.group_segment_size + call.shared,
            kernel_object=self._image.va + self.info.descriptor_vaddr, kernarg_address=kernarg_va)
        return kernarg_va, device.put_arguments(packet.pack())

    def _scratch(self) -> Iterator[Packet]:
        wave_bytes = round_up(self.info.descriptor.private_segment_size * self._lanes, self._target.scratch_granule)
        if not wave_bytes:
            yield _set(gfx11.COMPUTE_TMPRING_SIZE, 0)
            return
        va, waves = self.device.scratch(wave_bytes)
        size = gfx11.TmpringSize(waves=waves, wave_size=wave_bytes // self._target.scratch_granule)
        yield _set(gfx11.COMPUTE_TMPRING_SIZE, int(size))
        yield _set(gfx11.COMPUTE_DISPATCH_SCRATCH_BASE_LO, *_halves(va >> 8))


def _set(register: int, *values: int) -> Packet:
    return pm4.SetShReg(offset=register - gfx11.SH_BASE, tail=values)


def _halves(value: int) -> tuple[int, int]:
    return value & MASK32, value >> 32


def _threads(g: kernarg.Piece) -> Iterator[int]:
    """COMPUTE_NUM_THREAD_X, Y, Z."""
    for items, full in zip(g.grid, g.workgroup, strict=True):
        yield int(gfx11.NumThread(full=full, partial=items % full or full))


def _scaled(groups: Triple, workgroup: Triple) -> Triple:
    x, y, z = (n * w for n, w in zip(groups, workgroup, strict=True))
    return x, y, z


def _triple(value: Sequence[int], what: str) -> Triple:
    sizes = tuple(value)
    if not 1 <= len(sizes) <= 3 or not all(isinstance(v, int | np.integer) and v > 0 for v in sizes):
        raise ArgumentError(f"{what} {value!r}: expected one to three positive whole numbers")
    x, y, z = (*(int(v) for v in sizes), 1, 1)[:3]
    return x, y, z
