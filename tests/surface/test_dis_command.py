"""surface/dis_command.py and surface/batch.py: listings that assemble again, and JSON lines."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import zlib
from contextlib import suppress
from hashlib import md5
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from stuntgpu import demo
from stuntgpu.cli import main
from stuntgpu.dis_command import Style, lines
from stuntgpu.isa.abi.elf import ElfError, ElfFile
from stuntgpu.isa.abi.fatbin import BUNDLE, COMPRESSED, FatBinaryError
from stuntgpu.isa.asm import assemble
from stuntgpu.isa.errors import Unmodelled
from stuntgpu.isa.listing import code_sections
from tests.isa.bundles import bundle
from tests.shared import shared_dir


@pytest.fixture
def vadd(tmp_path: Path) -> Path:
    path = tmp_path / "vadd.hsaco"
    path.write_bytes(demo.code_object("vadd_f32", "gfx1100"))
    return path


def stuntgpu(*words: object, text: str | bytes | None = None) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words], input=text)


# ---------------------------------------------------------------- listings


def test_listing_shows_kernels_labels_addresses_and_branch_targets(vadd: Path) -> None:
    shown = stuntgpu("dis", vadd).output
    assert '.amdgcn_target "amdgcn-amd-amdhsa--gfx1100"' in shown
    assert "// kernel vadd_f32(float* arg0" in shown
    assert "workgroup 256x1x1" in shown
    assert re.search(r"^vadd_f32: +// 1700:$", shown, re.MULTILINE)
    assert re.search(r"s_cbranch_execz L0 +// [0-9a-f]+: -> 17a0$", shown, re.MULTILINE)
    assert "\nL0:\n\ts_endpgm " in shown
    assert "__clang_ocl_kern_imp_vadd_f32:" in shown


def test_one_function_alone(vadd: Path) -> None:
    shown = stuntgpu("dis", "--function", "vadd_f32", "--no-address", vadd).output
    assert "global_store_b32" in shown
    assert "__clang_ocl_kern_imp_vadd_f32:" not in shown
    assert "no function 'f'; there are" in stuntgpu("dis", "--function", "f", vadd).output


def test_python_source_builds_the_same_code(vadd: Path) -> None:
    shown = stuntgpu("dis", "--format", "python", vadd).output
    assert shown.startswith("# ")
    assert "\n    p.add(vadd_f32)\n    p.s_load_b32(s[2], s[0:1], 0x18)\n" in shown
    names: dict[str, object] = {}
    exec(shown, names)
    (section,) = code_sections(ElfFile(vadd.read_bytes()))
    assert bytes(names["p"]) == section.code  # type: ignore[call-overload]
    one = stuntgpu("dis", "--format", "python", "--function", "vadd_f32", vadd).output
    assert "global_store_b32" in one
    assert "__clang_ocl_kern_imp_vadd_f32" not in one


def test_encodings_are_shown_when_asked_for(vadd: Path) -> None:
    assert re.search(r"s_endpgm +// 17a0: bfb00000$", stuntgpu("dis", "--encoding", vadd).output, re.MULTILINE)
    assert re.search(r"s_endpgm +// bfb00000$", stuntgpu("dis", "--encoding", "--no-address", vadd).output, re.MULTILINE)
    assert "bfb00000" not in stuntgpu("dis", vadd).output


def test_no_colours_in_a_pipe(vadd: Path) -> None:
    assert "\x1b" not in stuntgpu("dis", vadd).output


@pytest.mark.parametrize("options", [(), ("--no-address",), ("--encoding",)])
def test_listing_assembles_to_the_same_code(vadd: Path, options: tuple[str, ...]) -> None:
    text = stuntgpu("dis", *options, vadd).output
    (section,) = code_sections(ElfFile(vadd.read_bytes()))
    assert assemble("gfx1100", text) == section.code


def test_golden_code_objects_list_without_data_on_every_architecture() -> None:
    for path in sorted((shared_dir() / "kernels" / "hsaco").glob("*/*.hsaco")):
        text = stuntgpu("dis", path).output
        (section,) = code_sections(ElfFile(path.read_bytes()))
        assert ".long" not in text, path
        assert assemble(path.parent.name, text) == section.code, path


def test_bare_words_list_with_what_is_not_an_instruction() -> None:
    shown = stuntgpu("dis", text="0xffffffff 0xbfb00000").output
    assert re.search(r"\.long 0xffffffff +// 0: no instruction has the word 0xffffffff", shown)
    assert re.search(r"s_endpgm +// 4:", shown)


# ---------------------------------------------------------------- fat binaries


@pytest.fixture
def fat(tmp_path: Path) -> Path:
    path = tmp_path / "program.hipfb"
    path.write_bytes(bundle({
        "host-x86_64-unknown-linux-gnu-": b"",
        "hipv4-amdgcn-amd-amdhsa--gfx1100": demo.code_object("vadd_f32", "gfx1100"),
        "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-": demo.code_object("vadd_f32", "gfx1100"),
    }))  # fmt: skip
    return path


def test_fat_binary_lists_every_target(fat: Path) -> None:
    shown = stuntgpu("dis", fat).output
    assert "program.hipfb: hipv4-amdgcn-amd-amdhsa--gfx1100, 4256 bytes" in shown
    assert "gfx90a: disassembly" in shown
    assert shown.count("vadd_f32:") == 2  # the kernel and the function it came from


def test_fat_binary_lists_the_target_asked_for(fat: Path) -> None:
    assert "gfx90a" not in stuntgpu("dis", "--gpu", "gfx1100", fat).output
    missing = stuntgpu("dis", "--arch", "gfx942", fat)
    assert missing.exit_code == 1
    assert "no code for gfx942; there is code for gfx1100, gfx90a" in missing.output


def test_compressed_fat_binary_lists_like_the_plain_one(fat: Path, tmp_path: Path) -> None:
    plain = fat.read_bytes()
    packed, digest = zlib.compress(plain), md5(plain).digest()[:8]
    head = COMPRESSED + (2).to_bytes(2, "little") + (0).to_bytes(2, "little")
    sizes = (24 + len(packed)).to_bytes(4, "little") + len(plain).to_bytes(4, "little")
    path = tmp_path / "packed" / fat.name
    path.parent.mkdir()
    path.write_bytes(head + sizes + digest + packed)
    options = ("--gpu", "gfx1100", "--no-address")
    listed = [stuntgpu("dis", *options, p).output.replace(str(p), "") for p in (path, fat)]
    assert listed[0] == listed[1] != ""


@pytest.mark.parametrize(("data", "says"), [
    (BUNDLE + b"\1", "needs 32 bytes"),
    (b"\x7fELF", "truncated: the ELF header"),
    (COMPRESSED + bytes(30), "version 0"),
])
def test_damaged_file_is_a_message_that_names_what_is_wrong(tmp_path: Path, data: bytes, says: str) -> None:
    path = tmp_path / "bad.bin"
    path.write_bytes(data)
    done = stuntgpu("dis", path)
    assert done.exit_code == 1
    assert says in done.output
    assert "bad.bin" in done.output


# ---------------------------------------------------------------- JSON lines


def rows(output: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in output.splitlines()]


def test_dis_jsonl_answers_every_line_and_keeps_other_fields() -> None:
    text = '{"hex": "000080bf", "n": 1}\n\n{"hex": "0100 80bf", "asm": "old", "error": "old"}'
    assert rows(stuntgpu("dis", "--jsonl", text=text).output) == [
        {"hex": "000080bf", "n": 1, "asm": "s_nop 0"}, {"hex": "0100 80bf", "asm": "s_nop 1"},
    ]


@pytest.mark.parametrize(("line", "says"), [
    ('{"hex": "000080bf00"}', "1 bytes follow the instruction, which has 4"),
    ('{"hex": "0000"}', "code ends"),
    ('{"hex": "ffffffff"}', "no instruction has the word"),
    ('{"hex": "0g"}', "hex: non-hexadecimal"),
    ('{"hex": 7}', "hex is 7, expected text"),
    ('{"asm": "s_nop 0"}', "no field hex"),
    ("[1, 2]", "expected an object with the field hex, found [1, 2]"),
    ("{hex", "not JSON"),
    ("[" * 100_000, "not JSON"),
])  # fmt: skip
def test_dis_jsonl_bad_line_is_an_error_line_not_a_stop(line: str, says: str) -> None:
    bad, good = rows(stuntgpu("dis", "--jsonl", text=line + '\n{"hex": "000080bf"}\n').output)
    assert says in str(bad["error"])
    assert "asm" not in bad
    assert good["asm"] == "s_nop 0"


def test_dis_jsonl_takes_bytes_that_are_no_text() -> None:
    (bad,) = rows(stuntgpu("dis", "--jsonl", text=b"\xff\xfe\n").output)
    assert "not JSON" in str(bad["error"])


def test_asm_jsonl_gives_hex_or_what_is_wrong_where() -> None:
    text = '{"asm": "s_nop 0", "n": 1}\n{"asm": "v_mov_b32 v0"}\n{"asm": "a: s_nop 1\\ns_branch a"}\n'
    good, bad, several = rows(stuntgpu("asm", "--jsonl", text=text).output)
    assert good == {"asm": "s_nop 0", "n": 1, "hex": "000080bf"}
    assert str(bad["error"]).startswith("column 13: expected ','")
    assert several["hex"] == "010080bf" "feffa0bf"


def test_jsonl_uses_the_architecture_asked_for() -> None:
    (row,) = rows(stuntgpu("dis", "--jsonl", "--arch", "gfx942", text='{"hex": "000081bf"}').output)
    assert row["asm"] == "s_endpgm"


def test_golden_jsonl_both_ways() -> None:
    path = shared_dir() / "isa-spec" / "goldens" / "asm_gfx1201.jsonl"
    wanted = rows(path.read_text())
    assert rows(stuntgpu("dis", "--jsonl", "--arch", "gfx1201", path).output) == wanted
    assert rows(stuntgpu("asm", "--jsonl", "--arch", "gfx1201", path).output) == wanted


@pytest.mark.parametrize(("command", "question", "answer"), [
    ("dis", {"hex": "000080bf"}, {"asm": "s_nop 0"}), ("asm", {"asm": "s_nop 0"}, {"hex": "000080bf"}),
])
def test_jsonl_peer_can_converse(command: str, question: dict[str, str], answer: dict[str, str]) -> None:
    words = [sys.executable, "-m", "stuntgpu", command, "--jsonl"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as peer:
        assert peer.stdin is not None
        assert peer.stdout is not None
        for _ in range(3):
            print(json.dumps(question), file=peer.stdin, flush=True)
            assert json.loads(peer.stdout.readline()) == question | answer
        peer.stdin.close()
        assert peer.wait(timeout=60) == 0


# ---------------------------------------------------------------- damage


def test_damaged_code_objects_list_or_say_what_is_wrong() -> None:
    """Nothing but errors that are written to be read."""
    whole, r = demo.code_object("vadd_f32", "gfx1100"), random.Random(3)
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(r.randint(1, 6)):
            data[r.choice((r.randrange(64), r.randrange(len(data))))] = r.choice((0, 255, r.randrange(256)))
        with suppress(ElfError, FatBinaryError, Unmodelled):
            assert list(lines(bytes(data[: r.choice((None, r.randrange(len(data))))]), "x", None, None, Style()))
