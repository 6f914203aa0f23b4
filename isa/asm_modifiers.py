"""Reads modifiers: clamp, offset:16, op_sel:[0,1], quad_perm:[0,1,2,3] and the others.

A reader is made for each `Modifier` of a syntax; it says which words begin it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from stuntgpu.isa import asm_imm, asm_imm_parse, disasm_gfx9
from stuntgpu.isa.asm_lex import AsmError
from stuntgpu.isa.asm_state import State
from stuntgpu.isa.syntax_gfx12 import SCOPES, th_values
from stuntgpu.isa.syntax_image import DIMENSIONS
from stuntgpu.isa.syntax_types import Modifier

Read = Callable[[State], None]


def colon(state: State) -> None:
    state.cursor.expect(":")


def number_list(state: State, limit: int, what: str) -> list[int]:
    """[a, b, ...] with 0 <= a < limit."""
    cursor = state.cursor
    cursor.expect("[")
    out: list[int] = []
    while True:
        column = cursor.token.column
        v = cursor.value(what).integer
        if not 0 <= v < limit:
            raise AsmError(f"expected {what} below {limit}, found {v}", column)
        out.append(v)
        if not cursor.accept(","):
            break
    cursor.expect("]")
    return out


# Each maker returns {word: reader}.


def flag(m: Modifier) -> dict[str, Read]:
    return {m.text: lambda s: s.set(m.field, 1)}


def field_bits(state: State, name: str) -> int:
    row = state.row
    if row is None:
        return 16
    tables = state.arch.tables
    for e in tables.encodings.values():
        if e.base == tables.encodings[row.encoding].base and e.has(name):
            return e.field(name).bits
    return 16


def number(m: Modifier) -> dict[str, Read]:
    def read(s: State) -> None:
        colon(s)
        s.set(m.field, s.unsigned(field_bits(s, m.field), m.text))

    return {m.text: read}


def signed(m: Modifier) -> dict[str, Read]:
    """Offset of FLAT instructions: FLAT itself takes no negative one."""

    def read(s: State) -> None:
        colon(s)
        if s.row is not None and s.row.base == "FLAT":
            s.set(m.field, s.unsigned(field_bits(s, m.field) - 1, "an offset"))
            return
        s.set(m.field, s.signed(field_bits(s, m.field), "an offset"))

    return {m.text: read}


def one(m: Modifier) -> dict[str, Read]:
    def read(s: State) -> None:
        colon(s)
        value = s.unsigned(1, "0 or 1")
        # Before GFX11, bound_ctrl:0 was the way to write the bit being set.
        old = m.text == "bound_ctrl" and not s.arch.has_half_vgprs
        s.set(m.field, 1 if old else value)

    return {m.text: read}


def bit_list(m: Modifier) -> dict[str, Read]:
    def read(s: State) -> None:
        colon(s)
        column = s.cursor.token.column
        bits = number_list(s, 2, "0 or 1")
        if len(bits) > m.count:
            raise AsmError(f"expected {m.count} entries, found {len(bits)}", column)
        keep = s.fields.get(m.field, m.default) & ~((1 << len(bits)) - 1)
        s.set(m.field, keep | sum(b << i for i, b in enumerate(bits)))

    return {m.text: read}


def op_sel(m: Modifier) -> dict[str, Read]:
    def read(s: State) -> None:
        colon(s)
        column = s.cursor.token.column
        bits = number_list(s, 2, "0 or 1")
        if len(bits) > max(m.count, 2):
            raise AsmError(f"expected {m.count} entries, found {len(bits)}", column)
        value = sum(b << i for i, b in enumerate(bits))
        if len(bits) == m.count and m.count < 4 and has_destination(s):
            last = bits[-1]
            value = value & ~(1 << m.count - 1) | last << 3
        s.set("OP_SEL", s.fields.get("OP_SEL", 0) | value)

    return {m.text: read}


def has_destination(s: State) -> bool:
    """Whether the last entry of op_sel speaks of the destination."""
    row = s.row
    if row is None or row.name.startswith(("V_CMPX", "V_PERMLANE")):
        return False
    return not (row.name.startswith("V_CMP_") and "DPP_FORM" in s.fields)


def omod(m: Modifier) -> dict[str, Read]:
    def read_factor(values: dict[int, int]) -> Read:
        def read(s: State) -> None:
            colon(s)
            column = s.cursor.token.column
            factor = s.cursor.value("a factor").integer
            if factor not in values:
                raise AsmError(f"expected one of {sorted(values)}, found {factor}", column)
            s.set("OMOD", values[factor])

        return read

    return {"mul": read_factor({1: 0, 2: 1, 4: 2}), "div": read_factor({1: 0, 2: 3})}


def dpp_ctrl(m: Modifier) -> dict[str, Read]:
    def quad(s: State) -> None:
        colon(s)
        column = s.cursor.token.column
        lanes = number_list(s, 4, "a lane")
        if len(lanes) != 4:
            raise AsmError(f"expected 4 lanes, found {len(lanes)}", column)
        s.set("DPP_CTRL", sum(lane << 2 * i for i, lane in enumerate(lanes)))

    def row(first: int, least: int) -> Read:
        def read(s: State) -> None:
            colon(s)
            column = s.cursor.token.column
            n = s.unsigned(4, "a lane count")
            if n < least:
                raise AsmError(f"expected a lane count from {least} to 15, found {n}", column)
            s.set("DPP_CTRL", first + n)

        return read

    readers: dict[str, Read] = {"quad_perm": quad}
    rows, names = dpp_controls(m.text)
    for first, name in rows:
        readers[name] = row(first, 0 if first >= 0x150 else 1)
    for name, choices in names.items():
        readers[name] = named_control(choices)
    return readers


def dpp_controls(dialect: str) -> tuple[tuple[tuple[int, str], ...], dict[str, dict[str, int]]]:
    """Controls with a lane count, and the others: word -> text after its colon ("" none) -> code."""
    rows: tuple[tuple[int, str], ...] = DPP_ROWS
    values = DPP_NAMES
    if dialect == "gfx9":
        rows, values = disasm_gfx9.DPP_ROWS, disasm_gfx9.DPP_NAMES
    names: dict[str, dict[str, int]] = {}
    for value, text in values.items():
        name, _, argument = text.partition(":")
        names.setdefault(name, {})[argument] = value
    return rows, names


def named_control(choices: dict[str, int]) -> Read:
    def read(s: State) -> None:
        argument = ""
        if "" not in choices:
            colon(s)
            argument = s.cursor.token.text
            if argument not in choices:
                raise s.cursor.fail(" or ".join(choices))
            s.cursor.at += 1
        s.set("DPP_CTRL", choices[argument])

    return read


def dpp8(m: Modifier) -> dict[str, Read]:
    def read(s: State) -> None:
        colon(s)
        column = s.cursor.token.column
        lanes = number_list(s, 8, "a lane")
        if len(lanes) != 8:
            raise AsmError(f"expected 8 lanes, found {len(lanes)}", column)
        for i, lane in enumerate(lanes):
            s.set(f"LANE_SEL_{i}", lane)

    return {"dpp8": read}


def dpp8_fi(m: Modifier) -> dict[str, Read]:
    def read(s: State) -> None:
        colon(s)
        s.set("SRC0", 233 + s.unsigned(1, "0 or 1"))

    return {"fi": read}


def ds_offset(m: Modifier) -> dict[str, Read]:
    def read(s: State) -> None:
        colon(s)
        split_offset(s, s.unsigned(16, "an offset"))

    return {m.text: read}


def split_offset(s: State, value: int) -> None:
    s.set("OFFSET0", value & 255)
    s.set("OFFSET1", value >> 8)


def swizzle(m: Modifier) -> dict[str, Read]:
    def read(s: State) -> None:
        colon(s)
        split_offset(s, asm_imm_parse.swizzle(s))

    return {m.text: read}


def smem_offset(m: Modifier) -> dict[str, Read]:
    def read(s: State) -> None:
        colon(s)
        s.set("OFFSET", s.signed(21, "an offset"))

    return {m.text: read}


def smem_offset24(m: Modifier) -> dict[str, Read]:
    def read(s: State) -> None:
        colon(s)
        s.set("IOFFSET", s.signed(24, "an offset"))

    return {m.text: read}


def th(m: Modifier) -> dict[str, Read]:
    names = th_values(m.text)

    def read(s: State) -> None:
        colon(s)
        s.set("TH", asm_imm_parse.named(s, names, 3, f"a name such as TH_{m.text}_NT"))

    return {"th": read}


def scope(m: Modifier) -> dict[str, Read]:
    names = {n: i for i, n in enumerate(SCOPES)}

    def read(s: State) -> None:
        colon(s)
        s.set("SCOPE", asm_imm_parse.named(s, names, 2, "a scope such as SCOPE_DEV"))

    return {"scope": read}


def byte_sel(m: Modifier) -> dict[str, Read]:
    def read(s: State) -> None:
        colon(s)
        value = s.unsigned(2, "a byte number")
        s.set("OP_SEL", (value >> 1) << m.count | (value & 1) << m.default)

    return {m.text: read}


def buffer_format(m: Modifier) -> dict[str, Read]:
    names = {n: i for i, n in enumerate(asm_imm.UNIFIED_FORMATS)}

    def read(s: State) -> None:
        colon(s)
        if s.cursor.accept("["):
            s.set(m.field, asm_imm_parse.named(s, names, 7, "a buffer format such as BUF_FMT_32_FLOAT"))
            s.cursor.expect("]")
        else:
            s.set(m.field, s.unsigned(7, "a buffer format"))

    return {m.text: read}


def dim(m: Modifier) -> dict[str, Read]:
    names = {n: i for i, (n, _, _) in enumerate(DIMENSIONS)}

    def read(s: State) -> None:
        colon(s)
        token = s.cursor.token
        text = token.text
        if token.kind == "int" and s.cursor.peek().kind == "name" and s.cursor.peek().column == token.column + len(text):
            s.cursor.at += 1
            text += s.cursor.token.text
        name = text.removeprefix("SQ_RSRC_IMG_")
        if name not in names:
            raise AsmError(f"expected a dimension such as SQ_RSRC_IMG_2D, found {text!r}", token.column)
        s.cursor.at += 1
        s.set("DIM", names[name])

    return {m.text: read}


#: DPP_CTRL ranges with a lane count: first code, name.
DPP_ROWS = ((0x100, "row_shl"), (0x110, "row_shr"), (0x120, "row_ror"), (0x150, "row_share"),
            (0x160, "row_xmask"))  # fmt: skip
DPP_NAMES = {0x140: "row_mirror", 0x141: "row_half_mirror"}

MAKERS: dict[str, Callable[[Modifier], dict[str, Read]]] = {
    "flag": flag, "number": number, "signed": signed, "always": number, "one": one, "hex": number,
    "list": bit_list, "op_sel": op_sel, "omod": omod, "dpp_ctrl": dpp_ctrl, "dpp8": dpp8,
    "dpp8_fi": dpp8_fi, "ds_offset": ds_offset, "swizzle": swizzle, "smem_offset": smem_offset,
    "smem_offset24": smem_offset24, "th": th, "scope": scope, "byte_sel": byte_sel,
    "format": buffer_format, "dmask": number, "dim": dim,
}  # fmt: skip


def readers(
    modifiers: tuple[Modifier, ...], makers: Mapping[str, Callable[[Modifier], dict[str, Read]]]
) -> dict[str, Read]:
    """Word -> reader for all modifiers of a syntax."""
    out: dict[str, Read] = {}
    for m in modifiers:
        out |= makers[m.kind](m)
    return out
