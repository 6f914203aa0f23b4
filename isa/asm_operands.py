"""Reads operands: the inverse of the printers in disasm.py, one reader per slot kind.

Errors:  AsmError says what was expected, at the column of the operand.
"""

from __future__ import annotations

from collections.abc import Callable

from stuntgpu.isa import asm_imm_gfx9, asm_imm_parse
from stuntgpu.isa.asm_lex import AsmError, Value, float_bits
from stuntgpu.isa.asm_names import (
    DOUBLED,
    F16_BITS,
    F32_BITS,
    F64_HIGH,
    FIRST_VGPR,
    INV_2PI_F32,
    INV_2PI_F64,
    LITERAL,
    inline_number,
    literal_kind,
    registers,
)
from stuntgpu.isa.asm_state import Register, State
from stuntgpu.isa.decode import LITERAL_TYPES
from stuntgpu.isa.errata.encodings import LDS_DIRECT, LDS_DIRECT_NAME
from stuntgpu.isa.syntax import MIX, SHORT_BASES
from stuntgpu.isa.syntax_gfx12 import address_registers
from stuntgpu.isa.syntax_image import image_address_registers, image_data_registers
from stuntgpu.isa.syntax_types import Slot

# ---------------------------------------------------------------- constants


def float_literal(value: float, kind: str, column: int) -> tuple[int | None, int]:
    """(inline operand number or None, literal bits) of a float written in text."""
    try:
        if kind in ("f64", "i64"):
            bits = float_bits(value, 64)
            if value == float(INV_2PI_F64):
                return 248, 0
            number = 128 if bits == 0 else inline_number(bits >> 32, "f64") if not bits & 0xFFFF_FFFF else None
            return number, bits >> 32
        if kind in ("f16", "f16x2", DOUBLED):
            bits = float_bits(value, 16)
            bits |= bits << 16 if kind == DOUBLED else 0
        else:
            bits = float_bits(value, 32)
            if kind.startswith("bf16") and bits == INV_2PI_F32:
                return 248, bits >> 16
            bits = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 if kind.startswith("bf16") else bits
    except OverflowError:
        raise AsmError(f"{value} does not fit the operand", column) from None
    return inline_number(bits, kind), bits


def integer_literal(value: int, kind: str, column: int) -> tuple[int | None, int]:
    """(inline operand number or None, literal bits) of an integer written in text."""
    bits = 16 if kind in ("f16", "bf16", "i16") else 32
    if abs(value) >= 1 << 63:  # 64 bits, two's complement
        value = (value + (1 << 63)) % (1 << 64) - (1 << 63)
    if -16 <= value <= 64:
        return (128 + value if value >= 0 else 192 - value), value & ((1 << bits) - 1)
    wide = value & 0xFFFF_FFFF
    fits = -(1 << bits - 1) <= value < 1 << bits
    halves = fits and kind in ("f16", "bf16")
    number = inline_number(value & 0xFFFF if halves else wide, kind) if kind != "i64" else None
    if number is not None and (fits or kind == "i16"):
        return number, wide
    if not fits:
        raise AsmError(f"expected a constant of {bits} bits, found {value:#x}", column)
    return None, wide if kind == "i16" else value & ((1 << bits) - 1)


def constant(state: State, slot: Slot, v: Value, forced: bool, column: int) -> int:
    """Operand number of a constant; sets the literal when it is not an inline one."""
    kind = literal_kind(slot.fmt, slot.bits)
    if v.is_float:
        number, bits = float_literal(float(v.value), kind, column)
    elif forced and 0 <= v.integer < 1 << 32:
        number, bits = None, v.integer
    else:
        number, bits = integer_literal(v.integer, kind, column)
    if number is not None and not forced and not v.symbolic:
        return number
    if not literal_allowed(state, slot):
        what = "an inline constant (-16..64, 0.5, 1.0, 2.0, 4.0) or a register"
        raise AsmError(f"expected {what}, found {v.value}", column)
    state.set_literal(bits, column)
    return LITERAL


