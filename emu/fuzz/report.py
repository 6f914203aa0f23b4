"""A found case as the text of a test."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stuntgpu.emu.fuzz.case import Case
from stuntgpu.emu.fuzz.setup import MIDDLE

_SHOWN = 6  # differences listed


def test_name(case: Case) -> str:
    """Of the first instruction and the architecture."""
    names = [i.name or "dual" for i in case.insts] or ["illegal"]
    return re.sub(r"\W+", "_", f"test_{names[0]}_{case.arch}".lower())


def as_pytest(case: Case, found: Sequence[str]) -> str:
    """Source of a test function; the case in it is complete."""
    init, insts = case.init, case.insts
    lines = [f"def {test_name(case)}() -> None:"]
    lines += [f"    # {i}" for i in insts]
    lines += [f"    # {line}" for text in found[:_SHOWN] for line in text.splitlines()]
    arguments = [f'"{case.arch}"', f'"{b"".join(case.code).hex()}"', f"lanes={case.lanes}"]
    if init.vgprs:
        arguments.append(f"v={{{', '.join(f'{r}: {_column(x, init.exec_mask)}' for r, x in sorted(init.vgprs.items()))}}}")
    if init.sgprs:
        arguments.append(f"s={{{', '.join(f'{r}: {v:#x}' for r, v in sorted(init.sgprs.items()))}}}")
    arguments.append(f"exec_mask={init.exec_mask:#x}")
    arguments += [f"{n}={getattr(init, n):#x}" for n in ("vcc", "scc", "m0") if getattr(init, n)]
    arguments += [f"mode={init.mode:#x}"] * (init.mode != 0xF0)
    arguments += [f"data={case.data}"] * (case.data != 0 and _uses_memory(case))
    return "\n".join([*lines, f"    assert_tiers_agree({', '.join(arguments)})"])


def _uses_memory(case: Case) -> bool:
    return any(v == MIDDLE >> 32 for v in case.init.sgprs.values()) or any(i.base not in ("VOP1", "VOP2", "VOP3") for i in case.insts)


def _column(column: Sequence[int], exec_mask: int) -> str:
    """One value where all lanes have it; those of the lanes that are on where the others are 0; else the list."""
    if len(set(column)) == 1:
        return f"{column[0]:#x}"
    few = {lane: v for lane, v in enumerate(column) if v}
    if len(few) <= 4:
        return f"{{{', '.join(f'{lane}: {v:#x}' for lane, v in few.items())}}}"
    return f"[{', '.join(f'{v:#x}' for v in column)}]"
