"""How each instruction decodes, built from the tables of an architecture.

A word is looked up by the bits that identify encoding and opcode; two rows that could claim the
same word are refused when the structure is built. What a row needs beyond that is made when it is
first met: functions that take all fields out of a word at once, or tell whether its operand numbers
are plain ones, announce a literal, DPP or SDWA word, or are not possible. Such functions are
compiled from one expression each, since decoding spends its time in them.

Units:   sizes in bytes, field positions in bits.
Errors:  SpecError when tables overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import combinations
from operator import or_
from typing import Any

from stuntgpu.isa import shown
from stuntgpu.isa.arch import Arch, EncodingRow, FieldRow, InstRow, arch
from stuntgpu.isa.decode_checks import (
    DPP8,
    DPP8_FI,
    DPP16,
    FORM_OF_CODE,
    LITERAL,
    SDWA,
    Check,
    literal_fields,
    make_checks,
)
from stuntgpu.isa.decode_rules import Rule, rules
from stuntgpu.isa.errors import SpecError
from stuntgpu.isa.shown import Fixed

FIRST_WORD = 0xFFFF_FFFF
Extract = Callable[[int], dict[str, int]]
Classify = Callable[[int], int]
#: What operand numbers can say, one bit each; REFUSED: not possible.
KINDS = {"lit": 1, "dpp16": 2, "dpp8": 4, "sdwa": 8}
REFUSED = 128
ALL = -1
NO_FIELDS = ("OP", "OPX", "OPY")


@dataclass(frozen=True, slots=True)
class Form:
    """One layout of an instruction.

    reserved      bits that belong to no field: zero.
    mask, value   all bits that must hold one value: reserved ones, and those of fields that the
                  instruction does not use.
    common        attributes that all its `Inst`s share.
    """

    encoding: EncodingRow
    size: int
    reserved: int
    mask: int
    value: int
    extract: Extract
    common: Mapping[str, object]


@dataclass(frozen=True)
class Plan:
    """How to decode one row. `longer`: instructions of more words whose first word is one of this row."""

    target: Arch
    row: InstRow
    longer: list[Plan] = field(default_factory=list, compare=False)

    @cached_property
    def encoding(self) -> EncodingRow:
        return self.target.tables.encodings[self.row.encoding]

    @cached_property
    def layouts(self) -> Mapping[str, EncodingRow]:
        """Form -> layout, for the forms besides the plain one."""
        tables = self.target.tables
        names = {f.partition("_")[0] for f in self.row.forms}
        return {f: tables.layouts[self.row.base, f] for f in names if (self.row.base, f) in tables.layouts}

    @cached_property
    def checks(self) -> tuple[Check, ...]:
        return make_checks(self.target, self.row, self.encoding)

    @cached_property
    def literals(self) -> frozenset[str]:
        """Source fields in which 255 stands for a literal that follows."""
        return literal_fields(self.row)

    @cached_property
    def selector(self) -> str:
        """The field whose number announces DPP and SDWA, "" when there are none."""
        return "SRC0" if self.encoding.has("SRC0") and self.layouts.keys() - {"lit"} else ""

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        return rules(self.target, self.row, self.encoding)

    @cached_property
    def plain(self) -> Form:
        return make_form(self.target, self.row, "", self.encoding)

    @cached_property
    def by_kind(self) -> Mapping[int, Form]:
        """What `classify` finds -> layout, plain words (0) left out."""
        out = {KINDS[f]: make_form(self.target, self.row, f, e) for f, e in self.layouts.items() if f in KINDS}
        if self.encoding.has("LITERAL"):
            out[KINDS["lit"]] = self.plain
        return out

    @cached_property
    def classify(self) -> Classify:
        """Word -> what its operand numbers say: 0, bits of KINDS, or REFUSED with others."""
        checks = self.checks
        if self.selector and all(c.field != self.selector for c in checks):
            checks = (*checks, Check(self.selector, ALL, 1, False))
        tables: dict[str, bytes] = {}
        for c in checks:
            bits = self.encoding.field(c.field).bits
            forms = frozenset(self.layouts) if c.field == self.selector else None
            made = meanings(bits, c.allowed, c.align, c.is_source, c.field in self.literals, forms)
            tables[c.field] = bytes(map(or_, tables.get(c.field, bytes(len(made))), made))
        return compile_classifier(self.encoding, tuple((f, t) for f, t in tables.items() if any(t)))


@cache
def meanings(
    bits: int, allowed: int, align: int, is_source: bool, takes_literal: bool, forms: frozenset[str] | None
) -> bytes:
    """What each number in a field of `bits` says: see Check; `forms` are those that the field may
    announce, None: it announces none."""

    def meaning(number: int) -> int:
        form = FORM_OF_CODE.get(number, "lit")
        if forms is not None and form != "lit":
            return KINDS[form] if form in forms else REFUSED
        misaligned = align > 1 and number < 128 and number % align
        if misaligned or not allowed >> number & 1:
            return REFUSED
        if not is_source or number not in (LITERAL, DPP16, DPP8, DPP8_FI, SDWA):
            return 0
        return KINDS["lit"] if number == LITERAL and takes_literal else REFUSED

    return bytes(map(meaning, range(1 << bits)))


@dataclass(frozen=True)
class Pair:
    """The VOPD encoding: halves are looked up by their own opcodes."""

    target: Arch
    encoding: EncodingRow
    with_literal: EncodingRow
    x: Mapping[int, Plan]
    y: Mapping[int, Plan]
    forms: dict[tuple[int, int], PairForms] = field(default_factory=dict, compare=False)

    @cached_property
    def opcodes(self) -> Callable[[int], tuple[int, int]]:
        """Word -> opcodes of both halves."""
        x, y = self.encoding.field("OPX"), self.encoding.field("OPY")
        made: Callable[[int], tuple[int, int]] = compiled(f"lambda w: ({take(x)}, {take(y)})")
        return made


@dataclass(frozen=True, slots=True)
class PairForms:
    """One combination of halves. `always_literal`: of an instruction that has one in any case."""

    x: Plan
    y: Plan
    plain: Form
    literal: Form
    always_literal: bool
    common_x: Mapping[str, object]
    common_y: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Structure:
    """`heads[word >> 23]` lists (mask, {word & mask: plan}) that a first word may match."""

    heads: tuple[tuple[tuple[int, Mapping[int, Plan | Pair]], ...], ...]


# ---------------------------------------------------------------- compiled functions


def compiled(source: str, **names: object) -> Callable[..., Any]:
    """The function that `source`, an expression made of table facts only, says."""
    made: Callable[..., Any] = eval(source, names)
    return made


def take(f: FieldRow) -> str:
    """Expression of a field's value in the word w."""
    parts, shift = [], 0
    for at, n in f.parts:
        part = f"w >> {at} & {(1 << n) - 1}" if at else f"w & {(1 << n) - 1}"
        parts.append(f"({part}) << {shift}" if shift else part)
        shift += n
    return " | ".join(parts)