def literal_allowed(state: State, slot: Slot) -> bool:
    row = state.row
    if row is None or slot.style not in (*LITERAL_TYPES, MIX):
        return False
    if row.base.startswith("VOPD") or "LITERAL" in row.operand_text:
        return True
    return bool({"lit", f"lit_{slot.field[-1]}"} & row.forms)


# ---------------------------------------------------------------- registers


def want(state: State, register: Register | None, file: str, count: int) -> Register:
    """`register` if it is one of `file` with `count` registers."""
    names = {"v": "a VGPR", "s": "an SGPR", "a": "an AGPR"}
    what = names[file] if count == 1 else f"{count} {names[file][2:].strip()}s"
    if register is None:
        raise state.cursor.fail(what)
    if register.file != file or register.count not in (0, count):
        raise AsmError(f"expected {what}", register.column)
    return register


def scalar_number(state: State, register: Register, bits: int) -> int:
    """Operand number of a scalar register of `bits`, alignment checked."""
    count = registers(bits)
    want(state, register, "s", mask_count(state, register, bits, count))
    if count > 1 and register.number < 128 and register.number != state.arch.null:
        align = 2 if count == 2 else 4
        base = state.arch.ttmp if register.number >= state.arch.ttmp else 0
        if (register.number - base) % align:
            raise AsmError(f"first register must be a multiple of {align}", register.column)
    return register.number


def mask_count(state: State, register: Register, bits: int, count: int) -> int:
    """A lane mask is one register in wave32, two in wave64."""
    if bits == 1 and (register.count == 2 or state.arch.wave_sizes[0] == 64):
        return 2
    return count


def set_half(state: State, slot: Slot, register: Register, field_value: int) -> int:
    """Field value of a VGPR with its half; sets OP_SEL where halves live there."""
    if slot.half == "" and register.half:
        raise AsmError("this operand has no halves", register.column)
    if slot.half == "bit7":
        if register.number > 127:
            raise AsmError("16-bit operands of this encoding reach v0 to v127 only", register.column)
        return field_value | (128 if register.half == "h" else 0)
    if slot.half == "opsel" and register.half == "h":
        state.fields["OP_SEL"] = state.fields.get("OP_SEL", 0) | 1 << slot.index
    return field_value


def want_vector(state: State, slot: Slot, register: Register | None) -> Register:
    """A VGPR operand, or an AccVGPR where the slot admits one."""
    if not slot.acc:
        return want(state, register, "v", registers(slot.bits))
    is_acc = slot.acc == "always" or (register is not None and register.file == "a")
    found = want(state, register, "a" if is_acc else "v", registers(slot.bits))
    set_bank(state, slot, found)
    return found


def set_bank(state: State, slot: Slot, register: Register) -> None:
    """Sets the bit that makes a register an AccVGPR; operands that share it must agree."""
    if slot.acc in ("", "always"):
        return
    before = state.banks.setdefault((slot.acc, slot.index), register.file)
    if before != register.file:
        raise AsmError("data registers must all be VGPRs or all AccVGPRs", register.column)
    if register.file == "a":
        state.fields[slot.acc] = state.fields.get(slot.acc, 0) | 1 << slot.index


def read_vgpr(state: State, slot: Slot) -> None:
    def plain() -> None:
        register = want_vector(state, slot, state.register())
        number = set_half(state, slot, register, register.number)
        wide = slot.field in ("SRC0", "SRC1", "SRC2")
        state.set(slot.field, number + (FIRST_VGPR if wide else 0))

    if slot.signed:
        with_modifiers(state, slot, plain)
    else:
        plain()


def read_sreg(state: State, slot: Slot) -> None:
    register = state.register()
    if register is None:
        raise state.cursor.fail("a scalar register")
    state.set(slot.field, scalar_number(state, register, slot.bits))


