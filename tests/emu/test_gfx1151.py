"""gfx1151 executes: its scalar floats on both tiers, a program asserted on hardware, kernels compiled for it."""

from __future__ import annotations

import random
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from stuntgpu.emu import Gpu
from stuntgpu.isa.gen.additions import NAMES
from tests.emu import golden_instr as golden
from tests.emu.rdna import TIERS, Bench
from tests.emu.test_golden_kernels import arguments, mismatch, rows_of
from tests.isa.rows import HARD
from tests.kernels.build import LANGUAGES, TIMEOUT_S, clang
from tests.kernels.cases import Build, builds
from tests.kernels.test_kernels import BUDGET, run
from tests.shared import shared_dir

ARCH = "gfx1151"
#: Rounding modes of F32 and of F16 and F64, denormals kept or flushed, IEEE.
MODES = (0xF0, 0x00, 0xC5, 0x3A, 0xFF, 0x2F0)
#: Instructions of two operands with the same instruction of the vector unit, and of one.
BINARY = [f"{op}_{f}" for op in ("add", "sub", "mul", "min", "max") for f in ("f16", "f32")]
UNARY = [f"{op}_{f}" for op in ("ceil", "floor", "trunc", "rndne") for f in ("f16", "f32")]
CONVERSIONS = ["cvt_f32_i32", "cvt_f32_u32", "cvt_i32_f32", "cvt_u32_f32", "cvt_f16_f32", "cvt_f32_f16"]


def values(rng: random.Random, name: str) -> list[int]:
    hard = HARD[16] if "f16" in name and "f32_f16" not in name else HARD[32]
    return [*rng.sample(hard, 6), rng.getrandbits(32), rng.getrandbits(32)]


def lines(name: str, rng: random.Random) -> str:
    """The instruction on eight pairs of values: results s[8:15], conditions s[16:23]."""
    out = []
    for i, (a, b) in enumerate(zip(values(rng, name), values(rng, name), strict=True)):
        n_sources = 1 if f"s_{name}" in ONE_SOURCE else 2
        dst = "" if name.startswith("cmp_") else f"s{8 + i}, "
        sources = ["s2", "s3"][:n_sources]
        if name in ("fmaak_f32", "fmamk_f32"):
            sources.insert(2 if name == "fmaak_f32" else 1, f"0x{rng.getrandbits(32):x}")
        out += [f"s_mov_b32 s2, 0x{a:x}", f"s_mov_b32 s3, 0x{b:x}", f"s_mov_b32 s{8 + i}, 0x{rng.getrandbits(32):x}",
                f"s_{name} {dst}{', '.join(sources)}", f"s_cselect_b32 s{16 + i}, 1, 0"]
    return "\n".join(out)


ONE_SOURCE = {f"s_{x}" for x in (*UNARY, *CONVERSIONS, "cvt_hi_f32_f16")}


def test_scalar_floats_end_alike_on_both_tiers() -> None:
    benches, rng, seen = [Bench(ARCH, tier) for tier in TIERS], random.Random(1151), set()
    for name in sorted(n.removeprefix("S_").lower() for n in NAMES[ARCH]):
        text, mode = lines(name, rng), rng.choice(MODES)
        reference, native = (bench(text, mode=mode) for bench in benches)
        assert reference == native, (name, hex(mode), text)
        seen.add(reference.sgprs[8:24])
    assert len(seen) == len(NAMES[ARCH])


@pytest.mark.parametrize("name", [*BINARY, *UNARY, *CONVERSIONS])
def test_scalar_floats_do_what_the_vector_unit_does(name: str) -> None:
    bench, rng = Bench(ARCH, "reference"), random.Random(name)
    for mode in MODES:
        a, b = values(rng, name), values(rng, name)
        unary = name not in BINARY
        scalar = [f"s_{name} s{8 + i}, s{24 + i}" + ("" if unary else f", s{40 + i}") for i in range(8)]
        text = "\n".join([*scalar, f"v_{name} v0, v1" + ("" if unary else ", v2")])
        pad = [0] * 24
        final = bench(text, {1: [*a, *pad], 2: [*b, *pad]}, {24 + i: x for i, x in enumerate(a)} | {40 + i: x for i, x in enumerate(b)}, mode=mode)
        low = 0xFFFF if (name.endswith("f16") and not name.startswith("cvt")) or name == "cvt_f16_f32" else 0xFFFF_FFFF
        assert [x & low for x in final.sgprs[8:16]] == [x & low for x in final.vgprs[0][:8]], hex(mode)


@pytest.mark.parametrize("tier", TIERS)
def test_golden_scalar_multiply_add_of_hardware_holds(tier: str) -> None:
    executor, memory = TIERS[tier](ARCH), golden.Memory()
    rows = [g for g in golden.read(shared_dir() / "goldens" / "instr_rdna3.jsonl") if g.target == "gfx1150"]
    assert [g.mnemonics for g in rows] == ["s_mov_b32, s_fmamk_f32"]
    assert not [line for g in rows for line in golden.failures(executor, memory, g)]


@pytest.mark.parametrize("tier", TIERS)
def test_dpp_with_a_scalar_second_source(tier: str) -> None:
    final = Bench(ARCH, tier)("v_add_nc_u32_e64_dpp v0, v1, s2 quad_perm:[1,0,3,2]", {1: list(range(32))}, {2: 100})
    assert list(final.vgprs[0]) == [100 + (i ^ 1) for i in range(32)]


# ---------------------------------------------------------------- kernels


def compiled(source: Path, made: Path) -> Path:
    """As the corpus was compiled: for uniform workgroups, and it knows RDNA by gfx1100's name."""
    words = [word.format(arch=ARCH) for word in LANGUAGES[source.suffix[1:]] if word != "-fno-offload-uniform-block"]
    command = [clang(), *words, "-nogpulib", "-O2", "-D__gfx1100__", f"-I{source.parent}", str(source), "-o", str(made)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr[:3000]
    return made


def cases() -> list[str]:
    return [r["case"] for r in rows_of("kernels/cases.json", "gfx1100") if r] or ["none"]


@pytest.mark.slow
@pytest.mark.parametrize("name", cases())
def test_golden_kernels_compiled_for_it_are_right(name: str, tmp_path: Path) -> None:
    (case,) = (r for r in rows_of("kernels/cases.json", "gfx1100") if r and r["case"] == name)
    stem = Path(case["object"]).stem
    (source,) = (shared_dir() / "kernels" / "src").glob(f"{stem}.*")
    made = compiled(source, tmp_path / f"{stem}.hsaco")
    for tier in TIERS:
        args, expected = arguments(case)
        Gpu(ARCH, tier=tier).load(made)[case["kernel"]](*args, grid=tuple(case["grid"]), workgroup=tuple(case["workgroup"]))
        for i, want in expected.items():
            assert mismatch(args[i], want, *case["tolerance"].get(str(i), (0.0, 0.0))) == "", (tier, i)


@pytest.mark.slow
@pytest.mark.parametrize("build", [replace(b, arch=ARCH) for b in builds() if b.arch == "gfx1100" and b.lanes == 32], ids=str)
def test_kernels_of_gfx1100_compiled_for_it_agree_with_numpy(build: Build) -> None:
    run(build, build.case.n, Gpu(ARCH, seed=1, threads=2, max_wave_instructions=BUDGET))
