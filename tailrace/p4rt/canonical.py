# SPDX-License-Identifier: Apache-2.0
"""Canonical keys and values of entities, for comparison.

Equivalent messages have the same key and value, however a switch orders fields or pads numbers. The value
includes the rates of an entry's meter. It excludes counters, idle times and other fields that a switch adds.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from operator import attrgetter

from tailrace.p4rt.messages import p4r

Key = tuple[object, ...]
Value = tuple[object, ...]

_MOST_CACHED = 1 << 16
"""Maximum number of entities whose key and value are cached; switches often have equal entities."""

_field_id = attrgetter("field_id")


def _number(octets: bytes) -> bytes:
    return octets.lstrip(b"\0")


def _match(field: p4r.FieldMatch) -> Key:
    kind = field.WhichOneof("field_match_type")
    if kind == "exact":
        parts: Key = (_number(field.exact.value),)
    elif kind == "lpm":
        parts = (_number(field.lpm.value), field.lpm.prefix_len)
    elif kind == "ternary":
        parts = (_number(field.ternary.value), _number(field.ternary.mask))
    elif kind == "range":
        parts = (_number(field.range.low), _number(field.range.high))
    elif kind == "optional":
        parts = (_number(field.optional.value),)
    else:
        parts = (field.SerializeToString(deterministic=True),)
    return (field.field_id, kind, *parts)


def action_value(action: p4r.Action) -> Value:
    """The canonical value of an action."""
    params = [(param.param_id, _number(param.value)) for param in action.params]
    if len(params) > 1:
        params.sort()
    return (action.action_id, *params)


def _table_value(entry: p4r.TableEntry) -> Value:
    if entry.HasField("meter_config"):
        rates = entry.meter_config
        return (*_action_value(entry), rates.cir, rates.cburst, rates.pir, rates.pburst, rates.eburst)
    return _action_value(entry)


def _action_value(entry: p4r.TableEntry) -> Value:
    if entry.action.WhichOneof("type") == "action":
        return ("action", *action_value(entry.action.action))
    return ("other", entry.action.SerializeToString(deterministic=True))


def replica_port(replica: p4r.Replica) -> int:
    """The port of a replica: a number up to P4Runtime 1.3, bytes since 1.4."""
    if replica.WhichOneof("port_kind") == "port":
        return int.from_bytes(replica.port, "big")
    return replica.egress_port


def _replicas(replicas: Iterable[p4r.Replica]) -> Value:
    return tuple(sorted((replica_port(replica), replica.instance) for replica in replicas))


def table_key(entry: p4r.TableEntry) -> Key:
    """The key of a table entry; the key of a default entry is the table alone."""
    if entry.is_default_action:
        return ("default", entry.table_id)
    fields = entry.match if len(entry.match) == 1 else sorted(entry.match, key=_field_id)
    return ("table", entry.table_id, entry.priority, *map(_match, fields))


def canonical(entity: p4r.Entity) -> tuple[Key, Value]:
    """The canonical key and value of an entity."""
    return _of_octets(entity.SerializeToString())


@lru_cache(_MOST_CACHED)
def _of_octets(octets: bytes) -> tuple[Key, Value]:
    entity = p4r.Entity.FromString(octets)
    kind = entity.WhichOneof("entity")
    if kind == "table_entry":
        return table_key(entity.table_entry), _table_value(entity.table_entry)
    if kind == "digest_entry":
        config = entity.digest_entry.config
        value = (config.max_timeout_ns, config.max_list_size, config.ack_timeout_ns)
        return ("digest", entity.digest_entry.digest_id), value
    if kind == "packet_replication_engine_entry":
        entry = entity.packet_replication_engine_entry
        if entry.WhichOneof("type") == "clone_session_entry":
            clone = entry.clone_session_entry
            replicas = _replicas(clone.replicas)
            return ("clone", clone.session_id), (clone.class_of_service, clone.packet_length_bytes, replicas)
        group = entry.multicast_group_entry
        return ("multicast", group.multicast_group_id), _replicas(group.replicas)
    raise ValueError(f"entities of kind {kind} are not compared")
