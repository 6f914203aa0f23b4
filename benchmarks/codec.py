"""`python -m benchmarks.codec`: speed of decoder, disassembler and assembler, for every architecture.

kernels  a text section of 1 MB, glued from the compiled kernels of ../shared/kernels.
goldens  1 MB of the instructions of ../shared/isa-spec/goldens in random order, registers and
         literals included as they come: few words repeat.
first    the goldens' first 100 kB in a fresh process: imports, tables and first use of every row count.

Seconds are CPU time, the best of three.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from stuntgpu.isa.abi.elf import ElfFile
from stuntgpu.isa.arch import ARCHES
from stuntgpu.isa.asm import assemble_one
from stuntgpu.isa.decode import decode
from stuntgpu.isa.disasm import disassemble
from stuntgpu.isa.listing import code_sections

SHARED = Path(os.environ.get("STUNTGPU_SHARED") or Path(__file__).resolve().parents[2] / "shared")
MEGABYTE = 1_000_000
FIRST_BYTES = 100_000
ROUNDS = 3
SEED = 1


@dataclass(frozen=True)
class Result:
    """One text: size and times. `listing_s`: decoding and disassembling all of it."""

    arch: str
    text: str
    n_bytes: int
    n_instructions: int
    decode_s: float
    listing_s: float

    @property
    def rate(self) -> float:
        """Megabytes a second, decoding and disassembling."""
        return self.n_bytes / MEGABYTE / self.listing_s


def goldens(arch: str) -> list[tuple[bytes, str]]:
    rows = map(json.loads, (SHARED / "isa-spec" / "goldens" / f"asm_{arch}.jsonl").read_text().splitlines())
    return [(bytes.fromhex(row["hex"]), row["asm"]) for row in rows]


def repeated(text: bytes, size: int) -> bytes:
    """Whole copies of `text`, at least `size` bytes."""
    return text * -(-size // len(text))


def kernels_text(arch: str) -> bytes:
    """1 MB of compiled code."""
    paths = sorted((SHARED / "kernels").glob(f"*/{arch}/*.hsaco"))
    sections = (s for path in paths for s in code_sections(ElfFile(path.read_bytes())))
    return repeated(b"".join(s.code for s in sections), MEGABYTE)


def goldens_text(arch: str, size: int = MEGABYTE) -> bytes:
    """Instructions of the goldens, shuffled anew for every copy."""
    codes, r = [code for code, _ in goldens(arch)], random.Random(SEED)
    out = bytearray()
    while len(out) < size:
        r.shuffle(codes)
        out += b"".join(codes)
    return bytes(out)


def walk(arch: str, code: bytes, each: Callable[..., object]) -> int:
    """Instructions of `code`, every one given to `each`."""
    at = n = 0
    while at < len(code):
        inst = decode(arch, code, at)
        each(inst)
        at += inst.size
        n += 1
    return n


def best(work: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def measure(arch: str, text: str) -> Result:
    code = kernels_text(arch) if text == "kernels" else goldens_text(arch)
    n = walk(arch, code, disassemble)
    return Result(arch, text, len(code), n, best(lambda: walk(arch, code, id)), best(lambda: walk(arch, code, disassemble)))


def first_use(arch: str) -> Result:
    """This process's first disassembly."""
    code = goldens_text(arch)[:FIRST_BYTES]
    code = code[: sum(size for size in sizes(arch, code))]
    start = time.process_time()
    n = walk(arch, code, disassemble)
    return Result(arch, "first", len(code), n, 0, time.process_time() - start)


def sizes(arch: str, code: bytes) -> list[int]:
    """Sizes of the whole instructions in a piece cut anywhere, found by another process."""
    script = (
        "import sys\nfrom stuntgpu.isa.decode import DecodeError, decode_all\ncode = sys.stdin.buffer.read()\n"
        f"print(*(i.size for _, i in decode_all({arch!r}, code) if not isinstance(i, DecodeError)))"
    )
    done = subprocess.run([sys.executable, "-c", script], input=code, capture_output=True, check=True)
    return [int(word) for word in done.stdout.split()]


def in_fresh_process(arch: str) -> Result:
    done = subprocess.run([sys.executable, "-m", "benchmarks.codec", "--first", arch], capture_output=True, text=True,
                          check=True, cwd=Path(__file__).resolve().parents[1])
    return Result(**json.loads(done.stdout))


def assembler_rate(arch: str) -> float:
    """Lines a second."""
    texts = [text for _, text in goldens(arch)]
    return len(texts) / best(lambda: [assemble_one(arch, text) for text in texts])


def show(result: Result) -> None:
    decoding = f"decoding alone {result.decode_s:.2f} s" if result.decode_s else ""
    click.echo(f"{result.arch:8} {result.text:8} {result.n_bytes / MEGABYTE:5.2f} MB, {result.n_instructions:7} instructions: "
               f"{result.listing_s:5.2f} s, {result.rate:5.2f} MB/s  {decoding}")


@click.command()
@click.option("--arch", "arches", multiple=True, type=click.Choice(sorted(ARCHES)), help="Only these.")
@click.option("--first", type=click.Choice(sorted(ARCHES)), help="Measure the first use in this process and print JSON.")
def main(arches: tuple[str, ...], first: str | None) -> None:
    """Measure decoder, disassembler and assembler."""
    if first is not None:
        click.echo(json.dumps(asdict(first_use(first))))
        return
    for arch in arches or sorted(ARCHES):
        for text in ("kernels", "goldens"):
            show(measure(arch, text))
        show(in_fresh_process(arch))
        click.echo(f"{arch:8} assembler: {assembler_rate(arch):.0f} lines/s")


if __name__ == "__main__":
    main()
