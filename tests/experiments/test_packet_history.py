# SPDX-License-Identifier: Apache-2.0
"""The history of one packet of a finished run agrees with what other observers measure."""

from __future__ import annotations

import contextlib
import itertools
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tailrace import api
from tailrace.cli.inspect.packet_history import history_lines
from tailrace.experiments.plan.experiment_file import read_option_string
from tailrace.sim.errors import RunError
from tailrace.sim.network import Network
from tailrace.sim.outcome import Report
from tailrace.sim.run import VirtualBackend
from tailrace.spec import SpecError
from tailrace.study.packet.headers import header_of
from tailrace.study.packet.history import Transmission
from tailrace.study.packet.paths import WirePath, overtakers, wire_paths
from tailrace.study.packet.reconstruction import packet_history
from tailrace.study.packet.rerun import FinishedRun, flow_log, open_run, track_packets
from tailrace.switch.trace.tracking import Arrival
from tests.long import long

PS_PER_NS = 1000
FABRIC = "leaf-spine:leaves=2,spines=2,hosts=3,rate=10Gbps,delay=1us"
BURSTS = (
    "paused:load=0.25,duration=1500us,size=64KiB,pairs=3,servers=2,burst=8,bytes=64KiB,bursts=3,at=100us,"
    "long=2MiB"
)
RESTRICTED = "leaf-spine:leaves=2,spines=4,hosts=6,rate=10Gbps,delay=1us,restricted=h10/1"

COMMON: dict[str, Any] = {"topology": FABRIC, "target": "virtual", "seed": 2}
RUNS: dict[str, dict[str, Any]] = {
    "ecmp": {"scheme": "ecmp:queue=0", "workload": "incast:degree=3,size=64KiB"},
    "ecn": {"scheme": "ecmp:kmin=4KiB,kmax=8KiB,pmax=1", "workload": "incast:degree=3,size=64KiB", "transport": "dctcp"},
    "drops": {"scheme": "ecmp:queue=4KiB", "workload": "incast:degree=3,size=64KiB", "transport": "sr"},
    "restart": {"scheme": "ecmp", "workload": "incast:degree=3,size=64KiB", "transport": "sr",
                "fault": "switch-restart:switch=leaf2,at=40us,for=20us"},
    "lost": {"scheme": "ecmp", "workload": "incast:degree=3,size=64KiB", "transport": "sr",
             "fault": "drop:rate=0.05"},
    "pfc": {"scheme": "ecmp", "workload": "incast:degree=3,size=128KiB", "pfc": "xoff=16KiB"},
    "spray": {"scheme": "spray", "workload": "permutation:size=128KiB", "transport": "sr",
              "fault": "link-slow:link=leaf1-spine1,factor=0.2"},
    "drill": {"scheme": "drill", "workload": "permutation:size=128KiB"},
    "letflow": {"scheme": "letflow:gap=2us", "workload": "permutation:size=128KiB"},
    "flowcut": {"scheme": "flowcut:variant=full", "workload": "permutation:size=256KiB",
                "fault": "link-slow:link=leaf1-spine1,factor=0.1"},
    "nic": {"scheme": "flowcut:variant=nic", "workload": "permutation:size=128KiB",
            "fault": "link-slow:link=leaf1-spine1,factor=0.1"},
    "hf2t": {"scheme": "letflow:gap=5us,variant=hf2t,t=800ns", "workload": "permutation:size=256KiB",
             "transport": "dcqcn"},
    "spritz": {"scheme": "spritz", "topology": "dragonfly:p=1,a=2,h=2,groups=3,rate=10Gbps,delay=1us",
               "workload": "permutation:size=64KiB"},
    "rlb": {"scheme": "rlb:variant=drill,queue=0,margin=20us", "topology": RESTRICTED, "workload": BURSTS,
            "pfc": "xoff=64KiB", "window": "64KiB", "seed": 3},
}  # fmt: skip


LONG = [pytest.param(name, marks=long) for name in ("drill", "letflow", "nic", "rlb")]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, FinishedRun]]:
    yield _Runs(tmp_path_factory.mktemp("runs"))


