"""The repository as the tests of this folder see it: its own files, parsed once."""

from __future__ import annotations

import ast
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LAYERS = {
    "isa": frozenset[str](),
    "emu": frozenset({"isa"}),
    "sqtt": frozenset({"isa", "emu"}),
    "mockdrivers": frozenset({"isa", "emu", "sqtt"}),
    "compiler": frozenset({"isa"}),
    "runtime": frozenset({"isa", "compiler"}),
}
"""DESIGN's table: folder -> the folders of ours that it may import."""

TEXT = {".py", ".c", ".h", ".md", ".toml", ".cl", ".hip", ".s", ""}


@cache
def files(suffix: str | None = None) -> tuple[Path, ...]:
    """Files of the repository (tracked or about to be), optionally of one suffix.

    Outside a git clone (an unpacked sdist) it is every file that is not hidden or built.
    """
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode == 0:
        found = [ROOT / name for name in listed.stdout.splitlines()]
    else:
        found = [p for p in ROOT.rglob("*") if not any(part.startswith(".") for part in p.relative_to(ROOT).parts)]
    return tuple(sorted(p for p in found if p.is_file() and (suffix is None or p.suffix == suffix)))


@cache
def text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


@cache
def syntax(path: Path) -> ast.Module:
    return ast.parse(text(path), str(path))


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def is_generated(path: Path) -> bool:
    """A table written by a generator: its first line names the generator and the input's digest."""
    return "generated" in text(path)[:400].lower()


def python_files() -> list[Path]:
    """Python by hand: generated tables excepted."""
    return [p for p in files(".py") if not is_generated(p)]


def imports(path: Path) -> set[str]:
    """Full names of every module the file imports, at any depth of nesting."""
    found: set[str] = set()
    for node in ast.walk(syntax(path)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found
