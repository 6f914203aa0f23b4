"""stuntgpu: a stunt double for your GPU.

The folders of the repository are its packages: `stuntgpu.isa` (facts per architecture), `stuntgpu.emu`
(the emulator, `from stuntgpu.emu import Gpu`), `stuntgpu.mockdrivers` (the OS boundary), `stuntgpu.runtime`
(the HCQ runtime, `from stuntgpu.runtime import Device`). Importing this package loads none of them.
"""

__version__ = "0.1.0"