class _Runs(dict[str, FinishedRun]):
    """Runs by name, each made when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __missing__(self, name: str) -> FinishedRun:
        api.run(out=self._folder / name, **(COMMON | RUNS[name]))
        self[name] = open_run(self._folder / name)
        return self[name]


@contextlib.contextmanager
def quietly(_name: str) -> Iterator[Report]:
    yield silent


def silent(_progress: object) -> None:
    """Shows nothing."""


def ends(run: FinishedRun, number: int) -> tuple[str, str]:
    flow, topology = run.flow(number), run.plan.topology
    return topology.host_by_ip(flow.src).name, topology.host_by_ip(flow.dst).name


def all_transmissions(run: FinishedRun, number: int) -> dict[int, list[WirePath]]:
    flow = run.flow(number)
    return wire_paths(flow_log(run, flow, silent), flow, ends(run, number)[0])


def slowest(run: FinishedRun, number: int) -> int:
    """The packet of a flow that took longest."""
    target = ends(run, number)[1]
    took = {
        psn: (sent[0].delivered_ps(target) or 0) - sent[0].sent_ps
        for psn, sent in all_transmissions(run, number).items()
    }
    return max(took, key=lambda psn: took[psn])


def check_times(sent: Transmission) -> None:
    """Times go on, and what is told of them adds up to the picosecond."""
    at = sent.first.sent_ps
    for hop in sent.hops:
        assert hop.arrived_ps > at
        at = hop.arrived_ps
        for queue in hop.queues:
            assert queue.queued_ps >= at
            assert queue.left_ps is not None
            assert 0 <= queue.paused_ps <= queue.waited_ps
            assert queue.left_ps >= queue.queued_ps
            at = queue.left_ps
            assert all(
                queue.queued_ps <= other.queued_ps <= other.left_ps <= queue.left_ps for other in queue.passed
            )
        assert hop.out is not None
        assert hop.out.sent_ps == at
    link_transits = [sent.first, *(hop.out for hop in sent.hops if hop.out is not None)]
    for link_transit in link_transits:
        assert link_transit.transmission_ps is not None
        assert link_transit.transmission_ps > 0
    assert sent.delivered_ps is not None
    parts = sent.waited_ps + sent.round_ps + sent.transmission_ps + sent.propagation_ps
    assert parts == sent.delivered_ps - sent.first.sent_ps


def test_every_part_of_the_way_by_hand(made: dict[str, FinishedRun]) -> None:
    """A frame of 1082 bytes takes 865.6 ns at 10 Gb/s, and 1 us to the next end."""
    run = made["ecmp"]
    history = packet_history(run, 1, 5, quietly)
    (sent,) = history.transmissions
    check_times(sent)
    source, target = ends(run, 1)
    assert (history.src, history.dst, history.packets) == (source, target, 64)
    assert sent.path[0] == source
    assert sent.path[-1] == target
    for link_transit in [sent.first, *(hop.out for hop in sent.hops)]:
        assert link_transit is not None
        assert link_transit.length == 1082
        # a remainder is carried on, so a picosecond more or less
        assert link_transit.transmission_ps == pytest.approx(865_600, abs=1)
        assert link_transit.propagation_ps == 1_000_000
    for hop in sent.hops:
        assert hop.trace is not None
        assert any(step.__class__.__name__ == "TableEvent" for step in hop.trace.steps)
    assert history.before is not None
    assert history.before.psn == 4
    assert history.acknowledged is not None
    assert history.acknowledged.psn >= 5
    assert sent.delivered_ps is not None
    assert sent.delivered_ps <= history.acknowledged.sent_ps < history.acknowledged.arrived_ps


@pytest.mark.parametrize("name", ["ecmp", "pfc", "spray", "flowcut", *LONG])
def test_times_add_up(made: dict[str, FinishedRun], name: str) -> None:
    run = made[name]
    history = packet_history(run, 1, slowest(run, 1), quietly)
    assert history.untold == 0
    assert sum(sent.waited_ps for sent in history.transmissions) > 0
    for sent in history.transmissions:
        check_times(sent)


def test_queues_are_those_that_samples_see(made: dict[str, FinishedRun]) -> None:
    """A port is looked at, by other means, just before the packet comes to its queue."""
    run = made["ecmp"]
    history = packet_history(run, 1, slowest(run, 1), quietly)
    queues = {
        (hop.switch, queue.port): queue for hop in history.transmissions[0].hops for queue in hop.queues
    }
    assert any(queue.bytes for queue in queues.values())
    seen: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)

    def observe(network: Network) -> None:
        for (switch, port), queue in queues.items():

            def look(switch: str = switch, port: int = port) -> None:
                seen[switch, port].append(network.switch(switch).queue_depth(port))

            network.call_at(queue.queued_ps // PS_PER_NS, look)

    VirtualBackend(observe=observe).run(run.plan.job, silent)
    assert seen == {place: [(queue.packets, queue.bytes)] for place, queue in queues.items()}


@pytest.mark.parametrize("name", ["ecmp", "pfc", "flowcut", "spray", *LONG])
def test_who_is_overtaken_is_who_the_nic_says(made: dict[str, FinishedRun], name: str) -> None:
    """As many first transmissions as the receiver has counted that came after a later one."""
    run = made[name]
    total = 0
    for number in list(run.rows)[:2]:
        sent, target = all_transmissions(run, number), ends(run, number)[1]
        assert sum(map(len, sent.values())) == run.rows[number].packets
        overtaken = [
            psn
            for psn, each in sent.items()
            for transmission in each
            if not transmission.header.retransmitted
            and any(not other.header.retransmitted for _, other in overtakers(transmission, sent, target))
        ]
        assert len(overtaken) == run.rows[number].overtaken
        total += len(overtaken)
    assert (total > 0) == (name == "spray")


def test_the_overtakers_of_one(made: dict[str, FinishedRun]) -> None:
    run = made["spray"]
    number = max(run.rows, key=lambda each: run.rows[each].overtaken)
    sent, target = all_transmissions(run, number), ends(run, number)[1]
    psn = next(psn for psn, each in sorted(sent.items()) if overtakers(each[0], sent, target))
    transmission = packet_history(run, number, psn, quietly).transmissions[0]
    assert transmission.delivered_ps is not None
    assert [other.psn for other in transmission.overtaken_by] == [
        psn for psn, _ in overtakers(sent[psn][0], sent, target)
    ]
    for other in transmission.overtaken_by:
        assert other.sent_ps > transmission.first.sent_ps
        assert other.delivered_ps < transmission.delivered_ps
        assert other.path[0] == transmission.path[0]


@long
def test_a_packet_that_goes_round(made: dict[str, FinishedRun]) -> None:
    """RLB's: as many rounds of all data packets as its switches have counted."""
    run = made["rlb"]
    rounds: dict[tuple[int, int], int] = {}
    for flow in run.plan.job.flows[58:60]:
        arrivals: dict[str, list[Arrival]] = defaultdict(list)
        psns = {}
        for psn, each in all_transmissions(run, flow.id).items():
            for transmission in each:
                transit = transmission.transits[0]
                assert transit.ended_ps is not None
                arrivals[transit.wire.target.node].append((transit.ended_ps, transit.wire.target.port))
                psns[transit.ended_ps] = psn
        tracked, overflows, _ = track_packets(run, arrivals, flow, (), silent)
        assert overflows == 0
        rounds |= {
            (flow.id, psns[time_ps]): each.reentries
            for (_, (time_ps, _)), each in tracked.items()
            if each.reentries
        }
    # all of them: nobody else's packet has gone round
    counted = run.summary.recirculations
    assert not isinstance(counted, msgspec.UnsetType)
    assert sum(rounds.values()) == counted.total > 0
    assert max(rounds.values()) == counted.most
    (number, psn), most = max(rounds.items(), key=lambda each: each[1])
    sent = packet_history(run, number, psn, quietly).transmissions[0]
    assert sent.hops[0].rounds == most
    check_times(sent)


