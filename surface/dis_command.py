"""`stuntgpu dis`: the machine code of code objects, fat binaries and bare bytes as assembly text.

Addresses, encodings and remarks are comments, so that the text goes back through `stuntgpu asm`.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import IO, TYPE_CHECKING

import click

if TYPE_CHECKING:
    from stuntgpu.isa.abi.codeobject import KernelInfo
    from stuntgpu.isa.abi.fatbin import Image
    from stuntgpu.isa.build_program import Program
    from stuntgpu.isa.listing import CodeSection, Descriptor, Label, Line

DEFAULT_ARCH = "gfx1100"
NOTE_COLUMN = 56
LINES_AT_ONCE = 2000
DWORD_BYTES = 4


@dataclass(frozen=True, slots=True)
class Style:
    """What a line shows beside its text."""

    address: bool = True
    encoding: bool = False
    colour: bool = False
    python: bool = False

    def comment(self, text: str, colour: str) -> str:
        return self.paint(f"{'#' if self.python else '//'} {text}", colour)

    def paint(self, text: str, colour: str) -> str:
        return click.style(text, fg=colour) if self.colour else text


@click.command()
@click.argument("source", type=click.File("rb"), default="-")
@click.option("--arch", "--gpu", "arch", metavar="ARCH", help="The target to list; of bare code and --jsonl, its "
              f"architecture [default: every target; {DEFAULT_ARCH}].")
@click.option("--function", metavar="NAME", help="List only this function.")
@click.option("--address/--no-address", default=True, help="Show addresses.  [default: address]")
@click.option("--encoding/--no-encoding", default=False, help="Show the dwords of each instruction.")
@click.option("--format", "shape", type=click.Choice(["text", "python"]), default="text",
              help="Assembly text, or Python that builds the same code.  [default: text]")
@click.option("--jsonl", is_flag=True, help='Answer JSON lines: {"hex": "7e6afe8b"} gets its "asm", or "error".')
def dis(
    source: IO[bytes], arch: str | None, function: str | None, address: bool, encoding: bool, shape: str, jsonl: bool
) -> None:
    """Disassemble SOURCE: a code object, a fat binary or host program with GPU code, raw machine code,
    or dwords in hex as text.

    \b
    stuntgpu dis --arch gfx942 program
    stuntgpu dis --no-address vadd.hsaco | stuntgpu asm
    """
    if jsonl:
        from stuntgpu import batch

        batch.dis(arch or DEFAULT_ARCH, source, sys.stdout.buffer)
        return
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    name = getattr(source, "name", "standard input")
    echo(lines(source.read(), name, arch, function, Style(address, encoding, colour, shape == "python")), colour)


def echo(texts: Iterator[str], colour: bool) -> None:
    """Prints in pieces: one write for many lines."""
    pending: list[str] = []
    for text in texts:
        pending.append(text)
        if len(pending) >= LINES_AT_ONCE:
            click.echo("\n".join(pending), color=colour)
            pending.clear()
    if pending:
        click.echo("\n".join(pending), color=colour)


class NothingToList(ValueError):
    """What was asked for is not in the file; says what is."""


def lines(data: bytes, name: str, arch: str | None, function: str | None, style: Style) -> Iterator[str]:
    """The listing of whatever `data` is. Raises FatBinaryError, ElfError, UnknownArch, NothingToList."""
    from stuntgpu.isa.abi.fatbin import FatBinaryError, images, is_container
    from stuntgpu.isa.listing import CodeSection

    if not is_container(data):
        section = CodeSection("", 0, from_hex(data) or data)
        yield from section_lines(arch or DEFAULT_ARCH, section, style, {}, None)
        return
    try:
        found = chosen(images(data), arch)
    except FatBinaryError as error:
        raise FatBinaryError(f"{name}: {error}") from None
    for i, image in enumerate(found):
        yield from ("",) if i else ()
        yield from image_lines(image, name, function, style, alone=len(found) == 1)


def chosen(found: tuple[Image, ...], arch: str | None) -> tuple[Image, ...]:
    """The images for `arch`; all of them for None."""
    if arch is None:
        return found
    wanted = tuple(image for image in found if arch in (image.target, tables_of(image.target), image.id))
    if not wanted:
        have = ", ".join(dict.fromkeys(image.target or image.id for image in found))
        raise NothingToList(f"no code for {arch}; there is code for {have}")
    return wanted


def tables_of(target: str) -> str:
    """The architecture whose tables read code for `target`; "" when there is none."""
    from stuntgpu.isa.abi.targets import TARGETS
    from stuntgpu.isa.arch import ARCHES

    return next((a for a in ARCHES if target == a or TARGETS[a].generic == target), "")


# ---------------------------------------------------------------- one code object


def image_lines(image: Image, name: str, function: str | None, style: Style, alone: bool) -> Iterator[str]:
    """A listing of one target's code; of one that cannot be read, why, unless it is `alone`: then raises."""
    from stuntgpu.isa.abi.elf import ElfError
    from stuntgpu.isa.errors import Unmodelled

    arch = tables_of(image.target)
    yield style.comment(f"{name}: {image.id or image.target}, {len(image.data)} bytes", "bright_black")
    try:
        if image.problem:
            raise ElfError(f"{name}: {image.id}: {image.problem}")
        if not arch:
            raise Unmodelled(image.target, "disassembly", "isa/tables")
        yield from object_lines(arch, image.data, function, style)
    except (ElfError, Unmodelled) as error:
        if alone:
            raise
        yield style.comment(str(error), "red")


