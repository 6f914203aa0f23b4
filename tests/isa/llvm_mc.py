"""LLVM's machine-code tool as an oracle: batches of words to texts and of texts to words.

Only tests use it, and they skip without it: the project needs no LLVM.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

TOOL = "llvm-mc-22"
#: Attributes under which `isa-spec/goldens` were made.
ATTRIBUTES = {"gfx1100": "+wavefrontsize32", "gfx1151": "+wavefrontsize32", "gfx1201": "+wavefrontsize32,+real-true16", "gfx942": "", "gfx950": ""}
LINE = re.compile(r"^\s*(.*?)\s*; encoding: \[(.*?)\]", re.MULTILINE)
COMPLAINT = re.compile(r"^<stdin>:(\d+):\d+: (warning|error): ", re.MULTILINE)
#: Words after a candidate, so that LLVM (which crashes on a literal cut short) always finds some.
PADDING, MARK, MARK_TEXT = bytes.fromhex("010080bf") * 6, "0xbc 0x7a 0x80 0xbf", "s_nop 0x7abc"


#: Lets a crash end at once, without a stack trace.
QUIET = {"LLVM_DISABLE_SYMBOLIZATION": "1", "LLVM_DISABLE_CRASH_REPORT": "1"}


class Crash(Exception):
    """LLVM died on a batch."""


@dataclass(frozen=True, slots=True)
class Pair:
    code: bytes
    text: str


def tool() -> str:
    """Path of llvm-mc 22. Skips the calling test when there is none."""
    path = shutil.which(TOOL)
    if path is None:
        pytest.skip(f"no {TOOL} on PATH to compare with")
    return path


@dataclass(frozen=True, slots=True)
class Answer:
    """What LLVM printed, and which lines it warned of or refused, from 0."""

    out: str
    warned: frozenset[int]
    refused: frozenset[int]


def run(arch: str, lines: Sequence[str], *options: str) -> Answer:
    """LLVM's answer to a batch. Raises Crash."""
    attributes = ATTRIBUTES[arch]
    command = [tool(), "-triple=amdgcn", f"-mcpu={arch}", "-show-encoding", *options]
    command += [f"-mattr={attributes}"] if attributes else []
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, timeout=300, check=False, env=os.environ | QUIET)
    if done.returncode not in (0, 1):
        raise Crash(f"{TOOL} ended with {done.returncode}: {done.stderr[-300:]}")
    said = {kind: frozenset(int(n) - 1 for n, k in COMPLAINT.findall(done.stderr) if k == kind) for kind in ("warning", "error")}
    return Answer(done.stdout, said["warning"], said["error"])


def hex_list(code: bytes) -> str:
    return " ".join(f"0x{b:02x}" for b in code)


def listed(encoding: str) -> bytes:
    return bytes(int(b, 16) for b in encoding.split(","))


def disassemble(arch: str, codes: Sequence[bytes]) -> list[Pair | None]:
    """For each of `codes` its first instruction as LLVM reads it, None when LLVM complains. The
    code of a pair is what LLVM would write for what it read."""
    lines = [line for code in codes for line in (f"[{hex_list(code + PADDING)}]", MARK)]
    try:
        answer = run(arch, lines, "-disassemble")
    except Crash:
        if len(codes) == 1:
            return [None]
        half = len(codes) // 2
        return disassemble(arch, codes[:half]) + disassemble(arch, codes[half:])
    return marked(answer)


def marked(answer: Answer) -> list[Pair | None]:
    """The first instruction before each mark, None when LLVM complained of its line."""
    bad = answer.warned | answer.refused
    pairs: list[Pair | None] = []
    first: Pair | None = None
    for text, encoding in LINE.findall(answer.out):
        if text == MARK_TEXT:
            pairs.append(None if len(pairs) * 2 in bad else first)
            first = None
        elif first is None:
            first = Pair(listed(encoding), text)
    return pairs


def assemble(arch: str, texts: Sequence[str]) -> list[bytes | None]:
    """For each of `texts` its code, None when LLVM complains."""
    try:
        answer = run(arch, [line for text in texts for line in (text, MARK_TEXT)])
    except Crash:
        if len(texts) == 1:
            return [None]
        half = len(texts) // 2
        return assemble(arch, texts[:half]) + assemble(arch, texts[half:])
    return [pair and pair.code for pair in marked(answer)]


def agreed(arch: str, codes: Sequence[bytes]) -> list[Pair]:
    """Those of `codes` (first instruction, in order, once) that LLVM reads and writes back unchanged."""
    found: dict[bytes, str] = {}
    for code, pair in zip(codes, disassemble(arch, codes), strict=True):
        if pair is not None and (code + PADDING).startswith(pair.code):
            found[pair.code] = pair.text
    back = assemble(arch, list(found.values()))
    return [Pair(c, t) for (c, t), b in zip(found.items(), back, strict=True) if b == c]
