"""Reads AMD-schema ISA XML (schema 1.1.1) into plain records, checking as it goes.

Units:   bit positions and sizes in bits.
Errors:  SpecError names the file, the line, the element and what is wrong with it.
Source:  schema as described by AMD's isa_spec_manager (`Spec/ISA/{Encodings, Instructions, ...}`).
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.parsers import expat

from stuntgpu.isa.errors import SpecError


class Element(ET.Element):
    """An element that knows the file and line of its start tag."""

    file = ""
    line = 0


def where(node: ET.Element) -> str:
    """`file:line: <Tag>` for messages."""
    if isinstance(node, Element):
        return f"{node.file}:{node.line}: <{node.tag}>"
    return f"<{node.tag}>"


def bad(node: ET.Element, what: str) -> SpecError:
    return SpecError(f"{where(node)}: {what}")


def parse(text: bytes, file: str) -> ET.Element:
    """Element tree of an XML document whose elements carry lines. Raises SpecError if ill-formed."""
    stack: list[ET.Element] = []
    roots: list[ET.Element] = []
    last: list[ET.Element | None] = [None]  # element whose tail is being read, if any
    parser = expat.ParserCreate()

    def start(tag: str, attributes: dict[str, str]) -> None:
        node = Element(tag, attributes)
        node.file, node.line = file, parser.CurrentLineNumber
        (stack[-1] if stack else roots).append(node)
        stack.append(node)
        last[0] = None

    def end(_tag: str) -> None:
        last[0] = stack.pop()

    def data(chars: str) -> None:
        if last[0] is None and stack:
            stack[-1].text = (stack[-1].text or "") + chars

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = data
    parser.buffer_text = True
    try:
        parser.Parse(text, True)
    except expat.ExpatError as e:
        at = stack[-1] if stack else None
        inside = f"inside {where(at)}" if at is not None else "outside any element"
        raise SpecError(f"{file}:{e.lineno}: {expat.ErrorString(e.code)}, {inside}") from e
    return roots[0]


# ---------------------------------------------------------------- records


@dataclass(frozen=True)
class Field:
    """A microcode field; `parts` are (offset, count) low bits first, `padding` low bits not stored."""

    name: str
    parts: tuple[tuple[int, int], ...]
    padding: int = 0
    values: tuple[tuple[str, int], ...] = ()

    @property
    def bits(self) -> int:
        return sum(count for _, count in self.parts)


@dataclass(frozen=True)
class Encoding:
    """`mask` and `identifiers` cover the encoding and opcode bits; fields include ENCODING and OP."""

    name: str
    bits: int
    mask: int
    identifiers: frozenset[int]
    conditions: tuple[str, ...]
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class OperandSpec:
    field: str  # "" for a fixed operand
    fmt: str
    type: str
    size: int
    is_input: bool
    is_output: bool
    is_implicit: bool


@dataclass(frozen=True)
class Form:
    """One way to encode an instruction."""

    encoding: str
    condition: str
    opcode: int
    operands: tuple[OperandSpec, ...]
    line: int


@dataclass(frozen=True)
class Instruction:
    name: str
    aliases: tuple[str, ...]
    flags: frozenset[str]  # "branch", "cond_branch", "indirect_branch", "end"
    forms: tuple[Form, ...]
    group: str
    subgroups: tuple[str, ...]


@dataclass(frozen=True)
class OperandType:
    """`codes` are the names and numbers of this type alone; `subtypes` add theirs."""

    name: str
    subtypes: tuple[str, ...]
    codes: tuple[tuple[str, int], ...]
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Spec:
    root: ET.Element
    architecture: str
    encodings: dict[str, Encoding]
    instructions: tuple[Instruction, ...]
    formats: frozenset[str]
    types: dict[str, OperandType]


# ---------------------------------------------------------------- reading


def child(node: ET.Element, tag: str) -> ET.Element:
    found = node.find(tag)
    if found is None:
        raise bad(node, f"no <{tag}> in it")
    return found


def text(node: ET.Element, tag: str) -> str:
    found = child(node, tag)
    value = (found.text or "").strip()
    if not value:
        raise bad(found, "empty, expected text")
    return value


def number(node: ET.Element, base: int | None = None) -> int:
    """The unsigned number in `node`, in its Radix (default 10)."""
    value = (node.text or "").strip()
    radix = base or int(node.attrib.get("Radix", "10"))
    try:
        result = int(value, radix)
    except ValueError:
        raise bad(node, f"{value!r} is not a number of radix {radix}") from None
    if result < 0:
        raise bad(node, f"{value} is negative")
    return result


def flag(node: ET.Element, name: str) -> bool:
    value = node.attrib.get(name, "").lower()
    if value not in ("true", "false"):
        raise bad(node, f"attribute {name} is {value!r}, expected true or false")
    return value == "true"


def predefined(node: ET.Element | None) -> tuple[tuple[str, int], ...]:
    if node is None:
        return ()
    return tuple(
        (text(v, "Name"), number(child(v, "Value"))) for v in node.findall("PredefinedValue")
    )


def read_field(node: ET.Element, width: int) -> Field:
    parts: list[tuple[int, int]] = []
    padding = 0
    ranges = child(node, "BitLayout").findall("Range")
    if not ranges:
        raise bad(node, "field without a <Range>")
    for r in sorted(ranges, key=lambda r: int(r.attrib.get("Order", "0"))):
        offset, count = number(child(r, "BitOffset")), number(child(r, "BitCount"))
        if count == 0 or offset + count > width:
            raise bad(r, f"bits {offset}..{offset + count - 1} do not fit in {width} bits")
        parts.append((offset, count))
        pad = r.find("Padding")
        if pad is not None:
            padding = number(child(pad, "BitCount") if len(pad) else pad)
    values = predefined(node.find("FieldPredefinedValues"))
    return Field(text(node, "FieldName"), tuple(parts), padding, values)


def read_fields(node: ET.Element, width: int) -> tuple[Field, ...]:
    """Fields of a <BitMap>'s parent, in bit order; overlapping ones are refused."""
    fields: list[Field] = []
    taken = 0
    for f in child(child(node, "MicrocodeFormat"), "BitMap").findall("Field"):
        field = read_field(f, width)
        for offset, count in field.parts:
            bits = ((1 << count) - 1) << offset
            if taken & bits:
                raise bad(f, f"field {field.name} overlaps another at bits {offset}..")
            taken |= bits
        fields.append(field)
    return tuple(sorted(fields, key=lambda f: f.parts))


