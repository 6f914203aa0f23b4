"""Two GPUs in one machine: nodes, ids, one buffer mapped to both, a copy by the second."""

from __future__ import annotations

import os
import subprocess
import sys

from stuntgpu.mockdrivers.client import environment
from tests.shared import ROOT

CLIENT = """
import ctypes
from stuntgpu.isa.abi import kfd
from stuntgpu.isa.abi.kfd import AllocFlags
from stuntgpu.isa.packets import sdma
from stuntgpu.mockdrivers.client import Door
from tests.mockdrivers.rawkfd import TOPOLOGY, RawKfd, RawQueue
gpu = RawKfd(Door(("gfx1100", "gfx1100"))); gpu.acquire()
second = int(gpu.text(f"{TOPOLOGY}/nodes/2/gpu_id"))
render = gpu.door.open("/dev/dri/renderD129")
gpu.call(kfd.ACQUIRE_VM, drm_fd=render, gpu_id=second)
apertures = gpu.call(kfd.GET_PROCESS_APERTURES)
print(apertures.num_of_nodes, gpu.gpu_id != second, gpu.text(f"{TOPOLOGY}/nodes/2/properties").count("drm_render_minor 129"))

both = (ctypes.c_uint32 * 2)(gpu.gpu_id, second)
def shared(size):
    made = gpu.alloc(size, AllocFlags.VRAM)
    done = gpu.call(kfd.MAP_MEMORY_TO_GPU, handle=made.handle, device_ids_array_ptr=ctypes.addressof(both), n_devices=2)
    gpu.cpu_map(made)
    return made, done.n_success
(a, n), (b, _) = shared(4096), shared(4096)
ctypes.memmove(a.va_addr, b"across", 6)

first_id, gpu.gpu_id = gpu.gpu_id, second   # ring, pointers and queue of the second GPU
gpu.render, first_render = render, gpu.render
queue = RawQueue(gpu, kfd.QueueType.SDMA)
queue.submit(sdma.CopyLinear(count=5, src=a.va_addr, dst=b.va_addr), sdma.Fence(addr=queue.fence_va, data=1))
print(n, queue.wait_fence(1), ctypes.string_at(b.va_addr, 7))

wild = gpu.alloc(4096, AllocFlags.VRAM)      # the second GPU's alone
gpu.gpu_id, gpu.render = first_id, first_render
first = RawQueue(gpu, kfd.QueueType.SDMA)
memory = gpu.event(kfd.EventType.MEMORY)
first.submit(sdma.CopyLinear(count=5, src=wild.va_addr, dst=a.va_addr))
result, data = gpu.wait(memory, ms=5000)
print(result, data[0].payload.memory_exception_data.gpu_id == first_id)
"""


def test_two_gpus_share_a_buffer_and_nothing_else() -> None:
    env = {**os.environ, **environment(("gfx1100", "gfx1100")), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", CLIENT], env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.splitlines() == ["2 True 1", "2 True b'across\\x00'", "0 True"], done.stderr
