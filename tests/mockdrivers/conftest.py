"""Fixtures: one door per test process, and one KFD process behind it with its VM acquired."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from stuntgpu.mockdrivers.client import Door, environment
from tests.mockdrivers.rawkfd import RawKfd
from tests.shared import ROOT

Preloaded = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def door() -> Door:
    return Door(("gfx1100",))


@pytest.fixture(scope="session")
def gpu(door: Door) -> RawKfd:
    """KFD knows one process and one VM a GPU, however often it is opened: so one for the session."""
    process = RawKfd(door)
    process.acquire()
    return process


@pytest.fixture(scope="session")
def preloaded() -> Preloaded:
    """Run a command under LD_PRELOAD: preloaded("prog", "arg", VARIABLE="x") -> CompletedProcess."""

    def run(*command: object, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([str(c) for c in command], env={**os.environ, **environment(), **env},
                              capture_output=True, text=True, timeout=60, check=False)

    return run


@pytest.fixture(scope="session")
def python_client(preloaded: Preloaded) -> Preloaded:
    """Run Python text in a client process of its own; `tests.mockdrivers.rawkfd` is importable."""

    def run(text: str, **env: str) -> subprocess.CompletedProcess[str]:
        return preloaded(sys.executable, "-c", text, PYTHONPATH=str(ROOT), **env)

    return run


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Compile a C file of this folder, giving the program."""

    def build(name: str) -> Path:
        program = tmp_path_factory.mktemp("c") / name.removesuffix(".c")
        subprocess.run(["gcc", "-O1", "-Wall", "-Wextra", "-Werror", "-o", program, ROOT / "tests/mockdrivers" / name,
                        "-lpthread"], check=True, timeout=60)
        return program

    return build
