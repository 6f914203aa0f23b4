"""Operands of the reference: how a place gets its values, and where its results go.

Everything that depends only on the instruction is decided once; what is returned are small functions
of the wave.

Units:   a fetched lane operand is a list with one value per lane; scalars are integers.
Errors:  Unmodelled for operand forms not built.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from stuntgpu.emu import softfloat as sf
from stuntgpu.emu import state
from stuntgpu.emu.state import PAD_SIGN, PRESERVE, following, register, sdwa_part
from stuntgpu.emu.wave import Wave
from stuntgpu.isa.errors import Unmodelled
from stuntgpu.isa.inst import WHOLE, Inst, Kind, Operand
from stuntgpu.isa.semantics import keeps_upper_half

M32 = 0xFFFF_FFFF

LaneFetch = Callable[[Wave], list[int]]
ScalarFetch = Callable[[Wave], int]
LaneStore = Callable[[Wave, Mapping[int, int]], None]
ScalarStore = Callable[[Wave, int], None]
Change = Callable[[int], int]

VECTORS = (Kind.VGPR, Kind.AGPR)


def dwords(op: Operand) -> int:
    return max(1, -(-op.bits // 32))


# ---------------------------------------------------------------- reading


def scalar_fetch(inst: Inst, op: Operand) -> ScalarFetch:
    """A scalar operand's value, modifiers not applied."""
    n, mask = dwords(op), (1 << max(op.bits, 1)) - 1
    if op.kind in (Kind.CONST, Kind.IMM):
        value = op.value & mask
        return lambda w: value
    if op.kind not in (Kind.SGPR, Kind.SPECIAL):
        raise Unmodelled(inst.arch, f"{op.kind.value} as scalar operand {op.role} of {inst.name}", "emu/operand.py")
    if op.bits == 1:
        return lambda w: w.mask(op.reg)
    shift = 16 * op.half if op.bits == 16 else 0
    return lambda w: w.read_scalar(op.reg, n) >> shift & mask


def scalar_source(inst: Inst, op: Operand) -> ScalarFetch:
    """A scalar source with its modifiers."""
    fetch = scalar_fetch(inst, op)
    for change in _modifiers(op, packed=False):
        fetch = _changed(fetch, change)
    return fetch


def _changed(fetch: ScalarFetch, change: Change) -> ScalarFetch:
    return lambda w: change(fetch(w))


def lane_fetch(inst: Inst, op: Operand, *, raw: bool, packed: bool) -> LaneFetch:
    """An operand's value in every lane. raw: no modifiers; packed: VOP3P halves by OP_SEL, OP_SEL_HI."""
    sdwa = _sdwa_source(op)
    fetched = replace(op, bits=32, half=0) if sdwa else op
    base = _vgpr_fetch(fetched) if op.kind in VECTORS else _broadcast(scalar_fetch(inst, fetched))
    changes = [] if raw else [*sdwa, *_selection(op, packed), *_modifiers(op, packed)]
    if not changes:
        return base
    if len(changes) == 1:
        change = changes[0]
        return lambda w: [change(v) for v in base(w)]

    def fetch(w: Wave) -> list[int]:
        values = base(w)
        for change in changes:
            values = [change(v) for v in values]
        return values

    return fetch


def _broadcast(fetch: ScalarFetch) -> LaneFetch:
    return lambda w: [fetch(w)] * w.lanes


def _vgpr_fetch(op: Operand) -> LaneFetch:
    reg, n = register(op), dwords(op)
    if op.bits == 16:
        shift = 16 * op.half
        return lambda w: [v >> shift & 0xFFFF for v in w.vgprs[reg]]
    if op.bits < 32:
        mask = (1 << op.bits) - 1
        return lambda w: [v & mask for v in w.vgprs[reg]]
    if n == 1:
        return lambda w: w.vgprs[reg]
    if n == 2:
        return lambda w: [a | b << 32 for a, b in zip(w.vgprs[reg], w.vgprs[following(reg, 1)], strict=True)]

    def fetch(w: Wave) -> list[int]:
        columns = zip(*(w.vgprs[following(reg, i)] for i in range(n)), strict=True)
        return [sum(v << 32 * i for i, v in enumerate(column)) for column in columns]

    return fetch


def _sdwa_source(op: Operand) -> list[Change]:
    """SDWA's selection of a source: a part of its register, extended to the operand's width."""
    if op.role not in ("S0", "S1") or (op.select == WHOLE and not op.sext):
        return []
    lo, width = sdwa_part(op.select)
    mask, sign = (1 << width) - 1, 1 << (width - 1)
    whole = (1 << op.bits) - 1
    if not op.sext:
        return [lambda v: v >> lo & mask & whole]
    return [lambda v: ((v >> lo & mask ^ sign) - sign) & whole]


def _selection(op: Operand, packed: bool) -> list[Change]:
    """OP_SEL and OP_SEL_HI: the two parts of a packed operand, of 16 or 32 bits."""
    if not packed or (op.half, op.half_hi) == (0, 1):
        return []
    width = op.bits // 2
    low, high, mask = width * op.half, width * op.half_hi, (1 << width) - 1
    return [lambda v: (v >> low & mask) | (v >> high & mask) << width]


