"""Names, signatures and docstrings of builders, from the syntax tables."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

from stuntgpu.isa.arch import OperandRow, arch
from stuntgpu.isa.build_checks import taken
from stuntgpu.isa.build_plan import Choice, Plan, names, slot_name
from stuntgpu.isa.build_tokens import value_type
from stuntgpu.isa.syntax_types import Slot

#: Kinds of `build_checks.taken` in words.
KIND_WORDS = {
    "v": "VGPR", "s": "scalar register", "number": "constant", "name": "symbolic name", "off": "off",
    "label": "label", "list": "list of VGPRs",
}  # fmt: skip


# ---------------------------------------------------------------- signatures


def signature(plan: Plan, returns: str) -> inspect.Signature:
    """Operands by position, then keywords. Several operand counts show as *operands."""
    choices = plan.plain
    parameters: list[inspect.Parameter] = []
    if len(choices) == 1 and not plan.fields:
        parameters += [
            inspect.Parameter(n, inspect.Parameter.POSITIONAL_ONLY, annotation="Operand") for n in names(choices[0])
        ]
    else:
        parameters.append(inspect.Parameter("operands", inspect.Parameter.VAR_POSITIONAL, annotation="Operand"))
    for word in plan.keywords:
        wanted = keyword_type(plan, word)
        flag = wanted == "bool"
        parameters.append(
            inspect.Parameter(
                word, inspect.Parameter.KEYWORD_ONLY, default=False if flag else None,
                annotation=wanted if flag else f"{wanted} | None",
            )
        )  # fmt: skip
    return inspect.Signature(parameters, return_annotation=returns)


def keyword_type(plan: Plan, word: str) -> str:
    if word == "omod":
        return "float"
    return value_type(plan.words[word].kind, word) if word in plan.words else "int | str"


# ---------------------------------------------------------------- docstrings


def operand_row(choice: Choice, slot: Slot) -> OperandRow | None:
    return next((o for o in choice.candidate.syntax.row.operands if o.field == slot.field and o.field), None)


def describe(plan: Plan, choice: Choice, index: int) -> str:
    """What an operand takes, over all encodings, with its size and format."""
    slots, own = plan.slots[choice.n_operands][index], choice.slot(index)
    kinds = [k for k in KIND_WORDS if any(k in taken(s) for s in slots)]
    text = ", ".join(KIND_WORDS[k] for k in kinds) or "operand"
    text += " or AccVGPR" if own.acc else ""
    row = operand_row(choice, own)
    if row is None:
        return text
    access = {(True, True): "read and written", (False, True): "written"}.get((row.is_read, row.is_written), "read")
    size = "lane mask" if row.bits == 1 else f"{own.bits} bits {row.fmt}"
    return f"{text}; {size}, {access}"


def docstring(plan: Plan) -> str:
    """Calls, operands, keywords, and the encodings that are tried in turn."""
    lines = [f"{plan.choices[0].candidate.syntax.row.name} of {plan.arch}.", ""]
    for choice in plan.plain:
        lines.append(f"{plan.mnemonic}({', '.join(names(choice))})")
        lines += [f"    {n:<8} {describe(plan, choice, i)}" for i, n in enumerate(names(choice))]
    if plan.keywords:
        lines += ["", f"Keywords: {', '.join(plan.keywords)}."]
    lines += ["", "Encodings, in the order they are tried:"]
    lines += dict.fromkeys(encoding_line(plan.arch, c) for c in plan.choices)
    return "\n".join(lines)


def encoding_line(arch_name: str, choice: Choice) -> str:
    """Mnemonic that forces the encoding, its family and size."""
    syntax, tables = choice.candidate.syntax, arch(arch_name).tables
    row, form = syntax.row, syntax.form
    size = (tables.layouts[row.base, form] if form else tables.encodings[row.encoding]).bits // 8
    literal = ", or with a literal 4 more" if not form and any(f.startswith("lit") for f in row.forms) else ""
    return f"    {syntax.mnemonic:<24} {row.base}{f' {form}' if form else ''}, {size} bytes{literal}"


def documented(call: Callable[..., Any], plan: Plan, module: str) -> Callable[..., Any]:
    """`call` with name, signature and docstring of the mnemonic."""
    return named(call, plan.mnemonic, module, docstring(plan), signature(plan, "Inst"))


def documented_half(call: Callable[..., Any], arch_name: str, name: str, module: str) -> Callable[..., Any]:
    """`call` dressed as the builder of half of a dual instruction."""
    from stuntgpu.isa.asm import dual_half, rows_by_name

    bases = [r.base for r in rows_by_name(arch_name)[name]]
    slots: Sequence[Slot] = dual_half(arch_name, bases[0], name, 1).slots
    parameters = [
        inspect.Parameter(re.sub("[xy]([0-9]?)$", r"\1", slot_name(s)), inspect.Parameter.POSITIONAL_ONLY)
        for s in slots
    ]
    text = f"{name.upper()} of {arch_name}: half of a dual instruction.\n\nJoin two with `a & b`; it can be "
    text += " and ".join({"VOPDX": "the first", "VOPDY": "the second"}[b] for b in bases) + "."
    return named(call, name, module, text, inspect.Signature(parameters, return_annotation="Half"))


def named(
    call: Callable[..., Any], name: str, module: str, doc: str, shape: inspect.Signature
) -> Callable[..., Any]:
    call.__name__ = call.__qualname__ = name
    call.__module__, call.__doc__ = module, doc
    call.__signature__ = shape  # type: ignore[attr-defined]
    return call
