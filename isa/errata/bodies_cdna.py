"""Replacement bodies of CDNA's own instructions; see bodies.py."""

from __future__ import annotations

from stuntgpu.isa.errata.bodies import NEXT, TARGET, saturate

#: Bits of MODE (hardware register 1).
GPR_INDEX, VSKIP, FORK_DEPTH = 27, 28, 29

# ---------------------------------------------------------------- clocks

#: The wave's own clock, a message that no hardware has (emu/hwregs.py, GET_TIME).
CLOCK = "(message 143:32)"
#: Message id of the constant-rate clock.
REALTIME = "(message 131:32)"

# ---------------------------------------------------------------- forks


def fork(target: str) -> str:
    """Both ways of a divergent branch: the side with fewer lanes goes first, the other waits as
    {address, lanes} in four SGPRs of a stack whose depth is MODE[31:29]."""
    push = " ".join(
        f"(setsgpr (add slot:32 {i}:32) (extract:32 waiting:128 {32 * i}:32))" for i in range(4)
    )
    return (
        "(set pass (and S0:64 EXEC:64)) (set fail (and (not S0:64) EXEC:64))"
        " (set all (eq pass:64 EXEC:64)) (set none (eq fail:64 EXEC:64))"
        " (set fewer (ult (popcnt fail:64) (popcnt pass:64)))"
        f" (set depth (extract:3 (hwreg 1:32) {FORK_DEPTH}:32)) (set slot (shl (zext:32 depth:3) 2:32))"
        f" (set waiting (concat:128 (select:64 fewer:1 {target} {NEXT}) (select:64 fewer:1 pass:64 fail:64)))"
        " (if (not (or all:1 none:1)) ((set EXEC (select:64 fewer:1 fail:64 pass:64))"
        f" {push} (sethwreg 1:32 (insert (hwreg 1:32) {FORK_DEPTH}:32 (add depth:3 1:3)))))"
        f" (set PC (select:64 (or all:1 (not (or none:1 fewer:1))) {target} {NEXT}))"
    )


def join() -> str:
    """The other side of the fork, unless the stack is as deep as S0 says."""
    address, lanes = (
        f"(concat:64 (sgpr (add slot:32 {hi}:32)) (sgpr (add slot:32 {lo}:32)))" for hi, lo in ((3, 2), (1, 0))
    )
    return (
        f"(set depth (extract:3 (hwreg 1:32) {FORK_DEPTH}:32)) (set done (eq (zext:32 depth:3) S0:32))"
        " (set slot (shl (zext:32 (sub depth:3 1:3)) 2:32))"
        f" (set PC (select:64 done:1 {NEXT} {address}))"
        f" (if (not done:1) ((set EXEC {lanes})"
        f" (sethwreg 1:32 (insert (hwreg 1:32) {FORK_DEPTH}:32 (sub depth:3 1:3)))))"
    )


FORK_TARGET = TARGET


def index_mode(on: bool) -> str:
    """S_SET_GPR_IDX_ON/OFF: MODE.GPR_IDX_EN; M0 gets the index and what it applies to."""
    mode = f"(sethwreg 1:32 (insert (hwreg 1:32) {GPR_INDEX}:32 {int(on)}:1))"
    m0 = "(set M0 (insert (insert M0:32 0:32 (trunc:8 S0:32)) 12:32 (trunc:4 SRC1:32)))"
    return f"{m0} {mode}" if on else mode


def set_vskip() -> str:
    """S_SETVSKIP: the bit of S0 that S1 names switches vector instructions off."""
    bit = "(extract:1 S0:32 (and S1:32 31:32))"
    return f"(sethwreg 1:32 (insert (hwreg 1:32) {VSKIP}:32 {bit}))"


# ---------------------------------------------------------------- arithmetic


def dot(bits: int, is_signed: bool, accumulator: str) -> str:
    """V_DOT2/4/8(C): products of `bits`-wide fields added to the accumulator; saturates with CLAMP."""
    extend = "sext" if is_signed else "zext"
    total = f"({extend}:64 {accumulator})"
    for lo in range(0, 32, bits):
        a, b = (f"({extend}:64 (extract:{bits} S{i}:32 {lo}:32))" for i in (0, 1))
        total = f"(add {total} (mul {a} {b}))"
    return f"(set exact {total}) (set D0 {saturate('exact', 64, 32, is_signed)})"


def clamped16(extend: str) -> str:
    """V_MAD_LEGACY_[IU]16: in 32 bits, then cut or, with CLAMP, saturated."""
    product = f"(mul ({extend}:32 S0:16) ({extend}:32 S1:16))"
    return f"(set exact (add {product} ({extend}:32 S2:16))) (set D0 {saturate('exact', 32, 16, extend == 'sext')})"


# ---------------------------------------------------------------- loads into LDS


def load_to_lds(bits: int, extend: str, offset: str) -> str:
    """Each lane's value goes to LDS at M0[17:2] * 4 + offset + lane * 4, or 16 for more than a dword; parts
    of a dword fill one."""
    value = f"(load:{bits} MEM ADDR:64)"
    if bits < 32:
        value = f"({extend}:32 {value})"
    stride = 16 if bits > 32 else 4
    return f"(store LDS (add (add (and M0:32 0x3fffc:32) {offset}) (mul LANE:32 {stride}:32)) {value})"


# ---------------------------------------------------------------- screen tiles


def _engines(select: int) -> int:
    """Mask of the four shader engines whose 32-pixel tiles a rectangle of tiles touches.

    select: {x_min, y_min, x_max, y_max}, two bits of each tile number; a tile's engine is
    {x[0] ^ y[1], y[0] ^ x[1]}, which repeats every four tiles.
    """
    left, top, right, bottom = (select >> shift & 3 for shift in (6, 4, 2, 0))
    mask = 0
    for dx in range((right - left) % 4 + 1):
        for dy in range((bottom - top) % 4 + 1):
            x, y = left + dx & 3, top + dy & 3
            mask |= 1 << ((x & 1 ^ y >> 1) << 1 | (y & 1 ^ x >> 1))
    return mask


def screen_partition() -> str:
    """V_SCREEN_PARTITION_4SE_B32: entry S0[7:0] of a table of four-bit masks."""
    table = sum(_engines(i) << 4 * i for i in range(256))
    return f"(set D0 (zext:32 (extract:4 {table:#x}:1024 (shl (zext:32 (trunc:8 S0:32)) 2:32))))"


WHOLE_WAVE_LANE = "(and (lshr (add (vgpr SRC0:32 i:32) OFFSET:32) 2:32) 63:32)"
