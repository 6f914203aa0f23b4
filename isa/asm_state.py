"""What the assembler knows while it reads one instruction: fields set so far, the literal, checks
to run once the modifiers are read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stuntgpu.isa.arch import Arch, InstRow
from stuntgpu.isa.asm_lex import AsmError, Cursor, Value
from stuntgpu.isa.asm_names import PAIRS, register_numbers
from stuntgpu.isa.errata.encodings import UNALIGNED


@dataclass(frozen=True, slots=True)
class Register:
    """A register operand. file "v", "a" or "s" (any scalar operand number); half "", "l" or "h"."""

    file: str
    number: int
    count: int
    column: int
    half: str = ""


class State:
    """One instruction being assembled."""

    def __init__(self, target: Arch, cursor: Cursor, pc: int, fields: dict[str, int]) -> None:
        self.arch, self.cursor, self.pc, self.fields = target, cursor, pc, fields
        self.row: InstRow | None = None
        self.literal: int | None = None
        self.checks: list[Callable[[], None]] = []
        self.banks: dict[tuple[str, int], str] = {}  # bit of the encoding -> "v" or "a"
        self.names = register_numbers(target.name)

    def set(self, field: str, value: int) -> None:
        self.fields[field] = value

    def set_literal(self, value: int, column: int) -> None:
        """One literal serves all operands; a second different one is refused."""
        value &= 0xFFFF_FFFF
        if self.literal is not None and self.literal != value:
            raise AsmError(f"a second literal ({value:#x}); only one is allowed", column)
        self.literal = value
        self.fields["LITERAL"] = value

    def unsigned(self, bits: int, what: str) -> int:
        """An integer that fits a field of `bits`, or raises AsmError."""
        column = self.cursor.token.column
        v = self.cursor.value(what)
        if v.is_float or not 0 <= v.integer < 1 << bits:
            raise AsmError(f"expected {what} from 0 to {(1 << bits) - 1}, found {v.value}", column)
        return v.integer

    def signed(self, bits: int, what: str) -> int:
        """A two's complement integer of `bits`, as field bits."""
        column = self.cursor.token.column
        v = self.cursor.value(what)
        low, high = -(1 << bits - 1), (1 << bits - 1) - 1
        if v.is_float or not low <= v.integer <= high:
            raise AsmError(f"expected {what} from {low} to {high}, found {v.value}", column)
        return v.integer & ((1 << bits) - 1)

    def either(self, bits: int, what: str) -> int:
        """An integer that fits `bits` read as signed or as unsigned, as field bits."""
        column = self.cursor.token.column
        v: Value = self.cursor.value(what)
        if v.is_float or not -(1 << bits - 1) <= v.integer < 1 << bits:
            raise AsmError(f"expected {what} of {bits} bits, found {v.value}", column)
        return v.integer & ((1 << bits) - 1)

    # ---- registers

    def register(self) -> Register | None:
        """The register at the cursor, None when there is something else. Raises AsmError for one
        that does not exist."""
        token = self.cursor.token
        if token.text == "[" and token.kind == "op":
            return self._list()
        if token.kind != "name":
            return None
        name = token.text.lower()
        if name in ("v", "a", "s", "ttmp") and self.cursor.peek().text == "[":
            return self._range(name)
        if name in self.names:
            self.cursor.at += 1
            return Register("s", self.names[name], self._width(name), token.column)
        return self._single(name)

    def _width(self, name: str) -> int:
        """Registers a named scalar stands for; 0: as many as wanted."""
        if name in PAIRS.values():
            return 2
        return 0 if name == "null" or name.startswith(("src_", "shared", "private", "pops", "scc")) else 1

    def _single(self, name: str) -> Register | None:
        token = self.cursor.token
        stem, _, half = name.partition(".")
        if half not in ("", "l", "h"):
            return None
        prefix = "ttmp" if stem.startswith("ttmp") else stem[:1]
        digits = stem[len(prefix) :]
        if prefix not in ("v", "a", "s", "ttmp") or not digits.isdigit():
            return None
        if prefix in ("s", "ttmp") and half:
            return None
        self.cursor.at += 1
        return self._checked(prefix, int(digits), 1, token.column, half)

    def _range(self, prefix: str) -> Register:
        column = self.cursor.token.column
        self.cursor.at += 2
        first = self.cursor.value("a register number").integer
        last = first
        if self.cursor.accept(":"):
            last = self.cursor.value("the last register number").integer
        self.cursor.expect("]")
        if last < first:
            raise AsmError(f"register range {prefix}[{first}:{last}] runs backwards", column)
        return self._checked(prefix, first, last - first + 1, column, "")

    def _list(self) -> Register | None:
        """[s0, s1]: consecutive registers named one by one."""
        start, column = self.cursor.at, self.cursor.token.column
        self.cursor.at += 1
        first = self.register()
        if first is None:
            self.cursor.at = start
            return None
        count = first.count
        while self.cursor.accept(","):
            here = self.cursor.token.column
            more = self.register()
            if more is None or (more.file, more.number) != (first.file, first.number + count):
                raise AsmError("expected the next register of the list", here)
            count += more.count
        self.cursor.expect("]")
        return Register(first.file, first.number, count, column)

    def _checked(self, prefix: str, first: int, count: int, column: int, half: str) -> Register:
        limit = {"v": 256, "a": 256, "s": self.arch.n_sgprs, "ttmp": self.arch.n_ttmp}[prefix]
        is_aligned = self.row is None or self.row.name not in UNALIGNED
        if prefix in ("v", "a") and count > 1 and first % self.arch.vgpr_align and is_aligned:
            raise AsmError(f"first register of several must be a multiple of {self.arch.vgpr_align}", column)
        if first + count > limit:
            raise AsmError(f"no register {prefix}{first + count - 1}; the last is {prefix}{limit - 1}", column)
        if prefix == "ttmp":
            return Register("s", self.arch.ttmp + first, count, column)
        return Register(prefix, first, count, column, half)
