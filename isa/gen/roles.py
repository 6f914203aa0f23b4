"""Which place of the semantics each operand of the XML fills: the row's `role` (see ir.PLACES).

The XML names microcode fields; the pseudocode names places. This is the one reading of how the
two meet, per encoding family.
"""

from __future__ import annotations

from stuntgpu.isa.errors import SpecError
from stuntgpu.isa.gen.xml import Form, Instruction, OperandSpec

#: Fields whose place does not depend on the family.
FIELDS = {
    "SRC0": "S0", "SSRC0": "S0", "SRCX0": "S0", "SRCY0": "S0", "VSRC0": "S0",
    "SRC1": "S1", "SSRC1": "S1", "VSRC1": "S1", "VSRCX1": "S1", "VSRCY1": "S1",
    "SRC2": "S2", "VSRC2": "S2", "VSRC3": "S3",
    "SIMM16": "SIMM16", "LITERAL": "SIMM32", "VDSTX": "D0", "VDSTY": "D0",
    "SBASE": "SBASE", "SOFFSET": "SOFFSET", "SDATA": "SDATA", "SADDR": "SADDR",
    "SRSRC": "SRSRC", "RSRC": "SRSRC", "SSAMP": "SSAMP", "SAMP": "SSAMP",
    "SCALE_SRC0": "SCALE0", "SCALE_SRC1": "SCALE1",
    "IOFFSET": "OFFSET", "OFFSET": "OFFSET", "ATTR": "ATTR", "TGT": "TGT", "TARGET": "TGT",
}  # fmt: skip

#: Fixed operands by type.
FIXED = {
    "OPR_VCC": "VCC", "OPR_EXEC": "EXEC", "OPR_SDST_EXEC": "EXEC", "OPR_SDST_M0": "M0",
    "OPR_SSRC_SPECIAL_SCC": "SCC", "OPR_PC": "PC", "OPR_GPUMEM": "MEM", "OPR_DSMEM": "LDS",
}  # fmt: skip

LDS_BASES = ("DS", "VDS")


def is_atomic(name: str) -> bool:
    return "_ATOMIC_" in name


def is_mask(operand: OperandSpec) -> bool:
    return operand.fmt == "FMT_NUM_M64"


def lds_role(field: str) -> str | None:
    return {"ADDR": "ADDR", "DATA0": "DATA", "DATA1": "DATA2", "VDST": "RETURN_DATA"}.get(field)


def memory_role(name: str, operand: OperandSpec) -> str | None:
    """Vector memory: address and data registers of loads, stores and atomics."""
    field = operand.field
    if field in ("ADDR", "VADDR") or field.startswith("VADDR"):
        return "VADDR"
    own_names = is_atomic(name) or "_ADDTID_" in name
    if field in ("DATA", "VSRC"):
        return "DATA" if own_names else "VDATA"
    if field == "VDST":
        return "RETURN_DATA" if own_names else "VDATA"
    if field == "VDATA":
        return "DATA" if is_atomic(name) else "VDATA"
    return None


def scalar_destination(base: str, name: str, operand: OperandSpec) -> str:
    """SDST: VOP3's second destination, or the SALU destination, which SOPK may only read."""
    if base == "VOP3_SDST":
        return "D1" if name.startswith(("V_MAD_U64", "V_MAD_I64", "V_MAD_CO")) else "VCC"
    if "SDWA" in base or base == "VOPC":
        return "D0"
    return "D0" if operand.is_output else "S0"


def fixed_role(name: str, operand: OperandSpec) -> str:
    role = FIXED.get(operand.type)
    if role is None:
        raise SpecError(f"{name}: fixed operand of type {operand.type} has no place")
    if role == "VCC" and name.startswith("V_CMP"):
        return "D0"
    return role


def role(base: str, name: str, operand: OperandSpec) -> str:
    """The place of one operand. Raises SpecError for a field no rule knows."""
    field = operand.field
    if not field:
        return fixed_role(name, operand)
    found = None
    if base in LDS_BASES:
        found = lds_role(field)
    elif base.startswith(("FLAT", "VFLAT", "VGLOBAL", "VSCRATCH", "M", "VBUF", "VIMAGE", "VSAMPLE")):
        found = memory_role(name, operand)
    elif field == "SDST":
        found = scalar_destination(base, name, operand)
    elif field == "VDST":
        found = "EXEC" if operand.type == "OPR_EXEC" else "D0"
    elif field == "SRC2" and operand.type == "OPR_SREG" and is_mask(operand):
        found = "VCC"
    found = found or FIELDS.get(field)
    if found is None:
        raise SpecError(f"{name}: operand field {field} of {base} has no place")
    return found


def size(base: str, name: str, place: str, operand: OperandSpec) -> int:
    """Operand bits; a lane mask that holds one bit for each lane counts 1."""
    vector = base.startswith(("VOP", "VINTERP"))
    result = place == "D0" and name.startswith("V_CMP")  # CDNA's list says 64 bits of anything
    if vector and (is_mask(operand) or result):
        per_lane = place in ("VCC", "D1") or name.startswith(("V_CMP", "V_DUAL_CNDMASK"))
        return 1 if per_lane else operand.size
    if vector and place == "EXEC" and operand.is_output:
        return 1
    return operand.size


def fmt(operand: OperandSpec) -> str:
    """Element format: "f32", "f16x2" (two packed), "b64" where the XML only says "any"."""
    name = operand.fmt.removeprefix("FMT_").removeprefix("NUM_").lower()
    if name == "any":
        return f"b{operand.size}"
    if name.startswith("pk"):
        count, _, element = name.partition("_")
        return f"{element}x{count[2:]}"
    return name


def returned_bits(name: str, operand: OperandSpec, form: Form) -> int:
    """Bits an atomic gives back: compare-and-swap takes {data, compare} and returns one of them."""
    if "CMPSWAP" not in name:
        return operand.size
    sizes = [o.size for o in form.operands if o.field in ("DATA", "VDATA", "VSRC", "SDATA")]
    return max(sizes) // 2 if sizes else operand.size


def column(place: str, operand: OperandSpec, access: str, bits: int) -> str:
    element = fmt(operand)
    if element == f"b{operand.size}":
        element = f"b{bits}"
    kind = operand.type.removeprefix("OPR_").lower()
    return f"{place}={operand.field or '-'}:{access}:{kind}:{element}:{bits}"


def render(base: str, instruction: Instruction, form: Form) -> str:
    """Operands of a table row: `place=FIELD:access:type:format:bits`, FIELD "-" when fixed."""
    columns: list[str] = []
    seen_exec = False
    for operand in form.operands:
        place = role(base, instruction.name, operand)
        access = "r" * operand.is_input + "w" * operand.is_output
        if place == "EXEC" and operand.is_output:
            if seen_exec:  # V_CMPX lists its destination and EXEC, which are one register
                continue
            seen_exec = True
        returned = returned_bits(instruction.name, operand, form)
        if is_atomic(instruction.name) and operand.field in ("VDATA", "SDATA"):  # one field, both directions
            columns.append(column("DATA", operand, "r", operand.size))
            columns.append(column("RETURN_DATA", operand, "w", returned))
            continue
        bits = size(base, instruction.name, place, operand)
        columns.append(column(place, operand, access, returned if place == "RETURN_DATA" else bits))
    return " ".join(columns)
