"""Python builders: every golden rebuilt, values, errors, and what inspection shows."""

from __future__ import annotations

import inspect
import math
import pickle
import pydoc
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from stuntgpu.isa import cdna3, rdna3, rdna4
from stuntgpu.isa.arch import ARCHES, arch
from stuntgpu.isa.asm import assemble_one
from stuntgpu.isa.asm_names import register_numbers
from stuntgpu.isa.build_checks import TAKEN, taken
from stuntgpu.isa.build_docs import KIND_WORDS
from stuntgpu.isa.build_plan import dual_names, instruction_names, plan
from stuntgpu.isa.build_python import pythonic
from stuntgpu.isa.build_values import Registers
from stuntgpu.isa.decode import DecodeError, decode
from stuntgpu.isa.inst import Inst
from stuntgpu.isa.operands import operands
from stuntgpu.isa.rdna3 import (
    abs_,
    bits,
    exec_,
    hwreg,
    lit,
    neg,
    null,
    off,
    s,
    sendmsg,
    swizzle,
    ttmp,
    v,
    vcc,
    vcc_lo,
)
from tests.isa.builders import MODULES, evaluate
from tests.isa.goldens import pairs, report

GFX = "gfx1100"


# ---------------------------------------------------------------- round trips


@pytest.mark.parametrize("name", sorted(ARCHES))
def test_golden_is_rebuilt_from_its_python_source(name: str) -> None:
    wrong = []
    for code, text in pairs(name):
        inst = decode(name, code)
        source = pythonic(inst)
        try:
            got = evaluate(name, source)
        except (TypeError, ValueError, AttributeError, SyntaxError, AssertionError) as e:
            wrong.append(f"{text}: {source}: {e}")
            continue
        if got != inst or bytes(got) != code or str(got) != text:
            wrong.append(f"{text}: {source} is {got}")
    assert not wrong, report(wrong)


