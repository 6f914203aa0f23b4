"""Disassembly of whole sections: labels, branch targets, padding and data, in text that assembles again.

    for section in code_sections(ElfFile(data)):
        for item in listing("gfx1100", section):
            ...

Units:   addresses in bytes, from the load base of a linked object or the start of a section.
Errors:  ElfError for a damaged file. What is no instruction is listed as data, with the reason.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count

from stuntgpu.isa.abi import elf
from stuntgpu.isa.abi.descriptor import KernelDescriptor
from stuntgpu.isa.abi.elf import ElfError, ElfFile, Section, Symbol
from stuntgpu.isa.abi.targets import MACH, target
from stuntgpu.isa.decode import DecodeError, decode
from stuntgpu.isa.disasm import branch_target, disassemble
from stuntgpu.isa.inst import Inst

DWORD_BYTES = 4
#: Instructions that pad code, and how many in a row are worth a line each.
PADDING = frozenset({"S_CODE_END", "S_NOP"})
MIN_RUN = 4
LABEL = re.compile(r"[A-Za-z_.$@][\w.$@]*\Z")
DESCRIPTOR_SUFFIX = ".kd"
#: Names of relocation types a relocatable object's code has.
RELOCATIONS = {
    1: "R_AMDGPU_ABS32_LO", 2: "R_AMDGPU_ABS32_HI", 3: "R_AMDGPU_ABS64", 4: "R_AMDGPU_REL32", 5: "R_AMDGPU_REL64",
    6: "R_AMDGPU_ABS32", 7: "R_AMDGPU_GOTPCREL", 8: "R_AMDGPU_GOTPCREL32_LO", 9: "R_AMDGPU_GOTPCREL32_HI",
    10: "R_AMDGPU_REL32_LO", 11: "R_AMDGPU_REL32_HI", 14: "R_AMDGPU_REL16",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class CodeSection:
    """Machine code with what names its places.

    symbols      by address, several at one place in file order.
    relocations  address -> text, for code that is not linked yet.
    """

    name: str
    address: int
    code: bytes
    symbols: tuple[Symbol, ...] = ()
    relocations: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Label:
    """A place with a name. `symbol` None: a branch target that the file does not name."""

    address: int
    name: str
    symbol: Symbol | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One instruction or directive: `text` assembles to `code`; `note` is for the reader."""

    address: int
    code: bytes
    text: str
    note: str = ""
    is_data: bool = False


# ---------------------------------------------------------------- sections of a file


def code_sections(file: ElfFile) -> tuple[CodeSection, ...]:
    """Sections of instructions; without section headers, the executable segments."""
    if not file.sections:
        return tuple(_segments(file))
    symbols = tuple(_symbols(file))
    return tuple(
        CodeSection(
            name, s.addr, file.bytes_at(s.offset, s.size, f"section {name}"),
            tuple(sorted((x for x in symbols if x.section == i), key=lambda x: x.value)), _relocations(file, i),
        )
        for i, (name, s) in enumerate(zip(file.section_names, file.sections, strict=True))
        if s.flags & elf.SHF_EXEC and s.type != elf.SHT_NOBITS and s.size
    )  # fmt: skip


def _segments(file: ElfFile) -> Iterator[CodeSection]:
    for i, s in enumerate(file.segments):
        if s.type == elf.PT_LOAD and s.flags & elf.PF_X:
            yield CodeSection(".text", s.vaddr, file.bytes_at(s.offset, s.file_size, f"load segment {i}"))


def _symbols(file: ElfFile) -> Iterator[Symbol]:
    """Named places of the full symbol table, or of the dynamic one when there is no other."""
    tables = {s.type: s for s in reversed(file.sections)}
    table = tables.get(elf.SHT_SYMTAB) or tables.get(elf.SHT_DYNSYM)
    for symbol in file.symbol_table(table) if table else ():
        if symbol.name and symbol.type not in (elf.STT_SECTION, elf.STT_FILE):
            yield symbol


