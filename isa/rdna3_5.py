"""Instructions of RDNA3.5 (gfx1151) as Python functions.

    from stuntgpu.isa import rdna3_5
    from stuntgpu.isa.rdna3_5 import s, v

    inst = rdna3_5.v_add_f32(v[0], v[1], 1.0)
    str(inst), bytes(inst)                     # "v_add_f32_e64 v0, v1, 1.0", its machine code

Any mnemonic of the assembler is an attribute, with or without _e32, _e64, _dpp; `help()` of one
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
    hwreg,
    lit,
    m0,
    neg,
    null,
    off,
    sendmsg,
    src_private_base,
    src_private_limit,
    src_scc,
    src_shared_base,
    src_shared_limit,
    swizzle,
    vcc,
    vcc_hi,
    vcc_lo,
)

__all__ = [
    "ARCH", "Label", "Program", "abs_", "bits", "dual", "exec_", "exec_hi", "exec_lo", "hwreg", "lit", "m0", "neg",
    "null", "off", "s", "sendmsg", "src_private_base", "src_private_limit", "src_scc", "src_shared_base",
    "src_shared_limit", "swizzle", "ttmp", "v", "vcc", "vcc_hi", "vcc_lo",
]  # fmt: skip

ARCH = "gfx1151"
v, s, ttmp = RegisterFile("v", 256), RegisterFile("s", 106), RegisterFile("ttmp", 16)

# Halves of dual instructions: types only, made like all others when asked for.
v_dual_add_f32: build.DualBuilder
v_dual_add_nc_u32: build.DualBuilder
v_dual_and_b32: build.DualBuilder
v_dual_cndmask_b32: build.DualBuilder
v_dual_dot2acc_f32_bf16: build.DualBuilder
v_dual_dot2acc_f32_f16: build.DualBuilder
v_dual_fmaak_f32: build.DualBuilder
v_dual_fmac_f32: build.DualBuilder
v_dual_fmamk_f32: build.DualBuilder
v_dual_lshlrev_b32: build.DualBuilder
v_dual_max_f32: build.DualBuilder
v_dual_min_f32: build.DualBuilder
v_dual_mov_b32: build.DualBuilder
v_dual_mul_dx9_zero_f32: build.DualBuilder
v_dual_mul_f32: build.DualBuilder
v_dual_sub_f32: build.DualBuilder
v_dual_subrev_f32: build.DualBuilder


class Program(build_program.Program):
    """A program of RDNA3.5 instructions."""

    ARCH, MODULE = ARCH, __name__


def __getattr__(name: str) -> build.Builder:
    return build.builder(__name__, ARCH, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *build.attribute_names(ARCH)})
