"""One call of a builder: from Python values to machine code, or to an error that says which value
is wrong and what was expected.

The first encoding that can hold the values is taken, in the assembler's order and by its rules.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, cast

from stuntgpu.isa import asm, build_checks, build_tokens
from stuntgpu.isa.arch import arch
from stuntgpu.isa.asm_lex import AsmError, Token
from stuntgpu.isa.build_plan import Choice, Plan, dual_names, slot_name
from stuntgpu.isa.build_values import Call, Distance, Label, Operand, is_number
from stuntgpu.isa.decode import decode
from stuntgpu.isa.inst import Inst
from stuntgpu.isa.syntax_types import Slot

if TYPE_CHECKING:
    from stuntgpu.isa.build import Half
    from stuntgpu.isa.build_program import Pending

Symbols = Mapping[str, "int | None"]
#: Factors of `omod` and the modifier each is.
OUTPUT_FACTORS: Mapping[float, tuple[str, int]] = {1: ("mul", 1), 2: ("mul", 2), 4: ("mul", 4), 0.5: ("div", 2)}


class Draft:
    """The tokens so far. Columns count places: 0 the mnemonic, then operands, then keywords."""

    def __init__(self, plan: Plan, operands: tuple[Operand, ...], modifiers: Mapping[str, object]) -> None:
        self.plan, self.operands = plan, operands
        self.modifiers = self.normal(modifiers)
        self.fields = {w: v for w, v in self.modifiers.items() if w in plan.fields}
        self.words = [w for w in self.modifiers if w not in self.fields]
        self.tokens = [Token("name", plan.mnemonic, 0)]

    def normal(self, modifiers: Mapping[str, object]) -> dict[str, object]:
        """Keywords with omod as text spells it, those that are False or None left out."""
        for word in modifiers:
            if word not in self.plan.keywords:
                raise self.fail(TypeError, 0, f"no keyword {word!r}{keyword_hint(self.plan, word)}")
        out = {k: v for k, v in modifiers.items() if v is not None and v is not False}
        if "omod" in out:
            factor = out.pop("omod")
            if not is_number(factor) or factor not in OUTPUT_FACTORS:
                raise self.fail(ValueError, 0, f"omod is one of 1, 2, 4, 0.5, not {factor!r}")
            word, out[word] = OUTPUT_FACTORS[cast(float, factor)]
        return out

    @property
    def slots(self) -> tuple[tuple[Slot, ...], ...]:
        return self.plan.slots[len(self.operands) + bool(self.fields)]

    def place(self, number: int) -> str:
        """What stands at a place, "" for the whole instruction."""
        n = len(self.operands)
        if 1 <= number <= n:
            slot = self.slots[number - 1][-1]
            name = "tgt" if slot.kind == "export" and number == 1 else slot_name(slot)
            return f"operand {number} ({name}) is {self.operands[number - 1]!r}: "
        words = [*self.fields, *self.words]
        if n < number <= n + len(words):
            word = words[number - n - 1]
            return f"{word}={self.modifiers[word]!r}: "
        return ""

    def fail(self, kind: type[Exception], place: int, message: str) -> Exception:
        return kind(f"{self.plan}: {self.place(place) if place else ''}{message}")

    def explain(self, error: AsmError) -> Exception:
        """The Python error of what the assembler says: a TypeError for a kind of value that is
        never taken there."""
        message, i = error.message.split(", found ")[0], error.column - 1
        fits = not 0 <= i < len(self.operands) or build_checks.is_kind_taken(self.operands[i], self.slots[i])
        return self.fail(ValueError if fits else TypeError, error.column, message)

    # ---- adding

    def add_operands(self) -> None:
        slots, tokens = self.slots, self.tokens
        for place, x in enumerate(self.operands, 1):
            if place > 1:
                tokens.append(Token("op", ",", place))
            try:
                tokens += operand_tokens(x, slots[place - 1], place)
            except (TypeError, ValueError, OverflowError) as e:
                kind = TypeError if isinstance(e, TypeError) else ValueError
                raise self.fail(kind, place, e.message if isinstance(e, AsmError) else str(e)) from None

    def add_fields(self) -> None:
        """vmcnt=0, lgkmcnt=0: one operand, vmcnt(0) | lgkmcnt(0)."""
        for i, (word, value) in enumerate(self.fields.items()):
            place = len(self.operands) + 1 + i
            if i or self.operands:
                self.tokens.append(Token("op", "|" if i else ",", place))
            if not isinstance(value, int | str) or isinstance(value, bool):
                raise self.fail(TypeError, place, "expected an integer or a name")
            self.tokens += build_tokens.call(Call(self.plan.fields[word], (value,)), place)

    def add_modifiers(self, choice: Choice) -> None:
        first = len(self.operands) + len(self.fields) + 1
        for place, word in enumerate(self.words, first):
            try:
                self.tokens += build_tokens.keyword(word, self.modifiers[word], choice.words[word].kind, place)
            except TypeError as e:
                raise self.fail(TypeError, place, str(e)) from None

    def suitable(self) -> list[Choice]:
        """Encodings with that many operands and all of the keywords."""
        n = len(self.operands) + bool(self.fields)
        counted = [c for c in self.plan.choices if c.n_operands == n]
        if not counted:
            raise self.fail(TypeError, 0, f"takes {self.plan.calls}, got {n} operand(s)")
        found = [c for c in counted if all(w in c.words for w in self.words)] if self.words else counted
        if not found:
            raise self.fail(TypeError, 0, f"no encoding has {' and '.join(self.words)} with {n} operands")
        return found


def keyword_hint(plan: Plan, word: str) -> str:
    near = difflib.get_close_matches(word, plan.keywords, n=1)
    if near:
        return f"; did you mean {near[0]}?"
    return f"; it takes {', '.join(plan.keywords)}" if plan.keywords else "; it takes none"


def operand_tokens(x: object, slots: tuple[Slot, ...], place: int) -> list[Token]:
    build_checks.refuse(x, slots)
    return build_tokens.operand(build_checks.symbolic(x, slots[-1]), slots[-1], place)


def drafted(plan: Plan, operands: tuple[Operand, ...], modifiers: Mapping[str, object]) -> tuple[Draft, list[Choice]]:
    """All tokens, and the encodings to try. Raises TypeError, ValueError."""
    draft = Draft(plan, operands, modifiers)
    choices = draft.suitable()
    draft.add_operands()
    draft.add_fields()
    draft.add_modifiers(choices[-1])
    return draft, choices


def source_text(plan: Plan, operands: tuple[Operand, ...], modifiers: Mapping[str, object]) -> str:
    """The tokens as assembly text, labels by name."""
    tokens = drafted(plan, operands, modifiers)[0].tokens
    text = tokens[0].text
    for before, token in pairwise(tokens):
        apart = before.text == "," or (token.column != before.column and token.text != ",")
        text += f" {token.text}" if apart else token.text
    return text


def machine_code(
    plan: Plan, operands: tuple[Operand, ...], modifiers: Mapping[str, object], pc: int = 0, symbols: Symbols | None = None
) -> bytes:
    """Code of one instruction at `pc`; `symbols` are the addresses of labels. Raises TypeError,
    ValueError."""
    draft, choices = drafted(plan, operands, modifiers)
    draft.tokens.append(Token("end", "", len(operands) + len(draft.modifiers) + 1))
    candidates = [c.candidate for c in choices]
    try:
        return asm.assemble_tokens(arch(plan.arch), candidates, draft.tokens, pc, symbols or {})
    except AsmError as e:
        raise draft.explain(e) from None


def build(plan: Plan, operands: tuple[Operand, ...], modifiers: Mapping[str, object]) -> Inst | Pending:
    """The instruction, or with a label among the operands one that waits for its address."""
    if any(isinstance(x, Label | Distance) for x in operands):
        from stuntgpu.isa.build_program import Pending

        return Pending.of(plan, operands, modifiers)
    return decode(plan.arch, machine_code(plan, operands, modifiers))


# ---------------------------------------------------------------- dual instructions


def as_half(x: Half | Inst) -> Half:
    """A vector instruction in its short form as half of a dual one. Raises ValueError."""
    from stuntgpu.isa.build import Half
    from stuntgpu.isa.build_python import operand_texts

    if isinstance(x, Half):
        return x
    mnemonic = f"v_dual_{x.name.lower().removeprefix('v_')}"
    texts, modifiers = operand_texts(x)
    if x.base not in ("VOP1", "VOP2") or modifiers or mnemonic not in dual_names(x.arch):
        raise ValueError(f"{x} has no dual form; there are {', '.join(dual_names(x.arch)) or 'none'}")
    return Half(x.arch, mnemonic, tuple(t for t in texts if not t.startswith("vcc")))


def dual(halves: tuple[Half, Half]) -> Inst:
    """The pair as one instruction. Raises ValueError where the two do not go together."""
    x, y = halves
    if x.arch != y.arch:
        raise ValueError(f"{x} is of {x.arch}, {y} of {y.arch}")
    tokens: list[Token] = []
    for place, half in enumerate(halves):
        tokens += [Token("op", "::", place)] if place else []
        tokens.append(Token("name", half.mnemonic, place))
        for i, value in enumerate(half.operands):
            tokens += [Token("op", ",", place)] if i else []
            tokens += build_tokens.operand(value, Slot("src", fmt="f32"), place)
    tokens.append(Token("end", "", 1))
    try:
        return decode(x.arch, asm.assemble_pair(arch(x.arch), tokens, {}))
    except AsmError as e:
        raise ValueError(f"{x} :: {y}: in {halves[min(e.column, 1)]}: {e.message}") from None
