"""The semantics tables of every architecture: complete, verified, fresh, and in agreement with the vendor's text."""

from __future__ import annotations

import random
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree

import pytest

from stuntgpu.isa import ir
from stuntgpu.isa.arch import ARCHES, arch
from stuntgpu.isa.errata.common import Erratum, Own
from stuntgpu.isa.errors import SpecError
from stuntgpu.isa.gen import additions
from stuntgpu.isa.gen.pcode_lower import Source, lower
from stuntgpu.isa.gen.pcode_parse import parse
from stuntgpu.isa.gen.pcode_tidy import tidy
from stuntgpu.isa.gen.semantics import Generator, generate, main, scope_of, space_of
from stuntgpu.isa.ir import PLACE_WIDTHS
from stuntgpu.isa.semantics import rows, semantics
from stuntgpu.isa.verify import verify
from tests.isa.rows import FLUSH_ALL, FLUSH_F32, KEEP_DENORMALS, Machine, execute, random_places
from tests.shared import shared_dir

ROOT = Path(__file__).resolve().parents[2]

#: What has no row: images, exports, global wave sync, ordered append, ray tracing; loads that RDNA3 does not decode;
#: one whose table nobody has published.
UNBUILT = (
    "IMAGE_*", "EXP", "EXPORT", "DS_GWS_*", "DS_ORDERED_COUNT", "GLOBAL_ATOMIC_ORDERED_ADD_B64", "DS_*_GS_REG_RTN",
    "DS_BVH_STACK_*", "BUFFER_LOAD_LDS_*", "GLOBAL_LOAD_LDS_*", "SCRATCH_LOAD_LDS_*", "FLAT_LOAD_LDS_*",
    "V_SCREEN_PARTITION_4SE_B32",
)  # fmt: skip


def modelled(name: str) -> list[str]:
    return [n for n, text in rows(name).items() if not text.startswith("!")]


def errata(name: str) -> list[Erratum | Own]:
    table = import_module(f"stuntgpu.isa.errata.{name}").ROWS
    return [r for r in table if isinstance(r, Erratum | Own)]


@pytest.mark.parametrize("name", ARCHES)
def test_every_row_verifies(name: str) -> None:
    for n in modelled(name):
        verify(semantics(name, n))


@pytest.mark.parametrize("name", ARCHES)
def test_only_graphics_and_global_sync_have_no_row(name: str) -> None:
    missing = set(rows(name)) - set(modelled(name))
    assert [n for n in sorted(missing) if not any(fnmatchcase(n, p) for p in UNBUILT)] == []


@pytest.mark.parametrize("name", ARCHES)
def test_every_erratum_names_a_test_that_exists(name: str) -> None:
    for test in sorted({r.test for r in errata(name) if isinstance(r, Erratum)}):
        path, _, function = test.partition("::")
        assert f"def {function}(" in (ROOT / path).read_text(), test


@pytest.mark.parametrize("name", ARCHES)
def test_errata_are_about_instructions_of_some_architecture(name: str) -> None:
    known = {n for a in ARCHES for n in rows(a)}
    assert [n for r in errata(name) for n in r.names if n not in known] == []


# ---------------------------------------------------------------- against the vendor's text


@cache
def generator(name: str) -> Generator:
    return Generator(name, read_xml(name))


def read_xml(name: str) -> ElementTree.Element:
    return additions.read(name, path_of(name))


def path_of(name: str) -> Path:
    return additions.path_of(name, shared_dir() / "isa-spec")


def text_rows(g: Generator) -> list[tuple[ir.Semantics, ir.Semantics]]:
    """(as lowered, tidied) of every entry whose text can be lowered as it stands."""
    out = []
    for e in g.entries.values():
        try:
            source = Source(e.name, parse(e.text), e.sizes, scope_of(e.name), space_of(e.name), g.library)
            raw = lower(source)
        except SpecError:
            continue
        scope = scope_of(e.name)
        pair = [ir.with_places(ir.Semantics(e.name, scope, body)) for body in (raw, tidy(raw))]
        out.append((pair[0], pair[1]))
    return out


def assert_agree(a: ir.Semantics, b: ir.Semantics, rng: random.Random, trials: int) -> None:
    widths = {**b.widths, **a.widths}
    for _ in range(trials):
        places = random_places(a, widths, rng)
        mode = rng.choice((KEEP_DENORMALS, FLUSH_F32, FLUSH_ALL))
        outcomes = []
        for sem in (a, b):
            machine = Machine(mode)
            outcomes.append((execute(sem, places, machine), machine.outcome()))
        assert outcomes[0] == outcomes[1], f"{a.name} on {places}"


@pytest.mark.parametrize("name", ARCHES)
def test_golden_tidying_does_not_change_what_rows_do(name: str) -> None:
    """Texts that an earlier architecture has as well are asked for there."""
    rng, g = random.Random(11), generator(name)
    seen = {e.text for earlier in list(ARCHES)[: list(ARCHES).index(name)] for e in generator(earlier).entries.values()}
    pairs = [pair for pair in text_rows(g) if pair[0].name not in g.mended and g.entries[pair[0].name].text not in seen]
    assert pairs
    for raw, tidied in pairs:
        assert_agree(raw, tidied, rng, 6)


@pytest.mark.parametrize("name", ARCHES)
def test_golden_rewritten_rows_agree_with_the_text(name: str) -> None:
    """But for those whose operands are not what the text calls them."""
    rewritten = {n for r in errata(name) if isinstance(r, Erratum) and r.source == "rewritten" for n in r.names}
    rng = random.Random(12)
    for _, text in text_rows(generator(name)):
        if text.name in rewritten and not {"D1", "OPSEL", "SIMM16"} & {*text.writes, *text.reads}:
            assert_agree(text, semantics(name, text.name), rng, 60)


@pytest.mark.parametrize("name", ARCHES)
def test_golden_table_is_fresh(name: str) -> None:
    table = ROOT / "isa" / "tables" / f"{name}_semantics.py"
    assert generate(name, read_xml(name)) == table.read_text()


@pytest.mark.parametrize("name", ARCHES)
def test_golden_coverage_printer_counts(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, str(path_of(name))]) == 0
    table = import_module(f"stuntgpu.isa.tables.{name}_semantics").ROWS
    unbuilt = sum(text.startswith("!") for text in table.values())
    assert f"{len(table) - unbuilt} rows, {unbuilt} not built, 0 without" in capsys.readouterr().out


@pytest.mark.parametrize("name", ARCHES)
def test_golden_rows_have_the_operands_of_their_instruction(name: str) -> None:
    wrong = []
    for row in arch(name).tables.rows:
        if rows(name)[row.name].startswith("!"):
            continue
        sem = semantics(name, row.name)
        operands = {o.role: o.bits for o in row.operands}
        for place in {*sem.reads, *sem.writes} - set(PLACE_WIDTHS) - {"ADDR"}:
            if operands.get(place) != sem.widths[place]:
                wrong.append(f"{row.name} ({row.base}): {place} {sem.widths[place]} {operands.get(place)}")
    assert not wrong
