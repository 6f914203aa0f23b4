"""Random instructions of every encoding, reference against native code."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from click.testing import CliRunner

from stuntgpu.emu.fuzz import words
from stuntgpu.emu.fuzz.__main__ import main
from stuntgpu.emu.fuzz.case import Case, assert_tiers_agree
from stuntgpu.emu.fuzz.fuzzer import Fuzzer
from stuntgpu.emu.fuzz.minimise import minimise
from stuntgpu.emu.fuzz.report import as_pytest
from stuntgpu.isa.arch import ARCHES
from stuntgpu.isa.decode import decode
from tests.arches import WHOLE

MINUTES = 3


@pytest.mark.slow
@pytest.mark.parametrize("arch", WHOLE)
def test_three_minutes_find_nothing(arch: str) -> None:
    fuzzer = Fuzzer(arch, seed=1)
    finds = list(fuzzer.run(60 * MINUTES))
    assert not finds, "\n\n".join(as_pytest(f.case, f.differences) for f in finds)
    assert len(fuzzer.result.names) > 1000


@pytest.mark.parametrize("arch", ARCHES)
def test_every_instruction_with_semantics_is_drawn(arch: str) -> None:
    rng, rows = random.Random(1), words.rows(arch)
    drawn = [words.instruction(rng, arch, row) for row in rows]
    assert len(rows) > 1300
    assert all(row.name == inst.name or row.base == "VOPDX" for row, inst in zip(rows, drawn, strict=True))
    assert all(decode(arch, bytes(inst)) == inst for inst in drawn)


def test_the_same_seed_draws_the_same_cases() -> None:
    first, again, other = (next(Fuzzer("gfx1100", seed, lambda name: name == "V_ADD_F32").cases()) for seed in (1, 1, 2))
    assert first == again != other


class Broken:
    """A tier whose S_MOV_B32 sets SCC in a wave with VCC bit 3."""

    def __init__(self, fuzzer: Fuzzer) -> None:
        self.tier, self.arch = fuzzer.reference, fuzzer.arch

    def run_wave(self, *args: object, **named: object) -> object:
        final = self.tier.run_wave(*args, **named)  # type: ignore[arg-type]
        return replace(final, scc=final.scc ^ (final.vcc >> 3 & 1))


def test_a_fault_is_found_made_small_and_printed_as_a_test() -> None:
    fuzzer = Fuzzer("gfx942", 3, lambda name: name.startswith("S_MOV_B"))
    fuzzer.native = Broken(fuzzer)  # type: ignore[assignment]
    find = next(fuzzer.run(count=400))
    assert len(find.case.code) == 1
    assert find.case.init.vcc >> 3 & 1
    assert not find.case.init.vgprs
    text = as_pytest(find.case, find.differences)
    assert "scc: native" in text
    assert text.startswith("def test_s_mov_b")
    names: dict[str, object] = {"assert_tiers_agree": assert_tiers_agree}
    exec(text, names)  # the text is a test of its own; the real tiers pass it
    names[text.split("(")[0].removeprefix("def ")]()  # type: ignore[operator]


def test_a_case_keeps_what_it_needs() -> None:
    case = Fuzzer("gfx1100", 1, lambda name: name == "V_ADD_F32").check
    fuzzer = Fuzzer("gfx1100", 1, lambda name: name == "V_ADD_F32")
    drawn = next(c for c in fuzzer.cases() if c.init.exec_mask == (1 << c.lanes) - 1 and c.init.vgprs)
    kept = next(iter(drawn.init.vgprs))

    def fails(c: Case) -> bool:
        return kept in c.init.vgprs and c.init.exec_mask >> 5 & 1 == 1

    small = minimise(drawn, fails)
    assert list(small.init.vgprs) == [kept]
    assert small.init.exec_mask == 1 << 5
    assert not small.init.sgprs
    assert case(small) is None


def test_the_command_ends_with_a_summary() -> None:
    result = CliRunner().invoke(main, ["--arch", "gfx1201", "--minutes", "0", "--count", "6", "--only", "^S_ADD"])
    assert result.exit_code == 0, result.output
    assert "6 cases" in result.output
    assert "the tiers differ in 0" in result.output
