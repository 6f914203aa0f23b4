"""surface/pytest_plugin.py and testing.py: sessions of their own in a temporary folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stuntgpu import demo
from stuntgpu.pytest_plugin import wants_mock
from stuntgpu.testing import is_pytest_command, summary

SEES_DEVICES = """
import os
def test_devices():
    assert os.access("/dev/kfd", os.R_OK | os.W_OK)
    assert os.listdir("/dev/dri") == ["renderD128"]
"""
RUNS_KERNEL = """
import numpy as np
import pytest
from pathlib import Path
from stuntgpu.runtime import Device

@pytest.mark.parametrize("n", range(2))
def test_kernel(n):
    dev = Device()
    out = dev.copyin(np.zeros(64, np.float32))
    a = dev.copyin(np.arange(64, dtype=np.float32))
    vadd = dev.load(Path("vadd.hsaco").read_bytes(), "vadd_f32")
    vadd(a, a, out, np.uint32(64), global_size=(1, 1, 1), local_size=(256, 1, 1))
    assert dev.copyout(out)[3] == 6
"""
FAULTS_IN_A_CHILD = """
import subprocess, sys
CHILD = '''
import numpy as np
from pathlib import Path
from stuntgpu.runtime import Device
dev = Device()
a = dev.copyin(np.arange(64, dtype=np.float32))
vadd = dev.load(Path("vadd.hsaco").read_bytes(), "vadd_f32")
vadd(a, a, np.uint64(0x1234000), np.uint32(64), global_size=(1, 1, 1), local_size=(256, 1, 1))
dev.synchronize()
'''
def test_quiet():
    pass
def test_child():
    assert subprocess.run([sys.executable, "-c", CHILD], stderr=subprocess.DEVNULL).returncode == 0
"""


def session(folder: Path, test: str, *options: str, dev: str | None = "MOCKKFD+AMD", ini: str = "") -> subprocess.CompletedProcess[str]:
    """Runs pytest over one test file, in a process and an environment that know nothing of this session."""
    (folder / "test_it.py").write_text(test)
    (folder / "pytest.ini").write_text(f"[pytest]\n{ini}\n")
    (folder / "vadd.hsaco").write_bytes(demo.code_object("vadd_f32", "gfx1100"))
    inherited = {"LD_PRELOAD", "DEV", "STUNTGPU_SERVER", "STUNTGPU_TREE", "PYTEST_ADDOPTS"}
    env = {k: v for k, v in os.environ.items() if k not in inherited and not k.startswith("PYTEST_XDIST")}
    if dev is not None:
        env["DEV"] = dev
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(("dev", "expected"), [
    (None, False), ("", False), ("AMD", False), ("KFD+AMD", False), ("NULL::gfx1100", False),
    ("MOCKKFD+AMD", True), ("MOCKKFD+AMD:LLVM:gfx1100", True), ("MOCK+NV", True), ("KFD+AMD;MOCKPCI+AMD", True),
])
def test_mock_forms_of_dev(dev: str | None, expected: bool) -> None:
    assert wants_mock(dev) is expected


@pytest.mark.parametrize(("argv", "expected"), [
    (["python", "-m", "pytest", "-x"], True), (["python", "-X", "dev", "-m", "pytest"], True),
    (["python", "/venv/bin/pytest", "tests"], True), (["python", "-m", "tox"], False),
    (["python", "-c", "import pytest; pytest.main()"], False), (["python", "check.py", "pytest"], False),
])
def test_only_a_pytest_command_line_is_restarted(argv: list[str], expected: bool) -> None:
    assert is_pytest_command(argv) is expected


def test_without_a_mock_dev_nothing_of_ours_is_loaded(tmp_path: Path) -> None:
    test = """
import os, sys
def test_nothing():
    assert not [m for m in sys.modules if m.startswith("stuntgpu.") and m != "stuntgpu.pytest_plugin"]
    assert "STUNTGPU_SERVER" not in os.environ
"""
    done = session(tmp_path, test, dev=None)
    assert done.returncode == 0, done.stdout
    assert "kernels, " not in done.stdout


def test_session_sees_the_devices_without_a_wrapper(tmp_path: Path) -> None:
    done = session(tmp_path, SEES_DEVICES)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "stuntgpu MOCKKFD+AMD: 0 kernels, 0 wave-instructions, no faults" in done.stdout


def test_ini_option_turns_the_preload_off(tmp_path: Path) -> None:
    test = """
import os
def test_no_devices():
    assert "libstuntgpu" not in os.environ.get("LD_PRELOAD", "")
    assert os.environ["STUNTGPU_SERVER"]
"""
    done = session(tmp_path, test, ini="stuntgpu_preload = false")
    assert done.returncode == 0, done.stdout


def test_workers_share_one_server_and_the_summary_counts_all(tmp_path: Path) -> None:
    done = session(tmp_path, RUNS_KERNEL, "-n", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "stuntgpu MOCKKFD+AMD: 2 kernels, " in done.stdout
    assert done.stdout.count("stuntgpu MOCKKFD+AMD") == 1


@pytest.mark.parametrize("options", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_fault_is_shown_under_the_test_that_caused_it(tmp_path: Path, options: tuple[str, ...]) -> None:
    done = session(tmp_path, FAULTS_IN_A_CHILD, *options)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "GPU fault" in done.stdout
    assert "page fault in kernel vadd_f32: write at 0x1234000" in done.stdout
    assert "1 fault" in done.stdout


def test_summary_counts_in_words() -> None:
    did = {"kernels": 1, "wave_instructions": 20, "faults": 2}
    assert summary(did, "MOCKKFD+AMD") == "stuntgpu MOCKKFD+AMD: 1 kernel, 20 wave-instructions, 2 faults"
