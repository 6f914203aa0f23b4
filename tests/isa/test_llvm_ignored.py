"""The bits that isa/errata/ignored.py lists, as LLVM's disassembler sees them: their values change nothing."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from stuntgpu.isa.arch import ARCHES
from stuntgpu.isa.decode import DecodeError, decode
from stuntgpu.isa.disasm import disassemble
from stuntgpu.isa.errata import ignored
from stuntgpu.isa.inst import Inst
from stuntgpu.isa.shown import ignored_bits
from tests.isa import llvm_mc
from tests.isa.goldens import pairs, report

pytestmark = pytest.mark.slow

#: Changed bits of an instruction, drawn from those listed.
DRAWS = 4
#: Families with fields that programs fill and LLVM refuses: the list says so.
REFUSED = {base for row in ignored.ROWS if "LLVM refuses" in row.reason for base in row.bases.split()}


def samples(name: str) -> Iterator[tuple[Inst, bytes]]:
    """A golden instruction of every opcode and form, and what it becomes with listed bits changed."""
    r, seen = random.Random(5), set()
    for code, _ in pairs(name):
        inst = decode(name, code)
        listed = ignored_bits(inst)
        if (inst.name, inst.encoding) in seen or not listed:
            continue
        seen.add((inst.name, inst.encoding))
        for _ in range(DRAWS):
            word = int.from_bytes(code, "little") ^ r.getrandbits(8 * len(code)) & listed
            yield inst, word.to_bytes(len(code), "little")


@pytest.mark.parametrize("name", sorted(ARCHES))
def test_listed_bits_change_nothing_for_llvm(name: str) -> None:
    changed = [(inst, code) for inst, code in samples(name) if code != bytes(inst)]
    theirs = llvm_mc.disassemble(name, [code for _, code in changed])
    wrong = []
    for (inst, code), pair in zip(changed, theirs, strict=True):
        if pair is None and inst.base in REFUSED:
            continue
        if pair is None or pair.text != disassemble(inst):
            wrong.append(f"{inst.encoding} {code.hex()} {inst}: llvm reads {pair and pair.text}")
    assert len(changed) > 1000
    assert not wrong, report(wrong)


@pytest.mark.parametrize("name", sorted(ARCHES))
def test_listed_bits_change_nothing_here(name: str) -> None:
    wrong = []
    for inst, code in samples(name):
        try:
            text = disassemble(decode(name, code))
        except DecodeError as error:
            text = str(error)
        if text != disassemble(inst):
            wrong.append(f"{code.hex()} {text}, expected {inst}")
    assert not wrong, report(wrong)