def read_spair(state: State, slot: Slot) -> None:
    register = state.register()
    if register is None:
        raise state.cursor.fail(f"{registers(slot.bits)} SGPRs")
    number = scalar_number(state, register, slot.bits)
    state.set(slot.field, number >> (1 if slot.field == "SBASE" else 2))


def read_vcc(state: State, slot: Slot) -> None:
    if not (state.cursor.accept("vcc_lo") or state.cursor.accept("vcc")):
        raise state.cursor.fail("vcc_lo" if state.arch.wave_sizes[0] == 32 else "vcc")


# ---------------------------------------------------------------- sources


#: What after a minus sign makes it part of an expression.
UNARY = frozenset("(-+~!")


def with_modifiers(state: State, slot: Slot, plain: Callable[[], None]) -> None:
    """-x, |x|, neg(x), abs(x) around an operand, as fields of the encoding."""
    with_signs(state, plain, lambda negate, absolute: set_sign(state, slot, 1 << slot.index, negate, absolute))


def with_signs(state: State, plain: Callable[[], None], apply: Callable[[bool, bool], None]) -> None:
    """-x, |x|, neg(x), abs(x) around an operand; `apply` gets what was there."""
    cursor, negate = state.cursor, False
    if cursor.token.text == "-" and cursor.peek().kind not in ("int", "float") and cursor.peek().text not in UNARY:
        cursor.at += 1
        negate = True
    in_neg = cursor.token.text == "neg" and cursor.peek().text == "("
    cursor.at += 2 * in_neg
    bars = cursor.accept("|")
    in_abs = not bars and cursor.token.text == "abs" and cursor.peek().text == "("
    cursor.at += 2 * in_abs
    if in_neg and cursor.token.text == "neg":
        raise cursor.fail("an operand")
    cursor.in_bars = bars
    plain()
    cursor.in_bars = False
    if bars:
        cursor.expect("|")
    if in_abs:
        cursor.expect(")")
    if in_neg:
        cursor.expect(")")
    apply(negate or in_neg, bars or in_abs)


def set_sign(state: State, slot: Slot, bit: int, negate: bool, absolute: bool) -> None:
    fields = state.fields
    dpp_only = state.row is not None and not state.row.base.startswith(("VOP3", "VINTERP"))
    if negate:
        if dpp_only:
            fields[f"SRC{slot.index}_NEG"] = 1
        else:
            fields["NEG"] = fields.get("NEG", 0) | bit
    if absolute:
        name = "NEG_HI" if slot.style == MIX else "ABS"
        if dpp_only:
            fields[f"SRC{slot.index}_ABS"] = 1
        else:
            fields[name] = fields.get(name, 0) | bit


def read_source(state: State, slot: Slot) -> None:
    if slot.signed:
        with_modifiers(state, slot, lambda: read_plain_source(state, slot))
    elif folds_signs(state, slot):
        column = state.cursor.token.column
        with_signs(state, lambda: read_plain_source(state, slot), lambda n, a: fold(state, slot, n, a, column))
    else:
        read_plain_source(state, slot)


def folds_signs(state: State, slot: Slot) -> bool:
    """Whether signs of constants become part of the constant: floats of short encodings."""
    is_short = state.row is not None and state.row.base in SHORT_BASES and "DPP_FORM" not in state.fields
    return is_short and slot.fmt in FOLDED


def fold(state: State, slot: Slot, negate: bool, absolute: bool, column: int) -> None:
    """The constant just read with its sign changed."""
    if not negate and not absolute:
        return
    number, literal = state.fields[slot.field], state.literal
    bits = literal if number == LITERAL else constant_bits(number, slot.fmt)
    if bits is None:
        raise AsmError("expected a constant: registers have no sign in this encoding", column)
    top = FOLDED[slot.fmt]
    bits = (bits & ~top if absolute else bits) ^ (top if negate else 0)
    inline = inline_number(bits, literal_kind(slot.fmt, slot.bits)) if bits else 128
    if number == LITERAL:
        state.literal = None
    if inline is None and not literal_allowed(state, slot):
        raise AsmError(f"no literal ({bits:#x}) in this operand", column)
    if inline is None:
        state.set_literal(bits, column)
    state.set(slot.field, LITERAL if inline is None else inline)


