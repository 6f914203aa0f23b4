"""Runs the instruction goldens (goldens/instr_*.jsonl) on any executor that can start one wave.

A golden gives registers before, code, and checks on registers after: prefix expressions over v, s,
vcc, exec, scc. `evaluate` is the reading of that language described in goldens/README.md.

Units:   values are 32-bit patterns unless an operator says otherwise.
"""

from __future__ import annotations

import ctypes
import json
import math
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from stuntgpu.emu.launch import Executor, Launch, RunOptions
from stuntgpu.emu.memory import AddressSpace
from stuntgpu.emu.state import GOLDEN_MODE, WaveFinal, WaveInit, WaveRunner
from stuntgpu.isa.asm import assemble, assemble_one

CODE_VA = 0x2000_0000_0000
KERNARG_VA = 0x2000_0010_0000
OUT_VA = 0x2000_0020_0000
SCRATCH_VA = 0x2000_1000_0000
LDS_BYTES = 0x10000
SCRATCH_LANE_BYTES = 0x10000

Json = Any


class GoldenExecutor(Executor, WaveRunner, Protocol):
    """What an executor must offer to run goldens."""

    arch: str


@dataclass(frozen=True)
class Golden:
    """One line. target: the oldest that has all its instructions; insts: disassembly for messages;
    doubtful: the facts' author doubts the hardware values; frame: prologue and epilogue that make the body a kernel."""

    id: str
    target: str
    wave: int
    lanes: int
    code: bytes
    init: Mapping[str, Json]
    checks: Sequence[Json]
    insts: Sequence[str]
    src: str
    doubtful: bool
    frame: tuple[bytes, bytes]

    @property
    def mnemonics(self) -> str:
        return ", ".join(dict.fromkeys(i.split()[0] for i in self.insts if i))


def read(path: Path) -> Iterator[Golden]:
    """The goldens of a file that have checks from hardware (or transferred from it)."""
    frames = json.loads((path.parent / "instr_harness.json").read_text())
    for line in path.read_text().splitlines():
        row = json.loads(line)
        frame = frames.get(f"{row['harness']}_{row['lanes']}", {"prologue": "", "epilogue": ""})
        checks = row.get("hardware") or row.get("transfer") or []
        yield Golden(row["id"], row["target"], row["wave"], row["lanes"], bytes.fromhex(row["code"]), row["init"], checks,
                     [i[4] or i[3] for i in row["insts"]], row["src"], "doubt" in row,
                     (bytes.fromhex(frame["prologue"]), bytes.fromhex(frame["epilogue"])))


class Memory:
    """Code, kernel arguments, output buffer and scratch at the addresses the goldens assume."""

    def __init__(self) -> None:
        self.space = AddressSpace()
        self._code = self._map(CODE_VA, 0x10000, "code")
        self._kernarg = self._map(KERNARG_VA, 0x1000, "kernarg")
        self._out = self._map(OUT_VA, 0x4000, "output")
        self._scratch = self._map(SCRATCH_VA, SCRATCH_LANE_BYTES * 64, "scratch")

    def _map(self, va: int, size: int, name: str) -> ctypes.Array[ctypes.c_char]:
        block = ctypes.create_string_buffer(size)
        self.space.map(va, size, ctypes.addressof(block), name=name, keep=block)
        return block

    def reset(self, arch: str, code: bytes) -> None:
        for block in (self._code, self._kernarg, self._out, self._scratch):
            ctypes.memset(block, 0, len(block))
        self.space.write(CODE_VA, code + assemble_one(arch, "s_endpgm"))
        self.space.write(KERNARG_VA, struct.pack("<Q", OUT_VA))

    def out(self) -> bytes:
        """The output buffer as it is now."""
        return bytes(self._out)


def initial(golden: Golden) -> WaveInit:
    init = golden.init
    vgprs = {
        int(reg): list(range(golden.wave)) if value == "lane" else _per_lane(value, golden.wave)
        for reg, value in init["vgpr"].items()
    }
    return WaveInit(init["exec"], {int(k): v for k, v in init["sgpr"].items()}, vgprs, mode=GOLDEN_MODE)


def _per_lane(value: Json, lanes: int) -> list[int]:
    return list(value) if isinstance(value, list) else [value] * lanes


def run(executor: GoldenExecutor, memory: Memory, golden: Golden) -> WaveFinal:
    """Run the body; memory starts as the goldens say."""
    if golden.lanes > golden.wave:
        return _run_kernel(executor, memory, golden)
    memory.reset(executor.arch, golden.code)
    return executor.run_wave(memory.space, CODE_VA, initial(golden), golden.wave, LDS_BYTES, SCRATCH_VA,
                             SCRATCH_LANE_BYTES * golden.wave)


