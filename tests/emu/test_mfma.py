"""MFMA and SMFMAC: every shape against a plain matrix product, broadcasts, scales, number formats."""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Callable

import pytest

from stuntgpu.emu import mfma
from stuntgpu.emu import softfloat as sf
from stuntgpu.emu.smallfloat import SMALL, narrow
from stuntgpu.isa.arch import arch
from tests.emu.cdna import LANES, Bench, Values

BENCHES = {name: Bench(name) for name in ("gfx942", "gfx950")}


def f32(x: float) -> int:
    return sf.from_float(sf.F32, x)


def names(target: str) -> list[str]:
    """Matrix instructions of an arch whose formats are in the name."""
    rows = {r.name for r in arch(target).tables.rows if r.base == "VOP3P_MFMA"}
    return sorted(n for n in rows if not n.endswith("F8F6F4"))


def encoded(target: str, kind: str, value: int) -> int:
    """A small integer in an element format."""
    if kind == "i8":
        return value & 0xFF
    if kind in ("f16", "bf16", "f64"):
        return sf.from_float(sf.FORMATS[kind], float(value))
    if kind in ("f32", "xf32"):
        return f32(float(value))
    small = SMALL[kind + arch(target).fp8 if kind in ("fp8", "bf8") else kind]
    return narrow(small, f32(float(value)), None, False)


