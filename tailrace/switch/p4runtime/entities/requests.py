# SPDX-License-Identifier: Apache-2.0
"""Updates and read requests of tables, direct resources and action profiles.

Each kind of entity has a class: `write` applies an update, `read` answers a read request, and `demand`
estimates how many entities a read request may return.

`Work` (context.py) is a request in steps: a generator that yields the units of work of each step. An entity
takes ENTITY units, an entry that is left out SKIPPED units. `Undo` is the list of functions that roll back a
batch; None: not needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from tailrace.p4rt.messages import p4r
from tailrace.p4rt.status import invalid, not_found
from tailrace.switch.p4runtime.context import ENTITY, SKIPPED, Responses, Undo, Work
from tailrace.switch.p4runtime.entities.entry import StoredEntry
from tailrace.switch.p4runtime.entities.externs import only_modify
from tailrace.switch.p4runtime.entities.meters import (
    NOTHING_COUNTED,
    check_counter,
    check_reset,
    fill_colours,
    fill_config,
    parse_rates,
)
from tailrace.switch.p4runtime.entities.profiles import ProfileState
from tailrace.switch.p4runtime.entities.schema import chosen, find
from tailrace.switch.p4runtime.entities.tables import TableState


class ReadableKind(Protocol):
    """The entities of one kind; `message` has the type of this kind's field of p4.v1.Entity."""

    def read(self, message: Any, out: Responses) -> Work:
        """Answers a read request.

        Raises:
            P4RtError: the request is invalid; nothing was added to `out`.
        """
        ...

    def demand(self, message: Any) -> int:
        """The number of entities that a read request may return, plus members or replicas in them."""
        ...


class Kind(ReadableKind, Protocol):
    """A kind that also takes updates; each table takes its own (tables.py)."""

    def write(self, kind: int, message: Any, undo: Undo | None) -> Work | None:
        """Applies an update at once, or returns the steps that apply it."""
        ...


class TableEntries:
    """The entries of all tables."""

    def __init__(self, tables: Mapping[int, TableState]) -> None:
        self._tables = tables

    def demand(self, message: p4r.TableEntry) -> int:
        """The number of entries that a read request may scan."""
        if message.is_default_action:
            return 1 if message.table_id else len(self._tables)
        if message.table_id:
            table = self._tables.get(message.table_id)
            return 0 if table is None else table.demand(message)
        return sum(len(table.entries) for table in self._tables.values())

    def read(self, message: p4r.TableEntry, out: Responses) -> Work:
        """Answers a request with all its filters (9.1.6) and the direct resources that it sets."""
        tables = chosen_tables(self._tables, message)
        if message.HasField("time_since_last_hit") and message.table_id and not tables[0].plan.idle_timeout:
            raise invalid(f"table '{tables[0].plan.name}' has no idle timeout")
        for table in tables:
            for entry in table.select(message):
                if entry is None:
                    yield SKIPPED
                    continue
                table.fill(entry, message, out.add())
                yield ENTITY * entry.weight  # the weight of a one-shot grows with its actions


def chosen_tables(tables: Mapping[int, TableState], message: p4r.TableEntry) -> list[TableState]:
    """The tables of a read request; table id 0 is the wildcard. Raises P4RtError: it is invalid."""
    if not message.table_id and message.match:
        raise invalid("a match without a table_id cannot be read")
    return chosen(tables, message.table_id, "table")


class _DirectResources:
    """The direct counters, or the direct meters, of all tables."""

    kind: str

    def __init__(self, tables: Mapping[int, TableState]) -> None:
        self._tables = tables
        self._entries = TableEntries(tables)

    def _in(self, table: TableState) -> bool:
        """Whether a table has the resource."""
        return bool(table.plan.counter if self.kind == "counter" else table.plan.meter)

    def _to_modify(self, kind: int, message: p4r.TableEntry) -> tuple[TableState, StoredEntry]:
        """The entry whose resource an update modifies, and its table."""
        only_modify(kind, f"a direct {self.kind}")
        table = find(self._tables, message.table_id, "table")
        if not self._in(table):
            raise invalid(f"table '{table.plan.name}' has no direct {self.kind}")
        return table, table.find_direct(message)

    def demand(self, message: p4r.DirectCounterEntry | p4r.DirectMeterEntry) -> int:
        return self._entries.demand(message.table_entry)

    def _chosen(self, message: p4r.TableEntry) -> Iterator[tuple[TableState, StoredEntry | None]]:
        """The entries of a read request; None in place of an entry that does not match.

        Table id 0 selects all tables that have the resource. If `message` has a key, its entry must exist.
        """
        for table in chosen_tables(self._tables, message):
            if not self._in(table):
                if message.table_id:
                    raise invalid(f"table '{table.plan.name}' has no such direct resource")
            elif message.is_default_action or message.match:
                yield table, table.find_direct(message)
            else:
                for entry in table.all():
                    skipped = entry is None or (message.priority and entry.priority != message.priority)
                    yield table, None if skipped else entry


