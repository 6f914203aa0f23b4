"""A GPU in a Python process: load code objects, call their kernels with numpy arrays and scalars.

    gpu = Gpu("gfx1100")
    kernel = gpu.load("vadd.hsaco")["vadd_f32"]
    kernel(a, b, out, np.uint32(1000), grid=(1024, 1, 1), workgroup=(256, 1, 1))

Arrays are buffers: the GPU works on their own memory. Scalars go by value and must have the size the
kernel declares. A launch returns when the kernel has ended.

Units:   grid and workgroup in work-items; sizes in bytes.
Errors:  CodeObjectError (file), LaunchError (call), KernelFault (what the kernel did), Unmodelled.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

import numpy as np

from stuntgpu.emu import arguments, budget, raw
from stuntgpu.emu.buffers import Array, Placement, check_array, host_address
from stuntgpu.emu.descriptor_launch import (
    DispatchContext,
    LaunchError,
    launch_from_descriptor,
    scratch_bytes,
)
from stuntgpu.emu.events import Events, KernelEnd, KernelStart
from stuntgpu.emu.launch import Executor, Launch, RunOptions, Stats, numbered
from stuntgpu.emu.memory import EXECUTE, READ, WRITE, AddressSpace
from stuntgpu.isa.abi import codeobject, elf, kernarg
from stuntgpu.isa.abi.aql import AqlHeader, HsaQueue, KernelDispatchPacket, PacketType
from stuntgpu.isa.abi.codeobject import CodeObject, KernelInfo
from stuntgpu.isa.abi.descriptor import KernelDescriptor
from stuntgpu.isa.abi.targets import LDS_APERTURE, SCRATCH_APERTURE, Target, round_up, target

Source: TypeAlias = "str | os.PathLike[str] | bytes | bytearray | memoryview"

# Where a process's things lie; inside what the kernel driver offers for GPU VAs.
ARGUMENTS_VA = 0x1000_0000_0000
CODE_VA = 0x2000_0000_0000
MAPPED_VA = 0x3000_0000_0000

#: Compilers load arguments in pieces of up to this size, and count on the segment's last piece being whole.
_KERNARG_GRANULE = 64

#: Scratch of one lane for kernels whose stack use is not known to the compiler.
DYNAMIC_STACK_BYTES = 0x4000


class UnknownKernel(KeyError):
    """A module has no kernel of that name."""

    def __str__(self) -> str:
        return str(self.args[0])


class Gpu:
    """One emulated GPU with an address space of its own.

    tier                    "native" or "reference" (plain Python: slow, the oracle).
    seed                    orders turns of waves; the same seed gives the same run, 0 is dispatch order.
    threads                 host threads that run workgroups.
    max_wave_instructions   budget of one launch, 0 none; default from $STUNTGPU_MAX_WAVE_INSTRUCTIONS.
    executor                runs launches instead of the tier's own executor.
    compute_units           how many of the device's are used, 0 all: they bound how many workgroups are resident.

    stats counts everything that ran; events tells listeners. Calls from several threads take turns.
    """

    def __init__(self, arch: str, *, tier: str = "native", seed: int = 0, threads: int = 1,
                 max_wave_instructions: int | None = None, executor: Executor | None = None,
                 compute_units: int = 0) -> None:
        self.target: Target = target(arch)
        self.arch, self.tier = arch, tier
        self.space, self.stats, self.events = AddressSpace(), Stats(), Events()
        limit = budget.max_wave_instructions() if max_wave_instructions is None else max_wave_instructions
        self.options = RunOptions(seed=seed, threads=threads, max_wave_instructions=limit,
                                  compute_units=compute_units)
        self.executor: Executor = _executor(arch, tier) if executor is None else executor
        self.lock = threading.RLock()
        self.dispatches = 0
        self.frame = Placement(self.space, ARGUMENTS_VA)
        self._mapped = Placement(self.space, MAPPED_VA)
        self._code = Placement(self.space, CODE_VA)

    def load(self, source: Source) -> Module:
        """A code object from a file or from its bytes. Raises CodeObjectError."""
        data, name = (Path(source).read_bytes(), Path(source).name) if isinstance(source, str | os.PathLike) else (
            bytes(source), "code object")
        loaded = codeobject.read(data, name=name)
        try:
            loaded.check_target(self.arch)
            with self.lock:
                base = self._place_code(loaded, name)
        except codeobject.CodeObjectError as error:
            raise codeobject.CodeObjectError(f"{name}: {error}") from None
        return Module(self, name, loaded, base)

    def _place_code(self, loaded: CodeObject, name: str) -> int:
        base = self._code.reserve(loaded.size)
        memory = np.frombuffer(bytearray(loaded.image(base)), np.uint8)
        for s in loaded.segments:
            perms = sum(ours for theirs, ours in _PERMS if s.flags & theirs)
            self.space.map(base + s.vaddr, s.size, host_address(memory) + s.vaddr, perms=perms, name=name, keep=memory)
        return base

    def load_raw(self, code: bytes, spec: raw.KernelSpec | None = None) -> Kernel:
        """A kernel from bare instructions. Its arguments are packed in the order of the call, each aligned
        to its own size; `spec` says what the hardware sets up."""
        spec = spec or raw.KernelSpec()
        descriptor = spec.descriptor(self.target)
        image = np.frombuffer(bytearray(descriptor.pack().ljust(raw.CODE_OFFSET, b"\0") + code), np.uint8)
        with self.lock:
            base = self._code.reserve(image.nbytes)
            self.space.map(base, image.nbytes, host_address(image), perms=READ | EXECUTE, name=spec.name, keep=image)
        return Kernel(self, KernelInfo(spec.name, descriptor, 0, descriptor.entry_offset), base, has_metadata=False)

    def map(self, array: Array, *, name: str = "mapped array") -> int:
        """Keep an array mapped until `unmap`; the GPU VA, for pointers inside other buffers."""
        check_array(array, name)
        with self.lock:
            return self._mapped.array(array, name)

    def unmap(self, array: Array) -> None:
        """Undo `map`. Raises KeyError when the array is not mapped."""
        with self.lock:
            self._mapped.remove(array)

    def place(self, array: Array, name: str) -> int:
        """Address of an array for the launch being set up."""
        mapped = self._mapped.find(array)
        return self.frame.array(array, name) if mapped is None else mapped

    def run(self, launch: Launch) -> Stats:
        """Run one launch as it is; counts and tells listeners. Raises KernelFault."""
        with self.lock:
            self.events.emit(KernelStart(launch))
            try:
                stats = self.executor.run(self.space, launch, self.options)
                self.options.clock = max(self.options.clock, stats.clock)
            except Exception as error:
                self.events.emit(KernelEnd(launch, None, error))
                raise
            self.stats.add(stats)
            self.events.emit(KernelEnd(launch, stats))
            return stats

    def next_dispatch(self) -> int:
        """Number of a dispatch, as its packet's place in a queue would be."""
        self.dispatches += 1
        return self.dispatches - 1

    def __repr__(self) -> str:
        return f"Gpu({self.arch!r}, tier={self.tier!r})"


