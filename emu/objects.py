"""Object files to executable memory: lays out an ELF relocatable, resolves it, maps it.

Handlers refer to each other's constants and to a few C library functions (on processors without FMA
or rounding instructions) only, so a handful of relocation types is all there is. The linked image is
position independent: what it needs from outside goes through `Image.imports`, a table of addresses
at its end.

Errors:  LinkError for anything else.
Source:  ELF-64 object file format; System V ABI, AMD64 supplement, relocation types.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
from dataclasses import dataclass

_SHF_ALLOC = 2
_SHT_RELA, _SHT_NOBITS = 4, 8
_PC32, _PLT32, _PC64 = 2, 4, 24
_GOT = (9, 41, 42)  # GOTPCREL and its relaxable forms
_STUB = b"\xff\x25"  # jmp *disp32(%rip)


class LinkError(Exception):
    """The object file has something the loader does not know."""


@dataclass(frozen=True, slots=True)
class Image:
    """Linked code. symbols: name -> offset; imports: name -> offset of the slot for its address."""

    code: bytes
    symbols: dict[str, int]
    imports: dict[str, int]


@dataclass(slots=True)
class _Section:
    type: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    at: int = -1


class _Linker:
    def __init__(self, data: bytes) -> None:
        self.data = data
        if data[:6] != b"\x7fELF\x02\x01":
            raise LinkError("not a 64-bit little-endian ELF file")
        (table,) = struct.unpack_from("<Q", data, 40)
        size, count = struct.unpack_from("<HH", data, 58)
        self.sections = [self._section(table + i * size) for i in range(count)]
        self.code = bytearray()
        self.imports: dict[str, int] = {}
        self.stubs: dict[str, int] = {}

    def _section(self, at: int) -> _Section:
        _, kind, flags, _, offset, size, link, info, align, _ = struct.unpack_from("<IIQQQQIIQQ", self.data, at)
        return _Section(kind, flags, offset, size, link, info, align)

    def link(self) -> Image:
        for s in self.sections:
            if s.flags & _SHF_ALLOC and s.size:
                self._place(s)
        symbols, defined = self._symbols()
        for s in self.sections:
            if s.type == _SHT_RELA and self.sections[s.info].at >= 0:
                for i in range(s.size // 24):
                    self._relocate(s, s.offset + 24 * i, symbols)
        return Image(bytes(self.code), defined, self.imports)

    def _place(self, s: _Section) -> None:
        self.code += bytes(-len(self.code) % max(1, s.align))
        s.at = len(self.code)
        self.code += bytes(s.size) if s.type == _SHT_NOBITS else self.data[s.offset : s.offset + s.size]

    def _symbols(self) -> tuple[list[tuple[str, int]], dict[str, int]]:
        """All symbols in table order as (name, place; -1 undefined), and the named functions."""
        table = next((s for s in self.sections if s.type == 2), None)
        if table is None:
            return [], {}
        strings = self.sections[table.link].offset
        out: list[tuple[str, int]] = []
        defined: dict[str, int] = {}
        for i in range(table.size // 24):
            name_at, info, _, index, value, _ = struct.unpack_from("<IBBHQQ", self.data, table.offset + 24 * i)
            end = self.data.index(b"\0", strings + name_at)
            name = self.data[strings + name_at : end].decode()
            place = self.sections[index].at + value if 0 < index < 0xFF00 and self.sections[index].at >= 0 else -1
            out.append((name, place))
            if info >> 4 == 1 and place >= 0:
                defined[name] = place
        return out, defined

    def _relocate(self, s: _Section, at: int, symbols: list[tuple[str, int]]) -> None:
        offset, info, addend = struct.unpack_from("<QQq", self.data, at)
        kind, (name, target) = info & 0xFFFF_FFFF, symbols[info >> 32]
        place = self.sections[s.info].at + offset
        if kind in _GOT:
            target = self._slot(name)
        elif target < 0:
            target = self._stub(name)
        if kind in (_PC32, _PLT32, *_GOT):
            struct.pack_into("<i", self.code, place, target + addend - place)
        elif kind == _PC64:
            struct.pack_into("<q", self.code, place, target + addend - place)
        else:
            raise LinkError(f"relocation type {kind} against {name or 'a section'}")

    def _slot(self, name: str) -> int:
        """Room for the address of an imported function."""
        if name not in self.imports:
            self.code += bytes(-len(self.code) % 8)
            self.imports[name] = len(self.code)
            self.code += bytes(8)
        return self.imports[name]

    def _stub(self, name: str) -> int:
        """A jump through the slot, for direct calls."""
        if name not in self.stubs:
            slot = self._slot(name)
            self.stubs[name] = len(self.code)
            self.code += _STUB + struct.pack("<i", slot - len(self.code) - 6)
        return self.stubs[name]


def link(data: bytes) -> Image:
    """Lay out and resolve an object file. Raises LinkError."""
    return _Linker(data).link()


#: Functions LLVM calls where the processor lacks an instruction.
IMPORTABLE = frozenset(
    f"{name}{suffix}"
    for name in ("fma", "floor", "ceil", "trunc", "rint", "roundeven", "nearbyint", "ldexp", "memcpy", "memset")
    for suffix in ("", "f")
)


class Mapping:
    """A linked image in executable memory; stays mapped as long as the object lives."""

    def __init__(self, image: Image) -> None:
        size = max(mmap.PAGESIZE, -(-len(image.code) // mmap.PAGESIZE) * mmap.PAGESIZE)
        self._memory = mmap.mmap(-1, size, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        self._memory[: len(image.code)] = image.code
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        for name, slot in image.imports.items():
            self._memory[slot : slot + 8] = struct.pack("<Q", _address(name))
        _protect(self.base, size)
        self.addresses = {name: self.base + at for name, at in image.symbols.items()}


def _address(name: str) -> int:
    if name not in IMPORTABLE:
        raise LinkError(f"undefined symbol {name}")
    library = ctypes.CDLL("libm.so.6")
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0


def _protect(base: int, size: int) -> None:
    """Readable and executable, no longer writable."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(base), ctypes.c_size_t(size), mmap.PROT_READ | mmap.PROT_EXEC):
        raise OSError(ctypes.get_errno(), "mprotect of compiled code")
