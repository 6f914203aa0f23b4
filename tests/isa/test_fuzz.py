"""Random bytes: refused with a reason, or given back exactly; text too, but for bits listed as passed over."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stuntgpu.isa.arch import ARCHES, arch
from stuntgpu.isa.asm import AsmError, assemble_one
from stuntgpu.isa.decode import DecodeError, decode, encode
from stuntgpu.isa.disasm import MODIFIERS, PRINT, disassemble
from stuntgpu.isa.errata import ignored
from stuntgpu.isa.inst import Inst
from stuntgpu.isa.shown import MODIFIERS as SHOWN_MODIFIERS
from stuntgpu.isa.shown import SLOTS, ignored_bits
from tests.arches import WHOLE
from tests.isa.goldens import report
from tests.isa.words import N_BYTES, words

NAMES = sorted(ARCHES)


def decoded(name: str, code: bytes) -> Inst | None:
    """The instruction, None when it is refused with a reason."""
    try:
        return decode(name, code)
    except DecodeError as error:
        if not error.reason:
            raise
        return None


def fault(name: str, code: bytes) -> str:
    """What is wrong with how `code` decodes, prints and assembles; "" when nothing is."""
    inst = decoded(name, code)
    if inst is None:
        return ""
    code = code[: inst.size]
    if encode(inst) != code:
        return f"{code.hex()} encodes back to {encode(inst).hex()}"
    text = disassemble(inst)
    try:
        again = assemble_one(name, text)
    except AsmError as error:
        listed = any(re.fullmatch(pattern, error.message) for pattern, _ in ignored.UNASSEMBLED)
        return "" if listed else f"{code.hex()} {text}: {error.message}"
    return "" if same(inst, code, again) else f"{code.hex()} {text}: assembles to {again.hex()}"


def same(inst: Inst, code: bytes, again: bytes) -> bool:
    difference = int.from_bytes(code, "little") ^ int.from_bytes(again, "little")
    return len(again) == len(code) and not difference & ~ignored_bits(inst)


def faults(name: str, n: int, seed: int) -> list[str]:
    return [f for f in (fault(name, code) for code in words(name, n, seed)) if f]


@pytest.mark.parametrize("name", NAMES)
def test_random_words_are_refused_or_come_back(name: str) -> None:
    wrong = faults(name, 8000, 1)
    assert not wrong, report(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("name", WHOLE)
def test_many_random_words_are_refused_or_come_back(name: str) -> None:
    wrong = faults(name, 400_000, 2)
    assert not wrong, report(wrong)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=1000, deadline=None)
@given(code=st.binary(min_size=N_BYTES, max_size=N_BYTES))
def test_any_bytes_are_refused_or_come_back(name: str, code: bytes) -> None:
    assert not fault(name, code)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=500, deadline=None)
@given(seed=st.integers(0, 1 << 32), cut=st.integers(0, N_BYTES))
def test_nothing_past_the_end_is_read(name: str, seed: int, cut: int) -> None:
    """What decodes from a piece decodes to the same whatever follows it."""
    (code,) = words(name, 1, seed)
    piece = decoded(name, code[:cut])
    if piece is None:
        return
    assert piece.size <= cut
    if piece.size + 8 <= cut:  # four words may be one instruction where two are
        assert decoded(name, code) == decoded(name, code[:cut] + bytes(N_BYTES))


def test_offset_before_the_code_is_refused() -> None:
    with pytest.raises(DecodeError, match="before the code"):
        decode("gfx1100", bytes(8), -4)


def test_every_kind_of_operand_and_modifier_says_which_bits_it_shows() -> None:
    assert SLOTS.keys() == PRINT.keys()
    assert SHOWN_MODIFIERS.keys() | {"op_sel"} == MODIFIERS.keys()


@pytest.mark.parametrize(("name", "code", "reason"), [
    ("gfx1100", "000003d5000200a0", "V_ADD_F32: does not use NEG, which cannot be 5"),
    ("gfx1100", "040144dc0c200000", "does not use SADDR, which cannot be 0"),
    ("gfx1100", "0c1887d40000c000", "does not use VDST, which cannot be 12"),
    ("gfx1100", "02008abf", "does not use SIMM16, which cannot be 2"),
    ("gfx1100", "ee1ce1ea41be5a09", "SRSRC cannot be 26"),
    ("gfx1201", "d0800cf40c00009c", "reserved|does not use NV"),
    ("gfx942", "00031ad102500902", "SDST 3 is not a multiple of 2"),
    ("gfx1100", "fa4e947eb9b61dea", "DPP_CTRL cannot be 0x1b6"),
])  # fmt: skip
def test_fields_without_use_are_refused_by_name(name: str, code: str, reason: str) -> None:
    with pytest.raises(DecodeError, match=reason):
        decode(name, bytes.fromhex(code))


@pytest.mark.parametrize(("name", "code", "plain", "text"), [
    ("gfx1100", "00003cd782040202", "00003cd782040200", "v_lshlrev_b64 v[0:1], 2, v[2:3]"),
    ("gfx1100", "200062dc10282026", "200062dc10282000", "global_store_b8 v16, v40, s[32:33] offset:32"),
    ("gfx1100", "000045dc50000000", "000045dc00000000", "scratch_load_i8 v0, off, s0"),
])  # fmt: skip
def test_bits_that_compilers_leave_are_passed_over_and_listed(name: str, code: str, plain: str, text: str) -> None:
    inst = decode(name, bytes.fromhex(code))
    assert disassemble(inst) == text
    assert encode(inst).hex() == code
    assert assemble_one(name, text).hex() == plain
    assert ignored_bits(inst)


def test_rows_of_the_list_name_fields_that_exist() -> None:
    for row in ignored.ROWS:
        for base in row.bases.split():
            tables = [arch(a).tables for a in row.arches or NAMES]
            rows = [r for t in tables for r in t.rows if r.base == base or r.base.removesuffix("X") == base]
            known = {f.name for t in tables for e in t.encodings.values() if e.base in (base, base[:4]) for f in e.fields}
            assert rows, row
            assert known & set(row.fields.split()), row
