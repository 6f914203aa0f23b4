"""Operand forms: what of an instruction is compiled into its handler, and what its record carries.

A `Form` names one native function. Register numbers, immediates and constants are data of the record
(`Bound.values`), so that few forms serve many instructions; modifiers, operand kinds, wave size,
DPP and the bits of MODE that matter are part of the form.

Units:   values of slots are byte offsets into the wave, or immediates.
Errors:  Unmodelled for operand forms not built.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from stuntgpu.emu import formats, layout, state
from stuntgpu.emu.dpp import Dpp, dpp_of
from stuntgpu.isa.arch import arch
from stuntgpu.isa.errors import Unmodelled
from stuntgpu.isa.inst import WHOLE, Inst, Kind, Operand
from stuntgpu.isa.ir import (
    PLACES,
    Do,
    LaneBit,
    Op,
    Semantics,
    Set,
    SetLaneBit,
    Var,
    dumps,
    expressions,
    statements,
)
from stuntgpu.isa.memory_fields import MemoryFields, memory_fields, offset16, segment
from stuntgpu.isa.operands import operands
from stuntgpu.isa.semantics import RAW_MODIFIERS, is_atomic, semantics

#: Handlers are functions of this prefix and the digest of their form.
PREFIX = "h_"

#: Places that are fields: part of the form. OFFSET0 and OFFSET1 are data.
_FIELDS = {
    "OPSEL": "OP_SEL", "OPSEL_HI": "OP_SEL_HI", "NEG": "NEG", "NEG_HI": "NEG_HI", "OMOD": "OMOD",
    "ABS": "ABS", "CLAMP": "CLAMP", "ATTR": "ATTR", "ATTR_CHAN": "ATTR_CHAN",
}  # fmt: skip

_NUMBERS = {
    "SRC0": ("VSRC0", "SRC0", "SSRC0", "ADDR"),
    "SRC1": ("SRC1", "VSRC1", "SSRC1", "DATA0"),
    "SRC2": ("SRC2", "DATA1"),
    "VDST": ("VDST",),
    "SDST": ("SDST",),
}

#: Constant of a form whose instruction does not set SCC after all.
KEEPS_SCC = "keeps SCC"

#: Places the wave's state gives.
STATE = frozenset(["EXEC", "SCC", "M0", "VCCZ", "EXECZ", "PC", "WAVE32", "LANES", "LANE", "MODE_IEEE", "PRIV"])


@dataclass(frozen=True, slots=True)
class Slot:
    """One value of the record.

    kind    "v" VGPR, "s" scalar register or constant by offset, "m" lane mask by offset, "n" number,
            "scc", "vccz", "execz" state (no data).
    bits    size of the operand. half.. modifiers as in `Operand`, False and 0 where they do not apply.
    fmt     element format where modifiers, CLAMP or OMOD need it, else "".
    select  SDWA, with `sext` (a source) or `unused` (a result), as in `Operand`.
    index_bit  in GPR index mode: the bit of M0 that lets M0[7:0] count in the register number.
    """

    name: str
    kind: str
    bits: int = 32
    fmt: str = ""
    half: int = 0
    half_hi: int = 1
    neg: bool = False
    neg_hi: bool = False
    abs: bool = False
    packed: bool = False
    select: int = WHOLE
    sext: bool = False
    unused: int = 0
    index_bit: int | None = None


@dataclass(frozen=True, slots=True)
class Form:
    """What a handler is compiled from. `mode`: MODE bits that its float operations look at."""

    arch: str
    name: str
    lanes: int
    mode: int
    slots: tuple[Slot, ...]
    constants: tuple[tuple[str, int], ...]
    segment: str
    omod: int
    clamp: int
    returns: bool
    dpp: Dpp | None

    def slot(self, name: str) -> int:
        """Number of a slot, -1 when the form has none of the name."""
        for i, s in enumerate(self.slots):
            if s.name == name:
                return i
        return -1

    def digest(self) -> str:
        """Identifies the function: the form and the text of its row."""
        return _digest(self)


def symbol(form: Form) -> str:
    """Name of the handler of a form."""
    return PREFIX + form.digest()


@lru_cache(maxsize=16384)
def _digest(form: Form) -> str:
    return hashlib.sha256((repr(form) + _row_text(form.arch, form.name)).encode()).hexdigest()[:40]


@lru_cache(maxsize=8192)
def _row_text(arch: str, name: str) -> str:
    return dumps(semantics(arch, name))


@dataclass(frozen=True, slots=True)
class Bound:
    """A form with the values of one instruction's slots."""

    form: Form
    values: tuple[int, ...]


