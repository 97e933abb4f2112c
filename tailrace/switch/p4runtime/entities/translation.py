# SPDX-License-Identifier: Apache-2.0
"""Values of types with @p4runtime_translation (P4Runtime specification 8.4.6 and 18).

Numbers (sdn_bitwidth) are the same in messages and data plane, and must fit both. A string (sdn_string) gets
a number with the first successful write that has it: a decimal number its value if free, the empty string 0,
all others the lowest free number from 1 on. So ports can be called by their numbers, and VRFs by any names. A
number without a string is read as a decimal number. When the quota is used up, the numbers of strings that
no entity has are freed (mark and sweep: state.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from finsy.proto import p4t

from tailrace.p4rt.status import Code, P4RtError, invalid
from tailrace.switch.p4runtime.entities.bytestring import decode, encode

MAX_BITS = 512
"""Width of types with strings: numbers are shown in decimal, which is slow for wider ones."""
MAX_NAME = 256
"""Bytes of a string."""
MAX_NAMES = 1 << 18
"""Strings of all types of a pipeline."""


@dataclass(slots=True)
class StringQuota:
    """How many more strings fit; `full`: one was rejected."""

    left: int = MAX_NAMES
    full: bool = False


class SdnStrings:
    """The strings of one type and their numbers; `bits`: width in the data plane."""

    __slots__ = ("_free", "_marked", "_names", "_numbers", "_room", "bits", "type_name")

    def __init__(self, type_name: str, bits: int, room: StringQuota | None = None) -> None:
        self.type_name = type_name
        self._room = room or StringQuota()
        self.bits = bits
        self._numbers: dict[bytes, int] = {}
        self._names: dict[int, bytes] = {}
        self._free = 1
        self._marked: set[int] | None = None

    def mark(self) -> None:
        """Starts marking the numbers that are used, until `sweep`."""
        self._marked = set()

    def sweep(self, *, none: bool) -> None:
        """Frees the numbers of all strings not used since `mark`; with `none`, of none."""
        marked, self._marked = self._marked, None
        if marked is not None and not none:
            for name, number in tuple(self._numbers.items()):
                if number not in marked:
                    self._forget(name, number)

    def _forget(self, name: bytes, number: int) -> None:
        self._numbers.pop(name)
        del self._names[number]
        self._free = min(self._free, number or self._free)
        self._room.left += 1

    def _used(self, number: int) -> int:
        if self._marked is not None:
            self._marked.add(number)
        return number

    def known(self, name: bytes) -> int | None:
        """The number of a string, for lookups: allocated before, or its decimal value; None: neither."""
        number = self._numbers.get(name)
        if number is None and len(name) <= MAX_NAME:
            number = self._preferred(name)
            return None if number in self._names else number
        return number if number is None else self._used(number)

    def to_wire(self, name: bytes, what: str) -> int:
        """The number of a string, allocated if needed.

        Raises:
            P4RtError: INVALID_ARGUMENT: it is no UTF-8 or too long; RESOURCE_EXHAUSTED: no number is free.
        """
        known = self._numbers.get(name)
        if known is not None:
            return self._used(known)
        if len(name) > MAX_NAME:
            raise invalid(f"{what}: the string has {len(name)} bytes, at most {MAX_NAME} are taken")
        try:
            name.decode()
        except UnicodeDecodeError as error:
            raise invalid(f"{what}: the string is not UTF-8") from error
        number = self._preferred(name)
        if number is None or number in self._names:
            number = self._lowest_free(what)
        if self._room.left <= 0:
            self._room.full = True
            raise P4RtError(Code.RESOURCE_EXHAUSTED, f"{what}: there are {MAX_NAMES} strings already")
        self._room.left -= 1
        self._numbers[name] = number
        self._names[number] = name
        return self._used(number)

    def to_sdn(self, number: int) -> bytes:
        """The string of a number."""
        self._used(number)
        return self._names.get(number) or (b"" if number in self._names else b"%d" % number)

    @property
    def short(self) -> bool:
        """Whether 7/8 of the numbers, or of the quota, are used."""
        most = min(1 << self.bits, MAX_NAMES)
        return 8 * min(most - len(self._names), self._room.left) < most

    @property
    def count(self) -> int:
        """Strings with a number."""
        return len(self._numbers)

    def roll_back(self, count: int) -> None:
        """Frees the numbers of all strings but the first `count`; no entity may have them."""
        while len(self._numbers) > count:
            last = next(reversed(self._numbers))
            self._forget(last, self._numbers[last])

    def adopt(self, other: SdnStrings) -> None:
        """Copies the strings of another pipeline's type, if it has none."""
        if not self._numbers and other.bits == self.bits:
            self._numbers, self._names, self._free = dict(other._numbers), dict(other._names), other._free
            self._room.left -= len(self._numbers)

    def _preferred(self, name: bytes) -> int | None:
        """The preferred number of a string: 0 if empty, or its decimal value."""
        if not name:
            return 0
        # canonical, so that "07" is another string than "7"
        if name.isdigit() and name == b"%d" % int(name):
            number = int(name)
            return None if number >> self.bits else number
        return None

    def _lowest_free(self, what: str) -> int:
        if len(self._names) < 1 << self.bits:
            while self._free in self._names and not self._free >> self.bits:
                self._free += 1
            number = 0 if self._free >> self.bits else self._free
            if number not in self._names:
                return number
        self._room.full = True
        raise P4RtError(
            Code.RESOURCE_EXHAUSTED,
            f"{what}: there are {len(self._names)} strings of type {self.type_name} already",
        )


