"""How an ioctl is written down: a C struct as a class, and a number that knows its struct.

    @layout
    class GetVersion(CStruct):
        major_version: U32
        minor_version: U32

    GET_VERSION = Ioctl("GET_VERSION", "K", 0x01, GetVersion, READ)
    GET_VERSION.request        # the number for ioctl(2)

Units:   bytes; natural alignment, little-endian, as the C compiler of the driver lays them out.
Source:  linux asm-generic/ioctl.h for the number's bit fields.
"""

import ctypes
import inspect
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, get_type_hints

U8 = Annotated[int, ctypes.c_uint8]
U16 = Annotated[int, ctypes.c_uint16]
U32 = Annotated[int, ctypes.c_uint32]
I32 = Annotated[int, ctypes.c_int32]
U64 = Annotated[int, ctypes.c_uint64]

NONE, WRITE, READ = 0, 1, 2
READ_WRITE = READ | WRITE

IOC_NR_BITS, IOC_TYPE_BITS, IOC_SIZE_BITS = 8, 8, 14


class CStruct(ctypes.Structure):
    """A C struct; fields are its annotations. Comparable by bytes, printable by field."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and bytes(self) == bytes(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        names = [field[0] for field in self._fields_]
        return f"{type(self).__name__}({', '.join(f'{n}={getattr(self, n)!r}' for n in names)})"


T = TypeVar("T", bound=type[ctypes.Structure])


def layout(cls: T) -> T:
    """Class decorator: make the annotations the fields, in order.

    An annotation is `Annotated[python_type, ctypes_type]` or a CStruct class itself.
    """
    hints: dict[str, Any] = get_type_hints(cls, include_extras=True)
    own = inspect.get_annotations(cls)
    cls._fields_ = [(name, _ctype(hints[name])) for name in own if not name.startswith("_")]
    return cls


def _ctype(hint: Any) -> Any:
    return hint.__metadata__[0] if hasattr(hint, "__metadata__") else hint


@dataclass(frozen=True, slots=True)
class Ioctl:
    """One ioctl. `struct` is the newest layout we know; callers may use older, shorter ones.

    direction   NONE, WRITE (user to kernel), READ (kernel to user) or both.
    """

    name: str
    magic: str
    nr: int
    struct: type[CStruct]
    direction: int

    @property
    def size_bytes(self) -> int:
        return ctypes.sizeof(self.struct)

    @property
    def request(self) -> int:
        """The number ioctl(2) takes."""
        return encode(self.direction, ord(self.magic), self.nr, self.size_bytes)


def encode(direction: int, type_: int, nr: int, size_bytes: int) -> int:
    """The _IOC number."""
    return direction << 30 | size_bytes << 16 | type_ << 8 | nr


def decode(request: int) -> tuple[int, int, int, int]:
    """(direction, type, nr, size_bytes) of a 32-bit ioctl number."""
    return request >> 30 & 3, request >> 8 & 0xFF, request & 0xFF, request >> 16 & 0x3FFF
