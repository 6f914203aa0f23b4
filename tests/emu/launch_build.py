"""Sources of `launch/` compiled by clang, once for each set of options; needs clang-22 and lld."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

from stuntgpu.emu import Gpu
from stuntgpu.emu.gpu import Module
from tests.kernels.build import TIMEOUT_S, clang

HERE = Path(__file__).resolve().parent / "launch"
ARCHES = ("gfx1100", "gfx1201", "gfx942", "gfx950")
TIERS = ("reference", "native")
#: (arch, lanes) of every kind of wave.
WAVES = (("gfx1100", 32), ("gfx1100", 64), ("gfx1201", 32), ("gfx1201", 64), ("gfx942", 64), ("gfx950", 64))
#: LLVM's option for kernel arguments in user SGPRs.
PRELOAD = ("-mllvm", "-amdgpu-kernarg-preload-count={}")

_HIP = ("-x", "hip", "-std=c++20", "--cuda-device-only", "-nogpuinc", "-nogpulib", "-fno-gpu-rdc", "--no-gpu-bundle-output",
        "-Wall", "-Werror", "-O2")
_CL = ("-x", "cl", "-cl-std=CL2.0", "-target", "amdgcn-amd-amdhsa", "-nogpulib", "-Wall", "-Werror", "-O2")
_ASM = ("-x", "assembler", "-target", "amdgcn-amd-amdhsa")


@cache
def compiled(source: str, target: str, options: tuple[str, ...] = ()) -> bytes:
    """The code object of a source file for a target such as gfx942:xnack+."""
    words = {".hip": (*_HIP, f"--offload-arch={target}"), ".cl": (*_CL, f"-mcpu={target}")}
    return _run([*words[Path(source).suffix], *options, str(HERE / source)], b"")


@cache
def assembled(text: str, target: str, *options: str) -> bytes:
    """The code object of assembly text with its .amdhsa_ directives."""
    return _run([*_ASM, f"-mcpu={target}", *options, "-"], text.encode())


def _run(words: list[str], text: bytes) -> bytes:
    done = subprocess.run([clang(), *words, "-o", "-"], input=text, capture_output=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr.decode()[:3000]
    return done.stdout


def wave_option(arch: str, lanes: int) -> tuple[str, ...]:
    return () if arch.startswith("gfx9") else ("-mwavefrontsize64",) if lanes == 64 else ("-mno-wavefrontsize64",)


def module(source: str, arch: str, tier: str, *options: str, target: str = "", gpu: Gpu | None = None) -> Module:
    """The kernels of a source file on an emulated GPU."""
    gpu = gpu or Gpu(arch, tier=tier, max_wave_instructions=1_000_000)
    return gpu.load(compiled(source, target or arch, options))
