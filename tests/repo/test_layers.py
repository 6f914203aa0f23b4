"""Imports point one way (the table of docs/architecture.md)."""

from __future__ import annotations

import ast

import pytest

from tests.repo import tree


@pytest.mark.parametrize("folder", tree.LAYERS)
def test_folder_imports_only_what_its_row_allows(folder: str) -> None:
    allowed = tree.LAYERS[folder] | {folder}
    wrong = []
    for path in tree.python_files():
        if not tree.name(path).startswith(f"{folder}/"):
            continue
        ours = {m.split(".")[1] for m in tree.imports(path) if m.startswith("stuntgpu.")}
        wrong += [f"{tree.name(path)} imports stuntgpu.{layer}" for layer in sorted(ours - allowed)]
    assert not wrong, "\n".join(wrong)


def test_sqtt_reaches_emu_only_through_its_events() -> None:
    wrong = [
        f"{tree.name(path)} imports {module}"
        for path in tree.python_files()
        if tree.name(path).startswith("sqtt/")
        for module in tree.imports(path)
        if module.startswith("stuntgpu.emu.") and not module.startswith("stuntgpu.emu.events")
    ]
    assert not wrong, "\n".join(wrong)


def test_the_package_never_imports_relatively() -> None:
    """Folders are mapped to packages at install: only absolute names say where a module lives."""
    wrong = [
        f"{tree.name(path)}:{node.lineno}"
        for path in tree.python_files()
        for node in ast.walk(tree.syntax(path))
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert not wrong, "\n".join(wrong)


def test_documented_table_is_the_tested_one() -> None:
    rows = [
        [cell.strip().strip("`/") for cell in line.strip("|").split("|")]
        for line in tree.text(tree.ROOT / "docs/architecture.md").splitlines()
        if line.startswith("| `")
    ]
    documented = {row[0]: row[-1] for row in rows}
    for folder, allowed in tree.LAYERS.items():
        said = {word.strip(" `").split(".")[0] for word in documented[folder].split(",")} - {"nothing of ours"}
        assert said == set(allowed), f"docs/architecture.md, row {folder}"
