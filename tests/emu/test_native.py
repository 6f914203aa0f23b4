"""The native executor: control flow, counting, scheduling, modes and faults, against the reference."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from stuntgpu.emu import layout
from stuntgpu.emu.faults import KernelFault
from stuntgpu.emu.launch import Executor, Launch, RunOptions, Stats
from stuntgpu.emu.memory import EXECUTE, READ, WRITE, AddressSpace
from stuntgpu.emu.native import Native
from stuntgpu.emu.native_abi import CProgram, CWave, CWorker, library
from stuntgpu.emu.program import Pool, Program
from stuntgpu.emu.records import works_of
from stuntgpu.emu.reference import Reference
from stuntgpu.emu.state import WaveFinal, WaveInit
from stuntgpu.isa.asm import assemble
from tests.emu.rdna import TIERS, Bench

ARCH = "gfx1100"
CODE, ARGUMENTS, DATA = 0x1000_0000, 0x2000_0000, 0x3000_0000
DATA_BYTES = 4096
ALL = 0xFFFF_FFFF
RSRC1 = 0xF0 << 12 | 1 << 21 | 1 << 23
RSRC2 = 2 << 1 | 1 << 7  # two user SGPRs, workgroup id x in s2


@dataclass
class World:
    """Code, kernel arguments (one pointer to the data) and data, in a space of their own."""

    text: str
    space: AddressSpace = field(default_factory=AddressSpace)
    data: ctypes.Array[ctypes.c_char] = field(default_factory=lambda: ctypes.create_string_buffer(DATA_BYTES))

    def __post_init__(self) -> None:
        code = assemble(ARCH, self.text)
        self.code = ctypes.create_string_buffer(code, len(code))
        self.arguments = ctypes.create_string_buffer(struct.pack("<Q", DATA), 64)
        self.space.map(CODE, len(code), ctypes.addressof(self.code), perms=READ | EXECUTE, name="code")
        self.space.map(ARGUMENTS, 64, ctypes.addressof(self.arguments), perms=READ, name="arguments")
        self.space.map(DATA, DATA_BYTES, ctypes.addressof(self.data), perms=READ | WRITE, name="data")

    def launch(self, groups: int = 1, threads: int = 32, lds: int = 0) -> Launch:
        return Launch(CODE, RSRC1, RSRC2, 0, (ARGUMENTS & ALL, ARGUMENTS >> 32), (groups * threads, 1, 1),
                      (threads, 1, 1), 32, lds, name="kernel")

    def words(self, n: int) -> tuple[int, ...]:
        return struct.unpack_from(f"<{n}I", self.data.raw)


def run(text: str, n: int, executor: Executor | None = None, options: RunOptions | None = None,
        **shape: int) -> tuple[tuple[int, ...], Stats]:
    """(first n words of the data, counts) after a launch."""
    world = World(text)
    stats = (executor or Native(ARCH)).run(world.space, world.launch(**shape), options or RunOptions())
    return world.words(n), stats


def agree(text: str, n: int, **shape: int) -> tuple[int, ...]:
    """The words both tiers leave, which must be the same, counts included."""
    native, reference = run(text, n, **shape), run(text, n, Reference(ARCH), **shape)
    assert native == reference
    return native[0]


def wave(text: str, executor: Native | Reference, lanes: int = 32, mode: int = 0xF0,
         vgprs: Sequence[Sequence[int]] = ()) -> WaveFinal:
    world = World(text + "\ns_endpgm")
    init = WaveInit((1 << lanes) - 1, {4: DATA, 5: DATA >> 32}, dict(enumerate(vgprs)), mode=mode)
    return executor.run_wave(world.space, CODE, init, lanes, 256)


def same_wave(text: str, lanes: int = 32, mode: int = 0xF0, vgprs: Sequence[Sequence[int]] = ()) -> WaveFinal:
    native, reference = (wave(text, x, lanes, mode, vgprs) for x in (Native(ARCH), Reference(ARCH)))
    assert native == reference
    return native


STORE_TAIL = """
  s_load_b64 s[4:5], s[0:1], 0x0
  v_lshlrev_b32 v9, 2, v0
  s_waitcnt lgkmcnt(0)
  global_store_b32 v9, v1, s[4:5]
  s_endpgm
"""


# ---------------------------------------------------------------- layout


def test_python_and_c_agree_on_layouts() -> None:
    lib = library()
    mirrored = (
        ctypes.sizeof(CWave), layout.RECORD_BYTES, ctypes.sizeof(CWorker), ctypes.sizeof(CProgram), layout.SCC,
        layout.MODE, layout.NEXT, layout.LEFT, layout.FROM, layout.PC, layout.CODE, layout.FAULT_KIND, layout.HELPERS,
        layout.LDS, layout.SCRATCH_VA, layout.VGPR_BASE, layout.N_VGPR_SLOTS, layout.SINK,
    )  # fmt: skip
    assert tuple(lib.sg_layout(i) for i in range(len(mirrored))) == mirrored
    assert ctypes.sizeof(CWave) == layout.WAVE_BYTES <= layout.VGPR_BASE


# ---------------------------------------------------------------- control flow and counting

LOOP = """
  s_mov_b32 s8, 5
  v_mov_b32 v1, 0
