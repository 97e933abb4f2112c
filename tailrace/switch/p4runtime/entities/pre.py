# SPDX-License-Identifier: Apache-2.0
"""Multicast groups and clone sessions of the packet replication engine (P4Runtime specification 9.5).

`Work` (context.py) is a request in steps: a generator that yields the units of work of each step, ENTITY
units for an entity or a replica. `Undo` is the list of functions that roll back a batch; None: not needed.
`References` (pins/references.py) count which entries refer to which (@refers_to); None: P4Info has no such
annotation. `check` and `check_deletion` raise an error if a reference would have no target.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from tailrace.p4rt.messages import p4r
from tailrace.p4rt.status import Code, P4RtError, exhausted, invalid, not_found
from tailrace.switch.core import Replica
from tailrace.switch.core.lib import MAX_PORT
from tailrace.switch.p4runtime import memory
from tailrace.switch.p4runtime.context import (
    DELETE,
    ENTITY,
    INSERT,
    MAX_METADATA_BYTES,
    Context,
    Responses,
    Undo,
    Work,
    long_metadata,
)

if TYPE_CHECKING:
    from tailrace.switch.p4runtime.pins.references import References

MAX_GROUP = 0xFFFF
MAX_SESSION = 32767
MAX_INSTANCE = 0xFFFF
MAX_CLASS_OF_SERVICE = 7
MAX_REPLICAS = 16384
"""Most replicas and backups of one multicast group or clone session."""


class ReplicaPlan(msgspec.Struct, frozen=True):
    """A replica, then its backups, as (port, instance): the first whose port is up gets the packet."""

    ports: tuple[tuple[int, int], ...]

    def effective(self, context: Context) -> Replica:
        """Port and instance to which packets are replicated now; if no port is up, those of the replica."""
        for port, instance in self.ports:
            if context.ports.is_up(port):
                return Replica(port, instance)
        return Replica(*self.ports[0])


class _Stored(msgspec.Struct, frozen=True):
    """A group or session. `keys`: the tuples by which entries can refer to it; `needs`: its references."""

    message: p4r.PacketReplicationEngineEntry
    replicas: tuple[ReplicaPlan, ...]
    keys: References = ()
    needs: References = ()

    @property
    def bytes(self) -> int:
        """Estimated bytes of memory."""
        size = memory.REPLICATED + memory.REPLICA * sum(len(plan.ports) for plan in self.replicas)
        return size + memory.reference_bytes(self.keys) + memory.reference_bytes(self.needs)


class _Store(msgspec.Struct):
    """The multicast groups, or the clone sessions, by id.

    `field`: their field of PacketReplicationEngineEntry; `id_field`: that of the id in it. `demand`: how many
    groups or sessions there are, plus their replicas.
    """

    what: str
    field: str
    id_field: str
    most_id: int
    entries: dict[int, _Stored] = msgspec.field(default_factory=dict)
    demand: int = 0

    def entry(self, message: p4r.PacketReplicationEngineEntry) -> Any:
        """The group or session in a message."""
        return getattr(message, self.field)

    def id_of(self, message: p4r.PacketReplicationEngineEntry) -> int:
        """The id of the group or session in a message; 0: it is unset."""
        entry_id: int = getattr(self.entry(message), self.id_field)
        return entry_id


class ReplicationState:
    """All multicast groups and clone sessions."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._groups = _Store("multicast group", "multicast_group_entry", "multicast_group_id", MAX_GROUP)
        self._sessions = _Store("clone session", "clone_session_entry", "session_id", MAX_SESSION)

    def _stores(self, message: p4r.PacketReplicationEngineEntry) -> list[_Store]:
        """Of groups and sessions those that a message is about; without a type it is about both."""
        which = message.WhichOneof("type")
        return [store for store in (self._groups, self._sessions) if which in (None, store.field)]

    def write(self, kind: int, message: p4r.PacketReplicationEngineEntry, undo: Undo | None) -> None:
        """Applies one update.

        Raises:
            P4RtError: the update is rejected; nothing has changed.
        """
        if message.WhichOneof("type") is None:
            raise invalid("a packet replication engine entry is neither a group nor a session")
        (store,) = self._stores(message)
        key = store.id_of(message)
        if not 0 < key <= store.most_id:
            raise invalid(f"{store.id_field} {key} is not in 1..{store.most_id}")
        what, before = f"{store.what} {key}", store.entries.get(key)
        if kind == INSERT and before is not None:
            raise P4RtError(Code.ALREADY_EXISTS, f"{what} already exists")
        if kind != INSERT and before is None:
            raise not_found(f"{what} does not exist")
        after = None if kind == DELETE else self._parse(store, message, what)
        references = self._context.references
        if references is not None:
            if after is not None:
                references.check(after.needs, what)
            elif before is not None:
                references.check_deletion(before.keys, before.needs, what)
        count = len(store.entries)
        if kind == INSERT and store is self._groups and count >= self._context.settings.multicast_groups:
            raise P4RtError(Code.RESOURCE_EXHAUSTED, f"there are {count} multicast groups already")
        self._store(store, key, after)
        if undo is not None:
            undo.append(lambda: self._store(store, key, before))

    def _parse(self, store: _Store, message: p4r.PacketReplicationEngineEntry, what: str) -> _Stored:
        self._check_size(store, message, what)
        copy = p4r.PacketReplicationEngineEntry()
        copy.CopyFrom(message)
        copy.DiscardUnknownFields()
        if store is self._sessions:
            session = copy.clone_session_entry
            if session.class_of_service > MAX_CLASS_OF_SERVICE:
                raise invalid(
                    f"{what}: class_of_service {session.class_of_service} exceeds {MAX_CLASS_OF_SERVICE}"
                )
            if session.packet_length_bytes < 0:
                raise invalid(f"{what}: packet_length_bytes {session.packet_length_bytes} is negative")
        plans = tuple(_replica(self._context, replica, what) for replica in store.entry(copy).replicas)
        pairs = [pair for plan in plans for pair in plan.ports]
        if len(set(pairs)) != len(pairs):
            raise invalid(f"{what}: two replicas have the same port and instance")
        references = self._context.references
        if references is None or store is self._sessions:
            return _Stored(copy, plans)
        group = copy.multicast_group_entry
        keys = references.plan.keys_of_group(group.multicast_group_id)
        return _Stored(copy, plans, keys, references.plan.of_group(group))

    def _check_size(self, store: _Store, message: p4r.PacketReplicationEngineEntry, what: str) -> None:
        given = store.entry(message).replicas
        if (
            len(given) > MAX_REPLICAS
            or sum(1 + len(replica.backup_replicas) for replica in given) > MAX_REPLICAS
        ):
            raise exhausted(f"{what}: more than {MAX_REPLICAS} replicas and backups")
        metadata = message.multicast_group_entry.metadata
        if len(metadata) > MAX_METADATA_BYTES:
            raise long_metadata(metadata, what)

    def _store(self, store: _Store, key: int, value: _Stored | None) -> None:
        before = store.entries.get(key)
        more_bytes = (0 if value is None else value.bytes) - (0 if before is None else before.bytes)
        with self._context.memory.reserved(more_bytes, store.what):
            self._install(store, key, value)
        if value is None:
            del store.entries[key]
        else:
            store.entries[key] = value
        self._update_references(before, value)
        size_before, size = (0 if state is None else 1 + len(state.replicas) for state in (before, value))
        store.demand += size - size_before

    def _update_references(self, before: _Stored | None, after: _Stored | None) -> None:
        references = self._context.references
        if references is not None:
            if before is not None:
                references.remove(before.keys, before.needs)
            if after is not None:
                references.add(after.keys, after.needs)

    def _install(self, store: _Store, key: int, value: _Stored | None) -> None:
        """Sets a group or session in the core; None: deletes it."""
        switch = self._context.switch
        if value is None:
            switch.mcast_delete(key) if store is self._groups else switch.clone_delete(key)
            return
        replicas: Sequence[Replica] = [plan.effective(self._context) for plan in value.replicas]
        if store is self._groups:
            switch.mcast_set(key, replicas)
        else:
            session = value.message.clone_session_entry
            switch.clone_set(
                key,
                replicas,
                class_of_service=session.class_of_service,
                truncate_bytes=session.packet_length_bytes,
            )

    def port_changed(self, port: int) -> None:
        """Switches replicas to their backups, or back."""
        for store in (self._groups, self._sessions):
            for key, value in store.entries.items():
                if any(len(plan.ports) > 1 and port in dict(plan.ports) for plan in value.replicas):
                    self._install(store, key, value)

    def in_force(self, request: p4r.PacketReplicationEngineEntry) -> p4r.PacketReplicationEngineEntry | None:
        """A group or session with only the replicas and backups now in use; None: it does not exist."""
        (store,) = self._stores(request)
        stored = store.entries.get(store.id_of(request))
        if stored is None:
            return None
        effective = p4r.PacketReplicationEngineEntry()
        effective.CopyFrom(stored.message)
        replicas = store.entry(effective).replicas
        del replicas[:]
        for plan in stored.replicas:
            copy = plan.effective(self._context)
            replicas.add(egress_port=copy.port, instance=copy.instance)
        if store is self._groups:
            effective.multicast_group_entry.ClearField("metadata")
        return effective

    def demand(self, message: p4r.PacketReplicationEngineEntry) -> int:
        """The number of entities that a read request may return, plus their replicas."""
        demand = 0
        for store in self._stores(message):
            key = store.id_of(message)
            stored = store.entries.get(key)
            demand += (0 if stored is None else 1 + len(stored.replicas)) if key else store.demand
        return demand

    def read(self, message: p4r.PacketReplicationEngineEntry, out: Responses) -> Work:
        """Answers one read request. Id 0 is a wildcard; without a type both groups and sessions are read."""
        for store in self._stores(message):
            key = store.id_of(message)
            if key and key not in store.entries:
                raise not_found(f"{store.what} {key} does not exist")
            for entry_id in (key,) if key else tuple(store.entries):
                value = store.entries.get(entry_id)  # may have been deleted between two quanta of work
                if value is not None:
                    out.add().packet_replication_engine_entry.CopyFrom(value.message)
                    yield ENTITY * (1 + len(value.replicas))


def _replica(context: Context, replica: p4r.Replica, what: str) -> ReplicaPlan:
    """The plan of a replica; checks `replica` and makes its bytestrings canonical in place.

    `Context.port` returns the number of a port, and its canonical bytestring.
    """
    if replica.WhichOneof("port_kind") == "port":
        port, replica.port = context.port(replica.port, f"{what}: port")
    else:
        port = replica.egress_port
    ports = [(port, replica.instance)]
    for backup in replica.backup_replicas:
        number, backup.port = context.port(backup.port, f"{what}: port")
        ports.append((number, backup.instance))
    for number, instance in ports:
        if number > MAX_PORT:
            raise invalid(f"{what}: port {number} exceeds {MAX_PORT}")
        if instance > MAX_INSTANCE:
            raise invalid(f"{what}: instance {instance} exceeds {MAX_INSTANCE}")
    if port in (number for number, _ in ports[1:]):
        raise invalid(f"{what}: a backup replica has the port of its replica")
    return ReplicaPlan(tuple(ports))
