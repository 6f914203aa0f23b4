"""mockdrivers/core/tally.py: totals over all clients, faults by family."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass

import pytest

from stuntgpu.emu.launch import Launch, RunOptions, Stats
from stuntgpu.emu.memory import AddressSpace
from stuntgpu.mockdrivers.core.tally import MAX_FAULTS_KEPT, Tally, lineage

LAUNCH = Launch(0, 0, 0, 0, (), (1, 1, 1), (1, 1, 1), 32)


@dataclass
class Fixed:
    stats: Stats | Exception

    def run(self, space: AddressSpace, launch: Launch, options: RunOptions) -> Stats:
        if isinstance(self.stats, Exception):
            raise self.stats
        return self.stats


def test_counting_executor_adds_what_each_launch_did() -> None:
    tally = Tally()
    executor = tally.counting(Fixed(Stats(1, 2, 3, 100)))
    for _ in range(3):
        assert executor.run(AddressSpace(), LAUNCH, RunOptions()) == Stats(1, 2, 3, 100)
    assert tally.totals() == {"kernels": 3, "workgroups": 6, "waves": 9, "wave_instructions": 300, "faults": 0}


def test_launch_that_fails_is_not_counted_as_a_kernel() -> None:
    tally = Tally()
    with pytest.raises(LookupError):
        tally.counting(Fixed(LookupError())).run(AddressSpace(), LAUNCH, RunOptions())
    assert tally.totals()["kernels"] == 0


def test_faults_are_found_by_their_process_and_its_ancestors() -> None:
    tally = Tally()
    tally.fault(os.getpid(), "first")
    tally.fault(1, "of init")
    assert tally.faults(0, os.getpid()) == {"texts": ["first"], "next": 2}
    assert tally.faults(0, os.getppid())["texts"] == ["first"]
    assert tally.faults(1, os.getpid())["texts"] == []
    assert tally.totals()["faults"] == 2


def test_old_faults_make_room() -> None:
    tally = Tally()
    for i in range(MAX_FAULTS_KEPT + 1):
        tally.fault(os.getpid(), str(i))
    kept = tally.faults(0, os.getpid())
    assert kept["texts"][0] == "1"
    assert kept["next"] == MAX_FAULTS_KEPT + 1


def test_lineage_ends_where_a_process_has_gone() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert lineage(child.pid)[:2] == (child.pid, os.getpid())
        child.communicate(b"\n")
    assert lineage(child.pid) == (child.pid,)
