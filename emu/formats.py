"""Memory formats of typed buffers: where a channel lies in an element, and what its bits mean.

Formats are named as assemblers name them, most significant channel first: 2_10_10_10 has X in its low
ten bits. A format code becomes a `Format` by the table of its generation.

Units:   bits. Values of channels are 32-bit patterns: f32 for normalised, scaled and float kinds.
Source:  the names of isa/asm_imm.py (unified formats) and isa/asm_imm_gfx9.py (data and number formats).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from stuntgpu.emu import softfloat as sf
from stuntgpu.isa import asm_imm, asm_imm_gfx9
from stuntgpu.isa.arch import arch
from stuntgpu.isa.errors import Unmodelled

KINDS = ("UNORM", "SNORM", "USCALED", "SSCALED", "UINT", "SINT", "FLOAT")
ENV = sf.Env()
#: Unsigned floats of packed formats: bits -> fraction bits; five exponent bits, bias 15.
SMALL_FRACTIONS = {11: 6, 10: 5}
#: Sizes a float channel can have.
FLOAT_BITS = (10, 11, 16, 32)


@dataclass(frozen=True, slots=True)
class Format:
    """channels: (lowest bit, bits) of X, Y, Z, W as far as there are; kind: one of KINDS."""

    name: str
    channels: tuple[tuple[int, int], ...]
    kind: str

    @property
    def bits(self) -> int:
        return sum(n for _, n in self.channels)

    @property
    def bytes(self) -> int:
        return self.bits // 8


def make(sizes: str, kind: str) -> Format:
    """From the sizes in a format's name, "10_11_11"."""
    channels, at = [], 0
    for size in reversed(sizes.split("_")):
        channels.append((at, int(size)))
        at += int(size)
    return Format(f"{sizes}_{kind}", tuple(channels), kind)


@cache
def of_code(name: str, code: int) -> Format | None:
    """Format by its unified code (RDNA) or by number format << 4 | data format (CDNA); None: not a format."""
    if arch(name).dialect == "gfx9":
        data, kind = asm_imm_gfx9.DATA_FORMATS[code & 15], asm_imm_gfx9.NUMBER_FORMATS[code >> 4]
        sizes, kind = data.removeprefix("BUF_DATA_FORMAT_"), kind.removeprefix("BUF_NUM_FORMAT_")
    elif code < len(asm_imm.UNIFIED_FORMATS):
        sizes, _, kind = asm_imm.UNIFIED_FORMATS[code].removeprefix("BUF_FMT_").rpartition("_")
    else:
        return None
    if kind not in KINDS or not sizes[:1].isdigit():
        return None
    made = make(sizes, kind)
    return made if kind != "FLOAT" or all(n in FLOAT_BITS for _, n in made.channels) else None


def code_of_descriptor(name: str, words: int) -> int:
    """The format code in a buffer descriptor's last dword."""
    last = words >> 96
    if arch(name).dialect == "gfx9":
        return (last >> 12 & 7) << 4 | last >> 15 & 15
    return last >> 12 & (0x7F if arch(name).dialect == "gfx11" else 0x3F)


def selection(words: int) -> tuple[int, ...]:
    """DST_SEL of a descriptor: for X, Y, Z, W 0: zero, 1: one, 4..7: channel X..W."""
    return tuple(words >> 96 + 3 * i & 7 for i in range(4))


IDENTITY = (4, 5, 6, 7)


def checked(name: str, code: int, instruction: str) -> Format:
    """Raises Unmodelled for a code without a format."""
    found = of_code(name, code)
    if found is None:
        raise Unmodelled(name, f"buffer format {code} of {instruction}", "emu/formats.py")
    return found


# ---------------------------------------------------------------- from memory


def f32(value: float) -> int:
    return sf.from_float(sf.F32, value)


def _small_float(value: int, bits: int) -> int:
    """An unsigned float of 10 or 11 bits as f32."""
    fraction = SMALL_FRACTIONS[bits]
    exponent, mantissa = value >> fraction, value & ((1 << fraction) - 1)
    if exponent == 31:
        return 0x7F80_0000 | mantissa << (23 - fraction)
    if exponent == 0:
        return f32(mantissa * 2.0 ** (-14 - fraction))
    return (exponent + 112) << 23 | mantissa << (23 - fraction)


def load(f: Format, raw: int, bits: int) -> int:
    """A channel's bits as 32-bit value."""
    signed = raw - (1 << bits) if raw >> (bits - 1) else raw
    match f.kind:
        case "UNORM":
            return f32(raw / ((1 << bits) - 1))
        case "SNORM":
            return f32(max(-1.0, signed / ((1 << bits - 1) - 1)))
        case "USCALED":
            return f32(float(raw))
        case "SSCALED":
            return f32(float(signed))
        case "UINT":
            return raw
        case "SINT":
            return signed & 0xFFFF_FFFF
        case _:
            if bits == 32:
                return raw
            return sf.convert(sf.F16, sf.F32, raw, ENV, ENV) if bits == 16 else _small_float(raw, bits)


