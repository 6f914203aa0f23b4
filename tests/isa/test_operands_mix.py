"""Which half V_FMA_MIXLO_F16 and V_FMA_MIXHI_F16 write: the operand list says it, the semantics row does not."""

from __future__ import annotations

import pytest

from stuntgpu.isa.decode import decode
from stuntgpu.isa.operands import operands

MIXLO = bytes.fromhex("000021cc020d0002")  # v_fma_mixlo_f16 v0, v2, s6, 0
MIXHI = bytes.fromhex("000022cc020d0002")  # v_fma_mixhi_f16 v0, v2, s6, 0


@pytest.mark.parametrize(("code", "name", "half"), [(MIXLO, "V_FMA_MIXLO_F16", 0), (MIXHI, "V_FMA_MIXHI_F16", 1)])
def test_fma_mix_writes_its_half(code: bytes, name: str, half: int) -> None:
    inst = decode("gfx1100", code)
    written = next(o for o in operands(inst) if o.role == "D0")
    assert (inst.name, written.half) == (name, half)
