"""What `stuntgpu dis` and `stuntgpu emu` say about a kernel."""

from __future__ import annotations

from stuntgpu.isa.abi.codeobject import KernelInfo


def signature(kernel: KernelInfo) -> str:
    """`vadd_f32(float* a, uint n), workgroup 256x1x1, LDS 0 bytes, wave32`."""
    words = []
    for i, arg in enumerate(kernel.explicit_args):
        kind = arg.type_name or {"by_value": f"{arg.size} bytes"}.get(arg.kind, arg.kind)
        words.append(f"{kind} {arg.name or f'arg{i}'}")
    group = kernel.required_workgroup
    size = "x".join(map(str, group)) if group else f"up to {kernel.max_workgroup_items} work-items"
    lanes = 32 if kernel.descriptor.properties.wavefront_size32 else 64
    return (f"{kernel.name}({', '.join(words)}), workgroup {size}, "
            f"LDS {kernel.descriptor.group_segment_size} bytes, wave{lanes}")
