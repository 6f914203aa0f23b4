"""The packets of the three trace formats, as tables.

A row is NAME, the fixed low bits, the length in bits, how it moves the clock (`packets.TIME_RULES`) and
fields as NAME=LOWEST_BIT+WIDTH.

Source:  formats measured on captures of gfx1100, gfx1151, gfx1200 and gfx950 (FORMAT.md of the trace
         goldens, sections 2 to 4), which the golden tests hold them to. Names of the kinds of MISC:
         enumeration of thread trace tokens in the register headers of gfx9.
"""

from __future__ import annotations

from collections.abc import Mapping

from stuntgpu.sqtt.packets import Layout

_GFX11 = """
VALUINST         011      12 delta   delta=3+3 flag=6+1 wave=7+5
INST             010      20 delta   delta=4+3 flag1=3+1 flag2=7+1 wave=8+5 op=13+7
VMEMEXEC         1111      8 delta   delta=4+2 src=6+2
ALUEXEC          1110      8 delta   delta=4+2 src=6+2
IMMEDIATE        1101     12 delta   delta=4+3 wave=7+5
REG              1001     64 delta   delta=4+3 slot=7+3 hi_byte=8+8 subop=16+16 val32=32+32
TS_DELTA_SHORT   1000      8 delta+4 delta=4+4
NOP              0000      4 none
IMMEDIATE_MASK   00100    24 delta   delta=5+3 mask=8+16
WAVEALLOC        00101    20 delta   delta=5+3
TS_DELTA_S5_W3   00110    52 delta   delta=5+3
WAVESTART        01100    32 delta   delta=5+2 sa=7+1 simd=8+2 wgp=10+3 wave=13+5 id7=18+14
WAVERDY          10100    24 delta   delta=5+3 mask=8+16
WAVEEND          10101    20 delta   delta=5+3 sa=8+1 simd=9+2 wgp=11+3 wave=15+5
PERF             10110    28 delta   delta=5+3 arg=8+20
TS_DELTA_S5_W2   11100    48 delta   delta=5+2
TS_DELTA_OR_MARK 0000001  48 mark    delta=12+36 pl=8+1 rt=9+1
LAYOUT_HEADER    0010001  64 none    layout=7+6 simd=13+2 group=15+3 sel_a=28+4 sel_b=33+4 flag4=59+1
TS_DELTA_S8_W3   0100001  64 delta   delta=8+3
UTILCTR          0110001  48 delta   delta=7+2 ctr=9+39
TS_WAVE_STATE    1010001  24 delta   delta=7+9 coarse=16+8
SNAPSHOT         1110001  64 delta   delta=7+3 snap=10+54
EVENT            01100001 24 delta   delta=8+3 event=11+13
EVENT_BIG        11100001 32 delta   delta=8+3 event=11+21
"""

_GFX12_DIFFERENCES = """
INST             010      20 delta   delta=3+3 w64h=6+1 wave=7+5 op=12+8
WAVESTART        01100    32 delta   delta=5+2 sa=7+1 simd=8+2 wgp=10+4 wave=15+5 id7=20+12
WAVEEND          10101    20 delta   delta=5+3 sa=8+1 simd=9+2 wgp=11+4 wave=15+5
WAVEALLOC        00101    24 delta   delta=5+3
TS_DELTA_S5_W2   11100    40 delta   delta=5+2
TS_DELTA_S5_W3   00110    56 delta   delta=7+3
TS_DELTA_S8_W3   0100001  72 delta   delta=8+3
PERF             10110    32 delta   delta=7+3 arg=10+22
TS_DELTA_OR_MARK 0000001  64 mark    delta=12+52 rt=7+1 pl=8+1 tl=9+1
"""

#: The first packet of a gfx9 buffer is put there by who saves it: the hardware writes none.
_GFX9 = """
LAYOUT_HEADER    0010001  64 none    layout=7+6 simd=13+2 group=15+3 sel_a=28+4 sel_b=33+4 flag4=59+1
MISC             0000     16 delta*4 delta=4+8 sh=12+1 misc_type=13+3
TIMESTAMP        0001     64 clock   reserved=4+12 timestamp=16+48
REG              0010     64 none    pipe=5+2 me=7+2 reserved=9+7 regaddr=16+16 regdata=32+32
WAVESTART        0011     32 none    sh=5+1 cu=6+4 wave=10+4 simd=14+2 pipe=16+2 me=18+2 reserved=20+2 count=22+7
WAVEALLOC        0100     16 none    sh=5+1 cu=6+4 wave=10+4 simd=14+2
REG_CS           0101     48 none    pipe=5+2 me=7+2 regaddr=9+7 regdata=16+32
WAVEEND          0110     16 none    sh=5+1 cu=6+4 wave=10+4 simd=14+2
EVENT            0111     16 none    reserved=4+12
EVENT_CS         1000     16 none    reserved=4+12
EVENT_GFX1       1001     16 none    reserved=4+12
INST             1010     16 none    wave=5+4 simd=9+2 op=11+5
INST_PC          1011     64 none    wave=5+4 simd=9+2 reserved=11+4 err=15+1 pc=16+48
USERDATA         1100     48 none    sh=5+1 cu=6+4 wave=10+4 simd=14+2 data=16+32
ISSUE            1101     32 none    simd=5+2 gap=7+1 {insts}
PERF             1110     64 none    sh=5+1 cu=6+4 cntr_bank=10+2 cntr0=12+13 cntr1=25+13 cntr2=38+13 cntr3=51+13
REG_CS_PRIV      1111     48 none    pipe=5+2 me=7+2 regaddr=9+7 regdata=16+32
""".format(insts=" ".join(f"inst{i}={8 + 2 * i}+2" for i in range(10)))


def _changed(table: str, differences: str) -> str:
    """`table` with the rows of `differences` in place of those of the same name."""
    rows = {line.split()[0]: line for line in table.splitlines() if line}
    return "\n".join((rows | {line.split()[0]: line for line in differences.splitlines() if line}).values())


GFX11 = Layout("gfx11", 4, _GFX11)
GFX12 = Layout("gfx12", 4, _changed(_GFX11, _GFX12_DIFFERENCES))
GFX9 = Layout("gfx9", 16, _GFX9, clock_step=4, added_bits=64)

#: The `layout` field of the first packet -> what follows.
BY_NUMBER: Mapping[int, Layout] = {0: GFX9, 3: GFX11, 4: GFX12}

#: First packet as captures have it. gfx9: `se` of the buffer is added at bit HEADER_SE_LO.
HEADERS: Mapping[str, int] = {
    "gfx11": GFX11.LAYOUT_HEADER(layout=3, sel_a=6).word,
    "gfx12": GFX12.LAYOUT_HEADER(layout=4, sel_a=6, sel_b=4, flag4=1).word,
    "gfx9": 0x11 | 4 << 13 | 0xF << 16,
}
HEADER_SE_LO = 24

#: MISC.misc_type of gfx9 that says packets were lost.
MISC_PACKET_LOST = 2
