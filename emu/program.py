"""Kernel code, found by walking from the entry through the branches.

Instructions are kept by their place. Code that is reached only at run time (computed jumps, returns)
is decoded when a wave gets there (`extend`).

Units:   pc and sizes in bytes from the program's entry.
Errors:  nothing is raised for bad code: it becomes instructions that fault when run.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stuntgpu.emu import layout, state
from stuntgpu.emu.allocation import EVERYTHING, Allocation
from stuntgpu.emu.forms import row
from stuntgpu.isa.decode import DecodeError, decode
from stuntgpu.isa.errors import Unmodelled
from stuntgpu.isa.inst import Inst
from stuntgpu.isa.ir import Do, If, Semantics, dump_expr

if TYPE_CHECKING:
    from stuntgpu.emu.records import Variant

#: Constants a program can have; waves hold a copy.
POOL_DWORDS = 8192


#: Calls: code comes back to the instruction behind.
_RETURNS = frozenset(("S_SWAPPC_B64", "S_CALL_B64"))

@dataclass(slots=True)
class Code:
    """One decoded instruction, or why there is none. `reason`: of a fault, "" none."""

    pc: int
    size: int
    inst: Inst | None
    reason: str = ""
    illegal: bool = False


Fetch = Callable[[int, int], bytes]


class Pool:
    """Constants of a program, each at a fixed offset of every wave."""

    def __init__(self, lanes: int) -> None:
        self.base = layout.pool(lanes)
        self.words = (ctypes.c_uint32 * POOL_DWORDS)()
        self.used = 0
        self.places: dict[tuple[int, int], int] = {}

    def preload(self, words: bytes) -> None:
        """Start with constants of a program from disk."""
        ctypes.memmove(self.words, words, len(words))
        self.used = len(words) // 4

    def __call__(self, value: int, n: int) -> int:
        """Offset of `value` as n dwords. Raises Unmodelled when the pool is full."""
        key = (value, n)
        if key not in self.places:
            if self.used + n > POOL_DWORDS:
                raise Unmodelled("any arch", f"more than {POOL_DWORDS} dwords of constants", "emu/program.py")
            self.places[key] = self.base + 4 * self.used
            for i in range(n):
                self.words[self.used + i] = value >> 32 * i & 0xFFFF_FFFF
            self.used += n
        return self.places[key]


# ---------------------------------------------------------------- one instruction


def action_of(sem: Semantics, fields: Mapping[str, int]) -> Do | None:
    """The action of a row that does nothing else; where bit 0 of SIMM16 asks for it, of this instruction."""
    body = sem.body
    if len(body) == 1 and isinstance(body[0], If) and dump_expr(body[0].cond) == "(trunc:1 SIMM16:16)":
        body = body[0].then if fields["SIMM16"] & 1 else (*body[0].other, Do("nop"))[:1]
    return body[0] if len(body) == 1 and isinstance(body[0], Do) else None


def is_elided(code: Code) -> bool:
    """Executing it changes nothing."""
    if code.inst is None or code.inst.x is not None:
        return False
    try:
        sem = row(code.inst.arch, code.inst.name).sem
    except Unmodelled:
        return False
    action = action_of(sem, code.inst.fields)
    if action is None:
        return not sem.body
    if action.action == "sendmsg":
        return state.wavefront(code.inst.arch).messages.get(message_of(code.inst)) == "interrupt"
    if action.action == "trap":
        return code.inst.fields["SIMM16"] & 0xFF in state.DEBUG_TRAPS
    return action.action == "nop"


def message_of(inst: Inst) -> int:
    """Number of the message that S_SENDMSG sends."""
    return inst.fields["SIMM16"] & state.wavefront(inst.arch).message_mask


# ---------------------------------------------------------------- finding the code


def branch_target(inst: Inst, pc: int) -> int | None:
    """Where a direct branch goes."""
    if "SIMM16" not in inst.fields or "PC" not in _writes(inst):
        return None
    simm = inst.fields["SIMM16"]
    return pc + 4 + 4 * (simm - (1 << 16) if simm >> 15 else simm)


def _writes(inst: Inst) -> tuple[str, ...]:
    if inst.x is not None:
        return ()
    try:
        return row(inst.arch, inst.name).writes
    except Unmodelled:
        return ()


def ends_run(inst: Inst) -> bool:
    """Nothing is executed after it."""
    if inst.name in ("S_BRANCH", "S_SETPC_B64", "S_SWAPPC_B64", "S_RFE_B64"):
        return True
    if inst.x is not None:
        return False
    try:
        action = action_of(row(inst.arch, inst.name).sem, inst.fields)
    except Unmodelled:
        return True
    return action is not None and action.action in ("endpgm", "illegal")


@dataclass(slots=True)
class Program:
    """Decoded code of one kernel.

    heads      places code jumps to: they keep their records, and counting starts there.
    spans      the bytes of each instruction; runs: joined, to notice other code in their place.
    variants   records by the float bits of MODE (see records.py).
    allocation   the vector registers that its waves have.
    """

    arch: str
    lanes: int
    code: dict[int, Code] = field(default_factory=dict)
    spans: dict[int, bytes] = field(default_factory=dict)
    heads: set[int] = field(default_factory=set)
    pool: Pool = field(init=False)
    order: list[Code] = field(default_factory=list)
    variants: dict[int, Variant] = field(default_factory=dict)
    generation: int = 0
    runs: list[tuple[int, bytes]] = field(default_factory=list)
    allocation: Allocation = EVERYTHING

    def __post_init__(self) -> None:
        self.pool = Pool(self.lanes)

    def extend(self, start: int, fetch: Fetch) -> None:
        """Decode from `start` on; every branch target that follows is decoded too."""
        todo = [*self.heads, start]  # a program from disk knows its heads, not yet its instructions
        while todo:
            pc = todo.pop()
            self.heads.add(pc)
            while pc not in self.code:
                c = self._decode(pc, fetch)
                self.code[pc] = c
                if c.inst is None:
                    break
                target = branch_target(c.inst, pc)
                if target is not None:
                    todo.append(target)
                if c.inst.name in _RETURNS:
                    todo.append(pc + c.size)
                if ends_run(c.inst):
                    break
                pc += c.size
        self.order = [self.code[pc] for pc in sorted(self.code)]
        self.runs = list(_joined(self.spans))
        self.variants.clear()
        self.generation += 1

    def _decode(self, pc: int, fetch: Fetch) -> Code:
        data = fetch(pc, 16)
        if len(data) < 4:
            return Code(pc, 4, None, "fetch")
        try:
            inst = decode(self.arch, data)
        except DecodeError as e:
            self.spans[pc] = data[:4]
            return Code(pc, 4, None, f"{e.reason} ({data[:8].hex(' ')})", illegal=True)
        self.spans[pc] = data[: inst.size]
        return Code(pc, inst.size, inst)

    def decoded(self, fetch: Fetch) -> None:
        """Make sure that the instructions are known, not only their records."""
        if not self.code:
            self.extend(0, fetch)

    def matches(self, fetch: Fetch) -> bool:
        """The code in memory is still what was decoded."""
        return all(fetch(pc, len(data)) == data for pc, data in self.runs)


def _joined(spans: Mapping[int, bytes]) -> Iterator[tuple[int, bytes]]:
    """Adjacent spans as one."""
    at, data = 0, bytearray()
    for pc in sorted(spans):
        if data and pc != at + len(data):
            yield at, bytes(data)
            data = bytearray()
        if not data:
            at = pc
        data += spans[pc]
    if data:
        yield at, bytes(data)
