"""gfx1100 (RDNA3): rows in place of missing, mistaken or unwieldy text."""

from __future__ import annotations

from stuntgpu.isa.errata import bodies, bodies_minmax, formats
from stuntgpu.isa.errata.bodies import F16, F32, F64
from stuntgpu.isa.errata.common import FACTS, MANUAL, Erratum, Own, Same, Unbuilt

TESTS = "tests/isa/test_semantics.py"
REWRITTEN = "tests/isa/test_semantics_tables.py::test_golden_rewritten_rows_agree_with_the_text"

_BRANCHES = {
    "S_BRANCH": "", "S_CBRANCH_SCC0": "(not SCC:1)", "S_CBRANCH_SCC1": "SCC:1",
    "S_CBRANCH_VCCZ": "VCCZ:1", "S_CBRANCH_VCCNZ": "(not VCCZ:1)",
    "S_CBRANCH_EXECZ": "EXECZ:1", "S_CBRANCH_EXECNZ": "(not EXECZ:1)",
}
_DEBUG = {
    "S_CBRANCH_CDBGSYS": "(extract:1 (hwreg 2:32) 21:32)",
    "S_CBRANCH_CDBGUSER": "(extract:1 (hwreg 2:32) 20:32)",
    "S_CBRANCH_CDBGSYS_OR_USER": "(ne (extract:2 (hwreg 2:32) 20:32) 0:2)",
    "S_CBRANCH_CDBGSYS_AND_USER": "(eq (extract:2 (hwreg 2:32) 20:32) 3:2)",
}


def _control() -> tuple[Erratum | Own, ...]:
    return (
        *(
            Erratum((name,), "multiplies the 16-bit offset by 4 in 16 bits", "the offset reaches 18 bits",
                    "llvm-mc: labels up to +-128 KiB assemble", bodies.branch(cond),
                    f"{TESTS}::test_branch_offset_is_not_cut_to_16_bits")
            for name, cond in _BRANCHES.items()
        ),
        *(Own((name,), "the debug bits are bits 20 and 21 of STATUS", bodies.branch(cond))
          for name, cond in _DEBUG.items()),
        Erratum(("S_CALL_B64",), "as the branches", "as the branches", "llvm-mc",
                f"(set D0 (add PC:64 4:64)) (set PC {bodies.TARGET})",
                f"{TESTS}::test_branch_offset_is_not_cut_to_16_bits"),
        Own(("S_ENDPGM", "S_ENDPGM_SAVED", "S_ENDPGM_ORDERED_PS_DONE"), MANUAL, "(do endpgm)"),
        Own(("S_BARRIER",), MANUAL, "(do barrier)"),
        Own(("S_SLEEP",), MANUAL, "(do sleep)"),
        Own(("S_SETPRIO",), MANUAL, "(do priority (zext:32 (trunc:2 SIMM16:16)))"),
        Own(("S_TRAP",), "entry into the handler is the executor's business", "(do trap (zext:32 (trunc:8 SIMM16:16)))"),
        Own(("S_SENDMSG",), MANUAL, "(do sendmsg SIMM16:16)"),
        Own(("S_SENDMSGHALT",), MANUAL, "(do sendmsg SIMM16:16) (do halt)"),
        Own(("S_SETHALT",), "bit 0 of SIMM16: halt; clearing it again is for the host",
            "(if (trunc:1 SIMM16:16) ((do halt)))"),
        Own(("S_CODE_END",), "padding after the program: never meant to be reached", "(do illegal)"),
        Own(
            (
                "S_NOP", "S_WAITCNT", "S_WAITCNT_VMCNT", "S_WAITCNT_EXPCNT", "S_WAITCNT_LGKMCNT",
                "S_WAITCNT_DEPCTR", "S_WAIT_IDLE", "S_WAIT_EVENT", "S_DELAY_ALU", "S_CLAUSE", 
                "S_SET_INST_PREFETCH_DISTANCE", "S_WAKEUP", "S_INCPERFLEVEL", "S_DECPERFLEVEL", "S_TTRACEDATA",
                "S_TTRACEDATA_IMM", "S_ICACHE_INV", "S_ATC_PROBE", "S_ATC_PROBE_BUFFER", "S_VERSION", "V_NOP",
                "V_PIPEFLUSH", "DS_NOP",
            ),
            "waits, hints and trace marks: execution is in order and always complete", "(do nop)",
        ),
        Own(("BUFFER_GL0_INV", "BUFFER_GL1_INV", "S_GL1_INV", "S_DCACHE_INV"), "caches are not modelled, their order is",
            "(do memory_barrier)"),
        Own(("S_WAITCNT_VSCNT",), "stores that are complete come before what follows, for everyone", "(do memory_barrier)"),
        Own(("S_ROUND_MODE",), "MODE[3:0]", bodies.set_mode(0)),
        Own(("S_DENORM_MODE",), "MODE[7:4]", bodies.set_mode(4)),
        Erratum(("S_SETREG_B32",), "shifts the value but not the mask", "replaces `size` bits from `offset` on",
                MANUAL, bodies.set_register("S0:32"), f"{TESTS}::test_setreg_replaces_only_its_field"),
        Erratum(("S_SETREG_IMM32_B32",), "as S_SETREG_B32", "as S_SETREG_B32", MANUAL, bodies.set_register("SIMM32:32"),
                f"{TESTS}::test_setreg_replaces_only_its_field"),
        Own(("S_SUBVECTOR_LOOP_BEGIN",), "low half of the wave first, the high half kept in SDST",
            f"(set PC (select:64 (eq EXEC:64 0:64) {bodies.TARGET} {bodies.NEXT}))"
            " (if (ne EXEC:64 0:64) ((if (eq (trunc:32 EXEC:64) 0:32) ((set D0 0:32))"
            " ((set D0 (extract:32 EXEC:64 32:32)) (set EXEC (zext:64 (trunc:32 EXEC:64)))))))"),
        Own(("S_SUBVECTOR_LOOP_END",), "after the low half the high half, then EXEC is whole again",
            "(set upper (ne (extract:32 EXEC:64 32:32) 0:32)) (set again (and (not upper:1) (ne D0:32 0:32)))"
            f" (set PC (select:64 again:1 {bodies.TARGET} {bodies.NEXT})) (set low (trunc:32 EXEC:64))"
            " (if upper:1 ((set EXEC (insert EXEC:64 0:32 D0:32))))"
            " (if again:1 ((set EXEC (shl (zext:64 D0:32) 32:32)) (set D0 low:32)))"),
    )


