"""Syntax tree of the vendor's pseudocode: what `pcode_parse` makes and `pcode_lower` reads.

The language is described by its grammar (expressions of C with `**`, slices, sized literals and
bit casts; statements with if/elsif/else, inclusive `for`, `while`, `declare` and `lambda`).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Num:
    """Integer literal. kind: "" untyped, "U", "I", "B" (sized, no sign); width 0 when untyped."""

    value: int
    kind: str = ""
    width: int = 0
    is_hex: bool = False


@dataclass(frozen=True, slots=True)
class Real:
    """Float literal; width 0 takes the type of the other side. `text` is the decimal spelling."""

    text: str
    width: int = 0


@dataclass(frozen=True, slots=True)
class Name:
    name: str


@dataclass(frozen=True, slots=True)
class Text:
    """A string statement: an informal action."""

    text: str


@dataclass(frozen=True, slots=True)
class Dot:
    """`base.name`: reinterpretation as a type, or a field."""

    base: Node
    name: str


@dataclass(frozen=True, slots=True)
class Index:
    base: Node
    index: Node


@dataclass(frozen=True, slots=True)
class Slice:
    """`base[hi : lo]`, both inclusive."""

    base: Node
    hi: Node
    lo: Node


@dataclass(frozen=True, slots=True)
class Part:
    """`base[lo +: width]`."""

    base: Node
    lo: Node
    width: Node


@dataclass(frozen=True, slots=True)
class Call:
    name: str
    args: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Cast:
    """`width'kind(value)`: conversion. kind: U I B F BF."""

    width: int
    kind: str
    value: Node


@dataclass(frozen=True, slots=True)
class Unary:
    op: str
    value: Node


@dataclass(frozen=True, slots=True)
class Binary:
    op: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Cond:
    test: Node
    yes: Node
    no: Node


@dataclass(frozen=True, slots=True)
class Concat:
    """`{ a, b, ... }`, first is most significant."""

    parts: tuple[Node, ...]


Node = Num | Real | Name | Dot | Index | Slice | Part | Call | Cast | Unary | Binary | Cond | Concat


@dataclass(frozen=True, slots=True)
class Assign:
    """targets = value; op "" or "+", "-" for the compound forms (one target)."""

    targets: tuple[Node, ...]
    value: Node
    op: str = ""


@dataclass(frozen=True, slots=True)
class IfElse:
    """arms are (condition, block); `other` is the else block."""

    arms: tuple[tuple[Node, Block], ...]
    other: Block


@dataclass(frozen=True, slots=True)
class ForIn:
    name: str
    lo: Node
    hi: Node
    body: Block


@dataclass(frozen=True, slots=True)
class WhileDo:
    cond: Node
    body: Block


@dataclass(frozen=True, slots=True)
class Declare:
    """n = 0: a scalar; else an array of n elements."""

    name: str
    width: int
    kind: str
    n: int = 0


@dataclass(frozen=True, slots=True)
class Lambda:
    """Body is an expression, or a block with `return`."""

    name: str
    params: tuple[str, ...]
    body: Node | Block


@dataclass(frozen=True, slots=True)
class Return:
    value: Node


@dataclass(frozen=True, slots=True)
class BreakLoop:
    pass


@dataclass(frozen=True, slots=True)
class Action:
    """A call on its own."""

    call: Call


@dataclass(frozen=True, slots=True)
class Matrix:
    """D = A * B + C of whole matrices; the mnemonic says the rest."""

    sparse: bool
    accumulates_in_place: bool


Statement = (
    Assign
    | IfElse
    | ForIn
    | WhileDo
    | Declare
    | Lambda
    | Return
    | BreakLoop
    | Action
    | Matrix
    | Text
)
Block = tuple[Statement, ...]
