"""What each bit of a kernel descriptor does to the registers a wave starts with: kernels in assembly, assembled by
clang, store them; on all targets and both tiers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from stuntgpu.emu import Gpu, LaunchError
from stuntgpu.emu.gpu import Kernel, Module
from stuntgpu.isa.abi.codeobject import CodeObject
from stuntgpu.isa.abi.descriptor import CodeProperties, KernelDescriptor, Rsrc2
from stuntgpu.isa.abi.targets import target
from stuntgpu.isa.abi.userdata import UserDataError, user_data
from stuntgpu.isa.errors import Unmodelled
from tests.emu.launch_build import ARCHES, TIERS, WAVES, assembled, wave_option

Array = np.ndarray[Any, np.dtype[Any]]

slow = pytest.mark.slow
WAVE = [pytest.param(a, n, marks=() if (a, n) == ("gfx1100", 32) else slow, id=f"{a}-{n}") for a, n in WAVES]
tiers = pytest.mark.parametrize("tier", [pytest.param(t, marks=slow if t == "reference" else ()) for t in TIERS])
waves = pytest.mark.parametrize(("arch", "lanes"), WAVE)

RECORD = 128  # bytes of one wave's record
MNEMONICS = {
    "gfx9": ("s_load_dwordx2", "s_waitcnt lgkmcnt(0)", "global_atomic_add v3, v1, v2, s[40:41] sc0", "s_waitcnt vmcnt(0)",
             "global_store_dword"),
    "gfx11": ("s_load_b64", "s_waitcnt lgkmcnt(0)", "global_atomic_add_u32 v3, v1, v2, s[40:41] glc", "s_waitcnt vmcnt(0)",
              "global_store_b32"),
    "gfx12": ("s_load_b64", "s_wait_kmcnt 0x0", "global_atomic_add_u32 v3, v1, v2, s[40:41] th:TH_ATOMIC_RETURN",
              "s_wait_loadcnt 0x0", "global_store_b32"),
}


METADATA = """
.amdgpu_metadata
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--{arch}
amdhsa.kernels:
  - .name: k
    .symbol: k.kd
    .kernarg_segment_size: 8
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: {lanes}
    .sgpr_count: 48
    .vgpr_count: 32
    .max_flat_workgroup_size: 1024
    .args: [{{.size: 8, .offset: 0, .value_kind: global_buffer, .address_space: global}}]
