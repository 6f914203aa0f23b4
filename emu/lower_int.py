"""Lowering of the integer and shape operations of `isa.ir.OPS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from stuntgpu.emu.lower_text import Emitter, Value
from stuntgpu.isa.ir import Op

Lower = Callable[[Emitter, Op, list[Value]], Value]


def _bin(name: str) -> Lower:
    return lambda e, n, a: e.bin(name, a[0], a[1])


def _cmp(cond: str) -> Lower:
    return lambda e, n, a: e.icmp(cond, a[0], a[1])


def _count(base: str) -> Lower:
    extra = () if base == "ctpop" else (("i1", "false"),)
    return lambda e, n, a: e.intrinsic(base, a[0].width, a[0], extra=extra)


def _divide(name: str) -> Lower:
    """LLVM leaves x / 0 and MIN / -1 undefined: divide by one there, then pick the defined result."""
    signed, remainder = name[0] == "s", name.endswith("rem")

    def lower(e: Emitter, n: Op, args: list[Value]) -> Value:
        a, b = args
        w = a.width
        zero = e.icmp("eq", b, e.const(0, w))
        unsafe = zero
        if signed:
            least = e.icmp("eq", a, e.const(1 << (w - 1), w))
            minus = e.icmp("eq", b, e.const(-1, w))
            unsafe = e.bin("or", zero, e.bin("and", least, minus))
        r = e.bin(name, a, e.select(unsafe, e.const(1, w), b))
        return e.select(zero, a if remainder else e.const(-1, w), r)

    return lower


def shift(e: Emitter, op: str, a: Value, by: Value) -> Value:
    """shl, lshr, ashr with any shift count; counts of the width and beyond clear or sign-fill."""
    w = a.width
    if by.const is not None:
        if by.const >= w and op != "ashr":
            return e.const(0, w)
        return a if by.const == 0 else e.bin(op, a, e.const(min(by.const, w - 1), w))
    far = e.icmp("ugt", by, e.const(w - 1, by.width)) if (1 << by.width) > w else None
    if op == "ashr":
        if far is not None:
            by = e.select(far, e.const(w - 1, by.width), by)
        return e.bin(op, a, e.zext(by, w))
    r = e.bin(op, a, e.zext(by, w))
    return r if far is None else e.select(far, e.const(0, w), r)


def _shift(op: str) -> Lower:
    return lambda e, n, a: shift(e, op, a[0], a[1])


def extract(e: Emitter, a: Value, lo: Value, width: int) -> Value:
    if _by_memory(e, a, lo, width):
        piece, rest = _piece(e, _spilled(e, a), a.width, lo)
        word = e.inst(f"load i64, ptr {piece}, align 1", 64)
        return e.zext(e.bin("lshr", word, rest), width)
    return e.zext(shift(e, "lshr", a, lo), width)


def _by_memory(e: Emitter, a: Value, lo: Value, width: int) -> bool:
    """A few bits at a computed place of a long scalar: LLVM takes seconds over such shifts of 1024 bits."""
    return not e.lanes and lo.const is None and a.width > 128 and width <= 64 - 7


def _spilled(e: Emitter, a: Value) -> str:
    """The value in memory, zeros behind it."""
    slot = e.alloca(f"[{a.width // 8 + 8} x i8]")
    e.line(f"store i{a.width} {a.ref}, ptr {slot}, align 1")
    e.line(f"store i64 0, ptr {e.raw(f'getelementptr i8, ptr {slot}, i64 {a.width // 8}')}, align 1")
    return slot


def _piece(e: Emitter, slot: str, width: int, lo: Value) -> tuple[str, Value]:
    """Where the byte of bit `lo` is, behind the value when that is past its end, and the bits below it in that byte."""
    at = e.bin("lshr", e.zext(lo, 64), e.const(3, 64))
    end = e.const(width // 8, 64)
    at = e.select(e.icmp("ult", at, end), at, end)
    return e.raw(f"getelementptr i8, ptr {slot}, i64 {at.ref}"), e.bin("and", e.zext(lo, 64), e.const(7, 64))


def insert(e: Emitter, a: Value, lo: Value, v: Value) -> Value:
    w = a.width
    if lo.const == 0 and v.width >= w:
        return e.zext(v, w)
    ones = (1 << v.width) - 1
    if _by_memory(e, a, lo, v.width):
        slot = _spilled(e, a)
        piece, rest = _piece(e, slot, w, lo)
        keep = e.bin("xor", e.bin("shl", e.const(ones, 64), rest), e.const(-1, 64))
        old = e.bin("and", e.inst(f"load i64, ptr {piece}, align 1", 64), keep)
        new = e.bin("or", old, e.bin("shl", e.zext(v, 64), rest))
        e.line(f"store i64 {new.ref}, ptr {piece}, align 1")
        return e.inst(f"load i{w}, ptr {slot}, align 1", w)
    if lo.const is not None:
        keep = e.const(~(ones << lo.const), w)
        moved = shift(e, "shl", e.zext(v, w), lo)
    else:
        keep = e.bin("xor", shift(e, "shl", e.const(ones, w), lo), e.const(-1, w))
        moved = shift(e, "shl", e.zext(v, w), lo)
    return e.bin("or", e.bin("and", a, keep), moved)


def _concat(e: Emitter, n: Op, a: list[Value]) -> Value:
    high = shift(e, "shl", e.zext(a[0], n.width), e.const(a[1].width, 32))
    return e.bin("or", high, e.zext(a[1], n.width))


INTEGER: Mapping[str, Lower] = {
    "add": _bin("add"), "sub": _bin("sub"), "mul": _bin("mul"),
    "udiv": _divide("udiv"), "sdiv": _divide("sdiv"), "urem": _divide("urem"), "srem": _divide("srem"),
    "neg": lambda e, n, a: e.bin("sub", e.const(0, n.width), a[0]),
    "and": _bin("and"), "or": _bin("or"), "xor": _bin("xor"),
    "not": lambda e, n, a: e.bin("xor", a[0], e.const(-1, n.width)),
    "shl": _shift("shl"), "lshr": _shift("lshr"), "ashr": _shift("ashr"),
    "popcnt": _count("ctpop"), "clz": _count("ctlz"), "ctz": _count("cttz"),
    "bitrev": lambda e, n, a: e.intrinsic("bitreverse", n.width, a[0]),
    "eq": _cmp("eq"), "ne": _cmp("ne"), "ult": _cmp("ult"), "ule": _cmp("ule"),
    "slt": _cmp("slt"), "sle": _cmp("sle"),
    "zext": lambda e, n, a: e.zext(a[0], n.width),
    "sext": lambda e, n, a: e.sext(a[0], n.width),
    "trunc": lambda e, n, a: e.zext(a[0], n.width),
    "concat": _concat,
    "extract": lambda e, n, a: extract(e, a[0], a[1], n.width),
    "insert": lambda e, n, a: insert(e, a[0], a[1], a[2]),
    "select": lambda e, n, a: e.select(a[0], a[1], a[2]),
}
