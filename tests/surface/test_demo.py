"""surface/demo: right results through the mock driver, and honest verdicts."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from stuntgpu import demo
from stuntgpu.demo import show
from tests.shared import shared_dir


class Broken:
    """A device whose kernels compute nothing."""

    arch = "gfx1100"

    def copyin(self, array: np.ndarray) -> np.ndarray:
        return array.copy()

    def copyout(self, buffer: np.ndarray) -> np.ndarray:
        return buffer

    def load(self, code: bytes, name: str) -> Any:
        return lambda *args, **sizes: None


def test_demo_passes_through_the_mock_driver() -> None:
    env = {k: v for k, v in os.environ.items() if k != "DEV"}
    done = subprocess.run([sys.executable, "-m", "stuntgpu", "demo"], env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "vadd_f32: 1000 results, 0 wrong  PASS" in done.stdout
    assert "mandelbrot: 1976 results, 0 wrong  PASS" in done.stdout
    assert "DEV=MOCKKFD+AMD" in done.stdout


def test_wrong_results_are_counted_and_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stuntgpu.runtime.Device", Broken)
    monkeypatch.setenv("DEV", "MOCKKFD+AMD")
    with CliRunner().isolation() as (out, *_):
        assert show.main(draw=False) == 1
        shown = out.getvalue().decode()
    assert "vadd_f32: 1000 results, 1000 wrong  FAIL" in shown


def test_escape_times_of_known_points() -> None:
    far = demo.View(width=1, height=1, x0=2.0, y0=2.0)
    inside = demo.View(width=1, height=1, x0=0.0, y0=0.0)
    assert demo.escape_times(far)[0, 0] == 1
    assert demo.escape_times(inside)[0, 0] == inside.limit


def test_unshipped_architecture_names_what_is_shipped() -> None:
    with pytest.raises(FileNotFoundError, match=r"gfx906.*it has .*vadd_f32\.gfx1100\.hsaco"):
        demo.code_object("vadd_f32", "gfx906")


def test_golden_vadd_is_the_compiled_kernel_of_the_facts() -> None:
    golden = shared_dir() / "kernels" / "hsaco" / "gfx1100" / "vadd_f32.hsaco"
    assert demo.code_object("vadd_f32", "gfx1100") == golden.read_bytes()
