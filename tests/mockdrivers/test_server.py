"""The device server: started on demand, private, gone with its last client, and no client harms another."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from stuntgpu.mockdrivers import folders
from stuntgpu.mockdrivers.client import ServerError, ServerLink
from stuntgpu.mockdrivers.protocol import VERSION, Channel, Disconnected, Message, Op
from tests.mockdrivers.conftest import Preloaded
from tests.shared import ROOT

CLIENT = """
import os, signal, sys
from stuntgpu.isa.abi import kfd
from stuntgpu.isa.abi.kfd import AllocFlags
from stuntgpu.mockdrivers.client import Door, server
from tests.mockdrivers.rawkfd import RawKfd
gpu = RawKfd(Door()); gpu.acquire()
buffer = gpu.buffer(1 << 20, AllocFlags.VRAM)
"""


@pytest.fixture
def own_server() -> Iterator[tuple[ServerLink, subprocess.Popen[str]]]:
    """A server of this test alone, and its process."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("STUNTGPU_")}
    process = subprocess.Popen([sys.executable, "-m", "stuntgpu.mockdrivers.server"], stdout=subprocess.PIPE, text=True,
                               env=env)
    assert process.stdout is not None
    link = ServerLink(process.stdout.readline().strip())
    yield link, process
    link.close()
    process.kill()
    process.wait()
    process.stdout.close()


def client_of(link: ServerLink, text: str) -> subprocess.Popen[str]:
    """A Python client process that prints and waits on its stdin."""
    env = {**os.environ, "STUNTGPU_SERVER": link.path, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen([sys.executable, "-c", CLIENT + text], env=env, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def line_of(client: subprocess.Popen[str]) -> str:
    assert client.stdout is not None
    return client.stdout.readline().strip()


def wait_until(what: str, condition: object, timeout_s: float = 5) -> None:
    end = time.monotonic() + timeout_s
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(0.02)


def test_server_ends_with_its_last_connection_and_leaves_nothing(own_server: tuple[ServerLink, subprocess.Popen[str]]) -> None:
    link, process = own_server
    folder = Path(link.path).parent
    assert folder.is_dir()
    link.close()
    assert process.wait(5) == 0
    assert not folder.exists()


def test_server_folder_is_private(own_server: tuple[ServerLink, subprocess.Popen[str]]) -> None:
    folder = Path(own_server[0].path).parent
    assert folder.stat().st_mode & 0o777 == folder.parent.stat().st_mode & 0o777 == 0o700


def test_two_clients_do_not_see_each_other(own_server: tuple[ServerLink, subprocess.Popen[str]]) -> None:
    link, _ = own_server
    text = "buffer.store(0, sys.argv[0].encode() or b'-'); print(hex(buffer.va), buffer.handle, flush=True); input(); print(buffer.bytes(0, 4), flush=True)"
    both = [client_of(link, text) for _ in range(2)]
    assert line_of(both[0]) == line_of(both[1]) != ""
    status = link.request(do="status")["clients"]
    assert sorted(c["pid"] for c in status) == sorted(c.pid for c in both)
    assert [c["vram_used"] for c in status] == [1 << 20] * 2
    for client in both:
        client.communicate("\n", timeout=10)
        assert client.returncode == 0


@pytest.mark.parametrize("end", ["os._exit(3)", "os.kill(os.getpid(), signal.SIGKILL)", "raise SystemExit"])
def test_a_client_that_dies_frees_everything(own_server: tuple[ServerLink, subprocess.Popen[str]], end: str) -> None:
    link, _ = own_server
    client = client_of(link, f"print('ready', flush=True); input(); {end}")
    assert line_of(client) == "ready"
    assert len(link.request(do="status")["clients"]) == 1
    client.communicate("\n", timeout=10)
    wait_until("client gone", lambda: not link.request(do="status")["clients"])


def test_a_dead_server_gives_eio_not_a_hang(own_server: tuple[ServerLink, subprocess.Popen[str]]) -> None:
    link, process = own_server
    client = client_of(link, """
import threading, time
seen = []
def waits():
    try:
        gpu.wait(gpu.event(), ms=kfd.TIMEOUT_FOREVER)
    except OSError as e:
        seen.append(e.errno)
thread = threading.Thread(target=waits); thread.start(); time.sleep(0.1)
print('ready', flush=True); input()
thread.join(5)
for call in (lambda: gpu.call(kfd.GET_VERSION), lambda: gpu.door.open('/dev/kfd'),
             lambda: gpu.alloc(4096, AllocFlags.GTT)):
    try:
        call()
    except OSError as e:
        seen.append(e.errno)
buffer.store(0, b'memory is still there')
print(seen, flush=True)
""")
    assert line_of(client) == "ready"
    process.send_signal(signal.SIGKILL)
    process.wait()
    out, err = client.communicate("\n", timeout=20)
    assert out == "[5, 5, 5, 5]\n", err


def test_unknown_gpu_is_named(own_server: tuple[ServerLink, subprocess.Popen[str]]) -> None:
    with pytest.raises(ServerError, match="gfx999"):
        own_server[0].tree(["gfx999"])


def test_wrong_option_value_is_told_to_the_person(preloaded: Preloaded) -> None:
    done = preloaded("cat", "/dev/kfd", STUNTGPU_SEED="many")
    assert done.returncode != 0
    assert "stuntgpu: STUNTGPU_SEED='many' is not a number" in done.stderr


@pytest.mark.parametrize("request_", [
    Message(Op.IOCTL, file=1),
    Message(Op.OPEN, payload=b"/dev/kfd"),
    Message(Op.ANSWER),
    Message(999),
    Message(Op.HELLO, a=(VERSION + 1, 0, 0, 0)),
], ids=lambda m: str(m.op))
def test_nonsense_cuts_off_only_the_one_who_sent_it(own_server: tuple[ServerLink, subprocess.Popen[str]], request_: Message) -> None:
    link, _ = own_server
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as raw:
        raw.connect(link.path)
        channel = Channel(raw)
        channel.send(request_)
        with pytest.raises(Disconnected):
            channel.receive()
    assert link.request(do="status")["clients"] == []


def test_a_guessed_token_or_tree_is_refused(own_server: tuple[ServerLink, subprocess.Popen[str]]) -> None:
    link, _ = own_server
    for token, tree in ((12345, link.tree(["gfx1100"])), (0, "/nowhere")):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as raw:
            raw.connect(link.path)
            channel = Channel(raw)
            channel.send(Message(Op.HELLO, a=(VERSION, token, 1, 0), payload=tree.encode() + b"\0"))
            assert channel.receive().op == Op.SAY
            channel.send(Message(Op.ANSWER))
            assert channel.receive().result < 0


def test_a_folder_others_can_enter_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "stuntgpu").mkdir(mode=0o755)
    with pytest.raises(folders.UnsafeFolder, match="mode 0700"):
        folders.runtime_folder()
    (tmp_path / "stuntgpu").chmod(0o700)
    assert folders.runtime_folder() == tmp_path / "stuntgpu"


def test_a_symlink_in_place_of_the_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "stuntgpu").symlink_to(tmp_path / "elsewhere")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with pytest.raises(folders.UnsafeFolder):
        folders.runtime_folder()


def test_left_overs_of_dead_servers_are_swept_and_live_ones_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    dead, lock = folders.session_folder()
    os.close(lock)
    live, lock = folders.session_folder()
    newest, other = folders.session_folder()
    assert not dead.exists()
    assert live.exists()
    assert newest != live
    os.close(lock)
    os.close(other)
