"""Handlers of lane scope that go lane by lane: atomics, registers by number, control flow of a lane's own.

Results are gathered and stored after the last lane, so that a lane sees the registers as they were
before the instruction. A row that reads and writes one global location is a compare-and-swap loop:
client processors and other threads see the same memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from stuntgpu.emu import layout
from stuntgpu.emu.forms import Form
from stuntgpu.emu.handler_finish import finished
from stuntgpu.emu.handler_lane import LaneHandler
from stuntgpu.emu.lower import ScalarBody, bit_name
from stuntgpu.emu.lower_int import shift
from stuntgpu.emu.lower_text import FORMATS, Host, Value
from stuntgpu.isa.inst import WHOLE
from stuntgpu.isa.ir import (
    Expr,
    Load,
    RegRead,
    RegWrite,
    Semantics,
    Set,
    SetLaneBit,
    Store,
    expressions,
    statements,
)

#: Bits of results that are gathered as one vector at most.
_LONG = 64


def _storage(width: int) -> int:
    """Bits an element takes in an array."""
    return max(8, 1 << (width - 1).bit_length())


class LoopHandler(LaneHandler):
    def __init__(self, form: Form, sem: Semantics, host: Host) -> None:
        super().__init__(form, sem, host)
        self.lane = ""
        self.arrays: dict[str, tuple[str, int]] = {}
        self.pointer: str | None = None
        self.in_lane = False

    # ------------------------------------------------------------ the loop

    def body(self) -> None:
        e = self.e
        self.start_lanes()
        self.prepare()
        outs = self.outputs()
        e.lanes = 0
        self.in_lane = True
        slot, head, inside, end = e.alloca(f"i{self.lanes}", 8), e.label("lanes"), e.label("lane"), e.label("done")
        e.line(f"store i{self.lanes} {self.exec}, ptr {slot}")
        e.jump(head)
        e.start(head)
        rest = self.load(f"i{self.lanes}", slot, 8)
        e.branch(e.raw(f"icmp ne i{self.lanes} {rest}, 0"), inside, end)
        e.start(inside)
        lowest = e.inst(f"call i{self.lanes} @llvm.cttz.i{self.lanes}(i{self.lanes} {rest}, i1 true)", self.lanes)
        e.declarations[f"llvm.cttz.i{self.lanes}"] = (
            f"declare i{self.lanes} @llvm.cttz.i{self.lanes}(i{self.lanes}, i1)")
        self.lane = e.zext(lowest, 64).ref
        cleared = e.raw(f"and i{self.lanes} {rest}, {e.raw(f'sub i{self.lanes} {rest}, 1')}")
        e.line(f"store i{self.lanes} {cleared}, ptr {slot}")
        self.one_lane(outs)
        e.jump(head)
        e.start(end)
        e.lanes = self.lanes
        self.in_lane = False
        for name in [n for n in outs if self.is_long(n, outs[n][1])]:
            self.commit_long(name, *outs.pop(name))
        self.finish({name: self.gathered(*out) for name, out in outs.items()})

    def prepare(self) -> None:
        """Vector operands that need work (DPP, modifiers, halves) or addresses are computed ahead."""
        for name in dict.fromkeys((*self.facts.reads, *(w for w in self.facts.writes))):
            if name == "ADDR":
                self.keep(name, self.addresses())
                continue
            i = self.slot_of(name) if name not in self.constants else -1
            if i >= 0 and self.form.slots[i].kind == "v" and not self._is_plain_column(name, i):
                self.keep(name, self.read(name, self.form.slots[i].bits))

    def _is_plain_column(self, name: str, i: int) -> bool:
        """Whether a lane reads it by itself: as it is, or too long to be changed in all lanes at once."""
        s = self.form.slots[i]
        moved = self.form.dpp is not None and name == "S0"
        whole = s.select == WHOLE and not s.sext  # SDWA picks a part
        return not moved and whole and not s.packed and s.bits % 32 == 0 and (not s.fmt or s.bits > _LONG)

    def keep(self, name: str, v: Value) -> None:
        width = _storage(v.width)
        slot = self.e.alloca(f"[{self.lanes} x i{width}]")
        self.spill(self.e.zext(v, width), slot)
        self.arrays[name] = (slot, v.width)

    def outputs(self) -> dict[str, tuple[str, int]]:
        """A result array for each place and mask that the row writes."""
        outs: dict[str, tuple[str, int]] = {}
        for s in statements(self.sem.body):
            key = bit_name(s.name) if isinstance(s, SetLaneBit) else getattr(s, "name", "")
            if isinstance(s, SetLaneBit) or (isinstance(s, Set) and s.name in self.facts.writes):
                width = s.value.width
                outs.setdefault(key, (self.e.alloca(f"[{self.lanes} x i{_storage(width)}]"), width))
        return outs

    def is_long(self, name: str, width: int) -> bool:
        """A result of several whole registers: kept by register, as a vector of long integers is slow to compile."""
        i = self.form.slot(f"written {name}")
        return width > _LONG and i >= 0 and self.form.slots[i].kind == "v" and not self.form.slots[i].fmt.startswith("f64")

    def commit_long(self, name: str, slot: str, width: int) -> None:
        """Finished and stored register by register, in a loop."""
        i = self.form.slot(f"written {name}")
        e, s = self.e, self.form.slots[i]
        element = FORMATS.get(s.fmt.partition("x")[0])
        s = replace(s, bits=32, fmt=f"{element.name}x{32 // element.width}" if element else "")
        at, head, inside, end = e.alloca("i64", 8), e.label("registers"), e.label("register"), e.label("finished")
        e.line(f"store i64 0, ptr {at}")
        e.jump(head)
        e.start(head)
        k = self.load("i64", at, 8)
        e.branch(e.raw(f"icmp ult i64 {k}, {width // 32}"), inside, end)
        e.start(inside)
        row = e.raw(f"getelementptr [{self.lanes} x i32], ptr {slot}, i64 {k}")
        column = e.raw(f"getelementptr [{layout.vgpr_stride(self.lanes)} x i8], ptr %p{i}, i64 {k}")
        self.blend(column, finished(self, s, e.inst(f"load {e.ty(32)}, ptr {row}, align 4", 32)))
        e.line(f"store i64 {e.raw(f'add i64 {k}, 1')}, ptr {at}")
        e.jump(head)
        e.start(end)

    def store_long(self, slot: str, v: Value) -> None:
        e = self.e
        for k in range(v.width // 32):
            at = e.raw(f"getelementptr i32, ptr {slot}, i64 {e.bin('add', Value(self.lane, 64), e.const(k * self.lanes, 64)).ref}")
            e.line(f"store i32 {e.zext(shift(e, 'lshr', v, e.const(32 * k, 32)), 32).ref}, ptr {at}, align 4")

    def gathered(self, slot: str, width: int) -> Value:
        e, w = self.e, _storage(width)
        return e.zext(e.inst(f"load {e.ty(w)}, ptr {slot}, align 64", w), width)

    def one_lane(self, outs: dict[str, tuple[str, int]]) -> None:
        e = self.e
        b = ScalarBody(e, self)
        if self.is_exchange():
            self.exchange_lane(b)
        else:
            b.open(self.sem.body, self.sem.widths)
            b.block(self.sem.body)
        for name, (slot, width) in outs.items():
            if self.is_long(name, width):
                self.store_long(slot, b.get(name, width))
                continue
            w = _storage(width)
            v = e.zext(b.get(name, width), w)
            e.line(f"store i{w} {v.ref}, ptr {self.element(slot, w)}")

    def element(self, slot: str, width: int) -> str:
        return self.e.raw(f"getelementptr i{width}, ptr {slot}, i64 {self.lane}")

    # ------------------------------------------------------------ Places of one lane

    def read(self, name: str, width: int) -> Value:
        return self.read_lane(name, width) if self.in_lane else super().read(name, width)

    def read_lane(self, name: str, width: int) -> Value:
        e = self.e
        if name == "LANE":
            return e.zext(Value(self.lane, 64), width)
        if name in self.arrays:
            slot, w = self.arrays[name]
            v = Value(self.load(f"i{_storage(w)}", self.element(slot, _storage(w)), 1), _storage(w))
            return e.zext(v, width)
        i = self.slot_of(name) if name not in self.constants else -1
        if i >= 0 and self.form.slots[i].kind == "v":
            s = self.form.slots[i]
            changed = bool(s.fmt) and not s.name.startswith("written ")
            return e.zext(self.modified(s, self.lane_column(i, s.bits)), width) if changed else self.lane_column(i, width)
        if i >= 0:
            return e.zext(self.scalar_slot(i, width), width)
        return self.scalar(name, width)

    def lane_column(self, i: int, width: int) -> Value:
        e = self.e
        out = e.const(0, width)
        for k in range(max(1, -(-width // 32))):
            at = e.raw(f"getelementptr i32, ptr {self.column_ptr(i, k)}, i64 {self.lane}")
            v = e.zext(Value(self.load("i32", at, 4), 32), max(width, 32))
            part = e.zext(shift(e, "shl", v, e.const(32 * k, 32)), width)
            out = part if k == 0 else e.bin("or", out, part)
        return out

    def lane_bit(self, name: str) -> Value:
        if not self.in_lane:
            return super().lane_bit(name)
        e = self.e
        if name == "EXEC":
            return e.const(1, 1)
        i = self.form.slot(bit_name(name))
        if i < 0:
            return e.const(0, 1)
        return e.zext(shift(e, "lshr", self.mask_slot(i), Value(self.lane, 64)), 1)

    def reg_read(self, x: RegRead, index: Value, lane: Value | None) -> Value:
        if lane is None:
            return self.sgpr(index)
        return Value(self.load("i32", self.vgpr_at(index, lane), 4), 32)

    def reg_write(self, s: RegWrite, index: Value, value: Value, lane: Value | None, mask: Value | None) -> None:
        at = self.sgpr_at(index, layout.SINK) if lane is None else self.vgpr_at(index, lane)
        self.e.line(f"store i32 {self.e.zext(value, 32).ref}, ptr {at}, align 4")

    # ------------------------------------------------------------ memory of one lane

    def kind_of(self, x: Load | Store) -> str:
        space = self.space(x)
        return space if space in layout.RESOLVE else "global"

    def mem_load(self, x: Load, address: Callable[[Expr], Value], mask: Value | None) -> Value:
        if self.old_value is not None:
            return self.e.zext(self.old_value, x.width)
        access = layout.ACCESS_ATOMIC if self.facts.is_atomic else layout.ACCESS_READ
        p = self.resolve(address(x.addr), x.width // 8, access, self.kind_of(x), self.lane32())
        return self.load_or_zero(p, x.width)

    def mem_store(self, s: Store, address: Callable[[Expr], Value], value: Value, mask: Value | None) -> None:
        if self.old_value is not None:
            self.e.line(f"store i{value.width} {value.ref}, ptr {self.pending}")
            return
        access = layout.ACCESS_ATOMIC if self.facts.is_atomic else layout.ACCESS_WRITE
        p = self.resolve(address(s.addr), value.width // 8, access, self.kind_of(s), self.lane32())
        self.store_if(p, value)
        if s.space != "LDS" and self.form.segment != "lds":
            self.e.line(f"call void {self.helper(layout.SETTLE)}(ptr %w)")

    def lane32(self) -> str:
        return self.e.zext(Value(self.lane, 64), 32).ref

    # ------------------------------------------------------------ one indivisible action

    def is_exchange(self) -> bool:
        """One location of global memory, read and written."""
        loads = [x for x in expressions(self.sem.body) if isinstance(x, Load)]
        return self.facts.is_atomic and len({x.addr for x in loads}) == 1 and self.form.segment != "lds"

    def exchange_lane(self, b: ScalarBody) -> None:
        first = next(x for x in expressions(self.sem.body) if isinstance(x, Load))
        w = first.width
        self.exchange(b, self.lane_pointer(first, b), w)
        if w > 32 and self.form.segment in ("flat", "scratch"):
            self.e.line(f"call void {self.helper(layout.SETTLE)}(ptr %w)")

    def lane_pointer(self, x: Load, b: ScalarBody) -> str:
        """Host pointer; a buffer's location out of range counts as none."""
        e = self.e
        address = b.expr(x.addr)
        if self.form.segment != "buffer":
            return self.resolve(address, x.width // 8, layout.ACCESS_ATOMIC, self.kind_of(x), self.lane32())
        low, high = (self.read_lane(n, 64) for n in ("low", "high"))
        room = e.icmp("uge", e.bin("sub", high, address), e.const(x.width // 8, 64))
        ok = e.bin("and", e.bin("and", e.icmp("ule", low, address), e.icmp("ule", address, high)), room)
        crooked = e.icmp("ne", e.bin("and", address, e.const(x.width // 8 - 1, 64)), e.const(0, 64))
        ok = e.bin("or", ok, crooked)  # a misaligned atomic faults wherever it is
        some, end, before = e.label("some"), e.label("end"), e.block
        e.branch(ok.ref, some, end)
        e.start(some)
        p = self.resolve(address, x.width // 8, layout.ACCESS_ATOMIC, "global", self.lane32())
        after = e.block
        e.jump(end)
        e.start(end)
        return e.raw(f"phi ptr [ null, %{before} ], [ {p}, %{after} ]")

    def addresses(self) -> Value:
        if self.form.segment == "buffer" and not self.in_lane:
            address, low, high = self.buffer_addresses()
            self.keep("low", low)
            self.keep("high", high)
            return address
        return super().addresses()
