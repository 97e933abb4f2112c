# SPDX-License-Identifier: Apache-2.0
"""Switches that are filled at once hold exactly what switches hold that were written update by update."""

from __future__ import annotations

import random
from ipaddress import IPv4Address

import pytest
from finsy.proto import p4r
from msgspec import structs

from tailrace.controller.reconcile import ReconcileReport, install, install_all, read_all
from tailrace.p4rt import programs, requests
from tailrace.p4rt.encoding import encode
from tailrace.p4rt.endpoint import run_at_once
from tailrace.p4rt.entities import P4TableAction, P4TableEntry, P4TableMatch
from tailrace.p4rt.errors import WriteError
from tailrace.p4rt.inprocess import EntityUpdate, InProcess
from tailrace.p4rt.intent import SwitchIntent
from tailrace.p4rt.status import P4RtError
from tailrace.p4rt.target import target
from tailrace.schemes.registry import parse_scheme
from tailrace.sim.network import Network
from tailrace.sim.network.endpoint import SwitchEndpoint
from tailrace.topology import parse_topology
from tests.schemes.planned import intent

ECMP = programs.load("ecmp")
LEAF_SPINE = "leaf-spine:leaves=2,spines=3,hosts=2"
NETWORKS = [
    ("ecmp", "fat-tree:k=4"),
    ("flowcut", LEAF_SPINE),
    ("rlb", LEAF_SPINE),
    ("presto", LEAF_SPINE),
    ("spritz:variant=scout", "dragonfly:p=2,a=4,h=2"),
]


def asked(program: programs.P4Program) -> list[p4r.Entity]:
    """Requests for all that there is: entries with their meters, counters and times, and defaults."""
    metered = {meter.preamble.id for meter in program.p4info.direct_meters}
    entities = [p4r.Entity(table_entry=p4r.TableEntry(table_id=0))]
    entities.append(p4r.Entity(direct_counter_entry=p4r.DirectCounterEntry()))
    entities.append(p4r.Entity(direct_meter_entry=p4r.DirectMeterEntry()))
    for table in program.p4info.tables:
        entry = p4r.TableEntry(table_id=table.preamble.id)
        if metered.intersection(table.direct_resource_ids):
            entry.meter_config.SetInParent()
        entities.append(p4r.Entity(table_entry=entry))
        entities.append(
            p4r.Entity(table_entry=p4r.TableEntry(table_id=table.preamble.id, is_default_action=True))
        )
    return entities


def held(network: Network, switch: str, program: programs.P4Program) -> list[p4r.Entity]:
    """What a switch answers, in its order."""
    endpoint = InProcess(network.p4rt(switch))
    return run_at_once(endpoint.read(asked(program))) + run_at_once(read_all(endpoint, program))


def both(scheme: str, topology: str) -> tuple[Network, Network, dict[str, SwitchIntent]]:
    """A network whose switches were filled, and one whose switches were written to."""
    parsed = parse_topology(topology)
    intents = intent(parsed, parse_scheme(scheme), target("virtual"))
    filled, written = Network(parsed), Network(parsed)
    reports = install_all(filled.p4rt, intents)
    for name, intended in intents.items():
        program = programs.load(intended.program)
        _, report = run_at_once(install(InProcess(written.p4rt(name)), program, intended.entities))
        assert reports[name] == report
    return filled, written, intents


@pytest.mark.parametrize(("scheme", "topology"), NETWORKS)
def test_every_read_is_answered_as_if_it_had_been_written(scheme: str, topology: str) -> None:
    """Twice, as the first Read makes what was not made before; and memory is reckoned the same."""
    filled, written, intents = both(scheme, topology)
    for name, intended in intents.items():
        program = programs.load(intended.program)
        expected = held(written, name, program)
        assert len(expected) > len(intended.entities)
        assert held(filled, name, program) == expected == held(filled, name, program)
        devices = [network.p4rt(name).device for network in (filled, written)]
        assert len({device.memory.used for device in devices}) == 1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("scheme", "topology"), NETWORKS[:2])