def _floats() -> tuple[Erratum | Own, ...]:
    out: list[Erratum | Own] = []
    for f, scale, near, tiny, under in ((F32, 64, 96, 23, -150), (F64, 128, 768, 52, -1075)):
        name = f.name.upper()
        out += [
            Erratum((f"V_DIV_SCALE_{name}",), "leaves D0 alone on some paths, writes a scalar VCC",
                    "every path returns a value; VCC is this lane's bit, set for NaN and for what only one operand is scaled for;"
                    " a huge denominator is scaled down", bodies.DIVIDES, bodies.div_scale(f, scale, near, tiny), f"{TESTS}::test_div_scale_scales_and_marks"),
            Erratum((f"V_DIV_FMAS_{name}",), "scales by a fixed power of two",
                    "up or down, by the size of S2, with the only rounding after it", bodies.DIVIDES, bodies.div_fmas(f, scale),
                    f"{TESTS}::test_div_fmas_scales_by_the_size_of_the_addend"),
            Erratum((f"V_DIV_FIXUP_{name}",), "keeps a NaN estimate", "infinity with the sign of the result",
                    FACTS, bodies.div_fixup(f, under), f"{TESTS}::test_div_fixup_special_cases"),
        ]
    out.append(Erratum(("V_DIV_FIXUP_F16",), "keeps a NaN estimate", "infinity with the sign of the result",
                       FACTS, bodies.div_fixup(F16, None), f"{TESTS}::test_div_fixup_nan_estimate_is_infinity"))
    for f in (F16, F32, F64):
        name, mask = f.name.upper(), 16 if f is F16 else 32
        for op, ir_op in (("CEIL", "ceil"), ("FLOOR", "floor"), ("RNDNE", "rndne"), ("FRACT", "fract")):
            out.append(Erratum((f"V_{op}_{name}",), "arithmetic that rounds and flushes on the way",
                               "one exact operation; FRACT stays below 1", FACTS, bodies.unary(f, ir_op),
                               f"{TESTS}::test_rounding_instructions_are_one_operation"))
        out.append(Erratum((f"V_FREXP_EXP_I{16 if f is F16 else 32}_{name}",), "uses the exponent field as it is",
                           "0 for zero; denormals count from their top bit", "LLVM makes frexp() of it without repairs",
                           bodies.frexp_exponent(f, 16 if f is F16 else 32),
                           f"{TESTS}::test_frexp_exponent_of_zero_and_denormals"))
        for op in ("MIN", "MAX"):
            out.append(bodies_minmax.erratum(f"V_{op}_{name}", bodies_minmax.min_max(f, op == "MIN")))
        for prefix, target in (("V_CMP", "D0"), ("V_CMPX", "EXEC")):
            out.append(Erratum((f"{prefix}_CLASS_{name}",), "tests denormals with a comparison that may flush them",
                               "classes look at the bits", FACTS, bodies.classify(f, target, mask),
                               f"{TESTS}::test_class_sees_denormals"))
    return tuple(out)


