"""What vector instructions compute, as LLVM IR written from their meaning, compiled for the host with llvmlite.

Nothing of the emulator is used: `TABLE` holds a body for each instruction, the rest of this file turns bit
patterns into its arguments, applies what MODE says, and brings results back to bit patterns.

Kinds of a signature, arguments in front of the colon:

    h f d    floats of 16 (a double in IR, exact), 32 and 64 bits; denormals flushed where MODE says so
    s w q    integers of 16, 32 and 64 bits (also floats whose bits are looked at)
    m        a lane bit: i1, of VCC
    +        the next argument is the old destination
    !        after the result: a NaN is the first NaN argument, quieted, else the default one; ^ the last;
             - as !, but the default one has its sign set
    ~        after the result: neither NaNs nor denormals are touched
    P        in front of all: packed, the scalar body on both halves

Names may have modifiers after a space, and in the end @ and the dialect the line is for.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numpy.typing import NDArray

from tests.emu.oracle_table import PRELUDE, table

Bits = NDArray[Any]  # unsigned integers of an operand's width

_IR = {"h": "double", "f": "float", "d": "double", "s": "i16", "w": "i32", "q": "i64", "m": "i1"}
_HOST: Mapping[str, Any] = {"h": np.float64, "f": np.float32, "d": np.float64, "s": np.uint16, "w": np.uint32,
                            "q": np.uint64, "m": np.uint8}
_BITS: Mapping[str, Any] = {"h": np.uint16, "f": np.uint32, "d": np.uint64, "s": np.uint16, "w": np.uint32,
                            "q": np.uint64, "m": np.uint32}
_FLOAT: Mapping[str, Any] = {"h": np.float16, "f": np.float32, "d": np.float64}
_INF = {"h": 0x7C00, "f": 0x7F80_0000, "d": 0x7FF << 52}
_QUIET = {"h": 0x200, "f": 1 << 22, "d": 1 << 51}
WIDTH = {"h": 16, "f": 32, "d": 64, "s": 16, "w": 32, "q": 64, "m": 32}

#: MODE: rounding by (f32, f16 and f64), and who keeps denormals.
RNE, UP, DOWN, ZERO = range(4)
FP16_OVFL = 1 << 23
_FE = (0, 0x800, 0x400, 0xC00)  # fesetround of x86
_libm = ctypes.CDLL(None)


@dataclass(frozen=True)
class Row:
    """One line of the table.

    kinds    of the arguments; `old` is the number of the one that is the old destination (-1: none).
    dialect  the only one it is for; "": all.
    """

    name: str
    modifiers: str
    kinds: str
    old: int
    result: str
    rule: str
    packed: bool
    body: str
    dialect: str

    @property
    def text(self) -> str:
        shown = f"{self.name} {self.modifiers}" if self.modifiers else self.name
        return f"{shown}@{self.dialect}" if self.dialect else shown

    @property
    def key(self) -> str:
        return re.sub(r"\W", "_", self.name + self.modifiers + self.dialect)


@cache
def rows() -> dict[str, Row]:
    """By text: the name and its modifiers."""
    out = {}
    for names, signature, body in table():
        m = re.fullmatch(r"(P?)([hfdswqm]*)(?:\+([hfdswqm]))?:([hfdswqm])([-!^~]?)", signature)
        assert m, signature
        packed, kinds, old, result, rule = m.groups()
        for text in names:
            shown, _, dialect = text.partition("@")
            name, _, modifiers = shown.partition(" ")
            out[text] = Row(name, modifiers, kinds + (old or ""), len(kinds) if old else -1, result, rule,
                            bool(packed), body, dialect)
    return out


# ---------------------------------------------------------------- compiled bodies


def _function(row: Row) -> str:
    """A loop over arrays around the body."""
    letters = "abcde"[: len(row.kinds)]
    loads, args = [], []
    for letter, kind in zip(letters, row.kinds, strict=True):
        t = "i8" if kind == "m" else _IR[kind]
        loads += [f"%p{letter} = getelementptr {t}, ptr %in{letter}, i64 %i", f"%l{letter} = load {t}, ptr %p{letter}"]
        if kind == "m":
            loads.append(f"%m{letter} = trunc i8 %l{letter} to i1")
        args.append(f"{_IR[kind]} %{'m' if kind == 'm' else 'l'}{letter}")
    result = _IR[row.result]
    widen = "%o = zext i1 %v to i8\n" if row.result == "m" else ""
    t, o = ("i8", "%o") if widen else (result, "%v")
    params = ", ".join(f"{_IR[k]} %{letter}" for letter, k in zip(letters, row.kinds, strict=True))
    body = "\n".join(part.strip() for part in row.body.split(";"))
    pointers = "".join(f"ptr %in{letter}, " for letter in letters)
    return (f"define internal {result} @body_{row.key}({params}) alwaysinline {{\n{body}\nret {result} %r\n}}\n"
            f"define void @{row.key}({pointers}ptr %out, i64 %n) {{\nentry:\nbr label %loop\nloop:\n"
            f"%i = phi i64 [0, %entry], [%next, %loop]\n" + "\n".join(loads) +
            f"\n%v = call {result} @body_{row.key}({', '.join(args)})\n{widen}"
            f"%po = getelementptr {t}, ptr %out, i64 %i\nstore {t} {o}, ptr %po\n"
            "%next = add i64 %i, 1\n%done = icmp eq i64 %next, %n\nbr i1 %done, label %end, label %loop\n"
            "end:\nret void\n}\n")


@cache
def _machine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(opt=1, jit=True)


_KEPT: list[Any] = []


@cache
def compiled(keys: tuple[str, ...]) -> Mapping[str, Any]:
    """Row text -> host function, all of one module."""
    chosen = [rows()[k] for k in keys]
    text = "\n".join(map(_function, chosen))
    used = set(re.findall(r"@(llvm\.[\w.]+)", text + PRELUDE))
    declared = "\n".join(_declaration(name, text + PRELUDE) for name in sorted(used))
    module = llvm.parse_assembly(declared + PRELUDE + text)
    module.verify()
    engine = llvm.create_mcjit_compiler(module, _machine())
    engine.finalize_object()
    _KEPT.append(engine)
    out = {}
    for key, row in zip(keys, chosen, strict=True):
        kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (len(row.kinds) + 1), ctypes.c_int64)
        out[key] = kind(engine.get_function_address(row.key))
    return out


def _declaration(name: str, text: str) -> str:
    """From a call in the text."""
    m = re.search(rf"call ([\w<>{{}}, ]+?) @{re.escape(name)}\(([^)]*)\)", text)
    assert m, name
    types = ", ".join(re.sub(r"\s*[%\w.-]+$", "", part.strip()) for part in m[2].split(","))
    return f"declare {m[1]} @{name}({types})"


@contextmanager
def _rounding(way: int) -> Iterator[None]:
    _libm.fesetround(_FE[way])
    try:
        yield
    finally:
        _libm.fesetround(0)


# ---------------------------------------------------------------- what MODE says


def way(kind: str, mode: int) -> int:
    """Rounding of a result."""
    return mode & 3 if kind == "f" else mode >> 2 & 3


def flush(kind: str, bits: Bits, mode: int, out: bool) -> Bits:
    """Denormals of a float kind become zeros of their sign where MODE has them neither as input nor as result."""
    if kind not in _INF or mode >> (4 if kind == "f" else 6) & (2 if out else 1):
        return bits
    sign = bits.dtype.type(1 << WIDTH[kind] - 1)
    return np.where(bits & bits.dtype.type(_INF[kind]) == 0, bits & sign, bits)


def narrowed(x: NDArray[Any], direction: int) -> Bits:
    """Doubles to the bits of f16, rounded once."""
    with np.errstate(all="ignore"):
        r = x.astype(np.float16)
        back = r.astype(np.float64)
        zero, up, down = np.float16(0), np.float16(np.inf), np.float16(-np.inf)
        if direction == ZERO:
            r = np.where(abs(back) > abs(x), np.nextafter(r, zero), r)
        elif direction == UP:
            r = np.where(back < x, np.nextafter(r, up), r)
        elif direction == DOWN:
            r = np.where(back > x, np.nextafter(r, down), r)
    bits = r.view(np.uint16)
    return bits | (np.signbit(x).astype(np.uint16) << np.uint16(15))


def _is_nan(kind: str, bits: Bits) -> Any:
    t = bits.dtype.type
    return bits & t((1 << WIDTH[kind] - 1) - 1) > t(_INF[kind])


def _nan_cut(bits: Bits) -> Bits:
    """NaNs of f32 as f16: the top of the payload; what is none gives zero."""
    cut = (bits >> np.uint32(16) & np.uint32(0x8000) | np.uint32(0x7E00) | bits >> np.uint32(13) & np.uint32(0x3FF)).astype(np.uint16)
    return np.where(_is_nan("f", bits), cut, np.uint16(0))


def nan_rule(kind: str, result: Bits, args: Sequence[tuple[str, Bits]], default_sign: int = 0) -> Bits:
    """The first NaN argument, in the result's format and quieted; else the default NaN."""
    t = result.dtype.type
    if kind == "f":
        args = [("f", b.view(np.float16).astype(np.float32).view(np.uint32)) if k == "h" else (k, b) for k, b in args]
    if kind == "h":
        args = [("h", _nan_cut(b)) if k == "f" else (k, b) for k, b in args]
    chosen = np.full_like(result, t(_INF[kind] | _QUIET[kind] | default_sign << WIDTH[kind] - 1))
    for k, bits in reversed(args):
        if k == kind:
            chosen = np.where(_is_nan(k, bits), bits | t(_QUIET[kind]), chosen)
    return np.where(_is_nan(kind, result), chosen, result)