class DirectCounters(_DirectResources):
    """The direct counters of all tables."""

    kind = "counter"

    def write(self, kind: int, message: p4r.DirectCounterEntry, undo: Undo | None) -> None:
        table, entry = self._to_modify(kind, message.table_entry)
        if message.HasField("data"):
            check_counter(message.data, f"direct counter of table '{table.plan.name}'")
            table.set_counter(entry, message.data, undo)

    def read(self, message: p4r.DirectCounterEntry, out: Responses) -> Work:
        for table, entry in self._chosen(message.table_entry):
            if entry is None:
                yield SKIPPED
                continue
            item = out.add().direct_counter_entry
            table.fill_identity(entry, item.table_entry)
            table.fill_counter(entry, item.data)
            yield ENTITY


class DirectMeters(_DirectResources):
    """The direct meters of all tables."""

    kind = "meter"

    def write(self, kind: int, message: p4r.DirectMeterEntry, undo: Undo | None) -> None:
        table, entry = self._to_modify(kind, message.table_entry)
        meter = table.plan.meter
        assert meter is not None
        check_reset(message.counter_data, f"meter '{meter.name}'")
        rates = parse_rates(message.config, meter) if message.HasField("config") else None
        table.set_meter(entry, rates, undo)
        if message.HasField("counter_data"):
            table.set_colours(entry, NOTHING_COUNTED, undo)

    def read(self, message: p4r.DirectMeterEntry, out: Responses) -> Work:
        for table, entry in self._chosen(message.table_entry):
            if entry is None:
                yield SKIPPED
                continue
            item = out.add().direct_meter_entry
            table.fill_identity(entry, item.table_entry)
            if entry.meter is not None:
                fill_config(entry.meter, item.config)
            if message.HasField("counter_data"):
                fill_colours(table.colours(entry), item.counter_data)
            yield ENTITY


class _OfProfiles:
    """The members, or the groups, of all action profiles."""

    def __init__(self, profiles: Mapping[int, ProfileState]) -> None:
        self._profiles = profiles

    def _profile(self, profile_id: int) -> ProfileState:
        if profile_id == 0:
            raise not_found("action_profile_id is missing")
        return find(self._profiles, profile_id, "action profile")

    def _chosen(self, profile_id: int) -> list[ProfileState]:
        return chosen(self._profiles, profile_id, "action profile")

    def _known(self, profile_id: int) -> list[ProfileState]:
        return [p for p in self._profiles.values() if profile_id in (0, p.plan.id)]


class Members(_OfProfiles):
    """The members of all action profiles."""

    def write(self, kind: int, message: p4r.ActionProfileMember, undo: Undo | None) -> None:
        self._profile(message.action_profile_id).write_member(kind, message, undo)

    def read(self, message: p4r.ActionProfileMember, out: Responses) -> Work:
        for profile in self._chosen(message.action_profile_id):
            for member_id in (message.member_id,) if message.member_id else tuple(profile.members):
                if member_id in profile.members:  # may have been deleted between two quanta of work
                    profile.fill_member(member_id, out.add().action_profile_member)
                    yield ENTITY

    def demand(self, message: p4r.ActionProfileMember) -> int:
        if message.member_id:
            return 1
        return sum(len(profile.members) for profile in self._known(message.action_profile_id))


class Groups(_OfProfiles):
    """The groups of all action profiles."""

    def write(self, kind: int, message: p4r.ActionProfileGroup, undo: Undo | None) -> None:
        self._profile(message.action_profile_id).write_group(kind, message, undo)

    def read(self, message: p4r.ActionProfileGroup, out: Responses) -> Work:
        for profile in self._chosen(message.action_profile_id):
            for group_id in (message.group_id,) if message.group_id else tuple(profile.groups):
                if group_id in profile.groups:
                    item = out.add().action_profile_group
                    profile.fill_group(group_id, item)
                    yield ENTITY * (1 + len(item.members))

    def demand(self, message: p4r.ActionProfileGroup) -> int:
        requested = self._known(message.action_profile_id)
        if not message.group_id:
            return sum(profile.groups_and_members for profile in requested)
        groups = (profile.groups.get(message.group_id) for profile in requested)
        return sum(1 + len(group.members) for group in groups if group is not None)
