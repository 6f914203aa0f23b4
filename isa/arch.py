"""Architectures as values: `arch("gfx1100")` gives encodings, opcodes and operands of one.

Everything that differs between chips is a column of the row here or a line of the generated
tables; code takes an `Arch` and never asks for a name. Tables load on first use.

Units:   sizes and positions in bits.
Errors:  KeyError-like `UnknownArch` for a name that has no row.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from stuntgpu.isa.errata.encodings import is_refused
from stuntgpu.isa.errors import SpecError


class UnknownArch(KeyError):
    """No such architecture; says which there are."""

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True, slots=True)
class FieldRow:
    """A microcode field: `parts` are (offset, count) low bits first; `padding` low bits not stored."""

    name: str
    parts: tuple[tuple[int, int], ...]
    padding: int

    @property
    def bits(self) -> int:
        return sum(n for _, n in self.parts)

    @property
    def mask(self) -> int:
        """The bits of the instruction word it occupies."""
        return sum(((1 << n) - 1) << at for at, n in self.parts)

    def insert(self, value: int) -> int:
        """`value` at the field's place in the instruction word; it must fit."""
        word = 0
        for at, n in self.parts:
            word |= (value & ((1 << n) - 1)) << at
            value >>= n
        return word

    def extract(self, word: int) -> int:
        value = shift = 0
        for at, n in self.parts:
            value |= (word >> at & ((1 << n) - 1)) << shift
            shift += n
        return value


@dataclass(frozen=True, slots=True)
class EncodingRow:
    """A layout. `form`: "" base, "lit", "dpp8", "dpp16", "dpp", "sdwa"... `mask`/`value` identify it."""

    name: str
    base: str
    form: str
    bits: int
    mask: int
    value: int
    fields: tuple[FieldRow, ...]

    def field(self, name: str) -> FieldRow:
        for f in self.fields:
            if f.name == name:
                return f
        raise SpecError(f"{self.name} has no field {name}")

    def has(self, name: str) -> bool:
        return any(f.name == name for f in self.fields)


@dataclass(frozen=True, slots=True)
class OperandRow:
    """An operand of an instruction: which place it fills, which field holds it ("" = fixed)."""

    role: str
    field: str
    is_read: bool
    is_written: bool
    type: str
    fmt: str
    bits: int


@dataclass(frozen=True, slots=True)
class InstRow:
    """One (instruction, base encoding). `forms`: "lit", "lit_0".., "dpp8", "dpp16", "sdwa" allowed."""

    base: str
    opcode: int
    name: str
    encoding: str
    forms: frozenset[str]
    flags: frozenset[str]
    operand_text: str

    @property
    def operands(self) -> tuple[OperandRow, ...]:
        return parse_operands(self.operand_text)


@cache
def parse_operands(text: str) -> tuple[OperandRow, ...]:
    rows = []
    for item in text.split():
        role, _, rest = item.partition("=")
        field, access, kind, fmt, bits = rest.split(":")
        rows.append(
            OperandRow(role, field.replace("-", ""), "r" in access, "w" in access, kind, fmt, int(bits))
        )
    return tuple(rows)


def parse_field(text: str) -> FieldRow:
    name, _, layout = text.partition(":")
    layout, _, padding = layout.partition("<<")
    parts = []
    for part in layout.split(","):
        at, _, count = part.partition("+")
        parts.append((int(at), int(count)))
    return FieldRow(name, tuple(parts), int(padding or 0))


def parse_ranges(text: str) -> int:
    """`0-3 7` as the bit set 0x8F."""
    bits = 0
    for item in text.split():
        lo, _, hi = item.partition("-")
        bits |= (1 << (int(hi or lo) + 1)) - (1 << int(lo))
    return bits


