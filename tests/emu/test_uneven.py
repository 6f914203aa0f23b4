"""Grids that are no multiple of the workgroup: one dispatch with partial workgroups, or one for each edge."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stuntgpu import demo
from stuntgpu.emu import Gpu
from stuntgpu.emu.launch import Launch, RunOptions, Stats
from stuntgpu.emu.memory import AddressSpace
from stuntgpu.isa.abi import codeobject, kernarg

VADD = codeobject.read(demo.code_object("vadd_f32", "gfx1100")).kernels["vadd_f32"]
UNIFORM = replace(VADD, required_workgroup=None, uniform_workgroups=True, max_workgroup_items=1024)
sizes = st.tuples(*[st.integers(1, 12)] * 3)


@given(sizes, sizes)
def test_pieces_of_a_uniform_kernel_cover_the_grid_once_in_equal_workgroups(grid: Any, workgroup: Any) -> None:
    seen = np.zeros(grid[::-1], np.int64)
    for p in kernarg.pieces(UNIFORM, grid, workgroup):
        assert all(n % w == 0 for n, w in zip(p.grid, p.workgroup, strict=True))
        x, y, z = (slice(s * w, s * w + n) for s, w, n in zip(p.start, workgroup, p.grid, strict=True))
        seen[z, y, x] += 1
        assert all(h == w * -(-n // g) for h, w, n, g in zip(p.hidden_grid, p.workgroup, grid, workgroup, strict=True))
    assert np.all(seen == 1)


@pytest.mark.parametrize("kernel", [
    replace(UNIFORM, uniform_workgroups=False), replace(UNIFORM, required_workgroup=(4, 4, 4))])
def test_other_kernels_get_one_dispatch_with_partial_workgroups(kernel: codeobject.KernelInfo) -> None:
    assert kernarg.pieces(kernel, (9, 9, 9), (4, 4, 4)) == (
        kernarg.Piece((0, 0, 0), (9, 9, 9), (4, 4, 4), (9, 9, 9)),)


class Recorder:
    """Keeps launches, runs nothing."""

    def __init__(self) -> None:
        self.launches: list[Launch] = []

    def run(self, space: AddressSpace, launch: Launch, options: RunOptions) -> Stats:
        self.launches.append(launch)
        return Stats(kernels=1)


def test_edges_continue_the_workgroup_ids() -> None:
    recorder = Recorder()
    gpu = Gpu("gfx1100", executor=recorder)
    kernel = gpu.load(demo.code_object("vadd_f32", "gfx1100"))["vadd_f32"]
    kernel.info = UNIFORM
    x = np.zeros(1, np.float32)
    kernel(x, x, x, np.uint32(1), grid=(1000, 3), workgroup=(192, 2))
    assert [(r.start, r.grid, r.workgroup) for r in recorder.launches] == [
        ((0, 0, 0), (960, 2, 1), (192, 2, 1)), ((5, 0, 0), (40, 2, 1), (40, 2, 1)),
        ((0, 1, 0), (960, 1, 1), (192, 1, 1)), ((5, 1, 0), (40, 1, 1), (40, 1, 1))]
