"""WMMA and SWMMAC: products known from plain matrix arithmetic, by the layouts as the documents state them."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest

from stuntgpu.emu import smallfloat
from stuntgpu.emu import softfloat as sf
from stuntgpu.emu.matrix_layout import bits_of, product
from stuntgpu.emu.memory import AddressSpace
from stuntgpu.emu.native import Native
from stuntgpu.emu.reference import Reference
from stuntgpu.emu.state import WaveFinal, WaveInit
from stuntgpu.isa.asm import assemble
from stuntgpu.isa.semantics import rows
from tests.isa.rows import f16, f32

CODE = 0x10000
TIERS: Mapping[str, Callable[[str], Native | Reference]] = {"reference": Reference, "native": Native}
A, B, C, INDEX = 8, 24, 40, 60
Registers = dict[int, list[int]]


def wave(arch: str, tier: str, text: str, registers: Registers, lanes: int = 32) -> WaveFinal:
    code = assemble(arch, text + "\ns_endpgm")
    memory, space = ctypes.create_string_buffer(code, len(code) + 64), AddressSpace()
    space.map(CODE, len(code) + 64, ctypes.addressof(memory), keep=memory)
    return TIERS[tier](arch).run_wave(space, CODE, WaveInit((1 << lanes) - 1, {}, registers), lanes)


class Fragment:
    """Registers of one operand, filled element by element."""

    def __init__(self, first: int, n: int, bits: int) -> None:
        self.first, self.bits = first, bits
        self.registers: Registers = {first + i: [0] * 32 for i in range(n)}

    def put(self, lane: int, element: int, value: int) -> None:
        at = element * self.bits
        self.registers[self.first + at // 32][lane] |= (value & ((1 << self.bits) - 1)) << at % 32


def numbers(rng: random.Random, rows_: int, columns: int) -> np.ndarray:
    return np.array([[rng.randrange(-4, 5) for _ in range(columns)] for _ in range(rows_)])


def accumulator(final: WaveFinal, n: int, places: Callable[[int, int], tuple[int, int]]) -> np.ndarray:
    """D of f32 or i32, by places(i, j) -> (register, lane)."""
    found = [[final.vgprs[places(i, j)[0]][places(i, j)[1]] for j in range(16)] for i in range(16)]
    return np.array(found, np.uint32)


def as_f32(d: np.ndarray) -> np.ndarray:
    return d.view(np.float32)


@pytest.mark.parametrize("tier", TIERS)
def test_rdna3_lanes_hold_whole_rows_and_deal_out_results(tier: str) -> None:
    """A row and B column lane % 16, all k in the lane; D row 2 * register + lane / 16."""
    rng = random.Random(1)
    a, b = numbers(rng, 16, 16), numbers(rng, 16, 16)
    x, y = Fragment(A, 8, 16), Fragment(B, 8, 16)
    for lane in range(32):
        for k in range(16):
            x.put(lane, k, f16(float(a[lane % 16, k])))
            y.put(lane, k, f16(float(b[k, lane % 16])))
    final = wave("gfx1100", tier, f"v_wmma_f32_16x16x16_f16 v[0:7], v[{A}:{A + 7}], v[{B}:{B + 7}], 1.0",
                 x.registers | y.registers)
    d = accumulator(final, 8, lambda i, j: (i // 2, 16 * (i % 2) + j))
    assert (as_f32(d) == a @ b + 1).all()


def rdna4_row(i: int, j: int) -> tuple[int, int]:
    return i % 8, 16 * (i // 8) + j


@pytest.mark.parametrize("tier", TIERS)
def test_rdna4_halves_of_k_lie_in_sixteen_lanes_each(tier: str) -> None:
    """16-bit elements: k in runs of four to each half of the wave; D row 8 * (lane / 16) + register."""
    rng = random.Random(2)
    a, b, c = numbers(rng, 16, 16), numbers(rng, 16, 16), numbers(rng, 16, 16)
    x, y, z = Fragment(A, 4, 16), Fragment(B, 4, 16), Fragment(C, 8, 32)
    for lane in range(32):
        for e in range(8):
            k = 8 * (e // 4) + 4 * (lane // 16) + e % 4
            x.put(lane, e, f16(float(a[lane % 16, k])))
            y.put(lane, e, f16(float(b[k, lane % 16])))
            z.put(lane, e, f32(float(c[8 * (lane // 16) + e, lane % 16])))
    text = f"v_wmma_f32_16x16x16_f16 v[0:7], v[{A}:{A + 3}], v[{B}:{B + 3}], v[{C}:{C + 7}]"
    final = wave("gfx1201", tier, text, x.registers | y.registers | z.registers)
    assert (as_f32(accumulator(final, 8, rdna4_row)) == a @ b + c).all()
    text += " neg_lo:[1,0,1] neg_hi:[1,0,1]"  # -A, -|C|
    final = wave("gfx1201", tier, text, x.registers | y.registers | z.registers)
    assert (as_f32(accumulator(final, 8, rdna4_row)) == -(a @ b) - abs(c)).all()


@pytest.mark.parametrize("tier", TIERS)
def test_rdna4_packs_two_rows_of_sixteen_bits_into_a_register(tier: str) -> None:
    rng = random.Random(3)
    a, b = numbers(rng, 16, 16), numbers(rng, 16, 16)
    x, y = Fragment(A, 4, 16), Fragment(B, 4, 16)
    for lane in range(32):
        for e in range(8):
            k = 8 * (e // 4) + 4 * (lane // 16) + e % 4
            x.put(lane, e, f16(float(a[lane % 16, k])))
            y.put(lane, e, f16(float(b[k, lane % 16])))
    final = wave("gfx1201", tier, f"v_wmma_f16_16x16x16_f16 v[0:3], v[{A}:{A + 3}], v[{B}:{B + 3}], 1.0",
                 x.registers | y.registers)
    for i in range(16):
        for j in range(16):
            word = final.vgprs[i % 8 // 2][16 * (i // 8) + j]
            assert word >> 16 * (i % 2) & 0xFFFF == f16(float((a @ b)[i, j] + 1))


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("kind", ["fp8", "bf8"])
def test_rdna4_multiplies_eight_bit_floats(kind: str, tier: str) -> None:
    rng, small = random.Random(4), smallfloat.SMALL[kind]
    a, b = numbers(rng, 16, 16), numbers(rng, 16, 16)
    x, y = Fragment(A, 2, 8), Fragment(B, 2, 8)
    for lane in range(32):
        for e in range(8):
            k = 8 * (lane // 16) + e
            x.put(lane, e, smallfloat.narrow(small, f32(float(a[lane % 16, k])), None, False))
            y.put(lane, e, smallfloat.narrow(small, f32(float(b[k, lane % 16])), None, False))
    final = wave("gfx1201", tier, f"v_wmma_f32_16x16x16_{kind}_{kind} v[0:7], v[{A}:{A + 1}], v[{B}:{B + 1}], 0",
                 x.registers | y.registers)
    assert (as_f32(accumulator(final, 8, rdna4_row)) == a @ b).all()


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize(("k_size", "bits"), [(16, 8), (16, 4), (32, 4)])
def test_rdna4_multiplies_integers_signed_by_neg(k_size: int, bits: int, tier: str) -> None:
    rng = random.Random(5)
    a, b = numbers(rng, 16, k_size), abs(numbers(rng, k_size, 16))
    n = k_size // 2 * bits // 32
    x, y = Fragment(A, n, bits), Fragment(B, n, bits)
    for lane in range(32):
        for e in range(k_size // 2):
            k = k_size // 2 * (lane // 16) + e
            x.put(lane, e, int(a[lane % 16, k]))
            y.put(lane, e, int(b[k, lane % 16]))
    sources = [f"v{r}" if n == 1 else f"v[{r}:{r + n - 1}]" for r in (A, B)]
    final = wave("gfx1201", tier, f"v_wmma_i32_16x16x{k_size}_iu{bits} v[0:7], {', '.join(sources)}, 5 neg_lo:[1,0,0]",
                 x.registers | y.registers)
    assert (accumulator(final, 8, rdna4_row).view(np.int32) == a @ b + 5).all()


def sparse(rng: random.Random, k_size: int) -> tuple[np.ndarray, list[list[tuple[int, int]]]]:
    """A with two of each four kept, and which (in ascending order) of every row's groups."""
    a, kept = np.zeros((16, k_size), int), []
    for i in range(16):
        pairs = []
        for group in range(k_size // 4):
            first, second = sorted(rng.sample(range(4), 2))
            for k in (first, second):
                a[i, 4 * group + k] = rng.randrange(-4, 5)
            pairs.append((first, second))
        kept.append(pairs)
    return a, kept


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("key", [0, 1])
def test_rdna4_sparse_products_take_what_the_index_keeps(key: int, tier: str) -> None:
    """f16, K = 32: lanes 16 and up hold k 8..15 and 24..31; four bits of the index for each group of four."""
    rng = random.Random(6)
    b, c = numbers(rng, 32, 16), numbers(rng, 16, 16)
    a, kept = sparse(rng, 32)
    x, y, z, index = Fragment(A, 4, 16), Fragment(B, 8, 16), Fragment(0, 8, 32), Fragment(INDEX, 1, 4)
    for lane in range(32):
        i, upper = lane % 16, lane // 16
        for e in range(16):
            k = 16 * (e // 8) + 8 * upper + e % 8
            y.put(lane, e, f16(float(b[k, i])))
        for q in range(4):
            group = 4 * (q // 2) + 2 * upper + q % 2
            for s, k in enumerate(kept[i][group]):
                x.put(lane, 2 * q + s, f16(float(a[i, 4 * group + k])))
            index.put(lane, q + 4 * key, kept[i][group][0] | kept[i][group][1] << 2)
        for e in range(8):
            z.put(lane, e, f32(float(c[8 * upper + e, i])))
    text = f"v_swmmac_f32_16x16x32_f16 v[0:7], v[{A}:{A + 3}], v[{B}:{B + 7}], v{INDEX} index_key:{key}"
    final = wave("gfx1201", tier, text, x.registers | y.registers | z.registers | index.registers)
    assert (as_f32(accumulator(final, 8, rdna4_row)) == a @ b + c).all()


# ---------------------------------------------------------------- both tiers


def hard(rng: random.Random) -> int:
    return rng.choice((rng.getrandbits(32), 0x3C003C00, 0x7C00FC00, 0x3F803F80, 0x7E007E00, 0x7FC00001, 0x38383838))


@pytest.mark.parametrize("lanes", [32, 64])
@pytest.mark.parametrize("arch", ["gfx1100", "gfx1201"])
def test_tiers_agree_on_any_bits(arch: str, lanes: int) -> None:
    """NaNs, infinities and denormals too; every mnemonic, registers as the layout has them."""
    rng, wrong = random.Random(7), []
    for name in (n for n in rows(arch) if "WMMA" in n):
        p = product(arch, name, lanes)
        text = _text(name, arch)
        registers = {r: [hard(rng) for _ in range(lanes)] for r in range(64)}
        if wave(arch, "native", text, registers, lanes) != wave(arch, "reference", text, registers, lanes):
            wrong.append(f"{text} ({p})")
    assert not wrong


def _text(name: str, arch: str) -> str:
    """With the register counts of wave32, which assembly text has."""
    p = product(arch, name, 32)
    a, b = (1 + max(place.element for place in side) for side in (p.a, p.b))
    counts = [a * bits_of(p.shape.a) // 32, b * bits_of(p.shape.b) // 32]
    d = p.accumulators // (2 if p.packs and p.shape.result in ("f16", "bf16") else 1)
    sides = [_registers(r, n) for r, n in zip((A, B), counts, strict=True)]
    last = f"v{INDEX}" if p.shape.is_sparse else _registers(C, d)
    return f"{name.lower()} {_registers(0, d)}, {', '.join(sides)}, {last}"


def _registers(first: int, n: int) -> str:
    return f"v{first}" if n == 1 else f"v[{first}:{first + n - 1}]"


def test_integer_products_saturate_with_clamp() -> None:
    full: Sequence[int] = [0x7FFFFFFF] * 32
    ones = {r: [0x01010101] * 32 for r in (A, A + 1, B, B + 1)}
    start = {C + i: list(full) for i in range(8)}
    for tier in TIERS:
        for clamp, value in (("", 0x7FFFFFFF + 16), (" clamp", 0x7FFFFFFF)):
            text = f"v_wmma_i32_16x16x16_iu8 v[0:7], v[{A}:{A + 1}], v[{B}:{B + 1}], v[{C}:{C + 7}]{clamp}"
            assert wave("gfx1201", tier, text, ones | start).vgprs[0][0] == value & 0xFFFFFFFF


def test_results_round_once_at_the_end() -> None:
    """The f32 sum 1 + 2 ** -11 ties to even in f16: each step kept more bits."""
    assert sf.convert(sf.F32, sf.F16, f32(1 + 2.0**-11), sf.Env(), sf.Env()) == f16(1.0)
    one, tiny = f16(1.0) | f16(2.0**-6) << 16, f16(1.0) | f16(2.0**-5) << 16
    x = {A: [one] * 32, B: [tiny] * 32} | {r: [0] * 32 for r in (A + 1, A + 2, A + 3, B + 1, B + 2, B + 3)}
    for lane in range(16, 32):
        x[A][lane] = x[B][lane] = 0
    for tier in TIERS:
        final = wave("gfx1201", tier, f"v_wmma_f16_16x16x16_f16 v[0:3], v[{A}:{A + 3}], v[{B}:{B + 3}], 0", x)
        assert final.vgprs[0][0] & 0xFFFF == f16(1.0)
