"""Instructions of CDNA3 (gfx942) as Python functions.

    from stuntgpu.isa import cdna3
    from stuntgpu.isa.cdna3 import s, v

    inst = cdna3.v_add_f32(v[0], 1.0, v[1])
    str(inst), bytes(inst)                     # "v_add_f32_e32 v0, 1.0, v1", its machine code

Any mnemonic of the assembler is an attribute, with or without _e32, _e64, _dpp, _sdwa; `help()` of one
tells what it takes. Operands are described in `build_values`, programs in `build_program`.
"""

from __future__ import annotations

from stuntgpu.isa import build, build_program
from stuntgpu.isa.build import dual
from stuntgpu.isa.build_values import (
    Label,
    RegisterFile,
    abs_,
    bits,
    exec_,
    exec_hi,
    exec_lo,
    flat_scratch,
    flat_scratch_hi,
    flat_scratch_lo,
    gpr_idx,
    hwreg,
    lit,
    m0,
    neg,
    null,
    off,
    sendmsg,
    sext,
    src_execz,
    src_pops_exiting_wave_id,
    src_private_base,
    src_private_limit,
    src_scc,
    src_shared_base,
    src_shared_limit,
    src_vccz,
    swizzle,
    vcc,
    vcc_hi,
    vcc_lo,
    xnack_mask,
    xnack_mask_hi,
    xnack_mask_lo,
)

__all__ = [
    "ARCH", "Label", "Program", "a", "abs_", "bits", "dual", "exec_", "exec_hi", "exec_lo",
    "flat_scratch", "flat_scratch_hi", "flat_scratch_lo", "gpr_idx", "hwreg", "lit", "m0",
    "neg", "null", "off", "s", "sendmsg", "sext", "src_execz", "src_pops_exiting_wave_id", "src_private_base", "src_private_limit",
    "src_scc", "src_shared_base", "src_shared_limit", "src_vccz", "swizzle", "ttmp", "v", "vcc",
    "vcc_hi", "vcc_lo", "xnack_mask", "xnack_mask_hi", "xnack_mask_lo",
]  # fmt: skip

ARCH = "gfx942"
v, a = RegisterFile("v", 256), RegisterFile("a", 256)
s, ttmp = RegisterFile("s", 102), RegisterFile("ttmp", 16)


class Program(build_program.Program):
    """A program of CDNA3 instructions."""

    ARCH, MODULE = ARCH, __name__


def __getattr__(name: str) -> build.Builder:
    return build.builder(__name__, ARCH, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *build.attribute_names(ARCH)})
