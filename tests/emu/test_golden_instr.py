"""Instruction goldens: values asserted on hardware hold on both tiers, and the tiers agree on everything else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stuntgpu.emu.native import Native
from stuntgpu.emu.reference import Reference
from stuntgpu.isa.decode import DecodeError, decode_all
from tests.emu import golden_instr as golden
from tests.shared import shared_dir

#: Files of an architecture: asserted on its hardware, or carried over from RDNA3's.
FILES = {
    "gfx1100": ("instr_rdna3.jsonl",), "gfx1151": ("instr_rdna3.jsonl",),
    "gfx1201": ("instr_rdna4.jsonl", "instr_rdna4_transfer.jsonl"),
}
#: Programs not asked about, and why; anything else a file holds must run.
OTHER_TARGETS: dict[str, dict[str, str]] = {"gfx1100": {"gfx1150": "S_FMAMK_F32 and the other scalar floats came with RDNA3.5"}}
#: Tests whose assertions do not hold on another generation, and why.
NOT_CARRIED_OVER: dict[str, dict[str, str]] = {"gfx1201": {
    "vop3.TestModifierInteractions.test_omod_ignored": "IEEE mode, which switches OMOD off, is gone from GFX12: LLVM uses OMOD there",
}}
TIERS: dict[str, Callable[[str], golden.GoldenExecutor]] = {"reference": Reference, "native": Native}


def programs(arch: str) -> list[golden.Golden]:
    """The file's programs that this arch has the instructions for."""
    rows = [g for file in FILES[arch] for g in golden.read(shared_dir() / "goldens" / file)]
    return [g for g in rows if g.target not in OTHER_TARGETS.get(arch, ()) and not is_no_code(arch, g)]


def is_no_code(arch: str, g: golden.Golden) -> bool:
    """A program its own authors doubt, with an encoding that no assembler makes (a scalar source of V_INTERP)."""
    return g.doubtful and any(isinstance(i, DecodeError) for _, i in decode_all(arch, g.code))


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("arch", FILES)
def test_golden_hardware_values_hold(arch: str, tier: str) -> None:
    memory, executor = golden.Memory(), TIERS[tier](arch)
    rows = [g for g in programs(arch) if not g.doubtful and g.src not in NOT_CARRIED_OVER.get(arch, ())]
    assert rows
    bad = [line for g in rows for line in golden.failures(executor, memory, g)]
    assert not bad, f"{len(bad)} checks fail in {len(rows)} programs:\n" + "\n".join(bad[:200])


@pytest.mark.parametrize("arch", FILES)
def test_golden_programs_end_in_the_same_state_on_both_tiers(arch: str) -> None:
    memory, reference, native = golden.Memory(), Reference(arch), Native(arch)
    different = []
    for g in programs(arch):
        want, stored = golden.run(reference, memory, g), memory.out()
        got = golden.run(native, memory, g)
        if got != want or memory.out() != stored:
            different.append(f"{g.id} [{g.mnemonics}] {g.src}")
    assert not different
