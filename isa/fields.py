"""Immutable bit fields: the one way a layout is written down that one side packs and another reads.

A layout is a class whose attributes are fields; packets, registers, kernel descriptors and kernel
arguments' headers are all made of it::

    class WaitRegMem(BitStruct):
        function = bits[0, 2:0].enum(Compare)  # dword 0, bits 2..0
        engine = bits[0, 9:8]
        addr = dword[1:2]                      # 64 bits in dwords 1 and 2, low dword first
        ref, mask = dword[3], dword[4]

    p = WaitRegMem(function=Compare.EQ, addr=0x1000)
    assert WaitRegMem.unpack(p.pack()) == p

Bits no field names are kept by `unpack`, shown by `repr` as `reserved`, and written by `pack`.

Units:   bit ranges are inclusive, high first, as manuals print them; dword indices count 4 bytes;
         `u8[n]`..`u64[n]` take byte offsets. Everything is little-endian.
Errors:  FieldError names class, field, value and range. A field that overlaps another is refused
         when the class is made (SpecError), unless it says `.overlay()`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, ClassVar, Generic, Self, TypeVar, cast, overload

from stuntgpu.isa.errors import SpecError

T = TypeVar("T")
E = TypeVar("E", bound=Enum)
S = TypeVar("S", bound="BitStruct")
N = TypeVar("N")


class FieldError(ValueError):
    """A value that does not fit its field, or bytes that are not what a field says."""


def _same(value: Any) -> Any:
    return value


class Field(Generic[T]):
    """Bits [lo + width - 1 : lo] of a BitStruct, seen as a T.

    decode  raw bits -> value; raises ValueError for bits that mean nothing.
    encode  value -> raw bits, before the range check.
    """

    __slots__ = ("_decode", "_encode", "can_fail", "initial", "is_overlay", "is_signed", "lo", "mask", "name",
                 "owner", "width")

    def __init__(self, lo: int, width: int, decode: Callable[[int], T], encode: Callable[[T], int], *,
                 initial: int = 0, is_overlay: bool = False, is_signed: bool = False,
                 can_fail: bool = False) -> None:
        if lo < 0 or width <= 0:
            raise SpecError(f"bit field of {width} bits at bit {lo}")
        self.lo, self.width, self.name, self.owner = lo, width, "", ""
        self.mask = ((1 << width) - 1) << lo  # the field's bits, in place
        self.can_fail = can_fail  # some bits mean nothing: unpack has to look
        self._decode, self._encode = decode, encode
        self.initial, self.is_overlay, self.is_signed = initial, is_overlay, is_signed

    # ---- how a declaration is refined; each returns a new field

    def enum(self, kind: type[E]) -> Field[E]:
        """The value is a member of `kind`; other bits are refused."""
        return Field(self.lo, self.width, kind, lambda v: int(kind(v).value), initial=self.initial,
                     is_overlay=self.is_overlay, can_fail=True)

    def flag(self: Field[int]) -> Field[bool]:
        """One bit, as a bool."""
        if self.width != 1:
            raise SpecError(f"a flag has one bit, not {self.width}")
        return Field(self.lo, 1, bool, int, initial=self.initial, is_overlay=self.is_overlay)

    def signed(self: Field[int]) -> Field[int]:
        """Two's complement."""
        top = 1 << (self.width - 1)
        return Field(self.lo, self.width, lambda raw: (raw ^ top) - top, _same, initial=self.initial,
                     is_overlay=self.is_overlay, is_signed=True)

    def unit(self: Field[int], step: int) -> Field[int]:
        """The bits count `step`s: the value is bits * step, and must be a multiple of it."""
        def encode(value: int) -> int:
            if value % step:
                raise ValueError(f"not a multiple of {step}")
            return value // step

        return Field(self.lo, self.width, lambda raw: raw * step, encode, initial=self.initial,
                     is_overlay=self.is_overlay)

    def of(self: Field[int], kind: type[S]) -> Field[S]:
        """The bits are a BitStruct of their own, of the same size."""
        if self.width != kind.SIZE_BYTES * 8:
            raise SpecError(f"{kind.__name__} has {kind.SIZE_BYTES * 8} bits, its field {self.width}")
        return Field(self.lo, self.width, kind.from_int, int, initial=kind().to_int(),
                     is_overlay=self.is_overlay, can_fail=any(f.can_fail for f in kind.FIELDS.values()))

    def default(self, value: T) -> Field[T]:
        """What a constructor that does not name the field writes."""
        return self._copy(initial=self.encode(value), is_overlay=self.is_overlay)

    def overlay(self) -> Field[T]:
        """Allowed to share bits with other fields (a union)."""
        return self._copy(initial=self.initial, is_overlay=True)

    def _copy(self, *, initial: int, is_overlay: bool) -> Field[T]:
        return Field(self.lo, self.width, self._decode, self._encode, initial=initial, is_overlay=is_overlay,
                     is_signed=self.is_signed, can_fail=self.can_fail)

    # ---- value <-> bits

    def encode(self, value: T) -> int:
        """Raw bits of a value, not shifted into place. Raises FieldError."""
        try:
            raw = self._encode(value)
            low, high = (-1 << (self.width - 1), 1 << (self.width - 1)) if self.is_signed else (0, 1 << self.width)
            if not isinstance(raw, int) or not low <= raw < high:
                raise ValueError(f"not in 0x{low:x}..0x{high - 1:x} ({self.width} bits)")
        except (ValueError, TypeError) as error:
            raise FieldError(f"{self._where()} = {_show(value)}: {error}") from None
        return raw & ((1 << self.width) - 1)

    def decode(self, raw: int) -> T:
        """The value of raw bits. Raises FieldError when they mean nothing."""
        try:
            return self._decode(raw)
        except ValueError as error:
            raise FieldError(f"{self._where()} holds 0x{raw:x}: {error}") from None

    def _where(self) -> str:
        return f"{self.owner}.{self.name}" if self.owner else self.name or "field"

    def __set_name__(self, owner: type, name: str) -> None:
        if self.name:
            raise SpecError(f"{owner.__name__}.{name}: the field is already {self._where()}")
        self.owner, self.name = owner.__name__, name

    @overload
    def __get__(self, obj: None, owner: type) -> Field[T]: ...
    @overload
    def __get__(self, obj: BitStruct, owner: type) -> T: ...
    def __get__(self, obj: BitStruct | None, owner: type) -> Field[T] | T:
        return self if obj is None else self.decode((obj._bits & self.mask) >> self.lo)

    def __set__(self, obj: BitStruct, value: object) -> None:
        raise AttributeError(f"{self._where()} is immutable; use replace({self.name}=...)")


