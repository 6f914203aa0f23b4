"""isa/abi/fatbin.py: what is inside bundles and host files, and what is said about damaged ones."""

from __future__ import annotations

import hashlib
import struct
import sys
import types
import zlib
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stuntgpu import demo
from stuntgpu.isa.abi.fatbin import (
    COMPRESSED,
    MAX_UNPACKED,
    PACKED,
    FatBinaryError,
    Image,
    images,
    target_of,
)
from tests.isa.bundles import bundle

CODE = demo.code_object("vadd_f32", "gfx1100")
PLAIN = bundle({
    "host-x86_64-unknown-linux-gnu-": b"host code",
    "hipv4-amdgcn-amd-amdhsa--gfx1100": CODE,
    "hipv4-amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-": b"\x7fELF for another",
})  # fmt: skip


def squeezed(content: bytes, version: int = 3, method: int = 0) -> bytes:
    """A compressed bundle of `content`; `method` 1 says zstd and holds zlib's data all the same."""
    packed, digest = zlib.compress(content), hashlib.md5(content).digest()[:8]
    head = COMPRESSED + struct.pack("<HH", version, method)
    if version == 1:
        return head + struct.pack("<I", len(content)) + digest + packed
    number, size = ("<II", 24) if version == 2 else ("<QQ", 32)
    return head + struct.pack(number, size + len(packed), len(content)) + digest + packed


def host_elf(name: str, content: bytes, machine: int = 62) -> bytes:
    """A host object with one section besides its section names."""
    names = b"\0" + name.encode() + b"\0.shstrtab\0"
    place = 64 + len(names)
    headers = (bytes(64), section(1, place, len(content)), section(len(name) + 2, 64, len(names)))
    table = place + len(content)
    ident = b"\x7fELF\2\1\1" + bytes(9)
    head = ident + struct.pack("<HHIQQQIHHHHHH", 1, machine, 1, 0, 0, table, 0, 64, 0, 0, 64, len(headers), 2)
    return head + names + content + b"".join(headers)


def section(name: int, offset: int, size: int) -> bytes:
    return struct.pack("<IIQQQQIIQQ", name, 1, 2, 0, offset, size, 0, 0, 1, 0)


def summary(found: tuple[Image, ...]) -> list[tuple[str, int]]:
    return [(image.target, len(image.data)) for image in found]


WANTED = [("gfx1100", len(CODE)), ("gfx942", 16)]


def test_code_object_is_its_own_image() -> None:
    assert summary(images(CODE)) == [("gfx1100", len(CODE))]


def test_bundle_gives_device_images_in_order() -> None:
    found = images(PLAIN)
    assert summary(found) == WANTED
    assert found[0].data == CODE
    assert found[1].id.endswith("gfx942:sramecc+:xnack-")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_compressed_bundle_is_unpacked(version: int) -> None:
    assert summary(images(squeezed(PLAIN, version))) == WANTED


@pytest.mark.parametrize("content", [PLAIN + bytes(100) + PLAIN, squeezed(PLAIN) + bytes(4096) + squeezed(PLAIN, 1)])
def test_several_bundles_in_a_row(content: bytes) -> None:
    assert summary(images(content)) == WANTED * 2


@pytest.mark.parametrize("name", [".hip_fatbin", "__CLANG_OFFLOAD_BUNDLE__", ".llvm.offloading"])
def test_host_file_holds_bundles_in_a_section(name: str) -> None:
    assert summary(images(host_elf(name, PLAIN))) == WANTED


def test_packed_image_is_read() -> None:
    strings = b"\0triple\0amdgcn-amd-amdhsa\0arch\0gfx950\0"
    table = struct.pack("<QQQQ", 0x68 + 1, 0x68 + 8, 0x68 + 26, 0x68 + 31) + strings
    at = 0x48 + len(table)
    entry = struct.pack("<HHIQQQQ", 0, 4, 0, 0x48, 2, at, 5)
    pack = PACKED + struct.pack("<IQQQ", 1, at + 5, 0x20, 0x28) + entry + table + b"image"
    (image, second) = images(host_elf(".llvm.offloading", pack + bytes(3) + pack))
    assert (image.target, image.data, second) == ("gfx950", b"image", image)
    assert "it starts with 69 6d 61 67" in image.problem


