"""Machine code to `Inst`, by a structure built from the tables of an architecture.

A word is looked up by the bits that identify encoding and opcode; two rows that could claim the
same word are refused when the structure is built. Words no row claims, operand numbers their type
does not admit, reserved bits that are set and code that ends early are refused: `encode` gives
back exactly the bytes of whatever `decode` accepts.

Units:   offsets and sizes in bytes, field positions in bits.
Errors:  DecodeError says offset, word and reason. SpecError when tables overlap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import combinations

from stuntgpu.isa.arch import Arch, EncodingRow, FieldRow, InstRow, OperandRow, Tables, arch
from stuntgpu.isa.decode_rules import Rule, is_multi_format, rules
from stuntgpu.isa.errata.encodings import required
from stuntgpu.isa.errors import SpecError
from stuntgpu.isa.inst import Inst

LITERAL = 255
DPP16 = 250
DPP8, DPP8_FI = 233, 234
SDWA = 249
#: SRC0 number -> form of the encoding it announces.
FORM_OF_CODE = {LITERAL: "lit", DPP16: "dpp16", DPP8: "dpp8", DPP8_FI: "dpp8", SDWA: "sdwa"}
SOURCE_VGPR = 256  # first VGPR in a 9-bit source field
FIRST_WORD = 0xFFFF_FFFF


class DecodeError(ValueError):
    """Bytes that are no instruction of the architecture."""

    def __init__(self, reason: str, offset: int = 0) -> None:
        super().__init__(f"offset {offset:#x}: {reason}")
        self.reason, self.offset = reason, offset


Layout = tuple[tuple[str, int, int], ...]  # field name, shift, mask of the shifted value
SplitLayout = tuple[FieldRow, ...]


@dataclass(frozen=True, slots=True)
class Check:
    """What an operand field may hold: bit `n` of `allowed` says number n may; registers of more
    than 32 bits start at a multiple of `align`. `is_source`: constants and forms have numbers too."""

    field: str
    allowed: int
    align: int
    is_source: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """How to decode one row. `forms` maps a form to its layout; `reserved` must be zero."""

    row: InstRow
    encoding: EncodingRow
    bits: int
    reserved: int
    layout: Layout
    split: SplitLayout
    checks: tuple[Check, ...]
    literals: frozenset[str]
    selector: str
    forms: Mapping[str, EncodingRow]
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True)
class Pair:
    """The VOPD encoding: halves are looked up by their own opcodes."""

    encoding: EncodingRow
    with_literal: EncodingRow
    reserved: int
    x: Mapping[int, Plan]
    y: Mapping[int, Plan]


@dataclass(frozen=True, slots=True)
class Structure:
    """`heads[word >> 23]` lists (mask, {word & mask: plan}) that a first word may match.

    `longer`: instructions of four words; the first two are an instruction of their own as well.
    """

    heads: tuple[tuple[tuple[int, Mapping[int, Plan | Pair]], ...], ...]
    longer: tuple[Plan, ...]


# ---------------------------------------------------------------- building


def opcode_bits(encoding: EncodingRow, opcode: int) -> tuple[int, int]:
    """(mask, value) of encoding and opcode bits together."""
    mask, value = encoding.mask, encoding.value
    if encoding.has("OP"):
        op = encoding.field("OP")
        mask, value = mask | op.mask, value | op.insert(opcode)
    return mask, value


def layouts(encoding: EncodingRow) -> tuple[Layout, SplitLayout]:
    """Fields in one piece, and the few in several; OP is the opcode and left out."""
    whole: list[tuple[str, int, int]] = []
    split: list[FieldRow] = []
    for f in encoding.fields:
        if f.name in ("OP", "OPX", "OPY"):
            continue
        if len(f.parts) == 1:
            at, n = f.parts[0]
            whole.append((f.name, at, (1 << n) - 1))
        else:
            split.append(f)
    return tuple(whole), tuple(split)


def reserved_bits(encoding: EncodingRow) -> int:
    known = encoding.mask
    for f in encoding.fields:
        known |= f.mask
    return ((1 << encoding.bits) - 1) & ~known


#: Numbers of inline constants: integers, then floats.
CONSTANTS = ((1 << 209) - (1 << 128)) | ((1 << 249) - (1 << 240))


#: Operand types that are scalar registers; the XML lists them more narrowly than decoders take them.
SCALAR_TYPES = (
    "sreg", "sdst", "exec", "vcc", "smem_offset", "sdst_null", "sreg_m0_inl", "ssrc_lanesel",
    "ssrc_nolit",
)  # fmt: skip
#: Operand types in which 255 may announce a literal.
LITERAL_TYPES = ("src", "src_nolds", "ssrc", "sreg_literal")
#: Operand types that are vector registers, AccVGPRs included where encodings have a bit for them.
VGPR_TYPES = (
    "vgpr", "src_vgpr", "vgpr_or_lds", "vgpr_or_accvgpr", "accvgpr", "src_accvgpr", "src_vgpr_or_accvgpr",
)  # fmt: skip
#: Operand types whose numbers the table lists exactly.
LISTED_TYPES = ("src_vgpr_or_inline", "src_vgpr_or_accvgpr_or_const", "src_nolit", "src_simple")


def admitted(tables: Tables, operand: OperandRow, field: FieldRow) -> int:
    """Numbers the field may hold, as a bit set; 0 when any will do.

    Wider than the XML where tools and hardware are: any scalar register goes where one does, and
    where inline integers go, so do the other constants.
    """
    wide = field.bits == 9
    vgprs = ((1 << 256) - 1) << SOURCE_VGPR
    kind = operand.type
    if kind in VGPR_TYPES:
        return vgprs if wide else 0
    if kind in LISTED_TYPES:
        return tables.types[kind]
    if kind == "ssrc_barrier_id":
        return tables.types[kind] | CONSTANTS
    if kind in LITERAL_TYPES:  # a register or literal takes inline constants as well
        return tables.types["ssrc" if kind == "sreg_literal" else kind]
    if field.bits > 7 and kind in SCALAR_TYPES:
        numbers = tables.types["ssrc"] & ~(1 << LITERAL)
        return numbers & ~CONSTANTS if operand.is_written else numbers
    return 0


def varies(row: InstRow, operand: OperandRow, encoding: EncodingRow) -> bool:
    """Whether other fields decide how many registers the operand has."""
    if operand.field == "VDATA":
        return encoding.has("TFE") or encoding.has("DMASK")
    return operand.field in ("VADDR", "ADDR") or (is_multi_format(row) and operand.field in ("SRC0", "SRC1"))


def overrunning(tables: Tables, operand: OperandRow, field: FieldRow, align: int) -> int:
    """Register numbers at which an operand of several registers would run out of its file, or that
    are not a multiple of `align` in the vector file."""
    n = (operand.bits + 31) // 32
    if n < 2 or field.padding:
        return 0
    odd = sum(1 << i for i in range(256) if i % align)
    if operand.type in VGPR_TYPES and field.bits <= 8:
        return ((1 << 256) - 1) & -(1 << 257 - n) | odd
    out = ((1 << n - 1) - 1) << 513 - n | odd << SOURCE_VGPR  # the last VGPRs of a source field
    for number in range(128):
        room = next((end - number for end in tables.scalar_ends if number < end), 1)
        if room < n and tables.codes.get(number) != "NULL":
            out |= 1 << number
    return out


def alignment(operand: OperandRow) -> int:
    if operand.bits <= 32 or operand.type not in (*SCALAR_TYPES, *LITERAL_TYPES, *LISTED_TYPES):
        return 1
    return 2 if operand.bits == 64 else 4


def make_checks(target: Arch, row: InstRow, encoding: EncodingRow) -> tuple[Check, ...]:
    tables = target.tables
    checks = [
        Check(field, 1 << value, 1, False) for field, value in required(target.name, row.base).items()
    ]
    for operand in row.operands:
        if not operand.field or operand.field in ("SIMM16", "LITERAL"):
            continue
        if row.base == "VINTERP":  # takes VGPRs only, and ignores the bit that says so
            continue
        field = encoding.field(operand.field)
        overrun = 0 if varies(row, operand, encoding) else overrunning(tables, operand, field, target.vgpr_align)
        if operand.field == "SADDR":
            overrun &= ~(1 << target.no_saddr)
        allowed = admitted(tables, operand, field)
        align = 1 if field.padding else alignment(operand)
        if operand.field == "SADDR" and align > 1:
            every = sum(1 << n for n in range(0, 1 << field.bits, align))
            allowed, align = (allowed or every) & every | 1 << target.no_saddr, 1
        if overrun:
            allowed = (allowed or (1 << (1 << field.bits)) - 1) & ~overrun
        if allowed or align > 1:
            every = (1 << (1 << field.bits)) - 1
            is_source = operand.type in LITERAL_TYPES
            checks.append(Check(operand.field, allowed or every, align, is_source))
    return tuple(checks)


def literal_fields(row: InstRow) -> frozenset[str]:
    """Source fields in which 255 stands for a literal that follows."""
    fields = [o for o in row.operands if o.field and o.type in LITERAL_TYPES]
    allowed = set()
    for o in fields:
        index = o.field.removeprefix("V")[-1]
        if row.base.startswith("VOPD") or {"lit", f"lit_{index}"} & row.forms or row.encoding.endswith("INST_LITERAL"):
            allowed.add(o.field)
    return frozenset(allowed)


def make_plan(target: Arch, row: InstRow) -> Plan:
    tables = target.tables
    encoding = tables.encodings[row.encoding]
    whole, split = layouts(encoding)
    forms = {
        form: tables.layouts[row.base, form]
        for form in {f.partition("_")[0] for f in row.forms}
        if (row.base, form) in tables.layouts
    }
    selector = "SRC0" if encoding.has("SRC0") and forms.keys() - {"lit"} else ""
    return Plan(
        row, encoding, encoding.bits, reserved_bits(encoding), whole, split,
        make_checks(target, row, encoding), literal_fields(row), selector, forms,
        rules(target, row, encoding),
    )  # fmt: skip


def make_pair(target: Arch) -> Pair:
    tables = target.tables
    encoding, literal = tables.layouts["VOPD", ""], tables.layouts["VOPD", "lit"]
    halves: dict[str, dict[int, Plan]] = {"VOPDX": {}, "VOPDY": {}}
    for row in tables.rows:
        if row.base in halves:
            halves[row.base][row.opcode] = make_plan(target, row)
    return Pair(encoding, literal, reserved_bits(encoding), halves["VOPDX"], halves["VOPDY"])


def refuse_overlaps(by_mask: Mapping[int, Mapping[int, Plan | Pair]]) -> None:
    """SpecError when a word could match two entries."""
    for (mask_a, a), (mask_b, b) in combinations(by_mask.items(), 2):
        common = mask_a & mask_b
        seen = {value & common: plan for value, plan in a.items()}
        for value, plan in b.items():
            other = seen.get(value & common)
            if other is not None:
                raise SpecError(f"{describe(plan)} and {describe(other)} can claim the same word")


def describe(plan: Plan | Pair) -> str:
    return plan.encoding.name if isinstance(plan, Pair) else f"{plan.encoding.name} {plan.row.name}"


def build(target: Arch) -> Structure:
    tables = target.tables
    by_mask: dict[int, dict[int, Plan | Pair]] = {}
    longer: list[Plan] = []
    for row in tables.rows:
        if row.base.startswith("VOPD"):
            continue
        plan = make_plan(target, row)
        mask, value = opcode_bits(plan.encoding, row.opcode)
        if mask > FIRST_WORD:
            longer.append(plan)
            continue
        entries = by_mask.setdefault(mask, {})
        if value in entries:
            raise SpecError(f"{describe(plan)} and {describe(entries[value])} are one word")
        entries[value] = plan
    if ("VOPD", "") in tables.layouts:
        pair = make_pair(target)
        by_mask.setdefault(pair.encoding.mask, {})[pair.encoding.value] = pair
    refuse_overlaps(by_mask)
    return Structure(index(by_mask), tuple(longer))


def index(
    by_mask: Mapping[int, Mapping[int, Plan | Pair]],
) -> tuple[tuple[tuple[int, Mapping[int, Plan | Pair]], ...], ...]:
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


# ---------------------------------------------------------------- decoding


def find(tree: Structure, word: int) -> Plan | Pair | None:
    for mask, entries in tree.heads[word >> 23]:
        plan = entries.get(word & mask)
        if plan is not None:
            return plan
    return None


def read_words(code: bytes | memoryview, offset: int, n_bytes: int) -> int:
    chunk = code[offset : offset + n_bytes]
    if len(chunk) < n_bytes:
        raise DecodeError(f"code ends inside an instruction of {n_bytes} bytes", offset)
    return int.from_bytes(chunk, "little")


def extract(word: int, layout: Layout, split: SplitLayout) -> dict[str, int]:
    fields = {name: word >> at & mask for name, at, mask in layout}
    for f in split:
        fields[f.name] = f.extract(word)
    return fields


def announced(plan: Plan, fields: Mapping[str, int], offset: int) -> str:
    """The form the source fields announce: "", "lit", "dpp8" or "dpp16". Raises DecodeError."""
    form = ""
    if plan.selector:
        form = FORM_OF_CODE.get(fields[plan.selector], "")
        if form and form != "lit" and form not in plan.forms:
            raise DecodeError(f"{plan.row.name} has no {form} form", offset)
        form = "" if form == "lit" else form
    for check in plan.checks:
        number = fields[check.field]
        if form and check.field == plan.selector:
            continue
        if not check.allowed >> number & 1:
            raise DecodeError(f"{plan.row.name}: {check.field} cannot be {number}", offset)
        if check.align > 1 and number < 128 and number % check.align:
            raise DecodeError(
                f"{plan.row.name}: {check.field} {number} is not a multiple of {check.align}", offset
            )
        if not check.is_source or number < DPP8:
            continue
        if number == LITERAL and (check.field not in plan.literals or form not in ("", "lit")):
            raise DecodeError(f"{plan.row.name}: no literal in {check.field}{f' of {form}' if form else ''}", offset)
        if number == LITERAL:
            form = form or "lit"
        elif number in (DPP16, DPP8, DPP8_FI, SDWA):
            raise DecodeError(f"{plan.row.name}: {check.field} cannot be {number}", offset)
    if form == "" or "LITERAL" in fields:
        return ""
    return form


def refuse_reserved(name: str, bits: int, offset: int) -> None:
    if bits:
        raise DecodeError(f"{name}: reserved bits {bits:#x} are set", offset)


@cache
def form_reserved(encoding: EncodingRow) -> int:
    """Bits that must be zero in a form; VOP3 has its own NEG and ABS, so DPP's are not used there."""
    bits = reserved_bits(encoding)
    if encoding.base.startswith("VOP3"):
        for f in encoding.fields:
            if f.name in ("SRC0_NEG", "SRC0_ABS", "SRC1_NEG", "SRC1_ABS"):
                bits |= f.mask
    return bits


