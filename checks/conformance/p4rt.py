# SPDX-License-Identifier: Apache-2.0
"""Installs a plan in a switch over P4Runtime and reads its counters, for both switches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import grpc
from finsy.proto import p4i, p4r

from checks.conformance.plan import (
    ControlPlan,
    OneShot,
    PlannedCall,
    PlannedEntry,
    PlannedMatch,
    PlannedRates,
    UseGroup,
    UseMember,
)
from checks.conformance.program import CompiledProgram, ConformanceError
from tailrace.p4rt.channel import BlockingChannel, SwitchAddress
from tailrace.p4rt.client import Client as SwitchClient
from tailrace.p4rt.endpoint import run_at_once
from tailrace.p4rt.errors import SwitchError, WriteError

TIMEOUT_S = 60.0
BATCH = 100
DIGEST_S = 5.0
NEVER_NS = 3_600_000_000_000
Learned = tuple[str, tuple[int, ...]]
Counts = dict[str, list[tuple[int, int]]]


def octets(value: int) -> bytes:
    """Canonical P4Runtime bytestring: the shortest that holds the value."""
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


class PrimaryClient:
    """Primary controller of one device. What reaches the switch raises SwitchError."""

    def __init__(self, address: str, program: CompiledProgram, device_id: int = 1) -> None:
        self.program = program
        self.channel = BlockingChannel(address, None)
        self.switch = SwitchClient(
            program.name, SwitchAddress(address, device_id), self.channel, call_s=TIMEOUT_S
        )
        self.tables = {t.preamble.name: t for t in program.p4info.tables}
        self.actions = {a.preamble.name: a for a in program.p4info.actions}
        self.profiles = {p.preamble.name: p.preamble.id for p in program.p4info.action_profiles}

    def __enter__(self) -> PrimaryClient:
        return self

    def __exit__(self, *_: object) -> None:
        run_at_once(self.switch.close())
        self.channel.raw.close()

    def become_primary(self) -> None:
        """Waits for the server, and for the answer to the arbitration."""
        grpc.channel_ready_future(self.channel.raw).result(timeout=TIMEOUT_S)
        run_at_once(self.switch.become_primary(1))

    def set_pipeline(self) -> None:
        """VERIFY_AND_COMMIT the program; state of an earlier one is lost."""
        config = p4r.ForwardingPipelineConfig(
            p4info=self.program.p4info, p4_device_config=self.program.json_bytes
        )
        action = p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
        request = p4r.SetForwardingPipelineConfigRequest(action=action, config=config)
        run_at_once(self.switch.set_pipeline(request, self.program.name))

    # ---- writing ----

    def install(self, plan: ControlPlan) -> None:
        """Write everything in the plan. Raises ConformanceError that names the first refused update."""
        insert, modify = p4r.Update.INSERT, p4r.Update.MODIFY
        self._write(insert, (p4r.Entity(action_profile_member=m) for m in self._members(plan)))
        self._write(insert, (p4r.Entity(action_profile_group=g) for g in self._groups(plan)))
        self._write(insert, (p4r.Entity(table_entry=self._entry(e, plan)) for e in plan.entries))
        self._write(modify, (p4r.Entity(table_entry=d) for d in self._defaults(plan)))
        self._write(insert, (p4r.Entity(packet_replication_engine_entry=e) for e in self._replication(plan)))
        self._write(modify, (p4r.Entity(meter_entry=m) for m in self._meters(plan)))

    def insert(self, entities: Iterable[p4r.Entity]) -> None:
        """Insert entities in their order. Raises ConformanceError that names the first refused one."""
        self._write(p4r.Update.INSERT, entities)

    def _write(self, kind: p4r.Update.Type.ValueType, entities: Iterable[p4r.Entity]) -> None:
        updates = [p4r.Update(type=kind, entity=entity) for entity in entities]
        for start in range(0, len(updates), BATCH):
            part = updates[start : start + BATCH]
            try:
                run_at_once(self.switch.write(part))
            except WriteError as error:
                refused = part[next(iter(error.failures), 0)]
                raise ConformanceError(f"{error} in {' '.join(str(refused).split())[:300]}") from error

    def _match(self, info: p4i.MatchField, match: PlannedMatch) -> p4r.FieldMatch:
        out = p4r.FieldMatch(field_id=info.id)
        if match.kind == "exact":
            out.exact.value = octets(match.value)
        elif match.kind == "optional":
            out.optional.value = octets(match.value)
        elif match.kind == "lpm":
            out.lpm.value, out.lpm.prefix_len = octets(match.value), match.prefix
        elif match.kind == "ternary":
            out.ternary.value, out.ternary.mask = octets(match.value), octets(match.mask)
        else:
            out.range.low, out.range.high = octets(match.value), octets(match.high)
        return out

    def _action(self, call: PlannedCall) -> p4r.Action:
        info = self.actions[call.action]
        pairs = zip(info.params, call.arguments, strict=True)
        params = [p4r.Action.Param(param_id=param.id, value=octets(value)) for param, value in pairs]
        return p4r.Action(action_id=info.preamble.id, params=params)

    def _entry(self, entry: PlannedEntry, plan: ControlPlan) -> p4r.TableEntry:
        info = self.tables[entry.table]
        fields = zip(info.match_fields, entry.matches, strict=True)
        out = p4r.TableEntry(
            table_id=info.preamble.id,
            match=[self._match(field, match) for field, match in fields if match is not None],
            priority=entry.priority,
        )
        target = entry.target
        if isinstance(target, PlannedCall):
            out.action.action.CopyFrom(self._action(target))
        elif isinstance(target, UseMember):
            out.action.action_profile_member_id = target.member_id
        elif isinstance(target, UseGroup):
            out.action.action_profile_group_id = target.group_id
        elif isinstance(target, OneShot):
            for call, weight in target.calls:
                profile_action = out.action.action_profile_action_set.action_profile_actions.add(
                    weight=weight
                )
                profile_action.action.CopyFrom(self._action(call))
        if entry.table in plan.direct_meters:
            out.meter_config.CopyFrom(self._config(plan.direct_meters[entry.table]))
        return out

    def _defaults(self, plan: ControlPlan) -> Iterator[p4r.TableEntry]:
        for table, call in plan.defaults.items():
            action = p4r.TableAction(action=self._action(call))
            yield p4r.TableEntry(
                table_id=self.tables[table].preamble.id, action=action, is_default_action=True
            )

    def _members(self, plan: ControlPlan) -> Iterator[p4r.ActionProfileMember]:
        for member in plan.members:
            profile, action = self.profiles[member.profile], self._action(member.call)
            yield p4r.ActionProfileMember(
                action_profile_id=profile, member_id=member.member_id, action=action
            )

    def _groups(self, plan: ControlPlan) -> Iterator[p4r.ActionProfileGroup]:
        for group in plan.groups:
            members = [
                p4r.ActionProfileGroup.Member(member_id=m, weight=weight) for m, weight in group.members
            ]
            yield p4r.ActionProfileGroup(
                action_profile_id=self.profiles[group.profile],
                group_id=group.group_id,
                members=members,
                max_size=sum(weight for _, weight in group.members),
            )

    def _replication(self, plan: ControlPlan) -> Iterator[p4r.PacketReplicationEngineEntry]:
        def replicas(pairs: list[tuple[int, int]]) -> list[p4r.Replica]:
            return [p4r.Replica(egress_port=port, instance=instance) for port, instance in pairs]

        for group, pairs in plan.multicast.items():
            entry = p4r.MulticastGroupEntry(multicast_group_id=group, replicas=replicas(pairs))
            yield p4r.PacketReplicationEngineEntry(multicast_group_entry=entry)
        for session, pairs in plan.clones.items():
            clone = p4r.CloneSessionEntry(session_id=session, replicas=replicas(pairs))
            yield p4r.PacketReplicationEngineEntry(clone_session_entry=clone)

    @staticmethod
    def _config(rates: PlannedRates) -> p4r.MeterConfig:
        return p4r.MeterConfig(cir=rates.cir, cburst=rates.cburst, pir=rates.pir, pburst=rates.pburst)

    def _meters(self, plan: ControlPlan) -> Iterator[p4r.MeterEntry]:
        for meter in self.program.p4info.meters:
            if meter.preamble.name not in plan.meters:
                continue
            for index in range(meter.size):
                config = self._config(plan.meters[meter.preamble.name])
                yield p4r.MeterEntry(meter_id=meter.preamble.id, index=p4r.Index(index=index), config=config)

    # ---- digests ----

    def enable_digests(self) -> None:
        """Ask for every digest, one a message, and repeat none."""
        config = p4r.DigestEntry.Config(max_list_size=1, ack_timeout_ns=NEVER_NS)
        entries = (
            p4r.DigestEntry(digest_id=d.preamble.id, config=config) for d in self.program.p4info.digests
        )
        self._write(p4r.Update.INSERT, (p4r.Entity(digest_entry=entry) for entry in entries))

    def take_digests(self, count: int) -> set[Learned]:
        """Wait for `count` digests, but no longer than DIGEST_S for the next one."""
        names = {digest.preamble.id: digest.preamble.name for digest in self.program.p4info.digests}
        learned: set[Learned] = set()
        while len(learned) < count:
            try:
                digest = run_at_once(self.switch.receive(DIGEST_S)).digest
            except SwitchError:
                break  # there are no more, or the stream has ended with the switch
            for data in digest.data:
                members = data.struct.members if data.WhichOneof("data") == "struct" else [data]
                values = tuple(int.from_bytes(member.bitstring, "big") for member in members)
                learned.add((names[digest.digest_id], values))
        return learned

    # ---- reading ----

    def read(self, entity: p4r.Entity) -> list[p4r.Entity]:
        """All that a pattern matches."""
        return run_at_once(self.switch.read([entity]))

    def counters(self) -> Counts:
        """(bytes, packets) of every cell of every indirect counter, by counter name."""
        counts: Counts = {}
        for counter in self.program.p4info.counters:
            if counter.preamble.name not in self.program.kept:
                continue
            entities = self.read(p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=counter.preamble.id)))
            cells = {e.counter_entry.index.index: e.counter_entry.data for e in entities}
            counts[counter.preamble.name] = [
                _counted(counter.spec.unit, cells[i].byte_count, cells[i].packet_count) for i in sorted(cells)
            ]
        return counts

    def direct_counters(self, plan: ControlPlan) -> Counts:
        """(bytes, packets) of the entries of the plan, in its order, by table name."""
        counts: Counts = {}
        for direct in self.program.p4info.direct_counters:
            table = next(t for t in self.program.p4info.tables if t.preamble.id == direct.direct_table_id)
            if table.preamble.name not in self.program.kept:
                continue
            every = p4r.TableEntry(table_id=table.preamble.id)
            entities = self.read(p4r.Entity(direct_counter_entry=p4r.DirectCounterEntry(table_entry=every)))
            by_key = {_key(e.direct_counter_entry.table_entry): e.direct_counter_entry.data for e in entities}
            cells = []
            for entry in plan.entries:
                if entry.table == table.preamble.name:
                    data = by_key[_key(self._entry(entry, plan))]
                    cells.append(_counted(direct.spec.unit, data.byte_count, data.packet_count))
            counts[table.preamble.name] = cells
        return counts


def _key(entry: p4r.TableEntry) -> tuple[int, tuple[bytes, ...]]:
    """What identifies an entry in its table."""
    fields = sorted(entry.match, key=lambda field: field.field_id)
    return entry.priority, tuple(field.SerializeToString(deterministic=True) for field in fields)


def _counted(unit: p4i.CounterSpec.Unit.ValueType, octet_count: int, packet_count: int) -> tuple[int, int]:
    """Only what the counter's type promises to count."""
    return (
        0 if unit == p4i.CounterSpec.PACKETS else octet_count,
        0 if unit == p4i.CounterSpec.BYTES else packet_count,
    )
