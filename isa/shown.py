"""Which bits of an instruction its text determines, which must hold one value, which are passed over.

The first follow from the syntax: every operand slot and modifier speaks of certain fields. Of the
rest `isa.errata.ignored` lists those that may hold anything. So decoding knows what to refuse, and
what assembling a disassembly gives back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from stuntgpu.isa.arch import EncodingRow, FieldRow, InstRow, arch
from stuntgpu.isa.asm_names import LITERAL, is_short_literal, literal_kind
from stuntgpu.isa.errata import ignored
from stuntgpu.isa.errors import Bug
from stuntgpu.isa.fixed import fixed_fields
from stuntgpu.isa.inst import Inst
from stuntgpu.isa.syntax import MIX, n_sources, syntax
from stuntgpu.isa.syntax_types import Modifier, Slot

ALL = -1
#: (field, bits of its value)
Bits = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Fixed:
    """Bits of an instruction word that no text shows: under `mask` they hold `value`; those of
    `ignored` may be anything."""

    mask: int
    value: int
    ignored: int


# ---------------------------------------------------------------- operands


def source(slot: Slot) -> Iterator[Bits]:
    bit = 1 << slot.index
    yield slot.field, ALL
    if slot.signed:
        yield from (("NEG", bit), ("NEG_HI" if slot.style == MIX else "ABS", bit))
        yield from ((f"SRC{slot.index}_NEG", ALL), (f"SRC{slot.index}_ABS", ALL))
    if slot.half == "opsel":
        yield "OP_SEL", bit
    if slot.acc not in ("", "always"):
        yield slot.acc, bit


def sdwa(slot: Slot) -> Iterator[Bits]:
    i = slot.index
    yield from ((slot.field, ALL), (f"S{i}", ALL))
    yield from ((f"SRC{i}_{sign}", ALL) for sign in ("NEG", "ABS", "SEXT"))


def images(slot: Slot) -> Iterator[Bits]:
    yield from ((f"VADDR{i}", ALL) for i in range(slot.index))


def fields(*names: str) -> Callable[[Slot | Modifier], Iterator[Bits]]:
    def bits(part: Slot | Modifier) -> Iterator[Bits]:
        yield part.field, ALL
        yield from ((name, ALL) for name in names)

    return bits


ITS_OWN = fields()
SLOTS: Mapping[str, Callable[[Slot], Iterator[Bits]]] = {
    "src": source, "vgpr": source, "returned": source, "sreg": ITS_OWN, "spair": ITS_OWN, "vcc": lambda s: iter(()),
    "imm": ITS_OWN, "label": ITS_OWN, "literal": ITS_OWN, "dual_y": fields("VDSTX"), "smem_offset": fields("OFFSET"),
    "smem_offset24": ITS_OWN, "offset24": ITS_OWN, "image_list": images, "global_addr": ITS_OWN,
    "scratch_addr": fields("SVE"), "saddr": ITS_OWN, "buffer_data": ITS_OWN, "buffer_addr": fields("OFFEN", "IDXEN"),
    "image_data": ITS_OWN, "image_addr": ITS_OWN, "export": fields("EN", "TGT"), "attr": fields("ATTR_CHAN"),
    "sdwa": sdwa, "sdwa_mask": fields("SD"), "smem_enabled": fields("OFFSET", "SOFFSET_EN", "IMM"),
    "lds_or_data": source, "formatted": source, "optional": ITS_OWN,
}  # fmt: skip

# ---------------------------------------------------------------- modifiers


def listed(m: Modifier) -> Iterator[Bits]:
    yield m.field, (1 << m.count) - 1


def selected_byte(m: Modifier) -> Iterator[Bits]:
    yield m.field, 1 << m.count | 1 << m.default


def one_bit(m: Modifier) -> Iterator[Bits]:
    yield m.field, 1 << m.count


def lanes(m: Modifier) -> Iterator[Bits]:
    yield from ((f"LANE_SEL_{i}", ALL) for i in range(8))


MODIFIERS: Mapping[str, Callable[[Modifier], Iterator[Bits]]] = {
    **dict.fromkeys(("always", "dim", "dmask", "dpp8_fi", "flag", "format", "hex", "number", "omod", "one", "scope",
                     "sdwa_sel", "sdwa_unused", "signed", "smem_offset", "smem_offset24", "th"), ITS_OWN),
    "list": listed, "op_sel_bit": one_bit, "byte_sel": selected_byte, "dpp8": lanes,
    "omod": lambda m: iter((("OMOD", ALL),)), "dpp_ctrl": lambda m: iter((("DPP_CTRL", ALL),)),
    "bitop3": fields("ABS", "NEG"), "ds_offset": fields("OFFSET1"), "swizzle": fields("OFFSET1"),
    "smem_enabled": fields("SOFFSET_EN", "IMM"), "split_format": fields("NFMT"),
}  # fmt: skip


def op_sel(m: Modifier, row: InstRow) -> Iterator[Bits]:
    """Entries of the list are sources; the last is the destination's, bit 3, where there is a vector one."""
    if m.count == 4:
        yield "OP_SEL", 15
    elif row.name.startswith("V_CMP"):
        yield "OP_SEL", (1 << n_sources(row)) - 1
    else:
        yield "OP_SEL", 8 | (1 << m.count - 1) - 1


