"""Code objects against LLVM's: what clang compiles to text, assembled here and by clang, is the same.

The same code (but for what a linker fills in), descriptors, metadata, symbols and flags. Needs clang of version 22.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgpack
import pytest

from stuntgpu.isa.abi.codeobject import NOTE_METADATA, NOTE_NAME
from stuntgpu.isa.abi.elf import ElfFile, Rela
from stuntgpu.isa.arch import ARCHES
from stuntgpu.isa.asm_kernel import DESCRIPTOR_BYTES
from stuntgpu.isa.asm_object import assemble_object
from tests.isa.kernels import source
from tests.isa.test_asm_object import text_of
from tests.isa.test_llvm_objdump import run, tool

FILES, KERNELS = 3, 5
LEVELS = ("-O2", "-O0", "-O3")
ENTRY_OFFSET = slice(16, 24)


def compiled(arch: str, seed: int, folder: Path) -> tuple[str, bytes]:
    """(assembly text, what clang's assembler makes of it) of random kernels."""
    text, path = source(arch, seed, KERNELS), folder / f"{arch}_{seed}.cl"
    path.write_text(text)
    level = LEVELS[seed % len(LEVELS)]
    run(tool("clang"), "-x", "cl", "-cl-std=CL2.0", "--target=amdgcn-amd-amdhsa", f"-mcpu={arch}", level, "-nogpulib",
        "-w", "-S", path, "-o", path.with_suffix(".s"))
    return path.with_suffix(".s").read_text(), assembled(arch, path.with_suffix(".s"))


def assembled(arch: str, path: Path) -> bytes:
    """A relocatable object of clang's assembler."""
    out = path.with_suffix(".o")
    run(tool("clang"), "--target=amdgcn-amd-amdhsa", f"-mcpu={arch}", "-c", path, "-o", out)
    return out.read_bytes()


class Parts:
    """What is compared of an object."""

    def __init__(self, data: bytes) -> None:
        self.file = ElfFile(data)
        self.flags = self.file.header.flags, self.file.header.abi_version
        by_name = dict(zip(self.file.section_names, self.file.sections, strict=True))
        self.text = self.bytes_of(by_name[".text"])
        self.patched = self.relocated(by_name.get(".rela.text"))
        names = [n for n in self.file.symbols if n.endswith(".kd")]
        self.descriptors = {n: self.descriptor(n) for n in names}
        self.kinds = {n: (s.type, s.size) for n, s in self.file.symbols.items() if s.section and not n.startswith(".L")}
        self.metadata: Any = next((msgpack.unpackb(desc) for name, kind, desc in self.file.notes()
                                   if (name, kind) == (NOTE_NAME, NOTE_METADATA)), None)

    def bytes_of(self, section: Any) -> bytes:
        return self.file.bytes_at(section.offset, section.size, "a section")

    def relocated(self, section: Any) -> list[int]:
        """Offsets in .text of what a linker fills in."""
        data = b"" if section is None else self.bytes_of(section)
        return [Rela.unpack(data, at).offset for at in range(0, len(data), Rela.SIZE_BYTES)]

    def descriptor(self, name: str) -> bytes:
        """Without the offset of the code, which a linker fills in."""
        symbol = self.file.symbols[name]
        section = self.file.sections[symbol.section]
        at = symbol.value - section.addr
        data = bytearray(self.bytes_of(section)[at : at + DESCRIPTOR_BYTES])
        data[ENTRY_OFFSET] = bytes(8)
        return bytes(data)


def check(arch: str, text: str, theirs: bytes) -> None:
    ours, wanted = Parts(assemble_object(arch, text)), Parts(theirs)
    got, code = bytearray(ours.text), bytearray(wanted.text)
    for at in wanted.patched:
        got[at : at + 4] = code[at : at + 4] = bytes(4)
    assert got == code
    assert ours.descriptors == wanted.descriptors
    assert ours.flags == wanted.flags
    exported = set(ours.kinds) & set(wanted.kinds)
    assert {n for n in wanted.kinds if n.endswith(".kd")} <= exported
    assert {n: ours.kinds[n] for n in exported} == {n: wanted.kinds[n] for n in exported}
    if wanted.metadata is not None:
        assert ours.metadata == wanted.metadata


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FILES))
@pytest.mark.parametrize("arch", ARCHES)
def test_compiled_kernels_become_the_objects_clang_makes(arch: str, seed: int, tmp_path: Path) -> None:
    check(arch, *compiled(arch, seed, tmp_path))


#: Directives with values that are not the defaults.
CHANGED = {
    "gfx1100": "wavefront_size32 0; shared_vgpr_count 2; inst_pref_size 9; ieee_mode 0; dx10_clamp 0; workgroup_processor_mode 0",
    "gfx1151": "wavefront_size32 0; inst_pref_size 63; memory_ordered 0; forward_progress 1; workgroup_processor_mode 0",
    "gfx1201": "round_robin_scheduling 1; inst_pref_size 99; memory_ordered 0; forward_progress 0; wavefront_size32 0",
    "gfx942": "accum_offset 8; tg_split 1; user_sgpr_kernarg_preload_length 1; user_sgpr_kernarg_preload_offset 1; ieee_mode 0",
    "gfx950": "accum_offset 8; reserve_vcc 0; user_sgpr_kernarg_preload_length 2; dx10_clamp 0",
}
EVERYWHERE = ("group_segment_fixed_size 100; private_segment_fixed_size 64; enable_private_segment 1; user_sgpr_dispatch_ptr 1;"
              "user_sgpr_queue_ptr 1; user_sgpr_dispatch_id 1; user_sgpr_private_segment_size 1; uses_dynamic_stack 1;"
              "system_sgpr_workgroup_id_x 0; system_sgpr_workgroup_id_y 1; system_sgpr_workgroup_id_z 1;"
              "system_sgpr_workgroup_info 1; system_vgpr_workitem_id 2; float_round_mode_32 1; float_round_mode_16_64 2;"
              "float_denorm_mode_32 3; float_denorm_mode_16_64 1; fp16_overflow 1; exception_fp_ieee_invalid_op 1;"
              "exception_fp_denorm_src 1; exception_fp_ieee_div_zero 1; exception_fp_ieee_overflow 1;"
              "exception_fp_ieee_underflow 1; exception_fp_ieee_inexact 1; exception_int_div_zero 1")


@pytest.mark.parametrize("changed", [False, True], ids=["defaults", "changed"])
@pytest.mark.parametrize("arch", ARCHES)
def test_directives_make_the_descriptor_clang_makes(arch: str, changed: bool, tmp_path: Path) -> None:
    rows = f"{EVERYWHERE};{CHANGED[arch]}".split(";") if changed else []
    if arch == "gfx1201":
        rows = [r for r in rows if "ieee_mode" not in r]
    more = "\n".join(f".amdhsa_{row.strip()}" for row in rows)
    body = "v_mov_b32 v37, s55\ns_endpgm"
    path = tmp_path / "k.s"
    path.write_text(text_of(arch, more, body, ""))
    check(arch, path.read_text(), assembled(arch, path))
