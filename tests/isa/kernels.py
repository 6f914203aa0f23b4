"""Random small kernels in OpenCL C, seeded: what a compiler makes of them covers code as people run it.

They use no library, only the language and builtins that clang has on every architecture or, in
`OWN`, on one of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

SCALARS = ("int", "uint", "long", "ulong", "short", "ushort", "char", "uchar", "float", "double", "half")
VECTORS = ("int2", "uint4", "float2", "float4", "half2", "half4", "double2", "short2", "uchar4", "long2")
FLOATS = ("float", "double", "half")
WIDTH = 4
HEAD = """
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define X __builtin_amdgcn_workitem_id_x()
#define Y __builtin_amdgcn_workitem_id_y()
#define GX __builtin_amdgcn_workgroup_id_x()
#define GY __builtin_amdgcn_workgroup_id_y()
typedef float f4 __attribute__((ext_vector_type(4)));
typedef float f8 __attribute__((ext_vector_type(8)));
typedef half h4 __attribute__((ext_vector_type(4)));
typedef half h8 __attribute__((ext_vector_type(8)));
typedef half h16 __attribute__((ext_vector_type(16)));
"""
FLOAT_CALLS = (
    "__builtin_fmaf({a}, {b}, {c})", "__builtin_sqrtf({a})", "__builtin_floorf({a})", "__builtin_fabsf({a})",
    "__builtin_fminf({a}, {b})", "__builtin_fmaxf({a}, {b})", "__builtin_truncf({a})", "__builtin_rintf({a})",
    "__builtin_amdgcn_rcpf({a})", "__builtin_amdgcn_rsqf({a})", "__builtin_amdgcn_sinf({a})", "__builtin_copysignf({a}, {b})",
    "__builtin_amdgcn_fractf({a})", "__builtin_ldexpf({a}, (int){b} & 31)", "__builtin_amdgcn_fmed3f({a}, {b}, {c})",
    "({a}) / ({b})", "__builtin_amdgcn_exp2f({a})", "__builtin_amdgcn_logf({a})",
)  # fmt: skip
INT_CALLS = (
    "__builtin_popcount({a})", "__builtin_clz({a} | 1)", "__builtin_ctz({a} | 4)", "__builtin_bitreverse32({a})",
    "__builtin_amdgcn_readfirstlane({a})", "__builtin_amdgcn_mbcnt_lo({a}, {b})", "__builtin_amdgcn_ds_bpermute({a}, {b})",
    "__builtin_amdgcn_update_dpp({a}, {b}, 0x111, 0xf, 0xf, 0)", "__builtin_amdgcn_alignbit({a}, {b}, {c})",
    "__builtin_amdgcn_perm({a}, {b}, {c})", "__builtin_amdgcn_sad_u8({a}, {b}, {c})", "__builtin_amdgcn_ubfe({a}, {b}, {c})",
    "__builtin_amdgcn_ds_swizzle({a}, 0x1f)", "__builtin_rotateleft32({a}, {b})", "({a}) % (({b}) | 3)", "({a}) / (({b}) | 5)",
    "__builtin_amdgcn_readlane({a}, {b} & 31)", "(int)__builtin_readcyclecounter()",
)  # fmt: skip
#: Statements of one architecture: matrix instructions, among others.
OWN = {
    "gfx1100": ("{{ h16 a = (h16)((half)X), b = (h16)((half)Y); f8 c = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(a, b, (f8)(1.0f)); f0 += c[3]; }}",),
    "gfx1151": ("{{ float u = __builtin_amdgcn_readfirstlane((int)X) * 1.5f + 0.25f; if (u > 3.0f) f0 += __builtin_floorf(u); }}",),
    "gfx1201": ("{{ h8 a = (h8)((half)X), b = (h8)((half)Y); f8 c = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(a, b, (f8)(1.0f)); f0 += c[3]; }}",),
    "gfx942": ("{{ f4 c = __builtin_amdgcn_mfma_f32_16x16x4f32((float)X, (float)Y, (f4)(f0), 0, 0, 0); f0 += c[1]; }}",
               "{{ h4 a = (h4)((half)X); f4 c = __builtin_amdgcn_mfma_f32_16x16x16f16(a, a, (f4)(f0), 0, 0, 0); f0 += c[2]; }}"),
    "gfx950": ("{{ h8 a = (h8)((half)X); f4 c = __builtin_amdgcn_mfma_f32_16x16x32_f16(a, a, (f4)(f0), 0, 0, 0); f0 += c[2]; }}",
               "{{ f4 c = __builtin_amdgcn_mfma_f32_16x16x4f32((float)X, (float)Y, (f4)(f0), 0, 0, 0); f0 += c[1]; }}"),
}  # fmt: skip


@dataclass
class Kernel:
    """A kernel being written. Variables i0.. are int, f0.. float; p0.. are arrays of `types`."""

    r: random.Random
    arch: str
    types: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def number(self) -> str:
        r = self.r
        return r.choice((f"i{r.randrange(WIDTH)}", f"i{r.randrange(WIDTH)}", str(r.randrange(-20, 80)), hex(r.getrandbits(32)),
                         f"(int)p{self.array()}[{self.index()}]{self.part()}", "(int)X"))  # fmt: skip

    def real(self) -> str:
        r = self.r
        return r.choice((f"f{r.randrange(WIDTH)}", f"f{r.randrange(WIDTH)}", f"{r.choice((0.5, 1.0, -2.0, 0.1, 3e7))}f",
                         f"(float)p{self.array()}[{self.index()}]{self.part()}"))  # fmt: skip

    def array(self) -> int:
        self.last = self.r.randrange(len(self.types))
        return self.last

    def part(self) -> str:
        return f".s{self.r.randrange(2)}" if self.types[self.last][-1].isdigit() else ""

    def index(self) -> str:
        r = self.r
        return r.choice(("GX * 64 + X", "X", f"X * {r.randrange(2, 9)} + {r.randrange(99)}", "GX", f"{r.randrange(2000)}", "i0 & 1023"))

    # ---- statements

    def integers(self) -> str:
        a, b, c = self.number(), self.number(), self.number()
        op = self.r.choice(("+", "-", "*", "&", "|", "^", "<<", ">>"))
        plain = f"({a} {op} ({b}{' & 31' if op in ('<<', '>>') else ''}))"
        call = self.r.choice(INT_CALLS).format(a=f"(uint)({a})", b=f"(uint)({b})", c=f"(uint)({c})")
        return f"i{self.r.randrange(WIDTH)} {self.r.choice(('=', '+=', '^='))} {self.r.choice((plain, plain, call))};"

    def reals(self) -> str:
        a, b, c = self.real(), self.real(), self.real()
        op = self.r.choice(("+", "-", "*"))
        call = self.r.choice(FLOAT_CALLS).format(a=a, b=b, c=c)
        return f"f{self.r.randrange(WIDTH)} {self.r.choice(('=', '+='))} {self.r.choice((f'({a} {op} {b})', call))};"

    def stores(self) -> str:
        k = self.array()
        kind = self.types[k]
        value = f"({kind})({self.real() if kind.startswith(FLOATS) else self.number()})"
        return f"p{k}[{self.index()}] {self.r.choice(('=', '='))} {value};"

    def mixes(self) -> str:
        """Arithmetic in the arrays' own types."""
        k, j = self.array(), self.array()
        op = self.r.choice(("+", "-", "*"))
        return f"p{k}[{self.index()}] = p{k}[{self.index()}] {op} p{k}[{self.index()}]; p{j}[X] = p{j}[Y];"

    def branches(self) -> str:
        test = self.r.choice((f"{self.number()} < {self.number()}", f"{self.real()} > {self.real()}", "X & 1", "GX == 3"))
        return f"if ({test}) {{ {self.statement()} {self.statement()} }} else {{ {self.statement()} }}"

    def loops(self) -> str:
        bound = self.r.choice(("i1 & 15", "7", "n", "X"))
        return f"for (int k{len(self.lines)} = 0; k{len(self.lines)} < ({bound}); k{len(self.lines)}++) {{ {self.integers()} {self.reals()} }}"

    def shares(self) -> str:
        return (f"lds[X & 255] = {self.number()}; __builtin_amdgcn_fence(__ATOMIC_RELEASE, \"workgroup\"); "
                f"__builtin_amdgcn_s_barrier(); i{self.r.randrange(WIDTH)} += lds[(X ^ {self.r.randrange(64)}) & 255];")

    def atomics(self) -> str:
        r = self.r
        call = r.choice(("fetch_add", "fetch_or", "fetch_xor", "exchange_n"))
        target = r.choice(("q", "q", "lds"))
        order = r.choice(("__ATOMIC_RELAXED", "__ATOMIC_SEQ_CST"))
        result = f"i{r.randrange(WIDTH)} += " if r.random() < 0.5 else ""
        return f"{result}__atomic_{call}(&{target}[X & 63], {self.number()}, {order});"

    def privates(self) -> str:
        return f"{{ volatile int t[{self.r.choice((4, 40))}]; t[i1 & 3] = {self.number()}; i2 += t[i3 & 3]; }}"

    def own(self) -> str:
        return self.r.choice(OWN[self.arch]).format()

    def statement(self) -> str:
        return self.r.choice((self.integers, self.integers, self.reals, self.reals, self.stores, self.mixes))()

    def write(self, name: str) -> str:
        r = self.r
        self.types += [r.choice((*SCALARS, *VECTORS)) for _ in range(r.randint(2, 4))]
        kinds: tuple[Callable[[], str], ...] = (
            self.integers, self.integers, self.reals, self.reals, self.stores, self.mixes, self.branches, self.loops,
            self.shares, self.atomics, self.privates, self.own,
        )  # fmt: skip
        for _ in range(r.randint(4, 14)):
            self.lines.append(r.choice(kinds)())
        args = ", ".join(f"global {kind} *p{i}" for i, kind in enumerate(self.types))
        start = " ".join([*(f"int i{k} = (int)X * {k + 1} + n;" for k in range(WIDTH)),
                          *(f"float f{k} = (float)Y * {k}.5f;" for k in range(WIDTH))])
        ends = " ".join(f"q[X + {k}] = i{k} + (int)f{k};" for k in range(WIDTH))
        body = "\n  ".join(self.lines)
        return f"kernel void {name}({args}, global int *q, int n) {{\n  local int lds[256];\n  {start}\n  {body}\n  {ends}\n}}\n"


def source(arch: str, seed: int, n: int) -> str:
    """One file of `n` kernels."""
    r = random.Random(f"{arch} {seed}")
    return HEAD + "".join(Kernel(r, arch).write(f"k{i}") for i in range(n))
