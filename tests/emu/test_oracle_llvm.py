"""Vector instructions against host code that LLVM compiles from their meaning, written a second time."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from stuntgpu.isa.arch import arch as arch_of
from stuntgpu.isa.semantics import keeps_upper_half
from tests.emu import oracle_llvm as oracle
from tests.emu.oracle_llvm import Bits, Row
from tests.emu.sweep import ARCHES, OUT, Words, operand, sweep

KEEP = 0xF0
N = 4096
RUBBISH = 0xA5A5_A5A5

#: What the normal suite runs.
SAMPLE = (
    "V_PK_FMA_F16", "V_LDEXP_F16", "V_CVT_I32_F64", "V_MIN_F16@gfx9", "V_MAXIMUM_F32", "V_CMPX_NGE_F16",
    "V_ADD_CO_CI_U32 vcc", "V_PERM_B32", "V_PK_ADD_I16 clamp",
)

def operands(row: Row, seed: int, n: int) -> list[Bits]:
    """Values of each argument; one in eight items has all arguments equal."""
    rng, out = np.random.default_rng(seed), list[Bits]()
    for kind in row.kinds:
        width = oracle.WIDTH[kind]
        if kind == "m":
            out.append(rng.integers(0, 2, n, np.uint8))
        elif row.packed:
            halves = [operand(rng, width, n) for _ in range(2)]
            wide = np.uint32 if width == 16 else np.uint64
            out.append(halves[0].astype(wide) | halves[1].astype(wide) << wide(width))
        else:
            out.append(operand(rng, width, n))
        if kind != "m" and out[0].dtype == out[-1].dtype:
            out[-1] = np.where(np.arange(n) % 8 == 7, out[0], out[-1])
    return out


# ---------------------------------------------------------------- on the emulator


def planes_of(values: Bits, rng: np.random.Generator) -> list[Words]:
    """Registers of an argument; above 16 bits lies rubbish."""
    if values.dtype == np.uint64:
        return [(values & np.uint64(0xFFFF_FFFF)).astype(np.uint32), (values >> np.uint64(32)).astype(np.uint32)]
    if values.dtype == np.uint16:
        return [values.astype(np.uint32) | rng.integers(0, 1 << 16, len(values), np.uint32) << np.uint32(16)]
    return [values.astype(np.uint32)]


def span(first: int, dwords: int) -> str:
    return f"v{first}" if dwords == 1 else f"v[{first}:{first + dwords - 1}]"


#: Input modifiers by number of the argument: around the register, and on the bits (below, above the sign).
DECORATED = ("-{}", "|{}|", "-|{}|")


def decorated(row: Row, args: Sequence[Bits]) -> list[Bits]:
    """What DECORATED makes of arguments."""
    out = []
    for i, (kind, a) in enumerate(zip(row.kinds, args, strict=True)):
        sign = a.dtype.type(1 << oracle.WIDTH[kind] - 1)
        modified = (a ^ sign, a & ~sign, a | sign)[i % 3]
        out.append(modified if kind in "hfd" and i != row.old else a)
    return out


def sources_of(row: Row, counts: Sequence[int], decorate: bool) -> tuple[list[str], list[str], str]:
    """(lines before, source operands, operand of a mask) with argument i from register 2 i on."""
    setup, sources, mask = [f"v_mov_b32 v{OUT}, {RUBBISH:#x}"], [], ""
    for i, kind in enumerate(row.kinds):
        if kind == "m":
            setup.append(f"v_cmp_ne_u32 vcc, 0, v{2 * i}")
            mask = ", vcc"
        elif i == row.old:
            setup += [f"v_mov_b32 v{OUT + j}, v{2 * i + j}" for j in range(counts[i])]
        else:
            plain = span(2 * i, counts[i])
            sources.append(DECORATED[i].format(plain) if decorate and kind in "hfd" else plain)
    return setup, sources, mask


def text_of(arch: str, row: Row, counts: Sequence[int], decorate: bool = False) -> str:
    """The instruction between its arguments in registers and its results from OUT on."""
    setup, sources, mask = sources_of(row, counts, decorate)
    stem, show = row.name.lower(), f"v_cndmask_b32 v{OUT}, 0, 1, vcc"
    if row.name.startswith("V_CMPX"):
        where = "" if arch_of(arch).dialect != "gfx9" else "vcc, "
        return "\n".join([f"v_mov_b32 v{OUT}, 0", f"{stem} {where}{', '.join(sources)}", f"v_mov_b32 v{OUT}, 1",
                          "s_mov_b64 exec, -1"])
    if row.name.startswith("V_CMP_"):
        return "\n".join([f"{stem} vcc, {', '.join(sources)}", show])
    operands = {o.role: o.bits for r in arch_of(arch).tables.rows if r.name == row.name for o in r.operands}
    carry = ", vcc" if "D1" in operands or "_CO_" in row.name else ""
    is_mask = row.modifiers == "vcc"
    line = f"{stem} {span(OUT, max(1, operands['D0'] // 32))}{carry}, {', '.join(sources)}{mask}"
    return "\n".join([*setup, line if is_mask else f"{line} {row.modifiers}", *[show] * is_mask])


def emulated(arch: str, row: Row, args: Sequence[Bits], mode: int, tier: str, lanes: int, decorate: bool) -> tuple[Bits, Words]:
    """(results, the whole of their first register)."""
    rng = np.random.default_rng(1)
    parts = [planes_of(a, rng) for a in args]
    text = text_of(arch, row, [len(p) for p in parts], decorate)
    planes = [p for part in parts for p in (*part, *part)[:2]]  # every argument starts at an even register
    is_wide = oracle.WIDTH[row.result] << row.packed == 64
    found = sweep(arch, text, planes, 2 if is_wide else 1, mode=mode, tier=tier, lanes=lanes)
    if is_wide:
        return found[0].astype(np.uint64) | found[1].astype(np.uint64) << np.uint64(32), found[0]
    narrow = oracle.WIDTH[row.result] == 16 and not row.packed
    return (found[0].astype(np.uint16) if narrow else found[0]), found[0]


@cache
def known(arch: str) -> frozenset[str]:
    return frozenset(r.name for r in arch_of(arch).tables.rows)


def chosen(arch: str) -> list[str]:
    """Texts of the table that an architecture has."""
    dialect = arch_of(arch).dialect
    return [text for text, row in oracle.rows().items() if row.name in known(arch) and row.dialect in ("", dialect)]


@cache
def functions() -> Mapping[str, Any]:
    return oracle.compiled(tuple(oracle.rows()))


def disagreement(arch: str, text: str, *, mode: int = KEEP, n: int = N, tier: str = "native", lanes: int = 64,
                 function: Any = None, decorate: bool = False) -> list[str]:
    """The first value where emulator and host disagree, if any. decorate: with input modifiers."""
    row = oracle.rows()[text]
    args = operands(row, len(text), n)
    seen = decorated(row, args) if decorate else args
    want = oracle.expected(row, function or functions()[text], seen, mode)
    got, whole = emulated(arch, row, args, mode, tier, lanes, decorate)
    bad = np.flatnonzero(got != want)
    if len(bad):
        at = bad[0]
        shown = [hex(int(a[at])) for a in args]
        return [f"{arch} {text} mode {mode:#x}: {shown} gives {int(got[at]):#x}, not {int(want[at]):#x} ({len(bad)} of {n})"]
    return rest_of_register(arch, row, whole)


def rest_of_register(arch: str, row: Row, whole: Words) -> list[str]:
    """A 16-bit result keeps what lay above it, on CDNA but for some clears it."""
    if oracle.WIDTH[row.result] != 16 or row.packed or row.old >= 0:
        return []
    keeps = keeps_upper_half(arch, row.name)
    return [] if (whole >> np.uint32(16) == (RUBBISH >> 16 if keeps else 0)).all() else [f"{arch} {row.name}: upper half"]


def rounds(row: Row) -> bool:
    """MODE may round its result, once."""
    return row.result in "hfd" and row.rule in ("!", "^", "-", "") and not re.search("M(IN|AX|ED)|MIXLO", row.name)


# ---------------------------------------------------------------- tests

#: Of the texts of each architecture.
COUNTS = {"gfx1100": 445, "gfx1201": 434, "gfx942": 445, "gfx950": 456}
FLOAT_FREE = "swqm"


def test_table_covers_what_it_did() -> None:
    """May only grow."""
    assert {arch: len(chosen(arch)) for arch in ARCHES} == COUNTS
    floats = [t for t in chosen("gfx1100") if set(oracle.rows()[t].kinds) - set(FLOAT_FREE)]
    assert len(floats) > 150
    assert sum(rounds(oracle.rows()[t]) for t in chosen("gfx1100")) > 50


@pytest.mark.parametrize("arch", ["gfx1201", "gfx942"])
def test_a_sample_of_instructions_agrees_with_the_host(arch: str) -> None:
    """Both tiers; every instruction is a slow test's."""
    texts = tuple(t for t in SAMPLE if t in chosen(arch))
    compiled = oracle.compiled(SAMPLE)
    wrong = [w for t in texts for w in disagreement(arch, t, n=512, function=compiled[t])]
    wrong += [w for t in texts for w in disagreement(arch, t, n=64, tier="reference", function=compiled[t])]
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHES)
def test_every_instruction_agrees_with_the_host(arch: str) -> None:
    lanes = 32 if arch == "gfx1201" else 64
    wrong = [w for t in chosen(arch) for w in disagreement(arch, t, lanes=lanes)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHES)
