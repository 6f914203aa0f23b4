"""AMD code objects, versions 4 to 6: which GPU they are for, their kernels and how to place them in memory.

Units:   bytes; `vaddr` counts from the address the object is loaded at.
Errors:  CodeObjectError names the object (when the caller gives a name) and what is wrong with it.
Source:  AMDGPU back-end user guide, "ELF Code Object", "Code Object Metadata", "Relocation Records".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import msgpack

from stuntgpu.isa.abi import elf
from stuntgpu.isa.abi.descriptor import KernelDescriptor
from stuntgpu.isa.abi.elf import ElfError, ElfFile
from stuntgpu.isa.abi.targets import MACH, target

OS_ABI_HSA = 0x40
NOTE_NAME, NOTE_METADATA = "AMDGPU", 32
#: e_ident[EI_ABIVERSION] -> code object version.
VERSIONS: Mapping[int, int] = {2: 4, 3: 5, 4: 6}
#: e_flags 9:8 (XNACK) and 11:10 (SRAMECC).
_FEATURE = ("unsupported", "any", "off", "on")

#: More address space than this is damage, not code.
MAX_IMAGE = 1 << 30

# relocation types: number -> (bytes written, name)
_RELOCATIONS: Mapping[int, tuple[int, str]] = {
    1: (4, "R_AMDGPU_ABS32_LO"), 2: (4, "R_AMDGPU_ABS32_HI"), 3: (8, "R_AMDGPU_ABS64"), 4: (4, "R_AMDGPU_REL32"),
    5: (8, "R_AMDGPU_REL64"), 6: (4, "R_AMDGPU_ABS32"), 10: (4, "R_AMDGPU_REL32_LO"),
    11: (4, "R_AMDGPU_REL32_HI"), 13: (8, "R_AMDGPU_RELATIVE64"),
}


class CodeObjectError(ValueError):
    """A code object that cannot be used; `str()` says why."""


@dataclass(frozen=True, slots=True)
class KernelArg:
    """One row of a kernel's `.args` metadata.

    kind    `.value_kind`: "by_value", "global_buffer", "dynamic_shared_pointer", "hidden_block_count_x", ...
    name, type_name   "" when the compiler left them out.
    """

    offset: int
    size: int
    kind: str
    name: str = ""
    type_name: str = ""
    align: int = 0

    @property
    def is_hidden(self) -> bool:
        """True for arguments the launcher fills rather than the caller."""
        return self.kind.startswith("hidden_")


@dataclass(frozen=True)
class KernelInfo:
    """One kernel: its descriptor and what the metadata says about calling it.

    descriptor_vaddr, entry_vaddr   from the load base.
    required_workgroup              the only workgroup the kernel may be launched with, or None.
    uniform_workgroups              compiled on the promise that all workgroups of a dispatch have one size.
    """

    name: str
    descriptor: KernelDescriptor
    descriptor_vaddr: int
    entry_vaddr: int
    args: tuple[KernelArg, ...] = ()
    kernarg_align: int = 8
    max_workgroup_items: int = 1024
    required_workgroup: tuple[int, int, int] | None = None
    uniform_workgroups: bool = False

    @cached_property
    def explicit_args(self) -> tuple[KernelArg, ...]:
        """The arguments a caller passes, in order."""
        return tuple(a for a in self.args if not a.is_hidden)

    @cached_property
    def hidden_args(self) -> tuple[KernelArg, ...]:
        """The arguments the launcher fills."""
        return tuple(a for a in self.args if a.is_hidden)


@dataclass(frozen=True, slots=True)
class LoadSegment:
    """Bytes to place at `vaddr`; the part past `data` up to `size` is zero. `flags` are elf.PF_*."""

    vaddr: int
    size: int
    flags: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Relocation:
    """Write S + A (or S + A - P) of a symbol at `vaddr`; `symbol_vaddr` None means an absolute value."""

    type: int
    vaddr: int
    symbol: elf.Symbol
    addend: int


@dataclass(frozen=True, slots=True)
class CodeObject:
    """A parsed code object. `image(base)` is what memory holds once it is loaded at `base`."""

    target: str
    version: int
    xnack: str
    sramecc: str
    kernels: Mapping[str, KernelInfo]
    segments: tuple[LoadSegment, ...]
    relocations: tuple[Relocation, ...]
    symbols: Mapping[str, elf.Symbol]

    @property
    def size(self) -> int:
        """Bytes of address space from the load base on."""
        return max(s.vaddr + s.size for s in self.segments)

    def image(self, base: int) -> bytes:
        """All segments at their vaddr, zero in between, relocated for a load at `base`.

        Raises CodeObjectError for a relocation against a symbol nothing defines.
        """
        out = bytearray(self.size)
        for segment in self.segments:
            out[segment.vaddr : segment.vaddr + len(segment.data)] = segment.data
        for relocation in self.relocations:
            _relocate(out, relocation, base)
        return bytes(out)

    def check_target(self, arch: str) -> None:
        """Raises CodeObjectError unless code for this object's target runs on `arch`."""
        if not target(arch).runs(self.target):
            raise CodeObjectError(f"built for {self.target}, but this GPU is {arch}")


