# SPDX-License-Identifier: Apache-2.0
"""Failure alerts in virtual time (RLB §IV-B.2): from a digest to other groups and back, at exact times."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from finsy.proto import p4r
from msgspec import structs

from tailrace.experiments.plan.defaults import MTU_BYTES
from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.plan import plan
from tailrace.p4rt import programs
from tailrace.p4rt.events import Event
from tailrace.results.run_files import EVENTS, read_events, write_events
from tailrace.schemes.rlb.faulty_paths import member_ports
from tailrace.sim.control import REACTION_RTTS
from tailrace.sim.link_faults import LinkDown
from tailrace.sim.network import Network
from tailrace.sim.outcome import Outcome, Progress
from tailrace.sim.run import Breakpoints, PausedRun, VirtualBackend
from tailrace.spec.errors import FileError
from tailrace.topology import parse_topology
from tailrace.topology.timing import base_rtt_ns, full_frame_bytes
from tests.controller.faulty_leaf import LEAVES

WORDS = "leaf-spine:leaves=2,spines=3,hosts=4,rate=10Gbps,delay=1us"
RTT_NS = base_rtt_ns(parse_topology(WORDS), full_frame_bytes(MTU_BYTES))
DELAY_NS = REACTION_RTTS * RTT_NS
HOLD_NS = 60 * RTT_NS
SCHEME = f"rlb:variant=hermes,limit=fixed,most=9,fault=2,hold={HOLD_NS}ns,age=1s"
LEAF, REMOTE_LEAF = "leaf1", 1
PORT, NEIGHBOUR = 6, "spine2"
FOREVER = 1 << 47
Look = Callable[[Network], None]


def write(network: Network, register: str, index: int, value: int) -> None:
    switch = network.switch(LEAF)
    number = next(r.index for r in switch.model.registers if r.name.rsplit(".", 1)[-1] == register)
    switch.register_write(number, index, value)


def uplinks(network: Network) -> set[int]:
    return {port for port, peer in network.topology.ports_of(LEAF).items() if peer.kind == "switch"}


def used(network: Network) -> set[int]:
    """The ports to switches that the leaf's groups name."""
    program = programs.load("rlb_hermes")
    table = program.table("group_members").preamble.id
    request = p4r.ReadRequest(entities=[p4r.Entity(table_entry=p4r.TableEntry(table_id=table))])
    entities = [entity for response in network.p4rt(LEAF).read(request) for entity in response.entities]
    return member_ports(program, entities)