def _relocations(file: ElfFile, index: int) -> dict[int, str]:
    """Relocations of section `index` of an object that is not linked."""
    out: dict[int, str] = {}
    for section in file.sections:
        if section.type == elf.SHT_RELA and section.info == index and not section.flags & elf.SHF_ALLOC:
            for row, symbol in file.relocations_in(section):
                kind = RELOCATIONS.get(row.type, f"relocation type {row.type}")
                out[row.offset] = f"{kind} {symbol.name}{f'{row.addend:+#x}' if row.addend else ''}"
    return out


def target_id(file: ElfFile) -> str:
    """`amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-`, from the flags of the header."""
    flags = file.header.flags
    text = f"amdgcn-amd-amdhsa--{MACH.get(flags & 0xFF, 'unknown')}"
    for name, shift in (("sramecc", 10), ("xnack", 8)):
        text += {2: f":{name}-", 3: f":{name}+"}.get(flags >> shift & 3, "")
    return text


# ---------------------------------------------------------------- kernel descriptors


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A kernel descriptor found by its symbol."""

    name: str
    address: int
    value: KernelDescriptor


def descriptors(file: ElfFile) -> tuple[Descriptor, ...]:
    """Descriptors of the file's kernels. Raises ElfError for one that lies outside its section."""
    found = (s for s in _symbols(file) if s.name.endswith(DESCRIPTOR_SUFFIX) and 0 < s.section < len(file.sections))
    return tuple(Descriptor(s.name.removesuffix(DESCRIPTOR_SUFFIX), s.value, _descriptor(file, s)) for s in found)


def _descriptor(file: ElfFile, symbol: Symbol) -> KernelDescriptor:
    section: Section = file.sections[symbol.section]
    at, size = symbol.value - section.addr, KernelDescriptor.SIZE_BYTES
    if not 0 <= at <= section.size - size:
        raise ElfError(f"damaged: descriptor {symbol.name!r} at 0x{symbol.value:x} is not in its section "
                       f"at 0x{section.addr:x} of 0x{section.size:x} bytes")
    return KernelDescriptor.unpack(file.bytes_at(section.offset + at, size, f"descriptor {symbol.name!r}"))


def summary(arch: str, d: Descriptor) -> str:
    """What a descriptor asks for, in one line."""
    kd = d.value
    row = target(arch)
    lanes = row.wave_lanes(kd.properties.wavefront_size32)
    ids = "xyz"[: kd.rsrc2.workitem_ids + 1]
    groups = "".join(axis for axis in "xyz" if getattr(kd.rsrc2, f"workgroup_id_{axis}"))
    given = ", ".join(f"{name} {n}" for name, n in kd.properties.user_sgpr_slots())
    return (f"wave{lanes}, {(kd.rsrc1.vgprs + 1) * row.vgpr_granule(lanes)} VGPRs, LDS {kd.group_segment_size} bytes, "
            f"scratch {kd.private_segment_size} bytes, kernarg {kd.kernarg_size} bytes; "
            f"user SGPRs {kd.rsrc2.user_sgprs} ({given or 'none'}); work-item ids {ids}, workgroup ids {groups or 'none'}")


# ---------------------------------------------------------------- listing


def listing(arch: str, section: CodeSection, numbers: Iterator[int] | None = None) -> Iterator[Label | Line]:
    """Labels and lines of a section, by address. Branch targets without a symbol are named L0, L1, ...,
    as `numbers` count. The lines' texts, with the labels, assemble to the section's bytes, but for
    bits that no instruction reads."""
    items = list(_decoded(arch, section))
    labels = _labels(items, section, numbers or count())
    names = {label.address: label.name for group in labels.values() for label in reversed(group)}
    for run in _runs(items, labels):
        yield from labels.get(run[0].address, ())
        if len(run) >= MIN_RUN:
            yield _repeated(run)
        else:
            yield from (_line(item, section, names) for item in run)
    yield from labels.get(section.address + len(section.code), ())


