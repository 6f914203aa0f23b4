"""One wave of the reference: registers, memory as its lanes see it, and the faults they cause.

A `Wave` is the `interp.Context` of its instructions. Memory accesses go to the space of the current
instruction (`segment`); registers written by number in lane scope are kept back until the whole
instruction has read.

Units:   addresses and sizes in bytes, little endian.
Errors:  KernelFault with PC, instruction, wave, lane, address and nearest allocation.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field

from stuntgpu.emu import address as at
from stuntgpu.emu import allocation, formats, hwregs, place, state, wave_hwregs
from stuntgpu.emu import softfloat as sf
from stuntgpu.emu.faults import KernelFault, offset
from stuntgpu.emu.launch import Launch
from stuntgpu.emu.memory import READ, WRITE, AddressSpace
from stuntgpu.isa.abi.targets import SCRATCH_APERTURE
from stuntgpu.isa.disasm import disassemble
from stuntgpu.isa.errors import Unmodelled
from stuntgpu.isa.inst import Inst

M32 = 0xFFFF_FFFF
#: Barriers of a whole workgroup by number, and the bit of a wave that says one is complete; named ones have bit 0.
WORKGROUP_BARRIERS = {-1: 1, -2: 2}


@dataclass(slots=True)
class Group:
    """What the waves of one workgroup share.

    launch    what it belongs to; index: its number in dispatch order.
    clock     time at which its waves start (see hwregs.py).
    signals   barrier number -> signals since it was last complete; signalled: the latest time of one.
    members   named barrier -> how many signals complete it, where that was set.
    """

    lds: bytearray
    launch: Launch
    id: state.Triple = (0, 0, 0)
    index: int = 0
    clock: int = 0
    waves: list[Wave] = field(default_factory=list)
    signals: dict[int, int] = field(default_factory=dict)
    signalled: dict[int, int] = field(default_factory=dict)
    members: dict[int, int] = field(default_factory=dict)

    def belongs(self, number: int) -> list[Wave]:
        """Waves that a barrier is about."""
        live = [w for w in self.waves if not w.done]
        return live if number in WORKGROUP_BARRIERS else [w for w in live if w.named == number]

    def wanted(self, number: int) -> int:
        """Signals that complete a barrier."""
        return self.members.get(number, len(self.belongs(number)))

    def barrier_state(self, number: int) -> int:
        """As S_GET_BARRIER_STATE reads it: signals [22:16], members [10:4], valid [0]."""
        number = number - (1 << 32) if number >> 31 else number
        wanted = self.wanted(number)
        return (self.signals.get(number, 0) & 127) << 16 | (wanted & 127) << 4 | (wanted > 0)

    def signal(self, number: int, time: int) -> None:
        self.signals[number] = self.signals.get(number, 0) + 1
        self.signalled[number] = max(self.signalled.get(number, 0), time)
        self.settle(number)

    def settle(self, number: int) -> None:
        """Completes a barrier that has all its signals."""
        if self.signals.get(number, 0) < max(1, self.wanted(number)):
            return
        self.signals[number] = 0
        time = self.signalled.pop(number, 0)
        bit = WORKGROUP_BARRIERS.get(number, 0)
        for w in self.belongs(number):
            if w.waits_for == bit:
                w.at_barrier, w.waits_for = False, None
                w.not_before(time)
            else:
                w.complete |= 1 << bit
                w.passes[bit] = time


class Wave:
    """One wave.

    sgprs     the file below operand number 128: VCC, EXEC and M0 included.
    vgprs     [VGPR number][lane]; AccVGPRs follow.
    segment   space of "MEM" for the current instruction: "flat", "global", "scratch", "scalar", "buffer".
    atomic    the current instruction is an atomic: addresses must be aligned to the access.
    accesses  buffer instructions: lane -> where its ADDR lies and what of it is in range.
    typed     typed buffer instructions: the format and which channels the places get.
    inst      the current instruction, for reports.
    yields    give up the rest of the quantum; asleep: because of S_SLEEP.
    named     the named barrier it joined; complete: bits of barriers that are; waits_for: the bit it sleeps for;
              passes: times at which those of `complete` were.
    late      the wave's time less the instructions it executed (see hwregs.py).
    stored    hardware registers that are the wave's own; user_prio, no_vgprs: fields of STATUS.
    allocation   the vector registers it has.
    facts, place, dispatch_id   what hardware registers show of the launch and of where the wave runs.
    actions   what the current instruction does beside its results.
    """

    def __init__(self, row: state.Wavefront, space: AddressSpace, group: Group, number: int, lanes: int,
                 init: state.WaveInit, pc: int, scratch_va: int, scratch_wave_bytes: int) -> None:
        self.row, self.space, self.group, self.number, self.lanes = row, space, group, number, lanes
        self.sgprs = [0] * state.N_SGPRS
        self.vgprs = [[0] * lanes for _ in range(state.N_VGPRS + row.n_accvgprs)]
        self.scc, self.pc = init.scc, pc
        self.inst: Inst | None = None
        self.scratch_va, self.scratch_wave_bytes = scratch_va, scratch_wave_bytes
        self.done = self.at_barrier = self.halted = self.yields = self.asleep = False
        self.named: int | None = None
        self.complete = 0
        self.waits_for: int | None = None
        self.next_pc = pc
        self.executed = 0
        self.stored: list[int] = [0, 0]
        self.user_prio = self.no_vgprs = 0
        self.late, self.passes = group.clock, [0, 0, 0]
        self.facts, self.place = _surroundings(self)
        self.allocation = allocation.of_launch(row.arch, group.launch)
        self.dispatch_id: int = group.launch.dispatch_id
        self.segment = "flat"
        self.atomic = False
        self.accesses: dict[int | None, at.BufferAccess] = {}
        self.typed: tuple[formats.Format, tuple[int, ...]] = (formats.make("32", "UINT"), formats.IDENTITY)
        self.kept_back: list[tuple[str, int, int | None, int]] = []
        self.actions: list[tuple[str, Sequence[int]]] = []
        self.mode_bits: int = 0
        self.set_mode(init.mode)
        self._start(init)

    def _start(self, init: state.WaveInit) -> None:
        for reg, value in init.sgprs.items():
            self.sgprs[reg] = value & M32
        for reg, values in init.vgprs.items():
            self.vgprs[reg][: len(values)] = [v & M32 for v in values]
        self.sgprs[state.VCC_LO], self.sgprs[state.VCC_HI] = init.vcc & M32, init.vcc >> 32
        self.sgprs[self.row.m0] = init.m0
        self.exec = init.exec_mask

    # ---- masks and MODE

    @property
    def exec(self) -> int:
        """64 bits; the upper half is 0 in wave32."""
        low = self.sgprs[state.EXEC_LO]
        return low if self.lanes == 32 else low | self.sgprs[state.EXEC_HI] << 32

    @exec.setter
    def exec(self, value: int) -> None:
        self.sgprs[state.EXEC_LO] = value & M32
        if self.lanes == 64:
            self.sgprs[state.EXEC_HI] = value >> 32

    def mask(self, reg: int) -> int:
        """A lane mask in a scalar register (a pair in wave64)."""
        return self.read_scalar(self._mask_register(reg), self.lanes // 32)

    def set_mask(self, reg: int, value: int) -> None:
        self.write_scalar(self._mask_register(reg), self.lanes // 32, value)

    def _mask_register(self, reg: int) -> int:
        state.check_mask(self.row.arch, reg, self.lanes)
        return reg

    @property
    def vccz(self) -> int:
        return int(self.mask(state.VCC_LO) == 0)

    @property
    def can_run(self) -> bool:
        """It would use a turn."""
        return not (self.done or self.at_barrier or self.halted)

    @property
    def active(self) -> list[int]:
        """Active lanes, ascending."""
        mask = self.exec
        return [lane for lane in range(self.lanes) if mask >> lane & 1]

    def set_mode(self, value: int) -> None:
        self.mode_bits = value = state.effective_mode(self.row, value)
        self.mode = sf.mode_of(value)

    # ---- scalar registers by operand number

    def read_scalar(self, reg: int, dwords: int) -> int:
        """Registers from operand number `reg` on; NULL reads 0 at any size."""
        if reg < state.N_SGPRS:
            if state.reads_zero(self.row, reg):
                return 0
            value = 0
            for i in range(dwords):
                value |= self.sgprs[reg + i] << 32 * i
            return value
        if reg in state.APERTURES:
            return state.APERTURES[reg] & ((1 << 32 * dwords) - 1)
        special = {state.VCCZ: self.vccz, state.EXECZ: int(self.exec == 0), state.SCC: self.scc}
        if reg not in special:
            raise Unmodelled(self.row.arch, f"scalar operand {reg}", "emu/wave.py")
        return special[reg]

    def write_scalar(self, reg: int, dwords: int, value: int) -> None:
        """Registers from `reg` on; writes to NULL, to what kernels only read and to numbers that are no register are
        dropped."""
        if reg >= state.N_SGPRS or state.drops_writes(self.row, reg):
            return
        for i in range(dwords):
            self.sgprs[reg + i] = value >> 32 * i & M32

    # ---- registers by number, for bodies

    def read_reg(self, file: str, index: int, lane: int | None) -> int:
        if file == "SGPR":
            return self.read_scalar(index, 1) if index < state.N_SGPRS else 0
        if file == "HWREG":
            return wave_hwregs.read(self, index) & M32
        if file == "MESSAGE":
            return wave_hwregs.message(self, index)
        if file == "BARRIER":
            return self.group.barrier_state(index)
        if lane is None:
            raise self.fault("illegal instruction", detail="a VGPR without a lane")
        return self.vgprs[index % len(self.vgprs)][lane % self.lanes]

    def write_reg(self, file: str, index: int, lane: int | None, value: int) -> None:
        self.kept_back.append((file, index, lane, value))

    def flush_registers(self) -> None:
        """Do the writes that were kept back, in order."""
        kept, self.kept_back = self.kept_back, []
        for file, index, lane, value in kept:
            if file == "SGPR":
                self.write_scalar(index, 1, value)
            elif file == "HWREG":
                wave_hwregs.write(self, index, value)
            else:
                assert lane is not None
                self.vgprs[index % len(self.vgprs)][lane % self.lanes] = value & M32

    # ---- time

    def not_before(self, time: int) -> None:
        """Let the wave's clock go on at `time`, if it is behind."""
        self.late = max(self.late, time - self.executed)

    # ---- memory

    def load(self, space: str, lane: int | None, address: int, size: int) -> int:
        """Little-endian value of `size` bytes."""
        if self.atomic and address % size:
            raise self.fault("misaligned access", lane, address, "atomic", f"atomics of {size} bytes are aligned to them")
        if space == "LDS":
            return self._lds_load(address & M32, size)
        if space == "FORMAT":
            return self._typed_load(lane, address, size)
        if self.segment == "buffer":
            return self._buffer_load(lane, address, size)
        if self.segment == "flat" and at.in_lds_aperture(address):
            return self._lds_load(address & M32, size)
        if self.segment == "scratch" or (self.segment == "flat" and at.in_scratch_aperture(address)):
            return self._scratch_load(lane, address & M32, size)
        return self._read(lane, address, size)

    def store(self, space: str, lane: int | None, address: int, size: int, value: int) -> None:
        if space == "FORMAT":
            self._typed_store(lane, address, size, value)
            return
        data = value.to_bytes(size, "little")
        if space == "LDS" or (self.segment == "flat" and at.in_lds_aperture(address)):
            self._lds_store(address & M32, data)
        elif self.segment == "buffer":
            self._buffer_store(lane, address, data)
        elif self.segment == "scratch" or (self.segment == "flat" and at.in_scratch_aperture(address)):
            self._scratch_store(lane, address & M32, data)
        else:
            self._write(lane, address, data)

    def _read(self, lane: int | None, address: int, size: int) -> int:
        region = self.space.find(address, size)
        if region is None or not region.perms & READ:
            return self._read_slowly(lane, address, size)
        return int.from_bytes(ctypes.string_at(region.host + address - region.va, size), "little")

    def _read_slowly(self, lane: int | None, address: int, size: int) -> int:
        """Reads that cross regions, and those that fault."""
        self._check(lane, address, size, READ)
        return int.from_bytes(self.space.read(address, size), "little")

    def _write(self, lane: int | None, address: int, data: bytes) -> None:
        region = self.space.find(address, len(data))
        if region is None or not region.perms & WRITE:
            self._check(lane, address, len(data), WRITE)
            self.space.write(address, data)
        else:
            ctypes.memmove(region.host + address - region.va, data, len(data))

    def _check(self, lane: int | None, address: int, size: int, perms: int) -> None:
        """Faults at the first byte of [address, address + size) that may not be accessed so."""
        access = "atomic" if self.atomic else "write" if perms == WRITE else "read"
        for byte in range(address, address + size):
            region = self.space.find(byte & at.M64)
            if region is None or not region.perms & perms:
                raise self.fault("page fault", lane, byte & at.M64, access,
                                 detail="" if region is None else f"{access} is not permitted there")

    def _lds_load(self, address: int, size: int) -> int:
        lds = self.group.lds
        if address + size <= len(lds):
            return int.from_bytes(lds[address : address + size], "little")
        return int.from_bytes(lds[address:].ljust(size, b"\0"), "little") if address < len(lds) else 0

    def _lds_store(self, address: int, data: bytes) -> None:
        room = len(self.group.lds) - address
        if room > 0:
            self.group.lds[address : address + min(room, len(data))] = data[:room]

    def _scratch_pieces(self, lane: int | None, offset: int, size: int, access: str) -> list[tuple[int, int]]:
        per_lane = self.scratch_wave_bytes // self.lanes
        if offset + size > per_lane:
            raise self.fault(
                "page fault", lane, SCRATCH_APERTURE + offset, "atomic" if self.atomic else access,
                detail=f"scratch offset 0x{offset:x} is outside the lane's 0x{per_lane:x} bytes")
        return list(at.scratch_pieces(self.scratch_va, self.lanes, lane or 0, offset, size))

    def _scratch_load(self, lane: int | None, offset: int, size: int) -> int:
        value = shift = 0
        for va, n in self._scratch_pieces(lane, offset, size, "read"):
            value |= self._read(lane, va, n) << shift
            shift += 8 * n
        return value

    def _scratch_store(self, lane: int | None, offset: int, data: bytes) -> None:
        done = 0
        for va, n in self._scratch_pieces(lane, offset, len(data), "write"):
            self._write(lane, va, data[done : done + n])
            done += n

    def _buffer_load(self, lane: int | None, address: int, size: int) -> int:
        value = 0
        for va, n, shift in self._buffer_pieces(lane, address, size):
            value |= self._read(lane, va, n) << shift
        return value

    def _buffer_store(self, lane: int | None, address: int, data: bytes) -> None:
        for va, n, shift in self._buffer_pieces(lane, address, len(data)):
            self._write(lane, va, data[shift // 8 : shift // 8 + n])

    def _typed_load(self, lane: int | None, address: int, size: int) -> int:
        """A channel of the lane's element: its number is how far `address` is past the element's."""
        (f, select), start = self.typed, self.accesses[lane].address
        element = self._buffer_load(lane, start, f.bytes)
        value = formats.channel(f, element, address - start, select)
        return value if size == 4 else formats.as_short(f, value)

    def _typed_store(self, lane: int | None, address: int, size: int, value: int) -> None:
        (f, _), start = self.typed, self.accesses[lane].address
        value = value if size == 4 else formats.from_short(f, value)
        element = formats.put(f, self._buffer_load(lane, start, f.bytes), address - start, value)
        self._buffer_store(lane, start, element.to_bytes(f.bytes, "little"))

    def _buffer_pieces(self, lane: int | None, address: int, size: int) -> list[tuple[int, int, int]]:
        """(VA, bytes, bit position) of the dwords (or the smaller whole) that are in range."""
        limits = self.accesses[lane]
        if self.atomic and not (limits.low <= address and address + size <= limits.high):
            return []  # an indivisible access is in range as a whole, or not
        pieces = [(address + i, min(4, size - i), 8 * i) for i in range(0, size, 4)]
        return [p for p in pieces if limits.low <= p[0] and p[0] + p[1] <= limits.high]

    # ---- actions and faults

    def act(self, action: str, args: Sequence[int]) -> None:
        """Actions happen after the body, by whoever runs the wave; once where every lane asks for them."""
        if (action, args) not in self.actions:
            self.actions.append((action, args))

    def fault(self, kind: str, lane: int | None = None, address: int | None = None, access: str = "",
              detail: str = "") -> KernelFault:
        """A fault report of the current instruction."""
        text = "" if self.inst is None else disassemble(self.inst, self.pc)
        return KernelFault(
            kind, self.group.launch.name, self.pc, offset(self.pc, self.group.launch.entry), text, self.group.id, self.number,
            lane, address, access, "" if address is None else self.space.describe(address), detail)

    def final(self) -> state.WaveFinal:
        n, v = state.VCC_LO, state.N_VGPRS
        return state.WaveFinal(
            self.exec, tuple(self.sgprs[:n]), tuple(map(tuple, self.vgprs[:v])),
            self.sgprs[state.VCC_LO] | self.sgprs[state.VCC_HI] << 32, self.scc, self.sgprs[self.row.m0],
            self.mode_bits, bytes(self.group.lds), tuple(map(tuple, self.vgprs[v:])))


def _surroundings(w: Wave) -> tuple[hwregs.Facts, tuple[int, ...]]:
    """What hardware registers show of the launch, and where the wave runs."""
    launch = w.group.launch
    per_group = state.waves_per_workgroup(launch)
    return hwregs.Facts.of(launch), place.place(w.row.shape, w.group.index, w.number, per_group, state.in_one_cu(launch))