@pytest.mark.parametrize(("identity", "target"), [
    ("hip-amdgcn-amd-amdhsa--gfx90a:xnack+", "gfx90a"), ("hipv4-amdgcn-amd-amdhsa--gfx10-3-generic", "gfx10-3-generic"),
    ("openmp-amdgcn-amd-amdhsa-gfx11-generic", "gfx11-generic"), ("host-x86_64-unknown-linux-gnu-", ""),
])  # fmt: skip
def test_target_is_the_end_of_an_id(identity: str, target: str) -> None:
    assert target_of(identity) == target


def damaged(data: bytes, at: int, value: int, size: int = 8) -> bytes:
    return data[:at] + value.to_bytes(size, "little") + data[at + size :]


@pytest.mark.parametrize(("data", "says"), [
    (b"", "neither ELF nor an offload bundle: it is empty"),
    (b"hello world", "it starts with 68 65 6c"),
    (PLAIN[:40], "needs 24 bytes at offset 32"),
    (damaged(PLAIN, 24, 1 << 40), "bundle with 1099511627776 entries"),
    (damaged(PLAIN, 48, 1 << 40), "truncated: id of bundle entry 0"),
    (damaged(PLAIN, 40, 1 << 50), "truncated: bundle entry 0 \\(host-x86_64-unknown-linux-gnu-\\)"),
    (PLAIN + b"rubbish", "no bundle begins at 0x[0-9a-f]+: it starts with 72 75 62"),
    (bundle({"host-x86_64-unknown-linux-gnu-": b"x"}), "holds code for no GPU"),
    (damaged(squeezed(PLAIN), 24, 1), "its header says .* and 0000000000000001"),
    (damaged(squeezed(PLAIN), 16, MAX_UNPACKED + 1), "says it unpacks to 4294967297 bytes"),
    (damaged(squeezed(PLAIN), 32, 0), "zlib data of the compressed bundle"),
    (squeezed(PLAIN)[:-9], "truncated: compressed bundle"),
    (squeezed(PLAIN, 4), "version 4"),
    (squeezed(PLAIN, 3, 2), "compressed by method 2"),
    (host_elf(".text", PLAIN), "without GPU code: no section .hip_fatbin"),
    (host_elf(".hip_fatbin", PLAIN[:-1]), "section .hip_fatbin: truncated"),
    (host_elf(".hip_fatbin", host_elf(".hip_fatbin", host_elf(".hip_fatbin", host_elf(".hip_fatbin", host_elf(
        ".hip_fatbin", PLAIN))))), "nested more than"),
    (PACKED + bytes(40), "packed image of version 0"),
])  # fmt: skip
def test_damaged_file_says_what_is_wrong(data: bytes, says: str) -> None:
    with pytest.raises(FatBinaryError, match=says):
        images(data)


def test_zstd_without_a_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("compression.zstd", "zstandard"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(FatBinaryError, match=r"zstd.*3\.14.*pip install zstandard"):
        images(squeezed(PLAIN, method=1))


def test_zstd_library_is_used_when_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library is a double that unpacks zlib's format."""
    module = types.ModuleType("zstandard")
    monkeypatch.setattr(module, "ZstdError", zlib.error, raising=False)
    double = type("ZstdDecompressor", (), {"decompressobj": lambda self: zlib.decompressobj()})
    monkeypatch.setattr(module, "ZstdDecompressor", double, raising=False)
    monkeypatch.setitem(sys.modules, "compression.zstd", None)
    monkeypatch.setitem(sys.modules, "zstandard", module)
    assert summary(images(squeezed(PLAIN, method=1))) == WANTED


@settings(max_examples=500, deadline=None)
@given(data=st.data(), whole=st.sampled_from([PLAIN[:400] + PLAIN[-100:], squeezed(PLAIN), host_elf(".hip_fatbin", PLAIN)]))
def test_any_damage_is_found_or_harmless(data: st.DataObject, whole: bytes) -> None:
    changed = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 6))):
        changed[data.draw(st.integers(0, min(300, len(whole)) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(whole)))
    with suppress(FatBinaryError):
        images(bytes(changed[: cut or None]))
