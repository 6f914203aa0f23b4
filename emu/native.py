"""The native executor: decoded programs, handlers from the cache, and the C core that runs waves.

A `Native` keeps programs it has decoded (recognised by the bytes of their code) and is used by one
launch at a time per thread. ctypes releases the GIL while the C core runs.

Errors:  KernelFault with all its fields; Unmodelled only for launches no wave can start with.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence

from stuntgpu.emu import faults, hwregs, layout, occupancy, state, stored
from stuntgpu.emu.allocation import EVERYTHING, Allocation, of_launch
from stuntgpu.emu.cache import cache
from stuntgpu.emu.faults import RESERVED, KernelFault
from stuntgpu.emu.launch import Launch, RunOptions, Stats
from stuntgpu.emu.memory import EXECUTE, AddressSpace
from stuntgpu.emu.native_abi import (
    MAX_VARIANTS,
    RUN_CODE,
    RUN_DEADLOCK,
    RUN_DONE,
    RUN_FAULT,
    RUN_MODE,
    RUN_SLICE,
    CProgram,
    CShared,
    CSpace,
    CWave,
    CWorker,
    c_handlers,
    library,
)
from stuntgpu.emu.native_report import record_pc, waves_of
from stuntgpu.emu.program import POOL_DWORDS, Code, Fetch, Program
from stuntgpu.emu.records import Template, Variant, assemble
from stuntgpu.isa.abi.targets import SCRATCH_APERTURE
from stuntgpu.isa.disasm import disassemble
from stuntgpu.isa.memory_fields import segment

QUANTUM = 20_000  # instructions a wave runs before the next gets its turn
SLICE = 20_000_000  # instructions between looks at `cancelled`
HEAD_START = 200_000  # instructions a launch of several threads executes before the others start
SEEDED_WORKGROUPS = 16  # at least so many are kept going by each thread when a seed orders them
UNLIMITED = 1 << 62  # instructions
_PROGRAMS_PER_SIGNATURE = 8

#: Bits of MODE that programs are compiled for.
MODE_MASK = 0xFF | 1 << state.MODE_FP16_OVFL | 1 << state.MODE_GPR_INDEX | 1 << state.MODE_VSKIP

_ACCESS = {layout.ACCESS_READ: "read", layout.ACCESS_WRITE: "write", layout.ACCESS_ATOMIC: "atomic"}


class Native:
    """Executor and WaveRunner of one architecture. lock: held while a program changes, or must not."""

    def __init__(self, arch: str) -> None:
        self.arch, self.row = arch, state.wavefront(arch)
        self._programs: dict[tuple[int, bytes, Allocation], list[Program]] = {}
        self.lock = threading.RLock()

    def run(self, space: AddressSpace, launch: Launch, options: RunOptions) -> Stats:
        """Run one dispatch to its end. Raises KernelFault."""
        return _Run(self, space, launch, options).run()

    def run_wave(self, space: AddressSpace, code_va: int, init: state.WaveInit, lanes: int, lds_bytes: int = 0,
                 scratch_va: int = 0, scratch_wave_bytes: int = 0, budget: int = 0) -> state.WaveFinal:
        """One wave from explicit state to its S_ENDPGM (see state.WaveRunner)."""
        launch = state.launch_of_wave(code_va, lanes, lds_bytes, scratch_va, scratch_wave_bytes)
        return _Run(self, space, launch, RunOptions(max_wave_instructions=budget), init).run_single(init)

    def program(self, space: AddressSpace, entry: int, lanes: int, mode: int,
                allocation: Allocation = EVERYTHING) -> Program:
        """The program at an address: one known by its bytes, one kept on disk, or a new one."""
        def fetch(pc: int, size: int) -> bytes:
            return _fetch(space, entry + pc, size)

        signature = fetch(0, stored.SIGNATURE_BYTES)
        with self.lock:
            known = self._programs.setdefault((lanes, signature, allocation), [])
            for p in known:
                if p.matches(fetch):
                    return p
            p = self._kept(lanes, mode, signature, fetch, allocation) or self._decoded(lanes, fetch, allocation)
            known.append(p)
            del known[:-_PROGRAMS_PER_SIGNATURE]
            return p

    def _kept(self, lanes: int, mode: int, signature: bytes, fetch: Fetch, allocation: Allocation) -> Program | None:
        name = stored.name_of(self.arch, lanes, mode, signature, allocation)
        found = stored.load(cache().folder, name, self.arch, lanes, fetch)
        if found is None or not cache().known(_symbols(found[1])):
            return None
        program, template = found
        program.allocation = allocation
        program.variants[mode] = template.variant(_addresses(template))
        return program

    def _decoded(self, lanes: int, fetch: Fetch, allocation: Allocation) -> Program:
        p = Program(self.arch, lanes, allocation=allocation)
        p.extend(0, fetch)
        return p

    def extend(self, p: Program, pc: int, fetch: Fetch) -> None:
        """Make a place one that code can jump to."""
        with self.lock:
            if pc not in p.heads or (p.code and pc not in p.code):
                p.extend(pc, fetch)

    def variant(self, p: Program, mode: int, fetch: Fetch) -> Variant:
        """The records for a float mode; made, and kept on disk, on first use."""
        with self.lock:
            if mode not in p.variants:
                p.decoded(fetch)
                template = assemble(p, mode)
                p.variants[mode] = template.variant(_addresses(template))
                name = stored.name_of(self.arch, p.lanes, mode, fetch(0, stored.SIGNATURE_BYTES), p.allocation)
                stored.save(cache().folder, name, p, template)
            return p.variants[mode]


def _symbols(t: Template) -> list[str]:
    """Names that are not functions of the C core."""
    return [n for n in t.names if n not in c_handlers()]


def _addresses(t: Template) -> dict[str, int]:
    here, core = cache().addresses, c_handlers()
    return {n: core[n] if n in core else here[n] for n in t.names}


def _fetch(space: AddressSpace, va: int, size: int) -> bytes:
    """Code bytes, fewer where executable memory ends."""
    region = space.find(va)
    if region is None or not region.perms & EXECUTE:
        return b""
    return ctypes.string_at(region.host + va - region.va, min(size, region.end - va))


class _Share:
    """A thread's share of a launch: its C worker and what that points at, which no other thread changes.

    variants    of the program in C, at most MAX_VARIANTS; generation: which state of the program they are of.
    """

    def __init__(self) -> None:
        self.worker, self.program, self.space = CWorker(), CProgram(), CSpace()
        self.worker.program, self.worker.space = ctypes.pointer(self.program), ctypes.pointer(self.space)
        self.variants: list[Variant] = []
        self.generation = self.space_generation = -1
        self.kept: list[object] = []

    def refresh_space(self, space: AddressSpace) -> bool:
        """Show the regions as they are now. False: they have not changed."""
        if self.space_generation == space.generation:
            return False
        self.space_generation = space.generation
        regions = space.native()
        self.kept.append(regions)
        self.space.regions, self.space.count = ctypes.addressof(regions), len(regions)
        return True

    def clear(self, p: Program) -> None:
        """Forget variants: their records stay valid, but a wave that leaves them asks again."""
        self.variants.clear()
        self.generation, self.program.n_variants = p.generation, 0

    def add(self, p: Program, v: Variant) -> None:
        self.variants.append(v)
        c, n = self.program, len(self.variants)
        c.places, c.n_places = ctypes.addressof(v.places), len(v.places)
        c.n_records = v.n_records
        c.pool, c.n_pool = ctypes.addressof(p.pool.words), p.pool.used
        c.entry = v.template.starts[0]
        c.variants[n - 1].mode, c.variants[n - 1].records = v.mode, v.address
        c.n_variants = n
        self.worker.launch.n_vgprs = max(self.worker.launch.n_vgprs, v.template.n_vgprs)


class _Run:
    """One launch."""

    def __init__(self, native: Native, space: AddressSpace, launch: Launch, options: RunOptions,
                 init: state.WaveInit | None = None) -> None:
        self.native, self.space, self.launch, self.options = native, space, launch, options
        self.lib = library()
        self.mode = state.start_mode(native.row, launch) if init is None else state.effective_mode(native.row, init.mode)
        self.program = native.program(space, launch.entry, launch.wave_lanes, self.mode & MODE_MASK,
                                      of_launch(native.arch, launch))
        self.lds_bytes = state.allocated_lds(native.arch, launch) if init is None else launch.lds_bytes
        self.made: list[Variant] = []  # every variant a wave of this launch may be in
        self.lock = threading.Lock()
        self.shares: list[_Share] = []
        self.fault: KernelFault | None = None
        self.shared = CShared(n_groups=self._n_groups())
        self.shared.budget = options.max_wave_instructions or UNLIMITED
        self.shared.bound = occupancy.resident_workgroups(native.arch, launch, options.compute_units)

    def fetch(self, pc: int, size: int) -> bytes:
        """Code by its place in the program."""
        return _fetch(self.space, self.launch.entry + pc, size)

    def _n_groups(self) -> int:
        x, y, z = state.workgroup_counts(self.launch)
        return x * y * z

    # ------------------------------------------------------------ what native code sees

    def link(self, share: _Share, mode: int) -> None:
        """Make sure that the share has variants for `mode` and for the one that waves start in."""
        p, bits = self.program, mode & MODE_MASK
        with self.native.lock:  # the program stays as it is
            variant = self.native.variant(p, bits, self.fetch)  # may find more of the program
            if share.generation != p.generation or len(share.variants) == MAX_VARIANTS:
                share.clear(p)
                self.show(share, self.native.variant(p, self.mode & MODE_MASK, self.fetch))
            self.show(share, variant)

    def show(self, share: _Share, v: Variant) -> None:
        if all(v.mode != other.mode for other in share.variants):
            self.made.append(v)
            share.add(self.program, v)

    def share(self, number: int) -> _Share:
        """A new share, ready to run."""
        share = _Share()
        self.shares.append(share)
        k, n_groups = share.worker, self.shared.n_groups or 1
        self._describe_launch(share)
        k.shared = ctypes.pointer(self.shared)
        k.wave_bytes = layout.pool(self.launch.wave_lanes) + 4 * POOL_DWORDS
        k.waves_per_group = state.waves_per_workgroup(self.launch)
        k.max_slots = min(n_groups, self.shared.bound)
        k.wanted = min(SEEDED_WORKGROUPS, k.max_slots) if self.options.seed else 1
        k.most_wanted = k.max_slots
        k.quantum, k.slice_end = QUANTUM, SLICE
        k.random = _seeded(self.options.seed, number)
        k.mode_mask = MODE_MASK
        k.budget_end = self.shared.budget if self.shared.n_workers == 1 else 0
        share.refresh_space(self.space)
        self.link(share, self.mode)
        return share

    def _describe_launch(self, share: _Share) -> None:
        launch, rsrc2 = self.launch, state.Rsrc2.of(self.launch.rsrc2)
        c = share.worker.launch
        c.code, c.lanes, c.mode = launch.entry, launch.wave_lanes, self.mode
        c.grid[:], c.workgroup[:] = launch.grid, launch.workgroup
        c.groups[:], c.start[:] = state.workgroup_counts(launch), launch.start
        user = launch.user_sgprs[: rsrc2.user_sgprs]
        c.n_user, c.id_bits = rsrc2.user_sgprs, rsrc2.id_x | rsrc2.id_y << 1 | rsrc2.id_z << 2
        c.user[: len(user)] = user
        c.info_bit, c.item_ids = rsrc2.workgroup_info, rsrc2.workitem_ids
        self._surroundings(share)
        c.lds_bytes, c.scratch_va, c.scratch_wave_bytes = self.lds_bytes, launch.scratch_va, launch.scratch_wave_bytes

    def _surroundings(self, share: _Share) -> None:
        """Columns of the arch, hardware registers, and where waves run."""
        c = share.worker.launch
        launch, row, s = self.launch, self.native.row, self.native.row.shape
        c.ids_in_ttmp, c.info_has_wave = row.ids_in_ttmp, row.info_has_wave
        c.flat_scratch = max(0, row.flat_scratch)
        table = hwregs.native_table(row.hwregs, hwregs.Facts.of(launch))
        share.kept.append(table)
        c.hwregs, c.clock, c.dispatch_id = ctypes.addressof(table), self.options.clock, launch.dispatch_id & 0xFFFF_FFFF
        c.xccs, c.units, c.ses, c.sas, c.simds, c.slots = s.xccs, s.units, s.ses, s.sas, s.simds, s.slots
        c.splits = s.pairs and state.in_one_cu(launch)

    # ------------------------------------------------------------ running

    def run(self) -> Stats:
        n = max(1, min(self.options.threads, self.shared.n_groups, self.shared.bound))
        self.shared.n_workers = n
        shares = [self.share(i) for i in range(n)]
        try:
            if n == 1:
                self.loop(shares[0])
            elif not self.is_short(shares[0]):
                from concurrent.futures import ThreadPoolExecutor

                with ThreadPoolExecutor(n) as pool:
                    list(pool.map(self.loop, shares))
            self.raise_fault()
        finally:
            self.release()
        stats = Stats(kernels=1)
        for k in (share.worker for share in shares):
            stats.add(Stats(0, k.n_workgroups, k.n_waves, k.instructions, k.latest))
        return stats

    def run_single(self, init: state.WaveInit) -> state.WaveFinal:
        self.shared.n_groups, self.shared.n_workers = 0, 1
        share = self.share(0)
        try:
            pointer = self.lib.sg_single(ctypes.byref(share.worker))
            if not pointer:
                raise MemoryError("no memory for a wave")
            w = pointer.contents
            vgprs = _vgprs(w)
            _write_init(self.native.row, w, vgprs, init)
            self.loop(share)
            self.raise_fault()
            return _read_final(self.native.row, w, vgprs)
        finally:
            self.release()

    def release(self) -> None:
        for share in self.shares:
            self.lib.sg_release(ctypes.byref(share.worker))

    def raise_fault(self) -> None:
        """Once all threads have stopped: the fault of the launch, with its waves where they matter."""
        if self.fault is None:
            return
        if self.fault.kind in ("deadlock", "budget exceeded"):
            self.program.decoded(self.fetch)
            waves = waves_of(self.program, [share.worker for share in self.shares])
            if self.fault.kind == "deadlock":
                raise faults.deadlock(self.launch.name, waves)
            self.fault.waves = waves
        raise self.fault

    def is_short(self, share: _Share) -> bool:
        """Run a share for as long as starting threads would take. True: that was all of the launch. The share takes no
        more workgroups at a time than at its start, so that the others find some."""
        k = share.worker
        k.slice_end, k.most_wanted = HEAD_START, k.wanted
        is_over = self.loop(share, until=RUN_SLICE)
        k.slice_end, k.most_wanted = k.instructions + SLICE, k.max_slots
        return is_over

    def loop(self, share: _Share, until: int = RUN_DONE) -> bool:
        """Run a share to its end (True), or until the C core comes back for a reason. Whatever goes wrong stops the others."""
        try:
            while (why := self.lib.sg_run(ctypes.byref(share.worker))) not in (RUN_DONE, until):
                if not self.serve(share, why):
                    return True
        except BaseException:
            self.shared.stop = 1
            raise
        return bool(why == RUN_DONE)

    def serve(self, share: _Share, why: int) -> bool:
        """What the C core asks for. False: stop the launch."""
        with self.lock:
            if why == RUN_SLICE and not self.options.cancelled():
                share.worker.slice_end = share.worker.instructions + SLICE
                self.look_again(share)
                return True
            if why in (RUN_CODE, RUN_MODE):
                self.resume(share, why)
                return True
            if why == RUN_FAULT and self.was_mapped_since(share):
                return True
            self.shared.stop = 1
            if self.fault is None and why != RUN_SLICE:
                self.fault = self.failure(share, why)
            return False

    def look_again(self, share: _Share) -> bool:
        """Show the share the regions there are now. False: nothing has changed."""
        if not share.refresh_space(self.space):
            return False
        self.lib.sg_forget(ctypes.byref(share.worker))
        return True

    def was_mapped_since(self, share: _Share) -> bool:
        """A page fault by a table that is out of date: look again and repeat the instruction."""
        w = share.worker.subject.contents
        if w.fault_kind != layout.FAULT_PAGE:
            return False
        if w.fault_access == layout.ACCESS_ATOMIC:
            return False  # lanes before the faulting one have acted; that cannot be repeated
        if not self.look_again(share):
            return False
        w.fault_kind = 0
        w.executed -= 1
        share.worker.instructions -= 1
        return True

    def resume(self, share: _Share, why: int) -> None:
        """Point the wave at the record of its PC, in the program of its mode."""
        w = share.worker.subject.contents
        pc = faults.offset(w.pc, w.code) if why == RUN_CODE else record_pc(w.next)
        with self.native.lock:
            self.native.extend(self.program, pc, self.fetch)
            self.link(share, w.mode)
        self.lib.sg_refresh(ctypes.byref(share.worker))
        variant = next(v for v in share.variants if v.mode == w.mode & MODE_MASK)
        w.next = variant.address_of(pc)

    # ------------------------------------------------------------ faults

    def failure(self, share: _Share, why: int) -> KernelFault:
        """Why the launch ends; of a deadlock the kind only, since other threads may still be about to see it."""
        if why == RUN_DEADLOCK:
            return KernelFault("deadlock", self.launch.name)
        if why == RUN_FAULT:
            return self.report(share.worker.subject.contents)
        return KernelFault("out of memory", self.launch.name, detail="the host has no memory for another workgroup")

    def report(self, w: CWave) -> KernelFault:
        pc = record_pc(w.next)
        self.program.decoded(self.fetch)
        code = self.program.code.get(pc)
        text = "" if code is None or code.inst is None else disassemble(code.inst, w.code + pc)
        fault = KernelFault("", self.launch.name, (w.code + pc) % (1 << 64), pc, text, tuple(w.group), w.wave_in_group)
        _describe(self, fault, w, pc)
        return fault


def _describe(run: _Run, fault: KernelFault, w: CWave, pc: int) -> None:
    """Kind and details by what the native code left."""
    code = run.program.code.get(pc)
    match w.fault_kind:
        case layout.FAULT_PAGE | layout.FAULT_MISALIGNED:
            fault.kind = "page fault" if w.fault_kind == layout.FAULT_PAGE else "misaligned access"
            fault.lane = None if w.fault_lane == 0xFFFF_FFFF else w.fault_lane
            fault.address, fault.access = w.fault_address, _ACCESS[w.fault_access]
            fault.nearest = run.space.describe(w.fault_address)
            if w.fault_kind == layout.FAULT_MISALIGNED:
                fault.detail = f"atomics of {w.fault_argument} bytes are aligned to them"
            elif w.fault_address >> 32 == SCRATCH_APERTURE >> 32 and _reaches_scratch(code):
                fault.detail = (f"scratch offset 0x{w.fault_address & 0xFFFF_FFFF:x} is outside the lane's "
                                f"0x{run.launch.scratch_wave_bytes // w.lanes:x} bytes")
            elif run.space.find(w.fault_address) is not None:
                fault.detail = f"{fault.access} is not permitted there"
        case layout.FAULT_ILLEGAL:
            fault.kind, fault.detail = "illegal instruction", code.reason if code and code.reason else RESERVED
        case layout.FAULT_TRAP:
            fault.kind, fault.detail = "trap", f"s_trap {w.fault_argument}"
        case layout.FAULT_BUDGET:
            limit = run.options.max_wave_instructions
            fault.kind, fault.detail = "budget exceeded", f"the launch executed {limit} wave-instructions"
        case _:
            _describe_unmodelled(run, fault, w, pc)


def _reaches_scratch(code: Code | None) -> bool:
    """Whether addresses of the scratch aperture mean scratch to an instruction."""
    return code is not None and code.inst is not None and segment(code.inst) in ("flat", "scratch")


def _describe_unmodelled(run: _Run, fault: KernelFault, w: CWave, pc: int) -> None:
    code = run.program.code.get(pc)
    if code is not None and code.reason == "fetch":
        fault.kind, fault.access, fault.address = "page fault", "fetch", fault.pc
        fault.nearest, fault.detail = run.space.describe(fault.pc), "the PC is not in executable memory"
        return
    found = [why for v in run.made if (why := v.reason(w.next))]
    if w.fault_kind == layout.FAULT_HWREG:
        found = [str(hwregs.unmodelled_argument(run.native.arch, run.native.row.hwregs, w.fault_argument))]
    fault.kind = "unmodelled instruction"
    fault.detail = found[0] if found else f"{run.native.arch}: operand values of this instruction (emu/native)"


def _seeded(seed: int, number: int) -> int:
    """State of the scheduler's generator; 0 keeps dispatch order."""
    return 0 if seed == 0 else (seed * 0x9E37_79B9_7F4A_7C15 + number * 2 + 1) & (1 << 64) - 1