@dataclass(frozen=True, slots=True)
class Sdn:
    """The representation in messages: numbers of `bits`, at most those of the data plane, or strings."""

    bits: int
    names: SdnStrings | None = None

    def to_wire(self, data: bytes, what: str) -> int:
        """The data plane's value.

        Raises:
            P4RtError: INVALID_ARGUMENT, OUT_OF_RANGE or RESOURCE_EXHAUSTED.
        """
        return decode(data, self.bits, what) if self.names is None else self.names.to_wire(data, what)

    def to_sdn(self, number: int) -> bytes:
        """The value in messages."""
        return encode(number) if self.names is None else self.names.to_sdn(number)


class Savepoint(NamedTuple):
    """The state of the strings before a write: the number of the write, and strings by type."""

    write: int
    strings: tuple[int, ...]


@dataclass(slots=True)
class Translations:
    """The translated types of one pipeline.

    `parts`: types of which plans were made (p4types.py). `states`: forwarding states that use the strings.
    `batches`: batches under way that may be rolled back, and need the strings of deleted entities. `stale`:
    an entity was deleted or modified since the last sweep.
    """

    types: p4t.P4TypeInfo
    parts: int = 0
    states: int = 0
    batches: int = 0
    stale: bool = False
    _names: dict[str, SdnStrings] = field(default_factory=dict)
    _room: StringQuota = field(default_factory=StringQuota)
    _writes: int = 0

    def has_strings(self) -> bool:
        """Whether a type has strings."""
        return bool(self._names)

    def refused(self) -> bool:
        """Whether a string was rejected since the last call."""
        full, self._room.full = self._room.full, False
        return full

    def short(self) -> bool:
        """Whether a type is short of numbers."""
        return any(names.short for names in self._names.values())

    def may_sweep(self) -> bool:
        """Whether a sweep is possible and may free numbers."""
        return self.stale and self.states == 1 and not self.batches

    @contextmanager
    def marking(self) -> Iterator[None]:
        """Marks strings that are used within, and frees the numbers of all others."""
        self.stale = False
        for names in self._names.values():
            names.mark()
        done = False
        try:
            yield
            done = True
        finally:
            self._writes += 1  # batches that began before cannot roll strings back by count
            for names in self._names.values():
                names.sweep(none=not done)

    def keep(self, more: int = 1) -> None:
        """Starts or (-1) ends a batch that may be rolled back: deleted entities keep their strings."""
        self.batches += more
        for names in self._names.values():
            names.sweep(none=True)

    def begin(self) -> Savepoint:
        """Starts a write, which may allocate numbers."""
        self._writes += 1
        return Savepoint(self._writes, tuple(names.count for names in self._names.values()))

    def roll_back(self, mark: Savepoint, within: int = 0) -> bool:
        """Frees the numbers that a failed write has allocated since the savepoint.

        Args:
            within: writes that are parts of it. After writes of other clients, which may use its strings,
                nothing is freed.

        Returns:
            whether there were any.
        """
        now = tuple(names.count for names in self._names.values())
        if self._writes != mark.write + within or now == mark.strings:
            return False
        for names, count in zip(self._names.values(), mark.strings, strict=True):
            names.roll_back(count)
        return True

    def adopt(self, other: Translations) -> None:
        """Copies the strings of another pipeline, as its registers and tables have the numbers."""
        for type_name, names in self._names.items():
            if type_name in other._names:
                names.adopt(other._names[type_name])

    def translated(self, type_name: str) -> p4t.P4NewTypeTranslation | None:
        """The translation of a type; None: it has none."""
        if type_name not in self.types.new_types:
            return None
        new_type = self.types.new_types[type_name]
        return (
            new_type.translated_type if new_type.WhichOneof("representation") == "translated_type" else None
        )

    def sdn(self, type_name: str, bits: int) -> Sdn | None:
        """The representation in messages of a type with `bits` in the data plane; None: not translated."""
        translation = self.translated(type_name)
        if translation is None:
            return None
        if translation.WhichOneof("sdn_type") == "sdn_string":
            if bits > MAX_BITS:
                raise invalid(
                    f"P4Info: type {type_name} has {bits} bits; strings stand for {MAX_BITS} at most"
                )
            names = self._names.setdefault(type_name, SdnStrings(type_name, bits, self._room))
            if names.bits != bits:
                raise invalid(
                    "P4Info does not match the program: "
                    f"type {type_name} has {names.bits} and {bits} bits in the program"
                )
            return Sdn(bits, names)
        if not translation.sdn_bitwidth:
            raise invalid(f"P4Info: type {type_name} is translated to numbers of no width")
        return Sdn(min(translation.sdn_bitwidth, bits))
