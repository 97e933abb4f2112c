# SPDX-License-Identifier: Apache-2.0
"""Carries forwarding state from one pipeline to another (COMMIT and RECONCILE_AND_COMMIT, specification 14).

What clients wrote is turned into the updates that write it again. Counter values and register contents belong
to the data plane: they move where the other pipeline has the same array, and are dropped where it has not.
"""

from __future__ import annotations

from collections.abc import Iterator

from finsy.proto import p4r

from native.switchd.p4rt.context import DELETE, INSERT, MODIFY, Responses
from native.switchd.p4rt.errors import P4RtError
from native.switchd.p4rt.state import State


def snapshot(state: State) -> list[p4r.Update]:
    """The updates that bring a freshly loaded pipeline, without initial entries, to this state."""
    return list(_updates(state))


def transfer(updates: list[p4r.Update], state: State) -> P4RtError | None:
    """Applies a snapshot to a freshly loaded pipeline; the first error, after which the pipeline is of no
    use.
    """
    clear_initial(state)
    for update in updates:
        if not _belongs(update, state):
            continue
        error = state.apply(update, None)
        if error is not None:
            return error
    return None


def clear_initial(state: State) -> None:
    """Removes the entries that the program declares and clients may delete."""
    for table in state.tables.values():
        for entry in list(table.entries.values()):
            if not entry.is_const:
                message = p4r.TableEntry()
                state.reader.fill_key(table, entry, message)
                table.write(DELETE, message, None)


def _belongs(update: p4r.Update, state: State) -> bool:
    """Whether the data-plane state of an update has a place in the pipeline."""
    entity = update.entity
    which = entity.WhichOneof("entity")
    schema = state.schema
    if which == "counter_entry":
        counter = schema.counters.get(entity.counter_entry.counter_id)
        return counter is not None and entity.counter_entry.index.index < counter.size
    if which == "register_entry":
        register = schema.registers.get(entity.register_entry.register_id)
        return register is not None and entity.register_entry.index.index < register.size
    if which == "direct_counter_entry":
        # constant entries are the program's own: their counters move if the entry is still there
        table = state.tables.get(entity.direct_counter_entry.table_entry.table_id)
        if table is None or not table.plan.counter:
            return False
        try:
            table.find(entity.direct_counter_entry.table_entry)
        except P4RtError:
            return False
    return True


def _updates(state: State) -> Iterator[p4r.Update]:
    for kind, request in _requests(state):
        out = Responses()
        messages, _ = state.read([request])
        out.messages = messages
        for entity in out.entities():
            update = p4r.Update(type=kind)
            update.entity.CopyFrom(entity)
            if _worth(update, state):
                yield update


def _requests(state: State) -> Iterator[tuple[p4r.Update.Type.ValueType, p4r.Entity]]:
    insert, modify = p4r.Update.INSERT, p4r.Update.MODIFY
    entity = p4r.Entity()
    entity.action_profile_member.SetInParent()
    yield insert, entity
    entity = p4r.Entity()
    entity.action_profile_group.SetInParent()
    yield insert, entity
    entity = p4r.Entity()
    entity.table_entry.counter_data.SetInParent()
    entity.table_entry.meter_config.SetInParent()
    yield insert, entity
    for table in state.tables.values():
        if not table.plan.const_default and table.profile is None:
            entity = p4r.Entity()
            entity.table_entry.table_id = table.plan.id
            entity.table_entry.is_default_action = True
            entity.table_entry.counter_data.SetInParent()
            entity.table_entry.meter_config.SetInParent()
            yield modify, entity
    for name in ("counter_entry", "meter_entry", "register_entry", "value_set_entry", "direct_counter_entry"):
        entity = p4r.Entity()
        getattr(entity, name).SetInParent()
        yield modify, entity
    for name in ("packet_replication_engine_entry", "digest_entry"):
        entity = p4r.Entity()
        getattr(entity, name).SetInParent()
        yield insert, entity


def _worth(update: p4r.Update, state: State) -> bool:
    """Whether an update differs from what a fresh pipeline has, and is one that clients may send."""
    entity = update.entity
    which = entity.WhichOneof("entity")
    if which == "table_entry":
        entry = entity.table_entry
        if entry.is_const:
            return False
        return update.type == INSERT or not _is_initial_default(entry, state)
    if which == "direct_counter_entry":
        entry = entity.direct_counter_entry.table_entry
        table = state.tables[entry.table_id]
        return table.plan.is_const and entity.direct_counter_entry.data != p4r.CounterData()
    if which == "counter_entry":
        return entity.counter_entry.data != p4r.CounterData()
    if which == "meter_entry":
        return entity.meter_entry.HasField("config")
    if which == "value_set_entry":
        return len(entity.value_set_entry.members) > 0
    if which == "register_entry":
        plan = state.schema.registers[entity.register_entry.register_id]
        return any(plan.type.decode(entity.register_entry.data, plan.name))
    return update.type in (INSERT, MODIFY)


def _is_initial_default(entry: p4r.TableEntry, state: State) -> bool:
    table = state.tables[entry.table_id]
    initial = table.initial_default()
    current = table.default
    same = (current.target, current.metadata, current.controller_metadata, current.meter)
    counted = entry.HasField("counter_data") and entry.counter_data != p4r.CounterData()
    return same == (initial.target, b"", 0, None) and not counted