# ---------------------------------------------------------------- a wave from outside


def _vgprs(w: CWave) -> ctypes.Array[ctypes.c_uint32]:
    """[VGPR number * lanes + lane]."""
    n = 2 * state.N_VGPRS * w.lanes
    kind: type[ctypes.Array[ctypes.c_uint32]] = ctypes.c_uint32 * n
    return kind.from_address(ctypes.addressof(w) + layout.VGPR_BASE)


def _write_init(row: state.Wavefront, w: CWave, vgprs: ctypes.Array[ctypes.c_uint32], init: state.WaveInit) -> None:
    for number, value in init.sgprs.items():
        w.s[number] = value & 0xFFFF_FFFF
    for number, values in init.vgprs.items():
        _put(vgprs, number * w.lanes, values)
    w.s[state.VCC_LO], w.s[state.VCC_HI] = init.vcc & 0xFFFF_FFFF, init.vcc >> 32
    w.s[state.EXEC_LO], w.s[state.EXEC_HI] = init.exec_mask & 0xFFFF_FFFF, init.exec_mask >> 32
    w.s[row.m0], w.scc, w.mode = init.m0, init.scc, state.effective_mode(row, init.mode)


def _put(vgprs: ctypes.Array[ctypes.c_uint32], at: int, values: Sequence[int]) -> None:
    for i, v in enumerate(values):
        vgprs[at + i] = v & 0xFFFF_FFFF


def _read_final(row: state.Wavefront, w: CWave, vgprs: ctypes.Array[ctypes.c_uint32]) -> state.WaveFinal:
    n, lanes = state.VCC_LO, w.lanes
    flat = vgprs[:]
    columns = [tuple(flat[i * lanes : (i + 1) * lanes]) for i in range(state.N_VGPRS + row.n_accvgprs)]
    exec_mask = w.s[state.EXEC_LO] | (w.s[state.EXEC_HI] << 32 if lanes == 64 else 0)
    return state.WaveFinal(
        exec_mask, tuple(w.s[:n]), tuple(columns[:state.N_VGPRS]),
        w.s[state.VCC_LO] | w.s[state.VCC_HI] << 32, w.scc, w.s[row.m0], w.mode,
        ctypes.string_at(w.lds, w.lds_size), tuple(columns[state.N_VGPRS:]))
