"""The semantics language: what one instruction does, as typed statements over bit vectors.

A value is a bit vector of a known width; it has no type beyond that. Meaning (signed, unsigned,
float format) lives in the operation: `add`, `slt`, `fadd.f32`. That makes a reinterpretation free
and leaves one thing to verify: widths.

A `Semantics` row is a list of statements run once per active lane (`scope="lane"`) or once per
wave (`scope="wave"`). Operands appear as *places*: variables that the executor fills before the
body runs (source operands after modifiers) and stores after it (`PLACES`). The body never sees
register numbers unless the instruction is about register numbers (`RegRead`, `RegWrite`).

Text form (what the generated tables hold): s-expressions, see `dumps` and `loads`.

Units:   widths in bits, memory addresses in bytes.
Errors:  SpecError when a row does not verify.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from stuntgpu.isa.errors import SpecError

# ---------------------------------------------------------------- operations


@dataclass(frozen=True, slots=True)
class OpInfo:
    """One row: what a pure operation means.

    args    kinds of the arguments: "w" all share the result width, "s" all share one width that is
            not the result's, "*" any width, "1" one bit, or a number of bits.
    result  "w" (given in the node), "same" (width of the first argument), or a number of bits.
    """

    name: str
    args: str
    result: str
    doc: str


def _rows() -> Iterator[OpInfo]:
    # integers, w bits, wrap around
    yield OpInfo("add", "ww", "same", "a + b")
    yield OpInfo("sub", "ww", "same", "a - b")
    yield OpInfo("mul", "ww", "same", "a * b, low half")
    yield OpInfo("udiv", "ww", "same", "unsigned a / b toward zero; b = 0 gives all ones")
    yield OpInfo("sdiv", "ww", "same", "signed a / b toward zero; b = 0 gives all ones")
    yield OpInfo("urem", "ww", "same", "unsigned remainder; b = 0 gives a")
    yield OpInfo("srem", "ww", "same", "remainder with the sign of a; b = 0 gives a")
    yield OpInfo("neg", "w", "same", "-a")
    yield OpInfo("and", "ww", "same", "a & b")
    yield OpInfo("or", "ww", "same", "a | b")
    yield OpInfo("xor", "ww", "same", "a ^ b")
    yield OpInfo("not", "w", "same", "~a")
    yield OpInfo("shl", "w*", "same", "a << b; 0 when b (unsigned) >= width of a")
    yield OpInfo("lshr", "w*", "same", "logical a >> b; 0 when b >= width of a")
    yield OpInfo("ashr", "w*", "same", "arithmetic a >> b; sign fill when b >= width of a")
    yield OpInfo("popcnt", "w", "same", "number of one bits")
    yield OpInfo("clz", "w", "same", "leading zero bits; width when a = 0")
    yield OpInfo("ctz", "w", "same", "trailing zero bits; width when a = 0")
    yield OpInfo("bitrev", "w", "same", "bit order reversed")
    # comparisons, one bit
    for name, doc in (("eq", "a == b"), ("ne", "a != b"), ("ult", "unsigned a < b"),
                      ("ule", "unsigned a <= b"), ("slt", "signed a < b"), ("sle", "signed a <= b")):
        yield OpInfo(name, "ss", "1", doc)
    # shape; the node's own width is the result width
    yield OpInfo("zext", "*", "w", "zero-extend, or keep")
    yield OpInfo("sext", "*", "w", "sign-extend, or keep")
    yield OpInfo("trunc", "*", "w", "low bits")
    yield OpInfo("concat", "**", "w", "{a, b}: a is the high part; width = sum of both")
    yield OpInfo("extract", "**", "w", "bits [lo + w - 1 : lo] of a, zero beyond its top; lo may be dynamic")
    yield OpInfo("insert", "w**", "same", "a with bits [lo + width(v) - 1 : lo] replaced: insert(a, lo, v)")
    yield OpInfo("select", "1ww", "w", "c ? a : b")
    # floats: f16 f32 f64 bf16; rounding and denormals per MODE for that format (see below)
    for f, n in FLOATS.items():
        w = str(n)
        for name, k, doc in (
            ("fadd", 2, "a + b"), ("fsub", 2, "a - b"), ("fmul", 2, "a * b"), ("fdiv", 2, "a / b, rounded once"),
            ("fma", 3, "a * b + c, rounded once"), ("sqrt", 1, "square root, rounded once"),
            ("rcp", 1, "1 / a, hardware approximation (see emu/transcend.md rule)"),
            ("rsq", 1, "1 / sqrt(a), hardware approximation"),
            ("exp2", 1, "2 ** a, hardware approximation"), ("log2", 1, "log2 a, hardware approximation"),
            ("sin2pi", 1, "sin(2 pi a): the instruction's argument counts turns"), ("cos2pi", 1, "cos(2 pi a)"),
            ("trunc_int", 1, "round to integral toward zero"), ("floor", 1, "round to integral toward -inf"),
            ("ceil", 1, "round to integral toward +inf"), ("rndne", 1, "round to integral, ties to even"),
            ("fract", 1, "a - floor(a), below 1"), ("mantissa", 1, "significand scaled to [0.5, 1), sign kept"),
            ("quiet", 1, "set the quiet bit of a NaN; others unchanged"),
        ):
            yield OpInfo(f"{name}.{f}", w * 0 + f"{{{w}}}" * k, w, doc)
        yield OpInfo(f"ldexp.{f}", f"{{{w}}}{{32}}", w, "a * 2 ** b (b signed), rounded once")
        for name, doc in (("feq", "ordered a == b"), ("fne", "unordered or a != b"), ("flt", "ordered a < b"),
                          ("fle", "ordered a <= b"), ("flg", "ordered a < b or a > b")):
            yield OpInfo(f"{name}.{f}", f"{{{w}}}{{{w}}}", "1", doc)
        for name, doc in (("isnan", "any NaN"), ("issnan", "signalling NaN"), ("isqnan", "quiet NaN"),
                          ("isdenorm", "denormal (never flushed first)"), ("isinf", "infinity")):
            yield OpInfo(f"{name}.{f}", f"{{{w}}}", "1", doc)
        for i in ("i16", "u16", "i32", "u32", "i64", "u64"):
            yield OpInfo(f"{f}_to_{i}", f"{{{w}}}", i[1:], "toward zero, saturating, NaN to 0")
            yield OpInfo(f"{i}_to_{f}", f"{{{i[1:]}}}", w, "rounded per MODE")
        for g, m in FLOATS.items():
            if g != f:
                yield OpInfo(f"{f}_to_{g}", f"{{{w}}}", str(m), "float conversion; NaN payload kept at the top, quieted")
    for f in SMALL_FLOATS:
        yield OpInfo(f"{f}_to_f32", "{8}", "32", "exact")
        yield OpInfo(f"f32_to_{f}", "{32}", "8", "round to nearest even, overflow per format rules")
        yield OpInfo(f"f32_to_{f}_sr", "{32}{32}", "8", "stochastic: random word is added below the kept bits")
    yield OpInfo("f16_to_snorm16", "{16}", "16", "round(x * 32767), clamped; -1.0 gives -32767")
    yield OpInfo("f16_to_unorm16", "{16}", "16", "round(x * 65535), clamped to [0, 1]")
    yield OpInfo("f32_to_snorm16", "{32}", "16", "round(x * 32767), clamped; -1.0 gives -32767")
    yield OpInfo("f32_to_unorm16", "{32}", "16", "round(x * 65535), clamped to [0, 1]")
    yield OpInfo("f32_to_u8", "{32}", "8", "toward zero unless an attribute says otherwise, saturating, NaN to 0")
    yield OpInfo("trig_preop.f64", "{64}{32}", "64", "V_TRIG_PREOP_F64: 53 bits of 2/pi at a segment")


FLOATS: Mapping[str, int] = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
SMALL_FLOATS = ("fp8", "bf8", "fp8_fnuz", "bf8_fnuz")

#: Rounding override on a float op node; "" means: as MODE says for that format.
Round = Literal["", "rne", "rtz", "rup", "rdn"]

OPS: Mapping[str, OpInfo] = {r.name: r for r in _rows()}

# ---------------------------------------------------------------- expressions


@dataclass(frozen=True, slots=True)
class Const:
    bits: int  # 0 <= bits < 2**width
    width: int


@dataclass(frozen=True, slots=True)
class Var:
    """A local variable or a place (see PLACES)."""

    name: str
    width: int


@dataclass(frozen=True, slots=True)
class Op:
    op: str  # key of OPS
    args: tuple[Expr, ...]
    width: int
    round: Round = ""


@dataclass(frozen=True, slots=True)
class Elem:
    """Element of a local array declared by `Array`."""

    name: str
    index: Expr
    width: int


@dataclass(frozen=True, slots=True)
class LaneBit:
    """This lane's bit of a mask place (VCC, D0, D1, EXEC, S2 used as a mask); width 1."""

    name: str
    width: int = 1


