"""Code objects inside other files: offload bundles, plain and compressed, and the host files that carry them.

    images(data)    every device image of a file: one for a code object, several for a fat binary

Units:   bytes; offsets count from the start of the container that is being read.
Errors:  FatBinaryError says which structure is wrong, where, and what was there.
Source:  Clang documentation, "Clang Offload Bundler" (bundled code objects, compressed bundles) and
         "Clang Offload Packager" (binary format); HIP's section names.
"""

from __future__ import annotations

import hashlib
import importlib
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from stuntgpu.isa.abi.elf import EM_AMDGPU, MAGIC, ElfError, ElfFile
from stuntgpu.isa.abi.targets import MACH
from stuntgpu.isa.fields import BitStruct, FieldError, bits, u16, u32, u64

BUNDLE = b"__CLANG_OFFLOAD_BUNDLE__"
COMPRESSED = b"CCOB"
PACKED = b"\x10\xff\x10\xad"
BITCODE = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")
#: Sections of host files that hold bundles.
SECTIONS = (".hip_fatbin", "__CLANG_OFFLOAD_BUNDLE__", ".llvm.offloading")
#: Bundles are padded to their alignment; what lies between two of them is zero.
MAX_ENTRIES = 4096
#: A bundle that says it unpacks to more than this is damaged.
MAX_UNPACKED = 1 << 32
MAX_DEPTH = 4
_TARGET = re.compile(r"(?:^|-)(gfx[0-9a-f]+(?:-(?:\d+-)?generic)?)((?::\w+[+-])*)$")


class FatBinaryError(ValueError):
    """A file that should hold device code and does not; `str()` says why."""


@dataclass(frozen=True, slots=True)
class Image:
    """Device code for one target.

    id       what its container calls it: "hipv4-amdgcn-amd-amdhsa--gfx942:xnack-"; "" for a bare code object.
    target   "gfx942"; "" when the id names no AMD GPU.
    data     the code object, or whatever else the container holds for the target.
    """

    id: str
    target: str
    data: bytes

    @property
    def is_elf(self) -> bool:
        return self.data.startswith(MAGIC)

    @property
    def problem(self) -> str:
        """Why this image is no code object; "" when it is one."""
        if self.is_elf:
            return ""
        if self.data.startswith(BITCODE):
            return "LLVM bitcode, not machine code: the program was built with -fgpu-rdc and is linked later"
        return f"not an ELF file: it starts with {self.data[:4].hex(' ') or 'nothing'}"


def target_of(identity: str) -> str:
    """The GPU that an entry's id ends in, "" for a host's."""
    found = _TARGET.search(identity)
    return found.group(1) if found else ""


def images(data: bytes) -> tuple[Image, ...]:
    """Device images of a code object, bundle or host file, in file order. Raises FatBinaryError."""
    try:
        found = tuple(_images(data, 0))
    except (ElfError, FieldError) as error:
        raise FatBinaryError(str(error)) from None
    if not found:
        raise FatBinaryError("holds code for no GPU")
    return found


def is_container(data: bytes) -> bool:
    """Whether `data` begins as something that `images` reads."""
    return data.startswith((MAGIC, BUNDLE, COMPRESSED, PACKED))


def _images(data: bytes, depth: int) -> Iterator[Image]:
    if depth > MAX_DEPTH:
        raise FatBinaryError(f"bundles nested more than {MAX_DEPTH} deep")
    if data.startswith(MAGIC):
        yield from _in_elf(data, depth)
        return
    readers: dict[bytes, Callable[[bytes, int], tuple[list[Image], int]]] = {
        BUNDLE: _bundle, COMPRESSED: _compressed, PACKED: _packed,
    }  # fmt: skip
    if not data.startswith(tuple(readers)):
        raise FatBinaryError(f"neither ELF nor an offload bundle: {_start(data)}")
    at = 0
    while data:
        reader = next((r for magic, r in readers.items() if data.startswith(magic)), None)
        if reader is None:
            raise FatBinaryError(f"damaged: no bundle begins at 0x{at:x}: {_start(data)}")
        found, size = reader(data, depth)
        yield from found
        rest = data[size:].lstrip(b"\0")
        at, data = at + len(data) - len(rest), rest


