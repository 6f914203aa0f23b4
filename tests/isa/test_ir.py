"""The semantics language: text form, places of a row, and what the verifier refuses."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stuntgpu.isa import ir
from stuntgpu.isa.errors import SpecError
from stuntgpu.isa.verify import verify

EVERY_FORM = (
    "(lane own (array t 4 32) (setelem t 1:32 S0:32) (set x (elem:32 t 1:32)) (setbit VCC (bit EXEC))"
    " (setvgpr VDST:32 x:32 LANE:32) (store MEM ADDR:64 (load:128 MEM (add ADDR:64 16:64)))"
    " (if (slt S0:32 0x80000000:32) ((set D0 (f32_to_f16!rtz S0:32))) ((set D0 (trunc:16 (vgpr 1:32 LANE:32)))))"
    " (for i 0:32 3:32 ((while (eq x:32 1:32) ((break))))) (do nop x:32))"
)
WAVE_FORMS = "(wave text (setsgpr SDST:32 (sgpr SRC0:32)) (sethwreg 1:32 (hwreg 1:32)) (set SCC (not SCC:1)))"


@pytest.mark.parametrize("text", [EVERY_FORM, WAVE_FORMS])
def test_every_form_survives_the_text_form(text: str) -> None:
    sem = ir.loads("X", text)
    verify(sem)
    assert ir.dumps(sem) == text
    assert ir.loads("X", ir.dumps(sem)) == sem


def constants() -> st.SearchStrategy[ir.Expr]:
    return st.integers(1, 128).flatmap(
        lambda w: st.integers(0, (1 << w) - 1).map(lambda bits: ir.Const(bits, w))
    )


def operations(parts: st.SearchStrategy[ir.Expr]) -> st.SearchStrategy[ir.Expr]:
    def same_width(op: str, a: ir.Expr) -> ir.Expr:
        return ir.node(op, a, a)

    return st.one_of(
        st.builds(same_width, st.sampled_from(["add", "xor", "eq", "ult", "shl"]), parts),
        st.builds(lambda a: ir.node("not", a), parts),
        st.builds(
            lambda a, extra: ir.node("zext", a, width=a.width + extra), parts, st.integers(0, 64)
        ),
        st.builds(lambda a, b: ir.node("concat", a, b, width=a.width + b.width), parts, parts),
    )


@given(st.recursive(constants(), operations, max_leaves=12))
def test_any_expression_survives_and_verifies(x: ir.Expr) -> None:
    sem = ir.with_places(ir.Semantics("X", "wave", (ir.Set("D0", x),), "own"))
    verify(sem)
    assert ir.loads("X", ir.dumps(sem)) == sem


def test_places_are_collected_with_their_widths() -> None:
    sem = ir.loads("X", "(wave text (set D0 (and S0:64 EXEC:64)) (set SCC (ne D0:64 0:64)))")
    assert sem.reads == ("S0", "EXEC")
    assert sem.writes == ("D0", "SCC")
    assert sem.widths == {"S0": 64, "EXEC": 64, "D0": 64, "SCC": 1}


def test_a_place_read_after_a_branch_wrote_it_still_counts_as_read() -> None:
    sem = ir.loads("X", "(wave text (if SCC:1 ((set D0 S0:32))) (set M0 D0:32))")
    assert "D0" in sem.reads


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("(set D0 (add S0:32 S1:16))", "argument of 16 bits"),
        ("(set D0 (fadd.f32 S0:16 S1:16))", "argument of 16 bits"),
        ("(set D0 (trunc:64 S0:32))", "goes the wrong way"),
        ("(set D0 (concat:32 S0:32 S1:32))", "do not add up"),
        ("(set D0 x:32)", "not assigned"),
        ("(set S1 S0:32)", "not writable"),
        ("(set SCC 1:1)", "lane scope"),
        ("(set D0 EXEC:32)", "read with 32 bits"),
        ("(set D0 300:8)", "does not fit"),
        ("(set D0 (load:32 MEM ADDR:32))", "ADDR width"),
        ("(set D0 (load:32 MEM S0:32))", "address width"),
        ("(set D0 (add!rtz S0:32 S1:32))", "rounding"),
        ("(if S0:32 ())", "not one bit"),
        ("(break)", "outside a loop"),
        ("(if SCC:1 ((set PC 0:64)))", "lane scope|some paths"),
        ("(do dance)", "unknown action"),
        ("(setbit M0 1:1)", "mask bit"),
        ("(set D0 (vgpr 1:32))", "lane of a register"),
        ("(array t 2 16) (setelem t 0:32 1:32)", "element width"),
        ("(set x 1:32) (set x 1:16)", "changes width"),
    ],
)
def test_verifier_names_instruction_and_node(body: str, complaint: str) -> None:
    with pytest.raises(SpecError, match=complaint) as e:
        verify(ir.loads("V_BAD", f"(lane own {body})"))
    assert "V_BAD" in str(e.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "(lane own",
        "(lane own (set D0))",
        "(lane own (set D0 (frob S0:32)))",
        "(page own)",
        "(lane own) (lane own)",
        "(lane own (set D0 S0))",
    ],
)
def test_malformed_text_is_a_spec_error(text: str) -> None:
    with pytest.raises(SpecError, match="V_BAD"):
        ir.loads("V_BAD", text)


WORDS = [
    "(",
    ")",
    "lane",
    "own",
    "set",
    "D0",
    "S0:32",
    "7:8",
    "add",
    "if",
    "for",
    "vgpr",
    "load:32",
    "MEM",
    "zext:64",
    ":",
    "!",
]


@given(st.lists(st.sampled_from(WORDS), max_size=24).map(" ".join))
def test_any_text_loads_or_is_a_spec_error(text: str) -> None:
    with contextlib.suppress(SpecError):
        verify(ir.loads("V_BAD", f"(lane own {text})"))


def test_operations_have_consistent_rows() -> None:
    for name, row in ir.OPS.items():
        assert row.name == name
        assert row.doc
        assert row.result in ("w", "same") or isinstance(row.result, int)
        assert row.result != "same" or row.args[0] in ("w", "*")
