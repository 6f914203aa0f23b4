"""An architecture that extends another is asked what it shares with it by the slow tests; test_gfx1151.py asks what it adds."""

from __future__ import annotations

import pytest

from tests.arches import EXTENSIONS


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            values = [x for v in item.callspec.params.values() for x in (v if isinstance(v, tuple) else (v,))]
            if EXTENSIONS.intersection(x for x in values if isinstance(x, str)):
                item.add_marker(pytest.mark.slow)
