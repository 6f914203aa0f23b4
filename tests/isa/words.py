"""Random machine words, seeded: pure noise, and real opcodes in every form with random fields."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache

from stuntgpu.isa.arch import EncodingRow, arch

N_BYTES = 16
#: Numbers of a first source that announce something.
MARKS = (233, 234, 249, 250, 255)


@cache
def layouts(name: str) -> tuple[tuple[EncodingRow, int], ...]:
    """(layout, its opcode bits) of every row; pairs once for each opcode of their first half."""
    tables = arch(name).tables
    out: list[tuple[EncodingRow, int]] = []
    for row in tables.rows:
        encoding = tables.encodings[row.encoding]
        field = {"VOPDX": "OPX", "VOPDY": "OPY"}.get(row.base, "OP")
        out.append((encoding, encoding.field(field).insert(row.opcode) if encoding.has(field) else 0))
    return tuple(out)


def words(name: str, n: int, seed: int) -> Iterator[bytes]:
    """`n` pieces of 16 bytes. The bits of fields are sparse more often than not."""
    r, rows = random.Random(seed), layouts(name)
    for i in range(n):
        word = r.getrandbits(8 * N_BYTES)
        if i % 8:
            for _ in range(r.randrange(4)):
                word &= r.getrandbits(8 * N_BYTES)
            word = at_opcode(r, *rows[r.randrange(len(rows))], word)
        yield word.to_bytes(N_BYTES, "little")


def at_opcode(r: random.Random, encoding: EncodingRow, opcode: int, word: int) -> int:
    """`word` with the bits that make it an instruction, its first source a mark now and then."""
    op = encoding.field("OP").mask if encoding.has("OP") else 0
    word = word & ~encoding.mask & ~op | encoding.value | opcode
    if encoding.has("SRC0") and r.random() < 0.3:
        field = encoding.field("SRC0")
        word = word & ~field.mask | field.insert(r.choice(MARKS))
    return word
