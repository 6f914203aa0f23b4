"""The assembler: goldens both ways, sources, and what errors say."""

from __future__ import annotations

import pytest

from stuntgpu.isa.arch import ARCHES
from stuntgpu.isa.asm import AsmError, assemble, assemble_one
from stuntgpu.isa.decode import decode
from stuntgpu.isa.disasm import disassemble
from tests.isa.goldens import pairs, report
from tests.shared import shared_dir

GFX = "gfx1100"


@pytest.mark.parametrize("name", sorted(ARCHES))
def test_golden_text_assembles(name: str) -> None:
    wrong = []
    for code, text in pairs(name):
        try:
            got = assemble_one(name, text).hex()
        except AsmError as e:
            got = str(e)
        if got != code.hex():
            wrong.append(f"{text}: {got}, expected {code.hex()}")
    assert not wrong, report(wrong)


@pytest.mark.parametrize("name", sorted(ARCHES))
def test_golden_code_disassembles(name: str) -> None:
    wrong = []
    for code, text in pairs(name):
        got = disassemble(decode(name, code))
        if got != text:
            wrong.append(f"{code.hex()}: {got}, expected {text}")
    assert not wrong, report(wrong)


def test_golden_kernels_assemble() -> None:
    for path in sorted((shared_dir() / "bench-kernels").glob("*.s")):
        code = assemble(GFX, path.read_text())
        offset = 0
        while offset < len(code):
            offset += decode(GFX, code, offset).size
        assert offset == len(code), path.name


# ---------------------------------------------------------------- sources


def test_branches_reach_labels_both_ways() -> None:
    source = """
    top:
      s_nop 0            ; a comment
      s_cbranch_scc0 done // another
      s_branch top
    done: s_endpgm
    """
    words = [int.from_bytes(w, "little") & 0xFFFF for w in _words(assemble(GFX, source))]
    assert words == [0, 1, 0xFFFD, 0]


def _words(code: bytes) -> list[bytes]:
    return [code[i : i + 4] for i in range(0, len(code), 4)]


def test_directives_make_data_and_padding() -> None:
    code = assemble(GFX, "s_nop 1\n.long 0x12345678, end\n.p2align 4\nend:\n.byte 1\n.short 2\n")
    assert code.hex() == "010080bf" "78563412" "10000000" "000080bf" "01" "0200"


def test_constants_stand_for_numbers() -> None:
    code = assemble(GFX, ".set N, 3\nM = N * 2 + 1\ns_nop M\n.globl kernel\nkernel:\n.text\n")
    assert code.hex() == "070080bf"


def test_label_difference_is_a_literal() -> None:
    code = assemble(GFX, "a: s_nop 0\nb: s_add_u32 s0, s0, b-a\n")
    assert code.hex() == "000080bf" "00ff0080" "04000000"


def test_smallest_encoding_is_taken() -> None:
    assert len(assemble_one(GFX, "v_add_f32 v0, v1, v2")) == 4
    assert len(assemble_one(GFX, "v_add_f32 v0, v1, s2")) == 8
    assert len(assemble_one(GFX, "v_add_f32 v0, 1.5, v2")) == 8
    assert len(assemble_one(GFX, "v_add_f32_e64 v0, v1, v2")) == 8


