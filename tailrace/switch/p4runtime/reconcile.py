# SPDX-License-Identifier: Apache-2.0
"""Copies forwarding state from one pipeline to another (COMMIT and RECONCILE_AND_COMMIT, specification 14).

Entities are written to the new pipeline by updates. Counter values and register contents belong to the data
plane: they are copied if the new pipeline has the same array, and otherwise discarded. Changes by the data
plane between this copy and the new pipeline's first packet are lost.

`Work` (context.py) is a generator of steps, which yields the units of work of each step: ENTITY units for an
entity, SKIPPED for an entity that needs no update.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from finsy.proto import p4r

from tailrace.p4rt.status import P4RtError
from tailrace.switch.p4runtime.context import (
    COPIES_PER_WORK,
    DELETE,
    ENTITY,
    INSERT,
    SKIPPED,
    TOKENS_PER_WORK,
    Work,
)
from tailrace.switch.p4runtime.state import ForwardingState, all_of


def transfer(old: ForwardingState, new: ForwardingState) -> Work:
    """Copies the state of `old` to the freshly loaded `new`; no client may write to `old` meanwhile.

    Other calls are served between its steps.

    Raises:
        P4RtError: some state does not fit; `new` is then unusable, `old` unchanged.
    """
    clear_initial(new)
    # entities contain numbers for translated strings (sdn_string), so both pipelines need the same numbers
    new.schema.types.adopt(old.schema.types)
    references = new.context.references
    if references is not None:
        references.deferred = True  # references may be written before their targets
    for update in _updates(old):
        changes_before = new.context.copy_changes
        if update is not None and _belongs(update, new):
            error = new.apply(update, None)
            if error is not None:
                raise error
        # the work grows with the tokens of constraints that the update evaluates (@entry_restriction), and
        # with the changes of copies of members: a member of weight N has N copies
        constraints = new.schema.constraints
        evaluation = 0 if constraints is None else constraints.evaluated // TOKENS_PER_WORK
        yield ENTITY + evaluation + (new.context.copy_changes - changes_before) // COPIES_PER_WORK
    if references is not None:
        references.deferred = False
        for unmet in references.unmet():
            if unmet is not None:
                raise unmet
            yield SKIPPED
    yield from new.counters.carry(old.counters)
    yield from new.meters.carry(old.meters)
    yield from new.registers.carry(old.registers)
    yield from _carry_colours(old, new)


def _carry_colours(old: ForwardingState, new: ForwardingState) -> Work:
    """Copies the per-colour counts of direct meters, for the entries that both pipelines have.

    They cannot be copied by an update: clients can only set these counts to zero.
    """
    for old_table in old.tables.values():
        new_table = new.tables.get(old_table.plan.id)
        if new_table is None or new_table.plan.meter is None or old_table.plan.meter is None:
            continue
        for entry in (*old_table.entries.values(), old_table.default):
            if not old_table.has_direct(entry):
                continue
            message = p4r.TableEntry()
            old.reader.fill_key(old_table, entry, message)
            with suppress(P4RtError):  # a constant entry that the new program does not declare
                new_table.set_colours(new_table.find_direct(message), old_table.colours(entry), None)
            yield ENTITY


def clear_initial(state: ForwardingState) -> None:
    """Deletes the program's initial entries that are not constant."""
    for table in state.tables.values():
        for entry in list(table.entries.values()):
            if not entry.is_const:
                message = p4r.TableEntry()
                state.reader.fill_key(table, entry, message)
                table.write(DELETE, message, None)


def _belongs(update: p4r.Update, state: ForwardingState) -> bool:
    """Whether the pipeline has the entry that a direct counter's update names; True for other updates."""
    entity = update.entity
    which = entity.WhichOneof("entity")
    if which == "direct_counter_entry":
        # only for constant entries: the new program may not declare the entry
        table = state.tables.get(entity.direct_counter_entry.table_entry.table_id)
        if table is None or not table.plan.counter:
            return False
        try:
            table.find(entity.direct_counter_entry.table_entry)
        except P4RtError:
            return False
    return True


def _updates(state: ForwardingState) -> Iterator[p4r.Update | None]:
    """The updates that write a state to a fresh pipeline; None for an entity that needs no update."""
    for kind, entity in _entities(state):
        update = p4r.Update(type=kind)
        update.entity.CopyFrom(entity)
        yield update if _is_needed(update, state) else None


def _entities(state: ForwardingState) -> Iterator[tuple[p4r.Update.Type.ValueType, p4r.Entity]]:
    """All entities with the type of their update, in an order in which they can be written."""
    insert, modify = p4r.Update.INSERT, p4r.Update.MODIFY
    for name in ("action_profile_member", "action_profile_group"):
        yield from ((insert, entity) for entity in state.entities(all_of(name)))
    request = p4r.TableEntry()
    request.counter_data.SetInParent()
    request.meter_config.SetInParent()
    for table in state.tables.values():
        # if two entries of the same priority match, the older one wins, so their order is part of the state
        for entry in table.entries.values():
            entity = p4r.Entity()
            state.reader.fill(table, entry, request, entity)
            yield insert, entity
        if not table.plan.const_default and table.profile is None:
            entity = p4r.Entity()
            state.reader.fill(table, table.default, request, entity)
            yield modify, entity
    for name in ("value_set_entry", "direct_counter_entry"):
        yield from ((modify, entity) for entity in state.entities(all_of(name)))
    for name in ("packet_replication_engine_entry", "digest_entry"):
        yield from ((insert, entity) for entity in state.entities(all_of(name)))


def _is_needed(update: p4r.Update, state: ForwardingState) -> bool:
    """Whether an update would change a fresh pipeline, and clients may send it."""
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
    if which == "value_set_entry":
        return len(entity.value_set_entry.members) > 0
    return True


def _is_initial_default(entry: p4r.TableEntry, state: ForwardingState) -> bool:
    table = state.tables[entry.table_id]
    initial = table.initial_default()
    current = table.default
    values = (current.target, current.metadata, current.controller_metadata, current.meter)
    counted = entry.HasField("counter_data") and entry.counter_data != p4r.CounterData()
    return values == (initial.target, b"", 0, None) and not counted
