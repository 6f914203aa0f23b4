"""Runs one instruction on the reference in states that differ only in what it is said not to read.

`probe` runs an instruction in a random state, and in a second one where every bit outside `Effects.reads`
is another; nothing it does may differ, and nothing outside `Effects.writes` may change. Memory accesses
are recorded and compared with `Effects.memory`.

Units:   registers are 32-bit patterns; vectors are lists with a value a lane.
"""

from __future__ import annotations

import ctypes
import random
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial

from stuntgpu.emu import state
from stuntgpu.emu.faults import KernelFault
from stuntgpu.emu.memory import AddressSpace
from stuntgpu.emu.step import Step, build
from stuntgpu.emu.wave import Group, Wave
from stuntgpu.isa.arch import Arch, arch
from stuntgpu.isa.decode import DecodeError, decode, encode
from stuntgpu.isa.effects import Access, Effects, File, Lanes, Memory, reads_writes
from stuntgpu.isa.errors import Unmodelled
from stuntgpu.isa.inst import Inst, Kind
from stuntgpu.isa.memory_fields import memory_fields, segment
from stuntgpu.isa.operands import operands

M32 = 0xFFFF_FFFF
MODE = 1  # number of the hardware register
BUFFER_VA, BUFFER_BYTES = 0x1000_0000, 0x2000
SCRATCH_VA, SCRATCH_LANE_BYTES = 0x2000_0000, 0x400
LDS_BYTES = 0x4000
PC, OTHER_PC = 0x3000_0000, 0x4000_0000
#: Few lanes are on: bodies run once for each.
EXEC = {32: 0x8000_0463, 64: 0x8000_0463_0000_0063}
#: Vector register files are this long with AccVGPRs.
N_VECTORS = 2 * state.N_VGPRS
#: Word 3 of a buffer descriptor: X Y Z W, and a format that is 32 bits of float on RDNA and on CDNA.
SELECTS = 4 | 5 << 3 | 6 << 6 | 7 << 9
FORMATS = {"gfx9": 7 << 12 | 4 << 15, "gfx11": 22 << 12 | 3 << 28, "gfx12": 22 << 12 | 3 << 28}


@dataclass(slots=True)
class Touch:
    """One recorded access to memory."""

    space: str
    lane: int | None
    address: int
    size: int
    is_write: bool


class Recorder(Wave):
    """A wave that keeps a list of its memory accesses."""

    touches: list[Touch]

    def load(self, space: str, lane: int | None, address: int, size: int) -> int:
        self.touches.append(Touch(self.named_space(space), lane, address, size, False))
        return super().load(space, lane, address, size)

    def store(self, space: str, lane: int | None, address: int, size: int, value: int) -> None:
        self.touches.append(Touch(self.named_space(space), lane, address, size, True))
        super().store(space, lane, address, size, value)

    def named_space(self, space: str) -> str:
        if space == "LDS" or self.segment == "lds":
            return "lds"
        return "scalar" if self.inst is not None and self.inst.base == "SMEM" else self.segment


@dataclass
class State:
    """What an instruction can see of a wave."""

    sgprs: list[int]
    vgprs: list[list[int]]
    scc: int
    mode: int
    trapsts: int
    pc: int


@dataclass
class Outcome:
    """A wave after the instruction, and what it did. next: where the PC goes."""

    state: State
    next: int
    memory: bytes
    lds: bytes
    action: object
    fault: str
    touches: list[Touch] = field(default_factory=list)


