"""An executor that is a C program under LD_PRELOAD: what one launch needs goes to kfd_dispatch.c as a job
file, and the memory it leaves comes back."""

from __future__ import annotations

import ctypes
import os
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

from stuntgpu.emu.launch import Launch, RunOptions, Stats
from stuntgpu.emu.memory import EXECUTE, AddressSpace, CRegion
from stuntgpu.isa.abi.targets import target
from stuntgpu.mockdrivers.client import environment

MAGIC = 0x424F4A544E555453
PAGE = 4096
SHADER_EN, THREAD_DIMENSIONS, WAVE32 = 1 << 0, 1 << 5, 1 << 15


class ClientFailed(Exception):
    """The C program's exit code and what it printed."""

    def __init__(self, code: int, out: str, err: str) -> None:
        super().__init__(f"exit code {code}\n{out}{err}")
        self.code, self.out, self.err = code, out, err


@dataclass
class ThroughC:
    """emu.launch.Executor by way of the mock driver."""

    arch: str
    program: Path
    folder: Path
    wait_ms: int = 60000

    def run(self, space: AddressSpace, launch: Launch, options: RunOptions) -> Stats:
        """Raises ClientFailed."""
        pages = _page_runs(list(space.native())[: len(space)])
        job, out = self.folder / "job", self.folder / "out"
        job.write_bytes(self._head(launch, len(pages)) + b"".join(_segment(space, *run) for run in pages))
        done = subprocess.run([self.program, job, out, str(self.wait_ms)], env={**os.environ, **environment()},
                              capture_output=True, text=True, timeout=self.wait_ms / 1000 + 30, check=False)
        if done.returncode:
            raise ClientFailed(done.returncode, done.stdout, done.stderr)
        _take_back(space, pages, out.read_bytes())
        return Stats(kernels=1, wave_instructions=1)

    def _head(self, launch: Launch, n_segments: int) -> bytes:
        row = target(self.arch)
        wave_size = launch.scratch_wave_bytes // row.scratch_granule
        slots = 256 if wave_size else 0
        initiator = SHADER_EN | THREAD_DIMENSIONS | (WAVE32 if launch.wave_lanes == 32 else 0)
        user = launch.user_sgprs
        ends = [s * w + n for s, w, n in zip(launch.start, launch.workgroup, launch.grid, strict=True)]
        return struct.pack(
            "<3Q6I3I3I3II16I", MAGIC, launch.entry, launch.scratch_va, n_segments, initiator, launch.rsrc1,
            launch.rsrc2, launch.rsrc3, slots | wave_size << 12, *ends, *launch.start, *launch.workgroup, len(user),
            *user, *[0] * (16 - len(user)))


def _page_runs(regions: list[CRegion]) -> list[tuple[int, int, bool]]:
    """(va, size, executable) of whole pages that hold the regions, touching ones joined."""
    runs: list[tuple[int, int, bool]] = []
    for region in regions:
        lo, hi = region.va // PAGE * PAGE, -(-(region.va + region.size) // PAGE) * PAGE
        executable = bool(region.perms & EXECUTE)
        if runs and lo <= runs[-1][0] + runs[-1][1]:
            va, _, before = runs.pop()
            runs.append((va, hi - va, before or executable))
        else:
            runs.append((lo, hi - lo, executable))
    return runs


def _pieces(space: AddressSpace, va: int, size: int) -> list[CRegion]:
    return [r for r in list(space.native())[: len(space)] if va <= r.va < va + size]


def _segment(space: AddressSpace, va: int, size: int, executable: bool) -> bytes:
    data = bytearray(size)
    for r in _pieces(space, va, size):
        data[r.va - va : r.va - va + r.size] = ctypes.string_at(r.host, r.size)
    return struct.pack("<QQI4x", va, size, executable) + bytes(data)


def _take_back(space: AddressSpace, runs: list[tuple[int, int, bool]], data: bytes) -> None:
    at = 0
    for va, size, _ in runs:
        for r in _pieces(space, va, size):
            ctypes.memmove(r.host, data[at + r.va - va : at + r.va - va + r.size], r.size)
        at += size
