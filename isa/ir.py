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
from dataclasses import dataclass, field, replace
from typing import Literal

from stuntgpu.isa.errors import SpecError

# ---------------------------------------------------------------- operations


@dataclass(frozen=True, slots=True)
class OpInfo:
    """One row: what a pure operation means.

    args    one entry an argument: "w" all of these share the result width, "s" all of these share one
            width, "*" any width, or a number of bits.
    result  "w" (given in the node), "same" (width of the first argument), or a number of bits.
    """

    name: str
    args: tuple[str | int, ...]
    result: str | int
    doc: str


def _integer_rows() -> Iterator[OpInfo]:
    """Integers of any width; arithmetic wraps around."""
    yield OpInfo("add", ("w", "w"), "same", "a + b")
    yield OpInfo("sub", ("w", "w"), "same", "a - b")
    yield OpInfo("mul", ("w", "w"), "same", "a * b, low half")
    yield OpInfo("udiv", ("w", "w"), "same", "unsigned a / b toward zero; b = 0 gives all ones")
    yield OpInfo("sdiv", ("w", "w"), "same", "signed a / b toward zero; b = 0 gives all ones")
    yield OpInfo("urem", ("w", "w"), "same", "unsigned remainder; b = 0 gives a")
    yield OpInfo("srem", ("w", "w"), "same", "remainder with the sign of a; b = 0 gives a")
    yield OpInfo("neg", ("w",), "same", "-a")
    yield OpInfo("and", ("w", "w"), "same", "a & b")
    yield OpInfo("or", ("w", "w"), "same", "a | b")
    yield OpInfo("xor", ("w", "w"), "same", "a ^ b")
    yield OpInfo("not", ("w",), "same", "~a")
    yield OpInfo("shl", ("w", "*"), "same", "a << b; 0 when b (unsigned) >= width of a")
    yield OpInfo("lshr", ("w", "*"), "same", "logical a >> b; 0 when b >= width of a")
    yield OpInfo("ashr", ("w", "*"), "same", "arithmetic a >> b; sign fill when b >= width of a")
    yield OpInfo("popcnt", ("w",), "same", "number of one bits")
    yield OpInfo("clz", ("w",), "same", "leading zero bits; width when a = 0")
    yield OpInfo("ctz", ("w",), "same", "trailing zero bits; width when a = 0")
    yield OpInfo("bitrev", ("w",), "same", "bit order reversed")
    for name, doc in (("eq", "a == b"), ("ne", "a != b"), ("ult", "unsigned a < b"),
                      ("ule", "unsigned a <= b"), ("slt", "signed a < b"), ("sle", "signed a <= b")):
        yield OpInfo(name, ("s", "s"), 1, doc)


def _shape_rows() -> Iterator[OpInfo]:
    """Widths and fields; the node's own width is the result width."""
    yield OpInfo("zext", ("*",), "w", "zero-extend, or keep")
    yield OpInfo("sext", ("*",), "w", "sign-extend, or keep")
    yield OpInfo("trunc", ("*",), "w", "low bits")
    yield OpInfo("concat", ("*", "*"), "w", "{a, b}: a is the high part; width = sum of both")
    yield OpInfo("extract", ("*", "*"), "w", "bits [lo + w - 1 : lo] of a, zero beyond its top; lo may be dynamic")
    yield OpInfo("insert", ("w", "*", "*"), "same", "a with bits [lo + width(v) - 1 : lo] replaced: insert(a, lo, v)")
    yield OpInfo("select", (1, "w", "w"), "w", "c ? a : b")


