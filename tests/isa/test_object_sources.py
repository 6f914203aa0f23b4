"""Code objects of whole sources: compiler output kept here, kernels of the shared corpus, files with many errors, ELF by pyelftools."""

from __future__ import annotations

import io
import json
from itertools import pairwise
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from hypothesis import given, settings
from hypothesis import strategies as st

from stuntgpu.isa.abi.codeobject import read
from stuntgpu.isa.abi.elf import SHN_ABS, SHT_SYMTAB, ElfFile
from stuntgpu.isa.arch import ARCHES
from stuntgpu.isa.asm import assemble
from stuntgpu.isa.asm_lex import AsmError
from stuntgpu.isa.asm_object import assemble_object
from stuntgpu.isa.asm_report import MOST, SHOWN, AsmErrors
from tests.isa.test_asm_object import refused, text_of
from tests.isa.test_llvm_objdump import run, tool
from tests.isa.test_llvm_objects import Parts, assembled, check
from tests.shared import shared_dir

DATA = Path(__file__).parent / "data"


def all_symbols(file: ElfFile) -> dict[str, list[int]]:
    """[type, size] of every symbol that has a section or is a number, local ones included."""
    table = next(s for s in file.sections if s.type == SHT_SYMTAB)
    return {s.name: [s.type, s.size] for s in file.symbol_table(table) if s.section}


@pytest.mark.parametrize("name", sorted(p.stem for p in DATA.glob("*.s")))
def test_golden_compiler_output_becomes_what_clang_made_of_it(name: str) -> None:
    wanted = json.loads((DATA / f"{name}.json").read_text())
    ours = Parts(assemble_object(name.rpartition(".")[2], (DATA / f"{name}.s").read_text()))
    assert ours.text.hex() == wanted["text"]
    assert {n: d.hex() for n, d in ours.descriptors.items()} == wanted["descriptors"]
    assert list(ours.flags) == wanted["flags"]
    assert ours.metadata == wanted["metadata"]
    assert all_symbols(ours.file) == wanted["symbols"]


def test_golden_hand_written_kernels_make_objects_with_the_code_in_them() -> None:
    paths = sorted((shared_dir() / "bench-kernels").glob("*.s"))
    assert paths
    for path in paths:
        text = path.read_text()
        file = ElfFile(assemble_object("gfx1100", text))
        section = file.sections[file.section_names.index(".text")]
        assert bytes(file.bytes_at(section.offset, section.size, ".text")) == assemble("gfx1100", text), path.name
        assert file.symbols["kernel"].value == section.addr


@pytest.mark.slow
@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("arch", ARCHES)
def test_golden_kernels_of_the_corpus_become_the_objects_clang_makes(arch: str, level: str, tmp_path: Path) -> None:
    clang, folder = tool("clang"), shared_dir() / "kernels" / "src"
    sources = sorted((*folder.glob("*.hip"), *folder.glob("*.cl")))
    assert sources
    for path in sources:
        out = tmp_path / f"{path.stem}.s"
        names = ("-D__gfx1100__",) if ARCHES[arch].extends == "gfx1100" else ()  # by which the sources know RDNA
        hip = ("-x", "hip", "--offload-device-only", "-nogpuinc", "-I", folder, f"--offload-arch={arch}", *names)
        opencl = ("-x", "cl", "-cl-std=CL2.0", "--target=amdgcn-amd-amdhsa", f"-mcpu={arch}")
        run(clang, *(hip if path.suffix == ".hip" else opencl), level, "-nogpulib", "-w", "-S", path, "-o", out)
        check(arch, out.read_text(), assembled(arch, out))


def test_every_wrong_line_is_reported_in_order() -> None:
    text = "v_ad_f32 v0, v1, v2\n.lonng 5\ns_nop 0\n.byte 300\n" + text_of("gfx1100", ".amdhsa_bogus 1\n.amdhsa_fp16_overflow 2")
    error = refused("gfx1100", text)
    assert isinstance(error, AsmErrors)
    shown = [text.split("\n")[e.line - 1].split()[0] for e in error.errors]
    assert shown == ["v_ad_f32", ".lonng", ".byte", ".amdhsa_bogus", ".amdhsa_fp16_overflow"]
    assert (error.line, error.column) == (1, 1)
    for word in shown:
        assert word in str(error)


def test_errors_that_only_the_addresses_show_are_all_reported() -> None:
    error = refused("gfx1100", "k: s_mov_b32 s0, k\ns_nop 0\ns_mov_b32 s1, k\n.data\n.long k")
    assert isinstance(error, AsmErrors)
    assert [e.line for e in error.errors] == [1, 3, 5]


def test_a_file_of_nothing_but_errors_is_given_up() -> None:
    error = refused("gfx1100", "foo\n" * 10 * MOST)
    assert isinstance(error, AsmErrors)
    assert len(error.errors) == MOST
    assert str(error).count("unknown instruction") == SHOWN
    assert str(error).endswith(f"and {MOST - SHOWN} more errors")


