"""How things end that do not end by themselves: a server that dies, a kernel without an end."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.shared import ROOT

ENDLESS = """
import os, signal, sys, threading, time
import numpy as np
from stuntgpu.mockdrivers.client import server
from stuntgpu.runtime import Device, DeviceFault
from tests.runtime.kernels import S_BRANCH_SELF, patched

dev = Device("MOCKKFD+AMD", timeout_s=60)
x = dev.copyin(np.zeros(1000, np.float32))
kernel = dev.load(patched(S_BRANCH_SELF), "vadd_f32")
dev.synchronize()
kernel(x, x, x, np.uint32(1000), global_size=(1,))
"""
SERVER_DIES = ENDLESS + """
pid = server().request(do="status")["pid"]
threading.Timer(0.3, lambda: os.kill(pid, signal.SIGKILL)).start()
start = time.monotonic()
for use in (dev.synchronize, lambda: dev.copyin(np.zeros(4))):
    try:
        use()
    except (DeviceFault, OSError) as e:
        print(type(e).__name__, e)
assert time.monotonic() - start < 10
"""
BUDGET_ENDS_IT = ENDLESS + """
try:
    dev.synchronize()
except DeviceFault as e:
    print(e)
"""


def run(text: str, **env: str) -> str:
    kept = {k: v for k, v in os.environ.items() if k not in ("STUNTGPU_SERVER", "STUNTGPU_TREE", "LD_PRELOAD")}
    done = subprocess.run([sys.executable, "-c", text], env={**kept, "PYTHONPATH": str(ROOT), **env},
                          capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


def test_server_that_dies_is_an_input_output_error_at_once() -> None:
    first, second = run(SERVER_DIES).splitlines()
    assert first.startswith("DeviceFault the device is gone: [Errno 5]")
    assert second.startswith("OSError [Errno 5] ALLOC_MEMORY_OF_GPU")


def test_endless_kernel_ends_at_its_budget_with_a_report() -> None:
    report = run(BUDGET_ENDS_IT, STUNTGPU_MAX_WAVE_INSTRUCTIONS="100000")
    assert "budget exceeded in kernel vadd_f32" in report
    assert "s_branch" in report
    assert "executed 100000 wave-instructions" in report
