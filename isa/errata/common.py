"""Where the vendor's text is missing, wrong or unsuitable, and what to use instead.

Three kinds of rows, all in the notation of `isa/ir.py`:
  Erratum    the text is there but hardware does something else (or the text cannot be code).
  Own        no usable text; what the instruction does is common knowledge of the manuals' chapters.
  Unbuilt    real on hardware, not modelled here yet; semantics() raises Unmodelled with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Erratum:
    """names share `body` (statements in text form, without the outer parentheses).

    says    what the text says, in our words; does: what hardware does.
    source  who knows; test: the test that pins it.
    """

    names: tuple[str, ...]
    says: str
    does: str
    source: str
    body: str
    test: str


@dataclass(frozen=True, slots=True)
class Own:
    names: tuple[str, ...]
    why: str
    body: str


@dataclass(frozen=True, slots=True)
class Unbuilt:
    """patterns are fnmatch patterns over instruction names."""

    patterns: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Same:
    """`name` does exactly what `like` does."""

    name: str
    like: str


FACTS = "isa-spec/README.md, 'Hardware facts that correct the pseudocode'"
MANUAL = "the manual's chapters on program control and on the instruction formats"
