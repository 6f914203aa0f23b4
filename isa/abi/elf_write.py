"""Writes the shared objects that AMD code objects are: sections in segments, symbols, relocations, a note.

Every segment starts on a page of its own, in the file and in memory. Symbols with a name that begins
with ".L" stay out.

Units:   bytes; vaddr counts from the load base.
Source:  System V ABI, "Object Files", "Program Loading", "Dynamic Linking"; AMDGPU back-end user guide,
         "ELF Code Object".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from stuntgpu.isa.abi import elf

PAGE = 0x1000
HEADER_BYTES, PROGRAM_BYTES, SECTION_BYTES, SYMBOL_BYTES, RELA_BYTES = 64, 56, 64, 24, 24
SHT_PROGBITS, SHT_STRTAB, SHT_HASH, SHT_DYNAMIC = 1, 3, 5, 6
SHF_WRITE = 1
PT_DYNAMIC, PT_PHDR, PT_GNU_STACK = 2, 6, 0x6474E551
STB_LOCAL, STB_GLOBAL, STB_WEAK = 0, 1, 2
DT_HASH, DT_STRTAB, DT_SYMTAB, DT_RELA, DT_RELASZ, DT_RELAENT, DT_STRSZ, DT_SYMENT = 4, 5, 6, 7, 8, 9, 10, 11
DT_RELACOUNT = 0x6FFF_FFF9
R_AMDGPU_RELATIVE64 = 13


@dataclass(slots=True)
class Output:
    """A section. `flags` SHF_*; `size` may exceed `data` only for SHT_NOBITS. Addresses are filled in by `place`."""

    name: str
    type: int
    flags: int
    data: bytes = b""
    size: int = 0
    align: int = 4
    link: str = ""
    info: int = 0
    entry_size: int = 0
    vaddr: int = 0
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Name:
    """A symbol. section: name of its section, "" absolute. value: its vaddr. other: visibility."""

    name: str
    section: str
    value: int
    size: int = 0
    type: int = 0
    binding: int = STB_LOCAL
    other: int = 0


@dataclass(frozen=True, slots=True)
class Relative:
    """Write load base + addend at vaddr, 64 bits."""

    vaddr: int
    addend: int


@dataclass
class Strings:
    """A string table."""

    data: bytearray = field(default_factory=lambda: bytearray(1))
    known: dict[str, int] = field(default_factory=dict)

    def offset(self, text: str) -> int:
        if text not in self.known:
            self.known[text] = len(self.data) if text else 0
            self.data += text.encode() + b"\0" if text else b""
        return self.known[text]


def note(name: str, kind: int, desc: bytes) -> bytes:
    """One entry of a note section."""
    label = name.encode() + b"\0"
    head = elf.NoteHeader(name_size=len(label), size=len(desc), type=kind).pack()
    return head + _padded(label) + _padded(desc)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def rounded(value: int, granule: int) -> int:
    return -(-value // granule) * granule


# ---------------------------------------------------------------- layout


def group(outputs: Iterable[Output]) -> list[list[Output]]:
    """Sections of each segment: read only, code, data, what is only zero."""
    kinds: dict[tuple[bool, int], list[Output]] = {(False, elf.SHF_ALLOC): [], (False, elf.SHF_ALLOC | elf.SHF_EXEC): [],
                                                   (False, elf.SHF_ALLOC | SHF_WRITE): []}
    for o in outputs:
        kinds.setdefault((o.type == elf.SHT_NOBITS, o.flags), []).append(o)
    return list(kinds.values())


def place(outputs: Sequence[Output], at: int) -> int:
    """Gives sections their addresses, each group on a page of its own from `at` on; the first free address."""
    for members in group(outputs):
        if not members:
            continue
        at = rounded(at, max(PAGE, *(o.align for o in members)))
        for o in members:
            at = o.vaddr = rounded(at, o.align)
            at += max(o.size, len(o.data))
    return at


# ---------------------------------------------------------------- tables


def hash_table(names: Sequence[str]) -> bytes:
    """DT_HASH over symbols 1.. of a table, with one chain."""
    words = [1, len(names) + 1, 1 if names else 0, 0, *(i + 2 if i + 1 < len(names) else 0 for i in range(len(names)))]
    return b"".join(w.to_bytes(4, "little") for w in words)


def symbol_table(names: Sequence[Name], numbers: dict[str, int], strings: Strings) -> bytes:
    out = bytes(SYMBOL_BYTES)
    for n in names:
        section = numbers[n.section] if n.section else elf.SHN_ABS
        out += elf.SymbolEntry(name_offset=strings.offset(n.name), type=n.type, binding=n.binding, other=n.other,
                                     section=section, value=n.value, size=n.size).pack()
    return out


def dynamic_table(rows: Iterable[tuple[int, int]]) -> bytes:
    return b"".join(tag.to_bytes(8, "little") + value.to_bytes(8, "little") for tag, value in (*rows, (0, 0)))


# ---------------------------------------------------------------- the file


@dataclass
class Writer:
    """contents: placed by `place` from CONTENTS on; relatives: found while they were filled."""

    os_abi: int
    abi_version: int
    flags: int
    contents: Sequence[Output]
    names: Sequence[Name]
    relatives: Sequence[Relative]
    note: bytes

    def write(self) -> bytes:
        exported = [n for n in self.names if n.binding != STB_LOCAL]
        names = sorted(self.names, key=lambda n: n.binding != STB_LOCAL)
        head = self._head(exported)
        tail = self._tail(head)
        loaded = [*head, *self.contents, *tail]
        extra = [Output(n, t, 0, link=link, entry_size=size, align=8)
                 for n, t, link, size in ((".symtab", elf.SHT_SYMTAB, ".strtab", SYMBOL_BYTES), (".strtab", SHT_STRTAB, "", 0),
                                          (".shstrtab", SHT_STRTAB, "", 0))]
        sections = [*loaded, *extra]
        numbers = {o.name: i for i, o in enumerate(sections, 1)}
        self._fill_symbols(head, extra, exported, names, numbers)
        self._fill_dynamic({o.name: o for o in loaded})
        return self._file(sections, numbers, extra)

    def _head(self, exported: Sequence[Name]) -> list[Output]:
        """What comes ahead of the contents, on the pages they left free."""
        text = sum(len(n.name.encode()) + 1 for n in exported) + 1
        out = [
            Output(".note", elf.SHT_NOTE, elf.SHF_ALLOC, self.note),
            Output(".dynsym", elf.SHT_DYNSYM, elf.SHF_ALLOC, size=SYMBOL_BYTES * (len(exported) + 1), align=8, link=".dynstr",
                   info=1, entry_size=SYMBOL_BYTES),
            Output(".hash", SHT_HASH, elf.SHF_ALLOC, hash_table([n.name for n in exported]), link=".dynsym", entry_size=4),
            Output(".dynstr", SHT_STRTAB, elf.SHF_ALLOC, size=text, align=1),
        ]
        at = HEADER_BYTES + 16 * PROGRAM_BYTES
        for o in out:
            at = o.vaddr = rounded(at, o.align)
            at += max(o.size, len(o.data))
        return out

    def _tail(self, head: Sequence[Output]) -> list[Output]:
        """Relocations and the dynamic table, after the contents."""
        relocations = b"".join(elf.Rela(offset=r.vaddr, type=R_AMDGPU_RELATIVE64, symbol=0, addend=r.addend).pack()
                               for r in self.relatives)
        out = [Output(".dynamic", SHT_DYNAMIC, elf.SHF_ALLOC | SHF_WRITE, size=16 * 10, align=8, link=".dynstr", entry_size=16)]
        if relocations:
            out.append(Output(".rela.dyn", elf.SHT_RELA, elf.SHF_ALLOC | SHF_WRITE, relocations, align=8, link=".dynsym",
                              entry_size=RELA_BYTES))
        end = max(o.vaddr + max(o.size, len(o.data)) for o in (*head, *self.contents))
        place(out, end)
        return out

    def _fill_symbols(self, head: Sequence[Output], extra: Sequence[Output], exported: Sequence[Name],
                      names: Sequence[Name], numbers: dict[str, int]) -> None:
        dynamic, text, whole = Strings(), Strings(), Strings()
        by_name = {o.name: o for o in head}
        by_name[".dynsym"].data = symbol_table(exported, numbers, dynamic)
        by_name[".dynstr"].data = bytes(dynamic.data)
        symtab, strtab, shstrtab = extra
        symtab.data = symbol_table(names, numbers, text)
        symtab.info = 1 + sum(n.binding == STB_LOCAL for n in names)
        strtab.data = bytes(text.data)
        for name in numbers:
            whole.offset(name)
        shstrtab.data = bytes(whole.data)

    def _fill_dynamic(self, by_name: dict[str, Output]) -> None:
        rows = [(DT_HASH, by_name[".hash"].vaddr), (DT_SYMTAB, by_name[".dynsym"].vaddr), (DT_SYMENT, SYMBOL_BYTES),
                (DT_STRTAB, by_name[".dynstr"].vaddr), (DT_STRSZ, len(by_name[".dynstr"].data))]
        if ".rela.dyn" in by_name:
            table = by_name[".rela.dyn"]
            rows += [(DT_RELA, table.vaddr), (DT_RELASZ, len(table.data)), (DT_RELAENT, RELA_BYTES),
                     (DT_RELACOUNT, len(self.relatives))]
        by_name[".dynamic"].data = dynamic_table(rows)

    def _file(self, sections: Sequence[Output], numbers: dict[str, int], extra: Sequence[Output]) -> bytes:
        loaded = [o for o in sections if o.flags & elf.SHF_ALLOC]
        segments = self._segments(loaded)
        body = bytearray(HEADER_BYTES + PROGRAM_BYTES * len(segments))
        for o in loaded:
            if o.type != elf.SHT_NOBITS:
                body += bytes(o.offset - len(body)) if o.offset > len(body) else b""
                body[o.offset : o.offset + len(o.data)] = o.data
        for o in extra:
            body += bytes(-len(body) % o.align)
            o.offset = len(body)
            body += o.data
        body += bytes(-len(body) % 8)
        at, shstrtab = len(body), extra[-1]
        names = Strings(bytearray(shstrtab.data), {n: shstrtab.data.index(b"\0" + n.encode() + b"\0") + 1 for n in numbers})
        body += bytes(SECTION_BYTES)
        for o in sections:
            body += elf.Section(
                name_offset=names.offset(o.name), type=o.type, flags=o.flags, addr=o.vaddr, offset=o.offset,
                size=max(o.size, len(o.data)), link=numbers.get(o.link, 0), info=o.info, align=o.align, entry_size=o.entry_size).pack()
        body[:HEADER_BYTES] = self._header(len(segments), at, len(sections) + 1, numbers[".shstrtab"])
        for i, s in enumerate(segments):
            body[HEADER_BYTES + i * PROGRAM_BYTES : HEADER_BYTES + (i + 1) * PROGRAM_BYTES] = s.pack()
        return bytes(body)

    def _header(self, n_segments: int, section_offset: int, n_sections: int, names: int) -> bytes:
        return elf.Header(
            magic=int.from_bytes(elf.MAGIC, "little"), elf_class=2, data=1, ident_version=1, os_abi=self.os_abi,
            abi_version=self.abi_version, type=elf.ET_DYN, machine=elf.EM_AMDGPU, version=1, program_offset=HEADER_BYTES,
            section_offset=section_offset, flags=self.flags, header_size=HEADER_BYTES, program_size=PROGRAM_BYTES,
            program_count=n_segments, section_size=SECTION_BYTES, section_count=n_sections, section_names=names).pack()

    def _segments(self, loaded: Sequence[Output]) -> list[elf.Segment]:
        """Program headers; gives sections their file offsets."""
        out: list[elf.Segment] = []
        at, runs = 0, _runs(loaded)
        for i, members in enumerate(runs):
            first, last = members[0], members[-1]
            start = 0 if i == 0 else first.vaddr // PAGE * PAGE
            at = rounded(at, PAGE)
            for o in members:
                o.offset = at + o.vaddr - start
            is_zero = first.type == elf.SHT_NOBITS
            size = last.vaddr + max(last.size, len(last.data)) - start
            rights = elf.PF_R | (elf.PF_X if first.flags & elf.SHF_EXEC else 0) | (elf.PF_W if first.flags & SHF_WRITE else 0)
            out.append(elf.Segment(type=elf.PT_LOAD, flags=rights, offset=at, vaddr=start, paddr=start,
                                   file_size=0 if is_zero else size, size=size, align=PAGE))
            at += 0 if is_zero else size
        found = {o.name: o for o in loaded}
        for kind, o in ((elf.PT_NOTE, found[".note"]), (PT_DYNAMIC, found[".dynamic"])):
            size = max(o.size, len(o.data))
            out.append(elf.Segment(type=kind, flags=elf.PF_R, offset=o.offset, vaddr=o.vaddr, paddr=o.vaddr, file_size=size,
                                   size=size, align=o.align))
        out.append(elf.Segment(type=PT_GNU_STACK, flags=elf.PF_R | elf.PF_W, offset=0, vaddr=0, paddr=0, file_size=0, size=0,
                               align=0))
        return out


def _runs(loaded: Sequence[Output]) -> list[list[Output]]:
    """Sections in address order, a list for each segment: a new one where rights or the kind change."""
    runs: list[list[Output]] = []
    for o in sorted(loaded, key=lambda o: (o.vaddr, o.offset)):
        kind = (o.type == elf.SHT_NOBITS, o.flags)
        if runs and (runs[-1][-1].type == elf.SHT_NOBITS, runs[-1][-1].flags) == kind:
            runs[-1].append(o)
        else:
            runs.append([o])
    return runs
