"""Cases: digests, random numbers, cellular automata, hash tables, graphs, strings."""

from __future__ import annotations

import hashlib
import zlib

import numpy as np

from tests.kernels.cases import Array, Check, Problem, Setting, Step, case, groups
from tests.kernels.exact import primes, root_bits

# ---------------------------------------------------------------- integers


def sha256(s: Setting) -> Problem:
    texts = [s.rng.bytes(int(n)) for n in s.rng.integers(0, 56, s.n)]
    blocks = b"".join((t + b"\x80").ljust(56, b"\0") + (8 * len(t)).to_bytes(8, "big") for t in texts)
    want = np.frombuffer(b"".join(hashlib.sha256(t).digest() for t in texts), np.uint32)
    k, state = (np.uint32([root_bits(p, degree) for p in primes(count)]) for count, degree in ((64, 3), (8, 2)))
    out = np.zeros_like(want)
    return Problem([Step("sha256", (np.frombuffer(blocks, np.uint32).copy(), k, state, out, np.uint32(s.n)), (s.n,), (64,))],
                   [Check("digests", out, want)])


@case("sha256", "digest.hip", "rotations by v_alignbit, bit selects, three-operand adds, byte swaps", n=500, small=40)
def sha256_fast(s: Setting) -> Problem:
    return sha256(s)


@case("sha256_plain", "digest.hip", "the same with every value in scratch", n=70, small=0, level="-O0", lanes=(32,))
def sha256_plain(s: Setting) -> Problem:
    return sha256(s)


@case("crc32", "digest.hip", "a table in LDS with gathered reads, byte loads, loops of unlike length", n=600, small=40)
def crc32(s: Setting) -> Problem:
    lengths = s.rng.integers(0, 70 if s.n > 100 else 12, s.n)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint32)
    text = np.frombuffer(s.rng.bytes(int(starts[-1]) + 1), np.uint8).copy()
    want = np.uint32([zlib.crc32(text[a:a + n].tobytes()) for a, n in zip(starts, lengths, strict=False)])
    out = np.zeros_like(want)
    return Problem([Step("crc32", (text, starts, out, np.uint32(s.n)), (s.n,), (160,))], [Check("sums", out, want)])


@case("philox4x64", "digest.hip", "128-bit products from 32-bit multiply-adds with carries", n=700, small=80, level="-O3")
def philox4x64(s: Setting) -> Problem:
    key = s.rng.integers(0, 2**64, 2, dtype=np.uint64)
    want = np.random.Philox(counter=0, key=key).random_raw(4 * s.n)
    out = np.zeros_like(want)
    return Problem([Step("philox4x64", (out, key[0], key[1], np.uint32(s.n)), groups(s.n, 96), (96,))],
                   [Check("numbers", out, want)])


def generation(cells: Array) -> Array:
    near = sum(np.roll(cells, (dy, dx), (0, 1)) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dy or dx)
    return (near == 3) | ((near == 2) & cells)


@case("life", "digest.hip", "64-bit logic and shifts, loads from three rows, remainders by sizes", n=3, small=1)
def life(s: Setting) -> Problem:
    rows, words = 30, s.n
    a = s.rng.integers(0, 2**64, (rows, words), dtype=np.uint64)
    cells, b = np.unpackbits(a.view(np.uint8), axis=1, bitorder="little").astype(bool), np.zeros_like(a)
    for _ in range(4):
        cells = generation(cells)
    sizes, steps = (np.uint32(words), np.uint32(rows)), []
    for k in range(4):
        steps.append(Step("life", ((a, b) if k % 2 == 0 else (b, a)) + sizes, (words, rows), (32, 1)))
    return Problem(steps, [Check("cells", a, np.packbits(cells, axis=1, bitorder="little").view(np.uint64))])


# ---------------------------------------------------------------- graphs and tables


