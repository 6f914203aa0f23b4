"""The benchmark harness: its kernels compute what they must, and its tables are readable."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.__main__ import Result, main, row, table
from benchmarks.cases import CASES, Case, WrongResult
from stuntgpu.emu import Gpu
from tests.shared import shared_dir

#: case -> (waves, wave-instructions as documented beside the kernels: without s_waitcnt, s_waitcnt of one wave)
DOCUMENTED = {
    "fma1, 1 wave": (1, 400_011, 1), "fma16, 1 wave": (1, 380_018, 1),
    "fma1, 64 waves": (64, 2_560_704, 1), "fma16, 64 waves": (64, 2_433_152, 1),
    "copy b128": (2048, 18_432, 2), "copy b32": (8192, 73_728, 2),
    "lds_reduce": (512, 32_768, 19), "wmma f16": (1, 14_055, 1),
    "mandelbrot": (128, 210_342, 1), "matmul 256": (128, 625_152, 289),
}  # fmt: skip


def test_golden_kernels_compute_and_count_what_is_documented() -> None:
    shared_dir()
    counts = {}
    for name, case in CASES.items():
        counts[name] = case.launch(case.kernel(Gpu("gfx1100")))
        case.check()
    assert counts == {n: count + waves * waits for n, (waves, count, waits) in DOCUMENTED.items()}


def test_golden_json_can_be_compared_with(tmp_path: Path) -> None:
    shared_dir()
    earlier = tmp_path / "earlier.json"
    run = CliRunner().invoke(main, ["fma16, 1 wave", "--no-fresh", "--rounds", "1", "--json"], catch_exceptions=False)
    earlier.write_text(run.output)
    assert json.loads(run.output)["results"][0]["wave_instructions"] == 380_019
    again = CliRunner().invoke(main, ["fma16, 1 wave", "--no-fresh", "--rounds", "1", "--against", str(earlier)])
    assert again.output.splitlines()[0].endswith("warm, against")
    assert again.output.splitlines()[1].endswith("x")


def test_wrong_result_is_no_result() -> None:
    case = Case("bad", "none", 1, 1, make=lambda: (), right=lambda args: np.arange(4))
    case.args = (np.array([0, 1, 9, 9]),)
    with pytest.raises(WrongResult, match=r"bad: 2 of 4 values are wrong; \[2\] is 9, expected 2"):
        case.check()


def test_unknown_case_lists_the_known() -> None:
    run = CliRunner().invoke(main, ["fma2"])
    assert run.exit_code == 2
    assert "no case 'fma2'; there are: 'fma1, 1 wave'" in run.output


def test_tables() -> None:
    rows = [("case", "n"), row(Result("a", 1200, 123.4, None, None, 0.5, 7.25), None)]
    assert rows[1] == ("a", "1,200", "123", "", "", "0.5", "7.25")
    assert table([("case", "n"), ("a", "10")], markdown=True) == "| case |  n |\n| ---- | -: |\n| a    | 10 |"
    assert table([("case", "n"), ("a", "10")], markdown=False) == "case   n\na     10"
    assert row(Result("a", 1, 30.0), Result("a", 1, 20.0))[-1] == "1.50x"
