"""Splits assembly source into statements: comments, labels, directives.

Comments are `;`, `//`, `#` at the start of a line, and `/* */`. Directives that make bytes are those of
`asm_data`; `.set NAME, VALUE` and `NAME = VALUE` define constants; those that only describe a file for a
linker are accepted and have no effect.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from stuntgpu.isa.asm_data import Directive, make_directive
from stuntgpu.isa.asm_lex import AsmError, Cursor, tokenize
from stuntgpu.isa.asm_report import Report

LABEL = re.compile(r"\s*([A-Za-z_.$@][\w.$@]*):(?!:)")
ASSIGNMENT = re.compile(r"\s*([A-Za-z_.$][\w.$]*)\s*=(?!=)(.*)")
#: Directives about sections, symbols and metadata.
IGNORED = (
    ".text", ".globl", ".global", ".local", ".weak", ".hidden", ".protected", ".type", ".size",
    ".section", ".amdgcn_target", ".amdgpu_metadata", ".ident", ".file", ".loc", ".hsa_code_object",
    ".amd_amdgpu", ".amdhsa_code_object_version", ".code_object",
)  # fmt: skip
#: Blocks whose lines are not code: opening and closing directive.
BLOCKS = {".amdhsa_kernel": ".end_amdhsa_kernel", ".amdgpu_metadata": ".end_amdgpu_metadata"}


@dataclass(frozen=True, slots=True)
class Statement:
    """An instruction or a directive that makes bytes, with the labels before it."""

    line: int
    text: str
    labels: tuple[str, ...]
    directive: Directive | None = None


@dataclass
class Source:
    statements: list[Statement] = field(default_factory=list)
    constants: dict[str, int] = field(default_factory=dict)
    labels: set[str] = field(default_factory=set)
    trailing: tuple[str, ...] = ()


def strip_comments(text: str) -> str:
    """Source without comments, every character kept in its line and column."""
    text = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.DOTALL)
    lines = []
    for line in text.split("\n"):
        outside = re.sub(r'"(?:[^"\\]|\\.)*"', lambda m: "x" * len(m.group()), line)
        cut = min((i for i in (outside.find(";"), outside.find("//")) if i >= 0), default=len(line))
        lines.append("" if line.lstrip().startswith("#") else line[:cut])
    return "\n".join(lines)


def read_source(text: str, report: Report) -> Source:
    """All statements of `text`; bad labels and directives go to `report`."""
    source = Source()
    pending: list[str] = []
    closing = ""
    for number, line in enumerate(strip_comments(text).split("\n"), 1):
        if closing:
            closing = "" if line.strip() == closing else closing
            continue
        with report.at(number, line):
            rest = read_labels(line, source, pending)
            word = rest.split(maxsplit=1)[0].lower() if rest.strip() else ""
            closing = BLOCKS.get(word, "")
            if word and not closing:
                read_line(source, number, rest, word, pending)
    source.trailing = tuple(pending)
    return source


def read_labels(line: str, source: Source, pending: list[str]) -> str:
    """The line with its labels blanked out, so that columns stay."""
    while (found := LABEL.match(line)) is not None:
        name = found.group(1)
        if name in source.labels or name in source.constants:
            raise AsmError(f"label {name!r} is defined twice", found.start(1) + 1)
        source.labels.add(name)
        pending.append(name)
        line = " " * found.end() + line[found.end() :]
    return line


def read_line(source: Source, number: int, text: str, word: str, pending: list[str]) -> None:
    assigned = ASSIGNMENT.match(text)
    if assigned is not None:
        define(source, assigned.group(1), " " * assigned.start(2) + assigned.group(2))
        return
    if word == ".set":
        set_constant(source, text)
        return
    directive = None
    if word.startswith("."):
        if word.startswith(IGNORED):
            return
        directive = make_directive(word, text)
    source.statements.append(Statement(number, text, tuple(pending), directive))
    pending.clear()


def define(source: Source, name: str, text: str) -> None:
    cursor = Cursor(tokenize(text), dict(source.constants))
    keep(source, name, cursor)


def set_constant(source: Source, text: str) -> None:
    cursor = Cursor(tokenize(text), dict(source.constants))
    cursor.at = 1
    name = cursor.name("a symbol")
    cursor.expect(",")
    keep(source, name, cursor)


def keep(source: Source, name: str, cursor: Cursor) -> None:
    """Gives a constant the value at the cursor; constants stay what they are."""
    value = cursor.value().integer
    if cursor.token.kind != "end":
        raise cursor.fail("the end of the line")
    if source.constants.setdefault(name, value) != value:
        raise AsmError(f"{name!r} already is {source.constants[name]}: a constant has one value")
