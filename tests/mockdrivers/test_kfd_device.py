"""The rest of /dev/kfd and the render node: versions, apertures, clocks, unknown calls, short structs."""

from __future__ import annotations

import ctypes
import mmap
import os
from errno import EBADF, EBUSY, EFAULT, EINVAL, ENODEV, ENOTTY, EPERM, ESRCH
from pathlib import Path

import pytest

from stuntgpu.isa.abi import drm, kfd
from stuntgpu.isa.abi.ioctl import Ioctl, encode
from stuntgpu.mockdrivers.client import server
from stuntgpu.mockdrivers.kfd.device import Kfd
from tests.mockdrivers.conftest import Preloaded
from tests.mockdrivers.rawkfd import PROT_RW, RawKfd, refused


def log_text() -> str:
    return Path(server().request(do="status")["log"]).read_text()


def test_version(gpu: RawKfd) -> None:
    assert gpu.call(kfd.GET_VERSION) == kfd.GetVersion(1, 17)


@pytest.mark.parametrize("request_", [encode(3, ord("K"), 0x82, 24), encode(1, ord("K"), 0x7F, 8)])
def test_unknown_number_is_einval_and_one_log_line(gpu: RawKfd, request_: int) -> None:
    lines = log_text().count(f"0x{request_:08x}")
    with refused(EINVAL):
        gpu.door.ioctl(gpu.fd, request_, ctypes.create_string_buffer(64))
    assert log_text().count(f"unknown ioctl 0x{request_:08x}") == lines + 1


def test_wrong_type_is_enotty(gpu: RawKfd) -> None:
    with refused(ENOTTY):
        gpu.door.ioctl(gpu.fd, 0x5401, ctypes.create_string_buffer(64))  # TCGETS: isatty asks


def test_bad_argument_pointer_is_efault(gpu: RawKfd) -> None:
    for entry in (kfd.GET_VERSION, kfd.CREATE_EVENT):
        with refused(EFAULT):
            gpu.door.ioctl(gpu.fd, entry.request, 0x10)


def test_every_ioctl_of_the_interface_has_an_answer() -> None:
    answered = {entry.nr for entry, _ in Kfd.table.values()} | {e.nr for e in (*Kfd.accepted, *Kfd.refused)}
    assert answered == {entry.nr for entry in kfd.IOCTLS}


@pytest.mark.parametrize("entry", Kfd.accepted, ids=lambda e: e.name)
def test_accepted_calls_return_their_struct_unchanged(gpu: RawKfd, entry: Ioctl) -> None:
    args = entry.struct.from_buffer_copy(bytes(range(1, entry.size_bytes + 1)))
    before = bytes(args)
    gpu.door.ioctl(gpu.fd, entry.request, args)
    assert bytes(args) == before


@pytest.mark.parametrize(("entry", "errno"), Kfd.refused.items(), ids=lambda v: getattr(v, "name", ""))
def test_refused_calls(gpu: RawKfd, entry: Ioctl, errno: int) -> None:
    with refused(errno):
        gpu.call(entry)


def test_a_shorter_struct_of_an_older_header_is_filled_with_zeros(gpu: RawKfd) -> None:
    """CREATE_QUEUE was 88 bytes; the bad gpu_id shows that the call was understood."""
    args = (ctypes.c_uint8 * 128)(*[0xEE] * 128)
    short = encode(3, ord("K"), kfd.CREATE_QUEUE.nr, 88)
    ctypes.memset(args, 0, 88)
    with refused(EINVAL):
        gpu.door.ioctl(gpu.fd, short, args)
    assert bytes(args[88:]) == b"\xee" * 40


def test_a_longer_struct_of_a_newer_header_gets_its_own_length_back(gpu: RawKfd) -> None:
    args = (ctypes.c_uint8 * 32)(*[0xEE] * 32)
    gpu.door.ioctl(gpu.fd, encode(2, ord("K"), kfd.GET_VERSION.nr, 24), args)
    assert bytes(args) == bytes(kfd.GetVersion(1, 17)) + bytes(16) + b"\xee" * 8


