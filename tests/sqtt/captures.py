"""The recorded traces of ../shared/goldens/sqtt (its README.md says what a manifest holds)."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from stuntgpu.sqtt.program import Program
from tests.shared import shared_dir

CHIPS = ("gfx1100", "gfx1151", "gfx1200", "gfx950")


def folder() -> Path:
    return shared_dir() / "goldens/sqtt"


@dataclass(frozen=True)
class Capture:
    """One folder: the kernels that ran, and a trace for each launch and shader engine."""

    path: Path

    @cached_property
    def manifest(self) -> Any:
        return json.loads((self.path / "manifest.json").read_text())

    @cached_property
    def programs(self) -> list[Program]:
        """By the code in the manifest: some of the stored objects have no header to speak of."""
        return [
            Program.from_code(bytes.fromhex(k["text_hex"]), self.manifest["arch"], name=k["name"],
                              address=k["load_base"] + k["text_addr"])
            for k in self.manifest["kernels"]
        ]  # fmt: skip

    @cached_property
    def traces(self) -> list[Recorded]:
        return [Recorded(self, row) for row in self.manifest["traces"]]


@dataclass(frozen=True)
class Recorded:
    """One buffer with what is known about it."""

    capture: Capture
    row: Any

    def __str__(self) -> str:
        return f"{self.capture.manifest['arch']} {self.capture.path.name} {self.row['file']}"

    @cached_property
    def buffer(self) -> bytes:
        return gzip.decompress((self.capture.path / self.row["file"]).read_bytes())

    @property
    def packets(self) -> list[Any]:
        """[nibble, nibbles, time, type, fields] of each packet."""
        return self._rows("packets")

    @property
    def instructions(self) -> list[Any]:
        """[packet, pc, where..., bytes, mnemonic] of each instruction."""
        return self._rows("map")

    @property
    def programs(self) -> list[Program]:
        """The capture's kernels, the one that ran first: a later launch may have put another at its address."""
        ran = self.row["kernel"]
        every = self.capture.programs
        return every if ran is None else [every[ran], *every[:ran], *every[ran + 1 :]]

    @property
    def load_base(self) -> int:
        """Of the kernel that ran; of the first when that is not known."""
        return int(self.capture.manifest["kernels"][self.row["kernel"] or 0]["load_base"])

    def _rows(self, kind: str) -> list[Any]:
        """Rows of a file, the corrected one where there is one."""
        name = self.row.get(f"{kind}_corrected_file") or self.row.get(f"{kind}_file")
        if name is None:
            return []
        lines = gzip.decompress((self.capture.path / name).read_bytes()).splitlines()
        rows: list[Any] = json.loads(b"[" + b",".join(lines) + b"]")
        return rows


def captures(chip: str) -> Iterator[Capture]:
    """All captures of a chip."""
    for manifest in sorted((folder() / chip).glob("*/manifest.json")):
        yield Capture(manifest.parent)


def recorded(chip: str) -> Iterator[Recorded]:
    for capture in captures(chip):
        yield from capture.traces


def sample(chip: str, n: int = 3, most: int = 3000) -> list[Recorded]:
    """The first traces of different captures that tell of instructions and are short."""
    found: list[Recorded] = []
    for capture in captures(chip):
        fitting = (t for t in capture.traces if t.row.get("map_file") and t.row["packets"] <= most)
        found += [*fitting][:1]
        if len(found) >= n:
            break
    return found
