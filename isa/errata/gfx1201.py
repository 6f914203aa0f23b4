"""gfx1201 (RDNA4): what it has of its own beside the rows of all RDNA."""

from __future__ import annotations

from stuntgpu.isa.errata import bodies, bodies_minmax, bodies_small, rdna
from stuntgpu.isa.errata.bodies import F16, F32, F64
from stuntgpu.isa.errata.common import FACTS, MANUAL, Erratum, Own, Same, Unbuilt

TESTS = "tests/isa/test_semantics_gfx1201.py"

#: Barrier number of a SALU source: M0 (operand 125) holds that of a named barrier in five bits.
_TAKE = "(set number (select:32 (eq SRC0:32 125:32) (and S0:32 31:32) S0:32))"
_NUMBER = "number:32"
_PRIVILEGED = f"(or (eq {_NUMBER} 0:32) (and (eq {_NUMBER} 0xfffffffe:32) (not PRIV:1)))"
_SIGNAL = f"(if (not {_PRIVILEGED}) ((do barrier_signal {_NUMBER})))"
_FIRST = f"(eq (extract:7 (barrier {_NUMBER}) 16:32) 0:7)"


def _barriers() -> tuple[Erratum | Own, ...]:
    return (
        Erratum(("S_BARRIER_SIGNAL",), "asks how a source is encoded; counts in place", "one action of the workgroup",
                MANUAL, f"{_TAKE} {_SIGNAL}", f"{TESTS}::test_barrier_rows"),
        Erratum(("S_BARRIER_SIGNAL_ISFIRST",), "as S_BARRIER_SIGNAL", "SCC: no wave signalled before", MANUAL,
                f"{_TAKE} (set SCC (and (not {_PRIVILEGED}) {_FIRST})) {_SIGNAL}", f"{TESTS}::test_barrier_rows"),
        Erratum(("S_BARRIER_WAIT",), "a loop over a flag", "the executor lets the wave sleep until it is set", MANUAL,
                "(do barrier_wait (sext:32 SIMM16:16))", f"{TESTS}::test_barrier_rows"),
        Erratum(("S_GET_BARRIER_STATE",), "asks how a source is encoded", "one read", MANUAL,
                f"{_TAKE} (set D0 (barrier {_NUMBER}))", f"{TESTS}::test_barrier_rows"),
        Own(("S_BARRIER_INIT",), "M0[22:16] is the number of members; " + MANUAL,
            f"{_TAKE} (do barrier_init {_NUMBER} (zext:32 (extract:7 M0:32 16:32)))"),
        Own(("S_BARRIER_JOIN",), MANUAL, f"{_TAKE} (do barrier_join {_NUMBER})"),
        Own(("S_BARRIER_LEAVE",), MANUAL, "(do barrier_leave)"),
    )


def _control() -> tuple[Erratum | Own, ...]:
    return (
        *_barriers(),
        Own(
            (
                "S_WAIT_ALU", "S_WAIT_BVHCNT", "S_WAIT_DSCNT", "S_WAIT_EXPCNT", "S_WAIT_KMCNT", "S_WAIT_LOADCNT",
                "S_WAIT_LOADCNT_DSCNT", "S_WAIT_SAMPLECNT",
            ),
            "waits: execution is in order and always complete", "(do nop)",
        ),
        Own(("S_WAIT_STORECNT", "S_WAIT_STORECNT_DSCNT"),
            "stores that are complete come before what follows, for everyone", "(do memory_barrier)"),
        Erratum(
            (
                "S_PREFETCH_INST", "S_PREFETCH_INST_PC_REL", "S_PREFETCH_DATA", "S_PREFETCH_DATA_PC_REL",
                "S_BUFFER_PREFETCH_DATA",
            ),
            "fetches lines into a cache", "nothing a program can see", "a hint by name", "(do nop)",
            f"{TESTS}::test_prefetch_changes_nothing",
        ),
        Own(("GLOBAL_INV", "GLOBAL_WB", "GLOBAL_WBINV"), "caches are not modelled, their order is", "(do memory_barrier)"),
        Own(("S_SLEEP_VAR",), MANUAL, "(do sleep)"),
        Erratum(("S_ALLOC_VGPR",), "asks the register allocator", "every wave has all registers, so it succeeds", MANUAL,
                "(set SCC 1:1)", f"{TESTS}::test_alloc_vgpr_succeeds"),
    )


