"""The emulated GPU: executors of the instruction semantics, and the Python door to them."""

from stuntgpu.emu.arguments import Local
from stuntgpu.emu.descriptor_launch import LaunchError
from stuntgpu.emu.faults import KernelFault
from stuntgpu.emu.gpu import Gpu, Kernel, Module
from stuntgpu.emu.raw import KernelSpec

__all__ = ["Gpu", "Kernel", "KernelFault", "KernelSpec", "LaunchError", "Local", "Module"]
