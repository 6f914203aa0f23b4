"""Decoding: refusals, sizes, and that encode gives back what decode took."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stuntgpu.isa.arch import ARCHES, arch
from stuntgpu.isa.decode import DecodeError, build, decode, decode_all, encode
from stuntgpu.isa.errors import SpecError
from stuntgpu.isa.inst import Inst
from tests.isa.goldens import pairs, refused, report

NAMES = sorted(ARCHES)


@pytest.mark.parametrize("name", NAMES)
def test_golden_encodings_decode_and_encode_back(name: str) -> None:
    wrong = []
    for code, text in pairs(name):
        inst = decode(name, code)
        if encode(inst) != code or inst.size != len(code):
            wrong.append(f"{code.hex()} {text}: {encode(inst).hex()}")
    assert not wrong, report(wrong)


@pytest.mark.parametrize("name", NAMES)
def test_golden_refused_encodings_do_not_decode(name: str) -> None:
    rows = {(r.encoding, r.opcode) for r in arch(name).tables.rows}
    wrong = [n for enc, op, n in refused(name) if (enc, op) in rows]
    assert not wrong, report(wrong)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=2000, deadline=None)
@given(code=st.binary(min_size=16, max_size=16))
def test_random_bytes_are_refused_or_encode_back(name: str, code: bytes) -> None:
    try:
        inst = decode(name, code)
    except DecodeError:
        return
    assert encode(inst) == code[: inst.size]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=1000, deadline=None)
@given(data=st.data())
def test_real_opcodes_with_random_fields_are_refused_or_encode_back(name: str, data: st.DataObject) -> None:
    tables = arch(name).tables
    row = data.draw(st.sampled_from(tables.rows))
    encoding = tables.encodings[row.encoding]
    tail = data.draw(st.integers(0, (1 << 128) - 1)) & ~encoding.mask
    op = encoding.field("OP").mask if encoding.has("OP") else 0
    word = tail & ~op | encoding.value
    word |= encoding.field("OP").insert(row.opcode) if op else 0
    code = word.to_bytes(16, "little")
    try:
        inst = decode(name, code)
    except DecodeError:
        return
    assert encode(inst) == code[: inst.size]


@pytest.mark.parametrize("name", NAMES)
def test_code_that_ends_inside_an_instruction_is_refused(name: str) -> None:
    for code, text in pairs(name)[::97]:
        for n in range(0, len(code), 4):
            with pytest.raises(DecodeError, match="code ends"):
                decode(name, code[:n])
        assert decode(name, code + bytes(7)).size == len(code), text


def test_unknown_word_says_offset_and_word() -> None:
    with pytest.raises(DecodeError, match=r"offset 0x4: no instruction has the word 0xffffffff"):
        decode("gfx1100", bytes.fromhex("000080bf" + "ffffffff"), 4)


def test_decode_all_goes_on_after_an_error() -> None:
    code = bytes.fromhex("000080bf" + "ffffffff" + "0000b0bf")
    (a, nop), (b, error), (c, end) = decode_all("gfx1100", code)
    assert (a, b, c) == (0, 4, 8)
    assert isinstance(nop, Inst)
    assert nop.name == "S_NOP"
    assert isinstance(error, DecodeError)
    assert isinstance(end, Inst)
    assert end.name == "S_ENDPGM"


def test_decode_overlap_is_refused() -> None:
    target = replace(arch("gfx1100"))
    tables = target.tables
    sop1 = next(r for r in tables.rows if r.name == "S_MOV_B32")
    tables.rows = (*tables.rows, replace(sop1, name="S_MOV_AGAIN_B32"))
    with pytest.raises(SpecError, match="S_MOV_AGAIN_B32"):
        build(target)


def test_decode_overlap_of_encodings_is_refused() -> None:
    target = replace(arch("gfx1100"))
    tables = target.tables
    sop2 = tables.encodings["ENC_SOP2"]
    tables.encodings["ENC_SOPP"] = replace(tables.encodings["ENC_SOPP"], mask=sop2.mask, value=sop2.value)
    with pytest.raises(SpecError, match=r"SOP2|SOPP"):
        build(target)


def test_dual_halves_share_fields_and_literal() -> None:
    inst = decode("gfx1100", bytes.fromhex("1be684c8c1001ee5e30aca08"))
    assert inst.x is not None
    assert inst.y is not None
    assert (inst.x.name, inst.y.name) == ("V_DUAL_FMAMK_F32", "V_DUAL_FMAMK_F32")
    assert inst.x.literal == inst.y.literal == 0x8CA0AE3


def test_reserved_bits_are_refused() -> None:
    load = 0xF4000000 | 1 << 53  # s_load_b32 with a bit between OFFSET and SOFFSET
    with pytest.raises(DecodeError, match="reserved"):
        decode("gfx1100", load.to_bytes(8, "little"))


def test_misaligned_register_pair_is_refused() -> None:
    with pytest.raises(DecodeError, match="multiple of 2"):
        decode("gfx1100", bytes.fromhex("010181be"))  # s_mov_b64 s[1:2], s[1:2]


def test_image_with_non_sequential_addresses_is_refused_not_cut_short() -> None:
    with pytest.raises(DecodeError, match=r"IMAGE_SAMPLE.*NSA"):
        decode("gfx1100", bytes.fromhex("910f6cf08400095444000000"))


@pytest.mark.parametrize(("name", "code"), [
    ("gfx1201", "450010d6e9fe250601000000"),  # v_bfe_u32_e64_dpp with 255 as SRC1: the DPP word is no literal
    ("gfx1201", "ff4f80be00000000"),  # s_barrier_signal_isfirst
    ("gfx942", "000050e0000000ff"),  # scalar offset of a buffer load
])  # fmt: skip
def test_no_literal_where_there_is_no_room_for_one(name: str, code: str) -> None:
    with pytest.raises(DecodeError):
        decode(name, bytes.fromhex(code))
