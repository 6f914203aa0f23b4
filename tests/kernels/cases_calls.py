"""Cases: calls, recursion, function pointers, switches, stacks."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from tests.kernels.cases import Check, Problem, Setting, Step, case, groups

M32 = 0xFFFF_FFFF


def rotated(x: int, by: int) -> int:
    by &= 31
    return (x << by | (x & M32) >> 32 - by) & M32 if by else x & M32


@cache
def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@cache
def ackermann(m: int, n: int) -> int:
    return n + 1 if m == 0 else ackermann(m - 1, 1 if n == 0 else ackermann(m, n - 1))


@case("recursion", "calls.hip", "recursive calls of unlike depth by lane, a stack in scratch of unknown size", n=300, small=3)
def recursion(s: Setting) -> Problem:
    x, rows = s.rng.integers(0, 10000, s.n, dtype=np.uint32), s.rng.integers(-99, 99, (s.n, 12), dtype=np.int32)
    numbers = np.zeros(s.n, np.uint32)
    want = [fibonacci(v % 9) if v & 1 else ackermann(v % 3, v % 4) for v in x.tolist()]
    return Problem([Step("recursion", (x, numbers, rows, np.uint32(s.n), np.uint32(12)), groups(s.n, 64), (64,))],
                   [Check("numbers", numbers, np.uint32(want)), Check("sorted", rows, np.sort(rows, 1))])


def odd(n: int, following: Callable[..., int]) -> int:
    return 2 * following(n - 1, odd) + 1 if n else 0


def even(n: int, following: Callable[..., int]) -> int:
    return 3 * following(n - 1, even) if n else 1


@case("by_pointer", "calls.hip", "functions that call each other through pointers, lanes in different ones", n=400, small=20)
def by_pointer(s: Setting) -> Problem:
    x, out = s.rng.integers(0, 32, s.n, dtype=np.uint32), np.zeros(s.n, np.uint32)
    want = [odd(v & 15, even) if v & 16 else even(v & 15, odd) for v in x.tolist()]
    return Problem([Step("by_pointer", (x, out, np.uint32(s.n)), groups(s.n, 96), (96,))], [Check("values", out, np.uint32(want))])


@case("shapes", "calls.hip", "calls through tables of functions in constant memory, objects in scratch", n=400, small=40)
def shapes(s: Setting) -> Problem:
    kinds, sides = s.rng.integers(0, 1000, s.n, dtype=np.uint32), s.rng.integers(1, 99, (s.n, 2)).astype(np.float32)
    out, times = np.zeros(s.n, np.float32), (kinds % 4).astype(np.float32)
    a, b = (sides * np.exp2(times)[:, None]).T
    want = np.choose(kinds % 3, [a * b, (sides[:, 0] + 2 * times) * sides[:, 1] / 2, a * a])
    return Problem([Step("shapes", (kinds, sides, out, np.uint32(s.n)), groups(s.n, 64), (64,))], [Check("areas", out, want)])


def signed(x: int) -> int:
    return (x & M32 ^ 1 << 31) - (1 << 31)


def interpreted(code: bytes, x: int) -> int:
    """What the kernel's little machine leaves."""
    y, z, pc = 1, 0, 0
    while pc < len(code):
        op = code[pc] & 15
        if op == 13:
            return signed(x + z)
        if op == 10:
            pc += x & 1
        elif op == 2:
            y = signed(x ^ y << 3)
        elif op == 7:
            y = signed(-y)
        elif op in (5, 12):
            z = z + (x & M32).bit_count() if op == 5 else z ^ x
        else:
            x = signed({0: x + 7, 1: x - y, 3: x * 5, 4: rotated(x, y), 6: max(x, y), 8: z, 9: x >> 1,
                        11: int(y / ((z & 7) + 1))}.get(op, x + 1))
        pc += 1
    return x ^ y ^ z


@case("interpreter", "calls.hip", "switches: scalar branches where a wave agrees, EXEC where lanes differ, early returns", n=200, small=20)
def interpreter(s: Setting) -> Problem:
    code = s.rng.integers(0, 16, (s.n, 10), dtype=np.uint8)
    out, together = np.zeros(s.n, np.int32), np.zeros(s.n, np.int32)
    want = [interpreted(row.tobytes(), i) for i, row in enumerate(code)]
    wave = [interpreted(code[i // 64].tobytes(), i) for i in range(s.n)]
    return Problem([Step("interpreter", (code, out, together, np.uint32(10), np.uint32(s.n)), groups(s.n, 64), (64,))],
                   [Check("by lane", out, np.int32(want)), Check("by workgroup", together, np.int32(wave))])


@case("interpreter_plain", "calls.hip", "the same unoptimised", n=100, small=0, level="-O0", lanes=(32,))
def interpreter_plain(s: Setting) -> Problem:
    return interpreter(s)


def chained(depth: int, a: int, b: int, c: int, d: int) -> int:
    if depth == 0:
        return a + b * c - d & M32
    v = [(a + k) * (b ^ k << depth) + c * k & M32 for k in range(24)]
    below = chained(depth - 1, v[3], v[7] ^ d, v[11], v[23])
    for k in range(24):
        below = rotated(below, 5) ^ v[k]
    return below


@case("deep_calls", "calls.hip", "return addresses and live values saved to scratch and to lanes of a register", n=300, small=60)
def deep_calls(s: Setting) -> Problem:
    x, out = s.rng.integers(0, 2**32, s.n, dtype=np.uint32), np.zeros(s.n, np.uint32)
    want = [chained(6, v, i, i // 64, v >> 7) for i, v in enumerate(x.tolist())]
    return Problem([Step("deep_calls", (x, out, np.uint32(s.n)), groups(s.n, 64), (64,))], [Check("values", out, np.uint32(want))])


def josephus(n: int, step: int) -> int:
    alive, at = list(range(n)), 0
    while len(alive) > 1:
        at = (at + step - 1) % len(alive)
        del alive[at]
    return alive[0]


@case("dynamic_stack", "calls.hip", "alloca of a size that differs by lane", n=100, small=2)
def dynamic_stack(s: Setting) -> Problem:
    x, out = s.rng.integers(0, 1000, s.n, dtype=np.uint32) // (1 if s.n > 50 else 40), np.zeros(s.n, np.uint32)
    want = [josephus(1 + v % 40, 1 + v % 5) for v in x.tolist()]
    return Problem([Step("dynamic_stack", (x, out, np.uint32(s.n)), groups(s.n, 64), (64,))], [Check("last", out, np.uint32(want))])