def test_what_was_filled_is_written_to_as_all_else(scheme: str, topology: str, seed: int) -> None:
    """Some entries go, some change, some come back: before anybody has looked."""
    filled, written, intents = both(scheme, topology)
    rng = random.Random(seed)
    for name, intended in intents.items():
        program = programs.load(intended.program)
        entries = [
            message
            for entity, message in zip(intended.entities, encode(program, intended.entities), strict=True)
            if isinstance(entity, P4TableEntry) and not entity.is_default_action
        ]
        gone = rng.sample(entries, len(entries) // 2)
        updates = [p4r.Update(type=p4r.Update.DELETE, entity=entity) for entity in gone]
        updates += [p4r.Update(type=p4r.Update.INSERT, entity=entity) for entity in gone[::3]]
        kept = [entity for entity in entries if entity not in gone]
        updates += [p4r.Update(type=p4r.Update.MODIFY, entity=entity) for entity in kept]
        for network in (filled, written):
            run_at_once(InProcess(network.p4rt(name)).write(updates))
        assert held(filled, name, program) == held(written, name, program)


def test_a_second_install_writes_nothing_and_a_change_little() -> None:
    """What was filled is compared as all else is."""
    filled, _, intents = both("ecmp", LEAF_SPINE)
    assert set(install_all(filled.p4rt, intents).values()) == {ReconcileReport()}
    intents["leaf1"] = structs.replace(intents["leaf1"], entities=intents["leaf1"].entities[:-1])
    assert install_all(filled.p4rt, intents)["leaf1"] == ReconcileReport(deleted=1)


def _route(number: int, group: int) -> P4TableEntry:
    call = P4TableAction("to_group", group=group, size=2)
    address = str(IPv4Address("11.0.0.0") + number)
    return P4TableEntry("ipv4_routes", match=P4TableMatch(dst=f"{address}/32"), action=call)


def test_of_two_entries_with_one_key_the_last_holds() -> None:
    """As ever."""
    network = Network(parse_topology(LEAF_SPINE))
    entities = (_route(0, group=1), _route(0, group=2))
    report = install_all(network.p4rt, {"leaf1": SwitchIntent("leaf1", "ecmp", entities)})
    assert report["leaf1"] == ReconcileReport(modified=1)  # of what the first has left
    (expected,) = encode(ECMP, entities[1:])
    assert expected in held(network, "leaf1", ECMP)


def test_what_is_refused_is_told_as_ever() -> None:
    """One more route than the table has room for."""
    routes = tuple(_route(number, group=1) for number in range(ECMP.table("ipv4_routes").size + 1))
    network = Network(parse_topology(LEAF_SPINE))
    with pytest.raises(WriteError, match=r"write failed: number \d+ of \d+: RESOURCE_EXHAUSTED: table"):
        install_all(network.p4rt, {"leaf1": SwitchIntent("leaf1", "ecmp", routes)})


def test_entities_that_are_not_copied_are_written_as_others() -> None:
    """Each by itself: what is refused leaves nothing, and the memory in use is that of the rest."""
    routes = encode(ECMP, [_route(n, group=1) for n in range(ECMP.table("ipv4_routes").size + 1)])
    bad = p4r.Entity()
    bad.CopyFrom(routes[0])
    bad.table_entry.priority = 1
    messages, used = [], []
    for shared in (True, False):
        switch = Network(parse_topology(LEAF_SPINE)).p4rt("leaf2")
        switch.set_pipeline(requests.push_request(ECMP))
        for batch in ([bad], [routes[0]] * 2, routes):
            updates = [EntityUpdate(entity) for entity in batch]
            request = p4r.WriteRequest()
            if not shared:
                request.updates.extend(p4r.Update(type=u.type, entity=u.entity) for u in updates)
            with pytest.raises(P4RtError) as raised:
                switch.write(request, updates if shared else None)
            messages.append(str(raised.value))
        used.append(switch.device.memory.used)
        assert _routes(switch) == len(routes) - 1
    assert messages[:3] == messages[3:]
    assert used[0] == used[1]


def _routes(switch: SwitchEndpoint) -> int:
    request = p4r.Entity(table_entry=p4r.TableEntry(table_id=ECMP.table("ipv4_routes").preamble.id))
    return sum(len(part.entities) for part in switch.read(p4r.ReadRequest(entities=[request])))
