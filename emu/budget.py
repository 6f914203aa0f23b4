"""How many instructions a launch may execute before it counts as endless."""

from __future__ import annotations

import os
from collections.abc import Mapping

VARIABLE = "STUNTGPU_MAX_WAVE_INSTRUCTIONS"
#: Minutes of native execution: far beyond real kernels, near enough that a hang is reported.
DEFAULT = 100_000_000_000


def max_wave_instructions(environ: Mapping[str, str] = os.environ) -> int:
    """The budget of one launch, in wave-instructions; 0 means none. Raises ValueError naming the variable."""
    text = environ.get(VARIABLE, "")
    if not text:
        return DEFAULT
    if not text.isdecimal():
        raise ValueError(f"{VARIABLE}={text!r}: expected a whole number of wave-instructions, 0 for no limit")
    return int(text)
