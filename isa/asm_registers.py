"""Which registers a source names: `.amdgcn.next_free_vgpr` and `.amdgcn.next_free_sgpr`."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NAMED = re.compile(r"\b([vs])(?:(\d+)\b|\[(\d+)(?::(\d+))?\])")


def registers_named(texts: Iterable[str]) -> tuple[int, int]:
    """1 + the highest VGPR and SGPR number in instructions' texts, 0 for none."""
    highest = {"v": -1, "s": -1}
    for text in texts:
        for kind, single, first, last in _NAMED.findall(text):
            highest[kind] = max(highest[kind], int(last or first or single))
    return highest["v"] + 1, highest["s"] + 1
