"""One decoded instruction as the reference executes it: places filled, body run, results stored.

A `Step` is built once per instruction and shared by all waves. `compute` reads and runs the body,
`commit` stores; a VOPD pair computes both halves before either commits.

Errors:  Unmodelled (from decode tables, semantics, operands) when the step is built.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from stuntgpu.emu import address as at
from stuntgpu.emu import formats, state
from stuntgpu.emu import operand as access
from stuntgpu.emu.dpp import Dpp, dpp_of
from stuntgpu.emu.interp import Body, Results, body_of
from stuntgpu.emu.lds_loads import store_to_lds, transpose
from stuntgpu.emu.matrix import wmma
from stuntgpu.emu.mfma import ENCODINGS as MFMA_ENCODINGS
from stuntgpu.emu.mfma import mfma
from stuntgpu.emu.wave import Wave
from stuntgpu.isa.arch import arch
from stuntgpu.isa.errors import Unmodelled
from stuntgpu.isa.inst import Inst, Kind, Operand
from stuntgpu.isa.ir import UNIFORM, Do, Semantics, statements
from stuntgpu.isa.memory_fields import MemoryFields, memory_fields, offset16
from stuntgpu.isa.memory_fields import segment as segment_of
from stuntgpu.isa.operands import operands
from stuntgpu.isa.semantics import RAW_MODIFIERS, is_atomic, semantics

Fill = Callable[[Wave], Any]
Commit = Callable[[Wave, Results], None]

#: Places that come from a microcode field of another name.
_FIELDS = {
    "OPSEL": "OP_SEL", "OPSEL_HI": "OP_SEL_HI", "NEG": "NEG", "NEG_HI": "NEG_HI", "OMOD": "OMOD",
    "ABS": "ABS", "CLAMP": "CLAMP", "OFFSET0": "OFFSET0", "OFFSET1": "OFFSET1", "ATTR": "ATTR", "ATTR_CHAN": "ATTR_CHAN",
}  # fmt: skip

#: Places that are register numbers, and the fields that may hold them.
_NUMBERS = {
    "SRC0": ("VSRC0", "SRC0", "SSRC0", "ADDR"),
    "SRC1": ("SRC1", "VSRC1", "SSRC1", "DATA0"),
    "SRC2": ("SRC2", "DATA1"),
    "VDST": ("VDST",),
    "SDST": ("SDST",),
}

_STATE: Mapping[str, Fill] = {
    "EXEC": lambda w: w.exec,
    "SCC": lambda w: w.scc,
    "M0": lambda w: w.sgprs[w.row.m0],
    "VCCZ": lambda w: w.vccz,
    "EXECZ": lambda w: int(w.exec == 0),
    "PC": lambda w: w.pc,
    "WAVE32": lambda w: int(w.lanes == 32),
    "LANES": lambda w: w.lanes,
    "MODE_IEEE": lambda w: w.mode_bits >> state.MODE_IEEE & 1,
    "PRIV": lambda w: 0,  # no trap handler runs here
    "VCC": lambda w: w.mask(state.VCC_LO),
}


@dataclass(frozen=True, slots=True)
class Step:
    """An instruction ready to run. `halves`: of a VOPD pair."""

    inst: Inst
    size: int
    halves: tuple[Half, ...]

    def run(self, w: Wave) -> None:
        """Execute for one wave; the PC moves on or jumps."""
        w.next_pc = w.pc + self.size
        results = [half.compute(w) for half in self.halves]
        for half, result in zip(self.halves, results, strict=True):
            half.commit(w, result)
        w.pc = w.next_pc


@dataclass(frozen=True, slots=True)
class Half:
    """One row's instruction: fills (place -> value), body, commits in order."""

    inst: Inst
    body: Body
    fills: tuple[tuple[str, Fill], ...]
    commits: tuple[Commit, ...]
    dpp: tuple[tuple[Dpp, Dpp], str] | None  # by wave size (32, 64); the place it moves
    segment: str
    is_atomic: bool
    operands: tuple[Operand, ...]

    def compute(self, w: Wave) -> Results:
        w.segment, w.atomic = self.segment, self.is_atomic
        places = {name: fill(w) for name, fill in self.fills}
        if self.body.scope == "wave":
            return self.body.fn(w, places, ())
        lanes = self._lanes(w, places)
        return self.body.fn(w, places, lanes)

    def _lanes(self, w: Wave, places: dict[str, Any]) -> Sequence[int]:
        """Active lanes; DPP moves the first source and may disable lanes."""
        if self.dpp is None:
            return w.active
        by_size, place = self.dpp
        values = places.get(place, [0] * w.lanes)  # V_CMP_F and the like read nothing
        places[place], mask = by_size[w.lanes == 64].apply(values, w.exec)
        return [lane for lane in range(w.lanes) if mask >> lane & 1]

    def commit(self, w: Wave, results: Results) -> None:
        for commit in self.commits:
            commit(w, results)
        if w.kept_back:
            w.flush_registers()
        while w.actions and w.actions[0][0] in _AFTER:
            action, args = w.actions.pop(0)
            _AFTER[action](w, self, args)


