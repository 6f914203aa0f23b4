"""`python -m benchmarks.sqtt`: speed of the trace decoder on the recorded traces of ../shared/goldens/sqtt.

columns   decoding to columns, with times.
packets   the same and every packet as an object with its place and time.
encode    packets back to bytes.
map       packets to waves and instructions; counts packets too.

Million packets per CPU second over all captures of a chip, the best of three.
"""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click

from stuntgpu.sqtt.decode import decode
from stuntgpu.sqtt.encode import encode
from stuntgpu.sqtt.mapping import map_stream
from stuntgpu.sqtt.program import Program

SHARED = Path(os.environ.get("STUNTGPU_SHARED") or Path(__file__).resolve().parents[2] / "shared")
ROUNDS = 3


@dataclass(frozen=True)
class Case:
    """One buffer and the kernels of its capture."""

    buffer: bytes
    programs: list[Program]


def cases(chip: Path) -> list[Case]:
    """All buffers of a chip's captures."""
    found = []
    for path in sorted(chip.glob("*/manifest.json")):
        manifest = json.loads(path.read_text())
        programs = [
            Program.from_code(bytes.fromhex(k["text_hex"]), chip.name, address=k["load_base"] + k["text_addr"])
            for k in manifest["kernels"]
        ]
        found += [Case(gzip.decompress((path.parent / t["file"]).read_bytes()), programs) for t in manifest["traces"]]
    return found


WORK: dict[str, Callable[[Case], object]] = {
    "columns": lambda c: decode(c.buffer).times,
    "packets": lambda c: list(decode(c.buffer)),
    "encode": lambda c: encode(decode(c.buffer)),
    "map": lambda c: map_stream(decode(c.buffer), c.programs),
}


def rate(work: Callable[[Case], object], work_on: list[Case]) -> float:
    """Million packets per CPU second."""
    n_packets, best = sum(len(decode(c.buffer)) for c in work_on), float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        for case in work_on:
            work(case)
        best = min(best, time.process_time() - start)
    return n_packets / best / 1e6


@click.command(help=__doc__)
def main() -> None:
    click.echo(f"{'chip':10}" + "".join(f"{name:>10}" for name in WORK))
    for chip in sorted(p for p in (SHARED / "goldens" / "sqtt").iterdir() if p.is_dir()):
        work_on = cases(chip)
        click.echo(f"{chip.name:10}" + "".join(f"{rate(work, work_on):10.2f}" for work in WORK.values()))


if __name__ == "__main__":
    main()
