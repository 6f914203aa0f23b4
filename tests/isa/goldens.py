"""Assembler goldens: lines of (bytes, text) that another toolchain agrees on both ways."""

from __future__ import annotations

import json
from functools import cache

from tests.shared import shared_dir


@cache
def pairs(arch: str) -> tuple[tuple[bytes, str], ...]:
    """(code, text) of every golden instruction of `arch`."""
    path = shared_dir() / "isa-spec" / "goldens" / f"asm_{arch}.jsonl"
    rows = map(json.loads, path.read_text().splitlines())
    return tuple((bytes.fromhex(r["hex"]), r["asm"]) for r in rows)


def refused(arch: str) -> tuple[tuple[str, int, str], ...]:
    """(encoding, opcode, name) of table rows that are no instructions of `arch`."""
    path = shared_dir() / "isa-spec" / "goldens" / f"refused_{arch}.jsonl"
    rows = map(json.loads, path.read_text().splitlines())
    return tuple((r["enc"], r["op"], r["name"]) for r in rows)


def report(wrong: list[str]) -> str:
    """A count and the first few, for an assertion message."""
    return f"{len(wrong)} wrong:\n" + "\n".join(wrong[:10])
