"""gfx1151 is gfx1100 with scalar floats and scalar sources beside DPP."""

from __future__ import annotations

import struct

import pytest

from stuntgpu.isa.arch import arch
from stuntgpu.isa.asm import AsmError, assemble_one
from stuntgpu.isa.decode import DecodeError, decode
from stuntgpu.isa.disasm import disassemble
from stuntgpu.isa.gen.additions import NAMES
from stuntgpu.isa.semantics import rows, semantics
from tests.isa import llvm_mc
from tests.isa.goldens import added, report
from tests.isa.rows import KEEP_DENORMALS, Machine, execute

ARCH, PARENT = "gfx1151", "gfx1100"
ONE, SIGNALLING, QUIET = 0x3F80_0000, 0x7F80_0001, 0x7FC0_0001


def test_it_has_all_instructions_of_gfx1100_and_the_scalar_floats() -> None:
    ours, theirs = arch(ARCH).tables, arch(PARENT).tables
    assert set(ours.by_name) - set(theirs.by_name) == NAMES[ARCH]
    assert [r for r in ours.rows if r.name not in NAMES[ARCH]] == sorted(theirs.rows, key=lambda r: (r.base, r.opcode))
    assert {r.base for r in ours.rows if r.name in NAMES[ARCH]} == {"SOP1", "SOP2", "SOPC"}


def test_rows_of_gfx1100_are_shared() -> None:
    assert set(rows(ARCH)) - set(rows(PARENT)) == NAMES[ARCH]
    assert all(rows(ARCH)[name] == text for name, text in rows(PARENT).items())
    assert not [name for name in NAMES[ARCH] if rows(ARCH)[name].startswith("!")]


def test_golden_scalar_floats_assemble_and_disassemble() -> None:
    wrong = [(code.hex(), text) for code, text in added(ARCH)
             if assemble_one(ARCH, text) != code or disassemble(decode(ARCH, code)) != text]
    assert not wrong, report([str(w) for w in wrong])
    with pytest.raises(DecodeError):
        decode(PARENT, added(ARCH)[0][0])


def test_golden_scalar_floats_are_llvms() -> None:
    """The encodings come from another generation's tables: LLVM has the same here."""
    pairs = added(ARCH)
    theirs = llvm_mc.disassemble(ARCH, [code for code, _ in pairs])
    wrong = [f"{text}: {pair}" for (code, text), pair in zip(pairs, theirs, strict=True) if pair != llvm_mc.Pair(code, text)]
    assert not wrong, report(wrong)
    assert {text.split()[0].upper() for _, text in pairs} == NAMES[ARCH]


def test_scalar_sources_go_with_dpp() -> None:
    text = "v_add_f32_e64_dpp v0, v1, s2 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf"
    code = assemble_one(ARCH, text)
    assert disassemble(decode(ARCH, code)) == text
    with pytest.raises(AsmError):
        assemble_one(PARENT, text)
    with pytest.raises(DecodeError):
        decode(PARENT, code)


def run(name: str, **places: int) -> int:
    return execute(semantics(ARCH, name), places, Machine(KEEP_DENORMALS))["D0"]


@pytest.mark.parametrize("name", ["S_MIN_F32", "S_MAX_F32"])
def test_minimum_and_maximum_quiet_signalling_nans_in_ieee_mode(name: str) -> None:
    assert run(name, S0=SIGNALLING, S1=ONE, MODE_IEEE=0) == ONE
    assert run(name, S0=SIGNALLING, S1=ONE, MODE_IEEE=1) == SIGNALLING | 1 << 22
    assert run(name, S0=QUIET, S1=ONE, MODE_IEEE=1) == ONE


def test_fmac_rounds_once() -> None:
    x = struct.unpack("<I", struct.pack("<f", 1 + 2**-12))[0]
    minus_one_and_a_bit = struct.unpack("<I", struct.pack("<f", -(1 + 2**-11)))[0]
    assert run("S_FMAC_F32", S0=x, S1=x, D0=minus_one_and_a_bit) == 0x3380_0000  # 2 ** -24
