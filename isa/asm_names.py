"""Spelling of registers and constants in assembly text: numbers to names and back.

Units:   register counts are in 32-bit registers.
"""

from __future__ import annotations

from functools import cache

from stuntgpu.isa.arch import Arch, arch
from stuntgpu.isa.errata.encodings import LDS_DIRECT, LDS_DIRECT_NAME

FIRST_VGPR = 256
LITERAL = 255
FLOAT_NAMES = ("0.5", "-0.5", "1.0", "-1.0", "2.0", "-2.0", "4.0", "-4.0", "0.15915494")
INV_2PI_F32, INV_2PI_F64 = 0x3E22F983, "0.15915494309189532"
#: Inline float constants: value -> operand number.
FLOAT_NUMBERS = {float(name): 240 + i for i, name in enumerate(FLOAT_NAMES[:8])}
#: Registers that assembly names whole where the tables name halves.
PAIRS = {"vcc_lo": "vcc", "exec_lo": "exec", "flat_scratch_lo": "flat_scratch", "xnack_mask_lo": "xnack_mask"}


def registers(bits: int) -> int:
    """32-bit registers that an operand of `bits` takes."""
    return max(1, (bits + 31) // 32)


@cache
def vgprs(n: int, letter: str = "v") -> tuple[str, ...]:
    """Names of 256 VGPR operands of `n` registers, by first register."""
    if n == 1:
        return tuple(f"{letter}{i}" for i in range(256))
    return tuple(f"{letter}[{i}:{i + n - 1}]" for i in range(256))


@cache
def vgpr_halves() -> tuple[str, ...]:
    """Names by an 8-bit field whose bit 7 picks the half."""
    return tuple(f"v{i & 127}.{'lh'[i >> 7]}" for i in range(256))


def scalar_name(target: Arch, number: int, n: int) -> str:
    """A scalar register (or special value) of `n` registers."""
    name = LDS_DIRECT_NAME if number == LDS_DIRECT else target.tables.codes.get(number)
    if name is not None:
        text = name.lower()
        return PAIRS.get(text, text) if n > 1 else text
    if target.ttmp <= number < target.ttmp + target.n_ttmp:
        letter, number = "ttmp", number - target.ttmp
    else:
        letter = "s"
    return f"{letter}{number}" if n == 1 else f"{letter}[{number}:{number + n - 1}]"


def constant_name(number: int, bits: int) -> str | None:
    """Text of an inline constant, None for another number."""
    if 128 <= number <= 192:
        return str(number - 128)
    if 193 <= number <= 208:
        return str(192 - number)
    if number == 248 and bits == 64:
        return INV_2PI_F64
    if 240 <= number <= 248:
        return FLOAT_NAMES[number - 240]
    return None


@cache
def sources(name: str, bits: int, element_bits: int = 0) -> tuple[str, ...]:
    """Texts of the 512 source numbers for an operand of `bits` (VGPRs without halves), whose
    constants are of `element_bits` (0: of `bits` as well)."""
    target, n = arch(name), registers(bits)
    out = []
    for number in range(FIRST_VGPR):
        out.append(constant_name(number, element_bits or bits) or scalar_name(target, number, n))
    return (*out, *vgprs(n))


@cache
def register_numbers(name: str) -> dict[str, int]:
    """Named scalar registers and special values -> operand number, every accepted spelling."""
    target = arch(name)
    names = {
        text.lower(): number
        for number, text in target.tables.codes.items()
        if text[0].isalpha() and not text.startswith(("DPP", "LITERAL", "SDWA"))
    }
    names |= {PAIRS[low]: names[low] for low in PAIRS if low in names}
    for text in [t for t in names if t.startswith("src_")]:
        names[text.removeprefix("src_")] = names[text]
    return names


# ---------------------------------------------------------------- inline constants

F16_BITS = (0x3800, 0xB800, 0x3C00, 0xBC00, 0x4000, 0xC000, 0x4400, 0xC400, 0x3118)
F32_BITS = (0x3F000000, 0xBF000000, 0x3F800000, 0xBF800000, 0x40000000, 0xC0000000, 0x40800000, 0xC0800000,
            0x3E22F983)  # fmt: skip
F64_HIGH = (0x3FE00000, 0xBFE00000, 0x3FF00000, 0xBFF00000, 0x40000000, 0xC0000000, 0x40100000, 0xC0100000)


#: Kind of a packed operand whose constants stand in both halves.
DOUBLED = "f16x2 doubled"


#: Formats of addends whose constants LLVM writes with the digits of 64 bits.
LONG_DIGITS = frozenset({"wmma_dc_f16", "wmma_dc_bf16"})
#: Pairs of 32-bit elements: a constant is one of those.
PAIRS_OF_32 = frozenset({"f32x2", "b32x2"})


def constant_bits(fmt: str) -> int:
    """Width that constants of a source are written for; 0: that of the operand."""
    if fmt.startswith("f64") or fmt in LONG_DIGITS:
        return 64
    return 32 if fmt in PAIRS_OF_32 else 0


def literal_kind(fmt: str, bits: int) -> str:
    """How assembly text reads a number for an operand: "f16", "f16x2", "bf16", "i64", "f64", "i32"..."""
    if fmt.startswith("f64"):
        return "f64"
    if bits == 64:
        return "i32" if fmt in PAIRS_OF_32 else "i64"
    if fmt in ("f16", "f16x2", "bf16", "bf16x2", DOUBLED):
        return fmt
    if fmt in ("fp8x2", "bf8x2"):
        return "f16"
    return "i16" if bits == 16 else "i32"


@cache
def inline_table(kind: str) -> dict[int, int]:
    """Bits of a literal -> number of the inline constant that means the same to the operand."""
    positive = {i: 128 + i for i in range(65)}
    negative = {-i & 0xFFFF_FFFF: 192 + i for i in range(1, 17)}
    short_negative = {-i & 0xFFFF: 192 + i for i in range(1, 17)}
    if kind == "i64":
        return positive
    if kind == "f64":
        return {bits: 240 + i for i, bits in enumerate(F64_HIGH)}
    table = positive | negative
    if kind == "f16":
        return table | short_negative | {bits: 240 + i for i, bits in enumerate(F16_BITS)}
    if kind == DOUBLED:
        halves = positive | {bits: 240 + i for i, bits in enumerate(F16_BITS)}
        return table | {v << 16 | v: number for v, number in halves.items()}
    if kind == "f16x2":
        return table | {bits: 240 + i for i, bits in enumerate(F16_BITS)}
    if kind in ("bf16", "bf16x2"):
        table |= short_negative if kind == "bf16" else {}
        return table | {bits >> 16: 240 + i for i, bits in enumerate(F32_BITS)}
    return table | {bits: 240 + i for i, bits in enumerate(F32_BITS)}


def inline_number(value: int, kind: str) -> int | None:
    """Operand number of the inline constant equal to a 32-bit `value`, if there is one."""
    return inline_table(kind).get(value)


#: Kinds whose operands read the low half of a literal.
HALVES = ("f16", "bf16", "i16")


def is_short_literal(value: int, kind: str, bits: int) -> bool:
    """Whether the text of a literal is that of its low half: an operand of 16 bits reads no more."""
    return bits == 16 and kind in HALVES and value >> 16 != 0 and inline_number(value, kind) is inline_number(value & 0xFFFF, kind) is None


def literal_text(value: int, kind: str, bits: int) -> str:
    """A literal in text: plain hexadecimal, or lit(...) where that would read as something else
    (an inline constant, a small integer for an F64)."""
    if is_short_literal(value, kind, bits):
        return hex(value & 0xFFFF)
    more = value >> 16 if kind in HALVES else kind == "f64" and value in inline_table("i64")
    plain = inline_number(value, kind) is None and not more
    return hex(value) if plain else f"lit({value:#x})"
