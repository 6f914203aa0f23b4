"""Programs of built instructions: labels, text, and kernels that run."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stuntgpu.emu import Gpu
from stuntgpu.isa import rdna3, rdna4
from stuntgpu.isa.asm import assemble
from stuntgpu.isa.build_program import Pending
from stuntgpu.isa.rdna3 import Label, s, v, vcc_lo
from tests.shared import ROOT, shared_dir

GFX = "gfx1100"


def blocks(path: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL)


@pytest.mark.parametrize("number", [0, 1])
def test_example_of_the_docs_runs(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    found = blocks(ROOT / "docs" / "builders.md")
    assert len(found) == 2
    exec(compile(found[number], "builders.md", "exec"), {})
    shown = re.search(r"print\(.*# (.*)", found[number])
    assert capsys.readouterr().out.strip() == (shown[1] if shown else "")


def collatz() -> rdna3.Program:
    """steps[i]: how often i + 1 is halved or tripled until it is 1; every lane loops its own time."""
    with rdna3.Program() as p:
        p.s_load_b64(s[4:5], s[0:1], 0)
        p.v_lshlrev_b32(v[1], 2, v[0])
        p.v_add_nc_u32(v[0], 1, v[0])
        p.v_mov_b32(v[2], 0)
        p.s_mov_b32(s[6], rdna3.exec_lo)
        loop, done = p.label("loop"), Label("done")
        p.v_cmpx_lt_u32(1, v[0])
        p.s_cbranch_execz(done)
        p.v_and_b32(v[3], 1, v[0])
        p.v_cmp_eq_u32(vcc_lo, 1, v[3])
        p.v_lshrrev_b32(v[4], 1, v[0])
        p.v_mad_u32_u24(v[5], v[0], 3, 1)
        p.v_cndmask_b32(v[0], v[4], v[5], vcc_lo)
        p.v_add_nc_u32(v[2], 1, v[2])
        p.s_branch(loop)
        p.add(done)
        p.s_mov_b32(rdna3.exec_lo, s[6])
        p.s_waitcnt(lgkmcnt=0)
        p.global_store_b32(v[1], v[2], s[4:5])
        p.s_endpgm()
    return p


def steps(n: int) -> int:
    return 0 if n == 1 else 1 + steps(n // 2 if n % 2 == 0 else 3 * n + 1)


@pytest.mark.parametrize("tier", ["reference", "native"])
def test_kernel_with_a_loop_runs(tier: str) -> None:
    out = np.zeros(32, np.uint32)
    Gpu(GFX, tier=tier).load_raw(bytes(collatz()))(out, grid=32, workgroup=32)
    assert out.tolist() == [steps(i + 1) for i in range(32)]


def test_text_assembles_to_the_same_bytes() -> None:
    p = collatz()
    p.add(b"\x01\x02\x03\x04", b"")
    assert assemble(GFX, str(p)) == assemble(GFX, p.text) == bytes(p)
    assert "\ts_cbranch_execz done\n" in str(p)
    assert p.size == len(bytes(p))
    assert [pc for pc, _ in p.instructions()][:3] == [0, 8, 12]


@settings(max_examples=60, deadline=None)
@given(where=st.lists(st.integers(0, 20), min_size=1, max_size=6), data=st.data())
def test_branches_reach_their_labels(where: list[int], data: st.DataObject) -> None:
    labels = [Label(f"at{i}") for i in range(len(where))]
    p = rdna3.Program()
    for i in range(21):
        p.add(*(label for label, at in zip(labels, where, strict=True) if at == i))
        p.s_branch(data.draw(st.sampled_from(labels)))
        p.s_add_u32(s[0], s[0], labels[-1] - labels[0])
    assert assemble(GFX, str(p)) == bytes(p)
    for (pc, inst), item in zip(p.instructions(), (x for x in p.items if not isinstance(x, Label)), strict=True):
        if inst.name == "S_BRANCH":
            assert isinstance(item, Pending)
            distance = (inst.fields["SIMM16"] ^ 0x8000) - 0x8000
            assert pc + 4 + 4 * distance == p.labels[repr(item).split()[1]]


def test_distance_of_labels_is_a_literal_even_when_small() -> None:
    start, end = Label("start"), Label("end")
    p = rdna3.Program([start, rdna3.s_nop(0), end])
    p.v_add_nc_u32(v[0], end - start + 4, v[1])
    assert [str(i) for _, i in p.instructions()][-1] == "v_add_nc_u32_e32 v0, lit(0x8), v1"
    assert repr(p.items[-1]) == "v_add_nc_u32 v0, end-start+4, v1"


def test_labels_without_a_name_get_one() -> None:
    p = rdna3.Program([Label("L0")])
    assert (p.label().name, p.label().name) == ("L1", "L2")


def test_label_that_is_not_placed_is_an_error() -> None:
    p = rdna3.Program([rdna3.s_nop(0), rdna3.s_branch(Label("nowhere"))])
    message = "s_branch nowhere at 0x4: label nowhere is not placed"
    with pytest.raises(ValueError, match=message), p:
        pass
    with pytest.raises(ValueError, match=message):
        bytes(p)


@pytest.mark.parametrize(("item", "message"), [
    (Label("v0"), "name of a register"), (Label("vcc"), "name of a register"), (Label("here"), "placed twice"),
])  # fmt: skip
def test_label_that_cannot_be_placed_is_an_error(item: Label, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rdna3.Program([Label("here"), item])


def test_label_needs_a_name() -> None:
    with pytest.raises(ValueError, match="no name"):
        Label("a b")


def test_target_out_of_reach_is_an_error() -> None:
    far = Label("far")
    p = rdna3.Program([rdna3.s_branch(far), bytes(4 * 0x8001), far])
    with pytest.raises(ValueError, match="out of reach"):
        bytes(p)


def test_program_takes_instructions_of_its_architecture_only() -> None:
    with pytest.raises(TypeError, match="of gfx1201, the program is of gfx1100"):
        rdna3.Program([rdna4.s_nop(0)])
    with pytest.raises(TypeError, match="no instruction"):
        rdna3.Program().add("s_nop 0")  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match="did you mean s_endpgm"):
        rdna3.Program().s_endprgm()


def test_program_completes_names() -> None:
    names = dir(rdna3.Program())
    assert {"v_add_f32", "v_add_f32_e64", "label", "add"} <= set(names)
    assert "v_dual_mul_f32" not in names


# ---------------------------------------------------------------- source


def rebuilt(source: str) -> rdna3.Program:
    names: dict[str, object] = {}
    exec(source, names)
    made = names["p"]
    assert isinstance(made, rdna3.Program)
    return made


def test_source_makes_the_program_again() -> None:
    p = collatz()
    p.add(b"\xff\xff\xff\xff", rdna3.v_mul_f32(v[0], v[1], v[2]) & rdna3.v_mov_b32(v[3], 0))
    p.add(Label("v"), Label("v_"), Label("a.b"))  # names that Python or the module has taken
    p.s_branch(Label("v"))
    p.s_call_b64(s[4:5], Label("a.b"))
    p.v_add_nc_u32(v[0], Label("a.b") - Label("loop") + 4, v[1], clamp=True)
    p.v_add_nc_u32(v[0], Label("a.b") - Label("loop"), rdna3.bits(1.0), clamp=True)
    again = rebuilt(p.source)
    assert bytes(again) == bytes(p)
    assert again.source == p.source


def test_symbols_become_labels_where_they_can() -> None:
    code = bytes(rdna3.Program([rdna3.s_branch(0), rdna3.v_add_f32_e64(v[0], v[1], v[2]), rdna3.s_endpgm()]))
    symbols = {0: "start", 4: "v0", 8: "inside", 12: "f(int)", 16: "end"}
    p = rdna3.Program.from_bytes(code, symbols)
    assert p.labels == {"start": 0, "L0": 4, "end": 16}
    assert rdna3.Program.from_bytes(code, {0: "twice", 12: "twice"}).size == len(code)


def test_source_shows_branches_with_labels() -> None:
    source = rdna3.Program.from_bytes(bytes(collatz())).source
    assert "    p.s_cbranch_execz(L1)\n" in source
    assert "    p.add(L0)\n    p.v_cmpx_lt_u32_e32(1, v[0])\n" in source


def test_golden_kernels_become_source_and_back() -> None:
    for path in sorted((shared_dir() / "bench-kernels").glob("*.s")):
        code = assemble(GFX, path.read_text())
        p = rdna3.Program.from_bytes(code)
        assert bytes(p) == code == assemble(GFX, str(p)) == bytes(rebuilt(p.source)), path.name


def test_what_is_no_instruction_stays_bytes() -> None:
    code = bytes(rdna3.s_branch(0x7FFF)) + b"\xff\xff\xff\xff\x01"
    p = rdna3.Program.from_bytes(code)
    assert p.items[1:] == [b"\xff\xff\xff\xff", b"\x01"]
    assert bytes(p) == code
