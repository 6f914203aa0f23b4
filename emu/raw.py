"""Kernels without a code object: bare instructions and a few words on what they expect at their start."""

from __future__ import annotations

from dataclasses import dataclass

from stuntgpu.emu.state import wavefront
from stuntgpu.isa.abi.descriptor import CodeProperties, KernelDescriptor, Rsrc1, Rsrc2, Rsrc3
from stuntgpu.isa.abi.targets import Target

#: Where code starts in a raw image, behind the descriptor made for it.
CODE_OFFSET = 256
MAX_VGPRS = 256


@dataclass(frozen=True, slots=True)
class KernelSpec:
    """What a hand-written kernel expects: the kernel arguments' address in s[0:1], work-item ids in v0.

    entry           byte offset of the first instruction in the code.
    user_sgprs      SGPRs before the workgroup ids: with 15, the first id is in s15.
    workgroup_ids   which of the x, y, z workgroup ids are wanted (gfx11 and older: in SGPRs).
    workitem_ids    highest dimension wanted of the work-item id: 0 x, 1 x y, 2 x y z.
    float_mode      MODE bits 7:0; 0xF0 rounds to nearest even and keeps all denormals.
    scratch_bytes   private segment of one lane.
    lds_bytes       LDS of a workgroup; a call's `shared` comes on top.
    """

    name: str = "kernel"
    entry: int = 0
    user_sgprs: int = 15
    workgroup_ids: tuple[bool, bool, bool] = (True, False, False)
    workitem_ids: int = 0
    wave_lanes: int = 32
    lds_bytes: int = 0
    scratch_bytes: int = 0
    float_mode: int = 0xF0
    dx10_clamp: bool = True
    ieee_mode: bool = True

    def descriptor(self, arch: Target) -> KernelDescriptor:
        """The descriptor a compiler would have written. Raises ValueError for waves the arch has not."""
        if self.wave_lanes != arch.wave_lanes(self.wave_lanes == 32):
            raise ValueError(f"{self.name}: {arch.name} has no waves of {self.wave_lanes} lanes")
        x, y, z = self.workgroup_ids
        accumulators = wavefront(arch.name).n_accvgprs
        registers = MAX_VGPRS + accumulators
        return KernelDescriptor(
            group_segment_size=self.lds_bytes, private_segment_size=self.scratch_bytes,
            entry_offset=CODE_OFFSET + self.entry,
            rsrc1=Rsrc1(vgprs=registers // arch.vgpr_granule(self.wave_lanes) - 1, float_mode=self.float_mode,
                        dx10_clamp=self.dx10_clamp, ieee_mode=self.ieee_mode, mem_ordered=arch.has_wave32),
            rsrc2=Rsrc2(scratch_en=self.scratch_bytes > 0, user_sgprs=self.user_sgprs, workgroup_id_x=x,
                        workgroup_id_y=y, workgroup_id_z=z, workitem_ids=self.workitem_ids),
            rsrc3=Rsrc3(accum_offset=MAX_VGPRS // 4 - 1) if accumulators else Rsrc3(),
            properties=CodeProperties(kernarg_segment_ptr=True, wavefront_size32=self.wave_lanes == 32))
