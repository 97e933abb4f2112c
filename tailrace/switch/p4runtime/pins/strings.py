# SPDX-License-Identifier: Apache-2.0
"""Strings of types with @p4runtime_translation to sdn_string (P4Runtime specification 8.4.6 and 18).

A string gets a number with the first successful write that has it: a decimal number its value if free, the
empty string 0, all others the lowest free number from 1 on. So ports can be called by their numbers, and VRFs
by any names. A number without a string is read as a decimal number. When the quota is used up, the numbers of
strings that no entity has are freed (mark and sweep: state.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.p4rt.status import Code, P4RtError, invalid

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
        """Raises:
        P4RtError: INVALID_ARGUMENT: the type is too wide.
        """
        if bits > MAX_BITS:
            raise invalid(f"P4Info: type {type_name} has {bits} bits; strings stand for {MAX_BITS} at most")
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
