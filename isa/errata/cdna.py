"""CDNA3 and CDNA4: rows in place of missing, mistaken or unwieldy text.

What CDNA does as RDNA comes from `rdna`; rows here go before those of the same name.
"""

from __future__ import annotations

from stuntgpu.isa.errata import bodies, bodies_minmax, bodies_small, rdna
from stuntgpu.isa.errata import bodies_cdna as cdna
from stuntgpu.isa.errata.bodies import F16, F32, F64
from stuntgpu.isa.errata.common import FACTS, MANUAL, Erratum, Own, Same, Unbuilt

TESTS = "tests/isa/test_semantics_cdna.py"
HALF = f"{TESTS}::test_results_of_sixteen_bits_are_one_value"


def _control() -> tuple[Erratum | Own, ...]:
    fork = f"{TESTS}::test_fork_and_join_run_both_sides"
    depth = "the depth of the stack as a part of a register"
    return (
        Erratum(("S_CBRANCH_G_FORK",), depth, "MODE[31:29]", MANUAL, cdna.fork("S1:64"), fork),
        Erratum(("S_CBRANCH_I_FORK",), depth, "MODE[31:29]", MANUAL, cdna.fork(cdna.FORK_TARGET), fork),
        Erratum(("S_CBRANCH_JOIN",), depth, "MODE[31:29]", MANUAL, cdna.join(), fork),
        Erratum(("S_SET_GPR_IDX_ON",), "an enable bit by name", "MODE[27]", MANUAL, cdna.index_mode(True),
                f"{TESTS}::test_gpr_index_mode_is_a_bit_of_mode"),
        Erratum(("S_SET_GPR_IDX_OFF",), "an enable bit by name", "MODE[27]", MANUAL, cdna.index_mode(False),
                f"{TESTS}::test_gpr_index_mode_is_a_bit_of_mode"),
        Erratum(("S_SETVSKIP",), "a name of its own", "MODE[28]", MANUAL, cdna.set_vskip(),
                f"{TESTS}::test_vskip_is_a_bit_of_mode"),
        Own(("S_RFE_RESTORE_B64",), "S1 restores state that the emulator has not; " + MANUAL,
            "(set PRIV 0:1) (set PC (and S0:64 0xfffffffffffffffc:64))"),
        Own(("S_MEMTIME",), "the wave's own clock; " + MANUAL, f"(set SDATA {cdna.CLOCK})"),
        Own(("S_MEMREALTIME",), "the constant-rate clock; " + MANUAL, f"(set SDATA {cdna.REALTIME})"),
        Own(("S_SET_VALU_COEXEC_MODE", "V_CLREXCP"), "co-issue and exception flags are not modelled", "(do nop)"),
        Own(("V_MFMA_LD_SCALE_B32",),
            "its scales are for the matrix instruction that follows, and that pair decodes as one instruction", "(do nop)"),
        Own(("BUFFER_INV", "BUFFER_WBL2", "S_DCACHE_INV_VOL", "S_DCACHE_WB", "S_DCACHE_WB_VOL", "S_DCACHE_DISCARD",
             "S_DCACHE_DISCARD_X2"), "caches are not modelled, their order is", "(do memory_barrier)"),
    )


def _moves() -> tuple[Erratum | Own | Same, ...]:
    return (
        Own(("V_ACCVGPR_READ", "V_ACCVGPR_WRITE", "V_ACCVGPR_MOV_B32"), "the operands say which file", "(set D0 S0:32)"),
        Erratum(("V_PK_MOV_B32",), "takes parts of 32 bits of a pair", "OP_SEL picks a register of each pair", FACTS,
                "(set D0 (concat:64 (extract:32 S1:64 (shl (zext:32 (extract:1 OPSEL:32 1:32)) 5:32))"
                " (extract:32 S0:64 (shl (zext:32 (trunc:1 OPSEL:32)) 5:32))))",
                f"{TESTS}::test_pk_mov_picks_a_register_of_each_pair"),
        Own(("V_SCREEN_PARTITION_4SE_B32",), "which engine has a tile; " + MANUAL, cdna.screen_partition()),
        Erratum(("V_CVT_PKACCUM_U8_F32",), "rounds toward zero", "rounds to nearest even", bodies.NEAREST_BYTE, bodies.pack_u8("D0:32"),
                "tests/isa/test_semantics.py::test_conversion_to_a_byte_rounds_to_nearest"),
        Same("V_EXP_LEGACY_F32", "V_EXP_F32"), Same("V_LOG_LEGACY_F32", "V_LOG_F32"),
    )


