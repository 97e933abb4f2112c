# SPDX-License-Identifier: Apache-2.0
"""The random control plane of one program: P4Runtime updates from P4Info, with keys from pools of values.

The updates are of entries, members, groups, multicast groups, clone sessions, meters and value sets. Fields
of packets have values from the same pools (packets.py), so that packets match entries. A program's hints
(program.py) can replace pools and other random choices.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from checks.conformance.program import CompiledProgram, Json
from tailrace.p4rt.messages import p4i, p4r

ENTRIES = 48
MEMBERS = 12
GROUPS = 5
PORTS = 8
RANDOM_VALUES = 6
NEVER_EXHAUSTED = [1_000_000_000, 1_000_000_000, 2_000_000_000, 2_000_000_000]  # CIR, CBS, PIR, PBS
_MATCH = p4i.MatchField
_PRIORITIZED = {_MATCH.TERNARY, _MATCH.RANGE, _MATCH.OPTIONAL}


class Pools:
    """Values to test by header type and field: one small pool per header field, made from the seed."""

    def __init__(self, program: CompiledProgram, seed: int) -> None:
        self._rng = random.Random(f"{seed}:{program.name}:pools")
        self._hints = program.hints.pools
        self._pools: dict[tuple[str, str], list[int]] = {}
        self._type_of = header_types(program.json)
        for header_type in program.json["header_types"]:
            for name, bits, *_ in header_type["fields"]:
                if isinstance(bits, int):
                    self._pools[header_type["name"], name] = self._make(header_type["name"], name, bits)

    def _make(self, header_type: str, name: str, bits: int) -> list[int]:
        hinted = self._hints.get(f"{header_type}.{name}")
        if hinted is not None:
            return [value & (1 << bits) - 1 for value in hinted]
        top = (1 << bits) - 1
        edges = {0, 1, top, top >> 1, 1 << bits - 1, 5 & top, 7 & top}
        return sorted(edges) + [self._rng.getrandbits(bits) for _ in range(RANDOM_VALUES)]

    def of_type(self, header_type: str, field: str) -> list[int]:
        return self._pools[header_type, field]

    def of_key(self, info: p4i.MatchField, target: object) -> list[int] | None:
        """The pool of a key field; hints may replace it under "key:NAME".

        None for metadata, which packets do not carry. `target`: the field in the JSON.
        """
        hinted = self._hints.get(f"key:{info.name}")
        if hinted is not None or not (isinstance(target, list) and len(target) == 2):
            return hinted
        header_type = self._type_of.get(target[0])
        return None if header_type is None else self._pools.get((header_type, target[1]))


def header_types(document: Json) -> dict[str, str]:
    """Header type by instance name, packet headers only."""
    return {h["name"]: h["header_type"] for h in document["headers"] if not h["metadata"]}


def octets(value: int) -> bytes:
    """Canonical P4Runtime bytestring: the shortest one for the value."""
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


class ControlMaker:
    """Makes the updates of one program; the same seed gives the same updates."""

    def __init__(self, program: CompiledProgram, pools: Pools, seed: int) -> None:
        self.program = program
        self.hints = program.hints
        self.info = program.p4info
        self.pools = pools
        self.rng = random.Random(f"{seed}:{program.name}:plan")
        in_json = program.names_in_json
        self.tables = {t.preamble.id: t for t in self.info.tables if t.preamble.name in in_json}
        self.profiles = {profile.preamble.id: profile for profile in self.info.action_profiles}
        self.actions = {action.preamble.id: action for action in self.info.actions}
        self.json_tables: dict[str, Json] = {
            table["name"]: table for pipeline in program.json["pipelines"] for table in pipeline["tables"]
        }
        self.direct_meters = {
            meter.direct_table_id: self._rates(meter.preamble.name) for meter in self.info.direct_meters
        }

    def updates(self) -> list[p4r.Update]:
        """All updates, each after those that it refers to."""
        members, groups = self._profiles()
        entries = [p4r.Entity(table_entry=e) for table in self.tables.values() for e in self._entries(table)]
        keyed = [entity for entity in entries if not entity.table_entry.is_default_action]
        inserted = [*members, *groups, *keyed, *self._replication()]
        modified = [entity for entity in entries if entity.table_entry.is_default_action]
        modified += [*self._meters(), *self._value_sets()]
        return [
            *(p4r.Update(type=p4r.Update.INSERT, entity=entity) for entity in inserted),
            *(p4r.Update(type=p4r.Update.MODIFY, entity=entity) for entity in modified),
        ]

    # ---- actions and action profiles ----

    def _action(self, table: p4i.Table) -> p4r.Action:
        info = self.actions[self.rng.choice(_usable(table)).id]
        params = [p4r.Action.Param(param_id=p.id, value=octets(self._argument(p))) for p in info.params]
        return p4r.Action(action_id=info.preamble.id, params=params)

    def _argument(self, param: p4i.Action.Param) -> int:
        hinted = self.hints.params.get(param.name)
        if hinted is not None:
            return self.rng.choice(hinted)
        if param.bitwidth == 9:
            return self.rng.randrange(PORTS)
        return self.rng.getrandbits(param.bitwidth)

    def _is_one_shot(self, profile: p4i.ActionProfile) -> bool:
        """All selectors but the first are programmed one-shot, so that both kinds of programming are used."""
        selectors = [p for p in self.info.action_profiles if p.with_selector]
        return profile.with_selector and profile in selectors[1:]

    def _profiles(self) -> tuple[list[p4r.Entity], list[p4r.Entity]]:
        """Members and groups of all action profiles."""
        members, groups = [], []
        for profile_id, profile in self.profiles.items():
            users = [self.tables[table_id] for table_id in profile.table_ids if table_id in self.tables]
            if not users or self._is_one_shot(profile):
                continue
            for member_id in range(1, MEMBERS + 1):
                member = p4r.ActionProfileMember(
                    action_profile_id=profile_id, member_id=member_id, action=self._action(users[0])
                )
                members.append(p4r.Entity(action_profile_member=member))
            for group_id in range(1, GROUPS + 1) if profile.with_selector else ():
                groups.append(p4r.Entity(action_profile_group=self._group(profile_id, group_id)))
        return members, groups

    def _group(self, profile: int, group_id: int) -> p4r.ActionProfileGroup:
        """A group of `group_id` members."""
        group = p4r.ActionProfileGroup(action_profile_id=profile, group_id=group_id)
        chosen = self.rng.sample(range(1, MEMBERS + 1), group_id)
        for member_id in chosen:
            group.members.add(member_id=member_id, weight=self.rng.choice([1, 1, 1, 2, 3]))
        group.max_size = sum(member.weight for member in group.members)
        return group

    def _table_action(self, table: p4i.Table) -> p4r.TableAction:
        if not table.implementation_id:
            return p4r.TableAction(action=self._action(table))
        profile = self.profiles[table.implementation_id]
        if self._is_one_shot(profile):
            actions = p4r.ActionProfileActionSet()
            for _ in range(self.rng.randint(1, 4)):
                actions.action_profile_actions.add(
                    action=self._action(table), weight=self.rng.choice([1, 1, 2])
                )
            return p4r.TableAction(action_profile_action_set=actions)
        if profile.with_selector and self.rng.random() < 0.7:
            return p4r.TableAction(action_profile_group_id=self.rng.randint(1, GROUPS))
        return p4r.TableAction(action_profile_member_id=self.rng.randint(1, MEMBERS))

    # ---- tables ----

    def _entries(self, table: p4i.Table) -> Iterator[p4r.TableEntry]:
        """The entries of a table; the default entry if the table has no key."""
        table_id, name = table.preamble.id, table.preamble.name
        if table.is_const_table or not _usable(table):
            return
        if not table.match_fields:
            if not table.const_default_action_id and not table.implementation_id:
                action = p4r.TableAction(action=self._action(table))
                yield p4r.TableEntry(table_id=table_id, action=action, is_default_action=True)
            return
        if not all(field.bitwidth for field in table.match_fields):
            return  # keys of the type `error` have no width in P4Info, which does not list their values
        if self.json_tables[name].get("entries"):
            return  # BMv2 makes a table immutable if the program itself has entries for it
        taken: set[bytes] = set()
        prioritized = not _PRIORITIZED.isdisjoint(field.match_type for field in table.match_fields)
        for _ in range(min(self.hints.entries.get(name, ENTRIES), table.size)):
            entry = p4r.TableEntry(table_id=table_id, match=self._key(table))
            key = entry.SerializeToString(deterministic=True)
            if key in taken:
                continue
            taken.add(key)
            if prioritized:
                # Distinct priorities: which of two entries with equal priority wins is not specified.
                entry.priority = 2 * len(taken) + 1
            entry.action.CopyFrom(self._table_action(table))
            if table_id in self.direct_meters:
                entry.meter_config.CopyFrom(self.direct_meters[table_id])
            yield entry

    def _key(self, table: p4i.Table) -> list[p4r.FieldMatch]:
        """The key of an entry, without the fields that match everything."""
        targets = [field["target"] for field in self.json_tables[table.preamble.name]["key"]]
        fields = zip(table.match_fields, targets, strict=False)
        matches = [self._match(info, target) for info, target in fields]
        return [match for match in matches if match is not None]

    def _match(self, info: p4i.MatchField, target: object) -> p4r.FieldMatch | None:
        bits, pool, match = info.bitwidth, self.pools.of_key(info, target), p4r.FieldMatch(field_id=info.id)
        top = (1 << bits) - 1
        hits = pool and self.rng.random() < 0.9
        value = (self.rng.choice(pool) if pool and hits else self.rng.getrandbits(bits)) & top
        if info.match_type == _MATCH.EXACT:
            match.exact.value = octets(value)
        elif info.match_type == _MATCH.OPTIONAL:
            if self.rng.random() < 0.3:
                return None
            match.optional.value = octets(value)
        elif info.match_type == _MATCH.LPM:
            prefix = self.rng.choice([0, bits, self.rng.randint(1, bits), self.rng.randint(1, bits)])
            if not prefix:
                return None
            match.lpm.value, match.lpm.prefix_len = octets(value & (top ^ (top >> prefix))), prefix
        elif info.match_type == _MATCH.TERNARY:
            mask = self._mask(bits, known=pool is not None)
            if not mask:
                return None
            match.ternary.value, match.ternary.mask = octets(value & mask), octets(mask)
        else:
            ends = [value, self.rng.getrandbits(bits), min(top, value + self.rng.randrange(1 + (top >> 4)))]
            low, high = sorted((value, self.rng.choice(ends)))
            if (low, high) == (0, top):
                return None
            match.range.low, match.range.high = octets(low), octets(high)
        return match

    def _mask(self, bits: int, *, known: bool) -> int:
        """A ternary mask: full, empty, some byte, or a few bits. Always a few bits if not `known`, that is if
        packets do not get their values from a pool.
        """
        top = (1 << bits) - 1
        few = 0
        for _ in range(self.rng.randint(1, 3)):
            few |= 1 << self.rng.randrange(bits)
        if not known:
            return few
        return self.rng.choice(
            [top, 0, few, self.rng.getrandbits(bits), top & 0xFF << 8 * self.rng.randrange((bits + 7) // 8)]
        )

    # ---- replication, meters, value sets ----

    def _replication(self) -> Iterator[p4r.Entity]:
        """Multicast groups and clone sessions."""

        def replicas(pairs: list[tuple[int, int]]) -> list[p4r.Replica]:
            return [p4r.Replica(egress_port=port, instance=instance) for port, instance in pairs]

        entry = p4r.PacketReplicationEngineEntry
        for group, pairs in self.hints.multicast.items():
            multicast = p4r.MulticastGroupEntry(multicast_group_id=group, replicas=replicas(pairs))
            yield p4r.Entity(packet_replication_engine_entry=entry(multicast_group_entry=multicast))
        for session, pairs in self.hints.clones.items():
            clone = p4r.CloneSessionEntry(session_id=session, replicas=replicas(pairs))
            yield p4r.Entity(packet_replication_engine_entry=entry(clone_session_entry=clone))

    def _rates(self, meter: str) -> p4r.MeterConfig:
        cir, cburst, pir, pburst = self.hints.meters.get(meter, NEVER_EXHAUSTED)
        return p4r.MeterConfig(cir=cir, cburst=cburst, pir=pir, pburst=pburst)

    def _meters(self) -> Iterator[p4r.Entity]:
        for meter in self.info.meters:
            meter_id, name = meter.preamble.id, meter.preamble.name
            for i in range(meter.size) if name in self.program.names_in_json else ():
                cell = p4r.MeterEntry(meter_id=meter_id, index=p4r.Index(index=i), config=self._rates(name))
                yield p4r.Entity(meter_entry=cell)

    def _value_sets(self) -> Iterator[p4r.Entity]:
        """The value sets of the hints, each value cut into fields of whole bytes."""
        for info in self.info.value_sets:
            entry = p4r.ValueSetEntry(value_set_id=info.preamble.id)
            for value in self.hints.value_sets.get(info.preamble.name, ()):
                member, rest = entry.members.add(), value
                for field in reversed(info.match):
                    bits = 8 * ((field.bitwidth + 7) // 8)
                    match = p4r.FieldMatch(field_id=field.id)
                    match.exact.value = octets(rest & (1 << bits) - 1)
                    member.match.insert(0, match)
                    rest >>= bits
            if entry.members:
                yield p4r.Entity(value_set_entry=entry)


def _usable(table: p4i.Table) -> list[p4i.ActionRef]:
    """The actions that entries may have."""
    return [ref for ref in table.action_refs if ref.scope != p4i.ActionRef.DEFAULT_ONLY]
