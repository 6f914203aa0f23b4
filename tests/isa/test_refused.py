"""Table rows that are no instructions: decoder and assembler treat them as LLVM does."""

from __future__ import annotations

import random

import pytest

from stuntgpu.isa.arch import ARCHES, arch
from stuntgpu.isa.asm import AsmError, assemble_one
from stuntgpu.isa.decode import DecodeError, decode
from tests.isa import llvm_mc
from tests.isa.goldens import refused, report

NAMES = sorted(ARCHES)
#: Rows that LLVM takes with all fields zero and this decoder refuses: LLVM reads them as the text of the short form
#: and makes the short form of it, so that code read as text would come back as other bytes.
TAKEN_BY_LLVM = frozenset({"V_NOP", "V_PIPEFLUSH", "V_CLREXCP"})
SHORT = {"V_ACCVGPR_MOV_B32": "v_accvgpr_mov_b32_e64 a1, a2", "V_SWAP_B32": "v_swap_b32_e64 v1, v2"}
OPERANDS = (("_LOAD_LDS_", " v1, off"), ("READFIRSTLANE", "_e64 s1, v1"), ("CSUB", " v1, v[2:3], v4 glc"), ("COEXEC", " 0"))


def words(name: str, encoding: str, opcode: int) -> list[bytes]:
    """Words of a refused row: fields zero, then random."""
    layout, r = arch(name).tables.encodings[encoding], random.Random(opcode)
    op = layout.field("OP")
    fixed, rest = layout.value | op.insert(opcode), ((1 << layout.bits) - 1) & ~layout.mask & ~op.mask
    return [(fixed | r.getrandbits(layout.bits) & rest * (i > 0)).to_bytes(layout.bits // 8, "little") for i in range(20)]


def text(row: str) -> str:
    """The text such an instruction would have."""
    tail = next((t for part, t in OPERANDS if part in row), "_e64")
    return SHORT.get(row, f"{row.lower()}{tail}")


@pytest.mark.parametrize("name", NAMES)
def test_golden_refused_opcodes_neither_decode_nor_assemble(name: str) -> None:
    taken = []
    for encoding, opcode, row in refused(name):
        for code in words(name, encoding, opcode):
            try:
                taken.append(f"{row}: {code.hex()} is {decode(name, code + bytes(8)).name}")
            except DecodeError:
                continue
        try:
            taken.append(f"{text(row)} is {assemble_one(name, text(row)).hex()}")
        except AsmError:
            continue
    assert not taken, report(taken)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_golden_refused_opcodes_are_refused_by_llvm(name: str) -> None:
    rows = refused(name)
    codes = [(row, code) for encoding, opcode, row in rows for code in words(name, encoding, opcode)]
    answers = zip(codes, llvm_mc.disassemble(name, [code for _, code in codes]), strict=True)
    read = [(row, p) for (row, _), p in answers if p is not None and row not in TAKEN_BY_LLVM]
    written = [row for (*_, row), code in zip(rows, llvm_mc.assemble(name, [text(r) for *_, r in rows]), strict=True) if code and row not in TAKEN_BY_LLVM]
    assert not read, report([f"{row}: {p.code.hex()} {p.text}" for row, p in read])
    assert not written, report(written)