#: Gives the wave offset of a constant of n dwords.
Pool = Callable[[int, int], int]


# ---------------------------------------------------------------- which MODE bits matter


@dataclass(frozen=True, slots=True)
class _Row:
    """Facts of a row, worked out once."""

    sem: Semantics
    mode_mask: int
    reads: tuple[str, ...]
    masks_in: tuple[str, ...]
    writes: tuple[str, ...]
    masks_out: tuple[str, ...]
    is_atomic: bool
    is_matrix: bool
    is_relative: bool  # register numbers are computed at run time
    is_typed: bool  # memory has a format


_RELATIVE = ("MOVREL", "SWAPREL", "GPR_IDX")

_MODE_OF = {"f32": 0x33, "bf16": 0x33, "f16": 0xCC | 1 << state.MODE_FP16_OVFL, "f64": 0xCC}


def _mode_mask(sem: Semantics) -> int:
    mask = 0
    for x in expressions(sem.body):
        if isinstance(x, Op):
            for part in x.op.replace(".", "_").split("_"):
                mask |= _MODE_OF.get(part, 0)
            if x.op.startswith("f32_to_fp8") or x.op.startswith("f32_to_bf8"):
                mask |= 1 << state.MODE_FP16_OVFL
    return mask


@lru_cache(maxsize=8192)
def row(arch: str, name: str) -> _Row:
    """Raises Unmodelled for an instruction without semantics."""
    sem = semantics(arch, name)
    exprs, stmts = list(expressions(sem.body)), list(statements(sem.body))
    reads = dict.fromkeys(x.name for x in exprs if isinstance(x, Var) and x.name in PLACES)
    masks_in = dict.fromkeys(x.name for x in exprs if isinstance(x, LaneBit))
    writes = dict.fromkeys(s.name for s in stmts if isinstance(s, Set) and s.name in PLACES)
    masks_out = dict.fromkeys(s.name for s in stmts if isinstance(s, SetLaneBit))
    is_matrix = any(isinstance(s, Do) and s.action == "wmma" for s in stmts)
    return _Row(sem, _mode_mask(sem), tuple(reads), tuple(masks_in), tuple(writes), tuple(masks_out),
                is_atomic(sem), is_matrix, any(part in name for part in _RELATIVE),
                "_FORMAT_" in name)


# ---------------------------------------------------------------- binding an instruction


