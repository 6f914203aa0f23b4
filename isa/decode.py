"""Machine code to `Inst`, and back.

Words no row claims, operand numbers their type does not admit, bits that must hold another value
and code that ends early are refused: `encode` gives back exactly the bytes of whatever `decode`
accepts.

Units:   offsets and sizes in bytes, field positions in bits.
Errors:  DecodeError says offset, word and reason. SpecError when tables overlap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from struct import Struct
from struct import error as StructError

from stuntgpu.isa.arch import Arch, arch
from stuntgpu.isa.decode_checks import (
    DPP8,
    DPP8_FI,
    DPP16,
    FORM_OF_CODE,
    LITERAL,
    LITERAL_TYPES,
    SDWA,
    VGPR_TYPES,
)
from stuntgpu.isa.decode_plan import (
    FIRST_WORD,
    KINDS,
    Form,
    Pair,
    PairForms,
    Plan,
    build,
    make_pair_forms,
    make_plan,
    opcode_bits,
    structure,
)
from stuntgpu.isa.errors import Bug
from stuntgpu.isa.inst import Inst, made

__all__ = [
    "LITERAL_TYPES", "VGPR_TYPES", "DecodeError", "build", "decode", "decode_all", "encode", "make_plan",
]  # fmt: skip

U32, U64 = Struct("<I").unpack_from, Struct("<Q").unpack_from


class DecodeError(ValueError):
    """Bytes that are no instruction of the architecture."""

    def __init__(self, reason: str, offset: int = 0) -> None:
        super().__init__(f"offset {offset:#x}: {reason}")
        self.reason, self.offset = reason, offset


# ---------------------------------------------------------------- decoding


def read_words(code: bytes | memoryview, offset: int, n_bytes: int) -> int:
    chunk = code[offset : offset + n_bytes]
    if len(chunk) < n_bytes:
        raise DecodeError(f"code ends inside an instruction of {n_bytes} bytes", offset)
    return int.from_bytes(chunk, "little")


def decode(name: str, code: bytes | memoryview, offset: int = 0) -> Inst:
    """The instruction of architecture `name` at `offset` of `code`. Raises DecodeError."""
    if offset < 0:
        raise DecodeError("before the code", offset)
    try:
        word: int = U32(code, offset)[0]
    except StructError:
        raise DecodeError("code ends inside an instruction of 4 bytes", offset) from None
    for mask, entries in structure(name).heads[word >> 23]:
        plan = entries.get(word & mask)
        if plan is not None:
            break
    else:
        raise DecodeError(unknown(name, word), offset)
    if isinstance(plan, Pair):
        return decode_pair(plan, code, offset)
    if plan.longer:
        plan = longer_plan(plan, word, code, offset)
    form = plan.plain
    if form.size > 4:
        word = read_words(code, offset, form.size)
    kind = plan.classify(word)
    if kind:
        form = announced(plan, kind, word, offset)
        word = read_words(code, offset, form.size)
    if word & form.mask != form.value:
        raise DecodeError(misused(plan.row.name, form, word), offset)
    fields = form.extract(word)
    for rule in plan.rules:
        reason = rule(fields)
        if reason:
            raise DecodeError(f"{plan.row.name}: {reason}", offset)
    return made(form.common, fields)


def longer_plan(plan: Plan, word: int, code: bytes | memoryview, offset: int) -> Plan:
    """The instruction of four words that begins with `word`, if the words after it make it one."""
    for longer in plan.longer:
        mask, value = opcode_bits(longer.encoding, longer.row.opcode)
        size = longer.encoding.bits // 8
        begins = word & mask & FIRST_WORD == value & FIRST_WORD and len(code) - offset >= size
        if begins and read_words(code, offset, size) & mask == value:
            return longer
    return plan


def decode_pair(pair: Pair, code: bytes | memoryview, offset: int) -> Inst:
    """A VOPD pair: both halves share the fields, so that each can resolve VDSTY and the literal."""
    word = read_words(code, offset, 8)
    key = pair.opcodes(word)
    forms = pair.forms.get(key) or pair_forms(pair, *key, offset)
    kind = forms.x.classify(word) | forms.y.classify(word)
    if kind > KINDS["lit"]:
        for half in (forms.x, forms.y):
            explain(half, half.plain.extract(word), offset)
    form = forms.plain
    if kind or forms.always_literal:
        form = forms.literal
        word = read_words(code, offset, form.size)
    if word & form.mask != form.value:
        raise DecodeError(misused(str(form.common["name"]), form, word), offset)
    fields = form.extract(word)
    own = {"encoding": form.encoding.name, "size": form.size}
    x, y = (made({**half, **own}, fields) for half in (forms.common_x, forms.common_y))
    return made({**form.common, "x": x, "y": y}, fields)


def pair_forms(pair: Pair, opx: int, opy: int, offset: int) -> PairForms:
    x, y = pair.x.get(opx), pair.y.get(opy)
    if x is None or y is None:
        raise DecodeError(f"no dual instruction has opcodes {opx} and {opy}", offset)
    return pair.forms.setdefault((opx, opy), make_pair_forms(pair, x, y))


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


# ---------------------------------------------------------------- refusals


def unknown(name: str, word: int) -> str:
    """Why no row claims `word`: no encoding begins like it, or its opcode is a hole of one."""
    begun = [e for e in arch(name).tables.encodings.values() if not e.form and word & e.mask & FIRST_WORD == e.value & FIRST_WORD]
    closest = max(begun, key=lambda e: e.mask.bit_count(), default=None)
    opcode = f" ({closest.base} opcode {closest.field('OP').extract(word)})" if closest and closest.has("OP") else ""
    return f"no instruction has the word {word:#010x}{opcode}"


def announced(plan: Plan, kind: int, word: int, offset: int) -> Form:
    """The form that operand numbers ask for. Raises DecodeError."""
    form = plan.by_kind.get(kind)
    if form is None:
        explain(plan, plan.plain.extract(word), offset)
        raise Bug(f"{plan.row.name}: operand numbers of {word:#x} mean {kind} and are not refused")
    return form


def explain(plan: Plan, fields: Mapping[str, int], offset: int) -> None:
    """DecodeError for the operand number that is not possible, if one is not."""
    name = plan.row.name
    form = FORM_OF_CODE.get(fields[plan.selector], "lit") if plan.selector else "lit"
    if form != "lit" and form not in plan.layouts:
        raise DecodeError(f"{name} has no {form} form", offset)
    for check in plan.checks:
        number = fields[check.field]
        if form != "lit" and check.field == plan.selector:
            continue
        if not check.allowed >> number & 1:
            raise DecodeError(f"{name}: {check.field} cannot be {number}", offset)
        if check.align > 1 and number < 128 and number % check.align:
            raise DecodeError(f"{name}: {check.field} {number} is not a multiple of {check.align}", offset)
        if not check.is_source:
            continue
        if number == LITERAL and (check.field not in plan.literals or form != "lit"):
            raise DecodeError(f"{name}: no literal in {check.field}{f' of {form}' if form != 'lit' else ''}", offset)
        if number in (DPP16, DPP8, DPP8_FI, SDWA):
            raise DecodeError(f"{name}: {check.field} cannot be {number}", offset)


def misused(name: str, form: Form, word: int) -> str:
    """Why bits that must hold one value make `word` no instruction."""
    if word & form.reserved:
        return f"{name}: reserved bits {word & form.reserved:#x} are set"
    wrong = (word ^ form.value) & form.mask
    for f in form.encoding.fields:
        if f.mask & wrong:
            if f.name == "NSA":  # its address registers lie in dwords that no table describes
                return f"{name}: non-sequential addresses (NSA) are not described"
            return f"{name}: does not use {f.name}, which cannot be {f.extract(word)}"
    raise Bug(f"{name}: bits {wrong:#x} of {word:#x} belong to no field")


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
