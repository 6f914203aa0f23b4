"""isa/listing.py: sections as labels and lines that assemble again."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stuntgpu.isa.abi.elf import STT_FUNC, STT_OBJECT, ElfFile, Symbol
from stuntgpu.isa.arch import ARCHES
from stuntgpu.isa.asm import assemble
from stuntgpu.isa.listing import (
    CodeSection,
    Label,
    Line,
    code_sections,
    data_text,
    descriptors,
    listing,
    target_id,
)
from tests.isa.goldens import pairs
from tests.shared import shared_dir

NAMES = sorted(ARCHES)


def text(arch: str, section: CodeSection) -> str:
    items = listing(arch, section)
    return "".join(f"{x.name}:\n" if isinstance(x, Label) else f"\t{x.text}\n" for x in items)


def section(source: str, *symbols: Symbol, address: int = 0) -> CodeSection:
    return CodeSection(".text", address, assemble("gfx1100", source), symbols)


def symbol(name: str, value: int, size: int = 0, kind: int = STT_FUNC) -> Symbol:
    return Symbol(name, value, size, kind, 1)


def test_branches_get_labels_symbols_keep_their_names() -> None:
    code = section("s_branch b\na: s_nop 1\nb: s_cbranch_scc0 a\ns_cbranch_scc1 main\nmain: s_endpgm", symbol("main", 16))
    assert text("gfx1100", code) == (
        "\ts_branch L1\nL0:\n\ts_nop 1\nL1:\n\ts_cbranch_scc0 L0\n\ts_cbranch_scc1 main\nmain:\n\ts_endpgm\n"
    )


def test_branch_out_of_the_section_or_into_an_instruction_keeps_its_number() -> None:
    code = section("s_branch 100\ns_branch 1\nv_mov_b32 v0, 0x12345678\ns_branch -9")
    lines = [x for x in listing("gfx1100", code) if isinstance(x, Line)]
    assert [x.text for x in lines] == ["s_branch 100", "s_branch 1", "v_mov_b32_e32 v0, 0x12345678", "s_branch 65527"]
    assert [x.note for x in lines] == ["-> 194", "-> c", "", "-> -10"]
    assert assemble("gfx1100", text("gfx1100", code)) == code.code


def test_branch_to_the_end_of_a_section_has_a_label() -> None:
    assert text("gfx1100", section("s_branch 0")) == "\ts_branch L0\nL0:\n"


def test_labels_do_not_collide_with_symbols() -> None:
    shown = text("gfx1100", section("s_nop 0\ns_branch -2", symbol("L0", 4)))
    assert shown == ".L0:\n\ts_nop 0\nL0:\n\ts_branch .L0\n"


def test_instruction_does_not_reach_past_a_symbol() -> None:
    """The first eight bytes would be one instruction."""
    code = section("v_mov_b32 v0, 0xbf800001", symbol("inner", 4))
    lines = [x for x in listing("gfx1100", code) if isinstance(x, Line)]
    assert [x.text for x in lines] == [".long 0x7e0002ff", "s_nop 1"]
    assert "code ends" in lines[0].note


def test_data_objects_are_not_disassembled() -> None:
    code = section("s_nop 0\n.long 0xbf800001, 5\ns_nop 2", symbol("table", 4, 8, STT_OBJECT), symbol("code", 12))
    assert text("gfx1100", code) == "\ts_nop 0\ntable:\n\t.long 0xbf800001\n\t.long 0x5\ncode:\n\ts_nop 2\n"


def test_padding_is_one_line_and_broken_by_labels() -> None:
    code = section("s_branch 6\n.fill 12, 4, 0xbf9f0000\n.byte 1, 2, 3")
    assert text("gfx1100", code) == (
        "\ts_branch L0\n\t.fill 6, 4, 0xbf9f0000\nL0:\n\t.fill 6, 4, 0xbf9f0000\n\t.byte 0x1, 0x2, 0x3\n"
    )


def test_bytes_print_as_data() -> None:
    assert (data_text(b"\1\2\3\4"), data_text(b"\1\xff")) == (".long 0x4030201", ".byte 0x1, 0xff")


def test_golden_objects_have_target_descriptors_and_code() -> None:
    for path in sorted((shared_dir() / "kernels" / "hsaco").glob("*/*.hsaco")):
        file = ElfFile(path.read_bytes())
        assert target_id(file).startswith(f"amdgcn-amd-amdhsa--{path.parent.name}")
        assert descriptors(file), path
        assert [s.name for s in code_sections(file)] == [".text"]


@pytest.mark.parametrize("name", NAMES)
def test_golden_instructions_in_a_row_assemble_again(name: str) -> None:
    codes = [code for code, _ in pairs(name)]
    random.Random(7).shuffle(codes)
    code = CodeSection(".text", 0x1000, b"".join(codes[:3000]))
    assert assemble(name, text(name, code)) == code.code


@settings(max_examples=200, deadline=None)
@given(code=st.binary(max_size=200), places=st.lists(st.integers(-8, 220), max_size=4), base=st.sampled_from([0, 0x1700]))
def test_any_bytes_and_symbols_are_covered_once_in_order(code: bytes, places: list[int], base: int) -> None:
    symbols = tuple(symbol(f"s{i}", base + at, 4, i % 3) for i, at in enumerate(places))
    lines = [x for x in listing("gfx1201", CodeSection("t", base, code, symbols)) if isinstance(x, Line)]
    assert b"".join(x.code for x in lines) == code
    at = base
    for line in lines:
        assert line.address == at
        at += len(line.code)
