"""JSON lines in, JSON lines out: `stuntgpu dis --jsonl` and `stuntgpu asm --jsonl`.

One object a line. `hex` is machine code in memory order, `asm` one instruction's text; the command
fills in the other one, or `error`. Further fields come back as they are. A line that cannot be read
gives a line with `error`, never a stop; blank lines are passed over. What has been read is answered
before more is asked for, so that a program at the other end of a pipe can converse.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import IO, Any, BinaryIO, Protocol, cast

from stuntgpu.isa.asm import AsmError, assemble, assemble_one
from stuntgpu.isa.decode import DecodeError, decode
from stuntgpu.isa.disasm import disassemble

Convert = Callable[[str], str]
CHUNK_BYTES = 1 << 16


class Readable(Protocol):
    """A buffered stream of bytes that gives what has arrived."""

    def read1(self, size: int, /) -> bytes: ...


class BadField(ValueError):
    """A line whose field cannot be used; `str()` says why."""


def disassembler(arch: str) -> Convert:
    """Hex of one instruction -> its text. Raises BadField and DecodeError."""

    def convert(text: str) -> str:
        try:
            code = bytes.fromhex(text)
        except ValueError as error:
            raise BadField(f"hex: {error}") from None
        inst = decode(arch, code)
        if inst.size != len(code):
            raise BadField(f"{len(code) - inst.size} bytes follow the instruction, which has {inst.size}")
        return disassemble(inst)

    return convert


def assembler(arch: str) -> Convert:
    """Text -> hex: one instruction, or several lines. Raises BadField and AsmError."""

    def convert(text: str) -> str:
        single = "\n" not in text and ";" not in text and "//" not in text
        try:
            code = assemble_one(arch, text) if single else assemble(arch, text)
        except AsmError as error:
            place = f"line {error.line}, column {error.column}" if "\n" in text else f"column {error.column}"
            raise BadField(f"{place}: {error.message}") from None
        return code.hex()

    return convert


def answer(line: bytes, source: str, result: str, convert: Convert) -> dict[str, Any]:
    """The object that answers one line: field `result` made from field `source`, or `error`."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        return {"error": f"not JSON: {error}"}
    if not isinstance(row, dict):
        return {"error": f"expected an object with the field {source}, found {line.decode(errors='replace').strip():.80}"}
    row = {key: value for key, value in row.items() if key not in (result, "error")}
    text = row.get(source)
    if not isinstance(text, str):
        return row | {"error": f"no field {source}" if source not in row else f"{source} is {text!r:.80}, expected text"}
    try:
        return row | {result: convert(text)}
    except (BadField, DecodeError) as error:
        return row | {"error": str(error)}


def chunks(stream: IO[bytes]) -> Iterator[list[bytes]]:
    """Complete lines, as many as have arrived; the last one may lack its newline."""
    arrived = cast("Readable", stream).read1
    unfinished: list[bytes] = []
    while chunk := arrived(CHUNK_BYTES):
        first, *rest = chunk.split(b"\n")
        unfinished.append(first)
        if rest:
            yield [b"".join(unfinished), *rest[:-1]]
            unfinished = [rest[-1]]
    yield [b"".join(unfinished)]


def run(lines: Iterator[list[bytes]], out: BinaryIO, source: str, result: str, convert: Convert) -> None:
    """Answers every line; the output is flushed whenever the input has to be waited for."""
    for group in lines:
        rows = (answer(line, source, result, convert) for line in group if line.strip())
        out.write("".join(f"{json.dumps(row)}\n" for row in rows).encode())
        out.flush()


def dis(arch: str, stream: IO[bytes], out: BinaryIO) -> None:
    run(chunks(stream), out, "hex", "asm", disassembler(arch))


def asm(arch: str, stream: IO[bytes], out: BinaryIO) -> None:
    run(chunks(stream), out, "asm", "hex", assembler(arch))
