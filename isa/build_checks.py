"""What builders ask of Python values beyond what assembly text can say wrong.

Text does not tell a number's type; Python does. So floats are refused where the operand is an
integer and where 64 bits would be cut, and signs where there is no modifier for them.

Errors:  TypeError, ValueError; the caller adds instruction and operand.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from numbers import Real

from stuntgpu.isa.asm_names import literal_kind
from stuntgpu.isa.asm_operands import SCALAR_STYLES, float_literal
from stuntgpu.isa.build_values import Call, Distance, Extended, Label, Registers, Signed, Special
from stuntgpu.isa.syntax_types import Slot

VECTOR_ONLY = frozenset({"src_vgpr", "vgpr"})
#: Kinds of value each slot kind takes: "v" vector and "s" scalar registers, "number", "name" for
#: symbolic text, "off", "label", "list".
TAKEN = {
    "vgpr": "v", "returned": "v", "dual_y": "v", "image_data": "v", "image_addr": "v",
    "sreg": "s", "spair": "s", "vcc": "s", "imm": "number name", "optional": "number name", "label": "label number",
    "literal": "number label", "smem_offset": "s number", "smem_offset24": "s number", "offset24": "number",
    "image_list": "v list", "global_addr": "v", "scratch_addr": "v off", "saddr": "s off",
    "buffer_data": "v", "buffer_addr": "v off", "export": "v off name", "attr": "name",
    "sdwa": "v s number", "sdwa_mask": "s", "smem_enabled": "s number", "lds_or_data": "v", "formatted": "v",
}  # fmt: skip


def taken(slot: Slot) -> frozenset[str]:
    """Kinds of value an operand takes; empty when it is not told here."""
    if slot.kind != "src":
        return frozenset(TAKEN.get(slot.kind, "").split())
    if slot.style in VECTOR_ONLY:
        return frozenset({"v"})
    if slot.style == "src_vgpr_or_inline":
        return frozenset({"v", "number"})
    if slot.style in SCALAR_STYLES:
        return frozenset({"s", "number", "label"})
    return frozenset({"v", "s", "number", "label"})


def kind_of(x: object) -> str:
    if isinstance(x, Signed | Extended):
        return kind_of(x.operand)
    if isinstance(x, Registers):
        return "v" if x.file in "va" else "s"
    if isinstance(x, Special):
        return "off" if x.name == "off" else "s"
    if isinstance(x, str | Call):
        return "name"
    if isinstance(x, Label | Distance):
        return "label"
    return "list" if isinstance(x, Sequence) else "number"


def is_kind_taken(x: object, slots: Sequence[Slot]) -> bool:
    """Whether any of `slots` takes values of this kind (others of the kind may not fit)."""
    return any(not taken(s) or kind_of(x) in taken(s) for s in slots)


def is_integer_format(fmt: str) -> bool:
    """u32, i16x2, u8x4: formats whose constants are integers."""
    return fmt[:1] in ("i", "u") and fmt[1:2].isdigit()


def refuse(x: object, slots: Sequence[Slot]) -> None:
    """TypeError or ValueError for a value none of `slots` should get, though text would pass."""
    if isinstance(x, str) and not is_kind_taken(x, slots):
        raise TypeError("expected a register or a number, got text; registers are v[0], s[0:1], vcc")
    if isinstance(x, Signed):
        if not any(s.signed or (s.kind == "sdwa" and s.style != "int") for s in slots):
            raise TypeError(f"takes no sign{sign_hint(slots)}")
        refuse(x.operand, slots)
    elif isinstance(x, Real) and not isinstance(x, int) and not hasattr(x, "__index__"):
        refuse_float(float(x), slots[-1])


def sign_hint(slots: Sequence[Slot]) -> str:
    return "; packed operations have neg_lo and neg_hi" if any(s.fmt.endswith("x2") for s in slots) else ""


def refuse_float(value: float, slot: Slot) -> None:
    if slot.kind in ("imm", "optional", "label") or (slot.kind == "src" and is_integer_format(slot.fmt)):
        raise TypeError(f"a float for an integer operand ({slot.fmt or 'immediate'}); bits({value!r}) gives its bits")
    if slot.kind != "src" or slot.bits != 64:
        return
    number, high = float_literal(value, "f64", 0)
    if number is not None:
        return
    if literal_kind(slot.fmt, 64) != "f64":
        raise ValueError("a literal of an untyped 64-bit operand is an integer; only inline constants may be floats")
    if math.isfinite(value) and value != exact_high(high):
        raise ValueError(f"a 64-bit literal holds the high 32 bits of the float only; lit({high:#x}) is {exact_high(high)!r}")


def exact_high(high: int) -> float:
    """The float64 whose high half is `high`, its low half zero."""
    result: float = struct.unpack("<d", (high << 32).to_bytes(8, "little"))[0]
    return result


def symbolic(x: object, slot: Slot) -> object:
    """A bare name where the immediate is a call: "HW_REG_MODE" is hwreg(HW_REG_MODE)."""
    word = slot.style.split("_")[0].split()[0] if slot.style else ""
    if word in ("hwreg", "sendmsg") and isinstance(x, str) and "(" not in x:
        return Call(word, (x,))
    return x
