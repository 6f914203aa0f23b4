"""Offload bundles made for tests."""

from __future__ import annotations

from collections.abc import Mapping

from stuntgpu.isa.abi.fatbin import BUNDLE

ALIGN = 4096


def bundle(entries: Mapping[str, bytes]) -> bytes:
    """A bundle of id -> content, as clang lays it out."""
    head = BUNDLE + len(entries).to_bytes(8, "little")
    at = len(head) + sum(24 + len(name) for name in entries)
    table, contents = b"", b""
    for name, content in entries.items():
        start = -(-(at + len(contents)) // ALIGN) * ALIGN if content else at + len(contents)
        contents += bytes(start - at - len(contents)) + content
        table += b"".join(n.to_bytes(8, "little") for n in (start, len(content), len(name))) + name.encode()
    return head + table + contents