loop:
  s_nop 0
  v_add_nc_u32 v1, v1, v0
  s_add_i32 s8, s8, -1
  s_cmp_lg_u32 s8, 0
  s_waitcnt lgkmcnt(0)
  s_cbranch_scc1 loop
""" + STORE_TAIL


def test_counts_are_exact_across_loops_and_waits() -> None:
    assert agree(LOOP, 32) == tuple(5 * i for i in range(32))
    _, stats = run(LOOP, 32)
    assert stats == Stats(kernels=1, workgroups=1, waves=1, wave_instructions=2 + 5 * 6 + 5)


def test_counts_add_up_over_workgroups_and_partial_waves() -> None:
    world = World(LOOP)
    launch = Launch(CODE, RSRC1, RSRC2, 0, (ARGUMENTS & ALL, 0), (200, 1, 1), (96, 1, 1), 32, name="kernel")
    native, reference = (x.run(world.space, launch, RunOptions()) for x in (Native(ARCH), Reference(ARCH)))
    assert native == reference
    assert (native.workgroups, native.waves) == (3, 7)


def test_calls_and_computed_jumps_find_code_as_it_is_reached() -> None:
    text = """
  s_getpc_b64 s[8:9]
  s_add_u32 s8, s8, 24
  s_addc_u32 s9, s9, 0
  v_mov_b32 v1, 1
  s_swappc_b64 s[10:11], s[8:9]
  v_add_nc_u32 v1, 4, v1
  s_branch out
  s_waitcnt lgkmcnt(0)
  v_add_nc_u32 v1, 2, v1
  s_setpc_b64 s[10:11]
out:
""" + STORE_TAIL
    assert agree(text, 2) == (7, 7)


def test_other_code_at_the_same_address_is_noticed() -> None:
    native = Native(ARCH)
    first, second = World("v_mov_b32 v1, 1" + STORE_TAIL), World("v_mov_b32 v1, 2" + STORE_TAIL)
    for world, want in ((first, 1), (second, 2), (first, 1)):
        native.run(world.space, world.launch(), RunOptions())
        assert world.words(1) == (want,)
    ctypes.memmove(first.code, second.code, len(second.code))
    native.run(first.space, first.launch(), RunOptions())
    assert first.words(1) == (2,)


@pytest.mark.parametrize("pair", [
    "v_dual_mov_b32 v2, v1 :: v_dual_mov_b32 v5, v4",
    "v_dual_mov_b32 v2, v1 :: v_dual_mov_b32 v3, v2",
    "v_dual_mov_b32 v2, v3 :: v_dual_mov_b32 v3, v2",
    "v_dual_fmac_f32 v2, v1, v3 :: v_dual_fmac_f32 v3, v2, v4",
    "v_dual_cndmask_b32 v2, v3, v4 :: v_dual_add_f32 v3, 1.0, v2",
])  # fmt: skip
def test_both_halves_of_a_pair_read_before_either_writes(pair: str) -> None:
    vgprs = [[0x3F80_0000 + 1000 * r + i for i in range(32)] for r in range(6)]
    same_wave(f"s_mov_b32 vcc_lo, 0x0ff0f0f0\n{pair}", vgprs=vgprs)


# ---------------------------------------------------------------- modes


def test_code_after_a_mode_change_rounds_and_flushes_anew() -> None:
    text = """
  v_add_f32 v2, v0, v1
  s_round_mode 0x1
  v_add_f32 v3, v0, v1
  s_denorm_mode 0x0
  v_add_f32 v4, v0, v1
  s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 8), 0xff
  v_add_f32 v5, v0, v1
  s_getreg_b32 s6, hwreg(HW_REG_MODE)
"""
    vgprs = [[0x3F80_0000, 1, 0x8000_0001, 0x7F7F_FFFF] * 8, [0x3300_0000, 1, 2, 0x7300_0000] * 8]
    final = same_wave(text, vgprs=vgprs)
    assert len({final.vgprs[r] for r in (2, 3, 4, 5)}) == 4


def test_mode_changes_inside_a_loop_keep_their_place() -> None:
    text = """
  s_mov_b32 s8, 3
  v_mov_b32 v1, 1.0
loop:
  s_round_mode 0x3
  v_mul_f32 v1, 0x3fc00001, v1
  s_round_mode 0x0
  v_mul_f32 v1, 0x3fc00001, v1
  s_add_i32 s8, s8, -1
  s_cmp_lg_u32 s8, 0
  s_cbranch_scc1 loop