@pytest.mark.parametrize("name", sorted(ARCHES))
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_what_decodes_and_assembles_is_rebuilt(name: str, data: st.DataObject) -> None:
    """Any fields an encoding has, not only those of goldens."""
    tables = arch(name).tables
    row = data.draw(st.sampled_from([r for r in tables.rows if tables.encodings[r.encoding].has("OP")]))
    encoding = tables.encodings[row.encoding]
    used = {o.field for o in row.operands}
    word = encoding.value | encoding.field("OP").insert(row.opcode)
    for f in encoding.fields:
        if f.name in used:
            word |= f.insert(data.draw(st.integers(0, (1 << f.bits) - 1)))
    code = word.to_bytes(encoding.bits // 8, "little") + bytes.fromhex("78563412" * 2)
    try:
        inst = decode(name, code)
        again = assemble_one(name, str(inst))
    except ValueError:
        assume(False)
    assume(again == bytes(inst))  # else there are bits that text does not show
    assert evaluate(name, pythonic(inst)) == inst, pythonic(inst)


@settings(max_examples=300, deadline=None)
@given(value=st.floats(width=32), first=st.integers(0, 255))
def test_float_becomes_the_bits_of_the_operand_type(value: float, first: int) -> None:
    inst = rdna3.v_mul_f32(v[first], value, v[1])
    (source,) = (o for o in operands(inst) if o.role == "S0")
    assert source.value == int(np.float32(value).view(np.uint32))


@settings(max_examples=300, deadline=None)
@given(value=st.integers(-(1 << 31), (1 << 32) - 1))
def test_integer_is_stored_as_the_assembler_stores_it(value: int) -> None:
    assert bytes(rdna3.s_add_u32(s[0], s[1], value)) == assemble_one(GFX, f"s_add_u32 s0, s1, {value}")


def test_instruction_pickles_compares_and_hashes() -> None:
    inst = rdna3.v_add_f32(v[0], v[1], 1.0)
    assert pickle.loads(pickle.dumps(inst)) == inst
    assert inst == Inst.from_text(GFX, "v_add_f32 v0, v1, 1.0") == Inst.from_bytes(GFX, bytes(inst))
    assert len({inst, rdna3.v_add_f32(v[0], v[1], 1.0), rdna3.v_add_f32(v[0], v[1], 2.0)}) == 2
    assert rdna3.s_nop(0) != rdna4.s_nop(0)
    pair = rdna3.dual(rdna3.v_mul_f32(v[0], v[1], v[2]), rdna3.v_mov_b32(v[3], 0))
    assert pickle.loads(pickle.dumps(pair)) == pair
    assert pair.x is not None
    with pytest.raises(ValueError, match="half of a pair"):
        bytes(pair.x)


def test_builders_and_registers_pickle() -> None:
    for x in (rdna3.v_add_f32, rdna3.v_dual_mul_f32, v[1].h, -v[0], exec_, lit(5), hwreg("HW_REG_MODE"), rdna3.Label("x") - rdna3.Label("y")):
        assert pickle.loads(pickle.dumps(x)) == x


# ---------------------------------------------------------------- what calls give


@pytest.mark.parametrize(("made", "text"), [
    (lambda: rdna3.v_add_f32(v[0], 1.0, v[1]), "v_add_f32_e32 v0, 1.0, v1"),
    (lambda: rdna3.v_add_f32(v[0], v[1], 1.0), "v_add_f32_e64 v0, v1, 1.0"),
    (lambda: rdna3.v_add_f32_e64(v[0], 1.0, v[1]), "v_add_f32_e64 v0, 1.0, v1"),
    (lambda: rdna3.v_add_f32(v[0], -v[1], abs(v[2]), clamp=True, omod=2), "v_add_f32_e64 v0, -v1, |v2| clamp mul:2"),
    (lambda: rdna3.v_add_f32(v[0], -abs(v[1]), neg(1.0), omod=0.5), "v_add_f32_e64 v0, -|v1|, neg(1.0) div:2"),
    (lambda: rdna3.v_add_f32(v[0], v[1], v[2], quad_perm=[0, 1, 2, 3], bound_ctrl=True),
     "v_add_f32_dpp v0, v1, v2 quad_perm:[0,1,2,3] row_mask:0xf bank_mask:0xf bound_ctrl:1"),
    (lambda: rdna3.v_add_f32(v[0], v[1], v[2], row_shr=3, row_mask=3),
     "v_add_f32_dpp v0, v1, v2 row_shr:3 row_mask:0x3 bank_mask:0xf"),
    (lambda: rdna3.v_add_f32_e64_dpp(v[0], -v[1], v[2], row_mirror=True, clamp=True),
     "v_add_f32_e64_dpp v0, -v1, v2 clamp row_mirror row_mask:0xf bank_mask:0xf"),
    (lambda: rdna3.v_mov_b32(v[0], v[1], dpp8=range(8)), "v_mov_b32_dpp v0, v1 dpp8:[0,1,2,3,4,5,6,7]"),
    (lambda: rdna3.v_add_f16(v[0].h, v[1].l, 0.5), "v_add_f16_e64 v0.h, v1.l, 0.5 op_sel:[0,0,1]"),
    (lambda: rdna3.v_pk_fma_f16(v[0], v[1], v[2], v[3], op_sel=[1, 0, 0], neg_lo=(0, 1, 0)),
     "v_pk_fma_f16 v0, v1, v2, v3 op_sel:[1,0,0] neg_lo:[0,1,0]"),
    (lambda: rdna3.v_mov_b32(v[0], lit(0x3F800000)), "v_mov_b32_e32 v0, lit(0x3f800000)"),
    (lambda: rdna3.v_add_nc_u32(v[0], bits(1.0), v[1]), "v_add_nc_u32_e32 v0, 1.0, v1"),
    (lambda: rdna3.v_mov_b32(v[0], 1.5), "v_mov_b32_e32 v0, 0x3fc00000"),
    (lambda: rdna3.v_add_f32(v[0], np.float32(0.1), v[1]), "v_add_f32_e32 v0, 0x3dcccccd, v1"),
    (lambda: rdna3.s_mov_b32(s[np.uint8(3).item()], np.int64(-5)), "s_mov_b32 s3, -5"),
    (lambda: rdna3.v_add_f16(v[0].l, 1e-3, v[1].l), "v_add_f16_e32 v0.l, 0x1419, v1.l"),
    (lambda: rdna3.v_max_f16(v[0].l, math.inf, v[1].l), "v_max_f16_e32 v0.l, 0x7c00, v1.l"),
    (lambda: rdna3.v_max_f64(v[0:1], -math.inf, v[2:3]), "v_max_f64 v[0:1], 0xfff00000, v[2:3]"),
    (lambda: rdna3.v_add_f64(v[0:1], v[2:3], 1.5), "v_add_f64 v[0:1], v[2:3], 0x3ff80000"),
    (lambda: rdna3.v_add_f32(v[0], -0.0, v[1]), "v_add_f32_e32 v0, 0x80000000, v1"),
    (lambda: rdna3.s_mov_b64(exec_, -1), "s_mov_b64 exec, -1"),
    (lambda: rdna3.s_load_b64(s[0:1], s[2:3], 0x10), "s_load_b64 s[0:1], s[2:3], 0x10"),
    (lambda: rdna3.s_load_b32(s[0], s[2:3], null), "s_load_b32 s0, s[2:3], null"),
    (lambda: rdna3.s_mov_b32(ttmp[1], s[1]), "s_mov_b32 ttmp1, s1"),
    (lambda: rdna3.v_cmp_lt_f32(vcc_lo, v[0], v[1]), "v_cmp_lt_f32_e32 vcc_lo, v0, v1"),
    (lambda: rdna3.v_add_co_ci_u32(v[0], s[0], v[1], v[2], s[1]), "v_add_co_ci_u32_e64 v0, s0, v1, v2, s1"),
    (lambda: rdna3.global_load_b32(v[1], v[0], s[2:3], offset=-16, glc=True),
     "global_load_b32 v1, v0, s[2:3] offset:-16 glc"),
    (lambda: rdna3.global_load_dword(v[1], v[2:3], off), "global_load_b32 v1, v[2:3], off"),
    (lambda: rdna3.global_atomic_add_u32(v[0], v[1], s[0:1]), "global_atomic_add_u32 v0, v1, s[0:1]"),
    (lambda: rdna3.global_atomic_add_u32(v[5], v[0], v[1], s[0:1], glc=True),
     "global_atomic_add_u32 v5, v0, v1, s[0:1] glc"),
    (lambda: rdna3.buffer_load_b32(v[0], off, s[0:3], 0, offset=4), "buffer_load_b32 v0, off, s[0:3], 0 offset:4"),
    (lambda: rdna3.tbuffer_load_format_x(v[0], v[1], s[0:3], 0, format="BUF_FMT_32_FLOAT", idxen=True),
     "tbuffer_load_format_x v0, v1, s[0:3], 0 format:[BUF_FMT_32_FLOAT] idxen"),
    (lambda: rdna3.image_load(v[0:3], v[0:1], s[0:7], dmask=15, dim="2D", unorm=True),
     "image_load v[0:3], v[0:1], s[0:7] dmask:0xf dim:SQ_RSRC_IMG_2D unorm"),
    (lambda: rdna3.ds_swizzle_b32(v[0], v[1], offset=swizzle("BITMASK_PERM", "00p11")),
     'ds_swizzle_b32 v0, v1 offset:swizzle(BITMASK_PERM,"00p11")'),
    (lambda: rdna3.ds_load_2addr_b32(v[0:1], v[2], offset0=1, offset1=2), "ds_load_2addr_b32 v[0:1], v2 offset0:1 offset1:2"),
    (lambda: rdna3.s_waitcnt(vmcnt=0, lgkmcnt=0), "s_waitcnt vmcnt(0) lgkmcnt(0)"),
    (lambda: rdna3.s_waitcnt(0), "s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)"),
    (lambda: rdna3.s_waitcnt_depctr(va_vdst=0), "s_waitcnt_depctr depctr_va_vdst(0)"),
    (lambda: rdna3.s_delay_alu(instid0="VALU_DEP_1", instskip="NEXT", instid1="SALU_CYCLE_1"),
     "s_delay_alu instid0(VALU_DEP_1) | instskip(NEXT) | instid1(SALU_CYCLE_1)"),
    (lambda: rdna3.s_sendmsg("MSG_DEALLOC_VGPRS"), "s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)"),
    (lambda: rdna3.s_sendmsg(sendmsg("MSG_INTERRUPT")), "s_sendmsg sendmsg(MSG_INTERRUPT)"),
    (lambda: rdna3.s_getreg_b32(s[0], "HW_REG_MODE"), "s_getreg_b32 s0, hwreg(HW_REG_MODE)"),
    (lambda: rdna3.s_setreg_imm32_b32(hwreg("HW_REG_MODE", 4, 2), 3), "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3"),
    (lambda: rdna3.exp("mrt0", v[0], v[1], off, off, done=True), "exp mrt0 v0, v1, off, off done"),
    (lambda: rdna3.lds_param_load(v[0], "attr3.y"), "lds_param_load v0, attr3.y wait_vdst:0"),
    (lambda: rdna3.s_version("UC_VERSION_GFX11|UC_VERSION_W32_BIT"), "s_version UC_VERSION_GFX11|UC_VERSION_W32_BIT"),
    (lambda: rdna4.global_load_b32(v[0], v[1:2], off, th="TH_LOAD_NT", scope="SCOPE_DEV"),
     "global_load_b32 v0, v[1:2], off th:TH_LOAD_NT scope:SCOPE_DEV"),
    (lambda: rdna4.image_sample(v[0:3], [v[0], v[1]], s[0:7], s[8:11], dmask=15, dim="2D"),
     "image_sample v[0:3], [v0, v1], s[0:7], s[8:11] dmask:0xf dim:SQ_RSRC_IMG_2D"),
    (lambda: rdna4.s_wait_loadcnt(0), "s_wait_loadcnt 0x0"),
    (lambda: cdna3.v_add_f32(v[0], abs(v[1]), v[2], src0_sel="BYTE_1", dst_sel="WORD_1"),
     "v_add_f32_sdwa v0, |v1|, v2 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_1 src1_sel:DWORD"),
    (lambda: cdna3.v_add_u32_sdwa(v[0], cdna3.sext(v[1]), v[2]),
     "v_add_u32_sdwa v0, sext(v1), v2 dst_sel:DWORD dst_unused:UNUSED_PRESERVE src0_sel:DWORD src1_sel:DWORD"),
    (lambda: cdna3.v_mfma_f32_32x32x8_f16(cdna3.a[0:15], v[0:1], v[2:3], cdna3.a[0:15], cbsz=1),
     "v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15] cbsz:1"),
    (lambda: cdna3.global_load_dword(cdna3.a[1], v[0], s[2:3], sc0=True, nt=True), "global_load_dword a1, v0, s[2:3] sc0 nt"),
    (lambda: cdna3.s_set_gpr_idx_on(s[0], cdna3.gpr_idx("SRC0", "DST")), "s_set_gpr_idx_on s0, gpr_idx(SRC0,DST)"),
    (lambda: rdna3.v_dual_mul_f32(v[0], v[1], 2.0) & rdna3.v_dual_mov_b32(v[3], 0), None),
    (lambda: rdna3.v_mul_f32(v[0], v[1], v[2]) & rdna3.v_add_f32(v[3], v[4], v[5]),
     "v_dual_mul_f32 v0, v1, v2 :: v_dual_add_f32 v3, v4, v5"),
    (lambda: rdna3.dual(rdna3.v_dual_cndmask_b32(v[0], v[1], v[2]), rdna3.v_mov_b32(v[3], 7)),
     "v_dual_cndmask_b32 v0, v1, v2 :: v_dual_mov_b32 v3, 7"),
])  # fmt: skip
def test_call_gives_the_text(made: object, text: str | None) -> None:
    assert callable(made)
    if text is None:
        with pytest.raises(ValueError, match="v_dual_mul_f32"):
            made()
        return
    inst = made()
    assert str(inst) == text
    assert bytes(inst) == assemble_one(inst.arch, text)


def test_keywords_that_are_false_or_none_say_nothing() -> None:
    plain = rdna3.v_add_f32(v[0], v[1], v[2])
    assert rdna3.v_add_f32(v[0], v[1], v[2], clamp=False, omod=None, mul=None, bound_ctrl=False) == plain


# ---------------------------------------------------------------- registers


def test_ranges_include_their_last_register() -> None:
    assert repr(v[4:7]) == "v[4:7]"
    assert len(v[4:7]) == 4
    assert v[4:4] == v[4]
    assert list(v[4:6]) == [v[4], v[5], v[6]]
    assert v[4:7][3] == v[7]


def test_registers_are_values_that_print_as_text() -> None:
    shown = [v[0], v[1].h, s[0:1], ttmp[3], cdna3.a[0:3], vcc, exec_, -v[1], abs(v[1]), -abs(v[2:3]), neg(1.0), abs_(-2)]
    assert [repr(x) for x in shown] == [
        "v0", "v1.h", "s[0:1]", "ttmp3", "a[0:3]", "vcc", "exec", "-v1", "|v1|", "-|v[2:3]|", "neg(1.0)", "|-2|",
    ]  # fmt: skip
    assert neg(-v[1]) == v[1]
    assert abs(-v[1]) == abs(v[1])
    assert rdna3.v[3] == cdna3.v[3]
    assert {v[1], v[1], s[1]} == {s[1], v[1]}
    with pytest.raises(AttributeError):
        v[0].first = 3  # type: ignore[misc]


@pytest.mark.parametrize(("index", "message"), [
    ("v[256]", "there are v0 to v255"), ("s[106]", "s0 to s105"), ("cdna3.s[102]", "s0 to s101"), ("v[-1]", "no register v-1"),
    ("v[3:2]", "backwards"), ("v[:2]", "first:last"), ("v[0:4:2]", "first:last"), ("v[0:1][2]", "no number 2"),
])  # fmt: skip
def test_register_that_does_not_exist_is_an_index_error(index: str, message: str) -> None:
    with pytest.raises(IndexError, match=message):
        eval(index)


@pytest.mark.parametrize(("source", "message"), [
    ("v[1.5]", "no integer"), ("v[True]", "no integer"), ("s[0].h", "no halves"), ("v[0:1].l", "no halves"), ("neg('x')", "no sign"),
])  # fmt: skip
def test_operand_that_makes_no_sense_is_a_type_error(source: str, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        eval(source)


@pytest.mark.parametrize("name", sorted(ARCHES))
def test_every_named_register_of_the_assembler_has_a_name(name: str) -> None:
    missing = {n for n in register_numbers(name) if f"src_{n}" not in register_numbers(name)}
    missing -= {"exec_" if n == "exec" else n for n in missing if hasattr(MODULES[name], f"{n}_" if n == "exec" else n)}
    assert missing - {"exec", "null"} == set()


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(("source", "message"), [
    ("rdna3.v_add_f32(v[0], v[1])", r"v_add_f32 of gfx1100: takes \(vdst, src0, src1\), got 2 operand"),
    ("rdna3.global_atomic_add_u32(v[0])", r"\(addr, data, saddr\) or \(vdst, addr, data, saddr\)"),
    ("rdna3.v_add_f32(s[0], v[1], v[2])", r"operand 1 \(vdst\) is s0: expected a VGPR"),
    ("rdna3.v_mov_b32(v[0], off)", r"operand 2 \(src0\) is off"),
    ("rdna3.s_mov_b32(s[0], v[1])", r"operand 2 \(ssrc0\) is v1: expected a scalar register or a constant"),
    ("rdna3.v_add_nc_u32(v[0], v[1], 1.0)", r"a float for an integer operand \(u32\); bits\(1.0\)"),
    ("rdna3.v_pk_add_u16(v[0], v[1], 1.0)", "a float for an integer operand"),
    ("rdna3.s_nop(1.0)", "a float for an integer operand"),
    ("rdna3.v_mov_b32(v[0], 's1')", "got text"),
    ("rdna3.v_mov_b32(v[0], True)", "a bool is no operand"),
    ("rdna3.v_mov_b32(v[0], None)", "got NoneType"),
    ("rdna3.v_mov_b32_e32(v[0], -v[1])", "takes no sign"),
    ("rdna3.v_pk_add_f16(v[0], -v[1], v[2])", "neg_lo and neg_hi"),
    ("rdna3.v_add_f32(v[0], v[1], v[2], clmp=True)", "no keyword 'clmp'; did you mean clamp"),
    ("rdna3.v_add_f32_e32(v[0], v[1], v[2], clamp=True)", "no keyword 'clamp'; it takes none"),
    ("rdna3.v_add_f32(v[0], v[1], v[2], clamp=3)", "clamp=3: expected True or False"),
    ("rdna3.ds_load_b32(v[0], v[1], offset='x')", "offset='x': expected int"),
    ("rdna3.v_add_f32(v[0], v[1], v[2], op_sel=1)", "op_sel=1: expected Sequence"),
    ("rdna3.s_waitcnt(vmcnt=[1])", r"vmcnt=\[1\]: expected an integer"),
])  # fmt: skip
def test_wrong_kind_of_value_is_a_type_error(source: str, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        eval(source)


@pytest.mark.parametrize(("source", "message"), [
    ("rdna3.v_add_f32(v[0], v[1], v[2:3])", r"operand 3 \(src1\) is v\[2:3\]: expected a VGPR"),
    ("rdna3.s_mov_b64(s[1:2], 0)", r"operand 1 \(sdst\) is s\[1:2\]: first register must be a multiple of 2"),
    ("rdna3.s_mov_b64(s[0:1], 0x123456789)", r"operand 2 .* is 4886718345: expected a constant of 32 bits"),
    ("rdna3.s_mov_b64(s[0:1], 1.5)", "untyped 64-bit operand"),
    ("rdna3.v_add_f64(v[0:1], v[2:3], 1.1)", r"high 32 bits of the float only; lit\(0x3ff19999\)"),
    ("rdna3.v_add_f16(v[0].l, 1e9, v[1].l)", "does not fit"),
    ("rdna3.v_add_f16(v[0].l, v[128].l, v[1].l, dpp8=range(8))", None),
    ("rdna3.v_fma_f32(v[0], s[0], s[1], s[2])", "reads 3 scalar registers or literals; at most 2"),
    ("rdna3.v_add_f32(v[0], 0x1234567, 0x7654321)", "second literal"),
    ("rdna3.ds_load_b32(v[0], v[1], offset=65536)", "offset=65536: expected an offset from 0 to 65535"),
    ("rdna3.s_waitcnt(vmcnt=64)", "vmcnt=64: expected a count for vmcnt from 0 to 63"),
    ("rdna3.s_delay_alu(instid0='VALU_DEP_9')", "instid0='VALU_DEP_9': expected one of"),
    ("rdna3.global_load_b32(v[0], v[1], off)", r"operand 2 \(addr\) is v1: the address is 2 VGPR"),
    ("rdna3.v_add_f32(v[0], v[1], v[2], omod=3)", "omod is one of 1, 2, 4, 0.5, not 3"),
    ("rdna3.image_load(v[0], v[0], s[0:7], dmask=1, dim='7D')", "dim='7D': expected a dimension"),
    ("rdna3.s_sendmsg('MSG_NOTHING')", "expected a message"),
    ("rdna3.v_xor_b32(v[0], v[1], v[2]) & rdna3.v_mov_b32(v[1], 0)", "has no dual form"),
    ("rdna3.v_mul_f32(v[0], v[1], v[2]) & rdna3.v_mul_f32(v[2], v[4], v[3])", "even, the other odd"),
    ("rdna3.v_mul_f32(v[0], v[1], v[2]) & rdna4.v_mul_f32(v[3], v[4], v[5])", "v5 of gfx1201"),
    ("lit(-1)", "unsigned"),
])  # fmt: skip
def test_value_that_does_not_fit_is_a_value_error(source: str, message: str | None) -> None:
    if message is None:  # the long form of DPP reaches all registers
        assert str(eval(source)).startswith("v_add_f16_e64_dpp")
        return
    with pytest.raises(ValueError, match=message):
        eval(source)


@pytest.mark.parametrize(("name", "message"), [
    ("v_addd_f32", "did you mean v_add_f32"), ("v_dual_mull_f32", "v_dual_mul_f32"), ("v_add_f32_e65", "v_add_f32"),
    ("__wrapped__", "no attribute"), ("V_ADD_F32", "unknown instruction"),
])  # fmt: skip
def test_unknown_name_is_an_attribute_error_with_the_nearest(name: str, message: str) -> None:
    with pytest.raises(AttributeError, match=message):
        getattr(rdna3, name)


# ---------------------------------------------------------------- inspection


def test_signature_has_operands_then_keywords() -> None:
    shape = inspect.signature(rdna3.v_add_f32)
    assert list(shape.parameters)[:3] == ["vdst", "src0", "src1"]
    assert shape.parameters["clamp"].default is False
    assert shape.parameters["omod"].annotation == "float | None"
    assert {p.kind for p in list(shape.parameters.values())[3:]} == {inspect.Parameter.KEYWORD_ONLY}


def test_help_tells_operands_and_encodings() -> None:
    text = pydoc.plain(pydoc.render_doc(rdna3.v_add_f32))
    for part in ("V_ADD_F32 of gfx1100", "src1     VGPR, scalar register, constant", "32 bits f32, read", "v_add_f32_e64 ",
                 "VOP3, 8 bytes", "v_add_f32_dpp", "bound_ctrl"):  # fmt: skip
        assert part in text
    assert "half of a dual" in pydoc.render_doc(rdna3.v_dual_mul_f32)
    assert "AccVGPR" in (cdna3.global_load_dword.__doc__ or "")


@pytest.mark.parametrize("name", sorted(ARCHES))
def test_every_name_the_module_lists_is_a_documented_builder(name: str) -> None:
    module = MODULES[name]
    listed = set(dir(module))
    assert listed.issuperset(instruction_names(name))
    for mnemonic in instruction_names(name):
        made = getattr(module, mnemonic)
        assert made.__name__ == mnemonic
        assert made.__doc__
        assert inspect.signature(made)
    assert {n for n in module.__annotations__ if n.startswith("v_dual_")} == set(dual_names(name))


@pytest.mark.parametrize("name", sorted(ARCHES))
def test_every_operand_kind_has_a_description(name: str) -> None:
    words = {word for kinds in TAKEN.values() for word in kinds.split()}
    assert words <= set(KIND_WORDS)
    for mnemonic in instruction_names(name):
        if mnemonic not in dual_names(name):
            for choice in plan(name, mnemonic).choices:
                assert all(map(taken, choice.candidate.slots)), mnemonic


def test_module_is_light_to_import() -> None:
    code = "import sys, stuntgpu.isa.rdna3; print(*sorted(m for m in sys.modules if m.startswith('stuntgpu.isa')))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout
    assert not {"stuntgpu.isa.asm", "stuntgpu.isa.arch", "stuntgpu.isa.decode", "numpy"} & set(loaded.split())


def test_building_takes_microseconds() -> None:
    rdna3.v_add_f32(v[0], v[1], v[2])
    start = time.perf_counter()
    for _ in range(300):
        rdna3.v_add_f32(v[0], v[1], v[2])
    assert time.perf_counter() - start < 0.3  # 10 ms in practice


def test_source_takes_a_prefix() -> None:
    inst = rdna3.v_mul_f32(v[0], v[1], v[2]) & rdna3.v_mov_b32(v[3], 1.0)
    assert pythonic(inst, "rdna3.") == "rdna3.v_dual_mul_f32(v[0], v[1], v[2]) & rdna3.v_dual_mov_b32(v[3], 1.0)"


@settings(max_examples=200, deadline=None)
@given(code=st.binary(min_size=20, max_size=20), name=st.sampled_from(sorted(ARCHES)))
def test_any_bytes_that_decode_have_a_source(code: bytes, name: str) -> None:
    try:
        inst = decode(name, code)
    except DecodeError:
        return
    assert pythonic(inst).startswith(str(inst).split()[0])


def test_registers_type_is_shared() -> None:
    assert isinstance(v[0], Registers)
