# SPDX-License-Identifier: Apache-2.0
"""The minimal updates from the actual to the intended entities of a switch, and their order.

A route must never refer to a missing group. Therefore all other entities, such as groups, are written before
routes, and deleted after routes. P4Runtime guarantees no order within one Write, so each of these stages is a
separate Write.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import msgspec

from tailrace.p4rt.canonical import Key, Value, action_value, canonical
from tailrace.p4rt.messages import p4r
from tailrace.p4rt.programs import P4Program

_ROUTES = "ipv4_routes"
"""The table whose entries refer to groups."""


ByKey = dict[Key, tuple[Value, p4r.Entity]]
"""Entities by key, with their values."""


class EntityChange(msgspec.Struct, frozen=True):
    """One difference: its update, the actual entity (before), the intended entity (after); None: absent."""

    update: p4r.Update
    before: p4r.Entity | None
    after: p4r.Entity | None


def by_key(entities: Iterable[p4r.Entity]) -> ByKey:
    """Entities by key; of several entities with the same key, the last entity."""
    entities_by_key = {}
    for entity in entities:
        key, value = canonical(entity)
        entities_by_key[key] = (value, entity)
    return entities_by_key


def diff(
    program: P4Program, intended: Iterable[p4r.Entity], actual: Iterable[p4r.Entity]
) -> list[EntityChange]:
    """The differences, unordered; `stages` orders them.

    A default action that is not intended is a difference if it differs from the program's initial default.
    """
    return diff_by_key(program, by_key(intended), by_key(actual))


def diff_by_key(program: P4Program, intended: ByKey, actual: ByKey) -> list[EntityChange]:
    """Like `diff`, for entities by key."""
    changes = []
    for key, (value, entity) in intended.items():
        before = actual.get(key)
        if before is None:
            kind = p4r.Update.MODIFY if key[0] == "default" else p4r.Update.INSERT
            changes.append(EntityChange(p4r.Update(type=kind, entity=entity), None, entity))
        elif before[0] != value:
            changes.append(EntityChange(p4r.Update(type=p4r.Update.MODIFY, entity=entity), before[1], entity))
    initial = _initial_defaults(program)
    for key, (value, entity) in actual.items():
        if key in intended or initial.get(key) == value:
            continue
        if key[0] == "default":
            reset = p4r.Entity()
            reset.table_entry.table_id = entity.table_entry.table_id
            reset.table_entry.is_default_action = True
            changes.append(EntityChange(p4r.Update(type=p4r.Update.MODIFY, entity=reset), entity, None))
        else:
            changes.append(
                EntityChange(p4r.Update(type=p4r.Update.DELETE, entity=identity(entity)), entity, None)
            )
    return changes


def identity(entity: p4r.Entity) -> p4r.Entity:
    """The entity with only its key fields, for a deletion."""
    if entity.WhichOneof("entity") != "table_entry":
        return entity
    entry = entity.table_entry
    identity = p4r.Entity()
    identity.table_entry.table_id = entry.table_id
    identity.table_entry.priority = entry.priority
    identity.table_entry.match.extend(entry.match)
    return identity


@lru_cache
def _initial_defaults(program: P4Program) -> dict[Key, Value]:
    """The program's initial default actions, by key."""
    defaults: dict[Key, Value] = {}
    for table in program.p4info.tables:
        if table.HasField("initial_default_action"):
            initial = table.initial_default_action
            action = p4r.Action(action_id=initial.action_id)
            for argument in initial.arguments:
                action.params.add(param_id=argument.param_id, value=argument.value)
            defaults["default", table.preamble.id] = ("action", *action_value(action))
    return defaults


def stages(program: P4Program, changes: Iterable[EntityChange]) -> list[list[p4r.Update]]:
    """The updates of some changes, as consecutive Writes in the order at the top of this file."""
    routes = program.table(_ROUTES).preamble.id
    by_stage: tuple[list[p4r.Update], ...] = ([], [], [], [])
    for change in changes:
        update = change.update
        is_route = update.entity.table_entry.table_id == routes
        if update.type == p4r.Update.DELETE:
            by_stage[2 if is_route else 3].append(update)
        else:
            by_stage[1 if is_route else 0].append(update)
    return [stage for stage in by_stage if stage]
