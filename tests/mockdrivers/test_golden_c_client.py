"""Compiler output through a C program that knows only open, ioctl and mmap, under the preloaded shim."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stuntgpu.emu import Gpu
from tests.emu.test_golden_kernels import arguments, mismatch, rows_of
from tests.mockdrivers.throughc import ThroughC
from tests.shared import shared_dir

ARCH = "gfx1100"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        rows = rows_of("kernels/cases.json", ARCH)
        metafunc.parametrize("case", rows, ids=[r["case"] if r else "none" for r in rows])


@pytest.fixture(scope="module")
def program(compiled: Callable[[str], Path]) -> Path:
    return compiled("kfd_dispatch.c")


def test_golden_case_is_right_through_a_c_client(case: dict[str, Any] | None, program: Path, tmp_path: Path) -> None:
    if case is None:
        shared_dir()
        return
    args, expected = arguments(case)
    gpu = Gpu(ARCH, executor=ThroughC(ARCH, program, tmp_path))
    kernel = gpu.load(shared_dir() / "kernels" / case["object"])[case["kernel"]]
    kernel(*args, grid=tuple(case["grid"]), workgroup=tuple(case["workgroup"]))
    assert expected
    for i, want in expected.items():
        rtol, atol = case["tolerance"].get(str(i), (0.0, 0.0))
        assert mismatch(args[i], want, rtol, atol) == "", f"argument {i}"
