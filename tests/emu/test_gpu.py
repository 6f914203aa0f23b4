"""The Python door: what a launch looks like to an executor, and how wrong calls are refused."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stuntgpu.emu import Gpu, Kernel, KernelFault, KernelSpec, LaunchError, Local
from stuntgpu.emu.budget import DEFAULT, VARIABLE, max_wave_instructions
from stuntgpu.emu.events import Event, KernelEnd, KernelStart
from stuntgpu.emu.gpu import UnknownKernel
from stuntgpu.emu.launch import Launch, RunOptions, Stats
from stuntgpu.emu.memory import AddressSpace
from stuntgpu.isa.abi.aql import KernelDispatchPacket
from stuntgpu.isa.abi.codeobject import KernelArg, KernelInfo
from stuntgpu.isa.abi.descriptor import (
    CodeProperties,
    KernelDescriptor,
    Rsrc1,
    Rsrc2,
)
from stuntgpu.isa.errors import Unmodelled

S_ENDPGM = bytes.fromhex("0000b0bf")
GRID: dict[str, Any] = {"grid": (64, 1, 1), "workgroup": (32, 1, 1)}


class Recorder:
    """An executor that runs nothing: it looks at the launch through the address space, as a kernel would."""

    def __init__(self, look: Callable[[AddressSpace, Launch], None] = lambda space, launch: None) -> None:
        self.look, self.launches = look, list[Launch]()
        self.options = RunOptions()

    def run(self, space: AddressSpace, launch: Launch, options: RunOptions) -> Stats:
        self.launches.append(launch)
        self.options = options
        self.look(space, launch)
        return Stats(kernels=1, wave_instructions=7)


def pointer(launch: Launch, pair: int = 0) -> int:
    """The 64-bit value in user SGPRs [2 pair, 2 pair + 1]."""
    return launch.user_sgprs[2 * pair] | launch.user_sgprs[2 * pair + 1] << 32


def kernel_with(gpu: Gpu, *args: KernelArg, kernarg_size: int = 64, properties: CodeProperties | None = None,
                group_segment_size: int = 0, private_segment_size: int = 0, max_items: int = 1024,
                required: tuple[int, int, int] | None = None) -> Kernel:
    """A kernel as a code object would have declared it."""
    descriptor = KernelDescriptor(
        kernarg_size=kernarg_size, entry_offset=256, group_segment_size=group_segment_size,
        private_segment_size=private_segment_size, rsrc1=Rsrc1(float_mode=0xF0), rsrc2=Rsrc2(user_sgprs=15),
        properties=properties or CodeProperties(kernarg_segment_ptr=True, wavefront_size32=True))
    return Kernel(gpu, KernelInfo("k", descriptor, 0, 256, args, max_workgroup_items=max_items,
                                  required_workgroup=required), 0x5000_0000)


def buffer_arg(offset: int, name: str = "") -> KernelArg:
    return KernelArg(offset, 8, "global_buffer", name)


def test_arrays_are_mapped_in_place_and_writes_are_seen() -> None:
    a, out = np.arange(8, dtype=np.uint32), np.zeros(8, np.uint32)

    def copy(space: AddressSpace, launch: Launch) -> None:
        source, target = struct.unpack("<2Q", space.read(pointer(launch), 16))
        space.write(target, space.read(source, a.nbytes))

    gpu = Gpu("gfx1100", executor=Recorder(copy))
    gpu.load_raw(S_ENDPGM)(a, out, **GRID)
    assert out.tolist() == a.tolist()


def test_code_is_at_the_entry_and_read_only() -> None:
    seen: list[tuple[bytes, int]] = []

    def look(space: AddressSpace, launch: Launch) -> None:
        region = space.find(launch.entry)
        assert region is not None
        seen.append((space.read(launch.entry, 4), region.perms))

    gpu = Gpu("gfx1100", executor=Recorder(look))
    gpu.load_raw(bytes(4) + S_ENDPGM, KernelSpec(entry=4))(**GRID)
    assert seen == [(S_ENDPGM, 5)]


def test_raw_arguments_are_packed_in_order_and_aligned() -> None:
    raw: list[bytes] = []
    gpu = Gpu("gfx1100", executor=Recorder(lambda space, launch: raw.append(space.read(pointer(launch), 40))))
    gpu.load_raw(S_ENDPGM)(np.uint32(1), None, np.uint16(2), np.float64(1.0), np.int8(-1), np.uint32(5), **GRID)
    assert raw == [struct.pack("<I4xQH6xdb3xI", 1, 0, 2, 1.0, -1, 5)]


def test_launch_carries_registers_and_sizes() -> None:
    recorder = Recorder()
    gpu = Gpu("gfx1100", executor=recorder, seed=3, threads=2, max_wave_instructions=99)
    gpu.load_raw(S_ENDPGM, KernelSpec(name="mine", lds_bytes=1000, user_sgprs=6, workitem_ids=2))(
        grid=(64, 4), workgroup=(32, 2), shared=24)
    launch, = recorder.launches
    assert (launch.name, launch.grid, launch.workgroup, launch.wave_lanes) == ("mine", (64, 4, 1), (32, 2, 1), 32)
    assert launch.lds_bytes == 1024
    rsrc2 = Rsrc2.from_int(launch.rsrc2)
    assert (rsrc2.user_sgprs, rsrc2.lds_size, rsrc2.workitem_ids, rsrc2.workgroup_id_x) == (6, 2, 2, True)
    assert launch.user_sgprs == (0,) * 6  # no arguments: no kernarg segment
    assert Rsrc1.from_int(launch.rsrc1).float_mode == 0xF0
    assert (recorder.options.seed, recorder.options.threads, recorder.options.max_wave_instructions) == (3, 2, 99)
    assert gpu.stats.wave_instructions == 7


def test_same_array_twice_is_one_buffer_and_buffers_have_guards() -> None:
    a, b = np.zeros(16, np.uint8), np.zeros(16, np.uint8)
    seen: list[tuple[int, ...]] = []

    def look(space: AddressSpace, launch: Launch) -> None:
        va = struct.unpack("<4Q", space.read(pointer(launch), 32))
        assert space.find(va[0] + 16) is None
        assert space.describe(va[0] + 16).startswith('nearest allocation: 0x0 bytes past the end of "argument 0"')
        assert "argument 2" in space.describe(va[2] + 40)
        seen.append(va)

    gpu = Gpu("gfx1100", executor=Recorder(look))
    kernel = gpu.load_raw(S_ENDPGM)
    kernel(a, a, b, a[:], **GRID)
    va = seen[0]
    assert va[0] == va[1] == va[3] != va[2]
    kernel(a, a, b, a, **GRID)
    assert seen[1] == va  # the same addresses at every launch


def test_launch_memory_is_unmapped_afterwards_even_when_the_kernel_faults() -> None:
    def fault(space: AddressSpace, launch: Launch) -> None:
        raise KernelFault("page fault")

    gpu = Gpu("gfx1100", executor=Recorder(fault))
    kernel = gpu.load_raw(S_ENDPGM)
    mapped = len(gpu.space)
    with pytest.raises(KernelFault):
        kernel(np.zeros(4), **GRID)
    assert len(gpu.space) == mapped
    assert gpu.stats.kernels == 0


def test_mapped_array_keeps_its_address_until_unmapped() -> None:
    seen: list[bytes] = []
    gpu = Gpu("gfx1100", executor=Recorder(lambda space, launch: seen.append(space.read(pointer(launch), 16))))
    table = np.arange(4, dtype=np.uint32)
    va = gpu.map(table, name="table")
    assert gpu.space.read(va, 16) == table.tobytes()
    gpu.load_raw(S_ENDPGM)(table, np.uint64(va), **GRID)
    assert seen == [struct.pack("<2Q", va, va)]
    gpu.unmap(table)
    assert gpu.space.find(va) is None
    with pytest.raises(KeyError):
        gpu.unmap(table)


def test_empty_array_has_an_address_with_nothing_behind_it() -> None:
    def look(space: AddressSpace, launch: Launch) -> None:
        va, = struct.unpack("<Q", space.read(pointer(launch), 8))
        assert va
        assert space.find(va) is None

    Gpu("gfx1100", executor=Recorder(look)).load_raw(S_ENDPGM)(np.zeros(0, np.float32), **GRID)


def test_hidden_arguments_say_how_the_grid_was_cut() -> None:
    hidden = [("block_count_x", 4), ("block_count_y", 4), ("group_size_x", 2), ("remainder_x", 2), ("remainder_y", 2),
              ("global_offset_x", 8), ("grid_dims", 2), ("printf_buffer", 8), ("hostcall_buffer", 8),
              ("dynamic_lds_size", 4), ("shared_base", 4), ("private_base", 4)]
    args, at = [], 0
    for name, size in hidden:
        at = -(-at // size) * size
        args.append(KernelArg(at, size, "hidden_" + name))
        at += size
    got: dict[str, int] = {}

    def look(space: AddressSpace, launch: Launch) -> None:
        for arg in args:
            got[arg.kind[7:]] = int.from_bytes(space.read(pointer(launch) + arg.offset, arg.size), "little")

    kernel_with(Gpu("gfx1100", executor=Recorder(look)), *args)(grid=(1000, 6), workgroup=(192, 2), shared=12)
    assert got == {"block_count_x": 5, "block_count_y": 3, "group_size_x": 192, "remainder_x": 40, "remainder_y": 0,
                   "global_offset_x": 0, "grid_dims": 2, "printf_buffer": 0, "hostcall_buffer": 0,
                   "dynamic_lds_size": 12, "shared_base": 1 << 16, "private_base": 2 << 16}


def test_unknown_hidden_argument_is_refused() -> None:
    with pytest.raises(ValueError, match=r"hidden argument 'hidden_future' at offset 0 is not known"):
        kernel_with(Gpu("gfx1100", executor=Recorder()), KernelArg(0, 8, "hidden_future"))(**GRID)


def test_user_sgprs_come_in_the_order_of_the_descriptor() -> None:
    properties = CodeProperties(dispatch_ptr=True, queue_ptr=True, kernarg_segment_ptr=True, dispatch_id=True,
                                private_segment_size=True, wavefront_size32=True)

    def look(space: AddressSpace, launch: Launch) -> None:
        packet = KernelDispatchPacket.unpack(space.read(pointer(launch, 0), 64))
        assert (packet.grid, packet.workgroup, packet.dimensions) == ((64, 1, 1), (32, 1, 1), 1)
        assert packet.kernarg_address == pointer(launch, 2)
        assert packet.private_segment_size == launch.user_sgprs[8] == 20
        assert space.read(pointer(launch, 1) + 0x40, 8) == struct.pack("<2I", 1 << 16, 2 << 16)
        assert launch.user_sgprs[9:] == (0,) * 6

    recorder = Recorder(look)
    kernel_with(Gpu("gfx1100", executor=recorder), properties=properties, private_segment_size=20)(**GRID)
    assert len(recorder.launches) == 1


def test_scratch_is_mapped_for_every_wave() -> None:
    def look(space: AddressSpace, launch: Launch) -> None:
        assert launch.scratch_wave_bytes == 768  # 20 * 32 bytes in units of 256
        assert space.find(launch.scratch_va, 768 * 6) is not None  # two groups of three waves
        assert space.find(launch.scratch_va, 768 * 6 + 1) is None

    kernel = kernel_with(Gpu("gfx1100", executor=Recorder(look)), private_segment_size=20)
    kernel(grid=(100,), workgroup=(96,))


def test_dynamic_stack_gets_scratch_the_descriptor_does_not_name() -> None:
    recorder = Recorder()
    properties = CodeProperties(kernarg_segment_ptr=True, wavefront_size32=True, uses_dynamic_stack=True)
    kernel_with(Gpu("gfx1100", executor=recorder), properties=properties)(**GRID)
    assert recorder.launches[0].scratch_wave_bytes == 0x4000 * 32


def test_set_ups_of_other_generations_are_refused() -> None:
    properties = CodeProperties(private_segment_buffer=True, wavefront_size32=True)
    with pytest.raises(LaunchError, match=r"private_segment_buffer .* architected flat scratch"):
        kernel_with(Gpu("gfx1100", executor=Recorder()), properties=properties)(**GRID)


def test_local_arguments_lie_behind_the_kernels_own_lds() -> None:
    offsets: list[tuple[int, ...]] = []
    recorder = Recorder(lambda space, launch: offsets.append(struct.unpack("<2I", space.read(pointer(launch), 8))))
    args = [KernelArg(0, 4, "dynamic_shared_pointer", align=4), KernelArg(4, 4, "dynamic_shared_pointer", align=64)]
    kernel = kernel_with(Gpu("gfx1100", executor=recorder), *args, group_segment_size=10)
    kernel(Local(20), Local(8), **GRID)
    assert offsets == [(12, 64)]
    assert recorder.launches[0].lds_bytes == 72
    with pytest.raises(LaunchError, match=r"argument 0: Python int, it takes Local"):
        kernel(20, Local(8), **GRID)


def test_preloaded_arguments_start_in_sgprs_behind_the_prologue() -> None:
    recorder = Recorder()
    gpu = Gpu("gfx942", executor=recorder)
    kernel = gpu.load_raw(S_ENDPGM, KernelSpec(wave_lanes=64, user_sgprs=5))
    kernel.info = KernelInfo("p", kernel.info.descriptor.replace(preload_length=3, preload_offset=1, kernarg_size=16),
                             0, 256)
    kernel(np.uint32(1), np.uint32(2), np.uint32(3), np.uint32(4), **GRID)
    launch, = recorder.launches
    assert launch.user_sgprs[2:] == (2, 3, 4)
    assert launch.entry == kernel.descriptor_va + 512
    assert launch.wave_lanes == 64


def strided() -> Any:
    return np.zeros((4, 4))[:, ::2]


def frozen() -> Any:
    array = np.zeros(4)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(("args", "message"), [
    ((np.zeros(4),), r"takes 2 arguments \(out, count\), got 1"),
    ((np.zeros(4), np.uint64(1)), r"kernel 'k', argument count: numpy uint64 has 8 bytes, it takes 4"),
    ((np.zeros(4), 5), r"argument count: Python int, it takes 4 bytes by value .*np\.uint32"),
    ((np.zeros(4), np.zeros(1)), r"argument count: numpy array of float64, it takes 4 bytes by value"),
    ((np.uint32(1), np.uint32(1)), r"argument out: numpy uint32, it takes a numpy array"),
    (([1, 2], np.uint32(1)), r"argument out: Python list, it takes a numpy array"),
    ((np.array([object()]), np.uint32(1)), r"argument out: array of Python objects"),
    ((strided(), np.uint32(1)), r"argument out: the array is not contiguous"),
    ((frozen(), np.uint32(1)), r"argument out: the array is read-only"),
])
def test_wrong_argument_is_refused_by_name(args: tuple[object, ...], message: str) -> None:
    recorder = Recorder()
    gpu = Gpu("gfx1100", executor=recorder)
    kernel = kernel_with(gpu, buffer_arg(0, "out"), KernelArg(8, 4, "by_value", "count"))
    with pytest.raises(LaunchError, match=message):
        kernel(*args, **GRID)
    assert not recorder.launches
    assert len(gpu.space) == 0


@pytest.mark.parametrize(("grid", "workgroup", "shared", "message"), [
    ((0, 1, 1), (32, 1, 1), 0, r"grid \(0, 1, 1\): expected one to three positive"),
    ((64,), (1.5,), 0, r"workgroup \(1.5,\)"),
    ((64, 1, 1, 1), (32,), 0, r"grid"),
    ((64,), (32, 8, 8), 0, r"workgroup \(32, 8, 8\) has more than 1024 work-items"),
    ((64,), (32,), 0x10001, r"needs 65537 bytes of LDS, a workgroup of gfx1100 has 65536"),
])
def test_impossible_geometry_is_refused(grid: Any, workgroup: Any, shared: int, message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        Gpu("gfx1100", executor=Recorder()).load_raw(S_ENDPGM)(grid=grid, workgroup=workgroup, shared=shared)


def test_workgroup_must_be_what_the_kernel_requires() -> None:
    kernel = kernel_with(Gpu("gfx1100", executor=Recorder()), required=(64, 1, 1))
    with pytest.raises(LaunchError, match=r"requires workgroup \(64, 1, 1\), got \(32, 1, 1\)"):
        kernel(**GRID)


def test_events_tell_start_and_end() -> None:
    events: list[Event] = []
    gpu = Gpu("gfx1100", executor=Recorder())
    unsubscribe = gpu.events.subscribe(events.append)
    gpu.load_raw(S_ENDPGM)(**GRID)
    start, end = events
    assert isinstance(start, KernelStart)
    assert isinstance(end, KernelEnd)
    assert end.launch is start.launch
    assert end.stats == Stats(kernels=1, wave_instructions=7)
    unsubscribe()
    gpu.load_raw(S_ENDPGM)(**GRID)
    assert len(events) == 2


def test_budget_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1234")
    assert Gpu("gfx1100", executor=Recorder()).options.max_wave_instructions == 1234
    assert max_wave_instructions({}) == DEFAULT
    assert max_wave_instructions({VARIABLE: "0"}) == 0
    with pytest.raises(ValueError, match=f"{VARIABLE}='many'"):
        max_wave_instructions({VARIABLE: "many"})


def test_unknown_gpu_and_tier_are_refused() -> None:
    with pytest.raises(Unmodelled, match=r"launching on gfx803 \(known: gfx1100"):
        Gpu("gfx803")
    with pytest.raises(ValueError, match="tier 'fast': expected"):
        Gpu("gfx1100", tier="fast")


def test_raw_kernel_with_waves_the_gpu_has_not_is_refused() -> None:
    with pytest.raises(ValueError, match="gfx942 has no waves of 32 lanes"):
        Gpu("gfx942", executor=Recorder()).load_raw(S_ENDPGM, KernelSpec(wave_lanes=32))


def test_missing_file_is_a_missing_file(tmp_path: os.PathLike[str]) -> None:
    with pytest.raises(FileNotFoundError):
        Gpu("gfx1100", executor=Recorder()).load(os.path.join(tmp_path, "none.hsaco"))


def test_unknown_kernel_prints_as_a_sentence() -> None:
    assert str(UnknownKernel("no kernel 'x'")) == "no kernel 'x'"
