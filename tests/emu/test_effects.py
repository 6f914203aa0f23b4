"""Operand facts against the reference: nothing else is touched, and what is listed is enough to know the results."""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import TypeVar

import pytest

from stuntgpu.isa.arch import ARCHES
from stuntgpu.isa.decode import decode
from stuntgpu.isa.effects import Effects, Lanes, Use, reads_writes
from stuntgpu.isa.errors import Unmodelled
from stuntgpu.isa.gen.additions import NAMES
from stuntgpu.isa.inst import Inst
from stuntgpu.isa.samples import samples
from tests.emu import effects_probe
from tests.emu.effects_probe import Bench, probe, varied
from tests.isa.goldens import added, pairs, report

#: Products of matrices in plain Python take long: one of each shape of facts runs here, all in the slow sweep.
MATRIX = ("MFMA", "SMFMAC", "WMMA", "SWMMAC")
QUICK_MATRIX = ("V_MFMA_F32_4X4X4_16B_F16", "V_WMMA_F32_16X16X16_F16")
WAVES = [(name, lanes) for name, row in ARCHES.items() for lanes in row.wave_sizes]
ATTEMPTS = 20


@cache
def rows(name: str) -> tuple[Inst, ...]:
    """A sample of every row; of an extension, of those it adds."""
    return tuple(inst for row, inst in samples(name) if inst is not None and (not ARCHES[name].extends or row.name in NAMES[name]))


def is_quick(inst: Inst) -> bool:
    return inst.name in QUICK_MATRIX or not any(m in inst.name for m in MATRIX)


def variants(inst: Inst, seed: int) -> Iterator[Inst]:
    """Instructions of the same row with other registers and switches; at least itself."""
    r = random.Random(f"{inst.arch} {inst.name} {inst.base} {seed}")
    other = next((v for v in (varied(r, inst) for _ in range(ATTEMPTS)) if v is not None), None)
    yield inst if other is None else other


#: Instructions between looks for cycles: a fault's traceback is one, with all registers in it.
COLLECT_EVERY = 200


def wrong_facts(bench: Bench, insts: Iterator[Inst]) -> tuple[list[str], int]:
    """(what is wrong, how many instructions were executed)."""
    wrong, done = [], 0
    for number, inst in enumerate(insts):
        if number % COLLECT_EVERY == 0:
            gc.collect()
        try:
            found = probe(bench, inst)
        except Unmodelled:
            continue
        done += 1
        wrong += [f"{inst}: {w}" for w in found]
    return wrong, done


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Register files are many lists without cycles; looking for some takes longer than the instructions."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("name", ARCHES)
def test_every_opcode_touches_what_is_listed(name: str) -> None:
    bench = Bench(name, ARCHES[name].wave_sizes[0])
    insts = (v for inst in rows(name) if is_quick(inst) for v in variants(inst, 0))
    wrong, done = wrong_facts(bench, insts)
    assert not wrong, report(wrong)
    assert done > 1300 or done == len(NAMES.get(name, ()))


@pytest.mark.slow
@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize(("name", "lanes"), WAVES)
def test_every_opcode_in_other_registers_and_waves(name: str, lanes: int) -> None:
    bench = Bench(name, lanes)
    insts = (v for seed in range(1, 5) for inst in rows(name) if is_quick(inst) or seed == 1 for v in variants(inst, seed))
    wrong, _ = wrong_facts(bench, insts)
    assert not wrong, report(wrong)


@pytest.mark.slow
@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("name", ARCHES)
def test_every_golden_instruction_touches_what_is_listed(name: str) -> None:
    bench = Bench(name, ARCHES[name].wave_sizes[0])
    insts = (decode(name, code) for code, _ in (added(name) if ARCHES[name].extends else pairs(name)))
    wrong, done = wrong_facts(bench, (i for i in insts if is_quick(i)))
    assert not wrong, report(wrong)
    assert done > 5000 or done == len(added(name))


# ---------------------------------------------------------------- the probe itself


#: States tried before a fact that is left out counts as missed: not every state shows every dependence.
TRIALS = 12


