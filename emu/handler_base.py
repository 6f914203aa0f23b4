"""What all handlers share: the frame, operands and state of the wave as LLVM text.

A handler is `i32 handler(wave, record)`: it reads its operands by the offsets in the record, runs the
row, stores the results and tail-calls the next record's handler. A fault in memory leaves through
`stop`.

Errors:  Unmodelled for places and actions that handlers do not do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from stuntgpu.emu import layout, state
from stuntgpu.emu.forms import Form, Slot, row, symbol
from stuntgpu.emu.lower import ScalarBody
from stuntgpu.emu.lower_int import shift
from stuntgpu.emu.lower_text import Emitter, FloatMode, Host, Value
from stuntgpu.isa.errors import Unmodelled
from stuntgpu.isa.inst import WHOLE
from stuntgpu.isa.ir import Do, RegRead, RegWrite, Semantics


@dataclass(frozen=True, slots=True)
class Function:
    """Text of a function and what its module must declare."""

    name: str
    text: str
    declarations: Mapping[str, str]


def float_mode(mode: int) -> FloatMode:
    return FloatMode(mode & 0xFF, bool(mode >> state.MODE_FP16_OVFL & 1))


class Handler(ABC):
    """Operands and state as LLVM text, for all kinds of handler. Implements `lower.Places`."""

    def __init__(self, form: Form, sem: Semantics, host: Host) -> None:
        self.form, self.sem = form, sem
        self.lanes = form.lanes
        self.e = Emitter(form.lanes, float_mode(form.mode), host)
        self.constants = dict(form.constants)
        self.unread = frozenset(row(form.arch, form.name).writes)  # results that nothing keeps start as 0
        self.stops = False
        self.old_value: Value | None = None  # inside `exchange`: what the location held
        self.pending = ""

    # ------------------------------------------------------------ frame

    def function(self) -> Function:
        e = self.e
        self.prologue()
        self.body()
        self.next()
        if self.stops:
            self.stop()
        name = symbol(self.form)
        head = f"define i32 @{name}(ptr %w, ptr %r) nounwind{' strictfp' if e.strict else ''} {{"
        lines = [head, "entry:", *e.entry, *self.first, "  br label %body", "body:", *e.lines, "}"]
        return Function(name, "\n".join(lines), e.declarations)

    def prologue(self) -> None:
        """Offsets of the record's slots, computed once at the entry."""
        self.first: list[str] = []
        for i in range(len(self.form.slots)):
            at = layout.R_OP + 4 * i
            self.first += [
                f"  %rp{i} = getelementptr i8, ptr %r, i64 {at}",
                f"  %n{i} = load i32, ptr %rp{i}, align 4",
                *self.slot_offset(i),
                f"  %p{i} = getelementptr i8, ptr %w, i64 %o{i}",
            ]

    def slot_offset(self, i: int) -> list[str]:
        """%o<i>: what the record says, plus M0[7:0] registers in GPR index mode; register numbers wrap."""
        bit, stride = self.form.slots[i].index_bit, layout.vgpr_stride(self.lanes)
        if bit is None:
            return [f"  %o{i} = zext i32 %n{i} to i64"]
        last, m0 = layout.vgpr(state.N_VGPRS - 1, self.lanes), state.wavefront(self.form.arch).m0 * 4
        return [
            f"  %xa{i} = getelementptr i8, ptr %w, i64 {m0}",
            f"  %xm{i} = load i32, ptr %xa{i}, align 4",
            f"  %xs{i} = lshr i32 %xm{i}, {bit}",
            f"  %xb{i} = and i32 %xs{i}, 1",
            f"  %xn{i} = and i32 %xm{i}, 255",
            f"  %xo{i} = mul i32 %xn{i}, {stride}",
            f"  %xc{i} = mul i32 %xo{i}, %xb{i}",
            f"  %xt{i} = add i32 %n{i}, %xc{i}",
            f"  %xp{i} = icmp ugt i32 %xt{i}, {last}",
            f"  %xw{i} = sub i32 %xt{i}, {state.N_VGPRS * stride}",
            f"  %xr{i} = select i1 %xp{i}, i32 %xw{i}, i32 %xt{i}",
            f"  %o{i} = zext i32 %xr{i} to i64",
        ]

    @abstractmethod
    def body(self) -> None: ...

    def wave_ptr(self, offset: int) -> str:
        return self.e.raw(f"getelementptr i8, ptr %w, i64 {offset}")

    def record_ptr(self, offset: int) -> str:
        return self.e.raw(f"getelementptr i8, ptr %r, i64 {offset}")

    def load(self, ty: str, ptr: str, align: int) -> str:
        return self.e.raw(f"load {ty}, ptr {ptr}, align {align}")

    def next(self) -> None:
        """Continue with the following record."""
        following = self.record_ptr(layout.RECORD_BYTES)
        fn = self.load("ptr", following, 8)
        self.tail(fn, following)

    def tail(self, fn: str, record: str) -> None:
        e = self.e
        e.line(f"%res{e.count} = musttail call i32 {fn}(ptr %w, ptr {record})")
        e.line(f"ret i32 %res{e.count}")
        e.count += 1

    def account(self, inclusive: int = 1) -> str:
        """Charge the straight run up to this record; the new `left`."""
        e = self.e
        ordinal = self.load("i32", self.record_ptr(layout.R_ORDINAL), 4)
        begin = self.load("i32", self.wave_ptr(layout.FROM), 4)
        run = e.raw(f"sub i32 {ordinal}, {begin}")
        if inclusive:
            run = e.raw(f"add i32 {run}, {inclusive}")
        wide = e.raw(f"sext i32 {run} to i64")
        at = self.wave_ptr(layout.LEFT)
        left = e.raw(f"sub i64 {self.load('i64', at, 8)}, {wide}")
        e.line(f"store i64 {left}, ptr {at}, align 8")
        return left

    def leave(self, status: int, resume: str) -> None:
        """Return to the scheduler; `resume` is the record to continue at."""
        self.e.line(f"store ptr {resume}, ptr {self.wave_ptr(layout.NEXT)}, align 8")
        self.e.line(f"ret i32 {status}")

    def stop(self) -> None:
        """The common exit of faults."""
        self.e.start("stop")
        self.account()
        self.leave(layout.FAULT, "%r")

    def stop_if(self, cond: str) -> None:
        self.stops = True
        go = self.e.label("go")
        self.e.branch(cond, "stop", go, rare=True)
        self.e.start(go)

    def stop_if_fault(self) -> None:
        kind = self.load("i32", self.wave_ptr(layout.FAULT_KIND), 4)
        self.stop_if(self.e.raw(f"icmp ne i32 {kind}, 0"))

    # ------------------------------------------------------------ scalar state

    def scalar(self, name: str, width: int) -> Value:
        """A wave-uniform place as a scalar."""
        e = self.e
        with e.scalarly():
            if name in self.constants:
                return e.const(self.constants[name], width)
            if name in STATE_PLACES:
                return e.zext(STATE_PLACES[name](self), width)
            slot = self.form.slot(name)
            if slot < 0 and name in self.unread:
                return e.const(0, width)
            if slot < 0:
                raise Unmodelled(self.form.arch, f"place {name} of {self.form.name}", "emu/handlers.py")
            return e.zext(self.scalar_slot(slot, width), width)

    def scalar_slot(self, i: int, width: int) -> Value:
        s = self.form.slots[i]
        e = self.e
        with e.scalarly():
            match s.kind:
                case "n":
                    return Value(f"%n{i}", 32)
                case "m":
                    return self.mask_slot(i)
                case "s" | "scc" | "vccz" | "execz":
                    bits = max(s.bits, 32)
                    v = e.inst(f"load i{bits}, ptr %p{i}, align 4", bits) if s.kind == "s" else (
                        e.zext(STATE_PLACES[s.kind.upper()](self), bits))
                    if s.select != WHOLE or s.sext:
                        return self.modified(s, self.selected(s, v))
                    if s.bits == 16:
                        v = e.zext(shift(e, "lshr", v, e.const(16 * s.half, 32)), 16)
                    return self.modified(s, v)
                case _:
                    raise Unmodelled(self.form.arch, f"vector operand {s.name} of {self.form.name} as scalar",
                                     "emu/handlers.py")

    def selected(self, s: Slot, v: Value) -> Value:
        """SDWA: a part of the register, extended to the operand's width."""
        e, (low, width) = self.e, state.sdwa_part(s.select)
        chosen = e.zext(shift(e, "lshr", v, e.const(low, 32)), width)
        return e.sext(chosen, s.bits) if s.sext else e.zext(chosen, s.bits)

    def modified(self, s: Slot, v: Value) -> Value:
        """ABS, NEG, and the halves of packed operands."""
        e, half = self.e, s.bits // 2
        if s.packed and (s.half, s.half_hi) != (0, 1):
            low = e.zext(shift(e, "lshr", v, e.const(half * s.half, 32)), half)
            high = e.zext(shift(e, "lshr", v, e.const(half * s.half_hi, 32)), half)
            v = e.bin("or", e.zext(low, s.bits), shift(e, "shl", e.zext(high, s.bits), e.const(half, 32)))
        if s.packed:
            flip = int(s.neg) << half - 1 | int(s.neg_hi) << s.bits - 1
            return e.bin("xor", v, e.const(flip, s.bits)) if flip else v
        sign = 1 << (s.bits - 1)
        if s.abs:
            v = e.bin("and", v, e.const(~sign, v.width))
        return e.bin("xor", v, e.const(sign, v.width)) if s.neg else v

    def mask_slot(self, i: int) -> Value:
        """A lane mask as an integer of as many bits as lanes."""
        return self.e.inst(f"load i{self.lanes}, ptr %p{i}, align 4", self.lanes)

    def exec_mask(self) -> str:
        """EXEC as i<lanes>."""
        return self.load(f"i{self.lanes}", self.wave_ptr(layout.EXEC), 4)

    # ------------------------------------------------------------ hardware registers and helpers

    def helper(self, index: int) -> str:
        table = self.load("ptr", self.wave_ptr(layout.HELPERS), 8)
        return self.load("ptr", self.e.raw(f"getelementptr ptr, ptr {table}, i64 {index}"), 8)

    def read_message(self, number: Value) -> Value:
        n = self.e.zext(number, 32)
        v = self.e.inst(f"call i64 {self.helper(layout.MESSAGE)}(ptr %w, ptr %r, i32 {n.ref})", 64)
        self.stop_if_fault()
        return v

    def read_hwreg(self, index: Value) -> Value:
        i = self.e.zext(index, 32)
        v = self.e.inst(f"call i32 {self.helper(layout.HWREG)}(ptr %w, ptr %r, i32 {i.ref})", 32)
        self.stop_if_fault()
        return v

    def write_hwreg(self, index: Value, value: Value) -> None:
        i, v = self.e.zext(index, 32), self.e.zext(value, 32)
        self.e.line(f"call void {self.helper(layout.SET_HWREG)}(ptr %w, ptr %r, i32 {i.ref}, i32 {v.ref})")
        self.stop_if_fault()

    # ---- registers by number

    def vgpr_at(self, index: Value, lane: Value) -> str:
        e = self.e
        number = e.bin("and", e.zext(index, 64), e.const(state.n_vector_registers(self.form.arch) - 1, 64))
        which = e.bin("and", e.zext(lane, 64), e.const(self.lanes - 1, 64))
        at = e.bin("add", e.bin("mul", number, e.const(self.lanes, 64)), which)
        at = e.bin("add", e.bin("mul", at, e.const(4, 64)), e.const(layout.VGPR_BASE, 64))
        return e.raw(f"getelementptr i8, ptr %w, i64 {at.ref}")

    def sgpr_at(self, index: Value, elsewhere: int) -> str:
        """A scalar register by number; NULL and what is no register, or not a kernel's, lie at `elsewhere`."""
        e, number = self.e, self.e.zext(index, 64)
        wave = state.wavefront(self.form.arch)
        closed = state.drops_writes if elsewhere == layout.SINK else state.reads_zero
        odd = e.bin("or", e.icmp("eq", number, e.const(self.null, 64)), e.icmp("ugt", number, e.const(state.N_SGPRS - 1, 64)))
        for first, last in state.runs(reg for reg in range(state.N_SGPRS) if reg != wave.null and closed(wave, reg)):
            past = e.bin("sub", number, e.const(first, 64))
            odd = e.bin("or", odd, e.icmp("ule", past, e.const(last - first, 64)))
        number = e.select(odd, e.const(elsewhere, 64), number)
        return e.raw(f"getelementptr i32, ptr %w, i64 {number.ref}")

    def sgpr(self, index: Value) -> Value:
        return Value(self.load("i32", self.sgpr_at(index, self.null), 4), 32)

    @property
    def null(self) -> int:
        """A place of the scalar file that always reads 0."""
        null = state.wavefront(self.form.arch).null
        return null if null >= 0 else layout.ZERO

    def reg_read(self, x: RegRead, index: Value, lane: Value | None) -> Value:
        if x.file == "HWREG":
            return self.read_hwreg(index)
        if x.file == "MESSAGE":
            return self.read_message(index)
        if x.file == "BARRIER":
            fn, n = self.helper(layout.BARRIER_STATE), self.e.zext(index, 32)
            return self.e.inst(f"call i32 {fn}(ptr %w, i32 {n.ref})", 32)
        if x.file == "SGPR" or lane is None:
            return self.sgpr(index)
        return Value(self.load("i32", self.vgpr_at(index, lane), 4), 32)

    def reg_write(self, s: RegWrite, index: Value, value: Value, lane: Value | None, mask: Value | None) -> None:
        if s.file == "HWREG":
            self.write_hwreg(index, value)
            return
        by_number = s.file == "SGPR" or lane is None
        at = self.sgpr_at(index, layout.SINK) if by_number or lane is None else self.vgpr_at(index, lane)
        self.e.line(f"store i32 {self.e.zext(value, 32).ref}, ptr {at}, align 4")

    def resolve(self, addr: Value, size: int, access: int, kind: str, lane: str = "-1") -> str:
        """Host pointer of an access, null when out of LDS; faults leave."""
        e = self.e
        fn = self.helper(layout.RESOLVE[kind])
        a = e.zext(addr, 64)
        p = e.raw(f"call ptr {fn}(ptr %w, i32 {lane}, i64 {a.ref}, i32 {size}, i32 {access})")
        self.stop_if_fault()
        return p

    def load_or_zero(self, p: str, width: int) -> Value:
        e = self.e
        some, end, before = e.label("some"), e.label("end"), e.block
        e.branch(e.raw(f"icmp ne ptr {p}, null"), some, end)
        e.start(some)
        v = self.load(f"i{width}", p, 1)
        e.jump(end)
        e.start(end)
        return e.inst(f"phi i{width} [ 0, %{before} ], [ {v}, %{some} ]", width)

    def store_if(self, p: str, value: Value) -> None:
        e = self.e
        some, end = e.label("some"), e.label("end")
        e.branch(e.raw(f"icmp ne ptr {p}, null"), some, end)
        e.start(some)
        e.line(f"store i{value.width} {value.ref}, ptr {p}, align 1")
        e.jump(end)
        e.start(end)

    def exchange(self, b: ScalarBody, p: str, width: int) -> None:
        """The body as one indivisible action on a location of `width` bits at host pointer `p`, null for none:
        old = load; new = body(old); compare-and-swap until nobody came between."""
        e = self.e
        self.pending, slot = e.alloca(f"i{width}", 16), e.alloca(f"i{width}", 16)
        retry, swap, end = e.label("retry"), e.label("swap"), e.label("swapped")
        is_null = e.raw(f"icmp eq ptr {p}, null")
        start = self.load_or_zero(p, width)
        e.line(f"store i{width} {start.ref}, ptr {slot}")
        e.jump(retry)
        e.start(retry)
        self.old_value = Value(self.load(f"i{width}", slot, 8), width)
        e.line(f"store i{width} {self.old_value.ref}, ptr {self.pending}")
        b.open(self.sem.body, self.sem.widths)
        b.block(self.sem.body)
        e.branch(is_null, end, swap)
        e.start(swap)
        new = self.load(f"i{width}", self.pending, 8)
        pair = e.raw(f"cmpxchg ptr {p}, i{width} {self.old_value.ref}, i{width} {new} seq_cst seq_cst, align {width // 8}")
        e.line(f"store i{width} {e.raw(f'extractvalue {{ i{width}, i1 }} {pair}, 0')}, ptr {slot}")
        e.branch(e.raw(f"extractvalue {{ i{width}, i1 }} {pair}, 1"), end, retry)
        e.start(end)
        self.old_value = None

    def do(self, s: Do, args: Sequence[Value], mask: Value | None) -> None:
        if s.action in ("nop", "memory_barrier", "sendmsg"):
            return
        if s.action in layout.BARRIER_ACTIONS:
            fn, which = self.helper(layout.BARRIER_ACTION), layout.BARRIER_ACTIONS.index(s.action)
            number, count = (self.e.zext(a, 32).ref for a in (*args, *[self.e.const(0, 32)] * 2)[:2])
            self.e.line(f"call void {fn}(ptr %w, ptr %r, i32 {which}, i32 {number}, i32 {count})")
            return
        raise Unmodelled(self.form.arch, f"action {s.action} inside {self.form.name}", "emu/handlers.py")


