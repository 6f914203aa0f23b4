"""Whole kernels: real compiler output and recorded launches, on both tiers."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

from stuntgpu.emu import Gpu
from stuntgpu.emu.buffers import Placement, host_address
from stuntgpu.emu.launch import Launch, RunOptions
from stuntgpu.emu.memory import AddressSpace
from stuntgpu.emu.native import Native
from stuntgpu.isa.abi.codeobject import CodeObjectError
from stuntgpu.isa.abi.descriptor import Rsrc1, Rsrc2
from stuntgpu.isa.abi.targets import TARGETS
from stuntgpu.isa.decode import decode_all
from stuntgpu.isa.inst import Inst
from tests.shared import shared_dir

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
#: Architectures -> recorded launches.
ARCHES = {"gfx1100": "kernels_rdna3.jsonl", "gfx1201": "kernels_rdna4.jsonl"}
#: Architectures with compiled kernels; recorded launches of CDNA are in test_golden_cdna.
COMPILED = (*ARCHES, "gfx942", "gfx950")
ARCH = "gfx1100"
BUDGET = 2_000_000


def rows_of(path: str, arch: str) -> list[Any]:
    """Rows for `arch` of a JSON list below the shared folder; [None] when there is no such folder, so that
    the test itself skips or fails."""
    try:
        rows = json.loads((shared_dir() / path).read_text())
    except pytest.skip.Exception:
        return [None]
    return [r for r in rows if r["target"] == arch]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        rows = [r for arch in COMPILED for r in rows_of("kernels/cases.json", arch)]
        metafunc.parametrize("case", [pytest.param(r, marks=pytest.mark.slow if is_long(r) else ()) for r in rows],
                             ids=[f"{r['target']}-{r['case']}" if r else "none" for r in rows])


def is_long(row: Any) -> bool:
    """Seconds on the reference, and close to what other architectures do."""
    return row is not None and row["case"] == "mandelbrot" and row["target"] in ("gfx1201", "gfx942")


# ---------------------------------------------------------------- cases.json

def arguments(case: dict[str, Any]) -> tuple[list[Any], dict[int, Array]]:
    """(arguments of the call, expected contents by argument number)."""
    folder = shared_dir() / "kernels" / "data"
    with np.load(folder / f"{case['case']}.{case['target']}.npz") as data:
        args = [data[f"arg{i}"].copy() if kind == "buffer" else data[f"arg{i}"][()]
                for i, kind in enumerate(case["args"])]
        return args, {int(k[6:]): data[k].copy() for k in data.files if k.startswith("expect")}


def run_case(case: dict[str, Any], tier: str) -> list[Any]:
    """The arguments after the launch."""
    args, _ = arguments(case)
    gpu = Gpu(case["target"], tier=tier, max_wave_instructions=BUDGET)
    kernel = gpu.load(shared_dir() / "kernels" / case["object"])[case["kernel"]]
    stats = kernel(*args, grid=tuple(case["grid"]), workgroup=tuple(case["workgroup"]))
    assert stats.wave_instructions == gpu.stats.wave_instructions > 0
    return args


def mismatch(got: Array, want: Array, rtol: float, atol: float) -> str:
    """What differs, "" nothing. NaN in `want` is not compared."""
    if got.shape != want.shape:
        return f"shape {got.shape}, expected {want.shape}"
    compared = ~np.isnan(want) if want.dtype.kind == "f" else np.ones(want.shape, bool)
    if want.dtype.kind == "f" and (rtol or atol):
        wrong = compared & ~np.isclose(got.astype(np.float64), want.astype(np.float64), rtol=rtol, atol=atol)
    else:
        wrong = compared & (got != want)
    where = np.argwhere(wrong)
    if not len(where):
        return ""
    first = tuple(int(i) for i in where[0])
    return f"{len(where)} of {got.size} differ; {list(first)} is {got[first]}, expected {want[first]}"


def check_case(case: dict[str, Any], tier: str) -> list[Any]:
    args = run_case(case, tier)
    _, expected = arguments(case)
    assert expected
    for i, want in expected.items():
        rtol, atol = case["tolerance"].get(str(i), (0.0, 0.0))
        assert mismatch(args[i], want, rtol, atol) == "", f"argument {i} on {tier}"
    return args


def test_golden_case_is_right_and_the_same_on_both_tiers(case: dict[str, Any] | None) -> None:
    if case is None:
        shared_dir()
        return
    native = check_case(case, "native")
    reference = check_case(case, "reference")
    for i, (a, b) in enumerate(zip(native, reference, strict=True)):
        assert a.tobytes() == b.tobytes(), f"argument {i} differs between the tiers"


@pytest.mark.parametrize("arch", COMPILED)
@pytest.mark.parametrize(("seed", "threads"), [(1, 1), (7, 2)])
def test_golden_results_do_not_depend_on_order_or_threads(arch: str, seed: int, threads: int,
                                                          monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stuntgpu.emu.native.HEAD_START", 0)
    for case in (c for c in rows_of("kernels/cases.json", arch) if c):
        gpu = Gpu(arch, seed=seed, threads=threads, max_wave_instructions=BUDGET)
        args, expected = arguments(case)
        gpu.load(shared_dir() / "kernels" / case["object"])[case["kernel"]](
            *args, grid=tuple(case["grid"]), workgroup=tuple(case["workgroup"]))
        assert gpu.stats.wave_instructions == counted(case)
        for i, want in expected.items():
            assert mismatch(args[i], want, *case["tolerance"].get(str(i), (0.0, 0.0))) == "", case["case"]


def counted(case: dict[str, Any]) -> int:
    """Wave-instructions of a case in the default order."""
    gpu = Gpu(case["target"], max_wave_instructions=BUDGET)
    args, _ = arguments(case)
    kernel = gpu.load(shared_dir() / "kernels" / case["object"])[case["kernel"]]
    return kernel(*args, grid=tuple(case["grid"]), workgroup=tuple(case["workgroup"])).wave_instructions


# ---------------------------------------------------------------- loading


def test_golden_module_lists_its_kernels() -> None:
    module = Gpu(ARCH, tier="reference").load(shared_dir() / "kernels" / "hsaco" / ARCH / "grid3d.hsaco")
    assert list(module) == ["grid3d", "uneven", "dispatch_ptr"]
    assert len(module) == 3
    assert repr(module["uneven"]) == "Kernel('uneven', 2 arguments)"
    assert module.symbol("uneven.kd") == module["uneven"].descriptor_va
    with pytest.raises(KeyError, match=r"grid3d.hsaco has no kernel 'uneven2'; it has grid3d, uneven, dispatch_ptr"):
        module["uneven2"]


def test_golden_object_of_another_gpu_is_refused() -> None:
    path = shared_dir() / "kernels" / "hsaco" / "gfx942" / "spill.hsaco"
    with pytest.raises(CodeObjectError, match=r"^spill\.hsaco: built for gfx942, but this GPU is gfx1100$"):
        Gpu(ARCH, tier="reference").load(path)


def test_golden_object_loads_from_bytes_twice() -> None:
    data = (shared_dir() / "kernels" / "hsaco" / ARCH / "vadd_f32.hsaco").read_bytes()
    gpu = Gpu(ARCH, tier="reference")
    first, second = gpu.load(data), gpu.load(data)
    assert first.base != second.base
    with pytest.raises(CodeObjectError, match="code object: truncated"):
        gpu.load(data[:1000])


# ---------------------------------------------------------------- recorded launches

#: The last digits of approximated functions, and the order of additions inside a matrix instruction, are an
#: implementation's own; the recorded run's are not hardware's.
OWN_DIGITS = ("V_RCP_F", "V_RSQ_", "V_SQRT_", "V_EXP_", "V_LOG_", "V_SIN_", "V_COS_", "V_S_", "V_WMMA_")


def has_own_digits(row: dict[str, Any]) -> bool:
    """Whether the recorded kernel uses an instruction whose last digits may differ."""
    found = (inst for _, inst in decode_all(row["target"], bytes.fromhex(row["code"])) if isinstance(inst, Inst))
    return any(inst.name.startswith(OWN_DIGITS) for inst in found)


def recorded(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def unpacked(text: str) -> bytearray:
    return bytearray(zlib.decompress(base64.b64decode(text)))


def replay(row: dict[str, Any]) -> list[bytes]:
    """Contents of every buffer after the recorded launch, run at its own addresses."""
    space = AddressSpace()

    def at(va: int, data: bytes | bytearray, name: str) -> Array:
        memory = np.frombuffer(bytearray(data), np.uint8)
        space.map(va, memory.nbytes, host_address(memory), name=name, keep=memory)
        return memory

    at(row["code_addr"], bytes.fromhex(row["code"]), "code")
    at(row["kernarg_addr"], bytes.fromhex(row["kernarg"]), "kernel arguments")
    buffers = [at(b["addr"], unpacked(b["before"]), f"buffer {i}") for i, b in enumerate(row["bufs"])]
    Native(row["target"]).run(space, recorded_launch(row, space), RunOptions(max_wave_instructions=BUDGET))
    return [b.tobytes() for b in buffers]


def recorded_launch(row: dict[str, Any], space: AddressSpace) -> Launch:
    """The launch; `grid` of the record counts workgroups."""
    x, y, z = row["local"]
    n_waves = -(-x * y * z // 32) * int(np.prod(row["grid"]))
    wave_bytes = row["scratch_per_lane"] * 32
    rsrc2 = Rsrc2.from_int(row["rsrc2"])
    gx, gy, gz = row["grid"]
    return Launch(
        entry=row["code_addr"] + row["entry"], rsrc1=int(Rsrc1(float_mode=0xF0, dx10_clamp=True, ieee_mode=True)),
        rsrc2=row["rsrc2"], rsrc3=0, user_sgprs=tuple(row["user_sgprs"]), grid=(gx * x, gy * y, gz * z),
        workgroup=(x, y, z), wave_lanes=32, lds_bytes=rsrc2.lds_size * TARGETS[row["target"]].lds_granule,
        scratch_va=Placement(space, 0x7000_0000_0000).zeros(n_waves * wave_bytes, "scratch"),
        scratch_wave_bytes=wave_bytes, name=row["id"])


def same(row: dict[str, Any], got: bytes, want: bytes) -> bool:
    """Equal bytes; where digits are an implementation's own, f32 values within a few of what a kernel adds up."""
    if got == want:
        return True
    if not has_own_digits(row) or len(got) % 4:
        return False
    a, b = np.frombuffer(got, np.float32), np.frombuffer(want, np.float32)
    return bool(np.allclose(a, b, rtol=1e-6, atol=1e-6, equal_nan=True))


