"""Packets of thread traces as values: a class for every packet of every layout, made from the tables of `layouts`.

    p = GFX11.INST(delta=1, wave=3, op=0x21)      # from stuntgpu.sqtt.layouts import GFX11
    p.op, p.bits, p                               # 33, 20, INST(delta=1, wave=3, op=0x21)

A packet is its bits: two are equal when class and bits are. Bits that no field names are kept, and
shown as `unnamed`. A packet does not know where or when it was seen; `decode.Entry` does.

Units:   positions and sizes in bits, bit 0 the lowest of the packet.
Errors:  FieldError for a value that does not fit its field or contradicts one that overlaps it, or
         makes another packet. SqttError for a buffer that is no trace. SpecError for a table that is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

from stuntgpu.isa.errors import SpecError
from stuntgpu.isa.fields import FieldError

#: Low bits of a window that say which packet it is.
CODE_BITS = 8

#: How a packet moves the clock (`Packet.TIME`).
#:   none    not at all
#:   delta   by its delta; "delta+4" by 4 more, "delta*4" by four times it
#:   mark    by its delta, unless rt is set and pl is not: then delta is a sample of the real-time clock
#:   clock   sets it from an absolute timestamp
TIME_RULES = ("none", "delta", "delta+4", "delta*4", "mark", "clock")


class SqttError(ValueError):
    """A buffer that is no trace, or stops being one; `offset` is where, in bits (None: nowhere)."""

    def __init__(self, reason: str, offset: int | None = None) -> None:
        super().__init__(reason if offset is None else f"bit {offset:#x}: {reason}")
        self.reason, self.offset = reason, offset

    def __reduce__(self) -> tuple[type[SqttError], tuple[str, int | None]]:
        return SqttError, (self.reason, self.offset)


@dataclass(frozen=True, slots=True)
class PacketField:
    """Bits [lo + width - 1 : lo] of a packet."""

    name: str
    lo: int
    width: int

    @property
    def max(self) -> int:
        return (1 << self.width) - 1

    def read(self, word: int) -> int:
        return word >> self.lo & self.max


class Packet:
    """One packet: `word` is all of its bits. Classes are made by `Layout`; their names are those of FORMAT.md.

    NAME     "INST".
    LAYOUT   the layout it belongs to.
    BITS     length.
    MATCH    the lowest MATCH_BITS bits, the same in every packet of the class.
    FIELDS   fields by name, in order.
    TIME     how it moves the clock, one of TIME_RULES.
    """

    __slots__ = ("word",)

    NAME: ClassVar[str] = ""
    LAYOUT: ClassVar[Layout]
    BITS: ClassVar[int] = 0
    MATCH: ClassVar[int] = 0
    MATCH_BITS: ClassVar[int] = 0
    FIELDS: ClassVar[Mapping[str, PacketField]] = {}
    TIME: ClassVar[str] = "none"
    NAMED: ClassVar[int] = 0  # bits that the match or a field covers

    word: int

    def __init__(self, *, unnamed: int = 0, **values: int) -> None:
        word = self.MATCH | unnamed
        if unnamed < 0 or unnamed & self.NAMED or unnamed >> self.BITS:
            raise FieldError(f"{self.NAME}.unnamed: {unnamed:#x} is not only bits without a name")
        for name, value in values.items():
            field = self._field(name)
            if not 0 <= value <= field.max:
                raise FieldError(f"{self.NAME}.{name}: {value} is not in 0..{field.max}")
            word |= value << field.lo
        for name, value in values.items():
            if self.FIELDS[name].read(word) != value:
                raise FieldError(f"{self.NAME}.{name}: {value:#x} contradicts a field it overlaps")
        self._check_class(word)
        _set_word(self, word)

    @classmethod
    def _field(cls, name: str) -> PacketField:
        field = cls.FIELDS.get(name)
        if field is None:
            raise FieldError(f"{cls.LAYOUT.name} {cls.NAME} has no field {name!r}; it has: {', '.join(cls.FIELDS)}")
        return field

    @classmethod
    def _check_class(cls, word: int) -> None:
        kind = cls.LAYOUT.kind_of(word)
        if kind is not cls and cls is not cls.LAYOUT.unknown:  # a unit of UNKNOWN is so for what follows it
            raise FieldError(f"{cls.LAYOUT.name} {cls.NAME}: {word:#x} reads as {kind.NAME}")

    @classmethod
    def from_word(cls, word: int) -> Self:
        """The packet with exactly these bits. Raises FieldError when they are another packet's."""
        if word < 0 or word >> cls.BITS:
            raise FieldError(f"{cls.NAME}: {word:#x} has more than {cls.BITS} bits")
        cls._check_class(word)
        return cls._made(word)

    @classmethod
    def _made(cls, word: int) -> Self:
        """The packet with these bits, which the caller knows to be of this class."""
        packet = object.__new__(cls)
        _set_word(packet, word)
        return packet

    @property
    def bits(self) -> int:
        """Length."""
        return self.BITS

    @property
    def fields(self) -> dict[str, int]:
        """Values of all fields by name."""
        word = self.word
        return {f.name: word >> f.lo & f.max for f in self.FIELDS.values()}

    @property
    def unnamed(self) -> int:
        """The bits that no field names, in place."""
        return self.word & ~self.NAMED

    def replace(self, **values: int) -> Self:
        """A copy with other values of some fields. Raises FieldError."""
        word = self.word
        for name, value in values.items():
            field = self._field(name)
            if not 0 <= value <= field.max:
                raise FieldError(f"{self.NAME}.{name}: {value} is not in 0..{field.max}")
            word = word & ~(field.max << field.lo) | value << field.lo
        return self.from_word(word)

    def __getattr__(self, name: str) -> int:
        field = type(self).FIELDS.get(name)
        if field is None:
            raise AttributeError(f"{self.LAYOUT.name} {self.NAME} has no field {name!r}")
        return field.read(self.word)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{self.NAME} is immutable; use replace({name}=...)")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, Packet) and other.word == self.word

    def __hash__(self) -> int:
        return hash((type(self), self.word))

    def __repr__(self) -> str:
        shown = [f"{name}={_number(value)}" for name, value in self.fields.items() if value or name == "delta"]
        if self.unnamed:
            shown.append(f"unnamed={self.unnamed:#x}")
        return f"{self.NAME}({', '.join(shown)})"

    def __reduce__(self) -> tuple[object, tuple[str, str, int]]:
        return packet_of, (self.LAYOUT.name, self.NAME, self.word)