def test_clock_counters_run_at_100_mhz(gpu: RawKfd) -> None:
    first = gpu.call(kfd.GET_CLOCK_COUNTERS, gpu_id=gpu.gpu_id)
    second = gpu.call(kfd.GET_CLOCK_COUNTERS, gpu_id=gpu.gpu_id)
    assert isinstance(first, kfd.GetClockCounters)
    assert isinstance(second, kfd.GetClockCounters)
    ticks = second.gpu_clock_counter - first.gpu_clock_counter
    nanoseconds = second.system_clock_counter - first.system_clock_counter
    assert abs(ticks * 10 - nanoseconds) < 1_000_000
    with refused(EINVAL):
        gpu.call(kfd.GET_CLOCK_COUNTERS, gpu_id=1)


def test_apertures_old_and_new_agree(gpu: RawKfd) -> None:
    old = gpu.call(kfd.GET_PROCESS_APERTURES)
    assert isinstance(old, kfd.GetProcessApertures)
    count = gpu.call(kfd.GET_PROCESS_APERTURES_NEW)
    assert isinstance(count, kfd.GetProcessAperturesNew)
    assert old.num_of_nodes == count.num_of_nodes == 1
    row = kfd.ProcessDeviceApertures()
    gpu.call(kfd.GET_PROCESS_APERTURES_NEW, kfd_process_device_apertures_ptr=ctypes.addressof(row), num_of_nodes=8)
    assert row == old.process_apertures[0]
    assert (row.gpu_id, row.lds_base, row.gpuvm_limit) == (gpu.gpu_id, 1 << 48, (1 << 47) - 1)


def test_tile_config_fills_the_arrays(gpu: RawKfd) -> None:
    tiles, macro = (ctypes.c_uint32 * 40)(*[7] * 40), (ctypes.c_uint32 * 20)(*[7] * 20)
    args = gpu.call(kfd.GET_TILE_CONFIG, gpu_id=gpu.gpu_id, tile_config_ptr=ctypes.addressof(tiles),
                    macro_tile_config_ptr=ctypes.addressof(macro), num_tile_configs=40, num_macro_tile_configs=20)
    assert isinstance(args, kfd.GetTileConfig)
    assert (args.num_tile_configs, args.num_macro_tile_configs) == (32, 16)
    assert list(tiles[30:34]) == [0, 0, 7, 7]


def test_xnack_is_off_and_stays_off(gpu: RawKfd) -> None:
    args = gpu.call(kfd.SET_XNACK_MODE, xnack_enabled=-1)
    assert isinstance(args, kfd.SetXnackMode)
    assert args.xnack_enabled == 0
    with refused(EPERM):
        gpu.call(kfd.SET_XNACK_MODE, xnack_enabled=1)


def test_runtime_enable_twice_is_ebusy(gpu: RawKfd) -> None:
    gpu.call(kfd.RUNTIME_ENABLE, mode_mask=1)
    with refused(EBUSY):
        gpu.call(kfd.RUNTIME_ENABLE, mode_mask=1)
    gpu.call(kfd.RUNTIME_ENABLE, mode_mask=0)


def test_acquire_vm_refusals(gpu: RawKfd) -> None:
    gpu.acquire()  # again with the same file: fine
    other = gpu.door.open("/dev/dri/renderD128")
    for drm_fd, gpu_id, errno in ((other, gpu.gpu_id, EBUSY), (gpu.fd, gpu.gpu_id, EINVAL), (0, gpu.gpu_id, EINVAL),
                                  (gpu.render, 1, EINVAL)):
        with refused(errno):
            gpu.call(kfd.ACQUIRE_VM, drm_fd=drm_fd, gpu_id=gpu_id)
    gpu.door.close(other)


def test_memory_and_queues_need_a_vm_first(python_client: Preloaded) -> None:
    done = python_client("""
from stuntgpu.mockdrivers.client import Door
from stuntgpu.isa.abi import kfd
from stuntgpu.isa.abi.kfd import AllocFlags
from tests.mockdrivers.rawkfd import RawKfd
gpu = RawKfd(Door())
for call in (lambda: gpu.alloc(4096, AllocFlags.GTT), lambda: gpu.call(kfd.CREATE_QUEUE, gpu_id=gpu.gpu_id, ring_size=4096)):
    try:
        call()
    except OSError as e:
        print(e.errno)
""")
    assert done.stdout.split() == [str(ENODEV), str(ESRCH)], done.stderr


