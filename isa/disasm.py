"""Disassembly in the syntax of LLVM's AMDGPU tools.

A printer is made once per (row, form) from its `Syntax`: a list of functions from the microcode
fields to text. Values that no text names print as numbers, so that assembling the text gives the
same bytes back.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache

from stuntgpu.isa import asm_imm, asm_imm_gfx9, asm_names, disasm_gfx9
from stuntgpu.isa.arch import arch
from stuntgpu.isa.asm_names import FIRST_VGPR, LITERAL, registers
from stuntgpu.isa.disasm_base import Fields, Print, sext, signed_hex
from stuntgpu.isa.inst import Inst
from stuntgpu.isa.syntax import MIX, Syntax, syntax
from stuntgpu.isa.syntax_gfx12 import SCOPES, address_registers, th_name
from stuntgpu.isa.syntax_image import DIMENSIONS, image_address_registers, image_data_registers
from stuntgpu.isa.syntax_types import Modifier, Slot

# ---------------------------------------------------------------- operands


def signed(slot: Slot, plain: Print) -> Print:
    """Adds |x| and -x, or neg(x) where -x would read as another constant."""
    bit, neg_field, abs_field = 1 << slot.index, f"SRC{slot.index}_NEG", f"SRC{slot.index}_ABS"
    mix = slot.style == MIX

    def show(f: Fields) -> str:
        text = plain(f)
        if f.get("NEG_HI" if mix else "ABS", 0) & bit or f.get(abs_field, 0):
            text = f"|{text}|"
        if f.get("NEG", 0) & bit or f.get(neg_field, 0):
            bare = text[0].isdigit() or text[0] == "-"
            text = f"neg({text})" if bare else f"-{text}"
        return text

    return show


def print_source(name: str, slot: Slot) -> Print:
    names, field = asm_names.sources(name, slot.bits, asm_names.constant_bits(slot.fmt)), slot.field
    halves = asm_names.vgpr_halves() if slot.half == "bit7" else ()
    kind, bits = asm_names.literal_kind(slot.fmt, slot.bits), slot.bits
    wide_bit, suffixes = 1 << slot.index, slot.half == "opsel"
    acc, acc_bit, acc_names = slot.acc, slot.index, asm_names.vgprs(registers(slot.bits), "a")

    def show(f: Fields) -> str:
        number = f[field]
        if number == LITERAL:
            return asm_names.literal_text(f["LITERAL"], kind, bits)
        if number >= FIRST_VGPR:
            if halves:
                return halves[number - FIRST_VGPR]
            if acc and f[acc] >> acc_bit & 1:
                return acc_names[number - FIRST_VGPR]
            if suffixes:
                return f"{names[number]}.{'h' if f['OP_SEL'] & wide_bit else 'l'}"
        return names[number]

    return signed(slot, show) if slot.signed else show


def print_vgpr(name: str, slot: Slot) -> Print:
    field, bit = slot.field, 1 << slot.index
    if slot.acc:
        return print_acc(slot)
    if slot.half == "bit7":
        halves = asm_names.vgpr_halves()
        show: Print = lambda f: halves[f[field]]  # noqa: E731
    else:
        names = asm_names.vgprs(registers(slot.bits))
        if slot.half == "opsel":
            show = lambda f: f"{names[f[field] & 255]}.{'h' if f['OP_SEL'] & bit else 'l'}"  # noqa: E731
        else:
            show = lambda f: names[f[field] & 255]  # noqa: E731
    return signed(slot, show) if slot.signed else show


def print_acc(slot: Slot) -> Print:
    """A vector register that is an AccVGPR always, or where a bit of the encoding says so."""
    n, field, acc, bit = registers(slot.bits), slot.field, slot.acc, slot.index
    plain, names = asm_names.vgprs(n), asm_names.vgprs(n, "a")
    if acc == "always":
        return lambda f: names[f[field] & 255]
    return lambda f: (names if f[acc] >> bit & 1 else plain)[f[field] & 255]


def print_returned(name: str, slot: Slot) -> Print:
    """The register an atomic gives the old value to, if it does."""
    show = print_vgpr(name, slot)
    return lambda f: show(f) if f.get("GLC", f.get("SC0", f.get("TH", 0) & 1)) else ""


def print_sreg(name: str, slot: Slot) -> Print:
    names, field = asm_names.sources(name, slot.bits), slot.field
    return lambda f: names[f[field]]


def print_spair(name: str, slot: Slot) -> Print:
    """A scalar register field that leaves out its low bits."""
    names, field = asm_names.sources(name, slot.bits), slot.field
    shift = 1 if field == "SBASE" else 2
    return lambda f: names[f[field] << shift]


def print_vcc(name: str, slot: Slot) -> Print:
    text = "vcc_lo" if arch(name).wave_sizes[0] == 32 else "vcc"
    return lambda f: text


def print_immediate(name: str, slot: Slot) -> Print:
    field = slot.field
    structured: dict[str, Callable[[str, int], str]] = {
        "hwreg": asm_imm.hwreg, "sendmsg gfx11": asm_imm.sendmsg, "sendmsg gfx12": asm_imm.sendmsg, "sendmsg_rtn": asm_imm.sendmsg,
        "waitcnt": asm_imm.waitcnt, "waitcnt_depctr": asm_imm.depctr, "wait_alu": asm_imm.wait_alu, "delay": asm_imm.delay, "version": asm_imm.version,
        "gpr_idx": asm_imm_gfx9.gpr_idx, "sendmsg gfx9": asm_imm_gfx9.sendmsg,
    }  # fmt: skip
    if slot.style in structured:
        show = lru_cache(1 << 12)(structured[slot.style])
        return lambda f: show(name, f[field])
    if slot.style == "hex":
        return lambda f: hex(f[field])
    return lambda f: asm_imm.short(f[field])


def print_optional(name: str, slot: Slot) -> Print:
    field = slot.field
    return lambda f: str(f[field]) if f[field] else ""


def print_label(name: str, slot: Slot) -> Print:
    field = slot.field
    return lambda f: str(f[field])


def print_literal(name: str, slot: Slot) -> Print:
    limit, small_decimal = 1 << slot.bits, slot.style == "short"

    def show(f: Fields) -> str:
        value = f["LITERAL"]
        if small_decimal and -16 <= sext(value, 32) <= 64:
            return str(sext(value, 32))
        return hex(value) if value < limit else f"lit({value:#x})"

    return show


def print_dual_y(name: str, slot: Slot) -> Print:
    names = asm_names.vgprs(1)
    return lambda f: names[f["VDSTY"] << 1 | (~f["VDSTX"] & 1)]


# ---------------------------------------------------------------- memory operands


def print_smem_offset(name: str, slot: Slot) -> Print:
    names, null = asm_names.sources(name, 32), arch(name).null

    def show(f: Fields) -> str:
        if f["SOFFSET"] == null and f["OFFSET"]:
            return signed_hex(sext(f["OFFSET"], 21))
        return names[f["SOFFSET"]]

    return show


def print_smem_offset24(name: str, slot: Slot) -> Print:
    names, null = asm_names.sources(name, 32), arch(name).null

    def show(f: Fields) -> str:
        return signed_hex(sext(f["IOFFSET"], 24)) if f["SOFFSET"] == null else names[f["SOFFSET"]]

    return show


def print_offset24(name: str, slot: Slot) -> Print:
    return lambda f: signed_hex(sext(f["IOFFSET"], 24))


def print_global_addr(name: str, slot: Slot) -> Print:
    one, two, null = asm_names.vgprs(1), asm_names.vgprs(2), arch(name).no_saddr
    field = slot.field
    return lambda f: (two if f["SADDR"] == null else one)[f[field]]


def print_scratch_addr(name: str, slot: Slot) -> Print:
    one, field = asm_names.vgprs(1), slot.field
    return lambda f: one[f[field]] if f["SVE"] else "off"


def print_saddr(name: str, slot: Slot) -> Print:
    names, null = asm_names.sources(name, slot.bits), arch(name).no_saddr
    return lambda f: "off" if f["SADDR"] == null else names[f["SADDR"]]


def print_buffer_data(name: str, slot: Slot) -> Print:
    n, field = registers(slot.bits), slot.field
    plain, more = asm_names.vgprs(n), asm_names.vgprs(n + 1)
    return lambda f: (more if f["TFE"] else plain)[f[field]]


def print_buffer_addr(name: str, slot: Slot) -> Print:
    one, two = asm_names.vgprs(1), asm_names.vgprs(2)

    def show(f: Fields) -> str:
        parts = f["OFFEN"] + f["IDXEN"]
        return "off" if not parts else (one if parts == 1 else two)[f["VADDR"]]

    return show


def print_image_data(name: str, slot: Slot) -> Print:
    op = slot.style

    def show(f: Fields) -> str:
        n = image_data_registers(op, f["DMASK"], f["D16"], f["TFE"])
        return asm_names.vgprs(n)[f["VDATA"]]

    return show


def print_image_addr(name: str, slot: Slot) -> Print:
    op = slot.style
    return lambda f: asm_names.vgprs(image_address_registers(op, f["DIM"], f["A16"]))[f["VADDR"]]


def print_image_list(name: str, slot: Slot) -> Print:
    """Address registers field by field."""
    op, most = slot.style, slot.index

    def show(f: Fields) -> str:
        counts = address_registers(op, f["DIM"], f["A16"], most)
        texts = [asm_names.vgprs(n)[f[f"VADDR{i}"]] for i, n in enumerate(counts)]
        return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"

    return show


# ---------------------------------------------------------------- export, attributes


def print_target(name: str, slot: Slot) -> Print:
    names = arch(name).tables.enums["tgt"]

    def show(f: Fields) -> str:
        number = f["TGT"]
        return names[number].lower() if number in names else f"invalid_target_{number}"

    return show


def print_export(name: str, slot: Slot) -> Print:
    """A value to export; the first has the target before it, without a comma."""
    names, field, bit = asm_names.vgprs(1), slot.field, 1 << slot.index
    target = print_target(name, slot)
    if slot.index == 0:
        return lambda f: f"{target(f)} {names[f[field]] if f['EN'] & bit else 'off'}"
    return lambda f: names[f[field]] if f["EN"] & bit else "off"


def print_attr(name: str, slot: Slot) -> Print:
    return lambda f: f"attr{f['ATTR']}.{'xyzw'[f['ATTR_CHAN']]}"


PRINT: dict[str, Callable[[str, Slot], Print]] = {
    "src": print_source, "vgpr": print_vgpr, "returned": print_returned, "sreg": print_sreg,
    "spair": print_spair, "vcc": print_vcc, "imm": print_immediate, "optional": print_optional, "label": print_label,
    "literal": print_literal, "dual_y": print_dual_y, "smem_offset": print_smem_offset,
    "smem_offset24": print_smem_offset24, "offset24": print_offset24,
    "image_list": print_image_list, "global_addr": print_global_addr, "scratch_addr": print_scratch_addr, "saddr": print_saddr,
    "buffer_data": print_buffer_data, "buffer_addr": print_buffer_addr,
    "image_data": print_image_data, "image_addr": print_image_addr, "export": print_export, "attr": print_attr,
    **disasm_gfx9.PRINT,
}  # fmt: skip

# ---------------------------------------------------------------- modifiers


def bit_list(value: int, n: int) -> str:
    return ",".join(str(value >> i & 1) for i in range(n))


def mod_flag(m: Modifier) -> Print:
    field, text = m.field, f" {m.text}"
    return lambda f: text if f[field] else ""


def mod_number(m: Modifier) -> Print:
    return lambda f: f" {m.text}:{f[m.field]}" if f[m.field] else ""


def mod_signed(m: Modifier) -> Print:
    return lambda f: f" {m.text}:{sext(f[m.field], m.count)}" if f[m.field] else ""


def mod_always(m: Modifier) -> Print:
    return lambda f: f" {m.text}:{f[m.field]}"


def mod_one(m: Modifier) -> Print:
    return lambda f: f" {m.text}:1" if f[m.field] else ""


def mod_hex(m: Modifier) -> Print:
    return lambda f: f" {m.text}:{f[m.field]:#x}"


def mod_list(m: Modifier) -> Print:
    every = (1 << m.count) - 1

    def show(f: Fields) -> str:
        value = f[m.field] & every
        return "" if value == m.default & every else f" {m.text}:[{bit_list(value, m.count)}]"

    return show


def mod_op_sel(m: Modifier) -> Print:
    """op_sel of VOP3: sources, then bit 3 for the destination."""

    def show(f: Fields) -> str:
        value = f["OP_SEL"]
        if not value:
            return ""
        bits = [value >> i & 1 for i in range(m.count)]
        if m.count < 4 and value >> 3:
            bits[-1] = 1
        return f" op_sel:[{','.join(map(str, bits))}]"

    return show


OMOD = ("", " mul:2", " mul:4", " div:2")


def mod_omod(m: Modifier) -> Print:
    return lambda f: OMOD[f["OMOD"]]


#: DPP_CTRL ranges with a lane count: first code, name.
DPP_ROWS = ((0x100, "row_shl"), (0x110, "row_shr"), (0x120, "row_ror"), (0x150, "row_share"),
            (0x160, "row_xmask"))  # fmt: skip
DPP_NAMES = {0x140: "row_mirror", 0x141: "row_half_mirror"}


def dpp_control(value: int, dialect: str = "") -> str:
    if value < 0x100:
        return f"quad_perm:[{','.join(str(value >> 2 * i & 3) for i in range(4))}]"
    names, rows = (disasm_gfx9.DPP_NAMES, disasm_gfx9.DPP_ROWS) if dialect == "gfx9" else (DPP_NAMES, DPP_ROWS)
    if value in names:
        return names[value]
    for first, text in rows:
        if value & 0x1F0 == first:
            return f"{text}:{value & 15}"
    return f"dpp_ctrl:{value:#x}"


def mod_dpp_ctrl(m: Modifier) -> Print:
    dialect = m.text
    return lambda f: f" {dpp_control(f['DPP_CTRL'], dialect)}"


def mod_dpp8(m: Modifier) -> Print:
    names = tuple(f"LANE_SEL_{i}" for i in range(8))
    return lambda f: f" dpp8:[{','.join(str(f[n]) for n in names)}]"


def mod_dpp8_fi(m: Modifier) -> Print:
    return lambda f: " fi:1" if f["SRC0"] == 234 else ""


def mod_ds_offset(m: Modifier) -> Print:
    def show(f: Fields) -> str:
        offset = f["OFFSET1"] << 8 | f["OFFSET0"]
        return f" offset:{offset}" if offset else ""

    return show


def mod_swizzle(m: Modifier) -> Print:
    def show(f: Fields) -> str:
        offset = f["OFFSET1"] << 8 | f["OFFSET0"]
        return f" offset:{asm_imm.swizzle(offset)}" if offset else ""

    return show


def mod_smem_offset(m: Modifier) -> Print:
    def show(f: Fields) -> str:
        if f["OFFSET"] and f["SOFFSET"] != 124:
            return f" offset:{signed_hex(sext(f['OFFSET'], 21))}"
        return ""

    return show


def mod_smem_offset24(m: Modifier) -> Print:
    return lambda f: "" if f["SOFFSET"] == 124 else f" offset:{signed_hex(sext(f['IOFFSET'], 24))}"


def mod_th(m: Modifier) -> Print:
    return lambda f: f" th:{th_name(m.text, f['TH'], f['SCOPE'])}" if f["TH"] else ""


def mod_scope(m: Modifier) -> Print:
    return lambda f: f" scope:{SCOPES[f['SCOPE']]}" if f["SCOPE"] else ""


def mod_byte_sel(m: Modifier) -> Print:
    """A byte number; its high bit is bit `count` of OP_SEL, its low bit bit `default`."""
    high, low = m.count, m.default

    def show(f: Fields) -> str:
        value = (f["OP_SEL"] >> high & 1) << 1 | f["OP_SEL"] >> low & 1
        return f" byte_sel:{value}" if value else ""

    return show


def mod_format(m: Modifier) -> Print:
    return lambda f: "" if f["FORMAT"] == m.default else f" format:{asm_imm.buffer_format(f['FORMAT'])}"


def mod_dmask(m: Modifier) -> Print:
    return lambda f: f" dmask:{f['DMASK']:#x}" if f["DMASK"] else ""


def mod_dim(m: Modifier) -> Print:
    return lambda f: f" dim:SQ_RSRC_IMG_{DIMENSIONS[f['DIM']][0]}"


MODIFIERS: dict[str, Callable[[Modifier], Print]] = {
    "flag": mod_flag, "number": mod_number, "signed": mod_signed, "always": mod_always,
    "one": mod_one, "hex": mod_hex, "list": mod_list, "op_sel": mod_op_sel, "omod": mod_omod,
    "dpp_ctrl": mod_dpp_ctrl, "dpp8": mod_dpp8, "dpp8_fi": mod_dpp8_fi, "ds_offset": mod_ds_offset,
    "swizzle": mod_swizzle, "smem_offset": mod_smem_offset, "format": mod_format,
    "smem_offset24": mod_smem_offset24, "th": mod_th, "scope": mod_scope, "byte_sel": mod_byte_sel,
    "dmask": mod_dmask, "dim": mod_dim, **disasm_gfx9.MODIFIERS,
}  # fmt: skip

# ---------------------------------------------------------------- instructions


Printer = tuple[str, tuple[Print, ...], tuple[Print, ...]]


@cache
def printer(name: str, base: str, opcode: int, form: str) -> Printer:
    """(mnemonic, operand printers, modifier printers)."""
    s: Syntax = syntax(name, base, opcode, form)
    slots = tuple(PRINT[x.kind](name, x) for x in s.slots)
    return s.mnemonic, slots, tuple(MODIFIERS[m.kind](m) for m in s.modifiers)


@cache
def printer_of(name: str, encoding: str, base: str, opcode: int) -> Printer:
    """The printer of instructions in one encoding form."""
    return printer(name, base, opcode, syntax_form(name, encoding))


def syntax_form(name: str, encoding: str) -> str:
    """The form that has a syntax of its own: a literal is none."""
    form = arch(name).tables.encodings[encoding].form
    return "" if form == "lit" else form


def form_of(inst: Inst) -> str:
    return syntax_form(inst.arch, inst.encoding)


def render(made: Printer, fields: Fields) -> str:
    mnemonic, slots, modifiers = made
    texts = [p(fields) for p in slots]
    if "" in texts:  # a register an atomic does not return
        texts.remove("")
    head = f"{mnemonic} {', '.join(texts)}" if texts else mnemonic
    return head + "".join([m(fields) for m in modifiers])


def disassemble(inst: Inst, pc: int | None = None) -> str:
    """Text of `inst`. With `pc`, its byte address, a branch shows its target as a comment."""
    if inst.x is not None and inst.y is not None:
        halves = (("VOPDX", inst.x), ("VOPDY", inst.y))
        return " :: ".join(render(printer(inst.arch, b, h.opcode, ""), inst.fields) for b, h in halves)
    text = render(printer_of(inst.arch, inst.encoding, inst.base, inst.opcode), inst.fields)
    if pc is not None:
        target = branch_target(inst, pc)
        if target is not None:
            text += f"  // {target:#x}"
    return text


@cache
def is_branch(name: str, base: str, opcode: int) -> bool:
    return any(slot.kind == "label" for slot in syntax(name, base, opcode, "").slots)


def branch_target(inst: Inst, pc: int) -> int | None:
    """Where `inst`, at byte address `pc`, branches to; None when its text has no branch target."""
    if inst.base not in ("SOPP", "SOPK") or not is_branch(inst.arch, inst.base, inst.opcode):
        return None
    return pc + 4 + 4 * sext(inst.fields["SIMM16"], 16)