# ---------------------------------------------------------------- whole instructions


def shown(name: str, base: str, opcode: int, form: str) -> dict[str, int]:
    """Field -> bits of it that the text determines."""
    s = syntax(name, base, opcode, form)
    out: dict[str, int] = {"LITERAL": ALL}
    if form:
        out["SRC0"] = ALL  # announces the form
    parts = [bits for slot in s.slots for bits in SLOTS[slot.kind](slot)]
    for m in s.modifiers:
        if m.kind != "op_sel" and m.kind not in MODIFIERS:
            raise Bug(f"modifier kind {m.kind!r} does not say which fields it shows")
        parts += op_sel(m, s.row) if m.kind == "op_sel" else MODIFIERS[m.kind](m)
    own_signs = base.startswith("VOP3")  # those of the DPP word are not used
    for field, bits in parts:
        if not (own_signs and field.startswith("SRC") and field.endswith(("_NEG", "_ABS"))):
            out[field] = out.get(field, 0) | bits
    return out


def word_bits(field: FieldRow, bits: int) -> int:
    return field.insert(bits & ((1 << field.bits) - 1))


@cache
def fixed(name: str, base: str, opcode: int, form: str, layout: EncodingRow) -> Fixed:
    """What holds for the bits of `layout` that the text of the instruction does not show."""
    row = arch(name).tables.by_base[base, opcode]
    said, defaults = shown(name, base, opcode, form), fixed_fields(arch(name), row, form)
    anything = {f for i in ignored.rows(name, base, row.name) for f in i.fields.split()}
    mask = value = free = 0
    for field in layout.fields:
        if field.name in ("OP", "OPX", "OPY"):
            continue
        rest = word_bits(field, ~said.get(field.name, 0)) & ~layout.mask
        if field.name in anything:
            free |= rest
        else:
            mask |= rest
            value |= field.insert(defaults.get(field.name, 0)) & rest
    return Fixed(mask, value, free)


def fixed_pair(name: str, opx: int, opy: int, layout: EncodingRow) -> Fixed:
    """The same for a dual instruction, whose text is that of both halves."""
    halves = [shown(name, base, opcode, "") for base, opcode in (("VOPDX", opx), ("VOPDY", opy))]
    said = halves[0].keys() | halves[1].keys() | {"OPX", "OPY"}
    unsaid = [f for f in layout.fields if f.name not in said]
    anything = {f for i in ignored.rows(name, "VOPD", "") for f in i.fields.split()}
    free = sum(f.mask for f in unsaid if f.name in anything)
    return Fixed(sum(f.mask for f in unsaid) & ~free, 0, free)


def ignored_bits(inst: Inst) -> int:
    """Bits of the word of `inst` that its text does not give back: it means the same whatever they hold."""
    tables = arch(inst.arch).tables
    layout = tables.encodings[inst.encoding]
    if inst.base == "VOPD":
        return fixed_pair(inst.arch, inst.opcode >> 5, inst.opcode & 31, layout).ignored
    form = "" if layout.form == "lit" else layout.form
    row = tables.by_base[inst.base, inst.opcode]
    free = fixed(inst.arch, inst.base, inst.opcode, form, layout).ignored
    for i in ignored.rows(inst.arch, inst.base, row.name, conditional=True):
        for name in i.fields.split():
            if layout.has(name):
                free |= word_bits(layout.field(name), conditional_bits(inst, i.when, name))
    return free


def conditional_bits(inst: Inst, when: str, field: str) -> int:
    if when == "half literal":
        return half_literal(inst)
    if when == "no return" and "_ATOMIC_" not in inst.name:
        return 0
    return ignored.CONDITIONS[when](inst.fields, field)


def half_literal(inst: Inst) -> int:
    """Bits of the literal that no operand reads."""
    slots = syntax(inst.arch, inst.base, inst.opcode, "").slots
    readers = [s for s in slots if s.kind == "literal" or (s.kind == "src" and inst.fields.get(s.field) == LITERAL)]
    value = inst.fields.get("LITERAL", 0)
    return 0xFFFF_0000 if all(is_short_literal(value, literal_kind(s.fmt, s.bits), s.bits) for s in readers) else 0
