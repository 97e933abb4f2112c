# SPDX-License-Identifier: Apache-2.0
"""The entries of a table, with bulk inserts whose entries are materialised on first access.

A virtual network has a hundred thousand entries, most of which are never read: the switch core has them, and
the store a list of rows that the switches share.
"""

from __future__ import annotations

from collections.abc import Iterator

from tailrace.p4rt.status import Code, P4RtError
from tailrace.switch.core import EncodedEntry, EncodedTarget, StateError, V1ModelSwitch
from tailrace.switch.p4runtime.context import Context, from_state_error
from tailrace.switch.p4runtime.entities.entry import Identity, StoredEntry
from tailrace.switch.p4runtime.entities.interned import BulkEntry, InternedEntry
from tailrace.switch.p4runtime.entities.match import PackedKey
from tailrace.switch.p4runtime.entities.schema import TablePlan
from tailrace.switch.p4runtime.memory import entry_bytes


class EntryStore:
    """Entries by match and priority, and by handle."""

    def __init__(self, plan: TablePlan, what: str, context: Context) -> None:
        self.plan = plan
        self._what = what
        self._context = context
        self._entries: dict[Identity, StoredEntry] = {}
        self._by_handle: dict[int, StoredEntry] = {}
        self._unmaterialised: list[tuple[list[BulkEntry], list[int]]] = []
        self._top = 0  # above all handles

    @property
    def entries(self) -> dict[Identity, StoredEntry]:
        """All entries but the default one."""
        self._materialise()
        return self._entries

    @property
    def by_handle(self) -> dict[int, StoredEntry]:
        """The entries by handle."""
        self._materialise()
        return self._by_handle

    @property
    def _switch(self) -> V1ModelSwitch:
        return self._context.switch

    def identity(self, packed: PackedKey, priority: int) -> Identity:
        """The key of an entry in `entries`."""
        return packed.key if self.plan.key.only_exact else (packed.key, packed.mask, priority)

    def new_bulk_entry(self, interned: InternedEntry, priority: int, target: EncodedTarget) -> BulkEntry:
        """An element of `bulk_insert`, for all switches with the same pipeline."""
        packed = interned.packed
        row = EncodedEntry(packed.key, packed.mask, packed.prefix_bits, priority, target)
        return BulkEntry(self.plan.id, self.identity(packed, priority), priority, interned, row)

    def bulk_insert(self, entries: list[BulkEntry]) -> None:
        """Adds entries, all or none.

        Raises:
            P4RtError: an entry exists already, or the table is full.
        """
        identities = {entry.identity for entry in entries}
        if len(identities) < len(entries) or not identities.isdisjoint(self.entries):
            raise P4RtError(Code.ALREADY_EXISTS, f"{self._what} has such an entry already")
        index, switch = self.plan.index, self._switch
        size = sum(entry_bytes(entry.interned.packed.key) for entry in entries)
        self._context.memory.reserve(size, self._what)
        handles: list[int] = []
        try:
            handles = switch.table_bulk_insert(
                index, (entry.row for entry in entries), self._context.now_ns()
            )
            for entry, handle in zip(entries, handles, strict=True):
                if entry.interned.rates is not None:
                    switch.entry_meter_set(index, handle, entry.interned.rates)
        except StateError as error:
            for handle in handles:
                switch.table_delete(index, handle)
            self._context.memory.release(size)
            raise from_state_error(error) from error
        self._unmaterialised.append((entries, handles))
        self._top = max(self._top, max(handles) + 1)

    def _materialise(self) -> None:
        while self._unmaterialised:
            for bulk, handle in zip(*self._unmaterialised.pop(), strict=True):
                interned = bulk.interned
                entry = StoredEntry(
                    interned.packed,
                    bulk.priority,
                    interned.target,
                    handle,
                    meter=interned.rates,
                    interned=interned,
                )
                self._entries[bulk.identity] = self._by_handle[handle] = entry

    def forget(self) -> Iterator[None]:
        """Frees all entries, one at a time."""
        self._unmaterialised.clear()
        self._by_handle.clear()
        while self._entries:
            self._entries.popitem()
            yield