def scalar_floats() -> tuple[Erratum, ...]:
    out = [
        Erratum((f"S_{op}_{f.name.upper()}",), "arithmetic that rounds and flushes on the way", "one exact operation", FACTS,
                bodies.unary(f, ir_op), f"{TESTS}::test_scalar_rounding_is_one_operation")
        for f in (F16, F32)
        for op, ir_op in (("CEIL", "ceil"), ("FLOOR", "floor"), ("RNDNE", "rndne"))
    ]
    out.append(Erratum(("S_CVT_HI_F32_F16",), "a 16-bit operand's upper half", "the upper half of the register", MANUAL,
                       "(set D0 (f16_to_f32 (extract:16 S0:32 16:32)))", f"{TESTS}::test_cvt_hi_reads_the_upper_half"))
    out.append(Erratum(("S_CVT_PK_RTZ_F16_F32",), "two halves of a 16-bit operand", "two halves of a register", MANUAL,
                       "(set D0 (concat:32 (f32_to_f16!rtz S1:32) (f32_to_f16!rtz S0:32)))",
                       f"{TESTS}::test_scalar_pk_rtz_writes_both_halves"))
    return tuple(out)


def _scalar_transcendentals() -> tuple[Erratum, ...]:
    """V_S_*: the vector unit's functions on scalar registers."""
    ops = {"EXP": "exp2", "LOG": "log2", "RCP": "rcp", "RSQ": "rsq", "SQRT": "sqrt"}
    return tuple(
        Erratum((f"V_S_{name}_F16",), "clears bits beyond a 16-bit result", "the upper half of the register is 0", MANUAL,
                f"(set D0 (zext:32 ({op}.f16 S0:16)))", f"{TESTS}::test_scalar_transcendentals_clear_the_upper_half")
        for name, op in ops.items()
    )


def _vector() -> tuple[Erratum | Own, ...]:
    small = f"{TESTS}::test_small_float_conversions"
    swapped = "(concat:2 (trunc:1 OPSEL:32) (extract:1 OPSEL:32 1:32))"
    out: list[Erratum | Own] = []
    for f in ("fp8", "bf8"):
        name = f.upper()
        out += [
            Erratum((f"V_CVT_F32_{name}",), "reads a VGPR whatever the source is", "any source; OP_SEL picks the byte, bits swapped",
                    FACTS, bodies_small.to_f32(f, swapped), small),
            Erratum((f"V_CVT_PK_F32_{name}",), "reads a VGPR whatever the source is", "any source; its operand says which half", MANUAL,
                    bodies_small.pair_to_f32(f), small),
            Erratum((f"V_CVT_PK_{name}_F32",), "stores into a half by hand", "the destination's half is that of OP_SEL", MANUAL,
                    bodies_small.pair_from_f32(f), small),
            Erratum((f"V_CVT_SR_{name}_F32",), "drops the carry of the random bits, then rounds", "random bits below the kept ones, cut",
                    bodies_small.HIP, bodies_small.stochastic_byte(f, "(extract:2 OPSEL:32 2:32)"), small),
        ]
    for a in ("fp8", "bf8"):
        for b in ("fp8", "bf8"):
            out.append(Erratum((f"V_DOT4_F32_{a.upper()}_{b.upper()}",), "conversions of a type that is not named",
                               "four products added in order", "rewritten", bodies_small.dot4(a, b),
                               f"{TESTS}::test_dot4_of_small_floats"))
    return (*out, *_lanes())


