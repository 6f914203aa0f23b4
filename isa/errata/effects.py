"""What an instruction touches beyond its semantics row, or where the vendor's operand list says otherwise.

Test:    tests/isa/test_effects_xml.py: every difference between the semantics and the operand lists is a row here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class Extra:
    """Instructions whose name matches also read and write these: "M0", "EXEC", "SCC", "PC", "TTMP" (the
    first two trap temporaries), "MODE", "VCC".

    why  what hardware does with them, and who says so.
    """

    names: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    why: str
    certain: bool = True

    def applies(self, name: str) -> bool:
        return re.fullmatch(self.names, name) is not None


#: Accesses of hardware that the rows, which describe what a kernel can compute, leave out.
EXTRAS = (
    Extra("S_SENDMSG|S_SENDMSGHALT", ("M0",), (), "M0 is the message's data (ISA documents, S_SENDMSG)"),
    Extra("S_TTRACEDATA", ("M0",), (), "M0 is the word that goes to the thread trace"),
    Extra("S_TRAP", ("PC",), ("PC", "TTMP"), "the trap handler gets the PC in ttmp0 and ttmp1", certain=False),
    Extra("EXP|EXPORT", ("EXEC",), (), "EXEC says which lanes export; M0 is the row of a primitive export"),
    Extra("EXP|EXPORT", ("M0",), (), "M0 is the row of an export with ROW_EN", certain=False),
    Extra("(LDS|DS)_PARAM_LOAD", ("M0",), (), "M0 holds where the parameters lie in LDS and which quads are new"),
    Extra("DS_GWS_.*|DS_ORDERED_COUNT", ("M0",), (), "M0 holds the resource's number"),
)  # fmt: skip


@lru_cache(maxsize=4096)
def extras(name: str) -> tuple[Extra, ...]:
    return tuple(e for e in EXTRAS if e.applies(name))


@dataclass(frozen=True, slots=True)
class Differs:
    """Where semantics and operand list disagree on one access ("r" or "w" of a role); what is believed is said by `why`."""

    names: str
    access: str  # "r VCC", "w EXEC": in the operand list only; "+r M0": in the semantics only
    why: str


DIFFERENCES: tuple[Differs, ...] = ()
