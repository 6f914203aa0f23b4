"""Hardware registers, messages and clocks of a launch, read by kernels that clang compiles, on all targets and both tiers.

What a register must hold is spelled out here from the ISA documents, not taken from the emulator's table.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from stuntgpu.emu import Gpu, KernelFault, KernelSpec
from stuntgpu.emu.gpu import Kernel
from stuntgpu.isa.abi.descriptor import Rsrc3
from stuntgpu.isa.asm import assemble
from tests.emu.launch_build import ARCHES, TIERS, WAVES, module, wave_option

Array = np.ndarray[Any, np.dtype[Any]]

slow = pytest.mark.slow
WAVE = [pytest.param(a, n, marks=() if a == "gfx1100" and n == 32 else slow, id=f"{a}-{n}") for a, n in WAVES]
ARCH = [pytest.param(a, marks=() if a == "gfx1100" else slow) for a in ARCHES]
CDNA = [pytest.param("gfx942", marks=slow), pytest.param("gfx950", marks=slow)]
tiers = pytest.mark.parametrize("tier", [pytest.param(t, marks=slow if t == "reference" else ()) for t in TIERS])
waves = pytest.mark.parametrize(("arch", "lanes"), WAVE)

NONE = 0xDEAD_BEEF


def field(value: int, high: int, low: int) -> int:
    """Bits high..low, as the documents write them."""
    return int(value) >> low & (1 << high - low + 1) - 1


def registers(arch: str, lanes: int, tier: str, *, groups: int = 3, items: int = 96) -> tuple[Kernel, Array]:
    """[workgroup][wave][number] of S_GETREG."""
    kernel = module("machine.hip", arch, tier, *wave_option(arch, lanes))["registers"]
    n = -(-items // lanes)
    out = np.zeros((groups, n, 32), np.uint32)
    kernel(out, np.uint32(n), np.zeros(1, np.uint32), grid=(groups * items,), workgroup=(items,))
    return kernel, out


# ---------------------------------------------------------------- registers of a launch


@tiers
@waves
def test_status_says_what_the_wave_is(arch: str, lanes: int, tier: str) -> None:
    _, out = registers(arch, lanes, tier)
    scratch_bit = {"gfx1100": 29, "gfx942": 28, "gfx950": 28}.get(arch)
    for status in out[:, :, 2].flatten():
        bits = [field(status, bit, bit) for bit in (6, 16, 11, 9, 5, 13)]
        assert bits == [1, 1, 1, 0, 0, 0]  # trap handler, valid, of several waves; EXEC zero, in the handler, halted
        if scratch_bit is not None:
            assert field(status, scratch_bit, scratch_bit)
        else:
            assert field(status, 29, 29) == (lanes == 64)
    if arch == "gfx1201":
        assert all(field(v, 18, 18) for v in out[:, :, 4].flatten())
    alone = registers(arch, lanes, tier, items=lanes)[1]
    assert not any(field(v, 11, 11) for v in alone[:, :, 2].flatten())


@tiers
@waves
def test_allocations_are_those_of_the_descriptor(arch: str, lanes: int, tier: str) -> None:
    kernel, out = registers(arch, lanes, tier)
    d = kernel.info.descriptor
    gpr, lds = int(out[0, 0, 5]), int(out[0, 0, 6])
    if arch.startswith("gfx9"):
        assert 4 * (field(gpr, 11, 6) + 1) == 8 * (d.rsrc1.vgprs + 1)
        assert field(gpr, 17, 12) == d.rsrc3.accum_offset + 1
        assert 16 * (field(gpr, 27, 24) + 1) >= 16
        assert 256 * field(lds, 20, 12) == (512 if arch == "gfx942" else 1280)  # of 400 bytes
    else:
        assert field(gpr, 19, 12) == d.rsrc1.vgprs
        assert 512 * field(lds, 20, 12) == 1024
    assert d.group_segment_size == 400
    assert (out[:, :, 5:7] == [gpr, lds]).all()


@tiers
@waves
def test_scratch_and_apertures(arch: str, lanes: int, tier: str) -> None:
    kernel, out = registers(arch, lanes, tier)
    if arch.startswith("gfx9"):
        assert (out[:, :, 15] == 0x0001_0002).all()
        return
    per_wave = -(-kernel.info.descriptor.private_segment_size * lanes // 256) * 256
    base = out[:, :, 20].astype(np.int64) | out[:, :, 21].astype(np.int64) << 32
    assert np.diff(base.flatten()).tolist() == [per_wave] * (base.size - 1)
    if arch == "gfx1100":
        assert (out[:, :, 15] == 0x0001_0002).all()


@tiers
@waves
def test_registers_that_show_nothing_are_zero(arch: str, lanes: int, tier: str) -> None:
    """Nothing is outstanding, no trap handler has an address, no sampler took a snapshot."""
    _, out = registers(arch, lanes, tier, groups=1)
    numbers = {"gfx1100": (3, 7, 14, 16, 17, 18, 19, 25, 26, 27), "gfx1201": (10, 11, 12, 15, 16, 17, 18, 19, 26)}
    zero = numbers.get(arch, (3, 7, 14, 16, 17, 18, 19, 21, 22, 23, 24))
    assert not out[:, :, list(zero)].any()
    assert NONE not in out[:, :, list(zero)]


@tiers
@waves
def test_hardware_ids_are_of_the_device_and_differ_between_waves(arch: str, lanes: int, tier: str) -> None:
    _, out = registers(arch, lanes, tier, groups=40)
    cdna = arch.startswith("gfx9")
    ids = out[:, :, [4, 20]] if cdna else out[:, :, [23, 24]]
    seen = {tuple(map(int, v)) for v in ids.reshape(-1, 2)}
    assert len(seen) == out.shape[0] * out.shape[1]
    ses, sas, units = {"gfx1100": (6, 2, 4), "gfx1201": (4, 2, 4), "gfx942": (4, 1, 10), "gfx950": (4, 1, 8)}[arch]
    for first, second in seen:
        if cdna:
            place, engine = (field(first, 15, 13), field(first, 12, 12), field(first, 11, 8)), field(first, 31, 30)
            assert second < 8
        else:
            place, engine = (field(first, 20, 18), field(first, 16, 16), field(first, 13, 10)), field(second, 9, 8)
        assert engine == 1  # of compute
        assert all(at < n for at, n in zip(place, (ses, sas, units), strict=True))
    if cdna:
        assert [int(v) for v in ids[:, 0, 1]] == [group % 8 for group in range(40)]


@pytest.mark.parametrize(("arch", "lanes"), WAVE)
def test_both_tiers_read_the_same(arch: str, lanes: int) -> None:
    one, other = (registers(arch, lanes, tier, groups=5)[1] for tier in TIERS)
    addresses = [20, 21] if not arch.startswith("gfx9") else []
    others = [n for n in range(32) if n not in addresses]
    assert (one[:, :, others] == other[:, :, others]).all()


# ---------------------------------------------------------------- fields


@tiers
@pytest.mark.parametrize("arch", ARCH)
def test_fields_are_read_and_written_alone_and_read_only_bits_stay(arch: str, tier: str) -> None:
    out = np.zeros(16, np.uint32)
    module("machine.hip", arch, tier)["fields"](out, grid=(1,), workgroup=(1,))
    flags = 0xC000_007F if arch == "gfx1201" else 0x1FF
    assert out[:10].tolist() == [3, 3, 2, 0, 0, 0, 2 << 3, flags, flags & ~0x7F, 2]


def raw(arch: str, tier: str, text: str, **spec: Any) -> Kernel:
    """A kernel from assembly text."""
    lanes = 64 if arch.startswith("gfx9") else 32
    return Gpu(arch, tier=tier).load_raw(assemble(arch, text + "\ns_endpgm"), KernelSpec(wave_lanes=lanes, **spec))


@tiers
@pytest.mark.parametrize(("arch", "number", "name"), [
    ("gfx1100", 9, "PC_HI"), ("gfx1100", 40, ""), ("gfx1201", 7, "IB_STS"), ("gfx942", 12, "IB_DBG0"), ("gfx950", 29, "")])
def test_registers_nobody_documents_are_named(arch: str, tier: str, number: int, name: str) -> None:
    for text in (f"s_getreg_b32 s4, hwreg({number})", f"s_setreg_b32 hwreg({number}), s4"):
        with pytest.raises(KernelFault, match=re.escape(f"hardware register {number}" + f" ({name})" * bool(name))):
            raw(arch, tier, text)(grid=(32,), workgroup=(32,))


@tiers
@pytest.mark.parametrize("arch", ["gfx1100", "gfx1201"])
def test_messages_of_trap_handlers_are_named(arch: str, tier: str) -> None:
    with pytest.raises(KernelFault, match=r"message 132 that returns data .MSG_RTN_SAVE_WAVE"):
        raw(arch, tier, "s_sendmsg_rtn_b32 s4, sendmsg(MSG_RTN_SAVE_WAVE)")(grid=(32,), workgroup=(32,))


# ---------------------------------------------------------------- clocks


@waves
def test_clocks_are_monotone_and_the_same_on_both_tiers(arch: str, lanes: int) -> None:
    groups, n = 4, 3
    seen = []
    for tier, seed in (*((tier, 0) for tier in TIERS), ("native", 5)):
        gpu = Gpu(arch, tier=tier, seed=seed)
        kernel = module("machine.hip", arch, tier, *wave_option(arch, lanes), gpu=gpu)["clocks"]
        out = np.zeros((2, groups, n, 6), np.uint64)
        for launch in out:
            kernel(launch, np.uint32(n), grid=(groups * n * lanes,), workgroup=(n * lanes,))
        seen.append(out)
    assert all((seen[0] == other).all() for other in seen[1:])
    t = seen[0].astype(np.int64)
    assert (t[..., 1] - t[..., 0] >= 128).all()  # slept for two times 64 cycles
    assert (np.diff(t[..., :4]) > 0).all()
    assert (t[..., 5] > t[..., 4]).all()
    assert (t[..., 0, 2] - t[..., 1, 2] >= 6400).all()  # only the first wave slept again,
    assert (t[..., 3] > t[..., :1, 2]).all()  # and the barrier let nobody go on before
    assert (np.diff(t[..., 0, 0], axis=1) >= 0).all()  # workgroups start in order
    assert t[1, ..., 0].min() >= t[0, ..., 3].max()  # a launch after the one before


@pytest.mark.parametrize("tier", TIERS)
def test_split_barriers_level_clocks(tier: str) -> None:
    """The early wave of gfx1201 waits for the late one, however often it signals before."""
    text = """
    v_lshrrev_b32 v1, 5, v0
    v_readfirstlane_b32 s6, v1
    s_cmp_eq_u32 s6, 0
    s_cbranch_scc0 late
    s_sleep 50
    late: s_barrier_signal -1
    s_barrier_wait -1
    s_getreg_b32 s7, hwreg(HW_REG_SHADER_CYCLES_LO)
    s_load_b64 s[4:5], s[0:1], 0x0
    s_wait_kmcnt 0x0
    s_lshl_b32 s6, s6, 2
    v_mov_b32 v2, s6
    v_mov_b32 v3, s7
    global_store_b32 v2, v3, s[4:5]
    """
    out = np.zeros(3, np.uint32)
    raw("gfx1201", tier, text)(out, grid=(96,), workgroup=(96,))
    assert out.min() > 50 * 64
    assert out.max() - out.min() <= 3


# ---------------------------------------------------------------- messages


@tiers
@pytest.mark.parametrize("arch", ARCH)
def test_messages_with_and_without_an_answer(arch: str, tier: str) -> None:
    gpu = Gpu(arch, tier=tier)
    kernel = module("machine.hip", arch, tier, gpu=gpu)["messages"]
    for dispatch in range(3):
        out = np.full(20, 99, np.uint64)
        kernel(out, grid=(12,), workgroup=(1,))
        if not arch.startswith("gfx9"):
            assert out[:5].tolist() == [0, dispatch, 0, 0, 0]
        if arch == "gfx1201":
            assert out[5:17].tolist() == [group % 32 % 8 % 4 for group in range(12)]


@tiers
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_doorbell_message_answers_in_exec(arch: str, tier: str) -> None:
    text = """
    s_load_dwordx2 s[4:5], s[0:1], 0x0
    s_mov_b32 exec_lo, 0x80000000
    s_sendmsg sendmsg(MSG_GET_DOORBELL)
    s_mov_b64 s[6:7], exec
    s_mov_b64 exec, 1
    s_waitcnt lgkmcnt(0)
    v_mov_b32 v1, 0
    v_mov_b32 v2, s6
    v_mov_b32 v3, s7
    global_store_dwordx2 v1, v[2:3], s[4:5]
    """
    out = np.full(2, 9, np.uint32)
    raw(arch, tier, text)(out, grid=(64,), workgroup=(64,))
    assert out.tolist() == [0, 0]  # no queue of the driver's: doorbell 0


@tiers
@pytest.mark.parametrize("arch", ["gfx1100", "gfx1201"])
def test_released_vgprs_show_in_status(arch: str, tier: str) -> None:
    text = """
    s_load_b64 s[4:5], s[0:1], 0x0
    s_waitcnt lgkmcnt(0)
    s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)
    s_getreg_b32 s6, hwreg(2)
    s_bfe_u32 s6, s6, 0x10018
    v_mov_b32 v1, 0
    v_mov_b32 v2, s6
    global_store_b32 v1, v2, s[4:5]
    """
    text = text.replace("s_waitcnt lgkmcnt(0)", "s_wait_kmcnt 0x0") if arch == "gfx1201" else text
    out = np.zeros(1, np.uint32)
    raw(arch, tier, text)(out, grid=(32,), workgroup=(32,))
    assert out[0] == 1


@tiers
@pytest.mark.parametrize("arch", ARCHES)
def test_messages_of_graphics_are_refused(arch: str, tier: str) -> None:
    message = {"gfx942": 3, "gfx950": 3}.get(arch, 2)
    with pytest.raises(KernelFault, match=f"s_sendmsg 0x{message}"):
        raw(arch, tier, f"s_sendmsg {message}")(grid=(32,), workgroup=(32,))


@tiers
@pytest.mark.parametrize("arch", ARCHES)
def test_message_and_halt_is_a_deadlock(arch: str, tier: str) -> None:
    with pytest.raises(KernelFault, match="deadlock"):
        raw(arch, tier, "s_sendmsghalt 1")(grid=(32,), workgroup=(32,))


# ---------------------------------------------------------------- ends and traps


@tiers
@pytest.mark.parametrize(("arch", "end"), [
    ("gfx1100", "s_endpgm_saved"), ("gfx1201", "s_endpgm_saved"), ("gfx942", "s_endpgm_saved"), ("gfx950", "s_endpgm_saved"),
    ("gfx942", "s_endpgm_ordered_ps_done"), ("gfx942", "s_setkill 1"), ("gfx1100", "s_setkill 1")])
def test_other_ends_of_a_program_end_it(arch: str, tier: str, end: str) -> None:
    lanes = 64 if arch.startswith("gfx9") else 32
    assert raw(arch, tier, f"{end}\ns_trap 2")(grid=(lanes,), workgroup=(lanes,)).wave_instructions == 1


@tiers
@pytest.mark.parametrize("arch", ["gfx1100", "gfx1201"])
def test_padding_behind_a_program_is_not_executed(arch: str, tier: str) -> None:
    with pytest.raises(KernelFault, match="illegal instruction"):
        raw(arch, tier, "s_code_end")(grid=(32,), workgroup=(32,))


@tiers
@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("number", [1, 2, 3, 4, 15])
def test_traps_stop_the_kernel_but_for_a_debuggers(arch: str, tier: str, number: int) -> None:
    kernel, lanes = raw(arch, tier, f"s_nop 0\ns_trap {number}"), 64 if arch.startswith("gfx9") else 32
    if number == 3:
        assert kernel(grid=(lanes,), workgroup=(lanes,)).wave_instructions == 3
        return
    with pytest.raises(KernelFault, match=f"s_trap {number}") as fault:
        kernel(grid=(lanes,), workgroup=(lanes,))
    assert (fault.value.kind, fault.value.pc_offset) == ("trap", 4)


# ---------------------------------------------------------------- accumulation registers


@tiers
@pytest.mark.parametrize("arch", CDNA)
def test_accumulators_are_a_file_of_their_own(arch: str, tier: str) -> None:
    kernel = module("machine.hip", arch, tier)["accumulators"]
    x, out = np.arange(128, dtype=np.float32) % 7, np.zeros((64, 5), np.float32)
    kernel(out, x, grid=(64,), workgroup=(64,))
    want = np.zeros((64, 5), np.float32)
    for lane in range(64):
        block = lane // 4 * 4
        for i in range(4):
            want[lane, i] = i + 1 + 3 * x[block + i] * x[64 + lane]
        want[lane, 4] = x[lane]
    assert (out == want).all()


# ---------------------------------------------------------------- LDS


@tiers
@pytest.mark.parametrize(("arch", "block"), [("gfx1100", 1024), ("gfx1201", 1024), ("gfx942", 512), ("gfx950", 1280)])
def test_lds_is_given_out_in_blocks(arch: str, tier: str, block: int) -> None:
    """Of 4 bytes asked for, the last word of the first block is there, the one behind is not."""
    write, read = ("ds_write_b32", "ds_read_b32") if arch.startswith("gfx9") else ("ds_store_b32", "ds_load_b32")
    wait = "s_wait_dscnt 0x0" if arch == "gfx1201" else "s_waitcnt lgkmcnt(0)"
    text = f"""
    v_mov_b32 v4, {block - 4}
    v_mov_b32 v5, 77
    {write} v4, v5
    {write} v4, v5 offset:4
    {read} v2, v4
    {read} v3, v4 offset:4
    {wait}
    {STORE[arch]}
    """
    lanes = 64 if arch.startswith("gfx9") else 32
    out = np.zeros((lanes, 2), np.uint32)
    raw(arch, tier, text, lds_bytes=4)(out, grid=(lanes,), workgroup=(lanes,))
    assert out.tolist() == [[77, 0]] * lanes


# ---------------------------------------------------------------- registers beyond the allocation


def few(arch: str, tier: str, text: str, vgprs: int, accum_offset: int = 0) -> Kernel:
    """A kernel of so many VGPRs; on CDNA, with its AccVGPRs from accum_offset on."""
    kernel = raw(arch, tier, text)
    d, step = kernel.info.descriptor, 8
    info = replace(kernel.info, descriptor=d.replace(
        rsrc1=d.rsrc1.replace(vgprs=vgprs // step - 1), rsrc3=Rsrc3(accum_offset=accum_offset // 4 - 1) if accum_offset else d.rsrc3))
    return Kernel(kernel.gpu, info, kernel.descriptor_va, has_metadata=False)


STORE = {
    "gfx1100": "s_load_b64 s[4:5], s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\nv_lshlrev_b32 v9, 3, v0\nglobal_store_b64 v9, v[2:3], s[4:5]",
    "gfx1201": "s_load_b64 s[4:5], s[0:1], 0x0\ns_wait_kmcnt 0x0\nv_lshlrev_b32 v9, 3, v0\nglobal_store_b64 v9, v[2:3], s[4:5]",
    "gfx942": "s_load_dwordx2 s[4:5], s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\nv_lshlrev_b32 v9, 3, v0\n"
              "global_store_dwordx2 v9, v[2:3], s[4:5]",
}  # fmt: skip
STORE["gfx950"] = STORE["gfx942"]


@tiers
@pytest.mark.parametrize("arch", ARCHES)
def test_sources_beyond_are_v0_and_results_beyond_are_dropped(arch: str, tier: str) -> None:
    """24 VGPRs everywhere: with 16 asked for, RDNA gives the next multiple of 24."""
    asked = 16 if arch in ("gfx1100", "gfx1201") else 24
    text = f"""
    v_mov_b32 v23, 40
    v_mov_b32 v2, v23
    v_mov_b32 v24, 50
    v_mov_b32 v3, v24
    {STORE[arch]}
    """
    lanes = 64 if arch.startswith("gfx9") else 32
    out = np.zeros((lanes, 2), np.uint32)
    few(arch, tier, text, asked, accum_offset=24 if lanes == 64 else 0)(out, grid=(lanes,), workgroup=(lanes,))
    assert out[:, 0].tolist() == [40] * lanes
    assert out[:, 1].tolist() == list(range(lanes))  # v0 holds the work-item's number


@tiers
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_both_kinds_of_vector_registers_share_one_file(arch: str, tier: str) -> None:
    """16 VGPRs, 16 AccVGPRs: a15 is there, a16 is not."""
    text = f"""
    v_accvgpr_write_b32 a15, 41
    v_accvgpr_write_b32 a16, 42
    v_accvgpr_read_b32 v2, a15
    v_mov_b32 v3, 9
    v_accvgpr_read_b32 v3, a15
    {STORE[arch]}
    """
    out = np.zeros((64, 2), np.uint32)
    few(arch, tier, text, 32, accum_offset=16)(out, grid=(64,), workgroup=(64,))
    assert (out == 41).all()


@tiers
def test_vgprs_where_the_accumulators_are_are_not_guessed(tier: str) -> None:
    with pytest.raises(KernelFault, match="v20 of a wave whose AccVGPRs begin at 16"):
        few("gfx942", tier, "v_mov_b32 v20, 1", 32, accum_offset=16)(grid=(64,), workgroup=(64,))


@tiers
@pytest.mark.parametrize("arch", ARCHES)
def test_loads_and_atomics_into_registers_beyond_do_nothing(arch: str, tier: str) -> None:
    """Not even in memory."""
    atomic = {"gfx1100": "global_atomic_add_u32 v{0}, v8, v9, s[4:5] glc",
              "gfx1201": "global_atomic_add_u32 v{0}, v8, v9, s[4:5] th:TH_ATOMIC_RETURN"}.get(
        arch, "global_atomic_add v{0}, v8, v9, s[4:5] sc0")
    load, wait = STORE[arch].splitlines()[:2]
    text = f"{load}\n{wait}\nv_mov_b32 v8, 0\nv_mov_b32 v9, 1\n{atomic.format(24)}\n{atomic.format(10)}"
    lanes = 64 if arch.startswith("gfx9") else 32
    out = np.zeros(1, np.uint32)
    few(arch, tier, text, 24, accum_offset=24 if lanes == 64 else 0)(out, grid=(lanes,), workgroup=(lanes,))
    assert out[0] == lanes


@tiers
@pytest.mark.parametrize("arch", ["gfx1100", "gfx1201"])
@pytest.mark.parametrize("number", [74, 8, 200])
def test_numbers_that_are_no_request_for_data_are_named(arch: str, tier: str, number: int) -> None:
    """Found by random instructions: they were taken for hardware registers."""
    with pytest.raises(KernelFault, match=f"message {number} that returns data is not modelled"):
        raw(arch, tier, f"s_sendmsg_rtn_b32 s4, sendmsg({number}, 0, 0)")(grid=(32,), workgroup=(32,))