def _field(lo: int, width: int) -> Field[int]:
    return Field(lo, width, cast("Callable[[int], int]", _same), _same)


def _range(index: slice | int) -> tuple[int, int]:
    """(high, low) of `hi:lo` or of one bit."""
    if isinstance(index, int):
        return index, index
    if index.step is not None or index.start is None or index.stop is None or index.start < index.stop:
        raise SpecError(f"bit range {index.start}:{index.stop}: write bits[high:low]")
    return index.start, index.stop


class _Bits:
    """bits[hi:lo] or bits[n] from the start of the layout; bits[dw, hi:lo], bits[dw, n] inside dword dw."""

    def __getitem__(self, index: slice | int | tuple[int, slice | int]) -> Field[int]:
        if not isinstance(index, tuple):
            hi, lo = _range(index)
            return _field(lo, hi - lo + 1)
        word, (hi, lo) = index[0], _range(index[1])
        if hi > 31:
            raise SpecError(f"bits[{word}, {hi}:{lo}]: a dword has bits 31:0")
        return _field(32 * word + lo, hi - lo + 1)


class _Words:
    """dword[i], or dword[first:last] with the last one included, low dword first."""

    def __getitem__(self, index: int | slice) -> Field[int]:
        first, last = (index, index) if isinstance(index, int) else (index.start, index.stop)
        if last < first:
            raise SpecError(f"dword[{first}:{last}]: write dword[first:last], last included")
        return _field(32 * first, 32 * (last - first + 1))


class _Quads:
    """qword[i]: 64 bits in dwords i and i + 1, low dword first."""

    def __getitem__(self, first_dword: int) -> Field[int]:
        return _field(32 * first_dword, 64)


