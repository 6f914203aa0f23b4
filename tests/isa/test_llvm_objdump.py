"""Text sections of compiled kernels read as llvm-objdump reads them: instruction for instruction, place for place.

Kernels of the shared corpus, and random ones that clang compiles. Needs clang and LLVM's tools of
version 22, which the project itself does not.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from stuntgpu.isa.abi.elf import ElfFile
from stuntgpu.isa.arch import ARCHES
from stuntgpu.isa.decode import DecodeError, decode_all
from stuntgpu.isa.disasm import disassemble
from stuntgpu.isa.listing import code_sections
from tests.arches import WHOLE
from tests.isa.goldens import report
from tests.isa.kernels import source
from tests.shared import shared_dir

pytestmark = pytest.mark.slow

NAMES = sorted(ARCHES)
#: Where LLVM's disassembler has a choice, that of the assembler goldens.
ATTRIBUTES = {"gfx1201": ("--mattr=+real-true16",)}
#: 200 random kernels over all architectures.
FILES, KERNELS = 10, 5
LEVELS = ("-O2", "-O1", "-O3", "-O0")
LINE = re.compile(r"^\t(.*?)\s*// ([0-9A-F]{12}):", re.MULTILINE)
TIMEOUT_S = 120
#: Set where the tools cannot be installed; else CI fails without them, so that it cannot lose this test unseen.
WITHOUT = "WITHOUT_LLVM"


def tool(name: str) -> str:
    """Path of a tool. Skips the calling test without it; in CI fails it."""
    path = shutil.which(f"{name}-22")
    if path is not None:
        return path
    reason = f"no {name}-22 on PATH to compare with"
    if os.environ.get("CI") and not os.environ.get(WITHOUT):
        pytest.fail(reason)
    pytest.skip(reason)


def run(*command: object) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, f"{' '.join(words)}:\n{done.stderr[:3000]}"
    return done.stdout


def plain(text: str) -> str:
    """Without comments, spaces alike."""
    return " ".join(re.split("//|;", text)[0].split())


def theirs(arch: str, path: Path) -> list[tuple[int, str]]:
    """(address, text) of every instruction as LLVM has it."""
    out = run(tool("llvm-objdump"), "-d", *ATTRIBUTES.get(arch, ()), path)
    return [(int(at, 16), plain(text)) for text, at in LINE.findall(out)]


def ours(arch: str, path: Path) -> Iterator[tuple[int, str]]:
    for section in code_sections(ElfFile(path.read_bytes())):
        for offset, inst in decode_all(arch, section.code):
            text = f"({inst.reason})" if isinstance(inst, DecodeError) else plain(disassemble(inst))
            yield section.address + offset, text


def differences(arch: str, path: Path) -> list[str]:
    """Lines that differ; up to the first place where the two read instructions of different sizes."""
    out: list[str] = []
    expected, got = theirs(arch, path), list(ours(arch, path))
    for (at, wanted), (place, text) in zip(expected, got, strict=False):
        if at != place:
            return [*out, f"{path.name}: {text} at {place:x}, llvm: {wanted} at {at:x}"]
        if wanted != text:
            out.append(f"{path.name} {at:x}: {text}, llvm: {wanted}")
    if len(expected) != len(got):
        out.append(f"{path.name}: {len(got)} instructions, llvm: {len(expected)}")
    return out if expected else [*out, f"{path.name}: llvm lists nothing"]


@pytest.mark.parametrize("arch", WHOLE)
def test_golden_code_objects_read_as_objdump_reads_them(arch: str) -> None:
    paths = sorted((shared_dir() / "kernels").glob(f"*/{arch}/*.hsaco"))
    assert len(paths) > 10
    wrong = [line for path in paths for line in differences(arch, path)]
    assert not wrong, report(wrong)


@pytest.mark.parametrize("arch", NAMES)
def test_random_kernels_read_as_objdump_reads_them(arch: str, tmp_path: Path) -> None:
    clang, wrong = tool("clang"), []
    for seed in range(FILES):
        text, made = tmp_path / f"{arch}_{seed}.cl", tmp_path / f"{arch}_{seed}.o"
        text.write_text(source(arch, seed, KERNELS))
        run(clang, "-x", "cl", "-cl-std=CL2.0", "-target", "amdgcn-amd-amdhsa", f"-mcpu={arch}", "-nogpulib", "-w",
            LEVELS[seed % len(LEVELS)], "-c", text, "-o", made)  # fmt: skip
        wrong += differences(arch, made)
    assert not wrong, report(wrong)


def test_random_kernels_are_the_same_every_time() -> None:
    assert source("gfx942", 3, 2) == source("gfx942", 3, 2) != source("gfx942", 4, 2)
