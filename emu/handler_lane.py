"""Handlers of lane scope, all lanes at once: VALU, and memory through the helpers of the C core."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from stuntgpu.emu import formats, layout, state
from stuntgpu.emu.forms import Form, Slot, row
from stuntgpu.emu.handler_base import STATE_PLACES, Handler
from stuntgpu.emu.handler_finish import finished
from stuntgpu.emu.lower import NotVector, VectorBody, bit_name
from stuntgpu.emu.lower_int import shift
from stuntgpu.emu.lower_text import Host, Value
from stuntgpu.isa.arch import arch
from stuntgpu.isa.errors import Unmodelled
from stuntgpu.isa.inst import WHOLE
from stuntgpu.isa.ir import (
    Const,
    Do,
    Expr,
    Load,
    Op,
    RegRead,
    RegWrite,
    Semantics,
    Set,
    Stmt,
    Store,
    Var,
)
from stuntgpu.isa.semantics import keeps_upper_half

#: DST_SEL that gives every channel its own.
_IDENTITY = sum(s << 3 * i for i, s in enumerate(formats.IDENTITY))
#: Places that are the same in all lanes whatever their slot.
_UNIFORM = frozenset(("OFFSET0", "OFFSET1", "OFFSET"))


@dataclass(frozen=True, slots=True)
class Target:
    """Where the lanes' addresses come from, as the C helpers take it."""

    kind: str
    base: str
    low: str
    high: str
    mask: str | None = None


