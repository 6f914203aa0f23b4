"""What `stuntgpu dis` and `stuntgpu emu` print about code: listings and kernel signatures.

Units:   addresses in bytes from the load base of the code object, or from the start of bare code.
"""

from __future__ import annotations

from collections.abc import Iterator

from stuntgpu.isa.abi import codeobject
from stuntgpu.isa.abi.codeobject import CodeObject, KernelInfo
from stuntgpu.isa.abi.elf import MAGIC, PF_X, STT_FUNC

_DWORD_BYTES = 4


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


def disassembly(arch: str, code: bytes, base: int = 0) -> Iterator[str]:
    """One line an instruction: address, dwords, text. What does not decode is listed as data, with the reason."""
    from stuntgpu.isa.decode import DecodeError, decode_all
    from stuntgpu.isa.disasm import disassemble

    for offset, inst in decode_all(arch, code):
        if isinstance(inst, DecodeError):
            size, line = min(_DWORD_BYTES, len(code) - offset), f"; not an instruction: {inst}"
        else:
            size, line = inst.size, disassemble(inst, base + offset)
        yield f"{base + offset:8x}:  {_dwords(code[offset : offset + size]):<27}  {line}"


def _dwords(data: bytes) -> str:
    parts = (data[i : i + _DWORD_BYTES] for i in range(0, len(data), _DWORD_BYTES))
    return " ".join(f"{int.from_bytes(part, 'little'):0{2 * len(part)}x}" for part in parts)


def functions(loaded: CodeObject) -> Iterator[tuple[str, int, bytes]]:
    """(name, vaddr, code) of every function of a code object, by address."""
    image = loaded.image(0)
    starts = sorted((s.value, name, s.size) for name, s in loaded.symbols.items() if s.type == STT_FUNC)
    ends = {s.vaddr: s.vaddr + s.size for s in loaded.segments if s.flags & PF_X}
    for i, (start, name, size) in enumerate(starts):
        section = next((end for at, end in ends.items() if at <= start < end), start)
        following = starts[i + 1][0] if i + 1 < len(starts) else section
        yield name, start, image[start : start + size if size else min(following, section)]


class UnknownFunction(KeyError):
    """A code object has no function of that name; says which it has."""


def code_object(loaded: CodeObject, only: str | None = None) -> Iterator[str]:
    """A listing of every function, or of the one named. Raises UnknownFunction."""
    found = [(name, at, code) for name, at, code in functions(loaded) if only in (None, name)]
    if not found:
        names = ", ".join(name for name, _, _ in functions(loaded))
        raise UnknownFunction(f"no function {only!r}; there are {names or 'none'}")
    for name, at, code in found:
        yield f"{name}:" if name not in loaded.kernels else f"{signature(loaded.kernels[name])}:"
        yield from disassembly(loaded.target, code, at)
        yield ""


def lines(data: bytes, arch: str, function: str | None = None) -> Iterator[str]:
    """A listing of whatever `data` is: a code object, dwords in hex as text, or machine code."""
    if data.startswith(MAGIC):
        return code_object(codeobject.read(data), function)
    return disassembly(arch, _from_hex(data) or data)


def _from_hex(data: bytes) -> bytes | None:
    """The bytes of `0xbfb00000 be820080`, or None when the data is not such text."""
    try:
        words = data.decode("ascii").replace(",", " ").split()
        return b"".join(int(word, 16).to_bytes(_DWORD_BYTES, "little") for word in words) or None
    except (UnicodeDecodeError, ValueError, OverflowError):
        return None
