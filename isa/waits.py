"""Wait counters: which an instruction raises, which it waits for.

A counter goes up when an instruction that takes long is issued and down when it is done. Which counter
counts what is one row a generation (`GENERATIONS`); which event an instruction is, is told from what it
touches. Beyond these counters, S_WAITCNT_DEPCTR and S_WAIT_ALU wait for pipelines inside a wave's own
program; their fields are counters here under their own names ("va_vdst", ...), which nothing raises by name.

Source:  chapters on wait counters of the ISA documents of CDNA3, RDNA3 and RDNA4; LLVM's pass that inserts waits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from stuntgpu.isa.arch import Arch
from stuntgpu.isa.effects import Memory, Wait
from stuntgpu.isa.inst import Inst


@dataclass(frozen=True, slots=True)
class Generation:
    """Counters by event; an event with several raises them all.

    load, store       vector memory (and images) that returns data, and that does not; atomics likewise.
    sample, ray       image instructions that filter, and ray intersection.
    flat              what FLAT raises beside: it may be LDS.
    message           S_SENDMSG, with or without an answer.
    lds_direct        loads of LDS by the export path (parameters, LDS_DIRECT).
    invalidate, write_back   cache control in the vector memory encodings.
    barrier_state     answers about barriers that come late.
    waitcnt           fields of S_WAITCNT -> counters.
    """

    load: tuple[str, ...]
    store: tuple[str, ...]
    sample: tuple[str, ...]
    ray: tuple[str, ...]
    flat: tuple[str, ...]
    lds: tuple[str, ...]
    gds: tuple[str, ...]
    scalar: tuple[str, ...]
    message: tuple[str, ...]
    export: tuple[str, ...]
    lds_direct: tuple[str, ...]
    invalidate: tuple[str, ...]
    write_back: tuple[str, ...]
    barrier_state: tuple[str, ...]
    waitcnt: Mapping[str, tuple[str, ...]]


_VM, _VS, _LGKM, _EXP = ("vmcnt",), ("vscnt",), ("lgkmcnt",), ("expcnt",)
_PLAIN = {"VM": _VM, "LGKM": _LGKM, "EXP": _EXP}

#: By `Arch.dialect`.
GENERATIONS: Mapping[str, Generation] = {
    "gfx9": Generation(
        load=_VM, store=_VM, sample=_VM, ray=_VM, flat=_LGKM, lds=_LGKM, gds=("lgkmcnt", "expcnt"), scalar=_LGKM, message=_LGKM,
        export=_EXP, lds_direct=(), invalidate=(), write_back=_VM, barrier_state=(), waitcnt=_PLAIN,
    ),
    "gfx11": Generation(
        load=_VM, store=_VS, sample=_VM, ray=_VM, flat=_LGKM, lds=_LGKM, gds=("lgkmcnt", "expcnt"), scalar=_LGKM, message=_LGKM,
        export=_EXP, lds_direct=_EXP, invalidate=(), write_back=(), barrier_state=(), waitcnt=_PLAIN,
    ),
    "gfx12": Generation(
        load=("loadcnt",), store=("storecnt",), sample=("samplecnt",), ray=("bvhcnt",), flat=("dscnt",), lds=("dscnt",),
        gds=("dscnt",), scalar=("kmcnt",), message=("kmcnt",), export=_EXP, lds_direct=_EXP,
        invalidate=("loadcnt",), write_back=("storecnt",), barrier_state=("kmcnt",),
        # kept for old programs: one field stands for all counters its counter was divided into
        waitcnt={"VM": ("loadcnt", "samplecnt", "bvhcnt"), "LGKM": ("dscnt", "kmcnt"), "EXP": _EXP},
    ),
}  # fmt: skip

#: Instructions that are no memory access, or not only one: name prefix -> event.
BY_NAME = (
    ("S_SENDMSG", "message"), ("S_GET_BARRIER_STATE", "barrier_state"), ("S_BARRIER_SIGNAL_ISFIRST", "barrier_state"),
    ("EXP", "export"), ("LDS_PARAM_LOAD", "lds_direct"), ("LDS_DIRECT_LOAD", "lds_direct"),
    ("DS_PARAM_LOAD", "lds_direct"), ("DS_DIRECT_LOAD", "lds_direct"),
    ("GLOBAL_INV", "invalidate"), ("GLOBAL_WB", "write_back"), ("BUFFER_WB", "write_back"),
    ("BUFFER_INV", "invalidate"), ("BUFFER_GL", "invalidate"),
)  # fmt: skip
#: Encodings whose instructions raise the same counter whatever they do.
BY_BASE = {"SMEM": "scalar", "DS": "lds", "VDS": "lds", "VSAMPLE": "sample"}
VECTOR = frozenset({"flat", "global", "scratch", "buffer", "image"})


def events(inst: Inst, memory: tuple[Memory, ...]) -> Iterator[str]:
    """What `inst` is to the counters, given the memory it touches."""
    named = next((event for prefix, event in BY_NAME if inst.name.startswith(prefix)), None)
    if named is not None:
        yield named
    elif any(m.space == "gds" for m in memory):
        yield "gds"
    elif "_BVH" in inst.name and inst.base in ("MIMG", "VIMAGE"):
        yield "ray"
    elif inst.base in BY_BASE:
        yield BY_BASE[inst.base]
    else:
        for m in memory:
            if m.space in VECTOR:
                yield "load" if m.returns or (m.is_read and not m.atomic) else "store"
            if m.space == "flat":
                yield "flat"


def raised(target: Arch, inst: Inst, memory: tuple[Memory, ...]) -> tuple[str, ...]:
    """Counters that `inst` counts up."""
    generation = GENERATIONS[target.dialect]
    found: list[str] = []
    for event in events(inst, memory):
        found += getattr(generation, event)
    return tuple(dict.fromkeys(found))


# ---------------------------------------------------------------- waiting

#: SIMM16 of the waits for one counter.
LIMIT_BITS = 6
#: Immediates whose fields are counters of their own names.
PIPELINE_TYPES = ("waitcnt_depctr", "wait_alu")
#: Fields of other instructions that wait: field -> counter.
FIELDS = {"WAIT_EXP": "expcnt", "WAIT_VDST": "va_vdst", "WAIT_VA_VDST": "va_vdst", "WAIT_VM_VSRC": "vm_vsrc"}


def waited(target: Arch, inst: Inst) -> tuple[Wait, ...]:
    """Counters that `inst` waits for; a limit at the field's maximum is none."""
    return tuple(_waits(target, inst))