def object_lines(arch: str, data: bytes, function: str | None, style: Style) -> Iterator[str]:
    from stuntgpu.isa.abi.elf import ElfFile
    from stuntgpu.isa.listing import code_sections, descriptors, target_id

    file = ElfFile(data)
    sections = code_sections(file)
    names = [s.name for section in sections for s in section.symbols]
    if function is not None and function not in names:
        raise NothingToList(f"no function {function!r}; there are {', '.join(names) or 'none'}")
    if style.python:
        yield from (line for section in sections for line in section_lines(arch, section, style, {}, function))
        return
    yield f'\t.amdgcn_target "{target_id(file)}"'
    signatures, problem = kernels(data)
    if problem:
        yield style.paint(f"// {problem}", "red")
    remarks = {d.name: remark(arch, d, signatures.get(d.name)) for d in descriptors(file)}
    numbers = count()
    for section in sections:
        if function is None:
            yield "\n\t.text" if section.name == ".text" else f"\n\t.section {section.name}"
        yield from section_lines(arch, section, style, remarks, function, numbers)


def kernels(data: bytes) -> tuple[Mapping[str, KernelInfo], str]:
    """Kernels by name as the metadata describes them, and why there are none; objects that are not
    linked have none either."""
    from stuntgpu.isa.abi import codeobject
    from stuntgpu.isa.abi.elf import ET_REL, ElfFile

    if ElfFile(data).header.type == ET_REL:
        return {}, ""
    try:
        return codeobject.read(data).kernels, ""
    except codeobject.CodeObjectError as error:
        return {}, f"no kernel signatures: {error}"


def remark(arch: str, descriptor: Descriptor, info: KernelInfo | None) -> tuple[str, ...]:
    """Lines about a kernel, to stand before its label."""
    from stuntgpu.isa.listing import summary
    from stuntgpu.listing import signature

    head = signature(info) if info is not None else descriptor.name
    return f"kernel {head}", f"{descriptor.name}.kd at {descriptor.address:x}: {summary(arch, descriptor)}"


def section_lines(
    arch: str, section: CodeSection, style: Style, remarks: Mapping[str, tuple[str, ...]],
    function: str | None, numbers: Iterator[int] | None = None,
) -> Iterator[str]:
    """Labels and lines of a section, or of one function of it."""
    from stuntgpu.isa.listing import Label, listing

    low, high = extent(section, function)
    if style.python:
        yield from python_lines(arch, section, low, high)
        return
    for item in listing(arch, section, numbers):
        if not low <= item.address < high and not (isinstance(item, Label) and function is None):
            continue
        if isinstance(item, Label):
            yield from label_lines(item, style, remarks)
        else:
            yield line_text(item, style)


def python_lines(arch: str, section: CodeSection, low: int, high: int) -> Iterator[str]:
    """Python source of the program between two addresses, symbols as labels."""
    from stuntgpu.isa.arch import arch as row

    program: type[Program] = importlib.import_module(f"stuntgpu.isa.{row(arch).family}").Program
    code = section.code[low - section.address : high - section.address]
    symbols = {s.value - low: s.name for s in reversed(section.symbols) if low <= s.value < high}
    if code:
        yield from program.from_bytes(code, symbols).source.splitlines()


def extent(section: CodeSection, function: str | None) -> tuple[int, int]:
    """Addresses of a function; of all the section for None."""
    end = section.address + len(section.code)
    if function is None:
        return section.address, end
    symbol = next((s for s in section.symbols if s.name == function), None)
    if symbol is None:
        return end, end
    following = min((s.value for s in section.symbols if s.value > symbol.value), default=end)
    return symbol.value, symbol.value + symbol.size if symbol.size else following


def label_lines(label: Label, style: Style, remarks: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    if label.symbol is not None:
        yield ""
        yield from (style.paint(f"// {text}", "bright_black") for text in remarks.get(label.name, ()))
    text = style.paint(f"{label.name}:", "yellow")
    if style.address and label.symbol is not None:
        text += style.paint(f"{'':{max(1, NOTE_COLUMN - len(label.name) + 7)}}// {label.address:x}:", "bright_black")
    yield text


def line_text(line: Line, style: Style) -> str:
    notes = [f"{line.address:x}:"] if style.address else []
    if style.encoding:
        notes.append(dwords(line.code))
    if line.note:
        notes.append(line.note)
    text = line.text
    if style.colour:
        mnemonic, space, rest = text.partition(" ")
        text = style.paint(mnemonic, "red" if line.is_data else "cyan") + space + rest
    if not notes:
        return f"\t{text}"
    gap = max(1, NOTE_COLUMN - len(line.text))
    return f"\t{text}{'':{gap}}{style.paint(f'// {chr(32).join(notes)}', 'bright_black')}"


def dwords(code: bytes) -> str:
    """Up to eight dwords in hex, as numbers."""
    shown = code[: 8 * DWORD_BYTES]
    parts = (shown[i : i + DWORD_BYTES] for i in range(0, len(shown), DWORD_BYTES))
    return " ".join(f"{int.from_bytes(part, 'little'):0{2 * len(part)}x}" for part in parts) + " ..." * (shown != code)


def from_hex(data: bytes) -> bytes | None:
    """The bytes of `0xbfb00000 be820080`, or None when the data is not such text."""
    try:
        words = data.decode("ascii").replace(",", " ").split()
        return b"".join(int(word, 16).to_bytes(DWORD_BYTES, "little") for word in words) or None
    except (UnicodeDecodeError, ValueError, OverflowError):
        return None
