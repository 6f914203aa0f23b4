"""One mock device for a module's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stuntgpu.runtime import Device


@pytest.fixture(scope="module")
def dev() -> Iterator[Device]:
    with Device("MOCKKFD+AMD", timeout_s=30) as device:
        yield device
