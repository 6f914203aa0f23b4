"""Field values that assembly text does not say, or need not: where an encoding has a field that an
instruction does not use, or uses with a default that is not 0.
"""

from __future__ import annotations

from stuntgpu.isa import asm_imm_gfx9
from stuntgpu.isa.arch import Arch, InstRow
from stuntgpu.isa.decode_rules import WHOLE_RESULTS
from stuntgpu.isa.errata.encodings import required
from stuntgpu.isa.syntax import MIX_NAMES

#: Codes of SDWA: a whole register, a result that keeps the rest of its register.
DWORD, PRESERVE = 6, 2


def fixed_fields(target: Arch, row: InstRow, form: str) -> dict[str, int]:
    """Field values that text does not say, or need not."""
    out: dict[str, int] = {}
    if row.base.startswith(("FLAT", "VFLAT", "VGLOBAL", "VSCRATCH")):
        out["SADDR"] = target.no_saddr
    out |= required(target.name, row.base)
    if form == "sdwa":
        out |= sdwa_defaults(row)
    if row.base == "MTBUF" and target.dialect == "gfx9":
        out["DFMT"] = asm_imm_gfx9.DEFAULT_DATA
    if row.base == "VOP3P":
        out["OP_SEL_HI"] = 0 if row.name.startswith(MIX_NAMES) else 7
    if row.base == "VOP3" and row.name.startswith("V_CMPX"):
        out["VDST"] = target.exec
    if row.base in ("MTBUF", "VBUFFER"):
        out["FORMAT"] = 1
    if "_BVH" in row.name and row.base in ("MIMG", "VIMAGE"):
        out |= {"DMASK": 15, "UNORM": 1, "R128": 1}
    return out


def sdwa_defaults(row: InstRow) -> dict[str, int]:
    """Whole registers; a result keeps what it does not write."""
    n = sum(o.role in ("S0", "S1") for o in row.operands)
    out = {f"SRC{i}_SEL": DWORD for i in range(n)}
    if row.base != "VOPC":
        out |= {"DST_SEL": DWORD, "DST_UNUSED": 0 if row.name in WHOLE_RESULTS else PRESERVE}
    return out
