"""The encodings only CDNA has: SDWA, AccVGPRs, matrix formats, scalar offsets, messages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stuntgpu.isa.asm import AsmError, assemble_one
from stuntgpu.isa.decode import DecodeError, decode, encode
from stuntgpu.isa.disasm import disassemble


def text_of(code: bytes, name: str = "gfx950") -> str:
    return disassemble(decode(name, code))


def same(text: str, name: str = "gfx950") -> bytes:
    code = assemble_one(name, text)
    assert text_of(code, name) == text
    return code


@pytest.mark.parametrize(("short", "full"), [
    ("v_mov_b32_sdwa v0, v1", "v_mov_b32_sdwa v0, v1 dst_sel:DWORD dst_unused:UNUSED_PRESERVE src0_sel:DWORD"),
    ("v_cmp_eq_f32_sdwa vcc, v1, v2", "v_cmp_eq_f32_sdwa vcc, v1, v2 src0_sel:DWORD src1_sel:DWORD"),
    ("v_cvt_f32_fp8_sdwa v0, v1", "v_cvt_f32_fp8_sdwa v0, v1 src0_sel:DWORD"),
])  # fmt: skip
def test_sdwa_defaults_are_whole_registers(short: str, full: str) -> None:
    assert text_of(assemble_one("gfx942", short), "gfx942") == full


@pytest.mark.parametrize("text", [
    "v_add_f32_sdwa v0, sext(v1), v1",  # a float has a sign of its own
    "v_add_u32_sdwa v0, -v1, v1",
    "v_add_f32_sdwa v0, s1, s2",  # one scalar operand a lane
    "v_mov_b32_dpp v0, -v1 row_shl:1",
    "ds_read_b32 v0, v1 gds",  # no global data share
    "buffer_load_dwordx2 off, s[0:3], s1 lds",
    "v_add_f64 v[1:2], v[2:3], v[4:5]",  # pairs begin at even registers
    "ds_write2_b32 v0, v1, a2",  # one bit for both data registers
    "s_buffer_load_dword s0, s[4:7], -0x1",
    "s_load_dword s0, s[4:5], src_vccz",  # seven bits of a register number
    "flat_load_dword v0, v[2:3] offset:-1",
    "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[0:7], v[8:15], 0 cbsz:4",  # FP4 takes four registers
])  # fmt: skip
def test_what_the_encoding_cannot_say_is_refused(text: str) -> None:
    with pytest.raises(AsmError):
        assemble_one("gfx950", text)


@pytest.mark.parametrize(("text", "code"), [
    ("v_max_u32 v152, 1, s21", "98000fd1812a0000"),
    ("v_min_f32 v0, v1, v187 clamp", "00800ad101770300"),
    ("v_cmp_le_i32 exec, v148, v215", "7e00c3d094af0300"),
])  # fmt: skip
def test_plain_encodings_go_before_sdwa(text: str, code: str) -> None:
    assert assemble_one("gfx942", text).hex() == code


def test_load_to_lds_is_told_by_its_missing_register() -> None:
    code = same("buffer_load_dword v1, s[0:3], 0 offen lds")
    assert decode("gfx950", code).fields["LDS"] == 1
    assert decode("gfx950", same("buffer_load_dword v2, v1, s[0:3], 0 offen")).fields["LDS"] == 0


def test_scaled_matrix_instruction_is_two_words_that_also_stand_alone() -> None:
    text = "v_mfma_scale_f32_16x16x128_f8f6f4 a[0:3], v[0:7], a[8:15], a[4:7], v16, v17 op_sel_hi:[0,0,0]"
    code = same(text)
    assert len(code) == 16
    alone = decode("gfx950", code[:8])
    assert alone.name == "V_MFMA_LD_SCALE_B32"
    assert alone.size == 8


def test_scaled_matrix_instruction_cut_short_is_not_read_past_the_end() -> None:
    text = "v_mfma_scale_f32_16x16x128_f8f6f4 a[0:3], v[0:7], a[8:15], a[4:7], v16, v17 op_sel_hi:[0,0,0]"
    code = assemble_one("gfx950", text)
    for n in range(len(code)):
        if n < 8:
            with pytest.raises(DecodeError, match="ends inside"):
                decode("gfx950", code[:n])
        else:
            assert decode("gfx950", code[:n]).size == 8


@given(st.integers(0, 0xFFFF))
def test_messages_read_back(value: int) -> None:
    code = (0xBF90_0000 | value).to_bytes(4, "little")
    assert assemble_one("gfx942", text_of(code, "gfx942")) == code


@given(st.integers(0, 15), st.integers(0, 7))
def test_typed_buffer_formats_read_back(data: int, number: int) -> None:
    base = assemble_one("gfx942", "tbuffer_load_format_x v0, off, s[0:3], s1")
    inst = decode("gfx942", base)
    fields = {**inst.fields, "DFMT": data, "NFMT": number}
    code = encode(type(inst)(**{**vars(inst), "fields": fields}))
    assert assemble_one("gfx942", text_of(code, "gfx942")) == code


@given(st.integers(-(1 << 20), (1 << 20) - 1), st.sampled_from(("", "s5", "m0", "vcc_hi")))
def test_scalar_offsets_read_back(offset: int, register: str) -> None:
    sign, size = "-" if offset < 0 else "", hex(abs(offset))
    where = f"{register} offset:{sign}{size}" if register else f"{sign}{size}"
    same(f"s_load_dwordx2 s[2:3], s[4:5], {where}", "gfx942")


@pytest.mark.parametrize("control", [
    "wave_shl:1", "wave_rol:1", "wave_shr:1", "wave_ror:1", "row_bcast:15", "row_bcast:31", "row_newbcast:9",
    "row_mirror", "row_half_mirror", "row_ror:15", "quad_perm:[3,2,1,0]",
])  # fmt: skip
def test_dpp_controls_read_back(control: str) -> None:
    same(f"v_add_f32_dpp v0, -v1, |v2| {control} row_mask:0x7 bank_mask:0xf bound_ctrl:1", "gfx942")


def test_wide_dpp_broadcasts_only() -> None:
    same("v_mov_b64_dpp v[0:1], v[2:3] row_newbcast:3 row_mask:0xf bank_mask:0xf", "gfx942")
    code = assemble_one("gfx942", "v_mov_b64_dpp v[0:1], v[2:3] row_newbcast:3")
    inst = decode("gfx942", code)
    other = encode(type(inst)(**{**vars(inst), "fields": {**inst.fields, "DPP_CTRL": 0x101}}))
    with pytest.raises(DecodeError, match="DPP_CTRL"):
        decode("gfx942", other)


def test_names_of_earlier_tables_are_spelled_as_assemblers_do() -> None:
    same("v_fma_mix_f32 v0, |v1|, -v2, v3 op_sel_hi:[1,0,0]")
    same("v_accvgpr_write_b32 a3, v1")
