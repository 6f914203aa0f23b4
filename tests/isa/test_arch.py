"""Architectures as values."""

from __future__ import annotations

import subprocess
import sys

import pytest

from stuntgpu.isa.arch import ARCHES, UnknownArch, arch


def test_unknown_arch_names_the_known() -> None:
    with pytest.raises(UnknownArch, match="gfx1100"):
        arch("gfx9999")


def test_two_archs_compare_by_name() -> None:
    assert arch("gfx1100") == arch("gfx1100")
    assert len({arch(n) for n in ARCHES}) == len(ARCHES)


@pytest.mark.parametrize("name", sorted(ARCHES))
def test_tables_hold_together(name: str) -> None:
    tables = arch(name).tables
    for row in tables.rows:
        encoding = tables.encodings[row.encoding]
        for operand in row.operands:
            assert not operand.field or encoding.has(operand.field), row


def test_import_and_load_take_less_than_100_ms() -> None:
    code = (
        "import time; t = time.process_time()\n"
        "from stuntgpu.isa.arch import arch; arch('gfx1100').tables.rows\n"
        "print(time.process_time() - t)"
    )
    seconds = min(
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(3)
    )
    assert seconds < 0.1
