"""What a mnemonic takes: encodings, operand counts and keywords, derived from the syntax tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property

from stuntgpu.isa import asm, asm_imm
from stuntgpu.isa.asm_modifiers import readers
from stuntgpu.isa.syntax_types import Modifier, Slot


@dataclass(frozen=True)
class Choice:
    """One encoding form, with the keywords it takes and the count of operands it has."""

    candidate: asm.Candidate
    words: Mapping[str, Modifier]
    n_operands: int

    def slot(self, index: int) -> Slot:
        """The slot that operand `index` is read by; an export's target comes with its first value."""
        slots = self.candidate.slots
        return slots[max(0, index - (self.n_operands - len(slots)))]

    @property
    def has_target(self) -> bool:
        return self.n_operands > len(self.candidate.slots)


@dataclass(frozen=True)
class Plan:
    """All that a mnemonic of an architecture takes."""

    arch: str
    mnemonic: str
    choices: tuple[Choice, ...]

    @cached_property
    def words(self) -> dict[str, Modifier]:
        """Every keyword that is a modifier of any encoding."""
        return {w: m for c in reversed(self.choices) for w, m in c.words.items()}

    @cached_property
    def fields(self) -> dict[str, str]:
        """Keywords that together are the immediate operand, and their names in text."""
        slots = self.choices[0].candidate.slots
        return immediate_fields(self.arch, slots[-1]) if slots else {}

    @cached_property
    def keywords(self) -> tuple[str, ...]:
        omod = ("omod",) if "mul" in self.words else ()
        return (*self.words, *self.fields, *omod)

    @cached_property
    def slots(self) -> dict[int, tuple[tuple[Slot, ...], ...]]:
        """Operand count -> for each operand the slots that may read it, the most general last."""
        out: dict[int, tuple[tuple[Slot, ...], ...]] = {}
        for n in {c.n_operands for c in self.choices}:
            alike = [c for c in self.choices if c.n_operands == n]
            out[n] = tuple(tuple(c.slot(i) for c in alike) for i in range(n))
        return out

    @cached_property
    def plain(self) -> tuple[Choice, ...]:
        """For each count of operands the most general encoding."""
        by_count = {c.n_operands: c for c in self.choices if not c.candidate.syntax.form}
        return tuple((by_count or {c.n_operands: c for c in self.choices}).values())

    @property
    def calls(self) -> str:
        """(vdst, src0, src1), and the other ways to call it."""
        return " or ".join(f"({', '.join(names(c))})" for c in self.plain)

    def __str__(self) -> str:
        return f"{self.mnemonic} of {self.arch}"


@cache
def plan(arch: str, mnemonic: str) -> Plan:
    """What `mnemonic` takes. Raises AsmError when there is no such instruction."""
    return Plan(arch, mnemonic, tuple(map(make_choice, asm.candidates(arch, mnemonic))))


@cache
def make_choice(candidate: asm.Candidate) -> Choice:
    modifiers = candidate.syntax.modifiers
    words = {word: m for m in modifiers for word in readers((m,), asm.MODIFIER_MAKERS)}
    slots = candidate.slots
    return Choice(candidate, words, len(slots) + (bool(slots) and slots[0].kind == "export"))


# ---------------------------------------------------------------- names


def slot_name(slot: Slot) -> str:
    """Parameter name of an operand: its microcode field, without the V of VSRC1."""
    if slot.kind == "vcc":
        return "vcc"
    name = slot.field.lower()
    return name[1:] if name.startswith("vsrc") else name


def names(choice: Choice) -> list[str]:
    """Parameter names of an encoding's operands, each once."""
    found = ["tgt"] if choice.has_target else []
    for slot in choice.candidate.slots:
        name = slot_name(slot)
        found.append(name if name not in found else f"{name}_in")
    return found


def immediate_fields(arch: str, slot: Slot) -> dict[str, str]:
    """Keywords that make up a structured immediate -> the field's name in text."""
    if slot.kind != "imm":
        return {}
    if slot.style == "waitcnt":
        return {text: text for _, text in asm_imm.WAITCNT_ORDER}
    if slot.style in ("waitcnt_depctr", "wait_alu", "delay"):
        prefix = "" if slot.style == "delay" else "depctr_"
        fields = (f.name.lower() for f, _, _ in asm_imm.fields(arch, slot.style))
        return {f: f"{prefix}{f}" for f in fields}
    return {}


@cache
def dual_names(arch: str) -> tuple[str, ...]:
    """Mnemonics of halves of dual instructions."""
    rows = asm.rows_by_name(arch)
    return tuple(sorted(n for n in rows if rows[n][0].base.startswith("VOPD")))


@cache
def instruction_names(arch: str) -> tuple[str, ...]:
    """Every builder `arch` has, suffixed ones included, in alphabetical order."""
    found = set(asm.rows_by_name(arch))
    for name in tuple(found - set(dual_names(arch))):
        found |= {c.syntax.mnemonic for c in asm.candidates(arch, name)}
    return tuple(sorted(found))
