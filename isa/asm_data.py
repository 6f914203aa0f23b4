"""Directives that make bytes: numbers, strings, filling, alignment.

Units:   bytes.
Errors:  AsmError for values that do not fit, alignments that are none, escapes nobody knows.
Source:  GNU as manual, "Assembler Directives"; where LLVM differs (.align counts bytes, .fill has at most
         eight of which four are the value) as measured.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from stuntgpu.isa.asm_lex import AsmError, Cursor, Value, float_bits, tokenize

Symbols = Mapping[str, "int | None"]
Directive = Callable[[int, Symbols], bytes]

SIZES = {".byte": 1, ".short": 2, ".hword": 2, ".2byte": 2, ".long": 4, ".int": 4, ".4byte": 4,
         ".word": 4, ".quad": 8, ".8byte": 8, ".octa": 16}  # fmt: skip
_FLOATS = {".float": 32, ".single": 32, ".double": 64}
#: Alignment directives -> (the number is a power of two, bytes of the padding's unit).
ALIGNMENTS = {".align": (False, 1), ".balign": (False, 1), ".p2align": (True, 1), ".p2alignw": (True, 2),
              ".p2alignl": (True, 4)}  # fmt: skip
_STRINGS = {".ascii": b"", ".asciz": b"\0", ".string": b"\0"}
_FILLS = (".fill", ".zero", ".space", ".skip")
WORDS = (*SIZES, *_FLOATS, *ALIGNMENTS, *_STRINGS, *_FILLS)
#: Directives whose size depends on values.
SIZED_BY_VALUES = frozenset(_FILLS)

S_NOP = 0xBF800000
MAX_POWER = 31
#: Bytes that one directive may make: a mistyped count is told from a large table.
MAX_BYTES = 1 << 26
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]+)|([0-7]{1,3})|(.))", re.DOTALL)
_ESCAPED = {"b": 8, "f": 12, "n": 10, "r": 13, "t": 9, '"': 34, "\\": 92}


class Unplaced(Mapping[str, "int | None"]):
    """Symbols while sizes are measured: those whose place is not known yet are near, so that what is
    calculated from them is not judged."""

    def __init__(self, symbols: Symbols, near: int) -> None:
        self.symbols, self.near = symbols, near

    def __contains__(self, name: object) -> bool:
        return name in self.symbols

    def __getitem__(self, name: str) -> int:
        value = self.symbols[name]
        return self.near if value is None else value

    def __iter__(self) -> Iterator[str]:
        return iter(self.symbols)

    def __len__(self) -> int:
        return len(self.symbols)


class _Here(Unplaced):
    """Symbols with `.`, the place of the value that is read. `near` does not matter: nothing is None here."""

    def __getitem__(self, name: str) -> int:
        return self.near if name == "." else self.symbols[name] or 0


def make_directive(word: str, text: str, is_code: bool = True, more: Iterable[str] = ()) -> Directive:
    """What the directive `word` of a line makes. is_code: padding is s_nop; more: other names to suggest."""
    if word in SIZES:
        return _data(text, SIZES[word])
    if word in _FLOATS:
        return _floats(text, _FLOATS[word])
    if word in ALIGNMENTS:
        return _alignment(text, word, is_code)
    if word in _FILLS:
        return _fill(text, word)
    if word in _STRINGS:
        made = strings(text, _STRINGS[word])
        return lambda pc, symbols: made
    near = difflib.get_close_matches(word, (*WORDS, *more), n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise AsmError(f"unknown directive {word!r}{hint}", text.index(".") + 1)


# ---------------------------------------------------------------- values


def values(text: str, symbols: Symbols, step: int = 0, pc: int = 0) -> list[tuple[int, Value]]:
    """(column, value) of each expression after the directive; `.` moves on by `step` bytes."""
    cursor = Cursor(tokenize(text), symbols)
    cursor.at = 1
    out: list[tuple[int, Value]] = []
    while cursor.token.kind != "end":
        if out:
            cursor.expect(",", "',' or the end of the line")
        if "." in symbols and step:
            cursor.symbols = _Here(symbols, pc + step * len(out))
        column = cursor.token.column
        out.append((column, cursor.value()))
    return out


def integers(text: str, symbols: Symbols, least: int, most: int) -> list[tuple[int, int]]:
    """(column, integer) of each expression, `least` to `most` of them."""
    found = values(text, symbols)
    if len(found) < least:
        raise AsmError("expected a number, found the end of the line", len(text) + 1)
    if len(found) > most:
        raise AsmError(f"at most {most} numbers", found[most][0])
    for column, value in found:
        if value.is_float:
            raise AsmError("expected an integer", column)
    return [(column, value.integer) for column, value in found]


def _data(text: str, size: int) -> Directive:
    bits = 8 * size

    def make(pc: int, symbols: Symbols) -> bytes:
        out = b""
        for column, value in values(text, symbols, size, pc):
            if value.is_float:
                raise AsmError("expected an integer (.float, .double for others)", column)
            unsure = value.symbolic and isinstance(symbols, Unplaced)
            if not unsure and not -(1 << bits - 1) <= value.integer < 1 << bits:
                raise AsmError(f"{value.integer} does not fit {size} bytes", column)
            out += (value.integer & ((1 << bits) - 1)).to_bytes(size, "little")
        return out

    return make


def _floats(text: str, bits: int) -> Directive:
    def make(pc: int, symbols: Symbols) -> bytes:
        out = b""
        for column, value in values(text, symbols):
            try:
                out += float_bits(float(value.value), bits).to_bytes(bits // 8, "little")
            except OverflowError:
                raise AsmError(f"{value.value} does not fit {bits} bits", column) from None
        return out

    return make


# ---------------------------------------------------------------- room


def alignment_of(text: str, symbols: Symbols) -> int:
    """Bytes that an alignment directive asks for."""
    word = text.split(maxsplit=1)[0].lower()
    (column, amount), *_ = integers(_complete(text), symbols, 1, 3)
    is_power, _ = ALIGNMENTS[word]
    if is_power and not 0 <= amount <= MAX_POWER:
        raise AsmError(f"expected a power of two's exponent, 0 to {MAX_POWER}, found {amount}", column)
    if is_power:
        return 1 << amount
    if amount < 0 or amount & (amount - 1) or amount >> MAX_POWER > 1:
        raise AsmError(f"alignment {amount} is not a power of two", column)
    return max(amount, 1)


def _complete(text: str) -> str:
    """With 0 where the padding's value is left out."""
    return re.sub(r",\s*,", ",0,", text)


