"""How many workgroups of a launch are resident, from its registers' words; the devices' own arithmetic is tested with them."""

from __future__ import annotations

import pytest

from stuntgpu.emu.launch import Launch
from stuntgpu.emu.occupancy import resident_workgroups
from stuntgpu.isa.abi.descriptor import Rsrc1
from stuntgpu.isa.abi.devices import device


def launch(items: int, lanes: int, *, vgprs: int = 0, sgprs: int = 0, wgp_mode: bool = False, lds: int = 0) -> Launch:
    """vgprs, sgprs: as RSRC1 counts them."""
    rsrc1 = int(Rsrc1(vgprs=vgprs, sgprs=sgprs, wgp_mode=wgp_mode))
    return Launch(0, rsrc1, 0, 0, (), (items, 1, 1), (items, 1, 1), lanes, lds)


@pytest.mark.parametrize(("arch", "each", "n"), [
    ("gfx1100", launch(32, 32), 96 * 2 * 16),  # wave slots
    ("gfx1100", launch(32, 32, vgprs=31), 96 * 2 * 5),  # 256 VGPRs, in steps of 24: 264 of 1536
    ("gfx1100", launch(64, 64, vgprs=63), 96 * 2 * 2),  # 256 of 768 are 264
    ("gfx1100", launch(1024, 32), 96),
    ("gfx1100", launch(1024, 32, wgp_mode=True), 48 * 2),
    ("gfx1100", launch(64, 32), 96 * 16),  # two waves: barriers
    ("gfx1201", launch(32, 32, lds=0x10000), 64),
    ("gfx1201", launch(32, 32, lds=0x8001), 64),
    ("gfx942", launch(64, 64), 304 * 4 * 8),
    ("gfx942", launch(64, 64, vgprs=63), 304 * 4),  # 512 VGPRs and AccVGPRs
    ("gfx942", launch(64, 64, sgprs=13), 304 * 4 * 7),  # 112 SGPRs of 800
    ("gfx950", launch(256, 64, lds=0x10000), 256 * 2),
])
def test_limits_are_those_of_the_descriptors_registers(arch: str, each: Launch, n: int) -> None:
    assert resident_workgroups(arch, each) == n


@pytest.mark.parametrize("arch", ["gfx1100", "gfx1151", "gfx1201", "gfx942", "gfx950"])
def test_wgp_mode_is_a_bit_of_rdna_alone(arch: str) -> None:
    three = [resident_workgroups(arch, launch(64, 64, lds=0x6000, wgp_mode=on)) for on in (False, True)]
    assert three[1] * 4 == three[0] * (5 if device(arch).cus_per_wgp == 2 else 4)


def test_fewer_compute_units_hold_less() -> None:
    assert [resident_workgroups("gfx942", launch(64, 64, lds=0x10000), n) for n in (0, 1, 7)] == [304, 1, 7]
    with pytest.raises(ValueError, match="305 compute units of AMD Instinct MI300X: it has 304"):
        resident_workgroups("gfx942", launch(64, 64), 305)


def test_a_workgroup_that_fits_nowhere_gets_a_compute_unit_of_its_own() -> None:
    assert resident_workgroups("gfx942", launch(1024, 64, vgprs=63)) == 304