def _start(data: bytes) -> str:
    return f"it starts with {data[:8].hex(' ')}" if data else "it is empty"


# ---------------------------------------------------------------- ELF


def _in_elf(data: bytes, depth: int) -> Iterator[Image]:
    file = ElfFile(data, machine=None)
    if file.header.machine == EM_AMDGPU:
        mach = file.header.flags & 0xFF
        yield Image("", MACH.get(mach, f"machine 0x{mach:x}"), data)
        return
    held = [(n, s) for n, s in zip(file.section_names, file.sections, strict=True) if n in SECTIONS]
    if not held:
        raise FatBinaryError(f"a program for another machine ({file.header.machine}) without GPU code: "
                             f"no section {' or '.join(SECTIONS)}")
    for name, section in held:
        content = file.bytes_at(section.offset, section.size, f"section {name}")
        if not content.strip(b"\0"):
            continue
        try:
            yield from _images(content, depth + 1)
        except FatBinaryError as error:
            raise FatBinaryError(f"section {name}: {error}") from None


# ---------------------------------------------------------------- bundles


class _Bundle(BitStruct, size=32):
    """Head of a bundle; `count` entries follow."""

    magic = bits[191:0]
    count = u64[24]


class _Entry(BitStruct, size=24):
    """One entry; its id follows."""

    offset, size, id_size = u64[0], u64[8], u64[16]


def _bundle(data: bytes, depth: int) -> tuple[list[Image], int]:
    """Images of the bundle at the start of `data`, and its size."""
    count = _Bundle.unpack(data).count
    if count > MAX_ENTRIES:
        raise FatBinaryError(f"damaged: bundle with {count} entries")
    at = end = _Bundle.SIZE_BYTES
    found: list[Image] = []
    for i in range(count):
        entry = _Entry.unpack(data, at)
        identity = _slice(data, at + _Entry.SIZE_BYTES, entry.id_size, f"id of bundle entry {i}").decode("latin-1")
        at += _Entry.SIZE_BYTES + entry.id_size
        content = _slice(data, entry.offset, entry.size, f"bundle entry {i} ({identity})")
        end = max(end, at, entry.offset + entry.size)
        if content and not identity.startswith("host"):
            found.append(Image(identity, target_of(identity), content))
    return found, end


def _slice(data: bytes, offset: int, size: int, what: str) -> bytes:
    if offset + size > len(data):
        raise FatBinaryError(f"truncated: {what} is bytes 0x{offset:x}..0x{offset + size:x}, "
                             f"the bundle ends at 0x{len(data):x}")
    return data[offset : offset + size]


# ---------------------------------------------------------------- compressed bundles


class _Compressed1(BitStruct, size=20):
    magic, version, method = u32[0], u16[4], u16[6]
    unpacked_size = u32[8]
    digest = bits[159:96]


class _Compressed2(BitStruct, size=24):
    magic, version, method = u32[0], u16[4], u16[6]
    file_size, unpacked_size, digest = u32[8], u32[12], u64[16]


class _Compressed3(BitStruct, size=32):
    magic, version, method = u32[0], u16[4], u16[6]
    file_size, unpacked_size, digest = u64[8], u64[16], u64[24]


_HEADS: dict[int, type[BitStruct]] = {1: _Compressed1, 2: _Compressed2, 3: _Compressed3}


def _compressed(data: bytes, depth: int) -> tuple[list[Image], int]:
    """Images of the compressed bundle at the start of `data`, and its compressed size."""
    version = _Compressed1.unpack(data).version
    if version not in _HEADS:
        raise FatBinaryError(f"compressed bundle of version {version}; versions 1 to 3 are known")
    kind = _HEADS[version]
    head: Any = kind.unpack(data)
    if head.unpacked_size > MAX_UNPACKED:
        raise FatBinaryError(f"damaged: compressed bundle says it unpacks to {head.unpacked_size} bytes")
    size = getattr(head, "file_size", len(data))
    packed = _slice(data, kind.SIZE_BYTES, size - kind.SIZE_BYTES, "compressed bundle")
    unpacked, left = _decompressor(head.method)(packed, head.unpacked_size)
    digest = int.from_bytes(hashlib.md5(unpacked, usedforsecurity=False).digest()[:8], "little")
    if len(unpacked) != head.unpacked_size or digest != head.digest:
        raise FatBinaryError(f"damaged: compressed bundle unpacks to {len(unpacked)} bytes with digest {digest:016x}, "
                             f"its header says {head.unpacked_size} and {head.digest:016x}")
    return list(_images(unpacked, depth + 1)), size - left


