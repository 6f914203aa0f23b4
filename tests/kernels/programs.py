"""Random programs that a processor and a GPU must run alike: C++ that clang compiles for both.

A program is one function of a lane's inputs and of values all lanes share. It has arithmetic of every integer
and float type, vectors, private arrays, branches, loops and calls. Nothing in it is undefined or left to the
implementation: shifts are masked, divisors are not 0, floats become integers inside their range, bits of a NaN
are never looked at, products and sums are not contracted.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

N_INPUTS, N_SHARED, N_OUTPUTS = 6, 4, 4

HEAD = """
typedef unsigned char u8; typedef signed char i8; typedef unsigned short u16; typedef short i16;
typedef unsigned int u32; typedef int i32; typedef unsigned long u64; typedef long i64;
typedef _Float16 f16; typedef float f32; typedef double f64;
template <class T, int N> using vec = T __attribute__((ext_vector_type(N)));
#ifdef HOST
#define DEVICE static inline
#define CALLED static __attribute__((noinline))
#else
#define DEVICE static inline __attribute__((device))
#define CALLED static __attribute__((device, noinline))
#endif
template <class T> DEVICE T divided(T a, T b) { return a / (T)(b == 0 || b == (T)-1 ? 3 : b); }
template <class T> DEVICE T rest(T a, T b) { return a % (T)(b == 0 || b == (T)-1 ? 5 : b); }
template <class T> DEVICE T left(T a, u32 n) { return (T)(a << (n & (8 * sizeof(T) - 1))); }
template <class T> DEVICE T right(T a, u32 n) { return (T)(a >> (n & (8 * sizeof(T) - 1))); }
template <class T> DEVICE T clipped(f64 x, f64 low, f64 high) { return x > low && x < high ? (T)x : (T)77; }
DEVICE u64 bits(f64 x) { return x == x ? __builtin_bit_cast(u64, x) : 0x7ff8ul << 48; }
DEVICE u32 bits(f32 x) { return x == x ? __builtin_bit_cast(u32, x) : 0x7fc00000u; }
DEVICE u16 bits(f16 x) { return x == x ? __builtin_bit_cast(u16, x) : (u16)0x7e00; }
DEVICE f64 real(u64 x) { return __builtin_bit_cast(f64, (x & 0x800ffffffffffffful) | (((x >> 52 & 63) + 990) << 52)); }
DEVICE f32 real(u32 x) { return __builtin_bit_cast(f32, (x & 0x807fffffu) | (((x >> 23 & 31) + 112) << 23)); }
DEVICE f16 real(u16 x) { return __builtin_bit_cast(f16, (u16)((x & 0x83ff) | ((x >> 10 & 7) + 12) << 10)); }
"""
TAIL = """
#ifdef HOST
extern "C" void run(const u64 *in, u64 *out, u32 n, Shared shared) {
  for (u32 i = 0; i < n; i++) program(in + i * N_INPUTS, out + i * N_OUTPUTS, shared);
}
#else
extern "C" __attribute__((global, amdgpu_flat_work_group_size(64, 64))) void run(const u64 *in, u64 *out, u32 n, Shared shared) {
  u32 i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
  if (i < n) program(in + i * N_INPUTS, out + i * N_OUTPUTS, shared);
}
#endif
"""

INTEGERS = {"i8": 8, "u8": 8, "i16": 16, "u16": 16, "i32": 32, "u32": 32, "i64": 64, "u64": 64}
FLOATS = {"f16": 16, "f32": 32, "f64": 64}
VECTORS = {"vec<u32, 4>": ("u32", 4), "vec<i16, 2>": ("i16", 2), "vec<f32, 2>": ("f32", 2), "vec<u8, 4>": ("u8", 4),
           "vec<f16, 2>": ("f16", 2), "vec<u64, 2>": ("u64", 2), "vec<i32, 3>": ("i32", 3)}  # fmt: skip
#: a, b: operands of the same integer type T; w its width; U: its unsigned type.
INTEGER_OPS = (
    "(T)(a + b)", "(T)(a - b)", "(T)(a * b)", "(T)(a & b)", "(T)(a | ~b)", "(T)(a ^ b)", "divided<T>(a, b)", "rest<T>(a, b)",
    "left<T>(a, (u32)b)", "right<T>(a, (u32)b)", "(T)(a < b ? a : b)", "(T)(a > b ? a : b)", "(T)(a == b)", "(T)-a",
    "__builtin_elementwise_add_sat((T)a, (T)b)", "__builtin_elementwise_sub_sat((T)a, (T)b)", "(T)__builtin_elementwise_popcount((U)a)",
    "(T)__builtin_elementwise_bitreverse((U)a)", "(T)__builtin_elementwise_clzg((U)a, (U)w)",
    "(T)__builtin_elementwise_ctzg((U)a, (U)w)", "(T)((a & b) + (a ^ b) * 3)", "(T)(((U)a >> 3) & 31)", "(T)(a * b + a)",
    "(T)(((U)a << 5) | ((U)a >> (w - 5)))", "(T)((a ^ (a >> 3)) - b)", "(T)(a < 0 ? a + b : a - b)", "(T)((a | b) ^ (a & 0x55))",
)  # fmt: skip
#: clang 22 forgets the masks of a 24-bit product that something is added to.
WIDE_OPS = (
    "(T)(((unsigned __int128)(u64)a * (u64)b) >> 64)", "(T)((u64)(u32)a * (u32)b)", "(T)((i64)(i32)a * (i32)b)",
    "(T)__builtin_bswap64((u64)a)", "(T)(((u64)a * (u64)b) >> 32)", "(T)(i32)((i16)a * (i16)b)", "(T)(((u64)a << 32 | (u32)b) >> ((u32)a & 31))",
    "(T)((a & 0xffffff) * (b & 0xffffff))", "(T)__builtin_bswap32((u32)a)", "(T)(i8)(a >> 16)", "(T)((u32)a >> 7 & 0x1ff)",
    "(T)(((u32)a & 0xff00ff00u) | ((u32)b & 0x00ff00ffu))", "(T)((i32)((u32)a << 11) >> 20)",
)  # fmt: skip
FLOAT_OPS = (
    "(a + b)", "(a - b)", "(a * b)", "(a / b)", "-a", "__builtin_elementwise_abs(a)", "__builtin_elementwise_sqrt(__builtin_elementwise_abs(a))",
    "__builtin_elementwise_floor(a)", "__builtin_elementwise_ceil(b)", "__builtin_elementwise_trunc(a)", "__builtin_elementwise_rint(b)",
    "(a < b ? a : b)", "(a >= b ? a : T(0.5) * b)", "__builtin_elementwise_copysign(a, b)", "(a * b + a)", "(a - b * T(0.75))",
    "(a == b ? T(1) : a)", "(a * a - b * b)", "(T)__builtin_elementwise_fma((f32)a, (f32)b, (f32)a)",
)  # fmt: skip


@dataclass
class Program:
    """A function being written. names: variables by type; those of `fixed` are not assigned to."""

    r: random.Random
    lines: list[str] = field(default_factory=list)
    names: dict[str, list[str]] = field(default_factory=dict)
    fixed: set[str] = field(default_factory=set)
    calls: bool = True
    depth: int = 0
    count: int = 0

    def put(self, text: str) -> None:
        self.lines.append("  " * (self.depth + 1) + text)

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def known(self, kind: str) -> str:
        return self.r.choice(self.names[kind])

    # ---- expressions

    def constant(self, kind: str) -> str:
        r = self.r
        if kind in FLOATS:
            return f"({kind}){r.choice(('0.5', '1.0', '-2.0', '0.1', '3.25', '-7.0', '100.0', '1e-3'))}"
        value = r.choice((r.randrange(-16, 65), r.getrandbits(8), r.getrandbits(31), r.getrandbits(62), 1 << r.randrange(63)))
        return f"({kind}){value}ll"

    def leaf(self, kind: str) -> str:
        """A variable, a constant, or a variable of another type converted."""
        r = self.r
        if r.random() < 0.6:
            return self.known(kind)
        if r.random() < 0.3:
            return self.constant(kind)
        other = r.choice([k for k in self.names if k in INTEGERS or k in FLOATS])
        return self.converted(self.known(other), other, kind)

    def converted(self, x: str, source: str, kind: str) -> str:
        if source in FLOATS and kind in INTEGERS:
            if self.r.random() < 0.4:
                return f"({kind})bits({x})"
            width = INTEGERS[kind] - (kind[0] == "i")
            low = -(2 ** width) if kind[0] == "i" else -1
            # The bounds leave out what f16 or f32 could round to the outside.
            return f"clipped<{kind}>({x}, {low}.0, {2 ** width - 2 ** max(0, width - 10)}.0)"
        if source in INTEGERS and kind in FLOATS:
            width = FLOATS[kind]
            return self.r.choice((f"real((u{width}){x})", f"({kind})({x} % 1024)" if kind == "f16" else f"({kind}){x}"))
        return f"({kind})({x})"

    def expression(self, kind: str, depth: int = 2) -> str:
        if depth == 0 or self.r.random() < 0.2:
            return self.leaf(kind)
        a, b = self.expression(kind, depth - 1), self.expression(kind, depth - 1)
        if kind in FLOATS:
            # clang 22 loses the sign's register in a copysign of f16 on gfx1100.
            text = self.r.choice([t for t in FLOAT_OPS if kind != "f16" or "copysign" not in t])
        else:
            text = self.r.choice(WIDE_OPS if self.r.random() < 0.25 else INTEGER_OPS)
        return filled(text, kind, a, b)

    def condition(self) -> str:
        kind = self.r.choice([k for k in self.names if k in INTEGERS or k in FLOATS])
        op = self.r.choice(("<", "<=", ">", "==", "!="))
        if self.r.random() < 0.3 and kind in INTEGERS:
            return f"({self.expression(kind, 1)} & {1 << self.r.randrange(4)}) != 0"
        return f"{self.expression(kind, 1)} {op} {self.expression(kind, 1)}"

    # ---- statements

    def declare(self, kind: str, value: str) -> None:
        name = self.fresh()
        self.put(f"{kind} {name} = {value};")
        self.names.setdefault(kind, []).append(name)

    def assign(self) -> None:
        kind = self.r.choice([k for k in self.names if k in INTEGERS or k in FLOATS])
        free = [n for n in self.names[kind] if n not in self.fixed]
        if free and self.r.random() < 0.7:
            self.put(f"{self.r.choice(free)} = {self.expression(kind)};")
        elif self.depth == 0:
            self.declare(kind, self.expression(kind))

    def vectors(self) -> None:
        kind = self.r.choice(list(VECTORS))
        part, n = VECTORS[kind]
        a, b = self.fresh(), self.fresh()
        for v in (a, b):
            self.put(f"{kind} {v} = {{{', '.join(self.expression(part, 1) for _ in range(n))}}};")
        op = self.r.choice("+-*" if part in FLOATS else "+-*&|^")
        self.put(f"{a} = {a} {op} {b};")
        self.put(f"{a} = __builtin_shufflevector({a}, {b}, {', '.join(str(self.r.randrange(2 * n)) for _ in range(n))});")
        self.put(f"{b} = {a} < {b} ? {a} : {b};" if self.r.random() < 0.3 and part not in FLOATS else f"{b} = {b} - {a};")
        self.fold(part, f"{self.r.choice((a, b))}[{self.r.randrange(n)}]")

    def fold(self, kind: str, value: str) -> None:
        """`value` goes into the sum of everything."""
        word = f"bits({value})" if kind in FLOATS else value
        self.put(f"sum = (sum << 7 | sum >> 57) ^ (u64)({word});")

    def array(self) -> None:
        """A private array written and read at places known only to the lane, or to all lanes."""
        kind, size, name = self.r.choice(("u32", "u64", "i16", "f32", "u8")), self.r.choice((4, 8, 16)), self.fresh()
        self.put(f"{kind} {name}[{size}];")
        self.put(f"for (u32 k = 0; k < {size}; k++) {name}[k] = ({kind})({self.leaf('u32')} + k * {self.r.randrange(1, 99)});")
        for _ in range(self.r.randrange(1, 4)):
            at = f"{self.expression(self.r.choice(('u32', 'u8')), 1)} & {size - 1}"
            self.put(f"{name}[{at}] = {self.expression(kind, 1)};")
        self.fold(kind, f"{name}[{self.expression('u32', 1)} & {size - 1}]")

    def block(self, head: str, size: int) -> None:
        self.put(head + " {")
        self.depth += 1
        known = {k: list(v) for k, v in self.names.items()}
        self.statements(size)
        self.names = known
        self.depth -= 1
        self.put("}")

    def branch(self) -> None:
        self.block(f"if ({self.condition()})", self.r.randrange(1, 4))
        if self.r.random() < 0.5:
            self.block("else", self.r.randrange(1, 3))

    def loop(self) -> None:
        k, kind = self.fresh(), self.r.choice(("u32", "i32", "u64", "u16"))
        self.fixed.add(k)
        limit = self.r.choice((str(self.r.randrange(1, 7)), f"({self.leaf('u32')} & 7)", f"(shared.v[{self.r.randrange(N_SHARED)}] & 7)"))
        known = {n: list(v) for n, v in self.names.items()}
        self.names.setdefault(kind, []).append(k)
        leave = f" if ({self.condition()}) break;" if self.r.random() < 0.3 else ""
        self.block(f"for ({kind} {k} = 0; {k} < ({kind}){limit}; {k}++) {{{leave}", self.r.randrange(1, 4))
        self.put("}")
        self.names = known

    def choice(self) -> None:
        self.put(f"switch ({self.expression('u32', 1)} & 3) {{")
        for k in range(3):
            self.block(f"case {k}:", 1)
            self.put("break;")
        self.put("default: sum += 11;")
        self.put("}")

    def call(self) -> None:
        kind = self.r.choice(("u32", "f32", "u64"))
        self.fold(kind, f"called_{kind}({self.expression(kind, 1)}, {self.expression('u32', 1)})")

    def statements(self, n: int) -> None:
        simple: list[Callable[[], None]] = [self.assign] * 6 + [self.vectors, self.array, self.call if self.calls else self.assign]
        for _ in range(n):
            deep = [self.branch, self.branch, self.loop, self.choice] if self.depth < 3 else []
            self.r.choice(simple + deep)()


def filled(text: str, kind: str, a: str, b: str) -> str:
    """An operation with its type and operands in place."""
    words = {"a": f"({a})", "b": f"({b})", "T": kind, "U": "u" + kind[1:], "w": str(INTEGERS.get(kind, 0))}
    out, word = [], ""
    for c in text + " ":
        if c.isalnum() or c == "_":
            word += c
            continue
        out.append(words.get(word, word) + c)
        word = ""
    return "".join(out).rstrip()


def called(r: random.Random, kind: str) -> str:
    """A function that is called and not inlined; it calls nothing itself."""
    p = Program(r, names={"u32": ["n"]}, fixed={"n"}, calls=False)
    p.names.setdefault(kind, []).append("x")
    p.put(f"Shared shared = {{{{{', '.join(f'{r.getrandbits(40)}ul' for _ in range(N_SHARED))}}}}};")
    p.put("u64 sum = n;")
    for other in (*INTEGERS, *FLOATS):
        if other != kind:
            p.declare(other, p.converted("n", "u32", other))
    p.statements(4)
    return "\n".join((f"CALLED {kind} called_{kind}({kind} x, u32 n) {{", *p.lines, f"  return x + ({kind})(sum & 1023);", "}"))


def program(seed: int, size: int = 22) -> str:
    """The text of program number `seed`, for a processor with HOST defined, else for a GPU."""
    r = random.Random(seed)
    main = Program(r)
    for kind in (*INTEGERS, *FLOATS):
        word = f"in[{r.randrange(N_INPUTS)}]"
        value = f"real((u{FLOATS[kind]}){word})" if kind in FLOATS else f"({kind}){word}"
        main.declare(kind, value)
        shared = f"shared.v[{r.randrange(N_SHARED)}]"
        main.declare(kind, f"real((u{FLOATS[kind]}){shared})" if kind in FLOATS else f"({kind}){shared}")
    main.put("u64 sum = 1;")
    main.statements(size)
    for kind in (*INTEGERS, *FLOATS):
        main.fold(kind, main.known(kind))
    out = ["sum", main.known("u64"), f"(u64){main.known('i32')}", f"bits({main.known('f64')})"]
    stores = [f"  out[{k}] = {value};" for k, value in enumerate(out)]
    helpers = [called(r, kind) for kind in ("u32", "f32", "u64")]
    return "\n".join((HEAD, f"#define N_INPUTS {N_INPUTS}", f"#define N_OUTPUTS {N_OUTPUTS}", f"struct Shared {{ u64 v[{N_SHARED}]; }};", *helpers,
                      "DEVICE void program(const u64 *in, u64 *out, Shared shared) {", *main.lines, *stores, "}", TAIL))
