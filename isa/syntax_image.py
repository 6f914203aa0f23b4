"""How many registers the data and the address of an image instruction take."""

from __future__ import annotations

#: Dimension names by code, with the coordinates and gradient components each takes.
DIMENSIONS = (
    ("1D", 1, 2), ("2D", 2, 4), ("3D", 3, 6), ("CUBE", 3, 4),
    ("1D_ARRAY", 2, 2), ("2D_ARRAY", 3, 4), ("2D_MSAA", 3, 4), ("2D_MSAA_ARRAY", 4, 4),
)  # fmt: skip


def image_address_registers(name: str, dim: int, a16: int) -> int:
    """VGPRs the address of an image instruction takes: extra arguments (offset, bias, compare),
    gradients, coordinates with LOD or clamp; with A16 the coordinates are packed in pairs."""
    if "_BVH" in name:
        return (9 if a16 else 12) if "BVH64" in name else (8 if a16 else 11)
    words = set(name.split("_"))
    _, coordinates, gradients = DIMENSIONS[dim]
    extra = len(words & {"O", "B", "C"})
    parts = 0 if "RESINFO" in name else coordinates
    parts += bool(words & {"L", "CL", "MIP"}) or "RESINFO" in name
    total = extra + ((parts + 1) // 2 if a16 else parts)
    if "D" in words:
        total += 2 * ((gradients // 2 + 1) // 2) if "G16" in words else gradients
    return total


def image_data_registers(name: str, dmask: int, d16: int, tfe: int) -> int:
    """VGPRs of data: one per bit of DMASK (gathers always four), half of that with D16, and the
    status word of TFE."""
    if "BVH_DUAL" in name or "BVH8" in name:
        return 10
    n = 4 if "GATHER4" in name or "_BVH" in name or "MSAA" in name else max(1, dmask.bit_count())
    if d16 and "_BVH" not in name:
        n = (n + 1) // 2
    return n + tfe
