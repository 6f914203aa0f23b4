"""Machine code through a compute ring: results, faults with their place, endless kernels, dying clients."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stuntgpu.isa.abi import kfd
from stuntgpu.isa.abi.kfd import AllocFlags, EventType, QueueType, WaitResult
from stuntgpu.isa.packets import pm4
from stuntgpu.mockdrivers.client import environment, server
from tests.mockdrivers.rawkfd import Buffer, RawKfd, RawQueue, spin
from tests.shared import ROOT

# gfx1100 machine code; the assembler's text beside it.
END = [0xBFB00000]  # s_endpgm
STORE_42 = [
    0x30000082,  # v_lshlrev_b32 v0, 2, v0
    0x7E0602AA,  # v_mov_b32 v3, 42
    0xDC6A0000, 0x00000300,  # global_store_b32 v0, v3, s[0:1]
    *END,
]
WILD_STORE = [
    0x7E0002FF, 0x00001000,  # v_mov_b32 v0, 0x1000
    0x7E0202FF, 0x00001234,  # v_mov_b32 v1, 0x1234
    0x7E040287,  # v_mov_b32 v2, 7
    0xDC6A0000, 0x007C0200,  # global_store_b32 v[0:1], v2, off
    *END,
]
ENDLESS = [0xBFA0FFFF]  # s_branch -1
ILLEGAL = [0xFFFFFFFF]
WILD_VA = 0x1234_0000_1000
WAVE32_DISPATCH = 1 << 0 | 1 << 2 | 1 << 15  # COMPUTE_SHADER_EN, FORCE_START_AT_000, CS_W32_EN


_running: list[Kernel] = []  # closed by the `events` fixture when a test did not come to it


class Kernel:
    """Code in GPU memory and a queue to run it on."""

    def __init__(self, gpu: RawKfd, words: list[int]) -> None:
        self.gpu = gpu
        self.code = gpu.buffer(0x1000, AllocFlags.VRAM)
        self.code.store(0, struct.pack(f"<{len(words)}I", *words))
        self.queue = RawQueue(gpu, QueueType.COMPUTE)
        _running.append(self)

    def dispatch(self, user_data: tuple[int, ...] = (0, 0), threads: int = 32, event_id: int = 0) -> None:
        """One workgroup, s0.. from user_data, v0 the work-item; then fence 1 and the event."""
        entry = self.code.va >> 8
        rsrc2 = len(user_data) << 1
        self.queue.submit(
            pm4.SetShReg(offset=0x20C, tail=(entry & 0xFFFF_FFFF, entry >> 32)),
            pm4.SetShReg(offset=0x212, tail=(0, rsrc2)),
            pm4.SetShReg(offset=0x204, tail=(0, 0, 0, threads, 1, 1)),
            pm4.SetShReg(offset=0x240, tail=user_data),
            pm4.DispatchDirect(dim_x=1, dim_y=1, dim_z=1, initiator=WAVE32_DISPATCH),
            pm4.ReleaseMem(int_sel=pm4.IntSel.AFTER_WRITE if event_id else pm4.IntSel.NONE,
                           data_sel=pm4.DataSel.ALL_64, addr=self.queue.fence_va, data=1, int_ctxid=event_id))

    def close(self) -> None:
        if self in _running:
            _running.remove(self)
        self.queue.destroy()
        self.gpu.free(self.code)


@pytest.fixture
def events(gpu: RawKfd) -> Iterator[tuple[int, int, int]]:
    """(signal, memory exception, hardware exception)."""
    ids = gpu.event(), gpu.event(EventType.MEMORY), gpu.event(EventType.HW_EXCEPTION)
    yield ids
    while _running:
        _running.pop().close()
    for event_id in ids:
        gpu.call(kfd.DESTROY_EVENT, event_id=event_id)
    while gpu.fault():
        pass


def address_words(buffer: Buffer) -> tuple[int, int]:
    return buffer.va & 0xFFFF_FFFF, buffer.va >> 32


def check_runs(gpu: RawKfd, event_id: int) -> None:
    """A good kernel on a fresh queue."""
    kernel, out = Kernel(gpu, STORE_42), gpu.buffer(0x1000, AllocFlags.VRAM)
    kernel.dispatch(address_words(out), event_id=event_id)
    assert gpu.wait(event_id, ms=20000)[0] == WaitResult.COMPLETE
    assert kernel.queue.fence == 1
    assert out.bytes(0, 132) == struct.pack("<33I", *[42] * 32, 0)
    kernel.close()
    gpu.free(out)


def test_a_kernel_runs_and_its_event_fires(gpu: RawKfd, events: tuple[int, int, int]) -> None:
    check_runs(gpu, events[0])


def test_a_wild_store_is_a_memory_exception_and_a_report(gpu: RawKfd, events: tuple[int, int, int]) -> None:
    kernel = Kernel(gpu, WILD_STORE)
    kernel.dispatch(event_id=events[0])
    result, data = gpu.wait(*events, ms=20000)
    assert result == WaitResult.COMPLETE
    payload = data[1].payload.memory_exception_data
    assert (payload.va, payload.NotPresent, payload.gpu_id) == (WILD_VA, 1, gpu.gpu_id)
    report = gpu.fault()
    for part in ("page fault", "write", f"0x{WILD_VA:x}", "(+0x14)", "global_store_b32 v[0:1], v2, off", "lane 0",
                 "workgroup (0, 0, 0)", "nearest allocation"):
        assert part in report, report
    assert kernel.queue.fence == 0
    kernel.close()
    check_runs(gpu, events[0])


def test_an_illegal_instruction_is_a_hardware_exception(gpu: RawKfd, events: tuple[int, int, int]) -> None:
    kernel = Kernel(gpu, ILLEGAL)
    kernel.dispatch()
    result, data = gpu.wait(*events, ms=20000)
    assert result == WaitResult.COMPLETE
    assert data[2].payload.hw_exception_data.reset_type == kfd.ResetType.PER_ENGINE
    assert "illegal instruction" in gpu.fault()
    kernel.close()
    check_runs(gpu, events[0])


def test_code_must_be_executable_memory(gpu: RawKfd, events: tuple[int, int, int]) -> None:
    kernel = Kernel(gpu, END)
    code, kernel.code = kernel.code, Buffer(0x2222_0000_0000, 0x1000, 0)  # nothing there
    kernel.dispatch()
    kernel.code = code
    result, data = gpu.wait(*events, ms=20000)
    assert result == WaitResult.COMPLETE
    assert data[1].payload.memory_exception_data.va == 0x2222_0000_0000


def test_destroying_the_queue_cancels_an_endless_kernel(gpu: RawKfd, events: tuple[int, int, int]) -> None:
    kernel = Kernel(gpu, ENDLESS)
    kernel.dispatch()
    assert not kernel.queue.wait_fence(1, 0.1)
    kernel.close()
    check_runs(gpu, events[0])


ENDLESS_CLIENT = """
import os, time
from stuntgpu.mockdrivers.client import Door
from stuntgpu.isa.abi import kfd
from tests.mockdrivers.rawkfd import RawKfd
from tests.mockdrivers.test_kernels import ENDLESS, Kernel
gpu = RawKfd(Door()); gpu.acquire()
kernel = Kernel(gpu, ENDLESS)
kernel.dispatch()
"""


def client(text: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", ENDLESS_CLIENT + text], capture_output=True, text=True, timeout=60,
                          env={**os.environ, **environment(), "PYTHONPATH": str(ROOT), **env}, check=False)


def test_the_instruction_budget_ends_an_endless_kernel() -> None:
    done = client("""
try:
    gpu.wait(gpu.event(kfd.EventType.HW_EXCEPTION), ms=30000)
finally:
    print(gpu.fault())
""", STUNTGPU_MAX_WAVE_INSTRUCTIONS="20000")
    assert "budget exceeded" in done.stdout, done.stderr
    assert "s_branch" in done.stdout


def test_a_client_that_dies_mid_kernel_leaks_nothing() -> None:
    done = client("time.sleep(0.2); print(os.getpid(), flush=True); os.kill(os.getpid(), 9)")
    pid = int(done.stdout)
    assert spin(lambda: pid not in [c["pid"] for c in server().request(do="status")["clients"]], 10)
    log = Path(server().request(do="status")["log"]).read_text()
    assert f"client {pid} has gone" in log
    assert "does not stop" not in log
