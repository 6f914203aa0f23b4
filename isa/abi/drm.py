"""The few DRM calls that ROCm's libdrm makes on an amdgpu render node.

Units:   bytes; clocks in kHz.
Source:  linux uapi drm.h and amdgpu_drm.h (tests compare with the installed headers).
"""

import ctypes
from enum import IntEnum
from typing import Annotated

from stuntgpu.isa.abi.ioctl import I32, READ_WRITE, U32, U64, WRITE, CStruct, Ioctl, layout

DRM_IOCTL_BASE = "d"
DRM_COMMAND_BASE = 0x40
DRM_MAJOR = 226


@layout
class Version(CStruct):
    """Strings are copied to the pointers, at most the given lengths; real lengths come back."""

    version_major: I32
    version_minor: I32
    version_patchlevel: I32
    name_len: U64
    name: U64
    date_len: U64
    date: U64
    desc_len: U64
    desc: U64


@layout
class GetClient(CStruct):
    idx: I32
    auth: I32
    pid: U64
    uid: U64
    magic: U64
    iocs: U64


class InfoQuery(IntEnum):
    """AMDGPU_INFO_*"""

    ACCEL_WORKING = 0x00
    HW_IP_INFO = 0x02
    HW_IP_COUNT = 0x03
    VRAM_GTT = 0x14
    READ_MMR_REG = 0x15
    DEV_INFO = 0x16
    MEMORY = 0x19


@layout
class Info(CStruct):
    """AMDGPU_INFO: the answer goes to `return_pointer`; `args` depend on the query."""

    return_pointer: U64
    return_size: U32
    query: U32
    args: Annotated["ctypes.Array[ctypes.c_uint32]", ctypes.c_uint32 * 4]


_Bitmap = Annotated["ctypes.Array[ctypes.c_uint32]", ctypes.c_uint32 * 16]


@layout
class DeviceInfo(CStruct):
    """struct drm_amdgpu_info_device up to the fields of Linux 6.6; readers take a prefix."""

    device_id: U32
    chip_rev: U32
    external_rev: U32
    pci_rev: U32
    family: U32
    num_shader_engines: U32
    num_shader_arrays_per_engine: U32
    gpu_counter_freq: U32
    max_engine_clock: U64
    max_memory_clock: U64
    cu_active_number: U32
    cu_ao_mask: U32
    cu_bitmap: _Bitmap
    enabled_rb_pipes_mask: U32
    num_rb_pipes: U32
    num_hw_gfx_contexts: U32
    pcie_gen: U32
    ids_flags: U64
    virtual_address_offset: U64
    virtual_address_max: U64
    virtual_address_alignment: U32
    pte_fragment_size: U32
    gart_page_size: U32
    ce_ram_size: U32
    vram_type: U32
    vram_bit_width: U32
    vce_harvest_config: U32
    gc_double_offchip_lds_buf: U32
    prim_buf_gpu_addr: U64
    pos_buf_gpu_addr: U64
    cntl_sb_buf_gpu_addr: U64
    param_buf_gpu_addr: U64
    prim_buf_size: U32
    pos_buf_size: U32
    cntl_sb_buf_size: U32
    param_buf_size: U32
    wave_front_size: U32
    num_shader_visible_vgprs: U32
    num_cu_per_sh: U32
    num_tcc_blocks: U32
    gs_vgt_table_depth: U32
    gs_prim_buffer_depth: U32
    max_gs_waves_per_vgt: U32
    pcie_num_lanes: U32
    cu_ao_bitmap: _Bitmap
    high_va_offset: U64
    high_va_max: U64
    pa_sc_tile_steering_override: U32
    tcc_disabled_mask: U64
    min_engine_clock: U64
    min_memory_clock: U64
    tcp_cache_size: U32
    num_sqc_per_wgp: U32
    sqc_data_cache_size: U32
    sqc_inst_cache_size: U32
    gl1c_cache_size: U32
    gl2c_cache_size: U32
    mall_size: U64
    enabled_rb_pipes_mask_hi: U32
    shadow_size: U32
    shadow_alignment: U32
    csa_size: U32
    csa_alignment: U32


@layout
class HwIp(CStruct):
    hw_ip_version_major: U32
    hw_ip_version_minor: U32
    capabilities_flags: U64
    ib_start_alignment: U32
    ib_size_alignment: U32
    available_rings: U32
    ip_discovery_version: U32


@layout
class VramGtt(CStruct):
    vram_size: U64
    vram_cpu_accessible_size: U64
    gtt_size: U64


@layout
class HeapInfo(CStruct):
    total_heap_size: U64
    usable_heap_size: U64
    heap_usage: U64
    max_allocation: U64


@layout
class MemoryInfo(CStruct):
    vram: Annotated[HeapInfo, HeapInfo]
    cpu_accessible_vram: Annotated[HeapInfo, HeapInfo]
    gtt: Annotated[HeapInfo, HeapInfo]


VERSION = Ioctl("VERSION", DRM_IOCTL_BASE, 0x00, Version, READ_WRITE)
GET_CLIENT = Ioctl("GET_CLIENT", DRM_IOCTL_BASE, 0x05, GetClient, READ_WRITE)
AMDGPU_INFO = Ioctl("AMDGPU_INFO", DRM_IOCTL_BASE, DRM_COMMAND_BASE + 5, Info, WRITE)