class _Bytes:
    """u16[offset]: a number at a byte offset."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __getitem__(self, offset: int) -> Field[int]:
        return _field(8 * offset, 8 * self.size)


bits, dword, qword = _Bits(), _Words(), _Quads()
u8, u16, u32, u64 = _Bytes(1), _Bytes(2), _Bytes(4), _Bytes(8)


class BitStruct:
    """An immutable value of SIZE_BYTES bytes with named fields; equal when class and bits are equal.

    A subclass adds fields to its base's. `class X(BitStruct, size=64)` fixes the size in bytes;
    without it the size is that of the highest field, rounded up to whole dwords.
    """

    __slots__ = ("_bits",)
    SIZE_BYTES: ClassVar[int] = 0
    FIELDS: ClassVar[Mapping[str, Field[Any]]] = {}
    _named: ClassVar[int] = 0
    _initial: ClassVar[int] = 0
    _checked: ClassVar[tuple[Field[Any], ...]] = ()
    _bits: int

    def __init_subclass__(cls, *, size: int | None = None) -> None:
        super().__init_subclass__()
        own = {name: value for name, value in vars(cls).items() if isinstance(value, Field)}
        cls.FIELDS = {**cls.FIELDS, **own}
        top = max((f.lo + f.width for f in cls.FIELDS.values()), default=0)
        cls.SIZE_BYTES = max(cls.SIZE_BYTES, (top + 31) // 32 * 4) if size is None else size
        if top > cls.SIZE_BYTES * 8:
            raise SpecError(f"{cls.__name__}: fields reach bit {top - 1}, size is {cls.SIZE_BYTES} bytes")
        cls._named = _claim(cls.__name__, cls.FIELDS.values())
        cls._checked = tuple(f for f in cls.FIELDS.values() if f.can_fail)
        cls._initial = 0
        for field in cls.FIELDS.values():
            cls._initial |= field.initial << field.lo

    def __init__(self, **values: object) -> None:
        """Fields by name; the others hold their default. Raises FieldError, TypeError for an unknown name."""
        object.__setattr__(self, "_bits", self._merged(self._initial, values))

    @classmethod
    def _merged(cls, word: int, values: Mapping[str, object]) -> int:
        for name, value in values.items():
            if name not in cls.FIELDS:
                raise TypeError(f"{cls.__name__} has no field {name!r}; it has {', '.join(cls.FIELDS)}")
            field = cls.FIELDS[name]
            word = word & ~field.mask | field.encode(value) << field.lo
        return word

    def replace(self, **values: object) -> Self:
        """A copy with some fields changed."""
        return self._of(self._merged(self._bits, values))

    @classmethod
    def _of(cls, word: int) -> Self:
        self = cls.__new__(cls)
        object.__setattr__(self, "_bits", word)
        return self

    # ---- bits in and out

    @classmethod
    def from_int(cls, word: int) -> Self:
        """From all bits as one number. Raises FieldError when a field's bits mean nothing."""
        if not 0 <= word < 1 << (8 * cls.SIZE_BYTES):
            raise FieldError(f"{cls.__name__}: 0x{word:x} does not fit {cls.SIZE_BYTES} bytes")
        for field in cls._checked:
            field.decode((word & field.mask) >> field.lo)
        return cls._of(word)

    @classmethod
    def unpack(cls, data: bytes | bytearray | memoryview, offset: int = 0) -> Self:
        """From SIZE_BYTES bytes at an offset. Raises FieldError when there are fewer."""
        piece = bytes(data[offset : offset + cls.SIZE_BYTES])
        if offset < 0 or len(piece) < cls.SIZE_BYTES:
            raise FieldError(f"{cls.__name__} needs {cls.SIZE_BYTES} bytes at offset {offset}, got {len(piece)}")
        return cls.from_int(int.from_bytes(piece, "little"))

    @classmethod
    def from_words(cls, words: Iterable[int]) -> Self:
        """From exactly SIZE_BYTES / 4 dwords. Raises FieldError."""
        listed = [int(w) for w in words]
        if 4 * len(listed) != cls.SIZE_BYTES:
            raise FieldError(f"{cls.__name__} has {cls.SIZE_BYTES // 4} dwords, got {len(listed)}")
        return cls.unpack(b"".join(w.to_bytes(4, "little") for w in listed))

    def to_int(self) -> int:
        """All bits as one number."""
        return self._bits

    __int__ = to_int

    def pack(self) -> bytes:
        """SIZE_BYTES bytes."""
        return self._bits.to_bytes(self.SIZE_BYTES, "little")

    def words(self) -> tuple[int, ...]:
        """The dwords, low first."""
        return tuple(self._bits >> (32 * i) & 0xFFFF_FFFF for i in range(self.SIZE_BYTES // 4))

    # ---- a plain immutable value

    @property
    def reserved(self) -> int:
        """The bits no field names, in place."""
        return self._bits & ~self._named

    def values(self) -> dict[str, Any]:
        """Every field's value by name, in declaration order."""
        return {name: getattr(self, name) for name in self.FIELDS}

    def __repr__(self) -> str:
        shown = [f"{name}={_show(getattr(self, name))}" for name, f in self.FIELDS.items()
                 if (self._bits & f.mask) >> f.lo != f.initial]
        if self.reserved:
            shown.append(f"reserved=0x{self.reserved:x}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def describe(self) -> str:
        """Every field on a line of its own."""
        width = max(map(len, self.FIELDS), default=0)
        return "\n".join(f"{name:{width}}  {_show(value)}" for name, value in self.values().items())

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._bits == other._bits

    def __hash__(self) -> int:
        return hash((type(self), self._bits))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; use replace({name}=...)")

    def __reduce__(self) -> tuple[Callable[[bytes], Self], tuple[bytes]]:
        return type(self).unpack, (self.pack(),)


def _claim(owner: str, fields: Iterable[Field[Any]]) -> int:
    """All bits named by fields. Raises SpecError when two that are no overlays share one."""
    named = exclusive = 0
    for field in fields:
        if not field.is_overlay:
            if exclusive & field.mask:
                raise SpecError(f"{owner}.{field.name}: bits {field.lo + field.width - 1}:{field.lo} are taken")
            exclusive |= field.mask
        named |= field.mask
    return named


def _show(value: object) -> str:
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}" if value.name else repr(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value) if -4096 < value < 4096 else f"{'-' if value < 0 else ''}0x{abs(value):x}"
    return repr(value)
