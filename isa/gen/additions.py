"""Which XML describes an architecture. Instructions that one adds to another are cut out of the XML of a third that has them.

Errors:  SpecError when the XML is malformed or lacks one of them; OSError when there is no such file.
Source:  LLVM 22 assembles these for the architecture with the opcodes the XML has (tests/isa/test_gfx1151.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree as ET

from stuntgpu.isa.arch import ARCHES
from stuntgpu.isa.errors import SpecError
from stuntgpu.isa.gen.xml import child, parse, text

#: Architecture -> the family whose XML has them.
SOURCES: Mapping[str, str] = {"gfx1151": "rdna4"}

_F16_OPS = "ADD SUB MUL FMAC MIN MAX CEIL FLOOR TRUNC RNDNE"
_COMPARES = "LT EQ LE GT LG GE O U NGE NLG NGT NLE NEQ NLT"
_CONVERSIONS = "F32_I32 F32_U32 I32_F32 U32_F32 F16_F32 F32_F16 HI_F32_F16 PK_RTZ_F16_F32"
#: Names as the XML has them where the architecture's own differ.
_RENAMED = {f"S_{op}_{f}": f"S_{op}_NUM_{f}" for op in ("MIN", "MAX") for f in ("F16", "F32")}
NAMES: Mapping[str, frozenset[str]] = {
    "gfx1151": frozenset((
        *(f"S_{op}_F16" for op in _F16_OPS.split()), *(f"S_{op}_F32" for op in (*_F16_OPS.split(), "FMAAK", "FMAMK")),
        *(f"S_CMP_{op}_{f}" for op in _COMPARES.split() for f in ("F16", "F32")), *(f"S_CVT_{x}" for x in _CONVERSIONS.split()),
    )),
}  # fmt: skip


def path_of(arch: str, folder: Path) -> Path:
    """The file to read for an architecture."""
    return folder / f"amdgpu_isa_{SOURCES.get(arch, ARCHES[arch].family)}.xml"


def read(arch: str, path: Path) -> ET.Element:
    """That file's document, cut down to the instructions that tables of `arch` list. Raises SpecError, OSError."""
    root = parse(path.read_bytes(), path.name)
    if arch in NAMES:
        keep(arch, root)
    return root


def keep(arch: str, root: ET.Element) -> None:
    """Drops all instructions of a document but those `arch` adds, which get the architecture's names. Raises SpecError."""
    wanted = {_RENAMED.get(name, name): name for name in NAMES[arch]}
    instructions = child(child(root, "ISA"), "Instructions")
    for node in list(instructions):
        name = wanted.pop(text(node, "InstructionName"), None)
        if name is None:
            instructions.remove(node)
        else:
            child(node, "InstructionName").text = name
    if wanted:
        raise SpecError(f"{SOURCES[arch]}: no instruction {', '.join(sorted(wanted))}, which {arch} has")
