"""Python values to the tokens the assembler reads.

Builders do not write text and parse it again, nor do they repeat what the assembler knows: a value
becomes the tokens its text would have, exactly, and the assembler's own readers and checks do the
rest. Each token's column is the number of the place (operand or keyword) it came from, so that an
AsmError points back at the Python value.

Errors:  TypeError for a value that can stand at no operand or keyword.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from numbers import Integral, Real

from stuntgpu.isa.asm_lex import Token, float_bits, tokenize
from stuntgpu.isa.asm_names import literal_kind
from stuntgpu.isa.build_values import (
    Call,
    Constant,
    Distance,
    Extended,
    Label,
    Registers,
    Signed,
    Special,
)
from stuntgpu.isa.syntax_types import Slot

Tokens = list[Token]


def op(text: str, place: int) -> Token:
    return Token("op", text, place)


def name(text: str, place: int) -> Token:
    return Token("name", text, place)


def integer(value: int, place: int) -> Tokens:
    sign = [op("-", place)] if value < 0 else []
    return [*sign, Token("int", str(abs(value)), place)]


def real(value: float, slot: Slot, place: int) -> Tokens:
    """A float; text has no infinities and NaNs, so those are their bits (of f64 the high half)."""
    if math.isfinite(value):
        sign = [op("-", place)] if math.copysign(1, value) < 0 else []
        return [*sign, Token("float", repr(abs(value)), place)]
    kind = literal_kind(slot.fmt, slot.bits)
    if kind == "f64":
        return integer(float_bits(value, 64) >> 32, place)
    if kind.startswith("bf16"):
        return integer(float_bits(value, 32) >> 16, place)
    return integer(float_bits(value, 16 if "16" in kind else 32), place)


def bracketed(items: Iterable[Tokens], place: int, opening: str = "[", closing: str = "]") -> Tokens:
    out = [op(opening, place)]
    for i, item in enumerate(items):
        out += [op(",", place), *item] if i else item
    return [*out, op(closing, place)]


def registers(x: Registers, place: int) -> Tokens:
    if x.count == 1:
        return [name(repr(x), place)]
    first, last = integer(x.first, place), integer(x.first + x.count - 1, place)
    return [name(x.file, place), op("[", place), *first, op(":", place), *last, op("]", place)]


def signed(x: Signed, slot: Slot, place: int) -> Tokens:
    out = operand(x.operand, slot, place)
    for word, wanted in (("abs", x.absolute), ("neg", x.negative)):
        if wanted:
            out = [name(word, place), *bracketed([out], place, "(", ")")]
    return out


def constant(x: Constant, slot: Slot, place: int) -> Tokens:
    plain = operand(x.value, slot, place)
    return [name("lit", place), *bracketed([plain], place, "(", ")")] if x.how == "lit" else plain


def call(x: Call, place: int) -> Tokens:
    return [name(x.name, place), *bracketed((argument(a, place) for a in x.arguments), place, "(", ")")]


def argument(x: int | str, place: int) -> Tokens:
    if not isinstance(x, str):
        return integer(x, place)
    is_mask = not set(x) - set("01pi")
    return [Token("string", f'"{x}"', place) if is_mask else name(x, place)]


def distance(x: Distance, place: int) -> Tokens:
    out = [name(x.end.name, place), op("-", place), name(x.start.name, place)]
    return [*out, op("+", place), *integer(x.offset, place)] if x.offset else out


def symbolic(text: str, place: int) -> Tokens:
    """Text such as mrt0 or UC_VERSION_GFX11|UC_VERSION_W32_BIT."""
    return [Token(t.kind, t.text, place) for t in tokenize(text)[:-1]]


def operand(x: object, slot: Slot, place: int) -> Tokens:
    """Tokens of the value at an operand that reads like `slot`. Raises TypeError."""
    if isinstance(x, Registers):
        return registers(x, place)
    if isinstance(x, Special | Label):
        return [name(x.name, place)]
    if isinstance(x, Signed):
        return signed(x, slot, place)
    if isinstance(x, Extended):
        return [name("sext", place), *bracketed([operand(x.operand, slot, place)], place, "(", ")")]
    if isinstance(x, Constant):
        return constant(x, slot, place)
    if isinstance(x, Call):
        return call(x, place)
    if isinstance(x, Distance):
        return distance(x, place)
    return plain(x, slot, place)


def plain(x: object, slot: Slot, place: int) -> Tokens:
    """Tokens of a number (numpy's too), a text or a list of registers."""
    if isinstance(x, bool):
        raise TypeError("a bool is no operand")
    if isinstance(x, Integral):
        return integer(int(x), place)
    if isinstance(x, Real):
        return real(float(x), slot, place)
    if isinstance(x, str):
        return symbolic(x, place)
    if isinstance(x, Sequence) and x and all(isinstance(r, Registers) for r in x):
        return bracketed((registers(r, place) for r in x), place)
    raise TypeError(f"expected a register, a number or a name, got {type(x).__name__}")


# ---------------------------------------------------------------- keywords

#: Modifier kinds that are a word alone, or a word with 1.
BARE, ONE = frozenset({"flag"}), frozenset({"one", "dpp8_fi"})
#: Modifier kinds whose values have names.
NAMED = frozenset({"th", "scope", "dim", "sdwa_sel", "sdwa_unused"})
#: Modifier kinds whose names stand in brackets.
FORMATS = frozenset({"format", "split_format"})
LISTS = frozenset({"list", "op_sel", "dpp8"})


def value_type(kind: str, word: str) -> str:
    """Annotation of a keyword: what Python value its modifier takes."""
    if kind in BARE or kind in ONE or word in ("row_mirror", "row_half_mirror"):
        return "bool"
    if kind in LISTS or word == "quad_perm":
        return "Sequence[int]"
    if kind in NAMED:
        return "int | str"
    if kind in FORMATS:
        return "int | str | Sequence[str]"
    return "int | Call" if kind == "swizzle" else "int"


def keyword(word: str, value: object, kind: str, place: int) -> Tokens:
    """Tokens of a modifier, none for False. Raises TypeError."""
    wanted = value_type(kind, word)
    if wanted == "bool":
        if not isinstance(value, int) or value not in (0, 1):
            raise TypeError(f"expected True or False, got {value!r}")
        one = [op(":", place), *integer(1, place)] if kind in ONE else []
        return [name(word, place), *one] if value else []
    return [name(word, place), op(":", place), *keyword_value(value, kind, wanted, place)]


def keyword_value(value: object, kind: str, wanted: str, place: int) -> Tokens:
    if isinstance(value, Integral) and not isinstance(value, bool) and "int" in wanted.split(" | "):
        return integer(int(value), place)
    if kind in FORMATS and isinstance(value, str | list | tuple):
        return bracketed(([name(v, place)] for v in ([value] if isinstance(value, str) else value)), place)
    if isinstance(value, str) and "str" in wanted:
        return [name(value, place)]
    if isinstance(value, Call) and "Call" in wanted:
        return call(value, place)
    if isinstance(value, Sequence) and not isinstance(value, str) and wanted == "Sequence[int]":
        return bracketed((integer(int(v), place) for v in value), place)
    raise TypeError(f"expected {wanted}, got {value!r}")
