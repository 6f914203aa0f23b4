"""Structured immediates of CDNA: messages with operation and stream, data and number formats of
typed buffers, register indexing modes. Printers (value -> text) and parsers beside each other.

Source:  names as LLVM's assembler reads and writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from stuntgpu.isa import asm_imm, asm_imm_parse
from stuntgpu.isa.asm_lex import AsmError
from stuntgpu.isa.asm_state import State

# ---------------------------------------------------------------- s_sendmsg

GS, GS_DONE, SYSMSG = 2, 3, 15
GS_OPERATIONS = {0: "GS_OP_NOP", 1: "GS_OP_CUT", 2: "GS_OP_EMIT", 3: "GS_OP_EMIT_CUT"}
SYSTEM_OPERATIONS = {
    1: "SYSMSG_OP_ECC_ERR_INTERRUPT", 2: "SYSMSG_OP_REG_RD", 4: "SYSMSG_OP_TTRACE_PC",
}
#: Messages whose operation is part of the text -> names of operations.
OPERATIONS = {GS: GS_OPERATIONS, GS_DONE: GS_OPERATIONS, SYSMSG: SYSTEM_OPERATIONS}


def message_names(name: str) -> dict[int, str]:
    """Every message; the vendor's table leaves two out."""
    return asm_imm.fields(name, "sendmsg")[0][2] | {GS: "MSG_GS", SYSMSG: "MSG_SYSMSG"}


def message_text(names: Mapping[int, str], message: int, operation: int, stream: int) -> str:
    """Symbolic text, "" where some part has no name or no meaning."""
    if message not in names:
        return ""
    if message not in OPERATIONS:
        return f"sendmsg({names[message]})" if operation == stream == 0 else ""
    text = OPERATIONS[message].get(operation)
    if text is None or (message == SYSMSG and stream):
        return ""
    if message == GS_DONE and operation == 0:
        return f"sendmsg({names[message]}, {text})" if stream == 0 else ""
    if message == GS and operation == 0:
        return ""
    return f"sendmsg({names[message]}, {text}{f', {stream}' if message != SYSMSG else ''})"


def sendmsg(name: str, value: int) -> str:
    message, operation, stream = value & 15, value >> 4 & 7, value >> 8 & 3
    if value & ~0x37F:  # bits of no field
        return str(value)
    symbolic = message_text(message_names(name), message, operation, stream)
    return symbolic or f"sendmsg({message}, {operation}, {stream})"


def read_sendmsg(state: State) -> int:
    if not asm_imm_parse.is_call(state, "sendmsg"):
        return asm_imm_parse.number(state)
    cursor = state.cursor
    cursor.at += 2
    names = {text: v for v, text in message_names(state.arch.name).items()}
    message = asm_imm_parse.named(state, names, 4, "a message")
    value = message
    if cursor.accept(","):
        operations = {text: v for v, text in OPERATIONS.get(message, {}).items()}
        value |= asm_imm_parse.named(state, operations, 3, "an operation") << 4
    if cursor.accept(","):
        value |= asm_imm_parse.named(state, {}, 2, "a stream") << 8
    cursor.expect(")")
    return value


# ---------------------------------------------------------------- typed buffers

DATA_FORMATS = tuple(
    f"BUF_DATA_FORMAT_{n}"
    for n in ("INVALID", "8", "16", "8_8", "32", "16_16", "10_11_11", "11_11_10", "10_10_10_2", "2_10_10_10",
              "8_8_8_8", "32_32", "16_16_16_16", "32_32_32", "32_32_32_32", "RESERVED_15")
)  # fmt: skip
NUMBER_FORMATS = tuple(
    f"BUF_NUM_FORMAT_{n}"
    for n in ("UNORM", "SNORM", "USCALED", "SSCALED", "UINT", "SINT", "RESERVED_6", "FLOAT")
)
DEFAULT_DATA, DEFAULT_NUMBER = 1, 0


def split_format(data: int, kind: int) -> str:
    """Names of the formats that are not the default ones, with a colon list; "" when both are."""
    parts = [DATA_FORMATS[data]] if data != DEFAULT_DATA else []
    parts += [NUMBER_FORMATS[kind]] if kind != DEFAULT_NUMBER else []
    return f"[{','.join(parts)}]" if parts else ""


def read_split_format(state: State) -> None:
    """format:[DATA], format:[DATA,NUMBER], format:[NUMBER] or format:value (both fields)."""
    cursor = state.cursor
    if not cursor.accept("["):
        value = state.unsigned(7, "a buffer format")
        state.set("DFMT", value & 15)
        state.set("NFMT", value >> 4)
        return
    seen: set[str] = set()
    while True:
        token = cursor.token
        field, names = ("NFMT", NUMBER_FORMATS) if token.text in NUMBER_FORMATS else ("DFMT", DATA_FORMATS)
        if token.text not in names or field in seen:
            raise AsmError("expected a format such as BUF_DATA_FORMAT_32 or BUF_NUM_FORMAT_FLOAT", token.column)
        seen.add(field)
        state.set(field, names.index(token.text))
        cursor.at += 1
        if not cursor.accept(","):
            break
    cursor.expect("]")


# ---------------------------------------------------------------- register indexing

INDEX_BITS = ("SRC0", "SRC1", "SRC2", "DST")


#: Bits of the field that says which operands are indexed; the upper ones mean nothing.
INDEX_FIELD_BITS = {"SOPC": 8, "SOPP": 16}


def gpr_idx(name: str, value: int) -> str:
    if value >> len(INDEX_BITS):
        return hex(value)
    return f"gpr_idx({','.join(n for i, n in enumerate(INDEX_BITS) if value >> i & 1)})"


def read_gpr_idx(state: State) -> int:
    if not asm_imm_parse.is_call(state, "gpr_idx"):
        return state.unsigned(INDEX_FIELD_BITS[state.row.base if state.row else "SOPC"], "gpr_idx(...) or a number")
    cursor = state.cursor
    cursor.at += 2
    value = 0
    while cursor.token.text != ")":
        token = cursor.token
        if token.text not in INDEX_BITS or value >> INDEX_BITS.index(token.text) & 1:
            raise AsmError(f"expected each of {', '.join(INDEX_BITS)} at most once", token.column)
        value |= 1 << INDEX_BITS.index(token.text)
        cursor.at += 1
        if not cursor.accept(","):
            break
    cursor.expect(")")
    return value


READERS: dict[str, Callable[[State], int]] = {"sendmsg gfx9": read_sendmsg, "gpr_idx": read_gpr_idx}
