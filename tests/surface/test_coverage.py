"""Coverage: what the generated records say, and that they are what is measured."""

from __future__ import annotations

from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from stuntgpu.cli import main
from stuntgpu.coverage import gen, page
from stuntgpu.coverage.records import (
    COLUMNS,
    ORIGINS,
    Record,
    by_encoding,
    dump,
    load,
    stored,
    with_shared,
)
from stuntgpu.isa.arch import ARCHES, arch
from stuntgpu.isa.errors import Unmodelled
from stuntgpu.isa.semantics import semantics
from tests.repo import tree
from tests.shared import shared_dir

RECORDS = st.builds(
    Record, st.sampled_from(sorted(ARCHES)), st.sampled_from(("VOP1", "DS")), st.from_regex(r"[A-Z]_[A-Z0-9]{1,5}", fullmatch=True),
    st.sampled_from(sorted(ORIGINS)), st.frozensets(st.sampled_from(sorted(COLUMNS))),
)  # fmt: skip


@given(st.sets(RECORDS))
def test_records_read_back(records: set[Record]) -> None:
    assert set(load(dump(records))) == records


def test_every_table_row_has_a_record_and_assembles() -> None:
    for name in ARCHES:
        rows = {(r.base, r.name) for r in arch(name).tables.rows}
        found = [r for r in stored() if r.arch == name]
        assert {(r.base, r.name) for r in found} == rows
        assert [r.name for r in found if "a" not in r.flags] == []


def test_origins_are_those_of_the_semantics() -> None:
    for r in stored()[::7]:
        try:
            origin = semantics(r.arch, r.name).origin
        except Unmodelled:
            origin = "-"
        assert r.origin == origin, r


def test_golden_records_are_what_is_measured() -> None:
    folder = shared_dir() / "goldens"
    assert dump(with_shared(gen.measure(folder))) == dump(stored())
    assert gen.digest(folder) in tree.text(tree.ROOT / "surface/coverage/table.py").splitlines()[0]


def test_page_in_the_docs_is_made_of_the_records() -> None:
    assert tree.text(tree.ROOT / "docs/coverage.md") == page.page(stored())


def test_counts_add_up() -> None:
    found = [r for r in stored() if r.arch == "gfx1100"]
    assert sum(row.total for row in by_encoding(found)) == len(found)


def test_info_of_an_instruction_names_its_encodings_and_source() -> None:
    shown = CliRunner().invoke(main, ["info", "--arch", "gfx1100", "--instruction", "v_add_f32"])
    assert shown.exit_code == 0
    assert [line.split()[1:4] for line in shown.output.splitlines() if "V_ADD_F32" in line] == [
        ["VOP2", "V_ADD_F32", "text"], ["VOP3", "V_ADD_F32", "text"],
    ]  # fmt: skip


def test_what_an_extension_shares_counts_as_carried_over() -> None:
    of = {(r.arch, r.base, r.name): r.flags for r in stored()}
    assert "h" in of["gfx1100", "VOP2", "V_ADD_F32"]
    assert of["gfx1151", "VOP2", "V_ADD_F32"] == of["gfx1100", "VOP2", "V_ADD_F32"] - {"h"} | {"t"}
    assert of["gfx1151", "SOP2", "S_FMAMK_F32"] == frozenset("asnt")


def test_info_of_a_misspelt_instruction_suggests_one() -> None:
    shown = CliRunner().invoke(main, ["info", "--instruction", "v_adf_f32"])
    assert shown.exit_code == 1
    assert "did you mean V_ADD_F32" in shown.output


def test_info_of_an_unknown_architecture_names_those_there_are() -> None:
    shown = CliRunner().invoke(main, ["info", "--coverage", "--arch", "gfx900"])
    assert shown.exit_code == 1
    assert "gfx1100" in shown.output


def test_info_coverage_prints_every_encoding() -> None:
    shown = CliRunner().invoke(main, ["info", "--coverage", "--arch", "gfx1100"])
    assert shown.exit_code == 0
    assert {r.base for r in stored() if r.arch == "gfx1100"} <= set(shown.output.split())
