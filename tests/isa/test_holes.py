"""isa/gen/holes.py: opcodes that no instruction has, kept as a table and named by the decoder."""

from __future__ import annotations

import importlib
from dataclasses import replace

import pytest

from stuntgpu.isa.arch import ARCHES, Tables, arch
from stuntgpu.isa.decode import DecodeError, decode
from stuntgpu.isa.errors import SpecError
from stuntgpu.isa.gen import holes
from stuntgpu.isa.gen.emit import ranges

NAMES = sorted(ARCHES)


def listed(name: str) -> dict[str, tuple[int, list[int]]]:
    """Family -> (opcodes in use, holes) of the checked-in table."""
    out = {}
    for line in importlib.import_module(f"stuntgpu.isa.tables.{name}_holes").HOLES.splitlines():
        base, used, text = line.split("|")
        spans = [tuple(map(int, span.split("-"))) for span in text.split()]
        out[base] = int(used), [op for span in spans for op in range(span[0], span[-1] + 1)]
    return out


@pytest.mark.parametrize("name", NAMES)
def test_table_is_what_the_structure_says(name: str) -> None:
    assert listed(name) == {base: (used, empty) for base, used, empty in holes.holes(arch(name))}


@pytest.mark.parametrize("name", NAMES)
def test_holes_do_not_decode_and_are_named(name: str) -> None:
    tables = arch(name).tables
    for base, (_, empty) in listed(name).items():
        encoding = tables.layouts["VOPD" if base.startswith("VOPD") else base, ""]
        field = {"VOPDX": "OPX", "VOPDY": "OPY"}.get(base, "OP")
        for opcode in empty[:40]:
            word = encoding.value | encoding.field(field).insert(opcode)
            with pytest.raises(DecodeError, match=rf"opcodes?.* {opcode}\b"):
                decode(name, word.to_bytes(16, "little"))


@pytest.mark.parametrize("name", NAMES)
def test_no_opcode_in_use_is_a_hole(name: str) -> None:
    found = listed(name)
    for row in arch(name).tables.rows:
        if row.base in found:  # exports have no opcodes
            assert row.opcode not in found[row.base][1], row.name


def test_a_row_taken_away_opens_a_hole() -> None:
    target = replace(ARCHES["gfx1100"])
    tables = Tables("gfx1100")
    tables.rows = tuple(r for r in tables.rows if r.name != "S_MOV_B32")
    vars(target)["tables"] = tables
    (opened,) = [empty for base, _, empty in holes.holes(target) if base == "SOP1"]
    assert opened[0] == 0
    assert ranges(opened).startswith("0 6-7 ")


def test_overlap_is_refused_at_generation() -> None:
    target = replace(ARCHES["gfx1100"])
    tables = Tables("gfx1100")
    move = next(r for r in tables.rows if r.name == "S_MOV_B32")
    tables.rows = (*tables.rows, replace(move, name="S_MOV_AGAIN_B32"))
    vars(target)["tables"] = tables
    with pytest.raises(SpecError, match="S_MOV_AGAIN_B32"):
        list(holes.holes(target))
