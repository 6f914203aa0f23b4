"""Printers of the operands and modifiers that CDNA has of its own: see `disasm` for the rest."""

from __future__ import annotations

from collections.abc import Callable

from stuntgpu.isa import asm_imm_gfx9, asm_names
from stuntgpu.isa.asm_names import FIRST_VGPR, registers
from stuntgpu.isa.decode_rules import format_registers
from stuntgpu.isa.disasm_base import Fields, Print, sext, signed_hex
from stuntgpu.isa.syntax_types import Modifier, Slot

# ---------------------------------------------------------------- SDWA

SELECTS = ("BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD")
UNUSED = ("UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE")


def print_sdwa(name: str, slot: Slot) -> Print:
    """A source that is a VGPR or, by a bit, a scalar operand; with sext() or |x| and -x."""
    scalars, vectors = asm_names.sources(name, slot.bits), asm_names.vgprs(registers(slot.bits))
    i, field = slot.index, slot.field
    scalar, neg, absolute, sext_bit = f"S{i}", f"SRC{i}_NEG", f"SRC{i}_ABS", f"SRC{i}_SEXT"

    def show(f: Fields) -> str:
        text = (scalars if f[scalar] else vectors)[f[field]]
        if f[sext_bit]:
            return f"sext({text})"
        if f[absolute]:
            text = f"|{text}|"
        if f[neg]:
            return f"neg({text})" if text[0].isdigit() or text[0] == "-" else f"-{text}"
        return text

    return show


def print_sdwa_mask(name: str, slot: Slot) -> Print:
    """Where a comparison goes: VCC, or the scalar pair SD asks for."""
    names = asm_names.sources(name, 64)
    return lambda f: names[f["SDST"]] if f["SD"] else "vcc"


def mod_sdwa_sel(m: Modifier) -> Print:
    return lambda f: f" {m.text}:{SELECTS[f[m.field]]}"


def mod_sdwa_unused(m: Modifier) -> Print:
    return lambda f: f" {m.text}:{UNUSED[f[m.field]]}"


# ---------------------------------------------------------------- memory


def smem_offset(f: Fields) -> str:
    return signed_hex(sext(f["OFFSET"], 21))


def print_smem_enabled(name: str, slot: Slot) -> Print:
    """SOFFSET where it is enabled; else the immediate, or the register whose number stands in OFFSET."""
    names = asm_names.sources(name, 32)

    def show(f: Fields) -> str:
        if f["SOFFSET_EN"]:
            return names[f["SOFFSET"]]
        return smem_offset(f) if f["IMM"] else names[f["OFFSET"] & 127]

    return show


def mod_smem_enabled(m: Modifier) -> Print:
    return lambda f: f" offset:{smem_offset(f)}" if f["SOFFSET_EN"] and f["IMM"] else ""


def print_lds_or_data(name: str, slot: Slot) -> Print:
    """Data of a buffer instruction; nothing when it goes to LDS."""
    n, field = registers(slot.bits), slot.field
    plain, acc = asm_names.vgprs(n), asm_names.vgprs(n, "a")
    return lambda f: "" if f.get("LDS") else (acc if f["ACC"] else plain)[f[field]]


def mod_split_format(m: Modifier) -> Print:
    def show(f: Fields) -> str:
        text = asm_imm_gfx9.split_format(f["DFMT"], f["NFMT"])
        return f" format:{text}" if text else ""

    return show


# ---------------------------------------------------------------- matrix


def print_formatted(name: str, slot: Slot) -> Print:
    """A or B of the instructions whose format fields say how many registers they take."""
    field, code, bit = slot.field, "BLGP" if slot.index else "CBSZ", slot.index

    def show(f: Fields) -> str:
        letter = "a" if f[slot.acc] >> bit & 1 else "v"
        return asm_names.vgprs(format_registers(f[code]), letter)[f[field] - FIRST_VGPR]

    return show


def mod_bitop3(m: Modifier) -> Print:
    """The truth table, in three fields; 0 is not printed."""

    def show(f: Fields) -> str:
        value = f["OMOD"] << 6 | f["ABS"] << 3 | f["NEG"]
        return f" {m.text}:{value if value <= 10 else hex(value)}" if value else ""

    return show


def mod_op_sel_bit(m: Modifier) -> Print:
    """A bit of OP_SEL with a name of its own."""
    text, bit = f" {m.text}:1", m.count
    return lambda f: text if f["OP_SEL"] >> bit & 1 else ""


PRINT: dict[str, Callable[[str, Slot], Print]] = {
    "sdwa": print_sdwa, "sdwa_mask": print_sdwa_mask, "smem_enabled": print_smem_enabled,
    "lds_or_data": print_lds_or_data, "formatted": print_formatted,
}  # fmt: skip
MODIFIERS: dict[str, Callable[[Modifier], Print]] = {
    "sdwa_sel": mod_sdwa_sel, "sdwa_unused": mod_sdwa_unused, "smem_enabled": mod_smem_enabled,
    "split_format": mod_split_format, "bitop3": mod_bitop3, "op_sel_bit": mod_op_sel_bit,
}  # fmt: skip

# ---------------------------------------------------------------- DPP

#: DPP_CTRL of CDNA: controls with a lane count (first code, name), and those with one meaning.
DPP_ROWS = ((0x100, "row_shl"), (0x110, "row_shr"), (0x120, "row_ror"), (0x150, "row_newbcast"))
DPP_NAMES = {
    0x130: "wave_shl:1", 0x134: "wave_rol:1", 0x138: "wave_shr:1", 0x13C: "wave_ror:1",
    0x140: "row_mirror", 0x141: "row_half_mirror", 0x142: "row_bcast:15", 0x143: "row_bcast:31",
}  # fmt: skip
