"""How many workgroups of a launch the device holds at once: those that can wait for each other.

A workgroup that fits nowhere still gets a compute unit (on RDNA in WGP mode, two) of its own: that it cannot run is
for launchers to say.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from stuntgpu.emu.launch import Launch
from stuntgpu.isa.abi.descriptor import Rsrc1
from stuntgpu.isa.abi.devices import Device, device
from stuntgpu.isa.abi.targets import target

#: SGPRs that a step of RSRC1.SGPRS stands for, where they are counted.
_SGPR_STEP = 8


def resident_workgroups(arch: str, launch: Launch, compute_units: int = 0) -> int:
    """Workgroups of the launch that are resident at once, at least 1.

    compute_units   how many of the device's it may use, 0 all.
    Raises          Unmodelled for an arch whose device is not known.
    """
    x, y, z = launch.workgroup
    return _resident(arch, launch.rsrc1, launch.wave_lanes, -(-x * y * z // launch.wave_lanes), launch.lds_bytes, compute_units)


@lru_cache(maxsize=1024)
def _resident(arch: str, rsrc1: int, wave_lanes: int, waves: int, lds_bytes: int, compute_units: int) -> int:
    row, registers = _part_of(device(arch), compute_units), Rsrc1.from_int(rsrc1)
    vgprs = (registers.vgprs + 1) * target(arch).vgpr_granule(wave_lanes)  # of CDNA: AccVGPRs included
    wgp_mode = row.cus_per_wgp > 1 and registers.wgp_mode
    fit = row.resident_workgroups(waves, vgprs, 0, lds_bytes, wave_lanes, sgprs=(registers.sgprs + 1) * _SGPR_STEP,
                                  wgp_mode=wgp_mode)
    return fit or max(1, row.compute_units // (row.cus_per_wgp if wgp_mode else 1))


def _part_of(whole: Device, compute_units: int) -> Device:
    """A device of fewer compute units. Raises ValueError for more than there are."""
    if not 0 <= compute_units <= whole.compute_units:
        raise ValueError(f"{compute_units} compute units of {whole.marketing_name}: it has {whole.compute_units}")
    return replace(whole, compute_units=compute_units) if compute_units else whole
