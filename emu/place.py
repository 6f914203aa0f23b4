"""Where a wave runs on the device: a pure function of its workgroup's number and the device's shape.

Workgroups go around the dies, on each die around the shader arrays, in each array around its units (work-group
processors of RDNA, compute units of CDNA). The waves of a workgroup go around the SIMDs of the unit. Real
hardware places work where there is room; what matters to kernels is that the fields of HW_ID are in range, differ
between waves that run at once, and repeat on every run.

Units:   counts.
Source:  ISA documents, "Hardware ID" registers; shapes: isa/abi/devices.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from stuntgpu.isa.abi.devices import device

#: What a place says, in the order the C core keeps it.
PLACES = ("xcc", "se", "sa", "cu", "simd", "slot", "group")


@dataclass(frozen=True, slots=True)
class Shape:
    """What a device is made of.

    xccs    dies that take workgroups in turn.
    units   work-group processors (RDNA) or compute units (CDNA) of one die.
    ses, sas   shader engines of a die, shader arrays of an engine.
    simds   of a unit; slots: waves one of them can hold.
    pairs   whether a unit is two compute units, and a workgroup can be told to stay in one (CU mode).
    """

    xccs: int
    units: int
    ses: int
    sas: int
    simds: int
    slots: int
    pairs: bool


def shape(arch: str) -> Shape:
    """Of the device of an arch. Raises Unmodelled."""
    d = device(arch)
    return Shape(d.xccs, d.wgps // d.xccs, d.engines, d.arrays_per_engine, d.simds_per_cu * d.cus_per_wgp, d.wave_slots,
                 d.cus_per_wgp == 2)


def place(s: Shape, group: int, wave: int, waves_per_group: int, in_one_cu: bool) -> tuple[int, ...]:
    """Values of PLACES for wave `wave` of workgroup `group` (in dispatch order).

    in_one_cu   RDNA in CU mode: bit 0 of SIMD is the compute unit of the pair, and the workgroup stays there.
    """
    on_die = group // s.xccs
    unit, turn = on_die % s.units, on_die // s.units
    array = unit % (s.ses * s.sas)
    split = s.pairs and in_one_cu
    simds = s.simds // 2 if split else s.simds
    simd = turn % 2 | wave % simds << 1 if split else wave % simds
    rounds = -(-waves_per_group // simds)
    slot = (turn * rounds + wave // simds) % s.slots
    return group % s.xccs, array % s.ses, array // s.ses, unit // (s.ses * s.sas), simd, slot, turn