class Bench:
    """Memory and random states of one architecture and wave size."""

    def __init__(self, name: str, lanes: int, seed: int = 1) -> None:
        self.arch: Arch = arch(name)
        self.row, self.lanes = state.wavefront(name), lanes
        self.random = random.Random(f"{name} {lanes} {seed}")
        self.space = AddressSpace()
        self.buffer = self._map(BUFFER_VA, BUFFER_BYTES, "buffer")
        self.scratch = self._map(SCRATCH_VA, SCRATCH_LANE_BYTES * lanes, "scratch")
        self.contents = self.random.randbytes(BUFFER_BYTES), self.random.randbytes(SCRATCH_LANE_BYTES * lanes)
        self.lds = self.random.randbytes(LDS_BYTES)
        self.pools = self._pool(), self._pool()
        self.launch = state.launch_of_wave(PC, lanes, LDS_BYTES, SCRATCH_VA, SCRATCH_LANE_BYTES * lanes)
        self.fresh = Recorder(self.row, self.space, Group(bytearray(), self.launch), 0, lanes, state.WaveInit(0, {}, {}), PC, SCRATCH_VA,
                              SCRATCH_LANE_BYTES * lanes)

    def _map(self, va: int, size: int, name: str) -> ctypes.Array[ctypes.c_char]:
        block = ctypes.create_string_buffer(size)
        self.space.map(va, size, ctypes.addressof(block), name=name, keep=block)
        return block

    def _pool(self) -> tuple[list[int], list[list[int]]]:
        word = self.random.getrandbits
        return [word(32) for _ in range(state.N_SGPRS)], [
            [word(32) if i % 3 else self.random.choice(FLOATS) for i in range(self.lanes)]
            for _ in range(state.N_VGPRS + self.row.n_accvgprs)
        ]

    def start(self, inst: Inst) -> State:
        """A random state in which the instruction's addresses are valid."""
        sgprs, vgprs = self.pools[0]
        s = State(list(sgprs), list(map(list, vgprs)), self.random.getrandbits(1), state.effective_mode(self.row, 0x2F0), 0, PC)
        for i, number in enumerate((self.arch.exec, self.arch.exec + 1)):
            s.sgprs[number] = EXEC[self.lanes] >> 32 * i & M32
        s.sgprs[self.arch.m0] = 4 * self.random.randrange(1, 8)
        for part in inst.halves:
            if segment(part) and operands(part):
                self._place_addresses(part, s)
        return s

    def _place_addresses(self, inst: Inst, s: State) -> None:
        m = memory_fields(inst)
        offset = -m.offset % 16 if m.segment in ("flat", "global", "scratch") else 0
        base = BUFFER_VA + BUFFER_BYTES // 2 - (m.offset - m.offset % 16) + offset
        if m.segment in ("flat", "global"):
            self._place_flat(s, m.vaddr, m.saddr, base)
        elif m.segment == "scratch":
            self._small(s, m.vaddr, m.saddr, (-m.offset) & 0xFFFF if m.offset < 0 else offset)
        elif m.segment == "lds" and m.vaddr is not None:
            s.vgprs[m.vaddr] = [16 * (lane + 1) for lane in range(self.lanes)]
        elif m.segment == "scalar" or m.segment == "buffer":
            self._place_scalar(inst, s, base)

    def _place_flat(self, s: State, vaddr: int | None, saddr: int | None, base: int) -> None:
        steps = [16 * lane for lane in range(self.lanes)]
        if vaddr is not None:
            s.vgprs[vaddr] = steps if saddr is not None else [base + x for x in steps]
            if saddr is None:
                s.vgprs[(vaddr + 1) % state.N_VGPRS] = [0] * self.lanes
        if saddr is not None:
            s.sgprs[saddr : saddr + 2] = [base, 0]

    def _small(self, s: State, vaddr: int | None, saddr: int | None, value: int) -> None:
        if saddr is not None:
            s.sgprs[saddr] = value
        if vaddr is not None:
            s.vgprs[vaddr] = [32 if saddr is not None else value] * self.lanes

    def _place_scalar(self, inst: Inst, s: State, base: int) -> None:
        """Base address or descriptor; the offsets small."""
        m = memory_fields(inst)
        words = [base, 0]
        if m.segment == "buffer" or "_BUFFER_" in inst.name:
            words = [BUFFER_VA, 0, BUFFER_BYTES, SELECTS | FORMATS[self.arch.dialect]]
        soffset = next((o for o in operands(inst) if o.role == "SOFFSET" and o.kind is Kind.SGPR), None)
        registers = [soffset.reg] if soffset is not None and m.segment == "buffer" else []
        if m.soffset is not None:
            registers.append(m.soffset)
        for reg in registers:
            if reg < state.N_SGPRS and reg not in (self.arch.exec, self.arch.exec + 1):
                s.sgprs[reg] = 16
        s.sgprs[m.base : m.base + len(words)] = words
        if m.vaddr is not None:
            for i in range(m.index + m.offen):
                s.vgprs[(m.vaddr + i) % state.N_VGPRS] = [16 * (lane % 8) for lane in range(self.lanes)]

    # ---- running

    def run(self, step: Step, start: State) -> Outcome:
        ctypes.memmove(self.buffer, self.contents[0], BUFFER_BYTES)
        ctypes.memmove(self.scratch, self.contents[1], len(self.contents[1]))
        group = Group(bytearray(self.lds), self.launch)
        w = copy(self.fresh)
        w.group, w.pc, w.touches, w.accesses, w.kept_back, w.inst = group, start.pc, [], {}, [], step.inst
        w.actions = []
        w.set_mode(start.mode)
        w.sgprs, w.vgprs, w.scc, w.stored = list(start.sgprs), list(map(list, start.vgprs)), start.scc, [start.trapsts, 0]
        group.waves.append(w)
        fault = ""
        try:
            step.run(w)
        except KernelFault as e:
            fault = e.kind
        after = State(w.sgprs, w.vgprs, w.scc, w.mode_bits, w.stored[0], start.pc)
        memory = bytes(self.buffer) + bytes(self.scratch)
        return Outcome(after, w.pc, memory, bytes(group.lds), w.actions, fault, w.touches)

    def other(self, start: State, reads: Sequence[Access]) -> State:
        """A state that agrees with `start` in what `reads` says, and in nothing else."""
        sgprs, vgprs = self.pools[1]
        s = State(list(sgprs), list(map(list, vgprs)), 1 - start.scc, start.mode, 0x155, OTHER_PC)
        for reg in filter(partial(state.drops_writes, self.row), range(state.N_SGPRS)):
            s.sgprs[reg] = start.sgprs[reg]
        active = EXEC[self.lanes]
        for a in reads:
            if a.file is File.SGPR:
                for reg, mask in a.registers:
                    s.sgprs[reg] = start.sgprs[reg] & mask | s.sgprs[reg] & ~mask
            elif a.file in (File.VGPR, File.AGPR):
                for reg, mask in vector_registers(a):
                    s.vgprs[reg] = self._mixed(start.vgprs[reg], s.vgprs[reg], mask, active if a.lanes is Lanes.OWN else M32 << 32 | M32)
        kept = {a.file for a in reads}
        s.scc = start.scc if File.SCC in kept else s.scc
        s.pc = start.pc if File.PC in kept else s.pc
        numbers = {reg for a in reads if a.file is File.HWREG for reg, _ in a.registers}
        s.trapsts = start.trapsts if numbers - {MODE} else s.trapsts
        s.mode = start.mode if MODE in numbers else state.effective_mode(self.row, start.mode ^ 0xFF)
        return s

    def _mixed(self, old: list[int], new: list[int], mask: int, lanes: int) -> list[int]:
        if lanes >> self.lanes - 1 == (1 << 65 - self.lanes) - 1 and mask == M32:
            return list(old)
        return [a & mask | b & ~mask if lanes >> i & 1 else b for i, (a, b) in enumerate(zip(old, new, strict=True))]