def expected(row: Row, function: Any, args: Sequence[Bits], mode: int) -> Bits:
    """Result bits of every item. args: unsigned integers of each argument's width; packed: whole dwords."""
    if row.packed:
        n = WIDTH[row.result]
        t = _BITS[row.result]
        parts = [_expected(row, function, [(a >> a.dtype.type(at)).astype(t) for a in args], mode) for at in (0, n)]
        wide = np.uint32 if n == 16 else np.uint64
        both: Bits = parts[0].astype(wide) | parts[1].astype(wide) << wide(n)
        return both
    return _expected(row, function, args, mode)


def _expected(row: Row, function: Any, args: Sequence[Bits], mode: int) -> Bits:
    if row.rule != "~":
        args = [flush(k, a, mode, False) for k, a in zip(row.kinds, args, strict=True)]
    host = []
    for kind, a in zip(row.kinds, args, strict=True):
        whole = np.ascontiguousarray(a)
        v = whole.view(_FLOAT[kind]) if kind in _FLOAT else whole
        host.append(np.ascontiguousarray(v.astype(_HOST[kind])))
    out = np.zeros(len(args[0]), _HOST[row.result])
    with _rounding(way(row.result if row.result in _FLOAT else row.kinds[0], mode)):
        function(*[v.ctypes.data for v in host], out.ctypes.data, len(out))
    if row.result == "h":
        bits = narrowed(out, way("h", mode))
        if mode & FP16_OVFL:
            bits = np.where((bits & np.uint16(0x7FFF) == 0x7C00) & np.isfinite(out), bits - np.uint16(1), bits)
    else:
        bits = out.astype(np.uint32) if row.result == "m" else out.view(_BITS[row.result])
    if row.rule in ("!", "^", "-"):
        pairs = list(zip(row.kinds, args, strict=True))
        bits = nan_rule(row.result, bits, pairs[::-1] if row.rule == "^" else pairs, int(row.rule == "-"))
    return bits if row.rule == "~" else flush(row.result, bits, mode, True)