def _float_rows(f: str, n: int) -> Iterator[OpInfo]:
    """Format `f` of `n` bits; rounding and denormals per MODE for that format."""
    for name, k, doc in (
        ("fadd", 2, "a + b"), ("fsub", 2, "a - b"), ("fmul", 2, "a * b"), ("fdiv", 2, "a / b, rounded once"),
        ("fma", 3, "a * b + c, rounded once"), ("sqrt", 1, "square root, rounded once; below zero the default NaN with its sign set"),
        ("rcp", 1, "1 / a, hardware approximation (see emu/transcend.md rule)"),
        ("rsq", 1, "1 / sqrt(a), hardware approximation"),
        ("exp2", 1, "2 ** a, hardware approximation"), ("log2", 1, "log2 a, hardware approximation"),
        ("sin2pi", 1, "sin(2 pi a): the instruction's argument counts turns"), ("cos2pi", 1, "cos(2 pi a)"),
        ("trunc_int", 1, "round to integral toward zero"), ("floor", 1, "round to integral toward -inf"),
        ("ceil", 1, "round to integral toward +inf"), ("rndne", 1, "round to integral, ties to even"),
        ("fract", 1, "a - floor(a), below 1"), ("mantissa", 1, "significand scaled to [0.5, 1), sign kept"),
        ("quiet", 1, "set the quiet bit of a NaN; others unchanged"),
    ):
        yield OpInfo(f"{name}.{f}", (n,) * k, n, doc)
    yield OpInfo(f"ldexp.{f}", (n, 32), n, "a * 2 ** b (b signed), rounded once")
    if n >= 32:
        yield OpInfo(f"fma_scaled.{f}", (n, n, n, 32), n, "(a * b + c) * 2 ** d (d signed), rounded once; a sum beyond the"
                     " largest number overflows whatever d is")
    for name, doc in (("feq", "ordered a == b"), ("fne", "unordered or a != b"), ("flt", "ordered a < b"),
                      ("fle", "ordered a <= b"), ("flg", "ordered a < b or a > b")):
        yield OpInfo(f"{name}.{f}", (n, n), 1, doc)
    for name, doc in (("isnan", "any NaN"), ("issnan", "signalling NaN"), ("isqnan", "quiet NaN"),
                      ("isdenorm", "denormal (never flushed first)"), ("isinf", "infinity")):
        yield OpInfo(f"{name}.{f}", (n,), 1, doc)
    for i in ("i16", "u16", "i32", "u32", "i64", "u64"):
        yield OpInfo(f"{f}_to_{i}", (n,), int(i[1:]), "toward zero, saturating, NaN to 0")
        yield OpInfo(f"{i}_to_{f}", (int(i[1:]),), n, "rounded per MODE")
    for g, m in FLOATS.items():
        if g != f:
            yield OpInfo(f"{f}_to_{g}", (n,), m, "float conversion; NaN payload kept at the top, quieted")


def _small_float_rows() -> Iterator[OpInfo]:
    """Formats that only exist in conversions, and single operations of one instruction."""
    for f, n in SMALL_FLOATS.items():
        yield OpInfo(f"{f}_to_f32", (n,), 32, "exact")
        yield OpInfo(f"f32_to_{f}", (32,), n, "round to nearest even, overflow per format rules")
    for f, n in (*SMALL_FLOATS.items(), ("f16", 16), ("bf16", 16)):
        yield OpInfo(f"f32_to_{f}_sr", (32, 32), n, "stochastic: random word is added below the kept bits, then cut")
    yield OpInfo("f16_to_snorm16", (16,), 16, "round(x * 32767), clamped; -1.0 gives -32767")
    yield OpInfo("f16_to_unorm16", (16,), 16, "round(x * 65535), clamped to [0, 1]")
    yield OpInfo("f32_to_snorm16", (32,), 16, "round(x * 32767), clamped; -1.0 gives -32767")
    yield OpInfo("f32_to_unorm16", (32,), 16, "round(x * 65535), clamped to [0, 1]")
    yield OpInfo("f32_to_u8", (32,), 8, "toward zero unless an attribute says otherwise, saturating, NaN to 0")
    yield OpInfo("trig_preop.f64", (64, 32), 64, "V_TRIG_PREOP_F64: 53 bits of 2/pi at a segment")


FLOATS: Mapping[str, int] = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
#: 8 bits: E4M3, E5M2; 6 bits: E2M3, E3M2; 4 bits: E2M1.
SMALL_FLOATS: Mapping[str, int] = {"fp8": 8, "bf8": 8, "fp8_fnuz": 8, "bf8_fnuz": 8, "fp6": 6, "bf6": 6, "fp4": 4}

#: Rounding override on a float op node; "" means: as MODE says for that format.
Round = Literal["", "rne", "rtz", "rup", "rdn"]

