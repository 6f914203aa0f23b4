"""What the GPUs of a server did so far, clients that have gone included: for summaries and test reports.

Counting wraps the executor, so that the packet processors stay unaware of it. A launch that faults
counts as a fault, not as a kernel.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from stuntgpu.emu.launch import Executor, Launch, RunOptions, Stats
from stuntgpu.emu.memory import AddressSpace

MAX_FAULTS_KEPT = 256


@dataclass(frozen=True, slots=True)
class FaultRecord:
    """One fault; `lineage` is the client's pid and its ancestors', nearest first."""

    number: int
    lineage: tuple[int, ...]
    text: str


class Tally:
    """Thread-safe totals."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stats = Stats()
        self._faults: deque[FaultRecord] = deque(maxlen=MAX_FAULTS_KEPT)
        self._n_faults = 0

    def add(self, stats: Stats) -> None:
        with self._lock:
            self._stats.add(stats)

    def fault(self, pid: int, text: str) -> None:
        """Note the report of a fault of the client `pid`."""
        ancestors = lineage(pid)
        with self._lock:
            self._faults.append(FaultRecord(self._n_faults, ancestors, text))
            self._n_faults += 1

    def totals(self) -> dict[str, int]:
        """What Stats counts, and `faults`."""
        with self._lock:
            return {f.name: getattr(self._stats, f.name) for f in fields(self._stats) if f.compare} | {"faults": self._n_faults}

    def faults(self, since: int, of_pid: int) -> dict[str, Any]:
        """`texts` of faults numbered from `since` on whose client is `of_pid` or descends from it; `next` number."""
        with self._lock:
            texts = [f.text for f in self._faults if f.number >= since and of_pid in f.lineage]
            return {"texts": texts, "next": self._n_faults}

    def counting(self, executor: Executor) -> Executor:
        """`executor`, with what it runs counted here."""
        return _Counting(executor, self)


@dataclass(frozen=True, slots=True)
class _Counting:
    executor: Executor
    tally: Tally

    def run(self, space: AddressSpace, launch: Launch, options: RunOptions) -> Stats:
        stats = self.executor.run(space, launch, options)
        self.tally.add(stats)
        return stats


def lineage(pid: int) -> tuple[int, ...]:
    """`pid`, its parent, and so on; ends early where a process has gone."""
    found: list[int] = []
    while pid > 0:
        found.append(pid)
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            break
        pid = int(stat.rpartition(")")[2].split()[1])  # the name before ")" may hold anything
    return tuple(found)
