# SPDX-License-Identifier: Apache-2.0
"""Strings of types with @p4runtime_translation to sdn_string (P4Runtime specification 8.4.6 and 18).

The first successful write with a string maps it to a number, the value in the data plane: a decimal string to
its value, if that is free; the empty string to 0; any other string to the lowest free number from 1 on. So
clients can name ports by their numbers, and VRFs by any name. A number without a string is sent to clients as
its decimal string. If the quota is used up, numbers whose strings no entity uses are freed by mark and sweep
(state.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.p4rt.status import Code, P4RtError, invalid

MAX_BITS = 512
"""Largest width of a translated type: its numbers are converted to decimal, which is slow for wider ones."""
MAX_NAME = 256
"""Largest length of a string, in bytes."""
MAX_NAMES = 1 << 18
"""Largest number of strings of a pipeline, over all types."""


@dataclass(slots=True)
class StringQuota:
    """How many more strings a pipeline may have; `full`: a string was rejected since the flag was cleared."""

    remaining: int = MAX_NAMES
    full: bool = False


class SdnStrings:
    """The strings of one type and their numbers; `bits`: width in the data plane."""

    __slots__ = ("_free", "_marked", "_names", "_numbers", "_quota", "bits", "type_name")

    def __init__(self, type_name: str, bits: int, quota: StringQuota | None = None) -> None:
        """Raises:
        P4RtError: INVALID_ARGUMENT: the type is too wide.
        """
        if bits > MAX_BITS:
            raise invalid(
                f"P4Info: type {type_name} has {bits} bits; types of sdn_string have {MAX_BITS} at most"
            )
        self.type_name = type_name
        self._quota = quota or StringQuota()
        self.bits = bits
        self._numbers: dict[bytes, int] = {}
        self._names: dict[int, bytes] = {}
        self._free = 1  # no number from 1 to below this one is free
        self._marked: set[int] | None = None

    def mark(self) -> None:
        """From now until `sweep`, marks the numbers that are used."""
        self._marked = set()

    def sweep(self, *, cancel: bool = False) -> None:
        """Finishes marking, and frees the numbers not used since `mark`, or none if `cancel` is set."""
        marked, self._marked = self._marked, None
        if marked is not None and not cancel:
            for name, number in tuple(self._numbers.items()):
                if number not in marked:
                    self._forget(name, number)

    def _forget(self, name: bytes, number: int) -> None:
        self._numbers.pop(name)
        del self._names[number]
        self._free = min(self._free, number or self._free)
        self._quota.remaining += 1

    def _mark_used(self, number: int) -> int:
        if self._marked is not None:
            self._marked.add(number)
        return number

    def look_up(self, name: bytes) -> int | None:
        """The number of a string, or its decimal value if that is free; allocates none. None: neither."""
        number = self._numbers.get(name)
        if number is None and len(name) <= MAX_NAME:
            number = self._preferred(name)
            return None if number in self._names else number
        return number if number is None else self._mark_used(number)

    def to_wire(self, name: bytes, what: str) -> int:
        """The number of a string, allocated if needed.

        Raises:
            P4RtError: INVALID_ARGUMENT: it is no UTF-8 or too long; RESOURCE_EXHAUSTED: no number is free.
        """
        known = self._numbers.get(name)
        if known is not None:
            return self._mark_used(known)
        if len(name) > MAX_NAME:
            raise invalid(f"{what}: the string has {len(name)} bytes; the limit is {MAX_NAME}")
        try:
            name.decode()
        except UnicodeDecodeError as error:
            raise invalid(f"{what}: the string is not UTF-8") from error
        number = self._preferred(name)
        if number is None or number in self._names:
            number = self._lowest_free(what)
        if self._quota.remaining <= 0:
            self._quota.full = True
            raise P4RtError(Code.RESOURCE_EXHAUSTED, f"{what}: the pipeline has {MAX_NAMES} strings already")
        self._quota.remaining -= 1
        self._numbers[name] = number
        self._names[number] = name
        return self._mark_used(number)

    def to_sdn(self, number: int) -> bytes:
        """The string of a number."""
        self._mark_used(number)
        return self._names.get(number) or (b"" if number in self._names else b"%d" % number)

    @property
    def nearly_full(self) -> bool:
        """Whether fewer strings can be added than 1/8 of the numbers, or of MAX_NAMES if that is less."""
        limit = min(1 << self.bits, MAX_NAMES)
        return 8 * min(limit - len(self._names), self._quota.remaining) < limit

    @property
    def count(self) -> int:
        """How many strings have a number."""
        return len(self._numbers)

    def roll_back(self, count: int) -> None:
        """Frees the numbers of all strings but the oldest `count`; no entity may use the freed ones."""
        while len(self._numbers) > count:
            last = next(reversed(self._numbers))
            self._forget(last, self._numbers[last])

    def adopt(self, other: SdnStrings) -> None:
        """Copies the strings of another pipeline's type of this width, if this type has no strings yet."""
        if not self._numbers and other.bits == self.bits:
            self._numbers, self._names, self._free = dict(other._numbers), dict(other._names), other._free
            self._quota.remaining -= len(self._numbers)

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
        self._quota.full = True
        raise P4RtError(
            Code.RESOURCE_EXHAUSTED,
            f"{what}: type {self.type_name} has {len(self._names)} strings already, and no free number",
        )
