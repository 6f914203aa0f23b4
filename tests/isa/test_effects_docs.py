"""The example of docs/isa.md runs, and its tables name what there is."""

from __future__ import annotations

import dataclasses
import re

import pytest

from stuntgpu.isa.effects import Access, Effects, Exec, File, Flow, Lanes, Use
from tests.shared import ROOT

TEXT = (ROOT / "docs" / "isa.md").read_text()


def test_the_example_runs_and_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    exec(compile(code, "isa.md", "exec"), {})
    shown = re.findall(r"print\(.*?\) +# (.*)", code)
    assert capsys.readouterr().out.splitlines() == shown


@pytest.mark.parametrize(("kind", "left_out"), [(Effects, {"wave_lanes"}), (Access, {"name"})])
def test_the_tables_have_every_field(kind: type, left_out: set[str]) -> None:
    section = TEXT.split(f"**`{kind.__name__}`**", 1)[1].split("\n\n", 2)[1]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    named = set(re.findall(r"`(\w+)`", " ".join(rows)))
    assert named == {f.name for f in dataclasses.fields(kind)} - left_out


@pytest.mark.parametrize("kind", [Exec, File, Flow, Lanes, Use])
def test_the_tables_have_every_name(kind: type[Exec]) -> None:
    assert not [m.name for m in kind if m.name not in TEXT]