@dataclass(frozen=True, slots=True)
class RegRead:
    """A register by number: file "VGPR" (lane given; number is an 8-bit VGPR number), or "SGPR"
    (lane None; a 7-bit scalar operand number), "HWREG" (lane None; hardware register id). 32 bits."""

    file: Literal["VGPR", "SGPR", "HWREG"]
    index: Expr
    lane: Expr | None = None
    width: int = 32


@dataclass(frozen=True, slots=True)
class Load:
    """Memory read. space: "MEM" = the instruction's own space (global, flat, scratch, scalar, buffer)
    at byte address `addr` as the executor computed it (place ADDR plus constants); "LDS"."""

    space: Literal["MEM", "LDS"]
    addr: Expr
    width: int


Expr = Const | Var | Op | Elem | LaneBit | RegRead | Load

# ---------------------------------------------------------------- statements


@dataclass(frozen=True, slots=True)
class Set:
    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class SetLaneBit:
    name: str  # mask place
    value: Expr  # 1 bit


@dataclass(frozen=True, slots=True)
class Array:
    """Declare a zeroed local array of n elements."""

    name: str
    n: int
    width: int


@dataclass(frozen=True, slots=True)
class SetElem:
    name: str
    index: Expr
    value: Expr


@dataclass(frozen=True, slots=True)
class RegWrite:
    file: Literal["VGPR", "SGPR", "HWREG"]
    index: Expr
    value: Expr
    lane: Expr | None = None


