"""Assembly source to a code object that loads: `stuntgpu asm k.s -o k.hsaco` without LLVM.

    data = assemble_object("gfx1100", source)

Sections are laid out first (sizes do not depend on addresses), then filled. What holds an absolute address
in data becomes a relocation, found by filling every section twice, for two load addresses.
`symbol@rel32@lo`, `@rel32@hi` and their gotpcrel32 forms are resolved here.

Errors:  AsmError with line and column.
Source:  AMDGPU back-end user guide, "Code Object Directives", "Relocation Records", "Code Object Metadata".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import msgpack

from stuntgpu.isa.abi import elf, elf_write
from stuntgpu.isa.abi.codeobject import NOTE_METADATA, NOTE_NAME, OS_ABI_HSA, VERSIONS
from stuntgpu.isa.abi.elf_write import Name, Output, Relative, Writer
from stuntgpu.isa.abi.targets import MACH, TARGETS
from stuntgpu.isa.arch import arch
from stuntgpu.isa.asm import statement_code
from stuntgpu.isa.asm_data import SIZED_BY_VALUES, Unplaced
from stuntgpu.isa.asm_kernel import (
    ALIGN,
    DESCRIPTOR_BYTES,
    Kernel,
    default_metadata,
    functions_of,
    read_kernel,
)
from stuntgpu.isa.asm_lex import FUNCTIONS, AsmError, Cursor, Undefined, tokenize
from stuntgpu.isa.asm_metadata import read_metadata
from stuntgpu.isa.asm_registers import registers_named
from stuntgpu.isa.asm_report import Report
from stuntgpu.isa.asm_sections import ObjectSource, Section, read_object_source
from stuntgpu.isa.asm_source import Statement

_RELATIVE = re.compile(r"([A-Za-z_.$][\w.$]*)@(gotpcrel32|rel32)@(lo|hi)((?:\s*[+-]\s*(?:0[xX][0-9a-fA-F]+|\d+))*)")
#: The second load address that relocations are found with.
_ELSEWHERE = 0x1000_0000
_GOT, _DESCRIPTORS = ".got", ".rodata"
_ENTRY = 8
#: EF_AMDGPU_FEATURE_*: values of the fields 9:8 (XNACK) and 11:10 (SRAMECC) of e_flags.
_FEATURES = {"": 1, "-": 2, "+": 3}


def assemble_object(name: str, source: str) -> bytes:
    """A shared object for the architecture, ready to load.

    Raises AsmError; AsmErrors, one of them, when several lines are wrong."""
    report = Report()
    parsed = read_object_source(source, report)
    return _Linker(name, parsed, report).link()


def has_kernels(source: str) -> bool:
    """Whether the text describes kernels, and so makes a code object."""
    return re.search(r"^\s*\.amdhsa_kernel\b", source, re.MULTILINE) is not None


class _Constants(dict[str, "int | None"]):
    """Symbols by name; `.set` constants are calculated when first asked for."""

    def __init__(self, linker: _Linker) -> None:
        super().__init__()
        self.linker = linker
        self.busy: set[str] = set()

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self.linker.lazy or name in self.linker.counted()

    def __missing__(self, name: str) -> int | None:
        if name not in self.linker.lazy:
            return self.linker.counted()[name]
        if name in self.busy:
            number, text = self.linker.lazy[name]
            raise AsmError(f"{name!r} is defined by itself").at_line(number, text)
        self.busy.add(name)
        try:
            value = self.linker.calculate(*self.linker.lazy[name], self)
        finally:
            self.busy.discard(name)
        self[name] = value
        return value


@dataclass
class _Linker:
    name: str
    source: ObjectSource
    report: Report
    got: list[str] = field(default_factory=list)
    outputs: dict[str, Output] = field(default_factory=dict)
    relatives: list[Relative] = field(default_factory=list)
    kernels: dict[str, Kernel] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.arch = arch(self.name)
        self.functions = functions_of(self.name, FUNCTIONS)
        self.lazy = dict(self.source.constants)
        self.places: dict[str, int] = {}  # label -> offset in its section
        self.version, (self.target_id, self.flags) = max(VERSIONS.values()), (self.name, 0)
        with self.report.at(0, ""):
            self.version = self._version()
        with self.report.at(0, ""):
            self.target_id, self.flags = self._target()

    # ------------------------------------------------------------ the whole

    def link(self) -> bytes:
        self._add_descriptors()
        sizes = {s.name: self._measure(s) for s in self._kept()}
        symbols = self._symbols(0)
        for block in self.source.kernels.values():
            with self.report.at(block.line.number, block.line.text):
                self.kernels[block.name] = read_kernel(self.name, block, symbols, self.functions)
        self.report.check()
        desc = self._metadata()
        for s in self._kept():
            flags = elf.SHF_ALLOC | s.flags & (elf.SHF_EXEC | elf_write.SHF_WRITE)
            kind = elf.SHT_NOBITS if s.is_zero else elf_write.SHT_PROGBITS
            self.outputs[s.name] = Output(s.name, kind, flags, size=sizes[s.name], align=s.align)
        if self.got:
            self.outputs[_GOT] = Output(_GOT, elf_write.SHT_PROGBITS, elf.SHF_ALLOC | elf_write.SHF_WRITE,
                                        size=_ENTRY * len(self.got), align=8)
        exported = [n for n in self._names() if n.binding != elf_write.STB_LOCAL]
        room = sum(len(n.name) + 1 + elf_write.SYMBOL_BYTES + 8 for n in exported) + len(desc) + elf_write.PAGE
        elf_write.place(list(self.outputs.values()), elf_write.rounded(room, elf_write.PAGE))
        self._fill()
        self.report.check()
        return Writer(OS_ABI_HSA, {v: k for k, v in VERSIONS.items()}[self.version], self.flags,
                      list(self.outputs.values()), self._names(), self.relatives, desc).write()

    def _kept(self) -> Iterator[Section]:
        """Sections that are loaded and not empty."""
        for s in self.source.sections.values():
            if s.flags & elf.SHF_ALLOC and (s.statements or s.trailing):
                yield s

    def _version(self) -> int:
        if self.source.version is None:
            return max(VERSIONS.values())
        line, value = self.source.version
        if value not in VERSIONS.values():
            raise AsmError(f"code object version {value}; known: {', '.join(map(str, VERSIONS.values()))}",
                           line.text.index(".") + 1).at_line(line.number, line.text)
        return value

    def _target(self) -> tuple[str, int]:
        """The target with its features, and e_flags."""
        machine = {v: k for k, v in MACH.items()}[self.name]
        chosen = self.name
        if self.source.target is not None:
            line, text = self.source.target
            chosen = text.rpartition("--")[2]
            if chosen.partition(":")[0] != self.name:
                raise AsmError(f"source for {chosen or text!r}, but {self.name} was asked for",
                               line.text.index('"') + 1).at_line(line.number, line.text)
        if not TARGETS[self.name].has_xnack:
            return chosen, machine
        given = {f[:-1]: f[-1] for f in chosen.split(":")[1:]}
        return chosen, machine | _FEATURES[given.get("xnack", "")] << 8 | _FEATURES[given.get("sramecc", "")] << 10

    # ------------------------------------------------------------ sections

    def _add_descriptors(self) -> None:
        """Room for every kernel's descriptor, as data of .rodata."""
        if not self.source.kernels:
            return
        section = self.source.sections.setdefault(_DESCRIPTORS, Section(_DESCRIPTORS, elf.SHF_ALLOC))
        section.align = max(section.align, ALIGN)
        for block in self.source.kernels.values():
            if block.name not in self.source.labels:
                self.report.add(AsmError(f"kernel {block.name!r} has no code: no label of its name",
                                         block.line.text.index(block.name) + 1).at_line(block.line.number, block.line.text))
            made = Statement(block.line.number, block.line.text, (*section.trailing, f"{block.name}.kd"),
                             partial(self._descriptor, block.name))
            section.trailing.clear()
            pad = Statement(block.line.number, "", (), lambda pc, symbols: bytes(-pc % ALIGN))
            section.statements += [pad, made]
            self.source.labels[f"{block.name}.kd"] = _DESCRIPTORS

    def _descriptor(self, name: str, pc: int, symbols: Mapping[str, int | None]) -> bytes:
        if name not in self.kernels:
            return bytes(DESCRIPTOR_BYTES)
        return self.kernels[name].descriptor((symbols[name] or 0) - pc)

    def _measure(self, s: Section) -> int:
        """Places of a section's labels; its size."""
        pc = 0
        symbols = _Constants(self)
        for label in self.source.labels:
            symbols[label] = None
        for statement in s.statements:
            if _has_label_directive(statement):
                symbols.update({n: at for n, at in self.places.items() if self.source.labels[n] == s.name})
            for label in statement.labels:
                self.places[label] = pc
            symbols["."] = pc
            with self.report.at(statement.line, statement.text):
                pc += len(self._code(statement, pc, Unplaced(symbols, pc + 4), sizing=True))
        for label in s.trailing:
            self.places[label] = pc
        return pc

    def _symbols(self, base: int) -> _Constants:
        """All symbols with the load address `base`; before sections have addresses, offsets in them."""
        symbols = _Constants(self)
        for label, section in self.source.labels.items():
            start = self.outputs[section].vaddr if section in self.outputs else 0
            symbols[label] = base + start + self.places.get(label, 0)
        return symbols

    def _code(self, statement: Statement, pc: int, symbols: Mapping[str, int | None], sizing: bool = False) -> bytes:
        text = statement.text
        if "@" not in text or statement.directive is not None:
            return statement_code(self.arch, statement, pc, symbols, sizing)
        resolved = _RELATIVE.sub(lambda m: self._relative(m, statement, pc, symbols, sizing), text)
        try:
            return statement_code(self.arch, replace(statement, text=resolved), pc, symbols, sizing)
        except AsmError as e:
            raise e.at_line(statement.line, text) from None

    def _relative(self, m: re.Match[str], statement: Statement, pc: int, symbols: Mapping[str, int | None],
                  sizing: bool) -> str:
        """A PC-relative symbol as a literal: it is the last dword of eight bytes of code."""
        name, kind, half, more = m.groups()
        if name not in self.source.labels and name not in self.source.constants:
            raise AsmError(f"undefined symbol {name!r}", m.start() + 1).at_line(statement.line, statement.text)
        if kind == "gotpcrel32" and name not in self.got:
            self.got.append(name)
        if sizing:
            return "lit(0x0)"
        added = sum(int(part.replace(" ", ""), 0) for part in re.findall(r"[+-]\s*\w+", more))
        # addresses of code and GOT move together: any base serves
        base = pc - self._at
        where = base + self.outputs[_GOT].vaddr + _ENTRY * self.got.index(name) if kind == "gotpcrel32" else symbols[name] or 0
        value = where + added - (pc + 4)
        return f"lit({(value >> 32 if half == 'hi' else value) & 0xFFFF_FFFF:#x})"

    def _fill(self) -> None:
        """The bytes of every section, and the relocations."""
        here, there = self._symbols(0), self._symbols(_ELSEWHERE)
        for s in self._kept():
            out = self.outputs[s.name]
            data, at = bytearray(), out.vaddr
            for statement in s.statements:
                with self.report.at(statement.line, statement.text):
                    first = self._placed(statement, at, here, there)
                    if s.is_zero and any(first):
                        raise AsmError(f"section {s.name} holds zeroes only")
                    data += first
                    at += len(first)
            if not s.is_zero:
                out.data = bytes(data)
        for i, name in enumerate(self.got):
            self.relatives.append(Relative(self.outputs[_GOT].vaddr + _ENTRY * i, here[name] or 0))
        if self.got:
            self.outputs[_GOT].data = bytes(_ENTRY * len(self.got))

    def _placed(self, statement: Statement, at: int, here: _Constants, there: _Constants) -> bytes:
        """A statement at an address; its relocations are noted."""
        self._at = here["."] = at
        there["."] = at + _ELSEWHERE
        first = self._code(statement, at, here)
        other = self._code(statement, at + _ELSEWHERE, there)
        if first != other:
            self._relocate(statement, at, first, other)
        return first

    def _relocate(self, statement: Statement, at: int, first: bytes, other: bytes) -> None:
        """Every eight bytes that move with the load address become a relocation."""
        for i in range(0, len(first), _ENTRY):
            a, b = (int.from_bytes(d[i : i + _ENTRY], "little") for d in (first, other))
            if a == b:
                continue
            if len(first) % _ENTRY or statement.directive is None or b - a != _ELSEWHERE:
                raise AsmError("an address that is only known when the object is loaded needs eight bytes of data (.quad), "
                               "or symbol@rel32 in code").at_line(statement.line, statement.text)
            self.relatives.append(Relative(at + i, a))

    # ------------------------------------------------------------ names

    def _names(self) -> list[Name]:
        symbols = self._symbols(0)
        out = []
        for label, section in self.source.labels.items():
            if label.startswith(".L") or section not in self.outputs:
                continue
            facts = self.source.of(label.removesuffix(".kd") if label.removesuffix(".kd") in self.source.kernels else label)
            is_descriptor = label.endswith(".kd") and label.removesuffix(".kd") in self.source.kernels
            size = DESCRIPTOR_BYTES if is_descriptor else 0
            if facts.size is not None and not is_descriptor:
                size = self.calculate(*facts.size, symbols)
            binding = elf_write.STB_GLOBAL if is_descriptor and facts.binding == elf_write.STB_LOCAL else facts.binding
            kind = elf.STT_OBJECT if is_descriptor else facts.type
            if facts.visibility in (1, 2):  # nobody outside sees it
                binding = elf_write.STB_LOCAL
            out.append(Name(label, section, symbols[label] or 0, size, kind, binding, facts.visibility))
        return [*out, *self._constants(symbols)]

    def _constants(self, symbols: _Constants) -> Iterator[Name]:
        """Symbols that `.set` defines: numbers, and other names of places in sections."""
        elsewhere = self._symbols(_ELSEWHERE)
        for name, (number, text) in self.source.constants.items():
            if name.startswith(".L"):
                continue
            facts, section = self.source.of(name), ""
            with self.report.at(number, text):
                value = symbols[name] or 0
                if elsewhere[name] != value:
                    section = next((o.name for o in self.outputs.values() if 0 <= value - o.vaddr <= o.size), "")
                yield Name(name, section, value & (1 << 64) - 1, 0, facts.type, facts.binding, facts.visibility)

    def calculate(self, number: int, text: str, symbols: Mapping[str, int | None]) -> int:
        """An expression of a directive at a line."""
        try:
            cursor = Cursor(tokenize(text), symbols, self.functions)
            value = cursor.value().integer
            if cursor.token.kind != "end":
                raise cursor.fail("the end of the line")
        except Undefined as e:
            raise AsmError(f"undefined symbol: {e.message.partition('found ')[2]}", e.column).at_line(number, text) from None
        except AsmError as e:
            raise e.at_line(e.line or number, e.text or text) from None
        return value

    def counted(self) -> dict[str, int]:
        """Symbols that say which registers the code names, and for which chip it is."""
        if self._registers is None:
            self._registers = {}
            texts = (st.text for s in self.source.sections.values() for st in s.statements if st.directive is None)
            vgprs, sgprs = registers_named(texts)
            self._registers = {".amdgcn.next_free_vgpr": vgprs, ".amdgcn.next_free_sgpr": sgprs}
            digits = re.fullmatch(r"gfx(\d+)([0-9a-f])([0-9a-f])", self.name)
            if digits is not None:
                for part, value in zip(("number", "minor", "stepping"), digits.groups(), strict=True):
                    self._registers[f".amdgcn.gfx_generation_{part}"] = int(value, 16 if part == "stepping" else 10)
        return self._registers

    _registers: dict[str, int] | None = None
    _at: int = 0

    # ------------------------------------------------------------ metadata

    def _metadata(self) -> bytes:
        if self.source.metadata:
            data = read_metadata(self.source.metadata)
        else:
            data = default_metadata(list(self.kernels.values()), self.target_id)
        return elf_write.note(NOTE_NAME, NOTE_METADATA, msgpack.packb(data))


def _has_label_directive(statement: Statement) -> bool:
    """Directives whose size depends on values."""
    return statement.directive is not None and (statement.text.split() or [""])[0].lower() in SIZED_BY_VALUES
