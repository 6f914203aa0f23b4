"""WMMA and SWMMAC for the reference, by the documented register layouts (matrix_layout.py).

The rule both tiers follow: element D[i][j] starts as C[i][j] and takes the products in ascending k.
Float kinds work in f32: inputs are widened exactly, each step is one fused multiply-add rounded to
nearest even, denormals are kept whatever MODE says; an f16 or bf16 result is rounded once at the end.
Integer kinds sum exactly, then saturate (CLAMP) or wrap to 32 bits. EXEC is ignored. What a sparse A
does not keep takes no part. NEG and NEG_HI negate the low and the high halves of registers of 16-bit A
and B; of C they are sign and absolute value.

A 16-bit C or D lies two to a register, or in the low half of its registers, OP_SEL[2] set: in the high half.

Source:  README "Hardware facts" of the ISA facts (WMMA); the vendor's matrix instruction calculator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from stuntgpu.emu import softfloat as sf
from stuntgpu.emu.matrix_layout import SIZE, Place, Product, bits_of, product
from stuntgpu.emu.smallfloat import SMALL, widen
from stuntgpu.emu.wave import Wave
from stuntgpu.isa.errors import Bug
from stuntgpu.isa.inst import Inst, Kind, Operand

_KEEP = sf.Mode(sf.Env(), sf.Env(), sf.Env(), sf.Env())
M32 = 0xFFFF_FFFF

Terms = list[tuple[int, int]]  # (k, value) of one row of A


def wmma(w: Wave, inst: Inst, operands: tuple[Operand, ...]) -> None:
    """Execute one WMMA or SWMMAC: reads everything, then writes D."""
    p = product(inst.arch, inst.name, w.lanes)
    a, b, d = (_of(operands, role) for role in ("S0", "S1", "D0"))
    c = d if p.shape.is_sparse else _of(operands, "S2")
    rows = [_row(w, p, a, operands, inst, i) for i in range(SIZE)]
    columns = [[_element(w, b, p.shape.b, place, j) for place in p.b] for j in range(SIZE)]
    high = not p.packs and p.shape.result in ("f16", "bf16") and bool(inst.fields["OP_SEL"] & 4)
    start = [[_start(w, p, c, i, j, high) for j in range(SIZE)] for i in range(SIZE)]
    cell = _integer_cell(p, inst.fields) if p.shape.is_integer else _float_cell(p)
    done = [[cell(rows[i], columns[j], start[i][j]) for j in range(SIZE)] for i in range(SIZE)]
    for i in range(SIZE):
        for j in range(SIZE):
            _store(w, p, d, (i, j), done[i][j], high)


def _of(operands: tuple[Operand, ...], role: str) -> Operand:
    for o in operands:
        if o.role == role:
            return o
    raise Bug(f"matrix instruction without operand {role}")


# ---------------------------------------------------------------- operands


def _row(w: Wave, p: Product, a: Operand, operands: tuple[Operand, ...], inst: Inst, i: int) -> Terms:
    """The elements of a row of A with the k they stand for."""
    values = [_element(w, a, p.shape.a, place, i) for place in p.a]
    if not p.shape.is_sparse:
        return list(enumerate(values))
    part = inst.fields["OP_SEL"] % p.parts * (32 // p.parts)
    positions = w.vgprs[_of(operands, "S2").reg]
    which = (positions[lane + i] >> (at + part) & 3 for lane, at in p.index)
    return [(t // 2 * 4 + k, value) for (t, value), k in zip(enumerate(values), which, strict=True)]


def _element(w: Wave, op: Operand, element: str, place: Place, number: int) -> int:
    """One element of row or column `number`: f32 for floats, its bits for integers."""
    bits = bits_of(element)
    per_register = 32 // bits
    word = w.vgprs[op.reg + place.element // per_register][place.lane + number]
    value = word >> place.element % per_register * bits & ((1 << bits) - 1)
    if element in SMALL:
        return widen(SMALL[element], value)
    if bits < 16 or element not in sf.FORMATS:
        return value
    f = sf.FORMATS[element]
    flip = f.sign if (op.neg_hi if place.element % 2 else op.neg) else 0
    return sf.convert(f, sf.F32, value ^ flip, sf.Env(), sf.Env())


def _register(p: Product, i: int, j: int, high: bool) -> tuple[int, int, int]:
    """(register, lane, lowest bit) of element (i, j) of C or D."""
    number, lane = p.rows[i]
    if p.packs and p.shape.result in ("f16", "bf16"):
        return number // 2, lane + j, 16 * (number % 2)
    return number, lane + j, 16 * high


def _start(w: Wave, p: Product, op: Operand, i: int, j: int, high: bool) -> int:
    """C[i][j]; floats widened to f32, NEG_HI = absolute value, NEG = negated."""
    register, lane, at = _register(p, i, j, high)
    if op.kind is Kind.VGPR:
        word = w.vgprs[op.reg + register][lane] >> at
    else:
        word = op.value if op.kind is Kind.CONST else w.read_scalar(op.reg, 1)
    if p.shape.is_integer:
        return word & M32
    f = sf.FORMATS[p.shape.result]
    value = word & ((1 << f.width) - 1)
    if not p.shape.is_sparse:
        value = value & f.abs_mask if op.neg_hi else value
        value = value ^ f.sign if op.neg else value
    return value if f is sf.F32 else sf.convert(f, sf.F32, value, sf.Env(), sf.Env())


# ---------------------------------------------------------------- the product

Cell = Callable[[Terms, list[int], int], int]


def _float_cell(p: Product) -> Cell:
    result = sf.FORMATS[p.shape.result]

    def cell(row: Terms, column: list[int], start: int) -> int:
        total = start
        for k, x in row:
            total = sf.fma(sf.F32, x, column[k], total, _KEEP.f32)
        return total if result is sf.F32 else sf.convert(sf.F32, result, total, _KEEP.f32, sf.Env())

    return cell


def _integer_cell(p: Product, fields: Mapping[str, int]) -> Cell:
    """NEG[0], NEG[1]: A, B hold signed elements."""
    bits, neg, clamp = bits_of(p.shape.a), fields["NEG"], bool(fields["CLAMP"])

    def value(x: int, signed: int) -> int:
        return x - (1 << bits) if signed and x >> (bits - 1) else x

    def cell(row: Terms, column: list[int], start: int) -> int:
        products = (value(x, neg & 1) * value(column[k], neg & 2) for k, x in row)
        total = (start ^ 1 << 31) - (1 << 31) + sum(products)
        if clamp:
            total = max(-(1 << 31), min((1 << 31) - 1, total))
        return total & M32

    return cell


def _store(w: Wave, p: Product, op: Operand, at: tuple[int, int], value: int, high: bool) -> None:
    register, lane, low = _register(p, *at, high)
    column = w.vgprs[op.reg + register]
    if p.shape.result in ("f16", "bf16"):
        column[lane] = column[lane] & ~(0xFFFF << low) & M32 | value << low
    else:
        column[lane] = value
