"""Kernel arguments: where each goes, and the values of the hidden ones.

Units:   bytes; grid and workgroup in work-items.
Errors:  KernargError names the argument.
Source:  AMDGPU back-end user guide, "Kernel Argument Metadata" (hidden_* value kinds).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from stuntgpu.isa.abi.codeobject import KernelArg, KernelInfo
from stuntgpu.isa.abi.targets import LDS_APERTURE, SCRATCH_APERTURE, round_up

Triple = tuple[int, int, int]


class KernargError(ValueError):
    """An argument that does not fit its place."""


@dataclass(frozen=True, slots=True)
class Dispatch:
    """What hidden arguments are made from."""

    grid: Triple
    workgroup: Triple
    dynamic_lds_bytes: int = 0
    queue_va: int = 0


@dataclass(frozen=True, slots=True)
class Piece:
    """One of the dispatches that make up a call.

    start           id of its first workgroup.
    grid, workgroup   in work-items.
    hidden_grid     what its hidden arguments are computed from: the call's workgroups, all as large as its own.
    """

    start: Triple
    grid: Triple
    workgroup: Triple
    hidden_grid: Triple


def pieces(kernel: KernelInfo, grid: Triple, workgroup: Triple) -> tuple[Piece, ...]:
    """The dispatches of a call over `grid`.

    Mostly one. A kernel compiled for uniform workgroups asks no more than its size of the workgroups it
    is in, so on an uneven grid the smaller workgroups of each edge go into dispatches of their own.
    """
    uneven = any(n % w for n, w in zip(grid, workgroup, strict=True))
    if not (uneven and kernel.uniform_workgroups) or kernel.required_workgroup:
        return (Piece((0, 0, 0), grid, workgroup, grid),)
    axes = [_segments(n, w) for n, w in zip(grid, workgroup, strict=True)]
    groups = [-(-n // w) for n, w in zip(grid, workgroup, strict=True)]
    out = []
    for z in axes[2]:
        for y in axes[1]:
            for x in axes[0]:
                size = x[2], y[2], z[2]
                whole = groups[0] * size[0], groups[1] * size[1], groups[2] * size[2]
                out.append(Piece((x[0], y[0], z[0]), (x[1], y[1], z[1]), size, whole))
    return tuple(out)


def _segments(items: int, size: int) -> list[Triple]:
    """(first workgroup, work-items, workgroup size) of the whole workgroups of an axis, and of its last one."""
    whole, rest = divmod(items, size)
    return [(0, whole * size, size)] * (whole > 0) + [(whole, rest, rest)] * (rest > 0)


def _zero(_: Dispatch) -> int:
    return 0


def _per_axis(name: str, value: Callable[[int, int], int]) -> dict[str, Callable[[Dispatch], int]]:
    def of_axis(i: int) -> Callable[[Dispatch], int]:
        return lambda d: value(d.grid[i], d.workgroup[i])

    return {f"hidden_{name}_{axis}": of_axis(i) for i, axis in enumerate("xyz")}


def _grid_dims(d: Dispatch) -> int:
    return 3 if d.grid[2] > 1 or d.workgroup[2] > 1 else 2 if d.grid[1] > 1 or d.workgroup[1] > 1 else 1


#: Value of every hidden argument. Services of a host runtime (printf, host calls, device heap, device
#: enqueue, multi-grid sync) are absent here, which a null pointer says.
HIDDEN: Mapping[str, Callable[[Dispatch], int]] = {
    **_per_axis("block_count", lambda grid, group: grid // group),
    **_per_axis("group_size", lambda grid, group: group),
    **_per_axis("remainder", lambda grid, group: grid % group),
    **_per_axis("global_offset", lambda grid, group: 0),
    "hidden_grid_dims": _grid_dims,
    "hidden_dynamic_lds_size": lambda d: d.dynamic_lds_bytes,
    "hidden_queue_ptr": lambda d: d.queue_va,
    "hidden_private_base": lambda d: SCRATCH_APERTURE >> 32,
    "hidden_shared_base": lambda d: LDS_APERTURE >> 32,
    "hidden_none": _zero, "hidden_printf_buffer": _zero, "hidden_hostcall_buffer": _zero,
    "hidden_default_queue": _zero, "hidden_completion_action": _zero, "hidden_multigrid_sync_arg": _zero,
    "hidden_heap_v1": _zero,
}


def label(kernel: KernelInfo, index: int) -> str:
    """How messages name an explicit argument: its source name, or its position and type."""
    arg = kernel.explicit_args[index]
    if arg.name:
        return f"argument {arg.name}"
    return f"argument {index}" + (f" ({arg.type_name})" if arg.type_name else "")


def pack(kernel: KernelInfo, values: Iterable[bytes], dispatch: Dispatch) -> bytes:
    """The kernarg segment: explicit `values` (each of its argument's size) and the hidden ones.

    Raises KernargError for a wrong count or size, and for a hidden argument nobody knows.
    """
    given, wanted = list(values), kernel.explicit_args
    if len(given) != len(wanted):
        raise KernargError(f"kernel {kernel.name!r} takes {len(wanted)} arguments, got {len(given)}")
    out = bytearray(max([kernel.descriptor.kernarg_size, *(a.offset + a.size for a in kernel.args)]))
    for i, (arg, value) in enumerate(zip(wanted, given, strict=True)):
        if len(value) != arg.size:
            raise KernargError(f"kernel {kernel.name!r}, {label(kernel, i)}: {len(value)} bytes, it takes {arg.size}")
        out[arg.offset : arg.offset + arg.size] = value
    for arg in kernel.hidden_args:
        out[arg.offset : arg.offset + arg.size] = _hidden(kernel, arg, dispatch)
    return bytes(out)


def _hidden(kernel: KernelInfo, arg: KernelArg, dispatch: Dispatch) -> bytes:
    if arg.kind not in HIDDEN:
        raise KernargError(f"kernel {kernel.name!r}: hidden argument {arg.kind!r} at offset {arg.offset} is not known")
    value = HIDDEN[arg.kind](dispatch)
    if value >> 8 * arg.size:
        raise KernargError(f"kernel {kernel.name!r}: {arg.kind} = {value} does not fit {arg.size} bytes")
    return value.to_bytes(arg.size, "little")


def in_order(kinds: Iterable[tuple[str, int]]) -> tuple[KernelArg, ...]:
    """Arguments of the given (value kind, size), one after the other, each aligned to its size:
    how kernels without metadata are called here."""
    out: list[KernelArg] = []
    at = 0
    for kind, size in kinds:
        at = round_up(at, size)
        out.append(KernelArg(offset=at, size=size, kind=kind))
        at += size
    return tuple(out)