def without_aliases(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """A straight body with ADDR where it had been given another name."""
    names: set[str] = set()
    out: list[Stmt] = []
    for s in body:
        if isinstance(s, Set) and isinstance(s.value, Var) and s.value.name == "ADDR":
            names.add(s.name)
        elif isinstance(s, Store):
            out.append(replace(s, addr=_renamed(s.addr, names)))
        elif isinstance(s, Set) and isinstance(s.value, Load):
            out.append(replace(s, value=replace(s.value, addr=_renamed(s.value.addr, names))))
        else:
            out.append(s)
    return tuple(out)


def _renamed(x: Expr, names: set[str]) -> Expr:
    if isinstance(x, Var) and x.name in names:
        return Var("ADDR", x.width)
    return replace(x, args=tuple(_renamed(a, names) for a in x.args)) if isinstance(x, Op) else x


class LaneHandler(Handler):
    def __init__(self, form: Form, sem: Semantics, host: Host) -> None:
        super().__init__(form, sem, host)
        self.values: dict[tuple[str, int], Value] = {}
        self.exec = ""
        self.facts = row(form.arch, form.name)

    def body(self) -> None:
        self.start_lanes()
        if not self.move_memory():
            b = VectorBody(self.e, self)
            b.block(self.sem.body)
            self.finish(b.vars)
            self.transpose()

    def do(self, s: Do, args: Sequence[Value], mask: Value | None) -> None:
        if s.action != "transpose":  # that one comes after the results are stored
            super().do(s, args, mask)

    def transpose(self) -> None:
        """The transposition of a row that asks for one, in the registers it just wrote."""
        for s in self.sem.body:
            if isinstance(s, Do) and s.action == "transpose":
                i = next(k for k, slot in enumerate(self.form.slots) if slot.name.startswith("written "))
                n = self.form.slots[i].bits // 32
                counts = ", ".join(f"i32 {x.bits}" for x in (Const(n, 32), *s.args) if isinstance(x, Const))
                self.e.line(f"call void {self.helper(layout.TRANSPOSE)}(ptr %w, i64 {self.lanes_of(None)}, ptr %p{i}, {counts})")

    # ------------------------------------------------------------ EXEC and DPP

    def start_lanes(self) -> None:
        """EXEC of this instruction as i<lanes>: with DPP, without the lanes it disables."""
        self.exec = self.exec_mask()
        dpp = self.form.dpp
        if dpp is None:
            return
        valid = self.dpp_valid()
        keep = dpp.enabled
        self.exec = self.e.raw(f"and i{self.lanes} {self.exec}, {_signed(keep, self.lanes)}")
        if not dpp.zero:
            self.exec = self.e.raw(f"and i{self.lanes} {self.exec}, {valid}")

    def dpp_valid(self) -> str:
        """Lanes that have a source, as i<lanes>."""
        dpp = self.form.dpp
        assert dpp is not None
        some = sum(1 << i for i, s in enumerate(dpp.sources) if s is not None)
        if dpp.fetch_inactive:
            return str(_signed(some, self.lanes))
        n = self.lanes
        bits = self.e.raw(f"bitcast i{n} {self.exec_mask()} to <{n} x i1>")
        moved = self.e.raw(f"shufflevector <{n} x i1> {bits}, <{n} x i1> zeroinitializer, {self.dpp_indices()}")
        return self.e.raw(f"bitcast <{n} x i1> {moved} to i{n}")

    def dpp_indices(self) -> str:
        dpp = self.form.dpp
        assert dpp is not None
        picks = ", ".join(f"i32 {self.lanes if s is None else s}" for s in dpp.sources)
        return f"<{self.lanes} x i32> <{picks}>"

    def dpp_move(self, v: Value) -> Value:
        e, t = self.e, self.e.ty(v.width)
        moved = e.inst(f"shufflevector {t} {v.ref}, {t} zeroinitializer, {self.dpp_indices()}", v.width)
        valid = e.inst(f"bitcast i{self.lanes} {self.dpp_valid()} to {e.ty(1)}", 1)
        return e.select(valid, moved, e.const(0, v.width))

    def exec_lanes(self) -> Value:
        return self.e.inst(f"bitcast i{self.lanes} {self.exec} to {self.e.ty(1)}", 1)

    # ------------------------------------------------------------ Places

    def read(self, name: str, width: int) -> Value:
        key = (name, width)
        if key not in self.values:
            self.values[key] = self.fetch(name, width)
        return self.values[key]

    def fetch(self, name: str, width: int) -> Value:
        e = self.e
        if name == "LANE":
            lanes = ", ".join(f"i32 {i}" for i in range(self.lanes))
            return e.zext(Value(f"<{lanes}>", 32), width)
        if name == "ADDR":
            return e.zext(self.addresses(), width)
        if name in self.constants:
            return e.const(self.constants[name], width)
        i = self.slot_of(name)
        if i >= 0 and self.form.slots[i].kind == "v":
            v = self.vector_slot(i)
            moved = self.dpp_move(v) if self.form.dpp is not None and name == "S0" else v
            return e.zext(moved, width)
        v = self.scalar(self.form.slots[i].name if i >= 0 else name, width)
        return v if v.const is not None and not e.lanes else e.splat(v.ref, width)

    def slot_of(self, name: str) -> int:
        """The slot a place is read from: its own, or the old value of its destination."""
        i = self.form.slot(name)
        if i < 0 and name not in STATE_PLACES:
            i = self.form.slot(f"written {name}")
        return i

    def vector_slot(self, i: int) -> Value:
        """A VGPR operand: dwords joined, half chosen, modifiers applied."""
        e, s = self.e, self.form.slots[i]
        if s.select != WHOLE or s.sext:
            return self.modified(s, self.selected(s, self.column(i, 0)))
        if s.bits <= 32:
            v = self.column(i, 0)
            if s.bits == 16:
                v = shift(e, "lshr", v, e.const(16 * s.half, 32))
            return self.modified(s, e.zext(v, s.bits))
        v = e.zext(self.column(i, 0), s.bits)
        for k in range(1, s.bits // 32):
            high = e.zext(self.column(i, k), s.bits)
            v = e.bin("or", v, shift(e, "shl", high, e.const(32 * k, 32)))
        return self.modified(s, v)

    def column_ptr(self, i: int, k: int) -> str:
        if k == 0:
            return f"%p{i}"
        return self.e.raw(f"getelementptr i8, ptr %p{i}, i64 {k * layout.vgpr_stride(self.lanes)}")

    def column(self, i: int, k: int) -> Value:
        """Dword k of a VGPR operand in all lanes."""
        return self.e.inst(f"load {self.e.ty(32)}, ptr {self.column_ptr(i, k)}, align 64", 32)

    def lane_bit(self, name: str) -> Value:
        e = self.e
        if name == "EXEC":
            return self.exec_lanes()
        i = self.form.slot(bit_name(name))
        if i < 0:
            return e.const(0, 1)
        with e.scalarly():
            mask = self.mask_slot(i)
        return e.inst(f"bitcast i{self.lanes} {mask.ref} to {e.ty(1)}", 1)

    def reg_read(self, x: RegRead, index: Value, lane: Value | None) -> Value:
        raise NotVector("registers by number")

    def reg_write(self, s: RegWrite, index: Value, value: Value, lane: Value | None, mask: Value | None) -> None:
        raise NotVector("registers by number")

    # ------------------------------------------------------------ results

    def finish(self, results: dict[str, Value]) -> None:
        for name in self.facts.writes:
            if name in results:
                self.commit(name, results[name])
        for name in self.facts.masks_out:
            self.commit_mask(name, results.get(bit_name(name), self.e.const(0, 1)))

    def commit(self, name: str, v: Value) -> None:
        i = self.form.slot(f"written {name}")
        if i < 0:
            return
        s = self.form.slots[i]
        if s.kind != "v":
            raise Unmodelled(self.form.arch, f"scalar result {name} of {self.form.name}", "emu/handler_lane.py")
        v = finished(self, s, v) if s.fmt else v
        if name == "VDATA" and self.form.slot("to lds") >= 0:
            self.store_to_lds(v)
            return
        if s.select != WHOLE:
            self.store_part(i, s, v)
            return
        if v.width <= 16 and (s.half or keeps_upper_half(self.form.arch, self.form.name)):
            self.store_half(i, s, v)
            return
        e = self.e
        for k in range(-(-v.width // 32)):
            part = e.zext(v if k == 0 else shift(e, "lshr", v, e.const(32 * k, 32)), 32)
            self.blend(self.column_ptr(i, k), part)

    def store_half(self, i: int, s: Slot, v: Value) -> None:
        e = self.e
        at = 16 * s.half
        old = e.bin("and", self.column(i, 0), e.const(~(0xFFFF << at), 32))
        new = shift(e, "shl", e.zext(e.zext(v, 16), 32), e.const(at, 32))
        self.blend(f"%p{i}", e.bin("or", old, new))

    def store_part(self, i: int, s: Slot, v: Value) -> None:
        """SDWA: the result's low bits to a part of the register; the rest zero, the sign above it, or kept."""
        e, (low, width) = self.e, state.sdwa_part(s.select)
        field = e.zext(v, width)
        extended = e.sext(field, 32) if s.unused == state.PAD_SIGN else e.zext(field, 32)
        new = shift(e, "shl", extended, e.const(low, 32))
        if s.unused == state.PRESERVE:
            rest = ~(((1 << width) - 1) << low)
            new = e.bin("or", e.bin("and", self.column(i, 0), e.const(rest, 32)), new)
        self.blend(f"%p{i}", new)

    def store_to_lds(self, v: Value) -> None:
        """A buffer load with the LDS bit, as lds_loads.store_to_lds."""
        e, size = self.e, max(4, v.width // 8)
        with e.scalarly():
            start = e.zext(e.bin("and", STATE_PLACES["M0"](self), e.const(0x3FFFC, 32)), 64)
            base = e.bin("add", start, e.zext(self.scalar("to lds", 32), 64))
        steps = self.spill(e.bin("mul", self.read("LANE", 32), e.const(16 if size > 4 else 4, 32)))
        self.access(Target("lds", base.ref, steps, "null"), size, True, None, self.spill_dwords(v))

    def blend(self, ptr: str, v: Value) -> None:
        """Store under EXEC."""
        e, t = self.e, self.e.ty(32)
        old = e.inst(f"load {t}, ptr {ptr}, align 64", 32)
        new = e.select(self.exec_lanes(), v, old)
        e.line(f"store {t} {new.ref}, ptr {ptr}, align 64")

    def commit_mask(self, name: str, v: Value) -> None:
        """Assemble the mask; bits of inactive lanes are 0."""
        e, n = self.e, self.lanes
        bits = e.raw(f"bitcast {e.ty(1)} {v.ref} to i{n}")
        bits = e.raw(f"and i{n} {bits}, {self.exec}")
        ptr = self.wave_ptr(layout.EXEC) if name == "EXEC" else f"%p{self.form.slot('written ' + bit_name(name))}"
        e.line(f"store i{n} {bits}, ptr {ptr}, align 4")

    # ------------------------------------------------------------ addresses

    def space(self, x: Load | Store) -> str:
        return "lds" if x.space == "LDS" else self.form.segment

    def addresses(self) -> Value:
        """ADDR in every lane, 64 bits (LDS: 32)."""
        e = self.e
        if self.form.segment == "lds":
            return e.bin("add", self.read("at vaddr", 32), self.read("at offset", 32))
        if self.form.segment == "buffer":
            return self.buffer_addresses()[0]
        if self.form.segment == "scratch":
            total = self.read("at offset", 32)
            for name in ("at saddr", "at vaddr"):
                if self.form.slot(name) >= 0:
                    total = e.bin("add", total, self.read(name, 32))
            return e.bin("add", e.zext(total, 64), e.const(2 << 48, 64))
        total = e.sext(self.read("at offset", 32), 64)
        for name in ("at saddr", "at vaddr"):
            i = self.form.slot(name)
            if i >= 0:
                total = e.bin("add", total, e.zext(self.read(name, self.form.slots[i].bits), 64))
        return total

    def buffer_addresses(self) -> tuple[Value, Value, Value]:
        """(address, first byte in range, end of range) of every lane; Unmodelled at run time for swizzles."""
        e = self.e
        words = self.scalar("at srsrc", 128)
        with e.scalarly():
            fields = {
                "base": e.bin("and", e.zext(words, 64), e.const((1 << 48) - 1, 64)),
                "stride": e.bin("and", e.zext(shift(e, "lshr", words, e.const(48, 32)), 64), e.const(0x3FFF, 64)),
                "records": e.zext(e.zext(shift(e, "lshr", words, e.const(64, 32)), 32), 64),
                "add_lane": e.zext(shift(e, "lshr", words, e.const(119, 32)), 1),
            }
            fields["check"] = self._bounds_rule(words, fields)
            fields["low"] = fields["base"]
            if self.is_gfx9:
                fields["low"] = e.bin("add", fields["base"], e.zext(self.scalar("at soffset", 32), 64))
            swizzle = e.zext(shift(e, "lshr", words, e.const(63 if self.is_gfx9 else 62, 32)), 1 if self.is_gfx9 else 2)
            self.unmodelled_if(e.icmp("ne", swizzle, e.const(0, swizzle.width)))
        v = {k: e.splat(x.ref, x.width) for k, x in fields.items()}
        index = self._optional("at index")
        lane = e.zext(self.read("LANE", 32), 64)
        index = e.bin("add", index, e.select(v["add_lane"], lane, e.const(0, 64)))
        offset = e.bin("add", self._optional("at vaddr"), e.zext(self.read("at offset", 32), 64))
        address = e.bin("add", v["base"], e.zext(self.read("at soffset", 32), 64))
        address = e.bin("add", address, e.bin("add", e.bin("mul", v["stride"], index), offset))
        return address, *self._range(v, index, offset)

    @property
    def is_gfx9(self) -> bool:
        return arch(self.form.arch).dialect == "gfx9"

    def _bounds_rule(self, words: Value, fields: dict[str, Value]) -> Value:
        """OOB_SELECT, in scalar code; as address.buffer_of has it for GFX9, which has none. 4: no check."""
        e = self.e
        if not self.is_gfx9:
            return e.zext(e.zext(shift(e, "lshr", words, e.const(124, 32)), 2), 64)
        if self.form.slot("at index") < 0:
            return e.select(fields["add_lane"], e.const(4, 64), e.const(3, 64))
        return e.select(e.icmp("ne", fields["stride"], e.const(0, 64)), e.const(1, 64), e.const(3, 64))

    def _optional(self, name: str) -> Value:
        if self.form.slot(name) < 0:
            return self.e.const(0, 64)
        return self.e.zext(self.read(name, 32), 64)

    def _range(self, v: dict[str, Value], index: Value, offset: Value) -> tuple[Value, Value]:
        """Range by OOB_SELECT: 4 nothing, 3 bytes, 2 only emptiness, 1 index, 0 index and offset."""
        e = self.e
        zero, top = e.const(0, 64), e.const(-1, 64)
        check = {n: e.icmp("eq", v["check"], e.const(n, 64)) for n in (0, 2, 3, 4)}
        past_index = e.icmp("uge", index, v["records"])
        past_offset = e.bin("and", e.icmp("ne", v["stride"], zero), e.icmp("uge", offset, v["stride"]))
        past = e.bin("or", past_index, e.bin("and", check[0], past_offset))
        past = e.select(check[2], e.icmp("eq", v["records"], zero), past)
        past = e.select(check[4], e.const(0, 1), past)
        low = e.select(check[3], v["low"], zero)
        high = e.select(check[3], e.bin("add", v["low"], v["records"]), e.select(past, zero, top))
        return low, high

    def unmodelled_if(self, cond: Value) -> None:
        e = self.e
        bad, go = e.label("bad"), e.label("go")
        e.branch(cond.ref, bad, go, rare=True)
        e.start(bad)
        e.line(f"store i32 {layout.FAULT_UNMODELLED}, ptr {self.wave_ptr(layout.FAULT_KIND)}, align 4")
        e.jump("stop")
        e.start(go)
        self.stops = True

    # ------------------------------------------------------------ memory

    def offset_of(self, x: Expr) -> Expr | None:
        """y when x is ADDR + y with y the same in all lanes."""
        if isinstance(x, Var) and x.name == "ADDR":
            return Const(0, 32)
        if isinstance(x, Op) and x.op == "add":
            for a, b in (x.args, x.args[::-1]):
                if isinstance(a, Var) and a.name == "ADDR" and _is_uniform(b):
                    return b
        return None

    def scalar_expr(self, x: Expr) -> Value:
        """A uniform expression in scalar code."""
        with self.e.scalarly():
            return self.e.sext(_ScalarExpressions(self).expr(x), 64)

    def target(self, x: Load | Store, address: Callable[[Expr], Value]) -> Target:
        space = self.space(x)
        more = self.offset_of(x.addr)
        if space == "buffer" or more is None:
            return self.spilled(space, address(x.addr))
        with self.e.scalarly():
            base = self.e.bin("add", self.base(space), self.scalar_expr(more))
        i = self.form.slot("at vaddr")
        if space == "scratch" or space == "lds":
            return Target(space, base.ref, f"%p{i}" if i >= 0 else "null", "null")
        if i < 0:
            return self.spilled(space, address(x.addr))
        if self.form.slots[i].bits == 32:
            return Target("base32", base.ref, f"%p{i}", "null")
        kind = "flat" if space == "flat" else "addr64"
        return Target(kind, base.ref, f"%p{i}", self.column_ptr(i, 1))

    def base(self, space: str) -> Value:
        """The uniform part of ADDR."""
        e = self.e
        offset = self.scalar("at offset", 32)
        base = e.zext(offset, 64) if space == "lds" else e.sext(offset, 64)
        i = self.form.slot("at saddr")
        if i < 0:
            return base
        return e.bin("add", base, e.zext(self.scalar("at saddr", self.form.slots[i].bits), 64))

    def spilled(self, space: str, address: Value) -> Target:
        """Addresses that no register holds, by way of the stack."""
        if space in ("lds", "scratch"):
            return Target(space, "0", self.spill(self.e.zext(address, 32)), "null")
        if space == "buffer":
            _, low, high = self.buffer_addresses()
            ranges = self.e.alloca(f"[{2 * self.lanes} x i64]")
            self.spill(low, ranges)
            self.spill(high, self.e.raw(f"getelementptr i64, ptr {ranges}, i64 {self.lanes}"))
            return Target("buffer", "0", self.spill(address), ranges)
        if space == "flat":
            low, high = self.e.zext(address, 32), self.e.zext(shift(self.e, "lshr", address, self.e.const(32, 32)), 32)
            return Target("flat", "0", self.spill(low), self.spill(high))
        return Target("array", "0", self.spill(address), "null")

    def spill(self, v: Value, at: str = "") -> str:
        slot = at or self.e.alloca(self.e.ty(v.width))
        self.e.line(f"store {self.e.ty(v.width)} {v.ref}, ptr {slot}, align 64")
        return slot

    def spill_dwords(self, v: Value) -> str:
        """Register-major, as the helpers want data."""
        e, n = self.e, max(1, -(-v.width // 32))
        slot = e.alloca(f"[{n * self.lanes} x i32]")
        for k in range(n):
            part = e.zext(v if k == 0 else shift(e, "lshr", v, e.const(32 * k, 32)), 32)
            self.spill(part, e.raw(f"getelementptr i8, ptr {slot}, i64 {k * layout.vgpr_stride(self.lanes)}"))
        return slot

    def reload_dwords(self, slot: str, width: int) -> Value:
        e = self.e
        out: Value | None = None
        for k in range(max(1, width // 32)):
            at = e.raw(f"getelementptr i8, ptr {slot}, i64 {k * layout.vgpr_stride(self.lanes)}")
            v = e.zext(e.inst(f"load {e.ty(32)}, ptr {at}, align 64", 32), width)
            out = v if out is None else e.bin("or", out, shift(e, "shl", v, e.const(32 * k, 32)))
        assert out is not None
        return out

    def lanes_of(self, mask: Value | None) -> str:
        """EXEC and the predicate as i64."""
        e = self.e
        bits = self.exec
        if mask is not None:
            own = e.raw(f"bitcast {e.ty(1)} {mask.ref} to i{self.lanes}")
            bits = e.raw(f"and i{self.lanes} {bits}, {own}")
        return e.raw(f"zext i{self.lanes} {bits} to i64") if self.lanes < 64 else bits

    def access(self, t: Target, size: int, store: bool, mask: Value | None, data: str, helper: int = -1) -> None:
        if size not in layout.SIZES:
            raise NotVector(f"accesses of {size} bytes")
        fn = self.helper(layout.access_helper(t.kind, size, store) if helper < 0 else helper)
        bad = self.e.raw(f"call i32 {fn}(ptr %w, i64 {self.lanes_of(mask)}, i64 {t.base}, ptr {t.low}, "
                         f"ptr {t.high}, ptr {data})")
        self.stop_if(self.e.raw(f"icmp ne i32 {bad}, 0"))

    # ------------------------------------------------------------ memory formats

    def channel_spec(self, x: Load | Store, is_short: bool) -> Value:
        """What the C helper wants to know of a channel: see `Spec` in emu/native/formats.c."""
        e, more = self.e, self.offset_of(x.addr)
        if not isinstance(more, Const):
            raise Unmodelled(self.form.arch, f"channels of {self.form.name}", "emu/handler_lane.py")
        row = state.wavefront(self.form.arch)
        plain = more.bits | is_short << 8 | row.bank << 48
        with e.scalarly():
            if self.form.slot("at format") >= 0:
                code, select = e.zext(self.scalar("at format", 32), 64), e.const(_IDENTITY, 64)
            else:
                last = e.zext(shift(e, "lshr", self.scalar("at srsrc", 128), e.const(96, 32)), 64)
                code, select = self._format_code(last), e.bin("and", last, e.const(0xFFF, 64))
            word = e.bin("or", e.bin("shl", code, e.const(16, 64)), e.bin("shl", select, e.const(32, 64)))
            return e.bin("or", word, e.const(plain, 64))

    def _format_code(self, last: Value) -> Value:
        """From the last dword of a descriptor, as formats.code_of_descriptor reads it."""
        e = self.e

        def bits(at: int, n: int) -> Value:
            return e.bin("and", e.bin("lshr", last, e.const(at, 64)), e.const((1 << n) - 1, 64))

        dialect = arch(self.form.arch).dialect
        if dialect == "gfx9":
            return e.bin("or", e.bin("shl", bits(12, 3), e.const(4, 64)), bits(15, 4))
        return bits(12, 7 if dialect == "gfx11" else 6)

    def typed_access(self, x: Load | Store, width: int, mask: Value | None, data: str) -> None:
        spec = self.channel_spec(x, width == 16)
        t = self.spilled("buffer", self.addresses())
        fn = self.helper(layout.TYPED_LOAD if isinstance(x, Load) else layout.TYPED_STORE)
        bad = self.e.raw(f"call i32 {fn}(ptr %w, i64 {self.lanes_of(mask)}, i64 {spec.ref}, ptr {t.low}, ptr {t.high}, ptr {data})")
        self.stop_if(self.e.raw(f"icmp ne i32 {bad}, 0"))

    def mem_load(self, x: Load, address: Callable[[Expr], Value], mask: Value | None) -> Value:
        e = self.e
        if x.space == "FORMAT":
            slot = e.alloca(f"[{self.lanes} x i32]")
            self.typed_access(x, x.width, mask, slot)
            return e.zext(self.reload_dwords(slot, 32), x.width)
        slot = e.alloca(f"[{max(1, x.width // 32) * self.lanes} x i32]")
        self.access(self.target(x, address), x.width // 8, False, mask, slot)
        return e.zext(self.reload_dwords(slot, max(32, x.width)), x.width)

    def mem_store(self, s: Store, address: Callable[[Expr], Value], value: Value, mask: Value | None) -> None:
        if s.space == "FORMAT":
            self.typed_access(s, value.width, mask, self.spill_dwords(value))
            return
        self.access(self.target(s, address), value.width // 8, True, mask, self.spill_dwords(value))

    def move_memory(self) -> bool:
        """A row that only moves whole registers from or to memory: the helper works on the register file."""
        if self.form.dpp is not None or not self.form.segment or self.facts.is_typed or self.form.slot("to lds") >= 0:
            return False
        body = without_aliases(self.sem.body)
        if sum(isinstance(s, Store) for s in body) > 1:
            if all(map(self._is_move, body)) and self.store_pair(body):
                return True
            raise NotVector("several stores: those of a lane come before those of the next")
        if len(body) > 1 or not all(map(self._is_move, body)):
            return False
        for s in body:
            if isinstance(s, Set) and isinstance(s.value, Load):
                i = self.form.slot(f"written {s.name}")
                self.access(self.target(s.value, self._vector), s.value.width // 8, False, None, f"%p{i}")
            elif isinstance(s, Store) and isinstance(s.value, Var):
                i = self.form.slot(s.value.name)
                self.access(self.target(s, self._vector), s.value.width // 8, True, None, f"%p{i}")
        return True

    def store_pair(self, body: Sequence[Stmt]) -> bool:
        """Two stores of a lane come before those of the next: one call."""
        e = self.e
        stores = [s for s in body if isinstance(s, Store) and s.space == "LDS"]
        size = stores[0].value.width // 8 if len(stores) == 2 else 0
        if size not in layout.STORE_PAIR:
            return False
        bases = []
        for s in stores:
            more = self.offset_of(s.addr)
            if more is None:
                return False
            with e.scalarly():
                bases.append(e.zext(e.bin("add", self.base("lds"), self.scalar_expr(more)), 32))
        with e.scalarly():
            high = shift(e, "shl", e.zext(bases[1], 64), e.const(32, 32))
            both = e.bin("or", high, e.zext(bases[0], 64))
        data = [f"%p{self.form.slot(s.value.name)}" for s in stores if isinstance(s.value, Var)]
        self.access(Target("", both.ref, f"%p{self.form.slot('at vaddr')}", data[0]), size, True, None, data[1],
                    layout.STORE_PAIR[size])
        return True

    def _vector(self, x: Expr) -> Value:
        return VectorBody(self.e, self).expr(x)

    def _is_move(self, s: Stmt) -> bool:
        if isinstance(s, Store) and isinstance(s.value, Var):
            return self._is_plain(s.value.name, s.value.width)
        if isinstance(s, Set) and isinstance(s.value, Load):
            return s.value.width >= 32 and self._is_plain(f"written {s.name}", s.value.width)
        return False

    def _is_plain(self, name: str, width: int) -> bool:
        """The slot is whole VGPRs without modifiers."""
        i = self.form.slot(name)
        if i < 0:
            return False
        s = self.form.slots[i]
        return s.kind == "v" and not s.fmt and not s.packed and s.half == 0 and width // 8 in layout.SIZES and (
            s.bits == width or (s.bits >= width and width <= 32))


class _ScalarExpressions(VectorBody):
    """Uniform expressions over the scalar places."""

    def __init__(self, h: LaneHandler) -> None:
        super().__init__(h.e, h)
        self.h = h

    def get(self, name: str, width: int) -> Value:
        return self.h.scalar(name, width)


def _is_uniform(x: Expr) -> bool:
    match x:
        case Const():
            return True
        case Var(name, _):
            return name in _UNIFORM
        case Op(_, args, _, _):
            return all(map(_is_uniform, args))
        case _:
            return False


def _signed(bits: int, width: int) -> int:
    return bits - (1 << width) if bits >> (width - 1) & 1 else bits
