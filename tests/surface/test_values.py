"""surface/values.py: kernel arguments on a command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stuntgpu.emu import Local
from stuntgpu.values import TYPES, ArgumentSyntaxError, parse


def test_buffer_without_a_fill_is_zero() -> None:
    assert np.array_equal(parse("f32:3"), np.zeros(3, np.float32))


@pytest.mark.parametrize(("text", "expected"), [
    ("u32:4=arange", np.arange(4, dtype=np.uint32)),
    ("f16:2,3=arange", np.arange(6, dtype=np.float16).reshape(2, 3)),
    ("f64:2=-0.5", np.full(2, -0.5)),
    ("u8:2x2=0xff", np.full((2, 2), 255, np.uint8)),
])
def test_fills(text: str, expected: np.ndarray) -> None:
    made = parse(text)
    assert made.dtype == expected.dtype
    assert np.array_equal(made, expected)


@pytest.mark.parametrize("kind", sorted(TYPES))
def test_random_is_of_the_type_and_the_same_every_time(kind: str) -> None:
    first, second = parse(f"{kind}:100=random"), parse(f"{kind}:100=random")
    assert first.dtype == TYPES[kind]
    assert np.array_equal(first, second)
    assert len(np.unique(first)) > 10


@given(st.integers(-2**31, 2**31 - 1))
def test_scalars_go_by_value(n: int) -> None:
    value = parse(f"i32={n}")
    assert isinstance(value, np.int32)
    assert value == n


def test_null_and_local() -> None:
    assert parse("null") is None
    assert parse("lds:4096") == Local(4096)


def test_numpy_file(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(5))
    assert np.array_equal(parse(f"@{tmp_path / 'a.npy'}"), np.arange(5))


@pytest.mark.parametrize(("text", "says"), [
    ("f32", "expected like"), ("f31:4", "no type 'f31'"), ("u8=300", "300"), ("f32:4=blue", "blue"),
    ("u32=0.5", "0.5"), ("@nowhere.npy", "nowhere.npy"), ("f32:", "expected like"),
])
def test_what_does_not_read_is_named(text: str, says: str) -> None:
    with pytest.raises(ArgumentSyntaxError, match=says):
        parse(text)
