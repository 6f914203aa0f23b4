"""Typed buffers: what each memory format makes of known bits, on both RDNA architectures and tiers."""

from __future__ import annotations

import pytest

from stuntgpu.emu import formats
from tests.emu.rdna import ARCHES, DATA, TIERS, Bench
from tests.isa.rows import f16, f32

ONE = f32(1.0)


@pytest.fixture(params=[(a, t) for a in ARCHES for t in TIERS], ids="-".join)
def bench(request: pytest.FixtureRequest) -> Bench:
    return Bench(*request.param)


def descriptor(format_code: int = 0, select: int = 0o7654) -> dict[int, int]:
    """s[4:7]: raw bytes at DATA; select: DST_SEL, X lowest."""
    return {4: DATA & 0xFFFFFFFF, 5: DATA >> 32, 6: 0x1000, 7: 3 << 28 | format_code << 12 | select}


def zero(bench: Bench) -> str:
    return "null" if bench.arch == "gfx1201" else "0"


def load(bench: Bench, name: str, memory: int, size: int) -> tuple[int, ...]:
    """X, Y, Z, W of lane 0 of a format."""
    bench.data[:size] = memory.to_bytes(size, "little")
    text = f"tbuffer_load_format_xyzw v[0:3], off, s[4:7], {zero(bench)} format:[BUF_FMT_{name}]"
    final = bench(text, s=descriptor(), exec_mask=1)
    return tuple(final.vgprs[r][0] for r in range(4))


@pytest.mark.parametrize(("name", "memory", "size", "channels"), [
    ("8_UNORM", 0xFF, 1, (ONE, 0, 0, ONE)),
    ("8_8_8_8_UNORM", 0xFF000033, 4, (f32(0.2), 0, 0, ONE)),
    ("8_8_8_8_SNORM", 0x7F80C081, 4, (f32(-1.0), f32(-64 / 127), f32(-1.0), ONE)),
    ("8_8_8_8_UINT", 0x04030201, 4, (1, 2, 3, 4)),
    ("8_8_8_8_SINT", 0x7F80FF01, 4, (1, 0xFFFFFFFF, 0xFFFFFF80, 0x7F)),
    ("8_8_USCALED", 0x02FF, 2, (f32(255.0), f32(2.0), 0, ONE)),
    ("16_SSCALED", 0xFFFE, 2, (f32(-2.0), 0, 0, ONE)),
    ("16_16_FLOAT", 0xC0003C00, 4, (ONE, f32(-2.0), 0, ONE)),
    ("16_16_16_16_UNORM", 0xFFFF000000000000, 8, (0, 0, 0, ONE)),
    ("32_32_UINT", 0x0000000200000001, 8, (1, 2, 0, 1)),
    ("32_32_32_FLOAT", f32(3.0) << 64 | f32(2.0) << 32 | ONE, 12, (ONE, f32(2.0), f32(3.0), ONE)),
    ("2_10_10_10_UINT", 3 << 30 | 7 << 20 | 6 << 10 | 5, 4, (5, 6, 7, 3)),
    ("10_11_11_FLOAT", 0x1E0 << 22 | 0x3C0 << 11 | 0x400, 4, (f32(2.0), ONE, ONE, ONE)),
])  # fmt: skip
def test_formats_are_read(bench: Bench, name: str, memory: int, size: int, channels: tuple[int, ...]) -> None:
    assert load(bench, name, memory, size) == channels


@pytest.mark.parametrize(("name", "size", "channels", "memory"), [
    ("8_8_8_8_UNORM", 4, (ONE, f32(0.5), f32(-1.0), f32(9.0)), 0xFF0080FF),
    ("8_8_8_8_SNORM", 4, (f32(-1.0), ONE, f32(-7.0), 0x7FC00000), 0x00817F81),
    ("8_8_8_8_UINT", 4, (300, 1, 2, 0xFFFFFFFF), 0xFF0201FF),
    ("16_16_SINT", 4, (0xFFFF0000, 70000, 0, 0), 0x7FFF8000),
    ("16_16_FLOAT", 4, (ONE, f32(-2.0), 0, 0), 0xC0003C00),
    ("2_10_10_10_UNORM", 4, (ONE, 0, ONE, ONE), 0xFFF003FF),
    ("10_11_11_FLOAT", 4, (ONE, f32(-1.0), f32(2.0), 0), 0x200 << 22 | 0x3C0),
])  # fmt: skip
def test_formats_are_written(bench: Bench, name: str, size: int, channels: tuple[int, ...], memory: int) -> None:
    """To nearest, within the format's range; NaN gives 0."""
    text = f"tbuffer_store_format_xyzw v[0:3], off, s[4:7], {zero(bench)} format:[BUF_FMT_{name}]"
    bench(text, dict(enumerate(channels)), descriptor(), exec_mask=1)
    assert int.from_bytes(bench.data[:size], "little") == memory


def test_descriptor_gives_format_and_selection(bench: Bench) -> None:
    code = next(c for c in range(64) if (f := formats.of_code(bench.arch, c)) and f.name == "8_8_8_8_UINT")
    bench.data[:4] = bytes((1, 2, 3, 4))
    text = f"buffer_load_format_xyzw v[0:3], off, s[4:7], {zero(bench)}"
    final = bench(text, s=descriptor(code, 0o1047), exec_mask=1)  # X is W, Y is X, Z is 0, W is 1
    assert [final.vgprs[r][0] for r in range(4)] == [4, 1, 0, 1]


def test_short_channels_are_packed_and_keep_the_rest(bench: Bench) -> None:
    bench.data[:4] = bytes((0xFF, 0, 0xFF, 0))
    text = f"tbuffer_load_d16_format_xyz v[0:1], off, s[4:7], {zero(bench)} format:[BUF_FMT_8_8_8_8_UNORM]"
    final = bench(text, {0: 0, 1: 0xAAAABBBB}, descriptor(), exec_mask=1)
    assert (final.vgprs[0][0], final.vgprs[1][0]) == (f16(1.0), 0xAAAA0000 | f16(1.0))


@pytest.mark.parametrize("arch", ARCHES)
def test_codes_without_a_format_are_none(arch: str) -> None:
    assert formats.of_code(arch, 0) is None
    assert formats.of_code(arch, 1) is not None
    assert formats.of_code(arch, 127) is None
