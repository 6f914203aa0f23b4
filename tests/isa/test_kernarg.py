"""Packing kernel arguments: places, sizes and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stuntgpu.isa.abi import kernarg
from stuntgpu.isa.abi.codeobject import KernelArg, KernelInfo
from stuntgpu.isa.abi.descriptor import KernelDescriptor
from stuntgpu.isa.abi.kernarg import Dispatch, KernargError

DISPATCH = Dispatch((100, 1, 1), (64, 1, 1))


def kernel(*args: KernelArg, size: int = 0) -> KernelInfo:
    return KernelInfo("k", KernelDescriptor(kernarg_size=size), 0, 0, args)


def test_values_go_to_their_offsets_and_the_rest_is_zero() -> None:
    info = kernel(KernelArg(0, 8, "global_buffer"), KernelArg(12, 2, "by_value"), size=20)
    assert kernarg.pack(info, [b"\1" * 8, b"\2\2"], DISPATCH) == b"\1" * 8 + bytes(4) + b"\2\2" + bytes(6)


def test_hidden_values_of_every_axis() -> None:
    names = [f"hidden_{what}_{axis}" for what in ("block_count", "remainder") for axis in "xyz"]
    info = kernel(*(KernelArg(4 * i, 4, n) for i, n in enumerate(names)))
    data = kernarg.pack(info, [], Dispatch((100, 7, 3), (64, 2, 3)))
    assert [data[4 * i] for i in range(6)] == [1, 3, 1, 36, 1, 0]


@pytest.mark.parametrize(("grid", "dims"), [((5, 1, 1), 1), ((5, 2, 1), 2), ((1, 1, 2), 3)])
def test_grid_dimensions(grid: tuple[int, int, int], dims: int) -> None:
    info = kernel(KernelArg(0, 2, "hidden_grid_dims"))
    assert kernarg.pack(info, [], Dispatch(grid, (1, 1, 1))) == bytes([dims, 0])


def test_wrong_count_and_size_are_refused_by_name() -> None:
    info = kernel(KernelArg(0, 4, "by_value", "n"), KernelArg(4, 4, "by_value", type_name="uint"))
    with pytest.raises(KernargError, match="takes 2 arguments, got 1"):
        kernarg.pack(info, [bytes(4)], DISPATCH)
    with pytest.raises(KernargError, match="argument n: 8 bytes, it takes 4"):
        kernarg.pack(info, [bytes(8), bytes(4)], DISPATCH)
    with pytest.raises(KernargError, match=r"argument 1 \(uint\): 0 bytes"):
        kernarg.pack(info, [bytes(4), b""], DISPATCH)


def test_hidden_value_that_does_not_fit_is_refused() -> None:
    info = kernel(KernelArg(0, 2, "hidden_block_count_x"))
    with pytest.raises(KernargError, match="hidden_block_count_x = 65536 does not fit 2 bytes"):
        kernarg.pack(info, [], Dispatch((1 << 16, 1, 1), (1, 1, 1)))


@given(st.lists(st.sampled_from([1, 2, 4, 8, 16]), max_size=20))
def test_arguments_in_order_are_aligned_and_do_not_overlap(sizes: list[int]) -> None:
    end = 0
    for arg, size in zip(kernarg.in_order([("by_value", s) for s in sizes]), sizes, strict=True):
        assert arg.size == size
        assert arg.offset % size == 0
        assert end <= arg.offset < end + size
        end = arg.offset + size