""" + STORE_TAIL
    agree(text, 32)


def test_wave64_uses_all_lanes() -> None:
    final = same_wave("v_cmp_gt_u32 vcc, 50, v0\nv_cndmask_b32 v1, 7, v0, vcc\nv_readlane_b32 s6, v0, 63",
                      lanes=64, vgprs=[list(range(64))])
    assert final.vcc == (1 << 50) - 1
    assert final.vgprs[1][49:51] == (49, 7)
    assert final.sgprs[6] == 63


# ---------------------------------------------------------------- scheduling

#: Workgroup 0 waits until workgroup 1 has written.
HANDSHAKE = """
  s_load_b64 s[4:5], s[0:1], 0x0
  s_waitcnt lgkmcnt(0)
  v_mov_b32 v2, 0
  s_cmp_eq_u32 s2, 1
  s_cbranch_scc1 write
wait:
  global_load_b32 v1, v2, s[4:5] glc
  s_waitcnt vmcnt(0)
  v_readfirstlane_b32 s6, v1
  s_cmp_eq_u32 s6, 0
  s_cbranch_scc1 wait
  global_store_b32 v2, v1, s[4:5] offset:4
  s_endpgm
write:
  v_mov_b32 v1, 42
  global_store_b32 v2, v1, s[4:5]
  s_endpgm
"""


def test_a_workgroup_that_waits_for_a_later_one_goes_on() -> None:
    assert run(HANDSHAKE, 2, groups=2)[0] == (42, 42)


EXCHANGE = """
  v_lshlrev_b32 v2, 2, v0
  ds_store_b32 v2, v0
  s_waitcnt lgkmcnt(0)
  s_barrier
  v_xor_b32 v3, 0xfc, v2
  ds_load_b32 v1, v3
  s_waitcnt lgkmcnt(0)
""" + STORE_TAIL


def test_barriers_separate_the_waves_of_a_workgroup() -> None:
    assert agree(EXCHANGE, 64, threads=64, lds=256) == tuple(63 - i for i in range(64))


@pytest.mark.parametrize("seed", [1, 2, 77])
def test_seeds_order_waves_and_change_no_result(seed: int) -> None:
    assert run(EXCHANGE, 64, options=RunOptions(seed=seed), threads=64, lds=256)[0] == tuple(63 - i for i in range(64))


COUNT = """
  s_load_b64 s[4:5], s[0:1], 0x0
  v_mov_b32 v1, 1
  v_mov_b32 v2, 0
  s_mov_b32 s8, 20
  s_waitcnt lgkmcnt(0)
loop:
  global_atomic_add_u32 v2, v1, s[4:5]
  s_add_i32 s8, s8, -1
  s_cmp_lg_u32 s8, 0
  s_cbranch_scc1 loop
  s_endpgm