def levels(starts: Array, targets: Array, nodes: int) -> Array:
    depth, frontier, level = np.full(nodes, 2**32 - 1, np.uint32), [0], 0
    depth[0] = 0
    while frontier:
        level += 1
        found = {int(t) for q in frontier for t in targets[starts[q]:starts[q + 1]] if depth[t] == 2**32 - 1}
        frontier = sorted(found)
        depth[frontier] = level
    return depth


@case("bfs", "graph.hip", "compare-and-swap that claims nodes, a queue filled by an atomic counter", n=1500, small=60)
def bfs(s: Setting) -> Problem:
    starts = np.concatenate([[0], np.cumsum(s.rng.integers(0, 5, s.n))]).astype(np.uint32)
    starts[1:] += 3
    targets = s.rng.integers(0, s.n, int(starts[-1]), dtype=np.uint32)
    want = levels(starts, targets, s.n)
    rounds = int(want[want < s.n].max()) + 1
    depth, queues, sizes = np.full(s.n, 2**32 - 1, np.uint32), np.zeros(2 * s.n, np.uint32), np.zeros(rounds + 1, np.uint32)
    depth[0], sizes[0] = 0, 1
    args = (starts, targets, depth, queues, sizes, np.uint32(s.n))
    reached = np.bincount(want[want < s.n], minlength=rounds + 1).astype(np.uint32)
    return Problem([Step("bfs_level", (*args, np.uint32(k)), (256,), (128,)) for k in range(rounds)],
                   [Check("depths", depth, want), Check("level sizes", sizes, reached)], unordered=[queues])


@case("hash_count_u32", "graph.hip", "32-bit compare-and-swap loops under divergence, remainders", n=2000, small=150)
def hash_count_u32(s: Setting) -> Problem:
    slots = s.n + 11
    keys, queries = (s.rng.integers(1, s.n, s.n, dtype=np.uint32) for _ in range(2))
    table, counts, found = np.zeros(slots, np.uint32), np.zeros(slots, np.uint32), np.zeros(s.n, np.uint32)
    want, sizes = np.bincount(keys, minlength=s.n)[queries].astype(np.uint32), (np.uint32(s.n), np.uint32(slots))
    return Problem([Step("hash_count_u32", (keys, table, counts, *sizes), (s.n,), (128,)),
                    Step("hash_find_u32", (queries, table, counts, found, *sizes), (s.n,), (128,))],
                   [Check("counts", found, want)], unordered=[table, counts])


@case("hash_max_u64", "graph.hip", "64-bit compare-and-swap with return", n=2000, small=150, level="-O1")
def hash_max_u64(s: Setting) -> Problem:
    slots = 1 << (s.n - 1).bit_length()
    keys, queries = (s.rng.integers(1, s.n, s.n, dtype=np.uint32) for _ in range(2))
    values = s.rng.integers(0, 2**32, s.n, dtype=np.uint32)
    best = np.full(s.n, -1, np.int64)
    np.maximum.at(best, keys, values)
    table, found, sizes = np.zeros(slots, np.uint64), np.zeros(s.n, np.int64), (np.uint32(s.n), np.uint32(slots))
    return Problem([Step("hash_max_u64", (keys, values, table, *sizes), (s.n,), (256,)),
                    Step("hash_get_u64", (queries, table, found, *sizes), (s.n,), (256,))],
                   [Check("values", found, best[queries])], unordered=[table])


def edit_distance(a: bytes, b: bytes) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        corner, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            corner, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, corner + (x != y))
    return row[-1]


@case("levenshtein", "graph.hip", "wavefronts along anti-diagonals, 16-bit LDS, minima of three", n=70, small=9)
def levenshtein(s: Setting) -> Problem:
    n, m = s.n, s.n + 13
    a, b = s.rng.integers(97, 101, (3, n), dtype=np.uint8), s.rng.integers(97, 101, (3, m), dtype=np.uint8)
    want = np.uint16([edit_distance(x.tobytes(), y.tobytes()) for x, y in zip(a, b, strict=True)])
    out = np.zeros_like(want)
    return Problem([Step("levenshtein", (a, b, out, np.uint32(n), np.uint32(m)), (3 * 64,), (64,))], [Check("distances", out, want)])
