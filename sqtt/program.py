"""Code that a trace is about: instructions by run-time address.

    program = Program.from_elf(elf, "gfx1100", load_base=0x2000_0100_8000)
    program.at(program.entry).inst.text

Units:   bytes; addresses are those of the run.
Errors:  CodeError for an address outside the code or bytes there that are no instruction. ElfError.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stuntgpu.isa.abi.elf import ElfFile
from stuntgpu.isa.arch import ARCHES
from stuntgpu.isa.decode import DecodeError, decode
from stuntgpu.isa.disasm import branch_target
from stuntgpu.isa.inst import Inst
from stuntgpu.isa.listing import code_sections

#: Chips that run another's code unchanged and have no tables of their own.
SAME_CODE: Mapping[str, str] = {"gfx1200": "gfx1201"}

#: Pipe that executes an instruction, by its base encoding. SOPP has none.
PIPES: Mapping[str, str] = {
    base: pipe
    for pipe, bases in {
        "salu": "SOP1 SOP2 SOPC SOPK",
        "smem": "SMEM",
        "valu": "VOP1 VOP2 VOP3 VOP3_SDST VOP3P VOPC VOPD VOPDX VOPDY VINTERP",
        "matrix": "VOP3P_MFMA VOP3PX2",
        "lds": "DS VDS LDSDIR VDSDIR",
        "vmem": "FLAT FLAT_GLOBAL FLAT_GLBL FLAT_SCRATCH VFLAT VGLOBAL VSCRATCH "
                "MUBUF MTBUF MIMG VBUFFER VIMAGE VSAMPLE",
        "export": "EXP VEXPORT",
    }.items()
    for base in bases.split()
}  # fmt: skip


WORD_BYTES = 4
#: Source operand number that says a literal follows.
LITERAL = 255


class CodeError(ValueError):
    """No instruction at an address; says address and why."""


@dataclass(frozen=True, slots=True)
class Step:
    """An instruction where it is.

    code    its bytes.
    name    as the tables call it, "" for an opcode they do not have.
    base    its base encoding.
    inst    None for code that the decoder refuses: hardware runs such code too (an operand that tools do not
            accept), and its length is that of its encoding.
    target  where its branch goes; None: no branch, or a register decides.
    """

    pc: int
    code: bytes
    name: str
    base: str
    inst: Inst | None
    target: int | None = None

    @property
    def text(self) -> str:
        """Assembly text; data directives where the decoder refuses the code."""
        if self.inst is not None:
            return self.inst.text
        words = (int.from_bytes(self.code[i : i + WORD_BYTES], "little") for i in range(0, len(self.code), WORD_BYTES))
        return ".long " + ", ".join(f"{word:#010x}" for word in words)

    @property
    def after(self) -> int:
        """The address behind it."""
        return self.pc + len(self.code)

    @property
    def pipe(self) -> str:
        """What executes it: a value of PIPES, or "control" for SOPP and barriers."""
        return "control" if self.name.startswith("S_BARRIER") else PIPES.get(self.base, "control")

    @property
    def is_end(self) -> bool:
        return self.name.startswith("S_ENDPGM")


@dataclass(frozen=True)
class Program:
    """Code at its run-time address.

    arch     architecture its instructions are decoded as.
    address  of code[0].
    entry    address of the first instruction of the kernel.
    """

    name: str
    arch: str
    address: int
    code: bytes
    entry: int
    _steps: dict[int, Step] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def from_code(cls, code: bytes, chip: str, *, address: int = 0, name: str = "kernel") -> Program:
        """A kernel that starts with the first byte of its code. Raises CodeError for an unknown chip."""
        return cls(name, code_arch(chip), address, code, address)

    @classmethod
    def from_elf(cls, elf: bytes, chip: str, *, load_base: int = 0, name: str = "kernel") -> Program:
        """The first section of code in a code object loaded at `load_base`; its start is the entry."""
        sections = code_sections(ElfFile(elf))
        if not sections:
            raise CodeError(f"{name}: the object has no code")
        address = load_base + sections[0].address
        return cls(name, code_arch(chip), address, bytes(sections[0].code), address)

    def __contains__(self, pc: object) -> bool:
        return isinstance(pc, int) and self.address <= pc < self.address + len(self.code)

    def at(self, pc: int) -> Step:
        """The instruction at `pc`. Raises CodeError."""
        step = self._steps.get(pc)
        if step is None:
            step = self._steps[pc] = self._decode(pc)
        return step

    def _decode(self, pc: int) -> Step:
        if pc not in self:
            raise CodeError(f"{self.name}: {pc:#x} is outside its code {self.address:#x}+{len(self.code):#x}")
        offset = pc - self.address
        try:
            inst = decode(self.arch, self.code, offset)
        except DecodeError as error:
            extended = self._extended(offset)
            if extended is None:
                return self._refused(pc, offset, error)
            inst = extended
        code = self.code[offset : offset + inst.size]
        return Step(pc, code, inst.name, inst.base, inst, branch_target(inst, pc))

    def _extended(self, offset: int) -> Inst | None:
        """The instruction of an architecture that adds to this one: gfx1100 chips were seen to run those of gfx1151."""
        for name in (a.name for a in ARCHES.values() if a.extends == self.arch):
            try:
                return decode(name, self.code, offset)
            except DecodeError:
                continue
        return None

    def _refused(self, pc: int, offset: int, error: DecodeError) -> Step:
        """The step of code that the decoder refuses, by its encoding alone. Raises CodeError when none fits."""
        tables = ARCHES[self.arch].tables
        word = int.from_bytes(self.code[offset : offset + 2 * WORD_BYTES], "little")
        fitting = [e for e in tables.encodings.values() if not e.form and word & e.mask == e.value]
        if not fitting:
            raise CodeError(f"{self.name}: {pc:#x}: {error}") from error
        known = {e.name: tables.by_base.get((e.base, e.field("OP").extract(word))) for e in fitting if e.has("OP")}
        row = max(fitting, key=lambda e: (known.get(e.name) is not None, e.mask.bit_count()))
        sources = (f.extract(word) for f in row.fields if f.name.startswith(("SRC", "SSRC")))
        size = row.bits // 8 + (WORD_BYTES if LITERAL in sources else 0)
        inst = known.get(row.name)
        return Step(pc, self.code[offset : offset + size], inst.name if inst else "", row.base, None)


def code_arch(chip: str) -> str:
    """Name of the architecture whose tables read the code of a chip. Raises CodeError."""
    name = SAME_CODE.get(chip, chip)
    if name not in ARCHES:
        known = ", ".join(sorted({*ARCHES, *SAME_CODE}))
        raise CodeError(f"no instruction tables for {chip!r}; known: {known}")
    return name
