"""The trace benchmark measures what it says."""

from __future__ import annotations

from benchmarks import sqtt
from tests.sqtt.captures import folder


def test_every_buffer_of_a_chip_is_measured() -> None:
    cases = sqtt.cases(folder() / "gfx1151")
    assert len(cases) == len(list((folder() / "gfx1151").glob("*/x*.bin.gz")))
    assert all(sqtt.rate(work, cases[:1]) > 0 for work in sqtt.WORK.values())
