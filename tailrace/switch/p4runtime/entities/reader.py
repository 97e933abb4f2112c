# SPDX-License-Identifier: Apache-2.0
"""Answers read requests for tables, direct resources and action profiles.

`Work` (context.py) is a request in steps: a generator that yields the units of work of each step. An entity
takes ENTITY units, an entry that is left out SKIPPED units. `demand...` functions estimate a response's size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from finsy.proto import p4r

from tailrace.p4rt.status import P4RtError, invalid, not_found
from tailrace.switch.core import V1ModelSwitch
from tailrace.switch.p4runtime.context import ENTITY, SKIPPED, Context, Responses, Work
from tailrace.switch.p4runtime.entities.counts import fill_counter
from tailrace.switch.p4runtime.entities.entry import DEFAULT_HANDLE, StoredEntry
from tailrace.switch.p4runtime.entities.meters import fill_colours, fill_config
from tailrace.switch.p4runtime.entities.profiles import ProfileState
from tailrace.switch.p4runtime.entities.tables import TableState


def no_table(table_id: int) -> P4RtError:
    """The error for an unknown table."""
    return not_found(f"there is no table with id {table_id}")


_TableEntry = tuple[TableState, StoredEntry | None]


class TableReader:
    """Reads table entries and direct resources."""

    def __init__(self, tables: dict[int, TableState], context: Context) -> None:
        self._tables = tables
        self._context = context

    @property
    def _switch(self) -> V1ModelSwitch:
        return self._context.switch

    def demand(self, message: p4r.TableEntry) -> int:
        """The number of entries that a read request may scan."""
        if message.is_default_action:
            return 1 if message.table_id else len(self._tables)
        if message.table_id:
            table = self._tables.get(message.table_id)
            return 0 if table is None else table.demand(message)
        return sum(len(table.entries) for table in self._tables.values())

    def _chosen(self, message: p4r.TableEntry) -> Iterator[TableState]:
        if message.table_id == 0:
            if message.match:
                raise invalid("a match without a table_id cannot be read")
            return iter(self._tables.values())
        table = self._tables.get(message.table_id)
        if table is None:
            raise no_table(message.table_id)
        return iter((table,))

    def entries(self, message: p4r.TableEntry, out: Responses) -> Work:
        """Answers a TableEntry request with all its filters (9.1.6) and the direct resources that it selects.

        Raises:
            P4RtError: the request is invalid; nothing was added to `out`.
        """
        if message.HasField("time_since_last_hit") and message.table_id:
            for table in self._chosen(message):
                if not table.plan.idle_timeout:
                    raise invalid(f"table '{table.plan.name}' has no idle timeout")
        for table in self._chosen(message):
            for entry in table.select(message):
                if entry is None:
                    yield SKIPPED
                    continue
                self.fill(table, entry, message, out.add())
                yield ENTITY * entry.weight  # the weight of a one-shot grows with its actions

    def fill(self, table: TableState, entry: StoredEntry, message: p4r.TableEntry, out: p4r.Entity) -> None:
        """Writes an entry into an empty message, with the direct resources that `message` requests."""
        plan = table.plan
        self._fill(table, entry, out)
        item = out.table_entry
        if entry.is_const:
            item.is_const = True
        direct = table.has_direct(entry)
        if plan.counter and direct and message.HasField("counter_data"):
            self._fill_counter(table, entry, item.counter_data)
        if entry.meter is not None and message.HasField("meter_config"):
            fill_config(entry.meter, item.meter_config)
        if plan.meter is not None and direct and message.HasField("meter_counter_data"):
            fill_colours(table.colours(entry), item.meter_counter_data)
        if plan.idle_timeout and entry.handle != DEFAULT_HANDLE and message.HasField("time_since_last_hit"):
            hit_ns = self._switch.entry_last_hit_ns(plan.index, entry.handle)
            item.time_since_last_hit.elapsed_ns = max(0, self._context.now_ns() - hit_ns)

    def _fill(self, table: TableState, entry: StoredEntry, out: p4r.Entity) -> None:
        """Writes key, target and metadata of an entry into an empty message; interned entries cache them."""
        interned = entry.unchanged_interned()
        if interned is not None and interned.read_entity is not None:
            out.CopyFrom(interned.read_entity)
            return
        item = out.table_entry
        self.fill_key(table, entry, item)
        if entry.target is not None:
            entry.target.fill(item.action)
        elif entry.handle == DEFAULT_HANDLE:
            item.ClearField("action")
        if interned is not None:
            interned.read_entity = p4r.Entity()
            interned.read_entity.CopyFrom(out)

    @staticmethod
    def fill_key(table: TableState, entry: StoredEntry, out: p4r.TableEntry) -> None:
        """Writes key, metadata and timeout of an entry into an empty message."""
        _fill_identity(table, entry, out)
        if entry.metadata:
            out.metadata = entry.metadata
        if entry.controller_metadata:
            out.controller_metadata = entry.controller_metadata
        if entry.timeout_ns:
            out.idle_timeout_ns = entry.timeout_ns

    def _fill_counter(self, table: TableState, entry: StoredEntry, data: p4r.CounterData) -> None:
        fill_counter(*self._switch.entry_counter(table.plan.index, entry.handle), data)

    def _direct(
        self, message: p4r.TableEntry, has_resource: Callable[[TableState], bool]
    ) -> Iterator[_TableEntry]:
        """The entries of a direct resource request; None in place of an entry that does not match.

        `has_resource`: whether a table has the resource. If `message` has a key, its entry must exist.
        """
        for table in list(self._chosen(message)):
            if not has_resource(table):
                if message.table_id:
                    raise invalid(f"table '{table.plan.name}' has no such direct resource")
            elif message.is_default_action or message.match:
                yield table, table.find_direct(message)
            else:
                for entry in table.all():
                    if entry is None or (message.priority and entry.priority != message.priority):
                        yield table, None
                    else:
                        yield table, entry

    def counters(self, message: p4r.DirectCounterEntry, out: Responses) -> Work:
        """Answers a DirectCounterEntry request; table id 0 selects all tables with direct counters."""
        for table, entry in self._direct(message.table_entry, lambda table: bool(table.plan.counter)):
            if entry is None:
                yield SKIPPED
                continue
            item = out.add().direct_counter_entry
            _fill_identity(table, entry, item.table_entry)
            self._fill_counter(table, entry, item.data)
            yield ENTITY

    def meters(self, message: p4r.DirectMeterEntry, out: Responses) -> Work:
        """Answers a DirectMeterEntry request; table id 0 selects all tables with direct meters."""
        for table, entry in self._direct(message.table_entry, lambda table: table.plan.meter is not None):
            if entry is None:
                yield SKIPPED
                continue
            item = out.add().direct_meter_entry
            _fill_identity(table, entry, item.table_entry)
            if entry.meter is not None:
                fill_config(entry.meter, item.config)
            if message.HasField("counter_data"):
                fill_colours(table.colours(entry), item.counter_data)
            yield ENTITY


def _fill_identity(table: TableState, entry: StoredEntry, out: p4r.TableEntry) -> None:
    out.table_id = table.plan.id
    if entry.handle == DEFAULT_HANDLE:
        out.is_default_action = True
    else:
        table.plan.key.unpack(entry.packed, out.match)
        out.priority = entry.priority


def read_members(profiles: dict[int, ProfileState], message: p4r.ActionProfileMember, out: Responses) -> Work:
    """Answers an ActionProfileMember request; id 0 is the wildcard."""
    for profile in chosen_profiles(profiles, message.action_profile_id):
        for member_id in (message.member_id,) if message.member_id else tuple(profile.members):
            if member_id in profile.members:  # may have been deleted between two quanta of work
                profile.fill_member(member_id, out.add().action_profile_member)
                yield ENTITY


def read_groups(profiles: dict[int, ProfileState], message: p4r.ActionProfileGroup, out: Responses) -> Work:
    """Answers an ActionProfileGroup request; id 0 is the wildcard."""
    for profile in chosen_profiles(profiles, message.action_profile_id):
        for group_id in (message.group_id,) if message.group_id else tuple(profile.groups):
            if group_id in profile.groups:
                item = out.add().action_profile_group
                profile.fill_group(group_id, item)
                yield ENTITY * (1 + len(item.members))


def demand_of_members(profiles: dict[int, ProfileState], message: p4r.ActionProfileMember) -> int:
    """The number of members that a read request may return."""
    if message.member_id:
        return 1
    return sum(len(profile.members) for profile in _known(profiles, message.action_profile_id))


def demand_of_groups(profiles: dict[int, ProfileState], message: p4r.ActionProfileGroup) -> int:
    """The number of groups that a read request may return, plus their members."""
    requested = _known(profiles, message.action_profile_id)
    if not message.group_id:
        return sum(profile.groups_and_members for profile in requested)
    groups = (profile.groups.get(message.group_id) for profile in requested)
    return sum(1 + len(group.members) for group in groups if group is not None)


def _known(profiles: dict[int, ProfileState], profile_id: int) -> list[ProfileState]:
    return [p for p in profiles.values() if profile_id in (0, p.plan.id)]


def chosen_profiles(profiles: dict[int, ProfileState], profile_id: int) -> list[ProfileState]:
    """The profile with an id, or all profiles for id 0, the wildcard.

    Raises:
        P4RtError: NOT_FOUND.
    """
    if profile_id == 0:
        return list(profiles.values())
    if profile_id not in profiles:
        raise not_found(f"there is no action profile with id {profile_id}")
    return [profiles[profile_id]]