def test_pfc_holds_a_queue(made: dict[str, FinishedRun]) -> None:
    """No longer than the port stood paused in all, and for as long as it waits beyond what was before it."""
    run = made["pfc"]
    history = packet_history(run, 1, slowest(run, 1), quietly)
    (sent,) = history.transmissions
    assert sent.paused_ps > 0
    paused: dict[str, int] = {}
    held = [(hop.switch, queue) for hop in sent.hops for queue in hop.queues if queue.paused_ps]

    def afterwards(network: Network) -> None:
        for switch, queue in held:
            paused[switch] = network.switch(switch).port_stats(queue.port).paused_ns

    VirtualBackend(afterwards=afterwards).run(run.plan.job, silent)
    for switch, queue in held:
        assert queue.paused_ps <= paused[switch] * PS_PER_NS
        # what was before it, one frame being sent, and what is more important
        busy_ps = (queue.bytes + 1500 + 1500 * queue.passed_by) * 800
        assert queue.waited_ps <= queue.paused_ps + busy_ps


def test_a_packet_that_is_dropped_and_sent_again(made: dict[str, FinishedRun]) -> None:
    run = made["drops"]
    number, psn = next(
        (number, psn)
        for number in run.rows
        for psn, sent in sorted(all_transmissions(run, number).items())
        if len(sent) > 1 and sent[0].delivered_ps(ends(run, number)[1]) is None
    )
    history = packet_history(run, number, psn, quietly)
    first, *_, last = history.transmissions
    assert (first.again, last.again) == (False, True)
    assert first.delivered_ps is None
    assert first.hops[-1].out is None
    assert first.hops[-1].dropped == first.end == "ingress_drop, QUEUE_LIMIT"
    check_times(last)
    assert last.end == "delivered"


