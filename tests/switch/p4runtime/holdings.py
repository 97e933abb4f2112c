# SPDX-License-Identifier: Apache-2.0
"""What a P4Runtime server holds: a model in messages, from P4Info and the specification alone. For oracle.py.

Everything is held as a Read answers it, by a key that tells it from all others. Sections are those of P4Runtime-Spec.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from finsy.proto import p4i, p4r

from tests.switch.p4runtime.rules import (
    canonical_action,
    canonical_match,
    canonical_rates,
    canonical_replicas,
    copy_counter,
    copy_member,
    match_key,
    shortest,
)

INSERT, MODIFY, DELETE = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE
Key = tuple[object, ...]

_ID_OF_ARRAY = {"counter_entry": "counter_id", "meter_entry": "meter_id", "register_entry": "register_id"}


@dataclass(frozen=True)
class Facts:
    """What P4Info says, by id, and what the target says beside it.

    `sizes` are the entries that tables take; `absent` what the compiler has left out of the program, tables, arrays
    and (table, action) pairs.
    """

    info: p4i.P4Info
    sizes: Mapping[int, int]
    absent: frozenset[object] = frozenset()
    tables: dict[int, p4i.Table] = field(default_factory=dict)
    actions: dict[int, p4i.Action] = field(default_factory=dict)
    profiles: dict[int, p4i.ActionProfile] = field(default_factory=dict)
    arrays: dict[str, dict[int, int]] = field(default_factory=dict)
    of_tables: dict[str, dict[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        info = self.info
        self.tables.update((table.preamble.id, table) for table in info.tables)
        self.actions.update((action.preamble.id, action) for action in info.actions)
        self.profiles.update(
            (profile.preamble.id, profile) for profile in info.action_profiles if profile.table_ids
        )
        for kind in ("counters", "meters", "registers"):
            self.arrays[kind] = {array.preamble.id: array.size for array in getattr(info, kind)}
        for kind in ("direct_counters", "direct_meters"):
            self.of_tables[kind] = {
                resource.direct_table_id: resource.preamble.id for resource in getattr(info, kind)
            }

    def direct(self, table: p4i.Table, kind: str) -> int:
        """The id of a table's direct counter or meter; 0: it has none."""
        return self.of_tables[kind].get(table.preamble.id, 0)

    def actions_of_profile(self, profile: p4i.ActionProfile) -> dict[int, int]:
        """The scopes of the actions that a profile's members may have, by id."""
        return {
            ref.id: ref.scope
            for table in profile.table_ids
            for ref in self.tables[table].action_refs
            if ref.scope != p4i.ActionRef.DEFAULT_ONLY
        }


