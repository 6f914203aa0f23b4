"""`stuntgpu emu`: one launch of one kernel, its arguments from the command line, its buffers printed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from stuntgpu import listing, values
from stuntgpu.emu import Gpu
from stuntgpu.emu.gpu import Kernel
from stuntgpu.isa.abi import codeobject

SHOWN = 8
DEFAULT_WORKGROUP = 64

Triple = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Request:
    """What to launch; `workgroup` None lets the kernel decide."""

    kernel: str
    arguments: tuple[str, ...]
    grid: Triple
    workgroup: Triple | None
    tier: str
    shared: int


def triple(text: str) -> Triple:
    """`64` or `64,4` or `64,4,2`, as x, y, z."""
    try:
        sizes = [int(part, 0) for part in text.replace("x", ",").split(",")]
    except ValueError:
        sizes = []
    if not 1 <= len(sizes) <= 3 or min(sizes) < 1:
        raise click.BadParameter(f"{text!r}: expected one to three positive numbers like 64,4")
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def list_kernels(path: Path) -> None:
    loaded = codeobject.read(path.read_bytes(), name=path.name)
    click.echo(f"{path.name}: code object v{loaded.version} for {loaded.target}")
    for kernel in loaded.kernels.values():
        click.echo(f"  {listing.signature(kernel)}")


def run(path: Path, request: Request, save: Path | None) -> None:
    """Launch, then print what each buffer holds. Raises what Gpu raises."""
    data = path.read_bytes()
    gpu = Gpu(codeobject.read(data, name=path.name).target, tier=request.tier)
    kernel = gpu.load(data)[request.kernel]
    arguments = [values.parse(text) for text in request.arguments]
    before = {i: a.copy() for i, a in enumerate(arguments) if isinstance(a, np.ndarray)}
    started = time.perf_counter()
    stats = kernel(*arguments, grid=request.grid, workgroup=_workgroup(kernel, request), shared=request.shared)
    seconds = time.perf_counter() - started
    for i, old in before.items():
        click.echo(describe(i, old, arguments[i]))
    click.echo(f"{stats.workgroups} workgroups, {stats.waves} waves, {stats.wave_instructions} wave-instructions "
               f"in {seconds:.3f} s on the {request.tier} tier")
    if save is not None:
        np.savez(save, **{f"arg{i}": arguments[i] for i in before})


def _workgroup(kernel: Kernel, request: Request) -> Triple:
    if request.workgroup is not None:
        return request.workgroup
    required = kernel.info.required_workgroup
    return required or (min(request.grid[0], DEFAULT_WORKGROUP), 1, 1)


def describe(index: int, before: np.ndarray[Any, Any], after: np.ndarray[Any, Any]) -> str:
    """`arg2 float32[1000] 999 elements changed: 0, 1, 2, ...`; NaNs and signed zeros count by their bits."""
    bits = f"u{after.itemsize}"
    changed = int(np.count_nonzero(after.view(bits) != before.view(bits)))
    shape = ",".join(map(str, after.shape))
    shown = [f"{v:.7g}" if np.issubdtype(after.dtype, np.floating) else str(v) for v in after.ravel()[:SHOWN]]
    tail = ", ..." if after.size > SHOWN else ""
    what = f"{changed} elements changed" if changed else "unchanged"
    return f"arg{index} {after.dtype}[{shape}] {what}: {', '.join(shown)}{tail}"
