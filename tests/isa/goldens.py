"""Assembler goldens: lines of (bytes, text) that another toolchain agrees on both ways."""

from __future__ import annotations

import json
from functools import cache

from stuntgpu.isa.arch import ARCHES
from stuntgpu.isa.gen import additions
from tests.shared import shared_dir


@cache
def pairs(arch: str) -> tuple[tuple[bytes, str], ...]:
    """(code, text) of every golden instruction of `arch`; of an extension, those of what it extends and of its donor."""
    extended = ARCHES[arch].extends
    return (*pairs(extended), *added(arch)) if extended else recorded(arch)


def added(arch: str) -> tuple[tuple[bytes, str], ...]:
    """Pairs of the instructions that `arch` adds: recorded for the architecture whose XML they come from."""
    (donor,) = (a.name for a in ARCHES.values() if a.family == additions.SOURCES[arch])
    names = {name.lower() for name in additions.NAMES[arch]}
    texts = ((code, text.replace("_num_", "_")) for code, text in recorded(donor))
    return tuple((code, text) for code, text in texts if text.split()[0] in names)


def recorded(arch: str) -> tuple[tuple[bytes, str], ...]:
    """(code, text) of the lines of one file."""
    path = shared_dir() / "isa-spec" / "goldens" / f"asm_{arch}.jsonl"
    rows = map(json.loads, path.read_text().splitlines())
    return tuple((bytes.fromhex(r["hex"]), r["asm"]) for r in rows)


def refused(arch: str) -> tuple[tuple[str, int, str], ...]:
    """(encoding, opcode, name) of table rows that are no instructions of `arch`."""
    path = shared_dir() / "isa-spec" / "goldens" / f"refused_{ARCHES[arch].extends or arch}.jsonl"
    rows = map(json.loads, path.read_text().splitlines())
    return tuple((r["enc"], r["op"], r["name"]) for r in rows)


def report(wrong: list[str]) -> str:
    """A count and the first few, for an assertion message."""
    return f"{len(wrong)} wrong:\n" + "\n".join(wrong[:10])