_set_word = Packet.__dict__["word"].__set__


def _number(value: int) -> str:
    return str(value) if value < 10 else f"{value:#x}"


def packet_of(layout: str, name: str, word: int) -> Packet:
    """The packet of a layout by names and bits. Raises KeyError for names there are not, FieldError."""
    return LAYOUTS[layout][name].from_word(word)


#: Every layout made, by name.
LAYOUTS: dict[str, Layout] = {}


class Layout:
    """All packets of one generation; `layout.INST` and `layout["INST"]` are their classes.

    name       "gfx11", "gfx12" or "gfx9".
    unit       what lengths and positions are multiples of, in bits.
    clock_step cycles its clock counts in.
    added_bits length of what is put before the hardware's buffer by who saves it: its pointer does not count that.
    kinds      the classes in order of the table; their index is the type number of `decode.Stream`.
               The last is UNKNOWN, one unit of something that no packet starts with.
    by_code    class for each value of the low CODE_BITS bits.
    """

    def __init__(self, name: str, unit: int, table: str, *, clock_step: int = 1, added_bits: int = 0) -> None:
        self.name, self.unit, self.clock_step, self.added_bits = name, unit, clock_step, added_bits
        rows = [line for line in table.splitlines() if line.strip()]
        kinds = [self._kind(row) for row in rows]
        self.unknown = self._kind(f"UNKNOWN - {unit} none")
        self.kinds: tuple[type[Packet], ...] = (*kinds, self.unknown)
        self._by_name = {k.NAME: k for k in self.kinds}
        if len(self._by_name) != len(self.kinds):
            raise SpecError(f"{name}: two packets have one name")
        self.by_code = tuple(self._match(code) for code in range(1 << CODE_BITS))
        LAYOUTS[name] = self

    def _kind(self, row: str) -> type[Packet]:
        """The class of a row: NAME MATCH BITS TIME FIELD=LO+WIDTH..."""
        name, match, bits, time, *items = row.split()
        fields = {f.name: f for f in map(_parse_field, items)}
        match_bits = 0 if match == "-" else len(match)
        named = (1 << match_bits) - 1
        for f in fields.values():
            named |= f.max << f.lo
        if time not in TIME_RULES or int(bits) % self.unit or named >> int(bits):
            raise SpecError(f"{self.name} {name}: {row}")
        members = {"__slots__": (), "NAME": name, "LAYOUT": self, "BITS": int(bits), "FIELDS": fields, "TIME": time,
                   "MATCH": int(match, 2) if match_bits else 0, "MATCH_BITS": match_bits, "NAMED": named}
        return type(name, (Packet,), members)

    def _match(self, code: int) -> type[Packet]:
        """The class whose match fits and is longest. Raises SpecError when two are."""
        fitting = [k for k in self.kinds if k.MATCH_BITS and not (code ^ k.MATCH) & ((1 << k.MATCH_BITS) - 1)]
        fitting.sort(key=lambda k: k.MATCH_BITS, reverse=True)
        if len(fitting) > 1 and fitting[0].MATCH_BITS == fitting[1].MATCH_BITS:
            raise SpecError(f"{self.name}: {code:#x} is {fitting[0].NAME} and {fitting[1].NAME}")
        return fitting[0] if fitting else self.unknown

    def kind_of(self, word: int) -> type[Packet]:
        """Class of the packet that these bits start with; UNKNOWN when none does."""
        return self.by_code[word & ((1 << CODE_BITS) - 1)]

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """Type number by name."""
        return {k.NAME: i for i, k in enumerate(self.kinds)}

    @cached_property
    def longest(self) -> int:
        """Length of the longest packet."""
        return max(k.BITS for k in self.kinds)

    def __getitem__(self, name: str) -> type[Packet]:
        """The class called `name`. Raises KeyError."""
        if name not in self._by_name:
            raise KeyError(f"{self.name} has no packet {name!r}; it has: {', '.join(self._by_name)}")
        return self._by_name[name]

    def __getattr__(self, name: str) -> type[Packet]:
        kinds: Mapping[str, type[Packet]] = self.__dict__.get("_by_name", {})
        if name not in kinds:
            raise AttributeError(f"layout has no packet {name!r}")
        return kinds[name]

    def __iter__(self) -> Iterator[type[Packet]]:
        return iter(self.kinds)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __repr__(self) -> str:
        return f"<layout {self.name}>"

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return LAYOUTS.__getitem__, (self.name,)


def _parse_field(text: str) -> PacketField:
    name, _, place = text.partition("=")
    lo, _, width = place.partition("+")
    return PacketField(name, int(lo), int(width))