def read(data: bytes | bytearray | memoryview, *, name: str = "") -> CodeObject:
    """Parse and check a code object. Raises CodeObjectError; `name` is the file's, for its message."""
    try:
        return _read(ElfFile(bytes(data)))
    except (ElfError, CodeObjectError) as error:
        raise CodeObjectError(f"{name or 'code object'}: {error}") from None


def _read(file: ElfFile) -> CodeObject:
    head = file.header
    if head.os_abi != OS_ABI_HSA:
        raise CodeObjectError(f"OS ABI 0x{head.os_abi:x}, expected amdhsa (0x{OS_ABI_HSA:x})")
    if head.abi_version not in VERSIONS:
        raise CodeObjectError(f"code object version {head.abi_version + 2} (ABI version {head.abi_version}); "
                              f"versions 4, 5 and 6 are supported")
    if head.type != elf.ET_DYN:
        kind = "a relocatable object; link it with ld.lld -shared first" if head.type == elf.ET_REL else f"ELF type {head.type}"
        raise CodeObjectError(f"not a shared object but {kind}")
    mach = head.flags & 0xFF
    if mach not in MACH:
        raise CodeObjectError(f"e_flags 0x{head.flags:x} name no known GPU (machine 0x{mach:x})")
    segments = tuple(_load_segments(file))
    return CodeObject(
        target=MACH[mach], version=VERSIONS[head.abi_version],
        xnack=_FEATURE[head.flags >> 8 & 3], sramecc=_FEATURE[head.flags >> 10 & 3],
        kernels={k.name: k for k in _kernels(file, segments)}, segments=segments,
        relocations=tuple(Relocation(r.type, r.offset, s, r.addend) for r, s in file.relocations()),
        symbols=file.symbols)


# ---------------------------------------------------------------- segments and relocations


def _load_segments(file: ElfFile) -> Iterator[LoadSegment]:
    found = [s for s in file.segments if s.type == elf.PT_LOAD]
    if not found:
        raise CodeObjectError("nothing to load (no PT_LOAD segment)")
    for i, s in enumerate(found):
        if s.file_size > s.size or s.vaddr + s.size > MAX_IMAGE:
            raise CodeObjectError(f"damaged: load segment {i} at 0x{s.vaddr:x}, 0x{s.file_size:x} file bytes, size 0x{s.size:x}")
        if s.size:
            yield LoadSegment(s.vaddr, s.size, s.flags, file.bytes_at(s.offset, s.file_size, f"load segment {i}"))


def _relocate(out: bytearray, r: Relocation, base: int) -> None:
    if r.type not in _RELOCATIONS:
        raise CodeObjectError(f"relocation type {r.type} at 0x{r.vaddr:x} is not one a loader applies")
    size, kind = _RELOCATIONS[r.type]
    if r.vaddr + size > len(out):
        raise CodeObjectError(f"{kind} at 0x{r.vaddr:x} lies outside the loaded segments")
    value = _relocated(r, base, kind)
    if kind.endswith("_HI"):
        value >>= 32
    out[r.vaddr : r.vaddr + size] = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")


def _relocated(r: Relocation, base: int, kind: str) -> int:
    if kind == "R_AMDGPU_RELATIVE64":
        return base + r.addend
    if r.symbol.section == elf.SHN_UNDEF:
        raise CodeObjectError(f"{kind} at 0x{r.vaddr:x} needs symbol {r.symbol.name!r}, which nothing defines")
    address = r.symbol.value + (0 if r.symbol.section == elf.SHN_ABS else base)
    value = address + r.addend - (base + r.vaddr if "_REL" in kind else 0)
    if kind == "R_AMDGPU_ABS32" and value >> 32:
        raise CodeObjectError(f"{kind} at 0x{r.vaddr:x}: 0x{value:x} does not fit 32 bits")
    return value


# ---------------------------------------------------------------- kernels and metadata


