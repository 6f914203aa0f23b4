"""The codec benchmark reads all of its texts and says megabytes a second."""

from __future__ import annotations

import pytest

from benchmarks import codec
from stuntgpu.isa.disasm import disassemble
from tests.arches import WHOLE
from tests.shared import shared_dir


@pytest.mark.parametrize("arch", WHOLE)
def test_golden_texts_decode_to_their_end(arch: str) -> None:
    shared_dir()
    code = codec.goldens_text(arch, 50_000)
    texts: list[str] = []
    assert codec.walk(arch, code, lambda inst: texts.append(disassemble(inst))) == len(texts)
    assert len(set(texts)) > len(texts) // 2
    assert len(codec.kernels_text(arch)) >= codec.MEGABYTE


def test_golden_first_use_is_measured_in_a_process_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    shared_dir()
    result = codec.in_fresh_process("gfx942")
    codec.show(result)
    assert result.n_instructions > 1000
    assert "MB/s" in capsys.readouterr().out