.end_amdgpu_metadata
"""


def family(arch: str) -> str:
    return "gfx9" if arch.startswith("gfx9") else arch[:5]


def text(arch: str, lanes: int, stored: Sequence[str], directives: Sequence[str], *, arguments: int = 0, code: str = "",
         vgprs: int = 32, prologue: str = "") -> str:
    """A kernel whose every wave adds a record of the registers `stored`, after running `code`.

    prologue    code before all.
    arguments   number of the SGPR pair that holds the kernel arguments' address; their first is the buffer: a
                counter of records, then the records.
    """
    load, loaded, add, added, store = MNEMONICS[family(arch)]
    sum_of = "v_add_u32" if family(arch) == "gfx9" else "v_add_nc_u32"
    one = "s_mov_b64 exec, 1" if lanes == 64 else "s_mov_b32 exec_lo, 1"
    stores = "\n".join(f"v_mov_b32 v5, {reg}\n{store} v4, v5, s[40:41] offset:{4 * i}" for i, reg in enumerate(stored))
    wave32 = "" if family(arch) == "gfx9" else f".amdhsa_wavefront_size32 {int(lanes == 32)}"
    accumulators = ".amdhsa_accum_offset 32" if family(arch) == "gfx9" and not any("accum" in d for d in directives) else ""
    return f"""
    .amdhsa_code_object_version 5
    .text
    .globl k
    .p2align 8
    .type k,@function
    k:
    {prologue}
    {load} s[40:41], s[{arguments}:{arguments + 1}], 0x0
    {loaded}
    {code}
    {one}
    v_mov_b32 v1, 0
    v_mov_b32 v2, 1
    {add}
    {added}
    v_lshlrev_b32 v4, 7, v3
    {sum_of} v4, {RECORD}, v4
    {stores}
    s_endpgm
    .rodata
    .p2align 6
    .amdhsa_kernel k
    .amdhsa_next_free_vgpr {vgprs}
    .amdhsa_next_free_sgpr 48
    .amdhsa_user_sgpr_kernarg_segment_ptr 1
    .amdhsa_kernarg_size 8
    {wave32}
    {accumulators}
    {chr(10).join(directives)}
    .end_amdhsa_kernel
    {METADATA.format(arch=arch, lanes=lanes)}
    """


def load(arch: str, lanes: int, tier: str, *args: Any, gpu: Gpu | None = None, **more: Any) -> Module:
    code = assembled(text(arch, lanes, *args, **more), arch, *wave_option(arch, lanes))
    return (gpu or Gpu(arch, tier=tier, max_wave_instructions=100_000)).load(code)


def records(module: Module, n_registers: int, grid: tuple[int, ...], workgroup: tuple[int, ...]) -> Array:
    """[record][register] of one launch, in the order of their values."""
    out = np.zeros(32 * 100, np.uint32)
    module["k"](out, grid=grid, workgroup=workgroup)
    found = out[32:].reshape(-1, 32)[: out[0], :n_registers]
    return found[np.lexsort(found.T[::-1])]


# ---------------------------------------------------------------- workgroup ids and information


@tiers
@waves
def test_workgroup_ids_and_information(arch: str, lanes: int, tier: str) -> None:
    directives = [f".amdhsa_system_sgpr_workgroup_{name} 1" for name in ("id_x", "id_y", "id_z", "info")]
    ttmps = arch == "gfx1201"
    stored = ["ttmp9", "ttmp7", "ttmp8", "s2"] if ttmps else ["s2", "s3", "s4", "s5"]
    got = records(load(arch, lanes, tier, stored, directives), 4, (4 * lanes, 3, 2), (2 * lanes, 1, 1))
    want = []
    for x, y, z, wave in np.ndindex(2, 3, 2, 2):
        if ttmps:
            want.append([x, y | z << 16, wave << 25 | 1 << 30, 2])
        else:
            want.append([x, y, z, (wave == 0) << 31 | wave << 20 | 2])
    assert got.tolist() == sorted(want)


@tiers
@waves
def test_ids_that_are_not_asked_for_take_no_register(arch: str, lanes: int, tier: str) -> None:
    directives = [".amdhsa_system_sgpr_workgroup_id_x 0", ".amdhsa_system_sgpr_workgroup_id_z 1"]
    stored = ["ttmp9", "ttmp7", "ttmp8"] if arch == "gfx1201" else ["s2", "s3", "s4"]
    got = records(load(arch, lanes, tier, stored, directives), 3, (2 * lanes, 1, 3), (lanes, 1, 1))
    if arch == "gfx1201":  # there, x is always given, y and z together
        assert got.tolist() == sorted([x, z << 16, 1 << 30] for x in range(2) for z in range(3))
    else:
        assert got.tolist() == sorted([z, 0, 0] for _ in range(2) for z in range(3))


@tiers
def test_no_ids_of_y_and_z_leave_ttmp7_alone(tier: str) -> None:
    got = records(load("gfx1201", 32, tier, ["ttmp9", "ttmp7", "ttmp8"], []), 3, (64, 2, 1), (32, 1, 1))
    assert got.tolist() == [[x, 0, 0] for x in (0, 0, 1, 1)]


@tiers
@waves
@pytest.mark.parametrize("dimensions", [0, 1, 2])
def test_work_item_ids_are_packed_as_far_as_asked_for(arch: str, lanes: int, tier: str, dimensions: int) -> None:
    """The last work-item of the first wave."""
    directives = [f".amdhsa_system_vgpr_workitem_id {dimensions}"]
    module = load(arch, lanes, tier, ["s20"], directives, code=f"v_readlane_b32 s20, v0, {lanes - 1}")
    got = records(module, 1, (lanes // 4, 2, 2), (lanes // 4, 2, 2))
    x, y, z = lanes // 4 - 1, 1, 1
    assert got.tolist() == [[x | (y << 10 if dimensions >= 1 else 0) | (z << 20 if dimensions >= 2 else 0)]]


# ---------------------------------------------------------------- user SGPRs


@tiers
@waves
def test_user_sgprs_come_in_their_order(arch: str, lanes: int, tier: str) -> None:
    names = ("dispatch_ptr", "queue_ptr", "dispatch_id", "private_segment_size")
    directives = [f".amdhsa_user_sgpr_{name} 1" for name in names] + [".amdhsa_private_segment_fixed_size 48"]
    gpu = Gpu(arch, tier=tier)
    module = load(arch, lanes, tier, [f"s{i}" for i in range(9)], directives, arguments=4, gpu=gpu)
    for dispatch in range(2):
        (got,) = records(module, 9, (lanes,), (lanes,)).tolist()
        assert got[6:] == [dispatch, 0, 48]
        pointers = [got[i] | got[i + 1] << 32 for i in (0, 2, 4)]
        assert len({*pointers, 0}) == 4  # three places, none of them null


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("name", ["private_segment_buffer", "flat_scratch_init"])
def test_scratch_in_user_sgprs_is_refused_as_llvm_refuses_it(arch: str, name: str) -> None:
    with pytest.raises(AssertionError, match="not supported with architected flat scratch"):
        load(arch, 64, "native", ["s0"], [f".amdhsa_user_sgpr_{name} 1"])
    descriptor = KernelDescriptor(rsrc2=Rsrc2(user_sgprs=8), properties=CodeProperties(**{name: True}))
    with pytest.raises(UserDataError, match=f"asks for {name} in user SGPRs, which {arch}, having architected flat scratch"):
        user_data(target(arch), descriptor, {name: 1})


def test_more_user_sgprs_than_there_are_is_refused() -> None:
    gpu = Gpu("gfx1100")
    descriptor = KernelDescriptor(rsrc2=Rsrc2(user_sgprs=17), entry_offset=256)
    with pytest.raises(UserDataError, match="asks for 17 user SGPRs, there are 16"):
        user_data(gpu.target, descriptor, {})
    assert issubclass(LaunchError, Exception)


@tiers
@pytest.mark.parametrize("arch", ["gfx942", pytest.param("gfx950", marks=slow)])
@pytest.mark.parametrize(("length", "offset"), [(1, 0), (2, 1), (5, 2), (14, 0)])
def test_preloaded_dwords_follow_the_other_user_sgprs(arch: str, tier: str, length: int, offset: int) -> None:
    """The hardware starts 256 bytes on; what stands before is for firmware that cannot preload."""
    directives = [f".amdhsa_user_sgpr_kernarg_preload_length {length}", f".amdhsa_user_sgpr_kernarg_preload_offset {offset}"]
    first = 2  # after the kernel arguments' address
    stored = [f"s{first + i}" for i in range(length)]
    source = text(arch, 64, stored, directives, prologue="s_trap 2\n.fill 63, 4, 0xbf9f0000")
    source = source.replace(".kernarg_segment_size: 8", ".kernarg_segment_size: 64").replace(
        ".address_space: global}", ".address_space: global}, {.size: 56, .offset: 8, .value_kind: by_value}").replace(
        ".amdhsa_kernarg_size 8", ".amdhsa_kernarg_size 64")
    module, out = Gpu(arch, tier=tier).load(assembled(source, arch)), np.zeros(320, np.uint32)
    address, value = module.gpu.map(out), np.arange(100, 114, dtype=np.uint32)
    module["k"](out, value.tobytes(), grid=(64,), workgroup=(64,))
    arguments = [address & 0xFFFF_FFFF, address >> 32, *value.tolist()]
    assert out[32 : 32 + length].tolist() == arguments[offset : offset + length]


@tiers
@pytest.mark.parametrize("arch", ARCHES)
def test_trap_handler_and_exception_bits_of_the_driver_are_accepted(arch: str, tier: str) -> None:
    """Code objects leave them 0; command processors set them."""
    lanes = 64 if arch.startswith("gfx9") else 32
    module = load(arch, lanes, tier, ["s20"], [], code="s_getreg_b32 s20, hwreg(2)")
    info = module["k"].info
    rsrc2 = info.descriptor.rsrc2.replace(trap_present=True, exception_address_watch=True, exception_memory=True)
    kernel = Kernel(module.gpu, replace(info, descriptor=info.descriptor.replace(rsrc2=rsrc2)), module["k"].descriptor_va)
    out = np.zeros(100, np.uint32)
    kernel(out, grid=(lanes,), workgroup=(lanes,))
    assert out[32] >> 6 & 1  # STATUS.TRAP_EN


def test_shared_vgprs_are_not_built() -> None:
    module = load("gfx1100", 64, "native", ["s20"], [".amdhsa_shared_vgpr_count 1"])
    with pytest.raises(Unmodelled, match="VGPRs shared by the halves of a wave"):
        module["k"](np.zeros(100, np.uint32), grid=(64,), workgroup=(64,))


# ---------------------------------------------------------------- MODE


@tiers
@waves
def test_float_modes_and_exceptions(arch: str, lanes: int, tier: str) -> None:
    exceptions = ("invalid_op", "denorm_src", "div_zero", "overflow", "underflow", "inexact")
    names = [f"fp_ieee_{n}" if n not in ("denorm_src",) else f"fp_{n}" for n in exceptions]
    chosen = {"fp_ieee_div_zero", "fp_ieee_inexact", "fp_denorm_src"}
    directives = [f".amdhsa_exception_{n} {int(n in chosen)}" for n in names] + [
        ".amdhsa_exception_int_div_zero 1", ".amdhsa_float_round_mode_32 1", ".amdhsa_float_round_mode_16_64 2",
        ".amdhsa_float_denorm_mode_32 3", ".amdhsa_float_denorm_mode_16_64 1", ".amdhsa_fp16_overflow 1"]
    has_clamp = arch != "gfx1201"
    directives += [".amdhsa_dx10_clamp 0", ".amdhsa_ieee_mode 1"] if has_clamp else []
    code = "s_getreg_b32 s20, hwreg(1)\n" + ("s_getreg_b32 s21, hwreg(19)" if arch == "gfx1201" else "s_mov_b32 s21, 0")
    ((mode, control),) = records(load(arch, lanes, tier, ["s20", "s21"], directives, code=code), 2, (lanes,), (lanes,)).tolist()
    enabled = 1 << 2 | 1 << 5 | 1 << 1 | 1 << 6
    assert mode & 0xFF == 1 | 2 << 2 | 3 << 4 | 1 << 6
    assert mode >> 23 & 1
    if has_clamp:
        assert (mode >> 8 & 3, mode >> 12 & 0x1FF) == (2, enabled)
    else:
        assert (mode >> 8 & 3, control) == (0, enabled)


@tiers
@waves
def test_priority_and_round_robin_are_accepted(arch: str, lanes: int, tier: str) -> None:
    directives = [".amdhsa_round_robin_scheduling 1"] if arch == "gfx1201" else []
    directives += [] if arch.startswith("gfx9") else [".amdhsa_memory_ordered 1", ".amdhsa_forward_progress 1"]
    directives += [".amdhsa_tg_split 0"] if arch.startswith("gfx9") else [".amdhsa_workgroup_processor_mode 1"]
    number = {"gfx1100": 28, "gfx1201": 4}.get(arch, 5)
    module = load(arch, lanes, tier, ["s20"], directives, code=f"s_getreg_b32 s20, hwreg({number})")
    ((value,),) = records(module, 1, (lanes,), (lanes,)).tolist()
    if arch == "gfx1100":
        assert value == 1 << 8 | 1 << 10 | (lanes == 64) << 11
    elif arch == "gfx1201":
        assert value & 1


# ---------------------------------------------------------------- trap temporaries, scratch base


@tiers
@waves
def test_trap_temporaries_are_not_a_kernels(arch: str, lanes: int, tier: str) -> None:
    code = """
    s_mov_b32 ttmp3, 7
    s_mov_b32 s20, ttmp3
    s_cmp_eq_u32 0, 0
    s_and_b32 ttmp3, s20, 0
    s_cselect_b32 s21, 5, 6
    s_mov_b32 s22, ttmp9
    """
    got = records(load(arch, lanes, tier, ["s20", "s21", "s22"], [], code=code), 3, (2 * lanes,), (lanes,))
    assert got[:, :2].tolist() == [[0, 5]] * 2  # SCC keeps what the compare left
    assert got[:, 2].tolist() == ([0, 1] if arch == "gfx1201" else [0, 0])


@tiers
@pytest.mark.parametrize("arch", ["gfx942", pytest.param("gfx950", marks=slow)])
def test_flat_scratch_is_the_base_of_scratch_and_read_only(arch: str, tier: str) -> None:
    code = "s_mov_b64 s[20:21], flat_scratch\ns_mov_b64 flat_scratch, 0\ns_mov_b64 s[22:23], flat_scratch"
    module = load(arch, 64, tier, ["s20", "s21", "s22", "s23"], [".amdhsa_private_segment_fixed_size 16"], code=code)
    got = records(module, 4, (128,), (64,)).tolist()
    assert got[0][:2] == got[0][2:]
    first, second = (row[0] | row[1] << 32 for row in got)
    assert abs(second - first) == 1024
    assert first > 0


def test_the_object_says_what_it_asks_for() -> None:
    """The directives used here reach the descriptor."""
    module = load("gfx942", 64, "native", ["s0"], [".amdhsa_system_sgpr_workgroup_info 1", ".amdhsa_accum_offset 16"])
    assert isinstance(module.code_object, CodeObject)
    descriptor = module["k"].info.descriptor
    assert (descriptor.rsrc2.workgroup_info, descriptor.rsrc3.accum_offset) == (True, 3)
