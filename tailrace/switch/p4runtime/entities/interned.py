# SPDX-License-Identifier: Apache-2.0
"""What entries were written as, parsed once for all switches that share a pipeline.

The switches of a network hold much the same: of a hundred thousand entries a few thousand differ.
"""

from __future__ import annotations

from dataclasses import dataclass

from finsy.proto import p4r

from tailrace.switch.core import MeterRates, Row, RowTarget
from tailrace.switch.p4runtime.entities.actions import ActionSpec
from tailrace.switch.p4runtime.entities.match import PackedKey

MOST_BYTES = 512
"""Longer messages are not kept."""

MOST_KEPT = 1 << 14
"""Forms of one table that are kept; beyond, all are forgotten."""

BULK_FIELDS = {"table_id", "match", "action", "priority", "meter_config"}
"""All that a plain entry says."""

MOST_SHARED = 1 << 20
"""Messages that are kept; beyond, all are forgotten."""


@dataclass(slots=True)
class InternedEntry:
    """What a TableEntry says, in a table whose entries have actions of their own.

    `shown` is what a Read answers for key, priority and action alone, once one has asked.
    """

    packed: PackedKey
    target: ActionSpec
    rates: MeterRates | None
    shown: p4r.Entity | None = None


@dataclass(frozen=True, slots=True)
class BulkEntry:
    """An entry with nothing beside key, priority, action and meter, as its table and the switch take it."""

    table: int
    identity: bytes | tuple[bytes, bytes, int]
    priority: int
    interned: InternedEntry
    row: Row


SharedMessage = tuple[p4r.Entity, BulkEntry | None]
"""A message that the switches of a network share and nobody changes, and what it says if it is plain."""


class InternTable:
    """The forms of one table, by the octets of the TableEntry, all of which have been checked."""

    def __init__(self) -> None:
        self._kept: dict[bytes, InternedEntry] = {}
        self._calls: dict[bytes, tuple[ActionSpec, RowTarget]] = {}

    def find(self, octets: bytes) -> InternedEntry | None:
        """The form of a message that was met before."""
        return self._kept.get(octets)

    def call(self, octets: bytes) -> tuple[ActionSpec, RowTarget] | None:
        """What an action says, by the octets of the TableAction, of entries that are filled in."""
        return self._calls.get(octets)

    def keep_call(self, octets: bytes, spec: ActionSpec, target: RowTarget) -> None:
        """Remembers an action."""
        if len(octets) > MOST_BYTES:
            return
        if len(self._calls) >= MOST_KEPT:
            self._calls.clear()
        self._calls[octets] = (spec, target)

    def forget(self) -> None:
        """Forgets all, as what they say may mean something else from now on."""
        self._kept.clear()
        self._calls.clear()

    def keep(self, octets: bytes, entry: InternedEntry) -> None:
        """Remembers a form."""
        if len(octets) > MOST_BYTES:
            return
        if len(self._kept) >= MOST_KEPT:
            self._kept.clear()
        self._kept[octets] = entry
