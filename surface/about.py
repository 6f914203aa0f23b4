"""`stuntgpu info`: the GPUs on offer, and what of each architecture is modelled."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cached_property

from rich import box
from rich.console import Console
from rich.table import Table

from stuntgpu import __version__
from stuntgpu.isa.abi.devices import KIB, device
from stuntgpu.isa.arch import ARCHES, arch
from stuntgpu.isa.semantics import rows
from stuntgpu.mockdrivers.run import describe_gpus

GIB = 1 << 30
#: Columns of tables that no terminal limits.
PIPE_WIDTH = 120


@dataclass(frozen=True)
class Coverage:
    """Instructions of an architecture: `known` decode, assemble and disassemble; `executed` also run."""

    arch: str

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(arch(self.arch).tables.by_name)

    @property
    def known(self) -> int:
        return len(self.names)

    @cached_property
    def missing(self) -> dict[str, str]:
        """Instruction -> why executing it raises Unmodelled."""
        table = rows(self.arch) if arch(self.arch).has_semantics else {}
        texts = {name: table.get(name, "!no semantics") for name in self.names}
        return {name: text[1:] for name, text in sorted(texts.items()) if text.startswith("!")}

    @property
    def executed(self) -> int:
        return self.known - len(self.missing)


def show() -> None:
    console = Console()
    console.print(f"stuntgpu {__version__}")
    console.print(devices())
    console.print(profiles())
    console.print(architectures())


def show_coverage(name: str | None = None, instruction: str | None = None) -> None:
    """Coverage by encoding and by where semantics come from, or of the instructions a pattern names.

    Raises UnknownArch, and ValueError when no instruction has the name.
    """
    from stuntgpu.coverage import page, records

    names = [arch(name).name] if name else sorted(ARCHES)
    found = [r for r in records.stored() if r.arch in names]
    console = Console(width=None if sys.stdout.isatty() else PIPE_WIDTH)
    if instruction is not None:
        matches = [r for r in found if fnmatchcase(r.name, instruction.upper())]
        if not matches:
            near = get_close_matches(instruction.upper(), sorted({r.name for r in found}), n=3)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise UnknownInstruction(f"no instruction {instruction.upper()} in {', '.join(names)}{hint}")
        console.print(page.details(matches))
        return
    for one in names:
        of_one = [r for r in found if r.arch == one]
        console.print(page.table(one, of_one))
        console.print(page.provenance(of_one))


class UnknownInstruction(ValueError):
    """No architecture asked about has it."""


def devices() -> Table:
    """One row a chip that `stuntgpu run --gpu` and DEV=MOCK... offer."""
    table = Table(title="GPUs on offer", title_justify="left", box=box.SIMPLE_HEAD)
    for column in ("arch", "name", "compute units", "VRAM", "interfaces"):
        table.add_column(column)
    for gpu in describe_gpus():
        table.add_row(gpu.arch, gpu.name, str(gpu.compute_units), f"{gpu.vram_bytes // GIB} GiB", ", ".join(gpu.interfaces))
    return table


def profiles() -> Table:
    """One row an architecture: the GPU whose size bounds what runs at a time in `Gpu(arch)`; waves and LDS of a compute unit,
    VGPRs of a SIMD by wave size."""
    table = Table(title="Devices the emulator executes as, and what their compute units hold", title_justify="left", box=box.SIMPLE_HEAD)
    for column in ("arch", "GPU", "XCCs", "CUs", "waves", "VGPRs", "LDS"):
        table.add_column(column, justify="left" if column in ("arch", "GPU") else "right", no_wrap=True)
    for name in sorted(ARCHES):
        d = device(name)
        vgprs = "/".join(str(file.per_simd) for file in d.vgprs.values())
        table.add_row(name, d.marketing_name.removeprefix("AMD "), str(d.xccs), str(d.compute_units),
                      str(d.simds_per_cu * d.wave_slots), vgprs, f"{d.lds_bytes // KIB} KiB")
    return table


def architectures() -> Table:
    """How many instructions of each architecture decode, and how many of these run."""
    table = Table(title="Instructions", title_justify="left", box=box.SIMPLE_HEAD)
    for column in ("arch", "decoded", "executed"):
        table.add_column(column, justify="left" if column == "arch" else "right")
    for name in sorted(ARCHES):
        cover = Coverage(name)
        table.add_row(name, str(cover.known), f"{cover.executed} ({cover.executed / cover.known:.0%})")
    return table
