"""`stuntgpu asm -o`: when an object is written, when bare code, what a bad source prints."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from stuntgpu.cli import main
from stuntgpu.isa.abi.codeobject import read
from tests.isa.test_asm_object import text_of

END = bytes.fromhex("0000b0bf")


def written(path: Path, text: str, *options: str) -> bytes:
    done = CliRunner().invoke(main, ["asm", *options, "-o", str(path)], input=text)
    assert done.exit_code == 0, done.output
    return path.read_bytes()


@pytest.mark.parametrize("name", ["k.hsaco", "k.co"])
def test_the_name_of_the_file_asks_for_an_object(name: str, tmp_path: Path) -> None:
    assert read(written(tmp_path / name, ".globl k\nk: s_endpgm")).symbols["k"].value


def test_kernels_ask_for_an_object_whatever_its_name(tmp_path: Path) -> None:
    assert set(read(written(tmp_path / "x", text_of("gfx942"), "--arch", "gfx942")).kernels) == {"twice"}


def test_bare_code_is_written_on_request_and_where_nothing_else_is_meant(tmp_path: Path) -> None:
    assert written(tmp_path / "x.bin", "s_endpgm") == END
    assert written(tmp_path / "x.hsaco", "s_endpgm", "--raw") == END
    assert written(tmp_path / "x.o", "s_endpgm") == END
    assert written(tmp_path / "y", text_of("gfx1100", body="s_endpgm"), "--raw") == END


@pytest.mark.parametrize("name", ["k.hsaco", "k.bin"])
def test_every_error_of_a_source_is_printed_and_nothing_written(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    done = CliRunner().invoke(main, ["asm", "-o", str(path)], input="v_ad_f32 v0, v1, v2\n.lonng 5\n")
    assert done.exit_code == 1
    assert "line 1, column 1" in done.output
    assert "did you mean .long?" in done.output
    assert not path.exists()
