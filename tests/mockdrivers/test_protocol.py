"""The conversation is written down twice, in C and in Python: both say the same."""

from __future__ import annotations

import re
import socket
import struct
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stuntgpu.mockdrivers import protocol
from stuntgpu.mockdrivers.protocol import Caller, Channel, ClientError, Disconnected, Message, Op
from tests.shared import ROOT

HEADER = (ROOT / "mockdrivers/native/protocol.h").read_text()
U32, U64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)


def test_ops_are_those_of_the_header() -> None:
    in_c = {name: int(value) for name, value in re.findall(r"\bSG_(\w+) = (\d+),", HEADER)}
    assert in_c == {op.name: op.value for op in Op}


def test_limits_are_those_of_the_header() -> None:
    numbers = dict(re.findall(r"#define SG_(\w+) (\d+)", HEADER))
    assert numbers == {"VERSION": str(protocol.VERSION), "MAX_PAYLOAD": str(protocol.MAX_PAYLOAD)}
    assert protocol.HEAD.size == 4 * 4 + 4 * 8


@given(U32, st.integers(-(2**31), 2**31 - 1), U32, st.tuples(U64, U64, U64, U64), st.binary(max_size=64))
def test_message_round_trip(op: int, result: int, file: int, a: tuple[int, int, int, int], payload: bytes) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        sent = Message(op, result, file, a, payload)
        Channel(ours).send(sent)
        assert Channel(theirs).receive() == sent


@pytest.mark.parametrize("data", [b"x", b"x" * 47])
def test_short_packet_is_refused(data: bytes) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        ours.send(data)
        with pytest.raises(Disconnected, match=f"{len(data)} bytes"):
            Channel(theirs).receive()


def test_answer_of_the_wrong_kind_disconnects() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        Channel(theirs).send(Message(Op.HELLO))
        with pytest.raises(Disconnected, match="answer to PEEK"):
            Caller(Channel(ours)).peek(0, 4)


def test_long_peek_goes_in_pieces() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    memory = bytes(i * 7 & 0xFF for i in range(3 * protocol.MAX_PAYLOAD // 2))

    def client() -> None:
        channel = Channel(theirs)
        for _ in range(2):
            ask = channel.receive()
            channel.send(Message(Op.ANSWER, payload=memory[ask.a[0] : ask.a[0] + ask.a[1]]))

    thread = threading.Thread(target=client)
    thread.start()
    with ours, theirs:
        assert Caller(Channel(ours)).peek(0, len(memory)) == memory
        thread.join()


def test_client_error_carries_the_errno() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        Channel(theirs).send(Message(Op.ANSWER, -14))
        with pytest.raises(ClientError, match="Bad address"):
            Caller(Channel(ours)).tick()


def test_maps_rows_are_read() -> None:
    rows = protocol.parse_maps(
        "7f00-7f10 rw-s 00002000 00:01 77 /memfd:stuntgpu-user (deleted)\n8000-9000 r-xp 00000000 00:00 0 \n")
    assert [(r.lo, r.hi, r.prot, r.offset, r.inode, r.path) for r in rows] == [
        (0x7F00, 0x7F10, 3, 0x2000, 77, "/memfd:stuntgpu-user (deleted)"), (0x8000, 0x9000, 5, 0, 0, "")]


def test_head_layout_matches_the_c_struct() -> None:
    assert Message(1, -2, 3, (4, 5, 6, 7)).pack() == struct.pack("<IiIIQQQQ", 1, -2, 3, 0, 4, 5, 6, 7)