def _halves() -> tuple[Erratum, ...]:
    says, does = "joins the result with the other half by hand", "one 16-bit result; CDNA's executor keeps or clears the rest"
    rows = {
        "V_MADMK_F16": "(set D0 (fadd.f16 (fmul.f16 S0:16 (trunc:16 SIMM32:32)) S1:16))",
        "V_MADAK_F16": "(set D0 (fadd.f16 (fmul.f16 S0:16 S1:16) (trunc:16 SIMM32:32)))",
        "V_MAC_F16": "(set D0 (fadd.f16 (fmul.f16 S0:16 S1:16) D0:16))",
        "V_MAD_LEGACY_F16": "(set D0 (fadd.f16 (fmul.f16 S0:16 S1:16) S2:16))",
        "V_FMA_LEGACY_F16": "(set D0 (fma.f16 S0:16 S1:16 S2:16))",
        "V_DIV_FIXUP_LEGACY_F16": bodies.div_fixup(F16, None),
        "V_MAD_LEGACY_U16": cdna.clamped16("zext"), "V_MAD_LEGACY_I16": cdna.clamped16("sext"),
    }
    return tuple(Erratum((n,), says, does, "rewritten", body, HALF) for n, body in rows.items())


def _mixed() -> tuple[Erratum, ...]:
    test = f"{TESTS}::test_mad_mix_rounds_once"
    source = "LLVM names this opcode v_fma_mix on these targets; " + FACTS
    return (
        Erratum(("V_MAD_MIX_F32",), "rounds the product; ignores NEG and ABS", "rounded once; NEG_HI is ABS", source,
                bodies.fma_mix("(set D0 FMA)"), test),
        Erratum(("V_MAD_MIXLO_F16", "V_MAD_MIXHI_F16"), "as V_MAD_MIX_F32", "as V_MAD_MIX_F32", source,
                bodies.fma_mix("(set D0 (f32_to_f16 FMA))"), test),
    )


def _saturating() -> tuple[Erratum, ...]:
    test = f"{TESTS}::test_clamp_saturates_integers"
    rows = {
        "V_ADD_U32": bodies.add_u(32), "V_SUB_U32": bodies.sub_u(32), "V_SUBREV_U32": bodies.sub_u(32, "S1", "S0"),
        "V_ADD_U16": bodies.add_u(16), "V_SUB_U16": bodies.sub_u(16), "V_SUBREV_U16": bodies.sub_u(16, "S1", "S0"),
        "V_ADD_I32": bodies.add_i(32), "V_SUB_I32": bodies.sub_i(32),
        "V_ADD_I16": bodies.add_i(16), "V_SUB_I16": bodies.sub_i(16),
        "V_ADDC_CO_U32": bodies.add_carry(True), "V_SUBB_CO_U32": bodies.sub_borrow("S0", "S1", True),
        "V_SUBBREV_CO_U32": bodies.sub_borrow("S1", "S0", True),
        "V_DOT2_I32_I16": cdna.dot(16, True, "S2:32"), "V_DOT2_U32_U16": cdna.dot(16, False, "S2:32"),
        "V_DOT4_I32_I8": cdna.dot(8, True, "S2:32"), "V_DOT8_I32_I4": cdna.dot(4, True, "S2:32"),
        "V_DOT2C_I32_I16": cdna.dot(16, True, "D0:32"), "V_DOT4C_I32_I8": cdna.dot(8, True, "D0:32"),
        "V_DOT8C_I32_I4": cdna.dot(4, True, "D0:32"),
    }
    return tuple(Erratum((n,), "wraps", "with CLAMP the result saturates", FACTS, body, test) for n, body in rows.items())


def _min_max() -> tuple[Erratum, ...]:
    """Of two NaNs the second."""
    return tuple(
        bodies_minmax.erratum(f"V_{op}_{f.name.upper()}", bodies_minmax.min_max(f, op == "MIN", of_two_nans="S1"))
        for f in (F16, F32, F64) for op in ("MIN", "MAX")
    )


