"""core/device.py: an ioctl table dispatches on the number, fits struct sizes, and refuses as said."""

from __future__ import annotations

import logging
from errno import EBUSY, EFAULT, EINVAL, ENODEV, ENOTTY, EPERM
from typing import ClassVar

import pytest

from stuntgpu.isa.abi.ioctl import READ, READ_WRITE, U32, WRITE, CStruct, Ioctl, encode, layout
from stuntgpu.mockdrivers.core.device import Device, DriverError, fail, ioctl
from stuntgpu.mockdrivers.protocol import Caller, ClientError


@layout
class Pair(CStruct):
    a: U32
    b: U32


ADD = Ioctl("ADD", "T", 1, Pair, READ_WRITE)
BUSY = Ioctl("BUSY", "T", 2, Pair, READ_WRITE)
FAULTY = Ioctl("FAULTY", "T", 3, Pair, WRITE)
IGNORED = Ioctl("IGNORED", "T", 4, Pair, READ_WRITE)
FORBIDDEN = Ioctl("FORBIDDEN", "T", 5, Pair, READ_WRITE)


class Adder(Device):
    node = "/dev/adder"
    magic: ClassVar[str] = "T"
    accepted: ClassVar[tuple[Ioctl, ...]] = (IGNORED,)
    refused: ClassVar[dict[Ioctl, int]] = {FORBIDDEN: EPERM}

    @ioctl(ADD)
    def add(self, args: Pair, caller: Caller) -> None:
        args.b += args.a

    @ioctl(BUSY)
    def busy(self, args: Pair, caller: Caller) -> None:
        args.a = 9
        fail(EBUSY, "busy.a", args.a)

    @ioctl(FAULTY)
    def faulty(self, args: Pair, caller: Caller) -> None:
        raise ClientError(EFAULT)


class Doubler(Adder):
    """Answers one call differently, the others as its base."""

    @ioctl(ADD)
    def double(self, args: Pair, caller: Caller) -> None:
        args.b = 2 * args.a


def call(device: Device, entry: Ioctl, a: int, b: int) -> tuple[int, bytes]:
    return device.ioctl(entry.request, bytes(Pair(a, b)), Caller.__new__(Caller))


def test_number_and_struct_travel_together() -> None:
    assert call(Adder(), ADD, 2, 3) == (0, bytes(Pair(2, 5)))


def test_a_subclass_replaces_one_row() -> None:
    assert call(Doubler(), ADD, 2, 3) == (0, bytes(Pair(2, 4)))
    assert call(Doubler(), BUSY, 0, 0)[0] == -EBUSY
    assert call(Adder(), ADD, 2, 3) == (0, bytes(Pair(2, 5)))


def test_a_refusal_still_returns_the_struct() -> None:
    assert call(Adder(), BUSY, 1, 2) == (-EBUSY, bytes(Pair(9, 2)))


def test_bad_client_memory_is_its_errno() -> None:
    assert call(Adder(), FAULTY, 1, 2) == (-EFAULT, b"")


def test_accepted_and_refused_calls() -> None:
    assert call(Adder(), IGNORED, 1, 2) == (0, bytes(Pair(1, 2)))
    assert call(Adder(), FORBIDDEN, 1, 2)[0] == -EPERM


@pytest.mark.parametrize(("size", "back"), [(4, bytes([7, 0, 0, 0])), (8, bytes(Pair(7, 7))), (12, bytes(Pair(7, 7)) + bytes(4))])
def test_structs_of_other_sizes(size: int, back: bytes) -> None:
    data = bytes([7, 0, 0, 0]).ljust(size, b"\0")
    assert Adder().ioctl(encode(READ_WRITE, ord("T"), 1, size), data, Caller.__new__(Caller)) == (0, back)


@pytest.mark.parametrize(("magic", "nr", "errno"), [("T", 99, EINVAL), ("X", 1, ENOTTY)])
def test_unknown_calls_get_an_errno_and_one_line(magic: str, nr: int, errno: int,
                                                 caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        result = Adder().ioctl(encode(READ, ord(magic), nr, 8), b"", Caller.__new__(Caller))
    assert result[0] == -errno
    assert len(caplog.records) == 1
    assert f"unknown ioctl 0x{encode(READ, ord(magic), nr, 8):08x}" in caplog.text


def test_what_a_device_does_not_have_is_refused() -> None:
    device = Adder()
    for refused, errno in ((lambda: device.mmap(1, 1, 1, 0), ENODEV), (lambda: device.read(0, 1), EINVAL),
                           (lambda: device.write(0, b"x"), EINVAL)):
        with pytest.raises(DriverError) as caught:
            refused()
        assert caught.value.errno == errno


def test_a_refusal_names_field_and_value() -> None:
    with pytest.raises(DriverError, match=r"alloc\.size = 0x1000: Invalid argument"):
        fail(EINVAL, "alloc.size", 0x1000)
