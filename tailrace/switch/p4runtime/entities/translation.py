# SPDX-License-Identifier: Apache-2.0
"""Values of types with @p4runtime_translation: controllers write them otherwise than the data plane has them
(P4Runtime specification 8.4.6 and 18).

Numbers (sdn_bitwidth) are the same on both sides, and must fit both. Strings (sdn_string) have a number each,
from the first write that names them and comes to something: a decimal number has its own where that is free,
the empty string has 0, every other string the lowest number from 1 on that is free. So ports can be called by
their numbers, and VRFs, next hops and the like by any names. A number without a string is read as a decimal
number. When there is no room for one more string, those that no entity has any more lose theirs
(mark and sweep: state.py).
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
"""Bits of what strings stand for: a number is shown in decimal, which takes time for longer ones."""
MAX_NAME = 256
"""Bytes of a string."""
MAX_NAMES = 1 << 18
"""Strings of all types of a pipeline, so that a client cannot fill the memory with them."""


@dataclass(slots=True)
class StringQuota:
    """For how many more strings there is room; `full`: one was refused."""

    left: int = MAX_NAMES
    full: bool = False


class SdnStrings:
    """The strings of one type and their numbers, of `bits` in the data plane."""

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
        """From now on notes which numbers are used, until `sweep`."""
        self._marked = set()

    def sweep(self, *, none: bool) -> None:
        """Takes their numbers from all strings that were not used since `mark`; with `none` from none."""
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
        """The number of a string, which must have one, or be one: for what asks, and writes nothing."""
        number = self._numbers.get(name)
        if number is None and len(name) <= MAX_NAME:
            number = self._preferred(name)
            return None if number in self._names else number
        return number if number is None else self._used(number)

    def to_wire(self, name: bytes, what: str) -> int:
        """The number of a string, which it keeps.

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
        """Whether most numbers, or most of the room for strings, are taken."""
        most = min(1 << self.bits, MAX_NAMES)
        return 8 * min(most - len(self._names), self._room.left) < most

    @property
    def count(self) -> int:
        """How many strings have a number."""
        return len(self._numbers)

    def roll_back(self, count: int) -> None:
        """Takes their numbers from all strings but the first `count`, which nobody may use."""
        while len(self._numbers) > count:
            last = next(reversed(self._numbers))
            self._forget(last, self._numbers[last])

    def adopt(self, other: SdnStrings) -> None:
        """Takes over the strings of another pipeline's type, as long as there are none of its own."""
        if not self._numbers and other.bits == self.bits:
            self._numbers, self._names, self._free = dict(other._numbers), dict(other._names), other._free
            self._room.left -= len(self._numbers)

    def _preferred(self, name: bytes) -> int | None:
        """The number that a string asks for by itself."""
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
    """What controllers write: numbers of `bits`, at most those of the data plane, or strings."""

    bits: int
    names: SdnStrings | None = None

    def to_wire(self, data: bytes, what: str) -> int:
        """The data plane's value.

        Raises:
            P4RtError: INVALID_ARGUMENT, OUT_OF_RANGE or RESOURCE_EXHAUSTED.
        """
        return decode(data, self.bits, what) if self.names is None else self.names.to_wire(data, what)

    def to_sdn(self, number: int) -> bytes:
        """The controller's value."""
        return encode(number) if self.names is None else self.names.to_sdn(number)


class Savepoint(NamedTuple):
    """How far the strings were when something began: the number of its first write, and strings by type."""

    write: int
    strings: tuple[int, ...]


@dataclass(slots=True)
class Translations:
    """The types of one pipeline.

    `parts`: types within them that plans have been made of, each as often as it stands there (p4types.py).
    `states`: forwarding states that use them; `batches`: those under way that may be taken back, and need the
    strings of what they have deleted. `stale`: since the last sweep something was deleted or changed.
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
        """Whether a type is written as strings."""
        return bool(self._names)

    def refused(self) -> bool:
        """Whether there was no room for a string since this was asked last."""
        full, self._room.full = self._room.full, False
        return full

    def short(self) -> bool:
        """Whether there may soon be none."""
        return any(names.short for names in self._names.values())

    def may_sweep(self) -> bool:
        """Whether strings can be taken their numbers, and there may be some."""
        return self.stale and self.states == 1 and not self.batches

    @contextmanager
    def marking(self) -> Iterator[None]:
        """Within, whatever string is used is marked; at the end all others lose their numbers."""
        self.stale = False
        for names in self._names.values():
            names.mark()
        done = False
        try:
            yield
            done = True
        finally:
            self._writes += 1  # no batch that began before can take strings back by their count
            for names in self._names.values():
                names.sweep(none=not done)

    def keep(self, more: int = 1) -> None:
        """A batch that may be taken back begins, or (-1) ends: what it deletes keeps its strings."""
        self.batches += more
        for names in self._names.values():
            names.sweep(none=True)

    def begin(self) -> Savepoint:
        """Notes that somebody writes, who may give strings their numbers."""
        self._writes += 1
        return Savepoint(self._writes, tuple(names.count for names in self._names.values()))

    def roll_back(self, mark: Savepoint, within: int = 0) -> bool:
        """Takes the numbers from strings that got theirs since then, by a write that came to nothing.

        Args:
            within: writes that are parts of that one. If others have written meanwhile, who may have used
                its strings, they stay.

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
        """Takes over the strings of another pipeline, for registers and tables keep the numbers."""
        for type_name, names in self._names.items():
            if type_name in other._names:
                names.adopt(other._names[type_name])

    def translated(self, type_name: str) -> p4t.P4NewTypeTranslation | None:
        """What P4Info says of a type; None where it is not translated."""
        if type_name not in self.types.new_types:
            return None
        new_type = self.types.new_types[type_name]
        return (
            new_type.translated_type if new_type.WhichOneof("representation") == "translated_type" else None
        )

    def sdn(self, type_name: str, bits: int) -> Sdn | None:
        """How values of a type are written that has `bits` in the data plane; None: it is not translated."""
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
