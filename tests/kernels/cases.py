"""Registry of kernels compiled by clang and checked against numpy.

A case is one function that makes a problem: inputs, launches, and what numpy says must be in memory after.

    @case("scan_block", "scan.hip", "ds_bpermute between lanes, LDS between waves", n=5000, small=300)
    def scan_block(s: Setting) -> Problem:
        x, out = s.rng.integers(0, 9, s.n, dtype=np.uint32), np.zeros(s.n, np.uint32)
        return Problem([Step("scan_block", (x, out, np.uint32(s.n)), groups(s.n, 256), (256,))],
                       [Check("sums", out, np.cumsum(x, dtype=np.uint32))])

How to add cases: put the source under `src/` (it includes "device.h"; its first line says what hardware feature
it is there for), decorate a function in a `cases_*.py` module, and name that module in `MODULES`.

Interface
    case(name, source, exercises, *, n, small, ...)  registers; see `Case` for what can be chosen.
    Setting    what the function is told: architecture, lanes of a wave, size, seeded generator.
    Step       one launch: kernel symbol, arguments, grid in work-items, workgroup. Steps share their arrays.
    Check      after the last step `got` (an array the kernels wrote, or a function that makes one from such
               arrays) must equal `want`; rtol and atol stay 0 wherever results are integers or exactly rounded.
               Where `want` is NaN, `got` must be NaN.
    Problem    steps and checks. `want` is computed when the problem is made: use copies of arrays that
               kernels write.
Each case runs at size `n` natively and at size `small` on both tiers, which must leave the same bytes in
every array; so kernels must be free of races that show in memory (the order of atomics included), else
their arrays are listed in `unordered`. `small` has to stay below some 2000 wave instructions: the reference
does a few thousand in a second.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

#: Modules that register cases.
MODULES = tuple(f"tests.kernels.cases_{part}" for part in ("order", "grid", "bits", "machine", "network", "work", "calls", "lanes", "numbers", "storage", "narrow", "assembly"))
#: Architecture -> lanes that a wave can have.
TARGETS = {"gfx1100": (32, 64), "gfx1201": (32, 64), "gfx942": (64,), "gfx950": (64,)}


@dataclass(frozen=True)
class Setting:
    """What a problem is made for. n: size, in units of the case's own."""

    arch: str
    lanes: int
    n: int
    rng: np.random.Generator


@dataclass(frozen=True)
class Step:
    """One launch. grid in work-items; shared: bytes of dynamic LDS."""

    kernel: str
    args: tuple[object, ...]
    grid: tuple[int, ...]
    workgroup: tuple[int, ...]
    shared: int = 0


@dataclass(frozen=True)
class Check:
    """What memory must hold after the last step."""

    name: str
    got: Array | Callable[[], Array]
    want: Array
    rtol: float = 0.0
    atol: float = 0.0

    def mismatch(self) -> str:
        """What differs, "" nothing."""
        got = self.got() if callable(self.got) else self.got
        if (got.shape, got.dtype) != (self.want.shape, self.want.dtype):
            return f"{self.name}: {got.dtype}{got.shape}, expected {self.want.dtype}{self.want.shape}"
        where = np.argwhere(~self._equal(got))
        if not len(where):
            return ""
        first = tuple(int(i) for i in where[0])
        return f"{self.name}: {len(where)} of {got.size} differ; {list(first)} is {got[first]}, expected {self.want[first]}"

    def _equal(self, got: Array) -> Array:
        if self.rtol or self.atol:
            return np.isclose(got, self.want, self.rtol, self.atol, equal_nan=True)
        return (got == self.want) | ((got != got) & (self.want != self.want))


@dataclass(frozen=True)
class Problem:
    """Launches and what they must lead to. unordered: arrays whose bytes depend on the order of atomics."""

    steps: list[Step]
    checks: list[Check]
    unordered: list[Array] = field(default_factory=list)

    def arrays(self) -> list[Array]:
        """Every array a kernel was given and that must come out the same in any order."""
        seen = {id(a): a for step in self.steps for a in step.args if isinstance(a, np.ndarray)}
        for a in self.unordered:
            seen.pop(id(a), None)
        return list(seen.values())


@dataclass(frozen=True)
class Case:
    """One row of the registry.

    exercises   the hardware feature it is there for.
    n, small    size that runs natively, size that runs on both tiers (0: the reference is left out).
    level       optimisation level.   flags: more of the compiler's.   language: "hip" or "cl".
    lanes       waves it is built for; those a target does not have are left out.
    archs       targets.              quick: not marked slow.
    """

    name: str
    source: str
    exercises: str
    make: Callable[[Setting], Problem]
    n: int
    small: int
    level: str = "-O2"
    flags: tuple[str, ...] = ()
    language: str = "hip"
    lanes: tuple[int, ...] = (32, 64)
    archs: tuple[str, ...] = tuple(TARGETS)
    quick: bool = False

    def problem(self, arch: str, lanes: int, n: int) -> Problem:
        """The same numbers on every call."""
        with np.errstate(all="ignore"):
            return self.make(Setting(arch, lanes, n, np.random.default_rng([n, *self.name.encode()])))


@dataclass(frozen=True)
class Build:
    """A case for one target and wave size."""

    case: Case
    arch: str
    lanes: int

    def __str__(self) -> str:
        return f"{self.arch}-wave{self.lanes}-{self.case.name}"


_CASES: dict[str, Case] = {}


def case(name: str, source: str, exercises: str, *, n: int, small: int,
         **choices: Any) -> Callable[[Callable[[Setting], Problem]], Callable[[Setting], Problem]]:
    """Registers the decorated function; choices as in `Case`."""

    def register(make: Callable[[Setting], Problem]) -> Callable[[Setting], Problem]:
        if name in _CASES:
            raise ValueError(f"two cases named {name!r}")
        _CASES[name] = Case(name, source, exercises, make, n, small, **choices)
        return make

    return register


def cases() -> list[Case]:
    """Every case of `MODULES`."""
    for module in MODULES:
        import_module(module)
    return list(_CASES.values())


def builds() -> list[Build]:
    """Every case for every target and wave size it has."""
    return [Build(c, arch, lanes) for c in cases() for arch in c.archs
            for lanes in c.lanes if lanes in TARGETS[arch]]


def groups(n: int, size: int) -> tuple[int]:
    """Grid of whole workgroups of `size` for n work-items."""
    return (-(-n // size) * size,)
