"""Generates `isa/tables/<arch>_semantics.py` from the XML's pseudocode and `isa/errata`.

    python -m stuntgpu.isa.gen.semantics ARCH XML        # coverage; `stuntgpu.isa.gen` writes the tables

Order of precedence for an instruction: an erratum or own row, "not built", the text.
Errors:  SpecError when a row does not parse, type or verify.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree

from stuntgpu.isa.arch import ARCHES
from stuntgpu.isa.errata.common import Erratum, Own, Same, Unbuilt
from stuntgpu.isa.errors import SpecError
from stuntgpu.isa.gen import additions
from stuntgpu.isa.gen import pcode_ast as ast
from stuntgpu.isa.gen.pcode_lower import Source, lower
from stuntgpu.isa.gen.pcode_parse import parse
from stuntgpu.isa.gen.pcode_tidy import tidy
from stuntgpu.isa.ir import Do, Scope, Semantics, dumps, load_body, with_places
from stuntgpu.isa.verify import verify

#: Microcode field -> the places its operand fills or takes.
_PLACES_OF: Mapping[str, tuple[str, ...]] = {
    "SRC0": ("S0",),
    "SSRC0": ("S0",),
    "VSRC0": ("S0",),
    "SRCX0": ("S0",),
    "SRCY0": ("S0",),
    "SRC1": ("S1",),
    "SSRC1": ("S1",),
    "VSRC1": ("S1",),
    "VSRCX1": ("S1",),
    "VSRCY1": ("S1",),
    "SRC2": ("S2",),
    "VDST": ("D0",),
    "SDST": ("D0", "S0"),
    "VDSTX": ("D0",),
    "VDSTY": ("D0",),
    "DATA": ("DATA", "VDATA"),
    "VSRC": ("DATA", "VDATA"),
    "DATA0": ("DATA",),
    "DATA1": ("DATA2",),
    "SDATA": ("SDATA",),
    "VDATA": ("VDATA", "DATA", "RETURN_DATA"),
    "LITERAL": ("SIMM32",),
}
_MEMORY_DEST = ("RETURN_DATA", "VDATA")
_MEMORY = ("DS_", "FLAT_", "GLOBAL_", "SCRATCH_", "BUFFER_", "TBUFFER_", "IMAGE_")
_WAVE = re.compile(
    r"S_|V_S_|V_(READ|WRITE)LANE|V_READFIRSTLANE|V_PERMLANE|DS_B?PERMUTE|DS_SWIZZLE|DS_APPEND|DS_CONSUME|L?DS_(PARAM|DIRECT)_LOAD|V_S?WMMAC?_|V_S?MFMAC?_"
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One instruction of the XML: text "" when it has none; sizes: place -> bits; renamed: see Source."""

    name: str
    text: str
    sizes: Mapping[str, int]
    renamed: Mapping[str, str]


def entries(root: ElementTree.Element) -> Iterator[Entry]:
    for x in root.iter("Instruction"):
        name = x.findtext("InstructionName") or ""
        text = (x.findtext("Pseudocode") or "").strip()
        yield Entry(name, text, dict(_sizes(name, x)), dict(_renamed(text, x)))


def _renamed(text: str, x: ElementTree.Element) -> Iterator[tuple[str, str]]:
    """SOPK: some texts count the immediate among the sources, which leaves the register S0 or no place."""
    names = set(re.findall(r"[A-Za-z_]\w*", text))
    is_sopk = any(e.text == "ENC_SOPK" for e in x.iter("EncodingName"))
    if is_sopk and "SIMM16" not in names and names & {"S0", "S1"}:
        yield ("S1" if "S1" in names else "S0"), "SIMM16"


def _sizes(name: str, x: ElementTree.Element) -> Iterator[tuple[str, int]]:
    for operand in x.iter("Operand"):
        field, bits = operand.findtext("FieldName") or "", int(operand.findtext("OperandSize") or 0)
        places = _PLACES_OF.get(field, ())
        if name.startswith(_MEMORY) and field == "VDST":
            places = _MEMORY_DEST
        if field == "SDST" and name.startswith("V_"):
            places = ()
        if field == "SDATA" and "_ATOMIC_" in name:
            places = ("DATA", "RETURN_DATA")
        for place in places:
            if bits:
                yield place, bits


def scope_of(name: str) -> Scope:
    return "wave" if _WAVE.match(name) else "lane"