def read_encoding(node: ET.Element) -> Encoding:
    width = number(child(node, "BitCount"))
    mask = number(child(node, "EncodingIdentifierMask"), 2)
    identifiers: set[int] = set()
    for i in child(node, "EncodingIdentifiers").findall("EncodingIdentifier"):
        value = number(i, 2)
        if value & ~mask:
            raise bad(i, "identifier has bits outside EncodingIdentifierMask")
        if value in identifiers:
            raise bad(i, "identifier is listed twice")
        identifiers.add(value)
    conditions = tuple(
        text(c, "ConditionName") for c in node.findall("EncodingConditions/EncodingCondition")
    )
    fields = read_fields(node, width)
    if mask >> width:
        raise bad(node, f"EncodingIdentifierMask is wider than {width} bits")
    return Encoding(text(node, "EncodingName"), width, mask, frozenset(identifiers), conditions, fields)


def read_operand(node: ET.Element, spec: Spec, encoding: Encoding) -> OperandSpec:
    name = node.find("FieldName")
    field = text(node, "FieldName") if name is not None else ""
    if field and field not in {f.name for f in encoding.fields}:
        raise bad(node, f"encoding {encoding.name} has no field {field}")
    fmt, kind = text(node, "DataFormatName"), text(node, "OperandType")
    if fmt not in spec.formats:
        raise bad(node, f"unknown data format {fmt}")
    if kind not in spec.types:
        raise bad(node, f"unknown operand type {kind}")
    return OperandSpec(
        field, fmt, kind, number(child(node, "OperandSize")),
        flag(node, "Input"), flag(node, "Output"), flag(node, "IsImplicit"),
    )  # fmt: skip