def test_every_instruction_agrees_with_the_host_on_the_reference(arch: str) -> None:
    wrong = [w for t in chosen(arch) for w in disagreement(arch, t, n=64, tier="reference")]
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("mode", [0x00, 0xA5, 0xFA, 0x5F, 0xF4], ids=hex)
@pytest.mark.parametrize("arch", ["gfx1100", "gfx942"])
def test_rounding_and_denormals_follow_mode(arch: str, mode: int) -> None:
    """Each way of rounding with all, no, and half of the denormals; what is not arithmetic only with all flushed."""
    texts = [t for t in chosen(arch) if rounds(oracle.rows()[t]) or (not mode and set(oracle.rows()[t].kinds) & set("hfd") and not re.search("MIXLO|CUBE[ST]C", t))]
    assert len(texts) > 50
    wrong = [w for t in texts for w in disagreement(arch, t, mode=mode)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["gfx1201", "gfx950"])
def test_fp16_ovfl_saturates(arch: str) -> None:
    texts = [t for t in chosen(arch) if oracle.rows()[t].result == "h" and rounds(oracle.rows()[t])]
    assert len(texts) > 10
    wrong = [w for t in texts for w in disagreement(arch, t, mode=KEEP | oracle.FP16_OVFL)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["gfx1201", "gfx942"])
