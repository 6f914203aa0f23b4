"""What `python -m build` puts into the sdist and the wheel."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.repo import tree

pytestmark = pytest.mark.slow

NATIVE = ("stuntgpu/mockdrivers/libstuntgpu.so", "stuntgpu/emu/libstuntgpu_emu.so")
SOURCE_FOLDERS = {"surface": "stuntgpu"} | {folder: f"stuntgpu/{folder}" for folder in tree.LAYERS}


def build(source: Path, out: Path, *options: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "build", *options, "--outdir", str(out), str(source)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, env=env)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository's own files, as a fresh clone would hold them."""
    folder = tmp_path_factory.mktemp("source")
    for path in tree.files():
        target = folder / path.relative_to(tree.ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)
    return folder


@pytest.fixture(scope="module")
def built(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the sdist, and the wheel built from that sdist."""
    out = tmp_path_factory.mktemp("dist")
    done = build(source, out)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture(scope="module")
def wheel_names(built: Path) -> set[str]:
    (wheel,) = built.glob("*.whl")
    return set(zipfile.ZipFile(wheel).namelist())


@pytest.fixture(scope="module")
def sdist_names(built: Path) -> set[str]:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


def installed_files() -> list[str]:
    """Wheel names of every Python file and data file of the packages."""
    names = []
    for path in tree.files():
        folder, _, rest = tree.name(path).partition("/")
        if folder in SOURCE_FOLDERS and path.suffix not in {".c", ".h"}:
            names.append(f"{SOURCE_FOLDERS[folder]}/{rest}")
    return names


def test_wheel_holds_every_module_table_and_data_file(wheel_names: set[str]) -> None:
    assert not set(installed_files()) - wheel_names
    assert {"stuntgpu/py.typed", *NATIVE} <= wheel_names


def test_wheel_installs_one_import_name_and_no_tests(wheel_names: set[str]) -> None:
    top = {name.split("/")[0] for name in wheel_names if ".dist-info/" not in name}
    assert top == {"stuntgpu"}
    assert not [name for name in wheel_names if "tests/" in name or "/test_" in name or name.endswith((".c", ".h"))]


def test_wheel_is_tagged_for_the_platform_and_any_python3(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    assert "-py3-none-linux_" in wheel.name


def test_wheel_carries_the_licence_and_entry_points(wheel_names: set[str]) -> None:
    assert [name for name in wheel_names if name.endswith("LICENSE")]
    assert [name for name in wheel_names if name.endswith("entry_points.txt")]


def test_sdist_can_build_and_leaves_the_tests_out(sdist_names: set[str]) -> None:
    needed = {"pyproject.toml", "setup.py", "README.md", "LICENSE"}
    needed |= {tree.name(path) for path in (*tree.files(".c"), *tree.files(".h")) if "/native/" in tree.name(path)}
    assert not needed - sdist_names
    assert not [name for name in sdist_names if name.startswith(("tests/", ".ci/", "benchmarks/"))]
    assert not [name for name in sdist_names if name.endswith(".so")]


def test_missing_compiler_is_a_clear_error(source: Path, tmp_path: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "CC"} | {"PATH": str(tmp_path)}
    done = build(source, tmp_path, "--wheel", env=environment)
    assert done.returncode != 0
    assert "stuntgpu needs a C compiler" in done.stdout + done.stderr