_FMAC_DX9 = "(set D0 (select:32 (or (feq.f32 S0:32 0:32) (feq.f32 S1:32 0:32)) D0:32 (fma.f32 S0:32 S1:32 D0:32)))"
_INTERP_RTZ = (
    "(set D0 (f32_to_f16!rtz (fma.f32 (f16_to_f32 (trunc:16 (vgpr SRC0:32 (add (and LANE:32 0xfffffffc:32) 2:32))))"
    " S1:32 S2:32)))"
)


def _vector() -> tuple[Erratum | Own, ...]:
    return (
        Erratum(("V_FMAC_DX9_ZERO_F32",), "reads S2, which it has not", "the addend is D0", MANUAL, _FMAC_DX9,
                f"{TESTS}::test_fmac_dx9_zero_keeps_the_accumulator"),
        Erratum(("V_TRIG_PREOP_F64",), "needs 1201-bit arithmetic", "one operation", FACTS,
                "(set D0 (trig_preop.f64 S0:64 S1:32))", f"{TESTS}::test_trig_preop_first_segment_is_two_over_pi"),
        Erratum(("V_CVT_OFF_F32_I4",), "does not fill its table", "entry n is the signed nibble / 16", FACTS,
                "(set D0 (fmul.f32 (i32_to_f32 (sext:32 (trunc:4 S0:32))) 0x3d800000:32))",
                f"{TESTS}::test_cvt_off_table"),
        Erratum(("V_INTERP_P2_RTZ_F16_F32",), "writes f32", "writes f16, rounded toward zero", MANUAL, _INTERP_RTZ,
                f"{TESTS}::test_interp_rtz_writes_half"),
        Erratum(("V_CVT_PK_U8_F32",), "rounds toward zero", "rounds to nearest even", bodies.NEAREST_BYTE,
                bodies.pack_u8("S2:32"), f"{TESTS}::test_conversion_to_a_byte_rounds_to_nearest"),
        Erratum(("V_CVT_NEAREST_I32_F32", "V_CVT_RPI_I32_F32"), "adds a half, which rounds as MODE says",
                "exact, or an odd integer from 2 ** 23 on would become another", "the notes: half a unit, MODE ignored",
                bodies.NEAREST_INTEGER, f"{TESTS}::test_conversion_to_the_nearest_integer_is_exact"),
        Erratum(("V_LERP_U8",), "adds bytes in eight bits", "the carry takes part in the shift", MANUAL,
                bodies.lerp_u8(), f"{TESTS}::test_lerp_keeps_the_carry"),
        Erratum(("V_PERM_B32",), "a lambda over an array", "the same, as bit fields", "rewritten",
                bodies.perm_b32(), f"{TESTS}::test_perm_selectors"),
        Erratum(("V_FMA_MIX_F32",), "ignores NEG and ABS", "NEG_HI is ABS", FACTS,
                bodies.fma_mix("(set D0 FMA)"), f"{TESTS}::test_fma_mix_takes_halves_abs_and_neg"),
        Erratum(("V_FMA_MIXLO_F16", "V_FMA_MIXHI_F16"), "ignores NEG and ABS; names the half of D0",
                "NEG_HI is ABS; the operand list says which half D0 is", FACTS,
                bodies.fma_mix("(set D0 (f32_to_f16 FMA))"), f"{TESTS}::test_fma_mix_takes_halves_abs_and_neg"),
        Own(("V_READFIRSTLANE_B32",), "the text in one branch: EXEC above bit 31 is 0 in wave32",
            "(set D0 (vgpr SRC0:32 (select:32 (eq EXEC:64 0:64) 0:32 (trunc:32 (ctz EXEC:64)))))"),
        *(Erratum((f"V_PERMLANE{x}16_B32",), "reads inactive lanes", "only with OP_SEL[0]; else as DPP's bound control",
                  "LLVM: the intrinsic takes the old value and both bits", bodies.permlane(x == "X"),
                  f"{TESTS}::test_permlane16_inactive_source") for x in ("", "X")),
        Own(("V_DUAL_DOT2ACC_F32_BF16",), "as V_DOT2_F32_BF16 on D0", bodies.dot2_acc("bf16_to_f32", "D0:32")),
    )


