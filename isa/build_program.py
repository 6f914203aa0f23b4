"""Programs made of instructions, labels and data.

    with rdna3.Program() as p:
        p.s_mov_b32(s[0], 10)
        loop = p.label("loop")                 # placed here
        done = Label("done")                   # placed later, by p.add(done)
        p.s_sub_u32(s[0], s[0], 1)
        p.s_cmp_eq_u32(s[0], 0)
        p.s_cbranch_scc1(done)
        p.s_branch(loop)
        p.add(done, rdna3.s_endpgm())
    code, text = bytes(p), str(p)              # text assembles to the same bytes

Units:   addresses and sizes in bytes, from the start of the program.
Errors:  ValueError for a label placed twice or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar, Self

from stuntgpu.isa.build_values import Distance, Label, Operand
from stuntgpu.isa.inst import Inst

if TYPE_CHECKING:
    from stuntgpu.isa.build import Builder
    from stuntgpu.isa.build_plan import Plan

REGISTER_NAME = re.compile(r"(v|a|s|ttmp)\d+(\.[lh])?|off|neg|abs|lit")


@dataclass(frozen=True, slots=True, repr=False)
class Pending:
    """An instruction with a label among its operands: size known, bytes not yet."""

    arch: str
    mnemonic: str
    operands: tuple[Operand, ...]
    modifiers: tuple[tuple[str, object], ...]
    size: int

    @classmethod
    def of(cls, plan: Plan, operands: tuple[Operand, ...], modifiers: Mapping[str, object]) -> Pending:
        """Checked as far as it can be: everything but the distance. Raises as a builder does."""
        from stuntgpu.isa.build_call import machine_code

        near = {name: 4 for x in operands for name in label_names(x)}
        size = len(machine_code(plan, operands, modifiers, 0, near))
        return cls(plan.arch, plan.mnemonic, operands, tuple(modifiers.items()), size)

    def at(self, pc: int, labels: Mapping[str, int]) -> Inst:
        """The instruction at address `pc`. Raises ValueError for a target out of reach."""
        from stuntgpu.isa.build_call import machine_code
        from stuntgpu.isa.build_plan import plan
        from stuntgpu.isa.decode import decode

        wanted = plan(self.arch, self.mnemonic)
        return decode(self.arch, machine_code(wanted, self.operands, dict(self.modifiers), pc, labels))

    def __repr__(self) -> str:
        """Its text, labels by name."""
        from stuntgpu.isa.build_call import source_text
        from stuntgpu.isa.build_plan import plan

        return source_text(plan(self.arch, self.mnemonic), self.operands, dict(self.modifiers))


def is_register_name(arch: str, name: str) -> bool:
    """Whether assembly text would read `name` as a register or a word of the language."""
    from stuntgpu.isa.asm_names import register_numbers

    return bool(REGISTER_NAME.fullmatch(name)) or name in register_numbers(arch)


def label_names(x: object) -> tuple[str, ...]:
    if isinstance(x, Distance):
        return x.end.name, x.start.name
    return (x.name,) if isinstance(x, Label) else ()


#: What a program is made of; bytes are data.
Item = Inst | Pending | Label | bytes


class Program:
    """A list of instructions, labels and data of one architecture, in order.

    Attributes are the architecture's builders; calling one appends what it makes.
    """

    ARCH: ClassVar[str] = ""
    MODULE: ClassVar[str] = ""

    def __init__(self, items: Iterable[Item] = ()) -> None:
        self.items: list[Item] = []
        self._placed: set[str] = set()
        self.add(*items)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            self.instructions()

    def add(self, *items: Item) -> None:
        """Appends. Raises TypeError for what is no item of this architecture."""
        for item in items:
            if isinstance(item, Label):
                self._place(item)
            elif not isinstance(item, Inst | Pending | bytes):
                raise TypeError(f"{item!r} is no instruction, label or bytes")
            elif not isinstance(item, bytes) and item.arch != self.ARCH:
                raise TypeError(f"{item} is an instruction of {item.arch}, the program is of {self.ARCH}")
            self.items.append(item)

    def _place(self, label: Label) -> None:
        if is_register_name(self.ARCH, label.name):
            raise ValueError(f"{label} is the name of a register; a label needs another")
        if label.name in self._placed:
            raise ValueError(f"label {label} is placed twice")
        self._placed.add(label.name)

    def label(self, name: str = "") -> Label:
        """A label placed here; without a name it gets one."""
        free = (f"L{i}" for i in count() if f"L{i}" not in self._placed)
        label = Label(name or next(free))
        self.add(label)
        return label

    def __getattr__(self, name: str) -> Builder:
        from stuntgpu.isa.build import appending

        return appending(self, name)

    def __dir__(self) -> list[str]:
        from stuntgpu.isa.build_plan import dual_names, instruction_names

        return sorted({*super().__dir__(), *instruction_names(self.ARCH)} - set(dual_names(self.ARCH)))

    @classmethod
    def from_bytes(cls, code: bytes, symbols: Mapping[int, str] | None = None) -> Self:
        """The program of machine code: places that branches go to get labels, as do those of
        `symbols` (offset -> name); what is no instruction stays bytes. `bytes()` of it is `code`."""
        from stuntgpu.isa.build_python import labelled

        return cls(labelled(cls.ARCH, code, symbols or {}))

    @property
    def source(self) -> str:
        """Python source that makes the program again, as `p`."""
        from stuntgpu.isa.build_python import program_source

        return program_source(self)

    # ---- putting together

    @property
    def size(self) -> int:
        """Bytes of the whole program."""
        return sum(map(item_size, self.items))

    @property
    def labels(self) -> dict[str, int]:
        """Addresses of the labels that are placed."""
        out, pc = {}, 0
        for item in self.items:
            if isinstance(item, Label):
                out[item.name] = pc
            pc += item_size(item)
        return out

    def instructions(self) -> list[tuple[int, Inst]]:
        """(address, instruction), branches resolved. Raises ValueError for a label not placed."""
        labels, out, pc = self.labels, [], 0
        for item in self.items:
            if isinstance(item, Pending):
                out.append((pc, self._resolve(item, pc, labels)))
            elif isinstance(item, Inst):
                out.append((pc, item))
            pc += item_size(item)
        return out

    def _resolve(self, item: Pending, pc: int, labels: Mapping[str, int]) -> Inst:
        missing = [n for x in item.operands for n in label_names(x) if n not in labels]
        if missing:
            raise ValueError(f"{item!r} at {pc:#x}: label {missing[0]} is not placed in the program")
        return item.at(pc, labels)

    def __bytes__(self) -> bytes:
        labels, code = self.labels, bytearray()
        for item in self.items:
            if isinstance(item, Pending):
                item = self._resolve(item, len(code), labels)
            code += b"" if isinstance(item, Label) else bytes(item)
        return bytes(code)

    @property
    def text(self) -> str:
        """Assembly text of the program, labels by name."""
        return "".join(map(item_text, self.items))

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Program of {self.ARCH}: {len(self.items)} items, {self.size} bytes>"


def item_size(item: Item) -> int:
    if isinstance(item, bytes):
        return len(item)
    return 0 if isinstance(item, Label) else item.size


def item_text(item: Item) -> str:
    if isinstance(item, Label):
        return f"{item.name}:\n"
    if isinstance(item, bytes):
        return f"\t.byte {', '.join(map(str, item))}\n" if item else ""
    return f"\t{item if isinstance(item, Inst) else repr(item)}\n"
