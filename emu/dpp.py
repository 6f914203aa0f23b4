"""DPP: which lane a lane's first source comes from.

Units:   lane numbers; a row is 16 lanes, a bank 4.
Source:  README "Hardware facts" of the ISA facts (DPP_CTRL); RDNA3 ISA document, DPP chapters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from stuntgpu.isa.arch import ARCHES
from stuntgpu.isa.errors import Unmodelled

#: (lane, amount) -> source lane, None outside the row.
Move = Callable[[int, int], int | None]


def _quad_perm(lane: int, control: int) -> int | None:
    return (lane & ~3) | (control >> 2 * (lane & 3) & 3)


def _row_shl(lane: int, n: int) -> int | None:
    return lane + n if lane % 16 + n < 16 else None


def _row_shr(lane: int, n: int) -> int | None:
    return lane - n if lane % 16 >= n else None


def _row_ror(lane: int, n: int) -> int | None:
    return (lane & ~15) | ((lane - n) & 15)


def _row_mirror(lane: int, _: int) -> int | None:
    return lane ^ 15


def _half_mirror(lane: int, _: int) -> int | None:
    return lane ^ 7


def _row_share(lane: int, n: int) -> int | None:
    return (lane & ~15) | n


def _row_xmask(lane: int, n: int) -> int | None:
    return lane ^ n


def _wave_shl(lane: int, _: int) -> int | None:
    return lane + 1 if lane < 63 else None


def _wave_rol(lane: int, _: int) -> int | None:
    return (lane + 1) % 64


def _wave_shr(lane: int, _: int) -> int | None:
    return lane - 1 if lane else None


def _wave_ror(lane: int, _: int) -> int | None:
    return (lane - 1) % 64


def _bcast15(lane: int, _: int) -> int | None:
    """The last lane of a row, for the next row."""
    return (lane & ~15) - 1 if lane >= 16 else None


def _bcast31(lane: int, _: int) -> int | None:
    return 31 if lane >= 32 else None


#: (first, last DPP_CTRL, move); the amount is DPP_CTRL & 15, or all of it for quad_perm.
_CONTROLS: tuple[tuple[int, int, Move], ...] = (
    (0x000, 0x0FF, _quad_perm),
    (0x101, 0x10F, _row_shl),
    (0x111, 0x11F, _row_shr),
    (0x121, 0x12F, _row_ror),
    (0x130, 0x130, _wave_shl),
    (0x134, 0x134, _wave_rol),
    (0x138, 0x138, _wave_shr),
    (0x13C, 0x13C, _wave_ror),
    (0x140, 0x140, _row_mirror),
    (0x141, 0x141, _half_mirror),
    (0x142, 0x142, _bcast15),
    (0x143, 0x143, _bcast31),
    (0x150, 0x15F, _row_share),
    (0x160, 0x16F, _row_xmask),
)


@dataclass(frozen=True, slots=True)
class Dpp:
    """sources: lane -> source lane, None outside; enabled: lanes that ROW_MASK and BANK_MASK let write.

    zero: a lane without a source reads 0 (else it is not written); fetch_inactive: sources may be inactive.
    """

    sources: tuple[int | None, ...]
    enabled: int
    zero: bool
    fetch_inactive: bool

    def apply(self, values: list[int], exec_mask: int) -> tuple[list[int], int]:
        """(value per lane, mask of the lanes that execute)."""
        out, mask = [0] * len(values), exec_mask & self.enabled
        for lane, source in enumerate(self.sources):
            if source is not None and (self.fetch_inactive or exec_mask >> source & 1):
                out[lane] = values[source]
            elif not self.zero:
                mask &= ~(1 << lane)
        return out, mask


def dpp_of(arch: str, fields: Mapping[str, int], lanes: int) -> Dpp | None:
    """The DPP part of an instruction, None when its encoding has none. Raises Unmodelled."""
    if "DPP_CTRL" in fields:
        return _dpp16(arch, fields, lanes)
    if "LANE_SEL_0" in fields:
        return _dpp8(fields, lanes)
    return None


#: Controls of whole waves, which RDNA has not.
_OF_WAVES = (*range(0x130, 0x140), 0x142, 0x143)


def _dpp16(arch: str, fields: Mapping[str, int], lanes: int) -> Dpp:
    control = fields["DPP_CTRL"]
    move = next((m for first, last, m in _CONTROLS if first <= control <= last), None)
    if move is None or (control in _OF_WAVES and not ARCHES[arch].has_wave_dpp):
        raise Unmodelled(arch, f"DPP_CTRL 0x{control:x}", "emu/dpp.py")
    amount = control if control <= 0xFF else control & 15
    enabled = sum(
        1 << lane
        for lane in range(lanes)
        if fields["ROW_MASK"] >> lane // 16 & 1 and fields["BANK_MASK"] >> lane // 4 % 4 & 1
    )
    sources = tuple(move(lane, amount) for lane in range(lanes))
    return Dpp(sources, enabled, bool(fields["BOUND_CTRL"]), bool(fields.get("FI", 0)))


def _dpp8(fields: Mapping[str, int], lanes: int) -> Dpp:
    selects = [fields[f"LANE_SEL_{i}"] for i in range(8)]
    sources = tuple((lane & ~7) | selects[lane & 7] for lane in range(lanes))
    # SRC0 is 233, or 234 to fetch from inactive lanes; inactive sources read 0 otherwise.
    return Dpp(sources, (1 << lanes) - 1, True, fields.get("SRC0") == 234 or bool(fields.get("FI", 0)))
