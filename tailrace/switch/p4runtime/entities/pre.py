# SPDX-License-Identifier: Apache-2.0
"""Multicast groups and clone sessions of the packet replication engine (P4Runtime specification 9.5).

`Work` (context.py) is a request in steps: a generator that yields the units of work of each step, ENTITY
units for an entity or a replica. `Undo` is the list of functions that roll back a batch; None: not needed.
`References` (pins/references.py) count which entries refer to which (@refers_to); None: P4Info has no such
annotation. `check` and `check_deletion` raise an error if a reference would have no target.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from finsy.proto import p4r

from tailrace.p4rt.status import Code, P4RtError, exhausted, invalid, not_found
from tailrace.switch.core import Replica, StateError
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


@dataclass(frozen=True, slots=True)
class ReplicaPlan:
    """A replica, then its backups, as (port, instance): the first whose port is up gets the packet."""

    ports: tuple[tuple[int, int], ...]

    def effective(self, context: Context) -> Replica:
        """Port and instance to which packets are replicated now; if no port is up, those of the replica."""
        for port, instance in self.ports:
            if context.ports.is_up(port):
                return Replica(port, instance)
        return Replica(*self.ports[0])


@dataclass(frozen=True, slots=True)
class _Stored:
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


class ReplicationState:
    """All multicast groups and clone sessions."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._groups: dict[int, _Stored] = {}
        self._sessions: dict[int, _Stored] = {}
        # numbers of groups plus their replicas, and of sessions plus their replicas
        self._in_groups = self._in_sessions = 0

    def write(self, kind: int, message: p4r.PacketReplicationEngineEntry, undo: Undo | None) -> None:
        """Applies one update.

        Raises:
            P4RtError: the update is rejected; nothing has changed.
        """
        which = message.WhichOneof("type")
        if which == "multicast_group_entry":
            group_id = message.multicast_group_entry.multicast_group_id
            if not 0 < group_id <= MAX_GROUP:
                raise invalid(f"multicast_group_id {group_id} is not in 1..{MAX_GROUP}")
            self._update(kind, self._groups, group_id, message, f"multicast group {group_id}", undo)
        elif which == "clone_session_entry":
            session_id = message.clone_session_entry.session_id
            if not 0 < session_id <= MAX_SESSION:
                raise invalid(f"session_id {session_id} is not in 1..{MAX_SESSION}")
            self._update(kind, self._sessions, session_id, message, f"clone session {session_id}", undo)
        else:
            raise invalid("a packet replication engine entry is neither a group nor a session")

    def _update(
        self,
        kind: int,
        stored: dict[int, _Stored],
        key: int,
        message: p4r.PacketReplicationEngineEntry,
        what: str,
        undo: Undo | None,
    ) -> None:
        before = stored.get(key)
        if kind == INSERT and before is not None:
            raise P4RtError(Code.ALREADY_EXISTS, f"{what} already exists")
        if kind != INSERT and before is None:
            raise not_found(f"{what} does not exist")
        after = None if kind == DELETE else self._parse(message, what)
        references = self._context.references
        if references is not None:
            if after is not None:
                references.check(after.needs, what)
            elif before is not None:
                references.check_deletion(before.keys, before.needs, what)
        if kind == INSERT and stored is self._groups and len(stored) >= self._context.limits.multicast_groups:
            raise P4RtError(Code.RESOURCE_EXHAUSTED, f"there are {len(stored)} multicast groups already")
        self._store(stored, key, after)
        if undo is not None:
            undo.append(lambda: self._store(stored, key, before))

    def _parse(self, message: p4r.PacketReplicationEngineEntry, what: str) -> _Stored:
        self._check_size(message, what)
        copy = p4r.PacketReplicationEngineEntry()
        copy.CopyFrom(message)
        copy.DiscardUnknownFields()
        if copy.WhichOneof("type") == "multicast_group_entry":
            replicas = copy.multicast_group_entry.replicas
        else:
            session = copy.clone_session_entry
            replicas = session.replicas
            if session.class_of_service > MAX_CLASS_OF_SERVICE:
                raise invalid(
                    f"{what}: class_of_service {session.class_of_service} exceeds {MAX_CLASS_OF_SERVICE}"
                )
            if session.packet_length_bytes < 0:
                raise invalid(f"{what}: packet_length_bytes {session.packet_length_bytes} is negative")
        plans = tuple(_replica(self._context, replica, what) for replica in replicas)
        pairs = [pair for plan in plans for pair in plan.ports]
        if len(set(pairs)) != len(pairs):
            raise invalid(f"{what}: two replicas have the same port and instance")
        references = self._context.references
        if references is None or copy.WhichOneof("type") != "multicast_group_entry":
            return _Stored(copy, plans)
        group = copy.multicast_group_entry
        keys = references.plan.keys_of_group(group.multicast_group_id)
        return _Stored(copy, plans, keys, references.plan.of_group(group))

    def _check_size(self, message: p4r.PacketReplicationEngineEntry, what: str) -> None:
        is_group = message.WhichOneof("type") == "multicast_group_entry"
        given = message.multicast_group_entry.replicas if is_group else message.clone_session_entry.replicas
        most = self._context.limits.replicas
        if len(given) > most or sum(1 + len(replica.backup_replicas) for replica in given) > most:
            raise exhausted(f"{what}: more than {most} replicas and backups")
        if is_group:
            metadata = message.multicast_group_entry.metadata
            if len(metadata) > MAX_METADATA_BYTES:
                raise long_metadata(metadata, what)

    def _store(self, stored: dict[int, _Stored], key: int, value: _Stored | None) -> None:
        is_group = stored is self._groups
        before = stored.get(key)
        more_bytes = (0 if value is None else value.bytes) - (0 if before is None else before.bytes)
        self._context.memory.reserve(more_bytes, "multicast group" if is_group else "clone session")
        size_before, size = (0 if state is None else 1 + len(state.replicas) for state in (before, value))
        if value is None:
            del stored[key]
            self._update_references(before, None)
            self._count(-size_before, is_group=is_group)
            if is_group:
                self._context.switch.mcast_delete(key)
            else:
                self._context.switch.clone_delete(key)
            return
        try:
            self._install(key, value)
        except StateError:
            self._context.memory.release(more_bytes)
            raise
        stored[key] = value
        self._update_references(before, value)
        self._count(size - size_before, is_group=is_group)

    def _update_references(self, before: _Stored | None, after: _Stored | None) -> None:
        references = self._context.references
        if references is not None:
            if before is not None:
                references.remove(before.keys, before.needs)
            if after is not None:
                references.add(after.keys, after.needs)

    def _count(self, more: int, *, is_group: bool) -> None:
        if is_group:
            self._in_groups += more
        else:
            self._in_sessions += more

    def _install(self, key: int, value: _Stored) -> None:
        replicas: Sequence[Replica] = [plan.effective(self._context) for plan in value.replicas]
        if value.message.WhichOneof("type") == "multicast_group_entry":
            self._context.switch.mcast_set(key, replicas)
        else:
            session = value.message.clone_session_entry
            self._context.switch.clone_set(
                key,
                replicas,
                class_of_service=session.class_of_service,
                truncate_bytes=session.packet_length_bytes,
            )

    def port_changed(self, port: int) -> None:
        """Switches replicas to their backups, or back."""
        for stored in (self._groups, self._sessions):
            for key, value in stored.items():
                if any(len(plan.ports) > 1 and port in dict(plan.ports) for plan in value.replicas):
                    self._install(key, value)

    def in_force(self, request: p4r.PacketReplicationEngineEntry) -> p4r.PacketReplicationEngineEntry | None:
        """A group or session with only the replicas and backups now in use; None: it does not exist."""
        is_group = request.WhichOneof("type") == "multicast_group_entry"
        if is_group:
            stored = self._groups.get(request.multicast_group_entry.multicast_group_id)
        else:
            stored = self._sessions.get(request.clone_session_entry.session_id)
        if stored is None:
            return None
        effective = p4r.PacketReplicationEngineEntry()
        effective.CopyFrom(stored.message)
        replicas = (effective.multicast_group_entry if is_group else effective.clone_session_entry).replicas
        del replicas[:]
        for plan in stored.replicas:
            copy = plan.effective(self._context)
            replicas.add(egress_port=copy.port, instance=copy.instance)
        if is_group:
            effective.multicast_group_entry.ClearField("metadata")
        return effective

    def demand(self, message: p4r.PacketReplicationEngineEntry) -> int:
        """The number of entities that a read request may return, plus their replicas."""
        group, session = (
            message.multicast_group_entry.multicast_group_id,
            message.clone_session_entry.session_id,
        )
        which = message.WhichOneof("type")
        if group or session:
            stored = self._groups.get(group) if group else self._sessions.get(session)
            return 0 if stored is None else 1 + len(stored.replicas)
        return (self._in_groups if which != "clone_session_entry" else 0) + (
            self._in_sessions if which != "multicast_group_entry" else 0
        )

    def read(self, message: p4r.PacketReplicationEngineEntry, out: Responses) -> Work:
        """Answers one read request. Id 0 is a wildcard; without a type both groups and sessions are read."""
        which = message.WhichOneof("type")
        if which != "clone_session_entry":
            group_id = message.multicast_group_entry.multicast_group_id
            yield from self._read(self._groups, group_id, "multicast group", out)
        if which != "multicast_group_entry":
            yield from self._read(
                self._sessions, message.clone_session_entry.session_id, "clone session", out
            )

    @staticmethod
    def _read(stored: dict[int, _Stored], key: int, what: str, out: Responses) -> Work:
        if key and key not in stored:
            raise not_found(f"{what} {key} does not exist")
        for entry_id in (key,) if key else tuple(stored):
            value = stored.get(entry_id)  # may have been deleted between two quanta of work
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
