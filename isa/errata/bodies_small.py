"""Replacement bodies about 8-bit floats and transposing loads; see bodies.py."""

from __future__ import annotations

HIP = "the software conversions of HIP's hip_fp8 header, which hardware agrees with"

#: What a transposing load does, and how well that is known.
TRANSPOSE = (
    "sixteen lanes load n elements each: a matrix of n rows and 16 columns, row after row; lane i of them gets column i."
    " CDNA4's manual says so for LDS (a lane group of 16 holds K rows of M values); taken to be the same elsewhere"
)


def byte_of(source: str, selection: str) -> str:
    """8 bits of a 32-bit source by a 2-bit selection."""
    return f"(extract:8 {source} (shl (zext:32 {selection}) 3:32))"


def to_f32(f: str, selection: str) -> str:
    return f"(set D0 ({f}_to_f32 {byte_of('S0:32', selection)}))"


def pair_to_f32(f: str, selection: str = "") -> str:
    """Two 8-bit floats: of a 16-bit source, or of the half of a 32-bit one that a bit selects."""
    half = f"(extract:16 S0:32 (shl (zext:32 {selection}) 4:32))" if selection else "S0:16"
    return f"(set pair {half}) (set D0 (concat:64 ({f}_to_f32 (extract:8 pair:16 8:32)) ({f}_to_f32 (trunc:8 pair:16))))"


def pair_from_f32(f: str) -> str:
    return f"(set D0 (concat:16 (f32_to_{f} S1:32) (f32_to_{f} S0:32)))"


def stochastic_byte(f: str, selection: str) -> str:
    """One byte of D0, the others kept; S1 are the random bits."""
    return f"(set D0 (insert D0:32 (shl (zext:32 {selection}) 3:32) (f32_to_{f}_sr S0:32 S1:32)))"


def dot4(a: str, b: str) -> str:
    total = "S2:32"
    for lo in (0, 8, 16, 24):
        x, y = (f"({f}_to_f32 (extract:8 {s}:32 {lo}:32))" for f, s in ((a, "S0"), (b, "S1")))
        total = f"(fadd.f32 {total} (fmul.f32 {x} {y}))"
    return f"(set D0 {total})"


def transpose_load(space: str, element: int, bits: int, target: str, lanes: int = 16) -> str:
    """See TRANSPOSE; `element` and `bits`, what one lane loads, in bits; `lanes` share a matrix."""
    address = "ADDR:32" if space == "LDS" else "ADDR:64"
    return f"(set {target} (load:{bits} {space} {address})) (do transpose {element}:32 {lanes}:32)"