#: Formats whose constants have a sign, and where it is in the literal (the high word of f64).
FOLDED = {"f16": 1 << 15, "f32": 1 << 31, "f64": 1 << 31}


def constant_bits(number: int, fmt: str) -> int | None:
    """Literal bits of an inline constant, None for another number (and for an integer of f64)."""
    if 240 <= number <= 248:
        table = {"f16": F16_BITS, "f32": F32_BITS, "f64": (*F64_HIGH, 0x3FC45F30)}[fmt]
        return table[number - 240]
    value = number - 128 if number <= 192 else 192 - number
    if not 128 <= number <= 208 or (fmt == "f64" and value):
        return None
    return value & (0xFFFF if fmt == "f16" else 0xFFFF_FFFF)


def read_plain_source(state: State, slot: Slot) -> None:
    cursor, column = state.cursor, state.cursor.token.column
    if cursor.token.text == "lit" and cursor.peek().text == "(":
        cursor.at += 2
        v = cursor.value()
        cursor.expect(")")
        state.set(slot.field, constant(state, slot, v, True, column))
        return
    if state.row is not None and state.row.base.startswith("VOPD") and cursor.accept(LDS_DIRECT_NAME):
        state.set(slot.field, LDS_DIRECT)
        return
    register = state.register()
    if register is None:
        v = cursor.value("a register or a constant")
        if slot.style in ("src_vgpr", "vgpr"):
            raise AsmError("expected a VGPR", column)
        state.set(slot.field, constant(state, slot, v, False, column))
    elif register.file == "v" or (register.file == "a" and slot.acc):
        read_source_vgpr(state, slot, register)
    else:
        is_null = slot.style == "src_vgpr_or_inline" and register.number == state.arch.null
        if slot.style in ("src_vgpr", "vgpr", "src_vgpr_or_inline") and not is_null:
            raise AsmError("expected a VGPR", column)
        state.set(slot.field, scalar_number(state, register, slot.bits))


SCALAR_STYLES = frozenset({"ssrc", "sreg", "sdst", "sreg_m0_inl", "ssrc_lanesel", "smem_offset"})


def read_source_vgpr(state: State, slot: Slot, register: Register) -> None:
    if slot.style in SCALAR_STYLES:
        raise AsmError("expected a scalar register or a constant", register.column)
    want_vector(state, slot, register)
    state.set(slot.field, FIRST_VGPR + set_half(state, slot, register, register.number))


def read_literal(state: State, slot: Slot) -> None:
    """SIMM32 of FMAMK and its like: any constant, always stored as literal."""
    cursor, column = state.cursor, state.cursor.token.column
    wrapped = cursor.token.text == "lit" and cursor.peek().text == "("
    cursor.at += 2 * wrapped
    v = cursor.value("a literal constant")
    if wrapped:
        cursor.expect(")")
    kind = "f16" if slot.bits == 16 and not wrapped else "i32"
    bits = float_literal(float(v.value), kind, column)[1] if v.is_float else integer_literal(v.integer, kind, column)[1]
    state.set_literal(bits, column)


def read_dual_y(state: State, slot: Slot) -> None:
    register = want(state, whole(state.register()), "v", 1)
    if register.number & 1 == state.fields["VDSTX"] & 1:
        raise AsmError("one destination of a dual instruction must be even, the other odd", register.column)
    state.set("VDSTY", register.number >> 1)


# ---------------------------------------------------------------- immediates, labels


IMMEDIATES = asm_imm_parse.READERS | asm_imm_gfx9.READERS


