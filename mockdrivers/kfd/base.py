"""What all KFD calls share: the client, its GPUs by id, and that some calls need a VM first."""

from __future__ import annotations

import threading
from errno import EINVAL, ENODEV
from typing import ClassVar

from stuntgpu.isa.abi import kfd as abi
from stuntgpu.mockdrivers.core.client import Client
from stuntgpu.mockdrivers.core.device import Device, fail
from stuntgpu.mockdrivers.core.gpu import Gpu
from stuntgpu.mockdrivers.core.memory import Buffer
from stuntgpu.mockdrivers.kfd.events import Events

DOORBELL_SLICE = 0x2000  # doorbells of one process on one GPU
DOORBELL_BYTES = 8
MMIO_REMAP_BYTES = 0x1000


class KfdBase(Device):
    """The KFD process of a client: one however often /dev/kfd is opened."""

    node = abi.KFD_NODE
    magic: ClassVar[str] = abi.AMDKFD_IOCTL_BASE

    def __init__(self, client: Client) -> None:
        self.client = client
        self.events = Events()
        self.lock = threading.RLock()
        self.with_vm: set[int] = set()  # gpu_ids whose VM was acquired
        self.pages: dict[tuple[str, int], Buffer] = {}  # kind, gpu_id
        client.on_close.append(self.events.close)

    def gpu(self, gpu_id: int, call: str) -> Gpu:
        """Raises DriverError(EINVAL)."""
        return self.client.gpus.get(gpu_id) or fail(EINVAL, f"{call}.gpu_id", gpu_id)

    def bound_gpu(self, gpu_id: int, call: str, errno: int = ENODEV) -> Gpu:
        """The GPU, after ACQUIRE_VM. Raises DriverError."""
        gpu = self.gpu(gpu_id, call)
        if gpu_id not in self.with_vm:
            fail(errno, f"{call}.gpu_id (no VM acquired)", gpu_id)
        return gpu

    def page(self, kind: str, gpu_id: int, size: int) -> Buffer:
        """The doorbell, MMIO or event page, made when first asked for."""
        with self.lock:
            if (kind, gpu_id) not in self.pages:
                self.pages[kind, gpu_id] = self.client.memory.gtt.allocate(size)
            return self.pages[kind, gpu_id]
