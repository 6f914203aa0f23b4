"""Which architectures long tests take."""

from __future__ import annotations

from stuntgpu.isa.arch import ARCHES

#: Those that do not extend another: the others share nearly everything with one of these.
WHOLE = sorted(a.name for a in ARCHES.values() if not a.extends)
EXTENSIONS = frozenset(ARCHES) - set(WHOLE)