_PERMS = ((elf.PF_R, READ), (elf.PF_W, WRITE), (elf.PF_X, EXECUTE))


def _executor(arch: str, tier: str) -> Executor:
    """Imported here: each tier brings much that the other does without."""
    if tier == "reference":
        from stuntgpu.emu.reference import Reference

        return Reference(arch)
    if tier == "native":
        from stuntgpu.emu.native import Native

        return Native(arch)
    raise ValueError(f'tier {tier!r}: expected "native" or "reference"')


class Module(Mapping[str, "Kernel"]):
    """A loaded code object: its kernels by name."""

    def __init__(self, gpu: Gpu, name: str, loaded: CodeObject, base: int) -> None:
        self.gpu, self.name, self.code_object, self.base = gpu, name, loaded, base
        self._kernels = {k: Kernel(gpu, info, base + info.descriptor_vaddr) for k, info in loaded.kernels.items()}

    def __getitem__(self, name: str) -> Kernel:
        if name not in self._kernels:
            raise UnknownKernel(f"{self.name} has no kernel {name!r}; it has {', '.join(self._kernels) or 'none'}")
        return self._kernels[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kernels)

    def __len__(self) -> int:
        return len(self._kernels)

    def symbol(self, name: str) -> int:
        """GPU VA of a symbol. Raises UnknownKernel listing the symbols."""
        symbols = self.code_object.symbols
        if name not in symbols:
            raise UnknownKernel(f"{self.name} has no symbol {name!r}; it has {', '.join(symbols)}")
        return self.base + symbols[name].value

    def __repr__(self) -> str:
        return f"Module({self.name!r}: {', '.join(self._kernels)})"