@dataclass(frozen=True, slots=True)
class Store:
    space: Literal["MEM", "LDS"]
    addr: Expr
    value: Expr


@dataclass(frozen=True, slots=True)
class If:
    cond: Expr
    then: tuple[Stmt, ...]
    other: tuple[Stmt, ...] = ()


@dataclass(frozen=True, slots=True)
class For:
    """for name in lo..hi inclusive, ascending; name is a 32-bit variable. Bounds are wave-uniform
    (constants or expressions over WAVE32)."""

    name: str
    lo: Expr
    hi: Expr
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class While:
    cond: Expr
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Break:
    pass


@dataclass(frozen=True, slots=True)
class Do:
    """An action outside the data flow; `action` is a key of ACTIONS."""

    action: str
    args: tuple[Expr, ...] = ()


Stmt = Set | SetLaneBit | Array | SetElem | RegWrite | Store | If | For | While | Break | Do

ACTIONS: Mapping[str, str] = {
    "nop": "nothing (waits, hints, cache control, delays: the emulator is in order)",
    "endpgm": "the wave ends",
    "barrier": "workgroup barrier (signal and wait)",
    "sleep": "give up the rest of the quantum",
    "trap": "trap; argument: id",
    "sendmsg": "message; argument: SIMM16",
    "halt": "s_sethalt",
    "wmma": "matrix multiply-add; the executor reads shape and types from the mnemonic",
    "memory_barrier": "order memory (buffer_gl*_inv and the like)",
    "swizzle": "DS_SWIZZLE_B32",
    "illegal": "raises the illegal-instruction fault",
}

#: Places: name -> what the executor puts there / stores from there.
PLACES: Mapping[str, str] = {
    "S0": "source 0 after modifiers", "S1": "source 1", "S2": "source 2",
    "D0": "destination; holds the old value before; stored when assigned",
    "D1": "second destination (scalar)",
    "VCC": "VCC, or SDST/SRC2 where the VOP3 encoding names another SGPR; read and written as LaneBit in lane scope",
    "EXEC": "exec mask, 64 bits (upper half 0 in wave32)", "SCC": "1 bit", "M0": "32 bits",
    "VCCZ": "1 bit", "EXECZ": "1 bit", "PC": "byte address of this instruction; assigned = jump target. 64 bits",
    "LANE": "lane number, 32 bits", "WAVE32": "1 bit", "LANES": "32 or 64, as 32 bits",
    "SIMM16": "16 bits", "SIMM32": "literal, 32 bits",
    "ADDR": "effective byte address of this lane, 64 bits (LDS: 32 bits, offset0/1 not added for 2ADDR)",
    "DATA": "data operand", "DATA2": "second data operand", "VDATA": "VGPR data in/out of buffer/flat",
    "RETURN_DATA": "VGPR result, written when the instruction returns a value", "SDATA": "SGPR data out",
    "OFFSET0": "8 bits as 32", "OFFSET1": "8 bits as 32", "OFFSET": "16 bits as 32 (DS)",
    "OPSEL": "OP_SEL field", "OPSEL_HI": "OP_SEL_HI field", "NEG": "NEG field", "NEG_HI": "NEG_HI field", "OMOD": "OMOD", "ABS": "ABS field", "CLAMP": "CLAMP bit",
    "SRC0": "number of the register in the SRC0 field (VGPR number, 0..255)", "SRC1": "same", "SRC2": "same", "VDST": "same",
    "SDST": "number of the scalar destination",
    "MODE_IEEE": "MODE.IEEE, 1 bit", "PRIV": "STATUS.PRIV, 1 bit",
    "TBA": "trap base, 64 bits",
}

#: Places whose value is the same for the whole wave.
UNIFORM = frozenset("EXEC SCC M0 VCCZ EXECZ PC WAVE32 LANES SIMM16 SIMM32 OFFSET0 OFFSET1 OFFSET OPSEL OPSEL_HI NEG NEG_HI OMOD ABS CLAMP SRC0 SRC1 SRC2 VDST SDST MODE_IEEE PRIV TBA".split())

Scope = Literal["lane", "wave"]


@dataclass(frozen=True, slots=True)
class Semantics:
    """What one instruction does.

    reads, writes   place names, in first-use order; width of each in `widths`.
    origin          "text" (vendor pseudocode), "erratum" (text mended), "own" (no usable text).
    """

    name: str
    scope: Scope
    body: tuple[Stmt, ...]
    origin: str = "text"
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    widths: Mapping[str, int] = field(default_factory=dict)


def fail(name: str, what: str) -> SpecError:
    return SpecError(f"semantics of {name}: {what}")
