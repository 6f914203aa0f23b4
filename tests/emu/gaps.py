"""What the reference runs and the native tier does not yet: such instructions fault as unmodelled there.

The list only shrinks; `test_gaps_are_real` fails when an entry runs natively and should go.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

#: Pattern of instruction names -> why.
NATIVE: dict[str, str] = {
}


def is_native_gap(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in NATIVE)