def _modifiers(op: Operand, packed: bool) -> list[Change]:
    """ABS, then NEG, on the sign bits."""
    if packed:
        flip = int(op.neg) << (op.bits // 2 - 1) | int(op.neg_hi) << (op.bits - 1)
        return [lambda v: v ^ flip] if flip and op.fmt.startswith(("f", "bf")) else []
    sign = 1 << (op.bits - 1)
    changes: list[Change] = []
    if op.abs:
        changes.append(lambda v: v & ~sign)
    if op.neg:
        changes.append(lambda v: v ^ sign)
    return changes


# ---------------------------------------------------------------- writing


def scalar_store(inst: Inst, op: Operand) -> ScalarStore:
    """Store to scalar registers; a narrow value is zero-extended to the register."""
    if op.kind not in (Kind.SGPR, Kind.SPECIAL):
        raise Unmodelled(inst.arch, f"{op.kind.value} as scalar result {op.role} of {inst.name}", "emu/operand.py")
    n = dwords(op)
    return lambda w, value: w.write_scalar(op.reg, n, value)


def lane_store(inst: Inst, op: Operand, width: int) -> LaneStore:
    """Store values of `width` bits to a VGPR operand; what 16-bit values do to the other half of the
    register is the arch's business."""
    if op.kind not in VECTORS:
        raise Unmodelled(inst.arch, f"{op.kind.value} as lane result {op.role} of {inst.name}", "emu/operand.py")
    reg = register(op)
    if op.select != WHOLE:
        return _sdwa_store(reg, op)
    if width <= 16 and (op.half or keeps_upper_half(inst.arch, inst.name)):
        return _half_store(reg, 16 * op.half)
    n = -(-width // 32)

    def store(w: Wave, values: Mapping[int, int]) -> None:
        for i in range(n):
            column = w.vgprs[following(reg, i)]
            for lane, v in values.items():
                column[lane] = v >> 32 * i & M32

    return store


def _half_store(reg: int, shift: int) -> LaneStore:
    keep = M32 ^ 0xFFFF << shift

    def store_half(w: Wave, values: Mapping[int, int]) -> None:
        column = w.vgprs[reg]
        for lane, v in values.items():
            column[lane] = column[lane] & keep | v << shift

    return store_half


def _sdwa_store(reg: int, op: Operand) -> LaneStore:
    """A result's low bits go to one part of the register; the rest is zero, the sign above it, or kept."""
    lo, width = sdwa_part(op.select)
    mask, sign = (1 << width) - 1, 1 << (width - 1)

    def store_part(w: Wave, values: Mapping[int, int]) -> None:
        column = w.vgprs[reg]
        for lane, v in values.items():
            field = v & mask
            if op.unused == PAD_SIGN:
                column[lane] = ((field ^ sign) - sign) << lo & M32
            else:
                rest = column[lane] & ~(mask << lo) if op.unused == PRESERVE else 0
                column[lane] = rest | field << lo

    return store_part


# ---------------------------------------------------------------- OMOD and CLAMP

_ELEMENTS = {"f16": sf.F16, "f32": sf.F32, "f64": sf.F64, "bf16": sf.BF16}
_OMOD_EXPONENT = {1: 1, 2: 2, 3: -1}  # times 2, times 4, divided by 2

Finish = Callable[[Wave, Mapping[int, int]], Mapping[int, int]]


def finish(inst: Inst, op: Operand, width: int) -> Finish | None:
    """What OMOD and CLAMP do to a float result before it is stored; None: nothing."""
    name, _, count = op.fmt.partition("x")
    f = _ELEMENTS.get(name)
    omod, clamp = inst.fields.get("OMOD", 0), bool(inst.fields.get("CLAMP", 0))
    if f is None or not (omod or clamp):
        return None
    parts = int(count or 1) if width > f.width else 1

    def change(w: Wave, values: Mapping[int, int]) -> Mapping[int, int]:
        return {lane: _each(f, parts, v, lambda a: _finished(w, f, a, omod, clamp)) for lane, v in values.items()}

    return change


def _each(f: sf.Format, parts: int, value: int, change: Change) -> int:
    mask = (1 << f.width) - 1
    return sum(change(value >> i * f.width & mask) << i * f.width for i in range(parts))


def _finished(w: Wave, f: sf.Format, a: int, omod: int, clamp: bool) -> int:
    env: sf.Env = getattr(w.mode, f.name)
    ieee = w.mode_bits >> state.MODE_IEEE & 1
    if omod and env.flush_out and not ieee:
        a = sf.ldexp(f, a, _OMOD_EXPONENT[omod] & M32, env)
    return clamped(f, a, bool(w.mode_bits >> state.MODE_DX10_CLAMP & 1)) if clamp else a


def clamped(f: sf.Format, a: int, nan_to_zero: bool) -> int:
    """a limited to [0, 1]; a negative zero gives +0; NaN gives 0 when MODE.DX10_CLAMP says so."""
    if sf.is_nan(f, a):
        return 0 if nan_to_zero else a
    one = (1 - f.qmin - f.man) << f.man
    return 0 if a >= f.sign else min(a, one)
