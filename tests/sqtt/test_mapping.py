"""Packets to waves and their instructions, on traces written here."""

from __future__ import annotations

import pytest

from stuntgpu.isa.asm import assemble
from stuntgpu.sqtt.decode import decode
from stuntgpu.sqtt.encode import Writer
from stuntgpu.sqtt.layouts import GFX9, GFX11, GFX12
from stuntgpu.sqtt.mapping import Trace, Unit, map_stream
from stuntgpu.sqtt.program import Program, code_arch

ADDRESS = 0x2000_0000


def program(text: str, chip: str = "gfx1100", address: int = ADDRESS) -> Program:
    return Program.from_code(assemble(code_arch(chip), text), chip, address=address, name=f"at {address:#x}")


def mapped(writer: Writer, *programs: Program, **options: object) -> Trace:
    return map_stream(decode(writer.finish(), strict=True), programs, **options)  # type: ignore[arg-type]


def steps(trace: Trace, wave: int = 0) -> list[tuple[int, str]]:
    return [(i.time, i.step.name) for i in trace.waves[wave].issues]


LOOP = program("s_mov_b32 s0, 2\ns_delay_alu 0\nv_add_f32 v0, v1, v2\ns_cbranch_scc0 65533\ns_nop 0\ns_endpgm\n")


def looped(times: int) -> Writer:
    w = Writer(GFX11)
    w.at(10, "WAVESTART", wave=3)
    w.at(20, "INST", wave=3, op=0)
    for n in range(times):
        w.at(30 + 10 * n, "VALUINST", wave=3)
        w.at(34 + 10 * n, "INST", wave=3, op=3 if n < times - 1 else 4)
    w.at(100, "IMMEDIATE_MASK", mask=1 << 3)
    w.at(104, "WAVEEND", wave=3)
    return w


def test_instructions_follow_branches_and_step_over_silent_ones() -> None:
    trace = mapped(looped(2), LOOP)
    assert not trace.problems
    assert steps(trace) == [
        (20, "S_MOV_B32"), (30, "V_ADD_F32"), (34, "S_CBRANCH_SCC0"), (40, "V_ADD_F32"), (44, "S_CBRANCH_SCC0"),
        (100, "S_NOP"), (104, "S_ENDPGM"),
    ]  # fmt: skip
    wave = trace.waves[0]
    assert [i.duration for i in wave.issues] == [10, 4, 6, 4, 56, 4, 0]
    assert (wave.start, wave.end, wave.duration, wave.slot) == (10, 104, 94, 3)
    assert wave.issues[1].pc == ADDRESS + 8
    assert wave.issues[1].text == "v_add_f32_e32 v0, v1, v2"


def test_waves_elsewhere_have_their_times_and_no_instructions() -> None:
    w = looped(1)
    w.at(110, "WAVESTART", wave=3, simd=2)
    w.at(112, "WAVESTART", wave=3, wgp=1)
    w.at(120, "WAVEEND", wave=3, simd=2)
    trace = mapped(w, LOOP)
    assert not trace.problems
    assert [(x.place, x.simd, x.end, len(x.issues)) for x in trace.waves] == [((0, 0), 0, 104, 5), ((0, 0), 2, 120, 0), ((0, 1), 0, None, 0)]


def test_the_traced_unit_can_be_another() -> None:
    w = Writer(GFX11)
    w.at(5, "WAVESTART", wave=1, simd=1, wgp=2, sa=1)
    w.at(9, "WAVEEND", wave=1, simd=1, wgp=2, sa=1)
    trace = mapped(w, program("s_endpgm\n"), unit=Unit((1, 2), 1))
    assert steps(trace) == [(9, "S_ENDPGM")]


def registers(w: Writer, time: int, address: int) -> None:
    for index, value in ((0x0C, address >> 8 & 0xFFFFFFFF), (0x0D, address >> 40)):
        w.at(time, "REG", hi_byte=0x80, subop=index, val32=value)


def test_each_wave_runs_the_program_last_told() -> None:
    first, second = program("v_nop\ns_endpgm\n"), program("s_mov_b32 s0, 0\ns_endpgm\n", address=ADDRESS + 0x1000)
    w = Writer(GFX11)
    registers(w, 1, first.entry)
    w.at(10, "WAVESTART", wave=0)
    registers(w, 12, second.entry)
    w.at(14, "WAVESTART", wave=1)
    w.at(20, "INST", wave=1, op=0)
    w.at(21, "VALUINST", wave=0)
    w.at(30, "WAVEEND", wave=0)
    w.at(31, "WAVEEND", wave=1)
    trace = mapped(w, second, first)
    assert not trace.problems
    assert steps(trace, 0) == [(21, "V_NOP"), (30, "S_ENDPGM")]
    assert steps(trace, 1) == [(20, "S_MOV_B32"), (31, "S_ENDPGM")]


def test_a_program_nobody_gave_is_a_problem() -> None:
    w = Writer(GFX11)
    registers(w, 1, 0x1234_0000)
    w.at(10, "WAVESTART", wave=0)
    w.at(20, "WAVEEND", wave=0)
    trace = mapped(w, LOOP)
    assert "it is at 0x12340000" in str(trace.problems[0])
    assert trace.waves[0].end == 20


def test_calls_return_where_they_came_from() -> None:
    code = program("s_call_b64 s[2:3], 1\ns_endpgm\nv_nop\ns_setpc_b64 s[2:3]\n")
    w = Writer(GFX11)
    w.at(1, "WAVESTART")
    w.at(2, "INST", op=5)
    w.at(3, "VALUINST")
    w.at(4, "INST", op=0)
    w.at(5, "WAVEEND")
    trace = mapped(w, code)
    assert [name for _, name in steps(trace)] == ["S_CALL_B64", "V_NOP", "S_SETPC_B64", "S_ENDPGM"]
    assert not trace.problems