def decode(name: str, code: bytes | memoryview, offset: int = 0) -> Inst:
    """The instruction of architecture `name` at `offset` of `code`. Raises DecodeError."""
    word = read_words(code, offset, 4)
    tree = structure(name)
    plan = find(tree, word)
    if plan is None:
        raise DecodeError(f"no instruction has the word {word:#010x}", offset)
    if isinstance(plan, Pair):
        return decode_pair(name, plan, code, offset)
    if tree.longer:
        plan = longer_plan(tree, plan, word, code, offset)
    encoding, row = plan.encoding, plan.row
    if plan.bits > 32:
        word = read_words(code, offset, plan.bits // 8)
    refuse_reserved(row.name, word & plan.reserved, offset)
    fields = extract(word, plan.layout, plan.split)
    if fields.get("NSA"):  # its address registers lie in dwords that no table describes
        raise DecodeError(f"{row.name}: non-sequential addresses (NSA) are not described", offset)
    form = announced(plan, fields, offset)
    if form:
        encoding = plan.forms[form]
        word = read_words(code, offset, encoding.bits // 8)
        refuse_reserved(row.name, word & form_reserved(encoding), offset)
        fields = extract(word, *form_layout(encoding))
    for rule in plan.rules:
        reason = rule(fields)
        if reason:
            raise DecodeError(f"{row.name}: {reason}", offset)
    base = encoding.base
    return Inst(
        name, row.name, encoding.name, base, row.opcode, fields, encoding.bits // 8,
        fields.get("LITERAL"),
    )  # fmt: skip


def longer_plan(tree: Structure, plan: Plan, word: int, code: bytes | memoryview, offset: int) -> Plan:
    """The instruction of four words that begins with `word`, if the words after it make it one."""
    for longer in tree.longer:
        mask, value = opcode_bits(longer.encoding, longer.row.opcode)
        size = longer.bits // 8
        begins = word & mask & FIRST_WORD == value & FIRST_WORD and len(code) - offset >= size
        if begins and read_words(code, offset, size) & mask == value:
            return longer
    return plan


@cache
def form_layout(encoding: EncodingRow) -> tuple[Layout, SplitLayout]:
    return layouts(encoding)


def decode_pair(name: str, pair: Pair, code: bytes | memoryview, offset: int) -> Inst:
    """A VOPD pair: both halves share the fields, so that each can resolve VDSTY and the literal."""
    encoding = pair.encoding
    word = read_words(code, offset, 8)
    opx, opy = encoding.field("OPX").extract(word), encoding.field("OPY").extract(word)
    x, y = pair.x.get(opx), pair.y.get(opy)
    if x is None or y is None:
        raise DecodeError(f"no dual instruction has opcodes {opx} and {opy}", offset)
    refuse_reserved("VOPD", word & pair.reserved, offset)
    fields = extract(word, *form_layout(encoding))
    forms = [announced_half(half, fields, offset) for half in (x, y)]
    if any(forms):
        encoding = pair.with_literal
        fields = extract(read_words(code, offset, 12), *form_layout(encoding))
    literal = fields.get("LITERAL")
    size = encoding.bits // 8
    halves = [
        Inst(name, h.row.name, encoding.name, h.row.base, h.row.opcode, fields, size, literal)
        for h in (x, y)
    ]
    both = f"{x.row.name} :: {y.row.name}"
    return Inst(
        name, both, encoding.name, "VOPD", opx << 5 | opy, fields, size, literal, halves[0], halves[1]
    )


def announced_half(plan: Plan, fields: Mapping[str, int], offset: int) -> bool:
    """Whether a half needs the literal."""
    return announced(plan, fields, offset) == "lit" or "lit" in plan.encoding.form


def decode_all(name: str, code: bytes | memoryview) -> Iterator[tuple[int, Inst | DecodeError]]:
    """(offset, instruction or error) for all of `code`; an error skips one dword."""
    offset = 0
    while offset < len(code):
        try:
            inst = decode(name, code, offset)
        except DecodeError as e:
            yield offset, e
            offset += 4
        else:
            yield offset, inst
            offset += inst.size


# ---------------------------------------------------------------- encoding


def encode(inst: Inst) -> bytes:
    """The bytes of `inst`, from encoding, opcode and fields. Raises ValueError for a field that
    does not fit."""
    a: Arch = arch(inst.arch)
    encoding = a.tables.encodings[inst.encoding]
    word = encoding.value
    values = dict(inst.fields)
    if inst.base == "VOPD":
        values["OPX"], values["OPY"] = inst.opcode >> 5, inst.opcode & 31
    else:
        values["OP"] = inst.opcode
    for f in encoding.fields:
        value = values.get(f.name, 0)
        if value >> f.bits:
            raise ValueError(f"{inst.name}: {f.name} = {value} does not fit {f.bits} bits")
        word |= f.insert(value)
    return word.to_bytes(encoding.bits // 8, "little")
