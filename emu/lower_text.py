"""A writer of LLVM assembly text: values, constants, blocks, intrinsics. No meaning of GPU operations here.

Text is written rather than objects built: a handler is some hundred lines, text costs microseconds,
and only a cold cache ever needs LLVM loaded.

A `Value` is a bit vector of `width` bits: `i<width>` when the emitter is scalar (`lanes == 0`), else
`<lanes x i<width>>`. Floats are bitcast at the operation that needs them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple


class Value(NamedTuple):
    """ref: an SSA name or constant text; const: its bits when known while writing."""

    ref: str
    width: int
    const: int | None = None


@dataclass(frozen=True, slots=True)
class Float:
    """A binary interchange format: total bits, exponent bits, stored significand bits, LLVM's name."""

    name: str
    width: int
    exp: int
    man: int
    llvm: str

    @property
    def bias(self) -> int:
        return (1 << (self.exp - 1)) - 1

    @property
    def sign(self) -> int:
        return 1 << (self.width - 1)

    @property
    def inf(self) -> int:
        return ((1 << self.exp) - 1) << self.man

    @property
    def quiet(self) -> int:
        return 1 << (self.man - 1)

    @property
    def nan(self) -> int:
        """The default NaN: positive, quiet bit only."""
        return self.inf | self.quiet


F16 = Float("f16", 16, 5, 10, "half")
BF16 = Float("bf16", 16, 8, 7, "bfloat")
F32 = Float("f32", 32, 8, 23, "float")
F64 = Float("f64", 64, 11, 52, "double")
FORMATS = {f.name: f for f in (F16, BF16, F32, F64)}

ROUNDS = ("rne", "rup", "rdn", "rtz")  # by number in MODE


@dataclass(frozen=True, slots=True)
class FloatMode:
    """MODE.FP_ROUND and MODE.FP_DENORM: bits [1:0] round f32, [3:2] round f16/f64, [5:4] denormals of
    f32, [7:6] denormals of f16/f64. Denormal field: bit 0 keeps inputs, bit 1 keeps results.
    `saturate` is MODE.FP16_OVFL: f16 results that overflow become the largest finite number."""

    bits: int = 0xF0
    saturate: bool = False

    def rounding(self, f: Float) -> str:
        return ROUNDS[(self.bits >> (0 if f in (F32, BF16) else 2)) & 3]

    def _denorm(self, f: Float) -> int:
        return (self.bits >> (4 if f in (F32, BF16) else 6)) & 3

    def flush_in(self, f: Float) -> bool:
        return not self._denorm(f) & 1

    def flush_out(self, f: Float) -> bool:
        return not self._denorm(f) & 2


@dataclass(frozen=True, slots=True)
class Host:
    """What decides between instruction sequences; all of them give the same bits."""

    f16c: bool = True


