"""The assembler: text in LLVM's syntax to machine code.

    code = assemble("gfx1100", source)          # many lines, labels, comments, directives
    word = assemble_one("gfx1100", "v_add_f32 v0, v1, v2")

Where several encodings can hold an instruction the smallest is taken; `_e32`, `_e64`, `_dpp` and
`_sdwa` choose one. All facts come from the tables through `syntax`.

Errors:  AsmError with line, column, text, what was expected, and the nearest mnemonic.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache

from stuntgpu.isa import asm_gfx9, asm_modifiers
from stuntgpu.isa.arch import Arch, EncodingRow, InstRow, arch
from stuntgpu.isa.asm_aliases import canonical
from stuntgpu.isa.asm_checks import check_banks, check_constant_bus, check_dpp_source
from stuntgpu.isa.asm_data import Unplaced
from stuntgpu.isa.asm_lex import AsmError, Cursor, Token, tokenize
from stuntgpu.isa.asm_operands import READ
from stuntgpu.isa.asm_report import Report
from stuntgpu.isa.asm_source import Source, Statement, read_source
from stuntgpu.isa.asm_state import State
from stuntgpu.isa.decode_rules import has_lds_form
from stuntgpu.isa.errors import Bug
from stuntgpu.isa.fixed import fixed_fields
from stuntgpu.isa.syntax import Syntax, syntax
from stuntgpu.isa.syntax_types import Slot

__all__ = ["AsmError", "assemble", "assemble_one"]

#: Mark of SDWA in SRC0.
SDWA = 249
#: Encoding families in the order they are tried.
ORDER = ("VOP1", "VOP2", "VOPC", "VOP3", "VOP3_SDST", "VOP3P")
SUFFIXES: Mapping[str, tuple[tuple[str, ...], str]] = {
    # suffix -> (families, how the name of the form begins; "": the plain form)
    "_e64_dpp": (("VOP3", "VOP3_SDST", "VOP3P"), "dpp"),
    "_e32": (("VOP1", "VOP2", "VOPC"), ""),
    "_e64": (("VOP3", "VOP3_SDST", "VOP3P"), ""),
    "_dpp": (("VOP1", "VOP2", "VOPC"), "dpp"),
    "_sdwa": (("VOP1", "VOP2", "VOPC"), "sdwa"),
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """One encoding form to try. `returns`: an atomic with its result operand, None: not one.
    `lds`: a load into LDS, None: it has no such form."""

    syntax: Syntax
    slots: tuple[Slot, ...]
    fixed: tuple[tuple[str, int], ...] = field(default=())
    returns: bool | None = None
    lds: bool | None = None


# ---------------------------------------------------------------- candidates


@cache
def rows_by_name(name: str) -> dict[str, tuple[InstRow, ...]]:
    """Lower-case instruction name -> rows in the order of ORDER."""
    out: dict[str, list[InstRow]] = {}
    for row in arch(name).tables.rows:
        out.setdefault(row.name.lower(), []).append(row)
    rank = {base: i for i, base in enumerate(ORDER)}
    return {n: tuple(sorted(rows, key=lambda r: rank.get(r.base, 0))) for n, rows in out.items()}


def forms(row: InstRow) -> tuple[str, ...]:
    """The plain form (with or without literal), then the others."""
    return ("", *(f for f in sorted(row.forms) if f.startswith(("dpp", "sdwa"))))


@cache
def candidates(name: str, mnemonic: str) -> tuple[Candidate, ...]:
    """Every encoding form `mnemonic` may mean, in order of preference. Raises AsmError if none."""
    rows = rows_by_name(name)
    mnemonic = canonical(mnemonic, rows)
    found = [(r, f) for r in rows.get(mnemonic, ()) if not r.base.startswith("VOPD") for f in forms(r)]
    if not found:
        for suffix, (bases, kind) in SUFFIXES.items():
            if mnemonic.endswith(suffix):
                stem = canonical(mnemonic.removesuffix(suffix), rows)
                found = [
                    (r, f)
                    for r in rows.get(stem, ())
                    for f in forms(r)
                    if r.base in bases and (f.startswith(kind) if kind else not f)
                ]
                break
    if not found:
        raise unknown(mnemonic, list(rows))
    found.sort(key=lambda row_form: row_form[1] != "")  # DPP and SDWA are taken only for what plain ones cannot say
    return tuple(c for r, f in found for c in expand(name, r, f))


def unknown(mnemonic: str, names: list[str]) -> AsmError:
    stem = next((mnemonic.removesuffix(s) for s in SUFFIXES if mnemonic.endswith(s)), mnemonic)
    near = difflib.get_close_matches(stem, names, n=3)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return AsmError(f"unknown instruction {mnemonic!r}{hint}")


def expand(name: str, row: InstRow, form: str) -> list[Candidate]:
    """An atomic of FLAT has two texts: with the returned register and GLC, and without; a buffer
    load too: into registers, and into LDS."""
    s = syntax(name, row.base, row.opcode, form)
    fixed = tuple(fixed_fields(arch(name), row, form).items())
    if has_lds_form(row) and any(slot.kind == "lds_or_data" for slot in s.slots):
        rest = tuple(slot for slot in s.slots if slot.kind != "lds_or_data")
        return [Candidate(s, s.slots, fixed, lds=False), Candidate(s, rest, fixed, lds=True)]
    if any(slot.kind == "optional" for slot in s.slots):
        required = tuple(slot for slot in s.slots if slot.kind != "optional")
        return [Candidate(s, required, fixed), Candidate(s, s.slots, fixed)]
    if not any(slot.kind == "returned" for slot in s.slots):
        return [Candidate(s, s.slots, fixed)]
    plain = tuple(slot for slot in s.slots if slot.kind != "returned")
    return [Candidate(s, plain, fixed, False), Candidate(s, s.slots, fixed, True)]


# ---------------------------------------------------------------- one instruction


def attempt(state: State, candidate: Candidate) -> bytes:
    """Assemble as `candidate`, the cursor being after the mnemonic. Raises AsmError."""
    row, form = candidate.syntax.row, candidate.syntax.form
    state.row = row
    state.fields.update(candidate.fixed)
    if form.startswith("dpp"):
        state.fields["DPP_FORM"] = 1
        state.fields["SRC0"] = 250 if form == "dpp16" else 233
    elif form == "sdwa":
        state.fields["SRC0"] = SDWA
    if form == "dpp16":
        state.fields |= {"ROW_MASK": 15, "BANK_MASK": 15}
    read_slots(state, candidate.slots)
    read_modifiers(state, candidate.syntax)
    for check in state.checks:
        check()
    check_return(state, candidate)
    check_constant_bus(state, (row,))
    check_dpp_source(state, row)
    layout = choose_layout(state, row, form)
    return pack(layout, state.fields, row.opcode)


READERS = READ | asm_gfx9.READ
MODIFIER_MAKERS = asm_modifiers.MAKERS | asm_gfx9.MAKERS


def read_slots(state: State, slots: tuple[Slot, ...]) -> None:
    for i, slot in enumerate(slots):
        if i:
            state.cursor.expect(",", "',' and another operand")
        READERS[slot.kind](state, slot)


def read_modifiers(state: State, s: Syntax) -> None:
    readers = modifier_readers(s)
    seen: set[str] = set()
    cursor = state.cursor
    while cursor.token.kind != "end" and cursor.token.text != "::":
        cursor.accept(",")
        word = cursor.token
        reader = readers.get(word.text) if word.kind == "name" else None
        group = "a control" if word.text in CONTROLS else word.text
        if reader is None or group in seen:
            known = ", ".join(readers)
            raise cursor.fail(f"a modifier ({known})" if known else "the end of the line")
        cursor.at += 1
        reader(state)
        seen |= {word.text, group}
    wanted = {"dpp16": CONTROLS, "dpp8": frozenset({"dpp8"})}.get(s.form)
    if wanted is not None and not seen & wanted:
        raise cursor.fail(f"one of {', '.join(sorted(wanted & readers.keys()))}")


CONTROLS = frozenset({"quad_perm"}).union(
    *((*(word for _, word in rows), *names) for rows, names in map(asm_modifiers.dpp_controls, ("", "gfx9")))
)


@cache
def modifier_readers(s: Syntax) -> dict[str, asm_modifiers.Read]:
    return asm_modifiers.readers(s.modifiers, MODIFIER_MAKERS)


def check_return(state: State, candidate: Candidate) -> None:
    if candidate.lds is not None and candidate.lds != bool(state.fields.get("LDS")):
        raise state.cursor.fail("lds, exactly when there is no data register")
    if candidate.returns is None:
        return
    asked = state.fields.get("GLC", 0) or state.fields.get("SC0", 0) or state.fields.get("TH", 0) & 1
    if candidate.returns != bool(asked):
        raise state.cursor.fail("glc (sc0, th:TH_ATOMIC_RETURN), exactly when there is a result register")


def choose_layout(state: State, row: InstRow, form: str) -> EncodingRow:
    tables = state.arch.tables
    if state.literal is not None and form:
        raise AsmError(f"no literal ({state.literal:#x}) beside {form.rstrip('0123456789').upper()}")
    if state.literal is not None and not row.encoding.endswith("LITERAL"):
        form = "lit"
    if form == "":
        return tables.encodings[row.encoding]
    return tables.layouts["VOPD" if row.base.startswith("VOPD") else row.base, form]


def pack(layout: EncodingRow, values: Mapping[str, int], opcode: int) -> bytes:
    word = layout.value
    for f in layout.fields:
        value = opcode if f.name == "OP" else values.get(f.name, 0)
        if value >> f.bits:
            raise AsmError(f"{f.name} cannot be operand number {value}")
        word |= f.insert(value)
    return word.to_bytes(layout.bits // 8, "little")


def pack_dual(state: State, x: Candidate, y: Candidate) -> bytes:
    layout = state.arch.tables.layouts["VOPD", "lit" if state.literal is not None else ""]
    values = state.fields | {"OPX": x.syntax.row.opcode, "OPY": y.syntax.row.opcode}
    return pack(layout, values, 0)


def dual_half(name: str, base: str, mnemonic: str, column: int) -> Candidate:
    for row in rows_by_name(name).get(mnemonic, ()):
        if row.base == base:
            return expand(name, row, "")[0]
    names = [n for n, rows in rows_by_name(name).items() if any(r.base == base for r in rows)]
    error = unknown(mnemonic, names)
    raise AsmError(error.message, column)


def assemble_dual(state: State, mnemonic: str) -> bytes:
    """v_dual_a ... :: v_dual_b ..."""
    cursor = state.cursor
    x = dual_half(state.arch.name, "VOPDX", mnemonic, 1)
    state.row = x.syntax.row
    read_slots(state, x.slots)
    cursor.expect("::", "'::' and the second half")
    column = cursor.token.column
    y = dual_half(state.arch.name, "VOPDY", cursor.name("a v_dual_ instruction").lower(), column)
    state.row = y.syntax.row
    read_slots(state, y.slots)
    if cursor.token.kind != "end":
        raise cursor.fail("the end of the line")
    rows = (x.syntax.row, y.syntax.row)
    check_banks(state, *rows, column)
    check_constant_bus(state, rows)
    return pack_dual(state, x, y)


def assemble_statement(target: Arch, text: str, pc: int, symbols: Mapping[str, int | None]) -> bytes:
    """Code of one instruction at `pc`. Raises AsmError of the encoding that got furthest."""
    tokens = tokenize(text)
    mnemonic = tokens[0].text.lower()
    if tokens[0].kind != "name":
        raise AsmError(f"expected an instruction, found {tokens[0].text!r}", tokens[0].column)
    if mnemonic.startswith("v_dual_"):
        return assemble_pair(target, tokens, symbols)
    try:
        choices = candidates(target.name, mnemonic)
    except AsmError as e:
        raise AsmError(e.message, tokens[0].column) from None
    return assemble_tokens(target, choices, tokens, pc, symbols)


def assemble_pair(target: Arch, tokens: list[Token], symbols: Mapping[str, int | None]) -> bytes:
    """Code of a dual instruction, the first token being the mnemonic of its first half."""
    cursor = Cursor(tokens, symbols)
    cursor.at = 1
    return assemble_dual(State(target, cursor, 0, {}), tokens[0].text.lower())


def assemble_tokens(
    target: Arch, choices: Iterable[Candidate], tokens: list[Token], pc: int, symbols: Mapping[str, int | None]
) -> bytes:
    """Code of the first of `choices` that can hold what follows the mnemonic `tokens[0]`."""
    best: tuple[tuple[int, bool], AsmError] | None = None
    for candidate in choices:
        cursor = Cursor(tokens, symbols)
        cursor.at = 1
        try:
            return attempt(State(target, cursor, pc, {}), candidate)
        except AsmError as e:
            rank = (cursor.at, candidate.syntax.form == "")
            if best is None or rank >= best[0]:
                best = rank, e
    if best is None:
        raise Bug(f"{tokens[0].text}: no encoding to try")
    raise best[1]


def assemble_one(name: str, text: str) -> bytes:
    """Code of a single instruction of architecture `name`, no labels. Raises AsmError."""
    try:
        return assemble_statement(arch(name), text, 0, {})
    except AsmError as e:
        raise e.at_line(1, text) from None


# ---------------------------------------------------------------- whole sources


def assemble(name: str, source: str) -> bytes:
    """Code of a whole source text of architecture `name`.

    Raises AsmError with line and column; AsmErrors, one of them, when several lines are wrong."""
    target, report = arch(name), Report()
    parsed: Source = read_source(source, report)
    symbols: dict[str, int | None] = dict(parsed.constants) | dict.fromkeys(parsed.labels)
    lay_out(target, parsed, symbols, report)
    report.check()
    code = bytearray()
    for statement in parsed.statements:
        symbols["."] = len(code)
        with report.at(statement.line, statement.text):
            code += statement_code(target, statement, len(code), symbols)
    report.check()
    return bytes(code)


def lay_out(target: Arch, source: Source, symbols: dict[str, int | None], report: Report) -> None:
    """Addresses of all labels: sizes do not depend on them. What cannot be assembled goes to `report`."""
    pc = 0
    for statement in source.statements:
        for label in statement.labels:
            symbols[label] = pc
        symbols["."] = pc
        with report.at(statement.line, statement.text):
            pc += len(statement_code(target, statement, pc, Unplaced(symbols, pc + 4), sizing=True))
    for label in source.trailing:
        symbols[label] = pc


def statement_code(
    target: Arch, statement: Statement, pc: int, symbols: Mapping[str, int | None], sizing: bool = False
) -> bytes:
    try:
        if statement.directive is not None:
            return statement.directive(pc, symbols)
        return assemble_statement(target, statement.text, pc, symbols)
    except AsmError as e:
        raise e if e.line else e.at_line(statement.line, statement.text) from None
