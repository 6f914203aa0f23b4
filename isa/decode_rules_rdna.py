"""Rules between fields that RDNA needs: registers that other fields add, controls that exist.

See `decode_rules` for what a rule is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from stuntgpu.isa.arch import Arch, EncodingRow, InstRow
from stuntgpu.isa.syntax_gfx12 import address_registers
from stuntgpu.isa.syntax_image import image_address_registers, image_data_registers

Fields = Mapping[str, int]
Rule = Callable[[Fields], str]

VGPRS = 256
DPP_CONTROLS = (
    frozenset(range(0x100)) | {first + n for first in (0x100, 0x110, 0x120) for n in range(1, 16)}
    | {0x140, 0x141} | set(range(0x150, 0x170))
)  # fmt: skip
IMAGES = ("MIMG", "VIMAGE", "VSAMPLE")
BUFFERS = ("MUBUF", "MTBUF", "VBUFFER")
FLAT_ADDRESSES = {"FLAT": "ADDR", "FLAT_GLOBAL": "ADDR", "VFLAT": "VADDR", "VGLOBAL": "VADDR"}


def cannot(field: str, f: Fields) -> str:
    return f"{field} cannot be {f.get(field, 0)}"


def dpp_control(f: Fields) -> str:
    return "" if f.get("DPP_CTRL", 0) in DPP_CONTROLS else f"DPP_CTRL cannot be {f['DPP_CTRL']:#x}"


def buffer(row: InstRow) -> Rule:
    """The status word of TFE follows the data; index and offset together are a pair."""
    bits = next((o.bits for o in row.operands if o.field == "VDATA"), 32)
    n = (bits + 31) // 32

    def check(f: Fields) -> str:
        if f.get("VDATA", 0) + n + f.get("TFE", 0) > VGPRS:
            return cannot("VDATA", f)
        pair = f.get("OFFEN") and f.get("IDXEN") and f.get("VADDR") == VGPRS - 1
        return cannot("VADDR", f) if pair else ""

    return check


def image(row: InstRow) -> Rule:
    """Data and addresses take as many registers as the mask, the dimension and the flags say."""
    name, fields = row.name, {"MIMG": 0, "VIMAGE": 5, "VSAMPLE": 4}[row.base]

    def check(f: Fields) -> str:
        n = image_data_registers(name, f.get("DMASK", 0), f.get("D16", 0), f.get("TFE", 0))
        if f.get("VDATA", 0) + n > VGPRS:
            return cannot("VDATA", f)
        dim, a16 = f.get("DIM", 0), f.get("A16", 0)
        if not fields:
            return cannot("VADDR", f) if f.get("VADDR", 0) + image_address_registers(name, dim, a16) > VGPRS else ""
        counts = address_registers(name, dim, a16, fields)
        for i, count in enumerate(counts):
            if f.get(f"VADDR{i}", 0) + count > VGPRS:
                return cannot(f"VADDR{i}", f)
        unused = (f"VADDR{i}" for i in range(len(counts), fields))
        return next((cannot(field, f) for field in unused if f.get(field)), "")

    return check


def address(field: str, no_saddr: int | None) -> Rule:
    """Addresses without a scalar part are pairs. `no_saddr` None: they never have one."""

    def check(f: Fields) -> str:
        last = f.get(field) == VGPRS - 1 and no_saddr in (None, f.get("SADDR", no_saddr))
        return cannot(field, f) if last else ""

    return check


def target(names: Mapping[int, str]) -> Rule:
    return lambda f: "" if f.get("TGT", 0) in names else cannot("TGT", f)


def dpp_second_source(f: Fields) -> str:
    """With DPP the second source of a long instruction is a VGPR."""
    return cannot("SRC1", f) if "VSRC0" in f and f.get("SRC1", VGPRS) < VGPRS else ""


def flat_offset(f: Fields) -> str:
    return cannot("OFFSET", f) if f.get("OFFSET", 0) >> 12 else ""


def rdna_rules(arch: Arch, row: InstRow, encoding: EncodingRow) -> Iterator[Rule]:
    if "dpp16" in row.forms:
        yield dpp_control
        if row.base.startswith("VOP3") and not arch.has_dpp_scalars and any(o.field == "SRC1" for o in row.operands):
            yield dpp_second_source
    if row.base in BUFFERS and row.operands:
        yield buffer(row)
    elif row.base in IMAGES:
        yield image(row)
    elif row.base in FLAT_ADDRESSES and any(o.role == "VADDR" for o in row.operands):
        yield address(FLAT_ADDRESSES[row.base], None if row.base.endswith("FLAT") else arch.no_saddr)
    elif row.base in ("EXP", "VEXPORT"):
        yield target(arch.tables.enums["tgt"])
    if row.base == "FLAT":  # takes no negative offset
        yield flat_offset
