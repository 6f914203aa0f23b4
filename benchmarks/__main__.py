"""`python -m benchmarks`: million wave-instructions per CPU second, for every case.

warm    launches after the first, median of several rounds.
first   the first launch of a fresh process whose code cache is filled.
cold    the first launch of a fresh process with an empty code cache: compilation counts.

CPU seconds are those of the whole process, all its threads, around the launches alone.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from benchmarks.cases import CASES, ROOT
from stuntgpu.emu import Gpu

#: A warm round launches until this much CPU time has gone, so that the clock's step does not show.
ROUND_SECONDS = 0.05
ROUNDS = 9
PROCESS_TIMEOUT_S = 600


@dataclass(frozen=True)
class Result:
    """One case: rates in million wave-instructions per CPU second; first-launch times in milliseconds."""

    case: str
    wave_instructions: int
    warm: float
    first: float | None = None
    first_ms: float | None = None
    cold: float | None = None
    cold_ms: float | None = None


def first_launch(name: str, arch: str, tier: str) -> tuple[int, float]:
    """(wave-instructions, CPU seconds) of this process's first launch of a case. Raises WrongResult."""
    case = CASES[name]
    kernel = case.kernel(Gpu(arch, tier=tier))
    start = time.process_time()
    count = case.launch(kernel)
    seconds = time.process_time() - start
    case.check()
    return count, seconds


def warm_rate(name: str, arch: str, tier: str, rounds: int) -> tuple[int, float]:
    """(wave-instructions of a launch, median rate over rounds). Raises WrongResult."""
    case = CASES[name]
    kernel = case.kernel(Gpu(arch, tier=tier))
    count = case.launch(kernel)
    case.check()
    rates = []
    for _ in range(rounds):
        executed, start = 0, time.process_time()
        while (spent := time.process_time() - start) < ROUND_SECONDS:
            executed += case.launch(kernel)
        rates.append(executed / spent / 1e6)
    case.check()
    return count, statistics.median(rates)


def _in_fresh_process(name: str, arch: str, tier: str, cache: str) -> tuple[float, float]:
    """(rate, milliseconds) of the first launch in a new process that uses `cache`."""
    command = [sys.executable, "-m", "benchmarks", "--arch", arch, "--tier", tier, "--only-first-launch", name]
    done = subprocess.run(command, env={**os.environ, "STUNTGPU_CACHE": cache}, cwd=ROOT, capture_output=True, text=True,
                          timeout=PROCESS_TIMEOUT_S, check=False)
    if done.returncode:
        raise click.ClickException(f"{name}: the fresh process failed:\n{done.stderr.strip()}")
    count, seconds = json.loads(done.stdout)
    return count / seconds / 1e6, seconds * 1e3


def measure(name: str, arch: str, tier: str, rounds: int, fresh: bool) -> Result:
    """One case's result; without `fresh` only its warm rate."""
    count, warm = warm_rate(name, arch, tier, rounds)
    if not fresh:
        return Result(name, count, warm)
    with tempfile.TemporaryDirectory(prefix="stuntgpu-cold-") as cache:
        cold, cold_ms = _in_fresh_process(name, arch, tier, cache)
        first, first_ms = _in_fresh_process(name, arch, tier, cache)
    return Result(name, count, warm, first, first_ms, cold, cold_ms)


# ---------------------------------------------------------------- what is printed

HEADS = ("case", "wave-instructions", "warm M/s", "first M/s", "first ms", "cold M/s", "cold ms")


def row(result: Result, before: Result | None) -> tuple[str, ...]:
    """Cells of one result; with an earlier one, the ratio of the warm rates."""
    def number(value: float | None) -> str:
        return "" if value is None else f"{value:,.3g}" if value < 100 else f"{value:,.0f}"

    cells = [result.case, f"{result.wave_instructions:,}"]
    cells += [number(v) for v in (result.warm, result.first, result.first_ms, result.cold, result.cold_ms)]
    return (*cells, f"{result.warm / before.warm:.2f}x") if before else tuple(cells)


def table(rows: Sequence[Sequence[str]], *, markdown: bool) -> str:
    """Rows with aligned columns; the first row is the head."""
    width = [max(len(r[i]) if i < len(r) else 0 for r in rows) for i in range(max(map(len, rows)))]
    full = [[*r, *[""] * (len(width) - len(r))] for r in rows]
    lines = [[c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(r, width, strict=True))] for r in full]
    if not markdown:
        return "\n".join("  ".join(line).rstrip() for line in lines)
    rule = ["-" * width[0], *("-" * (w - 1) + ":" for w in width[1:])]
    return "\n".join("| " + " | ".join(line) + " |" for line in (lines[0], rule, *lines[1:]))


def _read(path: Path | None) -> dict[str, Result]:
    return {} if path is None else {r["case"]: Result(**r) for r in json.loads(path.read_text())["results"]}


@click.command(help=__doc__)
@click.argument("names", nargs=-1, metavar="[CASE]...")
@click.option("--arch", default="gfx1100", show_default=True)
@click.option("--tier", type=click.Choice(["native", "reference"]), default="native", show_default=True)
@click.option("--rounds", default=ROUNDS, show_default=True, help="Warm rounds; their median is shown.")
@click.option("--fresh/--no-fresh", default=True, help="Also measure first launches in fresh processes.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for --against.")
@click.option("--markdown", is_flag=True, help="Print a markdown table.")
@click.option("--against", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Earlier --json output to compare with.")
@click.option("--only-first-launch", "only", metavar="CASE", hidden=True)
def main(names: tuple[str, ...], arch: str, tier: str, rounds: int, fresh: bool, as_json: bool, markdown: bool,
         against: Path | None, only: str | None) -> None:
    if only is not None:
        click.echo(json.dumps(first_launch(only, arch, tier)))
        return
    if unknown := [n for n in names if n not in CASES]:
        raise click.UsageError(f"no case {unknown[0]!r}; there are: {', '.join(map(repr, CASES))}")
    before = _read(against)
    results = [measure(n, arch, tier, rounds, fresh) for n in names or CASES]
    if as_json:
        click.echo(json.dumps({"arch": arch, "tier": tier, "results": [asdict(r) for r in results]}, indent=1))
        return
    heads = (*HEADS, "warm, against") if before else HEADS
    click.echo(table([heads, *(row(r, before.get(r.case)) for r in results)], markdown=markdown))


if __name__ == "__main__":
    main()
