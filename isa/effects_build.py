"""Puts the facts of a semantics row and the registers of an instruction together: `effects`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from stuntgpu.isa.arch import Arch, InstRow, arch
from stuntgpu.isa.effects import Access, Effects, Exec, File, Flow, Lanes, Memory, Use
from stuntgpu.isa.effects_flow import RegUse, Row, Written, addresses, row_of
from stuntgpu.isa.effects_places import N_SGPRS, N_VGPRS, VECTOR_KINDS, Finder, spread
from stuntgpu.isa.errata.effects import Extra, extras
from stuntgpu.isa.errors import Unmodelled
from stuntgpu.isa.inst import Inst, Kind, Operand
from stuntgpu.isa.memory_fields import segment
from stuntgpu.isa.syntax_gfx12 import address_registers
from stuntgpu.isa.syntax_image import image_address_registers, image_data_registers
from stuntgpu.isa.waits import raised, waited

#: Places that are values of the instruction, not of the wave.
CONSTANTS = frozenset((
    "SIMM16", "SIMM32", "OFFSET", "OFFSET0", "OFFSET1", "OPSEL", "OPSEL_HI", "NEG", "NEG_HI", "OMOD", "ABS", "CLAMP",
    "SRC0", "SRC1", "SRC2", "VDST", "SDST", "LANE", "WAVE32", "LANES",
))  # fmt: skip
#: Places that are state of the wave, not operands.
STATE = frozenset(("EXEC", "SCC", "M0", "PC", "VCC", "PRIV"))
#: Actions that are about barriers -> `Effects.barrier`.
BARRIERS = {
    "barrier": "signal_wait", "barrier_signal": "signal", "barrier_wait": "wait", "barrier_init": "init",
    "barrier_join": "join", "barrier_leave": "leave",
}  # fmt: skip
IMAGES = ("MIMG", "VIMAGE", "VSAMPLE")
#: Instructions on the data share of the whole device.
GDS_NAMES = ("DS_GWS_", "DS_ORDERED_COUNT", "DS_ADD_GS_REG_RTN", "DS_SUB_GS_REG_RTN")
#: Fields that number registers -> the field names that place can have.
NUMBER_FIELDS = {
    "SRC0": ("VSRC0", "SRC0", "SSRC0", "ADDR"), "SRC1": ("SRC1", "VSRC1", "SSRC1", "DATA0"), "SRC2": ("SRC2", "DATA1"),
    "VDST": ("VDST",), "SDST": ("SDST",),
}  # fmt: skip


@lru_cache(maxsize=32768)
def effects(inst: Inst, wave_lanes: int) -> Effects:
    """What `inst` touches in waves of `wave_lanes` lanes."""
    if inst.x is not None and inst.y is not None:
        return _pair(effects(inst.x, wave_lanes), effects(inst.y, wave_lanes))
    target = arch(inst.arch)
    try:
        row: Row | None = row_of(inst.arch, inst.name)
    except Unmodelled:
        row = None
    return _Builder(inst, target, wave_lanes, row).effects()


def _pair(x: Effects, y: Effects) -> Effects:
    return replace(x, reads=_once((*x.reads, *y.reads)), writes=_once((*x.writes, *y.writes)), halves=(x, y))


def _once(accesses: tuple[Access, ...]) -> tuple[Access, ...]:
    """Each access once, the certain one of two that differ in nothing else."""
    found: dict[Access, Access] = {}
    for a in accesses:
        key = replace(a, certain=True)
        before = found.get(key)
        found[key] = a if before is None or a.certain else before
    return tuple(found.values())


class _Builder:
    def __init__(self, inst: Inst, target: Arch, wave_lanes: int, row: Row | None) -> None:
        self.inst, self.arch, self.wave_lanes, self.row = inst, target, wave_lanes, row
        self.table: InstRow = target.tables.by_base[inst.base, inst.opcode]
        self.find = Finder(inst, target, wave_lanes)
        self.exec = self.meaning_of_exec()
        self.to_lds = bool(inst.fields.get("LDS")) and segment(inst) == "buffer"

    def effects(self) -> Effects:
        if self.row is None:
            reads, writes = tuple(self.listed(False)), tuple(self.listed(True))
            memory = tuple(self.listed_memory())
        else:
            reads, writes = tuple(self.reads(self.row)), tuple(self.writes(self.row))
            memory = tuple(self.memory(self.row))
        more = tuple(self.beyond(False)), tuple(self.beyond(True))
        flow, distance = self.flow()
        return Effects(
            self.wave_lanes, _once((*reads, *more[0])), _once((*writes, *more[1])), memory,
            raised(self.arch, self.inst, memory), waited(self.arch, self.inst), self.exec, flow, distance,
            self.barrier(), self.row is not None,
        )  # fmt: skip

    # ---- EXEC

    def meaning_of_exec(self) -> Exec:
        vector = any(o.kind in VECTOR_KINDS for o in self.find.operands)
        if self.row is None:
            return Exec.MASKED if vector else Exec.SCALAR
        if self.row.exec_is_mask:
            return Exec.MASKED if self.is_vector() else Exec.SCALAR
        if not vector:
            return Exec.SCALAR
        return Exec.DATA if "EXEC" in self.row.reads else Exec.IGNORED

    def is_vector(self) -> bool:
        """Rows of S_ instructions are run once whatever else they say."""
        return not self.inst.name.startswith("S_") and self.inst.base not in ("SMEM",) and bool(self.table.operands)

    @property
    def own(self) -> Lanes:
        return Lanes.OWN if self.exec is Exec.MASKED else Lanes.ALL

    # ---- reads

    def reads(self, row: Row) -> Iterator[Access]:
        for name, certain in row.reads.items():
            yield from self.read_place(name, certain)
        for name in row.kept:
            yield from self.kept_bits(name, row)
        for name, certain in row.mask_reads.items():
            yield from self.read_mask(name, certain)
        for use in row.registers:
            if not use.is_write:
                yield from self.by_number(use)
        yield from self.read_whole(row)
        found = row.reads or row.kept or row.writes or row.registers or row.memory or row.mask_reads
        if not found and "wmma" not in row.actions:
            yield from self.listed(False)  # an action alone: its operands are read by what the row leaves out
        if self.exec is Exec.MASKED:
            yield from self.find.mask(self.arch.exec, "EXEC", use=Use.MASK)
        yield from self.kept_lanes(row)
        if row.reads_mode or self.modified(row):
            yield self.find.hwreg(self.find.special.mode)

    def read_whole(self, row: Row) -> Iterator[Access]:
        """Operands that actions read."""
        for o in self.find.operands:
            if "wmma" in row.actions:
                yield from self.matrix_operand(o)
            if "transpose" in row.actions and o.is_written:  # lanes that are off take part with what they hold
                yield from self.find.source(o, Lanes.OTHER, certain=False)

    def read_place(self, name: str, certain: bool) -> Iterator[Access]:
        find, a = self.find, self.arch
        if name in CONSTANTS:
            return
        if name == "ADDR":
            yield from find.address()
        elif name == "EXEC" or (name in ("VCCZ", "EXECZ", "VCC") and find.find(name) is None):
            reg = a.vcc if name.startswith("VCC") else a.exec
            yield from find.mask(reg, name, certain=certain)
        elif name == "SCC":
            yield find.scc(certain=certain)
        elif name == "PC":
            yield find.pc(certain)
        elif name == "M0":
            yield from find.scalar(a.m0, 1, role="M0", certain=certain)
        elif name in ("MODE_IEEE", "PRIV", "TBA"):
            yield find.hwreg({"MODE_IEEE": find.special.mode, "PRIV": find.special.privilege}.get(name, 16), certain)
        else:
            yield from self.read_operand(name, certain)

    def read_operand(self, name: str, certain: bool) -> Iterator[Access]:
        op = self.find.find(name)
        if op is None:
            return
        lanes = Lanes.OTHER if name == "S0" and "DPP_CTRL" in self.inst.fields else self.own
        if name == "S0" and "LANE_SEL_0" in self.inst.fields:
            lanes = Lanes.OTHER
        yield from self.find.source(op, lanes, certain=certain)

    def kept_bits(self, name: str, row: Row) -> Iterator[Access]:
        """A destination of which some bits stay."""
        op = self.find.find(name, written=True)
        written = row.writes[name]
        if name == "M0":
            bits = spread(1, 1) & ~written.must
            yield from self.find.scalar(self.arch.m0, 1, use=Use.KEPT, role=name, bits=bits)
        elif op is None or op.kind not in VECTOR_KINDS:
            if op is not None:
                yield from self.find.source(op, self.own, use=Use.KEPT)
        elif not self.to_lds and self.stores(name):
            count = -(-written.width // 32)
            must = 0 if self.dpp_keeps_lanes() else written.must
            rest = ((1 << written.width) - 1) & spread(1, count) & ~must
            if rest:
                yield from self.find.source(op, self.own, use=Use.KEPT, bits=rest)

    def kept_lanes(self, row: Row) -> Iterator[Access]:
        """Destinations that may stay, whole or in part: written on some paths only; lanes that DPP leaves out;
        halves of registers that SDWA and 16-bit results leave alone."""
        for name, written in row.writes.items():
            if name not in row.kept:
                yield from self.kept_place(name, written)
        for use in row.registers:
            if use.is_write and use.file == "VGPR" and not (use.certain and use.own):
                access = self.numbered_vector(use)
                if not access.dynamic:
                    yield replace(access, use=Use.KEPT)

    def kept_place(self, name: str, written: Written) -> Iterator[Access]:
        certain = self.is_certain(name, written)
        if name in STATE:
            yield from (replace(a, use=Use.KEPT) for a in self.write_state(name, written) if not certain)
            return
        op = self.find.find(name, written=True)
        if op is None or self.to_lds or not self.stores(name):
            return
        if op.kind not in VECTOR_KINDS:
            yield from self.find.source(op, self.own, use=Use.KEPT) if not certain else ()
            return
        count, bits = self.find.stored(op, written.width, written.may)
        whole = self.dpp_keeps_lanes() or not certain
        rest = spread(1, count) if whole else spread(1, count) & ~bits
        if rest:
            yield from self.find.source(replace(op, bits=32 * count), self.own, use=Use.KEPT, bits=rest)

    def is_certain(self, name: str, written: Written) -> bool:
        """Whether a place is written on every path. Outside of a trap handler SCC stays where the result would go
        to a trap temporary."""
        trap = range(self.arch.ttmp, self.arch.ttmp + self.arch.n_ttmp)
        kept = name == "SCC" and any(o.is_written and o.kind is Kind.SGPR and o.reg in trap for o in self.find.operands)
        return written.must == written.may and not kept

    def dpp_keeps_lanes(self) -> bool:
        """Whether DPP may leave lanes alone: those its masks take out, and those without a source."""
        f = self.inst.fields
        if "DPP_CTRL" not in f:
            return False
        return f["ROW_MASK"] != 15 or f["BANK_MASK"] != 15 or not f["BOUND_CTRL"]

    def read_mask(self, name: str, certain: bool) -> Iterator[Access]:
        op = self.find.find(name)
        if op is not None and op.kind is Kind.SGPR:
            yield from self.find.mask(op.reg, name, field=op.field, certain=certain)
        elif op is None or op.kind is not Kind.CONST:
            yield from self.find.mask(self.arch.exec if name == "EXEC" else self.arch.vcc, name, certain=certain)

    def modified(self, row: Row) -> bool:
        """Whether OMOD or CLAMP act on a float result, as MODE says."""
        f = self.inst.fields
        if not (f.get("OMOD") or f.get("CLAMP")) or "wmma" in row.actions or self.inst.name.startswith("V_BITOP3"):
            return False
        return any(o.role == "D0" and o.fmt.startswith(("f", "bf")) for o in self.find.operands)

    def matrix_operand(self, op: Operand) -> Iterator[Access]:
        """What a product reads of an operand; a result in halves of registers keeps the others."""
        op, bits = self.matrix_bits(op)
        if op.is_read:
            yield from self.find.source(op, self.own, bits=bits)
        rest = spread(1, -(-op.bits // 32)) & ~bits
        if op.is_written and rest:
            yield from self.find.source(op, self.own, use=Use.KEPT, bits=rest)

    def matrix_bits(self, op: Operand) -> tuple[Operand, int]:
        """(a matrix operand as long as waves of this size have it, its bits). 16-bit sums of which each register
        holds one lie in one half of it."""
        if op.bits > 32 and op.fmt.startswith(self.find.special.shared) and self.wave_lanes == 64:
            op = replace(op, bits=op.bits // 2)
        per_lane = 16 * 16 // self.wave_lanes
        halves = op.role in ("D0", "S2") and op.fmt in ("wmma_dc_f16", "wmma_dc_bf16") and op.bits >= 32 * per_lane
        if not halves:
            return op, (1 << op.bits) - 1
        half = 0xFFFF << 16 * (self.inst.fields["OP_SEL"] >> 2 & 1)
        return op, sum(half << 32 * i for i in range(per_lane))

    # ---- writes

    def writes(self, row: Row) -> Iterator[Access]:
        for name, written in row.writes.items():
            if name in STATE:
                yield from self.write_state(name, written)
                continue
            op = self.find.find(name, written=True)
            if op is not None and self.stores(name) and not self.to_lds:
                certain = written.must == written.may and not self.dpp_keeps_lanes()
                yield from self.find.result(op, written.width, written.may, self.own, certain)
        for name, certain in row.mask_writes.items():
            yield from self.write_mask(name, certain)
        for use in row.registers:
            if use.is_write:
                yield from self.by_number(use)
        if "wmma" in row.actions:
            for o in self.find.operands:
                if o.is_written and o.kind in VECTOR_KINDS:
                    result, bits = self.matrix_bits(o)
                    yield from self.find.source(result, self.own, bits=bits)

    def write_state(self, name: str, written: Written) -> Iterator[Access]:
        find, a, certain = self.find, self.arch, self.is_certain(name, written)
        if name == "SCC":
            yield find.scc(certain=certain)
        elif name == "PC":
            yield find.pc(certain)
        elif name == "PRIV":
            yield find.hwreg(find.special.privilege, certain)
        elif name == "M0":
            yield from find.scalar(a.m0, 1, role="M0", bits=written.may, certain=certain)
        else:
            yield from find.mask(a.vcc if name == "VCC" else a.exec, name, certain=certain)

    def write_mask(self, name: str, certain: bool) -> Iterator[Access]:
        op = None if name == "EXEC" else self.find.find(name, written=True)
        if op is None:
            yield from self.find.mask(self.arch.exec if name == "EXEC" else self.arch.vcc, name, certain=certain)
        elif op.reg < N_SGPRS:  # numbers of no register take no result
            yield from self.find.mask(op.reg, name, field=op.field, certain=certain)

    def stores(self, name: str) -> bool:
        """Whether RETURN_DATA is written: atomics of vector memory say so by a bit."""
        memory = self.find.memory
        if name != "RETURN_DATA" or memory is None or memory.segment == "lds" or not self.is_atomic:
            return True
        return memory.returns

    @property
    def is_atomic(self) -> bool:
        """Whether the row reads and writes one address."""
        if self.row is None:
            return "_ATOMIC_" in self.inst.name
        loads = {(u.space, u.address) for u in self.row.memory if not u.is_write}
        return any(u.is_write and (u.space, u.address) in loads for u in self.row.memory)

    # ---- registers by number

    def by_number(self, use: RegUse) -> Iterator[Access]:
        match use.file:
            case "VGPR":
                yield self.numbered_vector(use)
            case "SGPR":
                yield self.numbered_scalar(use)
            case "HWREG":
                yield from self.numbered_hwreg(use)
            case _:
                file = File[use.file]
                yield Access(file, 0, 1, spread(1, 1), certain=use.certain, dynamic=True, name=use.file.lower())

    def numbered_vector(self, use: RegUse) -> Access:
        lanes = self.own if use.own else Lanes.OTHER
        field, reg = self.number(use.index.base if use.index is not None else "")
        op = next((o for o in self.find.operands if o.field == field), None)
        role = op.role if op is not None else ""
        if use.index is None or use.index.is_open or not field:
            access = self.find.vector(File.VGPR, 0, N_VGPRS, spread(1, N_VGPRS), lanes, role=role, field=field, certain=False)
            return replace(access, dynamic=True, name="any vgpr")
        count = use.index.hi - use.index.lo + 1
        file = File.AGPR if op is not None and op.kind is Kind.AGPR else File.VGPR
        return self.find.vector(file, reg + use.index.lo, count, spread(1, count), lanes, role=role, field=field,
                                certain=use.certain)

    def number(self, base: str) -> tuple[str, int]:
        """(field, register number) of a place that numbers registers."""
        for field in NUMBER_FIELDS.get(base, ()):
            if field in self.inst.fields:
                return field, self.inst.fields[field] % N_VGPRS
        return "", 0

    def numbered_scalar(self, use: RegUse) -> Access:
        field, _ = self.number(use.index.base if use.index is not None else "")
        return Access(File.SGPR, 0, N_SGPRS, spread(1, N_SGPRS), field=field, certain=False, dynamic=True, name="any sgpr")

    def numbered_hwreg(self, use: RegUse) -> Iterator[Access]:
        if use.index is None:
            return
        named = use.index.base == "SIMM16"
        number = self.inst.fields["SIMM16"] & 63 if named else use.index.lo
        yield self.find.hwreg(number, use.certain)
        if named and number in self.find.special.views:  # the register is a view of these
            yield self.find.scc(certain=use.certain)
            if not use.is_write:
                for reg, role in ((self.arch.exec, "EXECZ"), (self.arch.vcc, "VCCZ")):
                    yield from self.find.mask(reg, role, certain=use.certain)

    # ---- memory

    def memory(self, row: Row) -> Iterator[Memory]:
        found = addresses(row)
        lanes = Lanes.UNIFORM if segment(self.inst) == "scalar" or row.scope == "wave" else self.own
        for space in dict.fromkeys(s for s, _ in found):
            reads, writes = found.get((space, False), []), found.get((space, True), [])
            uses = reads or writes
            known = space != "FORMAT" and all(u.many for u in uses)
            size = sum(u.bits * u.many for u in uses) // 8 if known else None
            where = self.data_share if space == "LDS" else segment(self.inst) or "lds"
            atomic = self.is_atomic and bool(reads) and bool(writes)
            yield Memory(where, bool(reads), bool(writes), size, lanes, atomic, atomic and self.returns(row),
                         any(u.certain for u in uses))
        if self.to_lds:
            loaded = sum(u.bits for u in found.get(("MEM", False), ())) // 8
            yield Memory("lds", False, True, max(4, loaded) if loaded else None, lanes)  # whole dwords

    @property
    def data_share(self) -> str:
        """A bit of DS instructions chooses the data share of the whole device."""
        return "gds" if self.inst.fields.get("GDS") else "lds"

    def returns(self, row: Row) -> bool:
        name = next((n for n in ("RETURN_DATA", "SDATA", "D0") if n in row.writes), "")
        return bool(name) and self.stores(name) and self.find.find(name, written=True) is not None

    # ---- instructions without a row

    def listed(self, written: bool) -> Iterator[Access]:
        """Accesses as the operand list has them."""
        for o in self.find.operands:
            if (o.is_written if written else o.is_read) and o.role not in ("VADDR", "OFFSET"):
                yield from self.listed_operand(o, written)
        if written:
            return
        if self.inst.base in IMAGES:
            yield from self.image_address()
        elif self.find.memory is not None and self.find.memory.segment != "lds":
            fields = {o.field for o in self.table.operands}
            yield from (a for a in self.find.address() if a.implicit or a.field in fields)
        if self.exec is Exec.MASKED:
            yield from self.find.mask(self.arch.exec, "EXEC", use=Use.MASK)

    def listed_operand(self, op: Operand, written: bool) -> Iterator[Access]:
        f, name = self.inst.fields, self.inst.name
        if op.role in ("VDATA", "DATA", "RETURN_DATA") and self.inst.base in IMAGES:
            op = replace(op, bits=32 * image_data_registers(name, f.get("DMASK", 0), f.get("D16", 0), f.get("TFE", 0)))
        if written and op.role == "RETURN_DATA" and self.inst.base in IMAGES and not self.image_returns():
            return
        if op.role in ("S0", "S1", "S2", "S3") and "EN" in f and not f["EN"] >> int(op.role[1]) & 1:
            return  # a component that is not exported
        use = Use.ADDRESS if op.role in ("SRSRC", "SSAMP") else Use.VALUE
        yield from self.find.source(op, self.own, use=use)

    def image_returns(self) -> bool:
        f = self.inst.fields
        return bool(f.get("GLC", 0) or f.get("TH", 0) & 1)

    def image_address(self) -> Iterator[Access]:
        """VGPRs of coordinates: one run, or a field for each of the first."""
        f, name = self.inst.fields, self.inst.name
        dim, a16 = f.get("DIM", 0), f.get("A16", 0)
        if "VADDR" in f:
            runs = {"VADDR": image_address_registers(name, dim, a16)}
        else:
            fields = sum(1 for n in f if n.startswith("VADDR"))
            runs = {f"VADDR{i}": n for i, n in enumerate(address_registers(name, dim, a16, fields))}
        for field, count in runs.items():
            yield self.find.vector(File.VGPR, f[field], count, spread(1, count), Lanes.OWN, use=Use.ADDRESS,
                                   role="VADDR", field=field)

    def listed_memory(self) -> Iterator[Memory]:
        name, base = self.inst.name, self.inst.base
        if name.startswith(GDS_NAMES):
            yield Memory("gds", True, True, None, Lanes.UNIFORM, atomic=True)
        elif base in IMAGES:
            atomic, store = "_ATOMIC_" in name, "_STORE" in name
            if "RESINFO" in name or "GET_LOD" in name:
                return
            yield Memory("image", not store, store or atomic, None, self.own, atomic, atomic and self.image_returns())
        elif segment(self.inst) in ("global", "flat", "scratch", "buffer", "scalar"):
            roles = {o.role for o in self.table.operands if o.is_written}
            atomic, loads = self.is_atomic, bool(roles & {"VDATA", "RETURN_DATA", "SDATA"})
            yield Memory(segment(self.inst), loads or atomic, not loads or atomic, None, self.own, atomic, loads and atomic)
        elif base in ("DS", "VDS", "LDSDIR", "VDSDIR"):
            yield Memory(self.data_share, True, base in ("DS", "VDS"), None, self.own)

    # ---- the rest

    def beyond(self, written: bool) -> Iterator[Access]:
        """Accesses of reviewed rows."""
        for extra in extras(self.inst.name):
            if extra.when and not self.inst.fields.get(extra.when):
                continue
            for what in extra.writes if written else extra.reads:
                yield from self.beyond_one(extra, what)
        by_m0 = self.to_lds or (self.data_share == "gds" and not extras(self.inst.name))
        if by_m0 and not written:  # where in LDS; base and size of GDS
            yield from self.find.scalar(self.arch.m0, 1, use=Use.ADDRESS, role="M0")
        yield from self.status_word(written)

    def status_word(self, written: bool) -> Iterator[Access]:
        """TFE of buffers: one more register after the data, given a value when a page is missing."""
        op = next((o for o in self.find.operands if o.field == "VDATA" and o.is_written), None)
        if op is None or not self.inst.fields.get("TFE") or segment(self.inst) != "buffer" or self.to_lds:
            return
        status = replace(op, reg=op.reg + -(-op.bits // 32), bits=32, role="STATUS")
        use = Use.VALUE if written else Use.KEPT
        yield from self.find.source(status, self.own, use=use, certain=not written)

    def beyond_one(self, extra: Extra, what: str) -> Iterator[Access]:
        find, a = self.find, self.arch
        if what == "PC":
            yield find.pc(extra.certain)
        elif what == "EXEC":
            yield from find.mask(a.exec, what, use=Use.MASK, certain=extra.certain)
        elif what == "MODE":
            yield find.hwreg(find.special.mode, extra.certain)
        elif what in ("M0", "TTMP"):
            yield from find.scalar(*((a.m0, 1) if what == "M0" else (a.ttmp, 2)), role=what, certain=extra.certain)
        else:
            yield from (access for o in find.operands if o.role == what for access in find.source(o, self.own))

    def flow(self) -> tuple[Flow, int | None]:
        """Where the wave goes on, and how far that is."""
        flags, name = self.table.flags, self.inst.name
        actions = self.row.actions if self.row is not None else ()
        if "end" in flags or "endpgm" in actions:
            return Flow.END, None
        if "trap" in actions or "illegal" in actions:
            return Flow.TRAP, None
        if self.row is None or "PC" not in self.row.writes:
            return Flow.NEXT, None
        links = any(o.role == "D0" for o in self.find.operands)
        label = any(o.type == "label" for o in self.table.operands)
        if not label:
            return (Flow.INDIRECT_CALL if links and name.startswith("S_SWAPPC") else Flow.INDIRECT), None
        offset = self.inst.fields["SIMM16"]
        distance = 4 + 4 * (offset - (offset >> 15 << 16))
        if "cond_branch" in flags:
            return Flow.COND_BRANCH, distance
        return Flow.CALL if links else Flow.BRANCH, distance

    def barrier(self) -> str:
        actions = self.row.actions if self.row is not None else ()
        return next((BARRIERS[a] for a in actions if a in BARRIERS), "")
