"""Code objects: a small one is built here field by field, read back, and then damaged in every way we name."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgpack
import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from hypothesis import given, settings
from hypothesis import strategies as st

from stuntgpu.isa.abi import codeobject, elf
from stuntgpu.isa.abi.codeobject import CodeObjectError
from stuntgpu.isa.abi.descriptor import CodeProperties, KernelDescriptor, Rsrc2
from stuntgpu.isa.abi.elf import (
    Header,
    NoteHeader,
    Rela,
    Section,
    Segment,
    SymbolEntry,
)
from stuntgpu.isa.abi.targets import MACH, TARGETS
from tests.shared import shared_dir

S_ENDPGM = bytes.fromhex("0000b0bf")
RODATA, TEXT, DATA = 0x1000, 0x2000, 0x3000
ARGS = [
    {".name": "out", ".offset": 0, ".size": 8, ".value_kind": "global_buffer", ".address_space": "global"},
    {".offset": 8, ".size": 4, ".value_kind": "by_value", ".type_name": "uint"},
    {".offset": 16, ".size": 4, ".value_kind": "hidden_block_count_x"},
]
KERNEL = {
    ".name": "k", ".symbol": "k.kd", ".args": ARGS, ".kernarg_segment_size": 24, ".kernarg_segment_align": 8,
    ".max_flat_workgroup_size": 256, ".reqd_workgroup_size": [64, 1, 1], ".wavefront_size": 32,
}


@dataclass
class Build:
    """The object to build; tests change one thing."""

    flags: int = 0x41
    machine: int = 224
    os_abi: int = 0x40
    abi_version: int = 4
    type: int = 3
    elf_class: int = 2
    kernels: Any = field(default_factory=lambda: [dict(KERNEL)])
    metadata: bytes | None = None
    note_name: bytes = b"AMDGPU\0"
    symbols: tuple[tuple[str, int, int], ...] = (("k", TEXT, 2), ("k.kd", RODATA, 1), ("table", DATA, 3), ("far", 0, 0))
    relocations: tuple[tuple[int, int, int, int], ...] = ()  # vaddr, type, symbol index, addend
    entry_offset: int = TEXT - RODATA
    sections: bool = True

    def build(self) -> bytes:
        descriptor = KernelDescriptor(kernarg_size=24, entry_offset=self.entry_offset, rsrc2=Rsrc2(user_sgprs=15),
                                      properties=CodeProperties(kernarg_segment_ptr=True, wavefront_size32=True))
        parts = [(RODATA, elf.PF_R, descriptor.pack()), (TEXT, elf.PF_R | elf.PF_X, S_ENDPGM * 4),
                 (DATA, elf.PF_R | elf.PF_W, bytes(32))]
        note, names, symbols = self._note(), self._names(), self._symbols()
        relocations = b"".join(Rela(offset=o, type=t, symbol=s, addend=a).pack() for o, t, s, a in self.relocations)
        blobs = [*(p[2] for p in parts), note, names, symbols, relocations]
        at = 64 + 56 * 4
        offsets = []
        for blob in blobs:
            offsets.append(at)
            at += -(-len(blob) // 8) * 8
        segments = [Segment(type=elf.PT_LOAD, flags=f, offset=o, vaddr=v, file_size=len(d), size=len(d) + 16, align=4096)
                    for (v, f, d), o in zip(parts, offsets, strict=False)]
        segments.append(Segment(type=elf.PT_NOTE, offset=offsets[3], file_size=len(note), size=len(note)))
        sections = self._sections(offsets, blobs) if self.sections else []
        header = Header(magic=0x464C457F, elf_class=self.elf_class, data=1, os_abi=self.os_abi, abi_version=self.abi_version,
                        type=self.type, machine=self.machine, program_offset=64, program_size=56, program_count=4,
                        section_offset=at, section_size=64, section_count=len(sections), flags=self.flags, header_size=64)
        body = b"".join(b.ljust(-(-len(b) // 8) * 8, b"\0") for b in blobs)
        return header.pack() + b"".join(s.pack() for s in segments) + body + b"".join(s.pack() for s in sections)

    def _note(self) -> bytes:
        data = self.metadata
        if data is None:
            data = msgpack.packb({"amdhsa.version": [1, 2], "amdhsa.target": "amdgcn-amd-amdhsa--gfx1100",
                                  "amdhsa.kernels": self.kernels})
        assert data is not None
        head = NoteHeader(name_size=len(self.note_name), size=len(data), type=32)
        return head.pack() + b"".join(b.ljust(-(-len(b) // 4) * 4, b"\0") for b in (self.note_name, data))

    def _names(self) -> bytes:
        return b"\0" + b"".join(n.encode() + b"\0" for n, _, _ in self.symbols)

    def _symbols(self) -> bytes:
        out, at = [SymbolEntry()], 1
        for name, value, section in self.symbols:
            out.append(SymbolEntry(name_offset=at, type=1, binding=1, section=section, value=value, size=8))
            at += len(name) + 1
        return b"".join(s.pack() for s in out)

    def _sections(self, offsets: list[int], blobs: list[bytes]) -> list[Section]:
        return [
            Section(),
            Section(type=3, offset=offsets[4], size=len(blobs[4])),
            Section(type=elf.SHT_DYNSYM, flags=2, offset=offsets[5], size=len(blobs[5]), link=1, entry_size=24),
            Section(type=elf.SHT_RELA, flags=2, offset=offsets[6], size=len(blobs[6]), link=2, entry_size=24),
        ]


def test_everything_a_launcher_needs_is_read() -> None:
    loaded = codeobject.read(Build().build())
    assert (loaded.target, loaded.version) == ("gfx1100", 6)
    kernel = loaded.kernels["k"]
    assert kernel.entry_vaddr == TEXT
    assert kernel.descriptor.rsrc2.user_sgprs == 15
    assert [(a.name, a.offset, a.size, a.kind) for a in kernel.explicit_args] == [
        ("out", 0, 8, "global_buffer"), ("", 8, 4, "by_value")]
    assert [a.kind for a in kernel.hidden_args] == ["hidden_block_count_x"]
    assert (kernel.required_workgroup, kernel.max_workgroup_items, kernel.kernarg_align) == ((64, 1, 1), 256, 8)
    image = loaded.image(0)
    assert image[TEXT : TEXT + 4] == S_ENDPGM
    assert len(image) == DATA + 48


@pytest.mark.parametrize(("abi", "version"), [(2, 4), (3, 5), (4, 6)])
def test_versions_4_to_6_are_read(abi: int, version: int) -> None:
    assert codeobject.read(Build(abi_version=abi).build()).version == version


def test_target_features_are_read_from_the_flags() -> None:
    loaded = codeobject.read(Build(flags=0x4C | 3 << 8 | 2 << 10).build())
    assert (loaded.target, loaded.xnack, loaded.sramecc) == ("gfx942", "on", "off")


def test_generic_code_runs_on_the_gpus_it_covers() -> None:
    generic = codeobject.read(Build(flags=0x54).build())
    generic.check_target("gfx1100")
    with pytest.raises(CodeObjectError, match="built for gfx11-generic, but this GPU is gfx1201"):
        generic.check_target("gfx1201")
    assert {t.name for t in TARGETS.values()} <= set(MACH.values())


def test_relocations_are_applied_for_the_load_address() -> None:
    base = 0x7_1234_5000
    rows = ((DATA, 3, 1, 4), (DATA + 8, 5, 2, -4), (DATA + 16, 13, 0, 0x10), (DATA + 24, 1, 1, 0), (DATA + 28, 2, 1, 0))
    image = codeobject.read(Build(relocations=rows).build()).image(base)
    words = [int.from_bytes(image[DATA + i : DATA + i + 8], "little") for i in (0, 8, 16, 24)]
    assert words == [base + TEXT + 4, RODATA - 4 - (DATA + 8) & (1 << 64) - 1, base + 0x10, base + TEXT]


@pytest.mark.parametrize(("row", "message"), [
    ((DATA, 3, 4, 0), r"R_AMDGPU_ABS64 at 0x3000 needs symbol 'far', which nothing defines"),
    ((DATA, 6, 1, 0), r"R_AMDGPU_ABS32 at 0x3000: 0x712347000 does not fit 32 bits"),
    ((DATA + 44, 3, 1, 0), r"R_AMDGPU_ABS64 at 0x302c lies outside"),
    ((DATA, 99, 1, 0), r"relocation type 99 at 0x3000"),
])
def test_relocation_that_cannot_be_applied_is_named(row: tuple[int, int, int, int], message: str) -> None:
    loaded = codeobject.read(Build(relocations=(row,)).build())
    with pytest.raises(CodeObjectError, match=message):
        loaded.image(0x7_1234_5000)


@pytest.mark.parametrize(("change", "message"), [
    ({"machine": 62}, r"code for machine 62 \(x86-64\), not for AMD GPUs \(224\)"),
    ({"elf_class": 1}, "not a 64-bit little-endian ELF"),
    ({"os_abi": 0}, r"OS ABI 0x0, expected amdhsa"),
    ({"abi_version": 1}, r"code object version 3 \(ABI version 1\); versions 4, 5 and 6"),
    ({"type": 1}, "not a shared object but a relocatable object; link it"),
    ({"flags": 0xFE}, "e_flags 0xfe name no known GPU"),
    ({"note_name": b"OTHER\0"}, r"no metadata note \(name AMDGPU, type 32\)"),
    ({"metadata": b"\xc1"}, "metadata note is not MessagePack"),
    ({"metadata": b"\x01"}, "metadata note holds a int, expected a map"),
    ({"kernels": 3}, r"metadata note has no list amdhsa\.kernels"),
    ({"kernels": [{}]}, "metadata: kernel without a name"),
    ({"symbols": (("k", TEXT, 2), ("other.kd", RODATA, 1))}, r"kernel 'k': no descriptor symbol 'k\.kd'; the object has other\.kd"),
    ({"symbols": (("k.kd", 0x9000, 1),)}, r"kernel 'k': descriptor 'k\.kd' at 0x9000 is not in a loaded segment"),
    ({"entry_offset": DATA - RODATA}, r"kernel 'k': descriptor at 0x1000 gives entry 0x3000, which is not in executable code"),
    ({"kernels": [{**KERNEL, ".args": [{".offset": 0, ".size": 8}]}]}, r"kernel 'k': argument 0 has no \.value_kind"),
    ({"kernels": [{**KERNEL, ".args": [{".offset": 20, ".size": 8, ".value_kind": "by_value"}]}]},
     r"kernel 'k': argument 0 is bytes 20\.\.28 of a kernarg segment of 24"),
    ({"kernels": [{**KERNEL, ".max_flat_workgroup_size": "x"}]}, r"\.max_flat_workgroup_size is 'x', expected a number"),
    ({"kernels": [{**KERNEL, ".reqd_workgroup_size": [1]}]}, r"\.reqd_workgroup_size is \[1\]"),
    ({"sections": False}, r"kernel 'k': no descriptor symbol 'k\.kd'; the object has none"),
])
def test_damage_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(CodeObjectError, match=r"^file\.hsaco: .*" + message):
        codeobject.read(Build(**change).build(), name="file.hsaco")


@pytest.mark.parametrize(("data", "message"), [
    (b"", "it is empty"),
    (b"\x7fELF", "truncated: the ELF header needs bytes 0x0..0x40, the file ends at 0x4"),
    (b"BC\xc0\xde", "it is LLVM IR"),
    (b"__CLANG_OFFLOAD_BUNDLE__", "clang-offload-bundler --unbundle"),
    (b"!<arch>\n", "archive"),
    (b"hello", "it starts with 68 65 6c 6c"),
])
def test_what_is_no_code_object_is_told_by_its_first_bytes(data: bytes, message: str) -> None:
    with pytest.raises(CodeObjectError, match=message):
        codeobject.read(data)


def test_truncation_anywhere_is_refused() -> None:
    whole = Build(relocations=((DATA, 3, 1, 0),)).build()
    for size in range(0, len(whole), 7):
        with pytest.raises(CodeObjectError):
            codeobject.read(whole[:size])


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), min_size=1, max_size=6))
def test_damaged_bytes_never_raise_anything_but_code_object_errors(changes: list[tuple[int, int]]) -> None:
    data = bytearray(Build(relocations=((DATA, 3, 1, 0),)).build())
    for at, value in changes:
        data[at % len(data)] = value
    with contextlib.suppress(CodeObjectError):
        codeobject.read(data).image(0x1000)


# ---------------------------------------------------------------- real compiler output


def objects() -> Iterator[tuple[str, bytes]]:
    kernels = shared_dir() / "kernels"
    for path in sorted(kernels.glob("*/gfx*/*.hsaco")):
        yield path.relative_to(kernels).as_posix(), path.read_bytes()


def test_golden_objects_agree_with_their_own_metadata() -> None:
    seen = 0
    for name, data in objects():
        loaded = codeobject.read(data, name=name)
        assert loaded.target == name.split("/")[1]
        loaded.check_target(loaded.target)
        for kernel in loaded.kernels.values():
            assert kernel.explicit_args, name
            assert KernelDescriptor.unpack(kernel.descriptor.pack()) == kernel.descriptor
            assert kernel.descriptor.reserved == 0, name
            seen += 1
    assert seen


def test_golden_objects_agree_with_an_independent_elf_reader(tmp_path: Any) -> None:
    for name, data in objects():
        path = tmp_path / "object"
        path.write_bytes(data)
        loaded = codeobject.read(data, name=name)
        with path.open("rb") as stream:
            other = ELFFile(stream)
            dynsym = other.get_section_by_name(".dynsym")
            assert isinstance(dynsym, SymbolTableSection)
            symbols = {s.name: s["st_value"] for s in dynsym.iter_symbols() if s.name}
            loads = [(s["p_vaddr"], s["p_memsz"], s.data()) for s in other.iter_segments("PT_LOAD")]
        assert {n: s.value for n, s in loaded.symbols.items()} == symbols
        assert [(s.vaddr, s.size, s.data) for s in loaded.segments] == loads


def test_golden_objects_damaged_headers_are_named() -> None:
    name, data = next(objects())
    broken = bytearray(data)
    broken[48] = 0
    with pytest.raises(CodeObjectError, match="name no known GPU"):
        codeobject.read(broken, name=name)
    with pytest.raises(CodeObjectError, match="truncated"):
        codeobject.read(data[: len(data) // 2], name=name)