def channel(f: Format, element: int, number: int, select: tuple[int, ...]) -> int:
    """Channel `number` of an element as an instruction sees it: 32 bits. What is missing is 0, W is 1."""
    one = 1 if f.kind in ("UINT", "SINT") else 0x3F80_0000
    source = select[number]
    if source < 4:
        return one if source == 1 else 0
    if source - 4 >= len(f.channels):
        return one if source == 7 else 0
    at, bits = f.channels[source - 4]
    return load(f, element >> at & ((1 << bits) - 1), bits)


def as_short(f: Format, value: int) -> int:
    """A 32-bit channel as D16 loads give it: f16 for floats, the low bits of integers."""
    return value & 0xFFFF if f.kind in ("UINT", "SINT") else sf.convert(sf.F32, sf.F16, value, ENV, ENV)


# ---------------------------------------------------------------- to memory


def from_short(f: Format, value: int) -> int:
    """16 bits of a D16 store as 32-bit channel."""
    if f.kind == "SINT":
        return (value ^ 0x8000) - 0x8000 & 0xFFFF_FFFF
    return value if f.kind == "UINT" else sf.convert(sf.F16, sf.F32, value, ENV, ENV)


def _rounded(value: float, low: int, high: int) -> int:
    """Nearest integer, ties to even, within bounds; NaN gives 0."""
    if value != value:
        return 0
    return round(max(float(low), min(float(high), value)))


def store(f: Format, value: int, bits: int) -> int:
    """A 32-bit channel as the bits of its memory format."""
    number = sf.to_float(sf.F32, value)
    top, half = (1 << bits) - 1, (1 << bits - 1) - 1
    signed = value - (1 << 32) if value >> 31 else value
    match f.kind:
        case "UNORM":
            return _rounded(max(0.0, min(1.0, number)) * top if number == number else number, 0, top)
        case "SNORM":
            return _rounded(max(-1.0, min(1.0, number)) * half if number == number else number, -half, half) & top
        case "USCALED":
            return _rounded(number, 0, top)
        case "SSCALED":
            return _rounded(number, -half - 1, half) & top
        case "UINT":
            return min(value, top)
        case "SINT":
            return max(-half - 1, min(half, signed)) & top
        case _:
            if bits == 32:
                return value
            return sf.convert(sf.F32, sf.F16, value, ENV, ENV) if bits == 16 else _to_small_float(value, bits)


def _to_small_float(value: int, bits: int) -> int:
    """f32 to an unsigned float: negative numbers give 0, too large ones the largest."""
    fraction = SMALL_FRACTIONS[bits]
    if value & 0x7FFF_FFFF > 0x7F80_0000:
        return 31 << fraction | 1
    if value >> 31:
        return 0
    half = sf.convert(sf.F32, sf.F16, value, ENV, ENV)
    if half == 0x7C00 and value != 0x7F80_0000:
        half = 0x7BFF
    return half >> (10 - fraction)


def put(f: Format, element: int, number: int, value: int) -> int:
    """The element with one channel replaced; a channel the format has not changes nothing."""
    if number >= len(f.channels):
        return element
    at, bits = f.channels[number]
    mask = (1 << bits) - 1
    return element & ~(mask << at) | store(f, value, bits) << at


def has_own_format(instruction: str) -> bool:
    """Whether the instruction names its format; else the descriptor does."""
    return instruction.startswith("TBUFFER_")


def own_code(fields: Mapping[str, int]) -> int:
    return fields["NFMT"] << 4 | fields["DFMT"] if "DFMT" in fields else fields["FORMAT"]


def of_instruction(name: str, instruction: str, fields: Mapping[str, int], words: int) -> tuple[Format, tuple[int, ...]]:
    """(format, selection) of one typed access; `words` is the descriptor. Raises Unmodelled."""
    if not has_own_format(instruction):
        return checked(name, code_of_descriptor(name, words), instruction), selection(words)
    return checked(name, own_code(fields), instruction), IDENTITY


# ---------------------------------------------------------------- for the C core

N_CODES = 128


def native_table(name: str) -> bytes:
    """All formats of a generation as the C core's `Format` records."""
    out = bytearray()
    for code in range(N_CODES):
        f = of_code(name, code)
        if f is None:
            out += bytes(12)
            continue
        places = [f.channels[i] if i < len(f.channels) else (0, 0) for i in range(4)]
        out += struct.pack("<4B", len(f.channels), KINDS.index(f.kind), f.bytes, 0)
        out += bytes(at for at, _ in places) + bytes(bits for _, bits in places)
    return bytes(out)
