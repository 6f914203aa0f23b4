"""Structured immediates of assembly: hwreg(...), sendmsg(...), wait counters, delay_alu, depctr,
swizzle. Each has a printer (value -> text) here and a parser in `asm_imm_parse`.

Where bits and names are facts of the vendor's tables (`Tables.parts`), they come from there; the
spelling is the one LLVM's assembler reads and writes.

Printers give a plain number for a value whose symbolic text would not assemble to it again.
"""

from __future__ import annotations

from functools import cache

from stuntgpu.isa.arch import FieldRow, arch

#: Order and default of the depctr fields in text.
DEPCTR_ORDER = ("HOLD_CNT", "SA_SDST", "VA_VDST", "VA_SDST", "VA_SSRC", "VA_VCC", "VM_VSRC")
#: Wait counters: field of the table -> name in text, printing order.
WAITCNT_ORDER = (("VM", "vmcnt"), ("EXP", "expcnt"), ("LGKM", "lgkmcnt"))
INSTID_PREFIX, SKIP_PREFIX = "INSTID_", "INSTSKIP_"


def short(value: int) -> str:
    """The way free immediates read: decimal when small, else hexadecimal."""
    return str(value) if value <= 64 else hex(value)


@cache
def fields(name: str, kind: str) -> tuple[tuple[FieldRow, dict[str, int], dict[int, str]], ...]:
    """(field, names -> values, values -> names) of an immediate type."""
    return tuple(
        (f, names, {v: n for n, v in names.items()}) for f, names in arch(name).tables.parts[kind]
    )


def split(name: str, kind: str, value: int) -> dict[str, int]:
    return {f.name: f.extract(value) for f, _, _ in fields(name, kind)}


def known_bits(name: str, kind: str) -> int:
    return sum(f.mask for f, _, _ in fields(name, kind))


#: Registers the tables name and LLVM prints as numbers, and those it spells another way.
HWREG_NUMBERS = {
    **dict.fromkeys(("gfx1100", "gfx1151"), frozenset({8, 9, 13, 14, 16, 17, 25, 26, 28})),
    "gfx942": frozenset(range(8, 15)), "gfx950": frozenset(range(8, 15)),
}
#: Registers the tables leave out.
HWREG_EXTRA = {
    "gfx1201": {
        7: "HW_REG_IB_STS", 26: "HW_REG_WAVE_SCHED_MODE", 31: "HW_REG_WAVE_DVGPR_ALLOC_LO",
        32: "HW_REG_WAVE_DVGPR_ALLOC_HI",
    },
}  # fmt: skip
HWREG_SPELLING = {
    "HW_REG_SHADER_FLAT_SCRATCH_LO": "HW_REG_FLAT_SCR_LO",
    "HW_REG_SHADER_FLAT_SCRATCH_HI": "HW_REG_FLAT_SCR_HI",
    "HW_REG_SQ_SHADER_TBA_LO": "HW_REG_TBA_LO", "HW_REG_SQ_SHADER_TBA_HI": "HW_REG_TBA_HI",
    "HW_REG_SQ_SHADER_TMA_LO": "HW_REG_TMA_LO", "HW_REG_SQ_SHADER_TMA_HI": "HW_REG_TMA_HI",
}


@cache
def hwreg_printed(name: str) -> dict[int, str]:
    numbers = HWREG_NUMBERS.get(name, frozenset())
    printed = {v: HWREG_SPELLING.get(n, n) for v, n in fields(name, "hwreg")[0][2].items() if v not in numbers}
    return printed | HWREG_EXTRA.get(name, {})


def hwreg(name: str, value: int) -> str:
    reg = fields(name, "hwreg")[0][0].extract(value)
    parts = split(name, "hwreg", value)
    text = hwreg_printed(name).get(reg, str(reg))
    offset, size = parts["OFFSET"], parts["SIZE"] + 1
    if (offset, size) == (0, 32):
        return f"hwreg({text})"
    return f"hwreg({text}, {offset}, {size})"


def sendmsg(name: str, value: int) -> str:
    names = fields(name, "sendmsg")[0][2]
    if value >> 8:
        return str(value)
    if value in names:
        return f"sendmsg({names[value]})"
    return f"sendmsg({value}, 0, 0)"


def waitcnt(name: str, value: int) -> str:
    rows = {f.name: f for f, _, _ in fields(name, "waitcnt")}
    if value & ~known_bits(name, "waitcnt"):
        return str(value)
    out = []
    for field, text in WAITCNT_ORDER:
        count = rows[field].extract(value)
        if count != (1 << rows[field].bits) - 1:
            out.append(f"{text}({count})")
    if not out:
        out = [f"{text}({rows[field].extract(value)})" for field, text in WAITCNT_ORDER]
    return " ".join(out)


def wait_alu(name: str, value: int) -> str:
    return depctr(name, value, "wait_alu")