def spoil(network: Network, until_ns: int) -> None:
    """Until a time, whatever wants to go by the port goes round, waiting for it: it is warned, much quicker than
    all others, and its stamps come back, or it were overdue.
    """

    def now() -> None:
        for uplink in uplinks(network):
            path = uplink * LEAVES + REMOTE_LEAF
            write(network, "warned_until_ticks", path, FOREVER * (uplink == PORT))
            write(network, "path_rtt_ticks", path, RTT_NS if uplink == PORT else 100 * RTT_NS)
            write(network, "path_rtt_seen_ticks", path, network.now_ns + 1)
            write(network, "probe_unanswered_ticks", path, 0)
        if network.now_ns < until_ns:
            network.call_at(network.now_ns + RTT_NS // 4, now)
        else:
            write(network, "warned_until_ticks", PORT * LEAVES + REMOTE_LEAF, 0)

    network.call_at(RTT_NS, now)


def run(
    look: Look, *faults: LinkDown, scheme: str = SCHEME, stops: Breakpoints | None = None
) -> tuple[Outcome, list[str]]:
    """Traffic between all hosts; `look` is handed the network before it begins."""
    notes: list[str] = []

    def report(progress: Progress) -> None:
        if progress.note:
            notes.append(progress.note)

    words = make(
        {
            "scheme": scheme,
            "topology": WORDS,
            "workload": "alltoall:size=320KiB",
            "target": "virtual",
            "seed": 3,
        }
    )
    job = structs.replace(plan(words, "virtual").job, faults=faults)
    return VirtualBackend(look, stops).run(job, report), notes


def looks(times_ns: list[int], seen: dict[int, set[int]], until_ns: int) -> Look:
    """Notes the ports that are used at some times; for the rest it is as `spoil`."""

    def note(network: Network, time_ns: int) -> None:
        seen[time_ns] = used(network)

    def look(network: Network) -> None:
        spoil(network, until_ns)
        for time_ns in times_ns:
            network.call_at(time_ns, partial(note, network, time_ns))

    return look


def by_kind(outcome: Outcome, kind: str) -> list[Event]:
    return [event for event in outcome.events if event.kind == kind]


UNTIL_NS = 5 * DELAY_NS
Spoilt = tuple[Outcome, list[str], Event]


@pytest.fixture(scope="module")
def spoilt() -> Spoilt:
    """A run in which a path is spoilt: its outcome, what was reported, and the first alert."""
    first, notes = run(lambda network: spoil(network, UNTIL_NS))
    return first, notes, by_kind(first, "failure-alert")[0]


def test_out_and_back(spoilt: Spoilt) -> None:
    """What follows from a digest happens a controller's reaction later; the path comes back when the hold time
    is over, to the nanosecond. Looking changes nothing, and the second run is the first one again.
    """
    first, notes, alert = spoilt
    back, *_ = by_kind(first, "path-back")
    assert len(notes) == len(first.events)
    assert (alert.facts["switch"], alert.facts["port"], alert.facts["neighbour"]) == (LEAF, PORT, NEIGHBOUR)
    assert alert.facts["mean_recirculations"] > 2
    out_ns, back_ns = alert.facts["time_ns"], back.facts["time_ns"]
    assert alert.facts["until_ns"] == back_ns == out_ns + HOLD_NS
    assert out_ns >= DELAY_NS
    seen: dict[int, set[int]] = {}
    times = [out_ns - 1, out_ns + 1, back_ns - 1, back_ns + 1]
    again, _ = run(looks(times, seen, UNTIL_NS))
    assert again.trace_sha256 == first.trace_sha256
    assert again.events == first.events
    everything = {5, PORT, 7}
    assert seen == dict(
        zip(times, [everything, everything - {PORT}, everything - {PORT}, everything], strict=True)
    )
    assert all(record.end_ns is not None for record in first.records)


def test_without_trouble_nothing_happens() -> None:
    """No digest, no event, and the same trace as with detection off."""
    quiet, notes = run(lambda _: None)
    off, _ = run(
        lambda _: None, scheme=SCHEME.replace("fault=2", "fault=0").replace(f"hold={HOLD_NS}ns,", "")
    )
    assert (quiet.events, notes) == ((), [])
    assert quiet.trace_sha256 == off.trace_sha256


def test_link_down_meanwhile(spoilt: Spoilt) -> None:
    """The link of a path that is out dies and comes back only after the hold time: so does the path, when the
    controller learns of it.
    """
    alert = spoilt[2]
    out_ns, back_ns = alert.facts["time_ns"], alert.facts["until_ns"]
    up_ns = back_ns + 3 * DELAY_NS
    fault = LinkDown(LEAF, NEIGHBOUR, out_ns + DELAY_NS, up_ns)
    seen: dict[int, set[int]] = {}
    learnt_ns = up_ns + DELAY_NS
    times = [back_ns - 1, back_ns + 1, learnt_ns - 1, learnt_ns + 1]
    outcome, _ = run(looks(times, seen, UNTIL_NS), fault)
    back, *_ = by_kind(outcome, "path-back")
    assert back.facts["time_ns"] == learnt_ns
    assert seen == dict(zip(times, [{5, 7}, {5, 7}, {5, 7}, {5, PORT, 7}], strict=True))
    assert all(record.end_ns is not None for record in outcome.records)


def test_link_down_and_up_within_the_hold_time(spoilt: Spoilt) -> None:
    """The link comes back first: the path stays out until its time is over."""
    alert = spoilt[2]
    out_ns, back_ns = alert.facts["time_ns"], alert.facts["until_ns"]
    up_ns = out_ns + 3 * DELAY_NS
    fault = LinkDown(LEAF, NEIGHBOUR, out_ns + DELAY_NS, up_ns)
    seen: dict[int, set[int]] = {}
    times = [up_ns + DELAY_NS + 1, back_ns - 1, back_ns + 1]
    run(looks(times, seen, UNTIL_NS), fault)
    assert seen == dict(zip(times, [{5, 7}, {5, 7}, {5, PORT, 7}], strict=True))


def test_nothing_is_made_up() -> None:
    """An incast under PFC, as it comes: packets go round so often that leaves raise alerts, each of which is
    told once, of a port to the switch that it names, and followed by what it says.
    """
    words = make(
        {
            "scheme": "rlb:variant=drill,fault=1,margin=8us",
            "topology": "leaf-spine:leaves=3,spines=4,hosts=4,rate=40Gbps,delay=2us",
            "workload": "incast:degree=8,size=256KiB",
            "target": "virtual",
            "seed": 1,
        }
    )
    planned = plan(words, "virtual")
    outcome = VirtualBackend().run(planned.job, lambda _: None)
    alerts = by_kind(outcome, "failure-alert")
    assert 1 <= len(alerts) <= sum(counts["failures_found"] for counts in outcome.counters.values())
    for alert in alerts:
        peer = planned.topology.ports_of(alert.facts["switch"])[alert.facts["port"]]
        assert (peer.name, peer.kind) == (alert.facts["neighbour"], "switch")
        assert alert.facts["mean_recirculations"] > 1
        assert alert.facts["t_rc_ns"] > 0
    assert all(record.end_ns is not None for record in outcome.records)


def test_stops(spoilt: Spoilt) -> None:
    """Who looks while a run stands still, even one who takes the digests himself, changes nothing; he is told
    which paths are out.
    """
    first, _, alert = spoilt
    out_ns = alert.facts["time_ns"]
    seen: list[list[tuple[str, int]]] = []

    def halt(standing: PausedRun) -> None:
        assert standing.network.p4rt(LEAF).digest_lists() == []
        seen.append([path.end for path in standing.suppressed])

    stops = Breakpoints((out_ns - DELAY_NS + 1, out_ns + 1), halt)
    again, _ = run(lambda network: spoil(network, UNTIL_NS), stops=stops)
    assert again.events == first.events
    assert again.trace_sha256 == first.trace_sha256
    assert seen == [[], [(LEAF, PORT)]]


def test_log(tmp_path: Path) -> None:
    """One JSON object a line, which can be read again; no file where nothing happened."""
    events = (
        Event("failure-alert", "leaf1-spine2", "leaf1: alert", {"time_ns": 5, "port": 3}),
        Event("path-back", "leaf1-spine2", "leaf1: back", {"time_ns": 9}),
    )
    write_events(events, tmp_path)
    lines = (tmp_path / EVENTS).read_text("utf-8").splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["failure-alert", "path-back"]
    assert read_events(tmp_path) == events
    write_events((), tmp_path / "quiet")
    assert read_events(tmp_path / "quiet") == ()
    (tmp_path / EVENTS).write_text('{"text": 1}\n')
    with pytest.raises(FileError, match="no log of events"):
        read_events(tmp_path)