class Binder:
    """Works out form and values of one decoded instruction."""

    def __init__(self, inst: Inst, lanes: int, mode: int, pool: Pool) -> None:
        self.inst, self.lanes, self.pool = inst, lanes, pool
        self.row = row(inst.arch, inst.name)
        self.operands = operands(inst)
        self.wave = state.wavefront(inst.arch)
        self.full_mode, self.mode = mode, mode & self.row.mode_mask
        self.raw = inst.name in RAW_MODIFIERS
        indexing = self.wave.has_gpr_index and mode >> state.MODE_GPR_INDEX & 1
        self.index_bits = state.INDEX_BITS if indexing and inst.base.startswith("VOP") else {}
        self.slots: list[Slot] = []
        self.values: list[int] = []
        self.constants: list[tuple[str, int]] = []
        self.done: set[tuple[str, int]] = set()

    def bind(self) -> Bound:
        inst = self.inst
        if inst.fields.get("TFE") or inst.fields.get("LWE"):
            raise Unmodelled(inst.arch, f"{inst.name} with TFE or LWE", "emu/forms.py")
        if inst.fields.get("GDS"):
            raise Unmodelled(inst.arch, f"{inst.name} on global data share", "emu/forms.py")
        transposes = any(isinstance(s, Do) and s.action == "transpose" for s in self.row.sem.body)
        if transposes and self.lanes != arch(inst.arch).wave_sizes[0]:  # a lane of longer waves has fewer registers
            raise Unmodelled(inst.arch, f"{inst.name} in waves of {self.lanes}", "emu/forms.py")
        if self.row.is_matrix:
            self.matrix()
        for name in self.row.reads:
            self.read(name)
        for name in self.row.masks_in:
            self.mask_in(name)
        for name in (*self.row.writes, *self.row.masks_out):
            self.write(name)
        if len(self.slots) > layout.N_OPS:
            raise Unmodelled(inst.arch, f"{len(self.slots)} operands of {inst.name}", "emu/forms.py")
        return Bound(self._form(), tuple(self.values))

    def _form(self) -> Form:
        f = self.inst.fields
        floats = any(s.fmt for s in self.slots if s.name.startswith("written "))
        omod, clamp = (f.get("OMOD", 0), f.get("CLAMP", 0)) if floats else (0, 0)
        return Form(self.inst.arch, self.inst.name, self.lanes, self.mode, tuple(self.slots),
                    tuple(self.constants), segment(self.inst), omod, clamp, self.returns(),
                    dpp_of(self.inst.arch, f, self.lanes))

    def add(self, slot: Slot, value: int) -> None:
        self.slots.append(slot)
        self.values.append(value & 0xFFFF_FFFF)

    def find(self, role: str, written: bool = False) -> Operand | None:
        found = [o for o in self.operands if o.role == role]
        for o in found:
            if o.is_written if written else o.is_read:
                return o
        return None if written or not found else found[0]

    # ---- reading

    def read(self, name: str) -> None:
        f = self.inst.fields
        if name == "ADDR":
            self.address()
        elif name in _FIELDS:
            self.constants.append((name, f.get(_FIELDS[name], 0)))
        elif name in ("OFFSET0", "OFFSET1"):
            self.add(Slot(name, "n"), f[name])
        elif name == "OFFSET":
            self.add(Slot(name, "n"), offset16(f))
        elif name in _NUMBERS:
            self.add(Slot(name, "n"), self.number(name))
        elif name == "SIMM32":
            self.add(Slot(name, "n"), self.literal())
        else:
            self.operand(name)

    def operand(self, name: str) -> None:
        op = self.find(name)
        if op is None or name in STATE:
            if name in STATE:
                return
            if name == "VCC":
                self.add(Slot(name, "s", 64 if self.lanes == 64 else 32), layout.VCC)
                return
            raise Unmodelled(self.inst.arch, f"place {name} of {self.inst.name}", "emu/forms.py")
        packed = self.packed(op)
        kind, value = self.locate(op)
        index_bit = self.index_bit(op)
        if self.raw:
            self.add(Slot(name, kind, op.bits, index_bit=index_bit), value)
            return
        is_float = op.fmt.startswith(("f", "bf"))
        fmt = op.fmt if (op.neg or op.neg_hi or op.abs) and (is_float or not packed) else ""
        moved = packed and (op.half, op.half_hi) != (0, 1)
        self.add(Slot(name, kind, op.bits, fmt, op.half, op.half_hi if packed else 1, bool(fmt) and op.neg,
                      bool(fmt) and op.neg_hi, bool(fmt) and op.abs, moved or (packed and bool(fmt)),
                      op.select if name in ("S0", "S1") else WHOLE, name in ("S0", "S1") and op.sext,
                      index_bit=index_bit), value)

    def packed(self, op: Operand) -> bool:
        """Whether OP_SEL and OP_SEL_HI pick the two parts of an operand."""
        pair = (op.bits == 32 and op.fmt.endswith("x2")) or op.fmt == "f32x2"
        return self.inst.base == "VOP3P" and pair and op.role != "D0"

    def index_bit(self, op: Operand) -> int | None:
        return self.index_bits.get(op.role) if op.kind is Kind.VGPR else None

    def matrix(self) -> None:
        """Operands of a matrix instruction: whole registers, modifiers known to the handler."""
        for name in ("S0", "S1", "S2", "SCALE0", "SCALE1"):
            op = self.find(name)
            if op is None:  # only some have scales
                continue
            kind, value = self.locate(op)
            self.add(Slot(name, kind, op.bits, neg=op.neg, neg_hi=op.neg_hi, index_bit=self.index_bit(op)), value)
        for name in ("OPSEL", "OPSEL_HI", "NEG", "CLAMP"):
            self.constants.append((name, self.inst.fields.get(_FIELDS[name], 0)))
        self.constants += [(name, self.inst.fields[name]) for name in ("CBSZ", "ABID", "BLGP") if name in self.inst.fields]
        self.write("D0")

    def locate(self, op: Operand) -> tuple[str, int]:
        """Slot kind and value of an operand that is read."""
        n = min(4, max(1, -(-op.bits // 32)))  # inline constants of longer operands: the low part is all
        if op.kind in (Kind.VGPR, Kind.AGPR):
            return "v", layout.vgpr(state.register(op), self.lanes)
        if op.kind is Kind.IMM:
            return "n", op.value
        if op.kind is Kind.CONST:
            return ("m" if op.bits == 1 else "s"), self.constant(op.value, 2 if op.bits == 1 else n)
        if state.reads_zero(self.wave, op.reg):
            return ("m" if op.bits == 1 else "s"), self.constant(0, max(n, 2))
        if op.reg in state.APERTURES:
            return "s", self.constant(state.APERTURES[op.reg], 2)
        special = {state.VCCZ: "vccz", state.EXECZ: "execz", state.SCC: "scc"}.get(op.reg)
        if special is not None:
            return special, 0
        if op.bits == 1:
            state.check_mask(self.inst.arch, op.reg, self.lanes)
        if op.reg >= state.N_SGPRS:
            raise Unmodelled(self.inst.arch, f"scalar operand {op.reg}", "emu/forms.py")
        return ("m" if op.bits == 1 else "s"), op.reg * 4

    def scalars(self, reg: int, n: int) -> int:
        """Offset of n scalar registers of an address or descriptor."""
        if state.reads_zero(self.wave, reg):
            return self.constant(0, n)
        return state.check_scalars(self.inst.arch, reg) * 4

    def constant(self, value: int, n: int) -> int:
        return self.pool(value & ((1 << 32 * n) - 1), n)

    def number(self, name: str) -> int:
        accumulators = {o.field for o in self.operands if o.kind is Kind.AGPR}
        for field in _NUMBERS[name]:
            if field in self.inst.fields:
                value = self.inst.fields[field] % state.N_VGPRS
                return value + state.N_VGPRS if field in accumulators else value
        raise Unmodelled(self.inst.arch, f"register number {name} of {self.inst.name}", "emu/forms.py")

    def literal(self) -> int:
        if self.inst.literal is None:
            raise Unmodelled(self.inst.arch, f"{self.inst.name} without its literal", "emu/forms.py")
        return self.inst.literal

    def mask_in(self, name: str) -> None:
        op = self.find(name)
        if name == "EXEC":
            return
        if op is not None and op.kind in (Kind.SGPR, Kind.CONST):
            self.add(Slot(f"bit {name}", "m", 1), self.locate(op)[1])
        else:
            self.add(Slot(f"bit {name}", "m", 1), layout.VCC)

    # ---- writing

    def write(self, name: str) -> None:
        if name == "SCC" and state.keeps_scc(self.inst, self.operands):
            self.constants.append((KEEPS_SCC, 1))
        if name in STATE:
            return
        op = self.find(name, written=True)
        if name in self.row.masks_out:
            value = layout.VCC if op is None else self.scalar_target(op)
            self.add(Slot(f"written bit {name}", "m", 1), value)
            return
        if name == "VCC" and op is None:
            self.add(Slot(f"written {name}", "s", self.lanes), layout.VCC)
            return
        if op is None or (name == "RETURN_DATA" and not self.returns()):
            return
        finishes = self.inst.fields.get("OMOD", 0) or self.inst.fields.get("CLAMP", 0)
        fmt = op.fmt if finishes and op.fmt.startswith(("f", "bf")) else ""
        if fmt:
            mask = _MODE_OF.get(fmt.partition("x")[0], 0)
            self.mode |= self.full_mode & mask
        if op.kind in (Kind.VGPR, Kind.AGPR):
            self.add(Slot(f"written {name}", "v", op.bits, fmt, op.half, select=op.select, unused=op.unused,
                          index_bit=self.index_bit(op)), layout.vgpr(state.register(op), self.lanes))
            if name == "VDATA" and self.inst.fields.get("LDS"):
                self.add(Slot("to lds", "n"), self.inst.fields["OFFSET"])
        else:
            self.add(Slot(f"written {name}", "s", op.bits, fmt), self.scalar_target(op))

    def scalar_target(self, op: Operand) -> int:
        if op.bits == 1:
            state.check_mask(self.inst.arch, op.reg, self.lanes)
        if state.drops_writes(self.wave, op.reg):
            return layout.SINK * 4
        return op.reg * 4

    def returns(self) -> bool:
        """Whether RETURN_DATA is written: vector memory atomics say so by a bit."""
        if not self.row.is_atomic or segment(self.inst) in ("", "lds"):
            return True
        return memory_fields(self.inst).returns

    # ---- addresses

    def address(self) -> None:
        if not segment(self.inst):
            raise Unmodelled(self.inst.arch, f"addresses of {self.inst.base}", "emu/forms.py")
        m = memory_fields(self.inst)
        match m.segment:
            case "lds":
                apart = {"OFFSET", "OFFSET0", "OFFSET1"} & set(self.row.reads)
                self.add(Slot("at vaddr", "v"), layout.vgpr(m.vaddr or 0, self.lanes))
                self.add(Slot("at offset", "n"), 0 if apart else m.offset)
            case "scalar":
                self._scalar_address(m)
            case "buffer":
                self._buffer_address(m)
            case _:
                self._flat_address(m)

    def _flat_address(self, m: MemoryFields) -> None:
        self.add(Slot("at offset", "n"), m.offset)
        wide = m.segment != "scratch"
        if m.saddr is not None or m.vaddr is None:
            bits = 64 if wide else 32
            if m.saddr is not None:
                self.add(Slot("at saddr", "s", bits), self.scalars(m.saddr, bits // 32))
            elif wide:
                self.add(Slot("at saddr", "s", bits), self.constant(0, 2))
        if m.vaddr is not None:
            bits = 64 if wide and m.saddr is None else 32
            self.add(Slot("at vaddr", "v", bits), layout.vgpr(m.vaddr, self.lanes))

    def _scalar_address(self, m: MemoryFields) -> None:
        buffer = "_BUFFER_" in self.inst.name
        bits = 128 if buffer else 64
        self.add(Slot("at sbase", "s", bits), self.scalars(m.base, bits // 32))
        self.add(Slot("at offset", "n"), m.offset)
        if m.soffset is not None:
            self.add(Slot("at soffset", "s"), self.scalars(m.soffset, 1))
            self.constants.append(("at scale", m.scale))

    def _buffer_address(self, m: MemoryFields) -> None:
        op = self.find("SOFFSET")
        if op is None:
            raise Unmodelled(self.inst.arch, f"{self.inst.name} without SOFFSET", "emu/forms.py")
        self.add(Slot("at srsrc", "s", 128), self.scalars(m.base, 4))
        kind, value = self.locate(op)
        self.add(Slot("at soffset", kind), value)
        self.add(Slot("at offset", "n"), m.offset)
        if self.row.is_typed and formats.has_own_format(self.inst.name):
            self.add(Slot("at format", "n"), formats.own_code(self.inst.fields))
        reg = m.vaddr or 0
        if m.index:
            self.add(Slot("at index", "v"), layout.vgpr(reg, self.lanes))
        if m.offen:
            self.add(Slot("at vaddr", "v"), layout.vgpr((reg + m.index) % state.N_VGPRS, self.lanes))


def bind(inst: Inst, lanes: int, mode: int, pool: Pool) -> Bound:
    """Form and slot values of an instruction. Raises Unmodelled."""
    skips = mode >> state.MODE_VSKIP & 1 and state.wavefront(inst.arch).has_vskip
    if skips and not inst.base.startswith("S"):
        return Bound(Form(inst.arch, "S_NOP", lanes, 0, (), (), "", 0, 0, True, None), ())
    return Binder(inst, lanes, mode, pool).bind()
