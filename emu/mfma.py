"""MFMA and SMFMAC of CDNA for the reference, by the documented register layouts.

The rule: element D[i][j] starts as C[i][j] and takes the products in ascending k. f32 results: inputs are
widened exactly, each step is one fused multiply-add rounded to nearest even; of MODE only the denormals
of f32 inputs are looked at, and FP16_OVFL by F8F6F4, whose results then stay finite. f64 likewise in f64;
integers wrap to 32 bits. XF32 rounds its inputs to ten fraction bits (nearest even) first. EXEC is ignored.

Layout: an instruction has `blocks` products of M x K by K x N, M = N. Lane L holds row (of A) or column
(of B) L % M; L / M counts blocks first, then groups of k. What 128 bits of a lane hold are consecutive k, group
after group, then the next 128 bits of all groups; elements below eight bits are consecutive in the whole lane.
Element (i, j) of D and C lies where `Shape.place` says.
Sparse A (SMFMAC) keeps two of four neighbouring k; two bits of SRC2 for each kept element say which.
F8F6F4: formats by CBSZ and BLGP; a scaled product is times 2 ** (sa - 127) * 2 ** (sb - 127): one scale byte for 32
neighbouring k, in the lane of that row and group; a scale of 255 is no number.

Source:  README "Hardware facts" of the ISA facts (MFMA layouts, MFMA_SCALE); the manuals' chapters on matrix
         arithmetic for denormals, overflow, scales and sparse layouts; the ROCm blog "Matrix Core Programming on
         AMD CDNA3 and CDNA4" for the layout of F8; the vendor's matrix instruction calculator for broadcasts (CBSZ, ABID, BLGP), indices of SMFMAC and the 4x4x4 F64 layout; the XF32 type
         of its rocWMMA library for the rounding.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from stuntgpu.emu import softfloat as sf
from stuntgpu.emu.smallfloat import SMALL, widen
from stuntgpu.emu.state import following, register
from stuntgpu.emu.wave import Wave
from stuntgpu.isa.arch import ARCHES
from stuntgpu.isa.errors import Unmodelled
from stuntgpu.isa.inst import Inst, Kind, Operand

ENCODINGS = ("VOP3P_MFMA", "VOP3PX2")
LANES = 64
M32 = 0xFFFF_FFFF
_KEEP = sf.Env()

_NAME = re.compile(
    r"V_S?MFMAC?_(?:SCALE_)?(F32|I32|F64)_(\d+)X\d+X(\d+)(?:_(\d+)B)?_(XF32|F32|F64|B?F16|I8|F8F6F4|[BF][FP]8_[BF][FP]8)"
)
#: Bits of an element in a register.
_BITS: Mapping[str, int] = {
    "f32": 32, "xf32": 32, "f64": 64, "f16": 16, "bf16": 16, "i8": 8, "fp8": 8, "bf8": 8, "fp6": 6, "bf6": 6, "fp4": 4,
}  # fmt: skip
#: CBSZ and BLGP of F8F6F4.
FIELD_FORMATS = ("fp8", "bf8", "fp6", "bf6", "fp4")

Matrix = list[list[int]]


@dataclass(frozen=True, slots=True)
class Shape:
    """size: M = N; k: of one block; a, b: element formats, "" where fields choose; result: "f32", "i32", "f64"."""

    size: int
    k: int
    blocks: int
    a: str
    b: str
    result: str
    sparse: bool

    @property
    def groups(self) -> int:
        """Groups of k."""
        return LANES // self.size // self.blocks

    @property
    def per_lane(self) -> int:
        """Consecutive k of one lane."""
        return self.k // self.groups

    def lane(self, block: int, row: int, group: int) -> int:
        """Lane of a row of A or column of B."""
        return row + self.size * (block + self.blocks * group)

    def held(self, k: int, bits: int) -> tuple[int, int]:
        """(group, element inside the lane) of a k, for dense elements of `bits`."""
        chunk = self.per_lane if bits < 8 else min(self.per_lane, 128 // bits)
        number, rest = divmod(k, chunk * self.groups)
        group, inside = divmod(rest, chunk)
        return group, number * chunk + inside

    def place(self, block: int, i: int, j: int) -> tuple[int, int]:
        """(element number inside the lane, lane) of D[i][j]."""
        if self.result == "f64":
            return (i // 4, 16 * (i % 4) + j) if self.size == 16 else (0, j + 4 * block + 16 * i)
        if self.size == 32:
            return 16 * block + 4 * (i // 8) + i % 4, 32 * (i // 4 % 2) + j
        if self.size == 16:
            return 4 * block + i % 4, 16 * (i // 4) + j
        return i, 4 * block + j


@lru_cache(maxsize=256)
def shape_of(arch: str, name: str) -> Shape:
    """From the mnemonic. Raises Unmodelled."""
    m = _NAME.fullmatch(name)
    if m is None:
        raise Unmodelled(arch, name, "emu/mfma.py")
    result, size, k, blocks, kinds = m.groups()
    kinds = "" if kinds == "F8F6F4" else kinds.lower()
    a, _, b = kinds.partition("_")
    return Shape(int(size), int(k), int(blocks or 1), a, b or a, result.lower(), name.startswith("V_SMFMAC"))


def mfma(w: Wave, inst: Inst, operands: tuple[Operand, ...]) -> None:
    """Execute one MFMA or SMFMAC: reads everything, then writes D."""
    shape = shape_of(inst.arch, inst.name)
    role = {o.role: o for o in operands}
    a, b = _formats(inst, shape)
    accumulator = role["D0"] if shape.sparse else role["S2"]
    kept = shape.per_lane // 2 if shape.sparse else shape.per_lane
    source_a = _lanes(w, inst, role["S0"], a, kept)
    source_b = _lanes(w, inst, role["S1"], b, shape.per_lane)
    source_b = [source_b[i] for i in _pattern(inst, shape)]
    scales = [_scales(w, inst, role.get(f"SCALE{i}"), i) for i in (0, 1)]
    env = _KEEP if shape.a else sf.Env(saturate=w.mode.f16.saturate)
    done = []
    for block, i, j in _cells(shape):
        x, from_block = _start(w, accumulator, shape, block, i, j), _broadcast(inst, shape, block)
        for k, group, e in _terms(w, inst, shape, role, i, _BITS[a]):
            of_b, f = shape.held(k, _BITS[b])
            scaled = k // shape.per_lane
            power = scales[0][shape.lane(block, i, scaled)], scales[1][shape.lane(block, j, scaled)]
            first, second = source_a[shape.lane(from_block, i, group)][e], source_b[shape.lane(block, j, of_b)][f]
            x = _step(shape, first, second, x, power, env)
        done.append((shape.place(block, i, j), x))
    for at, x in done:
        _store(w, role["D0"], shape, at, x)


def _cells(shape: Shape) -> Iterator[tuple[int, int, int]]:
    return (
        (block, i, j) for block in range(shape.blocks) for i in range(shape.size) for j in range(shape.size)
    )


def _terms(w: Wave, inst: Inst, shape: Shape, role: Mapping[str, Operand], i: int, bits: int) -> Iterator[tuple[int, int, int]]:
    """(k, group, element) of what row i of A holds, in ascending k."""
    if not shape.sparse:
        yield from ((k, *shape.held(k, bits)) for k in range(shape.k))
        return
    for group in range(shape.groups):
        positions = w.vgprs[register(role["S2"])][shape.lane(0, i, group)] >> _index_set(inst, shape)
        for e in range(shape.per_lane // 2):
            yield group * shape.per_lane + 4 * (e // 2) + (positions >> 2 * e & 3), group, e


# ---------------------------------------------------------------- fields


def _formats(inst: Inst, shape: Shape) -> tuple[str, str]:
    if shape.a:
        return shape.a, shape.b
    a, b = inst.fields["CBSZ"], inst.fields["BLGP"]
    if max(a, b) >= len(FIELD_FORMATS):
        raise Unmodelled(inst.arch, f"{inst.name} with format {max(a, b)}", "emu/mfma.py")
    return FIELD_FORMATS[a], FIELD_FORMATS[b]


def _broadcast(inst: Inst, shape: Shape, block: int) -> int:
    """CBSZ: the block whose A is used; 2 ** CBSZ blocks, at most all of them, share that of number ABID among them."""
    if shape.sparse or not shape.a or shape.result == "f64":
        return block
    size = min(1 << inst.fields["CBSZ"], shape.blocks)
    return block if size == 1 else block // size * size + inst.fields["ABID"] % size


def _pattern(inst: Inst, shape: Shape) -> Sequence[int]:
    """BLGP: the lane whose B each lane uses."""
    lanes = range(LANES)
    code = inst.fields["BLGP"]
    if shape.sparse or not shape.a or shape.result == "f64" or not code:
        return lanes
    if code < 3:  # one half for both
        return [32 * (code - 1) + lane % 32 for lane in lanes]
    if code == 3:
        return [(lane + 16) % LANES for lane in lanes]
    return [16 * (code - 4) + lane % 16 for lane in lanes]


def _index_set(inst: Inst, shape: Shape) -> int:
    """Lowest bit of the positions of SMFMAC: with CBSZ = 0, ABID picks a set where one register has several."""
    bits = shape.per_lane  # two for each kept element
    return 0 if inst.fields["CBSZ"] else bits * inst.fields["ABID"] % 32


def _scales(w: Wave, inst: Inst, op: Operand | None, i: int) -> list[int]:
    """Power of two by lane; 128 stands for no number. The byte is that of OP_SEL[i] and OP_SEL_HI[i]."""
    if op is None:
        return [0] * LANES
    byte = inst.fields["OP_SEL"] >> i & 1 | (inst.fields["OP_SEL_HI"] >> i & 1) << 1
    if op.kind in (Kind.VGPR, Kind.AGPR):
        words: Sequence[int] = w.vgprs[register(op)]
    else:
        words = [op.value if op.kind is Kind.CONST else w.read_scalar(op.reg, 1)] * LANES
    return [(word >> 8 * byte & 0xFF) - 127 for word in words]


# ---------------------------------------------------------------- elements


def _lanes(w: Wave, inst: Inst, op: Operand, name: str, count: int) -> Matrix:
    """The elements of every lane, floats widened to the type of the sum, NEG applied."""
    bits = _BITS[name]
    convert, mask = _converter(inst, op, name, w.mode.f32.flush_in), (1 << bits) - 1
    n = -(-bits * count // 32)
    columns = [w.vgprs[following(register(op), r)] for r in range(n)]
    out = []
    for lane in range(LANES):
        whole = sum(column[lane] << 32 * r for r, column in enumerate(columns))
        out.append([convert(whole >> bits * e & mask) for e in range(count)])
    return out


def _converter(inst: Inst, op: Operand, name: str, flush: bool) -> Callable[[int], int]:
    if name == "f64":
        flip = sf.F64.sign if op.neg else 0
        return lambda v: v ^ flip
    if name == "i8":
        return lambda v: (v ^ 0x80) - 0x80
    if name == "xf32":
        return _xf32
    if name == "f32":
        return lambda v: sf.flushed(sf.F32, v, flush)
    if name in ("f16", "bf16"):
        f = sf.FORMATS[name]
        return lambda v: sf.convert(f, sf.F32, v, _KEEP, _KEEP)
    small = SMALL[name + ARCHES[inst.arch].fp8 if name in ("fp8", "bf8") else name]
    return lambda v: widen(small, v)


def _xf32(v: int) -> int:
    """f32 rounded to ten fraction bits; no number stays one."""
    if v & sf.F32.inf == sf.F32.inf:
        return v & ~0x1FFF | (0x2000 if v & 0x1FFF else 0)
    return v + 0xFFF + (v >> 13 & 1) & ~0x1FFF & M32


# ---------------------------------------------------------------- sums


def _start(w: Wave, op: Operand, shape: Shape, block: int, i: int, j: int) -> int:
    element, lane = shape.place(block, i, j)
    flip = sf.F64.sign if op.neg and shape.result == "f64" else 0
    words = 2 if shape.result == "f64" else 1
    if op.kind is Kind.CONST:
        return op.value & ((1 << 32 * words) - 1) ^ flip
    if op.kind not in (Kind.VGPR, Kind.AGPR):
        return w.read_scalar(op.reg, words) ^ flip
    value = sum(w.vgprs[following(register(op), words * element + r)][lane] << 32 * r for r in range(words))
    return value ^ flip


def _step(shape: Shape, x: int, y: int, total: int, power: tuple[int, int], env: sf.Env) -> int:
    if shape.result == "i32":
        return total + x * y & M32
    if shape.result == "f64":
        return sf.fma(sf.F64, x, y, total, _KEEP)
    if 128 in power:
        return sf.F32.nan
    return sf.fma(sf.F32, x, y, total, env) if power == (0, 0) else scaled_fma(x, y, total, sum(power), env)


def scaled_fma(x: int, y: int, total: int, power: int, env: sf.Env = _KEEP) -> int:
    """x * y * 2 ** power + total in f32, rounded once."""
    finite = all(v & sf.F32.inf != sf.F32.inf for v in (x, y, total))
    (mx, ex), (my, ey), (mt, et) = (sf.signed(sf.F32, v) for v in (x, y, total))
    if not finite or not mx * my:
        return sf.fma(sf.F32, x, y, total, env)
    exponent = ex + ey + power
    low = min(exponent, et)
    return sf.rounded_signed(sf.F32, (mx * my << exponent - low) + (mt << et - low), low, env)


def _store(w: Wave, op: Operand, shape: Shape, at: tuple[int, int], value: int) -> None:
    element, lane = at
    words = 2 if shape.result == "f64" else 1
    for r in range(words):
        w.vgprs[following(register(op), words * element + r)][lane] = value >> 32 * r & M32
