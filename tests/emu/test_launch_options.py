"""Every option of a launch, seen by kernels that clang compiles for it, on all targets and both tiers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stuntgpu.emu import Gpu, KernelFault, LaunchError, Local
from stuntgpu.isa.abi.aql import HsaQueue, KernelDispatchPacket
from stuntgpu.isa.abi.codeobject import CodeObjectError
from stuntgpu.isa.abi.targets import LDS_APERTURE, SCRATCH_APERTURE
from tests.emu.launch_build import ARCHES, PRELOAD, TIERS, WAVES, module, wave_option

Array = np.ndarray[Any, np.dtype[Any]]

slow = pytest.mark.slow
#: One target runs with every test suite, the others in CI.
WAVE = [pytest.param(a, n, marks=() if a == "gfx1100" and n == 32 else slow, id=f"{a}-{n}") for a, n in WAVES]
ARCH = [pytest.param(a, marks=() if a == "gfx1100" else slow) for a in ARCHES]
CDNA = [pytest.param("gfx942"), pytest.param("gfx950", marks=slow)]
RDNA = [pytest.param("gfx1100"), pytest.param("gfx1201", marks=slow)]
tiers = pytest.mark.parametrize("tier", [pytest.param(t, marks=slow if t == "reference" else ()) for t in TIERS])
waves = pytest.mark.parametrize(("arch", "lanes"), WAVE)


def groups_of(grid: tuple[int, int, int], size: tuple[int, int, int]) -> tuple[int, int, int]:
    x, y, z = (-(-g // s) for g, s in zip(grid, size, strict=True))
    return x, y, z


def expected_ids(grid: tuple[int, int, int], size: tuple[int, int, int], lanes: int) -> Array:
    """What ids3 of launch.hip leaves: 8 words of each place, zero where a smaller workgroup has no work-item."""
    out = []
    for z, y, x in np.ndindex(*groups_of(grid, size)[::-1]):
        here = [min(s, g - at * s) for s, g, at in zip(size, grid, (x, y, z), strict=True)]
        words = np.zeros((size[2], size[1], size[0], 8), np.uint32)
        for tz, ty, tx in np.ndindex(*here[::-1]):
            item = (tz * here[1] + ty) * here[0] + tx
            on = min(lanes, here[0] * here[1] * here[2] - item // lanes * lanes)
            words[tz, ty, tx] = 1, tx, ty, tz, x, y, z, on
        out.append(words.reshape(-1, 8))
    return np.stack(out)


# ---------------------------------------------------------------- ids, partial waves, uneven workgroups


@tiers
@waves
@pytest.mark.parametrize(("grid", "size"), [
    ((9, 6, 4), (3, 2, 2)), ((7, 5, 3), (4, 2, 2)), pytest.param((70, 1, 1), (50, 1, 1), marks=slow)])
def test_ids_in_three_dimensions(arch: str, lanes: int, tier: str, grid: tuple[int, int, int],
                                 size: tuple[int, int, int]) -> None:
    groups, items = groups_of(grid, size), size[0] * size[1] * size[2]
    out = np.zeros((groups[0] * groups[1] * groups[2], items, 8), np.uint32)
    kernel = module("launch.hip", arch, tier, *wave_option(arch, lanes), "-fno-offload-uniform-block")["ids3"]
    kernel(out, *map(np.uint32, (*groups[:2], *size[:2], items)), grid=grid, workgroup=size)
    assert (out == expected_ids(grid, size, lanes)).all()


@tiers
@waves
def test_ids_in_one_and_two_dimensions(arch: str, lanes: int, tier: str) -> None:
    kernels = module("launch.hip", arch, tier, *wave_option(arch, lanes))
    out = np.zeros((3, 96, 4), np.uint32)
    kernels["ids1"](out, np.uint32(96), grid=(288,), workgroup=(96,))
    x, group = np.meshgrid(np.arange(96), np.arange(3))
    assert (out == np.stack([x, group, np.full_like(x, lanes), x % lanes], axis=-1)).all()
    plane = np.zeros((2, 3, 4, 8, 4), np.uint32)  # by, bx, ty, tx
    kernels["ids2"](plane, np.uint32(3), np.uint32(8), np.uint32(32), grid=(24, 8), workgroup=(8, 4))
    by, bx, ty, tx = np.indices((2, 3, 4, 8))
    assert (plane == np.stack([tx, ty, bx, by], axis=-1)).all()


# ---------------------------------------------------------------- user SGPRs


@tiers
@pytest.mark.parametrize("arch", ARCH)
def test_pointers_show_packet_queue_and_arguments(arch: str, tier: str) -> None:
    kernel = module("launch.hip", arch, tier, "-mcode-object-version=4")["pointers"]
    properties = kernel.info.descriptor.properties
    assert (properties.dispatch_ptr, properties.queue_ptr) == (True, True)
    out, mark = np.zeros(80, np.uint32), np.uint64(0x1234_5678_9ABC_DEF0)
    kernel(out, mark, grid=(96, 1, 1), workgroup=(64, 1, 1), shared=100)
    assert out[:4].tobytes()[8:] == mark.tobytes()
    packet = KernelDispatchPacket.unpack(out[4:20].tobytes())
    assert (packet.workgroup, packet.grid, packet.dimensions) == ((64, 1, 1), (96, 1, 1), 1)
    assert (packet.kernel_object, packet.group_segment_size) == (kernel.descriptor_va, 100)
    assert packet.private_segment_size == kernel.info.descriptor.private_segment_size
    assert packet.kernarg_address != 0
    queue = HsaQueue.unpack(out[20:].tobytes().ljust(HsaQueue.SIZE_BYTES, b"\0"))
    assert (queue.group_aperture_hi, queue.private_aperture_hi) == (LDS_APERTURE >> 32, SCRATCH_APERTURE >> 32)


@tiers
@pytest.mark.parametrize("arch", CDNA)
@pytest.mark.parametrize("count", [0, pytest.param(1, marks=slow), 3, *(pytest.param(n, marks=slow) for n in (6, 16))])
def test_preloaded_arguments_are_those_in_memory(arch: str, tier: str, count: int) -> None:
    options = [word.format(count) for word in PRELOAD] if count else []
    kernel = module("launch.hip", arch, tier, *options)["arguments"]
    assert (kernel.info.descriptor.preload_length > 0) == (count > 0)
    out = np.zeros((2, 8), np.uint64)
    values = (np.uint32(0xDEAD_BEEF), np.uint16(0xABCD), np.uint8(0x7F), np.uint64(1 << 60 | 5))
    kernel(*values, out, np.uint32(77), np.float32(1.5), np.uint64(9), grid=(128,), workgroup=(64,))
    assert (out[:, :7] == [0xDEAD_BEEF, 0xABCD, 0x7F, 1 << 60 | 5, 77, 0x3FC0_0000, 9]).all()
    assert out[0, 7] == out[1, 7] != 0


def test_preloading_starts_behind_the_code_that_does_without() -> None:
    kernel = module("launch.hip", "gfx942", "native", *[word.format(4) for word in PRELOAD])["arguments"]
    launches = []
    kernel.gpu.executor = type("Spy", (), {"run": lambda self, space, launch, options: launches.append(launch) or Gpu(
        "gfx942").executor.run(space, launch, options)})()
    out = np.zeros(8, np.uint64)
    kernel(np.uint32(1), np.uint16(2), np.uint8(3), np.uint64(4), out, np.uint32(5), np.float32(1), np.uint64(6),
           grid=(64,), workgroup=(64,))
    assert launches[0].entry == kernel.descriptor_va + kernel.info.descriptor.entry_offset + 256
    assert out[3] == 4


# ---------------------------------------------------------------- hidden arguments

#: Those of a launch of (70, 9, 5) in workgroups of (32, 4, 2) with 24 bytes of dynamic LDS.
HIDDEN = {
    "hidden_block_count_x": 2, "hidden_block_count_y": 2, "hidden_block_count_z": 2,
    "hidden_group_size_x": 32, "hidden_group_size_y": 4, "hidden_group_size_z": 2,
    "hidden_remainder_x": 6, "hidden_remainder_y": 1, "hidden_remainder_z": 1,
    "hidden_global_offset_x": 0, "hidden_global_offset_y": 0, "hidden_global_offset_z": 0,
    "hidden_grid_dims": 3, "hidden_dynamic_lds_size": 24,
    "hidden_private_base": SCRATCH_APERTURE >> 32, "hidden_shared_base": LDS_APERTURE >> 32,
    "hidden_printf_buffer": 0, "hidden_hostcall_buffer": 0, "hidden_multigrid_sync_arg": 0, "hidden_heap_v1": 0,
    "hidden_default_queue": 0, "hidden_completion_action": 0, "hidden_none": 0,
}


@tiers
@pytest.mark.parametrize("arch", ARCH)
@pytest.mark.parametrize("version", [pytest.param(4, marks=slow), 5, pytest.param(6, marks=slow)])
def test_hidden_arguments(arch: str, tier: str, version: int) -> None:
    kernel = module("launch.hip", arch, tier, f"-mcode-object-version={version}", "-fno-offload-uniform-block")["hidden"]
    words = 14 if version == 4 else 64
    out = np.zeros(words, np.uint32)
    kernel(out, np.uint32(words), grid=(70, 9, 5), workgroup=(32, 4, 2), shared=24)
    raw, first = out.tobytes(), min(a.offset for a in kernel.info.hidden_args)
    seen = {a.kind: int.from_bytes(raw[a.offset - first : a.offset - first + a.size], "little") for a in kernel.info.hidden_args}
    queue = seen.pop("hidden_queue_ptr", 1)
    assert queue != 0
    assert seen == {kind: HIDDEN[kind] for kind in seen}
    assert len(seen) >= (3 if version == 4 else 18)


# ---------------------------------------------------------------- LDS and scratch


@tiers
@waves
def test_dynamic_lds_lies_behind_the_static(arch: str, lanes: int, tier: str) -> None:
    kernel = module("launch.hip", arch, tier, *wave_option(arch, lanes))["lds"]
    out = np.zeros((2, 160), np.uint32)
    kernel(out, np.uint32(160), grid=(320,), workgroup=(160,), shared=640)
    x = np.arange(160)
    want = [159 - x + 1000 * group + (x + 1) % 64 * 3 for group in range(2)]
    assert (out == want).all()
    with pytest.raises(LaunchError, match=r"bytes of LDS, a workgroup of .* has"):
        kernel(out, np.uint32(160), grid=(320,), workgroup=(160,), shared=1 << 20)


@tiers
@waves
def test_scratch_of_every_lane_is_its_own(arch: str, lanes: int, tier: str) -> None:
    kernel = module("launch.hip", arch, tier, *wave_option(arch, lanes))["scratch"]
    assert kernel.info.descriptor.private_segment_size >= 96
    n, order = 2 * 72, np.arange(24, dtype=np.uint32)[::-1].copy()
    out = np.zeros(n, np.uint32)
    kernel(out, order, np.uint32(72), grid=(n,), workgroup=(72,))
    want = []
    for item in range(n):
        mine = [item * 24 + int(order[i]) for i in range(24)]
        mine[3] += item % 2
        total = 0
        for value in mine:
            total = (total * 5 + value) & 0xFFFF_FFFF
        want.append(total)
    assert out.tolist() == want


@tiers
@pytest.mark.parametrize("arch", ARCH)
def test_stack_of_unknown_depth(arch: str, tier: str) -> None:
    kernel = module("launch.hip", arch, tier)["stack"]
    assert kernel.info.descriptor.properties.uses_dynamic_stack
    depth = np.arange(40, dtype=np.uint32) % 5
    out = np.zeros(40, np.uint32)
    kernel(out, depth, grid=(40,), workgroup=(40,))

    def descend(n: int) -> int:
        return descend(n - 1) + n + n % 8 if n else 0

    assert out.tolist() == [descend(int(n)) for n in depth]


# ---------------------------------------------------------------- OpenCL


@tiers
@waves
def test_pointers_into_lds_as_arguments(arch: str, lanes: int, tier: str) -> None:
    kernel = module("launch.cl", arch, tier, *wave_option(arch, lanes))["locals"]
    out, table = np.zeros((32, 4), np.uint32), np.array([10, 20, 30, 40], np.uint32)
    value = np.array([1, 2, 3, 4], np.uint32).tobytes()
    kernel(out, Local(132), Local(256), table, value, grid=(16, 2), workgroup=(16, 2))
    other = 31 - np.arange(32)
    want = np.stack([table[other % 4] + other, other, np.full(32, 3), np.full(32, 136)], axis=-1)
    assert (out == want).all()
    with pytest.raises(LaunchError, match=r"requires workgroup \(16, 2, 1\)"):
        kernel(out, Local(132), Local(256), table, value, grid=(32,), workgroup=(32,))


@tiers
@pytest.mark.parametrize("arch", ARCH)
@pytest.mark.parametrize("version", [pytest.param(4, marks=slow), 5])
def test_sizes_of_grid_and_workgroup(arch: str, tier: str, version: int) -> None:
    """Version 4 reads them from the dispatch packet, version 5 workgroup sizes from hidden arguments."""
    kernel = module("launch.cl", arch, tier, f"-mcode-object-version={version}")["sizes"]
    out = np.zeros(6, np.uint32)
    kernel(out, grid=(24, 6, 2), workgroup=(8, 3, 1))
    assert out.tolist() == [8, 3, 1, 24, 6, 2]


# ---------------------------------------------------------------- options of the compiler


@tiers
@pytest.mark.parametrize("arch", RDNA)
@pytest.mark.parametrize("options", [
    ("-mcumode",), *(pytest.param(o, marks=slow) for o in (("-mno-cumode",), ("-mwavefrontsize64", "-mcumode")))])
def test_compute_unit_and_work_group_processor_mode(arch: str, tier: str, options: tuple[str, ...]) -> None:
    kernels = module("launch.hip", arch, tier, *options)
    assert kernels["ids1"].info.descriptor.rsrc1.wgp_mode == ("-mno-cumode" in options)
    out = np.zeros((1, 256, 4), np.uint32)
    kernels["ids1"](out, np.uint32(256), grid=(256,), workgroup=(256,))
    assert out[0, :, 0].tolist() == list(range(256))


@tiers
@pytest.mark.parametrize(("arch", "target"), [
    ("gfx1100", "gfx11-generic"), pytest.param("gfx1201", "gfx12-generic", marks=slow),
    pytest.param("gfx942", "gfx9-4-generic", marks=slow), pytest.param("gfx950", "gfx9-4-generic", marks=slow)])
def test_objects_of_generic_targets(arch: str, target: str, tier: str) -> None:
    kernel = module("launch.hip", arch, tier, "-mcode-object-version=6", target=target)["ids1"]
    out = np.zeros((1, 64, 4), np.uint32)
    kernel(out, np.uint32(64), grid=(64,), workgroup=(64,))
    assert out[0, :, 0].tolist() == list(range(64))


@tiers
@pytest.mark.parametrize("arch", CDNA)
@pytest.mark.parametrize("setting", ["", *(pytest.param(text, marks=slow) for text in (
    ":xnack+", ":xnack-", ":sramecc+", ":sramecc-:xnack+", ":sramecc+:xnack-"))])
def test_xnack_and_sramecc_settings_are_accepted(arch: str, tier: str, setting: str) -> None:
    kernel = module("launch.hip", arch, tier, target=arch + setting)["scratch"]
    out = np.zeros(64, np.uint32)
    kernel(out, np.arange(24, dtype=np.uint32), np.uint32(64), grid=(64,), workgroup=(64,))
    assert out.any()


def test_objects_of_other_targets_are_refused() -> None:
    with pytest.raises(CodeObjectError, match="gfx942"):
        module("launch.hip", "gfx1100", "native", target="gfx942")


@tiers
@pytest.mark.parametrize("arch", ARCH)
@pytest.mark.parametrize("options", [pytest.param((), marks=slow), ("-munsafe-fp-atomics",)])
def test_float_atomics_by_loop_and_by_hardware(arch: str, tier: str, options: tuple[str, ...]) -> None:
    kernel = module("launch.hip", arch, tier, *options)["float_atomics"]
    out = np.zeros(1, np.float32)
    kernel(out, grid=(96,), workgroup=(96,))
    assert out[0] == 95 * 96 / 2


@tiers
@pytest.mark.parametrize("arch", ARCH)
@pytest.mark.parametrize("flushes", [False, True])
def test_denormal_mode_of_the_descriptor(arch: str, tier: str, flushes: bool) -> None:
    kernel = module("launch.hip", arch, tier, *["-fgpu-flush-denormals-to-zero"][:flushes])["denormals"]
    x, out = np.full(32, 1e-38, np.float32), np.ones(32, np.float32)
    x[::2] = 3.0
    kernel(out, x, grid=(32,), workgroup=(32,))
    assert (out[::2] == 1.5).all()
    assert (out[1::2] == 0).all() == flushes


# ---------------------------------------------------------------- traps


@tiers
@pytest.mark.parametrize("arch", ARCH)
def test_traps(arch: str, tier: str) -> None:
    kernels = module("launch.hip", arch, tier)
    out = np.zeros(32, np.uint32)
    kernels["debug_trap"](out, grid=(32,), workgroup=(32,))
    assert (out == 7).all()
    with pytest.raises(KernelFault, match="s_trap 2"):
        kernels["trap"](out, grid=(32,), workgroup=(32,))
