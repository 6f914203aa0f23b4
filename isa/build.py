"""Instructions as Python functions: what the modules rdna3, rdna4, cdna3 and cdna4 hand out.

A builder is made when its name is first asked for. It takes operands in text order and modifiers
as keywords, tries the encodings that name may mean, smallest first, and returns the `Inst` that
decoding the machine code gives. Which encodings there are, how operands read, and every rule
between them are those of the assembler: see `build_tokens`.

Errors:  AttributeError for an unknown instruction, with the nearest names; TypeError for what no
         encoding takes there, ValueError for what does not fit. Both name instruction and operand.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Protocol, cast, overload

from stuntgpu.isa.build_values import (
    Call,
    Distance,
    Keyword,
    Label,
    Operand,
    Registers,
    Source,
    is_number,
)
from stuntgpu.isa.inst import Inst

if TYPE_CHECKING:
    from stuntgpu.isa.asm import Candidate
    from stuntgpu.isa.asm_lex import AsmError, Token
    from stuntgpu.isa.build_program import Pending, Program
    from stuntgpu.isa.syntax_types import Modifier, Slot

#: Operands whose value is known: all but labels.
Known = Source | Call | int | float | str | Sequence[Registers]
Symbols = Mapping[str, "int | None"]
#: Factors of `omod` and the modifier each is.
OUTPUT_FACTORS: Mapping[float, tuple[str, int]] = {1: ("mul", 1), 2: ("mul", 2), 4: ("mul", 4), 0.5: ("div", 2)}


class Builder(Protocol):
    """A function that makes an instruction. With a label among the operands it makes one whose
    bytes are known once its program is put together."""

    __name__: str

    @overload
    def __call__(self, target: Label, /) -> Pending: ...
    @overload
    def __call__(self, register: Source, target: Label | Distance, /) -> Pending: ...
    @overload
    def __call__(self, register: Source, source: Source, distance: Distance, /) -> Pending: ...
    @overload
    def __call__(self, *operands: Known, **modifiers: Keyword) -> Inst: ...


class DualBuilder(Protocol):
    """A function that makes half of a dual instruction."""

    __name__: str

    def __call__(self, *operands: Known) -> Half: ...


# ---------------------------------------------------------------- what a name takes


@dataclass(frozen=True)
class Choice:
    """One encoding form, with the keywords it takes and the count of operands it has."""

    candidate: Candidate
    words: Mapping[str, Modifier]
    n_operands: int


@dataclass(frozen=True)
class Plan:
    """All that a mnemonic of an architecture takes, derived once."""

    arch: str
    mnemonic: str
    choices: tuple[Choice, ...]

    @cached_property
    def counts(self) -> tuple[int, ...]:
        return tuple(sorted({c.n_operands for c in self.choices}))

    @cached_property
    def words(self) -> dict[str, Modifier]:
        """Every keyword of any encoding, in the order they print."""
        return {w: m for c in reversed(self.choices) for w, m in c.words.items()}

    @cached_property
    def fields(self) -> dict[str, str]:
        """Keywords that together are the immediate operand, and their names in text."""
        from stuntgpu.isa.build_docs import immediate_fields

        slots = self.choices[0].candidate.slots
        return immediate_fields(self.arch, slots[-1]) if slots else {}

    @cached_property
    def keywords(self) -> tuple[str, ...]:
        omod = ("omod",) if "mul" in self.words else ()
        return (*self.words, *self.fields, *omod)

    def slots(self, index: int, n_operands: int) -> list[Slot]:
        """Slots that operand `index` of `n_operands` may be read by, the most general last."""
        found = []
        for choice in self.choices:
            slots, n = choice.candidate.slots, choice.n_operands
            if n == n_operands:
                found.append(slots[max(0, index - (n - len(slots)))])
        return found

    @property
    def target(self) -> str:
        return f"{self.mnemonic} of {self.arch}"


@cache
def plan(arch: str, mnemonic: str) -> Plan:
    """What `mnemonic` takes. Raises AsmError when there is no such instruction."""
    from stuntgpu.isa import asm

    return Plan(arch, mnemonic, tuple(map(make_choice, asm.candidates(arch, mnemonic))))


@cache
def make_choice(candidate: Candidate) -> Choice:
    from stuntgpu.isa import asm
    from stuntgpu.isa.asm_modifiers import readers

    words = {word: m for m in candidate.syntax.modifiers for word in readers((m,), asm.MODIFIER_MAKERS)}
    slots = candidate.slots
    target_first = bool(slots) and slots[0].kind == "export"  # the target stands before the first value
    return Choice(candidate, words, len(slots) + target_first)


# ---------------------------------------------------------------- building


@dataclass
class Draft:
    """One call of a builder: tokens so far, and what stands at each place."""

    plan: Plan
    operands: tuple[Operand, ...]
    tokens: list[Token]
    places: list[str]

    def fail(self, kind: type[Exception], place: int, message: str) -> Exception:
        at = f"{self.places[place]}: " if 0 < place < len(self.places) else ""
        return kind(f"{self.plan.target}: {at}{message}")


def machine_code(
    wanted: Plan, operands: tuple[Operand, ...], modifiers: Mapping[str, object], pc: int = 0, symbols: Symbols | None = None
) -> bytes:
    """Code of one instruction at `pc`; `symbols` are the addresses of labels. Raises TypeError,
    ValueError."""
    from stuntgpu.isa import asm
    from stuntgpu.isa.arch import arch
    from stuntgpu.isa.asm_lex import AsmError, Token

    draft = Draft(wanted, operands, [Token("name", wanted.mnemonic, 0)], [wanted.mnemonic])
    modifiers = normal(draft, modifiers)
    fields = {k: modifiers[k] for k in modifiers if k in wanted.fields}
    choices = suitable(draft, len(operands) + bool(fields), [m for m in modifiers if m not in fields])
    add_operands(draft)
    add_fields(draft, fields)
    add_modifiers(draft, {k: v for k, v in modifiers.items() if k not in fields}, choices)
    draft.tokens.append(Token("end", "", len(draft.places)))
    try:
        return asm.assemble_tokens(arch(wanted.arch), [c.candidate for c in choices], draft.tokens, pc, symbols or {})
    except AsmError as e:
        raise explain(draft, e) from None


def normal(draft: Draft, modifiers: Mapping[str, object]) -> dict[str, object]:
    """Keywords with omod spelled as text has it, those that are False or None left out."""
    out = {k: v for k, v in modifiers.items() if v is not None and v is not False}
    if "omod" in out:
        factor = out.pop("omod")
        if not is_number(factor) or factor not in OUTPUT_FACTORS:
            raise draft.fail(ValueError, 0, f"omod is one of 1, 2, 4, 0.5, not {factor!r}")
        word, value = OUTPUT_FACTORS[cast(float, factor)]
        out[word] = value
    for word in modifiers:
        if word not in draft.plan.keywords:
            raise draft.fail(TypeError, 0, f"no keyword {word!r}{keyword_hint(draft.plan, word)}")
    return out


def keyword_hint(wanted: Plan, word: str) -> str:
    near = difflib.get_close_matches(word, wanted.keywords, n=1)
    if near:
        return f"; did you mean {near[0]}?"
    return f"; it takes {', '.join(wanted.keywords)}" if wanted.keywords else "; it takes none"


def suitable(draft: Draft, n_operands: int, words: list[str]) -> list[Choice]:
    """Encodings with that many operands and all of `words`."""
    from stuntgpu.isa.build_docs import call_text

    counted = [c for c in draft.plan.choices if c.n_operands == n_operands]
    if not counted:
        raise draft.fail(TypeError, 0, f"takes {call_text(draft.plan)}, got {n_operands} operand(s)")
    found = [c for c in counted if all(w in c.words for w in words)]
    if not found:
        raise draft.fail(TypeError, 0, f"no encoding has {' and '.join(words)} with {n_operands} operands")
    return found


def add_operands(draft: Draft) -> None:
    from stuntgpu.isa.asm_lex import Token
    from stuntgpu.isa.build_docs import slot_name

    n = len(draft.operands)
    for i, x in enumerate(draft.operands):
        slots = draft.plan.slots(i, n)
        place = len(draft.places)
        is_target = slots[-1].kind == "export" and i == 0
        draft.places.append(f"operand {i + 1} ({'tgt' if is_target else slot_name(slots[-1])}) is {x!r}")
        if i:
            draft.tokens.append(Token("op", ",", place))
        draft.tokens += operand_tokens(draft, x, slots, place)


def operand_tokens(draft: Draft, x: Operand, slots: list[Slot], place: int) -> list[Token]:
    from stuntgpu.isa import build_checks, build_tokens

    try:
        build_checks.refuse(x, slots)
        return build_tokens.operand(build_checks.symbolic(x, slots[-1]), slots[-1], place)
    except (TypeError, ValueError, OverflowError) as e:
        raise draft.fail(TypeError if isinstance(e, TypeError) else ValueError, place, str(e)) from None


def add_fields(draft: Draft, fields: Mapping[str, object]) -> None:
    """vmcnt=0, lgkmcnt=0: one operand, vmcnt(0) | lgkmcnt(0)."""
    from stuntgpu.isa import build_tokens
    from stuntgpu.isa.asm_lex import Token

    for i, (word, value) in enumerate(fields.items()):
        place = len(draft.places)
        draft.places.append(f"{word}={value!r}")
        if i or draft.operands:
            draft.tokens.append(Token("op", "|" if i else ",", place))
        if not isinstance(value, str) and not (isinstance(value, int) and not isinstance(value, bool)):
            raise draft.fail(TypeError, place, "expected an integer or a name")
        call = Call(draft.plan.fields[word], (value,))
        draft.tokens += build_tokens.call(call, place)


def add_modifiers(draft: Draft, modifiers: Mapping[str, object], choices: list[Choice]) -> None:
    from stuntgpu.isa import build_tokens

    for word, value in modifiers.items():
        place = len(draft.places)
        draft.places.append(f"{word}={value!r}")
        try:
            draft.tokens += build_tokens.keyword(word, value, choices[-1].words[word].kind, place)
        except TypeError as e:
            raise draft.fail(TypeError, place, str(e)) from None


def explain(draft: Draft, error: AsmError) -> Exception:
    """The Python error of what the assembler says: a TypeError for a kind of operand that is
    never taken there."""
    from stuntgpu.isa.build_checks import is_kind_taken

    message, i = error.message.split(", found ")[0], error.column - 1
    kind: type[Exception] = ValueError
    if 0 <= i < len(draft.operands):
        slots = draft.plan.slots(i, len(draft.operands))
        kind = ValueError if is_kind_taken(draft.operands[i], slots) else TypeError
    return draft.fail(kind, error.column, message)


def build(wanted: Plan, operands: tuple[Operand, ...], modifiers: Mapping[str, object]) -> Inst | Pending:
    from stuntgpu.isa.build_program import Pending
    from stuntgpu.isa.decode import decode

    if any(isinstance(x, Label | Distance) for x in operands):
        return Pending.of(wanted, operands, modifiers)
    return decode(wanted.arch, machine_code(wanted, operands, modifiers))


# ---------------------------------------------------------------- dual instructions


@dataclass(frozen=True, slots=True, repr=False)
class Half:
    """Half of a dual instruction; `a & b` is the whole."""

    arch: str
    mnemonic: str
    operands: tuple[Operand, ...]

    def __and__(self, other: Half | Inst) -> Inst:
        return dual(self, other)

    def __repr__(self) -> str:
        texts = (x if isinstance(x, str) else repr(x) for x in self.operands)
        return f"{self.mnemonic} {', '.join(texts)}"


def as_half(x: Half | Inst) -> Half:
    """A vector instruction in its short form as half of a dual one. Raises ValueError."""
    from stuntgpu.isa.build_python import operand_texts

    if isinstance(x, Half):
        return x
    mnemonic = f"v_dual_{x.name.lower().removeprefix('v_')}"
    texts, modifiers = operand_texts(x)
    if x.base not in ("VOP1", "VOP2") or modifiers or mnemonic not in dual_names(x.arch):
        raise ValueError(f"{x} has no dual form; there are {', '.join(dual_names(x.arch)) or 'none'}")
    return Half(x.arch, mnemonic, tuple(t for t in texts if not t.startswith("vcc")))


@cache
def dual_names(arch: str) -> tuple[str, ...]:
    from stuntgpu.isa.asm import rows_by_name

    return tuple(sorted(n for n, rows in rows_by_name(arch).items() if rows[0].base.startswith("VOPD")))


def dual(first: Half | Inst, second: Half | Inst) -> Inst:
    """The pair that does both in one instruction. Takes halves, or vector instructions that have
    a dual form. Raises ValueError where the two do not go together."""
    from stuntgpu.isa import asm, build_tokens
    from stuntgpu.isa.arch import arch
    from stuntgpu.isa.asm_lex import AsmError, Token
    from stuntgpu.isa.decode import decode
    from stuntgpu.isa.syntax_types import Slot

    halves = as_half(first), as_half(second)
    if halves[0].arch != halves[1].arch:
        raise ValueError(f"{halves[0]} is of {halves[0].arch}, {halves[1]} of {halves[1].arch}")
    tokens: list[Token] = []
    for place, half in enumerate(halves):
        tokens += [Token("op", "::", place)] if place else []
        tokens.append(Token("name", half.mnemonic, place))
        for i, x in enumerate(half.operands):
            tokens += [Token("op", ",", place)] if i else []
            tokens += build_tokens.operand(x, Slot("src"), place)
    tokens.append(Token("end", "", 1))
    try:
        code = asm.assemble_pair(arch(halves[0].arch), tokens, {})
    except AsmError as e:
        raise ValueError(f"{halves[0]} :: {halves[1]}: in {halves[min(e.column, 1)]}: {e.message}") from None
    return decode(halves[0].arch, code)


# ---------------------------------------------------------------- names


@cache
def builder(module: str, arch: str, name: str) -> Builder:
    """The builder of mnemonic `name`, as attribute of `module`. Raises AttributeError."""
    from stuntgpu.isa.asm_lex import AsmError
    from stuntgpu.isa.build_docs import documented

    if not name.startswith(("v_dual_", "_")) and name == name.lower():
        try:
            wanted = plan(arch, name)
        except AsmError as e:
            raise AttributeError(f"{module}: {e.message}", name=name) from None

        def call(*operands: Operand, **modifiers: Keyword) -> Inst | Pending:
            return build(wanted, operands, modifiers)

        return cast(Builder, documented(call, wanted, module))
    if name in dual_names(arch):
        return cast(Builder, half_builder(module, arch, name))
    near = difflib.get_close_matches(name.lower(), instruction_names(arch), n=3)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    raise AttributeError(f"{module} has no attribute {name!r}{hint}", name=name)


def half_builder(module: str, arch: str, name: str) -> DualBuilder:
    from stuntgpu.isa.build_docs import documented_half

    def call(*operands: Known) -> Half:
        return Half(arch, name, operands)

    return cast(DualBuilder, documented_half(call, arch, name, module))


@cache
def instruction_names(arch: str) -> tuple[str, ...]:
    """Every builder `arch` has, suffixed ones included, in alphabetical order."""
    from stuntgpu.isa import asm

    names = set(asm.rows_by_name(arch))
    for name in tuple(names - set(dual_names(arch))):
        names |= {c.syntax.mnemonic for c in asm.candidates(arch, name)}
    return tuple(sorted(names))



def appending(program: Program, name: str) -> Builder:
    """The builder of `name`, which also appends to `program` what it makes."""
    found = builder(program.MODULE, program.ARCH, name)

    def call(*operands: Known, **modifiers: Keyword) -> Inst:
        made = found(*operands, **modifiers)
        program.add(made)
        return made

    return cast(Builder, functools.update_wrapper(call, found))