OPS: Mapping[str, OpInfo] = {
    r.name: r
    for rows in (
        _integer_rows(), _shape_rows(), *(_float_rows(f, n) for f, n in FLOATS.items()), _small_float_rows()
    )
    for r in rows
}

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


RegisterFile = Literal["VGPR", "SGPR", "HWREG", "BARRIER", "MESSAGE"]


@dataclass(frozen=True, slots=True)
class RegRead:
    """A register by number: file "VGPR" (lane given; number is an 8-bit VGPR number), or "SGPR"
    (lane None; a 7-bit scalar operand number), "HWREG" (lane None; hardware register id), "BARRIER" (state of
    a barrier: signals in [22:16], members in [10:4], valid in [0]). 32 bits. "MESSAGE": what the message of a
    number returns, 64 bits."""

    file: RegisterFile
    index: Expr
    lane: Expr | None = None
    width: int = 32


@dataclass(frozen=True, slots=True)
class Load:
    """Memory read. space: "MEM" = the instruction's own space (global, flat, scratch, scalar, buffer)
    at byte address `addr` as the executor computed it (place ADDR plus constants); "LDS"; "FORMAT" = a channel
    of the buffer element at ADDR (`addr` is ADDR plus the channel's number), converted from or to its memory
    format (32 bits; 16: as D16)."""

    space: Literal["MEM", "LDS", "FORMAT"]
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
    file: RegisterFile
    index: Expr
    value: Expr
    lane: Expr | None = None


@dataclass(frozen=True, slots=True)
class Store:
    space: Literal["MEM", "LDS", "FORMAT"]
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
    "barrier_signal": "a signal to barrier n (signed: -1 the workgroup's, -2 the trap handler's, else a named one)",
    "barrier_wait": "wait until barrier n of this wave is complete, as barrier_signal counts them; above 0: the named one",
    "barrier_init": "set member count of named barrier n",
    "barrier_join": "this wave belongs to named barrier n from now on",
    "barrier_leave": "this wave leaves its named barrier",
    "sleep": "give up the rest of the quantum",
    "trap": "trap; argument: id",
    "sendmsg": "message; argument: SIMM16",
    "halt": "s_sethalt",
    "priority": "the wave's own priority; argument: 0 to 3",
    "wmma": "matrix multiply-add; the executor reads shape and types from the mnemonic",
    "transpose": "after the results are stored; arguments: bits of an element, n lanes: the data of every n lanes is a matrix"
                 " of as many rows as a lane has elements and n columns, row after row; lane i of the n gets column i",
    "memory_barrier": "order memory (buffer_gl*_inv and the like, waits for stores)",
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
    "VCCZ": "1 bit", "EXECZ": "1 bit", "PC": "byte address of this instruction, 64 bits; assigned (on every path) = the next one",
    "LANE": "lane number, 32 bits", "WAVE32": "1 bit", "LANES": "32 or 64, as 32 bits",
    "SIMM16": "16 bits", "SIMM32": "literal, 32 bits",
    "ADDR": "effective byte address of this lane (wave scope: of the wave), 64 bits. DS: 32 bits, VGPR + 16-bit "
            "offset; in rows that read OFFSET0, OFFSET1 or OFFSET: the VGPR alone",
    "DATA": "data operand", "DATA2": "second data operand", "VDATA": "VGPR data in/out of buffer/flat",
    "RETURN_DATA": "VGPR result, written when the instruction returns a value", "SDATA": "SGPR data out",
    "OFFSET0": "8 bits as 32", "OFFSET1": "8 bits as 32", "OFFSET": "16 bits as 32 (DS)",
    "OPSEL": "OP_SEL field", "OPSEL_HI": "OP_SEL_HI field", "NEG": "NEG field", "NEG_HI": "NEG_HI field", "OMOD": "OMOD", "ABS": "ABS field", "CLAMP": "CLAMP bit",
    "SRC0": "number of the register in the SRC0 field (VGPR number 0..255, scalar operand number); DS: ADDR field",
    "SRC1": "of SRC1; DS: DATA0 field", "SRC2": "of SRC2", "VDST": "of VDST",
    "SDST": "number of the scalar destination", "ATTR": "attribute number", "ATTR_CHAN": "its channel, 0 to 3",
    "MODE_IEEE": "MODE.IEEE, 1 bit", "PRIV": "STATUS.PRIV, 1 bit",
    "TBA": "trap base, 64 bits",
}

