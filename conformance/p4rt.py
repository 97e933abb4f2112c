# SPDX-License-Identifier: Apache-2.0
"""Install a plan in a switch over P4Runtime, and read its counters: the same code for both switches."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator

import grpc
from finsy.proto import p4i, p4r, p4r_grpc, rpc_code, rpc_status

from conformance.plan import Call, Entry, Match, OneShot, Plan, Rates, UseGroup, UseMember
from conformance.program import CompiledProgram, ConformanceError

TIMEOUT_S = 60.0
BATCH = 100
DIGEST_S = 5.0
NEVER_NS = 3_600_000_000_000
Learned = tuple[str, tuple[int, ...]]
Counts = dict[str, list[tuple[int, int]]]


def octets(value: int) -> bytes:
    """Canonical P4Runtime bytestring: the shortest that holds the value."""
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


class Client:
    """Primary controller of one device."""

    def __init__(self, address: str, program: CompiledProgram, device_id: int = 1) -> None:
        self.program, self.device_id = program, device_id
        self.election = p4r.Uint128(high=0, low=1)
        # Servers that were started just now are tried again soon, not after a second.
        options = [("grpc.max_receive_message_length", -1), ("grpc.initial_reconnect_backoff_ms", 100)]
        self.channel = grpc.insecure_channel(address, options=options)
        self.stub = p4r_grpc.P4RuntimeStub(self.channel)
        self.requests: queue.Queue[p4r.StreamMessageRequest | None] = queue.Queue()
        self.learned: queue.Queue[Learned] = queue.Queue()
        self.tables = {t.preamble.name: t for t in program.p4info.tables}
        self.actions = {a.preamble.name: a for a in program.p4info.actions}
        self.profiles = {p.preamble.name: p.preamble.id for p in program.p4info.action_profiles}

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.requests.put(None)
        self.channel.close()

    def become_primary(self) -> None:
        """Open the stream and wait for the arbitration answer."""
        grpc.channel_ready_future(self.channel).result(timeout=TIMEOUT_S)
        # Kept: the stream, and with it our primacy, ends when the call object goes.
        self.messages = self.stub.StreamChannel(self._outgoing())
        arbitration = p4r.MasterArbitrationUpdate(device_id=self.device_id, election_id=self.election)
        self.requests.put(p4r.StreamMessageRequest(arbitration=arbitration))
        answer = next(iter(self.messages))
        if answer.arbitration.status.code != rpc_code.OK:
            raise ConformanceError(f"the switch refuses us as primary: {answer.arbitration.status.message}")

    def _outgoing(self) -> Iterator[p4r.StreamMessageRequest]:
        while (message := self.requests.get()) is not None:
            yield message

    def set_pipeline(self) -> None:
        """VERIFY_AND_COMMIT the program; state of an earlier one is lost."""
        config = p4r.ForwardingPipelineConfig(
            p4info=self.program.p4info, p4_device_config=self.program.json_bytes
        )
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=self.device_id,
            election_id=self.election,
            action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
            config=config,
        )
        self.stub.SetForwardingPipelineConfig(request, timeout=TIMEOUT_S)

    # ---- writing ----

    def install(self, plan: Plan) -> None:
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
            request = p4r.WriteRequest(device_id=self.device_id, election_id=self.election, updates=part)
            try:
                self.stub.Write(request, timeout=TIMEOUT_S)
            except grpc.RpcError as error:
                raise ConformanceError(
                    f"{self.program.name}: write refused: {self._reason(error, part)}"
                ) from error

    @staticmethod
    def _reason(error: grpc.RpcError, updates: list[p4r.Update]) -> str:
        trailing = {item.key: item.value for item in error.trailing_metadata() or ()}
        details = trailing.get("grpc-status-details-bin")
        if isinstance(details, bytes):
            status = rpc_status.Status.FromString(details)
            for update, detail in zip(updates, status.details, strict=False):
                one = p4r.Error()
                detail.Unpack(one)
                if one.canonical_code:
                    return (
                        f"{one.message} (code {one.canonical_code}) in {' '.join(str(update).split())[:300]}"
                    )
        return str(error.details())

    def _match(self, info: p4i.MatchField, match: Match) -> p4r.FieldMatch:
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

    def _action(self, call: Call) -> p4r.Action:
        info = self.actions[call.action]
        pairs = zip(info.params, call.arguments, strict=True)
        params = [p4r.Action.Param(param_id=param.id, value=octets(value)) for param, value in pairs]
        return p4r.Action(action_id=info.preamble.id, params=params)

    def _entry(self, entry: Entry, plan: Plan) -> p4r.TableEntry:
        info = self.tables[entry.table]
        fields = zip(info.match_fields, entry.matches, strict=True)
        out = p4r.TableEntry(
            table_id=info.preamble.id,
            match=[self._match(field, match) for field, match in fields if match is not None],
            priority=entry.priority,
        )
        target = entry.target
        if isinstance(target, Call):
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

    def _defaults(self, plan: Plan) -> Iterator[p4r.TableEntry]:
        for table, call in plan.defaults.items():
            action = p4r.TableAction(action=self._action(call))
            yield p4r.TableEntry(
                table_id=self.tables[table].preamble.id, action=action, is_default_action=True
            )

    def _members(self, plan: Plan) -> Iterator[p4r.ActionProfileMember]:
        for member in plan.members:
            profile, action = self.profiles[member.profile], self._action(member.call)
            yield p4r.ActionProfileMember(
                action_profile_id=profile, member_id=member.member_id, action=action
            )

    def _groups(self, plan: Plan) -> Iterator[p4r.ActionProfileGroup]:
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

    def _replication(self, plan: Plan) -> Iterator[p4r.PacketReplicationEngineEntry]:
        def replicas(pairs: list[tuple[int, int]]) -> list[p4r.Replica]:
            return [p4r.Replica(egress_port=port, instance=instance) for port, instance in pairs]

        for group, pairs in plan.multicast.items():
            entry = p4r.MulticastGroupEntry(multicast_group_id=group, replicas=replicas(pairs))
            yield p4r.PacketReplicationEngineEntry(multicast_group_entry=entry)
        for session, pairs in plan.clones.items():
            clone = p4r.CloneSessionEntry(session_id=session, replicas=replicas(pairs))
            yield p4r.PacketReplicationEngineEntry(clone_session_entry=clone)

    @staticmethod
    def _config(rates: Rates) -> p4r.MeterConfig:
        return p4r.MeterConfig(cir=rates.cir, cburst=rates.cburst, pir=rates.pir, pburst=rates.pburst)

    def _meters(self, plan: Plan) -> Iterator[p4r.MeterEntry]:
        for meter in self.program.p4info.meters:
            if meter.preamble.name not in plan.meters:
                continue
            for index in range(meter.size):
                config = self._config(plan.meters[meter.preamble.name])
                yield p4r.MeterEntry(meter_id=meter.preamble.id, index=p4r.Index(index=index), config=config)

    # ---- digests ----

    def enable_digests(self) -> None:
        """Ask for every digest, one a message, and repeat none."""
        names = {digest.preamble.id: digest.preamble.name for digest in self.program.p4info.digests}
        config = p4r.DigestEntry.Config(max_list_size=1, ack_timeout_ns=NEVER_NS)
        entries = (p4r.DigestEntry(digest_id=digest_id, config=config) for digest_id in names)
        self._write(p4r.Update.INSERT, (p4r.Entity(digest_entry=entry) for entry in entries))

        def read() -> None:
            try:
                for message in self.messages:
                    for data in message.digest.data:
                        members = data.struct.members if data.WhichOneof("data") == "struct" else [data]
                        values = tuple(int.from_bytes(member.bitstring, "big") for member in members)
                        self.learned.put((names[message.digest.digest_id], values))
            except grpc.RpcError:
                return  # the stream ended with the switch; who waits for a digest will miss it

        threading.Thread(target=read, daemon=True).start()

    def take_digests(self, count: int) -> set[Learned]:
        """Wait for `count` digests, but no longer than DIGEST_S for the next one."""
        found: set[Learned] = set()
        while len(found) < count:
            try:
                found.add(self.learned.get(timeout=DIGEST_S))
            except queue.Empty:
                break
        return found

    # ---- reading ----

    def _read(self, entity: p4r.Entity) -> list[p4r.Entity]:
        request = p4r.ReadRequest(device_id=self.device_id, entities=[entity])
        return [found for answer in self.stub.Read(request, timeout=TIMEOUT_S) for found in answer.entities]

    def counters(self) -> Counts:
        """(bytes, packets) of every cell of every indirect counter, by counter name."""
        counts: Counts = {}
        for counter in self.program.p4info.counters:
            if counter.preamble.name not in self.program.kept:
                continue
            found = self._read(p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=counter.preamble.id)))
            cells = {e.counter_entry.index.index: e.counter_entry.data for e in found}
            counts[counter.preamble.name] = [
                _counted(counter.spec.unit, cells[i].byte_count, cells[i].packet_count) for i in sorted(cells)
            ]
        return counts

    def direct_counters(self, plan: Plan) -> Counts:
        """(bytes, packets) of the entries of the plan, in its order, by table name."""
        counts: Counts = {}
        for direct in self.program.p4info.direct_counters:
            table = next(t for t in self.program.p4info.tables if t.preamble.id == direct.direct_table_id)
            if table.preamble.name not in self.program.kept:
                continue
            every = p4r.TableEntry(table_id=table.preamble.id)
            found = self._read(p4r.Entity(direct_counter_entry=p4r.DirectCounterEntry(table_entry=every)))
            by_key = {_key(e.direct_counter_entry.table_entry): e.direct_counter_entry.data for e in found}
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
