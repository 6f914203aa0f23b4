"""Reads assembly source as a compiler writes it: sections, symbols, kernels, metadata.

Code and data go to the section that is open; `.amdhsa_kernel` blocks and `.amdgpu_metadata` are kept as
lines. `.set` may name what comes later: constants are calculated when they are asked for.

Errors:  AsmError with line and column.
Source:  AMDGPU back-end user guide, "Code Object Directives"; GNU as manual for the general ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from stuntgpu.isa.abi import elf, elf_write
from stuntgpu.isa.asm_data import ALIGNMENTS, Directive, alignment_of, make_directive, quoted
from stuntgpu.isa.asm_lex import AsmError, Cursor, tokenize
from stuntgpu.isa.asm_report import Report
from stuntgpu.isa.asm_source import ASSIGNMENT, LABEL, Statement, strip_comments

Functions = Mapping[str, tuple[int, Callable[..., int]]]
Symbols = Mapping[str, "int | None"]

_VISIBILITY = {".hidden": 2, ".internal": 1, ".protected": 3}
_BINDING = {".globl": elf_write.STB_GLOBAL, ".global": elf_write.STB_GLOBAL, ".weak": elf_write.STB_WEAK,
            ".local": elf_write.STB_LOCAL}  # fmt: skip
_TYPES = {"function": elf.STT_FUNC, "object": elf.STT_OBJECT, "notype": 0}
_PLAIN = {".text": (".text", "ax"), ".data": (".data", "aw"), ".bss": (".bss", "aw"), ".rodata": (".rodata", "a")}
_FLAGS = {"a": elf.SHF_ALLOC, "x": elf.SHF_EXEC, "w": elf_write.SHF_WRITE}
#: With those that say how linkers merge and drop sections.
_SECTION_FLAGS = "awxMSGRoeT?"
#: About debuggers, other assemblers, and linkers that drop sections.
_SILENT = frozenset({".ident", ".file", ".loc", ".addrsig", ".addrsig_sym"})
_BLOCKS = {".amdhsa_kernel": ".end_amdhsa_kernel", ".amdgpu_metadata": ".end_amdgpu_metadata"}
_PLACE = re.compile(r"(?<![\w.$@])\.(?![\w.$@])")


@dataclass
class Section:
    """flags: elf.SHF_* of its rights; `is_zero`: nothing in the file."""

    name: str
    flags: int
    is_zero: bool = False
    align: int = 4
    statements: list[Statement] = field(default_factory=list)
    trailing: list[str] = field(default_factory=list)


@dataclass
class SymbolFacts:
    """What directives say of a symbol. size: text of an expression."""

    binding: int = elf_write.STB_LOCAL
    visibility: int = 0
    type: int = 0
    size: tuple[int, str] | None = None


@dataclass(frozen=True, slots=True)
class Line:
    number: int
    text: str


@dataclass
class KernelBlock:
    """Lines between .amdhsa_kernel and its end; the descriptor lies where the block stands."""

    name: str
    line: Line
    lines: list[Line] = field(default_factory=list)


@dataclass
class ObjectSource:
    sections: dict[str, Section] = field(default_factory=dict)
    kernels: dict[str, KernelBlock] = field(default_factory=dict)
    facts: dict[str, SymbolFacts] = field(default_factory=dict)
    constants: dict[str, tuple[int, str]] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)  # -> section
    metadata: list[Line] = field(default_factory=list)
    target: tuple[Line, str] | None = None
    version: tuple[Line, int] | None = None

    def of(self, name: str) -> SymbolFacts:
        return self.facts.setdefault(name, SymbolFacts())


def read_object_source(text: str, report: Report) -> ObjectSource:
    """All of `text`; what is wrong goes to `report`."""
    return _Reader().read(text, report)


class _Reader:
    def __init__(self) -> None:
        self.out = ObjectSource()
        self.open = self.section(".text", "ax")
        self.before = self.open
        self.pushed: list[Section] = []
        self.number = 0

    def read(self, text: str, report: Report) -> ObjectSource:
        lines = iter(enumerate(strip_comments(text).split("\n"), 1))
        for number, line in lines:
            self.number = number
            with report.at(number, line):
                self.line(line, lines)
        return self.out

    def line(self, line: str, following: Iterator[tuple[int, str]]) -> None:
        rest = self.labels(line)
        word = rest.split(maxsplit=1)[0].lower() if rest.strip() else ""
        if not word:
            return
        assigned = ASSIGNMENT.match(rest)
        if assigned is not None:
            self.define(assigned.group(1), " " * assigned.start(2) + assigned.group(2))
        elif word in _BLOCKS:
            self.block(word, rest, following)
        elif word.startswith("."):
            self.directive(word, rest)
        else:
            self.statement(rest)

    def labels(self, line: str) -> str:
        while (found := LABEL.match(line)) is not None:
            name = found.group(1)
            if name in self.out.labels or name in self.out.constants:
                raise AsmError(f"label {name!r} is defined twice", found.start(1) + 1)
            self.out.labels[name] = self.open.name
            self.open.trailing.append(name)
            line = " " * found.end() + line[found.end() :]
        return line

    def statement(self, text: str, directive: Directive | None = None) -> None:
        self.open.statements.append(Statement(self.number, text, tuple(self.open.trailing), directive))
        self.open.trailing.clear()

    def block(self, word: str, text: str, following: Iterator[tuple[int, str]]) -> None:
        lines: list[Line] = []
        for number, line in following:
            if line.strip() == _BLOCKS[word]:
                break
            if line.strip():
                lines.append(Line(number, line))
        else:
            raise AsmError(f"{word} without {_BLOCKS[word]}", text.index(".") + 1)
        if word == ".amdgpu_metadata":
            self.out.metadata += lines
            return
        name = _names_after(text)[0]
        if name in self.out.kernels:
            raise AsmError(f"kernel {name!r} is described twice", text.index(name) + 1)
        self.out.kernels[name] = KernelBlock(name, Line(self.number, text), lines)

    # ------------------------------------------------------------ directives

    def directive(self, word: str, text: str) -> None:
        if word in _VISIBILITY:
            for name in _names_after(text):
                self.out.of(name).visibility = _VISIBILITY[word]
        elif word in _BINDING:
            for name in _names_after(text):
                self.out.of(name).binding = _BINDING[word]
        elif word in (".set", ".equ"):
            name, value = _pair(text)
            self.define(name, value)
        elif word in _PLAIN:
            self.switch(self.section(*_PLAIN[word]))
        elif word in _DIRECTIVES:
            _DIRECTIVES[word](self, text)
        elif word in _BLOCKS.values():
            raise AsmError(f"{word} ends nothing that is open", text.index(".") + 1)
        elif word not in _SILENT and not word.startswith(".cfi_"):
            self.data(word, text)

    def data(self, word: str, text: str) -> None:
        if word in ALIGNMENTS:
            self.open.align = max(self.open.align, alignment_of(text, {}))
        self.statement(text, make_directive(word, text, bool(self.open.flags & elf.SHF_EXEC), KNOWN))

    def define(self, name: str, text: str) -> None:
        if name in self.out.labels:
            raise AsmError(f"{name!r} is a label", 1)
        if self.out.constants.get(name, (0, text))[1].split() != text.split():
            raise AsmError(f"{name!r} is defined at line {self.out.constants[name][0]}: a constant has one value", 1)
        self.out.constants[name] = (self.number, self.placed(text))

    def placed(self, text: str) -> str:
        """An expression, `.` in it given a name."""
        if _PLACE.search(text) is None:
            return text
        name = f".Lplace{self.number}"
        if name not in self.out.labels:
            self.out.labels[name] = self.open.name
            self.open.trailing.append(name)
        return _PLACE.sub(name, text)

    def section(self, name: str, flags: str, is_zero: bool = False) -> Section:
        rights = sum(_FLAGS.get(c, 0) for c in dict.fromkeys(flags))
        return self.out.sections.setdefault(name, Section(name, rights, is_zero or name.startswith(".bss")))

    def switch(self, to: Section) -> None:
        self.before, self.open = self.open, to

    def open_section(self, text: str) -> None:
        found = re.match(r'\s*\.(?:push)?section\s+(?:"([^"]+)"|([^\s,]+))\s*(?:,\s*"([^"]*)")?\s*(?:,\s*[@%](\w+))?', text)
        if found is None:
            raise AsmError("expected the name of a section", text.index(".") + 1)
        name = found.group(1) or found.group(2)
        stem = next((p for p in _PLAIN if name == p or name.startswith(p + ".")), "")
        flags = found.group(3) if found.group(3) is not None else _PLAIN[stem][1] if stem else ""
        unknown = sorted(set(flags) - set(_SECTION_FLAGS))
        if unknown:
            raise AsmError(f"unknown section flag {unknown[0]!r}; known: {_SECTION_FLAGS}", found.start(3) + 1)
        self.switch(self.section(name, flags, found.group(4) == "nobits"))

    def push_section(self, text: str) -> None:
        self.pushed.append(self.open)
        self.open_section(text)

    def pop_section(self, text: str) -> None:
        if not self.pushed:
            raise AsmError(".popsection without .pushsection", text.index(".") + 1)
        self.switch(self.pushed.pop())

    def previous(self, text: str) -> None:
        self.switch(self.before)

    def type_of(self, text: str) -> None:
        name, kind = _pair(text)
        kind = kind.strip().lstrip("@%")
        if kind not in _TYPES:
            raise AsmError(f"symbol type {kind!r}; known: {', '.join(_TYPES)}", text.index(kind) + 1)
        self.out.of(name).type = _TYPES[kind]

    def size_of(self, text: str) -> None:
        name, value = _pair(text)
        self.out.of(name).size = (self.number, self.placed(value))

    def common(self, text: str) -> None:
        """.comm NAME, SIZE, ALIGN: zeroes of its own."""
        name, rest = _pair(text)
        size, _, align = rest.partition(",")
        before, self.open = self.open, self.section(".bss", "aw")
        amount = alignment_of(f".balign {align.strip() or 4}", {})
        self.open.align = max(self.open.align, amount)
        self.statement(text, make_directive(".balign", f".balign {amount}, 0"))
        self.out.labels[name] = self.open.name
        self.open.trailing.append(name)
        self.statement(text, make_directive(".zero", f".zero {size.strip()}"))
        self.open = before
        self.out.of(name).binding = elf_write.STB_GLOBAL

    def target(self, text: str) -> None:
        (_, target), *_ = quoted(text) or [(0, "")]
        if not target:
            raise AsmError("expected a target in quotes", len(text) + 1)
        self.out.target = (Line(self.number, text), target)

    def version(self, text: str) -> None:
        value = Cursor(tokenize(text), {})
        value.at = 1
        self.out.version = (Line(self.number, text), value.value().integer)


_DIRECTIVES: Mapping[str, Callable[[_Reader, str], None]] = {
    ".section": _Reader.open_section, ".pushsection": _Reader.push_section, ".popsection": _Reader.pop_section,
    ".previous": _Reader.previous, ".type": _Reader.type_of, ".size": _Reader.size_of, ".comm": _Reader.common,
    ".amdgcn_target": _Reader.target, ".amdhsa_code_object_version": _Reader.version,
}  # fmt: skip


#: Every directive that is read here, to suggest.
KNOWN = (*_VISIBILITY, *_BINDING, ".set", ".equ", *_PLAIN, *_DIRECTIVES, *_SILENT, *_BLOCKS, *_BLOCKS.values())


def _names_after(text: str) -> list[str]:
    """The names after a directive, one at least."""
    cursor = Cursor(tokenize(text), {})
    cursor.at = 1
    names = [cursor.name("a name")]
    while cursor.accept(","):
        names.append(cursor.name("a name"))
    if cursor.token.kind != "end":
        raise cursor.fail("',' or the end of the line")
    return names


def _pair(text: str) -> tuple[str, str]:
    """NAME, REST of a directive; REST keeps its column."""
    found = re.match(r"\s*\.\w+\s+([^\s,]+)\s*,(.*)$", text)
    if found is None:
        raise AsmError("expected a name, a comma and a value", len(text) + 1)
    return found.group(1), " " * found.start(2) + found.group(2)