"""


def test_threads_share_memory_by_indivisible_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stuntgpu.emu.native.HEAD_START", 0)
    words, stats = run(COUNT, 1, options=RunOptions(threads=2), groups=64, threads=64)
    assert words == (64 * 64 * 20,)
    assert stats == Stats(1, 64, 128, 128 * (5 + 20 * 4 + 1))


def test_cancelling_ends_an_endless_launch() -> None:
    asked: list[int] = []

    def cancelled() -> bool:
        asked.append(1)
        return True

    _, stats = run("loop:\ns_nop 0\ns_branch loop", 0, options=RunOptions(cancelled=cancelled))
    assert asked
    assert stats.wave_instructions > 0


# ---------------------------------------------------------------- faults

FAULTS = {
    "read past the end": "v_mov_b32 v2, 0x1000\nglobal_load_b32 v1, v2, s[4:5]",
    "one lane writes wild": "v_lshlrev_b32 v2, 7, v0\nglobal_store_b32 v2, v0, s[4:5] offset:128",
    "read-only memory": "v_mov_b32 v2, 0\nglobal_store_b32 v2, v0, s[0:1]",
    "scalar load": "s_load_b64 s[8:9], s[4:5], 0x1000",
    "misaligned atomic": "v_mov_b32 v2, 2\nglobal_atomic_add_u32 v2, v0, s[4:5]",
    "flat null": "v_mov_b32 v2, 0\nv_mov_b32 v3, 0\nflat_load_b64 v[4:5], v[2:3]",
    "illegal": "s_branch 1\ns_nop 0\ns_code_end",
    "trap": "s_trap 2",
    "image": "image_load v0, v[0:1], s[8:15] dmask:0x1 dim:SQ_RSRC_IMG_2D",
    "run off the end": "s_nop 0",
    "jump to nowhere": "s_mov_b64 s[8:9], 64\ns_setpc_b64 s[8:9]",
}


def fault_of(executor: Executor, text: str) -> KernelFault:
    end = "" if text in (FAULTS["run off the end"],) else "\ns_endpgm"
    world = World(f"s_load_b64 s[4:5], s[0:1], 0x0\n{text}{end}")
    with pytest.raises(KernelFault) as caught:
        executor.run(world.space, world.launch(groups=2), RunOptions())
    return caught.value


@pytest.mark.parametrize("name", FAULTS)
def test_faults_say_the_same_on_both_tiers(name: str) -> None:
    native, reference = fault_of(Native(ARCH), FAULTS[name]), fault_of(Reference(ARCH), FAULTS[name])
    fields = ("kind", "kernel", "pc", "pc_offset", "instruction", "workgroup", "wave", "lane", "address", "access", "nearest")
    assert [getattr(native, f) for f in fields] == [getattr(reference, f) for f in fields]


def test_halted_waves_are_a_deadlock() -> None:
    for executor in (Native(ARCH), Reference(ARCH)):
        fault = fault_of(executor, "s_sethalt 1")
        assert (fault.kind, fault.instruction) == ("deadlock", "s_sethalt 1")


def test_budget_stops_an_endless_kernel() -> None:
    world = World("loop:\ns_nop 0\ns_branch loop")
    with pytest.raises(KernelFault, match="budget exceeded"):
        Native(ARCH).run(world.space, world.launch(), RunOptions(max_wave_instructions=1000))


def test_lanes_before_the_faulting_one_have_stored() -> None:
    world = World(f"s_load_b64 s[4:5], s[0:1], 0x0\n{FAULTS['one lane writes wild']}")
    with pytest.raises(KernelFault) as caught:
        Native(ARCH).run(world.space, world.launch(), RunOptions())
    assert (caught.value.lane, caught.value.address) == (31, DATA + 4096)
    assert world.words(1024)[32::32] == tuple(range(31))


def test_memory_mapped_while_a_kernel_runs_is_found() -> None:
    world = World("""
  s_load_b64 s[4:5], s[0:1], 0x0
  v_mov_b32 v1, 0
  s_waitcnt lgkmcnt(0)
wait:
  global_load_b32 v2, v1, s[4:5] glc
  s_waitcnt vmcnt(0)
  v_readfirstlane_b32 s6, v2
  s_cmp_eq_u32 s6, 0
  s_cbranch_scc1 wait
  global_load_b32 v3, v1, s[4:5] offset:4080
  v_mov_b32 v4, 0x1000
  global_load_b32 v3, v4, s[4:5]
  s_waitcnt vmcnt(0)
  global_store_b32 v1, v3, s[4:5] offset:4
  s_endpgm
""")
    late = ctypes.create_string_buffer(struct.pack("<I", 99), 64)

    def look() -> bool:
        if world.words(1) == (0,):
            world.space.map(DATA + DATA_BYTES, 64, ctypes.addressof(late))
            world.data[0] = b"\x01"
        return False

    Native(ARCH).run(world.space, world.launch(), RunOptions(cancelled=look))
    assert world.words(2) == (1, 99)


# ---------------------------------------------------------------- programs


def test_waits_have_no_records_but_branch_targets_keep_theirs() -> None:
    code = assemble(ARCH, LOOP)
    program = Program(ARCH, 32)
    program.extend(0, lambda pc, n: code[pc : pc + n])
    works = [w for c in program.order for w in works_of(c, 32, 0xF0, program.pool)]
    assert len(program.order) == len(works) == 13
    assert program.heads == {0, 8}


def test_equal_constants_share_their_place() -> None:
    pool = Pool(32)
    assert pool(5, 1) == pool(5, 1) != pool(6, 1)
    assert pool(5, 2) == pool(5, 2)
    assert pool.used == 4


@pytest.mark.parametrize("jump", ["s_setpc_b64 s[8:9]", "s_swappc_b64 s[10:11], s[8:9]"])
def test_a_computed_jump_may_go_to_the_next_instruction(jump: str) -> None:
    text = f"s_getpc_b64 s[8:9]\nhere:\ns_add_u32 s8, s8, next - here\n{jump}\nnext:\ns_mov_b32 s6, 7"
    assert [Bench("gfx1100", tier)(text).sgprs[6] for tier in TIERS] == [7, 7]


@pytest.mark.parametrize("text", ["v_cmp_eq_u32_e64 exec_hi, v0, v1", "v_cndmask_b32_e64 v0, v1, v2, exec_hi"])
@pytest.mark.parametrize("tier", TIERS)
def test_a_mask_of_64_bits_does_not_begin_at_exec_hi(tier: str, text: str) -> None:
    with pytest.raises(KernelFault, match="exec_hi is not modelled"):
        Bench("gfx1100", tier)(text, lanes=64)