def _multiply(w: Wave, half: Half, args: Sequence[int]) -> None:
    multiply = mfma if half.inst.base in MFMA_ENCODINGS else wmma
    multiply(w, half.inst, half.operands)


def _check_lanes(w: Wave, inst: Inst) -> int:
    """Transposing loads give a lane of RDNA4's longer waves fewer registers."""
    if w.lanes != arch(inst.arch).wave_sizes[0]:
        raise Unmodelled(inst.arch, f"{inst.name} in waves of {w.lanes}", "emu/step.py")
    return w.lanes


def _transpose(w: Wave, half: Half, args: Sequence[int]) -> None:
    """The operand is what the load wrote."""
    transpose(w, next(o for o in half.operands if o.is_written), *args)


#: Actions on the vector registers an instruction names.
_AFTER: Mapping[str, Callable[[Wave, Half, Sequence[int]], None]] = {"wmma": _multiply, "transpose": _transpose}


# ---------------------------------------------------------------- building


def build(inst: Inst, index: int = 0) -> Step:
    """The step of a decoded instruction. index: M0 while MODE says that it shifts VGPR numbers. Raises Unmodelled."""
    return Step(inst, inst.size, tuple(_Builder(part, index).half() for part in inst.halves))


def indexed(op: Operand, index: int) -> Operand:
    """An operand in GPR index mode: M0[7:0] is added to its VGPR number where M0[15:12] says so."""
    bit = state.INDEX_BITS.get(op.role)
    if op.kind is not Kind.VGPR or bit is None or not index >> bit & 1:
        return op
    return replace(op, reg=(op.reg + (index & 0xFF)) % state.N_VGPRS)