def _alignment(text: str, word: str, is_code: bool) -> Directive:
    """AMOUNT [, what the padding is made of [, the most padding there may be]]"""
    unit = ALIGNMENTS[word][1]
    has_value = "," in text and not re.match(r"[^,]*,\s*(,|$)", text)

    def make(pc: int, symbols: Symbols) -> bytes:
        gap = -pc % alignment_of(text, symbols)
        found = [v for _, v in integers(_complete(text), symbols, 1, 3)]
        if len(found) == 3 and gap > found[2]:
            return b""
        _check_room(gap, text)
        if is_code and not has_value:
            return bytes(gap % 4) + S_NOP.to_bytes(4, "little") * (gap // 4)
        value = found[1] if has_value else 0
        return bytes(gap % unit) + (value & ((1 << 8 * unit) - 1)).to_bytes(unit, "little") * (gap // unit)

    return make


def _check_room(size: int, text: str) -> None:
    if size > MAX_BYTES:
        raise AsmError(f"{size} bytes by one directive, at most {MAX_BYTES} are taken", text.index(".") + 1)


def _fill(text: str, word: str) -> Directive:
    def make(pc: int, symbols: Symbols) -> bytes:
        found = integers(text, symbols, 1, 3 if word == ".fill" else 2)
        column, count = found[0]
        if count < 0:
            raise AsmError(f"a count cannot be {count}", column)
        rest = [v for _, v in found[1:]]
        if word != ".fill":
            _check_room(count, text)
            return bytes([rest[0] & 255 if rest else 0]) * count
        size = rest[0] if rest else 1
        if not 0 <= size <= 8:
            raise AsmError(f"the size of .fill is 0 to 8 bytes, not {size}", found[1][0])
        _check_room(count * size, text)
        value = (rest[1] if len(rest) > 1 else 0) & 0xFFFF_FFFF
        return value.to_bytes(8, "little")[:size] * count

    return make


# ---------------------------------------------------------------- strings


def quoted(text: str) -> list[tuple[int, str]]:
    """(column of the first character, what is between the quotes) of strings after a directive, with commas."""
    at = len(text) - len(text.lstrip())
    at += len(text[at:].split(maxsplit=1)[0])
    out: list[tuple[int, str]] = []
    while text[at:].strip():
        if out and (comma := re.compile(r"\s*,").match(text, at)) is not None:
            at = comma.end()
        elif out:
            raise AsmError("expected ',' or the end of the line", at + 1)
        at += len(text[at:]) - len(text[at:].lstrip())
        found = _STRING.match(text, at)
        if found is None:
            raise AsmError("expected a string in quotes", at + 1)
        out.append((found.start(1) + 1, found.group(1)))
        at = found.end()
    return out


def strings(text: str, end: bytes) -> bytes:
    """Bytes of quoted strings, each with `end` after it."""
    return b"".join(_unescaped(body, column) + end for column, body in quoted(text))


def _unescaped(body: str, column: int) -> bytes:
    out, at = b"", 0
    for found in _ESCAPE.finditer(body):
        out += body[at : found.start()].encode()
        digits, octal, letter = found.group(1), found.group(2), found.group(3) or ""
        if letter and letter not in _ESCAPED:
            raise AsmError(f"unknown escape {found.group()!r}", column + found.start())
        value = int(digits, 16) & 255 if digits else int(octal, 8) if octal else _ESCAPED[letter]
        if value > 255:
            raise AsmError(f"{found.group()!r} is more than a byte", column + found.start())
        out += bytes([value])
        at = found.end()
    return out + body[at:].encode()
