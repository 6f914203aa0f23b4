"""The shim under LD_PRELOAD and through ctypes: foreign programs see devices, and nothing else changes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from stuntgpu.isa.abi import kfd
from stuntgpu.mockdrivers.client import SHIM, Door
from tests.mockdrivers.conftest import Preloaded
from tests.mockdrivers.rawkfd import RawKfd
from tests.shared import ROOT

PRELOADED_PYTHON = """
import ctypes, fcntl, os, struct, subprocess
fd = os.open("/dev/kfd", os.O_RDWR)
version = bytearray(8)
fcntl.ioctl(fd, 0x80084b01, version)
gpu_id = int(open("/sys/class/kfd/kfd/topology/nodes/1/gpu_id").read())
libc = ctypes.CDLL("libc.so.6", use_errno=True)
libc.mmap.restype = ctypes.c_void_p
at = libc.mmap(None, ctypes.c_size_t(0x2000), 3, 1, fd, ctypes.c_int64((3 << 62 | gpu_id << 46) - (1 << 64)))
child = subprocess.run(["cat", "/sys/module/amdgpu/initstate"], capture_output=True, text=True).stdout
print(struct.unpack("II", version), at not in (None, 2**64 - 1), child.strip(), sorted(os.listdir("/dev/dri")))
"""


def test_raw_calls_of_a_c_program(compiled: Callable[[str], Path], preloaded: Preloaded) -> None:
    done = preloaded(compiled("preload.c"))
    assert (done.returncode, done.stderr) == (0, "")


def test_python_under_preload_uses_os_fcntl_ctypes_and_children(preloaded: Preloaded) -> None:
    done = preloaded(sys.executable, "-c", PRELOADED_PYTHON)
    assert done.stdout == "(1, 17) True live ['renderD128']\n", done.stderr


def test_without_a_server_the_preloaded_program_sees_its_own_machine() -> None:
    env = {**os.environ, "LD_PRELOAD": str(SHIM), "STUNTGPU_SERVER": "", "STUNTGPU_TREE": ""}
    done = subprocess.run(["ls", "/dev/null", "/sys/devices/virtual"], env=env, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0


def test_ctypes_door_does_not_change_this_process(door: Door) -> None:
    assert os.path.exists("/dev/kfd") == os.path.exists("/proc/1/root/dev/kfd")
    assert os.path.exists(door.path("/dev/kfd"))
    assert door.path("/etc/passwd") == "/etc/passwd"


def test_both_doors_in_one_process_share_the_session(preloaded: Preloaded) -> None:
    done = preloaded(sys.executable, "-c", """
import os
from stuntgpu.isa.abi import kfd
from stuntgpu.mockdrivers.client import Door, server
fd = os.open("/dev/kfd", os.O_RDWR)
door = Door()
version = kfd.GetVersion()
door.ioctl(fd, kfd.GET_VERSION.request, version)
mine = [c["pid"] for c in server().request(do="status")["clients"] if c["pid"] == os.getpid()]
print(version.major_version, len(mine))
""")
    assert done.stdout == "1 1\n", done.stderr


def test_a_door_to_other_gpus_ends_the_earlier_session(python_client: Preloaded) -> None:
    done = python_client("""
from stuntgpu.isa.abi import kfd
from stuntgpu.mockdrivers.client import Door
from tests.mockdrivers.rawkfd import RawKfd
one = RawKfd(Door(("gfx1100",)))
two = RawKfd(Door(("gfx1100", "gfx1100")))
two.call(kfd.GET_VERSION)
print(len(two.door.listdir("/dev/dri")), two.call(kfd.GET_PROCESS_APERTURES).num_of_nodes)
try:
    one.call(kfd.GET_VERSION)
except OSError as e:
    print(e.errno)
""")
    assert done.stdout == "2 2\n5\n", done.stderr


def test_door_errors_name_the_path(door: Door) -> None:
    with pytest.raises(FileNotFoundError, match="/dev/dri/renderD999"):
        door.open("/dev/dri/renderD999")


def test_shim_holds_no_device_knowledge() -> None:
    text = "".join(path.read_text() for path in sorted((ROOT / "mockdrivers/native").glob("*.[ch]")))
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    assert not re.findall(r"kfd|amdgpu|/dev/dri|renderD|nvidia|PM4|SDMA", code, flags=re.IGNORECASE)


def test_many_descriptors_of_one_device(gpu: RawKfd) -> None:
    fds = [gpu.door.open(kfd.KFD_NODE) for _ in range(300)]
    for fd in fds:
        gpu.door.ioctl(fd, kfd.GET_VERSION.request, kfd.GetVersion())
        gpu.door.close(fd)