def read_form(node: ET.Element, spec: Spec) -> Form:
    name = text(node, "EncodingName")
    encoding = spec.encodings.get(name)
    if encoding is None:
        raise bad(child(node, "EncodingName"), f"unknown encoding {name}")
    condition = text(node, "EncodingCondition")
    if condition not in encoding.conditions:
        raise bad(child(node, "EncodingCondition"), f"{name} has no condition {condition}")
    operands = tuple(
        read_operand(o, spec, encoding)
        for o in sorted(node.findall("Operands/Operand"), key=lambda o: int(o.attrib["Order"]))
    )
    opcode = number(child(node, "Opcode"))
    line = node.line if isinstance(node, Element) else 0
    return Form(name, condition, opcode, operands, line)


FLAGS = {
    "IsBranch": "branch",
    "IsConditionalBranch": "cond_branch",
    "IsIndirectBranch": "indirect_branch",
    "IsProgramTerminator": "end",
}


def read_instruction(node: ET.Element, spec: Spec) -> Instruction:
    forms = tuple(
        read_form(e, spec) for e in child(node, "InstructionEncodings").findall("InstructionEncoding")
    )
    if not forms:
        raise bad(node, "instruction without encodings")
    flags = {
        FLAGS[f.tag]
        for f in child(node, "InstructionFlags")
        if f.tag in FLAGS and (f.text or "").strip().upper() == "TRUE"
    }
    aliases = tuple(
        (a.text or "").strip() for a in node.findall("AliasedInstructionNames/InstructionName")
    )
    group = node.find("FunctionalGroup")
    name = text(group, "Name") if group is not None else ""
    subgroups = tuple(
        (s.text or "").strip()
        for s in (group.findall("FunctionalSubgroups/Subgroup") if group is not None else ())
    )
    return Instruction(
        text(node, "InstructionName"), aliases, frozenset(flags), forms, name, subgroups
    )


def read_type(node: ET.Element) -> OperandType:
    fields = read_fields(node, 32) if node.find("MicrocodeFormat") is not None else ()
    return OperandType(
        text(node, "OperandTypeName"),
        tuple((s.text or "").strip() for s in node.findall("Subtypes/Subtype")),
        predefined(node.find("OperandPredefinedValues")),
        fields,
    )


def unique(nodes: ET.Element, tag: str) -> Iterator[tuple[str, ET.Element]]:
    seen: set[str] = set()
    for node in nodes:
        name = text(node, tag)
        if name in seen:
            raise bad(node, f"{name} is defined twice")
        seen.add(name)
        yield name, node


def read_spec(root: ET.Element) -> Spec:
    """All records of a document; every reference between them is checked."""
    isa = child(root, "ISA")
    encodings = {
        n: read_encoding(e) for n, e in unique(child(isa, "Encodings"), "EncodingName")
    }
    formats = frozenset(n for n, _ in unique(child(isa, "DataFormats"), "DataFormatName"))
    types = {n: read_type(t) for n, t in unique(child(isa, "OperandTypes"), "OperandTypeName")}
    for name, kind in types.items():
        for sub in kind.subtypes:
            if sub not in types:
                raise bad(child(isa, "OperandTypes"), f"{name} has unknown subtype {sub}")
    architecture = text(child(isa, "Architecture"), "ArchitectureName")
    spec = Spec(root, architecture, encodings, (), formats, types)
    instructions = tuple(
        read_instruction(i, spec) for _, i in unique(child(isa, "Instructions"), "InstructionName")
    )
    return Spec(root, architecture, encodings, instructions, formats, types)


def load(path: Path) -> Spec:
    """Read one XML file. Raises SpecError on anything malformed, OSError when unreadable."""
    return read_spec(parse(path.read_bytes(), path.name))
