"""`.amdhsa_*` directives: from a block of them to the 64 bytes of a kernel descriptor.

A directive is a row: where its value goes, how many bits it has, its default, on which chips it exists.

Errors:  AsmError for a directive a chip does not have, a value that does not fit, one that is missing.
Source:  AMDGPU back-end user guide, ".amdhsa_kernel" (directives and defaults) and "Kernel Descriptor".
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from stuntgpu.isa.abi.descriptor import USER_SGPRS
from stuntgpu.isa.abi.targets import Target, target
from stuntgpu.isa.arch import arch
from stuntgpu.isa.asm_lex import AsmError, Cursor, tokenize
from stuntgpu.isa.asm_report import Report
from stuntgpu.isa.asm_sections import Functions, KernelBlock, Line, Symbols

DESCRIPTOR_BYTES, ALIGN = 64, 64
_PREFIX, _PRELOAD = ".amdhsa_", "user_sgpr_kernarg_preload_"

#: Bytes of the descriptor that registers and counts have.
_WORDS = {"group": (0, 4), "private": (4, 4), "kernarg": (8, 4), "rsrc3": (44, 4), "rsrc1": (48, 4), "rsrc2": (52, 4),
          "properties": (56, 2), "preload": (58, 2)}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """A directive. word: of _WORDS, "" for one that only takes part in a calculation. default None: it has to
    be given. only: dialects that have it, empty for all."""

    name: str
    word: str
    low: int
    bits: int
    default: int | None = 0
    only: tuple[str, ...] = ()


_CDNA, _RDNA3, _RDNA4 = ("gfx9",), ("gfx11",), ("gfx12",)
_RDNA = _RDNA3 + _RDNA4

_ROWS = (
    Row("group_segment_fixed_size", "group", 0, 32),
    Row("private_segment_fixed_size", "private", 0, 32),
    Row("kernarg_size", "kernarg", 0, 32),
    Row("user_sgpr_count", "", 0, 6, -1),
    Row("user_sgpr_dispatch_ptr", "properties", 1, 1),
    Row("user_sgpr_queue_ptr", "properties", 2, 1),
    Row("user_sgpr_kernarg_segment_ptr", "properties", 3, 1),
    Row("user_sgpr_dispatch_id", "properties", 4, 1),
    Row("user_sgpr_private_segment_size", "properties", 6, 1),
    Row("user_sgpr_kernarg_preload_length", "preload", 0, 7, 0, _CDNA),
    Row("user_sgpr_kernarg_preload_offset", "preload", 7, 9, 0, _CDNA),
    Row("wavefront_size32", "properties", 10, 1, 1, _RDNA),
    Row("uses_dynamic_stack", "properties", 11, 1),
    Row("enable_private_segment", "rsrc2", 0, 1),
    Row("system_sgpr_workgroup_id_x", "rsrc2", 7, 1, 1),
    Row("system_sgpr_workgroup_id_y", "rsrc2", 8, 1),
    Row("system_sgpr_workgroup_id_z", "rsrc2", 9, 1),
    Row("system_sgpr_workgroup_info", "rsrc2", 10, 1),
    Row("system_vgpr_workitem_id", "rsrc2", 11, 2),
    Row("next_free_vgpr", "", 0, 16, None),
    Row("next_free_sgpr", "", 0, 16, None),
    Row("accum_offset", "", 0, 16, None, _CDNA),
    Row("reserve_vcc", "", 0, 1, 1),
    Row("reserve_xnack_mask", "", 0, 1, 0, _CDNA),
    Row("float_round_mode_32", "rsrc1", 12, 2),
    Row("float_round_mode_16_64", "rsrc1", 14, 2),
    Row("float_denorm_mode_32", "rsrc1", 16, 2),
    Row("float_denorm_mode_16_64", "rsrc1", 18, 2, 3),
    Row("dx10_clamp", "rsrc1", 21, 1, 1, _CDNA + _RDNA3),
    Row("round_robin_scheduling", "rsrc1", 21, 1, 0, _RDNA4),
    Row("ieee_mode", "rsrc1", 23, 1, 1, _CDNA + _RDNA3),
    Row("fp16_overflow", "rsrc1", 26, 1),
    Row("workgroup_processor_mode", "rsrc1", 29, 1, 1, _RDNA),
    Row("memory_ordered", "rsrc1", 30, 1, 1, _RDNA),
    Row("forward_progress", "rsrc1", 31, 1, 1, _RDNA),
    Row("shared_vgpr_count", "rsrc3", 0, 4, 0, _RDNA3),
    Row("inst_pref_size", "rsrc3", 4, 6, 0, _RDNA3),
    Row("inst_pref_size", "rsrc3", 4, 8, 0, _RDNA4),
    Row("tg_split", "rsrc3", 16, 1, 0, _CDNA),
    Row("exception_fp_ieee_invalid_op", "rsrc2", 24, 1),
    Row("exception_fp_denorm_src", "rsrc2", 25, 1),
    Row("exception_fp_ieee_div_zero", "rsrc2", 26, 1),
    Row("exception_fp_ieee_overflow", "rsrc2", 27, 1),
    Row("exception_fp_ieee_underflow", "rsrc2", 28, 1),
    Row("exception_fp_ieee_inexact", "rsrc2", 29, 1),
    Row("exception_int_div_zero", "rsrc2", 30, 1),
)


def rows_of(name: str) -> dict[str, Row]:
    """Directive name without prefix -> row, of one architecture."""
    dialect = arch(name).dialect
    return {r.name: r for r in _ROWS if not r.only or dialect in r.only}


@dataclass(frozen=True, slots=True)
class Kernel:
    """A block that was read. values: every directive of the chip; lines: where those given stand."""

    name: str
    target: Target
    values: Mapping[str, int]
    lines: Mapping[str, Line]

    @property
    def wave_lanes(self) -> int:
        return self.target.wave_lanes(bool(self.values.get("wavefront_size32")))

    @property
    def user_sgprs(self) -> int:
        """User SGPRs that directives ask for."""
        asked = sum(n for what, n in USER_SGPRS if self.values.get(f"user_sgpr_{what}"))
        return asked + self.values.get("user_sgpr_kernarg_preload_length", 0)

    @property
    def sgprs(self) -> int:
        """With those that VCC, XNACK and flat scratch take."""
        v, extra = self.values, 2 if self.values["reserve_vcc"] else 0
        if "accum_offset" in v:  # the architected flat scratch takes its six whether asked or not
            extra = 6
        return v["next_free_sgpr"] + extra

    def fail(self, name: str, message: str) -> AsmError:
        line = self.lines[name]
        return AsmError(message, line.text.index(_PREFIX) + 1).at_line(line.number, line.text)

    def descriptor(self, entry_offset: int) -> bytes:
        """The 64 bytes. entry_offset: from the descriptor to the code. Raises AsmError."""
        out = dict.fromkeys(_WORDS, 0)
        for row in rows_of(self.target.name).values():
            if row.word:
                out[row.word] |= self.values[row.name] << row.low
        out["rsrc2"] |= self._user_sgpr_count() << 1
        out["rsrc1"] |= self._registers()
        if "accum_offset" in self.values:
            out["rsrc3"] |= self._accum_offset()
        data = bytearray(DESCRIPTOR_BYTES)
        for word, value in out.items():
            at, size = _WORDS[word]
            data[at : at + size] = value.to_bytes(size, "little")
        data[16:24] = (entry_offset & (1 << 64) - 1).to_bytes(8, "little")
        return bytes(data)

    def _user_sgpr_count(self) -> int:
        given = self.values["user_sgpr_count"]
        count = self.user_sgprs if given < 0 else given
        if count < self.user_sgprs:
            raise self.fail("user_sgpr_count", f"{count} user SGPRs, but {self.user_sgprs} are enabled")
        preloaded = 4 * sum(self.values.get(_PRELOAD + n, 0) for n in ("length", "offset"))
        if preloaded > self.values["kernarg_size"]:
            culprit = _PRELOAD + ("length" if f"{_PRELOAD}length" in self.lines else "offset")
            raise self.fail(culprit, f"{preloaded} bytes are preloaded of {self.values['kernarg_size']}")
        if count > 31:
            raise AsmError(f"kernel {self.name!r}: {count} user SGPRs, at most 31 fit")
        return count

    def _registers(self) -> int:
        """Granulated VGPR and SGPR counts of RSRC1."""
        granule = self.target.vgpr_granule(self.wave_lanes)
        vgprs = max(1, self.values["next_free_vgpr"])
        limit = 512 if "accum_offset" in self.values else 256
        if vgprs > limit:
            raise self.fail("next_free_vgpr", f"{vgprs} VGPRs, a wave has at most {limit}")
        sgprs = 0 if self.target.has_wave32 else -(-max(1, self.sgprs) // 8) - 1
        if self.values["next_free_sgpr"] > (106 if self.target.has_wave32 else 102):
            raise self.fail("next_free_sgpr", f"{self.values['next_free_sgpr']} SGPRs are more than a wave has")
        return -(-vgprs // granule) - 1 | sgprs << 6

    def _accum_offset(self) -> int:
        value = self.values["accum_offset"]
        if value % 4 or not 4 <= value <= 256:
            raise self.fail("accum_offset", f"accum_offset is {value}, not a multiple of 4 in 4..256")
        if value > -(-max(1, self.values["next_free_vgpr"]) // 4) * 4:
            raise self.fail("accum_offset", "accum_offset exceeds the VGPRs of the kernel")
        return value // 4 - 1


def read_kernel(name: str, block: KernelBlock, symbols: Symbols, functions: Functions) -> Kernel:
    """The directives of a block of architecture `name`. Raises AsmError with line and column."""
    rows = rows_of(name)
    values = {r.name: r.default for r in rows.values()}
    lines: dict[str, Line] = {}
    report = Report()
    for line in block.lines:
        with report.at(line.number, line.text):
            directive, value = _read_line(line.text, rows, symbols, functions)
            if directive in lines:
                raise AsmError(f"{_PREFIX}{directive} is given twice", line.text.index(".") + 1)
            values[directive], lines[directive] = value, line
    report.check()
    missing = [n for n, v in values.items() if v is None]
    if missing:
        text = f"kernel {block.name!r} needs {', '.join(_PREFIX + n for n in missing)}"
        raise AsmError(text, block.line.text.index(".") + 1).at_line(block.line.number, block.line.text)
    return Kernel(block.name, target(name), {n: v for n, v in values.items() if v is not None}, lines)


def _read_line(text: str, rows: Mapping[str, Row], symbols: Symbols, functions: Functions) -> tuple[str, int]:
    cursor = Cursor(tokenize(text), symbols, functions)
    word = cursor.token.text
    name = word.removeprefix(_PREFIX)
    if not word.startswith(_PREFIX) or name not in rows:
        elsewhere = "; other chips have it" if any(r.name == name for r in _ROWS) and word.startswith(_PREFIX) else ""
        near = [] if elsewhere else difflib.get_close_matches(name, list(rows), n=1)
        hint = f"; did you mean {_PREFIX}{near[0]}?" if near else elsewhere
        raise AsmError(f"unknown kernel directive {word!r}{hint}", cursor.token.column)
    cursor.at = 1
    value, row = cursor.value().integer, rows[name]
    if cursor.token.kind != "end":
        raise cursor.fail("the end of the line")
    if not 0 <= value < 1 << row.bits:
        raise AsmError(f"{value} does not fit the {row.bits} bits of {word}", cursor.tokens[1].column)
    return name, value


# ---------------------------------------------------------------- functions of compilers' expressions


def functions_of(name: str, known: Functions) -> Functions:
    """Functions that count registers as an architecture does."""
    t = target(name)

    def total_vgprs(accumulators: int, vgprs: int) -> int:
        if t.has_wave32:
            return max(accumulators, vgprs)
        return -(-vgprs // 4) * 4 + accumulators if accumulators else vgprs

    def extra_sgprs(vcc: int, flat_scratch: int, xnack: int) -> int:
        return 2 if t.has_wave32 and vcc else 0 if t.has_wave32 else 6

    more: dict[str, tuple[int, Callable[..., int]]] = {
        "totalnumvgprs": (2, total_vgprs), "extrasgprs": (3, extra_sgprs),
        "instprefsize": (1, lambda size: min(-(-size // 128), 255 if arch(name).dialect == "gfx12" else 63)),
    }
    return {**known, **more}


def default_metadata(kernels: Sequence[Kernel], target_id: str) -> dict[str, object]:
    """What a loader has to know of kernels whose source has no .amdgpu_metadata."""
    rows = [
        {
            ".name": k.name, ".symbol": f"{k.name}.kd", ".kernarg_segment_size": k.values["kernarg_size"],
            ".kernarg_segment_align": 8, ".group_segment_fixed_size": k.values["group_segment_fixed_size"],
            ".private_segment_fixed_size": k.values["private_segment_fixed_size"], ".wavefront_size": k.wave_lanes,
            ".sgpr_count": k.sgprs, ".vgpr_count": k.values["next_free_vgpr"], ".max_flat_workgroup_size": 1024,
        }
        for k in kernels
    ]  # fmt: skip
    return {"amdhsa.version": [1, 2], "amdhsa.target": f"amdgcn-amd-amdhsa--{target_id}", "amdhsa.kernels": rows}
