"""`.amdgpu_metadata`: the YAML between its lines, as the map that the note of a code object holds.

Plain scalars are numbers and truth values where they read as such, quoted ones text: compilers rely on it.

Errors:  AsmError at the line the YAML reader complains about.
Source:  AMDGPU back-end user guide, "Code Object Metadata".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from stuntgpu.isa.asm_lex import AsmError
from stuntgpu.isa.asm_sections import Line

_NUMBER = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|\d+)")


def read_metadata(lines: Sequence[Line]) -> Any:
    """The document. Raises AsmError."""
    import yaml

    try:
        root = yaml.compose("\n".join(line.text for line in lines), Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as e:
        at = e.problem_mark or e.context_mark
        line = lines[min(at.line, len(lines) - 1)] if at else lines[0]
        raise AsmError(f"metadata: {e.problem}", at.column + 1 if at else 1).at_line(line.number, line.text) from None
    data = _value(root)
    if not isinstance(data, dict):
        raise AsmError("metadata is not a map").at_line(lines[0].number, lines[0].text)
    return data


def _value(node: Any) -> Any:
    if node is None:
        return None
    if node.id == "mapping":
        return {_value(key): _value(value) for key, value in node.value}
    if node.id == "sequence":
        return [_value(item) for item in node.value]
    text = node.value
    if node.style is None and _NUMBER.fullmatch(text):
        return int(text, 0) if not text.lstrip("+-").isdigit() else int(text)
    if node.style is None and text in ("true", "false"):
        return text == "true"
    return text
