"""The page on traces shows what its examples print."""

from __future__ import annotations

import contextlib
import io
import re

import pytest

from tests.shared import ROOT

PAGE = (ROOT / "docs/sqtt.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("code", "shown"), EXAMPLES, ids=range(len(EXAMPLES)))
def test_examples_print_what_the_page_shows(code: str, shown: str) -> None:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(code, {})
    assert out.getvalue() == shown


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) == PAGE.count("```python") == 2
