"""The XML reader and the table generator: malformed input says where it is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from stuntgpu.isa.errors import SpecError
from stuntgpu.isa.gen import emit, xml
from stuntgpu.isa.gen.__main__ import main

GOOD = """<Spec><ISA><Architecture><ArchitectureName>X</ArchitectureName></Architecture>
<Encodings><Encoding Order="0"><EncodingName>ENC_SOPP</EncodingName><BitCount>32</BitCount>
<EncodingIdentifierMask Radix="2">11111111111111110000000000000000</EncodingIdentifierMask>
<EncodingIdentifiers><EncodingIdentifier Radix="2">10111111100000000000000000000000</EncodingIdentifier></EncodingIdentifiers>
<EncodingConditions><EncodingCondition><ConditionName>default</ConditionName></EncodingCondition></EncodingConditions>
<MicrocodeFormat><BitMap>
<Field><FieldName>ENCODING</FieldName><BitLayout><Range Order="0"><BitCount>9</BitCount><BitOffset>23</BitOffset></Range></BitLayout></Field>
<Field><FieldName>OP</FieldName><BitLayout><Range Order="0"><BitCount>7</BitCount><BitOffset>16</BitOffset></Range></BitLayout></Field>
<Field><FieldName>SIMM16</FieldName><BitLayout><Range Order="0"><BitCount>16</BitCount><BitOffset>0</BitOffset></Range></BitLayout></Field>
</BitMap></MicrocodeFormat></Encoding></Encodings>
<Instructions><Instruction><InstructionFlags><IsBranch>FALSE</IsBranch></InstructionFlags>
<InstructionName>S_NOP</InstructionName>
<InstructionEncodings><InstructionEncoding>
<EncodingName>ENC_SOPP</EncodingName><EncodingCondition>default</EncodingCondition><Opcode Radix="10">0</Opcode>
<Operands><Operand Input="true" Output="false" IsImplicit="false" Order="1"><FieldName>SIMM16</FieldName><DataFormatName>FMT_NUM_B16</DataFormatName><OperandType>OPR_SRC</OperandType><OperandSize>16</OperandSize></Operand></Operands>
</InstructionEncoding></InstructionEncodings></Instruction></Instructions>
<DataFormats><DataFormat><DataFormatName>FMT_NUM_B16</DataFormatName></DataFormat></DataFormats>
<OperandTypes><OperandType><OperandTypeName>OPR_SRC</OperandTypeName></OperandType></OperandTypes>
</ISA></Spec>"""


def tables(text: str) -> str:
    return emit.tables(xml.read_spec(xml.parse(text.encode(), "x.xml")), "gfx0", "# header\n")


def test_small_document_makes_tables() -> None:
    made = tables(GOOD)
    assert "ENC_SOPP|SOPP||32|0xff800000|0xbf800000|SIMM16:0+16 OP:16+7" in made
    assert "SOPP|0|S_NOP|ENC_SOPP|||SIMM16=SIMM16:r:src:b16:16" in made


@pytest.mark.parametrize(("old", "new", "message"), [
    ("</Encodings>", "", r"x.xml:\d+: mismatched tag"),
    ("<BitCount>32</BitCount>", "", "x.xml:2: <Encoding>: no <BitCount>"),
    ("<BitCount>32</BitCount>", "<BitCount>many</BitCount>", "x.xml:2: <BitCount>: 'many' is not a number"),
    ("<BitOffset>23</BitOffset>", "<BitOffset>24</BitOffset>", "x.xml:7: <Range>: bits 24..32 do not fit"),
    ("<BitOffset>16</BitOffset>", "<BitOffset>15</BitOffset>", "x.xml:9: <Field>: field SIMM16 overlaps"),
    ("<FieldName>SIMM16</FieldName><Data", "<FieldName>IMM</FieldName><Data", "x.xml:15: <Operand>: .* no field IMM"),
    (">FMT_NUM_B16</DataFormatName><Op", ">FMT_B</DataFormatName><Op", "x.xml:15: <Operand>: unknown data format"),
    (">OPR_SRC</OperandType>", ">OPR_X</OperandType>", "x.xml:15: <Operand>: unknown operand type"),
    ("<EncodingName>ENC_SOPP</EncodingName><EncodingC", "<EncodingName>ENC_X</EncodingName><EncodingC",
     "x.xml:14: <EncodingName>: unknown encoding ENC_X"),
    ("<InstructionName>S_NOP</InstructionName>", "<InstructionName></InstructionName>",
     "x.xml:12: <InstructionName>: empty"),
    ('Input="true"', 'Input="maybe"', "attribute Input"),
    ("<Opcode Radix=\"10\">0<", "<Opcode Radix=\"10\">200<", "opcode 200 does not fit"),
])  # fmt: skip
def test_malformed_document_says_element_and_line(old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(SpecError, match=message):
        tables(GOOD.replace(old, new, 1))


def test_same_opcode_twice_is_refused() -> None:
    start, end = GOOD.index("<Instruction>"), GOOD.index("</Instruction>") + len("</Instruction>")
    twin = GOOD[start:end].replace("S_NOP", "S_NOP2")
    with pytest.raises(SpecError, match="opcode 0 is both"):
        tables(GOOD[:end] + twin + GOOD[end:])


def test_command_reports_malformed_file_and_exits_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "amdgpu_isa_rdna3.xml").write_text(GOOD.replace("</Encodings>", ""))
    assert main(["--xml", str(tmp_path), "--arch", "gfx1100", "--check"]) == 2
    assert "amdgpu_isa_rdna3.xml:" in capsys.readouterr().err


def test_command_without_files_exits_2(tmp_path: Path) -> None:
    assert main(["--xml", str(tmp_path), "--arch", "gfx1100", "--check"]) == 2
