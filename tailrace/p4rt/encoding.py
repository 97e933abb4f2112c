# SPDX-License-Identifier: Apache-2.0
"""Entities as P4Runtime messages, cached for equal entities.

The switches of a network have many equal entities: even in large networks there are only a few thousand
different routes, that is, pairs of leaf and port.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from tailrace.p4rt.by_name.program import ProgramNames
from tailrace.p4rt.entities import (
    P4CloneSessionEntry,
    P4DigestEntry,
    P4Entity,
    P4MulticastGroupEntry,
    P4TableEntry,
    Replica,
)
from tailrace.p4rt.messages import p4r
from tailrace.p4rt.programs import P4Program

MOST_CACHED = 1 << 20
"""Maximum number of messages that are cached per program; at a further message the cache is cleared."""

_PROGRAMS_CACHED = 16


@lru_cache(_PROGRAMS_CACHED)
def _cache(program: P4Program) -> dict[Hashable, p4r.Entity]:
    """The messages of a program by the key and the action of an entry; also one message for each key, and one
    for each action of a table, from which further messages are combined.
    """
    del program  # one dictionary per program
    return {}


@lru_cache(_PROGRAMS_CACHED)
def _shared(program: P4Program) -> dict[int, tuple[P4Entity, p4r.Entity]]:
    """Messages of immutable entities by `id()`; the entity is stored, too, so that its id stays unique."""
    del program
    return {}


def encode(program: P4Program, entities: Iterable[P4Entity]) -> list[p4r.Entity]:
    """Entities as P4Runtime messages, which are shared and immutable.

    Raises:
        SpecError: the program has no such table, action, field, ..., or a value does not fit.
    """
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
    if type(entity) is not P4TableEntry:
        return _ENCODERS[type(entity)](entity, names_of(program))
    table, call = entity.table_id, entity.action
    match = tuple(entity.match.items()) if entity.match else ()
    key = (table, entity.is_default_action, entity.priority, entity.meter_config, match)
    action = (table, call.name, tuple(call.args.items()))
    message = cache.get((key, action))
    if message is None:
        same_key, same_action = cache.get(key), cache.get(action)
        if same_key is None or same_action is None:
            message = _table_entry(entity, names_of(program))
        else:
            # most combinations of a key and an action occur once: copy key and action from cached messages
            message = p4r.Entity()
            message.CopyFrom(same_key)
            message.table_entry.action.CopyFrom(same_action.table_entry.action)
        if len(cache) >= MOST_CACHED:
            cache.clear()
        cache[key, action] = cache[key] = cache[action] = message
    return message


@lru_cache(_PROGRAMS_CACHED)
def names_of(program: P4Program) -> ProgramNames:
    """The names of a program's objects."""
    return ProgramNames(program.p4info)


def _table_entry(entity: P4TableEntry, names: ProgramNames) -> p4r.Entity:
    table, call = names.table(entity.table_id), entity.action
    key = {name: _as_text(value) for name, value in (entity.match or {}).items()}
    action = table.action(call.name).encode({name: _as_text(value) for name, value in call.args.items()})
    entry = table.encode(key, action, priority=entity.priority, default=entity.is_default_action)
    meter = entity.meter_config
    if meter is not None:
        rates = p4r.MeterConfig(cir=meter.cir, cburst=meter.cburst, pir=meter.pir, pburst=meter.pburst)
        entry.meter_config.CopyFrom(rates)
    return p4r.Entity(table_entry=entry)


def _as_text(value: object) -> object:
    """A value with addresses and networks converted to text."""
    if isinstance(value, (list, tuple)):
        return [_as_text(part) for part in value]
    return value if isinstance(value, (int, str)) else str(value)


def _multicast_group(entity: P4MulticastGroupEntry, _names: ProgramNames) -> p4r.Entity:
    message = p4r.Entity()
    group = message.packet_replication_engine_entry.multicast_group_entry
    group.multicast_group_id = entity.multicast_group_id
    group.replicas.extend(_replicas(entity.replicas))
    return message


def _clone_session(entity: P4CloneSessionEntry, _names: ProgramNames) -> p4r.Entity:
    message = p4r.Entity()
    session = message.packet_replication_engine_entry.clone_session_entry
    session.session_id, session.class_of_service = entity.session_id, entity.class_of_service
    session.replicas.extend(_replicas(entity.replicas))
    return message


def _replicas(replicas: Iterable[Replica]) -> Iterator[p4r.Replica]:
    for replica in replicas:
        port, instance = (replica, 0) if isinstance(replica, int) else replica
        # the field of P4Runtime up to 1.3, which BMv2 reads, too
        yield p4r.Replica(egress_port=port, instance=instance)


def _digest(entity: P4DigestEntry, names: ProgramNames) -> p4r.Entity:
    message = p4r.Entity()
    message.digest_entry.digest_id = names.digests.id_of(entity.digest_id)
    config = message.digest_entry.config
    config.max_list_size, config.ack_timeout_ns = entity.max_list_size, entity.ack_timeout_ns
    return message


_ENCODERS: Mapping[type[P4Entity], Callable[[Any, ProgramNames], p4r.Entity]] = {
    P4MulticastGroupEntry: _multicast_group,
    P4CloneSessionEntry: _clone_session,
    P4DigestEntry: _digest,
}
