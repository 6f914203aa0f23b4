"""Kernels compiled by clang agree with numpy on every target, wave size and tier."""

from __future__ import annotations

import pytest

from stuntgpu.emu import Gpu
from tests.kernels.build import HERE, code_object
from tests.kernels.cases import Build, Problem, builds, cases

BUDGET = 5_000_000
BUILDS = [pytest.param(b, id=str(b), marks=() if b.case.quick else pytest.mark.slow) for b in builds()]


def run(build: Build, n: int, gpu: Gpu) -> Problem:
    """The problem after its launches, checked against numpy."""
    problem, module = build.case.problem(build.arch, build.lanes, n), gpu.load(code_object(build))
    for step in problem.steps:
        module[step.kernel](*step.args, grid=step.grid, workgroup=step.workgroup, shared=step.shared)
    wrong = [text for check in problem.checks if (text := check.mismatch())]
    assert not wrong, f"{build} n={n} on {gpu.tier}: {'; '.join(wrong)}"
    return problem


@pytest.mark.parametrize("build", BUILDS)
def test_native_kernel_agrees_with_numpy(build: Build) -> None:
    run(build, build.case.n, Gpu(build.arch, seed=1, threads=2, max_wave_instructions=BUDGET))


@pytest.mark.parametrize("build", [b for b in BUILDS if b.values[0].case.small])  # type: ignore[union-attr]
def test_both_tiers_agree_with_numpy_and_each_other(build: Build) -> None:
    native, reference = (run(build, build.case.small, Gpu(build.arch, tier=tier, max_wave_instructions=BUDGET))
                         for tier in ("native", "reference"))
    for i, (a, b) in enumerate(zip(native.arrays(), reference.arrays(), strict=True)):
        assert a.tobytes() == b.tobytes(), f"array {i} differs between the tiers"


def test_every_source_is_used_and_says_what_it_is_for() -> None:
    sources = {p.name: p.read_text() for p in (HERE / "src").iterdir()}
    assert set(sources) == {c.source for c in cases()}
    assert all(text.startswith("// ") for text in sources.values())
    assert all(c.exercises for c in cases())
    assert all(c.checks for c in (b.case.problem(b.arch, b.lanes, b.case.small or b.case.n) for b in builds()))
