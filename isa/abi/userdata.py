"""USER_DATA registers of a dispatch: the values a kernel descriptor asks to find in its first SGPRs.

Units:   bytes; the result counts dwords.
Errors:  UserDataError for a descriptor that contradicts itself, Unmodelled for values not built.
Source:  AMDGPU back-end user guide, "Initial Kernel Execution State" and "Preloaded Kernel Arguments".
"""

from __future__ import annotations

from collections.abc import Mapping

from stuntgpu.isa.abi.descriptor import KernelDescriptor
from stuntgpu.isa.abi.targets import Target
from stuntgpu.isa.errors import Unmodelled

MASK32 = 0xFFFF_FFFF


#: USER_DATA registers of a dispatch.
MAX_USER_SGPRS = 16
#: Values that only chips without architected flat scratch hand over.
ABSOLUTE_SCRATCH = ("private_segment_buffer", "flat_scratch_init")


class UserDataError(ValueError):
    """A descriptor that enables more user SGPRs than it asks for, or than there are, or some the arch has not."""


def user_data(arch: Target, descriptor: KernelDescriptor, values: Mapping[str, int],
              kernarg: bytes = b"") -> tuple[int, ...]:
    """USER_DATA_0..: as many dwords as RSRC2 asks for, zero past the values the descriptor enables.

    values    by the names of `descriptor.USER_SGPRS`; one that is asked for and missing is Unmodelled.
    kernarg   the kernel arguments' bytes, for kernels that want some preloaded.
    """
    words: list[int] = []
    for name, count in descriptor.properties.user_sgpr_slots():
        if arch.has_flat_scratch and name in ABSOLUTE_SCRATCH:
            raise UserDataError(f"the descriptor asks for {name} in user SGPRs, which {arch.name}, having "
                                "architected flat scratch, does not give")
        if name not in values:
            raise Unmodelled(arch.name, f"user SGPRs for {name}", "isa/abi/userdata.py")
        words += [values[name] >> 32 * i & MASK32 for i in range(count)]
    if arch.has_kernarg_preload and descriptor.preload_length:
        words += _preloaded(descriptor, kernarg)
    wanted = descriptor.rsrc2.user_sgprs
    if wanted > MAX_USER_SGPRS:
        raise UserDataError(f"the descriptor asks for {wanted} user SGPRs, there are {MAX_USER_SGPRS}")
    if len(words) > wanted:
        raise UserDataError(f"the descriptor enables {len(words)} user SGPRs but asks for {wanted}")
    return tuple(words + [0] * (wanted - len(words)))


def _preloaded(descriptor: KernelDescriptor, kernarg: bytes) -> list[int]:
    """The dwords of the kernel arguments that start in SGPRs."""
    first, size = 4 * descriptor.preload_offset, 4 * descriptor.preload_length
    piece = kernarg[first : first + size].ljust(size, b"\0")
    return [int.from_bytes(piece[i : i + 4], "little") for i in range(0, size, 4)]
