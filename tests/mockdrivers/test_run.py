"""`stuntgpu run`'s function: the program takes our place; what `stuntgpu info` lists."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from stuntgpu.mockdrivers.run import describe_gpus
from tests.shared import ROOT

RUN = "from stuntgpu.mockdrivers.run import run; import sys; run(sys.argv[1:])"


def run(*program: str) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("STUNTGPU_")}
    return subprocess.run([sys.executable, "-c", RUN, *program], env=env, cwd=ROOT, capture_output=True, text=True,
                          timeout=60, check=False)


def test_exit_code_and_output_are_the_programs() -> None:
    done = run("sh", "-c", "ls /dev/dri; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, "renderD128\n", "")


def test_a_signal_that_kills_the_program_is_seen() -> None:
    assert run("sh", "-c", "kill -TERM $$").returncode == -signal.SIGTERM


def test_children_after_the_program_still_have_the_server() -> None:
    done = run("sh", "-c", "sleep 0.3; exec ls /sys/class/drm")
    assert done.stdout == "renderD128\n"


def test_gpus_on_offer_are_named() -> None:
    gfx1100 = next(g for g in describe_gpus() if g.arch == "gfx1100")
    assert (gfx1100.compute_units, gfx1100.interfaces) == (96, ("KFD",))