@cache
def extractor(encoding: EncodingRow) -> Extract:
    """Word -> field values, those in one piece first; the opcode is left out."""
    fields = sorted((f for f in encoding.fields if f.name not in NO_FIELDS), key=lambda f: len(f.parts) > 1)
    made: Extract = compiled(f"lambda w: {{{', '.join(f'{f.name!r}: {take(f)}' for f in fields)}}}")
    return made


@cache
def compile_classifier(encoding: EncodingRow, tables: tuple[tuple[str, bytes], ...]) -> Classify:
    """Word -> what the numbers in the fields say together; `tables` gives each number's meaning."""
    names = {f"t{i}": table for i, (_, table) in enumerate(tables)}
    looks = [f"t{i}[{take(encoding.field(f))}]" for i, (f, _) in enumerate(tables)]
    made: Classify = compiled(f"lambda w: {' | '.join(looks) or '0'}", **names)
    return made


# ---------------------------------------------------------------- forms


def reserved_bits(encoding: EncodingRow) -> int:
    known = encoding.mask
    for f in encoding.fields:
        known |= f.mask
    return ((1 << encoding.bits) - 1) & ~known


def form_of(encoding: EncodingRow, fixed: Fixed, common: Mapping[str, object]) -> Form:
    reserved = reserved_bits(encoding)
    return Form(
        encoding, encoding.bits // 8, reserved, reserved | fixed.mask, fixed.value, extractor(encoding), common
    )


def make_form(target: Arch, row: InstRow, form: str, encoding: EncodingRow) -> Form:
    fixed = shown.fixed(target.name, row.base, row.opcode, "" if form == "lit" else form, encoding)
    return form_of(encoding, fixed, common(target.name, row.name, encoding, encoding.base, row.opcode))


def common(arch_name: str, name: str, encoding: EncodingRow, base: str, opcode: int) -> dict[str, object]:
    """Attributes of every `Inst` of one form."""
    return {
        "arch": arch_name, "name": name, "encoding": encoding.name, "base": base, "opcode": opcode,
        "size": encoding.bits // 8, "x": None, "y": None,
    }  # fmt: skip


