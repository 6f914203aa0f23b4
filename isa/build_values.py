"""Operands of instructions as Python values: what builders take, printed as assembly text is.

    v[0]  v[4:7]  s[2:3]  a[0:15]  ttmp[2]      # ranges name first and last register, as in text
    v[1].h   -v[1]   abs(v[1])   neg(1.0)       # halves and source modifiers
    vcc  exec_  m0  null  off                   # registers and words with names
    lit(0x3f800000)   bits(1.0)                 # a literal where a shorter form exists; a float's bits
    hwreg("HW_REG_MODE", 0, 4)   sendmsg("MSG_DEALLOC_VGPRS")   swizzle("SWAP", 1)
    Label("loop")   end - start                 # positions, and distances in bytes

All are immutable, comparable and hashable, and `repr` is what the operand looks like in text.

Units:   register numbers and counts in 32-bit registers.
Errors:  IndexError for registers a file does not have, TypeError for what is no operand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace


class Source:
    """What takes the source modifiers: -x and abs(x)."""

    __slots__ = ()

    def __neg__(self) -> Source:
        return neg(self)

    def __abs__(self) -> Source:
        return abs_(self)


@dataclass(frozen=True, slots=True, repr=False)
class Registers(Source):
    """`count` consecutive registers of `file` ("v", "a", "s" or "ttmp"); half "", "l" or "h"."""

    file: str
    first: int
    count: int = 1
    half: str = ""

    @property
    def l(self) -> Registers:  # noqa: E743
        """The low 16 bits."""
        return self._part("l")

    @property
    def h(self) -> Registers:
        """The high 16 bits."""
        return self._part("h")

    def _part(self, half: str) -> Registers:
        if self.file != "v" or self.count != 1 or self.half:
            raise TypeError(f"{self} has no halves; single VGPRs have")
        return replace(self, half=half)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Registers:
        """Single register `index` of the range: v[4:7][1] is v[5]."""
        if not 0 <= index < self.count:
            raise IndexError(f"{self} has {self.count} register(s), no number {index}")
        return Registers(self.file, self.first + index)

    def __iter__(self) -> Iterator[Registers]:
        return (self[i] for i in range(self.count))

    def __repr__(self) -> str:
        if self.count == 1:
            return f"{self.file}{self.first}" + (f".{self.half}" if self.half else "")
        return f"{self.file}[{self.first}:{self.first + self.count - 1}]"


class RegisterFile:
    """All registers of a file: v[3], and v[4:7] for v4 up to and including v7."""

    __slots__ = ("letter", "size")

    def __init__(self, letter: str, size: int) -> None:
        self.letter, self.size = letter, size

    def __getitem__(self, index: int | slice) -> Registers:
        if not isinstance(index, slice):
            return Registers(self.letter, self._number(index))
        if index.start is None or index.stop is None or index.step is not None:
            raise IndexError(f"a range is {self.letter}[first:last], both included, as in assembly text")
        first, last = self._number(index.start), self._number(index.stop)
        if last < first:
            raise IndexError(f"range {self.letter}[{first}:{last}] runs backwards; the last register is included")
        return Registers(self.letter, first, last - first + 1)

    def _number(self, index: int) -> int:
        if not isinstance(index, int) or isinstance(index, bool):
            raise TypeError(f"register number {index!r} is no integer")
        if not 0 <= index < self.size:
            raise IndexError(f"no register {self.letter}{index}; there are {self.letter}0 to {self.letter}{self.size - 1}")
        return index

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"{self.letter}[0:{self.size - 1}]"


@dataclass(frozen=True, slots=True, repr=False)
class Special(Source):
    """A register or word that has a name: vcc, exec, m0, null, src_scc, off."""

    name: str

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, repr=False)
class Constant(Source):
    """A number with a wish. how "lit": stored as a literal even where an inline constant would do,
    its bits given; "bits": a float that an operand of any type takes as bits."""

    value: int | float
    how: str

    def __repr__(self) -> str:
        return f"lit({self.value:#x})" if self.how == "lit" else repr(self.value)


@dataclass(frozen=True, slots=True, repr=False)
class Signed(Source):
    """A source with its sign dropped (`absolute`), then flipped (`negative`)."""

    operand: Source | int | float
    negative: bool = False
    absolute: bool = False

    def __repr__(self) -> str:
        text = f"|{self.operand!r}|" if self.absolute else repr(self.operand)
        if not self.negative:
            return text
        return f"-{text}" if self.absolute or isinstance(self.operand, Registers) else f"neg({text})"


@dataclass(frozen=True, slots=True, repr=False)
class Extended(Source):
    """A source of an SDWA form whose selected part is extended by its sign."""

    operand: Registers | Special | Constant | int

    def __repr__(self) -> str:
        return f"sext({self.operand!r})"


@dataclass(frozen=True, slots=True, repr=False)
class Call:
    """A structured immediate: hwreg(HW_REG_MODE, 0, 4)."""

    name: str
    arguments: tuple[int | str, ...]

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(map(self._text, self.arguments))})"

    def _text(self, argument: int | str) -> str:
        """Lane masks are strings in assembly text too."""
        is_mask = isinstance(argument, str) and not set(argument) - set("01pi")
        return f'"{argument}"' if is_mask else str(argument)


@dataclass(frozen=True, slots=True, repr=False)
class Distance:
    """Bytes from label `start` to label `end`, plus `offset`: a literal of an instruction."""

    end: Label
    start: Label
    offset: int = 0

    def __add__(self, offset: int) -> Distance:
        return replace(self, offset=self.offset + offset)

    def __sub__(self, offset: int) -> Distance:
        return self + -offset

    def __repr__(self) -> str:
        return f"{self.end}-{self.start}" + (f"{self.offset:+}" if self.offset else "")


@dataclass(frozen=True, slots=True, repr=False)
class Label:
    """A position in a program, known once the program is put together."""

    name: str

    @staticmethod
    def is_name(text: str) -> bool:
        return text.replace(".", "_").replace("$", "_").isidentifier() and text.isascii()

    def __post_init__(self) -> None:
        if not self.is_name(self.name):
            raise ValueError(f"{self.name!r} is no name for a label")

    def __sub__(self, start: Label) -> Distance:
        return Distance(self, start)

    def __repr__(self) -> str:
        return self.name


#: What stands at an operand position. A str is symbolic text: "mrt0", "attr0.x", "UC_VERSION_GFX11".
Operand = Source | Call | Label | Distance | int | float | str | Sequence[Registers]
#: What a keyword of a builder takes: True for a flag, a number, a list of numbers, a name.
Keyword = bool | int | float | str | Call | Sequence[int] | Sequence[str]


def is_number(x: object) -> bool:
    return isinstance(x, int | float) and not isinstance(x, bool)


def signable(x: Source | int | float) -> Source | int | float:
    if isinstance(x, Extended) or not (isinstance(x, Source) or is_number(x)):
        raise TypeError(f"{x!r} has no sign: neg() and abs_() take registers and numbers")
    return x


def neg(x: Source | int | float) -> Source:
    """The source modifier of any source: neg(1.0) is not the constant -1.0."""
    if not isinstance(x, Signed):
        return Signed(signable(x), negative=True)
    if x.negative and not x.absolute and isinstance(x.operand, Source):
        return x.operand
    return replace(x, negative=not x.negative)


def abs_(x: Source | int | float) -> Source:
    """The source modifier |x| of any source; a sign before it is dropped."""
    return Signed(x.operand if isinstance(x, Signed) else signable(x), absolute=True)


def sext(x: Registers | Special | Constant | int) -> Extended:
    """The source modifier of SDWA forms that extends the selected part by its sign."""
    if not isinstance(x, Registers | Special | Constant | int) or isinstance(x, bool):
        raise TypeError(f"sext() takes a register or an integer, not {x!r}")
    return Extended(x)


def lit(value: int) -> Constant:
    """A literal of these 32 bits, stored after the instruction even where a shorter form exists."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 32:
        raise ValueError(f"lit() takes the 32 bits of a literal as an unsigned integer, not {value!r}")
    return Constant(value, "lit")


