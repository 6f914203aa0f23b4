"""One mock device for a module's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stuntgpu.mockdrivers.client import Door
from stuntgpu.runtime import Device


@pytest.fixture(scope="session", autouse=True)
def fresh_machine() -> None:
    """A process has one KFD address space. Tests of the raw driver in this process may hold it: a door
    to another machine ends what was opened before, and the runtime's own door then begins anew."""
    Door(("gfx1100", "gfx1100"))


@pytest.fixture(scope="module")
def dev() -> Iterator[Device]:
    with Device("MOCKKFD+AMD", timeout_s=30) as device:
        yield device
