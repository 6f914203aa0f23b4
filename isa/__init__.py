"""Facts about the machines: encodings, semantics, operand facts, layouts. Importing this loads nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stuntgpu.isa.effects import reads_writes

__all__ = ["reads_writes"]


def __getattr__(name: str) -> object:
    if name == "reads_writes":
        from stuntgpu.isa.effects import reads_writes

        return reads_writes
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
