"""The parts of 64-bit little-endian ELF that AMD code objects are made of, and a reader that trusts nothing.

Units:   bytes; `vaddr` counts from the load base of a shared object.
Errors:  ElfError says which structure is wrong, where, and what was there.
Source:  System V ABI, chapters "Object Files" and "Program Loading".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from stuntgpu.isa.fields import BitStruct, bits, u8, u16, u32, u64

S = TypeVar("S", bound=BitStruct)

MAGIC = b"\x7fELF"
ET_REL, ET_DYN = 1, 3
EM_AMDGPU = 224
PT_LOAD, PT_NOTE = 1, 4
PF_X, PF_W, PF_R = 1, 2, 4
SHT_SYMTAB, SHT_RELA, SHT_NOTE, SHT_NOBITS, SHT_REL, SHT_DYNSYM = 2, 4, 7, 8, 9, 11
SHF_ALLOC, SHF_EXEC = 2, 4
STT_OBJECT, STT_FUNC, STT_SECTION, STT_FILE = 1, 2, 3, 4
SHN_UNDEF, SHN_ABS = 0, 0xFFF1

_MACHINES = {3: "i386", 62: "x86-64", 183: "AArch64", 190: "NVIDIA CUDA", 243: "RISC-V", 247: "BPF"}


class ElfError(ValueError):
    """The bytes are not the ELF file they should be."""


class Header(BitStruct, size=64):
    """Elf64_Ehdr."""

    magic = bits[31:0]
    elf_class, data, ident_version, os_abi, abi_version = u8[4], u8[5], u8[6], u8[7], u8[8]
    type, machine, version = u16[16], u16[18], u32[20]
    entry, program_offset, section_offset = u64[24], u64[32], u64[40]
    flags, header_size = u32[48], u16[52]
    program_size, program_count = u16[54], u16[56]
    section_size, section_count, section_names = u16[58], u16[60], u16[62]


class Segment(BitStruct, size=56):
    """Elf64_Phdr."""

    type, flags = u32[0], u32[4]
    offset, vaddr, paddr, file_size, size, align = u64[8], u64[16], u64[24], u64[32], u64[40], u64[48]


class Section(BitStruct, size=64):
    """Elf64_Shdr."""

    name_offset, type, flags = u32[0], u32[4], u64[8]
    addr, offset, size = u64[16], u64[24], u64[32]
    link, info, align, entry_size = u32[40], u32[44], u64[48], u64[56]


class SymbolEntry(BitStruct, size=24):
    """Elf64_Sym."""

    name_offset = u32[0]
    type = bits[1, 3:0]
    binding = bits[1, 7:4]
    other, section = u8[5], u16[6]
    value, size = u64[8], u64[16]


class Rela(BitStruct, size=24):
    """Elf64_Rela."""

    offset = u64[0]
    type, symbol = u32[8], u32[12]
    addend = u64[16].signed()


class NoteHeader(BitStruct, size=12):
    """Elf64_Nhdr; name and descriptor follow, each padded to four bytes."""

    name_size, size, type = u32[0], u32[4], u32[8]


@dataclass(frozen=True, slots=True)
class Symbol:
    """A symbol with its name; `section` is SHN_UNDEF when another object has to define it."""

    name: str
    value: int
    size: int
    type: int
    section: int


class ElfFile:
    """A checked view of an ELF image. Raises ElfError from the constructor and from every accessor.

    `machine` is the one the file must be for; None: any.
    """

    def __init__(self, data: bytes, machine: int | None = EM_AMDGPU) -> None:
        self.data = data
        if not data.startswith(MAGIC):
            raise ElfError(f"not an ELF file: {_what_it_is(data)}")
        self.header = self._struct(Header, 0, "the ELF header")
        if (self.header.elf_class, self.header.data) != (2, 1):
            raise ElfError("not a 64-bit little-endian ELF file")
        if machine is not None and self.header.machine != machine:
            name = _MACHINES.get(self.header.machine, "unknown")
            raise ElfError(f"code for machine {self.header.machine} ({name}), not for AMD GPUs ({EM_AMDGPU})")
        self.segments = tuple(self._table(Segment, self.header.program_offset, self.header.program_count,
                                          self.header.program_size, "program header"))
        self.sections = tuple(self._table(Section, self.header.section_offset, self.header.section_count,
                                          self.header.section_size, "section header"))

    def _struct(self, kind: type[S], offset: int, what: str) -> S:
        if offset + kind.SIZE_BYTES > len(self.data):
            raise ElfError(f"truncated: {what} needs bytes 0x{offset:x}..0x{offset + kind.SIZE_BYTES:x}, "
                           f"the file ends at 0x{len(self.data):x}")
        return kind.unpack(self.data, offset)

    def _table(self, kind: type[S], offset: int, count: int, entry_size: int, what: str) -> Iterator[S]:
        if count and entry_size < kind.SIZE_BYTES:
            raise ElfError(f"damaged: {what} entries of {entry_size} bytes, expected {kind.SIZE_BYTES}")
        for i in range(count):
            yield self._struct(kind, offset + i * entry_size, f"{what} {i}")

    def bytes_at(self, offset: int, size: int, what: str) -> bytes:
        """File bytes [offset, offset + size)."""
        if offset + size > len(self.data):
            raise ElfError(f"truncated: {what} is bytes 0x{offset:x}..0x{offset + size:x}, "
                           f"the file ends at 0x{len(self.data):x}")
        return self.data[offset : offset + size]

    @cached_property
    def section_names(self) -> tuple[str, ...]:
        """Name of every section, in the order of `sections`."""
        if not self.sections:
            return ()
        if self.header.section_names >= len(self.sections):
            raise ElfError(f"damaged: section names are in section {self.header.section_names} of {len(self.sections)}")
        strings = self.sections[self.header.section_names]
        text = self.bytes_at(strings.offset, strings.size, "section names")
        return tuple(_string(text, s.name_offset) for s in self.sections)

    @cached_property
    def symbols(self) -> dict[str, Symbol]:
        """Named symbols of the dynamic table, or of the full one when there is no dynamic table."""
        return {s.name: s for s in self.symbol_table(self._symbol_section()) if s.name} if self.sections else {}

    def _symbol_section(self) -> Section:
        for kind in (SHT_DYNSYM, SHT_SYMTAB):
            for section in self.sections:
                if section.type == kind:
                    return section
        raise ElfError("no symbol table (section .dynsym)")

    def symbol_table(self, section: Section) -> list[Symbol]:
        """All entries of a symbol section, the empty first one included."""
        if section.link >= len(self.sections):
            raise ElfError(f"damaged: symbol table names section {section.link} of {len(self.sections)}")
        strings = self.sections[section.link]
        text = self.bytes_at(strings.offset, strings.size, "string table")
        rows = self._table(SymbolEntry, section.offset, section.size // SymbolEntry.SIZE_BYTES,
                           section.entry_size, "symbol")
        return [Symbol(_string(text, r.name_offset), r.value, r.size, r.type, r.section) for r in rows]

    def notes(self) -> Iterator[tuple[str, int, bytes]]:
        """(name, type, descriptor) of every note in the note segments, or sections when there are none."""
        places = [(s.offset, s.file_size) for s in self.segments if s.type == PT_NOTE]
        places = places or [(s.offset, s.size) for s in self.sections if s.type == SHT_NOTE]
        for offset, size in places:
            yield from self._notes_in(offset, offset + size)

    def _notes_in(self, at: int, end: int) -> Iterator[tuple[str, int, bytes]]:
        while at + NoteHeader.SIZE_BYTES <= end:
            head = self._struct(NoteHeader, at, "a note")
            name_at = at + NoteHeader.SIZE_BYTES
            desc_at = name_at + (head.name_size + 3 & ~3)
            at = desc_at + (head.size + 3 & ~3)
            if desc_at + head.size > end:
                raise ElfError(f"damaged: note of 0x{head.size:x} bytes at 0x{name_at:x} reaches past its segment")
            name = self.bytes_at(name_at, head.name_size, "a note's name").rstrip(b"\0")
            yield name.decode("latin-1"), head.type, self.bytes_at(desc_at, head.size, "a note")

    def relocations(self) -> Iterator[tuple[Rela, Symbol]]:
        """Relocations that a loader applies (those of allocated sections), each with its symbol."""
        for i, section in enumerate(self.sections):
            if section.type == SHT_REL and section.flags & SHF_ALLOC:
                raise ElfError(f"section {i} has relocations without addends; AMD code objects have none")
            if section.type == SHT_RELA and section.flags & SHF_ALLOC:
                yield from self.relocations_in(section)

    def relocations_in(self, section: Section) -> Iterator[tuple[Rela, Symbol]]:
        """Relocations of one section of them, each with its symbol."""
        if section.link >= len(self.sections):
            raise ElfError(f"damaged: relocations name section {section.link} of {len(self.sections)}")
        symbols = self.symbol_table(self.sections[section.link])
        for row in self._table(Rela, section.offset, section.size // Rela.SIZE_BYTES, section.entry_size,
                               "relocation"):
            if row.symbol >= len(symbols):
                raise ElfError(f"damaged: relocation at 0x{row.offset:x} names symbol {row.symbol} of {len(symbols)}")
            yield row, symbols[row.symbol]


def _string(table: bytes, offset: int) -> str:
    end = table.find(b"\0", offset)
    if offset >= len(table) or end < 0:
        raise ElfError(f"damaged: name at 0x{offset:x} of a string table of 0x{len(table):x} bytes")
    return table[offset:end].decode("utf-8", "backslashreplace")


def _what_it_is(data: bytes) -> str:
    if not data:
        return "it is empty"
    if data.startswith((b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB")):
        return "it is a clang offload bundle; extract one target with clang-offload-bundler --unbundle"
    if data.startswith(b"!<arch>"):
        return "it is an archive of objects"
    if data.startswith((b"BC\xc0\xde", b"; ModuleID")):
        return "it is LLVM IR; compile it for the GPU first"
    return f"it starts with {data[:4].hex(' ')}"
