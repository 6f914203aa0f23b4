"""CDNA: instruction programs with values from hardware, and recorded launches of whole kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stuntgpu.emu.buffers import Placement, host_address
from stuntgpu.emu.launch import Launch, RunOptions
from stuntgpu.emu.memory import AddressSpace
from stuntgpu.emu.native import Native
from stuntgpu.emu.reference import Reference
from stuntgpu.isa.abi.descriptor import Rsrc1, Rsrc2
from stuntgpu.isa.abi.targets import TARGETS
from tests.emu import golden_instr as golden
from tests.emu.test_golden_kernels import recorded, same, unpacked
from tests.shared import shared_dir

ARCH = "gfx950"
TIERS: dict[str, type[Native] | type[Reference]] = {"native": Native, "reference": Reference}
WAVE_LANES = 64
BUDGET = 400_000
#: Programs that are not code of the architecture, and why.
NO_CODE = {"cdna-t0560": "its VOP3 names a literal, which CDNA's has not; its own disassembly says lit(0x0)"}


def programs() -> list[golden.Golden]:
    files = ("instr_cdna.jsonl", "instr_cdna_transfer.jsonl")
    rows = [g for file in files for g in golden.read(shared_dir() / "goldens" / file)]
    return [g for g in rows if g.id not in NO_CODE]


@pytest.mark.parametrize("tier", TIERS)
def test_golden_hardware_values_hold(tier: str) -> None:
    memory, executor, rows = golden.Memory(), TIERS[tier](ARCH), programs()
    assert {g.target for g in rows} == {ARCH}
    assert not any(g.doubtful for g in rows)
    bad = [line for g in rows for line in golden.failures(executor, memory, g)]
    assert not bad, "\n".join(bad)


def launch(row: dict[str, Any], space: AddressSpace) -> Launch:
    """The recorded launch; its `grid` counts workgroups."""
    x, y, z = row["local"]
    gx, gy, gz = row["grid"]
    n_waves, wave_bytes = -(-x * y * z // WAVE_LANES) * gx * gy * gz, row["scratch_per_lane"] * WAVE_LANES
    return Launch(
        entry=row["code_addr"] + row["entry"], rsrc1=int(Rsrc1(float_mode=0xF0, dx10_clamp=True, ieee_mode=True)),
        rsrc2=row["rsrc2"], rsrc3=0, user_sgprs=tuple(row["user_sgprs"]), grid=(gx * x, gy * y, gz * z),
        workgroup=(x, y, z), wave_lanes=WAVE_LANES,
        lds_bytes=Rsrc2.from_int(row["rsrc2"]).lds_size * TARGETS[row["target"]].lds_granule,
        scratch_va=Placement(space, 0x7000_0000_0000).zeros(n_waves * wave_bytes, "scratch"),
        scratch_wave_bytes=wave_bytes, name=row["id"])


def replay(row: dict[str, Any], tier: str) -> list[bytes]:
    """Contents of every buffer after the launch, run at its own addresses."""
    space = AddressSpace()

    def at(va: int, data: bytes | bytearray, name: str) -> np.ndarray[Any, np.dtype[Any]]:
        memory = np.frombuffer(bytearray(data), np.uint8)
        space.map(va, memory.nbytes, host_address(memory), name=name, keep=memory)
        return memory

    at(row["code_addr"], bytes.fromhex(row["code"]), "code")
    at(row["kernarg_addr"], bytes.fromhex(row["kernarg"]), "kernel arguments")
    buffers = [at(b["addr"], unpacked(b["before"]), f"buffer {i}") for i, b in enumerate(row["bufs"])]
    TIERS[tier](row["target"]).run(space, launch(row, space), RunOptions(max_wave_instructions=BUDGET))
    return [b.tobytes() for b in buffers]


@pytest.mark.parametrize("tier", TIERS)
def test_golden_recorded_launches_leave_the_recorded_memory(tier: str) -> None:
    wrong: list[str] = []
    for row in recorded(shared_dir() / "goldens" / "kernels_cdna.jsonl"):
        for i, (buffer, got) in enumerate(zip(row["bufs"], replay(row, tier), strict=True)):
            if not same(row, got, bytes(unpacked(buffer["after"] or buffer["before"]))):
                wrong.append(f"{row['id']} ({row['case']}) buffer {i}")
    assert not wrong
