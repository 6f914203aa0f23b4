"""KFD and DRM structs against the C headers of this machine, field by field, through a small C program."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from stuntgpu.isa.abi import drm, kfd
from stuntgpu.isa.abi.ioctl import CStruct, Ioctl, decode

KFD_HEADER = Path("/usr/include/linux/kfd_ioctl.h")
DRM_HEADER = Path("/usr/include/libdrm/amdgpu_drm.h")

# C struct -> our class; fields the installed header may lack (it can be older) are left out of the check.
KFD_STRUCTS: dict[str, type[CStruct]] = {
    "kfd_ioctl_get_version_args": kfd.GetVersion,
    "kfd_ioctl_create_queue_args": kfd.CreateQueue,
    "kfd_ioctl_destroy_queue_args": kfd.DestroyQueue,
    "kfd_ioctl_update_queue_args": kfd.UpdateQueue,
    "kfd_ioctl_set_cu_mask_args": kfd.SetCuMask,
    "kfd_ioctl_get_queue_wave_state_args": kfd.GetQueueWaveState,
    "kfd_ioctl_get_available_memory_args": kfd.GetAvailableMemory,
    "kfd_ioctl_set_memory_policy_args": kfd.SetMemoryPolicy,
    "kfd_ioctl_get_clock_counters_args": kfd.GetClockCounters,
    "kfd_process_device_apertures": kfd.ProcessDeviceApertures,
    "kfd_ioctl_get_process_apertures_args": kfd.GetProcessApertures,
    "kfd_ioctl_get_process_apertures_new_args": kfd.GetProcessAperturesNew,
    "kfd_ioctl_create_event_args": kfd.CreateEvent,
    "kfd_ioctl_set_event_args": kfd.EventId,
    "kfd_event_data": kfd.EventData,
    "kfd_hsa_hw_exception_data": kfd.HwExceptionData,
    "kfd_ioctl_wait_events_args": kfd.WaitEvents,
    "kfd_ioctl_set_scratch_backing_va_args": kfd.SetScratchBackingVa,
    "kfd_ioctl_get_tile_config_args": kfd.GetTileConfig,
    "kfd_ioctl_set_trap_handler_args": kfd.SetTrapHandler,
    "kfd_ioctl_acquire_vm_args": kfd.AcquireVm,
    "kfd_ioctl_alloc_memory_of_gpu_args": kfd.AllocMemoryOfGpu,
    "kfd_ioctl_free_memory_of_gpu_args": kfd.FreeMemoryOfGpu,
    "kfd_ioctl_map_memory_to_gpu_args": kfd.MapMemoryToGpu,
    "kfd_ioctl_alloc_queue_gws_args": kfd.AllocQueueGws,
    "kfd_ioctl_get_dmabuf_info_args": kfd.GetDmabufInfo,
    "kfd_ioctl_import_dmabuf_args": kfd.ImportDmabuf,
    "kfd_ioctl_smi_events_args": kfd.SmiEvents,
    "kfd_ioctl_svm_args": kfd.Svm,
    "kfd_ioctl_set_xnack_mode_args": kfd.SetXnackMode,
    "kfd_ioctl_criu_args": kfd.Criu,
}
DRM_STRUCTS: dict[str, type[CStruct]] = {
    "drm_version": drm.Version,
    "drm_client": drm.GetClient,
    "drm_amdgpu_info_device": drm.DeviceInfo,
    "drm_amdgpu_info_hw_ip": drm.HwIp,
    "drm_amdgpu_info_vram_gtt": drm.VramGtt,
    "drm_amdgpu_memory_info": drm.MemoryInfo,
}


def _run_c(tmp_path: Path, header: str, lines: list[str]) -> list[str]:
    source = "\n".join([f"#include <{header}>", "#include <stddef.h>", "#include <stdio.h>", "int main(void) {",
                        *lines, "return 0; }"])
    (tmp_path / "probe.c").write_text(source)
    (tmp_path / "drm").mkdir()  # kfd_ioctl.h wants drm/drm.h, of which it only uses types and _IO macros
    (tmp_path / "drm/drm.h").write_text("#include <linux/types.h>\n#include <linux/ioctl.h>\n")
    subprocess.run(["gcc", f"-I{tmp_path}", "-I/usr/include/libdrm", "-o", tmp_path / "probe", tmp_path / "probe.c"], check=True)
    out = subprocess.run([tmp_path / "probe"], check=True, capture_output=True, text=True).stdout
    return out.splitlines()


def _check_offsets(tmp_path: Path, header: Path, include: str, structs: dict[str, type[CStruct]]) -> None:
    if not header.exists() or not shutil.which("gcc"):
        pytest.skip(f"needs gcc and {header}")
    text = header.read_text() + (header.parent / "drm.h").read_text() if header == DRM_HEADER else header.read_text()
    wanted = []
    for name, ours in structs.items():
        body = re.search(rf"struct {name} \{{(.*?)\n\}};", text, re.DOTALL)
        assert body, name
        for field, *_ in ours._fields_:
            if re.search(rf"\b{field}\b", body[1]):
                wanted.append((name, field, getattr(ours, field).offset))
    lines = [f'printf("%zu\\n", offsetof(struct {name}, {field}));' for name, field, _ in wanted]
    found = _run_c(tmp_path, include, lines)
    assert [(n, f, int(v)) for (n, f, _), v in zip(wanted, found, strict=True)] == wanted


def test_kfd_structs_match_the_installed_header(tmp_path: Path) -> None:
    _check_offsets(tmp_path, KFD_HEADER, "linux/kfd_ioctl.h", KFD_STRUCTS)


def test_drm_structs_match_the_installed_header(tmp_path: Path) -> None:
    _check_offsets(tmp_path, DRM_HEADER, "libdrm/amdgpu_drm.h", DRM_STRUCTS)


def test_kfd_numbers_match_the_installed_header(tmp_path: Path) -> None:
    if not KFD_HEADER.exists() or not shutil.which("gcc"):
        pytest.skip(f"needs gcc and {KFD_HEADER}")
    names = set(re.findall(r"#define AMDKFD_IOC_(\w+)\s", KFD_HEADER.read_text()))
    ours = {i.name: i for i in kfd.IOCTLS}
    lines = [f'printf("{n} %lu\\n", (unsigned long)AMDKFD_IOC_{n});' for n in sorted(names & set(ours))]
    found = dict(line.split() for line in _run_c(tmp_path, "linux/kfd_ioctl.h", lines))
    assert len(found) >= 35
    for name, number in found.items():
        direction, magic, nr, size = decode(int(number))
        entry = ours[name]
        assert (direction, chr(magic), nr) == (entry.direction, entry.magic, entry.nr), name
        assert size <= entry.size_bytes, name  # newer headers only append


@pytest.mark.parametrize("entry", kfd.IOCTLS, ids=lambda e: e.name)
def test_ioctl_number_round_trip(entry: Ioctl) -> None:
    assert decode(entry.request) == (entry.direction, ord("K"), entry.nr, ctypes.sizeof(entry.struct))


def test_structs_print_their_fields() -> None:
    assert repr(kfd.GetVersion(1, 17)) == "GetVersion(major_version=1, minor_version=17)"
    assert kfd.GetVersion(1, 17) == kfd.GetVersion(1, 17) != kfd.GetVersion(1, 14)
