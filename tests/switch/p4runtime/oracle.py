# SPDX-License-Identifier: Apache-2.0
"""What a P4Runtime server must answer to an update and hold afterwards, from P4Info and the specification alone.

    oracle = Oracle(facts, held)                # what the server answers to a Read of everything
    allowed = oracle.judge(update)              # codes of all that is wrong with it; none: it must be accepted
    if not allowed:
        oracle.apply(update)
    oracle.held()                               # what a Read of everything must answer now

It knows nothing of the server's code: two answers to one question (as the oracle of SwitchV's p4-fuzzer). Of an update
that is wrong in several ways any of their codes will do, as the specification gives no order. Sections are those of
P4Runtime-Spec.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from finsy.proto import p4i, p4r

from tailrace.p4rt.status import Code
from tests.switch.p4runtime.holdings import DELETE, INSERT, MODIFY, Facts, Holdings, Key
from tests.switch.p4runtime.rules import (
    Codes,
    fits,
    match_key,
    wrong_counter,
    wrong_match,
    wrong_member,
    wrong_priority,
    wrong_rates,
    wrong_replicas,
    wrong_reset,
)

MAX_METADATA_BYTES = 4096
MAX_GROUP_WEIGHT = 16384
"""Limits of ours, which no P4Info tells."""
_MODIFIED_ONLY = {
    *("counter_entry", "meter_entry", "register_entry"),
    *("direct_counter_entry", "direct_meter_entry", "value_set_entry"),
}
"""What is always there: it can be modified, neither inserted nor deleted."""


class Oracle(Holdings):
    """Judges updates by what is held."""

    def __init__(self, facts: Facts, held: Iterable[p4r.Entity]) -> None:
        super().__init__(facts, held)
        self._judges: dict[str, Callable[[int, p4r.Entity], Codes]] = {
            "table_entry": lambda kind, e: self._entry(kind, e.table_entry),
            "action_profile_member": lambda kind, e: self._member(kind, e.action_profile_member),
            "action_profile_group": lambda kind, e: self._group(kind, e.action_profile_group),
            "packet_replication_engine_entry": lambda kind, e: self._replication(
                kind, e.packet_replication_engine_entry
            ),
            "digest_entry": lambda kind, e: self._digest(kind, e.digest_entry),
            "counter_entry": lambda _, e: self._array(e.counter_entry, "counters"),
            "meter_entry": lambda _, e: self._array(e.meter_entry, "meters"),
            "register_entry": lambda _, e: self._array(e.register_entry, "registers"),
            "direct_counter_entry": lambda _, e: self._direct(e.direct_counter_entry, "direct_counters"),
            "direct_meter_entry": lambda _, e: self._direct(e.direct_meter_entry, "direct_meters"),
            "value_set_entry": lambda _, e: self._value_set(e.value_set_entry),
        }

    def judge(self, update: p4r.Update) -> Codes:
        """The codes of all that is wrong with an update; none: it must be accepted."""
        entity = update.entity
        which = entity.WhichOneof("entity")
        if which is None:
            return {Code.INVALID_ARGUMENT}
        codes = set() if update.type in (INSERT, MODIFY, DELETE) else {Code.INVALID_ARGUMENT}
        if which in _MODIFIED_ONLY and update.type != MODIFY:
            codes.add(Code.INVALID_ARGUMENT)
        if which == "extern_entry":
            return {*codes, Code.NOT_FOUND}
        return codes | self._judges[which](update.type, entity)

    def _entry(self, kind: int, entry: p4r.TableEntry) -> Codes:
        if entry.table_id in self.facts.absent:
            return {Code.UNIMPLEMENTED}
        table = self.facts.tables.get(entry.table_id)
        if table is None:
            return {Code.NOT_FOUND}
        codes: Codes = set()
        if len(entry.metadata) > MAX_METADATA_BYTES and kind != DELETE:
            codes.add(Code.RESOURCE_EXHAUSTED)
        if entry.is_const:
            codes.add(Code.INVALID_ARGUMENT)
        if entry.is_default_action:
            return codes | self._default(kind, entry, table)
        codes |= self._place(kind, entry, table)
        if kind == DELETE:
            return codes
        codes |= self._attributes(entry, table)
        if entry.action.WhichOneof("type") is not None:
            codes |= self._target(entry.action, table)
        elif kind == INSERT:
            codes.add(Code.INVALID_ARGUMENT)
        return codes

    def _place(self, kind: int, entry: p4r.TableEntry, table: p4i.Table) -> Codes:
        """What is wrong with the key, and with what is there or is not."""
        codes = wrong_match(table, entry.match) | wrong_priority(table, entry.priority)
        there = None if codes else self.entities.get(self.key(p4r.Entity(table_entry=entry)))
        if not codes and kind == INSERT and there is not None:
            codes.add(Code.ALREADY_EXISTS)
        if not codes and kind != INSERT and there is None:
            codes.add(Code.NOT_FOUND)
        if kind in (INSERT, DELETE) and table.is_const_table:
            codes.add(Code.PERMISSION_DENIED)
        if kind == MODIFY and there is not None and there.table_entry.is_const and entry.HasField("action"):
            codes.add(Code.PERMISSION_DENIED)
        if kind == INSERT and not table.match_fields:
            codes.add(Code.INVALID_ARGUMENT)
        if (
            kind == INSERT
            and self.counts.get(("entry", entry.table_id), 0) >= self.facts.sizes[entry.table_id]
        ):
            codes.add(Code.RESOURCE_EXHAUSTED)
        return codes

    def _default(self, kind: int, entry: p4r.TableEntry, table: p4i.Table) -> Codes:
        codes = self._attributes(entry, table)
        if entry.match or entry.priority or entry.idle_timeout_ns or kind != MODIFY:
            codes.add(Code.INVALID_ARGUMENT)
        if table.const_default_action_id or ("const default", entry.table_id) in self.facts.absent:
            codes.add(Code.PERMISSION_DENIED)
        if entry.HasField("action"):
            if table.implementation_id:
                codes.add(Code.PERMISSION_DENIED)
            if entry.action.WhichOneof("type") != "action":
                codes.add(Code.INVALID_ARGUMENT)
            else:
                scopes = {ref.id: ref.scope for ref in table.action_refs}
                codes |= self._action(entry.action.action, scopes, entry.table_id, default=True)
        return codes

    def _attributes(self, entry: p4r.TableEntry, table: p4i.Table) -> Codes:
        codes: Codes = set()
        if entry.idle_timeout_ns < 0 or (
            entry.idle_timeout_ns and table.idle_timeout_behavior != p4i.Table.NOTIFY_CONTROL
        ):
            codes.add(Code.INVALID_ARGUMENT)
        if entry.HasField("time_since_last_hit"):
            codes.add(Code.INVALID_ARGUMENT)
        has_counter = self.facts.direct(table, "direct_counters")
        if entry.HasField("counter_data") and (not has_counter or wrong_counter(entry.counter_data)):
            codes.add(Code.INVALID_ARGUMENT)
        meter = self.facts.direct(table, "direct_meters")
        if entry.HasField("meter_counter_data") and (not meter or wrong_reset(entry.meter_counter_data)):
            codes.add(Code.INVALID_ARGUMENT)
        if entry.HasField("meter_config"):
            codes |= wrong_rates(entry.meter_config, self.spec(meter)) if meter else {Code.INVALID_ARGUMENT}
        return codes

    def spec(self, meter: int) -> int:
        """The type of a meter."""
        every = (*self.facts.info.meters, *self.facts.info.direct_meters)
        return next(int(info.spec.type) for info in every if info.preamble.id == meter)

    def _action(
        self, action: p4r.Action, scopes: Mapping[int, int], owner: int, *, default: bool = False
    ) -> Codes:
        if action.action_id not in scopes:
            return {Code.INVALID_ARGUMENT}
        codes: Codes = set()
        if (owner, action.action_id) in self.facts.absent:
            return {Code.UNIMPLEMENTED}
        denied = p4i.ActionRef.TABLE_ONLY if default else p4i.ActionRef.DEFAULT_ONLY
        if scopes[action.action_id] == denied:
            codes.add(Code.PERMISSION_DENIED)
        bits = {param.id: param.bitwidth for param in self.facts.actions[action.action_id].params}
        given = [param.param_id for param in action.params]
        if sorted(given) != sorted(bits):
            codes.add(Code.INVALID_ARGUMENT)
        if any(
            param.param_id in bits and not fits(param.value, bits[param.param_id]) for param in action.params
        ):
            codes.add(Code.OUT_OF_RANGE)
        return codes

    def _target(self, action: p4r.TableAction, table: p4i.Table) -> Codes:
        kind = action.WhichOneof("type")
        number_ = table.implementation_id
        if not number_:
            if kind != "action":
                return {Code.INVALID_ARGUMENT}
            scopes = {ref.id: ref.scope for ref in table.action_refs}
            return self._action(action.action, scopes, table.preamble.id)
        profile = self.facts.profiles[number_]
        codes: Codes = set()
        if kind == "action" or (kind != "action_profile_member_id" and not profile.with_selector):
            codes.add(Code.INVALID_ARGUMENT)
        if kind == "action_profile_action_set":
            if self.counts.get(("member", number_)) or self.counts.get(("group", number_)):
                codes.add(Code.INVALID_ARGUMENT)
            return codes | self._one_shot(action.action_profile_action_set, profile)
        if self.used(("one-shot", number_)):
            codes.add(Code.INVALID_ARGUMENT)
        member = ("member", number_, action.action_profile_member_id)
        group = ("group", number_, action.action_profile_group_id)
        if (
            kind != "action"
            and (member if kind == "action_profile_member_id" else group) not in self.entities
        ):
            codes.add(Code.NOT_FOUND)
        return codes

    def _one_shot(self, given: p4r.ActionProfileActionSet, profile: p4i.ActionProfile) -> Codes:
        codes: Codes = set()
        if not 0 <= given.action_selection_mode <= 2 or not 0 <= given.size_semantics <= 2:
            codes.add(Code.INVALID_ARGUMENT)
        scopes = self.facts.actions_of_profile(profile)
        for item in given.action_profile_actions:
            codes |= self._action(item.action, scopes, profile.preamble.id) | wrong_member(item, profile)
        total = sum(max(1, item.weight) for item in given.action_profile_actions)
        by_members = profile.WhichOneof("selector_size_semantics") == "sum_of_members"
        if given.size_semantics:
            by_members = given.size_semantics == p4r.ActionProfileActionSet.SUM_OF_MEMBERS
        size = len(given.action_profile_actions) if by_members else total
        if profile.max_group_size and size > profile.max_group_size:
            codes.add(Code.INVALID_ARGUMENT)
        if total > MAX_GROUP_WEIGHT:
            codes.add(Code.RESOURCE_EXHAUSTED)
        return codes

    def _exists(self, kind: int, key: Key) -> Codes:
        """What must hold of anything that is inserted, modified and deleted (12)."""
        if kind == INSERT:
            return {Code.ALREADY_EXISTS} if key in self.entities else set()
        return set() if key in self.entities else {Code.NOT_FOUND}

    def _member(self, kind: int, member: p4r.ActionProfileMember) -> Codes:
        profile = self.facts.profiles.get(member.action_profile_id)
        if member.action_profile_id in self.facts.absent:
            return {Code.UNIMPLEMENTED}
        if profile is None:
            return {Code.NOT_FOUND}
        key = ("member", member.action_profile_id, member.member_id)
        codes = self._exists(kind, key)
        if member.member_id == 0:
            codes.add(Code.INVALID_ARGUMENT)
        if kind == DELETE:
            return codes | ({Code.FAILED_PRECONDITION} if self.used(key) else set())
        if kind == INSERT:
            if self.used(("one-shot", member.action_profile_id)):
                codes.add(Code.INVALID_ARGUMENT)
            if profile.size and self.counts.get(key[:2], 0) >= profile.size:
                codes.add(Code.RESOURCE_EXHAUSTED)
        if not member.HasField("action"):
            return codes | {Code.INVALID_ARGUMENT}
        return codes | self._action(
            member.action, self.facts.actions_of_profile(profile), member.action_profile_id
        )

    def _group(self, kind: int, group: p4r.ActionProfileGroup) -> Codes:
        number_ = group.action_profile_id
        profile = self.facts.profiles.get(number_)
        if number_ in self.facts.absent:
            return {Code.UNIMPLEMENTED}
        if profile is None:
            return {Code.NOT_FOUND}
        key = ("group", number_, group.group_id)
        codes = self._exists(kind, key)
        if group.group_id == 0 or not profile.with_selector:
            codes.add(Code.INVALID_ARGUMENT)
        if kind == DELETE:
            return codes | ({Code.FAILED_PRECONDITION} if self.used(key) else set())
        limit = profile.max_group_size
        if kind == INSERT:
            if self.used(("one-shot", number_)):
                codes.add(Code.INVALID_ARGUMENT)
            if limit and not 1 <= group.max_size <= limit:
                codes.add(Code.INVALID_ARGUMENT)
        elif key in self.entities and self.entities[key].action_profile_group.max_size != group.max_size:
            codes.add(Code.INVALID_ARGUMENT)
        if group.max_size < 0:
            codes.add(Code.INVALID_ARGUMENT)
        ids = [member.member_id for member in group.members]
        if len(set(ids)) < len(ids):
            codes.add(Code.INVALID_ARGUMENT)
        if any(("member", number_, member_id) not in self.entities for member_id in ids):
            codes.add(Code.NOT_FOUND)
        for member in group.members:
            codes |= wrong_member(member, profile)
        total = sum(max(1, member.weight) for member in group.members)
        by_members = profile.WhichOneof("selector_size_semantics") == "sum_of_members"
        most = group.max_size or limit
        if (most and (len(ids) if by_members else total) > most) or max(
            total, group.max_size
        ) > MAX_GROUP_WEIGHT:
            codes.add(Code.RESOURCE_EXHAUSTED)
        return codes

    def _replication(self, kind: int, given: p4r.PacketReplicationEngineEntry) -> Codes:
        which = given.WhichOneof("type")
        codes: Codes = set()
        if which == "multicast_group_entry":
            group = given.multicast_group_entry
            key: Key = ("multicast", group.multicast_group_id)
            if not 0 < group.multicast_group_id < 1 << 16:
                return {Code.INVALID_ARGUMENT}
            replicas = group.replicas
            if kind != DELETE and len(group.metadata) > MAX_METADATA_BYTES:
                codes.add(Code.RESOURCE_EXHAUSTED)
        elif which == "clone_session_entry":
            session = given.clone_session_entry
            key = ("session", session.session_id)
            if not 0 < session.session_id < 1 << 15:
                return {Code.INVALID_ARGUMENT}
            replicas = session.replicas
            if kind != DELETE and (session.class_of_service > 7 or session.packet_length_bytes < 0):
                codes.add(Code.INVALID_ARGUMENT)
        else:
            return {Code.INVALID_ARGUMENT}
        codes |= self._exists(kind, key)
        return codes if kind == DELETE else codes | wrong_replicas(replicas)

    def _digest(self, kind: int, digest: p4r.DigestEntry) -> Codes:
        if digest.digest_id in self.facts.absent:
            return {Code.UNIMPLEMENTED}
        if digest.digest_id not in {info.preamble.id for info in self.facts.info.digests}:
            return {Code.NOT_FOUND}
        codes = self._exists(kind, ("digest", digest.digest_id))
        config = digest.config
        if kind != DELETE and min(config.max_timeout_ns, config.max_list_size, config.ack_timeout_ns) < 0:
            codes.add(Code.INVALID_ARGUMENT)
        return codes

    def _array(self, cell: p4r.CounterEntry | p4r.MeterEntry | p4r.RegisterEntry, owner: str) -> Codes:
        which = {"counters": "counter_id", "meters": "meter_id", "registers": "register_id"}[owner]
        number_ = getattr(cell, which)
        if number_ in self.facts.absent:
            return {Code.UNIMPLEMENTED}
        size = self.facts.arrays[owner].get(number_)
        if size is None:
            return {Code.NOT_FOUND}
        codes: Codes = set()
        if cell.HasField("index") and cell.index.index < 0:
            codes.add(Code.INVALID_ARGUMENT)
        if cell.HasField("index") and cell.index.index >= size:
            codes.add(Code.OUT_OF_RANGE)
        if isinstance(cell, p4r.CounterEntry) and wrong_counter(cell.data):
            codes.add(Code.INVALID_ARGUMENT)
        if isinstance(cell, p4r.MeterEntry):
            if wrong_reset(cell.counter_data):
                codes.add(Code.INVALID_ARGUMENT)
            codes |= wrong_rates(cell.config, self.spec(number_))
        if isinstance(cell, p4r.RegisterEntry):
            spec = next(info.type_spec for info in self.facts.info.registers if info.preamble.id == number_)
            if cell.data.WhichOneof("data") != "bitstring":
                codes.add(Code.INVALID_ARGUMENT)
            elif not fits(cell.data.bitstring, spec.bitstring.bit.bitwidth):
                codes.add(Code.OUT_OF_RANGE)
        return codes

    def _direct(self, given: p4r.DirectCounterEntry | p4r.DirectMeterEntry, owner: str) -> Codes:
        entry, codes = given.table_entry, Codes()
        if isinstance(given, p4r.DirectCounterEntry):
            codes |= {Code.INVALID_ARGUMENT} if wrong_counter(given.data) else set()
        elif wrong_reset(given.counter_data):
            codes.add(Code.INVALID_ARGUMENT)
        if entry.table_id in self.facts.absent:
            return {*codes, Code.UNIMPLEMENTED}
        table = self.facts.tables.get(entry.table_id)
        if table is None:
            return {*codes, Code.NOT_FOUND}
        resource = self.facts.direct(table, owner)
        if not resource:
            return {*codes, Code.INVALID_ARGUMENT}
        if entry.is_default_action:
            if (
                entry.match
                or entry.priority
                or entry.idle_timeout_ns
                or entry.HasField("time_since_last_hit")
            ):
                codes.add(Code.INVALID_ARGUMENT)
        else:
            wrong = wrong_match(table, entry.match) | wrong_priority(table, entry.priority)
            codes |= wrong
            if not wrong and self.key(p4r.Entity(table_entry=entry)) not in self.entities:
                codes.add(Code.NOT_FOUND)
        if isinstance(given, p4r.DirectMeterEntry):
            codes |= wrong_rates(given.config, self.spec(resource))
        return codes

    def _value_set(self, given: p4r.ValueSetEntry) -> Codes:
        if given.value_set_id in self.facts.absent:
            return {Code.UNIMPLEMENTED}
        declared = [info for info in self.facts.info.value_sets if info.preamble.id == given.value_set_id]
        if not declared:
            return {Code.NOT_FOUND}
        codes: Codes = set()
        members = []
        for member in given.members:
            wrong = wrong_match(declared[0], member.match)
            codes |= wrong
            if not wrong:
                members.append(match_key(declared[0], member.match))
        if len(set(members)) < len(members):
            codes.add(Code.ALREADY_EXISTS)
        if len(given.members) > declared[0].size:
            codes.add(Code.RESOURCE_EXHAUSTED)
        return codes
