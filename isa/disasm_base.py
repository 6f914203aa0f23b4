"""What all printers of disassembly share."""

from __future__ import annotations

from collections.abc import Callable, Mapping

Fields = Mapping[str, int]
Print = Callable[[Fields], str]


def sext(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


def signed_hex(value: int) -> str:
    return f"-{-value:#x}" if value < 0 else hex(value)
