"""Faults a kernel can cause, with everything a person needs to find the cause."""

from __future__ import annotations

from dataclasses import dataclass

from stuntgpu.isa.errors import GuestFault

#: Detail of S_CODE_END and its like.
RESERVED = "this encoding is reserved to fault"


def offset(pc: int, entry: int) -> int:
    """A place from the entry, negative before it; addresses wrap at 2**64."""
    return (pc - entry + (1 << 63)) % (1 << 64) - (1 << 63)


@dataclass(eq=False)
class KernelFault(GuestFault):
    """A kernel did something the hardware faults on.

    kind        "page fault", "misaligned access", "illegal instruction", "budget exceeded", "deadlock",
                "LDS out of range", "trap", "unmodelled instruction".
    pc          GPU VA of the instruction; pc_offset from the kernel's entry, negative before it.
    access      "read", "write", "atomic", "fetch" or "".
    """

    kind: str
    kernel: str = ""
    pc: int = 0
    pc_offset: int = 0
    instruction: str = ""
    workgroup: tuple[int, int, int] = (0, 0, 0)
    wave: int = 0
    lane: int | None = None
    address: int | None = None
    access: str = ""
    nearest: str = ""
    detail: str = ""

    def __str__(self) -> str:
        lines = [f"{self.kind} in kernel {self.kernel or '<unnamed>'}"]
        if self.address is not None:
            lines[0] += f": {self.access} at 0x{self.address:x}"
        lines.append(f"  at pc 0x{self.pc:x} ({self.pc_offset:+#x}): {self.instruction or '<not decoded>'}")
        lane = "" if self.lane is None else f", lane {self.lane}"
        lines.append(f"  workgroup {self.workgroup}, wave {self.wave}{lane}")
        if self.nearest:
            lines.append(f"  {self.nearest}")
        if self.detail:
            lines.append(f"  {self.detail}")
        return "\n".join(lines)
