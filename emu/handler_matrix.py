"""WMMA and SWMMAC: the whole wave multiplies matrices, by the layouts of `matrix_layout` and the rule of `matrix`.

An element number of C and D is a vector over the lanes: column lane % 16, row by the layout. For each
term, B's column element is brought to its column's lanes and A's to its row's by one permutation each, so
a step is one fused multiply-add an element; a sparse A picks among four elements of B. When a result is a
NaN, a C helper goes through the lanes again by the NaN rule.
"""

from __future__ import annotations

from stuntgpu.emu import layout
from stuntgpu.emu.handler_lane import LaneHandler
from stuntgpu.emu.lower_float import is_unordered, narrow, native, widen
from stuntgpu.emu.lower_int import shift
from stuntgpu.emu.lower_small import widen_small
from stuntgpu.emu.lower_text import F32, FORMATS, Float, Value
from stuntgpu.emu.matrix_layout import SIZE, Place, bits_of, product
from stuntgpu.emu.smallfloat import SMALL


class MatrixHandler(LaneHandler):
    def body(self) -> None:
        self.p = product(self.form.arch, self.form.name, self.lanes)
        self.n = self.p.accumulators
        self.short = self.p.shape.result in ("f16", "bf16")
        self.high = self.short and not self.p.packs and bool(self.constants["OPSEL"] & 4)
        self.which = self.positions()
        start = [self.start(v) for v in range(self.n)]
        done = self.integers(start) if self.p.shape.is_integer else self.floats(start)
        self.store(done)

    # ------------------------------------------------------------ operands

    def packed_element(self, name: str, element: str, place: Place) -> Value:
        """An element of A's rows or B's columns, in the lanes that hold it."""
        bits = bits_of(element)
        per_register = 32 // bits
        word = self.column(self.form.slot(name), place.element // per_register)
        return self.e.zext(shift(self.e, "lshr", word, self.e.const(place.element % per_register * bits, 32)), bits)

    def number(self, name: str, element: str, place: Place, signed: int) -> Value:
        """An element as f32, or as i32, with its row or column in lane % 16."""
        e, v = self.e, self.packed_element(name, element, place)
        if element in SMALL:
            v = widen_small(e, SMALL[element], v)
        elif self.p.shape.is_integer:
            v = e.sext(v, 32) if signed else e.zext(v, 32)
        else:
            f, s = FORMATS[element], self.form.slots[self.form.slot(name)]
            if s.neg_hi if place.element % 2 else s.neg:
                v = e.bin("xor", v, e.const(f.sign, f.width))
            v = widen(e, f, F32, v)
        return self.from_lane(v, place.lane)

    def positions(self) -> list[Value]:
        """Sparse A: which of its four neighbours each kept element is, row in lane % 16."""
        if not self.p.shape.is_sparse:
            return []
        e, word = self.e, self.column(self.form.slot("S2"), 0)
        part = self.constants["OPSEL"] % self.p.parts * (32 // self.p.parts)
        shifted = [(lane, e.bin("lshr", word, e.const(at + part, 32))) for lane, at in self.p.index]
        return [self.from_lane(e.bin("and", v, e.const(3, 32)), lane) for lane, v in shifted]

    def from_lane(self, v: Value, first: int) -> Value:
        """Lanes first .. first + 15 repeated over all lanes."""
        return self.shuffle(v, [first + lane % SIZE for lane in range(self.lanes)])

    def rows(self, v: Value, number: int) -> Value:
        """Row in lane % 16 becomes: in every lane, the row of accumulator element `number`."""
        return self.shuffle(v, [self.p.row_of(number, lane) for lane in range(self.lanes)])

    def shuffle(self, v: Value, picks: list[int]) -> Value:
        t = self.e.ty(v.width)
        indices = ", ".join(f"i32 {i}" for i in picks)
        return self.e.inst(f"shufflevector {t} {v.ref}, {t} poison, <{self.lanes} x i32> <{indices}>", v.width)

    def start(self, number: int) -> Value:
        """C: an f32 (or i32) a lane; NEG_HI is the absolute value, NEG negates."""
        e, sparse = self.e, self.p.shape.is_sparse
        i = self.form.slot("written D0" if sparse else "S2")
        s = self.form.slots[i]
        if s.kind == "v":
            word = self.half(self.column(i, number // 2 if self.pairs else number), number)
        else:
            word = e.splat(e.raw(f"load i32, ptr %p{i}, align 4"), 32)
        if self.p.shape.is_integer:
            return word
        f = FORMATS[self.p.shape.result]
        v = e.zext(word, f.width)
        if s.neg_hi and not sparse:
            v = e.bin("and", v, e.const(f.sign - 1, f.width))
        if s.neg and not sparse:
            v = e.bin("xor", v, e.const(f.sign, f.width))
        return v if f is F32 else widen(e, f, F32, v)

    @property
    def pairs(self) -> bool:
        """Two results share a register."""
        return self.short and self.p.packs

    def half(self, word: Value, number: int) -> Value:
        at = 16 * (number % 2 if self.pairs else self.high)
        return self.e.bin("lshr", word, self.e.const(at, 32)) if at else word

    def store(self, results: list[Value]) -> None:
        """EXEC is ignored."""
        if self.pairs:
            results = [self.joined(low, high) for low, high in zip(results[::2], results[1::2], strict=True)]
        e, i = self.e, self.form.slot("written D0")
        for register, v in enumerate(results):
            if v.width == 16:
                at = 16 if self.high else 0
                kept = e.bin("and", self.column(i, register), e.const(~(0xFFFF << at), 32))
                v = e.bin("or", kept, shift(e, "shl", e.zext(v, 32), e.const(at, 32)))
            e.line(f"store {e.ty(32)} {v.ref}, ptr {self.column_ptr(i, register)}, align 64")

    def joined(self, low: Value, high: Value) -> Value:
        e = self.e
        return e.bin("or", e.zext(low, 32), e.bin("shl", e.zext(high, 32), e.const(16, 32)))

    # ------------------------------------------------------------ the product

    def operands_of_terms(self, neg: int = 0) -> tuple[list[Value], list[Value]]:
        shape = self.p.shape
        a = [self.number("S0", shape.a, place, neg & 1) for place in self.p.a]
        return a, [self.number("S1", shape.b, place, neg & 2) for place in self.p.b]

    def factors(self, a: list[Value], b: list[Value], term: int, number: int) -> tuple[Value, Value]:
        """What one term multiplies in accumulator element `number`."""
        x = self.rows(a[term], number)
        if not self.which:
            return x, b[term]
        e, choice, group = self.e, self.rows(self.which[term], number), term // 2 * 4
        y = b[group]
        for k in (1, 2, 3):
            y = e.select(e.icmp("eq", choice, e.const(k, 32)), b[group + k], y)
        return x, y

    def floats(self, start: list[Value]) -> list[Value]:
        a, b = self.operands_of_terms()
        total = list(start)
        for term in range(len(a)):
            for v in range(self.n):
                total[v] = native(self.e, F32, "fma", (*self.factors(a, b, term, v), total[v]))
        total = self.settled(total, start, a, b)
        result = FORMATS[self.p.shape.result]
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
        which = self.spill_all(self.which) if self.which else "null"
        fn, shape = self.helper(layout.WMMA), len(a) | self.p.packs << 8
        e.line(f"call void {fn}(i32 {self.lanes}, i32 {shape}, ptr {sums}, ptr {rows}, ptr {columns}, ptr {which})")
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

    def dense(self, a: list[Value]) -> list[Value]:
        """Sparse A with its zeros, which exact sums do not feel: four elements for two that were kept."""
        e = self.e

        def at(place: int, term: int) -> Value:
            return e.select(e.icmp("eq", self.which[term], e.const(place, 32)), a[term], e.const(0, 32))

        return [e.bin("add", at(place, first), at(place, first + 1)) for first in range(0, len(a), 2) for place in range(4)]

    def integers(self, start: list[Value]) -> list[Value]:
        """Exact sums of products (they fit 32 bits), then added to C, saturating or wrapping."""
        e, out = self.e, []
        a, b = self.operands_of_terms(self.constants["NEG"])
        a = self.dense(a) if self.which else a
        for v in range(self.n):
            total = e.const(0, 32)
            for x, y in zip(a, b, strict=True):
                total = e.bin("add", total, e.bin("mul", self.rows(x, v), y))
            out.append(e.intrinsic("sadd.sat", 32, start[v], total) if self.constants["CLAMP"]
                       else e.bin("add", start[v], total))
        return out
