"""Chips: what a driver tells about a GPU beside the facts of its device profile. One row a chip.

Units:   as the field says.
Source:  kernel amdgpu_discovery.c and kfd_device.c for what each field means; device facts: isa/abi/devices.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from stuntgpu.isa.abi.devices import Device, device
from stuntgpu.isa.errors import Unmodelled


@dataclass(frozen=True, slots=True)
class Chip:
    """One GPU model as drivers show it.

    ip_versions  (hardware id, major, minor, revision) of the discovery table.
    """

    device: Device
    family_id: int
    sdma_engines: int
    sdma_queues_per_engine: int
    gb_addr_config: int
    firmware: int
    sdma_firmware: int
    ip_versions: tuple[tuple[int, int, int, int], ...]
    num_gws: int = 64
    cp_queues: int = 8

    @property
    def arch(self) -> str:
        return self.device.arch

    @property
    def marketing_name(self) -> str:
        """The real GPU's name, and that this is none."""
        return f"{self.device.marketing_name} (stuntgpu)"


HWID_GC, HWID_SDMA0, HWID_NBIF = 11, 42, 108

CHIPS = {
    "gfx1100": Chip(
        device("gfx1100"), family_id=145, sdma_engines=2, sdma_queues_per_engine=6, gb_addr_config=0x545, firmware=550,
        sdma_firmware=21, ip_versions=((HWID_GC, 11, 0, 0), (HWID_SDMA0, 6, 0, 0), (HWID_NBIF, 4, 3, 0)),
    ),
}


def chip(arch: str) -> Chip:
    """The chip that stands for an architecture. Raises Unmodelled."""
    if arch not in CHIPS:
        raise Unmodelled(arch, "this GPU's chip data", "mockdrivers/profiles.py")
    return CHIPS[arch]