class Tables:
    """The generated tables of one architecture, parsed; `text` holds other ones than those checked in.

    extended    tables of the architecture this one adds to: its own then list the added instructions alone.
    """

    rows: tuple[InstRow, ...]
    encodings: dict[str, EncodingRow]
    types: dict[str, int]
    codes: dict[int, str]
    _parts: str
    _enums: str

    def __init__(self, name: str, text: Any = None, extended: Tables | None = None) -> None:
        text = text or importlib.import_module(f"stuntgpu.isa.tables.{name}")
        rows = map(self._row, text.INSTRUCTIONS.splitlines())
        self.rows = tuple(r for r in rows if not is_refused(name, r.base, r.name))
        if extended is None:
            self._read(text)
        else:
            self.rows = tuple(sorted((*extended.rows, *self.rows), key=lambda r: (r.base, r.opcode)))
            self.encodings, self.types, self.codes = extended.encodings, extended.types, extended.codes
            self._parts, self._enums = extended._parts, extended._enums

    def _read(self, text: Any) -> None:
        """All tables but that of the instructions."""
        self.encodings = {e.name: e for e in map(self._encoding, text.ENCODINGS.splitlines())}
        self.types = {
            name: parse_ranges(codes)
            for name, _, codes in (line.partition("|") for line in text.TYPES.splitlines())
        }
        self.codes = {
            int(value): name
            for value, _, name in (line.partition("|") for line in text.CODES.splitlines())
        }
        self._parts = text.PARTS
        self._enums = text.ENUMS

    @staticmethod
    def _encoding(line: str) -> EncodingRow:
        name, base, form, bits, mask, value, fields = line.split("|")
        return EncodingRow(
            name, base, form, int(bits), int(mask, 16), int(value, 16),
            tuple(map(parse_field, fields.split())),
        )  # fmt: skip

    @staticmethod
    def _row(line: str) -> InstRow:
        base, opcode, name, encoding, forms, flags, operands = line.split("|")
        return InstRow(
            base, int(opcode), name, encoding, frozenset(forms.split()), frozenset(flags.split()),
            operands,
        )  # fmt: skip

    @cached_property
    def by_name(self) -> dict[str, tuple[InstRow, ...]]:
        """Every encoding of an instruction name."""
        names: dict[str, tuple[InstRow, ...]] = {}
        for row in self.rows:
            names[row.name] = (*names.get(row.name, ()), row)
        return names

    @cached_property
    def by_base(self) -> dict[tuple[str, int], InstRow]:
        return {(r.base, r.opcode): r for r in self.rows}

    @cached_property
    def scalar_ends(self) -> tuple[int, ...]:
        """Where runs of scalar registers end, ascending: tuples do not cross these numbers."""
        named = [n for n, text in self.codes.items() if n < 128]
        pairs = [n for n in named if self.codes[n].endswith("_LO")]
        singles = [n for n in named if n not in pairs and n - 1 not in pairs]
        ends = {*pairs, *(n + 2 for n in pairs), *singles, *(n + 1 for n in singles)}
        return tuple(sorted(ends))

    def layouts_of(self, row: InstRow) -> Iterator[tuple[str, EncodingRow]]:
        """(form, layout) that instructions of `row` may have; the decoder has the last word."""
        yield "", self.encodings[row.encoding]
        for (base, form), layout in self.layouts.items():
            if base == row.base and form:
                yield form, layout

    @cached_property
    def layouts(self) -> dict[tuple[str, str], EncodingRow]:
        """(base, form) -> layout."""
        return {(e.base, e.form): e for e in self.encodings.values()}

    @cached_property
    def parts(self) -> dict[str, tuple[tuple[FieldRow, dict[str, int]], ...]]:
        """Immediate type -> its fields and the names of their values."""
        out: dict[str, tuple[tuple[FieldRow, dict[str, int]], ...]] = {}
        for line in self._parts.splitlines():
            name, field, values = line.split("|")
            pairs = (v.rpartition("=") for v in values.split())
            named = {n: int(v) for n, _, v in pairs}
            out[name] = (*out.get(name, ()), (parse_field(field), named))
        return out

    @cached_property
    def enums(self) -> dict[str, dict[int, str]]:
        """Operand type -> value -> name."""
        out: dict[str, dict[int, str]] = {}
        for line in self._enums.splitlines():
            kind, value, name = line.split("|")
            out.setdefault(kind, {})[int(value)] = name
        return out


