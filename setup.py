"""Build step beside pyproject.toml: the two native libraries, compiled with the system's C compiler.

    libstuntgpu.so      the preload shim (mockdrivers/native)
    libstuntgpu_emu.so  memory checks and the dispatch loop (emu/native)

A wheel carries them; an editable install leaves them in the source folders (git-ignored);
`python setup.py build_native --inplace` rebuilds them there after a change to the C.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from setuptools import Command, Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build import build
from setuptools.errors import CompileError

CFLAGS = ("-std=gnu11", "-O2", "-fPIC", "-shared", "-Wall", "-Wextra", "-fvisibility=hidden")


@dataclass(frozen=True)
class NativeLibrary:
    """All C files of `folder`, linked into one library that lives beside the package's Python."""

    folder: str
    package: str
    name: str
    flags: tuple[str, ...] = ()

    @property
    def sources(self) -> list[str]:
        return sorted(str(path) for path in Path(self.folder).glob("*.c"))

    @property
    def headers(self) -> list[str]:
        return sorted(str(path) for path in Path(self.folder).glob("*.h"))

    @property
    def in_source(self) -> Path:
        return Path(self.folder).parent / self.name


LIBRARIES = (
    NativeLibrary("mockdrivers/native", "stuntgpu/mockdrivers", "libstuntgpu.so", ("-ldl", "-lpthread")),
    NativeLibrary("emu/native", "stuntgpu/emu", "libstuntgpu_emu.so", ("-ffp-contract=off", "-lm", "-lpthread")),
)


def compiler() -> list[str]:
    """The C compiler's command: $CC, else the first of gcc, cc, clang. CompileError names the remedy."""
    if os.environ.get("CC"):
        return shlex.split(os.environ["CC"])
    for name in ("gcc", "cc", "clang"):
        if shutil.which(name):
            return [name]
    raise CompileError(
        "stuntgpu needs a C compiler for its preload shim, and found none of gcc, cc, clang. "
        "Install one (Debian: apt-get install gcc libc6-dev) or set CC."
    )


def compile_library(library: NativeLibrary, target: Path) -> None:
    """Compile and link, writing `target` in one step so that a running process keeps its old copy."""
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_suffix(f".{os.getpid()}.tmp")
    libs = [flag for flag in library.flags if flag.startswith("-l")]
    flags = [flag for flag in library.flags if flag not in libs]
    command = [*compiler(), *CFLAGS, *flags, "-o", str(fresh), *library.sources, *libs]
    print(shlex.join(command), flush=True)
    if subprocess.run(command, check=False).returncode:
        fresh.unlink(missing_ok=True)
        raise CompileError(f"cannot build {library.name}: {command[0]} failed, its messages are above")
    fresh.replace(target)


class BuildNative(Command):
    """Sub-command of `build`, following setuptools' SubCommand protocol."""

    description = "compile the native libraries"
    user_options: ClassVar = [
        ("build-lib=", "b", "folder to build into"),
        ("inplace", "i", "build into the source folders"),
    ]
    boolean_options: ClassVar = ["inplace"]

    def initialize_options(self) -> None:
        self.build_lib: str | None = None
        self.inplace = False
        self.editable_mode = False

    def finalize_options(self) -> None:
        self.set_undefined_options("build", ("build_lib", "build_lib"))

    def _built(self, library: NativeLibrary) -> Path:
        assert self.build_lib is not None
        return Path(self.build_lib) / library.package / library.name

    def run(self) -> None:
        for library in LIBRARIES:
            in_source = self.inplace or self.editable_mode
            compile_library(library, library.in_source if in_source else self._built(library))

    def get_source_files(self) -> list[str]:
        return [path for library in LIBRARIES for path in (*library.sources, *library.headers)]

    def get_outputs(self) -> list[str]:
        return [str(self._built(library)) for library in LIBRARIES]

    def get_output_mapping(self) -> dict[str, str]:
        return {str(self._built(library)): str(library.in_source) for library in LIBRARIES}


class Build(build):
    """Adds the libraries, and starts from an empty folder: what an older tree left must not be packed."""

    sub_commands: ClassVar = [*build.sub_commands, ("build_native", None)]

    def run(self) -> None:
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


class NativeDistribution(Distribution):
    """What is installed depends on the platform, though no extension module says so."""

    def has_ext_modules(self) -> bool:
        return True


class PlatformWheel(bdist_wheel):
    """The libraries depend on the platform but on no Python ABI: tag py3-none-<platform>."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


setup(distclass=NativeDistribution, cmdclass={"build": Build, "build_native": BuildNative, "bdist_wheel": PlatformWheel})
