"""/dev/dri/renderD<minor> beside KFD: maps buffers for the CPU, tells libdrm what the GPU is.

Errors:  EINVAL for a call or query in no table (one log line), as the kernel answers.
"""

from __future__ import annotations

import ctypes
import logging
import os
from errno import EINVAL
from typing import ClassVar

from stuntgpu.isa.abi import drm as abi
from stuntgpu.mockdrivers.core.client import Client
from stuntgpu.mockdrivers.core.device import Device, Mapping, fail, ioctl
from stuntgpu.mockdrivers.core.gpu import Gpu
from stuntgpu.mockdrivers.profiles import HWID_GC, HWID_SDMA0
from stuntgpu.mockdrivers.protocol import Caller

log = logging.getLogger("stuntgpu.driver")

DRIVER_VERSION = (3, 57, 0)
DRIVER_NAME, DRIVER_DATE, DRIVER_DESC = b"amdgpu", b"20150101", b"AMD GPU"
GB_ADDR_CONFIG = 0x263E  # register offset libdrm reads on every chip
HW_IP_HWIDS = {0: HWID_GC, 1: HWID_GC, 2: HWID_SDMA0}  # AMDGPU_HW_IP_GFX, _COMPUTE, _DMA
VRAM_TYPE_GDDR6 = 9
IDS_FLAGS_NONE = 0


class RenderNode(Device):
    """One open of a render node."""

    magic: ClassVar[str] = abi.DRM_IOCTL_BASE

    def __init__(self, client: Client, gpu: Gpu) -> None:
        self.client, self.gpu = client, gpu
        self.node = f"/dev/dri/renderD{gpu.render_minor}"

    def mmap(self, length: int, prot: int, flags: int, offset: int) -> Mapping:
        return self.client.offsets.find(offset, length)

    @ioctl(abi.VERSION)
    def version(self, args: abi.Version, caller: Caller) -> None:
        args.version_major, args.version_minor, args.version_patchlevel = DRIVER_VERSION
        for field, text in (("name", DRIVER_NAME), ("date", DRIVER_DATE), ("desc", DRIVER_DESC)):
            room, to = getattr(args, f"{field}_len"), getattr(args, field)
            if room and to:
                caller.poke(to, text[:room])
            setattr(args, f"{field}_len", len(text))

    @ioctl(abi.GET_CLIENT)
    def get_client(self, args: abi.GetClient, caller: Caller) -> None:
        if args.idx:
            fail(EINVAL, "get_client.idx", args.idx)
        args.auth, args.pid, args.uid, args.magic, args.iocs = 1, self.client.pid, os.getuid(), 0, 0

    @ioctl(abi.AMDGPU_INFO)
    def amdgpu_info(self, args: abi.Info, caller: Caller) -> None:
        answer = self._answer(args)
        caller.poke(args.return_pointer, answer[: args.return_size])

    def _answer(self, args: abi.Info) -> bytes:
        query = abi.InfoQuery
        if args.query == query.ACCEL_WORKING:
            return bytes(ctypes.c_uint32(1))
        if args.query == query.HW_IP_COUNT:
            return bytes(ctypes.c_uint32(int(args.args[0] in HW_IP_HWIDS)))
        if args.query == query.HW_IP_INFO:
            return self._hw_ip(args.args[0])
        if args.query == query.READ_MMR_REG:
            return self._registers(args.args[0], args.args[1])
        if args.query == query.DEV_INFO:
            return bytes(device_info(self.gpu))
        if args.query == query.VRAM_GTT:
            vram, gtt = self.gpu.vram.capacity, self.client.memory.gtt.capacity
            return bytes(abi.VramGtt(vram_size=vram, vram_cpu_accessible_size=vram, gtt_size=gtt))
        if args.query == query.MEMORY:
            return bytes(self._memory())
        log.warning("%s: AMDGPU_INFO query 0x%x is not known", self.node, args.query)
        fail(EINVAL, "amdgpu_info.query", args.query)

    def _hw_ip(self, kind: int) -> bytes:
        """All zeros for engines the chip lacks, as the kernel answers."""
        hwid = HW_IP_HWIDS.get(kind)
        versions = {row[0]: row[1:] for row in self.gpu.chip.ip_versions}
        if hwid is None:
            return bytes(abi.HwIp())
        major, minor, revision = versions[hwid]
        return bytes(abi.HwIp(hw_ip_version_major=major, hw_ip_version_minor=minor, ib_start_alignment=32,
                              ib_size_alignment=32, available_rings=1,
                              ip_discovery_version=major << 16 | minor << 8 | revision))

    def _registers(self, offset: int, count: int) -> bytes:
        if (offset, count) != (GB_ADDR_CONFIG, 1):
            log.warning("%s: register 0x%x (count %d) is not readable here", self.node, offset, count)
            fail(EINVAL, "amdgpu_info.read_mmr_reg.dword_offset", offset)
        return bytes(ctypes.c_uint32(self.gpu.chip.gb_addr_config))

    def _memory(self) -> abi.MemoryInfo:
        def row(capacity: int, used: int) -> abi.HeapInfo:
            return abi.HeapInfo(total_heap_size=capacity, usable_heap_size=capacity, heap_usage=used,
                                max_allocation=capacity * 3 // 4)

        vram, gtt = self.gpu.vram, self.client.memory.gtt
        shown = row(vram.capacity, vram.used)
        return abi.MemoryInfo(vram=shown, cpu_accessible_vram=shown, gtt=row(gtt.capacity, gtt.used))


def device_info(gpu: Gpu) -> abi.DeviceInfo:
    """What AMDGPU_INFO_DEV_INFO says of a chip."""
    chip, device = gpu.chip, gpu.chip.device
    info = abi.DeviceInfo(
        device_id=device.pci_device, family=chip.family_id, num_shader_engines=device.engines,
        num_shader_arrays_per_engine=device.arrays_per_engine, gpu_counter_freq=100_000,
        max_engine_clock=device.engine_mhz * 1000, max_memory_clock=device.memory_mhz * 1000,
        cu_active_number=device.compute_units, num_hw_gfx_contexts=8, ids_flags=IDS_FLAGS_NONE,
        virtual_address_offset=0x20_0000, virtual_address_max=1 << 47, virtual_address_alignment=0x1000,
        pte_fragment_size=0x20_0000, gart_page_size=0x1000, vram_type=VRAM_TYPE_GDDR6,
        vram_bit_width=device.memory_bits, wave_front_size=device.wave_lanes, num_shader_visible_vgprs=256,
        num_cu_per_sh=device.array_cus, high_va_offset=0xFFFF_8000_0000_0000,
        high_va_max=0xFFFF_FFFF_FFE0_0000)
    for engine in range(min(device.engines, 4)):
        for array in range(device.arrays_per_engine):
            info.cu_bitmap[4 * engine + array] = (1 << device.array_cus) - 1
    return info