def test_input_modifiers_are_about_the_sign(arch: str) -> None:
    """Negation, absolute value, and both; packed and mixed instructions write theirs another way."""
    texts = [t for t, row in oracle.rows().items() if t in chosen(arch) and set(row.kinds) & set("hfd")
             and not row.packed and not row.modifiers and "MIX" not in t]
    assert len(texts) > 100
    wrong = [w for t in texts for w in disagreement(arch, t, decorate=True)]
    assert not wrong, "\n".join(wrong)


# ---------------------------------------------------------------- scalar floats


def scalar_rows(arch: str) -> dict[str, Row]:
    """Scalar instruction -> row of the vector instruction of that name; compares are S_CMP."""
    dialects = "", arch_of(arch).dialect
    vector = {row.name: row for row in reversed(oracle.rows().values()) if row.dialect in dialects}
    floats = {n: vector.get("V_" + n[2:]) for n in known(arch) if n.startswith("S_") and re.search("_F(16|32)", n)}
    return {n: row for n, row in sorted(floats.items()) if row is not None}


def scalar_text(name: str, row: Row) -> str:
    """Arguments of the first lane to s40 and up; the result in every lane."""
    sources = ", ".join(f"s{40 + i}" for i in range(len(row.kinds)) if i != row.old)
    setup = [f"v_readfirstlane_b32 s{50 if i == row.old else 40 + i}, v{i}" for i in range(len(row.kinds))]
    if name.startswith("S_CMP"):
        lines = [f"{name.lower()} {sources}", "s_cselect_b32 s50, 1, 0"]
    else:
        lines = [f"{name.lower()} s50, {sources}{row.modifiers}"]
    return "\n".join([*setup, *lines, f"v_mov_b32 v{OUT}, s50"])


@pytest.mark.slow
@pytest.mark.parametrize("mode", [KEEP, 0x00, 0xA5], ids=hex)
@pytest.mark.parametrize("arch", ["gfx1151", "gfx1201"])
def test_scalar_floats_are_as_vector_ones(arch: str, mode: int) -> None:
    """One value a wave; the upper half of a result of 16 bits is zero."""
    found, n, wrong = scalar_rows(arch), 1024, []
    assert len(found) > 50
    for name, row in found.items():
        args = operands(row, len(name), n)
        planes = [np.repeat(a.astype(np.uint32), 64) for a in args]
        (whole,) = sweep(arch, scalar_text(name, row), planes, 1, mode=mode)
        got, want = whole[::64], oracle.expected(row, functions()[row.text], args, mode)
        bad = np.flatnonzero(got != want)
        wrong += [f"{name}: {[hex(int(a[i])) for a in args]} gives {int(got[i]):#x}, not {int(want[i]):#x}" for i in bad[:1]]
    assert not wrong, "\n".join(wrong)