def _state_exec(h: Handler) -> Value:
    return h.e.zext(Value(h.exec_mask(), h.lanes), 64)


def _is_zero(h: Handler, ref: str) -> Value:
    return h.e.inst(f"icmp eq i{h.lanes} {ref}, 0", 1)


def state_pc(h: Handler) -> Value:
    code = h.load("i64", h.wave_ptr(layout.CODE), 8)
    return h.e.inst(f"add i64 {code}, {h.load('i64', h.record_ptr(layout.R_PC), 8)}", 64)


def _state_scc(h: Handler) -> Value:
    return h.e.zext(Value(h.load("i32", h.wave_ptr(layout.SCC), 4), 32), 1)


def _state_ieee(h: Handler) -> Value:
    mode = Value(h.load("i32", h.wave_ptr(layout.MODE), 4), 32)
    return h.e.zext(shift(h.e, "lshr", mode, h.e.const(state.MODE_IEEE, 32)), 1)


def _state_m0(h: Handler) -> Value:
    return Value(h.load("i32", h.wave_ptr(state.wavefront(h.form.arch).m0 * 4), 4), 32)


STATE_PLACES: Mapping[str, Callable[[Handler], Value]] = {
    "EXEC": _state_exec,
    "SCC": _state_scc,
    "M0": _state_m0,
    "VCCZ": lambda h: _is_zero(h, h.load(f"i{h.lanes}", h.wave_ptr(layout.VCC), 4)),
    "EXECZ": lambda h: _is_zero(h, h.exec_mask()),
    "PC": state_pc,
    "WAVE32": lambda h: h.e.const(int(h.lanes == 32), 1),
    "LANES": lambda h: h.e.const(h.lanes, 32),
    "MODE_IEEE": _state_ieee,
    "PRIV": lambda h: h.e.const(0, 1),
}
