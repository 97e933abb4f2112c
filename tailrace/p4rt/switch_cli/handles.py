# SPDX-License-Identifier: Apache-2.0
"""Handles as BMv2 assigns them: the lowest free number, from 0."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from tailrace.p4rt.messages import p4r
from tailrace.spec import SpecError

_T = TypeVar("_T")
_SLOT_MASK = (1 << 24) - 1
_MOST_NUMBER = (1 << 32) - 1


@dataclass(slots=True)
class HandleEntry:
    """An entity, and the line of the command that wrote it."""

    line: int
    entity: p4r.Entity

    def update(self, kind: p4r.Update.Type.ValueType) -> tuple[int, p4r.Update]:
        """The line, and the update that makes the entity."""
        return self.line, p4r.Update(type=kind, entity=self.entity)


class Commands:
    """Carries out commands of one kind, and keeps their results; line: the line of the present command."""

    line = 0


@dataclass(slots=True)
class Handles(Generic[_T]):
    """Objects of one kind by handle.

    what: the kind of object, for messages; by_handle: the objects
    versioned: the highest byte of a handle counts how often its slot, the lower 24 bits, was freed, as for
        table entries
    """

    what: str
    versioned: bool = False
    by_handle: dict[int, _T] = field(default_factory=dict)
    _versions: dict[int, int] = field(default_factory=dict)
    _free: list[int] = field(default_factory=list)
    _next: int = 0

    def add(self, item: _T) -> int:
        """Adds an object; returns its handle."""
        if self._free:
            slot = heapq.heappop(self._free)
        else:
            slot, self._next = self._next, self._next + 1
        handle = (self._versions.get(slot, 0) & 0xFF) << 24 | slot
        self.by_handle[handle] = item
        return handle

    def parse(self, text: str) -> int:
        """Parses a handle. Raises SpecError if no object has it."""
        handle = number(text, "handle")
        if handle not in self.by_handle:
            raise SpecError(f"no {self.what} of this file has the handle {handle}")
        return handle

    def get(self, text: str) -> _T:
        """The object with a handle. Raises SpecError as `parse`."""
        return self.by_handle[self.parse(text)]

    def take(self, handle: int) -> _T:
        """Removes the object with a handle, and returns it."""
        slot = handle & _SLOT_MASK
        if self.versioned:
            self._versions[slot] = self._versions.get(slot, 0) + 1
        heapq.heappush(self._free, slot)
        return self.by_handle.pop(handle)


def number(text: str, what: str, most: int = _MOST_NUMBER) -> int:
    """Parses a whole number, decimal or 0x. Raises SpecError."""
    if len(text) <= 20 and text.isascii():
        try:
            value = int(text, 16 if text[:2] in ("0x", "0X") else 10)
        except ValueError:
            value = -1
        if 0 <= value <= most:
            return value
    raise SpecError(f"{what}: {text[:40]!r} is not a whole number from 0 to {most}")