@pytest.mark.parametrize("arch", ARCHES)
def test_golden_recorded_launches_leave_the_recorded_memory(arch: str) -> None:
    wrong: list[str] = []
    for row in recorded(shared_dir() / "goldens" / ARCHES[arch]):
        for i, (buffer, got) in enumerate(zip(row["bufs"], replay(row), strict=True)):
            want = bytes(unpacked(buffer["after"] or buffer["before"]))
            if not same(row, got, want):
                wrong.append(f"{row['id']} ({row['case']}) buffer {i}")
    assert not wrong


# ---------------------------------------------------------------- Triton


def triton(kernel: str, arch: str) -> dict[str, Any]:
    rows = json.loads((shared_dir() / "kernels" / "triton" / "launch.json").read_text())
    return next(r for r in rows if (r["kernel"], r["target"]) == (kernel, arch))


TRITON_TIERS = pytest.mark.parametrize("tier", ["native", pytest.param("reference", marks=pytest.mark.slow)])


def run_triton(launch: dict[str, Any], tier: str, n_groups: int, *args: Any) -> None:
    """One launch; Triton adds two pointers to scratch memory it does not use here."""
    gpu = Gpu(launch["target"], tier=tier, max_wave_instructions=BUDGET)
    kernel = gpu.load(shared_dir() / "kernels" / "triton" / launch["file"])[launch["symbol"]]
    group = launch["workgroup"][0]
    kernel(*args, None, None, grid=n_groups * group, workgroup=group, shared=launch["shared_bytes"])


