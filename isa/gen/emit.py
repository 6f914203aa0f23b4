"""Writes the table text of one architecture from its records.

Rows are sorted and one to a line, so a change of input shows as a readable diff.
Errors:  SpecError for opcodes that do not fit or collide.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

from stuntgpu.isa.errata.encodings import EXTRA_SOURCES, encoding_of, extra_forms
from stuntgpu.isa.errata.operands import mended
from stuntgpu.isa.errors import SpecError
from stuntgpu.isa.gen import roles
from stuntgpu.isa.gen.xml import Encoding, Field, Form, Instruction, OperandType, Spec

SUFFIXES = {
    "_INST_LITERAL": "lit",
    "_VOP_DPP16": "dpp16",
    "_VOP_DPP8": "dpp8",
    "_VOP_DPP": "dpp16",
    "_VOP_SDWA_SDST_ENC": "sdwa_sdst",
    "_VOP_SDWA": "sdwa",
}
PLAIN_CODE = re.compile(r"[sv]\d+|TTMP\d+|acc\d+|a\d+|-?\d+")


def split_name(encoding: str) -> tuple[str, str]:
    """(base family, form) of an encoding: VOP2_VOP_DPP16 is ("VOP2", "dpp16")."""
    stem, form = encoding.removeprefix("ENC_"), ""
    for suffix, short in SUFFIXES.items():
        if stem.endswith(suffix):
            stem, form = stem.removesuffix(suffix), short
            break
    if (stem, form) == ("VOPC", "sdwa_sdst"):  # its only SDWA layout
        form = "sdwa"
    return ("VOPD" if stem == "VOPDXY" else stem.removesuffix("_ENC")), form


def fixed_bits(encoding: Encoding) -> tuple[int, int]:
    """(mask, value) of the bits that tell this encoding from others, the opcode left out."""
    op = 0
    for f in encoding.fields:
        if f.name == "OP":
            op = sum(((1 << n) - 1) << at for at, n in f.parts)
    mask = encoding.mask & ~op
    values = {i & mask for i in encoding.identifiers}
    if len(values) != 1:
        raise SpecError(f"{encoding.name}: identifiers disagree outside OP: {sorted(values)}")
    return mask, values.pop()


def field_text(field: Field) -> str:
    parts = ",".join(f"{at}+{n}" for at, n in field.parts)
    return f"{field.name}:{parts}" + (f"<<{field.padding}" if field.padding else "")


def encoding_rows(spec: Spec) -> Iterable[str]:
    for name in sorted(spec.encodings):
        e = spec.encodings[name]
        base, form = split_name(name)
        mask, value = fixed_bits(e)
        fields = " ".join(field_text(f) for f in e.fields if f.name != "ENCODING")
        yield f"{name}|{base}|{form}|{e.bits}|{mask:#x}|{value:#x}|{fields}"


def slot(form: Form) -> str:
    """VOPD halves are told apart by their fields: "X", "Y", or "" elsewhere."""
    names = {o.field for o in form.operands}
    return "X" if "VDSTX" in names else "Y" if "VDSTY" in names else ""


def instruction_rows(spec: Spec, instruction: Instruction, arch: str) -> Iterable[str]:
    """A row for each base encoding of an instruction, its condition forms folded into a column."""
    rows: dict[tuple[str, str], tuple[Form, list[str]]] = {}
    extra: list[tuple[str, str, Form]] = []
    for form in instruction.forms:
        base, short = split_name(form.encoding)
        if form.condition == "default":
            key = (base, slot(form))
            if key in rows:
                raise SpecError(f"line {form.line}: {instruction.name} has two {base} forms")
            check_opcode(spec, instruction, form)
            rows[key] = (form, [])
        else:
            extra.append((base, form.condition.removeprefix("has_") if short == "lit" else short, form))
    for base, short, form in extra:
        owner = rows.get((base, ""))
        if owner is None or owner[0].opcode != form.opcode:
            raise SpecError(f"line {form.line}: {instruction.name} {form.encoding}: no base form")
        owner[1].append(short)
    flags = " ".join(sorted(instruction.flags))
    for (base, half), (form, shorts) in rows.items():
        base, encoding = encoding_of(base, instruction.name, form.encoding)
        operands = mended(arch, base, instruction.name, roles.render(base, instruction, form))
        forms = " ".join(sorted({*shorts, *extra_forms(arch, base, instruction.name)}))
        yield (
            f"{base}{half}|{form.opcode}|{instruction.name}|{encoding}|{forms}|{flags}|{operands}"
        )


def check_opcode(spec: Spec, instruction: Instruction, form: Form) -> None:
    encoding = spec.encodings[form.encoding]
    name = f"OP{slot(form)}"
    op = next((f for f in encoding.fields if f.name == name), None)
    width = op.bits if op else 0  # EXP has no OP field: its one opcode is 0
    if form.opcode >> width:
        raise SpecError(
            f"line {form.line}: {instruction.name}: opcode {form.opcode} does not fit {form.encoding}"
        )


def all_instruction_rows(spec: Spec, arch: str) -> Iterable[str]:
    rows = [r for i in spec.instructions for r in instruction_rows(spec, i, arch)]
    keyed = sorted((r.split("|")[0], int(r.split("|")[1]), r) for r in rows)
    for (base, opcode, row), (next_base, next_opcode, other) in pairwise(keyed):
        if (base, opcode) == (next_base, next_opcode) and base not in ("VOP3PX2",):
            names = row.split("|")[2], other.split("|")[2]
            raise SpecError(f"{base} opcode {opcode} is both {names[0]} and {names[1]}")
    return (row for _, _, row in keyed)


def closure(spec: Spec, name: str) -> dict[str, int]:
    """Codes of an operand type and all its subtypes."""
    codes: dict[str, int] = {}
    pending = [name]
    while pending:
        kind = spec.types[pending.pop()]
        codes.update(kind.codes)
        pending.extend(kind.subtypes)
    return codes


def ranges(values: Iterable[int]) -> str:
    """`0-3 7` for {0, 1, 2, 3, 7}."""
    out: list[list[int]] = []
    for v in sorted(set(values)):
        if out and out[-1][1] == v - 1:
            out[-1][1] = v
        else:
            out.append([v, v])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in out)


def type_rows(spec: Spec, arch: str) -> Iterable[str]:
    extra = EXTRA_SOURCES.get(arch, {})
    for name in sorted(spec.types):
        codes = set(closure(spec, name).values())
        codes |= {v for v in extra if v - 1 in codes}  # where its neighbour goes, it goes
        if codes:
            yield f"{short(name)}|{ranges(codes)}"


def code_rows(spec: Spec, arch: str) -> Iterable[str]:
    """Names of scalar source numbers that do not follow a pattern: registers and constants."""
    codes = {
        (v, n) for n, v in closure(spec, "OPR_SRC").items() if not PLAIN_CODE.fullmatch(n)
    }
    codes |= set(EXTRA_SOURCES.get(arch, {}).items())
    return (f"{value}|{name}" for value, name in sorted(codes))


def part_rows(spec: Spec) -> Iterable[str]:
    """Fields inside immediates: which bits, and the names of values."""
    for name in sorted(spec.types):
        for f in spec.types[name].fields:
            values = " ".join(f"{n}={v}" for n, v in f.values)
            yield f"{short(name)}|{field_text(f)}|{values}"


def short(name: str) -> str:
    return name.removeprefix("OPR_").lower()


def constant(name: str, comment: str, rows: Iterable[str]) -> str:
    body = "\n".join(rows)
    return f'# {comment}\n{name} = """\\\n{body}\n"""\n'


def enumerations(spec: Spec) -> Iterable[str]:
    """Named values of fixed small operand types (export targets)."""
    for name in ("OPR_TGT",):
        kind: OperandType | None = spec.types.get(name)
        for n, v in kind.codes if kind else ():
            yield f"{short(name)}|{v}|{n}"


def added_tables(spec: Spec, arch: str, extended: str, header: str) -> str:
    """Text of isa/tables/<arch>.py of an architecture that adds the instructions of `spec` to those of `extended`."""
    return "\n".join((
        header,
        f'"""What {arch} adds to the tables of {extended}."""\n',
        constant("INSTRUCTIONS", "base|opcode|name|encoding|forms|flags|operands", all_instruction_rows(spec, arch)),
    ))  # fmt: skip


def tables(spec: Spec, arch: str, header: str) -> str:
    """Text of isa/tables/<arch>.py."""
    parts = [
        header,
        f'"""Encodings, opcodes and operands of {arch} ({spec.architecture})."""\n',
        constant("ENCODINGS", "name|base|form|bits|mask|value|fields low bit first", encoding_rows(spec)),
        constant("INSTRUCTIONS", "base|opcode|name|encoding|forms|flags|operands", all_instruction_rows(spec, arch)),
        constant("TYPES", "operand type|numbers it admits", type_rows(spec, arch)),
        constant("CODES", "operand number|name", code_rows(spec, arch)),
        constant("PARTS", "immediate type|field|named values", part_rows(spec)),
        constant("ENUMS", "operand type|value|name", enumerations(spec)),
    ]
    return "\n".join(parts)
