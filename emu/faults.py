"""Faults a kernel can cause, with everything a person needs to find the cause."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stuntgpu.isa.errors import GuestFault

#: Detail of S_CODE_END and its like.
RESERVED = "this encoding is reserved to fault"


def offset(pc: int, entry: int) -> int:
    """A place from the entry, negative before it; addresses wrap at 2**64."""
    return (pc - entry + (1 << 63)) % (1 << 64) - (1 << 63)


@dataclass(frozen=True, slots=True)
class WaveReport:
    """Where a resident wave was when its launch came to a stop.

    pc      GPU VA of the instruction it waits in, or would have executed next; pc_offset from the entry.
    state   AT_BARRIER, HALTED, SLEEPING, RUNNING or `split_barrier(number)`.
    """

    workgroup: tuple[int, int, int]
    wave: int
    pc: int
    pc_offset: int
    instruction: str
    state: str

    @property
    def is_blocked(self) -> bool:
        return self.state not in (RUNNING, SLEEPING)


RUNNING, SLEEPING, AT_BARRIER, HALTED = "running", "sleeping", "at barrier", "halted"
#: Places a fault's text lists, and waves it names at each.
_PLACES_SHOWN, _WAVES_SHOWN = 12, 4


def split_barrier(number: int) -> str:
    """State of a wave in S_BARRIER_WAIT: -1 the workgroup's barrier, -2 the trap handler's, others named ones."""
    return f"waiting for split barrier {number}"


def _places(waves: Sequence[WaveReport]) -> Iterator[str]:
    """Lines of a report, one for each place and state, most crowded first."""
    places: dict[tuple[int, str, str], list[WaveReport]] = {}
    for w in waves:
        places.setdefault((w.pc_offset, w.instruction, w.state), []).append(w)
    order = sorted(places.items(), key=lambda item: -len(item[1]))
    for (at, text, state), there in order[:_PLACES_SHOWN]:
        names = ", ".join(f"{w.workgroup} wave {w.wave}" for w in there[:_WAVES_SHOWN])
        more = f" and {len(there) - _WAVES_SHOWN} more" if len(there) > _WAVES_SHOWN else ""
        yield f"  {len(there)} {state} at {at:+#x} ({text or '<not decoded>'}): workgroup {names}{more}"
    if len(order) > _PLACES_SHOWN:
        yield f"  and {sum(len(v) for _, v in order[_PLACES_SHOWN:])} waves in {len(order) - _PLACES_SHOWN} more places"


@dataclass(eq=False)
class KernelFault(GuestFault):
    """A kernel did something the hardware faults on.

    kind        "page fault", "misaligned access", "illegal instruction", "budget exceeded", "deadlock",
                "LDS out of range", "trap", "unmodelled instruction".
    pc          GPU VA of the instruction; pc_offset from the kernel's entry, negative before it.
    access      "read", "write", "atomic", "fetch" or "".
    waves       of a deadlock or a spent budget: every resident wave, in dispatch order.
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
    waves: tuple[WaveReport, ...] = ()

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
        if self.waves:
            lines.append(f"  {len(self.waves)} waves are resident:")
            lines += ("  " + line for line in _places(self.waves))
        return "\n".join(lines)


def deadlock(kernel: str, waves: Sequence[WaveReport]) -> KernelFault:
    """No resident wave can run. The fault is at the first wave that does not merely wait for others at a barrier."""
    w = next((w for w in waves if w.state != AT_BARRIER), waves[0])
    return KernelFault("deadlock", kernel, w.pc, w.pc_offset, w.instruction, w.workgroup, w.wave,
                       detail="no wave can run, and no workgroup can start", waves=tuple(waves))
