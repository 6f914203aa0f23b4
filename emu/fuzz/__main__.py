"""`python -m stuntgpu.emu.fuzz --arch A --minutes N --seed S`: exit code 1 when the tiers differ."""

from __future__ import annotations

import re
import sys

import click

from stuntgpu.emu.fuzz.fuzzer import Fuzzer
from stuntgpu.emu.fuzz.report import as_pytest
from stuntgpu.isa.arch import ARCHES


@click.command(name="python -m stuntgpu.emu.fuzz")
@click.option("--arch", type=click.Choice(list(ARCHES)), required=True, help="Architecture to try.")
@click.option("--minutes", type=float, default=1.0, show_default=True, help="How long; 0 for as long as --count says.")
@click.option("--count", type=int, default=0, help="Cases to run at most; 0 for any number.")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed draws the same cases.")
@click.option("--only", default="", help="Regular expression of instruction names, such as 'V_ADD|DS_'.")
def main(arch: str, minutes: float, count: int, seed: int, only: str) -> None:
    """Random instructions on reference and native code; what differs is printed as tests."""
    pattern = re.compile(only, re.IGNORECASE)
    fuzzer = Fuzzer(arch, seed, lambda name: bool(pattern.search(name)))
    for find in fuzzer.run(60 * minutes, count):
        click.echo(as_pytest(find.case, find.differences) + "\n")
    result = fuzzer.result
    click.echo(f"{arch}, seed {seed}: {result.cases} cases, {result.instructions} instructions of {len(result.names)} kinds, "
               f"{result.faults} ended in a fault; the tiers differ in {len(result.finds)}")
    if result.unmodelled:
        click.echo("not built on either tier: " + ", ".join(sorted(result.unmodelled)))
    sys.exit(bool(result.finds))


if __name__ == "__main__":
    main()
