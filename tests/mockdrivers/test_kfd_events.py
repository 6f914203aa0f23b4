"""KFD events: set, reset, wait any and all, time-outs, auto-reset, ages, signals that interrupt."""

from __future__ import annotations

import ctypes
import threading
import time
from errno import EFAULT, EINVAL, EIO

import pytest

from stuntgpu.isa.abi import kfd
from stuntgpu.isa.abi.kfd import EventType, WaitResult
from tests.mockdrivers.conftest import Preloaded
from tests.mockdrivers.rawkfd import RawKfd, refused

UNKNOWN = 3999


def set_later(gpu: RawKfd, event_id: int, delay_s: float = 0.05) -> threading.Timer:
    timer = threading.Timer(delay_s, lambda: gpu.call(kfd.SET_EVENT, event_id=event_id))
    timer.start()
    return timer


def test_signal_events_are_slots_of_the_mailbox_page_and_never_zero(gpu: RawKfd) -> None:
    args = gpu.call(kfd.CREATE_EVENT, event_type=EventType.SIGNAL)
    assert isinstance(args, kfd.CreateEvent)
    assert 0 < args.event_id < kfd.KFD_SIGNAL_EVENT_LIMIT
    assert args.event_trigger_data == args.event_slot_index == args.event_id
    gpu.call(kfd.DESTROY_EVENT, event_id=args.event_id)


def test_wait_times_out_after_its_milliseconds(gpu: RawKfd) -> None:
    event = gpu.event()
    start = time.monotonic()
    assert gpu.wait(event, ms=60)[0] == WaitResult.TIMEOUT
    assert 0.05 < time.monotonic() - start < 1
    assert gpu.wait(event, ms=0)[0] == WaitResult.TIMEOUT
    gpu.call(kfd.DESTROY_EVENT, event_id=event)


def test_set_event_wakes_a_waiting_thread(gpu: RawKfd) -> None:
    event = gpu.event()
    timer = set_later(gpu, event)
    assert gpu.wait(event, ms=5000)[0] == WaitResult.COMPLETE
    timer.join()
    assert gpu.wait(event, ms=0)[0] == WaitResult.TIMEOUT
    gpu.call(kfd.DESTROY_EVENT, event_id=event)


def test_auto_reset_is_consumed_by_the_first_wait_and_manual_reset_is_not(gpu: RawKfd) -> None:
    auto, manual = gpu.event(auto_reset=1), gpu.event(auto_reset=0)
    for event in (auto, manual):
        gpu.call(kfd.SET_EVENT, event_id=event)
        assert gpu.wait(event, ms=0)[0] == WaitResult.COMPLETE
    assert gpu.wait(auto, ms=0)[0] == WaitResult.TIMEOUT
    assert gpu.wait(manual, ms=0)[0] == WaitResult.COMPLETE
    gpu.call(kfd.RESET_EVENT, event_id=manual)
    assert gpu.wait(manual, ms=0)[0] == WaitResult.TIMEOUT
    for event in (auto, manual):
        gpu.call(kfd.DESTROY_EVENT, event_id=event)


def test_wait_for_any_and_for_all(gpu: RawKfd) -> None:
    a, b = gpu.event(auto_reset=0), gpu.event(auto_reset=0)
    gpu.call(kfd.SET_EVENT, event_id=a)
    assert gpu.wait(a, b, ms=0)[0] == WaitResult.COMPLETE
    assert gpu.wait(a, b, all_=True, ms=0)[0] == WaitResult.TIMEOUT
    gpu.call(kfd.SET_EVENT, event_id=b)
    assert gpu.wait(a, b, all_=True, ms=0)[0] == WaitResult.COMPLETE
    for event in (a, b):
        gpu.call(kfd.DESTROY_EVENT, event_id=event)


def test_a_waiter_notices_an_age_it_slept_through(gpu: RawKfd) -> None:
    event = gpu.event()
    gpu.call(kfd.SET_EVENT, event_id=event)
    assert gpu.wait(event, ms=0)[0] == WaitResult.COMPLETE
    data = kfd.EventData(event_id=event)
    data.payload.last_event_age = 1
    args = gpu.call(kfd.WAIT_EVENTS, events_ptr=ctypes.addressof(data), num_events=1, timeout=0)
    assert isinstance(args, kfd.WaitEvents)
    assert (args.wait_result, data.payload.last_event_age) == (WaitResult.COMPLETE, 2)
    gpu.call(kfd.DESTROY_EVENT, event_id=event)


def test_destroying_an_event_fails_the_wait_for_it(gpu: RawKfd) -> None:
    event = gpu.event()
    timer = threading.Timer(0.05, lambda: gpu.call(kfd.DESTROY_EVENT, event_id=event))
    timer.start()
    with refused(EIO):
        gpu.wait(event, ms=5000)
    timer.join()


@pytest.mark.parametrize("entry", [kfd.SET_EVENT, kfd.RESET_EVENT, kfd.DESTROY_EVENT], ids=lambda e: e.name)
def test_unknown_event_is_einval(gpu: RawKfd, entry: kfd.Ioctl) -> None:
    with refused(EINVAL):
        gpu.call(entry, event_id=UNKNOWN)


def test_wait_refusals(gpu: RawKfd) -> None:
    with refused(EINVAL):
        gpu.wait(UNKNOWN)
    with refused(EFAULT):
        gpu.call(kfd.WAIT_EVENTS, events_ptr=0x10, num_events=1)
    with refused(EINVAL):
        gpu.call(kfd.WAIT_EVENTS, num_events=1 << 31)


def test_only_signal_events_are_set_by_the_process(gpu: RawKfd) -> None:
    event = gpu.event(EventType.MEMORY)
    with refused(EINVAL):
        gpu.call(kfd.SET_EVENT, event_id=event)
    gpu.call(kfd.DESTROY_EVENT, event_id=event)


def test_a_signal_interrupts_an_endless_wait(python_client: Preloaded) -> None:
    """Also one that comes just when the server asks whether to go on, every TICK_S."""
    done = python_client("""
import signal
from stuntgpu.isa.abi import kfd
from stuntgpu.mockdrivers.client import Door
from stuntgpu.mockdrivers.kfd.events import TICK_S
from tests.mockdrivers.rawkfd import RawKfd
gpu = RawKfd(Door())
event = gpu.event()
def alarm(*_): raise TimeoutError
signal.signal(signal.SIGALRM, alarm)
for i in range(-5, 5):
    signal.setitimer(signal.ITIMER_REAL, TICK_S + i * 2e-5)
    try:
        gpu.wait(event, ms=kfd.TIMEOUT_FOREVER)
    except TimeoutError:
        print("interrupted", end=" ")
""")
    assert (done.stdout.split(), done.stderr) == (["interrupted"] * 10, "")
