"""Random packets and streams of each layout."""

from __future__ import annotations

from functools import cache

from hypothesis import strategies as st

from stuntgpu.sqtt.layouts import GFX9, GFX11, GFX12, HEADERS
from stuntgpu.sqtt.packets import Layout, Packet

LAYOUTS = (GFX11, GFX12, GFX9)


def header(layout: Layout) -> Packet:
    return layout.LAYOUT_HEADER.from_word(HEADERS[layout.name])


@cache
def packets(layout: Layout) -> st.SearchStrategy[Packet]:
    """Any packet of a layout, bits without a name set too."""
    kinds = [k for k in layout if k is not layout.unknown]
    return st.one_of([
        st.integers(0, (1 << (k.BITS - k.MATCH_BITS)) - 1)
        .map(lambda rest, k=k: rest << k.MATCH_BITS | k.MATCH)
        .filter(lambda word, k=k: layout.kind_of(word) is k)
        .map(k.from_word)
        for k in kinds
    ])  # fmt: skip


@cache
def sequences(layout: Layout) -> st.SearchStrategy[list[Packet]]:
    """The header and any packets after it."""
    return st.lists(packets(layout), max_size=30).map(lambda rest: [header(layout), *rest])
