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

from tailrace.p4rt.inprocess import EntityUpdate
from tailrace.p4rt.messages import p4r
from tailrace.p4rt.status import P4RtError
from tailrace.switch.p4runtime.context import DELETE, ENTITY, SKIPPED, Work
from tailrace.switch.p4runtime.entities.entry import StoredEntry
from tailrace.switch.p4runtime.entities.tables import TableState
from tailrace.switch.p4runtime.state import ForwardingState, all_of

MODIFY = p4r.Update.MODIFY
_WITH_RESOURCES = p4r.TableEntry(counter_data=p4r.CounterData(), meter_config=p4r.MeterConfig())


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
        error = None if update is None else (yield from new.apply(update, None))
        if error is not None:
            raise error
        yield new.take_work() or ENTITY
    if references is not None:
        references.deferred = False
        for unmet in references.unmet():
            if unmet is not None:
                raise unmet
            yield SKIPPED
    yield from new.counters.carry(old.counters)
    yield from new.meters.carry(old.meters)
    yield from new.registers.carry(old.registers)
    yield from _carry_direct(old, new)


def _carry_direct(old: ForwardingState, new: ForwardingState) -> Work:
    """Copies what the updates lack, for the entries that both pipelines have.

    These are the direct counters of constant entries, and the per-colour counts of direct meters: clients can
    only set these counts to zero.
    """
    for old_table in old.tables.values():
        new_table = new.tables.get(old_table.plan.id)
        if new_table is None:
            continue
        coloured = new_table.plan.meter is not None and old_table.plan.meter is not None
        counted = old_table.plan.is_const and bool(new_table.plan.counter and old_table.plan.counter)
        entries = (*old_table.entries.values(), old_table.default) if coloured or counted else ()
        for entry in filter(old_table.has_direct, entries):
            message = p4r.TableEntry()
            old_table.fill_key(entry, message)
            with suppress(P4RtError):  # a constant entry that the new program does not declare
                new_entry = new_table.find_direct(message)
                if coloured:
                    new_table.set_colours(new_entry, old_table.colours(entry), None)
                if counted:
                    old_table.fill_counter(entry, message.counter_data)
                    new_table.set_counter(new_entry, message.counter_data, None)
            yield ENTITY


def clear_initial(state: ForwardingState) -> None:
    """Deletes the program's initial entries that are not constant."""
    for table in state.tables.values():
        for entry in list(table.entries.values()):
            if not entry.is_const:
                message = p4r.TableEntry()
                table.fill_key(entry, message)
                table.write(DELETE, message, None)


def _updates(state: ForwardingState) -> Iterator[EntityUpdate | None]:
    """The updates that write a state to a fresh pipeline, in order; None for an entity that needs none."""
    for name in ("action_profile_member", "action_profile_group"):
        yield from map(EntityUpdate, state.entities(all_of(name)))
    for table in state.tables.values():
        # if two entries of the same priority match, the older one wins, so their order is part of the state
        for entry in table.entries.values():
            yield None if entry.is_const else EntityUpdate(_filled(table, entry))
        if not (table.plan.const_default or table.profile is not None or table.default_is_initial()):
            yield EntityUpdate(_filled(table, table.default), MODIFY)
    for entity in state.entities(all_of("value_set_entry")):
        yield EntityUpdate(entity, MODIFY) if entity.value_set_entry.members else None
    for name in ("packet_replication_engine_entry", "digest_entry"):
        yield from map(EntityUpdate, state.entities(all_of(name)))


def _filled(table: TableState, entry: StoredEntry) -> p4r.Entity:
    entity = p4r.Entity()
    table.fill(entry, _WITH_RESOURCES, entity)
    return entity
