# SPDX-License-Identifier: Apache-2.0
"""Lock keys: the parts of a pipeline's state that requests lock independently."""

from __future__ import annotations

from collections.abc import Iterable

from finsy.proto import p4r

from tailrace.switch.p4runtime.annotated.roles import owner_of
from tailrace.switch.p4runtime.concurrency.locks import LockKey
from tailrace.switch.p4runtime.entities.schema import Schema

REPLICATION = "replication"
"""Multicast groups and clone sessions."""

_REFERRING = "referring"
"""All tables, where entries refer to entries of other tables (@refers_to)."""


class LockKeys:
    """The lock keys of one pipeline: a table with its direct resources, a profile with its tables, an array;
    with references, one key for all tables, profiles and replication.
    """

    def __init__(self, schema: Schema) -> None:
        referring = schema.references is not None
        self._replication: LockKey = _REFERRING if referring else REPLICATION
        profiles = {number: _REFERRING if referring else number for number in schema.profiles}
        tables = {
            plan.id: _REFERRING if referring else plan.id if plan.profile is None else plan.profile.id
            for plan in schema.tables.values()
        }
        arrays = {
            "counter_entry": dict.fromkeys(schema.counters),
            "meter_entry": dict.fromkeys(schema.meters),
            "register_entry": dict.fromkeys(schema.registers),
            "value_set_entry": dict.fromkeys(schema.value_sets),
            "digest_entry": dict.fromkeys(schema.digests),
        }
        of_kind: dict[str, dict[int, LockKey]] = {
            kind: {key: key for key in ids} for kind, ids in arrays.items()
        }
        of_kind |= {key: {**tables} for key in ("table_entry", "direct_counter_entry", "direct_meter_entry")}
        of_kind |= {key: {**profiles} for key in ("action_profile_member", "action_profile_group")}
        self._of_kind = of_kind

    def of(self, entity: p4r.Entity) -> Iterable[LockKey]:
        """The keys that an update or a read request needs: one, or all of its kind; none if it is invalid."""
        kind = entity.WhichOneof("entity")
        if kind == "packet_replication_engine_entry":
            return (self._replication,)
        known = self._of_kind.get(kind) if kind is not None else None
        if known is None:
            return ()
        owner = owner_of(entity)
        if not owner:
            return known.values()
        part = known.get(owner)
        return () if part is None else (part,)
