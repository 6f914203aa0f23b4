"""Programs kept on disk: used for the same code only, and never when damaged."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from stuntgpu.emu import program as programs
from stuntgpu.emu.cache import VARIABLE
from stuntgpu.emu.faults import KernelFault
from stuntgpu.emu.memory import AddressSpace
from stuntgpu.emu.native import Native
from stuntgpu.emu.state import WaveInit
from stuntgpu.isa.asm import assemble

CODE = 0x10000
LONG = "v_mov_b32 v1, 0\n" * 70  # more than the signature that names the file
BRANCHY = """
  s_cmp_eq_u32 s0, 1
  s_cbranch_scc1 high
  s_mov_b32 s1, 0x12345
  s_endpgm
high:
  s_getpc_b64 s[2:3]
  s_add_u32 s2, s2, 20
  s_addc_u32 s3, s3, 0
  s_setpc_b64 s[2:3]
  s_endpgm
  s_nop 0
  s_mov_b32 s1, 0x54321
  s_code_end
"""


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    tmp_path.chmod(0o700)
    return tmp_path


@pytest.fixture
def decodes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one for every instruction that is decoded."""
    seen: list[int] = []
    original = programs.decode

    def counted(arch: str, data: bytes) -> object:
        seen.append(1)
        return original(arch, data)

    monkeypatch.setattr(programs, "decode", counted)
    return seen


def run(text: str, s0: int = 0) -> int:
    """s1 after the code, run by an executor that has seen nothing yet."""
    code = assemble("gfx1100", text)
    memory = ctypes.create_string_buffer(code, len(code))
    space = AddressSpace()
    space.map(CODE, len(code), ctypes.addressof(memory))
    return Native("gfx1100").run_wave(space, CODE, WaveInit(0xFFFF_FFFF, {0: s0}), 32).sgprs[1]


def test_the_next_executor_decodes_nothing(decodes: list[int]) -> None:
    assert run(LONG + "s_mov_b32 s1, 7\ns_endpgm") == 7
    first = len(decodes)
    assert first == 72
    assert run(LONG + "s_mov_b32 s1, 7\ns_endpgm") == 7
    assert len(decodes) == first


def test_other_code_behind_the_same_beginning_is_decoded(decodes: list[int]) -> None:
    assert run(LONG + "s_mov_b32 s1, 7\ns_endpgm") == 7
    assert run(LONG + "s_mov_b32 s1, 8\ns_endpgm") == 8
    assert len(decodes) == 144


def test_a_damaged_file_is_not_used(root: Path, decodes: list[int]) -> None:
    assert run(LONG + "s_mov_b32 s1, 7\ns_endpgm") == 7
    (path,) = root.glob("*/*.prg")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert run(LONG + "s_mov_b32 s1, 7\ns_endpgm") == 7
    assert len(decodes) == 144


def test_code_reached_later_extends_a_kept_program() -> None:
    assert run(BRANCHY) == 0x12345
    with pytest.raises(KernelFault) as caught:
        run(BRANCHY, s0=1)
    assert (caught.value.kind, caught.value.instruction) == ("illegal instruction", "s_code_end")


def test_faults_of_a_kept_program_name_their_instruction(decodes: list[int]) -> None:
    for _ in range(2):
        with pytest.raises(KernelFault) as caught:
            run("s_mov_b32 s4, 0\ns_mov_b32 s5, 0\ns_load_b32 s1, s[4:5], 0x40\ns_endpgm")
        assert caught.value.instruction.startswith("s_load_b32 s1, s[4:5], 0x40")
        assert caught.value.pc_offset == 8
