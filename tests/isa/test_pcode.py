"""Pseudocode to semantics, on snippets of our own that exercise each construct."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Mapping
from xml.etree import ElementTree

import pytest

from stuntgpu.isa import ir
from stuntgpu.isa.errors import SpecError
from stuntgpu.isa.gen import pcode_ast as ast
from stuntgpu.isa.gen.pcode_lower import Source, lower
from stuntgpu.isa.gen.pcode_parse import parse, tokens
from stuntgpu.isa.gen.pcode_tidy import tidy
from stuntgpu.isa.verify import verify
from tests.shared import shared_dir

SIZES = {"S0": 32, "S1": 32, "S2": 32, "D0": 32, "VDATA": 128, "RETURN_DATA": 32, "DATA": 32}


def row(
    text: str,
    sizes: Mapping[str, int] | None = None,
    *,
    name: str = "V_X",
    scope: ir.Scope = "lane",
    space: str = "MEM",
    library: Mapping[str, str] | None = None,
) -> str:
    """The statements of a snippet in text form, verified."""
    trees = {n: parse(t) for n, t in (library or {}).items()}
    source = Source(name, parse(text), {**SIZES, **(sizes or {})}, scope, space, trees)
    sem = ir.with_places(ir.Semantics(name, scope, tidy(lower(source)), "text"))
    verify(sem)
    return " ".join(map(ir.dump_stmt, sem.body))


# ---------------------------------------------------------------- parsing


def test_precedence_is_that_of_c_with_power_tightest() -> None:
    (s,) = parse("x = a + b << 2U & c == d")
    assert isinstance(s, ast.Assign)
    shift = ast.Binary("<<", ast.Binary("+", ast.Name("a"), ast.Name("b")), ast.Num(2, "U", 32))
    equal = ast.Binary("==", ast.Name("c"), ast.Name("d"))
    assert s.value == ast.Binary("&", shift, equal)


def test_newlines_carry_no_meaning_and_comments_end_at_them() -> None:
    assert parse("x = a // note; y = 2\n+ b;\n") == parse("x = a + b")


def test_semicolons_are_optional_around_blocks() -> None:
    assert parse("if a then x = b; endif; y = c") == parse("if a then\nx = b\nendif\ny = c")


@pytest.mark.parametrize(
    "text", ["s_sleep 1", "cnt <= S0", "for (i = 0; i < 4; i++) {", "x = rate.", "if a x = 1 endif"]
)
def test_prose_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(SpecError, match="line 1"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("5", ast.Num(5)),
        ("5U", ast.Num(5, "U", 32)),
        ("5LL", ast.Num(5, "I", 64)),
        ("0xffULL", ast.Num(255, "U", 64, True)),
        ("8'0xff", ast.Num(255, "B", 8, True)),
        ("16'4", ast.Num(4, "B", 16)),
        ("1'1U", ast.Num(1, "U", 1)),
        ("1.5F", ast.Real("1.5", 32)),
        ("16'0.5", ast.Real("0.5", 16)),
        ("2.0", ast.Real("2.0")),
    ],
)
def test_literals(text: str, literal: ast.Node) -> None:
    (s,) = parse(f"x = {text}")
    assert isinstance(s, ast.Assign)
    assert s.value == literal


# ---------------------------------------------------------------- types


def test_dot_reinterprets_and_cast_converts() -> None:
    assert row("D0.i32 = 32'I(S0.i16)") == "(set D0 (sext:32 (trunc:16 S0:32)))"
    assert row("D0.u32 = 32'U(S0.u16)") == "(set D0 (zext:32 (trunc:16 S0:32)))"
    assert row("D0.f32 = 32'F(S0.u32)") == "(set D0 (u32_to_f32 S0:32))"
    assert row("D0.f32 = 32'F(S0.f16)") == "(set D0 (f16_to_f32 (trunc:16 S0:32)))"


def test_shift_right_follows_the_type() -> None:
    assert row("D0.i32 = S0.i32 >> S1.u32") == "(set D0 (ashr S0:32 S1:32))"
    assert row("D0.u32 = S0.u32 >> S1.u32") == "(set D0 (lshr S0:32 S1:32))"


def test_narrow_operand_is_extended_by_its_own_sign() -> None:
    assert row("D0.i32 = S0.i32 + S1.i8") == "(set D0 (add S0:32 (sext:32 (trunc:8 S1:32))))"


def test_unordered_and_ordered_inequality_differ_on_floats() -> None:
    assert row("D0.u64[laneId] = S0.f32 != S1.f32") == "(setbit D0 (fne.f32 S0:32 S1:32))"
    assert row("D0.u64[laneId] = S0.f32 <> S1.f32") == "(setbit D0 (flg.f32 S0:32 S1:32))"
    assert row("D0.u64[laneId] = S0.i32 <> S1.i32") == "(setbit D0 (ne S0:32 S1:32))"


def test_widening_to_test_a_float_is_a_test_of_the_float_itself() -> None:
    assert row("VCC.u64[laneId] = isNAN(64'F(S0.f32))") == "(setbit VCC (isnan.f32 S0:32))"
    assert (
        row("VCC.u64[laneId] = 64'F(S0.f32) == +INF")
        == "(setbit VCC (feq.f32 S0:32 0x7f800000:32))"
    )
    assert row("D0.f32 = 32'F(cvtToQuietNAN(64'F(S0.f32)))") == "(set D0 (quiet.f32 S0:32))"


def test_hexadecimal_cast_to_float_is_a_bit_pattern() -> None:
    assert row("D0.f32 = 32'F(0xffc00000)") == "(set D0 0xffc00000:32)"


def test_reversed_slice_reverses_bits() -> None:
    assert row("D0.u32 = S0.u32[0 : 31]") == "(set D0 (bitrev S0:32))"


def test_float_formats_do_not_mix_silently() -> None:
    with pytest.raises(SpecError, match="f32 assigned to f16"):
        row("D0.f16 = S0.f32")


# ---------------------------------------------------------------- functions


def test_hardware_approximations_are_recognised() -> None:
    assert row("D0.f32 = 1.0F / S0.f32") == "(set D0 (rcp.f32 S0:32))"
    assert row("D0.f32 = 1.0F / sqrt(S0.f32)") == "(set D0 (rsq.f32 S0:32))"
    assert row("D0.f32 = pow(2.0F, S0.f32)") == "(set D0 (exp2.f32 S0:32))"
    assert row("D0.f32 = sin(S0.f32 * 32'F(PI * 2.0))") == "(set D0 (sin2pi.f32 S0:32))"
    assert row("D0.f32 = S0.f32 * 2.0F ** S1.i32") == "(set D0 (ldexp.f32 S0:32 S1:32))"


def test_round_mode_becomes_an_attribute() -> None:
    text = "old = ROUND_MODE; ROUND_MODE = ROUND_TOWARD_ZERO; x = f32_to_f16(S0.f32); ROUND_MODE = old; D0.u32 = 32'U(x.u16)"
    assert row(text) == "(set D0 (zext:32 (f32_to_f16!rtz S0:32)))"


def test_arithmetic_under_a_round_mode_of_its_own_is_refused() -> None:
    with pytest.raises(SpecError, match="rounding mode"):
        row("ROUND_MODE = ROUND_TOWARD_ZERO; D0.f32 = S0.f32 + S1.f32")


def test_lambdas_are_inlined() -> None:
    text = "DIFF = lambda(x, y) (x > y ? x - y : y - x); D0.u32 = DIFF(S0.u32, S1.u32)"
    assert row(text) == "(set D0 (select:32 (ult S1:32 S0:32) (sub S0:32 S1:32) (sub S1:32 S0:32)))"


def test_lambda_with_returns_becomes_a_choice() -> None:
    text = "CUT = lambda(n) (if n.u8 > 8'9U then return 8'9U else return n endif); D0.u32 = 32'U(CUT(S0.u8))"
    assert "(select:8 (ult 9:8 (trunc:8 S0:32)) 9:8 (trunc:8 S0:32))" in row(text)


def test_calls_of_instructions_are_inlined_once() -> None:
    library = {"V_LARGER": "if S0.u32 < S1.u32 then D0.u32 = S1.u32 else D0.u32 = S0.u32 endif"}
    text = row("D0.u32 = v_larger(S0.u32, S1.u32) + v_larger(S0.u32, S1.u32)", library=library)
    assert text.count("select") == 1


def test_unknown_names_and_functions_are_named() -> None:
    with pytest.raises(SpecError, match="unknown name WEATHER"):
        row("D0.u32 = WEATHER.u32")
    with pytest.raises(SpecError, match="function frobnicate"):
        row("D0.u32 = frobnicate(S0.u32)")


# ---------------------------------------------------------------- statements


def test_fields_of_a_destination_become_one_assignment() -> None:
    text = "D0[31 : 16].u16 = S1.u16; D0[15 : 0].u16 = S0.u16"
    assert row(text) == "(set D0 (concat:32 (trunc:16 S1:32) (trunc:16 S0:32)))"


def test_one_field_keeps_the_rest_of_the_destination() -> None:
    assert row("D0[31 : 16].u16 = S0.u16") == "(set D0 (insert D0:32 16:32 (trunc:16 S0:32)))"


def test_adjacent_loads_and_stores_are_one_access() -> None:
    load = "; ".join(
        f"VDATA[{32 * i + 31} : {32 * i}] = MEM[ADDR + {4 * i}U].b32" for i in range(4)
    )
    assert row(load.replace("ADDR + 0U", "ADDR")) == "(set VDATA (load:128 MEM ADDR:64))"
    store = "; ".join(
        f"MEM[ADDR + {4 * i}U].b32 = VDATA[{32 * i + 31} : {32 * i}]" for i in range(4)
    )
    assert row(store) == "(store MEM ADDR:64 VDATA:128)"


def test_accesses_with_a_gap_stay_apart() -> None:
    text = row("VDATA[31 : 0] = MEM[ADDR].b32; VDATA[63 : 32] = MEM[ADDR + 8U].b32", {"VDATA": 64})
    assert text.count("load:32") == 2


def test_atomic_reads_memory_once() -> None:
    text = row("tmp = MEM[ADDR].u32; MEM[ADDR].u32 += DATA.u32; RETURN_DATA.u32 = tmp")
    assert text == (
        "(set tmp (load:32 MEM ADDR:64)) (store MEM ADDR:64 (add tmp:32 DATA:32)) (set RETURN_DATA tmp:32)"
    )


def test_ds_offset_is_part_of_the_address() -> None:
    text = row("RETURN_DATA.u32 = MEM[ADDR + OFFSET.u32].u32", name="DS_X", space="LDS")
    assert text == "(set RETURN_DATA (load:32 LDS ADDR:32))"


def test_branches_that_choose_a_value_become_selects() -> None:
    text = "if S0.u32 == 0U then D0.u32 = S1.u32 elsif S0.u32 == 1U then D0.u32 = S2.u32 else D0.u32 = 0U endif"
    assert (
        row(text)
        == "(set D0 (select:32 (eq S0:32 0:32) S1:32 (select:32 (eq S0:32 1:32) S2:32 0:32)))"
    )


def test_branch_that_may_leave_the_destination_stays() -> None:
    assert row("if SCC then D0.u32 = S0.u32 endif", scope="wave") == "(if SCC:1 ((set D0 S0:32)))"


def test_memory_reads_are_not_moved_out_of_branches() -> None:
    assert row("if S0.u32 == 0U then D0.u32 = MEM[ADDR].u32 else D0.u32 = 0U endif").startswith(
        "(if "
    )


def test_bit_loops_are_recognised() -> None:
    count = "n = 0; for i in 0 : 31 do n += S0.u32[i] == 1'1U ? 1 : 0 endfor; D0.i32 = n"
    assert row(count) == "(set D0 (popcnt S0:32))"
    first = (
        "D0.i32 = -1; for i in 0 : 31 do if S0.u32[i] == 1'1U then D0.i32 = i; break endif endfor"
    )
    assert row(first) == "(set D0 (select:32 (eq S0:32 0:32) 0xffffffff:32 (ctz S0:32)))"
    top = "D0.i32 = -1; for i in 0 : 31 do if S0.u32[31 - i] == 1'1U then D0.i32 = i; break endif endfor"
    assert row(top) == "(set D0 (select:32 (eq S0:32 0:32) 0xffffffff:32 (clz S0:32)))"


def test_similar_loop_that_skips_a_bit_is_not_a_count() -> None:
    text = row("n = 0; for i in 0 : 30 do n += S0.u32[i] == 1'1U ? 1 : 0 endfor; D0.i32 = n")
    assert "popcnt" not in text
    assert "(for i" in text


def test_short_loops_unroll_and_their_arrays_dissolve() -> None:
    text = row(
        "declare A : 32'U[2]; for i in 0 : 1 do A[i] = S0[i * 8 + 7 : i * 8].u32 endfor; D0.u32 = A[0] + A[1]"
    )
    assert text == "(set D0 (add (zext:32 (trunc:8 S0:32)) (zext:32 (extract:8 S0:32 8:32))))"


def test_value_read_before_its_source_changes_is_kept() -> None:
    text = row(
        "old = EXEC.u64; EXEC.u64 = S0.u64; D0.u64 = old", {"S0": 64, "D0": 64}, scope="wave"
    )
    assert text == "(set old EXEC:64) (set EXEC S0:64) (set D0 old:64)"


def test_split_assignment_takes_the_low_part_last() -> None:
    text = row("{ D0.u32, SCC.u1 } = 33'U(S0.u32)", scope="wave")
    assert "(set SCC (trunc:1 " in text


def test_spelled_out_addresses_are_the_place() -> None:
    text = row(
        "addr = CalcGlobalAddr(v_addr.b64, s_saddr.b64); VDATA[31 : 0] = MEM[addr].b32",
        {"VDATA": 32},
    )
    assert text == "(set VDATA (load:32 MEM ADDR:64))"


# ---------------------------------------------------------------- the vendor's tables


@pytest.mark.parametrize(
    ("family", "prose"), [("rdna3", 17), ("rdna4", 7), ("cdna3", 3), ("cdna4", 3)]
)
def test_golden_every_entry_parses_but_the_known_prose(family: str, prose: int) -> None:
    root = ElementTree.parse(shared_dir() / "isa-spec" / f"amdgpu_isa_{family}.xml").getroot()
    refused = []
    for x in root.iter("Instruction"):
        try:
            parse(x.findtext("Pseudocode") or "")
        except SpecError:
            refused.append(x.findtext("InstructionName"))
    assert len(refused) == prose, refused


def damaged(words: list[str], pool: list[str], rng: random.Random) -> str:
    """The text with one word lost, replaced or added."""
    at, kind = rng.randrange(len(words)), rng.randrange(3)
    middle = ([], [rng.choice(pool)], [words[at], rng.choice(pool)])[kind]
    return " ".join([*words[:at], *middle, *words[at + 1 :]])


def test_golden_damaged_text_is_a_spec_error_or_another_program() -> None:
    root = ElementTree.parse(shared_dir() / "isa-spec" / "amdgpu_isa_rdna3.xml").getroot()
    texts: dict[str, list[str]] = {}
    for x in root.iter("Instruction"):
        with contextlib.suppress(SpecError):
            name = x.findtext("InstructionName") or ""
            texts[name] = [t.text for t in tokens(x.findtext("Pseudocode") or "")][:-1]
    names = sorted(n for n, words in texts.items() if 0 < len(words) < 200)
    pool = [word for n in names for word in texts[n]]
    rng = random.Random(7)
    survivors = 0
    for _ in range(4000):
        text = damaged(texts[rng.choice(names)], pool, rng)
        with contextlib.suppress(SpecError):
            row(text)
            survivors += 1
    assert survivors > 20
