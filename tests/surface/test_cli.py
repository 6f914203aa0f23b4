"""surface/cli.py: what a person types and sees."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from stuntgpu import __version__, demo
from stuntgpu.cli import main


@pytest.fixture
def vadd(tmp_path: Path) -> Path:
    path = tmp_path / "vadd.hsaco"
    path.write_bytes(demo.code_object("vadd_f32", "gfx1100"))
    return path


def stuntgpu(*words: object, text: str | bytes | None = None) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words], input=text)


def test_help_lists_every_command() -> None:
    shown = stuntgpu("--help").output
    assert all(name in shown for name in main.commands)


def test_help_imports_nothing_heavy() -> None:
    heavy = "{'numpy', 'llvmlite', 'rich'}"
    code = f"import sys, stuntgpu.cli; print({heavy} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_python_dash_m_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "stuntgpu", "--version"], capture_output=True, text=True, check=True)
    assert __version__ in done.stdout


def test_info_shows_devices_and_coverage() -> None:
    shown = stuntgpu("info").output
    assert "gfx1100" in shown
    assert "executed" in shown
    (strix,) = (line.split() for line in shown.splitlines() if "8060S" in line)
    assert strix == ["gfx1151", "Radeon", "8060S", "Graphics", "1", "40", "32", "1536/768", "64", "KiB"]


def test_emu_without_a_kernel_lists_them(vadd: Path) -> None:
    shown = stuntgpu("emu", vadd).output
    assert "code object v6 for gfx1100" in shown
    assert "vadd_f32(" in shown
    assert "workgroup 256x1x1" in shown


@pytest.mark.parametrize("tier", ["native", "reference"])
def test_emu_runs_a_kernel_and_saves_its_buffers(vadd: Path, tmp_path: Path, tier: str) -> None:
    out = tmp_path / "out.npz"
    done = stuntgpu("emu", vadd, "vadd_f32", "--grid", 256, "--tier", tier, "--save", out,
                    "f32:100=arange", "f32:100=2", "f32:100", "u32=100")
    assert done.exit_code == 0, done.output
    assert "arg2 float32[100] 100 elements changed: 2, 3, 4" in done.output
    assert np.array_equal(np.load(out)["arg2"], np.arange(100, dtype=np.float32) + 2)


def test_emu_reports_a_fault_and_exits_1(vadd: Path) -> None:
    done = stuntgpu("emu", vadd, "vadd_f32", "--grid", 256, "null", "f32:100=2", "f32:100", "u32=100")
    assert done.exit_code == 1
    assert "page fault in kernel vadd_f32" in done.output
    assert "global_load_b32" in done.output


def test_emu_unknown_kernel_names_those_there_are(vadd: Path) -> None:
    done = stuntgpu("emu", vadd, "vsub")
    assert done.exit_code == 1
    assert "has no kernel 'vsub'; it has vadd_f32" in done.output


def test_emu_damaged_object_is_a_message(tmp_path: Path) -> None:
    path = tmp_path / "text.hsaco"
    path.write_text("hello")
    done = stuntgpu("emu", path)
    assert done.exit_code == 1
    assert "not an ELF file" in done.output


def test_asm_prints_dwords_and_dis_reads_them_back() -> None:
    text = "v_add_f32_e32 v0, v1, v2\ns_endpgm\n"
    code = stuntgpu("asm", text=text)
    assert code.output == "0x06000501\n0xbfb00000\n"
    listed = stuntgpu("dis", text=code.output).output
    assert "v_add_f32_e32 v0, v1, v2" in listed
    assert "s_endpgm" in listed


def test_asm_error_names_the_line() -> None:
    done = stuntgpu("asm", text="s_nop 0\nv_frobnicate v0\n")
    assert done.exit_code == 1
    assert "v_frobnicate" in done.output


def test_asm_writes_bytes(tmp_path: Path) -> None:
    assert stuntgpu("asm", "-o", tmp_path / "x", text="s_endpgm").exit_code == 0
    assert (tmp_path / "x").read_bytes() == bytes.fromhex("0000b0bf")


def installed(*words: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own: `run` replaces its process."""
    return subprocess.run([sys.executable, "-m", "stuntgpu", *words], capture_output=True, text=True, timeout=60, check=False)


def test_run_shows_devices_and_keeps_the_exit_code() -> None:
    script = "test -c /dev/kfd && test -c /dev/dri/renderD128 && test -e /sys/devices/virtual/kfd/kfd/topology/nodes/1 && exit 7"
    assert installed("run", "--", "sh", "-c", script).returncode == 7


def test_run_offers_as_many_gpus_as_asked() -> None:
    done = installed("run", "--gpu", "gfx1100,gfx1100", "--", "ls", "/dev/dri")
    assert done.stdout.split() == ["renderD128", "renderD129"]


def test_run_passes_the_programs_own_options() -> None:
    assert installed("run", "--", "echo", "--gpu", "-x").stdout == "--gpu -x\n"


@pytest.mark.parametrize(("words", "says"), [
    (("run", "--", "no-such-program"), "no program 'no-such-program'"),
    (("run", "--gpu", "gfx9999", "--", "true"), "gfx9999"),
])
def test_run_says_what_is_wrong(words: tuple[str, ...], says: str) -> None:
    done = installed(*words)
    assert done.returncode == 1
    assert says in done.stderr
    assert "Traceback" not in done.stderr
