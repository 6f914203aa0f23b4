"""Reads structured immediates: the inverse of the printers in asm_imm.py. A plain number is
accepted wherever the structured form is."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from stuntgpu.isa import asm_imm
from stuntgpu.isa.asm_lex import AsmError
from stuntgpu.isa.asm_state import State


def is_call(state: State, name: str) -> bool:
    return state.cursor.token.text == name and state.cursor.peek().text == "("


def number(state: State) -> int:
    return state.either(16, "a number or its symbolic form")


def named(state: State, names: Mapping[str, int], bits: int, what: str) -> int:
    """One of `names`, or a number of `bits`."""
    token = state.cursor.token
    if token.kind == "name" and token.text in names:
        state.cursor.at += 1
        return names[token.text]
    if token.kind == "name" and token.text not in state.cursor.symbols:
        raise state.cursor.fail(what)
    return state.unsigned(bits, what)


def hwreg_names(name: str) -> dict[str, int]:
    names = dict(asm_imm.fields(name, "hwreg")[0][1])
    return names | {text: v for v, text in asm_imm.hwreg_printed(name).items()}


def hwreg(state: State) -> int:
    if not is_call(state, "hwreg"):
        return number(state)
    cursor = state.cursor
    cursor.at += 2
    value = named(state, hwreg_names(state.arch.name), 6, "a hardware register")
    offset, size = 0, 32
    if cursor.accept(","):
        offset = state.unsigned(5, "a bit offset")
        cursor.expect(",")
        column = cursor.token.column
        size = cursor.value("a size in bits").integer
        if not 1 <= size <= 32:
            raise AsmError(f"expected a size from 1 to 32, found {size}", column)
    cursor.expect(")")
    return value | offset << 6 | (size - 1) << 11


def sendmsg(state: State) -> int:
    if not is_call(state, "sendmsg"):
        return number(state)
    cursor = state.cursor
    cursor.at += 2
    value = named(state, asm_imm.fields(state.arch.name, "sendmsg")[0][1], 8, "a message")
    for shift, what in ((4, "an operation"), (8, "a stream")):
        if cursor.accept(","):
            value |= named(state, {}, 4, what) << shift
    cursor.expect(")")
    return value


def counters(state: State, kind: str, names: Mapping[str, str]) -> int:
    """name(count) & name(count) ...: every counter not named waits for nothing."""
    rows = {f.name: f for f, _, _ in asm_imm.fields(state.arch.name, kind)}
    cursor = state.cursor
    value = sum(f.mask for f in rows.values())
    while cursor.token.kind == "name" and cursor.peek().text == "(":
        text = cursor.token.text
        saturates = text.endswith("_sat")
        field = names.get(text.removesuffix("_sat"))
        if field is None:
            raise cursor.fail(f"one of {', '.join(names)}")
        cursor.at += 2
        row = rows[field]
        count = state.unsigned(31 if saturates else row.bits, f"a count for {text}")
        cursor.expect(")")
        value = value & ~row.mask | row.insert(min(count, (1 << row.bits) - 1))
        while cursor.token.text in ("&", ",", "|"):
            cursor.at += 1
    return value


def waitcnt(state: State) -> int:
    names = {text: field for field, text in asm_imm.WAITCNT_ORDER}
    if state.cursor.peek().text != "(" or state.cursor.token.kind != "name":
        return number(state)
    return counters(state, "waitcnt", names)


def wait_alu(state: State) -> int:
    return depctr(state, "wait_alu")


def depctr(state: State, kind: str = "waitcnt_depctr") -> int:
    if state.cursor.peek().text != "(" or state.cursor.token.kind != "name":
        return number(state)
    fields = [f.name for f, _, _ in asm_imm.fields(state.arch.name, kind)]
    return counters(state, kind, {f"depctr_{n.lower()}": n for n in fields})


def delay(state: State) -> int:
    cursor = state.cursor
    if cursor.token.kind != "name":
        return number(state)
    rows = {f.name.lower(): (f, names) for f, names, _ in asm_imm.fields(state.arch.name, "delay")}
    value = 0
    while True:
        name = cursor.name("instid0, instskip or instid1")
        if name not in rows:
            cursor.at -= 1
            raise cursor.fail("instid0, instskip or instid1")
        field, names = rows[name]
        cursor.expect("(")
        prefix = asm_imm.SKIP_PREFIX if name == "instskip" else asm_imm.INSTID_PREFIX
        short = {n.removeprefix(prefix): v for n, v in names.items()}
        value |= field.insert(named(state, short, field.bits, f"one of {', '.join(short)}"))
        cursor.expect(")")
        if not cursor.accept("|"):
            return value


def version(state: State) -> int:
    """An expression over the names of versions and flags."""
    cursor = state.cursor
    outer = cursor.symbols
    cursor.symbols = {**outer, **asm_imm.VERSIONS, **asm_imm.VERSION_FLAGS}
    value = number(state)
    cursor.symbols = outer
    return value


READERS: dict[str, Callable[[State], int]] = {
    "hwreg": hwreg, "sendmsg gfx11": sendmsg, "sendmsg gfx12": sendmsg, "sendmsg_rtn": sendmsg, "waitcnt": waitcnt,
    "waitcnt_depctr": depctr, "wait_alu": wait_alu, "delay": delay, "version": version,
}  # fmt: skip


# ---------------------------------------------------------------- swizzle


def swizzle(state: State) -> int:
    """offset:swizzle(...) of ds_swizzle_b32, or a number."""
    cursor = state.cursor
    if not is_call(state, "swizzle"):
        return state.unsigned(16, "a swizzle pattern")
    cursor.at += 2
    column = cursor.token.column
    mode = cursor.name("QUAD_PERM, BITMASK_PERM, BROADCAST, SWAP or REVERSE")
    cursor.expect(",")
    if mode == "BITMASK_PERM":
        value = bit_mask(state)
    else:
        numbers = [cursor.value("a lane number").integer]
        while cursor.accept(","):
            numbers.append(cursor.value("a lane number").integer)
        value = swizzle_pattern(mode, numbers, column)
    cursor.expect(")")
    return value


def swizzle_pattern(mode: str, numbers: list[int], column: int) -> int:
    first = numbers[0]
    power = first > 0 and first & (first - 1) == 0
    if mode == "QUAD_PERM" and len(numbers) == 4 and all(0 <= n <= 3 for n in numbers):
        return 0x8000 | sum(n << 2 * i for i, n in enumerate(numbers))
    if mode == "SWAP" and len(numbers) == 1 and power and first <= 16:
        return 0x1F | first << 10
    if mode == "REVERSE" and len(numbers) == 1 and power and 2 <= first <= 32:
        return 0x1F | (first - 1) << 10
    if mode == "BROADCAST" and len(numbers) == 2 and power and 2 <= first <= 32 and 0 <= numbers[1] < first:
        return (32 - first) | numbers[1] << 5
    if mode == "ROTATE" and len(numbers) == 2 and 0 <= first <= 1 and 0 <= numbers[1] <= 31:
        return 0xC000 | first << 10 | numbers[1] << 5
    if mode == "FFT" and len(numbers) == 1 and 0 <= first <= 31:
        return 0xE000 | first
    raise AsmError(f"{mode} does not take {numbers}", column)


def bit_mask(state: State) -> int:
    token = state.cursor.token
    text = token.text.strip('"')
    if token.kind != "string" or len(text) != 5 or set(text) - set("01pi"):
        raise state.cursor.fail('a string of five of 0, 1, p, i, such as "00p11"')
    state.cursor.at += 1
    value = 0
    for i, c in enumerate(reversed(text)):
        and_, or_, xor = {"0": (0, 0, 0), "1": (0, 1, 0), "p": (1, 0, 0), "i": (1, 0, 1)}[c]
        value |= and_ << i | or_ << i + 5 | xor << i + 10
    return value