Decompressor = Callable[[bytes, int], tuple[bytes, int]]


def _decompressor(method: int) -> Decompressor:
    """(packed, unpacked size) -> (unpacked, bytes of `packed` that are left over)."""
    known = {0: _inflate, 1: _zstd}
    if method not in known:
        raise FatBinaryError(f"bundle compressed by method {method}; 0 (zlib) and 1 (zstd) are known")
    return known[method]


def _inflate(packed: bytes, size: int) -> tuple[bytes, int]:
    machine = zlib.decompressobj()
    try:
        return machine.decompress(packed, size + 1), len(machine.unused_data)
    except zlib.error as error:
        raise FatBinaryError(f"damaged: zlib data of the compressed bundle: {error}") from None


def _zstd(packed: bytes, size: int) -> tuple[bytes, int]:
    """By Python's own module from 3.14 on, or the package zstandard."""
    for name in ("compression.zstd", "zstandard"):
        try:
            module: Any = importlib.import_module(name)
        except ImportError:
            continue
        own = hasattr(module, "ZstdDecompressor") and name == "compression.zstd"
        machine = module.ZstdDecompressor() if own else module.ZstdDecompressor().decompressobj()
        try:
            unpacked: bytes = machine.decompress(packed)
        except (module.ZstdError, EOFError) as error:
            raise FatBinaryError(f"damaged: zstd data of the compressed bundle: {error}") from None
        return unpacked, len(machine.unused_data)
    raise FatBinaryError("bundle compressed with zstd, which Python unpacks from version 3.14 on, "
                         "or with the package zstandard installed (pip install zstandard)")


# ---------------------------------------------------------------- packed images


class _Packed(BitStruct, size=32):
    """Head of a packed image; one entry lies at `entry_offset`."""

    magic, version = u32[0], u32[4]
    size, entry_offset, entry_size = u64[8], u64[16], u64[24]


class _PackedEntry(BitStruct, size=40):
    image_kind, offload_kind, flags = u16[0], u16[2], u32[4]
    strings_offset, n_strings, image_offset, image_size = u64[8], u64[16], u64[24], u64[32]


class _String(BitStruct, size=16):
    key, value = u64[0], u64[8]


def _packed(data: bytes, depth: int) -> tuple[list[Image], int]:
    """The image that clang's offload packager put at the start of `data`, and the size of the pack."""
    head = _Packed.unpack(data)
    if head.version != 1:
        raise FatBinaryError(f"packed image of version {head.version}; version 1 is known")
    whole = _slice(data, 0, head.size, "packed image")
    entry = _PackedEntry.unpack(whole, head.entry_offset)
    if entry.n_strings > MAX_ENTRIES or head.size < _Packed.SIZE_BYTES:
        raise FatBinaryError(f"damaged: packed image of {head.size} bytes with {entry.n_strings} strings")
    rows = [_String.unpack(whole, entry.strings_offset + i * _String.SIZE_BYTES) for i in range(entry.n_strings)]
    strings = {_text(whole, r.key): _text(whole, r.value) for r in rows}
    content = _slice(whole, entry.image_offset, entry.image_size, "image of a pack")
    identity = f"{strings.get('triple', '')}--{strings.get('arch', '')}"
    return ([Image(identity, target_of(identity), content)] if content else []), head.size


def _text(data: bytes, offset: int) -> str:
    end = data.find(b"\0", offset)
    if end < 0:
        raise FatBinaryError(f"damaged: string at 0x{offset:x} of a packed image of 0x{len(data):x} bytes")
    return data[offset:end].decode("latin-1")
