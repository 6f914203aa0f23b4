"""Python source of an instruction: the builder call that makes it again.

    pythonic(decode("gfx1100", code))      # 'v_add_f32_e64(v[0], v[1], 1.0)'
    rdna3.Program.from_bytes(code).source  # a whole program, with labels

The source is the text of the disassembler, operand by operand; names are those of the modules
rdna3, rdna4, cdna3 and cdna4.
"""

from __future__ import annotations

import importlib
import keyword
import re
from collections.abc import Mapping
from functools import cache
from itertools import count

from stuntgpu.isa import asm_names, disasm
from stuntgpu.isa.build_checks import is_integer_format
from stuntgpu.isa.build_plan import immediate_fields
from stuntgpu.isa.build_program import Item, Pending, Program, is_register_name, label_names
from stuntgpu.isa.build_tokens import FORMATS, ONE
from stuntgpu.isa.build_values import Call, Constant, Distance, Label, Registers, Source, Special
from stuntgpu.isa.decode import decode_all
from stuntgpu.isa.inst import Inst
from stuntgpu.isa.syntax import Syntax, syntax
from stuntgpu.isa.syntax_types import Modifier, Slot

SINGLE = re.compile(r"(v|a|s|ttmp)(\d+)(\.[lh])?")
RANGE = re.compile(r"(v|a|s|ttmp)\[\d+:\d+\]")
NUMBER = re.compile(r"-?(0x[0-9a-f]+|\d+)")
FLOAT = re.compile(r"-?\d+\.\d+")
CALL = re.compile(r"(\w+)\((.*)\)")
#: Registers whose name Python has taken.
RENAMED = {"exec": "exec_"}


def operand_texts(inst: Inst) -> tuple[list[str], list[str]]:
    """Texts of the operands and of the modifiers (those that print) of an instruction."""
    _, slots, modifiers = disasm.printer(inst.arch, inst.base, inst.opcode, disasm.form_of(inst))
    words = [m(inst.fields).strip() for m in modifiers]
    return [t for p in slots if (t := p(inst.fields))], [w for w in words if w]


@cache
def named_registers(arch: str) -> frozenset[str]:
    return frozenset({*asm_names.register_numbers(arch), "off"})


def value(text: str, slot: Slot, arch: str) -> str:
    """Python source of one operand's text."""
    single = SINGLE.fullmatch(text)
    if single:
        return f"{single[1]}[{single[2]}]{single[3] or ''}"
    if text in named_registers(arch):
        return RENAMED.get(text, text)
    if RANGE.fullmatch(text) or NUMBER.fullmatch(text) or text.startswith("lit("):
        return text
    if FLOAT.fullmatch(text):
        return f"bits({text})" if is_integer_format(slot.fmt) else text
    if text.startswith("["):
        return f"[{', '.join(value(t.strip(), slot, arch) for t in re.split(r',(?![^[]*:)', text[1:-1]))}]"
    return signed(text, slot, arch)


def signed(text: str, slot: Slot, arch: str) -> str:
    """-v0, |v0|, neg(1.0), and what is symbolic."""
    for word in ("neg", "sext"):
        if text.startswith(f"{word}("):
            return f"{word}({value(text[len(word) + 1 : -1], slot, arch)})"
    if text.startswith("-"):
        return f"-{value(text[1:], slot, arch)}"
    if text.startswith("|"):
        inner = value(text[1:-1], slot, arch)
        return f"abs_({inner})" if inner[0].isdigit() or inner[0] == "-" else f"abs({inner})"
    call = CALL.fullmatch(text)
    return call_source(call[1], call[2]) if call else f'"{text}"'


def call_source(name: str, arguments: str) -> str:
    parts = [a.strip() for a in arguments.split(",")] if arguments else []
    return f"{name}({', '.join(a if NUMBER.fullmatch(a) or a[0] == chr(34) else quoted(a) for a in parts)})"


def quoted(text: str) -> str:
    return f'"{text}"'


def fields_source(text: str, slot: Slot, arch: str) -> list[str]:
    """vmcnt(0) lgkmcnt(1) as keywords; what is a plain number stays one."""
    keywords = {v: k for k, v in immediate_fields(arch, slot).items()}
    found: list[tuple[str, str]] = re.findall(r"(\w+)\((\w+)\)", text)
    if not found:
        return [text]
    return [f"{keywords[word]}={a if a.isdigit() else quoted(a)}" for word, a in found]


def modifier_source(text: str, modifier: Modifier) -> str:
    """offset:16 as offset=16."""
    word, colon, shown = text.partition(":")
    if not colon or modifier.kind in ONE:
        return f"{word}=True"
    if NUMBER.fullmatch(shown):
        return f"{word}={shown}"
    if shown.startswith("["):
        inner = [a if a.isdigit() else quoted(a) for a in shown[1:-1].split(",")]
        return f"{word}={inner[0]}" if modifier.kind in FORMATS and len(inner) == 1 else f"{word}=[{', '.join(inner)}]"
    call = CALL.fullmatch(shown)
    return f"{word}={call_source(call[1], call[2]) if call else quoted(shown)}"


def arguments(inst: Inst, s: Syntax) -> list[str]:
    """Python source of all arguments: operands, then keywords."""
    _, slots, modifiers = disasm.printer(inst.arch, inst.base, inst.opcode, s.form)
    positional: list[str] = []
    keywords: list[str] = []
    for slot, show in zip(s.slots, slots, strict=True):
        text = show(inst.fields)
        if immediate_fields(inst.arch, slot) and text:
            keywords += fields_source(text, slot, inst.arch)
        elif text:
            head, _, rest = text.partition(" ") if slot.kind == "export" else (text, "", "")
            positional += [value(t, slot, inst.arch) for t in (head, rest) if t]
    for modifier, show in zip(s.modifiers, modifiers, strict=True):
        if text := show(inst.fields).strip():
            keywords.append(modifier_source(text, modifier))
    return positional + keywords


