"""Pytest plugin (entry point `stuntgpu`): runs the session under the mock drivers when DEV names a mock.

Without such a DEV it does nothing and imports nothing of ours. With one, `stuntgpu.testing` takes over.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from stuntgpu.testing import Session

PRELOAD = "stuntgpu_preload"


def wants_mock(dev: str | None) -> bool:
    """True when a device of DEV (several are joined by ";") has a mock interface: `MOCKKFD+AMD`, `MOCK+NV`."""
    return any(form.strip().upper().startswith("MOCK") for form in (dev or "").split(";"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(PRELOAD, type="bool", default=True,
                  help="with DEV=MOCK..., restart pytest under libstuntgpu.so so that every runtime sees the devices")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, object, object]:
    """As early as the ini file is known, and before pytest captures output."""
    if wants_mock(os.environ.get("DEV")):
        from stuntgpu import testing

        testing.prepare(preload=bool(early_config.getini(PRELOAD)))
    return (yield)


def pytest_configure(config: pytest.Config) -> None:
    if wants_mock(os.environ.get("DEV")):
        from stuntgpu import testing

        session: Session = testing.Session(is_worker=hasattr(config, "workerinput"))
        config.pluginmanager.register(session, "stuntgpu-session")
