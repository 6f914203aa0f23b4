"""Matrix and dot instructions against numpy products, by lane layouts written down a second time.

A model starts from registers: random small numbers (their sums are exact in every order) in every element of A, B
and C; `k_of` says which k each element of a lane stands for, `place` which row and column each of D does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from stuntgpu.emu.memory import AddressSpace
from stuntgpu.emu.state import WaveInit
from stuntgpu.isa.arch import arch as arch_of
from stuntgpu.isa.asm import assemble
from tests.emu.sweep import CODE, OUT, executor, sweep

KEEP = 0xF0
Array = NDArray[Any]
A, B, C, INDEX, SCALE_A, SCALE_B, D = 32, 64, 96, 160, 162, 163, 192

#: Element type -> (bits, numpy type); fp8 and bf8 are those of the architecture.
TYPES: Mapping[str, tuple[int, Any]] = {
    "f64": (64, np.float64), "f32": (32, np.float32), "xf32": (32, np.float32), "f16": (16, np.float16),
    "bf16": (16, ml_dtypes.bfloat16), "i8": (8, np.int8), "iu8": (8, np.int8), "iu4": (4, ml_dtypes.int4), "i32": (32, np.int32),
    "fp8": (8, ml_dtypes.float8_e4m3fn), "bf8": (8, ml_dtypes.float8_e5m2), "fp8_fnuz": (8, ml_dtypes.float8_e4m3fnuz),
    "bf8_fnuz": (8, ml_dtypes.float8_e5m2fnuz), "fp6": (6, ml_dtypes.float6_e2m3fn), "bf6": (6, ml_dtypes.float6_e3m2fn),
    "fp4": (4, ml_dtypes.float4_e2m1fn),
}  # fmt: skip


def packed(values: Array, kind: str) -> Array:
    """[lane][element] numbers as u32 [register][lane], elements from the lowest bit on."""
    bits, t = TYPES[kind]
    raw = values.astype(t).view(f"u{max(8, bits) // 8}").astype(object) & ((1 << bits) - 1)
    whole = sum(raw[:, e] << (bits * e) for e in range(raw.shape[1]))
    n = -(-bits * raw.shape[1] // 32)
    return np.array([[int(w) >> (32 * r) & 0xFFFF_FFFF for w in whole] for r in range(n)], np.uint32)


def unpacked(registers: Array, kind: str, count: int) -> Array:
    """[register][lane] as [lane][element] doubles."""
    bits, t = TYPES[kind]
    whole = sum(registers[r].astype(object) << (32 * r) for r in range(len(registers)))
    raw = np.array([[w >> (bits * e) & ((1 << bits) - 1) for e in range(count)] for w in whole])
    return raw.astype(f"u{max(8, bits) // 8}").view(t).astype(np.float64)


def run(arch: str, text: str, registers: Mapping[int, Array], lanes: int) -> Array:
    """u32 [VGPR][lane] after the text."""
    code = np.frombuffer(assemble(arch, text + "\ns_endpgm") + bytes(64), np.uint8).copy()
    space = AddressSpace()
    space.map(CODE, code.nbytes, code.ctypes.data, keep=code)
    columns = {first + i: row.tolist() for first, rows in registers.items() for i, row in enumerate(rows)}
    init = WaveInit((1 << lanes) - 1, {}, columns, mode=KEEP)
    return np.array(executor(arch, "native").run_wave(space, CODE, init, lanes).vgprs, np.uint32)


def span(first: int, n: int) -> str:
    return f"v{first}" if n == 1 else f"v[{first}:{first + n - 1}]"


def kept_positions(rng: np.random.Generator, lanes: int, groups: int) -> Array:
    """[lane][group]: which two of four, as (first, second)."""
    pairs = np.array([(i, j) for i in range(4) for j in range(i + 1, 4)])
    return pairs[rng.integers(0, len(pairs), (lanes, groups))]


def index_of(positions: Array) -> Array:
    """The positions as a register, two bits each."""
    flat = positions.reshape(len(positions), -1).astype(np.uint64)
    return sum(flat[:, e] << np.uint64(2 * e) for e in range(flat.shape[1])).astype(np.uint32)


# ---------------------------------------------------------------- MFMA and SMFMAC


@dataclass(frozen=True)
class Mfma:
    size: int
    k: int
    blocks: int
    a: str
    b: str
    result: str
    sparse: bool

    @property
    def groups(self) -> int:
        """Lanes that share a row."""
        return 64 // (self.size * self.blocks)

    def k_of(self, kind: str) -> Array:
        """k of [group][element]: runs of 128 bits go from group to group, but a lane's floats below a byte are one run."""
        per_lane, bits = self.k // self.groups, TYPES[kind][0]
        run = per_lane if bits < 8 else min(per_lane, 128 // bits)
        e, g = np.arange(per_lane), np.arange(self.groups)[:, None]
        found: Array = (e // run * self.groups + g) * run + e % run
        return found

    def dense(self, values: Array, kind: str) -> Array:
        """[block][row][k] of [lane][element]."""
        out = np.zeros((self.blocks, self.size, self.k))
        by_group = values.reshape(self.groups, self.blocks, self.size, -1)
        for g, ks in enumerate(self.k_of(kind)):
            out[:, :, ks] = by_group[g]
        return out

    def place(self) -> tuple[Array, Array, Array]:
        """(block, row, column) of [element][lane] of D."""
        lane = np.arange(64)
        count = self.size * self.size * self.blocks // 64
        r = np.arange(count)[:, None] + 0 * lane
        if self.size == 4:
            if self.result == "f64":
                return lane // 4 % 4 + 0 * r, lane // 16 + 0 * r, lane % 4 + 0 * r
            return lane // 4 + 0 * r, r, lane % 4 + 0 * r
        if self.size == 16:
            row = 4 * r + lane // 16 if self.result == "f64" else 4 * (lane // 16) + r % 4
            return (0 * r if self.result == "f64" else r // 4), row, lane % 16 + 0 * r
        return r // 16, 8 * (r % 16 // 4) + 4 * (lane // 32) + r % 4, lane % 32 + 0 * r


def mfma_of(arch: str, name: str) -> Mfma:
    m = re.fullmatch(r"V_S?MFMAC?_(?:SCALE_)?(\w+?)_(\d+)X\d+X(\d+)(?:_(\d+)B)?_(\w+)", name)
    assert m, name
    kinds = m[5].lower().split("_")
    a, b = (k + "_fnuz" if arch == "gfx942" and k in ("fp8", "bf8") else k for k in (kinds[0], kinds[-1]))
    return Mfma(int(m[2]), int(m[3]), int(m[4] or 1), a, b, m[1].lower(), "SMFMAC" in name)


def small_numbers(rng: np.random.Generator, *shape: int) -> Array:
    return rng.integers(-2, 3, shape).astype(np.float64)


def mfma_case(arch: str, name: str, shape: Mfma, seed: int, fields: str = "", scaled: bool = False) -> None:
    rng = np.random.default_rng(seed)
    per_lane = shape.k // shape.groups
    of_b, block, row, column = small_numbers(rng, 64, per_lane), *shape.place()
    b = shape.dense(of_b, shape.b)
    start = rng.integers(-9, 10, row.shape).astype(np.float64)
    registers = {B: packed(of_b, shape.b), (D if shape.sparse else C): packed(start.T, shape.result)}
    if shape.sparse:
        values, positions = small_numbers(rng, 64, per_lane // 2), kept_positions(rng, 64, per_lane // 4)
        a = sparse_rows(shape, values, positions)
        registers |= {A: packed(values, shape.a), INDEX: index_of(positions)[None]}
    else:
        values = small_numbers(rng, 64, per_lane)
        a = shape.dense(values, shape.a)
        registers[A] = packed(values, shape.a)
    tail = ""
    if scaled:
        powers = rng.integers(-3, 4, (2, 64))
        registers |= {SCALE_A: (powers[:1] + 127).astype(np.uint32), SCALE_B: (powers[1:] + 127).astype(np.uint32)}
        tail = f", v{SCALE_A}, v{SCALE_B}"
        a, b = (x * block_scales(shape, p) for x, p in zip((a, b), powers, strict=True))
    last = f"v{INDEX}" if shape.sparse else span(C, len(registers[C]))
    n = len(registers[D if shape.sparse else C])
    text = f"{name.lower()} {span(D, n)}, {span(A, len(registers[A]))}, {span(B, len(registers[B]))}, {last}{tail} {fields}"
    vgprs = run(arch, text, registers, 64)
    got = unpacked(vgprs[D:D + n], shape.result, row.shape[0]).T
    want = start + np.einsum("...k,...k->...", a[block, row], b[block, column])
    assert (got == want).all(), name


def sparse_rows(shape: Mfma, values: Array, positions: Array) -> Array:
    """[block][row][k]: a group of lanes has a run of k, two of each four."""
    out = np.zeros((1, shape.size, shape.k))
    run = shape.k // shape.groups
    for lane in range(64):
        for e, position in enumerate(positions[lane].ravel()):
            out[0, lane % shape.size, lane // shape.size * run + 4 * (e // 2) + position] = values[lane, e]
    return out


def block_scales(shape: Mfma, powers: Array) -> Array:
    """[1][row][k]: the scale in lane `row + size * group` is that of 32 neighbouring k."""
    by_group = 2.0 ** powers.reshape(shape.groups, shape.size)
    return np.repeat(by_group.T, shape.k // shape.groups, axis=1)[None]


def matrix_names(arch: str) -> list[str]:
    rows = arch_of(arch).tables.rows
    return sorted({r.name for r in rows if re.match(r"V_(MFMA|SMFMAC|WMMA|SWMMAC)_", r.name) and "LD_SCALE" not in r.name})


COUNTS = {"gfx1100": 6, "gfx1201": 22, "gfx942": 46, "gfx950": 68}


def test_every_matrix_instruction_is_one_of_a_known_number() -> None:
    found = {arch: len(matrix_names(arch)) for arch in COUNTS}
    assert found == COUNTS


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_every_mfma_is_a_product_by_its_layout(arch: str) -> None:
    for seed, name in enumerate(n for n in matrix_names(arch) if "F8F6F4" not in n):
        mfma_case(arch, name, mfma_of(arch, name), seed)


@pytest.mark.parametrize(("arch", "name"), [("gfx942", "V_SMFMAC_F32_32X32X32_FP8_BF8"), ("gfx950", "V_MFMA_F32_4X4X4_16B_BF16")])
def test_a_sample_of_mfma_is_a_product_by_its_layout(arch: str, name: str) -> None:
    mfma_case(arch, name, mfma_of(arch, name), 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["V_MFMA_F32_16X16X128_F8F6F4", "V_MFMA_F32_32X32X64_F8F6F4",
                                  "V_MFMA_SCALE_F32_16X16X128_F8F6F4", "V_MFMA_SCALE_F32_32X32X64_F8F6F4"])
def test_every_pair_of_formats_of_f8f6f4(name: str) -> None:
    kinds, is_scaled = ("fp8", "bf8", "fp6", "bf6", "fp4"), "SCALE" in name
    size, k = (16, 128) if "16X16" in name else (32, 64)
    for a in range(5):
        for b in range(5):
            shape = Mfma(size, k, 1, kinds[a], kinds[b], "f32", False)
            fields = f"op_sel_hi:[0,0,0] cbsz:{a} blgp:{b}" if is_scaled else f"cbsz:{a} blgp:{b}"
            mfma_case("gfx950", name, shape, 5 * a + b, fields, is_scaled)


# ---------------------------------------------------------------- WMMA and SWMMAC


def low(lane: Array) -> Array:
    """Which of the two groups of 16 lanes in each half of the wave."""
    return lane >> 4 & 1


def high(lane: Array) -> Array:
    """Which half of a wave64."""
    return lane >> 5


Where = Callable[[Array, Array], Array]
#: RDNA4: (bits of an element, K of B, lanes) -> k of (lane, element) of dense elements.
WHERE: Mapping[tuple[int, int, int], Where] = {
    (16, 16, 32): lambda lane, e: e % 4 + 4 * low(lane) + 8 * (e // 4),
    (16, 16, 64): lambda lane, e: e + 4 * low(lane) + 8 * high(lane),
    (8, 16, 32): lambda lane, e: e + 8 * low(lane),
    (8, 16, 64): lambda lane, e: e + 4 * high(lane) + 8 * low(lane),
    (4, 16, 32): lambda lane, e: e + 8 * low(lane),
    (4, 16, 64): lambda lane, e: e + 8 * low(lane),
    (4, 32, 32): lambda lane, e: e + 16 * low(lane),
    (4, 32, 64): lambda lane, e: e + 8 * high(lane) + 16 * low(lane),
}  # fmt: skip
SPARSE_WHERE: Mapping[tuple[int, int, int], Where] = {
    (16, 32, 32): lambda lane, e: e % 8 + 8 * low(lane) + 16 * (e // 8),
    (16, 32, 64): lambda lane, e: e + 8 * low(lane) + 16 * high(lane),
    (8, 32, 32): lambda lane, e: e + 16 * low(lane),
    (8, 32, 64): lambda lane, e: e + 8 * high(lane) + 16 * low(lane),
    (4, 32, 32): lambda lane, e: e + 16 * low(lane),
    (4, 32, 64): lambda lane, e: e + 8 * high(lane) + 16 * low(lane),
    (4, 64, 32): lambda lane, e: e + 32 * low(lane),
    (4, 64, 64): lambda lane, e: e + 16 * high(lane) + 32 * low(lane),
}  # fmt: skip
#: Where A is not laid out as B: all its groups of four in the lower half of a wave64.
SPARSE_A_WHERE: Mapping[tuple[int, int, int], Where] = {(4, 32, 64): lambda lane, e: e + 16 * low(lane)}


@dataclass(frozen=True)
class Wmma:
    k: int
    a: str
    b: str
    result: str
    sparse: bool
    arch: str
    lanes: int

    @property
    def bits(self) -> int:
        return TYPES[self.a][0]

    def where(self, of_a: bool) -> Array:
        """k of [lane][element], as if A were dense."""
        lane = np.arange(self.lanes)[:, None]
        if self.arch == "gfx1100":
            return np.arange(self.k) + 0 * lane
        key = self.bits, self.k, self.lanes
        where = (SPARSE_WHERE if self.sparse else WHERE)[key]
        differs = self.sparse and of_a and key in SPARSE_A_WHERE
        groups = 2 if differs or key == (4, 16, 64) else self.lanes // 16  # 2: the halves of a wave64 are alike
        return (SPARSE_A_WHERE[key] if differs else where)(lane, np.arange(self.k // groups))

    def rows(self) -> Array:
        """Row of [element][lane] of D; its column is lane % 16."""
        lane, r = np.arange(self.lanes), np.arange(256 // self.lanes)[:, None]
        if self.arch == "gfx1100":
            return r * (self.lanes // 16) + lane // 16
        return 8 * low(lane) + r if self.lanes == 32 else 8 * low(lane) + 4 * high(lane) + r


def wmma_of(arch: str, name: str, lanes: int) -> Wmma:
    m = re.fullmatch(r"V_S?WMMAC?_(\w+?)_16X16X(\d+)_(\w+)", name)
    assert m, name
    kinds = m[3].lower().split("_")
    return Wmma(int(m[2]), kinds[0], kinds[-1], m[1].lower(), "SWMMAC" in name, arch, lanes)


def spread(shape: Wmma, matrix: Array, of_a: bool) -> Array:
    """[lane][element] of a matrix [row or column][k]."""
    where = shape.where(of_a)
    return matrix[np.arange(shape.lanes)[:, None] % 16, where]


def wmma_case(arch: str, name: str, lanes: int, seed: int) -> None:
    shape, rng = wmma_of(arch, name, lanes), np.random.default_rng(seed)
    a, b = small_numbers(rng, 16, shape.k), small_numbers(rng, 16, shape.k)
    rows, columns = shape.rows(), np.arange(lanes) % 16
    start = rng.integers(-9, 10, rows.shape).astype(np.float64)
    registers = {B: packed(spread(shape, b, False), shape.b), (D if shape.sparse else C): accumulator(shape, start)}
    if shape.sparse:
        positions = kept_positions(rng, 16, shape.k // 4)
        kept = np.arange(shape.k // 4)[:, None] * 4 + positions
        mask = np.zeros_like(a)
        np.put_along_axis(mask, kept.reshape(16, -1), 1, axis=1)
        a = a * mask
        group = shape.where(True)[:, ::4] // 4
        lane = np.arange(lanes)[:, None] % 16
        at = kept[lane, group].reshape(lanes, -1)
        registers |= {A: packed(a[lane, at], shape.a), INDEX: index_of(positions[lane, group])[None]}
    else:
        registers[A] = packed(spread(shape, a, True), shape.a)
    vgprs = run(arch, wmma_text(shape, name), registers, lanes)
    want = start + np.einsum("...k,...k->...", a[rows], b[columns] + 0 * a[rows])
    assert (result_of(shape, vgprs) == want).all(), (name, lanes)


def wmma_text(shape: Wmma, name: str) -> str:
    """With the register counts of wave32, which assembly text has."""
    narrow = Wmma(shape.k, shape.a, shape.b, shape.result, shape.sparse, shape.arch, 32)
    count = {side: narrow.where(side == "a").shape[1] // (2 if shape.sparse and side == "a" else 1) for side in "ab"}
    n = {side: -(-count[side] * shape.bits // 32) for side in "ab"}
    d = 4 if shape.result in ("f16", "bf16") and shape.arch != "gfx1100" else 8
    last = f"v{INDEX}" if shape.sparse else span(C, d)
    signed = " neg_lo:[1,1,0]" if shape.a.startswith("iu") else ""
    return f"{name.lower()} {span(D, d)}, {span(A, n['a'])}, {span(B, n['b'])}, {last}{signed}"


def accumulator(shape: Wmma, values: Array) -> Array:
    """C as registers: RDNA3 has 16-bit ones in the lower half of a register each."""
    if shape.result in ("f16", "bf16") and shape.arch == "gfx1100":
        return np.concatenate([packed(row[:, None], shape.result) for row in values])
    return packed(values.T, shape.result)


def result_of(shape: Wmma, vgprs: Array) -> Array:
    """[element][lane] of D."""
    count = 256 // shape.lanes
    if shape.result in ("f16", "bf16") and shape.arch == "gfx1100":
        return np.stack([unpacked(vgprs[D + r : D + r + 1], shape.result, 1)[:, 0] for r in range(count)])
    n = count * TYPES[shape.result][0] // 32
    return unpacked(vgprs[D : D + n], shape.result, count).T


@pytest.mark.slow
@pytest.mark.parametrize("lanes", [32, 64])
@pytest.mark.parametrize("arch", ["gfx1100", "gfx1201"])
def test_every_wmma_is_a_product_by_its_layout(arch: str, lanes: int) -> None:
    for seed, name in enumerate(matrix_names(arch)):
        wmma_case(arch, name, lanes, seed)


@pytest.mark.parametrize(("arch", "name", "lanes"), [("gfx1201", "V_SWMMAC_I32_16X16X64_IU4", 64)])
def test_a_sample_of_wmma_is_a_product_by_its_layout(arch: str, name: str, lanes: int) -> None:
    wmma_case(arch, name, lanes, 1)


# ---------------------------------------------------------------- dot products of floats


@dataclass(frozen=True)
class Dot:
    """old: the sum is the destination's. kind of A and B, and of the sum."""

    archs: str
    a: str
    b: str
    result: str
    old: bool = False


#: Of gfx1100, gfx1201, gfx942, gfx950 by digit.
DOTS: Mapping[str, Dot] = {
    "v_dot2_f32_f16": Dot("1245", "f16", "f16", "f32"), "v_dot2_f32_bf16": Dot("125", "bf16", "bf16", "f32"),
    "v_dot2_f16_f16": Dot("12", "f16", "f16", "f16"), "v_dot2_bf16_bf16": Dot("12", "bf16", "bf16", "bf16"),
    "v_dot2acc_f32_f16": Dot("1", "f16", "f16", "f32", True), "v_dot2c_f32_f16": Dot("45", "f16", "f16", "f32", True),
    "v_dot2c_f32_bf16": Dot("5", "bf16", "bf16", "f32", True), "v_dot4_f32_fp8_fp8": Dot("2", "fp8", "fp8", "f32"),
    "v_dot4_f32_fp8_bf8": Dot("2", "fp8", "bf8", "f32"), "v_dot4_f32_bf8_fp8": Dot("2", "bf8", "fp8", "f32"),
    "v_dot4_f32_bf8_bf8": Dot("2", "bf8", "bf8", "f32"),
}  # fmt: skip
ARCH_OF = {"1": "gfx1100", "2": "gfx1201", "4": "gfx942", "5": "gfx950"}
ROWS = [(ARCH_OF[digit], name) for name, dot in DOTS.items() for digit in dot.archs]
ONE = ("gfx1201", "v_dot2_bf16_bf16")


@pytest.mark.parametrize(("arch", "name"), [ONE, *(pytest.param(*row, marks=pytest.mark.slow) for row in ROWS if row != ONE)])
def test_dot_products_of_exact_numbers(arch: str, name: str) -> None:
    dot, rng, n = DOTS[name], np.random.default_rng(7), 256
    count = 32 // TYPES[dot.a][0]
    a, b, c = small_numbers(rng, n, count), small_numbers(rng, n, count), small_numbers(rng, n, 1)
    planes = [packed(x, kind)[0] for x, kind in ((a, dot.a), (b, dot.b), (c, dot.result))]
    source = "" if dot.old else ", v2"
    (got,) = sweep(arch, f"v_mov_b32 v{OUT}, v2\n{name} v{OUT}, v0, v1{source}", planes, 1)
    want = (a * b).sum(axis=1) + c[:, 0]
    assert (unpacked(got[None], dot.result, 1)[:, 0] == want).all()


def test_dot_products_in_the_tables_are_all_known() -> None:
    named = {(arch, r.name.lower()) for arch in ARCH_OF.values() for r in arch_of(arch).tables.rows if r.name.startswith("V_DOT")}
    assert {pair for pair in named if re.search(r"_f32_|_f16_|_bf16_", pair[1])} == set(ROWS)