def _kernels(file: ElfFile, segments: tuple[LoadSegment, ...]) -> Iterator[KernelInfo]:
    rows = _metadata(file).get("amdhsa.kernels")
    if not isinstance(rows, list):
        raise CodeObjectError("metadata note has no list amdhsa.kernels")
    for row in rows:
        if not isinstance(row, dict) or not isinstance(row.get(".name"), str):
            raise CodeObjectError(f"metadata: kernel without a name: {row!r:.80}")
        try:
            yield _kernel(file, segments, row)
        except CodeObjectError as error:
            raise CodeObjectError(f"kernel {row['.name']!r}: {error}") from None


def _metadata(file: ElfFile) -> dict[str, Any]:
    for name, kind, desc in file.notes():
        if (name, kind) == (NOTE_NAME, NOTE_METADATA):
            try:
                data = msgpack.unpackb(desc, strict_map_key=False)
            except (ValueError, TypeError, msgpack.UnpackException) as error:  # TypeError: a map as a map's key
                raise CodeObjectError(f"metadata note is not MessagePack: {error}") from None
            if not isinstance(data, dict):
                raise CodeObjectError(f"metadata note holds a {type(data).__name__}, expected a map")
            return cast("dict[str, Any]", data)
    raise CodeObjectError(f"no metadata note (name {NOTE_NAME}, type {NOTE_METADATA})")


def _kernel(file: ElfFile, segments: tuple[LoadSegment, ...], row: dict[str, Any]) -> KernelInfo:
    wanted = row.get(".symbol", row[".name"] + ".kd")
    symbol = file.symbols.get(wanted)
    if symbol is None or symbol.section == elf.SHN_UNDEF:
        known = [n for n in file.symbols if n.endswith(".kd")]
        raise CodeObjectError(f"no descriptor symbol {wanted!r}; the object has {', '.join(known) or 'none'}")
    descriptor = _descriptor(segments, symbol)
    entry = symbol.value + descriptor.entry_offset
    if not any(s.flags & elf.PF_X and s.vaddr <= entry < s.vaddr + s.size for s in segments):
        raise CodeObjectError(f"descriptor at 0x{symbol.value:x} gives entry 0x{entry:x}, which is not in executable code")
    required = row.get(".reqd_workgroup_size")
    return KernelInfo(
        name=row[".name"], descriptor=descriptor, descriptor_vaddr=symbol.value, entry_vaddr=entry,
        args=tuple(_args(row, _number(row, ".kernarg_segment_size", descriptor.kernarg_size))),
        kernarg_align=_number(row, ".kernarg_segment_align", 8),
        max_workgroup_items=_number(row, ".max_flat_workgroup_size", 1024),
        required_workgroup=None if required is None else _triple(required),
        uniform_workgroups=_number(row, ".uniform_work_group_size", 0) == 1)


def _descriptor(segments: tuple[LoadSegment, ...], symbol: elf.Symbol) -> KernelDescriptor:
    for s in segments:
        at = symbol.value - s.vaddr
        if at >= 0 and at + KernelDescriptor.SIZE_BYTES <= len(s.data):
            return KernelDescriptor.unpack(s.data, at)
    raise CodeObjectError(f"descriptor {symbol.name!r} at 0x{symbol.value:x} is not in a loaded segment")


def _args(row: dict[str, Any], kernarg_bytes: int) -> Iterator[KernelArg]:
    rows = row.get(".args", [])
    if not isinstance(rows, list):
        raise CodeObjectError(f".args is {rows!r:.80}, expected a list")
    for i, arg in enumerate(rows):
        if not isinstance(arg, dict) or not isinstance(arg.get(".value_kind"), str):
            raise CodeObjectError(f"argument {i} has no .value_kind: {arg!r:.80}")
        made = KernelArg(offset=_number(arg, ".offset"), size=_number(arg, ".size"), kind=arg[".value_kind"],
                         name=str(arg.get(".name", "")), type_name=str(arg.get(".type_name", "")),
                         align=_number(arg, ".pointee_align", 0))
        if made.offset + made.size > kernarg_bytes:
            raise CodeObjectError(f"argument {i} is bytes {made.offset}..{made.offset + made.size} of a kernarg "
                                  f"segment of {kernarg_bytes}")
        yield made


def _number(row: dict[str, Any], key: str, default: int | None = None) -> int:
    value = row.get(key, default)
    if not isinstance(value, int) or value < 0:
        raise CodeObjectError(f"{key} is {value!r}, expected a number")
    return value


def _triple(value: Any) -> tuple[int, int, int]:
    if not isinstance(value, list) or len(value) != 3 or not all(isinstance(v, int) for v in value):
        raise CodeObjectError(f".reqd_workgroup_size is {value!r}, expected three numbers")
    return value[0], value[1], value[2]
