# SPDX-License-Identifier: Apache-2.0
"""Values of types with @p4runtime_translation (P4Runtime specification 8.4.6 and 18).

A number (sdn_bitwidth) has the same value in messages and data plane, and must fit both widths. A string
(sdn_string) has a number in the data plane (pins/strings.py). A sweep frees the numbers of strings that no
entity uses.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from tailrace.p4rt.messages import p4t
from tailrace.p4rt.status import invalid
from tailrace.switch.p4runtime.entities.bytestring import decode, encode

if TYPE_CHECKING:
    from tailrace.switch.p4runtime.pins.strings import SdnStrings, StringQuota


class Sdn(msgspec.Struct, frozen=True):
    """How messages represent a type: as numbers of `bits` bits, at most the data plane's, or as strings."""

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
    """The state of the strings before a write: the write's serial number, the count of strings per type."""

    write: int
    strings: tuple[int, ...]


class Translations(msgspec.Struct):
    """The translated types of one pipeline.

    `parts`: how many types have plans (p4types.py). `states`: how many forwarding states use the strings.
    `batches`: how many batches are under way that may be rolled back, so that they need the strings of
    deleted entities. `stale`: an entity was deleted or modified since the last sweep, so a sweep may free
    strings.
    """

    types: p4t.P4TypeInfo
    parts: int = 0
    states: int = 0
    batches: int = 0
    stale: bool = False
    _names: dict[str, SdnStrings] = msgspec.field(default_factory=dict)
    _quota: StringQuota | None = None
    _writes: int = 0

    def has_strings(self) -> bool:
        """Whether a type has strings."""
        return bool(self._names)

    def refused(self) -> bool:
        """Whether a string was rejected since the last call."""
        if self._quota is None:
            return False
        full, self._quota.full = self._quota.full, False
        return full

    def nearly_full(self) -> bool:
        """Whether most numbers of a type, or most of the quota, are used."""
        return any(names.nearly_full for names in self._names.values())

    def may_sweep(self) -> bool:
        """Whether a sweep is possible and may free numbers."""
        return self.stale and self.states == 1 and not self.batches

    @contextmanager
    def marking(self) -> Iterator[None]:
        """Marks strings that are used within the context; then frees the numbers of all others."""
        self.stale = False
        for names in self._names.values():
            names.mark()
        done = False
        try:
            yield
            done = True
        finally:
            self._writes += 1  # invalidates savepoints: their counts of strings are no longer right
            for names in self._names.values():
                names.sweep(cancel=not done)

    def count_batch(self, more: int = 1) -> None:
        """Counts the start (1) or end (-1) of a batch that may be rolled back; cancels a sweep under way."""
        self.batches += more
        for names in self._names.values():
            names.sweep(cancel=True)

    def begin(self) -> Savepoint:
        """Starts a write, which may allocate numbers; returns the savepoint before it."""
        self._writes += 1
        return Savepoint(self._writes, tuple(names.count for names in self._names.values()))

    def roll_back(self, savepoint: Savepoint, within: int = 0) -> bool:
        """Frees the numbers that a failed write has allocated since the savepoint.

        It frees nothing if other clients have written since, as they may use the strings.

        Args:
            within: how many writes since the savepoint are parts of the failed write.

        Returns:
            whether numbers were freed.
        """
        now = tuple(names.count for names in self._names.values())
        if self._writes != savepoint.write + within or now == savepoint.strings:
            return False
        for names, count in zip(self._names.values(), savepoint.strings, strict=True):
            names.roll_back(count)
        return True

    def adopt(self, other: Translations) -> None:
        """Copies another pipeline's strings, so that registers and entries copied from it stay valid."""
        for type_name, names in self._names.items():
            if type_name in other._names:
                names.adopt(other._names[type_name])

    def translated(self, type_name: str) -> p4t.P4NewTypeTranslation | None:
        """The translation of a type; None: it is not translated."""
        if type_name not in self.types.new_types:
            return None
        new_type = self.types.new_types[type_name]
        return (
            new_type.translated_type if new_type.WhichOneof("representation") == "translated_type" else None
        )

    def sdn(self, type_name: str, bits: int) -> Sdn | None:
        """How messages represent a type of `bits` bits in the data plane; None: it is not translated."""
        translation = self.translated(type_name)
        if translation is None:
            return None
        if translation.WhichOneof("sdn_type") == "sdn_string":
            names = self._strings(type_name, bits)
            if names.bits != bits:
                raise invalid(
                    "P4Info does not match the program: "
                    f"type {type_name} has {names.bits} and {bits} bits in the program"
                )
            return Sdn(bits, names)
        if not translation.sdn_bitwidth:
            raise invalid(
                f"P4Info: type {type_name} is translated, but has neither sdn_string nor sdn_bitwidth"
            )
        return Sdn(min(translation.sdn_bitwidth, bits))

    def _strings(self, type_name: str, bits: int) -> SdnStrings:
        from tailrace.switch.p4runtime.pins.strings import SdnStrings, StringQuota

        if type_name not in self._names:
            self._quota = self._quota or StringQuota()
            self._names[type_name] = SdnStrings(type_name, bits, self._quota)
        return self._names[type_name]