class Registers:
    """Vector registers filled element by element."""

    def __init__(self) -> None:
        self.words: dict[int, list[int]] = {}

    def put(self, first: int, lane: int, bit: int, width: int, value: int) -> None:
        for i in range(0, width, 32):
            part = value >> i & 0xFFFF_FFFF
            column = self.words.setdefault(first + (bit + i) // 32, [0] * LANES)
            column[lane] |= part << (bit + i) % 32 & 0xFFFF_FFFF
            if (bit + i) % 32 + min(width, 32) > 32:  # elements of six bits cross registers
                self.words.setdefault(first + (bit + i) // 32 + 1, [0] * LANES)[lane] |= part >> 32 - (bit + i) % 32


A, B, C, INDEX, D = 64, 96, 128, 10, 192
Place = tuple[int, int, int, int]


def fill(target: str, shape: mfma.Shape, seed: int) -> tuple[Registers, list[list[list[int]]]]:
    """Registers of a random problem and, by block, its exact result rows."""
    rng, regs, n = random.Random(seed), Registers(), shape.size
    width = 64 if shape.result == "f64" else 32
    results = []
    for block in range(shape.blocks):
        a = [[rng.randint(-2, 2) for _ in range(shape.k)] for _ in range(n)]
        b = [[rng.randint(-2, 2) for _ in range(n)] for _ in range(shape.k)]
        c = [[rng.randint(-9, 9) for _ in range(n)] for _ in range(n)]
        for i in range(n):
            for k in range(shape.k):
                bits = mfma._BITS[shape.b]
                group, e = shape.held(k, bits)
                regs.put(B, shape.lane(block, i, group), bits * e, bits, encoded(target, shape.b, b[k][i]))
                if not shape.sparse:
                    bits = mfma._BITS[shape.a]
                    group, e = shape.held(k, bits)
                    regs.put(A, shape.lane(block, i, group), bits * e, bits, encoded(target, shape.a, a[i][k]))
            if shape.sparse:
                sparse_row(target, shape, regs, rng, i, a[i])
            for j in range(n):
                element, lane = shape.place(block, i, j)
                kind = {"i32": "f32"}.get(shape.result, shape.result)
                value = c[i][j] & 0xFFFF_FFFF if shape.result == "i32" else encoded(target, kind, c[i][j])
                regs.put(D if shape.sparse else C, lane, width * element, width, value)
        results.append([[c[i][j] + sum(a[i][k] * b[k][j] for k in range(shape.k)) for j in range(n)] for i in range(n)])
    return regs, results


def sparse_row(target: str, shape: mfma.Shape, regs: Registers, rng: random.Random, i: int, row: list[int]) -> None:
    """Keeps two of every four elements of a row of A, zeroes the others in `row`, writes the positions."""
    bits = mfma._BITS[shape.a]
    for quad in range(shape.k // 4):
        kept = sorted(rng.sample(range(4), 2))
        group, inside = divmod(4 * quad, shape.per_lane)
        lane = shape.lane(0, i, group)
        for e, position in enumerate(kept):
            element = inside // 2 + e
            regs.put(A, lane, bits * element, bits, encoded(target, shape.a, row[4 * quad + position]))
            regs.put(INDEX, lane, 2 * element, 2, position)
        for position in range(4):
            if position not in kept:
                row[4 * quad + position] = 0


def registers(letter: str, first: int, bits: int) -> str:
    n = max(1, bits // 32)
    return f"{letter}{first}" if n == 1 else f"{letter}[{first}:{first + n - 1}]"


def text_of(target: str, name: str, shape: mfma.Shape) -> str:
    row = next(r for r in arch(target).tables.rows if r.name == name)
    sizes = {o.role: o.bits for o in row.operands}
    c = f"v{INDEX}" if shape.sparse else registers("v", C, sizes["S2"])
    return (f"{name.lower()} {registers('v', D, sizes['D0'])}, {registers('v', A, sizes['S0'])},"
            f" {registers('v', B, sizes['S1'])}, {c}")


def result(shape: mfma.Shape, vgprs: tuple[tuple[int, ...], ...], block: int, i: int, j: int) -> float:
    element, lane = shape.place(block, i, j)
    if shape.result == "f64":
        return sf.to_float(sf.F64, vgprs[D + 2 * element][lane] | vgprs[D + 2 * element + 1][lane] << 32)
    word = vgprs[D + element][lane]
    return float((word ^ 1 << 31) - (1 << 31)) if shape.result == "i32" else sf.to_float(sf.F32, word)


@pytest.mark.parametrize("target", BENCHES)
def test_every_shape_is_a_matrix_product(target: str) -> None:
    """Small integers are exact in every format; each element has one place."""
    for seed, name in enumerate(names(target)):
        shape = mfma.shape_of(target, name)
        regs, want = fill(target, shape, seed)
        out = BENCHES[target].run(text_of(target, name, shape), v=regs.words, exec_mask=1)
        places = {shape.place(b, i, j) for b in range(shape.blocks) for i in range(shape.size) for j in range(shape.size)}
        assert len(places) == shape.blocks * shape.size**2
        for block, rows in enumerate(want):
            for i, row in enumerate(rows):
                for j, value in enumerate(row):
                    assert result(shape, out.vgprs, block, i, j) == value, (name, block, i, j)


@pytest.mark.parametrize(("a", "b"), [(0, 0), (1, 4), (2, 3), (3, 0), (4, 2)])
def test_f8f6f4_formats_by_field(a: int, b: int) -> None:
    kinds, n = ("fp8", "bf8", "fp6", "bf6", "fp4"), (8, 8, 6, 6, 4)
    shape = mfma.shape_of("gfx950", "V_MFMA_F32_16X16X128_F8F6F4")
    chosen = mfma.Shape(shape.size, shape.k, 1, kinds[a], kinds[b], "f32", False)
    regs, want = fill("gfx950", chosen, a)
    out = BENCHES["gfx950"].run(
        f"v_mfma_f32_16x16x128_f8f6f4 v[{D}:{D + 3}], v[{A}:{A + n[a] - 1}], v[{B}:{B + n[b] - 1}], v[{C}:{C + 3}]"
        f" cbsz:{a} blgp:{b}", v=regs.words)
    for i in range(16):
        for j in range(16):
            assert result(chosen, out.vgprs, 0, i, j) == want[0][i][j]


@pytest.mark.parametrize(
    ("name", "fields", "a", "b", "element"),
    [  # (register, lane, bit, one) of A and of B at the same k; row and column of D
        ("v_mfma_f32_16x16x32_f16", "", (1, 17, 16, 0x3C00), (1, 18, 16, 0x3C00), (1, 2)),  # k = 11
        ("v_mfma_f32_16x16x128_f8f6f4", "cbsz:0 blgp:4", (4, 16, 0, 0x38), (2, 32 + 5, 0, 2), (0, 5)),  # k = 80
        ("v_mfma_f32_32x32x64_f8f6f4", "cbsz:4 blgp:0", (2, 3, 8, 2), (4, 7, 16, 0x38), (3, 7)),  # k = 18 and 34: apart
        ("v_mfma_f32_32x32x64_f8f6f4", "cbsz:2 blgp:4", (3, 33, 0, 8), (2, 32, 0, 2), (1, 0)),  # k = 48
        ("v_mfma_f32_4x4x4_16b_f16", "", (1, 4 * 9 + 1, 0, 0x3C00), (1, 4 * 9 + 2, 0, 0x3C00), (1, 4 * 9 + 2)),
    ],
)  # fmt: skip
def test_known_places_meet_at_one_k(name: str, fields: str, a: Place, b: Place, element: tuple[int, int]) -> None:
    bench, regs = BENCHES["gfx950"], Registers()
    for first, (register, lane, bit, one) in ((A, a), (B, b)):
        regs.put(first, lane, 32 * register + bit, 16 if "f16" in name else 8, one)
    sizes = {"cbsz:0 blgp:4": (8, 4), "cbsz:4 blgp:0": (4, 8), "cbsz:2 blgp:4": (6, 4)}.get(fields, (4, 4))
    if "4x4x4" in name:
        sizes = (2, 2)
    n = 16 if "32x32" in name else 4
    out = bench.run(f"{name} {registers('v', D, 32 * n)}, {registers('v', A, 32 * sizes[0])}, {registers('v', B, 32 * sizes[1])}, 0"
                    f" {fields}", v=regs.words)
    nonzero = {(r, lane): x for r in range(n) for lane, x in enumerate(out.vgprs[D + r]) if x}
    row, column = element
    want = {} if fields == "cbsz:4 blgp:0" else {(row, column): f32(1.0)}
    assert nonzero == want


def test_sparse_k_meets_the_second_half_of_b() -> None:
    """16x16x128: A's lane group 2 holds k from 64 on, which B has in its upper four registers of group 0."""
    v: dict[int, Values] = {A: [0x01 if lane == 32 else 0 for lane in range(LANES)], INDEX: 0,
                            B + 4: [0x02 if lane == 3 else 0 for lane in range(LANES)]}
    out = BENCHES["gfx950"].run(f"v_smfmac_i32_16x16x128_i8 v[{D}:{D + 3}], v[{A}:{A + 3}], v[{B}:{B + 7}], v{INDEX}", v=v)
    assert [(lane, x) for lane, x in enumerate(out.vgprs[D]) if x] == [(3, 2)]


# ---------------------------------------------------------------- modifiers


def ones(lane_values: list[int]) -> list[int]:
    return [f32(float(x)) for x in lane_values]


def test_cbsz_and_abid_share_a_block_of_a() -> None:
    """4x4x1, sixteen blocks: A of block n is n; groups of four take that of their second block."""
    v = {A: ones([lane // 4 for lane in range(LANES)]), B: f32(1.0)}
    out = BENCHES["gfx942"].run(f"v_mfma_f32_4x4x1_16b_f32 v[{D}:{D + 3}], v{A}, v{B}, 0 cbsz:2 abid:1", v=v)
    assert [sf.to_float(sf.F32, x) for x in out.vgprs[D][::4]] == [b // 4 * 4 + 1 for b in range(16)]


@pytest.mark.parametrize(
    ("blgp", "lane_of"),
    [(1, lambda n: n % 32), (2, lambda n: 32 + n % 32), (3, lambda n: (n + 16) % 64), (4, lambda n: n % 16),
     (6, lambda n: 32 + n % 16)],
)  # fmt: skip
def test_blgp_moves_lanes_of_b(blgp: int, lane_of: Callable[[int], int]) -> None:
    v = {A: f32(1.0), B: ones(list(range(LANES)))}
    out = BENCHES["gfx942"].run(f"v_mfma_f32_4x4x1_16b_f32 v[{D}:{D + 3}], v{A}, v{B}, 0 blgp:{blgp}", v=v)
    assert [sf.to_float(sf.F32, x) for x in out.vgprs[D]] == [lane_of(n) for n in range(LANES)]


def test_f64_negates_by_field() -> None:
    one, two = (struct.unpack("<II", struct.pack("<d", x)) for x in (1.0, 2.0))
    v = {A: one[0], A + 1: one[1], B: two[0], B + 1: two[1], C: one[0], C + 1: one[1]}
    out = BENCHES["gfx942"].run(
        f"v_mfma_f64_4x4x4_4b_f64 v[{D}:{D + 1}], v[{A}:{A + 1}], v[{B}:{B + 1}], v[{C}:{C + 1}] neg:[1,0,1]", v=v)
    assert sf.to_float(sf.F64, out.vgprs[D][0] | out.vgprs[D + 1][0] << 32) == -8.0 - 1.0


def test_scales_belong_to_thirty_two_neighbouring_k() -> None:
    """All ones: an element is the sum over four groups of 32 * 2 ** (a of its row's lane + b of its column's)."""
    one = 0x3838_3838
    v: dict[int, Values] = dict.fromkeys((*range(A, A + 8), *range(B, B + 8)), one)
    scale_a = [127 + lane % 3 << 8 for lane in range(LANES)]  # second byte
    scale_b = [127 - lane % 2 for lane in range(LANES)]
    out = BENCHES["gfx950"].run(
        f"v_mfma_scale_f32_16x16x128_f8f6f4 v[{D}:{D + 3}], v[{A}:{A + 7}], v[{B}:{B + 7}], 0, v2, v3"
        " op_sel:[1,0,0] op_sel_hi:[0,0,0]", v=v | {2: scale_a, 3: scale_b})
    shape = mfma.shape_of("gfx950", "V_MFMA_SCALE_F32_16X16X128_F8F6F4")
    for i in range(16):
        for j in range(16):
            want = sum(32 * 2.0 ** ((16 * g + i) % 3 - (16 * g + j) % 2) for g in range(4))
            assert result(shape, out.vgprs, 0, i, j) == want


def test_scale_of_255_is_no_number() -> None:
    v = dict.fromkeys((*range(A, A + 8), *range(B, B + 8)), 943208504) | {2: 255, 3: 127}
    out = BENCHES["gfx950"].run(
        f"v_mfma_scale_f32_16x16x128_f8f6f4 v[{D}:{D + 3}], v[{A}:{A + 7}], v[{B}:{B + 7}], 0, v2, v3 op_sel_hi:[0,0,0]", v=v)
    assert out.vgprs[D][0] == sf.F32.nan


@pytest.mark.parametrize("abid", [0, 1, 2, 3])
def test_abid_picks_a_set_of_sparse_positions(abid: int) -> None:
    """Kept elements 1 and 2 of each pair of four: set `abid` says positions 1 and 3, the others 0 and 1."""
    sets = [0b0100_0100] * 4
    sets[abid] = 0b1101_1101
    index = sum(x << 8 * i for i, x in enumerate(sets))
    half = sf.from_float(sf.F16, 1.0)
    columns = [sf.from_float(sf.F16, float(k)) for k in range(4)]
    v = {A: half * 0x10001, A + 1: half * 0x10001, INDEX: index}
    v |= {B + r: columns[2 * r % 4] | columns[2 * r % 4 + 1] << 16 for r in range(4)}
    out = BENCHES["gfx942"].run(
        f"v_smfmac_f32_16x16x32_f16 v[{D}:{D + 3}], v[{A}:{A + 1}], v[{B}:{B + 3}], v{INDEX} abid:{abid}", v=v)
    assert sf.to_float(sf.F32, out.vgprs[D][0]) == 8 * (1 + 3)


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize(("mode", "kept"), [(0xF0, 1), (0, 0)])
def test_f32_inputs_follow_mode_and_sums_keep_denormals(mode: int, kept: int) -> None:
    bench, start = BENCHES["gfx942"], {C + r: 1 for r in range(4)}
    text = f"v_mfma_f32_4x4x1_16b_f32 v[{D}:{D + 3}], v{A}, v{B}, v[{C}:{C + 3}]"
    assert bench.run(text, v=start | {A: 1, B: f32(1.0)}, mode=mode).vgprs[D][0] == 1 + kept
    halves = f"v_mfma_f32_4x4x4_16b_f16 v[{D}:{D + 3}], v[{A}:{A + 1}], v[{B}:{B + 1}], 0"
    assert bench.run(halves, v={A: 1, B: 0x3C00}, mode=mode).vgprs[D][0] == f32(2.0**-24)


@pytest.mark.parametrize(("mode", "result_bits"), [(0xF0, sf.F32.inf), (0xF0 | 1 << 23, sf.F32.largest)])
def test_f8f6f4_overflow_follows_mode(mode: int, result_bits: int) -> None:
    v = dict.fromkeys((*range(A, A + 8), *range(B, B + 8)), 0x7B7B_7B7B) | {2: 254, 3: 254}
    out = BENCHES["gfx950"].run(
        f"v_mfma_scale_f32_16x16x128_f8f6f4 v[{D}:{D + 3}], v[{A}:{A + 7}], v[{B}:{B + 7}], 0, v2, v3 op_sel_hi:[0,0,0]"
        " cbsz:1 blgp:1", v=v, mode=mode)
    assert out.vgprs[D][0] == result_bits


def test_xf32_rounds_its_inputs_to_ten_bits() -> None:
    for x, want in ((1 + 2**-11, 1.0), (1 + 3 * 2**-11, 1 + 2**-9), (1 + 2**-10, 1 + 2**-10)):
        out = BENCHES["gfx942"].run(f"v_mfma_f32_16x16x8_xf32 v[{D}:{D + 3}], v[{A}:{A + 1}], v[{B}:{B + 1}], 0",
                                    v={A: f32(x), B: f32(1.0)})
        assert sf.to_float(sf.F32, out.vgprs[D][0]) == 4 * want


def test_integers_wrap() -> None:
    v = {A: 0x7F7F_7F7F, B: 0x7F7F_7F7F, C: 0x7FFF_FFFF}
    out = BENCHES["gfx942"].run(f"v_mfma_i32_4x4x4_16b_i8 v[{D}:{D + 3}], v{A}, v{B}, v[{C}:{C + 3}]", v=v)
    assert out.vgprs[D][0] == 0x7FFF_FFFF + 4 * 127 * 127


def test_accumulation_registers_hold_any_operand() -> None:
    text = (f"v_accvgpr_write_b32 a0, v{A}\nv_mfma_f32_4x4x1_16b_f32 a[4:7], a0, v{B}, 1.0\n"
            "v_mfma_f32_4x4x1_16b_f32 a[4:7], a0, a0, a[4:7]\nv_accvgpr_read_b32 v0, a4")
    out = BENCHES["gfx950"].run(text, v={A: f32(3.0), B: f32(2.0)})
    assert sf.to_float(sf.F32, out.vgprs[0][0]) == 1 + 6 + 9


def test_scaled_product_is_exact_before_it_is_added() -> None:
    big, small = f32(2.0**60), f32(2.0**-60)
    assert mfma.scaled_fma(big, big, 0, -119) == f32(2.0)
    assert mfma.scaled_fma(small, small, f32(1.0), 120) == f32(2.0)
    assert mfma.scaled_fma(f32(1.0), f32(-1.0), f32(1.0), 0) == 0
    assert mfma.scaled_fma(sf.F32.inf, f32(1.0), 0, 5) == sf.F32.inf


def test_names_say_shapes() -> None:
    shape = mfma.shape_of("gfx942", "V_SMFMAC_F32_32X32X32_BF8_FP8")
    assert (shape.size, shape.k, shape.a, shape.b, shape.sparse, shape.per_lane) == (32, 32, "bf8", "fp8", True, 16)
    assert re.fullmatch(r".*XF32", next(n for n in names("gfx942") if "XF32" in n))
