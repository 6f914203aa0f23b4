"""Code objects from assembly text: what loads, where symbols lie, what descriptors hold, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from stuntgpu.emu import Gpu
from stuntgpu.isa.abi import codeobject
from stuntgpu.isa.abi.elf import ElfFile
from stuntgpu.isa.arch import ARCHES
from stuntgpu.isa.asm_lex import AsmError
from stuntgpu.isa.asm_object import assemble_object, has_kernels

KERNEL = """
  .amdhsa_kernel twice
    .amdhsa_kernarg_size 8
    .amdhsa_user_sgpr_kernarg_segment_ptr 1
    .amdhsa_next_free_vgpr .amdgcn.next_free_vgpr
    .amdhsa_next_free_sgpr .amdgcn.next_free_sgpr
    {more}
  .end_amdhsa_kernel
"""
METADATA = """
  .amdgpu_metadata
amdhsa.version: [1, 2]
amdhsa.kernels:
  - .name: twice
    .symbol: 'twice.kd'
    .kernarg_segment_size: 8
    .kernarg_segment_align: 8
    .max_flat_workgroup_size: 256
    .args:
      - {.name: y, .offset: 0, .size: 8, .value_kind: global_buffer}
  .end_amdgpu_metadata
"""
BODY = {
    "gfx11": "s_load_b64 s[2:3], s[0:1], 0x0\nv_lshlrev_b32 v0, 2, v0\ns_waitcnt lgkmcnt(0)\nglobal_load_b32 v1, v0, s[2:3]\n"
             "s_waitcnt vmcnt(0)\nv_add_f32 v1, v1, v1\nglobal_store_b32 v0, v1, s[2:3]\ns_endpgm",
    "gfx12": "s_load_b64 s[2:3], s[0:1], 0x0\nv_lshlrev_b32 v0, 2, v0\ns_wait_kmcnt 0x0\nglobal_load_b32 v1, v0, s[2:3]\n"
             "s_wait_loadcnt 0x0\nv_add_f32 v1, v1, v1\nglobal_store_b32 v0, v1, s[2:3]\ns_endpgm",
    "gfx9": "s_load_dwordx2 s[2:3], s[0:1], 0x0\nv_lshlrev_b32 v0, 2, v0\ns_waitcnt lgkmcnt(0)\n"
            "global_load_dword v1, v0, s[2:3]\ns_waitcnt vmcnt(0)\nv_add_f32 v1, v1, v1\nglobal_store_dword v0, v1, s[2:3]\ns_endpgm",
}  # fmt: skip


def text_of(arch: str, more: str = "", body: str = "", rest: str = METADATA) -> str:
    dialect = ARCHES[arch].dialect
    more += "\n.amdhsa_accum_offset 4" if dialect == "gfx9" and "accum_offset" not in more else ""
    code = f".text\n.globl twice\n.p2align 8\n.type twice,@function\ntwice:\n{body or BODY[dialect]}\n.Lend:\n.size twice, .Lend-twice\n"
    return code + ".rodata" + KERNEL.format(more=more) + rest


def built(arch: str, more: str = "", body: str = "", rest: str = METADATA) -> codeobject.CodeObject:
    return codeobject.read(assemble_object(arch, text_of(arch, more, body, rest)))


def refused(arch: str, text: str) -> AsmError:
    with pytest.raises(AsmError) as caught:
        assemble_object(arch, text)
    return caught.value


@pytest.mark.parametrize("arch", ARCHES)
def test_a_kernel_written_by_hand_runs(arch: str) -> None:
    kernel = Gpu(arch).load(assemble_object(arch, text_of(arch)))["twice"]
    y = np.arange(64, dtype=np.float32)
    kernel(y, grid=64, workgroup=64)
    np.testing.assert_array_equal(y, 2 * np.arange(64, dtype=np.float32))


def test_counts_of_registers_follow_the_code() -> None:
    d = built("gfx1100", body="v_mov_b32 v40, s17\ns_endpgm").kernels["twice"].descriptor
    assert d.rsrc1.vgprs == -(-41 // 8) - 1
    assert built("gfx1100", ".amdhsa_wavefront_size32 0", "v_mov_b32 v40, 0\ns_endpgm").kernels["twice"].descriptor.rsrc1.vgprs == 10
    assert built("gfx942", body="v_mov_b32 v3, s[17]\ns_endpgm").kernels["twice"].descriptor.rsrc1.sgprs == (18 + 6 - 1) // 8


def test_defaults_are_the_documented_ones() -> None:
    d = built("gfx1100").kernels["twice"].descriptor
    assert (d.rsrc1.float_denorm_16_64, d.rsrc1.dx10_clamp, d.rsrc1.ieee_mode, d.rsrc1.wgp_mode, d.rsrc1.mem_ordered) == (3, 1, 1, 1, 1)
    assert (d.rsrc2.user_sgprs, d.rsrc2.workgroup_id_x, d.properties.wavefront_size32, d.kernarg_size) == (2, 1, 1, 8)
    assert not built("gfx1201").kernels["twice"].descriptor.rsrc1.dx10_clamp


def test_without_metadata_a_kernel_still_loads() -> None:
    kernel = built("gfx1100", rest="").kernels["twice"]
    assert (kernel.args, kernel.max_workgroup_items) == ((), 1024)


def test_symbols_have_their_places() -> None:
    data = assemble_object("gfx1100", text_of("gfx1100"))
    file, loaded = ElfFile(data), codeobject.read(data)
    assert file.symbols["twice"].size == 4 * 11
    assert loaded.kernels["twice"].entry_vaddr == file.symbols["twice"].value
    assert file.symbols["twice"].value % 256 == 0 == file.symbols["twice.kd"].value % 64


def test_the_target_line_gives_features_and_must_agree() -> None:
    features = '.amdgcn_target "amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-"\n'
    made = codeobject.read(assemble_object("gfx942", features + text_of("gfx942")))
    assert (made.xnack, made.sramecc) == ("off", "on")
    assert (built("gfx942").xnack, built("gfx1100").xnack) == ("any", "unsupported")
    error = refused("gfx950", features + text_of("gfx950"))
    assert (error.line, "gfx950 was asked for" in error.message) == (1, True)


@pytest.mark.parametrize("version", [4, 5, 6])
def test_code_object_versions(version: int) -> None:
    text = f".amdhsa_code_object_version {version}\n" + text_of("gfx1100")
    assert codeobject.read(assemble_object("gfx1100", text)).version == version


DATA = """
  .data
  .p2align 3
