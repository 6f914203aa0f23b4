"""Rules that a reviewer would otherwise have to check by eye."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.repo import tree

MAX_FUNCTION_LINES = 60
MAX_FILE_LINES = 700

# Spelled in pieces, so that this file does not match itself.
LEFT_FOR_LATER = re.compile("|".join(("TO" + "DO", "FIX" + "ME", "X" * 3, "NotImplemented" + "Error", "place" + "holder")))
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|root|" + r"home/\w+)/|/tm" + r"p/[a-z]")
REGISTRY = re.compile("|".join((r"py" + r"pi\.org", r"python" + r"hosted", r"npm" + r"js\.(?:org|com)", r"deb\." + r"debian")))
BARE_EXCEPT = re.compile(r"^\s*except\s*:", re.MULTILINE)


def hits(pattern: re.Pattern[str], paths: list[Path]) -> list[str]:
    return [
        f"{tree.name(path)}:{number} {line.strip()[:120]}"
        for path in paths
        for number, line in enumerate(tree.text(path).splitlines(), 1)
        if pattern.search(line)
    ]


def written() -> list[Path]:
    """Every hand-written text of the repository."""
    return [path for path in tree.files() if path.suffix in tree.TEXT and not tree.is_generated(path)]


def test_functions_fit_a_screen() -> None:
    long = [
        f"{tree.name(path)}:{node.lineno} {node.name}: {lines} lines"
        for path in tree.python_files()
        for node in ast.walk(tree.syntax(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > MAX_FUNCTION_LINES
    ]
    assert not long, "\n".join(long)


def test_files_stay_under_700_lines() -> None:
    big = [f"{tree.name(path)}: {lines}" for path in written() if path.suffix in {".py", ".c", ".h"}
           and (lines := tree.text(path).count("\n")) > MAX_FILE_LINES]
    assert not big, "\n".join(big)


def test_nothing_is_left_for_later() -> None:
    assert not (found := hits(LEFT_FOR_LATER, written())), "\n".join(found)


def test_no_path_of_a_developer_machine() -> None:
    assert not (found := hits(MACHINE_PATH, written())), "\n".join(found)


def test_no_package_registry_is_named() -> None:
    assert not (found := hits(REGISTRY, list(tree.files()))), "\n".join(found)


def test_errors_are_caught_by_name() -> None:
    assert not (found := hits(BARE_EXCEPT, tree.python_files())), "\n".join(found)


def test_every_module_says_what_it_is() -> None:
    silent = [
        tree.name(path)
        for path in tree.python_files()
        if tree.text(path).strip() and not ast.get_docstring(tree.syntax(path))
    ]
    assert not silent, "\n".join(silent)
