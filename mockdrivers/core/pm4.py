"""The compute command processor: executes PM4 packets against memory, registers and an executor.

Caches are coherent here, so acquires and flushes have nothing to do; a dispatch ends before the next
packet starts, so waits for earlier work are met at once.

Units:   dwords on the ring; bytes elsewhere.
Errors:  PacketError; KernelFault from a dispatch; Unmodelled.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from stuntgpu.emu.launch import Launch, QueuePlace
from stuntgpu.isa.packets import pm4
from stuntgpu.isa.packets.base import Packet
from stuntgpu.isa.packets.base import Ring as PacketRing
from stuntgpu.isa.packets.pm4 import (
    CopyDst,
    CopySrc,
    DataSel,
    IntSel,
    MemSpace,
    WaitOperation,
    WriteDst,
)
from stuntgpu.isa.regs import gfx11
from stuntgpu.mockdrivers.core import registers
from stuntgpu.mockdrivers.core.names import KernelNames
from stuntgpu.mockdrivers.core.queue import Handlers, Processor, Step, handles
from stuntgpu.mockdrivers.core.registers import DispatchError, RegisterFile
from stuntgpu.mockdrivers.core.scratch import ScratchBacking
from stuntgpu.mockdrivers.core.seam import QueueHost, Ring

log = logging.getLogger("stuntgpu.pm4")

HANDLERS: Handlers = {}


class CommandProcessor(Processor):
    """One compute queue. Keeps its registers from packet to packet."""

    handlers = HANDLERS

    def __init__(self, ring: Ring, host: QueueHost) -> None:
        super().__init__(ring, host)
        self.regs = RegisterFile(ring.arch)
        self.backing = ScratchBacking(host.space)
        self.names = KernelNames(host.space)
        self.atomic_return = 0

    def peek(self, ring: PacketRing, position: int) -> Packet:
        return pm4.peek(ring, position)

    def dispatch(self, dims: tuple[int, int, int], initiator: int) -> None:
        """Run the kernel the registers describe. Raises PacketError, KernelFault, Unmodelled."""
        try:
            launch = registers.launch(self.regs, dims, initiator)
        except DispatchError as error:
            self.refuse(str(error))
        if launch is None:
            return
        launch = self.backing.provide(launch, registers.scratch(self.regs))
        self._run(replace(launch, name=self.names.find(launch.entry), queue=_place(self.ring.queue_id)))

    def _run(self, launch: Launch) -> None:
        log.debug("%s: dispatch %s", self._name("ring"), launch)
        stats = self.host.executor.run(self.space, launch, self.host.options)
        self.host.options.clock = max(self.host.options.clock, stats.clock)


def _place(queue_id: int) -> QueuePlace:
    """Where the hardware keeps a queue, as its waves see it: the pipes of the first compute engine have eight each."""
    return QueuePlace(pipe=queue_id // 8 % 4, queue=queue_id % 8, doorbell=queue_id)


# ---------------------------------------------------------------- nothing to do


@handles(HANDLERS, pm4.Filler, pm4.Nop, pm4.HeaderNop, pm4.ContextControl, pm4.PfpSyncMe, pm4.EventWrite,
         pm4.AcquireMem)
def no_effect(cp: CommandProcessor, p: Packet) -> Step:
    """Padding, and ordering that strict execution gives anyway."""
    return Step.DONE


@handles(HANDLERS, pm4.ClearState)
def clear_state(cp: CommandProcessor, p: pm4.ClearState) -> Step:
    cp.regs.clear()
    return Step.DONE


# ---------------------------------------------------------------- control flow


@handles(HANDLERS, pm4.IndirectBuffer)
def indirect_buffer(cp: CommandProcessor, p: pm4.IndirectBuffer) -> Step:
    if p.addr % 4:
        cp.refuse(f"indirect buffer at 0x{p.addr:x} is not on a dword")
    cp.enter(p.addr, p.size_dw_field, chain=p.chain)
    return Step.DONE


@handles(HANDLERS, pm4.CondExec)
def cond_exec(cp: CommandProcessor, p: pm4.CondExec) -> Step:
    if cp.load(p.addr, 4) == 0:
        cp.skip(p.exec_count)
    return Step.DONE


@handles(HANDLERS, pm4.PredExec)
def pred_exec(cp: CommandProcessor, p: pm4.PredExec) -> Step:
    if not p.device_mask & 1:  # all dies of a device execute as die 0
        cp.skip(p.exec_count)
    return Step.DONE


@handles(HANDLERS, pm4.WaitRegMem)
def wait_reg_mem(cp: CommandProcessor, p: pm4.WaitRegMem) -> Step:
    if p.operation is WaitOperation.WRITE_THEN_WAIT:
        cp.regs.write(p.reg, p.ref)
        seen = cp.regs.read(p.reg2)
    elif p.mem_space is MemSpace.REGISTER:
        seen = cp.regs.read(p.reg)
    else:
        seen = cp.load(p.addr & ~3, 4)
    return Step.DONE if p.function(seen & p.mask, p.ref & p.mask) else Step.RETRY


@handles(HANDLERS, pm4.WaitRegMem64)
def wait_reg_mem64(cp: CommandProcessor, p: pm4.WaitRegMem64) -> Step:
    if p.operation is WaitOperation.WRITE_THEN_WAIT or p.mem_space is MemSpace.REGISTER:
        cp.refuse("64-bit waits on registers do not exist")
    seen = cp.load(p.addr & ~7, 8)
    return Step.DONE if p.function(seen & p.mask, p.ref & p.mask) else Step.RETRY


# ---------------------------------------------------------------- registers and dispatch


def _set(cp: CommandProcessor, base: int, end: int, p: pm4.SetShReg | pm4.SetUconfigReg) -> Step:
    first = base + p.offset
    if first + len(p.tail) > end:
        cp.refuse(f"registers 0x{first:x}..0x{first + len(p.tail) - 1:x} reach past the block's end 0x{end:x}")
    for i, value in enumerate(p.tail):
        cp.regs.write(first + i, value)
    return Step.DONE


@handles(HANDLERS, pm4.SetShReg, pm4.SetShRegIndex)
def set_sh_reg(cp: CommandProcessor, p: pm4.SetShReg) -> Step:
    return _set(cp, gfx11.SH_BASE, gfx11.SH_END, p)


@handles(HANDLERS, pm4.SetUconfigReg, pm4.SetUconfigRegIndex)
def set_uconfig_reg(cp: CommandProcessor, p: pm4.SetUconfigReg) -> Step:
    return _set(cp, gfx11.UCONFIG_BASE, gfx11.UCONFIG_END, p)


@handles(HANDLERS, pm4.DispatchDirect)
def dispatch_direct(cp: CommandProcessor, p: pm4.DispatchDirect) -> Step:
    cp.dispatch((p.dim_x, p.dim_y, p.dim_z), p.initiator)
    return Step.DONE


@handles(HANDLERS, pm4.DispatchIndirect)
def dispatch_indirect(cp: CommandProcessor, p: pm4.DispatchIndirect) -> Step:
    x, y, z = (cp.load(p.addr + 4 * i, 4) for i in range(3))
    cp.dispatch((x, y, z), p.initiator)
    return Step.DONE


# ---------------------------------------------------------------- fences


_WRITES = {DataSel.LOW_32: 4, DataSel.ALL_64: 8, DataSel.GPU_CLOCK: 8}
_COMPARED = {IntSel.IF_EQUAL_32: 4, IntSel.IF_EQUAL_64: 8}
_INTERRUPTS = (IntSel.INTERRUPT_ONLY, IntSel.AFTER_WRITE, IntSel.UNCONDITIONAL)


@handles(HANDLERS, pm4.ReleaseMem)
def release_mem(cp: CommandProcessor, p: pm4.ReleaseMem) -> Step:
    if p.data_sel in (DataSel.PERF_COUNTER, DataSel.GDS):
        cp.unmodelled(f"RELEASE_MEM data select {p.data_sel.name}")
    size = _WRITES.get(p.data_sel, 0)
    compared = _COMPARED.get(p.int_sel)
    before = cp.load(p.addr, compared) if compared else 0
    if size:
        _check_aligned(cp, p.addr, size)
        cp.store(p.addr, cp.host.timestamp() if p.data_sel is DataSel.GPU_CLOCK else p.data, size)
    if p.int_sel in _INTERRUPTS or (compared and before == p.data & (1 << 8 * compared) - 1):
        cp.host.signal_event(p.int_ctxid, p.data)
    return Step.DONE


def _check_aligned(cp: CommandProcessor, va: int, size: int) -> None:
    if va % size:
        cp.refuse(f"misaligned write of {size} bytes at 0x{va:x}", address=va, access="write")


# ---------------------------------------------------------------- data


@handles(HANDLERS, pm4.WriteData)
def write_data(cp: CommandProcessor, p: pm4.WriteData) -> Step:
    if p.dst_sel is WriteDst.GDS:
        cp.unmodelled("WRITE_DATA to GDS")
    for i, value in enumerate(p.tail):
        at = 0 if p.one_addr else i
        if p.dst_sel is WriteDst.REGISTER:
            cp.regs.write((p.addr & 0x3_FFFF) + at, value)
        else:
            cp.store((p.addr & ~3) + 4 * at, value, 4)
    return Step.DONE


@handles(HANDLERS, pm4.CopyData)
def copy_data(cp: CommandProcessor, p: pm4.CopyData) -> Step:
    size = 8 if p.is_64 else 4
    value = _copy_source(cp, p, size)
    if p.dst_sel in (CopyDst.REGISTER, CopyDst.PERF_COUNTER):
        for i in range(size // 4):
            cp.regs.write((p.dst & 0x3_FFFF) + i, value >> 32 * i & 0xFFFF_FFFF)
    elif p.dst_sel is CopyDst.GDS:
        cp.unmodelled("COPY_DATA to GDS")
    else:
        cp.store(p.dst & ~(size - 1), value, size)
    return Step.DONE


def _copy_source(cp: CommandProcessor, p: pm4.CopyData, size: int) -> int:
    if p.src_sel is CopySrc.IMMEDIATE:
        return p.src
    if p.src_sel in (CopySrc.MEMORY, CopySrc.MEMORY_OBSOLETE):
        return cp.load(p.src & ~(size - 1), size)
    if p.src_sel in (CopySrc.GPU_CLOCK, CopySrc.SYSTEM_CLOCK):
        return cp.host.timestamp()
    if p.src_sel is CopySrc.ATOMIC_RETURN:
        return cp.atomic_return
    if p.src_sel in (CopySrc.REGISTER, CopySrc.PERF_COUNTER):
        return sum(cp.regs.read((p.src & 0x3_FFFF) + i) << 32 * i for i in range(size // 4))
    cp.unmodelled(f"COPY_DATA from {p.src_sel.name}")


@handles(HANDLERS, pm4.DmaData)
def dma_data(cp: CommandProcessor, p: pm4.DmaData) -> Step:
    gds = pm4.DmaSrc.GDS is p.src_sel or pm4.DmaDst.GDS is p.dst_sel
    if gds or p.src_is_register or p.dst_is_register or p.src_fixed or p.dst_fixed:
        cp.unmodelled("DMA_DATA with GDS, registers or fixed addresses")
    if p.src_sel is pm4.DmaSrc.DATA:
        word = (p.src & 0xFFFF_FFFF).to_bytes(4, "little")
        cp.store_bytes(p.dst, (word * (p.byte_count // 4 + 1))[: p.byte_count])
    else:
        cp.copy(p.src, p.dst, p.byte_count)
    return Step.DONE


@handles(HANDLERS, pm4.AtomicMem)
def atomic_mem(cp: CommandProcessor, p: pm4.AtomicMem) -> Step:
    cp.atomic_return = cp.atomic(p.atomic, p.addr, p.src, p.compare)
    if p.command is pm4.AtomicCommand.LOOP and cp.atomic_return != p.compare:
        return Step.RETRY
    return Step.DONE
