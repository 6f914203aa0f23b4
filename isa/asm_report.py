"""Several errors of one source, in the order of its lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from stuntgpu.isa.asm_lex import AsmError

#: Errors that are shown; and those after which reading stops.
SHOWN, MOST = 20, 100


class AsmErrors(AsmError):
    """More than one error. Line, column and message are those of the first; errors: all that were found."""

    def __init__(self, errors: Sequence[AsmError]) -> None:
        first = errors[0]
        super().__init__(first.message, first.column, first.text, first.line)
        self.errors = tuple(errors)

    def __str__(self) -> str:
        shown = "\n".join(str(e) for e in self.errors[:SHOWN])
        more = len(self.errors) - SHOWN
        return f"{shown}\nand {more} more errors" if more > 0 else shown


class Report:
    """Collects errors while work goes on."""

    def __init__(self) -> None:
        self.errors: list[AsmError] = []

    def add(self, error: AsmError) -> None:
        """Notes an error; raises all of them when there are too many to go on."""
        new = error.errors if isinstance(error, AsmErrors) else (error,)
        known = {(e.line, e.column, e.message) for e in self.errors}
        self.errors += [e for e in new if (e.line, e.column, e.message) not in known]
        if len(self.errors) >= MOST:
            self.check()

    @contextmanager
    def at(self, line: int, text: str) -> Iterator[None]:
        """Notes what is wrong in the block; an error that has no line yet gets this one."""
        try:
            yield
        except AsmError as e:
            self.add(e if e.line else e.at_line(line, text))

    def check(self) -> None:
        """Raises what was noted, if anything."""
        if not self.errors:
            return
        errors = sorted(self.errors, key=lambda e: (e.line, e.column))
        if len(errors) == 1:
            raise errors[0]
        raise AsmErrors(errors)
