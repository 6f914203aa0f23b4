"""WMMA for the reference, by the documented register layouts.

The rule both tiers follow: element D[i][j] starts as C[i][j] and takes the products in ascending k.
Float kinds work in f32: inputs are widened exactly, each step is one fused multiply-add rounded to
nearest even, denormals are kept whatever MODE says; an f16 or bf16 result is rounded once at the end.
Integer kinds sum exactly, then saturate (CLAMP) or wrap to 32 bits. EXEC is ignored.

Layout (RDNA3): A row = lane % 16, B column = lane % 16, all 16 k inside the lane, low bits first;
lanes 16 and up repeat them. D and C: column = lane % 16, row = vgpr * (lanes / 16) + lane / 16.
A 16-bit C or D lies in the low half of its registers, OP_SEL[2] set: in the high half.

Source:  README "Hardware facts" of the ISA facts (WMMA RDNA3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from stuntgpu.emu import softfloat as sf
from stuntgpu.emu.wave import Wave
from stuntgpu.isa.errors import Bug, Unmodelled
from stuntgpu.isa.inst import Inst, Kind, Operand

M, N, K = 16, 16, 16
_KEEP = sf.Mode(sf.Env(), sf.Env(), sf.Env(), sf.Env())


@dataclass(frozen=True, slots=True)
class Shape:
    """Element formats of a WMMA: bits of A/B elements; float formats by name, "" for integers."""

    element_bits: int
    element: str
    result: str


#: Mnemonic -> shape.
SHAPES: Mapping[str, Shape] = {
    "V_WMMA_F32_16X16X16_F16": Shape(16, "f16", "f32"),
    "V_WMMA_F32_16X16X16_BF16": Shape(16, "bf16", "f32"),
    "V_WMMA_F16_16X16X16_F16": Shape(16, "f16", "f16"),
    "V_WMMA_BF16_16X16X16_BF16": Shape(16, "bf16", "bf16"),
    "V_WMMA_I32_16X16X16_IU8": Shape(8, "", ""),
    "V_WMMA_I32_16X16X16_IU4": Shape(4, "", ""),
}


def wmma(w: Wave, inst: Inst, operands: tuple[Operand, ...]) -> None:
    """Execute one WMMA: reads everything, then writes D."""
    shape = SHAPES.get(inst.name)
    if shape is None:
        raise Unmodelled(inst.arch, inst.name, "emu/matrix.py")
    a, b, c, d = (_of(operands, role) for role in ("S0", "S1", "S2", "D0"))
    rows = [_elements(w, a, shape, lane) for lane in range(M)]
    columns = [_elements(w, b, shape, lane) for lane in range(N)]
    high = bool(shape.result in ("f16", "bf16") and inst.fields["OP_SEL"] & 4)
    start = [[_start(w, c, shape, i, j, high) for j in range(N)] for i in range(M)]
    cell = _float_cell(shape) if shape.result else _integer_cell(shape, inst.fields)
    done = [[cell(rows[i], columns[j], start[i][j]) for j in range(N)] for i in range(M)]
    for i in range(M):
        for j in range(N):
            _store(w, d, shape, (i, j), done[i][j], high)


def _of(operands: tuple[Operand, ...], role: str) -> Operand:
    for o in operands:
        if o.role == role:
            return o
    raise Bug(f"WMMA without operand {role}")


def _elements(w: Wave, op: Operand, shape: Shape, lane: int) -> list[int]:
    """The 16 k elements of one row of A or column of B, NEG (even k) and NEG_HI (odd k) applied to floats."""
    per_register = 32 // shape.element_bits
    mask = (1 << shape.element_bits) - 1
    values = [w.vgprs[op.reg + k // per_register][lane] >> k % per_register * shape.element_bits & mask for k in range(K)]
    if not shape.element:
        return values
    f = sf.FORMATS[shape.element]
    flips = (f.sign if op.neg else 0, f.sign if op.neg_hi else 0)
    return [sf.convert(f, sf.F32, v ^ flips[k % 2], sf.Env(), sf.Env()) for k, v in enumerate(values)]


def _place(w: Wave, i: int, j: int) -> tuple[int, int]:
    """(register, lane) of element (i, j) of C or D."""
    groups = w.lanes // 16
    return i // groups, i % groups * 16 + j


def _start(w: Wave, op: Operand, shape: Shape, i: int, j: int, high: bool) -> int:
    """C[i][j]; floats widened to f32, NEG_HI = absolute value, NEG = negated."""
    if op.kind is Kind.CONST:
        word, high = op.value, False
    else:
        register, lane = _place(w, i, j)
        word = w.vgprs[op.reg + register][lane]
    if not shape.result:
        return word & 0xFFFF_FFFF
    f = sf.FORMATS[shape.result]
    value = word >> (16 if high else 0) & ((1 << f.width) - 1)
    value = value & f.abs_mask if op.neg_hi else value
    value = value ^ f.sign if op.neg else value
    return value if f is sf.F32 else sf.convert(f, sf.F32, value, sf.Env(), sf.Env())


Cell = Callable[[list[int], list[int], int], int]


def _float_cell(shape: Shape) -> Cell:
    result = sf.FORMATS[shape.result]

    def cell(row: list[int], column: list[int], start: int) -> int:
        total = start
        for x, y in zip(row, column, strict=True):
            total = sf.fma(sf.F32, x, y, total, _KEEP.f32)
        return total if result is sf.F32 else sf.convert(sf.F32, result, total, _KEEP.f32, sf.Env())

    return cell


def _integer_cell(shape: Shape, fields: Mapping[str, int]) -> Cell:
    """NEG[0], NEG[1]: A, B hold signed elements."""
    bits, neg, clamp = shape.element_bits, fields["NEG"], bool(fields["CLAMP"])

    def value(x: int, signed: int) -> int:
        return x - (1 << bits) if signed and x >> (bits - 1) else x

    def cell(row: list[int], column: list[int], start: int) -> int:
        products = (value(x, neg & 1) * value(y, neg & 2) for x, y in zip(row, column, strict=True))
        total = (start ^ 1 << 31) - (1 << 31) + sum(products)
        if clamp:
            total = max(-(1 << 31), min((1 << 31) - 1, total))
        return total & 0xFFFF_FFFF

    return cell


def _store(w: Wave, op: Operand, shape: Shape, at: tuple[int, int], value: int, high: bool) -> None:
    register, lane = _place(w, *at)
    column = w.vgprs[op.reg + register]
    if shape.result in ("f16", "bf16"):
        column[lane] = column[lane] & 0xFFFF | value << 16 if high else column[lane] & 0xFFFF_0000 | value
    else:
        column[lane] = value
