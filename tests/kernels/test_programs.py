"""Random programs give the same on every target as on this processor, whatever the optimisation level."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stuntgpu.emu import Gpu
from tests.kernels.build import LANGUAGES, TIMEOUT_S, clang
from tests.kernels.cases import TARGETS
from tests.kernels.programs import N_INPUTS, N_OUTPUTS, N_SHARED, program

LEVELS = ("-O2", "-O0", "-O3", "-O1")
SEEDS, LANES, SIZE = range(2), 100, 8
#: No contraction, and signed integers that wrap: both compilers are told the same.
SAME = ("-std=c++20", "-fwrapv", "-ffp-contract=off", "-w")
Array = np.ndarray[Any, np.dtype[np.uint64]]


def compiled(source: Path, made: Path, *flags: str) -> Path:
    done = subprocess.run([clang(), *flags, *SAME, str(source), "-o", str(made)], capture_output=True, text=True,
                          timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, f"{source.name} for {made.name}:\n{done.stderr[:3000]}"
    return made


def inputs(seed: int) -> tuple[Array, Array]:
    """(a row of words for each lane, words all lanes share): numbers of every size."""
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 2**64, (LANES, N_INPUTS), dtype=np.uint64)
    return words >> rng.integers(0, 60, words.shape, dtype=np.uint64), rng.integers(0, 2**64, N_SHARED, dtype=np.uint64)


def on_the_host(library: Path, lanes: Array, shared: Array) -> Array:
    kind = type("Shared", (ctypes.Structure,), {"_fields_": [("v", ctypes.c_uint64 * N_SHARED)]})
    run = ctypes.CDLL(str(library)).run
    run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32, kind]
    out = np.zeros((LANES, N_OUTPUTS), np.uint64)
    run(lanes.ctypes.data, out.ctypes.data, LANES, kind.from_buffer_copy(shared.tobytes()))
    return out


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_random_programs_run_as_on_the_host(seed: int, tmp_path: Path) -> None:
    source = tmp_path / f"program_{seed}.cpp"
    source.write_text(program(seed, SIZE))
    lanes, shared = inputs(seed)
    host = compiled(source, tmp_path / "host.so", "-x", "c++", "-DHOST", "-shared", "-fPIC", "-O1",
                    "-Xclang", "-ffloat16-excess-precision=none")  # fmt: skip
    want, wrong = on_the_host(host, lanes, shared), []
    for k, (arch, widths) in enumerate(TARGETS.items()):
        level, width = LEVELS[(seed + k) % len(LEVELS)], widths[seed % len(widths)]
        wave = [] if len(widths) == 1 else ["-mwavefrontsize64" if width == 64 else "-mno-wavefrontsize64"]
        flags = [word.format(arch=arch) for word in LANGUAGES["hip"]]
        made = compiled(source, tmp_path / f"{arch}.hsaco", *flags, *wave, "-nogpulib", level)
        out = np.zeros_like(want)
        Gpu(arch).load(made)["run"](lanes, out, np.uint32(LANES), shared.tobytes(), grid=128, workgroup=64)
        wrong += [f"{arch} wave{width} {level}: lane {i} output {j} is {out[i, j]:#x}, expected {want[i, j]:#x}"
                  for i, j in np.argwhere(out != want)[:3]]
    assert not wrong, "\n".join(wrong)


def test_random_programs_are_the_same_every_time() -> None:
    assert program(3, SIZE) == program(3, SIZE) != program(4, SIZE)
