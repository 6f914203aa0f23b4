"""Other names of instructions that assembly text may use."""

from __future__ import annotations

from collections.abc import Mapping


def canonical(name: str, mnemonic: str, known: Mapping[str, object]) -> str:
    """The table's name for `mnemonic` on architecture `name`; itself when there is none."""
    return mnemonic
