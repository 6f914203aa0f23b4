"""What a kernel that does wrong looks like from Python, on both tiers; and that the GPU goes on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stuntgpu.emu import Gpu, KernelFault

# out[lane] = lane, for one pointer argument
STORE_LANE = bytes.fromhex(
    "800004f4000000f8"  # s_load_b64 s[2:3], s[0:1], null
    "82000230"          # v_lshlrev_b32 v1, 2, v0
    "07fc89bf"          # s_waitcnt lgkmcnt(0)
    "00006adc01000200"  # global_store_b32 v1, v0, s[2:3]
    "0000b0bf"          # s_endpgm
)  # fmt: skip
STORE_TO_CODE = bytes.fromhex(
    "004782be"          # s_getpc_b64 s[2:3]
    "8002027e"          # v_mov_b32 v1, 0
    "00006adc01000200"  # global_store_b32 v1, v0, s[2:3]
    "0000b0bf"
)  # fmt: skip
SCALAR_READ = bytes.fromhex(
    "800004f4000000f8"  # s_load_b64 s[2:3], s[0:1], null
    "07fc89bf"
    "010100f4000000f8"  # s_load_b32 s4, s[2:3], null
    "07fc89bf0000b0bf"
)  # fmt: skip
ENDLESS = bytes.fromhex("000080bffeffa0bf")  # s_nop 0; s_branch to it
ILLEGAL = bytes.fromhex("000080bfffffffff")

ONE_WAVE: dict[str, Any] = {"grid": 32, "workgroup": 32}


@pytest.fixture(params=["native", "reference"])
def gpu(request: pytest.FixtureRequest) -> Gpu:
    return Gpu("gfx1100", tier=request.param, max_wave_instructions=10_000)


def fault_of(gpu: Gpu, code: bytes, *args: Any) -> KernelFault:
    with pytest.raises(KernelFault) as caught:
        gpu.load_raw(code)(*args, **ONE_WAVE)
    return caught.value


def test_instructions_are_counted_exactly(gpu: Gpu) -> None:
    out = np.zeros(100, np.uint32)
    stats = gpu.load_raw(STORE_LANE)(out, grid=100, workgroup=50)
    assert (stats.workgroups, stats.waves, stats.wave_instructions) == (2, 4, 20)
    assert out.tolist() == [*range(50), *[0] * 50]  # both groups write the same lanes
    assert gpu.stats.wave_instructions == 20


def test_lanes_past_the_grid_do_nothing(gpu: Gpu) -> None:
    out = np.full(40, 9, np.uint32)
    gpu.load_raw(STORE_LANE)(out, grid=5, workgroup=40)
    assert out.tolist() == [*range(5), *[9] * 35]


def test_overrun_names_lane_address_and_argument(gpu: Gpu) -> None:
    out = np.zeros(16, np.uint32)
    fault = fault_of(gpu, STORE_LANE, out)
    assert (fault.kind, fault.access, fault.lane, fault.wave) == ("page fault", "write", 16, 0)
    assert (fault.kernel, fault.pc_offset, fault.workgroup) == ("kernel", 16, (0, 0, 0))
    assert fault.address is not None
    assert fault.address & 0xFFFF == 64
    assert '0x0 bytes past the end of "argument 0"' in fault.nearest
    assert fault.instruction.startswith("global_store_b32 v1, v0, s[2:3]")
    assert "0x" in str(fault)


def test_null_pointer_read_is_a_fault(gpu: Gpu) -> None:
    fault = fault_of(gpu, SCALAR_READ, None)
    assert (fault.kind, fault.access, fault.address, fault.pc_offset) == ("page fault", "read", 0, 12)


def test_code_cannot_be_written(gpu: Gpu) -> None:
    fault = fault_of(gpu, STORE_TO_CODE)
    assert (fault.kind, fault.access) == ("page fault", "write")
    assert '"kernel"' in fault.nearest


def test_endless_kernel_runs_out_of_budget(gpu: Gpu) -> None:
    fault = fault_of(gpu, ENDLESS)
    assert fault.kind == "budget exceeded"
    assert fault.pc_offset in (0, 4)


def test_illegal_instruction_is_named_by_its_words(gpu: Gpu) -> None:
    fault = fault_of(gpu, ILLEGAL)
    assert (fault.kind, fault.pc_offset) == ("illegal instruction", 4)
    assert "ffffffff" in str(fault)


def test_next_kernel_runs_after_a_fault(gpu: Gpu) -> None:
    for bad in (ENDLESS, ILLEGAL, STORE_TO_CODE):
        fault_of(gpu, bad)
    out = np.zeros(32, np.uint32)
    gpu.load_raw(STORE_LANE)(out, **ONE_WAVE)
    assert out.tolist() == list(range(32))