@TRITON_TIERS
@pytest.mark.parametrize("arch", COMPILED)
def test_golden_triton_add(arch: str, tier: str) -> None:
    launch, n = triton("add", arch), 2500
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(n).astype(np.float32) for _ in range(2))
    out = np.zeros(n, np.float32)
    run_triton(launch, tier, -(-n // launch["constexprs"]["BLOCK_SIZE"]), x, y, out, np.int32(n))
    assert (out == x + y).all()


@TRITON_TIERS
@pytest.mark.parametrize("size", [(64, 64, 64), (96, 64, 32), (33, 47, 50)])
@pytest.mark.parametrize("arch", COMPILED)
def test_golden_triton_matmul(arch: str, size: tuple[int, int, int], tier: str) -> None:
    launch = triton("matmul", arch)
    m, n, k = size
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, s).astype(np.float16) for s in ((m, k), (k, n)))
    c = np.zeros((m, n), np.float16)
    blocks = launch["constexprs"]
    n_groups = -(-m // blocks["BLOCK_SIZE_M"]) * -(-n // blocks["BLOCK_SIZE_N"])
    sizes = (m, n, k, k, 1, n, 1, n, 1)  # the last six: row and column strides of a, b, c
    run_triton(launch, tier, n_groups, a, b, c, *(np.int32(v) for v in sizes))
    assert (c.astype(np.float64) == a.astype(np.float64) @ b.astype(np.float64)).all()
