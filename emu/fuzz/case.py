"""One wave from explicit state on both tiers, and where their ends differ.

Units:   bytes; registers hold 32-bit words.
"""

from __future__ import annotations

import ctypes
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache

from stuntgpu.emu import state
from stuntgpu.emu.faults import KernelFault
from stuntgpu.emu.fuzz.setup import BASE, CODE, LDS_BYTES, SCRATCH, SCRATCH_LANE, SEAM, SIZE
from stuntgpu.emu.memory import EXECUTE, READ, AddressSpace
from stuntgpu.emu.native import Native
from stuntgpu.emu.reference import Reference
from stuntgpu.isa.asm import assemble, assemble_one
from stuntgpu.isa.decode import DecodeError, decode_all
from stuntgpu.isa.inst import Inst

#: A wave that runs longer goes in circles.
BUDGET = 1000
#: Faults whose place is not compared: budgets are looked at between turns, whose lengths differ.
_BY_KIND = ("unmodelled instruction", "budget exceeded")
#: Behind the instructions, so that short branches land somewhere.
_SLED = 8


@dataclass(frozen=True)
class Case:
    """A program and the wave it starts in. `data` seeds the contents of memory."""

    arch: str
    lanes: int
    code: tuple[bytes, ...]
    init: state.WaveInit
    data: int = 0

    @property
    def insts(self) -> list[Inst]:
        """The instructions, as far as they decode."""
        return [i for _, i in decode_all(self.arch, b"".join(self.code)) if not isinstance(i, DecodeError)]

    def with_init(self, **changes: object) -> Case:
        return replace(self, init=replace(self.init, **changes))  # type: ignore[arg-type]


@dataclass(frozen=True)
class End:
    """What a wave left behind: registers and memory, or the fault as text ("unmodelled ..." is only that)."""

    final: state.WaveFinal | None
    memory: bytes = b""
    scratch: bytes = b""
    fault: str = ""


@lru_cache(maxsize=8)
def _ending(arch: str) -> bytes:
    return assemble_one(arch, "s_nop 0") * _SLED + assemble_one(arch, "s_endpgm")


@lru_cache(maxsize=16)
def _contents(seed: int, size: int) -> bytes:
    return random.Random(seed).randbytes(size)


def run(executor: Native | Reference, case: Case) -> End:
    """The wave's end on one tier."""
    code = b"".join(case.code) + _ending(case.arch)
    text = ctypes.create_string_buffer(code, len(code) + 64)
    memory = ctypes.create_string_buffer(_contents(case.data, SIZE), SIZE)
    backing = SCRATCH_LANE * case.lanes
    scratch = ctypes.create_string_buffer(_contents(case.data, backing), backing)
    space = AddressSpace()
    space.map(CODE, len(code) + 64, ctypes.addressof(text), perms=READ | EXECUTE, name="code")
    space.map(BASE, SEAM, ctypes.addressof(memory), name="low")
    space.map(BASE + SEAM, SIZE - SEAM, ctypes.addressof(memory) + SEAM, name="high")
    space.map(SCRATCH, backing, ctypes.addressof(scratch), name="scratch")
    try:
        final = executor.run_wave(space, CODE, case.init, case.lanes, LDS_BYTES, SCRATCH, backing, budget=BUDGET)
    except KernelFault as fault:
        return End(None, fault=fault.kind if fault.kind in _BY_KIND else str(fault))
    except Exception as error:  # whatever a tier raises on its own account is a find
        return End(None, fault=f"{type(executor).__name__} raises {error!r}")
    return End(final, memory.raw, scratch.raw)


def differences(native: End, reference: End) -> list[str]:
    """Lines that say where two ends differ; none when they agree."""
    if native.fault or reference.fault:
        same = native.fault == reference.fault
        return [] if same else [f"native: {native.fault or 'ends'}", f"reference: {reference.fault or 'ends'}"]
    assert native.final is not None
    assert reference.final is not None
    out = [line for f in fields(state.WaveFinal)
           for line in _register_differences(f.name, getattr(native.final, f.name), getattr(reference.final, f.name))]
    for name in ("memory", "scratch"):
        out += _byte_differences(name, getattr(native, name), getattr(reference, name))
    return out


def _register_differences(name: str, a: object, b: object) -> list[str]:
    if a == b:
        return []
    if isinstance(a, bytes) and isinstance(b, bytes):
        return _byte_differences(name, a, b)
    if not isinstance(a, tuple) or not isinstance(b, tuple):
        return [f"{name}: native {a:#x}, reference {b:#x}"]
    out = []
    for i, (x, y) in enumerate(zip(a, b, strict=True)):
        if isinstance(x, tuple):
            out += [f"{name}[{i}][{lane}]: native {p:#x}, reference {q:#x}" for lane, (p, q) in enumerate(zip(x, y, strict=True)) if p != q]
        elif x != y:
            out.append(f"{name}[{i}]: native {x:#x}, reference {y:#x}")
    return out


def _byte_differences(name: str, a: bytes, b: bytes) -> list[str]:
    if a == b:  # nearly always, and much faster than looking
        return []
    return [f"{name}+{i:#x}: native {x:#x}, reference {y:#x}" for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y]


# ---------------------------------------------------------------- cases by hand

Values = int | Sequence[int] | Mapping[int, int]


@lru_cache(maxsize=8)
def tiers(arch: str) -> tuple[Native, Reference]:
    return Native(arch), Reference(arch)


def assert_tiers_agree(arch: str, code: str, *, lanes: int, v: Mapping[int, Values] | None = None, s: Mapping[int, int] | None = None,
                       exec_mask: int = 1, vcc: int = 0, scc: int = 0, m0: int = 0, mode: int = 0xF0, data: int = 0) -> End:
    """Both tiers end this wave alike: how. AssertionError lists where they do not.

    code   assembly text, or machine code in hexadecimal.
    v      VGPR (AccVGPRs from 256) -> value of all lanes, of each lane, or of some lanes (the others 0).
    """
    try:
        words = bytes.fromhex(code)
    except ValueError:
        words = assemble(arch, code)
    columns = {r: _column(x, lanes) for r, x in (v or {}).items()}
    case = Case(arch, lanes, (words,), state.WaveInit(exec_mask, dict(s or {}), columns, vcc, scc, m0, mode), data)
    native, reference = (run(tier, case) for tier in tiers(arch))
    assert not (found := differences(native, reference)), "\n".join(found[:20])
    return reference


def _column(values: Values, lanes: int) -> list[int]:
    if isinstance(values, int):
        return [values] * lanes
    if isinstance(values, Mapping):
        return [values.get(lane, 0) for lane in range(lanes)]
    return list(values)
