"""What the microcode fields of a memory instruction mean, whatever its generation calls them.

Executors build addresses from this and operand facts name registers, so that a generation's spelling (OFFSET
or IOFFSET, GLC or SC0 or TH, SRSRC or RSRC) and its enable bits are read in one place.

Units:   offsets in bytes, signed; registers by operand number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stuntgpu.isa.arch import Arch, arch
from stuntgpu.isa.inst import Inst

#: Encoding -> segment: how its addresses are made.
SEGMENTS: Mapping[str, str] = {
    "FLAT": "flat", "FLAT_GLOBAL": "global", "FLAT_GLBL": "global", "FLAT_SCRATCH": "scratch",
    "VFLAT": "flat", "VGLOBAL": "global", "VSCRATCH": "scratch",
    "SMEM": "scalar", "MUBUF": "buffer", "MTBUF": "buffer", "VBUFFER": "buffer", "DS": "lds", "VDS": "lds",
}  # fmt: skip


#: S_SCRATCH_*: bytes of one unit of a scalar offset; the immediate counts bytes.
SCRATCH_UNIT = 64


@dataclass(frozen=True, slots=True)
class MemoryFields:
    """One instruction's address parts.

    vaddr, saddr  VGPR and scalar register of the address, None where it has none.
    base          SMEM: first register of the base; buffers: of the descriptor.
    soffset       scalar register added, None where there is none (buffers have an operand instead).
    index, offen  buffers: VADDR holds an index, an offset.
    scale         SMEM: bytes of one unit of soffset.
    granule       SMEM: addresses are multiples of it, what is below is ignored.
    returns       an atomic gives back the old value.
    """

    segment: str
    offset: int = 0
    vaddr: int | None = None
    saddr: int | None = None
    base: int = 0
    soffset: int | None = None
    index: bool = False
    offen: bool = False
    returns: bool = False
    scale: int = 1
    granule: int = 4


def segment(inst: Inst) -> str:
    """"" for an instruction that is not about memory."""
    return SEGMENTS.get(inst.base, "")


def memory_fields(inst: Inst) -> MemoryFields:
    """Address parts of a memory instruction."""
    makers = {"lds": _lds, "scalar": _scalar, "buffer": _buffer}
    return makers.get(segment(inst), _flat)(inst, arch(inst.arch))


def offset16(fields: Mapping[str, int]) -> int:
    """DS: both offset bytes."""
    return fields["OFFSET1"] << 8 | fields["OFFSET0"] if "OFFSET0" in fields else fields.get("OFFSET", 0)


def _immediate(inst: Inst, target: Arch) -> int:
    """The offset field: of buffers, and one of twelve bits, unsigned; others are not."""
    name = "IOFFSET" if "IOFFSET" in inst.fields else "OFFSET"
    bits = target.tables.encodings[inst.encoding].field(name).bits
    value, unsigned = inst.fields[name], bits == 12 or segment(inst) == "buffer"
    return value if unsigned or not value >> (bits - 1) else value - (1 << bits)


def _returns(fields: Mapping[str, int]) -> bool:
    return bool(fields.get("GLC", 0) or fields.get("SC0", 0) or fields.get("TH", 0) & 1)


def _lds(inst: Inst, target: Arch) -> MemoryFields:
    return MemoryFields("lds", offset16(inst.fields), inst.fields.get("ADDR"), returns=True)


def _flat(inst: Inst, target: Arch) -> MemoryFields:
    f, kind = inst.fields, segment(inst)
    vaddr: int | None = f.get("ADDR", f.get("VADDR", 0))
    saddr = None if f["SADDR"] == target.no_saddr or kind == "flat" else f["SADDR"]
    if (kind == "scratch" and not f["SVE"]) or "_ADDTID_" in inst.name:
        vaddr = None
    return MemoryFields(kind, _immediate(inst, target), vaddr, saddr, returns=_returns(f))


def _scalar(inst: Inst, target: Arch) -> MemoryFields:
    f = inst.fields
    soffset: int | None = f.get("SOFFSET", 0)
    offset = _immediate(inst, target)
    if "SOFFSET_EN" in f:  # a register has its own field, or stands in OFFSET where there is no immediate
        soffset = f["SOFFSET"] if f["SOFFSET_EN"] else None if f["IMM"] else f["OFFSET"] & 127
        offset = offset if f["IMM"] else 0
    elif soffset == target.null:
        soffset = None
    scale = SCRATCH_UNIT if inst.name.startswith("S_SCRATCH_") else 1
    return MemoryFields("scalar", offset, base=f["SBASE"] << 1, soffset=soffset, returns=_returns(f), scale=scale,
                        granule=scalar_granule(inst.name))


def scalar_granule(name: str) -> int:
    """Bytes that scalar accesses are multiples of: dwords, but for loads of less."""
    return 1 if name.endswith("8") and name[-2] in "IU" else 2 if name.endswith(("I16", "U16")) else 4


def _buffer(inst: Inst, target: Arch) -> MemoryFields:
    f = inst.fields
    resource = f["RSRC"] if "RSRC" in f else f["SRSRC"] << 2
    return MemoryFields(
        "buffer", _immediate(inst, target), f["VADDR"], base=resource, index=bool(f["IDXEN"]), offen=bool(f["OFFEN"]),
        returns=_returns(f),
    )  # fmt: skip
