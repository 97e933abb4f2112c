# SPDX-License-Identifier: Apache-2.0
"""Answers requests of a Read about tables, direct resources and action profiles."""

from __future__ import annotations

from collections.abc import Iterator

from finsy.proto import p4r

from native.switchd.p4rt.context import Context, Responses
from native.switchd.p4rt.errors import P4RtError, invalid, not_found
from native.switchd.p4rt.meters import fill_config, refuse_colour_counters
from native.switchd.p4rt.profiles import Profile
from native.switchd.p4rt.tables import DEFAULT_HANDLE, Entry, Table


def no_table(table_id: int) -> P4RtError:
    """The error for an unknown table."""
    return not_found(f"there is no table with id {table_id}")


class TableReader:
    """Reads entries of tables and what hangs on them."""

    def __init__(self, tables: dict[int, Table], context: Context) -> None:
        self._tables = tables
        self._context = context
        self._switch = context.switch

    def _chosen(self, message: p4r.TableEntry) -> Iterator[Table]:
        if message.table_id == 0:
            if message.match:
                raise invalid("a match without a table_id cannot be read")
            return iter(self._tables.values())
        table = self._tables.get(message.table_id)
        if table is None:
            raise no_table(message.table_id)
        return iter((table,))

    def entries(self, message: p4r.TableEntry, out: Responses) -> None:
        """Answers a TableEntry request: all filters of specification 9.1.6, direct resources where they are
        asked for.

        Raises:
            P4RtError: the request makes no sense; nothing was added.
        """
        if message.HasField("meter_counter_data"):
            raise refuse_colour_counters()
        with_counter, with_meter = message.HasField("counter_data"), message.HasField("meter_config")
        with_hit = message.HasField("time_since_last_hit")
        if with_hit and message.table_id:
            for table in self._chosen(message):
                if not table.plan.idle_timeout:
                    raise invalid(f"table '{table.plan.name}' has no idle timeout")
        for table in self._chosen(message):
            plan = table.plan
            now_ns = self._context.now_ns() if with_hit and plan.idle_timeout else 0
            for entry in table.select(message):
                answer = out.add()
                self._fill(table, entry, answer)
                item = answer.table_entry
                if entry.is_const:
                    item.is_const = True
                if with_counter and plan.counter:
                    self._fill_counter(table, entry, item.counter_data)
                if with_meter and entry.meter is not None:
                    fill_config(entry.meter, item.meter_config)
                if now_ns and entry.handle != DEFAULT_HANDLE:
                    hit_ns = self._switch.entry_last_hit_ns(plan.index, entry.handle)
                    item.time_since_last_hit.elapsed_ns = max(0, now_ns - hit_ns)

    def _fill(self, table: Table, entry: Entry, out: p4r.Entity) -> None:
        """Writes what a client wrote into an empty message."""
        form = entry.plain_form()
        if form is not None and form.shown is not None:
            out.CopyFrom(form.shown)
            return
        item = out.table_entry
        self.fill_key(table, entry, item)
        if entry.target is not None:
            entry.target.fill(item.action)
        elif entry.handle == DEFAULT_HANDLE:
            item.ClearField("action")
        if form is not None:
            form.shown = p4r.Entity()
            form.shown.CopyFrom(out)

    @staticmethod
    def fill_key(table: Table, entry: Entry, out: p4r.TableEntry) -> None:
        """Writes what identifies an entry, its metadata and its timeout into an empty message."""
        out.table_id = table.plan.id
        if entry.handle == DEFAULT_HANDLE:
            out.is_default_action = True
        else:
            table.plan.key.unpack(entry.packed, out.match)
            out.priority = entry.priority
        if entry.metadata:
            out.metadata = entry.metadata
        if entry.controller_metadata:
            out.controller_metadata = entry.controller_metadata
        if entry.timeout_ns:
            out.idle_timeout_ns = entry.timeout_ns

    def _fill_counter(self, table: Table, entry: Entry, data: p4r.CounterData) -> None:
        data.SetInParent()
        data.byte_count, data.packet_count = self._switch.entry_counter(table.plan.index, entry.handle)

    def _direct(self, message: p4r.TableEntry) -> Iterator[tuple[Table, Entry]]:
        """The entries that a direct resource request names; one that it names fully must exist."""
        for table in list(self._chosen(message)):
            if message.is_default_action or message.match:
                yield table, table.find(message)
            else:
                for entry in list(table.entries.values()):
                    if not message.priority or entry.priority == message.priority:
                        yield table, entry

    def counters(self, message: p4r.DirectCounterEntry, out: Responses) -> None:
        """Answers a DirectCounterEntry request; table id 0 is all tables that have direct counters."""
        for table, entry in self._direct(message.table_entry):
            if not table.plan.counter:
                if message.table_entry.table_id:
                    raise invalid(f"table '{table.plan.name}' has no direct counter")
                continue
            item = out.add().direct_counter_entry
            self._fill_identity(table, entry, item.table_entry)
            self._fill_counter(table, entry, item.data)

    def meters(self, message: p4r.DirectMeterEntry, out: Responses) -> None:
        """Answers a DirectMeterEntry request; table id 0 is all tables that have direct meters."""
        if message.HasField("counter_data"):
            raise refuse_colour_counters()
        for table, entry in self._direct(message.table_entry):
            if table.plan.meter is None:
                if message.table_entry.table_id:
                    raise invalid(f"table '{table.plan.name}' has no direct meter")
                continue
            item = out.add().direct_meter_entry
            self._fill_identity(table, entry, item.table_entry)
            if entry.meter is not None:
                fill_config(entry.meter, item.config)

    @staticmethod
    def _fill_identity(table: Table, entry: Entry, out: p4r.TableEntry) -> None:
        out.table_id = table.plan.id
        if entry.handle == DEFAULT_HANDLE:
            out.is_default_action = True
        else:
            table.plan.key.unpack(entry.packed, out.match)
            out.priority = entry.priority


def read_members(profiles: dict[int, Profile], message: p4r.ActionProfileMember, out: Responses) -> None:
    """Answers an ActionProfileMember request; id 0 is all."""
    for profile in chosen_profiles(profiles, message.action_profile_id):
        for member_id in list(profile.members):
            if message.member_id in (0, member_id):
                profile.fill_member(member_id, out.add().action_profile_member)


def read_groups(profiles: dict[int, Profile], message: p4r.ActionProfileGroup, out: Responses) -> None:
    """Answers an ActionProfileGroup request; id 0 is all."""
    for profile in chosen_profiles(profiles, message.action_profile_id):
        for group_id in list(profile.groups):
            if message.group_id in (0, group_id):
                profile.fill_group(group_id, out.add().action_profile_group)


def chosen_profiles(profiles: dict[int, Profile], profile_id: int) -> list[Profile]:
    """The profile with an id, or all for id 0.

    Raises:
        P4RtError: NOT_FOUND.
    """
    if profile_id == 0:
        return list(profiles.values())
    if profile_id not in profiles:
        raise not_found(f"there is no action profile with id {profile_id}")
    return [profiles[profile_id]]
