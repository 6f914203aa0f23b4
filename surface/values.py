"""Kernel arguments written on a command line.

    f32:1000            a buffer of zeros            u32=1000     a scalar by value
    f32:1000=arange     0, 1, 2, ...                 null         a null pointer
    f32:16,16=0.5       filled with one value        lds:4096     a pointer to 4096 bytes of LDS
    f32:1000=random     uniform in [0, 1), or any integer; the same numbers every time
    @points.npy         a buffer from a numpy file

Errors:  ArgumentSyntaxError shows the text and what it may look like.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

TYPES: dict[str, type[np.generic]] = {
    "f16": np.float16, "f32": np.float32, "f64": np.float64,
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
}
_SHAPE = re.compile(r"(?P<type>\w+):(?P<shape>\d+(?:[,x]\d+)*)(?:=(?P<fill>\S+))?")
_SCALAR = re.compile(r"(?P<type>\w+)=(?P<value>\S+)")
RANDOM_SEED = 0


class ArgumentSyntaxError(ValueError):
    """An argument that does not read as one of the forms above."""


def parse(text: str) -> Any:
    """A numpy array or scalar, None for `null`, or the byte count of `lds:BYTES` as emu's Local."""
    if text == "null":
        return None
    if text.startswith("@"):
        return _from_file(text[1:])
    if found := _SHAPE.fullmatch(text):
        shape = tuple(int(n) for n in re.split("[,x]", found["shape"]))
        if found["type"] == "lds":
            return _local(shape)
        return _buffer(_type(found["type"], text), shape, found["fill"] or "0", text)
    if found := _SCALAR.fullmatch(text):
        return _number(_type(found["type"], text), found["value"], text)
    raise ArgumentSyntaxError(f"argument {text!r}: expected like f32:1000=arange, u32=1000, @file.npy, null or lds:4096")


def _type(name: str, text: str) -> type[np.generic]:
    if name not in TYPES:
        raise ArgumentSyntaxError(f"argument {text!r}: no type {name!r}; there are {', '.join(TYPES)}")
    return TYPES[name]


def _number(kind: type[Any], value: str, text: str) -> np.generic:
    try:
        number: np.generic = kind(float(value) if issubclass(kind, np.floating) else int(value, 0))
    except (ValueError, OverflowError) as error:
        raise ArgumentSyntaxError(f"argument {text!r}: {error}") from None
    return number


def _buffer(kind: type[Any], shape: tuple[int, ...], fill: str, text: str) -> np.ndarray[Any, Any]:
    if fill == "arange":
        return np.arange(np.prod(shape)).astype(kind).reshape(shape)
    if fill == "random":
        rng = np.random.default_rng(RANDOM_SEED)
        if issubclass(kind, np.floating):
            return rng.random(shape).astype(kind)
        bounds = np.iinfo(kind)
        return rng.integers(bounds.min, bounds.max, shape, dtype=kind, endpoint=True)
    return np.full(shape, _number(kind, fill, text))


def _from_file(path: str) -> np.ndarray[Any, Any]:
    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise ArgumentSyntaxError(f"argument '@{path}': {error}") from None
    if not isinstance(array, np.ndarray):
        raise ArgumentSyntaxError(f"argument '@{path}': expected one array (.npy), this holds several")
    return array


def _local(shape: tuple[int, ...]) -> object:
    from stuntgpu.emu.arguments import Local

    return Local(int(np.prod(shape)))
