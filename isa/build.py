"""Instructions as Python functions: what the modules rdna3, rdna4, cdna3 and cdna4 hand out.

A builder is made when its name is first asked for. It takes operands in text order and modifiers
as keywords, tries the encodings that name may mean, smallest first, and returns the `Inst` that
decoding the machine code gives. Which encodings there are, how operands read, and every rule
between them are those of the assembler: see `build_call`.

Errors:  AttributeError for an unknown instruction, with the nearest names; TypeError for what no
         encoding takes there, ValueError for what does not fit. Both name instruction and operand.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Protocol, cast, overload

from stuntgpu.isa.build_values import Call, Distance, Keyword, Label, Operand, Registers, Source
from stuntgpu.isa.inst import Inst

if TYPE_CHECKING:
    from stuntgpu.isa.build_program import Pending, Program

#: Operands whose value is known: all but labels.
Known = Source | Call | int | float | str | Sequence[Registers]


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


def dual(first: Half | Inst, second: Half | Inst) -> Inst:
    """The pair that does both in one instruction. Takes halves, or vector instructions that have
    a dual form. Raises ValueError where the two do not go together."""
    from stuntgpu.isa import build_call

    return build_call.dual((build_call.as_half(first), build_call.as_half(second)))


# ---------------------------------------------------------------- names


@cache
def builder(module: str, arch: str, name: str) -> Builder:
    """The builder of mnemonic `name`, as attribute of `module`. Raises AttributeError."""
    if name.startswith("_"):
        raise AttributeError(f"{module} has no attribute {name!r}", name=name)
    from stuntgpu.isa.asm_lex import AsmError
    from stuntgpu.isa.build_call import build
    from stuntgpu.isa.build_docs import documented
    from stuntgpu.isa.build_plan import dual_names, plan

    if name in dual_names(arch):
        return cast(Builder, half_builder(module, arch, name))
    try:
        wanted = plan(arch, name)
    except AsmError as e:
        raise AttributeError(f"{module}: {e.message}", name=name) from None

    def call(*operands: Operand, **modifiers: Keyword) -> Inst | Pending:
        return build(wanted, operands, modifiers)

    return cast(Builder, documented(call, wanted, module))


def half_builder(module: str, arch: str, name: str) -> DualBuilder:
    from stuntgpu.isa.build_docs import documented_half

    def call(*operands: Known) -> Half:
        return Half(arch, name, operands)

    return cast(DualBuilder, documented_half(call, arch, name, module))


def attribute_names(arch: str) -> tuple[str, ...]:
    """Every builder of `arch`, for completion."""
    from stuntgpu.isa.build_plan import instruction_names

    return instruction_names(arch)


def appending(program: Program, name: str) -> Builder:
    """The builder of `name`, which also appends to `program` what it makes."""
    found = builder(program.MODULE, program.ARCH, name)

    def call(*operands: Known, **modifiers: Keyword) -> Inst:
        made = found(*operands, **modifiers)
        program.add(made)
        return made

    return cast(Builder, functools.update_wrapper(call, found))