def depctr(name: str, value: int, kind: str = "waitcnt_depctr") -> str:
    rows = {f.name: f for f, _, _ in fields(name, kind)}
    if value & ~known_bits(name, kind):
        return hex(value)
    texts = []
    all_texts = []
    for field in DEPCTR_ORDER:
        count = rows[field].extract(value)
        text = f"depctr_{field.lower()}({count})"
        all_texts.append(text)
        if count != (1 << rows[field].bits) - 1:
            texts.append(text)
    return " ".join(texts or all_texts)


def delay(name: str, value: int) -> str:
    if value == 0 or value & ~known_bits(name, "delay"):
        return str(value)
    out = []
    for f, _, names in fields(name, "delay"):
        part = f.extract(value)
        if part == 0:
            continue
        if part not in names:
            return str(value)
        text = names[part].removeprefix(INSTID_PREFIX).removeprefix(SKIP_PREFIX)
        out.append(f"{f.name.lower()}({text})")
    return " | ".join(out)


def swizzle(value: int) -> str:
    """ds_swizzle_b32's offset: quad permutation, or bit masks over groups of 32 lanes."""
    if value >> 8 == 0x80:
        lanes = ",".join(str(value >> 2 * i & 3) for i in range(4))
        return f"swizzle(QUAD_PERM,{lanes})"
    if value & ~0x7E0 == 0xC000:
        return f"swizzle(ROTATE,{value >> 10 & 1},{value >> 5 & 31})"
    if value & ~0x1F == 0xE000:
        return f"swizzle(FFT,{value & 31})"
    if value >> 15:
        return str(value)
    and_, or_, xor = value & 31, value >> 5 & 31, value >> 10 & 31
    if and_ == 31 and or_ == 0 and xor and xor & (xor - 1) == 0:
        return f"swizzle(SWAP,{xor})"
    if and_ == 31 and or_ == 0 and xor and xor & (xor + 1) == 0:
        return f"swizzle(REVERSE,{xor + 1})"
    group = 32 - and_
    if xor == 0 and group > 1 and group & (group - 1) == 0 and or_ < group:
        return f"swizzle(BROADCAST,{group},{or_})"
    return f'swizzle(BITMASK_PERM,"{mask_text(and_, or_, xor)}")'


def mask_text(and_: int, or_: int, xor: int) -> str:
    """Five characters, high bit first: 0 and 1 fix a bit, p keeps it, i inverts it."""
    out = ""
    for bit in reversed(range(5)):
        one = (1 & and_ >> bit | or_ >> bit & 1) ^ xor >> bit & 1
        zero = (or_ >> bit & 1) ^ xor >> bit & 1
        out += "0" if (zero, one) == (0, 0) else "1" if (zero, one) == (1, 1) else "p" if one else "i"
    return out


#: MTBUF FORMAT of GFX11 and later: 64 unified formats, in numeric order.
def _format_names() -> tuple[str, ...]:
    full = ("UNORM", "SNORM", "USCALED", "SSCALED", "UINT", "SINT")
    with_float = (*full, "FLOAT")
    integer = ("UINT", "SINT", "FLOAT")
    rows: tuple[tuple[str, tuple[str, ...]], ...] = (
        ("8", full), ("16", with_float), ("8_8", full), ("32", integer), ("16_16", with_float),
        ("10_11_11", ("FLOAT",)), ("11_11_10", ("FLOAT",)),
        ("10_10_10_2", ("UNORM", "SNORM", "UINT", "SINT")), ("2_10_10_10", full),
        ("8_8_8_8", full), ("32_32", integer), ("16_16_16_16", with_float),
        ("32_32_32", integer), ("32_32_32_32", integer),
    )  # fmt: skip
    names = ["BUF_FMT_INVALID"]
    for size, kinds in rows:
        names += [f"BUF_FMT_{size}_{kind}" for kind in kinds]
    return tuple(names)


UNIFIED_FORMATS = _format_names()
DEFAULT_FORMAT = 1


def buffer_format(value: int) -> str:
    if value < len(UNIFIED_FORMATS):
        return f"[{UNIFIED_FORMATS[value]}]"
    return str(value)


#: s_version: microcode versions and flags.
VERSIONS = {"UC_VERSION_GFX7": 0, "UC_VERSION_GFX10": 4, "UC_VERSION_GFX11": 6, "UC_VERSION_GFX12": 9}
VERSION_FLAGS = {"UC_VERSION_W64_BIT": 0x2000, "UC_VERSION_W32_BIT": 0x4000, "UC_VERSION_MDP_BIT": 0x8000}


def version(name: str, value: int) -> str:
    if value & 0x1F00:
        return hex(value)
    names = {v: n for n, v in VERSIONS.items()}
    text = names.get(value & 0xFF, str(value & 0xFF))
    for flag, bit in VERSION_FLAGS.items():
        if value & bit:
            text = f"({text})|{flag}" if "|" in text else f"{text}|{flag}"
    return text