def read_immediate(state: State, slot: Slot) -> None:
    reader = IMMEDIATES.get(slot.style)
    if reader is not None:
        state.set(slot.field, reader(state))
    else:
        state.set(slot.field, state.either(16, "an immediate") & 0xFFFF)


def read_label(state: State, slot: Slot) -> None:
    cursor, column = state.cursor, state.cursor.token.column
    v = cursor.value("a label or an offset in dwords")
    if not v.symbolic:
        if v.is_float or not -0x8000 <= v.integer <= 0xFFFF:
            raise AsmError(f"branch offset {v.value} does not fit 16 bits", column)
        state.set(slot.field, v.integer & 0xFFFF)
        return
    distance = v.integer - state.pc - 4
    if distance % 4 or not -0x20000 <= distance < 0x20000:
        raise AsmError(f"branch target is {distance} bytes away, out of reach", column)
    state.set(slot.field, distance >> 2 & 0xFFFF)


# ---------------------------------------------------------------- memory operands


def read_smem_offset(state: State, slot: Slot) -> None:
    register = state.register()
    if register is None:
        state.set("SOFFSET", state.arch.null)
        unsigned = state.row is not None and state.row.name.startswith("S_BUFFER")
        state.set("OFFSET", state.unsigned(20, "an offset") if unsigned else state.signed(21, "an offset"))
    else:
        state.set("SOFFSET", scalar_number(state, register, 32))


def read_smem_offset24(state: State, slot: Slot) -> None:
    register = state.register()
    if register is None:
        state.set("SOFFSET", state.arch.null)
        state.set("IOFFSET", state.signed(24, "an offset"))
    else:
        state.set("SOFFSET", scalar_number(state, register, 32))


def read_offset24(state: State, slot: Slot) -> None:
    state.set("IOFFSET", state.signed(24, "an offset"))


def read_off(state: State) -> bool:
    return state.cursor.accept("off")


def whole(register: Register | None) -> Register | None:
    """`register`, which must not be a half."""
    if register is not None and register.half:
        raise AsmError("this operand has no halves", register.column)
    return register


def read_global_addr(state: State, slot: Slot) -> None:
    register = whole(state.register())
    if register is None or register.file != "v" or register.count > 2:
        raise state.cursor.fail("one VGPR, or two with saddr off")
    state.set(slot.field, register.number)

    def check() -> None:
        wanted = 2 if state.fields.get("SADDR") == state.arch.no_saddr else 1
        if register.count != wanted:
            with_saddr = "without" if wanted == 2 else "with"
            raise AsmError(f"the address is {wanted} VGPR(s) {with_saddr} a scalar address", register.column)

    state.checks.append(check)


def read_scratch_addr(state: State, slot: Slot) -> None:
    if read_off(state):
        state.set("SVE", 0)
        return
    state.set(slot.field, want(state, whole(state.register()), "v", 1).number)
    state.set("SVE", 1)


def read_saddr(state: State, slot: Slot) -> None:
    if read_off(state):
        state.set("SADDR", state.arch.no_saddr)
        return
    register = state.register()
    if register is None:
        raise state.cursor.fail("a scalar address or off")
    state.set("SADDR", scalar_number(state, register, slot.bits))


def read_buffer_data(state: State, slot: Slot) -> None:
    register = whole(state.register())
    if register is None or register.file != "v":
        raise state.cursor.fail("VGPRs")
    state.set(slot.field, register.number)

    def check() -> None:
        want(state, register, "v", registers(slot.bits) + state.fields.get("TFE", 0))

    state.checks.append(check)


def read_buffer_addr(state: State, slot: Slot) -> None:
    if read_off(state):
        register = None
    else:
        register = whole(state.register())
        if register is None or register.file != "v":
            raise state.cursor.fail("VGPRs or off")
        state.set("VADDR", register.number)
    column = state.cursor.token.column

    def check() -> None:
        parts = state.fields.get("OFFEN", 0) + state.fields.get("IDXEN", 0)
        if parts != (register.count if register else 0):
            raise AsmError(f"offen and idxen ask for {parts} address VGPR(s)", column)

    state.checks.append(check)


