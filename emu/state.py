"""Architectural state both tiers agree on: register numbers, MODE and STATUS, how a wave starts.

Units:   register numbers are operand numbers (SGPR file) or VGPR numbers; sizes in bytes.
Source:  AMDGPU back-end user guide "Initial Kernel Execution State"; COMPUTE_PGM_RSRC1/2 and SQ_WAVE_*
         layouts of the kernel's gc_11_0_0 register headers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from stuntgpu.emu import hwregs
from stuntgpu.emu.hwregs import Registers
from stuntgpu.emu.launch import Launch
from stuntgpu.emu.memory import AddressSpace
from stuntgpu.emu.place import Shape, shape
from stuntgpu.isa.abi.devices import device
from stuntgpu.isa.abi.targets import LDS_APERTURE, SCRATCH_APERTURE, round_up
from stuntgpu.isa.errors import Unmodelled
from stuntgpu.isa.inst import WHOLE, Inst, Kind, Operand

# ---------------------------------------------------------------- scalar operand numbers

N_SGPRS = 128  # s0..s105, VCC, trap temporaries, NULL, M0, EXEC: everything below 128 is one file
N_VGPRS = 256
VCC_LO, VCC_HI = 106, 107
TTMP0, N_TTMPS = 108, 16
EXEC_LO, EXEC_HI = 126, 127
SHARED_BASE, SHARED_LIMIT, PRIVATE_BASE, PRIVATE_LIMIT = 235, 236, 237, 238
POPS_EXITING_WAVE_ID = 239
VCCZ, EXECZ, SCC = 251, 252, 253

#: 64-bit values of the aperture operands; a 32-bit read sees the low half.
APERTURES: Mapping[int, int] = {
    SHARED_BASE: LDS_APERTURE,
    SHARED_LIMIT: LDS_APERTURE | 0xFFFF_FFFF,
    PRIVATE_BASE: SCRATCH_APERTURE,
    PRIVATE_LIMIT: SCRATCH_APERTURE | 0xFFFF_FFFF,
}


@dataclass(frozen=True, slots=True)
class Wavefront:
    """One row: what differs between archs in a wave's state.

    null, m0        operand numbers; null -1 when the arch has none.
    ids_in_ttmp     workgroup ids arrive in ttmp9 (x) and ttmp7 (y | z << 16), not in SGPRs.
    has_dx10_clamp  MODE has DX10_CLAMP and IEEE (else both behave as set, and unset).
    hwregs          hardware registers and messages with an answer.
    shape           of the device: where waves run.
    messages        S_SENDMSG by number (its SIMM16 under message_mask): what it does (see MESSAGE_EFFECTS); others
                    are not a kernel's to send.
    n_accvgprs      accumulation registers of a lane.
    flat_scratch    operand number of the read-only base of scratch, -1: not in the scalar file.
    reads_ttmps     kernels see the trap temporaries; otherwise they read 0. Nobody but a trap handler writes them.
    info_has_wave   workgroup information in an SGPR says which wave this is; otherwise how many there are only.
    has_vskip       MODE[28] switches vector instructions off.
    has_gpr_index   MODE[27] makes M0 shift the VGPR numbers of vector instructions.
    bank            which of the C core's tables of buffer formats is its own.
    """

    arch: str
    null: int
    m0: int
    ids_in_ttmp: bool
    has_dx10_clamp: bool
    hwregs: Registers
    shape: Shape
    messages: Mapping[int, str]
    message_mask: int
    bank: int
    n_accvgprs: int = 0
    has_gpr_index: bool = False
    has_vskip: bool = False
    flat_scratch: int = -1
    reads_ttmps: bool = False
    info_has_wave: bool = True


#: What messages do. An interrupt goes to the host, where nobody waits for it; a doorbell is written to EXEC.
MESSAGE_EFFECTS = ("interrupt", "dealloc", "doorbell")
#: S_TRAP ids that ask for a debugger: without one the wave goes on.
DEBUG_TRAPS = (3,)
#: What of a doorbell's number EXEC gets.
DOORBELL_BITS = 0x3FF
_RDNA_MESSAGES = {1: "interrupt", 3: "dealloc"}
_CDNA_MESSAGES = {1: "interrupt", 10: "doorbell"}

WAVEFRONTS: Mapping[str, Wavefront] = {
    "gfx1100": Wavefront("gfx1100", null=124, m0=125, ids_in_ttmp=False, has_dx10_clamp=True, hwregs=hwregs.GFX11,
                         shape=shape("gfx1100"), messages=_RDNA_MESSAGES, message_mask=0xFF, bank=0),
    "gfx1151": Wavefront("gfx1151", null=124, m0=125, ids_in_ttmp=False, has_dx10_clamp=True, hwregs=hwregs.GFX11,
                         shape=shape("gfx1151"), messages=_RDNA_MESSAGES, message_mask=0xFF, bank=0),
    "gfx1201": Wavefront("gfx1201", null=124, m0=125, ids_in_ttmp=True, has_dx10_clamp=False, hwregs=hwregs.GFX12,
                         shape=shape("gfx1201"), messages=_RDNA_MESSAGES, message_mask=0xFF, bank=1, reads_ttmps=True, info_has_wave=False),
    "gfx942": Wavefront("gfx942", null=-1, m0=124, ids_in_ttmp=False, has_dx10_clamp=True, hwregs=hwregs.GFX942,
                        shape=shape("gfx942"), messages=_CDNA_MESSAGES, message_mask=0xF, bank=2, n_accvgprs=256, has_gpr_index=True,
                        has_vskip=True, flat_scratch=102),
    "gfx950": Wavefront("gfx950", null=-1, m0=124, ids_in_ttmp=False, has_dx10_clamp=True, hwregs=hwregs.GFX950,
                        shape=shape("gfx950"), messages=_CDNA_MESSAGES, message_mask=0xF, bank=2, n_accvgprs=256, has_gpr_index=True,
                        has_vskip=True, flat_scratch=102),
}


def wavefront(arch: str) -> Wavefront:
    """The row of an arch. Raises Unmodelled."""
    if arch not in WAVEFRONTS:
        raise Unmodelled(arch, "wave state", "emu/state.py")
    return WAVEFRONTS[arch]


def is_ttmp(reg: int) -> bool:
    """A trap temporary, by operand number."""
    return TTMP0 <= reg < TTMP0 + N_TTMPS


def message_effect(row: Wavefront, message: int) -> str:
    """What S_SENDMSG of SIMM16 does: one of MESSAGE_EFFECTS. Raises Unmodelled for the others."""
    number = message & row.message_mask
    if number not in row.messages:
        raise Unmodelled(row.arch, f"s_sendmsg 0x{message:x}", "emu/state.py")
    return row.messages[number]


def reads_zero(row: Wavefront, reg: int) -> bool:
    """A scalar register that kernels see as 0 whatever it holds."""
    return reg == row.null or (is_ttmp(reg) and not row.reads_ttmps)


def keeps_scc(inst: Inst, ops: Iterable[Operand]) -> bool:
    """SALU instructions that try to write a trap temporary leave SCC as it is."""
    is_salu = inst.base in ("SOP1", "SOP2", "SOPK")
    return is_salu and any(o.is_written and o.kind is Kind.SGPR and is_ttmp(o.reg) for o in ops)


def drops_writes(row: Wavefront, reg: int) -> bool:
    """A scalar register that kernels cannot change."""
    return reg == row.null or is_ttmp(reg) or 0 <= row.flat_scratch <= reg <= row.flat_scratch + 1


def runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Ascending numbers as (first, last) of what is without gaps."""
    out: list[tuple[int, int]] = []
    for n in numbers:
        out[-1:] = [(out[-1][0], n)] if out and out[-1][1] == n - 1 else [*out[-1:], (n, n)]
    return out


