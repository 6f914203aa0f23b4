"""Handlers of instructions with long operands stay small: LLVM's time grows faster than their text."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from stuntgpu.emu.handlers import build, module
from stuntgpu.emu.lower_text import Host
from stuntgpu.emu.program import Code, Pool
from stuntgpu.emu.records import works_of
from stuntgpu.isa.arch import arch
from stuntgpu.isa.asm import assemble_one
from stuntgpu.isa.decode import DecodeError, decode
from stuntgpu.isa.inst import Inst

#: Characters of a module. 30 000 are some 30 ms of compiling; for all lanes and elements at once it would be 200 000 and seconds.
MOST = 40_000

LONG = {
    "gfx950": (
        "v_cvt_scalef32_pk32_f32_fp6 v[0:31], v[32:37], v38", "v_cvt_scalef32_pk32_f32_bf6 v[0:31], v[32:37], s0",
        "v_cvt_scalef32_pk32_bf16_bf6 v[0:15], v[32:37], v38", "v_cvt_scalef32_pk32_fp6_f16 v[0:5], v[32:47], v6",
        "v_cvt_scalef32_sr_pk32_bf6_f32 v[0:5], v[32:63], v6, v7", "v_cvt_scalef32_2xpk16_fp6_f32 v[0:5], v[16:31], v[32:47], v6",
        "v_trig_preop_f64 v[0:1], v[2:3], v4", "v_screen_partition_4se_b32 v0, v1",
    ),
    "gfx1201": ("v_trig_preop_f64 v[0:1], v[2:3], v4", "global_store_block v[0:1], v[2:33], off"),
}  # fmt: skip
#: Fields of VOP3 that finish or change a value, on all sources.
CHANGES: tuple[Mapping[str, int], ...] = ({}, {"CLAMP": 1}, {"OMOD": 1}, {"NEG": 1}, {"ABS": 1})




def changed(inst: Inst, fields: Mapping[str, int]) -> Inst | None:
    """The instruction with these bits of fields set too; None when it does not take them."""
    word, layout = int.from_bytes(bytes(inst), "little"), arch(inst.arch).tables.encodings[inst.encoding]
    for name, value in fields.items():
        word |= layout.field(name).insert(value)
    try:
        return decode(inst.arch, word.to_bytes(inst.size, "little"))
    except DecodeError:
        return None


def sizes(inst: Inst) -> list[int]:
    lanes = arch(inst.arch).wave_sizes[0]
    forms = [work.bound.form for work in works_of(Code(0, inst.size, inst), lanes, 0, Pool(lanes)) if work.bound is not None]
    return [len(module([build(form, Host(f16c=True))])) for form in forms]


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in LONG.items() for text in texts])
def test_long_operands_make_no_long_handlers(name: str, text: str) -> None:
    inst = decode(name, assemble_one(name, text))
    variants = [changed(inst, fields) for fields in (CHANGES if inst.base == "VOP3" else CHANGES[:1])]
    found = [size for variant in variants if variant is not None for size in sizes(variant)]
    assert found
    assert max(found) < MOST
    assert inst.base != "VOP3" or len(found) > 1