def read_image(state: State, slot: Slot, count: Callable[[], int]) -> None:
    register = whole(state.register())
    if register is None or register.file != "v":
        raise state.cursor.fail("VGPRs")
    state.set(slot.field, register.number)
    state.checks.append(lambda: void(want(state, register, "v", count())))


def void(_: object) -> None:
    """Drops a result."""


def read_image_data(state: State, slot: Slot) -> None:
    f = state.fields
    read_image(state, slot, lambda: image_data_registers(slot.style, f.get("DMASK", 0), f.get("D16", 0), f.get("TFE", 0)))


def read_image_addr(state: State, slot: Slot) -> None:
    f = state.fields
    read_image(state, slot, lambda: image_address_registers(slot.style, f.get("DIM", 0), f.get("A16", 0)))


def read_image_list(state: State, slot: Slot) -> None:
    """[v0, v1, v[2:5]]: registers field by field; or a single VGPR."""
    cursor, column = state.cursor, state.cursor.token.column
    listed = cursor.accept("[")
    counts: list[int] = []
    while True:
        register = state.register()
        if register is None or register.file != "v" or len(counts) >= slot.index:
            raise cursor.fail(f"up to {slot.index} address operands")
        state.set(f"VADDR{len(counts)}", register.number)
        counts.append(register.count)
        if not listed or not cursor.accept(","):
            break
    if listed:
        cursor.expect("]")

    def check() -> None:
        f = state.fields
        wanted = address_registers(slot.style, f.get("DIM", 0), f.get("A16", 0), slot.index)
        if tuple(counts) != wanted:
            raise AsmError(f"expected address operands of {wanted} registers", column)

    state.checks.append(check)


# ---------------------------------------------------------------- export, attributes


def read_export(state: State, slot: Slot) -> None:
    if slot.index == 0:
        names = {n.lower(): v for v, n in state.arch.tables.enums["tgt"].items()}
        token = state.cursor.token
        if token.text not in names:
            raise state.cursor.fail("an export target such as mrt0 or pos0")
        state.cursor.at += 1
        state.set("TGT", names[token.text])
        state.cursor.accept(",")
    if read_off(state):
        return
    state.set(slot.field, want(state, state.register(), "v", 1).number)
    state.fields["EN"] = state.fields.get("EN", 0) | 1 << slot.index


def read_attr(state: State, slot: Slot) -> None:
    token = state.cursor.token
    name, _, channel = token.text.partition(".")
    digits = name.removeprefix("attr")
    if not digits.isdigit() or int(digits) > 63 or channel not in tuple("xyzw"):
        raise state.cursor.fail("an attribute such as attr0.x")
    state.cursor.at += 1
    state.set("ATTR", int(digits))
    state.set("ATTR_CHAN", "xyzw".index(channel))


READ: dict[str, Callable[[State, Slot], None]] = {
    "src": read_source, "vgpr": read_vgpr, "returned": read_vgpr, "sreg": read_sreg,
    "spair": read_spair, "vcc": read_vcc, "imm": read_immediate, "optional": read_immediate, "label": read_label,
    "literal": read_literal, "dual_y": read_dual_y, "smem_offset": read_smem_offset,
    "smem_offset24": read_smem_offset24, "offset24": read_offset24,
    "image_list": read_image_list, "global_addr": read_global_addr, "scratch_addr": read_scratch_addr, "saddr": read_saddr,
    "buffer_data": read_buffer_data, "buffer_addr": read_buffer_addr,
    "image_data": read_image_data, "image_addr": read_image_addr, "export": read_export,
    "attr": read_attr,
}  # fmt: skip
