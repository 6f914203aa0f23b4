"""The kernels, what they are launched with, and what they must compute.

Every kernel takes its arguments packed in order, its workgroup id in s15 and its work-item id in v0.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from stuntgpu.emu import Gpu, Kernel, KernelSpec
from stuntgpu.isa.asm import assemble

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

ROOT = Path(__file__).resolve().parent.parent
FMA_M, FMA_A = np.uint32(0x3F7FFF00).view(np.float32), np.float32(0.5)


class WrongResult(Exception):
    """A benchmark computed something else than it must; its speed means nothing."""


@dataclass
class Case:
    """One row.

    source   file of bench-kernels without its ending.
    make     fresh arguments of a launch; the first is the output buffer.
    right    what the output must be, from the arguments.
    rtol     relative tolerance, 0 bit-exact.
    """

    name: str
    source: str
    groups: int
    threads: int
    make: Callable[[], tuple[Any, ...]]
    right: Callable[[tuple[Any, ...]], Array]
    lds_bytes: int = 0
    rtol: float = 0.0
    args: tuple[Any, ...] = field(default=(), init=False)

    def kernel(self, gpu: Gpu) -> Kernel:
        """Assembled and loaded."""
        return gpu.load_raw(_code(gpu.arch, self.source), KernelSpec(name=self.source, lds_bytes=self.lds_bytes))

    def launch(self, kernel: Kernel) -> int:
        """One launch; the wave-instructions it executed."""
        if not self.args:
            self.args = self.make()
        return kernel(*self.args, grid=self.groups * self.threads, workgroup=self.threads).wave_instructions

    def check(self) -> None:
        """Raises WrongResult when the last launch's output is not right."""
        out, right = self.args[0], self.right(self.args)
        wrong = ~np.isclose(out, right, rtol=self.rtol, atol=0.0)
        if wrong.any():
            i = int(np.flatnonzero(wrong)[0])
            raise WrongResult(f"{self.name}: {int(wrong.sum())} of {out.size} values are wrong; "
                              f"[{i}] is {out.flat[i]}, expected {right.flat[i]}")


def kernels_dir() -> Path:
    """Where the kernels' sources are. Raises FileNotFoundError."""
    path = Path(os.environ.get("STUNTGPU_SHARED") or ROOT.parent / "shared") / "bench-kernels"
    if not path.is_dir():
        raise FileNotFoundError(f"no benchmark kernels at {path} (set STUNTGPU_SHARED)")
    return path


@lru_cache
def _code(arch: str, source: str) -> bytes:
    return assemble(arch, (kernels_dir() / f"{source}.s").read_text())


# ---------------------------------------------------------------- what each computes


def _chain(steps: int, groups: int, threads: int) -> Array:
    """x m^n + a (1 - m^n) / (1 - m) of every work-item, in f64."""
    m = float(FMA_M)
    x = np.tile(np.arange(threads, dtype=np.float64), groups)
    power = m**steps
    return x * power + float(FMA_A) * (1 - power) / (1 - m)


def _fma(name: str, chains: int, groups: int, threads: int, iterations: int) -> Case:
    steps = iterations if chains == 1 else 4 * iterations
    return Case(name, "fma1" if chains == 1 else "fma16", groups, threads,
                make=lambda: (np.zeros(groups * threads, np.float32), np.uint32(iterations)),
                right=lambda args: chains * _chain(steps, groups, threads), rtol=2e-2)


def _copy(name: str, source: str, groups: int) -> Case:
    data = np.random.default_rng(1).integers(0, 2**32, 1 << 18, np.uint32)
    return Case(name, source, groups, 256, make=lambda: (np.zeros_like(data), data), right=lambda args: data)


def _reduce() -> Case:
    def right(args: tuple[Any, ...]) -> Array:
        sums = args[1].reshape(64, 256)
        while sums.shape[1] > 1:  # the tree's own order of additions
            half = sums.shape[1] // 2
            sums = sums[:, :half] + sums[:, half:]
        return np.ascontiguousarray(sums[:, 0])

    return Case("lds_reduce", "lds_reduce", 64, 256, lds_bytes=1024, right=right, make=lambda: (
        np.zeros(64, np.float32), np.random.default_rng(2).standard_normal(64 * 256).astype(np.float32)))


def _wmma(iterations: int) -> Case:
    return Case("wmma f16", "wmma", 1, 32, make=lambda: (np.zeros(32, np.float32), np.uint32(iterations)),
                right=lambda args: np.full(32, 2 * iterations / 16, np.float32))


def _escape_counts(width: int, most: int, step: Any) -> Array:
    index = np.arange(width * width, dtype=np.uint32)
    cx = (index % width).astype(np.float32) * step + np.float32(-2)
    cy = (index // width).astype(np.float32) * step + np.float32(-1.25)
    x, y, count = np.zeros_like(cx), np.zeros_like(cx), np.zeros(index.size, np.uint32)
    live = np.ones(index.size, bool)
    for _ in range(most):
        xx, yy = x * x, y * y
        live &= xx + yy < 4
        xy = x * y
        x, y = np.where(live, xx - yy + cx, x), np.where(live, 2 * xy + cy, y)
        count += live
    return count


def _mandelbrot() -> Case:
    step = np.float32(2.5 / 64)
    return Case("mandelbrot", "mandel", 16, 256, right=lambda args: _escape_counts(64, 256, step),
                make=lambda: (np.zeros(4096, np.uint32), np.uint32(256), np.uint32(6), step))


def _matmul() -> Case:
    def make() -> tuple[Any, ...]:
        rng = np.random.default_rng(3)
        whole = [rng.integers(-8, 9, (256, 256)).astype(np.float32) for _ in range(2)]  # exact in any order
        return np.zeros((256, 256), np.float32), *whole

    return Case("matmul 256", "matmul", 16, 256, lds_bytes=8192, make=make, right=lambda args: args[1] @ args[2])


def _rows() -> tuple[Case, ...]:
    return (
        _fma("fma1, 1 wave", 1, 1, 32, 100_000), _fma("fma16, 1 wave", 4, 1, 32, 20_000),
        _fma("fma1, 64 waves", 1, 8, 256, 10_000), _fma("fma16, 64 waves", 4, 8, 256, 2_000),
        _copy("copy b128", "copy128", 256), _copy("copy b32", "copy32", 1024),
        _reduce(), _wmma(2_000), _mandelbrot(), _matmul(),
    )


CASES: Mapping[str, Case] = {c.name: c for c in _rows()}