def _waits(target: Arch, inst: Inst) -> Iterator[Wait]:
    for name, counter in FIELDS.items():
        if name in inst.fields:
            bits = target.tables.encodings[inst.encoding].field(name).bits
            yield from _limited(counter, inst.fields[name], bits)
    if inst.name == "S_WAIT_IDLE":
        for counter in sorted(all_counters(target)):
            yield Wait(counter, 0)
    elif inst.name.startswith("S_WAIT"):
        yield from _wait_instruction(target, inst)


def _wait_instruction(target: Arch, inst: Inst) -> Iterator[Wait]:
    row = target.tables.by_base[inst.base, inst.opcode]
    kind = next(o.type for o in row.operands if o.role == "SIMM16")
    value = inst.fields["SIMM16"]
    words = [w.lower() for w in inst.name.split("_")]
    named = [w for w in words if w.endswith("cnt") and w != "waitcnt"]
    for field, _ in target.tables.parts.get(kind, ()):
        part, bits = field.extract(value), field.bits
        if kind == "waitcnt":
            for counter in GENERATIONS[target.dialect].waitcnt[field.name]:
                yield from _limited(counter, part, bits)
        elif kind in PIPELINE_TYPES:
            yield from _limited(field.name.lower(), part, bits)
        elif kind == "wait_event":
            if part != field.name.startswith("DONT"):
                yield Wait("export_ready", 0)
        elif kind == "wait_mem_ds":
            yield from _limited("dscnt" if field.name == "DSCNT" else named[0], part, bits)
        elif named:
            yield from _single(target, inst, named[0], value)


def _single(target: Arch, inst: Inst, counter: str, value: int) -> Iterator[Wait]:
    """A wait for one counter; SOPK's adds a register unless that is NULL."""
    if inst.fields.get("SDST", target.null) != target.null:
        yield Wait(counter, None)
    else:
        yield from _limited(counter, value & ((1 << LIMIT_BITS) - 1), LIMIT_BITS)


def _limited(counter: str, limit: int, bits: int) -> Iterator[Wait]:
    if limit != (1 << bits) - 1:
        yield Wait(counter, limit)


def all_counters(target: Arch) -> frozenset[str]:
    """Counters that instructions of an architecture raise."""
    generation = GENERATIONS[target.dialect]
    names = set(Generation.__dataclass_fields__) - {"waitcnt"}
    return frozenset(c for name in names for c in getattr(generation, name))