@dataclass(frozen=True, slots=True)
class _Item:
    """A decoded place: `inst`, or the reason why there is none."""

    address: int
    code: bytes
    inst: Inst | None
    reason: str = ""


def _decoded(arch: str, section: CodeSection) -> Iterator[_Item]:
    """All of a section; no instruction reaches past a symbol, no undecodable word past four bytes."""
    code, base = memoryview(section.code), section.address
    starts = sorted({s.value - base for s in section.symbols} | {len(code)})
    objects = [(s.value - base, s.value - base + s.size) for s in section.symbols if s.type == elf.STT_OBJECT]
    at = 0
    while at < len(code):
        limit = starts[bisect_right(starts, at)]
        step, reason = min(DWORD_BYTES, limit - at), "data"
        if not (objects and any(low <= at < high for low, high in objects)):
            try:
                inst = decode(arch, code[:limit], at)
            except DecodeError as error:
                reason = error.reason
            else:
                yield _Item(base + at, section.code[at : at + inst.size], inst)
                at += inst.size
                continue
        yield _Item(base + at, section.code[at : at + step], None, reason)
        at += step


def _labels(items: list[_Item], section: CodeSection, numbers: Iterator[int]) -> dict[int, list[Label]]:
    """Symbols, and the branch targets that lie at instructions and have no symbol, by address."""
    out: dict[int, list[Label]] = {}
    seen: set[str] = set()
    for symbol in section.symbols:
        if symbol.name not in seen and LABEL.match(symbol.name):
            seen.add(symbol.name)
            out.setdefault(symbol.value, []).append(Label(symbol.value, symbol.name, symbol))
    places = {item.address for item in items} | {section.address + len(section.code)}
    targets = {branch_target(i.inst, i.address) for i in items if i.inst is not None}
    prefix = ".L" if any(re.match(r"L\d+\Z", name) for name in seen) else "L"
    for at in sorted(t for t in targets if t in places and t is not None and t not in out):
        out[at] = [Label(at, f"{prefix}{next(numbers)}")]
    return out


def _runs(items: list[_Item], labels: Mapping[int, list[Label]]) -> Iterator[list[_Item]]:
    """Consecutive items that one .fill can stand for, each other item alone; labels begin a run."""
    run: list[_Item] = []
    for item in items:
        if run and (item.code != run[0].code or item.address in labels or not _is_padding(item)):
            yield run
            run = []
        run.append(item)
    if run:
        yield run


def _is_padding(item: _Item) -> bool:
    return len(item.code) == DWORD_BYTES and (item.inst is None or item.inst.name in PADDING)


def _repeated(group: list[_Item]) -> Line:
    first = group[0]
    word = int.from_bytes(first.code, "little")
    what = disassemble(first.inst) if first.inst is not None else first.reason
    return Line(
        first.address, b"".join(item.code for item in group), f".fill {len(group)}, {DWORD_BYTES}, {word:#x}",
        what, first.inst is None,
    )  # fmt: skip


def _line(item: _Item, section: CodeSection, names: Mapping[int, str]) -> Line:
    at = item.address - section.address
    note = "; ".join(section.relocations[i] for i in range(at, at + len(item.code)) if i in section.relocations)
    if item.inst is None:
        return Line(item.address, item.code, data_text(item.code), note or item.reason, True)
    text = disassemble(item.inst)
    to = branch_target(item.inst, item.address)
    if to is not None:
        if to in names and not note:
            text = f"{text.rpartition(' ')[0]} {names[to]}"
        note = note or f"-> {to:x}"
    return Line(item.address, item.code, text, note)


def data_text(data: bytes) -> str:
    """The directive for up to four bytes."""
    if len(data) == DWORD_BYTES:
        return f".long {int.from_bytes(data, 'little'):#x}"
    return f".byte {', '.join(f'{b:#x}' for b in data)}"
