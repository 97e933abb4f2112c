# SPDX-License-Identifier: Apache-2.0
"""Updates that nothing is wrong with, drawn from P4Info and from what is held. For fuzzing; see mutations.py."""

from __future__ import annotations

import random
from collections.abc import Callable

from finsy.proto import p4i, p4r

from tests.switch.p4runtime.holdings import DELETE, INSERT, MODIFY, Key
from tests.switch.p4runtime.oracle import Oracle
from tests.switch.p4runtime.rules import MAX_PORT, WITH_PRIORITY, fields_of, kind_of

MANY = 40
"""Entities of a kind from which on deletions are likelier than insertions."""
IDS = 12
"""Members, groups and so on have ids from 1 to this, so that they meet."""
SMALL_ARRAY = 64
"""Cells of an array that may be written all at once."""


def octets(value: int) -> bytes:
    """The shortest bytestring of a value."""
    return value.to_bytes((value.bit_length() + 7) // 8 or 1, "big")


class Drawer:
    """Draws updates for what an oracle holds."""

    def __init__(self, oracle: Oracle, rng: random.Random) -> None:
        self.oracle = oracle
        self.rng = rng
        facts, info = oracle.facts, oracle.facts.info
        absent = facts.absent
        self.tables = [table for table in info.tables if table.preamble.id not in absent]
        self.profiles = [profile for profile in facts.profiles.values() if profile.preamble.id not in absent]
        # a profile has members and groups or one-shots, never both (9.2.4)
        self._one_shots = {
            profile.preamble.id for profile in self.profiles if profile.with_selector and rng.randrange(2)
        }
        by_members = [profile for profile in self.profiles if profile.preamble.id not in self._one_shots]
        self._kinds: list[Callable[[], p4r.Update]] = [self.multicast, self.session]
        tables = [table for table in self.tables if table.match_fields and not table.is_const_table]
        if tables:
            self._kinds += [lambda: self.entry(rng.choice(tables))] * 8
        if self.tables:
            self._kinds.append(lambda: self.default(rng.choice(self.tables)))
        if by_members:
            self._kinds += [lambda: self.member(rng.choice(by_members))] * 2
            self._kinds += [lambda: self.group(rng.choice(by_members))] * 2
        for described, draw in (
            (info.digests, self.digest),
            (info.value_sets, self.value_set),
            (
                [register for register in info.registers if register.type_spec.bitstring.bit.bitwidth],
                self.register,
            ),
            (info.counters, self.counter),
            (info.meters, self.meter),
        ):
            ids = [item.preamble.id for item in described if item.preamble.id not in absent]
            if ids:
                self._kinds.append(lambda draw=draw, ids=ids: draw(rng.choice(ids)))
        self._keys: dict[Key, list[Key]] = {}
        for key in oracle.entities:
            self._keys.setdefault(key[:2], []).append(key)

    def update(self) -> p4r.Update:
        """An update that is right, or nearly always: room may be lacking, or what it means to change be in use."""
        return self.rng.choice(self._kinds)()

    def note(self, update: p4r.Update) -> None:
        """Is told of every update that was applied."""
        if update.type == INSERT:
            key = self.oracle.key(update.entity)
            self._keys.setdefault(key[:2], []).append(key)

    def any_held(self, kind: Key) -> p4r.Entity | None:
        """One of the entities whose keys begin so."""
        keys = self._keys.get(kind, [])
        while keys:
            at = self.rng.randrange(len(keys))
            entity = self.oracle.entities.get(keys[at])
            if entity is not None:
                return entity
            keys[at] = keys[-1]
            keys.pop()
        return None

    # ---- parts ----

    def value(self, bits: int) -> int:
        """Of so many bits; small ones and the largest are likely."""
        dice = self.rng.randrange(8)
        most = (1 << bits) - 1
        if dice == 0:
            return most
        if dice == 1:
            return 0
        if dice < 5:
            return min(self.rng.randrange(1, 9), most)
        return self.rng.getrandbits(bits)

    def match(self, field: p4i.MatchField, out: p4r.FieldMatch) -> None:
        """A match of a field's own kind."""
        rng, bits, kind = self.rng, field.bitwidth, kind_of(field)
        out.field_id = field.id
        if kind == "exact":
            out.exact.value = octets(self.value(bits))
        elif kind == "lpm":
            length = rng.randint(1, bits)
            out.lpm.value, out.lpm.prefix_len = octets(self.value(length) << bits - length), length
        elif kind == "ternary":
            mask = self.value(bits) or 1
            out.ternary.value, out.ternary.mask = octets(self.value(bits) & mask), octets(mask)
        elif kind == "range":
            low, high = sorted((self.value(bits), self.value(bits)))
            if (low, high) == (0, (1 << bits) - 1):
                high = low
            out.range.low, out.range.high = octets(low), octets(high)
        else:
            out.optional.value = octets(self.value(bits))

    def key(self, owner: p4i.Table | p4i.ValueSet) -> list[p4r.FieldMatch]:
        """A key of a table or value set."""
        matches = []
        for field in fields_of(owner):
            if kind_of(field) == "exact" or self.rng.randrange(3):
                match = p4r.FieldMatch()
                self.match(field, match)
                matches.append(match)
        return matches

    def action(self, owner: int, ids: list[int], out: p4r.Action) -> bool:
        """One of the actions, where the program has any of them."""
        present = [action_id for action_id in ids if (owner, action_id) not in self.oracle.facts.absent]
        if not present:
            return False
        out.action_id = self.rng.choice(present)
        for param in self.oracle.facts.actions[out.action_id].params:
            out.params.add(param_id=param.id, value=octets(self.value(param.bitwidth)))
        return True

    def action_of_profile(self, profile: p4i.ActionProfile, out: p4r.Action) -> bool:
        """An action of a member."""
        return self.action(profile.preamble.id, list(self.oracle.facts.actions_of_profile(profile)), out)

    def _kind(self, kind: Key) -> p4r.Update.Type.ValueType:
        """What to do with entities of which there are so many."""
        count = self.oracle.counts.get(kind, 0)
        dice = self.rng.randrange(10)
        if count == 0 or dice < (5 if count < MANY else 1):
            return INSERT
        return MODIFY if dice < 7 else DELETE

    def _update(self, kind: p4r.Update.Type.ValueType, held: p4r.Entity | None) -> p4r.Update:
        """An update of something that is held, or of nothing yet."""
        update = p4r.Update(type=kind)
        if held is not None:
            update.entity.CopyFrom(held)
        return update

    def rates(self, meter: int, out: p4r.MeterConfig) -> None:
        """Rates that a meter's type takes."""
        out.SetInParent()
        out.cir, out.cburst = self.value(40), self.value(20)
        two = self.oracle.spec(meter) == p4i.MeterSpec.TWO_RATE_THREE_COLOR
        out.pir, out.pburst = (out.cir + self.value(30), self.value(20)) if two else (out.cir, out.cburst)
        if self.oracle.spec(meter) == p4i.MeterSpec.SINGLE_RATE_THREE_COLOR:
            out.eburst = self.value(20)

    # ---- tables ----

    def entry(self, table: p4i.Table) -> p4r.Update:
        """An entry of a table that has a key."""
        rng, number = self.rng, table.preamble.id
        kind = self._kind(("entry", number))
        held = None if kind == INSERT else self.any_held(("entry", number))
        if held is not None and rng.randrange(6) == 0:
            direct = self.direct(table, held)
            if direct is not None:
                return direct
        update = self._update(kind if held is not None else INSERT, held)
        entry = update.entity.table_entry
        if held is None:
            entry.table_id = number
            entry.match.extend(self.key(table))
            if any(field.match_type in WITH_PRIORITY for field in table.match_fields):
                entry.priority = rng.randint(1, 5) if rng.randrange(8) else 2**31 - 1
        if update.type != DELETE:
            if held is not None:
                entry.is_const = False
            self.attributes(table, entry)
            self.target(table, entry)
        return update

    def attributes(self, table: p4i.Table, entry: p4r.TableEntry) -> None:
        """What an entry may have beside key and action."""
        rng, facts = self.rng, self.oracle.facts
        entry.ClearField("counter_data")
        entry.ClearField("meter_config")
        if rng.randrange(4) == 0:
            entry.metadata = rng.randbytes(rng.randrange(9))
            entry.controller_metadata = rng.getrandbits(64)
        if table.idle_timeout_behavior == p4i.Table.NOTIFY_CONTROL and not entry.is_default_action:
            entry.idle_timeout_ns = rng.choice((0, 1, 10**9, 2**63 - 1))
        if facts.direct(table, "direct_counters") and rng.randrange(3) == 0:
            entry.counter_data.byte_count, entry.counter_data.packet_count = (
                rng.getrandbits(63),
                self.value(20),
            )
        meter = facts.direct(table, "direct_meters")
        if meter and rng.randrange(3) == 0:
            self.rates(meter, entry.meter_config)

    def target(self, table: p4i.Table, entry: p4r.TableEntry) -> None:
        """An action, or a member, group or one-shot of the table's profile, as far as there are any."""
        profile = self.oracle.facts.profiles.get(table.implementation_id)
        if profile is None:
            ids = [ref.id for ref in table.action_refs if ref.scope != p4i.ActionRef.DEFAULT_ONLY]
            action = p4r.Action()
            if self.action(table.preamble.id, ids, action):
                entry.action.action.CopyFrom(action)
            return
        number = profile.preamble.id
        member, group = self.any_held(("member", number)), self.any_held(("group", number))
        if number not in self._one_shots and group is not None and self.rng.randrange(2):
            entry.action.action_profile_group_id = group.action_profile_group.group_id
        elif number not in self._one_shots and member is not None:
            entry.action.action_profile_member_id = member.action_profile_member.member_id
        elif profile.with_selector:
            shot = entry.action.action_profile_action_set
            shot.SetInParent()
            del shot.action_profile_actions[:]
            for _ in range(self.rng.randint(1, 3)):
                item = p4r.ActionProfileAction(weight=0 if profile.weights_disallowed else 1)
                if self.action_of_profile(profile, item.action):
                    self.watch(item)
                    shot.action_profile_actions.append(item)

    def default(self, table: p4i.Table) -> p4r.Update:
        """Another default action, or the one that the program has."""
        update = p4r.Update(type=MODIFY)
        entry = update.entity.table_entry
        entry.table_id, entry.is_default_action = table.preamble.id, True
        ids = [ref.id for ref in table.action_refs if ref.scope != p4i.ActionRef.TABLE_ONLY]
        self.attributes(table, entry)
        if self.rng.randrange(3):
            action = p4r.Action()
            if not table.implementation_id and self.action(table.preamble.id, ids, action):
                entry.action.action.CopyFrom(action)
        return update

    def direct(self, table: p4i.Table, held: p4r.Entity) -> p4r.Update | None:
        """The counter or meter of an entry that is held."""
        facts, update = self.oracle.facts, p4r.Update(type=MODIFY)
        entry = p4r.TableEntry(table_id=held.table_entry.table_id, priority=held.table_entry.priority)
        entry.match.extend(held.table_entry.match)
        meter = facts.direct(table, "direct_meters")
        if facts.direct(table, "direct_counters") and (not meter or self.rng.randrange(2)):
            counter = update.entity.direct_counter_entry
            counter.table_entry.CopyFrom(entry)
            counter.data.byte_count, counter.data.packet_count = self.value(63), self.value(63)
        elif meter:
            update.entity.direct_meter_entry.table_entry.CopyFrom(entry)
            if self.rng.randrange(4):
                self.rates(meter, update.entity.direct_meter_entry.config)
        else:
            return None
        return update

    # ---- profiles ----

    def member(self, profile: p4i.ActionProfile) -> p4r.Update:
        """A member of an action profile."""
        number = profile.preamble.id
        kind = self._kind(("member", number))
        held = None if kind == INSERT else self.any_held(("member", number))
        update = self._update(kind if held is not None else INSERT, held)
        member = update.entity.action_profile_member
        member.action_profile_id = number
        if held is None:
            member.member_id = self.rng.randint(1, IDS)
        member.ClearField("action")
        self.action_of_profile(profile, member.action)
        return update

    def group(self, profile: p4i.ActionProfile) -> p4r.Update:
        """A group, of members that are there; a member of a profile that has no groups."""
        if not profile.with_selector:
            return self.member(profile)
        number = profile.preamble.id
        kind = self._kind(("group", number))
        held = None if kind == INSERT else self.any_held(("group", number))
        update = self._update(kind if held is not None else INSERT, held)
        group = update.entity.action_profile_group
        group.action_profile_id = number
        if held is None:
            group.group_id = self.rng.randint(1, IDS)
            group.max_size = profile.max_group_size or self.rng.choice((0, 8))
        del group.members[:]
        for _ in range(self.rng.randrange(4)):
            chosen = self.any_held(("member", number))
            ids = [member.member_id for member in group.members]
            if chosen is not None and chosen.action_profile_member.member_id not in ids:
                weight = 0 if profile.weights_disallowed else self.rng.randint(1, 2)
                self.watch(group.members.add(member_id=chosen.action_profile_member.member_id, weight=weight))
        return update

    def watch(self, member: p4r.ActionProfileGroup.Member | p4r.ActionProfileAction) -> None:
        """Perhaps a port that a member's liveness depends on."""
        dice = self.rng.randrange(6)
        if dice == 0:
            member.watch = self.rng.randrange(MAX_PORT + 1)
        elif dice == 1:
            member.watch_port = octets(self.rng.randrange(MAX_PORT + 1))

    # ---- the rest ----

    def multicast(self) -> p4r.Update:
        """A multicast group."""
        update = p4r.Update()
        group = update.entity.packet_replication_engine_entry.multicast_group_entry
        group.multicast_group_id = self.rng.randint(1, IDS)
        update.type = self._known(("multicast", group.multicast_group_id))
        self.replicas(group.replicas)
        if self.rng.randrange(4) == 0:
            group.metadata = self.rng.randbytes(5)
        return update

    def session(self) -> p4r.Update:
        """A clone session."""
        update, rng = p4r.Update(), self.rng
        session = update.entity.packet_replication_engine_entry.clone_session_entry
        session.session_id = rng.randint(1, IDS)
        update.type = self._known(("session", session.session_id))
        session.class_of_service, session.packet_length_bytes = (
            rng.randrange(8),
            rng.choice((0, 1, 64, 2**31 - 1)),
        )
        self.replicas(session.replicas)
        return update

    def _known(self, key: Key) -> p4r.Update.Type.ValueType:
        return self.rng.choice((MODIFY, DELETE)) if key in self.oracle.entities else INSERT

    def replicas(self, out: object) -> None:
        """Replicas with ports of their own, some with backups."""
        rng = self.rng
        ports = rng.sample(range(MAX_PORT + 1), rng.randrange(5))
        for port in ports:
            replica = out.add(instance=rng.choice((0, 1, 65535)))
            if rng.randrange(4):
                replica.port = octets(port)
            else:
                replica.egress_port = port
            if rng.randrange(5) == 0:
                replica.backup_replicas.add(port=octets((port + 1) % (MAX_PORT + 1)), instance=7)

    def digest(self, number: int) -> p4r.Update:
        """A digest's configuration."""
        update = p4r.Update(type=self._known(("digest", number)))
        digest = update.entity.digest_entry
        digest.digest_id = number
        config = digest.config
        config.max_timeout_ns, config.max_list_size = self.value(40), self.value(10)
        config.ack_timeout_ns = self.value(40)
        return update

    def value_set(self, number: int) -> p4r.Update:
        """The members of a value set."""
        owner = next(
            candidate for candidate in self.oracle.facts.info.value_sets if candidate.preamble.id == number
        )
        update = p4r.Update(type=MODIFY)
        value_set = update.entity.value_set_entry
        value_set.value_set_id = number
        for _ in range(self.rng.randrange(min(owner.size, 4) + 1)):
            value_set.members.add().match.extend(self.key(owner))
        return update

    def _cell(self, message: p4r.CounterEntry | p4r.MeterEntry | p4r.RegisterEntry, size: int) -> None:
        if size > SMALL_ARRAY or self.rng.randrange(8):
            # of large arrays a few cells: each is read back
            near = self.rng.randrange(min(size, SMALL_ARRAY // 4))
            message.index.index = near if self.rng.randrange(2) else size - 1 - near

    def counter(self, number: int) -> p4r.Update:
        """One cell of a counter, or all."""
        update = p4r.Update(type=MODIFY)
        entry = update.entity.counter_entry
        entry.counter_id = number
        self._cell(entry, self.oracle.facts.arrays["counters"][number])
        entry.data.byte_count, entry.data.packet_count = self.value(63), self.value(63)
        return update

    def meter(self, number: int) -> p4r.Update:
        """One cell of a meter, or all."""
        update = p4r.Update(type=MODIFY)
        entry = update.entity.meter_entry
        entry.meter_id = number
        self._cell(entry, self.oracle.facts.arrays["meters"][number])
        if self.rng.randrange(4):
            self.rates(number, entry.config)
        return update

    def register(self, number: int) -> p4r.Update:
        """One cell of a register, or all."""
        info = self.oracle.facts.info
        spec = next(candidate.type_spec for candidate in info.registers if candidate.preamble.id == number)
        update = p4r.Update(type=MODIFY)
        entry = update.entity.register_entry
        entry.register_id = number
        self._cell(entry, self.oracle.facts.arrays["registers"][number])
        entry.data.bitstring = octets(self.value(spec.bitstring.bit.bitwidth))
        return update
