"""What the hardware knows when a dispatch starts: the seam between launchers and executors.

A PM4 DISPATCH_DIRECT, an AQL packet and the Python API all end here: they fill a `Launch` with
what the COMPUTE_* registers would hold, and an executor (reference or native) runs it.

Units:   sizes in bytes unless the name says otherwise; counts in work-items or workgroups.
Source:  COMPUTE_PGM_RSRC1/2/3, COMPUTE_TMPRING_SIZE register layouts (kernel headers gc_11_0_0_*).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Protocol

from stuntgpu.emu.memory import AddressSpace


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """Where a dispatch comes from, as HW_ID shows it: micro engine (1: compute), pipe and queue of it, address space
    (the kernel driver gives compute 8 to 15), doorbell."""

    me: int = 1
    pipe: int = 0
    queue: int = 0
    vmid: int = 8
    doorbell: int = 0


#: Of launches that no queue dispatched.
PYTHON_QUEUE = QueuePlace()


@dataclass(frozen=True, slots=True)
class Launch:
    """One dispatch.

    entry            GPU VA of the first instruction.
    rsrc1..3         COMPUTE_PGM_RSRC1..3 as the kernel descriptor / packet gave them.
    user_sgprs       USER_DATA_0.., copied to s0.. (as many as RSRC2.USER_SGPR says).
    grid             work-items in x, y, z (partial last workgroups when not a multiple).
    workgroup        work-items per workgroup.
    wave_lanes       32 or 64.
    lds_bytes        LDS of one workgroup (static + dynamic); the device gives it out in blocks.
    scratch_va       GPU VA of the scratch backing; wave i of the dispatch uses scratch_va + i * scratch_wave_bytes.
    scratch_wave_bytes   bytes of scratch for one whole wave (private segment size * lanes, rounded).
    start            id of the first workgroup (COMPUTE_START_X, Y, Z); the grid counts from there.
    name             kernel name for reports, "" unknown.
    queue            where it was dispatched from.
    dispatch_id      its packet's number in the queue.
    """

    entry: int
    rsrc1: int
    rsrc2: int
    rsrc3: int
    user_sgprs: tuple[int, ...]
    grid: tuple[int, int, int]
    workgroup: tuple[int, int, int]
    wave_lanes: int
    lds_bytes: int = 0
    scratch_va: int = 0
    scratch_wave_bytes: int = 0
    name: str = ""
    start: tuple[int, int, int] = (0, 0, 0)
    queue: QueuePlace = PYTHON_QUEUE
    dispatch_id: int = 0


_FIELDS = tuple(f.name for f in fields(Launch))


def numbered(launch: Launch, dispatch_id: int) -> Launch:
    """The same launch with another number; much faster than `dataclasses.replace`."""
    out = object.__new__(Launch)
    for name in _FIELDS:
        object.__setattr__(out, name, getattr(launch, name))
    object.__setattr__(out, "dispatch_id", dispatch_id)
    return out


@dataclass(slots=True)
class Stats:
    """Exact counts of executed work; addable. clock: when the last wave ended, by the clock of hwregs.py."""

    kernels: int = 0
    workgroups: int = 0
    waves: int = 0
    wave_instructions: int = 0
    clock: int = field(default=0, compare=False)

    def add(self, other: Stats) -> None:
        self.kernels += other.kernels
        self.workgroups += other.workgroups
        self.waves += other.waves
        self.wave_instructions += other.wave_instructions
        self.clock = max(self.clock, other.clock)


@dataclass(slots=True)
class RunOptions:
    """How a launch is run (docs/emulator.md).

    seed                    orders turns; 0 is dispatch order.
    threads                 host threads that run workgroups (native tier).
    max_wave_instructions   budget of one launch, 0 none.
    cancelled               polled between turns (client gone, queue destroyed): the launch ends early.
    clock                   when the launch starts (hwregs.py).
    compute_units           how many of the device's it may use, 0 all: they bound what is resident at once.
    """

    seed: int = 0
    threads: int = 1
    max_wave_instructions: int = 0
    cancelled: Callable[[], bool] = field(default=lambda: False)
    clock: int = 0
    compute_units: int = 0


class Executor(Protocol):
    """Both tiers: emu.interp.Reference and emu.native.Native. Raises emu.faults.KernelFault."""

    def run(self, space: AddressSpace, launch: Launch, options: RunOptions) -> Stats: ...