def frame(arch: str, golden: Golden) -> tuple[bytes, bytes]:
    """Prologue and epilogue. Programs carried over from RDNA3 came with code of RDNA3; theirs is rebuilt."""
    if not arch.startswith("gfx12"):
        return golden.frame
    stores = [f"global_store_b32 v240, v{i}, s[92:93] offset:{4 * golden.lanes * i}" for i in range(N_STORED_VGPRS)]
    zeros = [f"v_mov_b32 v{i}, 0" for i in range(N_STORED_VGPRS)] + [f"s_mov_b32 s{i}, 0" for i in range(16)]
    before = ["s_mov_b32 s80, s0", "s_mov_b32 s81, s1", "v_mov_b32 v255, v0", *zeros, "s_mov_b32 vcc_lo, 0"]
    after = ["s_mov_b32 exec_lo, -1", "s_load_b64 s[92:93], s[80:81], 0x0", "v_lshlrev_b32 v240, 2, v255", *stores]
    return assemble(arch, "\n".join(before)), assemble(arch, "\n".join(after))


N_STORED_VGPRS = 16  # the frame's epilogue stores v0..v15, all lanes of one register together


def _run_kernel(executor: GoldenExecutor, memory: Memory, golden: Golden) -> WaveFinal:
    """Several waves: run as a workgroup of a kernel whose epilogue stores the registers to memory."""
    prologue, epilogue = frame(executor.arch, golden)
    memory.reset(executor.arch, prologue + golden.code + epilogue)
    rsrc1 = (GOLDEN_MODE & 0xFF) << 12 | 1 << 21 | 1 << 23
    kernarg = (KERNARG_VA & 0xFFFF_FFFF, KERNARG_VA >> 32)
    n = golden.lanes
    launch = Launch(CODE_VA, rsrc1, len(kernarg) << 1, 0, kernarg, (n, 1, 1), (n, 1, 1), golden.wave, LDS_BYTES,
                    SCRATCH_VA, 0, golden.id)
    executor.run(memory.space, launch, RunOptions())
    words = struct.unpack(f"<{N_STORED_VGPRS * n}I", memory.space.read(OUT_VA, N_STORED_VGPRS * n * 4))
    return WaveFinal(0, (), tuple(words[r * n : (r + 1) * n] for r in range(N_STORED_VGPRS)), 0, 0, 0, 0, b"")


def failures(executor: GoldenExecutor, memory: Memory, golden: Golden) -> list[str]:
    """One line for each check that does not hold, or for the error the run ended in."""
    try:
        final = run(executor, memory, golden)
    except Exception as error:  # every kind of failure is a line of the report
        return [f"{golden.id} [{golden.mnemonics}] {golden.src}: {type(error).__name__}: {error}"]
    bad = [c for c in golden.checks if not holds(final, c)]
    return [f"{golden.id} [{golden.mnemonics}] {golden.src}: {json.dumps(c)}, got {_sides(final, c)}" for c in bad]


def _sides(final: WaveFinal, check: Json) -> str:
    values = [evaluate(final, x) for x in check[1:3] if not (isinstance(x, list) and x[0] in _TESTS)]
    return " and ".join(f"{v:#x}" if isinstance(v, int) else repr(v) for v in values)


# ---------------------------------------------------------------- checks


def _float(code: str, width: int) -> Callable[[int], float]:
    codes = {16: "H", 32: "I", 64: "Q"}

    def convert(bits: int) -> float:
        return float(struct.unpack("<" + code, struct.pack("<" + codes[width], bits & ((1 << width) - 1)))[0])

    return convert


def _same(a: float, b: float) -> bool:
    return a == b or (isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b))


_OPERATORS: Mapping[str, Callable[..., Any]] = {
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << b, "shr": lambda a, b: a >> b, "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b, "abs": abs, "cat32": lambda low, high: low | high << 32,
    "f16": _float("e", 16), "f32": _float("f", 32), "f64": _float("d", 64),
    "i64": lambda a: (a & (1 << 64) - 1 ^ 1 << 63) - (1 << 63),
}  # fmt: skip

_TESTS: Mapping[str, Callable[..., bool]] = {
    "eq": _same, "ne": lambda a, b: not _same(a, b), "lt": lambda a, b: a < b, "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b, "isnan": math.isnan, "isinf": math.isinf,
    "near": lambda a, b, tolerance: abs(a - b) <= tolerance, "false": lambda a: not a,
}  # fmt: skip


def evaluate(final: WaveFinal, x: Json) -> Any:
    """The value of an expression on the final registers."""
    if not isinstance(x, list):
        return float(x) if isinstance(x, str) else x
    head, *args = x
    match head:
        case "v":
            return final.vgprs[args[0]][args[1]]
        case "s":
            return final.sgprs[args[0]]
        case "vcc":
            return final.vcc & 0xFFFF_FFFF
        case "exec":
            return final.exec_mask & 0xFFFF_FFFF
        case "scc":
            return final.scc
    return (_TESTS.get(head) or _OPERATORS[head])(*(evaluate(final, a) for a in args))


def holds(final: WaveFinal, check: Json) -> bool:
    return bool(evaluate(final, check))
