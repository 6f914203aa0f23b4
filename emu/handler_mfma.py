"""MFMA and SMFMAC in the native tier: a call of the C core with the shape and the registers.

The word that says what to multiply is `Shape` of emu/native/mfma.c: its fields from the lowest bit up.
"""

from __future__ import annotations

from stuntgpu.emu import layout
from stuntgpu.emu.forms import Slot
from stuntgpu.emu.handler_base import Handler
from stuntgpu.emu.mfma import FIELD_FORMATS, shape_of
from stuntgpu.emu.smallfloat import SMALL
from stuntgpu.isa.arch import ARCHES
from stuntgpu.isa.errors import Unmodelled

_INPUTS = ("f32", "xf32", "f64", "f16", "bf16", "i8", *SMALL)
_RESULTS = ("f32", "i32", "f64")


class MfmaHandler(Handler):
    def body(self) -> None:
        self.e.lanes = 0
        places = [self.place(name) for name in ("written D0", "S0", "S1", "S2")]
        scales = [self.place(name) for name in ("SCALE0", "SCALE1")]
        pointers = ", ".join(f"ptr {p}" for p in (*places, *scales))
        self.e.line(f"call void {self.helper(layout.MFMA)}(ptr %w, i64 {self.word()}, {pointers})")

    def place(self, name: str) -> str:
        i = self.form.slot(name)
        return "null" if i < 0 else f"%p{i}"

    def of(self, name: str) -> Slot | None:
        i = self.form.slot(name)
        return None if i < 0 else self.form.slots[i]

    def word(self) -> int:
        """See `shape_of` in emu/native/mfma.c."""
        shape, c = shape_of(self.form.arch, self.form.name), self.constants
        a, b = self.formats(shape.a, shape.b)
        chosen = not shape.a  # CBSZ and BLGP are formats then, and nothing is shared
        shared = 0 if chosen or shape.result == "f64" else 1
        scales = [self.of("SCALE0"), self.of("SCALE1")]
        bytes_of = [c["OPSEL"] >> i & 1 | (c["OPSEL_HI"] >> i & 1) << 1 for i in (0, 1)]
        is_sparse = int(shape.sparse)
        fields = (
            (shape.size, 6), (shape.blocks, 5), (shape.k, 8), (a, 4), (b, 4), (_RESULTS.index(shape.result), 2),
            (is_sparse, 1), (c["CBSZ"] * shared, 3), (c["ABID"] * shared, 4), (c["BLGP"] * shared * (1 - is_sparse), 3),
            (self.negated(), 3), (int(self.is_scalar("S2")), 1), (int(scales[0] is not None), 1),
            (self.is_scalar("SCALE0") | self.is_scalar("SCALE1") << 1, 2), (bytes_of[0], 2), (bytes_of[1], 2),
            (int(chosen), 1),
        )  # fmt: skip
        word = at = 0
        for value, bits in fields:
            word, at = word | value << at, at + bits
        return word

    def formats(self, a: str, b: str) -> tuple[int, int]:
        """Numbers of the element formats: those of the name, else of CBSZ and BLGP."""
        if not a:
            codes = self.constants["CBSZ"], self.constants["BLGP"]
            if max(codes) >= len(FIELD_FORMATS):
                raise Unmodelled(self.form.arch, f"{self.form.name} with format {max(codes)}", "emu/handler_mfma.py")
            a, b = (FIELD_FORMATS[code] for code in codes)
        suffix = ARCHES[self.form.arch].fp8
        names = (name + suffix if name in ("fp8", "bf8") else name for name in (a, b))
        first, second = map(_INPUTS.index, names)
        return first, second

    def negated(self) -> int:
        if shape_of(self.form.arch, self.form.name).result != "f64":
            return 0
        return sum(s.neg << i for i, name in enumerate(("S0", "S1", "S2")) if (s := self.of(name)))

    def is_scalar(self, name: str) -> bool:
        s = self.of(name)
        return s is not None and s.kind != "v"
