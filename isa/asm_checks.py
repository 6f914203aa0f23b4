"""Rules between operands of one instruction that encodings could express and hardware forbids."""

from __future__ import annotations

from collections.abc import Iterable

from stuntgpu.isa.arch import Arch, InstRow
from stuntgpu.isa.asm_lex import AsmError
from stuntgpu.isa.asm_names import FIRST_VGPR, LITERAL, constant_name
from stuntgpu.isa.asm_state import State
from stuntgpu.isa.errata.encodings import LDS_DIRECT

VALU_BASES = ("VOP1", "VOP2", "VOPC", "VOP3", "VOP3_SDST", "VOP3P")
SDWA = 249
#: Operations that can read one scalar operand only, whatever the architecture allows.
ONE_SCALAR = frozenset({"V_LSHLREV_B64", "V_LSHRREV_B64", "V_ASHRREV_I64"})


def scalar_reads(state: State, row: InstRow) -> Iterable[int]:
    """Numbers of scalar registers, and LITERAL, that the vector instruction reads."""
    sdwa = state.fields.get("SRC0") == SDWA and any(f.endswith("_SEL") for f in state.fields)
    for operand in row.operands:
        if not operand.is_read or operand.role in ("EXEC", "M0"):
            continue
        if sdwa and operand.field in ("SRC0", "VSRC1"):
            number = state.fields.get("VSRC0" if operand.field == "SRC0" else "VSRC1", 0)
            if state.fields.get(f"S{operand.field[-1]}") and is_scalar(state.arch, number):
                yield number
            continue
        if not operand.field:
            yield state.arch.vcc
            continue
        number = state.fields.get(operand.field, 0)
        if operand.field == "LITERAL":
            yield LITERAL
        elif operand.type == "ssrc_lanesel" and number == state.arch.m0:
            continue  # selects a lane without the bus
        elif operand.type != "vgpr" and is_scalar(state.arch, number):
            yield number


def is_scalar(target: Arch, number: int) -> bool:
    """Whether a source number names a scalar value that takes the bus (NULL and LDS do not)."""
    return number < FIRST_VGPR and number not in (target.null, LDS_DIRECT) and constant_name(number, 32) is None


def is_dpp_selector(state: State, row: InstRow, number: int) -> bool:
    return "DPP_FORM" in state.fields and number in (233, 234, 250)


def bus_limit(target: Arch, row: InstRow) -> int:
    return 1 if row.name in ONE_SCALAR else target.constant_bus


def check_dpp_source(state: State, row: InstRow) -> None:
    """AsmError when the second source of a long instruction with DPP is not the VGPR it must be."""
    has_source = row.base.startswith("VOP3") and any(o.field == "SRC1" for o in row.operands)
    if state.arch.has_dpp_scalars or not has_source or "DPP_FORM" not in state.fields:
        return
    if state.fields.get("SRC1", FIRST_VGPR) < FIRST_VGPR:
        raise AsmError("expected a VGPR as second source beside DPP", state.cursor.token.column)


def check_constant_bus(state: State, rows: tuple[InstRow, ...]) -> None:
    """AsmError when the instruction reads more scalar values than its constant bus carries."""
    if not all(r.base in VALU_BASES or r.base.startswith("VOPD") for r in rows):
        return
    reads = {n for r in rows for n in scalar_reads(state, r) if not is_dpp_selector(state, r, n)}
    limit = min(bus_limit(state.arch, r) for r in rows)
    if len(reads) > limit:
        raise AsmError(
            f"reads {len(reads)} scalar registers or literals; at most {limit} are possible",
            state.cursor.tokens[0].column,
        )


def accumulator(state: State, row: InstRow, half: str) -> int | None:
    """Register of a dual half's third source: the addend of FMAMK, the destination of FMAC."""
    if "FMAMK" in row.name:
        return state.fields[f"VSRC{half}1"]
    if any(o.role == "D0" and o.is_read for o in row.operands):
        x = state.fields["VDSTX"]
        return x if half == "X" else state.fields["VDSTY"] << 1 | (~x & 1)
    return None


def second_source(state: State, row: InstRow, half: str) -> int | None:
    if "FMAMK" in row.name:
        return None
    return state.fields.get(f"VSRC{half}1")


def check_banks(state: State, x: InstRow, y: InstRow, column: int) -> None:
    """Sources of a dual instruction's halves come from different banks: number modulo 4, for the
    third source modulo 2. Two moves are free of this where the architecture says so."""
    if state.arch.dual_moves_any_bank and x.name == y.name == "V_DUAL_MOV_B32":
        return
    first = [state.fields[f] - FIRST_VGPR for f in ("SRCX0", "SRCY0")]
    pairs: list[tuple[int | None, int | None, int]] = [
        (second_source(state, x, "X"), second_source(state, y, "Y"), 4),
        (accumulator(state, x, "X"), accumulator(state, y, "Y"), 2),
    ]
    if min(first) >= 0:
        pairs.append((first[0], first[1], 4))
    for a, b, banks in pairs:
        if a is not None and b is not None and a % banks == b % banks:
            raise AsmError(f"sources v{a} and v{b} of the halves share a register bank", column)
