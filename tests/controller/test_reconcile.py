# SPDX-License-Identifier: Apache-2.0
"""Whatever a switch holds, one reconciliation makes it hold what it should, and the next one writes nothing.

The switch is the native one, within the process and behind its P4Runtime server's own checks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from finsy.proto import p4i, p4r
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.controller.reconcile import (
    ReconcileReport,
    differences,
    everything,
    has_mutable_default,
    install,
    install_all,
    read_all,
    reconcile,
)
from tailrace.p4rt import programs
from tailrace.p4rt.canonical import canonical
from tailrace.p4rt.diff import diff, stages
from tailrace.p4rt.encoding import encode
from tailrace.p4rt.endpoint import run_at_once
from tailrace.p4rt.errors import ReadError, ReconcileError, SwitchError, WriteError
from tailrace.p4rt.inprocess import InProcess
from tailrace.p4rt.programs import P4Program
from tailrace.p4rt.target import target
from tailrace.schemes.registry import parse_scheme
from tailrace.sim.network import Network
from tailrace.topology import parse_topology
from tests.schemes.planned import intent

TOPOLOGY = parse_topology("leaf-spine:leaves=3,spines=3,hosts=2,rate=10Gbps")
FLOWCUT = programs.load("flowcut")
INTENTS = [
    intent(TOPOLOGY, parse_scheme("flowcut"), target("virtual"), down)["leaf1"].entities
    for down in (frozenset(), frozenset({("leaf1", 3)}), frozenset({("spine2", 3), ("leaf1", 5)}))
]


@pytest.fixture(scope="module")
def switch() -> Iterator[InProcess]:
    """A switch that runs the flowcut program, and keeps what the tests leave in it."""
    network = Network(TOPOLOGY)
    endpoint = InProcess(network.p4rt("leaf1"))
    run_at_once(endpoint.push(FLOWCUT))
    yield endpoint


def octets(value: int) -> bytes:
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


@st.composite
def table_entries(draw: st.DrawFn) -> p4r.Update:
    """An insert of any entry into any table of the program, or a change of any default action."""
    table: p4i.Table = draw(st.sampled_from(list(FLOWCUT.p4info.tables)))
    entity = p4r.Entity()
    entry = entity.table_entry
    entry.table_id = table.preamble.id
    scopes = (p4i.ActionRef.TABLE_AND_DEFAULT, p4i.ActionRef.TABLE_ONLY)
    entry.is_default_action = has_mutable_default(table) and (not table.match_fields or draw(st.booleans()))
    if not entry.is_default_action:
        for match in table.match_fields:
            field = entry.match.add(field_id=match.id)
            value = draw(st.integers(0, min((1 << match.bitwidth) - 1, 12)))
            if match.match_type == p4i.MatchField.LPM:
                length = draw(st.integers(1, match.bitwidth))
                field.lpm.prefix_len = length
                field.lpm.value = octets((10 << 24 | value << 8) >> (32 - length) << (32 - length))
            else:
                field.exact.value = octets(value)
    actions = {action.preamble.id: action for action in FLOWCUT.p4info.actions}
    allowed = [ref.id for ref in table.action_refs if ref.scope in scopes]
    action = actions[draw(st.sampled_from(allowed))]
    entry.action.action.action_id = action.preamble.id
    for param in action.params:
        value = draw(st.integers(0, (1 << min(param.bitwidth, 16)) - 1))
        entry.action.action.params.add(param_id=param.id, value=octets(value & ((1 << param.bitwidth) - 1)))
    kind = p4r.Update.MODIFY if entry.is_default_action else p4r.Update.INSERT
    return p4r.Update(type=kind, entity=entity)


@st.composite
def replications(draw: st.DrawFn) -> p4r.Update:
    """An insert of any multicast group or clone session."""
    entity = p4r.Entity()
    entry = entity.packet_replication_engine_entry
    ports = draw(st.sets(st.integers(1, 5)))
    replicas = [p4r.Replica(egress_port=port, instance=draw(st.integers(0, 3))) for port in sorted(ports)]
    if draw(st.booleans()):
        entry.multicast_group_entry.multicast_group_id = draw(st.integers(1, 4))
        entry.multicast_group_entry.replicas.extend(replicas)
    else:
        entry.clone_session_entry.session_id = draw(st.integers(1, 4))
        entry.clone_session_entry.replicas.extend(replicas)
    return p4r.Update(type=p4r.Update.INSERT, entity=entity)


def write_what_is_possible(endpoint: InProcess, updates: Sequence[p4r.Update]) -> None:
    """Writes updates one by one; those that the switch refuses leave it as it is."""
    for update in updates:
        try:
            run_at_once(endpoint.write([update]))
        except WriteError:
            continue


def held(endpoint: InProcess) -> dict[object, object]:
    return dict(canonical(entity) for entity in run_at_once(read_all(endpoint, FLOWCUT)))


def wanted(number: int) -> dict[object, object]:
    return dict(canonical(entity) for entity in encode(FLOWCUT, INTENTS[number]))


@settings(max_examples=150)
@given(
    foreign=st.lists(st.one_of(table_entries(), replications()), max_size=25),
    before=st.integers(0, 2),
    after=st.integers(0, 2),
    missing=st.sets(st.integers(0, 40)),
)
def test_any_state(
    switch: InProcess, foreign: list[p4r.Update], before: int, after: int, missing: set[int]
) -> None:
    """From any state of the switch - foreign entries, missing entries, changed defaults - one run makes the
    intent, and a second run writes nothing.
    """
    some = [entity for index, entity in enumerate(INTENTS[before]) if index not in missing]
    run_at_once(reconcile(switch, FLOWCUT, some))
    write_what_is_possible(switch, foreign)
    run_at_once(reconcile(switch, FLOWCUT, INTENTS[after]))
    assert wanted(after) == held(switch)
    assert ReconcileReport() == run_at_once(reconcile(switch, FLOWCUT, INTENTS[after]))
    assert [] == run_at_once(differences(switch, FLOWCUT, INTENTS[after]))


@settings(max_examples=50)
@given(foreign=st.lists(table_entries(), max_size=15))
def test_updates_are_minimal(switch: InProcess, foreign: list[p4r.Update]) -> None:
    """As many updates are written as there are entries that differ, and no more."""
    run_at_once(reconcile(switch, FLOWCUT, INTENTS[0]))
    write_what_is_possible(switch, foreign)
    now, goal = held(switch), wanted(0)
    report = run_at_once(reconcile(switch, FLOWCUT, INTENTS[0]))
    assert len(goal.keys() - now.keys()) == report.inserted
    assert sum(now[key] != goal[key] for key in goal.keys() & now.keys()) == report.modified
    assert len(now.keys() - goal.keys()) == report.deleted


def test_no_configuration_is_left(switch: InProcess) -> None:
    """With nothing intended, entries go and default actions are again those of the program."""
    run_at_once(reconcile(switch, FLOWCUT, INTENTS[0]))
    run_at_once(reconcile(switch, FLOWCUT, ()))
    initial = {
        table.preamble.id: table.initial_default_action.action_id
        for table in FLOWCUT.p4info.tables
        if has_mutable_default(table)
    }
    left = run_at_once(read_all(switch, FLOWCUT))
    assert initial == {e.table_entry.table_id: e.table_entry.action.action.action_id for e in left}
    assert ReconcileReport() == run_at_once(reconcile(switch, FLOWCUT, ()))


def test_routes_are_written_last_and_deleted_first() -> None:
    """A route never names a group that is not there, before, during or after a change."""
    full, none = encode(FLOWCUT, INTENTS[0]), list[p4r.Entity]()
    routes = FLOWCUT.table("ipv4_routes").preamble.id

    def tables(actual: list[p4r.Entity], goal: list[p4r.Entity]) -> list[set[bool]]:
        writes = stages(FLOWCUT, diff(FLOWCUT, goal, actual))
        return [{update.entity.table_entry.table_id == routes for update in write} for write in writes]

    assert [{False}, {True}] == tables(none, full)
    # what stays of nothing are default actions, which are reset first
    assert [{False}, {True}, {False}] == tables(full, none)


def test_install_pushes_once() -> None:
    """A program is pushed where another one or none runs; then only entries are written."""
    network = Network(TOPOLOGY)
    endpoint = InProcess(network.p4rt("leaf1"))
    assert run_at_once(endpoint.cookie()) is None
    pushed, report = run_at_once(install(endpoint, FLOWCUT, INTENTS[0]))
    assert pushed
    # RED is off in the intent as it is in the program
    assert len(INTENTS[0]) - 1 == report.writes
    assert FLOWCUT.cookie == run_at_once(endpoint.cookie())
    assert (False, ReconcileReport()) == run_at_once(install(endpoint, FLOWCUT, INTENTS[0]))
    ecmp = programs.load("ecmp")
    entities = intent(TOPOLOGY, parse_scheme("ecmp"), target("virtual"))["leaf1"].entities
    pushed, report = run_at_once(install(endpoint, ecmp, entities))
    assert pushed
    # the clone session of the other program outlived it, and is gone now
    assert ReconcileReport() == run_at_once(reconcile(endpoint, ecmp, entities))


def test_install_all() -> None:
    """Every switch of a network is made to hold its intent; a fault changes only what it must."""
    network = Network(TOPOLOGY)
    scheme, virtual = parse_scheme("flowcut"), target("virtual")
    first = install_all(network.p4rt, intent(TOPOLOGY, scheme, virtual))
    assert {switch.name for switch in TOPOLOGY.switches} == set(first)
    assert all(report.writes for report in first.values())
    fault = intent(TOPOLOGY, scheme, virtual, frozenset({("leaf1", 3)}))
    changed = install_all(network.p4rt, fault)
    assert changed["leaf1"].writes
    assert changed["spine2"].modified <= 1
    again = install_all(network.p4rt, fault)
    assert {ReconcileReport()} == set(again.values())


class Fake:
    """An endpoint that holds entities in a dictionary, and forgets or refuses some."""

    name = "s1"

    def __init__(self, program: P4Program, forgets: bool = False, refuses: int = 0) -> None:
        self.program, self.forgets, self.refuses = program, forgets, refuses
        self.held: dict[object, p4r.Entity] = {}

    async def read(self, requests: Sequence[p4r.Entity]) -> list[p4r.Entity]:
        return list(self.held.values())

    async def write(self, updates: Sequence[p4r.Update]) -> None:
        if self.refuses:
            self.refuses -= 1
            raise WriteError(self.name, "write was refused: FULL: no room", failures={0: "FULL: no room"})
        for update in () if self.forgets else updates:
            self.held[canonical(update.entity)[0]] = update.entity

    async def cookie(self) -> int | None:
        return self.program.cookie

    async def push(self, program: P4Program) -> None:
        self.program = program


def test_a_switch_that_forgets() -> None:
    """A switch that does not keep what is written is an error that says so."""
    with pytest.raises(ReconcileError, match=r"s1: \d+ entries still differ from the intent after 3 writes"):
        run_at_once(reconcile(Fake(FLOWCUT, forgets=True), FLOWCUT, INTENTS[0]))


def test_a_switch_that_refuses() -> None:
    """What is refused once is tried again; what is always refused is an error with the switch's reason."""
    fake = Fake(FLOWCUT, refuses=2)
    run_at_once(reconcile(fake, FLOWCUT, INTENTS[0]))
    assert wanted(0) == dict(canonical(entity) for entity in fake.held.values())
    with pytest.raises(WriteError, match="s1: write was refused: FULL: no room"):
        run_at_once(reconcile(Fake(FLOWCUT, refuses=99), FLOWCUT, INTENTS[0]))


