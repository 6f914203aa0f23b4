"""OMOD and CLAMP of float results, in lane and in wave scope."""

from __future__ import annotations

from stuntgpu.emu import layout, state
from stuntgpu.emu.forms import Slot
from stuntgpu.emu.handler_base import Handler
from stuntgpu.emu.lower_float import is_nan, ldexp
from stuntgpu.emu.lower_int import shift
from stuntgpu.emu.lower_text import FORMATS, Float, Value
from stuntgpu.isa.ir import Op

_OMOD_EXPONENT = {1: 1, 2: 2, 3: -1}  # times 2, times 4, divided by 2


def finished(h: Handler, s: Slot, v: Value) -> Value:
    """The result as it is stored: packed formats part by part."""
    name, _, count = s.fmt.partition("x")
    f = FORMATS.get(name)
    if f is None:
        return v
    e = h.e
    if v.width <= f.width or not count:
        return _finished(h, f, v)
    parts = [_finished(h, f, e.zext(shift(e, "lshr", v, e.const(k * f.width, 32)), f.width)) for k in range(int(count))]
    out = e.zext(parts[0], v.width)
    for k, part in enumerate(parts[1:], 1):
        out = e.bin("or", out, shift(e, "shl", e.zext(part, v.width), e.const(k * f.width, 32)))
    return out


def _finished(h: Handler, f: Float, v: Value) -> Value:
    e = h.e
    if h.form.omod and e.mode.flush_out(f):
        by = e.const(_OMOD_EXPONENT[h.form.omod], 32)
        scaled = ldexp(f)(e, Op("", (), f.width), [v, by])
        v = e.select(_mode_bit(h, state.MODE_IEEE), v, scaled)
    return _clamped(h, f, v) if h.form.clamp else v


def _mode_bit(h: Handler, number: int) -> Value:
    mode = h.load("i32", h.wave_ptr(layout.MODE), 4)
    with h.e.scalarly():
        bit = h.e.zext(shift(h.e, "lshr", Value(mode, 32), h.e.const(number, 32)), 1)
    return h.e.splat(bit.ref, 1) if h.e.lanes else bit


def _clamped(h: Handler, f: Float, v: Value) -> Value:
    e = h.e
    zero, one = e.const(0, f.width), e.const(f.bias << f.man, f.width)
    limited = e.select(e.icmp("slt", v, zero), zero, e.select(e.icmp("ugt", v, one), one, v))
    nan = e.select(_mode_bit(h, state.MODE_DX10_CLAMP), zero, v)
    return e.select(is_nan(e, f, v), nan, limited)
