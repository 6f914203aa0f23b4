"""The SDMA engine: executes copy packets against memory.

Units:   bytes.
Errors:  PacketError, with `address` set when the packet's memory is not mapped; Unmodelled.
"""

from __future__ import annotations

from stuntgpu.isa.packets import sdma
from stuntgpu.isa.packets.base import Packet
from stuntgpu.isa.packets.base import Ring as PacketRing
from stuntgpu.isa.regs import gfx11
from stuntgpu.mockdrivers.core.queue import COPY_CHUNK, Handlers, Processor, Step, handles

HANDLERS: Handlers = {}

IB_ALIGN = 32  # indirect buffers start on such a boundary


class SdmaEngine(Processor):
    """One SDMA queue."""

    unit = sdma.UNIT
    handlers = HANDLERS

    def peek(self, ring: PacketRing, position: int) -> Packet:
        return sdma.peek(ring, position)


@handles(HANDLERS, sdma.Nop, sdma.GcrReq, sdma.UserGcr)
def no_effect(engine: SdmaEngine, p: Packet) -> Step:
    """Padding; caches are coherent."""
    return Step.DONE


@handles(HANDLERS, sdma.CopyLinear)
def copy_linear(engine: SdmaEngine, p: sdma.CopyLinear) -> Step:
    _check_swap(engine, p.src_swap | p.dst_swap)
    engine.copy(p.src, p.dst, p.count + 1)
    return Step.DONE


@handles(HANDLERS, sdma.CopyBroadcast)
def copy_broadcast(engine: SdmaEngine, p: sdma.CopyBroadcast) -> Step:
    _check_swap(engine, p.src_swap | p.dst1_swap | p.dst2_swap)
    engine.copy(p.src, p.dst1, p.count + 1)
    engine.copy(p.src, p.dst2, p.count + 1)
    return Step.DONE


def _check_swap(engine: SdmaEngine, swap: int) -> None:
    if swap:
        engine.unmodelled("SDMA byte swapping")


@handles(HANDLERS, sdma.CopyLinearSubwin)
def copy_subwin(engine: SdmaEngine, p: sdma.CopyLinearSubwin) -> Step:
    """Row by row."""
    _check_swap(engine, p.src_swap | p.dst_swap)
    log2 = p.element_log2
    for z in range(p.rect_z + 1):
        for y in range(p.rect_y + 1):
            source = _element(p.src_x, p.src_y + y, p.src_z + z, p.src_pitch + 1, p.src_slice_pitch + 1)
            target = _element(p.dst_x, p.dst_y + y, p.dst_z + z, p.dst_pitch + 1, p.dst_slice_pitch + 1)
            engine.copy(p.src + (source << log2), p.dst + (target << log2), p.rect_x + 1 << log2)
    return Step.DONE


def _element(x: int, y: int, z: int, pitch: int, slice_pitch: int) -> int:
    return x + y * pitch + z * slice_pitch


@handles(HANDLERS, sdma.WriteLinear)
def write_linear(engine: SdmaEngine, p: sdma.WriteLinear) -> Step:
    _check_swap(engine, p.swap)
    engine.store_bytes(p.dst, b"".join(w.to_bytes(4, "little") for w in p.tail))
    return Step.DONE


@handles(HANDLERS, sdma.ConstFill)
def const_fill(engine: SdmaEngine, p: sdma.ConstFill) -> Step:
    _check_swap(engine, p.swap)
    if p.fill_log2 == 3:
        engine.refuse("fill size 3 does not exist")
    pattern = p.data.to_bytes(4, "little")[: 1 << p.fill_log2]
    size = p.count + 1
    block = pattern * (min(size, COPY_CHUNK) // len(pattern) + 1)
    for at in range(0, size, COPY_CHUNK):
        engine.store_bytes(p.dst + at, block[: min(COPY_CHUNK, size - at)])
    return Step.DONE


@handles(HANDLERS, sdma.Indirect)
def indirect(engine: SdmaEngine, p: sdma.Indirect) -> Step:
    if p.base % IB_ALIGN:
        engine.refuse(f"indirect buffer at 0x{p.base:x} is not on a multiple of {IB_ALIGN}")
    engine.enter(p.base, p.size)
    return Step.DONE


@handles(HANDLERS, sdma.Fence)
def fence(engine: SdmaEngine, p: sdma.Fence) -> Step:
    if p.addr % 4:
        engine.refuse(f"misaligned fence at 0x{p.addr:x}", address=p.addr, access="write")
    engine.store(p.addr, p.data, 4)
    return Step.DONE


@handles(HANDLERS, sdma.Trap)
def trap(engine: SdmaEngine, p: sdma.Trap) -> Step:
    engine.host.signal_event(p.context)
    return Step.DONE


@handles(HANDLERS, sdma.PollRegmem)
def poll_regmem(engine: SdmaEngine, p: sdma.PollRegmem) -> Step:
    if p.hdp_flush:  # writes are visible at once
        return Step.DONE
    if p.mem_poll:
        seen = engine.load(p.addr & ~3, 4)
    elif p.function is sdma.Compare.ALWAYS:
        seen = 0
    elif p.done_reg >> 2 == gfx11.GPU_HDP_FLUSH_DONE:
        seen = 0xFFFF_FFFF
    else:
        engine.unmodelled(f"polling register 0x{p.done_reg >> 2:x}")
    return Step.DONE if p.function(seen & p.mask, p.ref & p.mask) else Step.RETRY


@handles(HANDLERS, sdma.CondExe)
def cond_exe(engine: SdmaEngine, p: sdma.CondExe) -> Step:
    if engine.load(p.addr & ~3, 4) != p.reference:
        engine.skip(p.exec_count)
    return Step.DONE


@handles(HANDLERS, sdma.PreExe)
def pre_exe(engine: SdmaEngine, p: sdma.PreExe) -> Step:
    if not p.device_mask & 1:
        engine.skip(p.exec_count)
    return Step.DONE


@handles(HANDLERS, sdma.Atomic)
def atomic(engine: SdmaEngine, p: sdma.Atomic) -> Step:
    old = engine.atomic(p.atomic_op, p.addr, p.src, p.compare)
    return Step.RETRY if p.loop and old != p.compare else Step.DONE


@handles(HANDLERS, sdma.TimestampGetGlobal, sdma.TimestampGet)
def timestamp(engine: SdmaEngine, p: sdma.TimestampGetGlobal) -> Step:
    if p.addr % 8:
        engine.refuse(f"misaligned timestamp at 0x{p.addr:x}", address=p.addr, access="write")
    engine.store(p.addr, engine.host.timestamp(), 8)
    return Step.DONE