#: Places whose value is the same for the whole wave.
UNIFORM = frozenset((
    "EXEC", "SCC", "M0", "VCCZ", "EXECZ", "PC", "WAVE32", "LANES", "SIMM16", "SIMM32", "OFFSET0",
    "OFFSET1", "OFFSET", "OPSEL", "OPSEL_HI", "NEG", "NEG_HI", "OMOD", "ABS", "CLAMP", "SRC0",
    "SRC1", "SRC2", "VDST", "SDST", "ATTR", "ATTR_CHAN", "MODE_IEEE", "PRIV", "TBA",
))

Scope = Literal["lane", "wave"]


@dataclass(frozen=True, slots=True)
class Semantics:
    """What one instruction does.

    In lane scope every lane reads (operands, RegRead of other lanes) before any lane's results are stored.
    A destination that the body also reads holds its old value.

    reads, writes   place names, in first-use order; width of each in `widths` (as written, if it is written).
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


# ---------------------------------------------------------------- helpers

#: Widths a place has in every row; the other places take the width of the operand.
PLACE_WIDTHS: Mapping[str, int] = {
    "EXEC": 64, "SCC": 1, "M0": 32, "VCCZ": 1, "EXECZ": 1, "PC": 64, "LANE": 32, "WAVE32": 1, "LANES": 32,
    "SIMM16": 16, "SIMM32": 32, "OFFSET0": 32, "OFFSET1": 32, "OFFSET": 32, "OPSEL": 32, "OPSEL_HI": 32,
    "NEG": 32, "NEG_HI": 32, "OMOD": 32, "ABS": 32, "CLAMP": 1, "SRC0": 32, "SRC1": 32, "SRC2": 32,
    "VDST": 32, "SDST": 32, "ATTR": 32, "ATTR_CHAN": 32, "MODE_IEEE": 1, "PRIV": 1, "TBA": 64,
}


def node(name: str, *args: Expr, width: int = 0, round: Round = "") -> Op:
    """An `Op` with its width worked out from OPS; `width` is needed for ops whose result is "w"."""
    result = OPS[name].result
    w = args[0].width if result == "same" else width if isinstance(result, str) else result
    return Op(name, args, w, round)


def children(x: Expr) -> tuple[Expr, ...]:
    """The direct operands of an expression."""
    match x:
        case Op(args=args):
            return args
        case Elem(index=index):
            return (index,)
        case RegRead(index=index, lane=lane):
            return (index,) if lane is None else (index, lane)
        case Load(addr=addr):
            return (addr,)
        case _:
            return ()


def operands_of(s: Stmt) -> tuple[Expr, ...]:
    """The expressions a statement evaluates itself, in order (not those of its blocks)."""
    match s:
        case Set(value=v) | SetLaneBit(value=v):
            return (v,)
        case SetElem(index=i, value=v):
            return (i, v)
        case RegWrite(index=i, value=v, lane=lane):
            return (i, v) if lane is None else (i, v, lane)
        case Store(addr=a, value=v):
            return (a, v)
        case If(cond=c) | While(cond=c):
            return (c,)
        case For(lo=lo, hi=hi):
            return (lo, hi)
        case Do(args=args):
            return args
        case _:
            return ()


def blocks_of(s: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    match s:
        case If(then=a, other=b):
            return (a, b)
        case For(body=a) | While(body=a):
            return (a,)
        case _:
            return ()


def statements(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """Every statement, outer before inner, in text order."""
    for s in body:
        yield s
        for block in blocks_of(s):
            yield from statements(block)


def subexpressions(x: Expr) -> Iterator[Expr]:
    yield x
    for c in children(x):
        yield from subexpressions(c)


def expressions(body: tuple[Stmt, ...]) -> Iterator[Expr]:
    """Every expression and subexpression of every statement."""
    for s in statements(body):
        for x in operands_of(s):
            yield from subexpressions(x)


# ---------------------------------------------------------------- text form
#
# expr  = 12:32 | S0:32 | (op a b) | (op:width a b) when OPS leaves the width open | (op!rtz a b)
#       | (elem:32 name i) | (bit VCC) | (load:32 MEM addr) | (vgpr i lane) | (sgpr i) | (hwreg i)
#       | (barrier i) | (message i)
# stmt  = (set D0 x) | (setbit VCC x) | (array t n width) | (setelem t i x) | (store MEM addr x)
#       | (setvgpr i x lane) | (setsgpr i x) | (sethwreg i x) | (if c (stmt...) (stmt...))
#       | (for i lo hi (stmt...)) | (while c (stmt...)) | (break) | (do action x...)
# row   = (lane|wave origin stmt...)

Sexp = str | list["Sexp"]
_ROUNDS: Mapping[str, Round] = {"": "", "rne": "rne", "rtz": "rtz", "rup": "rup", "rdn": "rdn"}
_FILES: Mapping[str, RegisterFile] = {
    "vgpr": "VGPR", "sgpr": "SGPR", "hwreg": "HWREG", "barrier": "BARRIER", "message": "MESSAGE",
}  # fmt: skip


def dumps(sem: Semantics) -> str:
    """One line; `loads(sem.name, dumps(sem))` gives the row back."""
    return f"({' '.join([sem.scope, sem.origin, *map(dump_stmt, sem.body)])})"


def dump_expr(x: Expr) -> str:
    match x:
        case Const(bits, width):
            return f"{bits if bits < 1024 else hex(bits)}:{width}"
        case Var(name, width):
            return f"{name}:{width}"
        case Op(op, args, width, rnd):
            head = op + (f"!{rnd}" if rnd else "") + (f":{width}" if OPS[op].result == "w" else "")
            return f"({' '.join([head, *map(dump_expr, args)])})"
        case Elem(name, index, width):
            return f"(elem:{width} {name} {dump_expr(index)})"
        case LaneBit(name):
            return f"(bit {name})"
        case RegRead(file, index, lane):
            return f"({' '.join([file.lower(), dump_expr(index), *([] if lane is None else [dump_expr(lane)])])})"
        case Load(space, addr, width):
            return f"(load:{width} {space} {dump_expr(addr)})"


def _dump_block(body: tuple[Stmt, ...]) -> str:
    return f"({' '.join(map(dump_stmt, body))})"


def dump_stmt(s: Stmt) -> str:
    values = " ".join(map(dump_expr, operands_of(s)))
    match s:
        case Set(name):
            return f"(set {name} {values})"
        case SetLaneBit(name):
            return f"(setbit {name} {values})"
        case Array(name, n, width):
            return f"(array {name} {n} {width})"
        case SetElem(name):
            return f"(setelem {name} {values})"
        case RegWrite(file):
            return f"(set{file.lower()} {values})"
        case Store(space):
            return f"(store {space} {values})"
        case If(then=then, other=other):
            return f"(if {values} {_dump_block(then)}{' ' + _dump_block(other) if other else ''})"
        case For(name=name, body=body):
            return f"(for {name} {values} {_dump_block(body)})"
        case While(body=body):
            return f"(while {values} {_dump_block(body)})"
        case Break():
            return "(break)"
        case Do(action):
            return f"({' '.join(['do', action, *([values] if values else [])])})"


def loads(name: str, text: str) -> Semantics:
    """Parse one row. Places, reads, writes and widths are filled; nothing else is checked (verify does).

    Raises SpecError naming `name` when the text does not have the shape above.
    """
    try:
        match parse_sexp(text):
            case [("lane" | "wave") as scope, ("text" | "erratum" | "own") as origin, *body]:
                return with_places(Semantics(name, scope, tuple(map(load_stmt, body)), origin))
            case other:
                raise fail(name, f"not a row: {other!r}")
    except (ValueError, KeyError, IndexError) as e:
        raise fail(name, f"bad text: {e}") from e


def parse_sexp(text: str) -> Sexp:
    """Nested lists of atoms. Raises ValueError on unbalanced parentheses or several expressions."""
    stack: list[list[Sexp]] = [[]]
    for token in text.replace("(", " ( ").replace(")", " ) ").split():
        if token == "(":
            stack.append([])
        elif token == ")":
            done = stack.pop()
            if not stack:
                raise ValueError("unbalanced )")
            stack[-1].append(done)
        else:
            stack[-1].append(token)
    if len(stack) != 1 or len(stack[0]) != 1:
        raise ValueError("not exactly one balanced expression")
    return stack[0][0]


def load_body(text: str) -> tuple[Stmt, ...]:
    """A parenthesised list of statements."""
    return _load_block(parse_sexp(text))


def load_expr(s: Sexp) -> Expr:
    match s:
        case str():
            atom, _, width = s.rpartition(":")
            return Const(int(atom, 0), int(width)) if atom[:1].isdigit() else Var(atom, int(width))
        case ["bit", str(name)]:
            return LaneBit(name)
        case [("vgpr" | "sgpr" | "hwreg" | "barrier" | "message") as file, index, *lane]:
            bits = 64 if file == "message" else 32
            return RegRead(_FILES[file], load_expr(index), load_expr(lane[0]) if lane else None, bits)
        case [str(head), *args]:
            return _load_operation(head, args)
        case _:
            raise ValueError(f"not an expression: {s!r}")


def _load_operation(head: str, args: list[Sexp]) -> Expr:
    head, _, width = head.partition(":")
    match head, args:
        case "elem", [str(name), index]:
            return Elem(name, load_expr(index), int(width))
        case "load", [("MEM" | "LDS" | "FORMAT") as space, addr]:
            return Load(space, load_expr(addr), int(width))
        case _:
            name, _, rnd = head.partition("!")
            return node(name, *map(load_expr, args), width=int(width or 0), round=_ROUNDS[rnd])


def _load_block(s: Sexp) -> tuple[Stmt, ...]:
    if isinstance(s, str):
        raise ValueError(f"not a block: {s!r}")
    return tuple(map(load_stmt, s))


def load_stmt(s: Sexp) -> Stmt:
    match s:
        case ["set", str(name), value]:
            return Set(name, load_expr(value))
        case ["setbit", str(name), value]:
            return SetLaneBit(name, load_expr(value))
        case ["array", str(name), str(n), str(width)]:
            return Array(name, int(n), int(width))
        case ["setelem", str(name), index, value]:
            return SetElem(name, load_expr(index), load_expr(value))
        case [("setvgpr" | "setsgpr" | "sethwreg") as head, index, value, *lane]:
            where = load_expr(lane[0]) if lane else None
            return RegWrite(_FILES[head[3:]], load_expr(index), load_expr(value), where)
        case ["store", ("MEM" | "LDS" | "FORMAT") as space, addr, value]:
            return Store(space, load_expr(addr), load_expr(value))
        case ["break"]:
            return Break()
        case ["do", str(action), *args]:
            return Do(action, tuple(map(load_expr, args)))
        case _:
            return _load_control(s)


def _load_control(s: Sexp) -> Stmt:
    match s:
        case ["if", cond, then, *other]:
            return If(load_expr(cond), _load_block(then), _load_block(other[0]) if other else ())
        case ["for", str(name), lo, hi, body]:
            return For(name, load_expr(lo), load_expr(hi), _load_block(body))
        case ["while", cond, body]:
            return While(load_expr(cond), _load_block(body))
        case _:
            raise ValueError(f"not a statement: {s!r}")


# ---------------------------------------------------------------- places of a row


def with_places(sem: Semantics) -> Semantics:
    """The row with `reads`, `writes` and `widths` filled from its body.

    A read counts when the place may not have been assigned by the body before.
    """
    reads: dict[str, int] = {}
    writes: dict[str, int] = {}
    _collect(sem.body, frozenset(), reads, writes)
    return replace(sem, reads=tuple(reads), writes=tuple(writes), widths={**reads, **writes})


def _collect(body: tuple[Stmt, ...], assigned: frozenset[str], reads: dict[str, int],
             writes: dict[str, int]) -> None:
    for s in body:
        for x in operands_of(s):
            for sub in subexpressions(x):
                if isinstance(sub, Var | LaneBit) and sub.name in PLACES and sub.name not in assigned:
                    reads.setdefault(sub.name, sub.width)
        if isinstance(s, Set | SetLaneBit) and s.name in PLACES:
            writes.setdefault(s.name, s.value.width)
            assigned |= {s.name}
        for block in blocks_of(s):
            _collect(block, assigned, reads, writes)