class Kernel:
    """A callable kernel."""

    def __init__(self, gpu: Gpu, info: KernelInfo, descriptor_va: int, *, has_metadata: bool = True) -> None:
        self.gpu, self.info, self.descriptor_va, self.has_metadata = gpu, info, descriptor_va, has_metadata

    @property
    def name(self) -> str:
        """As the code object spells it."""
        return self.info.name

    def __call__(self, *args: object, grid: tuple[int, ...] | int, workgroup: tuple[int, ...] | int,
                 shared: int = 0) -> Stats:
        """Run over `grid` work-items in workgroups of `workgroup`, with `shared` bytes of LDS more than the
        kernel declares. Returns what this launch executed.

        args    numpy arrays (or None: a null pointer) for pointers, numpy scalars or bytes for values,
                Local(n) for pointers into LDS.
        Raises  LaunchError before anything ran, KernelFault when the kernel faulted.
        """
        items, group = arguments.triple(grid, "grid"), arguments.triple(workgroup, "workgroup")
        self._check_workgroup(group)
        with self.gpu.lock:
            try:
                total = Stats()
                for piece in kernarg.pieces(self.info, items, group):
                    total.add(self.gpu.run(self._launch(args, items, group, shared, piece)))
                return total
            finally:
                self.gpu.frame.clear()

    def _check_workgroup(self, group: tuple[int, int, int]) -> None:
        required, most = self.info.required_workgroup, self.info.max_workgroup_items
        if required is not None and group != required:
            raise LaunchError(f"kernel {self.name!r} requires workgroup {required}, got {group}")
        if group[0] * group[1] * group[2] > most:
            raise LaunchError(f"kernel {self.name!r}: workgroup {group} has more than {most} work-items")

    def _launch(self, args: tuple[object, ...], grid: tuple[int, int, int], group: tuple[int, int, int],
                shared: int, piece: kernarg.Piece) -> Launch:
        """Place everything the kernel sees in memory, as a queue's packet would describe it."""
        frame, info = self.gpu.frame, self.info if self.has_metadata else arguments.describe(self.info, args)
        values, lds = arguments.encode(info, args, self.gpu.place)
        queue_va = frame.block(_QUEUE.pack(), "queue") if _wants_queue(info) else 0
        segment = kernarg.pack(info, values, kernarg.Dispatch(piece.hidden_grid, piece.workgroup, shared, queue_va))
        padded = segment.ljust(round_up(len(segment), _KERNARG_GRANULE), b"\0")
        kernarg_va = frame.block(padded, "kernel arguments") if segment else 0
        packet = _packet(info.descriptor, self.descriptor_va, grid, group, lds + shared, kernarg_va)
        properties = info.descriptor.properties
        context = DispatchContext(
            packet_va=frame.block(packet.pack(), "dispatch packet") if properties.dispatch_ptr else 0,
            queue_va=queue_va, dispatch_id=self.gpu.dispatches if properties.dispatch_id else 0, kernarg=segment if info.descriptor.preload_length else b"", name=self.name,
            scratch_va=frame.zeros(_scratch_bytes(self.gpu.arch, info.descriptor, packet), "scratch"))
        launch = _launch_of(self.gpu.arch, info.descriptor, packet, context)
        if piece.workgroup == group and piece.grid == grid:
            return numbered(launch, self.gpu.next_dispatch())
        return replace(launch, dispatch_id=self.gpu.next_dispatch(), start=piece.start, grid=piece.grid,
                       workgroup=piece.workgroup)

    def __repr__(self) -> str:
        return f"Kernel({self.name!r}, {len(self.info.explicit_args)} arguments)"


_QUEUE = HsaQueue(group_aperture_hi=LDS_APERTURE >> 32, private_aperture_hi=SCRATCH_APERTURE >> 32)


# A program launches the same shapes over and over, at the same addresses: these remember what was said before.
_launch_of = lru_cache(maxsize=1024)(launch_from_descriptor)
_scratch_bytes = lru_cache(maxsize=1024)(scratch_bytes)


@lru_cache(maxsize=1024)
def _packet(descriptor: KernelDescriptor, descriptor_va: int, grid: tuple[int, int, int],
            group: tuple[int, int, int], lds: int, kernarg_va: int) -> KernelDispatchPacket:
    private = descriptor.private_segment_size
    if descriptor.properties.uses_dynamic_stack:
        private = max(private, DYNAMIC_STACK_BYTES)
    dimensions = 3 if grid[2] > 1 else 2 if grid[1] > 1 else 1
    return KernelDispatchPacket(
        header=AqlHeader(type=PacketType.KERNEL_DISPATCH), dimensions=dimensions,
        workgroup_x=group[0], workgroup_y=group[1], workgroup_z=group[2],
        grid_x=grid[0], grid_y=grid[1], grid_z=grid[2], private_segment_size=private,
        group_segment_size=lds, kernel_object=descriptor_va, kernarg_address=kernarg_va)


def _wants_queue(info: KernelInfo) -> bool:
    return info.descriptor.properties.queue_ptr or any(a.kind == "hidden_queue_ptr" for a in info.args)