_WRAPS = "wraps"
_SATURATES = "with CLAMP the result saturates"


def _saturating() -> tuple[Erratum, ...]:
    test = f"{TESTS}::test_clamp_saturates_integers"
    rows = {
        "V_ADD_NC_U32": bodies.add_u(32), "V_SUB_NC_U32": bodies.sub_u(32),
        "V_SUBREV_NC_U32": bodies.sub_u(32, "S1", "S0"),
        "V_ADD_CO_U32": bodies.add_carry(False), "V_ADD_CO_CI_U32": bodies.add_carry(True),
        "V_SUB_CO_U32": bodies.sub_borrow("S0", "S1", False), "V_SUB_CO_CI_U32": bodies.sub_borrow("S0", "S1", True),
        "V_SUBREV_CO_U32": bodies.sub_borrow("S1", "S0", False),
        "V_SUBREV_CO_CI_U32": bodies.sub_borrow("S1", "S0", True),
        "V_ADD_NC_U16": bodies.add_u(16), "V_SUB_NC_U16": bodies.sub_u(16),
        "V_ADD_NC_I32": bodies.add_i(32), "V_SUB_NC_I32": bodies.sub_i(32),
        "V_ADD_NC_I16": bodies.add_i(16), "V_SUB_NC_I16": bodies.sub_i(16),
        "V_MAD_U16": bodies.mad(16, "zext", "S0:16", "S1:16", "S2:16"),
        "V_MAD_I16": bodies.mad(16, "sext", "S0:16", "S1:16", "S2:16"),
        "V_MAD_U32_U16": bodies.mad(32, "zext", "S0:16", "S1:16", "S2:32"),
        "V_MAD_I32_I16": bodies.mad(32, "sext", "S0:16", "S1:16", "S2:32"),
        "V_MAD_U32_U24": bodies.mad(32, "zext", "S0:24", "S1:24", "S2:32"),
        "V_MAD_I32_I24": bodies.mad(32, "sext", "S0:24", "S1:24", "S2:32"),
        "V_PK_ADD_I16": bodies.packed("add", "sext", 2), "V_PK_SUB_I16": bodies.packed("sub", "sext", 2),
        "V_PK_ADD_U16": bodies.packed("add", "zext", 2), "V_PK_SUB_U16": bodies.packed("sub", "zext", 2),
        "V_PK_MAD_I16": bodies.packed("mad", "sext", 3), "V_PK_MAD_U16": bodies.packed("mad", "zext", 3),
        "V_DOT4_I32_IU8": bodies.dot_integer(8, True), "V_DOT8_I32_IU4": bodies.dot_integer(4, True),
        "V_SAD_U8": bodies.sad(8), "V_SAD_U16": bodies.sad(16), "V_SAD_U32": bodies.sad(32),
        "V_SAD_HI_U8": bodies.sad(8, shift=16), "V_MSAD_U8": bodies.sad(8, skip_zero=True),
        "V_QSAD_PK_U16_U8": bodies.quad_sad(16, skip_zero=False),
        "V_MQSAD_PK_U16_U8": bodies.quad_sad(16, skip_zero=True), "V_MQSAD_U32_U8": bodies.quad_sad(32, skip_zero=True),
        "V_DOT4_U32_U8": bodies.dot_integer(8, False), "V_DOT8_U32_U4": bodies.dot_integer(4, False),
    }
    wide = {
        "V_MAD_U64_U32": "(set product (mul (zext:64 S0:32) (zext:64 S1:32))) (set sum (add product:64 S2:64))"
                         " (set carry (ult sum:64 product:64)) (setbit D1 carry:1)"
                         " (set D0 (select:64 (and CLAMP:1 carry:1) 0xffffffffffffffff:64 sum:64))",
        "V_MAD_I64_I32": "(set product (mul (sext:64 S0:32) (sext:64 S1:32))) (set sum (add product:64 S2:64))"
                         " (setbit D1 (xor (xor (extract:1 product:64 63:32) (extract:1 S2:64 63:32))"
                         " (ult sum:64 product:64)))"
                         " (set over (slt (and (xor product:64 sum:64) (xor S2:64 sum:64)) 0:64))"
                         " (set D0 (select:64 (and CLAMP:1 over:1) (select:64 (slt S2:64 0:64)"
                         " 0x8000000000000000:64 0x7fffffffffffffff:64) sum:64))",
    }
    return (
        *(Erratum((n,), _WRAPS, _SATURATES, FACTS, body, test) for n, body in rows.items()),
        *(Erratum((n, n.replace("MAD_", "MAD_CO_")), "computes in 65 bits and wraps", "64 are enough; with CLAMP the result saturates", FACTS, body,
                  f"{TESTS}::test_mad_64_carry") for n, body in wide.items()),
    )


