"""WMMA: the whole wave multiplies matrices, by the documented register layouts and the rule of `matrix`.

An accumulator register is a vector over the lanes: column lane % 16, row register * (lanes / 16) +
lane / 16. For each k, B's column element is in the right lane already and A's rows are brought to
theirs by one permutation, so a step is one fused multiply-add a register. When a result is a NaN, a C
helper goes through the lanes again by the NaN rule.
"""

from __future__ import annotations

from stuntgpu.emu import layout
from stuntgpu.emu.handler_lane import LaneHandler
from stuntgpu.emu.lower_float import is_unordered, narrow, native, widen
from stuntgpu.emu.lower_int import shift
from stuntgpu.emu.lower_text import F32, FORMATS, Float, Value
from stuntgpu.emu.matrix import SHAPES, K
from stuntgpu.isa.errors import Unmodelled


class MatrixHandler(LaneHandler):
    def body(self) -> None:
        shape = SHAPES.get(self.form.name)
        if shape is None:
            raise Unmodelled(self.form.arch, self.form.name, "emu/handler_matrix.py")
        self.shape = shape
        self.groups = self.lanes // 16
        self.n = 16 // self.groups  # accumulator registers
        self.high = shape.result in ("f16", "bf16") and bool(self.constants["OPSEL"] & 4)
        start = [self.start(v) for v in range(self.n)]
        done = self.floats(start) if shape.result else self.integers(start)
        for v, value in enumerate(done):
            self.store(v, value)

    # ------------------------------------------------------------ operands

    def packed_element(self, name: str, k: int) -> Value:
        """Element k of A's rows or B's columns, lane by lane."""
        per_register = 32 // self.shape.element_bits
        i = self.form.slot(name)
        word = self.column(i, k // per_register)
        at = k % per_register * self.shape.element_bits
        return self.e.zext(shift(self.e, "lshr", word, self.e.const(at, 32)), self.shape.element_bits)

    def float_element(self, name: str, k: int) -> Value:
        e, f = self.e, FORMATS[self.shape.element]
        s = self.form.slots[self.form.slot(name)]
        v = self.packed_element(name, k)
        if s.neg_hi if k % 2 else s.neg:
            v = e.bin("xor", v, e.const(f.sign, f.width))
        return widen(e, f, F32, v)

    def rows(self, v: Value, register: int) -> Value:
        """Lane % 16 = row becomes: in every lane, the row of accumulator register `register`."""
        return self.shuffle(v, [register * self.groups + lane // 16 for lane in range(self.lanes)])

    def columns(self, v: Value) -> Value:
        return self.shuffle(v, [lane % 16 for lane in range(self.lanes)])

    def shuffle(self, v: Value, picks: list[int]) -> Value:
        t = self.e.ty(v.width)
        indices = ", ".join(f"i32 {i}" for i in picks)
        return self.e.inst(f"shufflevector {t} {v.ref}, {t} poison, <{self.lanes} x i32> <{indices}>", v.width)

    def start(self, register: int) -> Value:
        """C: an f32 (or i32) a lane; NEG_HI is the absolute value, NEG negates."""
        e, i = self.e, self.form.slot("S2")
        s = self.form.slots[i]
        constant = s.kind != "v"
        if constant:
            word = e.splat(self.e.raw(f"load i32, ptr %p{i}, align 4"), 32)
        else:
            word = self.column(i, register)
        if not self.shape.result:
            return word
        f = FORMATS[self.shape.result]
        v = e.zext(shift(e, "lshr", word, e.const(16 if self.high and not constant else 0, 32)), f.width)
        if s.neg_hi:
            v = e.bin("and", v, e.const(f.sign - 1, f.width))
        if s.neg:
            v = e.bin("xor", v, e.const(f.sign, f.width))
        return v if f is F32 else widen(e, f, F32, v)

    def store(self, register: int, v: Value) -> None:
        """EXEC is ignored."""
        e, i = self.e, self.form.slot("written D0")
        ptr = self.column_ptr(i, register)
        if v.width == 16:
            old = self.column(i, register)
            at = 16 if self.high else 0
            kept = e.bin("and", old, e.const(~(0xFFFF << at), 32))
            v = e.bin("or", kept, shift(e, "shl", e.zext(v, 32), e.const(at, 32)))
        e.line(f"store {e.ty(32)} {v.ref}, ptr {ptr}, align 64")

    # ------------------------------------------------------------ the product

    def floats(self, start: list[Value]) -> list[Value]:
        e = self.e
        a = [self.float_element("S0", k) for k in range(K)]
        b = [self.columns(self.float_element("S1", k)) for k in range(K)]
        total = list(start)
        for k in range(K):
            for v in range(self.n):
                total[v] = native(e, F32, "fma", (self.rows(a[k], v), b[k], total[v]))
        total = self.settled(total, start, a, b)
        result = FORMATS[self.shape.result]
        return [self.rounded(result, t) for t in total]

    def rounded(self, f: Float, v: Value) -> Value:
        return v if f is F32 else narrow(self.e, F32, f, v, "rne", saturate=False)

    def settled(self, total: list[Value], start: list[Value], a: list[Value], b: list[Value]) -> list[Value]:
        """The sums; by way of the helper when one is a NaN."""
        e = self.e
        bad = is_unordered(e, F32, total[0])
        for t in total[1:]:
            bad = e.bin("or", bad, is_unordered(e, F32, t))
        slow, done, before = e.label("slow"), e.label("done"), e.block
        e.branch(e.any(bad), slow, done, rare=True)
        e.start(slow)
        sums, rows, columns = (self.spill_all(vs) for vs in (start, a, b))
        fn = self.helper(layout.WMMA)
        e.line(f"call void {fn}(i32 {self.lanes}, ptr {sums}, ptr {rows}, ptr {columns})")
        again = [self.reload(sums, v) for v in range(self.n)]
        e.jump(done)
        e.start(done)
        ty = e.ty(32)
        return [e.inst(f"phi {ty} [ {old.ref}, %{before} ], [ {new.ref}, %{slow} ]", 32)
                for old, new in zip(total, again, strict=True)]

    def spill_all(self, values: list[Value]) -> str:
        slot = self.e.alloca(f"[{len(values) * self.lanes} x i32]")
        for i, v in enumerate(values):
            self.spill(v, self.row_ptr(slot, i))
        return slot

    def row_ptr(self, slot: str, i: int) -> str:
        return self.e.raw(f"getelementptr i8, ptr {slot}, i64 {i * layout.vgpr_stride(self.lanes)}")

    def reload(self, slot: str, i: int) -> Value:
        return self.e.inst(f"load {self.e.ty(32)}, ptr {self.row_ptr(slot, i)}, align 64", 32)

    def integers(self, start: list[Value]) -> list[Value]:
        """Exact sums of products (they fit 32 bits), then added to C, saturating or wrapping."""
        e, neg = self.e, self.constants["NEG"]
        out = []
        columns = [self.columns(self.integer_element("S1", k, neg & 2)) for k in range(K)]
        rows = [self.integer_element("S0", k, neg & 1) for k in range(K)]
        for v in range(self.n):
            total = e.const(0, 32)
            for k in range(K):
                total = e.bin("add", total, e.bin("mul", self.rows(rows[k], v), columns[k]))
            out.append(e.intrinsic("sadd.sat", 32, start[v], total) if self.constants["CLAMP"]
                       else e.bin("add", start[v], total))
        return out

    def integer_element(self, name: str, k: int, signed: int) -> Value:
        v = self.packed_element(name, k)
        return self.e.sext(v, 32) if signed else self.e.zext(v, 32)
