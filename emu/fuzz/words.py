"""Random valid instructions of an architecture: every row, every form, every field it uses.

An instruction starts as a valid one of its row and form; then each field in turn is given a random
value, which stays when the result still decodes to the same instruction. So no rule of the encoding is
written down twice, and nothing the decoder admits is left out.

Units:   field values are raw.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import lru_cache

from stuntgpu.isa.arch import EncodingRow, FieldRow, InstRow, arch
from stuntgpu.isa.decode import DecodeError, decode, encode
from stuntgpu.isa.errors import Unmodelled
from stuntgpu.isa.fixed import fixed_fields
from stuntgpu.isa.inst import Inst
from stuntgpu.isa.memory_fields import SEGMENTS
from stuntgpu.isa.samples import HALVES, fields_of, sample
from stuntgpu.isa.semantics import semantics

#: Few registers, so that operands meet; their neighbours at the ends of both files.
_VGPRS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 20, 24, 31, 32, 64, 127, 128, 129, 130, 200, 248, 252, 254, 255)
_SGPRS = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 64, 98, 100, 101, 104, 105, 106, 107, 108, 112, 120, 123, 124, 125, 126, 127)
_CONSTANTS = (128, 129, 130, 144, 192, 193, 194, 208, *range(235, 249), 251, 252, 253)
_LITERALS = (
    0, 1, 0xFFFF_FFFF, 0x8000_0000, 0x7FFF_FFFF, 0x3F80_0000, 0x7F80_0000, 0xFF80_0001, 0x7FC0_0000, 0x007F_FFFF,
    0x3C00, 0xFC00, 0x7E00_7C01, 0x8000_0001, 0x0001_0000, 0xFFFF, 0x1234_5678,
)  # fmt: skip
#: First source that announces a form.
_MARKS = {"dpp8": (233, 234), "dpp16": (250,), "dpp": (250,), "sdwa": (249,), "sdwa_sdst": (249,)}
_MODIFIERS = ("NEG", "NEG_HI", "ABS", "OMOD", "OP_SEL", "OP_SEL_HI", "TH", "SCOPE", "CBSZ", "ABID", "BLGP")
#: Flags under which few instructions are built.
_SELDOM = ("GDS", "TFE", "LWE")
_TRIES = 3


@lru_cache(maxsize=8)
def rows(name: str) -> tuple[InstRow, ...]:
    """Rows that have semantics; the first halves of pairs stand for pairs."""
    return tuple(r for r in arch(name).tables.rows if r.base != "VOPDY" and _is_modelled(name, r))


def _is_modelled(name: str, row: InstRow) -> bool:
    try:
        semantics(name, row.name)
    except Unmodelled:
        return False
    return True


# ---------------------------------------------------------------- values of fields


def _register(rng: random.Random, choices: Sequence[int], bits: int) -> int:
    return rng.choice(choices) if rng.random() < 0.8 else rng.getrandbits(min(bits, 8))


def _source(rng: random.Random, bits: int) -> int:
    """A source: VGPRs above 256 where the field has room, scalars, constants."""
    kind = rng.random()
    if bits >= 9 and kind < 0.6:
        return 256 + _register(rng, _VGPRS, 8)
    if bits >= 8 and kind < 0.8:
        return rng.choice(_CONSTANTS) if rng.random() < 0.7 else rng.randrange(128, 256)
    return _register(rng, _SGPRS, 7)


def _number(rng: random.Random, bits: int) -> int:
    top = 1 << bits
    edges = (0, 1, 2, 4, 8, 16, top >> 1, (top >> 1) - 1, top - 1, top - 4)
    return rng.choice(edges) % top if rng.random() < 0.7 else rng.randrange(top)


def value(rng: random.Random, f: FieldRow) -> int:
    """Something for a field, edges more often than not."""
    name, bits = f.name, f.bits
    if name == "LITERAL":
        return rng.choice(_LITERALS) if rng.random() < 0.5 else rng.getrandbits(32)
    if name in _MODIFIERS:
        return 0 if rng.random() < 0.5 else rng.getrandbits(bits)
    if bits == 1:
        return int(rng.random() < (0.02 if name in _SELDOM else 0.3))
    if name in ("ROW_MASK", "BANK_MASK"):
        return 15 if rng.random() < 0.5 else rng.randrange(16)
    if name.startswith("VSRC") or name in ("VDST", "VDSTX", "VDSTY", "ADDR", "VADDR", "DATA", "DATA0", "DATA1", "VDATA"):
        return _register(rng, _VGPRS, bits) % (1 << bits)
    if bits >= 7 and name.startswith(("SRC", "SSRC", "SDST", "SDATA", "SADDR", "SOFFSET", "SBASE", "SRSRC", "RSRC")):
        return _source(rng, bits) % (1 << bits)
    return _number(rng, bits)


# ---------------------------------------------------------------- instructions


def _made(name: str, row: InstRow, layout: EncodingRow, fields: dict[str, int]) -> Inst | None:
    """The instruction when the decoder says it is one of `row`."""
    draft = Inst(name, row.name, layout.name, row.base, row.opcode, fields, layout.bits // 8, fields.get("LITERAL"))
    return _checked(draft)


def _checked(draft: Inst) -> Inst | None:
    try:
        inst = decode(draft.arch, encode(draft))
    except DecodeError:
        return None
    return inst if (inst.name, inst.base) == (draft.name, draft.base) else None


def _first(rng: random.Random, name: str, row: InstRow, form: str, layout: EncodingRow) -> Inst | None:
    """A plain instruction in a form, None when the row does not come in it."""
    if any(o.field and not layout.has(o.field) for o in row.operands):
        return None  # a literal of its own leaves no room for lanes
    fields = fields_of(name, row, layout)
    fields |= {f: v for f, v in fixed_fields(arch(name), row, form).items() if f in fields}
    if form in _MARKS:
        fields["SRC0"] = rng.choice(_MARKS[form])
        plain = {"ROW_MASK": 15, "BANK_MASK": 15, "VSRC0": 1, "DPP_CTRL": 0xE4}
        fields |= {f: v for f, v in plain.items() if f in fields}
    elif form == "lit" and "LITERAL" not in row.operand_text:
        sources = [o.field for o in row.operands if o.field.startswith(("SRC", "SSRC"))]
        if not sources:
            return None
        fields[rng.choice(sources)] = 255
    return _made(name, row, layout, fields)


def varied(rng: random.Random, inst: Inst, layout: EncodingRow, keep: Sequence[str] = ()) -> Inst:
    """The same instruction with other values in its fields."""
    order = [f for f in layout.fields if f.name in inst.fields and f.name not in ("OP", "OPX", "OPY", *keep)]
    rng.shuffle(order)
    for f in order:
        announces = f.name.startswith(("SRC", "SSRC")) and inst.fields[f.name] in (233, 234, 249, 250, 255)
        for _ in range(0 if announces else _TRIES):
            other = _checked(_with(inst, f.name, value(rng, f)))
            if other is not None and other.encoding == inst.encoding:
                inst = other
                break
    return inst


def _with(inst: Inst, field: str, number: int) -> Inst:
    fields = {**inst.fields, field: number}
    return Inst(inst.arch, inst.name, inst.encoding, inst.base, inst.opcode, fields, inst.size, fields.get("LITERAL"))


def pair(rng: random.Random, name: str, row: InstRow) -> Inst | None:
    """A dual instruction with `row` first."""
    tables = arch(name).tables
    second = rng.choice([r for r in tables.rows if r.base == HALVES[1] and _is_modelled(name, r)])
    literal = rng.random() < 0.3 or "LITERAL" in row.operand_text + second.operand_text
    layout = tables.layouts["VOPD", "lit" if literal else ""]
    fields = {f.name: 0 for f in layout.fields if f.name not in ("OP", "OPX", "OPY")}
    fields |= {"VSRCX1": 4, "VSRCY1": 5, "SRCX0": 256, "SRCY0": 257, "VDSTX": 8}
    draft = Inst(name, "", layout.name, "VOPD", row.opcode << 5 | second.opcode, fields, layout.bits // 8, 0)
    try:
        inst = decode(name, encode(draft))
    except DecodeError:
        return None
    return varied(rng, inst, tables.encodings[inst.encoding])


def instruction(rng: random.Random, name: str, row: InstRow) -> Inst:
    """A random instruction of `row`. Memory instructions keep immediate offsets that can be aligned."""
    if row.base == HALVES[0]:
        return pair(rng, name, row) or _plain(name, row)
    form, layout = rng.choice(list(arch(name).tables.layouts_of(row)))
    inst = _first(rng, name, row, form, layout) or _plain(name, row)
    return varied(rng, inst, arch(name).tables.encodings[inst.encoding], ("SIMM16",) if row.base == "SOPP" else ())


def _plain(name: str, row: InstRow) -> Inst:
    inst = sample(name, row)
    if inst is None:
        raise ValueError(f"{name}: no sample of {row.name}")
    return inst


def is_memory(inst: Inst) -> bool:
    """It has addresses."""
    return inst.base in SEGMENTS
