"""Readers of the operands and modifiers that CDNA has of its own: the inverse of disasm_gfx9.

Errors:  AsmError says what was expected, at the column of the operand.
"""

from __future__ import annotations

from collections.abc import Callable

from stuntgpu.isa import asm_imm_gfx9, asm_operands
from stuntgpu.isa.asm_lex import AsmError
from stuntgpu.isa.asm_modifiers import Read, colon
from stuntgpu.isa.asm_names import FIRST_VGPR, LITERAL, registers
from stuntgpu.isa.asm_state import State
from stuntgpu.isa.decode_rules import format_registers
from stuntgpu.isa.disasm_gfx9 import SELECTS, UNUSED
from stuntgpu.isa.syntax_types import Modifier, Slot

# ---------------------------------------------------------------- SDWA


def read_sdwa(state: State, slot: Slot) -> None:
    """A VGPR, scalar register or inline constant; sext(x) of integers, -x and |x| of floats."""
    cursor = state.cursor
    if cursor.token.text == "sext" and cursor.peek().text == "(":
        if slot.style != "int":
            raise cursor.fail("a float operand (sext is for integers)")
        cursor.at += 2
        read_sdwa_plain(state, slot)
        cursor.expect(")")
        state.set(f"SRC{slot.index}_SEXT", 1)
    elif slot.style == "int":
        read_sdwa_plain(state, slot)
    else:
        asm_operands.with_modifiers(state, slot, lambda: read_sdwa_plain(state, slot))


def read_sdwa_plain(state: State, slot: Slot) -> None:
    column = state.cursor.token.column
    register = state.register()
    if register is not None and register.file != "s":
        state.set(slot.field, asm_operands.want(state, register, "v", registers(slot.bits)).number)
        return
    if register is not None:
        number = asm_operands.scalar_number(state, register, slot.bits)
    else:
        value = state.cursor.value("a register or an inline constant")
        number = asm_operands.constant(state, slot, value, False, column)
    if number == LITERAL:
        raise AsmError("no literal in this form", column)
    state.set(slot.field, number)
    state.set(f"S{slot.index}", 1)


def read_sdwa_mask(state: State, slot: Slot) -> None:
    """vcc, or another pair of scalar registers."""
    if state.cursor.accept("vcc"):
        return
    register = state.register()
    if register is None:
        raise state.cursor.fail("vcc or two scalar registers")
    state.set("SDST", asm_operands.scalar_number(state, register, 64))
    state.set("SD", 1)


def chosen(m: Modifier, names: tuple[str, ...]) -> dict[str, Read]:
    def read(state: State) -> None:
        colon(state)
        token = state.cursor.token
        if token.text not in names:
            raise AsmError(f"expected one of {', '.join(names)}, found {token.text!r}", token.column)
        state.cursor.at += 1
        state.set(m.field, names.index(token.text))

    return {m.text: read}


# ---------------------------------------------------------------- memory


def read_smem_enabled(state: State, slot: Slot) -> None:
    """An immediate offset, or a register that `offset:` may follow."""
    register = state.register()
    if register is None:
        read_immediate_offset(state)
        return
    number = asm_operands.scalar_number(state, register, 32)
    if number > 127:
        raise AsmError("expected an SGPR or an offset", register.column)
    state.set("OFFSET", number)
    state.checks.append(lambda: move_register(state, number))


def read_immediate_offset(state: State) -> None:
    unsigned = state.row is not None and state.row.name.startswith("S_BUFFER")
    state.set("OFFSET", state.unsigned(20, "an offset") if unsigned else state.signed(21, "an offset"))
    state.set("IMM", 1)


def move_register(state: State, number: int) -> None:
    """With an immediate as well, the register has a field of its own."""
    if state.fields.get("IMM"):
        state.set("SOFFSET", number)
        state.set("SOFFSET_EN", 1)


def smem_enabled(m: Modifier) -> dict[str, Read]:
    def read(state: State) -> None:
        colon(state)
        if state.fields.get("IMM"):
            raise state.cursor.fail("one immediate offset")
        read_immediate_offset(state)

    return {m.text: read}


def split_format(m: Modifier) -> dict[str, Read]:
    def read(state: State) -> None:
        colon(state)
        asm_imm_gfx9.read_split_format(state)

    return {m.text: read}


# ---------------------------------------------------------------- vector ALU


def bitop3(m: Modifier) -> dict[str, Read]:
    def read(state: State) -> None:
        colon(state)
        value = state.unsigned(8, "a truth table of 8 bits")
        state.set("OMOD", value >> 6)
        state.set("ABS", value >> 3 & 7)
        state.set("NEG", value & 7)

    return {m.text: read}


def op_sel_bit(m: Modifier) -> dict[str, Read]:
    def read(state: State) -> None:
        colon(state)
        value = state.unsigned(1, "0 or 1")
        state.set("OP_SEL", state.fields.get("OP_SEL", 0) & ~(1 << m.count) | value << m.count)

    return {m.text: read}


# ---------------------------------------------------------------- matrix


def read_formatted(state: State, slot: Slot) -> None:
    """A or B of the instructions whose format fields say how many registers they take."""
    register = state.register()
    if register is None or register.file not in ("v", "a"):
        raise state.cursor.fail("vector registers")
    state.set(slot.field, FIRST_VGPR + register.number)
    asm_operands.set_bank(state, slot, register)
    code = "BLGP" if slot.index else "CBSZ"

    def check() -> None:
        wanted = format_registers(state.fields.get(code, 0))
        if register.count != wanted:
            raise AsmError(f"expected {wanted} registers for the format that {code.lower()} names", register.column)

    state.checks.append(check)


READ: dict[str, Callable[[State, Slot], None]] = {
    "sdwa": read_sdwa, "sdwa_mask": read_sdwa_mask, "smem_enabled": read_smem_enabled,
    "lds_or_data": asm_operands.read_vgpr, "formatted": read_formatted,
}  # fmt: skip
MAKERS: dict[str, Callable[[Modifier], dict[str, Read]]] = {
    "sdwa_sel": lambda m: chosen(m, SELECTS), "sdwa_unused": lambda m: chosen(m, UNUSED),
    "smem_enabled": smem_enabled, "split_format": split_format, "bitop3": bitop3, "op_sel_bit": op_sel_bit,
}  # fmt: skip