@pytest.mark.parametrize(
    ("name", "end"), [("restart", "pipeline_replaced"), ("lost", "lost: taken by a fault")]
)
def test_what_faults_take(made: dict[str, FinishedRun], name: str, end: str) -> None:
    """A switch that restarts loses what waits there, a link that is bad what is on it."""
    run = made[name]
    lost = [
        (number, psn)
        for number in run.rows
        for psn, sent in sorted(all_transmissions(run, number).items())
        if sent[0].delivered_ps(ends(run, number)[1]) is None and len(sent[0].transits) > 1
    ]
    fates = []
    for number, psn in lost[:6]:
        first, *_, last = packet_history(run, number, psn, quietly).transmissions
        fates.append(first.end)
        check_times(last)
        assert last.again
    assert end in fates


def test_a_drain_within_a_nic(made: dict[str, FinishedRun]) -> None:
    """Of a flow that its NIC drains: before each packet with another source port, and before no other, the NIC
    has held the flow back until all was acknowledged, for no longer than the gap is; and all of it is told.
    """
    run = made["nic"]
    number = max(run.rows, key=lambda each: run.rows[each].drains)
    row, flow = run.rows[number], run.flow(number)
    assert row.drains
    sent = sorted(
        (transmission.sent_ps, transmission.header.sport, psn)
        for psn, each in all_transmissions(run, number).items()
        for transmission in each
    )
    seen = track_packets(run, {}, flow, [time_ps for time_ps, _, _ in sent], silent).sender
    assert seen[sent[-1][0]].drained_ns == row.drained_ns
    moved = []
    for (before_ps, before_sport, _), (at_ps, sport, psn) in itertools.pairwise(sent):
        before, now = seen[before_ps], seen[at_ps]
        assert (now.reroutes - before.reroutes == 1) == (sport != before_sport)
        drained_ps = PS_PER_NS * (now.drained_ns - before.drained_ns)
        assert 0 <= drained_ps <= at_ps - before_ps
        if sport != before_sport:
            assert drained_ps > 0
            moved.append(psn)
    assert moved
    history = packet_history(run, number, moved[0], quietly)
    assert history.before is not None
    source = history.transmissions[0].source
    assert source is not None
    assert (source.reroutes, source.since_ps) == (1, history.before.sent_ps)
    assert history.before.sport != history.transmissions[0].sport
    said = " ".join(line.strip() for _, _, line in history_lines(history, full=False))
    assert "has paused the flow for" in said
    assert "has taken another source port" in said


