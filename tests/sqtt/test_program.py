"""Code by run-time address."""

from __future__ import annotations

import gzip

import pytest

from stuntgpu.isa.abi.elf import ElfError
from stuntgpu.isa.asm import assemble
from stuntgpu.sqtt.program import CodeError, Program, code_arch
from tests.sqtt.captures import CHIPS, captures

ADDRESS = 0x2000_0000


def program(text: str, chip: str = "gfx1100") -> Program:
    return Program.from_code(assemble(code_arch(chip), text), chip, address=ADDRESS)


def test_steps_follow_each_other() -> None:
    code = program("s_mov_b32 s0, 0x12345678\nv_add_f32 v0, v1, v2\ns_branch 2\ns_endpgm\n")
    step = code.at(code.entry)
    assert (step.text, step.pipe, step.after - step.pc) == ("s_mov_b32 s0, 0x12345678", "salu", 8)
    step = code.at(step.after)
    assert (step.name, step.pipe, step.target) == ("V_ADD_F32", "valu", None)
    step = code.at(step.after)
    assert (step.pipe, step.target) == ("control", step.after + 8)
    assert code.at(step.after).is_end


@pytest.mark.parametrize(("pc", "says"), [(ADDRESS - 4, "outside its code"), (ADDRESS + 4, "outside its code")])
def test_an_address_outside_the_code_is_an_error(pc: int, says: str) -> None:
    with pytest.raises(CodeError, match=says):
        program("s_endpgm\n").at(pc)


def test_code_that_tools_refuse_has_the_length_of_its_encoding() -> None:
    """v_permlane16_b32 with a vector register where only scalars are accepted: hardware ran it."""
    code = bytes.fromhex("00005bd61041c204")
    step = Program.from_code(code, "gfx1200").at(0)
    assert (step.inst, step.name, step.code) == (None, "V_PERMLANE16_B32", code)
    assert step.text == ".long 0xd65b0000, 0x04c24110"


def test_instructions_of_a_chip_that_extends_this_one_are_read() -> None:
    assert Program.from_code(bytes.fromhex("6a6aeaa4"), "gfx1100").at(0).name == "S_ADD_F16"


def test_no_encoding_is_an_error() -> None:
    with pytest.raises(CodeError, match="no instruction has the word"):
        Program.from_code(bytes.fromhex("ffffffffffffffff"), "gfx1100").at(0)


def test_a_chip_without_tables_is_an_error() -> None:
    with pytest.raises(CodeError, match="no instruction tables for 'gfx803'"):
        code_arch("gfx803")


@pytest.mark.parametrize("chip", CHIPS)
def test_golden_code_objects_hold_the_code_of_the_manifest(chip: str) -> None:
    capture = next(c for c in captures(chip) if not any(k["elf_ident_patched"] for k in c.manifest["kernels"]))
    for row, expected in zip(capture.manifest["kernels"], capture.programs, strict=True):
        elf = gzip.decompress((capture.path / row["elf_file"]).read_bytes())
        read = Program.from_elf(elf, chip, load_base=row["load_base"], name=row["name"])
        assert read == expected


def test_what_is_no_code_object_is_an_error() -> None:
    with pytest.raises(ElfError):
        Program.from_elf(b"no object", "gfx1100")