def caught(monkeypatch: pytest.MonkeyPatch, inst: Inst, facts: Effects) -> bool:
    """Whether the probe finds `facts` wrong."""
    with monkeypatch.context() as patch:
        patch.setattr(effects_probe, "reads_writes", lambda *_: facts)
        return any(probe(Bench(inst.arch, facts.wave_lanes, seed), inst) for seed in range(TRIALS))


T = TypeVar("T")


def each_left_out(items: tuple[T, ...]) -> Iterator[tuple[T, tuple[T, ...]]]:
    for i, item in enumerate(items):
        yield item, items[:i] + items[i + 1 :]


@pytest.mark.parametrize("text", [
    "v_add_f32 v10, v20, v30", "v_add_co_ci_u32 v10, vcc_lo, v20, v30, vcc_lo", "s_add_u32 s10, s20, s30", "s_cmov_b32 s10, s20",
    "global_load_b64 v[10:11], v20, s[30:31]", "ds_add_rtn_u32 v10, v20, v30", "v_readlane_b32 s10, v20, s30", "s_cbranch_scc0 16",
    "v_fma_mixlo_f16 v10, v20, v30, v40", "buffer_store_b32 v10, v20, s[32:35], s40 offen", "v_cmpx_lt_f32 v10, v20",
    "v_swap_b32 v10, v20", "v_mov_b32_dpp v10, v20 row_shr:1 row_mask:0xf bank_mask:0xf", "s_load_b64 s[10:11], s[20:21], s30",
])  # fmt: skip
def test_the_probe_finds_each_access_that_is_left_out(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    inst = Inst.from_text("gfx1100", text)
    facts = reads_writes(inst)
    assert not caught(monkeypatch, inst, facts)
    for access, rest in each_left_out(facts.writes):
        assert caught(monkeypatch, inst, replace(facts, writes=rest)), f"{text} without writing {access}"
    for access, rest in each_left_out(facts.reads):
        if access.use is not Use.KEPT:
            assert caught(monkeypatch, inst, replace(facts, reads=rest)), f"{text} without reading {access}"
    for memory, rest_of_memory in each_left_out(facts.memory):
        assert caught(monkeypatch, inst, replace(facts, memory=rest_of_memory)), f"{text} without {memory}"
        smaller = (replace(memory, size=(memory.size or 0) // 2), *rest_of_memory)
        assert caught(monkeypatch, inst, replace(facts, memory=smaller)), f"{text}: half of {memory}"


def test_the_probe_finds_wrong_bits_and_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    half = Inst.from_text("gfx1100", "v_add_f16 v10.h, v20.l, v30.h")
    facts = reads_writes(half)
    assert not caught(monkeypatch, half, facts)
    for i, access in enumerate(facts.reads[:2]):
        reads = (*facts.reads[:i], replace(access, bits=access.bits & 0x00FF_00FF), *facts.reads[i + 1 :])
        assert caught(monkeypatch, half, replace(facts, reads=reads)), access
    (write,) = facts.writes
    assert caught(monkeypatch, half, replace(facts, writes=(replace(write, bits=0xFF00_0000),)))
    quads = Inst.from_text("gfx1100", "lds_direct_load v10 wait_vdst:0")
    facts = reads_writes(quads)
    assert not caught(monkeypatch, quads, facts)
    assert caught(monkeypatch, quads, replace(facts, writes=tuple(replace(w, lanes=Lanes.OWN) for w in facts.writes)))


def test_a_write_that_may_not_happen_is_not_certain(monkeypatch: pytest.MonkeyPatch) -> None:
    inst = Inst.from_text("gfx1100", "s_cmov_b32 s10, s20")
    facts = reads_writes(inst)
    (write,) = facts.writes
    assert not write.certain
    assert any(r.use is Use.KEPT and r.reg == write.reg for r in facts.reads)
    reads = tuple(r for r in facts.reads if r.use is not Use.KEPT)
    assert caught(monkeypatch, inst, replace(facts, writes=(replace(write, certain=True),), reads=reads))