_CONDXCHG = (
    "(set at (and ADDR:32 0xfff8:32)) (set old0 (load:32 LDS at:32)) (set old1 (load:32 LDS (add at:32 4:32)))"
    " (if (extract:1 DATA:64 31:32) ((store LDS at:32 (zext:32 (trunc:31 DATA:64)))))"
    " (if (extract:1 DATA:64 63:32) ((store LDS (add at:32 4:32) (zext:32 (extract:31 DATA:64 32:32)))))"
    " (set RETURN_DATA (concat:64 old1:32 old0:32))"
)
_ADDTID = "(add (add OFFSET:32 (and M0:32 0xffff:32)) (shl LANE:32 2:32))"
_DIRECT = (
    "(set type (extract:3 M0:32 16:32)) (set x (load:32 LDS (and M0:32 0xffff:32)))"
    " (set x (select:32 (eq type:3 0:3) (and x:32 255:32) (select:32 (eq type:3 1:3) (and x:32 0xffff:32)"
    " (select:32 (eq type:3 4:3) (sext:32 (trunc:8 x:32)) (select:32 (eq type:3 5:3) (sext:32 (trunc:16 x:32)) x:32))))) "
    + bodies.per_quad("x:32")
)
#: Quads that begin a primitive: the first of a wave does, M0 says it of the others. A primitive has twelve dwords of
#: each attribute: P0, P10 and P20 of X, Y, Z, W each.
_PARAM = (
    "(set begins (or (and (lshr M0:32 15:32) 0xfffe:32) 1:32)) (set size (mul (popcnt begins:32) 12:32)) "
    + bodies.per_quad(
        "(select:32 (eq part:32 3:32) 0:32 (load:32 LDS (add (and M0:32 0xffff:32) (shl at:32 2:32))))",
        "(set part (and i:32 3:32))"
        " (set number (sub (popcnt (and begins:32 (sub (shl 2:32 (lshr i:32 2:32)) 1:32))) 1:32))"
        " (set at (add (add (mul ATTR:32 size:32) (mul number:32 12:32)) (add (shl part:32 2:32) ATTR_CHAN:32)))",
    )
)


