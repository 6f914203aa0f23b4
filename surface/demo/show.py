"""Runs the demonstration and prints it."""

from __future__ import annotations

import os
import time

import click

from stuntgpu import demo

DEFAULT_DEV = "MOCKKFD+AMD"


def main(*, draw: bool = True) -> int:
    """Prints each kernel's output and verdict. Returns the exit code: 0 when all results are right."""
    from stuntgpu.runtime import Device

    os.environ.setdefault("DEV", DEFAULT_DEV)
    started = time.perf_counter()
    dev = Device()
    click.echo(f"DEV={os.environ['DEV']}: {dev.arch}")
    wrong = 0
    for result in demo.run(dev):
        wrong += bool(result.wrong)
        verdict = click.style("PASS", fg="green") if not result.wrong else click.style("FAIL", fg="red")
        click.echo(f"\n{result.kernel}: {result.out.size} results, {result.wrong} wrong  {verdict}")
        if draw or result.kernel != "mandelbrot":
            for line in result.picture(result.out):
                click.echo(line)
    click.echo(f"\n{time.perf_counter() - started:.2f} s")
    return min(wrong, 1)