def half_source(inst: Inst, base: str, half: Inst, prefix: str) -> str:
    s = syntax(inst.arch, base, half.opcode, "")
    _, slots, _ = disasm.printer(inst.arch, base, half.opcode, "")
    texts = (value(show(inst.fields), slot, inst.arch) for slot, show in zip(s.slots, slots, strict=True))
    return f"{prefix}{s.mnemonic}({', '.join(texts)})"


def pythonic(inst: Inst, prefix: str = "") -> str:
    """The builder call that makes `inst`; `prefix` ("rdna3.") goes before mnemonics."""
    if inst.x is not None and inst.y is not None:
        halves = (("VOPDX", inst.x), ("VOPDY", inst.y))
        return " & ".join(half_source(inst, base, half, prefix) for base, half in halves)
    s = syntax(inst.arch, inst.base, inst.opcode, disasm.form_of(inst))
    return f"{prefix}{s.mnemonic}({', '.join(arguments(inst, s))})"


# ---------------------------------------------------------------- programs


def labelled(arch: str, code: bytes, symbols: Mapping[int, str]) -> list[Item]:
    """Instructions of `code`, labels where branches go or `symbols` are, and bytes that are no
    instruction. A symbol inside an instruction, or whose name no label can have, gets none."""
    named = {name: place for place, name in symbols.items() if Label.is_name(name) and not is_register_name(arch, name)}
    symbols = {place: name for name, place in named.items()}
    found = dict(decode_all(arch, code))
    targets = {pc: t for pc, i in found.items() if isinstance(i, Inst) and (t := disasm.branch_target(i, pc)) is not None}
    places = sorted({t for t in (*targets.values(), *symbols) if t in found or t == len(code)})
    free = (name for n in count() if (name := f"L{n}") not in symbols.values())
    labels = {place: Label(symbols[place] if place in symbols else next(free)) for place in places}
    items: list[Item] = []
    for pc, inst in found.items():
        items += [labels[pc]] if pc in labels else []
        if not isinstance(inst, Inst):
            items.append(code[pc : pc + 4])
        elif targets.get(pc) in labels:
            items.append(branch(inst, labels[targets[pc]]))
        else:
            items.append(inst)
    return items + [label for place, label in labels.items() if place == len(code)]


def branch(inst: Inst, target: Label) -> Pending:
    """The same branch, to a label."""
    s = syntax(inst.arch, inst.base, inst.opcode, "")
    registers = tuple(register(t) for t in operand_texts(inst)[0][:-1])
    return Pending(inst.arch, s.mnemonic, (*registers, target), (), inst.size)


def register(text: str) -> Registers | Special:
    """The register that assembly text names."""
    if single := SINGLE.fullmatch(text):
        return Registers(single[1], int(single[2]), 1, (single[3] or "")[1:])
    if RANGE.fullmatch(text):
        first, last = map(int, re.findall(r"\d+", text))
        return Registers(text.partition("[")[0], first, last - first + 1)
    return Special(text)


Variables = Mapping[str, str]  # label name -> Python variable


def operand_source(x: object, arch: str, variables: Variables) -> str:
    """Python source of an operand that is a value, labels as variables."""
    if isinstance(x, Label):
        return variables[x.name]
    if isinstance(x, Distance):
        return f"{variables[x.end.name]} - {variables[x.start.name]} + {x.offset}"
    if isinstance(x, Constant):
        return f"{x.how}({x.value!r})"
    if isinstance(x, Source | Call):
        return value(repr(x), Slot("src"), arch)
    return repr(x)


def names_in(item: Item) -> tuple[str, ...]:
    """Labels an item places or goes to."""
    parts = item.operands if isinstance(item, Pending) else (item,)
    return tuple(name for x in parts for name in label_names(x))


def item_source(item: Item, program: Program, variables: Variables) -> str:
    if isinstance(item, Label):
        return f"p.add({variables[item.name]})"
    if isinstance(item, bytes):
        return f'p.add(bytes.fromhex("{item.hex()}"))'
    if isinstance(item, Inst):
        module = program.MODULE.rpartition(".")[2]
        return f"p.add({pythonic(item, f'{module}.')})" if item.x is not None else f"p.{pythonic(item)}"
    operands = [operand_source(x, program.ARCH, variables) for x in item.operands]
    return f"p.{item.mnemonic}({', '.join(operands + [f'{k}={v!r}' for k, v in item.modifiers])})"


def program_source(program: Program) -> str:
    """Python source of a whole program: imports, labels, then a line for each item."""
    package, _, module = program.MODULE.rpartition(".")
    taken = {*importlib.import_module(program.MODULE).__all__, *keyword.kwlist, module, "p", "abs", "bytes"}
    variables: dict[str, str] = {}
    for label in dict.fromkeys(name for item in program.items for name in names_in(item)):
        name = re.sub(r"\W", "_", label)
        while name in taken:
            name += "_"
        taken.add(name)
        variables[label] = name
    head = [f"from {package} import {module}", f"from {program.MODULE} import *", ""]
    declared = [f'{name} = Label("{label}")' for label, name in variables.items()]
    lines = [item_source(item, program, variables) for item in program.items] or ["pass"]
    return "\n".join([*head, *declared, f"with {module}.Program() as p:", *(f"    {line}" for line in lines), ""])
