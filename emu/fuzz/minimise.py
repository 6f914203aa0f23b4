"""Makes a found case small: fewer instructions, lanes, registers and field values that still differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from stuntgpu.emu.fuzz.case import Case
from stuntgpu.isa.decode import DecodeError, decode, encode
from stuntgpu.isa.inst import Inst

#: True while a case still shows the fault.
Fails = Callable[[Case], bool]


def minimise(case: Case, fails: Fails) -> Case:
    """The smallest case found by dropping one thing at a time."""
    for step in (_fewer_instructions, _fewer_lanes, _plainer_state, _fewer_registers, _plainer_fields, _fewer_registers):
        case = step(case, fails)
    return case


def _first(candidates: Iterator[Case], case: Case, fails: Fails) -> Case:
    """The first candidate that still fails, else `case`."""
    return next((c for c in candidates if c != case and fails(c)), case)


def _fewer_instructions(case: Case, fails: Fails) -> Case:
    i = 0
    while i < len(case.code) > 1:
        shorter = replace(case, code=case.code[:i] + case.code[i + 1 :])
        if fails(shorter):
            case = shorter
        else:
            i += 1
    return case


def _fewer_lanes(case: Case, fails: Fails) -> Case:
    mask = case.init.exec_mask
    single = (case.with_init(exec_mask=1 << lane) for lane in range(case.lanes) if mask >> lane & 1)
    return _first(single, case, fails)


def _plainer_state(case: Case, fails: Fails) -> Case:
    for name, value in (("vcc", 0), ("scc", 0), ("m0", 0), ("mode", 0xF0), ("mode", case.init.mode & 0xFF)):
        simpler = case.with_init(**{name: value})
        if getattr(case.init, name) != value and fails(simpler):
            case = simpler
    return case


def _fewer_registers(case: Case, fails: Fails) -> Case:
    """Half of the scalars at a time, then one by one; vectors one by one, then lane by lane."""
    numbers = list(case.init.sgprs)
    for size in (32, 8, 1):
        for i in range(0, len(numbers), size):
            dropped = set(numbers[i : i + size])
            left = {k: v for k, v in case.init.sgprs.items() if k not in dropped}
            if len(left) < len(case.init.sgprs) and fails(simpler := case.with_init(sgprs=left)):
                case = simpler
    for number in list(case.init.vgprs):
        case = _first(_plainer_columns(case, number), case, fails)
    return case


def _plainer_columns(case: Case, number: int) -> Iterator[Case]:
    columns = dict(case.init.vgprs)
    column = list(columns.pop(number))
    yield case.with_init(vgprs=columns)
    mask = case.init.exec_mask
    yield case.with_init(vgprs={**columns, number: [v if mask >> lane & 1 else 0 for lane, v in enumerate(column)]})


def _plainer_fields(case: Case, fails: Fails) -> Case:
    """Modifiers and numbers of each instruction towards 0."""
    for i, code in enumerate(case.code):
        inst = _decoded(case.arch, code)
        for field in [] if inst is None else list(inst.fields):
            plainer = _zeroed(_decoded(case.arch, case.code[i]), field)
            if plainer is None or plainer == case.code[i]:
                continue
            simpler = replace(case, code=(*case.code[:i], plainer, *case.code[i + 1 :]))
            if fails(simpler):
                case = simpler
    return case


def _decoded(arch: str, code: bytes) -> Inst | None:
    try:
        return decode(arch, code)
    except DecodeError:
        return None


def _zeroed(inst: Inst | None, field: str) -> bytes | None:
    """The instruction with one field 0, None when that is no instruction of its name."""
    if inst is None or field in ("OP", "OPX", "OPY") or field.startswith(("SRC", "SSRC")):
        return None
    code = encode(replace(inst, fields={**inst.fields, field: 0}))
    again = _decoded(inst.arch, code)
    return code if again is not None and again.name == inst.name and again.size == inst.size else None
