# SPDX-License-Identifier: Apache-2.0
"""Interned entries: TableEntry messages, parsed once for all switches with the same pipeline.

The switches of a network have many equal entries: of a hundred thousand a few thousand differ.
"""

from __future__ import annotations

from dataclasses import dataclass

from finsy.proto import p4r

from tailrace.switch.core import EncodedEntry, EncodedTarget, MeterRates
from tailrace.switch.p4runtime.entities.actions import ActionSpec
from tailrace.switch.p4runtime.entities.match import PackedKey

MOST_BYTES = 512
"""Longer messages are not interned."""

MOST_KEPT = 1 << 14
"""Interned entries of one table; one more clears the table."""

BULK_FIELDS = {"table_id", "match", "action", "priority", "meter_config"}
"""The fields of a TableEntry that bulk inserts support."""

MOST_SHARED = 1 << 20
"""Messages that are cached; one more clears the cache."""


@dataclass(slots=True)
class InternedEntry:
    """A parsed TableEntry of a direct table.

    `shown`: the entity in the response to a Read of key, priority and action, once it was made.
    """

    packed: PackedKey
    target: ActionSpec
    rates: MeterRates | None
    shown: p4r.Entity | None = None


@dataclass(frozen=True, slots=True)
class BulkEntry:
    """An entry with key, priority, action and meter only, for `bulk_insert` and the switch core."""

    table: int
    identity: bytes | tuple[bytes, bytes, int]
    priority: int
    interned: InternedEntry
    row: EncodedEntry


SharedMessage = tuple[p4r.Entity, BulkEntry | None]
"""An immutable message that the switches of a network share, and its bulk entry; None: it has none."""


class InternTable:
    """The interned entries of one table, by the octets of valid TableEntry messages."""

    def __init__(self) -> None:
        self._kept: dict[bytes, InternedEntry] = {}
        self._calls: dict[bytes, tuple[ActionSpec, EncodedTarget]] = {}

    def find(self, octets: bytes) -> InternedEntry | None:
        """The interned entry of a message."""
        return self._kept.get(octets)

    def call(self, octets: bytes) -> tuple[ActionSpec, EncodedTarget] | None:
        """The parsed action of bulk entries, by the octets of the TableAction."""
        return self._calls.get(octets)

    def keep_call(self, octets: bytes, spec: ActionSpec, target: EncodedTarget) -> None:
        """Interns an action."""
        if len(octets) > MOST_BYTES:
            return
        if len(self._calls) >= MOST_KEPT:
            self._calls.clear()
        self._calls[octets] = (spec, target)

    def forget(self) -> None:
        """Clears the table: strings may get other numbers."""
        self._kept.clear()
        self._calls.clear()

    def keep(self, octets: bytes, entry: InternedEntry) -> None:
        """Interns an entry."""
        if len(octets) > MOST_BYTES:
            return
        if len(self._kept) >= MOST_KEPT:
            self._kept.clear()
        self._kept[octets] = entry
