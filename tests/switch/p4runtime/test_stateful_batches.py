# SPDX-License-Identifier: Apache-2.0
"""Batches, references between entities and reconciliation against a model in plain dicts (no gRPC)."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from finsy.proto import p4i, p4r
from google.protobuf import text_format
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tailrace.p4rt.status import Code
from tailrace.switch.compiler import SwitchProgram, load_program
from tailrace.switch.p4runtime.context import finish
from tailrace.switch.p4runtime.entities.schema import Schema, build_schema
from tailrace.switch.p4runtime.reconcile import transfer
from tailrace.switch.p4runtime.state import ForwardingState
from tests.switch.p4runtime import states

BUILD = Path(__file__).parents[2] / "programs" / "build"
INSERT, MODIFY, DELETE = 1, 2, 3
KINDS = st.sampled_from((INSERT, MODIFY, DELETE))
SMALL = st.integers(1, 4)


@cache
def program() -> tuple[SwitchProgram, Schema]:
    """The program of all tests here."""
    info = p4i.P4Info()
    text_format.Parse((BUILD / "p4rt_all.p4info.txtpb").read_text(), info)
    compiled = load_program((BUILD / "p4rt_all.json").read_bytes())
    return compiled, build_schema(info, compiled.model)


def id_of(kind: str, alias: str) -> int:
    info = program()[1].info
    return next(int(e.preamble.id) for e in getattr(info, kind) if e.preamble.alias == alias)


def send(port: int, name: str = "send") -> p4r.Action:
    action = p4r.Action(action_id=id_of("actions", name))
    action.params.add(param_id=1, value=bytes([port]))
    return action


def new_state() -> ForwardingState:
    compiled, schema = program()
    return states.new_state(compiled, schema)


class ServerAgainstModel(RuleBasedStateMachine):
    """Entries, members, groups and multicast groups; the model knows only the rules of the specification."""

    def __init__(self) -> None:
        super().__init__()
        self.state = new_state()
        # entity key -> the entity as it must be read back
        self.model: dict[tuple[object, ...], p4r.Entity] = {}

    def teardown(self) -> None:
        self.state.context.switch.close()

    # ---- the model ----

    def expect(self, update: p4r.Update, model: dict[tuple[object, ...], p4r.Entity]) -> Code:
        """The code that the update must get; applies it to `model`."""
        key = self.key(update.entity)
        kind = update.type
        if kind != INSERT and key not in model:
            return Code.NOT_FOUND
        if kind == INSERT and key in model:
            return Code.ALREADY_EXISTS
        if kind != DELETE and (code := self.dangling(update.entity, model)) != Code.OK:
            return code
        if kind == DELETE:
            if self.in_use(key, model):
                return Code.FAILED_PRECONDITION
            del model[key]
        else:
            model[key] = update.entity
        return Code.OK

    def key(self, entity: p4r.Entity) -> tuple[object, ...]:
        if entity.HasField("table_entry"):
            entry = entity.table_entry
            return ("entry", entry.table_id, entry.match[0].SerializeToString())
        if entity.HasField("action_profile_member"):
            return ("member", entity.action_profile_member.member_id)
        if entity.HasField("action_profile_group"):
            return ("group", entity.action_profile_group.group_id)
        return ("multicast", entity.packet_replication_engine_entry.multicast_group_entry.multicast_group_id)

    def dangling(self, entity: p4r.Entity, model: dict[tuple[object, ...], p4r.Entity]) -> Code:
        wanted: list[tuple[object, ...]] = []
        if entity.HasField("action_profile_group"):
            wanted = [("member", m.member_id) for m in entity.action_profile_group.members]
        action = entity.table_entry.action
        if action.HasField("action_profile_group_id"):
            wanted = [("group", action.action_profile_group_id)]
        if action.HasField("action_profile_member_id"):
            wanted = [("member", action.action_profile_member_id)]
        return Code.OK if all(key in model for key in wanted) else Code.NOT_FOUND

    def in_use(self, key: tuple[object, ...], model: dict[tuple[object, ...], p4r.Entity]) -> bool:
        for entity in model.values():
            action = entity.table_entry.action
            if key == ("group", action.action_profile_group_id) and action.HasField(
                "action_profile_group_id"
            ):
                return True
            if key == ("member", action.action_profile_member_id) and action.HasField(
                "action_profile_member_id"
            ):
                return True
            if key[0] == "member" and any(m.member_id == key[1] for m in entity.action_profile_group.members):
                return True
        return False

    # ---- updates ----

    @staticmethod
    def updates() -> st.SearchStrategy[p4r.Update]:
        return st.one_of(
            st.builds(mac, KINDS, SMALL, SMALL),
            st.builds(hop, KINDS, SMALL, SMALL, st.booleans()),
            st.builds(member, KINDS, SMALL, SMALL),
            st.builds(group, KINDS, SMALL, st.dictionaries(SMALL, SMALL, max_size=3)),
            st.builds(multicast, KINDS, SMALL, st.sets(SMALL, max_size=3)),
        )

    @rule(batch=st.lists(st.deferred(lambda: ServerAgainstModel.updates()), max_size=6))
    def write(self, batch: list[p4r.Update]) -> None:
        """CONTINUE_ON_ERROR: each update by itself."""
        expected = [self.expect(update, self.model) for update in batch]
        assert [Code.OK if e is None else e.code for e in states.written(self.state, batch)] == expected

    @rule(batch=st.lists(st.deferred(lambda: ServerAgainstModel.updates()), max_size=6))
    def write_all_or_none(self, batch: list[p4r.Update]) -> None:
        """ROLLBACK_ON_ERROR: all of it, or nothing and the code of the first that failed."""
        trial = dict(self.model)
        expected = [self.expect(update, trial) for update in batch]
        results = states.written(self.state, batch, whole=True)
        failures = [position for position, code in enumerate(expected) if code != Code.OK]
        if failures:
            first = results[failures[0]]
            assert first is not None
            assert first.code == expected[failures[0]]
        else:
            assert results == [None] * len(batch)
            self.model = trial

    @rule()
    def reconcile(self) -> None:
        """A snapshot written into a fresh pipeline is the same state."""
        fresh = new_state()
        finish(transfer(self.state, fresh))
        self.state.context.switch.close()
        self.state = fresh

    # ---- what must always hold ----

    @invariant()
    def reads_are_what_was_written(self) -> None:
        """Read-write symmetry for everything (specification 8.1)."""
        requests = [p4r.Entity() for _ in range(5)]
        requests[0].table_entry.table_id = id_of("tables", "mac")
        requests[1].table_entry.table_id = id_of("tables", "hop")
        requests[2].action_profile_member.SetInParent()
        requests[3].action_profile_group.SetInParent()
        requests[4].packet_replication_engine_entry.multicast_group_entry.SetInParent()
        entities, results = states.answered(self.state, requests)
        assert results == [None] * 5
        got = sorted(e.SerializeToString(deterministic=True) for e in entities)
        assert got == sorted(e.SerializeToString(deterministic=True) for e in self.model.values())

    @invariant()
    def switch_agrees(self) -> None:
        """The switch has as many entries as the model."""
        schema = program()[1]
        for alias in ("mac", "hop"):
            table_id = id_of("tables", alias)
            count = sum(1 for key in self.model if key[:2] == ("entry", table_id))
            assert self.state.context.switch.table_count(schema.tables[table_id].index) == count


def mac(kind: int, dst: int, port: int) -> p4r.Update:
    update = p4r.Update(type=p4r.Update.Type.ValueType(kind))
    update.entity.table_entry.table_id = id_of("tables", "mac")
    update.entity.table_entry.match.add(field_id=1).exact.value = bytes([dst])
    update.entity.table_entry.action.action.CopyFrom(send(port, "forward"))
    return update


def hop(kind: int, prefix: int, target: int, to_group: bool) -> p4r.Update:
    update = p4r.Update(type=p4r.Update.Type.ValueType(kind))
    entry = update.entity.table_entry
    entry.table_id = id_of("tables", "hop")
    match = entry.match.add(field_id=1)
    match.lpm.value, match.lpm.prefix_len = b"\x80\0\0\0", prefix
    if to_group:
        entry.action.action_profile_group_id = target
    else:
        entry.action.action_profile_member_id = target
    return update


def member(kind: int, number: int, port: int) -> p4r.Update:
    update = p4r.Update(type=p4r.Update.Type.ValueType(kind))
    entry = update.entity.action_profile_member
    entry.action_profile_id, entry.member_id = id_of("action_profiles", "hops"), number
    entry.action.CopyFrom(send(port))
    return update


def group(kind: int, number: int, members: dict[int, int]) -> p4r.Update:
    update = p4r.Update(type=p4r.Update.Type.ValueType(kind))
    entry = update.entity.action_profile_group
    entry.action_profile_id, entry.group_id = id_of("action_profiles", "hops"), number
    for member_id, weight in sorted(members.items()):
        entry.members.add(member_id=member_id, weight=weight)
    return update


def multicast(kind: int, number: int, ports: set[int]) -> p4r.Update:
    update = p4r.Update(type=p4r.Update.Type.ValueType(kind))
    entry = update.entity.packet_replication_engine_entry.multicast_group_entry
    entry.multicast_group_id = number
    for port in sorted(ports):
        entry.replicas.add(port=bytes([port]), instance=1)
    return update


TestServerAgainstModel = ServerAgainstModel.TestCase
TestServerAgainstModel.settings = settings(
    max_examples=60, stateful_step_count=20, suppress_health_check=list(HealthCheck)
)
