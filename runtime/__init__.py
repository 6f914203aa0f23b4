"""The HCQ runtime: one device, its memory, its queues and programs, on metal and on mock drivers alike.

    dev = Device()                     # DEV names the device: KFD+AMD, MOCKKFD+AMD, ...
    x = dev.copyin(array)
    prog = dev.load(code_object, "vadd_f32")
    prog(x, y, out, np.uint32(1000), global_size=(4, 1, 1), local_size=(256, 1, 1))
    dev.copyout(out)

Nothing here knows whether a GPU or a mock answers: the object that opens files is the only difference.
"""

from stuntgpu.runtime.buffer import Buffer
from stuntgpu.runtime.dev import DevError, DevSpec, parse_dev
from stuntgpu.runtime.device import Device
from stuntgpu.runtime.errors import ArgumentError, DeviceFault, DeviceTimeout
from stuntgpu.runtime.program import Program

__all__ = ["ArgumentError", "Buffer", "DevError", "DevSpec", "Device", "DeviceFault", "DeviceTimeout", "Program",
           "parse_dev"]
