"""Registers of gfx11 that command packets reach: offsets, names and the fields that mean something.

Units:   dword addresses, as SET_SH_REG and COPY_DATA count them (block base included).
Source:  kernel gc_11_0_0_offset.h and _sh_mask.h (regCOMPUTE_*, segment 0 at 0x1260),
         nbio_4_3_0_offset.h (regBIF_BX_PF0_GPU_HDP_FLUSH_*, segment 2 at 0xd20), nvd.h (block starts).
"""

from __future__ import annotations

from stuntgpu.isa.fields import BitStruct, bits

SH_BASE, SH_END = 0x2C00, 0x3000
UCONFIG_BASE, UCONFIG_END = 0xC000, 0x1_0000

COMPUTE_DISPATCH_INITIATOR = 0x2E00
COMPUTE_DIM_X = 0x2E01
COMPUTE_START_X = 0x2E04
COMPUTE_START_Y = 0x2E05
COMPUTE_START_Z = 0x2E06
COMPUTE_NUM_THREAD_X = 0x2E07
COMPUTE_NUM_THREAD_Y = 0x2E08
COMPUTE_NUM_THREAD_Z = 0x2E09
COMPUTE_PIPELINESTAT_ENABLE = 0x2E0A
COMPUTE_PERFCOUNT_ENABLE = 0x2E0B
COMPUTE_PGM_LO = 0x2E0C
COMPUTE_PGM_HI = 0x2E0D
COMPUTE_DISPATCH_PKT_ADDR_LO = 0x2E0E
COMPUTE_DISPATCH_PKT_ADDR_HI = 0x2E0F
COMPUTE_DISPATCH_SCRATCH_BASE_LO = 0x2E10
COMPUTE_DISPATCH_SCRATCH_BASE_HI = 0x2E11
COMPUTE_PGM_RSRC1 = 0x2E12
COMPUTE_PGM_RSRC2 = 0x2E13
COMPUTE_VMID = 0x2E14
COMPUTE_RESOURCE_LIMITS = 0x2E15
COMPUTE_STATIC_THREAD_MGMT_SE0 = 0x2E16
COMPUTE_STATIC_THREAD_MGMT_SE1 = 0x2E17
COMPUTE_TMPRING_SIZE = 0x2E18
COMPUTE_STATIC_THREAD_MGMT_SE2 = 0x2E19
COMPUTE_STATIC_THREAD_MGMT_SE3 = 0x2E1A
COMPUTE_RESTART_X = 0x2E1B
COMPUTE_RESTART_Y = 0x2E1C
COMPUTE_RESTART_Z = 0x2E1D
COMPUTE_THREAD_TRACE_ENABLE = 0x2E1E
COMPUTE_PGM_RSRC3 = 0x2E28
COMPUTE_USER_DATA_0 = 0x2E40
N_USER_DATA = 16

GRBM_GFX_INDEX = 0xC200
SQ_THREAD_TRACE_USERDATA_2 = 0xC342

GPU_HDP_FLUSH_REQ = 0xE26
GPU_HDP_FLUSH_DONE = 0xE27

#: Dword address -> vendor's name.
NAMES: dict[int, str] = {
    value: name for name, value in list(globals().items())
    if isinstance(value, int) and name.startswith(("COMPUTE_", "GRBM_", "SQ_", "GPU_HDP_"))
}
NAMES.update({COMPUTE_USER_DATA_0 + i: f"COMPUTE_USER_DATA_{i}" for i in range(N_USER_DATA)})


def name(register: int) -> str:
    """The vendor's name, or the number."""
    return NAMES.get(register, f"0x{register:x}")


class DispatchInitiator(BitStruct):
    """COMPUTE_DISPATCH_INITIATOR"""

    compute_shader_en = bits[0].flag()
    partial_tg_en = bits[1].flag()  # the last workgroups have NUM_THREAD_PARTIAL work-items
    force_start_at_000 = bits[2].flag()
    ordered_append_enbl = bits[3].flag()
    ordered_append_mode = bits[4].flag()
    use_thread_dimensions = bits[5].flag()  # dispatch sizes count work-items, not workgroups
    order_mode = bits[6].flag()
    scalar_l1_inv_vol = bits[10].flag()
    vector_l1_inv_vol = bits[11].flag()
    tunnel_enable = bits[13].flag()
    restore = bits[14].flag()
    cs_w32_en = bits[15].flag()
    amp_shader_en = bits[16].flag()
    disable_disp_prempt_en = bits[17].flag()


class NumThread(BitStruct):
    """COMPUTE_NUM_THREAD_X, _Y, _Z: work-items of a workgroup along one axis."""

    full = bits[15:0]
    partial = bits[31:16]


class TmpringSize(BitStruct):
    """COMPUTE_TMPRING_SIZE: waves that have scratch at one time, and the scratch of one in granules."""

    waves = bits[11:0]
    wave_size = bits[26:12]
