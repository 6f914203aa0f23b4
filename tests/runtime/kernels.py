"""Small gfx1100 kernels as code objects, for tests that need one of their own: the demonstration's,
damaged where a fault is wanted."""

from __future__ import annotations

from stuntgpu.demo import code_object
from stuntgpu.isa.abi import codeobject

VADD = code_object("vadd_f32", "gfx1100")


def patched(*words: int) -> bytes:
    """vadd_f32 whose code begins with these dwords."""
    parsed = codeobject.read(VADD)
    vaddr = parsed.kernels["vadd_f32"].entry_vaddr
    segment = next(s for s in parsed.segments if s.vaddr <= vaddr < s.vaddr + s.size)
    at = VADD.index(segment.data[vaddr - segment.vaddr :][:64])
    code = b"".join(w.to_bytes(4, "little") for w in words)
    return VADD[:at] + code + VADD[at + len(code) :]


S_BRANCH_SELF = 0xBFA0FFFF  # s_branch to itself
ILLEGAL = 0xFFFFFFFF