def test_doorbell_page_needs_the_right_size_and_gpu(gpu: RawKfd) -> None:
    base = kfd.KFD_MMAP_TYPE_DOORBELL << kfd.KFD_MMAP_TYPE_SHIFT
    good = base | gpu.gpu_id << kfd.KFD_MMAP_GPU_ID_SHIFT
    assert gpu.door.mmap(0, 0x2000, PROT_RW, mmap.MAP_SHARED, gpu.fd, good)
    for length, offset, errno in ((0x1000, good, EINVAL), (0x2000, base, ENODEV), (0x2000, 1 << 62, EFAULT)):
        with refused(errno):
            gpu.door.mmap(0, length, PROT_RW, mmap.MAP_SHARED, gpu.fd, offset)


def test_a_closed_descriptor_is_ebadf(gpu: RawKfd) -> None:
    fd = gpu.door.open(kfd.KFD_NODE)
    gpu.door.close(fd)
    with refused(EBADF):
        gpu.door.ioctl(fd, kfd.GET_VERSION.request, kfd.GetVersion())


def test_drm_version_names_the_driver(gpu: RawKfd) -> None:
    name = ctypes.create_string_buffer(16)
    args = drm.Version(name=ctypes.addressof(name), name_len=3)
    gpu.door.ioctl(gpu.render, drm.VERSION.request, args)
    assert (args.version_major, args.name_len, name.value) == (3, 6, b"amd")


def info(gpu: RawKfd, query: int, size: int, *args: int) -> bytes:
    room = ctypes.create_string_buffer(size)
    asked = drm.Info(return_pointer=ctypes.addressof(room), return_size=size, query=query)
    for i, value in enumerate(args):
        asked.args[i] = value
    gpu.door.ioctl(gpu.render, drm.AMDGPU_INFO.request, asked)
    return room.raw


def test_drm_info_queries(gpu: RawKfd) -> None:
    assert info(gpu, drm.InfoQuery.ACCEL_WORKING, 4) == b"\1\0\0\0"
    device = drm.DeviceInfo.from_buffer_copy(info(gpu, drm.InfoQuery.DEV_INFO, ctypes.sizeof(drm.DeviceInfo)))
    assert (device.family, device.cu_active_number, device.wave_front_size) == (145, 96, 32)
    assert sum(mask.bit_count() for mask in device.cu_bitmap) <= 96
    memory = drm.VramGtt.from_buffer_copy(info(gpu, drm.InfoQuery.VRAM_GTT, 24))
    assert memory.vram_size == 48 << 30
    assert info(gpu, drm.InfoQuery.READ_MMR_REG, 4, 0x263E, 1) == (0x545).to_bytes(4, "little")


def test_drm_engines_have_the_versions_of_the_discovery_table(gpu: RawKfd) -> None:
    size = ctypes.sizeof(drm.HwIp)
    compute, dma, video = (drm.HwIp.from_buffer_copy(info(gpu, drm.InfoQuery.HW_IP_INFO, size, i)) for i in (1, 2, 3))
    assert (compute.ip_discovery_version, dma.ip_discovery_version, video) == (0x0B0000, 0x060000, drm.HwIp())
    assert [info(gpu, drm.InfoQuery.HW_IP_COUNT, 4, i)[0] for i in (1, 3)] == [1, 0]


def test_unknown_drm_queries_and_registers_are_einval(gpu: RawKfd) -> None:
    for query, args in ((0x77, ()), (drm.InfoQuery.READ_MMR_REG, (0x1234, 1))):
        with refused(EINVAL):
            info(gpu, query, 16, *args)


def test_client_of_the_render_node_is_authenticated(gpu: RawKfd) -> None:
    args = drm.GetClient()
    gpu.door.ioctl(gpu.render, drm.GET_CLIENT.request, args)
    assert (args.auth, args.pid) == (1, os.getpid())
