"""WMMA and SWMMAC of RDNA: shapes by mnemonic, and where each element lies in the registers.

A lane holds elements of one row of A, or of one column of B: number lane % 16. Which k they have is a
matter of the bits of k: each is a bit of the element's number in the lane, or picks among the lanes
that share a row ("e", or "4", "5" for that bit of the lane number). RDNA3 keeps all k in every lane.
Sparse A keeps two of each four neighbouring k: elements 2 q and 2 q + 1 of a lane stand for its q-th
group of four, and two bits of the index register each say which of the group they are.

Source:  README "Hardware facts" of the ISA facts; the vendor's matrix instruction calculator for RDNA4
         (order of k, wave64, indices).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from stuntgpu.isa.arch import arch as arch_of
from stuntgpu.isa.errors import Unmodelled

SIZE = 16  # rows of A, columns of B

_NAME = re.compile(r"V_S?WMMAC?_(F32|F16|BF16|I32)_16X16X(\d+)_(BF16|F16|IU[48]|[FB][FP]8_[FB][FP]8)")
_BITS = {"f16": 16, "bf16": 16, "fp8": 8, "bf8": 8, "iu8": 8, "iu4": 4}

#: RDNA4: (is sparse, bits of an element, K, lanes) -> role of each bit of k, lowest first.
_ROLES: Mapping[tuple[bool, int, int, int], str] = {
    (False, 16, 16, 32): "ee4e", (False, 16, 16, 64): "ee45",
    (False, 8, 16, 32): "eee4", (False, 8, 16, 64): "ee54",
    (False, 4, 16, 32): "eee4", (False, 4, 16, 64): "eee4",
    (False, 4, 32, 32): "eeee4", (False, 4, 32, 64): "eee54",
    (True, 16, 32, 32): "eee4e", (True, 16, 32, 64): "eee45",
    (True, 8, 32, 32): "eeee4", (True, 8, 32, 64): "eee54",
    (True, 4, 32, 32): "eeee4", (True, 4, 32, 64): "eee54",
    (True, 4, 64, 32): "eeeee4", (True, 4, 64, 64): "eeee54",
}  # fmt: skip
#: A and its index, where they differ from B: upper lanes of a wave64 hold none.
_ROLES_OF_A: Mapping[tuple[bool, int, int, int], str] = {(True, 4, 32, 64): "eeee4"}


@dataclass(frozen=True, slots=True)
class Shape:
    """a, b: element formats ("iu8", "iu4": integers); result: "f32", "f16", "bf16", "i32"."""

    k: int
    a: str
    b: str
    result: str
    is_sparse: bool

    @property
    def is_integer(self) -> bool:
        return self.result == "i32"


@dataclass(frozen=True, slots=True)
class Place:
    """lane: of row or column 0; element: number inside the lane."""

    lane: int
    element: int


@dataclass(frozen=True, slots=True)
class Product:
    """One instruction at one wave size.

    a, b        place of each k; of sparse A each kept element in turn, two a group of four.
    index       sparse: (lane of row 0, lowest bit) of the position of each kept element, the part aside.
    parts       sparse: sets of positions in the index register; OP_SEL says which is used.
    rows        (element number in the lane, lane of column 0) of each row of C and D.
    packs       two 16-bit results share a register; else they lie in one half of a register each.
    """

    shape: Shape
    lanes: int
    a: tuple[Place, ...]
    b: tuple[Place, ...]
    index: tuple[tuple[int, int], ...]
    parts: int
    rows: tuple[tuple[int, int], ...]
    packs: bool

    @property
    def accumulators(self) -> int:
        """Elements of C and D in a lane."""
        return SIZE * SIZE // self.lanes

    def row_of(self, element: int, lane: int) -> int:
        """Row of an element of C or D."""
        return self.rows.index((element, lane - lane % SIZE))


def bits_of(element: str) -> int:
    return _BITS[element]


def shape_of(arch: str, name: str) -> Shape:
    """From the mnemonic. Raises Unmodelled."""
    m = _NAME.fullmatch(name)
    if m is None:
        raise Unmodelled(arch, name, "emu/matrix_layout.py")
    result, k, kinds = m.groups()
    a, _, b = kinds.lower().partition("_")
    return Shape(int(k), a, b or a, result.lower(), name.startswith("V_SWMMAC"))


@lru_cache(maxsize=256)
def product(arch: str, name: str, lanes: int) -> Product:
    """Where everything of a matrix instruction lies. Raises Unmodelled."""
    shape = shape_of(arch, name)
    if arch_of(arch).dialect == "gfx11":
        whole = tuple(Place(0, k) for k in range(shape.k))
        groups = lanes // SIZE
        rows = tuple((i // groups, i % groups * SIZE) for i in range(SIZE))
        return Product(shape, lanes, whole, whole, (), 0, rows, False)
    key = (shape.is_sparse, bits_of(shape.a), shape.k, lanes)
    b = tuple(_place(k, _ROLES[key]) for k in range(shape.k))
    a = tuple(_place(k, _ROLES_OF_A.get(key, _ROLES[key])) for k in range(shape.k))
    rows = tuple(_row(i, lanes) for i in range(SIZE))
    if not shape.is_sparse:
        return Product(shape, lanes, a, b, (), 0, rows, True)
    kept = tuple(Place(a[k].lane, a[k].element // 4 * 2 + s) for k in range(0, shape.k, 4) for s in (0, 1))
    width = 2 * (1 + max(p.element for p in kept))
    return Product(shape, lanes, kept, b, tuple((p.lane, 2 * p.element) for p in kept), 32 // width, rows, True)


def _place(k: int, roles: str) -> Place:
    lane = element = at = 0
    for i, role in enumerate(roles):
        bit = k >> i & 1
        if role == "e":
            element, at = element | bit << at, at + 1
        else:
            lane |= bit << int(role)
    return Place(lane, element)


def _row(i: int, lanes: int) -> tuple[int, int]:
    """RDNA4: eight rows to a group of sixteen lanes; in wave64 four of them to one further on."""
    if lanes == 32:
        return i % 8, SIZE * (i // 8)
    return i % 4, SIZE * (i // 8) + 2 * SIZE * (i // 4 % 2)