def _lanes() -> tuple[Erratum, ...]:
    """All lanes of a wave64 take part, as the text says and LLVM counts on (`supportsWaveWideBPermute`);
    on gfx1100 each half stays by itself."""
    says, test = "writes register numbers", f"{TESTS}::test_permutes_reach_all_lanes_of_a_wave64"
    return (
        Erratum(("DS_BPERMUTE_B32",), says, "one gather over the wave", MANUAL, bodies.gather(bodies.WAVE_LANE), test),
        Erratum(("DS_BPERMUTE_FI_B32",), says, "one gather over the wave, inactive lanes too", MANUAL,
                bodies.gather(bodies.WAVE_LANE, inactive=True), test),
        Erratum(("DS_PERMUTE_B32",), says, "one scatter over the wave", MANUAL, bodies.scatter(bodies.WAVE_LANE), test),
    )


def _min_max() -> tuple[Erratum, ...]:
    """Vector and scalar ones alike."""
    out = []
    for f in (F16, F32, F64):
        for unit in "V" if f is F64 else "VS":
            for short, long, smallest in (("MIN", "MINIMUM", True), ("MAX", "MAXIMUM", False)):
                name = f.name.upper()
                out += [
                    bodies_minmax.erratum(f"{unit}_{short}_NUM_{name}", bodies_minmax.min_max_num(f, smallest)),
                    bodies_minmax.erratum(f"{unit}_{long}_{name}", bodies_minmax.minimum(f, smallest)),
                ]
    return tuple(out)


_BLOCK_AT = "(add ADDR:64 (zext:64 (shl i:32 2:32)))"
_LOAD_BLOCK = (
    "(for i 0:32 31:32 ((if (extract:1 M0:32 i:32)"
    f" ((setvgpr (add VDST:32 i:32) (load:32 MEM {_BLOCK_AT}) LANE:32)))))"
)
_STORE_BLOCK = (
    "(for i 0:32 31:32 ((if (extract:1 M0:32 i:32)"
    f" ((store MEM {_BLOCK_AT} (extract:32 VDATA:1024 (shl i:32 5:32)))))))"
)


def _pairs() -> tuple[Erratum, ...]:
    """DS with two addresses: each element is one access."""
    out = []
    for stride, scale in (("", 1), ("_STRIDE64", 64)):
        for width in (32, 64):
            first, second = (f"(add ADDR:32 (mul OFFSET{i}:32 {scale * width // 8}:32))" for i in (0, 1))
            load = f"(set RETURN_DATA (concat:{2 * width} (load:{width} LDS {second}) (load:{width} LDS {first})))"
            store = f"(store LDS {first} DATA:{width}) (store LDS {second} DATA2:{width})"
            out += [
                Erratum((f"DS_{what}_2ADDR{stride}_B{width}",), "goes dword by dword", "one access an element", "as RDNA3's text",
                        body, f"{TESTS}::test_two_address_forms_access_whole_elements")
                for what, body in (("LOAD", load), ("STORE", store))
            ]
    return tuple(out)


def _memory() -> tuple[Erratum | Own, ...]:
    block = f"{TESTS}::test_block_loads_skip_registers"
    return (
        *_pairs(),
        *(Erratum((f"{s}_LOAD_BLOCK",), "spells the address out", "ADDR holds base and offset", MANUAL, _LOAD_BLOCK, block)
          for s in ("GLOBAL", "SCRATCH")),
        *(Erratum((f"{s}_STORE_BLOCK",), "spells the address out", "ADDR holds base and offset", MANUAL, _STORE_BLOCK, block)
          for s in ("GLOBAL", "SCRATCH")),
        Own(("GLOBAL_LOAD_TR_B128",), "measured on gfx1201: an 8 by 8 transpose inside each eight lanes",
            bodies_small.transpose_load("MEM", 16, 128, "VDATA", lanes=8)),
        Own(("GLOBAL_LOAD_TR_B64",), bodies_small.TRANSPOSE, bodies_small.transpose_load("MEM", 8, 64, "VDATA")),
    )


ROWS: tuple[Erratum | Own | Same | Unbuilt, ...] = (
    *rdna.ROWS, *_control(), *scalar_floats(), *_scalar_transcendentals(), *_vector(), *_min_max(), *_memory(),
    Unbuilt(("EXPORT",), "graphics pipeline"),
    Unbuilt(("DS_BVH_STACK_*",), "ray tracing"),
    Unbuilt(("GLOBAL_ATOMIC_ORDERED_ADD_B64",), "ordered append"),
)
