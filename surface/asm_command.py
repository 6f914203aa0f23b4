"""`stuntgpu asm`: assembly text to a code object, to bare machine code, or to dwords on the screen."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TextIO

import click

DEFAULT_ARCH = "gfx1100"
#: Names of files that are expected to load.
OBJECTS = (".hsaco", ".co")


@click.command()
@click.argument("source", type=click.File("r"), default="-")
@click.option("--arch", default=DEFAULT_ARCH, show_default=True, help="Architecture of the code.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path),
              help=f"Write here: a code object when its name ends in {', '.join(OBJECTS)} or SOURCE describes kernels "
                   "(.amdhsa_kernel), else the bytes of the code.")
@click.option("--raw", is_flag=True, help="The bytes of the code in any case.")
@click.option("--jsonl", is_flag=True, help='Answer JSON lines: {"asm": "s_nop 0"} gets its "hex", or "error".')
def asm(source: TextIO, arch: str, output: Path | None, raw: bool, jsonl: bool) -> None:
    """Assemble SOURCE (a file, or - for standard input), as LLVM's assembler and linker would.

    Without -o the dwords of the code are printed."""
    if jsonl:
        from stuntgpu import batch

        batch.asm(arch, source.buffer, sys.stdout.buffer)
        return
    text = source.read()
    code = made(arch, text, None if raw else output)
    if output is not None:
        output.write_bytes(code)
        return
    for i in range(0, len(code), 4):
        click.echo(f"0x{int.from_bytes(code[i : i + 4], 'little'):08x}")


def made(arch: str, text: str, wanted: Path | None) -> bytes:
    """A code object for a file of the name `wanted` when one is meant, else bare code. Raises AsmError."""
    from stuntgpu.isa.asm import assemble
    from stuntgpu.isa.asm_object import assemble_object, has_kernels

    if wanted is not None and wanted.suffix in OBJECTS:
        return assemble_object(arch, text)
    if not has_kernels(text):
        return assemble(arch, text)
    built = assemble_object(arch, text)
    return built if wanted is not None else code_of(built)


def code_of(built: bytes) -> bytes:
    """What .text of an object holds."""
    from stuntgpu.isa.abi.elf import ElfFile

    file = ElfFile(built)
    section = file.sections[file.section_names.index(".text")]
    return bytes(file.bytes_at(section.offset, section.size, ".text"))
