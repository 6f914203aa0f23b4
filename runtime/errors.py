"""What can go wrong between a program and its device."""

from __future__ import annotations

from stuntgpu.isa.errors import GuestFault


class DeviceFault(GuestFault):
    """The device stopped a queue: a kernel faulted or a packet was bad. `str()` is the driver's report."""


class DeviceTimeout(TimeoutError):
    """A signal did not reach its value in time; says which, what it holds and what was expected."""


class ArgumentError(ValueError):
    """Arguments, sizes or arrays that do not fit the call; says which and what it takes."""