@pytest.mark.parametrize(("text", "code"), [
    ("v_mov_b32 v0, 0x3f800000", "f202007e"),
    ("v_mov_b32 v0, lit(0x3f800000)", "ff02007e0000803f"),
    ("v_cmp_gt_f32_e64 s0, |lit(0x0)|, s0", "000114d4ff00000000000000"),  # a literal stays one inside bars
    ("v_add_f64 v[0:1], v[2:3], 1.5", "000027d702ff01000000f83f"),
    ("v_max_i16 v0.l, v1.l, -100", "00000ad701ff01009cffffff"),
    ("s_waitcnt vmcnt(0) & lgkmcnt(0)", "070089bf"),
    ("s_waitcnt_depctr depctr_va_vdst(0)", "9f0f88bf"),
    ("s_mov_b32 s0, 10*(2+3)", "b20080be"),
    ("V_MOV_B32_E32 v0, v1", "0103007e"),
    ("s_load_dwordx2 s[4:5], s[0:1], 0x8", "000104f4080000f8"),
    ("ds_read2st64_b32 v[0:1], v2 offset1:1", "0001e0d802000000"),
    ("global_atomic_smax v0, v1, s[2:3]", "0000eadc00010200"),
    ("v_ffbh_u32_e32 v0, v1", "0173007e"),
    ("s_and_b64 exec, exec, vcc", "7e6afe8b"),
    ("s_load_b64 s[4:5], s[0:1], 0x8", "000104f4080000f8"),
    ("v_mov_b32_dpp v0, v1 row_shl:1", "fa02007e010101ff"),
])  # fmt: skip
def test_text_people_write(text: str, code: str) -> None:
    assert assemble_one(GFX, text).hex() == code


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(("text", "message"), [
    ("v_movv_b32 v0, v1", "did you mean v_mov_b32"),
    ("v_mov_b32 v256, 0", "the last is v255"),
    ("v_mov_b32 v0", "',' and another operand"),
    ("v_mov_b32 v0, v1, v2", "found 'v2'"),
    ("s_mov_b64 s[1:2], 0", "multiple of 2"),
    ("s_mov_b32 s0, v1", "scalar register"),
    ("s_mov_b64 s[0:1], 0x123456789", "32 bits"),
    ("v_fma_f32 v0, s0, s1, s2", "at most 2"),
    ("v_add_f32 v0, 0x1234567, 0x7654321", "second literal"),
    ("ds_load_b32 v0, v1 offset:65536", "from 0 to 65535"),
    ("s_waitcnt vmcnt(64)", "from 0 to 63"),
    ("global_load_b32 v0, v1, off", "2 VGPR"),
    ("v_dual_mul_f32 v0, v1, v2 :: v_dual_mul_f32 v2, v2, v3", "even, the other odd"),
    ("v_dual_mul_f32 v0, v1, v2 :: v_dual_mul_f32 v3, v5, v3", "bank"),
    ("v_add_f32 v0, v1, v2 clmp", "a modifier"),
    ("s_nop ?", "unexpected character"),
])  # fmt: skip
def test_error_says_what_was_expected(text: str, message: str) -> None:
    with pytest.raises(AsmError) as caught:
        assemble_one(GFX, text)
    assert message in str(caught.value)


def test_error_has_line_column_and_text() -> None:
    with pytest.raises(AsmError) as caught:
        assemble(GFX, "s_nop 0\n  v_mov_b32 v0, q1 ; here\n")
    assert (caught.value.line, caught.value.column) == (2, 17)
    assert "v_mov_b32 v0, q1" in str(caught.value)


def test_undefined_label_is_an_error() -> None:
    with pytest.raises(AsmError, match="nowhere"):
        assemble(GFX, "s_branch nowhere")


# ---------------------------------------------------------------- spellings


@pytest.mark.parametrize(("text", "code"), [
    ("s_mov_b32 s0, 1|2+4*16", "ff0080be43000000"),  # bars bind more than plus
    ("s_mov_b32 s0, 1+100<<4", "ff0080be41060000"),
    ("s_endpgm", "0000b0bf"),
    ("s_endpgm 255", "ff00b0bf"),
    ("v_sqrt_f32 v3, |-100.0|", "ff66067e0000c842"),  # a constant takes its sign into the short encoding
    ("v_cos_f16 v113.l, neg(0.1)", "ffc2e27e66ae0000"),
    ("v_cvt_u32_f64 v42, |0.0|", "802a547e"),
    ("v_cmp_u_f32 vcc_lo, v0, |v132| dpp8:[4,4,6,0,4,3,4,7]", "6a0218d4e908030000a4c1f1"),  # DPP8 has no signs
    ("v_fma_f64 v[10:11], v[0:1], v[2:3], 0xffffffffffffffff", "0a0014d600050603"),
    ("v_cmp_ne_i16_e64 s36, --1, null", "240035d481f80000"),
    ("v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], null", "004040cc0821f219"),
])  # fmt: skip
def test_spellings_have_llvms_encoding(text: str, code: str) -> None:
    assert assemble_one(GFX, text).hex() == code


@pytest.mark.parametrize("text", [
    "v_or3_b32 v0, v1, v2, -v3",  # an integer has no sign
    "v_sqrt_f32_e32 v0, -v1",  # no sign of a register in this encoding
    "v_add_f32_dpp v0, v1, 0x1234 row_shl:1",
    "v_fma_f32_e64_dpp v0, v1, v2, 0x1234 row_shl:1",  # no literal beside DPP
    "v_add_f32_e64_dpp v0, v1, s2 row_shl:1",  # this chip takes a VGPR there
    "s_cmov_b64 scc, null",  # no such destination
    "buffer_load_b32 v154, v157.h, s[0:3], 12 idxen",  # no half is an address
    "ds_load_b32 v0, v1 offset:1 offset:2",
    "v_mov_b32_dpp v0, v1 row_shl:1 row_shr:1",
])  # fmt: skip
def test_what_would_give_other_code_is_refused(text: str) -> None:
    with pytest.raises(AsmError):
        assemble_one(GFX, text)