def in_one_cu(launch: Launch) -> bool:
    """RDNA: the waves of a workgroup stay in one of a pair of compute units (RSRC1.WGP_MODE is off)."""
    return not launch.rsrc1 >> 29 & 1


def check_scalars(name: str, reg: int) -> int:
    """A register that an address or a descriptor starts at; constants and state in its place are not modelled."""
    if reg >= N_SGPRS:
        raise Unmodelled(name, f"an address or descriptor in scalar operand {reg}", "emu/state.py")
    return reg


def check_mask(arch: str, reg: int, lanes: int) -> None:
    """Raises Unmodelled for a lane mask whose second register is none: EXEC_HI in waves of 64."""
    if reg == EXEC_HI and lanes == 64:
        raise Unmodelled(arch, "a lane mask of 64 bits at exec_hi", "emu/state.py")


def n_vector_registers(arch: str) -> int:
    """Length of a lane's register file: VGPRs, then AccVGPRs."""
    return N_VGPRS + wavefront(arch).n_accvgprs


def register(op: Operand) -> int:
    """Number of a vector register in the wave's file: AccVGPRs follow the VGPRs."""
    return op.reg + N_VGPRS if op.kind is Kind.AGPR else op.reg


def following(reg: int, i: int) -> int:
    """The i-th register of a tuple, which wraps around inside its bank."""
    return reg & ~(N_VGPRS - 1) | (reg + i) % N_VGPRS


