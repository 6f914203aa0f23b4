"""Operand facts against the vendor's operand lists: where they differ, a reviewed row says why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from stuntgpu.isa.arch import ARCHES, Arch, InstRow, OperandRow
from stuntgpu.isa.decode import DecodeError, decode, encode
from stuntgpu.isa.effects import Access, Effects, File, Use, reads_writes
from stuntgpu.isa.errata.effects import DIFFERENCES
from stuntgpu.isa.inst import Inst
from stuntgpu.isa.samples import samples
from tests.isa.goldens import report

#: Fields whose plain value leaves an operand out of an instruction.
PRESENT = {"SADDR": 16, "SVE": 1, "GLC": 1, "SC0": 1, "TH": 1, "OFFEN": 1, "IDXEN": 1, "SOFFSET": 16, "SOFFSET_EN": 1, "IMM": 1}
#: Operands that are values of the instruction, whatever field they stand in.
IMMEDIATES = ("SIMM16", "LITERAL", "OFFSET", "IOFFSET", "ATTR")


def decoded(inst: Inst, fields: dict[str, int]) -> Inst | None:
    try:
        return decode(inst.arch, encode(replace(inst, fields=fields)))
    except DecodeError:
        return None


def whole(inst: Inst) -> Inst:
    """`inst` with all the operands its row can have."""
    names = [n for n in PRESENT if n in inst.fields]
    together = decoded(inst, {**inst.fields, **{n: PRESENT[n] for n in names}})
    if together is not None:
        return together
    for name in names:
        inst = decoded(inst, {**inst.fields, name: PRESENT[name]}) or inst
    return inst


def in_the_list(row: InstRow) -> set[str]:
    """Accesses of the vendor's list: "r SRC0", "w VCC"."""
    return {f"{access} {listed_name(o)}" for o in row.operands if o.field not in IMMEDIATES
            for access, there in (("r", o.is_read), ("w", o.is_written)) if there}


def listed_name(o: OperandRow) -> str:
    return o.field or {"D0": "VCC"}.get(o.role, o.role)


def register_name(target: Arch, a: Access) -> str:
    """Registers by field; implicit ones by name."""
    if a.field:
        return a.field
    if a.file is File.SGPR and not a.dynamic:
        return {target.vcc: "VCC", target.exec: "EXEC", target.m0: "M0"}.get(a.reg, a.name)
    return {File.SCC: "SCC", File.PC: "PC"}.get(a.file, "")


def in_the_facts(target: Arch, e: Effects) -> set[str]:
    """Accesses of the facts; EXEC as a mask and MODE are in no list."""
    found = {f"{access} {register_name(target, a)}" for access, accesses in (("r", e.reads), ("w", e.writes))
             for a in accesses if a.use not in (Use.MASK, Use.KEPT)}
    for m in e.memory:
        space = "LDS" if m.space == "lds" else "MEM"
        found |= {f"r {space}"} if m.is_read else set()
        found |= {f"w {space}"} if m.is_written else set()
    return {f for f in found if not f.endswith(" ")}


def kept(target: Arch, e: Effects) -> set[str]:
    return {f"r {register_name(target, a)}" for a in e.reads if a.use is Use.KEPT}


def half_of(row: InstRow, inst: Inst) -> Inst:
    """The half of a dual instruction that `row` is."""
    found = {"VOPDX": inst.x, "VOPDY": inst.y}.get(row.base, inst)
    assert found is not None
    return found


def all_differences(name: str) -> Iterator[tuple[str, str]]:
    """(instruction, difference): "r SRC0" is in the list alone, "+r M0" in the facts alone."""
    target = ARCHES[name]
    for row, sample in samples(name):
        if sample is None:
            continue
        e = reads_writes(half_of(row, sample if row.base.startswith("VOPD") else whole(sample)))
        if not e.has_semantics:
            continue
        listed, facts = in_the_list(row), in_the_facts(target, e)
        for d in listed - facts - kept(target, e):
            yield row.name, d
        for d in facts - listed:
            yield row.name, f"+{d}"


@pytest.mark.parametrize("name", ARCHES)
def test_facts_differ_from_the_operand_lists_for_known_reasons(name: str) -> None:
    unknown = [f"{n}: {d}" for n, d in all_differences(name) if not any(row.says(n, d) for row in DIFFERENCES)]
    assert not unknown, report(unknown)


def test_every_known_difference_is_one() -> None:
    found = {pair for name in ARCHES for pair in all_differences(name)}
    stale = [row for row in DIFFERENCES if not any(row.says(n, d) for n, d in found)]
    assert not stale
