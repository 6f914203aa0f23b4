"""Every operation of the semantics language: native code against the reference, as vectors and as scalars."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stuntgpu.emu import softfloat
from stuntgpu.emu.cache import host
from stuntgpu.emu.codegen import compile_module
from stuntgpu.emu.handler_base import float_mode
from stuntgpu.emu.interp import evaluate
from stuntgpu.emu.lower import LOWER
from stuntgpu.emu.lower_text import Emitter, Host, Value
from stuntgpu.emu.objects import Mapping
from stuntgpu.isa.errors import Unmodelled
from stuntgpu.isa.ir import OPS, Op, Var, node

LANES = 32
FP16_OVFL = 1 << 23

#: Rounding and denormal control: all kept; f32 flushed; all flushed; up, down and toward zero; saturating.
MODES = (0xF0, 0xC0, 0x00, 0xF5, 0xFA, 0xFF, 0x4F, FP16_OVFL | 0xF0)

HARD = {
    16: (0, 0x8000, 1, 0x8001, 0x3FF, 0x400, 0x3C00, 0xBC00, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7C01, 0x7E01, 0xFE55,
         0x3555, 0x7F80, 0x7F7F, 0x80, 0x7F, 0x3F80, 0x7FFF, 0x8000, 0xFFFF),
    32: (0, 0x8000_0000, 1, 0x8000_0001, 0x7F_FFFF, 0x80_0000, 0x3F80_0000, 0xBF80_0000, 0x7F7F_FFFF, 0x7F80_0000,
         0xFF80_0000, 0x7F80_0001, 0x7FC0_0001, 0xFFC1_2345, 0x4F00_0000, 0xCF00_0000, 0x5F00_0000, 0x3EFF_FFFF,
         0x4B00_0001, 0x3380_0000, 0x477F_F000, 0x3300_0000, 0x7FFF_FFFF, 0xFFFF_FFFF),
    64: (0, 1 << 63, 1, 1 << 63 | 1, (1 << 52) - 1, 1 << 52, 0x3FF << 52, 0xBFF << 52, (0x7FF << 52) - 1, 0x7FF << 52,
         0xFFF << 52, 0x7FF << 52 | 1, 0x7FF8 << 48, 0xFFF8_1234 << 32, 0x41DF_FFFF_FFC0_0000, 0x43E0 << 48, 0x36A0 << 48,
         0x3810 << 48, 0x47EF_FFFF_F000_0000, 0x3FE0 << 48, (1 << 63) - 1, (1 << 64) - 1),
}  # fmt: skip


def values(width: int, rng: random.Random) -> int:
    """A hard or a random pattern."""
    hard = HARD.get(width, (0, 1, (1 << width) - 1, 1 << (width - 1)))
    near = rng.getrandbits(width) & ((1 << width) - 1) >> rng.randrange(width)
    return rng.choice((*hard, rng.getrandbits(width), near)) & ((1 << width) - 1)


def argument(n: Op, i: int, width: int, rng: random.Random) -> int:
    """Bit positions stay near the width: the reference works on whole integers."""
    return rng.randrange(90) if i == 1 and n.op in ("extract", "insert") else values(width, rng)


def nodes() -> Iterator[Op]:
    """Each operation, at several widths where it has a choice."""
    for name, info in OPS.items():
        free = any(isinstance(a, str) for a in info.args)
        for w in (16, 32, 64) if free else (0,):
            args = [Var(f"a{i}", _width(name, i, a, w)) for i, a in enumerate(info.args)]
            yield node(name, *args, width=_result(name, args, w))
    for name in ("f32_to_f16", "fadd.f32", "f64_to_f32", "i32_to_f32", "f32_to_i32", "fma.f16", "fmul.f64"):
        args = [Var(f"a{i}", int(a)) for i, a in enumerate(OPS[name].args)]
        for rnd in ("rne", "rtz", "rup", "rdn"):
            yield node(name, *args, round=rnd)


def _width(name: str, i: int, kind: str | int, w: int) -> int:
    if isinstance(kind, int):
        return kind
    if kind == "*" and i and name in ("shl", "lshr", "ashr", "extract", "insert"):
        return 8 if (name, i) == ("insert", 2) else 32
    return w


def _result(name: str, args: Sequence[Var], w: int) -> int:
    match name:
        case "concat":
            return 2 * w
        case "zext" | "sext":
            return w + 17
        case "trunc" | "extract":
            return max(1, w - 9)
        case _:
            return w


def storage(width: int) -> int:
    return max(8, 1 << (width - 1).bit_length())


def function(name: str, n: Op, lanes: int, mode: int, machine: Host) -> tuple[str, dict[str, str]]:
    """`void name(ptr in, ptr out)`: arguments one after another, each an array over the lanes."""
    e = Emitter(lanes, float_mode(mode), machine)
    args, at = [], 0
    for a in n.args:
        w = storage(a.width)
        p = e.raw(f"getelementptr i8, ptr %in, i64 {at}")
        args.append(e.zext(e.inst(f"load {e.ty(w)}, ptr {p}, align 1", w), a.width))
        at += w // 8 * max(1, lanes)
    r: Value = LOWER[n.op](e, n, args)
    assert r.width == n.width
    w = storage(n.width)
    e.line(f"store {e.ty(w)} {e.zext(r, w).ref}, ptr %out, align 1")
    head = f"define void @{name}(ptr %in, ptr %out) {'strictfp ' if e.strict else ''}{{\nentry:"
    return "\n".join([head, *e.entry, "  br label %body", "body:", *e.lines, "  ret void", "}"]), e.declarations


def compiled(work: Sequence[tuple[Op, int, int]], machine: Host) -> tuple[Mapping, list[int]]:
    """Native functions of (node, lanes, mode); the mapping keeps them alive."""
    declarations: dict[str, str] = {}
    texts = []
    for i, (n, lanes, mode) in enumerate(work):
        text, needs = function(f"f{i}", n, lanes, mode, machine)
        texts.append(text)
        declarations.update(needs)
    rare = '!0 = !{!"branch_weights", i32 1, i32 2000}'
    mapping = Mapping(compile_module("\n".join([*declarations.values(), *texts, rare])))
    return mapping, [mapping.addresses[f"f{i}"] for i in range(len(work))]


def call(address: int, n: Op, lanes: int, rows: Sequence[Sequence[int]]) -> list[int]:
    """Results for the argument rows, as many as lanes (one for scalar code)."""
    data = b"".join(
        b"".join(row[i].to_bytes(storage(a.width) // 8, "little") for row in rows) for i, a in enumerate(n.args))
    size = storage(n.width) // 8
    given, out = ctypes.create_string_buffer(data, len(data) + 1), ctypes.create_string_buffer(size * max(1, lanes))
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(address)(given, out)
    return [int.from_bytes(out.raw[i * size : (i + 1) * size], "little") for i in range(max(1, lanes))]


def is_modelled(n: Op) -> bool:
    try:
        function("f", n, 0, 0xF0, host())
    except Unmodelled:
        return False
    return True


def test_every_operation_has_one_lowering() -> None:
    assert set(LOWER) == set(OPS)


def test_operations_no_architecture_has_are_unmodelled_in_both_tiers() -> None:
    missing = [n for n in nodes() if not is_modelled(n)]
    assert {n.op for n in missing} == {"exp2.f64", "log2.f64", "sin2pi.f64", "cos2pi.f64"}
    for n in missing:
        with pytest.raises(Unmodelled):
            evaluate(n, [0], softfloat.mode_of(0xF0))


def disagreements(n: Op, mode: int, lanes: int, address: int, rng: random.Random) -> list[str]:
    rows = [[argument(n, i, a.width, rng) for i, a in enumerate(n.args)] for _ in range(LANES)]
    state = softfloat.mode_of(mode)
    got = call(address, n, lanes, rows) if lanes else [call(address, n, 0, [row])[0] for row in rows]
    wrong = []
    for row, r in zip(rows, got, strict=True):
        want = evaluate(n, row, state)
        if r != want:
            shown = ", ".join(map(hex, row))
            wrong.append(f"{n.op}!{n.round or '-'} mode {mode:#x} lanes {lanes}: ({shown}) {r:#x}, not {want:#x}")
    return wrong


def check(work: Sequence[tuple[Op, int, int]], machine: Host, seed: int) -> None:
    mapping, addresses = compiled(work, machine)
    rng = random.Random(seed)
    wrong = [line for (n, lanes, mode), address in zip(work, addresses, strict=True)
             for line in disagreements(n, mode, lanes, address, rng)]
    assert mapping.addresses
    assert not wrong, "\n".join(wrong[:40])


@pytest.mark.parametrize("lanes", [0, LANES])
def test_operations_agree_with_the_reference(lanes: int) -> None:
    check([(n, lanes, 0xF0) for n in nodes() if is_modelled(n)], host(), 1)


def test_float_operations_agree_in_every_mode() -> None:
    floats = [n for n in nodes() if is_modelled(n) and ("." in n.op or "_to_" in n.op) and not n.round]
    work = [(n, LANES if i % 2 else 0, mode) for i, n in enumerate(floats) for mode in MODES[1 + i % 2 :: 2]]
    check(work, host(), 2)


def test_conversions_agree_without_half_precision_instructions() -> None:
    half = [n for n in nodes() if "f16" in n.op and is_modelled(n) and not n.round]
    check([(n, LANES, 0xF0) for n in half], Host(f16c=False), 3)


# ---------------------------------------------------------------- single facts


def one(op: str, *args: int, width: int = 0, mode: int = 0xF0) -> int:
    info = OPS[op]
    widths = [a if isinstance(a, int) else 32 for a in info.args]
    n = node(op, *(Var(f"a{i}", w) for i, w in enumerate(widths)), width=width)
    mapping, (address,) = compiled([(n, 0, mode)], host())
    assert mapping
    return call(address, n, 0, [args])[0]


@pytest.mark.parametrize(("op", "args", "want"), [
    ("udiv", (7, 0), 0xFFFF_FFFF),
    ("sdiv", (0x8000_0000, 0xFFFF_FFFF), 0x8000_0000),
    ("srem", (0x8000_0000, 0xFFFF_FFFF), 0),
    ("shl", (1, 32), 0),
    ("ashr", (0x8000_0000, 77), 0xFFFF_FFFF),
    ("fadd.f32", (0x7F80_0000, 0xFF80_0000), 0x7FC0_0000),
    ("fma.f32", (0x7F80_0000, 0, 0x7F80_0001), 0x7FC0_0001),
    ("rcp.f32", (0x8000_0000,), 0xFF80_0000),
    ("exp2.f32", (0x4120_0000,), 0x4480_0000),
    ("f32_to_i32", (0x7FC0_0000,), 0),
    ("f32_to_u32", (0xBF80_0000,), 0),
])  # fmt: skip
def test_values_that_processors_leave_undefined_or_do_otherwise(op: str, args: tuple[int, ...], want: int) -> None:
    assert one(op, *args) == want


def test_denormal_results_are_flushed_after_rounding() -> None:
    # 2**-126 * (1 - 2**-24) rounds up to the smallest normal number, which stays; a bit less does not.
    assert one("fmul.f32", 0x0080_0000, 0x3F7F_FFFF, mode=0xC0) == 0x0080_0000
    assert one("fmul.f32", 0x0080_0000, 0x3F7F_FFFE, mode=0xC0) == 0


WORDS = st.integers(0, (1 << 32) - 1)


@pytest.fixture(scope="module")
def fused() -> Callable[[Sequence[int]], int]:
    n = node("fma.f32", Var("a", 32), Var("b", 32), Var("c", 32))
    mapping, (address,) = compiled([(n, 0, 0xF0)], host())

    def run(keep: Mapping, row: Sequence[int]) -> int:
        return call(address, n, 0, [row])[0]

    return partial(run, mapping)


@pytest.mark.parametrize("f", [softfloat.F32, softfloat.F64], ids=lambda f: f.name)
def test_a_scaled_fused_sum_rounds_once(f: softfloat.Format) -> None:
    """Where scales of its instruction make denormals, and just above, in every way of rounding."""
    rng, by, near = random.Random(14), -2 * f.width & 0xFFFF_FFFF, (2 * f.width + 1) << f.man
    n = node(f"fma_scaled.{f.name}", *(Var(f"a{i}", f.width) for i in range(3)), Var("a3", 32))
    rows = []
    for _ in range(4 * LANES):
        c = near - (rng.randrange(f.man + 4) << f.man) + rng.getrandbits(f.man) | rng.getrandbits(1) << f.width - 1
        product = c - (rng.randrange(f.man + 2) << f.man) ^ rng.getrandbits(f.man) ^ rng.getrandbits(1) << f.width - 1
        rows.append((product & (1 << f.width) - 1, -2 - f.qmin - f.man + 2 << f.man, c, by))
    for mode in (0xF0, 0xF5, 0xFA, 0xFF):
        mapping, (address,) = compiled([(n, LANES, mode)], host())
        env = getattr(softfloat.mode_of(mode), f.name)
        for i in range(0, len(rows), LANES):
            want = [softfloat.fma_scaled(f, *row, env) for row in rows[i:i + LANES]]
            assert call(address, n, LANES, rows[i:i + LANES]) == want
        del mapping


@settings(max_examples=300, deadline=None)
@given(row=st.tuples(WORDS, WORDS, WORDS))
def test_fused_multiply_add_rounds_once(fused: Callable[[Sequence[int]], int], row: tuple[int, int, int]) -> None:
    assert fused(row) == softfloat.fma(softfloat.F32, *row, softfloat.Env())
