# SPDX-License-Identifier: Apache-2.0
"""The forwarding state of one pipeline: every entity, the batches of Write, the requests of Read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from finsy.proto import p4r

from native.runtime import StateError
from native.switchd.p4rt.context import DELETE, INSERT, MODIFY, Context, Responses, Undo, from_state_error
from native.switchd.p4rt.digests import Digests
from native.switchd.p4rt.errors import Code, P4RtError, invalid, not_found
from native.switchd.p4rt.externs import Counters, Meters, Registers, ValueSets, only_modify
from native.switchd.p4rt.meters import parse_rates, refuse_colour_counters
from native.switchd.p4rt.pre import Replication
from native.switchd.p4rt.profiles import Profile
from native.switchd.p4rt.reader import TableReader, chosen_profiles, no_table, read_groups, read_members
from native.switchd.p4rt.schema import Schema, absent
from native.switchd.p4rt.tables import Table, check_counter

_OWNER_IDS = {
    "table_entry": ("table_id",),
    "direct_counter_entry": ("table_entry", "table_id"),
    "direct_meter_entry": ("table_entry", "table_id"),
    "action_profile_member": ("action_profile_id",),
    "action_profile_group": ("action_profile_id",),
    "counter_entry": ("counter_id",),
    "meter_entry": ("meter_id",),
    "register_entry": ("register_id",),
    "value_set_entry": ("value_set_id",),
    "digest_entry": ("digest_id",),
}
"""Where the kinds of entities say what they belong to."""

Result = P4RtError | None
"""What became of one update or request: None is success."""


class State:
    """All entities of one pipeline on one switch, which must just have loaded the program of `schema`."""

    def __init__(self, schema: Schema, context: Context) -> None:
        self.schema = schema
        self.context = context
        self.profiles = {plan.id: Profile(plan, context) for plan in schema.profiles.values()}
        self.tables = {
            plan.id: Table(plan, schema, context, self.profiles[plan.profile.id] if plan.profile else None)
            for plan in schema.tables.values()
        }
        self.digests = Digests(schema)
        self.reader = TableReader(self.tables, context)
        self._counters = Counters(schema, context)
        self._meters = Meters(schema, context)
        self._registers = Registers(schema, context)
        self._value_sets = ValueSets(schema, context)
        self._replication = Replication(context)
        self._writers: dict[str | None, Callable[[int, p4r.Entity, Undo | None], None]] = {
            "action_profile_member": self._write_member,
            "action_profile_group": self._write_group,
            "direct_counter_entry": self._write_direct_counter,
            "direct_meter_entry": self._write_direct_meter,
            "counter_entry": lambda k, e, u: self._counters.write(k, e.counter_entry, u),
            "meter_entry": lambda k, e, u: self._meters.write(k, e.meter_entry, u),
            "register_entry": lambda k, e, u: self._registers.write(k, e.register_entry, u),
            "value_set_entry": lambda k, e, u: self._value_sets.write(k, e.value_set_entry, u),
            "digest_entry": lambda k, e, u: self.digests.write(k, e.digest_entry, u),
            "packet_replication_engine_entry": (
                lambda k, e, u: self._replication.write(k, e.packet_replication_engine_entry, u)
            ),
        }
        self._readers: dict[str | None, Callable[[p4r.Entity, Responses], None]] = {
            "table_entry": lambda e, out: self.reader.entries(e.table_entry, out),
            "action_profile_member": lambda e, out: read_members(self.profiles, e.action_profile_member, out),
            "action_profile_group": lambda e, out: read_groups(self.profiles, e.action_profile_group, out),
            "direct_counter_entry": lambda e, out: self.reader.counters(e.direct_counter_entry, out),
            "direct_meter_entry": lambda e, out: self.reader.meters(e.direct_meter_entry, out),
            "counter_entry": lambda e, out: self._counters.read(e.counter_entry, out),
            "meter_entry": lambda e, out: self._meters.read(e.meter_entry, out),
            "register_entry": lambda e, out: self._registers.read(e.register_entry, out),
            "value_set_entry": lambda e, out: self._value_sets.read(e.value_set_entry, out),
            "digest_entry": lambda e, out: self.digests.read(e.digest_entry, out),
            "packet_replication_engine_entry": (
                lambda e, out: self._replication.read(e.packet_replication_engine_entry, out)
            ),
        }

    # ---- Write ----

    def write(self, updates: Sequence[p4r.Update]) -> list[Result]:
        """Applies each update on its own, in order (CONTINUE_ON_ERROR)."""
        return [self.apply(update, None) for update in updates]

    def write_all_or_none(self, updates: Sequence[p4r.Update]) -> list[Result]:
        """Applies the updates in order; when one fails, the state is as before (ROLLBACK_ON_ERROR).

        What was taken back, or not tried, is reported as ABORTED.
        """
        undo: Undo = []
        for position, update in enumerate(updates):
            error = self.apply(update, undo)
            if error is not None:
                for step in reversed(undo):
                    step()
                results: list[Result] = [
                    P4RtError(Code.ABORTED, "rolled back: another update failed") for _ in updates
                ]
                results[position] = error
                return results
        return [None] * len(updates)

    def apply(self, update: p4r.Update, undo: Undo | None) -> Result:
        """Applies one update; the error it ends with."""
        kind = update.type
        entity = update.entity
        which = entity.WhichOneof("entity")
        try:
            if self.schema.absent:
                self._refuse_absent(which, entity)
            if which == "table_entry" and INSERT <= kind <= DELETE:
                message = entity.table_entry
                table = self.tables.get(message.table_id)
                if table is None:
                    raise no_table(message.table_id)
                table.write(kind, message, undo)
            else:
                self._apply_other(kind, which, entity, undo)
        except P4RtError as error:
            return error
        except StateError as error:
            return from_state_error(error)
        return None

    def _apply_other(self, kind: int, which: str | None, entity: p4r.Entity, undo: Undo | None) -> None:
        if kind not in (INSERT, MODIFY, DELETE):
            raise invalid(f"update type {kind} is not INSERT, MODIFY or DELETE")
        if which == "extern_entry":
            raise P4RtError(Code.UNIMPLEMENTED, "v1model has no other externs")
        writer = self._writers.get(which)
        if writer is None:
            raise invalid("the update has no entity")
        writer(kind, entity, undo)

    def _write_member(self, kind: int, entity: p4r.Entity, undo: Undo | None) -> None:
        message = entity.action_profile_member
        self._profile(message.action_profile_id).write_member(kind, message, undo)

    def _write_group(self, kind: int, entity: p4r.Entity, undo: Undo | None) -> None:
        message = entity.action_profile_group
        self._profile(message.action_profile_id).write_group(kind, message, undo)

    def _profile(self, profile_id: int) -> Profile:
        if profile_id == 0:
            raise not_found("action_profile_id is missing")
        return chosen_profiles(self.profiles, profile_id)[0]

    def _refuse_absent(self, which: str | None, entity: p4r.Entity) -> None:
        """Refuses what names an object that only P4Info has."""
        message = getattr(entity, which) if which is not None else None
        if message is not None and which in _OWNER_IDS:
            for step in _OWNER_IDS[which]:
                message = getattr(message, step)
            if message in self.schema.absent:
                raise absent(self.schema.absent[message])

    def _table(self, table_id: int) -> Table:
        table = self.tables.get(table_id)
        if table is None:
            raise no_table(table_id)
        return table

    def _write_direct_counter(self, kind: int, entity: p4r.Entity, undo: Undo | None) -> None:
        message = entity.direct_counter_entry
        only_modify(kind, "a direct counter")
        table = self._table(message.table_entry.table_id)
        if not table.plan.counter:
            raise invalid(f"table '{table.plan.name}' has no direct counter")
        entry = table.find(message.table_entry)
        if message.HasField("data"):
            check_counter(message.data)
            table.set_counter(entry, message.data, undo)

    def _write_direct_meter(self, kind: int, entity: p4r.Entity, undo: Undo | None) -> None:
        message = entity.direct_meter_entry
        only_modify(kind, "a direct meter")
        if message.HasField("counter_data"):
            raise refuse_colour_counters()
        table = self._table(message.table_entry.table_id)
        if table.plan.meter is None:
            raise invalid(f"table '{table.plan.name}' has no direct meter")
        entry = table.find(message.table_entry)
        rates = parse_rates(message.config, table.plan.meter) if message.HasField("config") else None
        table.set_meter(entry, rates, undo)

    # ---- Read ----

    def read(self, requests: Iterable[p4r.Entity]) -> tuple[list[p4r.ReadResponse], list[Result]]:
        """Answers every request that makes sense; the responses, and what became of each request."""
        out = Responses()
        results: list[Result] = []
        for request in requests:
            try:
                self._read(request, out)
            except P4RtError as error:
                results.append(error)
            except StateError as error:
                results.append(from_state_error(error))
            else:
                results.append(None)
        return out.messages, results

    def _read(self, request: p4r.Entity, out: Responses) -> None:
        which = request.WhichOneof("entity")
        if self.schema.absent:
            self._refuse_absent(which, request)
        if which == "extern_entry":
            raise P4RtError(Code.UNIMPLEMENTED, "v1model has no other externs")
        reader = self._readers.get(which)
        if reader is None:
            raise invalid("the request has no entity")
        reader(request, out)

    # ---- events ----

    def port_changed(self, port: int) -> None:
        """Applies the status of a port to groups and replicas that depend on it."""
        for profile in self.profiles.values():
            profile.port_changed(port)
        self._replication.port_changed(port)

    def idle(self, now_ns: int) -> list[p4r.TableEntry]:
        """The entries that were not hit for their timeout, each again only after another timeout."""
        found: list[p4r.TableEntry] = []
        for table in self.tables.values():
            plan = table.plan
            if not plan.idle_timeout:
                continue
            for handle in self.context.switch.table_expired(plan.index, now_ns):
                entry = table.by_handle[handle]
                if now_ns - entry.notified_ns >= entry.timeout_ns or not entry.notified_ns:
                    entry.notified_ns = now_ns
                    message = p4r.TableEntry()
                    self.reader.fill_key(table, entry, message)
                    found.append(message)
        return found