class _Builder:
    def __init__(self, inst: Inst, index: int) -> None:
        self.inst = inst
        self.sem: Semantics = semantics(inst.arch, inst.name)
        self.body = body_of(inst.arch, inst.name)
        self.operands = tuple(indexed(o, index) for o in operands(inst))
        self.row = state.wavefront(inst.arch)
        self.raw = inst.name in RAW_MODIFIERS
        self.lane = self.body.scope == "lane"

    def half(self) -> Half:
        inst = self.inst
        if inst.fields.get("TFE") or inst.fields.get("LWE"):
            raise Unmodelled(inst.arch, f"{inst.name} with TFE or LWE", "emu/step.py")
        if inst.fields.get("GDS"):
            raise Unmodelled(inst.arch, f"{inst.name} on global data share", "emu/step.py")
        fills = [(name, self.fill(name)) for name in self.body.reads if name != "LANE"]
        fills += [(f"bit {name}", self.fill_mask(name)) for name in self.body.bits_in]
        if any(isinstance(s, Do) and s.action == "transpose" for s in statements(self.sem.body)):
            fills.insert(0, ("lanes", lambda w: _check_lanes(w, inst)))
        keeps_scc = state.keeps_scc(inst, self.operands)
        commits = [self.commit(name, width) for name, width in self.body.writes.items() if name != "SCC" or not keeps_scc]
        commits += [self.commit_mask(name) for name in self.body.bits_out]
        segment = segment_of(inst)
        atomic = is_atomic(self.sem)
        return Half(inst, self.body, tuple(fills), tuple(c for c in commits if c), self.dpp(), segment, atomic,
                    self.operands)

    # ---- reading

    def find(self, role: str, written: bool = False) -> Operand | None:
        """The operand of a role; when several have it, the one that is read (written)."""
        found = [o for o in self.operands if o.role == role]
        for o in found:
            if o.is_written if written else o.is_read:
                return o
        return None if written or not found else found[0]

    def fill(self, name: str) -> Fill:
        if name == "ADDR":
            return address_fill(self.inst, self.body, self.operands)
        if name in _FIELDS:
            return _constant(self.inst.fields.get(_FIELDS[name], 0))
        if name == "OFFSET":
            return _constant(offset16(self.inst.fields))
        if name in _NUMBERS:
            return _constant(self.number(name))
        op = self.find(name)
        if name == "SIMM32":
            return _constant(self.literal())
        if op is None or name in _STATE:
            if name not in _STATE:
                raise Unmodelled(self.inst.arch, f"place {name} of {self.inst.name}", "emu/step.py")
            return _STATE[name]
        if not self.lane or name in UNIFORM:
            return access.scalar_source(self.inst, op)
        return access.lane_fetch(self.inst, op, raw=self.raw, packed=self.packed(op))

    def packed(self, op: Operand) -> bool:
        """Whether OP_SEL and OP_SEL_HI pick the two parts of an operand."""
        pair = (op.bits == 32 and op.fmt.endswith("x2")) or op.fmt == "f32x2"
        return self.inst.base == "VOP3P" and pair and op.role != "D0"

    def literal(self) -> int:
        if self.inst.literal is None:
            raise Unmodelled(self.inst.arch, f"{self.inst.name} without its literal", "emu/step.py")
        return self.inst.literal

    def number(self, name: str) -> int:
        """Register number in a field; VGPRs of 9-bit fields count from 256, AccVGPRs of the file as well."""
        accumulators = {o.field for o in self.operands if o.kind is Kind.AGPR}
        for field in _NUMBERS[name]:
            if field in self.inst.fields:
                value = self.inst.fields[field] % state.N_VGPRS
                return value + state.N_VGPRS if field in accumulators else value
        raise Unmodelled(self.inst.arch, f"register number {name} of {self.inst.name}", "emu/step.py")

    def fill_mask(self, name: str) -> Fill:
        op = self.find(name)
        if op is not None and op.kind is Kind.SGPR:
            reg = op.reg
            return lambda w: w.mask(reg)
        if op is not None and op.kind is Kind.CONST:
            return _constant(op.value)
        return (lambda w: w.exec) if name == "EXEC" else (lambda w: w.mask(state.VCC_LO))

    def dpp(self) -> tuple[tuple[Dpp, Dpp], str] | None:
        small = dpp_of(self.inst.arch, self.inst.fields, 32)
        large = dpp_of(self.inst.arch, self.inst.fields, 64)
        return None if small is None or large is None else ((small, large), "S0")

    # ---- writing

    def commit(self, name: str, width: int) -> Commit | None:
        special = _SETTERS.get(name)
        if special is not None:
            return special
        op = self.find(name, written=True)
        if op is None or (name == "RETURN_DATA" and not self.returns()):
            return None
        if name == "VDATA" and self.inst.fields.get("LDS"):
            return lambda w, r: store_to_lds(w, self.inst, r[name], width)
        if not self.lane:
            return self.commit_scalar(name, op, width)
        store, finish = access.lane_store(self.inst, op, width), access.finish(self.inst, op, width)
        if finish is None:
            return lambda w, r: store(w, r[name])
        return lambda w, r: store(w, finish(w, r[name]))

    def commit_scalar(self, name: str, op: Operand, width: int) -> Commit:
        store, finish = access.scalar_store(self.inst, op), access.finish(self.inst, op, width)
        if finish is None:
            return lambda w, r: store(w, r[name]) if name in r else None
        return lambda w, r: store(w, finish(w, {0: r[name]})[0])

    def returns(self) -> bool:
        """Whether RETURN_DATA is written: vector memory atomics say so by a bit."""
        if not is_atomic(self.sem) or segment_of(self.inst) in ("", "lds"):
            return True
        return memory_fields(self.inst).returns

    def commit_mask(self, name: str) -> Commit:
        if name == "EXEC":
            return _set_exec_bits
        op = self.find(name, written=True)
        reg = state.VCC_LO if op is None else op.reg
        return lambda w, r: w.set_mask(reg, r[f"bit {name}"])


def _constant(value: int) -> Fill:
    return lambda w: value


def _set_exec_bits(w: Wave, r: Results) -> None:
    w.exec = r["bit EXEC"]


def _set_exec(w: Wave, r: Results) -> None:
    if "EXEC" in r:
        w.exec = r["EXEC"]


def _set_scc(w: Wave, r: Results) -> None:
    if "SCC" in r:
        w.scc = r["SCC"]


def _set_m0(w: Wave, r: Results) -> None:
    if "M0" in r:
        w.sgprs[w.row.m0] = r["M0"]


def _set_pc(w: Wave, r: Results) -> None:
    if "PC" in r:
        w.next_pc = r["PC"]


def _set_vcc(w: Wave, r: Results) -> None:
    if "VCC" in r:
        w.set_mask(state.VCC_LO, r["VCC"])


