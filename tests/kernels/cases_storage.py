"""Cases: every atomic, and the places where values are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.kernels.cases import Array, Check, Problem, Setting, Step, case, groups

# ---------------------------------------------------------------- atomics


def after(p: Array, v: Array) -> Array:
    """p[lane, operation] after each operation of `every_atomic.hip` with its lane's v."""
    columns = [p[:, 0] + v, p[:, 1] - v, np.minimum(p[:, 2], v), np.maximum(p[:, 3], v), v, np.where(p[:, 5] == v, v + 1, p[:, 5])]
    columns += [p[:, 6] & v, p[:, 7] | v, p[:, 8] ^ v] if p.dtype.kind in "iu" else [p[:, k] for k in (6, 7, 8)]
    return np.stack(columns, 1).astype(p.dtype)


def atomics(kind: Any) -> Callable[[Setting], Problem]:
    def make(s: Setting) -> Problem:
        n, used = s.n * 64, 9 if np.dtype(kind).kind in "iu" else 6
        if used == 9:
            info = np.iinfo(kind)
            p, v = s.rng.integers(info.min, info.max, (n, 9), dtype=kind), s.rng.integers(info.min, info.max, n, dtype=kind)
        else:
            p, v = s.rng.integers(-2**18, 2**18, (n, 9)).astype(kind) / 8, s.rng.integers(-2**18, 2**18, n).astype(kind) / 8
        p[::3, 5] = v[::3]
        with np.errstate(over="ignore"):
            once = after(p, v)
            twice = after(once, v)
        want, again, out = np.zeros((6, 9, n), kind), p.copy(), np.zeros((6, 9, n), kind)
        want[:3, :used], want[3:, :used] = p.T[:used], twice.T[:used]
        memory, shared = p.copy(), np.where(np.arange(n)[:, None] % 2 == 0, twice, p)
        name = f"atomics_{np.dtype(kind).kind}{8 * out.itemsize}"
        return Problem([Step(name, (memory, v, out, again), (n,), (64,))],
                       [Check("returned", out, want), Check("memory", memory, twice), Check("by generic pointers", again, shared)])

    return make


for _kind in (np.uint32, np.int32, np.uint64, np.int64, np.float32, np.float64):
    _name = f"atomics_{np.dtype(_kind).kind}{8 * np.dtype(_kind).itemsize}"
    case(_name, "every_atomic.hip", "atomics of memory, LDS and FLAT, with and without return, one lane a place", n=3, small=1,
         flags=("-munsafe-fp-atomics",))(atomics(_kind))

# ---------------------------------------------------------------- places


@case("private_arrays", "storage.hip", "bytes and shorts of scratch by an index that differs by lane", n=200, small=3)
def private_arrays(s: Setting) -> Problem:
    x = s.rng.integers(0, 200, (s.n, 60), dtype=np.uint8)
    out, order, want = np.zeros_like(x), np.zeros(x.shape, np.uint16), np.argsort(x, 1, kind="stable")
    return Problem([Step("private_arrays", (x, out, order, np.uint32(60)), (s.n,), (50 if s.n % 50 == 0 else s.n,))],
                   [Check("sorted", out, np.sort(x, 1)), Check("order", order, want.astype(np.uint16))])


@case("dynamic_lds", "storage.hip", "LDS sized by the launch behind LDS sized by the compiler", n=7, small=2)
def dynamic_lds(s: Setting) -> Problem:
    x, out = s.rng.integers(0, 1000, (s.n, 90 * s.n), dtype=np.uint32), np.zeros(s.n, np.uint32)
    return Problem([Step("dynamic_lds", (x, out, np.uint32(x.shape[1])), (s.n * 64,), (64,), shared=4 * x.shape[1])],
                   [Check("sums", out, x.sum(1, dtype=np.uint32) * 2)])


RECORD = np.dtype([("kind", "u1"), ("size", "u2"), ("bits", "u4"), ("value", "f8"), ("tail", "i1", 3)])


@case("records", "storage.hip", "packed structures: bytes, shorts, doubles and bit fields at odd addresses", n=300, small=40)
def records(s: Setting) -> Problem:
    x = np.zeros(s.n, RECORD)
    x["kind"], x["size"], x["bits"] = (s.rng.integers(0, 2**b, s.n) for b in (8, 16, 32))
    x["value"], x["tail"] = s.rng.standard_normal(s.n), s.rng.integers(-128, 128, (s.n, 3))
    q, (first, second, third) = np.zeros_like(x), (x["bits"] & 31, x["bits"] >> 5 & 0x1FFF, x["bits"] >> 18)
    q["kind"], q["size"], q["value"] = ~x["kind"], x["size"] + x["kind"], x["value"] * 0.5
    q["bits"] = (second & 31) | (third & 0x1FFF) << 5 | ((first + x["kind"]) & 0x3FFF) << 18
    q["tail"] = np.stack([x["tail"][:, 2], x["tail"][:, 0], -x["tail"][:, 1]], 1)
    out = np.zeros(s.n * RECORD.itemsize, np.uint8)
    return Problem([Step("records", (x.view(np.uint8), out, np.uint32(s.n)), groups(s.n, 64), (64,))],
                   [Check("records", out, q[::-1].copy().view(np.uint8))])


@case("streams", "storage.hip", "cache policies: nontemporal and volatile accesses", n=512, small=64)
def streams(s: Setting) -> Problem:
    x, b = s.rng.integers(0, 2**32, (s.n, 4), dtype=np.uint32), s.rng.integers(0, 256, s.n, dtype=np.uint8)
    slow = s.rng.integers(0, 2**64, s.n, dtype=np.uint64)
    out, bytes_out, moved = np.zeros_like(x), np.zeros_like(b), x + b[:, None]
    checks = [Check("vectors", out, moved[:, ::-1]), Check("bytes", bytes_out, moved[:, 0].astype(np.uint8)),
              Check("volatile", slow, slow * np.uint64(3) + np.arange(s.n, dtype=np.uint64))]
    return Problem([Step("streams", (x, out, b, bytes_out, slow), (s.n,), (64,))], checks)


def columns(x: Array, bits: int, per_lane: int, lanes: int) -> Array:
    """x [waves * lanes' bytes] as matrices of `per_lane` rows and `lanes` columns of elements, transposed."""
    bit = np.unpackbits(x.view(np.uint8), bitorder="little").reshape(-1, per_lane, lanes, bits)
    return np.packbits(bit.transpose(0, 2, 1, 3), bitorder="little").view(x.dtype).reshape(x.shape)


@case("transposed", "storage.hip", "DS_READ_TR of 16, 8 and 4 bits", n=5, small=1, archs=("gfx950",))
def transposed(s: Setting) -> Problem:
    x = s.rng.integers(0, 2**32, (s.n * 64, 2), dtype=np.uint32)
    outs = [np.zeros_like(x) for _ in range(3)]
    return Problem([Step("transposed", (x, *outs), (s.n * 64,), (64,))],
                   [Check(f"{bits} bits", out, columns(x, bits, 64 // bits, 16)) for bits, out in zip((16, 8, 4), outs, strict=True)])


@case("transposed_halves", "storage.hip", "GLOBAL_LOAD_TR_B128", n=5, small=1, archs=("gfx1201",), lanes=(32,))
def transposed_halves(s: Setting) -> Problem:
    x = s.rng.integers(0, 2**32, (s.n * 64, 4), dtype=np.uint32)
    out = np.zeros_like(x)
    return Problem([Step("transposed", (x, out), (s.n * 64,), (64,))], [Check("16 bits", out, columns(x, 16, 8, 8))])
