"""One valid instruction of every table row: for coverage, for tests, for warming caches.

    for row, inst in samples("gfx942"): ...     # inst is None where no choice below is an instruction
    sample("gfx942", row)

Registers are the lowest a field admits, vector registers where there is a choice; nothing is negated, clamped or shared between lanes.
"""

from __future__ import annotations

from collections.abc import Iterator

from stuntgpu.isa.arch import EncodingRow, InstRow, arch
from stuntgpu.isa.asm_names import FIRST_VGPR
from stuntgpu.isa.decode import DecodeError, decode, encode, make_plan
from stuntgpu.isa.fixed import fixed_fields
from stuntgpu.isa.inst import Inst

#: Fields that are something else than zero in a plain instruction, where an encoding has them.
PLAIN = {"OP_SEL_HI": 7, "DMASK": 1, "FORMAT": 1, "DFMT": 1, "LITERAL": 0x12345678}
#: The other half beside a sampled half of a dual instruction: a copy between registers of other banks.
PARTNER = "V_DUAL_MOV_B32"
HALVES = ("VOPDX", "VOPDY")


def fields_of(name: str, row: InstRow, encoding: EncodingRow) -> dict[str, int]:
    """The lowest value each field admits, VGPRs before scalars in vector sources."""
    fields = {f.name: PLAIN.get(f.name, 0) for f in encoding.fields if f.name not in ("OP", "OPX", "OPY")}
    wide = {o.field for o in row.operands if o.field and encoding.field(o.field).bits == 9}
    fields |= dict.fromkeys(wide, FIRST_VGPR)
    fields |= {f: v for f, v in fixed_fields(arch(name), row, "").items() if f in fields}
    if "OP_SEL_HI" in fields:
        fields["OP_SEL_HI"] &= (1 << encoding.field("OP_SEL_HI").bits) - 1
    for check in make_plan(arch(name), row).checks:
        admitted = check.allowed
        if not admitted >> fields[check.field] & 1:
            fields[check.field] = (admitted & -admitted).bit_length() - 1
    return fields


def single(name: str, row: InstRow) -> Inst:
    encoding = arch(name).tables.encodings[row.encoding]
    fields = fields_of(name, row, encoding)
    return Inst(name, row.name, encoding.name, row.base, row.opcode, fields, encoding.bits // 8, fields.get("LITERAL"))


def pair(name: str, row: InstRow) -> Inst:
    """A dual instruction with `row` as one half."""
    tables = arch(name).tables
    other = next(r for r in tables.by_name[PARTNER] if r.base != row.base and r.base in HALVES)
    x, y = (row, other) if row.base == "VOPDX" else (other, row)
    encoding = tables.layouts["VOPD", "lit" if "LITERAL" in row.operand_text else ""]
    fields = {f.name: PLAIN.get(f.name, 0) for f in encoding.fields if f.name not in ("OP", "OPX", "OPY")}
    if row.base == "VOPDY" and "VSRCY1" in row.operand_text:
        fields["VSRCY1"] = 1  # another bank than X's
    return Inst(name, row.name, encoding.name, "VOPD", x.opcode << 5 | y.opcode, fields, encoding.bits // 8)


def sample(name: str, row: InstRow) -> Inst | None:
    """A decoded instruction of `row`, None when the choices made here do not make one."""
    made = pair(name, row) if row.base in HALVES else single(name, row)
    try:
        return decode(name, encode(made))
    except DecodeError:
        return None


def samples(name: str) -> Iterator[tuple[InstRow, Inst | None]]:
    """Every table row of architecture `name` with an instruction of it."""
    for row in arch(name).tables.rows:
        yield row, sample(name, row)
