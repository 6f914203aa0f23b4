"""Typed buffer loads and stores: each channel converted from or to the memory format.

The vendor's text computes the address of every channel; here a channel is one operation, since which
format there is, and so where a channel lies, is in the descriptor or the instruction.
"""

from __future__ import annotations

from stuntgpu.isa.errata.common import MANUAL, Erratum

CHANNELS = ("X", "XY", "XYZ", "XYZW")
TEST = "tests/isa/test_semantics.py::test_typed_buffer_channels"


def _all_channels(n: int, width: int) -> str:
    value = f"(load:{width} FORMAT ADDR:64)"
    for i in range(1, n):
        value = f"(concat:{width * (i + 1)} (load:{width} FORMAT (add ADDR:64 {i}:64)) {value})"
    return value


def load(n: int, short: bool) -> str:
    """`n` channels into VDATA; 16-bit ones are packed and leave the rest of the last register alone."""
    if not short:
        return f"(set VDATA {_all_channels(n, 32)})"
    size = 32 * ((n + 1) // 2)
    packed = _all_channels(n, 16)
    return f"(set VDATA {packed if n % 2 == 0 else f'(insert VDATA:{size} 0:32 {packed})'})"


def store(n: int, short: bool) -> str:
    width = 16 if short else 32
    size = 32 * ((n + 1) // 2 if short else n)
    parts = (
        "(store FORMAT " + ("ADDR:64" if i == 0 else f"(add ADDR:64 {i}:64)") + " " + (f"(extract:{width} VDATA:{size} {width * i}:32)" if size > width else f"VDATA:{size}") + ")"
        for i in range(n)
    )
    return " ".join(parts)


def _rows(access: str, text: str, body: str) -> Erratum:
    kinds = ("BUFFER",) if "_HI_" in text else ("BUFFER", "TBUFFER")
    names = [f"{kind}_{access}_{spelling}" for kind in kinds for spelling in text.split()]
    return Erratum(tuple(names), "computes an address for each channel", "one conversion a channel", MANUAL, body, TEST)


def rows() -> tuple[Erratum, ...]:
    """Under the names of all generations."""
    out = []
    for i, channels in enumerate(CHANNELS):
        n = i + 1
        d16 = f"D16_FORMAT_{channels} FORMAT_D16_{channels}"
        out += [
            _rows("LOAD", f"FORMAT_{channels}", load(n, short=False)), _rows("LOAD", d16, load(n, short=True)),
            _rows("STORE", f"FORMAT_{channels}", store(n, short=False)), _rows("STORE", d16, store(n, short=True)),
        ]
    high = "D16_HI_FORMAT_X FORMAT_D16_HI_X"
    out.append(_rows("LOAD", high, "(set VDATA (insert VDATA:32 16:32 (load:16 FORMAT ADDR:64)))"))
    out.append(_rows("STORE", high, "(store FORMAT ADDR:64 (extract:16 VDATA:32 16:32))"))
    return tuple(out)
