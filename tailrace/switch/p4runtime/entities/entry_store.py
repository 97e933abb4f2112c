# SPDX-License-Identifier: Apache-2.0
"""The entries of a table, many of which may be added at once: those are made when somebody looks.

A network has a hundred thousand entries, most of which nobody ever reads: the switch has them, and here is a
list of what they say, which the switches share.
"""

from __future__ import annotations

from collections.abc import Iterator

from tailrace.p4rt.status import Code, P4RtError
from tailrace.switch.core import Row, RowTarget, StateError, Switch
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
        self._filled: list[tuple[list[BulkEntry], list[int]]] = []
        self._top = 0  # above all handles

    @property
    def entries(self) -> dict[Identity, StoredEntry]:
        """All entries but the default one."""
        self._make_filled()
        return self._entries

    @property
    def by_handle(self) -> dict[int, StoredEntry]:
        """The same by handle."""
        self._make_filled()
        return self._by_handle

    @property
    def _switch(self) -> Switch:
        return self._context.switch

    def identity(self, packed: PackedKey, priority: int) -> Identity:
        """What an entry is found by."""
        return packed.key if self.plan.key.only_exact else (packed.key, packed.mask, priority)

    def new_plain(self, form: InternedEntry, priority: int, target: RowTarget) -> BulkEntry:
        """What `fill` takes, for this table of every switch with the same pipeline."""
        packed = form.packed
        row = Row(packed.key, packed.mask, packed.prefix_bits, priority, target)
        return BulkEntry(self.plan.id, self.identity(packed, priority), priority, form, row)

    def fill(self, found: list[BulkEntry]) -> None:
        """Adds entries, all or none.

        Raises:
            P4RtError: one is there already, or there is no room.
        """
        identities = {one.identity for one in found}
        if len(identities) < len(found) or not identities.isdisjoint(self.entries):
            raise P4RtError(Code.ALREADY_EXISTS, f"{self._what} has such an entry already")
        index, switch = self.plan.index, self._switch
        size = sum(entry_bytes(one.form.packed.key) for one in found)
        self._context.memory.take(size, self._what)
        handles: list[int] = []
        try:
            handles = switch.table_fill(index, (one.row for one in found), self._context.now_ns())
            for one, handle in zip(found, handles, strict=True):
                if one.form.rates is not None:
                    switch.entry_meter_set(index, handle, one.form.rates)
        except StateError as error:
            for handle in handles:
                switch.table_delete(index, handle)
            self._context.memory.give(size)
            raise from_state_error(error) from error
        self._filled.append((found, handles))
        self._top = max(self._top, max(handles) + 1)

    def _make_filled(self) -> None:
        while self._filled:
            for one, handle in zip(*self._filled.pop(), strict=True):
                form = one.form
                entry = StoredEntry(
                    form.packed, one.priority, form.target, handle, meter=form.rates, form=form
                )
                self._entries[one.identity] = self._by_handle[handle] = entry

    def forget(self) -> Iterator[None]:
        """Forgets all entries, one at a time."""
        self._filled.clear()
        self._by_handle.clear()
        while self._entries:
            self._entries.popitem()
            yield
