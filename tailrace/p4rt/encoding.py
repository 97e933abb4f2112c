# SPDX-License-Identifier: Apache-2.0
"""Entities as P4Runtime messages: finsy's encoding, cached for equal entities.

The switches of a network have many equal entities: even in large networks there are only a few thousand
different routes, that is, pairs of leaf and port.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import fields
from functools import lru_cache
from operator import attrgetter

from finsy import P4TableAction, P4TableEntry
from finsy.p4entity import P4Entity
from finsy.proto import p4r

from tailrace.p4rt.by_name.program import ProgramNames
from tailrace.p4rt.programs import P4Program

MOST_CACHED = 1 << 20
"""Maximum number of messages that are cached per program; at a further message the cache is cleared."""

_PROGRAMS_CACHED = 16

_KEY_FIELDS = ("table_id", "match", "action", "is_default_action", "priority", "meter_config")
_other_fields = attrgetter(*(field.name for field in fields(P4TableEntry) if field.name not in _KEY_FIELDS))
_UNSET_FIELDS = _other_fields(P4TableEntry())
"""Values of the fields not in _KEY_FIELDS, if they are unset."""


@lru_cache(_PROGRAMS_CACHED)
def _cache(program: P4Program) -> dict[Hashable, p4r.Entity]:
    """The messages of a program by `_cache_key`; also one message for each key, and one for each action of a
    table, from which further messages are combined.
    """
    del program  # one dictionary per program
    return {}


@lru_cache(_PROGRAMS_CACHED)
def _shared(program: P4Program) -> dict[int, tuple[P4Entity, p4r.Entity]]:
    """Messages of immutable entities by `id()`; the entity is stored, too, so that its id stays unique."""
    del program
    return {}


_KEY_LENGTH = 5
"""Number of elements of `_cache_key` before the action."""


def _cache_key(entity: P4Entity) -> tuple[Hashable, ...] | None:
    """The key of an entity in the cache; None for rare kinds, which are not cached."""
    if type(entity) is not P4TableEntry or _other_fields(entity) != _UNSET_FIELDS:
        return None
    action = entity.action
    if type(action) is not P4TableAction:
        return None
    meter = entity.meter_config
    return (
        entity.table_id,
        entity.is_default_action,
        entity.priority,
        None if meter is None else (meter.cir, meter.cburst, meter.pir, meter.pburst, meter.eburst),
        tuple(entity.match.items()) if entity.match else (),
        action.name,
        tuple(action.args.items()),
    )


def encode(program: P4Program, entities: Iterable[P4Entity]) -> list[p4r.Entity]:
    """Entities as P4Runtime messages, which are shared and immutable."""
    cache = _cache(program)
    return [_encoded(entity, cache, program) for entity in entities]


def encode_shared(program: P4Program, entities: Iterable[P4Entity]) -> list[p4r.Entity]:
    """Like `encode`, but for immutable entities, which are cached by identity."""
    cache, shared = _cache(program), _shared(program)
    messages = []
    for entity in entities:
        cached = shared.get(id(entity))
        if cached is None:
            if len(shared) >= MOST_CACHED:
                shared.clear()
            cached = shared[id(entity)] = entity, _encoded(entity, cache, program)
        messages.append(cached[1])
    return messages


def _encoded(entity: P4Entity, cache: dict[Hashable, p4r.Entity], program: P4Program) -> p4r.Entity:
    cache_key = _cache_key(entity)
    if cache_key is None:
        return entity.encode(program.schema)
    message = cache.get(cache_key)
    if message is None:
        key, call = cache_key[:_KEY_LENGTH], cache_key[:1] + cache_key[_KEY_LENGTH:]
        same_key, same_call = cache.get(key), cache.get(call)
        if same_key is None or same_call is None:
            message = _message(entity, program)
        else:
            # most combinations of a key and an action occur once: copy key and action from cached messages
            message = p4r.Entity()
            message.CopyFrom(same_key)
            message.table_entry.action.CopyFrom(same_call.table_entry.action)
        if len(cache) >= MOST_CACHED:
            cache.clear()
        cache[cache_key] = cache[key] = cache[call] = message
    return message


@lru_cache(_PROGRAMS_CACHED)
def _names(program: P4Program) -> ProgramNames:
    return ProgramNames(program.p4info)


def _message(entity: P4Entity, program: P4Program) -> p4r.Entity:
    """The message of a table entry with an action; without finsy if finsy does not support the program."""
    if len(program.schema.tables) == len(program.p4info.tables):
        return entity.encode(program.schema)
    assert isinstance(entity, P4TableEntry) and isinstance(entity.action, P4TableAction)
    table = _names(program).table(entity.table_id)
    key = {name: _as_text(value) for name, value in (entity.match or {}).items()}
    arguments = {name: _as_text(value) for name, value in entity.action.args.items()}
    action = table.action(entity.action.name).encode(arguments)
    entry = table.encode(key, action, priority=entity.priority, default=entity.is_default_action)
    if entity.meter_config is not None:
        entry.meter_config.CopyFrom(entity.meter_config.encode())
    return p4r.Entity(table_entry=entry)


def _as_text(value: object) -> object:
    """A value with addresses and networks converted to text."""
    if isinstance(value, (list, tuple)):
        return [_as_text(part) for part in value]
    return value if isinstance(value, (int, str)) else str(value)