FLOATS = (0, 0x8000_0000, 0x3F80_0000, 0xBF80_0000, 0x7F80_0000, 0x7FC0_0000, 0x0000_0001, 0x3C00_4000, 0x4000_BC00, 0x4248_0000)


def vector_registers(a: Access) -> Iterator[tuple[int, int]]:
    """(number in a wave's file, mask) of an access to vector registers."""
    first = state.N_VGPRS if a.file is File.AGPR else 0
    return ((first + reg % state.N_VGPRS, mask) for reg, mask in a.registers)


def probe(bench: Bench, inst: Inst) -> list[str]:
    """What `reads_writes` says wrongly about an instruction, in one random state. Raises Unmodelled."""
    step = build(inst)
    effects = reads_writes(inst, bench.lanes)
    start = bench.start(inst)
    first = bench.run(step, start)
    other = bench.other(start, effects.reads)
    try:
        second = bench.run(step, other)
    except Unmodelled as e:
        return [f"something unread makes it {e}"]
    wrong = list(unlisted_writes(bench, effects, start, first))
    wrong += [f"in the second state: {w}" for w in unlisted_writes(bench, effects, other, second)]
    wrong += differences(bench, effects, (start, first), (other, second))
    wrong += memory_wrong(effects, first)
    return list(dict.fromkeys(wrong))