def test_a_stretched_gap_and_a_drawn_path(made: dict[str, FinishedRun]) -> None:
    """HF2T's host and Spritz's sender say what they have done to a packet."""
    run = made["hf2t"]
    number = max(run.rows, key=lambda each: run.rows[each].packets)
    times = [
        transmission.sent_ps for each in all_transmissions(run, number).values() for transmission in each
    ]
    seen = track_packets(run, {}, run.flow(number), times, silent).sender
    assert seen[max(times)].stretched
    first = next(
        b for a, b in itertools.pairwise(sorted(times)) if seen[b].stretched_ns > seen[a].stretched_ns
    )
    psn = next(
        p for p, each in all_transmissions(run, number).items() if any(o.sent_ps == first for o in each)
    )
    source = packet_history(run, number, psn, quietly).transmissions[0].source
    assert source is not None
    assert source.stretched == 1
    assert source.stretched_ns > 0
    run = made["spritz"]
    for psn in (0, 20):
        history = packet_history(run, 1, psn, quietly)
        source = history.transmissions[0].source
        assert source is not None
        assert source.explored + source.reused == 1


def test_a_drain_and_the_path_after_it(made: dict[str, FinishedRun]) -> None:
    run = made["flowcut"]
    number = max(run.rows, key=lambda each: run.rows[each].drains)
    assert run.rows[number].drains
    sent = sorted(all_transmissions(run, number).items())
    psn = next(b for (a, before), (b, after) in itertools.pairwise(sent) if before[0].path != after[0].path)
    history = packet_history(run, number, psn, quietly)
    assert history.before is not None
    assert history.before.path != history.transmissions[0].path
    assert [pause.op for pause in history.pauses][-1] == "xon"
    assert history.transmissions[0].overtaken_by == ()


def test_a_mark(made: dict[str, FinishedRun]) -> None:
    """The switch that marks is where the queue is beyond the threshold."""
    run = made["ecn"]
    flow = run.flow(1)
    marked = [
        header.psn
        for transit in flow_log(run, flow, silent)
        if (header := header_of(transit))
        and header.is_data
        and header.ecn.name == "CE"
        and header.qpn == flow.qpn
    ]
    (sent,) = packet_history(run, 1, marked[0], quietly).transmissions
    ecn = [sent.first.ecn, *(hop.out.ecn for hop in sent.hops if hop.out is not None)]
    assert ecn[0] == "ect_0"
    assert ecn[-1] == "ce"
    assert ecn == sorted(ecn, key=["ect_0", "ce"].index)


def test_words_are_read_back() -> None:
    """The options by which a run runs again make the same experiment."""
    for keys in RUNS.values():
        experiment = api.experiment(**(COMMON | {"gaps": True} | keys))
        assert read_option_string(experiment.option_string) == experiment
    several = api.experiment(
        scheme="ecmp",
        fault=["link-slow:fraction=0.1,factor=0.5", "drop:rate=0.1"],
        follow=[1, 2],
        time_scale=2.5,
    )
    assert read_option_string(several.option_string) == several
    with pytest.raises(SpecError, match="not an option of a run"):
        read_option_string("scheme ecmp")
    with pytest.raises(SpecError, match="options of a run: 660000 characters, expected at most"):
        read_option_string("--fault drop" * 55_000)


def test_a_run_of_several_processes(tmp_path: Path) -> None:
    """It is the same run in one."""
    api.run(
        scheme="ecmp",
        topology=FABRIC,
        workload="permutation:size=16KiB",
        target="virtual",
        ranks=2,
        out=tmp_path,
    )
    (sent,) = packet_history(open_run(tmp_path), 1, 3, quietly).transmissions
    check_times(sent)


def test_other_code_is_noticed(made: dict[str, FinishedRun]) -> None:
    run = made["ecmp"]
    other = msgspec.structs.replace(run.summary, trace_sha256="1" * 64)
    with pytest.raises(RunError, match="run it again"):
        packet_history(FinishedRun(run.folder, other, run.rows, run.plan), 1, 0, quietly)