def _memory() -> tuple[Erratum | Own, ...]:
    return (
        Own(("DS_SWIZZLE_B32",), "the text is cut off; " + MANUAL, bodies.swizzle()),
        Own(("DS_APPEND",), "counts active lanes; " + MANUAL, bodies.counter("add")),
        Own(("DS_CONSUME",), "counts active lanes; " + MANUAL, bodies.counter("sub")),
        Erratum(("DS_CONDXCHG32_RTN_B64",), "names operands this encoding has not", "ADDR and DATA", MANUAL, _CONDXCHG,
                f"{TESTS}::test_condxchg_stores_only_marked_words"),
        Erratum(("DS_LOAD_ADDTID_B32",), "joins the two offset bytes as 32-bit values", "a 16-bit offset", MANUAL,
                f"(set RETURN_DATA (load:32 LDS {_ADDTID}))", f"{TESTS}::test_addtid_address"),
        Erratum(("DS_STORE_ADDTID_B32",), "as DS_LOAD_ADDTID_B32", "a 16-bit offset", MANUAL,
                f"(store LDS {_ADDTID} DATA:32)", f"{TESTS}::test_addtid_address"),
        Erratum(("GLOBAL_LOAD_ADDTID_B32",), "spells the address out", "ADDR holds base and offset", MANUAL,
                "(set RETURN_DATA (load:32 MEM (add ADDR:64 (zext:64 (shl LANE:32 2:32)))))", f"{TESTS}::test_addtid_address"),
        Erratum(("GLOBAL_STORE_ADDTID_B32",), "spells the address out", "ADDR holds base and offset", MANUAL,
                "(store MEM (add ADDR:64 (zext:64 (shl LANE:32 2:32))) DATA:32)", f"{TESTS}::test_addtid_address"),
        Own(("LDS_DIRECT_LOAD", "DS_DIRECT_LOAD"), "the text is another table; M0 holds address and type; whole quads are written",
            _DIRECT),
        Own(("LDS_PARAM_LOAD", "DS_PARAM_LOAD"), "no text; the manual's chapter on parameter loads: lanes 0, 1, 2 of a quad get"
            " P0, P10, P20, lane 3 gets 0; whole quads are written", _PARAM),
    )


_DUAL = (
    "FMAC_F32 FMAAK_F32 FMAMK_F32 MUL_F32 ADD_F32 SUB_F32 SUBREV_F32 MUL_DX9_ZERO_F32 MOV_B32 CNDMASK_B32 MAX_F32"
    " MIN_F32 DOT2ACC_F32_F16 ADD_NC_U32 LSHLREV_B32 AND_B32"
)

ROWS: tuple[Erratum | Own | Same | Unbuilt, ...] = (
    *formats.rows(),
    Own(("S_SENDMSG_RTN_B32",), MANUAL, "(set D0 (trunc:32 (message S0:32)))"),
    Own(("S_SENDMSG_RTN_B64",), MANUAL, "(set D0 (message S0:32))"),
    Own(("S_SETKILL",), "bit 0 of SIMM16 ends the wave", "(if (trunc:1 SIMM16:16) ((do endpgm)))"),
    *_control(), *_floats(), *_vector(), *_saturating(), *_memory(),
    *(Same(f"V_DUAL_{n}", f"V_{n}") for n in _DUAL.split(" ")),
    Same("FLAT_ATOMIC_CSUB_U32", "GLOBAL_ATOMIC_CSUB_U32"),
    Unbuilt(("IMAGE_*",), "image memory: needs descriptors, formats and filtering"),
    Unbuilt(("*_LOAD_LDS_*",), "loads into LDS: gfx1100 does not decode them"),
    Unbuilt(("EXP",), "graphics pipeline"),
    Unbuilt(("DS_GWS_*", "DS_ORDERED_COUNT", "DS_*_GS_REG_RTN"), "global wave sync and ordered append"),
    Unbuilt(("DS_BVH_STACK_RTN_B32",), "ray tracing"),
)
