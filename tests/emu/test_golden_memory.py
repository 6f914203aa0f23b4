"""Every memory instruction with addresses of several shapes, on both tiers: same registers, memory, faults."""

from __future__ import annotations

import random

import pytest

from stuntgpu.emu import formats
from stuntgpu.emu.cache import cache
from stuntgpu.emu.fuzz.case import differences, run
from stuntgpu.emu.fuzz.fuzzer import forms_of
from stuntgpu.emu.native import Native
from stuntgpu.emu.reference import Reference
from stuntgpu.isa.inst import Inst
from stuntgpu.isa.memory_fields import segment
from tests.emu.test_golden_opcodes import WAVES, case_of, instructions


def is_built(inst: Inst, lanes: int) -> bool:
    """Global data share, and loads that transpose in waves of 64 of RDNA4, are refused on both tiers."""
    transposes = "_LOAD_TR_" in inst.name and lanes == 64
    return not (inst.fields.get("GDS") or inst.fields.get("TFE") or transposes)


def has_format(target: str, inst: Inst) -> bool:
    """Whether a typed instruction's own format is one."""
    return formats.of_code(target, formats.own_code(inst.fields)) is not None


def chosen(target: str, lanes: int, rng: random.Random) -> list[tuple[Inst, bytes, str]]:
    """Two instructions an opcode."""
    by_name: dict[str, list[tuple[Inst, bytes, str]]] = {}
    for item in instructions(target):
        named = not item[0].name.startswith("TBUFFER_") or has_format(target, item[0])
        if segment(item[0]) and is_built(item[0], lanes) and named:
            by_name.setdefault(item[0].name, []).append(item)
    return [rng.choice(items) for items in by_name.values() for _ in range(2)]


@pytest.mark.parametrize(("target", "lanes", "seed"), WAVES)
def test_golden_memory_instructions_do_the_same_on_both_tiers(target: str, lanes: int, seed: int) -> None:
    rng = random.Random(seed + 2)
    work = chosen(target, lanes, rng)
    cache().handlers(f for inst, _, _ in work for f in forms_of(inst, lanes, 0xF0))
    assert len(work) > 350
    native, reference, wrong = Native(target), Reference(target), []
    for inst, code, asm in work:
        case = case_of(inst, code, lanes, 0xF0, rng)
        wrong += [f"{asm}: {line}" for line in differences(run(native, case), run(reference, case))[:2]]
    assert not wrong, "\n".join(wrong)