def test_errors_name_the_switch() -> None:
    """Refused calls within the process are errors that begin with the switch's name."""
    endpoint = InProcess(Network(TOPOLOGY).p4rt("spine1"))
    with pytest.raises(ReadError, match="spine1: "):
        run_at_once(endpoint.read(list(everything(FLOWCUT))))
    with pytest.raises(WriteError, match="spine1: "):
        run_at_once(endpoint.write([p4r.Update(type=p4r.Update.INSERT)]))
    broken = P4Program("flowcut", FLOWCUT.path, FLOWCUT.p4info, b"{", "", 1)
    with pytest.raises(SwitchError, match="spine1: program flowcut was refused: "):
        run_at_once(endpoint.push(broken))


def test_canonical() -> None:
    """Zero padding, the order of fields, and the two ways to name a replica's port do not matter."""
    first, other = p4r.Entity(), p4r.Entity()
    for entity, fields, pad in ((first, (1, 2), b""), (other, (2, 1), b"\0\0")):
        entity.table_entry.table_id = 7
        for field in fields:
            entity.table_entry.match.add(field_id=field).exact.value = pad + bytes([field])
            entity.table_entry.action.action.params.add(param_id=field, value=pad + b"\x05")
    other.table_entry.counter_data.packet_count = 9
    assert canonical(first) == canonical(other)
    sessions = [p4r.Entity(), p4r.Entity()]
    for entity, replica in zip(
        sessions, (p4r.Replica(egress_port=9), p4r.Replica(port=b"\x09")), strict=True
    ):
        entity.packet_replication_engine_entry.clone_session_entry.session_id = 1
        entity.packet_replication_engine_entry.clone_session_entry.replicas.append(replica)
    assert canonical(sessions[0]) == canonical(sessions[1])
    with pytest.raises(ValueError, match="counter_entry are not compared"):
        canonical(p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=1)))


async def waits() -> None:
    """A coroutine that waits."""
    from asyncio import sleep

    await sleep(0)


def test_run_at_once_never_waits() -> None:
    """A coroutine that would have to wait is a mistake of the caller."""
    with pytest.raises(RuntimeError, match="waits for something"):
        run_at_once(waits())
