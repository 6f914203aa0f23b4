"""Assembly syntax of the memory encodings that GFX12 has of its own: see `syntax` for the rest.

Offsets are 24 bits everywhere, cache policy is TH and SCOPE, image addresses are lists of VGPRs.
"""

from __future__ import annotations

from stuntgpu.isa.arch import Arch, InstRow
from stuntgpu.isa.syntax_image import image_address_registers
from stuntgpu.isa.syntax_types import Modifier, Slot

OFFSET_BITS = 24
SCOPES = ("SCOPE_CU", "SCOPE_SE", "SCOPE_DEV", "SCOPE_SYS")


def policy(row: InstRow) -> tuple[Modifier, ...]:
    """TH names depend on what the instruction does."""
    kind = "ATOMIC" if "_ATOMIC_" in row.name else "STORE" if "_STORE" in row.name else "LOAD"
    return (Modifier("th", "TH", kind), Modifier("scope", "SCOPE"))


def smem_slots(target: Arch, row: InstRow, form: str) -> tuple[Slot, ...]:
    fields = {o.field: o for o in row.operands}
    if "PREFETCH" in row.name:
        base = (Slot("spair", "SBASE", fields["SBASE"].bits),) if "SBASE" in fields else ()
        rest = (Slot("offset24", "IOFFSET"), Slot("sreg", "SOFFSET", 32), Slot("imm", "SDATA", 5, style="short"))
        return (*base, *rest)
    slots: list[Slot] = []
    if "SDATA" in fields:
        kind = "imm" if fields["SDATA"].type.startswith("simm") else "sreg"
        slots.append(Slot(kind, "SDATA", fields["SDATA"].bits, style="short"))
    if "SBASE" in fields:
        slots.append(Slot("spair", "SBASE", fields["SBASE"].bits))
    if "SOFFSET" in fields:
        slots.append(Slot("smem_offset24", "SOFFSET"))
    return tuple(slots)


def smem_modifiers(row: InstRow, form: str) -> tuple[Modifier, ...]:
    if not row.operands or "PREFETCH" in row.name:
        return ()
    return (Modifier("smem_offset24", "IOFFSET", "offset"), *policy(row))


def flat_modifiers(row: InstRow, form: str) -> tuple[Modifier, ...]:
    if not row.operands:  # cache control
        return policy(row)
    return (Modifier("signed", "IOFFSET", "offset", OFFSET_BITS), *policy(row))


def buffer_slots(target: Arch, row: InstRow, form: str) -> tuple[Slot, ...]:
    data = next((o for o in row.operands if o.field == "VDATA" and o.role != "RETURN_DATA"), None)
    if data is None:
        return ()
    return (
        Slot("buffer_data", "VDATA", data.bits), Slot("buffer_addr", "VADDR"),
        Slot("sreg", "RSRC", 128), Slot("sreg", "SOFFSET", 32),
    )  # fmt: skip


def buffer_modifiers(row: InstRow, form: str) -> tuple[Modifier, ...]:
    if not row.operands:
        return ()
    typed = (Modifier("format", "FORMAT", "format", default=1),) if row.name.startswith("TBUFFER") else ()
    return (
        *typed, Modifier("flag", "IDXEN", "idxen"), Modifier("flag", "OFFEN", "offen"),
        Modifier("number", "IOFFSET", "offset"), *policy(row), Modifier("flag", "TFE", "tfe"),
    )  # fmt: skip


def image_slots(target: Arch, row: InstRow, form: str) -> tuple[Slot, ...]:
    bits = 128 if "_BVH" in row.name else 256
    addresses = 5 if row.base == "VIMAGE" else 4
    slots = [
        Slot("image_data", "VDATA", style=row.name),
        Slot("image_list", "VADDR0", index=addresses, style=row.name),
        Slot("sreg", "RSRC", bits),
    ]
    if any(o.field == "SAMP" for o in row.operands):
        slots.append(Slot("sreg", "SAMP", 128))
    return tuple(slots)


def image_modifiers(row: InstRow, form: str) -> tuple[Modifier, ...]:
    if "_BVH" in row.name:
        return (Modifier("flag", "A16", "a16"),)
    sample = row.base == "VSAMPLE"
    unorm = (Modifier("flag", "UNORM", "unorm"),) if sample else ()
    lwe = (Modifier("flag", "LWE", "lwe"),) if sample else ()
    return (
        Modifier("dmask", "DMASK", "dmask"), Modifier("dim", "DIM", "dim"), *unorm, *policy(row),
        Modifier("flag", "R128", "r128"), Modifier("flag", "A16", "a16"),
        Modifier("flag", "TFE", "tfe"), *lwe, Modifier("flag", "D16", "d16"),
    )  # fmt: skip


#: Ray intersection: registers of each address field (node pointer, extent, origin, direction, ...).
RAY_REGISTERS = {
    "IMAGE_BVH_INTERSECT_RAY": (1, 1, 3, 3, 3), "IMAGE_BVH64_INTERSECT_RAY": (2, 1, 3, 3, 3),
    "IMAGE_BVH_DUAL_INTERSECT_RAY": (2, 2, 3, 3, 2), "IMAGE_BVH8_INTERSECT_RAY": (2, 2, 3, 3, 1),
}  # fmt: skip
#: With A16 the directions and their inverses share three registers.
PACKED_RAY_REGISTERS = {
    "IMAGE_BVH_INTERSECT_RAY": (1, 1, 3, 3), "IMAGE_BVH64_INTERSECT_RAY": (2, 1, 3, 3),
}  # fmt: skip


def address_registers(name: str, dim: int, a16: int, fields: int) -> tuple[int, ...]:
    """Registers of each address operand: one each, the last of `fields` takes all that remain."""
    rays = PACKED_RAY_REGISTERS if a16 else RAY_REGISTERS
    if name in rays:
        return rays[name]
    n = image_address_registers(name, dim, a16)
    return (1,) * n if n <= fields else (*(1,) * (fields - 1), n - fields + 1)


def direct_modifiers(row: InstRow, form: str) -> tuple[Modifier, ...]:
    return (
        Modifier("always", "WAIT_VA_VDST", "wait_va_vdst"),
        Modifier("always", "WAIT_VM_VSRC", "wait_vm_vsrc"),
    )


# ---------------------------------------------------------------- TH

PLAIN_TH = {1: "NT", 2: "HT", 4: "NT_RT", 5: "RT_NT", 6: "NT_HT"}


def th_name(kind: str, th: int, scope: int) -> str:
    """Text of a TH value that is not zero; hexadecimal for one without a name."""
    if kind == "ATOMIC":
        if th & 4:
            return f"TH_ATOMIC_CASCADE_{'NT' if th & 2 else 'RT'}" if scope >= 2 and not th & 1 else hex(th)
        return {1: "TH_ATOMIC_RETURN", 2: "TH_ATOMIC_NT", 3: "TH_ATOMIC_NT_RETURN"}[th]
    if th == 3:
        name = "BYPASS" if scope == 3 else "WB" if kind == "STORE" else "LU"
    elif th == 7:
        if kind == "LOAD":
            return hex(th)
        name = "NT_WB"
    else:
        name = PLAIN_TH[th]
    return f"TH_{kind}_{name}"


def th_values(kind: str) -> dict[str, int]:
    """Every name of `kind` and its value."""
    names = {f"TH_{kind}_RT": 0, f"TH_{kind}_DEFAULT": 0}
    for th in range(1, 8):
        for scope in range(4):
            names[th_name(kind, th, scope)] = th
    return {n: v for n, v in names.items() if n.startswith("TH_")}