# ---------------------------------------------------------------- comparing

Vectors = dict[int, list[tuple[int, Access]]]


def by_register(writes: Sequence[Access], *files: File) -> Vectors:
    """Register -> masks and accesses that write it."""
    found: Vectors = {}
    for a in writes:
        if a.file in files:
            for reg, mask in vector_registers(a) if File.VGPR in files else a.registers:
                found.setdefault(reg, []).append((mask, a))
    return found


def unlisted_writes(bench: Bench, effects: Effects, before: State, done: Outcome) -> Iterator[str]:
    """Changes of state that `Effects.writes` does not have."""
    after, files = done.state, {a.file for a in effects.writes}
    scalars = by_register(effects.writes, File.SGPR)
    for reg, (a, b) in enumerate(zip(before.sgprs, after.sgprs, strict=True)):
        listed = sum_of(mask for mask, _ in scalars.get(reg, ()))
        if (a ^ b) & ~listed:
            yield f"s{reg} changes in {(a ^ b) & ~listed:#x}"
    yield from unlisted_vectors(bench, effects, before, after)
    if before.scc != after.scc and File.SCC not in files:
        yield "SCC changes"
    hardware = {reg for a in effects.writes if a.file is File.HWREG for reg, _ in a.registers}
    if before.mode != after.mode and MODE not in hardware:
        yield "MODE changes"
    if before.trapsts != after.trapsts and not hardware - {MODE}:
        yield "TRAPSTS changes"
    if done.next != before.pc + done_size(effects, done, before) and File.PC not in files and not done.fault:
        yield "PC goes elsewhere"


def done_size(effects: Effects, done: Outcome, before: State) -> int:
    """Bytes the PC moves on by when nothing writes it."""
    moved = done.next - before.pc
    return moved if moved in (4, 8, 12, 16) else -1


def sum_of(masks: Iterator[int]) -> int:
    total = 0
    for m in masks:
        total |= m
    return total


def unlisted_vectors(bench: Bench, effects: Effects, before: State, after: State) -> Iterator[str]:
    vectors = by_register(effects.writes, File.VGPR, File.AGPR)
    active = EXEC[bench.lanes]
    for reg, (old, new) in enumerate(zip(before.vgprs, after.vgprs, strict=True)):
        if old == new:
            continue
        for lane, (a, b) in enumerate(zip(old, new, strict=True)):
            on = active >> lane & 1
            listed = sum_of(m for m, w in vectors.get(reg, ()) if on or w.lanes is not Lanes.OWN)
            if (a ^ b) & ~listed:
                yield f"v{reg} changes in {(a ^ b) & ~listed:#x}, lane {lane}{'' if on else ' (off)'}"
                break


Run = tuple[State, Outcome]


def differences(bench: Bench, effects: Effects, first: Run, second: Run) -> Iterator[str]:
    """Results that depend on something not listed as read."""
    (a0, a), (b0, b) = first, second
    if a.fault != b.fault:
        yield f"fault {a.fault!r} or {b.fault!r} by something unread"
    if a.fault or b.fault:
        return
    for what in ("memory", "lds", "action"):
        if getattr(a, what) != getattr(b, what):
            yield f"{what} depends on something unread"
    files = {w.file: w for w in effects.writes}
    if File.SCC in files and differs(files[File.SCC].certain, 1, (a0.scc, a.state.scc), (b0.scc, b.state.scc)):
        yield "SCC depends on something unread"
    if File.PC in files and a.next != b.next and not (a.next - a0.pc == b.next - b0.pc and not files[File.PC].certain):
        yield "PC depends on something unread"
    if any(w.file is File.HWREG and w.reg == MODE for w in effects.writes) and a.state.mode != b.state.mode:
        yield "MODE depends on something unread"
    for w in effects.writes:
        if w.file is File.SGPR:
            for reg, mask in w.registers:
                pairs = (a0.sgprs[reg], a.state.sgprs[reg]), (b0.sgprs[reg], b.state.sgprs[reg])
                if differs(w.certain, mask, *pairs):
                    yield f"s{reg} depends on something unread"
        elif w.file in (File.VGPR, File.AGPR):
            yield from vector_differences(bench, w, first, second)


