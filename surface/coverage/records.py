"""The coverage records: reading the generated table, and counting for a page.

One record is an instruction in one encoding. Its flags are letters:
  a  assembles, and disassembles to text that assembles to the same bytes
  s  has semantics
  n  the native tier has a handler for it
  h  a program whose results were asserted on this hardware contains it, and passes here
  t  the same, with results carried over from another generation of hardware
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from stuntgpu.isa.arch import ARCHES

#: Flag -> heading of its column.
COLUMNS = {"a": "assemble", "s": "semantics", "n": "native", "h": "hardware", "t": "carried"}
#: Where semantics come from -> how pages put it.
ORIGINS = {
    "text": "the vendor's pseudocode", "erratum": "corrected pseudocode", "own": "our own row", "-": "not modelled",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Record:
    """origin: a key of ORIGINS."""

    arch: str
    base: str
    name: str
    origin: str
    flags: frozenset[str]


def dump(records: Iterable[Record]) -> str:
    """One line for records that differ in name only: `arch|base|origin|flags|names`."""
    groups: dict[tuple[str, str, str, str], list[str]] = {}
    for r in records:
        flags = "".join(f for f in COLUMNS if f in r.flags)
        groups.setdefault((r.arch, r.base, r.origin, flags), []).append(r.name)
    return "".join(f"{'|'.join(key)}|{' '.join(sorted(names))}\n" for key, names in sorted(groups.items()))


def load(text: str) -> Iterator[Record]:
    for line in text.splitlines():
        arch, base, origin, flags, names = line.split("|")
        for name in names.split():
            yield Record(arch, base, name, origin, frozenset(flags))


def with_shared(records: Iterable[Record]) -> tuple[Record, ...]:
    """The records, and those of what an architecture shares with the one it extends: results of hardware count as carried over."""
    measured = tuple(records)
    shared = (Record(a.name, r.base, r.name, r.origin, frozenset("t" if f == "h" else f for f in r.flags))
              for a in ARCHES.values() for r in measured if r.arch == a.extends)
    return (*measured, *shared)


def stored() -> tuple[Record, ...]:
    """The records that were generated with this version."""
    from stuntgpu.coverage import table

    return with_shared(load(table.RECORDS))


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a page: `key` is an encoding or an origin; counts by flag, `total` opcodes."""

    key: str
    total: int
    counts: tuple[int, ...]


def tally(key: str, records: list[Record]) -> Row:
    return Row(key, len(records), tuple(sum(flag in r.flags for r in records) for flag in COLUMNS))


def by_encoding(records: Iterable[Record]) -> list[Row]:
    groups: dict[str, list[Record]] = {}
    for r in records:
        groups.setdefault(r.base, []).append(r)
    return [tally(base, groups[base]) for base in sorted(groups)]


def by_origin(records: Iterable[Record]) -> list[Row]:
    groups: dict[str, list[Record]] = {origin: [] for origin in ORIGINS}
    for r in records:
        groups[r.origin].append(r)
    return [tally(origin, found) for origin, found in groups.items()]
