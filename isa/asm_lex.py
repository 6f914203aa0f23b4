"""Tokens and expressions of assembly text.

Units:   columns count characters from 1.
Errors:  AsmError has line, column, the line's text, and what was expected.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce

TOKEN = re.compile(
    r"""(?P<space>[ \t\r]+)
      | (?P<float>(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)
      | (?P<int>0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)
      | (?P<name>[A-Za-z_.$@][\w.$@]*)
      | (?P<string>"[^"]*")
      | (?P<op><<|>>|::|&&|\|\||==|!=|<=|>=|[-+*/%&|^~!()\[\]:,=<>])""",
    re.VERBOSE,
)


class AsmError(ValueError):
    """Text that is no instruction. `str()` shows the line with the place marked."""

    def __init__(self, message: str, column: int = 1, text: str = "", line: int = 0) -> None:
        super().__init__(message)
        self.message, self.column, self.text, self.line = message, column, text, line

    def __str__(self) -> str:
        at = f"line {self.line}, column {self.column}" if self.line else f"column {self.column}"
        mark = f"\n  {self.text}\n  {' ' * (self.column - 1)}^" if self.text else ""
        return f"{at}: {self.message}{mark}"

    def at_line(self, line: int, text: str) -> AsmError:
        return AsmError(self.message, self.column, text, line)


@dataclass(frozen=True, slots=True)
class Token:
    kind: str  # "int", "float", "name", "op", "string", "end"
    text: str
    column: int


def tokenize(text: str) -> list[Token]:
    """Tokens of one statement, ending in an "end" token. Raises AsmError for a stray character."""
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        found = TOKEN.match(text, at)
        if found is None:
            raise AsmError(f"unexpected character {text[at]!r}", at + 1, text)
        kind = found.lastgroup or ""
        if kind != "space":
            tokens.append(Token(kind, found.group(), at + 1))
        at = found.end()
    tokens.append(Token("end", "", len(text) + 1))
    return tokens


@dataclass(frozen=True, slots=True)
class Value:
    """A number read from text.

    value      Python int, or float when `is_float`.
    symbolic   it depends on a label: always encoded as a literal, so that sizes do not depend on it.
    """

    value: int | float
    is_float: bool = False
    symbolic: bool = False

    @property
    def integer(self) -> int:
        return int(self.value)


class Undefined(AsmError):
    """A symbol without a value."""


#: How strongly operators bind, as GNU as and LLVM have it: `1+2<<4` is `1+(2<<4)`, `1|2+4` is `(1|2)+4`.
BINARY: Mapping[str, int] = {
    "||": 1, "&&": 2, "==": 3, "!=": 3, "<": 3, ">": 3, "<=": 3, ">=": 3, "+": 4, "-": 4,
    "|": 5, "^": 5, "&": 5, "*": 6, "/": 6, "%": 6, "<<": 6, ">>": 6,
}  # fmt: skip


def calculate(op: str, a: int, b: int) -> int:
    """Integer operators as GNU as has them; comparisons give -1 for true."""
    simple = {
        "|": a | b, "^": a ^ b, "&": a & b, "+": a + b, "-": a - b, "*": a * b,
        "<<": a << (b & 63), ">>": (a & (1 << 64) - 1) >> (b & 63),
        "==": -(a == b), "!=": -(a != b), "<": -(a < b), ">": -(a > b), "<=": -(a <= b),
        ">=": -(a >= b), "||": int(bool(a or b)), "&&": int(bool(a and b)),
    }  # fmt: skip
    if op in simple:
        return simple[op]
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return quotient if op == "/" else a - b * quotient


def round_up(value: int, granule: int) -> int:
    """alignto(): the least multiple of granule not below value."""
    return -(-value // max(granule, 1)) * max(granule, 1)


#: Functions of expressions -> (least number of arguments, what they calculate).
FUNCTIONS: Mapping[str, tuple[int, Callable[..., int]]] = {
    "max": (1, lambda *args: max(args)), "or": (1, lambda *args: reduce(int.__or__, args)), "alignto": (2, round_up),
}  # fmt: skip


class Cursor:
    """Reads a token list from left to right, with backtracking by `at`. `functions`: as FUNCTIONS."""

    def __init__(self, tokens: list[Token], symbols: Mapping[str, int | None],
                 functions: Mapping[str, tuple[int, Callable[..., int]]] = FUNCTIONS) -> None:
        self.tokens, self.symbols, self.at, self.functions = tokens, symbols, 0, functions
        self.in_bars = False  # inside |x|: a bar ends an expression

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def peek(self, ahead: int = 1) -> Token:
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)]

    def fail(self, expected: str) -> AsmError:
        seen = f"{self.token.text!r}" if self.token.kind != "end" else "the end of the line"
        return AsmError(f"expected {expected}, found {seen}", self.token.column)

    def accept(self, text: str) -> bool:
        if self.token.text == text and self.token.kind != "string":
            self.at += 1
            return True
        return False

    def expect(self, text: str, what: str = "") -> None:
        if not self.accept(text):
            raise self.fail(what or f"'{text}'")

    def name(self, what: str) -> str:
        if self.token.kind != "name":
            raise self.fail(what)
        self.at += 1
        return self.tokens[self.at - 1].text

    def adjacent(self) -> bool:
        """Whether the current token follows the one before it without a space."""
        before = self.tokens[self.at - 1]
        return before.column + len(before.text) == self.token.column

    # ---- expressions

    def value(self, what: str = "a number") -> Value:
        """An expression."""
        return self._binary(0, what)

    def _binary(self, least: int, what: str) -> Value:
        left = self._unary(what)
        while BINARY.get(self.token.text, -1) > least and self.token.kind == "op":
            if self.in_bars and self.token.text == "|":
                break
            op = self.token
            self.at += 1
            right = self._binary(BINARY[op.text], what)
            left = self._combine(op, left, right)
        return left

    def _combine(self, op: Token, a: Value, b: Value) -> Value:
        if a.is_float or b.is_float:
            raise AsmError("operators work on integers", op.column)
        if op.text in "/%" and b.value == 0:
            raise AsmError("division by zero", op.column)
        result = calculate(op.text, a.integer, b.integer)
        return Value(result, symbolic=a.symbolic or b.symbolic)

    def _unary(self, what: str) -> Value:
        if self.accept("-"):
            v = self._unary(what)
            return Value(-v.value, v.is_float, v.symbolic)
        if self.accept("+"):
            return self._unary(what)
        if self.accept("~"):
            v = self._unary(what)
            return Value(~v.integer, symbolic=v.symbolic)
        if self.accept("!"):
            v = self._unary(what)
            return Value(int(not v.integer), symbolic=v.symbolic)
        return self._primary(what)

    def _integer(self, token: Token) -> int:
        """0x, 0b, a leading 0 for octal, or decimal."""
        text = token.text
        try:
            return int(text, 8) if len(text) > 1 and text.isdigit() and text[0] == "0" else int(text, 0)
        except ValueError:
            raise AsmError(f"{text!r} is not an octal number", token.column) from None

    def _primary(self, what: str) -> Value:
        token = self.token
        if token.kind == "int":
            self.at += 1
            return Value(self._integer(token))
        if token.kind == "float":
            self.at += 1
            return Value(float(token.text), is_float=True)
        if self.accept("("):
            v = self._binary(0, what)
            self.expect(")")
            return v
        if token.kind == "name" and token.text in self.functions and self.peek().text == "(":
            return self._call(token)
        if token.kind == "name" and token.text in self.symbols:
            self.at += 1
            known = self.symbols[token.text]
            return Value(0 if known is None else known, symbolic=True)
        if token.kind == "name":
            raise Undefined(f"expected {what}, found {token.text!r}", token.column)
        raise self.fail(what)


    def _call(self, token: Token) -> Value:
        """A function of integers."""
        self.at += 2
        args = [self._binary(0, "a number")]
        while self.accept(","):
            args.append(self._binary(0, "a number"))
        self.expect(")")
        least, calculated = self.functions[token.text]
        if len(args) < least or any(a.is_float for a in args):
            raise AsmError(f"{token.text}() takes {least} integers", token.column)
        return Value(calculated(*(a.integer for a in args)), symbolic=any(a.symbolic for a in args))


def float_bits(value: float, bits: int) -> int:
    """IEEE bits of a Python float; raises OverflowError when it does not fit."""
    form, as_int = {16: ("<e", "<H"), 32: ("<f", "<I"), 64: ("<d", "<Q")}[bits]
    result: int = struct.unpack(as_int, struct.pack(form, value))[0]
    return result
