"""Compiler output through the runtime under MOCKKFD: every gfx1100 row of the shared cases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stuntgpu.runtime import Device
from tests.emu.test_golden_kernels import arguments, mismatch, rows_of
from tests.shared import shared_dir


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        rows = rows_of("kernels/cases.json", "gfx1100")
        metafunc.parametrize("case", rows, ids=[r["case"] if r else "none" for r in rows])


def test_golden_case_is_right_through_mockkfd(case: dict[str, Any] | None, dev: Device) -> None:
    if case is None:
        shared_dir()
        return
    args, expected = arguments(case)
    passed = [dev.copyin(a) if isinstance(a, np.ndarray) and a.ndim else a for a in args]
    program = dev.load(shared_dir() / "kernels" / case["object"], case["kernel"])
    program(*passed, grid=tuple(case["grid"]), local_size=tuple(case["workgroup"]))
    assert expected
    for i, want in expected.items():
        rtol, atol = case["tolerance"].get(str(i), (0.0, 0.0))
        assert mismatch(dev.copyout(passed[i]), want, rtol, atol) == "", f"argument {i}"
