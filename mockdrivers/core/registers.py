"""The registers a compute queue sees, and the dispatch they describe.

Units:   register addresses in dwords; sizes in bytes.
Errors:  DispatchError says which register holds what cannot be; Unmodelled for set-ups not built.
Source:  isa/regs/gfx11.py for the layouts; AMDGPU back-end user guide for what a wave starts with.
"""

from __future__ import annotations

from dataclasses import dataclass

from stuntgpu.emu.launch import Launch
from stuntgpu.isa.abi.descriptor import Rsrc2
from stuntgpu.isa.abi.targets import target
from stuntgpu.isa.errors import Unmodelled
from stuntgpu.isa.fields import BitStruct
from stuntgpu.isa.packets.base import generation
from stuntgpu.isa.regs import gfx11

MAX_WORKGROUP_ITEMS = 1024
CODE_ALIGN_LOG2 = 8  # COMPUTE_PGM_LO and the scratch base count 256 bytes

Triple = tuple[int, int, int]


class DispatchError(ValueError):
    """Registers describe no dispatch; `str()` names the register and its value."""


class RegisterFile:
    """Registers of one queue. All of them can be written; what was never written reads as reset, zero,
    where the register is known."""

    def __init__(self, arch: str) -> None:
        if generation(arch) != 11:
            raise Unmodelled(arch, "compute registers", "mockdrivers/core/registers.py")
        self.arch = arch
        self._values: dict[int, int] = {gfx11.GPU_HDP_FLUSH_DONE: 0xFFFF_FFFF}

    def read(self, register: int) -> int:
        """Raises Unmodelled for a register that was never written and that nothing here knows."""
        if register in self._values:
            return self._values[register]
        if register in gfx11.NAMES:
            return 0
        raise Unmodelled(self.arch, f"reading register 0x{register:x}", "isa/regs/gfx11.py")

    def write(self, register: int, value: int) -> None:
        """Store; a flush request of the host data path is done at once."""
        if register == gfx11.GPU_HDP_FLUSH_REQ:
            return
        self._values[register] = value

    def clear(self) -> None:
        """Back to reset."""
        self._values = {gfx11.GPU_HDP_FLUSH_DONE: 0xFFFF_FFFF}

    def pair(self, low: int) -> int:
        """64 bits of the registers `low` and `low + 1`."""
        return self.read(low) | self.read(low + 1) << 32

    def user_data(self, count: int) -> tuple[int, ...]:
        """COMPUTE_USER_DATA_0.. as many as asked for."""
        if count > gfx11.N_USER_DATA:
            raise DispatchError(f"COMPUTE_PGM_RSRC2.USER_SGPR = {count}, there are {gfx11.N_USER_DATA}")
        return tuple(self.read(gfx11.COMPUTE_USER_DATA_0 + i) for i in range(count))


@dataclass(frozen=True, slots=True)
class Scratch:
    """What COMPUTE_TMPRING_SIZE and the scratch base say: `slots` waves of `wave_bytes` from `va`."""

    va: int
    wave_bytes: int
    slots: int


def scratch(regs: RegisterFile) -> Scratch:
    """The private memory waves of the next dispatch get; wave_bytes 0 when the kernel uses none."""
    size = gfx11.TmpringSize.from_int(regs.read(gfx11.COMPUTE_TMPRING_SIZE) & _mask(gfx11.TmpringSize))
    if not Rsrc2.from_int(regs.read(gfx11.COMPUTE_PGM_RSRC2)).scratch_en:
        return Scratch(0, 0, 0)
    va = regs.pair(gfx11.COMPUTE_DISPATCH_SCRATCH_BASE_LO) << CODE_ALIGN_LOG2 & (1 << 48) - 1
    return Scratch(va, size.wave_size * target(regs.arch).scratch_granule, size.waves)


def _mask(layout: type[BitStruct]) -> int:
    return (1 << 8 * layout.SIZE_BYTES) - 1


def launch(regs: RegisterFile, dims: Triple, initiator: int, scratch_va: int = 0, name: str = "") -> Launch | None:
    """The dispatch of `dims` (workgroups, or work-items when the initiator says so); None for an empty one.

    Raises DispatchError, Unmodelled.
    """
    control = gfx11.DispatchInitiator.from_int(initiator)
    workgroup = _workgroup(regs)
    start = _start(regs, control)
    grid = _grid(regs, control, dims, workgroup, start)
    if min(grid) <= 0 or not control.compute_shader_en:
        return None
    row = target(regs.arch)
    rsrc2 = Rsrc2.from_int(regs.read(gfx11.COMPUTE_PGM_RSRC2))
    private = scratch(regs)
    return Launch(
        entry=regs.pair(gfx11.COMPUTE_PGM_LO) << CODE_ALIGN_LOG2 & (1 << 48) - 1,
        rsrc1=regs.read(gfx11.COMPUTE_PGM_RSRC1), rsrc2=int(rsrc2), rsrc3=regs.read(gfx11.COMPUTE_PGM_RSRC3),
        user_sgprs=regs.user_data(rsrc2.user_sgprs), grid=grid, workgroup=workgroup,
        wave_lanes=row.wave_lanes(control.cs_w32_en), lds_bytes=rsrc2.lds_size * row.lds_granule,
        scratch_va=scratch_va or private.va, scratch_wave_bytes=private.wave_bytes, name=name,
        start=start)


def _axis(regs: RegisterFile, axis: int) -> gfx11.NumThread:
    return gfx11.NumThread.from_int(regs.read(gfx11.COMPUTE_NUM_THREAD_X + axis))


def _workgroup(regs: RegisterFile) -> Triple:
    x, y, z = (_axis(regs, i).full for i in range(3))
    if not 0 < x * y * z <= MAX_WORKGROUP_ITEMS:
        raise DispatchError(f"COMPUTE_NUM_THREAD_X, Y, Z = {x}, {y}, {z}: a workgroup has 1 to {MAX_WORKGROUP_ITEMS} work-items")
    return x, y, z


def _start(regs: RegisterFile, control: gfx11.DispatchInitiator) -> Triple:
    """Id of the first workgroup."""
    if control.force_start_at_000:
        return 0, 0, 0
    x, y, z = (regs.read(gfx11.COMPUTE_START_X + i) for i in range(3))
    return x, y, z


def _grid(regs: RegisterFile, control: gfx11.DispatchInitiator, dims: Triple, workgroup: Triple,
          start: Triple) -> Triple:
    """Work-items along each axis. `dims` are ends, not counts: they include what lies before `start`
    (seen in how open drivers emit dispatches with a base workgroup)."""
    if control.use_thread_dimensions:
        x, y, z = (end - first * full for end, first, full in zip(dims, start, workgroup, strict=True))
        return x, y, z
    x, y, z = (_items(max(0, end - first), full, _axis(regs, i).partial if control.partial_tg_en else 0)
               for i, (end, first, full) in enumerate(zip(dims, start, workgroup, strict=True)))
    return x, y, z


def _items(groups: int, full: int, partial: int) -> int:
    """Work-items along an axis whose last workgroup has `partial` of them (0: all)."""
    return groups * full - (full - partial if partial and groups else 0)