@pytest.mark.parametrize(("text", "message"), [
    (".end_amdhsa_kernel", "ends nothing"), (".filex", "did you mean .file?"), (".globl", "a name"), (".globl 5", "a name"),
    ('.section .foo,"q"', "section flag 'q'"), (".set x, 1\n.set x, 2", "defined at line 1"), (".comm a, 4, z", "a number"),
    (".amdgcn_target", "target in quotes"), (".p2align 40", "exponent"),
])  # fmt: skip
def test_directives_that_mean_nothing_are_refused(text: str, message: str) -> None:
    assert message in str(refused("gfx1100", text))


def test_the_place_of_a_directive_can_be_named() -> None:
    text = "k: s_nop 0\ns_nop 1\n.size k, .-k\n.set here, .-k\n.type k,@function\n.globl k\n.data\n.long here"
    file = ElfFile(assemble_object("gfx1100", text))
    data = file.sections[file.section_names.index(".data")]
    assert file.symbols["k"].size == 8
    assert bytes(file.bytes_at(data.offset, data.size, ".data")) == bytes([8, 0, 0, 0])


def test_numbers_and_second_names_are_symbols_too() -> None:
    text = "k: s_nop 0\nm: s_nop 1\n.set five, 5\n.globl five\n.set again, m\n.globl again\n.type again,@function\n.globl k"
    symbols = ElfFile(assemble_object("gfx1100", text)).symbols
    assert (symbols["five"].value, symbols["five"].section) == (5, SHN_ABS)
    assert symbols["again"].value == symbols["k"].value + 4
    assert symbols["again"].section == symbols["k"].section


NAMES = st.lists(st.from_regex(r"k[a-z0-9_]{0,12}", fullmatch=True), min_size=1, max_size=5, unique=True)
KERNEL = ".text\n.globl {0}\n.p2align 8\n.type {0},@function\n{0}:\ns_endpgm\n.rodata\n.amdhsa_kernel {0}\n.amdhsa_next_free_vgpr {1}\n" \
         ".amdhsa_next_free_sgpr 8\n.end_amdhsa_kernel\n"


@settings(max_examples=25, deadline=None)
@given(NAMES, st.integers(1, 256), st.binary(max_size=40))
def test_objects_are_what_other_elf_readers_expect(names: list[str], vgprs: int, data: bytes) -> None:
    more = ".data\n.globl table\ntable:\n" + "".join(f".byte {b}\n" for b in data)
    made = assemble_object("gfx1100", "".join(KERNEL.format(n, vgprs) for n in names) + more)
    file = ELFFile(io.BytesIO(made))
    loads = [s for s in file.iter_segments() if s["p_type"] == "PT_LOAD"]
    for s in loads:
        assert s["p_offset"] % s["p_align"] == s["p_vaddr"] % s["p_align"]
    for a, b in pairwise(loads):
        assert a["p_vaddr"] + a["p_memsz"] <= b["p_vaddr"]
    exported = {s.name: s for s in file.get_section_by_name(".dynsym").iter_symbols()}
    assert exported.keys() - {""} >= {f(n) for n in names for f in (str, "{}.kd".format)}
    assert all(file.get_section_by_name(".hash").get_symbol(n)["st_value"] == s["st_value"] for n, s in exported.items() if n)
    if data:
        section, at = file.get_section_by_name(".data"), exported["table"]["st_value"]
        start = at - section["sh_addr"]
        assert section.data()[start : start + len(data)] == data
    kernels = read(made).kernels
    assert set(kernels) == set(names)
    assert {k.descriptor.rsrc1.vgprs for k in kernels.values()} == {(vgprs - 1) // 8}
    assert {n: k.entry_vaddr for n, k in kernels.items()} == {n: exported[n]["st_value"] for n in names}


LINES = st.sampled_from([*text_of("gfx942").split("\n"), ".data", ".quad k", ".set a, b", ".size twice, x", ".popsection", ".comm a,4,4",
                         "k: s_branch k", ".amdhsa_kernel z", ".type", ".weak k", '.section .x,"aw",@nobits', ".p2align", "a = 5", ".zero a"])


@settings(max_examples=60, deadline=None)
@given(st.lists(LINES, max_size=30), st.sampled_from(sorted(ARCHES)))
def test_any_order_of_lines_loads_or_is_refused_with_a_place(lines: list[str], arch: str) -> None:
    try:
        made, place = assemble_object(arch, "\n".join(lines)), (1, 1)
    except AsmError as error:
        made, place = b"", (error.line, error.column)
    assert 0 < place[0] <= max(len(lines), 1)
    assert place[1] > 0
    if made:
        assert read(made).target == arch