def sdwa_part(select: int) -> tuple[int, int]:
    """(lowest bit, width) of an SDWA selection."""
    if select == WHOLE:
        return 0, 32
    return (8 * select, 8) if select < 4 else (16 * (select - 4), 16)


#: DST_UNUSED of SDWA.
PAD_ZERO, PAD_SIGN, PRESERVE = range(3)

#: Bit of M0 that says whether an operand's register number is indexed, in GPR index mode.
INDEX_BITS: Mapping[str, int] = {"S0": 12, "S1": 13, "S2": 14, "D0": 15}


# ---------------------------------------------------------------- MODE

MODE_ROUND_F32, MODE_ROUND_F16_F64 = 0, 2  # bit offsets of two-bit fields
MODE_DENORM_F32, MODE_DENORM_F16_F64 = 4, 6
MODE_DX10_CLAMP, MODE_IEEE, MODE_FP16_OVFL, MODE_GPR_INDEX, MODE_VSKIP = 8, 9, 23, 27, 28  # bit numbers

#: Values of a round field, by name of `ir.Round`.
ROUNDS = ("rne", "rup", "rdn", "rtz")
#: Bits of a denorm field: denormal inputs kept, denormal results kept.
DENORM_IN, DENORM_OUT = 1, 2

#: The wave mode of the instruction goldens: f32 denormals flushed, f16/f64 kept, IEEE and DX10_CLAMP on.
GOLDEN_MODE = 0xC0 | 1 << MODE_DX10_CLAMP | 1 << MODE_IEEE

#: Its number as a hardware register.
MODE_REGISTER = 1


NO_DX10_BITS = 1 << MODE_DX10_CLAMP | 1 << MODE_IEEE


def effective_mode(row: Wavefront, mode: int) -> int:
    """MODE as instructions see it: without DX10_CLAMP and IEEE they behave as set, and unset."""
    return mode if row.has_dx10_clamp else mode & ~(1 << MODE_IEEE) | 1 << MODE_DX10_CLAMP


MODE_EXCEPTIONS = 12


def start_mode(row: Wavefront, launch: Launch) -> int:
    """MODE at wave start as instructions see it, from COMPUTE_PGM_RSRC1 and, where MODE has them, RSRC2's exceptions."""
    mode = mode_of_rsrc1(launch.rsrc1) | hwregs.exceptions(launch.rsrc2) << MODE_EXCEPTIONS
    return effective_mode(row, mode & row.hwregs.rows[MODE_REGISTER].mask)


def mode_of_rsrc1(rsrc1: int) -> int:
    """The bits of MODE in COMPUTE_PGM_RSRC1; see effective_mode for chips without two of them."""
    return (
        rsrc1 >> 12 & 0xFF
        | (rsrc1 >> 21 & 1) << MODE_DX10_CLAMP
        | (rsrc1 >> 23 & 1) << MODE_IEEE
        | (rsrc1 >> 26 & 1) << MODE_FP16_OVFL
    )


