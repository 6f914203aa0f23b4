"""The emulated GPU: executors of the instruction semantics, and the Python door to them.

Names are imported when first used: the device server needs the layers below and not numpy, and its
start-up is part of every client's.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stuntgpu.emu.arguments import Local
    from stuntgpu.emu.descriptor_launch import LaunchError
    from stuntgpu.emu.faults import KernelFault
    from stuntgpu.emu.gpu import Gpu, Kernel, Module
    from stuntgpu.emu.raw import KernelSpec

__all__ = ["Gpu", "Kernel", "KernelFault", "KernelSpec", "LaunchError", "Local", "Module"]

_HOMES = {
    "Gpu": "gpu", "Kernel": "gpu", "KernelFault": "faults", "KernelSpec": "raw", "LaunchError": "descriptor_launch",
    "Local": "arguments", "Module": "gpu",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