table:
  .quad twice, table+8, 7
  .globl table
  .bss
  .p2align 4
room: .zero 64
"""


def test_addresses_in_data_move_with_the_load_address() -> None:
    made = built("gfx1100", rest=DATA + METADATA)
    base = 0x7000_0000_0000
    image, at = made.image(base), made.symbols["table"].value
    words = [int.from_bytes(image[at + 8 * i : at + 8 * i + 8], "little") for i in range(3)]
    assert words == [base + made.symbols["twice"].value, base + at + 8, 7]
    assert len(image) >= max(s.vaddr + s.size for s in made.segments)


@pytest.mark.parametrize("kind", ["rel32", "gotpcrel32"])
def test_code_reaches_symbols_relative_to_the_pc(kind: str) -> None:
    body = f".globl back\ns_getpc_b64 s[4:5]\nback:\ns_add_u32 s4, s4, table@{kind}@lo+4\ns_addc_u32 s5, s5, table@{kind}@hi+12\ns_endpgm"
    made = built("gfx1100", body=body, rest=DATA + METADATA)
    base = 0x7000_0000_0000
    image, pc = made.image(base), made.symbols["back"].value
    low, high = (int.from_bytes(image[pc + i : pc + i + 4], "little") for i in (4, 12))
    reached = base + pc + (high << 32 | low) & (1 << 64) - 1
    if kind == "gotpcrel32":
        reached = int.from_bytes(image[reached - base : reached - base + 8], "little")
    assert reached == base + made.symbols["table"].value


def test_constants_may_name_what_comes_later() -> None:
    more = "\n.amdhsa_group_segment_fixed_size max(alignto(bytes, 64), 16)*2"
    made = built("gfx1100", more, rest=".set bytes, later+1\n.set later, 3*40\n" + METADATA)
    assert made.kernels["twice"].descriptor.group_segment_size == 256


@pytest.mark.parametrize(("arch", "more", "message"), [
    ("gfx1100", ".amdhsa_kernarg_sise 8", "did you mean .amdhsa_kernarg_size?"),
    ("gfx1100", ".amdhsa_accum_offset 4", "other chips have it"),
    ("gfx1201", ".amdhsa_ieee_mode 1", "other chips have it"),
    ("gfx1100", ".amdhsa_system_vgpr_workitem_id 4", "does not fit the 2 bits"),
    ("gfx1100", ".amdhsa_kernarg_size 16", "given twice"),
    ("gfx1100", ".amdhsa_user_sgpr_count 1", "but 2 are enabled"),
    ("gfx942", ".amdhsa_accum_offset 6", "not a multiple of 4"),
    ("gfx1100", ".amdhsa_group_segment_fixed_size nowhere", "nowhere"),
])  # fmt: skip
def test_wrong_directives_are_refused_where_they_stand(arch: str, more: str, message: str) -> None:
    text = text_of(arch, more)
    error = refused(arch, text)
    assert message in str(error)
    assert text.split("\n")[error.line - 1].strip() == more


@pytest.mark.parametrize(("text", "line", "message"), [
    ("s_nop 0\n.amdhsa_kernel k\n.amdhsa_next_free_vgpr 1\n.end_amdhsa_kernel", 2, "no label of its name"),
    ("k: s_endpgm\n.amdhsa_kernel k\n.end_amdhsa_kernel", 2, "needs .amdhsa_next_free_vgpr, .amdhsa_next_free_sgpr"),
    ("k: s_endpgm\n.amdhsa_kernel k\n.amdhsa_next_free_vgpr 1", 2, "without .end_amdhsa_kernel"),
    ("k: s_add_u32 s0, s0, gone@rel32@lo+4", 1, "undefined symbol 'gone'"),
    (".set a, b\n.set b, a\n.text\ns_endpgm\n.fill a, 1, 0", 1, "defined by itself"),
    (".data\nx: .long x", 2, "needs eight bytes of data"),
    ("k: s_mov_b32 s0, k", 1, "symbol@rel32 in code"),
    (".amdhsa_code_object_version 9\ns_endpgm", 1, "code object version 9"),
    (".amdgpu_metadata\na: [1\n.end_amdgpu_metadata\ns_endpgm", 2, "metadata"),
    (".section", 1, "name of a section"),
    (".type k,@thing", 1, "symbol type 'thing'"),
    (".bss\nx: .long 5", 2, "zeroes only"),
    ("k: s_frob", 1, "unknown instruction"),
])  # fmt: skip
def test_what_is_wrong_is_named_with_its_line(text: str, line: int, message: str) -> None:
    error = refused("gfx1100", text)
    assert message in str(error)
    assert error.line == line


def test_only_text_with_kernels_asks_for_an_object() -> None:
    assert has_kernels(text_of("gfx1100"))
    assert not has_kernels("s_endpgm ; .amdhsa_kernel")
