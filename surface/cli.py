"""The `stuntgpu` command. Each subcommand imports what it needs, so that `--help` is instant.

Exit codes: 0 done; 1 an error that the message explains (a kernel's fault included); 2 wrong usage;
`run` exits as its program did.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import click

from stuntgpu import __version__
from stuntgpu.asm_command import asm
from stuntgpu.dis_command import dis

DEFAULT_ARCH = "gfx1100"


class Commands(click.Group):
    """Turns our own errors into messages: they are written to be read, a traceback would bury them.

    Errors of ours that mean a defect (Bug, SpecError), and everybody else's, keep their traceback.
    """

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except Exception as error:
            if ctx.params.get("traceback") or not _is_message(error):
                raise
            raise click.ClickException(_message(error)) from error


def _is_message(error: Exception) -> bool:
    from stuntgpu.isa.errors import Bug, SpecError

    ours = type(error).__module__.startswith("stuntgpu.") and not isinstance(error, Bug | SpecError)
    return ours or isinstance(error, OSError)


def _message(error: Exception) -> str:
    """KeyError's own str() would quote it, OSError's would number it."""
    if isinstance(error, OSError) and error.strerror:
        return f"{os.fsdecode(error.filename)}: {error.strerror}" if error.filename else error.strerror
    return str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
@click.option("--traceback", is_flag=True, help="Show where in stuntgpu an error came from.")
def main(traceback: bool) -> None:
    """A stunt double for your GPU: run GPU programs on a machine that has none."""


@main.command()
@click.option("--coverage", is_flag=True, help="Count what is there of each architecture, by encoding and source.")
@click.option("--arch", help="Of one architecture only.")
@click.option("--instruction", metavar="NAME", help="Of one instruction; * and ? match.")
def info(coverage: bool, arch: str | None, instruction: str | None) -> None:
    """Show the GPUs on offer and how much of each is modelled."""
    from stuntgpu import about

    if coverage or arch or instruction:
        about.show_coverage(arch, instruction)
    else:
        about.show()


@main.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--gpu", "gpus", default=DEFAULT_ARCH, show_default=True, metavar="ARCH[,ARCH...]", help="GPUs the program finds.")
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
def run(gpus: str, program: tuple[str, ...]) -> None:
    """Run PROGRAM with emulated GPUs before its eyes: /dev/kfd, a render node and their sysfs.

    \b
    stuntgpu run -- ./client --its-own-options
    """
    from stuntgpu.mockdrivers import run as mock

    if shutil.which(program[0]) is None:
        raise click.ClickException(f"no program {program[0]!r} on PATH")
    mock.run(program, tuple(gpus.split(",")))


@main.command()
@click.option("--mandelbrot/--no-mandelbrot", default=True, help="Draw the second kernel's output.")
def demo(mandelbrot: bool) -> None:
    """Run compiled kernels through the mock driver and check them.

    Uses the device that DEV names; without DEV, MOCKKFD+AMD.
    """
    from stuntgpu.demo import show

    sys.exit(show.main(draw=mandelbrot))


@main.command()
@click.argument("code_object", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("kernel", required=False)
@click.argument("arguments", nargs=-1)
@click.option("--grid", default="1", show_default=True, metavar="X[,Y[,Z]]", help="Work-items.")
@click.option("--workgroup", metavar="X[,Y[,Z]]", help="Work-items of a workgroup [what the kernel requires, or the grid's, at most 64].")
@click.option("--tier", type=click.Choice(["native", "reference"]), default="native", show_default=True)
@click.option("--shared", default=0, metavar="BYTES", help="LDS beside what the kernel declares.")
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path), help="Write all buffers to this .npz file.")
def emu(code_object: Path, kernel: str | None, arguments: tuple[str, ...], grid: str, workgroup: str | None,
        tier: str, shared: int, save: Path | None) -> None:
    """Run one KERNEL of a code object in the emulator, without any driver.

    Without KERNEL, list the kernels. ARGUMENTS are written like f32:1000=arange (a buffer),
    u32=1000 (a value), @file.npy, null, lds:4096; fills are a number, arange or random.

    \b
    stuntgpu emu vadd.hsaco vadd_f32 --grid 1024 f32:1000=arange f32:1000=2 f32:1000 u32=1000
    """
    from stuntgpu import emulate

    if kernel is None:
        emulate.list_kernels(code_object)
        return
    launch = emulate.Request(kernel, arguments, emulate.triple(grid), emulate.triple(workgroup) if workgroup else None, tier, shared)
    emulate.run(code_object, launch, save)


main.add_command(asm)
main.add_command(dis)


if __name__ == "__main__":
    main()
