"""`stuntgpu run` and `stuntgpu info`: the foreign program's door, and what GPUs there are to offer.

Errors:  ServerError (client.py); OSError when the program cannot be executed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from stuntgpu.mockdrivers.client import DEFAULT_GPUS, environment, server
from stuntgpu.mockdrivers.profiles import CHIPS


@dataclass(frozen=True, slots=True)
class GpuDescription:
    """One GPU that can be offered, for people."""

    arch: str
    name: str
    compute_units: int
    vram_bytes: int
    interfaces: tuple[str, ...]


def run(program: Sequence[str], gpus: Sequence[str] = DEFAULT_GPUS) -> NoReturn:
    """Become `program` with these GPUs before its eyes; its exit code and signals are its own.

    Raises ServerError, OSError (no such program).
    """
    env = {**os.environ, **environment(gpus)}
    server().keep_across_exec()
    os.execvpe(program[0], list(program), env)


def describe_gpus() -> list[GpuDescription]:
    """Every GPU `--gpu` takes."""
    return [GpuDescription(c.arch, c.marketing_name, c.device.compute_units, c.device.vram_bytes, ("KFD",))
            for c in CHIPS.values()]