def space_of(name: str) -> str:
    return "LDS" if name.startswith("DS_") else "MEM"


class Generator:
    """All rows of one architecture."""

    def __init__(self, arch: str, root: ElementTree.Element) -> None:
        self.arch = arch
        self.entries = {e.name: e for e in entries(root)}
        rows: Iterable[object] = import_module(f"stuntgpu.isa.errata.{arch}").ROWS
        self.mended = {n: r for r in rows if isinstance(r, Erratum | Own) for n in r.names}
        self.unbuilt = [r for r in rows if isinstance(r, Unbuilt)]
        self.same = {r.name: r.like for r in rows if isinstance(r, Same) and r.like in self.entries}
        self.library = dict(self._library())
        self.bodies = {n: load_body(f"({r.body})") for n, r in self.mended.items()}

    def _library(self) -> Iterator[tuple[str, ast.Block]]:
        for e in self.entries.values():
            if e.name.startswith("V_") and e.text:
                try:
                    yield e.name, parse(e.text)
                except SpecError:
                    continue  # prose: reported when the row itself is asked for

    def row(self, name: str) -> str:
        """The table's text for one instruction. Raises SpecError."""
        entry = self.entries[name]
        mended = self.mended.get(name)
        if mended is not None:
            body = self.bodies[name]
            origin = "erratum" if isinstance(mended, Erratum) else "own"
        else:
            for r in self.unbuilt:
                if any(fnmatchcase(name, p) for p in r.patterns):
                    return f"!{r.why}"
            if name in self.same:
                return self.row(self.same[name])
            if not entry.text:
                raise SpecError("no text and no row of our own")
            space = space_of(name)
            source = Source(
                name,
                parse(entry.text),
                entry.sizes,
                scope_of(name),
                space,
                self.library,
                self.bodies,
                entry.renamed,
                ARCHES[self.arch].fp8,
            )
            body, origin = tidy(lower(source)), "text"
        scope = "wave" if all(isinstance(x, Do) for x in body) else scope_of(name)
        sem = with_places(Semantics(name, scope, body, origin))
        verify(sem)
        return dumps(sem)

    def rows(self) -> tuple[dict[str, str], dict[str, str]]:
        """(name -> row, name -> why there is none)."""
        good: dict[str, str] = {}
        bad: dict[str, str] = {}
        for name in sorted(self.entries):
            try:
                good[name] = self.row(name)
            except SpecError as e:
                bad[name] = str(e)
        return good, bad

    def digest(self) -> str:
        h = hashlib.sha256()
        for e in self.entries.values():
            h.update(f"{e.name}\0{e.text}\0{sorted(e.sizes.items())}\0".encode())
        return h.hexdigest()[:16]


def generate(arch: str, root: ElementTree.Element) -> str:
    """The text of the table module. Raises SpecError when an instruction has no row."""
    g = Generator(arch, root)
    good, bad = g.rows()
    if bad:
        raise SpecError("; ".join(f"{n}: {why}" for n, why in bad.items()))
    return render(arch, g.digest(), good)


def render(arch: str, digest: str, good: Mapping[str, str]) -> str:
    lines = [
        f"# Generated by stuntgpu.isa.gen.semantics for {arch}; input digest {digest}.",
        "# fmt: off",
        f'"""Semantics of {arch}, one row an instruction; notation: isa/ir.py. "@X": as X; "!why": not modelled."""',
        "",
        "ROWS = {",
    ]
    owner: dict[str, str] = {}
    for name in sorted(good, key=lambda n: (len(n), n)):
        owner.setdefault(good[name], name)
    for name, row in sorted(good.items()):
        shared = owner[row]
        text = row if shared == name or row.startswith("!") else f"@{shared}"
        lines.append(f'    "{name}": "{text}",')
    return "\n".join([*lines, "}", ""])


def main(argv: list[str]) -> int:
    """Coverage of one architecture, on standard output; exit 1 when an instruction has no row."""
    arch, xml = argv
    good, bad = Generator(arch, additions.read(arch, Path(xml))).rows()
    for name, row in sorted(good.items()):
        if row.startswith("!"):
            print(f"{name}: not built: {row[1:]}")
    for name, why in bad.items():
        print(f"{name}: {why}")
    unbuilt = sum(r.startswith("!") for r in good.values())
    print(f"{arch}: {len(good) - unbuilt} rows, {unbuilt} not built, {len(bad)} without semantics")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
