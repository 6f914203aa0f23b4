"""The DEV variable: which device, through which interface, with which renderer.

    [INTERFACE[:INDEX,...]+]DEVICE[:RENDERER[:ARCH]]      several are joined by ";"

    KFD+AMD   MOCKKFD:0,1+AMD:LLVM:gfx1100   MOCKNVK+NV   MOCK+CUDA:PTX   NULL::gfx1100

Errors:  DevError points at the part that is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stuntgpu.isa.errors import Unmodelled


class DevError(ValueError):
    """A DEV that does not parse; shows the text, the column and what was expected there."""

    def __init__(self, text: str, column: int, problem: str) -> None:
        super().__init__(f"DEV: {problem}\n  {text}\n  {' ' * column}^")
        self.text, self.column, self.problem = text, column, problem


@dataclass(frozen=True, slots=True)
class Family:
    """What goes with a DEVICE. The first interface is the one meant when none is named."""

    interfaces: tuple[str, ...]
    renderers: tuple[str, ...]


FAMILIES: Mapping[str, Family] = {
    "AMD": Family(("KFD", "PCI", "USB", "MOCKKFD", "MOCKPCI", "MOCKUSB"), ("LLVM", "ASM", "HIP", "CL")),
    "NV": Family(("NVK", "PCI", "MOCKNVK"), ("PTX", "CUDA")),
    "CUDA": Family(("", "MOCK"), ("PTX", "CUDA")),
    "NULL": Family(("",), ("LLVM", "ASM", "HIP", "CL", "PTX", "CUDA")),
}
#: Short spellings: (interface, device) -> interface.
ALIASES = {("MOCK", "AMD"): "MOCKKFD", ("MOCK", "NV"): "MOCKNVK"}
#: What there is code for.
BUILT = frozenset({("KFD", "AMD"), ("MOCKKFD", "AMD")})


@dataclass(frozen=True, slots=True)
class DevSpec:
    """One parsed device. `indices`: GPUs of the machine to use, in order; () all. "" means: not named."""

    interface: str
    indices: tuple[int, ...]
    device: str
    renderer: str = ""
    arch: str = ""

    @property
    def is_mock(self) -> bool:
        return self.interface.startswith("MOCK")

    def __str__(self) -> str:
        """The canonical spelling; parses back to the same."""
        indices = ":" + ",".join(map(str, self.indices)) if self.indices else ""
        head = f"{self.interface}{indices}+" if self.interface else ""
        tail = f":{self.renderer}:{self.arch}" if self.arch else f":{self.renderer}" if self.renderer else ""
        return f"{head}{self.device}{tail}"

    def require_built(self) -> DevSpec:
        """Itself; raises Unmodelled for an interface there is no code for."""
        if (self.interface, self.device) not in BUILT:
            name = f"{self.interface}+{self.device}" if self.interface else self.device
            raise Unmodelled(self.arch or self.device, f"the interface {name}", "runtime/")
        return self


def parse_dev(text: str) -> tuple[DevSpec, ...]:
    """Every device of a DEV. Raises DevError."""
    out, column = [], 0
    for part in text.split(";"):
        out.append(_parse_one(text, column, part))
        column += len(part) + 1
    return tuple(out)


def _parse_one(text: str, column: int, part: str) -> DevSpec:
    head, plus, tail = part.partition("+")
    at = column
    if not plus:
        head, tail = "", part
    else:
        at += len(head) + 1
    words = tail.split(":")
    device = words[0].strip().upper()
    if device not in FAMILIES:
        raise DevError(text, at, f"unknown device {words[0]!r}, known: {', '.join(FAMILIES)}")
    if len(words) > 3:
        raise DevError(text, at + len(":".join(words[:3])), "expected DEVICE:RENDERER:ARCH and no more")
    renderer = _renderer(text, at + len(words[0]) + 1, device, words[1] if len(words) > 1 else "")
    interface, indices = _interface(text, column, head, device, bool(plus))
    return DevSpec(interface, indices, device, renderer, words[2].strip().lower() if len(words) > 2 else "")


def _renderer(text: str, column: int, device: str, word: str) -> str:
    name, known = word.strip().upper(), FAMILIES[device].renderers
    if name and name not in known:
        raise DevError(text, column, f"unknown renderer {word!r} for {device}, known: {', '.join(known)}")
    return name


def _interface(text: str, column: int, head: str, device: str, is_named: bool) -> tuple[str, tuple[int, ...]]:
    known = FAMILIES[device].interfaces
    if not is_named:
        return known[0], ()
    word, colon, list_ = head.partition(":")
    name = word.strip().upper()
    name = ALIASES.get((name, device), name)
    if not name or name not in known:
        offered = ", ".join(filter(None, known)) or "none"
        raise DevError(text, column, f"unknown interface {word!r} for {device}, known: {offered}")
    return name, _indices(text, column + len(word) + 1, list_) if colon else ()


def _indices(text: str, column: int, list_: str) -> tuple[int, ...]:
    out: list[int] = []
    for word in list_.split(","):
        if not word.strip().isdecimal() or not word.strip().isascii():
            raise DevError(text, column, f"expected a GPU index, not {word!r}")
        if int(word) in out:
            raise DevError(text, column, f"GPU index {int(word)} is named twice")
        out.append(int(word))
        column += len(word) + 1
    return tuple(out)
