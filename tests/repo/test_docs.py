"""The README and docs/ say what is so."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stuntgpu.cli import main
from tests.repo import tree

README = tree.text(tree.ROOT / "README.md")
HACKING = tree.text(tree.ROOT / "docs/hacking.md")
CI = tree.text(tree.ROOT / ".ci/run").splitlines()
VARIABLE = re.compile(r"\b(STUNTGPU_[A-Z]+(?:_[A-Z]+)*)\b")


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def numbered_commands() -> list[str]:
    """README commands 1 and 2, as typed."""
    return [line for line in blocks("sh")[0].splitlines() if line and not line.startswith("#")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder as the quick starts suppose it."""
    shutil.copy(tree.ROOT / "surface/demo/vadd_f32.gfx1100.hsaco", tmp_path / "vadd_f32.hsaco")
    (tmp_path / "kernel.s").write_text(re.findall(r"^```\n(.*?)^```$", tree.text(tree.ROOT / "docs/assembler.md"), re.MULTILINE | re.DOTALL)[0])
    return tmp_path


def run(folder: Path, *command: str, **environment: str) -> str:
    env = {**os.environ, **environment, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_readme_has_the_two_commands_that_ci_runs() -> None:
    demonstrate, test = (line.rpartition("&& ")[2].removeprefix(".venv/bin/") for line in numbered_commands())
    assert demonstrate in CI
    assert CI[-1] == test


def test_readme_names_only_commands_that_exist() -> None:
    named = set(re.findall(r"(?<![\w/.'])stuntgpu ([a-z]+)\b", "\n".join(blocks("sh"))))
    assert named
    assert named <= set(main.commands)


def test_readme_python_api_runs_as_written(folder: Path) -> None:
    (code,) = (block for block in blocks("python") if "from stuntgpu.emu" in block)
    assert run(folder, sys.executable, "-c", code).startswith("[1. 2. 3. 4.]")


def test_the_emulators_page_shows_the_report_its_example_prints(tmp_path: Path) -> None:
    page = tree.text(tree.ROOT / "docs/emulator.md")
    (code,), (report,) = blocks("python", page), re.findall(r"^```\n(deadlock.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert run(tmp_path, sys.executable, "-c", code).startswith(report)


def test_readme_test_passes_under_its_dev(folder: Path) -> None:
    (code,) = (block for block in blocks("python") if "from stuntgpu.runtime" in block)
    (folder / "test_readme.py").write_text(code)
    shown = run(folder, sys.executable, "-m", "pytest", "-p", "no:cacheprovider", DEV="MOCKKFD+AMD")
    assert "1 passed" in shown
    assert "1 kernel," in shown


@pytest.mark.parametrize("line", [line for block in blocks("sh")[1:] for line in block.splitlines() if " emu " in line or " asm" in line or " dis " in line])
def test_readme_shell_lines_run(folder: Path, line: str) -> None:
    assert run(folder, "sh", "-c", line)


def test_every_environment_variable_is_documented() -> None:
    used = {name for path in (*tree.python_files(), *tree.files(".c"), *tree.files(".h"))
            if not tree.name(path).startswith("tests/") for name in VARIABLE.findall(tree.text(path)) if not name.endswith("_H")}
    documented = set(re.findall(r"^\| `(STUNTGPU_[A-Z_]+)`", HACKING, re.MULTILINE))
    assert used == documented


def test_every_file_the_docs_name_exists() -> None:
    missing = [
        f"{path.name}: {name}"
        for path in (tree.ROOT / "README.md", *(tree.ROOT / "docs").glob("*.md"))
        for name in re.findall(r"`((?:isa|emu|mockdrivers|runtime|compiler|sqtt|surface|tests|docs|benchmarks)/[\w./]*)`", tree.text(path))
        if not (tree.ROOT / name).exists()
    ]
    assert not missing, "\n".join(missing)
