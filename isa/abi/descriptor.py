"""The kernel descriptor of an AMD code object, and the COMPUTE_PGM_RSRC registers inside it.

The fields are those of gfx11; where another generation gives a bit another meaning, the name says
so, and executors of that generation read it by that name.

Units:   bytes; granulated counts are raw register values.
Source:  AMDGPU back-end user guide, "Kernel Descriptor" and the compute_pgm_rsrc1..3 tables.
"""

from __future__ import annotations

from collections.abc import Iterator

from stuntgpu.isa.fields import BitStruct, bits, u16, u32, u64


class Rsrc1(BitStruct):
    """COMPUTE_PGM_RSRC1: registers and the MODE a wave starts with."""

    vgprs = bits[5:0]  # granulated
    sgprs = bits[9:6]  # granulated, 0 from gfx10 on
    priority = bits[11:10]
    float_mode = bits[19:12]  # MODE bits 7:0, the four fields below as one
    float_round_32 = bits[13:12].overlay()
    float_round_16_64 = bits[15:14].overlay()
    float_denorm_32 = bits[17:16].overlay()  # 0 flushes, 3 keeps
    float_denorm_16_64 = bits[19:18].overlay()
    privileged = bits[20].flag()
    dx10_clamp = bits[21].flag()  # gfx12: round-robin between workgroups
    debug_mode = bits[22].flag()
    ieee_mode = bits[23].flag()  # gfx12: disable performance counters
    bulky = bits[24].flag()
    cdbg_user = bits[25].flag()
    fp16_ovfl = bits[26].flag()
    wgp_mode = bits[29].flag()
    mem_ordered = bits[30].flag()
    fwd_progress = bits[31].flag()


class Rsrc2(BitStruct):
    """COMPUTE_PGM_RSRC2: what a wave finds in its registers at the start."""

    scratch_en = bits[0].flag()
    user_sgprs = bits[5:1]  # how many, from s0
    trap_present = bits[6].flag()
    workgroup_id_x = bits[7].flag()
    workgroup_id_y = bits[8].flag()
    workgroup_id_z = bits[9].flag()
    workgroup_info = bits[10].flag()
    workitem_ids = bits[12:11]  # highest dimension of the work-item id given: 0 x, 1 x y, 2 x y z
    exception_address_watch = bits[13].flag()
    exception_memory = bits[14].flag()
    lds_size = bits[23:15]  # granules of targets.lds_granule
    exceptions = bits[30:24]


class Rsrc3(BitStruct):
    """COMPUTE_PGM_RSRC3 of gfx10 and gfx11, and below of CDNA."""

    shared_vgprs = bits[3:0]
    inst_pref_size = bits[9:4]
    trap_on_start = bits[10].flag()
    trap_on_end = bits[11].flag()
    image_op = bits[31].flag()
    accum_offset = bits[5:0].overlay()  # gfx90a on: first AccVGPR of the unified file, (n + 1) * 4
    tg_split = bits[16].flag()  # gfx90a on: waves of a workgroup on several compute units


class CodeProperties(BitStruct, size=2):
    """Which user SGPRs the kernel wants, and how wide its waves are."""

    private_segment_buffer = bits[0].flag()
    dispatch_ptr = bits[1].flag()
    queue_ptr = bits[2].flag()
    kernarg_segment_ptr = bits[3].flag()
    dispatch_id = bits[4].flag()
    flat_scratch_init = bits[5].flag()
    private_segment_size = bits[6].flag()
    wavefront_size32 = bits[10].flag()
    uses_dynamic_stack = bits[11].flag()

    def user_sgpr_slots(self) -> Iterator[tuple[str, int]]:
        """(name, number of SGPRs) of each enabled value, in the order the hardware stores them from s0."""
        for name, count in USER_SGPRS:
            if getattr(self, name):
                yield name, count


#: Order and size (in SGPRs) of the values before any preloaded kernel arguments.
USER_SGPRS = (
    ("private_segment_buffer", 4), ("dispatch_ptr", 2), ("queue_ptr", 2), ("kernarg_segment_ptr", 2),
    ("dispatch_id", 2), ("flat_scratch_init", 2), ("private_segment_size", 1),
)


class KernelDescriptor(BitStruct, size=64):
    """The 64 bytes a dispatch packet's kernel_object points at; symbol `<kernel>.kd`."""

    group_segment_size = u32[0]
    private_segment_size = u32[4]
    kernarg_size = u32[8]
    entry_offset = u64[16].signed()  # from the descriptor's own address
    rsrc3 = u32[44].of(Rsrc3)
    rsrc1 = u32[48].of(Rsrc1)
    rsrc2 = u32[52].of(Rsrc2)
    properties = u16[56].of(CodeProperties)
    preload_length = bits[14, 22:16]  # dwords of kernel arguments wanted in SGPRs
    preload_offset = bits[14, 31:23]  # first of them, in dwords
