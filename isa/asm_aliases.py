"""Other names of instructions that assembly text may use: those of earlier generations, which
assemblers for newer chips still take.

A rule only counts where it leads to an instruction of the architecture, so one list serves all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping

SIZES = {"sbyte": "i8", "ubyte": "u8", "sshort": "i16", "ushort": "u16", "byte": "b8", "short": "b16"}
ATOMIC_TYPES = {
    "add": "add_u", "sub": "sub_u", "inc": "inc_u", "dec": "dec_u", "and": "and_b", "or": "or_b",
    "xor": "xor_b", "swap": "swap_b", "cmpswap": "cmpswap_b", "smax": "max_i", "smin": "min_i",
    "umax": "max_u", "umin": "min_u",
}  # fmt: skip

Rule = tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]

RULES: tuple[Rule, ...] = tuple((re.compile(pattern), new) for pattern, new in (
    (r"^ds_read2st64_", "ds_load_2addr_stride64_"),
    (r"^ds_read2_", "ds_load_2addr_"),
    (r"^ds_read_", "ds_load_"),
    (r"^ds_write2st64_", "ds_store_2addr_stride64_"),
    (r"^ds_write2_", "ds_store_2addr_"),
    (r"^ds_write_", "ds_store_"),
    (r"^ds_wrxchg2st64_", "ds_storexchg_2addr_stride64_"),
    (r"^ds_wrxchg2_", "ds_storexchg_2addr_"),
    (r"^ds_wrxchg_", "ds_storexchg_"),
    (r"_dwordx(\d+)$", lambda m: f"_b{32 * int(m[1])}"),
    (r"_dword$", "_b32"),
    (r"_(sbyte|ubyte|byte|short)_d16(_hi)?$", lambda m: f"_d16{m[2] or ''}_{SIZES[m[1]]}"),
    (r"_(sbyte|ubyte|sshort|ushort|byte|short)$", lambda m: f"_{SIZES[m[1]]}"),
    (r"_format_d16(_hi)?_(x\w*)$", lambda m: f"_d16{m[1] or ''}_format_{m[2]}"),
    (r"_atomic_([a-z]+)(_x2)?$", lambda m: f"_atomic_{ATOMIC_TYPES.get(m[1], m[1])}{64 if m[2] else 32}"),
    (r"^s_andn1_", "s_and_not0_"),
    (r"^s_andn2_", "s_and_not1_"),
    (r"^s_orn1_", "s_or_not0_"),
    (r"^s_orn2_", "s_or_not1_"),
    (r"^v_cmp(x?)_tru_", r"v_cmp\1_t_"),
    (r"^v_cvt_pknorm_", "v_cvt_pk_norm_"),
    (r"^v_(fmac?|mul)_legacy_f32$", r"v_\1_dx9_zero_f32"),
    (r"^v_(add|sub|subrev)_(u32|i32)$", r"v_\1_nc_\2"),
))  # fmt: skip

NAMES: Mapping[str, str] = {
    "s_ff1_i32_b32": "s_ctz_i32_b32", "s_ff1_i32_b64": "s_ctz_i32_b64",
    "s_flbit_i32": "s_cls_i32", "s_flbit_i32_i64": "s_cls_i32_i64",
    "s_flbit_i32_b32": "s_clz_i32_u32", "s_flbit_i32_b64": "s_clz_i32_u64",
    "s_inst_prefetch": "s_set_inst_prefetch_distance",
    "v_add3_nc_u32": "v_add3_u32", "v_xor_add_u32": "v_xad_u32",
    "v_cvt_flr_i32_f32": "v_cvt_floor_i32_f32", "v_cvt_rpi_i32_f32": "v_cvt_nearest_i32_f32",
    "v_cvt_pkrtz_f16_f32": "v_cvt_pk_rtz_f16_f32", "v_dot2c_f32_f16": "v_dot2acc_f32_f16",
    "v_dot4_i32_i8": "v_dot4_i32_iu8", "v_dot8_i32_i4": "v_dot8_i32_iu4",
    "v_fma_mix_f32": "v_mad_mix_f32", "v_fma_mixlo_f16": "v_mad_mixlo_f16", "v_fma_mixhi_f16": "v_mad_mixhi_f16",
    "v_accvgpr_read_b32": "v_accvgpr_read", "v_accvgpr_write_b32": "v_accvgpr_write",
    "v_ffbh_i32": "v_cls_i32", "v_ffbh_u32": "v_clz_i32_u32", "v_ffbl_b32": "v_ctz_i32_b32",
}  # fmt: skip


def canonical(mnemonic: str, known: Container[str]) -> str:
    """The architecture's name for `mnemonic`; itself when it is one or there is none."""
    if mnemonic in known:
        return mnemonic
    named = NAMES.get(mnemonic)
    if named is not None and named in known:
        return named
    for pattern, new in RULES:
        changed = pattern.sub(new, mnemonic)
        if changed != mnemonic and changed in known:
            return changed
    return mnemonic