def _ignore(w: Wave, r: Results) -> None:
    """PRIV: only trap handlers have it, and none runs here."""


_SETTERS: Mapping[str, Commit] = {
    "EXEC": _set_exec, "SCC": _set_scc, "M0": _set_m0, "PC": _set_pc, "VCC": _set_vcc, "PRIV": _ignore,
}  # fmt: skip


# ---------------------------------------------------------------- addresses


def address_fill(inst: Inst, body: Body, ops: tuple[Operand, ...]) -> Fill:
    """ADDR: a list per lane, or one integer in wave scope."""
    m = memory_fields(inst) if segment_of(inst) else None
    if m is None:
        raise Unmodelled(inst.arch, f"addresses of {inst.base}", "emu/step.py")
    if m.segment == "scalar":
        return _scalar_address(inst, m)
    if m.segment == "lds":
        reg, offset = m.vaddr or 0, 0 if {"OFFSET", "OFFSET0", "OFFSET1"} & set(body.reads) else m.offset
        return lambda w: [at.lds(v, offset) for v in w.vgprs[reg]]
    if m.segment == "buffer":
        return _buffer_address(inst, m, ops)
    return _scratch_address(m.vaddr, m.saddr, m.offset) if m.segment == "scratch" else _flat_address(m)


def _flat_address(m: MemoryFields) -> Fill:
    offset, reg, saddr = m.offset, m.vaddr, m.saddr
    if reg is None:  # the scalar address alone; null reads 0
        return lambda w: [at.flat(0 if saddr is None else w.read_scalar(saddr, 2), offset)] * w.lanes
    if saddr is not None:
        return lambda w: [at.global_saddr(w.read_scalar(saddr, 2), v, offset) for v in w.vgprs[reg]]

    def without(w: Wave) -> list[int]:
        high = w.vgprs[(reg + 1) % state.N_VGPRS]
        return [at.flat(a | b << 32, offset) for a, b in zip(w.vgprs[reg], high, strict=True)]

    return without


def _scratch_address(vaddr: int | None, saddr: int | None, offset: int) -> Fill:
    def fill(w: Wave) -> list[int]:
        scalar = 0 if saddr is None else w.read_scalar(saddr, 1)
        vector = [0] * w.lanes if vaddr is None else w.vgprs[vaddr]
        return [at.scratch(scalar, v, offset) for v in vector]

    return fill


def _of_role(ops: tuple[Operand, ...], role: str) -> Operand | None:
    return next((o for o in ops if o.role == role), None)


def _scalar_address(inst: Inst, m: MemoryFields) -> Fill:
    base, offset, soffset = state.check_scalars(inst.arch, m.base), m.offset, m.soffset

    def moved(w: Wave) -> int:
        return 0 if soffset is None else w.read_scalar(soffset, 1) * m.scale

    if "_BUFFER_" not in inst.name:
        return lambda w: at.scalar(w.read_scalar(base, 2), moved(w), offset, m.granule)

    def buffer(w: Wave) -> int:
        place = at.scalar_buffer(at.buffer_of(inst.arch, w.read_scalar(base, 4), False), moved(w) + offset, m.granule)
        w.segment, w.accesses = "buffer", {None: place}
        return place.address

    return buffer


def _buffer_address(inst: Inst, m: MemoryFields, ops: tuple[Operand, ...]) -> Fill:
    resource, soffset = state.check_scalars(inst.arch, m.base), _of_role(ops, "SOFFSET")
    reg, has_offset, has_index = m.vaddr or 0, m.offen, m.index
    if soffset is None:
        raise Unmodelled(inst.arch, f"{inst.name} without SOFFSET", "emu/step.py")
    moved = access.scalar_fetch(inst, soffset)

    is_typed = "FORMAT" in inst.name

    def fill(w: Wave) -> list[int]:
        words = w.read_scalar(resource, 4)
        v, s = at.buffer_of(inst.arch, words, has_index), moved(w)
        if is_typed and w.exec:
            w.typed = formats.of_instruction(inst.arch, inst.name, inst.fields, words)
        nothing = [0] * w.lanes
        index = w.vgprs[reg] if has_index else nothing
        offset = w.vgprs[(reg + has_index) % state.N_VGPRS] if has_offset else nothing
        places = [
            at.buffer_access(inst.arch, v, s, index[lane] + (lane if v.add_lane else 0), offset[lane] + m.offset)
            for lane in range(w.lanes)
        ]
        w.accesses = dict(enumerate(places))
        return [p.address for p in places]

    return fill
