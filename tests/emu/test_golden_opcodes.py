"""Every opcode the architecture has, with random registers, on both tiers: same registers afterwards.

Encodings come from the shared assembler goldens. Memory instructions get addresses inside a buffer
(see `test_native` and the kernel goldens for what they do with them); here they only have to build.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

import pytest

from stuntgpu.emu.cache import cache, host
from stuntgpu.emu.forms import row
from stuntgpu.emu.fuzz.case import Case, differences, run
from stuntgpu.emu.fuzz.fuzzer import forms_of
from stuntgpu.emu.fuzz.setup import Setup
from stuntgpu.emu.handlers import build
from stuntgpu.emu.native import Native
from stuntgpu.emu.program import Code, Pool
from stuntgpu.emu.records import works_of
from stuntgpu.emu.reference import Reference
from stuntgpu.isa.decode import DecodeError, decode
from stuntgpu.isa.errors import Unmodelled
from stuntgpu.isa.inst import Inst
from stuntgpu.isa.memory_fields import segment
from stuntgpu.isa.operands import operands
from tests.emu.gaps import NATIVE, is_native_gap
from tests.shared import shared_dir

#: Architectures, and how many opcodes each has at least that run in waves of 32 and of 64.
ARCHES = {"gfx1100": 700, "gfx1201": 800, "gfx942": 550, "gfx950": 600}
#: (arch, lanes of a wave, seed); gfx950 has nearly all that gfx942 has.
WAVES = [
    pytest.param(arch, lanes, seed, marks=pytest.mark.slow if arch == "gfx942" else ())
    for arch in ARCHES for lanes, seed in ((32, 1), (64, 2)) if lanes == 64 or arch.startswith("gfx1")
]  # fmt: skip
MODES = (0xF0, 0xC0)
#: Characters of LLVM assembly of a handler, and those that may be longer: a table of 2/pi, products of matrices.
LONGEST, LONG = 60_000, ("V_TRIG_PREOP_F64", "V_WMMA_", "V_SWMMAC_")

#: Encodings whose instructions need memory, jump, or act on the wave.
APART = frozenset(("SOPP", "MIMG", "VIMAGE", "VSAMPLE", "EXP", "VEXPORT", "LDSDIR", "VDSDIR"))


def instructions(arch: str) -> Iterator[tuple[Inst, bytes, str]]:
    """Decodable goldens, two of each opcode and encoding."""
    seen: dict[tuple[str, str], int] = {}
    path = shared_dir() / "isa-spec" / "goldens" / f"asm_{arch}.jsonl"
    for line in path.read_text().splitlines():
        row = json.loads(line)
        code = bytes.fromhex(row["hex"])
        try:
            inst = decode(arch, code)
        except DecodeError:
            continue
        if is_native_gap(inst.name):
            continue
        key = (inst.name, inst.encoding)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] <= 2:
            yield inst, code, row["asm"]


def is_apart(inst: Inst) -> bool:
    if inst.base in APART or (segment(inst) and "PERM" not in inst.name):
        return True
    try:
        return any("PC" in row(p.arch, p.name).writes for p in inst.halves)
    except Unmodelled:
        return True


def fits(inst: Inst, lanes: int) -> bool:
    """The goldens are wave32 code: in wave64 a lane mask takes a pair, which starts at an even number."""
    return lanes == 32 or all(o.reg % 2 == 0 for p in inst.halves for o in operands(p) if o.bits == 1)


def one_of_each(arch: str, lanes: int, rng: random.Random) -> list[tuple[Inst, bytes, str]]:
    """An instruction per opcode, in one of its encodings."""
    by_name: dict[str, list[tuple[Inst, bytes, str]]] = {}
    for item in instructions(arch):
        if not is_apart(item[0]) and fits(item[0], lanes):
            by_name.setdefault(item[0].name, []).append(item)
    return [rng.choice(items) for items in by_name.values()]


def case_of(inst: Inst, code: bytes, lanes: int, mode: int, rng: random.Random) -> Case:
    """The instruction in a random state."""
    setup = Setup(inst.arch, lanes, rng)
    setup.fill([inst])
    setup.m0 = 1 if "REL" in inst.name else setup.m0
    return Case(inst.arch, lanes, (code,), setup.init(mode), rng.randrange(8))


@pytest.mark.parametrize(("arch", "lanes", "seed"), WAVES)
def test_golden_opcodes_do_the_same_on_both_tiers(arch: str, lanes: int, seed: int) -> None:
    rng, native, reference = random.Random(seed), Native(arch), Reference(arch)
    work = [(*item, MODES[i % 2]) for i, item in enumerate(one_of_each(arch, lanes, rng))]
    cache().handlers(f for inst, _, _, mode in work for f in forms_of(inst, lanes, mode))
    wrong = []
    for inst, code, asm, mode in work:
        case = case_of(inst, code, lanes, mode | rng.choice((0, 0x100, 0x300)), rng)
        if found := differences(run(native, case), run(reference, case)):
            wrong.append(f"{asm} (mode {mode:#x}, exec {case.init.exec_mask:#x}): {found[0]}")
    assert len(work) > ARCHES[arch]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("arch", ARCHES)
def test_golden_forms_all_build(arch: str) -> None:
    """What has semantics has a handler: no opcode is left to fault as unmodelled in this tier alone."""
    refused = {"S_SENDMSGHALT"}  # an action behind an action: nothing to send it to
    forms = {f for inst, _, _ in instructions(arch) for f in forms_of(inst, 32, 0xF0) if f.name not in refused}
    assert len(forms) > 2000
    lengths = {f.name: len(build(f, host()).text) for f in forms}
    assert all(lengths.values())
    assert not [name for name, n in lengths.items() if n > LONGEST and not name.startswith(LONG)]  # LLVM takes seconds over them


@pytest.mark.parametrize("arch", ARCHES)
def test_golden_gaps_are_real(arch: str) -> None:
    """No entry of the list of gaps has a handler."""
    path = shared_dir() / "isa-spec" / "goldens" / f"asm_{arch}.jsonl"
    texts = [json.loads(line) for line in path.read_text().splitlines()]
    insts = [i for i in (decode(arch, bytes.fromhex(r["hex"])) for r in texts) if is_native_gap(i.name)]
    assert len(insts) >= len(NATIVE)
    assert not [str(i) for i in insts if any(not w.reason for w in works_of(Code(0, i.size, i), 32, 0, Pool(32)))]
