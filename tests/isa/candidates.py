"""Machine words worth comparing: every opcode in every form, fields at their edges, and goldens
with fields changed. Seeded, so that a failure comes back."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

from stuntgpu.isa.arch import Arch, EncodingRow, FieldRow, InstRow, arch
from stuntgpu.isa.decode_checks import VGPR_TYPES

#: Operand numbers with a meaning of their own, and neighbours of those.
SCALARS = (0, 1, 2, 3, 4, 8, 99, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 112, 116, 120, 122, 123, 124, 125, 126, 127)
CONSTANTS = (128, 129, 136, 160, 192, 193, 200, 208, *range(209, 256))
VGPRS = (0, 1, 2, 5, 126, 127, 128, 129, 200, 240, 252, 253, 254, 255)
#: Values that mean something else to another format.
LITERALS = (
    0, 1, 64, 65, 0xFF, 0x3C00, 0x3118, 0xBC00, 0x3F80, 0x3E22, 0xFFF0, 0xFFFF, 0x8000, 0x10000, 0x3C003C00,
    0x3F803F80, 0x3E22F983, 0x3F800000, 0x3FF00000, 0xBF000000, 0x3FC45F30, 0x80000000, 0xFFFFFFFF, 0xFFFFFFF0,
    0xFFFFFFEF, 0x7F800000, 0x7FC00000, 0x00010001, 0xFFFFFFC0, 0x12345678, 0xFFFF8000, 0xFFFF3C00, 0x31183118,
    0xFFF0FFF0, 0x00400040, 0x3C000000, 0x0001FFFF, 0x3E223E22, 0xFFFFFFBF, 0xFFEF, 0x7FFF, 0x13C00, 0x80003C00,
)  # fmt: skip
FLAGS = frozenset({
    "CLAMP", "GLC", "SLC", "DLC", "TFE", "LWE", "OFFEN", "IDXEN", "GDS", "D16", "A16", "R128", "UNORM", "FI", "BOUND_CTRL",
    "NV", "SC0", "SC1", "NT", "LDS", "DONE", "ROW_EN", "SVE", "ACC",
})  # fmt: skip


def source(r: random.Random, bits: int) -> int:
    """A number for a register or source field of `bits`."""
    if bits == 9 and r.random() < 0.5:
        return 256 + (r.choice(VGPRS) if r.random() < 0.5 else r.randrange(256))
    if bits >= 8 and r.random() < 0.35:
        return r.choice(CONSTANTS)
    if bits <= 7 or r.random() < 0.7:
        return r.choice(SCALARS) & ((1 << bits) - 1) if r.random() < 0.6 else r.randrange(1 << min(bits, 7))
    return r.randrange(1 << bits)


def signed_edges(r: random.Random, bits: int) -> int:
    top = 1 << bits
    edges = (0, 1, 2, 63, 64, 65, 255, top >> 1, (top >> 1) - 1, top - 1, top - 64)
    return r.choice(edges) % top if r.random() < 0.6 else r.randrange(top)


def value(r: random.Random, f: FieldRow, used: Mapping[str, str]) -> int:
    """A value for a field, edges more often than not. `used`: fields of operands and their types
    ("" unknown); where only VGPRs go there is nothing else, as LLVM dies of that."""
    name, bits = f.name, f.bits
    is_register = name.startswith(("SRC", "SSRC", "VSRC", "SDST", "SDATA", "SBASE", "SOFFSET", "SADDR", "RSRC", "SAMP", "SRSRC", "SSAMP"))
    is_register = is_register and not name.endswith(("_NEG", "_ABS", "_SEL", "_SEXT"))
    if is_register and bits >= 4:
        if name not in used and r.random() < 0.9:
            return 124 & ((1 << bits) - 1) if name in ("SADDR", "SOFFSET") and bits == 7 else 0
        if name.startswith("VSRC") and bits == 8:
            return r.choice(VGPRS) if r.random() < 0.5 else r.randrange(256)
        number = source(r, bits)
        if used.get(name) in VGPR_TYPES and bits == 9:
            return number % 256 + 256
        return number & ~(r.choice((0, 1, 3))) if name.startswith("S") else number
    if name == "LITERAL":
        return r.choice(LITERALS) if r.random() < 0.6 else r.getrandbits(32)
    if name in FLAGS or bits == 1:
        return int(r.random() < 0.25)
    if name in ("ROW_MASK", "BANK_MASK"):
        return 15 if r.random() < 0.5 else r.randrange(16)
    if name == "DPP_CTRL":
        return r.choice((r.randrange(256), r.randrange(256, 384), r.randrange(512)))
    if name in ("OP_SEL", "OP_SEL_HI", "NEG", "NEG_HI", "ABS", "OMOD", "TH", "SCOPE", "CBSZ", "BLGP", "ABID"):
        return 0 if r.random() < 0.5 else r.randrange(1 << bits)
    if name not in used and name in ("VDST", "DATA", "DATA0", "DATA1", "ADDR", "VADDR", "VDATA") and r.random() < 0.9:
        return 0
    if bits == 8:
        return r.choice(VGPRS) if r.random() < 0.5 else r.randrange(256)
    return signed_edges(r, bits)


def word(r: random.Random, target: Arch, row: InstRow, form: str, layout: EncodingRow) -> bytes:
    """One instruction of `row` in `form`."""
    used = {o.field: o.type for o in row.operands}
    bits = layout.value
    for f in layout.fields:
        number = row.opcode if f.name == "OP" else value(r, f, used)
        bits |= f.insert(number)
    bits = announce(r, row, form, layout, bits)
    return bits.to_bytes(layout.bits // 8, "little")


def announce(r: random.Random, row: InstRow, form: str, layout: EncodingRow, bits: int) -> int:
    """`bits` with the source that says which form it is."""
    code = {"dpp16": 250, "dpp8": r.choice((233, 234)), "sdwa": 249}.get(form)
    if code is not None:
        field = layout.field("SRC0")
        return bits & ~field.mask | field.insert(code)
    if form == "lit":
        fields = [f for f in layout.fields if f.bits >= 8 and f.name.startswith(("SRC", "SSRC"))]
        for f in r.sample(fields, r.choice((1, 1, 2)) if len(fields) > 1 else len(fields)):
            bits = bits & ~f.mask | f.insert(255)
    return bits


def literals(name: str) -> Iterator[bytes]:
    """Every instruction with a literal in each of its sources, for each of LITERALS."""
    target = arch(name)
    for row in target.tables.rows:
        base = "VOPD" if row.base.startswith("VOPD") else row.base
        layout = target.tables.layouts.get((base, "lit"))
        if layout is None or base == "VOPD":
            continue
        bits = layout.value
        for f in layout.fields:
            bits |= f.insert(row.opcode if f.name == "OP" else PLAIN.get(f.name, 0))
        fields = [layout.field(o.field) for o in row.operands if o.field.startswith(("SRC", "SSRC"))]
        for f in fields or layout.fields[:1]:
            for number in LITERALS:
                word = bits & ~f.mask | f.insert(255) if fields else bits
                yield (word | layout.field("LITERAL").insert(number)).to_bytes(layout.bits // 8, "little")


#: Registers for fields in which these make an instruction of any type.
PLAIN = {"SRC0": 264, "SRC1": 272, "SRC2": 280, "VSRC1": 16, "VDST": 32, "SSRC0": 8, "SSRC1": 16, "SDST": 24, "OP_SEL_HI": 0}


def numbers(name: str) -> Iterator[bytes]:
    """Every instruction with each number of SCALARS and CONSTANTS, literals apart, in each of its sources."""
    target = arch(name)
    for row in target.tables.rows:
        layout = target.tables.encodings[row.encoding]
        if row.base.startswith("VOPD"):
            continue
        bits = layout.value
        for f in layout.fields:
            bits |= f.insert(row.opcode if f.name == "OP" else PLAIN.get(f.name, 0))
        operands = [o for o in row.operands if o.field.startswith(("S", "RSRC", "VSRC")) and o.type not in VGPR_TYPES]
        for f in (layout.field(o.field) for o in operands):
            for number in (*SCALARS, *CONSTANTS[:-1]):
                if number >> (f.bits + f.padding) == 0:
                    yield (bits & ~f.mask | f.insert(number >> f.padding)).to_bytes(layout.bits // 8, "little")


def immediates(name: str, step: int = 61) -> Iterator[bytes]:
    """Scalar instructions with an immediate: every `step`th value, and all with few bits set or clear."""
    target = arch(name)
    edges = {n for a in range(16) for b in range(16) for n in (1 << a | 1 << b, 0xFFFF & ~(1 << a | 1 << b))}
    for row in target.tables.rows:
        layout = target.tables.encodings[row.encoding]
        if row.base not in ("SOPP", "SOPK") or not layout.has("SIMM16"):
            continue
        bits = layout.value | layout.field("OP").insert(row.opcode)
        for number in sorted({*range(0, 1 << 16, step), *range(64), *edges}):
            yield (bits | layout.field("SIMM16").insert(number)).to_bytes(layout.bits // 8, "little")


def dual(r: random.Random, target: Arch) -> bytes:
    """A VOPD pair."""
    layout = target.tables.layouts["VOPD", r.choice(("", "", "lit"))]
    bits = layout.value
    for f in layout.fields:
        number = value(r, f, {"SRCX0": "", "SRCY0": ""})
        if f.name in ("OPX", "OPY"):
            number = r.randrange(14 if f.name == "OPX" else 19)
        bits |= f.insert(number)
    return announce(r, target.tables.rows[0], layout.form, layout, bits).to_bytes(layout.bits // 8, "little")


def generated(name: str, seed: int, each: int) -> Iterator[bytes]:
    """`each` words for every opcode and form of architecture `name`."""
    r, target = random.Random(seed), arch(name)
    for row in target.tables.rows:
        if row.base.startswith("VOPD"):
            yield from (dual(r, target) for _ in range(each * 12))
            continue
        for form, layout in target.tables.layouts_of(row):
            yield from (word(r, target, row, form, layout) for _ in range(each))


def changed(name: str, seed: int, codes: list[bytes], each: int) -> Iterator[bytes]:
    """Each of `codes` with one or two fields replaced, or a few bits turned over."""
    r, target = random.Random(seed), arch(name)
    by_bits: dict[int, list[EncodingRow]] = {}
    for layout in target.tables.encodings.values():
        by_bits.setdefault(layout.bits, []).append(layout)
    for code in codes:
        whole = int.from_bytes(code, "little")
        fits = [e for e in by_bits.get(len(code) * 8, ()) if whole & e.mask == e.value]
        for _ in range(each):
            yield change(r, whole, fits).to_bytes(len(code), "little") if fits else turn(r, code)


def change(r: random.Random, whole: int, fits: list[EncodingRow]) -> int:
    layout = r.choice(fits)
    used = dict.fromkeys((f.name for f in layout.fields), "")
    for f in r.sample(layout.fields, r.choice((1, 1, 2))):
        whole = whole & ~f.mask | f.insert(value(r, f, used))
    return whole


def turn(r: random.Random, code: bytes) -> bytes:
    bits = int.from_bytes(code, "little")
    for _ in range(r.choice((1, 2, 4))):
        bits ^= 1 << r.randrange(len(code) * 8)
    return bits.to_bytes(len(code), "little")
