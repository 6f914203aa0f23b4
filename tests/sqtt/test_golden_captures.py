"""Traces that hardware wrote: packets, times, instructions and bytes are those recorded with them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from stuntgpu.sqtt.decode import Stream, decode
from stuntgpu.sqtt.encode import encode
from stuntgpu.sqtt.mapping import Trace, map_stream
from tests.sqtt.captures import CHIPS, Recorded, captures, folder, recorded, sample

#: A field that the recorded rows of gfx950 call otherwise than the format's description.
OTHER_NAMES = {"me_raw": "me"}
CHIPS_SLOW = [pytest.param(chip, marks=pytest.mark.slow) for chip in CHIPS]


def rows_of(stream: Stream) -> list[Any]:
    """The stream as the recorded rows have it."""
    prefix = "CDNA_" if stream.layout.name == "gfx9" else ""
    named = {k.NAME: k.NAME if k.NAME == "LAYOUT_HEADER" else prefix + k.NAME for k in stream.layout}
    return [[e.offset // 4, e.packet.bits // 4, e.time, named[e.packet.NAME], e.packet.fields] for e in stream]


def expected_rows(trace: Recorded) -> list[Any]:
    rows = trace.packets
    for row in rows:
        row[4] = {OTHER_NAMES.get(name, name): value for name, value in row[4].items()}
    return rows


def instructions_of(trace: Trace, load_base: int) -> list[Any]:
    """The instructions as the recorded rows have them.

    On RDNA a wave that no packet told of has a row too: its end, at the first word of the program.
    """
    has_simd = trace.stream.layout.name == "gfx9"
    rows = [
        [i.packet, i.pc - load_base, *([w.simd] if has_simd else []), w.slot, i.step.code.hex(),
         i.step.name.lower().replace(" ", "")] for w, i in trace.issues
    ]  # fmt: skip
    if not has_simd:
        for w in trace.waves:
            if w.program is not None and w.end_pc is not None and not w.issues:
                rows.append([w.end_packet, w.end_pc - load_base, w.slot, w.program.at(w.end_pc).code[:4].hex(), "s_endpgm"])
    return sorted(rows)


def plain_name(row: list[Any]) -> list[Any]:
    """A recorded row with the mnemonic as the tables have it: without the suffix of its encoding."""
    return [*row[:-1], row[-1].removesuffix("_e32").removesuffix("_e64")]


def check_packets(trace: Recorded) -> None:
    stream = decode(trace.buffer, strict=True)
    assert stream.report.is_clean, trace
    got, expected = rows_of(stream), expected_rows(trace)
    if got != expected:
        wrong = next((i for i, (a, b) in enumerate(zip(got, expected, strict=False)) if a != b), min(len(got), len(expected)))
        pytest.fail(f"{trace}: {len(got)} packets of {len(expected)}; number {wrong}: {got[wrong:wrong + 1]} not {expected[wrong:wrong + 1]}")
    assert encode(stream) == trace.buffer, trace


def check_instructions(trace: Recorded) -> Trace:
    mapped = map_stream(decode(trace.buffer), trace.programs)
    assert not mapped.problems, (str(trace), list(map(str, mapped.problems[:3])))
    got, expected = instructions_of(mapped, trace.load_base), sorted(map(plain_name, trace.instructions))
    assert len(got) == len(expected), trace
    for mine, recorded_row in zip(got, expected, strict=True):
        # hardware runs code that no table names; all but the name is then compared
        assert mine == (recorded_row if mine[-1] else [*recorded_row[:-1], ""]), trace
    return mapped


@pytest.mark.parametrize("chip", CHIPS)
def test_short_traces_are_read_as_recorded(chip: str) -> None:
    traces = sample(chip)
    if not traces:
        pytest.skip(f"no capture of {chip} is short")
    for trace in traces:
        check_packets(trace)
        check_instructions(trace)


@pytest.mark.parametrize("chip", CHIPS_SLOW)
def test_every_packet_is_the_recorded_one_and_encodes_to_its_bytes(chip: str) -> None:
    traces = list(recorded(chip))
    if not traces:
        pytest.skip(f"no captures of {chip}")
    for trace in traces:
        check_packets(trace)


@pytest.mark.parametrize("chip", CHIPS_SLOW)
def test_every_instruction_is_the_recorded_one(chip: str) -> None:
    executed: Counter[bool] = Counter()
    for trace in recorded(chip):
        mapped = check_instructions(trace)
        waves = [w for w in mapped.waves if w.issues]
        assert all(w.issues[-1].step.is_end for w in waves if w.end is not None), trace
        executed.update(bool(mapped.loose_executions.get(i.step.pipe)) for w in waves for i in w.issues)
    assert executed[True] <= 0.01 * executed.total(), f"{executed[True]} instructions of pipes that do not pair up"


@pytest.mark.parametrize("chip", CHIPS)
def test_kernels_are_found_by_the_program_address_the_trace_holds(chip: str) -> None:
    """All kernels of a capture are offered; the register packets tell which one ran."""
    capture = next((c for c in captures(chip) if len(c.programs) > 1), None)
    if capture is None:
        pytest.skip(f"no capture of {chip} has several kernels")
    for trace in [t for t in capture.traces if t.row.get("map_file")][:2]:
        ran = {w.program.name for w in map_stream(decode(trace.buffer), capture.programs).waves if w.program}
        assert ran == {capture.programs[trace.row["kernel"]].name}, trace


def test_no_chip_is_left_out() -> None:
    assert {p.name for p in folder().iterdir() if any(p.glob("*/manifest.json"))} <= set(CHIPS)
