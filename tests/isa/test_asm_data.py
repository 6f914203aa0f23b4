"""Directives that make bytes, and expressions: what they make, and what is refused where."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stuntgpu.isa.asm_data import MAX_BYTES, Unplaced, make_directive
from stuntgpu.isa.asm_lex import AsmError, Cursor, calculate, tokenize


def made(text: str, pc: int = 0, is_code: bool = False) -> bytes:
    return make_directive(text.split()[0], text, is_code)(pc, {".": pc, "start": 0x10})


#: As llvm-mc 22 assembles them.
@pytest.mark.parametrize(("text", "expected"), [
    (".byte 1, -128, 255", "0180ff"), (".short 0x1234", "3412"), (".long -1", "ffffffff"), (".quad 1<<63", "0000000000000080"),
    (".octa 1", "01" + 15 * "00"), (".long", ""), (".float 1.5, -2", "0000c03f000000c0"), (".double 1", "000000000000f03f"),
    (".fill 2, 5, -1", "ffffffff00ffffffff00"), (".fill 3", "000000"), (".zero 3, 7", "070707"), (".skip 2", "0000"),
    (r'.asciz "p","r"', "70007200"), (r'.ascii "c\101\n\x414\""', "63410a1422"), (".string \"\"", "00"),
])  # fmt: skip
def test_bytes_are_the_ones_llvm_makes(text: str, expected: str) -> None:
    assert made(text).hex() == expected


def test_a_point_is_the_place_of_each_value() -> None:
    assert made(".long .-start, .-start", 0x20) == bytes([0x10, 0, 0, 0, 0x14, 0, 0, 0])


@pytest.mark.parametrize(("text", "pc", "is_code", "expected"), [
    (".align 8", 1, False, 7 * "00"), (".p2align 2", 1, False, "000000"), (".p2align 3", 4, True, "000080bf"),
    (".p2align 3", 8, True, ""), (".p2align 3, 7, 4", 1, False, ""), (".p2align 2, 7", 2, False, "0707"),
    (".balign 4, 7", 2, True, "0707"), (".p2align 3, , 3", 4, True, ""), (".p2alignl 3, 0xbf9f0000", 4, True, "00009fbf"),
])  # fmt: skip
def test_padding_is_zero_in_data_and_s_nop_in_code(text: str, pc: int, is_code: bool, expected: str) -> None:
    assert made(text, pc, is_code).hex() == expected


@pytest.mark.parametrize(("text", "column", "message"), [
    (".byte 256", 7, "does not fit 1 bytes"), (".byte 0, -129", 10, "does not fit"), (".long 1.5", 7, "expected an integer"),
    (".long 1 2", 9, "expected ','"), (".long 1,", 9, "expected a number"), (".align", 7, "expected a number"),
    (".balign 3", 9, "not a power of two"), (".p2align 32", 10, "0 to 31"), (".zero -1", 7, "cannot be -1"),
    (f".zero {MAX_BYTES + 1}", 1, "at most"), (".fill 1, 9", 10, "0 to 8 bytes"), (".fill", 6, "expected a number"),
    (".float 1e99", 8, "does not fit 32 bits"), (r'.ascii "a\q"', 10, "unknown escape"), (r'.ascii "\777"', 9, "more than a byte"),
    (".ascii 5", 8, "string in quotes"), (".asciz \"a\" \"b\"", 11, "expected ','"), (".lonng 1", 1, "did you mean .long?"),
])  # fmt: skip
def test_what_cannot_be_made_is_refused_where_it_stands(text: str, column: int, message: str) -> None:
    with pytest.raises(AsmError, match=message) as caught:
        made(text)
    assert caught.value.column == column


def test_values_of_symbols_without_a_place_are_not_judged_yet() -> None:
    directive = make_directive(".byte", ".byte later-1000")
    assert len(directive(0, Unplaced({"later": None}, 4))) == 1
    with pytest.raises(AsmError):
        directive(0, {"later": 4})


INTEGERS = st.integers(-(1 << 40), 1 << 40)
LEVELS = (("||",), ("&&",), ("==", "!=", "<", ">", "<=", ">="), ("+", "-"), ("|", "^", "&"), ("*", "/", "%", "<<", ">>"))


def expressions() -> st.SearchStrategy[tuple[str, int, int]]:
    """(text, value, level of the weakest operator outside parentheses), written with the fewest parentheses."""
    leaves = INTEGERS.filter(lambda v: v >= 0).map(lambda v: (hex(v) if v % 3 else str(v), v, len(LEVELS)))

    def join(parts: tuple[tuple[str, int, int], int, int, tuple[str, int, int]]) -> tuple[str, int, int]:
        (left, a, la), level, which, (right, b, lb) = parts
        op = LEVELS[level][which % len(LEVELS[level])]
        if (op in "/%" and b == 0) or op in ("<<", ">>"):
            op, level = "+", 3
        left = f"({left})" if la < level else left
        right = f"({right})" if lb <= level else right
        return f"{left} {op}{right}", calculate(op, a, b), level

    return st.recursive(leaves, lambda e: st.tuples(e, st.integers(0, 5), st.integers(0, 5), e).map(join), max_leaves=12)


@given(expressions())
def test_operators_bind_by_their_levels_and_from_the_left(made: tuple[str, int, int]) -> None:
    text, value, _ = made
    cursor = Cursor(tokenize(text), {})
    assert cursor.value().integer == value
    assert cursor.token.kind == "end"


@given(st.text(alphabet="0123456789abxX.+-*/%<>=!|&()~\"', $@_\\", max_size=20), st.sampled_from([".long", ".fill", ".align", ".ascii", ".float"]))
def test_any_text_makes_bytes_or_an_error_with_a_place(text: str, word: str) -> None:
    line = f"{word} {text}"
    try:
        made, column = make_directive(word, line)(4, {}), 1
    except AsmError as error:
        made, column = b"", error.column
    assert len(made) <= MAX_BYTES
    assert 1 <= column <= len(line) + 1


@pytest.mark.parametrize(("text", "value"), [("max(7)", 7), ("max(1, 9, 4)", 9), ("or(8)", 8), ("or(1, 2, 4)", 7), ("alignto(65, 64)", 128)])
def test_functions_take_one_number_or_many(text: str, value: int) -> None:
    assert Cursor(tokenize(text), {}).value().integer == value