def _classes() -> tuple[Erratum, ...]:
    return tuple(
        Erratum((f"V_CMPX_CLASS_{f.name.upper()}",), "the result goes to EXEC", "to EXEC and to VCC or SDST, as of all V_CMPX",
                FACTS, " ".join(bodies.classify(f, target, 16 if f is F16 else 32) for target in ("EXEC", "D0")),
                f"{TESTS}::test_cmpx_class_writes_both_masks")
        for f in (F16, F32, F64)
    )


def small_floats(suffix: str) -> tuple[Erratum, ...]:
    """8-bit floats; suffix: "_fnuz" or "" (OCP)."""
    sdwa = f"{TESTS}::test_small_float_conversions"
    out = []
    for f in ("fp8", "bf8"):
        name, op = f.upper(), f + suffix
        out += [
            Erratum((f"V_CVT_F32_{name}",), "asks for SDWA's selection", "the source arrives selected", FACTS,
                    f"(set D0 ({op}_to_f32 (trunc:8 S0:32)))", sdwa),
            Erratum((f"V_CVT_PK_F32_{name}",), "asks for SDWA's selection", "the source arrives selected", FACTS,
                    f"(set D0 (concat:64 ({op}_to_f32 (extract:8 S0:32 8:32)) ({op}_to_f32 (trunc:8 S0:32))))", sdwa),
            Erratum((f"V_CVT_SR_{name}_F32",), "drops the carry of the random bits, then rounds",
                    "random bits below the kept ones, cut", bodies_small.HIP,
                    bodies_small.stochastic_byte(op, "(extract:2 OPSEL:32 2:32)"), sdwa),
        ]
    return tuple(out)


def _lds_loads() -> tuple[Own, ...]:
    offset = "(sext:32 (trunc:13 OFFSET:32))"
    forms = {
        "UBYTE": (8, "zext"), "SBYTE": (8, "sext"), "USHORT": (16, "zext"), "SSHORT": (16, "sext"), "DWORD": (32, ""),
        "DWORDX3": (96, ""), "DWORDX4": (128, ""),
    }
    return tuple(
        Own(tuple(f"{segment}_LOAD_LDS_{name}" for segment in ("GLOBAL", "SCRATCH")[: 1 if "X" in name else 2]),
            "LDS address M0 + lane * size, plus the offset, which applies to both; " + MANUAL,
            cdna.load_to_lds(bits, extend, offset))
        for name, (bits, extend) in forms.items()
    )


_ADDTID = "(add (add OFFSET:32 (and M0:32 0xffff:32)) (shl LANE:32 2:32))"


def _memory() -> tuple[Erratum | Own, ...]:
    joins, thread = "joins the two offset bytes as 32-bit values", f"{TESTS}::test_addtid_takes_a_16_bit_offset"
    lanes = f"{TESTS}::test_ds_permutes_reach_all_lanes"
    return (
        Erratum(("DS_READ_ADDTID_B32",), joins, "a 16-bit offset", MANUAL, f"(set RETURN_DATA (load:32 LDS {_ADDTID}))", thread),
        Erratum(("DS_WRITE_ADDTID_B32",), joins, "a 16-bit offset", MANUAL, f"(store LDS {_ADDTID} DATA:32)", thread),
        Erratum(("DS_BPERMUTE_B32",), "writes register numbers", "one gather over 64 lanes", FACTS,
                bodies.gather(cdna.WHOLE_WAVE_LANE), lanes),
        Erratum(("DS_PERMUTE_B32",), "writes register numbers", "one scatter over 64 lanes", FACTS,
                bodies.scatter(cdna.WHOLE_WAVE_LANE), lanes),
        *(Own((f"DS_READ_B{bits}_TR_B{element}",), bodies_small.TRANSPOSE,
              bodies_small.transpose_load("LDS", element, bits, "RETURN_DATA"))
          for bits, element in ((64, 4), (96, 6), (64, 8), (64, 16))),
        *_lds_loads(),
    )


ROWS: tuple[Erratum | Own | Same | Unbuilt, ...] = (
    *(r for r in rdna.ROWS if isinstance(r, Erratum | Own)),
    *_control(), *_moves(), *_halves(), *_mixed(), *_saturating(), *_min_max(), *_classes(), *_memory(),
    Unbuilt(("DS_GWS_*",), "global wave sync"),
)