def make_pair_forms(pair: Pair, x: Plan, y: Plan) -> PairForms:
    name, rows = pair.target.name, (x.row, y.row)
    both, opcode = f"{x.row.name} :: {y.row.name}", x.row.opcode << 5 | y.row.opcode
    forms = [
        form_of(e, shown.fixed_pair(name, x.row.opcode, y.row.opcode, e), common(name, both, e, "VOPD", opcode))
        for e in (pair.encoding, pair.with_literal)
    ]
    halves = [common(name, r.name, pair.encoding, r.base, r.opcode) for r in rows]
    return PairForms(x, y, forms[0], forms[1], any("lit" in p.encoding.form for p in (x, y)), halves[0], halves[1])


# ---------------------------------------------------------------- the structure


def make_plan(target: Arch, row: InstRow) -> Plan:
    return Plan(target, row)


def opcode_bits(encoding: EncodingRow, opcode: int) -> tuple[int, int]:
    """(mask, value) of encoding and opcode bits together."""
    mask, value = encoding.mask, encoding.value
    if encoding.has("OP"):
        op = encoding.field("OP")
        mask, value = mask | op.mask, value | op.insert(opcode)
    return mask, value


def make_pair(target: Arch) -> Pair:
    tables = target.tables
    halves: dict[str, dict[int, Plan]] = {"VOPDX": {}, "VOPDY": {}}
    for row in tables.rows:
        if row.base in halves:
            halves[row.base][row.opcode] = make_plan(target, row)
    return Pair(target, tables.layouts["VOPD", ""], tables.layouts["VOPD", "lit"], halves["VOPDX"], halves["VOPDY"])


ByMask = dict[int, dict[int, Plan | Pair]]


def refuse_overlaps(by_mask: ByMask) -> None:
    """SpecError when a word could match two entries."""
    for (mask_a, a), (mask_b, b) in combinations(by_mask.items(), 2):
        common_mask = mask_a & mask_b
        seen = {value & common_mask: plan for value, plan in a.items()}
        for value, plan in b.items():
            other = seen.get(value & common_mask)
            if other is not None:
                raise SpecError(f"{describe(plan)} and {describe(other)} can claim the same word")


def describe(plan: Plan | Pair) -> str:
    return plan.encoding.name if isinstance(plan, Pair) else f"{plan.encoding.name} {plan.row.name}"


def build(target: Arch) -> Structure:
    tables = target.tables
    by_mask: ByMask = {}
    longer: list[tuple[int, int, Plan]] = []
    for row in tables.rows:
        if row.base.startswith("VOPD"):
            continue
        plan = make_plan(target, row)
        mask, value = opcode_bits(plan.encoding, row.opcode)
        if mask > FIRST_WORD:
            longer.append((mask & FIRST_WORD, value & FIRST_WORD, plan))
            continue
        entries = by_mask.setdefault(mask, {})
        if value in entries:
            raise SpecError(f"{describe(plan)} and {describe(entries[value])} are one word")
        entries[value] = plan
    if ("VOPD", "") in tables.layouts:
        pair = make_pair(target)
        by_mask.setdefault(pair.encoding.mask, {})[pair.encoding.value] = pair
    refuse_overlaps(by_mask)
    tell_of_longer(by_mask, longer)
    return Structure(index(by_mask))


def tell_of_longer(by_mask: ByMask, longer: list[tuple[int, int, Plan]]) -> None:
    """Plans that may be the first words of a longer instruction get to know it."""
    for mask, value, plan in longer:
        for other_mask, entries in by_mask.items():
            for other_value, other in entries.items():
                if isinstance(other, Plan) and (value ^ other_value) & mask & other_mask == 0:
                    other.longer.append(plan)


def index(by_mask: ByMask) -> tuple[tuple[tuple[int, Mapping[int, Plan | Pair]], ...], ...]:
    """For each value of the top nine bits, the maps worth asking."""
    heads: list[list[tuple[int, Mapping[int, Plan | Pair]]]] = [[] for _ in range(512)]
    for mask, entries in by_mask.items():
        top = mask >> 23 & 511
        tops = {value >> 23 & 511 for value in entries}
        for i in range(512):
            if i & top in tops:
                heads[i].append((mask, entries))
    return tuple(tuple(h) for h in heads)


@cache
def structure(name: str) -> Structure:
    return build(arch(name))


def plans(name: str) -> Iterator[Plan]:
    """Every row of an architecture, halves of pairs included."""
    target = arch(name)
    return (make_plan(target, row) for row in target.tables.rows)
