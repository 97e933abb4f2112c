# SPDX-License-Identifier: Apache-2.0
"""The entries of a table, with their direct counters and meters (P4Runtime specification 9.1, 9.3, 9.4)."""

from __future__ import annotations

from collections.abc import Iterator

from tailrace.p4rt.messages import p4r
from tailrace.p4rt.status import Code, P4RtError
from tailrace.switch.core import ColourCounts, MeterRates, V1ModelSwitch
from tailrace.switch.p4runtime.context import Context, Undo
from tailrace.switch.p4runtime.entities.entry import DEFAULT_HANDLE, StoredEntry
from tailrace.switch.p4runtime.entities.match import Identity
from tailrace.switch.p4runtime.entities.meters import (
    NOTHING_COUNTED,
    fill_colours,
    fill_config,
    fill_counter,
)
from tailrace.switch.p4runtime.entities.schema import TablePlan


class EntryStore:
    """The entries of a table with their direct counters and meters.

    Methods add functions that revert their changes to `undo`; None: not needed.
    `entries`: by match and priority, without the default entry. `by_handle`: the same by handle in the core.
    """

    def __init__(self, plan: TablePlan, context: Context) -> None:
        self.plan = plan
        self.entries: dict[Identity, StoredEntry] = {}
        self.by_handle: dict[int, StoredEntry] = {}
        self._what = f"table '{plan.name}'"
        self._context = context
        self._top = 0  # the highest handle so far, plus 1

    @property
    def _switch(self) -> V1ModelSwitch:
        return self._context.switch

    def forget(self) -> Iterator[None]:
        """Frees all entries, one at a time."""
        self.by_handle.clear()
        while self.entries:
            self.entries.popitem()
            yield

    def no_direct(self) -> P4RtError:
        """The error for access to the direct resources of an entry that has none."""
        return P4RtError(Code.UNIMPLEMENTED, f"{self._what}: a miss runs no action, and is not counted")

    @staticmethod
    def has_direct(entry: StoredEntry) -> bool:
        """Whether an entry has direct resources; a default entry without an action has none."""
        return entry.handle != DEFAULT_HANDLE or entry.target is not None

    def reset_direct(self, entry: StoredEntry, undo: Undo | None) -> None:
        """Resets the direct counter and meter of an entry."""
        self.set_meter(entry, None, undo)
        if self.plan.counter:
            self.set_counter(entry, p4r.CounterData(), undo)
        if self.plan.meter is not None:
            self.set_colours(entry, NOTHING_COUNTED, undo)

    def set_counter(self, entry: StoredEntry, data: p4r.CounterData, undo: Undo | None) -> None:
        """Sets the direct counter of an entry."""
        index, switch = self.plan.index, self._switch
        if undo is not None:
            old = switch.entry_counter(index, entry.handle)
            undo.append(lambda: switch.entry_counter_set(index, entry.handle, *old))
        switch.entry_counter_set(index, entry.handle, data.byte_count, data.packet_count)

    def set_meter(self, entry: StoredEntry, rates: MeterRates | None, undo: Undo | None) -> None:
        """Configures the direct meter of an entry; None: every packet is green."""
        if rates == entry.meter:
            return
        if undo is not None:
            old = entry.meter
            undo.append(lambda: self.set_meter(entry, old, None))
        self._switch.entry_meter_set(self.plan.index, entry.handle, rates)
        entry.meter = rates

    def colours(self, entry: StoredEntry) -> ColourCounts:
        """The per-colour counts of an entry's direct meter."""
        return self._switch.entry_colours(self.plan.index, entry.handle)

    def set_colours(self, entry: StoredEntry, counts: ColourCounts, undo: Undo | None) -> None:
        """Sets the per-colour counts of an entry's direct meter."""
        if undo is not None:
            old = self.colours(entry)
            undo.append(lambda: self.set_colours(entry, old, None))
        self._switch.entry_colours_set(self.plan.index, entry.handle, counts)

    def set_counts(self, entry: StoredEntry, message: p4r.TableEntry, undo: Undo | None) -> None:
        """Sets an entry's counts from a TableEntry message; counts of a meter can only be set to 0."""
        if message.HasField("counter_data"):
            self.set_counter(entry, message.counter_data, undo)
        if message.HasField("meter_counter_data"):
            self.set_colours(entry, NOTHING_COUNTED, undo)

    # ---- messages ----

    def fill(self, entry: StoredEntry, request: p4r.TableEntry, out: p4r.Entity) -> None:
        """Writes an entry into an empty message, with the direct resources that `request` sets."""
        self._fill(entry, out)
        item = out.table_entry
        if entry.is_const:
            item.is_const = True
        direct = self.has_direct(entry)
        if self.plan.counter and direct and request.HasField("counter_data"):
            self.fill_counter(entry, item.counter_data)
        if entry.meter is not None and request.HasField("meter_config"):
            fill_config(entry.meter, item.meter_config)
        if self.plan.meter is not None and direct and request.HasField("meter_counter_data"):
            fill_colours(self.colours(entry), item.meter_counter_data)
        if (
            self.plan.idle_timeout
            and entry.handle != DEFAULT_HANDLE
            and request.HasField("time_since_last_hit")
        ):
            hit_ns = self._switch.entry_last_hit_ns(self.plan.index, entry.handle)
            item.time_since_last_hit.elapsed_ns = max(0, self._context.now_ns() - hit_ns)

    def _fill(self, entry: StoredEntry, out: p4r.Entity) -> None:
        """Writes key, target and metadata of an entry into an empty message; interned entries cache them."""
        interned = entry.unchanged_interned()
        if interned is not None and interned.read_entity is not None:
            out.CopyFrom(interned.read_entity)
            return
        item = out.table_entry
        self.fill_key(entry, item)
        if entry.target is not None:
            entry.target.fill(item.action)
        elif entry.handle == DEFAULT_HANDLE:
            item.ClearField("action")
        if interned is not None:
            interned.read_entity = p4r.Entity()
            interned.read_entity.CopyFrom(out)

    def fill_key(self, entry: StoredEntry, out: p4r.TableEntry) -> None:
        """Writes key, metadata and timeout of an entry into an empty message."""
        self.fill_identity(entry, out)
        if entry.metadata:
            out.metadata = entry.metadata
        if entry.controller_metadata:
            out.controller_metadata = entry.controller_metadata
        if entry.timeout_ns:
            out.idle_timeout_ns = entry.timeout_ns

    def fill_identity(self, entry: StoredEntry, out: p4r.TableEntry) -> None:
        """Writes table and key of an entry into an empty message."""
        out.table_id = self.plan.id
        if entry.handle == DEFAULT_HANDLE:
            out.is_default_action = True
        else:
            self.plan.key.unpack(entry.packed, out.match)
            out.priority = entry.priority

    def fill_counter(self, entry: StoredEntry, data: p4r.CounterData) -> None:
        """Writes the direct counter of an entry into an empty message."""
        fill_counter(*self._switch.entry_counter(self.plan.index, entry.handle), data)


def has_direct_fields(message: p4r.TableEntry) -> bool:
    """Whether a TableEntry message sets fields of direct resources."""
    return (
        message.HasField("counter_data")
        or message.HasField("meter_config")
        or message.HasField("meter_counter_data")
    )
