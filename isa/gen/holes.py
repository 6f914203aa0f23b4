"""Opcodes that no instruction has, per encoding: a generated table, so that a change of input shows
which were filled or opened, and decoding can name them.

An opcode whose words belong to another encoding is no hole (VOP2 reaches into VOP1 and VOPC).
Errors:  SpecError when two rows could claim the same word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import SimpleNamespace

from stuntgpu.isa.arch import ARCHES, Arch, EncodingRow
from stuntgpu.isa.decode_plan import build, opcode_bits
from stuntgpu.isa.gen.emit import ranges

#: Fields that hold opcodes; a pair has two.
OPCODE_FIELDS = {"VOPD": ("OPX", "OPY")}


def parsed(arch: str, table: str) -> Arch:
    """The architecture as `table`, the text of a generated module, has it."""
    names: dict[str, str] = {}
    exec(table, names)
    target = replace(ARCHES[arch])
    vars(target)["tables"] = target.with_text(SimpleNamespace(**names))
    return target


def pair_rows(target: Arch, encoding: EncodingRow) -> Iterator[tuple[str, int, list[int]]]:
    for name in OPCODE_FIELDS["VOPD"]:
        base = f"VOPD{name[-1]}"
        used = {r.opcode for r in target.tables.rows if r.base == base}
        yield base, len(used), [op for op in range(1 << encoding.field(name).bits) if op not in used]


def holes(target: Arch) -> Iterator[tuple[str, int, list[int]]]:
    """(encoding family, opcodes in use, opcodes nobody uses) of every family, by name."""
    build(target)
    tables = target.tables
    claims: dict[int, set[int]] = {}
    used: dict[str, set[int]] = {}
    for row in tables.rows:
        mask, value = opcode_bits(tables.encodings[row.encoding], row.opcode)
        used.setdefault(row.base, set()).add(row.opcode)
        if not row.base.startswith("VOPD"):
            claims.setdefault(mask, set()).add(value)
    pair = tables.layouts.get(("VOPD", ""))
    if pair is not None:
        claims.setdefault(pair.mask, set()).add(pair.value)
    for base in sorted({e.base for e in tables.encodings.values() if not e.form}):
        encoding = tables.layouts[base, ""]
        if base in OPCODE_FIELDS:
            yield from pair_rows(target, encoding)
        elif encoding.has("OP"):
            own = [op for op in range(1 << encoding.field("OP").bits) if not is_elsewhere(target, encoding, op)]
            empty = [op for op in own if not is_claimed(encoding, op, claims)]
            yield base, len(used.get(base, ())), empty


def is_elsewhere(target: Arch, encoding: EncodingRow, opcode: int) -> bool:
    """Whether all words with this opcode belong to an encoding that more bits identify."""
    mask, value = opcode_bits(encoding, opcode)
    others = (e for e in target.tables.encodings.values() if e.mask.bit_count() > encoding.mask.bit_count())
    return any(e.mask & ~mask == 0 and (value ^ e.value) & e.mask == 0 for e in others)


def is_claimed(encoding: EncodingRow, opcode: int, claims: Mapping[int, set[int]]) -> bool:
    """Whether some word with this opcode is an instruction, of this encoding or another."""
    mask, value = opcode_bits(encoding, opcode)
    return any(any((value ^ v) & mask & m == 0 for v in values) for m, values in claims.items())


def text(arch: str, table: str, header: str) -> str:
    """Text of isa/tables/<arch>_holes.py; `table` is that of isa/tables/<arch>.py."""
    rows = "\n".join(f"{base}|{n_used}|{ranges(empty)}" for base, n_used, empty in holes(parsed(arch, table)))
    return "\n".join((
        header, f'"""Opcodes of {arch} that no instruction has."""\n',
        "# encoding family|opcodes in use|opcodes that are no instruction", f'HOLES = """\\\n{rows}\n"""\n',
    ))  # fmt: skip
