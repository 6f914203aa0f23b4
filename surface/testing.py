"""A pytest session under the mock drivers: one server for all workers, faults shown with the test that caused them.

The controller starts the server; xdist's workers and every child process inherit where it is. The session is
restarted under the preload library before anything is collected, since a library can only be preloaded at start.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Sequence
from typing import Any

import pytest

from stuntgpu.mockdrivers import client

SECTION = "GPU fault"


def prepare(*, preload: bool) -> None:
    """Make sure of a server; with `preload`, restart this process under the shim unless it already is.

    Does not come back when it restarts. Raises ServerError.
    """
    link = client.server()
    if not preload or is_preloaded() or not is_pytest_command(sys.orig_argv):
        return
    environment = {**os.environ, **client.environment()}
    link.keep_across_exec()
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


def is_preloaded() -> bool:
    """True under `stuntgpu run`, in a restarted session, and in their children."""
    return str(client.SHIM) in os.environ.get("LD_PRELOAD", "").split(":") and "STUNTGPU_TREE" in os.environ


def is_pytest_command(argv: Sequence[str]) -> bool:
    """True for `pytest ...` and `python -m pytest ...`: they can start over. A program that calls pytest.main cannot."""
    words = list(argv[1:])
    if "-m" in words:
        return words[words.index("-m") + 1 : words.index("-m") + 2] == ["pytest"]
    script = next((word for word in words if not word.startswith("-")), "")
    return os.path.basename(script) in ("pytest", "py.test") or script.endswith("pytest/__main__.py")


class Session:
    """Hooks of one process of the session: the controller, or one worker."""

    def __init__(self, *, is_worker: bool) -> None:
        self.is_worker = is_worker
        self.link = client.server()
        self.at_start = self._totals()
        self._next_fault = 0

    def _totals(self) -> dict[str, int]:
        totals: dict[str, int] = self.link.request(do="status")["totals"]
        return totals

    def _faults(self) -> dict[str, Any]:
        """What this process and its children caused since the last test began."""
        return self.link.request(do="faults", since=self._next_fault, of_pid=os.getpid())

    def pytest_runtest_setup(self) -> None:
        self._next_fault = self._faults()["next"]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """A failed test shows the reports of the faults it caused, unless its own message already has them."""
        report = yield
        if report.failed:
            said = report.longreprtext
            report.sections += [(SECTION, text) for text in self._faults()["texts"] if text not in said]
        return report

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.is_worker:
            now = self._totals()
            did = {name: now[name] - self.at_start[name] for name in now}
            terminalreporter.write_line(summary(did, os.environ.get("DEV", "")))


def summary(did: dict[str, int], dev: str) -> str:
    """`stuntgpu MOCKKFD+AMD: 12 kernels, 34567 wave-instructions, no faults`."""
    faults = did["faults"]
    return (f"stuntgpu {dev}: {counted(did['kernels'], 'kernel')}, "
            f"{counted(did['wave_instructions'], 'wave-instruction')}, "
            f"{counted(faults, 'fault') if faults else 'no faults'}")


def counted(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