class Holdings:
    """All entities of one pipeline."""

    def __init__(self, facts: Facts, held: Iterable[p4r.Entity]) -> None:
        self.facts = facts
        self.entities: dict[Key, p4r.Entity] = {}
        self._users: dict[Key, int] = {}
        self._defaults: dict[int, p4r.Entity] = {}
        self.counts: dict[Key, int] = {}
        self.journal: list[tuple[Key, p4r.Entity | None]] = []
        for entity in held:
            key = self.key(entity)
            self._put(key, entity)
            if key[0] == "default":
                self._defaults[entity.table_entry.table_id] = entity

    # ---- what there is ----

    def held(self) -> dict[Key, bytes]:
        """Octets of every entity as a Read must answer it."""
        return {key: entity.SerializeToString(deterministic=True) for key, entity in self.entities.items()}

    def key(self, entity: p4r.Entity) -> Key:
        """What tells an entity from all others; of a table entry its canonical match."""
        which = entity.WhichOneof("entity")
        if which == "table_entry":
            entry = entity.table_entry
            if entry.is_default_action:
                return "default", entry.table_id
            table = self.facts.tables[entry.table_id]
            return "entry", entry.table_id, match_key(table, entry.match), entry.priority
        if which == "action_profile_member":
            member = entity.action_profile_member
            return "member", member.action_profile_id, member.member_id
        if which == "action_profile_group":
            group = entity.action_profile_group
            return "group", group.action_profile_id, group.group_id
        if which == "packet_replication_engine_entry":
            replication = entity.packet_replication_engine_entry
            if replication.WhichOneof("type") == "clone_session_entry":
                return "session", replication.clone_session_entry.session_id
            return "multicast", replication.multicast_group_entry.multicast_group_id
        if which == "digest_entry":
            return "digest", entity.digest_entry.digest_id
        if which == "value_set_entry":
            return "value_set", entity.value_set_entry.value_set_id
        message = getattr(entity, str(which))
        return which, getattr(message, _ID_OF_ARRAY[str(which)]), message.index.index

    def _put(self, key: Key, entity: p4r.Entity | None) -> None:
        before = self.entities.get(key)
        self.journal.append((key, before))
        for sign, held in ((-1, before), (1, entity)):
            if held is not None:
                self.counts[key[:2]] = self.counts.get(key[:2], 0) + sign
                for used in self._uses(held):
                    self._users[used] = self._users.get(used, 0) + sign
        if entity is None:
            del self.entities[key]
        else:
            self.entities[key] = entity

    def _uses(self, entity: p4r.Entity) -> Iterator[Key]:
        """The members and groups that an entity refers to; one-shots count for their profile."""
        if entity.HasField("table_entry"):
            action = entity.table_entry.action
            kind = action.WhichOneof("type")
            if kind not in (None, "action"):
                profile = self.facts.tables[entity.table_entry.table_id].implementation_id
                if kind == "action_profile_action_set":
                    yield "one-shot", profile
                elif kind == "action_profile_member_id":
                    yield "member", profile, action.action_profile_member_id
                else:
                    yield "group", profile, action.action_profile_group_id
        elif entity.HasField("action_profile_group"):
            group = entity.action_profile_group
            for member in group.members:
                yield "member", group.action_profile_id, member.member_id

    def take_back(self) -> None:
        """Undoes what was done since the journal was empty."""
        steps, self.journal = self.journal, []
        for key, before in reversed(steps):
            self._put(key, before)
        self.journal.clear()

    def used(self, key: Key) -> bool:
        """Whether something refers to it."""
        return self._users.get(key, 0) > 0

    # ---- what an update that is right leads to ----

    def apply(self, update: p4r.Update) -> None:
        """Changes what is held as an update does that nothing is wrong with."""
        entity, kind = update.entity, update.type
        which = str(entity.WhichOneof("entity"))
        if which.startswith("direct_"):
            self._apply_direct(entity)
        elif which in _ID_OF_ARRAY:
            self._apply_cells(which, entity)
        elif kind == DELETE:
            self._put(self.key(entity), None)
        elif which == "table_entry":
            self._apply_entry(entity.table_entry)
        else:
            self._put(self.key(entity), self._canonical(which, entity))

    def _canonical(self, which: str, entity: p4r.Entity) -> p4r.Entity:
        out = p4r.Entity()
        out.CopyFrom(entity)
        out.DiscardUnknownFields()
        if which == "action_profile_member":
            out.action_profile_member.action.CopyFrom(canonical_action(entity.action_profile_member.action))
        elif which == "action_profile_group":
            given = sorted(
                entity.action_profile_group.members, key=lambda given_member: given_member.member_id
            )
            del out.action_profile_group.members[:]
            for member in given:
                copy_member(member, out.action_profile_group.members.add(member_id=member.member_id))
        elif which == "packet_replication_engine_entry":
            replication = out.packet_replication_engine_entry
            clones = replication.WhichOneof("type") == "clone_session_entry"
            owner = replication.clone_session_entry if clones else replication.multicast_group_entry
            replicas = canonical_replicas(owner.replicas)
            del owner.replicas[:]
            owner.replicas.extend(replicas)
        elif which == "value_set_entry":
            value_set = next(
                candidate
                for candidate in self.facts.info.value_sets
                if candidate.preamble.id == out.value_set_entry.value_set_id
            )
            for item in out.value_set_entry.members:
                match = canonical_match(value_set, item.match)
                del item.match[:]
                item.match.extend(match)
        elif which == "digest_entry":
            out.digest_entry.config.SetInParent()
        return out

    def _apply_entry(self, entry: p4r.TableEntry) -> None:
        table = self.facts.tables[entry.table_id]
        key = self.key(p4r.Entity(table_entry=entry))
        before = self.entities.get(key)
        out = p4r.Entity()
        new = out.table_entry
        new.table_id, new.priority = entry.table_id, entry.priority
        new.is_default_action = entry.is_default_action
        new.match.extend(canonical_match(table, entry.match))
        reset = entry.is_default_action and not entry.HasField("action")
        given = before.table_entry if before is not None and before.table_entry.is_const else entry
        if not reset:
            new.metadata, new.controller_metadata = given.metadata, given.controller_metadata
            new.idle_timeout_ns, new.is_const = given.idle_timeout_ns, given.is_const
            if entry.HasField("meter_config"):
                new.meter_config.CopyFrom(canonical_rates(entry.meter_config))
        if entry.action.WhichOneof("type") is not None:
            self._fill_action(entry.action, new.action)
        else:
            source = self._defaults[entry.table_id] if reset else before
            if source is not None and source.table_entry.HasField("action"):
                new.action.CopyFrom(source.table_entry.action)
        if self.facts.direct(table, "direct_counters"):
            new.counter_data.SetInParent()
            if entry.HasField("counter_data"):
                copy_counter(entry.counter_data, new.counter_data)
            elif before is not None and not reset:
                new.counter_data.CopyFrom(before.table_entry.counter_data)
        self._put(key, out)

    @staticmethod
    def _fill_action(given: p4r.TableAction, out: p4r.TableAction) -> None:
        kind = given.WhichOneof("type")
        if kind == "action":
            out.action.CopyFrom(canonical_action(given.action))
        elif kind == "action_profile_action_set":
            shot, new = given.action_profile_action_set, out.action_profile_action_set
            new.SetInParent()
            new.action_selection_mode, new.size_semantics = shot.action_selection_mode, shot.size_semantics
            for item in shot.action_profile_actions:
                added = new.action_profile_actions.add(action=canonical_action(item.action))
                copy_member(item, added)
        else:
            setattr(out, str(kind), getattr(given, str(kind)))

    def _apply_direct(self, entity: p4r.Entity) -> None:
        counter = entity.HasField("direct_counter_entry")
        given = entity.direct_counter_entry if counter else entity.direct_meter_entry
        key = self.key(p4r.Entity(table_entry=given.table_entry))
        out = p4r.Entity()
        out.CopyFrom(self.entities[key])
        held = out.table_entry
        if not counter:
            held.ClearField("meter_config")
            if entity.direct_meter_entry.HasField("config"):
                held.meter_config.CopyFrom(canonical_rates(entity.direct_meter_entry.config))
        elif entity.direct_counter_entry.HasField("data"):
            copy_counter(entity.direct_counter_entry.data, held.counter_data)
        self._put(key, out)

    def _apply_cells(self, which: str, entity: p4r.Entity) -> None:
        message = getattr(entity, which)
        out = p4r.Entity()
        cell = getattr(out, which)
        cell.CopyFrom(message)
        cell.DiscardUnknownFields()
        if which == "register_entry":
            cell.data.bitstring = shortest(cell.data.bitstring)
        elif which == "meter_entry":
            cell.ClearField("counter_data")  # a reset, and not asked for when everything is read
            if cell.HasField("config"):
                cell.config.CopyFrom(canonical_rates(cell.config))
        elif which == "counter_entry" and not cell.HasField("data"):
            return
        owner, number_ = f"{which.removesuffix('_entry')}s", getattr(message, _ID_OF_ARRAY[which])
        indices = (
            (message.index.index,) if message.HasField("index") else range(self.facts.arrays[owner][number_])
        )
        for index in indices:
            written = p4r.Entity()
            written.CopyFrom(out)
            getattr(written, which).index.SetInParent()
            getattr(written, which).index.index = index
            self._put(self.key(written), written)