def test_execution_pairs_with_issue_in_order_of_each_pipe() -> None:
    code = program("s_load_b32 s0, s[2:3], 0\nv_add_f32 v0, v1, v2\ns_mov_b32 s1, 0\nds_load_b32 v0, v1\ns_endpgm\n")
    w = Writer(GFX11)
    w.at(1, "WAVESTART")
    w.at(2, "INST", op=1)
    w.at(3, "VALUINST")
    w.at(4, "INST", op=0)
    w.at(5, "INST", op=0x29)
    w.at(6, "ALUEXEC", src=1)
    w.at(7, "VMEMEXEC", src=3)
    w.at(8, "VMEMEXEC", src=0)
    w.at(9, "ALUEXEC", src=3)
    w.at(10, "ALUEXEC", src=1)
    w.at(11, "WAVEEND")
    trace = mapped(w, code)
    assert [i.executed for i in trace.waves[0].issues] == [6, 9, 9, 8, None]
    assert trace.loose_executions == {"salu": (1, 0)}


def test_waverdy_ends_a_stall() -> None:
    w = Writer(GFX11)
    w.at(1, "WAVESTART")
    w.at(2, "INST", op=0x13)
    w.at(90, "WAVERDY", mask=1)
    w.at(95, "WAVEEND")
    issue = mapped(w, program("s_barrier\ns_endpgm\n")).waves[0].issues[0]
    assert (issue.duration, issue.stall) == (93, ("barrier", 88))


@pytest.mark.parametrize("shown", [True, False])
def test_whether_barrier_waits_have_packets_is_found_out(shown: bool) -> None:
    code = program("s_barrier_wait -1\nv_nop\ns_endpgm\n", "gfx1200")
    w = Writer(GFX12)
    w.at(1, "WAVESTART")
    if shown:
        w.at(2, "IMMEDIATE")
    w.at(3, "VALUINST")
    w.at(4, "WAVEEND")
    trace = mapped(w, code)
    assert not trace.problems
    assert [n for _, n in steps(trace)] == ["S_BARRIER_WAIT", "V_NOP", "S_ENDPGM"][not shown :]
    assert mapped(w, code, skip_barrier_waits=shown).problems


def test_gfx9_waves_of_the_compute_unit_are_told_apart_by_simd() -> None:
    code = program("s_waitcnt 0\nv_mov_b32 v0, v1\ns_endpgm\n", "gfx950")
    w = Writer(GFX9, se=1)
    for simd in (0, 2):
        w.at(4, "WAVESTART", simd=simd, wave=5, count=16)
    w.at(8, "ISSUE", simd=2, inst5=1)
    w.at(20, "ISSUE", simd=2, inst5=3)
    w.at(24, "ISSUE", simd=2, inst5=1)
    w.at(40, "ISSUE", simd=2, inst5=2)
    w.at(44, "INST", simd=2, wave=5, op=5)
    w.at(48, "INST", simd=2, wave=5, op=15)
    w.at(52, "WAVEEND", simd=2, wave=5)
    trace = mapped(w, code)
    assert not trace.problems
    assert [(x.simd, x.lanes, x.end, len(x.issues)) for x in trace.waves] == [(0, 16, None, 0), (2, 16, 52, 2)]
    first = trace.waves[1].issues[0]
    assert (first.picked, first.time, first.stall) == (40, 44, ("arbiter", 16))


def test_a_pc_told_by_a_packet_stops_the_following() -> None:
    w = Writer(GFX9)
    w.at(4, "WAVESTART")
    w.at(8, "INST", op=5)
    w.at(12, "INST_PC", pc=0x40)
    w.at(16, "INST", op=15)
    trace = mapped(w, program("v_nop\ns_endpgm\n", "gfx950"))
    assert [n for _, n in steps(trace)] == ["V_NOP"]
    assert "is not known" in str(trace.problems[0])


def bad(*events: tuple[str, dict[str, int]]) -> list[str]:
    w = Writer(GFX11)
    for n, (name, fields) in enumerate(events):
        w.at(n + 1, name, **fields)
    return [str(p) for p in mapped(w, LOOP).problems]


START: tuple[str, dict[str, int]] = ("WAVESTART", {})


@pytest.mark.parametrize(("events", "says"), [
    ([("VALUINST", {"wave": 4})], "packet 1: an instruction of slot (4,), which has no wave"),
    ([("WAVEEND", {})], "packet 1: the wave of slot (0, 0, 0, 0) ends, its start is lost"),
    ([START, START], "packet 2: a wave starts in slot (0, 0, 0, 0) that has one; the end of the other is lost"),
    ([START, ("INST", {"op": 3})], "packet 2: slot 0: 0x20000000 is s_mov_b32 s0, 2, its packet is INST with code 0x3"),
    ([START, ("VALUINST", {})], "packet 2: slot 0: 0x20000000 is s_mov_b32 s0, 2, its packet is VALUINST"),
    ([START, ("INST", {}), ("WAVEEND", {})], "packet 3: the wave of slot 0 ends at 0x20000008, at v_add_f32_e32 v0, v1, v2"),
])  # fmt: skip
def test_what_does_not_fit_is_a_problem(events: list[tuple[str, dict[str, int]]], says: str) -> None:
    assert bad(*events) == [says]
