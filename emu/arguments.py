"""What a caller passes to a kernel, turned into the bytes of its arguments.

Units:   bytes.
Errors:  LaunchError names the argument, what was given and what it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from stuntgpu.emu.buffers import Array, check_array
from stuntgpu.emu.descriptor_launch import LaunchError
from stuntgpu.isa.abi import kernarg
from stuntgpu.isa.abi.codeobject import KernelArg, KernelInfo
from stuntgpu.isa.abi.targets import round_up

#: (array, name for fault reports) -> GPU VA.
Place = Callable[[Array, str], int]

_LOCAL_ALIGN = 16


@dataclass(frozen=True, slots=True)
class Local:
    """`size` bytes of LDS, for a kernel argument that points into it."""

    size: int


def triple(value: tuple[int, ...] | int, what: str) -> tuple[int, int, int]:
    """One to three positive sizes as x, y, z. Raises LaunchError."""
    sizes = value if isinstance(value, tuple | list) else (value,)
    if not 1 <= len(sizes) <= 3 or not all(isinstance(v, int | np.integer) and v > 0 for v in sizes):
        raise LaunchError(f"{what} {value!r}: expected one to three positive whole numbers")
    x, y, z = (*(int(v) for v in sizes), 1, 1)[:3]
    return x, y, z


def encode(info: KernelInfo, args: Sequence[object], place: Place) -> tuple[list[bytes], int]:
    """(bytes of each explicit argument, LDS of a workgroup with the Local arguments behind the kernel's own)."""
    wanted = info.explicit_args
    if len(args) != len(wanted):
        listed = ", ".join(_signature(info, i) for i in range(len(wanted)))
        raise LaunchError(f"kernel {info.name!r} takes {len(wanted)} arguments ({listed}), got {len(args)}")
    lds = info.descriptor.group_segment_size
    values: list[bytes] = []
    for i, (arg, value) in enumerate(zip(wanted, args, strict=True)):
        where = f"kernel {info.name!r}, {kernarg.label(info, i)}"
        if arg.kind == "dynamic_shared_pointer":
            if not isinstance(value, Local):
                raise LaunchError(f"{where}: {_kind(value)}, it takes Local(bytes)")
            lds = round_up(lds, arg.align or _LOCAL_ALIGN)
            values.append(lds.to_bytes(arg.size, "little"))
            lds += value.size
        else:
            values.append(_value(arg, value, where, kernarg.label(info, i), place))
    return values, lds


def _value(arg: KernelArg, value: object, where: str, label: str, place: Place) -> bytes:
    if arg.kind == "by_value":
        return _scalar(arg, value, where)
    if arg.kind != "global_buffer":
        raise LaunchError(f"{where}: arguments of kind {arg.kind!r} cannot be passed")
    if value is None:
        return bytes(arg.size)
    if isinstance(value, np.ndarray):
        check_array(value, where)
        return place(value, label).to_bytes(arg.size, "little")
    if isinstance(value, np.uint64):
        return _scalar(arg, value, where)
    raise LaunchError(f"{where}: {_kind(value)}, it takes a numpy array (or None, or an address as np.uint64)")


def _scalar(arg: KernelArg, value: object, where: str) -> bytes:
    raw = value.tobytes() if isinstance(value, np.generic) else value
    if not isinstance(raw, bytes):
        raise LaunchError(f"{where}: {_kind(value)}, it takes {arg.size} bytes by value (a numpy scalar such as np.{_suggestion(arg.size)})")
    if len(raw) != arg.size:
        raise LaunchError(f"{where}: {_kind(value)} has {len(raw)} bytes, it takes {arg.size}")
    return raw


def describe(info: KernelInfo, args: Sequence[object]) -> KernelInfo:
    """A kernel without metadata, with the arguments it is being called with: in order, each aligned to its size."""
    kinds = [("by_value", v.nbytes) if isinstance(v, np.generic) else ("global_buffer", 8) for v in args]
    return replace(info, args=kernarg.in_order(kinds))


def _kind(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"numpy array of {value.dtype}"
    if isinstance(value, np.generic):
        return f"numpy {value.dtype}"
    return "nothing" if value is None else f"Python {type(value).__name__}"


def _suggestion(size: int) -> str:
    return {1: "uint8", 2: "uint16", 4: "uint32 or np.float32", 8: "uint64 or np.float64"}.get(size, "void")


def _signature(info: KernelInfo, i: int) -> str:
    arg = info.explicit_args[i]
    return arg.name or arg.type_name or {"global_buffer": "pointer", "by_value": f"{arg.size} bytes"}.get(arg.kind, arg.kind)