@dataclass(frozen=True)
class Arch:
    """One architecture.

    family      the vendor's generation, also the name of its XML.
    extends     architecture whose encodings, instructions and semantics it has too, and its own tables add to ("" none).
    wave_sizes  lanes a wave can have; the first is the default of its tools.
    null, m0    scalar operand numbers (null -1: there is none); `vcc`, `exec` the low halves; `ttmp` and
                `n_ttmp` trap temporaries.
    no_saddr    SADDR of a vector memory instruction that has no scalar address.
    n_sgprs     addressable s registers.
    has_semantics  whether instruction semantics are generated for it.
    has_half_vgprs  whether bit 7 of a 16-bit VGPR field names a half of v0..v127.
    constant_bus  scalar values one vector instruction can read.
    dialect     which family of assembly syntax it has: "gfx9", "gfx11" or "gfx12".
    vgpr_align  what the first register of a VGPR tuple is a multiple of.
    dual_moves_any_bank  whether two dual moves may read one register bank.
    clears_upper_half  whether a 16-bit result in the low half of a VGPR clears the other.
    has_wave_dpp  whether DPP moves across a whole wave.
    has_dpp_scalars  whether the second source of a long instruction with DPP may be a scalar or constant.
    fp8         suffix of its 8-bit float formats in `ir.SMALL_FLOATS`: "" (OCP), "_fnuz".
    """

    name: str
    family: str
    wave_sizes: tuple[int, ...]
    null: int
    m0: int
    n_sgprs: int
    has_semantics: bool
    no_saddr: int = 124
    vcc: int = 106
    exec: int = 126
    ttmp: int = 108
    n_ttmp: int = 16
    scc: int = 253
    has_half_vgprs: bool = True
    constant_bus: int = 2
    dialect: str = "gfx11"
    vgpr_align: int = 1
    dual_moves_any_bank: bool = False
    fp8: str = ""
    clears_upper_half: bool = False
    has_wave_dpp: bool = False
    has_dpp_scalars: bool = False
    extends: str = ""

    @cached_property
    def tables(self) -> Tables:
        return self.with_text()

    def with_text(self, text: Any = None) -> Tables:
        """Tables from other text than what is checked in."""
        return Tables(self.name, text, ARCHES[self.extends].tables if self.extends else None)

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Arch) and self.name == other.name


ARCHES = {
    a.name: a
    for a in (
        Arch("gfx1100", "rdna3", (32, 64), null=124, m0=125, n_sgprs=106, has_semantics=True),
        Arch("gfx1151", "rdna3_5", (32, 64), null=124, m0=125, n_sgprs=106, has_semantics=True, has_dpp_scalars=True,
             extends="gfx1100"),
        Arch("gfx1201", "rdna4", (32, 64), null=124, m0=125, n_sgprs=106, has_semantics=True, dialect="gfx12",
             dual_moves_any_bank=True, has_dpp_scalars=True),
        Arch("gfx942", "cdna3", (64,), null=-1, m0=124, n_sgprs=102, has_semantics=True, no_saddr=127,
             has_half_vgprs=False, constant_bus=1, dialect="gfx9", vgpr_align=2, fp8="_fnuz",
             clears_upper_half=True, has_wave_dpp=True),
        Arch("gfx950", "cdna4", (64,), null=-1, m0=124, n_sgprs=102, has_semantics=True, no_saddr=127,
             has_half_vgprs=False, constant_bus=1, dialect="gfx9", vgpr_align=2, clears_upper_half=True, has_wave_dpp=True),
    )
}  # fmt: skip


def arch(name: str) -> Arch:
    """The architecture called `name`, for instance "gfx1100". Raises UnknownArch."""
    row = ARCHES.get(name)
    if row is None:
        raise UnknownArch(f"unknown architecture {name!r}; known: {', '.join(sorted(ARCHES))}")
    return row
