"""Names of kernels in client memory, for reports: found in the code object's own symbols.

A loader that keeps the ELF header at the start of the allocation (as the ROCm runtime and ours do)
leaves the dynamic symbols in memory; other loaders give no name.

Units:   bytes. Source: ELF gABI, dynamic section and symbol table.
"""

from __future__ import annotations

import struct

from stuntgpu.emu.memory import AddressSpace

ELF_MAGIC = b"\x7fELF\x02"
PT_DYNAMIC = 2
DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ = 4, 5, 6, 10
STT_FUNC = 2
MAX_SYMBOLS = 1 << 16
_SYMBOL = struct.Struct("<IBBHQQ")


class KernelNames:
    """Looks names up in one address space and remembers them while its mappings stay as they are."""

    def __init__(self, space: AddressSpace) -> None:
        self._space = space
        self._known: dict[int, str] = {}
        self._generation = -1

    def find(self, entry: int) -> str:
        """The kernel whose first instruction is at `entry`; "" when nobody says."""
        if self._generation != self._space.generation:
            self._known.clear()
            self._generation = self._space.generation
        if entry not in self._known:
            self._known[entry] = self._look_up(entry)
        return self._known[entry]

    def _look_up(self, entry: int) -> str:
        region = self._space.find(entry)
        if region is None:
            return ""
        try:
            if self._space.read(region.va, len(ELF_MAGIC)) != ELF_MAGIC:
                return ""
            return self._symbol_at(region.va, entry - region.va)
        except (LookupError, struct.error):  # damaged or foreign data: no name
            return ""

    def _symbol_at(self, base: int, value: int) -> str:
        dynamic = self._dynamic(base)
        if not dynamic.keys() >= {DT_HASH, DT_SYMTAB, DT_STRTAB, DT_STRSZ}:
            return ""
        count = int.from_bytes(self._space.read(base + dynamic[DT_HASH] + 4, 4), "little")
        table = self._space.read(base + dynamic[DT_SYMTAB], min(count, MAX_SYMBOLS) * _SYMBOL.size)
        strings = self._space.read(base + dynamic[DT_STRTAB], dynamic[DT_STRSZ])
        for name, info, _, _, at, _ in _SYMBOL.iter_unpack(table):
            if at == value and info & 0xF == STT_FUNC:
                return strings[name : strings.index(0, name)].decode(errors="replace") if 0 in strings[name:] else ""
        return ""

    def _dynamic(self, base: int) -> dict[int, int]:
        """Tag -> value of the dynamic section."""
        offset, = struct.unpack("<Q", self._space.read(base + 32, 8))
        size, count = struct.unpack("<HH", self._space.read(base + 54, 4))
        for i in range(count):
            kind, _, _, vaddr, _, _, length, _ = struct.unpack("<IIQQQQQQ", self._space.read(base + offset + i * size, 56))
            if kind == PT_DYNAMIC:
                return dict(struct.iter_unpack("<QQ", self._space.read(base + vaddr, length // 16 * 16)))
        return {}