_FOLD: Mapping[str, Callable[[int, int], int]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "and": operator.and_, "or": operator.or_,
    "xor": operator.xor, "shl": operator.lshift, "lshr": operator.rshift,
}
_FOLD_COMPARE: Mapping[str, Callable[[int, int], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "ult": operator.lt, "ule": operator.le,
}


@dataclass
class Emitter:
    """Writes one function body. `lanes` 0 is scalar code."""

    lanes: int
    mode: FloatMode = field(default_factory=FloatMode)
    host: Host = field(default_factory=Host)
    lines: list[str] = field(default_factory=list)
    entry: list[str] = field(default_factory=list)  # allocas, placed before everything else
    declarations: dict[str, str] = field(default_factory=dict)
    block: str = "body"
    count: int = 0
    strict: bool = False  # the function changes the rounding mode of the processor

    # ------------------------------------------------------------ names and types

    def name(self, hint: str = "t") -> str:
        self.count += 1
        return f"%{hint}{self.count}"

    def wrap(self, scalar: str) -> str:
        return f"<{self.lanes} x {scalar}>" if self.lanes else scalar

    def ty(self, width: int) -> str:
        return self.wrap(f"i{width}")

    def suffix(self, scalar: str) -> str:
        """Overload suffix of an intrinsic: "v32f32" or "i64"."""
        short = {"float": "f32", "double": "f64", "half": "f16", "bfloat": "bf16"}.get(scalar, scalar)
        return f"v{self.lanes}{short}" if self.lanes else short

    # ------------------------------------------------------------ lines

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def inst(self, text: str, width: int) -> Value:
        n = self.name()
        self.lines.append(f"  {n} = {text}")
        return Value(n, width)

    def raw(self, text: str) -> str:
        """An instruction whose result is no `Value` (pointers, floats); gives its name."""
        n = self.name()
        self.lines.append(f"  {n} = {text}")
        return n

    def label(self, hint: str) -> str:
        self.count += 1
        return f"{hint}{self.count}"

    def start(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label

    def jump(self, label: str) -> None:
        self.line(f"br label %{label}")

    def branch(self, cond: str, yes: str, no: str, *, rare: bool = False) -> None:
        self.line(f"br i1 {cond}, label %{yes}, label %{no}{', !prof !0' if rare else ''}")

    def alloca(self, ty: str, align: int = 64) -> str:
        n = self.name("a")
        self.entry.append(f"  {n} = alloca {ty}, align {align}")
        return n

    # ------------------------------------------------------------ values

    def const(self, bits: int, width: int) -> Value:
        bits &= (1 << width) - 1
        if not self.lanes:
            return Value(str(bits), width, bits)
        return Value("zeroinitializer" if bits == 0 else f"splat (i{width} {bits})", width, bits)

    def splat(self, scalar: str, width: int) -> Value:
        """A scalar SSA value in every lane."""
        if not self.lanes:
            return Value(scalar, width)
        one = self.raw(f"insertelement <{self.lanes} x i{width}> poison, i{width} {scalar}, i32 0")
        return self.inst(f"shufflevector {self.ty(width)} {one}, {self.ty(width)} poison, "
                         f"<{self.lanes} x i32> zeroinitializer", width)

    def bin(self, op: str, a: Value, b: Value) -> Value:
        if a.const is not None and b.const is not None and op in _FOLD:
            return self.const(_FOLD[op](a.const, b.const), a.width)
        return self.inst(f"{op} {self.ty(a.width)} {a.ref}, {b.ref}", a.width)

    def icmp(self, cond: str, a: Value, b: Value) -> Value:
        if a.const is not None and b.const is not None and cond in _FOLD_COMPARE:
            return self.const(int(_FOLD_COMPARE[cond](a.const, b.const)), 1)
        return self.inst(f"icmp {cond} {self.ty(a.width)} {a.ref}, {b.ref}", 1)

    def select(self, c: Value, a: Value, b: Value) -> Value:
        if c.const is not None:
            return a if c.const else b
        if a.ref == b.ref:
            return a
        t = self.ty(a.width)
        return self.inst(f"select {self.ty(1)} {c.ref}, {t} {a.ref}, {t} {b.ref}", a.width)

    def cast(self, op: str, a: Value, width: int) -> Value:
        return self.inst(f"{op} {self.ty(a.width)} {a.ref} to {self.ty(width)}", width)

    def zext(self, a: Value, width: int) -> Value:
        if a.width == width:
            return a
        if a.const is not None:
            return self.const(a.const, width)
        return self.cast("zext" if width > a.width else "trunc", a, width)

    def sext(self, a: Value, width: int) -> Value:
        if width <= a.width:
            return self.zext(a, width)
        if a.const is not None:
            top = a.const >> (a.width - 1)
            return self.const(a.const - (top << a.width), width)
        return self.cast("sext", a, width)

    def call(self, name: str, result: str, *args: tuple[str, str]) -> str:
        """Call a function by name with (type, ref) arguments; declared on first use."""
        self.declarations.setdefault(name, f"declare {result} @{name}({', '.join(t for t, _ in args)})")
        text = f"call {result} @{name}({', '.join(f'{t} {r}' for t, r in args)})"
        if result == "void":
            self.line(text)
            return ""
        return self.raw(text)

    def intrinsic(self, base: str, width: int, *args: Value, extra: Sequence[tuple[str, str]] = ()) -> Value:
        """An integer intrinsic overloaded on the result: `llvm.ctpop.v32i32`."""
        name = f"llvm.{base}.{self.suffix(f'i{width}')}"
        typed = [(self.ty(a.width), a.ref) for a in args]
        return Value(self.call(name, self.ty(width), *typed, *extra), width)

    # ------------------------------------------------------------ float views

    def as_float(self, f: Float, a: Value) -> str:
        return self.raw(f"bitcast {self.ty(f.width)} {a.ref} to {self.wrap(f.llvm)}")

    def as_bits(self, f: Float, ref: str) -> Value:
        return self.inst(f"bitcast {self.wrap(f.llvm)} {ref} to {self.ty(f.width)}", f.width)

    # ------------------------------------------------------------ control flow on values

    def any(self, mask: Value) -> str:
        """One i1: some lane of the mask is set."""
        if not self.lanes:
            return mask.ref
        word = self.raw(f"bitcast {self.ty(1)} {mask.ref} to i{self.lanes}")
        return self.raw(f"icmp ne i{self.lanes} {word}, 0")

    def rarely(self, mask: Value, old: Value, fix: Callable[[], Value]) -> Value:
        """`old`, except that when some lane of `mask` is set, `fix()` replaces the whole vector."""
        slow, done, before = self.label("slow"), self.label("done"), self.block
        self.branch(self.any(mask), slow, done, rare=True)
        self.start(slow)
        new = fix()
        after = self.block
        self.jump(done)
        self.start(done)
        t = self.ty(old.width)
        return self.inst(f"phi {t} [ {old.ref}, %{before} ], [ {new.ref}, %{after} ]", old.width)

    @contextmanager
    def with_rounding(self, mode: str) -> Iterator[None]:
        """Processor rounding mode around constrained operations (MXCSR bits [14:13])."""
        self.strict = True
        slot = self.alloca("i32", 4)
        self.call("llvm.x86.sse.stmxcsr", "void", ("ptr", slot))
        old = self.raw(f"load i32, ptr {slot}")
        number = {"rne": 0, "rdn": 1, "rup": 2, "rtz": 3}[mode]
        new = self.raw(f"or i32 {self.raw(f'and i32 {old}, -24577')}, {number << 13}")
        self.line(f"store i32 {new}, ptr {slot}")
        self.call("llvm.x86.sse.ldmxcsr", "void", ("ptr", slot))
        yield
        self.line(f"store i32 {old}, ptr {slot}")
        self.call("llvm.x86.sse.ldmxcsr", "void", ("ptr", slot))

    @contextmanager
    def scalarly(self) -> Iterator[None]:
        """Write scalar code inside a vector function."""
        lanes, self.lanes = self.lanes, 0
        yield
        self.lanes = lanes
