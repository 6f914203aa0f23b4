"""Assembler and disassembler against LLVM's, on encodings no golden holds: the two agree on every
text and every byte that survives LLVM both ways."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable

import pytest

from stuntgpu.isa.arch import ARCHES
from stuntgpu.isa.asm import AsmError, assemble_one
from stuntgpu.isa.decode import DecodeError, decode
from stuntgpu.isa.disasm import disassemble
from tests.isa import candidates, llvm_mc, spellings
from tests.isa.goldens import pairs, report

NAMES = sorted(ARCHES)
#: Words a call of LLVM takes: it dies of some, and then they are halved.
BATCH = 1000


def agreed(name: str, codes: list[bytes]) -> list[llvm_mc.Pair]:
    codes = list(dict.fromkeys(codes))
    found = [p for i in range(0, len(codes), BATCH) for p in llvm_mc.agreed(name, codes[i : i + BATCH])]
    return list({p.code: p for p in found if not is_undescribed(p)}.values())


def is_undescribed(pair: llvm_mc.Pair) -> bool:
    """Image instructions of RDNA3 with non-sequential addresses, what LLVM prints for a wrong register class, and a
    literal that it read from behind the instruction (CDNA has none in VOP3) and does not write."""
    read_on = "0xbf800001" in pair.text and llvm_mc.PADDING[:4] not in pair.code
    long_image = pair.code[3] >> 2 == 0x3C and len(pair.code) == 12 and pair.code[0] & 1 == 1 and "image_" in pair.text
    return long_image or read_on or "Invalid register" in pair.text


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


#: Texts of which LLVM makes other code, for a reason.
OTHER_CODE = re.compile(
    r"lit\(.*[|)]"  # LLVM forgets lit() in places, and then has an inline constant
    r"|image_.*\["  # registers named one by one in sequence: the sequential encoding here, the longer one there
    r"|neg\(0\)|_f64.*0x|\|(0x|-?\d)"  # where a sign goes in a constant that has none
)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_other_spellings_have_llvms_code(name: str) -> None:
    """Where both take a text; what only one takes is not compared."""
    r, texts = random.Random(7), [t for _, t in pairs(name)]
    variants = list(dict.fromkeys(spellings.variant(r, r.choice(texts)) for _ in range(8000)))
    made = [c for i in range(0, len(variants), BATCH) for c in llvm_mc.assemble(name, variants[i : i + BATCH])]
    both = [(t, c.hex(), code_of(name, t)) for t, c in zip(variants, made, strict=True) if c is not None]
    assert len(both) > 3000
    wrong = [
        f"{text}: {ours}, LLVM has {theirs}" for text, theirs, ours in both
        if ours != theirs and re.fullmatch("[0-9a-f]+", ours) and not OTHER_CODE.search(text)
    ]  # fmt: skip
    assert not wrong, report(wrong)
