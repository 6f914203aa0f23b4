"""The four ways things go wrong, told apart by type (see STYLE: errors)."""

from __future__ import annotations


class SpecError(Exception):
    """Our tables or the vendor's text are wrong; raised at generation or load of a table."""


class Unmodelled(Exception):
    """Real on hardware, not built yet: says architecture, item and where it would go."""

    def __init__(self, arch: str, item: str, place: str) -> None:
        super().__init__(f"{arch}: {item} is not modelled yet (would go in {place})")
        self.arch, self.item, self.place = arch, item, place

    def __reduce__(self) -> tuple[type[Unmodelled], tuple[str, str, str]]:
        return Unmodelled, (self.arch, self.item, self.place)


class GuestFault(Exception):
    """The client or its kernel did wrong; `str()` is the report a person reads."""


class Bug(Exception):
    """An invariant of our own broke."""
