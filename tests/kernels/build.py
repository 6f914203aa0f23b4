"""Kernel sources -> code objects, by clang. Nothing is compiled twice.

Objects lie in a folder named by everything they depend on (compiler, flags, the text of source and
header), under the cache folder of native code: worker processes and later runs share them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

from stuntgpu.emu.cache import default_folder
from tests.kernels.cases import Build

HERE = Path(__file__).resolve().parent
TIMEOUT_S = 120
#: Set where the tools cannot be installed; else CI fails without them, so that it cannot lose these tests unseen.
WITHOUT = "WITHOUT_LLVM"
LANGUAGES = {
    "hip": ("-x", "hip", "-std=c++20", "--cuda-device-only", "-nogpuinc", "-fno-gpu-rdc",
            "-fno-offload-uniform-block", "--no-gpu-bundle-output",
            "--offload-arch={arch}"),
    "cl": ("-x", "cl", "-cl-std=CL2.0", "-target", "amdgcn-amd-amdhsa", "-mcpu={arch}"),
}


def clang() -> str:
    """Path of the compiler. Skips the calling test when it or its linker is missing; in CI fails it."""
    path = shutil.which("clang-22")
    if path is not None and _linker(path):
        return path
    reason = "no clang-22 with lld on PATH to compile kernels with"
    if os.environ.get("CI") and not os.environ.get(WITHOUT):
        pytest.fail(reason)
    pytest.skip(reason)


@cache
def _linker(path: str) -> bool:
    found = subprocess.run([path, "--print-prog-name=lld"], capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    return shutil.which(found.stdout.strip()) is not None


@cache
def _version(path: str) -> str:
    return subprocess.run([path, "--version"], capture_output=True, text=True, timeout=TIMEOUT_S, check=True).stdout


def flags(build: Build) -> list[str]:
    """Arguments of the compiler, files aside."""
    case = build.case
    words = [word.format(arch=build.arch) for word in LANGUAGES[case.language]]
    if not build.arch.startswith("gfx9"):
        words.append("-mwavefrontsize64" if build.lanes == 64 else "-mno-wavefrontsize64")
    return [*words, "-nogpulib", "-Wall", "-Werror", f"-DWAVE={build.lanes}", case.level, *case.flags]


def code_object(build: Build) -> Path:
    """The linked object of a case's source."""
    compiler, source, header = clang(), HERE / "src" / build.case.source, HERE / "device.h"
    words = flags(build)
    key = hashlib.sha256("\0".join((_version(compiler), *words)).encode())
    for path in (source, header):
        key.update(path.read_bytes())
    folder = default_folder() / "test-kernels"
    made = folder / f"{key.hexdigest()[:32]}.hsaco"
    if not made.exists():
        folder.mkdir(parents=True, exist_ok=True)
        _compile([compiler, *words, f"-I{HERE}", str(source)], made)
    return made


def _compile(command: list[str], made: Path) -> None:
    """Whoever is first puts the file in place; others find it whole."""
    with tempfile.TemporaryDirectory(dir=made.parent) as scratch:
        out = Path(scratch) / made.name
        done = subprocess.run([*command, "-o", str(out)], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        assert done.returncode == 0, f"{' '.join(command)}:\n{done.stderr[:3000]}"
        out.replace(made)
