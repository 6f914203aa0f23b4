"""Assembler and disassembler against LLVM's, on encodings no golden holds: the two agree on every
text and every byte that survives LLVM both ways."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from stuntgpu.isa.arch import ARCHES
from stuntgpu.isa.asm import AsmError, assemble_one
from stuntgpu.isa.decode import DecodeError, decode
from stuntgpu.isa.disasm import disassemble
from tests.isa import candidates, llvm_mc
from tests.isa.goldens import pairs, report

NAMES = sorted(ARCHES)
#: Words a call of LLVM takes: it dies of some, and then they are halved.
BATCH = 1000


def agreed(name: str, codes: list[bytes]) -> list[llvm_mc.Pair]:
    codes = list(dict.fromkeys(codes))
    found = [p for i in range(0, len(codes), BATCH) for p in llvm_mc.agreed(name, codes[i : i + BATCH])]
    return list({p.code: p for p in found}.values())


def text_of(name: str, code: bytes) -> str:
    try:
        inst = decode(name, code)
    except DecodeError as e:
        return str(e)
    return disassemble(inst) if inst.size == len(code) else f"{inst.size} bytes: {disassemble(inst)}"


def code_of(name: str, text: str) -> str:
    try:
        return assemble_one(name, text).hex()
    except AsmError as e:
        return e.message


def differences(name: str, agreement: list[llvm_mc.Pair]) -> list[str]:
    wrong = []
    for pair in agreement:
        text, code = text_of(name, pair.code), code_of(name, pair.text)
        if text != pair.text:
            wrong.append(f"{pair.code.hex()}: {text!r}, LLVM has {pair.text!r}")
        if code != pair.code.hex():
            wrong.append(f"{pair.text}: {code}, LLVM has {pair.code.hex()}")
    return wrong


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", NAMES)
def test_every_opcode_with_fields_at_their_edges_is_llvms(name: str, seed: int) -> None:
    found = agreed(name, list(candidates.generated(name, seed, 6)))
    assert len(found) > 5000
    wrong = differences(name, found)
    assert not wrong, report(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_changed_goldens_are_llvms(name: str) -> None:
    found = agreed(name, list(candidates.changed(name, 1, [c for c, _ in pairs(name)], 2)))
    assert len(found) > 5000
    wrong = differences(name, found)
    assert not wrong, report(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("words", [candidates.literals, candidates.numbers, candidates.immediates])
@pytest.mark.parametrize("name", NAMES)
def test_every_source_and_immediate_is_llvms(name: str, words: Callable[[str], Iterable[bytes]]) -> None:
    found = agreed(name, list(words(name)))
    assert len(found) > 5000
    wrong = differences(name, found)
    assert not wrong, report(wrong)
