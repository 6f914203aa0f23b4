"""What memory instructions of CDNA do beside loading a VGPR: loads whose data goes to LDS, loads that transpose.

Units:   bytes; elements in bits.
Source:  the manual's section on memory loads to LDS; ir.ACTIONS for the transposition.
"""

from __future__ import annotations

from collections.abc import Mapping

from stuntgpu.emu.operand import dwords
from stuntgpu.emu.state import following, register
from stuntgpu.emu.wave import Wave
from stuntgpu.isa.inst import Inst, Operand


def store_to_lds(w: Wave, inst: Inst, values: Mapping[int, int], width: int) -> None:
    """A buffer load with the LDS bit: lane i's data at M0[17:2] * 4 + offset + i * 4, or 16 for several dwords."""
    size = max(4, width // 8)
    base = (w.sgprs[w.row.m0] & 0x3FFFC) + inst.fields["OFFSET"]
    for lane, value in values.items():
        w.store("LDS", lane, base + lane * (16 if size > 4 else 4), size, value)


def transpose(w: Wave, op: Operand, bits: int, sharing: int) -> None:
    """The elements in the registers of every `sharing` lanes, taken as rows of as many, become columns: lane i
    gets column i."""
    registers = [w.vgprs[following(register(op), i)] for i in range(dwords(op))]
    count, mask, active = op.bits // bits, (1 << bits) - 1, set(w.active)
    for first in range(0, w.lanes, sharing):
        lanes = range(first, first + sharing)
        whole = [sum(r[lane] << 32 * i for i, r in enumerate(registers)) for lane in lanes]
        elements = [value >> bits * e & mask for value in whole for e in range(count)]
        for column, lane in enumerate(lanes):
            if lane in active:
                value = sum(x << bits * row for row, x in enumerate(elements[column::sharing]))
                for i, r in enumerate(registers):
                    r[lane] = value >> 32 * i & 0xFFFF_FFFF