def differs(certain: bool, mask: int, a: tuple[int, int], b: tuple[int, int]) -> bool:
    """Whether results (before, after) differ where they are written; a write that is not certain may leave both alone."""
    if (a[1] ^ b[1]) & mask == 0:
        return False
    return certain or bool((a[0] ^ a[1]) & mask) or bool((b[0] ^ b[1]) & mask)


def vector_differences(bench: Bench, w: Access, first: Run, second: Run) -> Iterator[str]:
    (a0, a), (b0, b) = first, second
    active = EXEC[bench.lanes]
    for reg, mask in vector_registers(w):
        rows = a0.vgprs[reg], a.state.vgprs[reg], b0.vgprs[reg], b.state.vgprs[reg]
        if rows[1] == rows[3]:
            continue
        for lane, (p, q, r, s) in enumerate(zip(*rows, strict=True)):
            if w.lanes is Lanes.OWN and not active >> lane & 1:
                continue
            if differs(w.certain and w.lanes is not Lanes.OTHER, mask, (p, q), (r, s)):
                yield f"v{reg} depends on something unread, lane {lane}"
                break


def memory_wrong(effects: Effects, done: Outcome) -> Iterator[str]:
    """Accesses to memory that `Effects.memory` does not have, and sizes that are not those."""
    listed: dict[str, Memory] = {m.space: m for m in effects.memory}
    sizes: dict[tuple[str, int | None, bool], dict[int, int]] = {}
    for t in done.touches:
        m = listed.get(t.space)
        if m is None or not (m.is_written if t.is_write else m.is_read):
            yield f"{'store to' if t.is_write else 'load from'} {t.space} is not listed"
            continue
        sizes.setdefault((t.space, t.lane, t.is_write), {})[t.address] = t.size
    for (space, _, _), parts in sizes.items():
        size = listed[space].size
        if size is not None and sum(parts.values()) > size:
            yield f"{space}: {sum(parts.values())} bytes instead of {size}"


# ---------------------------------------------------------------- instructions to probe

#: Fields of scalar registers, whatever else they may hold.
SCALAR_FIELDS = ("SDST", "SSRC0", "SSRC1", "SADDR", "SBASE", "SDATA", "SRSRC", "RSRC", "SOFFSET")
VECTOR_FIELDS = ("VDST", "VDATA", "DATA", "DATA0", "DATA1", "ADDR", "VADDR", "VSRC", "VSRC0", "VSRC1", "VDSTX", "VDSTY", "VSRCX1", "VSRCY1")
#: Fields that change what is read or written.
SWITCHES = ("OP_SEL", "CLAMP", "NEG", "ABS", "OMOD", "GLC", "SC0", "OFFEN", "IDXEN", "SVE", "BOUND_CTRL", "FI", "ROW_MASK", "DST_SEL",
            "DST_UNUSED", "SRC0_SEL", "SRC1_SEL", "S0", "ACC", "ACC_CD", "DPP_CTRL", "OP_SEL_HI", "CBSZ", "BLGP")  # fmt: skip


def varied(r: random.Random, inst: Inst) -> Inst | None:
    """`inst` with other registers and switches, far from each other; None: not an instruction."""
    encoding = arch(inst.arch).tables.encodings[inst.encoding]
    fields = dict(inst.fields)
    vectors, scalars = r.sample(range(0, 250, 10), 16), r.sample(range(0, 96, 8), 12)
    for f in encoding.fields:
        if f.name in SWITCHES and r.random() < 0.4:
            fields[f.name] = r.getrandbits(f.bits)
        elif f.name in VECTOR_FIELDS and f.bits == 8 and not (f.name == "VSRC0" and "S0" in fields):
            fields[f.name] = vectors.pop()
        elif f.name in SCALAR_FIELDS and fields.get(f.name, 0) << f.padding < 96:
            fields[f.name] = scalars.pop() >> f.padding
        elif f.bits == 9:
            fields[f.name] = vectors.pop() + 256 if r.random() < 0.8 else scalars.pop()
    try:
        return decode(inst.arch, encode(replace(inst, fields=fields)))
    except DecodeError:
        return None