# ---------------------------------------------------------------- RSRC2


@dataclass(frozen=True, slots=True)
class Rsrc2:
    """The fields of COMPUTE_PGM_RSRC2 that shape a wave's registers."""

    user_sgprs: int
    id_x: bool
    id_y: bool
    id_z: bool
    workgroup_info: bool
    workitem_ids: int  # 0: x; 1: x, y; 2: x, y, z

    @classmethod
    def of(cls, rsrc2: int) -> Rsrc2:
        bit = [bool(rsrc2 >> i & 1) for i in range(11)]
        return cls(rsrc2 >> 1 & 31, bit[7], bit[8], bit[9], bit[10], rsrc2 >> 11 & 3)


# ---------------------------------------------------------------- geometry

Triple = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Workgroup:
    """One workgroup of a dispatch.

    index   number in dispatch order (x fastest), from 0.
    id      x, y, z.
    size    work-items in x, y, z: smaller than the launch's at the far edge of a grid.
    """

    index: int
    id: Triple
    size: Triple

    @property
    def items(self) -> int:
        return self.size[0] * self.size[1] * self.size[2]


def workgroup_counts(launch: Launch) -> Triple:
    """Workgroups in x, y, z, partial ones included."""
    x, y, z = (-(-g // w) for g, w in zip(launch.grid, launch.workgroup, strict=True))
    return x, y, z


def workgroup(launch: Launch, index: int) -> Workgroup:
    """Workgroup `index` of the dispatch."""
    nx, ny, _ = workgroup_counts(launch)
    at = (index % nx, index // nx % ny, index // (nx * ny))
    x, y, z = (min(w, g - i * w) for i, g, w in zip(at, launch.grid, launch.workgroup, strict=True))
    first_x, first_y, first_z = launch.start
    return Workgroup(index, (first_x + at[0], first_y + at[1], first_z + at[2]), (x, y, z))


def workgroups(launch: Launch) -> Iterator[Workgroup]:
    """All workgroups in dispatch order."""
    nx, ny, nz = workgroup_counts(launch)
    return (workgroup(launch, i) for i in range(nx * ny * nz))


def waves_per_workgroup(launch: Launch) -> int:
    """Waves of a whole workgroup; a partial one may have fewer."""
    x, y, z = launch.workgroup
    return -(-x * y * z // launch.wave_lanes)


def allocated_lds(arch: str, launch: Launch) -> int:
    """LDS that a workgroup of a dispatch can reach: it is given out in blocks."""
    return round_up(launch.lds_bytes, device(arch).lds_granule)


def scratch_of_wave(launch: Launch, group: Workgroup, wave: int) -> int:
    """GPU VA of a wave's scratch: partial workgroups take the room of whole ones."""
    number = group.index * waves_per_workgroup(launch) + wave
    return launch.scratch_va + number * launch.scratch_wave_bytes


# ---------------------------------------------------------------- a wave from outside


def launch_of_wave(code_va: int, lanes: int, lds_bytes: int, scratch_va: int, scratch_wave_bytes: int) -> Launch:
    """What `WaveRunner.run_wave` is a launch of."""
    return Launch(code_va, 0, 0, 0, (), (lanes, 1, 1), (lanes, 1, 1), lanes, lds_bytes, scratch_va, scratch_wave_bytes)


@dataclass(frozen=True, slots=True)
class WaveInit:
    """Registers of a wave before its first instruction; what is not named is 0.

    sgprs   s0..s105 (and trap temporaries) by number.
    vgprs   VGPR number -> one 32-bit value per lane.
    """

    exec_mask: int
    sgprs: Mapping[int, int] = field(default_factory=dict)
    vgprs: Mapping[int, Sequence[int]] = field(default_factory=dict)
    vcc: int = 0
    scc: int = 0
    m0: int = 0
    mode: int = GOLDEN_MODE


@dataclass(frozen=True, slots=True)
class WaveFinal:
    """Registers and LDS of a wave after its S_ENDPGM.

    sgprs   s0..s105 in order.
    vgprs   [VGPR number][lane]; agprs the same of AccVGPRs.
    """

    exec_mask: int
    sgprs: tuple[int, ...]
    vgprs: tuple[tuple[int, ...], ...]
    vcc: int
    scc: int
    m0: int
    mode: int
    lds: bytes
    agprs: tuple[tuple[int, ...], ...] = ()


class WaveRunner(Protocol):
    """Runs one wave from explicit state; both executors do. The wave is a workgroup of its own."""

    def run_wave(
        self,
        space: AddressSpace,
        code_va: int,
        init: WaveInit,
        lanes: int,
        lds_bytes: int = 0,
        scratch_va: int = 0,
        scratch_wave_bytes: int = 0,
        budget: int = 0,
    ) -> WaveFinal:
        """Run to S_ENDPGM. lanes 32 or 64; scratch as in Launch, backing mapped by the caller; LDS starts
        zeroed. More than `budget` instructions are a fault (0: any number). Raises KernelFault."""
        ...


# ---------------------------------------------------------------- wave start of a dispatch


def initial_wave(row: Wavefront, launch: Launch, group: Workgroup, wave: int) -> WaveInit:
    """State of wave `wave` of a workgroup at the launch's entry."""
    base = wave * launch.wave_lanes
    active = min(launch.wave_lanes, group.items - base)
    return WaveInit(
        exec_mask=(1 << active) - 1,
        sgprs=_initial_sgprs(row, launch, group, wave),
        vgprs={0: _packed_ids(Rsrc2.of(launch.rsrc2), group, base, active, launch.wave_lanes)},
        mode=start_mode(row, launch),
    )


def _initial_sgprs(row: Wavefront, launch: Launch, group: Workgroup, wave: int) -> dict[int, int]:
    rsrc2 = Rsrc2.of(launch.rsrc2)
    sgprs = dict(enumerate(launch.user_sgprs[: rsrc2.user_sgprs]))
    if row.flat_scratch >= 0 and launch.scratch_wave_bytes:
        base = scratch_of_wave(launch, group, wave)
        sgprs |= {row.flat_scratch: base & 0xFFFF_FFFF, row.flat_scratch + 1: base >> 32}
    enabled = [] if row.ids_in_ttmp else [
        v for v, on in zip(group.id, (rsrc2.id_x, rsrc2.id_y, rsrc2.id_z), strict=True) if on]
    if rsrc2.workgroup_info:
        n_waves = -(-group.items // launch.wave_lanes)
        enabled.append(n_waves | ((wave == 0) << 31 | wave << 20 if row.info_has_wave else 0))
    ids = _ttmp_ids(launch, rsrc2, group, wave) if row.ids_in_ttmp else {}
    return sgprs | dict(enumerate(enabled, rsrc2.user_sgprs)) | ids


def _ttmp_ids(launch: Launch, rsrc2: Rsrc2, group: Workgroup, wave: int) -> dict[int, int]:
    """TTMP9: x; TTMP8: dispatch [24:0], wave in workgroup [29:25], whether TTMP7 is loaded [30]; TTMP7: y [15:0], z."""
    x, y, z = group.id
    has_yz = rsrc2.id_y or rsrc2.id_z
    which = launch.dispatch_id & 0x1FF_FFFF | wave << 25 | has_yz << 30
    return {TTMP0 + 9: x, TTMP0 + 8: which, TTMP0 + 7: (y & 0xFFFF | (z & 0xFFFF) << 16) if has_yz else 0}


def _packed_ids(rsrc2: Rsrc2, group: Workgroup, base: int, active: int, lanes: int) -> list[int]:
    """v0: work-item ids x | y << 10 | z << 20, as many as RSRC2 enables; inactive lanes 0."""
    sx, sy, _ = group.size
    out = [0] * lanes
    for lane in range(active):
        item = base + lane
        x, y, z = item % sx, item // sx % sy, item // (sx * sy)
        out[lane] = x | (y << 10 if rsrc2.workitem_ids >= 1 else 0) | (z << 20 if rsrc2.workitem_ids >= 2 else 0)
    return out
