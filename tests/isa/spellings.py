"""Other ways to write an instruction: suffixes, spellings of numbers, registers and signs, modifiers
that may be left out, and operands replaced by constants. Some are no instruction: that is wanted."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

SUFFIX = re.compile(r"_(e32|e64|e64_dpp|dpp|sdwa)\b")
RANGE = re.compile(r"\b([vsa]|ttmp)\[(\d+):(\d+)\]")
SINGLE = re.compile(r"(?<![\w.\[])([vsa]|ttmp)(\d+)\b(?!\.)")
HEX = re.compile(r"(?<![\w(:])0x[0-9a-f]+\b")
DECIMAL = re.compile(r"(?<![\w.\[:,-])\d+\b(?![.\]:])")
MODIFIER = re.compile(r"(?<=\s)(?:[a-z_0-9]+:(?:\[[^\]]*\]|\S+)|[a-z_0-9]+)(?=\s|$)")
#: Constants to put in place of an operand: of every format, and those next to an inline one.
CONSTANTS = (
    "0", "1", "-1", "64", "65", "-16", "-17", "0x3c00", "0x3f800000", "0x3ff00000", "0x3118", "0x3e22f983", "0xffff",
    "0xfffffff0", "0xffffffff", "0x1234", "0x12345678", "0x80000000", "-0x80000000", "1.0", "-4.0", "0.5", "1.5", "100.0",
    "1e10", "65504.0", "0.1", "0.15915494", "0.15915494309189532", "lit(0x1)", "lit(1.0)", "lit(0x3c00)", "0x100000000",
    "0xffffffffffffffff", "-0.0", "0.0", "0b101", "017", "(1+2)*3", "~0", "1<<4", "0x3f80", "0xbf80", "2.0", "-0.5", "-1.5",
    "vcc_lo", "exec_lo", "m0", "null", "scc", "src_scc", "src_shared_base", "shared_base", "vccz", "s0", "ttmp3", "v0",
)  # fmt: skip
EXTRAS = (
    "clamp", "mul:2", "div:2", "op_sel:[1,0]", "op_sel:[0,0,0,1]", "op_sel_hi:[0,0]", "neg_lo:[1,0]", "neg_hi:[0,1]", "glc", "slc",
    "dlc", "offset:0", "offset:16", "offset:0x10", "offset:-1", "offset:4095", "offset:4096", "gds", "tfe", "lwe", "offen", "idxen",
    "row_mask:0x3", "bank_mask:0x1", "bound_ctrl:0", "bound_ctrl:1", "fi:0", "fi:1", "row_shl:1", "row_share:0", "quad_perm:[0,1,2,3]",
    "dpp8:[7,6,5,4,3,2,1,0]", "row_half_mirror", "th:TH_LOAD_NT", "th:TH_ATOMIC_RETURN", "th:TH_STORE_NT", "scope:SCOPE_SYS", "nv",
    "sc0", "sc1", "nt", "offset0:1", "offset1:2", "format:1", "unorm", "a16", "d16", "r128", "dmask:0x1", "wait_exp:1", "done",
    "clamp:1", "mul:1", "div:1", "mul:3", "noclamp", "lds", "vm", "index_key:1", "byte_sel:1", "wait_vdst:1", "dim:1D",
)  # fmt: skip


def respell(r: random.Random, text: str) -> str:
    number = int(text, 16 if text.startswith("0x") else 10)
    return r.choice((hex(number), str(number), f"0x{number:08x}", f"{number - (1 << 32)}", f"({number})", f"{number}+0"))


def replace_one(r: random.Random, pattern: re.Pattern[str], text: str, new: Callable[[re.Match[str]], str]) -> str:
    """`text` with one match of `pattern` changed."""
    found = list(pattern.finditer(text))
    if not found:
        return text
    m = r.choice(found)
    return text[: m.start()] + new(m) + text[m.end() :]


def split_range(m: re.Match[str]) -> str:
    first, last = int(m[2]), int(m[3])
    return "[" + ", ".join(f"{m[1]}{i}" for i in range(first, last + 1)) + "]"


def operand(r: random.Random, text: str) -> str:
    """One operand replaced by a constant or a special register."""
    mnemonic, _, rest = text.partition(" ")
    parts = rest.split(", ")
    i = r.randrange(len(parts))
    head, *tail = parts[i].split(" ")
    sign = r.choice(("", "", "", "-", "|", "neg("))
    new = r.choice(CONSTANTS)
    wrapped = {"|": f"|{new}|", "neg(": f"neg({new})"}.get(sign, sign + new)
    parts[i] = " ".join([wrapped, *tail])
    return f"{mnemonic} {', '.join(parts)}" if head else text


def unit(r: random.Random, text: str) -> str:
    """Registers with another spelling."""
    change = r.choice((
        lambda t: replace_one(r, RANGE, t, split_range),
        lambda t: replace_one(r, SINGLE, t, lambda m: f"{m[1]}[{m[2]}]"),
        lambda t: replace_one(r, RANGE, t, lambda m: f"{m[1]}[{m[2]}:{m[2]}+{int(m[3]) - int(m[2])}]"),
        lambda t: t.replace("vcc_lo", "vcc"), lambda t: t.replace("vcc", "vcc_lo", 1), lambda t: t.replace("src_", "", 1),
        lambda t: t.replace(".l", ""), lambda t: replace_one(r, SINGLE, t, lambda m: f"{m[1]}{m[2]}.h"),
    ))  # fmt: skip
    return change(text)


def signs(r: random.Random, text: str) -> str:
    change = r.choice((
        lambda t: re.sub(r"\|(\S+?)\|", r"abs(\1)", t), lambda t: re.sub(r"-(\|?[vs]\S+?)(?=[, ]|$)", r"neg(\1)", t),
        lambda t: replace_one(r, SINGLE, t, lambda m: f"-{m[0]}"), lambda t: replace_one(r, SINGLE, t, lambda m: f"|{m[0]}|"),
        lambda t: replace_one(r, SINGLE, t, lambda m: f"sext({m[0]})"), lambda t: replace_one(r, SINGLE, t, lambda m: f"-|{m[0]}|"),
    ))  # fmt: skip
    return change(text)


def modifiers(r: random.Random, text: str) -> str:
    change = r.choice((
        lambda t: replace_one(r, MODIFIER, t, lambda m: ""), lambda t: f"{t} {r.choice(EXTRAS)}", lambda t: f"{t} {r.choice(EXTRAS)}",
        lambda t: replace_one(r, MODIFIER, t, lambda m: f"{m[0]} {r.choice(EXTRAS)}"), lambda t: t.replace("SQ_RSRC_IMG_", ""),
        lambda t: t.replace(":", ": ").replace("::", " : : ") if r.random() < 0.3 else t.replace(", ", ","),
    ))  # fmt: skip
    return change(text)


def variant(r: random.Random, text: str) -> str:
    """`text` written another way, or something near it."""
    for _ in range(r.choice((1, 1, 2))):
        change = r.choice((
            lambda t: SUFFIX.sub("", t, count=1), lambda t: replace_one(r, HEX, t, lambda m: respell(r, m[0])),
            lambda t: replace_one(r, DECIMAL, t, lambda m: respell(r, m[0])), lambda t: operand(r, t), lambda t: operand(r, t),
            lambda t: unit(r, t), lambda t: signs(r, t), lambda t: modifiers(r, t), lambda t: modifiers(r, t),
        ))  # fmt: skip
        text = change(text)
    return text