def bits(value: float) -> Constant:
    """The bits of a float, for an operand that is an integer."""
    return Constant(float(value), "bits")


def hwreg(register: str | int, offset: int = 0, size: int = 32) -> Call:
    """`size` bits from bit `offset` of a hardware register, for s_getreg and s_setreg."""
    return Call("hwreg", (register, offset, size))


def sendmsg(message: str | int, *parts: int) -> Call:
    """A message of s_sendmsg, with operation and stream where it has them."""
    return Call("sendmsg", (message, *parts))


def swizzle(mode: str, *arguments: int | str) -> Call:
    """Lane pattern of ds_swizzle_b32: swizzle("SWAP", 1), swizzle("QUAD_PERM", 0, 0, 2, 2)."""
    return Call("swizzle", (mode, *arguments))


def gpr_idx(*operands: str) -> Call:
    """Which of "SRC0", "SRC1", "SRC2", "DST" s_set_gpr_idx_on indexes."""
    return Call("gpr_idx", operands)


vcc, vcc_lo, vcc_hi = Special("vcc"), Special("vcc_lo"), Special("vcc_hi")
exec_, exec_lo, exec_hi = Special("exec"), Special("exec_lo"), Special("exec_hi")
m0, null, off = Special("m0"), Special("null"), Special("off")
src_scc, src_vccz, src_execz = Special("src_scc"), Special("src_vccz"), Special("src_execz")
src_shared_base, src_shared_limit = Special("src_shared_base"), Special("src_shared_limit")
src_private_base, src_private_limit = Special("src_private_base"), Special("src_private_limit")
src_pops_exiting_wave_id = Special("src_pops_exiting_wave_id")
flat_scratch = Special("flat_scratch")
flat_scratch_lo, flat_scratch_hi = Special("flat_scratch_lo"), Special("flat_scratch_hi")
xnack_mask = Special("xnack_mask")
xnack_mask_lo, xnack_mask_hi = Special("xnack_mask_lo"), Special("xnack_mask_hi")
