"""Handlers of wave scope: SALU, branches, scalar memory, lane exchanges by register number."""

from __future__ import annotations

from collections.abc import Callable

from stuntgpu.emu import layout, state
from stuntgpu.emu.forms import KEEPS_SCC, row
from stuntgpu.emu.handler_base import STATE_PLACES, Handler, state_pc
from stuntgpu.emu.handler_finish import finished
from stuntgpu.emu.lower import ScalarBody
from stuntgpu.emu.lower_int import shift
from stuntgpu.emu.lower_text import Value
from stuntgpu.isa.errors import Unmodelled
from stuntgpu.isa.ir import Expr, Load, RegWrite, Store, expressions, statements
from stuntgpu.isa.memory_fields import scalar_granule


class WaveHandler(Handler):
    """SALU, scalar memory, lane exchanges: the row once, in scalar code."""

    def body(self) -> None:
        self.e.lanes = 0
        b = ScalarBody(self.e, self)
        first = next((x for x in expressions(self.sem.body) if isinstance(x, Load)), None)
        if first is not None and first.space == "MEM" and row(self.form.arch, self.form.name).is_atomic:
            self.exchange(b, self.location(b.expr(first.addr), first.width), first.width)
        else:
            b.open(self.sem.body, self.sem.widths)
            b.block(self.sem.body)
        for name in row(self.form.arch, self.form.name).writes:
            if name != "PC":
                self.commit(name, b.get(name, b.slots[name][1]))
        if "PC" in b.slots:
            self.jump(b.get("PC", 64))
        elif any(isinstance(s, RegWrite) and s.file == "HWREG" for s in statements(self.sem.body)):
            self.leave_for_mode()

    def read(self, name: str, width: int) -> Value:
        if name == "ADDR":
            return self.address()
        old = self.form.slot(name)
        if old < 0 and name not in STATE_PLACES and name not in self.constants:
            i = self.form.slot(f"written {name}")
            return self.old(i, width)
        return self.scalar(name, width)

    def old(self, i: int, width: int) -> Value:
        """The value a destination has before."""
        if i < 0:
            return self.e.const(0, width)
        return self.e.zext(self.e.inst(f"load i{max(width, 32)}, ptr %p{i}, align 4", max(width, 32)), width)

    def lane_bit(self, name: str) -> Value:
        raise Unmodelled(self.form.arch, f"lane bit {name} in wave scope", "emu/handlers.py")

    def commit(self, name: str, v: Value) -> None:
        e = self.e
        match name:
            case "EXEC":
                bits = e.zext(v, self.lanes)
                e.line(f"store i{self.lanes} {bits.ref}, ptr {self.wave_ptr(layout.EXEC)}, align 4")
            case "SCC" if KEEPS_SCC in self.constants:
                return
            case "SCC":
                e.line(f"store i32 {e.zext(v, 32).ref}, ptr {self.wave_ptr(layout.SCC)}, align 4")
            case "M0":
                at = self.wave_ptr(state.wavefront(self.form.arch).m0 * 4)
                e.line(f"store i32 {e.zext(v, 32).ref}, ptr {at}, align 4")
            case "PRIV":
                return
            case _:
                self.commit_operand(name, v)

    def commit_operand(self, name: str, v: Value) -> None:
        i = self.form.slot(f"written {name}")
        if i < 0:
            return
        if self.form.slots[i].kind != "s":
            raise Unmodelled(self.form.arch, f"vector result {name} of {self.form.name}", "emu/handlers.py")
        if self.form.slots[i].fmt:
            v = finished(self, self.form.slots[i], v)
        bits = max(32, -(-self.form.slots[i].bits // 32) * 32)
        self.e.line(f"store i{bits} {self.e.zext(v, bits).ref}, ptr %p{i}, align 4")

    # ---- control flow

    def jump(self, target: Value) -> None:
        """PC was assigned: fall through or branch to the record's target; a computed one is looked up, even when it is
        the instruction behind, which need not be known yet."""
        e = self.e
        if not self.is_direct():
            e.line(f"store i64 {target.ref}, ptr {self.wave_ptr(layout.PC)}, align 8")
            self.account()
            self.leave(layout.JUMP, "%r")
            e.start(e.label("never"))
            return
        size = self.load("i32", self.record_ptr(layout.R_SIZE), 4)
        following = e.raw(f"add i64 {state_pc(self).ref}, {e.raw(f'zext i32 {size} to i64')}")
        taken, out = e.label("taken"), e.label("out")
        e.branch(e.raw(f"icmp ne i64 {target.ref}, {following}"), taken, out)
        e.start(taken)
        self.take()
        e.start(out)

    def is_direct(self) -> bool:
        """The target is PC plus an immediate: the builder of the program knows its record."""
        return self.form.slot("SIMM16") >= 0 and self.form.slot("S0") < 0

    def take(self) -> None:
        e = self.e
        record = self.load("ptr", self.record_ptr(layout.R_TARGET), 8)
        left = self.account()
        ordinal = self.load("i32", e.raw(f"getelementptr i8, ptr {record}, i64 {layout.R_ORDINAL}"), 4)
        e.line(f"store i32 {ordinal}, ptr {self.wave_ptr(layout.FROM)}, align 4")
        tired, go = e.label("tired"), e.label("go")
        e.branch(e.raw(f"icmp sle i64 {left}, 0"), tired, go, rare=True)
        e.start(tired)
        self.leave(layout.YIELD, record)
        e.start(go)
        self.tail(self.load("ptr", record, 8), record)

    def leave_for_mode(self) -> None:
        """A hardware register was written: the scheduler chooses the program of the mode."""
        following = self.record_ptr(layout.RECORD_BYTES)
        self.account()
        self.leave(layout.MODE_CHANGED, following)
        self.e.start(self.e.label("never"))

    # ---- memory

    def address(self) -> Value:
        e = self.e
        base = self.scalar("at sbase", self.form.slots[self.form.slot("at sbase")].bits)
        moved, whole = self._scalar_offset(), e.const(-scalar_granule(self.form.name), 64)
        if base.width == 64:
            return e.bin("and", e.bin("add", base, moved), whole)
        start = e.bin("and", e.zext(base, 64), e.const((1 << 48) - 1, 64))
        return e.bin("and", e.bin("add", start, moved), whole)

    def _scalar_offset(self) -> Value:
        e = self.e
        offset = e.sext(self.scalar("at offset", 32), 64)
        if self.form.slot("at soffset") >= 0:
            moved = e.zext(self.scalar("at soffset", 32), 64)
            offset = e.bin("add", offset, e.bin("mul", moved, e.const(self.constants["at scale"], 64)))
        return offset

    def load_memory(self, x: Load, addr: Value) -> Value:
        """A scalar load of x.width bits."""
        if x.space == "LDS":
            return self.resolved_load(x, addr, "lds")
        if self.is_buffer():
            return self._buffer_load(x, addr)
        return self.resolved_load(x, addr, "global")

    def access_of(self, access: int) -> int:
        return layout.ACCESS_ATOMIC if row(self.form.arch, self.form.name).is_atomic else access

    def resolved_load(self, x: Load, addr: Value, kind: str) -> Value:
        p = self.resolve(addr, x.width // 8, self.access_of(layout.ACCESS_READ), kind)
        return self.load_or_zero(p, x.width)

    def is_buffer(self) -> bool:
        i = self.form.slot("at sbase")
        return i >= 0 and self.form.slots[i].bits == 128

    def location(self, addr: Value, width: int) -> str:
        """Host pointer of an atomic's location; null when it is not in its buffer as a whole."""
        e, size = self.e, width // 8
        if not self.is_buffer():
            return self.resolve(addr, size, layout.ACCESS_ATOMIC, "global")
        crooked = e.icmp("ne", e.bin("and", addr, e.const(size - 1, 64)), e.const(0, 64))
        faults_or_is = e.bin("or", self._inside(addr, size), crooked)  # misaligned, it faults wherever it is
        return self._pointer_if(faults_or_is, addr, size, layout.ACCESS_ATOMIC)

    def _inside(self, at: Value, size: int) -> Value:
        """Whether `size` bytes lie in the scalar buffer."""
        e = self.e
        words = self.scalar("at sbase", 128)
        base = e.bin("and", e.zext(words, 64), e.const((1 << 48) - 1, 64))
        stride = e.bin("and", e.zext(shift(e, "lshr", words, e.const(48, 32)), 64), e.const(0x3FFF, 64))
        records = e.zext(e.zext(shift(e, "lshr", words, e.const(64, 32)), 32), 64)
        none = e.icmp("eq", stride, e.const(0, 64))
        room = e.select(none, records, e.bin("mul", records, stride))
        offset = e.bin("sub", at, base)
        starts = e.bin("and", e.icmp("ule", base, at), e.icmp("ule", offset, room))
        return e.bin("and", starts, e.icmp("uge", e.bin("sub", room, offset), e.const(size, 64)))

    def _buffer_load(self, x: Load, addr: Value) -> Value:
        """S_BUFFER_LOAD: dword by dword (or the smaller whole), zero where outside the buffer's bytes."""
        e = self.e
        value, unit = e.const(0, x.width), min(x.width, 32)
        for i in range(0, x.width, unit):
            at = e.bin("add", addr, e.const(i // 8, 64))
            p = self._pointer_if(self._inside(at, unit // 8), at, unit // 8, layout.ACCESS_READ)
            part = self.load_or_zero(p, unit)
            value = e.bin("or", value, shift(e, "shl", e.zext(part, x.width), e.const(i, 32)))
        return value

    def _buffer_store(self, addr: Value, value: Value) -> None:
        """S_BUFFER_STORE: dwords outside the buffer's bytes are not written."""
        e = self.e
        for i in range(0, value.width, 32):
            at = e.bin("add", addr, e.const(i // 8, 64))
            p = self._pointer_if(self._inside(at, 4), at, 4, layout.ACCESS_WRITE)
            self.store_if(p, e.zext(shift(e, "lshr", value, e.const(i, 32)), 32))

    def _pointer_if(self, inside: Value, at: Value, size: int, access: int) -> str:
        """Host pointer of an access, null when it is not inside."""
        e = self.e
        some, end, before = e.label("some"), e.label("end"), e.block
        e.branch(inside.ref, some, end)
        e.start(some)
        p = self.resolve(at, size, access, "global")
        after = e.block
        e.jump(end)
        e.start(end)
        return e.raw(f"phi ptr [ null, %{before} ], [ {p}, %{after} ]")

    def mem_load(self, x: Load, address: Callable[[Expr], Value], mask: Value | None) -> Value:
        if self.old_value is not None:
            return self.e.zext(self.old_value, x.width)
        return self.load_memory(x, address(x.addr))

    def mem_store(self, s: Store, address: Callable[[Expr], Value], value: Value, mask: Value | None) -> None:
        if self.old_value is not None:
            self.e.line(f"store i{value.width} {value.ref}, ptr {self.pending}")
            return
        if self.is_buffer():
            self._buffer_store(address(s.addr), value)
            return
        kind = "lds" if s.space == "LDS" else "global"
        p = self.resolve(address(s.addr), value.width // 8, self.access_of(layout.ACCESS_WRITE), kind)
        self.store_if(p, value)
