# SPDX-License-Identifier: Apache-2.0
"""The forwarding state of one pipeline: all its entities, and the execution of Writes and Reads on them.

Terms of context.py: `Work` is a request in steps, a generator that yields the units of work of each step. An
entity takes ENTITY units, an item that is left out SKIPPED; after QUANTUM units a request pauses. `Undo` is a
list of functions that undo a batch.

Strings are values of translated types (sdn_string) in messages, each with a number in the data plane. A
savepoint is the state of these numbers before a Write (entities/translation.py).
`owner_of(entity)` is the P4Info id of the entity's table, action profile, array, value set or digest.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Protocol

from tailrace.p4rt.messages import p4r
from tailrace.p4rt.status import Code, P4RtError, exhausted, invalid, not_found, without_frames
from tailrace.switch.core import StateError
from tailrace.switch.p4runtime.context import (
    COPIES_PER_WORK,
    DELETE,
    ENTITY,
    INSERT,
    MODIFY,
    QUANTUM,
    SKIPPED,
    TOKENS_PER_WORK,
    Context,
    Responses,
    Undo,
    Work,
    as_p4rt_error,
    owner_of,
)
from tailrace.switch.p4runtime.entities.digests import Digests
from tailrace.switch.p4runtime.entities.externs import Counters, Meters, Registers, ValueSets
from tailrace.switch.p4runtime.entities.pre import ReplicationState
from tailrace.switch.p4runtime.entities.profiles import ProfileState
from tailrace.switch.p4runtime.entities.requests import (
    DirectCounters,
    DirectMeters,
    Groups,
    Kind,
    Members,
    ReadableKind,
    TableEntries,
)
from tailrace.switch.p4runtime.entities.schema import Schema, absent, find
from tailrace.switch.p4runtime.entities.tables import TableState
from tailrace.switch.p4runtime.entities.translation import Savepoint

Result = P4RtError | None
"""The result of one update or request: None is success."""


class UpdateResults(Protocol):
    """Collects results: a list, or the status of a batch (tailrace.p4rt.status)."""

    def append(self, result: Result, /) -> None: ...

    def extend(self, results: Iterable[Result], /) -> None: ...

    def __len__(self) -> int: ...


Refusal = Callable[[], Result]
"""Returns the error with which the rest of a Write is rejected; None: the Write continues."""


class AnyUpdate(Protocol):
    """A p4.v1.Update, or a p4rt.inprocess.EntityUpdate: it has the same fields, but shares the entity."""

    @property
    def type(self) -> int: ...

    @property
    def entity(self) -> p4r.Entity: ...


MAX_ROLLBACK = 4096
"""Most updates in one batch with rollback; other Writes wait for them."""
MAX_READ_BYTES = 256 << 20
"""Most bytes of the responses to one Read."""
MAX_IDLE = 1000
"""Most entries in one idle timeout notification."""

_BYTES_PER_WORK = 2
"""Bytes of a large message, such as a group, that count as one unit of work (context.py)."""
_ENTITY_BYTES = 48
"""Estimated bytes of an entity, or a member or replica within one, in a response."""

_KINDS_WITH_STRINGS = (
    *("action_profile_member", "action_profile_group", "value_set_entry", "register_entry"),
    "packet_replication_engine_entry",
)
"""Kinds of entities that may contain strings (sdn_string), besides table entries."""

_KINDS = (INSERT, MODIFY, DELETE)


class ForwardingState:
    """All entities of one pipeline on one switch. Create it just after the switch has loaded the program."""

    def __init__(self, schema: Schema, context: Context) -> None:
        self.schema = schema
        self.context = context
        self._strings = schema.types if schema.types.has_strings() else None
        schema.types.states += 1  # counts the states that use the strings
        if schema.references is not None:
            context.references = schema.references.index()
        self.profiles = {plan.id: ProfileState(plan, context) for plan in schema.profiles.values()}
        self.tables = {
            plan.id: TableState(
                plan, schema, context, self.profiles[plan.profile.id] if plan.profile else None
            )
            for plan in schema.tables.values()
        }
        self.digests = Digests(schema, context)
        self.counters = Counters(schema.counters, context)
        self.meters = Meters(schema.meters, context)
        self.registers = Registers(schema.registers, context)
        self.replication = ReplicationState(context)
        self._writable: dict[str | None, Kind] = {
            "action_profile_member": Members(self.profiles),
            "action_profile_group": Groups(self.profiles),
            "direct_counter_entry": DirectCounters(self.tables),
            "direct_meter_entry": DirectMeters(self.tables),
            "counter_entry": self.counters,
            "meter_entry": self.meters,
            "register_entry": self.registers,
            "value_set_entry": ValueSets(schema, context),
            "digest_entry": self.digests,
            "packet_replication_engine_entry": self.replication,
        }
        self._kinds: dict[str | None, ReadableKind] = {
            "table_entry": TableEntries(self.tables),
            **self._writable,
        }
        self._work = 0
        """Units of work of the current Write since its last yield."""

    def close(self) -> Work:
        """Frees all entities, in steps, as there may be a million."""
        self.schema.types.states -= 1
        for table in self.tables.values():
            for _ in table.forget():
                yield SKIPPED
        for profile in self.profiles.values():
            for stored in (profile.one_shots, profile.groups, profile.members):
                while stored:
                    stored.popitem()
                    yield SKIPPED

    # ---- Write ----

    def write(
        self,
        updates: Iterable[AnyUpdate],
        results: UpdateResults,
        role: str = "",
        refusal: Refusal = lambda: None,
    ) -> Work:
        """Applies each update independently, in order (CONTINUE_ON_ERROR).

        Args:
            results: receives the results of the updates up to the last that fails; later updates succeed.
            role: the client's role.
            refusal: called after each quantum of work; its error rejects all further updates.
        """
        evaluated, constraints, self._work = 0, self.schema.constraints, 0
        rest: Result = None  # the error of all further updates
        for position, update in enumerate(updates):
            error, self._work = rest, self._work + SKIPPED
            if rest is None:
                error = yield from self.apply(update, None, role)
                if constraints is not None:
                    evaluated += constraints.evaluated
                    rest = constraints.refusal(evaluated)
            if error is not None:  # recorded now, as the Write may be ended at the yield below
                results.extend([None] * (position - len(results)))
                results.append(error)
            if self._work >= QUANTUM:
                yield self.take_work()
                rest = rest or refusal()

    def write_all_or_none(
        self,
        updates: Sequence[AnyUpdate],
        results: UpdateResults,
        role: str = "",
        refusal: Refusal = lambda: None,
    ) -> Work:
        """Applies the updates in order; if one fails, it rolls all of them back (ROLLBACK_ON_ERROR).

        It also rolls back if the generator is closed early. The other updates of a failed batch are ABORTED.

        Args:
            results: if an update fails, receives the result of each update.
            role: the client's role.
            refusal: called after each quantum of work; its error fails the batch.

        Raises:
            P4RtError: RESOURCE_EXHAUSTED: too many updates. INTERNAL: a part of the rollback failed. Or the
                error of `refusal`.
        """
        if len(updates) > MAX_ROLLBACK:
            raise exhausted(
                f"a ROLLBACK_ON_ERROR batch has {MAX_ROLLBACK} updates at most, not {len(updates)}"
            )
        undo = Undo()
        complete, attempted, self._work = False, 0, 0
        savepoint = None if self._strings is None else self._strings.begin()
        self.schema.types.count_batch()  # strings must not be swept before the end of the batch
        try:
            for position, update in enumerate(updates):
                attempted += 1
                error = yield from self.apply(update, undo, role)
                if error is not None:
                    aborted = P4RtError(Code.ABORTED, "rolled back: another update failed")
                    results.extend([aborted] * position)
                    results.append(error)
                    results.extend([aborted] * (len(updates) - position - 1))
                    return
                if self._work >= QUANTUM:
                    yield self.take_work()
                    refused = refusal()
                    if refused is not None:
                        raise refused
            complete = True
        finally:
            self.schema.types.count_batch(-1)
            if not complete:
                with self.context.memory.unlimited():
                    undo.roll_back()
                self._roll_back(savepoint, attempted)

    def _roll_back(self, savepoint: Savepoint | None, within: int = 0) -> None:
        """Frees the numbers that a failed Write has allocated to strings since the savepoint.

        `within`: how many writes since the savepoint are parts of the failed Write.
        """
        if savepoint is not None and self._strings is not None and self._strings.roll_back(savepoint, within):
            self.schema.interned.clear()  # interned entries refer to strings

    def sweep_if_nearly_full(self) -> Work:
        """Sweeps strings if few are free; called before a batch with rollback, which must not sweep."""
        if self._strings is not None and self._strings.nearly_full() and self._strings.may_sweep():
            yield from self._sweep()

    def _sweep(self) -> Work:
        """Frees the numbers of strings that no entity uses (mark and sweep).

        Reading all entities marks their strings, as does any other use of a string in the meantime.
        """
        assert self._strings is not None
        self.schema.interned.clear()
        with self._strings.marking():
            for entity in self._entities_with_strings():
                if self.context.port_names is not None:
                    for port in _ports(entity):
                        self.context.port_names.look_up(port)
                yield ENTITY

    def _entities_with_strings(self) -> Iterator[p4r.Entity]:
        """All entities that may contain strings; clients may write during the iteration."""
        for table in self.tables.values():
            for entry in itertools.chain(table.all(), [table.default]):
                entity = p4r.Entity()
                if entry is not None:
                    if entry.interned is not None:
                        entry.interned.read_entity = None  # it may contain freed strings
                    table.fill(entry, p4r.TableEntry(), entity)
                yield entity
        for request in map(all_of, _KINDS_WITH_STRINGS):
            yield from self.entities(request)

    def apply(self, update: AnyUpdate, undo: Undo | None, role: str = "") -> Generator[int, None, Result]:
        """Applies one update, in steps; returns its result. `take_work` has the work outside of the steps."""
        context, constraints, strings = self.context, self.schema.constraints, self._strings
        changes_before = context.copy_changes
        if constraints is not None:
            constraints.evaluated = 0
        savepoint = None if strings is None else strings.begin()
        result: Result = None
        steps = None
        try:
            steps = self._dispatch(update.type, update.entity, undo, role)
            if undo is not None:
                tokens = 0 if constraints is None else constraints.evaluated
                undo.count_work(context.copy_changes - changes_before, tokens)
        except (P4RtError, StateError) as error:
            result = self._rejected(error, savepoint)
        self._work += ENTITY + (context.copy_changes - changes_before) // COPIES_PER_WORK
        if constraints is not None:
            self._work += constraints.evaluated // TOKENS_PER_WORK
        if strings is not None and result is None:
            strings.stale = strings.stale or update.type != INSERT
        elif strings is not None and strings.refused() and strings.may_sweep():
            yield from self._sweep()
            return (yield from self.apply(update, undo, role))
        if steps is not None:
            try:
                yield from steps
            except (P4RtError, StateError) as error:
                return self._rejected(error, savepoint)
        return result

    def take_work(self) -> int:
        """The units of work since the last call that belong to no step."""
        work, self._work = self._work, 0
        return work

    def _rejected(self, error: P4RtError | StateError, savepoint: Savepoint | None) -> P4RtError:
        self._roll_back(savepoint)
        return without_frames(as_p4rt_error(error))

    def _dispatch(self, kind: int, entity: p4r.Entity, undo: Undo | None, role: str) -> Work | None:
        """Applies one update; a write to an array returns the steps that apply it.

        Raises:
            P4RtError: the update is rejected.
            StateError: the switch core rejects it.
        """
        which = entity.WhichOneof("entity")
        if self.schema.absent:
            self._refuse_absent(entity)
        if self.schema.roles is not None:
            self.schema.roles.check(role, owner_of(entity))
        if kind not in _KINDS:
            raise invalid(f"update type {kind} is not INSERT, MODIFY or DELETE")
        if which == "table_entry":
            message = entity.table_entry
            table = find(self.tables, message.table_id, "table")
            if table.profile is not None:
                self._work += message.ByteSize() // _BYTES_PER_WORK
            table.write(kind, message, undo)
            return None
        self._work += entity.ByteSize() // _BYTES_PER_WORK
        if which == "extern_entry":
            raise self._no_extern(entity.extern_entry)
        entities = self._writable.get(which)
        if which is None or entities is None:
            raise invalid("the update has no entity")
        return entities.write(kind, getattr(entity, which), undo)

    def _no_extern(self, message: p4r.ExternEntry) -> P4RtError:
        """The error for an ExternEntry: P4Runtime has other entities for all externs of v1model."""
        type_id = message.extern_type_id
        if any(extern.extern_type_id == type_id for extern in self.schema.info.externs):
            return P4RtError(
                Code.UNIMPLEMENTED, f"externs of type {type_id} are in P4Info, but not in v1model"
            )
        return not_found(f"there is no extern type with id {type_id}")

    def _refuse_absent(self, entity: p4r.Entity) -> None:
        """Rejects entities of an object that is in P4Info but not in the program."""
        owner = owner_of(entity)
        if owner in self.schema.absent:
            raise absent(self.schema.absent[owner])

    # ---- Read ----

    def read(
        self, requests: Sequence[p4r.Entity], results: UpdateResults, role: str = ""
    ) -> Iterator[p4r.ReadResponse | None]:
        """Reads the entities of all valid requests, one quantum of work at a time.

        The entities of a quantum are consistent. An entity written between two quanta may or may not be read;
        every other entity is read once.

        Args:
            results: receives the result of each request.
            role: the client's role; wildcard reads return only entities that the role has access to.

        Yields:
            the responses; None for a quantum without entities.

        Raises:
            P4RtError: RESOURCE_EXHAUSTED: the responses are too large, by an estimate before the first one or
                by their measured size.
        """
        yield from self._check_response_size(requests)
        out = Responses()
        size = work = 0
        for done in self._read_all(requests, results, role, out):
            work += done
            if work >= QUANTUM:
                message = self._take_readable(out, role)
                size += 0 if message is None else message.ByteSize()
                if size > MAX_READ_BYTES:
                    raise exhausted(
                        f"the response to {len(results)} of {len(requests)} requests has {size} bytes; "
                        f"the limit is {MAX_READ_BYTES}"
                    )
                yield message
                work = 0
        if not out.empty:
            yield self._take_readable(out, role)

    def _read_all(
        self, requests: Sequence[p4r.Entity], results: UpdateResults, role: str, out: Responses
    ) -> Work:
        """Reads the entities of all requests; an error ends its request only."""
        for request in requests:
            try:
                yield from self._read(request, out, role)
            except (P4RtError, StateError) as error:
                results.append(without_frames(as_p4rt_error(error)))
                work = ENTITY
            else:
                results.append(None)
                work = SKIPPED
            yield work

    def _check_response_size(self, requests: Sequence[p4r.Entity]) -> Iterator[None]:
        """Rejects requests whose estimated response is too large."""
        size = 0
        for count, request in enumerate(requests, 1):
            which = request.WhichOneof("entity")
            if which is not None and which in self._kinds:
                size += _ENTITY_BYTES * self._kinds[which].demand(getattr(request, which))
            if count % QUANTUM == 0:
                yield None
        if size > MAX_READ_BYTES:
            raise exhausted(
                f"the Read asks for {size // _ENTITY_BYTES} entities, some {size} bytes, in {len(requests)} "
                f"requests; the limit is {MAX_READ_BYTES} bytes"
            )

    def _take_readable(self, out: Responses, role: str) -> p4r.ReadResponse | None:
        """Takes the entities read since the last call, as far as the role has access to them."""
        roles = self.schema.roles
        if out.empty or roles is None:
            return None if out.empty else out.take()
        message = roles.only(role, out.take())
        return message if message.entities else None

    def _read(self, request: p4r.Entity, out: Responses, role: str = "") -> Work:
        which = request.WhichOneof("entity")
        if self.schema.absent:
            self._refuse_absent(request)
        if self.schema.roles is not None:
            self.schema.roles.check(role, owner_of(request))
        if which == "extern_entry":
            # without ids the request is a wildcard read, which matches nothing
            if request.extern_entry.extern_type_id or request.extern_entry.extern_id:
                raise self._no_extern(request.extern_entry)
            return
        entities = self._kinds.get(which)
        if which is None or entities is None:
            raise invalid("the request has no entity")
        yield from entities.read(getattr(request, which), out)

    def entities(self, request: p4r.Entity) -> Iterator[p4r.Entity]:
        """The entities of one read request; nothing may be written during the iteration."""
        out = Responses()
        for _ in self._read(request, out):
            yield from out.take().entities

    # ---- events ----

    def port_changed(self, port: int) -> None:
        """Updates the groups and replicas that depend on a port."""
        for profile in self.profiles.values():
            profile.port_changed(port)
        self.replication.port_changed(port)

    def idle(self, now_ns: int) -> list[p4r.TableEntry]:
        """Entries whose idle timeout has expired; an entry is reported once per timeout.

        It returns up to MAX_IDLE entries; the next call continues with the others.
        """
        messages: list[p4r.TableEntry] = []
        for table in self.tables.values():
            if not table.plan.idle_timeout or len(messages) >= MAX_IDLE:
                continue
            for entry in table.expired(now_ns, MAX_IDLE - len(messages)):
                message = p4r.TableEntry()
                table.fill_key(entry, message)
                messages.append(message)
        return messages


def all_of(name: str) -> p4r.Entity:
    """The wildcard read request of a kind of entity, such as "table_entry"."""
    entity = p4r.Entity()
    getattr(entity, name).SetInParent()
    return entity


def _ports(entity: p4r.Entity) -> Iterator[bytes]:
    """The port bytestrings in an entity: ports of replicas, and watch ports."""
    for replica in (
        *entity.packet_replication_engine_entry.multicast_group_entry.replicas,
        *entity.packet_replication_engine_entry.clone_session_entry.replicas,
    ):
        yield replica.port
        yield from (backup.port for backup in replica.backup_replicas)
    actions = entity.table_entry.action.action_profile_action_set.action_profile_actions
    yield from (action.watch_port for action in actions)
    yield from (member.watch_port for member in entity.action_profile_group.members)
